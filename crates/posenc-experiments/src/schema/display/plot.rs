//! Plots of records.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use super::{By, yes};
use crate::schema::group::{Group, find_group};
use crate::yaml::{FileError, YamlPath};

/// A figure with one or more panels side by side.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Plot {
    /// Unique in the file; part of the file name. Allowed: a key.
    pub id: String,
    /// Text below the figure. Allowed: Markdown.
    pub caption: String,
    /// Where curves are named: at their ends (in at most two columns of panels) or in a legend. `auto` names them at their ends
    /// if there is room. Default: `auto`.
    #[serde(default)]
    pub labels: Labels,
    /// Colors of curves by name, such as those of the paper. Without one, a curve has the color of its embedder, and a sweep
    /// within one embedder a sequence of hues. Default: none. Allowed: mapping of names to `blue`, `orange`, `green`, `red`,
    /// `purple`, `brown`, `pink`, `gray`, `olive`, `cyan`.
    #[serde(default)]
    pub colors: BTreeMap<String, Color>,
    /// Shorter names of curves in the plot. Default: none. Allowed: mapping.
    #[serde(default)]
    pub names: BTreeMap<String, String>,
    /// Panels from left to right. Allowed: one to six panels.
    pub panels: Vec<Panel>,
}

/// Where curves are named.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Labels {
    /// At the ends of the curves if there is room, else in a legend.
    #[default]
    Auto,
    /// At the ends of the curves, in at most two columns of panels.
    End,
    /// In a legend below the panels.
    Legend,
}

/// Names of colors, in the order of automatic assignment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Color {
    Blue,
    Orange,
    Green,
    Red,
    Purple,
    Brown,
    Pink,
    Gray,
    Olive,
    Cyan,
}

impl Color {
    pub const ALL: [Color; 10] = [
        Color::Blue,
        Color::Orange,
        Color::Green,
        Color::Red,
        Color::Purple,
        Color::Brown,
        Color::Pink,
        Color::Gray,
        Color::Olive,
        Color::Cyan,
    ];
}

/// One pair of axes.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Panel {
    /// Title above the axes.
    pub title: String,
    /// Mean with a 95 % band, single values, a map, means of a map over circles around the origin, or one row per method (with
    /// `series: signal`, per signal) with its measured and its published mean. Default: `lines`.
    #[serde(default)]
    pub kind: PanelKind,
    /// Group that is plotted. Allowed: id of a group.
    pub group: String,
    /// Metric that is plotted. Allowed: a metric.
    pub metric: String,
    /// Methods. Default: all. Allowed: list of variants.
    pub methods: Option<Vec<String>>,
    /// Signals. Default: all. Allowed: list of names.
    pub signals: Option<Vec<String>>,
    /// One curve per method, signal or metric. Default: `method`. Allowed: `method`, `signal`, `metric`.
    #[serde(default)]
    pub series: By,
    /// With `series: metric`: further metrics, each a `metric` with its `label` in the legend.
    #[serde(default)]
    pub more: Vec<Named>,
    /// With `series: metric`: name of the first metric in the legend. Default: the metric.
    pub metric_label: Option<String>,
    /// Metric that is drawn dashed in the same color. Allowed: a metric.
    pub dashed: Option<String>,
    /// Name of the dashed curves in the legend.
    #[serde(default = "theory")]
    pub dashed_label: String,
    /// `metric` and `label` of values that all methods share, such as a target; drawn once, in black; with `dashed: true` as
    /// dashes.
    pub reference: Option<Reference>,
    /// Shaded area over signals and seeds: `interval`, the 95 % t interval of the mean; `deviation`, mean ± population standard deviation. With two to
    /// four runs, the runs are drawn instead of an interval. Default: `interval`.
    #[serde(default)]
    pub band: Band,
    /// Points that the paper names, on the method's curve: `label`, `shape` (`star`, `square`, `diamond`) and `at`, the
    /// abscissa by method.
    #[serde(default)]
    pub markers: Vec<Marks>,
    /// Marks published values.
    #[serde(default = "yes")]
    pub published: bool,
    /// Published values under other names: `group`, `method`, `metric` (default: the panel's), and the panel's method they
    /// are `shown` with.
    #[serde(default)]
    pub published_as: Vec<PublishedAs>,
    /// Abscissas in the plot by method: `times` · x^`power` (default 1), such as the total of features per axis. Default: none.
    /// Allowed: mapping.
    #[serde(default)]
    pub x_of: BTreeMap<String, XOf>,
    /// Axis of the abscissa. Allowed: an axis.
    pub x: Axis,
    /// Axis of the ordinate; for heat maps, of the second coordinate. Allowed: an axis.
    pub y: Axis,
    /// Heat maps: label of the color bar.
    pub color_label: Option<String>,
}

