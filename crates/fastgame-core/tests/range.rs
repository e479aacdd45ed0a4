//! Range counts from outside: what is read and drawn is the same whatever the data are, an answer is repeated, a generator
//! that fails releases nothing, and one step is the static mechanism.

mod common;

use common::{Failing, Recorder};
use fastgame_core::{
    ContinualVector, Error, Estimator, Invalid, Levels, RangeBuilder, RangeCounter, RangeShape, Weights, Zcdp,
};

fn builder(sizes: &[u64], levels: Levels, estimator: Estimator) -> RangeBuilder {
    let base = ContinualVector::builder(1 << 20, Zcdp::new(0.5).unwrap());
    let shape = RangeShape { width: 64, depth: 3, levels, estimator, ..RangeShape::new(sizes) };
    RangeBuilder::new(base, shape).invalid(Invalid::Drop)
}

/// What can be seen after a call without looking at a value.
#[derive(Debug, PartialEq)]
struct Trace {
    cells: Vec<u64>,
    words: u64,
    values: usize,
    sealed: bool,
    memory: usize,
}

/// The same public calls over data that is given; a generator in the same state has the same words left after each.
fn play(builder: &RangeBuilder, mut data: impl FnMut(u64, &mut RangeCounter)) -> Vec<Trace> {
    let mut counter = builder.build().unwrap();
    let mut rng = Recorder::new(1);
    let boxes = [(3, 200), (0, 77), (0, 300), (0, 100), (17, 18), (99, 100), (4, 4), (0, 9), (100, 260), (50, 51)];
    let mut trace = Vec::new();
    for (step, call) in [1, 2, 9, 10, 500, 77_777, 77_778, 1 << 19].into_iter().zip((0..5).cycle()) {
        counter.advance(step).unwrap();
        data(step, &mut counter);
        assert_eq!(trace.last().map_or(0, |last: &Trace| last.words), rng.words, "an update drew noise");
        let (cells, values) = match call {
            0 => (counter.cells_of(&boxes).unwrap(), counter.count(&boxes, &mut rng).unwrap().len()),
            1 => (Vec::new(), counter.second_moments(&mut rng).unwrap().values().len()),
            2 => (Vec::new(), counter.count_with_error(&boxes[2..6], None, &mut rng).unwrap().stds.len()),
            3 => (Vec::new(), counter.marginal(0, 3, &mut rng).unwrap().len()),
            _ => (Vec::new(), counter.grid(&[5, 4], &mut rng).unwrap().len()),
        };
        trace.push(Trace {
            cells,
            words: rng.words,
            values,
            sealed: counter.vector().is_sealed(),
            memory: counter.memory(),
        });
    }
    trace
}

/// Rejects reads of touched cells only, and noise drawn on updates.
#[test]
fn what_is_read_and_drawn_does_not_depend_on_data() {
    for (levels, estimator) in [(Levels::Dyadic, Estimator::Cover), (Levels::Every(2), Estimator::LeastSquares)] {
        let builder = builder(&[300, 100], levels, estimator);
        let none = play(&builder, |_, _| ());
        let one = play(&builder, |step, counter| {
            counter.update(&[step % 300, step % 100], Weights::All(1)).unwrap();
        });
        let many = play(&builder, |step, counter| {
            let points: Vec<u64> = (0..2000).map(|i| (i * i + step) % 100).collect();
            counter.update(&points, Weights::All(-1)).unwrap();
            counter.update(&[17u64, 17, 17, 99, 1000, 5], Weights::All(1)).unwrap();
        });
        assert_eq!(none, one);
        assert_eq!(none, many);
        assert!(none.windows(2).all(|pair| pair[0].words < pair[1].words));
    }
}

