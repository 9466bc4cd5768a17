//! Differences in quality and ratios of time from a baseline, paired over signals.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use posenc_experiments::Published;
use posenc_experiments::schema::display::{Compared, Comparison};
use posenc_experiments::schema::{Experiment, Group};
use posenc_experiments::verdict::{Interval, mean_interval};
use posenc_math::embedder::find;

use super::{Files, Source, TIME, Values, named};
use crate::colors;
use crate::links;
use crate::markdown::{Align, Grid, bare, cell, inline, plain};
use crate::numbers::{MISSING, counted, rounded, signed, significant};
use crate::plot::canvas::Marker;
use crate::plot::{AxisSpec, Figure, Labels, Panel, PanelData, Sample, Series};
use crate::records::device_name;

/// How far the metric of a baseline that has learned exceeds the floor at least.
const LEARNED: f64 = 0.1;

struct Method<'a> {
    name: &'a str,
    quality: Values<'a>,
    late: Values<'a>,
    time: Values<'a>,
    /// The device of the times. Those of different devices are not comparable.
    device: Option<&'a str>,
    /// Number of signals that are left out, because the baseline does not exceed the floor.
    untrained: usize,
}

/// The methods of a group that the baseline has, too. Leaves out signals on which the baseline does not exceed the floor.
fn methods<'a>(of: &'a Comparison, source: Source<'a>, group: &Compared) -> Vec<Method<'a>> {
    let Some(baseline) = of.groups.first() else { return Vec::new() };
    let variants = source.experiment.group(&baseline.group).map(|own| &own.variants);
    let floor = source.per_signal(of.floor.as_ref().filter(|_| group.group == baseline.group));
    let method = |name: &'a str| {
        let values = |metric: &str| source.values(&group.group, name, metric);
        let mut method = Method {
            name,
            quality: values(&of.metric),
            late: of.late_metric.as_deref().map(values).unwrap_or_default(),
            time: values(TIME),
            device: source.rows(&group.group, name, TIME).map(|row| &*row.device).next(),
            untrained: 0,
        };
        let exceeds = |(signal, value): (&&str, &f64)| {
            floor.get(signal).is_none_or(|floor| *value > floor + LEARNED)
        };
        let (learned, low): (Vec<_>, Vec<_>) = method.quality.iter().partition(|v| exceeds(*v));
        let learned: BTreeSet<&str> = learned.into_iter().map(|(signal, _)| *signal).collect();
        method.untrained = low.len();
        for values in [&mut method.quality, &mut method.late, &mut method.time] {
            values.retain(|signal, _| learned.contains(signal));
        }
        method
    };
    variants.into_iter().flatten().map(|variant| method(&variant.id)).collect()
}

/// Pairs of the values of two methods on the signals that both have.
pub fn pairs(a: &Values<'_>, b: &Values<'_>) -> Vec<(f64, f64)> {
    a.iter().filter_map(|(signal, a)| Some((*a, *b.get(signal)?))).collect()
}

