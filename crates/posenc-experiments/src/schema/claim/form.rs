//! Whether a printed statement and its correction are tested alike.

use std::fmt::Debug;

use super::{Check, Limit};

/// The properties of a check, by name, in which a printed statement and its correction must agree.
fn form(check: &Check) -> Vec<(&'static str, String)> {
    let text = |value: &dyn Debug| format!("{value:?}");
    let mut form = vec![("kind", check.kind().to_owned())];
    for (_, select) in check.selects() {
        form.push(("x", text(&select.x)));
        form.push(("statistic", text(&select.statistic)));
    }
    let limits = |limits: [bool; 2]| limits.iter().filter(|is_set| **is_set).count().to_string();
    let number = |limit: &Option<Limit>| limit.is_some();
    form.extend(match check {
        Check::Value(c) => vec![("tolerance", text(&c.tolerance)), ("sample", text(&c.sample))],
        Check::Ordering(c) => {
            vec![("smallest_effect", text(&c.smallest_effect)), ("margin", text(&c.margin))]
        }
        Check::Ratio(c) => {
            vec![("number of limits", limits([c.at_least.is_some(), c.at_most.is_some()]))]
        }
        Check::Trend(c) => vec![("slack", text(&c.slack))],
        Check::Bound(c) => vec![
            ("number of limits", limits([number(&c.at_least), number(&c.at_most)])),
            ("slack", text(&c.slack)),
            ("each", text(&c.each)),
        ],
        Check::Equality(c) => vec![("tolerance", text(&c.tolerance)), ("each", text(&c.each))],
        Check::Agreement(c) => vec![
            ("tolerance", text(&c.tolerance)),
            ("share", text(&c.share)),
            ("sample", text(&c.sample)),
        ],
        Check::Position(c) => vec![
            ("steps", text(&c.steps)),
            ("level", text(&c.level)),
            ("sample", text(&c.sample)),
            ("below_highest", text(&c.below_highest)),
        ],
    });
    form
}

/// The first difference in form between the checks of a printed statement and of its correction; `None` if they have the same form.
pub fn difference(printed: &Check, corrected: &Check) -> Option<String> {
    let (own, other) = (form(printed), form(corrected));
    if own.len() != other.len() {
        return Some("the number of selections".to_owned());
    }
    let ((name, _), _) = own.iter().zip(&other).find(|(a, b)| a != b)?;
    Some(format!("`{name}`"))
}
