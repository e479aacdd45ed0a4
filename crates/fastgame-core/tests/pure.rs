//! Structures under a pure budget, from outside: the scale of their noise, and updates bounded in the L1 norm.

mod common;

use common::{Failing, Recorder, rng};
use fastgame_core::{
    ApproxDp, Builder, Calibration, Cells, ContinualCounter, ContinualVector, CountSketch, Error, Invalid, JoinSize,
    Levels, Mechanism, OnExcess, PureDp, RangeBuilder, RangeShape, Rows, Unit, Zcdp, total,
};
use proptest::prelude::*;

const EPSILON: f64 = 0.7;
const HORIZON: u64 = 1000; // ten levels

fn budget() -> PureDp {
    PureDp::new(EPSILON).unwrap()
}

fn builder() -> Builder {
    ContinualVector::builder(HORIZON, budget()).cells(4)
}

/// Checks that a node variable has the scale `b = K l1 m / epsilon`, rounded up by no more than a part in 1e13.
#[track_caller]
fn has_scale(calibration: &Calibration, k: f64, l1: f64, m: f64) {
    let (b, expected) = (calibration.scale() / 2.0f64.sqrt(), k * l1 * m / EPSILON);
    assert!(b >= expected && b <= expected * (1.0 + 1e-13), "{b} for {expected}");
    assert_eq!(calibration.tau(), k);
    let std = expected * (2.0 * f64::from(calibration.levels() + 1)).sqrt();
    let got = calibration.release_std();
    assert!((got - std).abs() < 1e-13 * std, "{got} for {std}");
    assert_eq!(calibration.release_std_at(1), Ok(got));
}

#[test]
fn the_scale_of_a_vector_follows_its_l1_norm_its_unit_and_its_contributions() {
    let plan = |builder: Builder| *builder.plan().unwrap().calibration();
    has_scale(&plan(builder()), 6.0, 1.0, 1.0);
    has_scale(&plan(builder().max_weight(7)), 6.0, 7.0, 1.0);
    has_scale(&plan(builder().max_norm(0.3)), 6.0, 0.3, 1.0);
    has_scale(&plan(builder().contributions(5)), 6.0, 1.0, 5.0);
    has_scale(&plan(builder().unit(Unit::Lifetime)), 10.0, 1.0, 1.0);
    has_scale(&plan(builder().unit(Unit::Lifetime).max_norm(2.5).contributions(3)), 10.0, 2.5, 3.0);
    // The number of cells has no influence: the norm bounds the whole row.
    has_scale(&plan(builder().cells(1_000)), 6.0, 1.0, 1.0);
    for (horizon, update, lifetime) in
        [(1, 1.0, 1.0), (2, 1.0, 1.0), (3, 2.0, 2.0), (8, 2.0, 3.0), (9, 3.0, 4.0), (1 << 62, 32.0, 62.0)]
    {
        let of = |unit| plan(ContinualVector::builder(horizon, budget()).cells(1).unit(unit));
        has_scale(&of(Unit::Update), update, 1.0, 1.0);
        has_scale(&of(Unit::Lifetime), lifetime, 1.0, 1.0);
    }
    let built = builder().max_weight(7).build().unwrap();
    has_scale(built.calibration(), 6.0, 7.0, 1.0);
    assert_eq!(built.noise_std(), built.calibration().release_std());
}

#[test]
fn the_scale_of_a_sketch_follows_its_depth() {
    let sketch = || CountSketch::builder(HORIZON, budget()).width(64).depth(5);
    has_scale(sketch().plan().unwrap().calibration(), 6.0, 5.0, 1.0);
    has_scale(sketch().build().unwrap().vector().calibration(), 6.0, 5.0, 1.0);
    has_scale(sketch().max_weight(3).build().unwrap().vector().calibration(), 6.0, 15.0, 1.0);
    let all = sketch().depth(7).max_weight(3).contributions(2).unit(Unit::Lifetime);
    has_scale(all.build().unwrap().vector().calibration(), 10.0, 21.0, 2.0);
}

#[test]
fn the_scale_of_a_join_size_follows_its_depth() {
    let join = || JoinSize::builder(HORIZON, budget()).width(64).depth(5);
    has_scale(join().build().unwrap().vector().calibration(), 6.0, 5.0, 1.0);
    has_scale(join().max_weight(4).contributions(3).build().unwrap().vector().calibration(), 6.0, 20.0, 3.0);
    has_scale(join().unit(Unit::Lifetime).build().unwrap().vector().calibration(), 10.0, 5.0, 1.0);
}

