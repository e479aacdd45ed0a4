//! Privacy budgets, and the exact conversions between their three dialects.
//!
//! Budgets of three dialects are spent on Gaussian noise, and everything that a structure ever
//! releases is one Gaussian mechanism then: two neighbouring inputs shift the mean of a fixed normal
//! distribution by at most `mu` standard deviations. So such a budget collapses to the one number `mu`
//! ([`Loss::Gaussian`]), whichever dialect it was given in:
//!
//! - [`Gdp`]: `mu` itself (Dong, Roth and Su, "Gaussian Differential Privacy", 2022);
//! - [`Zcdp`]: `rho = mu^2 / 2` (Bun and Steinke, "Concentrated Differential Privacy", 2016);
//! - [`ApproxDp`]: the largest `mu` whose curve stays at or under `delta` at `epsilon`.
//!
//! The curve is `delta(epsilon) = Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu)` (Balle
//! and Wang, "Improving the Gaussian Mechanism for Differential Privacy", 2018, theorem 8): necessary
//! and sufficient, so there is no slack, unlike in the well-known `rho + 2 sqrt(rho ln(1/delta))`. It
//! holds for a budget spent on Gaussian noise; it is not a statement about other mechanisms that
//! happen to be `rho`-zCDP.
//!
//! [`PureDp`], `epsilon` with `delta = 0`, is spent on Laplace noise ([`Loss::Pure`]). What it implies
//! in the other dialects is what randomised response, the worst of all `epsilon`-private mechanisms
//! (Kairouz, Oh and Viswanath, 2015), attains:
//!
//! - its curve is `delta(e) = max(0, (e^epsilon - e^e) / (1 + e^epsilon))`;
//! - it is `mu`-GDP for `erf(mu / sqrt 8) = tanh(epsilon / 2)` and no less. Its trade-off function is the
//!   polygon through (0, 1), (a, a) and (1, 0) with `a = 1 / (1 + e^epsilon)`; that of `mu`-GDP is convex, with
//!   the same ends, and passes through (a, a): so it is nowhere above.
//!
//! The second makes sums of both kinds of budget sound: the curve of the sum is Gaussian. (As zCDP alone it would
//! cost less: `epsilon tanh(epsilon / 2)` instead of `mu^2 / 2`, but that says nothing about the curve.)
//!
//! Results err on the safe side: `delta(epsilon)` and `epsilon(delta)` are never below the true
//! value, and the `mu` of an [`ApproxDp`] is never above it. The margin is a few parts in `1e15` of
//! `mu`, and at least half a unit in the last place of delta (which shows when delta is close to 1).
//! One point of the curve costs at most 14 continued fractions of 60 terms, under 5 microseconds; an
//! inversion costs about 60 points.

use alloc::vec::Vec;

use crate::error::{Error, Result};
use crate::math::{erf, erfc, exp, exp_m1, ln, sqrt};

/// The allowed range of `rho`: wide enough for every use, and nothing over- or underflows in it.
const RHO: core::ops::RangeInclusive<f64> = 1e-300..=1e300;
/// The allowed range of `mu`; its `rho` is well inside of [`RHO`].
const MU: core::ops::RangeInclusive<f64> = 1e-149..=1e150;
/// The largest epsilon of an [`ApproxDp`]; its `mu` is inside of [`MU`] for every delta.
const MAX_EPSILON: f64 = 1e298;
/// The allowed range of a pure `epsilon`; `e^epsilon` is a float in it.
const PURE_EPSILON: core::ops::RangeInclusive<f64> = 1e-100..=700.0;
/// By how much the parts of a split may sum to more than one: enough for parts given in decimals.
const PARTS_TOLERANCE: f64 = 1e-9;

fn check_epsilon(epsilon: f64, max: f64, allowed: &'static str) -> Result<()> {
    if (0.0..=max).contains(&epsilon) {
        Ok(())
    } else {
        Err(Error::Parameter { name: "epsilon", given: epsilon.into(), allowed })
    }
}

fn check_delta(delta: f64) -> Result<()> {
    if (f64::MIN_POSITIVE..1.0).contains(&delta) {
        Ok(())
    } else {
        let allowed = "at least 2.2250738585072014e-308 and less than 1";
        Err(Error::Parameter { name: "delta", given: delta.into(), allowed })
    }
}

/// What a budget collapses to: the privacy loss that it stands for. Every budget converts `Into` it.
///
/// Only this crate makes one, through a validated budget, so its numbers are always in range.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Loss {
    /// That of a Gaussian mechanism.
    #[non_exhaustive]
    Gaussian {
        /// The largest shift of the mean between neighbours, in standard deviations of the noise.
        mu: f64,
    },
    /// That of a Laplace mechanism: no event's probability changes by more than a factor of `e^epsilon`.
    #[non_exhaustive]
    Pure {
        /// In nats.
        epsilon: f64,
    },
}

impl Loss {
    /// The `mu` of Gaussian differential privacy: telling neighbours apart is as hard as telling `N(0, 1)` from `N(mu, 1)`,
    /// or harder (of a pure budget; rounded up).
    pub fn mu(&self) -> f64 {
        match *self {
            Self::Gaussian { mu } => mu,
            Self::Pure { epsilon } => mu_of_pure(epsilon),
        }
    }

    /// The `rho` of zero-concentrated differential privacy that goes with [`Loss::mu`], `mu^2 / 2`, in nats.
    pub fn rho(&self) -> f64 {
        0.5 * self.mu() * self.mu()
    }

    /// Whether it is that of a Laplace mechanism, with `delta = 0`.
    pub fn is_pure(&self) -> bool {
        matches!(self, Self::Pure { .. })
    }

    /// The smallest epsilon (in nats) with which the mechanism is (epsilon, `delta`)-private; zero
    /// when `delta` alone covers it. Rounded up.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless `2.2250738585072014e-308 <= delta < 1`; of a pure budget `delta = 0` is allowed too.
    ///
    /// # Cost
    /// About 60 points of the exact curve.
    pub fn epsilon(&self, delta: f64) -> Result<f64> {
        if let Self::Pure { epsilon } = *self {
            if delta == 0.0 {
                return Ok(epsilon);
            }
            if !(f64::MIN_POSITIVE..1.0).contains(&delta) {
                let allowed = "0, or at least 2.2250738585072014e-308 and less than 1";
                return Err(Error::Parameter { name: "delta", given: delta.into(), allowed });
            }
            let safe = |other| pure_curve(epsilon, other) <= delta;
            return Ok(if safe(0.0) { 0.0 } else { last_safe(0.0, epsilon, safe) });
        }
        check_delta(delta)?;
        let mu = self.mu();
        let safe = |epsilon| curve(mu, epsilon) <= delta;
        if safe(0.0) {
            return Ok(0.0);
        }
        // The classical bound. It holds in exact arithmetic; where `mu` is so large that neighbouring
        // floats are far apart on the curve, its rounding may not.
        let mut high = 0.5 * mu * mu + mu * sqrt(-2.0 * ln(delta));
        while !safe(high) {
            high *= 2.0;
        }
        Ok(last_safe(0.0, high, safe))
    }

    /// The smallest delta with which the mechanism is (`epsilon`, delta)-private; `epsilon` is in
    /// nats. Rounded up.
    ///
    /// Delta is positive for every `epsilon` of Gaussian noise: where it is too small for a normal float, the result is
    /// the smallest normal one, `2.2250738585072014e-308`, as zero would be a false claim. A pure budget has zero from its
    /// own `epsilon` on.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless `epsilon` is finite and at least zero.
    ///
    /// # Cost
    /// One point of the exact curve.
    pub fn delta(&self, epsilon: f64) -> Result<f64> {
        check_epsilon(epsilon, f64::MAX, "finite and at least 0")?;
        Ok(match *self {
            Self::Gaussian { mu } => curve(mu, epsilon),
            Self::Pure { epsilon: own } => pure_curve(own, epsilon),
        })
    }
}

/// A budget in zero-concentrated differential privacy (Bun and Steinke 2016). Budgets of this dialect
/// simply add up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Zcdp {
    rho: f64,
}

