//! Compares the hand-written passes and their derivatives, in single precision, with burn's automatic differentiation of the composed
//! formulas in double precision.

use burn::Tensor;
use burn::tensor::{DType, Device, TensorData, activation};
use posenc_attention::draw::Draw;
use posenc_attention::kernels;
use posenc_attention::layers::{Layer, LayerDropout, LayerStyle, TransformerSizes};
use posenc_math::random::{gaussian_vector, stream};

/// Normal numbers from the random stream `label`, and their shape.
fn draw(label: &str, shape: &[usize]) -> (Vec<f64>, Vec<usize>) {
    let n = shape.iter().product();
    (gaussian_vector(&mut stream(11, label), n), shape.to_vec())
}

fn leaf<const D: usize>((numbers, shape): &(Vec<f64>, Vec<usize>), dtype: DType) -> Tensor<D> {
    let device = Device::flex().autodiff();
    let data = TensorData::new(numbers.clone(), shape.clone());
    Tensor::from_data(data, (&device, dtype)).require_grad()
}

fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f64> {
    tensor.into_data().try_into_vec_as::<f64>().unwrap()
}

/// Largest absolute difference, relative to the largest number of `b`.
fn distance(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    let size = b.iter().fold(0.0f64, |s, v| s.max(v.abs()));
    a.iter().zip(b).fold(0.0f64, |d, (a, b)| d.max((a - b).abs())) / size
}

/// The sum of `y` with a random factor on each element, so that all gradients differ.
fn weigh<const D: usize>(y: Tensor<D>) -> Tensor<1> {
    let (factors, shape) = draw("factors", &y.dims());
    let factors = Tensor::from_data(TensorData::new(factors, shape), (&y.device(), y.dtype()));
    (y * factors).sum()
}

/// Compares the result and gradients of an operation in single precision with those of `$plain` in double precision, which is the
/// operation itself if absent.
macro_rules! compare {
    ($inputs:expr, [$($name:ident: $rank:literal),*], $ours:expr) => {
        compare!($inputs, [$($name: $rank),*], $ours, $ours)
    };
    ($inputs:expr, [$($name:ident: $rank:literal),*], $ours:expr, $plain:expr) => {{
        let inputs = $inputs;
        let run = |is_ours: bool, dtype: DType| {
            let mut at = inputs.iter();
            $(let $name: Tensor<$rank> = leaf(at.next().unwrap(), dtype);)*
            let y = if is_ours { $ours($($name.clone()),*) } else { $plain($($name.clone()),*) };
            let gradients = weigh(y.clone()).backward();
            vec![numbers(y.inner()), $(numbers($name.grad(&gradients).unwrap())),*]
        };
        let exact = run(false, DType::F64);
        for (i, (ours, exact)) in run(true, DType::F32).iter().zip(&exact).enumerate() {
            let d = distance(ours, exact);
            assert!(d < 3e-6, "number {i} (0 is the result): {d:e}");
        }
    }};
}

#[test]
fn affine_maps_and_layer_norms() {
    for [n, a, b] in [[1, 1, 1], [7, 5, 3], [40, 67, 5], [130, 33, 64]] {
        let (x, w, b) = (draw("x", &[n, a]), draw("w", &[a, b]), draw("b", &[b]));
        compare!([x.clone(), w, b], [x: 2, w: 2, b: 1], kernels::affine::<2>);
        let norm = |x, g, s| kernels::layer_norm::<2>(x, g, s, 1e-6);
        if a > 1 {
            compare!([x, draw("g", &[a]), draw("s", &[a])], [x: 2, g: 1, s: 1], norm);
        }
    }
}

