//! Any bytes as the file of a store, and stores with a few things wrong.
#![no_main]

#[path = "../src/decoder.rs"]
mod decoder;
#[path = "../../crates/fastgame-store/tests/model/mod.rs"]
mod model;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| decoder::within_memory(bytes, model::store));
