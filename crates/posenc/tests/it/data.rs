//! Users' data: the published data, other data, broken files, and their own images.

use crate::common;

use std::path::{Path, PathBuf};

use common::{EXPERIMENT, Repository};
use posenc_files::testing::{Need, skip};

/// Directory of the real data; skips the calling test if the machine does not have it.
fn real_data() -> Option<PathBuf> {
    let directory = std::env::var_os("POSENC_DATA").map(PathBuf::from);
    let found = directory.filter(|directory| directory.join("div2k/data_div2k.npz").exists());
    if found.is_none() {
        skip(Need::Data, "POSENC_DATA names no directory with div2k/data_div2k.npz");
    }
    found
}

fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    (mean, (values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n).sqrt())
}

/// Catches closed-form values that differ from Table 1, for rows that do not depend on the solver: Tri to the printed digits, Gau
/// within 0.15 dB.
#[test]
fn table_1_closed_form_on_the_papers_images() {
    let Some(data) = real_data() else { return };
    let repository = Repository::new();
    let data = data.to_str().unwrap();
    for method in ["Tri", "Gau"] {
        let selector = format!("trading/table1/closed-form/{method}");
        repository.ok(&["reproduce", &selector, "--data", data]);
    }
    let record = common::joined(&repository.path().join("out/record/trading/table1"));
    assert!(record.contains(",paper,cpu,div2k-test"), "not labelled as the paper's data and scale");
    let rows: Vec<String> = record.lines().map(str::to_owned).collect();
    let psnr = |method| common::values(&rows, ["closed-form", method, "test_psnr"]);
    let (mean, deviation) = mean_and_deviation(&psnr("Tri"));
    assert_eq!(format!("{mean:.2} ± {deviation:.2}"), "26.36 ± 3.39");
    let gau = psnr("Gau");
    assert_eq!(gau.len(), 16);
    let (mean, _) = mean_and_deviation(&gau);
    assert!((mean - 26.63).abs() < 0.15, "{mean}");
}

/// Catches a broken archive that is silently replaced by generated images.
#[test]
fn a_broken_archive_is_an_error_with_its_name() {
    let repository = Repository::with_experiment(EXPERIMENT);
    let images = "extensions/mexican-hat/images";
    repository.write("mine/div2k/data_div2k.npz", "this is no zip archive");
    repository.fails(&["reproduce", images, "--data", "mine"], &["data_div2k.npz"]);
    std::fs::remove_file(repository.path().join("mine/div2k/data_div2k.npz")).unwrap();
    let run = repository.ok(&["reproduce", images, "--data", "mine", "--profile", "smoke"]);
    assert!(run.stderr.contains("synthetic data (embedded:dead-leaves)"), "{}", run.stderr);
}

/// Catches a user's own images that are not used, not labeled, or compared with the paper.
#[test]
fn a_folder_of_the_users_images_replaces_a_set() {
    let repository = Repository::with_experiment(EXPERIMENT);
    let folder = repository.path().join("photos");
    std::fs::create_dir(&folder).unwrap();
    picture(&folder.join("one.png"), 512);
    picture(&folder.join("two.png"), 640);
    repository.ok(&["reproduce", "extensions/mexican-hat/images", "--images", "div2k-test=photos"]);
    let record = repository.table("out/record");
    assert!(record.contains(",user:photos"), "{record}");
    assert!(record.contains(",two.png,"), "{record}");
    // A shell does not expand `~` after `=`.
    let images = ["reproduce", "extensions/mexican-hat/images", "--images", "div2k-test=~/photos"];
    let run = repository.command(&images).env("HOME", repository.path()).output().unwrap();
    let log = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success() && log.contains("0 of 6 units to run"), "{log}");
    // A small image does not stop the others.
    picture(&folder.join("three.png"), 100);
    let arguments = ["reproduce", "extensions/mexican-hat/images", "--images", "div2k-test=photos"];
    let run = repository.ok(&arguments);
    let line = run.stderr.lines().find(|line| line.contains("three.png")).unwrap_or_default();
    assert!(
        line.starts_with("  div2k-test  skipped ") && line.contains("512×512"),
        "{}",
        run.stderr
    );
    assert!(run.stderr.contains("user:photos"), "{}", run.stderr);
    std::fs::remove_file(folder.join("one.png")).unwrap();
    std::fs::remove_file(folder.join("two.png")).unwrap();
    repository.fails(&arguments, &["photos", "no image of the folder has at least 512×512"]);
}

fn picture(file: &Path, side: u32) {
    image::RgbImage::from_fn(side, side, |x, y| image::Rgb([x as u8, y as u8, (x ^ y) as u8]))
        .save(file)
        .unwrap();
}
