//! Runs one hot path: `fastgame-bench PATH OPERATIONS`, or as often as asked: `fastgame-bench PATH -` reads numbers of
//! operations, a line each, and answers each with a line when they are done.
//!
//! The set-up is the same for every number of operations, so the difference of two runs is the cost of the
//! operations alone. `make bench-check` runs this under callgrind; the paths and their units are listed there.

use std::hint::black_box;
use std::io::Write;

use chacha20::ChaCha12Rng;
use fastgame_bench::{Access, CELLS, Floor, LevelByLevel, Pattern, Walk, below, generator, vector};
use fastgame_core::rand_core::Rng;
use fastgame_core::{Cells, ContinualCounter, ContinualVector, CountSketch, Mechanism, PureDp, Rows, Weights, Zcdp};
use rand_distr::{Distribution, StandardNormal};

type Failure = Box<dyn std::error::Error>;

/// Non-zeros of a sparse row, and rows of a batch.
const ROW: usize = 8;
const ROWS: usize = 128;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, operations] = arguments.as_slice() else {
        return Err("usage: fastgame-bench PATH OPERATIONS".into());
    };
    if operations != "-" {
        return run(path, operations.parse()?);
    }
    for line in std::io::stdin().lines() {
        run(path, line?.parse()?)?;
        writeln!(std::io::stdout(), "done")?;
    }
    Ok(())
}

fn run(path: &str, operations: usize) -> Result<(), Failure> {
    let parts: Vec<&str> = path.split('/').collect();
    let mut rng = generator(7);
    match parts.as_slice() {
        ["words"] => {
            black_box((0..operations).fold(0, |sum, _| sum ^ rng.next_u64()));
            Ok(())
        }
        ["normals"] => {
            black_box((0..operations).map(|_| normal(&mut rng)).sum::<f64>());
            Ok(())
        }
        ["update", what] => update(what, operations),
        ["sketch", what] => sketch(what, operations, &mut rng),
        ["sweep", log_horizon] => sweep(log_horizon.parse()?, operations, &mut rng),
        ["tree" | "blt" | "laplace", shape] => mechanism(parts[0], shape, operations, &mut rng),
        ["counter", log_horizon] => counter(log_horizon.parse()?, operations, &mut rng),
        [what, access, log_horizon] => {
            let (access, _) = *Access::ALL.iter().find(|(_, name)| name == access).ok_or("no such access pattern")?;
            read(what, &Pattern::new(access, log_horizon.parse()?), operations, &mut rng)
        }
        _ => Err("no such path".into()),
    }
}

fn normal(rng: &mut ChaCha12Rng) -> f64 {
    StandardNormal.sample(rng)
}

/// An operation is the read of one cell.
fn read(what: &str, pattern: &Pattern, operations: usize, rng: &mut ChaCha12Rng) -> Result<(), Failure> {
    if operations > pattern.reads() {
        return Err(format!("the pattern has {} reads", pattern.reads()).into());
    }
    match what {
        "read" => {
            let mut vector = pattern.vector();
            for (step, cell) in pattern.each().take(operations) {
                vector.advance(step)?;
                black_box(vector.release(&[cell], rng)?);
            }
        }
        "batch" => {
            let mut vector = pattern.vector();
            let mut left = operations;
            for (step, cells) in pattern.batches() {
                let cells = &cells[..cells.len().min(left)];
                left -= cells.len();
                if cells.is_empty() {
                    break;
                }
                vector.advance(step)?;
                black_box(vector.release(cells, rng)?);
            }
        }
        "level-by-level" => {
            let mut noise = LevelByLevel::new(pattern.log_horizon(), pattern.cells());
            for (step, cell) in pattern.each().take(operations) {
                black_box(noise.read(cell, step, rng));
            }
        }
        "walk" => {
            let mut noise = Walk::new(pattern.log_horizon(), pattern.cells());
            for (step, cell) in pattern.each().take(operations) {
                black_box(noise.read(cell, step, rng));
            }
        }
        "floor" => {
            let mut floor = Floor::new(pattern.cells());
            let normals = pattern.normals();
            for ((_, cell), &normals) in pattern.each().zip(&normals).take(operations) {
                black_box(floor.read(cell, normals, rng));
            }
        }
        _ => return Err("no such path".into()),
    }
    Ok(())
}

