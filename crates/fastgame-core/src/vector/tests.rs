//! Exact counters: with the zero law releases are the counters themselves, so they can be compared with a plain model
//! of what an update does. And what only a look inside can reach: counters at the edge of 64 bits.

use std::collections::BTreeMap;
use std::vec;
use std::vec::Vec;

use chacha20::ChaCha12Rng;
use proptest::prelude::*;
use rand_core::SeedableRng;

use super::*;
use crate::privacy::Zcdp;

fn builder(cells: usize) -> Builder {
    ContinualVector::builder(1 << 20, Zcdp::new(0.5).unwrap()).cells(cells)
}

fn rng() -> ChaCha12Rng {
    ChaCha12Rng::seed_from_u64(1)
}

/// The plain model: whole units, added one by one.
#[derive(Clone, Debug)]
struct Model {
    cells: Vec<i128>,
    /// The number of units in one of the caller's.
    scale: f64,
    max_squared: i128,
    bound: f64,
    what: &'static str,
    drop: bool,
}

impl Model {
    /// Adds rows that stand at these positions, all or nothing.
    fn add(&mut self, rows: &[(usize, Vec<(i64, f64)>)]) -> Result<u64> {
        let (mut cells, mut dropped) = (self.cells.clone(), 0);
        for (row, (start, entries)) in rows.iter().enumerate() {
            match self.row(row, *start, entries) {
                Ok(sums) => sums.into_iter().for_each(|(cell, units)| cells[cell] += units),
                Err(_) if self.drop => dropped += 1,
                Err(error) => return Err(error),
            }
        }
        self.cells = cells;
        Ok(dropped)
    }

    fn row(&self, row: usize, start: usize, entries: &[(i64, f64)]) -> Result<BTreeMap<usize, i128>> {
        let mut sums = BTreeMap::new();
        for (position, &(index, value)) in (start..).zip(entries) {
            if index < 0 || index >= self.cells.len() as i64 {
                return Err(Error::Index { position, given: Given::Signed(index), size: self.cells.len() as u64 });
            }
            if !value.is_finite() {
                return Err(Error::NotFinite { position });
            }
            // The values of these tests stay below 2^60 units, so their squares fit.
            *sums.entry(index as usize).or_insert(0) += (value * self.scale).trunc() as i128;
        }
        if sums.values().map(|units| units * units).sum::<i128>() > self.max_squared {
            return Err(Error::Excess { position: row, bound: self.bound, what: self.what });
        }
        Ok(sums)
    }

    fn values(&self) -> Vec<f64> {
        self.cells.iter().map(|&units| units as f64 / self.scale).collect()
    }
}

#[derive(Clone, Debug)]
enum Call {
    Dense(Vec<f64>),
    Sparse(Vec<Vec<(i64, f64)>>),
    Advance(u64),
    ReadAll,
    Read(Vec<u64>),
}

const SIZE: usize = 5;

fn calls(value: BoxedStrategy<f64>) -> impl Strategy<Value = Vec<Call>> {
    let index = prop_oneof![20 => 0..SIZE as i64, 1 => Just(-1), 1 => Just(SIZE as i64), 1 => Just(i64::MIN), 1 => Just(i64::MAX)];
    let row = prop::collection::vec((index, value.clone()), 0..4);
    let dense = prop::collection::vec(value, SIZE..=SIZE * 3).prop_map(|mut values| {
        values.truncate(values.len() / SIZE * SIZE);
        Call::Dense(values)
    });
    let call = prop_oneof![
        2 => dense,
        6 => prop::collection::vec(row, 0..4).prop_map(Call::Sparse),
        3 => (0u64..1000).prop_map(Call::Advance),
        1 => Just(Call::ReadAll),
        2 => prop::collection::vec(0..SIZE as u64, 0..4).prop_map(Call::Read),
    ];
    prop::collection::vec(call, 1..40)
}

