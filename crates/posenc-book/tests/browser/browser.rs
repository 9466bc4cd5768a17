//! The site of the reference records in a real browser, from the file system.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::devtools::Browser;
use posenc_book::{HEAVIEST, decoded, weights};
use serde_json::Value;

const DESKTOP: (u32, u32) = (1280, 800);
const PHONE: (u32, u32) = (390, 844);

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the repository")
}

/// Runs the binary on a repository, and returns its standard error.
fn book_of(root: &Path, arguments: &[&str], out: &Path) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_posenc-book"))
        .args(arguments)
        .arg("--out")
        .arg(out)
        .env("POSENC_ROOT", root)
        .output()
        .expect("posenc-book starts");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{errors}");
    let printed = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    assert_eq!(Path::new(&printed), out.join("index.html"));
    errors
}

/// Like [`book_of`], on this repository.
fn book(arguments: &[&str], out: &Path) -> String {
    book_of(root(), arguments, out)
}

struct Made {
    directory: tempfile::TempDir,
    errors: String,
}

impl Made {
    fn page(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let mut files = BTreeMap::new();
        let mut waiting = vec![self.directory.path().to_owned()];
        while let Some(folder) = waiting.pop() {
            for entry in std::fs::read_dir(&folder).expect("a folder") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    waiting.push(path);
                    continue;
                }
                let name = path.strip_prefix(self.directory.path()).expect("below").to_owned();
                let bytes = std::fs::read(&path).expect("a file");
                files.insert(name.to_string_lossy().replace('\\', "/"), bytes);
            }
        }
        files
    }
}

/// The site of the reference, built once for all tests.
fn reference() -> &'static Made {
    static MADE: OnceLock<Made> = OnceLock::new();
    MADE.get_or_init(|| {
        let directory = tempfile::tempdir().expect("a directory");
        let errors = book(&["--reference"], directory.path());
        Made { directory, errors }
    })
}

/// Like [`reference`], with a run of this machine: a copy of some of the reference's records.
fn with_own_run() -> &'static Made {
    static MADE: OnceLock<Made> = OnceLock::new();
    MADE.get_or_init(|| {
        let record = tempfile::tempdir().expect("a directory");
        for item in ["rethinking/fig5", "trading/table1"] {
            for ending in ["csv", "provenance.json"] {
                let from = root().join("report/record").join(format!("{item}.{ending}"));
                let to = record.path().join(format!("{item}.{ending}"));
                std::fs::create_dir_all(to.parent().expect("a folder")).expect("a folder");
                std::fs::copy(from, to).expect("a copy");
            }
        }
        let directory = tempfile::tempdir().expect("a directory");
        let record = record.path().display().to_string();
        let errors = book(&["--record", &record], directory.path());
        Made { directory, errors }
    })
}

/// Catches formulas that cannot be converted, links that lead nowhere, and missing pictures in the report and the
/// documents. Standard error names them.
#[test]
fn the_site_is_made_without_remarks() {
    assert_eq!(reference().errors, "");
    assert_eq!(with_own_run().errors, "");
}

/// Catches a page that is too heavy with everything that it loads, and a page that loads from the network.
#[test]
fn no_page_is_heavy() {
    for made in [reference(), with_own_run()] {
        let files = made.files();
        let weights = weights(&files);
        assert!(weights.len() > 80, "{} pages", weights.len());
        for (name, weight) in &weights {
            assert!(*weight < HEAVIEST, "{name} weighs {weight}");
        }
        let heaviest = weights.iter().max_by_key(|(_, weight)| **weight).expect("a page");
        let all: usize = files.values().map(Vec::len).sum();
        eprintln!("{} pages, {all} bytes in all; the heaviest is {heaviest:?}", weights.len());
        for (name, bytes) in files {
            if [".html", ".css", ".js"].iter().any(|ending| name.ends_with(ending)) {
                let text = String::from_utf8_lossy(&bytes);
                for part in
                    ["src=\"http", "url(http", "url(\"http", "@import", "MathJax", "import("]
                {
                    assert!(!text.contains(part), "{name} has {part}");
                }
            }
        }
    }
}

