//! The gallery of embedders: all kinds, and the formulas of experiments.

use std::fs;
use std::path::Path;

use posenc_experiments::Catalog;
use posenc_math::embedder::registry;
use posenc_report::{Inputs, Records, render};

const PAPER: &str = "\
key: demo
title: Demo
authors: [A B]
venue: V
year: 2024
summary: S
items:
  - { item: fig1, name: Figure 1, title: One }
  - { item: fig2, name: Figure 2, title: Two }
";

/// An experiment with these variants.
fn experiment(item: &str, variants: &[&str]) -> String {
    let mut text = format!(
        "paper: demo\nitem: {item}\nkind: figure\ntitle: T\nshows: S\ngroups:\n  - id: one\n    \
         protocol: {{ kind: stable-rank, samples: [4] }}\n    variants:\n"
    );
    for (i, variant) in variants.iter().enumerate() {
        text.push_str(&format!("      - {{ id: V{i}, embedder: {{ {variant} }} }}\n"));
    }
    text
}

fn gallery(experiments: &[(&str, &[&str])]) -> (String, Vec<String>) {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("experiments/demo");
    fs::create_dir_all(&folder).unwrap();
    fs::create_dir_all(root.path().join("data/papers")).unwrap();
    fs::write(folder.join("paper.yaml"), PAPER).unwrap();
    for (item, variants) in experiments {
        fs::write(folder.join(format!("{item}.yaml")), experiment(item, variants)).unwrap();
    }
    let catalog = Catalog::read(root.path(), posenc_protocols::KINDS).unwrap();
    let reference = Records::default();
    let report = render(&Inputs {
        catalog: &catalog,
        reference: &reference,
        local: None,
        repository: "..",
        record: None,
    })
    .unwrap();
    let page = String::from_utf8(report.files[Path::new("embedders.md")].clone()).unwrap();
    let drawn = report.files.keys().filter(|f| f.starts_with("figures/embedders"));
    (page, drawn.map(|f| f.display().to_string()).collect())
}

/// Catches a kind that is left out, or has no drawing, parameters or place in the overview.
#[test]
fn every_kind_is_drawn() {
    let (page, drawn) = gallery(&[("fig1", &["kind: gaussian, dimension: 8, sigma: 0.1"])]);
    for kind in registry() {
        let name = kind.name;
        assert!(drawn.contains(&format!("figures/embedders/{name}.svg")), "{name}: {drawn:?}");
        for part in [format!("](#{name})"), format!("<a id=\"{name}\"></a>\n\n## {}\n", kind.label)]
        {
            assert!(page.contains(&part), "{part}: {page}");
        }
    }
    assert_eq!(drawn.len(), registry().len());
    assert!(!page.contains("Not drawn"), "{page}");
    let gaussian = page.split("## Gaussian\n").nth(1).unwrap().split("\n## ").next().unwrap();
    assert!(gaussian.contains("demo [Figure 1](demo/fig1.md)."), "{gaussian}");
    assert!(
        gaussian.contains("| `sigma` | required | a number above 0 and at most 1000 |"),
        "{gaussian}"
    );
    assert_eq!(page.matches("not used in any experiment").count(), registry().len() - 1);
}

/// Catches a formula that is shown twice or not at all, and a formula that cannot be drawn and makes the report fail.
#[test]
fn formulas_of_experiments_are_drawn_once() {
    let lorentz = "kind: formula, dimension: 8, psi: \"1/(1+(u/w)^2)\", w: 0.1";
    let wider = "kind: formula, dimension: 8, psi: \"1/(1+(u/w)^2)\", w: 0.2";
    // Zero everywhere.
    let vanishing = "kind: formula, dimension: 8, psi: \"0*u\"";
    let (page, drawn) = gallery(&[("fig1", &[lorentz, vanishing]), ("fig2", &[wider])]);
    assert_eq!(page.matches("\n### ").count(), 2, "{page}");
    let section = page.split("### V0\n").nth(1).unwrap().split("\n### ").next().unwrap();
    for part in ["`1/(1+(u/w)^2)`", "w: 0.1", "[Figure 1](demo/fig1.md), [Figure 2](demo/fig2.md)"]
    {
        assert!(section.contains(part), "{part}: {section}");
    }
    let section = page.split("### V1\n").nth(1).unwrap();
    assert!(section.contains("*Not drawn: all features are zero"), "{section}");
    assert_eq!(drawn.len(), registry().len() + 1);
}
