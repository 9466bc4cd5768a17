//! Lists of dispatches that are recorded once and replayed every epoch.

use std::collections::HashMap;
use std::num::NonZeroU64;
use std::sync::{Arc, Mutex, PoisonError};

use super::adapter::Gpu;
use super::kernels::Pointwise;
use super::product::{Access, Epilogue, ProductKernel, Tile};
use crate::NetError;

/// Stride of parameter blocks in bytes: the largest alignment that WebGPU allows an adapter to require.
pub const BLOCK: usize = 256;

pub const UNIFORM: wgpu::BufferUsages =
    wgpu::BufferUsages::UNIFORM.union(wgpu::BufferUsages::COPY_DST);

#[derive(Debug)]
struct Kernel {
    pipeline: wgpu::ComputePipeline,
    layout: wgpu::BindGroupLayout,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Name {
    Product(ProductKernel),
    Pointwise(Pointwise),
}

/// Cache of the kernels that were compiled on a device.
#[derive(Debug, Default)]
pub struct Kernels {
    compiled: Mutex<HashMap<Name, Arc<Kernel>>>,
}

impl Kernels {
    /// Returns a kernel, compiling it if needed. A kernel that the device refuses is not cached, because the device may
    /// only have been short of memory.
    fn get(&self, gpu: &Gpu, name: Name) -> Result<Arc<Kernel>, NetError> {
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kernel) = compiled.get(&name) {
            return Ok(kernel.clone());
        }
        let kernel = Arc::new(gpu.scoped(|| Ok(compile(gpu, name)))?);
        compiled.insert(name, kernel.clone());
        Ok(kernel)
    }
}

fn compile(gpu: &Gpu, name: Name) -> Kernel {
    let (source, writes, has_step) = match name {
        Name::Product(kernel) => {
            let mut writes = vec![false, false, true];
            writes.extend(kernel.epilogue.has_bias().then_some(false));
            (kernel.source(), writes, false)
        }
        Name::Pointwise(kernel) => (kernel.source(), kernel.writes().to_vec(), kernel.has_step()),
    };
    let buffer = |binding: usize, ty, has_dynamic_offset| wgpu::BindGroupLayoutEntry {
        binding: binding as u32,
        visibility: wgpu::ShaderStages::COMPUTE,
        ty: wgpu::BindingType::Buffer { ty, has_dynamic_offset, min_binding_size: None },
        count: None,
    };
    let mut entries = vec![buffer(0, wgpu::BufferBindingType::Uniform, false)];
    for (i, writes) in writes.iter().enumerate() {
        let ty = wgpu::BufferBindingType::Storage { read_only: !writes };
        entries.push(buffer(i + 1, ty, false));
    }
    if has_step {
        entries.push(buffer(writes.len() + 1, wgpu::BufferBindingType::Uniform, true));
    }
    let layout = gpu.device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
        label: None,
        entries: &entries,
    });
    let module = gpu.device.create_shader_module(wgpu::ShaderModuleDescriptor {
        label: None,
        source: wgpu::ShaderSource::Wgsl(source.into()),
    });
    let pipeline_layout = gpu.device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
        label: None,
        bind_group_layouts: &[Some(&layout)],
        immediate_size: 0,
    });
    let pipeline = gpu.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: None,
        layout: Some(&pipeline_layout),
        module: &module,
        entry_point: Some("main"),
        compilation_options: wgpu::PipelineCompilationOptions {
            // Every kernel writes workgroup memory before reading it.
            zero_initialize_workgroup_memory: false,
            ..Default::default()
        },
        cache: None,
    });
    Kernel { pipeline, layout }
}

/// A buffer of four-byte numbers on the device.
#[derive(Debug, Clone)]
pub struct DeviceBuffer {
    pub buffer: wgpu::Buffer,
}

