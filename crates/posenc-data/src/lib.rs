//! Data sets: loaders, generators and the manifest.
//!
//! An experiment names a data set of the manifest (`data/manifest.yaml`). [`DataSource::load`] and
//! [`DataSource::load_clips`] return its signals from the first of these sources that exists: images or clips that the user
//! names, the manifest's files in the data directory, the user's own folder there, or an embedded generator. [`Origin`] and
//! a label in every record name the source. [`load_signal_file`] reads a single picture or clip outside of any set.
//!
//! All files are untrusted: sizes are checked against limits before memory is allocated. Every message states the error,
//! its place, the allowed values, and how to fix it.

#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod annotated;
mod augment;
mod clip;
mod crops;
mod digest;
mod directory;
mod downsampled;
mod error;
mod fetch;
mod files;
mod footage;
mod frame;
pub mod generate;
mod image;
pub mod interfaces;
mod jpeg;
mod manifest;
mod natural;
pub mod npz;
mod numbers;
mod one;
mod pages;
mod parallel_text;
mod picture;
mod reduce;
mod source;
mod status;
mod video;
mod weights;
mod write;

pub use annotated::{AnnotatedBox, AnnotatedImage, AnnotatedImages, write_annotated};
pub use augment::Photograph;
pub use clip::Clip;
pub use crops::GrayCrops;
pub use directory::{DataDirectory, ENVIRONMENT_VARIABLE};
pub use downsampled::{DownsampledImages, Place, Split, Variant};
pub use error::{DataError, VIDEO_CURE};
pub use fetch::{Download, Fetcher, RemoteFile, check_url};
pub use files::{FileIdentity, FileSet, Format};
pub use frame::MAX_FRAMES;
pub use image::{Image, LUMINANCE_WEIGHTS};
pub use manifest::{Channels, DataSet, Kind, Layout, Manifest};
pub use numbers::{NumberArray, read_numbers};
pub use one::{Loaded, Signal, load_clip_file, load_picture_file, load_signal_file};
pub use parallel_text::{Corpus, ParallelText, Vocabulary};
pub use picture::{MAX_SIDE, Picture, images_in};
pub use source::{ClipSet, DataSource, Identity, ImageSet, Origin, SignalSet};
pub use status::{State, Status, check, list};
pub use video::{ffmpeg_version, video_support};
pub use weights::WeightFile;
pub use write::write_archive;
