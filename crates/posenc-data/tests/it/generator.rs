use posenc_data::generate::{dead_leaves, moving_dead_leaves};
use posenc_data::{Channels, Clip, Image};
use posenc_math::fourier::{Complex, forward};

use crate::support::sha256;

fn image(seed: u64, set: &str, index: usize, size: usize) -> Image {
    dead_leaves(seed, set, index, size, Channels::Rgb)
}

fn bytes(image: &Image) -> Vec<u8> {
    image.pixels.iter().map(|value| (value * 255.0).round() as u8).collect()
}

/// Mean amplitude |F(f)| over the rings of whole frequencies f < n/2 cycles per image. A Hann
/// window keeps the jump between opposite edges, itself a 1/f spectrum, out of the result.
fn radial_spectrum(image: &Image) -> Vec<f64> {
    let n = image.width;
    let gray = image.luminance().pixels;
    let mean = gray.iter().sum::<f64>() / gray.len() as f64;
    let window: Vec<f64> =
        (0..n).map(|i| 0.5 - 0.5 * (std::f64::consts::TAU * i as f64 / n as f64).cos()).collect();
    let transform = forward(n);
    let mut rows: Vec<Complex<f64>> = (0..n * n)
        .map(|i| Complex::new((gray[i] - mean) * window[i / n] * window[i % n], 0.0))
        .collect();
    transform.process(&mut rows);
    let mut columns: Vec<Complex<f64>> = (0..n * n).map(|i| rows[i % n * n + i / n]).collect();
    transform.process(&mut columns);

    let (mut sums, mut counts) = (vec![0.0; n / 2], vec![0.0; n / 2]);
    for (i, value) in columns.iter().enumerate() {
        let (p, q) = ((i / n).min(n - i / n) as f64, (i % n).min(n - i % n) as f64);
        let ring = (p * p + q * q).sqrt().round() as usize;
        if ring < n / 2 {
            sums[ring] += value.norm();
            counts[ring] += 1.0;
        }
    }
    sums.iter().zip(counts).map(|(sum, count)| sum / count).collect()
}

/// Slope of ln(amplitude) over ln(frequency) between 4 and n/4 cycles per image, every octave with
/// the same weight.
fn log_slope(spectrum: &[f64]) -> f64 {
    let points: Vec<(f64, f64, f64)> = (4..spectrum.len() / 2)
        .map(|f| (1.0 / f as f64, (f as f64).ln(), spectrum[f].ln()))
        .collect();
    let total: f64 = points.iter().map(|(w, ..)| w).sum();
    let mean_x = points.iter().map(|(w, x, _)| w * x).sum::<f64>() / total;
    let mean_y = points.iter().map(|(w, _, y)| w * y).sum::<f64>() / total;
    let products: f64 = points.iter().map(|(w, x, y)| w * (x - mean_x) * (y - mean_y)).sum();
    let squares: f64 = points.iter().map(|(w, x, _)| w * (x - mean_x) * (x - mean_x)).sum();
    products / squares
}

// Photographs have -0.8 to -1.4; white noise has 0, blurred blobs fall faster.
#[test]
fn the_spectrum_of_every_scene_falls_like_that_of_photographs() {
    for index in 0..8 {
        let slope = log_slope(&radial_spectrum(&image(0, "div2k-test", index, 512)));
        assert!((-1.4..=-0.8).contains(&slope), "image {index}: slope {slope:.2}");
    }
}

/// Catches pictures and clips that are nearly black, white or of one color, and values that are cut off at the ends of the range.
#[test]
fn signals_have_light_and_dark_parts_and_are_not_clipped() {
    let images = (0..8).map(|index| image(3, "set", index, 128).pixels);
    let clips = (0..6).map(|index| clip(1, "set", index, 4, 64).voxels);
    let clips = clips.map(|voxels| voxels.into_iter().map(f64::from).collect());
    for (i, values) in images.chain(clips).enumerate() {
        let mean_of = |value: &dyn Fn(f64) -> f64| {
            values.iter().map(|&v| value(v)).sum::<f64>() / values.len() as f64
        };
        let mean = mean_of(&|v| v);
        let deviation = mean_of(&|v| (v - mean).powi(2)).sqrt();
        let clipped = mean_of(&|v| f64::from(u8::from(v == 0.0 || v == 1.0)));
        assert!((0.2..0.75).contains(&mean), "signal {i}: mean {mean:.2}");
        assert!(deviation > 0.1, "signal {i}: standard deviation {deviation:.2}");
        assert!(clipped < 0.1, "signal {i}: {clipped:.2} clipped");
    }
}

