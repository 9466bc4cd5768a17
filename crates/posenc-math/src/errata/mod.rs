//! Errors and ambiguities of the three papers, each with a computation that establishes it.
//!
//! The texts are in `rethinking.md`, `trading.md` and `lff.md` of this folder: for each [`Erratum`] its severity and place, the
//! printed statement, the correct one, and the consequence for the reproduction. Its check is the function of the same name in the
//! module of the paper. It recomputes the disputed numbers and decides from them alone whether the erratum is confirmed
//! ([`Finding::holds`]). Checks use Monte Carlo sampling with seeded ChaCha8 streams, linear algebra, quadrature, and arithmetic on the
//! published values in [`Inputs`].

mod lff;
mod numeric;
mod rethinking;
#[cfg(test)]
mod tests;
mod trading;

use std::sync::LazyLock;

use rand_chacha::ChaCha8Rng;

use crate::Error;

/// A disputed number.
#[derive(Debug, Clone, PartialEq)]
pub struct Quantity {
    /// Name of the quantity; Markdown with `$math$`. Records use it as a key.
    pub name: String,
    /// The value that the paper prints, that its formula yields, or that follows from its printed numbers alone.
    pub printed: Option<f64>,
    /// The value computed without either formula.
    pub measured: Option<f64>,
    /// The value that the corrected statement, or another place of the paper, yields.
    pub corrected: Option<f64>,
    /// Unit; empty for pure numbers.
    pub unit: &'static str,
    /// What the erratum claims about these numbers, to a relative tolerance.
    claim: Option<Claim>,
    relative: f64,
}

/// A claim about the measured value of a quantity.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Claim {
    /// It agrees with the corrected value.
    Confirmed,
    /// It differs from the printed value.
    Refuted,
    Decided,
}

fn quantity(name: impl Into<String>) -> Quantity {
    Quantity {
        name: name.into(),
        printed: None,
        measured: None,
        corrected: None,
        unit: "",
        claim: None,
        relative: 0.0,
    }
}

impl Quantity {
    fn printed(self, value: f64) -> Self {
        Self { printed: Some(value), ..self }
    }

    fn measured(self, value: f64) -> Self {
        Self { measured: Some(value), ..self }
    }

    fn corrected(self, value: f64) -> Self {
        Self { corrected: Some(value), ..self }
    }

    fn unit(self, unit: &'static str) -> Self {
        Self { unit, ..self }
    }

    fn confirmed(self, measured: f64, corrected: f64) -> Self {
        Self { claim: Some(Claim::Confirmed), ..self.measured(measured).corrected(corrected) }
    }

    fn refuted(self, printed: f64, measured: f64) -> Self {
        Self { claim: Some(Claim::Refuted), ..self.printed(printed).measured(measured) }
    }

    fn decided(self, printed: f64, measured: f64, corrected: f64) -> Self {
        Self { claim: Some(Claim::Decided), ..self.printed(printed).confirmed(measured, corrected) }
    }

    fn tolerance(self, relative: f64) -> Self {
        Self { relative, ..self }
    }

