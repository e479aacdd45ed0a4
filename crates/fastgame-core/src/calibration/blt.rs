//! Buffered linear Toeplitz (BLT) noise: its parameters, its variance, and its sensitivity, all in closed form.
//!
//! With `d` buffers the noise is `nu_t = z_t + sum_i omega_i s_{i,t}`, `s_{i,t+1} = lambda_i s_{i,t} + z_t`, `s_{i,1} = 0` and
//! independent `z_t` of variance `s^2` (Dvijotham, McMahan, Pillutla, Steinke and Thakurta, "Efficient and near-optimal noise
//! generation for streaming differential privacy", 2024). It is `B z` with the lower triangular Toeplitz matrix of the generating
//! function `b(x) = 1 + x sum_i omega_i / (1 - lambda_i x)`. A unit that enters at step `t` and stays shifts the answers by ones
//! from `t` on, hence `z` by the column `t` of the Toeplitz matrix of `c(x) = 1 / ((1 - x) b(x))`, whose first column is the
//! longest: `rho = L2^2 m^2 |c|^2 / (2 s^2)` with `|c|^2` over the first `T` coefficients.
//!
//! `e_i = 1 - lambda_i` goes down to 1e-19, so everything is computed from `e_i`. With `kappa_i` the roots of `1 + sum_k omega_k /
//! (e_k - x)`, partial fractions give `c_j = c_inf + sum_i g_i (1 - kappa_i)^j` with positive `c_inf` and `g_i`: sums of positive
//! terms, so nothing cancels. `max kappa < 1` proves that `c` is positive and decreases. Proofs: `docs/proof-blt.md`.

use alloc::vec;

use super::blt_table::{MAX_BUFFERS, ROWS, Row};
use crate::error::{Error, Result};
use crate::math::{exp, exp_m1, ln_1p, sqrt};
use crate::time::Horizon;

/// Parameters whose error is within this factor of the best ones' will do, if they have fewer buffers.
const NEAR_BEST: f64 = 1.01;
/// The bound on the sensitivity to lifetimes is this close to its true value, relative.
const LIFETIME_TOLERANCE: f64 = 1e-5;

/// Omega and `1 - lambda` of every buffer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Blt {
    row: Row,
}

impl Blt {
    /// The parameters for a horizon: with this many buffers, or with as few as bring the variance at the last step within 1 %
    /// of that with the best number (for `Unit::Update`).
    ///
    /// # Errors
    /// [`Error::Buffers`] for a number of buffers that there are no parameters for.
    pub(crate) fn new(horizon: Horizon, buffers: Option<u32>) -> Result<Self> {
        let levels = horizon.levels() as usize;
        let steps = horizon.steps();
        let objective = |blt: &Self| blt.variance(steps) * blt.tau_update(steps);
        // Of this many buffers those for the power of two above or below the horizon, whichever is better.
        let with = |buffers: usize| {
            let rows = [ROWS[levels].get(buffers - 1), ROWS[levels.saturating_sub(1)].get(buffers - 1)];
            let found = rows.into_iter().flatten().map(|&row| Self { row });
            found.min_by(|a, b| objective(a).total_cmp(&objective(b)))
        };
        if let Some(buffers) = buffers {
            return (buffers as usize).checked_sub(1).and_then(|_| with(buffers as usize)).ok_or_else(|| {
                let most = ROWS[levels].len().max(ROWS[levels.saturating_sub(1)].len()) as u32;
                Error::Buffers { given: buffers, most, horizon: steps }
            });
        }
        let all = || core::iter::once(Self { row: &[] }).chain((1..=ROWS[levels].len()).filter_map(with));
        let best = all().map(|blt| objective(&blt)).fold(f64::INFINITY, f64::min);
        // There is one: the best.
        Ok(all().find(|blt| objective(blt) <= NEAR_BEST * best).unwrap_or(Self { row: &[] }))
    }

    #[cfg(test)]
    pub(crate) fn of_row(row: Row) -> Self {
        Self { row }
    }

    /// Pairs of omega and `1 - lambda`.
    pub(crate) fn row(&self) -> Row {
        self.row
    }

    pub(crate) fn buffers(&self) -> usize {
        self.row.len()
    }

    /// The variance of the noise at a step, for `s = 1`: `1 + sum over j < t - 1 of (sum_i omega_i lambda_i^j)^2`.
    pub(crate) fn variance(&self, step: u64) -> f64 {
        let mut sum = 1.0;
        for &(omega, e) in self.row {
            let decay = Decay::new(e, step - 1);
            for &(other, rate) in self.row {
                sum += omega * other * decay.products(&Decay::new(rate, step - 1));
            }
        }
        sum
    }

    /// The squared sensitivity to an update, for a unit of norm one: `|c|^2` over `steps` coefficients.
    pub(crate) fn tau_update(&self, steps: u64) -> f64 {
        Strategy::new(self.row).correlation(steps, 0)
    }

