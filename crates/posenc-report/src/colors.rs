//! One color per embedder, the same in every figure of every paper.
//!
//! Hues are given in OKLCH (lightness, chroma, hue angle), in which equal steps of lightness look
//! equal: the variants of one embedder, such as a sweep over σ, are shades of its hue from light
//! to dark. What has no embedder is gray.

use posenc_math::embedder::registry;

/// An sRGB color.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rgb(pub u8, pub u8, pub u8);

/// What all methods share, such as a target.
pub const REFERENCE: Rgb = Rgb(31, 35, 40);

/// A family of colors: an embedder, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// Gaussian embedder.
    Gaussian,
    /// Random Fourier features.
    Rff,
    /// Triangle.
    Triangle,
    /// Rectangle.
    Rectangle,
    /// Impulse.
    Impulse,
    /// Sine.
    Sine,
    /// Square wave.
    Square,
    /// Independent normal numbers.
    Random,
    /// Sines and cosines of linearly spaced frequencies.
    LinF,
    /// Sines and cosines of logarithmically spaced frequencies.
    LogF,
    /// One sine and one cosine.
    Basic,
    /// A formula from an experiment file.
    Formula,
    /// The coordinate itself.
    Identity,
    /// Learned tables.
    Table,
    /// A network on coordinates.
    Network,
    /// Sines of sums of coordinates.
    SummedSine,
    /// A kind that was added without a color of its own, by its place among these.
    Added(u8),
    /// No embedder.
    Neutral,
}

use Family::*;

/// Lightness, chroma and hue (degrees) of each family.
const fn base(family: Family) -> (f64, f64, f64) {
    match family {
        Gaussian => (0.53, 0.155, 255.0),
        Rff => (0.66, 0.175, 50.0),
        Triangle => (0.58, 0.155, 146.0),
        Rectangle => (0.68, 0.115, 200.0),
        Impulse => (0.43, 0.075, 55.0),
        Sine => (0.47, 0.180, 300.0),
        Square => (0.66, 0.195, 350.0),
        Random => (0.60, 0.125, 112.0),
        LinF => (0.54, 0.205, 25.0),
        LogF => (0.76, 0.150, 85.0),
        Basic => (0.66, 0.130, 285.0),
        Formula => (0.44, 0.090, 172.0),
        Identity => (0.54, 0.055, 235.0),
        Table => (0.56, 0.140, 250.0),
        Network => (0.58, 0.145, 150.0),
        SummedSine => (0.62, 0.190, 355.0),
        // Steps of the golden angle, in dark and in light: far from each other, however many there are.
        Added(place) => {
            let light = if place % 2 == 0 { 0.38 } else { 0.84 };
            (light, 0.120, 320.0 + 137.508 * (place % 8) as f64)
        }
        Neutral => (0.48, 0.0, 0.0),
    }
}

/// Kinds of embedders.
const KINDS: &[(&str, Family)] = &[
    ("impulse", Impulse),
    ("rectangle", Rectangle),
    ("triangle", Triangle),
    ("sine", Sine),
    ("square", Square),
    ("gaussian", Gaussian),
    ("random", Random),
    ("linf", LinF),
    ("logf", LogF),
    ("rff", Rff),
    ("basic", Basic),
    ("identity", Identity),
    ("formula", Formula),
];

/// Beginnings of method names, in lower case; the first that fits decides.
const NAMES: &[(&str, Family)] = &[
    ("gau", Gaussian),
    ("rff", Rff),
    ("learnable-fourier", Rff),
    ("fourier", Rff),
    ("random fourier", Rff),
    ("tri", Triangle),
    ("rect", Rectangle),
    ("imp", Impulse),
    ("sin", Sine),
    ("square", Square),
    ("rand", Random),
    ("linf", LinF),
    ("logf", LogF),
    ("basic", Basic),
    ("formula", Formula),
    ("identity", Identity),
    ("none", Identity),
    ("raw", Identity),
    ("embed-", Table),
    ("mlp", Network),
    ("transformer md-sine", SummedSine),
];

/// The family of an embedder kind or, where an experiment names no embedder, of a method's name.
pub fn family(embedder_kind: Option<&str>, method: &str) -> Family {
    if let Some(kind) = embedder_kind.and_then(of_kind) {
        return kind;
    }
    let method = method.to_lowercase();
    NAMES.iter().find(|(start, _)| method.starts_with(start)).map_or(Neutral, |(_, f)| *f)
}

fn of_kind(name: &str) -> Option<Family> {
    let known = |name: &str| KINDS.iter().find(|(kind, _)| *kind == name).map(|(_, f)| *f);
    let mut added = registry().iter().filter(|k| known(k.name).is_none());
    // There is no end to places: the hue turns on.
    known(name).or_else(|| added.position(|k| k.name == name).map(|i| Added((i % 256) as u8)))
}

/// Shade number `index` of `count` in a family: its own color for one, light to dark for several.
pub fn shade(family: Family, index: usize, count: usize) -> Rgb {
    let (own, chroma, hue) = base(family);
    if count <= 1 {
        return oklch(own, chroma, hue);
    }
    let share = index.min(count - 1) as f64 / (count - 1) as f64;
    let (light, dark) = if chroma == 0.0 { (0.70, 0.20) } else { (0.79, 0.34) };
    // Few shades stay near the middle: two of them need not be nearly white and nearly black.
    let reach = [0.0, 0.0, 0.55, 0.75, 0.9].get(count).copied().unwrap_or(1.0);
    let middle = 0.5 * (light + dark);
    oklch(middle + (dark - light) * (share - 0.5) * reach, chroma, hue)
}

