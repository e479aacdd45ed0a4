//! Vectors whose noise is a BLT's, through the public API: whatever is called, and the scale of what comes out.

mod common;

use common::{LIMIT, Recorder, mean_score, rng, variance_score};
use fastgame_core::{Builder, Cells, ContinualVector, Error, MAX_BUFFERS, MAX_HORIZON, Mechanism, PureDp, Unit, Zcdp};
use proptest::prelude::*;

fn builder(horizon: u64, buffers: Option<u32>) -> Builder {
    ContinualVector::builder(horizon, Zcdp::new(0.5).unwrap()).mechanism(Mechanism::Blt { buffers })
}

#[derive(Clone, Debug)]
enum Call {
    /// How far to jump: an exponent, and what to take of it.
    Advance(u32, u64),
    Update(u64, i64),
    All,
    Block(usize),
    Cells(Vec<u64>),
    /// Drawn and given up.
    GivenUp(Vec<u64>),
}

fn calls() -> impl Strategy<Value = Vec<Call>> {
    let cells = || prop::collection::vec(any::<u64>(), 0..6);
    let call = prop_oneof![
        4 => (0u32..62, any::<u64>()).prop_map(|(exponent, take)| Call::Advance(exponent, take)),
        2 => Just(Call::Advance(0, 0)),
        2 => (any::<u64>(), -1i64..=1).prop_map(|(cell, weight)| Call::Update(cell, weight)),
        1 => Just(Call::All),
        1 => any::<usize>().prop_map(Call::Block),
        3 => cells().prop_map(Call::Cells),
        1 => cells().prop_map(Call::GivenUp),
    ];
    prop::collection::vec(call, 1..80)
}

