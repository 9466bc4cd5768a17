//! Converts rows of a record to the curves, points and maps of a figure.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use anyhow::Result;
use posenc_experiments::record::{Keys, Row};
use posenc_experiments::schema::Experiment;
use posenc_experiments::schema::display::{Axis, Band, By, Panel, PanelKind, Plot, Scale, Shape};
use posenc_experiments::verdict::mean_interval;
use posenc_experiments::{Published, PublishedValue};

use super::canvas::Marker;
use super::{AxisSpec, Figure, Mark, PanelData, Sample, Series};
use crate::colors::{self, Family};
use crate::markdown::bare;
use crate::numbers::{distinct, mean_deviation};

/// Means of fewer values than this have no interval; their single runs are drawn instead.
const FEW: usize = 5;

/// Identifies a curve: its method and, in panels by signal or by metric, its signal or metric.
#[derive(PartialEq)]
pub(super) struct CurveKey {
    pub method: String,
    /// Empty in panels by method or metric.
    pub signal: String,
    pub metric: String,
    /// The metric's name in panels by metric; empty in others.
    label: String,
}

/// Color and marker, by color family and curve name.
type Styles = BTreeMap<(Family, String), (colors::Rgb, Marker)>;

/// Styles and display names of the curves of a figure.
pub struct Look<'a> {
    styles: Styles,
    names: &'a BTreeMap<String, String>,
}

impl Look<'_> {
    pub(super) fn name(&self, own: &str) -> String {
        bare(self.names.get(own).map_or(own, String::as_str))
    }
}

#[derive(Clone, Copy)]
pub struct FigureSource<'a> {
    pub experiment: &'a Experiment,
    /// Rows of one run; empty if nothing was run yet.
    pub rows: &'a [Row],
    pub published: &'a Published,
}

impl<'a> FigureSource<'a> {
    pub(super) fn measured(
        self,
        panel: &'a Panel,
        metric: &'a str,
    ) -> impl Iterator<Item = &'a Row> + 'a {
        self.rows.iter().filter(move |r| {
            r.group == panel.group
                && r.metric == metric
                && panel.methods.as_ref().is_none_or(|m| m.contains(&r.method))
                && panel.signals.as_ref().is_none_or(|s| s.contains(&r.signal))
        })
    }

    /// Published values of a curve, including those that `published_as` assigns to its method.
    pub(super) fn printed(
        self,
        panel: &'a Panel,
        key: &'a CurveKey,
    ) -> impl Iterator<Item = &'a PublishedValue> + 'a {
        let (paper, item) = (&self.experiment.paper, &self.experiment.item);
        let of = move |v: &&PublishedValue, group: &str, method: &str, metric: &str| {
            v.group == group && v.method == method && v.metric == metric
        };
        self.published.item(paper, item).filter(move |v| {
            of(v, &panel.group, &key.method, &key.metric)
                || panel
                    .published_as
                    .iter()
                    .filter(|p| p.shown == key.method)
                    .any(|p| of(v, &p.group, &p.method, p.metric.as_ref().unwrap_or(&key.metric)))
        })
    }

    /// Whether there is anything to draw for `plot`.
    pub fn shows(self, plot: &'a Plot) -> bool {
        plot.panels.iter().any(|p| self.measured(p, &p.metric).next().is_some())
    }

    /// Curves of a panel, in the order of the experiment's variants, then of the record's signals or the panel's
    /// metrics.
    pub(super) fn keys(self, panel: &'a Panel) -> Vec<CurveKey> {
        let mut methods: Vec<&str> = match (&panel.methods, self.experiment.group(&panel.group)) {
            (Some(methods), _) => methods.iter().map(String::as_str).collect(),
            (None, Some(group)) => group.variants.iter().map(|v| v.id.as_str()).collect(),
            (None, None) => Vec::new(),
        };
        let dashed = panel.dashed.as_deref().unwrap_or(&panel.metric);
        let all = || self.measured(panel, &panel.metric).chain(self.measured(panel, dashed));
        methods.extend(all().map(|row| row.method.as_str()));
        let methods = distinct(methods);
        let mut rows: HashMap<&str, Vec<&Row>> = HashMap::new();
        all().for_each(|row| rows.entry(&row.method).or_default().push(row));
        let mut keys = Vec::new();
        for method in methods {
            let key = |signal: &str, metric: &str, label: &str| CurveKey {
                method: method.to_owned(),
                signal: signal.to_owned(),
                metric: metric.to_owned(),
                label: label.to_owned(),
            };
            match panel.series {
                By::Signal => {
                    let rows = rows.remove(method).unwrap_or_default();
                    let signals = distinct(rows.iter().map(|row| row.signal.as_str()));
                    keys.extend(signals.into_iter().map(|s| key(s, &panel.metric, "")));
                }
                By::Metric => {
                    let first = panel.metric_label.as_ref().unwrap_or(&panel.metric);
                    keys.push(key("", &panel.metric, first));
                    keys.extend(panel.more.iter().map(|m| key("", &m.metric, &m.label)));
                }
                By::Method | By::X | By::SignalX => keys.push(key("", &panel.metric, "")),
            }
        }
        keys
    }

