//! From rows of a record to the curves, points and maps of a figure.

use std::collections::{BTreeMap, BTreeSet};

use posenc_experiments::record::Row;
use posenc_experiments::schema::Experiment;
use posenc_experiments::schema::display::{Axis, By, Panel, PanelKind, Plot, Scale};
use posenc_experiments::{Published, PublishedValue};

use crate::colors::{self, Family};
use crate::markdown::bare;
use crate::numbers::{half_width, mean_deviation};
use crate::plot::canvas::Marker;
use crate::plot::{self, AxisSpec, Content, Figure, Heatmap, Sample, Series};

/// What makes a curve of its own: the method and, in panels by signal, the signal.
type Key = (String, String);

/// Color and marker by embedder and name.
type Styles = BTreeMap<(Family, String), (colors::Rgb, Marker)>;

/// What a picture is drawn from.
#[derive(Clone, Copy)]
pub struct Source<'a> {
    /// The experiment.
    pub experiment: &'a Experiment,
    /// Rows of one run; none where nothing is run yet.
    pub rows: &'a [Row],
    /// Published values.
    pub published: &'a Published,
}

impl<'a> Source<'a> {
    fn measured(self, panel: &'a Panel, metric: &'a str) -> impl Iterator<Item = &'a Row> + 'a {
        self.rows.iter().filter(move |r| {
            r.group == panel.group && r.metric == metric && names(panel, &r.method)
        })
    }

    fn printed(self, panel: &'a Panel) -> impl Iterator<Item = &'a PublishedValue> + 'a {
        let (paper, item) = (&self.experiment.paper, &self.experiment.item);
        self.published.item(paper, item).filter(move |v| {
            v.group == panel.group && v.metric == panel.metric && names(panel, &v.method)
        })
    }

    /// Whether there is anything to draw for `plot`.
    pub fn shows(self, plot: &'a Plot) -> bool {
        plot.panels.iter().any(|p| self.measured(p, &p.metric).next().is_some())
    }

