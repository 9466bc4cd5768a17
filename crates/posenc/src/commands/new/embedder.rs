//! `new embedder`: writes an experiment that compares the new embedder with a Gaussian and random Fourier features, and without
//! `--formula` also the embedder's code.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use posenc_experiments::{Catalog, Experiment, yaml::Document};
use posenc_files::terminal::print_lines;
use posenc_math::embedder::{self, EmbedderSpec, ParameterValue};
use posenc_math::random::stream;
use posenc_math::spectrum::circulant_stable_rank;

use super::changes::Changes;
use super::{Name, check_catalog, experiment_file, quoted, register};
use crate::arguments::NewEmbedder;
use posenc_harness::repository::Repository;
use posenc_protocols::KINDS;

const CODE: &str = include_str!("templates/embedder.rs.txt");
const EXPERIMENT: &str = include_str!("templates/embedder.yaml");
const FOLDER: &str = "crates/posenc-math/src/embedder";
const ANCHOR: &str = "// new kinds: above this line";
/// Width of the starting profile exp(-|u|/w) in the experiment.
const WIDTH: f64 = 0.01;
/// Number of training samples per axis of the template's rows and images.
const ROWS: usize = 256;
const IMAGES: usize = 64;

/// An embedding dimension for N samples per axis. With fewer than about four features per unit of stable rank, centers are too far apart,
/// and a square matrix of random features is ill-conditioned: the comparison would be one of dimensions.
fn dimension(rank: f64, samples: usize) -> usize {
    let wanted = 4.0 * rank.min(samples as f64);
    (wanted.ceil() as usize).max(samples).next_power_of_two()
}

pub fn embedder(repository: &Repository, options: &NewEmbedder) -> Result<()> {
    let root = repository.root();
    let catalog = Catalog::read(root, KINDS)?;
    let name = Name::parse(&options.name)?;
    check_free(&name)?;
    let mut changes = Changes::new(root);
    let next = match &options.formula {
        Some(psi) => {
            let numbers = numbers(&options.set)?;
            let text = of_formula(&name, psi, &numbers)?;
            plan_experiment(&catalog, root, &name, text, &mut changes)?;
            format!("  cargo xtask reproduce extensions/{}", name.kebab())
        }
        None => {
            plan_code(root, &name, &mut changes)?;
            plan_experiment(&catalog, root, &name, of_code(&name)?, &mut changes)?;
            format!(
                "  write your formula at the places marked HERE in {FOLDER}/{}.rs\n  \
                 cargo xtask test {}\n  \
                 cargo xtask reproduce extensions/{}",
                name.snake(),
                name.snake(),
                name.kebab()
            )
        }
    };
    if options.dry_run {
        print_lines(&changes.preview());
        return Ok(());
    }
    // This binary does not know a kind whose code it has just written.
    let is_known = options.formula.is_some();
    changes.write(|| if is_known { check_catalog(root, &name) } else { Ok(()) })?;
    print_lines(&format!("wrote\n{}next\n{next}\n", changes.summary()));
    Ok(())
}

/// Rejects the name of an existing kind.
fn check_free(name: &Name) -> Result<()> {
    let taken = |kind: &&embedder::Kind| kind.name.replace('-', "_") == name.snake();
    if let Some(kind) = embedder::registry().iter().find(taken) {
        bail!("`{}` is a kind of embedder already ({})", kind.name, kind.label);
    }
    Ok(())
}

fn plan_code(root: &Path, name: &Name, changes: &mut Changes<'_>) -> Result<()> {
    let snake = name.snake();
    let module = root.join(FOLDER);
    if !module.join("mod.rs").is_file() {
        bail!(
            "{FOLDER} does not exist, so no code can be added; give the profile as a formula: \
             --formula \"exp(-abs(u)/w)\" --set w={WIDTH}"
        );
    }
    if module.join(&snake).exists() || module.join(format!("{snake}.rs")).exists() {
        bail!("{FOLDER} has a module `{snake}` already; choose another name");
    }
    let code = fill(CODE, &base(name))?;
    changes.create(format!("{FOLDER}/{snake}.rs").into(), code)?;
    changes.insert(&format!("{FOLDER}/mod.rs"), ANCHOR, snake)
}

fn plan_experiment(
    catalog: &Catalog,
    root: &Path,
    name: &Name,
    text: String,
    changes: &mut Changes<'_>,
) -> Result<()> {
    changes.create(experiment_file(catalog, root, name)?, text)?;
    register(name, &format!("{} as an embedder", name.prose()), changes)
}

/// Parses `--set` of a formula; all values must be numbers.
fn numbers(set: &[String]) -> Result<BTreeMap<String, f64>> {
    let mut numbers = BTreeMap::new();
    for text in set {
        let pair =
            text.split_once('=').and_then(|(n, v)| Some((n.trim(), v.trim().parse::<f64>().ok()?)));
        match pair {
            Some((name, value)) if value.is_finite() && !name.is_empty() => {
                if ["kind", "dimension", "boundary", "scaling", "psi", "label", "latex"]
                    .contains(&name)
                {
                    bail!(
                        "--set {text}: `{name}` is a key of every formula; give the number another name"
                    );
                }
                if numbers.insert(name.to_owned(), value).is_some() {
                    bail!("--set {text}: `{name}` appears twice");
                }
            }
            _ => bail!("--set {text}: expected NAME=NUMBER, such as w=0.01"),
        }
    }
    Ok(numbers)
}

