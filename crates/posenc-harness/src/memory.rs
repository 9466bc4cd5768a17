//! Memory that is available to a run.
//!
//! A container or a batch system limits memory with a control group (version 1 or 2), a shell with `ulimit -v`. A process that exceeds
//! either limit ends. What is available is the smallest of these limits and the machine's free memory.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};

/// An amount of memory in bytes, written as `8GiB`, `512MiB` or `16GB`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bytes(pub u64);

const ALLOWED: &str = "allowed are whole numbers of MiB, GiB, MB or GB, such as 8GiB or 512MiB; more than 0, at most 1000000GiB";

impl FromStr for Bytes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let digits = text.find(|c: char| !c.is_ascii_digit()).ok_or(ALLOWED)?;
        let number: u64 = text[..digits].parse().map_err(|_| ALLOWED)?;
        let unit: u64 = match text[digits..].trim_start().to_ascii_lowercase().as_str() {
            "mib" | "m" => 1 << 20,
            "gib" | "g" => 1 << 30,
            "mb" => 1_000_000,
            "gb" => 1_000_000_000,
            _ => return Err(ALLOWED.to_owned()),
        };
        let bytes = number.checked_mul(unit).filter(|b| *b > 0 && *b <= 1_000_000 << 30);
        bytes.map(Bytes).ok_or_else(|| ALLOWED.to_owned())
    }
}

impl std::fmt::Display for Bytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            bytes if bytes < 1 << 30 => write!(f, "{} MiB", bytes >> 20),
            bytes => write!(f, "{:.1} GiB", bytes as f64 / f64::from(1 << 30)),
        }
    }
}

/// Memory that this process may still allocate; `None` if the system does not report it.
pub fn available() -> Option<Bytes> {
    available_below(Path::new("/"))
}

/// As [`available`], for a system whose files are below `root`.
fn available_below(root: &Path) -> Option<Bytes> {
    let read = |file: &str| std::fs::read_to_string(root.join(file)).unwrap_or_default();
    let free = field(&read("proc/meminfo"), "MemAvailable:").map(|kib| kib * 1024);
    let groups = groups(root, &read("proc/self/cgroup"));
    let limits = groups.iter().filter_map(|group| left_in_group(group));
    let space = address_space(&read("proc/self/limits"), &read("proc/self/status"));
    free.into_iter().chain(limits).chain(space).min().map(Bytes)
}

/// The number after `name` in the line that starts with it.
fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Folders of the memory control groups of this process and of their ancestors.
fn groups(root: &Path, text: &str) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    for line in text.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let base = match controllers {
            "" => root.join("sys/fs/cgroup"),
            names if names.split(',').any(|name| name == "memory") => {
                root.join("sys/fs/cgroup/memory")
            }
            _ => continue,
        };
        // In a container the path is the host's, and the container's own group is at the base.
        let own = base.join(path.trim_start_matches('/'));
        folders.extend(own.ancestors().take_while(|f| f.starts_with(&base)).map(Path::to_owned));
    }
    folders
}

/// Bytes that a control group has left. Inactive file pages count as free, because the kernel can reclaim them.
fn left_in_group(group: &Path) -> Option<u64> {
    let read = |file: &str| std::fs::read_to_string(group.join(file)).unwrap_or_default();
    let number = |file: &str| read(file).trim().parse::<u64>().ok();
    let limit = number("memory.max").or_else(|| number("memory.limit_in_bytes"))?;
    let used = number("memory.current").or_else(|| number("memory.usage_in_bytes")).unwrap_or(0);
    let statistics = read("memory.stat");
    let inactive = field(&statistics, "total_inactive_file ")
        .or_else(|| field(&statistics, "inactive_file "))
        .unwrap_or(0);
    Some(limit.saturating_sub(used.saturating_sub(inactive)))
}

/// Bytes of address space that `ulimit -v` leaves.
fn address_space(limits: &str, status: &str) -> Option<u64> {
    let limit = field(limits, "Max address space")?;
    let used = field(status, "VmSize:").unwrap_or(0) * 1024;
    Some(limit.saturating_sub(used))
}

