use proptest::prelude::*;

use super::*;
use crate::{
    distance::{centered_displacements, measured_distance},
    random::stream,
    spectrum::circulant_stable_rank,
    testing::built,
    tolerance::{Tolerance, assert_all_close, assert_close},
};

fn spec(kind: &str, dimension: usize) -> EmbedderSpec {
    EmbedderSpec::new(kind).number("dimension", dimension as f64)
}

/// The example of every kind, and a specification for each option that takes another code path.
fn examples() -> Vec<EmbedderSpec> {
    let d = 240;
    let mut examples: Vec<EmbedderSpec> = registry().iter().map(|kind| kind.example(d)).collect();
    examples.extend([
        spec("rectangle", d).number("width", 0.1).text("boundary", "periodic"),
        spec("triangle", d).number("width", 0.9).text("boundary", "periodic"),
        spec("sine", d).number("frequency", 3.0).number("offset", 0.7),
        spec("square", d).number("frequency", 2.0),
        spec("square", d).text("levels", "zero-one").text("boundary", "periodic"),
        spec("gaussian", d).number("sigma", 0.005).text("boundary", "periodic"),
        spec("gaussian", d).number("sigma", 0.005).text("scaling", "unit-row"),
        spec("random", d).text("scaling", "unit-row"),
        spec("rff", d).number("sigma", 12.0).text("scaling", "unit-row"),
        spec("formula", d).text("psi", "1 / (1 + (u / w)^2)").number("w", 0.05),
    ]);
    examples
}

#[test]
fn every_kind_is_registered_once_and_matches_its_entry() {
    let mut names: Vec<&str> = registry().iter().map(|kind| kind.name).collect();
    // The gallery of the report prints these entries, so they must match the embedder.
    for kind in registry() {
        assert!(find(kind.name).is_some_and(|found| std::ptr::eq(found, kind)), "{}", kind.name);
        assert!(![kind.name, kind.label, kind.symbol, kind.latex].contains(&""), "{}", kind.name);
        let parameter = kind.fit.parameter.map_or("boundary", |parameter| parameter.name);
        assert!(kind.fit.parameter.is_none() || kind.parameter(parameter).is_some());
        let embedder = built(&kind.example(240));
        assert_eq!(kind.distance.is_empty(), embedder.distance_law(0.1).is_none(), "{}", kind.name);
        assert_eq!(
            kind.stable_rank.is_empty(),
            embedder.stable_rank_bound().is_none(),
            "{}",
            kind.name
        );
    }
    let n_kinds = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), n_kinds);
}

#[test]
fn a_row_does_not_depend_on_how_it_is_cut_or_stacked() {
    let xs = [0.0, 1.0 / 3.0, 0.5, 0.71, 0.999];
    for spec in examples() {
        let embedder = built(&spec);
        let d = embedder.dimension();
        let stacked = matrix(&*embedder, &xs);
        for (i, &x) in xs.iter().enumerate() {
            let mut row = vec![f64::NAN; d];
            embedder.embed(x, &mut row);
            for n_columns in [1, 7, 120, 131] {
                let mut pieces = vec![f64::NAN; d];
                for (k, piece) in pieces.chunks_mut(n_columns).enumerate() {
                    embedder.embed_columns(x, k * n_columns, piece);
                }
                assert_eq!(pieces, row, "{spec:?} at {x} in pieces of {n_columns}");
            }
            assert!((0..d).all(|j| stacked[(i, j)] == row[j]), "{spec:?} at {x}");
            let norm = row.iter().map(|value| value * value).sum::<f64>().sqrt();
            assert_close(embedder.row_norm(x), norm, Tolerance::relative(1e-13));
        }
    }
}

#[test]
fn unit_rows_have_norm_one_and_zero_rows_stay_zero() {
    for kind in [
        spec("gaussian", 100).number("sigma", 0.003),
        spec("rff", 100).number("sigma", 5.0),
        spec("random", 100),
    ] {
        let embedder = built(&kind.text("scaling", "unit-row"));
        assert_close(embedder.row_norm(0.37), 1.0, Tolerance::relative(1e-14));
    }
    // Midway between two centers, narrow rectangles are all zero.
    let narrow = spec("rectangle", 10).number("width", 0.02).text("scaling", "unit-row");
    assert_close(built(&narrow).row_norm(0.05), 0.0, Tolerance::EXACT);
}

