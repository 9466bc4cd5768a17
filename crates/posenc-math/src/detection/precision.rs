//! Average precision as COCO defines it (Lin et al. 2014), with its rules for crowds and areas.
//!
//! Average precision is computed per category, area range and overlap threshold t. The detections of all images are sorted by
//! falling score. Each detection is matched with the unmatched truth of its image that it overlaps most, if the overlap is at
//! least t. The precision at recall r is the largest precision at any recall ≥ r. Average precision is its mean over 101 recalls,
//! then over the thresholds 0.50, 0.55, …, 0.95 and over categories.
//!
//! Any number of detections may match a crowd. Matches with crowds, matches with truths outside of the area range, and unmatched
//! detections outside of the area range are ignored.

use super::boxes::{Corners, area, intersection};

const THRESHOLDS: usize = 10;
const RECALLS: usize = 101;
/// Limits of areas in square pixels: all, small, medium, large.
const AREAS: [[f64; 2]; 4] = [[0.0, 1e10], [0.0, 1024.0], [1024.0, 9216.0], [9216.0, 1e10]];

#[derive(Debug, Clone, PartialEq)]
pub struct Truth {
    /// Its category, from 0.
    pub category: usize,
    /// Its box, in pixels.
    pub corners: Corners,
    /// Its area in square pixels, which need not be that of the box.
    pub area: f64,
    /// Whether the box contains a crowd of objects of the category.
    pub crowd: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Detection {
    /// Its category, from 0.
    pub category: usize,
    /// Its box, in pixels.
    pub corners: Corners,
    /// Confidence of the prediction; larger is more confident.
    pub score: f64,
}

/// Annotations and predictions of an image.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Image {
    pub truths: Vec<Truth>,
    pub detections: Vec<Detection>,
}

/// Average precisions, from 0 to 1; NaN without annotated objects in the area range.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AveragePrecision {
    /// Mean over all thresholds (AP).
    pub mean: f64,
    /// At an overlap of 0.5 (AP50).
    pub at_50: f64,
    /// At an overlap of 0.75 (AP75).
    pub at_75: f64,
    /// AP of objects with an area of up to 32² = 1024 square pixels.
    pub small: f64,
    /// AP of objects with an area from 1024 to 96² = 9216 square pixels.
    pub medium: f64,
    /// AP of objects with an area of at least 9216 square pixels.
    pub large: f64,
}

#[derive(Clone, Copy, PartialEq)]
enum Fate {
    Found,
    Wrong,
    Ignored,
}

/// Average precision of the `limit` most confident detections of each image and category.
pub fn average_precision(images: &[Image], categories: usize, limit: usize) -> AveragePrecision {
    let mut sums = [[0.0; THRESHOLDS]; AREAS.len()];
    let mut counts = [0usize; AREAS.len()];
    for category in 0..categories {
        let parts: Vec<Part<'_>> =
            images.iter().map(|image| Part::new(image, category, limit)).collect();
        for (which, limits) in AREAS.iter().enumerate() {
            if let Some(per_threshold) = of_category(&parts, *limits) {
                counts[which] += 1;
                for (sum, value) in sums[which].iter_mut().zip(per_threshold) {
                    *sum += value;
                }
            }
        }
    }
    let at = |which: usize, threshold: usize| sums[which][threshold] / counts[which] as f64;
    let mean = |which: usize| sums[which].iter().sum::<f64>() / (counts[which] * THRESHOLDS) as f64;
    AveragePrecision {
        mean: mean(0),
        at_50: at(0, 0),
        at_75: at(0, 5),
        small: mean(1),
        medium: mean(2),
        large: mean(3),
    }
}

/// Truths and detections of one category in an image.
struct Part<'a> {
    truths: Vec<&'a Truth>,
    /// Sorted by falling score.
    detections: Vec<&'a Detection>,
    /// Overlap of each detection with each truth; for a crowd, the share of the detection's area that is inside it.
    overlaps: Vec<Vec<f64>>,
}

impl<'a> Part<'a> {
    fn new(image: &'a Image, category: usize, limit: usize) -> Self {
        let truths: Vec<&Truth> = image.truths.iter().filter(|t| t.category == category).collect();
        let mut detections: Vec<&Detection> =
            image.detections.iter().filter(|d| d.category == category).collect();
        // The sort is stable: detections with equal scores keep their order.
        detections.sort_by(|a, b| b.score.total_cmp(&a.score));
        detections.truncate(limit);
        let overlap = |d: &Detection, t: &Truth| {
            let shared = intersection(d.corners, t.corners);
            let own = area(d.corners);
            let whole = if t.crowd { own } else { own + area(t.corners) - shared };
            if whole > 0.0 { shared / whole } else { 0.0 }
        };
        let overlaps =
            detections.iter().map(|d| truths.iter().map(|t| overlap(d, t)).collect()).collect();
        Part { truths, detections, overlaps }
    }

