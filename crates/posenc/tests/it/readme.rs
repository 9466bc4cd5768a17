//! README and its guides: the commands in them exist, and those that no other test file runs work as described.

use crate::common;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use common::{EXPERIMENT, Repository, experiment, has};
use image::{Rgb, RgbImage};
use posenc_files::testing::{Need, skip};
use serde_json::Value;

/// README and the guides that it links to.
fn guides() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let files = ["README.md", "docs/TASKS.md", "docs/PLATFORMS.md", "docs/SPEED.md"];
    files.map(|file| std::fs::read_to_string(root.join(file)).unwrap()).concat()
}

fn inline_code(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| line.contains('`') && !line.starts_with("```"));
    lines.flat_map(|line| line.split('`').skip(1).step_by(2)).map(str::to_owned).collect()
}

/// Words up to the first option.
fn before_options(command: &str) -> Vec<&str> {
    command.split_whitespace().take_while(|word| !word.starts_with('-')).collect()
}

fn options(command: &str) -> Vec<&str> {
    let words = command.split(|c: char| c.is_whitespace() || c == '=');
    words.filter(|word| word.starts_with("--") && word.len() > 2).collect()
}

/// Catches a command or an option that a guide shows and the program no longer has.
#[test]
fn every_command_and_option_of_the_guides_exists() {
    let repository = Repository::new();
    let help = |words: &[&str]| repository.ok(&[words, &["--help"]].concat()).stdout;
    let has = |help: &str, option: &str| {
        let mut words = help.split(|c: char| c.is_whitespace() || ",[]<>=.;:".contains(c));
        words.any(|word| word == option)
    };
    let mut all = help(&["data", "fetch"]);
    for verb in ["reproduce", "fit", "bench", "list", "report", "diff", "verify"] {
        all += &help(&[verb]);
    }
    let (mut commands, mut loose) = (0, 0);
    for code in inline_code(&guides()) {
        if let Some(command) = code.strip_prefix("cargo xtask ") {
            let words = before_options(command);
            // xtask runs these itself.
            if ["test", "check", "book"].contains(&words[0]) {
                continue;
            }
            let help = help(&words);
            for option in options(command) {
                assert!(has(&help, option), "`{code}`: no {option} in:\n{help}");
            }
            commands += 1;
        } else if code.starts_with("--") {
            for option in options(&code) {
                // Options of `new embedder` and of `cargo xtask book`.
                if !["--formula", "--open"].contains(&option) {
                    assert!(has(&all, option), "`{code}`: no command has {option}");
                    loose += 1;
                }
            }
        }
    }
    assert!(commands > 15 && loose > 15, "{commands} commands, {loose} options");
}

/// Catches items that a guide runs and no experiment defines.
#[test]
fn every_item_of_the_guides_can_be_run() {
    let repository = Repository::new();
    let mut items = BTreeSet::new();
    for code in inline_code(&guides()) {
        for word in code.split_whitespace() {
            let paper = word.split('/').next().unwrap_or_default();
            if ["rethinking", "trading", "lff"].contains(&paper) && word.contains('/') {
                items.insert(word.to_owned());
            }
        }
    }
    assert!(items.len() >= 5, "{items:?}");
    let plan = ["reproduce", "--profile", "smoke", "--dry-run", "--verbose"];
    let plan: Vec<&str> = plan.into_iter().chain(items.iter().map(String::as_str)).collect();
    let plan = repository.ok(&plan);
    for item in items {
        assert!(plan.stdout.lines().any(|line| line.starts_with(&item)), "{item}: {}", plan.stdout);
    }
    let plan = repository.ok(&["reproduce", "rethinking/fig7", "--profile", "paper", "--dry-run"]);
    assert!(!plan.stdout.is_empty(), "{}", plan.stderr);
    repository.ok(&["data", "list"]).prints(&["div2k-test", "video-clips"]);
}

/// Catches a kind of embedder that is not listed, or listed without its parameters.
#[test]
fn all_embedders_are_listed_with_their_parameters() {
    let repository = Repository::new();
    let listed = repository.ok(&["list", "--embedders"]).stdout;
    let kinds: Vec<&str> = listed.lines().filter(|line| !line.starts_with(' ')).collect();
    assert_eq!(kinds.len(), posenc_math::embedder::registry().len(), "{listed}");
    for kind in posenc_math::embedder::registry() {
        let head = format!("{} ({}; ", kind.name, kind.label);
        let mut lines = listed.lines().skip_while(|line| !line.starts_with(&head)).skip(1);
        for parameter in kind.parameters {
            let line = lines.next().unwrap_or_default();
            assert!(line.starts_with(&format!("  {}: ", parameter.name)), "{line}");
            assert!(line.contains("; allowed: "), "{line}");
        }
    }
}

/// Catches a `doctor` that omits a part of the machine, or does not explain what is missing.
#[test]
fn the_doctor_reports_every_part() {
    let repository = Repository::new();
    let run = repository.run_with("POSENC_PYTHON", "no-such-python", &["doctor"]).ends_with(0);
    for part in ["posenc ", "processor ", "experiments ", "device ", "wgpu ", "video ", "data "] {
        assert!(run.stdout.lines().any(|line| line.starts_with(part)), "{part}: {}", run.stdout);
    }
    run.prints(&["peers       off: no-such-python cannot be", "pip install torch"]);
}

