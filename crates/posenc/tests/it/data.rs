//! Users' data: broken files, and their own images.

use crate::common;

use common::{EXPERIMENT, Repository, has};

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
    repository.picture("photos/one.png", 512);
    repository.picture("photos/two.png", 640);
    repository.ok(&["reproduce", "extensions/mexican-hat/images", "--images", "div2k-test=photos"]);
    has(&repository.table("out/record"), &[",user:photos", ",two.png,"]);
    // A shell does not expand `~` after `=`.
    let images = ["reproduce", "extensions/mexican-hat/images", "--images", "div2k-test=~/photos"];
    let home = repository.path().to_str().unwrap();
    repository.run_with("HOME", home, &images).ends_with(0).says(&["0 of 6 units to run"]);
    // A small image does not stop the others.
    repository.picture("photos/three.png", 100);
    let arguments = ["reproduce", "extensions/mexican-hat/images", "--images", "div2k-test=photos"];
    let run = repository.ok(&arguments);
    let line = run.stderr.lines().find(|line| line.contains("three.png")).unwrap_or_default();
    assert!(line.starts_with("  div2k-test  skipped ") && line.contains("512×512"), "{line}");
    run.says(&["user:photos"]);
    for name in ["one", "two"] {
        std::fs::remove_file(repository.path().join(format!("photos/{name}.png"))).unwrap();
    }
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
    for (folder, side) in
        [("training", 512), ("training", 640), ("measured", 512), ("measured", 640)]
    {
        repository.picture(&format!("{folder}/{side}.png"), side);
    }
    let item = "extensions/mexican-hat";
    let (training, measured) = ("div2k-train=training", "div2k-test=measured");
    for (out, images, label) in [
        ("both", vec!["--images", training, "--images", measured], ",user:measured\n"),
        ("measured-only", vec!["--images", measured], ",user:measured\n"),
        ("training-only", vec!["--images", training], ",embedded:dead-leaves\n"),
    ] {
        repository.ok(&[&["reproduce", item, "--out", out][..], &images].concat());
        has(&repository.table(&format!("{out}/record")), &[label]);
        let page = repository.read(&format!("{out}/report/extensions/mexican-hat.md"));
        has(&page, &["instead of fitting on `div2k-train` and measuring on `div2k-test`"]);
    }
}
