//! Lists of dispatches that are made once and replayed every epoch.

use std::collections::HashMap;
use std::num::NonZeroU64;
use std::sync::{Arc, Mutex, PoisonError};

use super::adapter::Gpu;
use super::kernels::Pointwise;
use super::product::{Epilogue, ProductKernel, Tile};
use crate::NetError;

/// Distance of parameter blocks: the largest alignment that WebGPU allows an adapter to ask for.
pub const BLOCK: usize = 256;

/// What buffers of parameters are for.
pub const UNIFORM: wgpu::BufferUsages =
    wgpu::BufferUsages::UNIFORM.union(wgpu::BufferUsages::COPY_DST);

/// A kernel ready to run.
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

/// Kernels that were compiled on a device.
#[derive(Debug, Default)]
pub struct Kernels {
    compiled: Mutex<HashMap<Name, Arc<Kernel>>>,
}

impl Kernels {
    /// One that the device refuses is not kept: it may have been short of memory.
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
            // Every kernel writes what it reads.
            zero_initialize_workgroup_memory: false,
            ..Default::default()
        },
        cache: None,
    });
    Kernel { pipeline, layout }
}

/// Numbers on the device.
#[derive(Debug, Clone)]
pub struct DeviceBuffer {
    pub buffer: wgpu::Buffer,
}

impl DeviceBuffer {
    /// Room for `count` numbers of four bytes, zero.
    ///
    /// # Errors
    ///
    /// More than a buffer of the adapter holds, or than its memory has.
    pub fn zeros(gpu: &Gpu, what: &str, count: usize) -> Result<Self, NetError> {
        let bytes = 4 * count.max(1) as u64;
        let allowed = gpu.largest_bytes();
        if bytes > allowed || count > u32::MAX as usize {
            let gib = |bytes: u64| bytes as f64 / (1u64 << 30) as f64;
            return Err(gpu.error(format!(
                "{what} take {:.2} GiB, and a buffer of this adapter holds {:.2} GiB: lower the number of runs, \
                 the width, the dimension or the number of points, or use --device cpu",
                gib(bytes),
                gib(allowed.min(4 << 32))
            )));
        }
        let copied = wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::COPY_SRC;
        let buffer = gpu.buffer(bytes, wgpu::BufferUsages::STORAGE | copied);
        gpu.check()?;
        Ok(DeviceBuffer { buffer })
    }

    /// The numbers given.
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

    /// Overwrites from number `first` on.
    pub fn write<T: bytemuck::NoUninit>(&self, gpu: &Gpu, first: usize, numbers: &[T]) {
        gpu.queue.write_buffer(&self.buffer, 4 * first as u64, bytemuck::cast_slice(numbers));
    }

    /// Brings `count` numbers to the host, after everything that was submitted.
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
        let unreadable = |why: String| gpu.error(format!("its results cannot be read: {why}"));
        polled.map_err(|error| unreadable(error.to_string()))?;
        // The error may reach another thread that waits for the device.
        match receiver.recv_timeout(std::time::Duration::from_secs(60)) {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return Err(unreadable(error.to_string())),
            Err(error) => return Err(unreadable(error.to_string())),
        }
        let view = staging.get_mapped_range(..).map_err(|error| unreadable(error.to_string()))?;
        Ok(bytemuck::pod_collect_to_vec(&view[..bytes as usize]))
    }
}

/// A matrix in a buffer, or one per batch.
#[derive(Debug, Clone, Copy)]
pub struct Operand<'a> {
    pub numbers: &'a DeviceBuffer,
    pub offset: usize,
    /// Distance of rows and of columns.
    pub strides: (usize, usize),
    /// Distance of batches.
    pub batch: usize,
}

impl<'a> Operand<'a> {
    /// Rows of `width` numbers, one after the other.
    pub fn rows(numbers: &'a DeviceBuffer, width: usize) -> Self {
        Operand { numbers, offset: 0, strides: (width, 1), batch: 0 }
    }

    /// The transpose.
    pub fn transposed(self) -> Self {
        Operand { strides: (self.strides.1, self.strides.0), ..self }
    }

    /// Parameters of the kernel, from a row on.
    fn parameters(&self, row: usize) -> [usize; 4] {
        let (rows, columns) = self.strides;
        [self.offset + row * rows, rows, columns, self.batch]
    }
}

/// C = A B.
#[derive(Debug, Clone, Copy)]
pub struct Product<'a> {
    pub a: Operand<'a>,
    pub b: Operand<'a>,
    pub c: Operand<'a>,
    /// Rows of C, columns of C, inner dimension.
    pub sizes: (usize, usize, usize),
    pub batches: usize,
    /// Number of slices of the inner dimension, which are summed separately, and their distance in C.
    pub slices: (usize, usize),
    pub epilogue: Epilogue,
    /// A number per column of C and batch.
    pub bias: Option<Operand<'a>>,
}

