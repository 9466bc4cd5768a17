//! One file per verb.

mod bench;
mod data;
mod diff;
mod doctor;
mod fit;
mod list;
mod new;
mod report;
pub mod reproduce;
mod source;
mod verify;

use std::process::ExitCode;

use anyhow::Result;

use crate::arguments::{Arguments, Verb};
use posenc_harness::repository::Repository;

pub fn dispatch(arguments: Arguments) -> Result<ExitCode> {
    let repository = Repository::find(arguments.root.as_deref())?;
    match arguments.verb {
        Verb::Reproduce(options) => reproduce::reproduce(&repository, &options),
        Verb::Diff(options) => diff::diff(&repository, &options),
        Verb::Verify(options) => verify::verify(&repository, &options),
        Verb::Report(options) => report::report(&repository, &options),
        Verb::List(options) => list::list(&repository, &options),
        Verb::New(verb) => new::new(&repository, &verb),
        Verb::Fit(options) => fit::fit(&repository, &options),
        Verb::Data(verb) => data::data(&repository, &verb),
        Verb::Bench(options) => bench::bench(&repository, &options),
        Verb::Doctor(options) => doctor::doctor(&repository, &options),
    }
}