impl Zcdp {
    /// A budget of `rho`, in nats.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless `1e-300 <= rho <= 1e300`.
    pub fn new(rho: f64) -> Result<Self> {
        if RHO.contains(&rho) {
            Ok(Self { rho })
        } else {
            Err(Error::Parameter { name: "rho", given: rho.into(), allowed: "positive (from 1e-300 to 1e300)" })
        }
    }

    /// The `rho` given, in nats.
    pub fn rho(&self) -> f64 {
        self.rho
    }

    /// The `mu` of Gaussian differential privacy, `sqrt(2 rho)`: the largest shift between
    /// neighbours, in standard deviations of the noise.
    pub fn mu(&self) -> f64 {
        sqrt(2.0 * self.rho)
    }

    /// Both budgets spent on the same people: the two `rho` add up (Bun and Steinke 2016, lemma 1.7;
    /// it holds for adaptive choices too). Rounded up.
    ///
    /// # Errors
    /// [`Error::Parameter`] when the sum is over `1e300`.
    pub fn compose(self, other: Self) -> Result<Self> {
        Self::new(sum_up([self.rho, other.rho]))
    }
}

/// A budget in Gaussian differential privacy (Dong, Roth and Su 2022): neighbours are at least as hard
/// to tell apart as normal distributions `N(0, 1)` and `N(mu, 1)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gdp {
    mu: f64,
}

impl Gdp {
    /// A budget of `mu` standard deviations.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless `1e-149 <= mu <= 1e150`.
    pub fn new(mu: f64) -> Result<Self> {
        if MU.contains(&mu) {
            Ok(Self { mu })
        } else {
            Err(Error::Parameter { name: "mu", given: mu.into(), allowed: "positive (from 1e-149 to 1e150)" })
        }
    }

    /// The `mu` given: the largest shift between neighbours, in standard deviations of the noise.
    pub fn mu(&self) -> f64 {
        self.mu
    }

    /// The `rho` of zero-concentrated differential privacy, `mu^2 / 2`, in nats.
    pub fn rho(&self) -> f64 {
        0.5 * self.mu * self.mu
    }
}

/// A budget in approximate differential privacy: one point of the curve. It is spent on the least
/// Gaussian noise whose exact curve passes at or under that point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ApproxDp {
    epsilon: f64,
    delta: f64,
    mu: f64,
}

impl ApproxDp {
    /// A budget of `epsilon` (in nats) and `delta` (a probability). `epsilon` may be zero.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless `0 <= epsilon <= 1e298` and `2.2250738585072014e-308 <= delta < 1`,
    /// and when both are so small that even `mu = 1e-149` is over the budget.
    ///
    /// # Cost
    /// About 60 points of the exact curve.
    pub fn new(epsilon: f64, delta: f64) -> Result<Self> {
        check_epsilon(epsilon, MAX_EPSILON, "from 0 to 1e298")?;
        if delta == 0.0 {
            let allowed = "more than 0 and less than 1 (for delta = 0 there is PureDp)";
            return Err(Error::Parameter { name: "delta", given: delta.into(), allowed });
        }
        check_delta(delta)?;
        let safe = |mu| curve(mu, epsilon) <= delta;
        if !safe(*MU.start()) {
            let allowed = "larger, or epsilon must be: Gaussian noise with mu = 1e-149 does not meet them";
            return Err(Error::Parameter { name: "delta", given: delta.into(), allowed });
        }
        Ok(Self { epsilon, delta, mu: last_safe(*MU.end(), *MU.start(), safe) })
    }

    /// The epsilon given, in nats. [`epsilon`](Self::epsilon) is that of another delta.
    pub fn target_epsilon(&self) -> f64 {
        self.epsilon
    }

    /// The delta given, a probability. [`delta`](Self::delta) is that of another epsilon.
    pub fn target_delta(&self) -> f64 {
        self.delta
    }

    /// The `mu` of Gaussian differential privacy: the largest whose exact curve meets the budget,
    /// rounded down.
    pub fn mu(&self) -> f64 {
        self.mu
    }

    /// The `rho` of zero-concentrated differential privacy, `mu^2 / 2`, in nats.
    pub fn rho(&self) -> f64 {
        0.5 * self.mu * self.mu
    }
}

/// A budget in pure differential privacy: `delta = 0`. It is spent on Laplace noise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PureDp {
    epsilon: f64,
}

impl PureDp {
    /// A budget of `epsilon`, in nats.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless `1e-100 <= epsilon <= 700`.
    pub fn new(epsilon: f64) -> Result<Self> {
        if PURE_EPSILON.contains(&epsilon) {
            Ok(Self { epsilon })
        } else {
            let allowed = "positive (from 1e-100 to 700) for pure differential privacy";
            Err(Error::Parameter { name: "epsilon", given: epsilon.into(), allowed })
        }
    }

    /// The epsilon given, in nats. [`Loss::epsilon`] is that of a positive delta.
    pub fn target_epsilon(&self) -> f64 {
        self.epsilon
    }

    /// The privacy loss that this budget stands for.
    pub fn loss(&self) -> Loss {
        Loss::Pure { epsilon: self.epsilon }
    }

    /// The `mu` of Gaussian differential privacy that it implies, rounded up: see [`Loss::mu`].
    pub fn mu(&self) -> f64 {
        self.loss().mu()
    }

    /// `mu^2 / 2`, in nats: see [`Loss::rho`].
    pub fn rho(&self) -> f64 {
        self.loss().rho()
    }

    /// Both budgets spent on the same people: the two `epsilon` add up, for adaptive choices too. Rounded up.
    ///
    /// # Errors
    /// [`Error::Parameter`] when the sum is over 700.
    pub fn compose(self, other: Self) -> Result<Self> {
        Self::new(sum_up([self.epsilon, other.epsilon]))
    }

    /// Divides the budget: part `i` gets the fraction `parts[i]` of `epsilon`; otherwise as [`Zcdp::split`].
    ///
    /// # Errors
    /// [`Error::Parameter`] as [`Zcdp::split`]; a share must be at least `1e-100`.
    pub fn split(&self, parts: &[f64]) -> Result<Vec<Self>> {
        split(self.epsilon, *PURE_EPSILON.start(), parts, Self::new)
    }
}

impl From<PureDp> for Loss {
    fn from(budget: PureDp) -> Self {
        budget.loss()
    }
}

macro_rules! budget {
    ($($name:ident)*) => {$(
        impl From<$name> for Loss {
            fn from(budget: $name) -> Self {
                budget.loss()
            }
        }

        impl From<$name> for Spent {
            fn from(budget: $name) -> Self {
                Self::Gaussian(Zcdp { rho: budget.rho() })
            }
        }

        impl $name {
            /// The privacy loss that this budget stands for.
            pub fn loss(&self) -> Loss {
                Loss::Gaussian { mu: self.mu() }
            }

            /// The smallest epsilon (in nats) at a `delta`: see [`Loss::epsilon`].
            ///
            /// # Errors
            /// [`Error::Parameter`] unless `2.2250738585072014e-308 <= delta < 1`.
            pub fn epsilon(&self, delta: f64) -> Result<f64> {
                self.loss().epsilon(delta)
            }

            /// The smallest delta at an `epsilon` (in nats): see [`Loss::delta`].
            ///
            /// # Errors
            /// [`Error::Parameter`] unless `epsilon` is finite and at least zero.
            pub fn delta(&self, epsilon: f64) -> Result<f64> {
                self.loss().delta(epsilon)
            }

            /// Divides the budget: part `i` gets the fraction `parts[i]` of its `rho`. What the parts
            /// leave is not given out.
            ///
            /// Parts that sum to one up to their own rounding are what is meant by "all of it": the
            /// shares' sum, exact or in floats from left to right, is never above the whole.
            ///
            /// # Errors
            /// [`Error::Parameter`] when there are no parts, a part is not positive, the parts sum to
            /// more than one (by over `1e-9`), or a share is under `1e-300`.
            ///
            /// # Cost
            /// A few passes over the parts.
            pub fn split(&self, parts: &[f64]) -> Result<Vec<Zcdp>> {
                split(self.rho(), *RHO.start(), parts, Zcdp::new)
            }
        }
    )*};
}

budget! { Zcdp Gdp ApproxDp }

