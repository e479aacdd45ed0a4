//! Any sequence of calls to any structure, against the model.
#![no_main]

#[path = "../../crates/fastgame-core/tests/model/mod.rs"]
mod model;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    model::calls::play(bytes);
});
