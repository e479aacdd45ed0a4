//! What noise takes beside the 8 bytes of a counter. Run with `--nocapture` to see the figures.

mod common;

use common::rng;
use fastgame_core::rand_core::Rng;
use fastgame_core::{Builder, Cells, ContinualVector, Zcdp};

fn builder(horizon: u64, cells: usize) -> Builder {
    ContinualVector::builder(horizon, Zcdp::new(0.5).unwrap()).cells(cells)
}

/// Bytes a cell beside the counter.
fn beside_counter(vector: &ContinualVector, cells: usize) -> f64 {
    (vector.memory() - 8 * vector.size() as usize) as f64 / cells as f64
}

#[expect(clippy::print_stdout, reason = "the measured figures")]
fn show(what: &str, bytes: f64) {
    println!("{what}: {bytes:.1} bytes a cell beside the counter");
}

/// Reads far apart: what a lone cell costs in a vector of which little is read.
#[test]
fn a_cell_that_is_read_alone_among_many_costs_a_kilobyte() {
    let (cells, every) = (1 << 22, 256);
    let mut vector = builder(1 << 40, cells).build().unwrap();
    let few: Vec<u64> = (0..cells as u64).step_by(every).collect();
    let before = vector.memory();
    vector.release(&few[..], &mut rng(1)).unwrap();
    let each = (vector.memory() - before) as f64 / few.len() as f64;
    assert!(each < 1200.0, "{each} bytes");
}

/// Reads each cell at `times` random steps of its own.
fn random_reads(cells: usize, times: u64, horizon: u64, seed: u64) -> ContinualVector {
    let mut rng = rng(seed);
    let mut vector = builder(horizon, cells).build().unwrap();
    // Many more steps than a cell is read at, so that the average is over cells and not over a few steps.
    let count = 3000 + 8 * times;
    let mut steps: Vec<u64> = (0..count).map(|_| 1 + rng.next_u64() % horizon).collect();
    steps.sort_unstable();
    let mut wanted = vec![Vec::new(); count as usize];
    for cell in 0..cells as u64 {
        let mut left = times;
        while left > 0 {
            let place = &mut wanted[(rng.next_u64() % count) as usize];
            if place.last() != Some(&cell) {
                place.push(cell);
                left -= 1;
            }
        }
    }
    for (&step, cells) in steps.iter().zip(&wanted) {
        vector.advance(step).unwrap();
        vector.release(&cells[..], &mut rng).unwrap();
    }
    vector
}

#[test]
fn random_reads_keep_64_bytes_a_cell_after_15_and_112_after_250() {
    // 25,000 cells: the average is within 0.3 bytes of its expectation. Of about 64 bytes after 15 reads, 37 are sums,
    // 16 step and level set, 4 room that a record does not use at the time, 6 its owner and place, and 1 chunks that are not
    // full and tables.
    let cells = 25_000;
    for (times, limit) in [(1, 64.0), (15, 64.0), (250, 112.0)] {
        let vector = random_reads(cells, times, 1 << 40, times);
        let bytes = beside_counter(&vector, cells);
        show(&format!("{times} random reads at T = 2^40, each cell on its own"), bytes);
        assert!(bytes <= limit, "{bytes} bytes a cell after {times} reads");
    }
    // What is kept hardly depends on the horizon.
    let vector = random_reads(cells, 15, 1 << 62, 3);
    let bytes = beside_counter(&vector, cells);
    show("15 random reads at T = 2^62, each cell on its own", bytes);
    assert!(bytes <= 65.0, "{bytes}");
}

#[test]
fn sweeps_keep_the_sums_alone() {
    let cells = 25_000;
    for times in [1, 15, 250] {
        let mut rng = rng(times);
        let mut vector = builder(1 << 40, cells).build().unwrap();
        let mut steps: Vec<u64> = (0..times).map(|_| 1 + rng.next_u64() % (1 << 40)).collect();
        steps.sort_unstable();
        for step in steps {
            vector.advance(step).unwrap();
            vector.release_all(&mut rng).unwrap();
        }
        let bytes = beside_counter(&vector, cells);
        show(&format!("{times} sweeps at random steps at T = 2^40"), bytes);
        // Whole sums, and less than one byte a cell for everything else.
        assert!(bytes % 8.0 < 1.0 && bytes < 8.0 * 20.0, "{bytes}");
    }
}

