//! Limits on what an experiment file may request. Without them, a typo or an untrusted file could exhaust memory, or keep the loader
//! busy for days. The code that runs a unit checks the memory and time of the unit itself.

use std::collections::BTreeMap;

use super::protocol::{Fault, Kinds, Protocol};
use crate::profile::Profile;

/// Longest list of numbers: a range with a typo in its step must not fill the memory. The papers' longest has 201.
pub const MAX_LIST: usize = 10_000;

/// Most variants of a file: twenty times the largest of the papers' experiments. Each is resolved for four profiles.
pub const MAX_VARIANTS: usize = 1000;

/// Most jobs (variants × seeds) of a file at a profile; each has a key of a kilobyte.
pub const MAX_JOBS: usize = 100_000;

/// Most bytes of all resolved settings of a file, as text: settings of a group are repeated for each variant and profile.
pub const MAX_SETTINGS: usize = 1 << 24;

/// Most values of all sweeps of a file, over variants and profiles. Each value is an embedder to validate, which takes up to a
/// millisecond for a formula.
pub const MAX_SWEPT: usize = 20_000;

/// What a file has requested so far.
pub(super) struct SizeBudget {
    pub kinds: Kinds,
    jobs: BTreeMap<Profile, usize>,
    settings: usize,
    swept: usize,
}

impl SizeBudget {
    pub(super) fn new(kinds: Kinds) -> Self {
        SizeBudget { kinds, jobs: BTreeMap::new(), settings: 0, swept: 0 }
    }

    /// Counts a variant at a profile, before expensive checks.
    pub(super) fn add(
        &mut self,
        profile: Profile,
        seeds: usize,
        protocol: &Protocol,
    ) -> Result<(), Fault> {
        let jobs = self.jobs.entry(profile).or_default();
        *jobs = jobs.saturating_add(seeds);
        self.settings = self.settings.saturating_add(protocol.canonical().len());
        self.swept = self.swept.saturating_add(protocol.settings().swept());
        let (settings, swept) = (self.settings, self.swept);
        for (key, what, asked, most) in [
            ("seeds", "variants × seeds", *jobs, MAX_JOBS),
            (
                "variants",
                "bytes of settings over all variants and profiles",
                settings,
                MAX_SETTINGS,
            ),
            ("variants", "sweep values over all variants and profiles", swept, MAX_SWEPT),
        ] {
            if asked > most {
                let message =
                    format!("the file has at least {asked} {what}; allowed: up to {most}");
                return Err((key, message));
            }
        }
        Ok(())
    }
}