impl DeviceBuffer {
    /// A buffer of `count` zeros. `what` names it in error messages.
    pub fn zeros(gpu: &Gpu, what: &str, count: usize) -> Result<Self, NetError> {
        let bytes = 4 * count.max(1) as u64;
        let allowed = gpu.largest_bytes();
        if bytes > allowed || count > u32::MAX as usize {
            let gib = |bytes: u64| bytes as f64 / (1u64 << 30) as f64;
            return Err(gpu.error(format!(
                "{what} would need {:.2} GiB, but a buffer of this adapter can have at most {:.2} GiB: lower the \
                 number of runs, the width, the dimension or the number of points, or use --device cpu",
                gib(bytes),
                gib(allowed.min(4 << 32))
            )));
        }
        let copied = wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::COPY_SRC;
        let buffer = gpu.buffer(bytes, wgpu::BufferUsages::STORAGE | copied);
        gpu.check()?;
        Ok(DeviceBuffer { buffer })
    }

    pub fn of<T: bytemuck::NoUninit>(
        gpu: &Gpu,
        what: &str,
        numbers: &[T],
    ) -> Result<Self, NetError> {
        let own = DeviceBuffer::zeros(gpu, what, numbers.len())?;
        own.write(gpu, 0, numbers);
        gpu.check()?;
        Ok(own)
    }

    /// Overwrites the numbers from index `first` on.
    pub fn write<T: bytemuck::NoUninit>(&self, gpu: &Gpu, first: usize, numbers: &[T]) {
        gpu.queue.write_buffer(&self.buffer, 4 * first as u64, bytemuck::cast_slice(numbers));
    }

    /// Reads the first `count` numbers, after all submitted commands have finished.
    pub fn read(&self, gpu: &Gpu, count: usize) -> Result<Vec<f32>, NetError> {
        let bytes = 4 * count as u64;
        let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
        let staging = gpu.buffer(bytes.max(4), usage);
        let mut encoder = gpu.device.create_command_encoder(&Default::default());
        encoder.copy_buffer_to_buffer(&self.buffer, 0, &staging, 0, bytes);
        gpu.queue.submit([encoder.finish()]);
        let (sender, receiver) = std::sync::mpsc::channel();
        staging.map_async(wgpu::MapMode::Read, .., move |result| {
            let _ = sender.send(result);
        });
        let polled = gpu.device.poll(wgpu::PollType::wait_indefinitely());
        gpu.check()?;
        let unreadable = |why: String| gpu.error(format!("cannot read the results: {why}"));
        polled.map_err(|error| unreadable(error.to_string()))?;
        // Another thread that waits for the device may run the callback, so it may still be pending here.
        match receiver.recv_timeout(std::time::Duration::from_secs(60)) {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return Err(unreadable(error.to_string())),
            Err(error) => return Err(unreadable(error.to_string())),
        }
        let view = staging.get_mapped_range(..).map_err(|error| unreadable(error.to_string()))?;
        Ok(bytemuck::pod_collect_to_vec(&view[..bytes as usize]))
    }
}

/// A matrix in a buffer, or one matrix per batch.
#[derive(Debug, Clone, Copy)]
pub struct Operand<'a> {
    pub numbers: &'a DeviceBuffer,
    pub offset: usize,
    /// Strides of rows and of columns.
    pub strides: (usize, usize),
    pub batch: usize,
}

impl<'a> Operand<'a> {
    /// A row-major matrix with contiguous rows of `width` numbers.
    pub fn rows(numbers: &'a DeviceBuffer, width: usize) -> Self {
        Operand { numbers, offset: 0, strides: (width, 1), batch: 0 }
    }

    pub fn transposed(self) -> Self {
        Operand { strides: (self.strides.1, self.strides.0), ..self }
    }

    /// How a kernel reads the operand, given the strides along the inner and the outer dimension and their sizes.
    fn access(&self, inner: usize, outer: usize, sizes: (usize, usize)) -> Access {
        let is_inner = inner == 1 && outer != 1;
        let (size, stride) = if is_inner { (sizes.0, outer) } else { (sizes.1, inner) };
        let all = [size, stride, self.offset, self.batch];
        let wide = (is_inner || outer == 1) && all.iter().all(|size| size.is_multiple_of(4));
        Access { inner: is_inner, wide }
    }