#[test]
fn a_repeated_count_repeats_its_value_and_draws_nothing() {
    let mut counter = builder(&[300, 100], Levels::Every(2), Estimator::LeastSquares).build().unwrap();
    let mut rng = Recorder::new(2);
    counter.update(&[3u64, 4, 299, 99], Weights::All(1)).unwrap();
    let boxes = [(3, 200), (0, 77), (3, 200), (0, 77), (5, 5), (0, 77)];
    let first = counter.count(&boxes, &mut rng).unwrap();
    assert_eq!((first[0], first[2]), (first[1], 0.0));
    let words = rng.words;
    assert_eq!(counter.count(&boxes, &mut rng).unwrap(), first);
    assert_eq!(counter.count(&boxes[4..], &mut rng).unwrap(), first[2..]);
    // In any batch.
    let more = counter.count(&[(5, 6), (7, 8), (3, 200), (0, 77)], &mut rng).unwrap();
    assert_eq!(more[1], first[0]);
    assert!(rng.words > words);
    assert!(matches!(counter.update(&[3u64, 4], Weights::All(1)), Err(Error::Sealed { .. })));
}

#[test]
fn a_generator_that_fails_releases_nothing() {
    let builder = builder(&[300, 100], Levels::Every(2), Estimator::LeastSquares);
    let boxes = [(3, 200), (0, 77)];
    for words in [0, 1, 5, 100] {
        let mut counter = builder.build().unwrap();
        let mut failing = Failing::after(words, 3);
        assert_eq!(counter.count(&boxes, &mut failing), Err(Error::Entropy));
        assert_eq!(counter.count_with_error(&boxes, None, &mut failing), Err(Error::Entropy));
        assert_eq!(counter.second_moments(&mut failing), Err(Error::Entropy));
        assert_eq!(counter.grid(&[3, 3], &mut failing), Err(Error::Entropy));
        assert!(!counter.vector().is_sealed());
        counter.update(&[3u64, 4], Weights::All(1)).unwrap();
    }
}

/// Empty boxes read no cell, and are zero.
#[test]
fn empty_boxes_draw_nothing() {
    let mut counter = builder(&[300, 1], Levels::Every(2), Estimator::Cover).build().unwrap();
    let mut rng = Recorder::new(4);
    let boxes = [(0, 0), (0, 1), (300, 300), (0, 1), (7, 9), (1, 1)];
    assert!(counter.cells_of(&boxes).unwrap().is_empty());
    assert_eq!(counter.count(&boxes, &mut rng).unwrap(), [0.0; 3]);
    assert_eq!(counter.count_with_error(&boxes, None, &mut rng).unwrap().stds, [0.0; 3]);
    assert_eq!(rng.words, 0);
}

/// `horizon = 1`: tau = 1, no tree, node variance `cells moved / (2 rho)` (Theorem D.2 has `t (log B)^d / (2 rho)` for all
/// components sketched).
#[test]
fn one_step_is_the_static_mechanism() {
    let base = ContinualVector::builder(1, Zcdp::new(0.25).unwrap());
    let paper = RangeShape {
        width: 1,
        depth: 1,
        levels: Levels::Dyadic,
        estimator: Estimator::Cover,
        ..RangeShape::new(&[1 << 10, 1 << 10])
    };
    let plan = RangeBuilder::new(base, paper).plan().unwrap();
    assert_eq!((plan.components(), plan.cells_moved()), ((100, 0), 100));
    assert!((plan.noise_std().powi(2) / (100.0 / 0.5) - 1.0).abs() < 1e-9);
}

/// Two structures with one insecure seed do not share noise if anything about them differs.
#[test]
fn insecure_keys_differ_with_every_parameter() {
    let base = builder(&[300, 100], Levels::Every(2), Estimator::Cover);
    let with = |sizes: &[u64], levels| builder(sizes, levels, Estimator::Cover);
    let others = [
        base.clone(),
        base.clone().hash_seed(1),
        base.clone().depth(5),
        base.clone().width(32),
        base.clone().max_weight(2),
        base.clone().levels(Levels::Every(3)),
        with(&[100, 300], Levels::Every(2)),
        with(&[300, 101], Levels::Every(2)),
        // The same blocks.
        with(&[2], Levels::Every(1)),
        with(&[2], Levels::Every(2)),
        with(&[2, 1], Levels::Every(1)),
    ];
    let mut keys: Vec<[u8; 32]> = others.iter().map(|builder| builder.insecure_key("range", 7).unwrap()).collect();
    assert_eq!(keys[0], base.insecure_key("range", 7).unwrap());
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), others.len());
}
