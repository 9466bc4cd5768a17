//! Printing: all terminal output passes through this module and is escaped.

use std::fmt::Arguments;
use std::io::{ErrorKind, Write, stderr, stdout};

use crate::escaped;
use crate::text::shown_lines;

/// Exit status after a broken pipe, as for a program that SIGPIPE ended.
const READER_GONE: i32 = 141;
/// Exit status if the standard output cannot be written, for example to a full disk.
const UNWRITABLE: i32 = 2;

/// The text that [`print!`](crate::print) and [`println!`](crate::println) print. Line breaks of the format string are kept. If an
/// argument has line breaks, all line breaks are escaped, since they cannot be distinguished.
fn shown(format: &str, arguments: Arguments<'_>) -> String {
    let text = arguments.to_string();
    let breaks = |text: &str| text.matches('\n').count();
    let is_own = breaks(&text) == breaks(format);
    (if is_own { shown_lines(&text) } else { escaped(&text) }).into_owned()
}

#[doc(hidden)]
pub fn print_to_output(format: &str, end: &str, arguments: Arguments<'_>) {
    write_output(&(shown(format, arguments) + end));
}

#[doc(hidden)]
pub fn print_to_error(format: &str, end: &str, arguments: Arguments<'_>) {
    write_error(&(shown(format, arguments) + end));
}

/// Prints text whose line breaks come from the program, such as a table or a preview of files. Other hidden characters are escaped.
pub fn print_lines(text: &str) {
    write_output(&shown_lines(text));
}

/// Writes the text in one call, so that lines of several threads do not mix.
fn write_output(text: &str) {
    let mut output = stdout().lock();
    if let Err(error) = output.write_all(text.as_bytes()).and_then(|()| output.flush()) {
        if error.kind() != ErrorKind::BrokenPipe {
            write_error(&format!("error: the standard output cannot be written: {error}\n"));
            std::process::exit(UNWRITABLE);
        }
        std::process::exit(READER_GONE);
    }
}

fn write_error(text: &str) {
    match stderr().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => std::process::exit(READER_GONE),
        // If that fails, no stream is left to say so.
        _ => {}
    }
}

/// Reports panics through this module: their messages may quote text of a file.
pub fn escape_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        let message = panic.payload_as_str().unwrap_or("no message");
        let line = format!("internal error: panicked at {place}: {message}");
        let trace = std::backtrace::Backtrace::capture();
        let trace = match trace.status() {
            std::backtrace::BacktraceStatus::Captured => trace.to_string(),
            _ => String::new(),
        };
        write_error(&format!("{}\n{}", escaped(&line), shown_lines(&trace)));
    }));
}

/// Like the standard macro, but escapes what it prints.
#[macro_export]
macro_rules! println {
    () => { $crate::print!("\n") };
    ($format:literal $($arguments:tt)*) => {
        $crate::terminal::print_to_output(
            ::core::concat!($format), "\n", ::core::format_args!($format $($arguments)*),
        )
    };
}

/// Like the standard macro, but escapes what it prints.
#[macro_export]
macro_rules! print {
    ($format:literal $($arguments:tt)*) => {
        $crate::terminal::print_to_output(::core::concat!($format), "", ::core::format_args!($format $($arguments)*))
    };
}

/// Like the standard macro, but escapes what it prints.
#[macro_export]
macro_rules! eprintln {
    () => { $crate::eprint!("\n") };
    ($format:literal $($arguments:tt)*) => {
        $crate::terminal::print_to_error(
            ::core::concat!($format), "\n", ::core::format_args!($format $($arguments)*),
        )
    };
}

/// Like the standard macro, but escapes what it prints.
#[macro_export]
macro_rules! eprint {
    ($format:literal $($arguments:tt)*) => {
        $crate::terminal::print_to_error(::core::concat!($format), "", ::core::format_args!($format $($arguments)*))
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches line breaks of an argument that reach the terminal next to those of the format string, and the latter escaped.
    #[test]
    fn only_line_breaks_of_the_format_string_stay() {
        let name = "x";
        assert_eq!(shown("a {name}\nb\t", format_args!("a {name}\nb\t")), "a x\nb\t");
        let name = "x\nerror: forged\u{1b}[2J";
        let text = shown("a {name}\nb", format_args!("a {name}\nb"));
        assert_eq!(text, "a x\\nerror: forged\\u{1b}[2J\\nb");
        assert_eq!(shown("{name}", format_args!("{name}")), "x\\nerror: forged\\u{1b}[2J");
    }
}
