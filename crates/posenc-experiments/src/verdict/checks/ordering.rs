//! `ordering`: several selections are in a given order.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Rule, not_negative};
use crate::schema::Group;
use crate::schema::claim::{Abscissa, Select, Statistic};
use crate::schema::metrics::Metrics;
use crate::schema::protocol::Fault;
use crate::verdict::clusters::Clusters;
use crate::verdict::comparable::unlike;
use crate::verdict::pairs::{Pair, on_common_seeds, paired_differences, pairs};
use crate::verdict::points::{Context, not_run, points, show, show_interval};
use crate::verdict::statistics::{LEVEL, mean, mean_interval};
use crate::verdict::{Judged, Judgement, Verdict};

/// Several selections are in a given order, by differences paired over signal, seed and abscissa.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OrderingCheck {
    /// Selections, in the order that is claimed.
    pub of: Vec<Select>,
    /// Whether the first is the highest (default) or the lowest.
    #[serde(default)]
    first: First,
    /// Smallest difference that matters, in the unit of the metric; the smallest effect of the metric if absent.
    pub smallest_effect: Option<f64>,
    /// By how much the higher one may be lower, in the unit of the metric. With a margin above 0, the check is one of
    /// non-inferiority ("at least comparable"), without a smallest effect.
    #[serde(default)]
    pub margin: f64,
}

/// Which end of the order is first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum First {
    #[default]
    Highest,
    Lowest,
}

impl OrderingCheck {
    /// 1 if the first is the highest, −1 if it is the lowest.
    pub fn sign(&self) -> f64 {
        if self.first == First::Highest { 1.0 } else { -1.0 }
    }
}

impl Rule for OrderingCheck {
    fn selects(&self) -> Vec<(String, &Select)> {
        self.of.iter().enumerate().map(|(i, s)| (format!("of[{i}]"), s)).collect()
    }

    fn problem(&self, _: &[Group]) -> Option<Fault> {
        if self.of.len() < 2 {
            return Some(("of", "an order needs at least two selections".into()));
        }
        if self.of.iter().any(|select| select.statistic == Statistic::Deviation) {
            return Some(("of", "an order is of values; compare deviations with a `ratio`".into()));
        }
        let effect = self.smallest_effect.and_then(not_negative);
        let effect = effect.map(|message| ("smallest_effect", message));
        effect.or_else(|| Some(("margin", not_negative(self.margin)?)))
    }

    fn complete(&mut self, metrics: &Metrics) -> Result<(), String> {
        let rule = self.of.first().and_then(|select| metrics.rule(&select.metric));
        self.smallest_effect = self.smallest_effect.or(rule.and_then(|r| r.smallest_effect));
        Ok(())
    }

