//! The size of a join of two relations under continual observation: `J = <x, y>`, the sum over all keys of how often a
//! key stands on the left times how often it stands on the right.
//!
//! Paper, section 5 (Lemma 5.2; Alon, Gibbons, Matias and Szegedy, 1999, without noise). Two CountSketches with the same
//! hash functions and noise of their own; row `i` gives `Z_i = <X~_i, Y~_i>`, the inner product of the released rows, and
//! the estimate is the median over the rows. With `v` the variance of a released cell and `F2` the sum of squared totals,
//!
//! ```text
//! Var(Z_i) = (F2x F2y + J^2 - 2 sum x^2 y^2) / width  +  v (F2x + F2y)  +  width v^2
//! ```
//!
//! Both sketches are one vector of `2 * depth * width` cells. An update touches one side, so its squared L2 norm is `depth *
//! max_weight^2`; `contributions = m` counts both sides together. With `horizon = 1` it is Lemma 5.2's estimator.
//!
//! **An estimate reads all cells, at the public step.** Theorem 5.6 of the paper reads a cell again when an update touches
//! it. Which cells have fresh noise then depends on the data, and the estimates show it: that rule is not private
//! (`docs/guarantees.md`, section 11; `tests/join_attack.rs`). There is no way to it from here. Cost: an update takes `depth`
//! additions, an estimate `2 * depth * width` reads in one sweep.

use core::fmt;

use alloc::vec::Vec;

use rand_core::TryCryptoRng;

use crate::calibration::{Mechanism, Unit};
use crate::error::{Error, Result};
use crate::hash::{HashFamily, Key, Keyer};
use crate::math::{inner_product, sqrt};
use crate::privacy::Loss;
use crate::quantile::{median_variance, student_quantile, tail_of_one_row_on_any_side};
use crate::sketch::{MAX_DEPTH, RawSketch, SketchBuilder, SketchShape, Weights, median, merge_cells, update_cells};
use crate::vector::{Builder, ContinualVector, Invalid, OnExcess};

/// The smallest width of a join. Lemma 5.2 asks for `8 eta^(-2/(depth + 1))` buckets or more to fail with probability `eta`;
/// with fewer than these, an estimate says little and its error bars do not hold.
pub const MIN_JOIN_WIDTH: usize = 32;

/// A relation of the join.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The first relation.
    Left,
    /// The second relation.
    Right,
}

/// Collects the parameters of a [`JoinSize`].
#[derive(Clone, Debug)]
#[must_use]
pub struct JoinBuilder {
    /// Both sides are like this.
    sketch: SketchBuilder,
}

impl JoinBuilder {
    /// A join whose sides have this shape, with the horizon, budget and policies of `base`; cells and bound of `base` are
    /// not used.
    pub fn new(base: Builder, shape: SketchShape) -> Self {
        Self { sketch: SketchBuilder::new(base, shape) }
    }

    /// Buckets in a row, a power of two from 32 to `2^30`.
    pub fn width(mut self, width: usize) -> Self {
        self.sketch = self.sketch.width(width);
        self
    }

    /// Rows, an odd number up to 63.
    pub fn depth(mut self, depth: usize) -> Self {
        self.sketch = self.sketch.depth(depth);
        self
    }

    /// The largest absolute weight of one update, `1..=2^31`; 1 by default.
    pub fn max_weight(mut self, max_weight: u32) -> Self {
        self.sketch = self.sketch.max_weight(max_weight);
        self
    }

    /// The seed of the hash functions, the same on both sides; 0 by default. Choose it at random, or keys may have been
    /// made to collide.
    pub fn hash_seed(mut self, seed: u64) -> Self {
        self.sketch = self.sketch.hash_seed(seed);
        self
    }

    /// How noise is correlated over time.
    pub fn mechanism(mut self, mechanism: Mechanism) -> Self {
        self.sketch = self.sketch.mechanism(mechanism);
        self
    }

    /// What is protected.
    pub fn unit(mut self, unit: Unit) -> Self {
        self.sketch = self.sketch.unit(unit);
        self
    }

    /// How many units one person may contribute, on both sides together.
    pub fn contributions(mut self, m: u32) -> Self {
        self.sketch = self.sketch.contributions(m);
        self
    }

    /// What happens to weights over the bound.
    pub fn on_excess(mut self, on_excess: OnExcess) -> Self {
        self.sketch = self.sketch.on_excess(on_excess);
        self
    }

    /// What happens to invalid elements.
    pub fn invalid(mut self, invalid: Invalid) -> Self {
        self.sketch = self.sketch.invalid(invalid);
        self
    }

