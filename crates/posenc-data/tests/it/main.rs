//! Tests on real files, made by the tests in temporary folders.

mod annotated;
mod clips;
mod files;
mod generator;
mod interfaces;
mod manifest;
mod npz;
mod pictures;
mod published;
mod source;
mod status;
mod support;
mod videos;
mod widget_screens;
