//! Tests of figures with arbitrary numbers.

use proptest::prelude::*;

use super::canvas::{Marker, text_width, wrapped};
use super::*;
use crate::colors::{Family, shade};

const GAUSSIAN: Family = Family::Embedder("gaussian");

/// Ordinary, extreme and non-finite numbers.
fn number() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => -100.0..100.0f64,
        2 => (-12.0..12.0f64).prop_map(|e| 10f64.powf(e)),
        2 => prop::num::f64::ANY,
        1 => prop::sample::select(vec![
            0.0, -0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, f64::MIN,
            f64::MIN_POSITIVE, 5e-324, 1e290, -1e-290, 1.0, 1.0 + f64::EPSILON,
        ]),
    ]
}

fn axis_spec() -> impl Strategy<Value = AxisSpec> {
    let limit = || prop::option::weighted(0.3, number());
    let flags = (any::<bool>(), any::<bool>());
    (flags, limit(), limit(), "\\PC{0,40}").prop_map(|((log, reversed), a, b, label)| {
        // The schema requires ascending limits, and positive ones on a logarithmic axis.
        let ordered = match (a, b) {
            (Some(a), Some(b)) => a < b && (!log || a > 0.0),
            _ => true,
        };
        let (from, to) = if ordered { (a, b) } else { (None, None) };
        AxisSpec { label, log, from, to, reversed }
    })
}

fn series() -> impl Strategy<Value = Series> {
    let pairs = || prop::collection::vec((number(), number()), 0..12);
    let points = prop::collection::vec((number(), number(), prop::option::of(number())), 0..40);
    let marks = prop::collection::vec((number(), number(), "\\PC{0,60}"), 0..4);
    (points, pairs(), pairs(), marks, any::<bool>(), 0..9usize, "\\PC{0,60}").prop_map(
        |(points, dashed, published, marks, scattered, marker, name)| Series {
            name,
            color: shade(GAUSSIAN, marker, 9),
            marker: *Marker::TURN.get(marker).unwrap_or(&Marker::None),
            scattered,
            points: points
                .into_iter()
                .map(|(x, y, half_width)| Sample { x, y, half_width })
                .collect(),
            runs: vec![dashed.clone()],
            band: "band",
            dashed,
            dashed_label: "theory".into(),
            published,
            marks: marks
                .into_iter()
                .map(|(x, y, label)| Mark { x, y, marker: Marker::Star, label })
                .collect(),
        },
    )
}

fn dot_row() -> impl Strategy<Value = DotRow> {
    let value = || prop::option::of((number(), prop::option::of(number())));
    ("\\PC{0,60}", value(), value()).prop_map(|(name, measured, published)| DotRow {
        name,
        color: shade(GAUSSIAN, 0, 1),
        reduced: measured.is_none(),
        measured,
        published,
    })
}

fn data() -> impl Strategy<Value = PanelData> {
    let cells = prop::collection::vec((number(), number(), number()), 0..60);
    prop_oneof![
        3 => prop::collection::vec(series(), 0..5).prop_map(PanelData::Series),
        1 => (cells, "\\PC{0,20}")
            .prop_map(|(cells, label)| PanelData::Heatmap(Heatmap { label, cells })),
        1 => prop::collection::vec(dot_row(), 0..12).prop_map(PanelData::Dots),
    ]
}

fn figure() -> impl Strategy<Value = Figure> {
    let panel = ("\\PC{0,120}", axis_spec(), axis_spec(), data())
        .prop_map(|(title, x, y, data)| Panel { title, x, y, data });
    let labels = prop::sample::select(vec![Labels::Auto, Labels::End, Labels::Legend]);
    ("\\PC{0,40}", "\\PC{0,40}", labels, prop::collection::vec(panel, 0..7))
        .prop_map(|(alt, heading, labels, panels)| Figure { alt, heading, labels, panels })
}

/// Checks that every picture must pass.
fn check(figure: &Figure) -> Result<String, TestCaseError> {
    let svg = figure.svg().map_err(|e| TestCaseError::fail(e.to_string()))?;
    prop_assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"), "not a document");
    prop_assert!(svg.len() < 300_000, "{} bytes", svg.len());
    for tag in svg.split('<').skip(1) {
        let inside = tag.split('>').next().unwrap_or("");
        prop_assert_eq!(inside.matches('"').count() % 2, 0, "broken tag: {}", inside);
        let numbers = inside.split('"').nth(1).unwrap_or("");
        prop_assert!(inside.starts_with("svg") || !numbers.contains("NaN"), "{}", inside);
    }
    Ok(svg)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Catches panics, endless tick loops, NaN coordinates, and unescaped text.
    #[test]
    fn any_numbers_make_a_picture(figure in figure()) {
        check(&figure)?;
    }

    /// Catches lines beyond the maximum width or number, and endless loops on long words.
    #[test]
    fn wrapping_keeps_its_limits(text in "\\PC{0,200}", width in 20.0..400.0f64, most in 1..4usize) {
        let lines = wrapped(&text, 13.0, width, most);
        prop_assert!(lines.len() <= most);
        for line in &lines {
            prop_assert!(text_width(line, 13.0) <= width + 2.0 * 13.0, "{line}");
        }
    }
}