    /// Parameters of the operand for a kernel: offset of `row`, strides of rows, columns and batches.
    fn parameters(&self, row: usize) -> [usize; 4] {
        let (rows, columns) = self.strides;
        [self.offset + row * rows, rows, columns, self.batch]
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Product<'a> {
    pub a: Operand<'a>,
    pub b: Operand<'a>,
    pub c: Operand<'a>,
    /// Rows of C, columns of C, inner dimension.
    pub sizes: (usize, usize, usize),
    pub batches: usize,
    /// Number of slices of the inner dimension, which are summed separately, and their stride in C.
    pub slices: (usize, usize),
    pub epilogue: Epilogue,
    /// Bias, addressed by row, column and batch of C.
    pub bias: Option<Operand<'a>>,
}

impl<'a> Product<'a> {
    /// A plain product in one batch and one slice, without bias.
    pub fn new([a, b, c]: [Operand<'a>; 3], sizes: (usize, usize, usize)) -> Self {
        let (slices, epilogue) = ((1, 0), Epilogue::Store);
        Product { a, b, c, sizes, batches: 1, slices, epilogue, bias: None }
    }
}

#[derive(Debug)]
struct Op {
    kernel: Arc<Kernel>,
    bind: wgpu::BindGroup,
    groups: [u32; 3],
    has_step: bool,
    /// Approximate number of floating-point operations.
    work: f64,
}

#[derive(Debug)]
pub struct Program {
    ops: Vec<Op>,
}

/// Records dispatches for a [`Program`].
pub struct Recorder<'a> {
    gpu: &'a Gpu,
    kernels: &'a Kernels,
    /// Buffer with the constants of the steps.
    steps: &'a wgpu::Buffer,
    pending: Vec<Pending>,
    /// Number of workgroups that keep the device busy.
    target: usize,
    is_software: bool,
}

struct Pending {
    name: Name,
    parameters: Vec<u32>,
    buffers: Vec<wgpu::Buffer>,
    groups: [usize; 3],
    work: f64,
}

impl<'a> Recorder<'a> {
    pub fn new(gpu: &'a Gpu, kernels: &'a Kernels, steps: &'a wgpu::Buffer) -> Self {
        let is_software = gpu.description.is_software;
        // Two per multiprocessor of a large GPU (132); a software adapter only has a few cores.
        let target = if is_software { 8 } else { 264 };
        Recorder { gpu, kernels, steps, pending: Vec::new(), target, is_software }
    }

    /// Number of slices for an inner dimension of `inner` if C is `rows` × `columns` in `batches` batches: enough to
    /// keep the device busy, but at most one slice per 256 terms.
    pub fn slices(&self, rows: usize, columns: usize, inner: usize, batches: usize) -> usize {
        let tile = self.tile(rows, columns, batches);
        let tiles = rows.div_ceil(tile.rows()) * columns.div_ceil(tile.columns()) * batches;
        (self.target / tiles.max(1)).clamp(1, inner.div_ceil(256).max(1))
    }

    fn tile(&self, rows: usize, columns: usize, batches: usize) -> Tile {
        let narrow = if self.is_software { 32 } else { 16 };
        if columns <= narrow {
            return Tile::TALL;
        }
        if rows <= narrow {
            return Tile::WIDE;
        }
        let count = |tile: Tile| rows.div_ceil(tile.rows()) * columns.div_ceil(tile.columns());
        let area = |tile: Tile| count(tile) * tile.rows() * tile.columns();
        // A GPU needs many tiles. Loads dominate on a software adapter, so it needs large tiles.
        let (large, medium) = (Tile::LARGE, Tile::MEDIUM);
        let is_large = if self.is_software {
            4 * area(large) <= 5 * area(medium)
        } else {
            count(large) * batches >= self.target / 2
        };
        if is_large { large } else { medium }
    }

    /// Records a product. Rows of C should be contiguous, because adjacent threads write adjacent columns.
    pub fn product(&mut self, product: Product<'_>) {
        let (rows, columns, _) = product.sizes;
        let tile = self.tile(rows, columns, product.batches * product.slices.0);
        self.product_with(tile, product);
    }

