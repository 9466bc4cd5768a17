//! Records of a run, and the part of them that the report shows.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use posenc_experiments::Catalog;
use posenc_experiments::record::{
    Benchmarks, IndexedTable, ItemRecord, Provenance, Row, is_counted, is_dirty, is_of_machine,
    item,
};
use posenc_experiments::schema::{Experiment, Profile};
use posenc_experiments::yaml::FileError;

use crate::markdown::{code, plain};

/// The records of a run, by paper and item.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Records {
    pub items: BTreeMap<(String, String), ItemRecord>,
    pub benchmarks: Benchmarks,
}

impl Records {
    /// Reads the records of every experiment, and `benchmarks.json`. Items without a record have not been run.
    pub fn read(directory: &Path, catalog: &Catalog) -> Result<Self, FileError> {
        Records::of(directory, &catalog.experiments)
    }

    /// Like [`Records::read`], of these experiments only.
    pub fn of<'a>(
        directory: &Path,
        experiments: impl IntoIterator<Item = &'a Experiment>,
    ) -> Result<Self, FileError> {
        let benchmarks = Benchmarks::read(directory)?;
        let mut items = BTreeMap::new();
        for experiment in experiments {
            let (paper, item) = (&experiment.paper, &experiment.item);
            if let Some(record) = ItemRecord::read(&item::folder(directory, paper, item))? {
                items.insert((paper.clone(), item.clone()), record);
            }
        }
        Ok(Records { items, benchmarks })
    }

    pub fn get(&self, paper: &str, item: &str) -> Option<&ItemRecord> {
        self.items.get(&(paper.to_owned(), item.to_owned()))
    }
}

/// Which of the two runs a number is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Reference,
    /// The run of this machine.
    Local,
}

impl Side {
    pub fn name(self) -> &'static str {
        match self {
            Side::Reference => "Reference run",
            Side::Local => "This machine",
        }
    }

    /// Suffix of its file names, before the extension.
    pub fn ending(self) -> &'static str {
        match self {
            Side::Reference => "",
            Side::Local => "-local",
        }
    }
}

/// The part of an item's record that is shown.
#[derive(Debug, Clone)]
pub struct Run {
    pub side: Side,
    pub table: IndexedTable,
    pub provenance: Provenance,
    pub pictures: Vec<Row>,
    /// Where the pictures are.
    pub folder: PathBuf,
    /// Rows by group, method and signal (`None` for all signals). Lookups use this index because a record can have
    /// millions of rows, and a page as many cells.
    index: HashMap<(String, String, Option<String>), Places>,
}

#[derive(Debug, Clone, Default)]
struct Places {
    in_order: Vec<usize>,
    /// Rows that have an abscissa, sorted by it.
    by_x: Vec<(f64, usize)>,
}

impl Run {
    pub fn of(side: Side, record: &ItemRecord) -> Run {
        let rows = shown_rows(&record.table.rows);
        let mut index: HashMap<_, Places> = HashMap::new();
        let is_same =
            |a: &Row, b: &Row| a.group == b.group && a.method == b.method && a.signal == b.signal;
        let mut from = 0;
        for own in rows.chunk_by(is_same) {
            for signal in [None, Some(own[0].signal.clone())] {
                let key = (own[0].group.clone(), own[0].method.clone(), signal);
                let places = index.entry(key).or_default();
                let placed = (from..).zip(own);
                places.by_x.extend(placed.filter_map(|(place, row)| Some((row.x?, place))));
                places.in_order.extend(from..from + own.len());
            }
            from += own.len();
        }
        index.values_mut().for_each(|own| own.by_x.sort_by(|a, b| a.0.total_cmp(&b.0)));
        Run {
            side,
            table: IndexedTable::new(rows.into()),
            provenance: record.provenance.clone(),
            pictures: record.table.pictures.clone(),
            folder: record.folder.clone(),
            index,
        }
    }

    /// A label for rows recorded with uncommitted changes. It names their methods unless all rows share the commit.
    pub fn changes(&self) -> Option<String> {
        let commits = self.commits(|commit| is_dirty(commit));
        (!commits.is_empty()).then(|| {
            format!("**Recorded with uncommitted changes:** commit {}", commits.join("; "))
        })
    }

    /// The commits of the shown rows that `is_wanted` selects, each with its methods unless all rows share one commit.
    pub fn commits(&self, is_wanted: impl Fn(&&str) -> bool) -> Vec<String> {
        let all = self.provenance.methods_by_commit(&self.table.rows);
        let size = |group: &str| -> usize {
            all.values().filter_map(|groups| groups.get(group)).map(BTreeSet::len).sum()
        };
        let named = |(group, methods): (&&str, &BTreeSet<&str>)| {
            if methods.len() == size(group) {
                return code(group);
            }
            let methods: Vec<String> = methods.iter().map(|method| code(method)).collect();
            format!("{} ({})", code(group), methods.join(", "))
        };
        let line = |(commit, groups): (&&str, &BTreeMap<&str, BTreeSet<&str>>)| {
            let commit = if commit.is_empty() { "not recorded".to_owned() } else { code(commit) };
            if all.len() == 1 {
                return commit;
            }
            let groups: Vec<String> = groups.iter().map(named).collect();
            format!("{commit} for {}", groups.join(", "))
        };
        all.iter().filter(|(commit, _)| is_wanted(commit)).map(line).collect()
    }

