//! Whether the feature `wgpu` is useful on this machine.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::machine::{entries, file_name, library_folders};
use crate::process::target_directory;

/// Environment variable that controls the feature: `on` always builds it, `off` never does, and `attention` also builds the
/// attention models for wgpu.
const SWITCH: &str = "POSENC_WGPU";
const DEVICE: &str = "POSENC_DEVICE";
/// Arguments for cargo that enable the feature in the workspace.
const FEATURES: [&str; 2] = ["--features", "posenc/wgpu"];
const ATTENTION: [&str; 2] = ["--features", "posenc/attention-wgpu"];

/// What the environment variable decides, if it is set.
fn decided() -> Option<&'static [&'static str]> {
    match std::env::var(SWITCH).ok()?.as_str() {
        "attention" => Some(&ATTENTION),
        "on" => Some(&FEATURES),
        "off" => Some(&[]),
        other => {
            eprintln!("{SWITCH}={other} is ignored; allowed: on, off, attention");
            None
        }
    }
}

/// Arguments for cargo: the feature if there is a GPU, if the arguments request wgpu, or if it was built before, so that
/// consecutive builds do not alternate. Prints one line if a GPU cannot be used.
pub fn features(arguments: &[OsString]) -> &'static [&'static str] {
    if let Some(features) = decided() {
        return features;
    }
    let from_environment = std::env::var_os(DEVICE);
    if is_asked_for(arguments, from_environment.as_deref()) || is_built(&target_directory()) {
        return &FEATURES;
    }
    if !has_device_node() {
        return &[];
    }
    if has_loader() {
        return &FEATURES;
    }
    eprintln!(
        "wgpu: off, since there is a GPU but no Vulkan loader; training runs on the CPU. To get it: apt-get install \
         libvulkan1, and the Vulkan part of your GPU's driver ({SWITCH}=off silences this line)"
    );
    &[]
}

/// Arguments for cargo in tests: the feature if there is any driver, including a software one.
pub fn features_for_tests() -> &'static [&'static str] {
    decided().unwrap_or_else(|| {
        if has_loader() && has_driver() {
            return &FEATURES;
        }
        eprintln!(
            "wgpu: off, since no Vulkan driver was found; the tests of the device engine are skipped. To get one: \
             apt-get install libvulkan1 mesa-vulkan-drivers"
        );
        &[]
    })
}

/// Whether the arguments contain `--device wgpu`, `--device=wgpu:NAME` or the like, or else the environment names such a device.
fn is_asked_for(arguments: &[OsString], environment: Option<&OsStr>) -> bool {
    let is_wgpu = |value: &str| value.starts_with("wgpu");
    let texts: Vec<_> = arguments.iter().map(|a| a.to_string_lossy()).collect();
    let mut options = texts.iter().enumerate().filter_map(|(i, text)| {
        let rest = text.strip_prefix("--device")?;
        if rest.is_empty() {
            texts.get(i + 1).map(|value| &**value)
        } else {
            rest.strip_prefix('=')
        }
    });
    match options.next() {
        Some(value) => is_wgpu(value) || options.any(is_wgpu),
        None => environment.is_some_and(|value| is_wgpu(&value.to_string_lossy())),
    }
}

/// Whether the target directory contains a build with the feature.
fn is_built(target: &Path) -> bool {
    let names = entries(&target.join("release/deps"));
    names.iter().any(|path| file_name(path).starts_with("libwgpu-"))
}

/// Whether the Linux kernel has a GPU device. On macOS and Windows, a GPU and its API are assumed.
fn has_device_node() -> bool {
    if !cfg!(target_os = "linux") {
        return cfg!(any(target_os = "macos", windows));
    }
    let is_gpu = |path: &PathBuf| file_name(path).starts_with("renderD");
    ["/dev/nvidiactl", "/dev/kfd", "/dev/dxg"].iter().any(|node| Path::new(node).exists())
        || entries(Path::new("/dev/dri")).iter().any(is_gpu)
}

