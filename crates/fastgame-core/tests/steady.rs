//! Memory over ten million reads: what a structure holds does not grow with their number. Every byte that the process allocates
//! is counted, so this stands alone in its file. Run with `--ignored --nocapture` to see the figures.
//!
//! Steady state: each cell was read often before. A BLT then keeps as much for ever, and so does every mechanism while the
//! clock stands. A tree keeps a sum for each level at which its past reads part, its levels at most: with a clock that moves
//! one step at a time it grows by the logarithm of the steps, a few sums a cell from the millionth step to the ten millionth,
//! and never beyond the bound that the plan states.

mod common;

use std::alloc::System;

use common::rng;
use fastgame_core::rand_core::Rng;
use fastgame_core::{Builder, Cells, ContinualVector, Loss, Mechanism, PureDp, Zcdp};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const READS: u64 = 10_000_000;
const HORIZON: u64 = 1 << 40;

/// Bytes that are allocated now.
fn live() -> u64 {
    let stats = ALLOCATOR.stats();
    (stats.bytes_allocated - stats.bytes_deallocated) as u64
}

/// How the cells are read.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Pattern {
    /// One cell, at each step.
    Single,
    /// All cells, at each step.
    Sweeps,
    /// Ten random cells, at each step.
    Random,
    /// Ten random cells, at one step.
    Repeats,
}

/// The largest of what is allocated after 1/10 of the reads, and of what more until the end.
fn run(builder: &Builder, pattern: Pattern, cells: usize) -> (u64, u64, u64) {
    let mut vector = builder.build().unwrap();
    let mut rng = rng(1);
    let a_step = match pattern {
        Pattern::Single => 1,
        Pattern::Sweeps => cells as u64,
        Pattern::Random | Pattern::Repeats => 10,
    };
    if pattern == Pattern::Repeats {
        vector.release(&(0..cells as u64).collect::<Vec<_>>()[..], &mut rng).unwrap();
    }
    let mut peaks = [0; 2];
    let mut wanted = [0u64; 10];
    for step in 1..=READS / a_step {
        if pattern != Pattern::Repeats {
            vector.advance(step).unwrap();
            vector.update(&[(step % cells as u64, 1i64)]).unwrap();
        }
        let values = match pattern {
            Pattern::Single => vector.release(&[7 % cells as u64], &mut rng),
            Pattern::Sweeps => vector.release(Cells::<u64>::All, &mut rng),
            Pattern::Random | Pattern::Repeats => {
                wanted.iter_mut().for_each(|cell| *cell = rng.next_u64() % cells as u64);
                vector.release(&wanted, &mut rng)
            }
        };
        drop(values.unwrap());
        let late = usize::from(step > READS / a_step / 10);
        peaks[late] = live().max(peaks[late]);
    }
    (peaks[0], peaks[1], vector.memory() as u64)
}

#[test]
#[ignore = "1.5 * 10^8 reads; run by make test-slow"]
#[expect(clippy::print_stdout, reason = "the measured figures")]
fn ten_million_reads_hold_no_more_memory_than_the_first_million() {
    let zcdp: Loss = Zcdp::new(0.5).unwrap().into();
    let pure: Loss = PureDp::new(1.0).unwrap().into();
    let kinds = [
        ("tree", Mechanism::Tree, zcdp, 1),
        ("blt", Mechanism::Blt { buffers: Some(5) }, zcdp, 0),
        ("laplace", Mechanism::Tree, pure, 2),
    ];
    for (name, mechanism, budget, words) in kinds {
        for (pattern, cells) in [
            (Pattern::Single, 1),
            (Pattern::Single, 100),
            (Pattern::Sweeps, 100),
            (Pattern::Random, 1000),
            (Pattern::Repeats, 1000),
        ] {
            let builder = ContinualVector::builder(HORIZON, budget).mechanism(mechanism).cells(cells);
            let before = live();
            let (warm, peak, memory) = run(&builder, pattern, cells);
            let (warm, peak, left) = (warm - before, peak - before, live() - before);
            println!(
                "{name}, {pattern:?} of {cells} cells, 10^7 reads: {warm} bytes at most in the first 10^6, {peak} after; \
                 memory() {memory}"
            );
            // Ten times the steps are 3.3 levels more, if the clock moves; and a slot of packed storage for each cell that is read.
            let levels = if pattern == Pattern::Repeats { 0 } else { 4 };
            let read = if pattern == Pattern::Single { 1 } else { cells as u64 };
            let room = 2 * 8 * words * levels * read + 4096;
            assert!(peak <= warm + room, "{name}, {pattern:?}: grew from {warm} to {peak}");
            let bound = builder.plan().unwrap().memory_at_most(pattern == Pattern::Sweeps);
            assert!(memory <= bound, "{memory} bytes by memory(), {bound} by the plan");
            assert!(left < 4096, "{left} bytes are left behind");
        }
    }
}