    /// Width, depth, bound and hash seed of either side.
    pub fn shape(&self) -> SketchShape {
        self.sketch.shape()
    }

    /// What all answers together will cost.
    pub fn loss(&self) -> Loss {
        self.sketch.loss()
    }

    /// The parameters of the vector underneath: the rows of the left side, then those of the right.
    pub(crate) fn vector(&self) -> Result<Builder> {
        let width = self.shape().width;
        if width < MIN_JOIN_WIDTH {
            let allowed = "a power of two from 32 to 2^30 (in fewer buckets a join cannot be told)";
            return Err(Error::Parameter { name: "width", given: width.into(), allowed });
        }
        self.sketch.vector_of(2)
    }

    /// As [`Builder::insecure_key`]. The sides do not share noise under it.
    ///
    /// # Errors
    /// As [`JoinBuilder::build`].
    pub fn insecure_key(&self, structure: &str, seed: u64) -> Result<[u8; 32]> {
        Ok(self.vector()?.insecure_key_with(structure, seed, self.shape().hash_seed))
    }

    /// Builds the join, both relations empty, the clock at step 1.
    ///
    /// # Errors
    /// [`Error::Parameter`] as [`Builder::build`], and for an even depth or a width that is no power of two from 32.
    pub fn build(&self) -> Result<JoinSize> {
        self.assemble(self.vector()?.build()?)
    }

    #[cfg(test)]
    pub(crate) fn build_exact(&self) -> Result<JoinSize> {
        self.assemble(self.vector()?.build_exact()?)
    }

    fn assemble(&self, vector: ContinualVector) -> Result<JoinSize> {
        Ok(JoinSize { vector, hash: self.shape().hash(), shape: self.shape() })
    }
}

/// The size of a join of two relations that follow updates, at any time step.
///
/// ```
/// use chacha20::{ChaCha12Rng, rand_core::SeedableRng};
/// use fastgame_core::{JoinProfile, JoinSize, Side, Weights, Zcdp};
///
/// # fn main() -> Result<(), fastgame_core::Error> {
/// // For this example only: seed from the operating system instead (`getrandom::SysRng`).
/// let mut rng = ChaCha12Rng::from_seed([1; 32]);
/// // A year of hours, rho = 0.5 in all. What is expected is public: half a million rows on each side, a thousand keys.
/// let expected = JoinProfile::uniform(500_000.0, 500_000.0, 1_000)?;
/// let plan = JoinSize::builder(8_760, Zcdp::new(0.5)?).plan(expected)?.suggest(0.95, 1 << 24)?;
/// assert!(plan.is_useful());
/// let mut join = plan.parameters().clone().hash_seed(7).build()?;
/// let keys: Vec<u64> = (0..500_000).map(|row| row % 1_000).collect();
/// join.update(Side::Left, &keys, Weights::All(1))?;
/// join.update(Side::Right, &keys, Weights::All(1))?;
/// let estimate = join.estimate_with_error(&mut rng)?; // reads all cells and seals the step
/// let interval = estimate.interval_of_rows(0.95)?;
/// assert!(interval.lower < 250e6 && 250e6 < interval.upper);
/// join.advance(2)?;
/// join.update(Side::Left, &[3u64], Weights::All(-1))?; // a deletion
/// # Ok(())
/// # }
/// ```
pub struct JoinSize {
    vector: ContinualVector,
    hash: HashFamily,
    shape: SketchShape,
}

/// Shows public parameters only.
impl fmt::Debug for JoinSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinSize").field("shape", &self.shape).field("vector", &self.vector).finish()
    }
}

/// An estimate, and what the released cells say about its error. All of it is post-processing of one release.
#[derive(Clone, Debug, PartialEq)]
pub struct JoinEstimate {
    /// The estimate of the join size: the median of `rows`.
    pub value: f64,
    /// A standard deviation by the formula: the square root of `m(depth)` times an upper bound on the variance of a row with
    /// the moments below put in. `m(depth)` is that of normal rows. Where a few keys are most of a moment, it is several
    /// times too large.
    pub std: f64,
    /// A standard deviation by the spread of the rows: the square root of `m(depth) * s^2`, `s^2` their sample variance. Its
    /// square is unbiased for `m(depth) Var(row)`, it does itself fall short on average (by 11, 6, 4, 3 % for depth 3, 5, 7,
    /// 9 and normal rows), and it varies as a root of chi-square with `depth - 1` degrees of freedom does. `None` for depth
    /// 1.
    pub std_of_rows: Option<f64>,
    /// The second moments of the left and the right relation as released, zero where they came out negative.
    pub moments: [f64; 2],
    /// The estimates of the single rows, each of them unbiased.
    pub rows: Vec<f64>,
}

