//! An encoding that is read from a file: a table with one row of features per coordinate.
//!
//! At a coordinate of the table, ψ is that row. Between two coordinates, features are interpolated linearly; beyond the first
//! and the last, they stay constant.

use std::sync::Arc;

use super::{
    Embedder, EmbedderError,
    kind::Kind,
    registry::{DefaultValue, Parameter, Rule, SCALING, Values},
};

const MAX_NAME: Rule = Rule::Text { longest: 200 };

pub(super) const KIND: Kind = Kind {
    name: "matrix",
    label: "Matrix from a file",
    symbol: "Matrix",
    source: "this repository",
    latex: r"\psi(x_i) = \Psi_{i,:}",
    example: &[("file", DefaultValue::Text("features.npy"))],
    parameters: &[
        Parameter::required(
            "file",
            MAX_NAME,
            "file with the N × d features (npy, npz or safetensors), relative to the experiment file; with H × W × d features, for \
             `network-nd` with `directions: joint`, of the pixels of an image",
        ),
        Parameter::optional(
            "array",
            MAX_NAME,
            "name of the features in an npz or safetensors file",
        ),
        Parameter::optional(
            "coordinates",
            MAX_NAME,
            "file with the N coordinates, each in [0, 1); without it, row i is at i/N",
        ),
        Parameter::optional(
            "coordinates_array",
            MAX_NAME,
            "name of the coordinates in an npz or safetensors file",
        ),
        SCALING,
    ],
    color: Some([0.74, 0.12, 230.0]),
    example_table: Some(example),
    ..Kind::built_by(build)
};

/// Coordinates closer than this count as equal. Rounding k/n to single precision changes it by less.
const TOLERANCE: f64 = 1e-7;

/// Features of an encoding at coordinates.
#[derive(Clone, Debug, PartialEq)]
pub struct FeatureTable {
    coordinates: Vec<f64>,
    features: Vec<f64>,
    dimension: usize,
    plane: Option<[usize; 2]>,
    digest: String,
}

impl FeatureTable {
    /// Builds a table from features in C order, with one row per coordinate, and sorts the rows by coordinate.
    ///
    /// `digest` identifies the features in cache keys and in reports: equal features have equal digests.
    ///
    /// # Errors
    ///
    /// A message for no rows or features, a length that is no multiple of the number of rows, a coordinate outside [0, 1), two
    /// equal coordinates, or a feature that is not finite.
    pub fn new(
        coordinates: Vec<f64>,
        features: Vec<f64>,
        digest: impl Into<String>,
    ) -> Result<Self, String> {
        let n = coordinates.len();
        if n == 0 || features.is_empty() {
            return Err("there are no features".to_owned());
        }
        if !features.len().is_multiple_of(n) {
            return Err(format!("{} features cannot be split into {n} equal rows", features.len()));
        }
        if let Some((i, x)) = coordinates.iter().enumerate().find(|(_, x)| !(0.0..1.0).contains(*x))
        {
            return Err(format!("coordinate {i} is {x}; allowed: from 0 to below 1"));
        }
        let dimension = features.len() / n;
        if let Some(place) = features.iter().position(|feature| !feature.is_finite()) {
            return Err(format!(
                "feature {} of row {} is {}; allowed: finite numbers",
                place % dimension,
                place / dimension,
                features[place]
            ));
        }
        let mut order: Vec<usize> = (0..n).collect();
        order.sort_by(|&a, &b| coordinates[a].total_cmp(&coordinates[b]));
        let sorted: Vec<f64> = order.iter().map(|&i| coordinates[i]).collect();
        if let Some(i) = sorted.windows(2).position(|pair| pair[1] - pair[0] <= TOLERANCE) {
            return Err(format!(
                "rows {} and {} have the same coordinate, {}",
                order[i].min(order[i + 1]),
                order[i].max(order[i + 1]),
                sorted[i]
            ));
        }
        let rows = order.iter().flat_map(|&i| &features[i * dimension..][..dimension]);
        Ok(Self {
            features: rows.copied().collect(),
            coordinates: sorted,
            dimension,
            plane: None,
            digest: digest.into(),
        })
    }

    /// The same features, whose rows are the positions of a plane in reading order.
    #[must_use]
    pub fn on_plane(self, sides: [usize; 2]) -> Self {
        Self { plane: Some(sides), ..self }
    }

    /// Lengths of the two axes of features on a plane.
    pub fn plane(&self) -> Option<[usize; 2]> {
        self.plane
    }

    pub fn rows(&self) -> usize {
        self.coordinates.len()
    }

    pub fn dimension(&self) -> usize {
        self.dimension
    }

    /// The digest that identifies the features.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// The row at or before `x`, and how far `x` is from it to the next one, in [0, 1).
    fn place(&self, x: f64) -> (usize, f64) {
        let after = self.coordinates.partition_point(|c| *c <= x + TOLERANCE);
        let Some(row) = after.checked_sub(1) else { return (0, 0.0) };
        let first = self.coordinates[row];
        match self.coordinates.get(after) {
            Some(next) if x - first > TOLERANCE => (row, (x - first) / (next - first)),
            _ => (row, 0.0),
        }
    }
}

struct Matrix(Arc<FeatureTable>);

