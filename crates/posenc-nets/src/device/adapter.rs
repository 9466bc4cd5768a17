//! Lists and opens wgpu adapters.

use std::fmt::{Display, Formatter};
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

pub use wgpu::DeviceType as AdapterType;

use crate::NetError;

/// Percentage of an adapter's memory that buffers may use. Beyond it, a driver may end the process.
const MEMORY_PERCENT: u8 = 90;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdapterDescription {
    /// Name of the adapter, such as "NVIDIA H200".
    pub name: String,
    /// Type of the adapter, and its index among the adapters of this type and backend in the order of wgpu.
    pub place: (AdapterType, usize),
    /// Whether it is a software adapter, which emulates a GPU on the CPU (llvmpipe, lavapipe, WARP).
    pub is_software: bool,
    /// "vulkan", "metal" or "dx12".
    pub backend: String,
    pub driver: String,
    pub largest_buffer: u64,
    /// Largest part of a buffer that can be bound to a kernel, in bytes.
    pub largest_binding: u64,
    /// Maximum number of workgroups of one dispatch along an axis.
    pub workgroups: u32,
}

impl Display for AdapterDescription {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let kind = if self.is_software { "software adapter " } else { "" };
        write!(f, "{kind}{} ({}, driver {})", self.name, self.backend, self.driver)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    /// The GPU with the largest buffers; never a software adapter.
    Gpu,
    /// The GPU with the largest buffers if there is a GPU, else a software adapter.
    GpuOrSoftware,
    /// The first adapter whose name contains this text, ignoring case. On a machine with a GPU, this is the only way to
    /// select a software adapter.
    Named(String),
}

/// All adapters, GPUs before software adapters.
pub fn adapters() -> Vec<AdapterDescription> {
    found().into_iter().map(|(_, description)| description).collect()
}

/// An open device with its queue. It stores errors until [`Gpu::check`] is called.
#[derive(Debug)]
pub struct Gpu {
    pub device: wgpu::Device,
    pub queue: wgpu::Queue,
    pub description: AdapterDescription,
    pub limits: wgpu::Limits,
    trouble: Arc<Mutex<Trouble>>,
}

#[derive(Debug, Default)]
struct Trouble {
    /// Reason why the device is lost permanently.
    lost: Option<String>,
    /// First refused command since the last [`Gpu::check`].
    refused: Option<String>,
}

impl Gpu {
    /// Opens the chosen adapter.
    ///
    /// # Errors
    ///
    /// Fails if there is no such adapter or it provides no device. The message lists the adapters and what to install.
    pub fn open(choice: Choice) -> Result<Self, NetError> {
        let adapters = found();
        let fits = |(_, adapter): &(wgpu::Adapter, AdapterDescription)| match &choice {
            Choice::Gpu => !adapter.is_software,
            Choice::GpuOrSoftware => true,
            Choice::Named(part) => adapter.name.to_lowercase().contains(&part.to_lowercase()),
        };
        let names: Vec<String> = adapters.iter().map(|(_, a)| a.to_string()).collect();
        let Some((adapter, description)) = adapters.into_iter().find(fits) else {
            return Err(NetError::Device {
                device: "wgpu".to_owned(),
                why: absent(&choice, &names),
            });
        };
        let limits = adapter.limits();
        let request = wgpu::DeviceDescriptor {
            label: Some("posenc"),
            required_limits: limits.clone(),
            ..Default::default()
        };
        let (device, queue) =
            wait(adapter.request_device(&request)).map_err(|error| NetError::Device {
                device: description.to_string(),
                why: format!("cannot open the device: {error}"),
            })?;
        let trouble = Arc::new(Mutex::new(Trouble::default()));
        // Without handlers, wgpu panics.
        let errors = trouble.clone();
        device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| {
            let mut trouble = errors.lock().unwrap_or_else(PoisonError::into_inner);
            trouble.refused.get_or_insert_with(|| in_words(&error));
        }));
        let losses = trouble.clone();
        device.set_device_lost_callback(move |reason, message| {
            let mut trouble = losses.lock().unwrap_or_else(PoisonError::into_inner);
            trouble.lost.get_or_insert_with(|| format!("{reason:?}: {message}"));
        });
        Ok(Gpu { device, queue, description, limits, trouble })
    }

    /// Runs `work` and returns its result, or the first error that the device reported meanwhile.
    pub fn scoped<T>(&self, work: impl FnOnce() -> Result<T, NetError>) -> Result<T, NetError> {
        let filters = [
            wgpu::ErrorFilter::Validation,
            wgpu::ErrorFilter::OutOfMemory,
            wgpu::ErrorFilter::Internal,
        ];
        let mut scopes: Vec<_> =
            filters.into_iter().map(|filter| self.device.push_error_scope(filter)).collect();
        let result = work();
        let mut first = None;
        // Error scopes are a stack.
        while let Some(scope) = scopes.pop() {
            first = wait(scope.pop()).or(first);
        }
        // Refusals of the scope may only be a consequence of errors stored by the handlers.
        self.check()?;
        match first {
            Some(error) => Err(self.error(in_words(&error))),
            None => result,
        }
    }

    /// Returns the stored error, and clears it unless the device is lost.
    pub fn check(&self) -> Result<(), NetError> {
        let mut trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        let refused = trouble.refused.take();
        let why = match (&trouble.lost, refused) {
            (Some(lost), _) => format!(
                "the device was lost ({lost}); training since the last checkpoint is lost. \
                 Run the same command again, or use --device cpu"
            ),
            (None, Some(refused)) => refused,
            (None, None) => return Ok(()),
        };
        Err(self.error(why))
    }

    pub fn is_lost(&self) -> bool {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).lost.is_some()
    }

    pub fn buffer(&self, size: u64, usage: wgpu::BufferUsages) -> wgpu::Buffer {
        let (label, mapped_at_creation) = (None, false);
        let buffer = wgpu::BufferDescriptor { label, size, usage, mapped_at_creation };
        self.device.create_buffer(&buffer)
    }

    pub fn error(&self, why: String) -> NetError {
        NetError::Device { device: self.description.to_string(), why }
    }

    /// Largest size in bytes of a buffer that can be bound to a kernel as a whole.
    pub fn largest_bytes(&self) -> u64 {
        self.limits.max_buffer_size.min(self.limits.max_storage_buffer_binding_size)
    }
}

