//! Settings of the tables: model sizes, data splits and scripts.

use crate::errata::numeric::tri;
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
        correct: "The networks have five hidden layers, as in Section 6.3. Only five layers have the printed \
                  1,445,891 parameters.",
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
        id: "trading-closed-form-parameters",
        place: "Table 3, closed form, vs. the script",
        severity: Severity::CodeDiffers,
        printed: "The closed-form rows have their own encoder parameters.",
        correct: "The script defines separate parameters for the closed form but runs with those of gradient \
                  descent.",
        consequence: "Table 3 is run with both sets of parameters. Which set was published is unknown.",
        check: closed_form_parameters,
    },
    Erratum {
        id: "trading-batch-scale",
        place: "Table 1, simple Tri and Gau, vs. the script",
        severity: Severity::CodeDiffers,
        printed: "Train and test points share one encoding.",
        correct: "The script divides each batch by its own largest row norm. The test points of the grid are encoded \
                  in three batches with smaller norms, so their Tri features are 2 to 3 % too large.",
        consequence: "The reproduction uses one fixed scale. The scale per batch is an option.",
        check: batch_scale,
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
        Quantity::new("parameters with 4 hidden layers of 512")
            .printed(printed)
            .measured(network_size(768.0, 512.0, 4)),
        Quantity::new("parameters with 5 hidden layers of 512")
            .measured(network_size(768.0, 512.0, 5))
            .corrected(printed),
    ];
    let holds = quantities[0].refutes_printed(0.01) && quantities[1].is_corrected(0.0);
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

fn closed_form_parameters(inputs: &Inputs<'_>) -> Result<Finding, Error> {
    let mut quantities = Vec::new();
    let mut holds = true;
    for method in ["LinF", "Gau", "Tri"] {
        let get = |group: &str| inputs.value("trading", "table3", group, method, "encoder_param");
        let (intended, used) = (get("closed-form-intended")?, get("closed-form")?);
        let descent = get("complex-gd")?;
        holds &= used == descent && intended != used;
        quantities.push(
            Quantity::new(format!("parameter of {method}: intended, used, of gradient descent"))
                .printed(intended)
                .measured(used)
                .corrected(descent),
        );
    }
    Ok(Finding { quantities, holds })
}

fn batch_scale(_: &Inputs<'_>) -> Result<Finding, Error> {
    // A point's squared norm is a sum over four directions, each a function of one coordinate, and
    // every coordinate is a multiple of 1/1024: 128 centers j/128, triangle of half-width 2.5/128.
    let square_norm: Vec<f64> = (0..1024)
        .map(|p| {
            let center =
                |j: i32| tri((f64::from(p) / 1024.0 - f64::from(j) / 128.0) / (2.5 / 128.0));
            (0..128).map(|j| center(j).powi(2)).sum()
        })
        .collect();
    let largest = |column: usize, row: usize| {
        let mut largest = 0.0f64;
        for y in (row..512).step_by(2) {
            for x in (column..512).step_by(2) {
                let directions = [2 * x, 2 * y, x + y, x + 512 - y];
                largest = largest.max(directions.iter().map(|p| square_norm[*p]).sum());
            }
        }
        largest.sqrt()
    };
    let train = largest(0, 0);
    let row = |name: &str, column, row| {
        Quantity::new(name).printed(1.0).measured(train / largest(column, row))
    };
    let quantities = vec![
        Quantity::new("largest norm of a training point, Tri $2.5/128$").measured(train),
        row("scale of the test points with odd column", 1, 0),
        row("scale of the test points with odd row", 0, 1),
        row("scale of the test points with odd row and column", 1, 1),
    ];
    let holds = quantities[1..].iter().all(|q| q.refutes_printed(0.02));
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
