//! Distances that follow the edges of an image.
//!
//! Values change little along an edge and much across it. At the same distance, samples along the edge are therefore better
//! predictors than samples across it. The structure tensor of a first reconstruction measures the direction and strength of
//! edges. Distances across an edge are stretched by the fourth root of a power of the ratio of its eigenvalues. Distances along
//! the edge are shortened by the same factor, as in steering kernel regression (Takeda, Farsiu and Milanfar 2007).

use super::kriging::Metric;

/// Added to both eigenvalues, in units of their mean over the image: weak edges steer less.
const FLOOR: f64 = 0.01;

/// Largest ratio of squared distances across and along an edge.
const MAX_RATIO: f64 = 64.0;

/// A metric for each pixel of an image (rows × columns, channels fastest). Coordinates of metrics are (column, row). `smoothing` is the
/// standard deviation of the Gaussian over which the structure tensor is averaged, in pixels, and `strength` the power of the ratio of
/// eigenvalues; 0 yields the Euclidean distance.
pub fn metrics(
    image: &[f64],
    sides: [usize; 2],
    channels: usize,
    smoothing: f64,
    strength: f64,
) -> Vec<Metric> {
    let [mut xx, mut xy, mut yy] = tensors(image, sides, channels);
    for plane in [&mut xx, &mut xy, &mut yy] {
        blur(plane, sides, smoothing);
    }
    let mean = xx.iter().zip(&yy).map(|(a, b)| 0.5 * (a + b)).sum::<f64>() / xx.len().max(1) as f64;
    // The offset avoids a division by zero for images without edges; any positive number works.
    let floor = FLOOR * mean + f64::MIN_POSITIVE;
    (0..xx.len())
        .map(|i| {
            let (middle, half) = (0.5 * (xx[i] + yy[i]), 0.5 * (xx[i] - yy[i]));
            let radius = half.hypot(xy[i]);
            if radius <= 1e-12 * floor {
                return [1.0, 0.0, 1.0];
            }
            let ratio = (middle + radius + floor) / ((middle - radius).max(0.0) + floor);
            let across = ratio.powf(strength).min(MAX_RATIO).sqrt();
            let along = across.recip();
            let (sum, difference) = (0.5 * (across + along), 0.5 * (across - along) / radius);
            [sum + difference * half, difference * xy[i], sum - difference * half]
        })
        .collect()
}

/// Products of the derivatives by column and by row, summed over channels: xx, xy, yy.
fn tensors(image: &[f64], [rows, columns]: [usize; 2], channels: usize) -> [Vec<f64>; 3] {
    let mut planes: [Vec<f64>; 3] = std::array::from_fn(|_| vec![0.0; rows * columns]);
    let at = |row: usize, column: usize, channel: usize| {
        image[(row * columns + column) * channels + channel]
    };
    for row in 0..rows {
        let (above, below) = (row.saturating_sub(1), (row + 1).min(rows - 1));
        for column in 0..columns {
            let (left, right) = (column.saturating_sub(1), (column + 1).min(columns - 1));
            for channel in 0..channels {
                let x = (at(row, right, channel) - at(row, left, channel))
                    / (right - left).max(1) as f64;
                let y = (at(below, column, channel) - at(above, column, channel))
                    / (below - above).max(1) as f64;
                for (plane, product) in planes.iter_mut().zip([x * x, x * y, y * y]) {
                    plane[row * columns + column] += product;
                }
            }
        }
    }
    planes
}

/// Gaussian blur; at borders, the average over the pixels within the image.
fn blur(plane: &mut [f64], [rows, columns]: [usize; 2], deviation: f64) {
    let radius = (3.0 * deviation).ceil() as usize;
    let kernel: Vec<f64> =
        (0..=radius).map(|i| (-0.5 * (i as f64 / deviation.max(1e-9)).powi(2)).exp()).collect();
    // `lines` and `positions` along a line are pairs of a count and a stride in memory.
    let along = |from: &[f64], to: &mut [f64], lines: (usize, usize), positions: (usize, usize)| {
        let (count, stride) = positions;
        for line in 0..lines.0 {
            let start = line * lines.1;
            for i in 0..count {
                let (low, high) = (i.saturating_sub(radius), (i + radius).min(count - 1));
                let (mut sum, mut weight) = (0.0, 0.0);
                for j in low..=high {
                    let w = kernel[i.abs_diff(j)];
                    sum += w * from[start + j * stride];
                    weight += w;
                }
                to[start + i * stride] = sum / weight;
            }
        }
    };
    let mut other = vec![0.0; plane.len()];
    along(plane, &mut other, (rows, columns), (columns, 1));
    along(&other, plane, (columns, 1), (rows, columns));
}
