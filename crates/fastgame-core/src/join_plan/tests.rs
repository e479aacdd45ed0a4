//! Plans beside their own formula, searched by hand.

use super::*;
use crate::join::JoinSize;
use crate::privacy::Zcdp;

fn plan(rho: f64, profile: JoinProfile) -> JoinPlan {
    JoinSize::builder(1 << 20, Zcdp::new(rho).unwrap()).width(1 << 12).depth(5).plan(profile).unwrap()
}

#[test]
fn the_terms_add_up_to_the_variance_and_move_with_the_width_as_in_the_lemma() {
    let profile = JoinProfile::new(1e8, 4e8, 5e7).unwrap();
    let plan = plan(0.5, profile);
    let JoinTerms { sketch, cross, noise } = plan.terms();
    assert!((plan.std() / (sketch * sketch + cross * cross + noise * noise).sqrt() - 1.0).abs() < 1e-12);
    let v = plan.vector().noise_std().powi(2) + plan.vector().lattice_step().powi(2) / 12.0;
    let m = median_variance(5);
    assert!((sketch / (m * (4e16 + 25e14) / 4096.0).sqrt() - 1.0).abs() < 1e-12);
    assert!((cross / (m * v * 5e8).sqrt() - 1.0).abs() < 1e-12);
    assert!((noise / (m * 4096.0 * v * v).sqrt() - 1.0).abs() < 1e-12);
    let wider = plan.parameters().clone().width(1 << 14).plan(profile).unwrap().terms();
    assert!((wider.sketch / sketch - 0.5).abs() < 1e-12);
    assert!((wider.noise / noise - 2.0).abs() < 1e-12);
    assert_eq!(wider.cross, cross);
    assert_eq!(plan.cells_read(), 2 * 5 * 4096);
    assert_eq!(plan.vector().cells(), 2 * 5 * 4096);
    // The hash functions take some 50 kB beside the cells.
    assert!((8 * 2 * 5 * 4096 + 40_000..8 * 2 * 5 * 4096 + 70_000).contains(&plan.vector().memory_at_start()));
    assert!((plan.relative_std() - plan.std() / 5e7).abs() < 1e-12);
}

#[test]
fn at_the_balanced_width_collisions_and_noise_add_the_same() {
    let plan = plan(0.5, JoinProfile::new(1e10, 1e10, 1e9).unwrap());
    let v = plan.cell_variance;
    let width = plan.balanced_width();
    let [sketch, _, noise] = row_variance(width, v, [1e10, 1e10], 1e9);
    assert!((sketch / noise - 1.0).abs() < 1e-9);
    // The least over powers of two is beside it, and the suggestion costs 5 % at most.
    let least = (5..=30).map(|bits| plan.row_variance(1 << bits)).fold(f64::INFINITY, f64::min);
    assert!(plan.row_variance(plan.suggested_width()) <= 1.1025 * least);
    assert!(plan.suggested_width() as f64 <= 2.0 * width);
    assert!(plan.row_variance(plan.suggested_width() / 2) > 1.1025 * least);
}

#[test]
fn a_suggestion_is_the_best_of_all_shapes_but_for_five_percent() {
    for confidence in [0.9, 0.99, 0.9999] {
        for (rho, profile) in [
            (0.5, JoinProfile::uniform(1e6, 1e6, 1000).unwrap()),
            (0.001, JoinProfile::uniform(1e5, 1e6, 100_000).unwrap()),
            (10.0, JoinProfile::new(1e12, 3.0, 1e3).unwrap()),
            (0.5, JoinProfile::new(0.0, 0.0, 0.0).unwrap()),
        ] {
            let start = plan(rho, profile);
            let suggested = start.suggest(confidence, 1 << 30).unwrap();
            let least = (3..=63)
                .step_by(2)
                .flat_map(|depth| (5..=30).step_by(2).map(move |bits| (depth, 1usize << bits)))
                .map(|(depth, width)| {
                    let builder = start.parameters().clone().depth(depth).width(width);
                    builder.plan(profile).unwrap().error(confidence).unwrap()
                })
                .fold(f64::INFINITY, f64::min);
            assert!(suggested.error(confidence).unwrap() <= 1.05 * least * (1.0 + 1e-9));
            let shape = suggested.parameters().shape();
            assert_eq!(suggested.cells_read(), 2 * shape.cells() as u64);
            assert_eq!(suggested.vector().cells(), suggested.cells_read());
        }
    }
    // A higher confidence is worth more rows.
    let depth = |confidence| {
        plan(0.5, JoinProfile::uniform(1e6, 1e6, 1000).unwrap())
            .suggest(confidence, 1 << 30)
            .unwrap()
            .parameters()
            .shape()
            .depth
    };
    assert!(depth(0.9) == 3 && depth(0.99) == 5 && depth(1.0 - 1e-9) > 9);
}

