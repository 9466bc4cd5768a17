//! Differences between the text and the notebooks.

use crate::errata::{Erratum, Error, Finding, Inputs, Quantity, Severity};

pub(super) static ERRATA: &[Erratum] = &[
    Erratum {
        id: "rethinking-learning-rates",
        place: "Secs. 5.2 and 5.3 vs. the notebooks",
        severity: Severity::CodeDiffers,
        printed: "\"We train the model with each embedder for 4000 epochs using the Adam optimizer with a learning \
                  rate of $1e^{-4}$.\" (Sec. 5.2) \"The learning rate for original coordinates is $1e^{-3}$, and for \
                  others, it is $1e^{-4}$.\" (Sec. 5.3)",
        correct: "The notebooks use $10^{-3}$ for the impulse, square, sine and basic encodings. For the Gaussian, \
                  their learning rate depends on $\\sigma$.",
        consequence: "The reproduction uses the learning rates of the notebooks, which produced the published \
                      numbers.",
        check: learning_rates,
    },
    Erratum {
        id: "rethinking-ten-rows",
        place: "Secs. 5.2 and 5.3: ten random rows",
        severity: Severity::CodeDiffers,
        printed: "\"Further, we pick ten random rows from the Pepper image as our targets and measure the average \
                  performance.\"",
        correct: "The list in the notebooks contains row 426 twice. It has nine distinct signals, one of them with \
                  double weight.",
        consequence: "The reproduction uses the same list.",
        check: ten_rows,
    },
    Erratum {
        id: "rethinking-fig8-average",
        place: "Fig. 8, PSNR printed in the notebook",
        severity: Severity::CodeDiffers,
        printed: "The printed PSNR measures the performance of a trained network.",
        correct: "An indexing error makes the printed values means over iterations 0 to 1899 instead of over the \
                  last 100. They are far below the end of the curves.",
        consequence: "Both numbers are recorded, and each is compared only with its counterpart.",
        check: fig8_average,
    },
    Erratum {
        id: "rethinking-fig9-test",
        place: "Fig. 9, test PSNR in the notebook",
        severity: Severity::CodeDiffers,
        printed: "The notebook prints a test PSNR.",
        correct: "The value covers all 512 samples, including the 256 training samples. If the training samples are \
                  memorized, the PSNR of the unseen samples is 3.01 dB lower.",
        consequence: "The reproduction reports both.",
        check: fig9_test,
    },
    Erratum {
        id: "rethinking-divisor-256",
        place: "Figs. 9 and 10, notebooks",
        severity: Severity::CodeDiffers,
        printed: "The signals are in $[0, 1]$ with a peak of 1.",
        correct: "The notebooks divide 8-bit values by 256, so the peak is 255/256. For the same error in gray \
                  levels, PSNR is 0.034 dB too high.",
        consequence: "The reproduction uses the same divisor. The shift is smaller than every claimed difference.",
        check: divisor_256,
    },
];

fn learning_rates(inputs: &Inputs<'_>) -> Result<Finding, Error> {
    let rate =
        |item: &str, method: &str| inputs.value("rethinking", item, "constant", method, "lr");
    let stated = rate("sec5-2", "all")?;
    let quantities = vec![
        Quantity::new("impulse, Sec. 5.2").printed(stated).measured(rate("sec5-2", "Impulse")?),
        Quantity::new("square and sine, Sec. 5.2")
            .printed(stated)
            .measured(rate("sec5-2", "Square/Sine")?),
        Quantity::new("basic encoding, Sec. 5.3")
            .printed(rate("sec5-3", "Gaussian")?)
            .measured(rate("sec5-3", "basic")?),
    ];
    let holds = quantities.iter().all(|q| q.refutes_printed(0.5));
    Ok(Finding { quantities, holds })
}

fn ten_rows(_: &Inputs<'_>) -> Result<Finding, Error> {
    let mut rows = vec![158, 329, 47, 344, 257, 410, 426, 199, 426, 295];
    let listed = rows.len();
    rows.sort_unstable();
    rows.dedup();
    let quantity = Quantity::new("different rows in the list")
        .printed(listed as f64)
        .measured(rows.len() as f64)
        .corrected(9.0);
    Finding::decided(vec![quantity], 1e-12)
}

fn fig8_average(inputs: &Inputs<'_>) -> Result<Finding, Error> {
    let get =
        |method: &str, metric: &str| inputs.value("rethinking", "fig8", "real", method, metric);
    let mut quantities = Vec::new();
    for method in ["RFF", "Gaussian"] {
        quantities.push(
            Quantity::new(format!("train PSNR, {method}: printed, and at the end of the curve"))
                .printed(get(method, "train_psnr_mean_iter_0_1899")?)
                .measured(get(method, "final_train_psnr")?)
                .unit("dB"),
        );
    }
    let holds = quantities.iter().all(|q| q.refutes_printed(0.15));
    Ok(Finding { quantities, holds })
}

fn fig9_test(inputs: &Inputs<'_>) -> Result<Finding, Error> {
    let mut quantities = Vec::new();
    for signal in ["signal-1", "signal-2", "signal-3"] {
        let get = |metric: &str| {
            inputs.find(["rethinking", "fig9", signal, "Gaussian", metric], Some(0.002))
        };
        let all = get("test_psnr_all_samples")?;
        let error = |psnr: f64| 10f64.powf(-psnr / 10.0);
        // The mean over all samples is the mean of the two halves.
        let unseen = 2.0 * error(all) - error(get("train_psnr")?);
        quantities.push(
            Quantity::new(format!("test PSNR, $\\sigma = 0.002$, {}", signal.replace('-', " ")))
                .printed(all)
                .measured(-10.0 * unseen.log10())
                .corrected(all - 10.0 * 2f64.log10())
                .unit("dB"),
        );
    }
    Finding::decided(quantities, 1e-6)
}

fn divisor_256(_: &Inputs<'_>) -> Result<Finding, Error> {
    // PSNR of a fixed error of two gray levels, for either divisor.
    let psnr = |divisor: f64| -20.0 * (2.0 / divisor).log10();
    let shift = psnr(256.0) - psnr(255.0);
    let quantity = Quantity::new("shift of PSNR by the divisor")
        .printed(0.0)
        .measured(shift)
        .corrected(20.0 * (256.0f64 / 255.0).log10())
        .unit("dB");
    Finding::decided(vec![quantity], 1e-9)
}
