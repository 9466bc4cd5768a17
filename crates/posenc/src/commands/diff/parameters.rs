//! Parameters that differ between two records, each listed once with the items or methods that it affects.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use posenc_experiments::record::{Provenance, Row};

/// Parameters that differ, in the order in which they were found, with `paper/item` or `paper/item/group/method`.
#[derive(Default)]
pub struct Differences {
    found: Vec<(String, Vec<String>)>,
    /// Index into `found`, by text.
    known: HashMap<String, usize>,
}

impl Differences {
    /// Adds the parameters of an item that is in both records.
    pub fn add(&mut self, item: &str, rows: [&[Row]; 2], provenance: [&Provenance; 2]) {
        let [before, after] = rows.map(conditions);
        for (method, before) in &before {
            let Some(after) = after.get(method) else { continue };
            for (name, own) in before {
                let other = after.get(name);
                if other.is_some_and(|other| other != own) {
                    let list = |all: Option<&BTreeSet<String>>| {
                        all.map(|all| all.iter().cloned().collect::<Vec<_>>().join(", "))
                    };
                    let other = list(other).unwrap_or_default();
                    let own = list(Some(own)).unwrap_or_default();
                    self.note(format!("{name} {own} → {other}"), format!("{item}/{method}"));
                }
            }
        }
        let [before, after] = provenance;
        if before.seed != after.seed {
            self.note(format!("seed of the run {} → {}", before.seed, after.seed), item.to_owned());
        }
        for (label, own) in &before.data {
            let other = after.data.get(label).filter(|other| *other != own);
            if let Some(other) = other {
                let short = |sum: &str| sum.chars().take(12).collect::<String>();
                let text = format!("sha256 of {label} {}… → {}…", short(own), short(other));
                self.note(text, item.to_owned());
            }
        }
        for (name, own) in &before.versions {
            match after.versions.get(name) {
                Some(other) if other != own => {
                    self.note(format!("{name} {own} → {other}"), item.to_owned());
                }
                _ => {}
            }
        }
        for (method, own) in &before.origins {
            let Some(other) = after.origins.get(method) else { continue };
            for text in own.differences(other) {
                // The rows above already cover these.
                let is_said = text.starts_with("seed of the run") || text.starts_with("data ");
                if !is_said && !text.starts_with("repetitions") {
                    self.note(text, format!("{item}/{method}"));
                }
            }
        }
    }

    fn note(&mut self, text: String, place: String) {
        let next = self.found.len();
        match self.found.get_mut(*self.known.entry(text.clone()).or_insert(next)) {
            Some((_, places)) => places.push(place),
            None => self.found.push((text, vec![place])),
        }
    }

    /// One line per parameter before wrapping: the parameter, and where it differs.
    pub fn lines(&self) -> Vec<String> {
        const MOST: usize = 4;
        let line = |(text, places): &(String, Vec<String>)| {
            let mut of = places.iter().take(MOST).cloned().collect::<Vec<_>>().join(", ");
            if places.len() > MOST {
                of += &format!(", and {} more", places.len() - MOST);
            }
            format!("{text}: {of}")
        };
        self.found.iter().map(line).collect()
    }
}

/// Values of a parameter by its name.
type Conditions = BTreeMap<&'static str, BTreeSet<String>>;

/// Parameters of the rows (profile, data, device, number of seeds), by `group/method`.
fn conditions(rows: &[Row]) -> BTreeMap<String, Conditions> {
    let mut all: BTreeMap<String, (Conditions, BTreeSet<u64>)> = BTreeMap::new();
    for row in rows {
        let (own, seeds) = all.entry(format!("{}/{}", row.group, row.method)).or_default();
        seeds.insert(row.seed);
        for (name, value) in
            [("profile", row.profile.name()), ("data", &row.data), ("device", &row.device)]
        {
            own.entry(name).or_default().insert(value.to_owned());
        }
    }
    let counted = |(method, (mut own, seeds)): (String, (Conditions, BTreeSet<u64>))| {
        own.insert("seeds", BTreeSet::from([seeds.len().to_string()]));
        (method, own)
    };
    all.into_iter().map(counted).collect()
}
