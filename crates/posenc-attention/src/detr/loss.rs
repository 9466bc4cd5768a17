//! The matching of objects with queries, and the loss of DETR.

use burn::tensor::{Tensor, activation};
use posenc_math::detection::boxes::{corners, generalized_overlap};

use super::{GroundTruth, Predictions};
use crate::draw::constant;
use crate::loss::{integers, weighted_cross_entropy};
use crate::parameters::numbers;

/// Weight of the class term, in matching costs and in the loss, as in DETR.
const CLASS: f64 = 1.0;

/// Weight of the L1 distance of center, width and height.
const DISTANCE: f64 = 5.0;

/// Weight of 1 − generalized overlap (GIoU).
const OVERLAP: f64 = 2.0;

/// Weight of queries without an object in the class term.
const NOTHING: f32 = 0.1;

/// The minimum-cost matching, as pairs of object and query. If there are more objects than queries, some objects are left out.
fn assign(
    probabilities: &[f32],
    boxes: &[f32],
    targets: &[GroundTruth],
    classes: usize,
) -> Vec<(usize, usize)> {
    let queries = boxes.len() / 4;
    let mut costs = Vec::with_capacity(targets.len() * queries);
    for target in targets {
        for query in 0..queries {
            let p = f64::from(probabilities[query * (classes + 1) + target.class]);
            let place = [0, 1, 2, 3].map(|c| f64::from(boxes[4 * query + c]));
            let distance: f64 = place.iter().zip(target.place).map(|(a, b)| (a - b).abs()).sum();
            let overlap = generalized_overlap(corners(place), corners(target.place));
            let cost = -CLASS * p + DISTANCE * distance - OVERLAP * overlap;
            // Costs are NaN only if the model has diverged; its loss is then NaN, too.
            costs.push(if cost.is_finite() { cost } else { 1e9 });
        }
    }
    match lsap::solve(targets.len(), queries, &costs, false) {
        Ok((things, said_by)) => things.into_iter().zip(said_by).collect(),
        Err(_) => (0..targets.len().min(queries)).map(|i| (i, i)).collect(),
    }
}

/// Sum of the losses of all decoder layers, at least one: class, distance and overlap, the latter two averaged over objects.
pub fn loss(predictions: &[Predictions], targets: &[Vec<GroundTruth>]) -> Tensor<1> {
    let first = of_layer(&predictions[0], targets);
    predictions[1..].iter().fold(first, |sum, own| sum + of_layer(own, targets))
}

fn of_layer(predictions: &Predictions, targets: &[Vec<GroundTruth>]) -> Tensor<1> {
    let [b, q, scores] = predictions.classes.dims();
    let (classes, device) = (scores - 1, predictions.classes.device());
    let logarithms =
        activation::log_softmax(predictions.classes.clone().reshape([b * q, scores]), 1);
    let boxes = predictions.boxes.clone().reshape([b * q, 4]);
    let probabilities: Vec<f32> =
        numbers(logarithms.clone().detach()).into_iter().map(f32::exp).collect();
    let places = numbers(boxes.clone().detach());
    // The target class of each query, and the rows that are matched with an object.
    let mut wanted = vec![classes; b * q];
    let (mut rows, mut things) = (Vec::new(), Vec::new());
    let total: usize = targets.iter().map(Vec::len).sum();
    for (image, targets) in targets.iter().enumerate() {
        let own = image * q..(image + 1) * q;
        let p = &probabilities[own.start * scores..own.end * scores];
        let assigned = assign(p, &places[4 * own.start..4 * own.end], targets, classes);
        for (thing, query) in assigned {
            let (target, row) = (&targets[thing], own.start + query);
            wanted[row] = target.class;
            rows.push(row);
            things.extend(target.place.map(|v| v as f32));
        }
    }
    let weight = |&class: &usize| if class == classes { NOTHING } else { 1.0 };
    let shares: Vec<f32> = wanted.iter().map(weight).collect();
    let whole: f32 = shares.iter().sum();
    let shares = constant(shares, [b * q, 1], &device);
    let class = weighted_cross_entropy(logarithms, integers(wanted, &device), shares);
    let class = class.div_scalar(whole).mul_scalar(CLASS);
    if rows.is_empty() {
        return class;
    }
    let count = rows.len();
    let own = boxes.select(0, integers(rows, &device));
    let things = constant(things, [count, 4], &device);
    let distance = (own.clone() - things.clone()).abs().sum().div_scalar(total as f64);
    let overlap = generalized(own, things).neg().add_scalar(1.0).sum().div_scalar(total as f64);
    class + distance.mul_scalar(DISTANCE) + overlap.mul_scalar(OVERLAP)
}

/// Generalized intersection over union of pairs of boxes `[M, 4]`, given by center and size; `[M, 1]`.
fn generalized(a: Tensor<2>, b: Tensor<2>) -> Tensor<2> {
    let sides = |boxes: Tensor<2>| {
        let [m, _] = boxes.dims();
        let center = boxes.clone().slice([0..m, 0..2]);
        let half = boxes.slice([0..m, 2..4]).mul_scalar(0.5);
        (center.clone() - half.clone(), center + half)
    };
    let ((a_low, a_high), (b_low, b_high)) = (sides(a), sides(b));
    let area = |low: Tensor<2>, high: Tensor<2>| {
        let [m, _] = low.dims();
        let size = activation::relu(high - low);
        size.clone().slice([0..m, 0..1]) * size.slice([0..m, 1..2])
    };
    let shared =
        area(a_low.clone().max_pair(b_low.clone()), a_high.clone().min_pair(b_high.clone()));
    let whole = area(a_low.clone(), a_high.clone()) + area(b_low.clone(), b_high.clone());
    let union = whole - shared.clone();
    let around = area(a_low.min_pair(b_low), a_high.max_pair(b_high));
    // Predicted boxes may have an area of zero.
    shared / union.clone().add_scalar(1e-9) - (around.clone() - union) / around.add_scalar(1e-9)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a query that is matched with two objects, and an object that is not matched with the query on it. The tests of the public
    /// model compare matchings of a batch.
    #[test]
    fn objects_beyond_the_number_of_queries_are_left_out() {
        let boxes = [0.3, 0.3, 0.2, 0.2, 0.6, 0.6, 0.3, 0.3];
        let places = [[0.9, 0.9, 0.1, 0.1], [0.6, 0.6, 0.3, 0.3], [0.3, 0.3, 0.2, 0.2]];
        let targets = places.map(|place| GroundTruth { class: 0, place });
        let mut found = assign(&[0.25; 8], &boxes, &targets, 3);
        found.sort_unstable();
        assert_eq!(found, [(1, 1), (2, 0)]);
    }
}