    pub fn figure(self, plot: &'a Plot, heading: String) -> Result<Figure> {
        let look = Look { styles: self.styles(plot), names: &plot.names };
        let panels = plot.panels.iter().map(|p| self.panel(p, &look)).collect::<Result<_>>()?;
        let titles: Vec<_> = plot.panels.iter().map(|p| bare(&p.title)).collect();
        let alt = format!("{}: {}", bare(&self.experiment.title), titles.join("; "));
        Ok(Figure { alt, heading, labels: plot.labels, panels })
    }

    /// Color family of a curve: neutral if the panel shows the signals or metrics of one method, else that of its
    /// embedder.
    fn style_family(self, panel: &Panel, several: bool, method: &str) -> Family {
        match panel.series {
            By::Signal | By::Metric if !several => Family::Neutral,
            _ => colors::family_in(self.experiment.group(&panel.group), method),
        }
    }

    /// Assigns one style to each curve, the same in all panels of a figure. A curve gets, in order of precedence: the
    /// plot's own color; a named color if the curves belong to one method, such as the layers of a network; a hue of a
    /// sequence for a sweep within one embedder; else a shade of the embedder's hue, from light to dark in order of
    /// appearance.
    fn styles(self, plot: &'a Plot) -> Styles {
        let mut order: Vec<(Family, String, bool)> = Vec::new();
        let mut known = BTreeSet::new();
        let mut counts: BTreeMap<Family, usize> = BTreeMap::new();
        for panel in plot.panels.iter().filter(|p| p.kind != PanelKind::Heatmap) {
            let keys = self.keys(panel);
            let several = several(&keys);
            for key in &keys {
                let family = self.style_family(panel, several, &key.method);
                let style = (family, name(several, key));
                if known.insert(style.clone()) {
                    let parts = panel.series != By::Method && !several;
                    *counts.entry(style.0).or_default() += 1;
                    order.push((style.0, style.1, parts));
                }
            }
        }
        let is_sweep = counts.len() == 1 && counts.values().all(|n| *n > 2);
        let mut next: BTreeMap<Family, usize> = BTreeMap::new();
        order
            .iter()
            .map(|(family, name, parts)| {
                let place = next.entry(*family).or_insert(0);
                let (index, n) = (*place, counts.get(family).copied().unwrap_or(0));
                *place += 1;
                let style = match plot.colors.get(name) {
                    Some(color) => (colors::named(*color), Marker::None),
                    None if *parts => (colors::categorical(index), Marker::None),
                    None if is_sweep => (colors::sequence(index, n), Marker::None),
                    None => {
                        let turn = Marker::TURN[index % Marker::TURN.len()];
                        let marker = if n == 1 { Marker::None } else { turn };
                        (colors::shade(*family, index, n), marker)
                    }
                };
                ((*family, name.clone()), style)
            })
            .collect()
    }

    fn panel(self, panel: &'a Panel, look: &Look<'_>) -> Result<super::Panel> {
        let data = PanelData::read(self, panel, look)?;
        Ok(super::Panel { title: bare(&panel.title), x: axis(&panel.x), y: axis(&panel.y), data })
    }

    pub(super) fn style(
        self,
        panel: &Panel,
        several: bool,
        key: &CurveKey,
        look: &Look<'_>,
    ) -> (colors::Rgb, Marker) {
        let family = self.style_family(panel, several, &key.method);
        match look.styles.get(&(family, name(several, key))) {
            Some(style) => *style,
            None => (colors::shade(Family::Neutral, 0, 1), Marker::None),
        }
    }

