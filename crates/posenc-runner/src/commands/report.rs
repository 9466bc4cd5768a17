//! `report`: render the reference report, or check that it is fresh.

use std::process::ExitCode;

use anyhow::{Context, Result};
use posenc_experiments::Catalog;
use posenc_report::{Inputs, Records};

use crate::arguments::Report;
use crate::repository::Repository;

/// Runs the verb.
pub fn report(repository: &Repository, options: &Report) -> Result<ExitCode> {
    let catalog = Catalog::read(repository.root())?;
    let reference = Records::read(&repository.record(), &catalog)?;
    let report = render_reference(repository, &catalog, &reference, options.out.is_none())?;
    if options.check {
        let stale = report.check(&repository.report())?;
        for entry in &stale {
            eprintln!("stale: report/{}: {}", entry.path.display(), entry.why);
        }
        if !stale.is_empty() {
            eprintln!("report/ is not what its records give; run `cargo xtask report`");
            return Ok(ExitCode::FAILURE);
        }
        println!("report/ is fresh");
        return Ok(ExitCode::SUCCESS);
    }
    let directory = options.out.clone().unwrap_or_else(|| repository.report());
    report
        .write(&directory)
        .with_context(|| format!("{} cannot be written", directory.display()))?;
    println!("{}", directory.join("README.md").display());
    Ok(ExitCode::SUCCESS)
}

/// The report of the reference records alone; `in_place` if it is to lie in `report/`, beside them.
pub fn render_reference(
    repository: &Repository,
    catalog: &Catalog,
    reference: &Records,
    in_place: bool,
) -> Result<posenc_report::Report> {
    let costs = super::costs::of_reference(repository, catalog, reference)?;
    posenc_report::render(&Inputs {
        catalog,
        reference,
        local: None,
        repository: "..",
        record: in_place.then_some("record"),
        costs: Some(&costs),
    })
}