/// A budget, or a sum of some, as what adds up. Every budget and every [`Loss`] converts `Into` it, and it into a [`Loss`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Spent {
    /// Spent on Gaussian noise, or on noise of both kinds: `rho` add up.
    Gaussian(Zcdp),
    /// Spent on Laplace noise alone: `epsilon` add up.
    Pure(PureDp),
}

impl Spent {
    /// The `rho` that it counts with beside Gaussian budgets, in nats: see [`Loss::rho`].
    pub fn rho(&self) -> f64 {
        match self {
            Self::Gaussian(budget) => budget.rho(),
            Self::Pure(budget) => budget.rho(),
        }
    }

    /// The privacy loss that it stands for.
    pub fn loss(&self) -> Loss {
        match self {
            Self::Gaussian(budget) => budget.loss(),
            Self::Pure(budget) => budget.loss(),
        }
    }
}

impl From<Spent> for Loss {
    fn from(spent: Spent) -> Self {
        spent.loss()
    }
}

impl From<Loss> for Spent {
    fn from(loss: Loss) -> Self {
        match loss {
            Loss::Gaussian { .. } => Self::Gaussian(Zcdp { rho: loss.rho() }),
            Loss::Pure { epsilon } => Self::Pure(PureDp { epsilon }),
        }
    }
}

impl From<PureDp> for Spent {
    fn from(budget: PureDp) -> Self {
        Self::Pure(budget)
    }
}

/// All of the budgets spent on the same people. If all are pure their `epsilon` add up ([`PureDp::compose`]); otherwise
/// their `rho` do ([`Zcdp::compose`], claim 7 of `docs/guarantees.md`), with that of [`Loss::rho`] for a pure one. The sum of
/// these floats is rounded up, once: never below their exact sum.
///
/// # Errors
/// [`Error::Parameter`] when there are none, or when the sum leaves the range of such budgets.
pub fn total<B: Into<Spent>>(budgets: impl IntoIterator<Item = B>) -> Result<Spent> {
    let budgets: Vec<Spent> = budgets.into_iter().map(Into::into).collect();
    if budgets.is_empty() {
        return Err(Error::Parameter { name: "budgets", given: 0u64.into(), allowed: "one budget or more" });
    }
    let pure = budgets.iter().map(|spent| match spent {
        Spent::Pure(budget) => Some(budget.epsilon),
        Spent::Gaussian(_) => None,
    });
    match pure.collect::<Option<Vec<f64>>>() {
        Some(epsilons) => PureDp::new(sum_up(epsilons)).map(Spent::Pure),
        None => Zcdp::new(sum_up(budgets.iter().map(Spent::rho))).map(Spent::Gaussian),
    }
}

/// A sum in floats, and what is missing of the exact one (Knuth's two-sum).
fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let added = sum - a;
    (sum, (a - (sum - added)) + (b - added))
}

/// The least float that is not below the exact sum of positive floats.
///
/// What has come so far is kept exactly, as floats whose bits do not overlap, the smallest first (Shewchuk, "Adaptive Precision
/// Floating-Point Arithmetic", 1997, theorem 10).
fn sum_up(terms: impl IntoIterator<Item = f64>) -> f64 {
    let mut parts = Vec::new();
    for mut term in terms {
        parts.retain_mut(|part| {
            let (sum, lost) = two_sum(term, *part);
            (term, *part) = (sum, lost);
            lost != 0.0
        });
        parts.push(term);
    }
    // From the largest down. What is lost first is more than all that is left.
    let mut sum = 0.0;
    for part in parts.into_iter().rev() {
        let (next, lost) = two_sum(sum, part);
        sum = next;
        if lost != 0.0 {
            return if lost > 0.0 { f64::from_bits(sum.to_bits() + 1) } else { sum };
        }
    }
    sum
}

/// Shares of a whole, each at least `least`, as budgets.
fn split<B>(whole: f64, least: f64, parts: &[f64], budget: impl Fn(f64) -> Result<B>) -> Result<Vec<B>> {
    let error = |given, allowed| Err(Error::Parameter { name: "parts", given, allowed });
    if parts.is_empty() {
        return error(parts.len().into(), "one number or more");
    }
    for &part in parts {
        if !(part > 0.0 && part < f64::INFINITY) {
            return error(part.into(), "finite and over 0, each of them");
        }
    }
    let sum: f64 = parts.iter().sum();
    if sum > 1.0 + PARTS_TOLERANCE {
        return error(sum.into(), "fractions that sum to at most 1");
    }
    let scale = sum.max(1.0);
    let mut shares: Vec<f64> = parts.iter().map(|part| whole * (part / scale)).collect();
    // Rounding may have carried the sum over the whole; the largest share bears the difference.
    loop {
        let excess = excess(whole, &shares);
        if excess <= 0.0 {
            break;
        }
        if let Some(largest) = shares.iter_mut().max_by(|a, b| a.total_cmp(b)) {
            *largest -= excess.max(f64::EPSILON * *largest);
        }
    }
    for (&share, &part) in shares.iter().zip(parts) {
        if share < least {
            return error(part.into(), "large enough for a share of at least 1e-300 (1e-100 of a pure budget)");
        }
    }
    shares.into_iter().map(budget).collect()
}

/// By how much the shares' sum is over the whole: the larger of the exact sum's excess and of the float
/// sum's. The rounding error of each subtraction is kept, so that the sign of the exact one is not lost to rounding.
fn excess(whole: f64, shares: &[f64]) -> f64 {
    let (mut left, mut lost) = (whole, 0.0);
    for &share in shares {
        let (next, error) = two_sum(left, -share);
        lost += error;
        left = next;
    }
    let float_sum: f64 = shares.iter().sum();
    (-(left + lost)).max(float_sum - whole)
}

/// The float next to the border between unsafe and safe arguments, on the safe side; both ends are
/// nonnegative. Bisects the bit patterns, which are in the floats' order: at most 64 steps whatever the
/// magnitudes, no tolerance to choose, and the result itself has been found safe.
fn last_safe(not_safe: f64, safe: f64, is_safe: impl Fn(f64) -> bool) -> f64 {
    let (mut bad, mut good) = (not_safe.to_bits(), safe.to_bits());
    while bad.abs_diff(good) > 1 {
        let middle = (bad + good) / 2;
        if is_safe(f64::from_bits(middle)) {
            good = middle;
        } else {
            bad = middle;
        }
    }
    f64::from_bits(good)
}

/// The curve of randomised response with `own`, rounded up; 0 from there on.
fn pure_curve(own: f64, epsilon: f64) -> f64 {
    if epsilon >= own {
        return 0.0;
    }
    // (e^own - e^epsilon) / (e^own + 1): e^-(own - epsilon) loses nothing where the two are close.
    let delta = -exp_m1(epsilon - own) / (1.0 + exp(-own));
    (delta * (1.0 + 8.0 * f64::EPSILON)).min(1.0)
}

/// The least `mu` with `erf(mu / sqrt 8) = tanh(epsilon / 2)`, rounded up.
fn mu_of_pure(epsilon: f64) -> f64 {
    let argument = |mu: f64| mu * (0.5 * core::f64::consts::FRAC_1_SQRT_2);
    let mu = if epsilon < 1.0 {
        let tanh = exp_m1(epsilon) / (exp_m1(epsilon) + 2.0);
        last_safe(0.0, 2.0 * epsilon, |mu| erf(argument(mu)) >= tanh)
    } else {
        // The complement, which is small: 2 / (1 + e^epsilon).
        let rest = 2.0 / (1.0 + exp(epsilon));
        last_safe(0.0, 2.0 + 2.0 * epsilon, |mu| erfc(argument(mu)) <= rest)
    };
    mu * (1.0 + 16.0 * f64::EPSILON)
}

/// Half the nodes (the others are their negatives) and the weights of the 12-point Gauss-Legendre rule.
const GAUSS_LEGENDRE: [(f64, f64); 6] = [
    (0.1252334085114689, 0.24914704581340277),
    (0.3678314989981802, 0.2334925365383548),
    (0.5873179542866175, 0.20316742672306592),
    (0.7699026741943047, 0.16007832854334622),
    (0.9041172563704749, 0.10693932599531843),
    (0.9815606342467192, 0.04717533638651183),
];