/// All pages of a site, the first one first.
fn pages(made: &Made) -> Vec<String> {
    made.files().into_keys().filter(|n| n.ends_with(".html") && n != "toc.html").collect()
}

/// Findings of a visit to several pages.
#[derive(Default)]
struct Found {
    problems: Vec<String>,
    /// Anchors of each page.
    places: BTreeMap<String, BTreeSet<String>>,
    /// Page, unresolved `href`, and resolved address.
    links: BTreeSet<(String, String, String)>,
    images: u64,
    formulas: u64,
    loading: Duration,
    checking: Duration,
}

/// Opens the pages at both widths and in both themes, in two browsers at a time, and returns the problems.
fn problems(made: &Made, names: &[String]) -> Vec<String> {
    let (one, other) = names.split_at(names.len() / 2);
    let (mut found, other) = std::thread::scope(|scope| {
        let other = scope.spawn(|| visit(made, other));
        (visit(made, one), other.join().expect("the other browser"))
    });
    found.problems.extend(other.problems);
    found.places.extend(other.places);
    found.links.extend(other.links);
    eprintln!(
        "{} pages in 4 looks, {} links, {} pictures, {} formulas; loading took {:.1?}, checks {:.1?}",
        names.len(),
        found.links.len(),
        found.images + other.images,
        found.formulas + other.formulas,
        found.loading + other.loading,
        found.checking + other.checking,
    );
    found.problems.extend(broken(made, &found.places, found.links));
    found.problems
}

/// Opens and checks the pages in a separate browser.
fn visit(made: &Made, names: &[String]) -> Found {
    let checks = include_str!("checks.js");
    let mut all = Found::default();
    let Some(mut browser) = Browser::start() else { return all };
    for name in names {
        // Each page is loaded once at each width and once in each theme. The other theme follows without a reload, as
        // when the system switches to dark mode.
        for (size, schemes) in [(DESKTOP, ["light", "dark"]), (PHONE, ["dark", "light"])] {
            let started = Instant::now();
            browser.look(size, schemes[0]);
            browser.open(&made.page(name));
            all.loading += started.elapsed();
            for scheme in schemes {
                browser.look(size, scheme);
                browser.wait_for(&format!(
                    "matchMedia('(prefers-color-scheme: {scheme})').matches && (!document.documentElement.classList.contains('js') || \
                     document.documentElement.classList.contains('navy') === {})",
                    scheme == "dark"
                ));
                browser.wait_until_still();
                let started = Instant::now();
                let found = browser.eval(checks);
                all.checking += started.elapsed();
                let of =
                    |text: &dyn std::fmt::Display| format!("{name} {} {scheme}: {text}", size.0);
                let told = found["problems"].as_array().expect("a list").iter();
                all.problems.extend(told.map(|p| of(&p.as_str().unwrap_or_default())));
                all.problems.extend(browser.complaints().iter().map(|c| of(c)));
                let ground = found["ground"].as_f64().unwrap_or(f64::NAN);
                let is_source = name.starts_with("source/");
                if !is_source && (ground > 0.5) != (scheme == "light") {
                    all.problems.push(of(&format!("the background's luminance is {ground}")));
                }
                if (size, scheme) == (DESKTOP, "light") {
                    all.images += found["counts"]["images"].as_u64().unwrap_or(0);
                    all.formulas += found["counts"]["formulas"].as_u64().unwrap_or(0);
                    let texts = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                    let own = found["places"].as_array().expect("a list").iter().map(texts);
                    all.places.insert(name.clone(), own.collect());
                    for link in found["links"].as_array().expect("a list") {
                        all.links.insert((name.clone(), texts(&link[0]), texts(&link[1])));
                    }
                }
            }
        }
    }
    all
}

