//! Data sets: loaders, generators and the manifest.
//!
//! An experiment names a data set of the manifest (`data/manifest.yaml`). [`DataSource::load`] returns its signals from the
//! first of these sources that exists: images or clips that the user names, the manifest's files in the data directory, or an
//! embedded generator. [`Origin`] and a label in every record name the source. [`load_signal_file`]
//! reads a single picture or clip outside of any set.
//!
//! All files are untrusted: sizes are checked against limits before memory is allocated. Every message states the error,
//! its place, the allowed values, and how to fix it.

#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod clip;
mod digest;
mod directory;
mod error;
mod files;
pub mod generate;
mod image;
pub mod interfaces;
mod lines;
pub mod npz;
mod pages;
mod parallel_text;
mod reduce;
mod sets;
mod signal;
mod user_file;
mod weights;
mod write;

pub use clip::frame::MAX_FRAMES;
pub use clip::video::{ffmpeg_version, video_support};
pub use directory::DataDirectory;
pub use error::{DataError, VIDEO_CURE};
pub use files::{FileIdentity, FileSet, Format};
pub use image::Channels;
pub use image::annotated::{AnnotatedImage, AnnotatedImages, write_annotated};
pub use image::augment::{AnnotatedBox, Photograph};
pub use image::crops::GrayCrops;
pub use image::downsampled::{DownsampledImages, Place, Split, Variant};
pub use image::picture::Picture;
pub use parallel_text::{Corpus, ParallelText, Vocabulary};
pub use sets::fetch::{Download, Fetcher, RemoteFile};
pub use sets::fields::check_url;
pub use sets::manifest::{DataSet, Kind, Layout, Manifest};
pub use sets::origin::Origin;
pub use sets::source::{DataSource, Identity};
pub use sets::status::{State, Status, check, list};
pub use signal::Signal;
pub use user_file::{Loaded, load_clip_file, load_picture_file, load_signal_file};
pub use weights::WeightFile;
pub use write::write_archive;
