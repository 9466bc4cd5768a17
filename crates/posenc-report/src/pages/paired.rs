//! Comparisons of an item: differences in quality and ratios of time between groups, paired over signals.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use posenc_experiments::Profile;
use posenc_experiments::record::Row;
use posenc_experiments::schema::Group;
use posenc_experiments::schema::display::{Compared, Comparison};
use posenc_experiments::verdict::{Interval, mean_interval};

use super::Files;
use crate::colors;
use crate::markdown::{Align, Grid, bare, cell, inline, plain};
use crate::numbers::{MISSING, fixed, rounded, signed, significant};
use crate::plot::canvas::Marker;
use crate::plot::{AxisSpec, Figure, Labels, Panel, PanelData, Sample, Series};
use crate::records::{Conditions, Run, device_name};
use crate::view::{View, Views};

/// How far the metric of a network that has learned exceeds the floor at least.
const LEARNED: f64 = 0.1;

/// Sum and number of the values of each signal.
type Sums = BTreeMap<String, (f64, usize)>;

/// Renders the comparisons of an item; adds figures to `files`.
pub fn render(views: &Views<'_>, view: &View<'_>, files: &mut Files) -> Result<String> {
    let mut text = String::new();
    for comparison in &view.experiment.comparisons {
        text.push_str(&format!("**{}**\n\n", inline(&comparison.title)));
        let source = views.get(&view.experiment.paper, &comparison.item);
        let runs = source.iter().flat_map(|source| source.runs().map(move |run| (*source, run)));
        let mut is_compared = false;
        for (source, run) in runs {
            let pairs = Pairs::of(comparison, source, run);
            if pairs.methods.iter().all(|method| method.others.iter().all(|o| o.quality.is_empty()))
            {
                let untrained = pairs.of_untrained();
                is_compared |= !untrained.is_empty();
                text.push_str(&untrained);
                continue;
            }
            is_compared = true;
            let who = source.who(run.side).map(|who| format!("*{who}.* ")).unwrap_or_default();
            text.push_str(&format!("{who}{}", pairs.answer()));
            text.push_str(&pairs.table());
            text.push_str(&pairs.figure(view, run, files)?);
        }
        if !is_compared {
            let other =
                joined(comparison.others.iter().map(|o| o.label.clone()).collect(), "or the");
            text.push_str(&format!(
                "*Not compared yet: no signal was run at the full protocol both with the {} and with the {}.*\n\n",
                inline(&comparison.baseline.label),
                inline(&other)
            ));
        }
    }
    Ok(text)
}

/// The values of all methods.
struct Pairs<'a> {
    comparison: &'a Comparison,
    source: &'a View<'a>,
    /// Rows at the full protocol, by group, method and metric.
    values: BTreeMap<(&'a str, &'a str, &'a str), Values>,
    /// Devices whose times are shown, by group and method.
    devices: BTreeMap<(&'a str, &'a str), BTreeSet<&'a str>>,
    methods: Vec<Method<'a>>,
    /// Signals with values of the baseline and of at least one other group.
    signals: BTreeSet<String>,
    /// Methods whose baseline does not exceed the floor, with the number of such signals.
    untrained: Vec<(&'a str, usize)>,
}

/// Means over seeds by signal.
type Values = BTreeMap<String, f64>;

/// A method in all groups.
struct Method<'a> {
    name: &'a str,
    others: Vec<Paired>,
}

/// A method in one group and in the baseline.
struct Paired {
    /// Differences from the baseline, by signal.
    quality: Vec<f64>,
    /// Differences from the mean over the last epochs of the baseline, by signal.
    late_quality: Vec<f64>,
    /// Logarithms of the baseline's time divided by the group's time, by signal.
    speedup: Vec<f64>,
    printed_quality: Option<f64>,
    printed_speedup: Option<f64>,
}

