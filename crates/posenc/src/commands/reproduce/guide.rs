//! `out/README.md`: what the folders of a run contain and which of them can be deleted.

use std::path::Path;

use posenc_experiments::text::read_text;
use posenc_files::{is_there, write_if_changed};
use posenc_harness::lock::TITLE;

const TEXT: &str = "
Read `report/README.md` first. Git ignores this folder, and nothing in it is needed to build the project.

| name | contents | if you delete it |
|---|---|---|
| `report/` | the report of this machine's results | the next run renders it again |
| `record/` | for each figure, table or proposition `units.csv`, `values.csv`, provenance and pictures | the next run collects it again from `raw/` |
| `raw/` | one JSON record per finished unit | **the next run computes these units again** |
| `checkpoints/` | unfinished training runs | interrupted training starts from the beginning |
| `slurm/` | script, program and logs of jobs on a cluster | waiting jobs fail |
| `book/` | the report as a site (`cargo xtask book`) | the next call renders it again |
| `timings.json` | measured times and memory, used for estimates only | estimates of the next run are less accurate |
| `.posenc-out` | marks the folder as output of a run | `--out` refuses the folder if `README.md` is gone, too |

Delete the whole folder to start from scratch. Do not delete anything while a run is active.
";

/// Maximum size in bytes of a file that can be an older version of this one.
const LIMIT: u64 = 64 << 10;

/// Writes the file, unless the user has a file of that name, which begins with another line. Ignores errors.
pub fn write(out: &Path) {
    let file = out.join("README.md");
    let is_ours = || read_text(&file, LIMIT).is_ok_and(|text| text.starts_with(TITLE));
    if !is_there(&file) || is_ours() {
        let _ = write_if_changed(&file, format!("{TITLE}{TEXT}").as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a guide that replaces the user's own file, and an old guide that is not updated.
    #[test]
    fn only_our_own_file_is_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("README.md");
        let text = || std::fs::read_to_string(&file).unwrap();
        write(directory.path());
        assert!(text().contains("`raw/`"));
        std::fs::write(&file, format!("{TITLE}old")).unwrap();
        write(directory.path());
        assert!(text().contains("`raw/`"));
        std::fs::write(&file, "# Mine\n").unwrap();
        write(directory.path());
        assert_eq!(text(), "# Mine\n");
    }
}
