//! One read at several horizons, beside its baselines, on the same access patterns in the same run.
//!
//! `call`: one release of one cell after the other. `batch`: one release of all cells of a step, an element a cell.
//! The rest are the baselines of the library: `level-by-level`, `walk`, `floor`. An iteration is a whole pattern on
//! a fresh structure; criterion's throughput is reads a second. `cargo bench -p fastgame-bench --bench reads`.

use std::hint::black_box;
use std::time::Duration;

use criterion::measurement::WallTime;
use criterion::{BatchSize, BenchmarkGroup, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use fastgame_bench::{Access, Floor, LevelByLevel, Pattern, Walk, below, generator, vector};

const HORIZONS: [u32; 4] = [10, 16, 40, 62];

fn group<'a>(criterion: &'a mut Criterion, name: &str, reads: usize) -> BenchmarkGroup<'a, WallTime> {
    let mut group = criterion.benchmark_group(name);
    group.warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(1)).sample_size(20);
    group.throughput(Throughput::Elements(reads as u64));
    group
}

fn in_cache(criterion: &mut Criterion) {
    for (access, name) in Access::ALL {
        for log_horizon in HORIZONS {
            let pattern = Pattern::new(access, log_horizon);
            let mut group = group(criterion, &format!("read/{name}"), pattern.reads());
            let id = |what| BenchmarkId::new(what, format!("2^{log_horizon}"));
            let mut rng = generator(1);

            group.bench_function(id("call"), |bencher| {
                let reads = |mut vector: fastgame_core::ContinualVector| {
                    for (step, cell) in pattern.each() {
                        vector.advance(step).expect("a step that is not past");
                        black_box(vector.release(&[cell], &mut rng).expect("a cell in range"));
                    }
                    vector
                };
                bencher.iter_batched(|| pattern.vector(), reads, BatchSize::LargeInput);
            });
            group.bench_function(id("batch"), |bencher| {
                let reads = |mut vector: fastgame_core::ContinualVector| {
                    for (step, cells) in pattern.batches() {
                        vector.advance(step).expect("a step that is not past");
                        black_box(vector.release(cells, &mut rng).expect("cells in range"));
                    }
                    vector
                };
                bencher.iter_batched(|| pattern.vector(), reads, BatchSize::LargeInput);
            });
            group.bench_function(id("level-by-level"), |bencher| {
                let reads = |mut noise: LevelByLevel| {
                    for (step, cell) in pattern.each() {
                        black_box(noise.read(cell, step, &mut rng));
                    }
                    noise
                };
                let fresh = || LevelByLevel::new(log_horizon, pattern.cells());
                bencher.iter_batched(fresh, reads, BatchSize::LargeInput);
            });
            // Longer gaps take too long to be waited for.
            if log_horizon == 10 || access == Access::Dense {
                group.bench_function(id("walk"), |bencher| {
                    let reads = |mut noise: Walk| {
                        for (step, cell) in pattern.each() {
                            black_box(noise.read(cell, step, &mut rng));
                        }
                        noise
                    };
                    let fresh = || Walk::new(log_horizon, pattern.cells());
                    bencher.iter_batched(fresh, reads, BatchSize::LargeInput);
                });
            }
            let normals = pattern.normals();
            let mut floor = Floor::new(pattern.cells());
            group.bench_function(id("floor"), |bencher| {
                bencher.iter(|| {
                    for ((_, cell), &normals) in pattern.each().zip(&normals) {
                        black_box(floor.read(cell, normals, &mut rng));
                    }
                });
            });
            group.finish();
        }
    }
}

/// Random reads of a vector far beyond a core's own caches, each a step or so after the last; cells were read once.
fn out_of_cache(criterion: &mut Criterion) {
    const LOG_CELLS: u32 = 22;
    const READS: usize = 1 << 16;
    let cells = 1u64 << LOG_CELLS;
    let mut rng = generator(1);
    let order: Vec<u64> = (0..READS).map(|_| below(cells, &mut rng)).collect();
    let mut vector = vector(40, cells as usize);
    for start in (0..cells).step_by(1 << 16) {
        let some: Vec<u64> = (start..start + (1 << 16)).collect();
        vector.release(&some[..], &mut rng).expect("cells in range");
    }
    let mut now = 1 << 39;
    let mut advance = |vector: &mut fastgame_core::ContinualVector| {
        now += 1 << 8;
        vector.advance(now).expect("a step that is not past");
    };
    let mut group = group(criterion, &format!("read/out of cache, 2^{LOG_CELLS} cells"), READS);
    group.bench_function("call", |bencher| {
        bencher.iter(|| {
            for &cell in &order {
                advance(&mut vector);
                black_box(vector.release(&[cell], &mut rng).expect("a cell in range"));
            }
        });
    });
    group.bench_function("batch", |bencher| {
        bencher.iter(|| {
            for some in order.chunks(1 << 10) {
                advance(&mut vector);
                black_box(vector.release(some, &mut rng).expect("cells in range"));
            }
        });
    });
    // Nearly all of these reads split where nothing is known: two normals.
    let mut floor = Floor::new(cells);
    group.bench_function("floor", |bencher| {
        bencher.iter(|| {
            for &cell in &order {
                black_box(floor.read(cell, 2, &mut rng));
            }
        });
    });
    group.finish();
}

criterion_group!(reads, in_cache, out_of_cache);
criterion_main!(reads);
