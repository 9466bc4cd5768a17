//! Claims: what a paper says, as something that can be judged.

use serde::Deserialize;
use serde_yaml::Mapping;

use super::experiment::Group;
use crate::yaml::{Document, FileError};

mod check;
mod select;

pub use check::{
    AgreementCheck, BoundCheck, Check, Direction, EqualityCheck, Expected, Feature, First, KINDS,
    Limit, OrderingCheck, PositionCheck, PublishedWord, RatioCheck, Tolerance, TrendCheck,
    ValueCheck,
};
pub use select::{Abscissa, Interval, Select, Source, Statistic};

/// One statement of a paper and the check that decides it.
#[derive(Debug, Clone)]
pub struct Claim {
    /// Unique inside the experiment.
    pub id: String,
    /// The statement, in our words.
    pub says: String,
    /// Where the paper says it.
    pub source: String,
    /// What decides it.
    pub check: Check,
    /// Set where the statement is wrong as printed.
    pub erratum: Option<ErratumLink>,
}

/// The corrected statement behind a wrong one.
#[derive(Debug, Clone)]
pub struct ErratumLink {
    /// Id on the errata page.
    pub id: String,
    /// The corrected statement, in words.
    pub corrected: String,
    /// What decides the corrected statement.
    pub check: Check,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WireClaim {
    pub id: String,
    says: String,
    source: String,
    check: Mapping,
    erratum: Option<WireErratum>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WireErratum {
    id: String,
    corrected: String,
    check: Mapping,
}

impl WireClaim {
    pub(super) fn checked(
        self,
        document: &Document,
        path: &str,
        groups: &[Group],
    ) -> Result<Claim, FileError> {
        let check = Check::from_mapping(document, &format!("{path}.check"), self.check, groups)?;
        let erratum = self
            .erratum
            .map(|e| {
                let path = format!("{path}.erratum");
                if !posenc_math::errata::all().iter().any(|known| known.id == e.id) {
                    return Err(document.error(
                        &format!("{path}.id"),
                        format!("no erratum `{}` in posenc_math::errata", e.id),
                    ));
                }
                Ok(ErratumLink {
                    check: Check::from_mapping(
                        document,
                        &format!("{path}.check"),
                        e.check,
                        groups,
                    )?,
                    id: e.id,
                    corrected: e.corrected,
                })
            })
            .transpose()?;
        Ok(Claim { id: self.id, says: self.says, source: self.source, check, erratum })
    }
}