#[test]
fn the_scale_of_a_range_counter_follows_its_components() {
    let range = |width, depth| {
        let shape = RangeShape { width, depth, levels: Levels::Dyadic, ..RangeShape::new(&[256]) };
        RangeBuilder::new(ContinualVector::builder(HORIZON, budget()), shape)
    };
    // Eight dyadic levels, 256, 128, ... 2 rectangles. All dense where depth * width >= 256.
    has_scale(range(256, 3).build().unwrap().vector().calibration(), 6.0, 8.0, 1.0);
    // 3 * 16 = 48 cells: 256, 128 and 64 rectangles are sketched in three rows each, the five others are dense.
    let sketched = range(16, 3).build().unwrap();
    assert_eq!(sketched.vector().size(), 3 * 48 + 32 + 16 + 8 + 4 + 2);
    has_scale(sketched.vector().calibration(), 6.0, 3.0 * 3.0 + 5.0, 1.0);
    has_scale(range(16, 3).max_weight(2).contributions(4).build().unwrap().vector().calibration(), 6.0, 28.0, 4.0);
    has_scale(range(16, 3).unit(Unit::Lifetime).build().unwrap().vector().calibration(), 10.0, 14.0, 1.0);
}

#[test]
fn only_the_tree_spends_a_pure_budget() {
    for mechanism in [Mechanism::TreePaper, Mechanism::Blt { buffers: None }] {
        let error = builder().mechanism(mechanism).build().unwrap_err();
        assert!(matches!(error, Error::Unsupported { .. }), "{error:?}");
        assert!(error.to_string().contains("pure budget"), "{error}");
    }
    assert_eq!(builder().build().unwrap().loss(), budget().loss());
    // Structures add up.
    let losses = [builder().build().unwrap().loss(), builder().build().unwrap().loss()];
    assert_eq!(total(losses).unwrap().loss(), PureDp::new(2.0 * EPSILON).unwrap().loss());
}

/// So much budget that rounded releases are the counters: b = 1/175 of a unit at two steps, 87 of them to the next integer.
fn exact(cells: usize) -> Builder {
    ContinualVector::builder(2, PureDp::new(350.0).unwrap()).cells(cells).max_weight(2)
}

/// The counters, as rounded releases at step 2; `of_unit` is the vector's unit.
fn counters(vector: &mut ContinualVector, of_unit: f64) -> Vec<i64> {
    vector.advance(2).unwrap();
    let values = vector.release_all(&mut rng(1)).unwrap();
    values.into_iter().map(|value| (value / of_unit).round() as i64).collect()
}

fn dense<V: fastgame_core::Quantity>(vector: &mut ContinualVector, values: &[V]) -> fastgame_core::Result<u64> {
    let rows: Rows<'_, u64, V> = Rows::Dense { values };
    vector.update_rows(rows)
}

#[test]
fn integer_rows_are_bounded_by_the_sum_of_absolute_values() {
    let mut vector = exact(3).max_weight(5).build().unwrap();
    assert_eq!(dense(&mut vector, &[2i64, -2, 1, 0, 5, 0, 0, 0, -5]), Ok(0));
    // The L2 norm of (3, 0, -3) is 4.2, its L1 norm 6.
    assert_eq!(
        dense(&mut vector, &[0i64, 0, 1, 3, 0, -3]),
        Err(Error::Excess { position: 1, bound: 5.0, what: "weight" })
    );
    // Duplicates are added first: 6 - 4 + 3 = 5 in absolute values.
    assert_eq!(vector.update_row(&[(0u64, 6i64), (1, -3), (0, -4)]), Ok(0));
    assert!(vector.update_row(&[(0u64, 4i64), (1, 1), (0, 1)]).is_err());
    assert_eq!(counters(&mut vector, 1.0), [4, 0, -4]);
}

#[test]
fn real_rows_are_bounded_exactly_and_the_error_names_the_l1_norm() {
    let of =
        |norm: f64| ContinualVector::builder(2, PureDp::new(350.0).unwrap()).cells(3).max_norm(norm).build().unwrap();
    let mut vector = of(1.0);
    let unit = 2.0f64.powi(-20);
    assert_eq!(dense(&mut vector, &[0.5, -0.25, 0.25]), Ok(0));
    assert_eq!(dense(&mut vector, &[1.0, 0.0, 0.0]), Ok(0));
    // One unit more is too much, a part of a unit is rounded away.
    let error = dense(&mut vector, &[0.5, -0.25, 0.25 + unit]).unwrap_err();
    assert_eq!(error, Error::Excess { position: 0, bound: 1.0, what: "L1 norm" });
    assert!(error.to_string().contains("its L1 norm may be at most 1;"), "{error}");
    assert_eq!(dense(&mut vector, &[0.5, -0.25 - 0.99 * unit, 0.25 + 0.99 * unit]), Ok(0));
    // (0.6, 0.8, 0) has the L2 norm 1.
    assert!(dense(&mut vector, &[0.6, 0.8, 0.0]).is_err());
    assert_eq!(vector.update_row(&[(1u64, 3.0), (1, -2.5), (2, 0.5)]), Ok(0));
    assert!(vector.update_row(&[(1u64, 0.75), (1, 0.5)]).is_err());

    // A bound between two multiples of the unit: 1.3 is 1363148.8 units.
    let mut vector = of(1.3);
    assert_eq!(dense(&mut vector, &[1_363_147.0 * unit, 0.0, -unit]), Ok(0));
    assert!(dense(&mut vector, &[1_363_147.0 * unit, unit, -unit]).is_err());
    // The Gaussian budget next to it has the L2 norm.
    let mut gaussian = ContinualVector::builder(2, Zcdp::new(1e5).unwrap()).cells(3).max_norm(1.0).build().unwrap();
    assert_eq!(dense(&mut gaussian, &[0.6, 0.79, 0.0]), Ok(0));
    let approximate = ApproxDp::new(1.0, 1e-6).unwrap();
    let mut gaussian = ContinualVector::builder(2, approximate).cells(3).max_norm(1.0).build().unwrap();
    assert_eq!(dense(&mut gaussian, &[0.6, 0.79, 0.0]), Ok(0));
}

