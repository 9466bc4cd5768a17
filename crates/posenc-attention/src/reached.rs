//! What a training has reached: enough to go on with the same bits.

use burn::module::Module;

use crate::optimizer::Adam;
use crate::parameters;

/// Parameters and the state of Adam after some steps.
#[derive(Debug, Clone, PartialEq)]
pub struct Reached {
    /// Steps done.
    pub steps: usize,
    /// Parameters in the order of the model's fields, then Adam's means of gradients and of squares.
    pub numbers: [Vec<f32>; 3],
}

impl Reached {
    /// Of a model and its optimizer.
    pub fn of<M: Module>(model: &M, adam: &Adam) -> Self {
        let (first, second) = adam.state(model);
        Reached { steps: adam.steps, numbers: [parameters::values(model), first, second] }
    }

    /// The model with these parameters, with `adam` in this state; `None`, and `adam` as it was, if they are not its.
    pub fn restore<M: Module>(&self, model: &M, adam: &mut Adam) -> Option<M> {
        let [values, first, second] = &self.numbers;
        let model = parameters::replaced(model.clone(), values)?;
        adam.restore(&model, self.steps, first, second).then_some(model)
    }
}
