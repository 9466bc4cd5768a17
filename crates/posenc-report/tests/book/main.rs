//! The site: of this repository, and of hostile ones.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use percent_encoding::percent_decode_str;
use posenc_files::testing::{Need, files_below, skip};
use posenc_report::{PageKind, Report};
use serde_json::{Value, json};
use tempfile::TempDir;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the repository")
}

fn book(root: &Path, arguments: &[&str], browser: Option<&Path>) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_posenc-book"));
    command.args(arguments).current_dir(root).env("POSENC_ROOT", root);
    command.envs(browser.map(|program| ("BROWSER", program)));
    command.output().expect("posenc-book starts")
}

/// The site of the reference, made once for all tests, and what the binary said.
fn reference() -> &'static (TempDir, String) {
    static SITE: OnceLock<(TempDir, String)> = OnceLock::new();
    SITE.get_or_init(|| {
        let site = tempfile::tempdir().expect("a folder");
        let out = site.path().to_string_lossy();
        let output = book(root(), &["--reference", "--out", &out], None);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{errors}");
        let first = format!("{}\n", site.path().join("index.html").display());
        assert_eq!(String::from_utf8_lossy(&output.stdout), first);
        (site, errors)
    })
}

/// Files below a folder, by path with slashes.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let file = |path: PathBuf| {
        let name = path.strip_prefix(folder).expect("below").to_string_lossy().replace('\\', "/");
        (name, fs::read(&path).expect("a file"))
    };
    files_below(folder).into_iter().map(file).collect()
}

/// Names and values of the attributes of a page's tags.
fn attributes(page: &str) -> impl Iterator<Item = (&str, String)> {
    let tags = page.split('<').skip(1).filter_map(|tag| tag.split('>').next());
    tags.flat_map(|tag| {
        let parts: Vec<_> = tag.split('"').collect();
        let pairs: Vec<_> =
            parts.chunks_exact(2).map(|pair| (pair[0], pair[1].replace("&amp;", "&"))).collect();
        pairs.into_iter().map(|(name, value)| {
            (name.rsplit(' ').next().unwrap_or_default().trim_end_matches('='), value)
        })
    })
}

