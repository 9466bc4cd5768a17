//! `report`: render the reference report, or check that it is fresh.

use std::process::ExitCode;

use anyhow::{Context, Result};
use posenc_experiments::Catalog;
use posenc_experiments::record::table::write_atomically;
use posenc_experiments::text::{MAX_RECORD_BYTES, read_text};
use posenc_report::{Inputs, Records};

use crate::arguments::Report;
use posenc_harness::lock::Lock;
use posenc_harness::repository::Repository;
use posenc_protocols::KINDS;

/// Runs the verb.
pub fn report(repository: &Repository, options: &Report) -> Result<ExitCode> {
    let catalog = Catalog::read(repository.root(), KINDS)?;
    let is_written = !options.check && options.out.is_none();
    let _lock = is_written.then(|| Lock::of_reference(repository)).transpose()?;
    let reference = Records::read(&repository.record(), &catalog)?;
    let report = render_reference(repository, &catalog, &reference, options.out.is_none())?;
    if options.check {
        let stale = report.check(&repository.report())?;
        for entry in &stale {
            eprintln!("stale: report/{}: {}", entry.path.display(), entry.why);
        }
        let first_page = first_page(repository, &reference)?;
        if first_page.is_some() {
            eprintln!("stale: README.md: the table of measured speed");
        }
        if !stale.is_empty() || first_page.is_some() {
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
    if options.out.is_none()
        && let Some(page) = first_page(repository, &reference)?
    {
        let file = repository.root().join("README.md");
        write_atomically(&file, page.as_bytes())
            .with_context(|| format!("{} cannot be written", file.display()))?;
    }
    println!("{}", directory.join("README.md").display());
    Ok(ExitCode::SUCCESS)
}

/// The repository's first page with the recorded speed, if it is another than the page at hand; nothing where there is
/// no page or no place for the table.
fn first_page(repository: &Repository, reference: &Records) -> Result<Option<String>> {
    let file = repository.root().join("README.md");
    if !posenc_files::is_there(&file) {
        return Ok(None);
    }
    let page = read_text(&file, MAX_RECORD_BYTES)?;
    let fresh = posenc_report::with_speed(&page, &reference.benchmarks);
    Ok(fresh.filter(|fresh| *fresh != page))
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
