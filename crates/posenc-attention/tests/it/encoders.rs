//! Compares encoders with their definitions.

use posenc_attention::draw::Draw;
use posenc_attention::parameters;
use posenc_attention::position_encoding::{PositionEncoding, Positions};
use posenc_math::lff::encoding::{Encoding, Features, Layer, Modulator};
use posenc_math::random::stream;

fn fourier(width: usize) -> Encoding {
    Encoding {
        features: Features::Fourier,
        width: Some(width),
        gamma: Some(2.0),
        learned: true,
        ..Encoding::none()
    }
}

fn build(encoding: &Encoding, sides: &[usize], width: usize) -> PositionEncoding {
    let device = posenc_attention::cpu();
    let mut rng = stream(4, "encoder");
    PositionEncoding::new(encoding, sides, width, &mut Draw { rng: &mut rng, device: &device })
}

fn codes(encoder: &PositionEncoding, positions: &Positions, width: usize) -> Vec<Vec<f64>> {
    let device = posenc_attention::cpu();
    let prepared = encoder.prepare(positions, &device);
    let numbers = parameters::numbers(encoder.encode(&prepared, None));
    assert_eq!(numbers.len(), positions.count() * width);
    numbers.chunks_exact(width).map(|c| c.iter().map(|&v| f64::from(v)).collect()).collect()
}

fn every_kind() -> Vec<Encoding> {
    let of = |features| Encoding { features, ..Encoding::none() };
    let modulated = |mut encoding: Encoding, layer_norm| {
        encoding.modulator = Some(Modulator { hidden: 12, layer_norm, dropout: 0.1 });
        encoding
    };
    let network = Encoding { hidden: Some(5), ..of(Features::Network) };
    let mut kinds = vec![
        Encoding::none(),
        of(Features::Embed),
        Encoding { flat: true, ..of(Features::Embed) },
        of(Features::Sine),
        Encoding { flat: true, ..of(Features::Sine) },
        of(Features::SummedSine),
        of(Features::PairedSine),
        network.clone(),
        fourier(64),
        Encoding { learned: false, ..fourier(64) },
    ];
    for layer_norm in [false, true] {
        kinds.extend([
            modulated(of(Features::SummedSine), layer_norm),
            modulated(network.clone(), layer_norm),
            modulated(fourier(32), layer_norm),
            modulated(Encoding { groups: 2, ..fourier(16) }, layer_norm),
            modulated(Encoding { learned: false, ..fourier(64) }, layer_norm),
        ]);
    }
    kinds.extend([
        Encoding { layer: Some(Layer::Linear), groups: 2, ..fourier(16) },
        Encoding { layer: Some(Layer::LayerNorm), ..fourier(64) },
        Encoding { layer: Some(Layer::Gain), ..fourier(64) },
    ]);
    kinds
}

/// Catches a part of a module that is missing, trained although it should be fixed, or counted per group.
#[test]
fn modules_have_the_calculated_number_of_parameters() {
    for encoding in every_kind() {
        let encoder = build(&encoding, &[6, 7], 64);
        let count = parameters::count(&encoder);
        assert_eq!(count, encoding.parameter_count(&[6, 7], 64), "{encoding:?}");
        assert_eq!(parameters::values(&encoder).len(), count);
    }
}

/// Catches encodings that do not distinguish positions. Every kind must encode each cell of a grid differently, with three exceptions: no
/// encoding, sums of coordinates, and a network under a layer norm: without biases, it does not see the distance of a cell from the origin.
#[test]
fn encodings_distinguish_positions() {
    for encoding in every_kind() {
        let all = codes(&build(&encoding, &[6, 7], 64), &Positions::grid(&[6, 7]), 64);
        let mut distinct: Vec<&Vec<f64>> = Vec::new();
        for code in &all {
            if !distinct.iter().any(|d| d.iter().zip(code).all(|(a, b)| (a - b).abs() < 1e-5)) {
                distinct.push(code);
            }
        }
        let is_normed = encoding.modulator.as_ref().is_some_and(|m| m.layer_norm);
        let expected = match encoding.features {
            Features::None => 1,
            Features::SummedSine => 12,
            Features::Network if is_normed => continue,
            _ => 42,
        };
        assert_eq!(distinct.len(), expected, "{encoding:?}");
    }
}

