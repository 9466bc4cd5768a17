//! Compares interpolation with SciPy on examples that `benches/peers/interpolation_examples.py` generated.

use posenc_math::interpolation::grid::{GridMethod, upsample};
use posenc_math::interpolation::{
    CloughTocher, Interpolant, Linear, Samples, Sequential, ThinPlate, predict,
};
use serde::Deserialize;

#[derive(Deserialize)]
struct Examples {
    scipy: String,
    grids: Vec<Grid>,
    planes: Vec<Scattered>,
    spaces: Vec<Scattered>,
}

/// A lattice whose values are known at every `step`-th node.
#[derive(Deserialize)]
struct Grid {
    sides: Vec<usize>,
    step: usize,
    known: Vec<f64>,
    nearest: Vec<f64>,
    linear: Vec<f64>,
    cubic: Vec<f64>,
}

/// Scattered samples, and queries within their hull.
#[derive(Deserialize)]
struct Scattered {
    positions: Vec<f64>,
    values: Vec<f64>,
    queries: Vec<f64>,
    neighbors: usize,
    nearest: Vec<f64>,
    thin_plate: Vec<f64>,
    thin_plate_local: Vec<f64>,
    #[serde(default)]
    linear: Vec<f64>,
    #[serde(default)]
    cubic: Vec<f64>,
}

const CHANNELS: usize = 2;

fn examples() -> Examples {
    let examples: Examples =
        serde_json::from_str(include_str!("../data/interpolation_examples.json")).unwrap();
    assert!(!examples.scipy.is_empty());
    examples
}

#[track_caller]
fn agree(what: &str, own: &[f64], expected: &[f64]) {
    assert_eq!(own.len(), expected.len(), "{what}");
    let worst = own.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert!(worst <= 1e-6, "{what}: {worst:e}");
}

fn points<const D: usize>(flat: &[f64]) -> Vec<[f64; D]> {
    flat.chunks_exact(D).map(|p| std::array::from_fn(|axis| p[axis])).collect()
}

/// Catches a different rule for ties, different end conditions of the spline, and axes in a wrong order.
#[test]
fn regular_grids_agree_with_scipy() {
    for grid in examples().grids {
        for (method, expected) in [
            (GridMethod::Nearest, &grid.nearest),
            (GridMethod::Linear, &grid.linear),
            (GridMethod::Cubic, &grid.cubic),
        ] {
            let own = upsample(&grid.known, &grid.sides, grid.step, CHANNELS, method).unwrap();
            agree(&format!("{method:?} on {:?}", grid.sides), &own, expected);
        }
    }
}

/// Catches wrong gradients, a wrong direction across edges, and wrong radial functions.
#[test]
fn scattered_points_agree_with_scipy() {
    let examples = examples();
    for example in &examples.planes {
        let samples = in_any_dimension::<2>(example);
        let queries = points::<2>(&example.queries);
        let run = |interpolant: &dyn Interpolant<2>| predict(interpolant, &queries, &Sequential);
        agree("linear", &run(&Linear::new(&samples)), &example.linear);
        agree("cubic", &run(&CloughTocher::new(&samples)), &example.cubic);
    }
    for example in &examples.spaces {
        in_any_dimension::<3>(example);
    }
}

/// Checks the methods that exist in any dimension; returns the samples.
fn in_any_dimension<const D: usize>(example: &Scattered) -> Samples<D> {
    let samples =
        Samples::new(points::<D>(&example.positions), example.values.clone(), CHANNELS).unwrap();
    let queries = points::<D>(&example.queries);
    let run = |interpolant: &dyn Interpolant<D>| predict(interpolant, &queries, &Sequential);
    agree("nearest", &run(&samples.nearest()), &example.nearest);
    let thin_plate = |neighbors| run(&ThinPlate::new(&samples, neighbors));
    agree("thin plate", &thin_plate(samples.len()), &example.thin_plate);
    agree("local thin plate", &thin_plate(example.neighbors), &example.thin_plate_local);
    samples
}