/// Whether Vulkan's loader is installed on Linux; elsewhere it is not needed or comes with the driver.
fn has_loader() -> bool {
    if !cfg!(target_os = "linux") {
        return true;
    }
    let mut directories: Vec<PathBuf> =
        ["/usr/lib", "/usr/lib64", "/usr/local/lib", "/lib"].map(PathBuf::from).to_vec();
    directories.extend(library_folders());
    if let Some(paths) = std::env::var_os("LD_LIBRARY_PATH") {
        directories.extend(std::env::split_paths(&paths));
    }
    directories.iter().any(|directory| directory.join("libvulkan.so.1").exists())
}

/// Whether the manifest of a driver is where the loader searches.
fn has_driver() -> bool {
    if !cfg!(target_os = "linux") {
        return true;
    }
    if ["VK_DRIVER_FILES", "VK_ICD_FILENAMES"].iter().any(|v| std::env::var_os(v).is_some()) {
        return true;
    }
    let places = ["/usr/share/vulkan/icd.d", "/etc/vulkan/icd.d", "/usr/local/share/vulkan/icd.d"];
    places.iter().any(|place| !entries(Path::new(place)).is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a requested wgpu device without the feature, and the feature without such a request.
    #[test]
    fn only_requests_for_wgpu_are_recognized() {
        let asked_with = |text: &str, environment: &str| {
            let arguments: Vec<OsString> = text.split(' ').map(OsString::from).collect();
            is_asked_for(&arguments, Some(OsStr::new(environment)))
        };
        let asked = |text: &str| asked_with(text, "");
        for text in [
            "reproduce trading/table1 --device wgpu",
            "reproduce --device=wgpu",
            "fit a.png --device wgpu:llvmpipe --out b.png",
            "bench --device=wgpu:NVIDIA simple-2d",
        ] {
            assert!(asked(text), "{text}");
        }
        for text in
            ["reproduce wgpu", "reproduce --device cpu", "fit --device=auto wgpu", "x --device"]
        {
            assert!(!asked(text), "{text}");
        }
        for (text, environment, expected) in [
            ("reproduce", "wgpu:llvmpipe", true),
            ("reproduce", "cpu", false),
            ("reproduce --device cpu", "wgpu", false),
            ("reproduce --device wgpu", "cpu", true),
        ] {
            assert_eq!(asked_with(text, environment), expected, "{text}, {environment}");
        }
    }

    /// Packages of a build with their features, except our own.
    fn packages(features: &[&str]) -> std::collections::BTreeSet<String> {
        let tree = ["tree", "--locked", "--workspace", "-e", "normal,build", "--prefix", "none"];
        let output = crate::process::cargo()
            .args(tree)
            .args(["-f", "{p} [{f}]"])
            .args(features)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8_lossy(&output.stdout).replace(" (*)", "");
        let lines = text.lines().filter(|line| !line.contains("posenc") && !line.contains("xtask"));
        lines.map(str::to_owned).collect()
    }

    /// Catches a package that has other features in builds with wgpu, FFmpeg or the site: enabling them would compile it, and all
    /// packages that use it, a second time.
    #[test]
    fn builds_with_more_features_only_add_packages() {
        let without = packages(&[]);
        assert!(without.len() > 50, "{without:?}");
        let both = [FEATURES, crate::video::FEATURES].concat();
        let site = &crate::process::SITE_FEATURES;
        for (features, package) in [
            (&FEATURES[..], "wgpu v"),
            (&crate::video::FEATURES, "video-rs v"),
            (&both, "wgpu v"),
            (site, "mdbook-html v"),
        ] {
            let with = packages(features);
            assert!(with.iter().any(|line| line.starts_with(package)), "{with:?}");
            let again: Vec<_> = without.difference(&with).collect();
            assert!(
                again.is_empty(),
                "{features:?} compile again: {again:?}; name their features in Cargo.toml"
            );
        }
    }

    /// Catches an earlier build with wgpu that is not detected, so that everything would be built again without it.
    #[test]
    fn a_build_with_wgpu_is_detected() {
        let directory = std::env::temp_dir().join(format!("posenc-gpu-{}", std::process::id()));
        std::fs::create_dir_all(directory.join("release/deps")).unwrap();
        assert!(!is_built(&directory));
        std::fs::write(directory.join("release/deps/libwgpu_core-1.rlib"), "").unwrap();
        assert!(!is_built(&directory));
        std::fs::write(directory.join("release/deps/libwgpu-0123.rlib"), "").unwrap();
        assert!(is_built(&directory));
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
