//! Random calls to every structure, against a model that says what must come: values, errors, clock, seal, cells drawn. The
//! inputs that fuzzing found worth keeping are played again (`fuzz/seeds`, see `CONTRIBUTING.md`).

#[path = "model/kept.rs"]
mod kept;
mod model;

use kept::replay;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

#[test]
fn kept_sequences_of_calls_agree_with_the_model() {
    replay("calls", model::calls::play);
}

#[test]
fn kept_inputs_of_decoders_are_refused_or_have_one_form() {
    for (target, check) in model::decoders::ALL {
        replay(target, check);
    }
}

/// Cases of one kind of structure, with a fixed seed.
fn cases(cases: u32, kind: u8) {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &[kind + 1; 32]));
    let bytes = prop::collection::vec(any::<u8>(), 0..500);
    let result = runner.run(&bytes, |mut bytes| {
        bytes.insert(0, kind);
        model::calls::play(&bytes);
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn counters_agree_with_the_model() {
    cases(1000, 0);
}

#[test]
fn vectors_agree_with_the_model() {
    cases(2000, 1);
}

#[test]
fn sketches_agree_with_the_model() {
    cases(400, 4);
}

#[test]
fn range_counters_agree_with_the_model() {
    cases(400, 6);
}

#[test]
fn joins_agree_with_the_model() {
    cases(200, 7);
}
