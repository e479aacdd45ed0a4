//! A string of bytes as decisions, and a generator that can be told to fail.

use chacha20::ChaCha12Rng;
use fastgame_core::rand_core::{SeedableRng, TryCryptoRng, TryRng};

/// Decisions. At its end all of them are zero.
pub(crate) struct Tape<'a>(&'a [u8]);

impl<'a> Tape<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn is_over(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first
    }

    pub(crate) fn word(&mut self) -> u64 {
        u64::from_le_bytes([0; 8].map(|_: u8| self.byte()))
    }

    /// A number below `n <= 256`.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        usize::from(self.byte()) % n
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// Whether something that is so once in `n` times is so.
    pub(crate) fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == n - 1
    }

    pub(crate) fn many<T>(&mut self, most: usize, mut each: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..self.below(most + 1)).map(|_| each(self)).collect()
    }
}

/// Gives some words, counts them, and then fails for ever.
pub(crate) struct Metered {
    inner: ChaCha12Rng,
    left: u64,
    pub(crate) taken: u64,
    /// How often it was asked in vain.
    pub(crate) refused: u64,
}

/// The failure of a [`Metered`] generator.
#[derive(Debug)]
pub(crate) struct Dry;

impl std::fmt::Display for Dry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("no more entropy")
    }
}

impl std::error::Error for Dry {}

impl Metered {
    pub(crate) fn new(seed: u64) -> Self {
        Self::after(u64::MAX, seed)
    }

    pub(crate) fn after(words: u64, seed: u64) -> Self {
        Self { inner: ChaCha12Rng::seed_from_u64(seed), left: words, taken: 0, refused: 0 }
    }

    fn take(&mut self) -> Result<&mut ChaCha12Rng, Dry> {
        if self.left == 0 {
            self.refused += 1;
            return Err(Dry);
        }
        self.left -= 1;
        self.taken += 1;
        Ok(&mut self.inner)
    }
}

impl TryRng for Metered {
    type Error = Dry;

    fn try_next_u32(&mut self) -> Result<u32, Dry> {
        let Ok(word) = self.take()?.try_next_u32();
        Ok(word)
    }

    fn try_next_u64(&mut self) -> Result<u64, Dry> {
        let Ok(word) = self.take()?.try_next_u64();
        Ok(word)
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Dry> {
        let Ok(()) = self.take()?.try_fill_bytes(bytes);
        Ok(())
    }
}

impl TryCryptoRng for Metered {}
