//! Matrix products in WGSL: C = A B for any strides, tile by tile through workgroup memory.
//!
//! A workgroup computes one tile of C. It loads panels of A and B of depth [`DEPTH`] into workgroup memory as vectors of
//! four. Every thread computes a block of 4·`vectors` rows and columns in registers. The generator unrolls all loops
//! except the one over panels, since a driver that does not unroll them would keep the sums in memory.

use std::fmt::Write as _;

/// Depth of a panel along the inner dimension.
const DEPTH: usize = 8;

/// Size of a tile of C.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tile {
    /// Number of threads along columns and along rows.
    threads: (usize, usize),
    /// Number of vectors of four columns and of four rows per thread.
    vectors: (usize, usize),
}

impl Tile {
    /// 128 × 128: for large products on a GPU.
    pub const LARGE: Tile = Tile { threads: (16, 16), vectors: (2, 2) };
    /// 64 × 64: for everything else.
    pub const MEDIUM: Tile = Tile { threads: (16, 16), vectors: (1, 1) };
    /// 128 × 16: for few columns.
    pub const TALL: Tile = Tile { threads: (4, 32), vectors: (1, 1) };
    /// 16 × 128: for few rows.
    pub const WIDE: Tile = Tile { threads: (32, 4), vectors: (1, 1) };

    /// Number of rows of C per workgroup.
    pub fn rows(self) -> usize {
        4 * self.threads.1 * self.vectors.1
    }

    /// Number of columns of C per workgroup.
    pub fn columns(self) -> usize {
        4 * self.threads.0 * self.vectors.0
    }

    fn threads(self) -> usize {
        self.threads.0 * self.threads.1
    }
}

/// Operation that writes the product AB to C.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Epilogue {
    /// C ← AB.
    Store,
    /// C ← C + AB.
    Add,
    /// C ← AB + bias.
    Bias,
    /// C ← max(AB + bias, 0).
    BiasRelu,
    /// C ← max(AB, 0).
    Relu,
    /// C ← AB where C > 0, else 0: the backward pass through a ReLU whose activations are in C.
    Masked,
}

impl Epilogue {
    /// Whether the epilogue reads a bias.
    pub fn has_bias(self) -> bool {
        matches!(self, Epilogue::Bias | Epilogue::BiasRelu)
    }
}

/// A matrix product kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ProductKernel {
    /// Size of a tile.
    pub tile: Tile,
    /// Whether A is contiguous along the inner dimension.
    pub a_inner: bool,
    /// Whether B is contiguous along the inner dimension.
    pub b_inner: bool,
    /// Operation that writes the product to C.
    pub epilogue: Epilogue,
}