    /// Rows of a method, or of one of its signals. With `x`, only rows near this abscissa: all within a relative
    /// distance of 10⁻⁹, and possibly some slightly beyond.
    pub fn rows(
        &self,
        group: &str,
        method: &str,
        signal: Option<&str>,
        x: Option<f64>,
    ) -> impl Iterator<Item = &Row> {
        let key = (group.to_owned(), method.to_owned(), signal.map(str::to_owned));
        let near: Vec<usize> = match (self.index.get(&key), x) {
            (None, _) => Vec::new(),
            (Some(places), None) => places.in_order.clone(),
            (Some(places), Some(x)) => {
                let slack = 2e-9 * x.abs().max(1e-12);
                let from =
                    places.by_x.partition_point(|(other, _)| other.total_cmp(&(x - slack)).is_lt());
                let behind = places.by_x.get(from..).unwrap_or_default().iter();
                behind
                    .take_while(|(other, _)| *other <= x + slack)
                    .map(|(_, place)| *place)
                    .collect()
            }
        };
        near.into_iter().filter_map(|place| self.table.rows.get(place))
    }
}

/// The rows that are shown and judged. If a method ran on several devices, its times are those of the CPU, or else of the first device by
/// name, because a mean over devices means nothing.
pub fn shown_rows(rows: &[Row]) -> Vec<Row> {
    let mut timed: BTreeMap<(&str, &str, &str), (bool, &str)> = BTreeMap::new();
    for row in rows.iter().filter(|row| is_of_machine(&row.metric)) {
        let own = (row.device != "cpu", row.device.as_str());
        let entry = timed.entry((&row.group, &row.method, &row.metric)).or_insert(own);
        *entry = (*entry).min(own);
    }
    let is_shown = |row: &&Row| {
        let key = (row.group.as_str(), row.method.as_str(), row.metric.as_str());
        timed.get(&key).is_none_or(|(_, device)| *device == row.device)
    };
    rows.iter().filter(is_shown).cloned().collect()
}

/// The name of a device of a record, without its driver in parentheses.
pub fn device_name(device: &str) -> &str {
    device.split(" (").next().unwrap_or(device)
}

/// Conditions under which numbers were measured.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Conditions {
    pub profiles: BTreeSet<Profile>,
    /// Labels of data; `-` for none.
    pub data: BTreeSet<String>,
    pub devices: BTreeSet<String>,
    pub groups: BTreeSet<String>,
    /// Reductions of the published protocol, with the groups that they apply to.
    pub reduced: BTreeMap<String, BTreeSet<String>>,
    /// Purposes of the groups that the paper does not have, with these groups.
    pub ours: BTreeMap<String, BTreeSet<String>>,
    /// Whether any row belongs to a group of the paper.
    pub has_published: bool,
    /// The data used, the set that they replace, and the set that a model was fitted on if that is another, with the groups that use them.
    pub other_data: BTreeMap<(String, String, Option<String>), BTreeSet<String>>,
    /// Devices other than the CPU, with the groups that ran on them.
    pub other_devices: BTreeMap<String, BTreeSet<String>>,
}

impl Conditions {
    /// Conditions of the rows that `of` selects.
    pub fn of(experiment: &Experiment, run: &Run, of: impl Fn(&Row) -> bool) -> Conditions {
        let mut all = Conditions::default();
        for row in run.table.rows.iter().filter(|r| of(r)) {
            all.profiles.insert(row.profile);
            all.data.insert(row.data.clone());
            all.devices.insert(row.device.clone());
            all.groups.insert(row.group.clone());
            let Some(group) = experiment.group(&row.group) else { continue };
            let add = |groups: &mut BTreeMap<String, BTreeSet<String>>, key: &str| {
                groups.entry(key.to_owned()).or_default().insert(row.group.clone());
            };
            if row.device != "cpu" {
                add(&mut all.other_devices, &row.device);
            }
            match &group.ours {
                Some(what) => add(&mut all.ours, what),
                None => all.has_published = true,
            }
            let is_papers = || is_counted(&row.metric) && group.has_papers_model(row);
            if let Some(reduced) = group.reduced(row.profile).filter(|_| !is_papers()) {
                add(&mut all.reduced, reduced);
            }
            // Groups marked `ours` replace no data of the paper.
            let is_others = group.ours.is_none() && !group.is_papers_data(&row.data);
            let data = group.data.as_ref();
            if let Some(data) = data.filter(|d| *d.measured() != row.data || is_others) {
                let fitted_on = data.held_out.is_some().then(|| data.set.clone());
                let key = (row.data.clone(), data.measured().clone(), fitted_on);
                all.other_data.entry(key).or_default().insert(row.group.clone());
            }
        }
        for group in &experiment.groups {
            for part in group.parts(run.table.rows.iter().filter(|r| of(r))) {
                all.reduced.entry(part).or_default().insert(group.id.clone());
            }
        }
        all
    }