    /// Curves of a panel, in the order of the experiment's variants and of the record's signals.
    fn keys(self, panel: &'a Panel) -> Vec<Key> {
        let mut methods: Vec<&str> = match (&panel.methods, self.experiment.group(&panel.group)) {
            (Some(methods), _) => methods.iter().map(String::as_str).collect(),
            (None, Some(group)) => group.variants.iter().map(|v| v.id.as_str()).collect(),
            (None, None) => Vec::new(),
        };
        let dashed = panel.dashed.as_deref().unwrap_or(&panel.metric);
        let all = || self.measured(panel, &panel.metric).chain(self.measured(panel, dashed));
        for row in all() {
            if !methods.contains(&row.method.as_str()) {
                methods.push(&row.method);
            }
        }
        let mut keys = Vec::new();
        for method in methods {
            if panel.series != By::Signal {
                keys.push((method.to_owned(), String::new()));
                continue;
            }
            let mut seen = BTreeSet::new();
            for row in all().filter(|r| r.method == method) {
                if seen.insert(row.signal.as_str()) {
                    keys.push((method.to_owned(), row.signal.clone()));
                }
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
    pub fn figure(self, plot: &'a Plot, heading: String) -> Figure {
        let styles = self.styles(plot);
        let panels = plot.panels.iter().map(|p| self.panel(p, &styles)).collect();
        let titles: Vec<_> = plot.panels.iter().map(|p| bare(&p.title)).collect();
        Figure {
            alt: format!("{}: {}", bare(&self.experiment.title), titles.join("; ")),
            heading,
            panels,
        }
    }

    /// One style per curve in all panels of a picture. Curves of one embedder share its hue, from
    /// light to dark in the order in which they appear.
    fn styles(self, plot: &'a Plot) -> Styles {
        let mut order: Vec<(Family, String)> = Vec::new();
        for panel in plot.panels.iter().filter(|p| p.kind != PanelKind::Heatmap) {
            let keys = self.keys(panel);
            for key in &keys {
                let style = (self.family(&panel.group, &key.0), name(&keys, key));
                if !order.contains(&style) {
                    order.push(style);
                }
            }
        }
        let count = |family: Family| order.iter().filter(|(f, _)| *f == family).count();
        let mut next: BTreeMap<Family, usize> = BTreeMap::new();
        order
            .iter()
            .map(|(family, name)| {
                let index = next.entry(*family).or_insert(0);
                let n = count(*family);
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

    fn panel(self, panel: &'a Panel, styles: &Styles) -> plot::Panel {
        let content = match panel.kind {
            PanelKind::Heatmap => Content::Heatmap(self.heatmap(panel)),
            _ => Content::Series(self.series(panel, styles)),
        };
        plot::Panel { title: bare(&panel.title), x: axis(&panel.x), y: axis(&panel.y), content }
    }

    fn heatmap(self, panel: &'a Panel) -> Heatmap {
        let method = self.keys(panel).into_iter().next().map(|k| k.0).unwrap_or_default();
        let mut cells: BTreeMap<(u64, u64), (f64, f64, Vec<f64>)> = BTreeMap::new();
        for row in self.measured(panel, &panel.metric).filter(|r| r.method == method) {
            if let (Some(x), Some(y)) = (row.x, row.y) {
                let cell = cells.entry((x.to_bits(), y.to_bits())).or_insert((x, y, Vec::new()));
                cell.2.push(row.value);
            }
        }
        Heatmap {
            label: bare(panel.color_label.as_deref().unwrap_or(&panel.metric)),
            cells: cells.into_values().map(|(x, y, v)| (x, y, mean_deviation(&v).0)).collect(),
        }
    }

    fn series(self, panel: &'a Panel, styles: &Styles) -> Vec<Series> {
        let keys = self.keys(panel);
        let mut all = Vec::new();
        for key in &keys {
            let belongs = |r: &&Row| r.method == key.0 && (key.1.is_empty() || r.signal == key.1);
            let rows: Vec<&Row> = self.measured(panel, &panel.metric).filter(belongs).collect();
            let theory: Vec<&Row> = match &panel.dashed {
                Some(metric) => self.measured(panel, metric).filter(belongs).collect(),
                None => Vec::new(),
            };
            let curves = keys.iter().filter(|k| k.0 == key.0).count();
            let printed = self.printed(panel).filter(|v| panel.published && v.method == key.0);
            let published: Vec<_> = printed
                .filter(|v| {
                    key.1.is_empty() || v.signal == key.1 || (v.signal.is_empty() && curves == 1)
                })
                .filter_map(|v| Some((v.x?, v.value?)))
                .collect();
            let scattered = panel.kind == PanelKind::Points;
            let points = if scattered { alone(&rows) } else { averaged(&rows) };
            if points.is_empty() && theory.is_empty() && published.is_empty() {
                continue;
            }
            let name = name(&keys, key);
            let (color, marker) =
                match styles.get(&(self.family(&panel.group, &key.0), name.clone())) {
                    Some(style) => *style,
                    None => (colors::shade(Family::Neutral, 0, 1), Marker::None),
                };
            all.push(Series {
                name: bare(&name),
                color,
                marker,
                scattered,
                points,
                dashed: averaged(&theory).iter().map(|p| (p.x, p.y)).collect(),
                published,
            });
        }
        all
    }
}

/// A curve's name among those of its panel: what they all share goes without saying.
fn name(keys: &[Key], key: &Key) -> String {
    let several = keys.iter().any(|k| k.0 != key.0);
    match (key.1.is_empty(), several) {
        (true, _) => key.0.clone(),
        (false, false) => key.1.clone(),
        (false, true) => format!("{}, {}", key.0, key.1),
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

/// Mean and 95 % interval over signals and seeds at each abscissa. One value that is not finite
/// makes the mean so: a failed measurement is not averaged away.
fn averaged(rows: &[&Row]) -> Vec<Sample> {
    let mut places: BTreeMap<u64, (f64, Vec<f64>)> = BTreeMap::new();
    for row in rows {
        if let Some(x) = row.x {
            places.entry((x + 0.0).to_bits()).or_insert((x, Vec::new())).1.push(row.value);
        }
    }
    let mut samples: Vec<Sample> = places
        .into_values()
        .map(|(x, values)| Sample {
            x,
            y: mean_deviation(&values).0,
            half_width: half_width(&values),
        })
        .collect();
    samples.sort_by(|a, b| a.x.total_cmp(&b.x));
    samples
}
