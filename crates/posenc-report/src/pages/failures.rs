//! Units that failed on this machine.

use posenc_experiments::plan::NO_SIGNAL;
use posenc_experiments::record::Failure;

use super::places;
use crate::Inputs;
use crate::markdown::{Align, Grid, label, plain};
use crate::numbers::{MISSING, counted};
use crate::records::Side;
use crate::view::{View, Views};

/// Maximum number of rows in the table of an item; further failures are only counted.
const LISTED: usize = 20;
/// Maximum number of characters of a reason.
const LONGEST_REASON: usize = 300;

fn of<'a>(view: &'a View<'_>) -> impl Iterator<Item = &'a Failure> {
    view.sides.iter().filter(|side| side.side == Side::Local).flat_map(|side| &side.failures)
}

/// Renders the table of an item's failures; empty if no unit failed.
pub fn render(view: &View<'_>) -> String {
    let count = of(view).count();
    if count == 0 {
        return String::new();
    }
    let mut grid = Grid::default();
    grid.column("Method", Align::Left).column("Signal", Align::Left);
    grid.column("Repetition", Align::Right).column("Reason", Align::Left);
    for failure in of(view).take(LISTED) {
        let signal = match failure.signal.as_str() {
            NO_SIGNAL => MISSING.to_owned(),
            signal => plain(signal),
        };
        let mut reason: String = failure.reason.chars().take(LONGEST_REASON).collect();
        if reason.len() < failure.reason.len() {
            reason.push('…');
        }
        grid.row(vec![
            format!("{} ({})", plain(&failure.method), plain(&failure.group)),
            signal,
            failure.seed.to_string(),
            plain(&reason),
        ]);
    }
    let failed = counted(count, "unit");
    let mut text = format!("**Failed on this machine:** {failed}\n\n{}", grid.render());
    if count > LISTED {
        text.push_str(&format!("and {} more.\n\n", count - LISTED));
    }
    text
}

/// Renders the number of failures per item for the summary; empty if no unit failed.
pub fn count(inputs: &Inputs<'_>, views: &Views<'_>) -> String {
    let mut items = Vec::new();
    let mut all = 0;
    for paper in &inputs.catalog.papers {
        for item in &paper.items {
            let Some(view) = views.get(&paper.key, &item.item) else { continue };
            let count = of(view).count();
            if count > 0 {
                let place = places::item(&paper.key, &item.item);
                items.push(format!("[{}]({place}) {count}", label(&item.name)));
                all += count;
            }
        }
    }
    if all == 0 {
        return String::new();
    }
    format!("**Failed on this machine:** {} ({})\n\n", counted(all, "unit"), items.join(", "))
}
