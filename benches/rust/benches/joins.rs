//! A release of a join beside as many normals, in turns: `cargo bench -p fastgame-bench --bench joins`. Writes
//! `target/bench/joins.json`.

use std::hint::black_box;
use std::io;

use fastgame_bench::generator;
use fastgame_bench::turns::{Contender, Report, timed};
use fastgame_core::{JoinSize, Zcdp};
use rand_distr::{Distribution, StandardNormal};
use serde_json::json;

const DEPTH: usize = 5;

/// A release at each step reads all cells of both sides: one and a half normals a cell, on average over steps (as many
/// sweeps split at a level that is known as at one that is not).
fn main() -> io::Result<()> {
    let mut report = Report::default();
    for width in [1 << 12, 1 << 16] {
        let budget = Zcdp::new(0.5).expect("a budget that is allowed");
        let join = JoinSize::builder(1 << 40, budget).depth(DEPTH).width(width).build();
        let (mut join, mut rng, mut other) = (join.expect("allowed parameters"), generator(1), generator(2));
        let cells = 2 * DEPTH * width;
        // Even: every second step splits at a level that is not known.
        let steps = if width == 1 << 12 { 32 } else { 4 };
        let all: Vec<(String, Contender<'_>)> = vec![
            (
                "release".to_owned(),
                Box::new(|| {
                    timed(|| {
                        for _ in 0..steps {
                            join.advance(join.vector().now() + 1).expect("a step that is not past");
                            black_box(join.estimate(&mut rng).expect("a generator that works"));
                        }
                    })
                }),
            ),
            (
                "as many normals".to_owned(),
                Box::new(|| {
                    let mut normals = vec![0.0f64; cells * 3 / 2];
                    timed(|| {
                        for _ in 0..steps {
                            normals.fill_with(|| StandardNormal.sample(&mut other));
                            black_box(normals.last().copied());
                        }
                    })
                }),
            ),
        ];
        report.run("join", json!({ "width": width, "depth": DEPTH, "cells": cells }), steps as usize, 25, all);
    }
    report.write("joins")
}