#[test]
fn gelus() {
    let plain = |x: Tensor<2>| {
        let u = (x.clone() + x.clone().powf_scalar(3.0) * 0.044_715)
            * (2.0 / std::f64::consts::PI).sqrt();
        x * (u.tanh() + 1.0) * 0.5
    };
    // Scaled so that the gate is also fully closed and fully open.
    let (mut x, shape) = draw("x", &[20, 13]);
    x.iter_mut().for_each(|v| *v *= 4.0);
    compare!([(x.clone(), shape)], [x: 2], kernels::gelu::<2>, plain);
    // In double precision, the kernel is composed of operations of burn.
    let of = || {
        Tensor::<2>::from_data(TensorData::new(x.clone(), [20, 13]), (&Device::flex(), DType::F64))
    };
    assert!(distance(&numbers(kernels::gelu(of())), &numbers(plain(of()))) < 1e-12);
}

/// softmax(Q Kᵀ/√d + bias) V, head by head.
fn plain_attention(
    q: Tensor<3>,
    k: Tensor<3>,
    v: Tensor<3>,
    bias: &Tensor<4>,
    heads: usize,
) -> Tensor<3> {
    let d = q.dims()[2] / heads;
    let head = |h: usize| {
        let part =
            |t: &Tensor<3>| t.clone().slice([0..t.dims()[0], 0..t.dims()[1], h * d..(h + 1) * d]);
        let scores = part(&q).matmul(part(&k).transpose()) * (1.0 / (d as f64).sqrt());
        let [b, t, s] = scores.dims();
        let bias = bias.clone().expand([b, 1, t, s]).reshape([b, t, s]);
        activation::softmax(scores + bias, 2).matmul(part(&v))
    };
    Tensor::cat((0..heads).map(head).collect(), 2)
}

/// Catches wrong gradients, and weights that belong to another query or are on later keys.
#[test]
fn attention_with_and_without_a_mask() {
    // (B, T, S, H, d), and whether causal; the causal lengths are around the block size.
    for ([b, t, s, heads, d], causal) in [
        ([2, 5, 7, 1, 3], false),
        ([1, 60, 20, 2, 16], false),
        ([2, 6, 6, 3, 4], true),
        ([1, 48, 48, 1, 8], true),
        ([2, 101, 101, 2, 16], true),
    ] {
        let shape = |length| vec![b, length, heads * d];
        let rows = if causal { t } else { 1 };
        // If not causal, the last key of every item but the first is hidden.
        let hidden = |i: usize| match causal {
            true => i % s > (i / s) % t,
            false => i / s > 0 && i % s == s - 1,
        };
        let bias: Vec<f64> = (0..b * rows * s)
            .map(|i| if hidden(i) { -1e9 } else { 0.1 * (i % 7) as f64 })
            .collect();
        let bias_of = |dtype| {
            let data = TensorData::new(bias.clone(), [b, 1, rows, s]);
            Tensor::<4>::from_data(data, (&Device::flex().autodiff(), dtype))
        };
        let ours = |q, k, v| {
            let (y, weights) = kernels::attend(q, k, v, bias_of(DType::F32), heads, causal);
            for (i, row) in numbers(weights).chunks_exact(s).enumerate() {
                assert!((row.iter().sum::<f64>() - 1.0).abs() < 1e-5);
                let seen = if causal { i % t + 1 } else { s };
                assert!(row[seen..].iter().all(|&w| w == 0.0), "row {i}");
            }
            y
        };
        compare!(
            [draw("q", &shape(t)), draw("k", &shape(s)), draw("v", &shape(s))],
            [q: 3, k: 3, v: 3],
            ours,
            |q, k, v| plain_attention(q, k, v, &bias_of(DType::F64), heads)
        );
    }
}

