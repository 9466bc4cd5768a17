//! Data sets: loaders, generators and the manifest.
//!
//! An experiment names a data set of the manifest (`data/manifest.yaml`); [`DataSource::load`]
//! gives its signals, from the first of these that exists: images that the user names, the
//! published files in the data directory, a folder of the user's own images there, or an embedded
//! generator. What it gave is told by [`Origin`] and by a label that goes into every record.
//!
//! Nothing here trusts a file: sizes are compared with limits before memory is asked for, and every
//! message says what was wrong, where, what is allowed, and what to do.

mod digest;
mod directory;
mod error;
pub mod generate;
mod image;
mod manifest;
pub mod npz;
mod picture;
mod source;
mod status;

pub use directory::{DataDirectory, ENVIRONMENT_VARIABLE};
pub use error::DataError;
pub use image::{Image, LUMINANCE_WEIGHTS};
pub use manifest::{Channels, DataSet, Kind, Layout, Manifest};
pub use picture::{MAX_IMAGE_BYTES, MAX_SIDE, Picture, images_in};
pub use source::{DataSource, Identity, ImageSet, Origin};
pub use status::{State, Status, check, list};
