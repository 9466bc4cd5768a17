//! `cargo xtask` itself: the real binary, with a script in place of cargo that logs its arguments and prints the output of the
//! test.
#![cfg(unix)]

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A folder with scripts in place of `cargo` and of the built `posenc`.
struct Scene(PathBuf);

const CARGO: &str = r#"#!/bin/sh
echo "$@" >> FOLDER/calls
case "$*" in
  test*--list*) cat FOLDER/names ;;
  test*) cat FOLDER/skips >> "$POSENC_SKIPPED"; cat FOLDER/output ;;
esac
"#;

impl Scene {
    fn new(name: &str) -> Self {
        let folder = format!("{name}-{}", std::process::id());
        let scene = Scene(Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder));
        std::fs::create_dir_all(scene.0.join("release")).unwrap();
        for file in ["calls", "names", "output", "skips"] {
            scene.write(file, "");
        }
        scene.script("cargo", &CARGO.replace("FOLDER", &scene.0.display().to_string()));
        scene.script("release/posenc", "#!/bin/sh\necho \"posenc $@\"\n");
        scene
    }

    fn write(&self, file: &str, text: &str) {
        std::fs::write(self.0.join(file), text).unwrap();
    }

    fn script(&self, file: &str, text: &str) {
        self.write(file, text);
        let executable = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(self.0.join(file), executable).unwrap();
    }

    fn run(&self, arguments: &[&str], environment: &[(&str, &str)]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
        command.args(arguments);
        for variable in ["POSENC_DEVICE", "POSENC_REQUIRE", "POSENC_VIDEO", "POSENC_WGPU"] {
            command.env_remove(variable);
        }
        command.env("CARGO", self.0.join("cargo")).env("CARGO_TARGET_DIR", &self.0);
        command.envs(environment.iter().copied()).output().unwrap()
    }

    fn calls(&self) -> String {
        std::fs::read_to_string(self.0.join("calls")).unwrap()
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

const NO_GPU: (&str, &str) = ("POSENC_WGPU", "off");
const NO_VIDEO: (&str, &str) = ("POSENC_VIDEO", "off");

/// Catches a machine without FFmpeg on which nothing builds, or without a one-line message about what is missing.
#[test]
fn without_ffmpeg_one_line_says_so_and_nothing_stops() {
    let nothing = [("PKG_CONFIG_PATH", "/nonexistent"), ("PKG_CONFIG_LIBDIR", "/nonexistent")];
    let no_program = [("PKG_CONFIG", "/nonexistent/pkg-config"), NO_GPU];
    for environment in [&[nothing[0], nothing[1], NO_GPU][..], &no_program] {
        let scene = Scene::new("ffmpeg");
        let run = scene.run(&["list", "trading"], environment);
        assert!(run.status.success(), "{}", text(&run.stderr));
        assert_eq!(text(&run.stdout), "posenc list trading\n");
        let errors = text(&run.stderr);
        assert_eq!(errors.lines().count(), 1, "{errors}");
        assert!(errors.starts_with("video: off, since "), "{errors}");
        assert!(errors.contains("apt-get install libavcodec-dev"), "{errors}");
        assert_eq!(scene.calls(), "build --release --workspace --bin posenc --quiet\n");
    }
    // With video switched off, there is no message.
    let scene = Scene::new("no-video");
    let run = scene.run(&["list"], &[nothing[0], nothing[1], NO_GPU, NO_VIDEO]);
    assert!(run.status.success() && run.stderr.is_empty(), "{}", text(&run.stderr));
}

/// Catches a device from the environment that the build leaves out.
#[test]
fn a_device_from_the_environment_is_built_for() {
    for device in ["wgpu:llvmpipe", "wgpu"] {
        let scene = Scene::new("device");
        let run = scene.run(&["reproduce"], &[("POSENC_DEVICE", device), NO_VIDEO]);
        assert!(run.status.success(), "{}", text(&run.stderr));
        assert!(scene.calls().contains("posenc/wgpu"), "{}", scene.calls());
    }
    let scene = Scene::new("device-off");
    scene.run(&["reproduce"], &[("POSENC_DEVICE", "wgpu"), NO_VIDEO, NO_GPU]);
    assert!(!scene.calls().contains("wgpu"), "{}", scene.calls());
}

/// Catches a first run that waits for models that it may not need, later runs that build without them, and a background build that
/// starts the binary.
#[test]
fn the_first_run_is_built_without_attention_models() {
    let scene = Scene::new("extent");
    let environment = [NO_VIDEO, NO_GPU];
    let small = "build --release --workspace --bin posenc --no-default-features --quiet\n";
    let whole = "build --release --workspace --bin posenc --quiet\n";
    scene.run(&["reproduce", "trading"], &environment);
    assert_eq!(scene.calls(), small);
    scene.run(&["reproduce", "trading"], &[NO_VIDEO, NO_GPU, ("POSENC_BUILD", "whole")]);
    assert_eq!(scene.calls(), [small, whole].concat());
    scene.run(&["reproduce", "trading"], &environment);
    assert_eq!(scene.calls(), [small, whole, whole].concat(), "all is built already");

    // Options that need all protocols in one run.
    for (i, option) in ["--events=x", "--force", "--dry-run", "--from"].into_iter().enumerate() {
        let scene = Scene::new(&format!("option-{i}"));
        scene.run(&["reproduce", option], &environment);
        assert_eq!(scene.calls(), whole, "{option}");
    }

    let scene = Scene::new("background");
    let run = scene.run(&["build-rest"], &environment);
    assert_eq!(scene.calls(), whole);
    assert!(run.stdout.is_empty(), "{:?}", run.stdout);
    scene.run(&["reproduce"], &environment);
    assert_eq!(scene.calls(), [whole, whole].concat());
}

/// Catches skipped tests that the summary does not name or counts as passed.
#[test]
fn the_summary_counts_skipped_tests_by_reason() {
    let scene = Scene::new("summary");
    scene.write(
        "output",
        "test slurm::a ... ok\ntest result: ok. 7 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.1s\n",
    );
    scene.write(
        "skips",
        "skipped: posenc/it::slurm::a: slurm is missing: sbatch is not installed\n\
         skipped: posenc/it::slurm::a: slurm is missing: sbatch is not installed\n\
         skipped: posenc-book/browser::b: chromium is missing: it is not on the PATH\n",
    );
    let run = scene.run(&["test"], &[NO_GPU, NO_VIDEO]);
    let printed = text(&run.stdout);
    assert!(run.status.success(), "{printed}{}", text(&run.stderr));
    assert!(printed.contains("1 skipped, slurm is missing: install it with `apt-get"), "{printed}");
    assert!(printed.contains("  skipped: posenc-book/browser::b: chromium is"), "{printed}");
    assert_eq!(printed.lines().last(), Some("5 passed, 0 failed, 2 skipped"), "{printed}");
    let left = std::fs::read_dir(&scene.0).unwrap().flatten();
    let left: Vec<_> =
        left.filter(|e| text(e.file_name().as_encoded_bytes()).starts_with("skipped")).collect();
    assert!(left.is_empty(), "{left:?}");
}

/// Catches a filter with a typo that ends as `0 passed` and success.
#[test]
fn a_filter_that_matches_no_test_is_an_error_with_similar_names() {
    let scene = Scene::new("filter");
    scene.write(
        "output",
        "test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 9 filtered out; finished in 0.1s\n",
    );
    scene.write("names", "slurm::a_node_dies: test\nkills::b: test\n");
    for (filter, needle) in [
        ("slrum", "similar names: slurm::a_node_dies\n"),
        ("browser", "cargo xtask test --test browser\n"),
        ("coffee", "to list all names: cargo xtask test -- --list\n"),
    ] {
        let run = scene.run(&["test", filter], &[NO_GPU, NO_VIDEO]);
        let errors = text(&run.stderr);
        assert_eq!(run.status.code(), Some(2), "{errors}");
        let first = format!("error: no test has a name that contains `{filter}`\n");
        assert!(errors.contains(&first) && errors.contains(needle), "{errors}");
        assert!(!text(&run.stdout).contains("0 passed, "), "{}", text(&run.stdout));
    }
    // Options that only list or build tests are no error.
    scene.write("output", "slurm::a_node_dies: test\n");
    let run = scene.run(&["test", "--no-run"], &[NO_GPU, NO_VIDEO]);
    assert!(run.status.success(), "{}", text(&run.stderr));
}

/// Catches a misspelled requirement that requires nothing.
#[test]
fn an_unknown_requirement_is_an_error_before_anything_is_built() {
    let scene = Scene::new("require");
    let run = scene.run(&["test"], &[("POSENC_REQUIRE", "slurm,ffmepg"), NO_GPU, NO_VIDEO]);
    let errors = text(&run.stderr);
    assert_eq!(run.status.code(), Some(2), "{errors}");
    assert!(errors.contains("unknown word `ffmepg`") && errors.contains("vulkan"), "{errors}");
    assert_eq!(scene.calls(), "");
}
