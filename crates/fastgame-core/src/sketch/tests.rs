//! The sketch beside a naive one and a plain map: with the zero law releases are exact, so cells and medians can be
//! compared. And what only a look inside can reach: counters at the edge of 64 bits, the form of raw sketches in bytes.

use std::collections::BTreeMap;
use std::format;
use std::vec;
use std::vec::Vec;

use chacha20::ChaCha12Rng;
use proptest::prelude::*;
use rand_core::SeedableRng;

use super::*;
use crate::hash::tests::{PlainHash, Value, bytes, text, values};
use crate::privacy::Zcdp;
use crate::quantile::median_variance;

fn builder(shape: SketchShape) -> SketchBuilder {
    SketchBuilder::new(ContinualVector::builder(1 << 20, Zcdp::new(0.5).unwrap()), shape)
}

fn shape(width: usize, depth: usize, max_weight: u32) -> SketchShape {
    SketchShape { width, depth, max_weight, hash_seed: 42 }
}

fn rng() -> ChaCha12Rng {
    ChaCha12Rng::seed_from_u64(1)
}

fn raw(shape: SketchShape) -> RawSketch {
    RawSketch::new(shape, OnExcess::Error, Invalid::Raise).unwrap()
}

/// All cells at the present step of an exact sketch; the clock moves on so that updates may follow.
fn cells(sketch: &mut CountSketch) -> Vec<i64> {
    let cells = sketch.vector.release_all(&mut rng()).unwrap();
    sketch.advance(sketch.vector.now() + 1).unwrap();
    cells.into_iter().map(|cell| cell as i64).collect()
}

fn sorted_median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}

/// A CountSketch as it is defined: a map a row.
struct Naive {
    hash: PlainHash,
    rows: Vec<BTreeMap<usize, i64>>,
}

impl Naive {
    fn new(shape: SketchShape) -> Self {
        let hash = PlainHash::new(shape.hash_seed, shape.depth, shape.width.ilog2());
        Self { hash, rows: vec![BTreeMap::new(); shape.depth] }
    }

    fn update(&mut self, value: &Value, weight: i64) {
        for (row, (bucket, sign)) in self.rows.iter_mut().zip(self.hash.places(value)) {
            *row.entry(bucket).or_default() += sign * weight;
        }
    }

    fn estimate(&self, value: &Value) -> f64 {
        let places = self.hash.places(value);
        let rows = self.rows.iter().zip(places);
        let values: Vec<f64> =
            rows.map(|(row, (bucket, sign))| (sign * row.get(&bucket).copied().unwrap_or(0)) as f64).collect();
        sorted_median(&values)
    }

    fn cells(&self, width: usize) -> Vec<i64> {
        let all = |row: &BTreeMap<usize, i64>| -> Vec<i64> {
            (0..width).map(|bucket| row.get(&bucket).copied().unwrap_or(0)).collect()
        };
        self.rows.iter().flat_map(all).collect()
    }
}

#[derive(Clone, Debug)]
enum Call {
    /// Keys, by their places in a list, with a weight each.
    Each(Vec<usize>, Vec<i64>),
    All(Vec<usize>, i64),
    /// Each with its weight, by way of a raw sketch.
    Merge(Vec<usize>, Vec<i64>),
    Estimate(Vec<usize>),
    Cells,
}

fn calls() -> impl Strategy<Value = Vec<Call>> {
    // More than one block of keys now and then.
    let some =
        || prop_oneof![4 => prop::collection::vec(0usize..40, 0..20), 1 => prop::collection::vec(0usize..40, 250..600)];
    let pairs = || {
        some().prop_flat_map(|keys| {
            let weights = prop::collection::vec(-5i64..=5, keys.len());
            (Just(keys), weights)
        })
    };
    let call = prop_oneof![
        3 => pairs().prop_map(|(keys, weights)| Call::Each(keys, weights)),
        2 => (some(), -5i64..=5).prop_map(|(keys, weight)| Call::All(keys, weight)),
        2 => pairs().prop_map(|(keys, weights)| Call::Merge(keys, weights)),
        2 => some().prop_map(Call::Estimate),
        1 => Just(Call::Cells),
    ];
    prop::collection::vec(call, 1..12)
}

