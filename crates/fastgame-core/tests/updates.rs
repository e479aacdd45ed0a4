//! What an update adds. With rho = 10^6 the noise is so small that a rounded release is the exact counter, so all of
//! this can be seen from outside.

mod common;

use common::rng;
use fastgame_core::{Builder, ContinualVector, Error, Invalid, OnExcess, Result, Rows, Zcdp};
use proptest::prelude::*;

/// The noise of a release has a standard deviation of 0.01 of a unit at most: 50 of them to the next integer.
fn builder(cells: usize) -> Builder {
    ContinualVector::builder(1 << 30, Zcdp::new(1e6).unwrap()).cells(cells)
}

/// The counters, as rounded releases at the next step.
fn counters(vector: &mut ContinualVector) -> Vec<i64> {
    let next = vector.now() + 1;
    vector.advance(next).unwrap();
    let values: Vec<i64> =
        vector.release_all(&mut rng(next)).unwrap().into_iter().map(|value| value.round() as i64).collect();
    vector.advance(next + 1).unwrap();
    values
}

fn dense<V: fastgame_core::Quantity>(vector: &mut ContinualVector, values: &[V]) -> Result<u64> {
    let rows: Rows<'_, u64, V> = Rows::Dense { values };
    vector.update_rows(rows)
}

fn sparse<V: fastgame_core::Quantity>(
    vector: &mut ContinualVector,
    offsets: &[usize],
    indices: &[i64],
    values: &[V],
) -> Result<u64> {
    vector.update_rows(Rows::Sparse { offsets, indices, values })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn counters_are_the_sums_of_all_updates_over_time(
        batches in prop::collection::vec(prop::collection::vec((0u64..9, -1i64..=1), 0..20), 1..8)
    ) {
        let mut vector = builder(9).build().unwrap();
        prop_assert!(vector.noise_std() < 0.01);
        let mut model = [0; 9];
        for batch in &batches {
            for &(cell, weight) in batch {
                vector.update(&[(cell, weight)]).unwrap();
                model[cell as usize] += weight;
            }
            prop_assert_eq!(&counters(&mut vector)[..], &model[..]);
        }
    }
}

#[test]
fn deletions_take_back_insertions() {
    let mut vector = builder(3).build().unwrap();
    vector.update(&[(1u64, 1i64)]).unwrap();
    assert_eq!(counters(&mut vector), [0, 1, 0]);
    vector.update(&[(1u64, -1i64)]).unwrap();
    assert_eq!(counters(&mut vector), [0, 0, 0]);
    vector.update(&[(1u64, -1i64)]).unwrap();
    assert_eq!(counters(&mut vector), [0, -1, 0]);
}

#[test]
fn duplicates_in_a_row_are_added_before_the_bound_is_checked() {
    let mut vector = builder(3).max_weight(2).build().unwrap();
    assert_eq!(vector.update_row(&[(1u64, 5i64), (0, 1), (1, -4)]), Ok(0));
    assert_eq!(counters(&mut vector), [1, 1, 0]);
    // 1 + 1 + 1 on one cell is 3, over the bound, although each is within it.
    let error = vector.update_row(&[(2u64, 1i64), (2, 1), (2, 1)]).unwrap_err();
    assert_eq!(error, Error::Excess { position: 0, bound: 2.0, what: "weight" });
    // The norm counts, not the sum of weights: 1 + 1 + 1 on three cells has the norm 1.7.
    assert_eq!(vector.update_row(&[(2u64, 1i64), (0, 1), (1, 1)]), Ok(0));
    assert_eq!(counters(&mut vector), [2, 2, 1]);
}

#[test]
fn quantities_far_over_the_bound_add_up_whatever_their_order() {
    // Two of them and one of the other sign are over the bound still.
    let mut vector = builder(2).build().unwrap();
    let far = [1e300, 1e300, -1e300, 1e-300];
    for order in [[0, 1, 2], [0, 2, 1], [2, 0, 1], [2, 3, 0]] {
        let row = order.map(|i: usize| (1u64, far[i]));
        let expected =
            if order.contains(&1) { Err(Error::Excess { position: 0, bound: 1.0, what: "weight" }) } else { Ok(0) };
        assert_eq!(vector.update_row(&row), expected, "{row:?}");
    }
    assert_eq!(counters(&mut vector), [0, 0]);
}