#[test]
fn rectangles_cover_as_many_centers_as_their_width() {
    // Catches ties decided by rounding, which give some coordinates one center more or less.
    for (width, expected) in [(0.201, 201.0), (0.2, 200.0), (0.011, 11.0)] {
        let embedder =
            built(&spec("rectangle", 1000).number("width", width).text("boundary", "periodic"));
        for x in line(1000) {
            let squared = embedder.row_norm(x).powi(2);
            assert_close(squared, expected, Tolerance::absolute(1e-9));
        }
    }
}

#[test]
fn a_coordinate_on_a_center_lies_in_its_own_cell() {
    // 0.29 · 100 = 28.999…: plain truncation would put two coordinates into cell 28.
    let embedder = built(&spec("impulse", 100));
    let rows = matrix(&*embedder, &line(100));
    for i in 0..100 {
        assert_close(rows[(i, i)], 1.0, Tolerance::EXACT);
    }
}

#[test]
fn frequencies_include_both_ends() {
    // d/2 = 5: LinF 1, 4.75, 8.5, 12.25, 16; LogF 1, 2, 4, 8, 16, and 0, 1, 3, 7, 15 with offset -1.
    let x = 0.173;
    let expected = |frequencies: [f64; 5]| -> Vec<f64> {
        let angles = frequencies.map(|f| std::f64::consts::TAU * f * x);
        angles.iter().map(|a| a.sin()).chain(angles.iter().map(|a| a.cos())).collect()
    };
    let exponents = |kind| spec(kind, 10).number("sigma", 4.0);
    for (spec, frequencies) in [
        (exponents("linf"), [1.0, 4.75, 8.5, 12.25, 16.0]),
        (exponents("logf"), [1.0, 2.0, 4.0, 8.0, 16.0]),
        (exponents("logf").number("offset", -1.0), [0.0, 1.0, 3.0, 7.0, 15.0]),
    ] {
        let mut row = vec![0.0; 10];
        built(&spec).embed(x, &mut row);
        assert_all_close(&row, &expected(frequencies), Tolerance::absolute(1e-14));
    }
}

#[test]
fn frequencies_of_different_scales_share_their_samples() {
    let frequency_kernel = |sigma: f64, delta: f64| {
        built(&spec("rff", 40).number("sigma", sigma)).gram_kernel(delta).unwrap()
    };
    let [wide, narrow] = [frequency_kernel(8.0, 0.01), frequency_kernel(2.0, 0.04)];
    assert_close(wide, narrow, Tolerance::relative(1e-12));
}

#[test]
fn distance_laws_hold_for_dense_centers() {
    // Compares each law with its embedder; the tolerance is the sampling error of 20,000 centers.
    let d = 20_000;
    let displacements = centered_displacements(40);
    for (kind, tolerance) in [
        (spec("impulse", d), 1e-15),
        (spec("rectangle", d).number("width", 0.1), 1e-3),
        (spec("triangle", d).number("half_width", 0.1), 1e-6),
        (spec("sine", d).number("offset", 0.7), 1e-12),
        (spec("sine", d).number("frequency", 3.0), 1e-12),
        (spec("square", d).number("frequency", 2.0), 1e-3),
        (spec("square", d).text("levels", "zero-one"), 1e-3),
        (spec("gaussian", d).number("sigma", 0.02), 1e-9),
        (spec("linf", 256).number("sigma", 4.5), 1e-13),
        (spec("logf", 256).number("sigma", 6.5), 1e-13),
        (EmbedderSpec::new("basic"), 1e-13),
        // 10,000 frequencies: five standard errors of a mean of cosines.
        (spec("rff", d).number("sigma", 5.0), 0.036),
    ] {
        for boundary in ["open", "periodic"] {
            let takes_boundary = find(&kind.kind).unwrap().parameter("boundary").is_some();
            let kind =
                if takes_boundary { kind.clone().text("boundary", boundary) } else { kind.clone() };
            let embedder = built(&kind);
            let measured = measured_distance(&*embedder, &displacements).unwrap();
            let law: Vec<f64> =
                displacements.iter().map(|&delta| embedder.distance_law(delta).unwrap()).collect();
            println!("{}", kind.canonical());
            assert_all_close(&measured, &law, Tolerance::absolute(tolerance));
        }
    }
}