    fn holds(&self) -> bool {
        let is = |other: Option<f64>| {
            let pair = self.measured.zip(other);
            pair.is_some_and(|(own, other)| numeric::close(own, other, self.relative))
        };
        match self.claim {
            None => true,
            Some(Claim::Confirmed) => is(self.corrected),
            Some(Claim::Refuted) => !is(self.printed),
            Some(Claim::Decided) => is(self.corrected) && !is(self.printed),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// A formula or statement is wrong.
    Mathematical,
    /// The paper's own numbers contradict a claim.
    Contradicted,
    /// A statement has several readings that lead to different numbers.
    Ambiguous,
    /// A misprint that is obvious from the context.
    Typographic,
    /// The authors' public code differs from the text.
    CodeDiffers,
}

impl Severity {
    /// All kinds, in the order of tables.
    pub const ALL: [Self; 5] = [
        Self::Mathematical,
        Self::Contradicted,
        Self::Ambiguous,
        Self::Typographic,
        Self::CodeDiffers,
    ];

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

#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// The numbers, in display order.
    pub quantities: Vec<Quantity>,
    /// Whether these numbers confirm the erratum.
    pub holds: bool,
}

impl Finding {
    /// Holds if every quantity is as claimed, and `also`.
    fn new(quantities: impl Into<Vec<Quantity>>, also: bool) -> Result<Self, Error> {
        let quantities = quantities.into();
        let holds = also && quantities.iter().all(Quantity::holds);
        Ok(Self { quantities, holds })
    }

    /// Holds if every quantity is as claimed.
    fn of(quantities: impl Into<Vec<Quantity>>) -> Result<Self, Error> {
        Self::new(quantities, true)
    }
}

/// Computes the numbers; returns an error if a published value is missing.
pub type Check = fn(&Inputs<'_>) -> Result<Finding, Error>;

/// An error or ambiguity in a paper.
#[derive(Debug)]
pub struct Erratum {
    /// Identifier, unique across all papers; it begins with the paper's key.
    pub id: &'static str,
    /// Its location in the paper.
    pub place: &'static str,
    pub severity: Severity,
    /// The printed statement; Markdown with `$math$`.
    pub printed: &'static str,
    pub correct: &'static str,
    /// The consequence for readers and for this reproduction.
    pub consequence: &'static str,
    pub check: Check,
}

impl Erratum {
    /// `rethinking`, `trading` or `lff`.
    pub fn paper(&self) -> &'static str {
        self.id.split('-').next().unwrap_or(self.id)
    }

    /// Parses the section of a text file, from its id to the next heading. `None` if a paragraph or the check is missing, which a test
    /// excludes.
    fn parse(section: &'static str, checks: &[(&str, Check)]) -> Option<Self> {
        // Lines of a paragraph are joined. Texts are parsed once and live as long as the process.
        let mut paragraphs = section.trim().split("\n\n").map(|p| &*p.replace('\n', " ").leak());
        let id = paragraphs.next()?;
        let mut labeled = || paragraphs.next()?.strip_prefix("**")?.split_once(".** ");
        let (severity, place) = labeled()?;
        let mut text = |label| labeled().filter(|(own, _)| *own == label).map(|(_, text)| text);
        let name = id.split_once('-')?.1.replace('-', "_");
        Some(Self {
            id,
            place,
            severity: Severity::ALL.into_iter().find(|s| severity.to_lowercase() == s.name())?,
            printed: text("Printed")?,
            correct: text("Correct")?,
            consequence: text("Consequence")?,
            check: checks.iter().find(|(own, _)| *own == name)?.1,
        })
    }
}

/// The text file of each paper, and its checks by name.
const PAPERS: [(&str, &[(&str, Check)]); 3] = [
    (include_str!("rethinking.md"), rethinking::CHECKS),
    (include_str!("trading.md"), trading::CHECKS),
    (include_str!("lff.md"), lff::CHECKS),
];

/// Lists checks with their names.
macro_rules! checks {
    ($($check:ident)*) => {
        pub(super) const CHECKS: &[(&str, super::Check)] = &[$((stringify!($check), $check)),*];
    };
}
use checks;

/// All errata: `rethinking`, `trading`, `lff`, each in the order of the paper.
pub fn all() -> Vec<&'static Erratum> {
    static ALL: LazyLock<Vec<Erratum>> = LazyLock::new(|| {
        let of = |(text, checks): (&'static str, &'static [(&str, Check)])| {
            text.split("\n## ").skip(1).filter_map(|section| Erratum::parse(section, checks))
        };
        PAPERS.into_iter().flat_map(of).collect()
    });
    ALL.iter().collect()
}

/// Looks up a published value by paper, item, group, method, metric and abscissa.
pub type Published<'a> = dyn Fn(&str, &str, &str, &str, &str, Option<f64>) -> Option<f64> + 'a;

/// Published values that only errata use: paper, item, group, method and metric, with `|` between alternatives.
const QUOTED: &[[&str; 5]] = &[
    ["rethinking", "sec4-1", "constant", "Gaussian and RFF", "sigma_product_printed"],
    ["rethinking", "sec5-2", "constant", "all|Impulse|Square/Sine", "lr"],
    ["rethinking", "sec5-3", "constant", "Gaussian|basic", "lr"],
    ["rethinking", "fig7", "n=256", "Gaussian", "small_marker_sigma"],
    ["rethinking", "sec5-1", "constant", "RFF|Gaussian", "sigma"],
    ["rethinking", "sec5-2|sec5-5", "constant", "Gaussian", "k"],
    ["trading", "table1", "complex-gd", "LinF|RFF", "encoder_param"],
    ["trading", "table1", "closed-form", "LinF|LogF|RFF", "encoder_param"],
    ["trading", "table1|table2", "complex-gd", "all", "dim"],
    ["trading", "table3", "simple", "all", "dim|width"],
    ["trading", "table4", "claim", "complex vs simple", "speedup"],
    ["lff", "table1", "setup", "Fourier-based", "gamma"],
    ["lff", "table1", "setup", "Fourier-based-2/2", "feature_width"],
    ["lff", "table2", "counts", "all", "seen_widgets|unseen_widgets"],
    ["lff", "fig3", "sec4-1", "Learnable-Fourier + MLP", "feature_width"],
    ["lff", "fig3", "setup", "Learnable-Fourier + MLP", "encoding_width|gamma"],
    ["lff", "fig3", "setup", "all", "cores|images_per_core|sequence_length"],
    ["lff", "fig3", "setup", "all", "training_steps|training_time"],
    ["lff", "fig4", "caption|appendix-b", "DETR", "training_steps"],
    ["lff", "fig4", "setup", "DETR", "batch"],
    ["lff", "fig8", "setup", "Learnable-Fourier+MLP-2/2", "gamma"],
    ["lff", "fig9", "setup", "Learnable-Fourier+MLP-2/2 + KL", "gamma"],
];

/// Whether a published value, by paper, item, group, method and metric, is one that only errata use.
pub fn quotes(key: [&str; 5]) -> bool {
    let is_of = |quoted: &[&str; 5]| {
        quoted.iter().zip(key).all(|(names, name)| names.split('|').any(|own| own == name))
    };
    QUOTED.iter().any(is_of)
}

/// External inputs of the checks.
pub struct Inputs<'a> {
    /// Published values (`data/papers/*.csv`); abscissas match to a relative tolerance of 1e-9.
    pub published: &'a Published<'a>,
    /// Seed of all random numbers; each erratum has its own stream.
    pub seed: u64,
}

impl Inputs<'_> {
    /// The published value without abscissa: paper, item, group, method, metric.
    fn value(&self, p: &str, item: &str, group: &str, m: &str, metric: &str) -> Result<f64, Error> {
        self.find([p, item, group, m, metric], None)
    }

    /// The published value at abscissa `x`.
    fn find(
        &self,
        [paper, item, group, method, metric]: [&str; 5],
        x: Option<f64>,
    ) -> Result<f64, Error> {
        (self.published)(paper, item, group, method, metric, x).ok_or_else(|| {
            let at = x.map_or(String::new(), |x| format!(" at x = {x}"));
            Error(format!(
                "no published value for {item}, group '{group}', method '{method}', metric \
                 '{metric}'{at}; add it to data/papers/{paper}.csv"
            ))
        })
    }

    fn rng(&self, id: &str) -> ChaCha8Rng {
        crate::random::stream(self.seed, id)
    }
}