    /// Records a product with a given tile.
    pub fn product_with(&mut self, tile: Tile, product: Product<'_>) {
        let Product { a, b, c, sizes: (m, n, k), batches, slices, epilogue, bias } = product;
        if m * n * batches == 0 {
            return;
        }
        let (slices, slice_stride) = slices;
        // Slices start at multiples of four, so that vectors of four do not span two of them.
        let per_slice = k.div_ceil(slices).next_multiple_of(4);
        let c_sizes = [n, c.offset, c.strides.0, c.batch, slice_stride];
        let kernel = ProductKernel {
            tile,
            a: a.access(a.strides.1, a.strides.0, (k, m)),
            b: b.access(b.strides.0, b.strides.1, (k, n)),
            c_wide: c.strides.1 == 1 && c_sizes.iter().all(|size| size.is_multiple_of(4)),
            epilogue,
        };
        let limit = self.gpu.limits.max_compute_workgroups_per_dimension as usize;
        let rows = tile.rows();
        // Dispatches are limited along every axis, so rows and batches are split if they exceed the limit.
        let rows_at_once = limit * rows;
        let batches_at_once = (limit / slices).max(1);
        for row in (0..m).step_by(rows_at_once) {
            let m = (m - row).min(rows_at_once);
            for first in (0..batches).step_by(batches_at_once) {
                let count = (batches - first).min(batches_at_once);
                let parameters = [
                    &[m, n, k, per_slice][..],
                    &a.parameters(row),
                    &b.parameters(0),
                    &c.parameters(row),
                    &[slice_stride, slices],
                    &bias.map_or([0; 4], |bias| bias.parameters(row)),
                    &[first, 0],
                ]
                .concat();
                let mut buffers = vec![a.numbers, b.numbers, c.numbers];
                buffers.extend(bias.map(|bias| bias.numbers));
                self.pending.push(Pending {
                    name: Name::Product(kernel),
                    parameters: parameters.into_iter().map(|p| p as u32).collect(),
                    buffers: buffers.into_iter().map(|n| n.buffer.clone()).collect(),
                    groups: [n.div_ceil(tile.columns()), m.div_ceil(rows), count * slices],
                    work: 2.0 * m as f64 * n as f64 * k as f64 * count as f64,
                });
            }
        }
    }

    /// Records another kernel. `work` is the approximate number of floating-point operations.
    pub fn pointwise(
        &mut self,
        kernel: Pointwise,
        parameters: &[usize],
        buffers: &[&DeviceBuffer],
        groups: [usize; 3],
        work: f64,
    ) {
        if groups.contains(&0) {
            return;
        }
        self.pending.push(Pending {
            name: Name::Pointwise(kernel),
            parameters: parameters.iter().map(|&p| p as u32).collect(),
            buffers: buffers.iter().map(|numbers| numbers.buffer.clone()).collect(),
            groups,
            work,
        });
    }

    /// Number of workgroups of 256 threads for `count` numbers, in two dimensions if one would exceed the limit.
    pub fn folded(&self, count: usize) -> [usize; 3] {
        let groups = count.div_ceil(256);
        let limit = self.gpu.limits.max_compute_workgroups_per_dimension as usize;
        [groups.min(limit), groups.div_ceil(limit), 1]
    }

