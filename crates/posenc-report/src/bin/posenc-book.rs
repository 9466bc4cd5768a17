//! `posenc-book`, which `cargo xtask book` builds and starts.

#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

// These macros escape control characters. All text of files reaches the terminal through them.
#[macro_use(eprintln, println)]
extern crate posenc_files;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Parser;
use posenc_experiments::Catalog;
use posenc_report::{Inputs, Records};

/// Renders the report and the documents as a static site that needs no server.
#[derive(Parser)]
#[command(name = "cargo xtask book", version, max_term_width = 100)]
struct Arguments {
    /// Output directory of the site. Default: out/book in the repository.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Records of this machine to show next to the reference. Default: out/record in the repository.
    #[arg(long, value_name = "DIR")]
    record: Option<PathBuf>,
    /// Show only the reference records.
    #[arg(long, conflicts_with = "record")]
    reference: bool,
    /// Open the first page in a browser ($BROWSER, or the system default).
    #[arg(long)]
    open: bool,
    /// Root of the repository.
    #[arg(long, value_name = "DIR", env = "POSENC_ROOT", default_value = ".")]
    root: PathBuf,
}

fn main() -> ExitCode {
    posenc_files::terminal::escape_panics();
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: &Arguments) -> Result<()> {
    let root = &arguments.root;
    if !root.join("experiments").is_dir() || !root.join("data").is_dir() {
        bail!(
            "{} is not a posenc repository: it needs the folders experiments/ and data/",
            root.display()
        );
    }
    let out = arguments.out.clone().unwrap_or_else(|| root.join("out/book"));
    let catalog = Catalog::read(root, posenc_protocols::KINDS)?;
    let reference = Records::read(&root.join("report/record"), &catalog)?;
    let local = local(arguments, &catalog)?;
    let report = posenc_report::render(&Inputs {
        catalog: &catalog,
        reference: &reference,
        local: local.as_ref(),
        repository: "..",
        record: None,
        local_record: None,
    })?;
    for remark in posenc_report::book::build(&report, root, &out)? {
        eprintln!("{remark}");
    }
    let first = out.join("index.html");
    println!("{}", first.display());
    if arguments.open {
        open(&first)?;
    }
    Ok(())
}

/// The records of this machine, if there are any.
fn local(arguments: &Arguments, catalog: &Catalog) -> Result<Option<Records>> {
    if arguments.reference {
        return Ok(None);
    }
    let directory = match &arguments.record {
        Some(given) if !given.is_dir() => {
            bail!(
                "{} is not a directory of records; `cargo xtask reproduce` writes one",
                given.display()
            )
        }
        Some(given) => given.clone(),
        None => arguments.root.join("out/record"),
    };
    let records = Records::read(&directory, catalog)?;
    Ok((!records.items.is_empty()).then_some(records))
}

/// Opens a page in a browser: the program in `BROWSER`, or the system default.
fn open(page: &Path) -> Result<()> {
    let page = std::path::absolute(page).with_context(|| format!("the path {}", page.display()))?;
    opener::open_browser(&page).with_context(|| {
        format!("{} cannot be opened; open it in a browser, or set BROWSER", page.display())
    })
}
