//! Checks every erratum with the published values in `data/papers`, and mutations that must fail.

use super::*;
use std::collections::{BTreeMap, BTreeSet};

/// Rows of the three published tables: key without abscissa → (abscissa, value).
struct Tables(BTreeMap<String, Vec<(Option<f64>, f64)>>);

impl Tables {
    fn read() -> Self {
        let files = [
            ("rethinking", include_str!("../../../../data/papers/rethinking.csv")),
            ("trading", include_str!("../../../../data/papers/trading.csv")),
            ("lff", include_str!("../../../../data/papers/lff.csv")),
        ];
        let mut tables: BTreeMap<String, Vec<(Option<f64>, f64)>> = BTreeMap::new();
        for (paper, text) in files {
            for line in text.lines().skip(1) {
                let f: Vec<&str> = line.split(',').collect();
                assert_eq!(f.len(), 11, "{paper}: {line}");
                if !f[6].is_empty() {
                    let key = [paper, f[0], f[1], f[2], f[4]].join("|");
                    let x = (!f[5].is_empty()).then(|| f[5].parse().unwrap());
                    tables.entry(key).or_default().push((x, f[6].parse().unwrap()));
                }
            }
        }
        Self(tables)
    }

    fn lookup(&self) -> Box<Published<'_>> {
        Box::new(|paper, item, group, method, metric, x| {
            let rows = self.0.get(&[paper, item, group, method, metric].join("|"))?;
            let same = |at: &Option<f64>| match (at, x) {
                (Some(a), Some(b)) => numeric::close(*a, b, 1e-9),
                (None, None) => true,
                _ => false,
            };
            rows.iter().find(|(at, _)| same(at)).map(|(_, value)| *value)
        })
    }
}

/// Catches a published value that no erratum uses any more, and one that no experiment measures and that is not listed.
#[test]
fn quoted_values_are_used() {
    let tables = Tables::read();
    let used = std::cell::RefCell::new(BTreeSet::new());
    let lookup = |paper: &str, item: &str, group: &str, method: &str, metric: &str, x| {
        used.borrow_mut().insert([paper, item, group, method, metric].join("|"));
        tables.lookup()(paper, item, group, method, metric, x)
    };
    for Erratum { check, .. } in all() {
        check(&Inputs { published: &lookup, seed: 0 }).unwrap();
    }
    let is_quoted = |key: &&String| quotes(key.split('|').collect::<Vec<_>>().try_into().unwrap());
    let quoted: Vec<&String> = tables.0.keys().filter(is_quoted).collect();
    assert_eq!(quoted.len(), 38, "{quoted:#?}");
    assert!(quoted.iter().all(|key| used.borrow().contains(*key)), "{quoted:#?}");
}

fn erratum(id: &str) -> &'static Erratum {
    all().into_iter().find(|e| e.id == id).unwrap()
}

/// Catches a check that its own numbers do not support or that holds for one seed only, and quantities without numbers.
#[test]
fn every_erratum_holds_at_any_seed() {
    let tables = Tables::read();
    for seed in 0..6 {
        let inputs = Inputs { published: &tables.lookup(), seed };
        for Erratum { id, check, .. } in all() {
            let Finding { quantities, holds } =
                check(&inputs).unwrap_or_else(|e| panic!("{id}: {e}"));
            for q in &quantities {
                let numbers: Vec<f64> =
                    [q.printed, q.measured, q.corrected].into_iter().flatten().collect();
                assert!(!numbers.is_empty(), "{id}: {}", q.name);
                assert!(numbers.iter().all(|v| v.is_finite()), "{id}: {}", q.name);
            }
            assert!(holds, "{id} is not confirmed at seed {seed}: {quantities:#?}");
        }
    }
}

