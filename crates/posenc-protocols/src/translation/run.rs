//! Learned position embeddings in translation (`lff` Fig. 1).

use std::time::Instant;

use anyhow::{Result, bail, ensure};
use posenc_attention::layers::TransformerSizes;
use posenc_attention::optimizer::Adam;
use posenc_attention::trainer::Trainer;
use posenc_attention::translator::{Sizes, Translator, evaluate};
use posenc_data::generate::{self, Lengths, Pair};
use posenc_data::{Corpus, ParallelText, Vocabulary};
use posenc_experiments::record::Value;
use posenc_math::lff::schedule::LearningRate;
use posenc_math::lff::table::{neighbor_peaks, similarities};
use rand_chacha::ChaCha8Rng;

use super::{SentenceLengths, Translation};
use crate::attention::record::{record_cost, six_digits};
use crate::attention::{self, EPSILON, train_state, trains};
use crate::streams::shared_stream;
use posenc_harness::protocol::{Context, UnitResult};

/// Source and target language of parallel text.
const LANGUAGES: [&str; 2] = ["en", "de"];

fn run(context: &Context<'_>, s: &Translation) -> Result<UnitResult> {
    let started = Instant::now();
    // Groups that differ in sentence lengths share words and initial weights.
    let draw = |purpose: &str| shared_stream(context, purpose);
    let mut outcome = UnitResult::default();
    let pairs = Pairs::new(context, s, &mut draw("languages"), &mut outcome.remarks)?;
    let device = attention::device(context)?;
    let transformer = TransformerSizes { layers: s.layers, ..s.transformer().sizes() };
    let sizes = Sizes { words: pairs.words, positions: s.max_len, transformer };
    let model = Translator::new(&sizes, s.deviation, &mut draw("content"), &device);
    let mut rng = draw("held out");
    let held_out: Vec<_> = (0..s.held_out).map(|_| pairs.pair(false, s, &mut rng)).collect();
    let learning_rate =
        LearningRate { peak: s.learning_rate, warm_up: s.warm_up, decay: s.decay, steps: s.steps };
    let every = (s.steps / 4).max(1);
    let mut trainer = Trainer::new(model, Adam::new(0.9, 0.98, EPSILON), learning_rate);
    let mut own = (Vec::<(usize, f64)>::new(), vec![0usize; s.max_len]);
    train_state::train(
        context,
        &mut trainer,
        &mut [draw("batches")],
        &mut own,
        &mut outcome,
        |(_, counts), _| counts.len() == s.max_len,
        |trainer, [rng], (losses, counts)| {
            let batch: Vec<_> = (0..s.batch).map(|_| pairs.pair(true, s, rng)).collect();
            for (source, _) in &batch {
                counts[..source.len()].iter_mut().for_each(|n| *n += 1);
            }
            trainer.step(|model| model.loss(&batch, &sizes, &device));
            if trainer.is_measured(every) {
                losses.push((trainer.steps(), evaluate(&trainer.model, &held_out, &device)));
            }
            Ok(())
        },
    )?;
    // The loss after some steps, and the number of training sentences that contain each position.
    let (losses, counts) = own;
    let values = &mut outcome.values;
    for (step, loss) in &losses {
        values.push(Value::new("loss_curve", *loss).unit("nats/token").at(*step as f64));
    }
    let last = losses.last().filter(|_| trainer.diverged().is_none());
    values.push(Value::new("loss", last.map_or(f64::NAN, |(_, loss)| *loss)).unit("nats/token"));
    if trainer.diverged().is_some() {
        return Ok(outcome);
    }
    values.push(Value::new("loss_of_guessing", pairs.guessing).unit("nats/token"));
    for (position, &count) in counts.iter().enumerate() {
        values.push(Value::new("count", count as f64).at(position as f64));
    }
    for (name, table) in ["source", "target"].into_iter().zip(trainer.model.positions()) {
        let table: Vec<f64> = table.into_iter().map(f64::from).collect();
        ensure!(table.len() == s.max_len * s.width, "could not read the table of positions");
        record(name, &table, s, values);
        // Maps are the largest part of a record, so only one is stored.
        if name == "source" && context.job.seed_index == 0 {
            for (i, similarity) in similarities(&table, s.width).into_iter().enumerate() {
                let (row, column) = (i / s.max_len, i % s.max_len);
                let value = Value::new("source_similarity", six_digits(similarity));
                values.push(value.at(column as f64).and(row as f64));
            }
        }
    }
    record_cost(started.elapsed().as_secs_f64(), outcome.earlier, trainer.operations, values);
    Ok(outcome)
}

