//! The answer to an item.

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

/// The sentences of the experiment's answer that are true on this run, or else the first headline that holds, or the first claim that
/// was decided.
fn of(view: &View<'_>, side: &SideView) -> Option<String> {
    let experiment = view.experiment;
    let find = |id: &str| {
        let (claim, judgement) = side.judged(view, id)?;
        Some((view, side, claim, judgement))
    };
    let stated = sentences::answer(&experiment.answer, find, |(.., judgement)| judgement.verdict);
    let claims = || experiment.claims.iter().zip(&side.judgements);
    let headline = || claims().find_map(|(c, j)| sentences::headline((view, side, c, j)));
    if let Some(text) = stated.or_else(headline) {
        return Some(text);
    }
    let is_decided = |verdict: Verdict| {
        !matches!(verdict, Verdict::NotRun | Verdict::NotComparable | Verdict::NotDecided)
    };
    let (claim, judgement) = claims().find(|(_, j)| is_decided(j.verdict))?;
    let measured = match judgement.measured.as_str() {
        "" | "–" => String::new(),
        measured => format!(" Measured: {}.", plain(measured)),
    };
    Some(format!("{}: {}{measured}", named(judgement.verdict), inline(&claim.says)))
}
