//! `value`: the mean of the selected values equals a number.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Rule, Tolerance};
use crate::schema::Group;
use crate::schema::claim::Select;
use crate::schema::metrics::Metrics;
use crate::schema::protocol::Fault;
use crate::verdict::clusters::Clusters;
use crate::verdict::comparable::incomparable;
use crate::verdict::points::{Context, describe, not_run, points, show, show_interval};
use crate::verdict::statistics::{EQUIVALENCE, interval_at, near};
use crate::verdict::{Judged, Judgement};

/// The mean of the selected values equals a number.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ValueCheck {
    /// Rows whose mean is taken.
    of: Select,
    /// Expected mean.
    expect: Expected,
    /// Largest difference; the tolerance of the metric if absent.
    tolerance: Option<Tolerance>,
}

/// The number that a value is compared with.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(untagged)]
enum Expected {
    /// A number, as the paper's text or theory gives it.
    Number(f64),
    /// The word `published`: the value of the same group, method, metric and abscissa.
    Published(PublishedWord),
}

/// The word `published`.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum PublishedWord {
    Published,
}

impl Rule for ValueCheck {
    fn selects(&self) -> Vec<(String, &Select)> {
        vec![("of".into(), &self.of)]
    }

    fn published(&self) -> Option<&Select> {
        matches!(self.expect, Expected::Published(_)).then_some(&self.of)
    }

    fn is_on_same_signals(&self) -> bool {
        true
    }

    fn problem(&self, _: &[Group]) -> Option<Fault> {
        self.tolerance.as_ref()?.problem(false)
    }

    fn complete(&mut self, metrics: &Metrics) -> Result<(), String> {
        Tolerance::complete(&mut self.tolerance, &self.of.metric, metrics)
    }

    fn judge(&self, clusters: Clusters, context: Context<'_>) -> Judged {
        let points = points(&self.of, context)?;
        let expected = match self.expect {
            Expected::Number(number) => number,
            Expected::Published(_) => {
                let found: Vec<f64> =
                    context.published_of(&self.of).filter_map(|v| v.value).collect();
                let of = describe(&self.of);
                match found[..] {
                    [one] => one,
                    [] => return Err(not_run(format!("nothing published for {of}"))),
                    [..] => {
                        let n = found.len();
                        let message =
                            format!("{n} published values for {of}; narrow the selection");
                        return Err(not_run(message));
                    }
                }
            }
        };
        let means = clusters.means_of(&points);
        let margin = Tolerance::given(&self.tolerance)?.margin(expected);
        let (margin, margin_text) = margin.ok_or_else(|| not_run("no tolerance"))?;
        let interval = interval_at(&means, EQUIVALENCE);
        let fit = near(&means, expected, margin, 1, clusters.is_exact);
        let measured =
            format!("{} against {} ({margin_text})", show(interval.mean), show(expected));
        let statistics = match interval.half_width {
            Some(h) => {
                let interval_text = show_interval(EQUIVALENCE, interval.mean, h);
                format!("{}, {interval_text}", clusters.counted(interval.n))
            }
            None if interval.n <= 1 => String::new(),
            None => clusters.counted(interval.n),
        };
        let reason = format!("off by {}", show(interval.mean - expected));
        let judgement = Judgement::new(fit.verdict(), measured, statistics, reason);
        let judgement = judgement.near(Some((interval.mean - expected).abs() / margin));
        let printed = matches!(self.expect, Expected::Published(_)).then_some(&self.of);
        Ok(judgement.unless(incomparable(&self.of, printed, context)))
    }
}
