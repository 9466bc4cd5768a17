//! Counts how rare the positions of boxes are.

use anyhow::Result;
use posenc_data::Format;
use posenc_data::generate::{ScreenGrammar, quantized};
use posenc_data::interfaces::{LABELLED_SCREENS, LabelledScreens, WidgetScreens};
use posenc_math::random::stream;

use super::BoxPositions;
use crate::captioning::measure;
use posenc_harness::protocol::{Context, Emit, Protocol, UnitResult};

impl Protocol for BoxPositions {
    fn reads(&self) -> Option<Format> {
        match self.screens {
            _ if self.captioned => Some(Format::WidgetCaptions),
            None => Some(Format::LabelledScreens),
            Some(_) => None,
        }
    }

    fn run(&self, context: &Context<'_>, emit: &mut Emit<'_>) -> Result<()> {
        let mut outcome = UnitResult::default();
        outcome.values = match &context.job.group.data {
            None => {
                let grammar = ScreenGrammar::new(self.jitter);
                let name = format!("{} screens", context.job.experiment.id());
                let count = self.screens.unwrap_or_default();
                let screens = grammar.screens(count, &mut stream(context.seed, &name));
                measure::positions(measure::widgets(&screens).map(|(_, place)| place))
            }
            Some(data) if self.captioned => {
                // Captions are not read, so a vocabulary of one word suffices.
                let all = WidgetScreens::open(&context.data.folder(&data.set)?, 1)?;
                outcome.remarks.extend(all.report().lines().map(str::to_owned));
                measure::positions(all.trained().iter().map(|&corners| quantized(corners)))
            }
            Some(data) => {
                let file = context.data.folder(&data.set)?.join(LABELLED_SCREENS);
                let all = LabelledScreens::read(&file)?;
                let boxes = all.screens.iter().flat_map(|screen| &screen.boxes);
                measure::positions(boxes.map(|own| quantized(own.corners)))
            }
        };
        emit(0, outcome)
    }
}
