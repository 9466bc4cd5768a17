//! `new paper`: writes a folder of experiments with one item and, in the repository, its published values and statements.

use std::path::PathBuf;

use anyhow::{Result, bail};
use posenc_files::is_there;
use posenc_files::terminal::print_lines;

use super::changes::Changes;
use super::{Name, Target, absolute, fill};
use crate::arguments::NewPaper;
use posenc_harness::repository::Repository;

const PAPER: &str = include_str!("templates/paper.yaml");
const ITEM: &str = include_str!("templates/paper-item.yaml");
/// Its claim about a published value.
const PRINTED: &str = include_str!("templates/printed.yaml");
const PUBLISHED: &str = include_str!("templates/paper.csv");
const COVERAGE: &str = include_str!("templates/paper.coverage.yaml");

pub fn paper(repository: &Repository, options: &NewPaper) -> Result<()> {
    let root = repository.root();
    let name = Name::parse(&options.name)?;
    let item = Name::parse("table1")?;
    let include: Vec<PathBuf> =
        options.include.iter().map(|dir| absolute(dir)).collect::<Result<_>>()?;
    let folder = match include.first() {
        Some(folder) if folder.starts_with(absolute(&root.join("experiments"))?) => bail!(
            "{} is in experiments/, whose folders need no --include; run: cargo xtask new paper {}",
            folder.display(),
            name.kebab()
        ),
        Some(folder) => folder.clone(),
        None => PathBuf::from(format!("experiments/{}", name.kebab())),
    };
    if is_there(&root.join(&folder).join("paper.yaml")) {
        bail!("{} has a paper.yaml already; nothing is overwritten", folder.display());
    }
    let target = Target { root, folder: folder.clone(), key: name.kebab(), include };
    let values = [
        ("modeline", target.modeline()?.trim_end().to_owned()),
        ("key", name.kebab()),
        ("title", name.prose()),
        // Published values are in the repository only.
        ("printed", if target.include.is_empty() { PRINTED } else { "" }.to_owned()),
    ];
    let mut changes = Changes::new(root);
    changes.create(folder.join("paper.yaml"), fill(PAPER, &values))?;
    changes.create(folder.join("01-table1.yaml"), fill(ITEM, &values))?;
    if target.include.is_empty() {
        let beside = |end: &str| PathBuf::from(format!("data/papers/{}.{end}", name.kebab()));
        changes.create(beside("csv"), PUBLISHED.to_owned())?;
        changes.create(beside("coverage.yaml"), COVERAGE.to_owned())?;
    }
    changes.write(|| target.check_catalog(&item))?;
    print_lines(&format!("wrote\n{}next\n  {}\n", changes.summary(), target.command(&item)));
    Ok(())
}
