//! Which numbers are fitted: lines of images, and which of their samples train and test.

use std::collections::HashMap;

use anyhow::{Context as _, Result, ensure};
use posenc_data::Image;
use posenc_math::random::{gaussian_vector, sample_without_replacement};
use rand_chacha::ChaCha8Rng;

use super::{Lines, Network1d, TestSamples};
use crate::streams::shared_stream;
use posenc_harness::protocol::Context;

/// Side of the array of noise that stands for an image where a group has no data.
const NOISE_SIDE: usize = 512;

/// One signal.
pub struct Line {
    /// Place of its unit among those that run.
    pub unit: usize,
    /// Name in records.
    pub name: String,
    /// Names its random streams. Neither its place among other lines nor how many there are enters:
    /// a reduced profile then does some of the runs of the full one, with the same bits.
    pub label: String,
    /// Its n values.
    pub values: Vec<f64>,
}

/// All lines of the units that run, unit after unit.
pub fn lines(context: &Context<'_>, settings: &Network1d) -> Result<Vec<Line>> {
    let mut lines = Vec::new();
    let mut add = |unit: usize, signal: &str, prefix: &str, image: &Image| -> Result<()> {
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
            // Independent standard-normal numbers in the shape of an image.
            let (width, height) = (NOISE_SIDE, NOISE_SIDE);
            let pixels = gaussian_vector(&mut shared_stream(context, "noise"), width * height);
            let name = "noise".to_owned();
            add(0, "noise", "", &Image { name, width, height, channels: 1, pixels })?;
        }
        Some(data) => {
            let images = context.data.load(&data.set)?;
            // By the whole set: a profile with fewer images must not rename its signals.
            let several = images.signals.len() > 1;
            for (index, unit) in context.units.iter().enumerate() {
                let image = images.signals.get(unit.signal_index).with_context(|| {
                    format!("data set `{}` has no signal {}", data.set, unit.signal)
                })?;
                let prefix = if several { format!("{} ", unit.signal) } else { String::new() };
                add(index, &unit.signal, &prefix, image)?;
            }
        }
    }
    let n = lines.first().map_or(0, |l| l.values.len());
    ensure!(n >= 2, "lines of {n} samples; at least 2 are needed to train on one and test on one");
    if let Some(other) = lines.iter().find(|l| l.values.len() != n) {
        // All runs share one embedding.
        let length = other.values.len();
        anyhow::bail!("{} has {length} samples, others {n}; use square images", other.name);
    }
    Ok(lines)
}

/// The lines of one image with their names: rows, columns, then those that are drawn.
fn pick(
    image: &Image,
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
        // Rows and columns have streams of their own: fewer of them are then some of the same.
        Ok(sample_without_replacement(&mut draw(what), length, wanted.random))
    };
    rows.extend(drawn("rows", image.height)?);
    columns.extend(drawn("columns", image.width)?);
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
    /// What only is measured; may be empty.
    pub test: Vec<usize>,
}

/// How a line of `n` samples is split at sample step `step`.
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
    fn image() -> Image {
        let pixels = (0..36).map(|i| (i / 6 * 10 + i % 6) as f64).collect();
        Image { name: "i".into(), width: 6, height: 6, channels: 1, pixels }
    }

    fn draw(purpose: &str) -> ChaCha8Rng {
        stream(3, purpose)
    }

    fn names(wanted: &Lines) -> Vec<String> {
        pick(&image(), wanted, &draw).unwrap().into_iter().map(|(name, _)| name).collect()
    }

    /// Catches rows that are mistaken for columns and a repeated row that loses its own name, with
    /// which its runs would start from the weights of the first.
    #[test]
    fn lines_are_cut_and_named() {
        let rows = Some(NumberList(vec![4.0, 2.0, 4.0]));
        let wanted = Lines { rows, columns: Some(NumberList(vec![1.0])), random: 0 };
        assert_eq!(names(&wanted), ["row 4", "row 2", "row 4 (2)", "column 1"]);
        let picked = pick(&image(), &wanted, &draw).unwrap();
        assert_eq!(picked[0].1, [40.0, 41.0, 42.0, 43.0, 44.0, 45.0]);
        assert_eq!(picked[0].1, picked[2].1);
        assert_eq!(picked[3].1, [1.0, 11.0, 21.0, 31.0, 41.0, 51.0]);
    }

    /// Catches a reduced profile that draws other lines than the full one.
    #[test]
    fn fewer_random_lines_are_some_of_the_same() {
        let random = |k| names(&Lines { rows: None, columns: None, random: k });
        let (few, many) = (random(2), random(4));
        assert_eq!((few.len(), many.len()), (4, 8));
        assert!(few.iter().all(|name| many.contains(name)), "{few:?} of {many:?}");
        assert_eq!(random(6).len(), 12);
        let too_many = Lines { rows: None, columns: None, random: 7 };
        let message = pick(&image(), &too_many, &draw).unwrap_err().to_string();
        assert!(message.contains("lines.random") && message.contains("6 rows"), "{message}");
    }

    /// Catches a line that is not there and a message that does not say which.
    #[test]
    fn a_row_outside_the_image_is_named() {
        let wanted = Lines { rows: Some(NumberList(vec![6.0])), columns: None, random: 0 };
        let message = pick(&image(), &wanted, &draw).unwrap_err().to_string();
        assert!(message.contains("row 6"), "{message}");
    }

    /// Catches off-by-one splits: the counts are the papers'.
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
        // A step beyond half the line leaves one sample, one beyond the line no test sample.
        assert_eq!(
            split(4, 3, TestSamples::Midpoints),
            LineSplit { train: vec![0], test: vec![3] }
        );
        assert_eq!(split(4, 9, TestSamples::Midpoints), LineSplit { train: vec![0], test: vec![] });
    }
}