/// Values of the placeholders that both templates contain.
fn base(name: &Name) -> Vec<(&'static str, String)> {
    vec![("kebab", name.kebab()), ("camel", name.camel()), ("prose", name.prose())]
}

fn fill(template: &str, values: &[(&str, String)]) -> Result<String> {
    let mut text = template.to_owned();
    for (key, value) in values {
        text = text.replace(&format!("{{{{{key}}}}}"), value);
    }
    match text.find("{{") {
        Some(place) => bail!(
            "internal error: the template has an unfilled placeholder at {:?}",
            text[place..].lines().next()
        ),
        None => Ok(text),
    }
}

/// The experiment of a formula: Gaussian and RFF get the formula's stable rank.
fn of_formula(name: &Name, psi: &str, numbers: &BTreeMap<String, f64>) -> Result<String> {
    let psi = psi.trim();
    let spec = |dimension: f64, boundary: &str| {
        let mut spec = EmbedderSpec::new(embedder::names::FORMULA)
            .number("dimension", dimension)
            .text("psi", psi)
            .text("boundary", boundary);
        for (name, value) in numbers {
            spec = spec.number(name, *value);
        }
        spec
    };
    for boundary in ["periodic", "open"] {
        embedder::validate(&spec(2000.0, boundary))
            .context("--formula (--set NAME=VALUE sets a parameter of the formula)")?;
    }
    let rank = dense_stable_rank(&spec(2000.0, "periodic"))?;
    let mut keys = format!("psi: {}", quoted(psi));
    for (name, value) in numbers {
        keys.push_str(&format!(", {}: {}", key(name), ParameterValue::Number(*value).display()));
    }
    let mut shows = format!(
        "We compare the profile `{}` of $u = t - x$ with a Gaussian and random Fourier features. For dense samples, all have the stable rank {}.",
        one_line(psi),
        significant(rank)
    );
    if rank > IMAGES as f64 {
        shows.push_str(&format!(
            " The images have {IMAGES} samples per axis, fewer than this rank: D vanishes within a sample distance, so they are of little use for a comparison."
        ));
    }
    let matching = "the formula's stable rank R for dense samples,";
    let values = values(name, shows, matching, rank, SAME_RANK);
    complete(name, &values, &keys)
}

/// The experiment of the starting profile exp(-|u|/w), of stable rank 1/(4w).
fn of_code(name: &Name) -> Result<String> {
    let rank = 0.25 / WIDTH;
    let shows = "We compare a profile of $u = t - x$ with a Gaussian and random Fourier features of about the same stable rank for dense samples.";
    let matching = "the starting profile's stable rank R, 1/(4 width) =";
    let values = values(name, shows.to_owned(), matching, rank, RISES);
    // The kind is not compiled yet, so a formula replaces it for the check of the text.
    complete(name, &values, &format!("psi: \"exp(-abs(u)/width)\", width: {WIDTH}"))?;
    fill_experiment(&values, &name.kebab(), &format!("width: {WIDTH}"))
}

/// Values of the experiment's placeholders except those of the embedder. Gaussian and RFF get the stable rank `rank`.
fn values(
    name: &Name,
    shows: String,
    matching: &str,
    rank: f64,
    claims: &str,
) -> Vec<(&'static str, String)> {
    let pi = std::f64::consts::PI;
    let matching = format!(
        "  # Gaussian and RFF have {matching} {}: sigma = 1/(2 sqrt(pi) R), R/sqrt(2 pi).",
        significant(rank)
    );
    let mut values = base(name);
    values.extend([
        ("lines", dimension(rank, ROWS).to_string()),
        ("images", dimension(rank, IMAGES).to_string()),
        ("shows", shows),
        ("matching", matching),
        ("sigma", significant(0.5 / (pi.sqrt() * rank))),
        ("frequency", significant(rank / (2.0 * pi).sqrt())),
        ("claims", claims.trim_matches('\n').to_owned()),
    ]);
    values
}

