//! The law of a sketch's estimate under a profile: noise and collisions together.
//!
//! Beside a key, a row holds noise of variance `v` and every other key with probability `1/width` and a random sign, so its
//! error has the characteristic function `noise(t) prod_f (1 - (1 - cos(f t)) / width)^n(f)`, real and even, with `noise(t) =
//! exp(-v t^2 / 2)` or that of another [`ReleaseLaw`]. The rows are independent (they have hash functions of their own), the
//! estimate is their median, whose tail is that of a binomial.
//! The key that is asked for is one of the profile: that it cannot meet itself changes `n` by one and is left out.
//!
//! The characteristic function is inverted by the trapezoidal rule with step `2 pi / P`, which is exact but for what lies
//! beyond the period `P` and is folded back (Poisson's summation). One grid would have to resolve the noise and reach the
//! heaviest key, which may be 2^40 times larger. So the law is found octave by octave: for errors up to `X`
//!
//! - keys below 1/16 of the Gaussian part are taken into it (their excess kurtosis is below 1/256 then, their share of a
//!   quantile below 0.1 %), which is at least `X / 128` wide: a smoothing below the resolution that is asked for. Normal
//!   noise is in the Gaussian part and is more than that in the first octave, `X = 16 sd`. Other noise is inverted beside it,
//!   and the first octave is `X = 2 sd`: even a Laplace variable's density, with its peak, is smoothed by less than 2 % there;
//! - keys beyond `c X` (`8 c` sd of the noise at least) put the row beyond `X` unless they cancel: within each class with the probability that as many
//!   come with either sign, `mean over a of (1 - (1 - cos a) / width)^n`, between classes never. Two of a load of `l` keys
//!   do with probability about `l^2 / 2 / c`, so `c` is chosen from 2 to 16 such that this does not matter;
//! - the others are inverted, with `P = X + 8 sd + 4 f_max`: the reach of so many standard deviations and so many of the
//!   heaviest keys is passed with probability below 1e-8 (of few collisions and of many; noise with heavier tails than
//!   the normal adds what its quantile is beyond 8 sd), truncated where the Gaussian part or the noise is `e^-24`.
//!
//! Tails below 1e-7 of a row, which this does not resolve, are bounded by Chernoff's inequality instead. Cost: some
//! thousand points an octave times the classes within 15 octaves; milliseconds, for steep laws tens of them. Noise of three
//! Laplace variables or fewer has a peak that asks for ten times as many points in the first octaves.

use alloc::vec;
use alloc::vec::Vec;

use core::f64::consts::PI;

use crate::math::{cos, exp, ln, sin, sqrt};
use crate::profile::{Class, FrequencyProfile};
use crate::quantile::{median_tail, tail_of_one_row};
use crate::release_law::ReleaseLaw;

/// Tails of a row that the inversion resolves.
const RESOLVED: f64 = 1e-7;
/// What of the noise may lie beyond a period and be folded back.
const FOLDED: f64 = 1e-10;
/// The Gaussian part is at least this fraction of the errors looked at.
const SMOOTHING: f64 = 1.0 / 128.0;
/// Standard deviations of the Gaussian part, in the space of frequencies, up to where it is inverted: `e^-24.5`.
const CUT: f64 = 7.0;
/// Points an octave at which the tail is evaluated.
const POINTS: u32 = 128;

/// The error of one row: noise and the keys of a profile, in `width` buckets.
pub(crate) struct RowLaw<'a> {
    noise: ReleaseLaw,
    /// The variance of the noise.
    v: f64,
    width: f64,
    classes: &'a [Class],
}

impl<'a> RowLaw<'a> {
    pub(crate) fn new(noise: ReleaseLaw, width: usize, profile: &'a FrequencyProfile) -> Self {
        Self { noise, v: noise.variance(), width: width as f64, classes: profile.classes() }
    }

    /// The variance of a row.
    fn variance(&self) -> f64 {
        self.v + self.classes.iter().map(Class::square).sum::<f64>() / self.width
    }

    /// The standard deviation of the median of `depth` rows.
    pub(crate) fn median_std(&self, depth: usize) -> f64 {
        if depth == 1 {
            return sqrt(self.variance());
        }
        // E x^2 = integral of 2 x P(|median| > x).
        let points = self.tails(RESOLVED * 1e-2);
        let integrand = |&(x, tail): &(f64, f64)| 2.0 * x * median_tail(depth, tail);
        let parts = points.windows(2).map(|pair| {
            let [a, b] = pair else { return 0.0 };
            0.5 * (b.0 - a.0) * (integrand(a) + integrand(b))
        });
        sqrt(parts.sum())
    }

    /// The error that the median of `depth` rows is beyond with probability `tail`.
    pub(crate) fn median_quantile(&self, depth: usize, tail: f64) -> f64 {
        let q = tail_of_one_row(depth, tail);
        // Collisions are symmetric, and so never make the error of the noise alone smaller.
        let noise = self.noise.quantile(q);
        noise.max(if q < RESOLVED { self.chernoff(q) } else { self.inverted(q) })
    }

