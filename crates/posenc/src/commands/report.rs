//! `report`: render the reference report, or check that it is fresh.

use std::collections::BTreeMap;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use posenc_experiments::Catalog;
use posenc_experiments::output::check_folder;
use posenc_experiments::text::{MAX_RECORD_BYTES, read_text};
use posenc_experiments::verdict::Verdict;
use posenc_report::{Inputs, Records, Report as Rendered, is_report};

use crate::arguments::Report;
use posenc_harness::lock;
use posenc_harness::options::usable_catalog;
use posenc_harness::repository::Repository;
use posenc_harness::store::write_file;
use posenc_protocols::KINDS;

pub fn report(repository: &Repository, options: &Report) -> Result<ExitCode> {
    if let Some(directory) = &options.out {
        check_folder(directory, repository.root(), is_report)?;
    }
    let include = &options.include.include;
    if !include.is_empty() && options.out.is_none() {
        bail!("--include needs --out DIR: report/ shows only the experiments of the repository");
    }
    let catalog = match options.check {
        true => Catalog::read(repository.root(), KINDS)?,
        false => usable_catalog(repository, include, KINDS)?,
    };
    let is_written = !options.check && options.out.is_none();
    let _lock = is_written.then(|| lock::of_reference(repository)).transpose()?;
    let reference = Records::read(&repository.record(), &catalog)?;
    let report = render_reference(&catalog, &reference, options.out.is_none())?;
    if options.check {
        let stale = report.check(&repository.report())?;
        for entry in &stale {
            eprintln!("stale: report/{}: {}", entry.path.display(), entry.why);
        }
        let pages = pages(repository, &reference, &report)?;
        for (page, _) in &pages {
            eprintln!("stale: {page}: the generated block does not match the record");
        }
        if !stale.is_empty() || !pages.is_empty() {
            eprintln!("report/ does not match its records; run `cargo xtask report`");
            return Ok(ExitCode::FAILURE);
        }
        println!("report/ is fresh");
        return Ok(ExitCode::SUCCESS);
    }
    let directory = options.out.clone().unwrap_or_else(|| repository.report());
    let before = posenc_report::verdicts(&directory, false);
    match &options.out {
        None => write_reference(repository, &reference, &report)?,
        Some(directory) => report
            .write(directory)
            .with_context(|| format!("{} cannot be written", directory.display()))?,
    }
    for answer in &report.unstated {
        eprintln!("warning: {answer}, so the page leaves the claim out");
    }
    if !before.is_empty() {
        print_changed_verdicts(&before, &posenc_report::verdicts(&directory, false));
    }
    println!("{}", directory.join("README.md").display());
    Ok(ExitCode::from(u8::from(!catalog.broken.is_empty())))
}

/// Writes the report of the reference records to `report/`, and its blocks in pages outside.
pub fn write_reference(
    repository: &Repository,
    reference: &Records,
    report: &Rendered,
) -> Result<()> {
    report.write(&repository.report()).context("report/ cannot be written")?;
    for (page, text) in pages(repository, reference, report)? {
        write_file(&repository.root().join(page), text.as_bytes())?;
    }
    Ok(())
}

/// Pages outside `report/` whose generated block differs from the record: path relative to the repository's root, and the correct
/// text.
fn pages(
    repository: &Repository,
    reference: &Records,
    report: &Rendered,
) -> Result<Vec<(&'static str, String)>> {
    let mut pages = Vec::new();
    for name in ["README.md", "docs/SPEED.md"] {
        let file = repository.root().join(name);
        if !posenc_files::is_there(&file) {
            continue;
        }
        let page = read_text(&file, MAX_RECORD_BYTES)?;
        let fresh = match name {
            "README.md" => posenc_report::with_answers(&page, report),
            _ => posenc_report::with_speed(&page, &reference.benchmarks)?,
        };
        pages.extend(fresh.filter(|fresh| *fresh != page).map(|fresh| (name, fresh)));
    }
    Ok(pages)
}

/// Renders the report of the reference records alone. `in_place`: the report is in `report/`, next to the records.
pub fn render_reference(
    catalog: &Catalog,
    reference: &Records,
    in_place: bool,
) -> Result<posenc_report::Report> {
    let report = posenc_report::render(&Inputs {
        catalog,
        reference,
        local: None,
        repository: "..",
        record: in_place.then_some("record"),
        local_record: None,
    })?;
    Ok(report.with_notice_about(&catalog.broken))
}

/// Maximum number of changed verdicts to list; further ones are only counted.
const LISTED: usize = 20;
/// Maximum number of first verdicts to list. All those of a first run are on its pages.
const FEW: usize = 5;

/// Prints claims whose verdict is not what it was in an earlier report of the same folder.
pub fn print_changed_verdicts(
    before: &BTreeMap<String, Verdict>,
    after: &BTreeMap<String, Verdict>,
) {
    let earlier = |claim: &String| before.get(claim).copied().unwrap_or(Verdict::NotRun);
    let changed = after.iter().filter(|(claim, verdict)| earlier(claim) != **verdict);
    let (new, changed): (Vec<_>, Vec<_>) =
        changed.partition(|(claim, _)| earlier(claim) == Verdict::NotRun);
    let named = |claim: &String| claim.replacen('#', " ", 1);
    if !new.is_empty() {
        eprintln!("claims with a first verdict: {}", new.len());
    }
    for (claim, verdict) in new.iter().filter(|_| new.len() <= FEW) {
        eprintln!("  {}: {} ({})", named(claim), verdict.sign(), verdict.name());
    }
    if !changed.is_empty() {
        eprintln!("verdicts that changed: {}", changed.len());
    }
    for (claim, verdict) in changed.iter().take(LISTED) {
        let (before, after) = (earlier(claim).sign(), verdict.sign());
        eprintln!("  {}: {before} → {after} ({})", named(claim), verdict.name());
    }
    if changed.len() > LISTED {
        eprintln!("  and {} more", changed.len() - LISTED);
    }
}
