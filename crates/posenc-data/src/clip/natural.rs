//! The order in which people number files: frame-9 before frame-10.

use std::fmt::Write as _;
use std::path::PathBuf;

use crate::directory::file_name;

/// Sorts paths by their last component; consecutive digits count as one number.
pub(crate) fn sort(paths: &mut [PathBuf]) {
    paths.sort_by_cached_key(|path| (key(&file_name(path)), path.clone()));
}

/// The name with each number after the number of its digits, without leading zeros, so that a longer number is a larger one.
fn key(name: &str) -> String {
    let (mut key, mut rest) = (String::new(), name);
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        let (before, number) = rest.split_at(at);
        let end = number.find(|c: char| !c.is_ascii_digit()).unwrap_or(number.len());
        let digits = number[..end].trim_start_matches('0');
        // Writing to a string cannot fail.
        let _ = write!(key, "{before}{:010}{digits}", digits.len());
        rest = &number[end..];
    }
    key + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_by_their_numbers() {
        let sorted = |names: &[&str]| -> Vec<String> {
            let mut paths: Vec<PathBuf> = names.iter().map(PathBuf::from).collect();
            sort(&mut paths);
            paths.iter().map(|path| path.display().to_string()).collect()
        };
        assert_eq!(sorted(&["f10.png", "f9.png", "f1.png"]), ["f1.png", "f9.png", "f10.png"]);
        assert_eq!(sorted(&["2b", "02a", "10", "b", "a7"]), ["02a", "2b", "10", "a7", "b"]);
        // More digits than any integer has.
        let long = format!("{}1", "9".repeat(40));
        assert_eq!(sorted(&[&long, "10"]), ["10".to_owned(), long]);
        // Equal but for leading zeros: the order of the file system must not decide.
        assert_eq!(sorted(&["1", "01"]), sorted(&["01", "1"]));
    }
}
