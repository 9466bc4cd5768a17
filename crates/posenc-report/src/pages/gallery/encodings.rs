//! Second part of the gallery: position encodings of attention models.

use posenc_experiments::Catalog;
use posenc_math::lff::encoding::{Encoding, Features, Modulator};

use crate::markdown::{Align, Grid, anchor, cell, code};

/// Positions and width used to count parameters.
const SIDES: [usize; 2] = [32, 32];
const WIDTH: usize = 64;

/// Setting, formula, learned parameters, source, and the encoding itself.
type Line = (&'static str, &'static str, &'static str, &'static str, Encoding);

fn lines() -> [Line; 11] {
    let of = |features| Encoding { features, ..Encoding::none() };
    let fourier = |learned| Encoding { gamma: Some(1.0), learned, ..of(Features::Fourier) };
    [
        ("features: none", "$0$", "$0$", "baseline", Encoding::none()),
        (
            "features: embed",
            r"$T^{(1)}_{x_1} \Vert \dots \Vert T^{(M)}_{x_M}$, one learned embedding table per coordinate",
            r"$\sum_m n_m\,D/M$",
            "lff Sec. 4",
            of(Features::Embed),
        ),
        (
            "features: embed, flat: true",
            r"$T_i$, one learned embedding table over all positions in reading order",
            r"$D \prod_m n_m$",
            "lff Table 3, Embed-1D",
            Encoding { flat: true, ..of(Features::Embed) },
        ),
        (
            "features: embed, summed: true",
            r"$\sum_m T^{(m)}_{x_m}$",
            r"$D \sum_m n_m$",
            "the public captioner",
            Encoding { summed: true, ..of(Features::Embed) },
        ),
        (
            "features: sine",
            r"$\sin(x_m / 10000^{2i/(D/M)}) \Vert \cos(x_m / 10000^{2i/(D/M)})$ for every coordinate",
            "$0$",
            "lff Eq. 1",
            of(Features::Sine),
        ),
        (
            "features: summed-sine",
            r"sines and cosines of $\omega_i (x_1 + \dots + x_M)$",
            "$0$",
            "one reading of Transformer MD-Sine",
            of(Features::SummedSine),
        ),
        (
            "features: paired-sine",
            r"sines and cosines of $\omega_i x_1 \pm \omega_j x_2$",
            "$0$",
            "another reading of Transformer MD-Sine",
            of(Features::PairedSine),
        ),
        (
            "features: network, hidden: 32",
            r"$\max(0, x W_1 + b_1) W_2 + b_2$",
            r"$(M + 1) H + (H + 1) D$",
            "lff Table 1, MLP",
            Encoding { hidden: Some(32), ..of(Features::Network) },
        ),
        (
            "features: fourier, gamma: 1",
            r"$\frac{1}{\sqrt{D}} (\cos x W_r^\top \Vert \sin x W_r^\top)$, $W_r \sim \mathcal{N}(0, \gamma^{-2})$",
            "$0$",
            "lff Eq. 2",
            fourier(false),
        ),
        (
            "features: fourier, gamma: 1, learned: true",
            r"as above, with learned $W_r$",
            r"$\frac{D}{2} M$",
            "lff Eq. 2, 3",
            fourier(true),
        ),
        (
            "features: fourier, gamma: 1, learned: true, modulator: { hidden: 32 }",
            r"$\max(0, f W_1 + b_1) W_2 + b_2$ of the features $f$ above",
            r"$\frac{F}{2} M + (F + 1) H + (H + 1) D$",
            "lff Algorithm 1",
            Encoding {
                modulator: Some(Modulator { hidden: 32, layer_norm: false, dropout: 0.0 }),
                ..fourier(true)
            },
        ),
    ]
}

/// Renders this part; empty if no paper in the catalog has attention models.
pub fn render(catalog: &Catalog) -> String {
    if !catalog.papers.iter().any(|p| p.key == "lff") {
        return String::new();
    }
    let mut grid = Grid::default();
    grid.columns(["Setting", "Encoding of a position", "Learned parameters"], Align::Left);
    grid.column(format!("{} × {}, D = {WIDTH}", SIDES[0], SIDES[1]), Align::Right);
    grid.column("Source", Align::Left);
    for (setting, formula, parameters, source, encoding) in lines() {
        grid.row(vec![
            code(setting),
            cell(formula),
            cell(parameters),
            encoding.parameter_count(&SIDES, WIDTH).to_string(),
            source.to_owned(),
        ]);
    }
    format!(
        "{}\n\n## Position encodings of attention models\n\n\
         The table lists the values of `encoding` in an experiment. An encoding maps the $M$ coordinates $x_1, \\dots, x_M$ of a \
         position, with $n_m$ values each, to $D$ numbers. $F$ is the number of features and $H$ the hidden width. With \
         `groups`, the coordinates are split into $G$ groups with shared weights, each with $M/G$ coordinates and $D/G$ \
         numbers. [Learnable Fourier Features](lff.md) evaluates models with these encodings, and [Figure 2](lff/fig2.md) \
         shows their similarity over space.\n\n{}",
        anchor("encodings"),
        grid.render()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a printed count that differs from the code, and a setting that the schema would reject.
    #[test]
    fn printed_formulas_match_the_parameter_counts() {
        let (m, d, f, h, n) = (2, WIDTH, WIDTH, 32, SIDES[0] + SIDES[1]);
        let expected = [
            0,
            n * d / m,
            SIDES[0] * SIDES[1] * d,
            d * n,
            0,
            0,
            0,
            (m + 1) * h + (h + 1) * d,
            0,
            d / 2 * m,
            f / 2 * m + (f + 1) * h + (h + 1) * d,
        ];
        assert_eq!(lines().len(), expected.len());
        for ((setting, .., encoding), expected) in lines().into_iter().zip(expected) {
            assert_eq!(encoding.parameter_count(&SIDES, WIDTH), expected, "{setting}");
            encoding.check(2, WIDTH).unwrap_or_else(|e| panic!("{setting}: {e:?}"));
        }
    }
}
