//! Verdicts: claims held against records.

mod curves;
mod judge;
mod select;
mod statistics;
#[cfg(test)]
mod tests;

pub use judge::judge;
pub use select::{Context, show};
pub use statistics::{Interval, difference_interval, mean_interval};

/// What a record says of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// The claim holds.
    Reproduced,
    /// The claim does not hold.
    NotReproduced,
    /// The difference is smaller than its uncertainty.
    WithinNoise,
    /// The record cannot decide it: too small a profile, other data.
    NotComparable,
    /// There is no record.
    NotRun,
    /// The statement is wrong as printed, and its correction holds.
    Erratum,
}

impl Verdict {
    /// All verdicts, in the order of tables.
    pub const ALL: [Verdict; 6] = [
        Verdict::Reproduced,
        Verdict::Erratum,
        Verdict::WithinNoise,
        Verdict::NotReproduced,
        Verdict::NotComparable,
        Verdict::NotRun,
    ];

    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Reproduced => "reproduced",
            Verdict::NotReproduced => "not reproduced",
            Verdict::WithinNoise => "within noise",
            Verdict::NotComparable => "not comparable",
            Verdict::NotRun => "not run",
            Verdict::Erratum => "erratum",
        }
    }

    /// A sign that stands before the name in tables.
    pub fn sign(self) -> &'static str {
        match self {
            Verdict::Reproduced => "✅",
            Verdict::NotReproduced => "❌",
            Verdict::WithinNoise => "≈",
            Verdict::NotComparable => "◌",
            Verdict::NotRun => "–",
            Verdict::Erratum => "📝",
        }
    }
}

/// A verdict with what it rests on.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// What was measured, beside what was expected.
    pub measured: String,
    /// n, interval, test; empty where a number is exact.
    pub statistics: String,
    /// Why the verdict is not plain `reproduced`; empty otherwise.
    pub reason: String,
}

/// A judgement, or why there is none.
type Judged = Result<Judgement, Judgement>;

impl Judgement {
    fn of(is_reproduced: bool, measured: String, statistics: String, reason: String) -> Self {
        let verdict = if is_reproduced { Verdict::Reproduced } else { Verdict::NotReproduced };
        let reason = if is_reproduced { String::new() } else { reason };
        Judgement { verdict, measured, statistics, reason }
    }

    /// The judgement; not comparable if there is a reason against it.
    fn unless(self, reason: Option<String>) -> Self {
        match reason {
            Some(reason) => Judgement { verdict: Verdict::NotComparable, reason, ..self },
            None => self,
        }
    }
}
