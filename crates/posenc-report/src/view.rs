//! An item as the report shows it: its experiment, both runs and their verdicts.

use std::collections::BTreeMap;

use posenc_experiments::schema::Experiment;
use posenc_experiments::schema::claim::{Claim, ClaimName};
use posenc_experiments::schema::paper::{Item, Paper};
use posenc_experiments::verdict::{Classified, Context, Judgement, holm_adjusted, judge};
use posenc_experiments::{Catalog, Published};
use rayon::prelude::*;

use crate::links;
use crate::records::{Conditions, Run, Side};
use crate::{Inputs, Records};

/// An item with an experiment.
pub struct View<'a> {
    pub experiment: &'a Experiment,
    /// Published values of all items.
    pub published: &'a Published,
    /// The runs to show: the reference and, if given, this machine's.
    pub sides: Vec<SideView>,
}

/// One run of an item, with its verdicts.
pub struct SideView {
    pub side: Side,
    pub run: Option<Run>,
    /// Verdicts, in the order of the claims.
    pub judgements: Vec<Judgement>,
    /// p-values of the claims after Holm's correction over all checks of the paper's claims that have one; that of the check that decides each claim.
    pub holm: Vec<Option<f64>>,
}

impl<'a> View<'a> {
    /// Selects the shown rows of each run and judges the claims on them.
    pub fn new(inputs: &Inputs<'a>, experiment: &'a Experiment) -> View<'a> {
        let published = &inputs.catalog.published;
        let side = |side: Side, records: &Records| {
            let record = records.get(&experiment.paper, &experiment.item);
            let run = record.map(|r| Run::of(side, r));
            let run = run.filter(|r| !r.table.rows.is_empty());
            let record = run.as_ref().map(|r| &r.table);
            let context = Context { experiment, record, published };
            let judged = |claim: &Claim| judge(claim, context);
            let judgements: Vec<Judgement> = experiment.claims.iter().map(judged).collect();
            let holm = vec![None; judgements.len()];
            SideView { side, run, judgements, holm }
        };
        let mut sides = vec![side(Side::Reference, inputs.reference)];
        sides.extend(inputs.local.map(|local| side(Side::Local, local)));
        View { experiment, published, sides }
    }

    pub fn runs(&self) -> impl Iterator<Item = &Run> {
        self.sides.iter().filter_map(|s| s.run.as_ref())
    }

    /// The context for judging the claims on a run.
    pub fn context<'b>(&'b self, side: &'b SideView) -> Context<'b> {
        let record = side.run.as_ref().map(|run| &run.table);
        Context { experiment: self.experiment, record, published: self.published }
    }

    /// The name of a run; none if it is the only one.
    pub fn who(&self, side: Side) -> Option<&'static str> {
        Some(side.name()).filter(|_| self.sides.len() > 1)
    }

    pub fn conditions(&self, run: &Run) -> Conditions {
        Conditions::of(self.experiment, run, |_| true)
    }
}

/// A claim with its verdict on a run.
#[derive(Clone, Copy)]
pub struct JudgedClaim<'v> {
    pub view: &'v View<'v>,
    pub side: &'v SideView,
    pub claim: &'v Claim,
    pub judgement: &'v Judgement,
    /// Its p after Holm's correction.
    pub holm: Option<f64>,
}

impl JudgedClaim<'_> {
    /// A link to the claim on the page of its item.
    pub fn page(&self) -> String {
        let experiment = self.view.experiment;
        links::claim(&experiment.paper, &experiment.item, &self.claim.id)
    }
}

impl SideView {
    /// The claims with their verdicts.
    pub fn claims<'v>(&'v self, view: &'v View<'v>) -> impl Iterator<Item = JudgedClaim<'v>> {
        let all = view.experiment.claims.iter().zip(&self.judgements).zip(&self.holm);
        all.map(move |((claim, judgement), holm)| JudgedClaim {
            view,
            side: self,
            claim,
            judgement,
            holm: *holm,
        })
    }
}

/// All items of a catalog, by paper and item.
pub struct Views<'a> {
    views: BTreeMap<(String, String), View<'a>>,
}

impl<'a> Views<'a> {
    /// Verdicts by paper and item: those of this machine's run if it is shown, else those of the reference.
    pub fn verdicts(&self) -> BTreeMap<(String, String), Vec<Classified>> {
        let of = |view: &View<'_>| {
            let side = view.sides.last();
            let classified =
                |side: &SideView| side.judgements.iter().map(Judgement::classified).collect();
            side.map(classified).unwrap_or_default()
        };
        self.views.iter().map(|(key, view)| (key.clone(), of(view))).collect()
    }

    /// Creates the views of all experiments.
    pub fn new(inputs: &Inputs<'a>) -> Views<'a> {
        let catalog: &'a Catalog = inputs.catalog;
        let view = |e: &'a Experiment| ((e.paper.clone(), e.item.clone()), View::new(inputs, e));
        let mut views = Views { views: catalog.experiments.par_iter().map(view).collect() };
        for paper in &catalog.papers {
            for side in [Side::Reference, Side::Local] {
                views.adjust(&paper.key, side);
            }
        }
        views
    }

    /// Applies Holm's correction to the p-values of a paper's claims.
    fn adjust(&mut self, paper: &str, side: Side) {
        let own = self.views.values_mut().filter(|view| view.experiment.paper == paper);
        let mut sides: Vec<&mut SideView> =
            own.flat_map(|view| &mut view.sides).filter(|s| s.side == side).collect();
        let judged = || sides.iter().flat_map(|s| &s.judgements);
        let all: Vec<f64> = judged().flat_map(|j| &j.p_values).copied().collect();
        let mut adjusted = holm_adjusted(&all).into_iter();
        for side in &mut sides {
            let decisive = |j: &Judgement| {
                let own: Vec<f64> = adjusted.by_ref().take(j.p_values.len()).collect();
                own.get(j.decisive_p).copied()
            };
            side.holm = side.judgements.iter().map(decisive).collect();
        }
    }

    /// A claim with its verdict on a side.
    pub fn claim(&self, side: Side, name: &ClaimName) -> Option<JudgedClaim<'_>> {
        let view = self.get(&name.paper, &name.item)?;
        let side = view.sides.iter().find(|own| own.side == side)?;
        side.claims(view).find(|own| own.claim.id == name.claim)
    }

    /// The view of an item with an experiment.
    pub fn get(&self, paper: &str, item: &str) -> Option<&View<'a>> {
        self.views.get(&(paper.to_owned(), item.to_owned()))
    }

    /// The claims of a paper with their verdicts on the reference, in the order of its items.
    pub fn judged<'v>(
        &'v self,
        paper: &'v Paper,
    ) -> impl Iterator<Item = (&'v Item, JudgedClaim<'v>)> {
        paper.items.iter().flat_map(move |item| {
            let view = self.get(&paper.key, &item.item);
            let side = view.and_then(|view| Some((view, view.sides.first()?)));
            let claims = side.into_iter().flat_map(|(view, side)| side.claims(view));
            claims.map(move |claim| (item, claim))
        })
    }

    pub fn all(&self) -> impl Iterator<Item = &View<'a>> {
        self.views.values()
    }
}

/// The runs that a report shows.
pub fn sides(inputs: &Inputs<'_>) -> Vec<Side> {
    let mut sides = vec![Side::Reference];
    sides.extend(inputs.local.map(|_| Side::Local));
    sides
}
