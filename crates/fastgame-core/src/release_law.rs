//! The law of the noise of one released cell, for everything that computes errors after the noise.
//!
//! Three laws are met: a normal one, whose variance may grow with the step, and the sum of independent Laplace variables
//! along a path of the tree. Both are symmetric. What depends on the shape alone is stated in units of a standard
//! deviation, and is the same at every step.

use crate::math::{exp, ln_1p, power_of_two, sqrt};
use crate::quantile::{self, median_tail, tail_of_one_row, two_sided_quantile};

/// The law of the noise of one released cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ReleaseLaw {
    /// `N(0, std^2)`.
    Normal { std: f64 },
    /// The sum of `nodes` independent Laplace variables of scale `scale` (each of variance `2 scale^2`), `1 <= nodes <= 63`.
    Laplace { scale: f64, nodes: u32 },
}

/// Where the tail of the sum of 63 Laplace variables, in units of their scale, is below every float; below that, no term
/// of it overflows.
const BEYOND: f64 = 2048.0;
/// Intervals of Simpson's rule for the variance of a median.
const INTERVALS: u32 = 1024;

/// The tail of the sum of `nodes` Laplace variables of scale 1; see [`ReleaseLaw::tail`].
fn laplace_tail(nodes: u32, y: f64) -> f64 {
    if y >= BEYOND {
        return 0.0;
    }
    // The sum over i of y^i / i! times the weights of all Erlang laws of more than i stages, from i = nodes - 1 down to 0
    // by Horner's rule.
    let mut weight = power_of_two(1 - nodes as i32);
    let (mut weights, mut sum) = (weight, weight);
    for j in 1..nodes {
        weight *= f64::from(nodes - 1 + j) / f64::from(2 * j);
        weights += weight;
        sum = weights + sum * y / f64::from(nodes - j);
    }
    // In two steps: the exponential alone may underflow.
    let half = exp(-0.5 * y);
    (half * sum * half).min(1.0)
}

/// The density of the sum of `nodes` Laplace variables of scale 1 at `y >= 0`: half the mixture of Erlang densities.
fn laplace_density(nodes: u32, y: f64) -> f64 {
    let mut weight = power_of_two(1 - nodes as i32);
    let mut sum = weight;
    for j in 1..nodes {
        weight *= f64::from(nodes - 1 + j) / f64::from(2 * j);
        sum = weight + sum * y / f64::from(nodes - j);
    }
    0.5 * exp(-y) * sum
}

impl ReleaseLaw {
    /// The standard deviation.
    pub(crate) fn std(&self) -> f64 {
        match *self {
            Self::Normal { std } => std,
            Self::Laplace { scale, nodes } => scale * sqrt(f64::from(2 * nodes)),
        }
    }

    /// The variance: of a Laplace sum, `2 nodes scale^2`.
    pub(crate) fn variance(&self) -> f64 {
        match *self {
            Self::Normal { std } => std * std,
            Self::Laplace { scale, nodes } => f64::from(2 * nodes) * scale * scale,
        }
    }

    /// The excess kurtosis, `E X^4 / (E X^2)^2 - 3`: of a Laplace variable 3, of the mean of `nodes` of them `3 / nodes`.
    pub(crate) fn excess_kurtosis(&self) -> f64 {
        match *self {
            Self::Normal { .. } => 0.0,
            Self::Laplace { nodes, .. } => 3.0 / f64::from(nodes),
        }
    }

    /// `P(|X| > x)` for `x >= 0`, to some 1e-14 of itself for Laplace sums, however small it is.
    ///
    /// A Laplace sum is the difference of two Gamma variables with `n = nodes` stages, and its absolute value a mixture of
    /// Erlang variables (Kotz, Kozubowski and Podgorski, The Laplace Distribution and Generalizations, 2001, section 2.3):
    /// `P(|X| > x) = sum_{j < n} w_j Q(n - j, x / scale)`, `w_j = C(n - 1 + j, j) 2^(1 - n - j)`, with
    /// `Q(m, y) = e^-y sum_{i < m} y^i / i!`. All terms are positive, so nothing cancels. Cost: `nodes` divisions.
    #[cfg(test)]
    pub(crate) fn tail(&self, x: f64) -> f64 {
        match *self {
            Self::Normal { std } => crate::math::erfc(x / (std * sqrt(2.0))),
            Self::Laplace { scale, nodes } => laplace_tail(nodes, x / scale),
        }
    }

    /// The smallest `x` with `P(|X| > x) <= tail`, by bisection: to 1e-12 of itself where `tail` is at most 0.99. Cost: 64
    /// tails.
    pub(crate) fn quantile(&self, tail: f64) -> f64 {
        self.std() * self.standard_quantile(tail)
    }

    /// [`ReleaseLaw::quantile`] in standard deviations.
    pub(crate) fn standard_quantile(&self, tail: f64) -> f64 {
        match *self {
            Self::Normal { .. } => two_sided_quantile(tail),
            Self::Laplace { nodes, .. } => laplace_quantile(nodes, tail) / sqrt(f64::from(2 * nodes)),
        }
    }

