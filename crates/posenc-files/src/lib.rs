//! Access to files that others may have created or may change.
//!
//! - **Reading** ([`open`], [`read`]) accepts regular files only and never blocks: a named pipe, a device, a socket or a directory is an
//!   error. A reader sets a maximum number of bytes and reads at most one byte more, so neither a device nor a growing file can fill the
//!   memory.
//! - **Writing** ([`write_atomically`], [`prepare`]) creates a temporary file in the same folder exclusively, with the permissions that
//!   the umask allows, synchronizes it and renames it. A reader sees either the old or the new file.
//! - **Protected folders** ([`protect`]) are `out/`, `report/` and temporary folders. Below them, no function of this crate follows a
//!   symbolic link: each component of a path is opened relative to the one before it. The folder itself may be a link, since a user may
//!   keep it elsewhere.
//! - **[`git`]** runs git in a repository whose configuration may name programs, without running them.
//! - **Locks** ([`Lock`]) are kernel locks; on file systems without locks, exclusively created files replace them.
//! - **Text** of a file or another program may contain escape sequences that change a terminal, a carriage return that overwrites a line,
//!   characters that reverse the reading order, or a line break that forges a line of output. [`escaped`] replaces all of them. The macros
//!   [`println!`](crate::println), [`print!`](crate::print), [`eprintln!`](crate::eprintln) and [`eprint!`](crate::eprint) apply it to
//!   everything they print; a binary imports them with `#[macro_use]` in place of the standard ones, so that no call can omit the
//!   escaping. [`line_at`] counts lines as editors do, and [`csv`] reads comma-separated values.
//!
//! On systems other than Unix, path components are checked before they are used, and a change between check and use goes unnoticed.

pub mod csv;
mod escape;
mod folder;
mod git;
mod lines;
mod lock;
mod read;
mod roots;
pub mod terminal;
mod write;

pub use escape::{Escaping, escaped, is_hidden, one_line, shown_lines};
pub use folder::{
    Entry, Kind, entries, is_half_written, make_folder, remove, remove_empty_folder, sweep,
};
pub use git::git;
pub use lines::{Lines, line_at, unreadable};
pub use lock::{Lock, LockError, host};
pub use read::{ReadError, is_same, is_there, open, read};
pub use roots::protect;
pub use write::{
    Prepared, create_new, create_program, is_full, open_or_create, prepare, prepare_with,
    write_atomically, write_if_changed, write_new, write_parts_atomically, write_with,
};
