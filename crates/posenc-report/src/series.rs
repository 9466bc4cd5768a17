//! From rows of a record to the curves, points and maps of a figure.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use anyhow::Result;
use posenc_experiments::record::{Keys, Row};
use posenc_experiments::schema::Experiment;
use posenc_experiments::schema::display::{Axis, Band, By, Panel, PanelKind, Plot, Scale, Shape};
use posenc_experiments::{Published, PublishedValue};

use crate::colors::{self, Family};
use crate::markdown::bare;
use crate::numbers::{distinct, half_width, mean_deviation};
use crate::plot::canvas::Marker;
use crate::plot::{self, AxisSpec, Content, Figure, Heatmap, Mark, Sample, Series};

/// What makes a curve of its own: the method and, in panels by signal or by metric, that.
#[derive(PartialEq)]
struct CurveKey {
    method: String,
    /// Empty for all.
    signal: String,
    metric: String,
    /// The metric's name in panels by metric; empty in others.
    label: String,
}

/// Color and marker by embedder and name.
type Styles = BTreeMap<(Family, String), (colors::Rgb, Marker)>;

/// What a picture is drawn from.
#[derive(Clone, Copy)]
pub struct FigureSource<'a> {
    /// The experiment.
    pub experiment: &'a Experiment,
    /// Rows of one run; none where nothing is run yet.
    pub rows: &'a [Row],
    /// Published values.
    pub published: &'a Published,
}

impl<'a> FigureSource<'a> {
    fn measured(self, panel: &'a Panel, metric: &'a str) -> impl Iterator<Item = &'a Row> + 'a {
        self.rows.iter().filter(move |r| {
            r.group == panel.group
                && r.metric == metric
                && names(panel, &r.method)
                && panel.signals.as_ref().is_none_or(|s| s.contains(&r.signal))
        })
    }

    /// Published values of a curve, under its own name or under others.
    fn printed(
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

    /// Curves of a panel, in the order of the experiment's variants and of the record's signals or
    /// of the panel's metrics.
    fn keys(self, panel: &'a Panel) -> Vec<CurveKey> {
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
                By::Method | By::X => keys.push(key("", &panel.metric, "")),
            }
        }
        keys
    }

    fn family(self, group: &str, method: &str) -> Family {
        let variant =
            self.experiment.group(group).and_then(|g| g.variants.iter().find(|v| v.id == method));
        let kind = variant.and_then(|v| v.embedder.as_ref()).map(|e| e.kind.as_str());
        colors::family(kind, method)
    }

    /// The picture.
    pub fn figure(self, plot: &'a Plot, heading: String) -> Result<Figure> {
        let styles = self.styles(plot);
        let panels = plot.panels.iter().map(|p| self.panel(p, &styles)).collect::<Result<_>>()?;
        let titles: Vec<_> = plot.panels.iter().map(|p| bare(&p.title)).collect();
        let alt = format!("{}: {}", bare(&self.experiment.title), titles.join("; "));
        Ok(Figure { alt, heading, panels })
    }

    /// One style per curve in all panels of a picture. Curves of one embedder share its hue, from
    /// light to dark in the order in which they appear.
    fn styles(self, plot: &'a Plot) -> Styles {
        let mut order: Vec<(Family, String)> = Vec::new();
        let mut known = BTreeSet::new();
        let mut counts: BTreeMap<Family, usize> = BTreeMap::new();
        for panel in plot.panels.iter().filter(|p| p.kind != PanelKind::Heatmap) {
            let keys = self.keys(panel);
            let several = several(&keys);
            for key in &keys {
                let style = (self.family(&panel.group, &key.method), name(several, key));
                if known.insert(style.clone()) {
                    *counts.entry(style.0).or_default() += 1;
                    order.push(style);
                }
            }
        }
        let mut next: BTreeMap<Family, usize> = BTreeMap::new();
        order
            .iter()
            .map(|(family, name)| {
                let index = next.entry(*family).or_insert(0);
                let n = counts.get(family).copied().unwrap_or(0);
                let marker = match n {
                    1 => Marker::None,
                    _ => Marker::TURN[*index % Marker::TURN.len()],
                };
                let style = (colors::shade(*family, *index, n), marker);
                *index += 1;
                ((*family, name.clone()), style)
            })
            .collect()
    }

    fn panel(self, panel: &'a Panel, styles: &Styles) -> Result<plot::Panel> {
        let content = match panel.kind {
            PanelKind::Heatmap => Content::Heatmap(self.heatmap(panel)?),
            _ => Content::Series(self.series(panel, styles)?),
        };
        Ok(plot::Panel { title: bare(&panel.title), x: axis(&panel.x), y: axis(&panel.y), content })
    }

    fn heatmap(self, panel: &'a Panel) -> Result<Heatmap> {
        let method = self.keys(panel).into_iter().next().map(|k| k.method).unwrap_or_default();
        let is_placed = |r: &&Row| r.method == method && r.x.is_some() && r.y.is_some();
        let rows: Vec<&Row> = self.measured(panel, &panel.metric).filter(is_placed).collect();
        let mut cells = Vec::new();
        for cell in Keys::of(&rows).by(|r| &r.x).by(|r| &r.y).groups()? {
            let values: Vec<f64> = cell.iter().map(|r| r.value).collect();
            let place = cell.first().and_then(|first| Some((first.x?, first.y?)));
            cells.extend(place.map(|(x, y)| (x, y, mean_deviation(&values).0)));
        }
        cells.sort_by_key(|(x, y, _)| (x.to_bits(), y.to_bits()));
        Ok(Heatmap { label: bare(panel.color_label.as_deref().unwrap_or(&panel.metric)), cells })
    }

    fn series(self, panel: &'a Panel, styles: &Styles) -> Result<Vec<Series>> {
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
            let points = if scattered { alone(rows) } else { averaged(rows, panel.band)? };
            if points.is_empty() && theory.is_empty() && published.is_empty() {
                continue;
            }
            let name = name(several, key);
            let (color, marker) =
                match styles.get(&(self.family(&panel.group, &key.method), name.clone())) {
                    Some(style) => *style,
                    None => (colors::shade(Family::Neutral, 0, 1), Marker::None),
                };
            // A curve alone in its panel is told from no other.
            let marker = if keys.len() == 1 { Marker::None } else { marker };
            all.push(Series {
                name: bare(&name),
                color,
                marker,
                scattered,
                marks: marks(panel, &key.method, &points),
                points,
                band: band_label(panel.band),
                dashed: averaged(theory, Band::None)?.iter().map(|p| (p.x, p.y)).collect(),
                dashed_label: bare(&panel.dashed_label),
                published,
            });
        }
        Ok(all)
    }

    /// The metric that is drawn once, from the first method that has it.
    fn reference(self, panel: &'a Panel) -> Result<Option<Series>> {
        let Some(reference) = &panel.reference else { return Ok(None) };
        let all = || self.measured(panel, &reference.metric);
        let Some(Row { method, .. }) = all().next() else { return Ok(None) };
        let rows: Vec<&Row> = all().filter(|r| r.method == *method).collect();
        Ok(Some(Series {
            name: bare(&reference.label),
            color: colors::REFERENCE,
            points: averaged(&rows, Band::None)?,
            ..Series::default()
        }))
    }
}