#[test]
fn cells_that_were_never_read_have_no_noise() {
    let cells = 1_000_000;
    let mut vector = builder(1 << 40, cells).build().unwrap();
    let unread = vector.memory();
    assert!(unread < 8 * cells + 4096, "{unread}");
    for cell in 0..1000u64 {
        vector.update(&[(cell, 1i64)]).unwrap();
    }
    assert_eq!(vector.memory(), unread, "updates keep nothing");
    // One cell: one page of places, some records, the table of pages (8 bytes for 256 cells).
    vector.release(&[500_000u64], &mut rng(1)).unwrap();
    let one = vector.memory() - unread;
    assert!(one < 36_000, "{one} bytes for one cell");
    // Its neighbours on the page cost a record each.
    vector.release(&(500_000u64..501_000).collect::<Vec<_>>()[..], &mut rng(1)).unwrap();
    let thousand = vector.memory() - unread;
    assert!(thousand < 36_000 + 1000 * 48, "{thousand} bytes for 1000 cells");
}

#[test]
fn a_block_gives_up_its_arrays_when_all_its_cells_are_read_on_their_own() {
    let cells = 20_000;
    let mut vector = builder(1 << 40, cells).build().unwrap();
    let mut rng = rng(1);
    for step in 1..=64 {
        vector.advance(step).unwrap();
        vector.release_all(&mut rng).unwrap();
    }
    vector.advance(1 << 39).unwrap();
    let every_cell: Vec<u64> = (0..cells as u64).collect();
    vector.release(&every_cell[..], &mut rng).unwrap();
    // After this jump only the root, the split and the leaf are left of the stack.
    let bytes = beside_counter(&vector, cells);
    assert!(bytes < 64.0, "{bytes}");
}

#[test]
fn the_fullest_stacks_stay_within_the_plans_bound() {
    // Each read splits one level deeper than the one before: every level of the path is kept.
    for (levels, cells, stride) in
        [(40u32, 20_000, 1), (62, 4_096, 1), (40, 40_000, 8), (10, 100_000, 7), (1, 10_000, 1), (62, 10, 1), (3, 2, 1)]
    {
        for together in [false, true] {
            let mut rng = rng(1);
            let builder = builder(1 << levels, cells);
            let mut vector = builder.build().unwrap();
            let wanted: Vec<u64> = (0..cells as u64).step_by(stride).collect();
            for k in (0..=levels).rev() {
                vector.advance((1u64 << levels) - (1 << k) + 1).unwrap();
                if together { vector.release_all(&mut rng) } else { vector.release(&wanted[..], &mut rng) }.unwrap();
            }
            let (memory, bound) = (vector.memory(), builder.plan().unwrap().memory_at_most(together));
            show(
                &format!("h = {levels}, 1 cell in {stride}, together: {together}, full stacks"),
                beside_counter(&vector, if together { cells } else { wanted.len() }),
            );
            assert!(memory as u64 <= bound, "{memory} bytes where {bound} are promised");
        }
    }
}

#[test]
fn a_small_block_keeps_no_arrays_of_a_larger_one() {
    let (levels, blocks) = (40u32, [2048, 1, 1]);
    let mut rng = rng(1);
    let builder = builder(1 << levels, 1).blocks(&blocks);
    let mut vector = builder.build().unwrap();
    for k in (0..=levels).rev() {
        vector.advance((1u64 << levels) - (1 << k) + 1).unwrap();
        for block in 0..blocks.len() {
            // What the first block drops is at hand when the next one draws.
            vector.release(Cells::<u64>::Block(block), &mut rng).unwrap();
        }
    }
    let (memory, bound) = (vector.memory(), builder.plan().unwrap().memory_at_most(true));
    assert!(memory as u64 <= bound, "{memory} bytes where {bound} are promised");
}
