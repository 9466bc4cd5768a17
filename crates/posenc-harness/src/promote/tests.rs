use posenc_experiments::record::picture::file_name;
use posenc_experiments::record::{Origin, Picture, Provenance};
use posenc_experiments::yaml::Document;

use super::*;
use std::path::PathBuf;

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

/// A reference in a temporary folder.
struct Reference(tempfile::TempDir);

impl Reference {
    fn new() -> Self {
        Reference(tempfile::tempdir().unwrap())
    }

    fn folder(&self) -> PathBuf {
        self.0.path().join("p/i")
    }

    fn promote(&self, local: &Collected) -> Promoted {
        promote(&experiment(), local, self.0.path()).unwrap()
    }

    fn recorded(&self) -> (Table, Provenance) {
        ItemRecord::read_tables(&self.folder()).unwrap().unwrap()
    }

    /// The commit of the last run, then each commit with the methods of a group.
    fn commits(&self) -> Vec<String> {
        let (table, provenance) = self.recorded();
        let all = provenance.methods_by_commit(&table.rows);
        let lines = all.iter().flat_map(|(commit, groups)| {
            groups.iter().map(move |(group, methods)| format!("{commit}: {group} {methods:?}"))
        });
        std::iter::once(provenance.commit.clone()).chain(lines).collect()
    }
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
    Collected { table: rows.to_vec().into(), provenance, ..Collected::default() }
}

/// Catches pictures of other data than generated signals and pictures that the definition does not show in the reference, pictures that do
/// not follow their numbers, and lost ones that stay lost.
#[test]
fn pictures_are_those_of_the_numbers() {
    let reference = Reference::new();
    let scratch = tempfile::tempdir().unwrap();
    let run = |method: &str, data: &str, profile: Profile, level: u8| {
        let of = |metric: &str| Row {
            metric: metric.into(),
            profile,
            data: data.into(),
            ..row("images", method, f64::from(level))
        };
        let mut local = measured("a", &[of("test_psnr")]);
        for (i, signal) in (0..).zip(["a", "b"]) {
            for (j, name) in (0..).zip(["truth", "reconstruction", "error"]) {
                let shade = level + 3 * i + j;
                let picture = Picture::new(name, signal, (2, 1, 1), vec![shade; 2]);
                let bytes = picture.png().unwrap();
                let unit = file_name(&blake3::hash(&bytes).to_hex());
                let source = scratch.path().join(&unit);
                std::fs::write(&source, bytes).unwrap();
                local.sources.insert(unit.clone(), source);
                let (x, y, signal) = (Some(2.0), Some(1.0), signal.into());
                local.table.pictures.push(Row { signal, unit, x, y, ..of(name) });
            }
        }
        reference.promote(&local);
        let record = ItemRecord::read(&reference.folder()).unwrap().unwrap();
        let one = |p: &Row| {
            let bytes = record.bytes(p).unwrap();
            let pixels = Picture::from_png(&p.metric, "a", &bytes).unwrap().pixels;
            format!("{} {} {} {}", p.method, p.signal, p.metric, pixels[0])
        };
        record.table.pictures.iter().map(one).collect::<Vec<_>>()
    };
    use Profile::{Paper, Smoke};
    let gau = ["Gau a truth 10", "Gau a reconstruction 11"];
    assert_eq!(run("Gau", GENERATED, Paper, 10), gau);
    let both = run("Tri", GENERATED, Paper, 50);
    assert_eq!(both[..2], gau);
    assert_eq!(both[2..], ["Tri a truth 50", "Tri a reconstruction 51"]);
    assert_eq!(run("Gau", GENERATED, Smoke, 100), both, "a smaller run");
    let files = || std::fs::read_dir(reference.folder()).unwrap().flatten();
    assert_eq!(files().count(), 3 + 4);
    for file in files().filter(|file| file.path().extension().is_some_and(|e| e == "png")) {
        std::fs::remove_file(file.path()).unwrap();
    }
    let (_, provenance) = reference.recorded();
    let lost = measured("a", &[]);
    assert!(promote(&experiment(), &lost, reference.0.path()).is_err());
    for file in std::fs::read_dir(scratch.path()).unwrap().flatten() {
        std::fs::copy(file.path(), reference.folder().join(file.file_name())).unwrap();
    }
    assert_eq!(run("Gau", GENERATED, Paper, 10), both, "a second time");
    assert_eq!(reference.recorded().1, provenance);
    assert_eq!(run("Gau", "div2k-test", Smoke, 150), both[2..], "a photograph");
    // Without the grid, the pages that show its pictures must be rendered again.
    let mut without = experiment();
    without.pictures.clear();
    let dropped = promote(&without, &lost, reference.0.path()).unwrap();
    assert!(dropped.is_taken && reference.recorded().0.pictures.is_empty());
    assert!(!promote(&without, &lost, reference.0.path()).unwrap().is_taken);
    assert_eq!(run("Tri", "user:embedded", Paper, 200), [""; 0], "other data");
}

