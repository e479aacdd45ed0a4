//! The Gaussian law: node variables `N(0, s^2)`.
//!
//! Sum of `n` nodes: `N(0, n s^2)`. Bridge: given a total `d` of `p + q` nodes, the first `p` of them sum to
//! `N(d p / (p + q), s^2 p q / (p + q))`, the Brownian bridge of the paper's section 3. One standard normal
//! each, by the ziggurat of `rand_distr` (its distance from the normal law: `docs/guarantees.md`).

use alloc::vec::Vec;

use rand_core::Rng;
use rand_distr::{Distribution, StandardNormal};

use super::{Law, Source, Split};
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

impl Gaussian {
    /// The share of the total in the mean of a bridge over `p` of `p + q` nodes, its standard deviation, and that of a sum of
    /// `fresh` nodes.
    #[inline(always)]
    fn bridge_of(&self, p: u8, q: u8, fresh: u8) -> (f64, f64, f64) {
        let share = f64::from(p) / f64::from(p + q);
        // sqrt(p q / (p + q)) s = sqrt(p / (p + q)) * (s sqrt(q))
        (share, sqrt(share) * self.std_of_sum[usize::from(q)], self.std_of_sum[usize::from(fresh)])
    }
}

impl Law for Gaussian {
    type Sum = f64;

    const NORMALS: usize = 1;

    #[inline(always)]
    fn sum(&self, n: u32, source: &mut Source<'_, impl Rng>) -> f64 {
        self.std_of_sum[n as usize] * source.normal()
    }

    #[inline(always)]
    fn bridge(&self, p: u32, q: u32, total: f64, source: &mut Source<'_, impl Rng>) -> f64 {
        let (share, std, _) = self.bridge_of(p as u8, q as u8, 0);
        total * share + std * source.normal()
    }

    /// A known sum is a bridge over no node, so that nothing here depends on which it is but for numbers: half of the reads are of
    /// either kind, in no order.
    #[inline(always)]
    fn path(
        &self,
        Split { p, q, fresh }: Split,
        upper: f64,
        lower: f64,
        source: &mut Source<'_, impl Rng>,
    ) -> (f64, f64) {
        let (share, std, fresh) = self.bridge_of(p, q, fresh);
        let at_split = upper + ((lower - upper) * share + std * source.normal_if(p > 0));
        (at_split, at_split + fresh * source.normal())
    }

    /// What all cells share is computed once.
    fn paths(
        &self,
        Split { p, q, fresh }: Split,
        upper: &[f64],
        lower: &[f64],
        drawn: &mut [Vec<f64>],
        source: &mut Source<'_, impl Rng>,
    ) {
        let (share, std, fresh) = self.bridge_of(p, q, fresh);
        match drawn {
            [at_splits, leaves] => {
                let normals = source.take(2 * upper.len()).chunks_exact(2);
                let ends = upper.iter().zip(lower).zip(normals.clone());
                let first = at_splits.len();
                at_splits.extend(ends.map(|((upper, lower), z)| upper + ((lower - upper) * share + std * z[0])));
                leaves.extend(at_splits[first..].iter().zip(normals).map(|(at_split, z)| at_split + fresh * z[1]));
            }
            arrays => {
                let normals = source.take(upper.len());
                arrays.iter_mut().for_each(|leaves| {
                    leaves.extend(upper.iter().zip(normals).map(|(upper, z)| upper + fresh * z));
                });
            }
        }
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

/// Standard normals, as many as there is room for.
#[inline]
pub(crate) fn fill(normals: &mut [f64], rng: &mut impl Rng) {
    normals.iter_mut().for_each(|normal| *normal = standard_normal(rng));
}

#[inline]
pub(crate) fn standard_normal(rng: &mut impl Rng) -> f64 {
    StandardNormal.sample(rng)
}
