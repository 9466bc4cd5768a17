//! Text of experiments in report pages.

use posenc_experiments::Catalog;

use super::records::{catalog, rendered, table};
use super::text;

/// A record with a row for each method of the demo experiment.
const RECORD: &str = include_str!("demo/fig1.csv");

/// Renders the report of an experiment with the same text as its title, description, analysis, deviations, claims, captions and labels.
pub fn pages(bytes: &[u8]) -> usize {
    let (Some(text), Some(catalog)) = (text(bytes), catalog()) else { return 0 };
    let mut catalog: Catalog = catalog.clone();
    for paper in &mut catalog.papers {
        paper.title = text.to_owned();
        paper.summary = text.to_owned();
    }
    for experiment in &mut catalog.experiments {
        experiment.title = text.to_owned();
        experiment.shows = text.to_owned();
        experiment.analysis = text.to_owned();
        experiment.deviations = vec![text.to_owned()];
        experiment.claims.iter_mut().for_each(|claim| claim.says = text.to_owned());
        experiment.plots.iter_mut().for_each(|plot| plot.caption = text.to_owned());
        experiment.tables.iter_mut().for_each(|table| table.title = text.to_owned());
    }
    rendered(&catalog, table(RECORD).unwrap_or_default())
}