impl JoinEstimate {
    /// An interval about the estimate from the spread of its rows alone: `std_of_rows` times Student's quantile with `depth -
    /// 1` degrees of freedom. It follows the error where the formula is much too large, and is nearly exact for normal rows;
    /// it rests on measurement for others (`docs/joins.md`), not on proof.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless `0 < confidence < 1`, and for depth 1, whose one row has no spread.
    pub fn interval_of_rows(&self, confidence: f64) -> Result<JoinInterval> {
        check_confidence(confidence)?;
        let depth = self.rows.len();
        let Some(std) = self.std_of_rows else {
            let allowed = "at least 3 for an interval from the spread of the rows";
            return Err(Error::Parameter { name: "depth", given: depth.into(), allowed });
        };
        Ok(JoinInterval::about(self.value, std * student_quantile(depth - 1, 1.0 - confidence)))
    }
}

pub(crate) fn check_confidence(confidence: f64) -> Result<()> {
    if confidence > 0.0 && confidence < 1.0 {
        return Ok(());
    }
    Err(Error::Parameter { name: "confidence", given: confidence.into(), allowed: "more than 0 and less than 1" })
}

/// An estimate with an interval that covers the truth with the confidence asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JoinInterval {
    /// The estimate.
    pub value: f64,
    /// The lower end.
    pub lower: f64,
    /// The upper end.
    pub upper: f64,
}

impl JoinInterval {
    fn about(value: f64, half: f64) -> Self {
        Self { value, lower: value - half, upper: value + half }
    }
}

/// The parts of the variance of a row, in the order of Lemma 5.2: colliding keys, keys against noise, noise against noise.
/// An upper bound: it is without the term `-2 sum x^2 y^2 / width`.
pub(crate) fn row_variance(width: f64, v: f64, moments: [f64; 2], join_size: f64) -> [f64; 3] {
    let [left, right] = moments;
    let product = left * right;
    // Of any two relations, by Cauchy and Schwarz; a released value may be off.
    let square = (join_size * join_size).min(product);
    [(product + square) / width, v * (left + right), width * v * v]
}

impl JoinSize {
    /// Starts a join with `horizon` time steps under a budget; depth 5, width 4096.
    pub fn builder(horizon: u64, budget: impl Into<Loss>) -> JoinBuilder {
        let shape = SketchShape { width: 4096, depth: 5, max_weight: 1, hash_seed: 0 };
        JoinBuilder::new(ContinualVector::builder(horizon, budget), shape)
    }

    /// Width, depth, bound and hash seed of either side.
    pub fn shape(&self) -> SketchShape {
        self.shape
    }

    /// The vector of cells underneath: clock, calibration and parameters.
    pub fn vector(&self) -> &ContinualVector {
        &self.vector
    }

    pub(crate) fn vector_mut(&mut self) -> &mut ContinualVector {
        &mut self.vector
    }

    /// Moves the clock; see [`ContinualVector::advance`].
    ///
    /// # Errors
    /// [`Error::Time`] for a step in the past or beyond the horizon.
    pub fn advance(&mut self, to: u64) -> Result<()> {
        self.vector.advance(to)
    }

    /// Makes keys of text, bytes and composites, for both sides.
    pub fn keyer(&self) -> Keyer {
        self.hash.keyer()
    }

    /// Memory in use, in bytes; the hash functions included.
    pub fn memory(&self) -> usize {
        self.vector.memory() + self.hash.bytes()
    }

    /// The first cell of a side.
    fn first(&self, side: Side) -> usize {
        match side {
            Side::Left => 0,
            Side::Right => self.shape.cells(),
        }
    }

    /// Adds weights to keys of one side at the present step, each pair an update of its own; all or nothing. Returns how
    /// many were dropped, for the operator alone. A side can be written only: what is asked is the join.
    ///
    /// # Errors
    /// [`Error::Sealed`], [`Error::Shape`], [`Error::Excess`], [`Error::Overflow`]; nothing has changed then.
    pub fn update<K: Copy + Into<Key>>(&mut self, side: Side, keys: &[K], weights: Weights<'_>) -> Result<u64> {
        let first = self.first(side);
        update_cells(&mut self.vector, first, &self.shape, &self.hash, keys, weights)
    }

    /// Adds all updates of a raw sketch of the same shape and hash seed to one side, at the present step.
    ///
    /// # Errors
    /// [`Error::Incompatible`] naming the field that differs, [`Error::Sealed`], [`Error::Overflow`]; nothing has changed
    /// then.
    pub fn merge(&mut self, side: Side, raw: &RawSketch) -> Result<()> {
        let first = self.first(side);
        merge_cells(&mut self.vector, first, &self.shape, raw)
    }