#[test]
fn stable_rank_bounds_are_those_of_the_dense_circulant() {
    // The reference is the Fourier transform of the first column of N = d = 30,030 periodic samples.
    let d = 30_030;
    for (kind, tolerance) in [
        (spec("rectangle", d).number("width", 0.1), 1e-3),
        (spec("triangle", d).number("half_width", 0.05), 1e-6),
        (spec("sine", d).number("frequency", 5.0), 1e-9),
        (spec("sine", d).number("offset", 0.7), 1e-9),
        (spec("sine", d).number("offset", 0.3), 1e-9),
        (spec("square", d).number("frequency", 3.0), 1e-3),
        (spec("square", d).text("levels", "zero-one"), 1e-3),
        (spec("gaussian", d).number("sigma", 0.01), 1e-9),
    ] {
        let embedder = built(&kind.text("boundary", "periodic"));
        let mut row = vec![0.0; d];
        embedder.embed(0.0, &mut row);
        let bound = embedder.stable_rank_bound().unwrap();
        assert_close(circulant_stable_rank(&row).unwrap(), bound, Tolerance::relative(tolerance));
    }
}

#[test]
fn a_formula_agrees_with_the_builtin() {
    let builtin = built(&spec("gaussian", 512).number("sigma", 0.01));
    for text in ["exp(-(u*u)/(2*sigma*sigma))", "exp(-u^2 / (2*sigma^2))"] {
        let formula = built(&spec("formula", 512).number("sigma", 0.01).text("psi", text));
        for x in [0.0, 0.25, 0.4712, 0.999] {
            let (mut expected, mut actual) = (vec![0.0; 512], vec![0.0; 512]);
            builtin.embed(x, &mut expected);
            formula.embed(x, &mut actual);
            assert_all_close(&actual, &expected, Tolerance::new(1e-300, 1e-15));
        }
    }
}

#[test]
fn the_largest_row_norm_becomes_one() {
    let mut rows = matrix(&*built(&spec("gaussian", 30).number("sigma", 0.05)), &line(17));
    let largest = scale_by_largest_row_norm(&mut rows);
    let norms: Vec<f64> = (0..17).map(|i| rows.row(i).norm_l2()).collect();
    assert!(largest > 1.0);
    assert_close(norms.iter().copied().fold(0.0, f64::max), 1.0, Tolerance::relative(1e-14));
    // At the ends of an open interval, half of the bell is missing.
    assert!(norms[0] < 0.9);
    assert_close(scale_by_largest_row_norm(&mut Mat::zeros(3, 2)), 0.0, Tolerance::EXACT);
}

#[track_caller]
fn check_error(spec: EmbedderSpec, parameter: Option<&str>, parts: &[&str]) {
    let error = validate(&spec).unwrap_err();
    let message = error.to_string();
    assert_eq!(error.parameter(), parameter, "{message}");
    for part in parts {
        assert!(message.contains(part), "{message:?} lacks {part:?}");
    }
    assert!(build(&spec, &mut stream(0, "")).is_err());
}

#[test]
fn errors_name_the_key_the_value_and_the_fix() {
    let gaussian = || spec("gaussian", 8).number("sigma", 0.1);
    check_error(
        EmbedderSpec::new("gausian"),
        None,
        &["'gausian'", "did you mean 'gaussian'", "rff"],
    );
    check_error(EmbedderSpec::new(""), None, &["known kinds"]);
    check_error(
        gaussian().number("sigm", 1.0),
        Some("sigm"),
        &["no parameter 'sigm'", "did you mean 'sigma'", "dimension, sigma, boundary, scaling"],
    );
    check_error(spec("gaussian", 8), Some("sigma"), &["needs the parameter 'sigma'", "above 0"]);
    check_error(
        EmbedderSpec::new("gaussian").number("sigma", 0.1),
        Some("dimension"),
        &["whole number from 1 to 10000000"],
    );
    for sigma in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        check_error(gaussian().number("sigma", sigma), Some("sigma"), &["above 0"]);
    }
    check_error(gaussian().text("sigma", "0.1"), Some("sigma"), &["\"0.1\"", "a number above 0"]);
    for dimension in [0.0, -4.0, 2.5, f64::NAN, 1e8] {
        check_error(
            gaussian().number("dimension", dimension),
            Some("dimension"),
            &["whole number"],
        );
    }
    check_error(
        spec("rff", 7).number("sigma", 1.0),
        Some("dimension"),
        &["must be a multiple of 2 from 2", "got 7.0"],
    );
    check_error(gaussian().text("boundary", "wrap"), Some("boundary"), &["open or periodic"]);
    check_error(spec("triangle", 8), Some("half_width"), &["set either"]);
    check_error(
        spec("triangle", 8).number("width", 0.2).number("half_width", 0.1),
        Some("half_width"),
        &["both given", "remove one"],
    );
    check_error(spec("basic", 4), Some("dimension"), &["must be 2, got 4.0"]);
    check_error(spec("linf", 8).number("sigma", 31.0), Some("sigma"), &["from 0 to 30"]);
}

