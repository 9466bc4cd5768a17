//! `new embedder`: writes an experiment that compares the new embedder with a Gaussian and random Fourier features, and without
//! `--formula` also the embedder's code.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use posenc_experiments::schema::MODELINE;
use posenc_experiments::{Experiment, yaml::Document};
use posenc_files::terminal::print_lines;
use posenc_math::embedder::{self, EmbedderSpec, ParameterValue};
use posenc_math::random::stream;
use posenc_math::spectrum::circulant_stable_rank;

use super::changes::Changes;
use super::{Name, Target, fill, quoted};
use crate::arguments::NewEmbedder;
use posenc_harness::repository::Repository;
use posenc_protocols::KINDS;

const CODE: &str = include_str!("templates/embedder.rs.txt");
const EXPERIMENT: &str = include_str!("templates/embedder.yaml");
const SAME_RANK: &str = include_str!("templates/same-rank.yaml");
const RISES: &str = include_str!("templates/rank-rises.yaml");
const FOLDER: &str = "crates/posenc-math/src/embedder";
const ANCHOR: &str = "// new kinds: above this line";
/// Width of the starting profile exp(-|u|/w) in the experiment.
const WIDTH: f64 = 0.01;
/// Number of training samples per axis of the template's rows and images.
const ROWS: usize = 256;
const IMAGES: usize = 64;

pub fn embedder(repository: &Repository, options: &NewEmbedder) -> Result<()> {
    let root = repository.root();
    let (target, catalog) = Target::find(root, options.include.as_deref())?;
    let name = Name::parse(&options.name)?;
    let snake = name.snake();
    if let Some(kind) = embedder::registry().iter().find(|k| k.name.replace('-', "_") == snake) {
        bail!("`{}` is a kind of embedder already ({})", kind.name, kind.label);
    }
    let mut changes = Changes::new(root);
    let mut next = format!("  {}", target.command(&name));
    let text = match &options.formula {
        Some(psi) => of_formula(&name, psi, &numbers(&options.set)?)?,
        None => {
            plan_code(root, &name, &mut changes)?;
            next = format!(
                "  write your formula at the places marked HERE in {FOLDER}/{snake}.rs\n  cargo xtask test {snake}\n{next}"
            );
            of_code(&name)?
        }
    };
    let text = text.replacen("paper: extensions\n", &format!("paper: {}\n", target.key), 1);
    let text = text.replacen(MODELINE, &target.modeline()?, 1);
    changes.create(target.experiment_file(&catalog, &name)?, text)?;
    target.register(&name, &format!("{} as an embedder", name.prose()), &mut changes)?;
    // This binary does not know a kind whose code it has just written.
    let is_known = options.formula.is_some();
    changes.write(|| if is_known { target.check_catalog(&name) } else { Ok(()) })?;
    print_lines(&format!("wrote\n{}next\n{next}\n", changes.summary()));
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
    let values = [("kebab", name.kebab()), ("camel", name.camel()), ("prose", name.prose())];
    changes.create(format!("{FOLDER}/{snake}.rs").into(), fill(CODE, &values))?;
    changes.insert(&Path::new(FOLDER).join("mod.rs"), ANCHOR, &snake)
}

/// Parses `--set` of a formula; all values must be numbers.
fn numbers(set: &[String]) -> Result<BTreeMap<String, f64>> {
    const KEYS: [&str; 7] = ["kind", "dimension", "boundary", "scaling", "psi", "label", "latex"];
    let mut numbers = BTreeMap::new();
    for text in set {
        let pair =
            text.split_once('=').and_then(|(n, v)| Some((n.trim(), v.trim().parse::<f64>().ok()?)));
        let Some((name, value)) = pair.filter(|(n, v)| v.is_finite() && !n.is_empty()) else {
            bail!("--set {text}: expected NAME=NUMBER, such as w=0.01");
        };
        if KEYS.contains(&name) {
            bail!("--set {text}: `{name}` is a key of every formula; give the number another name");
        }
        if numbers.insert(name.to_owned(), value).is_some() {
            bail!("--set {text}: `{name}` appears twice");
        }
    }
    Ok(numbers)
}

