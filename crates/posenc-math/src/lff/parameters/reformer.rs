//! LFF Table 3: the Reformer for ImageNet-64 with twelve position encodings.

use super::{Module, ParameterCount, dense, layer_norm, learned_frequencies, modulator};

const WIDTH: u64 = 1024;
/// Width of a pixel's position encoding; the other 256 features of an input encode the color (red, green or blue).
const PIXEL: u64 = 768;
/// $|H|$ of every modulator.
const HIDDEN: u64 = 32;

/// The model without any position encoding: 60,614,912 parameters.
///
/// Six layers of width 1024 with shared queries and keys of total width 512, no attention biases;
/// the two reversible streams are normalized together (2048) before the output.
pub fn reformer_base() -> Vec<Module> {
    vec![
        Module::new("token table", &[&[256, WIDTH]]),
        Module::new(
            "attention (shared query and key, value, output; no bias)",
            &[&[3, WIDTH, 512]],
        )
        .times(6),
        dense("feed-forward", WIDTH, 4096).and(dense("", 4096, WIDTH)).times(6),
        layer_norm("layer norms", WIDTH).and(layer_norm("", WIDTH)).times(6),
        layer_norm("output norm over both streams", 2 * WIDTH),
        dense("output", 2 * WIDTH, 256),
    ]
}

fn color_table() -> Module {
    Module::new("color table", &[&[3, 256]])
}

fn row(method: &'static str, printed: f64, encoding: Vec<Module>) -> ParameterCount {
    let modules = reformer_base().into_iter().chain(encoding).collect();
    ParameterCount::new(method, modules, printed, 1)
}

/// Adds a modulator of width `features` with layer norms before its two dense layers.
fn with_modulator(mut encoding: Vec<Module>, features: u64) -> Vec<Module> {
    encoding.push(modulator(features, HIDDEN, PIXEL));
    encoding.push(layer_norm("norms of the modulator", features).and(layer_norm("", HIDDEN)));
    encoding
}

/// Pixel coordinates through a dense layer of width 32, which is not printed: the encoding called MLP.
fn plain_network() -> Vec<Module> {
    vec![color_table(), dense("plain network", 2, HIDDEN).and(dense("", HIDDEN, PIXEL))]
}

fn learned(features: u64) -> Vec<Module> {
    vec![color_table(), learned_frequencies(features, 2)]
}

/// The twelve rows of Table 3 in the order printed; all of them match.
pub fn table3() -> Vec<ParameterCount> {
    let colors = || vec![color_table()];
    let positions = Module::new("position table", &[&[64 * 64 * 3, WIDTH]]);
    let axes = Module::new("row and column tables", &[&[2, 64, 384]]);
    vec![
        // One vector of full width per sub-pixel.
        row("Embed-1D", 73.2, vec![positions]),
        row("Embed-2D", 60.7, vec![color_table(), axes]),
        // No color table: the index already encodes the color.
        row("Sine-1D", 60.6, vec![]),
        row("Sine-2D", 60.6, colors()),
        row("Transformer MD-Sine", 60.6, colors()),
        row("Transformer MD-Sine + MLP", 60.7, with_modulator(colors(), PIXEL)),
        row("MLP", 60.6, plain_network()),
        row("MLP + MLP", 60.7, with_modulator(plain_network(), PIXEL)),
        // Without a modulator, the features are the encoding, so |F| = 768.
        row("Fourier", 60.6, colors()),
        row("Fourier + MLP", 60.7, with_modulator(colors(), PIXEL)),
        row("Learnable-Fourier", 60.6, learned(PIXEL)),
        // Appendix B's |F| = 768.
        row("Learnable-Fourier + MLP", 60.7, with_modulator(learned(PIXEL), PIXEL)),
    ]
}

/// The row of Learnable-Fourier + MLP with $|F| = 384$ (Section 4.1) instead of 768; it matches, too.
pub fn narrow_features() -> ParameterCount {
    row("Learnable-Fourier + MLP", 60.7, with_modulator(learned(384), 384))
}

/// The row of Embed-1D with one vector per pixel instead of one per sub-pixel; it does not match.
pub fn table_per_pixel() -> ParameterCount {
    let positions = Module::new("position table", &[&[64 * 64, PIXEL]]);
    row("Embed-1D", 73.2, vec![color_table(), positions])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Would catch any wrong width of the model or of an encoding.
    #[test]
    fn every_row_has_its_size() {
        let base: u64 = reformer_base().iter().map(Module::count).sum();
        assert_eq!(base, 60_614_912);
        let encodings =
            [12_582_912, 49_920, 0, 768, 768, 52_320, 26_208, 77_760, 768, 52_320, 1_536, 53_088];
        let rows = table3();
        assert_eq!(rows.len(), encodings.len());
        for (row, encoding) in rows.iter().zip(encodings) {
            assert_eq!(row.total, base + encoding, "{}", row.method);
            assert!(row.matches, "{}", row.method);
        }
    }
}
