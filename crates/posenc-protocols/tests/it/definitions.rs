//! The experiment definitions of the repository, and documents that cite their claims.

use std::collections::BTreeSet;

use posenc_experiments::Catalog;
use posenc_experiments::coverage::Tested;
use posenc_experiments::schema::claim::{Claim, ClaimName};

use crate::root;

/// Catches a definition in the repository that no longer loads.
#[test]
fn all_definitions_load() {
    let catalog = Catalog::read(&root(), posenc_protocols::KINDS).unwrap();
    assert!(catalog.experiments.len() >= 20, "{}", catalog.experiments.len());
}

/// Catches documents that cite a claim which was renamed or removed.
#[test]
fn documents_cite_claims_that_exist() {
    let catalog = Catalog::read(&root(), posenc_protocols::KINDS).unwrap();
    let papers: Vec<&str> = catalog.papers.iter().map(|p| p.key.as_str()).collect();
    let mut cited = 0;
    for name in ["METHODOLOGY", "BIAS", "EXTENDING", "decisions"] {
        let text = std::fs::read_to_string(root().join(format!("docs/{name}.md"))).unwrap();
        let names = text.split('`').filter_map(|code| ClaimName::parse(code, None));
        for claim in names.filter(|claim| papers.contains(&claim.paper.as_str())) {
            cited += 1;
            assert!(
                catalog.claim(&claim).is_some(),
                "docs/{name}.md cites {claim}, which does not exist"
            );
        }
    }
    assert!(cited > 10, "{cited}");
}

/// Catches an example of a verdict in METHODOLOGY, such as "`paper/item#claim`, +1.4 points, *holds*", that a new record or rule has changed.
#[test]
fn examples_of_verdicts_are_current() {
    let read = |path: &str| std::fs::read_to_string(root().join(path)).unwrap();
    let claims: serde_json::Value = serde_json::from_str(&read("report/claims.json")).unwrap();
    let claims = claims["claims"].as_array().unwrap();
    let text = read("docs/METHODOLOGY.md").replace('\n', " ");
    let (mut parts, mut compared) = (text.split('`').skip(1), 0);
    while let (Some(name), Some(after)) = (parts.next(), parts.next()) {
        let Some(claim) = claims.iter().find(|claim| claim["id"] == name) else { continue };
        let sentence = after.split(';').next().and_then(|own| own.split(". ").next()).unwrap();
        if let Some(verdict) = sentence.split('*').nth(1) {
            assert_eq!(claim["verdict"], verdict, "docs/METHODOLOGY.md: {name}");
            compared += 1;
        }
    }
    assert!(compared > 5, "{compared}");
}

/// Catches claims of the project that load but are misleading. `allow` in a claim disables a lint that does not apply.
#[test]
fn claims_have_no_lints() {
    let catalog = Catalog::read(&root(), posenc_protocols::KINDS).unwrap();
    let findings = posenc_experiments::lint::findings(&catalog);
    let text: Vec<String> = findings.iter().map(ToString::to_string).collect();
    assert!(text.is_empty(), "{}", text.join("\n"));
}

/// Catches a claim of a paper that decides no statement of it. Claims of ours, repeated ones and those on numbers of the authors' code decide no statement.
#[test]
fn claims_of_papers_decide_statements() {
    let catalog = Catalog::read(&root(), posenc_protocols::KINDS).unwrap();
    let mut missing = Vec::new();
    for (paper, statements) in &catalog.coverage {
        let named: BTreeSet<&ClaimName> = statements
            .iter()
            .flat_map(|statement| match &statement.tested {
                Tested::By(claims) => claims.as_slice(),
                Tested::Not(_) | Tested::Elsewhere(_) => &[],
            })
            .collect();
        for experiment in catalog.experiments.iter().filter(|e| e.paper == *paper) {
            let is_of_code = |claim: &Claim| {
                let selects = claim.checks.iter().flat_map(|own| own.check.published());
                let mut values =
                    selects.flat_map(|s| catalog.published.select(paper, &experiment.item, s));
                values.any(|value| value.is_of_code())
            };
            let own = experiment
                .claims
                .iter()
                .filter(|claim| !claim.is_ours && claim.repeats.is_none() && !is_of_code(claim));
            for claim in own {
                let name = ClaimName {
                    paper: paper.clone(),
                    item: experiment.item.clone(),
                    claim: claim.id.clone(),
                };
                if !named.contains(&name) {
                    missing.push(name.to_string());
                }
            }
        }
    }
    assert!(missing.is_empty(), "decide no statement of data/papers/*.coverage.yaml: {missing:?}");
}

