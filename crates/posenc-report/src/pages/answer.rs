//! The answer to an item in one sentence.

use posenc_experiments::verdict::Verdict;

use super::{named, sentences};
use crate::markdown::{inline, plain};
use crate::view::{SideView, View};

/// Renders the answer of each run; empty without claims or records.
pub fn render(view: &View<'_>) -> String {
    let mut text = String::new();
    for side in view.sides.iter().filter(|side| side.run.is_some()) {
        let Some(answer) = of(view, side) else { continue };
        let who = match view.who(side.side) {
            None => "Our answer".to_owned(),
            Some(who) => format!("Our answer ({})", who.to_lowercase()),
        };
        text.push_str(&format!("**{who}.** {answer}\n\n"));
    }
    text
}

/// The answer that the experiment states, the first headline among its claims, or its first claim that was decided.
fn of(view: &View<'_>, side: &SideView) -> Option<String> {
    let experiment = view.experiment;
    if let Some(answer) = &experiment.answer
        && let Some(text) = sentences::filled(view, side, answer, None)
    {
        return Some(text);
    }
    let claims = || experiment.claims.iter().zip(&side.judgements);
    for (claim, _) in claims() {
        if let Some(headline) = &claim.headline
            && let Some(text) = sentences::filled(view, side, headline, Some(claim))
        {
            return Some(text);
        }
    }
    let is_decided = |verdict: Verdict| {
        !matches!(verdict, Verdict::NotRun | Verdict::NotComparable | Verdict::NotDecided)
    };
    let (claim, judgement) =
        claims().find(|(_, j)| is_decided(j.verdict)).or_else(|| claims().next())?;
    let measured = match judgement.measured.as_str() {
        "" | "–" => String::new(),
        measured => format!(" Measured: {}.", plain(measured)),
    };
    Some(format!("{}: {}{measured}", named(judgement.verdict), inline(&claim.says)))
}
