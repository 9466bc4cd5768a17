//! Whether this machine has the build dependencies of the feature `video`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::machine::{entries, file_name, library_folders};

/// The environment variable that switches video support off: `off`.
const SWITCH: &str = "POSENC_VIDEO";
/// FFmpeg's libraries, by their pkg-config names.
const LIBRARIES: [&str; 7] = [
    "libavcodec",
    "libavdevice",
    "libavfilter",
    "libavformat",
    "libavutil",
    "libswresample",
    "libswscale",
];
/// Arguments for cargo that enable the feature in the workspace.
pub const FEATURES: [&str; 2] = ["--features", "posenc/video"];

/// Arguments for cargo: the feature if it can be built, else none. If not, prints in one line what is missing, what is used instead
/// and how to get it.
pub fn features() -> &'static [&'static str] {
    match std::env::var_os(SWITCH) {
        Some(value) if value == "off" => return &[],
        Some(value) if value != "on" => {
            eprintln!("{SWITCH}={} is ignored; allowed: on, off", value.display());
        }
        _ => {}
    }
    let missing = missing();
    if missing.is_empty() {
        return &FEATURES;
    }
    eprintln!(
        "video: off, since {} missing; generated clips, npz arrays and folders of frames still work. To get it: \
         apt-get install libavcodec-dev libavformat-dev libavutil-dev libavfilter-dev libavdevice-dev \
         libswresample-dev libswscale-dev pkg-config libclang-dev clang ({SWITCH}=off silences this line)",
        match &missing[..] {
            [one] => format!("{one} is"),
            several => format!("{} are", several.join(", ")),
        }
    );
    &[]
}

fn missing() -> Vec<String> {
    let mut missing = Vec::new();
    match pkg_config("--version") {
        None => missing.push("pkg-config".to_owned()),
        Some(_) => {
            let absent = LIBRARIES.iter().filter(|library| pkg_config(library) != Some(true));
            missing.extend(absent.map(|library| format!("{library} (development files)")));
        }
    }
    if !has_libclang() {
        missing.push("libclang".to_owned());
    }
    missing
}

/// Whether pkg-config succeeds with an argument; `None` if there is no pkg-config.
fn pkg_config(argument: &str) -> Option<bool> {
    let program = std::env::var_os("PKG_CONFIG").unwrap_or_else(|| "pkg-config".into());
    let status = Command::new(program)
        .arg(argument)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .ok()?;
    Some(status.success())
}

/// Searches the first places that clang-sys searches, which the build uses. For a library in another place, users set
/// `LIBCLANG_PATH`.
fn has_libclang() -> bool {
    if let Some(path) = std::env::var_os("LIBCLANG_PATH") {
        let path = PathBuf::from(path);
        return path.is_file() || holds_libclang(&path);
    }
    let by_llvm_config = Command::new("llvm-config").arg("--libdir").output().ok();
    let by_llvm_config = by_llvm_config
        .filter(|output| output.status.success())
        .map(|output| PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()));
    let versions = ["/usr/lib", "/usr/local", "/opt/homebrew/opt", "/usr/local/opt"];
    let versions = versions.iter().flat_map(|parent| entries(Path::new(parent)));
    let of_version = versions
        .filter(|path| file_name(path).starts_with("llvm"))
        .flat_map(|path| [path.join("lib"), path.join("lib64")]);
    let fixed = ["/usr/lib", "/usr/lib64", "/usr/local/lib", "/usr/local/lib64"];
    by_llvm_config
        .into_iter()
        .chain(fixed.iter().map(PathBuf::from))
        .chain(library_folders())
        .chain(of_version)
        .any(|directory| holds_libclang(&directory))
}

fn holds_libclang(directory: &Path) -> bool {
    entries(directory).iter().any(|path| {
        let name = file_name(path);
        // Not libclang-cpp, which is another library.
        let is_it = name.starts_with("libclang.") || name.starts_with("libclang-1");
        is_it && (name.contains(".so") || name.contains(".dylib"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a search that mistakes the C++ library, or a static one, for libclang.
    #[test]
    fn libclang_is_distinguished_from_similar_files() {
        let directory =
            std::env::temp_dir().join(format!("posenc-libclang-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let holds = |name: &str| {
            let file = directory.join(name);
            std::fs::write(&file, "").unwrap();
            let holds = holds_libclang(&directory);
            std::fs::remove_file(&file).unwrap();
            holds
        };
        for name in ["libclang.so", "libclang.so.1", "libclang-14.so.14.0.6", "libclang.dylib"] {
            assert!(holds(name), "{name}");
        }
        for name in ["libclang-cpp.so.14", "libclang.a", "clang.so"] {
            assert!(!holds(name), "{name}");
        }
        std::fs::remove_dir(&directory).unwrap();
    }
}