    pub(super) fn series(self, panel: &'a Panel, look: &Look<'_>) -> Result<Vec<Series>> {
        let keys = self.keys(panel);
        let several = several(&keys);
        let mut curves_of: HashMap<&str, usize> = HashMap::new();
        keys.iter().for_each(|key| *curves_of.entry(&key.method).or_default() += 1);
        let measured = keys.iter().map(|key| key.metric.as_str()).chain(panel.dashed.as_deref());
        let measured: BTreeSet<&str> = measured.collect();
        let mut rows_of = RowsOf::new();
        for row in measured.into_iter().flat_map(|metric| self.measured(panel, metric)) {
            let mut add = |signal| {
                rows_of.entry((&row.metric, &row.method, signal)).or_default().push(row);
            };
            add("");
            if !row.signal.is_empty() {
                add(&row.signal);
            }
        }
        let mut all: Vec<Series> = self.reference(panel)?.into_iter().collect();
        for key in &keys {
            let theory = panel
                .dashed
                .as_deref()
                .map_or(&[][..], |metric| rows_of_curve(&rows_of, metric, key));
            let rows = rows_of_curve(&rows_of, &key.metric, key);
            let curves = curves_of.get(key.method.as_str()).copied().unwrap_or(0);
            let published: Vec<_> = self
                .printed(panel, key)
                .filter(|v| {
                    panel.published
                        && (key.signal.is_empty()
                            || v.signal == key.signal
                            || (v.signal.is_empty() && curves == 1))
                })
                .filter_map(|v| Some((v.x?, v.value?)))
                .collect();
            let scattered = panel.kind == PanelKind::Points;
            let (mut points, mut runs) = match panel.kind {
                PanelKind::Points => (alone(rows), Vec::new()),
                PanelKind::Radial => (radial(rows)?, Vec::new()),
                _ => (averaged(rows, panel.band)?, single_runs(rows, panel.band)?),
            };
            let theory = match panel.kind {
                PanelKind::Radial => radial(theory)?,
                _ => averaged(theory, Band::None)?,
            };
            let mut dashed: Vec<(f64, f64)> = theory.iter().map(|p| (p.x, p.y)).collect();
            if let Some(x_of) = panel.x_of.get(&key.method) {
                let all = runs.iter_mut().flatten().chain(&mut dashed).map(|p| &mut p.0);
                all.chain(points.iter_mut().map(|p| &mut p.x)).for_each(|x| *x = x_of.at(*x));
            }
            if points.is_empty() && dashed.is_empty() && published.is_empty() {
                continue;
            }
            let (color, marker) = self.style(panel, several, key, look);
            // A single curve needs no marker.
            let marker = if keys.len() == 1 { Marker::None } else { marker };
            all.push(Series {
                name: look.name(&name(several, key)),
                color,
                marker,
                scattered,
                marks: marks(panel, &key.method, &points),
                points,
                runs,
                band: match panel.kind {
                    PanelKind::Radial => "± standard deviation over directions",
                    _ => band_label(panel.band),
                },
                dashed,
                dashed_label: bare(&panel.dashed_label),
                published,
            });
        }
        Ok(all)
    }

    /// The reference metric, drawn once from the first method that has it.
    fn reference(self, panel: &'a Panel) -> Result<Option<Series>> {
        let Some(reference) = &panel.reference else { return Ok(None) };
        let all = || self.measured(panel, &reference.metric);
        let Some(Row { method, .. }) = all().next() else { return Ok(None) };
        let rows: Vec<&Row> = all().filter(|r| r.method == *method).collect();
        let points = averaged(&rows, Band::None)?;
        let name = bare(&reference.label);
        let own = Series { color: colors::REFERENCE, name: name.clone(), ..Series::default() };
        Ok(Some(match reference.dashed {
            false => Series { points, ..own },
            true => {
                let dashed = points.iter().map(|p| (p.x, p.y)).collect();
                Series { dashed, dashed_label: name, ..own }
            }
        }))
    }
}

fn band_label(band: Band) -> &'static str {
    match band {
        Band::Interval => "95 % interval of the mean",
        Band::Deviation => "mean ± standard deviation",
        Band::None => "",
    }
}

/// The marked points on the curve of a method, interpolated between its samples. Points beyond its ends are left out.
fn marks(panel: &Panel, method: &str, points: &[Sample]) -> Vec<Mark> {
    let measure = |x: f64| if panel.x.scale == Scale::Log { x.ln() } else { x };
    let on_curve = |x: f64| {
        let pair = points.windows(2).find(|p| p[0].x <= x && x <= p[1].x)?;
        let (from, to) = (measure(pair[0].x), measure(pair[1].x));
        let share = if to > from { (measure(x) - from) / (to - from) } else { 0.0 };
        Some(pair[0].y + share * (pair[1].y - pair[0].y))
    };
    let marker = |shape: Shape| match shape {
        Shape::Star => Marker::Star,
        Shape::Square => Marker::Square,
        Shape::Diamond => Marker::Diamond,
    };
    panel
        .markers
        .iter()
        .filter_map(|m| {
            let x = *m.at.get(method)?;
            let (label, marker) = (bare(&m.label), marker(m.shape));
            Some(Mark { x, y: on_curve(x)?, marker, label })
        })
        .collect()
}

/// Rows by metric, method and signal. The entry with an empty signal has the rows of all signals.
type RowsOf<'a> = HashMap<(&'a str, &'a str, &'a str), Vec<&'a Row>>;

