//! Description of the machine, for provenance and for `doctor`.

use std::collections::BTreeMap;

pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The processor in words, with the vector instructions that matter for speed.
pub fn processor() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text.lines().find(|line| line.starts_with("model name"));
    let model = model.and_then(|line| line.split(':').nth(1));
    let model = model.map_or(std::env::consts::ARCH, str::trim);
    let vectors = vector_instructions();
    if vectors.is_empty() { model.to_owned() } else { format!("{model} ({vectors})") }
}

fn vector_instructions() -> &'static str {
    #[cfg(target_arch = "x86_64")]
    {
        if std::arch::is_x86_feature_detected!("avx512f") {
            return "AVX-512";
        }
        if std::arch::is_x86_feature_detected!("avx2") {
            return "AVX2";
        }
    }
    ""
}

pub fn system() -> String {
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("{} {}", std::env::consts::OS, kernel.trim()).trim().to_owned()
}

/// Resets the peak that [`peak_memory`] reports. On systems without support, the peak since the start of the process remains.
pub fn reset_peak_memory() {
    // 5 is the kernel's number for "reset the high-water mark" (proc(5)).
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

/// Peak memory of this process in bytes; `None` if the system does not report it.
pub fn peak_memory() -> Option<u64> {
    high_water_mark(&std::fs::read_to_string("/proc/self/status").ok()?)
}

fn high_water_mark(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim_end().parse().ok()?;
    kibibytes.checked_mul(1024)
}

/// Packages whose versions may affect results.
const PACKAGES: &[&str] = &[
    "burn-core",
    "burn-flex",
    "exmex",
    "faer",
    "image",
    "nalgebra-sparse",
    "plotters",
    "polars",
    "pulp",
    "rand_chacha",
    "rand_distr",
    "rustfft",
    "statrs",
    "wgpu",
];

/// Versions of this program, the compiler and the packages that results depend on.
pub fn versions() -> BTreeMap<String, String> {
    let lock = include_str!("../../../Cargo.lock");
    let mut versions = BTreeMap::new();
    versions.insert("posenc".to_owned(), env!("CARGO_PKG_VERSION").to_owned());
    versions.insert(
        "rustc".to_owned(),
        env!("POSENC_RUSTC_VERSION").trim_start_matches("rustc ").to_owned(),
    );
    let mut name = "";
    for line in lock.lines() {
        if let Some(value) = line.strip_prefix("name = ") {
            name = value.trim_matches('"');
        } else if let Some(value) = line.strip_prefix("version = ")
            && PACKAGES.contains(&name)
        {
            versions.insert(name.to_owned(), value.trim_matches('"').to_owned());
        }
    }
    versions
}

#[cfg(test)]
mod tests {
    /// Catches a listed package that was renamed or removed.
    #[test]
    fn every_listed_package_has_a_version() {
        let versions = super::versions();
        for package in super::PACKAGES {
            assert!(versions.contains_key(*package), "{package}");
        }
    }

    /// Catches a high-water mark in the wrong unit, and a missing mark that is read as zero.
    #[test]
    fn the_high_water_mark_is_read_in_bytes() {
        let status = "Name:\tposenc\nVmPeak:\t 9 kB\nVmHWM:\t    2048 kB\nVmRSS:\t 1 kB\n";
        assert_eq!(super::high_water_mark(status), Some(2 << 20));
        assert_eq!(super::high_water_mark("Name:\tposenc\n"), None);
        assert_eq!(super::high_water_mark("VmHWM: many kB\n"), None);
        if let Some(before) = super::peak_memory() {
            let held = std::hint::black_box(vec![1u8; 64 << 20]);
            assert!(super::peak_memory() >= Some(before.max(held.len() as u64)));
        }
    }
}
