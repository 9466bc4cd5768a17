//! Access to files that others may have created or may change, and the text in them.
//!
//! - **Reading** ([`open`], [`read`]) accepts regular files only and never blocks: a pipe, a device, a socket or a directory is an error.
//!   Every reader has a maximum number of bytes ([`limits`]) and refuses a longer file before it reads it.
//! - **Writing** ([`write_atomically`], [`prepare`]) goes to a temporary file in the same folder, which is synchronized and renamed: a
//!   reader or a killed process finds either the old or the new file. Permissions follow the umask.
//! - **Protected folders** ([`protect`]) are `out/`, `report/` and temporary folders. No link and no `..` below them leads out of them;
//!   cap-std opens paths relative to the open folder. The folder itself may be a link, since a user may keep it elsewhere.
//! - **[`git`]** runs git in a repository whose configuration may name programs, without running them.
//! - **Text** of a file or another program may contain characters that change a terminal, reverse the reading order or forge a line of
//!   output. [`escaped`] replaces them. The macros [`println!`](crate::println), [`print!`](crate::print),
//!   [`eprintln!`](crate::eprintln) and [`eprint!`](crate::eprint) apply it to everything they print; a binary imports them with
//!   `#[macro_use]` in place of the standard ones, so that no call can omit it.

pub mod csv;
mod file;
mod folder;
mod git;
pub mod limits;
mod lock;
pub mod terminal;
pub mod testing;
mod text;

pub use file::{
    Prepared, create_program, is_full, is_same, is_there, open, open_or_create, prepare,
    prepare_with, read, remove, remove_empty_folder, write_atomically, write_if_changed,
    write_parts_atomically, write_with,
};
pub use folder::{Entry, Kind, entries, is_half_written, make_folder, protect, sweep};
pub use git::git;
pub use lock::{Lock, LockError, host};
pub use text::{Escaping, escaped, is_hidden, line_at, one_line, unreadable};