/// Catches a number of the authors' notebooks or code that does not name its file and cell or line, so that nobody can look it up.
#[test]
fn numbers_of_the_authors_code_name_their_place() {
    let catalog = Catalog::read(&root(), posenc_protocols::KINDS).unwrap();
    let mut checked = 0;
    for experiment in &catalog.experiments {
        for value in catalog.published.item(&experiment.paper, &experiment.item) {
            if value.is_of_code() {
                // A number in the name of a file needs no line.
                let has_place =
                    [".ipynb; cell ", ".py; line "].iter().any(|place| value.note.contains(place))
                        || (value.note.contains("; ") && value.note.ends_with(".pdf"));
                assert!(has_place, "{}, {}: {}", experiment.id(), value.method, value.note);
                checked += 1;
            }
        }
    }
    assert!(checked > 500, "{checked}");
}

/// Catches published values that nothing uses because of a typo, that would be averaged, or that are not numbers.
#[test]
fn published_values_match_what_is_measured() {
    let (root, folder) = demo();
    let text = "paper: demo\nitem: fig1\nkind: figure\ntitle: T\nshows: S\ngroups:\n  - id: rank\n    protocol: { kind: stable-rank, samples: [4, 16] }\n    \
                variants: [{ id: M, embedder: { kind: identity } }]\ntables: [{ id: t, title: T, groups: [rank, printed], methods: [M, N], \
                columns: [{ metric: stable_rank, label: rank }, { metric: stable_rank, published_metric: width, label: width }] }]\n";
    let good = "fig1,rank,M,,stable_rank,16,15.54,0.1,,theory,\"a, b\"\nfig1,printed,N,,width,16,15.54,,,theory,\n";
    let read = |yaml: &str, rows: &str| {
        std::fs::write(folder.join("01-fig1.yaml"), yaml).unwrap();
        let header = "item,group,method,signal,metric,x,value,std,unit,source,note\n";
        std::fs::write(root.path().join("data/papers/demo.csv"), format!("{header}{rows}"))
            .unwrap();
        Catalog::read(root.path(), posenc_protocols::KINDS).map(drop).map_err(|e| e.to_string())
    };
    assert_eq!(read(text, good), Ok(()));
    for (from, to, line, part) in [
        ("15.54,0.1", "NaN,0.1", 2, "`value`: NaN is not allowed"),
        ("15.54,0.1", "1e999,0.1", 2, "`value`: inf is not allowed"),
        ("15.54,0.1", "15.54,-inf", 2, "`std`: -inf is not allowed; allowed: 0 or more"),
        ("15.54,0.1", "15.54,-1", 2, "`std`: -1 is not allowed; allowed: 0 or more"),
        ("rank,M", " rank,M", 2, "`group`: spaces"),
        ("rank,M", "rank,M\u{a0}", 2, "`method`: spaces"),
        ("stable_rank,16", "stable_rank,inf", 2, "`x`: inf is not allowed"),
        ("stable_rank,16", "stable_rank,17", 2, "`x`: 17 is in no list"),
        ("M,,", "M,image,", 2, "`signal`: the group has no data"),
        ("fig1,rank", "fig2,rank", 2, "`item`: no item `fig2`; allowed: fig1"),
        (
            "rank,M",
            "rnak,M",
            2,
            "`group`: no group `rnak`; allowed: printed, rank; did you mean `rank`?",
        ),
        ("rank,M", "rank,MM", 2, "`method`: no method `MM`; allowed: M, N"),
        (
            ",stable_rank",
            ",stable_rnak",
            2,
            "`metric`: `stable-rank` records no metric `stable_rnak`",
        ),
        ("printed,N", "printed,n", 3, "`method`: no method `n`"),
        (",width", ",widht", 3, "`metric`: no claim, table or plot uses this metric"),
    ] {
        let message = read(text, &good.replacen(from, to, 1)).unwrap_err();
        assert!(message.contains(&format!("demo.csv:{line}: {part}")), "{to}: {message}");
    }
    let again = format!("{good}fig1,rank,M,,stable_rank,1.6e1,99,,,theory,n\n");
    let message = read(text, &again).unwrap_err();
    assert!(message.contains("demo.csv:4: ") && message.contains("as line 2"), "{message}");
    let message = read(&text.replacen("metric: stable_rank", "metric: stable_rnak", 1), good);
    assert!(message.unwrap_err().contains("01-fig1.yaml:10: `tables[0].columns[0].metric`: "));
}

