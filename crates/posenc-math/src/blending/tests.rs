use faer::Mat;
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;
use crate::embedder::{self, EmbedderSpec, line};
use crate::testing::{built, spec, times};
use crate::tolerance::{Tolerance, assert_all_close};

/// The complex encoders of Table 2, K = 256.
fn published() -> [EmbedderSpec; 5] {
    [
        spec("linf", 256, "sigma", 4.5),
        spec("logf", 256, "sigma", 6.0),
        spec("rff", 256, "sigma", 30.0),
        spec("triangle", 256, "half_width", 2.5 / 256.0),
        spec("gaussian", 256, "sigma", 0.005),
    ]
}

fn weights(source: InnerProducts, spec: &EmbedderSpec, beta: f64, variant: Weights) -> [f64; 2] {
    let embedder = built(spec);
    let distance = distance_function(source, spec, &*embedder).unwrap();
    blend(&*distance, 1.0 / 256.0, beta, variant).unwrap()
}

#[test]
fn weights_equal_those_of_the_protocol_sheet() {
    // Fig. 6 of the sheet, spacing 1/256. Catches an inverse of the wrong sign, a distance with another
    // exponent, and the half width of a triangle mistaken for its full width.
    use InnerProducts::{Code, Law};
    let triangle = |h: f64| spec("triangle", 256, "half_width", h / 256.0);
    let gaussian = |sigma| spec("gaussian", 256, "sigma", sigma);
    for (source, spec, beta, expected) in [
        (Code, gaussian(0.005), 0.5, [0.518, 0.518]),
        (Code, gaussian(0.001), 0.5, [0.377, 0.377]),
        (Code, spec("rff", 256, "sigma", 30.0), 0.5, [0.530, 0.530]),
        (Code, triangle(2.5), 0.5, [0.494, 0.494]),
        (Law, triangle(2.5), 0.5, [0.523, 0.523]),
        (Code, triangle(1.0), 0.5, [0.450, 0.450]),
        (Law, triangle(1.0), 0.5, [0.575, 0.575]),
        (Code, gaussian(0.005), 0.25, [0.7705, 0.2563]),
    ] {
        let printed = weights(source, &spec, beta, Weights::Printed);
        let decimals = if beta == 0.25 { 4 } else { 3 };
        assert_all_close(&printed, &expected, Tolerance::decimals(decimals));
        let sum = printed[0] + printed[1];
        let normalized = weights(source, &spec, beta, Weights::Normalized);
        assert_all_close(&normalized, &printed.map(|w| w / sum), Tolerance::relative(1e-15));
    }
}

