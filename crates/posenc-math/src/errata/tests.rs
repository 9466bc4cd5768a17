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

    fn find(&self, key: [&str; 5], x: Option<f64>) -> Option<f64> {
        let rows = self.0.get(&key.join("|"))?;
        let same = |at: &Option<f64>| match (at, x) {
            (Some(a), Some(b)) => numeric::close(*a, b, 1e-9),
            (None, None) => true,
            _ => false,
        };
        rows.iter().find(|(at, _)| same(at)).map(|(_, value)| *value)
    }
}

fn with_tables<T>(change: impl FnOnce(&mut Tables), run: impl FnOnce(&Inputs<'_>) -> T) -> T {
    let mut tables = Tables::read();
    change(&mut tables);
    let published = |p: &str, i: &str, g: &str, m: &str, k: &str, x: Option<f64>| {
        tables.find([p, i, g, m, k], x)
    };
    run(&Inputs { published: &published, seed: 0 })
}

fn erratum(id: &str) -> &'static Erratum {
    all().into_iter().find(|e| e.id == id).unwrap()
}

/// Catches a check that its own numbers do not support, and quantities without numbers.
#[test]
fn every_erratum_holds() {
    with_tables(
        |_| {},
        |inputs| {
            for erratum in all() {
                let finding =
                    (erratum.check)(inputs).unwrap_or_else(|e| panic!("{}: {e}", erratum.id));
                for q in &finding.quantities {
                    let numbers: Vec<f64> =
                        [q.printed, q.measured, q.corrected].into_iter().flatten().collect();
                    assert!(!numbers.is_empty(), "{}: {}", erratum.id, q.name);
                    assert!(numbers.iter().all(|v| v.is_finite()), "{}: {}", erratum.id, q.name);
                }
                assert!(
                    finding.holds,
                    "{} is not confirmed: {:#?}",
                    erratum.id, finding.quantities
                );
            }
        },
    );
}

/// Catches a check that holds for one seed only.
#[test]
fn findings_do_not_hang_on_the_seed() {
    let tables = Tables::read();
    let published = |p: &str, i: &str, g: &str, m: &str, k: &str, x: Option<f64>| {
        tables.find([p, i, g, m, k], x)
    };
    for seed in 1..6 {
        for erratum in all() {
            let finding = (erratum.check)(&Inputs { published: &published, seed }).unwrap();
            assert!(finding.holds, "{} at seed {seed}: {:#?}", erratum.id, finding.quantities);
        }
    }
}

/// Catches a duplicate id, a wrong paper, and text that the report cannot render.
#[test]
fn descriptions_are_complete() {
    let errata = all();
    let ids: BTreeSet<&str> = errata.iter().map(|e| e.id).collect();
    assert_eq!(ids.len(), errata.len());
    for e in errata {
        assert!(["rethinking", "trading", "lff"].contains(&e.paper()), "{}", e.id);
        for text in [e.place, e.printed, e.correct, e.consequence] {
            assert!(!text.is_empty() && !text.contains(['\n', '\t']), "{}: {text}", e.id);
            assert!(text.matches('$').count() % 2 == 0, "{}: unbalanced $ in {text}", e.id);
            assert!(!text.contains("  "), "{}: doubled space in {text}", e.id);
        }
    }
}

/// Catches a random stream shared by two errata, or one that ignores the seed.
#[test]
fn streams_differ() {
    use rand_chacha::rand_core::Rng;
    with_tables(
        |_| {},
        |inputs| {
            let first: BTreeSet<u64> = all().iter().map(|e| inputs.rng(e.id).next_u64()).collect();
            assert_eq!(first.len(), all().len());
            let other = Inputs { published: inputs.published, seed: 1 };
            assert_ne!(inputs.rng("a").next_u64(), other.rng("a").next_u64());
        },
    );
}

/// Requires that a check fails if the published value it depends on changes.
#[track_caller]
fn check_mutation(id: &str, key: &str, x: Option<f64>, value: f64) {
    let holds = with_tables(
        |tables| {
            let rows = tables.0.get_mut(key).unwrap_or_else(|| panic!("no published {key}"));
            let row = rows.iter_mut().find(|(at, _)| *at == x).unwrap();
            row.1 = value;
        },
        |inputs| (erratum(id).check)(inputs).unwrap().holds,
    );
    assert!(!holds, "{id} holds for any published value");
}

