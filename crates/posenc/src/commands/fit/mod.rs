//! `fit`: interpolates a picture or clip of the user, or fits it with a position encoding, and prints the PSNR.

mod encoding;
mod interpolation;
mod settings;
mod target;

use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Result, ensure};
use posenc_data::Loaded;
use posenc_data::Signal;
use posenc_experiments::Catalog;
use posenc_experiments::schema::display::Positions;
use posenc_harness::repository::Repository;
use posenc_math::quality::psnr_of;
use posenc_math::random::stream;
use posenc_protocols::KINDS;
use posenc_protocols::network_nd::TestPositions;
use posenc_protocols::reconstruction::{Rule, Split, mean_squared_error, split};
use posenc_report::Records;

use crate::arguments::Fit;

pub fn fit(repository: &Repository, options: &Fit) -> Result<ExitCode> {
    settings::check(options)?;
    if let Some(out) = &options.out {
        repository.check_file(out)?;
        target::check_path(&options.file, out)?;
    }
    let Loaded { signal, warnings } = posenc_data::load_signal_file(&options.file, options.size)?;
    for warning in warnings {
        eprintln!("note: {warning}");
    }
    if options.advise {
        return advise(repository, options, &signal);
    }
    let rule = match options.mask {
        Some(fraction) => Rule::Random { fraction },
        None => Rule::Grid { step: usize::from(options.step) },
    };
    let mut mask = stream(options.seed, "fit mask");
    let split = split(&signal.sides, rule, TestPositions::Rest, &mut mask)?;
    let shape: Vec<String> = signal.sides.iter().map(usize::to_string).collect();
    if let Some(out) = &options.out {
        target::check_format(out, &signal)?;
    }
    println!(
        "{}: {} × {} channel{}, {} of {} positions are used for training",
        signal.name,
        shape.join(" × "),
        signal.channels,
        if signal.channels == 1 { "" } else { "s" },
        split.train.len(),
        signal.points()
    );
    let started = Instant::now();
    let (name, values) = match &options.model {
        Some(model) => {
            let (description, values) = encoding::encode(options, model, &signal, &split)?;
            println!("{description}, {:.2} s", started.elapsed().as_secs_f64());
            (model.embedder.clone(), values)
        }
        None => {
            let (name, values) = interpolation::interpolate(options.method, &signal, &split, rule)?;
            (name.to_owned(), values)
        }
    };
    let seconds = started.elapsed().as_secs_f64();
    for (what, psnr) in psnrs(&signal, &split, &values) {
        println!("PSNR of {what}: {psnr:.2} dB");
    }
    if options.compare {
        interpolation::compare(&name, &values, seconds, &signal, &split, rule)?;
    }
    if let Some(out) = &options.out {
        target::write(out, &signal, values)?;
        println!("{}", out.display());
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints the best methods for their time on recorded signals that are sampled like the file.
fn advise(repository: &Repository, options: &Fit, signal: &Signal) -> Result<ExitCode> {
    let positions = match options.mask {
        Some(_) => Positions::Random,
        None => Positions::Grid,
    };
    let catalog = Catalog::read(repository.root(), KINDS)?;
    let records = Records::read(&repository.record(), &catalog)?;
    let advice = posenc_report::advice(&catalog, &records, (&signal.sides, positions));
    ensure!(!advice.is_empty(), "{} has no record of such signals", repository.record().display());
    advice.lines().for_each(|line| println!("{line}"));
    println!(
        "Times and mean PSNRs are those of the report, on one CPU core. `fit --compare` prints the PSNR to expect of interpolation on this \
         file."
    );
    Ok(ExitCode::SUCCESS)
}

/// PSNR in dB at the training positions, at the other positions and at all positions.
fn psnrs(signal: &Signal, split: &Split, values: &[f64]) -> Vec<(&'static str, f64)> {
    let of = |points: &mut dyn Iterator<Item = usize>| {
        mean_squared_error(signal, values, points).map_or(f64::NAN, psnr_of)
    };
    let mut psnrs =
        vec![("the training positions", of(&mut split.train.iter().map(|&p| p as usize)))];
    if !split.test.is_empty() {
        psnrs.push(("the others", split.psnr(signal, values)));
        psnrs.push(("all", of(&mut (0..signal.points()))));
    }
    psnrs
}
