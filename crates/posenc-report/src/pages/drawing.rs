//! The four plots of an embedder.

use anyhow::{Result, bail};
use posenc_math::embedder::{self, Embedder, EmbedderSpec, ParameterValue, find};
use posenc_math::random::stream;
use posenc_math::spectrum::{dot, line_stable_rank, singular_values};

use crate::colors::{Rgb, categorical, family, shade};
use crate::plot::{AxisSpec, Figure, Heatmap, Labels, Panel, PanelData, Sample, Series};

/// Number of features, if it is a parameter. It has many divisors.
pub const DIMENSION: usize = 240;
/// Number of coordinates along an axis of the map.
const MAP: usize = 32;
/// Number of coordinates for the singular values.
const ROWS: usize = 60;
/// Singular values below this fraction of the largest are omitted.
const ROUNDING: f64 = 1e-13;
const PLACES: usize = 241;
/// Sample counts. They divide the dimension, so the rows of a periodic profile are shifts of one row.
const SAMPLES: [usize; 12] = [2, 4, 8, 12, 16, 20, 24, 30, 40, 60, 80, 120];

/// The plots of the embedder that `spec` builds; those of its spectrum in the color of its kind.
pub fn figure(name: &str, kind: &str, spec: &EmbedderSpec) -> Result<Figure> {
    let mut spec = spec.clone();
    if find(kind).is_some_and(|k| k.parameter("boundary").is_some()) {
        spec.parameters.insert("boundary".into(), ParameterValue::from("periodic"));
    }
    let embedder = embedder::build(&spec, &mut stream(0, &format!("gallery {kind}")))?;
    let family = family(Some(kind), name);
    let own = shade(family, 0, 1);
    Ok(Figure {
        alt: format!("{name}: features; inner products; singular values; stable rank"),
        heading: String::new(),
        labels: Labels::Legend,
        panels: vec![
            features(&*embedder),
            products(&*embedder)?,
            spectrum(&*embedder, own)?,
            ranks(&*embedder, own)?,
        ],
    })
}

fn axis(label: &str) -> AxisSpec {
    AxisSpec { label: label.into(), ..AxisSpec::default() }
}

fn curve(name: String, color: Rgb, points: Vec<(f64, f64)>) -> Series {
    let points = points.into_iter().map(|(x, y)| Sample { x, y, half_width: None }).collect();
    Series { name, color, points, ..Series::default() }
}

/// Three features over the interval $[0, 1]$.
fn features(embedder: &dyn Embedder) -> Panel {
    let d = embedder.dimension();
    let mut columns = vec![d / 4, d / 2, 3 * d / 4];
    columns.dedup();
    let of = |(i, &j): (usize, &usize)| {
        let value = |k: usize| {
            let x = k as f64 / (PLACES - 1) as f64;
            let mut out = [0.0];
            embedder.embed_columns(x, j, &mut out);
            (x, out[0])
        };
        curve(format!("j = {j}"), categorical(i), (0..PLACES).map(value).collect())
    };
    Panel {
        title: "features".into(),
        x: axis("coordinate x"),
        y: axis("feature ψⱼ(x)"),
        data: PanelData::Series(columns.iter().enumerate().map(of).collect()),
    }
}

/// ψ(x₁)·ψ(x₂)/(‖ψ(x₁)‖ ‖ψ(x₂)‖) for every pair of coordinates.
fn products(embedder: &dyn Embedder) -> Result<Panel> {
    let rows: Vec<Vec<f64>> = embedder::line(MAP)
        .iter()
        // At the centers of the cells.
        .map(|x| {
            let mut row = vec![0.0; embedder.dimension()];
            embedder.embed(x + 0.5 / MAP as f64, &mut row);
            let norm = dot(&row, &row).sqrt();
            row.iter_mut().for_each(|v| *v /= if norm > 0.0 { norm } else { 1.0 });
            row
        })
        .collect();
    let mut cells = Vec::new();
    for (i, a) in rows.iter().enumerate() {
        for (j, b) in rows.iter().enumerate() {
            let at = |k: usize| (k as f64 + 0.5) / MAP as f64;
            cells.push((at(i), at(j), dot(a, b)));
        }
    }
    if cells.iter().any(|c| !c.2.is_finite()) {
        bail!("the features are not finite everywhere");
    }
    Ok(Panel {
        title: "inner products".into(),
        x: axis("x₁"),
        y: axis("x₂"),
        data: PanelData::Heatmap(Heatmap { label: "D(x₁, x₂)".into(), cells }),
    })
}

/// Singular values of the rows of equally spaced coordinates.
fn spectrum(embedder: &dyn Embedder, color: Rgb) -> Result<Panel> {
    let matrix = embedder::matrix(embedder, &embedder::line(ROWS));
    let values = singular_values(matrix.as_ref())?;
    let largest = values.first().copied().unwrap_or(0.0);
    // Zero singular values are nonzero only because of rounding.
    let shares = values.iter().map(|s| s / largest).take_while(|s| *s > ROUNDING);
    let points: Vec<_> = shares.enumerate().map(|(i, s)| ((i + 1) as f64, s)).collect();
    let title = match points.len() {
        ROWS => format!("singular values, N = {ROWS}"),
        n => format!("singular values, N = {ROWS}, rank {n}"),
    };
    // On an axis of sixty places, the two values of a sine would be hard to see.
    let last = if points.len() < 10 { 10 } else { ROWS };
    Ok(Panel {
        title,
        x: AxisSpec { from: Some(0.0), to: Some(last as f64 + 0.5), ..axis("index") },
        y: AxisSpec {
            label: "relative to the largest".into(),
            log: true,
            from: Some(1e-6),
            to: Some(2.0),
            reversed: false,
        },
        // Points: a line through two values would be a dash.
        data: PanelData::Series(vec![Series {
            scattered: true,
            ..curve(String::new(), color, points)
        }]),
    })
}

/// The stable rank as a function of N, and min(N, bound).
fn ranks(embedder: &dyn Embedder, color: Rgb) -> Result<Panel> {
    let points: Result<Vec<(f64, f64)>> =
        SAMPLES.iter().map(|&n| Ok((n as f64, line_stable_rank(embedder, n)?))).collect();
    let mut curve = curve(String::new(), color, points?);
    if let Some(bound) = embedder.stable_rank_bound() {
        let last = SAMPLES[SAMPLES.len() - 1] as f64;
        curve.dashed = vec![
            (1.0, 1.0_f64.min(bound)),
            (bound.clamp(1.0, last), bound.min(last)),
            (last, bound.min(last)),
        ];
        curve.dashed_label = "theory".into();
    }
    Ok(Panel {
        title: "stable rank".into(),
        x: axis("number of samples N"),
        y: AxisSpec { from: Some(0.0), ..axis("stable rank") },
        data: PanelData::Series(vec![curve]),
    })
}