/// Catches rows of an earlier run that get the commit of the last one, also for methods that are no variants.
#[test]
fn rows_that_stay_keep_their_commit() {
    let reference = Reference::new();
    let promote = |local: &Collected| reference.promote(local);
    let first =
        [row("images", "Gau", 1.0), row("images", "Tri", 2.0), row("others", "by rows", 3.0)];
    promote(&measured("a-dirty", &first));
    let others = r#"a-dirty: others {"by rows"}"#;
    assert_eq!(reference.commits(), ["a-dirty", r#"a-dirty: images {"Gau", "Tri"}"#, others]);
    promote(&measured("b", &[row("images", "Tri", 4.0)]));
    let tri = r#"b: images {"Tri"}"#;
    assert_eq!(reference.commits(), ["b", r#"a-dirty: images {"Gau"}"#, others, tri]);
    // A third run, then one with a reduced profile that is rejected.
    promote(&measured("c", &[row("images", "Gau", 5.0)]));
    let reduced = Row { profile: Profile::Smoke, ..row("images", "Tri", 9.0) };
    promote(&measured("d", &[row("images", "Gau", 6.0), reduced]));
    assert_eq!(reference.commits(), ["d", others, tri, r#"d: images {"Gau"}"#]);
}

/// Catches a dirty commit that stays although a clean one yields the same bits, a dirty commit that replaces a clean one, and a file that
/// is rewritten without new information.
#[test]
fn equal_bits_of_a_clean_commit_replace_those_of_a_dirty_one() {
    let reference = Reference::new();
    let promote = |local: &Collected| reference.promote(local);
    let rows = [row("images", "Gau", 1.0), row("images", "Tri", 2.0)];
    promote(&measured("a-dirty", &rows));
    promote(&measured("b", &rows[..1]));
    let gau = r#"b: images {"Gau"}"#;
    assert_eq!(reference.commits(), ["b", r#"a-dirty: images {"Tri"}"#, gau]);
    promote(&measured("c", &rows));
    let clean = ["c", gau, r#"c: images {"Tri"}"#];
    assert_eq!(reference.commits(), clean);
    for later in ["d-dirty", "e", ""] {
        promote(&measured(later, &rows));
        assert_eq!(reference.commits(), clean, "{later}");
    }
    promote(&measured("f-dirty", &[rows[0].clone(), row("images", "Tri", 3.0)]));
    assert_eq!(reference.commits(), ["f-dirty", gau, r#"f-dirty: images {"Tri"}"#]);
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
    let reference = Reference::new();
    let rows = [row("images", "Gau", 1.0)];
    let of = |revisions: &str| {
        let mut local = measured("a", &rows);
        local.provenance.origins.insert("images/Gau".into(), origin(revisions));
        local
    };
    for revisions in ["closed-form 1", "closed-form 2"] {
        reference.promote(&of(revisions));
        let (_, provenance) = reference.recorded();
        assert_eq!(provenance.origins["images/Gau"].revisions, revisions);
    }
}

/// Catches a run of other signals that replaces the recorded ones without a notice, or that is joined with rows of another version.
#[test]
fn runs_of_different_signals_join() {
    let reference = Reference::new();
    let promote = |signals: &[&str], value: f64, revisions: &str| {
        let of = |signal: &&str| Row { signal: (*signal).into(), ..row("images", "Gau", value) };
        let mut local = measured("a", &signals.iter().map(of).collect::<Vec<_>>());
        local.incomplete.push(("images".into(), "Gau".into()));
        local.provenance.origins.insert("images/Gau".into(), origin(revisions));
        let dropped = reference.promote(&local).dropped;
        let dropped = dropped.into_iter().flat_map(|(_, signals)| signals).collect::<Vec<_>>();
        let (table, _) = reference.recorded();
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
        let reference = Reference::new();
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
            reference.promote(&local);
        }
        let (table, provenance) = reference.recorded();
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
    let reference = Reference::new();
    let of = |metric: &str, value, profile| Row {
        metric: metric.into(),
        profile,
        ..row("deep", "Gau", value)
    };
    // `long` as the profile of an old record: the group does not run at it.
    let promoted = |profile| {
        let local = measured("a", &[of("params", 7.0, profile), of("test_psnr", 9.0, profile)]);
        promote(&experiment, &local, reference.0.path()).unwrap();
        let (table, _) = reference.recorded();
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
