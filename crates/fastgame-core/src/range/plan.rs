//! What a range counter will cost and how far off its counts will be, before any data. Everything here is public.
//!
//! The noise variance of a count is `v` times a sum over components of 1 (dense) or `m` (sketched; the variance of the median
//! of `depth` values with the law of the noise and variance 1, `m(depth)` for normal noise) times the product
//! over axes of the sums of squared weights. Intervals of different axes are chosen independently here, so averages over boxes
//! are products of averages over intervals. Cost: `O(components)` a figure, and up to 4096 intervals an axis.

use alloc::vec::Vec;

use super::boxes::{Estimator, Parts};
use super::counter::Interval;
use super::layout::Layout;
use super::levels::Axis;
use super::{RangeBuilder, RangeShape};
use crate::calibration::Calibration;
use crate::error::{Error, Result};
use crate::math::sqrt;
use crate::quantile::tail_of_each;
use crate::release_law::{Medians, ReleaseLaw};
use crate::time::planned_step;

/// What the parameters of a range counter amount to.
#[derive(Clone, Debug)]
pub struct RangePlan {
    shape: RangeShape,
    layout: Layout,
    calibration: Calibration,
    lattice_step: f64,
    horizon: u64,
    /// Of a cell at the step that is planned for.
    noise: ReleaseLaw,
    medians: Medians,
}

impl RangeBuilder {
    /// Checks the parameters and says what they amount to, without building anything.
    ///
    /// # Errors
    /// As [`RangeBuilder::build`].
    pub fn plan(&self) -> Result<RangePlan> {
        let (layout, vector) = self.vector()?;
        let checked = vector.check()?;
        let (calibration, lattice_step) = (checked.calibration, checked.lattice.step());
        let horizon = checked.horizon.steps();
        let noise = calibration.release_law(horizon);
        let medians = Medians::new(&noise, layout.depth);
        Ok(RangePlan { shape: self.shape.clone(), layout, calibration, lattice_step, horizon, noise, medians })
    }
}

/// The cost and the error of a count: of one box, or on average over boxes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BoxError {
    cells: f64,
    /// Sums of squared weights, in dense and in sketched components.
    dense: f64,
    sketched: f64,
    /// The variance of a cell, the law of its noise, and the variances of medians of rows of variance 1.
    variance: f64,
    noise: ReleaseLaw,
    medians: Medians,
    width: f64,
}

impl BoxError {
    /// How many cells are read; a cell that two rectangles share in a sketch counts twice.
    pub fn cells_read(&self) -> f64 {
        self.cells
    }

    /// The variance of the noise over that of one cell.
    pub fn noise_factor(&self) -> f64 {
        self.dense + self.medians.noise * self.sketched
    }

    /// The standard deviation of the noise (for an average over boxes: the root of the mean variance). Exact where no
    /// sketched component is read; else without what rectangles that collide in a sketch do, and exact but for rectangles
    /// of one box that share a cell.
    pub fn noise_std(&self) -> f64 {
        sqrt(self.variance * self.noise_factor())
    }

    /// The standard deviation with collisions, if every sketched component has this second moment, the sum of squared
    /// counts of its rectangles: from `n` (`n` points in rectangles of their own) to `n^2` (all in one).
    pub fn std(&self, second_moment: f64) -> f64 {
        let Medians { normal, .. } = self.medians;
        // As if all rows were normal, and what they are less because the noise is not.
        let rows = self.variance * (self.dense + normal * self.sketched);
        let collisions = self.sketched * second_moment / self.width;
        let less = self.medians.below_normal(self.variance * self.sketched, collisions);
        sqrt(rows + normal * self.sketched * second_moment / self.width - less)
    }

    /// The error that a count stays within with probability `confidence`, `1 - beta`: the normal law's quantile times the standard
    /// deviation, exact for normal noise of dense components. Where the noise is not normal, the larger one of that quantile and
    /// of a single cell's (of as many standard deviations): sums of cells lie between the two, up to 1 % where they cross.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless `0 < confidence < 1`.
    pub fn error(&self, confidence: f64, second_moment: f64) -> Result<f64> {
        self.error_of_all(confidence, 1, second_moment)
    }

    /// The error that `releases` such counts all stay within with probability `confidence` (or more: the union bound).
    ///
    /// # Errors
    /// [`Error::Parameter`] unless `0 < confidence < 1` and `releases >= 1`.
    pub fn error_of_all(&self, confidence: f64, releases: u64, second_moment: f64) -> Result<f64> {
        let tail = tail_of_each(confidence, releases)?;
        Ok(self.std(second_moment) * self.noise.standard_quantile_of_sums(tail))
    }
}

