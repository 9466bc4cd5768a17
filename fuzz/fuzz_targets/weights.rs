#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    posenc_fuzz::weights(bytes);
});