impl<'a> Pairs<'a> {
    fn of(comparison: &'a Comparison, source: &'a View<'a>, run: &'a Run) -> Pairs<'a> {
        let mut sums: BTreeMap<(&str, &str, &str), Sums> = BTreeMap::new();
        let mut devices: BTreeMap<_, BTreeSet<&str>> = BTreeMap::new();
        let groups: Vec<(&Compared, Option<&Group>)> =
            comparison.groups().map(|g| (g, source.experiment.group(&g.group))).collect();
        for row in &run.table.rows {
            let Comparison { metric, late_metric, time, .. } = comparison;
            let is_metric =
                [Some(metric), late_metric.as_ref(), Some(time)].contains(&Some(&row.metric));
            let group = groups.iter().find(|(compared, _)| compared.group == row.group);
            let Some((_, Some(group))) = group.filter(|_| is_metric && row.x.is_none()) else {
                continue;
            };
            if !is_full(group, row) {
                continue;
            }
            if row.metric == comparison.time {
                let key = (row.group.as_str(), row.method.as_str());
                devices.entry(key).or_default().insert(row.device.as_str());
            }
            let key = (row.group.as_str(), row.method.as_str(), row.metric.as_str());
            let sum = sums.entry(key).or_default().entry(row.signal.clone()).or_default();
            *sum = (sum.0 + row.value, sum.1 + 1);
        }
        let mean = |(signal, (sum, n)): (String, (f64, usize))| (signal, sum / n as f64);
        let values: BTreeMap<_, Values> =
            sums.into_iter().map(|(key, by)| (key, by.into_iter().map(mean).collect())).collect();
        let mut all = Pairs {
            comparison,
            source,
            values,
            devices,
            methods: Vec::new(),
            signals: BTreeSet::new(),
            untrained: Vec::new(),
        };
        all.leave_out_untrained(run);
        let baseline = groups.first().and_then(|(_, group)| *group);
        for variant in baseline.iter().flat_map(|group| &group.variants) {
            let others = comparison.others.iter().map(|o| all.paired(o, &variant.id)).collect();
            all.methods.push(Method { name: &variant.id, others });
            let of =
                |group: &Compared| all.values_of(&group.group, &variant.id, &comparison.metric);
            let own = of(&comparison.baseline).map(|values| values.keys().cloned());
            let found: Vec<String> = own.into_iter().flatten().collect();
            let has = |signal: &&String| {
                comparison.others.iter().any(|o| of(o).is_some_and(|v| v.contains_key(*signal)))
            };
            let shared: Vec<String> = found.iter().filter(has).cloned().collect();
            all.signals.extend(shared);
        }
        all
    }

    /// Removes the baseline's values on signals on which it does not exceed the floor.
    fn leave_out_untrained(&mut self, run: &Run) {
        let Comparison { baseline, metric, floor: Some(floor), .. } = self.comparison else {
            return;
        };
        let Some(group) = self.source.experiment.group(&floor.group) else { return };
        let rows = run.table.rows.iter().filter(|row| {
            let is_floor = row.group == floor.group && row.method == floor.method;
            is_floor && row.metric == floor.metric && is_full(group, row)
        });
        let floors: BTreeMap<&str, f64> = rows.map(|row| (&*row.signal, row.value)).collect();
        let mut untrained: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        for ((group, method, of), values) in &self.values {
            let is_low = |(signal, value): &(&String, &f64)| {
                floors.get(signal.as_str()).is_some_and(|floor| **value <= floor + LEARNED)
            };
            if *group == baseline.group && of == metric {
                let low = values.iter().filter(is_low).map(|(signal, _)| signal.clone());
                untrained.insert(method, low.collect());
            }
        }
        for ((group, method, _), values) in &mut self.values {
            if let Some(low) = untrained.get(method).filter(|_| *group == baseline.group) {
                values.retain(|signal, _| !low.contains(signal));
            }
        }
        let counts = untrained.into_iter().map(|(method, low)| (method, low.len()));
        self.untrained = counts.filter(|(_, count)| *count > 0).collect();
    }

    fn values_of(&self, group: &str, method: &str, metric: &str) -> Option<&Values> {
        let found =
            self.values.iter().find(|((g, m, k), _)| (*g, *m, *k) == (group, method, metric));
        found.map(|(_, values)| values)
    }

    fn paired(&self, other: &Compared, method: &str) -> Paired {
        let Comparison { baseline, metric, late_metric, time, .. } = self.comparison;
        let pairs = |own: &str, metric: &str| -> Vec<(f64, f64)> {
            let (Some(a), Some(b)) = (
                self.values_of(&baseline.group, method, own),
                self.values_of(&other.group, method, metric),
            ) else {
                return Vec::new();
            };
            let both = a.iter().filter_map(|(signal, a)| Some((*a, *b.get(signal)?)));
            both.filter(|(a, b)| a.is_finite() && b.is_finite()).collect()
        };
        let printed = |metric: &str| {
            Some((
                self.printed(&baseline.group, method, metric)?,
                self.printed(&other.group, method, metric)?,
            ))
        };
        let device = |group: &str| {
            self.devices.iter().find(|((g, m), _)| (*g, *m) == (group, method)).map(|(_, d)| d)
        };
        // Times of different devices are not comparable.
        let times = match device(&baseline.group) == device(&other.group) {
            true => pairs(time, time),
            false => Vec::new(),
        };
        let times = times.into_iter().filter(|(a, b)| *a > 0.0 && *b > 0.0);
        let differences = |own| pairs(own, metric).into_iter().map(|(a, b)| b - a).collect();
        Paired {
            quality: differences(metric),
            late_quality: late_metric.as_deref().map(differences).unwrap_or_default(),
            speedup: times.map(|(a, b)| (a / b).ln()).collect(),
            printed_quality: printed(metric).map(|(a, b)| b - a),
            printed_speedup: printed(time).filter(|(_, b)| *b > 0.0).map(|(a, b)| a / b),
        }
    }

    fn printed(&self, group: &str, method: &str, metric: &str) -> Option<f64> {
        let experiment = self.source.experiment;
        let mut values = self.source.published.item(&experiment.paper, &experiment.item);
        let value =
            values.find(|v| v.group == group && v.method == method && v.metric == metric)?;
        value.value
    }

    /// A list with the difference and the ratio of times of each group. All numbers, and the words for their signs,
    /// come from the record.
    fn answer(&self) -> String {
        let group = self.source.experiment.group(&self.comparison.baseline.group);
        let all = group.and_then(Group::signals);
        let noun = all.map_or("signals".into(), |all| plain(&all.noun));
        let n = self.signals.len();
        let counts = self.methods.iter().flat_map(|m| &m.others).map(|other| other.quality.len());
        let fewest = counts.filter(|count| *count > 0).min();
        let up_to = if fewest.is_some_and(|fewest| fewest < n) { "up to " } else { "" };
        let of = match all {
            Some(all) if all.count != n => format!("{up_to}{n} of {} {noun}", all.count),
            _ => format!("{}{n} {noun}", if up_to.is_empty() { "all " } else { up_to }),
        };
        let Comparison { baseline, unit, metric, .. } = self.comparison;
        let intervals = match n {
            1 => "one signal, so no confidence interval",
            _ => "paired, ± half of the 95 % confidence interval",
        };
        let mut others = self.methods.iter().flat_map(|m| &m.others);
        let times = match others.any(|other| !other.speedup.is_empty()) {
            true => ", and ratio of times on one device",
            false => "",
        };
        let mut text = format!(
            "Difference in {} from the {}, in {} on {of} ({intervals}){times}:\n\n",
            plain(&named(metric)),
            inline(&baseline.label),
            plain(unit)
        );
        text.push_str(&self.list(|other| &other.quality, true));
        let late = self.list(|other| &other.late_quality, false);
        if !late.is_empty() {
            text.push_str(&format!(
                "\nDifference from the mean over the last epochs of the {}, since the last one can be an outlier:\n\n{late}",
                inline(&baseline.label)
            ));
        }
        text.push('\n');
        text.push_str(&self.of_untrained());
        text
    }

    /// Says with which methods the baseline did not learn.
    fn of_untrained(&self) -> String {
        let Comparison { baseline, floor, unit, .. } = self.comparison;
        let (Some(floor), false) = (floor, self.untrained.is_empty()) else {
            return String::new();
        };
        let of = |(method, count): &(&str, usize)| {
            let plural = if *count == 1 { "" } else { "s" };
            format!("{} on {count} signal{plural}", plain(method))
        };
        format!(
            "The {} does not learn with {}: there, it is at most {LEARNED} {} above {} (`{}`). These pairs are left out.\n\n",
            inline(&baseline.label),
            joined(self.untrained.iter().map(of).collect(), "and"),
            plain(unit),
            plain(&floor.method),
            floor.group
        )
    }

    /// Clauses that list the methods with which the group at `index` is better than the baseline, worse, or neither, by the
    /// differences `of` each method.
    fn differences(&self, index: usize, of: fn(&Paired) -> &[f64]) -> Vec<String> {
        let mut by_sign: [Vec<String>; 5] = Default::default();
        for method in &self.methods {
            let Some(difference) = interval(of(&method.others[index])) else { continue };
            let is_worse = usize::from(difference.mean < 0.0);
            let place = match difference.half_width {
                Some(half) if difference.mean.abs() <= half => 2,
                Some(_) => is_worse,
                // One signal shows a sign, but not that other signals have the same sign.
                None => 3 + is_worse,
            };
            let text = format!("{} ({})", plain(method.name), with_interval(&difference, 1));
            by_sign[place].push(text);
        }
        let words = [
            "is better with",
            "is worse with",
            "does not differ significantly with",
            "is better on the only signal with",
            "is worse on the only signal with",
        ];
        let clauses = words.into_iter().zip(by_sign).filter(|(_, list)| !list.is_empty());
        clauses.map(|(words, list)| format!("{words} {}", joined(list, "and"))).collect()
    }

    /// One line per group: the methods with which it is better or worse, and how many times as fast it is.
    fn list(&self, differences: fn(&Paired) -> &[f64], is_timed: bool) -> String {
        let mut text = String::new();
        for (index, other) in self.comparison.others.iter().enumerate() {
            let times = self.times(index).filter(|_| is_timed);
            let parts: Vec<String> =
                self.differences(index, differences).into_iter().chain(times).collect();
            if !parts.is_empty() {
                let label = inline(&other.label);
                text.push_str(&format!("- **The {label}** {}.\n", joined(parts, "and")));
            }
        }
        text
    }

    /// How many times as fast as the baseline the group at `index` is, over all methods.
    fn times(&self, index: usize) -> Option<String> {
        let ratios = self.methods.iter().filter_map(|m| interval(&m.others[index].speedup));
        let ratios: Vec<f64> = ratios.map(|ratio| ratio.mean.exp()).collect();
        let low = ratios.iter().copied().reduce(f64::min)?;
        let high = ratios.iter().copied().reduce(f64::max)?;
        let range = match [low, high].map(|ratio| significant(rounded(ratio, 2), 2)) {
            [low, high] if low == high => low,
            [low, high] => format!("{low} to {high}"),
        };
        Some(format!("is {range} times as fast"))
    }

    fn table(&self) -> String {
        let unit = plain(&self.comparison.unit);
        let mut grid = Grid::default();
        grid.column("Method", Align::Left).column("n", Align::Right);
        for other in &self.comparison.others {
            let short = cell(&other.short);
            grid.column(format!("{short}: difference ({unit})"), Align::Right)
                .column("paper", Align::Right)
                .column(format!("{short}: times as fast"), Align::Right)
                .column("paper", Align::Right);
        }
        for method in &self.methods {
            let n = method.others.iter().map(|o| o.quality.len()).max().unwrap_or(0);
            let mut row = vec![cell(method.name), n.to_string()];
            for other in &method.others {
                let shown = |value: Option<String>| value.unwrap_or_else(|| MISSING.into());
                row.push(shown(interval(&other.quality).map(|d| with_interval(&d, 2))));
                row.push(shown(other.printed_quality.map(|d| signed(d, 2))));
                row.push(shown(interval(&other.speedup).map(|r| factor(&r))));
                row.push(shown(other.printed_speedup.map(|r| significant(rounded(r, 3), 3))));
            }
            grid.row(row);
        }
        let base = cell(&self.comparison.baseline.label);
        let timed = self.methods.iter().flat_map(|m| &m.others).filter(|o| !o.speedup.is_empty());
        let counts: Vec<usize> = timed.clone().map(|other| other.speedup.len()).collect();
        let all_have_times = timed.clone().all(|other| other.speedup.len() == other.quality.len());
        let ratio = "; geometric mean of the ratio of times";
        let times = match (counts.iter().min(), counts.iter().max()) {
            (None, _) => "; no signal has times of both on one device".to_owned(),
            _ if all_have_times => ratio.to_owned(),
            (Some(low), Some(high)) if low < high => {
                format!("{ratio} of the {low} to {high} signals that ran on the same device")
            }
            (Some(1), _) => format!("{ratio} of the signal that ran on the same device"),
            (Some(n), _) => format!("{ratio} of the {n} signals that ran on the same device"),
        };
        format!(
            "{}<sub>Mean over n signals of the paired difference from the {base}, with its 95 % confidence interval{times}.</sub>\n\n",
            grid.render()
        )
    }

    fn figure(&self, view: &View<'_>, run: &Run, files: &mut Files) -> Result<String> {
        let Comparison { id, metric, time, unit, item, .. } = self.comparison;
        let markers =
            [Marker::Disc, Marker::Triangle, Marker::Frame, Marker::Diamond, Marker::Plus];
        let devices: BTreeSet<&str> = self.devices.values().flatten().copied().collect();
        let mut series = Vec::new();
        for (group, marker) in self.comparison.groups().zip(markers.into_iter().cycle()) {
            for method in &self.methods {
                let (Some(x), Some(y)) = (
                    self.values_of(&group.group, method.name, time),
                    self.values_of(&group.group, method.name, metric),
                ) else {
                    continue;
                };
                let sample = |(signal, y): (&String, &f64)| {
                    Some(Sample { x: *x.get(signal)?, y: *y, half_width: None })
                };
                let points: Vec<Sample> = y.iter().filter_map(sample).collect();
                let own = self.source.experiment.group(&group.group);
                let mut name = format!("{}, {}", bare(method.name), bare(&group.short));
                // Times of different devices are not comparable.
                let place = (group.group.as_str(), method.name);
                let used = self.devices.get(&place).filter(|_| devices.len() > 1);
                for device in used.into_iter().flatten().filter(|device| **device != "cpu") {
                    name.push_str(&format!(" ({})", bare(device_name(device))));
                }
                if points.is_empty() {
                    continue;
                }
                series.push(Series {
                    name,
                    color: colors::shade(colors::family_in(own, method.name), 0, 1),
                    marker,
                    scattered: true,
                    points,
                    ..Series::default()
                });
            }
        }
        let title = bare(&self.comparison.title);
        let is_drawn = |row: &Row| {
            self.comparison.groups().any(|g| g.group == row.group)
                && (row.metric == *metric || row.metric == *time)
        };
        let conditions = Conditions::of(self.source.experiment, run, is_drawn);
        let axis = |label: String, log| AxisSpec { label, log, ..AxisSpec::default() };
        let panel = Panel {
            title: title.clone(),
            x: axis("time per signal (s)".into(), true),
            y: axis(format!("{} ({unit})", named(metric)), false),
            data: PanelData::Series(series),
        };
        let heading = format!("{} · {}", run.side.name(), conditions.line());
        let alt = format!("{}: one point per method and signal, against time", title);
        let figure = Figure { alt, heading, labels: Labels::Legend, panels: vec![panel] };
        let experiment = view.experiment;
        let end = run.side.ending();
        let path = format!("figures/{}/{}-{id}{end}.svg", experiment.paper, experiment.item);
        let svg = figure
            .svg()
            .with_context(|| format!("comparison `{id}` of {} with {item}", experiment.id()))?;
        files.insert(PathBuf::from(&path), svg.into_bytes());
        Ok(format!("![{}]({path})\n\n", plain(&figure.alt)))
    }
}

