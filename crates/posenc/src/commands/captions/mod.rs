//! `captions`: exports generated captions of widgets for SPICE's own scorer, and reads its scores.
//!
//! The scores are only printed; neither records nor the report contain them.

mod spice;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use posenc_experiments::record::{Row, UnitCaptions};
use posenc_experiments::shell::quoted;
use posenc_experiments::{Catalog, Experiment, Profile};
use posenc_math::statistics::{mean, population_std};
use posenc_text::terminal::print_lines;

use crate::arguments::Captions;
use posenc_harness::collect::{Collected, KeptCaptions, collect};
use posenc_harness::data::{DataSets, source};
use posenc_harness::device::Devices;
use posenc_harness::options::DataOptions;
use posenc_harness::plan::Plans;
use posenc_harness::repository::Repository;
use posenc_harness::store::{Store, write_file};
use posenc_protocols::KINDS;
use posenc_protocols::captioning::Captioning;

/// The metric that replaces SPICE in records: F1 of the tuples in the grammar's own parse.
const OURS: &str = "spice";

pub fn captions(repository: &Repository, options: &Captions) -> Result<ExitCode> {
    options.export.as_deref().map_or(Ok(()), |folder| repository.check_file(folder))?;
    let catalog = Catalog::read(repository.root(), KINDS)?;
    let experiment = experiment(&catalog, &options.item)?;
    let data = DataOptions { data: None, images: Vec::new() };
    let data = DataSets::new(source(repository, &data)?, options.seed);
    let store = Store::new(&repository.out(options.out.as_deref()));
    let plans = Plans::new(&catalog, &data, repository.published_checksum(), options.seed);
    let collected = collect(experiment, &plans, &store, &Devices::cpu(), repository)?;
    let Some(collected) = collected.filter(|c| !c.captions.is_empty()) else {
        bail!(
            "no unit of {0} has captions; `cargo xtask reproduce {0}` writes them, with --force for units that ran before \
             captions were stored",
            experiment.id()
        );
    };
    announce(&collected);
    match (&options.export, &options.scores) {
        (Some(directory), _) => export(&collected, directory, &experiment.id()),
        (None, Some(directory)) => print_scores(&collected, directory),
        (None, None) => bail!("an option is missing; add --export DIR or --scores DIR"),
    }
}

fn experiment<'a>(catalog: &'a Catalog, id: &str) -> Result<&'a Experiment> {
    let has_captions = |e: &&Experiment| {
        e.groups.iter().any(|group| {
            let plan = Profile::ALL.into_iter().find_map(|profile| group.resolved(profile, 0));
            plan.is_some_and(|plan| plan.protocol.as_settings::<Captioning>().is_some())
        })
    };
    let items: Vec<&Experiment> = catalog.experiments.iter().filter(has_captions).collect();
    match items.iter().find(|experiment| experiment.id() == id) {
        Some(experiment) => Ok(experiment),
        None => {
            let ids: Vec<String> = items.iter().map(|experiment| experiment.id()).collect();
            bail!("no item `{id}` with captions; allowed: {}", ids.join(", "))
        }
    }
}

/// Prints notes about missing repetitions.
fn announce(collected: &Collected) {
    for (group, method) in &collected.incomplete {
        eprintln!("note: {group}/{method}: units are missing; `cargo xtask reproduce` runs them");
    }
    let of_unit = |row: &&Row| collected.captions.iter().any(|kept| ours(row, kept).is_some());
    let scored = collected.table.rows.iter().filter(|row| row.metric == OURS);
    let without = scored.filter(|row| !of_unit(row)).count();
    if without > 0 {
        eprintln!(
            "note: {without} units ran before captions were stored and are left out; `cargo xtask reproduce --force` runs them again"
        );
    }
}

/// The value of a row if it is our own score of the unit.
fn ours(row: &Row, kept: &KeptCaptions) -> Option<f64> {
    let fits = row.metric == OURS
        && (row.group.as_str(), row.method.as_str(), row.seed)
            == (kept.group.as_str(), kept.method.as_str(), kept.seed);
    fits.then_some(row.value)
}

/// File name for a unit: that of its raw record, which contains its key.
fn file_name(kept: &KeptCaptions) -> String {
    let name = kept.file.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    name.replace("-captions.json", ".json")
}