/// Catches a measurement that requires Python, or that changes the record without `--record`.
#[test]
fn speed_is_measured_and_recorded_without_python() {
    let repository = Repository::with_experiment(EXPERIMENT);
    repository.write("docs/SPEED.md", "# x\n\n<!-- speed: made -->\n<!-- /speed -->\n");
    let bench = |more: &[&str]| {
        // The fastest workloads.
        let arguments = ["bench", "closed-form-tri", "closed-form-tri-16", "--repeats", "1"];
        let arguments = [&arguments[..], more].concat();
        repository.run_with("POSENC_PYTHON", "no-such-python", &arguments).ends_with(0)
    };
    bench(&[])
        .says(&["note: no-such-python cannot be started", "its times are left out"])
        .prints(&["closed-form-tri: closed form, triangle"]);
    let file = "report/record/benchmarks.json";
    assert!(!repository.path().join(file).exists());

    let run = bench(&["--record"]);
    assert!(run.stdout.trim_end().ends_with("benchmarks.json"), "{}", run.stdout);
    let record: Value = serde_json::from_str(&repository.read(file)).unwrap();
    for name in ["closed-form-tri", "closed-form-tri-16"] {
        let own = &record[name];
        assert!(own["ours_s"].as_f64().unwrap() > 0.0, "{record}");
        assert!(own["torch_s"].is_null() && own["peers"] == serde_json::json!([]), "{record}");
    }
    // A workload that is measured again replaces its own numbers only.
    let text = common::without_checksum(&repository.read(file));
    repository.write(file, &text.replace("\"closed-form-tri-16\"", "\"other\""));
    bench(&["--record"]);
    let text = common::without_checksum(&repository.read(file));
    let record: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(record.as_object().unwrap().len(), 3, "{record}");
    repository.ok(&["report"]);
    repository.ok(&["report", "--check"]);
}

const CLIPS: &str = "  - id: clips
    data: { set: video-clips }
    protocol: { kind: closed-form, step: 2 }
    variants:
      - { id: Gaussian, embedder: { kind: gaussian, dimension: 16, sigma: 0.05 } }
";

/// A repository whose set of clips is smaller than the papers', so that small films suffice.
fn with_small_clips() -> Repository {
    let repository = Repository::with_experiment(&experiment(CLIPS));
    let manifest = repository.read("data/manifest.yaml");
    let (before, clips) = manifest.split_once("- id: video-clips").unwrap();
    let small = clips.replacen("size: 128\n    frames: 128", "size: 16\n    frames: 8", 1);
    assert_ne!(small, clips);
    repository.write("data/manifest.yaml", &format!("{before}- id: video-clips{small}"));
    repository
}

/// Writes the frames of a film into a folder.
fn save_frames(folder: PathBuf, brightness: u8) {
    std::fs::create_dir_all(&folder).unwrap();
    for t in 0..12u8 {
        let pixel = |x: u32, y: u32| Rgb([brightness + 4 * x as u8, 4 * y as u8 + 3 * t, 90]);
        RgbImage::from_fn(32, 32, pixel).save(folder.join(format!("{t:02}.png"))).unwrap();
    }
}

/// Names of the signals in the record.
fn signals(repository: &Repository) -> BTreeSet<String> {
    let record = repository.table("out/record");
    let rows: Vec<Vec<&str>> = record.lines().map(|line| line.split(',').collect()).collect();
    let column = rows[0].iter().position(|name| *name == "signal").unwrap();
    rows[1..].iter().map(|row| row[column].to_owned()).filter(|name| !name.is_empty()).collect()
}

const CLIPS_OPTION: [&str; 3] = ["reproduce", "--images", "video-clips=films"];

/// Catches the user's films that are not used, not labeled, or swapped.
#[test]
fn the_users_films_are_used() {
    let repository = with_small_clips();
    save_frames(repository.path().join("films/one"), 10);
    save_frames(repository.path().join("films/two"), 60);
    repository.ok(&CLIPS_OPTION);
    let record = repository.table("out/record");
    assert!(record.contains(",user:films"), "{record}");
    assert_eq!(signals(&repository), BTreeSet::from(["one", "two"].map(str::to_owned)), "{record}");
    assert!(repository.read("out/report/extensions/mexican-hat.md").contains("user:films"));

    // An npz file that the program itself writes.
    repository.ok(&["fit", "films/one", "--out", "three.npz"]);
    repository.ok(&["reproduce", "--images", "video-clips=three.npz", "--out", "array"]);
    has(&repository.table("array/record"), &[",user:three.npz", "test_psnr"]);

    let small = RgbImage::from_pixel(8, 8, Rgb([1, 2, 3]));
    std::fs::create_dir(repository.path().join("films/four")).unwrap();
    for t in 0..12 {
        small.save(repository.path().join(format!("films/four/{t}.png"))).unwrap();
    }
    repository.fails(&CLIPS_OPTION, &["four", "8×8", "at least 16×16"]);
}

/// Catches an mp4 file that is not decoded between option and record, and a missing decoder that is not explained. The film has 24
/// frames of 48 × 32 pixels.
#[test]
fn the_users_mp4_file_is_used() {
    let repository = with_small_clips();
    std::fs::create_dir(repository.path().join("films")).unwrap();
    let film = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/film.mp4");
    std::fs::copy(film, repository.path().join("films/film.mp4")).unwrap();
    if !cfg!(feature = "video") {
        repository.fails(&CLIPS_OPTION, &["film.mp4", "apt-get install", "folder of frames"]);
        skip(Need::Ffmpeg, "this build reads no video files");
        return;
    }
    repository.ok(&CLIPS_OPTION);
    assert_eq!(signals(&repository), BTreeSet::from(["film.mp4".to_owned()]));
    repository.ok(&["doctor"]).prints(&["video       FFmpeg "]);
}
