//! The parameters of a model as numbers: counts, values and gradients.

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param, ParamId};
use burn::tensor::{Gradients, Tensor, TensorData};

/// The numbers of a tensor, row by row.
pub fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().try_into_vec_as::<f32>().unwrap_or_default()
}

/// The first value of a tensor; NaN if it is empty.
pub fn number<const D: usize>(tensor: Tensor<D>) -> f64 {
    numbers(tensor).first().copied().map_or(f64::NAN, f64::from)
}

/// A parameter of any rank.
#[derive(Debug)]
pub struct Parameter {
    pub id: ParamId,
    pub shape: Vec<usize>,
    pub is_trained: bool,
    pub values: Tensor<1>,
    pub gradient: Option<Tensor<1>>,
}

impl Parameter {
    pub fn count(&self) -> usize {
        self.shape.iter().product()
    }
}

struct Visitor<'a, F> {
    gradients: Option<&'a Gradients>,
    each: F,
}

impl<F: FnMut(Parameter)> ModuleVisitor for Visitor<'_, F> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let values = param.val();
        let shape = values.dims().to_vec();
        let count = shape.iter().product::<usize>();
        let gradient = self.gradients.and_then(|all| values.grad(all));
        (self.each)(Parameter {
            id: param.id,
            shape,
            is_trained: values.is_require_grad(),
            values: values.reshape([count]),
            gradient: gradient.map(|gradient| gradient.reshape([count])),
        });
    }
}

/// Calls a function for each parameter of a model in the order of its fields, with its gradient if there are any.
pub fn visit<M: Module>(model: &M, gradients: Option<&Gradients>, each: impl FnMut(Parameter)) {
    model.visit(&mut Visitor { gradients, each });
}

/// All parameters of a model in the order of its fields.
pub fn values<M: Module>(model: &M) -> Vec<f32> {
    let mut all = Vec::new();
    visit(model, None, |own| all.extend(numbers(own.values)));
    all
}

struct Replace<'a>(&'a [f32]);

impl ModuleMapper for Replace<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let (id, old, mapper) = param.consume();
        let (own, rest) = self.0.split_at(old.shape().num_elements().min(self.0.len()));
        self.0 = rest;
        let data = TensorData::new(own.to_vec(), old.dims());
        let new = Tensor::from_data(data, &old.device());
        // Frozen parameters stay frozen.
        let new = if old.is_require_grad() { new.require_grad() } else { new };
        Param::from_mapped_value(id, new, mapper)
    }
}

/// The model with other parameters; `None` if their number does not match the model.
pub fn replaced<M: Module>(model: M, values: &[f32]) -> Option<M> {
    (model.num_params() == values.len()).then(|| model.map(&mut Replace(values)))
}

/// Number of parameters of a model, including frozen ones.
pub fn count<M: Module>(model: &M) -> usize {
    model.num_params()
}

pub fn count_trained<M: Module>(model: &M) -> usize {
    let mut count = 0;
    visit(model, None, |own| count += if own.is_trained { own.count() } else { 0 });
    count
}

/// Gradients in the order of [`values`]; zero for parameters without a gradient.
pub fn gradients<M: Module>(model: &M, gradients: &Gradients) -> Vec<f32> {
    let mut all = Vec::new();
    visit(model, Some(gradients), |own| {
        let count = own.count();
        all.extend(own.gradient.map_or_else(|| vec![0.0; count], numbers));
    });
    all
}
