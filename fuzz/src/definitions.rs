//! Files that people write: experiments, papers, the manifest.

use std::path::Path;

use posenc_data::Manifest;
use posenc_experiments::coverage;
use posenc_experiments::plan::{NO_SIGNAL, jobs};
use posenc_experiments::record::IndexedTable;
use posenc_experiments::schema::metrics::Metrics;
use posenc_experiments::schema::paper::Paper;
use posenc_experiments::selector::Selectors;
use posenc_experiments::verdict::{Context, judge};
use posenc_experiments::yaml::Document;
use posenc_experiments::{Experiment, Profile, Published};

use super::text;

/// Reads an experiment, up to the keys of its units and the verdicts on its claims; a paper; metric rules; coverage statements; a
/// manifest.
pub fn yaml(bytes: &[u8]) -> usize {
    let Some(text) = text(bytes) else { return 0 };
    let file = Path::new("a.yaml");
    let mut accepted = usize::from(Manifest::parse(text, file).is_ok());
    let Ok(document) = Document::parse(file, text) else { return accepted };
    accepted += usize::from(Paper::from_document(&document).is_ok());
    accepted += usize::from(Metrics::from_document(&document).is_ok());
    accepted += usize::from(coverage::from_document(&document, "demo", |_| true).is_ok());
    if let Ok(experiment) = Experiment::from_document(&document, posenc_protocols::KINDS) {
        accepted += 1;
        plan(&experiment);
    }
    accepted
}

fn plan(experiment: &Experiment) {
    for profile in Profile::ALL {
        let all = jobs(std::iter::once(experiment), &Selectors::default(), profile);
        // The keys of 100,000 units would take minutes and differ only in a number.
        for job in all.iter().take(100) {
            job.key_parts(NO_SIGNAL, "-", "cpu", 0, "1").key();
        }
    }
    let published = Published::default();
    let nothing = IndexedTable::default();
    for claim in &experiment.claims {
        for record in [None, Some(&nothing)] {
            judge(claim, Context { experiment, record, published: &published });
        }
    }
}
