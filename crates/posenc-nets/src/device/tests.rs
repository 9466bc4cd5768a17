//! Tests of products, limits and failures on any available adapter.

use std::sync::OnceLock;

use posenc_files::testing::{Need, skip};
use posenc_math::random::{stream, uniform_vector};

use faer::Mat;

use super::DeviceEngine;
use super::adapter::{Choice, Gpu};
use super::product::{Epilogue, Tile};
use super::program::{BLOCK, DeviceBuffer, Kernels, Operand, Product, Recorder, UNIFORM};
use crate::{Adam, Engine, Input, Network, SampleSet, Samples, Task};

/// The shared adapter of the tests; skips the calling test if the machine has no adapter.
fn gpu() -> Option<&'static (Gpu, Kernels)> {
    static GPU: OnceLock<Option<(Gpu, Kernels)>> = OnceLock::new();
    let open = || Gpu::open(Choice::GpuOrSoftware).ok().map(|gpu| (gpu, Kernels::default()));
    let gpu = GPU.get_or_init(open).as_ref();
    if gpu.is_none() {
        skip(Need::Vulkan, "there is no Vulkan driver");
    }
    gpu
}

fn steps(gpu: &Gpu) -> wgpu::Buffer {
    gpu.buffer(BLOCK as u64, UNIFORM)
}

fn noise(count: usize, label: &str) -> Vec<f32> {
    let draws = uniform_vector(&mut stream(1, label), count, -1.0, 1.0);
    draws.into_iter().map(|draw| draw as f32).collect()
}

/// Catches tiles that omit or repeat an edge, operands read with the wrong stride, overlapping slices, and wrong
/// epilogues.
#[test]
fn products_equal_plain_sums() {
    let Some((gpu, kernels)) = gpu() else { return };
    let steps = steps(gpu);
    use Epilogue::{Add, Bias, BiasRelu, Masked, Relu, Store};
    let all = [Store, Add, Bias, BiasRelu, Relu, Masked];
    // Operands of multiples of four are read and written in vectors of four.
    let shapes = [
        (1, 1, 1),
        (5, 3, 2),
        (67, 70, 33),
        (130, 129, 9),
        (16, 131, 24),
        (200, 16, 17),
        (4, 8, 4),
        (132, 140, 44),
        (12, 132, 36),
    ];
    let mut case = 0;
    for tile in tiles().chain([Tile::MEDIUM, Tile::TALL, Tile::WIDE]) {
        // Compiling a kernel takes longest, so candidates have only large shapes.
        let is_candidate = Tile::CANDIDATES.contains(&tile);
        for (m, n, k) in shapes.into_iter().filter(|&(m, n, _)| !is_candidate || m.min(n) > 128) {
            // All storage orders of the operands; the epilogues alternate.
            for (a_inner, b_inner) in [(true, true), (true, false), (false, true), (false, false)] {
                let epilogue = all[case % all.len()];
                let slices = if epilogue == Store { 1 + case % 3 } else { 1 };
                case += 1;
                let batches = 1 + case % 2;
                let (a_at, b_at) = if m % 4 + n % 4 + k % 4 == 0 { (8, 4) } else { (7, 3) };
                let a = noise(a_at + batches * m * k, "a");
                let b = noise(b_at + batches * k * n, "b");
                let before = noise(batches * m * n * slices, "c");
                let bias = noise(batches * n, "bias");
                let on_device = |numbers: &[f32]| DeviceBuffer::of(gpu, "test", numbers).unwrap();
                let (da, db, dc) = (on_device(&a), on_device(&b), on_device(&before));
                let dbias = on_device(&bias);
                let operand =
                    |numbers, offset, strides, batch| Operand { numbers, offset, strides, batch };
                let a_strides = if a_inner { (k, 1) } else { (1, m) };
                let b_strides = if b_inner { (1, k) } else { (n, 1) };
                let mut list = Recorder::new(gpu, kernels, &steps);
                list.product_with(
                    tile,
                    Product {
                        a: operand(&da, a_at, a_strides, m * k),
                        b: operand(&db, b_at, b_strides, k * n),
                        c: operand(&dc, 0, (n, 1), m * n),
                        sizes: (m, n, k),
                        batches,
                        slices: (slices, batches * m * n),
                        epilogue,
                        bias: epilogue.has_bias().then(|| operand(&dbias, 0, (0, 1), n)),
                    },
                );
                list.finish().unwrap().run(gpu);
                let found = dc.read(gpu, before.len()).unwrap();
                for batch in 0..batches {
                    for i in 0..m {
                        for j in 0..n {
                            let sum: f64 = (0..k)
                                .map(|l| {
                                    let x =
                                        a[a_at + batch * m * k + i * a_strides.0 + l * a_strides.1];
                                    let y =
                                        b[b_at + batch * k * n + l * b_strides.0 + j * b_strides.1];
                                    f64::from(x) * f64::from(y)
                                })
                                .sum();
                            let at = (batch * m + i) * n + j;
                            let old = f64::from(before[at]);
                            let bias = f64::from(bias[batch * n + j]);
                            let expected = match epilogue {
                                Store => sum,
                                Add => old + sum,
                                Bias => sum + bias,
                                BiasRelu => (sum + bias).max(0.0),
                                Relu => sum.max(0.0),
                                Masked if old > 0.0 => sum,
                                Masked => 0.0,
                            };
                            let found: f64 = (0..slices)
                                .map(|s| f64::from(found[s * batches * m * n + at]))
                                .sum();
                            assert!(
                                (found - expected).abs() < 1e-5,
                                "{tile:?} {m}×{n}×{k} {a_inner} {b_inner} {epilogue:?} ({i}, {j}): {found}, {expected}"
                            );
                        }
                    }
                }
            }
        }
    }
}

