//! The interface between the harness and protocols: [`Protocol`], implemented once per kind in `posenc-protocols`.

use std::any::Any;

use anyhow::{Context as _, Result};
use posenc_data::Format;
use posenc_experiments::plan::Job;
use posenc_experiments::record::{Picture, Value};
use posenc_experiments::schema;
use posenc_experiments::schema::protocol::Settings;
use posenc_math::embedder::{self, Embedder, EmbedderSpec, ParameterValue};
use posenc_math::random::stream;
use posenc_nets::Engine;
use rand_chacha::ChaCha8Rng;

use crate::checkpoint::Checkpoint;
use crate::data::DataSets;
use crate::device::{CPU, Devices};
use crate::unit::Unit;

/// A protocol that can run: its settings with their implementation.
pub trait Protocol: Settings {
    /// Format of the files that `data.set` must have; `None` if the protocol reads images, clips or nothing.
    fn reads(&self) -> Option<Format> {
        None
    }

    /// Format that `data.weights` must have.
    fn weights(&self) -> Format {
        Format::Weights
    }

    fn placement(&self) -> Placement {
        Placement::Cpu
    }

    /// Runs all units of a job.
    ///
    /// # Errors
    ///
    /// A unit fails. Units that were emitted before keep their records.
    fn run(&self, context: &Context<'_>, emit: &mut Emit<'_>) -> Result<()>;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    Cpu,
    /// On the CPU in this build, and on any device in a build with more features.
    CpuInThisBuild,
    /// On the device of the run.
    Device,
}

impl Placement {
    /// Device class of units with this placement if the run uses `class`.
    pub fn class(self, class: &'static str) -> &'static str {
        if self == Placement::Device { class } else { CPU }
    }
}

/// How the harness reaches the implementation behind [`schema::protocol::Kind::runner`].
#[derive(Clone, Copy)]
pub struct Runner(fn(&dyn Settings) -> Option<&dyn Protocol>);

impl Runner {
    pub const fn of<T: Protocol>() -> Self {
        Runner(|settings| settings.downcast_ref::<T>().map(|own| own as &dyn Protocol))
    }
}

pub fn of(protocol: &schema::Protocol) -> Result<&dyn Protocol> {
    let runner = protocol.kind().runner.and_then(|runner| (runner as &dyn Any).downcast_ref());
    runner
        .and_then(|Runner(view)| view(protocol.settings()))
        .with_context(|| format!("this build of posenc cannot run protocol `{}`", protocol.name()))
}

/// Where a protocol trains; on the CPU if this build cannot run it.
pub fn placement(protocol: &schema::Protocol) -> Placement {
    of(protocol).map_or(Placement::Cpu, |own| own.placement())
}

/// Whether this build can run a protocol.
pub fn is_built(protocol: &schema::Protocol) -> bool {
    of(protocol).is_ok()
}

pub struct Context<'a> {
    pub job: &'a Job<'a>,
    /// Its units that must run.
    pub units: &'a [Unit],
    pub data: &'a DataSets,
    pub devices: &'a Devices,
    pub seed: u64,
    pub checkpoint: &'a Checkpoint,
    /// Prints a note about the job.
    pub note: &'a dyn Fn(&str),
}

#[derive(Debug, Default)]
pub struct UnitResult {
    pub values: Vec<Value>,
    /// Pictures that the report shows next to the numbers.
    pub pictures: Vec<Picture>,
    /// Remarks for readers of the record.
    pub remarks: Vec<String>,
    /// Seconds that earlier, killed runs spent on the unit.
    pub earlier: f64,
}

impl From<Vec<Value>> for UnitResult {
    fn from(values: Vec<Value>) -> Self {
        UnitResult { values, ..UnitResult::default() }
    }
}

/// Stores the result of the unit with this index. The result is on disk when the call returns.
pub type Emit<'a> = dyn FnMut(usize, UnitResult) -> Result<()> + 'a;

impl Context<'_> {
    /// Class of the device that the units run on.
    pub fn device_class(&self) -> &str {
        self.units.first().map_or(CPU, |unit| &unit.parts.device)
    }

    /// The engine that trains the units of this job.
    pub fn engine(&self) -> &dyn Engine {
        self.devices.engine(self.device_class())
    }

    /// The random stream for a purpose.
    pub fn stream(&self, purpose: &str) -> ChaCha8Rng {
        stream(self.seed, &self.job.stream_label(purpose))
    }

    /// The variant's embedder, with its own stream.
    pub fn embedder(&self) -> Result<Box<dyn Embedder>> {
        self.embedder_from("embedder", None)
    }

    /// The variant's embedder, sampled from the stream for `purpose`, with at most one changed parameter. All points of a sweep use the
    /// same stream, so only the parameter differs.
    pub fn embedder_from(
        &self,
        purpose: &str,
        changed: Option<(&str, f64)>,
    ) -> Result<Box<dyn Embedder>> {
        let mut spec = self.spec()?.clone();
        if let Some((parameter, value)) = changed {
            spec.parameters.insert(parameter.to_owned(), ParameterValue::Number(value));
        }
        Ok(embedder::build(&spec, &mut self.stream(purpose))?)
    }

    /// An embedder with another specification, sampled from the stream of the variant's embedder.
    pub fn embedder_of(&self, spec: &EmbedderSpec) -> Result<Box<dyn Embedder>> {
        Ok(embedder::build(spec, &mut self.stream("embedder"))?)
    }

    /// The variant's embedder as the experiment file defines it.
    pub fn spec(&self) -> Result<&EmbedderSpec> {
        self.job.variant.embedder.as_ref().context("this protocol needs an embedder")
    }
}
