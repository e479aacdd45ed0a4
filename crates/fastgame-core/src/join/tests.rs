//! The join beside a naive one: with the zero law releases are exact, so rows and medians can be compared. And what only a
//! look inside can reach: the cells of either side, the noise of both, counters at the edge of 64 bits.

use std::collections::BTreeMap;
use std::vec;
use std::vec::Vec;

use chacha20::ChaCha12Rng;
use proptest::prelude::*;
use rand_core::SeedableRng;

use super::*;
use crate::hash::tests::{PlainHash, Value, values};
use crate::privacy::Zcdp;
use crate::sketch::CountSketch;
use crate::vector::Cells;

fn builder(shape: SketchShape) -> JoinBuilder {
    JoinBuilder::new(ContinualVector::builder(1 << 20, Zcdp::new(0.5).unwrap()), shape)
}

fn shape(width: usize, depth: usize, max_weight: u32) -> SketchShape {
    SketchShape { width, depth, max_weight, hash_seed: 42 }
}

fn rng(seed: u64) -> ChaCha12Rng {
    ChaCha12Rng::seed_from_u64(seed)
}

fn raw(shape: SketchShape) -> RawSketch {
    RawSketch::new(shape, OnExcess::Error, Invalid::Raise).unwrap()
}

/// A raw sketch with all counters the same, where no test could bring them by updates: by way of its bytes.
fn all_at(shape: SketchShape, counter: i64) -> RawSketch {
    let mut bytes = raw(shape).to_bytes().unwrap();
    let head = bytes.len() - 8 * shape.cells();
    bytes[head..].chunks_exact_mut(8).for_each(|cell| cell.copy_from_slice(&counter.to_le_bytes()));
    bytes[48..56].copy_from_slice(&counter.unsigned_abs().to_le_bytes());
    RawSketch::from_bytes(&bytes).unwrap()
}

/// A join as it is defined: a map a row and side.
struct Naive {
    hash: PlainHash,
    rows: [Vec<BTreeMap<usize, i128>>; 2],
}

impl Naive {
    fn new(shape: SketchShape) -> Self {
        let hash = PlainHash::new(shape.hash_seed, shape.depth, shape.width.ilog2());
        Self { hash, rows: [vec![BTreeMap::new(); shape.depth], vec![BTreeMap::new(); shape.depth]] }
    }

    fn update(&mut self, side: Side, value: &Value, weight: i64) {
        for (row, (bucket, sign)) in self.rows[side as usize].iter_mut().zip(self.hash.places(value)) {
            *row.entry(bucket).or_default() += i128::from(sign * weight);
        }
    }

    fn products(&self) -> Vec<f64> {
        let [left, right] = &self.rows;
        let product = |(left, right): (&BTreeMap<usize, i128>, &BTreeMap<usize, i128>)| {
            left.iter().map(|(bucket, x)| x * right.get(bucket).unwrap_or(&0)).sum::<i128>() as f64
        };
        left.iter().zip(right).map(product).collect()
    }

    fn estimate(&self) -> f64 {
        let mut products = self.products();
        products.sort_unstable_by(f64::total_cmp);
        products[products.len() / 2]
    }
}

#[derive(Clone, Debug)]
enum Call {
    Update(Side, Vec<usize>, i64),
    Merge(Side, Vec<usize>, i64),
    Estimate,
}

fn calls() -> impl Strategy<Value = Vec<Call>> {
    let side = || prop_oneof![Just(Side::Left), Just(Side::Right)];
    let keys =
        || prop_oneof![4 => prop::collection::vec(0usize..12, 0..20), 1 => prop::collection::vec(0usize..12, 250..600)];
    let call = prop_oneof![
        3 => (side(), keys(), -5i64..=5).prop_map(|(side, keys, weight)| Call::Update(side, keys, weight)),
        1 => (side(), keys(), -5i64..=5).prop_map(|(side, keys, weight)| Call::Merge(side, keys, weight)),
        2 => Just(Call::Estimate),
    ];
    prop::collection::vec(call, 1..12)
}