/// The tiles for large products.
fn tiles() -> impl Iterator<Item = Tile> {
    [Tile::LARGE].into_iter().chain(Tile::CANDIDATES)
}

/// Prints the rate of each tile in the three products of a layer of 256 units:
/// `cargo test --release -p posenc-nets --features wgpu times_of_tiles -- --ignored --nocapture`. Catches tiles that compute other numbers
/// at this size.
#[test]
#[ignore = "a measurement, of use on a GPU"]
fn times_of_tiles() {
    let Some((gpu, kernels)) = gpu() else { return };
    let steps = steps(gpu);
    let (points, repeats) = if gpu.description.is_software { (2048, 2) } else { (65_536, 50) };
    let on_device = |count| DeviceBuffer::of(gpu, "test", &noise(count * 256, "numbers")).unwrap();
    let (x, w, d) = (on_device(points), on_device(256), on_device(points));
    let [x, w, d] = [&x, &w, &d].map(|numbers| Operand::rows(numbers, 256));
    println!("{}, {points} points", gpu.description);
    for (name, a, b, sizes) in [
        ("forward", x, w.transposed(), (points, 256, 256)),
        ("gradient of inputs", d, w, (points, 256, 256)),
        ("gradient of weights", d.transposed(), x, (256, 256, points)),
    ] {
        let mut first: Option<Vec<f32>> = None;
        for tile in tiles() {
            let mut list = Recorder::new(gpu, kernels, &steps);
            let slices = list.slices(sizes.0, sizes.1, sizes.2, 1);
            let count = slices * sizes.0 * sizes.1;
            let c = DeviceBuffer::zeros(gpu, "test", count).unwrap();
            for _ in 0..repeats {
                let product = Product::new([a, b, Operand::rows(&c, sizes.1)], sizes);
                let slices = (slices, sizes.0 * sizes.1);
                list.product_with(tile, Product { slices, ..product });
            }
            let list = list.finish().unwrap();
            let mut seconds = f64::INFINITY;
            for _ in 0..4 {
                let start = std::time::Instant::now();
                list.run(gpu);
                c.read(gpu, 1).unwrap();
                seconds = seconds.min(start.elapsed().as_secs_f64());
            }
            let work = 2.0 * (sizes.0 * sizes.1 * sizes.2 * repeats) as f64;
            println!("{name}: {:.3} TFLOP/s, {slices} slices, {tile:?}", work / seconds / 1e12);
            let found = c.read(gpu, count).unwrap();
            let expected = first.get_or_insert_with(|| found.clone());
            assert!(found.iter().zip(expected).all(|(a, b)| (a - *b).abs() < 1e-3), "{tile:?}");
        }
    }
}

