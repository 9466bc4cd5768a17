//! Where training runs: the CPU engine, or the device engine on an adapter.

use std::str::FromStr;
use std::sync::{Arc, LazyLock};

use anyhow::Result;
use posenc_nets::{CpuEngine, Engine};

/// Device class, in cache keys, of units that the CPU computes.
pub const CPU: &str = "cpu";
pub const GPU: &str = "wgpu";
/// A software adapter: a GPU that is emulated on the CPU. It is never treated as a GPU.
pub const SOFTWARE: &str = "wgpu-software";
/// All classes. If several have equally good records, the first is shown.
pub const CLASSES: [&str; 3] = [CPU, GPU, SOFTWARE];

/// The class of the device that a row of a record names.
pub fn class_of(label: &str) -> &'static str {
    match label {
        CPU => CPU,
        label if label.starts_with("software adapter") => SOFTWARE,
        _ => GPU,
    }
}

/// Value of `--device`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// A real GPU if there is one, else the CPU.
    Auto,
    Cpu,
    Gpu,
    /// The adapter whose name contains this text. Only this request selects a software adapter.
    Named(String),
}

impl std::fmt::Display for Request {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Request::Auto => f.write_str("auto"),
            Request::Cpu => f.write_str("cpu"),
            Request::Gpu => f.write_str("wgpu"),
            Request::Named(name) => write!(f, "wgpu:{name}"),
        }
    }
}

impl FromStr for Request {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            None if text == "auto" => Ok(Request::Auto),
            None if text == "cpu" => Ok(Request::Cpu),
            None if text == "wgpu" => Ok(Request::Gpu),
            Some(("wgpu", name)) if !name.trim().is_empty() => {
                Ok(Request::Named(name.trim().to_owned()))
            }
            _ => Err(
                "allowed are auto (a GPU if there is one, else the CPU), cpu, wgpu (a GPU), and \
                 wgpu:NAME (the adapter whose name contains NAME; `doctor` lists them). The environment variable \
                 POSENC_DEVICE sets the default"
                    .to_owned(),
            ),
        }
    }
}

pub struct Devices {
    /// Engine that trains instead of the CPU, with its class and its label.
    other: Option<(Arc<dyn Engine>, &'static str, String)>,
    #[cfg(feature = "wgpu")]
    adapter: Option<posenc_nets::device::AdapterDescription>,
    /// Limits of the adapter in words.
    limits: String,
    /// Class that trains if `other` is `None`: the CPU, or a device of another machine.
    elsewhere: &'static str,
}

impl Devices {
    pub fn cpu() -> Self {
        Devices::of_class(CPU)
    }

    /// Devices of a class, without opening an adapter. Classes other than the CPU serve plans and records of other machines; they cannot
    /// train.
    pub fn of_class(class: &'static str) -> Self {
        Devices {
            other: None,
            #[cfg(feature = "wgpu")]
            adapter: None,
            limits: String::new(),
            elsewhere: class,
        }
    }

    pub fn open(request: &Request) -> Result<Self> {
        match request {
            Request::Cpu => Ok(Devices::cpu()),
            Request::Auto => Ok(open_or_cpu()),
            Request::Gpu => open(None),
            Request::Named(name) => open(Some(name)),
        }
    }

    /// The engine of a class. The CPU engine has one thread, because several jobs run at a time.
    pub fn engine(&self, class: &str) -> &dyn Engine {
        static ONE_THREAD: LazyLock<CpuEngine> = LazyLock::new(|| CpuEngine::new(1));
        match &self.other {
            Some((engine, own, _)) if *own == class => &**engine,
            _ => &*ONE_THREAD,
        }
    }

    #[cfg(feature = "wgpu")]
    pub fn adapter(&self, class: &str) -> Option<&posenc_nets::device::AdapterDescription> {
        self.adapter.as_ref().filter(|_| class != CPU)
    }

    /// The engine that trains, if it is not the CPU's.
    pub fn device_engine(&self) -> Option<Arc<dyn Engine>> {
        self.other.as_ref().map(|(engine, ..)| engine.clone())
    }

    /// A class in words, for records.
    pub fn label(&self, class: &str) -> &str {
        match &self.other {
            Some((_, own, label)) if *own == class => label,
            _ => CPU,
        }
    }