/// Plays the calls on the vector and on the model: same answers, same errors, same counters after each call.
fn follows_the_model(builder: &Builder, mut model: Model, calls: &[Call]) {
    let mut vector = builder.build_exact().unwrap();
    let mut rng = rng();
    let (mut now, mut sealed) = (1, false);
    for call in calls {
        match call {
            Call::Dense(values) => {
                let rows: Vec<_> = values
                    .chunks(SIZE)
                    .enumerate()
                    .map(|(row, values)| (row * SIZE, (0..).zip(values.iter().copied()).collect()))
                    .collect();
                let expected = if sealed { Err(Error::Sealed { now, horizon: 1 << 20 }) } else { model.add(&rows) };
                let rows: Rows<'_, u64, f64> = Rows::Dense { values };
                assert_eq!(vector.update_rows(rows), expected);
            }
            Call::Sparse(rows) => {
                let entries: Vec<_> = rows.iter().flatten().copied().collect();
                let (indices, values): (Vec<i64>, Vec<f64>) = entries.into_iter().unzip();
                let mut offsets = vec![0];
                offsets.extend(rows.iter().scan(0, |end, row| {
                    *end += row.len();
                    Some(*end)
                }));
                let placed: Vec<_> = offsets.iter().copied().zip(rows.iter().cloned()).collect();
                let expected = if sealed { Err(Error::Sealed { now, horizon: 1 << 20 }) } else { model.add(&placed) };
                let got = vector.update_rows(Rows::Sparse { offsets: &offsets, indices: &indices, values: &values });
                assert_eq!(got, expected);
            }
            Call::Advance(gap) => {
                sealed &= *gap == 0;
                now += gap;
                vector.advance(now).unwrap();
            }
            Call::ReadAll => {
                sealed = true;
                assert_eq!(vector.release_all(&mut rng).unwrap(), model.values());
            }
            Call::Read(cells) => {
                sealed = true;
                let values = model.values();
                let expected: Vec<f64> = cells.iter().map(|&cell| values[cell as usize]).collect();
                assert_eq!(vector.release(&cells[..], &mut rng).unwrap(), expected);
            }
        }
        assert_eq!(vector.is_sealed(), sealed);
        assert!(vector.counters.iter().map(|&units| i128::from(units)).eq(model.cells.iter().copied()));
        assert!(vector.counters.iter().all(|units| units.unsigned_abs() <= vector.total));
    }
}