impl ProductKernel {
    /// The WGSL source of the kernel.
    ///
    /// Its parameters are the sizes m, n and k; the inner dimension per slice; for each operand the offset and the
    /// strides of rows, columns and batches; the stride of slices of C and the number of slices; the offset of the bias
    /// and its strides of rows, columns and batches; and the first batch.
    pub fn source(&self) -> String {
        let Tile { threads: (tx, ty), vectors: (vn, vm) } = self.tile;
        let (bm4, bn4) = (self.tile.rows() / 4, self.tile.columns() / 4);
        let mut text = String::from(
            "struct P {
  m: u32, n: u32, k: u32, per_slice: u32,
  a0: u32, ar: u32, ac: u32, ab: u32,
  b0: u32, br: u32, bc: u32, bb: u32,
  c0: u32, cr: u32, cc: u32, cb: u32,
  cs: u32, slices: u32, v0: u32, vr: u32,
  vc: u32, vb: u32, first: u32, pad: u32,
}
@group(0) @binding(0) var<uniform> p: P;
@group(0) @binding(1) var<storage, read> a: array<f32>;
@group(0) @binding(2) var<storage, read> b: array<f32>;
@group(0) @binding(3) var<storage, read_write> c: array<f32>;
",
        );
        if self.epilogue.has_bias() {
            text += "@group(0) @binding(4) var<storage, read> bias: array<f32>;\n";
        }
        let _ = writeln!(text, "var<workgroup> sa: array<vec4<f32>, {}>;", DEPTH * bm4);
        let _ = writeln!(text, "var<workgroup> sb: array<vec4<f32>, {}>;", DEPTH * bn4);
        let _ = write!(
            text,
            "@compute @workgroup_size({tx}, {ty}, 1)
fn main(@builtin(workgroup_id) w: vec3<u32>, @builtin(local_invocation_id) l: vec3<u32>) {{
  let batch = w.z / p.slices + p.first;
  let slice = w.z % p.slices;
  let row0 = w.y * {bm}u;
  let col0 = w.x * {bn}u;
  let t = l.y * {tx}u + l.x;
  let k_begin = slice * p.per_slice;
  let k_end = min(p.k, k_begin + p.per_slice);
  let a_at = p.a0 + batch * p.ab;
  let b_at = p.b0 + batch * p.bb;
",
            bm = self.tile.rows(),
            bn = self.tile.columns(),
        );
        for i in 0..4 * vm {
            for j in 0..vn {
                let _ = writeln!(text, "  var c_{i}_{j} = vec4<f32>();");
            }
        }
        text += "  for (var k0 = k_begin; k0 < k_end; k0 += 8u) {\n";
        self.load(&mut text, "sa", "a", bm4, self.a_inner, ("row0", "p.m", "p.ar", "p.ac"));
        self.load(&mut text, "sb", "b", bn4, self.b_inner, ("col0", "p.n", "p.bc", "p.br"));
        text += "    workgroupBarrier();\n";
        for k in 0..DEPTH {
            for i in 0..vm {
                let at = k * bm4 + i * ty;
                let _ = writeln!(text, "    let a_{k}_{i} = sa[{at}u + l.y];");
            }
            for j in 0..vn {
                let at = k * bn4 + j * tx;
                let _ = writeln!(text, "    let b_{k}_{j} = sb[{at}u + l.x];");
            }
            for i in 0..4 * vm {
                for j in 0..vn {
                    let component = ["x", "y", "z", "w"][i % 4];
                    let _ = writeln!(
                        text,
                        "    c_{i}_{j} = fma(vec4<f32>(a_{k}_{}.{component}), b_{k}_{j}, c_{i}_{j});",
                        i / 4
                    );
                }
            }
        }
        text += "    workgroupBarrier();\n  }\n";
        text += "  let c_at = p.c0 + batch * p.cb + slice * p.cs;\n";
        for i in 0..4 * vm {
            let row = format!("row0 + {}u + l.y * 4u", 4 * ty * (i / 4) + i % 4);
            let _ = writeln!(text, "  if ({row} < p.m) {{ let row = {row};");
            for j in 0..vn {
                for component in 0..4 {
                    let col = format!("col0 + {}u + l.x * 4u", 4 * tx * j + component);
                    let name = ["x", "y", "z", "w"][component];
                    let _ = writeln!(
                        text,
                        "    if ({col} < p.n) {{ let col = {col}; let at = c_at + row * p.cr + col * p.cc; \
                         let sum = c_{i}_{j}.{name}; {} }}",
                        self.finish()
                    );
                }
            }
            text += "  }\n";
        }
        text += "}\n";
        text
    }

    /// Generates the load of a panel into workgroup memory: `vectors` vectors from row or column `first` on, of `size`
    /// rows or columns in all.
    fn load(
        &self,
        text: &mut String,
        shared: &str,
        operand: &str,
        vectors: usize,
        inner: bool,
        (first, size, outer_stride, inner_stride): (&str, &str, &str, &str),
    ) {
        let threads = self.tile.threads();
        let count = DEPTH * vectors;
        for part in 0..count.div_ceil(threads) {
            let _ = writeln!(text, "    {{ let e = t + {}u;", part * threads);
            if !count.is_multiple_of(threads) {
                let _ = writeln!(text, "    if (e < {count}u) {{");
            }
            // Adjacent threads read adjacent numbers.
            if inner {
                let _ = writeln!(text, "      let kk = e % {DEPTH}u; let v = e / {DEPTH}u;");
            } else {
                let _ = writeln!(text, "      let kk = e / {vectors}u; let v = e % {vectors}u;");
            }
            let _ = writeln!(
                text,
                "      let o = {first} + v * 4u; let k = k0 + kk; var x = vec4<f32>();
      if (k < k_end) {{
        let at = {operand}_at + k * {inner_stride} + o * {outer_stride};
        if (o < {size}) {{ x.x = {operand}[at]; }}
        if (o + 1u < {size}) {{ x.y = {operand}[at + {outer_stride}]; }}
        if (o + 2u < {size}) {{ x.z = {operand}[at + 2u * {outer_stride}]; }}
        if (o + 3u < {size}) {{ x.w = {operand}[at + 3u * {outer_stride}]; }}
      }}
      {shared}[kk * {vectors}u + v] = x;"
            );
            if !count.is_multiple_of(threads) {
                text.push_str("    }\n");
            }
            text.push_str("    }\n");
        }
    }

    fn finish(&self) -> &'static str {
        // `select` instead of `max`, which may turn NaN into 0 and hide that a run has diverged.
        match self.epilogue {
            Epilogue::Store => "c[at] = sum;",
            Epilogue::Add => "c[at] += sum;",
            Epilogue::Bias => "c[at] = sum + bias[p.v0 + batch * p.vb + row * p.vr + col * p.vc];",
            Epilogue::BiasRelu => {
                "let z = sum + bias[p.v0 + batch * p.vb + row * p.vr + col * p.vc]; \
                 c[at] = select(z, 0.0, z < 0.0);"
            }
            Epilogue::Relu => "c[at] = select(sum, 0.0, sum < 0.0);",
            Epilogue::Masked => "c[at] = select(0.0, sum, c[at] > 0.0);",
        }
    }
}
