//! Any bytes as a raw sketch.
#![no_main]

#[path = "../src/decoder.rs"]
mod decoder;
#[path = "../../crates/fastgame-core/tests/model/mod.rs"]
mod model;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| decoder::within_memory(bytes, model::decoders::raw_sketch));
