//! Entropies of a pixel given its neighbors.

use anyhow::Result;
use posenc_experiments::record::Value;
use posenc_math::lff::information::pixel_entropies;

use super::PixelEntropies;
use crate::image_model::run::GrayImages;
use posenc_harness::protocol::{Context, Emit, Protocol};

impl Protocol for PixelEntropies {
    fn run(&self, context: &Context<'_>, emit: &mut Emit<'_>) -> Result<()> {
        let images = GrayImages::new(context, self.side, self.levels, self.reduce)?;
        let mut rng = context.stream("images");
        let drawn: Vec<Vec<u8>> = (0..self.images).map(|_| images.image(true, &mut rng)).collect();
        let e = pixel_entropies(drawn.iter().map(Vec::as_slice), self.side, self.levels);
        let named = [
            ("uniform", (self.levels as f64).log2()),
            ("alone", e.alone),
            ("given_left", e.given_left),
            ("given_left_and_upper", e.given_left_and_upper),
        ];
        let values = named.map(|(metric, bits)| Value::new(metric, bits).unit("bits/dim"));
        emit(0, Vec::from(values).into())
    }
}
