//! Similarity of neighboring rows in a learned embedding table of positions (LFF Figure 1).

/// Cosine of the angle between two rows.
fn cosine(a: &[f64], b: &[f64]) -> f64 {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let size = (dot(a, a) * dot(b, b)).sqrt();
    if size > 0.0 { dot(a, b) / size } else { 0.0 }
}

/// Cosines of all pairs of rows of a table of `width` columns, row by row.
pub fn similarities(table: &[f64], width: usize) -> Vec<f64> {
    let rows: Vec<&[f64]> = table.chunks_exact(width.max(1)).collect();
    rows.iter().flat_map(|a| rows.iter().map(move |b| cosine(a, b))).collect()
}

/// For each row i of a table of `width` columns: the mean cosine to rows i ± 1, minus the mean over all rows except i, divided by
/// the standard deviation over these rows. 0 if a row is no more similar to its neighbors than to the other rows.
pub fn neighbor_peaks(table: &[f64], width: usize) -> Vec<f64> {
    let all = similarities(table, width);
    let n = (all.len() as f64).sqrt().round() as usize;
    let peak = |i: usize| {
        let row = &all[i * n..(i + 1) * n];
        let others = || row.iter().enumerate().filter(move |(j, _)| *j != i).map(|(_, s)| s);
        let count = (n - 1) as f64;
        let mean = others().sum::<f64>() / count;
        let deviation = (others().map(|s| (s - mean) * (s - mean)).sum::<f64>() / count).sqrt();
        let near: Vec<f64> = [i.checked_sub(1), Some(i + 1)]
            .into_iter()
            .flatten()
            .filter_map(|j| row.get(j))
            .copied()
            .collect();
        let near = near.iter().sum::<f64>() / near.len().max(1) as f64;
        if deviation > 0.0 { (near - mean) / deviation } else { 0.0 }
    };
    if n < 2 { vec![0.0; n] } else { (0..n).map(peak).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{gaussian_vector, stream};

    /// Catches a row compared with itself, and neighbors on one side only.
    #[test]
    fn slowly_rotating_rows_have_peaks_and_random_rows_have_none() {
        let turning: Vec<f64> = (0..32)
            .flat_map(|i| {
                let angle = f64::from(i) * 0.2;
                [angle.cos(), angle.sin()]
            })
            .collect();
        let peaks = neighbor_peaks(&turning, 2);
        assert_eq!(peaks.len(), 32);
        assert!(peaks.iter().all(|p| (1.0..2.5).contains(p)), "{peaks:?}");
        let random = gaussian_vector(&mut stream(1, "table"), 64 * 64);
        let peaks = neighbor_peaks(&random, 64);
        let mean = peaks.iter().sum::<f64>() / 64.0;
        assert!(mean.abs() < 0.3, "{mean}");
        // Rows 1 and 2 are equal; all other pairs are orthogonal.
        let mut rows = vec![0.0; 25];
        (0..5).for_each(|i| rows[i * 5 + i] = 1.0);
        rows[10..15].copy_from_slice(&[0.0, 1.0, 0.0, 0.0, 0.0]);
        let peaks = neighbor_peaks(&rows, 5);
        assert!(peaks[1] > 0.5 && peaks[2] > 0.5 && peaks[4] == 0.0, "{peaks:?}");
        assert_eq!(similarities(&rows, 5)[7], 1.0);
    }

    #[test]
    fn small_tables_have_no_peaks() {
        assert_eq!(neighbor_peaks(&[1.0, 2.0], 2), [0.0]);
        assert!(neighbor_peaks(&[], 2).is_empty());
        assert_eq!(neighbor_peaks(&[0.0; 6], 2), [0.0; 3]);
    }
}
