//! What a release is: one answer a step, on the lattice, exact but for noise of the stated scale.

mod common;

use common::{LIMIT, Recorder, mean_score, rng, variance_score};
use fastgame_core::rand_core::Rng;
use fastgame_core::{
    Builder, Calibration, Cells, ContinualCounter, ContinualVector, Error, Gdp, Mechanism, Unit, Zcdp,
};

fn builder(horizon: u64, rho: f64, cells: usize) -> Builder {
    ContinualVector::builder(horizon, Zcdp::new(rho).unwrap()).cells(cells)
}

fn all<'a>() -> Cells<'a, u64> {
    Cells::All
}

#[test]
fn read_at_a_sealed_step_repeats_the_value_and_draws_nothing() {
    let mut rng = Recorder::new(1);
    let mut vector = ContinualVector::builder(1 << 30, Zcdp::new(0.5).unwrap()).blocks(&[3, 1, 4]).build().unwrap();
    for step in [1, 2, 77, 1 << 29] {
        vector.advance(step).unwrap();
        let some = vector.release(&[6u64, 1], &mut rng).unwrap();
        let everything = vector.release_all(&mut rng).unwrap();
        assert_eq!(some, [everything[6], everything[1]]);
        let words = rng.words;
        assert_eq!(vector.release_all(&mut rng).unwrap(), everything);
        assert_eq!(vector.release(Cells::<u64>::Block(0), &mut rng).unwrap(), everything[..3]);
        assert_eq!(vector.release(Cells::<u64>::Block(1), &mut rng).unwrap(), everything[3..4]);
        assert_eq!(vector.release(Cells::<u64>::Block(2), &mut rng).unwrap(), everything[4..]);
        let backwards: Vec<u64> = (0..8).rev().collect();
        let mut reversed = everything.clone();
        reversed.reverse();
        assert_eq!(vector.release(&backwards[..], &mut rng).unwrap(), reversed);
        assert_eq!(rng.words, words, "step {step}");
    }
}

#[test]
fn answers_of_different_steps_and_cells_differ() {
    let mut rng = rng(2);
    let mut vector = builder(8, 1e-6, 50).build().unwrap();
    let mut seen = Vec::new();
    for step in 1..=8 {
        vector.advance(step).unwrap();
        seen.extend(vector.release_all(&mut rng).unwrap().iter().map(|value| value.to_bits()));
    }
    seen.sort_unstable();
    seen.dedup();
    // 400 values on a lattice of some thousand points a standard deviation: some coincide.
    assert!(seen.len() > 200, "{}", seen.len());
}

#[test]
fn a_cell_that_stands_twice_in_a_read_has_one_answer_and_the_order_is_the_requests() {
    let mut rng = rng(3);
    let mut vector = builder(100, 1e-3, 5).build().unwrap();
    for step in [1, 50, 51] {
        vector.advance(step).unwrap();
        let values = vector.release(&[4u64, 2, 4, 0, 2, 4], &mut rng).unwrap();
        assert_eq!(values.len(), 6);
        assert_eq!((values[0], values[1]), (values[2], values[4]));
        assert_eq!(values[0], values[5]);
        let everything = vector.release_all(&mut rng).unwrap();
        assert_eq!(values, [4, 2, 4, 0, 2, 4].map(|cell: usize| everything[cell]));
    }
    let mut single = builder(100, 1e-3, 1).build().unwrap();
    let values = single.release(&[0u64, 0, 0], &mut rng).unwrap();
    assert_eq!(values, [values[0]; 3]);
}

#[test]
fn an_empty_read_is_a_read_it_answers_nothing_draws_nothing_and_seals() {
    for cells in [1, 4] {
        let mut rng = Recorder::new(4);
        let mut vector = builder(4, 0.5, cells).build().unwrap();
        assert_eq!(vector.release(&[] as &[u64], &mut rng).unwrap(), Vec::<f64>::new());
        assert_eq!(rng.words, 0);
        assert!(vector.is_sealed());
    }
}