/// Links to missing files and missing anchors.
fn broken(
    made: &Made,
    places: &BTreeMap<String, BTreeSet<String>>,
    links: BTreeSet<(String, String, String)>,
) -> Vec<String> {
    let site = format!("file://{}/", made.directory.path().display());
    let mut problems = Vec::new();
    for (page, written, url) in links {
        if url.starts_with("https://") || url.starts_with("http://") || url.starts_with("mailto:") {
            if url.contains(' ') || !url.contains('.') {
                problems.push(format!("{page}: {url} is no address"));
            }
            continue;
        }
        let Some(target) = url.strip_prefix(&site) else {
            problems.push(format!("{page}: {written} leads out of the site: {url}"));
            continue;
        };
        let (file, place) = target.split_once('#').unwrap_or((target, ""));
        let (file, place) = (decoded(file), decoded(place));
        if !made.page(&file).is_file() {
            problems.push(format!("{page}: {written} leads to no file"));
        } else if !place.is_empty() && places.get(&file).is_some_and(|p| !p.contains(&place)) {
            problems.push(format!("{page}: {written} leads to no place"));
        }
    }
    problems
}

/// Catches problems of any page: errors of scripts, failed loads, empty pictures, broken links, pages that scroll
/// sideways, formulas without size, and text with low contrast.
#[test]
fn every_page_can_be_read() {
    if !Browser::is_available() {
        return;
    }
    let made = reference();
    let problems = problems(made, &pages(made));
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// The cells of a column of the table with index `table`, and the sort order in its header.
fn column(browser: &mut Browser, table: usize, column: usize) -> (Vec<String>, String) {
    let found = browser.eval(&format!(
        "(() => {{ const t = document.querySelectorAll('main table')[{table}]; return \
         [Array.from(t.tBodies[0].rows, r => r.cells[{column}].innerText.split('\\n')[0].trim()), \
         t.tHead.rows[0].cells[{column}].getAttribute('aria-sort')]; }})()"
    ));
    let cells = found[0].as_array().expect("cells").iter();
    let cells = cells.map(|c| c.as_str().unwrap_or_default().to_owned()).collect();
    (cells, found[1].as_str().unwrap_or_default().to_owned())
}

/// The number that a cell begins with.
fn value(cell: &str) -> f64 {
    let number = cell.replace('−', "-").replace(',', "");
    let end = number.find(|c: char| !c.is_ascii_digit() && !"+-.".contains(c));
    number[..end.unwrap_or(number.len())].parse().unwrap_or_else(|_| panic!("{cell} is no number"))
}

/// Catches columns that are sorted as text, backwards or not at all, rows that are torn apart, and headers that the
/// keyboard cannot reach.
#[test]
fn tables_are_sorted_by_click_and_by_key() {
    let Some(mut browser) = Browser::start() else { return };
    browser.look(DESKTOP, "light");
    browser.open(&reference().page("trading/table1.html"));
    let find = "(() => { const tables = Array.from(document.querySelectorAll('main table')); \
        const i = tables.findIndex(t => t.querySelector('th button.sort') && \
            Array.from(t.tHead.rows[0].cells).some(c => c.innerText.includes('measured'))); \
        const cells = Array.from(tables[i].tHead.rows[0].cells); \
        const c = cells.findIndex(c => c.innerText.includes('measured')); \
        cells[c].querySelector('button').id = 'chosen'; return [i, c]; })()";
    let place = browser.eval(find);
    let (table, c) = (place[0].as_u64().unwrap() as usize, place[1].as_u64().unwrap() as usize);
    let whole = |browser: &mut Browser| {
        let script = format!(
            "Array.from(document.querySelectorAll('main table')[{table}].tBodies[0].rows, \
             r => Array.from(r.cells, c => c.innerText).slice(1).join('|'))"
        );
        let rows = browser.eval(&script);
        rows.as_array().unwrap().iter().map(|r| r.as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let original = whole(&mut browser);
    let (before, state) = column(&mut browser, table, c);
    assert_eq!(state, "none");
    assert!(before.len() > 4, "{before:?}");

    let is_sorted = |cells: &[String], up: bool| {
        let filled: Vec<_> = cells.iter().filter(|c| !c.is_empty() && *c != "–").collect();
        let values: Vec<f64> = filled.iter().map(|c| value(c)).collect();
        assert!(cells[..filled.len()].iter().eq(filled.into_iter()), "gaps come last: {cells:?}");
        values.windows(2).all(|w| if up { w[0] <= w[1] } else { w[0] >= w[1] })
    };
    let is_sorted_as = |state: &str| {
        format!(
            "document.querySelector('#chosen').closest('th').getAttribute('aria-sort') === '{state}'"
        )
    };
    browser.click("#chosen");
    browser.wait_for(&is_sorted_as("ascending"));
    let (up, state) = column(&mut browser, table, c);
    assert_eq!(state, "ascending");
    assert!(is_sorted(&up, true) && up != before, "{up:?}");
    let mut rows = whole(&mut browser);
    rows.sort();
    let mut expected = original.clone();
    expected.sort();
    assert_eq!(rows, expected, "rows stay whole");

    browser.eval("document.querySelector('#chosen').focus()");
    browser.press("Enter");
    browser.wait_for(&is_sorted_as("descending"));
    let (down, state) = column(&mut browser, table, c);
    assert_eq!(state, "descending");
    assert!(is_sorted(&down, false), "{down:?}");
    browser.press("Enter");
    browser.wait_for(&is_sorted_as("none"));
    assert_eq!(column(&mut browser, table, c), (before, "none".to_owned()));
    assert_eq!(whole(&mut browser), original);
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

/// Catches plots that do not open, enlarge or close, and keys that turn the page while a plot is open.
#[test]
fn plots_are_enlarged_and_closed() {
    let Some(mut browser) = Browser::start() else { return };
    let is_open = "!!document.querySelector('dialog.zoom-view[open] img.sheet')";
    let width = "document.querySelector('.zoom-view .sheet').getBoundingClientRect().width";
    for size in [DESKTOP, PHONE] {
        browser.look(size, "light");
        browser.open(&reference().page("rethinking/fig5.html"));
        let link = browser.eval("document.querySelector('main a.plot').href");
        browser.click("main a.plot");
        browser.wait_for(is_open);
        let loaded = "document.querySelector('.zoom-view .sheet').decode().then(() => true)";
        assert_eq!(browser.eval(loaded), true);
        assert_eq!(browser.eval("document.querySelector('.zoom-view .sheet').src"), link);
        let fitted = browser.eval(width).as_f64().unwrap();
        assert!(fitted > 100.0 && fitted <= f64::from(size.0), "{fitted}");
        browser.press("+");
        browser.wait_for(&format!("{width} > {}", 1.3 * fitted));
        browser.press("ArrowRight");
        browser.press("Escape");
        browser.wait_for(&format!("!({is_open})"));
        assert!(
            browser.eval("location.pathname").as_str().unwrap().ends_with("/rethinking/fig5.html")
        );
        // The same zoom with the keyboard alone.
        browser.eval("document.querySelector('main a.plot').focus()");
        browser.press("Enter");
        browser.wait_for(is_open);
        browser.click(".zoom-view [data-do=close]");
        browser.wait_for(&format!("!({is_open})"));
        assert_eq!(browser.complaints(), Vec::<String>::new());
    }
}

/// Catches a phone without navigation, and a page that is pushed aside permanently.
#[test]
fn the_sidebar_opens_on_a_phone() {
    let Some(mut browser) = Browser::start() else { return };
    browser.look(PHONE, "light");
    browser.open(&reference().page("trading/fig3.html"));
    let left = "document.querySelector('#mdbook-sidebar').getBoundingClientRect().right > 1 && \
                getComputedStyle(document.querySelector('#mdbook-sidebar')).display !== 'none'";
    browser.wait_for(&format!("!({left})"));
    browser.click("#mdbook-sidebar-toggle");
    browser.wait_for(left);
    browser.wait_until_still();
    let active = "document.querySelector('#mdbook-sidebar a.active').innerText";
    let name = browser.eval(active);
    assert!(name.as_str().unwrap().starts_with("Figure 3"), "{name}");
    let shown = "Array.from(document.querySelectorAll('#mdbook-sidebar a')).filter(a => a.checkVisibility()).length";
    assert!(browser.eval(shown).as_u64().unwrap() > 20);
    browser.follow("#mdbook-sidebar a.active");
    browser.wait_for(&format!("{active}.startsWith('Figure 3')"));
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

/// Catches local results that do not follow the published values and the reference, and wide tables that make the page
/// overflow instead of scrolling in their frames.
#[test]
fn a_local_run_is_next_to_the_published_values() {
    let Some(mut browser) = Browser::start() else { return };
    let made = with_own_run();
    browser.look(PHONE, "light");
    browser.open(&made.page("trading/table1.html"));
    let heads = browser.eval(
        "Array.from(document.querySelectorAll('main table'), t => \
         Array.from(t.tHead.rows[0].cells, c => c.innerText.trim().split('\\n').pop()))",
    );
    let heads: Vec<Vec<String>> = serde_json::from_value(heads).expect("texts");
    let wanted = ["paper", "reference", "this machine"];
    let has = |head: &Vec<String>| head.windows(3).any(|w| w == wanted);
    assert!(heads.iter().any(has), "{heads:?}");
    for head in &heads {
        for (i, name) in head.iter().enumerate().filter(|(_, n)| *n == "this machine") {
            assert_eq!(head[i - 1], "reference", "{name} in {head:?}");
        }
    }
    // A wide table scrolls in its frame, which the keyboard can reach.
    browser.wait_for(
        "Array.from(document.querySelectorAll('main .table-wrapper')).some(f => f.scrollWidth > f.clientWidth && \
         f.tabIndex === 0)",
    );
    // The frame of a table that fits is an ordinary element again.
    browser.look(DESKTOP, "light");
    browser.wait_for(
        "Array.from(document.querySelectorAll('main .table-wrapper')).every(f => f.scrollWidth > f.clientWidth || \
         !f.hasAttribute('role'))",
    );
    let names =
        ["index.html", "claims/trading.html", "trading/table1.html", "rethinking/fig5.html"];
    drop(browser);
    let problems = problems(made, &names.map(str::to_owned));
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// Catches a link whose target stays hidden, and a hash that is not valid percent-encoding and stops the script.
#[test]
fn a_link_opens_the_folded_part_of_its_target() {
    let Some(mut browser) = Browser::start() else { return };
    browser.look(DESKTOP, "light");
    browser.open(&reference().page("rethinking/fig5.html"));
    for (id, hash) in [("a b", "#a%20b"), ("100%", "#100%")] {
        browser.eval(&format!(
            "(() => {{ const place = document.createElement('p'); place.id = '{id}'; \
             const fold = document.querySelector('main details:not([open])'); \
             fold.append(place); location.hash = '{hash}'; }})()"
        ));
        browser.wait_for(&format!("document.getElementById('{id}').closest('details').open"));
    }
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

/// Catches content that only a script shows, and a printed page with navigation on it.
#[test]
fn pages_can_be_read_on_paper_and_without_scripts() {
    let Some(mut browser) = Browser::start() else { return };
    browser.look(DESKTOP, "light");
    let page = reference().page("rethinking/prop2.html");
    browser.open(&page);
    browser.call("Emulation.setEmulatedMedia", serde_json::json!({ "media": "print" }));
    let shown = "['#mdbook-sidebar', '#mdbook-menu-bar', 'main h1'].map(s => document.querySelector(s).checkVisibility())";
    browser.wait_for(&format!("JSON.stringify({shown}) === '[false,false,true]'"));
    browser.look(DESKTOP, "light");
    browser.call("Emulation.setScriptExecutionDisabled", serde_json::json!({ "value": true }));
    browser.open(&reference().page("rethinking/fig5.html"));
    let document = browser.call("DOM.getDocument", serde_json::json!({ "depth": 0 }));
    for selector in ["main h1", "main table", "main a.plot img", "main math"] {
        let query =
            serde_json::json!({ "nodeId": document["root"]["nodeId"], "selector": selector });
        let node = browser.call("DOM.querySelector", query);
        let node = serde_json::json!({ "nodeId": node["nodeId"] });
        let shape = browser.call("DOM.getBoxModel", node);
        assert!(shape["model"]["height"].as_u64().unwrap() > 5, "{selector}: {shape}");
    }
}

/// Catches a filter that keeps claims without the words or the verdict, or does not restore all claims.
#[test]
fn claims_are_filtered_by_words_and_verdict() {
    let Some(mut browser) = Browser::start() else { return };
    browser.look(DESKTOP, "light");
    browser.open(&reference().page("claims/trading.html"));
    let shown = "Array.from(document.querySelectorAll('main tbody tr')).filter(r => r.checkVisibility()).map(r => r.innerText)";
    let rows = |browser: &mut Browser| -> Vec<String> {
        serde_json::from_value(browser.eval(shown)).expect("texts")
    };
    browser.wait_for("!!document.querySelector('.claim-filter select')");
    let all = rows(&mut browser);
    assert!(all.len() > 50, "{} claims", all.len());
    let fill = |selector: &str, value: &str| {
        format!(
            "(() => {{ const e = document.querySelector({}); e.value = {}; \
             e.dispatchEvent(new Event('input', {{ bubbles: true }})); }})()",
            serde_json::json!(selector),
            serde_json::json!(value)
        )
    };
    browser.eval(&fill(".claim-filter input", "closed form"));
    let some = rows(&mut browser);
    assert!(!some.is_empty() && some.len() < all.len(), "{some:?}");
    let has_words =
        |row: &String| ["closed", "form"].iter().all(|w| row.to_lowercase().contains(w));
    assert!(some.iter().all(has_words), "{some:?}");
    let expected = all.iter().filter(|row| has_words(row)).count();
    assert_eq!(some.len(), expected);
    let verdict = "Array.from(document.querySelector('.claim-filter select').options, o => o.value).find(v => v.includes('not reproduced'))";
    let verdict = browser.eval(verdict);
    browser.eval(&fill(".claim-filter input", ""));
    browser.eval(&fill(".claim-filter select", verdict.as_str().expect("a verdict")));
    let failed = rows(&mut browser);
    assert!(!failed.is_empty() && failed.len() < all.len(), "{failed:?}");
    let is_failed = |row: &String| row.replace('\u{a0}', " ").contains("not reproduced");
    assert!(failed.iter().all(is_failed), "{failed:?}");
    let count = browser.eval("document.querySelector('.claim-filter output').value");
    assert_eq!(count, format!("{} of {} claims", failed.len(), all.len()));
    browser.eval(&fill(".claim-filter select", ""));
    assert_eq!(rows(&mut browser), all);
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

/// Catches a search that loads its index before it is used, finds nothing, or leads to pages that do not exist.
#[test]
fn the_search_finds_claims_items_and_embedders() {
    let Some(mut browser) = Browser::start() else { return };
    browser.look(DESKTOP, "light");
    browser.open(&reference().page("trading/table1.html"));
    assert_eq!(browser.eval("typeof window.posenc_entries"), "undefined");
    browser.click("#site-search-toggle");
    browser.wait_for("Array.isArray(window.posenc_entries)");
    for (words, kind) in
        [("gaussian stable rank", "claim: "), ("figure 3", "item: "), ("triangle", "embedder: ")]
    {
        browser.eval(&format!(
            "(() => {{ const e = document.querySelector('.site-search input'); e.value = {}; \
             e.dispatchEvent(new Event('input')); }})()",
            serde_json::json!(words)
        ));
        browser.wait_for(&format!(
            "Array.from(document.querySelectorAll('.site-search li'), e => e.innerText).some(t => t.startsWith({}))",
            serde_json::json!(kind)
        ));
    }
    let site = format!("file://{}/", reference().directory.path().display());
    let links = browser.eval("window.posenc_entries.map(e => e[3])");
    let links: Vec<String> = serde_json::from_value(links).expect("links");
    assert!(links.len() > 400, "{} entries", links.len());
    for link in &links {
        let file = link.split('#').next().unwrap_or_default();
        assert!(reference().page(file).is_file(), "{link} leads to no file of {site}");
    }
    browser.press("Escape");
    browser.wait_for("document.querySelector('.site-search').hidden");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

/// Texts that run a script if a page treats them as markup.
const SCRIPTS: [&str; 14] = [
    "<script>window.hacked = 1</script>",
    "<img src=x onerror=window.hacked=2>",
    "<svg onload=window.hacked=3></svg>",
    "`` ` `` <script>window.hacked = 4</script> `` ` ``",
    "<details open ontoggle=window.hacked=5><summary>x</summary></details>",
    "<a id=x href=\"javascript:window.hacked=6\">x</a>",
    "[x](javascript:window.hacked=7)",
    "$\\href{javascript:window.hacked=8}{x}$",
    "$\\text{<img src=x onerror=window.hacked=9>}$",
    "<iframe srcdoc=\"<script>parent.hacked=10</script>\"></iframe>",
    "<math><mtext><table><mglyph><style><!--</style><img title=\"--&gt;&lt;img src=1 onerror=window.hacked=11&gt;\">",
    "</main></div></body><script>window.hacked = 12</script>",
    "$\" onmouseover=window.hacked=13 x=\"$",
    "<base href=\"https://example.org/\"><meta http-equiv=refresh content=\"0;url=https://example.org\">",
];

/// Creates a repository with one paper whose texts and record contain all scripts, and links to files that are not
/// public.
fn hostile(root: &Path) {
    let copy = |name: &str, change: &dyn Fn(String) -> String| {
        let text = std::fs::read_to_string(self::root().join(name)).expect("a file");
        let to = root.join(name);
        std::fs::create_dir_all(to.parent().expect("a folder")).expect("a folder");
        std::fs::write(to, change(text)).expect("a file");
    };
    let same = |text: String| text;
    copy("data/manifest.yaml", &same);
    copy("experiments/metrics.yaml", &same);
    copy("experiments/rethinking/paper.yaml", &same);
    let scripts = SCRIPTS.join(" ");
    // Names have at most 80 characters.
    let name = "`` `|\\| <script>window.hacked = 20</script><img src=x onerror=window.hacked=21>";
    let yaml = |text: &str| serde_json::to_string(text).expect("JSON");
    let links = "[git](../.git/config) [link](../docs/link.md) [notes](../notes.txt) [host](//example.org/x) [passwd](../../../../etc/passwd) \
                 [shown](../experiments/rethinking/08-fig5.yaml)";
    copy("experiments/rethinking/08-fig5.yaml", &|text| {
        let (head, _) = text.split_once("analysis: |").expect("an analysis");
        let lines = SCRIPTS.join("\n\n");
        let head = head.replace("id: RFF", &format!("id: {}", yaml(name)));
        let head = head.replace("method: RFF", &format!("method: {}", yaml(name)));
        let head = head.replace("Sec. 5.1, Fig. 5", &yaml(&scripts));
        format!(
            "{head}analysis: {}\ndeviations: [{}]\n",
            yaml(&format!("{links}\n\n{lines}")),
            yaml(&scripts)
        )
    });
    copy("report/record/rethinking/fig5.csv", &|text| {
        let csv = scripts.replace('"', "\"\"");
        text.replace(",RFF,", &format!(",\"{name}\",")).replace("row 200", &format!("\"{csv}\""))
    });
    copy("report/record/rethinking/fig5.provenance.json", &|text| {
        // Without the two checksums, which the changes would break.
        let text = format!("{{\n{}", text.split_once(",\n").expect("a checksum").1);
        let text = format!("{}\n}}\n", text.rsplit_once(",\n").expect("a checksum of the table").0);
        let text = text.replace("\"AMD EPYC (AVX-512)\"", &yaml(&scripts));
        let text = text.replace("\"59dd8049f04a\"", &yaml(&scripts));
        text.replace("\"sipi-peppers\"", &yaml(&scripts))
    });
    std::fs::create_dir(root.join("docs")).expect("a folder");
    std::fs::write(root.join("docs/SCRIPTS.md"), SCRIPTS.join("\n\n")).expect("a file");
    std::fs::write(root.join("notes.txt"), "a secret").expect("a file");
    #[cfg(unix)]
    std::os::unix::fs::symlink(root.join("notes.txt"), root.join("docs/link.md")).expect("a link");
    for arguments in [&["init", "-q"][..], &["add", "experiments", "data", "docs", "report"]] {
        let status = Command::new("git").arg("-C").arg(root).args(arguments).status();
        assert!(status.expect("git starts").success());
    }
}

/// Catches a script of an experiment, a record or a document that runs, a load from the network, and a published file
/// that is not public.
#[test]
fn no_text_runs_a_script() {
    let directory = tempfile::tempdir().expect("a directory");
    let out = tempfile::tempdir().expect("a directory");
    hostile(directory.path());
    let errors = book_of(directory.path(), &["--reference"], out.path());
    assert!(errors.contains("etc/passwd has no target"), "{errors}");
    let made = Made { directory: out, errors };
    let files = made.files();
    let sources: Vec<_> = files.keys().filter(|name| name.starts_with("source/")).collect();
    assert_eq!(sources, ["source/experiments/rethinking/08-fig5.yaml.html"]);
    for (name, bytes) in &files {
        assert!(
            !String::from_utf8_lossy(bytes).contains("a secret"),
            "{name} has what is not public"
        );
    }
    let page = String::from_utf8_lossy(&files["rethinking/fig5.html"]).into_owned();
    assert!(page.contains("window.hacked = 1"), "the text of the script is shown: {page}");

    let Some(mut browser) = Browser::start() else { return };
    browser.look(DESKTOP, "light");
    let pages = pages(&made);
    assert!(pages.iter().any(|name| name == "docs/scripts.html"), "{pages:?}");
    for name in pages.into_iter().chain(files.keys().filter(|name| name.ends_with(".svg")).cloned())
    {
        browser.open(&made.page(&name));
        browser.eval(
            "document.querySelectorAll('details').forEach(d => { d.open = true; }); \
             document.querySelectorAll('main *').forEach(e => { for (const kind of ['mouseover', 'click', 'focus']) { \
             if (kind !== 'click' || !e.closest('a[href]')) { e.dispatchEvent(new Event(kind)); } } })",
        );
        assert_eq!(
            browser.eval("typeof window.hacked"),
            "undefined",
            "{name}: script {}",
            browser.eval("window.hacked")
        );
        let elsewhere = "Array.from(document.links, a => a.href).filter(h => !/^(https?|mailto|file):/.test(h))";
        assert_eq!(browser.eval(elsewhere), serde_json::json!([]), "{name}");
        let complaints = browser.complaints();
        assert!(complaints.is_empty(), "{name}: {}", complaints.join("\n"));
    }
}
