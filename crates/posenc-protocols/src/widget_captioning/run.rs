//! The widget captioner at the paper's scale (`lff` Tables 1, 2 and 5): its size, the cost of a step, and its captions.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, Result};
use posenc_attention::caption::Search;
use posenc_attention::optimizer::Adam;
use posenc_attention::parameters;
use posenc_attention::trainer::Trainer;
use posenc_attention::widget_captioner::{Batch, Statistics, WidgetCaptioner};
use posenc_data::generate::ScreenGrammar;
use posenc_data::interfaces::{CaptionSplit, WidgetScreens, WordVectors, write_widget_screens};
use posenc_experiments::record::Value;
use posenc_math::lff::schedule::LearningRate;
use posenc_math::lff::widget::{BINS, COORDINATES};
use posenc_math::random::stream;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::screens::Screens;
use super::{WidgetCaptioning, measure};
use crate::attention::record::{record_curve, record_peak_memory, with_unit};
use crate::attention::{self, EPSILON, train_state, trains};
use crate::streams::shared_stream;
use posenc_harness::protocol::{Context, UnitResult};

/// Numbers of generated validation and test screens.
const GENERATED: [usize; 2] = [2, 8];

/// Factor on the ranges of margins, gaps and sizes of generated screens.
const JITTER: f64 = 1.1;

/// Standard deviation of sampled word vectors, about that of GloVe vectors.
const VECTOR_DEVIATION: f64 = 0.4;

/// Maximum number of points of the loss curve, each a mean over the same number of steps.
const POINTS: usize = 1000;

/// State in a checkpoint besides the model.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Own {
    /// Screens that are left in this epoch.
    left: Vec<usize>,
    curve: Vec<f64>,
    seconds: f64,
    work: f64,
}

fn run(context: &Context<'_>, s: &WidgetCaptioning) -> Result<UnitResult> {
    let draw = |purpose: &str| shared_stream(context, purpose);
    let device = attention::device(context)?;
    let mut outcome = UnitResult::default();
    let (mut content, mut code, mut vectors) =
        (draw("content"), draw("encoding"), draw("word vectors"));
    let mut data = match s.steps {
        0 => None,
        _ => Some(open(context, s)?),
    };
    let words = match &data {
        Some(data) => table(context, s, data.screens.files(), &mut vectors, &mut outcome.remarks)?,
        None => vec![0.0; s.model.vocabulary * s.model.word_width],
    };
    let model =
        WidgetCaptioner::new(&s.model, &s.encoding, words, &mut content, &mut code, &device);
    let model = attention::accepted(model)?;
    let encoding_params = s.encoding.parameter_count(&[BINS; COORDINATES], s.model.width);
    let counts = [
        ("params", parameters::count_trained(&model) as f64 / 1e6, "M"),
        ("encoding_params", encoding_params as f64, "count"),
    ];
    outcome.values.extend(counts.map(with_unit));
    for (part, count) in model.parts() {
        outcome.values.push(Value::new("module_params", count as f64).signal(part.to_owned()));
    }
    let Some(Opened { screens, remarks, _folder }) = &mut data else {
        return Ok(outcome);
    };
    outcome.remarks.append(remarks);
    let mut adam = Adam::new(0.9, s.beta2, EPSILON);
    adam.max_grad_norm = Some(s.max_grad_norm);
    let learning_rate =
        LearningRate { peak: s.learning_rate, warm_up: s.warm_up, decay: s.decay, steps: s.steps };
    let mut trainer = Trainer::new(model, adam, learning_rate);
    let mut own = Own::default();
    let count = screens.files().count(CaptionSplit::Training);
    train_state::train(
        context,
        &mut trainer,
        &mut [draw("batches"), draw("dropout")],
        &mut own,
        &mut outcome,
        |own, steps| own.curve.len() == steps && own.left.iter().all(|&screen| screen < count),
        |trainer, [batches, masks], own| {
            let inputs = screens.batch(s.batch, &mut own.left, batches)?;
            let batch = Batch::new(&inputs, &s.model, &device).context(
                "no caption in a batch has a known word; raise `model.vocabulary` or `batch`",
            )?;
            let mut statistics = Statistics::new();
            let started = Instant::now();
            let loss = trainer.step(|model| model.loss(&s.model, &batch, &mut statistics, masks));
            if trainer.diverged().is_none() {
                trainer.model = trainer.model.clone().moved(&statistics);
            }
            own.seconds += started.elapsed().as_secs_f64();
            own.work += s.model.operations(batch.size());
            own.curve.push(loss);
            Ok(())
        },
    )?;
    let taken = (own.curve.len() * s.batch) as f64;
    let every = s.steps.div_ceil(POINTS).max(1);
    record_curve(&own.curve, every, "nats/word", &mut outcome.values);
    let costs = [
        ("time_of_screen", own.seconds / taken, "s"),
        ("operations_of_screen", own.work / taken / 1e9, "GFLOP"),
        ("rate", own.work / own.seconds / 1e9, "GFLOP/s"),
        ("screens", count as f64, "count"),
        ("widgets", screens.files().trained().len() as f64, "count"),
    ];
    outcome.values.extend(costs.map(with_unit));
    if s.held_out > 0 && trainer.diverged().is_none() {
        let how = Search { beams: s.beams, alpha: s.length_penalty, max_len: s.model.longest };
        measure::record(&trainer.model, s, screens, how, &device, &mut outcome.values)?;
    }
    record_peak_memory(&mut outcome.values);
    Ok(outcome)
}

