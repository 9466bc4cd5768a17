//! Matrix products in WGSL: C = A B for any strides, tile by tile through workgroup memory.
//!
//! A workgroup computes one tile of C. It loads panels of A and B into workgroup memory as vectors of four, and reads the
//! next panels from the buffers while it multiplies. Every thread computes a block of 4·`vectors` rows
//! and columns in registers. The generator unrolls all loops except the one over panels, since a driver that does not
//! unroll them would keep the sums in memory.

use std::fmt::Write as _;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tile {
    /// Number of threads along columns and along rows.
    threads: (usize, usize),
    /// Number of vectors of four columns and of four rows per thread.
    vectors: (usize, usize),
    /// Depth of a panel along the inner dimension, a multiple of four.
    depth: usize,
    /// Number of panels of each operand in workgroup memory: with two, a thread writes the next one while others still
    /// read this one, so that one barrier per panel is enough.
    panels: usize,
}

impl Tile {
    /// 128 × 128: for large products on a GPU.
    pub const LARGE: Tile = Tile::new((16, 16), (2, 2), 8, 1);
    /// 64 × 64: for everything else.
    pub const MEDIUM: Tile = Tile::new((16, 16), (1, 1), 8, 1);
    /// 128 × 16: for few columns.
    pub const TALL: Tile = Tile::new((4, 32), (1, 1), 8, 1);
    /// 16 × 128: for few rows.
    pub const WIDE: Tile = Tile::new((32, 4), (1, 1), 8, 1);
    /// Other tiles for large products, which no GPU has timed yet: the test `times_of_tiles` compares them with
    /// [`Tile::LARGE`].
    #[cfg(test)]
    pub const CANDIDATES: [Tile; 4] = [
        Tile::new((16, 16), (2, 2), 8, 2),
        Tile::new((16, 16), (2, 2), 16, 1),
        Tile::new((8, 16), (4, 2), 8, 2),
        Tile::new((16, 16), (4, 2), 8, 2),
    ];

    const fn new(
        threads: (usize, usize),
        vectors: (usize, usize),
        depth: usize,
        panels: usize,
    ) -> Self {
        Tile { threads, vectors, depth, panels }
    }

