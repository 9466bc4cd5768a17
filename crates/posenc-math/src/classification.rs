//! How good a choice of classes is.
//!
//! With TP, FP and FN the counts of one class, $F_1 = 2\,TP/(2\,TP + FP + FN)$. The macro mean gives every class the same
//! weight, so that a model which only says the commonest one is not good.

/// Share of the places where both are the same; NaN without places.
///
/// ```
/// use posenc_math::classification::accuracy;
/// assert_eq!(accuracy(&[0, 1, 2, 2], &[0, 2, 2, 2]), 0.75);
/// ```
pub fn accuracy(truth: &[usize], said: &[usize]) -> f64 {
    let right = truth.iter().zip(said).filter(|(a, b)| a == b).count();
    right as f64 / truth.len().min(said.len()) as f64
}

/// Mean of F₁ over the classes that occur in either, as scikit-learn's `f1_score(average="macro")`; NaN without places.
pub fn macro_f1(truth: &[usize], said: &[usize]) -> f64 {
    let classes = truth.iter().chain(said).max().map_or(0, |most| most + 1);
    // Of each class: right, true, said.
    let mut counts = vec![[0usize; 3]; classes];
    for (&a, &b) in truth.iter().zip(said) {
        counts[a][0] += usize::from(a == b);
        counts[a][1] += 1;
        counts[b][2] += 1;
    }
    let occurring = counts.iter().filter(|[_, of_truth, of_said]| of_truth + of_said > 0);
    let scores = occurring
        .map(|[right, of_truth, of_said]| (2 * right) as f64 / (of_truth + of_said) as f64);
    let scores: Vec<f64> = scores.collect();
    scores.iter().sum::<f64>() / scores.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Would catch a mean that is weighted by counts, a class that is left out, precision mistaken for F₁: the example of
    /// scikit-learn's documentation, and one with a class that is only said.
    #[test]
    fn macro_f1_of_worked_examples() {
        let (truth, said) = ([0, 1, 2, 0, 1, 2], [0, 2, 1, 0, 0, 1]);
        assert!((macro_f1(&truth, &said) - 4.0 / 15.0).abs() < 1e-15);
        assert!((accuracy(&truth, &said) - 1.0 / 3.0).abs() < 1e-15);
        // Class 5: two right of three true, three said; class 7: nothing of one; class 1 is never true.
        let (truth, said) = ([5, 5, 5, 7], [5, 5, 1, 5]);
        assert!((macro_f1(&truth, &said) - (4.0 / 6.0) / 3.0).abs() < 1e-15);
        assert_eq!(macro_f1(&[3, 4], &[3, 4]), 1.0);
        assert!(macro_f1(&[], &[]).is_nan() && accuracy(&[], &[]).is_nan());
    }
}