fn depths() -> impl Strategy<Value = usize> {
    prop_oneof![Just(1), Just(3), Just(5), (0usize..32).prop_map(|half| 2 * half + 1), Just(63)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn rows_and_medians_are_those_of_a_naive_join(
        list in prop::collection::vec(values(), 12),
        calls in calls(),
        depth in depths(),
        bits in 5u32..=10,
        hash_seed in any::<u64>(),
    ) {
        let shape = SketchShape { width: 1 << bits, depth, max_weight: 5, hash_seed };
        let (mut join, mut naive) = (builder(shape).build_exact().unwrap(), Naive::new(shape));
        let keyer = join.keyer();
        for call in calls.iter().chain([&Call::Estimate]) {
            match call {
                Call::Update(side, indices, weight) | Call::Merge(side, indices, weight) => {
                    let keys: Vec<Key> = indices.iter().map(|&index| list[index].key(keyer)).collect();
                    if matches!(call, Call::Merge(..)) {
                        let mut raw = raw(shape);
                        raw.update(&keys, Weights::All(*weight)).unwrap();
                        join.merge(*side, &raw).unwrap();
                    } else {
                        prop_assert_eq!(join.update(*side, &keys, Weights::All(*weight)), Ok(0));
                    }
                    indices.iter().for_each(|&index| naive.update(*side, &list[index], *weight));
                }
                Call::Estimate => {
                    let estimate = join.estimate_with_error(&mut rng(1)).unwrap();
                    prop_assert_eq!(&estimate.rows, &naive.products());
                    prop_assert_eq!(estimate.value, naive.estimate());
                    prop_assert_eq!(join.estimate(&mut rng(1)).unwrap(), naive.estimate());
                    let interval = join.estimate_with_interval(0.9, &mut rng(1)).unwrap();
                    prop_assert_eq!(interval.value, naive.estimate());
                    prop_assert!(interval.lower <= interval.value && interval.value <= interval.upper);
                    join.advance(join.vector.now() + 1).unwrap();
                }
            }
        }
    }

    /// The sensitivity: `depth` cells of one side, by the weight.
    #[test]
    fn one_update_moves_one_cell_a_row_of_one_side(value in values(), weight in -9i64..=9, depth in depths(), left: bool) {
        let shape = shape(64, depth, 9);
        let mut join = builder(shape).build_exact().unwrap();
        let side = if left { Side::Left } else { Side::Right };
        join.update(side, &[value.key(join.keyer())], Weights::All(weight)).unwrap();
        let cells = join.vector.release_all(&mut rng(1)).unwrap();
        let (first, second) = cells.split_at(shape.cells());
        let (moved, still) = if left { (first, second) } else { (second, first) };
        prop_assert!(still.iter().all(|&cell| cell == 0.0));
        for row in moved.chunks(64) {
            prop_assert_eq!(row.iter().map(|cell| cell.abs()).sum::<f64>(), weight.abs() as f64);
            prop_assert_eq!(row.iter().map(|cell| cell * cell).sum::<f64>(), (weight * weight) as f64);
        }
    }
}

#[test]
fn the_noise_is_for_one_side_a_time() {
    let base = || ContinualVector::builder(1 << 10, Zcdp::new(0.5).unwrap());
    let of = |contributions| builder(shape(64, 5, 3)).contributions(contributions).vector().unwrap().check().unwrap();
    // s^2 = tau L2^2 at rho = 1/2.
    let l2 = of(1).calibration.scale() / of(1).calibration.tau().sqrt();
    assert!((l2 - 3.0 * 5f64.sqrt()).abs() < 1e-12, "{l2}");
    assert_eq!(of(1).size, 2 * 5 * 64);
    // As a sketch of one side; `contributions` for both sides together, whichever they fall on.
    let sketch = SketchBuilder::new(base(), shape(64, 5, 3)).build().unwrap();
    let join = JoinBuilder::new(base(), shape(64, 5, 3)).build().unwrap();
    assert_eq!(join.vector().noise_std(), sketch.vector().noise_std());
    assert!((of(4).calibration.scale() / of(1).calibration.scale() - 4.0).abs() < 1e-12);
    // One step: Lemma 5.2 with `depth * max_weight^2 / (2 rho)`.
    let once = JoinSize::builder(1, Zcdp::new(0.02).unwrap()).depth(5).max_weight(3).build().unwrap();
    assert!((once.vector().noise_std().powi(2) / (5.0 * 9.0 / 0.04) - 1.0).abs() < 1e-9);
}

#[test]
fn a_join_of_a_relation_with_itself_is_its_second_moment() {
    let shape = shape(1 << 12, 5, 9);
    let keys: Vec<u64> = (0..100).collect();
    let weights: Vec<i64> = (0..100).map(|i| i % 19 - 9).collect();
    let mut join = builder(shape).build_exact().unwrap();
    let mut sketch =
        SketchBuilder::new(ContinualVector::builder(9, Zcdp::new(0.5).unwrap()), shape).build_exact().unwrap();
    join.update(Side::Left, &keys, Weights::Each(&weights)).unwrap();
    join.update(Side::Right, &keys, Weights::Each(&weights)).unwrap();
    sketch.update(&keys, Weights::Each(&weights)).unwrap();
    let cells = sketch.vector().parameters().size();
    let estimate = join.estimate_with_error(&mut rng(1)).unwrap();
    let (moment, _) = sketch.second_moment(&mut rng(1)).unwrap();
    let mean = estimate.rows.iter().sum::<f64>() / 5.0;
    // The exact law still counts on the rounding to the lattice, which stands in `moment`.
    assert!((mean - moment).abs() <= cells as f64 * join.vector.release_variance(), "{mean} {moment}");
}

/// Empty relations, 2 * 5 * 4096 cells at two steps; alpha 1e-6 in all. A shared stream or shared cells would show as a
/// correlation of 1.
#[test]
fn the_sides_do_not_share_noise_also_under_a_seed() {
    let builder = builder(shape(1 << 12, 5, 1));
    let mut rng = ChaCha12Rng::from_seed(builder.insecure_key("JoinSize", 7).unwrap());
    let mut join = builder.build().unwrap();
    for step in [1, 1000] {
        join.advance(step).unwrap();
        let cells = join.vector.release_all(&mut rng).unwrap();
        let (left, right) = cells.split_at(5 << 12);
        let v = join.vector.release_variance();
        // At the same place, and a few places and rows off.
        for shift in [0, 1, 2, 5, 1 << 12] {
            let product: f64 = left.iter().zip(right.iter().cycle().skip(shift)).map(|(x, y)| x * y).sum();
            let score = product / (v * (left.len() as f64).sqrt());
            assert!(score.abs() < 5.9, "{shift}: {score}");
        }
        let squares: f64 = cells.iter().map(|cell| cell * cell).sum();
        let score = (squares / v - cells.len() as f64) / (2.0 * cells.len() as f64).sqrt();
        assert!(score.abs() < 5.9, "{score}");
    }
    // Other parameters, other noise.
    let other = |builder: &JoinBuilder| builder.insecure_key("JoinSize", 7).unwrap();
    assert_ne!(other(&builder), other(&builder.clone().hash_seed(1)));
    assert_ne!(other(&builder), other(&builder.clone().width(1 << 11)));
    // A join's cells are not those of a sketch with half as many rows.
    let sketch = CountSketch::builder(1 << 20, Zcdp::new(0.5).unwrap()).width(1 << 12).depth(5).hash_seed(42);
    assert_ne!(other(&builder), sketch.insecure_key("JoinSize", 7).unwrap());
}

/// What an estimate draws is all cells of the step, whatever was updated in between.
#[test]
fn an_estimate_draws_every_cell_and_repeats_at_the_same_step() {
    let shape = shape(32, 3, 1);
    let mut join = builder(shape).build().unwrap();
    for (step, update) in [(1, Some(Side::Left)), (2, None), (3, Some(Side::Right)), (700, None)] {
        join.advance(step).unwrap();
        if let Some(side) = update {
            join.update(side, &[1u64], Weights::All(1)).unwrap();
        }
        let pending = join.vector.draw(Cells::<u64>::All, &mut rng(step)).unwrap();
        assert_eq!(pending.drawn_cells(), (0..192).collect::<Vec<u64>>());
        drop(pending);
        let first = join.estimate(&mut rng(step)).unwrap();
        assert_eq!(
            join.update(Side::Left, &[1u64], Weights::All(1)),
            Err(Error::Sealed { now: step, horizon: 1 << 20 })
        );
        assert_eq!(join.merge(Side::Right, &raw(shape)), Err(Error::Sealed { now: step, horizon: 1 << 20 }));
        assert_eq!(join.estimate(&mut rng(9)).unwrap(), first);
        let pending = join.vector.draw(Cells::<u64>::All, &mut rng(9)).unwrap();
        assert!(pending.drawn_cells().is_empty());
    }
}

#[test]
fn counters_at_the_edge_of_64_bits_give_finite_answers() {
    for depth in [1, 5] {
        let shape = shape(1 << 12, depth, 1 << 31);
        for (left, right) in [(i64::MAX, i64::MAX), (i64::MAX, -i64::MAX), (i64::MAX, 1), (1 << 53, (1 << 53) + 1)] {
            for exact in [true, false] {
                let built = if exact { builder(shape).build_exact() } else { builder(shape).build() };
                let mut join = built.unwrap();
                join.merge(Side::Left, &all_at(shape, left)).unwrap();
                join.merge(Side::Right, &all_at(shape, right)).unwrap();
                let estimate = join.estimate_with_error(&mut rng(1)).unwrap();
                let truth = 4096.0 * left as f64 * right as f64;
                let (v, squares) = (join.vector.release_variance(), (left as f64).powi(2) + (right as f64).powi(2));
                let noise = if exact { 0.0 } else { 6.0 * (4096.0 * v * (squares + v)).sqrt() };
                for row in &estimate.rows {
                    assert!((row - truth).abs() <= truth.abs() * 2f64.powi(-45) + noise, "{row} {truth}");
                }
                let interval = join.estimate_with_interval(0.999_999, &mut rng(1)).unwrap();
                let figures = [estimate.std, estimate.moments[0], interval.lower, interval.upper];
                assert!(figures.iter().chain(&estimate.std_of_rows).all(|figure| figure.is_finite()));
            }
        }
        // One side is full, the other is not; what does not fit changes nothing.
        let mut join = builder(shape).build_exact().unwrap();
        join.merge(Side::Right, &all_at(shape, i64::MAX - 5)).unwrap();
        join.update(Side::Left, &[1u64], Weights::All(1 << 31)).unwrap();
        let overflow = join.merge(Side::Right, &all_at(shape, 6));
        assert_eq!(overflow, Err(Error::Overflow { position: 0 }));
        join.merge(Side::Left, &all_at(shape, 6)).unwrap();
        join.merge(Side::Right, &all_at(shape, 5)).unwrap();
        assert!(join.estimate(&mut rng(1)).unwrap().is_finite());
    }
}

#[test]
fn what_does_not_fit_is_named() {
    let ours = shape(64, 5, 2);
    let mut join = builder(ours).build_exact().unwrap();
    let theirs = SketchShape { hash_seed: 1, ..ours };
    let incompatible = Error::Incompatible { field: "hash_seed", ours: 42u64.into(), theirs: 1u64.into() };
    assert_eq!(join.merge(Side::Left, &raw(theirs)), Err(incompatible));
    let excess = Error::Excess { position: 1, bound: 2.0, what: "weight" };
    assert_eq!(join.update(Side::Right, &[1u64, 2], Weights::Each(&[1, 3])), Err(excess));
    assert!(matches!(join.update(Side::Right, &[1u64, 2], Weights::Each(&[1])), Err(Error::Shape { .. })));
    for confidence in [0.0, 1.0, f64::NAN] {
        let error = join.estimate_with_interval(confidence, &mut rng(1));
        assert!(matches!(error, Err(Error::Parameter { name: "confidence", .. })));
    }
    assert!(!join.vector.is_sealed());
    let estimate = join.estimate_with_error(&mut rng(1)).unwrap();
    assert_eq!((estimate.value, estimate.rows.len()), (0.0, 5));
    assert!(estimate.interval_of_rows(1.0).is_err() && estimate.interval_of_rows(0.95).is_ok());
    let one =
        builder(SketchShape { depth: 1, ..ours }).build_exact().unwrap().estimate_with_error(&mut rng(1)).unwrap();
    assert!(
        one.std_of_rows.is_none() && matches!(one.interval_of_rows(0.9), Err(Error::Parameter { name: "depth", .. }))
    );
    for bad in [
        SketchShape { width: 16, ..ours },
        SketchShape { width: 63, ..ours },
        SketchShape { depth: 4, ..ours },
        SketchShape { depth: 65, ..ours },
    ] {
        assert!(matches!(builder(bad).build(), Err(Error::Parameter { .. })));
    }
    let tolerant = builder(ours).invalid(Invalid::Drop).build_exact().map(|mut join| {
        let dropped = join.update(Side::Right, &[1u64, 2], Weights::Each(&[1, 3]));
        join.update(Side::Left, &[1u64, 2], Weights::All(2)).unwrap();
        (dropped, join.estimate(&mut rng(1)))
    });
    assert_eq!(tolerant.unwrap(), (Ok(1), Ok(2.0)));
}

/// The bound by the tail of any side is the exact one of a binomial, and no split over both sides does more.
#[test]
fn the_intervals_tail_is_the_worst_over_both_sides() {
    let median_beyond = |depth: usize, p: f64| -> f64 {
        let binomial = |k: usize| (0..k).fold(1.0, |product, i| product * (depth - i) as f64 / (i + 1) as f64);
        (depth / 2 + 1..=depth).map(|k| binomial(k) * p.powi(k as i32) * (1.0 - p).powi((depth - k) as i32)).sum()
    };
    for depth in [1usize, 3, 5, 9, 63] {
        for tail in [1e-6, 0.01, 0.05, 0.3, 0.5] {
            let q = tail_of_one_row_on_any_side(depth, tail);
            assert!((median_beyond(depth, q) / tail - 1.0).abs() < 1e-6, "{depth} {tail}: {q}");
            for share in [0.1, 0.3, 0.5] {
                assert!(
                    median_beyond(depth, share * q) + median_beyond(depth, (1.0 - share) * q) <= tail * (1.0 + 1e-6)
                );
            }
        }
    }
}
