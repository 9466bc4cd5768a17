//! Errata page: errors and ambiguities of the papers, each with the numbers of its check.

use posenc_experiments::record::Row;
use posenc_experiments::schema::experiment::Experiment;
use posenc_experiments::schema::paper::Paper;
use posenc_math::errata::{self, Erratum, Severity};

use super::{Content, item_name, places};
use crate::Inputs;
use crate::markdown::{Align, Grid, anchor, cell, label, plain};
use crate::numbers::{MISSING, distinct, significant};
use crate::records::Run;
use crate::view::{SideView, View, Views};

/// Item key of the recorded checks of each paper.
pub const ITEM: &str = "errata";
/// Group of that item.
const GROUP: &str = "checks";

/// The errata of a paper.
pub fn of(paper: &Paper) -> Vec<&'static Erratum> {
    errata::all().into_iter().filter(|e| e.paper() == paper.key).collect()
}

/// A link to an erratum by its id; the bare id if there is no such erratum.
pub fn link(id: &str) -> String {
    match errata::all().into_iter().find(|e| e.id == id) {
        Some(erratum) => format!("[{}]({})", plain(id), places::erratum(erratum)),
        None => plain(id),
    }
}

/// Renders the overview: counts by severity, and a line per erratum.
pub fn overview(inputs: &Inputs<'_>, views: &Views<'_>) -> Content {
    let mut text = format!("{}\n\n", include_str!("../../templates/errata.md").trim());
    text.push_str(&counts(inputs, views));
    for paper in &inputs.catalog.papers {
        let own = of(paper);
        if own.is_empty() {
            continue;
        }
        text.push_str(&format!(
            "## [{}]({})\n\n",
            label(&paper.title),
            places::errata_of(&paper.key)
        ));
        for erratum in own {
            text.push_str(&format!(
                "- [{}]({}) ({}): {}\n",
                plain(erratum.id),
                places::erratum(erratum),
                erratum.severity.name(),
                cell(erratum.place)
            ));
        }
        text.push('\n');
    }
    Content { title: "Errata and ambiguities".into(), text }
}

/// Renders the errata of a paper with their numbers; `None` if there are none.
pub fn of_paper(inputs: &Inputs<'_>, views: &Views<'_>, paper: &Paper) -> Option<Content> {
    let own = of(paper);
    if own.is_empty() {
        return None;
    }
    let mut text = format!(
        "[{}]({}) · [Errata of all papers]({})\n\n",
        label(&paper.title),
        places::paper(&paper.key),
        places::ERRATA
    );
    let view = views.get(&paper.key, ITEM);
    for erratum in own {
        text.push_str(&section(inputs, views, view, erratum));
    }
    let title = format!("Errata of {}", cell(&paper.title));
    Some(Content { title, text })
}

const SEVERITIES: [Severity; 5] = [
    Severity::Mathematical,
    Severity::Contradicted,
    Severity::Ambiguous,
    Severity::Typographic,
    Severity::CodeDiffers,
];

fn counts(inputs: &Inputs<'_>, views: &Views<'_>) -> String {
    let mut grid = Grid::default();
    grid.column("Paper", Align::Left);
    grid.columns(SEVERITIES.map(Severity::name), Align::Right).column("confirmed", Align::Right);
    for paper in &inputs.catalog.papers {
        let own = of(paper);
        if own.is_empty() {
            continue;
        }
        let mut row = vec![format!("[{}]({})", label(&paper.title), places::errata_of(&paper.key))];
        for severity in SEVERITIES {
            row.push(own.iter().filter(|e| e.severity == severity).count().to_string());
        }
        let run = views.get(&paper.key, ITEM).and_then(|v| v.runs().next());
        let holds = own.iter().filter(|e| is_confirmed(run, e) == Some(true)).count();
        row.push(format!("{holds} of {}", own.len()));
        grid.row(row);
    }
    if grid.is_empty() { String::new() } else { grid.render() }
}

fn rows<'a>(run: Option<&'a Run>, erratum: &Erratum) -> impl Iterator<Item = &'a Row> {
    run.into_iter().flat_map(|run| run.rows(GROUP, erratum.id, None, None))
}

/// Whether the check of an erratum confirms it; `None` if it was not run.
fn is_confirmed(run: Option<&Run>, erratum: &Erratum) -> Option<bool> {
    rows(run, erratum).find(|r| r.metric == "holds").map(|row| row.value == 1.0)
}

