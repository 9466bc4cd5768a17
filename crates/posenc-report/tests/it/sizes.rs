//! The committed report of this repository: its bytes, sizes and texts. The tests of the site check its links.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use posenc_experiments::Catalog;
use posenc_files::testing::files_below;
use posenc_report::{Records, with_answers, with_speed};

use crate::common::rendered;

/// Maximum size of a page in bytes, except the reference of protocols.
const LONGEST: usize = 72_000;
/// Maximum size of the first page, in bytes.
const FIRST: usize = 8192;
/// Maximum number of words of an answer on the page of an item; an interval has about eleven.
const ANSWER: usize = 170;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the repository").to_owned()
}

/// Markdown files of `report` and `README.md`, by path below the root.
fn pages() -> BTreeMap<PathBuf, String> {
    let root = root();
    let files = files_below(&root.join("report")).into_iter().chain([root.join("README.md")]);
    let pages = files.filter(|path| path.extension().is_some_and(|e| e == "md"));
    let page = |path: PathBuf| {
        let text = fs::read_to_string(&path).expect("text");
        (path.strip_prefix(&root).expect("below").to_owned(), text)
    };
    pages.map(page).collect()
}

/// Catches a change of what a record looks like on any page or figure, or of its verdicts, that is not committed with it. The report has
/// all kinds of panels, tables, comparisons and checks.
#[test]
fn the_committed_report_is_that_of_the_records() {
    let root = root();
    let catalog = Catalog::read(&root, posenc_protocols::KINDS).expect("a catalog");
    let reference = Records::read(&root.join("report/record"), &catalog).expect("records");
    let report = rendered(&catalog, &reference, None);
    let stale = report.check(&root.join("report")).expect("checked");
    assert!(stale.is_empty(), "run `cargo xtask report`: {stale:?}");
    assert_eq!(report.unstated, [""; 0]);
    let page = |name| fs::read_to_string(root.join(name)).expect("a page");
    let [readme, speed] = ["README.md", "docs/SPEED.md"].map(page);
    assert_eq!(with_answers(&readme, &report).expect("answers"), readme);
    let own = with_speed(&speed, &reference.benchmarks).expect("a table").expect("a block");
    assert_eq!(own, speed);
    // Catches colors without a counterpart for dark backgrounds.
    for (path, bytes) in &report.files {
        if path.extension().is_none_or(|e| e != "svg") {
            continue;
        }
        let svg = String::from_utf8_lossy(bytes);
        let style = svg.split("prefers-color-scheme: dark").nth(1).expect("a style sheet");
        for line in svg.lines().filter(|l| l.starts_with("<polyline") || l.starts_with("<text")) {
            let attribute = if line.starts_with("<text") { "fill" } else { "stroke" };
            let color = line.split(&format!("{attribute}=\"#")).nth(1).and_then(|c| c.get(..6));
            let rule = format!("[{attribute}=\"#{}\"]", color.expect("a color"));
            assert!(style.contains(&rule), "{}: {rule}", path.display());
        }
    }
}

/// Catches pages that are too long to be read.
#[test]
fn pages_are_short() {
    let pages = pages();
    let is_read = |path: &Path| path.starts_with("report") && !path.ends_with("protocols.md");
    let of_report = pages.iter().filter(|(path, _)| is_read(path));
    let long = of_report.filter(|(_, text)| text.len() > LONGEST);
    let long: Vec<_> = long.map(|(path, text)| (path.display().to_string(), text.len())).collect();
    assert_eq!(long, []);
    let first = &pages[Path::new("report/README.md")];
    assert!(first.len() <= FIRST, "report/README.md has {} bytes", first.len());
}

/// Catches answers that are too long to be read before the figure or table.
#[test]
fn answers_are_short() {
    let pages = pages();
    let is_item = |path: &Path| path.starts_with("report") && path.components().count() == 3;
    let of_items = pages.iter().filter(|(path, _)| is_item(path));
    let length = |(path, text): (&PathBuf, &String)| {
        let answer = text.split("**Our answer.** ").nth(1)?.split("\n\n").next()?;
        Some((path.display().to_string(), answer.split_whitespace().count()))
    };
    let answers: Vec<_> = of_items.filter_map(length).collect();
    assert!(!answers.is_empty());
    let long: Vec<_> = answers.into_iter().filter(|(_, words)| *words > ANSWER).collect();
    assert_eq!(long, []);
}

/// Catches a statement with an erratum next to numbers of its correction that do not say so, and a verdict that Holm's correction does not keep
/// and whose page does not mark it, or that decides a statement.
#[test]
fn verdicts_name_their_reading_and_their_correction() {
    let text = fs::read_to_string(root().join("report/claims.json")).expect("claims");
    let claims: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let claims = claims["claims"].as_array().expect("a list");
    let (mut corrected, mut lost) = (0, 0);
    for claim in claims {
        let [verdict, measured] =
            ["verdict", "measured"].map(|key| claim[key].as_str().expect(key));
        let reading = match verdict {
            "erratum" => "corrected: ",
            "ambiguous" => "the other reading: ",
            _ => "",
        };
        assert!(measured.starts_with(reading), "{claim}");
        corrected += usize::from(!reading.is_empty());
        let is_stated =
            ["reproduced", "holds", "not reproduced", "does not hold", "erratum", "ambiguous"]
                .contains(&verdict);
        lost += usize::from(is_stated && claim["p_holm"].as_f64().is_some_and(|p| p > 0.05));
    }
    let mark = "<sub>not after Holm's correction</sub>";
    let pages = pages();
    let of_report = pages.iter().filter(|(path, _)| path.starts_with("report"));
    assert_eq!(of_report.map(|(_, text)| text.matches(mark).count()).sum::<usize>(), lost);
    assert!(corrected > 0 && lost > 0);
    // Nor does such a verdict decide a statement.
    let coverage = pages.iter().filter(|(path, _)| path.starts_with("report/coverage"));
    let rows: Vec<&str> = coverage.flat_map(|(_, text)| text.lines()).collect();
    let open: Vec<_> = rows.iter().filter(|row| row.contains("(not after Holm's")).collect();
    assert!(!open.is_empty() && open.iter().all(|row| !row.contains("| ✓ ")), "{open:#?}");
}

/// Catches a question without an answer on the first page and in the README, a sentence that the record cannot fill, and a table with more
/// columns than a person can read.
#[test]
fn the_first_page_answers_every_question() {
    let pages = pages();
    let first = &pages[Path::new("report/README.md")];
    for heading in ["Zheng et al. 2021", "Zheng et al. 2022", "Li et al. 2021"] {
        let section = first.split(&format!("## [{heading}](")).nth(1).expect("a section");
        let section = section.split("\n## ").next().unwrap_or_default();
        assert!(section.contains("n = ") && section.contains("Evidence: "), "{section}");
        assert!(section.contains("*Not tested here:*"), "{section}");
        let entry = format!("\n- **[{heading}]");
        assert!(pages[Path::new("README.md")].contains(&entry), "{heading}");
    }
    assert!(first.contains("## Which encoding should I use?\n"), "{first}");
    assert!(!first.contains(['{', '}']), "{first}");
    for (path, text) in pages.iter().filter(|(path, _)| path.starts_with("report")) {
        let is_ruler =
            |line: &&str| line.starts_with("| -") && line.chars().all(|c| "|-: ".contains(c));
        let widest = text.lines().filter(is_ruler).map(|line| line.matches('|').count() - 1).max();
        assert!(widest.unwrap_or(0) <= 8, "{}: {widest:?} columns", path.display());
    }
}
