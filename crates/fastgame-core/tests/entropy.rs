//! A generator that fails: an error, nothing released, and everything as if the read had not been tried.

mod common;

use chacha20::ChaCha12Rng;
use common::{Failing, Recorder, rng};
use fastgame_core::rand_core::{Rng, SeedableRng, TryCryptoRng, TryRng};
use fastgame_core::{
    Cells, ContinualCounter, ContinualVector, CountSketch, Error, JoinSize, Loss, Mechanism, PureDp, RangeBuilder,
    RangeCounter, RangeShape, Result, Side, Weights, Zcdp,
};

type Read = (u64, Option<usize>, &'static [u64]);

/// Reads by step: a block (or all) or cells. They run over first reads, bridges, forks, repeats, mixed blocks.
const READS: [Read; 10] = [
    (1, None, &[0, 4, 4, 2]),
    (1, None, &[]),
    (5, Some(0), &[]),
    (6, Some(9), &[]),
    (1 << 20, None, &[3, 0, 3]),
    ((1 << 20) + 1, Some(9), &[]),
    ((1 << 20) + 1, None, &[1, 0]),
    (1 << 25, Some(1), &[]),
    ((1 << 29) + 7, None, &[5, 1, 2, 0]),
    (1 << 30, Some(9), &[]),
];

fn request(read: Read) -> Cells<'static, u64> {
    match read.1 {
        Some(9) => Cells::All,
        Some(block) => Cells::Block(block),
        None => Cells::Indices(read.2),
    }
}

/// A kind of noise.
type Noise = (Mechanism, Loss);

fn vector() -> ContinualVector {
    vector_with(gaussian())
}

fn vector_with((mechanism, budget): Noise) -> ContinualVector {
    ContinualVector::builder(1 << 30, budget).mechanism(mechanism).blocks(&[3, 1, 2]).build().unwrap()
}

fn gaussian() -> Noise {
    (Mechanism::Tree, Zcdp::new(0.01).unwrap().into())
}

/// Up to four normals a read.
fn blt() -> Noise {
    (Mechanism::Blt { buffers: Some(3) }, Zcdp::new(0.01).unwrap().into())
}

/// Its noise is a Laplace tree: up to six gamma variables a read, some of which take more than two words.
fn pure() -> Noise {
    (Mechanism::Tree, PureDp::new(0.1).unwrap().into())
}

/// The words that a healthy read takes from this generator.
fn words(noise: Noise, reads: &[Read], seed: u64) -> u64 {
    let mut vector = vector_with(noise);
    let (last, before) = reads.split_last().unwrap();
    for &read in before {
        vector.advance(read.0).unwrap();
        vector.release(request(read), &mut rng(read.0)).unwrap();
    }
    let mut recorder = Recorder::new(seed);
    vector.advance(last.0).unwrap();
    vector.release(request(*last), &mut recorder).unwrap();
    recorder.words
}

#[test]
fn a_failure_at_any_word_of_any_read_leaves_everything_as_it_was() {
    // Seeds, so that the samplers' rare branches (two or three words a normal) are cut short too.
    fail_everywhere(gaussian(), 30);
}

#[test]
fn a_failure_at_any_word_of_any_read_of_a_blt_leaves_everything_as_it_was() {
    fail_everywhere(blt(), 15);
}

#[test]
fn a_failure_at_any_word_of_any_read_of_a_laplace_tree_leaves_everything_as_it_was() {
    fail_everywhere(pure(), 15);
}

/// Runs a read of a structure with a generator that fails at each of its words in turn. `build` has read once already, so that
/// there is noise to be kept. `at_once`: it is one read, of which nothing happens when it fails; what reads several times
/// keeps what it has released.
fn fail_at_every_word<S, T: PartialEq + std::fmt::Debug>(
    what: &str,
    build: impl Fn() -> S,
    vector: impl Fn(&S) -> &ContinualVector,
    at_once: bool,
    read: impl Fn(&mut S, &mut Failing) -> Result<T>,
) {
    for seed in 0..2 {
        let mut healthy = Failing::after(u64::MAX, seed);
        let expected = read(&mut build(), &mut healthy).unwrap();
        let needed = healthy.given;
        assert!(needed > 0, "{what} draws nothing");
        for words in 0..needed {
            let mut structure = build();
            let mut generator = Failing::after(words, seed);
            let at = format!("{what}, {words} of {needed} words");
            assert_eq!(read(&mut structure, &mut generator), Err(Error::Entropy), "{at}");
            assert_eq!(generator.refused, 1, "{at}: asked again");
            if at_once {
                assert!(!vector(&structure).is_sealed(), "{at}");
                assert_eq!(read(&mut structure, &mut Failing::after(u64::MAX, seed)).unwrap(), expected, "{at}");
            } else {
                read(&mut structure, &mut Failing::after(u64::MAX, seed + 9)).unwrap();
            }
            // It has gone well now, and says the same again without a word.
            let sealed = vector(&structure).is_sealed();
            let again = read(&mut structure, &mut Failing::after(0, 0));
            assert!(sealed && again.is_ok(), "{at}");
        }
        let mut structure = build();
        assert_eq!(read(&mut structure, &mut Failing::after(needed, seed)).as_ref(), Ok(&expected), "{what}");
    }
}