#[test]
fn a_suggestion_has_no_more_cells_than_it_may_have() {
    // Worth any width, and depth as well.
    let profile = JoinProfile::new(1e30, 1e30, 1e6).unwrap();
    let start = plan(1e9, profile);
    for max_cells in [192, 193, 1000, 1 << 14, 1 << 24, 1 << 40, u64::MAX] {
        let suggested = start.suggest(0.999, max_cells).unwrap();
        let cells = suggested.vector().cells();
        assert!(cells <= max_cells && cells >= 96 * (max_cells / 192).min(1 << 23), "{max_cells}: {cells}");
        let least = (3..=63)
            .step_by(2)
            .flat_map(|depth| (5..=30).map(move |bits| (depth, 1usize << bits)))
            .filter(|&(depth, width)| 2 * (depth * width) as u64 <= max_cells)
            .map(|(depth, width)| start.parameters().clone().depth(depth).width(width).plan(profile).unwrap())
            .map(|plan| plan.error(0.999).unwrap())
            .fold(f64::INFINITY, f64::min);
        assert!(suggested.error(0.999).unwrap() <= 1.05 * least * (1.0 + 1e-9), "{max_cells}");
    }
    for max_cells in [0, 3, 191] {
        assert!(matches!(start.suggest(0.9, max_cells), Err(Error::Parameter { name: "max_cells", .. })));
    }
}

#[test]
fn a_budget_that_is_too_small_is_told_from_one_that_is_not() {
    let large = JoinProfile::uniform(1e6, 1e6, 1000).unwrap();
    assert!(plan(0.5, large).suggest(0.95, 1 << 30).unwrap().is_useful());
    let small = JoinProfile::uniform(100.0, 100.0, 50).unwrap();
    assert!(!plan(0.5, small).suggest(0.95, 1 << 30).unwrap().is_useful());
    assert_eq!(plan(0.5, JoinProfile::new(9.0, 9.0, 0.0).unwrap()).relative_std(), f64::INFINITY);
}

#[test]
fn profiles_that_no_relations_have_are_refused() {
    let refused = |left, right, join: f64| JoinProfile::new(left, right, join).is_err();
    assert!(refused(-1.0, 1.0, 0.0) && refused(1.0, f64::NAN, 0.0) && refused(f64::INFINITY, 1.0, 0.0));
    assert!(refused(4.0, 9.0, 6.1) && refused(4.0, 9.0, -6.1) && refused(4.0, 9.0, f64::NAN));
    assert!(JoinProfile::new(4.0, 9.0, -6.0).is_ok());
    assert!(JoinProfile::uniform(1.0, 1.0, 0).is_err() && JoinProfile::uniform(-1.0, 1.0, 1).is_err());
    let uniform = JoinProfile::uniform(60.0, 30.0, 10).unwrap();
    assert_eq!((uniform.moments(), uniform.join_size()), ([360.0, 90.0], 180.0));
    let largest = JoinProfile::new(2f64.powi(160), 2f64.powi(160), 2f64.powi(160)).unwrap();
    let plan = plan(0.5, largest);
    assert!(plan.std().is_finite() && plan.error(0.999_999).unwrap().is_finite() && plan.balanced_width().is_finite());
    for confidence in [0.0, 1.0, f64::NAN] {
        assert!(plan.error(confidence).is_err() && plan.suggest(confidence, 1 << 30).is_err());
    }
}

#[test]
fn a_plan_may_be_of_another_step_and_of_many_estimates() {
    let plan = plan(0.5, JoinProfile::new(1e8, 4e8, 5e7).unwrap());
    // The tree's noise is the same at every step.
    for step in [1, 1 << 20] {
        let at = plan.at(step).unwrap();
        assert_eq!((at.std(), at.terms(), at.error(0.9)), (plan.std(), plan.terms(), plan.error(0.9)));
        assert_eq!(at.suggest(0.95, 1 << 30).unwrap().std(), plan.suggest(0.95, 1 << 30).unwrap().std());
    }
    for step in [0, (1 << 20) + 1] {
        assert!(plan.at(step).is_err());
    }
    assert_eq!(plan.error_of_all(0.95, 1), plan.error(0.95));
    assert!((plan.error_of_all(0.95, 5).unwrap() / plan.error(0.99).unwrap() - 1.0).abs() < 1e-9);
    // So many that the probability of each is below the last bit of one: P(Bin(5, q) > 2) is 10 q^3 then.
    let ratio = plan.error_of_all(0.95, 1 << 62).unwrap() / plan.error_of_all(0.95, 1 << 59).unwrap();
    assert!((ratio / 2f64.sqrt() - 1.0).abs() < 1e-5, "{ratio}");
    assert!(plan.error_of_all(0.95, 0).is_err() && plan.error_of_all(1.0, 1).is_err());
}