#[test]
fn rows_over_the_bound_are_clipped_onto_it_or_dropped() {
    let clip = || exact(3).on_excess(OnExcess::Clip);
    let mut vector = clip().max_weight(10).build().unwrap();
    // 40 in absolute values, a quarter of it fits.
    assert_eq!(dense(&mut vector, &[20i64, -12, 8]), Ok(0));
    assert_eq!(counters(&mut vector, 1.0), [5, -3, 2]);
    let mut vector = clip().max_weight(10).build().unwrap();
    assert_eq!(dense(&mut vector, &[0i64, -77, 0]), Ok(0));
    assert_eq!(counters(&mut vector, 1.0), [0, -10, 0]);
    let mut vector = clip().max_weight(10).build().unwrap();
    assert_eq!(vector.update_row(&[(0u64, f64::MAX), (2, f64::MAX)]), Ok(0));
    assert_eq!(counters(&mut vector, 1.0), [5, 0, 5]);

    let mut vector = exact(3).max_weight(10).invalid(Invalid::Drop).build().unwrap();
    assert_eq!(dense(&mut vector, &[5i64, 5, 1, 1, 2, 3]), Ok(1));
    assert_eq!(counters(&mut vector, 1.0), [1, 2, 3]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever row is given: what it adds has an L1 norm within the bound, and loses no more than rounding takes. It is added
    /// 2^16 times, so that the noise is below one unit of one row.
    #[test]
    fn a_clipped_row_lies_on_the_bound(
        row in prop::collection::vec(-1e3f64..1e3, 4), scale in -8i32..8, bound in 0.01f64..3.0
    ) {
        const TIMES: usize = 1 << 16;
        let row: Vec<f64> = row.into_iter().map(|value| value * 10f64.powi(scale)).collect();
        let unit = 2f64.powi(bound.log2().floor() as i32 - 20);
        let builder = ContinualVector::builder(2, PureDp::new(700.0).unwrap()).cells(4).max_norm(bound);
        let mut vector = builder.on_excess(OnExcess::Clip).build().unwrap();
        dense(&mut vector, &row.repeat(TIMES)).unwrap();
        vector.advance(2).unwrap();
        let added: Vec<f64> = vector.release_all(&mut rng(1)).unwrap().iter().map(|value| value / TIMES as f64).collect();
        // b = bound / 700, and this seed's noise is below 20 b.
        let noise = 20.0 * bound / 700.0 / TIMES as f64;
        prop_assert!(noise < unit);
        let norm = |row: &[f64]| row.iter().map(|value| value.abs()).sum::<f64>();
        prop_assert!(norm(&added) <= bound + 4.0 * noise, "{} {}", norm(&added), bound);
        let factor = (bound / norm(&row).max(1e-300)).min(1.0);
        for (value, added) in row.iter().zip(&added) {
            prop_assert!((value * factor - added).abs() <= 6.0 * unit + noise, "{} {} {}", value, factor, added);
        }
    }
}

#[test]
fn a_fixed_seed_repeats_and_a_step_answers_twice_the_same() {
    let mut vector = builder().build().unwrap();
    let mut twin = builder().build().unwrap();
    let (mut one, mut two) = (rng(4), rng(4));
    for step in [1, 2, 3, 500, 501, 1000] {
        vector.advance(step).unwrap();
        twin.advance(step).unwrap();
        let values = vector.release_all(&mut one).unwrap();
        assert_eq!(values, twin.release_all(&mut two).unwrap());
        assert_eq!(values, vector.release(Cells::<u64>::All, &mut Failing::after(0, 1)).unwrap());
        assert!(values.iter().all(|value| value % vector.lattice_step() == 0.0));
    }
}

#[test]
fn what_is_drawn_does_not_depend_on_data() {
    let play = |data: i64| {
        let mut counter = ContinualCounter::new(ContinualVector::builder(1 << 20, budget())).unwrap();
        let mut recorder = Recorder::new(8);
        let mut words = Vec::new();
        for step in [1, 2, 77, 78, 1 << 19, 1 << 20] {
            counter.vector_mut().advance(step).unwrap();
            counter.update(&[data]).unwrap();
            counter.release(&mut recorder).unwrap();
            words.push(recorder.words);
        }
        words
    };
    assert_eq!(play(0), play(1));
}
