//! Widget captioning: Section 4.3, Tables 1, 2 and 5, and statements that these tables contradict.

use crate::errata::{Erratum, Error, Finding, Inputs, Quantity, Severity};
use crate::lff::parameters::{hidden_width_search, table5_public_code};

pub(super) static ERRATA: &[Erratum] = &[
    Erratum {
        id: "lff-table2-average",
        place: "Table 2 vs. Table 1",
        severity: Severity::Ambiguous,
        printed: "Table 2 lists CIDEr for the \"1867 widgets with Seen positions and 2692 with Unseen positions from \
                  the test set\". The paper does not state whether both subsets share their document frequencies, or \
                  whether the values are means of the three runs of Table 1.",
        correct: "CIDEr is a mean over widgets. If both subsets share the document frequencies of the whole test \
                  set, the weighted mean of Table 2 must equal Table 1 within 0.1, the rounding error of both. The \
                  difference is 0.11 for Embed-4D and Sine-4D but 1.6 for Learnable-Fourier+MLP-4/1. Either each \
                  subset has its own document frequencies, or this row comes from other runs than Table 1.",
        consequence: "The two tables are not combined. Our CIDEr uses the document frequencies of the whole test set \
                      in both columns.",
        check: table2_average,
    },
    Erratum {
        id: "lff-claim-groupings",
        place: "Sec. 4.3",
        severity: Severity::Contradicted,
        printed: "\"Interestingly, both Learnable-Fourier+MLP-2/2 and Learnable-Fourier+MLP-4/1 outperform \
                  Learnable-Fourier+MLP-1/4, which indicate that more complex distances needed to be modeled in this \
                  task.\"",
        correct: "The 4/1 grouping is above 1/4 in all six metrics of Table 1. The 2/2 grouping is above it in four \
                  metrics, has the same BLEU-2 and a lower CIDEr.",
        consequence: "The claim uses the metrics in which print has the stated order.",
        check: claim_groupings,
    },
    Erratum {
        id: "lff-claim-consistent",
        place: "Secs. 1 and 4.3",
        severity: Severity::Ambiguous,
        printed: "\"These experiments show that our positional encoding method consistently outperforms existing \
                  methods by both improving accuracy and accelerating learning\" (Section 1).",
        correct: "In Table 1, the statement holds for the groupings 2/2 and 4/1, which are above Embed-4D in all six \
                  metrics. It does not hold for 1/4, whose SPICE is below those of Embed-4D and of the quoted \
                  original model. Compared with fixed frequencies, learned frequencies are better in 14 cases, equal \
                  in 2 and worse in 2, as Section 4.3 says (\"on most cases\"); a fixed variant has the best SPICE.",
        consequence: "Claims are judged for each metric. The paper prints no standard deviations, so its p-values \
                      cannot be checked.",
        check: claim_consistent,
    },
    Erratum {
        id: "lff-claim-learnability",
        place: "Sec. 4.1 vs. Table 1",
        severity: Severity::Ambiguous,
        printed: "\"These experiments show that learnability is crucial for our methods to work.\"",
        correct: "The sentence closes the section on images, whose values are not printed. As a statement about the method, \
                  Table 1 contradicts it: with the grouping 2/2, fixed frequencies have a CIDEr of 100.2 and learned \
                  frequencies 98.0. Only the grouping 4/1 with learned frequencies has more (100.7).",
        consequence: "Claims on learned frequencies are judged for each experiment.",
        check: claim_learnability,
    },
    Erratum {
        id: "lff-claim-mlp-competitive",
        place: "Secs. 4.3 and 5 vs. Sec. 4.2",
        severity: Severity::Ambiguous,
        printed: "\"[A]lthough using MLP alone as the encoding function seems competitive in previous two image \
                  experiments, it performs poorly in this experiment.\"",
        correct: "Section 4.2 names four position encodings of the detector, and an MLP is not among them. Table 4 lists the \
                  size of a detector with an MLP, but the text has no result of it. For the image model, Section 4.1 states that \
                  the MLP is \"still not as good as our method\".",
        consequence: "The reproduction compares the MLP with Learnable-Fourier + MLP in both image experiments.",
        check: claim_mlp_competitive,
    },
    Erratum {
        id: "lff-table5-order",
        place: "Table 5",
        severity: Severity::Ambiguous,
        printed: "Fixed-Fourier+MLP-2/2 has 5.08 M parameters, and Learnable-Fourier+MLP-2/2 has 5.07 M.",
        correct: "If both variants have the same $|H|$, the learned variant is larger by 64 parameters, the weights \
                  of $W_r$. The printed sizes then require a misprint in one row. They are possible if the two \
                  variants have different $|H|$, which the paper does not state.",
        consequence: "The reproduction uses one $|H|$ for both variants. The row of Learnable-Fourier+MLP-2/2 does \
                      not match.",
        check: table5_order,
    },
    Erratum {
        id: "lff-table5-hidden-width",
        place: "App. B, Table 5",
        severity: Severity::Ambiguous,
        printed: "The three groupings have $|F| = 128, 64, 32$. The hidden width $|H|$ is not given.",
        correct: "No common $|H|$ fits the printed sizes. The choice $|H| = |F|$ fits every row except \
                  Learnable-Fourier+MLP-2/2.",
        consequence: "The reproduction uses $|H| = |F|$.",
        check: table5_hidden_width,
    },
    Erratum {
        id: "lff-table5-public-code",
        place: "Table 5 vs. the public captioner",
        severity: Severity::CodeDiffers,
        printed: "The original model has 5.11 M parameters.",
        correct: "The public code as configured, with 10,000 words and frozen word vectors, trains 5.44 M \
                  parameters. A vocabulary of about 7,465 words would close the gap, but so could other differences.",
        consequence: "Only differences between rows are compared.",
        check: table5_public,
    },
    Erratum {
        id: "lff-coordinate-order",
        place: "Secs. 2.2 and 4.3 vs. the public captioner",
        severity: Severity::CodeDiffers,
        printed: "Boxes are given as (left, top, right, bottom), as [top, left, bottom, right], and in groups as \
                  [(top, left), (bottom, right)].",
        correct: "The public tensor contains (left, right, top, bottom). Reshaping it to two groups of two, as in \
                  Algorithm 1, pairs left with right.",
        consequence: "The reproduction reorders the coordinates before grouping.",
        check: coordinate_order,
    },
];