    /// A bound in standard deviations that a weighted sum of independent cells (or of medians of them) is beyond with
    /// probability `tail`: the larger of the normal law's quantile and that of a single cell.
    ///
    /// A sum of cells lies between the two: one cell with all of the weight has the law of a cell, many small ones have a
    /// normal law, and excess kurtosis falls from the one to the other, as `sum w^4 / (sum w^2)^2`. Which of the quantiles
    /// is larger changes once, at a tail of about 0.08; near there a sum may be above both, by less than 1 % of them.
    pub(crate) fn standard_quantile_of_sums(&self, tail: f64) -> f64 {
        two_sided_quantile(tail).max(self.standard_quantile(tail))
    }

    /// The variance of the median of `depth` independent values, `depth` odd.
    #[cfg(test)]
    pub(crate) fn median_variance(&self, depth: usize) -> f64 {
        self.variance() * self.standard_median_variance(depth)
    }

    /// The variance of the median of `depth` independent values over that of one, `depth` odd: `m(depth)` for a normal law, for
    /// others the integral of `2 x P(|median| > x)` by Simpson's rule, to some 1e-8. Cost: a thousand tails and binomial sums.
    pub(crate) fn standard_median_variance(&self, depth: usize) -> f64 {
        let Self::Laplace { nodes, .. } = *self else { return quantile::median_variance(depth) };
        if depth == 1 {
            return 1.0;
        }
        let step = laplace_quantile(nodes, tail_of_one_row(depth, 1e-18)) / f64::from(INTERVALS);
        let term = |i: u32| {
            let y = f64::from(i) * step;
            let weight = if i == INTERVALS { 1.0 } else { f64::from(2 + 2 * (i % 2)) };
            weight * y * median_tail(depth, laplace_tail(nodes, y))
        };
        // 2 x at the places, a third of a step, and the variance of a value by which it is divided.
        (1..=INTERVALS).map(term).sum::<f64>() * step / f64::from(3 * nodes)
    }

    /// [`quantile::middle_spacing`] for values of this law with variance 1.
    pub(crate) fn standard_middle_spacing(&self, n: usize, r: usize) -> (f64, f64) {
        let Self::Laplace { nodes, .. } = *self else { return quantile::middle_spacing(n, r) };
        quantile::middle_spacing_of(n, r, |x| {
            let y = x.abs() * sqrt(f64::from(2 * nodes));
            let outer = 0.5 * laplace_tail(nodes, y);
            let (below, above) = if x < 0.0 { (outer, 1.0 - outer) } else { (1.0 - outer, outer) };
            (below, above, laplace_density(nodes, y))
        })
    }

    /// The logarithm of the characteristic function, which is real and positive: `-std^2 t^2 / 2`, or
    /// `-nodes ln(1 + scale^2 t^2)`.
    pub(crate) fn log_characteristic(&self, t: f64) -> f64 {
        match *self {
            Self::Normal { std } => -0.5 * std * std * t * t,
            Self::Laplace { scale, nodes } => -f64::from(nodes) * ln_1p(scale * t * (scale * t)),
        }
    }

    /// The `t` from which on the characteristic function is below `e^-log`.
    pub(crate) fn vanishes(&self, log: f64) -> f64 {
        match *self {
            Self::Normal { std } => sqrt(2.0 * log) / std,
            Self::Laplace { scale, nodes } => sqrt(exp(log / f64::from(nodes)) - 1.0) / scale,
        }
    }

    /// The cumulant function `ln E e^(t X)`: `std^2 t^2 / 2`, or `-nodes ln(1 - scale^2 t^2)`, infinite from `1 / scale` on.
    pub(crate) fn cumulant(&self, t: f64) -> f64 {
        match *self {
            Self::Normal { std } => 0.5 * (std * std) * t * t,
            Self::Laplace { scale, nodes } if scale * t < 1.0 => -f64::from(nodes) * ln_1p(-(scale * t * (scale * t))),
            Self::Laplace { .. } => f64::INFINITY,
        }
    }
}

/// The quantile of a Laplace sum of scale 1.
fn laplace_quantile(nodes: u32, tail: f64) -> f64 {
    let (mut low, mut high) = (0.0, BEYOND);
    for _ in 0..64 {
        let middle = 0.5 * (low + high);
        if laplace_tail(nodes, middle) > tail { low = middle } else { high = middle }
    }
    high
}

/// The variances of medians of rows that hold noise, and noise with collisions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Medians {
    /// The variance of the median of the noise of the rows over that of one row.
    pub(crate) noise: f64,
    /// `m(depth)`: that of normal rows.
    pub(crate) normal: f64,
}

impl Medians {
    pub(crate) fn new(law: &ReleaseLaw, depth: usize) -> Self {
        Self { noise: law.standard_median_variance(depth), normal: quantile::median_variance(depth) }
    }

    /// What the variance of the median of rows is below `normal * (noise + other)`, when they hold noise and collisions of
    /// these variances. The law of a row is off the normal by its excess kurtosis to the first order; the noise's, which
    /// lowers the variance by the part `normal - noise`, is diluted by the square of its share.
    pub(crate) fn below_normal(&self, noise: f64, other: f64) -> f64 {
        if noise > 0.0 { (self.normal - self.noise) * noise * (noise / (noise + other)) } else { 0.0 }
    }
}

#[cfg(test)]
pub(crate) mod tests;