    pub fn rows(self) -> usize {
        4 * self.threads.1 * self.vectors.1
    }

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
    pub fn has_bias(self) -> bool {
        matches!(self, Epilogue::Bias | Epilogue::BiasRelu)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Access {
    /// Whether it is contiguous along the inner dimension.
    pub inner: bool,
    /// Whether four contiguous numbers are read at a time. All offsets, sizes and strides must be multiples of four,
    /// except the stride 1 of the contiguous dimension.
    pub wide: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ProductKernel {
    pub tile: Tile,
    pub a: Access,
    pub b: Access,
    /// Whether four contiguous columns of C are written at a time, under the conditions of [`Access::wide`].
    pub c_wide: bool,
    pub epilogue: Epilogue,
}

impl ProductKernel {
    /// The WGSL source of the kernel.
    ///
    /// Its parameters are the sizes m, n and k; the inner dimension per slice; for each operand the offset and the
    /// strides of rows, columns and batches; the stride of slices of C and the number of slices; the offset of the bias
    /// and its strides of rows, columns and batches; and the first batch.
    pub fn source(&self) -> String {
        let Tile { threads: (tx, ty), vectors: (vn, vm), depth, panels: count } = self.tile;
        let number = |wide| if wide { "vec4<f32>" } else { "f32" };
        let mut text = format!(
            "struct P {{
  m: u32, n: u32, k: u32, per_slice: u32,
  a0: u32, ar: u32, ac: u32, ab: u32,
  b0: u32, br: u32, bc: u32, bb: u32,
  c0: u32, cr: u32, cc: u32, cb: u32,
  cs: u32, slices: u32, v0: u32, vr: u32,
  vc: u32, vb: u32, first: u32, pad: u32,
}}
@group(0) @binding(0) var<uniform> p: P;
@group(0) @binding(1) var<storage, read> a: array<{}>;
@group(0) @binding(2) var<storage, read> b: array<{}>;
@group(0) @binding(3) var<storage, read_write> c: array<{}>;
",
            number(self.a.wide),
            number(self.b.wide),
            number(self.c_wide),
        );
        if self.epilogue.has_bias() {
            text += "@group(0) @binding(4) var<storage, read> bias: array<f32>;\n";
        }
        let panels = [
            Panel::new("a", self.a, self.tile, self.tile.rows() / 4),
            Panel::new("b", self.b, self.tile, self.tile.columns() / 4),
        ];
        for Panel { operand, stride, .. } in &panels {
            let size = count * depth * stride;
            let _ = writeln!(text, "var<workgroup> s{operand}: array<vec4<f32>, {size}>;");
        }
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
        for panel in &panels {
            panel.declare(&mut text);
            panel.fetch(&mut text, "k_begin");
        }
        // `at_a` and `at_b` are the starts of the panels that are multiplied.
        let kind = if count == 1 { "let" } else { "var" };
        let _ = writeln!(text, "  {kind} at_a = 0u;\n  {kind} at_b = 0u;");
        let _ = writeln!(text, "  for (var k0 = k_begin; k0 < k_end; k0 += {depth}u) {{");
        for panel in &panels {
            panel.put(&mut text);
        }
        text += "    workgroupBarrier();\n";
        for panel in &panels {
            panel.fetch(&mut text, &format!("k0 + {depth}u"));
        }
        for k in 0..depth {
            for i in 0..vm {
                let at = k * panels[0].stride + i * ty;
                let _ = writeln!(text, "    let a_{k}_{i} = sa[at_a + {at}u + l.y];");
            }
            for j in 0..vn {
                let at = k * panels[1].stride + j * tx;
                let _ = writeln!(text, "    let b_{k}_{j} = sb[at_b + {at}u + l.x];");
            }
            for i in 0..4 * vm {
                for j in 0..vn {
                    let component = NAMES[i % 4];
                    let _ = writeln!(
                        text,
                        "    c_{i}_{j} = fma(vec4<f32>(a_{k}_{}.{component}), b_{k}_{j}, c_{i}_{j});",
                        i / 4
                    );
                }
            }
        }
        if count == 1 {
            text += "    workgroupBarrier();\n";
        } else {
            // The other panels were last read before the barrier above.
            for Panel { operand, stride, .. } in &panels {
                let _ = writeln!(text, "    at_{operand} = {}u - at_{operand};", depth * stride);
            }
        }
        text += "  }\n";
        text += "  let c_at = p.c0 + batch * p.cb + slice * p.cs;\n";
        for i in 0..4 * vm {
            let row = format!("row0 + {}u + l.y * 4u", 4 * ty * (i / 4) + i % 4);
            let _ = writeln!(text, "  if ({row} < p.m) {{ let row = {row};");
            for j in 0..vn {
                let col = format!("col0 + {}u + l.x * 4u", 4 * tx * j);
                if self.c_wide {
                    let _ = writeln!(
                        text,
                        "    if ({col} < p.n) {{ let col = {col}; let at = (c_at + row * p.cr + col) / 4u; \
                         let sum = c_{i}_{j}; {} }}",
                        self.finish()
                    );
                    continue;
                }
                for (component, name) in NAMES.iter().enumerate() {
                    let _ = writeln!(
                        text,
                        "    if ({col} + {component}u < p.n) {{ let col = {col} + {component}u; \
                         let at = c_at + row * p.cr + col * p.cc; let sum = c_{i}_{j}.{name}; {} }}",
                        self.finish()
                    );
                }
            }
            text += "  }\n";
        }
        text += "}\n";
        text
    }

    fn finish(&self) -> String {
        let zero = if self.c_wide { "vec4<f32>()" } else { "0.0" };
        let one = |part: usize| {
            format!("bias[p.v0 + batch * p.vb + row * p.vr + (col + {part}u) * p.vc]")
        };
        let bias = if self.c_wide {
            format!("vec4<f32>({}, {}, {}, {})", one(0), one(1), one(2), one(3))
        } else {
            one(0)
        };
        // `select` instead of `max`, which may turn NaN into 0 and hide that a run has diverged.
        match self.epilogue {
            Epilogue::Store => "c[at] = sum;".to_owned(),
            Epilogue::Add => "c[at] += sum;".to_owned(),
            Epilogue::Bias => format!("c[at] = sum + {bias};"),
            Epilogue::BiasRelu => {
                format!("let z = sum + {bias}; c[at] = select(z, {zero}, z < {zero});")
            }
            Epilogue::Relu => format!("c[at] = select(sum, {zero}, sum < {zero});"),
            Epilogue::Masked => format!("c[at] = select({zero}, sum, c[at] > {zero});"),
        }
    }
}

const NAMES: [&str; 4] = ["x", "y", "z", "w"];

/// Generates the loads of one operand's panels: from the buffer to registers, and from there to workgroup memory.
struct Panel {
    operand: &'static str,
    access: Access,
    threads: usize,
    depth: usize,
    /// Number of vectors of four rows of A or columns of B.
    vectors: usize,
    /// Stride of the inner dimension in workgroup memory, in vectors.
    stride: usize,
}

impl Panel {
    fn new(operand: &'static str, access: Access, tile: Tile, vectors: usize) -> Self {
        // Threads that are adjacent along the inner dimension write to different banks.
        let stride = vectors + usize::from(access.inner);
        Panel { operand, access, threads: tile.threads(), depth: tile.depth, vectors, stride }
    }

