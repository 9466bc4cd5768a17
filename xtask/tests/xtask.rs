//! `cargo xtask` itself: the real binary, with a script in place of cargo that logs its arguments.
#![cfg(unix)]

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A folder with scripts in place of `cargo` and of the built `posenc`.
struct Scene(PathBuf);

/// Fails for the calls that the file `fails` lists.
const CARGO: &str = r#"#!/bin/sh
echo "$@" >> FOLDER/calls
! grep -qxF -- "$*" FOLDER/fails
"#;

impl Scene {
    fn new(name: &str) -> Self {
        let folder = format!("{name}-{}", std::process::id());
        let scene = Scene(Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder));
        std::fs::create_dir_all(scene.0.join("release")).unwrap();
        for file in ["calls", "fails"] {
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
        for variable in ["POSENC_DEVICE", "POSENC_VIDEO", "POSENC_WGPU"] {
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

/// Catches a first run that waits for models that it may not need, and later runs that build without them.
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

    // The site has a feature of its own, and `posenc` gets it once the site's binary exists.
    let scene = Scene::new("site");
    let book = "build --release --workspace --bin posenc-book --features posenc-report/book";
    scene.run(&["book"], &environment);
    assert!(scene.calls().starts_with(book), "{}", scene.calls());

    // Options that need all protocols in one run.
    let options = ["--budget=1h", "--force", "--dry-run", "--share=1/2", "--slurm"];
    for (i, option) in options.into_iter().enumerate() {
        let scene = Scene::new(&format!("option-{i}"));
        scene.run(&["reproduce", option], &environment);
        assert_eq!(scene.calls(), whole, "{option}");
    }
}

/// Catches a test runner that is installed and not used, or used and not installed, arguments that do not reach it, examples that nobody
/// runs, and a failure that ends as a success.
#[test]
fn tests_are_run_by_nextest_if_it_is_installed() {
    let environment = [NO_GPU, NO_VIDEO];
    let site = "--features posenc-report/book";
    let cargo_test = format!("test --release --workspace --no-fail-fast {site}");
    let nextest = format!("nextest run --cargo-profile release --workspace --no-fail-fast {site}");
    for (nextest_fails, all, part) in [
        (true, format!("{cargo_test}\n"), format!("{cargo_test} slurm -- --exact\n")),
        (
            false,
            format!("test --release --workspace --doc {site}\n{nextest}\n"),
            format!("{nextest} slurm -- --exact\n"),
        ),
    ] {
        let probe = "nextest --version\n";
        let scene = Scene::new("tests");
        if nextest_fails {
            scene.write("fails", probe);
        }
        assert!(scene.run(&["test"], &environment).status.success());
        assert_eq!(scene.calls(), format!("{probe}{all}"));
        scene.write("calls", "");
        assert!(scene.run(&["test", "slurm", "--", "--exact"], &environment).status.success());
        assert_eq!(scene.calls(), format!("{probe}{part}"));
        for call in all.lines() {
            let probe = if nextest_fails { probe } else { "" };
            scene.write("fails", &format!("{probe}{call}\n"));
            assert!(!scene.run(&["test"], &environment).status.success(), "{call}");
        }
    }
}
