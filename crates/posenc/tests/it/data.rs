//! Users' data: broken files, and their own images.

use crate::common;

use std::path::Path;

use common::{EXPERIMENT, Repository};

/// Catches a broken archive that is silently replaced by generated images.
#[test]
fn a_broken_archive_is_an_error_with_its_name() {
    let repository = Repository::with_experiment(EXPERIMENT);
    let images = "extensions/mexican-hat/images";
    repository.write("mine/div2k/data_div2k.npz", "this is no zip archive");
    repository.fails(&["reproduce", images, "--data", "mine"], &["data_div2k.npz"]);
    std::fs::remove_file(repository.path().join("mine/div2k/data_div2k.npz")).unwrap();
    repository
        .ok(&["reproduce", images, "--data", "mine", "--profile", "smoke"])
        .says(&["synthetic data (embedded:dead-leaves)"]);
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
    run.says(&["user:photos"]);
    std::fs::remove_file(folder.join("one.png")).unwrap();
    std::fs::remove_file(folder.join("two.png")).unwrap();
    repository.fails(&arguments, &["photos", "no image of the folder has at least 512×512"]);
}

/// Catches values that are measured on a held-out set of the user and labeled with the training set.
#[test]
fn held_out_images_of_the_user_name_the_values() {
    let head = &EXPERIMENT[..EXPERIMENT.find("groups:").unwrap()];
    let group = "groups:
  - id: line
    data: { set: div2k-train, held_out: div2k-test }
    protocol:
      kind: psnr-prediction
      samples: 16
      predictors: [stable-rank, preserved-distance]
      families:
        - { name: Gaussian, embedder: { kind: gaussian }, parameter: sigma, values: [0.01, 0.02, 0.04], dimensions: [32] }
        - { name: Triangle, embedder: { kind: triangle }, parameter: half_width, values: [0.02, 0.04, 0.08], dimensions: [32] }
    variants: [{ id: all }]
";
    let repository = Repository::with_experiment(&format!("{head}{group}"));
    for folder in ["training", "measured"] {
        std::fs::create_dir(repository.path().join(folder)).unwrap();
        for side in [512, 640] {
            picture(&repository.path().join(folder).join(format!("{side}.png")), side);
        }
    }
    let item = "extensions/mexican-hat";
    let (training, measured) = ("div2k-train=training", "div2k-test=measured");
    for (out, images, label) in [
        ("both", vec!["--images", training, "--images", measured], ",user:measured\n"),
        ("measured-only", vec!["--images", measured], ",user:measured\n"),
        ("training-only", vec!["--images", training], ",embedded:dead-leaves\n"),
    ] {
        repository.ok(&[&["reproduce", item, "--out", out][..], &images].concat());
        let record = repository.table(&format!("{out}/record"));
        assert!(record.contains(label), "{out}: {record}");
        let page = repository.read(&format!("{out}/report/extensions/mexican-hat.md"));
        let replaced = "instead of fitting on `div2k-train` and measuring on `div2k-test`";
        assert!(page.contains(replaced), "{out}: {page}");
    }
}

fn picture(file: &Path, side: u32) {
    image::RgbImage::from_fn(side, side, |x, y| image::Rgb([x as u8, y as u8, (x ^ y) as u8]))
        .save(file)
        .unwrap();
}
