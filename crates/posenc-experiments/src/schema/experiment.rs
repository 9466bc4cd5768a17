//! One experiment file: what to run, what to compare the results with, and how to show them.

use std::mem::take;
use std::ops::{Deref, DerefMut};
use std::path::PathBuf;

use super::answer::{self, AnswerSentence};
use super::claim::Claim;
use super::display;
use super::group::Group;
use super::keys::{check_key, check_keys, check_unique};
use super::limits::{MAX_VARIANTS, SizeBudget};
use super::protocol::Kinds;
use super::wire::Definition;
use crate::yaml::{Document, FileError, no_claim};

/// A validated experiment. Later code does not validate it again.
#[derive(Debug, Clone)]
pub struct Experiment {
    /// The file it was read from.
    pub file: PathBuf,
    /// The kinds of protocol it was read with.
    pub kinds: Kinds,
    /// What we found; derived from the claims if empty.
    pub answer: Vec<AnswerSentence>,
    pub groups: Vec<Group>,
    pub claims: Vec<Claim>,
    /// The other keys of the file.
    definition: Definition,
}

impl Deref for Experiment {
    type Target = Definition;

    fn deref(&self) -> &Definition {
        &self.definition
    }
}

impl DerefMut for Experiment {
    fn deref_mut(&mut self) -> &mut Definition {
        &mut self.definition
    }
}

impl Experiment {
    /// `paper/item`.
    pub fn id(&self) -> String {
        format!("{}/{}", self.paper, self.item)
    }

    pub fn group(&self, id: &str) -> Option<&Group> {
        self.groups.iter().find(|g| g.id == id)
    }

    /// Deserializes a document; every error names file, line and key.
    pub fn from_document(document: &Document, kinds: Kinds) -> Result<Self, FileError> {
        let (root, mut wire): (_, Definition) = (document.root(), document.typed()?);
        check_key(&root, "paper", &wire.paper)?;
        check_key(&root, "item", &wire.item)?;
        if wire.groups.is_empty() && wire.comparisons.is_empty() {
            let message =
                "empty; an experiment needs at least one group, or `comparisons` of other items";
            return Err(root.error("groups", message));
        }
        check_keys(&root.key("comparisons"), &wire.comparisons, |c| &c.id)?;
        check_unique(&root.key("groups"), &wire.groups, |g| &g.id)?;
        check_keys(&root.key("claims"), &wire.claims, |c| &c.id)?;
        check_keys(&root.key("plots"), &wire.plots, |p| &p.id)?;
        check_unique(&root.key("tables"), &wire.tables, |t| &t.id)?;
        check_keys(&root.key("pictures"), &wire.pictures, |p| &p.id)?;
        let variants: usize = wire.groups.iter().map(|g| g.variants.len()).sum();
        if variants > MAX_VARIANTS {
            let message = format!("{variants} variants; allowed: {MAX_VARIANTS}. Split the file");
            return Err(root.error("groups", message));
        }
        let mut asked = SizeBudget::new(kinds);
        let groups = (take(&mut wire.groups).into_iter().enumerate())
            .map(|(i, group)| group.checked(&root.entry("groups", i), &mut asked))
            .collect::<Result<Vec<_>, _>>()?;
        let claims = (take(&mut wire.claims).into_iter().enumerate())
            .map(|(i, claim)| claim.checked(&root.entry("claims", i), &groups))
            .collect::<Result<Vec<_>, _>>()?;
        let selections = |id: &str| {
            let claim = claims.iter().find(|claim| claim.id == id);
            let names = claims.iter().map(|claim| claim.id.as_str());
            let claim = claim.ok_or_else(|| no_claim(id, names))?;
            Ok(claim.selects().count())
        };
        let answer = match wire.answer.take() {
            Some(value) => answer::parse(&root.key("answer"), &value, selections)?,
            None => Vec::new(),
        };
        for (i, floor) in wire.floors.iter().enumerate() {
            floor.check(&root.entry("floors", i), &groups)?;
        }
        for (i, ceiling) in wire.ceilings.iter().enumerate() {
            ceiling.check(&root.entry("ceilings", i), &groups)?;
        }
        for (i, speed) in wire.benchmarks.iter().enumerate() {
            let place = root.entry("benchmarks", i);
            check_key(&place, "workload", &speed.workload)?;
            if !(1..=10_000_000).contains(&speed.times) {
                return Err(place.error("times", "allowed: 1 to 10000000"));
            }
        }
        for (i, id) in wire.errata.iter().enumerate() {
            let is_own = |e: &&posenc_math::errata::Erratum| e.paper() == wire.paper && e.id == id;
            if !posenc_math::errata::all().iter().any(is_own) {
                let paper = &wire.paper;
                let message =
                    format!("no erratum `{id}` of `{paper}`; report/errata.md has their names");
                return Err(root.error(&format!("errata[{i}]"), message));
            }
        }
        let (plots, tables, pictures) = (&wire.plots, &wire.tables, &wire.pictures);
        display::check(&root, plots, tables, pictures, &wire.comparisons, &groups)?;
        // Most keys state what they allow, so this comes last.
        document.check_finite()?;
        let file = root.file().to_owned();
        Ok(Experiment { file, kinds, answer, groups, claims, definition: wire })
    }
}
