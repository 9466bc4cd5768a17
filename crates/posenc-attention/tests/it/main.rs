//! Compares models, kernels and encodings with references.

mod boxes;
mod captioner;
mod detector;
mod detr;
mod encoders;
mod image_model;
mod kernels;
mod reformer;
mod translator;
mod wgpu;
mod widget_captioner;
