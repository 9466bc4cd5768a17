//! Measures the time of a computation, independent of other load on the machine.

use std::time::{Duration, Instant};

use crate::device::CPU;

/// Measures a computation on the thread that starts it.
///
/// On the CPU, only the thread's CPU time counts, so other work on the machine does not. On other devices, and on systems that do not
/// report CPU time, wall-clock time counts.
#[derive(Debug, Clone, Copy)]
pub struct Stopwatch {
    started: Instant,
    /// CPU time of the thread at the start.
    on_core: Option<Duration>,
}

impl Stopwatch {
    /// Starts measuring a computation on a device class.
    pub fn start(class: &str) -> Self {
        let on_core = if class == CPU { on_core() } else { None };
        Stopwatch { started: Instant::now(), on_core }
    }

    /// Seconds since the start. Must be called on the thread that started the stopwatch.
    pub fn seconds(&self) -> f64 {
        let on_core = self.on_core.and_then(|start| on_core()?.checked_sub(start));
        on_core.unwrap_or_else(|| self.started.elapsed()).as_secs_f64()
    }
}

/// CPU time of this thread.
#[cfg(unix)]
fn on_core() -> Option<Duration> {
    use rustix::time::{ClockId, clock_gettime};
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Some(Duration::new(u64::try_from(time.tv_sec).ok()?, u32::try_from(time.tv_nsec).ok()?))
}

#[cfg(not(unix))]
fn on_core() -> Option<Duration> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches waiting that counts as CPU time, and waiting for a GPU that does not count.
    #[test]
    fn only_work_counts_on_the_cpu() {
        let (on_cpu, elsewhere) = (Stopwatch::start(CPU), Stopwatch::start("wgpu"));
        std::thread::sleep(Duration::from_millis(300));
        assert!(elsewhere.seconds() >= 0.3, "{}", elsewhere.seconds());
        if cfg!(unix) {
            assert!(on_cpu.seconds() < 0.2, "{}", on_cpu.seconds());
        }
        let (working, began) = (Stopwatch::start(CPU), Instant::now());
        while working.seconds() < 0.05 && began.elapsed() < Duration::from_secs(60) {}
        assert!(working.seconds() >= 0.05);
    }
}
