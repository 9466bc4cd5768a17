//! Experiment definitions, and the documents that describe their keys.

mod definitions;
mod format;
mod keys;
mod mistakes;
mod schema;
mod settings;

use std::path::{Path, PathBuf};

use posenc_experiments::Experiment;
use posenc_experiments::yaml::Document;

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// An experiment file with all parts.
pub const FILE: &str = r#"
paper: extensions
item: mexican-hat
kind: extra
title: A title
shows: What it shows
groups:
  - id: images
    data: { set: div2k-test }
    protocol: { kind: closed-form }
    variants:
      - { id: Gau, embedder: { kind: gaussian, dimension: 256, sigma: 0.0025 }, settings: {} }
    profiles:
      smoke: { reduced: one image, signals: 1 }
  - id: rank
    protocol: { kind: stable-rank, samples: [1, 2], sweep: { parameter: sigma, values: [0.1] } }
    variants:
      - { id: Gau, embedder: { kind: gaussian, dimension: 16, sigma: 0.1 } }
claims:
  - id: first
    says: it rises
    source: nowhere
    check: { kind: trend, of: { group: rank, metric: stable_rank }, direction: increasing }
plots:
  - id: picture
    caption: A caption
    panels:
      - title: Panel
        group: rank
        metric: stable_rank
        x: { label: N }
        y: { label: rank }
tables:
  - id: table
    title: A table
    groups: [rank]
    columns:
      - { metric: stable_rank, label: rank }
pictures:
  - id: grid
    title: A grid
    groups: [images]
    show: [truth, reconstruction, error]
    caption: test_psnr
"#;

/// Parses an experiment; returns errors as text.
pub fn parse(text: &str) -> Result<Experiment, String> {
    let document = Document::parse(Path::new("a.yaml"), text).map_err(|e| e.to_string())?;
    Experiment::from_document(&document, posenc_protocols::KINDS).map_err(|e| e.to_string())
}