/// Metric keys and the names printed in the paper.
const METRICS: [(&str, &str); 6] = [
    ("bleu_1", "BLEU-1"),
    ("bleu_2", "BLEU-2"),
    ("rouge", "ROUGE"),
    ("cider", "CIDEr"),
    ("meteor", "METEOR"),
    ("spice", "SPICE"),
];
fn table1(inputs: &Inputs<'_>, group: &str, method: &str, metric: &str) -> Result<f64, Error> {
    inputs.value("lff", "table1", group, method, metric)
}

fn table2_average(inputs: &Inputs<'_>) -> Result<Finding, Error> {
    let count = |metric: &str| inputs.value("lff", "table2", "counts", "all", metric);
    let (seen, unseen) = (count("seen_widgets")?, count("unseen_widgets")?);
    let mut quantities = Vec::new();
    let mut gaps = Vec::new();
    let rows = [
        ("baseline", "Embed-4D"),
        ("baseline", "Sine-4D"),
        ("learned", "Learnable-Fourier+MLP-4/1"),
    ];
    for (group, method) in rows {
        let part = |metric: &str| inputs.value("lff", "table2", "widgets", method, metric);
        let mean = (seen * part("cider_seen")? + unseen * part("cider_unseen")?) / (seen + unseen);
        let printed = table1(inputs, group, method, "cider")?;
        gaps.push((mean - printed).abs());
        quantities.push(
            Quantity::new(format!("CIDEr (× 100) of {method}: Table 1, and from Table 2"))
                .printed(printed)
                .measured(mean),
        );
    }
    // Rounding accounts for 0.05 in each table.
    let holds = gaps[0] < 0.15 && gaps[1] < 0.15 && gaps[2] > 1.0;
    Ok(Finding { quantities, holds })
}

