//! Any bytes as records of a vector, and records of a vector with a few things wrong.
#![no_main]

#[path = "../src/decoder.rs"]
mod decoder;
#[path = "../../crates/fastgame-core/tests/model/mod.rs"]
mod model;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| decoder::within_memory(bytes, model::decoders::records));
