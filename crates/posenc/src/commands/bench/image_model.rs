//! The image model of `lff` Figure 3: one single-threaded run per core, as in experiments.

use anyhow::bail;
use posenc_attention::image_model::{ImageModel, Sizes, tokens};
use posenc_attention::layers::TransformerSizes;
use posenc_attention::optimizer::Adam;
use posenc_attention::trainer::Trainer;
use posenc_data::generate::GrayLeaves;
use posenc_math::lff::encoding::{Encoding, Features, Modulator};
use posenc_math::lff::schedule::{Decay, LearningRate};
use posenc_math::random::stream;

use super::measure::{Ours, on_all_threads};

const SIZES: Sizes = Sizes {
    side: 12,
    levels: 16,
    color_width: None,
    concatenated: None,
    transformer: TransformerSizes { width: 64, heads: 4, feed_forward: 128, layers: 2 },
    lsh: None,
    reversible: false,
    divergence: None,
};
const BATCH: usize = 16;

/// Seconds of a step on each of `threads` cores, divided by their number.
pub fn start(threads: usize) -> Ours {
    let seconds = move |repeats| Ok(on_all_threads(threads, repeats, trained)? / threads as f64);
    Ours { operations: SIZES.operations(BATCH), seconds: Box::new(seconds) }
}

/// Starts a training; the result does a number of steps.
fn trained() -> anyhow::Result<impl FnMut(usize) -> anyhow::Result<()>> {
    let encoding = Encoding {
        features: Features::Fourier,
        gamma: Some(1.0),
        learned: true,
        modulator: Some(Modulator { hidden: 16, layer_norm: true, dropout: 0.1 }),
        ..Encoding::none()
    };
    let device = posenc_attention::cpu();
    let draw = |purpose: &str| stream(0, purpose);
    let model = ImageModel::new(&SIZES, &encoding, ["content", "encoding"].map(draw), &device);
    let learning_rate =
        LearningRate { peak: 1e-3, warm_up: 0, decay: Decay::Constant, steps: usize::MAX };
    let fixed = model.fix(&device);
    let mut trainer = Trainer::new(model, Adam::new(0.9, 0.98, 1e-9), learning_rate);
    let law = GrayLeaves::new(SIZES.side, SIZES.levels);
    let (mut rng, mut masks) = (draw("batches"), draw("masks"));
    Ok(move |steps| {
        for _ in 0..steps {
            let batch: Vec<_> = (0..BATCH).map(|_| law.image(&mut rng)).collect();
            ImageModel::step(&mut trainer, &tokens(&batch, &device), &fixed, &mut masks);
        }
        match trainer.diverged() {
            Some(diverged) => bail!(diverged),
            None => Ok(()),
        }
    })
}
