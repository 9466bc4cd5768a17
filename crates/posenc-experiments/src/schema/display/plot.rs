//! How records are drawn.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{By, no_group, yes};
use crate::schema::experiment::Group;
use crate::yaml::{Document, FileError};

/// One picture: one or more panels side by side.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plot {
    /// Part of the file name.
    pub id: String,
    /// Text below the picture (Markdown).
    pub caption: String,
    /// The panels, left to right.
    pub panels: Vec<Panel>,
}

/// One pair of axes.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Panel {
    /// Above the axes.
    pub title: String,
    /// How values are drawn.
    #[serde(default)]
    pub kind: PanelKind,
    /// Group key.
    pub group: String,
    /// Metric.
    pub metric: String,
    /// Methods; all of the group where absent.
    pub methods: Option<Vec<String>>,
    /// Signals; all of the record where absent.
    pub signals: Option<Vec<String>>,
    /// What makes a curve of its own: `method` (default), `signal` or `metric`.
    #[serde(default)]
    pub series: By,
    /// With `series: metric`: the metrics after the first with their names in the legend.
    #[serde(default)]
    pub more: Vec<Named>,
    /// With `series: metric`: name of the first metric in the legend; the metric where absent.
    pub metric_label: Option<String>,
    /// A metric drawn dashed in the same color: theory.
    pub dashed: Option<String>,
    /// What the legend calls dashed curves.
    #[serde(default = "theory")]
    pub dashed_label: String,
    /// A metric that is the same for all methods, such as a target: drawn once, in black.
    pub reference: Option<Named>,
    /// What the shaded area says.
    #[serde(default)]
    pub band: Band,
    /// Points on the curves that the paper names.
    #[serde(default)]
    pub markers: Vec<Marks>,
    /// Whether published values are marked.
    #[serde(default = "yes")]
    pub published: bool,
    /// Published values under other names that belong to a method of this panel.
    #[serde(default)]
    pub published_as: Vec<PublishedAs>,
    /// Abscissa.
    pub x: Axis,
    /// Ordinate; for heat maps the second coordinate.
    pub y: Axis,
    /// Heat maps only: what the color bar shows.
    pub color_label: Option<String>,
}

fn theory() -> String {
    "theory".into()
}

/// A metric with its name in the legend.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Named {
    /// Metric.
    pub metric: String,
    /// In the legend.
    pub label: String,
}

/// What the shaded area around a curve says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Band {
    /// Where the mean lies: its 95 % t interval over signals and seeds.
    #[default]
    Interval,
    /// Where the values lie: mean ± population standard deviation over signals and seeds.
    Deviation,
    /// There is none.
    None,
}

/// One kind of marked points: one for each method that is named.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Marks {
    /// In the legend.
    pub label: String,
    /// Its shape.
    pub shape: Shape,
    /// Abscissa by method; the point lies on the method's curve.
    pub at: BTreeMap<String, f64>,
}

/// The shape of a marked point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    /// A star.
    Star,
    /// A square.
    Square,
    /// A diamond.
    Diamond,
}

/// Published values of another group or under another method's name.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedAs {
    /// Group among the published values.
    pub group: String,
    /// Method among the published values.
    pub method: String,
    /// Metric among the published values; the panel's where absent.
    pub metric: Option<String>,
    /// Method of the panel.
    pub shown: String,
}

/// How values are drawn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PanelKind {
    /// Mean with a band over signals and seeds.
    #[default]
    Lines,
    /// Every row by itself.
    Points,
    /// One method's values over x and y, with a color bar.
    Heatmap,
}

/// An axis.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Axis {
    /// Label, with its unit.
    pub label: String,
    /// Scale.
    #[serde(default)]
    pub scale: Scale,
    /// Smallest value shown; from the values where absent.
    pub from: Option<f64>,
    /// Largest value shown; from the values where absent.
    pub to: Option<f64>,
}

/// Scale of an axis.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// Evenly spaced.
    #[default]
    Linear,
    /// Evenly spaced in the logarithm.
    Log,
}

pub(super) fn check(
    document: &Document,
    plots: &[Plot],
    groups: &[Group],
) -> Result<(), FileError> {
    for (i, plot) in plots.iter().enumerate() {
        if plot.panels.is_empty() || plot.panels.len() > 6 {
            return Err(document.error(&format!("plots[{i}].panels"), "allowed: 1 to 6 panels"));
        }
        for (j, panel) in plot.panels.iter().enumerate() {
            let path = format!("plots[{i}].panels[{j}]");
            let Some(group) = groups.iter().find(|g| g.id == panel.group) else {
                return Err(no_group(document, &format!("{path}.group"), &panel.group, groups));
            };
            for (k, method) in panel.methods.iter().flatten().enumerate() {
                if !group.variants.iter().any(|v| v.id == *method) {
                    return Err(document.error(
                        &format!("{path}.methods[{k}]"),
                        format!("no variant `{method}` in group `{}`", group.id),
                    ));
                }
            }
            let known = |method: &String| group.variants.iter().any(|v| v.id == *method);
            let marked = panel.markers.iter().enumerate().flat_map(|(k, m)| {
                let place = format!("{path}.markers[{k}].at");
                m.at.keys().map(move |method| (place.clone(), method))
            });
            let shown = panel.published_as.iter().enumerate();
            let shown = shown.map(|(k, p)| (format!("{path}.published_as[{k}].shown"), &p.shown));
            if let Some((place, method)) = marked.chain(shown).find(|(_, m)| !known(m)) {
                return Err(document
                    .error(&place, format!("no variant `{method}` in group `{}`", group.id)));
            }
            if panel.series == By::X || (panel.series != By::Metric && !panel.more.is_empty()) {
                return Err(document.error(
                    &format!("{path}.series"),
                    "allowed: method, signal or metric; `more` belongs to `metric`",
                ));
            }
            for (axis, name) in [(&panel.x, "x"), (&panel.y, "y")] {
                if let (Some(from), Some(to)) = (axis.from, axis.to)
                    && (from >= to || (axis.scale == Scale::Log && from <= 0.0))
                {
                    return Err(document.error(
                        &format!("{path}.{name}"),
                        "`from` must be below `to`, and above 0 on a log scale",
                    ));
                }
            }
        }
    }
    Ok(())
}
