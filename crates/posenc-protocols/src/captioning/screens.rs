//! Screens as inputs of the model: generated ones, or those of RICO files. Inputs are cached, since trainings use each screen many times.

use std::collections::HashMap;

use anyhow::{Result, ensure};
use posenc_attention::captioner::{Node, ScreenInput, WidgetInput};
use posenc_data::generate::{Screen, ScreenGrammar};
use posenc_data::interfaces::{CaptionSplit, WidgetScreen, WidgetScreens, write_widget_screens};
use posenc_harness::protocol::Context;
use posenc_math::random::{below, stream};
use rand_chacha::ChaCha8Rng;

use super::Captioning;
use crate::attention;

/// Number of generated validation screens in files.
const VALIDATED: usize = 2;

/// An input without captions, and the captions of each widget. Captions without a known word are left out.
struct Input {
    screen: ScreenInput,
    captions: Vec<Vec<Vec<usize>>>,
}

pub enum Source {
    Generated {
        trained: Vec<Screen>,
        held_out: Vec<Screen>,
    },
    Files {
        all: Box<WidgetScreens>,
        side: usize,
        /// The folder of generated files, deleted when dropped.
        _folder: Option<tempfile::TempDir>,
    },
}

pub struct Screens {
    pub source: Source,
    factor: f64,
    inputs: HashMap<usize, Input>,
}

impl Screens {
    pub fn open(context: &Context<'_>, s: &Captioning, remarks: &mut Vec<String>) -> Result<Self> {
        let grammar = ScreenGrammar::new(s.jitter);
        let screens = |purpose: &str, count: usize| {
            let name = format!("{} {purpose}", context.job.experiment.id());
            grammar.screens(count, &mut stream(context.seed, &name))
        };
        let trained = || screens("screens", s.screens);
        let held_out = || screens("held out", s.held_out);
        let source = match &s.public {
            None => Source::Generated { trained: trained(), held_out: held_out() },
            Some(own) => {
                let (path, _folder) = attention::files(context, "screens", |folder| {
                    let splits = [&trained()[..], &screens("validation", VALIDATED), &held_out()];
                    Ok(write_widget_screens(folder, splits)?)
                })?;
                let all = WidgetScreens::open(&path, own.vocabulary)?;
                remarks.extend(all.report().lines().map(str::to_owned));
                let words = all.vocabulary().size();
                remarks.push(format!("vocabulary: {words} words, including four special tokens"));
                Source::Files { all: Box::new(all), side: own.side(), _folder }
            }
        };
        Ok(Screens { source, factor: 1.0 / s.scale.hundredths(), inputs: HashMap::new() })
    }

    pub fn count(&self) -> usize {
        match &self.source {
            Source::Generated { trained, .. } => trained.len(),
            Source::Files { all, .. } => all.count(CaptionSplit::Training),
        }
    }

    /// Samples the next `count` training screens without replacement; `left` has the screens of the current epoch that are left.
    /// Each widget gets one of its captions. Widgets without a caption of known words are left out.
    pub fn batch(
        &mut self,
        count: usize,
        left: &mut Vec<usize>,
        rng: &mut ChaCha8Rng,
    ) -> Result<Vec<ScreenInput>> {
        let all = self.count();
        ensure!(all > 0, "split/train.txt names no screen with captions");
        let mut batch = Vec::with_capacity(count);
        for _ in 0..count {
            let screen = attention::next(left, all, rng);
            let Input { screen, captions } = self.input(screen)?;
            let mut screen = screen.clone();
            for (widget, captions) in screen.widgets.iter_mut().zip(captions) {
                if !captions.is_empty() {
                    widget.caption.clone_from(&captions[below(rng, captions.len())]);
                }
            }
            screen.widgets.retain(|widget| !widget.caption.is_empty());
            batch.push(screen);
        }
        ensure!(
            batch.iter().any(|screen| !screen.widgets.is_empty()),
            "no caption in a batch has a known word; raise `public.vocabulary` or `batch`"
        );
        Ok(batch)
    }

    fn input(&mut self, screen: usize) -> Result<&Input> {
        if !self.inputs.contains_key(&screen) {
            let input = match &self.source {
                Source::Generated { trained, .. } => generated(&trained[screen], self.factor),
                Source::Files { all, side, .. } => {
                    read(all, &all.read(CaptionSplit::Training, screen, *side)?, self.factor)
                }
            };
            self.inputs.insert(screen, input);
        }
        Ok(&self.inputs[&screen])
    }

    pub fn held_out(&self, screens: &[Screen]) -> Vec<ScreenInput> {
        screens.iter().map(|screen| generated(screen, self.factor).screen).collect()
    }

    /// The first test screens of files, and their inputs.
    pub fn tested(
        &self,
        all: &WidgetScreens,
        side: usize,
        most: usize,
    ) -> Result<(Vec<WidgetScreen>, Vec<ScreenInput>)> {
        let count = all.count(CaptionSplit::Test).min(most);
        let screens = (0..count).map(|screen| all.read(CaptionSplit::Test, screen, side));
        let screens = screens.collect::<Result<Vec<_>, _>>()?;
        let inputs = screens.iter().map(|screen| read(all, screen, self.factor).screen).collect();
        Ok((screens, inputs))
    }
}

fn generated(screen: &Screen, factor: f64) -> Input {
    let nodes = screen.nodes.iter().map(|node| Node {
        text: vec![node.word],
        resource: Vec::new(),
        kind: node.kind,
        is_clickable: node.is_clickable,
        tree: [node.depth, 0, 0],
        bounds: node.bounds.map(|v| factor * v),
    });
    let widgets = screen.widgets.iter();
    let captions = widgets.clone().map(|widget| widget.references.clone()).collect();
    let widgets = widgets.map(|widget| WidgetInput {
        node: widget.node,
        caption: Vec::new(),
        pixels: Vec::new(),
    });
    Input { screen: ScreenInput { nodes: nodes.collect(), widgets: widgets.collect() }, captions }
}

fn read(all: &WidgetScreens, screen: &WidgetScreen, factor: f64) -> Input {
    let vocabulary = all.vocabulary();
    let nodes = screen.nodes.iter().enumerate().map(|(index, node)| Node {
        text: vocabulary.text(&node.text),
        resource: vocabulary.text(&node.resource),
        kind: node.kind,
        is_clickable: node.is_clickable,
        // Nodes are in pre-order.
        tree: [node.depth, index + 1, node.post_order],
        bounds: node.corners.map(|v| factor * v),
    });
    let captions = screen.widgets.iter().map(|(widget, _)| {
        let known = widget.captions.iter().map(|caption| {
            let mut words = vocabulary.caption(caption);
            // The model adds its own end token.
            words.pop();
            words
        });
        known.filter(|words| !words.is_empty()).collect()
    });
    let widgets = screen.widgets.iter().map(|(widget, pixels)| WidgetInput {
        node: widget.node,
        caption: Vec::new(),
        pixels: pixels.clone(),
    });
    Input {
        screen: ScreenInput { nodes: nodes.collect(), widgets: widgets.collect() },
        captions: captions.collect(),
    }
}