#[test]
fn each_row_has_the_bound_for_itself() {
    let mut vector = builder(2).build().unwrap();
    assert_eq!(dense(&mut vector, &[1i64, 0, 0, -1, 0, 0, 1, 0, 1, 0]), Ok(0));
    assert_eq!(sparse(&mut vector, &[0, 1, 1, 2, 4], &[1, 1, 0, 0], &[1i64, 1, 1, -1]), Ok(0));
    assert_eq!(counters(&mut vector), [3, 1]);
}

#[test]
fn empty_updates_are_updates_of_nothing() {
    let mut vector = builder(3).build().unwrap();
    assert_eq!(vector.update::<u64, i64>(&[]), Ok(0));
    assert_eq!(vector.update_row::<u64, i64>(&[]), Ok(0));
    assert_eq!(dense::<f64>(&mut vector, &[]), Ok(0));
    assert_eq!(sparse::<i64>(&mut vector, &[0], &[], &[]), Ok(0));
    assert_eq!(sparse::<i64>(&mut vector, &[0, 0, 0], &[], &[]), Ok(0));
    assert_eq!(counters(&mut vector), [0, 0, 0]);
}

#[test]
fn dense_and_sparse_rows_and_every_number_type_do_the_same() {
    let (mut a, mut b, mut c) = (builder(3), builder(3), builder(3));
    for builder in [&mut a, &mut b, &mut c] {
        *builder = builder.clone().max_weight(5);
    }
    let (mut a, mut b, mut c) = (a.build().unwrap(), b.build().unwrap(), c.build().unwrap());
    dense(&mut a, &[0i64, 3, -4, 5, 0, 0]).unwrap();
    dense(&mut b, &[0.0f64, 3.0, -4.0, 5.0, 0.0, 0.0]).unwrap();
    sparse(&mut c, &[0, 2, 3], &[2, 1, 0], &[-4.0f64, 3.0, 5.0]).unwrap();
    for vector in [&mut a, &mut b, &mut c] {
        assert_eq!(counters(vector), [5, 3, -4]);
    }
    a.update(&[(0usize, 1i64)]).unwrap();
    a.update(&[(0u64, 1i64)]).unwrap();
    a.update(&[(0i64, 1i64)]).unwrap();
    assert_eq!(counters(&mut a), [8, 3, -4]);
}

#[test]
fn an_update_over_the_bound_is_an_error_that_names_row_and_bound_and_changes_nothing() {
    let mut vector = builder(2).build().unwrap();
    let error = dense(&mut vector, &[1i64, 0, 1, 1]).unwrap_err();
    assert_eq!(error, Error::Excess { position: 1, bound: 1.0, what: "weight" });
    let text = error.to_string();
    assert!(text.contains("position 1") && text.contains("at most 1;") && text.contains("clip"), "{text}");
    assert_eq!(counters(&mut vector), [0, 0]);

    let mut real = ContinualVector::builder(9, Zcdp::new(1e6).unwrap()).cells(2).max_norm(0.5).build().unwrap();
    assert_eq!(dense(&mut real, &[0.3, 0.4]), Ok(0));
    assert_eq!(dense(&mut real, &[0.3, 0.4001]), Err(Error::Excess { position: 0, bound: 0.5, what: "L2 norm" }));
}

#[test]
fn an_update_over_the_bound_can_be_clipped() {
    let mut vector = builder(3).max_weight(5).on_excess(OnExcess::Clip).build().unwrap();
    assert_eq!(dense(&mut vector, &[30i64, 0, -40, 1, 2, 2]), Ok(0));
    assert_eq!(counters(&mut vector), [4, 2, -2]);
    vector.update(&[(0u64, i64::MIN)]).unwrap();
    vector.update(&[(1u64, f64::MAX)]).unwrap();
    assert_eq!(counters(&mut vector), [-1, 7, -2]);
    // Clipping makes no number of what is none.
    assert_eq!(vector.update(&[(0u64, f64::INFINITY)]), Err(Error::NotFinite { position: 0 }));
}

#[test]
fn numbers_that_are_none_are_refused_by_position() {
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let mut vector = builder(3).build().unwrap();
        assert_eq!(dense(&mut vector, &[1.0, 0.0, 0.0, 0.0, bad, 0.0]), Err(Error::NotFinite { position: 4 }));
        assert_eq!(
            sparse(&mut vector, &[0, 1, 3], &[0, 1, 2], &[1.0, 0.0, bad]),
            Err(Error::NotFinite { position: 2 })
        );
        assert_eq!(vector.update(&[(0u64, bad)]), Err(Error::NotFinite { position: 0 }));
        assert_eq!(counters(&mut vector), [0, 0, 0]);
    }
}