/// Links of a site to nothing, and whatever is loaded from elsewhere.
fn broken_links(files: &BTreeMap<String, Vec<u8>>) -> Vec<String> {
    let pages = files.iter().filter(|(name, _)| name.ends_with(".html"));
    let pages: BTreeMap<_, _> =
        pages.map(|(name, bytes)| (name, String::from_utf8_lossy(bytes))).collect();
    let ids = pages.iter().map(|(name, page)| {
        let ids = attributes(page).filter(|(name, _)| *name == "id").map(|(_, id)| id);
        (*name, ids.collect::<BTreeSet<_>>())
    });
    let ids: BTreeMap<_, _> = ids.collect();
    let mut broken = Vec::new();
    for (name, page) in &pages {
        for (attribute, link) in attributes(page).filter(|(a, _)| ["href", "src"].contains(a)) {
            let is_elsewhere =
                ["https://", "http://", "mailto:"].iter().any(|scheme| link.starts_with(scheme));
            if is_elsewhere && attribute == "href" {
                continue;
            }
            let (path, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let decoded = |text| percent_decode_str(text).decode_utf8_lossy().into_owned();
            let mut target: Vec<_> = name.split('/').collect();
            target.pop();
            let path = decoded(path);
            for part in path.split('/') {
                match part {
                    ".." => drop(target.pop()),
                    part => target.push(part),
                }
            }
            let target = if path.is_empty() { (*name).clone() } else { target.join("/") };
            let has_anchor =
                |ids: &BTreeSet<_>| anchor.is_empty() || ids.contains(&decoded(anchor));
            if !files.contains_key(&target) || !ids.get(&target).is_none_or(has_anchor) {
                broken.push(format!("{name}: {link}"));
            }
        }
    }
    broken
}

/// Catches links to missing pages, files or places, formulas that cannot be converted, pages that are left out, and anything that
/// is loaded from the network.
#[test]
fn every_link_has_a_target() {
    let (site, errors) = reference();
    assert_eq!(errors, "");
    let files = files(site.path());
    assert_eq!(broken_links(&files), Vec::<String>::new());
    let pages =
        self::files(&root().join("report")).into_keys().filter(|name| name.ends_with(".md"));
    for page in pages {
        let page = format!("report/{}.html", page.trim_end_matches(".md"));
        assert!(files.contains_key(&page), "{page}");
    }
    let table = String::from_utf8_lossy(&files["report/trading/table1.html"]);
    let has_both = table.contains("<math") && table.contains("href=\"../../experiments/trading/");
    assert!(has_both, "{table}");
    for (name, bytes) in files.iter().filter(|(name, _)| name.ends_with(".css")) {
        let text = String::from_utf8_lossy(bytes);
        let loads = ["url(http", "url(\"http", "@import"].iter().any(|part| text.contains(part));
        assert!(!loads, "{name}");
    }
}

/// Opens pages of a site in a browser and returns what is wrong with them. Each pair of words is searched for, and a page that they
/// must find.
fn problems(site: &Path, pages: &[String], searches: &[(&str, &str)]) -> Vec<String> {
    let names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
    let folders: Vec<_> =
        std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()).collect();
    let programs =
        names.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    let Some(program) = programs.into_iter().find(|program| program.is_file()) else {
        skip(Need::Chromium, "neither chromium nor google-chrome is on the PATH");
        return Vec::new();
    };
    let probe = include_str!("probe.html");
    let probe = probe.replace("PAGES", &json!(pages).to_string());
    fs::write(site.join("probe.html"), probe.replace("SEARCHES", &json!(searches).to_string()))
        .expect("a file");
    let profile = tempfile::tempdir().expect("a folder");
    let output = Command::new(program)
        .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-dev-shm-usage"])
        .args(["--allow-file-access-from-files", "--host-resolver-rules=MAP * ~NOTFOUND"])
        .args(["--virtual-time-budget=10000000", "--dump-dom"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("file://{}", site.join("probe.html").display()))
        .output()
        .expect("Chromium starts");
    let page = String::from_utf8_lossy(&output.stdout);
    let result =
        page.split_once("<pre id=\"result\">").and_then(|(_, rest)| rest.split_once("</pre>"));
    let result = result.map(|(result, _)| result).unwrap_or_default();
    let found: Value = serde_json::from_str(result)
        .unwrap_or_else(|_| panic!("{result:?}\n{}", String::from_utf8_lossy(&output.stderr)));
    eprintln!("{} pages: {}", pages.len(), found["counts"]);
    let problems = found["problems"].as_array().expect("a list").iter();
    problems.map(|problem| problem.as_str().unwrap_or_default().to_owned()).collect()
}

fn pages(files: &BTreeMap<String, Vec<u8>>) -> Vec<String> {
    let is_page = |name: &&String| {
        name.ends_with(".html") && !["index.html", "toc.html"].contains(&name.as_str())
    };
    files.keys().filter(is_page).cloned().collect()
}

/// Catches pages that do not open without a server, scroll sideways, are unreadable in one theme, lack pictures or formulas or load
/// something from the network, and a search that finds nothing.
#[test]
fn pages_open_in_a_browser_without_a_server() {
    let site = reference().0.path();
    let searches = [
        ("gaussian stable rank", "report/rethinking/"),
        ("figure 11", "report/trading/fig11.html"),
        ("triangle", "report/embedders.html"),
        ("lorentzian", "docs/EXTENDING.html"),
    ];
    let files = files(site);
    // Of items, which have one template, the longest page of each paper and every fourth other one.
    let folder = |page: &String| page.rsplit_once('/').map(|(folder, _)| folder.to_owned());
    let mut longest: BTreeMap<_, &String> = BTreeMap::new();
    let all = pages(&files);
    for page in &all {
        let best = longest.entry(folder(page)).or_insert(page);
        if files[page].len() > files[*best].len() {
            *best = page;
        }
    }
    let is_item = |page: &String| page.matches('/').count() > 1;
    let places = all.iter().enumerate();
    let shown = places.filter(|(place, page)| {
        !is_item(page) || place % 4 == 0 || longest.values().any(|best| best == page)
    });
    let shown: Vec<String> = shown.map(|(_, page)| page.clone()).collect();
    let problems = problems(site, &shown, &searches);
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// A repository with a report of one page, and files, some public and some not.
fn repository(text: &str) -> (TempDir, Report) {
    let directory = tempfile::tempdir().expect("a folder");
    for (name, content) in [
        ("docs/TEXT.md", text),
        ("docs/data.yaml", "a: <b>\n"),
        (
            "docs/x.svg",
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"9\" height=\"9\"><script>window.hacked = 29</script></svg>",
        ),
        ("notes.txt", "a secret"),
    ] {
        let file = directory.path().join(name);
        fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        fs::write(file, content).expect("a file");
    }
    #[cfg(unix)]
    std::os::unix::fs::symlink("../notes.txt", directory.path().join("docs/link.txt"))
        .expect("a link");
    for arguments in [&["init", "-q"][..], &["add", "docs"]] {
        let status = Command::new("git").arg("-C").arg(directory.path()).args(arguments).status();
        assert!(status.expect("git starts").success());
    }
    let mut report = Report::default();
    let path = PathBuf::from("README.md");
    report.pages.push(posenc_report::Page { path: path.clone(), kind: PageKind::Summary });
    report.files.insert(path, text.as_bytes().to_vec());
    (directory, report)
}

/// Catches a script of a text that runs, also by way of the navigation and the search, loads from the network, and published files
/// that are not public.
#[test]
fn no_text_runs_a_script() {
    let links = "\n\n[config](../.git/config) [link](../docs/link.txt) [notes](../notes.txt) [passwd](../../../etc/passwd) \
        [shown](../docs/data.yaml) [drawing](../docs/x.svg) ![x](../docs/x.svg) <img src=\"../docs/x.svg\" width=\"9\" alt=\"a\">";
    // Texts that run a script if a page treats them as markup.
    let scripts: Vec<String> = serde_json::from_str(include_str!("scripts.json")).expect("JSON");
    let text: String = scripts.iter().map(|script| format!("{script}\n\n")).collect();
    let (repository, report) = repository(&format!(
        "# <img src=x onerror=window.hacked=30> '\\x3cscript>\n\n{text}{links}"
    ));
    let out = tempfile::tempdir().expect("a folder");
    let remarks =
        posenc_report::book::build(&report, repository.path(), out.path()).expect("a site");
    for remark in ["passwd\" leads nowhere", "notes.txt\" leads to what the site does not show"] {
        assert!(remarks.iter().any(|own| own.contains(remark)), "{remark}: {remarks:?}");
    }
    let files = files(out.path());
    assert_eq!(files["docs/data.yaml.txt"], "\u{feff}a: <b>\n".as_bytes());
    // A drawing of others is shown, and opened as text only.
    assert!(files.contains_key("docs/x.svg") && files.contains_key("docs/x.svg.txt"));
    for (name, bytes) in &files {
        let has_secret = String::from_utf8_lossy(bytes).contains("a secret");
        assert!(!has_secret, "{name} has what is not public");
    }
    assert_eq!(broken_links(&files), Vec::<String>::new());
    for name in ["report/README.html", "docs/TEXT.html"] {
        let page = String::from_utf8_lossy(&files[name]);
        let main = page.split_once("<main>").and_then(|(_, rest)| rest.split_once("</main>"));
        let main = main.expect("a text").0;
        let is_text = main.contains("window.hacked = 1") && main.contains("<code>&lt;img src=x");
        assert!(is_text, "{main}");
        for (attribute, value) in attributes(main) {
            assert!(attribute != "href" || !value.ends_with(".svg"), "{value}");
            let is_script = attribute.starts_with("on") || value.contains("script:");
            assert!(!is_script, "{attribute} {value}");
        }
        let active = "script svg iframe style base meta form input";
        for tag in main.split('<').skip(1) {
            let name = tag.split([' ', '>']).next().unwrap_or_default().trim_start_matches('/');
            assert!(active.split(' ').all(|active| active != name), "{tag}");
        }
    }
    let problems = problems(out.path(), &pages(&files), &[("heading", "report/README.html")]);
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// Catches a site that overwrites or removes others' files, or leaves its own old ones.
#[test]
fn a_site_replaces_only_its_own_files() {
    let (repository, report) = repository("# Text\n\n[data](../docs/data.yaml)\n");
    let out = repository.path().join("out");
    let build = |report, out: &Path| posenc_report::book::build(report, repository.path(), out);
    build(&report, &out).expect("a site");
    assert!(out.join("docs/data.yaml.txt").is_file());
    fs::write(out.join("CNAME"), "mine").expect("a file");
    fs::write(repository.path().join("docs/TEXT.md"), "# Text\n").expect("a file");
    let mut other = report.clone();
    other.files.insert("README.md".into(), b"# Text\n".to_vec());
    build(&other, &out).expect("a site");
    assert!(out.join("CNAME").is_file() && !out.join("docs/data.yaml.txt").exists());
    for (folder, why) in [("docs", "TEXT.md"), ("report/new", "the reference")] {
        let error =
            build(&report, &repository.path().join(folder)).expect_err("refused").to_string();
        assert!(error.contains(why) && error.contains("; name a"), "{error}");
    }
}

/// Catches a page that is not opened, and a path that passes through a shell on its way to the browser.
#[cfg(unix)]
#[test]
fn the_browser_gets_the_path_of_the_first_page() {
    use std::os::unix::fs::PermissionsExt;
    let folder = "a & b; $(touch ran) 'c' \"d\" #%20";
    let directory = tempfile::tempdir().expect("a folder");
    let root = fs::canonicalize(directory.path()).expect("a path");
    for name in ["experiments", "data"] {
        fs::create_dir(root.join(name)).expect("a folder");
    }
    let browser = root.join("browser");
    let script = "#!/bin/sh\nprintf %s \"$@\" > \"$0.part\"\nmv \"$0.part\" \"$0.arguments\"\n";
    fs::write(&browser, script).expect("a file");
    fs::set_permissions(&browser, fs::Permissions::from_mode(0o755)).expect("permissions");
    let output = book(&root, &["--out", folder, "--open"], Some(&browser));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let written = root.join("browser.arguments");
    let started = std::time::Instant::now();
    while !written.exists() && started.elapsed().as_secs() < 180 {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let page = root.join(folder).join("index.html");
    assert_eq!(fs::read_to_string(written).expect("arguments"), page.to_string_lossy());
    assert!(page.is_file() && !root.join("ran").exists());

    let output = book(&root, &["--out", folder, "--open"], Some(Path::new("/no/such/browser")));
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("index.html cannot be opened") && error.contains("BROWSER"), "{error}");
}
