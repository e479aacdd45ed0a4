//! The Gaussian law: node variables `N(0, s^2)`.
//!
//! Sum of `n` nodes: `N(0, n s^2)`. Bridge: given a total `d` of `p + q` nodes, the first `p` of them sum to
//! `N(d p / (p + q), s^2 p q / (p + q))`, the Brownian bridge of the paper's section 3. One standard normal
//! each, by the ziggurat of `rand_distr` (its distance from the normal law: `docs/guarantees.md`).

use rand_core::Rng;
use rand_distr::{Distribution, StandardNormal};

use super::Law;
use crate::math::sqrt;

/// Node variables `N(0, s^2)`.
#[derive(Clone, Debug)]
pub(crate) struct Gaussian {
    /// `s sqrt(n)` at index `n`: a read needs one or two of them.
    std_of_sum: [f64; 64],
}

impl Gaussian {
    pub(crate) fn new(node_std: f64) -> Self {
        Self { std_of_sum: core::array::from_fn(|n| node_std * sqrt(n as f64)) }
    }
}

impl Law for Gaussian {
    type Sum = f64;

    #[inline]
    fn sum(&self, n: u32, rng: &mut impl Rng) -> f64 {
        self.std_of_sum[n as usize] * standard_normal(rng)
    }

    #[inline]
    fn bridge(&self, p: u32, q: u32, total: f64, rng: &mut impl Rng) -> f64 {
        let share = f64::from(p) / f64::from(p + q);
        // sqrt(p q / (p + q)) s = sqrt(p / (p + q)) * (s sqrt(q))
        total * share + sqrt(share) * self.std_of_sum[q as usize] * standard_normal(rng)
    }

    #[inline]
    fn add(a: f64, b: f64) -> f64 {
        a + b
    }

    #[inline]
    fn subtract(a: f64, b: f64) -> f64 {
        a - b
    }

    #[inline]
    fn value(sum: f64) -> f64 {
        sum
    }
}

#[inline]
pub(crate) fn standard_normal(rng: &mut impl Rng) -> f64 {
    StandardNormal.sample(rng)
}
