//! LFF Table 4: the detector (DETR with ResNet-50) with five position encodings.

use super::{Module, ParameterCount, dense, layer_norm, learned_frequencies, modulator};

const WIDTH: u64 = 256;
const FEED_FORWARD: u64 = 2048;
/// Blocks per stage of ResNet-50, and the inner width of each stage.
const STAGES: [(u64, u64); 4] = [(3, 64), (4, 128), (6, 256), (3, 512)];

/// Which parameters of the network a count includes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
pub enum DetrConvention {
    /// Weights that are trained: the stem and the first stage are frozen, and so is batch norm.
    Trained,
    /// All weights, without batch norm.
    Weights,
    /// All weights, and the scale and bias of batch norm. The only convention that fits every row of Table 4.
    WithScaleAndBias,
    /// All weights, and the scale, bias and running statistics of batch norm.
    WithStatistics,
}

/// Convolutions of ResNet-50 without classifier, stage by stage; no biases.
fn convolutions() -> Vec<Module> {
    let mut modules = vec![Module::new("stem", &[&[7, 7, 3, 64]])];
    let names = ["stage 1", "stage 2", "stage 3", "stage 4"];
    let mut inputs = 64;
    for ((blocks, inner), name) in STAGES.into_iter().zip(names) {
        let outputs = 4 * inner;
        let first = Module::new(
            name,
            &[&[inputs, inner], &[3, 3, inner, inner], &[inner, outputs], &[inputs, outputs]],
        );
        let rest = [vec![outputs, inner], vec![3, 3, inner, inner], vec![inner, outputs]];
        let others = (1..blocks).flat_map(|_| rest.clone()).collect();
        modules.push(first.and(Module { name, repeat: 1, tensors: others }));
        inputs = outputs;
    }
    modules
}

/// Two parameters for every normalized channel.
fn batch_norm(name: &'static str) -> Module {
    let mut channels = vec![vec![2, 64]];
    for (blocks, inner) in STAGES {
        // Every block normalizes two inner layers and its output; the first one also its shortcut.
        channels.extend([vec![2, blocks, 6 * inner], vec![2, 4 * inner]]);
    }
    Module { name, repeat: 1, tensors: channels }
}

/// Queries, keys, values and output of one attention, with biases.
fn attention() -> Module {
    Module::new("", &[&[4, WIDTH, WIDTH], &[4, WIDTH]])
}

fn feed_forward() -> Module {
    dense("", WIDTH, FEED_FORWARD).and(dense("", FEED_FORWARD, WIDTH))
}

fn named(name: &'static str, parts: Vec<Module>) -> Module {
    parts.into_iter().fold(Module::new(name, &[]), Module::and)
}

fn transformer_and_heads() -> Vec<Module> {
    let norm = || layer_norm("", WIDTH);
    let encoder = vec![attention(), feed_forward(), norm(), norm()];
    let decoder = vec![attention(), attention(), feed_forward(), norm(), norm(), norm()];
    let boxes = vec![dense("", WIDTH, WIDTH), dense("", WIDTH, WIDTH), dense("", WIDTH, 4)];
    vec![
        dense("input projection", 2048, WIDTH),
        named("encoder layers", encoder).times(6),
        named("decoder layers", decoder).times(6),
        layer_norm("final norm", WIDTH),
        Module::new("object queries", &[&[100, WIDTH]]),
        dense("class head", WIDTH, 92),
        named("box head", boxes),
    ]
}

fn detr_base(convention: DetrConvention) -> Vec<Module> {
    let mut modules = convolutions();
    if convention == DetrConvention::Trained {
        modules.drain(..2);
    }
    if convention >= DetrConvention::WithScaleAndBias {
        modules.push(batch_norm("batch norm, scale and bias"));
    }
    if convention == DetrConvention::WithStatistics {
        modules.push(batch_norm("batch norm, running statistics"));
    }
    modules.extend(transformer_and_heads());
    modules
}

/// Size of the detector without position parameters under each counting convention.
pub fn detr_conventions() -> [(DetrConvention, u64); 4] {
    [
        DetrConvention::Trained,
        DetrConvention::Weights,
        DetrConvention::WithScaleAndBias,
        DetrConvention::WithStatistics,
    ]
    .map(|convention| (convention, detr_base(convention).iter().map(Module::count).sum()))
}

fn row(method: &'static str, convention: DetrConvention, encoding: Vec<Module>) -> ParameterCount {
    let modules = detr_base(convention).into_iter().chain(encoding).collect();
    ParameterCount::new(method, modules, 41.6, 1)
}

fn plain_network() -> Vec<Module> {
    vec![dense("plain network", 2, 256).and(dense("", 256, WIDTH))]
}

/// The detector with learned Fourier features of the given widths ($G = 1$, $M = 2$, no norms).
pub fn detr_with_modulator(feature_width: u64, hidden_width: u64) -> ParameterCount {
    let frequencies = learned_frequencies(feature_width, 2);
    let encoding = vec![frequencies, modulator(feature_width, hidden_width, WIDTH)];
    row("Learnable-Fourier + MLP", DetrConvention::WithScaleAndBias, encoding)
}

/// The five rows of Table 4 in the order printed; all match if batch norm's scale and bias count.
pub fn table4() -> Vec<ParameterCount> {
    let counted = DetrConvention::WithScaleAndBias;
    let tables = vec![Module::new("row and column tables", &[&[2, 50, 128]])];
    vec![
        row("Embed-2D", counted, tables),
        row("Normalized Sine-2D", counted, vec![]),
        row("Unnormalized Sine-2D", counted, vec![]),
        row("MLP", counted, plain_network()),
        // Neither |F| nor |H| is printed; 256 and 32 are our choice.
        detr_with_modulator(256, 32),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Would catch a wrong layer anywhere in the detector.
    #[test]
    fn base_under_each_convention() {
        let sizes = detr_conventions().map(|(_, size)| size);
        assert_eq!(sizes, [41_302_368, 41_524_768, 41_577_888, 41_631_008]);
        let convolutions: u64 = convolutions().iter().map(Module::count).sum();
        assert_eq!(convolutions, 23_454_912);
        assert_eq!(batch_norm("").count(), 53_120);
        let modules = transformer_and_heads();
        let size = |name: &str| modules.iter().find(|m| m.name == name).map(Module::count);
        assert_eq!(size("encoder layers"), Some(6 * 1_315_072));
        assert_eq!(size("decoder layers"), Some(6 * 1_578_752));
        assert_eq!(size("box head"), Some(132_612));
        assert_eq!(size("class head"), Some(23_644));
        assert_eq!(size("input projection"), Some(524_544));
    }

    /// Would catch a wrong encoding, or a match that is always true.
    #[test]
    fn rows_match_under_one_convention_only() {
        let totals: Vec<u64> = table4().iter().map(|row| row.total).collect();
        assert_eq!(totals, [41_590_688, 41_577_888, 41_577_888, 41_644_448, 41_594_816]);
        assert!(table4().iter().all(|row| row.matches));
        let others =
            [DetrConvention::Trained, DetrConvention::Weights, DetrConvention::WithStatistics];
        for convention in others {
            let fits = [vec![], plain_network()]
                .into_iter()
                .all(|encoding| row("", convention, encoding).matches);
            assert!(!fits, "{convention:?}");
        }
        assert_eq!(detr_with_modulator(256, 128).total, 41_644_064);
        assert!(detr_with_modulator(256, 128).matches);
        assert_eq!(detr_with_modulator(256, 256).total, 41_709_728);
        assert!(!detr_with_modulator(256, 256).matches);
    }
}
