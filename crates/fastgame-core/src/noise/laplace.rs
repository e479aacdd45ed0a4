//! The Laplace law: node variables of scale `b`, density `e^(-|x| / b) / (2 b)`, for pure differential privacy.
//!
//! A Laplace variable is the difference of two independent exponential ones, so a sum of `n` of them is the difference of two
//! `Gamma(n, b)`. Both gamma sums are kept, and each has a bridge: given a total `d` of `p + q` exponential variables, the share
//! of the first `p` is `Beta(p, q)`, whatever `d` is (Lukacs, 1955), and `Beta(p, q) = G / (G + G')` of independent
//! `G ~ Gamma(p)`, `G' ~ Gamma(q)`. So a sum of node variables is drawn and split in constant expected time. From `n = 2` on the
//! gamma variables are `rand_distr`'s, by the method of Marsaglia and Tsang (2000): one normal and one uniform number each, and
//! 2 % more at most. `Gamma(1)` is the logarithm of a uniform number: `rand_distr`'s would be infinite once in 2^64 draws, and
//! what a logarithm gets wrong is easier to bound than the tables of one more ziggurat (`docs/guarantees.md`, section 12).
//!
//! To keep the value alone would not do: given the sum of Laplace variables, a part of it has no law of this family.

use alloc::vec::Vec;

use rand_core::Rng;
use rand_distr::{Distribution, Gamma};

use super::{Law, Source, Stored};
use crate::error::{Error, Result};
use crate::math::{ln, power_of_two};

/// Node variables `Laplace(b)`.
#[derive(Clone, Debug)]
pub(crate) struct Laplace {
    scale: f64,
    /// `Gamma(n, b)` at index `n - 2`.
    gammas: Vec<Gamma<f64>>,
}

impl Laplace {
    /// The law for sums of up to `levels + 1` nodes of this scale.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a scale that is not positive.
    pub(crate) fn new(scale: f64, levels: u32) -> Result<Self> {
        let allowed = "a positive number that floats can hold";
        let refused = || Error::Parameter { name: "the noise scale", given: scale.into(), allowed };
        if !(f64::MIN_POSITIVE..f64::INFINITY).contains(&scale) {
            return Err(refused());
        }
        let gammas = (1..=levels).map(|n| Gamma::new(f64::from(n + 1), scale).map_err(|_| refused()));
        Ok(Self { scale, gammas: gammas.collect::<Result<_>>()? })
    }

    /// Memory in bytes beside the struct.
    pub(crate) const fn bytes_for(levels: u32) -> usize {
        (levels as usize + 1) * size_of::<Gamma<f64>>()
    }

    #[inline]
    fn gamma(&self, n: u32, rng: &mut impl Rng) -> f64 {
        if n == 1 { self.scale * exponential(rng) } else { self.gammas[n as usize - 2].sample(rng) }
    }

    /// The share of the first `p` of `p + q` exponential variables in their total.
    #[inline]
    fn share(&self, p: u32, q: u32, rng: &mut impl Rng) -> f64 {
        let (first, rest) = (self.gamma(p, rng), self.gamma(q, rng));
        // Both are zero with a probability near 2^-106; then any share will do, and this is no NaN.
        first / (first + rest).max(f64::MIN_POSITIVE)
    }
}

/// `Gamma(1, 1)`, by inversion, from a uniform number of 64 bits: never negative, at most 45.1.
#[inline]
fn exponential(rng: &mut impl Rng) -> f64 {
    -ln((rng.next_u64() as f64 + 0.5) * power_of_two(-64))
}

/// A sum of Laplace variables: `up - down`, both gamma sums.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct GammaSums {
    pub(crate) up: f64,
    pub(crate) down: f64,
}

impl Stored for GammaSums {
    const WORDS: usize = 2;

    #[inline]
    fn write(self, words: &mut [u64]) {
        words[0] = self.up.to_bits();
        words[1] = self.down.to_bits();
    }

    #[inline]
    fn read(words: &[u64]) -> Self {
        Self { up: f64::from_bits(words[0]), down: f64::from_bits(words[1]) }
    }
}

impl Law for Laplace {
    type Sum = GammaSums;

    const NORMALS: usize = 0;

    #[inline]
    fn sum(&self, n: u32, source: &mut Source<'_, impl Rng>) -> GammaSums {
        GammaSums { up: self.gamma(n, source.rng), down: self.gamma(n, source.rng) }
    }

    #[inline]
    fn bridge(&self, p: u32, q: u32, total: GammaSums, source: &mut Source<'_, impl Rng>) -> GammaSums {
        GammaSums { up: total.up * self.share(p, q, source.rng), down: total.down * self.share(p, q, source.rng) }
    }

    #[inline]
    fn add(a: GammaSums, b: GammaSums) -> GammaSums {
        GammaSums { up: a.up + b.up, down: a.down + b.down }
    }

    #[inline]
    fn subtract(a: GammaSums, b: GammaSums) -> GammaSums {
        GammaSums { up: a.up - b.up, down: a.down - b.down }
    }

    #[inline]
    fn value(sum: GammaSums) -> f64 {
        sum.up - sum.down
    }

    /// Gamma sums are not negative; those of a whole path are at most `63 * 219 b`.
    #[inline]
    fn is_possible(sum: GammaSums, limit: f64) -> bool {
        [sum.up, sum.down].iter().all(|part| (0.0..=limit).contains(part))
    }

    fn bytes(&self) -> usize {
        self.gammas.capacity() * size_of::<Gamma<f64>>()
    }
}

#[cfg(test)]
mod tests;
