//! Plans: an experiment expanded to units, each with the parts of its key.
//!
//! A unit is one variant × signal × seed. Units that share an embedding (same variant and seed)
//! form a [`Job`] and run together.

use posenc_math::embedder::EmbedderSpec;

use crate::record::KeyParts;
use crate::schema::{Experiment, Group, Profile, Protocol, Resolved, Variant};
use crate::selector::Selectors;

pub use crate::record::NO_SIGNAL;

/// Units that share an embedding.
#[derive(Debug, Clone)]
pub struct Job<'a> {
    pub experiment: &'a Experiment,
    pub group: &'a Group,
    pub variant: &'a Variant,
    /// Index of the variant in the group.
    pub variant_index: usize,
    pub resolved: &'a Resolved,
    /// Profile that runs: the requested one, or `quick` if the group does not define it.
    pub profile: Profile,
    /// Largest profile with the same protocol, under which the unit is recorded.
    pub recorded_profile: Profile,
    /// Repetition, from 0.
    pub seed_index: u64,
}

impl Job<'_> {
    /// `paper/item/group/method`.
    pub fn path(&self) -> String {
        format!("{}/{}/{}", self.experiment.id(), self.group.id, self.variant.id)
    }

    /// Label of the job's random stream for a purpose. It is independent of settings and data, so that all values of a sweep within a
    /// variant, and a variant whose settings changed, sample the same numbers. Other variants sample different ones.
    pub fn stream_label(&self, purpose: &str) -> String {
        format!("{} seed {} {purpose}", self.path(), self.seed_index)
    }

    /// The parts of the key of one unit of this job.
    pub fn key_parts(
        &self,
        signal: &str,
        data_sha256: &str,
        device: &str,
        seed: u64,
        revisions: &str,
    ) -> KeyParts {
        let embedder = self.variant.embedder.as_ref();
        let embedder = embedder.map_or_else(|| "-".to_owned(), EmbedderSpec::canonical);
        let (group, method) = (&self.group.id, &self.variant.id);
        KeyParts {
            identity: format!("{group}.{method}.{signal}.seed={}", self.seed_index),
            specification: format!("{} | {embedder}", self.resolved.protocol.canonical()),
            data: data_sha256.to_owned(),
            device: device.to_owned(),
            seed,
            revisions: revisions.to_owned(),
        }
    }

    pub fn protocol(&self) -> &Protocol {
        &self.resolved.protocol
    }
}

/// All jobs at a profile that the selectors match, in the order of the files.
pub fn jobs<'a>(
    experiments: impl Iterator<Item = &'a Experiment>,
    selectors: &Selectors,
    profile: Profile,
) -> Vec<Job<'a>> {
    let mut jobs = Vec::new();
    for experiment in experiments {
        for group in &experiment.groups {
            if group.refused(profile).is_some() {
                continue;
            }
            for (variant_index, variant) in group.variants.iter().enumerate() {
                if !selectors.matches(&experiment.paper, &experiment.item, &group.id, &variant.id) {
                    continue;
                }
                // A group that does not define `long` runs `quick`, so that `long` is never as expensive as `paper`.
                let own = if group.runs_at(profile) { profile } else { Profile::Quick };
                let Some(resolved) = group.resolved(own, variant_index) else { continue };
                let recorded_profile = group.equivalent_profile(own, variant_index);
                let first = group.first_seed;
                for seed_index in first..first + resolved.seeds as u64 {
                    jobs.push(Job {
                        experiment,
                        group,
                        variant,
                        variant_index,
                        resolved,
                        profile: own,
                        recorded_profile,
                        seed_index,
                    });
                }
            }
        }
    }
    jobs
}
