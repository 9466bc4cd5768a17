//! Counts parameters of the models of `lff` by arithmetic from their architecture (Tables 3–5).
//!
//! The ID of a variant is the name of a method in the table.
//!
//! Records:
//!
//! - `params` (M): number of parameters. `params_rounded` (M): rounded as the paper prints it.
//! - `matches`: 1 if `params_rounded` is the printed number, otherwise 0.
//! - `module_params`: number of parameters of each module, with its formula as signal.

use anyhow::{Result, bail};
use posenc_experiments::record::Value;
use posenc_experiments::schema::protocol::{Kind, Settings, WithoutData};
use posenc_harness::protocol::{Context, Emit, Protocol};
use posenc_math::lff::parameters::{table3, table4, table5, table5_on_public_code};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub const KIND: Kind =
    Kind { without_data: WithoutData::Theory, ..kind!(ParameterCount, "parameter-count") };

/// Settings of `parameter-count`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ParameterCount {
    /// The model of the paper.
    pub model: Model,
}

/// A model whose parameters `lff` counts.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Model {
    /// Table 3.
    Reformer,
    /// Table 4.
    Detr,
    /// Table 5.
    WidgetCaptioning,
    /// Table 5, with the public code as base instead of fitted sizes.
    PublicWidgetCaptioning,
}

impl Settings for ParameterCount {}

impl Protocol for ParameterCount {
    fn run(&self, context: &Context<'_>, emit: &mut Emit<'_>) -> Result<()> {
        let rows = match self.model {
            Model::Reformer => table3(),
            Model::Detr => table4(),
            Model::WidgetCaptioning => table5(),
            Model::PublicWidgetCaptioning => table5_on_public_code(),
        };
        let method = &context.job.variant.id;
        let Some(row) = rows.iter().find(|r| r.method == method) else {
            let names: Vec<_> = rows.iter().map(|r| r.method).collect();
            bail!("no method `{method}` in this table; allowed: {}", names.join(", "));
        };
        let mut values = vec![
            Value::new("params", row.total as f64 / 1e6).unit("M"),
            Value::new("params_rounded", row.rounded).unit("M"),
            Value::new("matches", f64::from(u8::from(row.matches))),
        ];
        for module in &row.modules {
            values.push(Value::new("module_params", module.count() as f64).signal(format!(
                "{} = {}",
                module.name,
                module.formula()
            )));
        }
        emit(0, values.into())
    }
}
