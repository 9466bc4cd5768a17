use posenc_experiments::record::{Origin, Picture, Provenance};
use posenc_experiments::yaml::Document;

use super::*;

const EXPERIMENT: &str = "
paper: p
item: i
kind: extra
title: A test
shows: A test
groups:
  - id: images
    data: { set: div2k-test }
    protocol: { kind: closed-form }
    variants:
      - { id: Gau, embedder: { kind: gaussian, dimension: 16, sigma: 0.1 } }
      - { id: Tri, embedder: { kind: triangle, dimension: 16, half_width: 0.1 } }
    profiles:
      smoke: { reduced: one image, signals: 1 }
  - id: others
    data: { set: div2k-test }
    protocol: { kind: closed-form }
    variants:
      - { id: Gau, embedder: { kind: gaussian, dimension: 16, sigma: 0.1 } }
pictures:
  - { id: grid, title: A grid, groups: [images], show: [truth, reconstruction] }
";

const GENERATED: &str = "embedded:dead-leaves";

fn experiment() -> Experiment {
    let document = Document::parse(Path::new("a.yaml"), EXPERIMENT).unwrap();
    Experiment::from_document(&document, posenc_protocols::KINDS).unwrap()
}

/// A run with pictures of three signals for each of these methods.
fn run(methods: &[&str], data: &str, profile: Profile, level: u8) -> Collected {
    let mut pictures = Vec::new();
    for (index, method) in (0..).zip(methods) {
        for (place, signal) in (0..).zip(["a", "b", "c"]) {
            for (name, own) in [("truth", 0), ("reconstruction", 1 + index), ("error", 9)] {
                let shade = level + 20 * place + own;
                let picture = Picture::new(name, signal, (128, 1, 1), vec![shade; 128]);
                let bytes = picture.png().unwrap();
                let picture = GalleryPicture {
                    group: "images".into(),
                    method: (*method).into(),
                    signal: signal.into(),
                    seed: 0,
                    name: name.into(),
                    width: 128,
                    height: 1,
                    channels: 1,
                    enlarged: 1,
                    psnr: None,
                    values: Vec::new(),
                    profile,
                    device: "cpu".into(),
                    data: data.into(),
                    blake3: blake3::hash(&bytes).to_hex().to_string(),
                };
                pictures.push((picture, Content::Bytes(bytes)));
            }
        }
    }
    Collected { pictures, ..Collected::default() }
}

/// Method, signal, name, profile and first pixel of every picture in the reference.
fn reference(directory: &Path) -> Vec<String> {
    let gallery = Gallery::read(&directory.join("p/i")).unwrap();
    assert!(gallery.pictures.iter().all(|p| p.data == GENERATED), "{gallery:?}");
    let one = |p: &GalleryPicture| {
        let bytes = gallery.bytes(p).unwrap();
        let pixels = Picture::from_png(&p.name, &p.signal, &bytes).unwrap().pixels;
        format!("{} {} {} {} {}", p.method, p.signal, p.name, p.profile, pixels[0])
    };
    gallery.pictures.iter().map(one).collect()
}

/// Catches pictures of a data set or of a user's files that enter the reference, before or after other runs, and pictures that the
/// definition does not show.
#[test]
fn only_pictures_of_generated_signals_are_taken() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    for data in ["div2k-test", "other:div2k-test", "user:holiday", "user:embedded"] {
        let local = run(&["Gau", "Tri"], data, Profile::Paper, 0);
        assert!(!promote_pictures(&experiment(), &local, root).unwrap(), "{data}");
        assert!(std::fs::read_dir(root).unwrap().next().is_none(), "{data}");
    }
    let local = run(&["Gau", "Tri"], GENERATED, Profile::Paper, 0);
    assert!(promote_pictures(&experiment(), &local, root).unwrap());
    let all = reference(root);
    // One of three signals, two of three names, of each method.
    let expected = [
        "Gau a truth paper 0",
        "Gau a reconstruction paper 1",
        "Tri a truth paper 0",
        "Tri a reconstruction paper 2",
    ];
    assert_eq!(all, expected);
    // The two truths are stored once.
    assert_eq!(std::fs::read_dir(root.join("p/i")).unwrap().count(), 3 + 1);

    // A later run on the paper's own data leaves them.
    let local = run(&["Gau", "Tri"], "div2k-test", Profile::Paper, 100);
    assert!(!promote_pictures(&experiment(), &local, root).unwrap());
    assert_eq!(reference(root), all);
}

