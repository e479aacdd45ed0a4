//! Updates of joins and sketches, boxes of range counters. (Releases of joins are in `joins.rs`.)
//!
//! `cargo bench -p fastgame-bench --bench structures`.

use std::hint::black_box;
use std::time::Duration;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use fastgame_bench::generator;
use fastgame_core::{ContinualVector, CountSketch, JoinSize, RangeBuilder, RangeShape, Side, Weights, Zcdp};

const HORIZON: u64 = 1 << 20;

fn group<'a>(criterion: &'a mut Criterion, name: &str) -> BenchmarkGroup<'a, WallTime> {
    let mut group = criterion.benchmark_group(name);
    group.warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(2)).sample_size(20);
    group
}

fn budget() -> Zcdp {
    Zcdp::new(0.5).expect("a budget that is allowed")
}

/// An update of a side does what one of a CountSketch does.
fn updates(criterion: &mut Criterion) {
    let mut group = group(criterion, "update of 65,536 keys");
    let keys: Vec<u64> = (0..65_536u64).map(|key| key.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
    group.throughput(Throughput::Elements(keys.len() as u64));
    let mut join = JoinSize::builder(HORIZON, budget()).depth(5).width(1 << 16).build().expect("allowed parameters");
    group.bench_function("a side of a join", |bencher| {
        bencher.iter(|| black_box(join.update(Side::Left, &keys, Weights::All(1)).expect("an open step")));
    });
    let sketch = CountSketch::builder(HORIZON, budget()).depth(5).width(1 << 16);
    let mut sketch = sketch.build().expect("allowed parameters");
    group.bench_function("a sketch", |bencher| {
        bencher.iter(|| black_box(sketch.update(&keys, Weights::All(1)).expect("an open step")));
    });
    group.finish();
}

/// A box of a grid of 2^12 x 2^12 at a new step and at the same one, where nothing is drawn.
fn ranges(criterion: &mut Criterion) {
    let mut group = group(criterion, "box of 2^12 x 2^12");
    let mut rng = generator(1);
    for horizon in [1 << 10, 1 << 60] {
        let shape = RangeShape::new(&[1 << 12, 1 << 12]);
        let base = ContinualVector::builder(horizon, budget());
        let mut counter = RangeBuilder::new(base, shape).build().expect("allowed parameters");
        let mut place = 1u64;
        let mut next = move || {
            place = place.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (place >> 40) % 2048
        };
        let id = |what: &str| BenchmarkId::new(what, format!("T = 2^{}", horizon.trailing_zeros()));
        group.bench_function(id("random boxes"), |bencher| {
            bencher.iter(|| {
                let (x, y) = (next(), next());
                let boxes = [(x, x + 1 + next()), (y, y + 1 + next())];
                black_box(counter.count(&boxes, &mut rng).expect("a generator that works"))
            });
        });
        group.bench_function(id("one box again"), |bencher| {
            let boxes = [(100, 3000), (700, 2900)];
            bencher.iter(|| black_box(counter.count(&boxes, &mut rng).expect("a generator that works")));
        });
    }
    group.finish();
}

criterion_group! {
    name = benches;
    // Pictures and resampling take longer than what is measured.
    config = Criterion::default().without_plots().nresamples(2_000);
    targets = updates, ranges
}
criterion_main!(benches);