/// A repository with a paper, and the folder of its items.
fn demo() -> (tempfile::TempDir, std::path::PathBuf) {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("experiments/demo");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::create_dir_all(root.path().join("data/papers")).unwrap();
    std::fs::write(folder.join("paper.yaml"), PAPER).unwrap();
    (root, folder)
}

const PAPER: &str = "key: demo\ntitle: T\nauthors: [A]\nvenue: V\nyear: 2021\nsummary: S\nitems:\n  - { item: fig1, name: F, title: T }\n";

/// Catches an erratum whose printed statement and correction are tested with different tolerances.
#[test]
fn an_erratum_and_its_correction_have_equal_tolerances() {
    let (root, folder) = demo();
    let id = posenc_math::errata::all().first().expect("an erratum").id;
    for (tolerance, is_read) in [("0.1", true), ("0.2", false)] {
        let check = |tolerance: &str| {
            format!(
                "{{ kind: value, of: {{ group: rank, metric: stable_rank }}, expect: 1, tolerance: {{ absolute: {tolerance} }} }}"
            )
        };
        let text = format!(
            "paper: demo\nitem: fig1\nkind: figure\ntitle: T\nshows: S\ngroups:\n  - id: rank\n    protocol: {{ kind: stable-rank, samples: [1] }}\n    \
             variants: [{{ id: A, embedder: {{ kind: identity }} }}]\nclaims:\n  - id: c\n    says: s\n    source: s\n    check: {}\n    \
             erratum: {{ id: {id}, corrected: c, check: {} }}\n",
            check("0.1"),
            check(tolerance)
        );
        std::fs::write(folder.join("01-fig1.yaml"), text).unwrap();
        let catalog = Catalog::read(root.path(), posenc_protocols::KINDS);
        match catalog {
            Ok(_) => assert!(is_read, "{tolerance}"),
            Err(error) => {
                let message = error.to_string();
                assert!(!is_read && message.contains("`tolerance`"), "{message}");
            }
        }
    }
}

/// A repository with the papers `demo` (items fig1 and fig2) and a folder outside with the paper `mine`.
fn two_papers() -> (tempfile::TempDir, std::path::PathBuf) {
    let root = tempfile::tempdir().unwrap();
    let write = |file: &str, text: &str| {
        let file = root.path().join(file);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    };
    let more = "  - { item: fig2, name: F, title: T }\n";
    write("experiments/demo/paper.yaml", &format!("{PAPER}{more}"));
    write("experiments/demo/01-fig1.yaml", &item("demo", "fig1"));
    write("experiments/demo/02-fig2.yaml", &item("demo", "fig2"));
    write("data/manifest.yaml", "sets:\n  - id: pictures\nfile_sets:\n  - id: texts\n");
    write("data/papers/demo.csv", "item,group,method,signal,metric,x,value,std,unit,source,note\n");
    write("outside/paper.yaml", &PAPER.replace("demo", "mine"));
    write("outside/01-fig1.yaml", &item("mine", "fig1"));
    let outside = root.path().join("outside");
    (root, outside)
}

fn item(paper: &str, item: &str) -> String {
    format!(
        "paper: {paper}\nitem: {item}\nkind: figure\ntitle: T\nshows: S\ngroups:\n  - id: a\n    protocol: {{ kind: closed-form }}\n    \
         data: {{ set: pictures }}\n    variants: [{{ id: M, embedder: {{ kind: identity }} }}]\n"
    )
}