fn claim_groupings(inputs: &Inputs<'_>) -> Result<Finding, Error> {
    let mut quantities = Vec::new();
    let mut lost = false;
    for (metric, name) in METRICS {
        let two = table1(inputs, "learned", "Learnable-Fourier+MLP-2/2", metric)?;
        let one = table1(inputs, "learned", "Learnable-Fourier+MLP-1/4", metric)?;
        lost |= two < one;
        let name = format!("{name} (× 100), 2/2 minus 1/4");
        quantities.push(Quantity::new(name).measured(two - one));
    }
    Ok(Finding { quantities, holds: lost })
}

fn claim_consistent(inputs: &Inputs<'_>) -> Result<Finding, Error> {
    let (mut won, mut tied, mut lost) = (0.0, 0.0, 0.0);
    let mut best_learned = f64::MIN;
    let mut best_fixed = f64::MIN;
    for grouping in ["1/4", "2/2", "4/1"] {
        for (metric, _) in METRICS {
            let learned =
                table1(inputs, "learned", &format!("Learnable-Fourier+MLP-{grouping}"), metric)?;
            let fixed = table1(inputs, "fixed", &format!("Fixed-Fourier+MLP-{grouping}"), metric)?;
            match learned.total_cmp(&fixed) {
                std::cmp::Ordering::Greater => won += 1.0,
                std::cmp::Ordering::Equal => tied += 1.0,
                std::cmp::Ordering::Less => lost += 1.0,
            }
            if metric == "spice" {
                best_learned = best_learned.max(learned);
                best_fixed = best_fixed.max(fixed);
            }
        }
    }
    let joint = table1(inputs, "learned", "Learnable-Fourier+MLP-1/4", "spice")?;
    let embedded = table1(inputs, "baseline", "Embed-4D", "spice")?;
    let quoted = table1(inputs, "baseline", "SOTA", "spice")?;
    let spice = |name: &str, value: f64| Quantity::new(name).measured(value);
    let quantities = vec![
        spice("SPICE (× 100) of Learnable-Fourier+MLP-1/4", joint),
        spice("SPICE (× 100) of Embed-4D", embedded),
        spice("SPICE (× 100) of the quoted original", quoted),
        Quantity::new("comparisons of learned with fixed, won").measured(won),
        Quantity::new("tied").measured(tied),
        Quantity::new("lost").measured(lost),
        spice("best SPICE (× 100), learned", best_learned),
        spice("best SPICE (× 100), fixed", best_fixed),
    ];
    let holds = joint < embedded.min(quoted) && lost > 0.0 && best_fixed > best_learned;
    Ok(Finding { quantities, holds })
}

fn claim_learnability(inputs: &Inputs<'_>) -> Result<Finding, Error> {
    let fixed = table1(inputs, "fixed", "Fixed-Fourier+MLP-2/2", "cider")?;
    let mut quantities =
        vec![Quantity::new("CIDEr (× 100) of Fixed-Fourier+MLP-2/2").measured(fixed)];
    let mut learned = Vec::new();
    for grouping in ["1/4", "2/2", "4/1"] {
        let method = format!("Learnable-Fourier+MLP-{grouping}");
        let value = table1(inputs, "learned", &method, "cider")?;
        quantities.push(Quantity::new(format!("CIDEr (× 100) of {method}")).measured(value));
        learned.push(value);
    }
    let holds = fixed > learned[0].max(learned[1]);
    Ok(Finding { quantities, holds })
}

