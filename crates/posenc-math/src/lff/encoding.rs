//! Position encodings of attention models: features of a position, and learned layers on top.
//!
//! The M coordinates of a position are split into G groups of M/G. Each group has features f. A *modulator*,
//! $y = \max(0, f W_1 + b_1) W_2 + b_2$, maps them to the group's D/G numbers of the encoding. Without a modulator, the features
//! are the encoding (LFF Algorithm 1).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Fault, check_ranges, check_shares};

/// The kind of features.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Features {
    /// No position encoding: the encoding of every position is zero.
    None,
    /// One learned embedding table per coordinate; their rows are concatenated, or added with `summed`. With `flat`, one table for
    /// all positions.
    Embed,
    /// Sines and cosines per coordinate, concatenated (LFF Eq. 1). With `flat`, sines and cosines of the index in reading order.
    Sine,
    /// Sines and cosines of the sum of the coordinates: one reading of "Transformer MD-Sine".
    SummedSine,
    /// Sines and cosines of $\omega_i x \pm \omega_j y$ on a grid of frequencies: the other reading of
    /// "Transformer MD-Sine".
    PairedSine,
    /// An MLP on the coordinates: a dense layer, a ReLU and a dense layer.
    Network,
    /// $|F|^{-1/2}\,[\cos xW_r^T \,\|\, \sin xW_r^T]$ with entries of $W_r$ from $N(0, \gamma^{-2})$ (LFF Eq. 2, 3).
    Fourier,
}

/// Coordinates of a patch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Coordinates {
    /// Row and column, counted from 1, divided by those of the image without padding, times 2π.
    #[default]
    Normalized,
    /// Row and column, counted from 1; for `embed` from 0.
    Cells,
}

/// Two dense layers on top of the features, with a ReLU between them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Modulator {
    /// $|H|$, units of the hidden layer.
    pub hidden: usize,
    /// Whether a layer norm precedes each dense layer.
    #[serde(default)]
    pub layer_norm: bool,
    /// Dropout rate of the hidden layer, from 0 to below 1.
    #[serde(default)]
    pub dropout: f64,
}

/// A single layer on top of the features, instead of a modulator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Layer {
    /// A dense layer.
    Linear,
    /// A layer norm with a trained gain and shift per feature.
    LayerNorm,
    /// One trained factor, initially 1.
    Gain,
}

/// A position encoding.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Encoding {
    /// The kind of features.
    pub features: Features,
    /// Whether the position is a single coordinate, its index in reading order.
    #[serde(default, skip_serializing_if = "is_false")]
    pub flat: bool,
    /// Number of groups G into which the coordinates are split.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub groups: usize,
    /// Features per group, $|F|$ of `fourier`; the width of the model divided by G if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub width: Option<usize>,
    /// `embed`: whether tables are initialized uniformly on [0, 1), as in DETR, instead of normally with standard deviation 1.
    #[serde(default, skip_serializing_if = "is_false")]
    pub uniform: bool,
    /// `embed`: whether tables are as wide as the encoding and their rows are added instead of concatenated.
    #[serde(default, skip_serializing_if = "is_false")]
    pub summed: bool,
    /// `embed` with `summed`: whether the rows of each table go through a dense layer of its own before they are added, as in
    /// the public captioner. The standard deviation of initial normal tables is then 0.1.
    #[serde(default, skip_serializing_if = "is_false")]
    pub projected: bool,
    /// `fourier`: length scale $\gamma$, in the unit of the coordinates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gamma: Option<f64>,
    /// `fourier`: whether $W_r$ is trained.
    #[serde(default, skip_serializing_if = "is_false")]
    pub learned: bool,
    /// Factor on the features (default 1). $\sqrt{|F|}$ cancels the printed $|F|^{-1/2}$ of `fourier`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale: Option<f64>,
    /// `sine`, `summed-sine`, `paired-sine`: largest wavelength divided by $2\pi$ (default 10000).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// `network`: units of its hidden layer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hidden: Option<usize>,
    /// Two dense layers on top of the features.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modulator: Option<Modulator>,
    /// A single layer on top of the features, instead of a modulator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layer: Option<Layer>,
}

fn one() -> usize {
    1
}

fn is_one(value: &usize) -> bool {
    *value == 1
}

fn is_false(value: &bool) -> bool {
    !*value
}

impl Encoding {
    /// Features per group in a model of width `width`.
    pub fn feature_width(&self, width: usize) -> usize {
        self.width.unwrap_or(width / self.groups.max(1))
    }

