//! `experiments/metrics.yaml`: what difference of a metric matters, stated once for all claims.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use crate::text::read_record;
use crate::yaml::{Document, FileError};

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MetricRule {
    /// Unit; empty for pure numbers.
    pub unit: String,
    /// Smallest difference of two means that matters in an ordering, in the unit of the metric.
    pub smallest_effect: Option<f64>,
    /// Largest difference of two numbers that count as equal, in the unit of the metric.
    pub tolerance: Option<f64>,
    /// Whether the metric is counted or computed from settings, so that no repetition changes it.
    #[serde(default)]
    pub exact: bool,
    /// Why these numbers, in a sentence.
    pub says: String,
}

/// Rules of metrics, by name; a name that ends in `*` is a prefix.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Metrics {
    rules: BTreeMap<String, MetricRule>,
}

impl Metrics {
    /// Reads the file; a missing file has no rules.
    pub fn read(file: &Path) -> Result<Self, FileError> {
        match read_record(file)? {
            Some(text) => Metrics::from_document(&Document::parse(file, &text)?),
            None => Ok(Metrics::default()),
        }
    }

    /// Deserializes a document; every error names file, line and key.
    pub fn from_document(document: &Document) -> Result<Self, FileError> {
        let rules: BTreeMap<String, MetricRule> = document.typed()?;
        for (name, rule) in &rules {
            if name.trim_end_matches('*').is_empty() {
                let message = "not a metric; write a name, or the beginning of one and `*`";
                return Err(document.root().error(name, message));
            }
            let place = document.root().key(name);
            for (key, value) in
                [("smallest_effect", rule.smallest_effect), ("tolerance", rule.tolerance)]
            {
                if value.is_some_and(|v| !v.is_finite() || v < 0.0) {
                    return Err(place.error(key, "allowed: 0 or more"));
                }
            }
            if rule.says.trim().is_empty() {
                return Err(place.error("says", "empty; explain the numbers in a sentence"));
            }
        }
        Ok(Metrics { rules })
    }

    /// The rule of a metric: that of its name, else that of its longest prefix.
    pub fn rule(&self, metric: &str) -> Option<&MetricRule> {
        self.rules.get(metric).or_else(|| {
            let prefixes =
                self.all().filter_map(|(name, rule)| Some((name.strip_suffix('*')?, rule)));
            let matching = prefixes.filter(|(prefix, _)| metric.starts_with(prefix));
            matching.max_by_key(|(prefix, _)| prefix.len()).map(|(_, rule)| rule)
        })
    }

    /// All rules with their names, by name.
    pub fn all(&self) -> impl Iterator<Item = (&str, &MetricRule)> {
        self.rules.iter().map(|(name, rule)| (name.as_str(), rule))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metrics(text: &str) -> Result<Metrics, FileError> {
        Metrics::from_document(&Document::parse(Path::new("metrics.yaml"), text)?)
    }

    /// Catches a prefix that wins over the name itself, or a short prefix over a longer one.
    #[test]
    fn a_name_wins_over_prefixes_and_a_long_prefix_over_a_short_one() {
        let rule = |name: &str, tolerance: f64| {
            format!("{name}: {{ unit: dB, tolerance: {tolerance}, says: because }}\n")
        };
        let text = [rule("psnr", 1.0), rule("\"psnr*\"", 2.0), rule("\"psnr_late*\"", 3.0)];
        let metrics = metrics(&text.concat()).unwrap();
        let tolerance = |metric| metrics.rule(metric).and_then(|rule| rule.tolerance);
        assert_eq!(tolerance("psnr"), Some(1.0));
        assert_eq!(tolerance("psnr_x"), Some(2.0));
        assert_eq!(tolerance("psnr_late_x"), Some(3.0));
        assert_eq!(tolerance("other"), None);
    }

    #[test]
    fn rules_without_reason_or_with_negative_numbers_are_refused() {
        for (text, key) in [
            ("a: { unit: dB, tolerance: -1, says: s }", "a.tolerance"),
            ("a: { unit: dB, smallest_effect: .nan, says: s }", "a.smallest_effect"),
            ("a: { unit: dB, says: ' ' }", "a.says"),
            ("\"*\": { unit: dB, says: s }", "*"),
        ] {
            assert_eq!(metrics(text).unwrap_err().key, key, "{text}");
        }
        assert!(metrics("a: { unit: dB }").is_err());
    }
}
