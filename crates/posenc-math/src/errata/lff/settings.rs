//! Contradictory settings of the image model, the detector and the heatmaps.

use crate::errata::{Erratum, Error, Finding, Inputs, Quantity, Severity};
use crate::lff::parameters::{
    DetrConvention, ParameterCount, detr_conventions, detr_with_modulator, reformer_base, table3,
    table3_alternatives,
};

pub(super) static ERRATA: &[Erratum] = &[
    Erratum {
        id: "lff-feature-width",
        place: "Sec. 4.1 vs. App. B",
        severity: Severity::Ambiguous,
        printed: "The same model has $|F| = 384$ in Section 4.1 and $|F| = 768$ in Appendix B.",
        correct: "The printed size of 60.7 M parameters fits both. The encoder, with its layer norms, has 21 % fewer \
                  parameters than Embed-2D with 384 and 6 % more with 768, which the statement \"roughly the same \
                  number of parameters as Embed-2D\" fits better. The variants without modulator require 768.",
        consequence: "The reproduction uses 768; 384 is an option.",
        check: feature_width,
    },
    Erratum {
        id: "lff-embed-1d",
        place: "App. B, Table 3",
        severity: Severity::Ambiguous,
        printed: "Embed-1D \"needs to assign an embedding vector for each position in a flattened image\".",
        correct: "A position is a sub-pixel: there are 12,288 vectors of full width. One vector per pixel would not \
                  yield the printed 73.2 M parameters.",
        consequence: "Embed-1D and Sine-1D index sub-pixels and do not use the color embedding.",
        check: embed_1d,
    },
    Erratum {
        id: "lff-reformer-throughput",
        place: "Sec. 4.1, App. B",
        severity: Severity::Contradicted,
        printed: "Training uses 8 images on each of 32 TPU v2 cores and takes about 24 hours for 100k steps.",
        correct: "The dense layers alone would require 1.8 times the peak of 32 cores (0.72 PFLOP/s). With one image \
                  per core, as in the public configuration, they would require 23 % of the peak.",
        consequence: "Batch sizes of 32 and 256 are both options.",
        check: reformer_throughput,
    },
    Erratum {
        id: "lff-detr-steps",
        place: "Fig. 4, caption, vs. App. B",
        severity: Severity::Contradicted,
        printed: "The curves show \"the initial 100k steps\" (Figure 4), but training took 90k steps (Appendix B).",
        correct: "One of the two numbers is wrong. At batch size 64 they correspond to 54 and 49 epochs.",
        consequence: "The reproduction uses 90k steps.",
        check: detr_steps,
    },
    Erratum {
        id: "lff-detr-counting",
        place: "Table 4",
        severity: Severity::Ambiguous,
        printed: "Every detector has 41.6 M parameters.",
        correct: "Neither the trained weights (41.3 M) nor all weights (41.5 M) match. Only the weights together \
                  with the scale and bias of batch norm match every row.",
        consequence: "The reproduction counts parameters in this way.",
        check: detr_counting,
    },
    Erratum {
        id: "lff-detr-modulator",
        place: "App. B, detector",
        severity: Severity::Ambiguous,
        printed: "\"The MLP uses a dense layer $2\\times256$ with ReLu as activation, which is then followed by \
                  another dense layer of $256\\times256$.\"",
        correct: "This describes the MLP baseline on raw coordinates. A modulator with 256 features and 256 hidden \
                  units would increase the detector to 41.7 M parameters. The printed 41.6 M leaves fewer than \
                  72,112 parameters for the modulator.",
        consequence: "The modulator is 256 → 32 → 256. Of the hidden widths tested (32, 128, 256), 128 is the \
                      largest that fits.",
        check: detr_modulator,
    },
    Erratum {
        id: "lff-gamma-captions",
        place: "App. B and C.2, captions of Figs. 8 and 9",
        severity: Severity::Contradicted,
        printed: "For the same captioner, $\\gamma = 100$ in the text, 64.0 in the caption of Figure 8, and 1.0 in \
                  the caption of Figure 9 (with the KL loss).",
        correct: "One model cannot start from all three values.",
        consequence: "The reproduction uses 100; 64 and 1 are options of the heatmaps.",
        check: gamma_captions,
    },
];

