//! Verdicts: claims compared with records.

pub(crate) mod checks;
mod clusters;
mod comparable;
mod curves;
mod evidence;
#[cfg(test)]
mod fairness_tests;
mod floors;
mod holm;
mod judge;
mod numbers;
mod pairs;
mod points;
pub(crate) mod samples;
#[cfg(test)]
mod simulation;
mod statistics;
#[cfg(test)]
mod tests;

pub use evidence::Evidence;
pub use holm::adjusted as holm_adjusted;
pub use judge::judge;
pub use numbers::Numbers;
pub use points::{Context, show, show_interval};
pub use statistics::{Interval, LEVEL, difference_interval, mean_interval};

/// The result of comparing a claim with a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// A claim of the paper holds.
    Reproduced,
    /// A claim of this project holds.
    Holds,
    /// The statement is wrong as printed, and its correction holds.
    Erratum,
    /// One reading of the statement fails, and another one holds.
    Ambiguous,
    /// The confidence interval contains the limit.
    WithinNoise,
    /// The difference is significant and smaller than the smallest effect that matters.
    Negligible,
    /// There is only one signal or repetition, so the uncertainty is unknown, or a measurement is not finite.
    NotDecided,
    /// A claim of the paper does not hold.
    NotReproduced,
    /// A claim of this project does not hold.
    DoesNotHold,
    /// The record cannot decide the claim, for example because its profile is reduced or its data are not the paper's.
    NotComparable,
    NotRun,
}

impl Verdict {
    /// All verdicts, in the order of tables.
    pub const ALL: [Verdict; 11] = [
        Verdict::Reproduced,
        Verdict::Holds,
        Verdict::Erratum,
        Verdict::Ambiguous,
        Verdict::WithinNoise,
        Verdict::Negligible,
        Verdict::NotDecided,
        Verdict::NotReproduced,
        Verdict::DoesNotHold,
        Verdict::NotComparable,
        Verdict::NotRun,
    ];

    fn sign_and_name(self) -> (&'static str, &'static str) {
        match self {
            Verdict::Reproduced => ("✓", "reproduced"),
            Verdict::Holds => ("✓", "holds"),
            Verdict::Erratum => ("✎", "erratum"),
            Verdict::Ambiguous => ("✎", "ambiguous"),
            Verdict::WithinNoise => ("?", "within noise"),
            Verdict::Negligible => ("?", "negligible"),
            Verdict::NotDecided => ("?", "not decided"),
            Verdict::NotReproduced => ("✗", "not reproduced"),
            Verdict::DoesNotHold => ("✗", "does not hold"),
            Verdict::NotComparable => ("?", "not comparable"),
            Verdict::NotRun => ("–", "not run"),
        }
    }

    pub fn name(self) -> &'static str {
        self.sign_and_name().1
    }

    /// The sign before the name in tables: holds ✓, holds after a correction ✎, fails ✗, undecided ?, or – without a record.
    pub fn sign(self) -> &'static str {
        self.sign_and_name().0
    }

    /// The verdict on several parts that must all hold: the first one in `ORDER` that any part has.
    fn worst(all: impl IntoIterator<Item = Verdict>) -> Verdict {
        const ORDER: [Verdict; 7] = [
            Verdict::NotReproduced,
            Verdict::NotRun,
            Verdict::NotComparable,
            Verdict::NotDecided,
            Verdict::WithinNoise,
            Verdict::Negligible,
            Verdict::Reproduced,
        ];
        let rank = |v: &Verdict| ORDER.iter().position(|known| known == v).unwrap_or(ORDER.len());
        all.into_iter().min_by_key(rank).unwrap_or(Verdict::Reproduced)
    }
}

/// A verdict with its evidence and numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    pub verdict: Verdict,
    /// The class of the evidence; `None` if the claim was not run.
    pub evidence: Option<Evidence>,
    /// The class of the rows alone, whoever makes the statement.
    pub rows: Option<Evidence>,
    /// How the evidence falls short of the paper's protocol, such as `1 of 16 images`; empty for the full protocol and for theory.
    pub condition: String,
    /// The measured value, next to the expected one.
    pub measured: String,
    /// n, interval and test; empty for exact numbers.
    pub statistics: String,
    /// Why the verdict is not plain `reproduced`; empty otherwise.
    pub reason: String,
    /// p of each check that has a test: two-sided and not adjusted for the number of tests.
    pub p_values: Vec<f64>,
    /// Place in `p_values` of the check that decides: the clearest failure, or else the least clear check.
    pub decisive_p: usize,
    /// Deviation divided by the limit that decides; 1 at the limit. `None` if the check has no such limit.
    pub of_limit: Option<f64>,
}

/// A verdict with the class of its evidence, as counted in totals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Classified {
    pub verdict: Verdict,
    /// The class; `None` if the claim was not run.
    pub evidence: Option<Evidence>,
}

/// Why a claim cannot be judged, with the verdict that says so.
#[derive(Debug, Clone, PartialEq)]
struct Unjudged {
    verdict: Verdict,
    reason: String,
}

impl Unjudged {
    fn judgement(self) -> Judgement {
        Judgement::new(self.verdict, "–".into(), String::new(), self.reason)
    }
}

/// A judgement, or why there is none.
type Judged = Result<Judgement, Unjudged>;

impl Judgement {
    fn new(verdict: Verdict, measured: String, statistics: String, reason: String) -> Self {
        let reason = if verdict == Verdict::Reproduced { String::new() } else { reason };
        Judgement {
            verdict,
            evidence: None,
            rows: None,
            condition: String::new(),
            measured,
            statistics,
            reason,
            p_values: Vec::new(),
            decisive_p: 0,
            of_limit: None,
        }
    }

    /// Sets [`Judgement::of_limit`], unless it is not finite.
    fn near(self, of_limit: Option<f64>) -> Self {
        Judgement { of_limit: of_limit.filter(|share| share.is_finite()), ..self }
    }

    /// Changes the verdict to not comparable if there is a reason.
    fn unless(self, reason: Option<String>) -> Self {
        match reason {
            Some(reason) => Judgement { verdict: Verdict::NotComparable, reason, ..self },
            None => self,
        }
    }

    /// p of the check that decides; `None` without a test.
    pub fn p(&self) -> Option<f64> {
        self.p_values.get(self.decisive_p).copied()
    }

    pub fn classified(&self) -> Classified {
        Classified { verdict: self.verdict, evidence: self.evidence }
    }

    /// Whether the deviation is within 20 % of the limit, on either side.
    pub fn is_narrow(&self) -> bool {
        self.of_limit.is_some_and(|share| (share - 1.0).abs() <= NARROW)
    }
}

/// Largest distance from the limit, as a share of the limit, at which a verdict is narrow.
pub const NARROW: f64 = 0.2;
