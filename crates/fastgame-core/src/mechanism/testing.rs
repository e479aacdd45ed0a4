//! What the tests of processes share: a generator that says what it is told, reads, steps, and sampled paths.

use core::convert::Infallible;
use core::result::Result;
use std::collections::BTreeSet;
use std::vec::Vec;

use chacha20::ChaCha12Rng;
use rand_core::{Rng, SeedableRng, TryCryptoRng, TryRng};
use rand_distr::{Distribution, StandardNormal};

use super::Process;
use super::cells::{CellNoise, Request};
use crate::math::{erfc, sqrt};

/// A generator that says what it is told: word number `i` is `word(i)`. It counts what it gave.
pub(crate) struct Script<F> {
    pub(crate) word: F,
    pub(crate) used: usize,
}

impl<F: FnMut(usize) -> u64> TryRng for Script<F> {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        self.try_next_u64().map(|word| (word >> 32) as u32)
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        self.used += 1;
        Ok((self.word)(self.used - 1))
    }

    fn try_fill_bytes(&mut self, _: &mut [u8]) -> Result<(), Infallible> {
        unreachable!("a normal is made of whole words")
    }
}

impl<F: FnMut(usize) -> u64> TryCryptoRng for Script<F> {}

/// The ziggurat of `rand_distr` turns this word into exactly 0, at once.
pub(crate) const ZERO_WORD: u64 = 1 << 63 | 1;

/// A word that the ziggurat accepts at once, in the box `i = 1`: `u` in (-0.9, 0.9) of its width.
pub(crate) fn word(u: f64) -> u64 {
    let mantissa = ((u + 1.0) / 2.0 * (1u64 << 52) as f64) as u64;
    mantissa << 12 | 1
}

/// The standard normal that a word becomes.
pub(crate) fn normal(word: u64) -> f64 {
    let mut script = Script { word: |_| word, used: 0 };
    let z: f64 = StandardNormal.sample(&mut script);
    assert_eq!(script.used, 1, "the ziggurat took more than one word: choose other bits");
    z
}

pub(crate) fn seeded(seed: u64) -> ChaCha12Rng {
    ChaCha12Rng::seed_from_u64(seed)
}

/// Uniform on `0..n`, but for a bias of `n / 2^64`.
pub(crate) fn below(n: u64, rng: &mut impl Rng) -> u64 {
    ((u128::from(rng.next_u64()) * u128::from(n)) >> 64) as u64
}

/// What one read asks for.
#[derive(Clone, Debug)]
pub(crate) enum Ask {
    All,
    Block(usize),
    Cells(Vec<u64>),
}

impl Ask {
    pub(crate) fn request(&self) -> Request<'_> {
        match self {
            Self::All => Request::All,
            Self::Block(block) => Request::Block(*block),
            Self::Cells(cells) => Request::Cells(cells),
        }
    }

    /// The cells that it names, in order.
    pub(crate) fn cells(&self, lengths: &[usize]) -> Vec<u64> {
        let start = |block: usize| lengths[..block].iter().sum::<usize>() as u64;
        match self {
            Self::All => (0..start(lengths.len())).collect(),
            Self::Block(block) => (start(*block)..start(block + 1)).collect(),
            Self::Cells(cells) => cells.clone(),
        }
    }
}

pub(crate) fn random_steps(horizon: u64, count: usize, rng: &mut impl Rng) -> Vec<u64> {
    let steps: BTreeSet<u64> = (0..count).map(|_| 1 + below(horizon, rng)).collect();
    steps.into_iter().collect()
}

/// A few places, a few steps near each.
pub(crate) fn clustered_steps(horizon: u64, rng: &mut impl Rng) -> Vec<u64> {
    let mut steps = BTreeSet::new();
    for _ in 0..5 {
        let centre = 1 + below(horizon, rng);
        for _ in 0..5 {
            steps.insert((centre + below(9, rng)).min(horizon));
        }
    }
    steps.into_iter().collect()
}

/// Gaps that double, from the start on, and gaps that halve, up to the end.
pub(crate) fn doubling_steps(horizon: u64) -> Vec<u64> {
    let gaps = (0..63).map(|k| 1u64 << k).take_while(|&gap| gap < horizon);
    gaps.flat_map(|gap| [1 + gap, horizon - gap]).chain([1, horizon]).collect::<BTreeSet<u64>>().into_iter().collect()
}

/// The `z` with `P(|Z| > z) = tail`.
pub(crate) fn quantile(tail: f64) -> f64 {
    let (mut low, mut high) = (0.0, 40.0);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if erfc(middle / sqrt(2.0)) > tail { low = middle } else { high = middle }
    }
    high
}

/// The level of one whole test: the chance that a right implementation fails it for a random seed. (The seeds are fixed.)
pub(crate) const ALPHA: f64 = 1e-6;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Path {
    /// Every cell is read on its own.
    Single,
    /// All cells are read together.
    Swept,
    /// Swept first, then half of the cells on their own, the others swept.
    Split,
}

/// Every cell of a vector is one path: `paths` values for each step.
pub(crate) fn sample<P: Process>(process: P, steps: &[u64], paths: usize, path: Path, seed: u64) -> Vec<Vec<f64>> {
    let mut rng = seeded(seed);
    let cells: Vec<u64> = (0..paths as u64).collect();
    let evens: Vec<u64> = cells.iter().copied().filter(|cell| cell % 2 == 0).collect();
    let mut noise = CellNoise::new(process, &[paths / 3, paths - paths / 3]);
    let mut values = Vec::new();
    for (i, &step) in steps.iter().enumerate() {
        match path {
            Path::Single => noise.draw(Request::Cells(&cells), step, &mut rng).unwrap(),
            Path::Swept => noise.draw(Request::All, step, &mut rng).unwrap(),
            Path::Split => {
                if i % 3 == 1 {
                    noise.draw(Request::Cells(&evens), step, &mut rng).unwrap();
                    noise.commit();
                }
                noise.draw(Request::All, step, &mut rng).unwrap();
            }
        }
        values.push(noise.commit().to_vec());
    }
    values
}
