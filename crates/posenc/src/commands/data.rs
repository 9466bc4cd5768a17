//! `data list` and `data check`.

use std::process::ExitCode;

use anyhow::Result;

use crate::arguments::DataVerb;
use posenc_harness::data::source;
use posenc_harness::repository::Repository;

/// Runs the verb.
pub fn data(repository: &Repository, verb: &DataVerb) -> Result<ExitCode> {
    let (options, check) = match verb {
        DataVerb::List(options) => (options, false),
        DataVerb::Check(options) => (options, true),
    };
    let source = source(repository, options)?;
    println!("data directory: {}", source.directory().path().display());
    let statuses = if check {
        posenc_data::check(source.manifest(), source.directory())
    } else {
        posenc_data::list(source.manifest(), source.directory())
    };
    for status in &statuses {
        println!("{status}");
    }
    let attention = check && statuses.iter().any(posenc_data::Status::needs_attention);
    Ok(ExitCode::from(u8::from(attention)))
}