/// Learned and fixed frequencies start from equal values, and only the learned ones are parameters. Catches learned features that are not
/// those of LFF Eq. 2.
#[test]
fn learned_frequencies_start_as_random_ones() {
    let positions = Positions::grid(&[8, 8]);
    let fixed = Encoding { learned: false, ..fourier(64) };
    let [learned, fixed] = [fourier(64), fixed].map(|own| build(&own, &[8, 8], 64));
    assert_eq!(learned.frequencies().unwrap().1, 2);
    let (a, b) = (codes(&learned, &positions, 64), codes(&fixed, &positions, 64));
    for (a, b) in a.iter().flatten().zip(b.iter().flatten()) {
        assert!((a - b).abs() < 2e-6);
    }
}

/// Catches groups that do not share weights, and coordinates that are assigned to the wrong group: swapping the halves of a position must
/// swap the halves of its encoding.
#[test]
fn groups_share_their_weights() {
    let mut encoding = Encoding { groups: 2, ..fourier(16) };
    encoding.modulator = Some(Modulator { hidden: 9, layer_norm: false, dropout: 0.0 });
    let encoder = build(&encoding, &[100; 4], 32);
    let there = Positions { sides: vec![100; 4], coordinates: vec![3.0, 14.0, 15.0, 92.0] };
    let back = Positions { sides: vec![100; 4], coordinates: vec![15.0, 92.0, 3.0, 14.0] };
    let (a, b) = (codes(&encoder, &there, 32).remove(0), codes(&encoder, &back, 32).remove(0));
    for i in 0..16 {
        assert!((a[i] - b[16 + i]).abs() < 1e-6 && (a[16 + i] - b[i]).abs() < 1e-6);
    }
    assert!(a[..16].iter().zip(&a[16..]).any(|(x, y)| (x - y).abs() > 1e-3));
}

/// Catches a layer that is left out or is not the one that its name says: initially, a gain changes nothing, a layer norm gives mean 0 and
/// variance 1, and a dense layer is affine in the features.
#[test]
fn single_layers_do_what_their_names_say() {
    let positions = Positions::grid(&[4, 4]);
    let of = |layer, scale: f64| {
        let encoding = Encoding { layer, scale: Some(scale), ..fourier(64) };
        codes(&build(&encoding, &[4, 4], 64), &positions, 64)
    };
    let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-3, "{a} {b}");
    assert_eq!(of(Some(Layer::Gain), 3.0), of(None, 3.0));
    let encoding = Encoding { layer: Some(Layer::Gain), learned: false, ..fourier(64) };
    let encoder = parameters::replaced(build(&encoding, &[4, 4], 64), &[2.0]).unwrap();
    let doubled: Vec<Vec<f64>> = codes(&encoder, &positions, 64);
    for (double, one) in doubled.iter().flatten().zip(of(None, 1.0).iter().flatten()) {
        near(*double, 2.0 * one);
    }
    for code in of(Some(Layer::LayerNorm), 8.0) {
        near(code.iter().sum::<f64>() / 64.0, 0.0);
        near(code.iter().map(|v| v * v).sum::<f64>() / 64.0, 1.0);
    }
    let [one, two, three] = [1.0, 2.0, 3.0].map(|scale| of(Some(Layer::Linear), scale));
    assert_ne!(one, of(None, 1.0));
    for ((a, b), c) in one.iter().zip(&two).zip(&three) {
        a.iter().zip(b).zip(c).for_each(|((a, b), c)| near(c - b, b - a));
    }
}

/// Catches a mask that is not used, used outside of training, or not scaled to keep the mean.
#[test]
fn dropout_is_active_only_in_training() {
    let mut encoding = fourier(64);
    encoding.modulator = Some(Modulator { hidden: 400, layer_norm: false, dropout: 0.5 });
    let encoder = build(&encoding, &[2, 2], 64);
    let device = posenc_attention::cpu();
    let prepared = encoder.prepare(&Positions::grid(&[2, 2]), &device);
    let plain = parameters::numbers(encoder.encode(&prepared, None));
    let mut rng = stream(1, "masks");
    let mut mean = vec![0.0; plain.len()];
    let draws = 400;
    for _ in 0..draws {
        let masked = parameters::numbers(encoder.encode(&prepared, Some(&mut rng)));
        assert_ne!(masked, plain);
        mean.iter_mut().zip(masked).for_each(|(m, v)| *m += f64::from(v) / f64::from(draws));
    }
    let size = plain.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>().sqrt();
    let off = plain.iter().zip(&mean).map(|(p, m)| (f64::from(*p) - m).powi(2)).sum::<f64>().sqrt();
    assert!(off < 0.15 * size, "{off} of {size}");
    assert_eq!(parameters::numbers(encoder.encode(&prepared, None)), plain);
}
