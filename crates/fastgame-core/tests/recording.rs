//! Nothing but the counters depends on data: what is read, how much is drawn and how much is kept is the same
//! function of the public calls whatever the data are. A recording generator and the draws between the two halves of
//! a read show it.

mod common;

use common::{Recorder, rng};
use fastgame_core::rand_core::Rng;
use fastgame_core::{Builder, Cells, ContinualVector, Invalid, OnExcess, Zcdp};
use proptest::prelude::*;

/// What the public does.
#[derive(Clone, Debug)]
enum Call {
    Advance(u64),
    All(bool),
    Block(usize, bool),
    Cells(Vec<u64>, bool),
}

const BLOCKS: [usize; 3] = [3, 1, 20];
const SIZE: u64 = 24;
const HORIZON: u64 = 1 << 40;

fn calls() -> impl Strategy<Value = Vec<Call>> {
    // Every read is committed or abandoned.
    let call = prop_oneof![
        4 => (0u32..40, any::<u64>()).prop_map(|(bits, gap)| Call::Advance(gap % (1 << bits))),
        1 => any::<bool>().prop_map(Call::All),
        2 => (0..BLOCKS.len(), any::<bool>()).prop_map(|(block, commit)| Call::Block(block, commit)),
        4 => (prop::collection::vec(0..SIZE, 0..8), any::<bool>()).prop_map(|(cells, commit)| Call::Cells(cells, commit)),
    ];
    prop::collection::vec(call, 1..60)
}

/// What can be seen after a call without looking at a value.
#[derive(Debug, PartialEq)]
struct Trace {
    words: u64,
    drawn: Vec<u64>,
    values: usize,
    now: u64,
    sealed: bool,
    memory: usize,
}

/// Plays the calls; before each one the data come, where the step is open.
fn play(builder: &Builder, calls: &[Call], mut data: impl FnMut(usize, &mut ContinualVector)) -> Vec<Trace> {
    let mut vector = builder.build().unwrap();
    let mut rng = Recorder::new(1);
    let mut trace = Vec::new();
    for (i, call) in calls.iter().enumerate() {
        if !vector.is_sealed() {
            let words = rng.words;
            data(i, &mut vector);
            assert_eq!(rng.words, words, "an update drew noise");
        }
        let (cells, commit): (Cells<'_, u64>, bool) = match call {
            Call::Advance(gap) => {
                vector.advance((vector.now() + gap).min(HORIZON)).unwrap();
                (Cells::Indices(&[]), false)
            }
            Call::All(commit) => (Cells::All, *commit),
            Call::Block(block, commit) => (Cells::Block(*block), *commit),
            Call::Cells(cells, commit) => (Cells::Indices(cells), *commit),
        };
        let pending = vector.draw(cells, &mut rng).unwrap();
        let drawn = pending.drawn_cells();
        let values = if commit {
            pending.commit().len()
        } else {
            drop(pending);
            0
        };
        trace.push(Trace {
            words: rng.words,
            drawn,
            values,
            now: vector.now(),
            sealed: vector.is_sealed(),
            memory: vector.memory(),
        });
    }
    trace
}

/// Pseudorandom rows at every open step.
fn random_rows(seed: u64, max: i64) -> impl FnMut(usize, &mut ContinualVector) {
    let mut rng = rng(seed);
    move |_, vector| {
        for _ in 0..rng.next_u64() % 5 {
            let weight = (rng.next_u64() % (2 * max as u64 + 1)) as i64 - max;
            vector.update(&[(rng.next_u64() % SIZE, weight)]).unwrap();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn draws_and_memory_are_the_same_for_neighbouring_and_for_unrelated_data(
        calls in calls(), seed in any::<u64>(), cell in 0..SIZE, when in 0usize..60
    ) {
        let builder = ContinualVector::builder(HORIZON, Zcdp::new(0.5).unwrap()).blocks(&BLOCKS).max_weight(3);
        let nothing = play(&builder, &calls, |_, _| {});

        // Words are whole reads: no normal was cut short, and a repeat draws nothing.
        let drawn: usize = nothing.iter().map(|trace| trace.drawn.len()).sum();
        let words = nothing.last().unwrap().words;
        prop_assert!(words >= drawn as u64);
        prop_assert_eq!(words == 0, drawn == 0);

        let data = play(&builder, &calls, random_rows(seed, 3));
        prop_assert_eq!(&data, &nothing);
        // One update more.
        let mut base = random_rows(seed, 3);
        let neighbour = play(&builder, &calls, |i, vector| {
            base(i, vector);
            if i == when {
                vector.update(&[(cell, 3i64)]).unwrap();
            }
        });
        prop_assert_eq!(&neighbour, &nothing);
        // Other data altogether, some of it bad.
        let tolerant = builder.invalid(Invalid::Drop).on_excess(OnExcess::Clip);
        let mut far = random_rows(!seed, 1_000_000);
        let unrelated = play(&tolerant, &calls, |i, vector| {
            far(i, vector);
            vector.update(&[(cell, f64::NAN)]).unwrap();
            vector.update(&[(u64::MAX, 1i64)]).unwrap();
        });
        prop_assert_eq!(&unrelated, &nothing);
    }
}

#[test]
fn a_read_draws_one_or_two_words_a_cell_nearly_always() {
    // The ziggurat takes one word for 98.8 % of normals. A constant number of normals a cell, whatever the jump.
    let mut vector = ContinualVector::builder(1 << 62, Zcdp::new(0.5).unwrap()).cells(1000).build().unwrap();
    let mut rng = Recorder::new(2);
    let cells: Vec<u64> = (0..1000).collect();
    for step in [1, 2, 3, 1 << 20, 1 << 40, (1 << 40) + 1, (1 << 61) + 1, 1 << 62] {
        vector.advance(step).unwrap();
        let before = rng.words;
        vector.release(&cells[..], &mut rng).unwrap();
        let words = rng.words - before;
        assert!((1000..=2 * 1000 + 200).contains(&words), "{words} words at step {step}");
    }
}
