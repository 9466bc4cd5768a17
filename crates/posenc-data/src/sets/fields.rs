//! Scalars of the manifest, checked while the parser still knows their lines: an error of `#[serde(try_from)]` would be reported at the start
//! of the data set.

use std::fmt;
use std::path::PathBuf;

use serde::Deserializer;
use serde::de::{DeserializeSeed, Error, SeqAccess, Visitor};

use crate::directory::inside;

/// Maximum length of a text or path in bytes, ten times the longest one in use. An alias of three bytes can repeat a text.
const MAX_TEXT_BYTES: usize = 5000;

/// Maximum length of an address in bytes.
const MAX_URL: usize = 2000;

type Check<T> = fn(&str) -> Result<T, String>;

struct Text<T>(Check<T>);

impl<T> Visitor<'_> for Text<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        (self.0)(text).map_err(E::custom)
    }
}

impl<'de, T> DeserializeSeed<'de> for Text<T> {
    type Value = T;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<T, D::Error> {
        deserializer.deserialize_str(self)
    }
}

struct List<T>(Check<T>);

impl<'de, T> Visitor<'de> for List<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of strings")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Vec<T>, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(Text(self.0))? {
            list.push(item);
        }
        Ok(list)
    }
}

struct Number<const MAX: u64>;

impl<const MAX: u64> Visitor<'_> for Number<MAX> {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a whole number from 1 to {MAX}")
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<u64, E> {
        match (1..=MAX).contains(&value) {
            true => Ok(value),
            false => Err(E::custom(format!("{value} is out of range; 1 to {MAX} is allowed"))),
        }
    }
}

/// Functions for `#[serde(deserialize_with)]`.
macro_rules! fields {
    ($($name:ident: $value:ty = $read:expr;)*) => {$(
        pub(crate) fn $name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<$value, D::Error> {
            let read: fn(D) -> Result<$value, D::Error> = $read;
            read(deserializer)
        }
    )*};
}

fields! {
    id: String = |d| d.deserialize_str(Text(check_id));
    text: String = |d| d.deserialize_str(Text(check_text));
    some_text: Option<String> = |d| text(d).map(Some);
    texts: Vec<String> = |d| d.deserialize_seq(List(check_text));
    path: PathBuf = |d| d.deserialize_str(Text(check_path));
    paths: Vec<PathBuf> = |d| d.deserialize_seq(List(check_path));
    sha256: Option<String> = |d| checksum(d).map(Some);
    checksum: String = |d| d.deserialize_str(Text(check_sha256));
    url: Option<String> = |d| d.deserialize_str(Text(|url| check_url(url).map(|()| url.to_owned()))).map(Some);
    side: u32 = |d| d.deserialize_u64(Number::<4096>).map(|side| side as u32);
    frames: Option<u32> = |d| side(d).map(Some);
    count: usize = |d| d.deserialize_u64(Number::<10_000>).map(|count| count as usize);
    bytes: u64 = |d| d.deserialize_u64(Number::<{ u32::MAX as u64 }>);
}

fn check_text(text: &str) -> Result<String, String> {
    match text.len() <= MAX_TEXT_BYTES {
        true => Ok(text.to_owned()),
        false => Err(format!("a text of {} bytes; allowed: up to {MAX_TEXT_BYTES}", text.len())),
    }
}

/// An id is also the name of the folder for a user's own images.
fn check_id(id: &str) -> Result<String, String> {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    match id.bytes().all(allowed) && id.bytes().any(|byte| byte != b'-') && id.len() <= 60 {
        true => Ok(id.to_owned()),
        false => Err(format!(
            "id '{id}' is not allowed; use small letters, digits and hyphens, at most 60"
        )),
    }
}

fn check_path(path: &str) -> Result<PathBuf, String> {
    inside(&check_text(path)?)
}

fn check_sha256(digits: &str) -> Result<String, String> {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    match digits.len() == 64 && digits.bytes().all(is_digit) {
        true => Ok(digits.to_owned()),
        false => Err(format!("'{digits}' is not a SHA-256; 64 digits 0-9 and a-f are required")),
    }
}

/// Checks an address: `http` or `https`, in visible ASCII characters.
pub fn check_url(url: &str) -> Result<(), String> {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let has_host =
        rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '['));
    match has_host && url.len() <= MAX_URL && url.bytes().all(|byte| byte.is_ascii_graphic()) {
        true => Ok(()),
        false => Err(format!(
            "'{}' is not an address; allowed are http:// and https:// with a host, in ASCII without spaces, up to \
             {MAX_URL} bytes",
            url.escape_debug()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches an address that makes curl read a file or another option.
    #[test]
    fn addresses_are_http_or_https() {
        for good in [
            "http://localhost:80/a",
            "https://a.org/b?c=%20",
            "http://[::1]:8080",
            "http://127.0.0.1",
        ] {
            assert_eq!(check_url(good), Ok(()), "{good}");
        }
        let long = format!("https://a/{}", "b".repeat(MAX_URL));
        for bad in [
            "",
            "file:///etc/passwd",
            "ftp://a/b",
            "https://",
            "https:///b",
            "http://-o",
            "http://a b",
            "http://a/\n",
            "http://é",
            &long,
        ] {
            assert!(check_url(bad).is_err_and(|message| message.contains("http://")), "{bad}");
        }
    }
}
