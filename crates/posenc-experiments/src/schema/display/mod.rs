//! How records are drawn, tabulated and shown as pictures.

mod comparison;
mod pictures;
mod plot;
mod table;

use schemars::JsonSchema;
use serde::Deserialize;

use super::experiment::Group;
use crate::yaml::{Document, FileError, nearest};

pub use comparison::{Choice, Chosen, Compared, Comparison, Positions};
pub use pictures::{Caption, Layout, PictureGrid, Signals};
pub use plot::{
    Axis, Band, Color, Labels, Marks, Named, Panel, PanelKind, Plot, PublishedAs, Reference, Scale,
    Shape, XOf,
};
pub use table::{Aggregate, Best, Column, PublishedSignal, Table};

/// What tells rows or curves apart.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum By {
    /// The method.
    #[default]
    Method,
    /// The signal.
    Signal,
    /// The metric (plots only).
    Metric,
    /// The abscissa (tables only).
    X,
    /// The signal and the abscissa (tables only).
    SignalX,
}

pub(super) fn check(
    document: &Document,
    plots: &[Plot],
    tables: &[Table],
    pictures: &[PictureGrid],
    groups: &[Group],
) -> Result<(), FileError> {
    plot::check(document, plots, groups)?;
    table::check(document, tables, groups)?;
    pictures::check(document, pictures, groups)
}

fn yes() -> bool {
    true
}

fn no_group(document: &Document, path: &str, wrong: &str, groups: &[Group]) -> FileError {
    let ids: Vec<_> = groups.iter().map(|g| g.id.as_str()).collect();
    document.error(path, format!("no group `{wrong}`; allowed: {}", ids.join(", ")))
}

/// An error about a name that is none of those allowed, with the nearest of them.
fn no_such(
    document: &Document,
    path: &str,
    what: &str,
    wrong: &str,
    allowed: &[&str],
) -> FileError {
    let hint = nearest(wrong, allowed.iter().copied())
        .map(|n| format!(" Did you mean `{n}`?"))
        .unwrap_or_default();
    let list = allowed.join(", ");
    document.error(path, format!("no {what} `{wrong}`; allowed: {list}.{hint}"))
}