#[test]
fn every_release_is_a_multiple_of_the_lattice_step_for_data_zero_and_one_alike() {
    // With the weight that stands for "one".
    let cases = [
        (builder(1, 0.5, 1000), 1.0),
        (builder(1 << 20, 0.5, 1000), 1.0),
        (builder(1 << 20, 1e-5, 1000), 1.0),
        (builder(1 << 20, 1e-15, 1000), 1.0),
        (builder(1 << 20, 1e6, 1000), 1.0),
        (builder(1 << 20, 0.5, 1000).max_norm(0.37), 0.3),
        (builder(1 << 20, 1e4, 1000).max_norm(0.37), 0.3),
        (builder(1 << 20, 0.5, 1000).max_norm(1e-60), 1e-61),
        (builder(1 << 20, 0.5, 1000).max_norm(1e60), 1e59),
        (builder(1 << 20, 0.5, 1000).mechanism(Mechanism::TreePaper), 1.0),
    ];
    for (builder, one) in cases {
        for data in [0.0, one] {
            let mut rng = rng(5);
            let mut vector = builder.build().unwrap();
            let step = vector.lattice_step();
            let scale = vector.calibration().scale();
            assert!(step.log2().fract() == 0.0 && step <= scale / 32.0 && step > scale / 64.0, "{step} for {scale}");
            for now in [1, 2, 1 << 19].into_iter().filter(|&now| now <= builder.build().unwrap().horizon()) {
                vector.advance(now).unwrap();
                vector.update(&[(7u64, data)]).unwrap();
                for value in vector.release_all(&mut rng).unwrap() {
                    assert_eq!(value % step, 0.0, "{value} on {step}, scale {scale}");
                }
            }
        }
    }
}

/// Two vectors with the same noise, of which the second has one update more.
fn neighbours(builder: &Builder, cell: u64) -> (Vec<f64>, Vec<f64>, f64) {
    let cells: Vec<u64> = (0..builder.build().unwrap().size()).collect();
    let run = |with: bool| {
        let mut rng = rng(6);
        let mut vector = builder.build().unwrap();
        vector.update(&[(1u64, 1i64)]).unwrap();
        if with {
            vector.update(&[(cell, 1i64)]).unwrap();
        }
        vector.advance(vector.horizon() / 2 + 1).unwrap();
        let values = vector.release(&cells[..], &mut rng).unwrap();
        (values, vector.lattice_step())
    };
    let ((a, step), (b, _)) = (run(false), run(true));
    (a, b, step)
}

#[test]
fn with_the_same_noise_neighbours_differ_exactly_by_the_update_where_the_lattice_has_the_unit() {
    for cell in [0, 1, 99] {
        let (a, b, step) = neighbours(&builder(1 << 20, 0.5, 100), cell);
        assert!(step <= 1.0);
        for (i, (a, b)) in (0..).zip(a.iter().zip(&b)) {
            assert_eq!(b - a, if i == cell { 1.0 } else { 0.0 });
        }
    }
}

#[test]
fn on_a_lattice_coarser_than_the_unit_an_update_shows_as_nothing_or_as_one_step() {
    // 20,000 cells get one unit each on a lattice of 8: one in eight moves, by exactly one step. alpha < 1e-8; it
    // rejects a release that drops the counter's lowest bits before the noise is added (none would move), and one that
    // rounds half a step off.
    let n = 20_000;
    let builder = builder(1 << 10, 5e-6, n);
    let run = |weight: f64| {
        let mut rng = rng(7);
        let mut vector = builder.build().unwrap();
        assert_eq!(vector.lattice_step(), 8.0);
        for cell in 0..n as u64 {
            vector.update(&[(cell, weight)]).unwrap();
        }
        vector.release_all(&mut rng).unwrap()
    };
    let (zeros, ones) = (run(0.0), run(1.0));
    let moved = zeros.iter().zip(&ones).filter(|(a, b)| a != b).count() as f64;
    assert!(zeros.iter().zip(&ones).all(|(a, b)| b - a == 0.0 || b - a == 8.0));
    let (n, p) = (n as f64, 0.125);
    assert!(((moved - n * p) / (n * p * (1.0 - p)).sqrt()).abs() < LIMIT, "{moved}");
}