/// Catches a section that is not parsed, a check without a text, a duplicate id, and text that the report cannot render.
#[test]
fn descriptions_are_complete() {
    let errata = all();
    for ((text, checks), paper) in PAPERS.into_iter().zip(["rethinking", "trading", "lff"]) {
        let own: BTreeSet<&str> =
            errata.iter().map(|e| e.id).filter(|id| id.starts_with(paper)).collect();
        assert_eq!(
            (own.len(), own.len()),
            (text.matches("\n## ").count(), checks.len()),
            "{paper}"
        );
    }
    for e in errata {
        for text in [e.place, e.printed, e.correct, e.consequence] {
            assert!(!text.is_empty() && !text.contains(['\n', '\t']), "{}: {text}", e.id);
            assert!(text.matches('$').count() % 2 == 0, "{}: unbalanced $ in {text}", e.id);
            assert!(!text.contains("  "), "{}: doubled space in {text}", e.id);
        }
    }
}

/// A check must fail if the published value it depends on changes.
#[test]
fn a_true_claim_is_no_erratum() {
    for (id, key, x, value) in [
        ("rethinking-fig8-layers", "fig8|real|none|stable_rank_layer1_final", None, 3.0),
        ("rethinking-fig8-order", "fig8|real|RFF|final_train_psnr", None, 40.0),
        ("rethinking-sigma-roles", "fig7|n=256|Gaussian|train_psnr", Some(1e-4), 9.0),
        (
            "rethinking-sigma-product",
            "sec4-1|constant|Gaussian and RFF|sigma_product_printed",
            None,
            0.112_539_54,
        ),
        ("rethinking-learning-rates", "sec5-2|constant|Impulse|lr", None, 1e-4),
        ("trading-speedup-video", "table4|claim|complex vs simple|speedup", None, 100.0),
        ("trading-extra-layer", "fig12|complex-gd-deep|RFF|test_psnr", Some(1.0), 21.6),
        ("trading-input-width", "table3|simple|all|dim", None, 768.0),
        ("trading-video-depth", "table4|simple|Gau|params", None, 1_183_235.0),
        // Frequencies 1 to 128 on 256 positions are almost orthogonal, so the closed form would be unique.
        ("trading-closed-form-solver", "table1|closed-form|LinF|encoder_param", None, 7.0),
        ("lff-table2-average", "table1|learned|Learnable-Fourier+MLP-4/1|cider", None, 99.1),
        ("lff-claim-groupings", "table1|learned|Learnable-Fourier+MLP-2/2|cider", None, 99.2),
        ("lff-claim-consistent", "table1|learned|Learnable-Fourier+MLP-1/4|spice", None, 17.7),
        ("lff-claim-learnability", "table1|fixed|Fixed-Fourier+MLP-2/2|cider", None, 98.0),
        (
            "lff-table5-order",
            "table5|widget-captioning|Learnable-Fourier+MLP-2/2|params",
            None,
            5.08,
        ),
        ("lff-reformer-throughput", "fig3|setup|all|images_per_core", None, 1.0),
        ("lff-detr-steps", "fig4|caption|DETR|training_steps", None, 90_000.0),
        ("lff-gamma-captions", "fig8|setup|Learnable-Fourier+MLP-2/2|gamma", None, 100.0),
    ] {
        let mut tables = Tables::read();
        let erratum = erratum(id);
        let rows = tables.0.get_mut(&format!("{}|{key}", erratum.paper())).unwrap();
        rows.iter_mut().find(|(at, _)| *at == x).unwrap().1 = value;
        let finding = (erratum.check)(&Inputs { published: &tables.lookup(), seed: 0 }).unwrap();
        assert!(!finding.holds, "{id} holds for any published value");
    }
}

/// Catches a lookup that treats a missing number as zero, or an unhelpful message.
#[test]
fn a_missing_value_is_named() {
    let none = |_: &str, _: &str, _: &str, _: &str, _: &str, _: Option<f64>| None;
    let inputs = Inputs { published: &none, seed: 0 };
    let message = (erratum("rethinking-sigma-roles").check)(&inputs).unwrap_err().to_string();
    assert!(
        message.contains("fig7") && message.contains("data/papers/rethinking.csv"),
        "{message}"
    );
    assert!(message.contains("x = 0.0001"), "{message}");
}
