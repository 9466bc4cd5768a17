//! Time measurements: medians, this machine's matrix-product rate, and threads that train on command.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Instant;

use anyhow::{Context, Result, anyhow};
use faer::{Accum, Mat, Par};
use posenc_math::statistics::median;
use posenc_nets::{Engine, Task};

/// GFLOP/s of faer's product of 1024 × 1024 matrices, one product per thread at a time.
pub fn matrix_product_rate(threads: usize, repeats: usize) -> Result<f64> {
    const N: usize = 1024;
    let a = &Mat::from_fn(N, N, |i, j| ((i * 7 + j * 3) % 11) as f32);
    let mut products = vec![Mat::<f32>::zeros(N, N); threads];
    let seconds = timed(repeats, || {
        std::thread::scope(|scope| {
            for c in &mut products {
                scope.spawn(move || {
                    faer::linalg::matmul::matmul(c.as_mut(), Accum::Replace, a, a, 1.0, Par::Seq);
                    black_box(c);
                });
            }
        });
        Ok(())
    })?;
    Ok(threads as f64 * 2.0 * (N as f64).powi(3) / seconds / 1e9)
}

/// Median wall time in seconds, after one warm-up run.
pub fn timed(repeats: usize, mut run: impl FnMut() -> Result<()>) -> Result<f64> {
    run()?;
    let mut seconds = Vec::with_capacity(repeats);
    for _ in 0..repeats {
        let started = Instant::now();
        run()?;
        seconds.push(started.elapsed().as_secs_f64());
    }
    Ok(median(&seconds))
}

/// The median of times, if there are any.
pub fn median_of(times: impl Iterator<Item = f64>) -> Option<f64> {
    let times: Vec<f64> = times.collect();
    (!times.is_empty()).then(|| median(&times))
}

/// Runs `run(0)` to `run(count - 1)`, each on its own thread, and returns the results in this order. Propagates panics.
pub fn on_threads<T: Send>(
    count: usize,
    run: impl Fn(usize) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let run = &run;
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..count).map(|i| scope.spawn(move || run(i))).collect();
        let ended = threads.into_iter().map(|thread| thread.join());
        ended
            .map(|result| result.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    })
}

/// Threads with one training session each. They sleep until they are told to step, and all step at the same time.
pub struct Crew {
    workers: Vec<Worker>,
    /// Steps per measurement; 0 before the first.
    steps: usize,
}

struct Worker {
    orders: Sender<usize>,
    reports: Receiver<Result<()>>,
}

impl Crew {
    /// One session of the engine per task.
    pub fn start(tasks: Vec<Task>, engine: &Arc<dyn Engine>) -> Result<Self> {
        let workers: Vec<Worker> = tasks
            .into_iter()
            .map(|task| {
                let (orders, their_orders) = channel();
                let (their_reports, reports) = channel();
                // A session stays on the thread that starts it.
                let engine = engine.clone();
                std::thread::spawn(move || work(task, &*engine, &their_orders, &their_reports));
                Worker { orders, reports }
            })
            .collect();
        let crew = Crew { workers, steps: 0 };
        crew.reports()?;
        Ok(crew)
    }

    /// Median seconds per step of all sessions together, over `repeats` measurements of at least
    /// `at_least` seconds each. The first call also warms up.
    pub fn seconds_per_step(&mut self, repeats: usize, at_least: f64) -> Result<f64> {
        if self.steps == 0 {
            self.step(2)?;
            let one = self.step(1)?;
            self.steps = ((at_least / one).ceil() as usize).max(1);
        }
        let mut seconds = Vec::with_capacity(repeats);
        for _ in 0..repeats.max(1) {
            seconds.push(self.step(self.steps)? / self.steps as f64);
        }
        Ok(median(&seconds))
    }

    /// Runs `steps` steps in every session; returns the wall time in seconds.
    fn step(&self, steps: usize) -> Result<f64> {
        let started = Instant::now();
        for worker in &self.workers {
            worker.orders.send(steps).map_err(|_| anyhow!("a training thread ended early"))?;
        }
        self.reports()?;
        Ok(started.elapsed().as_secs_f64())
    }

    fn reports(&self) -> Result<()> {
        for worker in &self.workers {
            // A thread that panicked has dropped its end.
            worker.reports.recv().context("a training thread ended early")??;
        }
        Ok(())
    }
}

fn work(task: Task, engine: &dyn Engine, orders: &Receiver<usize>, reports: &Sender<Result<()>>) {
    let mut session = match engine.start(task) {
        Ok(session) => session,
        Err(error) => {
            // Sending fails only if the crew was dropped.
            let _ = reports.send(Err(error.into()));
            return;
        }
    };
    if reports.send(Ok(())).is_err() {
        return;
    }
    for steps in orders {
        let mut report = Ok(());
        // As in training, submits as many epochs at once as suit the device.
        let at_once = session.epochs_at_once();
        for first in (0..steps).step_by(at_once) {
            let epochs = vec![false; at_once.min(steps - first)];
            if let Err(error) = black_box(session.advance(&epochs)) {
                report = Err(error.into());
            }
        }
        // A diverged run is no longer trained, and its time means nothing.
        if let Some(epoch) = session.diverged().iter().flatten().next() {
            report = Err(anyhow!("a run diverged at epoch {epoch}; its times are meaningless"));
        }
        if reports.send(report).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use posenc_math::random::stream;
    use posenc_nets::{Adam, CpuEngine, Input, Network, Samples};

    use super::*;

    fn engine() -> Arc<dyn Engine> {
        Arc::new(CpuEngine::new(1))
    }

    fn task(feature: f32, learning_rate: f64) -> Task {
        let network = Network::new(2, 1, 3, 1).unwrap();
        let input = Input::dense(Mat::from_fn(2, 4, |_, i| feature * i as f32)).unwrap();
        let initial = vec![network.initialize(&mut stream(0, "test"))];
        let train = Samples { input, targets: Mat::from_fn(4, 1, |i, _| i as f32) };
        Task { network, optimizer: Adam::new(learning_rate), train, test: None, initial }
    }

    /// Catches sessions that are not stepped, and threads that never report.
    #[test]
    fn a_crew_takes_time() {
        let mut crew = Crew::start(vec![task(1.0, 1e-3); 2], &engine()).unwrap();
        let first = crew.seconds_per_step(1, 0.001).unwrap();
        assert!(first > 0.0 && first < 1.0, "{first}");
        assert!(crew.steps >= 1);
    }

    /// Catches a crew that hangs if a session does not start, or that times a session that has diverged.
    #[test]
    fn sessions_that_cannot_be_timed_are_errors() {
        let zero = Crew::start(vec![task(1.0, 1e-3), task(0.0, 1e-3)], &engine()).err().unwrap();
        assert!(zero.to_string().contains("underflows"), "{zero}");
        let mut crew = Crew::start(vec![task(1.0, 1e30)], &engine()).unwrap();
        let diverged = crew.seconds_per_step(3, 0.01).unwrap_err();
        assert!(diverged.to_string().contains("diverged"), "{diverged}");
    }
}
