//! Reads of the mechanisms beside each other, at jumps of one step and of 2^30, and the normals that they need.
//!
//! `sweep`: all of 4,096 cells. `batch`: 512 of them, in an order drawn once. `call`: one cell a release. Throughput is cells
//! a second. `normals`: as many from the same generator as a sweep draws. `random jumps`: each jump has another length, so a
//! BLT factorises its covariance for each. `cargo bench -p fastgame-bench --bench mechanisms`.

use std::hint::black_box;
use std::time::Duration;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main};
use fastgame_bench::{below, generator};
use fastgame_core::{Cells, ContinualVector, Loss, Mechanism, PureDp, Zcdp};
use rand_distr::{Distribution, StandardNormal};

const CELLS: usize = 4096;
const SOME: usize = 512;
/// Long enough for as many reads as a benchmark makes.
const HORIZON: u64 = 1 << 62;

fn mechanisms() -> Vec<(String, Mechanism, Loss)> {
    let gaussian = Zcdp::new(0.5).expect("a budget").loss();
    let blt = |buffers| (format!("blt {buffers}"), Mechanism::Blt { buffers: Some(buffers) }, gaussian);
    vec![
        ("tree".into(), Mechanism::Tree, gaussian),
        blt(3),
        blt(5),
        blt(8),
        ("laplace".into(), Mechanism::Tree, PureDp::new(1.0).expect("a budget").loss()),
    ]
}

fn vector(mechanism: Mechanism, loss: Loss, cells: usize) -> ContinualVector {
    let builder = ContinualVector::builder(HORIZON, loss).cells(cells).mechanism(mechanism);
    builder.build().expect("parameters that are allowed")
}

fn group<'a>(criterion: &'a mut Criterion, name: &str, reads: usize) -> BenchmarkGroup<'a, WallTime> {
    let mut group = criterion.benchmark_group(name);
    group.warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(1)).sample_size(20);
    group.throughput(Throughput::Elements(reads as u64));
    group
}

/// Reads at a step that is further by a jump each time.
fn reads(criterion: &mut Criterion) {
    let mut rng = generator(1);
    let mut order: Vec<u64> = (0..CELLS as u64).collect();
    for i in (1..CELLS).rev() {
        order.swap(i, below(i as u64 + 1, &mut rng) as usize);
    }
    order.truncate(SOME);
    let jumps: [(&str, u64); 3] = [("jump 1", 1), ("jump 2^30", 1 << 30), ("random jumps", 0)];
    for (shape, cells) in [("sweep", CELLS), ("batch", SOME), ("call", 1)] {
        for (length, jump) in jumps {
            let mut group = group(criterion, &format!("mechanism/{shape}/{length}"), cells);
            for (name, mechanism, loss) in mechanisms() {
                let mut vector = vector(mechanism, loss, CELLS);
                let mut now = 1;
                group.bench_function(name, |bencher| {
                    bencher.iter(|| {
                        now += if jump > 0 { jump } else { 1 + below(1 << 30, &mut rng) };
                        vector.advance(now).expect("a step that is not past");
                        let asked = match shape {
                            "sweep" => Cells::All,
                            "batch" => Cells::Indices(&order[..]),
                            _ => Cells::Indices(&order[..1]),
                        };
                        black_box(vector.release(asked, &mut rng).expect("cells in range"))
                    });
                });
            }
            group.finish();
        }
    }
}

/// The least that a sweep must draw.
fn normals(criterion: &mut Criterion) {
    let mut rng = generator(1);
    let mut group = group(criterion, "mechanism/normals", CELLS);
    for count in [1, 2, 4, 6, 9] {
        group.bench_function(format!("{count} a cell"), |bencher| {
            bencher.iter(|| {
                let sum: f64 = (0..CELLS * count).map(|_| -> f64 { StandardNormal.sample(&mut rng) }).sum();
                black_box(sum)
            });
        });
    }
    group.finish();
}

criterion_group! {
    name = benches;
    // Pictures and resampling take longer than what is measured.
    config = Criterion::default().without_plots().nresamples(2_000);
    targets = reads, normals
}
criterion_main!(benches);