/// The table of a comparison; `None` without pairs.
pub fn table(of: &Comparison, source: Source<'_>, published: &Published) -> Option<String> {
    let (baseline, others) = of.groups.split_first()?;
    let base = methods(of, source, baseline);
    let printed = |group: &Compared, method: &str, metric: &str| {
        let mut all = published.item(&source.experiment.paper, &source.experiment.item);
        let is_own = |g: &str, m: &str, k: &str| g == group.group && m == method && k == metric;
        all.find(|v| is_own(&v.group, &v.method, &v.metric))?.value
    };
    let unit = cell(&of.unit);
    let mut grid = Grid::default();
    grid.column("", Align::Left).column("Method", Align::Left).column("n", Align::Right);
    grid.column(format!("difference ({unit})"), Align::Right).column("paper", Align::Right);
    if of.late_metric.is_some() {
        grid.column(format!("from the mean of the last epochs ({unit})"), Align::Right);
    }
    grid.column("times as fast", Align::Right).column("paper", Align::Right);
    let mut is_compared = false;
    for other in others {
        for (i, (a, b)) in base.iter().zip(methods(of, source, other)).enumerate() {
            let quality = differences(&a.quality, &b.quality);
            is_compared |= !quality.is_empty();
            let is_random = is_sampled(source, &other.group, a.name);
            let both = |metric| {
                Some((printed(baseline, a.name, metric)?, printed(other, a.name, metric)?))
            };
            let mut row = vec![
                if i == 0 { cell(other.short()) } else { String::new() },
                cell(a.name),
                quality.len().to_string(),
                with_interval(&quality, is_random),
                both(&of.metric).map_or(MISSING.into(), |(a, b)| signed(b - a, 2)),
            ];
            if of.late_metric.is_some() {
                row.push(with_interval(&differences(&a.late, &b.quality), is_random));
            }
            let times = if a.device == b.device { pairs(&a.time, &b.time) } else { Vec::new() };
            let times = times.into_iter().filter(|(a, b)| *a > 0.0 && *b > 0.0);
            row.push(factor(&times.map(|(a, b)| (a / b).ln()).collect::<Vec<_>>(), quality.len()));
            let ratio = both(TIME).filter(|(_, b)| *b > 0.0).map(|(a, b)| a / b);
            row.push(ratio.map_or(MISSING.into(), |r| significant(rounded(r, 3), 3)));
            grid.row(row);
        }
    }
    let untrained: Vec<String> = (base.iter().filter(|method| method.untrained > 0))
        .map(|own| format!("{} on {}", plain(own.name), counted(own.untrained, "signal")))
        .collect();
    if !is_compared && untrained.is_empty() {
        return None;
    }
    let mut text = grid.render();
    let label = inline(&baseline.label);
    let signals = source.experiment.group(&baseline.group).and_then(Group::signals);
    let of_all = signals.map(|all| format!(" of {} {}", all.count, plain(&all.noun)));
    text.push_str(&format!(
        "<sub>Difference in {} from the {label}: mean over n{} of the paired differences, with its 95 % confidence interval; bold where 0 is \
         outside, except with random features, of which few samples decide nothing. Times as fast: geometric mean of the ratio of times on one device, with its 95 % confidence interval and, if fewer, the \
         number of signals.</sub>\n\n",
        plain(&named(&of.metric)),
        of_all.unwrap_or_else(|| " signals".into()),
    ));
    if let (Some(floor), false) = (&of.floor, untrained.is_empty()) {
        text.push_str(&format!(
            "The {label} does not learn with {}: there, it is at most {LEARNED} {} above {} (`{}`). These pairs are left out.\n\n",
            untrained.join(", "),
            plain(&of.unit),
            plain(&floor.method),
            floor.group
        ));
    }
    Some(text)
}

/// With which methods each group is better or worse than the baseline: a line for each group with pairs.
pub fn answer(of: &Comparison, source: Source<'_>) -> Vec<String> {
    let Some((baseline, others)) = of.groups.split_first() else { return Vec::new() };
    let base = methods(of, source, baseline);
    let of_group = |group: &Compared| {
        let mut lists =
            [("better", Vec::new()), ("worse", Vec::new()), ("not decided", Vec::new())];
        for (a, b) in base.iter().zip(methods(of, source, group)) {
            let differences = differences(&a.quality, &b.quality);
            if differences.is_empty() {
                continue;
            }
            let Interval { mean, half_width, .. } = mean_interval(&differences);
            // Few samples of random features decide nothing.
            let place = match half_width.filter(|_| !is_sampled(source, &group.group, a.name)) {
                Some(half) if mean > half => 0,
                Some(half) if mean < -half => 1,
                _ => 2,
            };
            lists[place].1.push(plain(a.name));
        }
        let lists = lists.into_iter().filter(|(_, methods)| !methods.is_empty());
        let lists: Vec<_> =
            lists.map(|(what, methods)| format!("{what} with {}", methods.join(", "))).collect();
        (!lists.is_empty()).then(|| format!("{}: {}.", inline(group.short()), lists.join("; ")))
    };
    others.iter().filter_map(of_group).collect()
}

/// Whether a method has random features.
fn is_sampled(source: Source<'_>, group: &str, method: &str) -> bool {
    let mut variants = source.experiment.group(group).into_iter().flat_map(|own| &own.variants);
    let spec = variants.find(|own| own.id == method).and_then(|own| own.embedder.as_ref());
    spec.and_then(|spec| find(&spec.kind)).is_some_and(|kind| kind.is_random)
}

