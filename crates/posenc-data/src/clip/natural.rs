//! The order in which people number files: frame-9 before frame-10.

use std::cmp::Ordering;
use std::path::PathBuf;

use crate::directory::file_name;

/// Sorts paths by their last component; consecutive digits count as one number.
pub(crate) fn sort(paths: &mut [PathBuf]) {
    paths.sort_by(|a, b| compare(&file_name(a), &file_name(b)).then_with(|| a.cmp(b)));
}

fn compare(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a, b);
    loop {
        let (Some(first), Some(second)) = (a.chars().next(), b.chars().next()) else {
            return a.len().cmp(&b.len());
        };
        let order = if first.is_ascii_digit() && second.is_ascii_digit() {
            let ((x, rest_a), (y, rest_b)) = (number(a), number(b));
            (a, b) = (rest_a, rest_b);
            // Without leading zeros the longer number is the larger, whatever its length.
            x.len().cmp(&y.len()).then_with(|| x.cmp(y))
        } else {
            (a, b) = (&a[first.len_utf8()..], &b[second.len_utf8()..]);
            first.cmp(&second)
        };
        if order != Ordering::Equal {
            return order;
        }
    }
}

/// The digits at the start without leading zeros, and what follows them.
fn number(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    (text[..end].trim_start_matches('0'), &text[end..])
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
