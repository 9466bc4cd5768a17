//! How much of the published protocol a run does.

use std::str::FromStr;

use schemars::JsonSchema;
use serde::Deserialize;

/// How much of the published protocol a run does, ordered from smallest to largest.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Deserialize,
    serde::Serialize,
    JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// Everything within a minute, for tests.
    Smoke,
    /// The default.
    Quick,
    /// About an hour, for groups that define it.
    Long,
    Paper,
}

impl Profile {
    /// All profiles, smallest first.
    pub const ALL: [Profile; 4] = [Profile::Smoke, Profile::Quick, Profile::Long, Profile::Paper];

    /// The name in files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Profile::Smoke => "smoke",
            Profile::Quick => "quick",
            Profile::Long => "long",
            Profile::Paper => "paper",
        }
    }
}

impl FromStr for Profile {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let allowed = || format!("allowed: {}", Profile::ALL.map(Profile::name).join(", "));
        Profile::ALL.into_iter().find(|p| p.name() == name).ok_or_else(allowed)
    }
}

impl std::fmt::Display for Profile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