/// Catches batches beyond the limit of one dispatch that are omitted or computed from another batch's operands.
#[test]
fn batches_beyond_the_dispatch_limit_are_computed() {
    if gpu().is_none() {
        return;
    }
    // A separate device with a lowered limit, because some adapters dispatch more than a test can compute.
    let (mut gpu, kernels) = (Gpu::open(Choice::GpuOrSoftware).unwrap(), Kernels::default());
    let limit = gpu.limits.max_compute_workgroups_per_dimension.min(65_535);
    gpu.limits.max_compute_workgroups_per_dimension = limit;
    let (gpu, kernels, batches) = (&gpu, &kernels, limit as usize + 37);
    let steps = steps(gpu);
    let (a, b) = (noise(batches, "a"), noise(batches, "b"));
    let on_device = |numbers: &[f32]| DeviceBuffer::of(gpu, "test", numbers).unwrap();
    let (da, db, dc) = (on_device(&a), on_device(&b), on_device(&vec![7.0; batches]));
    let each = |numbers| Operand { numbers, offset: 0, strides: (1, 1), batch: 1 };
    let mut list = Recorder::new(gpu, kernels, &steps);
    let operands = [each(&da), each(&db), each(&dc)];
    list.product(Product { batches, ..Product::new(operands, (1, 1, 1)) });
    list.finish().unwrap().run(gpu);
    let expected: Vec<f32> = a.iter().zip(&b).map(|(a, b)| a * b).collect();
    assert_eq!(dc.read(gpu, batches).unwrap(), expected);
}

/// Catches a lost device that panics, hangs, returns results, or breaks later sessions.
#[test]
fn a_lost_device_ends_its_session_and_no_other() {
    if gpu().is_none() {
        return;
    }
    let engine = DeviceEngine::open(Choice::GpuOrSoftware).unwrap();
    let input = Input::dense(Mat::from_fn(3, 20, |k, i| (i * (k + 1)) as f32 / 60.0)).unwrap();
    let network = Network::new(3, 1, 4, 1).unwrap();
    let initial = vec![network.initialize(&mut stream(0, "weights"))];
    let targets = Mat::from_fn(20, 1, |i, _| i as f32 / 20.0);
    let train = Samples { input, targets };
    let task = Task { network, optimizer: Adam::new(1e-2), train, test: None, initial };
    let mut lost = engine.start(task.clone()).unwrap();
    let expected = lost.step().unwrap();
    engine.open.lock().unwrap().gpu.device.destroy();
    let error = lost.step().unwrap_err().to_string();
    assert!(error.contains("lost"), "{error}");
    assert!(lost.state().is_err() && lost.parameters().is_err());
    assert!(lost.errors(SampleSet::Train).is_err());
    assert_eq!(engine.start(task).unwrap().step().unwrap(), expected);
}

/// Catches a device error that is not reported, or that is reported again for later commands.
#[test]
fn a_refused_command_is_reported_exactly_once() {
    let Some((gpu, _)) = gpu() else { return };
    let too_large = gpu.largest_bytes() as usize / 4 + 1;
    let error =
        gpu.scoped(|| DeviceBuffer::zeros(gpu, "numbers", too_large)).unwrap_err().to_string();
    assert!(error.contains("can have at most") && error.contains("--device cpu"), "{error}");
    let error = gpu.scoped(|| {
        drop(gpu.buffer(u64::MAX / 8, wgpu::BufferUsages::STORAGE));
        Ok(())
    });
    assert!(error.is_err());
    gpu.scoped(|| Ok(())).unwrap();
    assert_eq!(
        DeviceBuffer::of(gpu, "numbers", &[1.0f32, 2.0]).unwrap().read(gpu, 2).unwrap(),
        [1.0, 2.0]
    );
}