/// The experiment of a formula: Gaussian and RFF get the formula's stable rank.
fn of_formula(name: &Name, psi: &str, numbers: &BTreeMap<String, f64>) -> Result<String> {
    let psi = psi.trim();
    let spec = |boundary: &str| {
        let spec = EmbedderSpec::new(embedder::names::FORMULA).number("dimension", 2000.0);
        let spec = spec.text("psi", psi).text("boundary", boundary);
        numbers.iter().fold(spec, |spec, (name, value)| spec.number(name, *value))
    };
    for boundary in ["periodic", "open"] {
        embedder::validate(&spec(boundary))
            .context("--formula (--set NAME=VALUE sets a parameter of the formula)")?;
    }
    let rank = dense_stable_rank(&spec("periodic"))?;
    let mut parameters = format!("psi: {}", quoted(psi));
    for (name, value) in numbers {
        parameters += &format!(", {}: {}", key(name), ParameterValue::Number(*value).display());
    }
    let shown = psi.split_whitespace().collect::<Vec<_>>().join(" ").replace('`', "'");
    let mut shows = format!(
        "We compare the profile `{shown}` of $u = t - x$ with a Gaussian and random Fourier features. For dense samples, all have the stable rank {}.",
        significant(rank)
    );
    if rank > IMAGES as f64 {
        shows += &format!(
            " The images have {IMAGES} samples per axis, fewer than this rank: D vanishes within a sample distance, so they are of little use for a comparison."
        );
    }
    let matching = "the formula's stable rank R for dense samples,";
    let text = experiment(name, &shows, matching, rank, SAME_RANK);
    checked(fill(&text, &[("kind", embedder::names::FORMULA.into()), ("parameters", parameters)]))
}

/// The experiment of the starting profile exp(-|u|/w), of stable rank 1/(4w).
fn of_code(name: &Name) -> Result<String> {
    let shows = "We compare a profile of $u = t - x$ with a Gaussian and random Fourier features of about the same stable rank for dense samples.";
    let matching = "the starting profile's stable rank R, 1/(4 width) =";
    let text = experiment(name, shows, matching, 0.25 / WIDTH, RISES);
    let parameters = format!("width: {WIDTH}");
    // The kind is not compiled yet, so a formula replaces it for the check of the text.
    let formula = format!("psi: \"exp(-abs(u)/width)\", {parameters}");
    let known = [("kind", embedder::names::FORMULA.to_owned()), ("parameters", formula)];
    checked(fill(&text, &known))?;
    Ok(fill(&text, &[("kind", name.kebab()), ("parameters", parameters)]))
}

/// The experiment without the kind and the parameters of the embedder. Gaussian and RFF get the stable rank `rank`.
fn experiment(name: &Name, shows: &str, matching: &str, rank: f64, claim: &str) -> String {
    let pi = std::f64::consts::PI;
    let values = [
        // The claim contains placeholders, so it comes first.
        ("claim", claim.trim_end().to_owned()),
        ("matching", format!("{matching} {}", significant(rank))),
        ("kebab", name.kebab()),
        ("prose", name.prose()),
        ("lines", dimension(rank, ROWS).to_string()),
        ("images", dimension(rank, IMAGES).to_string()),
        ("sigma", significant(0.5 / (pi.sqrt() * rank))),
        ("frequency", significant(rank / (2.0 * pi).sqrt())),
        ("shows", shows.to_owned()),
    ];
    fill(EXPERIMENT, &values)
}

/// An embedding dimension for N samples per axis. With fewer than about four features per unit of stable rank, centers are too far apart,
/// and a square matrix of random features is ill-conditioned: the comparison would be one of dimensions.
fn dimension(rank: f64, samples: usize) -> usize {
    let wanted = 4.0 * rank.min(samples as f64);
    (wanted.ceil() as usize).max(samples).next_power_of_two()
}

/// The text of an experiment, if it can be read.
fn checked(text: String) -> Result<String> {
    Experiment::from_document(&Document::parse(Path::new("the new experiment"), &text)?, KINDS)?;
    Ok(text)
}

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
    let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if is_plain { name.to_owned() } else { quoted(name) }
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
            ("u*0", &[], "is 0 for every u"),
            ("w", &["w=1"], "does not contain u"),
            ("{{kebab}}", &[], "psi"),
        ] {
            let error = check(psi, set).unwrap_err();
            assert!(error.contains(part), "{psi} {set:?}: {error}");
        }
        assert!(check("1/(1+(u/w)^2)", &["w=0.1"]).is_ok());
    }
}
