//! Counts parameters of the models of `lff` by arithmetic from their architecture (Tables 3–5).
//!
//! The ID of a variant is the name of a method in the table.
//!
//! Records:
//!
//! - `params` (M): number of parameters. `params_rounded` (M): rounded as the paper prints it.
//! - `matches`: 1 if `params_rounded` is the printed number, otherwise 0.
//! - `module_params`: number of parameters of each module, with its formula as signal.

mod run;

use posenc_experiments::schema::protocol::{Kind, Settings, WithoutData};
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
