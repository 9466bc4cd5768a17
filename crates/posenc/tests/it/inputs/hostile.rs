//! Hostile files: small ones that declare, repeat or nest more than they contain, and large ones that are slow to read.

use std::io::{Cursor, Write as _};

use flate2::write::GzEncoder;
use flate2::{Compression, Crc};
use zip::write::{SimpleFileOptions, ZipWriter};

/// Small files: target, description and bytes of each.
pub fn files() -> Vec<(&'static str, &'static str, Vec<u8>)> {
    let mut all = Vec::new();
    let mut add = |target, what, bytes: Vec<u8>| all.push((target, what, bytes));
    let laughs: String = (1..20)
        .map(|i| format!("a{i}: &a{i} [{}]\n", vec![format!("*a{}", i - 1); 9].join(",")))
        .collect();
    add("yaml", "a billion laughs", format!("a0: &a0 [x,x]\n{laughs}").into());
    let words = "w,".repeat(200_000);
    let aliases = "*a,".repeat(200_000);
    add("yaml", "a long list many times", format!("a: &a [{words}]\nb: [{aliases}]\n").into());
    add("yaml", "brackets inside each other", "[".repeat(500_000).into());
    add("yaml", "dashes inside each other", "- ".repeat(500_000).into());
    for (what, settings, seeds) in [
        (
            "samples without end",
            "{ kind: stable-rank, samples: { from: 0, to: 1e18, step: 1e-9 } }",
            1,
        ),
        (
            "a count without end",
            "{ kind: distance, displacements: { from: 0, to: 1, count: 1000000000000 } }",
            1,
        ),
        ("a billion seeds", "{ kind: stable-rank, samples: [1] }", 1_000_000_000),
    ] {
        add("yaml", what, experiment(settings, "dimension: 8, sigma: 0.1", 1, seeds).into());
    }
    add(
        "yaml",
        "a dimension of a trillion",
        experiment("{ kind: stable-rank, samples: [1] }", "dimension: 1e12, sigma: 0.1", 1, 1)
            .into(),
    );
    add(
        "yaml",
        "ten thousand variants",
        experiment("{ kind: stable-rank, samples: [1] }", "dimension: 8, sigma: 0.1", 10_000, 1)
            .into(),
    );
    // A short range of 8000 samples, which each of a thousand variants would write out four times.
    let long = "{ kind: stable-rank, samples: { from: 1, to: 8000, step: 1 } }";
    add(
        "yaml",
        "settings written out",
        experiment(long, "dimension: 8, sigma: 0.1", 1000, 1).into(),
    );
    let text = "x".repeat(400_000);
    let aliases = "*a,".repeat(150_000);
    add("yaml", "a long text many times", format!("a: &a {text}\nb: [{aliases}]\n").into());
    let directives: String = (0..60_000).map(|i| format!("%TAG !{i}! a\n")).collect();
    add("yaml", "directives without end", format!("{directives}---\na: 1\n").into());
    add("yaml", "separators inside lines", "a\u{2028}: \u{85}1\n".repeat(60_000).into());
    add("yaml", "returns without line feeds", "- [a]\r".repeat(150_000).into());
    add("selectors", "braces inside each other", "{".repeat(240).into());
    add(
        "selectors",
        "many braces inside each other",
        format!("{}{}\np/i/g/m", "{".repeat(500_000), "}".repeat(500_000)).into(),
    );
    add("selectors", "a selector without end", format!("{}\np/i/g/m", "*".repeat(1 << 20)).into());
    add("formula", "parentheses inside each other", "(".repeat(100_000).into());

    add("npz", "an exabyte announced", archive(&npy("|u1", "1152921504606846976", b"")));
    add(
        "npz",
        "a product that overflows",
        archive(&npy("<f4", "4294967296, 4294967296, 4294967296", b"")),
    );
    add("npz", "a gigabyte announced", archive(&npy("|u1", "1073741824", b"123")));
    add("npz", "a header of four gigabytes", archive(b"\x93NUMPY\x02\x00\xff\xff\xff\xff{"));
    add("npz", "a hundred thousand axes", archive(&npy("|u1", &"1,".repeat(30_000), b"1")));
    let mut entries = archive(&npy("|i8", "1", b"12345678"));
    let end = entries.len() - 22;
    // Number of entries on this disk and in total.
    entries[end + 8..end + 12].copy_from_slice(&[0xff; 4]);
    add("npz", "entries that are not there", entries);

    for (target, what, open) in [
        ("json_records", "lists inside each other", "["),
        ("json_records", "objects inside each other", "{\"a\":"),
        ("json_data", "lists inside each other", "["),
        ("json_data", "nodes inside each other", "{\"activity\":{\"root\":{\"children\":["),
    ] {
        add(target, what, open.repeat(200_000).into());
    }
    let number = format!("{{\"metric\":\"m\",\"value\":\"{}\"}}", "9".repeat(1_000_000));
    add("json_records", "a long number", number.into());
    add("csv_records", "commas without end", ",".repeat(2_000_000).into());
    add(
        "csv_records",
        "a quote that is never closed",
        format!("item,\"{}", "a\n".repeat(500_000)).into(),
    );
    add("csv_records", "a header without end", ",a".repeat(8 << 20).into());
    add("csv_data", "commas without end", ",".repeat(2_000_000).into());
    add("csv_data", "a line without end", "a ".repeat(2_000_000).into());
    add("csv_data", "zeros packed", packed_zeros());

    for (what, side) in [("a large PNG", 32_768u32), ("a PNG beyond all sizes", u32::MAX)] {
        add("picture", what, png(side, side));
    }
    add("picture", "a wide PNG", png(30_000, 2_200));
    for (what, length) in
        [("a header of exabytes", u64::MAX / 2), ("a header of gigabytes", 1 << 33)]
    {
        let mut bytes = length.to_le_bytes().to_vec();
        bytes.extend(b"{\"a\":{}}");
        add("weights", what, bytes);
    }
    let shape = r#"{"a":{"dtype":"F32","shape":[1099511627776,4194304],"data_offsets":[0,8]}}"#;
    let mut bytes = (shape.len() as u64).to_le_bytes().to_vec();
    bytes.extend(shape.as_bytes());
    bytes.extend([0; 8]);
    add("weights", "a shape of exabytes", bytes);
    all
}

