//! Every fuzz target: the function of [`TARGETS`] that has the name of the binary.

#![no_main]

use posenc_fuzz::TARGETS;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let (_, read) =
        TARGETS.iter().find(|(name, _)| *name == env!("CARGO_BIN_NAME")).expect("a target");
    read(bytes);
});
