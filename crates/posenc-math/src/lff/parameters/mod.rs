//! Parameter counts of the models of LFF Tables 3, 4 and 5, computed from their architectures.
//!
//! A model is a list of [`Module`]s, each a multiple of a sum of products of widths; its size is their sum. A printed size $p$
//! with $k$ decimals (in millions) matches if the sum rounds to it. The paper's code is not public. Details that the paper omits
//! come from the public code of the three base models (Trax Reformer, DETR, widget captioning), and each table lists the
//! choices that remain.

mod detr;
mod reformer;
mod widget;

pub use detr::{DetrConvention, detr_conventions, detr_with_modulator, table4};
pub use reformer::{narrow_features, reformer_base, table_per_pixel, table3};
pub use widget::{
    HiddenWidthSearch, hidden_width_search, table5, table5_on_public_code, table5_public_code,
};

/// A part of a model: `repeat` × the sum of products of its tensors' dimensions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Module {
    pub name: &'static str,
    /// How often the part occurs.
    pub repeat: u64,
    /// One product of dimensions per tensor.
    pub tensors: Vec<Vec<u64>>,
}

impl Module {
    /// A part that occurs once.
    pub fn new(name: &'static str, tensors: &[&[u64]]) -> Self {
        Self { name, repeat: 1, tensors: tensors.iter().map(|t| t.to_vec()).collect() }
    }

    /// The same part, `repeat` times.
    pub fn times(mut self, repeat: u64) -> Self {
        self.repeat = repeat;
        self
    }

    /// Appends the tensors of another part.
    fn and(mut self, other: Module) -> Self {
        self.tensors.extend(other.tensors);
        self
    }

    pub fn count(&self) -> u64 {
        self.repeat * self.tensors.iter().map(|t| t.iter().product::<u64>()).sum::<u64>()
    }

    /// The arithmetic behind [`Module::count`], such as `6 × (3·1024·512)`.
    pub fn formula(&self) -> String {
        let products: Vec<String> = self
            .tensors
            .iter()
            .map(|t| t.iter().map(u64::to_string).collect::<Vec<_>>().join("·"))
            .collect();
        let sum = if products.is_empty() { "0".to_owned() } else { products.join(" + ") };
        match self.repeat {
            1 => sum,
            n => format!("{n} × ({sum})"),
        }
    }
}

/// A dense layer with bias: $ab + b$.
pub fn dense(name: &'static str, inputs: u64, outputs: u64) -> Module {
    Module::new(name, &[&[inputs, outputs], &[outputs]])
}

/// A layer norm with scale and bias: $2w$.
pub fn layer_norm(name: &'static str, width: u64) -> Module {
    Module::new(name, &[&[2, width]])
}

/// The modulator of Algorithm 1, steps 2 and 3: $|F||H| + |H| + |H|D/G + D/G$.
pub fn modulator(feature_width: u64, hidden_width: u64, group_width: u64) -> Module {
    dense("modulator", feature_width, hidden_width).and(dense("", hidden_width, group_width))
}

/// The frequencies $W_r$ when they are learned: $|F|/2 \cdot M$.
pub fn learned_frequencies(feature_width: u64, coordinates: u64) -> Module {
    Module::new("frequencies", &[&[feature_width / 2, coordinates]])
}

/// One row of a parameter table: the model, its size, and whether it rounds to the printed size.
#[derive(Debug, Clone)]
pub struct ParameterCount {
    /// The method, as printed.
    pub method: &'static str,
    /// The parts, in the order of the network; the position encoding last.
    pub modules: Vec<Module>,
    pub total: u64,
    /// The printed size in millions.
    pub printed: f64,
    /// The total in millions, rounded to the decimals of the table.
    pub rounded: f64,
    pub matches: bool,
}

impl ParameterCount {
    fn new(method: &'static str, modules: Vec<Module>, printed: f64, decimals: i32) -> Self {
        let total = modules.iter().map(Module::count).sum();
        let unit = 10f64.powi(decimals);
        let rounded = (total as f64 / 1e6 * unit).round() / unit;
        // Both numbers have few decimals; the tolerance of a thousandth of the last decimal absorbs rounding errors.
        let matches = (rounded - printed).abs() < 10f64.powi(-decimals - 3);
        Self { method, modules, total, printed, rounded, matches }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a formula that differs from the count.
    #[test]
    fn formula_is_the_count() {
        let rows =
            table3().into_iter().chain(table4()).chain(table5()).chain([table5_public_code()]);
        for row in rows {
            for module in &row.modules {
                let text = module.formula().replace(['·', '×'], "*");
                let value = exmex::eval_str::<f64>(&text).unwrap();
                assert_eq!(value, module.count() as f64, "{}: {text}", module.name);
            }
        }
    }

    /// Would catch a printed size that drifts from the published table.
    #[test]
    fn printed_sizes_are_the_published_ones() {
        let csv = include_str!("../../../../../data/papers/lff.csv");
        for (item, rows) in [("table3", table3()), ("table4", table4()), ("table5", table5())] {
            let published: Vec<(&str, f64)> = csv
                .lines()
                .map(|line| line.split(',').collect::<Vec<_>>())
                .filter(|f| f[0] == item && f[4] == "params")
                .map(|f| (f[2], f[6].parse().unwrap()))
                .collect();
            let ours: Vec<(&str, f64)> = rows
                .iter()
                .filter(|row| !row.method.contains("|H|"))
                .map(|row| (row.method, row.printed))
                .collect();
            assert_eq!(ours, published);
        }
    }
}
