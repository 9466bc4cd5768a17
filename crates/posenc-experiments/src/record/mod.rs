//! Records: raw records (one file per unit), and the tables and pictures that reports are made from.

pub mod benchmark;
pub mod captions;
pub mod csv;
pub mod failure;
pub mod gallery;
mod keys;
pub mod pair;
pub mod picture;
pub mod provenance;
pub mod table;
pub mod unit;

pub use benchmark::{Benchmark, Benchmarks};
pub use captions::{CaptionRecord, CaptionedMethod, UnitCaptions};
pub use failure::{Failure, UnitFailure, read_failures, write_failures};
pub use gallery::{Gallery, GalleryPicture};
pub use keys::Keys;
pub use picture::Picture;
pub use provenance::{Origin, Provenance, is_clean};
pub use table::{NO_SIGNAL, Row, Table, is_counted, is_full, is_of_machine};
pub use unit::{KeyParts, StoredCaptions, StoredPicture, UnitRecord, Value};