fn depths() -> impl Strategy<Value = usize> {
    prop_oneof![Just(1), Just(3), Just(5), Just(5), Just(7), (0usize..32).prop_map(|half| 2 * half + 1), Just(63)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn cells_and_medians_are_those_of_a_naive_sketch(
        list in prop::collection::vec(values(), 40),
        calls in calls(),
        depth in depths(),
        bits in 0u32..=12,
        hash_seed in any::<u64>(),
    ) {
        let shape = SketchShape { width: 1 << bits, depth, max_weight: 5, hash_seed };
        let (mut sketch, mut naive) = (builder(shape).build_exact().unwrap(), Naive::new(shape));
        let keyer = sketch.keyer();
        let keys_of = |indices: &[usize]| -> Vec<Key> { indices.iter().map(|&index| list[index].key(keyer)).collect() };
        for call in &calls {
            match call {
                Call::Each(indices, weights) => {
                    prop_assert_eq!(sketch.update(&keys_of(indices), Weights::Each(weights)), Ok(0));
                    indices.iter().zip(weights).for_each(|(&index, &weight)| naive.update(&list[index], weight));
                }
                Call::All(indices, weight) => {
                    prop_assert_eq!(sketch.update(&keys_of(indices), Weights::All(*weight)), Ok(0));
                    indices.iter().for_each(|&index| naive.update(&list[index], *weight));
                }
                Call::Merge(indices, weights) => {
                    let mut raw = sketch.raw().unwrap();
                    prop_assert_eq!(raw.update(&keys_of(indices), Weights::Each(weights)), Ok(0));
                    sketch.merge(&raw).unwrap();
                    indices.iter().zip(weights).for_each(|(&index, &weight)| naive.update(&list[index], weight));
                }
                Call::Estimate(indices) => {
                    let expected: Vec<f64> = indices.iter().map(|&index| naive.estimate(&list[index])).collect();
                    prop_assert_eq!(sketch.estimate(&keys_of(indices), &mut rng()).unwrap(), expected);
                    sketch.advance(sketch.vector.now() + 1).unwrap();
                }
                Call::Cells => prop_assert_eq!(cells(&mut sketch), naive.cells(shape.width)),
            }
        }
        prop_assert_eq!(cells(&mut sketch), naive.cells(shape.width));
        // Few keys are looked up, many are taken from a sweep over all cells: the same medians.
        let all: Vec<usize> = (0..list.len()).cycle().take(shape.cells().min(5000) / depth / 4 + 1).collect();
        let swept = sketch.estimate(&keys_of(&all), &mut rng()).unwrap();
        for (&index, &estimate) in all.iter().zip(&swept).take(3) {
            prop_assert_eq!(sketch.estimate(&keys_of(&[index]), &mut rng()).unwrap(), [estimate]);
            prop_assert_eq!(naive.estimate(&list[index]), estimate);
        }
    }

    #[test]
    fn one_update_moves_one_cell_a_row_by_its_weight(value in values(), weight in -9i64..=9, depth in depths()) {
        let mut sketch = builder(shape(64, depth, 9)).build_exact().unwrap();
        let key = value.key(sketch.keyer());
        sketch.update(&[key], Weights::All(weight)).unwrap();
        for row in cells(&mut sketch).chunks(64) {
            prop_assert_eq!(row.iter().map(|cell| cell.abs()).sum::<i64>(), weight.abs());
            prop_assert_eq!(row.iter().map(|cell| cell * cell).sum::<i64>(), weight * weight);
        }
    }

    #[test]
    fn parts_merged_in_any_order_and_grouping_are_one_pass(
        updates in prop::collection::vec((0usize..6, values(), -5i64..=5), 0..60),
        order in Just((0..6).collect::<Vec<usize>>()).prop_shuffle(),
        groups in prop::collection::vec(0usize..6, 6),
        depth in depths(),
    ) {
        let shape = shape(32, depth, 5);
        let (mut one_pass, mut parts) = (raw(shape), vec![raw(shape); 6]);
        let keyer = one_pass.keyer();
        for (part, value, weight) in &updates {
            one_pass.update(&[value.key(keyer)], Weights::All(*weight)).unwrap();
            parts[*part].update(&[value.key(keyer)], Weights::All(*weight)).unwrap();
        }
        // Straight into one; groups first, some of them through bytes; into a live sketch.
        let mut straight = raw(shape);
        order.iter().for_each(|&part| straight.merge(&parts[part]).unwrap());
        prop_assert_eq!(straight.to_bytes().unwrap(), one_pass.to_bytes().unwrap());
        let mut grouped = vec![raw(shape); 6];
        order.iter().for_each(|&part| grouped[groups[part]].merge(&parts[part]).unwrap());
        let mut together = RawSketch::from_bytes(&grouped[0].to_bytes().unwrap()).unwrap();
        for group in &grouped[1..] {
            together.merge(&RawSketch::from_bytes(&group.to_bytes().unwrap()).unwrap()).unwrap();
        }
        prop_assert_eq!(together.to_bytes().unwrap(), one_pass.to_bytes().unwrap());
        let mut live = builder(shape).build_exact().unwrap();
        for &part in &order {
            live.merge(&parts[part]).unwrap();
            live.advance(live.vector.now() + 7).unwrap();
        }
        prop_assert_eq!(cells(&mut live), one_pass.counters);
    }
}

/// However many keys are hashed at once, and whether their bits just fill a table or a pass or just do not.
#[test]
fn batches_of_every_size_add_what_single_updates_add() {
    let edges = [(5, 18), (7, 13), (9, 10), (63, 0), (63, 1), (5, 12), (31, 3), (33, 3), (1, 18)];
    let sizes = [
        0,
        1,
        2,
        3,
        7,
        8,
        9,
        15,
        16,
        17,
        31,
        32,
        33,
        63,
        64,
        65,
        255,
        256,
        257,
        BLOCK - 1,
        BLOCK,
        BLOCK + 1,
        2 * BLOCK + 9,
    ];
    for (depth, bits) in edges {
        let shape = shape(1 << bits, depth, 1000);
        let (mut sketch, mut naive) = (raw(shape), Naive::new(shape));
        let mut next = 0u64;
        for size in sizes {
            let keys: Vec<u64> = (0..size as u64).map(|i| next + i * i).collect();
            let weights: Vec<i64> = (0..size as i64).map(|i| i % 1000 - 300).collect();
            sketch.update(&keys, Weights::Each(&weights)).unwrap();
            sketch.update(&keys, Weights::All(-7)).unwrap();
            keys.iter().zip(&weights).for_each(|(&key, weight)| naive.update(&Value::Unsigned(key), weight - 7));
            next += 13;
        }
        assert!(sketch.counters == naive.cells(shape.width), "{depth} rows of 2^{bits}");
    }
}

#[test]
fn batches_of_every_size_estimate_what_single_keys_do() {
    for depth in [3, 5] {
        let mut sketch = builder(shape(1 << 9, depth, 1000)).build_exact().unwrap();
        let keys: Vec<u64> = (0..2 * BLOCK as u64 + 9).map(|i| i * i).collect();
        sketch.update(&keys, Weights::All(3)).unwrap();
        let single: Vec<f64> = keys.iter().map(|&key| sketch.estimate(&[key], &mut rng()).unwrap()[0]).collect();
        for size in [1, 16, 17, 300, BLOCK - 1, BLOCK, BLOCK + 1, keys.len()] {
            assert_eq!(
                sketch.estimate(&keys[..size], &mut rng()).unwrap(),
                single[..size],
                "{depth} rows, {size} keys"
            );
        }
    }
}

#[test]
fn with_room_enough_estimates_are_the_counts_of_a_plain_map() {
    let mut sketch = builder(shape(1 << 12, 9, 7)).build_exact().unwrap();
    let keyer = sketch.keyer();
    let of_kind: [&dyn Fn(u64) -> Value; 5] = [
        &Value::Unsigned,
        &|i| Value::Signed(-1 - i as i64),
        &|i| text(&format!("{i}")),
        &|i| bytes(format!("{i}").as_bytes()),
        &|i| Value::Composite(vec![Value::Unsigned(i), text("leg")]),
    ];
    let mut counts: BTreeMap<Value, i64> = BTreeMap::new();
    for step in 1..=20u64 {
        for i in 0..200 {
            let value = of_kind[(i % 5) as usize](i % 41);
            // Insertions and as many deletions; some keys come back to zero.
            let weight = ((i * 31 + step * 17) % 15) as i64 - 7;
            sketch.update(&[value.key(keyer)], Weights::All(weight)).unwrap();
            *counts.entry(value).or_default() += weight;
        }
        let keys: Vec<Key> = counts.keys().map(|value| value.key(keyer)).collect();
        let expected: Vec<f64> = counts.values().map(|&count| count as f64).collect();
        assert_eq!(sketch.estimate(&keys, &mut rng()).unwrap(), expected);
        assert_eq!(sketch.estimate(&[keyer.text("never seen")], &mut rng()).unwrap(), [0.0]);
        sketch.advance(step + 1).unwrap();
    }
    assert_eq!(counts.len(), 200);
}

#[test]
fn what_does_not_fit_is_named_field_by_field() {
    let ours = SketchShape { width: 64, depth: 5, max_weight: 2, hash_seed: 1 };
    let mut theirs = SketchShape { width: 32, depth: 3, max_weight: 1, hash_seed: 2 };
    let incompatible =
        |field, ours: u64, theirs: u64| Err(Error::Incompatible { field, ours: ours.into(), theirs: theirs.into() });
    let (mut live, mut partial) = (builder(ours).build_exact().unwrap(), raw(ours));
    live.update(&[1u64], Weights::All(2)).unwrap();
    partial.update(&[1u64], Weights::All(2)).unwrap();
    let before = partial.to_bytes().unwrap();
    let mut check = |theirs: SketchShape, expected: Result<()>| {
        let mut other = raw(theirs);
        other.update(&[7u64], Weights::All(1)).unwrap();
        assert_eq!(live.merge(&other), expected);
        assert_eq!(partial.merge(&other), expected);
    };
    check(theirs, incompatible("width", 64, 32));
    theirs.width = 64;
    check(theirs, incompatible("depth", 5, 3));
    theirs.depth = 5;
    check(theirs, incompatible("max_weight", 2, 1));
    theirs.max_weight = 2;
    check(theirs, incompatible("hash_seed", 1, 2));
    assert_eq!(partial.to_bytes().unwrap(), before);
    assert_eq!(cells(&mut live), partial.counters);
    theirs.hash_seed = 1;
    let mut other = raw(theirs);
    other.update(&[7u64], Weights::All(1)).unwrap();
    live.merge(&other).unwrap();
    partial.merge(&other).unwrap();
    assert_eq!(cells(&mut live), partial.counters);
}

#[test]
fn at_a_sealed_step_updates_and_merges_are_refused() {
    let mut sketch = builder(shape(64, 3, 2)).build_exact().unwrap();
    let mut partial = sketch.raw().unwrap();
    partial.update(&[1u64, 2, 3], Weights::All(1)).unwrap();
    let wrong = raw(shape(32, 3, 2));
    sketch.merge(&partial).unwrap();
    let before = sketch.estimate(&[1u64, 2, 3, 4], &mut rng()).unwrap();
    let sealed = Error::Sealed { now: 1, horizon: 1 << 20 };
    assert_eq!(sketch.merge(&partial), Err(sealed));
    assert_eq!(sketch.merge(&wrong), Err(sealed));
    assert_eq!(sketch.update(&[1u64], Weights::All(1)), Err(sealed));
    assert_eq!(sketch.update(&[1u64], Weights::All(100)), Err(sealed));
    assert_eq!(sketch.estimate(&[1u64, 2, 3, 4], &mut rng()).unwrap(), before);
    sketch.advance(2).unwrap();
    assert_eq!(sketch.estimate(&[1u64, 2, 3, 4], &mut rng()).unwrap(), before);
    sketch.advance(3).unwrap();
    sketch.merge(&partial).unwrap();
    assert_eq!(cells(&mut sketch), partial.counters.iter().map(|cell| 2 * cell).collect::<Vec<_>>());
}

// ---------------------------------------------------------------------------------------------------------------
// The edge of 64 bits
// ---------------------------------------------------------------------------------------------------------------

/// A raw sketch whose counters stand where no test could bring them by updates.
fn at(shape: SketchShape, counters: &[i64]) -> RawSketch {
    let mut raw = raw(shape);
    raw.counters.copy_from_slice(counters);
    raw.total = counters.iter().map(|counter| counter.unsigned_abs()).max().unwrap();
    // It could have come so from elsewhere.
    RawSketch::from_bytes(&raw.to_bytes().unwrap()).unwrap()
}

fn negated(raw: &RawSketch) -> RawSketch {
    at(raw.shape, &raw.counters.iter().map(|counter| -counter).collect::<Vec<_>>())
}

#[test]
fn a_merge_that_would_overflow_changes_nothing_and_names_the_cell() {
    let shape = shape(4, 1, 1);
    let edge = at(shape, &[7, i64::MAX - 5, -i64::MAX, 0]);
    for (bad, position) in [([3, 6, 0, 1], 1), ([3, 5, -2, 1], 2), ([3, i64::MAX, 0, 1], 1)] {
        let bad = at(shape, &bad);
        let mut live = builder(shape).build_exact().unwrap();
        live.merge(&edge).unwrap();
        assert_eq!(live.merge(&bad), Err(Error::Overflow { position }));
        // Floats do not show the difference up there: back to where they do.
        live.merge(&negated(&edge)).unwrap();
        assert_eq!(cells(&mut live), [0; 4]);
        live.merge(&bad).unwrap();
        assert_eq!(cells(&mut live).len(), 4);

        let mut partial = edge.clone();
        assert_eq!(partial.merge(&bad), Err(Error::Overflow { position: 0 }));
        assert_eq!(partial.to_bytes().unwrap(), edge.to_bytes().unwrap());
    }
    // Right up to both ends, and back.
    let mut live = builder(shape).build_exact().unwrap();
    let rest = at(shape, &[0, 5, -1, 0]);
    for raw in [&edge, &rest, &negated(&rest), &rest, &negated(&edge), &negated(&rest)] {
        live.merge(raw).unwrap();
    }
    assert_eq!(cells(&mut live), [0; 4]);
}

#[test]
fn an_update_that_would_overflow_changes_nothing_and_names_the_key() {
    let shape = shape(1, 1, 10);
    let mut live = builder(shape).build_exact().unwrap();
    // A key of the sign +1: the other end has room for one more.
    let positive = |key: &u64| {
        let mut sign = 0;
        live.hash.places(Key::from(*key), |_, place| sign = place.sign);
        sign == 1
    };
    let key = (0..).find(positive).unwrap();
    let edge = at(shape, &[i64::MAX - 5]);
    live.merge(&edge).unwrap();
    assert_eq!(live.update(&[key; 3], Weights::Each(&[1, 4, 1])), Err(Error::Overflow { position: 2 }));
    assert_eq!(live.update(&[key; 3], Weights::All(3)), Err(Error::Overflow { position: 1 }));
    live.update(&[key; 3], Weights::Each(&[-7, 10, 2])).unwrap();
    assert_eq!(live.update(&[key], Weights::All(1)), Err(Error::Overflow { position: 0 }));
    live.merge(&negated(&edge)).unwrap();
    assert_eq!(live.estimate(&[key], &mut rng()).unwrap(), [5.0]);

    let mut partial = edge.clone();
    assert_eq!(partial.update(&[key; 3], Weights::Each(&[1, 4, 1])), Err(Error::Overflow { position: 0 }));
    assert_eq!(partial.to_bytes().unwrap(), edge.to_bytes().unwrap());
    partial.update(&[key; 2], Weights::Each(&[1, 4])).unwrap();
    assert_eq!(partial.counters, [i64::MAX]);
}

/// One counter near the edge of 64 bits has all adds to its vector checked one by one. They must be the adds of the fast
/// path: a wrong sign, row or first cell would only show up there.
#[test]
fn checked_one_by_one_the_adds_are_the_same() {
    let (inner, first) = (shape(4, 3, 10), 12);
    let hash = builder(inner).build_exact().unwrap().hash;
    let keys: Vec<u64> = (0..40).collect();
    let weights: Vec<i64> = (0..40).map(|i| i % 21 - 10).collect();
    let mut partial = raw(inner);
    partial.update(&keys, Weights::Each(&weights)).unwrap();
    let [fast, checked] = [0, i64::MAX - 5].map(|edge| {
        let mut live = builder(shape(8, 3, 10)).build_exact().unwrap();
        live.vector.add(0, edge as u128, |counters| counters[0] += edge, |_| ()).unwrap();
        update_cells(&mut live.vector, first, &inner, &hash, &keys, Weights::Each(&weights)).unwrap();
        update_cells(&mut live.vector, first, &inner, &hash, &keys, Weights::All(-3)).unwrap();
        merge_cells(&mut live.vector, first, &inner, &partial).unwrap();
        live.vector.add(0, 0, |counters| counters[0] -= edge, |_| ()).unwrap();
        cells(&mut live)
    });
    assert!(fast[..first].iter().all(|&cell| cell == 0) && fast[first..].iter().any(|&cell| cell != 0));
    assert_eq!(checked, fast);
}

#[test]
fn the_largest_weights_double_until_they_overflow() {
    let shape = shape(64, 5, 1 << 31);
    let mut partial = raw(shape);
    partial.update(&[9u64], Weights::All(-(1 << 31))).unwrap();
    for _ in 0..31 {
        let same = partial.clone();
        partial.merge(&same).unwrap();
    }
    assert_eq!(partial.total, 1 << 62);
    let mut live = builder(shape).build_exact().unwrap();
    live.merge(&partial).unwrap();
    // -2^63 would fit and 2^63 does not.
    let position = partial.counters.iter().position(|&counter| counter == 1 << 62).unwrap();
    assert_eq!(live.merge(&partial), Err(Error::Overflow { position }));
    let same = partial.clone();
    assert_eq!(partial.merge(&same), Err(Error::Overflow { position: 0 }));
    assert_eq!(partial.to_bytes().unwrap(), same.to_bytes().unwrap());
    assert_eq!(live.estimate(&[9u64], &mut rng()).unwrap(), [-(2f64.powi(62))]);
}

// ---------------------------------------------------------------------------------------------------------------
// Weights and parameters
// ---------------------------------------------------------------------------------------------------------------

#[test]
fn weights_over_the_bound_are_refused_clipped_or_dropped() {
    let shape = shape(256, 5, 3);
    let keys = [1u64, 2, 3, 4, 1];
    let weights = [3, 4, i64::MIN, i64::MAX, -3];
    let excess = |position| Err(Error::Excess { position, bound: 3.0, what: "weight" });
    let clipped = [3, 3, -3, 3, -3];
    let dropped = [3, 0, 0, 0, -3];
    use {Invalid::Drop, Invalid::Raise, OnExcess::Clip};
    let cases = [
        (OnExcess::Error, Raise, excess(1), [0; 5]),
        (Clip, Raise, Ok(0), clipped),
        (OnExcess::Error, Drop, Ok(3), dropped),
        (Clip, Drop, Ok(0), clipped),
    ];
    for (on_excess, invalid, expected, equal) in cases {
        let mut live = builder(shape).on_excess(on_excess).invalid(invalid).build_exact().unwrap();
        let mut partial = live.raw().unwrap();
        assert_eq!((partial.on_excess, partial.invalid), (on_excess, invalid));
        let mut equivalent = raw(shape);
        equivalent.update(&keys, Weights::Each(&equal)).unwrap();
        assert_eq!(live.update(&keys, Weights::Each(&weights)), expected);
        assert_eq!(partial.update(&keys, Weights::Each(&weights)), expected);
        assert_eq!((&partial.counters, partial.total), (&equivalent.counters, equivalent.total));
        assert_eq!(cells(&mut live), equivalent.counters);

        // One weight for all.
        for weight in [4, -4, i64::MAX, i64::MIN] {
            let expected = match expected {
                Err(_) => excess(0),
                Ok(0) => Ok(0),
                Ok(_) => Ok(5),
            };
            let equal = if on_excess == Clip { weight.clamp(-3, 3) } else { 0 };
            equivalent.update(&keys, Weights::All(equal)).unwrap();
            assert_eq!(live.update(&keys, Weights::All(weight)), expected);
            assert_eq!(partial.update(&keys, Weights::All(weight)), expected);
            assert_eq!(live.update::<u64>(&[], Weights::All(weight)), Ok(0));
            assert_eq!(partial.counters, equivalent.counters);
            assert_eq!(cells(&mut live), equivalent.counters);
        }
        // Weights that do not match the keys are no element that could be dropped.
        for weights in [&weights[..4], &[]] {
            assert!(matches!(live.update(&keys, Weights::Each(weights)), Err(Error::Shape { .. })));
            assert!(matches!(partial.update(&keys, Weights::Each(weights)), Err(Error::Shape { .. })));
        }
        assert_eq!(cells(&mut live), partial.counters);
    }
}

#[test]
fn shapes_that_no_sketch_has_are_refused() {
    let good = shape(64, 5, 1);
    let bad = [
        ("width", SketchShape { width: 0, ..good }),
        ("width", SketchShape { width: 63, ..good }),
        ("width", SketchShape { width: 96, ..good }),
        ("width", SketchShape { width: MAX_WIDTH * 2, ..good }),
        ("depth", SketchShape { depth: 0, ..good }),
        ("depth", SketchShape { depth: 4, ..good }),
        ("depth", SketchShape { depth: 65, ..good }),
        ("max_weight", SketchShape { max_weight: 0, ..good }),
        ("max_weight", SketchShape { max_weight: (1 << 31) + 1, ..good }),
    ];
    for (field, shape) in bad {
        let errors = [
            builder(shape).build().unwrap_err(),
            builder(shape).plan().unwrap_err(),
            RawSketch::new(shape, OnExcess::Error, Invalid::Raise).unwrap_err(),
        ];
        for error in errors {
            assert!(matches!(error, Error::Parameter { name, .. } if name == field), "{shape:?}: {error:?}");
        }
    }
    for shape in [shape(1, 1, 1), shape(1, 63, 1 << 31), shape(1 << 12, 1, 1)] {
        assert_eq!(builder(shape).build().unwrap().shape(), shape);
        assert_eq!(raw(shape).shape(), shape);
    }
}

/// One update moves `depth` cells by `max_weight`: what the noise must be made for.
#[test]
fn the_noise_is_that_of_depth_times_the_squared_weight() {
    // tau of docs/proof-tree-calibration.md for h = 0, 1, 10, 20.
    for (horizon, tau) in [(1, 1.0), (2, 0.6666666667), (1 << 10, 1.7907827955), (1 << 20, 2.9019321698)] {
        for (depth, max_weight) in [(1, 1), (5, 1), (5, 30), (63, 1 << 31)] {
            let rho = 0.25;
            let base = CountSketch::builder(horizon, Zcdp::new(rho).unwrap());
            let builder = base.width(8).depth(depth).max_weight(max_weight);
            let expected = tau * depth as f64 * f64::from(max_weight).powi(2) / (2.0 * rho);
            let variance = |builder: &SketchBuilder| {
                let planned = builder.plan().unwrap().calibration().scale();
                let built = builder.build().unwrap();
                assert_eq!(built.vector.calibration().scale(), planned);
                planned * planned
            };
            let got = variance(&builder);
            assert!((got / expected - 1.0).abs() < 1e-9, "{horizon} {depth} {max_weight}: {got}, {expected}");
            // Three contributions: three times the norm.
            let three = builder.clone().contributions(3);
            assert!((variance(&three) / expected - 9.0).abs() < 1e-8);
            let noise = builder.build().unwrap().vector.noise_std();
            let levels = f64::from(horizon.ilog2());
            assert!((noise * noise / (expected * (levels + 1.0)) - 1.0).abs() < 1e-9);
        }
    }
    let lifetime = CountSketch::builder(1 << 10, Zcdp::new(0.5).unwrap()).unit(Unit::Lifetime).plan().unwrap();
    // docs/proof-tree-calibration.md, h = 10, depth 5.
    assert!((lifetime.calibration().scale().powi(2) / (5.0 * 3.0533940446) - 1.0).abs() < 1e-9);
}

/// 20,000 sums of squares of five rows of Laplace noise, of one and of three nodes, and nothing else, fixed seed: their mean square
/// error is the stated one within 4.9 standard errors (alpha 1e-6; 6 to 8 %), and 1.96 stated standard deviations, with the
/// released moment in them, cover at least as many as 4.9 standard deviations of a share below 93 %. Rejects normal noise's
/// `2 width v^2`, which is 2.5 and 1.5 times too small (asserted).
#[test]
fn second_moments_of_laplace_cells_have_the_stated_error() {
    const N: usize = 20_000;
    let (width, depth) = (64usize, 5usize);
    let mut rng = ChaCha12Rng::from_seed([8; 32]);
    for nodes in [1, 3] {
        let law = ReleaseLaw::Laplace { scale: 2.0, nodes };
        let v = law.variance();
        let moments: Vec<f64> = (0..N)
            .map(|_| {
                let square = |_| (2.0 * crate::release_law::tests::draw(nodes, &mut rng)).powi(2);
                (0..width * depth).map(square).sum::<f64>() / depth as f64 - width as f64 * v
            })
            .collect();
        let stated = variance_of_squares(&law, v, width as f64, 0.0) / depth as f64;
        let mean = moments.iter().map(|moment| moment * moment).sum::<f64>() / N as f64;
        let fourth = moments.iter().map(|moment| (moment * moment - mean).powi(2)).sum::<f64>() / N as f64;
        let band = 4.9 * (fourth / N as f64).sqrt();
        assert!((mean - stated).abs() < band, "{nodes}: {mean} {stated} {band}");
        let normal = variance_of_squares(&ReleaseLaw::Normal { std: v.sqrt() }, v, width as f64, 0.0) / depth as f64;
        assert!((mean - normal).abs() > 3.0 * band);
        let covers = |moment: &&f64| {
            moment.abs() <= 1.96 * (variance_of_squares(&law, v, width as f64, **moment) / depth as f64).sqrt()
        };
        let covered = moments.iter().filter(covers).count() as f64 / N as f64;
        assert!(covered > 0.93 - 4.9 * (0.93f64 * 0.07 / N as f64).sqrt(), "{nodes}: {covered}");
    }
}

// ---------------------------------------------------------------------------------------------------------------
// Bytes
// ---------------------------------------------------------------------------------------------------------------

fn filled() -> RawSketch {
    let mut raw = RawSketch::new(shape(8, 3, 1000), OnExcess::Clip, Invalid::Raise).unwrap();
    raw.update(&[1u64, 2, 3], Weights::Each(&[1000, -7, 12])).unwrap();
    raw
}

#[test]
fn raw_sketches_come_back_from_bytes() {
    for policy in 0..4 {
        let on_excess = if policy & 1 == 0 { OnExcess::Error } else { OnExcess::Clip };
        let invalid = if policy & 2 == 0 { Invalid::Raise } else { Invalid::Drop };
        for shape in [shape(1, 1, 1), shape(64, 63, 1 << 31), SketchShape { hash_seed: u64::MAX, ..shape(4096, 5, 7) }]
        {
            let mut raw = RawSketch::new(shape, on_excess, invalid).unwrap();
            let keyer = raw.keyer();
            for _ in 0..2 {
                let bytes = raw.to_bytes().unwrap();
                assert_eq!(bytes.len(), 64 + 8 * shape.cells());
                let back = RawSketch::from_bytes(&bytes).unwrap();
                assert_eq!((back.shape, back.on_excess, back.invalid), (shape, on_excess, invalid));
                assert_eq!((&back.counters, back.total), (&raw.counters, raw.total));
                assert_eq!(back.keyer(), keyer);
                assert_eq!(back.to_bytes().unwrap(), bytes);
                let keys = [keyer.text("a"), keyer.bytes(b"b"), Key::from(-1i64)];
                raw = back;
                raw.update(&keys, Weights::Each(&[1, -1, 1])).unwrap();
            }
        }
    }
    // The form is fixed: little-endian words.
    let bytes = filled().to_bytes().unwrap();
    let word = |i: usize| u64::from_le_bytes(bytes[8 * i..8 * i + 8].try_into().unwrap());
    assert_eq!(&bytes[..8], b"fg-raw-1");
    assert_eq!([1, 2, 3, 4, 5, 6].map(word), [8, 3, 1000, 42, 1, 1019]);
}

#[test]
fn bytes_of_another_length_are_refused() {
    let bytes = filled().to_bytes().unwrap();
    for len in 0..bytes.len() {
        assert!(matches!(RawSketch::from_bytes(&bytes[..len]), Err(Error::Shape { .. })), "{len}");
    }
    for more in 1..=16 {
        let longer: Vec<u8> = bytes.iter().copied().chain(vec![0; more]).collect();
        assert!(matches!(RawSketch::from_bytes(&longer), Err(Error::Shape { .. })), "{more}");
    }
}

#[test]
fn a_flipped_bit_is_refused_or_gives_a_sketch_that_bytes_can_have() {
    let raw = filled();
    let good = raw.to_bytes().unwrap();
    let mut refused = BTreeMap::new();
    for bit in 0..8 * good.len() {
        let mut bytes = good.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        match RawSketch::from_bytes(&bytes) {
            Err(Error::Shape { .. } | Error::Parameter { .. }) => *refused.entry((bit / 64).min(7)).or_insert(0) += 1,
            Err(error) => panic!("{error:?}"),
            Ok(other) => {
                assert_eq!(other.to_bytes().unwrap(), bytes);
                assert!(other.counters.iter().all(|counter| counter.unsigned_abs() <= other.total));
                assert!(other.total <= i64::MAX as u64 && other.shape.check().is_ok());
                // Its bound holds, so it can be used: at worst it does not fit.
                let merged = builder(raw.shape).build_exact().unwrap().merge(&other);
                assert_eq!(merged.is_ok(), other.shape == raw.shape, "bit {bit}");
            }
        }
    }
    // All of magic, width and depth; the high half of max_weight and all but the two lowest bits of the policy.
    assert_eq!([0, 1, 2].map(|field| refused[&field]), [64, 64, 64]);
    assert!(refused[&3] >= 32 && refused[&5] == 62 && refused[&6] >= 1);
}

#[test]
fn sizes_are_checked_before_anything_of_that_size_is_made() {
    let mut bytes = filled().to_bytes().unwrap();
    let huge = [1 << 20, 1 << 27, 1 << 30, 1 << 31, 1 << 32, 1 << 62, u64::MAX];
    for width in huge {
        for depth in [3, 63, 65, 1 << 32, u64::MAX] {
            bytes[8..16].copy_from_slice(&width.to_le_bytes());
            bytes[16..24].copy_from_slice(&depth.to_le_bytes());
            // 2^30 * 63 cells are 504 GB: made first, this would not return, or not so soon.
            let started = std::time::Instant::now();
            assert!(matches!(RawSketch::from_bytes(&bytes), Err(Error::Shape { .. } | Error::Parameter { .. })));
            assert!(started.elapsed().as_millis() < 500, "{width} * {depth}");
        }
    }
}

#[test]
fn what_is_shown_is_public() {
    let mut sketch = builder(shape(8, 3, 1000)).build_exact().unwrap();
    let mut other = builder(shape(8, 3, 1000)).build_exact().unwrap();
    sketch.update(&[1u64], Weights::All(777)).unwrap();
    assert_eq!(format!("{sketch:?}"), format!("{other:?}"));
    assert_eq!(format!("{:?}", filled()), format!("{:?}", raw(shape(8, 3, 1000))));
    other.advance(2).unwrap();
    assert_ne!(format!("{sketch:?}"), format!("{other:?}"));
    // A raw sketch starts empty, whatever the sketch holds that it is for.
    assert!(sketch.raw().unwrap().counters.iter().all(|&counter| counter == 0));
}

// ---------------------------------------------------------------------------------------------------------------
// Medians and their errors
// ---------------------------------------------------------------------------------------------------------------

#[test]
fn the_median_of_five_is_that_of_sorting() {
    // A network of comparisons that is right for zeros and ones is right for everything; and some of everything.
    let levels = [-3.0, -0.5, 0.0, 2.0, f64::INFINITY];
    for code in 0..5usize.pow(5) {
        let mut values: [f64; 5] = core::array::from_fn(|place| levels[code / 5usize.pow(place as u32) % 5]);
        assert_eq!(median(&mut values.clone()), sorted_median(&values), "{values:?}");
        values.reverse();
        assert_eq!(median(&mut values.clone()), sorted_median(&values), "{values:?}");
    }
}

proptest! {
    #[test]
    fn the_median_of_any_odd_number_is_that_of_sorting(values in prop::collection::vec(-1e3f64..1e3, 1..64)) {
        let odd = values.len() - (1 - values.len() % 2);
        if odd > 0 {
            prop_assert_eq!(median(&mut values[..odd].to_vec()), sorted_median(&values[..odd]));
        }
    }
}

/// Computed to 30 digits by quadrature in another system; for three it is 1 - sqrt(3)/pi.
#[test]
fn the_variance_of_a_median_of_normals_is_the_known_one() {
    let known = [
        (1, 1.0),
        (3, 1.0 - 3f64.sqrt() / core::f64::consts::PI),
        (5, 0.286_833_661_605_876),
        (7, 0.210_446_861_535_307),
        (9, 0.166_101_281_358_719),
        (11, 0.137_162_433_547_632),
        (31, 0.049_965_578_731_535),
        (63, 0.024_762_941_327_582),
    ];
    for (n, variance) in known {
        assert!((median_variance(n) / variance - 1.0).abs() < 1e-12, "{n}: {}", median_variance(n));
    }
    // To four digits.
    for (n, variance) in [(1, 1.0), (3, 0.4487), (5, 0.2868), (7, 0.2104), (9, 0.1661)] {
        assert!((median_variance(n) - variance).abs() < 1e-4);
        assert_eq!(builder(shape(8, n, 1)).build().unwrap().median_variance(), median_variance(n));
    }
}

/// Roots of the binomial equation, from the same source.
#[test]
fn the_tail_of_one_row_makes_that_of_the_median() {
    let known = [
        (1, 0.05, 0.05),
        (1, 0.5, 0.5),
        (3, 0.05, 0.1885986481004922),
        (3, 0.01, 0.08280030143208625),
        (5, 0.05, 0.2932655992693462),
        (5, 0.01, 0.1656583744029536),
        (5, 0.5, 0.7188723295792942),
        (7, 0.05, 0.368103135280166),
        (63, 0.05, 0.7577235254802392),
        (63, 0.01, 0.685033763963456),
    ];
    for (depth, tail, row) in known {
        assert!((tail_of_one_row(depth, tail) / row - 1.0).abs() < 1e-10, "{depth} {tail}");
    }
}

#[test]
fn an_error_bar_is_a_quantile_of_all_cells() {
    for (depth, bits) in [(1, 0), (5, 0), (1, 6), (3, 8), (5, 10), (63, 4)] {
        // So little noise that its own quantile, which is the least, seldom decides.
        let base = ContinualVector::builder(1 << 20, Zcdp::new(1e9).unwrap());
        let mut sketch = SketchBuilder::new(base, shape(1 << bits, depth, 1000)).build_exact().unwrap();
        let mut by_cells = 0;
        let keys: Vec<u64> = (0..500).collect();
        let weights: Vec<i64> = (0..500).map(|i| 1000 / (i + 1)).collect();
        sketch.update(&keys, Weights::Each(&weights)).unwrap();
        let mut sizes: Vec<i64> = cells(&mut sketch).into_iter().map(i64::abs).collect();
        sizes.sort_unstable();
        for confidence in [1e-9, 0.5, 0.9, 0.95, 0.99, 1.0 - 1e-12] {
            let estimates = sketch.estimate_with_error(&keys, confidence, &mut rng()).unwrap();
            assert_eq!(estimates.values, sketch.estimate(&keys, &mut rng()).unwrap());
            let share = 1.0 - tail_of_one_row(depth, 1.0 - confidence);
            let below = sizes.iter().filter(|&&size| (size as f64) < estimates.error).count() as f64;
            let at_most = sizes.iter().filter(|&&size| size as f64 <= estimates.error).count() as f64;
            let n = sizes.len() as f64;
            let least = sqrt(sketch.vector.release_variance()) * two_sided_quantile(1.0 - share);
            assert!(estimates.error >= least);
            if estimates.error == least {
                assert!(share * n <= at_most + 1.0);
                continue;
            }
            by_cells += 1;
            assert!(below <= share * n && share * n <= at_most + 1.0 / 1024.0, "{depth} {bits} {confidence}");
        }
        assert!(by_cells >= 2, "{depth} {bits}: {by_cells}");
        let std = sketch.estimate_with_std(&keys, &mut rng()).unwrap();
        let interval = sketch.estimate_with_error(&keys, 0.95, &mut rng()).unwrap();
        assert_eq!(std.values, interval.values);
        assert!((std.error * 1.959_963_984_540_054 - interval.error).abs() <= 1e-9 * interval.error);
    }
    let mut sketch = builder(shape(8, 3, 1)).build_exact().unwrap();
    for confidence in [0.0, 1.0, -0.5, 1.5, f64::NAN, f64::INFINITY] {
        let error = sketch.estimate_with_error(&[1u64], confidence, &mut rng()).unwrap_err();
        assert!(matches!(error, Error::Parameter { name: "confidence", .. }));
    }
    // Refused before anything was read.
    assert!(!sketch.vector.is_sealed());
}

#[test]
fn the_exact_second_moment_is_the_mean_of_the_rows_sums_of_squares() {
    // A large budget, so that the data are more than the noise that is subtracted.
    let base = ContinualVector::builder(1 << 20, Zcdp::new(1e6).unwrap());
    let mut sketch = SketchBuilder::new(base, shape(16, 5, 100)).build_exact().unwrap();
    sketch.update(&[1u64, 2, 3, 4, 1], Weights::Each(&[50, -20, 3, 7, 50])).unwrap();
    let sum: i64 = cells(&mut sketch).iter().map(|cell| cell * cell).sum();
    let v = sketch.vector.release_variance();
    let (moment, std) = sketch.second_moment(&mut rng()).unwrap();
    assert!((moment - (sum as f64 / 5.0 - 16.0 * v)).abs() < 1e-6);
    assert!(moment > 4.0 * 16.0 * v);
    let variance = (2.0 * moment * moment / 16.0 + 4.0 * v * moment + 2.0 * 16.0 * v * v) / 5.0;
    assert!((std * std / variance - 1.0).abs() < 1e-12);
}