/// OKLCH to sRGB, with the chroma lowered until the color exists.
fn oklch(lightness: f64, chroma: f64, hue: f64) -> Rgb {
    let (sin, cos) = hue.to_radians().sin_cos();
    let mut chroma = chroma;
    loop {
        let linear = oklab_to_linear(lightness, chroma * cos, chroma * sin);
        let inside = linear.iter().all(|v| (-1e-4..=1.0 + 1e-4).contains(v));
        if inside || chroma <= 0.0 {
            let [r, g, b] = linear.map(gamma);
            return Rgb(r, g, b);
        }
        chroma -= 0.005;
    }
}

/// Björn Ottosson's OKLab, to linear sRGB.
fn oklab_to_linear(lightness: f64, a: f64, b: f64) -> [f64; 3] {
    let l = (lightness + 0.396_337_777_4 * a + 0.215_803_757_3 * b).powi(3);
    let m = (lightness - 0.105_561_345_8 * a - 0.063_854_172_8 * b).powi(3);
    let s = (lightness - 0.089_484_177_5 * a - 1.291_485_548_0 * b).powi(3);
    [
        4.076_741_662_1 * l - 3.307_711_591_3 * m + 0.230_969_929_2 * s,
        -1.268_438_004_6 * l + 2.609_757_401_1 * m - 0.341_319_396_5 * s,
        -0.004_196_086_3 * l - 0.703_418_614_7 * m + 1.707_614_701_0 * s,
    ]
}

fn gamma(linear: f64) -> u8 {
    let v = linear.clamp(0.0, 1.0);
    let v = if v <= 0.003_130_8 { 12.92 * v } else { 1.055 * v.powf(1.0 / 2.4) - 0.055 };
    (255.0 * v).round() as u8
}

/// Sixteen evenly spaced colors of matplotlib's viridis, which is even to the eye and survives
/// gray-scale printing and the common kinds of color blindness.
const VIRIDIS: [Rgb; 16] = [
    Rgb(68, 1, 84),
    Rgb(72, 26, 108),
    Rgb(71, 47, 125),
    Rgb(65, 68, 135),
    Rgb(57, 86, 140),
    Rgb(49, 104, 142),
    Rgb(42, 120, 142),
    Rgb(35, 136, 142),
    Rgb(31, 152, 139),
    Rgb(34, 168, 132),
    Rgb(53, 183, 121),
    Rgb(84, 197, 104),
    Rgb(122, 209, 81),
    Rgb(165, 219, 54),
    Rgb(210, 226, 27),
    Rgb(253, 231, 37),
];

/// The color of a share of the way from the lowest to the highest value; `0` and `1` outside.
pub fn viridis(share: f64) -> Rgb {
    let share = if share.is_nan() { 0.0 } else { share.clamp(0.0, 1.0) };
    let place = share * 15.0;
    let low = (place.floor() as usize).min(14);
    let part = place - low as f64;
    let mix = |a: u8, b: u8| (f64::from(a) + (f64::from(b) - f64::from(a)) * part).round() as u8;
    let (a, b) = (VIRIDIS[low], VIRIDIS[low + 1]);
    Rgb(mix(a.0, b.0), mix(a.1, b.1), mix(a.2, b.2))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Family; 17] = [
        Gaussian,
        Rff,
        Triangle,
        Rectangle,
        Impulse,
        Sine,
        Square,
        Random,
        LinF,
        LogF,
        Basic,
        Formula,
        Identity,
        Neutral,
        Added(0),
        Added(1),
        Added(2),
    ];

    fn distance(a: Rgb, b: Rgb) -> f64 {
        let d = |x: u8, y: u8| (f64::from(x) - f64::from(y)).powi(2);
        (d(a.0, b.0) + d(a.1, b.1) + d(a.2, b.2)).sqrt()
    }

    /// Catches two embedders that a reader would take for one.
    #[test]
    fn families_are_told_apart() {
        for (i, a) in ALL.iter().enumerate() {
            for b in &ALL[i + 1..] {
                let d = distance(shade(*a, 0, 1), shade(*b, 0, 1));
                assert!(d > 35.0, "{a:?} and {b:?} are {d} apart");
            }
        }
    }

    #[test]
    fn shades_darken() {
        for family in ALL {
            let sum = |c: Rgb| u32::from(c.0) + u32::from(c.1) + u32::from(c.2);
            let sums: Vec<u32> = (0..6).map(|i| sum(shade(family, i, 6))).collect();
            assert!(sums.windows(2).all(|w| w[0] > w[1]), "{family:?}: {sums:?}");
        }
    }

    #[test]
    fn names_of_methods_find_their_embedder() {
        assert_eq!(family(None, "Gau"), Gaussian);
        assert_eq!(family(None, "Random Fourier"), Rff);
        assert_eq!(family(Some("random"), "anything"), Random);
        assert_eq!(family(Some("formula"), "Gau (formula)"), Formula);
        assert_eq!(family(None, "separable"), Neutral);
        // A kind is itself, whatever it begins with.
        assert_eq!(family(Some("sinc"), "separable"), Neutral);
        for kind in registry() {
            assert_ne!(family(Some(kind.name), ""), Neutral, "{}", kind.name);
        }
    }

    #[test]
    fn viridis_keeps_its_ends() {
        assert_eq!(viridis(-1.0), Rgb(68, 1, 84));
        assert_eq!(viridis(1.0), Rgb(253, 231, 37));
        assert_eq!(viridis(f64::NAN), viridis(0.0));
    }
}
