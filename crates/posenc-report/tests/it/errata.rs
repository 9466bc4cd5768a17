//! Errata pages: texts from `posenc_math::errata`, numbers from the record.

use posenc_experiments::record::Row;

use crate::common::{page, paper_yaml, records_of, rendered, repository};

const ERRATA: &str = "\
paper: trading
item: errata
kind: extra
title: Errors
shows: Errors.
groups:
  - { id: checks, protocol: { kind: errata }, variants: [{ id: all }] }
";

fn row(method: &str, signal: &str, metric: &str, value: f64) -> Row {
    Row { signal: signal.into(), ..Row::new("checks", method, metric, value) }
}

/// Catches a check that is not run, fails or is not finite and is shown as confirmed.
#[test]
fn errata_are_shown_with_their_numbers() {
    let all = posenc_math::errata::all();
    let own: Vec<_> = all.iter().filter(|e| e.paper() == "trading").collect();
    let (first, second, third) = (own[0].id, own[1].id, own[2].id);
    let rows = vec![
        row(first, "$D(0)$", "printed", 0.25),
        row(first, "$D(0)$", "measured", 0.333_333_3),
        row(first, "$D(0)$", "corrected", 1.0 / 3.0),
        row(first, "-", "holds", 1.0),
        row(second, "q", "measured", f64::NAN),
        row(second, "-", "holds", 0.0),
    ];
    let files = [
        ("experiments/trading/paper.yaml", &*paper_yaml("trading", &["errata"])),
        ("experiments/trading/90-errata.yaml", ERRATA),
    ];
    let catalog = repository(&files).expect("a catalog");
    let report = rendered(&catalog, &records_of("trading", "errata", rows), None);
    let text = page(&report, "errata.md") + &page(&report, "trading/errata.md");
    let section = |id: &str| {
        let from = text.find(&format!("<a id=\"{id}\">")).expect("the section");
        let to = text[from + 5..].find("<a id=").map_or(text.len(), |n| from + 5 + n);
        text[from..to].to_owned()
    };
    let found = section(first);
    assert!(found.contains("| $D(0)$ | 0.25 | 0.333333 | 0.333333 |"), "{found}");
    assert!(found.contains("✓ confirmed by its check"), "{found}");
    assert!(found.contains("**Printed.**") && found.contains("**Correct.**"), "{found}");
    let found = section(second);
    assert!(found.contains("✗ not confirmed") && found.contains("| q | – | NaN |\n"), "{found}");
    assert!(section(third).contains("– check not run"));
    assert!(text.contains(&format!("1 of {}", own.len())), "{text}");
    let line = text.lines().find(|line| line.contains(&format!("#{second})"))).expect("an entry");
    assert!(line.contains(", not confirmed by its check)<br>"), "{line}");
}