/// Catches a user's pictures that stay in the index: the next promotion must remove them.
#[test]
fn pictures_of_users_do_not_stay_in_the_reference() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let foreign = run(&["Gau"], "user:holiday", Profile::Paper, 0);
    Gallery::write(&root.join("p/i"), foreign.pictures).unwrap();
    let local = run(&["Tri"], GENERATED, Profile::Paper, 50);
    assert!(promote_pictures(&experiment(), &local, root).unwrap());
    assert!(reference(root).iter().all(|p| p.starts_with("Tri ")));
}

/// Catches a smaller run that replaces a larger one, a run of one method that removes the others, and pictures that are swapped during the
/// merge.
#[test]
fn pictures_are_merged_method_by_method() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let experiment = experiment();
    let first = run(&["Gau", "Tri"], GENERATED, Profile::Paper, 0);
    promote_pictures(&experiment, &first, root).unwrap();
    let all = reference(root);
    let small = run(&["Gau", "Tri"], GENERATED, Profile::Smoke, 100);
    assert!(!promote_pictures(&experiment, &small, root).unwrap());
    assert_eq!(reference(root), all);

    // A new run of Gau: its truth differs, and the file that held the old one is Tri's now.
    let one = run(&["Gau"], GENERATED, Profile::Paper, 100);
    assert!(promote_pictures(&experiment, &one, root).unwrap());
    let merged = reference(root);
    assert_eq!(merged[..2], ["Gau a truth paper 100", "Gau a reconstruction paper 101"]);
    assert_eq!(merged[2..], all[2..]);

    // An interrupted run does not replace a whole one.
    let mut less = run(&["Gau"], GENERATED, Profile::Paper, 150);
    less.pictures.truncate(1);
    less.incomplete.push(("images".into(), "Gau".into()));
    assert!(!promote_pictures(&experiment, &less, root).unwrap());

    // The same run restores a lost picture.
    let lost = &one.pictures[1].0;
    assert_eq!((lost.signal.as_str(), lost.name.as_str()), ("a", "reconstruction"));
    std::fs::remove_file(root.join("p/i").join(lost.file())).unwrap();
    assert!(promote_pictures(&experiment, &one, root).unwrap());
    assert_eq!(reference(root), merged);
}

fn row(group: &str, method: &str, value: f64) -> Row {
    Row {
        signal: "a".into(),
        unit: "dB".into(),
        data: "div2k-test".into(),
        ..Row::new(group, method, "test_psnr", value)
    }
}

/// A run that measured these rows at a commit.
fn measured(commit: &str, rows: &[Row]) -> Collected {
    let provenance = Provenance { commit: commit.into(), ..Provenance::default() };
    Collected { table: Table { rows: rows.to_vec() }, provenance, ..Collected::default() }
}

fn recorded(directory: &Path) -> (Table, Provenance) {
    ItemRecord::read_tables(&directory.join("p/i")).unwrap().unwrap()
}

/// The commit of the last run, and that of each method in the reference.
fn commits(directory: &Path) -> (String, Vec<String>) {
    let (table, provenance) = recorded(directory);
    let all = provenance.methods_by_commit(&table.rows);
    let lines = all.iter().flat_map(|(commit, groups)| {
        groups.iter().map(move |(group, methods)| format!("{commit}: {group} {methods:?}"))
    });
    (provenance.commit.clone(), lines.collect())
}