/// Whether a row was measured with the settings of the full protocol, on any number of signals.
pub(super) fn is_full(group: &Group, row: &Row) -> bool {
    let Some(variant) = group.variants.iter().position(|v| v.id == row.method) else {
        return false;
    };
    let protocol = |profile| group.resolved(profile, variant).map(|r| &r.protocol);
    protocol(row.profile).is_some() && protocol(row.profile) == protocol(Profile::Paper)
}

/// Mean with its 95 % interval; `None` without values.
fn interval(values: &[f64]) -> Option<Interval> {
    (!values.is_empty()).then(|| mean_interval(values))
}

fn with_interval(interval: &Interval, digits: usize) -> String {
    let mean = signed(interval.mean, digits);
    match interval.half_width {
        Some(half) => format!("{mean} ± {}", fixed(half, digits)),
        None => mean,
    }
}

/// A ratio from the mean of its logarithm.
fn factor(logarithm: &Interval) -> String {
    let shown = |logarithm: f64| significant(rounded(logarithm.exp(), 3), 3);
    let ratio = shown(logarithm.mean);
    match logarithm.half_width {
        Some(half) => {
            let [low, high] = [-half, half].map(|h| shown(logarithm.mean + h));
            format!("{ratio} ({low} to {high})")
        }
        None => ratio,
    }
}

/// The name of a metric in text: `test_psnr` is test PSNR.
pub(super) fn named(metric: &str) -> String {
    metric.replace('_', " ").replace("psnr", "PSNR")
}

/// `a`, `a and b`, `a, b and c`.
fn joined(mut parts: Vec<String>, word: &str) -> String {
    match (parts.pop(), parts.is_empty()) {
        (None, _) => String::new(),
        (Some(last), true) => last,
        (Some(last), false) => format!("{} {word} {last}", parts.join(", ")),
    }
}
