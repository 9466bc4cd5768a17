//! Printing: all terminal output passes through this module and is escaped.

use std::fmt::Arguments;
use std::io::{ErrorKind, Write};

use crate::{escaped, shown_lines};

/// Exit status after a broken pipe, as for a program that SIGPIPE ended.
const READER_GONE: i32 = 141;
/// Exit status if the standard output cannot be written, for example to a full disk.
const UNWRITABLE: i32 = 2;

/// The destination of printed text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// The standard output.
    Output,
    /// The standard error.
    Error,
}

/// Number of line breaks in a format string.
#[doc(hidden)]
#[must_use]
pub const fn breaks(format: &str) -> usize {
    let bytes = format.as_bytes();
    let (mut count, mut i) = (0, 0);
    while i < bytes.len() {
        if bytes[i] == b'\n' {
            count += 1;
        }
        i += 1;
    }
    count
}

/// The text that [`print!`](crate::print) and [`println!`](crate::println) print. Line breaks of the format string are kept. If an
/// argument has line breaks, all line breaks are escaped, since they cannot be distinguished.
#[doc(hidden)]
#[must_use]
pub fn shown(own_breaks: usize, arguments: Arguments<'_>) -> String {
    let text = arguments.to_string();
    let count = text.bytes().filter(|byte| *byte == b'\n').count();
    let shown = if count == own_breaks { shown_lines(&text) } else { escaped(&text) };
    shown.into_owned()
}

/// Prints the arguments of the macros.
#[doc(hidden)]
pub fn print(stream: Stream, own_breaks: usize, end: &str, arguments: Arguments<'_>) {
    write(stream, &(shown(own_breaks, arguments) + end));
}

/// Prints text whose line breaks come from the program, such as a table or a preview of files. Other hidden characters are escaped.
pub fn print_lines(text: &str) {
    write(Stream::Output, &shown_lines(text));
}

/// Writes the text in one call, so that lines of several threads do not mix.
fn write(stream: Stream, text: &str) {
    let written = match stream {
        Stream::Output => {
            let mut output = std::io::stdout().lock();
            output.write_all(text.as_bytes()).and_then(|()| output.flush())
        }
        Stream::Error => std::io::stderr().lock().write_all(text.as_bytes()),
    };
    match (written, stream) {
        (Ok(()), _) => {}
        (Err(e), _) if e.kind() == ErrorKind::BrokenPipe => std::process::exit(READER_GONE),
        (Err(e), Stream::Output) => {
            write(Stream::Error, &format!("error: the standard output cannot be written: {e}\n"));
            std::process::exit(UNWRITABLE);
        }
        // No stream is left to report this error.
        (Err(_), Stream::Error) => {}
    }
}

/// Reports panics through this module: their messages may quote text of a file.
pub fn escape_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        let message = panic.payload_as_str().unwrap_or("no message");
        let trace = std::backtrace::Backtrace::capture();
        let line = format_args!("internal error: panicked at {place}: {message}").to_string();
        let mut text = escaped(&line).into_owned() + "\n";
        if trace.status() == std::backtrace::BacktraceStatus::Captured {
            text += &shown_lines(&trace.to_string());
        }
        write(Stream::Error, &text);
    }));
}

/// Like the standard macro, but escapes what it prints.
#[macro_export]
macro_rules! println {
    () => { $crate::print!("\n") };
    ($format:literal $($arguments:tt)*) => {
        $crate::__print!(Output, "\n", $format $($arguments)*)
    };
}

/// Like the standard macro, but escapes what it prints.
#[macro_export]
macro_rules! print {
    ($format:literal $($arguments:tt)*) => {
        $crate::__print!(Output, "", $format $($arguments)*)
    };
}

/// Like the standard macro, but escapes what it prints.
#[macro_export]
macro_rules! eprintln {
    () => { $crate::eprint!("\n") };
    ($format:literal $($arguments:tt)*) => {
        $crate::__print!(Error, "\n", $format $($arguments)*)
    };
}

/// Like the standard macro, but escapes what it prints.
#[macro_export]
macro_rules! eprint {
    ($format:literal $($arguments:tt)*) => {
        $crate::__print!(Error, "", $format $($arguments)*)
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __print {
    ($stream:ident, $end:literal, $format:literal $($arguments:tt)*) => {
        $crate::terminal::print(
            $crate::terminal::Stream::$stream,
            const { $crate::terminal::breaks(::core::concat!($format)) },
            $end,
            ::core::format_args!($format $($arguments)*),
        )
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches line breaks of an argument that reach the terminal next to those of the format string, and the latter escaped.
    #[test]
    fn only_line_breaks_of_the_format_string_stay() {
        assert_eq!(breaks("a\nb\n"), 2);
        let name = "x";
        assert_eq!(shown(1, format_args!("a {name}\nb\t")), "a x\nb\t");
        let name = "x\nerror: forged\u{1b}[2J";
        assert_eq!(shown(1, format_args!("a {name}\nb")), "a x\\nerror: forged\\u{1b}[2J\\nb");
        assert_eq!(shown(0, format_args!("{name}")), "x\\nerror: forged\\u{1b}[2J");
    }
}