proptest! {
    #[test]
    fn integer_updates_follow_a_plain_model(
        calls in calls(prop_oneof![20 => (-3i32..=3).prop_map(f64::from), 1 => Just(0.99), 1 => Just(-1.5),
            1 => Just(f64::NAN), 1 => Just(f64::INFINITY), 1 => Just(1e12), 1 => Just(-0.0)].boxed()),
        drop in any::<bool>(),
    ) {
        let model = Model {
            cells: vec![0; SIZE], scale: 1.0, max_squared: 16, bound: 4.0, what: "weight", drop,
        };
        let invalid = if drop { Invalid::Drop } else { Invalid::Raise };
        follows_the_model(&builder(SIZE).max_weight(4).invalid(invalid), model, &calls);
    }

    #[test]
    fn real_updates_follow_a_plain_model(
        calls in calls(prop_oneof![20 => -1.0f64..1.0, 1 => Just(1.5), 1 => Just(-1.5), 1 => Just(1.5 + 1e-5),
            1 => Just(1.5 + 1e-7), 1 => Just(f64::NAN), 1 => Just(f64::NEG_INFINITY), 1 => Just(1e12),
            1 => Just(1e-7), 1 => Just(f64::MIN_POSITIVE / 4.0)].boxed()),
        drop in any::<bool>(),
    ) {
        // u = 2^(0 - 20), 1.5 = 3 * 2^19 u.
        let model = Model {
            cells: vec![0; SIZE],
            scale: f64::from(1 << 20),
            max_squared: 9 << 38,
            bound: 1.5,
            what: "L2 norm",
            drop,
        };
        let invalid = if drop { Invalid::Drop } else { Invalid::Raise };
        follows_the_model(&builder(SIZE).max_norm(1.5).invalid(invalid), model, &calls);
    }

    #[test]
    fn a_clipped_row_lies_on_the_bound_or_just_inside_in_the_same_direction(
        row in prop::collection::vec((0u64..20, -1_000_000i64..1_000_000), 1..8),
        max_weight in 1u32..2000,
    ) {
        let mut vector = builder(20).max_weight(max_weight).on_excess(OnExcess::Clip).build_exact().unwrap();
        vector.update_row(&row).unwrap();
        let mut sums = [0i128; 20];
        row.iter().for_each(|&(cell, weight)| sums[cell as usize] += i128::from(weight));
        let norm_squared: i128 = sums.iter().map(|x| x * x).sum();
        let bound_squared = i128::from(max_weight) * i128::from(max_weight);
        let clipped: Vec<i128> = vector.counters.iter().map(|&x| i128::from(x)).collect();
        if norm_squared <= bound_squared {
            prop_assert_eq!(&clipped[..], &sums[..]);
        } else {
            prop_assert!(clipped.iter().map(|x| x * x).sum::<i128>() <= bound_squared);
            for (&got, &sum) in clipped.iter().zip(&sums) {
                // The largest q with q^2 <= sum^2 bound^2 / norm^2: rounded toward zero. One less may come of floats.
                let q = i128::from(((sum * sum * bound_squared / norm_squared) as u64).isqrt());
                prop_assert!(got.signum() * sum.signum() >= 0);
                prop_assert!(got.abs() == q || got.abs() == q - 1, "{} for {} clipped to {}", got, sum, q);
            }
        }
    }
}

#[test]
fn values_far_over_the_bound_are_refused_and_nothing_wraps() {
    for far in [1e30, -1e30, f64::MAX, f64::MIN, 1e19] {
        for builder in [builder(3).max_weight(1 << 31), builder(3).max_norm(1.5)] {
            let mut vector = builder.build_exact().unwrap();
            assert!(matches!(vector.update(&[(0u64, far)]), Err(Error::Excess { position: 0, .. })), "{far}");
            let many = [(0u64, far); 100];
            assert!(matches!(vector.update_row(&many), Err(Error::Excess { position: 0, .. })), "{far}");
            assert_eq!(vector.counters, [0; 3]);
        }
    }
    for far in [i64::MAX, i64::MIN] {
        let mut vector = builder(3).max_weight(1 << 31).build_exact().unwrap();
        assert!(matches!(vector.update_row(&[(0u64, far); 4]), Err(Error::Excess { position: 0, .. })), "{far}");
        assert_eq!(vector.counters, [0; 3]);
    }
}

#[test]
fn a_single_excess_is_clipped_to_the_bound_itself() {
    let mut vector = builder(3).max_weight(7).on_excess(OnExcess::Clip).build_exact().unwrap();
    vector.update(&[(0u64, i64::MAX)]).unwrap();
    vector.update(&[(1u64, i64::MIN)]).unwrap();
    vector.update(&[(2u64, 1e300)]).unwrap();
    // Parts that add up to less than the bound are within it.
    vector.update_row(&[(2u64, i64::MAX), (2, -i64::MAX), (2, -3)]).unwrap();
    assert_eq!(vector.release_all(&mut rng()).unwrap(), [7.0, -7.0, 4.0]);

    let mut real = builder(2).max_norm(1.0).on_excess(OnExcess::Clip).build_exact().unwrap();
    real.update(&[(0u64, f64::MAX)]).unwrap();
    real.update(&[(1u64, -1.0 - 1e-5)]).unwrap();
    assert_eq!(real.release_all(&mut rng()).unwrap(), [1.0, -1.0]);
    // Clipping gives no meaning to what is no number.
    real.advance(2).unwrap();
    assert_eq!(real.update(&[(0u64, f64::NAN)]), Err(Error::NotFinite { position: 0 }));
}

