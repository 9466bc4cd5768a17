//! Protocols as the reader of experiment files sees them: a [`Kind`] and its typed settings.
//!
//! Protocols are defined in `posenc-protocols`, one folder each. This crate sees them through [`Kinds`], the list that a
//! program passes in.

use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

use posenc_math::embedder::EmbedderSpec;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_yaml::{Mapping, Value};

use super::data::Data;
use crate::yaml::{FileError, YamlPath, hint};

/// Revision of the embedders and of the random streams they sample from. It is part of the cache key of every unit.
const EMBEDDER_REVISION: u32 = 1;

/// A setting that is not allowed: its key, and what is wrong with it.
pub type Fault = (&'static str, String);

pub trait Settings: Any + Debug + Send + Sync {
    /// Checks ranges that the types cannot express.
    ///
    /// # Errors
    ///
    /// The key of the setting and a message with the allowed values.
    fn check(&self) -> Result<(), Fault> {
        Ok(())
    }

    /// Like [`Settings::check`], for the requirements on a variant's embedder.
    fn check_embedder(&self, _: &EmbedderSpec) -> Result<(), Fault> {
        Ok(())
    }

    /// Like [`Settings::check`], for the requirements on the group's data. Keys are relative to the group.
    fn check_data(&self, _: Option<&Data>) -> Result<(), Fault> {
        Ok(())
    }

    /// Number of values in the sweep. Each value has its own embedder.
    fn swept(&self) -> usize {
        0
    }

    /// Number of samples of a variant's random features behind rows of this number of seeds.
    fn random_samples(&self, seeds: usize) -> usize {
        seeds
    }

    /// Size of the test set over that of the training set, if each seed is another random split of the same data; else 0. Such splits
    /// overlap, so that their results vary less than those on other data would.
    fn overlap(&self) -> f64 {
        0.0
    }

    /// Whether another start of the same training ends elsewhere at abscissa `x` (`None`: at any), as a network with hidden layers does.
    /// A linear layer does not: its loss has one minimum.
    fn depends_on_start(&self, _x: Option<f64>) -> bool {
        false
    }

    /// Whether `other` builds a model of the same size, regardless of training data and length. With `None`, models are the same
    /// only if all settings are equal.
    fn has_model_of(&self, _other: &dyn Settings) -> Option<bool> {
        None
    }
}

impl dyn Settings {
    /// These settings as their own type; `None` if they are of another protocol.
    pub fn downcast_ref<T: Settings>(&self) -> Option<&T> {
        (self as &dyn Any).downcast_ref()
    }
}

/// Deserializes the settings of a kind at the given place, and also returns them as JSON.
pub type Parse = fn(&YamlPath<'_>, Value) -> Result<(Arc<dyn Settings>, String), FileError>;

/// How to classify the results of a protocol if a group has no data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WithoutData {
    /// Computed from a definition.
    Theory,
    /// Measured on data that the paper defines, such as noise.
    Defined,
    /// Measured on data that we generate instead of the paper's.
    Generated,
}

/// A kind of protocol, with the properties that all its settings share.
#[derive(Clone, Copy)]
pub struct Kind {
    /// Name under `protocol.kind`.
    pub name: &'static str,
    /// Revision of the implementation, raised when a code change affects results. It is part of the cache key, so that exactly
    /// the units of this protocol run again.
    pub revision: u32,
    pub needs_embedder: bool,
    /// Whether a parameter of the embedder may be `auto`.
    pub takes_auto: bool,
    /// Whether the units of a job are computed together and finish at the same time.
    pub emits_as_batch: bool,
    /// Setting with the number of runs, for protocols that use it instead of `seeds`.
    pub repeats_key: Option<&'static str>,
    /// Whether the group may name `data.weights`.
    pub takes_weights: bool,
    /// Whether the group may name `data.held_out`.
    pub takes_held_out: bool,
    /// Whether results depend on the published values of the paper.
    pub reads_published: bool,
    /// How to classify its results if a group has no data.
    pub without_data: WithoutData,
    /// Whether signals are samples, such as lines, images and clips, so that each is an independent repetition. Otherwise they are
    /// parts of one result, such as kinds of widgets.
    pub signals_are_samples: bool,
    /// A commented YAML mapping with every key.
    pub example: &'static str,
    /// Text of the source file whose documentation names every metric in backticks; if empty, any metric is accepted.
    pub docs: &'static str,
    /// How units run; `None` for attention models in a build without them.
    pub runner: Option<&'static (dyn Any + Send + Sync)>,
    pub parse: Parse,
    pub schema: fn(&mut SchemaGenerator) -> Schema,
}

impl Kind {
    /// A kind with settings of type `T`, revision 1 and no special needs. Used as `..Kind::of::<T>(…)` in a struct literal.
    pub const fn of<T: Settings + Serialize + DeserializeOwned + JsonSchema>(
        name: &'static str,
    ) -> Self {
        Kind {
            name,
            revision: 1,
            needs_embedder: false,
            takes_auto: false,
            emits_as_batch: false,
            repeats_key: None,
            takes_weights: false,
            takes_held_out: false,
            reads_published: false,
            without_data: WithoutData::Generated,
            signals_are_samples: false,
            example: "",
            docs: "",
            runner: None,
            parse: parse::<T>,
            schema: T::json_schema,
        }
    }

    /// The documentation, as Markdown.
    pub fn description(&self) -> String {
        let lines = self.docs.lines().map_while(|line| line.strip_prefix("//!"));
        lines.map(|line| format!("{}\n", line.strip_prefix(' ').unwrap_or(line))).collect()
    }

    /// Names in the documentation, among them those of all metrics.
    pub fn documented(&self) -> impl Iterator<Item = &'static str> {
        let lines = self.docs.lines().take_while(|line| line.starts_with("//!"));
        lines.flat_map(|line| line.split('`').skip(1).step_by(2))
    }

    /// Whether the documentation names a metric or its parts: `_x` and `x_` are a suffix and a prefix of other names, and capitals, as in
    /// `x_SUFFIX` and `x_N`, stand for other names and for numbers.
    pub fn records(&self, metric: &str) -> bool {
        let is_name = |text: &str| self.documented().any(|name| name == text);
        let is_made_with = |name: &str| {
            let start = name.trim_end_matches(|c: char| c.is_ascii_uppercase());
            let rest = metric.strip_prefix(start).filter(|_| start.ends_with('_'));
            let begins = rest.is_some_and(|rest| is_name(rest) || rest.parse::<u64>().is_ok());
            let ends = || metric.strip_suffix(name).is_some_and(is_name);
            begins || (name.starts_with('_') && ends())
        };
        self.docs.is_empty() || is_name(metric) || self.documented().any(is_made_with)
    }
}

