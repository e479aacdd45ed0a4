//! Releases of whole vectors, and updates, beside what nothing can be cheaper than, in turns:
//! `cargo bench -p fastgame-bench --bench vectors`. Writes `target/bench/vectors.json`.

use std::hint::black_box;
use std::io;

use fastgame_bench::turns::{Contender, Report, timed};
use fastgame_bench::{CELLS, Floor, below, generator, vector};
use fastgame_core::Rows;
use serde_json::json;

const ROUNDS: usize = 25;
/// A sweep goes so many steps at a time.
const STRIDE: u64 = 1 << 12;

fn sweeps(report: &mut Report) {
    for cells in [CELLS, 1 << 20] {
        // Even: half of the sweeps split at a level that is known, half do not.
        let repeats = if cells == CELLS { 128 } else { 2 };
        let mut all: Vec<(String, Contender<'_>)> = Vec::new();
        for (name, log_horizon, stride) in [("2^40", 40, STRIDE), ("2^62", 62, STRIDE), ("again", 40, 0)] {
            let (mut vector, mut rng) = (vector(log_horizon, cells as usize), generator(1));
            let sweep = move || {
                timed(|| {
                    for _ in 0..repeats {
                        vector.advance(vector.now() + stride).expect("a step that is not past");
                        black_box(vector.release_all(&mut rng).expect("a generator that works"));
                    }
                })
            };
            all.push((name.to_owned(), Box::new(sweep)));
        }
        let (mut floor, mut rng) = (Floor::new(cells), generator(2));
        let floor = move || {
            timed(|| {
                for _ in 0..repeats {
                    for cell in 0..cells {
                        // One and a half normals a cell.
                        black_box(floor.read(cell, 1 + (cell & 1) as u32, &mut rng));
                    }
                }
            })
        };
        all.push(("floor".to_owned(), Box::new(floor)));
        report.run("sweep", json!({ "cells": cells }), cells as usize * repeats, ROUNDS, all);
    }
}

fn updates(report: &mut Report) {
    const COUNT: usize = 1 << 14;
    const ROW: usize = 8;
    for cells in [CELLS, 1 << 22] {
        let mut rng = generator(2);
        let indices: Vec<u64> = (0..COUNT).map(|_| below(cells, &mut rng)).collect();
        let mut sorted = indices.clone();
        sorted.chunks_mut(ROW).for_each(<[u64]>::sort_unstable);
        let ones = vec![1i64; COUNT];
        let [mut single, mut batch, mut wide] = [(); 3].map(|()| vector(40, cells as usize));
        let mut counters = vec![0i64; cells as usize];
        let all: Vec<(String, Contender<'_>)> = vec![
            (
                "a cell a call".to_owned(),
                Box::new(|| {
                    timed(|| {
                        for &cell in &indices {
                            single.update(&[(cell, 1i64)]).expect("a cell in range");
                        }
                    })
                }),
            ),
            ("rows of 1".to_owned(), {
                let (indices, values) = (&indices, &ones);
                Box::new(move || {
                    let rows = Rows::Single { indices, values };
                    timed(|| batch.update_rows(rows).expect("cells in range"))
                })
            }),
            ("rows of 8".to_owned(), {
                let offsets: Vec<usize> = (0..=COUNT / ROW).map(|row| row * ROW).collect();
                let (indices, values) = (&sorted, &ones);
                Box::new(move || {
                    let rows = Rows::Sparse { offsets: &offsets, indices, values };
                    timed(|| wide.update_rows(rows).expect("cells in range"))
                })
            }),
            // Nothing that adds to counters at random can be faster.
            (
                "floor".to_owned(),
                Box::new(|| {
                    timed(|| {
                        for (&cell, &one) in indices.iter().zip(&ones) {
                            counters[cell as usize] += one;
                        }
                        black_box(&mut counters);
                    })
                }),
            ),
        ];
        report.run("update", json!({ "cells": cells }), COUNT, ROUNDS, all);
    }
}

fn dense_updates(report: &mut Report) {
    const ROWS: usize = 64;
    let values = vec![1i64; ROWS * CELLS as usize];
    let mut vector = vector(40, CELLS as usize);
    let mut counters = vec![0i64; CELLS as usize];
    let all: Vec<(String, Contender<'_>)> = vec![
        (
            "rows".to_owned(),
            Box::new(|| {
                let rows: Rows<'_, u64, i64> = Rows::Dense { values: &values };
                timed(|| vector.update_rows(rows).expect("rows of the right length"))
            }),
        ),
        (
            "floor".to_owned(),
            Box::new(|| {
                timed(|| {
                    for row in values.chunks(CELLS as usize) {
                        counters.iter_mut().zip(row).for_each(|(counter, value)| *counter += value);
                    }
                    black_box(&mut counters);
                })
            }),
        ),
    ];
    report.run("dense update", json!({ "cells": CELLS }), values.len(), ROUNDS, all);
}

fn main() -> io::Result<()> {
    let mut report = Report::default();
    sweeps(&mut report);
    updates(&mut report);
    dense_updates(&mut report);
    report.write("vectors")
}
