//! Values of `--share` and `--sbatch-arg`.

use std::str::FromStr;

/// The `index`-th of `count` shares, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    pub index: usize,
    pub count: usize,
}

impl FromStr for Share {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = |text: &str| text.parse().ok().filter(|n| (1..=10_000).contains(n));
        text.split_once('/')
            .and_then(|(index, count)| Some(Share { index: number(index)?, count: number(count)? }))
            .filter(|share| share.index <= share.count)
            .ok_or("allowed are shares such as 3/8, the third of eight; there are at most 10000")
    }
}

impl std::fmt::Display for Share {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.index, self.count)
    }
}

/// Accepts an option of sbatch. Any other word would be the script.
pub fn sbatch_option(text: &str) -> Result<String, &'static str> {
    let is_option = text.starts_with('-') && text.len() > 1;
    is_option.then(|| text.to_owned()).ok_or(
        "an option of sbatch begins with `-`; write its value into the same argument, such as --sbatch-arg=--cpus-per-task=8",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a share that is read as another one, and a typo that is accepted.
    #[test]
    fn shares_are_read_or_refused() {
        assert_eq!("3/8".parse(), Ok(Share { index: 3, count: 8 }));
        assert_eq!("3/8".parse::<Share>().unwrap().to_string(), "3/8");
        for text in ["", "/", "3", "3/", "0/8", "9/8", "1/0", "-1/8", "3/8/9", "1/10001", "٣/8"] {
            assert!(text.parse::<Share>().is_err(), "{text}");
        }
    }
}