impl Debug for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

fn parse<T: Settings + Serialize + DeserializeOwned>(
    place: &YamlPath<'_>,
    settings: Value,
) -> Result<(Arc<dyn Settings>, String), FileError> {
    let settings: T = place.typed(settings)?;
    let json = serde_json::to_string(&settings).unwrap_or_default();
    Ok((Arc::new(settings), json))
}

/// All kinds that a program knows.
#[derive(Clone, Copy, Debug, Default)]
pub struct Kinds {
    pub all: &'static [&'static Kind],
    /// Earlier names, and what to write instead.
    pub renamed: &'static [(&'static str, &'static str)],
}

impl Kinds {
    pub fn names(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.all.iter().map(|kind| kind.name)
    }

    pub fn get(&self, name: &str) -> Option<&'static Kind> {
        self.all.iter().copied().find(|kind| kind.name == name)
    }

    /// Deserializes `mapping`, which is at `place`, to the protocol of its `kind`.
    pub fn protocol(
        &self,
        place: &YamlPath<'_>,
        mut mapping: Mapping,
    ) -> Result<Protocol, FileError> {
        let allowed = || self.names().collect::<Vec<_>>().join(", ");
        let name = match mapping.remove("kind") {
            Some(Value::String(name)) => name,
            Some(_) => {
                return Err(place.error("kind", format!("not a name; allowed: {}", allowed())));
            }
            None => {
                return Err(place.error("", format!("`kind` is missing; allowed: {}", allowed())));
            }
        };
        if let Some((_, now)) = self.renamed.iter().find(|(old, _)| *old == name) {
            return Err(place.error("kind", format!("unknown protocol `{name}`; it is now {now}")));
        }
        let Some(kind) = self.get(&name) else {
            let hint = hint(&name, self.names());
            let message = format!("unknown protocol `{name}`; allowed: {}{hint}", allowed());
            return Err(place.error("kind", message));
        };
        let (settings, json) = (kind.parse)(place, Value::Mapping(mapping))?;
        settings.check().map_err(|(key, message)| place.error(key, message))?;
        Ok(Protocol { kind, settings, json: json.into() })
    }
}

