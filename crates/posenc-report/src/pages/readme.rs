//! Summary page: scope, methodology, results, what was easy, what was difficult, the machine.

use std::collections::{BTreeMap, BTreeSet};

use posenc_experiments::catalog::PAPER_ORDER;
use posenc_experiments::schema::paper::Paper;
use posenc_experiments::verdict::Verdict;

use super::{MARKER, failures, meaning, named, parameters};
use crate::markdown::{Align, Grid, anchor, block, cell, details, inline, label, plain, slug};
use crate::numbers::{MISSING, duration};
use crate::records::Side;
use crate::view::{Counts, SideView, View, Views};
use crate::{Inputs, Section};

/// Renders the page, with the usual sections of a reproducibility report.
pub fn render(inputs: &Inputs<'_>, views: &Views<'_>) -> Vec<Section> {
    let title = "Reproducibility summary";
    let opening = format!("{MARKER}\n\n# {title}\n\n{}", opening(inputs, views));
    let papers = &inputs.catalog.papers;
    let scopes: String = papers.iter().map(|paper| scope(views, paper)).collect();
    let results: String = papers.iter().map(|paper| results(inputs, views, paper)).collect();
    vec![
        Section::opening(title.to_owned(), opening),
        section(
            "Scope of reproducibility",
            &[&template(include_str!("../../templates/scope.md")), &scopes],
        ),
        section("Methodology", &[&template(include_str!("../../templates/methodology.md"))]),
        section("Results", &[&verdicts(inputs, views), &failures::count(inputs, views), &results]),
        section("What was easy", &[&template(include_str!("../../templates/easy.md"))]),
        section("What was difficult", &[&template(include_str!("../../templates/difficult.md"))]),
        section("Machine and versions", &[&machines(inputs, views)]),
        section("How to run it", &[&template(include_str!("../../templates/run.md"))]),
    ]
}

fn section(title: &str, parts: &[&str]) -> Section {
    let text = format!("## {title}\n\n{}", parts.concat());
    Section { anchor: None, title: title.to_owned(), text }
}

fn template(text: &str) -> String {
    format!("{}\n\n", text.trim())
}

fn side_counts(views: &Views<'_>, side: Side, of: impl Fn(&View<'_>) -> bool) -> Counts {
    let mut counts = Counts::default();
    for view in views.all().filter(|v| of(v)) {
        for s in view.sides.iter().filter(|s| s.side == side) {
            counts.join(&s.counts());
        }
    }
    counts
}

fn sides(inputs: &Inputs<'_>) -> Vec<Side> {
    let mut sides = vec![Side::Reference];
    sides.extend(inputs.local.map(|_| Side::Local));
    sides
}

fn opening(inputs: &Inputs<'_>, views: &Views<'_>) -> String {
    let papers = &inputs.catalog.papers;
    let items: usize = papers.iter().map(|p| p.items.len()).sum();
    let list = |published: bool| {
        let known = |p: &&Paper| PAPER_ORDER.contains(&p.key.as_str()) == published;
        let line = |p: &Paper| {
            let by = format!("{}, {}", plain(&family_names(&p.authors)), p.year);
            format!("- [{}]({}.md) ({by})\n", label(&p.title), p.key)
        };
        papers.iter().filter(known).map(line).collect::<String>()
    };
    let with = views.all().count();
    let claims = views.all().map(|v| v.experiment.claims.len()).sum::<usize>();
    let mut text = format!(
        "One command reproduces the figures, tables and propositions of these papers:\n\n{}\n",
        list(true)
    );
    text.push_str(&match list(false).as_str() {
        "" => String::new(),
        own => format!("It also runs additional experiments:\n\n{own}\n"),
    });
    text.push_str(&format!(
        "{with} of {items} items have an experiment, with {claims} claims in total. [Errata](errata.md) lists errors and \
         ambiguities of the papers, and [embedders](embedders.md) plots every embedder.{}\n\n",
        match inputs.costs {
            Some(_) => " [Costs](costs.md) estimates the cost of all items at the scale of the papers.",
            None => "",
        }
    ));
    for side in sides(inputs) {
        let counts = side_counts(views, side, |_| true);
        let signs = counts.signs();
        let signs = if signs.is_empty() { "no claims yet".to_owned() } else { signs };
        text.push_str(&format!("**{}:** {signs}\n\n", side.name()));
    }
    text
}