    /// Whether each truth is ignored: crowds, and truths outside of the area range.
    fn ignored(&self, [least, most]: [f64; 2]) -> Vec<bool> {
        self.truths.iter().map(|t| t.crowd || t.area < least || t.area > most).collect()
    }

    fn fates(&self, limits: [f64; 2], threshold: f64) -> Vec<Fate> {
        let ignored = self.ignored(limits);
        let mut order: Vec<usize> = (0..self.truths.len()).collect();
        // Truths that count come first.
        order.sort_by_key(|&t| ignored[t]);
        let mut taken = vec![false; self.truths.len()];
        let fate = |(d, detection): (usize, &&Detection)| {
            let mut best = None;
            let mut least = threshold.min(1.0 - 1e-10);
            for &t in &order {
                if taken[t] && !self.truths[t].crowd {
                    continue;
                }
                // A match that counts is not replaced by one that is ignored.
                if best.is_some_and(|b: usize| !ignored[b]) && ignored[t] {
                    break;
                }
                if self.overlaps[d][t] >= least {
                    (best, least) = (Some(t), self.overlaps[d][t]);
                }
            }
            match best {
                Some(t) => {
                    taken[t] = true;
                    if ignored[t] { Fate::Ignored } else { Fate::Found }
                }
                None => {
                    let own = area(detection.corners);
                    let outside = own < limits[0] || own > limits[1];
                    if outside { Fate::Ignored } else { Fate::Wrong }
                }
            }
        };
        self.detections.iter().enumerate().map(fate).collect()
    }
}

/// Average precision of a category at every threshold; `None` if no truth counts.
fn of_category(parts: &[Part<'_>], limits: [f64; 2]) -> Option<[f64; THRESHOLDS]> {
    let count = |part: &Part<'_>| part.ignored(limits).iter().filter(|i| !**i).count();
    let positives: usize = parts.iter().map(count).sum();
    if positives == 0 {
        return None;
    }
    let scores: Vec<f64> =
        parts.iter().flat_map(|p| p.detections.iter().map(|d| d.score)).collect();
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
    let step = (0.95 - 0.5) / (THRESHOLDS - 1) as f64;
    let mut values = [0.0; THRESHOLDS];
    for (i, value) in values.iter_mut().enumerate() {
        let threshold = 0.5 + i as f64 * step;
        let fates: Vec<Fate> = parts.iter().flat_map(|p| p.fates(limits, threshold)).collect();
        let (mut found, mut wrong) = (0.0, 0.0);
        let mut curve: Vec<[f64; 2]> = Vec::with_capacity(order.len());
        for &d in &order {
            match fates[d] {
                Fate::Found => found += 1.0,
                Fate::Wrong => wrong += 1.0,
                Fate::Ignored => {}
            }
            let precision = if found > 0.0 { found / (found + wrong) } else { 0.0 };
            curve.push([found / positives as f64, precision]);
        }
        for d in (1..curve.len()).rev() {
            curve[d - 1][1] = curve[d - 1][1].max(curve[d][1]);
        }
        let at = |recall: f64| {
            let first = curve.partition_point(|point| point[0] < recall);
            curve.get(first).map_or(0.0, |point| point[1])
        };
        let recalls = (0..RECALLS).map(|r| r as f64 * 0.01);
        *value = recalls.map(at).sum::<f64>() / RECALLS as f64;
    }
    Some(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn truth(corners: Corners) -> Truth {
        Truth { category: 0, corners, area: area(corners), crowd: false }
    }

    fn detection(corners: Corners, score: f64) -> Detection {
        Detection { category: 0, corners, score }
    }

    const SQUARE: Corners = [0.0, 0.0, 50.0, 50.0];

    /// Catches crowds that count as missed objects, and detections of crowds that count as wrong.
    #[test]
    fn crowds_count_neither_way() {
        let mut crowd = truth([100.0, 0.0, 200.0, 100.0]);
        crowd.crowd = true;
        let inside = [120.0, 10.0, 160.0, 50.0];
        let image = Image {
            truths: vec![truth(SQUARE), crowd.clone()],
            detections: vec![
                detection(SQUARE, 0.5),
                detection(inside, 0.9),
                detection(inside, 0.8),
            ],
        };
        assert_eq!(average_precision(&[image], 1, 100).mean, 1.0);
        let alone = Image { truths: vec![crowd], detections: vec![detection(inside, 0.9)] };
        assert!(average_precision(&[alone], 1, 100).mean.is_nan());
    }

    #[test]
    fn average_precision_without_truths_is_nan() {
        let ap = average_precision(&[Image::default()], 3, 100);
        assert!(ap.mean.is_nan() && ap.at_50.is_nan());
    }
}
