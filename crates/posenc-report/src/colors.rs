//! One color per embedder, the same in every figure of every paper.
//!
//! Hues are given in OKLCH (lightness, chroma, hue angle), in which equal steps of lightness look equal: the variants
//! of one embedder, such as a sweep over σ, are shades of its hue from light to dark. Methods without a family are
//! gray.
//!
//! A sweep of three or more values within one embedder is a [`sequence`] of hues instead. Curves without an embedder of
//! their own, such as the layers of a network, have [`named`] colors. Every color has a counterpart for [`dark`]
//! backgrounds.

use posenc_experiments::schema::Group;
use posenc_experiments::schema::display::Color;
use posenc_math::embedder::{find, registry};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rgb(pub u8, pub u8, pub u8);

/// Color of what all methods share, such as a target.
pub const REFERENCE: Rgb = Rgb(31, 35, 40);

/// A family of colors: an embedder, a position encoding, or neither.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// An embedder, by the name of its kind.
    Embedder(&'static str),
    Table,
    Network,
    /// Sines of sums of coordinates.
    SummedSine,
    Neutral,
}

use Family::*;

/// Lightness, chroma and hue (degrees) of each family.
fn base(family: Family) -> [f64; 3] {
    match family {
        Embedder(name) => of_kind(name),
        Table => [0.56, 0.140, 250.0],
        Network => [0.58, 0.145, 150.0],
        SummedSine => [0.62, 0.190, 355.0],
        Neutral => [0.48, 0.0, 0.0],
    }
}

/// The kind's color in the registry; for kinds without one, a color by their place among such kinds.
fn of_kind(name: &str) -> [f64; 3] {
    let without = registry().iter().filter(|k| k.color.is_none());
    let place = || without.take_while(|k| k.name != name).count();
    find(name).and_then(|kind| kind.color).unwrap_or_else(|| added(place()))
}

/// Colors at steps of the golden angle, dark and light in turn, so that consecutive colors are easy to distinguish.
fn added(place: usize) -> [f64; 3] {
    let light = if place.is_multiple_of(2) { 0.38 } else { 0.84 };
    [light, 0.120, 320.0 + 137.508 * place as f64]
}

/// Prefixes of the names of methods without an embedder, in lower case.
const NAMES: [(&str, Family); 3] =
    [("embed-", Table), ("mlp", Network), ("transformer md-sine", SummedSine)];

/// The family of an embedder kind; if the experiment names no embedder, that of the longest matching prefix of the
/// method's name.
pub fn family(embedder_kind: Option<&str>, method: &str) -> Family {
    if let Some(kind) = embedder_kind.and_then(find) {
        return Embedder(kind.name);
    }
    let method = method.to_lowercase();
    let of_embedders = registry()
        .iter()
        .flat_map(|kind| kind.method_names.iter().map(|start| (*start, Embedder(kind.name))));
    of_embedders
        .chain(NAMES)
        .filter(|(start, _)| method.starts_with(start))
        .max_by_key(|(start, _)| start.len())
        .map_or(Neutral, |(_, family)| family)
}

pub fn family_in(group: Option<&Group>, method: &str) -> Family {
    let variant = group.and_then(|g| g.variants.iter().find(|v| v.id == method));
    family(variant.and_then(|v| v.embedder.as_ref()).map(|e| e.kind.as_str()), method)
}

/// Shade number `index` of `count` in a family: its own color for one, light to dark for several.
pub fn shade(family: Family, index: usize, count: usize) -> Rgb {
    shade_of(base(family), index, count)
}

fn shade_of([own, chroma, hue]: [f64; 3], index: usize, count: usize) -> Rgb {
    if count <= 1 {
        return oklch(own, chroma, hue);
    }
    let share = index.min(count - 1) as f64 / (count - 1) as f64;
    let (light, dark) = if chroma == 0.0 { (0.70, 0.20) } else { (0.79, 0.34) };
    // A few shades stay near the middle, since two shades need not be nearly white and nearly black.
    let reach = [0.0, 0.0, 0.55, 0.75, 0.9].get(count).copied().unwrap_or(1.0);
    let middle = 0.5 * (light + dark);
    oklch(middle + (dark - light) * (share - 0.5) * reach, chroma, hue)
}

/// Color number `index` of `count` in a sweep: viridis without its palest fifth.
pub fn sequence(index: usize, count: usize) -> Rgb {
    viridis(0.78 * index.min(count.max(1) - 1) as f64 / (count.max(2) - 1) as f64)
}

pub fn named(color: Color) -> Rgb {
    let [lightness, chroma, hue] = match color {
        Color::Blue => [0.56, 0.140, 250.0],
        Color::Orange => [0.68, 0.165, 52.0],
        Color::Green => [0.58, 0.145, 150.0],
        Color::Red => [0.57, 0.195, 25.0],
        Color::Purple => [0.52, 0.185, 300.0],
        Color::Brown => [0.46, 0.080, 55.0],
        Color::Pink => [0.70, 0.160, 350.0],
        Color::Gray => [0.56, 0.0, 0.0],
        Color::Olive => [0.63, 0.125, 112.0],
        Color::Cyan => [0.68, 0.110, 208.0],
    };
    oklch(lightness, chroma, hue)
}

/// Named color number `index`; starts over after the last color.
pub fn categorical(index: usize) -> Rgb {
    named(Color::ALL[index % Color::ALL.len()])
}

/// The color, or a darker one of its hue that is legible as text on white.
pub fn legible(color: Rgb) -> Rgb {
    let (lightness, chroma, hue) = to_oklch(color);
    if lightness <= 0.54 { color } else { oklch(0.54, chroma, hue) }
}

