//! Records: raw records (one file per unit), and the tables and pictures that reports are made from.

pub mod benchmark;
pub mod csv;
mod indexed;
pub mod item;
mod keys;
pub mod picture;
pub mod provenance;
pub mod table;
pub mod unit;

pub use benchmark::{Benchmark, Benchmarks};
pub use indexed::IndexedTable;
pub use item::ItemRecord;
pub use keys::Keys;
pub use picture::Picture;
pub use provenance::{Origin, Provenance, is_clean, is_dirty};
pub use table::{ALL_SIGNALS, NO_SIGNAL, Row, Table, is_counted, is_of_machine};
pub use unit::{KeyParts, StoredPicture, UnitRecord, Value};