/// Differences of the values of `b` from those of `a` on the signals that both have.
fn differences(a: &Values<'_>, b: &Values<'_>) -> Vec<f64> {
    pairs(a, b).into_iter().map(|(a, b)| b - a).collect()
}

/// One point per method and signal, quality against time.
pub fn figure(
    of: &Comparison,
    source: Source<'_>,
    own: &Experiment,
    files: &mut Files,
) -> Result<String> {
    let Comparison { id, metric, unit, item, .. } = of;
    let groups: Vec<Vec<Method<'_>>> = of.groups.iter().map(|g| methods(of, source, g)).collect();
    let devices = groups.iter().flatten().filter_map(|method| method.device);
    let has_several = devices.collect::<BTreeSet<_>>().len() > 1;
    let markers = [Marker::Disc, Marker::Triangle, Marker::Frame, Marker::Diamond, Marker::Plus];
    let mut series = Vec::new();
    for ((compared, methods), marker) in of.groups.iter().zip(&groups).zip(markers.iter().cycle()) {
        let group = source.experiment.group(&compared.group);
        for method in methods {
            let points: Vec<Sample> = pairs(&method.time, &method.quality)
                .into_iter()
                .map(|(x, y)| Sample { x, y, half_width: None })
                .collect();
            if points.is_empty() {
                continue;
            }
            let mut name = format!("{}, {}", bare(method.name), bare(compared.short()));
            if let Some(device) = method.device.filter(|device| has_several && *device != "cpu") {
                name.push_str(&format!(" ({})", bare(device_name(device))));
            }
            series.push(Series {
                name,
                color: colors::shade(colors::family_in(group, method.name), 0, 1),
                marker: *marker,
                scattered: true,
                points,
                ..Series::default()
            });
        }
    }
    let title = bare(&of.title);
    let conditions = source.conditions(of, |row| row.metric == *metric || row.metric == TIME);
    let axis = |label: String, log| AxisSpec { label, log, ..AxisSpec::default() };
    let panel = Panel {
        title: title.clone(),
        x: axis("time per signal (s)".into(), true),
        y: axis(format!("{} ({unit})", named(metric)), false),
        data: PanelData::Series(series),
    };
    let side = source.run.side;
    let heading = format!("{} · {}", side.name(), conditions.line());
    let alt = format!("{title}: one point per method and signal, against time");
    let figure = Figure { alt, heading, labels: Labels::Legend, panels: vec![panel] };
    let path = links::figure(own, id, side);
    let svg = figure.svg();
    let svg = svg.with_context(|| format!("comparison `{id}` of {} with {item}", own.id()))?;
    files.insert(PathBuf::from(&path), svg.into_bytes());
    Ok(format!("![{}]({path})\n\n", plain(&figure.alt)))
}

/// A mean with its 95 % interval, bold if 0 is outside, unless the features are random.
fn with_interval(values: &[f64], is_random: bool) -> String {
    if values.is_empty() {
        return MISSING.into();
    }
    let Interval { mean, half_width, .. } = mean_interval(values);
    let shown = |value| signed(value, 2);
    let Some(half) = half_width else { return shown(mean) };
    let text = format!("{} ({} to {})", shown(mean), shown(mean - half), shown(mean + half));
    if mean.abs() > half && !is_random { format!("**{text}**") } else { text }
}

/// A ratio with its 95 % interval from logarithms of ratios, and their number if it is not `n`.
fn factor(logarithms: &[f64], n: usize) -> String {
    if logarithms.is_empty() {
        return MISSING.into();
    }
    let shown = |logarithm: f64| significant(rounded(logarithm.exp(), 3), 3);
    let Interval { mean, half_width, .. } = mean_interval(logarithms);
    let mut text = shown(mean);
    if let Some(half) = half_width {
        text.push_str(&format!(" ({} to {})", shown(mean - half), shown(mean + half)));
    }
    if logarithms.len() != n {
        text.push_str(&format!("<br><sub>n = {}</sub>", logarithms.len()));
    }
    text
}