fn claim_mlp_competitive(inputs: &Inputs<'_>) -> Result<Finding, Error> {
    // The encodings of the detector that Section 4.2 names.
    let named =
        ["Learnable-Fourier + MLP", "Normalized Sine-2D", "Unnormalized Sine-2D", "Embed-2D"];
    let size = |method: &str| inputs.value("lff", "table4", "detr", method, "params");
    let listed = named.iter().filter(|method| size(method).is_ok()).count();
    let quantities = vec![
        Quantity::new("size of the detector with an MLP (Table 4)")
            .measured(size("MLP")?)
            .unit("M"),
        Quantity::new("encodings of Table 4 that Section 4.2 names").measured(listed as f64),
    ];
    let holds = listed == named.len();
    Ok(Finding { quantities, holds })
}

fn table5_order(inputs: &Inputs<'_>) -> Result<Finding, Error> {
    let size = |method: &str| inputs.value("lff", "table5", "widget-captioning", method, "params");
    let fixed = size("Fixed-Fourier+MLP-2/2")?;
    let learned = size("Learnable-Fourier+MLP-2/2")?;
    let features = inputs.value("lff", "table1", "setup", "Fourier-based-2/2", "feature_width")?;
    let extra = features / 2.0 * 2.0;
    let quantities = vec![
        Quantity::new("parameters of learned minus fixed, 2/2")
            .printed((1e6 * (learned - fixed)).round())
            .corrected(extra),
    ];
    let holds = learned < fixed && extra > 0.0;
    Ok(Finding { quantities, holds })
}

fn table5_hidden_width(_: &Inputs<'_>) -> Result<Finding, Error> {
    let search = hidden_width_search();
    let row = |name: &str, value: usize| Quantity::new(name).measured(value as f64);
    let quantities = vec![
        row("assignments of $|H|$ tried, with and without norms", search.tried),
        row("of them, fitting all rows", search.fit_all),
        row("fitting all rows but Learnable-Fourier+MLP-2/2", search.fit_all_but_one),
        row("of these, with one common $|H|$", search.common_width),
    ];
    let holds = search.fit_all == 0 && search.fit_all_but_one > 0 && search.common_width == 0;
    Ok(Finding { quantities, holds })
}

fn table5_public(inputs: &Inputs<'_>) -> Result<Finding, Error> {
    let printed = inputs.value("lff", "table5", "widget-captioning", "Embed-4D", "params")?;
    let count = table5_public_code();
    let quantities = vec![
        Quantity::new("trainable parameters")
            .printed(printed)
            .measured(count.total as f64 / 1e6)
            .unit("M"),
    ];
    let holds = quantities[0].refutes_printed(0.01);
    Ok(Finding { quantities, holds })
}

fn coordinate_order(_: &Inputs<'_>) -> Result<Finding, Error> {
    // Two boxes with the same top-left corner and different bottom-right corners. With a grouping by
    // corners, both have the same first group.
    let first_group = |tensor: [f64; 4]| [tensor[0], tensor[1]];
    let public = |[left, top, right, bottom]: [f64; 4]| [left, right, top, bottom];
    let reordered = |[left, top, right, bottom]: [f64; 4]| [top, left, bottom, right];
    let (a, b) = ([10.0, 20.0, 30.0, 40.0], [10.0, 20.0, 70.0, 90.0]);
    let change = |order: &dyn Fn([f64; 4]) -> [f64; 4]| {
        let (p, q) = (first_group(order(a)), first_group(order(b)));
        (p[0] - q[0]).hypot(p[1] - q[1])
    };
    let quantities = vec![
        Quantity::new(
            "change of the first group when only the right bottom corner moves, public order",
        )
        .printed(0.0)
        .measured(change(&public)),
        Quantity::new("the same, reordered to [top, left, bottom, right]")
            .measured(change(&reordered))
            .corrected(0.0),
    ];
    let holds = quantities[0].refutes_printed(1.0) && quantities[1].is_corrected(0.0);
    Ok(Finding { quantities, holds })
}
