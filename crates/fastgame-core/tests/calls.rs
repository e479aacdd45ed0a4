//! Random calls to every structure, against a model that says what must come: values, errors, clock, seal, cells drawn. The
//! inputs that fuzzing found worth keeping are played again (`fuzz/seeds`, see `CONTRIBUTING.md`).

mod model;

use std::fs;
use std::path::PathBuf;

use model::decoders::Check;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

/// The kept inputs of a target, by name.
fn seeds(target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds")).join(target);
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.into_iter().map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

/// Says which input failed.
fn replay(target: &str, check: Check) {
    let seeds = seeds(target);
    assert!(!seeds.is_empty(), "no kept inputs of {target}");
    for (path, bytes) in seeds {
        let result = std::panic::catch_unwind(|| check(&bytes));
        assert!(result.is_ok(), "{} fails", path.display());
    }
}

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