#[test]
fn one_step_has_the_variance_of_the_gaussian_mechanism() {
    // Delta^2 / (2 rho), and no more than rounding above it.
    for (rho, weight, contributions) in [(0.5, 1, 1), (0.01, 1, 1), (2.0, 3, 1), (0.5, 2, 5)] {
        let delta = f64::from(weight * contributions);
        let vector = builder(1, rho, 3).max_weight(weight).contributions(contributions).build().unwrap();
        let variance = vector.noise_std().powi(2);
        let exact = delta * delta / (2.0 * rho);
        assert!(variance >= exact && variance < exact * (1.0 + 1e-12), "{variance} for {exact}");
        assert_eq!(vector.noise_std(), vector.calibration().scale());
    }
}

/// The releases of all cells of an empty vector at each of these steps: noise alone.
fn noise(builder: &Builder, steps: &[u64], together: bool, seed: u64) -> Vec<Vec<f64>> {
    let mut rng = rng(seed);
    let mut vector = builder.build().unwrap();
    let cells: Vec<u64> = (0..vector.size()).collect();
    steps
        .iter()
        .map(|&step| {
            vector.advance(step).unwrap();
            if together { vector.release_all(&mut rng) } else { vector.release(&cells[..], &mut rng) }.unwrap()
        })
        .collect()
}

/// 200,000 cells for each case and way to read; alpha = 1e-6 in all (`LIMIT`). It rejects a scale that is 3 % off (19
/// standard deviations), at T = 1 the paper's formula (half of the variance: 158 standard deviations), and noise that is
/// shared or fresh where it should not be.
#[test]
fn sampled_releases_have_the_stated_scale_at_every_step() {
    let cells = 200_000;
    let cases = [
        (builder(1, 0.5, cells), vec![1], 1.0),
        (builder(1, 0.02, cells), vec![1], 25.0),
        (builder(1 << 10, 0.5, cells), vec![1, 512, 513, 1024], 1.7907827955 * 11.0),
        (
            builder(1 << 10, 0.5, cells).mechanism(Mechanism::TreePaper),
            vec![1, 1024],
            (10.0 + 2.0) / (8.0 * 0.5) * 11.0,
        ),
        (builder(1 << 62, 0.5, cells).contributions(2), vec![1 << 61, 1 << 62], 7.5685988739 * 63.0 * 4.0),
        (builder(1000, 0.5, cells).unit(Unit::Lifetime), vec![999, 1000], 3.0533940446 * 11.0),
    ];
    for (i, (builder, steps, variance)) in cases.iter().enumerate() {
        let vector = builder.build().unwrap();
        assert!((vector.noise_std().powi(2) / variance - 1.0).abs() < 1e-9, "{} for {variance}", vector.noise_std());
        // Rounding to the lattice adds g^2 / 12.
        let variance = variance + vector.lattice_step().powi(2) / 12.0;
        for together in [false, true] {
            let reads = noise(builder, steps, together, 10 * i as u64 + u64::from(together));
            for (step, values) in steps.iter().zip(&reads) {
                let scores = [mean_score(values, variance), variance_score(values, variance)];
                assert!(scores.iter().all(|score| score.abs() < LIMIT), "case {i}, step {step}: {scores:?}");
            }
            // Two steps that share the root alone: their difference is made of 2 h nodes.
            for (case, first, second, nodes, node_variance) in
                [(2, 1, 2, 20.0, 1.7907827955), (4, 0, 1, 124.0, 4.0 * 7.5685988739)]
            {
                if i == case {
                    let differences: Vec<f64> = reads[first].iter().zip(&reads[second]).map(|(a, b)| a - b).collect();
                    let variance = nodes * node_variance + vector.lattice_step().powi(2) / 6.0;
                    assert!(variance_score(&differences, variance).abs() < LIMIT, "case {i}");
                }
            }
        }
    }
    // The test can fail: 3 % off, both ways.
    let values = &noise(&builder(1, 0.5, cells), &[1], true, 99)[0];
    for factor in [1.03f64, 0.97, 0.5f64.sqrt()] {
        let wrong: Vec<f64> = values.iter().map(|value| value * factor).collect();
        assert!(variance_score(&wrong, 1.0).abs() > LIMIT);
    }
}

fn calibration(builder: &Builder) -> Calibration {
    *builder.build().unwrap().calibration()
}