fn section(
    inputs: &Inputs<'_>,
    views: &Views<'_>,
    view: Option<&View<'_>>,
    erratum: &Erratum,
) -> String {
    let mut text =
        format!("{}\n\n## {} – {}\n\n", anchor(erratum.id), plain(erratum.id), cell(erratum.place));
    let outcome = |run: Option<&Run>| match is_confirmed(run, erratum) {
        Some(true) => "✅ confirmed by its check",
        Some(false) => "❌ not confirmed by its check",
        None => "– check not run",
    };
    let verdicts: Vec<_> = match view {
        None => vec![outcome(None).to_owned()],
        Some(view) => view
            .sides
            .iter()
            .map(|s| {
                let who = view.who(s.side).map(|who| format!("{who}: ")).unwrap_or_default();
                format!("{who}{}", outcome(s.run.as_ref()))
            })
            .collect(),
    };
    text.push_str(&format!("*{}* · {}\n\n", erratum.severity.name(), verdicts.join(" · ")));
    for (name, body) in [
        ("Printed", erratum.printed),
        ("Correct", erratum.correct),
        ("Consequence", erratum.consequence),
    ] {
        if !body.trim().is_empty() {
            text.push_str(&format!("- **{name}.** {}\n", body.trim().replace('\n', "\n  ")));
        }
    }
    text.push('\n');
    if let Some(view) = view {
        text.push_str(&quantities(view, erratum));
    }
    let seen: Vec<_> = views
        .all()
        .flat_map(|v| v.experiment.claims.iter().map(move |c| (v.experiment, c)))
        .filter(|(_, c)| c.erratum.as_ref().is_some_and(|e| e.id == erratum.id))
        .map(|(e, c)| {
            let place = places::claim(&e.paper, &e.item, &c.id);
            format!("[{} {}]({place})", item_name(inputs, &e.paper, &e.item), plain(&c.id))
        })
        .collect();
    if !seen.is_empty() {
        text.push_str(&format!("Claims that refer to this erratum: {}.\n\n", seen.join(", ")));
    }
    text
}

/// Renders the errata that an item lists, with their numbers.
pub fn beside(views: &Views<'_>, experiment: &Experiment) -> String {
    let all = errata::all();
    let named = experiment.errata.iter().filter_map(|id| all.iter().find(|e| e.id == id));
    let mut text = String::new();
    for erratum in named {
        text.push_str(&format!(
            "- *{}* **Printed.** {} **Correct.** {} ({})\n",
            cell(erratum.place),
            erratum.printed.trim().replace('\n', "\n  "),
            erratum.correct.trim().replace('\n', "\n  "),
            link(erratum.id)
        ));
        if let Some(view) = views.get(&experiment.paper, ITEM) {
            let numbers = quantities(view, erratum);
            let inside = numbers.trim_end().replace('\n', "\n  ");
            text.push_str(&format!("\n  {inside}\n\n"));
        }
    }
    if text.is_empty() { text } else { format!("## Errata\n\n{}\n\n", text.trim_end()) }
}

fn quantities(view: &View<'_>, erratum: &Erratum) -> String {
    let measured = view.sides.iter().flat_map(|side| rows(side.run.as_ref(), erratum));
    let measured = measured.filter(|row| row.metric != "holds");
    let names = distinct(measured.map(|row| row.signal.as_str()));
    if names.is_empty() {
        return String::new();
    }
    let mut grid = Grid::default();
    grid.column("Quantity", Align::Left).column("printed", Align::Right);
    for side in &view.sides {
        let name = match view.who(side.side) {
            None => "measured".to_owned(),
            Some(who) => format!("measured, {}", who.to_lowercase()),
        };
        grid.column(name, Align::Right);
    }
    grid.column("corrected", Align::Right);
    for name in names {
        let number = |side: &SideView, metric: &str| {
            let run = side.run.as_ref()?;
            let own = run.rows(GROUP, erratum.id, Some(name), None);
            let row = own.filter(|row| row.metric == metric).last()?;
            let unit = Some(format!(" {}", plain(&row.unit))).filter(|_| !row.unit.is_empty());
            Some(significant(row.value, 6) + &unit.unwrap_or_default())
        };
        let missing = || MISSING.to_owned();
        let any =
            |metric| view.sides.iter().find_map(|s| number(s, metric)).unwrap_or_else(missing);
        let mut row = vec![cell(name), any("printed")];
        row.extend(view.sides.iter().map(|s| number(s, "measured").unwrap_or_else(missing)));
        row.push(any("corrected"));
        grid.row(row);
    }
    grid.render()
}
