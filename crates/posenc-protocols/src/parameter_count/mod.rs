//! Counts parameters of the models of `lff` by arithmetic from their architecture (Tables 3–5).
//!
//! Records `params`, `params_rounded`, `matches` and `module_params`.

#[cfg(feature = "run")]
mod run;

use posenc_experiments::schema::protocol::{Kind, Settings, WithoutData};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The kind `parameter-count`.
pub const KIND: Kind = Kind {
    example: include_str!("example.yaml"),
    runner: runner!(ParameterCount),
    without_data: WithoutData::Theory,
    ..Kind::of::<ParameterCount>("parameter-count")
};

/// Settings of `parameter-count`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ParameterCount {
    /// The paper's model.
    pub model: Model,
}

/// The three models whose parameters `lff` counts.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Model {
    /// Table 3.
    Reformer,
    /// Table 4.
    Detr,
    /// Table 5.
    WidgetCaptioning,
    /// Table 5 on the public code instead of a fitted base.
    PublicWidgetCaptioning,
}

impl Settings for ParameterCount {}
