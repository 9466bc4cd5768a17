//! Lines of images, and their training and test samples.

use std::collections::HashMap;

use anyhow::{Context as _, Result, ensure};
use posenc_data::Signal;
use posenc_math::random::{gaussian_vector, sample_without_replacement};
use rand_chacha::ChaCha8Rng;

use super::{Lines, Network1d, TestSamples};
use crate::streams::shared_stream;
use posenc_harness::protocol::Context;

/// Side of the noise image that a group without data uses.
const NOISE_SIDE: usize = 512;

pub struct Line {
    /// Index of its unit in the job.
    pub unit: usize,
    pub name: String,
    /// Name of its random streams. It does not depend on other lines, so that a reduced profile repeats runs of the full profile with the
    /// same bits.
    pub label: String,
    /// Its n values.
    pub values: Vec<f64>,
}

/// All lines of the units of the job, unit after unit.
pub fn lines(context: &Context<'_>, settings: &Network1d) -> Result<Vec<Line>> {
    let mut lines = Vec::new();
    let mut add = |unit: usize, signal: &str, prefix: &str, image: &Signal| -> Result<()> {
        let draw = |purpose: &str| shared_stream(context, &format!("{purpose} {signal}"));
        for (name, mut values) in pick(image, &settings.lines, &draw)? {
            for value in &mut values {
                *value *= settings.value_scale;
            }
            let label = format!("{signal} {name}");
            lines.push(Line { unit, name: format!("{prefix}{name}"), label, values });
        }
        Ok(())
    };
    match &context.job.group.data {
        None => {
            // An image of independent standard normal numbers.
            let sides = vec![NOISE_SIDE; 2];
            let mut random = shared_stream(context, "noise");
            let values = gaussian_vector(&mut random, NOISE_SIDE * NOISE_SIDE);
            add(0, "noise", "", &Signal { name: "noise".into(), sides, channels: 1, values })?;
        }
        Some(data) => {
            let images = context.data.load_images(&data.set)?;
            // The whole set counts, so that a profile with fewer images has the same names.
            let several = images.len() > 1;
            for (index, unit) in context.units.iter().enumerate() {
                let image = images.get(unit.signal_index).with_context(|| {
                    format!("data set `{}` has no signal {}", data.set, unit.signal)
                })?;
                let prefix = if several { format!("{} ", unit.signal) } else { String::new() };
                add(index, &unit.signal, &prefix, image)?;
            }
        }
    }
    let n = lines.first().map_or(0, |l| l.values.len());
    ensure!(
        n >= 2,
        "lines have {n} samples; they need at least 2, one for training and one for testing"
    );
    if let Some(other) = lines.iter().find(|l| l.values.len() != n) {
        // All runs share one embedding, so lines must have equal lengths.
        let length = other.values.len();
        anyhow::bail!("{} has {length} samples, others {n}; use square images", other.name);
    }
    Ok(lines)
}

/// The lines of one image with their names. Rows precede columns, and listed lines precede sampled ones.
fn pick(
    image: &Signal,
    wanted: &Lines,
    draw: &dyn Fn(&str) -> ChaCha8Rng,
) -> Result<Vec<(String, Vec<f64>)>> {
    let listed = |list: &Option<posenc_experiments::schema::NumberList>| -> Vec<usize> {
        list.iter().flat_map(|n| n.0.iter().map(|v| *v as usize)).collect()
    };
    let (mut rows, mut columns) = (listed(&wanted.rows), listed(&wanted.columns));
    let drawn = |what: &str, length: usize| -> Result<Vec<usize>> {
        ensure!(
            wanted.random <= length,
            "`lines.random` is {}, but image {} has {length} {what}",
            wanted.random,
            image.name
        );
        // Rows and columns have separate streams, so that a smaller sample is a subset of a larger one.
        Ok(sample_without_replacement(&mut draw(what), length, wanted.random))
    };
    rows.extend(drawn("rows", image.height())?);
    columns.extend(drawn("columns", image.width())?);
    let gray = image.luminance();
    let mut named = Vec::with_capacity(rows.len() + columns.len());
    let mut seen: HashMap<String, usize> = HashMap::new();
    let values = [("row", &rows, gray.rows(&rows)?), ("column", &columns, gray.columns(&columns)?)];
    for (what, indices, lines) in values {
        for (index, line) in indices.iter().zip(lines) {
            let name = format!("{what} {index}");
            let times = seen.entry(name.clone()).or_default();
            *times += 1;
            let name = if *times == 1 { name } else { format!("{name} ({times})") };
            named.push((name, line));
        }
    }
    Ok(named)
}

