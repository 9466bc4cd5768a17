//! All WGSL kernels except matrix products, with one parameter block each.

/// A kernel other than a matrix product.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pointwise {
    /// First layer of a factored input: sums the rows of the tables' products by index.
    GatherSum,
    /// Backward pass of `GatherSum`: sums gradients over the points of each index.
    ScatterSum,
    /// First axis of waves: copies scaled columns of its tables.
    WavesFirst,
    /// Further axis of waves: rotates the waves by the angles of its tables.
    WavesTurn,
    /// Converts outputs to residuals and sums their squares.
    Residual,
    /// Adds partial sums of squares and writes the sum to the slot of the step.
    Squares,
    ColumnSums,
    Adam,
    /// Multiplies a sparse matrix by the channels of another buffer.
    Sparse,
}

impl Pointwise {
    /// For each storage buffer, whether the kernel writes it (true) or only reads it.
    pub fn writes(self) -> &'static [bool] {
        match self {
            Pointwise::GatherSum => &[false, false, false, true],
            Pointwise::ScatterSum => &[false, false, true],
            Pointwise::WavesFirst | Pointwise::WavesTurn => &[false, false, true],
            Pointwise::Residual => &[false, true, true],
            Pointwise::Squares => &[false, true],
            Pointwise::ColumnSums => &[false, true],
            Pointwise::Adam => &[false, true, true, true],
            Pointwise::Sparse => &[false, false, false, true],
        }
    }

    /// Whether the kernel reads the constants of the step.
    pub fn has_step(self) -> bool {
        matches!(self, Pointwise::Adam | Pointwise::Squares)
    }

    /// The WGSL source of the kernel. Parameters are `p[0].x`, `p[0].y`, …; storage buffers are b0, b1, … in
    /// the order of [`Pointwise::writes`].
    pub fn source(self) -> String {
        let mut text = String::from("@group(0) @binding(0) var<uniform> p: array<vec4<u32>, 6>;\n");
        for (i, writes) in self.writes().iter().enumerate() {
            let access = if *writes { "read_write" } else { "read" };
            let number = match (self, i) {
                (Pointwise::GatherSum | Pointwise::ScatterSum, 1) => "u32",
                (Pointwise::WavesFirst | Pointwise::WavesTurn, 1) => "u32",
                (Pointwise::Sparse, 0) => "u32",
                _ => "f32",
            };
            text += &format!(
                "@group(0) @binding({}) var<storage, {access}> b{i}: array<{number}>;\n",
                i + 1
            );
        }
        if self.has_step() {
            text += "struct Step { beta1: f32, rest1: f32, beta2: f32, rest2: f32, rate: f32, root: f32, \
                     epsilon: f32, decay: f32, slot: u32, pad0: u32, pad1: u32, pad2: u32 }\n";
            text += &format!(
                "@group(0) @binding({}) var<uniform> step: Step;\n",
                self.writes().len() + 1
            );
        }
        use Pointwise::{GatherSum, WavesFirst, WavesTurn};
        if matches!(self, GatherSum | WavesFirst | WavesTurn) {
            text += PER_NUMBER;
        }
        text + match self {
            Pointwise::GatherSum => GATHER_SUM,
            Pointwise::ScatterSum => SCATTER_SUM,
            Pointwise::WavesFirst => WAVES_FIRST,
            Pointwise::WavesTurn => WAVES_TURN,
            Pointwise::Residual => RESIDUAL,
            Pointwise::Squares => SQUARES,
            Pointwise::ColumnSums => COLUMN_SUMS,
            Pointwise::Adam => ADAM,
            Pointwise::Sparse => SPARSE,
        }
    }
}

/// Common start of the next three kernels: one thread per entry of p[0].x points × p[0].y columns.
const PER_NUMBER: &str = "
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) g: vec3<u32>, @builtin(num_workgroups) n: vec3<u32>) {
  let columns = p[0].y;
  let e = g.y * n.x * 256u + g.x;
  if (e >= p[0].x * columns) { return; }
  let point = e / columns;
  let column = e % columns;
";

/// p0: points, columns, tables, whether to apply a ReLU; p1: first index, stride of the indices of tables, offset of
/// the bias; p2, p3: first row of each table's product.
const GATHER_SUM: &str = "
  var sum = b2[p[1].z + column];
  for (var t = 0u; t < p[0].z; t += 1u) {
    let row = p[2u + t / 4u][t % 4u] + b1[p[1].x + t * p[1].y + point];
    sum += b0[row * columns + column];
  }
  if (p[0].w != 0u) { sum = select(sum, 0.0, sum < 0.0); }
  b3[e] = sum;
}
";

/// p0: points, waves, first index, offset of the sines; p1: offset of the cosines, bits of the scale.
const WAVES_FIRST: &str = "
  let at0 = b1[p[0].z + point] * columns + column;
  let scale = bitcast<f32>(p[1].y);
  b2[point * 2u * columns + column] = scale * b0[p[0].w + at0];
  b2[point * 2u * columns + columns + column] = scale * b0[p[1].x + at0];
}
";

const WAVES_TURN: &str = "
  let at0 = b1[p[0].z + point] * columns + column;
  let s = b0[p[0].w + at0];
  let c = b0[p[1].x + at0];
  let at = point * 2u * columns + column;
  let sine = b2[at];
  let cosine = b2[at + columns];
  b2[at] = sine * c + cosine * s;
  b2[at + columns] = cosine * c - sine * s;
}
";

