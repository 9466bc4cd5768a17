//! Generates captions by greedy or beam search.

use burn::module::Module as _;
use burn::tensor::{Device, activation};

use super::{Batch, Captioner, ReadWords, ScreenInput, Sizes};
use crate::caption::{Search, search};
use crate::loss::integers;

const CHUNK: usize = 64;

/// Captions of all widgets, screen by screen; `None` if the screens do not fit the model.
pub fn captions(
    model: &Captioner,
    sizes: &Sizes,
    screens: &[ScreenInput],
    how: Search,
    device: &Device,
) -> Option<Vec<Vec<usize>>> {
    let model = model.clone().no_grad();
    let mut all = Vec::new();
    for chunk in screens.chunks(CHUNK) {
        let memory = model.memory(&Batch::new(chunk, sizes, device)?, None);
        all.extend(search(memory.dims()[0], how, device, &mut |rows, said| {
            let [count, length] = said.dims();
            let memory = memory.clone().select(0, rows);
            let last = integers((1..=count).map(|beam| beam * length - 1).collect(), device);
            let scores = model.scores(&memory, &ReadWords::alike(said));
            activation::log_softmax(scores.select(0, last), 1)
        }));
    }
    Some(all)
}