/// Of one axis: for each level the sum of squared weights and the number of nodes, averaged over intervals.
struct Profile(Vec<(f64, f64)>);

impl Profile {
    fn new(axis: &Axis, estimator: Estimator, intervals: impl Iterator<Item = Interval>) -> Self {
        let mut sums: Vec<(f64, f64)> = (0..axis.levels).map(|_| (0.0, 0.0)).collect();
        let (mut parts, mut count) = (Parts::default(), 0.0);
        for (lo, hi) in intervals {
            parts.set(axis, lo, hi, estimator);
            for (level, (squares, nodes)) in (0..).zip(&mut sums) {
                *squares += parts.squares(level);
                *nodes += parts.level(level).len() as f64;
            }
            count += 1.0;
        }
        sums.iter_mut().for_each(|(squares, nodes)| (*squares, *nodes) = (*squares / count, *nodes / count));
        Self(sums)
    }
}

/// Up to this many positions are all taken; of more, as many that are spread evenly.
const POSITIONS: u64 = 4096;
/// Axes up to this size have all their intervals taken.
const SMALL: u64 = 64;

/// The `i`-th of evenly spread numbers below `n`: multiples of a fraction of 2^64, irrational for all that matters here, so
/// that no power of two is favoured.
fn spread(i: u64, fraction: u64, n: u64) -> u64 {
    // Half a step on, so that the first is not 0.
    let place = fraction.wrapping_mul(i).wrapping_add(fraction / 2);
    ((u128::from(place) * u128::from(n)) >> 64) as u64
}

/// 2^64 over the golden ratio.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
/// 2^64 over the plastic number and over its square: pairs are spread evenly over the square (Roberts, 2018).
const PLASTIC: [u64; 2] = [0xc13f_a9a9_02a6_328f, 0x91e1_0da5_c79e_7b1d];

impl RangePlan {
    /// Grid, structure and estimator.
    pub fn shape(&self) -> &RangeShape {
        &self.shape
    }

    /// The noise scale and what it was made from.
    pub fn calibration(&self) -> &Calibration {
        &self.calibration
    }

    /// The same plan for counts at another step than the last, where the noise is largest.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless the step is from 1 to the horizon.
    pub fn at(&self, step: u64) -> Result<Self> {
        let noise = self.calibration.release_law(planned_step(step, self.horizon)?);
        // The shape of the law, and with it that of medians, is the same at every step.
        Ok(Self { noise, ..self.clone() })
    }

    /// The same plan with other noise.
    #[cfg(test)]
    pub(super) fn with_noise(&self, noise: ReleaseLaw) -> Self {
        Self { noise, medians: Medians::new(&noise, self.layout.depth), ..self.clone() }
    }

    /// The standard deviation of the noise of a cell, at the last step unless the plan is of another.
    pub fn noise_std(&self) -> f64 {
        self.noise.std()
    }

    /// How many components there are, and how many of them are dense.
    pub fn components(&self) -> (usize, usize) {
        (self.layout.components.len(), self.layout.dense())
    }

    /// How many cells there are.
    pub fn cells(&self) -> usize {
        self.layout.cells
    }

    /// How many cells a point moves: the squared sensitivity to a weight of one.
    pub fn cells_moved(&self) -> u32 {
        self.layout.moved()
    }

    /// Memory in bytes of the cells before anything is read: 8 each. What is beside them, and what reads add, is in
    /// [`RangeBuilder::vector_plan`].
    pub fn memory_at_start(&self) -> u64 {
        (self.layout.cells as u64).saturating_mul(8)
    }

    fn combine(&self, profiles: &[Profile]) -> BoxError {
        let step = self.lattice_step;
        let mut error = BoxError {
            cells: 0.0,
            dense: 0.0,
            sketched: 0.0,
            variance: self.noise.variance() + step * step / 12.0,
            noise: self.noise,
            medians: self.medians,
            width: self.shape.width as f64,
        };
        for component in &self.layout.components {
            let (mut squares, mut nodes) = (1.0, 1.0);
            for (profile, &level) in profiles.iter().zip(&component.levels) {
                squares *= profile.0[level as usize].0;
                nodes *= profile.0[level as usize].1;
            }
            error.cells += nodes * self.layout.rows(component) as f64;
            *(if component.is_dense() { &mut error.dense } else { &mut error.sketched }) += squares;
        }
        error
    }

