//! Counts of statements, data that the paper did not use, and records with uncommitted changes.

use std::fs;
use std::path::Path;

use jsonschema::{Draft, JSONSchema};
use posenc_experiments::Catalog;
use posenc_experiments::verdict::{Evidence, Verdict};
use posenc_report::{Records, Report};
use serde_json::{Value, json};

use crate::common::{
    REFERENCE, catalog, catalog_with, changed_catalog, markdown, page, records, rendered,
};

/// A report of the small repository.
fn report(reference: &Records) -> Report {
    rendered(&catalog(), reference, None)
}

/// The small repository with changed files and a list of statements.
fn covered(list: &str, change: impl Fn(&str) -> String) -> Catalog {
    catalog_with(&[("data/papers/demo.coverage.yaml", list)], change).expect("a catalog")
}

/// Catches counts that do not add up, and a statement that is counted twice or as holding despite an erratum without a check.
#[test]
fn statements_add_up() {
    let list = "- { section: \"1\", statement: A., claims: [fig1#rises, fig1#order] }\n\
                - { section: \"2\", statement: B., claims: [fig1#saturation] }\n\
                - { section: \"3\", statement: C., claims: [fig1#rises], erratum: rethinking-eq13 }\n\
                - { section: \"4\", statement: D., claims: [table1#gau] }\n\
                - { section: \"5\", statement: E., none: no data }\n";
    let known = posenc_math::errata::all().iter().map(|erratum| erratum.id).next().expect("errata");
    let list = list.replace("rethinking-eq13", known);
    for reference in [records(REFERENCE), Records::default()] {
        let report = rendered(&covered(&list, str::to_owned), &reference, None);
        let text = page(&report, "coverage/demo.md");
        assert!(text.contains("| 5 | E. | – not tested here | *Not tested:* no data |"), "{text}");
        // Its erratum has no check on record.
        assert!(text.contains("| 3 | C. | ? undecided |") || reference.items.is_empty(), "{text}");
        let first = page(&report, "README.md");
        let line = first.lines().find(|line| line.starts_with("| All |")).expect("the sum");
        let numbers: Vec<usize> =
            line.split('|').filter_map(|number| number.trim().parse().ok()).collect();
        assert_eq!((numbers.len(), numbers[0]), (6, 5), "{line}");
        assert_eq!(numbers[1..].iter().sum::<usize>(), 5, "{line}");
    }
    // A run of this machine has its own statuses and verdicts.
    let own = covered(&list, str::to_owned);
    let report = rendered(&own, &Records::default(), Some(&records(REFERENCE)));
    let text = page(&report, "coverage/demo.md");
    assert!(text.contains("| Status (reference run) | Status (this machine) |"), "{text}");
    assert!(
        text.contains("–\u{a0}not\u{a0}run / ?\u{a0}not\u{a0}decided: [Figure 1, rises]"),
        "{text}"
    );
    assert!(text.contains("**This machine.** Of 5 statements, 1 hold or tend to"), "{text}");
    // Statements that this machine has not run differ from those that have no claim.
    let question = "data: [pictures]\nquestion: Why?\nuntested: those of the reference\n";
    let catalog = covered(&list, |text| text.replace("data: [pictures]\n", question));
    let report = rendered(&catalog, &records(REFERENCE), Some(&Records::default()));
    let text = page(&report, "coverage/demo.md");
    let not_run = "0 are undecided, 4 were not run here (`cargo xtask reproduce demo --profile paper` runs those whose data are available) and 1 were not tested.";
    assert!(text.contains(not_run), "{text}");
    assert!(text.contains("| 4 | D. | ✓ holds | – not run here |"), "{text}");
    let first = page(&report, "README.md");
    assert!(first.contains("*Not run (this machine):* 4 of 5 statements; `cargo"), "{first}");
    assert_eq!(first.matches("those of the reference").count(), 1, "{first}");
}

