//! The site in a real browser, from the file system. The names of all tests contain `browser`, which is what
//! `cargo xtask test browser` looks for.

mod browser;
mod devtools;