#[test]
fn a_true_claim_is_no_erratum() {
    let t1 =
        |group: &str, method: &str, metric: &str| format!("lff|table1|{group}|{method}|{metric}");
    // If the middle width were best in the notebook, its numbers would support the caption of Figure 10.
    check_mutation(
        "rethinking-fig10-best",
        "rethinking|fig10|house|Gaussian|test_psnr",
        Some(0.003),
        26.0,
    );
    check_mutation(
        "rethinking-fig8-order",
        "rethinking|fig8|real|RFF|final_train_psnr",
        None,
        40.0,
    );
    check_mutation(
        "rethinking-sigma-roles",
        "rethinking|fig7|n=256|Gaussian|train_psnr",
        Some(1e-4),
        9.0,
    );
    check_mutation(
        "rethinking-sigma-product",
        "rethinking|sec4-1|constant|Gaussian and RFF|sigma_product_printed",
        None,
        0.112_539_54,
    );
    check_mutation(
        "rethinking-learning-rates",
        "rethinking|sec5-2|constant|Impulse|lr",
        None,
        1e-4,
    );
    check_mutation(
        "trading-speedup-video",
        "trading|table4|claim|complex vs simple|speedup",
        None,
        100.0,
    );
    check_mutation(
        "trading-extra-layer",
        "trading|fig12|complex-gd|RFF|test_psnr",
        Some(1.0),
        21.6,
    );
    check_mutation("trading-input-width", "trading|table3|simple|all|dim", None, 768.0);
    check_mutation("trading-video-depth", "trading|table4|simple|Gau|params", None, 1_183_235.0);
    check_mutation(
        "lff-table2-average",
        &t1("learned", "Learnable-Fourier+MLP-4/1", "cider"),
        None,
        99.1,
    );
    check_mutation(
        "lff-claim-groupings",
        &t1("learned", "Learnable-Fourier+MLP-2/2", "cider"),
        None,
        99.2,
    );
    check_mutation(
        "lff-claim-consistent",
        &t1("learned", "Learnable-Fourier+MLP-1/4", "spice"),
        None,
        17.7,
    );
    let table5 = "lff|table5|widget-captioning|Learnable-Fourier+MLP-2/2|params";
    check_mutation("lff-table5-order", table5, None, 5.08);
    check_mutation("lff-reformer-throughput", "lff|fig3|setup|all|images_per_core", None, 1.0);
    check_mutation("lff-detr-steps", "lff|fig4|caption|DETR|training_steps", None, 90_000.0);
    check_mutation(
        "lff-gamma-captions",
        "lff|fig8|setup|Learnable-Fourier+MLP-2/2|gamma",
        None,
        100.0,
    );
}

/// Swapping the printed and the corrected values must break a finding: the measured value of each
/// deciding quantity agrees with only one of them.
#[test]
fn printed_formulas_do_not_pass_for_correct() {
    let deciding = [
        "rethinking-prop2-factor",
        "rethinking-min-envelope",
        "rethinking-prop3-spectrum",
        "rethinking-prop3-two-pi",
        "rethinking-eq17-density",
        "rethinking-eq18-sign",
        "rethinking-sigma-product",
        "trading-rect-distance",
        "trading-prop5-distance",
        "trading-prop5-bound",
        "trading-eq49-index",
        "lff-kernel-exponent",
        "lff-kernel-half",
    ];
    with_tables(
        |_| {},
        |inputs| {
            for id in deciding {
                let finding = (erratum(id).check)(inputs).unwrap();
                let swapped = finding.quantities.into_iter().map(|q| Quantity {
                    printed: q.corrected,
                    corrected: q.printed,
                    ..q
                });
                assert!(!swapped.into_iter().any(|q| q.decides(0.02)), "{id}");
            }
        },
    );
}

/// Catches a lookup that treats a missing number as zero, or an unhelpful message.
#[test]
fn a_missing_value_is_named() {
    let none = |_: &str, _: &str, _: &str, _: &str, _: &str, _: Option<f64>| None;
    let inputs = Inputs { published: &none, seed: 0 };
    let message = (erratum("rethinking-fig10-best").check)(&inputs).unwrap_err();
    assert!(
        message.contains("fig10") && message.contains("data/papers/rethinking.csv"),
        "{message}"
    );
    assert!(message.contains("x = 0.001"), "{message}");
}
