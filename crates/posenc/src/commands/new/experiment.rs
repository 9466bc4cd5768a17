//! `new experiment`: copies an existing experiment, reduced to the parts that the user may want to change.

use std::collections::BTreeSet;

use anyhow::{Result, bail};
use posenc_experiments::Profile;
use posenc_experiments::derive::{NewItem, derive};
use posenc_experiments::text::{MAX_RECORD_BYTES, read_text};
use posenc_files::terminal::print_lines;

use super::changes::Changes;
use super::{Name, Target};
use crate::arguments::NewExperiment;
use posenc_harness::repository::Repository;

pub fn experiment(repository: &Repository, options: &NewExperiment) -> Result<()> {
    let root = repository.root();
    let (place, catalog) = Target::find(root, options.include.as_deref())?;
    let name = Name::parse(&options.name)?;
    let from = options.from.trim();
    let source = from.split_once('/').and_then(|(paper, item)| catalog.experiment(paper, item));
    let Some(source) = source else {
        let ids: Vec<String> = catalog.experiments.iter().map(|e| e.id()).collect();
        let hint = posenc_experiments::yaml::nearest(from, ids.iter().map(String::as_str));
        let hint = hint.map(|n| format!(" Did you mean {n}?")).unwrap_or_default();
        bail!(
            "--from {from}: no such item.{hint} `cargo xtask list` shows all, such as trading/table1."
        );
    };
    let mut resolved = source.groups.iter().filter_map(|g| g.resolved(Profile::Paper, 0));
    if resolved.any(|r| r.protocol.kind().reads_published) {
        bail!("--from {from}: it checks the errata of its paper and cannot be copied");
    }
    let known: BTreeSet<&str> = source.groups.iter().map(|g| g.id.as_str()).collect();
    if let Some(wrong) = options.group.iter().find(|g| !known.contains(g.as_str())) {
        let list: Vec<&str> = source.groups.iter().map(|g| g.id.as_str()).collect();
        bail!("--group {wrong}: {from} has no such group; allowed: {}", list.join(", "));
    }
    let text = read_text(&source.file, MAX_RECORD_BYTES)?;
    let title = format!("{}, after {from}", source.title.trim());
    let target = NewItem {
        paper: &place.key,
        item: &name.kebab(),
        title: &title,
        groups: &options.group,
        modeline: &place.modeline()?,
    };
    let derived = derive(source, &text, &target)?;

    let mut changes = Changes::new(root);
    changes.create(place.experiment_file(&catalog, &name)?, derived.text)?;
    place.register(&name, &title, &mut changes)?;
    changes.write(|| place.check_catalog(&name))?;
    println!("wrote");
    print_lines(&changes.summary());
    if !derived.left_out.is_empty() {
        println!("left out");
        derived.left_out.iter().for_each(|line| println!("  {line}"));
    }
    println!("next");
    println!("  {} --dry-run", place.command(&name));
    println!("  {}", place.command(&name));
    Ok(())
}
