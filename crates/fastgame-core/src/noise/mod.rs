//! Noise laws for the tree. The tree asks two things of a law: the sum of `n` independent node variables,
//! and the exact conditional law of a partial sum given the total (the bridge).

pub(crate) mod gaussian;
pub(crate) mod laplace;

use rand_core::{Rng, TryRng};

/// One law of the node variables. A draw takes the generator; a law holds none.
pub(crate) trait Law {
    /// A sum of node variables, with all that the bridge needs to split it later.
    type Sum: Stored;

    /// The sum of `n` independent node variables.
    fn sum(&self, n: u32, rng: &mut impl Rng) -> Self::Sum;

    /// The first `p` of `p + q` node variables, given that all of them sum to `total`.
    fn bridge(&self, p: u32, q: u32, total: Self::Sum, rng: &mut impl Rng) -> Self::Sum;

    fn add(a: Self::Sum, b: Self::Sum) -> Self::Sum;

    fn subtract(a: Self::Sum, b: Self::Sum) -> Self::Sum;

    /// The noise that a sum stands for.
    fn value(sum: Self::Sum) -> f64;

    /// Whether a sum along a path may be this one, where no noise is beyond `limit`.
    fn is_possible(sum: Self::Sum, limit: f64) -> bool {
        Self::value(sum).abs() <= limit
    }

    /// Memory in bytes beside the struct.
    fn bytes(&self) -> usize {
        0
    }
}

/// A value that packed storage keeps as a fixed number of words.
pub(crate) trait Stored: Copy {
    const WORDS: usize;
    const BYTES: usize = size_of::<u64>() * Self::WORDS;

    fn write(self, words: &mut [u64]);

    fn read(words: &[u64]) -> Self;
}

impl Stored for u64 {
    const WORDS: usize = 1;

    #[inline]
    fn write(self, words: &mut [u64]) {
        words[0] = self;
    }

    #[inline]
    fn read(words: &[u64]) -> Self {
        words[0]
    }
}

impl Stored for f64 {
    const WORDS: usize = 1;

    #[inline]
    fn write(self, words: &mut [u64]) {
        words[0] = self.to_bits();
    }

    #[inline]
    fn read(words: &[u64]) -> Self {
        Self::from_bits(words[0])
    }
}

/// The law that is always zero: releases are then exact, which tests of structures need.
#[cfg(test)]
pub(crate) struct Zero;

#[cfg(test)]
impl Law for Zero {
    type Sum = f64;

    fn sum(&self, _: u32, _: &mut impl Rng) -> f64 {
        0.0
    }

    fn bridge(&self, _: u32, _: u32, _: f64, _: &mut impl Rng) -> f64 {
        0.0
    }

    fn add(a: f64, b: f64) -> f64 {
        a + b
    }

    fn subtract(a: f64, b: f64) -> f64 {
        a - b
    }

    fn value(sum: f64) -> f64 {
        sum
    }
}

/// Lets samplers that cannot fail draw from a generator that can: a failure is remembered, and what is
/// drawn after it must be thrown away.
pub(crate) struct FailStop<'a, R: ?Sized> {
    rng: &'a mut R,
    failed: bool,
}

impl<'a, R: TryRng + ?Sized> FailStop<'a, R> {
    /// After a failure samplers are fed these bits. They end every rejection loop at once: the ziggurat
    /// accepts the zero that they decode to, and the gamma sampler what it makes of that.
    const AFTER_FAILURE: u64 = 1 << 63 | 1;

    pub(crate) fn new(rng: &'a mut R) -> Self {
        Self { rng, failed: false }
    }

    pub(crate) fn failed(&self) -> bool {
        self.failed
    }
}

impl<R: TryRng + ?Sized> TryRng for FailStop<'_, R> {
    type Error = core::convert::Infallible;

    #[inline]
    fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
        self.try_next_u64().map(|bits| (bits >> 32) as u32)
    }

    #[inline]
    fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
        // A generator that has failed is not asked again.
        if !self.failed {
            match self.rng.try_next_u64() {
                Ok(bits) => return Ok(bits),
                Err(_) => self.failed = true,
            }
        }
        Ok(Self::AFTER_FAILURE)
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Self::Error> {
        if !self.failed {
            match self.rng.try_fill_bytes(bytes) {
                Ok(()) => return Ok(()),
                Err(_) => self.failed = true,
            }
        }
        bytes.fill(0x80);
        Ok(())
    }
}