fn theory() -> String {
    "theory".into()
}

/// A metric with its name in the legend.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Named {
    pub metric: String,
    pub label: String,
}

/// A metric that all methods share.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reference {
    pub metric: String,
    pub label: String,
    #[serde(default)]
    pub dashed: bool,
}

/// Maps the recorded abscissa of a method's values to the abscissa in the plot.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct XOf {
    #[serde(default = "one")]
    pub times: f64,
    /// Exponent, applied before the factor.
    #[serde(default = "one")]
    pub power: f64,
}

impl XOf {
    pub fn at(self, x: f64) -> f64 {
        self.times * x.powf(self.power)
    }
}

fn one() -> f64 {
    1.0
}

/// What the shaded area around a curve shows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Band {
    /// The 95 % t interval of the mean over signals and seeds.
    #[default]
    Interval,
    /// Mean ± population standard deviation over signals and seeds.
    Deviation,
    None,
}

/// One kind of marked points, one point per named method.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Marks {
    pub label: String,
    pub shape: Shape,
    /// Abscissa by method; the point lies on the method's curve.
    pub at: BTreeMap<String, f64>,
}

/// The shape of a marked point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    Star,
    Square,
    Diamond,
}

/// Published values of another group or under another method's name.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PublishedAs {
    /// Group among the published values.
    pub group: String,
    /// Method among the published values.
    pub method: String,
    /// Metric among the published values; the panel's if absent.
    pub metric: Option<String>,
    /// Method of the panel.
    pub shown: String,
}

/// How values are plotted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PanelKind {
    /// Mean with a band over signals and seeds.
    #[default]
    Lines,
    /// Every row as a single point.
    Points,
    /// One method's values over x and y, with a color bar.
    Heatmap,
    /// Values over x and y, averaged over circles around the origin.
    Radial,
    /// One row per method, or per signal of a method: measured and published mean with their standard deviations.
    Dots,
}

/// An axis.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Axis {
    /// Label, with its unit.
    pub label: String,
    /// Scale. Default: `linear`.
    #[serde(default)]
    pub scale: Scale,
    /// Smallest value shown. Default: from the values.
    pub from: Option<f64>,
    /// Largest value shown. Default: from the values.
    pub to: Option<f64>,
    /// Whether values decrease from left to right, or upward.
    #[serde(default)]
    pub reversed: bool,
}

/// Scale of an axis.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    #[default]
    Linear,
    Log,
}

impl Plot {
    pub(super) fn check(&self, place: &YamlPath<'_>, groups: &[Group]) -> Result<(), FileError> {
        if self.panels.is_empty() || self.panels.len() > 6 {
            return Err(place.error("panels", "allowed: 1 to 6 panels"));
        }
        for (i, panel) in self.panels.iter().enumerate() {
            panel.check(&place.entry("panels", i), groups)?;
        }
        Ok(())
    }
}

impl Panel {
    fn check(&self, place: &YamlPath<'_>, groups: &[Group]) -> Result<(), FileError> {
        let group = find_group(&place.key("group"), &self.group, groups)?;
        let check_method = |key: &str, method: &String| group.check_method(place, key, method);
        for (i, method) in self.methods.iter().flatten().enumerate() {
            check_method(&format!("methods[{i}]"), method)?;
        }
        let wrong = |x: &XOf| !(x.times.is_finite() && x.power.is_finite() && x.times != 0.0);
        if let Some((method, _)) = self.x_of.iter().find(|(_, x)| wrong(x)) {
            let message = "`times` and `power` must be finite, and `times` not 0";
            return Err(place.error(&format!("x_of.{method}"), message));
        }
        for (i, marks) in self.markers.iter().enumerate() {
            let key = format!("markers[{i}].at");
            marks.at.keys().try_for_each(|method| check_method(&key, method))?;
        }
        for (i, published) in self.published_as.iter().enumerate() {
            check_method(&format!("published_as[{i}].shown"), &published.shown)?;
        }
        self.x_of.keys().try_for_each(|method| check_method("x_of", method))?;
        let is_row = matches!(self.series, By::X | By::SignalX);
        if is_row || (self.series != By::Metric && !self.more.is_empty()) {
            let message = "allowed: method, signal or metric; `more` is only allowed with `metric`";
            return Err(place.error("series", message));
        }
        for (axis, key) in [(&self.x, "x"), (&self.y, "y")] {
            let is_empty = axis.from.zip(axis.to).is_some_and(|(from, to)| from >= to);
            let is_negative = [axis.from, axis.to].into_iter().flatten().any(|end| end <= 0.0);
            if is_empty || (axis.scale == Scale::Log && is_negative) {
                let message = "`from` must be below `to`, and both above 0 on a log scale";
                return Err(place.error(key, message));
            }
        }
        Ok(())
    }
}