/// Catches a field, a verdict or a class of evidence of `claims.json` that its schema does not have.
#[test]
fn claims_follow_their_schema() {
    let report = report(&records(REFERENCE));
    let parsed = |name| serde_json::from_str::<Value>(&page(&report, name)).expect("JSON");
    let schema = parsed("claims.schema.json");
    let validator = JSONSchema::options().with_draft(Draft::Draft7).compile(&schema);
    let validator = validator.unwrap_or_else(|e| panic!("not a schema: {e}"));
    let claims = parsed("claims.json");
    assert!(claims["claims"].as_array().is_some_and(|all| !all.is_empty()));
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../report/claims.json");
    let text = fs::read_to_string(file).expect("claims");
    let committed: Value = serde_json::from_str(&text).expect("JSON");
    for claims in [&claims, &committed] {
        let problems: Vec<String> = match validator.validate(claims) {
            Ok(()) => Vec::new(),
            Err(errors) => errors.map(|e| format!("{}: {e}", e.instance_path)).collect(),
        };
        assert!(problems.is_empty(), "{}", problems.join("\n"));
    }
    // A standard deviation over ten seeds is not a mean of one unit.
    let mut all = committed["claims"].as_array().expect("a list").iter();
    let own = all.find(|claim| claim["id"] == "rethinking/fig5#rff-steadies-with-dimension");
    let number = &own.expect("the claim")["numbers"][0];
    assert_eq!([&number["statistic"], &number["n"]], [&json!("deviation"), &json!(10)]);
    assert!(number["x"].is_object(), "{number}");
    let allowed = |key| &schema["$defs"]["claim"]["properties"][key]["enum"];
    assert_eq!(*allowed("verdict"), Value::from_iter(Verdict::ALL.map(Verdict::name)));
    let evidence = Evidence::ALL.map(|class| Value::from(class.name()));
    assert_eq!(*allowed("evidence"), Value::from_iter(evidence.into_iter().chain([Value::Null])));
}

/// Catches numbers on a data set that the paper did not use, if they count as the paper's or are compared with its
/// printed values.
#[test]
fn sets_that_the_paper_did_not_use_are_other_data() {
    let reference = records(REFERENCE);
    let of = |paper: &str| {
        let change = |text: &str| text.replace("data: [pictures]", paper);
        let catalog = changed_catalog(change).expect("a catalog");
        let report = rendered(&catalog, &reference, None);
        let claims = page(&report, "claims.json");
        let claims: serde_json::Value = serde_json::from_str(&claims).expect("JSON");
        let all = claims["claims"].as_array().expect("a list");
        let gau = all.iter().find(|c| c["id"] == "demo/table1#gau").expect("a claim");
        let page = page(&report, "demo/table1.md");
        ([&gau["evidence"], &gau["verdict"]].map(|text| text.as_str().map(str::to_owned)), page)
    };
    let (own, page) = of("data: [pictures]");
    assert_eq!(own[0].as_deref(), Some("paper's data, full"));
    assert!(!page.contains("which the paper did not use"), "{page}");
    let (other, page) = of("data: [others]");
    assert_eq!(other.map(|text| text.expect("a text")), ["other data", "not comparable"]);
    assert!(page.contains("- **Data: pictures**, which the paper did not use (`"), "{page}");
}

/// Catches a record with uncommitted changes that has no label, even if only rows of an earlier run are affected.
#[test]
fn records_with_uncommitted_changes_are_marked() {
    let mut reference = records(REFERENCE);
    let label = "Recorded with uncommitted changes";
    let count = |n: usize| format!("{n} of 4 items have rows that were recorded with uncommitted");
    let all = markdown(&report(&reference));
    assert!(all.contains(label) && all.contains(&count(4)));
    reference.items.values_mut().for_each(|r| r.provenance.commit = "0123456789ab".into());
    let all = markdown(&report(&reference));
    assert!(!all.contains(label) && !all.contains(&count(0)) && !all.contains("earlier runs"));

    let record = reference.items.get_mut(&("demo".into(), "fig1".into())).expect("a record");
    record.provenance.commits.insert("rank/RFF".into(), "ffff-dirty".into());
    let changed = report(&reference);
    let own = page(&changed, "demo/fig1.md");
    assert!(own.contains(&format!("**{label}:** commit `ffff-dirty` for `rank` (`RFF`)")), "{own}");
    assert!(own.contains("- rows of earlier runs: `ffff-dirty` for `rank` (`RFF`)"), "{own}");
    assert!(markdown(&changed).contains(&count(1)));
}
