//! Generators that tests look into, and the threshold of statistical tests.
#![allow(dead_code, reason = "each test file uses some of this")]

use chacha20::ChaCha12Rng;
use fastgame_core::rand_core::{Infallible, SeedableRng, TryCryptoRng, TryRng};

/// A healthy generator with a fixed seed.
pub(crate) fn rng(seed: u64) -> ChaCha12Rng {
    ChaCha12Rng::seed_from_u64(seed)
}

/// Counts the words that are taken.
pub(crate) struct Recorder {
    inner: ChaCha12Rng,
    pub(crate) words: u64,
}

impl Recorder {
    pub(crate) fn new(seed: u64) -> Self {
        Self { inner: rng(seed), words: 0 }
    }
}

impl TryRng for Recorder {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        self.words += 1;
        self.inner.try_next_u32()
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        self.words += 1;
        self.inner.try_next_u64()
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        self.words += bytes.len() as u64;
        self.inner.try_fill_bytes(bytes)
    }
}

impl TryCryptoRng for Recorder {}

/// The failure of a [`Failing`] generator.
#[derive(Debug)]
pub(crate) struct Exhausted;

impl std::fmt::Display for Exhausted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("no more entropy")
    }
}

impl std::error::Error for Exhausted {}

/// Gives some words and then fails, for ever.
pub(crate) struct Failing {
    inner: ChaCha12Rng,
    left: u64,
    /// How many words it has given.
    pub(crate) given: u64,
    /// How often it was asked in vain.
    pub(crate) refused: u64,
}

impl Failing {
    pub(crate) fn after(words: u64, seed: u64) -> Self {
        Self { inner: rng(seed), left: words, given: 0, refused: 0 }
    }

    fn take(&mut self) -> Result<&mut ChaCha12Rng, Exhausted> {
        if self.left == 0 {
            self.refused += 1;
            return Err(Exhausted);
        }
        self.left -= 1;
        self.given += 1;
        Ok(&mut self.inner)
    }
}

impl TryRng for Failing {
    type Error = Exhausted;

    fn try_next_u32(&mut self) -> Result<u32, Exhausted> {
        let Ok(word) = self.take()?.try_next_u32();
        Ok(word)
    }

    fn try_next_u64(&mut self) -> Result<u64, Exhausted> {
        let Ok(word) = self.take()?.try_next_u64();
        Ok(word)
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Exhausted> {
        let Ok(()) = self.take()?.try_fill_bytes(bytes);
        Ok(())
    }
}

impl TryCryptoRng for Failing {}

/// `P(|Z| > 5.9) < 4e-9` for a standard normal: the limit of all tests that add up to at most 250 statistics at
/// alpha = 1e-6 in all.
pub(crate) const LIMIT: f64 = 5.9;

/// By how many of its standard deviations the mean square of a sample of `N(0, variance)` is off.
pub(crate) fn variance_score(sample: &[f64], variance: f64) -> f64 {
    let n = sample.len() as f64;
    let mean_square = sample.iter().map(|x| x * x).sum::<f64>() / n;
    (mean_square - variance) / (variance * (2.0 / n).sqrt())
}

/// By how many of its standard deviations the mean of a sample of `N(0, variance)` is off.
pub(crate) fn mean_score(sample: &[f64], variance: f64) -> f64 {
    let n = sample.len() as f64;
    sample.iter().sum::<f64>() / n / (variance / n).sqrt()
}
