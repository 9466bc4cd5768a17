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
        correct: "The code of the notebooks has $10^{-3}$ for the impulse, square, sine and basic encodings. For the \
                  Gaussian of Figure 7, its learning rate depends on $\\sigma$.",
        consequence: "The record of Figures 6 to 8 has runs at both. Claims are judged at the learning rates of the \
                      notebooks.",
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
