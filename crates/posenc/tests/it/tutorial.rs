//! `docs/TUTORIAL.md`, followed to the letter with the real binary (`common/guide.rs` lists the directives).

use std::path::Path;

use crate::common::Repository;
use crate::common::guide::Guide;

/// Catches a file, a command, an output or a number in the tutorial that is wrong.
#[test]
fn the_tutorial_can_be_followed() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/TUTORIAL.md");
    let repository = Repository::new();
    let mut guide = Guide::read(&file);
    let steps = guide.steps.clone();
    for step in &steps {
        guide.follow(&repository, step);
    }
    let outputs = steps.iter().filter(|step| step.directive == "output").count();
    assert!(outputs >= 8, "{outputs} outputs");
    guide.finish();
}