    /// The squared sensitivity to an insertion and its deletion `l` steps later, or to an insertion alone, whichever is
    /// largest: an upper bound, `1e-5` above the true value at most, relative.
    ///
    /// The shift is `c_j - c_{j-l}`, of squared norm `f(l) = |c|^2_T + |c|^2_{T-l} - 2 sum_j c_j c_{j+l}`; later insertions cut it off.
    /// Both sums decrease as `l` grows, so `f <= |c|^2_T + |c|^2_{T-a} - 2 sum_j c_j c_{j+b}` for `a <= l <= b`: intervals are
    /// halved until that is close to a value of `f`. At most 0.4 ms (10 buffers); `docs/proof-blt.md`, section 4.
    pub(crate) fn tau_lifetime(&self, steps: u64) -> f64 {
        let strategy = Strategy::new(self.row);
        let all = strategy.correlation(steps, 0);
        // |c|^2_{T-l} and the correlation at lag l.
        let at = |lag: u64| (strategy.correlation(steps - lag, 0), strategy.correlation(steps - lag, lag));
        let value = |(rest, product): (f64, f64)| all + rest - 2.0 * product;
        let (first, last) = (at(0), at(steps));
        let mut found = value(last);
        let mut open = vec![((0, first), (steps, last))];
        let mut bound = found;
        while let Some(((a, at_a), (b, at_b))) = open.pop() {
            let most = all + at_a.0 - 2.0 * at_b.1;
            if most <= found * (1.0 + LIFETIME_TOLERANCE) || b - a <= 1 {
                // Between neighbours there is nothing: both ends have been looked at.
                if b - a > 1 {
                    bound = f64::max(bound, most);
                }
                continue;
            }
            // Lags spread over many magnitudes.
            let middle = if a > 0 && b / a >= 4 { sqrt(a as f64 * b as f64) as u64 } else { a + (b - a) / 2 };
            let middle = middle.clamp(a + 1, b - 1);
            let at_middle = at(middle);
            found = found.max(value(at_middle));
            open.push(((a, at_a), (middle, at_middle)));
            open.push(((middle, at_middle), (b, at_b)));
        }
        bound.max(found)
    }
}

/// Powers of a number just below one.
#[derive(Clone, Copy)]
pub(crate) struct Decay {
    /// `1 - base`.
    rate: f64,
    /// `1 - base^n`.
    gone: f64,
}

impl Decay {
    /// `(1 - rate)^n`.
    pub(crate) fn new(rate: f64, n: u64) -> Self {
        Self::with_log(rate, ln_1p(-rate), n)
    }

    /// As `new`, with `ln(1 - rate)`.
    pub(crate) fn with_log(rate: f64, log: f64, n: u64) -> Self {
        Self { rate, gone: -exp_m1(n as f64 * log) }
    }

    /// The sum of the first `n` powers.
    fn sum(&self) -> f64 {
        self.gone / self.rate
    }

    /// The sum of the first `n` powers of the product of two bases: no difference of near numbers.
    pub(crate) fn products(&self, other: &Self) -> f64 {
        let gone = self.gone + other.gone * (1.0 - self.gone);
        gone / (self.rate + other.rate * (1.0 - self.rate))
    }
}

/// The coefficients `c_j = inf + sum_i g_i (1 - kappa_i)^j`.
struct Strategy {
    inf: f64,
    terms: [(f64, f64); MAX_BUFFERS],
    buffers: usize,
}

impl Strategy {
    fn new(row: Row) -> Self {
        let inf = 1.0 / (1.0 + row.iter().map(|&(omega, e)| omega / e).sum::<f64>());
        let mut terms = [(0.0, 0.0); MAX_BUFFERS];
        for (i, term) in terms[..row.len()].iter_mut().enumerate() {
            let root = Root::find(row, i);
            let kappa = root.value(row);
            let sum: f64 = row.iter().map(|&(omega, e)| omega / root.below(row, e) / root.below(row, e)).sum();
            *term = (1.0 / (sum * kappa), kappa);
        }
        Self { inf, terms, buffers: row.len() }
    }

    fn terms(&self) -> &[(f64, f64)] {
        &self.terms[..self.buffers]
    }

    /// `sum over j < n of c_j c_{j + lag}`.
    fn correlation(&self, n: u64, lag: u64) -> f64 {
        let decays = self.terms.map(|(_, kappa)| Decay::new(kappa, n));
        let mut sum = self.inf * self.inf * n as f64;
        for (&(g, kappa), decay) in self.terms().iter().zip(&decays) {
            let shifted = exp(lag as f64 * ln_1p(-kappa));
            sum += self.inf * g * (1.0 + shifted) * decay.sum();
            for (&(other, _), with) in self.terms().iter().zip(&decays) {
                sum += g * other * shifted * decay.products(with);
            }
        }
        sum
    }
}

/// A root of `1 + sum_k omega_k / (e_k - x)`, as its distance from the nearer of the poles beside it: differences from poles
/// keep their digits.
#[derive(Clone, Copy)]
struct Root {
    pole: usize,
    distance: f64,
}

impl Root {
    /// The root above pole `i` and below the next larger one; that above the largest is within the sum of all omega.
    fn find(row: Row, i: usize) -> Self {
        let gap = if i == 0 { row.iter().map(|&(omega, _)| omega).sum() } else { row[i - 1].1 - row[i].1 };
        // The function rises between poles.
        let is_left_of_root =
            |root: Self| 1.0 + row.iter().map(|&(omega, e)| omega / root.below(row, e)).sum::<f64>() < 0.0;
        let (pole, sign) =
            if i > 0 && is_left_of_root(Self { pole: i, distance: 0.5 * gap }) { (i - 1, -1.0) } else { (i, 1.0) };
        // The floats between, in their order: no tolerance to choose.
        let (mut near, mut far) = (0u64, gap.to_bits());
        while far - near > 1 {
            let middle = near + (far - near) / 2;
            let left = is_left_of_root(Self { pole, distance: sign * f64::from_bits(middle) });
            if left == (sign > 0.0) { near = middle } else { far = middle }
        }
        Self { pole, distance: sign * f64::from_bits(far) }
    }

    /// The root itself.
    fn value(&self, row: Row) -> f64 {
        row[self.pole].1 + self.distance
    }

    /// `e` minus the root.
    fn below(&self, row: Row, e: f64) -> f64 {
        (e - row[self.pole].1) - self.distance
    }
}

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