/// With the lengths of the blocks.
fn builders() -> impl Strategy<Value = (Builder, Vec<usize>)> {
    let horizon = (0u32..=62, any::<u64>()).prop_map(|(levels, bits)| 1 + bits % (1u64 << levels));
    let buffers = prop_oneof![Just(None), (1..=MAX_BUFFERS as u32).prop_map(Some)];
    let blocks = prop_oneof![1 => Just(vec![1]), 4 => prop::collection::vec(1usize..12, 1..5)];
    let unit = prop_oneof![Just(Unit::Update), Just(Unit::Lifetime)];
    (horizon, buffers, blocks, unit).prop_map(|(horizon, buffers, blocks, unit)| {
        let of = |buffers| builder(horizon, buffers).blocks(&blocks).unit(unit).max_weight(1);
        // Short horizons do not have every number of buffers.
        let builder = if of(buffers).plan().is_ok() { of(buffers) } else { of(None) };
        (builder, blocks)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_calls_give_sealed_lattice_values_within_the_plans_memory(
        (builder, blocks) in builders(), calls in calls(), seed in any::<u64>(),
    ) {
        let mut vector = builder.build().unwrap();
        let plan = builder.plan().unwrap();
        let (size, horizon, step) = (vector.size(), vector.horizon(), vector.lattice_step());
        let mut rng = Recorder::new(seed);
        // Not all together once a read was for some cells.
        let (mut together, mut sealed) = (true, false);
        // What was released at this step.
        let mut seen = vec![None; size as usize];
        for call in calls {
            let (cells, block): (Vec<u64>, _) = match call {
                Call::Advance(exponent, take) => {
                    let gap = if exponent == 0 { 1 } else { take % (1 << exponent) };
                    let to = vector.now().saturating_add(gap);
                    if to > horizon {
                        prop_assert!(matches!(vector.advance(to), Err(Error::Time { .. })), "{}", to);
                    } else {
                        vector.advance(to).unwrap();
                        if gap > 0 {
                            seen.fill(None);
                            sealed = false;
                        }
                    }
                    prop_assert!(vector.noise_std() <= plan.noise_std());
                    continue;
                }
                Call::Update(cell, weight) => {
                    let words = rng.words;
                    match vector.update(&[(cell % size, weight)]) {
                        Ok(dropped) => prop_assert!(!sealed && dropped == 0),
                        Err(error) => prop_assert!(sealed && matches!(error, Error::Sealed { .. }), "{}", error),
                    }
                    prop_assert_eq!(rng.words, words);
                    continue;
                }
                Call::All => ((0..size).collect(), None),
                Call::Block(block) => {
                    let block = block % (blocks.len() + 1);
                    let Some(&len) = blocks.get(block) else {
                        prop_assert!(vector.release(Cells::<u64>::Block(block), &mut rng).is_err());
                        continue;
                    };
                    let start = blocks[..block].iter().sum::<usize>() as u64;
                    ((start..start + len as u64).collect(), Some(block))
                }
                Call::Cells(cells) => {
                    together = false;
                    (cells.iter().map(|cell| cell % size).collect(), None)
                }
                Call::GivenUp(cells) => {
                    // Looking a cell up makes room for its record.
                    together = false;
                    let cells: Vec<u64> = cells.iter().map(|cell| cell % size).collect();
                    drop(vector.draw(&cells[..], &mut rng).unwrap());
                    prop_assert_eq!(vector.is_sealed(), sealed);
                    continue;
                }
            };
            let request = || match block {
                Some(block) => Cells::Block(block),
                None if cells.len() as u64 == size && together => Cells::All,
                None => Cells::Indices(&cells[..]),
            };
            let values = vector.release(request(), &mut rng).unwrap();
            sealed = true;
            prop_assert!(vector.is_sealed());
            prop_assert_eq!(values.len(), cells.len());
            for (&cell, &value) in cells.iter().zip(&values) {
                prop_assert!(value.is_finite() && value % step == 0.0, "{} on {}", value, step);
                prop_assert_eq!(*seen[cell as usize].get_or_insert(value), value);
            }
            let (memory, bound) = (vector.memory() as u64, plan.memory_at_most(together));
            prop_assert!(memory <= bound, "{} bytes where {} are promised ({} cells)", memory, bound, size);
            let words = rng.words;
            prop_assert_eq!(&vector.release(request(), &mut rng).unwrap(), &values);
            if !together {
                prop_assert_eq!(&vector.release(&cells[..], &mut rng).unwrap(), &values);
            }
            prop_assert_eq!(rng.words, words, "a repeat draws nothing");
        }
    }
}

#[test]
fn the_plan_bounds_the_memory() {
    for horizon in [1, 2, 1 << 10, 1 << 20, MAX_HORIZON] {
        for cells in [1usize, 2, 3, 63, 64, 5000] {
            for together in [true, false] {
                let builder = builder(horizon, None).cells(cells);
                let plan = builder.plan().unwrap();
                let mut vector = builder.build().unwrap();
                let wanted: Vec<u64> = (0..cells as u64).step_by(2).collect();
                let mut rng = rng(1);
                for step in [1, 2, 700, horizon] {
                    if step <= horizon {
                        vector.advance(step).unwrap();
                        if together { vector.release_all(&mut rng) } else { vector.release(&wanted[..], &mut rng) }
                            .unwrap();
                    }
                }
                let (memory, bound) = (vector.memory() as u64, plan.memory_at_most(together));
                assert!(
                    memory <= bound,
                    "T = {horizon}, {cells} cells, together: {together}: {memory}, {bound} promised"
                );
            }
        }
    }
}

#[test]
fn at_one_step_it_is_the_gaussian_mechanism() {
    for (rho, weight, contributions, unit) in
        [(0.5, 1, 1, Unit::Update), (0.01, 1, 1, Unit::Lifetime), (2.0, 3, 1, Unit::Update), (0.5, 2, 5, Unit::Update)]
    {
        let builder = ContinualVector::builder(1, Zcdp::new(rho).unwrap()).cells(3).unit(unit);
        let builder = builder.max_weight(weight).contributions(contributions);
        let [blt, tree] = [Mechanism::Blt { buffers: None }, Mechanism::Tree]
            .map(|it| builder.clone().mechanism(it).build().unwrap());
        let exact = f64::from(weight * contributions).powi(2) / (2.0 * rho);
        assert_eq!(blt.calibration().buffers(), Some(0));
        let variance = blt.noise_std().powi(2);
        assert!(variance >= exact && variance < exact * (1.0 + 1e-12), "{variance} for {exact}");
        assert_eq!(blt.noise_std(), tree.noise_std());
    }
}

#[test]
fn what_there_is_no_such_noise_for_is_refused() {
    for (horizon, buffers) in [(1, 1), (2, 2), (1 << 20, 0), (1 << 20, MAX_BUFFERS as u32 + 1)] {
        let error = builder(horizon, Some(buffers)).cells(1).build().unwrap_err();
        assert!(matches!(error, Error::Parameter { name: "buffers", .. }), "{error:?}");
    }
    let pure = ContinualVector::builder(8, PureDp::new(1.0).unwrap()).cells(1);
    let error = pure.mechanism(Mechanism::Blt { buffers: None }).build().unwrap_err();
    assert!(matches!(error, Error::Unsupported { .. }), "{error:?}");
}

/// 200,000 cells for each case and way to read; alpha = 1e-6 in all (`LIMIT`). It rejects a scale that is 3 % off (19 standard deviations), and the last step's
/// variance at the first.
#[test]
fn sampled_releases_have_the_stated_scale_at_every_step() {
    let cells = 200_000;
    let cases = [
        (builder(1, None), vec![1]),
        (builder(1 << 10, None), vec![1, 2, 500, 1 << 10]),
        (builder(1 << 10, Some(1)).unit(Unit::Lifetime), vec![3, 1 << 10]),
        (builder(1 << 20, Some(5)).contributions(2), vec![1, 1 << 19, (1 << 19) + 1, 1 << 20]),
        (builder(MAX_HORIZON, None), vec![1 << 61, 1 << 62]),
    ];
    for (i, (builder, steps)) in (0..).zip(cases) {
        for together in [false, true] {
            let mut rng = rng(10 * i + u64::from(together));
            let mut vector = builder.clone().cells(cells).build().unwrap();
            let wanted: Vec<u64> = (0..cells as u64).collect();
            let mut before = 0.0;
            for &step in &steps {
                vector.advance(step).unwrap();
                let values =
                    if together { vector.release_all(&mut rng) } else { vector.release(&wanted[..], &mut rng) }
                        .unwrap();
                // Rounding to the lattice adds g^2 / 12.
                let noise = vector.noise_std().powi(2);
                let variance = noise + vector.lattice_step().powi(2) / 12.0;
                let scores = [mean_score(&values, variance), variance_score(&values, variance)];
                assert!(scores.iter().all(|score| score.abs() < LIMIT), "case {i}, step {step}: {scores:?}");
                // The test can fail: 3 % off, both ways.
                for factor in [1.03f64, 0.97] {
                    let wrong: Vec<f64> = values.iter().map(|value| value * factor).collect();
                    assert!(variance_score(&wrong, variance).abs() > LIMIT);
                }
                assert!(noise > before, "the variance grows");
                before = noise;
            }
            let calibration = vector.calibration();
            assert_eq!(calibration.release_std_at(*steps.last().unwrap()), Ok(vector.noise_std()));
            if steps[0] == 1 {
                assert_eq!(calibration.release_std_at(1), Ok(calibration.scale()));
            }
        }
    }
}

#[test]
fn it_is_half_of_the_trees_variance() {
    // 2.03 and 1.008 of that of square-root Toeplitz noise at 2^20.
    let std = |mechanism| {
        let builder = ContinualVector::builder(1 << 20, Zcdp::new(0.5).unwrap()).cells(1);
        builder.mechanism(mechanism).plan().unwrap().noise_std()
    };
    let ratio = (std(Mechanism::Tree) / std(Mechanism::Blt { buffers: Some(5) })).powi(2);
    assert!((ratio - 2.03 / 1.008).abs() < 0.01, "{ratio}");
}
