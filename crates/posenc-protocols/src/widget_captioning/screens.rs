//! A cache of screens as inputs of the model; a training of the paper's length uses each screen several hundred times.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use anyhow::{Context as _, Result};
use posenc_attention::widget_captioner::{Node, ScreenInput, WidgetInput};
use posenc_data::interfaces::{
    CaptionSplit, CaptionVocabulary, ViewNode, WidgetScreen, WidgetScreens,
};
use posenc_math::random::below;
use rand_chacha::ChaCha8Rng;

use crate::attention;

/// A cached screen.
struct Kept {
    /// The screen without captions.
    input: ScreenInput,
    /// Captions of each widget as word numbers; captions without a known word are left out.
    captions: Vec<Vec<Vec<usize>>>,
}

/// Screens of RICO files with a cache.
pub struct Screens {
    files: WidgetScreens,
    side: usize,
    kept: HashMap<usize, Kept>,
}

impl Screens {
    /// An empty cache of screens whose node pictures have `side` rows and columns.
    pub fn new(files: WidgetScreens, side: usize) -> Self {
        Screens { files, side, kept: HashMap::new() }
    }

    pub fn files(&self) -> &WidgetScreens {
        &self.files
    }

    /// Samples the next `count` training screens without replacement; `left` has the screens of the current epoch that are left.
    /// Each widget gets one of its captions. Widgets without a caption of known words are left out.
    pub fn batch(
        &mut self,
        count: usize,
        left: &mut Vec<usize>,
        rng: &mut ChaCha8Rng,
    ) -> Result<Vec<ScreenInput>> {
        let all = self.files.count(CaptionSplit::Training);
        let mut batch = Vec::with_capacity(count);
        for _ in 0..count {
            let screen = attention::next(left, all, rng);
            let screen = screen.context("split/train.txt names no screen with captions")?;
            let kept = self.kept(screen)?;
            let mut input = kept.input.clone();
            let captions = input.widgets.iter_mut().zip(&kept.captions);
            let told = captions.filter(|(_, captions)| !captions.is_empty());
            for (widget, captions) in told {
                widget.caption = captions[below(rng, captions.len())].clone();
            }
            input.widgets.retain(|widget| !widget.caption.is_empty());
            batch.push(input);
        }
        Ok(batch)
    }

    fn kept(&mut self, screen: usize) -> Result<&Kept> {
        Ok(match self.kept.entry(screen) {
            Entry::Occupied(kept) => kept.into_mut(),
            Entry::Vacant(place) => {
                let read = self.files.read(CaptionSplit::Training, screen, self.side)?;
                let read = read.context("a screen of the split no longer exists")?;
                place.insert(keep(self.files.vocabulary(), read))
            }
        })
    }

    /// A test screen, with its widgets in order.
    pub fn held_out(&self, screen: usize) -> Result<(ScreenInput, WidgetScreen)> {
        let read = self.files.read(CaptionSplit::Test, screen, self.side)?;
        let read = read.context("a screen of the split no longer exists")?;
        Ok((keep(self.files.vocabulary(), read.clone()).input, read))
    }
}

fn keep(vocabulary: &CaptionVocabulary, screen: WidgetScreen) -> Kept {
    let nodes = screen.nodes.iter().enumerate();
    let nodes = nodes.map(|(i, node)| input(vocabulary, i, node)).collect();
    let captions = screen.widgets.iter().map(|(widget, _)| {
        let known = widget.captions.iter().map(|caption| {
            let mut words = vocabulary.caption(caption);
            // The model adds its own end token.
            words.pop();
            words
        });
        known.filter(|words| !words.is_empty()).collect()
    });
    let captions = captions.collect();
    let widgets = screen.widgets.into_iter().map(|(widget, pixels)| WidgetInput {
        node: widget.node,
        caption: Vec::new(),
        pixels,
    });
    let widgets = widgets.collect();
    Kept { input: ScreenInput { nodes, widgets }, captions }
}

/// Node `index` of a screen; nodes are in pre-order.
fn input(vocabulary: &CaptionVocabulary, index: usize, node: &ViewNode) -> Node {
    Node {
        text: vocabulary.text(&node.text),
        resource: vocabulary.text(&node.resource),
        kind: node.kind,
        is_clickable: node.is_clickable,
        tree: [node.depth, index + 1, node.post_order],
        bounds: node.corners,
    }
}