/// b1 contains the start of each row's list of points, then the points of all lists.
/// p0: columns, rows, whether to add.
const SCATTER_SUM: &str = "
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) g: vec3<u32>) {
  let columns = p[0].x;
  if (g.x >= columns) { return; }
  let first = p[0].y + 1u;
  var sum = 0.0;
  for (var e = b1[g.y]; e < b1[g.y + 1u]; e += 1u) { sum += b0[b1[first + e] * columns + g.x]; }
  let at = g.y * columns + g.x;
  if (p[0].z != 0u) { b2[at] += sum; } else { b2[at] = sum; }
}
";

/// p0: points, outputs, points per slice, slices of a run; p1: first slice, whether there is a sigmoid, whether residuals
/// are written, bits of their factor; p2: offset of the outputs and their strides of runs, points and outputs; p3: offset
/// and strides of the targets.
const RESIDUAL: &str = "
var<workgroup> sums: array<f32, 256>;
@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) w: vec3<u32>, @builtin(local_invocation_id) l: vec3<u32>) {
  let outputs = p[0].y;
  let first = w.x * p[0].z;
  let count = min(p[0].z, p[0].x - first) * outputs;
  let factor = bitcast<f32>(p[1].w);
  var sum = 0.0;
  for (var e = l.x; e < count; e += 256u) {
    let point = first + e / outputs;
    let output = e % outputs;
    let at = p[2].x + w.y * p[2].y + point * p[2].z + output * p[2].w;
    let z = b1[at];
    var y = z;
    var slope = 1.0;
    if (p[1].y != 0u) {
      y = 1.0 / (1.0 + exp(-z));
      slope = y * (1.0 - y);
    }
    let r = y - b0[p[3].x + w.y * p[3].y + point * p[3].z + output * p[3].w];
    sum += r * r;
    if (p[1].z != 0u) { b1[at] = factor * r * slope; }
  }
  sums[l.x] = sum;
  workgroupBarrier();
  for (var half = 128u; half > 0u; half /= 2u) {
    if (l.x < half) { sums[l.x] += sums[l.x + half]; }
    workgroupBarrier();
  }
  if (l.x == 0u) { b2[w.y * p[0].w + p[1].x + w.x] = sums[0]; }
}
";

/// p0: slices of a run, runs, kind of error (0: training, 1: test).
const SQUARES: &str = "
var<workgroup> sums: array<f32, 64>;
@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) w: vec3<u32>, @builtin(local_invocation_id) l: vec3<u32>) {
  var sum = 0.0;
  for (var e = l.x; e < p[0].x; e += 64u) { sum += b0[w.x * p[0].x + e]; }
  sums[l.x] = sum;
  workgroupBarrier();
  for (var half = 32u; half > 0u; half /= 2u) {
    if (l.x < half) { sums[l.x] += sums[l.x + half]; }
    workgroupBarrier();
  }
  if (l.x == 0u) { b1[(step.slot * 2u + p[0].z) * p[0].y + w.x] = sums[0]; }
}
";

/// p0: rows, columns, rows per slice, whether to add; p1: offset of the matrix, strides of rows and columns,
/// offset of the sums; p2: stride of slices.
const COLUMN_SUMS: &str = "
var<workgroup> sums: array<f32, 256>;
@compute @workgroup_size(16, 16)
fn main(@builtin(workgroup_id) w: vec3<u32>, @builtin(local_invocation_id) l: vec3<u32>) {
  let column = w.x * 16u + l.x;
  let end = min(p[0].x, (w.y + 1u) * p[0].z);
  var sum = 0.0;
  if (column < p[0].y) {
    for (var row = w.y * p[0].z + l.y; row < end; row += 16u) {
      sum += b0[p[1].x + row * p[1].y + column * p[1].z];
    }
  }
  sums[l.y * 16u + l.x] = sum;
  workgroupBarrier();
  for (var half = 8u; half > 0u; half /= 2u) {
    if (l.y < half) { sums[l.y * 16u + l.x] += sums[(l.y + half) * 16u + l.x]; }
    workgroupBarrier();
  }
  if (l.y == 0u && column < p[0].y) {
    let at = p[1].w + w.y * p[2].x + column;
    if (p[0].w != 0u) { b1[at] += sums[l.x]; } else { b1[at] = sums[l.x]; }
  }
}
";

/// p0: numbers, slices, stride of slices, offset of the gradient; p1: offset of the parameters.
const ADAM: &str = "
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) g: vec3<u32>, @builtin(num_workgroups) n: vec3<u32>) {
  for (var e = g.x; e < p[0].x; e += n.x * 256u) {
    var gradient = 0.0;
    for (var s = 0u; s < p[0].y; s += 1u) { gradient += b0[p[0].w + s * p[0].z + e]; }
    let at = p[1].x + e;
    let theta = b1[at];
    gradient += step.decay * theta;
    let m = step.beta1 * b2[at] + step.rest1 * gradient;
    let v = step.beta2 * b3[at] + step.rest2 * gradient * gradient;
    b2[at] = m;
    b3[at] = v;
    b1[at] = theta - step.rate * m / (sqrt(v) * step.root + step.epsilon);
  }
}
";

/// CSR: b0 contains the starts of the rows, then the columns; b1 the weights. b2 is the factor, b3 the result.
/// p0: rows, offset of the columns, whether to apply a ReLU, offset of b2; p1: offset of b3, strides of
/// channels of b2 and of b3.
const SPARSE: &str = "
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) g: vec3<u32>) {
  if (g.x >= p[0].x) { return; }
  let at0 = p[0].w + g.y * p[1].y;
  var sum = 0.0;
  for (var e = b0[g.x]; e < b0[g.x + 1u]; e += 1u) {
    sum = fma(b1[e], b2[at0 + b0[p[0].y + e]], sum);
  }
  if (p[0].z != 0u) { sum = select(sum, 0.0, sum < 0.0); }
  b3[p[1].x + g.y * p[1].z + g.x] = sum;
}
";
