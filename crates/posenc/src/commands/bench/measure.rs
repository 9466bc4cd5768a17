//! Time measurements.

use std::hint::black_box;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use anyhow::{Result, bail};
use faer::{Accum, Mat, Par};
use posenc_math::statistics::median;
use posenc_nets::{Engine, Task};

pub struct Ours {
    /// Floating-point operations of the time that is measured.
    pub operations: f64,
    /// Median seconds over a number of measurements.
    pub seconds: Box<dyn Fn(usize) -> Result<f64>>,
}

/// Minimum duration of one measurement in seconds.
const AT_LEAST_S: f64 = 0.3;

/// GFLOP/s of faer's product of 1024 × 1024 matrices, one product per thread at a time.
pub fn matrix_product_rate(threads: usize, repeats: usize) -> Result<f64> {
    const N: usize = 1024;
    let a = &Mat::from_fn(N, N, |i, j| ((i * 7 + j * 3) % 11) as f32);
    let seconds = on_all_threads(threads, repeats, || {
        let mut c = Mat::<f32>::zeros(N, N);
        Ok(move |runs: usize| {
            for _ in 0..runs {
                faer::linalg::matmul::matmul(c.as_mut(), Accum::Replace, a, a, 1.0, Par::Seq);
                black_box(&c);
            }
            Ok(())
        })
    })?;
    Ok(threads as f64 * 2.0 * (N as f64).powi(3) / seconds / 1e9)
}

/// Median seconds of a step of all sessions together, one on each of `sessions` threads.
pub fn train(task: &Task, engine: &dyn Engine, sessions: usize, repeats: usize) -> Result<f64> {
    on_all_threads(sessions, repeats, || {
        let mut session = engine.start(task.clone())?;
        Ok(move |steps: usize| {
            // As in training, submits as many epochs at once as suit the device.
            let at_once = session.epochs_at_once();
            for first in (0..steps).step_by(at_once) {
                black_box(session.advance(&vec![false; at_once.min(steps - first)])?);
            }
            // A diverged run is no longer trained, and its time means nothing.
            match session.diverged().iter().flatten().next() {
                Some(epoch) => bail!("a run diverged at epoch {epoch}; its times are meaningless"),
                None => Ok(()),
            }
        })
    })
}

/// Median seconds of a run on all threads at the same time, over `repeats` measurements of at least [`AT_LEAST_S`] each. `prepare`
/// makes the function that runs a number of times on one thread.
pub fn on_all_threads<R: FnMut(usize) -> Result<()>>(
    threads: usize,
    repeats: usize,
    prepare: impl Fn() -> Result<R> + Sync,
) -> Result<f64> {
    let (barrier, runs) = (&Barrier::new(threads), &AtomicUsize::new(1));
    let one_thread = |index: usize| -> Result<f64> {
        // A thread that fails keeps meeting the others.
        let mut prepared = caught(&prepare);
        let mut measure = |runs: usize| {
            barrier.wait();
            let began = Instant::now();
            if let Ok(run) = &mut prepared
                && let Err(error) = caught(|| run(runs))
            {
                prepared = Err(error);
            }
            barrier.wait();
            began.elapsed().as_secs_f64()
        };
        measure(2);
        let one = measure(1);
        if index == 0 {
            runs.store((AT_LEAST_S / one).ceil().max(1.0) as usize, Ordering::SeqCst);
        }
        barrier.wait();
        let runs = runs.load(Ordering::SeqCst);
        let seconds: Vec<f64> = (0..repeats.max(1)).map(|_| measure(runs) / runs as f64).collect();
        prepared.map(|_| median(&seconds))
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..threads).map(|index| scope.spawn(move || one_thread(index))).collect();
        let ended = threads.into_iter().map(|thread| thread.join());
        let results =
            ended.map(|result| result.unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        let seconds = results.collect::<Result<Vec<f64>>>()?;
        Ok(median(&seconds))
    })
}

/// Turns a panic, whose message is on the terminal, into an error.
fn caught<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    let result = catch_unwind(AssertUnwindSafe(work));
    result.unwrap_or_else(|_| bail!("internal error (a panic); please report it"))
}

#[cfg(test)]
mod tests {
    use posenc_math::random::stream;
    use posenc_nets::{Adam, CpuEngine, Input, Network, Samples};

    use super::*;

    fn task(feature: f32, learning_rate: f64) -> Task {
        let network = Network::new(2, 1, 3, 1).unwrap();
        let input = Input::dense(Mat::from_fn(2, 4, |_, i| feature * i as f32)).unwrap();
        let initial = vec![network.initialize(&mut stream(0, "test"))];
        let train = Samples { input, targets: Mat::from_fn(4, 1, |i, _| i as f32) };
        Task { network, optimizer: Adam::new(learning_rate), train, test: None, initial }
    }

    /// Catches sessions that are not stepped, threads that wait for each other forever, and times of a session that has diverged.
    #[test]
    fn sessions_take_time_and_failures_end() {
        let engine = CpuEngine::new(1);
        let seconds = train(&task(1.0, 1e-3), &engine, 2, 1).unwrap();
        assert!(seconds > 0.0 && seconds < 1.0, "{seconds}");
        for (task, why) in [(task(1.0, 1e30), "diverged"), (task(0.0, 1e-3), "underflows")] {
            let error = train(&task, &engine, 2, 1).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
        // One of two threads panics, when it prepares or when it runs.
        for fails_early in [true, false] {
            let first = AtomicUsize::new(0);
            let result = on_all_threads(2, 1, || {
                let fails = first.fetch_add(1, Ordering::SeqCst) == 0;
                assert!(!(fails && fails_early), "early");
                Ok(move |_: usize| {
                    assert!(!fails, "late");
                    Ok(())
                })
            });
            assert!(result.unwrap_err().to_string().contains("a panic"));
        }
    }
}
