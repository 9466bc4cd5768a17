//! Screens of an item, drawn as boxes, with the captions of each method for the labeled widgets.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use posenc_experiments::record::CaptionedMethod;
use posenc_experiments::record::captions::{Described, Layout};
use posenc_experiments::schema::Experiment;

use super::Files;
use crate::markdown::{Align, Grid, attribute, code, details, plain};
use crate::plot::screen;
use crate::records::Run;
use crate::view::View;

const COLUMNS: usize = 4;
/// Display width of a drawing.
const SHOWN_WIDTH: usize = 200;

/// Renders the screens recorded by each run; adds their drawings to `files`.
pub fn render(view: &View<'_>, files: &mut Files) -> Result<String> {
    let mut text = String::new();
    for run in view.runs() {
        let who = view.who(run.side).unwrap_or_default();
        let mut before = 0;
        for lot in run.captions.lots() {
            let Some(first) = lot.first() else { continue };
            let screens = Screens { experiment: view.experiment, run, lot: &lot, before };
            before += first.captions.layouts.len();
            text.push_str(&screens.title(who));
            text.push_str(&screens.drawings(&first.captions.layouts, files)?);
            text.push_str(&screens.tables(&first.captions.layouts));
            text.push_str(&screens.notes(first.captions.layouts.len()));
        }
    }
    Ok(text)
}

/// Screens that methods share.
struct Screens<'a> {
    experiment: &'a Experiment,
    run: &'a Run,
    lot: &'a [&'a CaptionedMethod],
    /// Number of screens of the run that precede these.
    before: usize,
}

