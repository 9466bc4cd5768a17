//! `fit` end to end: files made by the test, the real binary.

use crate::common;

use std::path::PathBuf;

use common::{Repository, has};
use image::{DynamicImage, ImageBuffer, Luma, Rgb};

fn ramp(x: u32, y: u32) -> f64 {
    0.5 + 0.3 * (f64::from(x) * 0.21).sin() * (f64::from(y) * 0.17).cos()
}

fn save(repository: &Repository, name: &str, image: &DynamicImage) -> PathBuf {
    let path = repository.path().join(name);
    image.save(&path).unwrap();
    path
}

fn color(width: u32, height: u32) -> DynamicImage {
    let pixel = |x, y| {
        let v = ramp(x, y);
        Rgb([(255.0 * v) as u8, (200.0 * v) as u8, (255.0 * (1.0 - v)) as u8])
    };
    DynamicImage::ImageRgb8(ImageBuffer::from_fn(width, height, pixel))
}

/// The number after "PSNR of `what`:".
fn psnr(output: &str, what: &str) -> f64 {
    let line = output.lines().find(|l| l.starts_with(&format!("PSNR of {what}:"))).unwrap();
    line.trim_end_matches(" dB").rsplit(' ').next().unwrap().parse().unwrap()
}

/// Catches a reconstruction of another size, PSNRs that are not those of the file, and options that
/// are ignored.
#[test]
fn pictures_are_fitted_and_written() {
    let repository = Repository::new();
    let photo = save(&repository, "photo.png", &color(64, 48));
    let photo = photo.to_str().unwrap();
    for (options, least) in [
        ("", 25.0),
        ("--embedder triangle", 22.0),
        ("--mask 0.3", 20.0),
        ("--solver gradient-descent --epochs 200", 20.0),
        ("--encoding simple --solver gradient-descent --depth 1 --epochs 60", 12.0),
        ("--encoding simple --solver gradient-descent --embedder rff --depth 1 --epochs 60", 12.0),
    ] {
        let mut arguments = vec!["fit", photo, "--out", "fitted.png"];
        arguments.extend(options.split_whitespace());
        let run = repository.ok(&arguments);
        let found = psnr(&run.stdout, "the others");
        assert!(found > least, "{options}: {found}\n{}", run.stdout);
        let fitted = image::open(repository.path().join("fitted.png")).unwrap().to_rgb8();
        assert_eq!(fitted.dimensions(), (64, 48));
        // The file contains the measured values, except for 8-bit rounding and clipping to [0, 1].
        let truth = color(64, 48).to_rgb8();
        let error: f64 = fitted
            .iter()
            .zip(truth.iter())
            .map(|(a, b)| ((f64::from(*a) - f64::from(*b)) / 255.0).powi(2))
            .sum::<f64>()
            / fitted.len() as f64;
        let of_file = -10.0 * error.log10();
        let all = psnr(&run.stdout, "all");
        assert!(of_file > all.min(45.0) - 0.3, "{options}: {of_file} in the file, {all} said");
    }
}

/// Catches a user's parameter without effect, and results that the seed does not determine.
#[test]
fn parameters_and_seeds_take_effect() {
    let repository = Repository::new();
    save(&repository, "photo.png", &color(32, 32));
    let run = |options: &[&str]| {
        let mut arguments = vec!["fit", "photo.png", "--out", "fitted.png"];
        arguments.extend(options);
        let stdout = repository.ok(&arguments).stdout;
        (psnr(&stdout, "all"), std::fs::read(repository.path().join("fitted.png")).unwrap())
    };
    let narrow = run(&["--set", "sigma=0.002"]);
    let fitting = run(&["--embedder", "gaussian"]);
    assert!(fitting.0 > narrow.0 + 3.0, "{} against {}", fitting.0, narrow.0);
    assert_eq!(fitting.1, run(&["--embedder", "gaussian"]).1);
    assert_eq!(run(&[]).1, run(&[]).1);
    let masked = |seed| run(&["--mask", "0.5", "--seed", seed]);
    assert_eq!(masked("1"), masked("1"));
    assert_ne!(masked("1").1, masked("2").1);
}