    /// An estimate of the join size at the present step, which is sealed. Reads all cells, whatever has changed.
    ///
    /// Float sums are good to `150 * 2^-53` of the product of the norms of the released rows, and cannot overflow: a cell is
    /// below 2^68. No data make this fail.
    ///
    /// # Errors
    /// [`Error::Entropy`] if the generator fails, [`Error::Memory`] if the cells do not fit in memory a second time;
    /// nothing has been released then.
    pub fn estimate<R: TryCryptoRng + ?Sized>(&mut self, rng: &mut R) -> Result<f64> {
        let cells = self.vector.release_all(rng)?;
        let mut sorted = [0.0; MAX_DEPTH];
        self.row_pairs(&cells).zip(&mut sorted).for_each(|((left, right), row)| *row = inner_product(left, right));
        Ok(median(&mut sorted[..self.shape.depth]))
    }

    /// The released rows, left and right.
    fn row_pairs<'a>(&self, cells: &'a [f64]) -> impl Iterator<Item = (&'a [f64], &'a [f64])> + use<'a> {
        let (left, right) = cells.split_at(self.shape.cells());
        left.chunks_exact(self.shape.width).zip(right.chunks_exact(self.shape.width))
    }

    /// As [`JoinSize::estimate`], with standard deviations. They are computed from the released cells and from nothing else.
    ///
    /// # Errors
    /// As [`JoinSize::estimate`].
    pub fn estimate_with_error<R: TryCryptoRng + ?Sized>(&mut self, rng: &mut R) -> Result<JoinEstimate> {
        let (estimate, variance) = self.estimate_with_variance(rng)?;
        Ok(JoinEstimate { std: sqrt(median_variance(self.shape.depth) * variance), ..estimate })
    }

    /// As [`JoinSize::estimate`], with an interval that covers the join size with probability `confidence` over noise and
    /// hash functions, whatever the law of the rows. Half its width is `sqrt(V / q)`, `V` the bound on the variance of a row
    /// and `q` such that `P(Bin(depth, q) > depth / 2) = 1 - confidence`: a row is off by more with probability at most `q`
    /// (Chebyshev), and the median only if most rows are (as in Lemma 5.5). About twice as wide as `1.96 std` at 95 % and
    /// depth 5. `V` has released moments in it: with a few dozen buckets these are off themselves.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless `0 < confidence < 1` (below a half it counts as a half); as [`JoinSize::estimate`].
    pub fn estimate_with_interval<R: TryCryptoRng + ?Sized>(
        &mut self,
        confidence: f64,
        rng: &mut R,
    ) -> Result<JoinInterval> {
        check_confidence(confidence)?;
        let (JoinEstimate { value, .. }, variance) = self.estimate_with_variance(rng)?;
        let half = sqrt(variance / tail_of_one_row_on_any_side(self.shape.depth, 1.0 - confidence));
        Ok(JoinInterval::about(value, half))
    }

    /// The estimate, its `std` left open, and the bound on the variance of a row.
    fn estimate_with_variance<R: TryCryptoRng + ?Sized>(&mut self, rng: &mut R) -> Result<(JoinEstimate, f64)> {
        let SketchShape { width, depth, .. } = self.shape;
        let (v, width) = (self.vector.release_variance(), width as f64);
        let cells = self.vector.release_all(rng)?;
        let mut rows = Vec::with_capacity(depth);
        let (mut left_squares, mut right_squares) = ([0.0; MAX_DEPTH], [0.0; MAX_DEPTH]);
        for (row, (left, right)) in self.row_pairs(&cells).enumerate() {
            rows.push(inner_product(left, right));
            left_squares[row] = inner_product(left, left);
            right_squares[row] = inner_product(right, right);
        }
        // A second moment exceeds the one of the data by the noise's own `width * v`. Below zero it says that it drowns in
        // noise: taking zero then moves the variance up, by a part in `sqrt(width)` at most, as `width v^2` stays.
        let moment = |squares: &mut [f64; MAX_DEPTH]| (median(&mut squares[..depth]) - width * v).max(0.0);
        let moments = [moment(&mut left_squares), moment(&mut right_squares)];
        let mut sorted = rows.clone();
        let value = median(&mut sorted);
        let std_of_rows = (depth > 1).then(|| sqrt(median_variance(depth) * sample_variance(&rows)));
        let variance = row_variance(width, v, moments, value).iter().sum();
        Ok((JoinEstimate { value, std: 0.0, std_of_rows, moments, rows }, variance))
    }
}

/// The sample variance of two values or more.
fn sample_variance(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / (values.len() - 1) as f64
}

#[cfg(test)]
mod tests;
