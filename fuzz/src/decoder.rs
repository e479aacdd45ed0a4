//! What all targets of decoders share. A new one is a check in `model/decoders.rs`, a file here like `decode_raw.rs`, and
//! its name in `Cargo.toml` and `run.sh`.

use std::alloc::System;

use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Runs the check, which may allocate in all this much and a few times the input: a length in the input is not
/// believed before it is compared with what is there.
pub(crate) fn within_memory(bytes: &[u8], check: impl FnOnce(&[u8])) {
    let region = Region::new(ALLOCATOR);
    check(bytes);
    let allocated = region.change().bytes_allocated;
    assert!(allocated <= (4 << 20) + 64 * bytes.len(), "{allocated} bytes allocated for {} of input", bytes.len());
}