/// What the legend says of a band.
fn band_label(band: Band) -> &'static str {
    match band {
        Band::Interval => "95 % interval of the mean",
        Band::Deviation => "mean ± standard deviation",
        Band::None => "",
    }
}

/// The points that the paper names, on the curve of a method. A place beyond the curve has none.
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

/// Rows by metric, method and signal; without a signal those of all.
type RowsOf<'a> = HashMap<(&'a str, &'a str, &'a str), Vec<&'a Row>>;

fn rows_of_curve<'a>(rows: &'a RowsOf<'a>, metric: &'a str, key: &'a CurveKey) -> &'a [&'a Row] {
    rows.get(&(metric, &key.method, &key.signal)).map_or(&[], Vec::as_slice)
}

/// Whether curves are of several methods.
fn several(keys: &[CurveKey]) -> bool {
    keys.windows(2).any(|pair| matches!(pair, [a, b] if a.method != b.method))
}

/// A curve's name among those of its panel: what they all share goes without saying.
fn name(several: bool, key: &CurveKey) -> String {
    let own = if key.label.is_empty() { &key.signal } else { &key.label };
    match (own.is_empty(), several) {
        (true, _) => key.method.clone(),
        (false, false) => own.clone(),
        (false, true) => format!("{}, {own}", key.method),
    }
}

fn names(panel: &Panel, method: &str) -> bool {
    panel.methods.as_ref().is_none_or(|m| m.iter().any(|m| m == method))
}

fn axis(axis: &Axis) -> AxisSpec {
    AxisSpec {
        label: bare(&axis.label),
        log: axis.scale == Scale::Log,
        from: axis.from,
        to: axis.to,
    }
}

fn alone(rows: &[&Row]) -> Vec<Sample> {
    let sample = |r: &&Row| Some(Sample { x: r.x?, y: r.value, half_width: None });
    rows.iter().filter_map(sample).collect()
}

/// Mean and band over signals and seeds at each abscissa. One value that is not finite makes the
/// mean so: a failed measurement is not averaged away.
fn averaged(rows: &[&Row], band: Band) -> Result<Vec<Sample>> {
    let half_width = |values: &[f64]| match band {
        Band::Interval => half_width(values),
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
