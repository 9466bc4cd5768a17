//! Overlap of boxes.

/// A box by two corners: left, top, right, bottom.
pub type Corners = [f64; 4];

/// Width times height; 0 if a side is not positive.
pub fn area([left, top, right, bottom]: Corners) -> f64 {
    (right - left).max(0.0) * (bottom - top).max(0.0)
}

/// Area that two boxes share.
pub fn intersection(a: Corners, b: Corners) -> f64 {
    area([a[0].max(b[0]), a[1].max(b[1]), a[2].min(b[2]), a[3].min(b[3])])
}

/// Intersection over union; 0 for two empty boxes.
pub fn overlap(a: Corners, b: Corners) -> f64 {
    let shared = intersection(a, b);
    let union = area(a) + area(b) - shared;
    if union > 0.0 { shared / union } else { 0.0 }
}

/// Generalized intersection over union (Rezatofighi et al. 2019), from −1 to 1: intersection over union minus the share of the
/// smallest enclosing box that neither box covers. 0 if the enclosing box is empty.
pub fn generalized_overlap(a: Corners, b: Corners) -> f64 {
    let shared = intersection(a, b);
    let union = area(a) + area(b) - shared;
    let around = area([a[0].min(b[0]), a[1].min(b[1]), a[2].max(b[2]), a[3].max(b[3])]);
    if around <= 0.0 {
        return 0.0;
    }
    overlap(a, b) - (around - union) / around
}

/// Center, width and height to corners.
pub fn corners([x, y, width, height]: [f64; 4]) -> Corners {
    [x - 0.5 * width, y - 0.5 * height, x + 0.5 * width, y + 0.5 * height]
}

/// Corners to center, width and height.
pub fn center([left, top, right, bottom]: Corners) -> [f64; 4] {
    [0.5 * (left + right), 0.5 * (top + bottom), right - left, bottom - top]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_box() -> impl Strategy<Value = Corners> {
        (0.0..1.0, 0.0..1.0, 0.01..1.0, 0.01..1.0).prop_map(|(x, y, w, h)| [x, y, x + w, y + h])
    }

    proptest! {
        // Catches exchanged corners, and an overlap that is asymmetric or out of range.
        #[test]
        fn overlaps_are_symmetric_and_bounded(a in any_box(), b in any_box()) {
            let (plain, generalized) = (overlap(a, b), generalized_overlap(a, b));
            prop_assert!((0.0..=1.0).contains(&plain));
            prop_assert!(generalized > -1.0 && generalized <= plain + 1e-15);
            prop_assert_eq!(plain, overlap(b, a));
            prop_assert!((overlap(a, a) - 1.0).abs() < 1e-12);
            prop_assert!((generalized_overlap(a, a) - 1.0).abs() < 1e-12);
            let back = corners(center(a));
            prop_assert!(a.iter().zip(back).all(|(v, w)| (v - w).abs() < 1e-12));
        }
    }

    #[test]
    fn values_computed_manually() {
        // Two 2 × 2 squares share a unit square: 1/7. Neither covers 2 of the 9 units around them.
        let (a, b) = ([0.0, 0.0, 2.0, 2.0], [1.0, 1.0, 3.0, 3.0]);
        assert!((overlap(a, b) - 1.0 / 7.0).abs() < 1e-15);
        assert!((generalized_overlap(a, b) - (1.0 / 7.0 - 2.0 / 9.0)).abs() < 1e-15);
        assert_eq!(overlap([0.0; 4], [0.0; 4]), 0.0);
        assert_eq!(generalized_overlap([0.0; 4], [0.0; 4]), 0.0);
    }
}
