//! Files that are stores, nearly, against a second reading of their format.

#[path = "../../fastgame-core/tests/model/kept.rs"]
mod kept;
mod model;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

#[test]
fn kept_files_are_refused_or_go_on_where_they_are_whole() {
    kept::replay("decode_store", model::store);
}

#[test]
fn random_stores_are_refused_or_go_on_where_they_are_whole() {
    let config = Config { cases: 1000, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &[1; 32]));
    let result = runner.run(&prop::collection::vec(any::<u8>(), 0..300), |bytes| {
        model::store(&bytes);
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{error}"));
}
