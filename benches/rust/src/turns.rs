//! Contenders that take turns: a round runs each of them once, so that a clock that drifts and a busy machine slow all
//! of them. Criterion runs one after the other; where a ratio counts, that is too far apart.
//!
//! What was found is written in the shape of pytest-benchmark's JSON, which `scripts/_report.py` reads.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

/// What is timed: it prepares itself, does its work, and says how long the work took.
pub type Contender<'a> = Box<dyn FnMut() -> Duration + 'a>;

/// The time of some work.
pub fn timed<T>(work: impl FnOnce() -> T) -> Duration {
    let start = Instant::now();
    std::hint::black_box(work());
    start.elapsed()
}

/// The benches of a file.
#[derive(Debug, Default)]
pub struct Report {
    benches: Vec<Value>,
}

impl Report {
    /// Runs contenders in turns, one round more than are counted, and prints the medians of one of `count` things that
    /// each of them does.
    #[expect(clippy::print_stdout, reason = "what a bench is for")]
    pub fn run(
        &mut self,
        name: &str,
        about: Value,
        count: usize,
        rounds: usize,
        contenders: Vec<(String, Contender<'_>)>,
    ) {
        let (names, mut calls): (Vec<String>, Vec<Contender<'_>>) = contenders.into_iter().unzip();
        let mut seconds = vec![Vec::with_capacity(rounds); calls.len()];
        for round in 0..=rounds {
            for (call, seconds) in calls.iter_mut().zip(&mut seconds) {
                let elapsed = call().as_secs_f64();
                // The first one warms up.
                if round > 0 {
                    seconds.push(elapsed);
                }
            }
        }
        println!("{name} {about}");
        for (contender, seconds) in names.iter().zip(&seconds) {
            println!("  {contender:<24} {:>10.1} ns", 1e9 * median(seconds) / count as f64);
        }
        let seconds: Map<String, Value> = names.into_iter().zip(seconds.into_iter().map(Value::from)).collect();
        self.benches.push(json!({
            "name": name, "params": about, "extra_info": { "seconds": seconds, "count": count },
        }));
    }

    /// Writes `bench/FILE.json` into the folder that cargo builds in.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn write(self, file: &str) -> std::io::Result<()> {
        let target = std::env::var_os("CARGO_TARGET_DIR")
            .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target"), PathBuf::from);
        std::fs::create_dir_all(target.join("bench"))?;
        let text = json!({ "benchmarks": self.benches }).to_string();
        std::fs::write(target.join("bench").join(file).with_extension("json"), text)
    }
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[test]
    fn contenders_take_turns_and_the_first_round_does_not_count() {
        let seen = RefCell::new(String::new());
        let mut report = Report::default();
        let contender = |name: &'static str, nanoseconds: u64| {
            let seen = &seen;
            let mut calls = 0;
            let call = move || {
                seen.borrow_mut().push_str(name);
                calls += 1;
                Duration::from_nanos(nanoseconds * calls)
            };
            (name.to_owned(), Box::new(call) as Contender<'_>)
        };
        report.run("reads", json!({ "cells": 4 }), 2, 2, vec![contender("a", 10), contender("b", 1)]);
        assert_eq!(*seen.borrow(), "ababab");
        assert_eq!(report.benches[0]["extra_info"]["seconds"], json!({ "a": [2e-8, 3e-8], "b": [2e-9, 3e-9] }));
        assert_eq!(report.benches[0]["params"]["cells"], 4);
    }
}