#[test]
fn indices_outside_of_the_vector_are_refused_by_position() {
    let mut vector = builder(3).build().unwrap();
    vector.update(&[(0i64, 1i64)]).unwrap();
    vector.update(&[(2i64, 1i64)]).unwrap();
    for bad in [-1, 3, i64::MIN, i64::MAX] {
        let error = sparse(&mut vector, &[0, 1, 2, 3], &[0, 2, bad], &[1i64, 1, 1]).unwrap_err();
        let expected = format!("index {bad} at position 2 is outside of the vector; allowed are 0 to 2");
        assert_eq!(error.to_string(), expected);
        // Even with nothing to add there.
        assert!(vector.update(&[(bad, 0i64)]).is_err());
    }
    let error = vector.update(&[(u64::MAX, 1i64)]).unwrap_err().to_string();
    assert!(error.contains("index 18446744073709551615"), "{error}");
    assert!(vector.update(&[(usize::MAX, 1i64)]).is_err());
    assert!(vector.update(&[(1u64 << 32, 1i64)]).is_err(), "an index is not cut to 32 bits");
    assert_eq!(counters(&mut vector), [1, 0, 1]);
}

#[test]
fn arrays_that_do_not_fit_together_are_refused() {
    let refused = |result: Result<u64>, text: &str| {
        let error = result.unwrap_err();
        assert!(matches!(error, Error::Shape { .. }) && error.to_string().contains(text), "{error}");
    };
    for invalid in [Invalid::Raise, Invalid::Drop] {
        let mut vector = builder(3).invalid(invalid).build().unwrap();
        let v = &mut vector;
        refused(dense(v, &[1i64, 0]), "as many values as the vector has cells");
        refused(dense(v, &[1i64, 0, 0, 1]), "as many values as the vector has cells");
        refused(sparse(v, &[0, 2], &[0, 1], &[1i64]), "as many values as indices");
        refused(sparse(v, &[0, 1], &[0], &[1i64, 1]), "as many values as indices");
        refused(v.update_rows(Rows::Single { indices: &[0u64, 1], values: &[1i64] }), "as many values as indices");
        refused(v.update_rows(Rows::Single { indices: &[0u64], values: &[1i64, 1] }), "as many values as indices");
        let offsets = "rise from 0 to the number of indices";
        refused(sparse(v, &[], &[], &[] as &[i64]), offsets);
        refused(sparse(v, &[], &[0], &[1i64]), offsets);
        refused(sparse(v, &[0], &[0], &[1i64]), offsets);
        refused(sparse(v, &[1, 1], &[0], &[1i64]), offsets);
        refused(sparse(v, &[0, 2], &[0], &[1i64]), offsets);
        refused(sparse(v, &[0, usize::MAX], &[0], &[1i64]), offsets);
        refused(sparse(v, &[0, 2, 1, 2], &[0, 1], &[1i64, 0]), offsets);
        assert_eq!(counters(v), [0, 0, 0]);
    }
}

#[test]
fn dropping_leaves_out_exactly_the_bad_rows() {
    let mut vector = builder(3).max_weight(2).invalid(Invalid::Drop).build().unwrap();
    // Rows: good, index, NaN, good, over the bound, infinite, negative index, empty, good (after duplicates are added).
    let offsets = [0, 1, 2, 4, 5, 6, 7, 9, 9, 12];
    let indices = [0, 3, 1, 1, 1, 2, 2, 0, -1, 2, 2, 0];
    let values = [1.0, 1.0, 1.0, f64::NAN, 2.0, 3.0, f64::INFINITY, 1.0, 1.0, 9.0, -10.0, 1.0];
    assert_eq!(sparse(&mut vector, &offsets, &indices, &values), Ok(5));
    assert_eq!(counters(&mut vector), [2, 2, -1]);

    assert_eq!(dense(&mut vector, &[1.0, 0.0, 0.0, f64::NAN, 0.0, 0.0, 2.0, 1.0, 0.0, 0.0, 0.0, 1.0]), Ok(2));
    assert_eq!(counters(&mut vector), [3, 2, 0]);
    assert_eq!(vector.update(&[(0u64, 3i64)]), Ok(1));
    assert_eq!(vector.update(&[(0u64, 2i64)]), Ok(0));
    assert_eq!(counters(&mut vector), [5, 2, 0]);

    // Clipping comes before dropping: nothing is over the bound then.
    let mut both = builder(1).invalid(Invalid::Drop).on_excess(OnExcess::Clip).build().unwrap();
    assert_eq!(dense(&mut both, &[5.0, f64::NAN, -1.0, 7.0]), Ok(1));
    assert_eq!(counters(&mut both), [1]);
}

