//! Starting cargo and the runner.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use crate::{gpu, video};

/// The repository's root: this crate lies one level below it.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}

/// `cargo`, the one that started us.
pub fn cargo() -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(root());
    command
}

/// The directory that holds build results, wherever the user has put it.
pub fn target_directory() -> PathBuf {
    // `cargo run --target-dir` sets no variable for its child, so this is the user's own choice.
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// Builds `posenc` and starts it with `arguments`, in the directory the user stands in.
pub fn runner(arguments: &[OsString]) -> Result<ExitCode, String> {
    start("posenc", arguments)
}

/// Builds the site's binary, which the runner does without, and starts it.
pub fn book(arguments: &[OsString]) -> Result<ExitCode, String> {
    start("posenc-book", arguments)
}

fn start(name: &str, arguments: &[OsString]) -> Result<ExitCode, String> {
    let file = format!("{name}{}", std::env::consts::EXE_SUFFIX);
    let binary = target_directory().join("release").join(file);
    if !binary.exists() {
        eprintln!("building {name}; the first time takes a few minutes");
    }
    // The features of the other binary, too: what both need is then built once.
    let (video, gpu) = (video::features(), gpu::features(arguments));
    let mut built = build(name, &[video, gpu].concat(), binary.exists())?;
    if !built && !video.is_empty() {
        // A version of FFmpeg that the bindings do not know must not stop everything else.
        eprintln!("video: does not build here (see above); building without it");
        built = build(name, gpu, false)?;
    }
    if !built {
        return Err(format!("{name} does not build; see above"));
    }
    let mut command = Command::new(&binary);
    command.args(arguments).env("POSENC_ROOT", root());
    become_it(command).map_err(|e| format!("{} cannot be started: {e}", binary.display()))
}

/// Starts the runner in the place of this process, so that signals and its exit status are its own.
#[cfg(unix)]
fn become_it(mut command: Command) -> std::io::Result<ExitCode> {
    use std::os::unix::process::CommandExt;
    Err(command.exec())
}

/// Starts the runner and waits for it.
#[cfg(not(unix))]
fn become_it(mut command: Command) -> std::io::Result<ExitCode> {
    command.status().map(exit_code)
}

/// Builds a binary; whether that worked.
fn build(name: &str, features: &[&str], quietly: bool) -> Result<bool, String> {
    let mut build = cargo();
    build.args(["build", "--release", "--workspace", "--bin", name]).args(features);
    if quietly {
        build.arg("--quiet");
    }
    let status = build.status().map_err(|e| format!("cargo cannot be started: {e}"))?;
    Ok(status.success())
}

/// A child's exit code; a signal is a failure.
pub fn exit_code(status: std::process::ExitStatus) -> ExitCode {
    ExitCode::from(status.code().and_then(|c| u8::try_from(c).ok()).unwrap_or(1))
}