/// Screens with remarks on their files.
struct Opened {
    screens: Screens,
    remarks: Vec<String>,
    /// Folder of generated screens, deleted when dropped.
    _folder: Option<tempfile::TempDir>,
}

fn open(context: &Context<'_>, s: &WidgetCaptioning) -> Result<Opened> {
    let (path, folder) =
        attention::files(context, "screens", |folder| generate(context, s, folder))?;
    let files = WidgetScreens::open(&path, s.model.vocabulary)?;
    let mut remarks: Vec<String> = files.report().lines().map(str::to_owned).collect();
    let words = files.vocabulary().size();
    remarks.push(format!("vocabulary: {words} words, including four special tokens"));
    let screens = Screens::new(files, s.model.side());
    Ok(Opened { screens, remarks, _folder: folder })
}

/// Writes generated screens in the format of RICO.
fn generate(context: &Context<'_>, s: &WidgetCaptioning, folder: &Path) -> Result<()> {
    let grammar = ScreenGrammar::new(JITTER);
    let mut rng = stream(context.seed, "widget-captioning screens");
    let [chosen, tested] = GENERATED;
    let splits = [s.screens, chosen, tested].map(|count| grammar.screens(count, &mut rng));
    Ok(write_widget_screens(folder, [&splits[0], &splits[1], &splits[2]])?)
}

/// Word vectors of the vocabulary, from a file if available, otherwise sampled.
fn table(
    context: &Context<'_>,
    s: &WidgetCaptioning,
    files: &WidgetScreens,
    rng: &mut ChaCha8Rng,
    remarks: &mut Vec<String>,
) -> Result<Vec<f32>> {
    let (rows, width) = (s.model.vocabulary, s.model.word_width);
    let Some(found) = attention::weights(context)? else {
        remarks.push(format!(
            "found no word vectors; they are sampled with standard deviation {VECTOR_DEVIATION} and carry no meaning"
        ));
        return Ok(posenc_attention::draw::normal(rng, rows * width, VECTOR_DEVIATION));
    };
    let vectors = WordVectors::in_folder(&found.folder, files.vocabulary(), width)?;
    remarks.push(format!(
        "read word vectors (files {}); {} of {} words have none and are sampled as in the public code",
        found.sha256,
        vectors.absent().len(),
        files.vocabulary().size()
    ));
    let mut table = vectors.table(rng);
    // Pads rows without a word, which nothing reads.
    table.resize(rows * width, 0.0);
    Ok(table)
}

trains!(WidgetCaptioning, reads WidgetCaptions, weights WordVectors);