    /// The error that a row is beyond with probability `q`, by inversion.
    fn inverted(&self, q: f64) -> f64 {
        let points = self.tails(q);
        let after = points.partition_point(|&(_, tail)| tail > q);
        match (points.get(after.wrapping_sub(1)), points.get(after)) {
            (Some(&(x, tail)), Some(&(next, next_tail))) => x + (next - x) * (tail - q) / (tail - next_tail),
            _ => self.chernoff(q),
        }
    }

    /// A bound that a row is beyond with probability at most `q`: `min over t of (K(t) + ln(2 / q)) / t` with the cumulant
    /// function `K`. It falls, then rises.
    fn chernoff(&self, q: f64) -> f64 {
        let log = ln(2.0 / q);
        let bound = |scale: f64| {
            let t = exp(scale);
            let cumulants = self.classes.iter().map(|class| {
                let half = 0.5 * class.frequency * t;
                let sinh = exp(half) - exp(-half);
                class.keys * ln(1.0 + 0.5 * sinh * sinh / self.width)
            });
            (self.noise.cumulant(t) + cumulants.sum::<f64>() + log) / t
        };
        // Between where the whole variance is Gaussian (or not even the heaviest key is felt), and where noise alone is.
        let heaviest = self.classes.last().map_or(0.0, |class| class.frequency);
        let (mut low, mut high) = (
            (0.5 * ln(log / self.variance())).min(-ln(heaviest.max(f64::MIN_POSITIVE))) - 3.0,
            0.5 * ln(2.0 * log / self.v) + 1.0,
        );
        if let ReleaseLaw::Laplace { scale, .. } = self.noise {
            // There the cumulant is infinite, and far below it is next to nothing.
            (low, high) = (low.min(-ln(scale) - 3.0), high.min(-ln(scale)));
        }
        for _ in 0..80 {
            let (a, b) = (low + (high - low) / 3.0, high - (high - low) / 3.0);
            // Infinity on the right is more than infinity further right.
            if bound(a) <= bound(b) { high = b } else { low = a }
        }
        bound(0.5 * (low + high))
    }

    /// Pairs of an error and the probability that a row is beyond it, from (0, 1) until that is at most `until`.
    fn tails(&self, until: f64) -> Vec<(f64, f64)> {
        let classes = self.classes;
        // Variances of the classes below each; how many keys from each on are met, and the probability that in balance.
        let mut squares = vec![0.0; classes.len() + 1];
        for (index, class) in classes.iter().enumerate() {
            squares[index + 1] = squares[index] + class.square() / self.width;
        }
        let mut load = vec![0.0; classes.len() + 1];
        for (index, class) in classes.iter().enumerate().rev() {
            load[index] = load[index + 1] + class.keys / self.width;
        }
        let mut balanced = vec![1.0; classes.len() + 1];
        for (index, class) in classes.iter().enumerate().rev() {
            balanced[index] = balanced[index + 1] * self.balance(class);
        }
        let mut points = vec![(0.0, 1.0)];
        // What the noise adds to the Gaussian part, what it adds beside, and how far its tails are heavier.
        let noise_sd = sqrt(self.v);
        let (normal, other, beside, heavier) = match self.noise {
            ReleaseLaw::Normal { .. } => (self.v, 0.0, None, 0.0),
            law @ ReleaseLaw::Laplace { .. } => {
                (0.0, self.v, Some(law), (law.quantile(FOLDED) - 8.0 * noise_sd).max(0.0))
            }
        };
        let (mut from, mut to) = (0.0, noise_sd * if beside.is_some() { 2.0 } else { 16.0 });
        // 2^63 is the largest frequency, 2^-60 the least noise of any use.
        for _ in 0..200 {
            let least = (to * SMOOTHING) * (to * SMOOTHING);
            let light = sqrt(self.v.max(least)) / 16.0;
            let light = classes.partition_point(|class| class.frequency <= light);
            let felt = to.max(8.0 * noise_sd);
            let beyond = |factor: f64| classes.partition_point(|class| class.frequency <= factor * felt).max(light);
            let negligible = |&factor: &f64| load[beyond(factor)] * load[beyond(factor)] / (2.0 * factor) < 5e-4;
            let heavy = beyond([2.0, 4.0, 8.0].into_iter().find(negligible).unwrap_or(16.0));
            let gaussian = (normal + squares[light]).max(least);
            let sd = sqrt(gaussian + other + (squares[heavy] - squares[light]));
            let near = &classes[light..heavy];
            let reach = 8.0 * sd + 4.0 * near.last().map_or(0.0, |class| class.frequency) + heavier;
            // Else the law is flat up to here: a line will do.
            let spread = gaussian + other + (squares[beyond(1.0)] - squares[light]);
            if load[beyond(1.0)] < 5.0 && spread < 16.0 * to * to {
                let step = 2.0 * PI / (to + reach).max(2.0 * to);
                let octave = Octave::new(gaussian, beside, near, self.width, step);
                let count = if from == 0.0 && beside.is_none() { 4 * POINTS } else { POINTS };
                for i in 1..=count {
                    let x = from + (to - from) * f64::from(i) / f64::from(count);
                    let least = points.last().map_or(1.0, |&(_, tail)| tail);
                    // Clamped against rounding, and where one octave's smoothing meets the next one's.
                    points.push((x, (1.0 - balanced[heavy] * octave.within(x)).clamp(0.0, least)));
                }
                from = to;
                let reached = points.last().is_some_and(|&(_, tail)| tail <= until);
                if reached || heavy == classes.len() && to >= reach {
                    break;
                }
            }
            to *= 2.0;
        }
        points
    }

