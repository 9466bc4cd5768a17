//! Compares average precision with pycocotools on examples that `benches/peers/coco_examples.py` generated and scored.

use posenc_math::detection::precision::{Detection, Image, Truth, average_precision};
use serde::Deserialize;

#[derive(Deserialize)]
struct Examples {
    pycocotools: String,
    examples: Vec<Example>,
}

#[derive(Deserialize)]
struct Example {
    images: usize,
    categories: usize,
    /// Image, category, box (left, top, width, height), area, crowd.
    truths: Vec<(usize, usize, [f64; 4], f64, u8)>,
    /// Image, category, box, score.
    detections: Vec<(usize, usize, [f64; 4], f64)>,
    expected: Expected,
}

#[derive(Deserialize)]
struct Expected {
    mean: f64,
    at_50: f64,
    at_75: f64,
    small: f64,
    medium: f64,
    large: f64,
}

/// Catches a difference in any step of the definition: crowds, areas, ties, limits of detections, recall points.
#[test]
fn average_precision_agrees_with_pycocotools() {
    let text = include_str!("../data/coco_examples.json");
    let all: Examples = serde_json::from_str(text).unwrap();
    assert_eq!(all.pycocotools, "2.0.11");
    for (number, example) in all.examples.iter().enumerate() {
        let mut images = vec![Image::default(); example.images];
        let corners = |[x, y, w, h]: [f64; 4]| [x, y, x + w, y + h];
        for &(image, category, bounds, area, crowd) in &example.truths {
            let truth =
                Truth { category: category - 1, corners: corners(bounds), area, crowd: crowd == 1 };
            images[image - 1].truths.push(truth);
        }
        for &(image, category, bounds, score) in &example.detections {
            let detection = Detection { category: category - 1, corners: corners(bounds), score };
            images[image - 1].detections.push(detection);
        }
        let own = average_precision(&images, example.categories, 100);
        let e = &example.expected;
        let pairs = [
            (own.mean, e.mean),
            (own.at_50, e.at_50),
            (own.at_75, e.at_75),
            (own.small, e.small),
            (own.medium, e.medium),
            (own.large, e.large),
        ];
        for (which, (own, expected)) in pairs.into_iter().enumerate() {
            // pycocotools returns −1 if no truth counts.
            let own = if own.is_nan() { -1.0 } else { own };
            assert!((own - expected).abs() < 1e-6, "example {number}, {which}: {own} {expected}");
        }
    }
}
