//! Entropies of a pixel given its neighbors, from counts: reference lines for the loss of a model of pixels.

/// Entropies in bits of a pixel $p$ with left neighbor $l$ and upper neighbor $u$.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PixelEntropies {
    /// $H(p)$.
    pub alone: f64,
    /// $H(p \mid l)$: the lowest loss of a model that uses only the left neighbor.
    pub given_left: f64,
    /// $H(p \mid l, u)$: the lowest loss of a model that uses only these two neighbors.
    pub given_left_and_upper: f64,
}

/// Plug-in estimates over the pixels of `images` that have both neighbors. Each image has `side` × `side` levels, row by row; levels
/// of `levels` or more count as `levels` − 1.
///
/// With $n$ triples and $L$ levels, `given_left_and_upper` is too low by about $L^3/(2n\ln 2)$ bits.
pub fn pixel_entropies<'a>(
    images: impl IntoIterator<Item = &'a [u8]>,
    side: usize,
    levels: usize,
) -> PixelEntropies {
    let levels = levels.max(1);
    let mut triples = vec![0u64; levels * levels * levels];
    let level = |value: u8| usize::from(value).min(levels - 1);
    for image in images {
        for row in 1..side {
            for column in 1..side {
                let at = row * side + column;
                let (Some(&pixel), Some(&left), Some(&upper)) =
                    (image.get(at), image.get(at - 1), image.get(at - side))
                else {
                    continue;
                };
                triples[(level(left) * levels + level(upper)) * levels + level(pixel)] += 1;
            }
        }
    }
    // H(p | c) = H(p, c) − H(c).
    let joint = |cells: usize, cell: &dyn Fn(usize) -> usize| {
        let mut counts = vec![0u64; cells];
        triples.iter().enumerate().for_each(|(i, n)| counts[cell(i)] += n);
        entropy(&counts)
    };
    let square = levels * levels;
    let pixel_and_left = joint(square, &|i| (i / square) * levels + i % levels);
    PixelEntropies {
        alone: joint(levels, &|i| i % levels),
        given_left: pixel_and_left - joint(levels, &|i| i / square),
        given_left_and_upper: entropy(&triples) - joint(square, &|i| i / levels),
    }
}

/// Entropy of the distribution with these counts, in bits.
fn entropy(counts: &[u64]) -> f64 {
    let total = counts.iter().sum::<u64>().max(1) as f64;
    let term = |&n: &u64| {
        let p = n as f64 / total;
        if n == 0 { 0.0 } else { -p * p.log2() }
    };
    counts.iter().map(term).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches swapped left and upper neighbors: here each pixel is its left neighbor plus one, and the upper neighbor
    /// is irrelevant.
    #[test]
    fn a_pixel_that_its_left_neighbor_determines() {
        let rows: Vec<u8> = [0u8, 2, 1, 3, 3, 0, 2, 1]
            .iter()
            .flat_map(|&start| (0..8).map(move |column| (start + column) % 4))
            .collect();
        let entropies = pixel_entropies([rows.as_slice()], 8, 4);
        assert!(entropies.given_left.abs() < 1e-12, "{entropies:?}");
        assert!(entropies.given_left_and_upper.abs() < 1e-12);
        assert!(entropies.alone > 1.9);
        let columns: Vec<u8> = (0..64).map(|i| rows[(i % 8) * 8 + i / 8]).collect();
        let entropies = pixel_entropies([columns.as_slice()], 8, 4);
        assert!(entropies.given_left > 0.5, "{entropies:?}");
        assert!(entropies.given_left_and_upper.abs() < 1e-12);
    }

    #[test]
    fn independent_levels_have_the_full_entropy() {
        let mut rng = crate::random::stream(1, "levels");
        let draws = crate::random::uniform_vector(&mut rng, 200_000, 0.0, 4.0);
        let image: Vec<u8> = draws.iter().map(|&v| v as u8).collect();
        let side = 447;
        let e = pixel_entropies([&image[..side * side]], side, 4);
        for h in [e.alone, e.given_left, e.given_left_and_upper] {
            assert!((h - 2.0).abs() < 1e-3, "{e:?}");
        }
    }
}