    /// Checks the encoding for positions of `axes` coordinates in a model of width `width`.
    pub fn check(&self, axes: usize, width: usize) -> Result<(), Fault> {
        let wrong = |key, message: String| Err((key, message));
        let axes = if self.flat { 1 } else { axes };
        let belongs = |key, given: bool, of: &[Features], to: &str| {
            if given && !of.contains(&self.features) {
                return Err((key, format!("only allowed with {to}")));
            }
            Ok(())
        };
        belongs("gamma", self.gamma.is_some(), &[Features::Fourier], "`features: fourier`")?;
        belongs("summed", self.summed, &[Features::Embed], "`features: embed`")?;
        if self.projected && !self.summed {
            return Err(("projected", "only allowed with `summed: true`".into()));
        }
        belongs("uniform", self.uniform, &[Features::Embed], "`features: embed`")?;
        belongs("learned", self.learned, &[Features::Fourier], "`features: fourier`")?;
        belongs("hidden", self.hidden.is_some(), &[Features::Network], "`features: network`")?;
        let sines = [Features::Sine, Features::SummedSine, Features::PairedSine];
        belongs("temperature", self.temperature.is_some(), &sines, "sine features")?;
        if self.features == Features::None {
            if *self != Encoding::none() {
                return wrong("features", "`none` takes no other keys; remove them".into());
            }
            return Ok(());
        }
        let groups = self.groups;
        if !axes.is_multiple_of(groups) || !width.is_multiple_of(groups) {
            return wrong(
                "groups",
                format!("{groups} must divide both the {axes} coordinates and the width {width}"),
            );
        }
        let f = self.feature_width(width);
        check_ranges([("width", f, 1, 65_536)])?;
        if self.modulator.is_some() && self.layer.is_some() {
            return wrong("layer", "not allowed with `modulator`; remove one of them".into());
        }
        let is_dense = self.modulator.is_some() || self.layer == Some(Layer::Linear);
        if !is_dense && f * groups != width {
            return wrong(
                "width",
                format!(
                    "{groups} × {f} features without a dense layer must equal the model's width of {width}"
                ),
            );
        }
        let m = axes / groups;
        let multiple = match self.features {
            Features::None | Features::Network => 1,
            Features::Embed if self.summed => 1,
            Features::Embed => m,
            Features::Fourier | Features::SummedSine => 2,
            Features::Sine => 2 * m,
            Features::PairedSine => 4,
        };
        if !f.is_multiple_of(multiple) {
            return wrong("width", format!("{f} is not allowed; allowed: multiples of {multiple}"));
        }
        if self.features == Features::PairedSine {
            let side = ((f / 4) as f64).sqrt().round() as usize;
            if m != 2 || 4 * side * side != f {
                let message = "`paired-sine` needs two coordinates per group and a width of 4·n²";
                return wrong("features", message.into());
            }
        }
        if self.features == Features::Embed && groups > 1 {
            return wrong("groups", "`embed` does not support groups; allowed: 1".into());
        }
        let positive = |key, value: Option<f64>| match value {
            Some(v) if !(v.is_finite() && v > 0.0) => {
                Err((key, format!("{v} is not allowed; allowed: numbers above 0")))
            }
            _ => Ok(()),
        };
        positive("gamma", self.gamma)?;
        positive("scale", self.scale)?;
        positive("temperature", self.temperature)?;
        if self.features == Features::Fourier && self.gamma.is_none() {
            return wrong("gamma", "missing; `fourier` needs a length scale".into());
        }
        match (self.features, self.hidden) {
            (Features::Network, None) => {
                return wrong("hidden", "missing; `network` needs a number of hidden units".into());
            }
            (_, hidden) => check_ranges(hidden.map(|h| ("hidden", h, 1, 65_536)))?,
        }
        if let Some(modulator) = &self.modulator {
            let inside = |(key, message): Fault| ("modulator", format!("{key}: {message}"));
            check_ranges([("hidden", modulator.hidden, 1, 65_536)]).map_err(inside)?;
            check_shares(&[("dropout", modulator.dropout)]).map_err(inside)?;
        }
        Ok(())
    }

    pub fn none() -> Self {
        Encoding {
            features: Features::None,
            flat: false,
            groups: 1,
            width: None,
            uniform: false,
            summed: false,
            projected: false,
            gamma: None,
            learned: false,
            scale: None,
            temperature: None,
            hidden: None,
            modulator: None,
            layer: None,
        }
    }