/// Catches rows of an earlier run that get the commit of the last one, also for methods that are no variants.
#[test]
fn rows_that_stay_keep_their_commit() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let promote = |local: &Collected| promote(&experiment(), local, root).unwrap();
    let first =
        [row("images", "Gau", 1.0), row("images", "Tri", 2.0), row("others", "by rows", 3.0)];
    promote(&measured("a-dirty", &first));
    assert_eq!(
        commits(root).1,
        [r#"a-dirty: images {"Gau", "Tri"}"#, r#"a-dirty: others {"by rows"}"#]
    );
    promote(&measured("b", &[row("images", "Tri", 4.0)]));
    let expected =
        [r#"a-dirty: images {"Gau"}"#, r#"a-dirty: others {"by rows"}"#, r#"b: images {"Tri"}"#];
    assert_eq!(commits(root), ("b".to_owned(), expected.map(str::to_owned).into()));
    // A third run, then one with a reduced profile that is rejected.
    promote(&measured("c", &[row("images", "Gau", 5.0)]));
    let reduced = Row { profile: Profile::Smoke, ..row("images", "Tri", 9.0) };
    promote(&measured("d", &[row("images", "Gau", 6.0), reduced]));
    let expected =
        [r#"a-dirty: others {"by rows"}"#, r#"b: images {"Tri"}"#, r#"d: images {"Gau"}"#];
    assert_eq!(commits(root), ("d".to_owned(), expected.map(str::to_owned).into()));
}

/// Catches a dirty commit that stays although a clean one yields the same bits, a dirty commit that replaces a clean one, and a file that
/// is rewritten without new information.
#[test]
fn equal_bits_of_a_clean_commit_replace_those_of_a_dirty_one() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let promote = |local: &Collected| promote(&experiment(), local, root).unwrap();
    let rows = [row("images", "Gau", 1.0), row("images", "Tri", 2.0)];
    promote(&measured("a-dirty", &rows));
    promote(&measured("b", &rows[..1]));
    let expected = [r#"a-dirty: images {"Tri"}"#, r#"b: images {"Gau"}"#];
    assert_eq!(commits(root), ("b".to_owned(), expected.map(str::to_owned).into()));
    promote(&measured("c", &rows));
    let expected = [r#"b: images {"Gau"}"#, r#"c: images {"Tri"}"#];
    let clean = ("c".to_owned(), expected.map(str::to_owned).into());
    assert_eq!(commits(root), clean);
    for later in ["d-dirty", "e", ""] {
        promote(&measured(later, &rows));
        assert_eq!(commits(root), clean, "{later}");
    }
    promote(&measured("f-dirty", &[rows[0].clone(), row("images", "Tri", 3.0)]));
    let expected = [r#"b: images {"Gau"}"#, r#"f-dirty: images {"Tri"}"#];
    assert_eq!(commits(root), ("f-dirty".to_owned(), expected.map(str::to_owned).into()));
}

fn origin(revisions: &str) -> Origin {
    Origin {
        profile: Profile::Paper,
        seed: 0,
        repetitions: 1,
        signals: 1,
        specification: "closed-form {} | gaussian".into(),
        revisions: revisions.into(),
        data: "-".into(),
    }
}

/// Catches a record of an older version that is kept because its numbers are equal, so that `--from` still rejects it.
#[test]
fn equal_numbers_of_a_newer_version_replace_its_origin() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let rows = [row("images", "Gau", 1.0)];
    let of = |revisions: &str| {
        let mut local = measured("a", &rows);
        local.provenance.origins.insert("images/Gau".into(), origin(revisions));
        local
    };
    for revisions in ["closed-form 1", "closed-form 2"] {
        promote(&experiment(), &of(revisions), root).unwrap();
        let (_, provenance) = recorded(root);
        assert_eq!(provenance.origins["images/Gau"].revisions, revisions);
    }
}

/// Catches a run of other signals that replaces the recorded ones without a notice, or that is joined with rows of another version.
#[test]
fn runs_of_different_signals_join() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let promote = |signals: &[&str], value: f64, revisions: &str| {
        let of = |signal: &&str| Row { signal: (*signal).into(), ..row("images", "Gau", value) };
        let mut local = measured("a", &signals.iter().map(of).collect::<Vec<_>>());
        local.incomplete.push(("images".into(), "Gau".into()));
        local.provenance.origins.insert("images/Gau".into(), origin(revisions));
        let dropped = promote(&experiment(), &local, root).unwrap().dropped;
        let dropped = dropped.into_iter().flat_map(|(_, signals)| signals).collect::<Vec<_>>();
        let (table, _) = recorded(root);
        let one = |row: &Row| format!("{} {}", row.signal, row.value);
        (table.rows.iter().map(one).collect::<Vec<_>>().join(", "), dropped.join(" "))
    };
    let expected = |rows: &str, dropped: &str| (rows.to_owned(), dropped.to_owned());
    assert_eq!(promote(&["c", "d"], 1.0, "closed-form 1"), expected("c 1, d 1", ""));
    assert_eq!(promote(&["a", "d"], 2.0, "closed-form 1"), expected("a 2, c 1, d 2", ""));
    // Signals that cannot be joined are reported.
    assert_eq!(promote(&["a", "b", "c"], 3.0, "closed-form 2"), expected("a 3, b 3, c 3", "d"));
}

/// Catches a complete run of a smaller profile whose signal the reference rejects or loses.
#[test]
fn a_smaller_profile_of_the_same_protocol_joins() {
    use Profile::{Paper, Smoke};
    let promoted = |runs: &[(&str, Profile)]| {
        let directory = tempfile::tempdir().unwrap();
        for (value, (signal, profile)) in runs.iter().enumerate() {
            let signal = (*signal).to_owned();
            let of = Row { signal, profile: *profile, ..row("images", "Gau", value as f64) };
            let mut local = measured("a", &[of]);
            if *profile == Paper {
                local.incomplete.push(("images".into(), "Gau".into()));
            }
            let signals = if *profile == Paper { 3 } else { 1 };
            let origin = Origin { signals, ..origin("closed-form 1") };
            local.provenance.origins.insert("images/Gau".into(), origin);
            promote(&experiment(), &local, directory.path()).unwrap();
        }
        let (table, provenance) = recorded(directory.path());
        assert_eq!(provenance.origins["images/Gau"].signals, 3);
        let one = |row: &Row| format!("{} {} {}", row.signal, row.value, row.profile);
        table.rows.iter().map(one).collect::<Vec<_>>()
    };
    assert_eq!(promoted(&[("a", Smoke), ("b", Paper)]), ["a 0 paper", "b 1 paper"]);
    assert_eq!(promoted(&[("b", Paper), ("a", Smoke)]), ["a 1 paper", "b 0 paper"]);
    // A smaller profile does not replace a recorded unit.
    assert_eq!(promoted(&[("a", Paper), ("a", Smoke)]), ["a 0 paper"]);
}

/// Catches test PSNRs of a hardly trained network in the reference, and rows of a profile that no longer exists which keep others out.
#[test]
fn only_sizes_of_untrained_networks_are_taken() {
    let text = "paper: p\nitem: i\nkind: extra\ntitle: T\nshows: S\ngroups:\n  - id: deep\n    data: { set: div2k-test }\n    \
                protocol: { kind: network-nd, step: 2, learning_rate: 0.005, epochs: 500 }\n    variants:\n      \
                - { id: Gau, embedder: { kind: gaussian, dimension: 16, sigma: 0.1 } }\n    profiles:\n      \
                smoke: { reduced: 2 of 500 epochs, settings: { epochs: 2 } }\n      quick: { refused: no time }\n";
    let document = Document::parse(Path::new("a.yaml"), text).unwrap();
    let experiment = Experiment::from_document(&document, posenc_protocols::KINDS).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let of = |metric: &str, value, profile| Row {
        metric: metric.into(),
        profile,
        ..row("deep", "Gau", value)
    };
    // `long` as the profile of an old record: the group does not run at it.
    let promoted = |profile| {
        let local = measured("a", &[of("params", 7.0, profile), of("test_psnr", 9.0, profile)]);
        promote(&experiment, &local, directory.path()).unwrap();
        let (table, _) = recorded(directory.path());
        let one = |row: &Row| format!("{} {}", row.metric, row.profile);
        table.rows.iter().map(one).collect::<Vec<_>>()
    };
    assert_eq!(promoted(Profile::Long), ["params long", "test_psnr long"]);
    assert_eq!(promoted(Profile::Smoke), ["params smoke"]);
    assert_eq!(promoted(Profile::Paper), ["params paper", "test_psnr paper"]);
}

/// Catches generated signals that replace real substitutes of a paper's data.
#[test]
fn real_signals_are_worth_more_than_generated_ones() {
    let group = |set: &str| {
        let text = EXPERIMENT.replace("div2k-test", set);
        let document = Document::parse(Path::new("a.yaml"), &text).unwrap();
        Experiment::from_document(&document, posenc_protocols::KINDS).unwrap().groups.remove(0)
    };
    let of = |data: &str, profile| {
        let row = Row { data: data.into(), profile, ..row("images", "Gau", 1.0) };
        rank(&group("video-clips"), &[row])
    };
    let real = of("substitute:video-clips", Profile::Smoke);
    assert!(real > of("embedded:moving-dead-leaves", Profile::Paper));
    assert!(real > of("substitute:other", Profile::Paper));
    assert!(real < of("video-clips", Profile::Smoke));
}