    fn count(&self) -> usize {
        self.depth * self.vectors
    }

    /// Vectors that a thread loads.
    fn parts(&self) -> std::ops::Range<usize> {
        0..self.count().div_ceil(self.threads)
    }

    fn declare(&self, text: &mut String) {
        for part in self.parts() {
            let _ = writeln!(text, "  var f{}_{part} = vec4<f32>();", self.operand);
        }
    }

    /// Starts the block of a part, with the place of its vector in the panel.
    fn open(&self, text: &mut String, part: usize) {
        let (count, vectors, depth) = (self.count(), self.vectors, self.depth);
        let _ = writeln!(text, "    {{ let e = t + {}u;", part * self.threads);
        if !count.is_multiple_of(self.threads) {
            let _ = writeln!(text, "    if (e < {count}u) {{");
        }
        // Adjacent threads read adjacent numbers.
        let place = match self.access {
            Access { inner: true, wide: true } => {
                let quads = depth / 4;
                format!("let kk = e % {quads}u * 4u; let v = e / {quads}u;")
            }
            Access { inner: true, wide: false } => {
                format!("let kk = e % {depth}u; let v = e / {depth}u * 4u;")
            }
            Access { inner: false, .. } => {
                format!("let kk = e / {vectors}u; let v = e % {vectors}u * 4u;")
            }
        };
        let _ = writeln!(text, "      {place}");
    }

    fn close(&self, text: &mut String) {
        text.push_str(if self.count().is_multiple_of(self.threads) {
            "    }\n"
        } else {
            "    } }\n"
        });
    }

    /// Reads the panel that starts at inner index `k0` into registers; zeros beyond the matrix.
    fn fetch(&self, text: &mut String, k0: &str) {
        let (first, size, outer_stride, inner_stride) = match self.operand {
            "a" => ("row0", "p.m", "p.ar", "p.ac"),
            _ => ("col0", "p.n", "p.bc", "p.br"),
        };
        let operand = self.operand;
        for part in self.parts() {
            self.open(text, part);
            let _ = writeln!(
                text,
                "      let o = {first} + v; let k = {k0} + kk; var x = vec4<f32>();
      if (k < k_end) {{
        let at = {operand}_at + k * {inner_stride} + o * {outer_stride};"
            );
            if self.access.wide {
                let _ = writeln!(text, "        if (o < {size}) {{ x = {operand}[at / 4u]; }}");
            } else {
                for (i, name) in NAMES.iter().enumerate() {
                    let _ = writeln!(
                        text,
                        "        if (o + {i}u < {size}) {{ x.{name} = {operand}[at + {i}u * {outer_stride}]; }}"
                    );
                }
            }
            let _ = writeln!(text, "      }}\n      f{operand}_{part} = x;");
            self.close(text);
        }
    }

    /// Writes the registers to workgroup memory.
    fn put(&self, text: &mut String) {
        let Panel { operand, stride, .. } = self;
        for part in self.parts() {
            self.open(text, part);
            if let Access { inner: true, wide: true } = self.access {
                for (i, name) in NAMES.iter().enumerate() {
                    let _ = writeln!(
                        text,
                        "      s{operand}[at_{operand} + (kk + {i}u) * {stride}u + v / 4u][v % 4u] = f{operand}_{part}.{name};"
                    );
                }
            } else {
                let _ = writeln!(
                    text,
                    "      s{operand}[at_{operand} + kk * {stride}u + v / 4u] = f{operand}_{part};"
                );
            }
            self.close(text);
        }
    }
}