/// The protocol of a group: a kind with its settings.
#[derive(Debug, Clone)]
pub struct Protocol {
    kind: &'static Kind,
    settings: Arc<dyn Settings>,
    /// The settings as JSON: the identity of the protocol.
    json: Arc<str>,
}

impl PartialEq for Protocol {
    fn eq(&self, other: &Self) -> bool {
        (self.kind.name, &self.json) == (other.kind.name, &other.json)
    }
}

impl Protocol {
    pub fn kind(&self) -> &'static Kind {
        self.kind
    }

    /// The name under `protocol.kind`.
    pub fn name(&self) -> &'static str {
        self.kind.name
    }

    pub fn settings(&self) -> &dyn Settings {
        &*self.settings
    }

    /// Canonical text of kind and settings. Protocols with equal texts do the same.
    pub fn canonical(&self) -> String {
        format!("{} {}", self.name(), self.json)
    }

    /// The settings as JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.json).unwrap_or_default()
    }

    /// Revisions of the code that the results depend on, as they enter cache keys.
    pub fn revision(&self) -> String {
        format!("embedders {EMBEDDER_REVISION}, {} {}", self.name(), self.kind.revision)
    }

    /// Number of samples of a variant's random features behind rows of this number of seeds.
    pub fn random_samples(&self, seeds: usize) -> usize {
        self.settings.random_samples(seeds)
    }

    /// Whether another start of the same training ends elsewhere at abscissa `x`, or at any.
    pub fn depends_on_start(&self, x: Option<f64>) -> bool {
        self.settings.depends_on_start(x)
    }

    /// Whether both build a model of the same size, regardless of training data and length.
    pub fn has_model_of(&self, other: &Protocol) -> bool {
        self.settings.has_model_of(other.settings()).unwrap_or_else(|| self == other)
    }
}

#[cfg(test)]
pub(crate) mod testing {
    //! Kinds for tests of this crate: any settings are allowed.

    use std::collections::BTreeMap;
    use std::path::Path;

    use serde::Deserialize;

    use super::*;
    use crate::schema::Experiment;
    use crate::yaml::Document;

    /// Settings that are not part of a model, except for `width`.
    #[derive(Debug, Deserialize, Serialize, JsonSchema)]
    struct AnySettings(
        #[schemars(with = "BTreeMap<String, serde_json::Value>")] BTreeMap<String, Value>,
    );

    impl Settings for AnySettings {
        fn overlap(&self) -> f64 {
            self.0.get("overlap").and_then(Value::as_f64).unwrap_or(0.0)
        }

        fn has_model_of(&self, other: &dyn Settings) -> Option<bool> {
            Some(self.0.get("width") == other.downcast_ref::<Self>()?.0.get("width"))
        }
    }

    const fn kind(name: &'static str) -> Kind {
        Kind { needs_embedder: true, ..Kind::of::<AnySettings>(name) }
    }

    /// Two kinds: one that computes theory, and one that trains on samples.
    pub const KINDS: Kinds = Kinds {
        renamed: &[],
        all: &[
            &Kind { without_data: WithoutData::Theory, ..kind("stable-rank") },
            &Kind {
                without_data: WithoutData::Defined,
                signals_are_samples: true,
                ..kind("network-nd")
            },
        ],
    };

    /// Parses an experiment.
    pub fn experiment(text: &str) -> Experiment {
        let document = Document::parse(Path::new("a.yaml"), text).unwrap();
        Experiment::from_document(&document, KINDS).map_err(|e| e.to_string()).unwrap()
    }

    /// An experiment with these claims and one group `run`, which has the methods A and B and the keys in `group`.
    pub fn demo(group: &str, claims: &str) -> Experiment {
        let variant = |id: &str| format!("{{ id: {id}, embedder: {{ kind: identity }} }}");
        experiment(&format!(
            "paper: demo\nitem: fig1\nkind: figure\ntitle: T\nshows: S\n\
             groups: [{{ id: run, variants: [{}, {}], {group} }}]\nclaims: [{claims}]\n",
            variant("A"),
            variant("B")
        ))
    }

    /// Selections of the metric `psnr` of the two methods of [`demo`].
    pub const A: &str = "{ group: run, method: A, metric: psnr }";
    pub const B: &str = "{ group: run, method: B, metric: psnr }";
}
