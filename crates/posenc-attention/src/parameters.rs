//! The parameters of a model as numbers: counts, values and gradients.

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::{Gradients, Tensor, TensorData};

/// The numbers of a tensor, row by row.
pub fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().try_into_vec_as::<f32>().unwrap_or_default()
}

/// The first value of a tensor; NaN if it is empty.
pub fn number<const D: usize>(tensor: Tensor<D>) -> f64 {
    numbers(tensor).first().copied().map_or(f64::NAN, f64::from)
}

struct Collect(Vec<f32>);

impl ModuleVisitor for Collect {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.0.extend(numbers(param.val()));
    }
}

/// All parameters of a model in the order of its fields.
pub fn values<M: Module>(model: &M) -> Vec<f32> {
    let mut all = Collect(Vec::new());
    model.visit(&mut all);
    all.0
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
    struct Count(usize);
    impl ModuleVisitor for Count {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            let value = param.val();
            self.0 += if value.is_require_grad() { value.shape().num_elements() } else { 0 };
        }
    }
    let mut all = Count(0);
    model.visit(&mut all);
    all.0
}

/// Gradients in the order of [`values`]; zero for parameters without a gradient.
pub fn gradients<M: Module>(model: &M, gradients: &Gradients) -> Vec<f32> {
    struct Collect<'a>(&'a Gradients, Vec<f32>);
    impl ModuleVisitor for Collect<'_> {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            let value = param.val();
            match value.grad(self.0) {
                Some(gradient) => self.1.extend(numbers(gradient)),
                None => self.1.extend(std::iter::repeat_n(0.0, value.shape().num_elements())),
            }
        }
    }
    let mut all = Collect(gradients, Vec::new());
    model.visit(&mut all);
    all.1
}