const METHOD: &str = "Learnable-Fourier + MLP";

fn find<'a>(rows: &'a [ParameterCount], method: &str) -> Result<&'a ParameterCount, Error> {
    rows.iter()
        .find(|row| row.method == method)
        .ok_or_else(|| Error(format!("no row for method '{method}'")))
}

fn feature_width(_: &Inputs<'_>) -> Result<Finding, Error> {
    let rows = table3();
    let wide = find(&rows, METHOD)?;
    let [narrow, ..] = &table3_alternatives();
    // Parameters of the encoding alone: the modulator with its layer norms, and the frequencies, without the color embedding.
    let module = |row: &ParameterCount, name: &str| {
        row.modules.iter().filter(|m| m.name == name).map(|m| m.count()).sum::<u64>() as f64
    };
    let encoder = |row: &ParameterCount| {
        ["modulator", "norms of the modulator", "frequencies"]
            .map(|m| module(row, m))
            .iter()
            .sum::<f64>()
    };
    let reference = module(find(&rows, "Embed-2D")?, "row and column tables");
    let excess = |row: &ParameterCount| 100.0 * (encoder(row) / reference - 1.0);
    let quantities = vec![
        Quantity::new("size with $|F| = 768$")
            .printed(wide.printed)
            .measured(wide.total as f64 / 1e6)
            .unit("M"),
        Quantity::new("size with $|F| = 384$")
            .printed(wide.printed)
            .measured(narrow.total as f64 / 1e6)
            .unit("M"),
        Quantity::new("encoder relative to Embed-2D, $|F| = 768$").measured(excess(wide)).unit("%"),
        Quantity::new("encoder relative to Embed-2D, $|F| = 384$")
            .measured(excess(narrow))
            .unit("%"),
    ];
    let holds =
        wide.matches && narrow.matches && excess(wide).abs() < 10.0 && excess(narrow) < -20.0;
    Ok(Finding { quantities, holds })
}

fn embed_1d(_: &Inputs<'_>) -> Result<Finding, Error> {
    let rows = table3();
    let sub_pixels = find(&rows, "Embed-1D")?;
    let [_, pixels, ..] = &table3_alternatives();
    let quantities = vec![
        Quantity::new("size with one vector per pixel")
            .printed(pixels.printed)
            .measured(pixels.rounded)
            .unit("M"),
        Quantity::new("size with one vector per sub-pixel")
            .measured(sub_pixels.rounded)
            .corrected(sub_pixels.printed)
            .unit("M"),
    ];
    let holds = sub_pixels.matches && !pixels.matches;
    Ok(Finding { quantities, holds })
}

fn reformer_throughput(inputs: &Inputs<'_>) -> Result<Finding, Error> {
    let setup = |metric: &str| inputs.value("lff", "fig3", "setup", "all", metric);
    let cores = setup("cores")?;
    let images = setup("images_per_core")? * cores;
    let weights: u64 = reformer_base()
        .iter()
        .filter(|m| !m.name.contains("table") && !m.name.contains("output norm"))
        .map(|m| m.count())
        .sum();
    // Six floating-point operations per weight and token: two forward, four backward.
    let work =
        |images: f64| Ok::<_, Error>(6.0 * weights as f64 * images * setup("sequence_length")?);
    let seconds = 3600.0 * setup("training_time")? / setup("training_steps")?;
    let peak = 22.5e12 * cores;
    let utilization = |images: f64| Ok::<_, Error>(work(images)? / (seconds * peak));
    let quantities = vec![
        Quantity::new("time of a step").measured(seconds).unit("s"),
        Quantity::new("work of a step, dense layers only, 8 images per core")
            .measured(work(images)? / 1e15)
            .unit("PFLOP"),
        Quantity::new("share of the peak, 8 images per core").measured(utilization(images)?),
        Quantity::new("share of the peak, 1 image per core").measured(utilization(cores)?),
    ];
    let holds = utilization(images)? > 1.5 && utilization(cores)? < 0.5;
    Ok(Finding { quantities, holds })
}