#[test]
fn images_depend_on_seed_set_and_index_only() {
    let first = image(0, "one", 0, 32);
    assert_eq!(first, image(0, "one", 0, 32));
    for other in [image(1, "one", 0, 32), image(0, "two", 0, 32), image(0, "one", 8, 32)] {
        assert_ne!(bytes(&first), bytes(&other));
    }
}

#[test]
fn gray_is_the_luminance_of_the_same_picture() {
    let gray = dead_leaves(0, "one", 2, 32, Channels::Gray);
    assert_eq!(gray, image(0, "one", 2, 32).luminance());
}

#[test]
fn every_size_can_be_generated() {
    for (frames, size) in [(1, 1), (2, 3), (300, 2)] {
        assert_eq!(clip(0, "small", 0, frames, size).voxels.len(), 3 * frames * size * size);
    }
    for size in [1, 2, 7, 33] {
        for index in 0..8 {
            assert_eq!(image(0, "small", index, size).pixels.len(), 3 * size * size);
        }
    }
}

// Pins the bytes of all scenes. After an intended change, increase the version in `generated` of `sets/source.rs`, so that records of the
// old images are not mistaken for new ones. If this fails on one machine only, that machine rounds differently and generates other images
// than the reference run.
#[test]
fn signals_are_the_same_on_every_machine() {
    let all: Vec<u8> = (0..8).flat_map(|index| bytes(&image(0, "golden", index, 48))).collect();
    assert_eq!(sha256(&all), "0ecdf3ad2a06bc12f121257fac1dadd87b7112a7603dcda8beb7642c4af83287");
    let clips = (0..6).flat_map(|index| clip(0, "golden", index, 12, 32).voxels);
    let all: Vec<u8> = clips.map(|value| (value * 255.0).round() as u8).collect();
    assert_eq!(sha256(&all), "b37f34fe240dbdd7b2fc3ae394f4ccd9830119a84f3fda48b419ffd2657f4f5a");
}

fn clip(seed: u64, set: &str, index: usize, frames: usize, size: usize) -> Clip {
    moving_dead_leaves(seed, set, index, frames, size, Channels::Rgb)
}

/// Correlation of the luminance of two frames.
fn correlation(clip: &Clip, t: usize, u: usize) -> f64 {
    let gray = |t: usize| {
        let values = clip.frame(t).unwrap().luminance().pixels;
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        values.into_iter().map(|value| value - mean).collect::<Vec<f64>>()
    };
    let (a, b) = (gray(t), gray(u));
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    dot(&a, &b) / (dot(&a, &a) * dot(&b, &b)).sqrt()
}

// Catches frames that are generated independently of each other, and a repeated still image.
#[test]
fn frames_resemble_their_neighbors_more_than_distant_ones() {
    for index in 0..6 {
        let clip = clip(0, "set", index, 65, 64);
        let mean = |distance: usize| {
            let pairs = (0..64).step_by(8).filter(|t| t + distance < 65);
            let values: Vec<f64> = pairs.map(|t| correlation(&clip, t, t + distance)).collect();
            values.iter().sum::<f64>() / values.len() as f64
        };
        let (near, middle, far) = (mean(1), mean(8), mean(48));
        assert!(near > 0.9, "clip {index}: neighbors correlate by {near:.3}");
        assert!(
            near > middle + 0.05 && middle > far + 0.05,
            "clip {index}: {near:.3}, {middle:.3}, {far:.3}"
        );
    }
}

// If the length changed the random numbers, quick and full runs would use different clips.
#[test]
fn a_shorter_clip_is_the_beginning_of_a_longer_one() {
    let (short, long) = (clip(0, "one", 0, 3, 32), clip(0, "one", 0, 7, 32));
    assert_eq!(short.voxels, long.voxels[..short.voxels.len()]);
    for other in [clip(1, "one", 0, 3, 32), clip(0, "two", 0, 3, 32), clip(0, "one", 6, 3, 32)] {
        assert_ne!(short.voxels, other.voxels);
    }
}