/// Fills in the experiment with the kind and the parameters of the embedder.
fn fill_experiment(
    values: &[(&'static str, String)],
    kind: &str,
    parameters: &str,
) -> Result<String> {
    let mut values = values.to_vec();
    values.extend([("kind", kind.to_owned()), ("parameters", parameters.to_owned())]);
    // Claims contain placeholders, so they are inserted first.
    values.sort_by_key(|(key, _)| *key != "claims");
    fill(EXPERIMENT, &values)
}

/// Fills in the experiment of a formula and checks that the text parses.
fn complete(name: &Name, values: &[(&'static str, String)], parameters: &str) -> Result<String> {
    let text = fill_experiment(values, embedder::names::FORMULA, parameters)?;
    let document = Document::parse(Path::new(&format!("{}.yaml", name.kebab())), &text)?;
    Experiment::from_document(&document, KINDS)?;
    Ok(text)
}

const SAME_RANK: &str = r"
  - id: same-rank
    says: From 100 samples on, the stable rank of {{prose}} equals the Gaussian's within 5 %.
    source: this repository
    ours: true
    check:
      kind: agreement
      of: { group: stable-rank, method: {{prose}}, metric: stable_rank, x: { from: 100, to: 200 } }
      with: { group: stable-rank, method: Gaussian, metric: stable_rank, x: { from: 100, to: 200 } }
      tolerance: { relative: 0.05 }
";

const RISES: &str = r"
  - id: rank-rises
    says: The stable rank of {{prose}} never falls by more than 1 % of its range as samples are added.
    source: this repository
    ours: true
    check:
      kind: trend
      of: { group: stable-rank, method: {{prose}}, metric: stable_rank }
      direction: increasing
      slack: 0.01
";

fn dense_stable_rank(spec: &EmbedderSpec) -> Result<f64> {
    let embedder = embedder::build(spec, &mut stream(0, "new embedder"))?;
    let mut row = vec![0.0; embedder.dimension()];
    embedder.embed(0.0, &mut row);
    circulant_stable_rank(&row).context("--formula")
}

/// Rounds to four significant digits and formats for YAML.
fn significant(value: f64) -> String {
    let rounded: f64 = format!("{value:.3e}").parse().unwrap_or(value);
    format!("{rounded}")
}

/// A key of a YAML flow mapping, quoted if necessary: only the formula's parser restricts names of numbers.
fn key(name: &str) -> String {
    if name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
        name.to_owned()
    } else {
        quoted(name)
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('`', "'")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a template that no longer loads, and widths that do not match the stable rank.
    #[test]
    fn gaussian_and_rff_get_the_stable_rank_of_the_formula() {
        let name = Name::parse("bell").unwrap();
        let numbers = BTreeMap::from([("s".to_owned(), 0.01)]);
        let text = of_formula(&name, "exp(-u^2/(2*s^2))", &numbers).unwrap();
        for part in [
            "sigma: 0.01,",
            "sigma: 11.25 }",
            "the stable rank 28.21.",
            "psi: \"exp(-u^2/(2*s^2))\", s: 0.01",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(of_code(&name).unwrap().contains("{ kind: bell, dimension: 128, width: 0.01 }"));
    }

    /// Catches a comparison with fewer features than the stable rank needs, in which random features fail for that reason alone.
    #[test]
    fn dimensions_follow_the_stable_rank() {
        assert_eq!(
            [10.0, 16.0, 28.2, 60.0, 83.9, 500.0].map(|r| dimension(r, IMAGES)),
            [64, 64, 128, 256, 256, 256]
        );
        assert_eq!([10.0, 83.9, 500.0].map(|r| dimension(r, ROWS)), [256, 512, 1024]);
        let sinc = |w: f64| {
            let psi = "sin(PI*(u+1e-12)/w)*w/(PI*(u+1e-12))";
            let numbers = BTreeMap::from([("w".to_owned(), w)]);
            of_formula(&Name::parse("sinc").unwrap(), psi, &numbers).unwrap()
        };
        let (narrow, wide) = (sinc(0.012), sinc(0.1));
        assert!(
            narrow.contains("of little use for a comparison")
                && narrow.contains("kind: rff, dimension: 256,")
        );
        assert!(!wide.contains("of little use") && wide.contains("kind: rff, dimension: 64,"));
    }

    /// Catches a formula or a number that is accepted although no experiment could use it.
    #[test]
    fn unusable_formulas_are_refused() {
        let check = |psi: &str, set: &[&str]| {
            let set: Vec<String> = set.iter().map(|s| (*s).to_owned()).collect();
            let name = Name::parse("bell").unwrap();
            numbers(&set).and_then(|n| of_formula(&name, psi, &n)).map_err(|e| format!("{e:#}"))
        };
        for (psi, set, part) in [
            ("1/(1+(u/w)^2)", &[][..], "uses 'w'"),
            ("1/(1+(u/w)^2)", &["w"], "NAME=NUMBER"),
            ("1/(1+(u/w)^2)", &["w=a"], "NAME=NUMBER"),
            ("1/(1+(u/w)^2)", &["w=0.1", "v=1"], "does not occur"),
            ("1/(1+(u/w)^2)", &["w=0.1", "w=1"], "appears twice"),
            ("u*psi", &["psi=1"], "another name"),
            ("1/u", &[], "inf at u = 0"),
            ("u*0", &[], "zero"),
            ("{{kebab}}", &[], "psi"),
        ] {
            let error = check(psi, set).unwrap_err();
            assert!(error.contains(part), "{psi} {set:?}: {error}");
        }
        assert!(check("1/(1+(u/w)^2)", &["w=0.1"]).is_ok());
    }
}