fn rows_of_curve<'a>(rows: &'a RowsOf<'a>, metric: &'a str, key: &'a CurveKey) -> &'a [&'a Row] {
    rows.get(&(metric, &key.method, &key.signal)).map_or(&[], Vec::as_slice)
}

/// Whether the curves belong to several methods.
pub(super) fn several(keys: &[CurveKey]) -> bool {
    keys.windows(2).any(|pair| matches!(pair, [a, b] if a.method != b.method))
}

/// A curve's name within its panel: the method, the signal or metric label, or both if the panel has several methods.
pub(super) fn name(several: bool, key: &CurveKey) -> String {
    let own = if key.label.is_empty() { &key.signal } else { &key.label };
    match (own.is_empty(), several) {
        (true, _) => key.method.clone(),
        (false, false) => own.clone(),
        (false, true) => format!("{}, {own}", key.method),
    }
}

fn axis(axis: &Axis) -> AxisSpec {
    AxisSpec {
        label: bare(&axis.label),
        log: axis.scale == Scale::Log,
        from: axis.from,
        to: axis.to,
        reversed: axis.reversed,
    }
}

fn alone(rows: &[&Row]) -> Vec<Sample> {
    let sample = |r: &&Row| Some(Sample { x: r.x?, y: r.value, half_width: None });
    rows.iter().filter_map(sample).collect()
}

/// Mean and band over signals and seeds at each abscissa. A non-finite value makes the mean non-finite, so that failed
/// measurements stay visible.
fn averaged(rows: &[&Row], band: Band) -> Result<Vec<Sample>> {
    let half_width = |values: &[f64]| match band {
        Band::Interval => mean_interval(values).half_width.filter(|_| values.len() >= FEW),
        Band::Deviation => Some(mean_deviation(values).1).filter(|_| values.len() > 1),
        Band::None => None,
    };
    let mut samples = Vec::new();
    for place in Keys::of(rows).by(|r| &r.x).groups()? {
        let values: Vec<f64> = place.iter().map(|r| r.value).collect();
        let x = place.first().and_then(|first| first.x);
        let sample =
            |x| Sample { x, y: mean_deviation(&values).0, half_width: half_width(&values) };
        samples.extend(x.map(sample));
    }
    samples.sort_by(|a, b| a.x.total_cmp(&b.x));
    Ok(samples)
}

/// One line per signal and seed if the panel has interval bands but too few runs for them; else none.
fn single_runs(rows: &[&Row], band: Band) -> Result<Vec<Vec<(f64, f64)>>> {
    let mut runs = Vec::new();
    for run in Keys::of(rows).by(|r| &r.signal).by(|r| &r.seed).groups()? {
        let mut points: Vec<(f64, f64)> =
            run.iter().filter_map(|r| Some((r.x?, r.value))).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        runs.push(points);
    }
    let few = band == Band::Interval && (2..FEW).contains(&runs.len());
    Ok(if few { runs } else { Vec::new() })
}

/// Mean value at each position of a map.
pub(super) fn cells(rows: &[&Row]) -> Result<Vec<(f64, f64, f64)>> {
    let mut cells = Vec::new();
    for cell in Keys::of(rows).by(|r| &r.x).by(|r| &r.y).groups()? {
        let values: Vec<f64> = cell.iter().map(|r| r.value).collect();
        let place = cell.first().and_then(|first| Some((first.x?, first.y?)));
        cells.extend(place.map(|(x, y)| (x, y, mean_deviation(&values).0)));
    }
    Ok(cells)
}

/// Means over circles around the origin, with the standard deviation over directions. Rings are as wide as the grid
/// step, and rings that are not complete are left out.
fn radial(rows: &[&Row]) -> Result<Vec<Sample>> {
    let cells = cells(rows)?;
    let steps = cells.iter().map(|c| c.0.abs()).filter(|x| *x > 0.0);
    let step = steps.fold(f64::INFINITY, f64::min);
    let farthest = |of: fn(&(f64, f64, f64)) -> f64| cells.iter().map(of).fold(0.0, f64::max);
    let last = farthest(|c| c.0.abs()).min(farthest(|c| c.1.abs()));
    let mut rings: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for (x, y, value) in cells.iter().filter(|(x, y, _)| x.hypot(*y) <= last + 0.5 * step) {
        rings.entry((x.hypot(*y) / step).round() as u32).or_default().push(*value);
    }
    let sample = |(ring, values): (u32, Vec<f64>)| {
        let (mean, deviation) = mean_deviation(&values);
        Sample { x: f64::from(ring) * step, y: mean, half_width: Some(deviation) }
    };
    Ok(rings.into_iter().map(sample).collect())
}
