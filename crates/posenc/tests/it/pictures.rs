//! Pictures through the real binary: from a run to the reference and the report.

use crate::common;

use common::{EXPERIMENT, Repository, files_in, has};
use posenc_experiments::record::ItemRecord;

fn experiment() -> String {
    let grid = "pictures:\n  - { id: grid, title: A grid, groups: [images], show: [truth, reconstruction] }\n";
    EXPERIMENT.replace(", side: 64", ", side: 64, pictures: true") + grid
}

const SMOKE: [&str; 3] = ["reproduce", "--profile", "smoke"];

/// Catches pictures of generated images that do not reach the reference and its pages, a damaged picture whose unit does not run
/// again, and a check that ignores pictures.
#[test]
fn pictures_of_generated_images_reach_the_reference() {
    let repository = Repository::with_experiment(&experiment());
    repository.ok(&["reproduce", "extensions/mexican-hat/rank", "--profile", "smoke"]);
    let page = repository.read("out/report/extensions/mexican-hat.md");
    has(&page, &["*No pictures yet: A grid*"]);
    repository.ok(&SMOKE);
    let files = files_in(&repository.path().join("out/raw"), "png");
    assert_eq!(files.len(), 9, "three methods");
    let run = repository.ok(&["reproduce", "--profile", "smoke", "--record"]);
    run.says(&["0 of 6 units to run"]);

    let folder = repository.path().join("report/record/extensions/mexican-hat");
    let pictures = ItemRecord::read(&folder).unwrap().unwrap().table.pictures;
    assert_eq!(pictures.len(), 6);
    let first = &pictures[0];
    assert_eq!(first.data, "embedded:dead-leaves");
    let link = format!("src=\"../record/extensions/mexican-hat/{}\"", first.unit);
    let page = repository.read("report/extensions/mexican-hat.md");
    has(&page, &[&link, "*Reduced run: 1 image · Data: embedded:dead-leaves*"]);
    let local = repository.read("out/report/extensions/mexican-hat.md");
    has(&local, &["src=\"../pictures/extensions/mexican-hat-local/"]);
    repository.ok(&["report", "--check"]);

    // A report elsewhere has its own copies.
    repository.ok(&["report", "--out", "elsewhere"]);
    let copy = format!("elsewhere/pictures/extensions/mexican-hat/{}", first.unit);
    assert!(repository.path().join(copy).is_file());

    // The reference: a missing picture.
    std::fs::remove_file(folder.join(&first.unit)).unwrap();
    repository.fails(&["report", "--check"], &[&first.unit, "is missing", "git checkout"]);
    repository.ok(&["reproduce", "--profile", "smoke", "--record"]);
    repository.ok(&["report", "--check"]);

    // The raw records: units with damaged pictures run again, with the reason.
    let whole = std::fs::read(&files[0]).unwrap();
    std::fs::write(&files[0], &whole[..20]).unwrap();
    std::fs::remove_file(&files[4]).unwrap();
    let run = repository.ok(&SMOKE);
    run.says(&["2 of 6 units to run", "-000-truth.png: damaged"]);
    assert!(run.stderr.contains("-001-reconstruction.png: is missing; running it again"));
}