/// Catches attention to other segments, or to later rows of the same segment. Lengths include empty segments and segments longer than a
/// block.
#[test]
fn attention_of_segments() {
    for (lengths, heads, d, causal) in
        [(vec![3, 0, 5], 2, 4, false), (vec![4, 0, 2, 7], 1, 3, true), (vec![60, 2], 2, 8, true)]
    {
        let count: usize = lengths.iter().sum();
        let segment = |row: usize| {
            let mut end = 0;
            lengths.iter().position(|length| {
                end += length;
                row < end
            })
        };
        // All rows as one sequence, with a mask of other segments.
        let plain = |q: Tensor<2>, k: Tensor<2>, v: Tensor<2>| {
            let hidden = |i: usize| {
                let (row, key) = (i / count, i % count);
                segment(row) != segment(key) || (causal && key > row)
            };
            let bias = (0..count * count).map(|i| if hidden(i) { -1e9 } else { 0.0 });
            let bias = TensorData::new(bias.collect::<Vec<f64>>(), [1, 1, count, count]);
            let bias = Tensor::<4>::from_data(bias, (&q.device(), q.dtype()));
            let [q, k, v] = [q, k, v].map(|x| x.unsqueeze::<3>());
            plain_attention(q, k, v, &bias, heads).reshape([count, heads * d])
        };
        compare!(
            [draw("q", &[count, heads * d]), draw("k", &[count, heads * d]), draw("v", &[count, heads * d])],
            [q: 2, k: 2, v: 2],
            |q, k, v| kernels::attend_segments(q, k, v, &lengths, heads, causal),
            plain
        );
    }
}

/// Catches attention composed of burn's operations that differs from the pass. A dropout of 10⁻¹² drops nothing.
#[test]
fn composed_attention_is_the_same() {
    let (device, mut rng) = (Device::flex().autodiff(), stream(1, "layer"));
    let sizes = TransformerSizes { width: 8, heads: 2, feed_forward: 8, layers: 1 };
    let mut weights = Draw { rng: &mut rng, device: &device };
    let layers = Layer::stack(&mut weights, &sizes, 1, LayerStyle::GELU);
    let x = leaf::<2>(&draw("x", &[9, 8]), DType::F32);
    let run = |causal: bool, rate: f64| {
        let mut masks = stream(2, "masks");
        let dropout = &mut LayerDropout::uniform(rate, Some(&mut masks));
        numbers(layers[0].attend_segments(x.clone(), &[4, 0, 5], causal, dropout))
    };
    for causal in [false, true] {
        assert!(distance(&run(causal, 1e-12), &run(causal, 0.0)) < 1e-5);
    }
}

/// Catches a mean that is not over rows, and scores whose exponentials overflow.
#[test]
fn cross_entropies() {
    let said = [2, 0, 36, 5, 5, 1, 9];
    let (mut scores, shape) = draw("scores", &[said.len(), 37]);
    scores.iter_mut().for_each(|v| *v *= 3.0);
    scores[3] = 200.0;
    compare!([(scores, shape)], [s: 2], |s| kernels::cross_entropy(s, &said));
}

/// Catches a term that one of the two forms lacks. Expected values follow Kingma and Ba, with decoupled weight decay.
#[test]
fn steps_of_adam() {
    let step = kernels::AdamStep {
        factor: 0.7,
        keep: [0.9, 0.99],
        take: [0.1, 0.01],
        root: 1.3,
        epsilon: 1e-3,
        rate: 0.2,
        decay: 0.98,
    };
    let [theta, g, m, v] = ["theta", "g", "m", "v"].map(|name| draw(name, &[37]).0);
    let v: Vec<f64> = v.iter().map(|v| v * v).collect();
    for (dtype, limit) in [(DType::F64, 1e-14), (DType::F32, 1e-6)] {
        let of = |numbers: &Vec<f64>| {
            let data = TensorData::new(numbers.clone(), [37]);
            Tensor::<1>::from_data(data, (&Device::flex(), dtype))
        };
        let (new, [mean, squares]) = kernels::adam(of(&theta), [of(&m), of(&v)], of(&g), step);
        let expected: Vec<[f64; 3]> = (0..37)
            .map(|i| {
                let g = 0.7 * g[i];
                let (m, v) = (0.9 * m[i] + 0.1 * g, 0.99 * v[i] + 0.01 * g * g);
                [0.98 * theta[i] - 0.2 * m / (1.3 * v.sqrt() + 1e-3), m, v]
            })
            .collect();
        for (part, ours) in [new, mean, squares].map(numbers).into_iter().enumerate() {
            let expected: Vec<f64> = expected.iter().map(|all| all[part]).collect();
            assert!(distance(&ours, &expected) < limit, "{dtype:?}, part {part}");
        }
    }
}
