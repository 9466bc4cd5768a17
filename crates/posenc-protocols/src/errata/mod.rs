//! Checks errors in a paper numerically.
//!
//! Records per erratum, with its ID as method:
//!
//! - `holds`: 1 if the computation confirms the erratum, otherwise 0.
//! - `printed`, `measured`, `corrected`: each disputed quantity as the paper prints it, as computed, and by the corrected statement. The
//!   quantity is the signal.

use anyhow::{Context as _, Result};
use posenc_experiments::Published;
use posenc_experiments::record::Value;
use posenc_experiments::schema::protocol::{Kind, Settings, WithoutData};
use posenc_harness::protocol::{Context, Emit, Protocol};
use posenc_math::errata::{self, Inputs};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub const KIND: Kind = Kind {
    // 2: names of quantities. 3: fairer readings of several statements.
    revision: 3,
    reads_published: true,
    without_data: WithoutData::Theory,
    ..kind!(Errata, "errata")
};

/// Settings of `errata`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Errata {}

impl Settings for Errata {}

impl Protocol for Errata {
    /// Runs all checks of the experiment's paper, with one method per erratum.
    fn run(&self, context: &Context<'_>, emit: &mut Emit<'_>) -> Result<()> {
        let paper = context.job.experiment.paper.as_str();
        // The experiment is <root>/experiments/<paper>/<file>, published values are in <root>/data/papers.
        let root = context.job.experiment.file.ancestors().nth(3);
        let root = root.context("the experiment file is not in experiments/<paper>/")?;
        let mut published = Published::default();
        for paper in ["rethinking", "trading", "lff"] {
            published.read(&root.join("data/papers"), paper)?;
        }
        let lookup = |paper: &str, item: &str, group: &str, method: &str, metric: &str, x| {
            published.value(paper, item, group, method, metric, x).and_then(|v| v.value)
        };
        let inputs = Inputs { published: &lookup, seed: context.seed };
        let mut values = Vec::new();
        for erratum in errata::all().iter().filter(|e| e.paper() == paper) {
            let finding = (erratum.check)(&inputs)
                .map_err(|message| anyhow::anyhow!("erratum {}: {message}", erratum.id))?;
            let holds = f64::from(u8::from(finding.holds));
            values.push(Value::new("holds", holds).method(erratum.id));
            for quantity in finding.quantities {
                for (metric, number) in [
                    ("printed", quantity.printed),
                    ("measured", quantity.measured),
                    ("corrected", quantity.corrected),
                ] {
                    let Some(number) = number else { continue };
                    values.push(
                        Value::new(metric, number)
                            .unit(quantity.unit)
                            .method(erratum.id)
                            .signal(quantity.name.clone()),
                    );
                }
            }
        }
        emit(0, values.into())
    }
}
