//! Scores of captions of test widgets: of all, and of those whose position occurs, or does not occur, in training.

use std::collections::BTreeSet;

use super::WidgetCaptioning;
use anyhow::{Context as _, Result};
use posenc_attention::Device;
use posenc_attention::caption::Search;
use posenc_attention::widget_captioner::WidgetCaptioner;
use posenc_data::generate::quantized;
use posenc_data::interfaces::{BORDER, CaptionSplit, Corners};
use posenc_experiments::record::Value;
use posenc_math::captions::Candidate;

use super::screens::Screens;
use crate::captioning::measure::record_corpus;

/// Width and height of the canvas in pixels.
const CANVAS: [f64; 2] = [1440.0, 2560.0];

/// A box in pixels of the canvas.
fn pixels(corners: Corners) -> [i64; 4] {
    [0, 1, 2, 3].map(|i| (corners[i] / BORDER * CANVAS[i % 2]).round() as i64)
}

fn hundredths(corners: Corners) -> [i64; 4] {
    quantized(corners).map(i64::from)
}

/// Generates captions for the widgets of test screens and records their scores, times 100.
pub fn record(
    model: &WidgetCaptioner,
    s: &WidgetCaptioning,
    screens: &Screens,
    how: Search,
    device: &Device,
    values: &mut Vec<Value>,
) -> Result<()> {
    let count = screens.files().count(CaptionSplit::Test).min(s.held_out);
    let vocabulary = screens.files().vocabulary();
    let mut corpus = Vec::new();
    let mut places = Vec::new();
    for screen in 0..count {
        let (input, read) = screens.held_out(screen)?;
        let said = model.captions(&s.model, &[input], how, device);
        let said = said.context("a test screen is not a valid input of the model")?;
        for ((widget, _), said) in read.widgets.iter().zip(said) {
            let word = |&word: &usize| vocabulary.word(word).unwrap_or("<unknown>").to_owned();
            let words = said.iter().map(word).collect();
            corpus.push(Candidate { words, references: widget.captions.clone() });
            let node = read.nodes.get(widget.node).context("a widget without a node")?;
            places.push(node.corners);
        }
    }
    values.push(Value::new("test_widgets", corpus.len() as f64));
    if corpus.is_empty() {
        return Ok(());
    }
    let cider = record_corpus(&corpus, values);
    let mut add = |metric: String, value: f64| values.push(Value::new(metric, value));
    let trained = screens.files().trained();
    for (suffix, of) in [("", hundredths as fn(Corners) -> [i64; 4]), ("_pixels", pixels)] {
        let known: BTreeSet<[i64; 4]> = trained.iter().map(|&corners| of(corners)).collect();
        let seen: Vec<bool> = places.iter().map(|&corners| known.contains(&of(corners))).collect();
        for (name, wanted) in [("seen", true), ("unseen", false)] {
            let count = seen.iter().filter(|&&seen| seen == wanted).count();
            add(format!("{name}_widgets{suffix}"), count as f64);
            // The mean over no widgets is undefined.
            if count > 0 {
                let own = cider.subset(|i| seen.get(i) == Some(&wanted));
                add(format!("cider_{name}{suffix}"), 100.0 * own.mean);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches hundredths that are rounded instead of truncated, and pixels of the wrong axis.
    #[test]
    fn boxes_in_hundredths_and_in_pixels() {
        let corners = [99.0 * 360.0 / 1440.0, 99.0 * 100.0 / 2560.0, 99.0, 98.999];
        assert_eq!(pixels(corners), [360, 100, 1440, 2560]);
        assert_eq!(hundredths(corners), [24, 3, 99, 98]);
    }
}