/// Large files that may be accepted, but must be read in time proportional to their length. Each has very many items that a naive reader
/// would compare pairwise.
pub fn large_files() -> Vec<(&'static str, &'static str, Vec<u8>)> {
    let mut all = Vec::new();
    let mut add = |target, what, bytes: Vec<u8>| all.push((target, what, bytes));
    // Rows of the demo record, whose claims are about methods A and B and about all methods.
    let table = |row: &dyn Fn(usize) -> [String; 3]| -> Vec<u8> {
        let mut units = "unit,group,method,signal,seed,profile,device,data\n".to_owned();
        let mut values = "unit,metric,x,y,value,measure\n".to_owned();
        for i in 0..20_000 {
            let [method, x, profile] = row(i);
            units += &format!("{i},rank,{method},-,0,{profile},cpu,-\n");
            for metric in ["stable_rank", "stable_rank_bound", "stable_rank_limit"] {
                values += &format!("{i},{metric},{x},,{i},\n");
            }
        }
        (units + &values).into()
    };
    let a_or_b = |i: usize| if i.is_multiple_of(2) { "A" } else { "B" }.to_owned();
    let smoke = || "smoke".to_owned();
    add("csv_records", "rows that repeat", table(&|i| [a_or_b(i), "10".into(), smoke()]));
    add("csv_records", "places", table(&|i| [a_or_b(i), (i / 2).to_string(), smoke()]));
    // Abscissas that are equal up to rounding.
    let near = |i: usize| format!("{:?}", 1.0 + (i / 2) as f64 * f64::EPSILON);
    add("csv_records", "places side by side", table(&|i| [a_or_b(i), near(i), smoke()]));
    let profile = |i: usize| ["smoke", "paper"][i % 2].to_owned();
    add("csv_records", "methods", table(&|i| [format!("m{i}"), "10".into(), profile(i)]));
    add(
        "csv_records",
        "methods without abscissa",
        table(&|i| [format!("m{i}"), String::new(), smoke()]),
    );
    let items: String =
        (0..12_000).map(|i| format!("  - {{ item: i{i}, name: n, title: t }}\n")).collect();
    let head = "key: p\ntitle: t\nauthors: [a]\nvenue: v\nyear: 2000\nsummary: s\nitems:\n";
    add("yaml", "items of a paper", format!("{head}{items}").into());
    let stars = "*a".repeat(200);
    let path = "a".repeat(1 << 20);
    add(
        "selectors",
        "wildcards against a long name",
        format!("p/i/g/{stars}b\np/i/g/{path}").into(),
    );
    let header = (0..100_000)
        .map(|i| format!("\"a{i}\":{{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]}}"));
    let header = format!("{{{}}}", header.collect::<Vec<_>>().join(","));
    let mut weights = (header.len() as u64).to_le_bytes().to_vec();
    weights.extend(header.as_bytes());
    add("weights", "arrays without elements", weights);
    let node = r#"{"bounds":[0,0,9,9],"class":"View","clickable":false}"#;
    let children = vec![node; 100_000].join(",");
    let tree = format!(
        "{}\"children\":[{children}]}}}}}}",
        r#"{"activity":{"root":{"bounds":[0,0,9,9],"class":"View","clickable":false,"#
    );
    add("json_data", "children of a node", tree.into());
    all
}

