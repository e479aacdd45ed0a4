//! Whole vectors and updates. Criterion's throughput is cells, or non-zeros, a second.
//!
//! `cargo bench -p fastgame-bench --bench vectors`.

use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use fastgame_bench::{CELLS, Floor, below, generator, vector};
use fastgame_core::{ContinualVector, Rows};

/// Steps that are visited; a sweep goes `STRIDE` of them at a time.
const STRIDE: u64 = 1 << 12;

fn group<'a>(
    criterion: &'a mut Criterion,
    name: &str,
) -> criterion::BenchmarkGroup<'a, criterion::measurement::WallTime> {
    let mut group = criterion.benchmark_group(name);
    group.warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(1)).sample_size(20);
    group
}

fn advance(vector: &mut ContinualVector, by: u64) {
    let to = vector.now() + by;
    vector.advance(to).expect("a step that is not past");
}

fn sweeps(criterion: &mut Criterion) {
    let mut group = group(criterion, "sweep");
    let mut rng = generator(1);
    for cells in [CELLS, 1 << 20] {
        group.throughput(Throughput::Elements(cells));
        for log_horizon in [40, 62] {
            let mut vector = vector(log_horizon, cells as usize);
            group.bench_function(BenchmarkId::new(format!("{cells} cells"), format!("2^{log_horizon}")), |bencher| {
                bencher.iter(|| {
                    advance(&mut vector, STRIDE);
                    black_box(vector.release_all(&mut rng).expect("a generator that works"))
                });
            });
        }
        let mut vector = vector(40, cells as usize);
        group.bench_function(BenchmarkId::new(format!("{cells} cells"), "the same step again"), |bencher| {
            bencher.iter(|| black_box(vector.release_all(&mut rng).expect("a generator that works")));
        });
        // Half of these sweeps split at a level that is known, half do not: one and a half normals a cell.
        let mut floor = Floor::new(cells);
        group.bench_function(BenchmarkId::new(format!("{cells} cells"), "floor of 1.5 normals"), |bencher| {
            bencher.iter(|| {
                for cell in 0..cells {
                    black_box(floor.read(cell, 1 + (cell & 1) as u32, &mut rng));
                }
            });
        });
    }
    group.finish();
}

fn updates(criterion: &mut Criterion) {
    const CALLS: usize = 1 << 12;
    const ROW: usize = 8;
    let mut rng = generator(2);
    for cells in [CELLS, 1 << 22] {
        let mut group = group(criterion, &format!("update/{cells} cells"));
        let mut vector = vector(40, cells as usize);
        let indices: Vec<u64> = (0..CALLS).map(|_| below(cells, &mut rng)).collect();
        let ones = vec![1i64; CALLS];

        group.throughput(Throughput::Elements(CALLS as u64));
        group.bench_function("one cell a call", |bencher| {
            bencher.iter(|| {
                for &cell in &indices {
                    vector.update(&[(cell, 1i64)]).expect("a cell in range");
                }
            });
        });
        group.bench_function("sparse rows of 1", |bencher| {
            let offsets: Vec<usize> = (0..=CALLS).collect();
            bencher.iter(|| {
                let rows = Rows::Sparse { offsets: &offsets, indices: &indices, values: &ones };
                vector.update_rows(rows).expect("cells in range");
            });
        });
        group.bench_function(format!("sparse rows of {ROW}"), |bencher| {
            let offsets: Vec<usize> = (0..=CALLS / ROW).map(|row| row * ROW).collect();
            let mut indices = indices.clone();
            indices.chunks_mut(ROW).for_each(<[u64]>::sort_unstable);
            bencher.iter(|| {
                let rows = Rows::Sparse { offsets: &offsets, indices: &indices, values: &ones };
                vector.update_rows(rows).expect("cells in range");
            });
        });
        // Nothing that adds to counters at random can be faster.
        let mut counters = vec![0i64; cells as usize];
        group.bench_function("floor: adding to an array", |bencher| {
            bencher.iter(|| {
                for (&cell, &one) in indices.iter().zip(&ones) {
                    counters[cell as usize] += one;
                }
                black_box(&mut counters);
            });
        });
        group.finish();
    }

    let mut group = group(criterion, "update/dense rows");
    let mut vector = vector(40, CELLS as usize);
    for rows in [1, 64] {
        let values = vec![1i64; rows * CELLS as usize];
        group.throughput(Throughput::Elements(values.len() as u64));
        group.bench_function(BenchmarkId::from_parameter(rows), |bencher| {
            bencher.iter(|| {
                let rows: Rows<'_, u64, i64> = Rows::Dense { values: &values };
                vector.update_rows(rows).expect("rows of the right length");
            });
        });
    }
    group.finish();
}

criterion_group!(vectors, sweeps, updates);
criterion_main!(vectors);
