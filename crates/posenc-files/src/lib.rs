//! Every access to files that others may have made or may change.
//!
//! - **Reading** ([`open`], [`read`]) accepts regular files only and never blocks: a named pipe, a device, a socket or a
//!   directory is an error. A reader states the most bytes that it accepts and reads no more than one byte beyond them, so
//!   that neither a device nor a file that grows can fill the memory.
//! - **Writing** ([`write_atomically`], [`prepare`]) goes to a new file in the same folder, which is created exclusively, with
//!   the permissions that the umask leaves, synchronized and renamed. A reader sees the old file or the new one.
//! - **Our own folders** ([`protect`]) are `out/`, `report/` and temporary folders. Below them no symbolic link is followed, by
//!   any function of this crate: each component of a path is opened relative to the one before it. The folder itself may
//!   be a link, since a user may keep it elsewhere.
//! - **Locks** ([`Lock`]) are the kernel's, and files that are created exclusively where the file system has none.
//!
//! On systems other than Unix, components are checked by path before they are used; whoever changes a folder between
//! the check and the use is not noticed there.

mod folder;
mod lock;
mod read;
mod roots;
mod write;

pub use folder::{Entry, Kind, entries, make_folder, remove, remove_empty_folder, sweep};
pub use lock::{Lock, LockError, host};
pub use read::{ReadError, is_same, is_there, open, read};
pub use roots::protect;
pub use write::{
    Prepared, create_new, create_program, is_full, open_or_create, prepare, prepare_with,
    write_atomically, write_if_changed, write_new, write_parts_atomically, write_with,
};
