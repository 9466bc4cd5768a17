//! Formulas of experiments on the page of embedders.

use posenc_math::embedder::registry;
use posenc_report::Records;

use crate::common::{page, paper_yaml, rendered, repository};

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

/// Catches a formula that is shown twice or not at all, and a formula that cannot be drawn and makes the report fail.
#[test]
fn formulas_of_experiments_are_drawn_once() {
    let lorentz = "kind: formula, dimension: 8, psi: \"1/(1+(u/w)^2)\", w: 0.1";
    let wider = "kind: formula, dimension: 8, psi: \"1/(1+(u/w)^2)\", w: 0.2";
    // Zero at all sampled positions.
    let vanishing = "kind: formula, dimension: 8, psi: \"max(0, 1-1000000*abs(u-0.001))\"";
    let files = [
        ("experiments/demo/paper.yaml", &*paper_yaml("demo", &["fig1", "fig2"])),
        ("experiments/demo/fig1.yaml", &experiment("fig1", &[lorentz, vanishing])),
        ("experiments/demo/fig2.yaml", &experiment("fig2", &[wider])),
    ];
    let catalog = repository(&files).unwrap();
    let report = rendered(&catalog, &Records::default(), None);
    let page = page(&report, "embedders.md");
    assert_eq!(page.matches("\n### ").count(), 2, "{page}");
    let section = page.split("### V0\n").nth(1).unwrap().split("\n### ").next().unwrap();
    for part in ["`1/(1+(u/w)^2)`", "w: 0.1", "[fig1](demo/fig1.md), [fig2](demo/fig2.md)"] {
        assert!(section.contains(part), "{part}: {section}");
    }
    let section = page.split("### V1\n").nth(1).unwrap();
    assert!(section.contains("*Not drawn: all features are zero"), "{section}");
    let drawn = report.files.keys().filter(|file| file.starts_with("figures/embedders")).count();
    assert_eq!(drawn, registry().len() + 1);
}