/// Catches a method that is ignored, a choice without reasons, a prediction that uses test positions, and a comparison that leaves
/// out a method.
#[test]
fn interpolation_is_chosen_explained_and_compared() {
    let repository = Repository::new();
    // A slanted edge, which methods without a direction blur.
    let edge = |x: u32, y: u32| {
        let across = f64::from(x) - 0.4 * f64::from(y) - 20.0;
        Luma([(255.0 * (0.2 + 0.6 / (1.0 + (-2.0 * across).exp()))) as u8])
    };
    let edge = DynamicImage::ImageLuma8(ImageBuffer::from_fn(64, 64, edge));
    save(&repository, "edge.png", &edge);
    for pattern in [&["--step", "2"][..], &["--mask", "0.25"]] {
        let fit = |options: &[&str]| {
            let start = ["fit", "edge.png", "--out", "fitted.png"];
            repository.ok(&[&start, pattern, options].concat()).stdout
        };
        let stdout = fit(&["--compare"]);
        let choice = ["kriging with", "cross-validation on"];
        let expected = ["expected PSNR at the other positions", "95 % interval"];
        has(&stdout, &[choice, expected].concat());
        let own = psnr(&stdout, "the others");
        let mut listed = 0;
        for method in ["nearest", "linear", "cubic", "thin-plate", "kriging"] {
            let found = psnr(&fit(&["--method", method]), "the others");
            assert!(own > found, "{pattern:?} {method}: {found} against {own}");
            let row = |line: &&str| line.contains(&format!(" {found:.2} "));
            listed += usize::from(stdout.lines().any(|line| row(&line)));
        }
        assert_eq!(listed, 5, "{stdout}");
        // Without a file to write, the numbers are the same.
        let only = repository.ok(&[&["fit", "edge.png", "--compare"], pattern].concat()).stdout;
        assert_eq!(psnr(&only, "the others"), own);
        // The prediction uses training positions only.
        let mut broken = edge.to_luma8();
        for (x, y, pixel) in broken.enumerate_pixels_mut() {
            if x % 2 == 1 || y % 2 == 1 {
                pixel.0[0] = pixel.0[0].wrapping_mul(7).wrapping_add((x * y) as u8);
            }
        }
        save(&repository, "broken.png", &DynamicImage::ImageLuma8(broken));
        if pattern[0] == "--step" {
            let other = repository.ok(&["fit", "broken.png", "--out", "fitted.png"]).stdout;
            let expected = |text: &str| {
                text.lines().find(|l| l.starts_with("expected PSNR")).unwrap().to_owned()
            };
            assert_eq!(expected(&stdout), expected(&other));
        }
    }
    // Without errors, the prediction has no interval.
    save(&repository, "black.png", &DynamicImage::ImageLuma8(ImageBuffer::new(64, 64)));
    repository
        .ok(&["fit", "black.png", "--out", "fitted.png"])
        .prints(&["at the other positions: infinite"]);
    // A picture that is too small for cross-validation, and one without test positions.
    let run = repository.ok(&["fit", "edge.png", "--size", "8", "--out", "fitted.png"]);
    assert!(!run.stdout.contains("expected PSNR"), "{}", run.stdout);
    let run = repository.ok(&["fit", "edge.png", "--step", "1", "--out", "fitted.png"]);
    assert!(!run.stdout.contains("the others"), "{}", run.stdout);
}

/// Catches a clip that is not read or not written.
#[test]
fn clips_are_fitted_and_written() {
    let repository = Repository::new();
    std::fs::create_dir(repository.path().join("film")).unwrap();
    for t in 0..12u32 {
        let frame = |x, y| Rgb([(255.0 * ramp(x + 2 * t, y)) as u8; 3]);
        let frame = DynamicImage::ImageRgb8(ImageBuffer::from_fn(16, 16, frame));
        frame.save(repository.path().join(format!("film/{t:02}.png"))).unwrap();
    }
    let run = repository.ok(&["fit", "film", "--out", "fitted"]);
    run.prints(&["12 × 16 × 16"]);
    assert!(psnr(&run.stdout, "the others") > 20.0, "{}", run.stdout);
    assert_eq!(std::fs::read_dir(repository.path().join("fitted")).unwrap().count(), 12);
    repository.ok(&["fit", "film", "--mask", "0.4", "--out", "fitted.npz"]);
    // The program reads its own output.
    let again = "fit fitted.npz --solver gradient-descent --epochs 5 --out again.npz";
    repository.ok(&again.split_whitespace().collect::<Vec<_>>());
}

