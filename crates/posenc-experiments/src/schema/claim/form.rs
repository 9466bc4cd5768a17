//! Whether a printed statement and its correction are tested alike.

use super::{Abscissa, Check, Limit, Select, Statistic};

/// What of a check must be the same on both sides of an erratum, by name.
fn form(check: &Check) -> Vec<(&'static str, String)> {
    let mut form = vec![("kind", check.kind().to_owned())];
    for (_, select) in check.selects() {
        form.push(("x", range(select)));
        form.push(("statistic", statistic(select).to_owned()));
    }
    let limits = |limits: [bool; 2]| limits.iter().filter(|is_set| **is_set).count().to_string();
    let number = |limit: &Option<Limit>| limit.is_some();
    match check {
        Check::Value(c) => {
            form.push(("tolerance", format!("{:?}", c.tolerance)));
            form.push(("sample", format!("{:?}", c.sample)));
        }
        Check::Ordering(c) => {
            form.push(("smallest_effect", format!("{:?}", c.smallest_effect)));
            form.push(("margin", c.margin.to_string()));
        }
        Check::Ratio(c) => {
            form.push(("number of limits", limits([c.at_least.is_some(), c.at_most.is_some()])));
        }
        Check::Trend(c) => form.push(("slack", format!("{:?}", c.slack))),
        Check::Bound(c) => {
            form.push(("number of limits", limits([number(&c.at_least), number(&c.at_most)])));
            form.push(("slack", c.slack.to_string()));
            form.push(("each", c.each.to_string()));
        }
        Check::Equality(c) => {
            form.push(("tolerance", format!("{:?}", c.tolerance)));
            form.push(("each", c.each.to_string()));
        }
        Check::Agreement(c) => {
            form.push(("tolerance", format!("{:?}", c.tolerance)));
            form.push(("share", c.share.to_string()));
            form.push(("sample", format!("{:?}", c.sample)));
        }
        Check::Position(c) => {
            form.push(("steps", c.steps.to_string()));
            form.push(("level", format!("{:?}", c.level)));
            form.push(("sample", format!("{:?}", c.sample)));
            form.push(("below_highest", format!("{:?}", c.below_highest)));
        }
    }
    form
}

fn range(select: &Select) -> String {
    match &select.x {
        None => "all".to_owned(),
        Some(Abscissa::At(x)) => x.to_string(),
        Some(Abscissa::Between(range)) => format!("{} to {}", range.from, range.to),
    }
}

fn statistic(select: &Select) -> &'static str {
    match select.statistic {
        Statistic::Each => "each",
        Statistic::Mean => "mean",
        Statistic::Deviation => "deviation",
    }
}

/// What differs between the check of a printed statement and that of its correction; `None` if both are tested alike.
pub fn difference(printed: &Check, corrected: &Check) -> Option<String> {
    let (own, other) = (form(printed), form(corrected));
    if own.len() != other.len() {
        return Some("the number of selections".to_owned());
    }
    let differing = own.iter().zip(&other).find(|(a, b)| a != b)?;
    let ((name, _), _) = differing;
    Some(format!("`{name}`"))
}
