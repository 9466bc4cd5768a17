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

/// The `cargo` that started this process.
pub fn cargo() -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(root());
    command
}

/// The target directory of the builds, wherever the user has put it.
pub fn target_directory() -> PathBuf {
    // `cargo run --target-dir` sets no variable for its child, so this is the user's own choice.
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// Environment variable with which the first build of `reproduce` asks for all of `posenc`.
const EXTENT: &str = "POSENC_BUILD";

/// Options of `reproduce` that need all protocols in one run: they plan or limit all units at once, or would apply twice to the units
/// of the first build.
const WHOLE: [&str; 5] = ["--budget", "--dry-run", "--force", "--share", "--slurm"];

/// Builds `posenc` and starts it with `arguments` in the current directory. The first `reproduce` builds without attention models, which
/// take as long to build as all the rest; that binary starts this program again for the units that need them.
pub fn runner(arguments: &[OsString]) -> Result<ExitCode, String> {
    let option =
        |argument: &OsString| argument.to_string_lossy().split('=').next().map(str::to_owned);
    let is_first = arguments.first().is_some_and(|verb| verb == "reproduce")
        && std::env::var_os(EXTENT).is_none()
        && !stamp().exists()
        && !arguments.iter().filter_map(option).any(|option| WHOLE.contains(&&*option));
    start("posenc", arguments, if is_first { &["--no-default-features"] } else { &[] })
}

/// The binary that makes the site, and arguments for cargo that enable it in the workspace. Without them, mdBook is not compiled.
pub const SITE: &str = "posenc-book";
pub const SITE_FEATURES: [&str; 2] = ["--features", "posenc-report/book"];

/// Where cargo puts a binary.
fn binary(name: &str) -> PathBuf {
    target_directory().join("release").join(format!("{name}{}", std::env::consts::EXE_SUFFIX))
}

/// A file that exists once all of `posenc` was built.
fn stamp() -> PathBuf {
    target_directory().join("release/posenc-is-whole")
}

/// Builds a binary with these options of cargo, and starts it.
pub fn start(name: &str, arguments: &[OsString], extent: &[&str]) -> Result<ExitCode, String> {
    let binary = binary(name);
    // Once the site's binary is built, `posenc` gets its feature, too, so that consecutive builds do not alternate.
    let with_site = name == SITE || self::binary(SITE).exists();
    let site = if with_site { &SITE_FEATURES[..] } else { &[] };
    let is_there = binary.exists();
    if !is_there {
        eprintln!("building {name}; the first time takes several minutes");
    }
    // Both binaries get the same features, so that common dependencies are built once.
    let (video, gpu) = (video::features(), gpu::features(arguments));
    let mut built = build(name, &[extent, site, video, gpu].concat(), is_there)?;
    if !built && !video.is_empty() {
        // A version of FFmpeg that the bindings do not know must not stop everything else.
        eprintln!("video: the build failed (see above); building without video support");
        built = build(name, &[extent, site, gpu].concat(), false)?;
    }
    if !built {
        return Err(format!("{name} cannot be built; see above"));
    }
    let mut command = Command::new(&binary);
    command.args(arguments).env("POSENC_ROOT", root()).env_remove("POSENC_XTASK");
    // A Vulkan layer of Mesa asks the display which device it prefers, and prints errors without one.
    if ["WAYLAND_DISPLAY", "DISPLAY"].iter().all(|name| std::env::var_os(name).is_none()) {
        command.env("NODEVICE_SELECT", "1");
    }
    if let (false, Ok(own)) = (extent.is_empty(), std::env::current_exe()) {
        command.env("POSENC_XTASK", own);
    }
    become_it(command).map_err(|e| format!("{} cannot be started: {e}", binary.display()))
}

/// Replaces this process by the runner, so that the runner receives signals and returns its own exit status.
#[cfg(unix)]
fn become_it(mut command: Command) -> std::io::Result<ExitCode> {
    use std::os::unix::process::CommandExt;
    Err(command.exec())
}

#[cfg(not(unix))]
fn become_it(mut command: Command) -> std::io::Result<ExitCode> {
    command.status().map(exit_code)
}

/// Builds a binary; returns whether that succeeded.
fn build(name: &str, features: &[&str], quietly: bool) -> Result<bool, String> {
    let mut build = cargo();
    build.args(["build", "--release", "--workspace", "--bin", name]).args(features);
    if quietly {
        build.arg("--quiet");
    }
    let status = build.status().map_err(|e| format!("cargo cannot be started: {e}"))?;
    if status.success() && name == "posenc" && !features.contains(&"--no-default-features") {
        // Without the stamp, the next `reproduce` first builds without attention models, which is harmless.
        let _ = std::fs::write(stamp(), "");
    }
    Ok(status.success())
}

/// A child's exit code; a signal is a failure.
pub fn exit_code(status: std::process::ExitStatus) -> ExitCode {
    ExitCode::from(status.code().and_then(|c| u8::try_from(c).ok()).unwrap_or(1))
}
