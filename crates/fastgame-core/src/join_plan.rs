//! How far off an estimate of a join size will be, before any data: the three terms of Lemma 5.2 (paper, section 5.1) with
//! their constants, the shape to choose, and whether the budget is enough.
//!
//! The terms are those of the exact variance of a row (`join.rs`), `A / width + C + width v^2`: keys that collide, keys
//! against noise, noise against noise. The first falls with the width and the last rises; the middle one stays.

use crate::error::{Error, Result};
use crate::join::{JoinBuilder, MIN_JOIN_WIDTH, check_confidence, row_variance};
use crate::math::sqrt;
use crate::plan::Plan;
use crate::quantile::{median_variance, tail_of_each, tail_of_one_row_on_any_side};
use crate::sketch::{MAX_DEPTH, MAX_WIDTH};

/// The least depth that is suggested: one row has neither a median nor a spread.
const LEAST_DEPTH: usize = 3;

/// What is assumed about two relations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JoinProfile {
    moments: [f64; 2],
    join_size: f64,
}

impl JoinProfile {
    /// Relations with these second moments (sums of squared totals of keys) and a join of about this size.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a moment that is negative or more than `2^160`, and for a join size beyond the root of their
    /// product, which no two relations have.
    pub fn new(left_moment: f64, right_moment: f64, join_size: f64) -> Result<Self> {
        // Far above what 2^63 in each of 2^30 cells amounts to, and its square is a float.
        const LARGEST: f64 = (1u128 << 80) as f64 * (1u128 << 80) as f64;
        for (name, given) in [("left_moment", left_moment), ("right_moment", right_moment)] {
            if !(0.0..=LARGEST).contains(&given) {
                return Err(Error::Parameter { name, given: given.into(), allowed: "from 0 to 2^160" });
            }
        }
        // A little room for how the caller has rounded.
        let most = sqrt(left_moment) * sqrt(right_moment) * (1.0 + 1e-9);
        if join_size.is_nan() || join_size.abs() > most {
            let allowed = "at most the square root of the product of both second moments";
            return Err(Error::Parameter { name: "join_size", given: join_size.into(), allowed });
        }
        Ok(Self { moments: [left_moment, right_moment], join_size })
    }

    /// Relations of these total weights in which all of `keys` keys are equally frequent. No relations with these
    /// totals and so many keys have smaller second moments: the errors are the least to expect.
    ///
    /// # Errors
    /// [`Error::Parameter`] for no keys, and for a total that is negative or more than `2^80`.
    pub fn uniform(left_total: f64, right_total: f64, keys: u64) -> Result<Self> {
        if keys == 0 {
            return Err(Error::Parameter { name: "keys", given: keys.into(), allowed: "at least 1" });
        }
        const LARGEST: f64 = (1u128 << 80) as f64;
        for (name, given) in [("left_total", left_total), ("right_total", right_total)] {
            if !(0.0..=LARGEST).contains(&given) {
                return Err(Error::Parameter { name, given: given.into(), allowed: "from 0 to 2^80" });
            }
        }
        let keys = keys as f64;
        Self::new(left_total * left_total / keys, right_total * right_total / keys, left_total * right_total / keys)
    }

    /// The second moments of the left and the right relation.
    pub fn moments(&self) -> [f64; 2] {
        self.moments
    }

    /// The size of the join.
    pub fn join_size(&self) -> f64 {
        self.join_size
    }
}

/// The three terms of the error of an estimate, as standard deviations of the median of the rows; their squares add up.
/// They are those of Lemma 5.2, with its constants.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JoinTerms {
    /// Keys that share a bucket with other keys; falls with the width.
    pub sketch: f64,
    /// Keys against the noise of the other side; does not depend on the width.
    pub cross: f64,
    /// Noise against noise; rises with the width.
    pub noise: f64,
}

/// What the parameters of a join amount to for relations of a profile. Everything here is public: it is computed without
/// data.
#[derive(Clone, Debug)]
pub struct JoinPlan {
    builder: JoinBuilder,
    profile: JoinProfile,
    vector: Plan,
    /// Of a released cell at the step that is planned for.
    cell_variance: f64,
    step: u64,
}

impl JoinBuilder {
    /// Checks the parameters and says what they amount to for relations of a profile.
    ///
    /// # Errors
    /// As [`JoinBuilder::build`].
    pub fn plan(&self, profile: JoinProfile) -> Result<JoinPlan> {
        let base = self.vector()?;
        let (vector, step) = (base.plan_of_sketch(&self.shape())?, base.horizon);
        JoinPlan { builder: self.clone(), profile, vector, cell_variance: 0.0, step }.at(step)
    }
}

impl JoinPlan {
    /// The vector underneath: noise of a cell, calibration, memory. All of its cells are read together.
    pub fn vector(&self) -> &Plan {
        &self.vector
    }

    /// The same plan for an estimate at another step than the last, where the noise is largest; the profile is that of the
    /// relations until then.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless the step is from 1 to the horizon.
    pub fn at(&self, step: u64) -> Result<Self> {
        let (noise, rounding) = (self.vector.law_at(step)?, self.vector.lattice_step());
        Ok(Self { cell_variance: noise.variance() + rounding * rounding / 12.0, step, ..self.clone() })
    }

    /// The parameters that were planned for.
    pub fn parameters(&self) -> &JoinBuilder {
        &self.builder
    }