impl Screens<'_> {
    /// Title, side of the run, and how the run was reduced.
    fn title(&self, who: &str) -> String {
        let of = |method: &&CaptionedMethod| {
            let group = self.experiment.group(&method.group)?;
            group.reduced(method.profile).map(|what| format!("Reduced run: {what}"))
        };
        let mut parts: Vec<String> =
            self.lot.iter().filter_map(of).collect::<BTreeSet<_>>().into_iter().collect();
        if !who.is_empty() {
            parts.insert(0, who.to_owned());
        }
        let mut text = "**Captions of each method for the numbered widgets**".to_owned();
        if !parts.is_empty() {
            text.push_str(&format!("<br>*{}*", plain(&parts.join(" – "))));
        }
        text + "\n\n"
    }

    /// Number of a screen on the page.
    fn number(&self, index: usize) -> usize {
        self.before + index + 1
    }

    fn drawings(&self, layouts: &[Layout], files: &mut Files) -> Result<String> {
        let Experiment { paper, item, .. } = self.experiment;
        let mut text = String::new();
        for (row, layouts) in layouts.chunks(COLUMNS).enumerate() {
            let mut grid = Grid::default();
            let mut cells = Vec::new();
            for (column, layout) in layouts.iter().enumerate() {
                let number = self.number(row * COLUMNS + column);
                let end = self.run.side.ending();
                // Names of plots contain no dots, so they cannot collide.
                let path = format!("figures/{paper}/{item}.screen-{number}{end}.svg");
                let alt = alt(layout, number);
                let drawn = screen::svg(layout, &alt);
                let drawn = drawn.with_context(|| format!("screen {number} of {paper}/{item}"))?;
                cells.push(format!(
                    "<img src=\"{}\" width=\"{SHOWN_WIDTH}\" alt=\"{}\">",
                    attribute(&path),
                    attribute(&alt)
                ));
                grid.column(format!("screen {number}"), Align::Center);
                files.insert(PathBuf::from(path), drawn.into_bytes());
            }
            grid.row(cells);
            text.push_str(&grid.render());
        }
        Ok(text)
    }

    /// One table per screen, with a column per widget and a row per method. All but the first are folded.
    fn tables(&self, layouts: &[Layout]) -> String {
        let mut tables = Vec::new();
        let mut from = 0;
        for (i, layout) in layouts.iter().enumerate() {
            let to = from + layout.widgets.len();
            tables.push(format!("Screen {}\n\n{}", self.number(i), self.table(from, to)));
            from = to;
        }
        let folded = tables.split_off(tables.len().min(1));
        let mut text = tables.concat();
        if !folded.is_empty() {
            let numbers: Vec<_> = (1..layouts.len()).map(|i| self.number(i).to_string()).collect();
            let s = if numbers.len() == 1 { "" } else { "s" };
            let summary = format!("Screen{s} {}", numbers.join(", "));
            text.push_str(&details(&summary, &folded.concat()));
        }
        text
    }

    /// Captions of the widgets `from..to`, which belong to one screen.
    fn table(&self, from: usize, to: usize) -> String {
        let of = |method: &CaptionedMethod| -> Vec<Described> {
            method.captions.widgets.get(from..to).unwrap_or_default().to_vec()
        };
        let mut grid = Grid::default();
        grid.column("", Align::Left);
        (1..=to - from).for_each(|number| {
            grid.column(number.to_string(), Align::Left);
        });
        let mut references = vec!["**reference**".to_owned()];
        if let Some(first) = self.lot.first() {
            let reference = |widget: &Described| widget.references.first().map(|r| plain(r));
            let bold = |text: String| format!("**{text}**");
            references.extend(of(first).iter().map(|w| reference(w).map(bold).unwrap_or_default()));
        }
        grid.row(references);
        let mut right = vec![0; to - from];
        for method in self.lot {
            let widgets = of(method);
            let mut cells = vec![self.label(method)];
            for (widget, count) in widgets.iter().zip(&mut right) {
                *count += usize::from(widget.is_right);
                cells.push(said(widget));
            }
            grid.row(cells);
        }
        if self.lot.len() > 1 {
            let mut cells = vec!["*correct*".to_owned()];
            cells.extend(right.iter().map(|n| format!("*{n} of {}*", self.lot.len())));
            grid.row(cells);
        }
        grid.render()
    }

    /// Name of a method, with its group if another group has a method of the same name.
    fn label(&self, method: &CaptionedMethod) -> String {
        let twice = self.lot.iter().filter(|m| m.method == method.method).count() > 1;
        match twice {
            true => format!("{} ({})", plain(&method.method), code(&method.group)),
            false => plain(&method.method),
        }
    }

    fn notes(&self, shown: usize) -> String {
        let which = match shown {
            1 => "the first generated screen outside the training set".to_owned(),
            _ => format!("the first {shown} generated screens outside the training set"),
        };
        let mut notes = vec![
            format!("{which}, not hand-picked"),
            "columns: the numbered widgets; the model input is the boxes, their kinds and the words in them".to_owned(),
            "✓ correct, ❌ wrong: a widget has several correct captions, and one of them is shown as the reference".to_owned(),
        ];
        let first = self.lot.iter().map(|method| method.seed).collect::<BTreeSet<_>>();
        if first == BTreeSet::from([0]) {
            notes.push("one training run per method, with the first seed".to_owned());
        }
        format!("<sub>{}</sub>\n\n", notes.join(" · "))
    }
}

fn said(widget: &Described) -> String {
    let mark = if widget.is_right { "✓" } else { "❌" };
    match widget.said.is_empty() {
        true => format!("{mark} *empty*"),
        false => format!("{mark} {}", plain(&widget.said)),
    }
}

fn alt(layout: &Layout, number: usize) -> String {
    let widgets = layout.widgets.iter().filter_map(|i| layout.nodes.get(*i));
    let kinds: Vec<String> = (1..)
        .zip(widgets)
        .map(|(i, node): (usize, _)| format!("{i}: {}", node.kind.words()))
        .collect();
    let nodes = layout.nodes.len();
    format!("Screen {number} with {nodes} boxes; numbered widgets: {}", kinds.join(", "))
}