    fn judge(&self, clusters: Clusters, context: Context<'_>) -> Judged {
        let all = self.of.iter().map(|s| points(s, context)).collect::<Result<Vec<_>, _>>()?;
        let (sign, effect) = (self.sign(), self.smallest_effect.unwrap_or(0.0));
        let names = names(&self.of);
        let mut steps: Vec<Step> = Vec::new();
        let (mut statistics, mut reasons, mut means) = (Vec::new(), Vec::new(), Vec::new());
        for (i, sides) in all.windows(2).enumerate() {
            let selects = [&self.of[i], &self.of[i + 1]];
            let title = format!("{} − {}", names[i], names[i + 1]);
            let [a, b] = on_common_seeds([&sides[0], &sides[1]], clusters);
            let pairs = pairs((selects[0], &a), (selects[1], &b))?;
            if pairs.is_empty() {
                return Err(not_run(format!("{title}: no values in common")));
            }
            // The shown means are over paired values and independent repetitions, as the verdict is.
            let shown = |value: fn(&Pair<'_>) -> f64| {
                mean(clusters.means(pairs.iter().map(|p| (p.left, value(p)))).into_iter())
            };
            means.push(shown(|p| p.left.value));
            if means.len() + 1 == all.len() {
                means.push(shown(|p| p.right.value));
            }
            let step = if clusters.is_exact {
                Step::exact(&pairs, sign, effect, self.margin)
            } else {
                let difference = |p: &Pair<'_>| sign * (p.left.value - p.right.value);
                let values = clusters.means(pairs.iter().map(|p| (p.left, difference(p))));
                let step = Step::of(&values, effect, self.margin, clusters);
                // With several samples of random features on several signals, the interval is the wider one: over signals or samples.
                match clusters.across_samples([&sides[0], &sides[1]]) {
                    Some(samples) => {
                        let sides = [(selects[0], &*sides[0]), (selects[1], &*sides[1])];
                        let values = paired_differences(sides, samples, difference)?;
                        step.or_wider(Step::of(&values, effect, self.margin, samples))
                    }
                    None => step,
                }
            };
            let mean = sign * step.mean;
            let interval = step.half_width.map(|h| show_interval(LEVEL, mean, h));
            let details: Vec<&str> = interval.iter().chain(&step.details).map(|s| &**s).collect();
            let details = match details.is_empty() {
                true => String::new(),
                false => format!(" ({})", details.join(", ")),
            };
            statistics.push(format!("{title}: {}{details}", show(mean)));
            if step.verdict != Verdict::Reproduced {
                let why = step.why.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
                // With a margin, a difference can be significantly above 0 without being significantly above the margin.
                let of = match step.verdict {
                    Verdict::WithinNoise if self.margin > 0.0 => " of the margin",
                    _ => "",
                };
                reasons.push(format!("{title} is {}{of}{why}", step.verdict.name()));
            }
            steps.push(step);
        }
        let worst = Verdict::worst(steps.iter().map(|step| step.verdict));
        let between = match (worst, sign > 0.0) {
            (Verdict::Reproduced, true) => " > ",
            (Verdict::Reproduced, false) => " < ",
            _ => ", ",
        };
        let each = means.iter().zip(&names).map(|(mean, name)| format!("{name} {}", show(*mean)));
        let each: Vec<String> = each.collect();
        let measured = if worst == Verdict::Reproduced && self.margin > 0.0 {
            // Within the margin, the means may be in the other order.
            let (minus, margin) = (if sign > 0.0 { '−' } else { '+' }, show(self.margin));
            let step =
                |pair: &[String]| format!("{}{between}{} {minus} {margin}", pair[0], pair[1]);
            each.windows(2).map(step).collect::<Vec<_>>().join("; ")
        } else {
            each.join(between)
        };
        let unlike = self.of.windows(2).find_map(|of| unlike(&of[0], &of[1], context));
        // An order fails by its clearest wrong step, and holds only if each step does.
        let p = match worst {
            Verdict::NotReproduced => {
                let wrong = steps.iter().filter(|step| step.verdict == worst);
                wrong.filter_map(|step| step.p).reduce(f64::min)
            }
            _ => {
                let all = steps.iter().map(|step| step.p).collect::<Option<Vec<f64>>>();
                all.and_then(|all| all.into_iter().reduce(f64::max))
            }
        };
        // The step that is nearest to its limit shows how narrow the order is.
        let distance = |share: &f64| (share - 1.0).abs();
        let shares = steps.iter().filter_map(|step| step.of_limit);
        let of_limit = shares.min_by(|a, b| distance(a).total_cmp(&distance(b)));
        let judgement = Judgement::new(worst, measured, statistics.join("; "), reasons.join("; "));
        let p_values = p.into_iter().collect();
        Ok(Judgement { p_values, ..judgement.near(of_limit) }.unless(unlike))
    }
}

struct Step {
    verdict: Verdict,
    /// Mean difference, with the claimed sign.
    mean: f64,
    /// What follows the mean and its interval in the statistics.
    details: Vec<String>,
    why: Option<String>,
    p: Option<f64>,
    of_limit: Option<f64>,
    half_width: Option<f64>,
}

impl Step {
    /// An order of numbers without uncertainty holds at every point, and on average by at least the smallest effect.
    fn exact(pairs: &[Pair<'_>], sign: f64, effect: f64, margin: f64) -> Step {
        let difference = |p: &&Pair<'_>| sign * (p.left.value - p.right.value);
        // Ignore differences at the level of rounding errors.
        let holds = |p: &&Pair<'_>| {
            let scale = p.left.value.abs().max(p.right.value.abs());
            difference(p) + margin > 1e-12 * scale
        };
        let (count, held) = (pairs.len(), pairs.iter().filter(holds).count());
        let points = format!("holds at {held} of {count} points");
        let mean = mean(pairs.iter().map(|p| difference(&p)));
        let is_small = margin == 0.0 && pairs.iter().all(|p| difference(&p).abs() < effect);
        let verdict = match (is_small, held == count) {
            (true, _) => Verdict::Negligible,
            (false, true) if margin == 0.0 && mean < effect => Verdict::Negligible,
            (false, true) => Verdict::Reproduced,
            (false, false) => Verdict::NotReproduced,
        };
        let details = if count == 1 { vec![] } else { vec![format!("exact; {points}")] };
        let why = match verdict {
            Verdict::Negligible => Some(format!("smallest effect {}", show(effect))),
            _ => (count > 1).then_some(points),
        };
        Step { verdict, mean, details, why, p: None, of_limit: None, half_width: None }
    }

