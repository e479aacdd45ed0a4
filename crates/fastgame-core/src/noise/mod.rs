//! Noise laws for the tree. The tree asks two things of a law: the sum of `n` independent node variables,
//! and the exact conditional law of a partial sum given the total (the bridge).

pub(crate) mod gaussian;
pub(crate) mod laplace;

use alloc::vec::Vec;

use rand_core::{Rng, TryRng};

use gaussian::standard_normal;

/// What draws are made from: standard normals that were drawn before, in a block, and the generator. A draw takes both; a law
/// holds neither.
pub(crate) struct Source<'a, R> {
    normals: &'a [f64],
    at: usize,
    pub(crate) rng: &'a mut R,
}

impl<'a, R: Rng> Source<'a, R> {
    pub(crate) fn new(normals: &'a [f64], rng: &'a mut R) -> Self {
        Self { normals, at: 0, rng }
    }

    /// The next normal; a fresh one if those of the block are used up.
    #[inline]
    pub(crate) fn normal(&mut self) -> f64 {
        self.normal_if(true)
    }

    /// The next normals of the block, so many.
    ///
    /// # Panics
    /// If there are not so many left.
    pub(crate) fn take(&mut self, count: usize) -> &'a [f64] {
        let normals = &self.normals[self.at..][..count];
        self.at += count;
        normals
    }

    /// The next normal, which stays the next one if it is not `needed`: without a branch, as nobody can predict it.
    #[inline(always)]
    pub(crate) fn normal_if(&mut self, needed: bool) -> f64 {
        let at = self.at;
        self.at += usize::from(needed);
        match self.normals.get(at) {
            Some(&normal) => normal,
            None if needed => standard_normal(self.rng),
            None => 0.0,
        }
    }
}

/// How a read splits the path of the last one: the sum at the split lies between two that are known, and the path below it is
/// new.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Split {
    /// Nodes from the known sum above to the split: none if the sum there is known itself.
    pub(crate) p: u8,
    /// Nodes from the split to the next known sum below, at least one.
    pub(crate) q: u8,
    /// Nodes below the split, which are fresh.
    pub(crate) fresh: u8,
}

/// One law of the node variables. A draw takes the generator; a law holds none.
pub(crate) trait Law {
    /// A sum of node variables, with all that the bridge needs to split it later.
    type Sum: Stored;

    /// Standard normals that a sum or a bridge takes from the source; what else it needs comes from the generator.
    const NORMALS: usize;

    /// The sum of `n` independent node variables.
    fn sum(&self, n: u32, source: &mut Source<'_, impl Rng>) -> Self::Sum;

    /// The first `p` of `p + q` node variables, given that all of them sum to `total`.
    fn bridge(&self, p: u32, q: u32, total: Self::Sum, source: &mut Source<'_, impl Rng>) -> Self::Sum;

    /// The sums at the split and at the leaf of a new path, given those at the known nodes above (`upper`) and below (`lower`).
    #[inline]
    fn path(
        &self,
        Split { p, q, fresh }: Split,
        upper: Self::Sum,
        lower: Self::Sum,
        source: &mut Source<'_, impl Rng>,
    ) -> (Self::Sum, Self::Sum) {
        let at_split = if p == 0 {
            upper
        } else {
            Self::add(upper, self.bridge(p.into(), q.into(), Self::subtract(lower, upper), source))
        };
        (at_split, Self::add(at_split, self.sum(fresh.into(), source)))
    }

    /// As `path`, for cells side by side whose normals are in the block: the leaves go onto the last array, the sums at the split
    /// onto the one before, if they were not known. There is room for them.
    fn paths(
        &self,
        split: Split,
        upper: &[Self::Sum],
        lower: &[Self::Sum],
        drawn: &mut [Vec<Self::Sum>],
        source: &mut Source<'_, impl Rng>,
    ) {
        for (&upper, &lower) in upper.iter().zip(lower) {
            let (at_split, leaf) = self.path(split, upper, lower, source);
            match &mut *drawn {
                [at_splits, leaves] => {
                    at_splits.push(at_split);
                    leaves.push(leaf);
                }
                arrays => arrays.iter_mut().for_each(|leaves| leaves.push(leaf)),
            }
        }
    }

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

    const NORMALS: usize = 0;

    fn sum(&self, _: u32, _: &mut Source<'_, impl Rng>) -> f64 {
        0.0
    }

    fn bridge(&self, _: u32, _: u32, _: f64, _: &mut Source<'_, impl Rng>) -> f64 {
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
