//! Lists of numbers in experiment files: literal, by step, or evenly spaced.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_yaml::Value;

use super::limits::MAX_LIST as LONGEST;

/// A list of finite numbers, written as a list whose entries are numbers or ranges.
///
/// - `{from: 1, to: 96, step: 5}`: 1, 6, …, 96 (`to` is included if a step reaches it);
/// - `{from: 0.1, to: 0.0001, count: 50, spacing: log}`: evenly spaced, both ends included,
///   where `spacing` is `linear` (default) or `log`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(try_from = "Value")]
pub struct NumberList(pub Vec<f64>);

/// Evenly spaced numbers, on a linear or logarithmic scale.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("oneOf" = [{ "required": ["step"] }, { "required": ["count"] }]))]
struct Range {
    /// First number.
    from: f64,
    /// Last number, included if a step reaches it.
    to: f64,
    /// Difference of consecutive numbers; use either `step` or `count`.
    step: Option<f64>,
    /// Number of values, both ends included; use either `step` or `count`.
    count: Option<usize>,
    /// With `count`: whether the numbers or their logarithms are evenly spaced.
    #[serde(default)]
    spacing: Spacing,
}

impl JsonSchema for NumberList {
    fn schema_name() -> Cow<'static, str> {
        "NumberList".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let range = generator.subschema_for::<Range>();
        json_schema!({
            "description": "A number, a range, or a list of these.",
            "anyOf": [
                { "type": "number" },
                range,
                { "type": "array", "minItems": 1, "items": { "anyOf": [{ "type": "number" }, range] } },
            ],
        })
    }
}

#[derive(Deserialize, Default, PartialEq, Clone, Copy, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Spacing {
    /// Evenly spaced numbers.
    #[default]
    Linear,
    /// Evenly spaced logarithms.
    Log,
}

impl TryFrom<Value> for NumberList {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        let wrong = "allowed: numbers, {from, to, step} and {from, to, count, spacing}";
        let entries = match value {
            Value::Sequence(entries) => entries,
            one => vec![one],
        };
        let mut all = Vec::new();
        for entry in entries {
            match entry {
                Value::Number(number) => all.push(number.as_f64().ok_or(wrong)?),
                // Only mappings: serde would also read a struct from a list, but a nested list is a mistake.
                Value::Mapping(_) => {
                    let range: Range = serde_yaml::from_value(entry).map_err(|_| wrong)?;
                    range.expand(&mut all)?;
                }
                _ => return Err(wrong.into()),
            }
            if all.len() > LONGEST {
                return Err(format!("more than {LONGEST} numbers"));
            }
        }
        if all.is_empty() {
            return Err("an empty list of numbers".into());
        }
        if let Some(bad) = all.iter().find(|v| !v.is_finite()) {
            return Err(format!("{bad} is not a finite number"));
        }
        Ok(NumberList(all))
    }
}

impl Range {
    fn expand(&self, out: &mut Vec<f64>) -> Result<(), String> {
        let Range { from, to, .. } = *self;
        match (self.step, self.count) {
            (Some(step), None) => {
                let count = (to - from) / step;
                if !count.is_finite() || count < 0.0 || count > LONGEST as f64 {
                    return Err(format!(
                        "from {from} to {to} by steps of {step} must yield 1 to {LONGEST} numbers"
                    ));
                }
                // The small allowance keeps `to` in the list despite rounding errors.
                out.extend((0..=(count + 1e-9) as usize).map(|i| from + i as f64 * step));
            }
            (None, Some(count)) => {
                if !(2..=LONGEST).contains(&count) {
                    return Err(format!("`count` is {count}; allowed: 2 to {LONGEST}"));
                }
                let log = self.spacing == Spacing::Log;
                if log && (from <= 0.0 || to <= 0.0) {
                    return Err("`spacing: log` needs `from` and `to` above 0".into());
                }
                let last = (count - 1) as f64;
                out.extend((0..count).map(|i| {
                    let s = i as f64 / last;
                    if log {
                        10f64.powf(from.log10() * (1.0 - s) + to.log10() * s)
                    } else {
                        from * (1.0 - s) + to * s
                    }
                }));
            }
            _ => return Err("a range has either `step` or `count`".into()),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Vec<f64>, String> {
        serde_yaml::from_str::<NumberList>(text).map(|n| n.0).map_err(|e| e.to_string())
    }

    #[test]
    fn ranges_include_their_ends() {
        assert_eq!(parse("[1, {from: 1, to: 11, step: 5}]").unwrap(), [1.0, 1.0, 6.0, 11.0]);
        let log = parse("{from: 0.1, to: 0.0001, count: 4, spacing: log}").unwrap();
        for (value, expected) in log.iter().zip([1e-1, 1e-2, 1e-3, 1e-4]) {
            assert!((value / expected - 1.0).abs() < 1e-12);
        }
    }

    /// Catches a list that is read as the fields of a range, and errors that do not state what is allowed.
    #[test]
    fn lists_of_three_numbers_are_not_ranges() {
        assert_eq!(parse("[8, 16, 24]").unwrap(), [8.0, 16.0, 24.0]);
        assert_eq!(parse("5").unwrap(), [5.0]);
        for text in ["[[8, 16, 24]]", "[[1, 9, 2, null]]", "a", "{from: 1, to: 2, by: 1}"] {
            assert!(parse(text).unwrap_err().contains("allowed: numbers, {from"), "{text}");
        }
        let both = parse("{from: 1, to: 2, step: 1, count: 2}").unwrap_err();
        assert!(both.contains("either `step` or `count`"), "{both}");
    }

    /// Catches ranges that would loop endlessly or fill the memory.
    #[test]
    fn endless_ranges_are_refused() {
        for text in [
            "{from: 0, to: 1, step: 0}",
            "{from: 0, to: 1, step: -1}",
            "{from: 0, to: 1, step: 1e-12}",
            "{from: 0, to: 1e18, step: 1e-9}",
            "{from: 0, to: 1e308, step: 1e-308}",
            "{from: -1.7e308, to: 1.7e308, step: 1}",
            "{from: 0, to: 10001, step: 1}",
            "{from: 0, to: 1, count: 10001}",
            "{from: 0, to: 1, count: 18446744073709551615}",
            "{from: .inf, to: 1, step: 1}",
            "[{from: 0, to: 9999, step: 1}, {from: 0, to: 9999, step: 1}]",
            "{from: 0, to: 1, count: 1}",
            "{from: 0, to: 1, count: 5, spacing: log}",
            "[]",
            "[.nan]",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