#[test]
fn every_kind_of_read_of_every_structure_fails_closed_at_every_word() {
    for (mechanism, budget) in [gaussian(), blt(), pure()] {
        let base = || ContinualVector::builder(1 << 30, budget).mechanism(mechanism);

        let counter = || {
            let mut counter = ContinualCounter::new(base()).unwrap();
            counter.release(&mut rng(1)).unwrap();
            counter.vector_mut().advance(1 << 29).unwrap();
            counter.update(&[1i64]).unwrap();
            counter
        };
        fail_at_every_word("counter", counter, ContinualCounter::vector, true, ContinualCounter::release);

        let sketch = || {
            let builder = CountSketch::builder(1 << 30, budget).mechanism(mechanism).width(16).depth(3);
            let mut sketch = builder.build().unwrap();
            sketch.estimate(&[1u64, 2], &mut rng(1)).unwrap();
            sketch.advance(5).unwrap();
            sketch.update(&[1u64, 2, 3], Weights::All(1)).unwrap();
            sketch
        };
        let keys = [1u64, 7];
        let vector = CountSketch::vector;
        fail_at_every_word("estimate", sketch, vector, true, |s, rng| s.estimate(&keys, rng));
        fail_at_every_word("estimate of many", sketch, vector, true, |s, rng| s.estimate(&[3u64; 20], rng));
        fail_at_every_word("estimate, std", sketch, vector, true, |s, rng| s.estimate_with_std(&keys, rng));
        fail_at_every_word("estimate, error", sketch, vector, true, |s, rng| s.estimate_with_error(&keys, 0.9, rng));
        fail_at_every_word("second moment", sketch, vector, true, |s, rng| s.second_moment(rng));

        let join = || {
            let builder = JoinSize::builder(1 << 30, budget).mechanism(mechanism).width(32).depth(1);
            let mut join = builder.build().unwrap();
            join.estimate(&mut rng(1)).unwrap();
            join.advance(1 << 20).unwrap();
            join.update(Side::Left, &[1u64, 2, 3], Weights::All(1)).unwrap();
            join
        };
        let vector = JoinSize::vector;
        fail_at_every_word("join", join, vector, true, |j, rng| j.estimate(rng));
        fail_at_every_word("join, error", join, vector, true, |j, rng| j.estimate_with_error(rng));
        fail_at_every_word("join, interval", join, vector, true, |j, rng| j.estimate_with_interval(0.9, rng));

        let range = || {
            let shape = RangeShape { width: 4, depth: 3, ..RangeShape::new(&[50]) };
            let mut range = RangeBuilder::new(base(), shape).build().unwrap();
            range.count(&[(3, 11)], &mut rng(1)).unwrap();
            range.advance(77).unwrap();
            range.update(&[3u64, 4, 40], Weights::All(1)).unwrap();
            range
        };
        let vector = RangeCounter::vector;
        fail_at_every_word("count", range, vector, true, |r, rng| r.count(&[(1, 9), (20, 50)], rng));
        fail_at_every_word("count, error", range, vector, true, |r, rng| r.count_with_error(&[(1, 9)], None, rng));
        fail_at_every_word("second moments", range, vector, true, |r, rng| r.second_moments(rng));
        fail_at_every_word("grid", range, vector, true, |r, rng| r.grid(&[4], rng));
        fail_at_every_word("marginal", range, vector, true, |r, rng| r.marginal(0, 4, rng));
        fail_at_every_word("prefix", range, vector, true, |r, rng| r.prefix(&[7, 50], rng));
        fail_at_every_word("cdf", range, vector, true, |r, rng| r.cdf(&[7], rng));
        // Of a clear total, so that it goes down all levels.
        let full = || {
            let mut range = range();
            range.update(&[44u64; 100_000], Weights::All(1)).unwrap();
            range
        };
        let found = |range: &mut RangeCounter, rng: &mut Failing| Ok(range.quantile(&[0.5], rng)?.unwrap());
        fail_at_every_word("quantile", full, vector, false, found);
        fail_at_every_word("heavy hitters", range, vector, false, |r, rng| r.heavy_hitters(1.0, 2, rng));
    }
}