/// Catches a broken file that hides the other experiments or is not reported, and other files that are blamed for it.
#[test]
fn a_broken_file_is_left_out_alone() {
    let (root, outside) = two_papers();
    let file = root.path().join("experiments/demo/01-fig1.yaml");
    let read = |file: &std::path::Path| std::fs::read_to_string(file).unwrap();
    let good = read(&file);
    let usable = || Catalog::usable(root.path(), &[], posenc_protocols::KINDS).unwrap();
    assert!(usable().broken.is_empty());
    // Published values, coverage and comparisons may name the item that is left out.
    let csv = root.path().join("data/papers/demo.csv");
    let header = std::fs::read_to_string(&csv).unwrap();
    std::fs::write(&csv, header + "fig1,a,M,,test_psnr,,1,,,paper,\n").unwrap();
    let (typo, syntax) =
        (good.replace("kind: figure", "kidn: figure"), good.replace("groups:", "groups: ["));
    for (text, place) in [(typo, "01-fig1.yaml:3: "), (syntax, "01-fig1.yaml:")] {
        std::fs::write(&file, text).unwrap();
        let catalog = usable();
        let ids: Vec<String> = catalog.experiments.iter().map(|e| e.id()).collect();
        assert_eq!(ids, ["demo/fig2"]);
        let [error] = &catalog.broken[..] else { panic!("{:?}", catalog.broken) };
        assert!(error.to_string().contains(place), "{error}");
        let strict = Catalog::read(root.path(), posenc_protocols::KINDS).unwrap_err();
        assert_eq!(strict.to_string(), error.to_string());
    }
    std::fs::write(&file, good).unwrap();
    // Files of a paper: without its published values, its experiments would be judged against nothing.
    let values = read(&csv);
    let paper = root.path().join("experiments/demo/paper.yaml");
    let coverage = root.path().join("data/papers/demo.coverage.yaml");
    for (file, text, left) in [
        (&csv, format!("{values}fig2,a,M,,test_psnr,,1,,,rumor,\n"), 0),
        (&coverage, "- [".to_owned(), 2),
        (&paper, format!("{}answer: A sentence without a claim.\n", read(&paper)), 2),
    ] {
        let good = file.exists().then(|| read(file));
        std::fs::write(file, text).unwrap();
        let catalog = usable();
        assert_eq!((catalog.experiments.len(), catalog.broken.len()), (left, 1), "{file:?}");
        assert_eq!(catalog.broken[0].file, *file);
        match good {
            Some(good) => std::fs::write(file, good).unwrap(),
            None => std::fs::remove_file(file).unwrap(),
        }
    }
    std::fs::write(outside.join("paper.yaml"), "key: [").unwrap();
    let catalog = Catalog::usable(root.path(), &[outside], posenc_protocols::KINDS).unwrap();
    assert_eq!((catalog.papers.len(), catalog.broken.len()), (1, 1));
}

/// Catches a folder outside the repository that is not read, or whose paper replaces another one.
#[test]
fn folders_outside_add_papers() {
    let (root, outside) = two_papers();
    let read = |include: &[std::path::PathBuf]| {
        let catalog = Catalog::with(root.path(), include, posenc_protocols::KINDS);
        catalog.map(|catalog| catalog.experiments.iter().map(|e| e.id()).collect::<Vec<_>>())
    };
    assert_eq!(read(&[]).unwrap(), ["demo/fig1", "demo/fig2"]);
    assert_eq!(
        read(std::slice::from_ref(&outside)).unwrap(),
        ["demo/fig1", "demo/fig2", "mine/fig1"]
    );
    let twice = read(&[outside.clone(), outside.clone()]).unwrap_err().to_string();
    assert!(twice.contains("outside/paper.yaml:1: `key`: `mine` is the key of"), "{twice}");
    std::fs::write(outside.join("paper.yaml"), PAPER).unwrap();
    let taken = read(&[outside]).unwrap_err().to_string();
    assert!(taken.contains("`demo` is the key of") && taken.contains("demo/paper.yaml"), "{taken}");
}

/// Catches a data set that does not exist and that only a run finds.
#[test]
fn data_sets_are_in_the_manifest() {
    let (root, _) = two_papers();
    let file = root.path().join("experiments/demo/01-fig1.yaml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("set: pictures", "set: picture")).unwrap();
    let error = Catalog::read(root.path(), posenc_protocols::KINDS).unwrap_err().to_string();
    for part in ["01-fig1.yaml:9: `groups[0].data.set`: ", "texts; did you mean `pictures`?"] {
        assert!(error.contains(part), "{error}");
    }
}