fn detr_steps(inputs: &Inputs<'_>) -> Result<Finding, Error> {
    let steps = |group: &str| inputs.value("lff", "fig4", group, "DETR", "training_steps");
    let (caption, appendix) = (steps("caption")?, steps("appendix-b")?);
    let images = 118_287.0;
    let per_epoch = images / inputs.value("lff", "fig4", "setup", "DETR", "batch")?;
    let quantities = vec![
        Quantity::new("steps: caption, and Appendix B").printed(caption).measured(appendix),
        Quantity::new("epochs: caption, and Appendix B")
            .printed(caption / per_epoch)
            .measured(appendix / per_epoch),
    ];
    let holds = quantities.iter().all(|q| q.refutes_printed(0.05));
    Ok(Finding { quantities, holds })
}

fn detr_counting(inputs: &Inputs<'_>) -> Result<Finding, Error> {
    let printed = inputs.value("lff", "table4", "detr", "Normalized Sine-2D", "params")?;
    let plain_network = 2.0 * 256.0 + 256.0 + 256.0 * 256.0 + 256.0;
    let mut fitting = Vec::new();
    let mut quantities = Vec::new();
    for (convention, size) in detr_conventions() {
        // Sine-2D adds no parameters; the plain MLP on coordinates adds the most.
        let rounds = |count: f64| (count / 1e5).round() / 10.0 == printed;
        if rounds(size as f64) && rounds(size as f64 + plain_network) {
            fitting.push(convention);
        }
        let name = match convention {
            DetrConvention::Trained => "trained weights",
            DetrConvention::Weights => "all weights",
            DetrConvention::WithScaleAndBias => "weights, scale and bias of batch norm",
            DetrConvention::WithStatistics => "with the running statistics",
        };
        for (row, extra) in [("Sine-2D", 0.0), ("MLP", plain_network)] {
            quantities.push(
                Quantity::new(format!("{name}, {row}"))
                    .printed(printed)
                    .measured((size as f64 + extra) / 1e6)
                    .unit("M"),
            );
        }
    }
    let holds = fitting == [DetrConvention::WithScaleAndBias];
    Ok(Finding { quantities, holds })
}

fn detr_modulator(inputs: &Inputs<'_>) -> Result<Finding, Error> {
    let printed = inputs.value("lff", "table4", "detr", METHOD, "params")?;
    let mut quantities = Vec::new();
    for hidden in [256, 128, 32] {
        let size = detr_with_modulator(256, hidden).total as f64 / 1e6;
        let name = format!("size with the modulator 256 → {hidden} → 256");
        quantities.push(Quantity::new(name).printed(printed).measured(size).unit("M"));
    }
    let fits = [256, 128, 32].map(|hidden| detr_with_modulator(256, hidden).matches);
    let holds = fits == [false, true, true];
    Ok(Finding { quantities, holds })
}

fn gamma_captions(inputs: &Inputs<'_>) -> Result<Finding, Error> {
    let text = inputs.value("lff", "table1", "setup", "Fourier-based", "gamma")?;
    let fig8 = inputs.value("lff", "fig8", "setup", "Learnable-Fourier+MLP-2/2", "gamma")?;
    let fig9 = inputs.value("lff", "fig9", "setup", "Learnable-Fourier+MLP-2/2 + KL", "gamma")?;
    let row = |name: &str, value: f64| Quantity::new(name).printed(value).measured(text);
    let quantities = vec![
        row("$\\gamma$ under Figure 8, and in Appendix B", fig8),
        row("$\\gamma$ under Figure 9, and in Appendix B", fig9),
    ];
    let holds = quantities.iter().all(|q| q.refutes_printed(0.1)) && fig8 != fig9;
    Ok(Finding { quantities, holds })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tolerance::{Tolerance, assert_close};

    /// Catches an encoder that is counted without its layer norms: Algorithm 1 with norms has 52,320 and 38,880 parameters.
    #[test]
    fn the_encoder_includes_its_layer_norms() {
        let none = |_: &str, _: &str, _: &str, _: &str, _: &str, _: Option<f64>| None;
        let finding = feature_width(&Inputs { published: &none, seed: 0 }).unwrap();
        for (quantity, parameters) in finding.quantities[2..].iter().zip([52_320.0, 38_880.0]) {
            let excess = 100.0 * (parameters / 49_152.0 - 1.0);
            assert_close(quantity.measured.unwrap(), excess, Tolerance::relative(1e-12));
        }
    }
}