fn family_names(authors: &[String]) -> String {
    let names: Vec<_> = authors.iter().map(|a| a.rsplit(' ').next().unwrap_or(a)).collect();
    match names.as_slice() {
        [] => String::new(),
        [_] => authors[0].clone(),
        [one, two] => format!("{one} and {two}"),
        [one, ..] => format!("{one} et al."),
    }
}

fn scope(views: &Views<'_>, paper: &Paper) -> String {
    let mut text = format!(
        "**[{}]({}.md)**\n\n{}\n\n",
        label(&paper.title),
        paper.key,
        block(&paper.summary).trim_end()
    );
    let mut list = String::new();
    let mut count = 0;
    for item in &paper.items {
        let Some(view) = views.get(&paper.key, &item.item) else { continue };
        for (i, claim) in view.experiment.claims.iter().enumerate() {
            let of = |s: &SideView| s.judgements.get(i).map(|j| j.verdict.sign());
            let signs: Vec<_> = view.sides.iter().filter_map(of).collect();
            let place = slug(&format!("{}-{}", item.item, claim.id));
            list.push_str(&format!(
                "- {} {} ([{}]({}.md#{place}))\n",
                signs.join(" / "),
                inline(&claim.says),
                label(&item.name),
                paper.key
            ));
            count += 1;
        }
    }
    if count > 0 {
        let s = if count == 1 { "" } else { "s" };
        text.push_str(&details(&format!("{count} claim{s}"), &list));
    }
    text
}

fn verdicts(inputs: &Inputs<'_>, views: &Views<'_>) -> String {
    let mut grid = Grid::default();
    grid.column("Verdict", Align::Left).column("Meaning", Align::Left);
    grid.columns(sides(inputs).into_iter().map(Side::name), Align::Right);
    for verdict in Verdict::ALL {
        let mut row = vec![named(verdict), meaning(verdict).to_owned()];
        for side in sides(inputs) {
            row.push(side_counts(views, side, |_| true).of(verdict).to_string());
        }
        grid.row(row);
    }
    format!("{}\n\n{}", anchor("verdicts"), grid.render())
}

fn results(inputs: &Inputs<'_>, views: &Views<'_>, paper: &Paper) -> String {
    let mut grid = Grid::default();
    grid.column("Item", Align::Left).column("What it shows", Align::Left);
    let compared = inputs.local.is_some();
    if compared {
        for side in sides(inputs) {
            grid.column(format!("{}<br>profile, data", side.name()), Align::Left);
            grid.column(format!("{}<br>verdicts", side.name()), Align::Left);
        }
    } else {
        grid.column("Profile", Align::Left).column("Data", Align::Left);
        grid.columns(Verdict::ALL.map(Verdict::sign), Align::Right);
    }
    let width = if compared { 4 } else { 2 + Verdict::ALL.len() };
    for item in &paper.items {
        let mut row = vec![
            format!("[{}]({}.md#{})", label(&item.name), paper.key, slug(&item.item)),
            cell(&item.title),
        ];
        match views.get(&paper.key, &item.item) {
            None => {
                row.push("*no experiment yet*".into());
                row.extend((1..width).map(|_| String::new()));
            }
            Some(view) => {
                for side in &view.sides {
                    let (profile, data) = conditions(view, side);
                    let counts = side.counts();
                    if compared {
                        row.push(format!("{profile}, {data}"));
                        row.push(counts.signs());
                    } else {
                        row.extend([profile, data]);
                        row.extend(Verdict::ALL.map(|v| match counts.of(v) {
                            0 => String::new(),
                            n => n.to_string(),
                        }));
                    }
                }
            }
        }
        grid.row(row);
    }
    let mut total = vec!["**All**".to_owned(), String::new()];
    for side in sides(inputs) {
        let counts = side_counts(views, side, |v| v.experiment.paper == paper.key);
        total.extend([String::new()]);
        if compared {
            total.push(counts.signs());
        } else {
            total.push(String::new());
            total.extend(Verdict::ALL.map(|v| format!("**{}**", counts.of(v))));
        }
    }
    grid.row(total);
    format!("### {}\n\n{}", cell(&paper.title), grid.render())
}