/// Bytes that the run of this process may use.
static LIMIT: AtomicU64 = AtomicU64::new(u64::MAX);

/// Sets the limit that [`limit`] returns.
pub fn set_limit(limit: Option<Bytes>) {
    LIMIT.store(limit.map_or(u64::MAX, |limit| limit.0), Ordering::Relaxed);
}

/// Bytes that the run of this process may use: `--memory`, or what was available when it started. A single array that is larger must be
/// refused, because a failed allocation ends the process.
pub fn limit() -> Bytes {
    Bytes(LIMIT.load(Ordering::Relaxed))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches an amount that is parsed incorrectly, and a typo that is accepted.
    #[test]
    fn amounts_are_read_with_their_units() {
        for (text, bytes) in [("8GiB", 8 << 30), ("512 MiB", 512 << 20), ("2gb", 2_000_000_000)] {
            assert_eq!(text.parse(), Ok(Bytes(bytes)), "{text}");
        }
        let malformed = ["", "8", "8 apples", "-1GiB", "1.5GiB"];
        let out_of_range = ["0GiB", "2000000GiB", "99999999999999999999GiB"];
        for text in malformed.into_iter().chain(out_of_range) {
            assert!(text.parse::<Bytes>().is_err(), "{text}");
        }
        assert_eq!(Bytes(3 << 29).to_string(), "1.5 GiB");
        assert_eq!(Bytes(100 << 20).to_string(), "100 MiB");
    }

    fn system(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (file, text) in files {
            let file = root.path().join(file);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        }
        root
    }

    /// Catches a container limit that is overlooked, so that the system would kill the process.
    #[test]
    fn the_smallest_limit_counts() {
        let meminfo = ("proc/meminfo", "MemTotal: 9000000 kB\nMemAvailable:    8388608 kB\n");
        let of = |more: &[(&str, &str)]| {
            let root = system(&[&[meminfo], more].concat());
            available_below(root.path()).map(|bytes| bytes.0)
        };
        assert_eq!(of(&[]), Some(8 << 30));
        assert_eq!(available_below(system(&[]).path()), None);
        // Version 2: the limit of the group and that of its parent.
        let two = ("proc/self/cgroup", "0::/job/step\n");
        let outer = ("sys/fs/cgroup/job/memory.max", "2147483648\n");
        let used = ("sys/fs/cgroup/job/memory.current", "1073741824\n");
        let stat = ("sys/fs/cgroup/job/memory.stat", "anon 5\ninactive_file 536870912\n");
        let inner = ("sys/fs/cgroup/job/step/memory.max", "max\n");
        assert_eq!(of(&[two, inner, outer]), Some(2 << 30));
        assert_eq!(of(&[two, inner, outer, used]), Some(1 << 30));
        assert_eq!(of(&[two, inner, outer, used, stat]), Some(3 << 29));
        // A container sees its own group at the base, whatever the path is called.
        let inside = ("sys/fs/cgroup/memory.max", "4294967296\n");
        assert_eq!(of(&[two, inside]), Some(4 << 30));
        // Version 1, where a huge number means no limit.
        let one = ("proc/self/cgroup", "5:cpu,cpuacct:/x\n4:memory:/docker/1\n0::/\n");
        let limit = |text| ("sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes", text);
        let used = ("sys/fs/cgroup/memory/docker/1/memory.usage_in_bytes", "1048576\n");
        assert_eq!(of(&[one, limit("9223372036854771712\n")]), Some(8 << 30));
        assert_eq!(of(&[one, limit("3145728\n"), used]), Some(2 << 20));
        // `ulimit -v`
        let status = ("proc/self/status", "VmSize:\t 1024 kB\n");
        let limits = |text| ("proc/self/limits", text);
        let unlimited =
            "Max address space         unlimited            unlimited            bytes\n";
        assert_eq!(of(&[status, limits(unlimited)]), Some(8 << 30));
        let few = "Max address space         2097152              unlimited            bytes\n";
        assert_eq!(of(&[status, limits(few)]), Some(1 << 20));
    }
}
