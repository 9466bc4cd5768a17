//! Settings of the tables: model sizes, data splits and scripts.

use std::f64::consts::TAU;

use faer::Mat;

use crate::errata::numeric::rank;
use crate::errata::{Erratum, Error, Finding, Inputs, Quantity, Severity};

pub(super) static ERRATA: &[Erratum] = &[
    Erratum {
        id: "trading-input-width",
        place: "Tables 3 and 4, simple encodings, vs. the scripts",
        severity: Severity::CodeDiffers,
        printed: "The networks have 1,445,891 parameters.",
        correct: "That size requires an input of 768 features. The released scripts use an input of 192 features, \
                  with 1,150,979 parameters.",
        consequence: "Tables 3 and 4 are reproduced with 768 features. Whether the width parameters of the encoders \
                      were tuned for 768 is unknown.",
        check: input_width,
    },
    Erratum {
        id: "trading-video-depth",
        place: "App. D.2 vs. Sec. 6.3 and Table 4",
        severity: Severity::Contradicted,
        printed: "The simple encodings are combined with \"deep (4 layer MLPs) networks\".",
        correct: "The networks have five hidden layers, as in Section 6.3. With 768 features, these have the printed \
                  1,445,891 parameters. Four layers would need 1281 features, an odd number, but Fourier features are \
                  pairs of sines and cosines.",
        consequence: "The reproduction uses five layers.",
        check: video_depth,
    },
    Erratum {
        id: "trading-video-points",
        place: "App. D.2",
        severity: Severity::Typographic,
        printed: "The training points are a random sample of 12.5 % of a $64\\times64\\times64$ grid.",
        correct: "The training points are 12.5 % of the $128^3$ voxels, which is $64^3$ points. For a $64^3$ grid, \
                  12.5 % is only 32,768 points.",
        consequence: "The reproduction samples 262,144 points.",
        check: video_points,
    },
    Erratum {
        id: "trading-closed-form-solver",
        place: "Sec. 5.2, Eq. 12 and Table 1",
        severity: Severity::Ambiguous,
        printed: "The weights are $(\\Psi(y)\\Psi(y)^T)^{-1}\\Psi(y)S\\Psi(x)^T(\\Psi(x)\\Psi(x)^T)^{-1}$, and Table 1 has \
                  a closed form of LinF and RFF.",
        correct: "The matrices of the Fourier encoders have a rank far below 256, so these inverses do not exist in the \
                  table's single precision. The result depends on the solver and its cut-off, and the paper names neither.",
        consequence: "Statements on the closed form of these encoders are judged with the solution of minimum norm and with \
                      the one of QR without pivoting, which the authors' library came to. They are ambiguous if only \
                      one of the two supports them.",
        check: closed_form_solver,
    },
];

/// Weights and biases of a network `input → width (× hidden) → 3`.
fn network_size(input: f64, width: f64, hidden: i32) -> f64 {
    (input + 1.0) * width + f64::from(hidden - 1) * (width + 1.0) * width + (width + 1.0) * 3.0
}

fn input_width(inputs: &Inputs<'_>) -> Result<Finding, Error> {
    let printed = inputs.value("trading", "table3", "simple", "Gau", "params")?;
    let script = inputs.value("trading", "table3", "simple", "all", "dim")?;
    let width = inputs.value("trading", "table3", "simple", "all", "width")?;
    let quantities = vec![
        Quantity::new("parameters with the script's input of 192")
            .printed(printed)
            .measured(network_size(script, width, 5)),
        Quantity::new("parameters with an input of 768")
            .measured(network_size(768.0, width, 5))
            .corrected(printed),
    ];
    let holds = quantities[0].refutes_printed(0.01) && quantities[1].is_corrected(0.0);
    Ok(Finding { quantities, holds })
}

fn video_depth(inputs: &Inputs<'_>) -> Result<Finding, Error> {
    let printed = inputs.value("trading", "table4", "simple", "Gau", "params")?;
    let quantities = vec![
        Quantity::new("parameters with 4 hidden layers of 512 and 768 features")
            .printed(printed)
            .measured(network_size(768.0, 512.0, 4)),
        Quantity::new("parameters with 5 hidden layers of 512 and 768 features")
            .measured(network_size(768.0, 512.0, 5))
            .corrected(printed),
        Quantity::new("features with which 4 hidden layers have the printed number")
            .measured((printed - network_size(0.0, 512.0, 4)) / 512.0),
    ];
    let is_odd = quantities[2].measured.is_some_and(|features| features % 2.0 == 1.0);
    let holds = quantities[0].refutes_printed(0.01) && quantities[1].is_corrected(0.0) && is_odd;
    Ok(Finding { quantities, holds })
}

fn video_points(_: &Inputs<'_>) -> Result<Finding, Error> {
    let grid = 64f64.powi(3);
    let quantity = Quantity::new("training points")
        .printed(grid / 8.0)
        .measured(0.125 * 128f64.powi(3))
        .corrected(grid);
    Finding::decided(vec![quantity], 0.0)
}

fn closed_form_solver(inputs: &Inputs<'_>) -> Result<Finding, Error> {
    const SIZE: usize = 256;
    let mut quantities = Vec::new();
    for (method, is_linear) in [("LinF", true), ("LogF", false)] {
        let octaves = inputs.value("trading", "table1", "closed-form", method, "encoder_param")?;
        let frequency = |i: usize| {
            let share = i as f64 / (SIZE / 2 - 1) as f64;
            if is_linear { 1.0 + share * (octaves.exp2() - 1.0) } else { (share * octaves).exp2() }
        };
        let matrix = Mat::from_fn(SIZE, SIZE, |row, column| {
            let angle = TAU * frequency(column / 2) * row as f64 / SIZE as f64;
            if column % 2 == 0 { angle.sin() } else { angle.cos() }
        });
        for (name, cutoff) in
            [("1e-2", 1e-2), ("3e-5, of the authors' library", 256.0 * f64::from(f32::EPSILON))]
        {
            let rank = rank(matrix.as_ref(), cutoff)? as f64;
            quantities.push(
                Quantity::new(format!("rank of {method} at a cut-off of {name}"))
                    .printed(SIZE as f64)
                    .measured(rank),
            );
        }
    }
    let holds = quantities.iter().all(|q| q.refutes_printed(0.25));
    Ok(Finding { quantities, holds })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a missing bias or layer in the count (Table 1 prints 329,475).
    #[test]
    fn image_network_size() {
        assert_eq!(network_size(512.0, 256.0, 4), 329_475.0);
        assert_eq!(network_size(768.0, 512.0, 5), 1_445_891.0);
    }
}