/// The counterpart of a color for dark backgrounds. It keeps the hue, and faint colors stay faint.
pub fn dark(color: Rgb) -> Rgb {
    let (lightness, chroma, hue) = to_oklch(color);
    if chroma < 0.03 {
        oklch(1.2 - 1.025 * lightness, chroma, hue)
    } else {
        oklch((0.85 - 0.4 * (lightness - 0.34)).clamp(0.62, 0.9), chroma, hue)
    }
}

/// Lightness, chroma and hue in degrees.
fn to_oklch(Rgb(r, g, b): Rgb) -> (f64, f64, f64) {
    let linear = |v: u8| match f64::from(v) / 255.0 {
        v if v <= 0.040_45 => v / 12.92,
        v => ((v + 0.055) / 1.055).powf(2.4),
    };
    let (r, g, b) = (linear(r), linear(g), linear(b));
    let l = (0.412_221_470_8 * r + 0.536_332_536_3 * g + 0.051_445_992_9 * b).cbrt();
    let m = (0.211_903_498_2 * r + 0.680_699_545_1 * g + 0.107_396_956_6 * b).cbrt();
    let s = (0.088_302_461_9 * r + 0.281_718_837_6 * g + 0.629_978_700_5 * b).cbrt();
    let lightness = 0.210_454_255_3 * l + 0.793_617_785_0 * m - 0.004_072_046_8 * s;
    let x = 1.977_998_495_1 * l - 2.428_592_205_0 * m + 0.450_593_709_9 * s;
    let y = 0.025_904_037_1 * l + 0.782_771_766_2 * m - 0.808_675_766_0 * s;
    (lightness, x.hypot(y), y.atan2(x).to_degrees())
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

/// Converts Björn Ottosson's OKLab to linear sRGB.
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

/// Sixteen evenly spaced colors of matplotlib's viridis, which is perceptually uniform and stays readable in gray-scale
/// print and with the common kinds of color blindness.
const VIRIDIS: [u32; 16] = [
    0x440154, 0x481a6c, 0x472f7d, 0x414487, 0x39568c, 0x31688e, 0x2a788e, 0x23888e, 0x1f988b,
    0x22a884, 0x35b779, 0x54c568, 0x7ad151, 0xa5db36, 0xd2e21b, 0xfde725,
];

/// The color of a value between 0 (lowest) and 1 (highest). Values outside are clamped, and NaN counts as 0.
pub fn viridis(share: f64) -> Rgb {
    let share = if share.is_nan() { 0.0 } else { share.clamp(0.0, 1.0) };
    let place = share * 15.0;
    let low = (place.floor() as usize).min(14);
    let part = place - low as f64;
    let mix = |shift: u32| {
        let [a, b] = [VIRIDIS[low], VIRIDIS[low + 1]].map(|color| f64::from(color >> shift & 0xff));
        (a + (b - a) * part).round() as u8
    };
    Rgb(mix(16), mix(8), mix(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The embedders, neutral gray, and three kinds without a color of their own.
    fn all() -> Vec<(String, [f64; 3])> {
        let kinds = registry().iter().map(|k| (k.name.to_owned(), base(Embedder(k.name))));
        let others = (0..3).map(|place| (format!("added {place}"), added(place)));
        kinds.chain(others).chain([("neutral".to_owned(), base(Neutral))]).collect()
    }

    fn distance(a: Rgb, b: Rgb) -> f64 {
        let d = |x: u8, y: u8| (f64::from(x) - f64::from(y)).powi(2);
        (d(a.0, b.0) + d(a.1, b.1) + d(a.2, b.2)).sqrt()
    }

    /// Catches two embedders that a reader would mistake for one.
    #[test]
    fn families_differ_in_color() {
        let all = all();
        for (i, (a, own)) in all.iter().enumerate() {
            for (b, other) in &all[i + 1..] {
                let d = distance(shade_of(*own, 0, 1), shade_of(*other, 0, 1));
                assert!(d > 35.0, "{a} and {b} are {d} apart");
            }
        }
    }

    #[test]
    fn names_of_methods_find_their_embedder() {
        assert_eq!(family(None, "Gau"), Embedder("gaussian"));
        assert_eq!(family(None, "Random Fourier"), Embedder("rff"));
        assert_eq!(family(None, "Random"), Embedder("random"));
        assert_eq!(family(None, "Embed-2D"), Table);
        assert_eq!(family(Some("random"), "anything"), Embedder("random"));
        assert_eq!(family(Some("formula"), "Gau (formula)"), Embedder("formula"));
        assert_eq!(family(None, "separable"), Neutral);
        // Embedder kinds are not matched by prefix: `sinc` is not `sine`.
        assert_eq!(family(Some("sinc"), "separable"), Neutral);
        for kind in registry() {
            assert_ne!(family(Some(kind.name), ""), Neutral, "{}", kind.name);
        }
    }

    /// Catches text that vanishes on a dark background, and two colors that look the same there.
    #[test]
    fn dark_colors_are_legible_and_differ() {
        let lightness = |c: Rgb| to_oklch(c).0;
        assert!(lightness(dark(Rgb(255, 255, 255))) < 0.2, "the ground");
        assert!(lightness(dark(REFERENCE)) > 0.85, "ink");
        let all = Color::ALL.map(|c| dark(named(c)));
        for (i, a) in all.iter().enumerate() {
            assert!(lightness(*a) > 0.58, "{:?}", Color::ALL[i]);
            for b in &all[i + 1..] {
                assert!(distance(*a, *b) > 25.0, "{a:?} and {b:?}");
            }
        }
    }
}
