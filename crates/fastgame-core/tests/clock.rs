//! The public clock: it moves forward, when the caller says so, and a read seals its step.

mod common;

use common::rng;
use fastgame_core::{ContinualVector, Error, MAX_HORIZON, Zcdp};

fn vector(horizon: u64) -> ContinualVector {
    ContinualVector::builder(horizon, Zcdp::new(0.5).unwrap()).cells(3).build().unwrap()
}

#[test]
fn time_starts_at_one_and_moves_only_when_told_to() {
    let mut vector = vector(10);
    assert_eq!((vector.now(), vector.horizon(), vector.is_sealed()), (1, 10, false));
    vector.update(&[(0u64, 1i64)]).unwrap();
    vector.release_all(&mut rng(1)).unwrap();
    assert_eq!(vector.now(), 1);
    vector.advance(2).unwrap();
    vector.advance(10).unwrap();
    assert_eq!(vector.now(), 10);
}

#[test]
fn time_backwards_or_past_the_horizon_is_an_error_and_changes_nothing() {
    let mut vector = vector(10);
    vector.advance(4).unwrap();
    vector.release(&[1u64], &mut rng(1)).unwrap();
    for to in [0, 1, 3, 11, u64::MAX] {
        assert_eq!(vector.advance(to), Err(Error::Time { to: Some(to), now: 4, horizon: 10 }));
        assert_eq!((vector.now(), vector.is_sealed()), (4, true));
    }
    let error = vector.advance(3).unwrap_err().to_string();
    assert_eq!(
        error,
        "cannot advance to step 3: now is 4 and the horizon is 10; time only moves forward, to a step from 4 to 10"
    );
    vector.advance(10).unwrap();
    let error = vector.advance(11).unwrap_err().to_string();
    assert!(error.contains("now is 10, the last step of the horizon"), "{error}");
}

#[test]
fn a_read_seals_its_step_for_all_cells_until_time_moves() {
    let mut vector = vector(10);
    vector.advance(5).unwrap();
    vector.update(&[(2u64, 1i64)]).unwrap();
    vector.release(&[0u64], &mut rng(1)).unwrap();
    assert_eq!(vector.update(&[(2u64, 1i64)]), Err(Error::Sealed { now: 5, horizon: 10 }));
    vector.advance(5).unwrap();
    assert!(vector.is_sealed(), "to stay is no move");
    let error = vector.update(&[(2u64, 1i64)]).unwrap_err().to_string();
    assert_eq!(error, "step 5 has been read and is sealed; advance the clock before the next update");
    vector.advance(6).unwrap();
    assert_eq!(vector.update(&[(2u64, 1i64)]), Ok(0));
    // A read may still come, at the sealed step too.
    vector.release(&[0u64], &mut rng(1)).unwrap();
    vector.release(&[1u64, 2], &mut rng(1)).unwrap();

    vector.advance(10).unwrap();
    vector.release_all(&mut rng(1)).unwrap();
    let error = vector.update(&[(2u64, 1i64)]).unwrap_err().to_string();
    assert!(error.contains("the last step of the horizon, so no further update is possible"), "{error}");
}

#[test]
fn a_sealed_step_refuses_even_empty_and_invalid_updates_first() {
    let mut vector = vector(10);
    vector.release_all(&mut rng(1)).unwrap();
    let sealed = Err(Error::Sealed { now: 1, horizon: 10 });
    assert_eq!(vector.update::<u64, i64>(&[]), sealed);
    assert_eq!(vector.update(&[(99u64, f64::NAN)]), sealed);
}

#[test]
fn a_horizon_of_one_step_is_read_and_over() {
    let mut vector = vector(1);
    vector.update(&[(0u64, 1i64)]).unwrap();
    vector.release_all(&mut rng(1)).unwrap();
    assert_eq!(vector.advance(1), Ok(()));
    assert_eq!(vector.advance(2), Err(Error::Time { to: Some(2), now: 1, horizon: 1 }));
    assert!(matches!(vector.update(&[(0u64, 1i64)]), Err(Error::Sealed { .. })));
}

#[test]
fn the_longest_horizon_can_be_crossed_in_one_jump() {
    let mut vector = vector(MAX_HORIZON);
    vector.release_all(&mut rng(1)).unwrap();
    vector.advance(MAX_HORIZON).unwrap();
    assert!(vector.release_all(&mut rng(1)).unwrap().iter().all(|value| value.is_finite()));
    assert!(vector.advance(MAX_HORIZON + 1).is_err());
}
