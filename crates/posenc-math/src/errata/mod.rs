//! Errors and ambiguities of the three papers, each with a computation that establishes it.
//!
//! An [`Erratum`] states what is printed, what is right and what follows from it; its check
//! recomputes the disputed numbers and decides from them alone whether the erratum stands
//! ([`Finding::holds`]). Checks use Monte Carlo sampling with seeded ChaCha8 streams, linear
//! algebra, quadrature, and arithmetic on published values, which come in through [`Inputs`].

mod lff;
mod numeric;
mod rethinking;
#[cfg(test)]
mod tests;
mod trading;

use rand_chacha::ChaCha8Rng;

/// A number in dispute.
#[derive(Debug, Clone, PartialEq)]
pub struct Quantity {
    /// What it is; Markdown with `$math$`.
    pub name: String,
    /// The value the paper prints, or that its formula gives.
    pub printed: Option<f64>,
    /// The value computed without either formula.
    pub measured: Option<f64>,
    /// The value the corrected statement gives.
    pub corrected: Option<f64>,
    /// Unit; empty for pure numbers.
    pub unit: &'static str,
}

impl Quantity {
    fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), printed: None, measured: None, corrected: None, unit: "" }
    }

    fn printed(mut self, value: f64) -> Self {
        self.printed = Some(value);
        self
    }

    fn measured(mut self, value: f64) -> Self {
        self.measured = Some(value);
        self
    }

    fn corrected(mut self, value: f64) -> Self {
        self.corrected = Some(value);
        self
    }

    fn unit(mut self, unit: &'static str) -> Self {
        self.unit = unit;
        self
    }

    /// Whether the measured value agrees with the corrected one, to a relative tolerance.
    fn is_corrected(&self, relative: f64) -> bool {
        agree(self.measured, self.corrected, relative)
    }

    /// Whether the measured value disagrees with the printed one by more than a relative tolerance.
    fn refutes_printed(&self, relative: f64) -> bool {
        self.measured.is_some()
            && self.printed.is_some()
            && !agree(self.measured, self.printed, relative)
    }

    /// Measured like the corrected value and unlike the printed one, at one relative tolerance.
    fn decides(&self, relative: f64) -> bool {
        self.is_corrected(relative) && self.refutes_printed(relative)
    }
}

fn agree(a: Option<f64>, b: Option<f64>, relative: f64) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => numeric::close(a, b, relative),
        _ => false,
    }
}

/// What kind of fault it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// A formula or a statement is wrong.
    Mathematical,
    /// A claim is contradicted by the paper's own numbers.
    Contradicted,
    /// A statement admits several readings that lead to different numbers.
    Ambiguous,
    /// A misprint that the context repairs.
    Typographic,
    /// The authors' public code does something else.
    CodeDiffers,
}

impl Severity {
    /// One word for tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mathematical => "mathematical",
            Self::Contradicted => "contradicted",
            Self::Ambiguous => "ambiguous",
            Self::Typographic => "typographic",
            Self::CodeDiffers => "code differs",
        }
    }
}

/// The outcome of a check.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// The numbers, in the order to show them.
    pub quantities: Vec<Quantity>,
    /// Whether these numbers establish the erratum.
    pub holds: bool,
}

/// An error or ambiguity of a paper.
#[derive(Debug)]
pub struct Erratum {
    /// Name, unique over all papers, beginning with the paper's key.
    pub id: &'static str,
    /// `rethinking`, `trading` or `lff`.
    pub paper: &'static str,
    /// Where it stands.
    pub place: &'static str,
    /// What kind of fault it is.
    pub severity: Severity,
    /// What is printed; Markdown with `$math$`.
    pub printed: &'static str,
    /// What is right.
    pub correct: &'static str,
    /// What follows for readers and for this reproduction.
    pub consequence: &'static str,
    /// Computes the numbers; fails with a message when a published value is missing.
    pub check: fn(&Inputs<'_>) -> Result<Finding, String>,
}

/// Looks up a published value by paper, item, group, method, metric and abscissa.
pub type Published<'a> = dyn Fn(&str, &str, &str, &str, &str, Option<f64>) -> Option<f64> + 'a;

/// What checks may use besides their own arithmetic.
pub struct Inputs<'a> {
    /// Published values (`data/papers/*.csv`); abscissas may differ by a relative 1e-9.
    pub published: &'a Published<'a>,
    /// Seed of every random number; each erratum has its own stream.
    pub seed: u64,
}

impl Inputs<'_> {
    /// The published value without abscissa.
    fn value(
        &self,
        paper: &str,
        item: &str,
        group: &str,
        method: &str,
        metric: &str,
    ) -> Result<f64, String> {
        self.find(paper, item, group, method, metric, None)
    }

    /// The published value at abscissa `x`.
    fn value_at(
        &self,
        paper: &str,
        item: &str,
        group: &str,
        method: &str,
        metric: &str,
        x: f64,
    ) -> Result<f64, String> {
        self.find(paper, item, group, method, metric, Some(x))
    }

    fn find(
        &self,
        paper: &str,
        item: &str,
        group: &str,
        method: &str,
        metric: &str,
        x: Option<f64>,
    ) -> Result<f64, String> {
        (self.published)(paper, item, group, method, metric, x).ok_or_else(|| {
            let at = x.map_or(String::new(), |x| format!(" at x = {x}"));
            format!(
                "no published value for {item}, group '{group}', method '{method}', metric \
                 '{metric}'{at}; it belongs in data/papers/{paper}.csv"
            )
        })
    }

    /// The random stream of an erratum.
    fn rng(&self, id: &str) -> ChaCha8Rng {
        crate::random::stream(self.seed, id)
    }
}

/// All errata: `rethinking`, `trading`, `lff`, each in the order of the paper.
pub fn all() -> Vec<&'static Erratum> {
    rethinking::errata().chain(trading::errata()).chain(lff::errata()).collect()
}