/// Pairs of sentences.
struct Pairs {
    /// Number of words of each language.
    words: usize,
    /// Loss in nats per word of a model that knows only the frequencies of words.
    guessing: f64,
    source: Source,
}

enum Source {
    Generated(generate::Translation),
    Text { trained: Corpus, measured: Corpus },
}

impl Pairs {
    fn new(
        context: &Context<'_>,
        s: &Translation,
        rng: &mut ChaCha8Rng,
        remarks: &mut Vec<String>,
    ) -> Result<Self> {
        let Some(data) = &context.job.group.data else {
            let lengths = match s.lengths {
                SentenceLengths::LogNormal => Lengths::LogNormal,
                SentenceLengths::Constant => Lengths::Constant,
                SentenceLengths::Uniform => Lengths::Uniform,
                SentenceLengths::Natural | SentenceLengths::Filled => {
                    bail!("these `lengths` are only allowed with text; name its set under `data`")
                }
            };
            let languages = generate::Translation::new(s.words, lengths, s.max_len, rng);
            let (words, guessing) = (s.words, (s.words as f64).ln());
            return Ok(Pairs { words, guessing, source: Source::Generated(languages) });
        };
        let folder = context.data.folder(&data.set)?;
        let read = |split: &str| ParallelText::read(&folder, split, LANGUAGES);
        let (train, validation) = (read("train")?, read("val")?);
        for (split, text) in [("train", &train), ("val", &validation)] {
            if text.skipped > 0 {
                let (skipped, all) = (text.skipped, text.pairs.len() + text.skipped);
                remarks.push(format!(
                    "skipped {skipped} of {all} lines of {split} (one side is empty)"
                ));
            }
        }
        let vocabulary = Vocabulary::new(&train, s.words);
        let (trained, measured) = (vocabulary.number(&train), vocabulary.number(&validation));
        let guessing = trained.target_entropy(vocabulary.size(), s.max_len);
        let source = Source::Text { trained, measured };
        Ok(Pairs { words: vocabulary.size(), guessing, source })
    }

    /// Samples source and target of a training pair, or of a held-out pair.
    fn pair(
        &self,
        is_trained: bool,
        s: &Translation,
        rng: &mut ChaCha8Rng,
    ) -> (Vec<usize>, Vec<usize>) {
        let Pair { source, target } = match &self.source {
            Source::Generated(languages) => languages.pair(rng),
            Source::Text { trained, measured } => {
                let corpus = if is_trained { trained } else { measured };
                match s.lengths {
                    SentenceLengths::Filled => corpus.filled(s.max_len, rng),
                    _ => corpus.natural(s.max_len, rng),
                }
            }
        };
        (source, target)
    }
}

/// Records how much more similar adjacent rows of a table are than others.
fn record(name: &str, table: &[f64], s: &Translation, values: &mut Vec<Value>) {
    let peaks = neighbor_peaks(table, s.width);
    let means: Vec<f64> =
        peaks.chunks(s.bin).map(|bin| bin.iter().sum::<f64>() / bin.len() as f64).collect();
    for (i, mean) in means.iter().enumerate() {
        let middle = i as f64 * s.bin as f64 + 0.5 * (s.bin - 1) as f64;
        values.push(Value::new(format!("{name}_peak"), *mean).at(middle));
    }
    let [first, last] = [means.first(), means.last()].map(|mean| *mean.unwrap_or(&f64::NAN));
    values.push(Value::new(format!("{name}_first_peak"), first));
    values.push(Value::new(format!("{name}_last_peak"), last));
    values.push(Value::new(format!("{name}_decay"), last / first));
}

trains!(Translation, reads ParallelText);