    fn or_wider(self, other: Step) -> Step {
        let half_width = |step: &Step| step.half_width.unwrap_or(0.0);
        if half_width(&other) > half_width(&self) { other } else { self }
    }

    /// Judges a step by the differences of independent repetitions, with the claimed sign. `effect` is the smallest difference that
    /// matters; a `margin` above 0 allows differences against the order.
    fn of(values: &[f64], effect: f64, margin: f64, clusters: Clusters) -> Step {
        let effect = if margin > 0.0 { 0.0 } else { effect };
        let shown = mean_interval(values).mean;
        let values: Vec<f64> = values.iter().map(|v| v + margin).collect();
        let test = mean_interval(&values);
        let significant = |mean: f64| match (mean.abs() >= effect, mean > 0.0) {
            (false, _) => Verdict::Negligible,
            (true, true) => Verdict::Reproduced,
            (true, false) => Verdict::NotReproduced,
        };
        let verdict = match test.half_width {
            None if values.len() == 1 => Verdict::NotDecided,
            // All repetitions differ by the same number.
            None if test.mean == 0.0 => Verdict::NotReproduced,
            None => significant(test.mean),
            Some(h) if test.mean.abs() > h => significant(test.mean),
            Some(_) => Verdict::WithinNoise,
        };
        let mut details = Vec::new();
        if test.n > 1 {
            details.push(clusters.counted(test.n));
        }
        if test.half_width.is_some() {
            details.extend((margin > 0.0).then(|| format!("margin {}", show(margin))));
            details.extend(test.p.map(|_| "paired t-test".to_owned()));
        }
        let why = match verdict {
            Verdict::NotDecided => Some(clusters.lack()),
            Verdict::Negligible => Some(format!("smallest effect {}", show(effect))),
            _ => None,
        };
        let limit = test.half_width.unwrap_or(0.0).max(effect);
        let of_limit = (limit > 0.0 && values.len() > 1).then(|| test.mean.abs() / limit);
        Step {
            verdict,
            mean: shown,
            details,
            why,
            p: test.p,
            of_limit,
            half_width: test.half_width,
        }
    }
}

/// Names that distinguish the selections of an order: the methods if they differ, else the first key that differs, else all keys.
fn names(of: &[Select]) -> Vec<String> {
    let x = |s: &Select| match &s.x {
        None => "x".to_owned(),
        Some(Abscissa::At(v)) => format!("x = {}", show(*v)),
        Some(Abscissa::Between(i)) => format!("x from {} to {}", show(i.from), show(i.to)),
    };
    let method = |s: &Select| s.method.clone().unwrap_or_else(|| s.group.clone());
    let keys: [&dyn Fn(&Select) -> String; 4] =
        [&method, &|s| s.group.clone(), &|s| s.metric.clone(), &x];
    let all = |key: &dyn Fn(&Select) -> String| of.iter().map(key).collect::<Vec<_>>();
    let distinct = |names: &[String]| names.iter().collect::<BTreeSet<_>>().len() == names.len();
    let by_one = keys.iter().map(|key| all(*key)).find(|names| distinct(names));
    let by_all = |s: &Select| {
        let place = s.x.as_ref().map_or_else(String::new, |_| format!(", {}", x(s)));
        format!("{}/{} {}{place}", s.group, method(s), s.metric)
    };
    let names = by_one.unwrap_or_else(|| all(&by_all)).into_iter().zip(of);
    let name = |(name, s): (String, &Select)| match &s.minus {
        Some(_) => format!("{name} ({})", s.metric_text()),
        None => name,
    };
    names.map(name).collect()
}