    /// Compiles the kernels and uploads the parameters.
    pub fn finish(self) -> Result<Program, NetError> {
        let mut bytes = vec![0u8; BLOCK * self.pending.len().max(1)];
        for (block, op) in bytes.chunks_exact_mut(BLOCK).zip(&self.pending) {
            let parameters: &[u8] = bytemuck::cast_slice(&op.parameters);
            block[..parameters.len()].copy_from_slice(parameters);
        }
        let uniform = self.gpu.buffer(bytes.len() as u64, UNIFORM);
        self.gpu.queue.write_buffer(&uniform, 0, &bytes);
        let limit = self.gpu.limits.max_compute_workgroups_per_dimension as usize;
        let mut ops = Vec::with_capacity(self.pending.len());
        for (i, op) in self.pending.iter().enumerate() {
            if let Some(groups) = op.groups.iter().find(|groups| **groups > limit) {
                return Err(self.gpu.error(format!(
                    "a step needs {groups} workgroups along one axis, but this adapter allows {limit}: lower \
                     the number of runs, the width, the dimension or the number of points, or use --device cpu"
                )));
            }
            let kernel = self.kernels.get(self.gpu, op.name)?;
            let block = |buffer, offset: usize, size: usize| {
                wgpu::BindingResource::Buffer(wgpu::BufferBinding {
                    buffer,
                    offset: offset as u64,
                    size: NonZeroU64::new(size as u64),
                })
            };
            let mut resources = vec![block(&uniform, i * BLOCK, 96)];
            resources.extend(op.buffers.iter().map(wgpu::Buffer::as_entire_binding));
            let has_step = matches!(op.name, Name::Pointwise(kernel) if kernel.has_step());
            if has_step {
                resources.push(block(self.steps, 0, 48));
            }
            let entry = |(binding, resource)| wgpu::BindGroupEntry { binding, resource };
            let entries: Vec<_> = (0..).zip(resources).map(entry).collect();
            let bind = self.gpu.device.create_bind_group(&wgpu::BindGroupDescriptor {
                label: None,
                layout: &kernel.layout,
                entries: &entries,
            });
            let groups = op.groups.map(|groups| groups as u32);
            ops.push(Op { kernel, bind, groups, has_step, work: op.work });
        }
        self.gpu.check()?;
        Ok(Program { ops })
    }
}

impl Program {
    /// Approximate number of floating-point operations of one replay.
    pub fn work(&self) -> f64 {
        self.ops.iter().map(|op| op.work).sum()
    }

    /// Runs the program once, with the constants of slot 0.
    pub fn run(&self, gpu: &Gpu) {
        let mut submission = Submission::new(gpu);
        submission.replay(self, 0);
        submission.submit();
    }
}

/// Submits programs in command buffers of bounded length, because a driver may treat a command that runs for seconds
/// as a hang.
pub struct Submission<'a> {
    gpu: &'a Gpu,
    encoder: Option<wgpu::CommandEncoder>,
    work: f64,
    ops: usize,
}

/// Maximum number of operations per command buffer: 50 ms on a GPU with 2 TFLOP/s.
const WORK_AT_ONCE: f64 = 1e11;

/// Maximum number of dispatches per command buffer.
const OPS_AT_ONCE: usize = 512;

impl<'a> Submission<'a> {
    pub fn new(gpu: &'a Gpu) -> Self {
        Submission { gpu, encoder: None, work: 0.0, ops: 0 }
    }

    /// Adds a replay of a program with the step constants of `slot`.
    pub fn replay(&mut self, program: &Program, slot: usize) {
        let mut next = 0;
        while next < program.ops.len() {
            let device = &self.gpu.device;
            let encoder = self
                .encoder
                .get_or_insert_with(|| device.create_command_encoder(&Default::default()));
            let mut pass = encoder.begin_compute_pass(&Default::default());
            while let Some(op) = program.ops.get(next) {
                pass.set_pipeline(&op.kernel.pipeline);
                let offset = (slot * BLOCK) as u32;
                let offsets: &[u32] = if op.has_step { &[offset] } else { &[] };
                pass.set_bind_group(0, &op.bind, offsets);
                pass.dispatch_workgroups(op.groups[0], op.groups[1], op.groups[2]);
                next += 1;
                self.work += op.work;
                self.ops += 1;
                if self.work > WORK_AT_ONCE || self.ops >= OPS_AT_ONCE {
                    break;
                }
            }
            drop(pass);
            if self.work > WORK_AT_ONCE || self.ops >= OPS_AT_ONCE {
                self.submit();
            }
        }
    }

    pub fn submit(&mut self) {
        if let Some(encoder) = self.encoder.take() {
            self.gpu.queue.submit([encoder.finish()]);
        }
        (self.work, self.ops) = (0.0, 0);
    }
}