fn fail_everywhere(noise: Noise, seeds: u64) {
    let mut failures = 0;
    for at in 0..READS.len() {
        for seed in 0..seeds {
            let needed = words(noise, &READS[..=at], seed);
            for healthy in 0..=needed {
                let (mut vector, mut twin) = (vector_with(noise), vector_with(noise));
                let (mut after, mut twin_after) = (rng(77), rng(77));
                for (i, &read) in READS.iter().enumerate() {
                    vector.advance(read.0).unwrap();
                    twin.advance(read.0).unwrap();
                    if i == at {
                        let sealed = vector.is_sealed();
                        let mut generator = Failing::after(healthy, seed);
                        let result = vector.draw(request(read), &mut generator).map(drop);
                        if healthy < needed {
                            assert_eq!(result, Err(Error::Entropy), "read {at}, {healthy} of {needed} words");
                            assert_eq!(generator.refused, 1, "a generator that has failed is not asked again");
                            failures += 1;
                        } else {
                            assert_eq!(result, Ok(()));
                            assert_eq!(generator.refused, 0);
                        }
                        assert_eq!(vector.is_sealed(), sealed);
                        assert_eq!(vector.now(), read.0);
                    }
                    if !vector.is_sealed() {
                        vector.update(&[(2u64, 1i64)]).unwrap();
                        twin.update(&[(2u64, 1i64)]).unwrap();
                    }
                    // From here on as if it had never been tried: the same values and the same words for them.
                    let values = if i < at {
                        let (mut rng, mut twin_rng) = (rng(read.0), rng(read.0));
                        (vector.release(request(read), &mut rng), twin.release(request(read), &mut twin_rng))
                    } else {
                        (vector.release(request(read), &mut after), twin.release(request(read), &mut twin_after))
                    };
                    assert_eq!(values.0, values.1);
                    assert_eq!(vector.memory(), twin.memory());
                }
                assert_eq!(after.next_u64(), twin_after.next_u64());
            }
        }
    }
    assert!(failures > 1000, "{failures}");
}

#[test]
fn the_release_itself_fails_closed() {
    let mut vector = vector();
    let error = vector.release_all(&mut Failing::after(3, 1)).unwrap_err();
    assert_eq!(error, Error::Entropy);
    assert_eq!(error.to_string(), "the random generator failed; nothing was released and nothing has changed");
    assert!(!vector.is_sealed());
    assert_eq!(vector.update(&[(0u64, 1i64)]), Ok(0));

    let mut counter = ContinualCounter::new(ContinualVector::builder(9, Zcdp::new(0.5).unwrap())).unwrap();
    assert_eq!(counter.release(&mut Failing::after(0, 1)), Err(Error::Entropy));
    assert_eq!(counter.release(&mut Failing::after(1, 1)), Err(Error::Entropy));
    assert!(!counter.vector().is_sealed());
}

#[test]
fn a_repeat_needs_no_entropy() {
    let mut vector = vector();
    let values = vector.release_all(&mut rng(1)).unwrap();
    let mut dead = Failing::after(0, 1);
    assert_eq!(vector.release_all(&mut dead).unwrap(), values);
    assert_eq!(vector.release(&[3u64], &mut dead).unwrap(), [values[3]]);
    assert_eq!(dead.refused, 0);
    vector.advance(2).unwrap();
    assert_eq!(vector.release(&[3u64], &mut dead), Err(Error::Entropy));
}

/// Panics where a fallible source behind an `unwrap` would: at the n-th word.
struct Panicking {
    rng: ChaCha12Rng,
    left: usize,
}

impl TryRng for Panicking {
    type Error = core::convert::Infallible;

    fn try_next_u32(&mut self) -> core::result::Result<u32, Self::Error> {
        self.try_next_u64().map(|word| word as u32)
    }

    fn try_next_u64(&mut self) -> core::result::Result<u64, Self::Error> {
        self.left = self.left.checked_sub(1).expect("the source has run dry");
        self.rng.try_next_u64()
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> core::result::Result<(), Self::Error> {
        self.rng.try_fill_bytes(bytes)
    }
}

impl TryCryptoRng for Panicking {}

#[test]
fn a_generator_that_panics_at_any_word_leaves_every_later_answer_noised() {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    // A mark that is left behind would make the cell's next answer its exact value, or old noise on new data.
    let healthy = || ChaCha12Rng::from_seed([7; 32]);
    let all = |count, noise: Noise| (0..count).map(move |words| (words, noise));
    for (words, noise) in all(12, gaussian()).chain(all(24, blt())).chain(all(60, pure())) {
        for read_before in [false, true] {
            let (mechanism, budget) = noise;
            let builder = ContinualVector::builder(1 << 20, budget).mechanism(mechanism).cells(20);
            let mut vector = builder.build().unwrap();
            vector.update(&[(3u64, 1i64)]).unwrap();
            if read_before {
                vector.release(&[3u64, 4, 5], &mut healthy()).unwrap();
                vector.advance(2).unwrap();
            }
            let mut dry = Panicking { rng: healthy(), left: words };
            let cells = [3u64, 4, 3, 5];
            let read = catch_unwind(AssertUnwindSafe(|| vector.release(&cells, &mut dry).map(drop)));
            vector.advance(700_000).unwrap();
            let mut other = ChaCha12Rng::from_seed([9; 32]);
            let drawn = vector.draw(&cells, &mut other).unwrap().drawn_cells();
            assert_eq!(drawn, [3, 4, 5], "{words} words, panicked: {}", read.is_err());
            let values = vector.release(&cells, &mut other).unwrap();
            assert_eq!(values[0], values[2]);
            assert!(values[0] != 1.0 && values[1] != 0.0 && values[3] != 0.0, "exact values came out");
            let again = vector.release(&cells, &mut ChaCha12Rng::from_seed([1; 32])).unwrap();
            assert_eq!(values, again);
        }
    }
}
