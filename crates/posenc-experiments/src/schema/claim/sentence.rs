//! Sentences with placeholders for numbers of the record: the answers of experiments and papers.
//!
//! A number is never typed into such a sentence. `{a.1}` is the mean of the first selection of the checks of the claim `a`,
//! `{a.paper 1}` the published value of the same selection, `{a.1 - 2}` the mean difference of two selections with its 95 %
//! confidence interval, `{a.1 / 2}` the quotient of their means, and `{a.n 1}` the number of signals or repetitions of the first
//! selection. `{a.1:2}` has two decimals. Braces inside `$…$` are LaTeX.

#[derive(Debug, Clone, PartialEq)]
pub struct Sentence {
    pub parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Part {
    /// Markdown.
    Text(String),
    Number(Number),
}

/// Which number, and how it is printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Number {
    /// The claim whose checks have the selections.
    pub claim: String,
    pub quantity: Quantity,
    /// Decimals; three significant digits if absent.
    pub digits: Option<usize>,
}

/// A number computed from selections of a check, which are indexed from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    /// Mean of a selection.
    Mean(usize),
    /// Number of signals of a selection or, with a single one, of its repetitions.
    Count(usize),
    /// Mean of the published values of a selection.
    Published(usize),
    /// Mean of the first minus mean of the second, paired.
    Difference(usize, usize),
    /// Mean of the first divided by the mean of the second.
    Ratio(usize, usize),
}

impl Quantity {
    pub fn selections(self) -> Vec<usize> {
        match self {
            Quantity::Mean(a) | Quantity::Count(a) | Quantity::Published(a) => vec![a],
            Quantity::Difference(a, b) | Quantity::Ratio(a, b) => vec![a, b],
        }
    }
}

const MAX_DIGITS: usize = 9;

/// What independent units are called. A typed number of them would be wrong on a smaller run.
const UNITS: [&str; 6] = ["images", "rows", "clips", "signals", "seeds", "repetitions"];

impl Sentence {
    /// Parses a sentence. `selections` returns the number of selections of a claim, or that there is no such claim.
    pub fn parse(
        text: &str,
        selections: impl Fn(&str) -> Result<usize, String>,
    ) -> Result<Self, String> {
        if let Some(typed) = typed_count(text) {
            return Err(format!(
                "`{typed}` is typed and wrong on a smaller run; write the number as `{{a.n 1}}` of a claim `a`"
            ));
        }
        let mut parts = Vec::new();
        let mut plain = String::new();
        let mut in_math = false;
        let mut rest = text.trim();
        while let Some(c) = rest.chars().next() {
            if c == '{' && !in_math {
                let end = rest.find('}').ok_or("`{` without `}`")?;
                let (number, shown) = (number(&rest[1..end])?, &rest[..=end]);
                let count =
                    selections(&number.claim).map_err(|message| format!("`{shown}`: {message}"))?;
                if number.quantity.selections().iter().any(|i| *i >= count) {
                    return Err(format!(
                        "`{shown}`: the claim has {count} selections, which count from 1"
                    ));
                }
                if !plain.is_empty() {
                    parts.push(Part::Text(std::mem::take(&mut plain)));
                }
                parts.push(Part::Number(number));
                rest = &rest[end + 1..];
                continue;
            }
            in_math ^= c == '$';
            plain.push(c);
            rest = &rest[c.len_utf8()..];
        }
        if !plain.is_empty() {
            parts.push(Part::Text(plain));
        }
        Ok(Sentence { parts })
    }

    pub fn numbers(&self) -> impl Iterator<Item = &Number> {
        self.parts.iter().filter_map(|part| match part {
            Part::Number(number) => Some(number),
            Part::Text(_) => None,
        })
    }
}

/// The first typed number of independent units, such as "16 images" or "n = 16".
fn typed_count(text: &str) -> Option<String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let bare = |word: &str| word.trim_matches(|c: char| !c.is_alphanumeric()).to_owned();
    // A brace ends a placeholder.
    let is_number = |word: &str| !word.contains('}') && bare(word).parse::<u32>().is_ok();
    let of_units = words.windows(2).find(|w| is_number(w[0]) && UNITS.contains(&&*bare(w[1])));
    let assigned =
        || words.windows(3).find(|w| bare(w[0]) == "n" && w[1] == "=" && is_number(w[2]));
    of_units.or_else(assigned).map(|words| words.join(" "))
}