/// Samples of a line, by index.
#[derive(Debug, PartialEq)]
pub struct LineSplit {
    /// 0, 2s, 4s, …
    pub train: Vec<usize>,
    /// Test samples; may be empty.
    pub test: Vec<usize>,
}

/// Splits a line of `n` samples at sample step `step`.
pub fn split(n: usize, step: usize, test: TestSamples) -> LineSplit {
    LineSplit {
        train: (0..n).step_by(2 * step).collect(),
        test: match test {
            TestSamples::Midpoints => (step..n).step_by(2 * step).collect(),
            TestSamples::All => (0..n).collect(),
        },
    }
}

#[cfg(test)]
mod tests {
    use posenc_experiments::schema::NumberList;
    use posenc_math::random::stream;

    use super::*;

    /// 6 rows of 6 samples; the value of row y, column x is 10 y + x.
    fn image() -> Signal {
        let values = (0..36).map(|i| (i / 6 * 10 + i % 6) as f64).collect();
        Signal { name: "i".into(), sides: vec![6, 6], channels: 1, values }
    }

    fn draw(purpose: &str) -> ChaCha8Rng {
        stream(3, purpose)
    }

    fn names(wanted: &Lines) -> Vec<String> {
        pick(&image(), wanted, &draw).unwrap().into_iter().map(|(name, _)| name).collect()
    }

    /// Catches rows that are mistaken for columns, and a repeated row with the name of the first, whose runs would start from the same
    /// weights.
    #[test]
    fn lines_are_extracted_and_named() {
        let rows = Some(NumberList(vec![4.0, 2.0, 4.0]));
        let wanted = Lines { rows, columns: Some(NumberList(vec![1.0])), random: 0 };
        assert_eq!(names(&wanted), ["row 4", "row 2", "row 4 (2)", "column 1"]);
        let picked = pick(&image(), &wanted, &draw).unwrap();
        assert_eq!(picked[0].1, [40.0, 41.0, 42.0, 43.0, 44.0, 45.0]);
        assert_eq!(picked[0].1, picked[2].1);
        assert_eq!(picked[3].1, [1.0, 11.0, 21.0, 31.0, 41.0, 51.0]);
    }

    /// Catches a reduced profile that samples other lines than the full one.
    #[test]
    fn fewer_random_lines_are_a_subset() {
        let random = |k| names(&Lines { rows: None, columns: None, random: k });
        let (few, many) = (random(2), random(4));
        assert_eq!((few.len(), many.len()), (4, 8));
        assert!(few.iter().all(|name| many.contains(name)), "{few:?} of {many:?}");
        assert_eq!(random(6).len(), 12);
        let too_many = Lines { rows: None, columns: None, random: 7 };
        let message = pick(&image(), &too_many, &draw).unwrap_err().to_string();
        assert!(message.contains("lines.random") && message.contains("6 rows"), "{message}");
    }

    /// Catches a row outside the image that is accepted or that the message does not name.
    #[test]
    fn a_row_outside_the_image_is_named() {
        let wanted = Lines { rows: Some(NumberList(vec![6.0])), columns: None, random: 0 };
        let message = pick(&image(), &wanted, &draw).unwrap_err().to_string();
        assert!(message.contains("row 6"), "{message}");
    }

    /// Catches off-by-one errors in splits; the counts are those of the papers.
    #[test]
    fn splits_have_the_sizes_of_the_paper() {
        let counts = |step| {
            let split = split(512, step, TestSamples::Midpoints);
            (split.train.len(), split.test.len())
        };
        let expected = [
            (1, 256, 256),
            (2, 128, 128),
            (3, 86, 85),
            (4, 64, 64),
            (6, 43, 43),
            (8, 32, 32),
            (11, 24, 23),
            (16, 16, 16),
        ];
        for (step, train, test) in expected {
            assert_eq!(counts(step), (train, test), "step {step}");
        }
        let three = split(8, 3, TestSamples::Midpoints);
        assert_eq!(three, LineSplit { train: vec![0, 6], test: vec![3] });
        assert_eq!(split(4, 1, TestSamples::All).test, [0, 1, 2, 3]);
        // A step above n/2 leaves one training sample; a step above n leaves no test sample.
        assert_eq!(
            split(4, 3, TestSamples::Midpoints),
            LineSplit { train: vec![0], test: vec![3] }
        );
        assert_eq!(split(4, 9, TestSamples::Midpoints), LineSplit { train: vec![0], test: vec![] });
    }
}