#[test]
fn the_weights_are_the_least_squares_solution() {
    // The reference solves Eq. 14 for the encodings. Inner products of Fourier kinds depend on the
    // displacement alone, so Eq. 15 with sampled inner products must agree anywhere on the line.
    for spec in &published()[..3] {
        let embedder = built(spec);
        let step = 1.0 / 255.0;
        for (x0, beta) in [(0.0, 0.3), (0.61, 0.5), (0.2, 0.85)] {
            let rows = embedder::matrix(&*embedder, &[x0, x0 + step, x0 + beta * step]);
            let nodes = rows.subrows(0, 2).transpose();
            let gram = nodes.transpose() * nodes;
            let right = nodes.transpose() * rows.subrows(2, 1).transpose();
            let determinant = gram[(0, 0)] * gram[(1, 1)] - gram[(0, 1)] * gram[(1, 0)];
            let expected = [
                (gram[(1, 1)] * right[(0, 0)] - gram[(0, 1)] * right[(1, 0)]) / determinant,
                (gram[(0, 0)] * right[(1, 0)] - gram[(1, 0)] * right[(0, 0)]) / determinant,
            ];
            let distance = distance_function(InnerProducts::Sampled, spec, &*embedder).unwrap();
            let actual = blend(&*distance, step, beta, Weights::Printed).unwrap();
            assert_all_close(&actual, &expected, Tolerance::absolute(1e-9));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    // 1 − β is exact for multiples of 2⁻²⁰, so the symmetry holds bit for bit.
    #[test]
    fn weights_swap_when_the_position_is_mirrored(kind in 0..5usize, tick in 0..=1u32 << 20, normalized: bool) {
        let variant = if normalized { Weights::Normalized } else { Weights::Printed };
        let beta = f64::from(tick) / f64::from(1u32 << 20);
        let spec = &published()[kind];
        let [a0, a1] = weights(InnerProducts::Code, spec, beta, variant);
        let [b0, b1] = weights(InnerProducts::Code, spec, 1.0 - beta, variant);
        prop_assert_eq!([a0.to_bits(), a1.to_bits()], [b1.to_bits(), b0.to_bits()]);
    }
}

#[test]
fn nodes_get_exactly_their_own_encoding() {
    for spec in published() {
        for source in [InnerProducts::Code, InnerProducts::Law, InnerProducts::Sampled] {
            for variant in [Weights::Printed, Weights::Normalized] {
                for (beta, expected) in [(0.0, [1.0, 0.0]), (1.0, [0.0, 1.0])] {
                    let weights = weights(source, &spec, beta, variant);
                    assert_eq!(weights, expected, "{}", spec.canonical());
                }
            }
        }
        // Through grids of 2 to 300 nodes, many of which have (N−1)·(i/(N−1)) ≠ i.
        let embedder = built(&spec);
        let distance = distance_function(InnerProducts::Code, &spec, &*embedder).unwrap();
        for nodes in [2, 50, 99, 256, 257, 300] {
            let grid = VirtualGrid::new(nodes, GridConvention::Consistent).unwrap();
            let positions = grid.encoded_positions();
            let psi = embedder::matrix(&*embedder, &positions);
            let axis =
                AxisBlending::new(&grid, &positions, &*distance, Weights::Normalized).unwrap();
            let points = (0..nodes as u32).map(|point| [point]).collect();
            let blending = Blending::<f64, 1>::new([&axis], points).unwrap();
            for j in 0..psi.ncols() {
                let mut blended = vec![0.0; nodes];
                blending.gather(psi.col_as_slice(j), &mut blended).unwrap();
                assert_eq!(blended, psi.col_as_slice(j), "{nodes} nodes, {}", spec.canonical());
            }
        }
    }
}

#[test]
fn the_released_grid_locates_points_like_the_scripts() {
    // cell = floor((K−1)·x) with x clamped to [0, 0.999]; nodes are encoded at i/K, excluding 1.
    let grid = VirtualGrid::new(256, GridConvention::Released).unwrap();
    assert_eq!(grid.spacing(), 1.0 / 255.0);
    assert_eq!(grid.encoded_positions(), line(256));
    for i in 0..512 {
        let x = f64::from(i) / 512.0;
        let (cell, beta) = grid.locate(x).unwrap();
        assert_eq!(cell, (255.0 * x).floor() as usize);
        assert_eq!(beta, 255.0 * x - cell as f64);
    }
    assert_eq!(grid.locate(1.0), grid.locate(0.999));
    // The end belongs to the last cell of the consistent grid.
    let grid = VirtualGrid::new(65, GridConvention::Consistent).unwrap();
    assert_eq!(grid.locate(1.0), Some((63, 1.0)));
    assert_eq!(grid.locate(5.0 / 128.0), Some((2, 0.5)));
    assert_eq!(*grid.encoded_positions().last().unwrap(), 1.0);
    for outside in [-1e-9, 1.0 + 1e-9, f64::NAN] {
        assert_eq!(grid.locate(outside), None);
    }
}

/// Random coordinates along `D` axes of different lengths, and points that use some of them.
fn random_blending<const D: usize>(
    n_points: usize,
    seed: u64,
) -> ([AxisBlending; D], Vec<[u32; D]>) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let spec = spec("gaussian", 16, "sigma", 0.2);
    let embedder = built(&spec);
    let distance = distance_function(InnerProducts::Code, &spec, &*embedder).unwrap();
    let axes = std::array::from_fn(|axis| {
        let grid = VirtualGrid::new([5, 4, 3][axis], GridConvention::Consistent).unwrap();
        let mut coordinates: Vec<f64> = (0..7 + axis).map(|_| rng.random_range(0.0..1.0)).collect();
        coordinates.extend([0.0, 1.0]);
        AxisBlending::new(&grid, &coordinates, &*distance, Weights::Printed).unwrap()
    });
    let points = (0..n_points)
        .map(|_| std::array::from_fn(|axis| rng.random_range(0..(9 + axis) as u32)))
        .collect();
    (axes, points)
}

/// B by its definition: each entry is the product over the axes of the weight of that node, or zero.
fn definition<const D: usize>(axes: &[AxisBlending; D], points: &[[u32; D]]) -> Mat<f64> {
    let n_nodes: usize = axes.iter().map(|axis| axis.nodes).product();
    Mat::from_fn(points.len(), n_nodes, |point, node| {
        let mut rest = node;
        let mut weight = 1.0;
        for axis in (0..D).rev() {
            let coordinate = points[point][axis] as usize;
            let AxisBlending { nodes, lower, weights } = &axes[axis];
            let here = rest % nodes;
            rest /= nodes;
            let below = lower[coordinate] as usize;
            let [a, b] = weights[coordinate];
            weight *= if here == below {
                a
            } else if here == below + 1 {
                b
            } else {
                0.0
            };
        }
        weight
    })
}

fn check_forms<const D: usize>() {
    let (axes, points) = random_blending::<D>(40, 3 + D as u64);
    let expected = definition(&axes, &points);
    let blending = Blending::<f64, D>::new(std::array::from_fn(|a| &axes[a]), points).unwrap();
    let matrix = blending.matrix();
    assert_eq!((matrix.nrows(), matrix.ncols()), expected.shape());
    assert_eq!(matrix.nnz(), 40 << D);
    let mut written_out = Mat::<f64>::zeros(expected.nrows(), expected.ncols());
    for (row, column, weight) in matrix.triplet_iter() {
        written_out[(row, column)] += *weight;
    }
    assert!((written_out - &expected).norm_max() <= 1e-15);
    let mut rng = ChaCha8Rng::seed_from_u64(11);
    let mut draw = |n: usize| -> Vec<f64> { (0..n).map(|_| rng.random_range(-1.0..1.0)).collect() };
    let (nodes, values) = (draw(blending.n_nodes()), draw(40));
    let mut gathered = vec![0.0; 40];
    blending.gather(&nodes, &mut gathered).unwrap();
    assert_all_close(&gathered, &times(&expected, &nodes), Tolerance::absolute(1e-13));
    // Catches old contents of the output that remain.
    let mut scattered = vec![f64::NAN; blending.n_nodes()];
    blending.scatter(&values, &mut scattered).unwrap();
    let transposed = expected.transpose().to_owned();
    assert_all_close(&scattered, &times(&transposed, &values), Tolerance::absolute(1e-13));
    // Both as matrix products by nalgebra-sparse.
    let column = |v: &[f64]| nalgebra_sparse::na::DMatrix::from_column_slice(v.len(), 1, v);
    let product = &matrix * &column(&nodes);
    assert_all_close(product.as_slice(), &gathered, Tolerance::absolute(1e-13));
    let product = &matrix.transpose() * &column(&values);
    assert_all_close(product.as_slice(), &scattered, Tolerance::absolute(1e-13));
}

#[test]
fn gather_scatter_and_matrix_agree() {
    // Catches a swapped axis and a wrong stride, since the axes have different lengths.
    check_forms::<1>();
    check_forms::<2>();
    check_forms::<3>();
}

#[test]
fn single_precision_rounds_once_per_axis() {
    let (axes, points) = random_blending::<3>(20, 9);
    let wide = Blending::<f64, 3>::new([&axes[0], &axes[1], &axes[2]], points.clone()).unwrap();
    let narrow = Blending::<f32, 3>::new([&axes[0], &axes[1], &axes[2]], points).unwrap();
    let (wide, narrow) = (wide.matrix(), narrow.matrix());
    assert_eq!(wide.col_indices(), narrow.col_indices());
    let narrow: Vec<f64> = narrow.values().iter().copied().map(f64::from).collect();
    assert_all_close(&narrow, wide.values(), Tolerance::relative(4e-7));
}

#[test]
fn errors_name_the_invalid_input() {
    let variant = Weights::Normalized;
    // Too narrow: both weights are zero at the middle of the cell.
    let narrow = |delta: f64| (1.0 - 4.0 * delta.abs()).max(0.0);
    let message = blend(&narrow, 1.0, 0.5, variant).unwrap_err().to_string();
    assert!(message.contains("sum to 0 and cannot be normalized"), "{message}");
    assert_eq!(blend(&narrow, 1.0, 0.5, Weights::Printed), Ok([0.0, 0.0]));
    // Both nodes have the same, the opposite, a zero or a NaN encoding.
    for distance in [|_: f64| 1.0, |delta: f64| 1.0 - 2.0 * delta, |_| 0.0, |_| f64::NAN] {
        let message = blend(&distance, 1.0, 0.5, variant).unwrap_err().to_string();
        assert!(message.contains("linearly dependent"), "{message}");
    }
    let ratio = blend(&|d: f64| 1.0 - d, 0.1, 1.5, variant).unwrap_err();
    assert_eq!(ratio.to_string(), "β must be between 0 and 1, got 1.5");
    let single = VirtualGrid::new(1, GridConvention::Released).unwrap_err();
    assert!(single.to_string().contains("2 to 1000000 nodes along each axis, got 1"), "{single}");

    let grid = VirtualGrid::new(4, GridConvention::Released).unwrap();
    let distance = |delta: f64| (-delta * delta).exp();
    let outside = AxisBlending::new(&grid, &[0.5, 1.25], &distance, variant).unwrap_err();
    assert_eq!(outside.to_string(), "coordinate 1 is 1.25; the virtual grid covers 0 to 1");
    let axis = AxisBlending::new(&grid, &[0.5], &distance, variant).unwrap();
    let missing = Blending::<f64, 2>::new([&axis, &axis], vec![[0, 0], [0, 1]]).unwrap_err();
    assert_eq!(
        missing.to_string(),
        "point 1: the coordinate index of axis 1 must be below 1, got 1"
    );
    let blending = Blending::<f64, 2>::new([&axis, &axis], vec![[0, 0]]).unwrap();
    let short = blending.gather(&[0.0; 15], &mut [0.0]).unwrap_err();
    assert_eq!(short.to_string(), "values at the nodes of the virtual grid: expected 16, got 15");
    assert!(blending.scatter(&[0.0; 2], &mut [0.0; 16]).is_err());
    // Every axis is allowed, but not their product.
    let large = VirtualGrid::new(70_000, GridConvention::Released).unwrap();
    let axis = AxisBlending::new(&large, &[0.5], &distance, variant).unwrap();
    let refused = Blending::<f64, 2>::new([&axis, &axis], vec![[0, 0]]).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "a virtual grid must have at most 4294967295 nodes, got 70000 × 70000"
    );

    let random = EmbedderSpec::new("formula").text("psi", "exp(-u*u)").number("dimension", 8.0);
    let embedder = built(&random);
    let law = distance_function(InnerProducts::Law, &random, &*embedder).err().unwrap();
    assert!(law.to_string().contains("is known for 'formula'"), "{law}");
    assert!(distance_function(InnerProducts::Code, &random, &*embedder).is_ok());
}
