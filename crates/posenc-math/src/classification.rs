//! Accuracy and macro-averaged F₁ of a classifier.
//!
//! With the true positives TP, false positives FP and false negatives FN of a class, $F_1 = 2\,TP/(2\,TP + FP + FN)$. The macro
//! mean gives every class the same weight, so a model that always predicts the most frequent class scores low.

/// Share of entries that are equal; NaN for empty slices.
pub fn accuracy(truth: &[usize], predicted: &[usize]) -> f64 {
    let correct = truth.iter().zip(predicted).filter(|(a, b)| a == b).count();
    correct as f64 / truth.len().min(predicted.len()) as f64
}

/// Mean of F₁ over the classes that occur in `truth` or `predicted`, like scikit-learn's `f1_score(average="macro")`; NaN for
/// empty slices.
pub fn macro_f1(truth: &[usize], predicted: &[usize]) -> f64 {
    let classes = truth.iter().chain(predicted).max().map_or(0, |most| most + 1);
    // Per class: correct predictions, entries in `truth`, entries in `predicted`.
    let mut counts = vec![[0usize; 3]; classes];
    for (&a, &b) in truth.iter().zip(predicted) {
        counts[a][0] += usize::from(a == b);
        counts[a][1] += 1;
        counts[b][2] += 1;
    }
    let occurring = counts.iter().filter(|[_, actual, predicted]| actual + predicted > 0);
    let scores = occurring
        .map(|[correct, actual, predicted]| (2 * correct) as f64 / (actual + predicted) as f64);
    let scores: Vec<f64> = scores.collect();
    scores.iter().sum::<f64>() / scores.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a mean weighted by counts, a class that is left out, and precision in place of F₁. The first example is from
    /// scikit-learn's documentation; in the second, one class occurs only in the predictions.
    #[test]
    fn macro_f1_of_worked_examples() {
        let (truth, predicted) = ([0, 1, 2, 0, 1, 2], [0, 2, 1, 0, 0, 1]);
        assert!((macro_f1(&truth, &predicted) - 4.0 / 15.0).abs() < 1e-15);
        assert!((accuracy(&truth, &predicted) - 1.0 / 3.0).abs() < 1e-15);
        // Class 5: 3 true, 3 predicted, 2 correct. Class 7: 1 true, 0 predicted. Class 1: 0 true, 1 predicted.
        let (truth, predicted) = ([5, 5, 5, 7], [5, 5, 1, 5]);
        assert!((macro_f1(&truth, &predicted) - (4.0 / 6.0) / 3.0).abs() < 1e-15);
        assert_eq!(macro_f1(&[3, 4], &[3, 4]), 1.0);
        assert!(macro_f1(&[], &[]).is_nan() && accuracy(&[], &[]).is_nan());
    }
}
