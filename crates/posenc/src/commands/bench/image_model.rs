//! The image model of `lff` Figure 3: one single-threaded run per core, as in experiments.

use std::time::Instant;

use anyhow::{Result, bail};
use posenc_attention::image_model::{ImageModel, Sizes};
use posenc_attention::layers::TransformerSizes;
use posenc_attention::optimizer::Adam;
use posenc_attention::trainer::Trainer;
use posenc_data::generate::GrayLeaves;
use posenc_math::lff::encoding::{Encoding, Features, Modulator};
use posenc_math::lff::schedule::{Decay, LearningRate};
use posenc_math::random::stream;
use posenc_math::statistics::median;

use super::measure::{matrix_product_rate, median_of, on_threads};
use super::peer::Peer;
use super::{Measured, ROUNDS, against_torch, networks};

/// Name on the command line, and for the peer.
pub const NAME: &str = "image-model";

const SIZES: Sizes = Sizes {
    side: 12,
    levels: 16,
    concatenated: None,
    transformer: TransformerSizes { width: 64, heads: 4, feed_forward: 128, layers: 2 },
};
const BATCH: usize = 16;
/// Steps of a run; the measured time includes the initialization of the model.
const STEPS: usize = 20;

pub fn measure(threads: usize, repeats: usize, torch: Option<&Peer>) -> Result<Measured> {
    let (mut ours, mut theirs, mut rates) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        for _ in 0..repeats.div_ceil(2) {
            ours.push(step(threads)?);
        }
        rates.push(matrix_product_rate(threads, repeats)?);
        if let Some(torch) = torch {
            theirs.push(torch.network_processes(NAME, threads, repeats)?);
        }
    }
    let (ours_s, rate) = (median(&ours), median(&rates));
    let torch_s = median_of(theirs.into_iter());
    let share = SIZES.operations(BATCH) / ours_s / 1e9 / rate;
    let title = "transformer over 12 × 12 pixels, 2 layers of width 64, 16 images".to_owned();
    println!("{NAME}: {title}, a run of one thread on each of {threads} cores");
    println!("  matrix products of this machine    {rate:8.1} GFLOP/s (f32)");
    println!(
        "  per step, one process per core     {:8.3} ms, {:.0} % of the matrix-product rate{}",
        1e3 * ours_s,
        100.0 * share,
        against_torch(torch_s, ours_s)
    );
    Ok(Measured {
        name: NAME,
        title,
        unit: "s per step",
        ours_s,
        torch_s,
        jax_s: None,
        gemm_gflops: rate,
        share_of_gemm: share,
        threads,
        peers: torch.map(|p| format!("torch {}", p.version)).into_iter().collect(),
        more: networks::More::default(),
    })
}

/// Seconds per step when each core trains its own model, divided by the number of cores.
fn step(threads: usize) -> Result<f64> {
    let rates = on_threads(threads, |run| Ok(1.0 / train_one(run as u64)?))?;
    Ok(1.0 / rates.iter().sum::<f64>())
}

/// Mean seconds per step over [`STEPS`] steps.
fn train_one(seed: u64) -> Result<f64> {
    let encoding = Encoding {
        features: Features::Fourier,
        gamma: Some(1.0),
        learned: true,
        modulator: Some(Modulator { hidden: 16, layer_norm: true, dropout: 0.1 }),
        ..Encoding::none()
    };
    let device = posenc_attention::cpu();
    let draw = |purpose: &str| stream(seed, purpose);
    let started = Instant::now();
    let model =
        ImageModel::new(&SIZES, &encoding, &mut draw("content"), &mut draw("encoding"), &device);
    let model = model.map_err(|(key, message)| anyhow::anyhow!("{key}: {message}"))?;
    let learning_rate =
        LearningRate { peak: 1e-3, warm_up: 0, decay: Decay::Constant, steps: STEPS };
    let fixed = model.fix(&SIZES, &device);
    let mut trainer = Trainer::new(model, Adam::new(0.9, 0.98, 1e-9), learning_rate);
    let law = GrayLeaves::new(SIZES.side, SIZES.levels);
    let mut rng = draw("batches");
    let mut masks = draw("masks");
    while trainer.is_running() {
        let batch: Vec<_> = (0..BATCH).map(|_| law.image(&mut rng)).collect();
        trainer.step(|model| Some(model.loss(&batch, &SIZES, &fixed, None, &mut masks)));
    }
    if let Some(diverged) = trainer.diverged() {
        bail!(diverged);
    }
    Ok(started.elapsed().as_secs_f64() / STEPS as f64)
}