impl Embedder for Matrix {
    fn dimension(&self) -> usize {
        self.0.dimension
    }

    fn plane(&self) -> Option<[usize; 2]> {
        self.0.plane
    }

    fn embed_columns(&self, x: f64, first: usize, out: &mut [f64]) {
        if !x.is_finite() {
            out.fill(f64::NAN);
            return;
        }
        let (row, fraction) = self.0.place(x);
        let columns = |row: usize| &self.0.features[row * self.0.dimension + first..][..out.len()];
        let here = columns(row);
        if fraction == 0.0 {
            out.copy_from_slice(here);
            return;
        }
        let next = columns(row + 1);
        for ((out, here), next) in out.iter_mut().zip(here).zip(next) {
            *out = here + fraction * (next - here);
        }
    }
}

fn build(values: &Values, _: &mut rand_chacha::ChaCha8Rng) -> super::registry::Built {
    match values.table() {
        Some(table) => Ok(Box::new(Matrix(Arc::clone(table)))),
        None => Err(EmbedderError::conflict(
            KIND.name,
            "file",
            "this kind works only in experiment files, because it reads features from a file; move the embedder to one",
        )),
    }
}

/// Bumps around `d` centers, at 256 coordinates.
fn example(d: usize) -> FeatureTable {
    const ROWS: usize = 256;
    let coordinates = super::line(ROWS);
    let centers = super::line(d);
    let bump = |x: f64, t: f64| 1.0 / (1.0 + ((x - t) / 0.02).powi(2));
    let features = coordinates.iter().flat_map(|&x| centers.iter().map(move |&t| bump(x, t)));
    let features = features.collect();
    let digest = format!("example of {d} features");
    FeatureTable { coordinates, features, dimension: d, plane: None, digest }
}

#[cfg(test)]
mod tests {
    use super::super::{EmbedderSpec, build, validate};
    use super::*;
    use crate::random::stream;

    fn table(coordinates: &[f64], features: &[f64]) -> Result<FeatureTable, String> {
        FeatureTable::new(coordinates.to_vec(), features.to_vec(), "numbers")
    }

    fn features(table: FeatureTable, x: f64) -> Vec<f64> {
        let spec = EmbedderSpec::new("matrix").text("file", "f.npy").with_table(table);
        let embedder = build(&spec, &mut stream(0, "matrix")).unwrap();
        let mut row = vec![0.0; embedder.dimension()];
        embedder.embed(x, &mut row);
        row
    }

    /// Catches rows that stay in the order of the file, a wrong neighbor, and extrapolation.
    #[test]
    fn rows_belong_to_their_coordinates_and_features_are_linear_between_them() {
        let table = table(&[0.5, 0.0, 0.25], &[5.0, 50.0, 1.0, 10.0, 3.0, 30.0]).unwrap();
        for (x, expected) in [
            (0.0, [1.0, 10.0]),
            (0.25, [3.0, 30.0]),
            (f64::from(0.25_f32 + 1e-8), [3.0, 30.0]),
            (0.5, [5.0, 50.0]),
            (0.125, [2.0, 20.0]),
            (0.4375, [4.5, 45.0]),
            (-1.0, [1.0, 10.0]),
            (0.9, [5.0, 50.0]),
        ] {
            assert_eq!(features(table.clone(), x), expected, "{x}");
        }
        assert!(features(table, f64::NAN).iter().all(|feature| feature.is_nan()));
    }

    /// Catches a table that would divide by zero or train on NaN.
    #[test]
    fn tables_without_one_finite_row_per_coordinate_are_refused() {
        for (coordinates, features, part) in [
            (&[][..], &[][..], "no features"),
            (&[0.0], &[], "no features"),
            (&[0.0, 0.5], &[1.0, 2.0, 3.0], "3 features cannot be split into 2 equal rows"),
            (&[0.0, 1.0], &[1.0, 2.0], "coordinate 1 is 1"),
            (&[f64::NAN, 0.5], &[1.0, 2.0], "coordinate 0 is NaN"),
            (&[0.5, 0.2, 0.5], &[1.0, 2.0, 3.0], "rows 0 and 2"),
            (&[0.0, 0.5], &[1.0, 2.0, 3.0, f64::INFINITY], "feature 1 of row 1 is inf"),
        ] {
            let error = table(coordinates, features).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }

    /// Catches a cache key that ignores the features, or that depends on the name of their file.
    #[test]
    fn the_cache_key_depends_on_the_features_and_not_on_the_file() {
        let spec = |file: &str, digest: &str| {
            let table = FeatureTable::new(vec![0.0], vec![1.0], digest).unwrap();
            EmbedderSpec::new("matrix").text("file", file).with_table(table).canonical()
        };
        assert_eq!(spec("a.npy", "1"), spec("b.npz", "1"));
        assert_ne!(spec("a.npy", "1"), spec("a.npy", "2"));
    }

    /// Catches a command that would use an encoding without its table.
    #[test]
    fn a_matrix_without_its_table_is_not_built() {
        let spec = EmbedderSpec::new("matrix").text("file", "f.npy");
        assert_eq!(validate(&spec), Ok(()));
        let error = build(&spec, &mut stream(0, "matrix")).err().unwrap();
        assert!(error.to_string().contains("experiment file"), "{error}");
    }
}