/// All adapters: GPUs before software adapters, then by decreasing buffer size, which puts a discrete GPU first.
fn found() -> Vec<(wgpu::Adapter, AdapterDescription)> {
    let instance = wgpu::Instance::new(wgpu::InstanceDescriptor {
        backends: wgpu::Backends::VULKAN | wgpu::Backends::METAL | wgpu::Backends::DX12,
        flags: wgpu::InstanceFlags::empty(),
        memory_budget_thresholds: wgpu::MemoryBudgetThresholds {
            for_resource_creation: Some(MEMORY_PERCENT),
            for_device_loss: None,
        },
        ..wgpu::InstanceDescriptor::new_without_display_handle()
    });
    let mut found: Vec<(wgpu::Adapter, AdapterDescription)> = Vec::new();
    for adapter in wait(instance.enumerate_adapters(wgpu::Backends::all())) {
        let mut own = describe(&adapter);
        let is_like = |other: &AdapterDescription| {
            other.place.0 == own.place.0 && other.backend == own.backend
        };
        own.place.1 = found.iter().filter(|(_, other)| is_like(other)).count();
        found.push((adapter, own));
    }
    found.sort_by_key(|(_, own)| (own.is_software, std::cmp::Reverse(own.largest_binding)));
    found
}

fn describe(adapter: &wgpu::Adapter) -> AdapterDescription {
    let (info, limits) = (adapter.get_info(), adapter.limits());
    AdapterDescription {
        name: info.name,
        place: (info.device_type, 0),
        is_software: info.device_type == AdapterType::Cpu,
        backend: info.backend.to_string(),
        driver: format!("{} {}", info.driver, info.driver_info).trim().to_owned(),
        largest_buffer: limits.max_buffer_size,
        largest_binding: limits.max_storage_buffer_binding_size,
        workgroups: limits.max_compute_workgroups_per_dimension,
    }
}

fn absent(choice: &Choice, names: &[String]) -> String {
    let there = match names {
        [] => "no adapters were found".to_owned(),
        names => format!("found only: {}", names.join("; ")),
    };
    match choice {
        Choice::Gpu => format!(
            "no GPU was found ({there}; a software adapter is used only if named, as in --device wgpu:llvmpipe). \
             Install your GPU's driver with Vulkan support (`vulkaninfo --summary` must list it; \
             in a container, pass the device through), or use --device cpu"
        ),
        Choice::Named(part) if !names.is_empty() => {
            format!(
                "no adapter's name contains `{part}` ({there}); name one of these, or use --device cpu"
            )
        }
        Choice::Named(_) | Choice::GpuOrSoftware => format!(
            "no Vulkan driver was found ({there}). Install your GPU's driver, or the software driver \
             (apt-get install libvulkan1 mesa-vulkan-drivers); or use --device cpu"
        ),
    }
}

/// Message for a wgpu error, with a way to fix it if known.
fn in_words(error: &wgpu::Error) -> String {
    match error {
        wgpu::Error::OutOfMemory { .. } => {
            "out of memory: lower the number of runs, the width, the dimension or the number of points, or \
             close other programs that use the GPU, or use --device cpu"
                .to_owned()
        }
        // The description spans several lines; join them into one.
        other => {
            let text = other.to_string();
            let lines: Vec<&str> = text.lines().map(str::trim).filter(|l| !l.is_empty()).collect();
            format!("the device rejected a command: {}", lines.join(" "))
        }
    }
}

/// Waits for a future. The futures of native backends are ready immediately.
pub fn wait<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(value) => return value,
            Poll::Pending => std::thread::yield_now(),
        }
    }
}