/// The exact curve, rounded up; the result is from `f64::MIN_POSITIVE` to 1.
///
/// With `low = epsilon/mu - mu/2`, `high = epsilon/mu + mu/2`, the normal density `phi` and the Mills
/// ratio `R(z) = Phi(-z) / phi(z)`: since `e^epsilon phi(high) = phi(low)`, the curve is
/// `phi(low) (R(low) - R(high))`. Nothing overflows in this form, and what may underflow is a factor of
/// the result.
fn curve(mu: f64, epsilon: f64) -> f64 {
    // A larger `mu` can only raise the curve. This much outweighs the rounding below everywhere: the
    // argument's error of some units in the last place moves ln delta by about low * high of them (low^2
    // for a small `mu`), and so does a relative change of `mu`.
    let mu = mu * (1.0 + 16.0 * f64::EPSILON);
    let (middle, half) = (epsilon / mu, 0.5 * mu);
    let (low, high) = (middle - half, middle + half);
    let density = 0.3989422804014327 * exp(-0.5 * low * low);
    let delta = if low < -1.0 {
        // 1 - delta, at most 0.23 here, without cancellation. The last term rounds up.
        1.0 - density * (mills(-low).0 + mills(high).0) + 0.5 * f64::EPSILON
    } else {
        let (ratio_low, ratio_high) = (mills(low).0, mills(high).0);
        let difference = if ratio_high < 0.5 * ratio_low {
            ratio_low - ratio_high
        } else {
            // They would cancel: integrate -R' = 1 - z R between them. The ratios are within a factor
            // of two here, so the integrand is almost flat and 12 points are exact to rounding.
            let integral = GAUSS_LEGENDRE
                .iter()
                .map(|&(node, weight)| weight * (mills(middle - half * node).1 + mills(middle + half * node).1));
            half * integral.sum::<f64>()
        };
        density * difference
    };
    delta.clamp(f64::MIN_POSITIVE, 1.0)
}