#[test]
fn formula_errors_say_what_and_where() {
    let formula = |text: &str| spec("formula", 8).text("psi", text);
    check_error(spec("formula", 8), Some("psi"), &["needs the parameter 'psi'"]);
    check_error(formula("exp(-u^2"), Some("psi"), &["exp(-u^2", "closing parenthesis"]);
    check_error(formula("exp(-(u/s)^2)"), Some("psi"), &["uses 's'", "s: <number>"]);
    check_error(formula("exp(-u^2)").number("s", 1.0), Some("s"), &["'s' does not occur"]);
    check_error(formula("u").number("u", 1.0), Some("u"), &["cannot be set"]);
    check_error(
        formula("u*s").text("s", "1"),
        Some("s"),
        &["s must be a finite number, got \"1\"; other parameters are ", "psi"],
    );
    check_error(formula("u*s").number("s", f64::NAN), Some("s"), &["a finite number"]);
    check_error(formula("1/u"), Some("psi"), &["is inf at u = 0"]);
    check_error(formula("sqrt(u)"), Some("psi"), &["is NaN at u = -1"]);
    check_error(formula("ln(0.7 - abs(u))"), Some("psi"), &["at u = -1", "from -1 to 1"]);
    check_error(formula("pi"), Some("psi"), &["does not contain u"]);
    check_error(formula("1 + 0*u"), Some("psi"), &["is 1 for every u"]);
    check_error(formula("   "), Some("psi"), &["must be text of 1 to 500 characters"]);
    // Wrapped displacements never leave [-1/2, 1/2), where this one is fine.
    let periodic = formula("ln(0.7 - abs(u))").text("boundary", "periodic");
    assert_eq!(validate(&periodic), Ok(()));
    assert_eq!(periodic.clone().text("label", "Mine").label(), "Mine");
    assert_eq!(periodic.label(), "Formula");
}

#[test]
fn canonical_text_ignores_presentation_and_written_defaults() {
    let plain = spec("gaussian", 256).number("sigma", 0.01);
    assert_eq!(
        plain.canonical(),
        r#"gaussian(boundary="open", dimension=256.0, scaling="none", sigma=0.01)"#
    );
    assert_eq!(plain.clone().text("boundary", "open").canonical(), plain.canonical());
    assert_ne!(plain.clone().text("boundary", "periodic").canonical(), plain.canonical());
    let formula = spec("formula", 8).text("psi", "u");
    assert_eq!(formula.clone().text("label", "x").canonical(), formula.canonical());
    assert_eq!(EmbedderSpec::new("unknown").number("a", 0.1).canonical(), "unknown(a=0.1)");
}

#[test]
fn formulas_print_the_values_they_are_given() {
    let text = |spec: &EmbedderSpec| find(&spec.kind).unwrap().formula(spec);
    assert_eq!(
        text(&spec("rectangle", 8).number("width", 0.1)),
        r"$\psi_j(x) = [\,|t_j - x| \le w/2\,]$; dimension = 8, width = 0.1"
    );
    let formula = spec("formula", 8).text("psi", "u*a").number("a", 2.0);
    assert_eq!(text(&formula), "$\\psi_j(x) =$ `u*a`, $u = t_j - x$; a = 2, dimension = 8");
    assert_eq!(text(&EmbedderSpec::new("identity")), r"$\psi(x) = x$");
}