    /// Of one box, given by one half-open interval for each axis.
    ///
    /// # Errors
    /// [`Error::Shape`] or [`Error::Box`] for a box that the grid does not have.
    pub fn of_box(&self, intervals: &[Interval]) -> Result<BoxError> {
        let axes = &self.layout.axes;
        if intervals.len() != axes.len() {
            return Err(Error::Shape { what: "a box must have one interval for each axis" });
        }
        for (axis, (&(lo, hi), &Axis { size, .. })) in intervals.iter().zip(axes).enumerate() {
            if lo > hi || hi > size {
                return Err(Error::Box { position: 0, axis, lo, hi, size });
            }
        }
        // As is counted: nothing is read for an empty box.
        let empty = intervals.iter().any(|(lo, hi)| lo == hi);
        let intervals = intervals.iter().map(|&(lo, hi)| if empty { (0, 0) } else { (lo, hi) });
        let profiles = axes.iter().zip(intervals);
        let profile = |(axis, interval)| Profile::new(axis, self.shape.estimator, core::iter::once(interval));
        Ok(self.combine(&profiles.map(profile).collect::<Vec<_>>()))
    }

    /// On average over all positions of boxes with these side lengths.
    ///
    /// # Errors
    /// [`Error::Shape`] for the wrong number of lengths, [`Error::Parameter`] for one that is 0 or longer than its axis.
    pub fn of_sides(&self, sides: &[u64]) -> Result<BoxError> {
        let axes = &self.layout.axes;
        if sides.len() != axes.len() {
            return Err(Error::Shape { what: "a box must have one side length for each axis" });
        }
        if let Some((_, &side)) = axes.iter().zip(sides).find(|(axis, side)| **side == 0 || **side > axis.size) {
            let allowed = "from 1 to the size of its axis";
            return Err(Error::Parameter { name: "side", given: side.into(), allowed });
        }
        let profile = |(axis, &side): (&Axis, &u64)| {
            let positions = axis.size - side + 1;
            let sample = positions.min(POSITIONS);
            let start = |i| if positions <= POSITIONS { i } else { spread(i, GOLDEN, positions) };
            let intervals = (0..sample).map(|i| (start(i), start(i) + side));
            Profile::new(axis, self.shape.estimator, intervals)
        };
        Ok(self.combine(&axes.iter().zip(sides).map(profile).collect::<Vec<_>>()))
    }

    /// On average over all boxes that are not empty, each as likely: both ends of each side are.
    pub fn of_random_boxes(&self) -> BoxError {
        let profile = |axis: &Axis| {
            let (size, estimator) = (axis.size, self.shape.estimator);
            if size <= SMALL {
                let intervals = (0..size).flat_map(|lo| (lo + 1..=size).map(move |hi| (lo, hi)));
                return Profile::new(axis, estimator, intervals);
            }
            // Two different ends out of 0..=size.
            let intervals = (0..POSITIONS).map(|i| {
                let (a, b) = (spread(i, PLASTIC[0], size + 1), spread(i, PLASTIC[1], size));
                let b = if b < a { b } else { b + 1 };
                (a.min(b), a.max(b))
            });
            Profile::new(axis, estimator, intervals)
        };
        self.combine(&self.layout.axes.iter().map(profile).collect::<Vec<_>>())
    }

    /// Whether a count of 0 for every box would do as well: with at most `points` points none is off by more than that, and if
    /// the stated error is no smaller, nothing is learned from the structure (Lemma 4.2 and appendix D.2). Use a coarser
    /// grid, fewer axes or a larger budget then.
    ///
    /// # Errors
    /// As [`BoxError::error`].
    pub fn zero_would_do(&self, of: &BoxError, confidence: f64, points: u64) -> Result<bool> {
        let points = points as f64;
        // Even if no two points share a rectangle.
        Ok(of.error(confidence, points)? >= points)
    }

    /// The width at which collisions in a sketch of `points` points are no more than its noise: the least power of two with
    /// `points / (2 width)` at most the noise of a cell (Lemma 4.2). Another width is another plan: more components may
    /// be dense.
    pub fn width_for(&self, points: u64) -> usize {
        let least = points as f64 / (2.0 * self.noise_std());
        let mut width = 1;
        while (width as f64) < least && width < crate::sketch::MAX_WIDTH {
            width *= 2;
        }
        width
    }
}