    /// The probability that a class adds nothing to a row: as many keys come with either sign. The mean of a polynomial in
    /// `cos a`, exact from as many points on as more than `net` keys are met net.
    fn balance(&self, class: &Class) -> f64 {
        let met = class.keys / self.width;
        if met > 1e5 {
            return 1.0 / sqrt(2.0 * PI * met);
        }
        let points = 16 + (8.0 * sqrt(met)) as u32;
        let value = |i: u32| {
            signed_power(1.0 - (1.0 - cos(2.0 * PI * f64::from(i) / f64::from(points))) / self.width, class.keys)
        };
        (0..points).map(value).sum::<f64>() / f64::from(points)
    }
}

impl Class {
    /// The share of the second moment.
    fn square(&self) -> f64 {
        self.keys * self.frequency * self.frequency
    }
}

/// `base^keys` for a base in [-1, 1].
fn signed_power(base: f64, keys: f64) -> f64 {
    let magnitude = exp(keys * ln(base.abs().max(f64::MIN_POSITIVE)));
    if base < 0.0 && keys % 2.0 == 1.0 { -magnitude } else { magnitude }
}

/// The law of noise and nearby keys, as the terms of a sine series.
struct Octave {
    step: f64,
    /// The characteristic function at `k * step` over `k`, from `k = 1` on.
    terms: Vec<f64>,
}

impl Octave {
    fn new(gaussian: f64, beside: Option<ReleaseLaw>, classes: &[Class], width: f64, step: f64) -> Self {
        let cut = (CUT / sqrt(gaussian)).min(beside.map_or(f64::INFINITY, |noise| noise.vanishes(0.5 * CUT * CUT)));
        let count = (cut / step) as usize + 1;
        let mut logs: Vec<f64> = (1..=count).map(|k| -0.5 * gaussian * (k as f64 * step) * (k as f64 * step)).collect();
        if let Some(noise) = beside {
            logs.iter_mut().zip(1u32..).for_each(|(log, k)| *log += noise.log_characteristic(f64::from(k) * step));
        }
        let mut negative = vec![false; if width == 1.0 { count } else { 0 }];
        for class in classes {
            let mut angle = Rotation::new(class.frequency * step);
            for (index, log) in logs.iter_mut().enumerate() {
                angle.turn();
                let met = (1.0 - angle.cos) / width;
                if width >= 128.0 {
                    // ln(1 - met), met at most 1/64: right to 3e-12.
                    let series = 1.0 + met * (0.5 + met * (1.0 / 3.0 + met * (0.25 + met * 0.2)));
                    *log -= class.keys * met * series;
                } else {
                    *log += class.keys * ln((1.0 - met).abs().max(f64::MIN_POSITIVE));
                    if width == 1.0 && met > 1.0 && class.keys % 2.0 == 1.0 {
                        negative[index] ^= true;
                    }
                }
            }
        }
        let sign = |index: usize| if negative.get(index) == Some(&true) { -1.0 } else { 1.0 };
        let terms = logs.iter().enumerate().map(|(index, &log)| sign(index) * exp(log) / (index + 1) as f64).collect();
        Self { step, terms }
    }

    /// The probability of an error within `x`.
    fn within(&self, x: f64) -> f64 {
        let mut angle = Rotation::new(self.step * x);
        let mut sum = 0.5 * self.step * x;
        for term in &self.terms {
            angle.turn();
            sum += term * angle.sin;
        }
        sum * 2.0 / PI
    }
}

/// Cosine and sine of multiples of an angle, four products each; after 10^4 of them they are right to 1e-12.
struct Rotation {
    cos: f64,
    sin: f64,
    by: (f64, f64),
}

impl Rotation {
    fn new(angle: f64) -> Self {
        Self { cos: 1.0, sin: 0.0, by: (cos(angle), sin(angle)) }
    }

    #[inline]
    fn turn(&mut self) {
        let (cos, sin) = (self.cos, self.sin);
        self.cos = cos * self.by.0 - sin * self.by.1;
        self.sin = sin * self.by.0 + cos * self.by.1;
    }
}

#[cfg(test)]
mod tests;