    /// Number of trained parameters, for positions on a grid of the given sides in a model of width `width`.
    pub fn parameter_count(&self, sides: &[usize], width: usize) -> usize {
        let f = self.feature_width(width);
        let axes = if self.flat { 1 } else { sides.len() };
        let m = axes / self.groups.max(1);
        let dense = |inputs: usize, outputs: usize| inputs * outputs + outputs;
        let features = match self.features {
            Features::Embed => {
                let width = if self.summed { f } else { f / axes.max(1) };
                let projections = if self.projected { axes * dense(width, width) } else { 0 };
                let rows: usize =
                    if self.flat { sides.iter().product() } else { sides.iter().sum() };
                rows * width + projections
            }
            Features::Fourier if self.learned => f / 2 * m,
            Features::Network => {
                let hidden = self.hidden.unwrap_or(0);
                dense(m, hidden) + dense(hidden, f)
            }
            _ => 0,
        };
        let modulator = self.modulator.as_ref().map_or(0, |modulator| {
            let h = modulator.hidden;
            let norms = if modulator.layer_norm { 2 * (f + h) } else { 0 };
            dense(f, h) + dense(h, width / self.groups.max(1)) + norms
        });
        let layer = match self.layer {
            Some(Layer::Linear) => dense(f, width / self.groups.max(1)),
            Some(Layer::LayerNorm) => 2 * f,
            Some(Layer::Gain) => 1,
            None => 0,
        };
        features + modulator + layer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(features: Features) -> Encoding {
        Encoding { features, ..Encoding::none() }
    }

    fn fourier(width: usize, groups: usize, learned: bool) -> Encoding {
        let (width, gamma) = (Some(width), Some(1.0));
        Encoding { groups, width, gamma, learned, ..of(Features::Fourier) }
    }

    fn with(mut encoding: Encoding, hidden: usize, layer_norm: bool) -> Encoding {
        encoding.modulator = Some(Modulator { hidden, layer_norm, dropout: 0.1 });
        encoding
    }

    fn topped(encoding: Encoding, layer: Layer) -> Encoding {
        Encoding { layer: Some(layer), ..encoding }
    }

    /// Catches any term of a count that is wrong or counted per group.
    #[test]
    fn parameter_counts_of_the_papers_settings() {
        let image = [64, 64];
        let boxes = [100; 4];
        for (encoding, sides, width, count) in [
            (with(fourier(768, 1, true), 32, true), &image[..], 768, 52_320),
            (with(fourier(768, 1, true), 32, false), &image, 768, 50_720),
            (with(fourier(384, 1, true), 32, true), &image, 768, 38_880),
            (with(fourier(384, 1, true), 32, false), &image, 768, 38_048),
            (fourier(768, 1, true), &image, 768, 768),
            (fourier(768, 1, false), &image, 768, 0),
            (with(fourier(128, 1, true), 128, false), &boxes, 128, 33_280),
            (with(fourier(64, 2, true), 64, false), &boxes, 128, 8_384),
            (with(fourier(32, 4, true), 32, false), &boxes, 128, 2_128),
            (fourier(64, 2, true), &boxes, 128, 64),
            (of(Features::Embed), &image, 768, 49_152),
            (Encoding { flat: true, ..of(Features::Embed) }, &[64, 64, 3], 1024, 12_582_912),
            (of(Features::Embed), &[50, 50], 256, 12_800),
            (Encoding { summed: true, ..of(Features::Embed) }, &boxes, 128, 51_200),
            (
                Encoding { summed: true, projected: true, ..of(Features::Embed) },
                &boxes,
                128,
                117_248,
            ),
            (
                Encoding { flat: true, summed: true, projected: true, ..of(Features::Embed) },
                &[8, 8],
                16,
                1_296,
            ),
            (Encoding { hidden: Some(32), ..of(Features::Network) }, &image, 768, 25_440),
            (topped(fourier(32, 2, true), Layer::Linear), &boxes, 128, 32 + 33 * 64),
            (topped(fourier(64, 2, true), Layer::LayerNorm), &boxes, 128, 64 + 128),
            (topped(of(Features::Sine), Layer::Gain), &image, 64, 1),
        ] {
            encoding.check(sides.len(), width).unwrap();
            assert_eq!(encoding.parameter_count(sides, width), count, "{encoding:?}");
        }
    }

    #[test]
    fn errors_of_invalid_encodings_name_the_key() {
        let key = |encoding: &Encoding| encoding.check(2, 64).unwrap_err().0;
        assert_eq!(key(&fourier(64, 3, true)), "groups");
        assert_eq!(key(&fourier(32, 1, true)), "width");
        assert_eq!(key(&with(fourier(33, 1, true), 8, false)), "width");
        assert_eq!(key(&Encoding { gamma: None, ..fourier(64, 1, true) }), "gamma");
        assert_eq!(key(&Encoding { gamma: Some(f64::NAN), ..fourier(64, 1, true) }), "gamma");
        assert_eq!(key(&with(fourier(64, 1, true), 0, false)), "modulator");
        assert_eq!(key(&topped(with(fourier(64, 1, true), 8, false), Layer::Linear)), "layer");
        assert_eq!(key(&topped(fourier(32, 1, true), Layer::Gain)), "width");
        let sine = of(Features::Sine);
        assert_eq!(key(&Encoding { learned: true, ..sine.clone() }), "learned");
        assert_eq!(key(&Encoding { summed: true, ..sine.clone() }), "summed");
        assert_eq!(key(&Encoding { hidden: Some(3), ..sine.clone() }), "hidden");
        assert_eq!(key(&Encoding { projected: true, ..sine.clone() }), "projected");
        assert_eq!(key(&of(Features::Network)), "hidden");
        assert_eq!(key(&Encoding { flat: true, ..Encoding::none() }), "features");
        sine.check(2, 64).unwrap();
        let paired = of(Features::PairedSine);
        paired.check(2, 64).unwrap();
        assert_eq!(paired.check(2, 80).unwrap_err().0, "features");
    }
}