fn export(collected: &Collected, directory: &Path, item: &str) -> Result<ExitCode> {
    let (to, back) = (directory.join("in"), directory.join("out"));
    for kept in &collected.captions {
        let text = spice::input(&UnitCaptions::read(&kept.file)?)?;
        let file = to.join(file_name(kept));
        write_file(&file, text.as_bytes())?;
    }
    posenc_files::make_folder(&back)
        .with_context(|| format!("{} cannot be made", back.display()))?;
    println!(
        "{} units in {}; score them with the SPICE scorer, which is not part of posenc, for {}:",
        collected.captions.len(),
        to.display(),
        spice::JAVA
    );
    let word = |path: &Path| quoted(&path.display().to_string());
    let (to, back) = (word(&to), word(&back));
    println!(
        "  for f in {to}/*.json; do java -Xmx8G -jar spice-1.0.jar \"$f\" -out {back}/\"$(basename \"$f\")\" -subset -silent; done"
    );
    println!("then: cargo xtask captions {item} --scores {}", word(directory));
    Ok(ExitCode::SUCCESS)
}

/// Scores of the repetitions of a method: the scorer's and ours.
type Scores = Vec<(f64, Option<f64>)>;

fn print_scores(collected: &Collected, directory: &Path) -> Result<ExitCode> {
    let folder = directory.join("out");
    let mut methods: Vec<(String, Scores)> = Vec::new();
    let mut lacking = 0;
    for kept in &collected.captions {
        let file = folder.join(file_name(kept));
        if !posenc_files::is_there(&file) {
            eprintln!(
                "note: {}/{} seed {}: no {}",
                kept.group,
                kept.method,
                kept.seed,
                file.display()
            );
            lacking += 1;
            continue;
        }
        let widgets = UnitCaptions::read(&kept.file)?.widgets.len();
        let scores = spice::read(&file, widgets)?;
        let undefined = scores.iter().filter(|f| f.is_nan()).count();
        if undefined > 0 {
            eprintln!("note: {}: {undefined} of {widgets} scores are not numbers", file.display());
        }
        let name = format!("{}/{}", kept.group, kept.method);
        let own = collected.table.rows.iter().find_map(|row| ours(row, kept));
        let both = (spice::corpus(&scores), own);
        // Units of a method are consecutive.
        match methods.last_mut().filter(|(last, _)| *last == name) {
            Some((_, of_method)) => of_method.push(both),
            None => methods.push((name, vec![both])),
        }
    }
    if methods.is_empty() {
        bail!(
            "no scores in {}; `--export` writes the input of SPICE's scorer and prints the command that starts it",
            folder.display()
        );
    }
    print_lines(&table(&methods));
    if lacking > 0 {
        eprintln!("{lacking} of {} units have no scores", collected.captions.len());
    }
    Ok(ExitCode::SUCCESS)
}

/// One line per method: mean and population standard deviation over repetitions.
fn table(methods: &[(String, Scores)]) -> String {
    let width = methods.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0).max(6);
    let mut text = format!(
        "{:width$}  {:>5}  {:>13}  {:>22}\n",
        "method", "seeds", "SPICE", "F1 of grammar's tuples"
    );
    for (name, scores) in methods {
        let theirs: Vec<f64> = scores.iter().map(|(theirs, _)| *theirs).collect();
        let ours: Vec<f64> = scores.iter().filter_map(|(_, ours)| *ours).collect();
        let (n, theirs, ours) = (scores.len(), shown(&theirs), shown(&ours));
        text.push_str(&format!("{name:width$}  {n:>5}  {theirs:>13}  {ours:>22}\n"));
    }
    text
}

fn shown(sample: &[f64]) -> String {
    match (mean(sample), population_std(sample)) {
        (Ok(mean), Ok(deviation)) => format!("{mean:.2} ± {deviation:.2}"),
        _ => "–".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches swapped columns, another kind of standard deviation, and a mean over NaN.
    #[test]
    fn a_line_per_method() {
        let methods = vec![
            (
                "learned/Learnable-Fourier+MLP-4/1, γ 10".to_owned(),
                vec![(20.0, Some(90.0)), (24.0, Some(91.0))],
            ),
            ("b".to_owned(), vec![(f64::NAN, Some(50.0))]),
        ];
        let text = table(&methods);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3);
        assert!(lines[1].contains("2   22.00 ± 2.00            90.50 ± 0.50"), "{text}");
        assert!(lines[2].ends_with("–            50.00 ± 0.00"), "{text}");
        let widths: Vec<usize> = lines.iter().map(|line| line.chars().count()).collect();
        assert!(widths.iter().all(|w| *w == widths[0]), "{text}");
    }
}
