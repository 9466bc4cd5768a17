//! Plots, tables and pictures of records.

mod comparison;
mod pictures;
mod plot;
mod table;

use schemars::JsonSchema;
use serde::Deserialize;

use super::group::Group;
use crate::yaml::{FileError, YamlPath, unknown_name};

pub use comparison::{Compared, Comparison, Front, PerSignal, Positions};
pub use pictures::{Layout, PictureGrid};
pub use plot::{
    Axis, Band, Color, Labels, Marks, Named, Panel, PanelKind, Plot, PublishedAs, Reference, Scale,
    Shape, XOf,
};
pub use table::{Aggregate, Best, Column, PublishedSignal, Table};

/// What distinguishes rows or curves.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum By {
    #[default]
    Method,
    Signal,
    /// The metric (plots only).
    Metric,
    /// The abscissa (tables only).
    X,
    /// The signal and the abscissa (tables only).
    SignalX,
}

pub(super) fn check(
    root: &YamlPath<'_>,
    plots: &[Plot],
    tables: &[Table],
    pictures: &[PictureGrid],
    comparisons: &[Comparison],
    groups: &[Group],
) -> Result<(), FileError> {
    for (i, plot) in plots.iter().enumerate() {
        plot.check(&root.entry("plots", i), groups)?;
    }
    for (i, table) in tables.iter().enumerate() {
        table.check(&root.entry("tables", i), groups)?;
    }
    for (i, grid) in pictures.iter().enumerate() {
        grid.check(&root.entry("pictures", i), groups)?;
    }
    for (i, comparison) in comparisons.iter().enumerate() {
        comparison.check(&root.entry("comparisons", i))?;
    }
    Ok(())
}

fn yes() -> bool {
    true
}

/// Rejects names of the list at `place` that are not allowed, and suggests the nearest allowed name.
fn check_names(
    place: &YamlPath<'_>,
    what: &str,
    names: &[String],
    allowed: &[&str],
) -> Result<(), FileError> {
    match unknown_name(what, names, allowed) {
        Some((i, message)) => Err(place.entry("", i).error("", message)),
        None => Ok(()),
    }
}