fn experiment(protocol: &str, embedder: &str, variants: usize, seeds: usize) -> String {
    let variants: String = (0..variants)
        .map(|i| format!("      - {{ id: v{i}, embedder: {{ kind: gaussian, {embedder} }} }}\n"))
        .collect();
    format!(
        "paper: p\nitem: i\nkind: extra\ntitle: t\nshows: s\ngroups:\n  - id: g\n    seeds: {seeds}\n    protocol: \
         {protocol}\n    variants:\n{variants}"
    )
}

fn npy(descr: &str, shape: &str, elements: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({shape}), }}\n");
    let mut bytes = b"\x93NUMPY\x02\x00".to_vec();
    bytes.extend((header.len() as u32).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(elements);
    bytes
}

fn archive(array: &[u8]) -> Vec<u8> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    archive.start_file("data.npy", SimpleFileOptions::default()).unwrap();
    archive.write_all(array).unwrap();
    archive.finish().unwrap().into_inner()
}

/// A PNG file whose header declares a size, with only the first bytes of pixel data.
fn png(width: u32, height: u32) -> Vec<u8> {
    let mut bytes = b"\x89PNG\r\n\x1a\n".to_vec();
    let mut header = b"IHDR".to_vec();
    header.extend(width.to_be_bytes());
    header.extend(height.to_be_bytes());
    header.extend([8, 2, 0, 0, 0]);
    let mut chunk = |content: &[u8]| {
        bytes.extend((content.len() as u32 - 4).to_be_bytes());
        bytes.extend(content);
        let mut checksum = Crc::new();
        checksum.update(content);
        bytes.extend(checksum.sum().to_be_bytes());
    };
    chunk(&header);
    chunk(b"IDAT\x78\x01\x01\x00\x00\xff\xff\x00\x00\x00\x01");
    chunk(b"IEND");
    bytes
}

/// 64 MiB of line feeds as a small gzip file.
fn packed_zeros() -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    let lines = vec![b'\n'; 1 << 20];
    (0..64).for_each(|_| gzip.write_all(&lines).unwrap());
    gzip.finish().unwrap()
}