/// An operation is one cell of a whole-vector release; the steps are random.
fn sweep(log_horizon: u32, operations: usize, rng: &mut ChaCha12Rng) -> Result<(), Failure> {
    let pattern = Pattern::new(Access::Random, log_horizon);
    let mut vector = pattern.vector();
    for (step, _) in pattern.batches().take(operations / CELLS as usize) {
        vector.advance(step)?;
        black_box(vector.release_all(rng)?);
    }
    Ok(())
}

/// An operation is the read of one cell: of all, or of a quarter of them in one call; jumps are all as long.
fn mechanism(name: &str, shape: &str, operations: usize, rng: &mut ChaCha12Rng) -> Result<(), Failure> {
    let (mechanism, loss) = match name {
        "blt" => (Mechanism::Blt { buffers: Some(5) }, Zcdp::new(0.5)?.loss()),
        "laplace" => (Mechanism::Tree, PureDp::new(1.0)?.loss()),
        _ => (Mechanism::Tree, Zcdp::new(0.5)?.loss()),
    };
    let cells = CELLS as usize;
    let mut vector = ContinualVector::builder(1 << 62, loss).mechanism(mechanism).cells(cells).build()?;
    let some: Vec<u64> = (0..CELLS).step_by(4).collect();
    let asked = if shape == "sweep" { Cells::All } else { Cells::Indices(&some) };
    let count = if shape == "sweep" { cells } else { some.len() };
    for read in 1..=(operations / count) as u64 {
        vector.advance(read << 40)?;
        black_box(vector.release(asked, rng)?);
    }
    Ok(())
}

/// An operation is an advance and a release of a counter.
fn counter(log_horizon: u32, operations: usize, rng: &mut ChaCha12Rng) -> Result<(), Failure> {
    let mut counter = ContinualCounter::new(ContinualVector::builder(1 << log_horizon, Zcdp::new(0.5)?))?;
    for step in 1..=operations as u64 {
        counter.vector_mut().advance(step)?;
        black_box(counter.release(rng)?);
    }
    Ok(())
}

/// An operation is one key, of 2^12 in a call: added, or estimated at a new step by look-ups or from a sweep.
fn sketch(what: &str, operations: usize, rng: &mut ChaCha12Rng) -> Result<(), Failure> {
    const KEYS: usize = 1 << 12;
    let keys: Vec<u64> = (0..KEYS).map(|_| below(u64::MAX, rng)).collect();
    let bits = if what == "look-up" { 18 } else { 12 };
    let mut sketch = CountSketch::builder(1 << 40, Zcdp::new(0.5)?).width(1 << bits).depth(5).build()?;
    for call in 1..=operations / KEYS {
        match what {
            "update" => black_box(sketch.update(&keys, Weights::All(1))?),
            "sweep" | "look-up" => {
                sketch.advance(call as u64 * 1_000_003)?;
                black_box(sketch.estimate(&keys, rng)?.len() as u64)
            }
            _ => return Err("no such path".into()),
        };
    }
    Ok(())
}

/// An operation is one non-zero of an update (`one`, `single`, `sparse`) or one cell of a dense row.
fn update(what: &str, operations: usize) -> Result<(), Failure> {
    let mut rng = generator(8);
    let mut vector = vector(40, CELLS as usize);
    let mut indices: Vec<u64> = (0..ROW * ROWS).map(|_| below(CELLS, &mut rng)).collect();
    indices.chunks_mut(ROW).for_each(<[u64]>::sort_unstable);
    let offsets: Vec<usize> = (0..=ROWS).map(|row| row * ROW).collect();
    match what {
        "one" => {
            for &cell in indices.iter().cycle().take(operations) {
                vector.update(&[(cell, 1i64)])?;
            }
        }
        "single" => {
            let values = vec![1i64; indices.len()];
            for _ in 0..operations / indices.len() {
                vector.update_rows(Rows::Single { indices: &indices, values: &values })?;
            }
        }
        "sparse" => {
            let values = vec![1i64; indices.len()];
            for _ in 0..operations / indices.len() {
                vector.update_rows(Rows::Sparse { offsets: &offsets, indices: &indices, values: &values })?;
            }
        }
        "dense" => {
            let values = vec![1i64; ROW * CELLS as usize];
            for _ in 0..operations / values.len() {
                let rows: Rows<'_, u64, i64> = Rows::Dense { values: &values };
                vector.update_rows(rows)?;
            }
        }
        _ => return Err("no such path".into()),
    }
    Ok(())
}