    /// Label and limits of the training device, for the header of a run.
    pub fn header(&self) -> String {
        format!("{}; {}", self.label(self.training()), self.limits)
    }

    pub fn training(&self) -> &'static str {
        self.other.as_ref().map_or(self.elsewhere, |(_, class, _)| class)
    }
}

#[cfg(feature = "wgpu")]
fn open(name: Option<&str>) -> Result<Devices> {
    use posenc_nets::device::{Choice, DeviceEngine};
    let choice = name.map_or(Choice::Gpu, |name| Choice::Named(name.to_owned()));
    let engine = DeviceEngine::open(choice)?;
    let class = if engine.description().is_software { SOFTWARE } else { GPU };
    let (label, limits) = (engine.device(), limits(engine.description()));
    let adapter = Some(engine.description().clone());
    Ok(Devices { other: Some((Arc::new(engine), class, label)), adapter, limits, elsewhere: CPU })
}

#[cfg(not(feature = "wgpu"))]
fn open(_: Option<&str>) -> Result<Devices> {
    anyhow::bail!(
        "this build of posenc trains on the CPU only. `cargo xtask` builds it with wgpu if --device wgpu is given; \
         start it that way, or use --device cpu"
    )
}

/// Opens a real GPU or falls back to the CPU. Prints a note if there is a GPU that cannot be opened.
#[cfg(feature = "wgpu")]
fn open_or_cpu() -> Devices {
    let is_gpu = |adapter: &posenc_nets::device::AdapterDescription| !adapter.is_software;
    if !posenc_nets::device::adapters().iter().any(is_gpu) {
        return Devices::cpu();
    }
    open(None).unwrap_or_else(|why| {
        eprintln!("note: {why:#}; using the CPU instead");
        Devices::cpu()
    })
}

#[cfg(not(feature = "wgpu"))]
fn open_or_cpu() -> Devices {
    Devices::cpu()
}

/// Limits of an adapter in words.
#[cfg(feature = "wgpu")]
fn limits(adapter: &posenc_nets::device::AdapterDescription) -> String {
    let gib = |bytes: u64| bytes as f64 / (1u64 << 30) as f64;
    format!(
        "buffers up to {:.2} GiB, {:.2} GiB visible to a kernel; {} workgroups along an axis",
        gib(adapter.largest_buffer),
        gib(adapter.largest_binding),
        adapter.workgroups
    )
}

/// Description of the adapters, for `doctor`.
#[cfg(feature = "wgpu")]
pub fn adapters() -> Vec<String> {
    let line = |adapter: posenc_nets::device::AdapterDescription| {
        let limits = limits(&adapter);
        let when = if adapter.is_software {
            "used only if named, as in --device wgpu:llvmpipe"
        } else {
            "used by --device auto and --device wgpu"
        };
        format!("{adapter}; {limits}; {when}")
    };
    let found: Vec<String> = posenc_nets::device::adapters().into_iter().map(line).collect();
    if found.is_empty() {
        return vec![
            "no adapter: training runs on the CPU. To get one, install your GPU's driver with Vulkan support, \
             or a software adapter (apt-get install libvulkan1 mesa-vulkan-drivers)"
                .to_owned(),
        ];
    }
    found
}

/// Description of the adapters, for `doctor`.
#[cfg(not(feature = "wgpu"))]
pub fn adapters() -> Vec<String> {
    vec![
        "off: no GPU was found when posenc was built, so training runs on the CPU. \
         `cargo xtask doctor --device wgpu` builds with it and lists the adapters"
            .to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a device request that is parsed incorrectly, and an invalid one that is accepted.
    #[test]
    fn requests_are_read_or_refused() {
        for (text, request) in [
            ("auto", Request::Auto),
            ("cpu", Request::Cpu),
            ("wgpu", Request::Gpu),
            ("wgpu:llvmpipe", Request::Named("llvmpipe".to_owned())),
            ("wgpu: NVIDIA H", Request::Named("NVIDIA H".to_owned())),
        ] {
            assert_eq!(text.parse(), Ok(request));
        }
        for text in ["", "gpu", "cuda", "wgpu:", "wgpu: ", "cpu:0", "WGPU"] {
            let error = text.parse::<Request>().unwrap_err();
            assert!(error.contains("allowed are auto"), "{text}: {error}");
        }
    }
}
