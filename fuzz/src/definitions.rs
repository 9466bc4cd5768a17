//! What people write: experiments, papers, the manifest, formulas, selectors.

use std::path::Path;

use posenc_data::Manifest;
use posenc_experiments::coverage;
use posenc_experiments::plan::{NO_SIGNAL, jobs};
use posenc_experiments::record::IndexedTable;
use posenc_experiments::schema::claim::ClaimName;
use posenc_experiments::schema::metrics::Metrics;
use posenc_experiments::schema::paper::Paper;
use posenc_experiments::selector::Selectors;
use posenc_experiments::verdict::{Context, judge};
use posenc_experiments::yaml::Document;
use posenc_experiments::{Experiment, Profile, Published};
use posenc_math::embedder::{self, EmbedderSpec, names};
use posenc_math::random::stream;

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
    let known = |name: &str| ClaimName::parse(name, Some("demo")).ok_or_else(String::new);
    accepted += usize::from(coverage::from_document(&document, known).is_ok());
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

/// Builds an embedder with the text as its profile formula, and computes rows of its matrix.
pub fn formula(bytes: &[u8]) -> usize {
    let Some(text) = text(bytes) else { return 0 };
    let spec = EmbedderSpec::new(names::FORMULA).text("psi", text).number("dimension", 5.0);
    let mut accepted = 0;
    for spec in [spec.clone().number("s", 0.1).text("boundary", "periodic"), spec] {
        if let Ok(embedder) = embedder::build(&spec, &mut stream(0, "inputs")) {
            embedder::matrix(&*embedder, &[0.0, 0.3, 1.0]);
            accepted += 1;
        }
    }
    accepted
}

/// Parses selectors of the command line and matches them against names from files: all lines but the last are selectors; the last is a
/// path, whose method may contain anything.
pub fn selectors(bytes: &[u8]) -> usize {
    let Some((selectors, path)) = text(bytes).and_then(|text| text.rsplit_once('\n')) else {
        return 0;
    };
    let texts: Vec<String> = selectors.lines().map(str::to_owned).collect();
    let Ok(selectors) = Selectors::parse(&texts) else { return 0 };
    let mut parts = path.splitn(4, '/').chain(std::iter::repeat(""));
    let mut part = || parts.next().unwrap_or_default();
    let candidate = (part(), part(), part(), part());
    selectors.matches(candidate.0, candidate.1, candidate.2, candidate.3);
    1 + selectors.unmatched(&[candidate]).len()
}
