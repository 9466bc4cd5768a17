//! Text from files: escaping for output, line numbers, and comma-separated values.
//!
//! A title, a method's name or the output of another program may contain anything: escape sequences that change a terminal, a carriage
//! return that overwrites a line, characters that reverse the reading order, a line break that forges a line of output. [`escaped`]
//! replaces all of them. The macros [`println!`](crate::println), [`print!`](crate::print), [`eprintln!`](crate::eprintln) and
//! [`eprint!`](crate::eprint) apply it to everything they print; a binary imports them with `#[macro_use]` in place of the standard ones,
//! so that no call can omit the escaping.

pub mod csv;
mod escape;
mod lines;
pub mod terminal;

pub use escape::{Escaping, escaped, is_hidden, one_line, shown_lines};
pub use lines::{Lines, line_at, unreadable};
