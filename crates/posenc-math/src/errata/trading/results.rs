//! Claims of Section 6 and Appendix D, compared with the tables and figures.

use crate::errata::{Erratum, Error, Finding, Inputs, Quantity, Severity};

const METHODS: [&str; 5] = ["LinF", "LogF", "RFF", "Tri", "Gau"];

pub(super) static ERRATA: &[Erratum] = &[
    Erratum {
        id: "trading-speedup-video",
        place: "App. D.2 and the caption of Table 4",
        severity: Severity::Contradicted,
        printed: "\"Complex encodings with a single linear network are 10x faster than simple encodings with deep \
                  networks.\"",
        correct: "According to the times in the same table, they are about 100 times faster.",
        consequence: "Neither number is tested, since our training step skips work that the authors' step does.",
        check: speedup_video,
    },
    Erratum {
        id: "trading-rank-order",
        place: "Sec. 6.2",
        severity: Severity::Ambiguous,
        printed: "\"Frequency encodings (LinF, LogF, RFF) did not perform well with complex encoding since they were \
                  rank deficient.\"",
        correct: "The encodings are deficient in the number of nonzero singular values, not in stable rank. Rank \
                  alone does not explain the order. With the same $K$ and $\\sigma$, and thus the same rank, RFF is \
                  4.4 dB better with gradient descent than in closed form. LinF is 2.0 dB worse (with another \
                  $\\sigma$).",
        consequence: "The reproduction reports both ranks, and the closed form with and without truncation.",
        check: rank_order,
    },
    Erratum {
        id: "trading-extra-layer",
        place: "App. D.3",
        severity: Severity::Ambiguous,
        printed: "\"Adding an extra non-linear layer (depth 1, column 4) did not substantially improve the \
                  performance of shifted-based complex encodings while adding more details for frequency-based \
                  complex encodings.\"",
        correct: "\"Details\" have no number. If they show in the test PSNR, the sentence holds for the printed values \
                  of Figure 10, where the layer adds 2.2 to 4.1 dB to the Fourier encoders. It does not hold for \
                  those of Figures 11 and 12, where the layer adds at most 0.1 dB and costs up to 2.2 dB. For Tri \
                  and Gau, the numbers printed there with and without the layer are equal to 0.01 dB.",
        consequence: "The test PSNR is compared figure by figure.",
        check: extra_layer,
    },
];

/// Smallest and largest ratio of simple to complex times in a table.
fn speedups(inputs: &Inputs<'_>, table: &str) -> Result<(f64, f64), Error> {
    let (mut low, mut high) = (f64::INFINITY, 0.0f64);
    for method in METHODS {
        let simple = inputs.value("trading", table, "simple", method, "time")?;
        let complex = inputs.value("trading", table, "complex-gd", method, "time")?;
        low = low.min(simple / complex);
        high = high.max(simple / complex);
    }
    Ok((low, high))
}

fn speedup_video(inputs: &Inputs<'_>) -> Result<Finding, Error> {
    let claim = inputs.value("trading", "table4", "claim", "complex vs simple", "speedup")?;
    let (low, high) = speedups(inputs, "table4")?;
    let quantities = vec![
        Quantity::new("smallest ratio of times in Table 4").printed(claim).measured(low).unit("×"),
        Quantity::new("largest ratio").printed(claim).measured(high).unit("×"),
    ];
    let holds = low > 5.0 * claim;
    Ok(Finding { quantities, holds })
}

fn rank_order(inputs: &Inputs<'_>) -> Result<Finding, Error> {
    let get = |group: &str, method: &str, metric: &str| {
        inputs.value("trading", "table1", group, method, metric)
    };
    let gain = |method: &str| {
        Ok::<_, Error>(
            get("closed-form", method, "test_psnr")? - get("complex-gd", method, "test_psnr")?,
        )
    };
    let (rff, lin) = (gain("RFF")?, gain("LinF")?);
    let same_width =
        get("closed-form", "RFF", "encoder_param")? == get("complex-gd", "RFF", "encoder_param")?;
    let quantities = vec![
        Quantity::new("closed form minus gradient descent, RFF, same $\\sigma$")
            .measured(rff)
            .unit("dB"),
        Quantity::new("closed form minus gradient descent, LinF").measured(lin).unit("dB"),
    ];
    let holds = same_width && rff < -1.0 && lin > 1.0;
    Ok(Finding { quantities, holds })
}

fn extra_layer(inputs: &Inputs<'_>) -> Result<Finding, Error> {
    let mut quantities = Vec::new();
    let mut gains = Vec::new();
    for figure in ["fig10", "fig11", "fig12"] {
        for method in ["LinF", "LogF", "RFF"] {
            let at = |group, depth| {
                inputs.find(["trading", figure, group, method, "test_psnr"], Some(depth))
            };
            let gain = at("complex-gd-deep", 1.0)? - at("complex-gd", 0.0)?;
            let name = format!("gain by one hidden layer, {method}, Fig. {}", &figure[3..]);
            quantities.push(Quantity::new(name).measured(gain).unit("dB"));
            gains.push(gain);
        }
    }
    let (separable, scattered) = gains.split_at(3);
    let holds = separable.iter().all(|g| *g > 1.0)
        && scattered.iter().all(|g| *g < 0.2)
        && scattered.iter().any(|g| *g < -1.0);
    Ok(Finding { quantities, holds })
}
