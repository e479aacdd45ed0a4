//! Reads of one cell beside their baselines, which take turns: `cargo bench -p fastgame-bench --bench reads`, a minute
//! or two. Writes `target/bench/reads.json`; scripts/performance.py makes the tables of docs/performance.md of it.

use std::io;

use fastgame_bench::turns::{Contender, Report, timed};
use fastgame_bench::{Access, Floor, LevelByLevel, MAX_WEIGHT, Pattern, Walk, below, generator, vector};
use fastgame_core::{ContinualVector, Loss, Mechanism, PureDp, Zcdp};
use serde_json::json;
use std::hint::black_box;

const HORIZONS: [u32; 4] = [10, 16, 40, 62];
const ROUNDS: usize = 25;

fn boxed<'a>(name: String, call: impl FnMut() -> std::time::Duration + 'a) -> (String, Contender<'a>) {
    (name, Box::new(call))
}

/// The mechanisms, and the names of their calls and batches.
fn mechanisms() -> [(&'static str, Mechanism, Loss); 3] {
    let gaussian = Zcdp::new(0.5).expect("a budget").loss();
    [
        ("tree", Mechanism::Tree, gaussian),
        ("blt", Mechanism::Blt { buffers: None }, gaussian),
        ("laplace", Mechanism::Tree, PureDp::new(1.0).expect("a budget").loss()),
    ]
}

fn of_pattern(pattern: &Pattern, mechanism: Mechanism, loss: Loss) -> ContinualVector {
    let builder = ContinualVector::builder(1 << pattern.log_horizon(), loss).cells(pattern.cells() as usize);
    builder.mechanism(mechanism).max_weight(MAX_WEIGHT).build().expect("parameters that are allowed")
}

/// What each contender has of its own: structures are made outside of what is timed, and dropped there.
fn contenders(pattern: &Pattern, walk: bool) -> Vec<(String, Contender<'_>)> {
    let name = |what: &str| format!("{what}, 2^{}", pattern.log_horizon());
    let mut all = Vec::new();
    for (what, mechanism, loss) in mechanisms() {
        let mut rng = generator(1);
        all.push(boxed(name(&format!("{what}, calls")), move || {
            let mut vector = of_pattern(pattern, mechanism, loss);
            timed(|| {
                for (step, cell) in pattern.each() {
                    vector.advance(step).expect("a step that is not past");
                    black_box(vector.release(&[cell], &mut rng).expect("a cell in range"));
                }
            })
        }));
        let mut rng = generator(1);
        all.push(boxed(name(&format!("{what}, batches")), move || {
            let mut vector = of_pattern(pattern, mechanism, loss);
            timed(|| {
                for (step, cells) in pattern.batches() {
                    vector.advance(step).expect("a step that is not past");
                    black_box(vector.release(cells, &mut rng).expect("cells in range"));
                }
            })
        }));
        if what == "tree" {
            let (normals, mut floor, mut rng) = (pattern.normals(), Floor::new(pattern.cells()), generator(1));
            all.push(boxed(name("floor"), move || {
                timed(|| {
                    for ((_, cell), &normals) in pattern.each().zip(&normals) {
                        black_box(floor.read(cell, normals, &mut rng));
                    }
                })
            }));
        }
    }
    let mut rng = generator(1);
    all.push(boxed(name("level by level"), move || {
        let mut noise = LevelByLevel::new(pattern.log_horizon(), pattern.cells());
        timed(|| {
            for (step, cell) in pattern.each() {
                black_box(noise.read(cell, step, &mut rng));
            }
        })
    }));
    if walk {
        let mut rng = generator(1);
        all.push(boxed(name("walk"), move || {
            let mut noise = Walk::new(pattern.log_horizon(), pattern.cells());
            timed(|| {
                for (step, cell) in pattern.each() {
                    black_box(noise.read(cell, step, &mut rng));
                }
            })
        }));
    }
    all
}

/// All horizons take turns: that reads cost the same at each is one of the results.
fn in_cache(report: &mut Report) {
    for (access, name) in Access::ALL {
        let patterns = HORIZONS.map(|log_horizon| Pattern::new(access, log_horizon));
        // Walks over longer gaps take too long to be waited for.
        let walks = |pattern: &Pattern| access == Access::Dense || pattern.log_horizon() == 10;
        let all = patterns.iter().flat_map(|pattern| contenders(pattern, walks(pattern))).collect();
        report.run("reads", json!({ "access": name }), patterns[0].reads(), ROUNDS, all);
    }
}

/// Random reads of a vector far beyond a core's own caches, each a step or so after the last; all cells were read
/// before. Each round has other cells, so that none is in a cache from the round before.
fn out_of_cache(report: &mut Report) {
    const LOG_CELLS: u32 = 22;
    const READS: usize = 1 << 14;
    const STEPS: u64 = 1 << 8;
    let cells = 1u64 << LOG_CELLS;
    let mut rng = generator(1);
    let mut read = vector(40, cells as usize);
    // Each on its own: what was swept lies in arrays.
    let all: Vec<u64> = (0..cells).collect();
    for some in all.chunks(1 << 16) {
        read.release(some, &mut rng).expect("cells in range");
    }
    let vector = std::cell::RefCell::new((read, 1u64 << 39));
    let advanced = || {
        let mut held = vector.borrow_mut();
        held.1 += STEPS;
        let now = held.1;
        held.0.advance(now).expect("a step that is not past");
        held
    };
    // What a contender reads in a round: the same cells for all of them.
    let orders: Vec<Vec<u64>> = (0..=ROUNDS).map(|_| (0..READS).map(|_| below(cells, &mut rng)).collect()).collect();
    let (mut calls_rng, mut batches_rng, mut floor_rng) = (generator(2), generator(3), generator(4));
    let (mut for_calls, mut for_batches, mut for_floor) = (orders.iter(), orders.iter().rev(), orders.iter());
    let mut floor = Floor::new(cells);
    let all = vec![
        boxed("calls".to_owned(), || {
            let order = for_calls.next().expect("an order a round");
            timed(|| {
                for &cell in order {
                    black_box(advanced().0.release(&[cell], &mut calls_rng).expect("a cell in range"));
                }
            })
        }),
        boxed("batches".to_owned(), || {
            let order = for_batches.next().expect("an order a round");
            timed(|| {
                for some in order.chunks(1 << 10) {
                    black_box(advanced().0.release(some, &mut batches_rng).expect("cells in range"));
                }
            })
        }),
        // Nearly all of these reads split where nothing is known: two normals.
        boxed("floor".to_owned(), || {
            let order = for_floor.next().expect("an order a round");
            timed(|| {
                for &cell in order {
                    black_box(floor.read(cell, 2, &mut floor_rng));
                }
            })
        }),
    ];
    report.run("out of cache", json!({ "log_cells": LOG_CELLS }), READS, ROUNDS, all);
}

/// A read that comes so many steps after the last, beside the walk through them.
fn gaps(report: &mut Report) {
    const CELLS: u64 = 1 << 10;
    const WALKED: u64 = 4;
    for gap in [1u64, 1_000, 1_000_000] {
        let mut tree = vector(62, CELLS as usize);
        let mut walk = Walk::new(40, CELLS);
        let (mut tree_rng, mut walk_rng) = (generator(1), generator(2));
        let (mut read, mut walked) = (0, 0);
        let all = vec![
            boxed("tree, calls".to_owned(), || {
                read += gap;
                tree.advance(1 + read).expect("a step that is not past");
                timed(|| {
                    for cell in 0..CELLS {
                        black_box(tree.release(&[cell], &mut tree_rng).expect("a cell in range"));
                    }
                })
                // As many cells as the walk has time for.
                .mul_f64(WALKED as f64 / CELLS as f64)
            }),
            boxed("walk".to_owned(), || {
                walked += gap;
                timed(|| {
                    for cell in 0..WALKED {
                        black_box(walk.read(cell, walked, &mut walk_rng));
                    }
                })
            }),
        ];
        report.run("gap", json!({ "steps": gap }), WALKED as usize, ROUNDS, all);
    }
}

fn main() -> io::Result<()> {
    let mut report = Report::default();
    in_cache(&mut report);
    out_of_cache(&mut report);
    gaps(&mut report);
    report.write("reads")
}