impl<'a> Product<'a> {
    /// The product of A and B alone, in one batch and one slice.
    pub fn new([a, b, c]: [Operand<'a>; 3], sizes: (usize, usize, usize)) -> Self {
        let (slices, epilogue) = ((1, 0), Epilogue::Store);
        Product { a, b, c, sizes, batches: 1, slices, epilogue, bias: None }
    }
}

/// One dispatch.
#[derive(Debug)]
struct Op {
    kernel: Arc<Kernel>,
    bind: wgpu::BindGroup,
    groups: [u32; 3],
    has_step: bool,
    /// Floating point operations, roughly.
    work: f64,
}

/// Dispatches in order.
#[derive(Debug)]
pub struct Program {
    ops: Vec<Op>,
}

/// Dispatches to come.
pub struct Recorder<'a> {
    gpu: &'a Gpu,
    kernels: &'a Kernels,
    /// Where the constants of steps lie.
    steps: &'a wgpu::Buffer,
    pending: Vec<Pending>,
    /// Workgroups that keep the device busy.
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
    /// An empty list.
    pub fn new(gpu: &'a Gpu, kernels: &'a Kernels, steps: &'a wgpu::Buffer) -> Self {
        let is_software = gpu.description.is_software;
        // Two for each of the 132 multiprocessors of the largest GPUs; software has cores.
        let target = if is_software { 8 } else { 264 };
        Recorder { gpu, kernels, steps, pending: Vec::new(), target, is_software }
    }

    /// In how many sums an inner dimension of `inner` is best cut when C is `rows` × `columns` in
    /// `batches`: enough to keep the device busy, each long enough to be worth it.
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
        // A GPU wants many tiles; software, whose loads cost most, as few loads as possible.
        let (large, medium) = (Tile::LARGE, Tile::MEDIUM);
        let is_large = if self.is_software {
            4 * area(large) <= 5 * area(medium)
        } else {
            count(large) * batches >= self.target / 2
        };
        if is_large { large } else { medium }
    }

    /// Adds a product. Neighbors in a row of C should be adjacent: threads write them together.
    pub fn product(&mut self, product: Product<'_>) {
        let (rows, columns, _) = product.sizes;
        let tile = self.tile(rows, columns, product.batches * product.slices.0);
        self.product_with(tile, product);
    }

    /// Adds a product with a tile of choice.
    pub fn product_with(&mut self, tile: Tile, product: Product<'_>) {
        let Product { a, b, c, sizes: (m, n, k), batches, slices, epilogue, bias } = product;
        if m * n * batches == 0 {
            return;
        }
        let kernel = ProductKernel {
            tile,
            a_inner: a.strides.1 == 1,
            b_inner: b.strides.0 == 1 && b.strides.1 != 1,
            epilogue,
        };
        let (slices, slice_stride) = slices;
        let per_slice = k.div_ceil(slices).max(1);
        let limit = self.gpu.limits.max_compute_workgroups_per_dimension as usize;
        let rows = tile.rows();
        // Dispatches are limited along every axis: rows and batches are cut where they exceed it.
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

    /// Adds another kernel.
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

    /// Workgroups of 256 threads for `count` numbers, folded in two where they are many.
    pub fn folded(&self, count: usize) -> [usize; 3] {
        let groups = count.div_ceil(256);
        let limit = self.gpu.limits.max_compute_workgroups_per_dimension as usize;
        [groups.min(limit), groups.div_ceil(limit), 1]
    }

    /// The program: kernels compiled, parameters on the device.
    ///
    /// # Errors
    ///
    /// A dispatch beyond the adapter's limits, or one that the driver refuses.
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
                    "a step takes {groups} workgroups along one axis, and this adapter dispatches {limit}: lower \
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
    /// Floating point operations of one replay, roughly.
    pub fn work(&self) -> f64 {
        self.ops.iter().map(|op| op.work).sum()
    }

    /// Runs it once.
    pub fn run(&self, gpu: &Gpu) {
        let mut submission = Submission::new(gpu);
        submission.replay(self, 0);
        submission.submit();
    }
}

/// Hands programs to the device in pieces of bounded length: a driver may take a command that runs
/// for seconds for a hang.
pub struct Submission<'a> {
    gpu: &'a Gpu,
    encoder: Option<wgpu::CommandEncoder>,
    work: f64,
    ops: usize,
}

/// Operations of one command buffer: 50 ms of a GPU that does 2 TFLOP/s.
const WORK_AT_ONCE: f64 = 1e11;

/// Dispatches of one command buffer.
const OPS_AT_ONCE: usize = 512;

impl<'a> Submission<'a> {
    /// Nothing yet.
    pub fn new(gpu: &'a Gpu) -> Self {
        Submission { gpu, encoder: None, work: 0.0, ops: 0 }
    }

    /// Adds a replay of a program at the place `slot` of the constants of steps.
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

    /// Hands over what there is.
    pub fn submit(&mut self) {
        if let Some(encoder) = self.encoder.take() {
            self.gpu.queue.submit([encoder.finish()]);
        }
        (self.work, self.ops) = (0.0, 0);
    }
}
