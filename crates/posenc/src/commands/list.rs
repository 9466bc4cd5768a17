//! `list`: prints papers, items, groups and methods, or the embedders.

use std::process::ExitCode;

use anyhow::Result;
use posenc_experiments::Profile;
use posenc_experiments::lint::{self, Finding};

use crate::arguments::List;
use posenc_harness::options::{parse_selectors, usable_catalog};
use posenc_harness::repository::Repository;
use posenc_protocols::KINDS;

pub fn list(repository: &Repository, options: &List) -> Result<ExitCode> {
    if options.embedders {
        for kind in posenc_math::embedder::registry() {
            println!("{} ({}; {})", kind.name, kind.label, kind.source);
            for p in kind.parameters {
                println!("  {}: {}; allowed: {}", p.name, p.meaning, p.rule.allowed());
            }
        }
        return Ok(ExitCode::SUCCESS);
    }
    let catalog = usable_catalog(repository, &options.include.include, KINDS)?;
    let selectors = parse_selectors(&catalog, &options.selectors)?;
    for paper in &catalog.papers {
        for item in &paper.items {
            let Some(experiment) = catalog.experiment(&paper.key, &item.item) else {
                if selectors.is_everything() {
                    println!("{}/{}: {} — no experiment yet", paper.key, item.item, item.title);
                }
                continue;
            };
            let mut groups = Vec::new();
            for group in &experiment.groups {
                let methods: Vec<_> = group
                    .variants
                    .iter()
                    .map(|v| v.id.as_str())
                    .filter(|m| selectors.matches(&paper.key, &item.item, &group.id, m))
                    .collect();
                if methods.is_empty() {
                    continue;
                }
                let profiles: Vec<_> = Profile::ALL
                    .into_iter()
                    .filter(|p| group.runs_at(*p))
                    .map(|p| match group.reduced(p) {
                        Some(_) => format!("{p} (reduced)"),
                        None => p.to_string(),
                    })
                    .collect();
                groups.push(format!(
                    "  {}: {} [{}]",
                    group.id,
                    methods.join(", "),
                    profiles.join(", ")
                ));
            }
            if !groups.is_empty() {
                println!("{}: {}", experiment.id(), experiment.title);
                groups.iter().for_each(|group| println!("{group}"));
            }
        }
    }
    let is_shown = |finding: &Finding| {
        let mut own = catalog.experiments.iter().filter(|e| e.file == finding.file);
        own.any(|e| selectors.matches_experiment(e))
    };
    for finding in lint::findings(&catalog).iter().filter(|finding| is_shown(finding)) {
        eprintln!("warning: {finding}");
    }
    Ok(ExitCode::from(u8::from(!catalog.broken.is_empty())))
}
