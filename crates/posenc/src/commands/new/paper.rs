//! `new paper`: writes a folder of experiments outside the repository, with one item.

use anyhow::{Result, bail};
use posenc_files::is_there;
use posenc_files::terminal::print_lines;

use super::changes::Changes;
use super::{Name, Target, absolute, fill, modeline};
use crate::arguments::NewPaper;
use posenc_harness::repository::Repository;

const PAPER: &str = include_str!("templates/paper.yaml");
const ITEM: &str = include_str!("templates/paper-item.yaml");

pub fn paper(repository: &Repository, options: &NewPaper) -> Result<()> {
    let root = repository.root();
    let folder = absolute(&options.include)?;
    let name = Name::parse(&options.name)?;
    if is_there(&folder.join("paper.yaml")) {
        bail!("{} has a paper.yaml already; nothing is overwritten", folder.display());
    }
    let item = Name::parse("first-item")?;
    let target =
        Target { root, folder: folder.clone(), key: name.kebab(), include: vec![folder.clone()] };
    let values = [
        ("modeline", modeline(root)?.trim_end().to_owned()),
        ("key", name.kebab()),
        ("title", name.prose()),
    ];
    let mut changes = Changes::new(root);
    changes.create(folder.join("paper.yaml"), fill(PAPER, &values))?;
    changes.create(folder.join("01-first-item.yaml"), fill(ITEM, &values))?;
    if options.dry_run {
        print_lines(&changes.preview());
        return Ok(());
    }
    changes.write(|| target.check_catalog(&item))?;
    print_lines(&format!("wrote\n{}next\n  {}\n", changes.summary(), target.command(&item)));
    Ok(())
}