/// Catches options that panic, hang or write a file in spite of an error.
#[test]
fn impossible_requests_are_refused_with_a_remedy() {
    let repository = Repository::new();
    save(&repository, "photo.png", &color(32, 32));
    repository.write("text.mp4", "no film");
    std::fs::create_dir(repository.path().join("film")).unwrap();
    for t in 0..8 {
        let gray = |x, y| Luma([(255.0 * ramp(x + t, y)) as u8]);
        let frame = DynamicImage::ImageLuma8(ImageBuffer::from_fn(8, 8, gray));
        save(&repository, &format!("film/{t}.png"), &frame);
    }
    for (arguments, needles) in [
        ("photo.png --mask 0 --out a.png", ["--mask 0", "above 0 and below 1"]),
        ("photo.png --mask 1 --out a.png", ["--mask 1", "above 0 and below 1"]),
        ("photo.png --mask 0.0001 --out a.png", ["positions", "must train"]),
        ("photo.png --out photo.png", ["is the input itself", "another file"]),
        ("photo.png --out a.gif", [".gif is not supported", ".png"]),
        ("photo.png --out a.npz", ["picture is written as .png", "--out"]),
        ("photo.png --out none/a.png", ["does not exist", "create it first"]),
        ("photo.png --size 64 --out a.png", ["32×32", "larger"]),
        ("photo.png --embedder gausian --out a.png", ["gausian", "gaussian"]),
        ("photo.png --set sigma=-1 --out a.png", ["sigma", "-1"]),
        ("photo.png --set sigma --out a.png", ["--set sigma", "NAME=VALUE"]),
        ("photo.png --set dimension=60000 --out a.png", ["GiB", "dimension"]),
        ("photo.png --set dimension=10000000 --out a.png", ["GiB", "4 GiB"]),
        ("film --set dimension=1000000 --out a.npz", ["GiB", "4 GiB"]),
        ("photo.png --mask 0.5 --set dimension=6000 --out a.png", ["about 14 h", "allowed: 4 h"]),
        (
            "photo.png --encoding simple --solver gradient-descent --depth 1 --set dimension=5000000 --out a.png",
            ["the network needs", "4 GiB"],
        ),
        ("photo.png --encoding simple --out a.png", ["ridge", "gradient-descent"]),
        ("photo.png --mask 0.5 --solver ridge --out a.png", ["needs a grid", "closed-form"]),
        ("photo.png --depth 1 --out a.png", ["hidden layers", "gradient-descent"]),
        ("photo.png --method linear --embedder gaussian --out a.png", ["--method", "--embedder"]),
        ("film --mask 0.4 --method linear --out a.npz", ["tetrahedra", "nearest"]),
        ("missing.png --out a.png", ["missing.png", "not found"]),
        ("text.mp4 --out a.npz", ["text.mp4", ""]),
        ("photo.png --epochs 9 --out a.png", ["--epochs has no effect", "gradient-descent"]),
        ("photo.png --learning-rate 1 --out a.png", ["--learning-rate", "--solver ridge"]),
        ("photo.png --mask 0.5 --width 9 --out a.png", ["--width", "--solver closed-form"]),
        (
            "photo.png --solver gradient-descent --width 9 --out a.png",
            ["without hidden layers", "--depth 1"],
        ),
    ] {
        let mut all = vec!["fit"];
        all.extend(arguments.split_whitespace());
        repository.fails(&all, &needles);
        assert!(!repository.path().join("a.png").exists(), "{arguments}");
    }
}

/// Catches advice that does not come from the reference, and a run without `--out` that is accepted.
#[test]
fn advice_comes_from_the_reference() {
    let repository = Repository::new();
    let photo = save(&repository, "photo.png", &color(64, 48));
    let photo = photo.to_str().unwrap();
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let advice = |file: &str, start: &str, options: &[&str]| {
        let arguments = ["--root", root, "fit", file, "--advise"];
        let advice = repository.ok(&[&arguments, options].concat()).stdout;
        assert!(advice.starts_with(start), "{advice}");
        advice
    };
    let small = advice(photo, "Images of 128 × 128 pixels, every second pixel", &[]);
    has(&small, &["Tri (complex encoding, ridge regression)"]);
    save(&repository, "large.png", &color(400, 300));
    advice("large.png", "Images of 512 × 512 pixels, every second pixel", &[]);
    advice(photo, "Images of 512 × 512 pixels, a random quarter", &["--mask", "0.25"]);
    repository.fails(&["fit", photo, "--advise"], &["has no record of such signals"]);
    repository.fails(&["fit", photo], &["--out"]);
}