#[test]
fn a_pair_is_an_update_of_its_own() {
    let mut vector = builder(3).build().unwrap();
    // As one row these would have the norm sqrt(3), and twice the same cell the norm 2.
    assert_eq!(vector.update(&[(0u64, 1i64), (1, 1), (2, 1)]), Ok(0));
    assert_eq!(vector.update(&[(0u64, 1i64), (0, 1), (1, -1), (0, 1)]), Ok(0));
    assert_eq!(counters(&mut vector), [4, 0, 1]);
    assert!(matches!(vector.update_row(&[(0u64, 1i64), (1, 1), (2, 1)]), Err(Error::Excess { position: 0, .. })));
    // A bad one is named by its place, and nothing is added.
    for (bad, error) in [
        ((1, 2.0), Error::Excess { position: 2, bound: 1.0, what: "weight" }),
        ((2, f64::NAN), Error::NotFinite { position: 2 }),
        ((3, 1.0), Error::Index { position: 2, given: fastgame_core::Given::Unsigned(3), size: 3 }),
    ] {
        assert_eq!(vector.update(&[(0u64, 1.0), (1, 1.0), bad]), Err(error));
    }
    assert_eq!(counters(&mut vector), [4, 0, 1]);
}

#[test]
fn pairs_are_dropped_or_clipped_each_by_itself() {
    let pairs = [(0u64, 1.0), (1, 5.0), (2, f64::NAN), (3, 1.0), (2, -1.0), (1, -7.0)];
    let mut dropping = builder(3).invalid(Invalid::Drop).build().unwrap();
    assert_eq!(dropping.update(&pairs), Ok(4));
    assert_eq!(counters(&mut dropping), [1, 0, -1]);
    let mut both = builder(3).invalid(Invalid::Drop).on_excess(OnExcess::Clip).build().unwrap();
    assert_eq!(both.update(&pairs), Ok(2));
    assert_eq!(counters(&mut both), [1, 0, -1]);
    let mut clipping = builder(3).max_weight(2).on_excess(OnExcess::Clip).build().unwrap();
    assert_eq!(clipping.update(&[(0u64, 5i64), (0, 5), (1, -5)]), Ok(0));
    assert_eq!(counters(&mut clipping), [4, -2, 0]);
}

#[test]
fn a_dropped_row_leaves_the_noise_as_it_is() {
    // What is dropped must not even move a draw: the releases are those of a vector that never saw the bad rows.
    let build =
        || ContinualVector::builder(99, Zcdp::new(0.5).unwrap()).cells(4).invalid(Invalid::Drop).build().unwrap();
    let (mut clean, mut dirty) = (build(), build());
    let (mut clean_rng, mut dirty_rng) = (rng(1), rng(1));
    for step in [1, 2, 50, 99] {
        clean.advance(step).unwrap();
        dirty.advance(step).unwrap();
        dense(&mut clean, &[1.0, 0.0, 0.0, 0.0]).unwrap();
        let dropped = dense(&mut dirty, &[f64::NAN, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0]);
        assert_eq!(dropped, Ok(2));
        assert_eq!(clean.release_all(&mut clean_rng).unwrap(), dirty.release_all(&mut dirty_rng).unwrap());
    }
}

#[test]
fn real_values_are_kept_in_whole_units_rounded_toward_zero() {
    // u = 2^-20 for max_norm = 1; at rho = 10^6 the noise is far above u, so compare with the same noise.
    let release = |value: f64| {
        let mut vector = ContinualVector::builder(4, Zcdp::new(1e6).unwrap()).cells(1).max_norm(1.0).build().unwrap();
        assert!(vector.lattice_step() > 2f64.powi(-20));
        for _ in 0..1 << 16 {
            vector.update(&[(0u64, value)]).unwrap();
        }
        vector.release_all(&mut rng(3)).unwrap()[0]
    };
    let unit = 2f64.powi(-20);
    let zero = release(0.0);
    for (value, units) in [(0.9, 0.0), (-0.9, 0.0), (1.0, 1.0), (1.9, 1.0), (-1.9, -1.0), (2.5, 2.0)] {
        // 2^16 units are 1/16, a multiple of the lattice step.
        assert_eq!(release(value * unit) - zero, units / 16.0, "{value} units");
    }
}