#[test]
fn a_clipped_row_is_within_the_bound_even_where_floats_round_its_scale_up() {
    // The scale is 1/4 less 2^-63 of it, which no float shows: (2^31, 1) would be over the bound by one.
    let mut vector = builder(2).max_weight(1 << 31).on_excess(OnExcess::Clip).build_exact().unwrap();
    vector.update_row(&[(0u64, 1i64 << 33), (1, 5)]).unwrap();
    assert_eq!(vector.counters, [(1 << 31) - 1, 1]);
}

/// A vector whose counters stand where no test could bring them by updates.
fn at_the_edge(counters: &[i64]) -> ContinualVector {
    let mut vector = builder(counters.len()).max_weight(100).build_exact().unwrap();
    vector.counters.copy_from_slice(counters);
    vector.total = counters.iter().map(|counter| counter.unsigned_abs()).max().unwrap();
    vector
}

#[test]
fn a_batch_that_would_overflow_changes_nothing_and_names_the_row() {
    let start = [i64::MAX - 5, 10, i64::MIN + 5];
    let mut vector = at_the_edge(&start);
    assert_eq!(vector.update(&[(1u64, 50i64), (0, 3), (1, -20), (0, 3)]), Err(Error::Overflow { position: 3 }));
    assert_eq!(vector.counters, start);
    assert_eq!(vector.update(&[(1u64, 50i64), (2, -3), (1, -20), (2, -3)]), Err(Error::Overflow { position: 3 }));
    assert_eq!(vector.counters, start);
    // To take the changes back in the order in which they were made would leave the range on the way.
    assert_eq!(vector.update(&[(2u64, 50i64), (1, 1), (2, -50), (0, 6)]), Err(Error::Overflow { position: 3 }));
    assert_eq!(vector.counters, start);
    assert!(!vector.is_sealed());
    // Up to the edge, and back.
    assert_eq!(vector.update(&[(0u64, 5i64), (2, -5), (1, 1)]), Ok(0));
    assert_eq!(vector.counters, [i64::MAX, 11, i64::MIN]);
    assert_eq!(vector.update(&[(0u64, 1i64)]), Err(Error::Overflow { position: 0 }));
    assert_eq!(vector.update(&[(2u64, -1i64)]), Err(Error::Overflow { position: 0 }));
    assert_eq!(vector.update(&[(0u64, -100i64), (2, 100), (0, 50)]), Ok(0));
    assert_eq!(vector.counters, [i64::MAX - 50, 11, i64::MIN + 100]);
    assert_eq!(vector.release_all(&mut rng()).unwrap(), [(i64::MAX - 50) as f64, 11.0, (i64::MIN + 100) as f64]);
}

#[test]
fn opposite_weights_in_one_row_do_not_overflow() {
    let mut vector = at_the_edge(&[i64::MAX, 0]);
    assert_eq!(vector.update_row(&[(0u64, 100i64), (1, 7), (0, -101)]), Ok(0));
    assert_eq!(vector.counters, [i64::MAX - 1, 7]);
}

#[test]
fn a_used_up_bound_on_the_total_is_renewed_and_costs_no_update() {
    // The total of absolute weights runs to the end of its range long before a counter does.
    let mut vector = at_the_edge(&[5, -5]);
    vector.total = i64::MAX as u64 - 1;
    for _ in 0..3 {
        assert_eq!(vector.update(&[(0u64, 3i64), (1, -3), (0, -3)]), Ok(0));
    }
    assert_eq!(vector.counters, [5, -14]);
    assert!(vector.total < 100, "renewed from the counters");
}

