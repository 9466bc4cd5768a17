//! The protocols, which compute the units of experiments. Each has a folder with its settings, an example, and the code that runs units.
//!
//! docs/EXTENDING.md describes how to add a protocol.
//!
//! Without the feature `attention`, protocols that train attention models are defined and cannot run.

#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

macro_rules! runner {
    ($settings:ty) => {
        Some(&const { posenc_harness::protocol::Runner::of::<$settings>() })
    };
}

/// The runner of a protocol that trains attention models; `None` without the feature `attention`.
#[cfg(feature = "attention")]
macro_rules! attention_runner {
    ($settings:ty) => {
        runner!($settings)
    };
}
#[cfg(not(feature = "attention"))]
macro_rules! attention_runner {
    ($settings:ty) => {
        None
    };
}

/// A kind with its settings, its runner, and the example and documentation in its folder. `attention:` for attention models.
macro_rules! kind {
    (attention: $settings:ty, $name:literal) => {
        kind!($settings, $name, attention_runner!($settings))
    };
    ($settings:ty, $name:literal) => {
        kind!($settings, $name, runner!($settings))
    };
    ($settings:ty, $name:literal, $runner:expr) => {
        Kind {
            example: include_str!("example.yaml"),
            docs: include_str!("mod.rs"),
            runner: $runner,
            ..Kind::of::<$settings>($name)
        }
    };
}

pub mod blending_weights;
pub mod box_positions;
mod boxes;
pub mod captioning;
mod checks;
pub mod closed_form;
pub mod complexity;
pub mod detection;
pub mod detr;
pub mod distance;
pub mod distance_map;
pub mod embedding;
pub mod errata;
pub mod feature_curve;
mod grid_network;
pub mod icon_labels;
pub mod image_model;
pub mod interpolation;
pub mod kronecker_rank;
mod limits;
pub mod memorization;
pub mod network_1d;
pub mod network_nd;
pub mod parameter_count;
pub mod position_encoding;
pub mod psnr_prediction;
pub mod separable_solution;
pub mod similarity;
pub mod singular_values;
pub mod stable_rank;
mod sweep;
pub mod translation;
pub mod width_selection;

#[cfg(feature = "attention")]
mod attention;
mod fit_state;
mod memory;
pub mod reconstruction;
mod streams;

use posenc_experiments::Kinds;
use posenc_experiments::schema::protocol::Kind;

pub const KINDS: Kinds = Kinds { all: ALL, renamed: RENAMED };

const RENAMED: &[(&str, &str)] = &[
    ("reformer", "`image-model` with `color_width`, `lsh` and `reversible: true`"),
    ("widget-captioning", "`captioning` with `public`"),
];

/// All protocols, in the order in which messages and documents list them.
const ALL: &[&Kind] = &[
    &embedding::KIND,
    &stable_rank::KIND,
    &distance::KIND,
    &distance_map::KIND,
    &feature_curve::KIND,
    &singular_values::KIND,
    &memorization::KIND,
    &closed_form::KIND,
    &network_1d::KIND,
    &network_nd::KIND,
    &interpolation::KIND,
    &width_selection::KIND,
    &psnr_prediction::KIND,
    &complexity::KIND,
    &kronecker_rank::KIND,
    &separable_solution::KIND,
    &blending_weights::KIND,
    &similarity::KIND,
    &position_encoding::KIND,
    &image_model::KIND,
    &detection::KIND,
    &captioning::KIND,
    &box_positions::KIND,
    &icon_labels::KIND,
    &detr::KIND,
    &translation::KIND,
    &parameter_count::KIND,
    &errata::KIND,
];