    /// How many cells an estimate reads: all of them, `2 * depth * width`.
    pub fn cells_read(&self) -> u64 {
        2 * self.builder.shape().cells() as u64
    }

    /// The variance of a row of this width, an upper bound.
    fn row_variance(&self, width: usize) -> f64 {
        row_variance(width as f64, self.cell_variance, self.profile.moments, self.profile.join_size).iter().sum()
    }

    /// The terms of the error, as standard deviations.
    pub fn terms(&self) -> JoinTerms {
        let shape = self.builder.shape();
        let parts = row_variance(shape.width as f64, self.cell_variance, self.profile.moments, self.profile.join_size);
        let [sketch, cross, noise] = parts.map(|part| sqrt(median_variance(shape.depth) * part));
        JoinTerms { sketch, cross, noise }
    }

    /// The standard deviation of an estimate: the terms together.
    pub fn std(&self) -> f64 {
        let shape = self.builder.shape();
        sqrt(median_variance(shape.depth) * self.row_variance(shape.width))
    }

    /// The error that an estimate stays within with probability `confidence`, whatever the law of the rows; as half the
    /// width of [`JoinSize::estimate_with_interval`](crate::JoinSize::estimate_with_interval).
    ///
    /// # Errors
    /// [`Error::Parameter`] unless `0 < confidence < 1`.
    pub fn error(&self, confidence: f64) -> Result<f64> {
        self.error_of_all(confidence, 1)
    }

    /// The error that `releases` estimates all stay within with probability `confidence` (or more: the union bound).
    ///
    /// # Errors
    /// [`Error::Parameter`] unless `0 < confidence < 1` and `releases >= 1`.
    pub fn error_of_all(&self, confidence: f64, releases: u64) -> Result<f64> {
        let tail = tail_of_each(confidence, releases)?;
        let shape = self.builder.shape();
        let tail = tail_of_one_row_on_any_side(shape.depth, tail);
        Ok(sqrt(self.row_variance(shape.width) / tail))
    }

    /// The standard deviation as a part of the size of the join; infinite for an empty one.
    pub fn relative_std(&self) -> f64 {
        let size = self.profile.join_size.abs();
        if size > 0.0 { self.std() / size } else { f64::INFINITY }
    }

    /// Whether an estimate will tell the join from an empty one: its size is two standard deviations or more. If not even
    /// the suggested shape says so, the budget is too small for such relations.
    pub fn is_useful(&self) -> bool {
        self.relative_std() <= 0.5
    }

    /// The width, not rounded, at which colliding keys and noise against noise add the same error, for the depth of this
    /// plan: `sqrt(F2x F2y + J^2) / v`. (The paper balances the L1 form of its bound; this is the L2 form.)
    pub fn balanced_width(&self) -> f64 {
        let v = self.cell_variance;
        let [collisions, _, _] = row_variance(1.0, v, self.profile.moments, self.profile.join_size);
        sqrt(collisions) / v
    }

    /// The smallest width whose standard deviation is within 5 % of the least, for the depth of this plan. Beside large
    /// keys the width hardly matters, and cells cost time and memory.
    pub fn suggested_width(&self) -> usize {
        self.suggested_width_of(MAX_WIDTH)
    }

    /// The same among widths up to one.
    fn suggested_width_of(&self, most: usize) -> usize {
        let widths = || (MIN_JOIN_WIDTH.ilog2()..=most.ilog2()).map(|bits| 1usize << bits);
        let least = widths().map(|width| self.row_variance(width)).fold(f64::INFINITY, f64::min);
        widths().find(|&width| self.row_variance(width) <= least * (1.05 * 1.05)).unwrap_or(most)
    }

    /// The plan of depth and width with the least [`JoinPlan::error`] at this confidence, each depth with its suggested
    /// width, of those with at most `max_cells` cells, `2 * depth * width`. Twice the depth is twice the variance of a cell, so a depth is worth it for a high confidence only. Depth 1 is
    /// left out: it has neither a median nor a spread of rows.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless `0 < confidence < 1`, and for `max_cells` below 192; as [`JoinBuilder::build`].
    pub fn suggest(&self, confidence: f64, max_cells: u64) -> Result<Self> {
        check_confidence(confidence)?;
        if max_cells < 2 * (LEAST_DEPTH * MIN_JOIN_WIDTH) as u64 {
            return Err(Error::Parameter { name: "max_cells", given: max_cells.into(), allowed: "at least 192" });
        }
        let mut best: Option<(f64, Self)> = None;
        for depth in (LEAST_DEPTH..=MAX_DEPTH).step_by(2) {
            let widest = (max_cells / (2 * depth as u64)).min(MAX_WIDTH as u64) as usize;
            if widest < MIN_JOIN_WIDTH {
                break;
            }
            // A depth may ask for more noise than a cell can hold, where another one does not.
            let Ok(of_depth) = self.builder.clone().depth(depth).plan(self.profile) else { continue };
            let of_depth = of_depth.at(self.step)?;
            let width = of_depth.suggested_width_of(widest);
            let plan = Self { builder: of_depth.builder.clone().width(width), ..of_depth };
            let error = plan.error(confidence)?;
            if best.as_ref().is_none_or(|(least, _)| error < *least) {
                best = Some((error, plan));
            }
        }
        let (_, plan) = best.unwrap_or((0.0, self.clone()));
        // Again, for the memory of this width.
        plan.builder.plan(self.profile)?.at(self.step)
    }
}

#[cfg(test)]
mod tests;