#[test]
fn the_scale_of_the_tree_is_the_golden_one() {
    // Golden values of tau, for horizons 2^h and, as one level more begins there, just above 2^(h - 1).
    let update =
        [(0, 1.0), (1, 0.6666666667), (2, 0.9047619048), (10, 1.7907827955), (40, 5.1241544295), (62, 7.5685988739)];
    let lifetime =
        [(0, 1.0), (1, 0.6666666667), (2, 1.1428571429), (10, 3.0533940446), (40, 9.7205310812), (62, 14.6094199701)];
    for (unit, table) in [(Unit::Update, update), (Unit::Lifetime, lifetime)] {
        for (levels, tau) in table {
            let horizons = if levels < 2 { [1u64 << levels; 2] } else { [1 << levels, (1 << (levels - 1)) + 1] };
            for horizon in horizons {
                let got = calibration(&builder(horizon, 0.125, 1).unit(unit));
                assert_eq!(got.levels(), levels);
                assert!((got.tau() / tau - 1.0).abs() < 1e-9, "{unit:?} {levels}: {}", got.tau());
                assert!((got.scale().powi(2) / (tau / 0.25) - 1.0).abs() < 1e-9);
                let release = f64::from(levels + 1) * got.scale().powi(2);
                assert!((got.release_std().powi(2) / release - 1.0).abs() < 1e-12);
            }
        }
    }
}

#[test]
fn contributions_and_bounds_scale_the_noise_and_budgets_divide_it() {
    let base = calibration(&builder(1 << 16, 0.5, 1)).scale();
    let close = |got: Calibration, factor: f64| assert!((got.scale() / (base * factor) - 1.0).abs() < 1e-12);
    close(calibration(&builder(1 << 16, 0.5, 1).contributions(7)), 7.0);
    close(calibration(&builder(1 << 16, 0.5, 1).max_weight(9)), 9.0);
    close(calibration(&builder(1 << 16, 0.5, 1).max_weight(9).contributions(7)), 63.0);
    close(calibration(&builder(1 << 16, 0.5, 1).max_norm(2.5)), 2.5);
    close(calibration(&builder(1 << 16, 2.0, 1)), 0.5);
    close(calibration(&builder(1 << 16, 0.5, 1_000)), 1.0);
    close(calibration(&ContinualVector::builder(1 << 16, Gdp::new(1.0).unwrap()).cells(1)), 1.0);
}

#[test]
fn tree_paper_has_the_papers_node_variance_and_refuses_one_step() {
    for (horizon, levels) in [(2, 1.0), (3, 2.0), (1 << 20, 20.0), (1 << 62, 62.0)] {
        for rho in [0.01, 0.5, 3.0] {
            let got = calibration(&builder(horizon, rho, 1).mechanism(Mechanism::TreePaper));
            let paper = (levels + 2.0) / (8.0 * rho);
            assert!((got.scale().powi(2) / paper - 1.0).abs() < 1e-12);
            // Never less noise than what the exact calibration asks for.
            assert!(got.scale() > calibration(&builder(horizon, rho, 1)).scale());
        }
    }
    let error = builder(1, 0.5, 1).mechanism(Mechanism::TreePaper).build().unwrap_err();
    assert!(matches!(error, Error::Parameter { name: "horizon", .. }), "{error}");
    assert!(error.to_string().contains("at least 2") && error.to_string().contains("1 was given"), "{error}");
}

