//! Random mutations of seeds.

/// Byte sequences with a meaning for some reader.
const TOKENS: &[&[u8]] = &[
    b"-1",
    b"0",
    b"1e308",
    b"NaN",
    b"inf",
    b"18446744073709551615",
    b"9223372036854775808",
    b"null",
    b"true",
    b"[]",
    b"{}",
    b"\"\"",
    b"../",
    b"/",
    b"\\",
    b"\n",
    b"\r\n",
    b",",
    b"\"",
    b"'",
    b": ",
    b"- ",
    b"&a ",
    b"*a",
    b"<<: *a",
    b"!!",
    b"[",
    b"]",
    b"{",
    b"}",
    b"\0\0\0\0",
    b"\xff\xff\xff\xff",
    b"\x80",
    b"\xef\xbb\xbf",
    b"(",
    b")",
    b"^",
    b"u",
    b"\x93NUMPY\x01\0",
    b"PK\x03\x04",
];

/// Maximum number of changes of one seed.
const MOST: u64 = 6;

/// A stream of mutated seeds, determined by its own seed.
pub struct Mutations {
    state: u64,
}

impl Mutations {
    pub fn new(seed: u64) -> Self {
        Mutations { state: seed }
    }

    /// SplitMix64.
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`; 0 if `n` is 0.
    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    /// A random range of at most 256 bytes.
    fn range(&mut self, length: usize) -> std::ops::Range<usize> {
        let from = self.below(length + 1);
        let length = (length - from).min(1 << self.below(9));
        from..from + self.below(length + 1)
    }

    /// A seed after one to six changes.
    pub fn of(&mut self, seeds: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = seeds[self.below(seeds.len())].clone();
        for _ in 0..=self.next() % MOST {
            let at = self.below(bytes.len());
            match self.next() % 8 {
                0 if !bytes.is_empty() => bytes[at] ^= 1 << self.below(8),
                1 if !bytes.is_empty() => bytes[at] = self.next() as u8,
                2 => drop(bytes.drain(self.range(bytes.len()))),
                3 => {
                    let part = bytes[self.range(bytes.len())].to_vec();
                    bytes.splice(at..at, part);
                }
                4 | 5 => {
                    let token = TOKENS[self.below(TOKENS.len())];
                    let over = if self.next().is_multiple_of(2) { 0 } else { token.len() };
                    bytes.splice(at..(at + over).min(bytes.len()), token.iter().copied());
                }
                6 => {
                    let other = &seeds[self.below(seeds.len())];
                    let part = other[self.range(other.len())].to_vec();
                    bytes.splice(at..at, part);
                }
                _ if self.below(4) == 0 => bytes.truncate(at),
                _ => {
                    let range = self.range(bytes.len());
                    bytes[range].reverse();
                }
            }
        }
        bytes
    }
}
