//! The binary `posenc` end to end: real files, real records. One binary, since each test binary links all dependencies;
//! `extending.rs` has its own, since it compiles on all cores.

mod captioning;
mod common;
mod compare;
mod costs;
mod data;
mod device;
mod failures;
mod files;
mod fit;
mod image_model;
mod images;
mod interruptions;
mod kills;
mod network;
mod new;
mod pictures;
mod readme;
mod real_boxes;
mod reference;
mod report;
mod reproduce;
mod slurm;
mod widget_captioning;