#[test]
fn an_abandoned_or_forgotten_read_has_released_nothing_and_leaves_no_trace() {
    let build = || ContinualVector::builder(1 << 30, Zcdp::new(1e-3).unwrap()).blocks(&[4, 3]).build().unwrap();
    let requests: [Cells<'_, u64>; 4] = [all(), Cells::Block(1), Cells::Indices(&[5, 1, 5]), Cells::Indices(&[0])];
    for forget in [false, true] {
        let (mut vector, mut twin) = (build(), build());
        let (mut rng, mut twin_rng) = (rng(8), rng(8));
        for (i, step) in [1, 2, 100, 101, 1 << 20, (1 << 29) + 1].into_iter().enumerate() {
            vector.advance(step).unwrap();
            twin.advance(step).unwrap();
            for request in requests {
                let pending = vector.draw(request, &mut common::rng(9)).unwrap();
                if forget {
                    std::mem::forget(pending);
                }
            }
            assert!(!vector.is_sealed());
            vector.update(&[(3u64, 1i64)]).unwrap();
            twin.update(&[(3u64, 1i64)]).unwrap();
            let request = requests[i % 4];
            assert_eq!(vector.release(request, &mut rng).unwrap(), twin.release(request, &mut twin_rng).unwrap());
            assert_eq!(rng.next_u64(), twin_rng.next_u64());
        }
        assert_eq!(vector.release_all(&mut rng).unwrap(), twin.release_all(&mut twin_rng).unwrap());
    }
}

#[test]
fn a_read_in_two_halves_is_the_same_read() {
    let (mut whole, mut halves) = (builder(99, 0.1, 6).build().unwrap(), builder(99, 0.1, 6).build().unwrap());
    let (mut rng, mut other_rng) = (rng(10), rng(10));
    for step in [3, 4, 99] {
        whole.advance(step).unwrap();
        halves.advance(step).unwrap();
        let expected = whole.release(&[1u64, 5, 1], &mut rng).unwrap();
        let pending = halves.draw(&[1u64, 5, 1], &mut other_rng).unwrap();
        assert_eq!(pending.drawn_cells(), [1, 5]);
        assert_eq!(pending.commit(), expected);
        assert!(halves.draw(&[5u64, 1], &mut other_rng).unwrap().drawn_cells().is_empty());
    }
}

#[test]
fn a_read_of_a_cell_that_does_not_exist_names_it_and_releases_nothing() {
    let mut rng = Recorder::new(11);
    let mut vector = builder(4, 0.5, 3).build().unwrap();
    let error = vector.release(&[0i64, 2, -1], &mut rng).unwrap_err();
    assert_eq!(error.to_string(), "index -1 at position 2 is outside of the vector; allowed are 0 to 2");
    let error = vector.release(&[3u64], &mut rng).unwrap_err();
    assert_eq!(error.to_string(), "index 3 at position 0 is outside of the vector; allowed are 0 to 2");
    let error = vector.release(&[u64::MAX], &mut rng).unwrap_err();
    assert!(error.to_string().contains("18446744073709551615"), "{error}");
    assert!(vector.release(&[i64::MIN], &mut rng).is_err());
    assert!(vector.release(&[usize::MAX], &mut rng).is_err());
    assert!(vector.release(Cells::<u64>::Block(1), &mut rng).is_err());
    assert!(!vector.is_sealed());
    assert_eq!(rng.words, 0);
}

#[test]
fn the_counter_is_the_vector_of_size_one() {
    let mut counter = ContinualCounter::new(builder(50, 0.5, 17)).unwrap();
    let mut vector = builder(50, 0.5, 1).build().unwrap();
    let (mut rng, mut other_rng) = (rng(12), rng(12));
    for step in [1, 2, 50] {
        counter.vector_mut().advance(step).unwrap();
        vector.advance(step).unwrap();
        assert_eq!(counter.update(&[1i64, 1, -1, 0]), Ok(0));
        vector.update(&[(0u64, 1i64)]).unwrap();
        assert_eq!([counter.release(&mut rng).unwrap()], vector.release_all(&mut other_rng).unwrap()[..]);
        assert!(matches!(counter.update(&[1i64]), Err(Error::Sealed { .. })));
    }
    assert_eq!(counter.vector().size(), 1);
    assert!(matches!(
        ContinualCounter::new(builder(50, 0.5, 1)).unwrap().update(&[1i64, 2]),
        Err(Error::Excess { position: 1, .. })
    ));
}

#[test]
fn debug_output_is_the_same_whatever_the_data_and_the_noise() {
    let show = |seed, weight: i64| {
        let mut vector = builder(50, 0.5, 2).build().unwrap();
        vector.update(&[(0u64, weight)]).unwrap();
        let pending = format!("{:?}", vector.draw(&[0u64], &mut rng(seed)).unwrap());
        drop(vector.release_all(&mut rng(seed)).unwrap());
        (format!("{vector:?}"), pending)
    };
    assert_eq!(show(1, 0), show(2, 1));
    assert!(show(1, 0).0.contains("horizon: 50"));
}