proptest! {
    #[test]
    fn no_specification_causes_a_panic(
        kind in prop::sample::select(
            registry().iter().map(|kind| kind.name).chain(["", "rf", "Gaussian"]).collect::<Vec<_>>()
        ),
        entries in prop::collection::vec(
            (
                prop::sample::select(vec![
                    "dimension", "sigma", "width", "half_width", "frequency", "offset", "levels",
                    "boundary", "scaling", "psi", "label", "a", "u", "", "σ",
                ]),
                prop_oneof![
                    any::<f64>().prop_map(ParameterValue::Number),
                    (1_u32..64).prop_map(|n| ParameterValue::Number(f64::from(n))),
                    (0.001_f64..0.5).prop_map(ParameterValue::Number),
                    ".{0,12}".prop_map(ParameterValue::Text),
                    "[-+*/^(),.0-9eau exp]{0,24}".prop_map(ParameterValue::Text),
                    prop::sample::select(vec!["open", "periodic", "unit-row", "zero-one", "u*a"])
                        .prop_map(ParameterValue::from),
                ],
            ),
            0..6,
        ),
        x in 0.0_f64..1.0,
    ) {
        let mut spec = EmbedderSpec::new(kind);
        for (name, value) in entries {
            spec = spec.with(name, value);
        }
        let _ = (spec.canonical(), spec.label(), find(kind).map(|kind| kind.formula(&spec)));
        if let Ok(embedder) = build(&spec, &mut stream(0, "fuzz")) {
            prop_assert!(embedder.dimension() >= 1);
            let mut row = vec![f64::NAN; embedder.dimension().min(100)];
            embedder.embed_columns(x, 0, &mut row);
            prop_assert!(row.iter().all(|value| value.is_finite()), "{:?}", spec);
            let _ = (embedder.distance_law(x), embedder.stable_rank_bound());
        }
    }

    #[test]
    fn windows_lose_no_feature(
        sigma in 1e-4_f64..0.1,
        x in -0.2_f64..1.2,
        d in 1_usize..400,
        is_periodic: bool,
    ) {
        // Compares the windowed evaluation with the definition, for two profiles with a window.
        let boundary = if is_periodic { "periodic" } else { "open" };
        for kind in ["gaussian", "triangle"] {
            let key = if kind == "gaussian" { "sigma" } else { "half_width" };
            let embedder = built(&spec(kind, d).number(key, sigma).text("boundary", boundary));
            let mut row = vec![f64::NAN; d];
            embedder.embed(x, &mut row);
            for (j, value) in row.into_iter().enumerate() {
                let mut u = j as f64 / d as f64 - x;
                if is_periodic {
                    u -= (u + 0.5).floor();
                }
                let expected = if kind == "gaussian" {
                    (-u * u / (2.0 * sigma * sigma)).exp()
                } else {
                    (1.0 - u.abs() / sigma).max(0.0)
                };
                let tolerance = Tolerance::new(1e-9 * expected.min(1.0), 1e-9);
                prop_assert!(
                    tolerance.accepts(value, expected) || (value - expected).abs() < 1e-11,
                    "{} {} {} {}", kind, u, value, expected
                );
            }
        }
    }
}

/// Catches a rule that does not scale with the number of samples, and `auto` for a parameter without a rule.
#[test]
fn auto_is_a_width_in_samples() {
    for kind in registry().iter().filter(|kind| kind.fit.parameter.is_some()) {
        let parameter = kind.fit.parameter.unwrap();
        let spec = kind.example(64).with(parameter.name, "auto");
        assert!(validate(&spec).is_ok(), "{}", kind.name);
        assert!(build(&spec, &mut stream(0, "auto")).is_err(), "{} is not resolved", kind.name);
        let at = |n: f64| {
            let resolved = spec.clone().resolved(FitModel::Ridge, n);
            assert!(resolved.auto().is_none() && validate(&resolved).is_ok(), "{}", kind.name);
            resolved.number_of(parameter.name).unwrap()
        };
        let (few, many) = (at(64.0), at(128.0));
        match parameter.unit {
            FitUnit::Steps => assert_eq!(few, 2.0 * many, "{}", kind.name),
            FitUnit::PeriodsPerStep => assert_eq!(2.0 * few, many, "{}", kind.name),
            FitUnit::Octaves => assert_eq!(few + 1.0, many, "{}", kind.name),
            FitUnit::Levels => {
                assert_eq!(few, many, "{}", kind.name);
                // A small dimension leaves room for fewer levels.
                let narrow = kind.example(5).with(parameter.name, "auto");
                assert!(validate(&narrow).is_ok(), "{}", kind.name);
                let resolved = narrow.resolved(FitModel::Ridge, 64.0);
                assert_eq!(resolved.number_of(parameter.name), Some(2.0), "{}", kind.name);
            }
        }
        let shifted = parameter.shifted(FitModel::Ridge, 64.0, 1.0);
        let wanted = match parameter.unit {
            FitUnit::Steps | FitUnit::PeriodsPerStep => 2.0 * few,
            FitUnit::Octaves | FitUnit::Levels => few + 1.0,
        };
        assert_eq!(shifted, wanted, "{}", kind.name);
    }
    let spec = EmbedderSpec::new("impulse").number("dimension", 8.0).text("width", "auto");
    assert!(validate(&spec).is_err() && spec.auto().is_none());
}