/// The Mills ratio `R(z)` of the normal distribution and `1 - z R(z)`, for `z >= -1`: relative errors
/// near `1e-15` and `1e-14`.
fn mills(z: f64) -> (f64, f64) {
    if z < 2.5 {
        let ratio = 1.2533141373155003 * exp(0.5 * z * z) * erfc(core::f64::consts::FRAC_1_SQRT_2 * z);
        (ratio, 1.0 - z * ratio)
    } else {
        // Laplace's continued fraction, R = 1/(z + 1/(z + 2/(z + 3/(z + ...)))) (DLMF 7.9.3). Without
        // the first z it is also 1/R - z, so that nothing cancels. 60 terms are enough from 2.5 on.
        let tail = (1..=60_u8).rev().fold(0.0, |tail, k| f64::from(k) / (z + tail));
        let ratio = 1.0 / (z + tail);
        (ratio, tail * ratio)
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use alloc::vec;
    use core::iter::empty;

    use proptest::prelude::*;

    use super::*;
    use crate::math::power_of_two;

    // The tables are mpmath's, in 330 digits (a tiny mu cancels most of them), of the f64 inputs:
    //
    //     Phi = lambda x: mp.erfc(-x / mp.sqrt(2)) / 2
    //     D = lambda mu, eps: Phi(mu/2 - eps/mu) - mp.exp(eps) * Phi(-mu/2 - eps/mu)
    //
    // DELTA is float(D(mp.sqrt(2 * mp.mpf(rho)), mp.mpf(eps))); EPSILON and MU are its inverses by 700
    // bisections of the argument in mpmath, EPSILON being 0 where D(mu, 0) <= delta.

    /// `(rho, delta, epsilon)`.
    #[rustfmt::skip]
    const EPSILON: [(f64, f64, f64); 60] = [
        (1e-12, 1e-300, 5.173726830800496e-05), (1e-12, 1e-100, 2.8970615541423207e-05), (1e-12, 1e-15, 8.140717260698225e-06),
        (1e-12, 1e-06, 0.0), (1e-12, 0.01, 0.0), (1e-12, 0.5, 0.0),
        (1e-06, 1e-300, 0.05200421883512832), (1e-06, 1e-100, 0.02944245339629969), (1e-06, 1e-15, 0.009626452685116218),
        (1e-06, 1e-06, 0.003991535401080414), (1e-06, 0.01, 0.0), (1e-06, 0.5, 0.0),
        (0.001, 1e-300, 1.6496737983694545), (0.001, 1e-100, 0.9393730571345581), (0.001, 1e-15, 0.3264765267086823),
        (0.001, 1e-06, 0.1679435940656646), (0.001, 0.01, 0.019063484268822553), (0.001, 0.5, 0.0),
        (0.01, 1e-300, 5.227962535593781), (0.01, 1e-100, 2.9850805870030266), (0.01, 1e-15, 1.0604131317048349),
        (0.01, 1e-06, 0.5750551857799973), (0.01, 0.01, 0.15896853926025786), (0.01, 0.5, 0.0),
        (0.1, 1e-300, 16.61447548993916), (0.1, 1e-100, 9.53206543787491), (0.1, 1e-15, 3.485978498585954),
        (0.1, 1e-06, 1.9945269006963384), (0.1, 0.01, 0.7921958360995717), (0.1, 0.5, 0.0),
        (0.5, 1e-300, 37.44884791213911), (0.5, 1e-100, 21.627508093648384), (0.5, 1e-15, 8.165579695504254),
        (0.5, 1e-06, 4.886554117462212), (0.5, 0.01, 2.31778904030405), (0.5, 0.5, 0.0),
        (1.0, 1e-300, 53.266392270487025), (1.0, 1e-100, 30.900670912227675), (1.0, 1e-15, 11.894653488878705),
        (1.0, 1e-06, 7.2860809664186075), (1.0, 0.01, 3.707531904132596), (1.0, 0.5, 0.08524028181301192),
        (10.0, 1e-300, 175.41066748412416), (10.0, 1e-100, 104.76987729668335), (10.0, 1e-15, 44.94075918452691),
        (10.0, 1e-06, 30.57888232365685), (10.0, 0.01, 19.60366297734527), (10.0, 0.5, 9.014771825354062),
        (1000.0, 1e-300, 2656.0681036301266), (1000.0, 1e-100, 1950.5598000203704), (1000.0, 1e-15, 1354.2273702181449),
        (1000.0, 1e-06, 1211.629380907233), (1000.0, 0.01, 1103.0627265265273), (1000.0, 0.5, 999.0001664339158),
        (1000000.0, 1e-300, 1052391.518907035), (1000000.0, 1e-100, 1030084.2139913074), (1000000.0, 1e-15, 1011229.7610611463),
        (1000000.0, 1e-06, 1006721.3588022494), (1000000.0, 0.01, 1003288.9535360197), (1000000.0, 0.5, 999999.0000001667),
    ];

    /// `(rho, epsilon, delta)`.
    #[rustfmt::skip]
    const DELTA: [(f64, f64, f64); 64] = [
        (1e-12, 0.0, 5.641895835477092e-07), (1e-12, 7.07107781e-07, 2.797263644860693e-07), (1e-12, 2.82842812e-06, 1.2007661134049451e-08),
        (1e-12, 8.48528237e-06, 2.2112211685387114e-16), (1e-12, 2.82842722e-05, 1.9374914215985944e-96), (1e-12, 5.23259028e-05, 2.1852420153013815e-307),
        (1e-06, 0.0, 0.0005641895365319612), (1e-06, 0.000708106781, 0.00027951707185650497), (1e-06, 0.00282942712, 1.2001900741236365e-05),
        (1e-06, 0.00848628137, 2.2107372991850497e-13), (1e-06, 0.0282852712, 1.937355575727836e-93), (1e-06, 0.0523269018, 2.1851587596262837e-304),
        (0.001, 0.0, 0.01783975450293204), (0.001, 0.0233606798, 0.00864034705246193), (0.001, 0.0904427191, 0.00037402713494357636),
        (0.001, 0.269328157, 6.9443776030416515e-12), (0.001, 0.895427191, 6.1133130518656034e-92), (0.001, 1.6556903, 6.902035828698756e-303),
        (0.01, 0.0, 0.05637197779701662), (0.01, 0.0807106781, 0.02600569144821067), (0.01, 0.292842712, 0.0011455428163591357),
        (0.01, 0.858528137, 2.1637934357355074e-11), (0.01, 2.83842712, 1.9239869785553662e-91), (0.01, 5.24259018, 2.17693952137878e-302),
        (0.1, 0.0, 0.17693672624187853), (0.1, 0.323606798, 0.07114052265799889), (0.1, 0.994427191, 0.0032919322866611536),
        (0.1, 2.78328157, 6.538843898400582e-11), (0.1, 9.04427191, 5.993836880647459e-91), (0.1, 16.646903, 6.828010100436456e-302),
        (0.5, 0.0, 0.3829249225480262), (0.5, 1.0, 0.12693673750664394), (0.5, 2.5, 0.006305007330280075),
        (0.5, 6.5, 1.3533103960681484e-10), (0.5, 20.5, 1.3052249067734111e-90), (0.5, 37.5, 1.504621630436529e-301),
        (1.0, 0.0, 0.5204998778130465), (1.0, 0.292893219, 0.44980332292935893), (1.0, 1.70710678, 0.15529611377868227),
        (1.0, 3.82842712, 0.00804100879340553), (1.0, 9.48528137, 1.8125653813323686e-10), (1.0, 29.2842712, 1.8104003774238705e-90),
        (1.0, 53.3259018, 2.104959634453796e-301), (10.0, 0.0, 0.9746526813225317), (10.0, 7.76393202, 0.6076184301378296),
        (10.0, 12.236068, 0.24030194066160918), (10.0, 18.9442719, 0.014594421930584111), (10.0, 36.8328157, 4.1154454190331826e-10),
        (10.0, 99.4427191, 5.013583314070055e-90), (10.0, 175.46903, 6.166581405536836e-301), (1000.0, 865.835921, 0.9985439379979562),
        (1000.0, 977.63932, 0.6835050965349355), (1000.0, 1022.36068, 0.30075596161518264), (1000.0, 1089.44272, 0.02159506463513776),
        (1000.0, 1268.32816, 8.668443981030856e-10), (1000.0, 1894.42719, 1.9007950348161382e-89), (1000.0, 2654.6903, 3.1317791443648805e-300),
        (1000000.0, 995757.359, 0.9986469625005627), (1000000.0, 999292.893, 0.6912134800635319), (1000000.0, 1000707.11, 0.3082878780231822),
        (1000000.0, 1002828.43, 0.02271189888900343), (1000000.0, 1008485.28, 9.823153790449928e-10), (1000000.0, 1028284.27, 2.715177553933001e-89),
        (1000000.0, 1052325.9, 5.5797503073045374e-300),
    ];

    /// `(epsilon, delta, mu)`.
    #[rustfmt::skip]
    const MU: [(f64, f64, f64); 24] = [
        (0.0, 1e-100, 2.5066282746310004e-100), (0.0, 1e-09, 2.506628274631001e-09), (0.0, 1e-05, 2.5066282746966242e-05),
        (0.0, 0.3, 0.7706409328151352), (1e-06, 1e-100, 4.920894962902149e-08), (1e-06, 1e-09, 4.104403020248586e-07),
        (1e-06, 1e-05, 2.6300575650481552e-05), (1e-06, 0.3, 0.7706418777415184), (0.1, 1e-100, 0.004789527565443042),
        (0.1, 1e-09, 0.019916423412681468), (0.1, 1e-05, 0.032520784056203914), (0.1, 0.3, 0.8601565017301216),
        (1.0, 1e-100, 0.04759772147739076), (1.0, 1e-09, 0.18197480729533227), (1.0, 1e-05, 0.2680511232112942),
        (1.0, 0.3, 1.4487912140590014), (10.0, 1e-100, 0.46888114985805124), (10.0, 1e-09, 1.53787733681454),
        (10.0, 1e-05, 2.0004456204306322), (10.0, 0.3, 4.180296861731533), (1000.0, 1e-100, 28.264922707870753),
        (1000.0, 1e-09, 39.14457016522905), (1000.0, 1e-05, 40.68053101333281), (1000.0, 0.3, 44.222251881399515),
    ];

    const TOLERANCE: f64 = 1e-9;
    const LOG10_RHO: core::ops::Range<f64> = -12.0..6.0;

    fn near(left: f64, right: f64) -> bool {
        (left - right).abs() <= TOLERANCE * right.abs()
    }

    fn ten_to(x: f64) -> f64 {
        exp(x * core::f64::consts::LN_10)
    }

    fn zcdp(rho: f64) -> Zcdp {
        Zcdp::new(rho).unwrap()
    }

    fn name_of<T: core::fmt::Debug>(result: Result<T>) -> &'static str {
        match result {
            Err(Error::Parameter { name, .. }) => name,
            other => panic!("not a parameter error: {other:?}"),
        }
    }

    /// A sum of floats in `[2^-46, 2)`, exact, in units of `2^-100`.
    fn exact_sum(shares: &[Zcdp]) -> u128 {
        let units = |share: &Zcdp| {
            assert!(share.rho() >= power_of_two(-46) && share.rho() < 2.0);
            (share.rho() * power_of_two(100)) as u128
        };
        shares.iter().map(units).sum()
    }

    #[test]
    fn epsilon_agrees_with_mpmath_and_is_never_below_it() {
        for (rho, delta, expected) in EPSILON {
            let epsilon = zcdp(rho).epsilon(delta).unwrap();
            assert!(near(epsilon, expected), "{rho:e} {delta:e}: {epsilon:e}, not {expected:e}");
            assert!(epsilon >= expected, "{rho:e} {delta:e}: {epsilon:e} is below {expected:e}");
        }
    }

    #[test]
    fn delta_agrees_with_mpmath_and_is_never_below_it() {
        for (rho, epsilon, expected) in DELTA {
            let delta = zcdp(rho).delta(epsilon).unwrap();
            assert!(near(delta, expected), "{rho:e} {epsilon:e}: {delta:e}, not {expected:e}");
            assert!(delta >= expected, "{rho:e} {epsilon:e}: {delta:e} is below {expected:e}");
        }
    }

    #[test]
    fn approximate_budget_buys_the_mu_of_mpmath_and_never_more() {
        for (epsilon, delta, expected) in MU {
            let mu = ApproxDp::new(epsilon, delta).unwrap().mu();
            assert!(near(mu, expected), "{epsilon:e} {delta:e}: {mu:e}, not {expected:e}");
            assert!(mu <= expected, "{epsilon:e} {delta:e}: {mu:e} is above {expected:e}");
        }
    }

    #[test]
    fn epsilon_has_its_golden_values_and_is_under_the_classical_formula() {
        for (rho, expected) in [(0.01, 0.575055), (0.1, 1.994527), (0.5, 4.886554), (1.0, 7.286081)] {
            let epsilon = zcdp(rho).epsilon(1e-6).unwrap();
            assert!((epsilon - expected).abs() < 1e-6, "{rho}: {epsilon}");
            let classical = rho + 2.0 * sqrt(rho * ln(1e6));
            assert!(classical > 1.04 * epsilon, "{rho}: {classical} {epsilon}");
        }
    }

    #[test]
    fn delta_too_small_for_a_float_is_the_smallest_normal_one_not_zero() {
        for epsilon in [60.0, 1e3, 1e300, f64::MAX] {
            assert_eq!(zcdp(1.0).delta(epsilon), Ok(f64::MIN_POSITIVE));
        }
        assert!(zcdp(1.0).delta(53.0).unwrap() > f64::MIN_POSITIVE);
        assert_eq!(zcdp(1e-300).delta(f64::MAX), Ok(f64::MIN_POSITIVE));
    }

    #[test]
    fn delta_close_to_one_is_rounded_up() {
        // 1 - delta = 2 Phi(-mu/2), by mpmath: 1.69 times 2^-53, which to the nearest float would be two.
        let delta = Gdp::new(16.46).unwrap().delta(0.0).unwrap();
        assert!(1.0 - delta <= 1.8721344309263174e-16 && delta < 1.0, "{delta:e}");
    }

    #[test]
    fn smallest_delta_has_an_epsilon() {
        let epsilon = zcdp(1.0).epsilon(f64::MIN_POSITIVE).unwrap();
        assert!(epsilon > zcdp(1.0).epsilon(1e-307).unwrap() && epsilon < 54.5, "{epsilon}");
    }

    #[test]
    fn whole_range_of_budgets_gives_finite_numbers() {
        for exponent in -300..=300 {
            let budget = zcdp(ten_to(f64::from(exponent)).clamp(1e-300, 1e300));
            for delta in [f64::MIN_POSITIVE, 1e-300, 1e-9, 0.5, 1.0 - f64::EPSILON] {
                let epsilon = budget.epsilon(delta).unwrap();
                assert!((0.0..=2.1e300).contains(&epsilon), "{budget:?} {delta:e}: {epsilon:e}");
                let back = budget.delta(epsilon).unwrap();
                assert!(back <= delta, "{budget:?} {delta:e}: {back:e}");
            }
            for epsilon in [0.0, f64::MIN_POSITIVE, 1.0, f64::MAX] {
                let delta = budget.delta(epsilon).unwrap();
                assert!(delta > 0.0 && delta <= 1.0, "{budget:?} {epsilon:e}: {delta:e}");
            }
            let target = ten_to(f64::from(exponent)).min(MAX_EPSILON);
            for delta in [1e-300, 1e-9, 0.5, 1.0 - f64::EPSILON] {
                match ApproxDp::new(target, delta) {
                    Ok(budget) => assert!(budget.delta(target).unwrap() <= delta && Gdp::new(budget.mu()).is_ok()),
                    Err(_) => assert!(target < 1e-145 && delta == 1e-300, "{target:e} {delta:e}"),
                }
            }
        }
    }

    #[test]
    fn dialects_collapse_to_the_same_loss() {
        assert_eq!(zcdp(0.5).loss(), Gdp::new(1.0).unwrap().loss());
        assert_eq!(Loss::from(zcdp(2.0)).mu(), 2.0);
        assert_eq!(Gdp::new(3.0).unwrap().rho(), 4.5);
        assert_eq!(Gdp::new(3.0).unwrap().loss().rho(), 4.5);
        let budget = ApproxDp::new(1.0, 1e-6).unwrap();
        assert_eq!((budget.target_epsilon(), budget.target_delta()), (1.0, 1e-6));
        assert_eq!(budget.loss(), Gdp::new(budget.mu()).unwrap().loss());
        assert_eq!(budget.rho(), 0.5 * budget.mu() * budget.mu());
        assert_eq!(budget.epsilon(1e-3), budget.loss().epsilon(1e-3));
    }

    #[test]
    fn numbers_out_of_range_are_refused_by_name() {
        for bad in [0.0, -1.0, 1e-301, 1.1e300, f64::INFINITY, f64::NAN] {
            assert_eq!(name_of(Zcdp::new(bad)), "rho");
            assert_eq!(name_of(Gdp::new(bad)), "mu");
        }
        for bad in [0.0, -1e-6, 1e-310, 1.0, 2.0, f64::NAN] {
            assert_eq!(name_of(ApproxDp::new(1.0, bad)), "delta");
            assert_eq!(name_of(zcdp(1.0).epsilon(bad)), "delta");
        }
        for bad in [-1e-9, f64::INFINITY, f64::NAN] {
            assert_eq!(name_of(ApproxDp::new(bad, 1e-6)), "epsilon");
            assert_eq!(name_of(zcdp(1.0).delta(bad)), "epsilon");
        }
        assert_eq!(name_of(ApproxDp::new(1.1e298, 1e-6)), "epsilon");
        assert_eq!(name_of(ApproxDp::new(0.0, 1e-200)), "delta");
        assert_eq!(
            Zcdp::new(-1.0).unwrap_err().to_string(),
            "rho must be positive (from 1e-300 to 1e300); -1.0 was given"
        );
    }

    #[test]
    fn composed_budgets_add_their_rho() {
        assert_eq!(zcdp(0.25).compose(zcdp(0.5)), Ok(zcdp(0.75)));
        assert_eq!(name_of(zcdp(1e300).compose(zcdp(1e300))), "rho");
        let budgets = [zcdp(0.5).loss(), Gdp::new(2.0).unwrap().loss()];
        assert!(near(total(budgets).unwrap().rho(), 2.5));
        assert_eq!(name_of(total(empty::<Loss>())), "budgets");
        // What is given in rho is not rounded by way of mu.
        assert_eq!(total([zcdp(0.25), zcdp(0.5)]), Ok(Spent::Gaussian(zcdp(0.75))));
        assert_eq!(name_of(total([zcdp(1e300).loss(), zcdp(1e300).loss()])), "rho");
    }

    #[test]
    fn split_gives_each_part_its_fraction_and_keeps_the_rest() {
        assert_eq!(zcdp(2.0).split(&[0.25, 0.5]), Ok(vec![zcdp(0.5), zcdp(1.0)]));
        assert_eq!(zcdp(1.0).split(&[0.3, 0.7]), Ok(vec![zcdp(0.3), zcdp(0.7)]));
        assert_eq!(zcdp(1.0).split(&[1.0]), Ok(vec![zcdp(1.0)]));
        assert_eq!(Gdp::new(2.0).unwrap().split(&[0.5]), Ok(vec![zcdp(1.0)]));
        let whole = ApproxDp::new(1.0, 1e-6).unwrap();
        assert_eq!(whole.split(&[0.5, 0.5]).unwrap()[0].rho(), 0.5 * whole.rho());
    }

    #[test]
    fn split_of_parts_just_over_one_hands_out_no_more_than_the_whole() {
        let shares = zcdp(1.0).split(&[0.5, 0.5 + 5e-10]).unwrap();
        assert!(exact_sum(&shares) <= 1 << 100);
        assert!(near(shares[0].rho(), 0.5) && shares[0].rho() < 0.5);
    }

    #[test]
    fn split_refuses_what_is_not_a_division() {
        let parts: [&[f64]; 7] =
            [&[], &[0.5, 0.0], &[-0.5], &[f64::NAN], &[f64::INFINITY], &[0.5, 0.5 + 2e-9], &[f64::MAX, f64::MAX]];
        for parts in parts {
            assert_eq!(name_of(zcdp(1.0).split(parts)), "parts", "{parts:?}");
        }
        assert_eq!(name_of(zcdp(1e-300).split(&[0.5])), "parts");
    }

    // Pure budgets. By mpmath as well, in 300 digits: PURE_MU has erf(mu / sqrt 8) = tanh(epsilon / 2) by bisection, PURE_DELTA is
    // (e^own - e^epsilon) / (1 + e^own), PURE_EPSILON_AT its inverse ln(e^own - delta (1 + e^own)), 0 where that is no positive number.

    /// `(epsilon, mu)`.
    #[rustfmt::skip]
    const PURE_MU: [(f64, f64); 18] = [
        (1e-100, 1.2533141373155002e-100), (1e-50, 1.2533141373155003e-50), (1e-17, 1.2533141373155003e-17), (1e-08, 1.2533141373155002e-08), (0.0001, 0.0001253314137091364), (0.01, 0.012533118959649838),
        (0.1, 0.1253090122116076), (0.5, 0.6238925920985082), (0.9999999, 1.2320352661843885), (1.0, 1.2320353853449009), (1.5, 1.812320467732465), (2.0, 2.3579614856472495),
        (5.0, 4.9466784455956585), (10.0, 7.8279143936218665), (36.0, 16.241189535810047), (100.0, 27.776952066007773), (350.0, 52.597346114969646), (700.0, 74.59015926529483),
    ];

    /// `(own, epsilon, delta)`.
    #[rustfmt::skip]
    const PURE_DELTA: [(f64, f64, f64); 20] = [
        (1e-100, 0.0, 5e-101), (1e-100, 5e-101, 2.5e-101), (1e-09, 0.0, 5e-10), (1e-09, 1e-10, 4.5000000002250003e-10),
        (1e-09, 9.999e-10, 5.000000002501284e-14), (0.1, 0.0, 0.04995837495787998), (0.1, 0.05, 0.025603537098495457), (0.1, 0.0999999, 5.249791612450776e-08),
        (1.0, 0.0, 0.46211715726000974), (1.0, 0.5, 0.28764913664496794), (1.0, 0.999999999, 7.31058557588727e-10), (5.0, 0.0, 0.9866142981514303),
        (5.0, 1.0, 0.9751140940276463), (5.0, 4.9, 0.09452567298938475), (50.0, 0.0, 1.0), (50.0, 30.0, 0.9999999979388464),
        (50.0, 49.999, 0.00099950016662268), (700.0, 0.0, 1.0), (700.0, 650.0, 1.0), (700.0, 699.0, 0.6321205588285577),
    ];

    /// `(own, delta, epsilon)`.
    #[rustfmt::skip]
    const PURE_EPSILON_AT: [(f64, f64, f64); 35] = [
        (1e-100, 1e-300, 1e-100), (1e-100, 1e-12, 0.0), (1e-100, 0.001, 0.0), (1e-100, 0.3, 0.0), (1e-100, 0.9, 0.0),
        (1e-09, 1e-300, 1e-09), (1e-09, 1e-12, 9.98000000000998e-10), (1e-09, 0.001, 0.0), (1e-09, 0.3, 0.0), (1e-09, 0.9, 0.0),
        (0.1, 1e-300, 0.1), (0.1, 1e-12, 0.09999999999809517), (0.1, 0.001, 0.0980933460720322), (0.1, 0.3, 0.0), (0.1, 0.9, 0.0),
        (1.0, 1e-300, 1.0), (1.0, 1e-12, 0.9999999999986321), (1.0, 0.001, 0.9986311841577258), (1.0, 0.3, 0.47175040269913343), (1.0, 0.9, 0.0),
        (5.0, 1e-300, 5.0), (5.0, 1e-12, 4.999999999998994), (5.0, 0.001, 4.99899275495198), (5.0, 0.3, 4.640433187064911), (5.0, 0.9, 2.6348567990304996),
        (50.0, 1e-300, 50.0), (50.0, 1e-12, 49.999999999999), (50.0, 0.001, 49.99899949966642), (50.0, 0.3, 49.643325056061265), (50.0, 0.9, 47.69741490700596),
        (700.0, 1e-300, 700.0), (700.0, 1e-12, 699.999999999999), (700.0, 0.001, 699.9989994996664), (700.0, 0.3, 699.6433250560613), (700.0, 0.9, 697.697414907006),
    ];

    fn pure(epsilon: f64) -> PureDp {
        PureDp::new(epsilon).unwrap()
    }

    /// At least the expected value, which is rounded to the nearest float, and above it by less than a part in 1e14.
    fn just_above(got: f64, expected: f64) -> bool {
        got >= expected && got - expected <= 1e-14 * expected
    }

    #[test]
    fn mu_of_a_pure_budget_agrees_with_mpmath_and_is_never_below_it() {
        for (epsilon, expected) in PURE_MU {
            let mu = pure(epsilon).mu();
            assert!(just_above(mu, expected), "{epsilon:e}: {mu:e}, not {expected:e}");
            assert_eq!(pure(epsilon).rho(), 0.5 * mu * mu);
            assert_eq!(pure(epsilon).loss().mu(), mu);
        }
    }

    #[test]
    fn mu_of_a_pure_budget_rises_over_the_whole_range_and_across_the_change_of_formula() {
        let logs = (-1000..=284).map(|k| ten_to(0.1 * f64::from(k)));
        let near_one = (-50..50).map(|k| 1.0 + f64::from(k) * 1e-12);
        for mut epsilons in [logs.collect::<Vec<f64>>(), near_one.collect()] {
            epsilons.retain(|epsilon| super::PURE_EPSILON.contains(epsilon));
            assert!(epsilons.len() >= 100);
            let mus: Vec<f64> = epsilons.iter().map(|&epsilon| pure(epsilon).mu()).collect();
            assert!(mus.windows(2).all(|pair| pair[0] < pair[1]));
        }
    }

    #[test]
    fn curve_of_a_pure_budget_is_that_of_randomised_response_and_never_below_it() {
        for (own, epsilon, expected) in PURE_DELTA {
            let delta = pure(own).loss().delta(epsilon).unwrap();
            // Where delta is near one there is no float between it and one.
            let ok = just_above(delta, expected) || (expected > 1.0 - 1e-15 && delta >= expected);
            assert!(ok && delta <= 1.0, "{own:e} {epsilon:e}: {delta:e}, not {expected:e}");
        }
        for own in [1e-100, 1.0, 700.0] {
            assert_eq!(pure(own).loss().delta(own), Ok(0.0));
            assert_eq!(pure(own).loss().delta(f64::MAX), Ok(0.0));
            // One float below its epsilon, delta is not zero.
            let below = f64::from_bits(own.to_bits() - 1);
            let least = -exp_m1(below - own) / (1.0 + exp(-own));
            assert!(least > 0.0 && pure(own).loss().delta(below).unwrap() >= least);
        }
        assert_eq!(name_of(pure(1.0).loss().delta(-1.0)), "epsilon");
        assert_eq!(name_of(pure(1.0).loss().delta(f64::NAN)), "epsilon");
    }

    #[test]
    fn epsilon_of_a_pure_budget_at_a_delta_agrees_with_mpmath_and_is_never_below_it() {
        for (own, delta, expected) in PURE_EPSILON_AT {
            let epsilon = pure(own).loss().epsilon(delta).unwrap();
            assert!(
                just_above(epsilon, expected) || near(epsilon, expected) && delta == 0.9,
                "{own:e} {delta:e}: {epsilon:e}, not {expected:e}"
            );
            assert!(epsilon >= expected && epsilon <= own);
            assert!(pure(own).loss().delta(epsilon).unwrap() <= delta);
        }
        assert_eq!(pure(1.0).loss().epsilon(0.0), Ok(1.0));
        assert_eq!(name_of(pure(1.0).loss().epsilon(1.0)), "delta");
        assert_eq!(name_of(pure(1.0).loss().epsilon(-1e-9)), "delta");
    }

    /// The least type II error of a test of randomised response whose type I error is `alpha`, `beta = 1 - alpha`.
    fn trade_off(epsilon: f64, alpha: f64, beta: f64) -> f64 {
        (1.0 - exp(epsilon) * alpha).max(exp(-epsilon) * beta)
    }

    /// Whether that of `N(mu, 1)` against `N(0, 1)` is nowhere above it, on a grid of thresholds: then all that is
    /// `epsilon`-private is `mu`-GDP.
    fn dominates(mu: f64, epsilon: f64) -> bool {
        (-40_000..=40_000).all(|k| {
            let threshold = 0.5 * mu + f64::from(k) * 1e-3;
            let normal = |x: f64| 0.5 * erfc(-core::f64::consts::FRAC_1_SQRT_2 * x);
            let (alpha, beta) = (normal(-threshold), normal(threshold));
            normal(threshold - mu) <= trade_off(epsilon, alpha, beta) * (1.0 + 1e-12)
        })
    }

    #[test]
    fn randomised_response_is_nowhere_easier_to_tell_apart_than_the_normal_laws_of_its_mu() {
        for epsilon in [1e-3, 0.1, 0.5, 1.0, 2.0, 5.0, 20.0, 100.0, 350.0] {
            let mu = pure(epsilon).mu();
            assert!(dominates(mu, epsilon), "{epsilon}");
            // And there is no smaller one.
            assert!(!dominates(0.999 * mu, epsilon), "{epsilon}");
        }
    }

    #[test]
    fn gaussian_curve_of_a_pure_budget_is_nowhere_below_its_own() {
        for epsilon in [1e-3, 0.1, 1.0, 5.0, 50.0] {
            let (own, gaussian) = (pure(epsilon).loss(), Gdp::new(pure(epsilon).mu()).unwrap().loss());
            let touches = (0..=1000).map(|k| 1e-3 * f64::from(k) * epsilon).filter(|&at| {
                let (pure, normal) = (own.delta(at).unwrap(), gaussian.delta(at).unwrap());
                assert!(pure <= normal * (1.0 + 1e-12), "{epsilon} at {at}: {pure} {normal}");
                normal <= pure * (1.0 + 1e-9)
            });
            // They meet at 0: total variation tanh(epsilon / 2).
            assert!(touches.count() > 0);
        }
    }

    #[test]
    fn pure_budgets_out_of_range_are_refused_by_name() {
        for bad in [0.0, -1.0, 1e-101, 700.1, f64::INFINITY, f64::NAN] {
            assert_eq!(name_of(PureDp::new(bad)), "epsilon");
        }
        assert!(PureDp::new(1e-100).is_ok() && PureDp::new(700.0).is_ok());
        assert_eq!(pure(3.0).target_epsilon(), 3.0);
        assert!(pure(3.0).loss().is_pure() && !zcdp(3.0).loss().is_pure());
    }

    #[test]
    fn a_thousand_tenths_are_no_less_than_a_hundred() {
        let Ok(Spent::Pure(sum)) = total([pure(0.1); 1000]) else { panic!() };
        // 1000 times the float 0.1 is 100 and 5.6e-15.
        assert_eq!(sum.epsilon, 100f64.next_up());
        assert_eq!(total([zcdp(0.1); 10]).unwrap().rho(), 1f64.next_up());
        // What a left-over bit is under does not matter.
        assert_eq!(sum_up([1.0, 1e-300]), 1f64.next_up());
        assert_eq!(sum_up([1e-300, 1.0, 1e-300, 1e300]), 1e300f64.next_up());
        assert_eq!(zcdp(1.0).compose(zcdp(1e-300)), Ok(zcdp(1f64.next_up())));
        assert_eq!(pure(1.0).compose(pure(1e-100)), Ok(pure(1f64.next_up())));
    }

    proptest! {
        /// Beside integers: every term is one below 2^110, so its exact sum is one below 2^120. Rejects rounding to nearest,
        /// rounding up at each term, and a step up from a sum that is exact.
        #[test]
        fn sums_are_the_exact_ones_rounded_up(terms in prop::collection::vec((1u64..1 << 53, 0i32..57), 1..40)) {
            let exact: u128 = terms.iter().map(|&(digits, shift)| u128::from(digits) << shift).sum();
            let sum = sum_up(terms.iter().map(|&(digits, shift)| digits as f64 * power_of_two(shift)));
            prop_assert!(sum as u128 >= exact, "{sum} {exact}");
            prop_assert!((sum.next_down() as u128) < exact, "{sum} {exact}");
        }
    }

    #[test]
    fn composed_pure_budgets_add_their_epsilon() {
        assert_eq!(pure(0.25).compose(pure(0.5)), Ok(pure(0.75)));
        assert_eq!(name_of(pure(400.0).compose(pure(400.0))), "epsilon");
        assert_eq!(total([pure(0.5).loss(), pure(2.0).loss(), pure(0.5).loss()]), Ok(Spent::Pure(pure(3.0))));
        assert_eq!(total([pure(0.5)]), Ok(Spent::Pure(pure(0.5))));
        assert_eq!(name_of(total([pure(400.0).loss(), pure(400.0).loss()])), "epsilon");
        // One Gaussian budget among them, and the sum is Gaussian: squares of mu add up, none is forgotten.
        for order in [[0, 1, 2], [2, 0, 1], [1, 2, 0]] {
            let budgets = [pure(1.0).loss(), zcdp(0.5).loss(), pure(2.0).loss()];
            let sum = total(order.map(|i| budgets[i])).unwrap();
            assert!(!sum.loss().is_pure());
            let squares = pure(1.0).mu() * pure(1.0).mu() + 1.0 + pure(2.0).mu() * pure(2.0).mu();
            assert!((2.0 * sum.rho() - squares).abs() < 1e-14 * squares, "{sum:?}");
        }
    }

    #[test]
    fn split_of_a_pure_budget_gives_fractions_of_epsilon_and_never_more_than_the_whole() {
        assert_eq!(pure(2.0).split(&[0.25, 0.5]), Ok(vec![pure(0.5), pure(1.0)]));
        assert_eq!(pure(1.0).split(&[1.0]), Ok(vec![pure(1.0)]));
        for parts in [[0.1; 10].as_slice(), &[0.3, 0.7], &[1.0 / 3.0; 3], &[0.5, 0.5 + 5e-10], &[1e-3; 1000]] {
            for whole in [0.7, 1.0, 3.3, 700.0] {
                let shares = pure(whole).split(parts).unwrap();
                let sum: f64 = shares.iter().map(PureDp::target_epsilon).sum();
                assert!(sum <= whole && sum > whole * (1.0 - 1e-12), "{whole} {parts:?}");
                // What was split adds up again to no more than it was.
                let again = total(shares.iter().map(PureDp::loss)).unwrap();
                assert!(matches!(again, Spent::Pure(budget) if budget.epsilon <= whole));
            }
        }
        let refused: [&[f64]; 4] = [&[], &[0.5, 0.0], &[f64::NAN], &[0.5, 0.6]];
        for parts in refused {
            assert_eq!(name_of(pure(1.0).split(parts)), "parts");
        }
        assert_eq!(name_of(pure(1e-100).split(&[0.5])), "parts");
    }

    proptest! {
        #[test]
        fn delta_falls_with_epsilon_and_rises_with_rho(log in LOG10_RHO, z in -9.0..37.0_f64, step in 1e-3..1.0) {
            let (budget, more) = (zcdp(ten_to(log)), zcdp(ten_to(log) * (1.0 + step)));
            let epsilon = (budget.mu() * (z + 0.5 * budget.mu())).max(0.0);
            let delta = budget.delta(epsilon).unwrap();
            prop_assert!(budget.delta(epsilon + step * budget.mu()).unwrap() < delta || delta == 1.0);
            prop_assert!(more.delta(epsilon).unwrap() > delta || delta == 1.0);
        }

        #[test]
        fn epsilon_falls_with_delta(log in LOG10_RHO, log_delta in -300.0..-0.4, factor in 0.1..0.99) {
            let (budget, delta) = (zcdp(ten_to(log)), ten_to(log_delta));
            let (low, high) = (budget.epsilon(delta * factor).unwrap(), budget.epsilon(delta).unwrap());
            prop_assert!(low > high || (low == 0.0 && high == 0.0));
        }

        #[test]
        fn delta_inverts_epsilon(log in LOG10_RHO, log_delta in -300.0..-0.3) {
            let (budget, delta) = (zcdp(ten_to(log)), ten_to(log_delta));
            let back = budget.delta(budget.epsilon(delta).unwrap()).unwrap();
            prop_assert!(back <= delta, "{back:e} {delta:e}");
            let at_zero = budget.delta(0.0).unwrap();
            prop_assert!(near(back, delta.min(at_zero)), "{back:e} {delta:e} {at_zero:e}");
        }

        #[test]
        fn epsilon_inverts_delta(log in LOG10_RHO, z in -2.0..36.0_f64, floor in 1e-3..1.0) {
            let budget = zcdp(ten_to(log));
            // Below about mu / 1000 the curve is flat and its inverse loses digits.
            let epsilon = (budget.mu() * (z + 0.5 * budget.mu())).max(floor * budget.mu());
            let back = budget.epsilon(budget.delta(epsilon).unwrap()).unwrap();
            prop_assert!(near(back, epsilon), "{back:e} {epsilon:e}");
        }

        #[test]
        fn approximate_budget_is_met_and_used_up(epsilon in 0.0..100.0_f64, log_delta in -100.0..-0.01) {
            let budget = ApproxDp::new(epsilon, ten_to(log_delta)).unwrap();
            prop_assert!(budget.delta(epsilon).unwrap() <= budget.target_delta());
            let more = Gdp::new(budget.mu() * (1.0 + TOLERANCE)).unwrap();
            prop_assert!(more.delta(epsilon).unwrap() > budget.target_delta());
        }

        #[test]
        fn split_of_everything_hands_out_the_whole_and_never_more(
            rho in 1.0..2.0_f64,
            weights in proptest::collection::vec(1e-6..1.0_f64, 1..40),
        ) {
            let sum: f64 = weights.iter().sum();
            let parts: Vec<f64> = weights.iter().map(|weight| weight / sum).collect();
            let shares = zcdp(rho).split(&parts).unwrap();
            let (given, whole) = (exact_sum(&shares), exact_sum(&[zcdp(rho)]));
            prop_assert!(given <= whole && whole - given < whole >> 48);
            let float_sum: f64 = shares.iter().map(Zcdp::rho).sum();
            prop_assert!(float_sum <= rho);
            for (share, part) in shares.iter().zip(&parts) {
                prop_assert!(near(share.rho(), rho * part));
            }
        }
    }
}