    /// Labels for the top of a section, as Markdown.
    pub fn labels(&self) -> Vec<String> {
        let groups =
            |g: &BTreeSet<String>| g.iter().map(|g| code(g)).collect::<Vec<_>>().join(", ");
        let mut labels = Vec::new();
        for (what, of) in &self.reduced {
            labels.push(format!("**Reduced run:** {} ({})", plain(what), groups(of)));
        }
        if !self.ours.is_empty() {
            // One line, since tables of `trading` have half a dozen ablations.
            let each =
                self.ours.iter().map(|(what, of)| format!("{} ({})", plain(what), groups(of)));
            let all = each.collect::<Vec<_>>().join("; ");
            labels.push(format!("**Not in the paper:** {all}"));
        }
        for ((data, set, fitted_on), of) in &self.other_data {
            // Sets named `embedded-…` (data/manifest.yaml) are generated and replace nothing. `substitute:SET` names
            // the substitute itself.
            let why = if let Some(training) = fitted_on {
                // The label does not tell which of the two sets was replaced.
                let why = if data == set { "which the paper did not use," } else { "instead of" };
                format!("{why} fitting on {} and measuring on {}", code(training), code(set))
            } else if data == set {
                "which the paper did not use".to_owned()
            } else if set.starts_with("embedded-") {
                "generated".to_owned()
            } else if data.strip_prefix("substitute:") == Some(set.as_str()) {
                "instead of the paper's".to_owned()
            } else if data.strip_prefix("unverified:") == Some(set.as_str()) {
                "which has no published checksum".to_owned()
            } else {
                format!("in place of {}", code(set))
            };
            labels.push(format!("**Data: {}**, {why} ({})", plain(data), groups(of)));
        }
        for (device, of) in &self.other_devices {
            labels.push(format!("**Device:** {} ({})", plain(device), groups(of)));
        }
        labels
    }

    /// The data in one line.
    pub fn data_line(&self) -> String {
        joined(self.data.iter().filter(|data| *data != "-"), ", ")
    }

    /// The conditions in a few words, for captions; empty for the published protocol on the paper's data. A page has long
    /// reductions once, in its list.
    pub fn remark(&self) -> String {
        const SHORT: usize = 80;
        let is_long = self.reduced.keys().any(|what| what.len() > SHORT);
        let reduced = self.reductions().map(|what| match is_long {
            true => "Reduced run, see “Scale and data that differ from the paper”".to_owned(),
            false => format!("Reduced run: {what}"),
        });
        let purposes = self.purposes().map(|what| format!("Not in the paper: {what}"));
        let mut parts: Vec<String> = reduced.into_iter().chain(purposes).collect();
        if !self.other_data.is_empty() {
            let data: BTreeSet<&str> = self.other_data.keys().map(|key| key.0.as_str()).collect();
            parts.push(format!("Data: {}", joined(data, "; ")));
        }
        parts.join(" · ")
    }

    /// The reductions; those of some of the groups name them.
    fn reductions(&self) -> Option<String> {
        let is_of_all = |of: &BTreeSet<String>| self.reduced.len() == 1 && *of == self.groups;
        let named = |(what, of): (&String, &BTreeSet<String>)| match is_of_all(of) {
            true => what.clone(),
            false => format!("{what} ({})", joined(of, ", ")),
        };
        (!self.reduced.is_empty()).then(|| joined(self.reduced.iter().map(named), "; "))
    }

    /// The purposes of the groups marked `ours`, if no row belongs to a group of the paper.
    fn purposes(&self) -> Option<String> {
        (!self.has_published && !self.ours.is_empty()).then(|| joined(self.ours.keys(), "; "))
    }

    /// Profile, data and device in one line, for pictures.
    pub fn line(&self) -> String {
        let known = |set: &BTreeSet<String>| {
            joined(set.iter().filter(|s| *s != "-" && !s.is_empty()), ", ")
        };
        let profiles: BTreeSet<&str> = self.profiles.iter().map(|p| p.name()).collect();
        let named = [
            ("profile", joined(profiles, ", ")),
            ("data:", known(&self.data)),
            ("device:", known(&self.devices)),
        ];
        let named = named.into_iter().filter(|(_, value)| !value.is_empty());
        let mut parts: Vec<String> = named.map(|(name, value)| format!("{name} {value}")).collect();
        parts.extend(self.reductions().map(|what| format!("reduced run: {what}")));
        parts.extend(self.purposes().map(|what| format!("not in the paper: {what}")));
        parts.join(" · ")
    }
}

fn joined(words: impl IntoIterator<Item = impl AsRef<str>>, between: &str) -> String {
    let words: Vec<_> = words.into_iter().collect();
    words.iter().map(AsRef::as_ref).collect::<Vec<&str>>().join(between)
}
