//! The sources of the fuzz targets, type-checked on any compiler with a stand-in for libFuzzer's macro.

// The files are crate roots and have crate-level attributes.
#![allow(unused_attributes)]

macro_rules! fuzz_target {
    (|$bytes:ident: &[u8]| $body:block) => {
        #[allow(dead_code)]
        fn target($bytes: &[u8]) {
            $body
        }
    };
}
pub(crate) use fuzz_target;

#[path = "../../../../fuzz/fuzz_targets/csv_data.rs"]
mod csv_data;
#[path = "../../../../fuzz/fuzz_targets/csv_records.rs"]
mod csv_records;
#[path = "../../../../fuzz/fuzz_targets/formula.rs"]
mod formula;
#[path = "../../../../fuzz/fuzz_targets/json_data.rs"]
mod json_data;
#[path = "../../../../fuzz/fuzz_targets/json_records.rs"]
mod json_records;
#[path = "../../../../fuzz/fuzz_targets/npz.rs"]
mod npz;
#[path = "../../../../fuzz/fuzz_targets/pages.rs"]
mod pages;
#[path = "../../../../fuzz/fuzz_targets/picture.rs"]
mod picture;
#[path = "../../../../fuzz/fuzz_targets/report.rs"]
mod report;
#[path = "../../../../fuzz/fuzz_targets/selectors.rs"]
mod selectors;
#[path = "../../../../fuzz/fuzz_targets/weights.rs"]
mod weights;
#[path = "../../../../fuzz/fuzz_targets/yaml.rs"]
mod yaml;