/// Parses the text between the braces of a placeholder.
fn number(text: &str) -> Result<Number, String> {
    let wrong = || {
        format!(
            "`{{{text}}}` is not allowed; allowed for a claim `a`: {{a.1}}, {{a.n 1}}, {{a.paper 1}}, {{a.1 - 2}}, {{a.1 / 2}}, each with `:` and decimals"
        )
    };
    let (body, digits) = match text.rsplit_once(':') {
        Some((body, digits)) => {
            let digits = digits.trim().parse().ok().filter(|d| *d <= MAX_DIGITS);
            (body, Some(digits.ok_or_else(wrong)?))
        }
        None => (text, None),
    };
    let (claim, body) = body.split_once('.').ok_or_else(wrong)?;
    let claim = claim.trim().to_owned();
    let index = |text: &str| -> Result<usize, String> {
        let number: usize = text.trim().parse().map_err(|_| wrong())?;
        number.checked_sub(1).ok_or_else(wrong)
    };
    let body = body.trim();
    let quantity = if let Some(of) = body.strip_prefix("paper ") {
        Quantity::Published(index(of)?)
    } else if let Some(of) = body.strip_prefix("n ") {
        Quantity::Count(index(of)?)
    } else if let Some((a, b)) = body.split_once('-') {
        Quantity::Difference(index(a)?, index(b)?)
    } else if let Some((a, b)) = body.split_once('/') {
        Quantity::Ratio(index(a)?, index(b)?)
    } else {
        Quantity::Mean(index(body)?)
    };
    Ok(Number { claim, quantity, digits })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn none(claim: &str) -> Result<usize, String> {
        Err(format!("there is no claim `{claim}`"))
    }

    fn quantity(text: &str) -> Result<(String, Quantity, Option<usize>), String> {
        number(text).map(|n| (n.claim, n.quantity, n.digits))
    }

    #[test]
    fn placeholders_are_read() {
        for (text, expected, digits) in [
            ("gau.1", Quantity::Mean(0), None),
            ("gau.paper 2:1", Quantity::Published(1), Some(1)),
            ("gau.1 - 2:2", Quantity::Difference(0, 1), Some(2)),
            ("gau.2/1", Quantity::Ratio(1, 0), None),
            ("gau.n 2", Quantity::Count(1), None),
        ] {
            assert_eq!(quantity(text), Ok(("gau".to_owned(), expected, digits)), "{text}");
        }
        for wrong in ["", "1", "a.0", "a.x", "a.1:99", "a.1 -", "a.paper"] {
            assert!(quantity(wrong).unwrap_err().contains("is not allowed"), "{wrong}");
        }
    }

    /// Catches sentences whose typed number of units is false on a smaller run.
    #[test]
    fn typed_numbers_of_units_are_refused() {
        for wrong in ["On 16 images, it holds.", "It holds (16 images each).", "It holds (n = 9)."]
        {
            let error = Sentence::parse(wrong, none).unwrap_err();
            assert!(error.contains("is typed"), "{error}");
        }
        for right in [
            "On images of 128 × 128 samples, it holds.",
            "With N = 256, it holds on {a.n 1} images.",
        ] {
            assert!(Sentence::parse(right, |_| Ok(1)).is_ok(), "{right}");
        }
    }

    /// Catches LaTeX that is mistaken for a placeholder, and a placeholder of a claim that does not exist.
    #[test]
    fn braces_in_formulas_are_text() {
        let sentence = Sentence::parse("With $\\frac{1}{2}$ it holds.", none).unwrap();
        assert_eq!(sentence.parts, [Part::Text("With $\\frac{1}{2}$ it holds.".into())]);
        assert_eq!(sentence.numbers().count(), 0);
        let error = Sentence::parse("It is {gone.1}.", none).unwrap_err();
        assert!(error.contains("there is no claim `gone`"), "{error}");
        let error = Sentence::parse("It is {1}.", none).unwrap_err();
        assert!(error.contains("allowed for a claim `a`"), "{error}");
        assert!(Sentence::parse("It is {1.", none).is_err());
    }
}
