//! Waves in several coordinates: joint random Fourier features on few distinct coordinates.

use faer::Mat;
use posenc_math::trigonometry::fill_sin_cos_turns;

use super::{check_indices, finite};
use crate::NetError;
use crate::error::same;
use posenc_math::vectorized::vectorized;

/// Features `[sin φ_k; cos φ_k] · scale` (first all sines, then all cosines) of the phases
/// φ_k(x) = Σ_a 2π f_k[a] x_a of h frequency vectors (`trading` Sec. 6: RFF of positions).
///
/// A phase is a sum over axes, so e^{iφ} is a product over axes. Tables store the waves of every axis at its
/// distinct coordinates, and the 2h features of a point are the complex product of one table column per axis.
/// The d × N matrix would take gigabytes for 1.8 million points. It is never formed as a whole, but expanded
/// tile by tile when it is multiplied.
#[derive(Debug, Clone)]
pub struct Waves {
    /// One table per axis, each with h frequencies.
    pub tables: Vec<WaveTable>,
    /// For each axis, the table column of every point.
    pub indices: Vec<Vec<u32>>,
    pub scale: f32,
}

/// Waves of one axis at n coordinates.
#[derive(Debug, Clone)]
pub struct WaveTable {
    /// sin(2π f_k x_i), h × n.
    pub sines: Mat<f32>,
    /// cos(2π f_k x_i), h × n.
    pub cosines: Mat<f32>,
}

impl WaveTable {
    /// Waves of h frequencies at n coordinates, computed in double precision with phases reduced to one turn, then
    /// rounded to single precision.
    pub fn new(frequencies: &[f64], coordinates: &[f64]) -> Self {
        let (h, n) = (frequencies.len(), coordinates.len());
        let (mut sines, mut cosines) = (Mat::zeros(h, n), Mat::zeros(h, n));
        let (mut s, mut c) = (vec![0.0; h], vec![0.0; h]);
        for (i, &x) in coordinates.iter().enumerate() {
            fill_sin_cos_turns(frequencies, x, &mut s, &mut c);
            for k in 0..h {
                (sines[(k, i)], cosines[(k, i)]) = (s[k] as f32, c[k] as f32);
            }
        }
        WaveTable { sines, cosines }
    }
}

impl Waves {
    pub(super) fn new(
        tables: Vec<WaveTable>,
        indices: Vec<Vec<u32>>,
        scale: f32,
    ) -> Result<Self, NetError> {
        let Some(first) = tables.first() else {
            return Err(NetError::Zero("the number of tables"));
        };
        let waves = first.sines.nrows();
        if waves == 0 {
            return Err(NetError::Zero("the number of frequencies"));
        }
        if !scale.is_finite() {
            return Err(NetError::NotFinite("the scale of the embedding"));
        }
        same("index lists of waves", indices.len(), tables.len())?;
        for (table, index) in tables.iter().zip(&indices) {
            let columns = table.sines.ncols();
            finite(&table.sines)?;
            finite(&table.cosines)?;
            same("frequencies of a table", table.sines.nrows(), waves)?;
            same("cosines of a table", table.cosines.nrows(), waves)?;
            same("coordinates of the cosines", table.cosines.ncols(), columns)?;
            same("points of an index list", index.len(), indices[0].len())?;
            check_indices("index beyond its table", index, columns)?;
        }
        Ok(Waves { tables, indices, scale })
    }

    /// Number h of waves; the input has 2h features.
    pub fn waves(&self) -> usize {
        self.tables[0].sines.nrows()
    }

    /// Entry `feature` of ψ at a point: the product of [`Waves::expand`] in double precision.
    pub(super) fn at(&self, feature: usize, point: usize) -> f32 {
        let h = self.waves();
        let (mut sine, mut cosine) = (0.0, 1.0);
        for (table, index) in self.tables.iter().zip(&self.indices) {
            let at = (feature % h, index[point] as usize);
            let (s, c) = (f64::from(table.sines[at]), f64::from(table.cosines[at]));
            (sine, cosine) = (sine * c + cosine * s, cosine * c - sine * s);
        }
        let value = if feature < h { sine } else { cosine };
        (value * f64::from(self.scale)) as f32
    }

    /// Writes the features of the points from `first` on, as columns of 2h numbers.
    pub(crate) fn expand(&self, first: usize, out: &mut [f32]) {
        let h = self.waves();
        for (i, column) in out.chunks_exact_mut(2 * h).enumerate() {
            let (sines, cosines) = column.split_at_mut(h);
            for (axis, (table, index)) in self.tables.iter().zip(&self.indices).enumerate() {
                let at = index[first + i] as usize;
                let (s, c) = (table.sines.col_as_slice(at), table.cosines.col_as_slice(at));
                if axis == 0 {
                    scaled(self.scale, s, sines);
                    scaled(self.scale, c, cosines);
                } else {
                    turn(s, c, sines, cosines);
                }
            }
        }
    }
}

fn scaled(a: f32, x: &[f32], y: &mut [f32]) {
    for (y, x) in y.iter_mut().zip(x) {
        *y = a * x;
    }
}

/// Rotates waves by the angles of other waves: e^{iα} ← e^{iα} e^{iβ}.
fn turn(s: &[f32], c: &[f32], sines: &mut [f32], cosines: &mut [f32]) {
    vectorized(
        #[inline(always)]
        || {
            for (((sine, cosine), s), c) in sines.iter_mut().zip(cosines.iter_mut()).zip(s).zip(c) {
                let (a, b) = (*sine, *cosine);
                *sine = a * c + b * s;
                *cosine = b * c - a * s;
            }
        },
    );
}
