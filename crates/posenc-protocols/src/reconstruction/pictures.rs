//! Pictures of reconstructions: whole images, and frames and an x–t slice of clips.

use posenc_experiments::record::Picture;

use posenc_data::Signal;

/// Factor on |difference| in error maps, so that 0.2 is white.
const ERROR_GAIN: f64 = 5.0;

/// Number of frames of a clip that are shown side by side.
const FRAMES: usize = 4;

/// Pictures of a signal, of its reconstruction and of their difference. `reconstruction` has the layout of [`Signal::values`]; its
/// caption shows `psnr` in dB.
///
/// Images are shown whole. Clips are shown as equally spaced frames side by side, and as an x–t slice, which stacks the middle rows of
/// all frames, so that motion is a slope.
pub fn pictures(signal: &Signal, reconstruction: &[f64], psnr: f64) -> Vec<Picture> {
    let channels = signal.channels;
    let shown = |values: &[f64]| -> Vec<u8> { values.iter().map(|&v| byte(v)).collect() };
    let errors = |truth: &[f64], other: &[f64]| -> Vec<u8> {
        let mean = |(t, o): (&[f64], &[f64])| {
            let sum: f64 = t.iter().zip(o).map(|(t, o)| (t - o).abs()).sum();
            byte(ERROR_GAIN * sum / channels as f64)
        };
        truth.chunks_exact(channels).zip(other.chunks_exact(channels)).map(mean).collect()
    };
    let picture = |name: &str, size: (usize, usize), channels: usize, pixels: Vec<u8>| {
        Picture::new(name, &signal.name, (size.0, size.1, channels), pixels)
    };
    let three = |names: [&str; 3], size: (usize, usize), truth: &[f64], other: &[f64]| {
        [
            picture(names[0], size, channels, shown(truth)),
            picture(names[1], size, channels, shown(other)).psnr(psnr),
            picture(names[2], size, 1, errors(truth, other)),
        ]
    };
    match signal.sides[..] {
        [height, width] => three(
            ["truth", "reconstruction", "error"],
            (width, height),
            &signal.values,
            reconstruction,
        )
        .into(),
        [frames, height, width] => {
            let strip = |values: &[f64]| frame_strip(values, [frames, height, width], channels);
            let slice = |values: &[f64]| middle_rows(values, [frames, height, width], channels);
            let count = FRAMES.min(frames);
            let mut all = Vec::from(three(
                ["truth-frames", "frames", "error-frames"],
                (count * width, height),
                &strip(&signal.values),
                &strip(reconstruction),
            ));
            all.extend(three(
                ["truth-slice", "slice", "error-slice"],
                (width, frames),
                &slice(&signal.values),
                &slice(reconstruction),
            ));
            all
        }
        _ => Vec::new(),
    }
}

/// Converts a value in [0, 1] to 0 … 255. Values outside are clipped, and NaN is 0.
fn byte(value: f64) -> u8 {
    (value.clamp(0.0, 1.0) * 255.0).round() as u8
}

/// Equally spaced frames side by side.
fn frame_strip(values: &[f64], [frames, height, width]: [usize; 3], channels: usize) -> Vec<f64> {
    let count = FRAMES.min(frames);
    let row = width * channels;
    let mut strip = Vec::with_capacity(count * height * row);
    for y in 0..height {
        for k in 0..count {
            let t = (2 * k + 1) * frames / (2 * count);
            strip.extend_from_slice(&values[(t * height + y) * row..][..row]);
        }
    }
    strip
}

/// The middle row of every frame.
fn middle_rows(values: &[f64], [frames, height, width]: [usize; 3], channels: usize) -> Vec<f64> {
    let row = width * channels;
    (0..frames).flat_map(|t| &values[(t * height + height / 2) * row..][..row]).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reconstruction::signal::filled;

    fn signal(sides: &[usize], channels: usize) -> Signal {
        let count = sides.iter().product::<usize>() * channels;
        filled(sides, channels, |i| i as f64 / count as f64)
    }

    /// Catches pictures that the store refuses, a swapped width and height, and values outside
    /// [0, 1] that wrap.
    #[test]
    fn images_are_shown_whole() {
        let signal = signal(&[2, 3], 3);
        let mut other = signal.values.clone();
        other[0] = -3.0;
        other[1] = 7.0;
        other[2] = f64::NAN;
        let pictures = pictures(&signal, &other, 20.0);
        let names: Vec<&str> = pictures.iter().map(|p| p.name.as_str()).collect();
        assert_eq!(names, ["truth", "reconstruction", "error"]);
        for picture in &pictures {
            assert_eq!((picture.width, picture.height), (3, 2));
            picture.png().unwrap();
        }
        assert_eq!(pictures[1].psnr, Some(20.0));
        assert_eq!(pictures[1].pixels[..3], [0, 255, 0]);
        assert_eq!(pictures[2].pixels[1..], [0; 5], "equal pixels have no error");
    }

    /// Catches a strip that mixes frames, and a slice of another row.
    #[test]
    fn clips_are_shown_as_frames_and_as_a_slice() {
        let (frames, height, width) = (8, 2, 2);
        let mut signal = signal(&[frames, height, width], 1);
        // Values encode frame and row.
        for (i, value) in signal.values.iter_mut().enumerate() {
            *value = (i / 4) as f64 / 10.0 + (i / 2 % 2) as f64 / 100.0;
        }
        let shown = pictures(&signal, &signal.values, 1.0);
        let named = |name: &str| shown.iter().find(|p| p.name == name).unwrap();
        let strip = named("frames");
        assert_eq!((strip.width, strip.height), (8, 2));
        let expected: Vec<u8> = [0.1, 0.1, 0.3, 0.3, 0.5, 0.5, 0.7, 0.7].map(byte).into();
        assert_eq!(strip.pixels[..8], expected);
        let slice = named("slice");
        assert_eq!((slice.width, slice.height), (2, 8));
        assert_eq!(slice.pixels[..4], [byte(0.01), byte(0.01), byte(0.11), byte(0.11)]);
        assert!(named("error-slice").pixels.iter().all(|&e| e == 0));
        assert_eq!(shown.len(), 6);
    }
}
