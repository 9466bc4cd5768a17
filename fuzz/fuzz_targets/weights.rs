#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    posenc_inputs::within_time(posenc_inputs::weights, bytes);
});