/// Profiles and data of a run, with labels for reduced runs and for data other than the paper's.
fn conditions(view: &View<'_>, side: &SideView) -> (String, String) {
    let Some(run) = &side.run else { return (MISSING.into(), MISSING.into()) };
    let all = view.conditions(run);
    let profiles: Vec<_> = all.profiles.iter().rev().map(|p| p.name()).collect();
    let mut profile = profiles.join(", ");
    if !all.reduced.is_empty() {
        profile.push_str(" (reduced)");
    }
    let data: Vec<_> = all.data.iter().filter(|d| *d != "-").map(|d| plain(d)).collect();
    let mut data = if data.is_empty() { "none".to_owned() } else { data.join(", ") };
    if !all.other_data.is_empty() {
        data.push_str(" (other data)");
    }
    (profile, data)
}

/// Renders, for each side, the machines and the work they ran.
fn machines(inputs: &Inputs<'_>, views: &Views<'_>) -> String {
    let mut text = String::new();
    for side in sides(inputs) {
        /// Work of one machine.
        #[derive(Default)]
        struct Share {
            items: usize,
            units: usize,
            seconds: f64,
            commits: BTreeSet<String>,
        }
        let mut machines: BTreeMap<(String, usize), Share> = BTreeMap::new();
        let mut versions: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for view in views.all() {
            for run in view.runs().filter(|r| r.side == side) {
                let p = &run.provenance;
                let share = machines.entry((p.machine.clone(), p.cores)).or_default();
                share.items += 1;
                share.units += p.units;
                share.seconds += p.seconds;
                share.commits.insert(p.commit.clone());
                for (name, version) in &p.versions {
                    versions.entry(name.clone()).or_default().insert(version.clone());
                }
            }
        }
        if inputs.local.is_some() {
            text.push_str(&format!("**{}**\n\n", side.name()));
        }
        if machines.is_empty() {
            text.push_str("*No records yet.*\n\n");
            continue;
        }
        let mut grid = Grid::default();
        let numbers = ["Cores", "Items", "Units", "Total wall time of the units"];
        grid.column("Machine", Align::Left).columns(numbers, Align::Right);
        grid.column("Commits", Align::Left);
        for ((machine, cores), share) in &machines {
            let commits: Vec<_> = share
                .commits
                .iter()
                .filter(|c| !c.is_empty())
                .map(|c| crate::markdown::code(&short(c)))
                .collect();
            grid.row(vec![
                if machine.is_empty() { "not recorded".into() } else { plain(machine) },
                if *cores == 0 { MISSING.into() } else { cores.to_string() },
                share.items.to_string(),
                share.units.to_string(),
                duration(share.seconds),
                if commits.is_empty() { MISSING.into() } else { commits.join(", ") },
            ]);
        }
        text.push_str(&grid.render());
        if !versions.is_empty() {
            let joined = versions
                .into_iter()
                .map(|(name, v)| (name, v.into_iter().collect::<Vec<_>>().join(" / ")))
                .collect();
            text.push_str(&format!("Versions: {}.\n\n", parameters::versions(&joined)));
        }
    }
    text
}

/// Shortens a commit hash and keeps a suffix such as `-dirty`.
fn short(commit: &str) -> String {
    let (name, suffix) = commit.split_once('-').map_or((commit, ""), |(n, s)| (n, s));
    let name: String = name.chars().take(12).collect();
    if suffix.is_empty() { name } else { format!("{name}-{suffix}") }
}