fn plain(points: &[(f64, f64)]) -> Figure {
    let axis = |label: &str| AxisSpec { label: label.into(), ..AxisSpec::default() };
    let series = Series {
        name: "Gau".into(),
        color: shade(GAUSSIAN, 0, 1),
        points: points.iter().map(|(x, y)| Sample { x: *x, y: *y, half_width: None }).collect(),
        band: "the band",
        dashed_label: "the dashes".into(),
        ..Series::default()
    };
    Figure {
        alt: "A test".into(),
        heading: String::new(),
        labels: Labels::Legend,
        panels: vec![Panel {
            title: "title".into(),
            x: axis("x"),
            y: axis("y"),
            data: PanelData::Series(vec![series]),
        }],
    }
}

fn svg(figure: &Figure) -> String {
    figure.svg().expect("a picture")
}

#[test]
fn panels_report_omitted_values() {
    let mut figure = plain(&[(1.0, f64::NAN), (2.0, -1.0), (3.0, 1.0)]);
    figure.panels[0].y.log = true;
    let text = svg(&figure);
    assert!(text.contains("1 value not finite, not shown"), "{text}");
    assert!(text.contains("1 value ≤ 0, not shown"), "{text}");
    assert!(svg(&plain(&[])).contains("no values to draw"));
}

/// Catches a panel that looks empty: a single measurement has no line, so it needs a marker.
#[test]
fn a_single_point_is_seen() {
    assert!(svg(&plain(&[(1.0, 2.0)])).contains("<circle"));
}

#[test]
fn values_beyond_the_limits_are_clipped() {
    let mut figure = plain(&[(0.0, 0.0), (1.0, 1e6)]);
    figure.panels[0].y.to = Some(1.0);
    let text = svg(&figure);
    let line = text.lines().find(|l| l.contains("stroke-width=\"22\"")).expect("the curve");
    let points = line.split("points=\"").nth(1).and_then(|p| p.split('"').next()).unwrap_or("");
    for pair in points.split_whitespace() {
        let y: i32 = pair.split(',').nth(1).and_then(|y| y.parse().ok()).unwrap_or(-1);
        assert!((0..4500).contains(&y), "{points}");
    }
}

/// Catches legend entries of marks that are not drawn, and marks without a legend entry.
#[test]
fn the_legend_names_what_is_drawn() {
    let mut figure = plain(&[(0.0, 1.0), (1.0, 2.0)]);
    let without = svg(&figure);
    assert!(!without.contains("the band") && !without.contains("the dashes"), "{without}");
    let PanelData::Series(series) = &mut figure.panels[0].data else { unreachable!() };
    series[0].points[1].half_width = Some(0.5);
    series[0].dashed = vec![(0.0, 1.0), (1.0, 1.0)];
    let label = "a long explanation of a mark that has a legend's row to itself, word by word";
    for (x, marker) in [(0.2, Marker::Star), (0.4, Marker::Diamond)] {
        series[0].marks.push(Mark { x, y: 1.2, marker, label: format!("{marker:?}: {label}") });
    }
    let text = svg(&figure);
    for name in ["the band", "the dashes", "Star: a long", "Diamond: a long"] {
        assert!(text.contains(name), "no {name} in {text}");
    }
    // On the curve and in the legend, each with a rim.
    let stars = text.lines().filter(|l| l.starts_with("<polygon") && l.matches(',').count() == 10);
    assert_eq!(stars.count(), 4, "{text}");
    let row = |name: &str| {
        let line = text.lines().find(|l| l.contains(name)).unwrap_or("");
        line.split(" y=\"").nth(1).and_then(|y| y.split('"').next()).map(str::to_owned)
    };
    assert_ne!(row("Star: a long"), row("Diamond: a long"), "both in one row");
}

/// Catches large maps and long curves that make a picture too large.
#[test]
fn large_inputs_stay_small() {
    let noise = |i: usize| ((i * 7919 + 13) % 1009) as f64;
    let cells = (0..200 * 200).map(|i| ((i / 200) as f64, (i % 200) as f64, noise(i))).collect();
    let mut figure = plain(&(0..50_000).map(|i| (i as f64, noise(i))).collect::<Vec<_>>());
    let map = PanelData::Heatmap(Heatmap { label: "v".into(), cells });
    figure.panels.push(Panel { data: map, ..figure.panels[0].clone() });
    let text = svg(&figure);
    assert!(text.len() < 300_000, "{}", text.len());
    assert!(text.contains("averaged over"), "the map says that it is averaged");
}
