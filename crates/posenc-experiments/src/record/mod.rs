//! Records: raw ones, a file per unit, and the tables that reports are made from.

pub mod csv;
pub mod provenance;
pub mod table;
pub mod unit;

pub use provenance::Provenance;
pub use table::{Row, Table};
pub use unit::{KeyParts, UnitRecord, Value};
