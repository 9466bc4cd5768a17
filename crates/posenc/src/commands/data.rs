//! `data list`, `data check` and `data fetch`.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use posenc_data::{DataDirectory, Fetcher, Manifest, State, Status};

use crate::arguments::{DataVerb, Fetch};
use posenc_files::terminal::print_lines;
use posenc_harness::data::source;
use posenc_harness::interrupts::Interrupts;
use posenc_harness::repository::Repository;

pub fn data(repository: &Repository, verb: &DataVerb) -> Result<ExitCode> {
    let (options, check) = match verb {
        DataVerb::List(options) => (options, false),
        DataVerb::Check(options) => (options, true),
        DataVerb::Fetch(options) => return fetch(repository, options),
    };
    let source = source(repository, options)?;
    println!("data directory: {}", source.directory().path().display());
    let statuses = if check {
        posenc_data::check(source.manifest(), source.directory())
    } else {
        posenc_data::list(source.manifest(), source.directory())
    };
    for status in &statuses {
        print_lines(&format!("{status}\n"));
    }
    let attention = check && statuses.iter().any(Status::needs_attention);
    Ok(ExitCode::from(u8::from(attention)))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum FetchResult {
    Present,
    ByHand,
    Failed,
}

fn fetch(repository: &Repository, options: &Fetch) -> Result<ExitCode> {
    let manifest = Manifest::read(&repository.manifest())?;
    let directory = DataDirectory::resolve(options.data.as_deref(), repository.root())?;
    repository.check_file(directory.path())?;
    // With handlers installed, a file size limit is a write error. Ctrl-C still ends the process, and the next run resumes.
    Interrupts::listen()?.end_at_once();
    println!("data directory: {}", directory.path().display());
    let statuses = posenc_data::list(&manifest, &directory);
    let selected = selected(&statuses, &options.sets)?;
    let mirror = options.mirror.as_deref();
    let fetcher = Fetcher { directory: &directory, mirror, patience: options.stall.0 };
    let outcomes: Vec<FetchResult> =
        selected.into_iter().map(|status| fetch_set(&manifest, &fetcher, status)).collect();
    let count = |outcome| outcomes.iter().filter(|o| **o == outcome).count();
    let (by_hand, failed) = (count(FetchResult::ByHand), count(FetchResult::Failed));
    println!(
        "present: {}, to get manually: {by_hand}, failed: {failed}",
        count(FetchResult::Present)
    );
    // Named sets must be complete.
    let is_incomplete = failed > 0 || (by_hand > 0 && !options.sets.is_empty());
    Ok(ExitCode::from(u8::from(is_incomplete)))
}

/// Sets with files that have one of these names or that one of these items uses; all sets with files if no name is given.
fn selected<'s>(statuses: &'s [Status], names: &[String]) -> Result<Vec<&'s Status>> {
    let has_name = |status: &Status, name: &str| {
        status.id == name || status.used_by.iter().any(|item| item == name)
    };
    let with_files: Vec<&Status> =
        statuses.iter().filter(|status| !matches!(status.state, State::Generated)).collect();
    for name in names {
        if !with_files.iter().any(|status| has_name(status, name)) {
            let ids: Vec<&str> = with_files.iter().map(|status| status.id.as_str()).collect();
            bail!(
                "`{name}` is neither a data set with files nor an item that uses one; allowed: {}, and items such as \
                 trading/table1",
                ids.join(", ")
            );
        }
    }
    let is_selected =
        |status: &&Status| names.is_empty() || names.iter().any(|name| has_name(status, name));
    Ok(with_files.into_iter().filter(is_selected).collect())
}

fn fetch_set(manifest: &Manifest, fetcher: &Fetcher, status: &Status) -> FetchResult {
    println!("{}: {}", status.id, status.title);
    println!("  license    {}", status.license);
    println!("  origin     {}", status.origin);
    println!("  size       {}", status.download.size());
    let files = &status.download.files;
    let root = fetcher.directory.path();
    // Keeps a set that is present in another form, such as TIFF instead of PNG, instead of replacing it by new files.
    let has_none = files.iter().all(|file| !root.join(&file.path).exists());
    if matches!(status.state, State::Present | State::NeedsVideo)
        && has_none
        && is_occupied(&status.path)
    {
        println!(
            "  present    {} (not compared; see `cargo xtask data check`)",
            status.path.display()
        );
        return FetchResult::Present;
    }
    let missing = match fetcher.missing(files) {
        Ok(missing) => missing,
        Err(error) => return failed(&status.id, error),
    };
    if files.is_empty() || missing.iter().any(|file| fetcher.address(file).is_none()) {
        println!("  get        {}", status.download.instructions(&status.id));
        return FetchResult::ByHand;
    }
    if missing.is_empty() {
        println!("  present    all files, with the checksums of the manifest");
        return FetchResult::Present;
    }
    let bar = ProgressBar::new(missing.iter().map(|file| file.bytes).sum());
    let style = "  {bar:30} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left: {msg}";
    if let Ok(style) = ProgressStyle::with_template(style) {
        bar.set_style(style);
    }
    let (mut before, mut current) = (0, None);
    let result = fetcher.fetch(&missing, &mut |file, bytes| {
        if current.as_ref() != Some(file) {
            before += current.as_ref().map_or(0, |file| file.bytes);
            bar.set_message(file.path.display().to_string());
            current = Some(file.clone());
        }
        bar.set_position(before + bytes);
    });
    bar.finish_and_clear();
    match result {
        Ok(()) => {
            println!(
                "  fetched    {} of {} files to {}, SHA-256 verified",
                missing.len(),
                files.len(),
                root.display()
            );
            compare(manifest, fetcher.directory, &status.id)
        }
        Err(error) => failed(&status.id, error),
    }
}

/// Compares a set that is complete now with its own checksum, which is that of the pixels for images.
fn compare(manifest: &Manifest, directory: &DataDirectory, id: &str) -> FetchResult {
    match Status::checked(manifest, directory, id) {
        Some(status) if status.needs_attention() => {
            eprintln!("error: {id}: {}", status.found());
            FetchResult::Failed
        }
        status => {
            status.iter().for_each(|status| println!("  {}", status.found()));
            FetchResult::Present
        }
    }
}

fn failed(id: &str, error: posenc_data::DataError) -> FetchResult {
    eprintln!("error: {id}: {error}");
    FetchResult::Failed
}

/// Whether there is a file or a non-empty folder at `path`.
fn is_occupied(path: &Path) -> bool {
    path.is_file() || std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some())
}