#[test]
fn exact_releases_follow_blocks_and_order() {
    let mut vector = ContinualVector::builder(4, Zcdp::new(0.5).unwrap()).blocks(&[2, 1, 3]).build_exact().unwrap();
    for cell in 0..6u64 {
        for _ in 0..cell {
            vector.update(&[(cell, 1i64)]).unwrap();
        }
    }
    let rng = &mut rng();
    assert_eq!(vector.release(Cells::<u64>::Block(0), rng).unwrap(), [0.0, 1.0]);
    assert_eq!(vector.release(Cells::<u64>::Block(1), rng).unwrap(), [2.0]);
    assert_eq!(vector.release(Cells::<u64>::Block(2), rng).unwrap(), [3.0, 4.0, 5.0]);
    assert_eq!(vector.release_all(rng).unwrap(), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    assert_eq!(vector.release(&[5u64, 0, 5, 3], rng).unwrap(), [5.0, 0.0, 5.0, 3.0]);
    assert_eq!(vector.release(&[4usize], rng).unwrap(), [4.0]);
    assert_eq!(vector.release(&[4i64], rng).unwrap(), [4.0]);
}

#[test]
fn a_block_that_does_not_exist_is_refused_and_seals_nothing() {
    let mut vector = ContinualVector::builder(4, Zcdp::new(0.5).unwrap()).blocks(&[2, 1]).build_exact().unwrap();
    let error = vector.release(Cells::<u64>::Block(2), &mut rng()).unwrap_err();
    assert!(matches!(error, Error::Parameter { name: "block", given: Given::Unsigned(2), .. }));
    assert!(!vector.is_sealed());
}

#[test]
fn duplicates_of_huge_values_clip_alike_on_either_side() {
    // 2^27 of them would wrap a sum in 128 bits, and the clipped row would have the other sign.
    let count = 1 << 27;
    let clipped = |value: f64| {
        let mut row: Vec<(u64, i128)> = Vec::new();
        let units = value.units(-20).unwrap();
        // What adding the duplicates one by one does.
        let sum = (0..count).fold(0i128, |sum, _| sum.saturating_add(units));
        row.push((0, sum));
        clip(&mut row, &Bound::real(1.0, Norm::L2).unwrap());
        row[0].1
    };
    assert_eq!(clipped(1e300), 1 << 20);
    assert_eq!(clipped(-1e300), -(1 << 20));
    let mut vector =
        ContinualVector::builder(4, Zcdp::new(0.5).unwrap()).cells(2).max_norm(1.0).on_excess(OnExcess::Clip);
    vector.unit = Unit::Lifetime;
    let mut vector = vector.build_exact().unwrap();
    let many = |value: f64| vec![(1u64, value); 1000];
    vector.update_row(&many(1e300)).unwrap();
    vector.update_row(&many(-1e300)).unwrap();
    assert_eq!(vector.counters, [0, 0], "an insertion and its deletion cancel");
}

#[test]
fn a_run_of_weights_that_leaves_64_bits_is_an_overflow() {
    let mut batch = Batch {
        bound: Bound::integer(1 << 31, Norm::L2).unwrap(),
        on_excess: OnExcess::Error,
        invalid: Invalid::Raise,
        row: Vec::new(),
        adds: vec![(0, i64::MAX - 5, 0)],
        total: (i64::MAX - 5) as u128,
        dropped: 0,
    };
    batch.push_row(1, 1, [(Ok(0), 1i64 << 31)].into_iter()).unwrap();
    assert_eq!(batch.adds, [(0, i64::MAX - 5, 0), (0, 1 << 31, 1)]);
    let mut vector = ContinualVector::builder(4, Zcdp::new(0.5).unwrap()).cells(1).build_exact().unwrap();
    assert_eq!(vector.apply(&batch), Err(Error::Overflow { position: 1 }));
    assert_eq!(vector.counters, [0]);
}

#[test]
fn a_read_that_memory_does_not_hold_is_an_error() {
    assert_eq!(crate::error::reserved::<f64>(usize::MAX / 16).map(drop), Err(Error::Memory));
}
