//! CountSketch under continual observation: counts of any keys, in a fixed number of cells.
//!
//! `depth` rows of `width` buckets (Charikar, Chen and Farach-Colton, 2004; private by noise on every cell: paper, sections
//! 1.2 and 4). An update adds `sign * weight` to one cell a row; an estimate is the median over the rows of `sign * cell`.
//! With `horizon = 1` this is the paper's Private CountSketch.
//!
//! Sensitivity: one update moves `depth` cells by at most `max_weight`, so its squared L2 norm is at most `depth *
//! max_weight^2`, and its L1 norm, which counts under a pure budget, `depth * max_weight`.
//! All noise and all privacy logic is the vector's. Cost: an update takes `depth` additions, an estimate reads `depth`
//! cells; `second_moment` and error bars read all `depth * width` cells of the step.

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use rand_core::TryCryptoRng;

use crate::calibration::{Mechanism, Unit};
use crate::error::{Error, Result, reserved, zeroed};
use crate::hash::{BLOCK, HashFamily, Key, Keyer};
use crate::math::{inner_product, sqrt};
use crate::privacy::Loss;
use crate::quantile::{tail_of_one_row, two_sided_quantile};
use crate::release_law::ReleaseLaw;
use crate::vector::{Builder, Cells, ContinualVector, Invalid, OnExcess};

/// The largest width, `2^30` buckets a row.
pub const MAX_WIDTH: usize = 1 << 30;
/// The largest depth.
pub const MAX_DEPTH: usize = 63;

/// What two sketches must share to be added: seed, shape and bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SketchShape {
    /// Buckets in a row, a power of two.
    pub width: usize,
    /// Rows, an odd number.
    pub depth: usize,
    /// The largest absolute weight of one update.
    pub max_weight: u32,
    /// The seed of the hash functions. Public: it says where a key goes, and protects nothing.
    pub hash_seed: u64,
}

impl SketchShape {
    pub(crate) fn check(&self) -> Result<()> {
        if !self.width.is_power_of_two() || self.width > MAX_WIDTH {
            let allowed = "a power of two from 1 to 2^30";
            return Err(Error::Parameter { name: "width", given: self.width.into(), allowed });
        }
        if self.width.checked_mul(self.depth).is_none() {
            let allowed = "such that depth * width cells can be numbered";
            return Err(Error::Parameter { name: "width", given: self.width.into(), allowed });
        }
        if self.depth % 2 == 0 || self.depth > MAX_DEPTH {
            return Err(Error::Parameter {
                name: "depth",
                given: self.depth.into(),
                allowed: "an odd number from 1 to 63",
            });
        }
        Ok(())
    }

    /// The first field in which `other` differs is an error.
    fn check_same(&self, other: &Self) -> Result<()> {
        let fields = [
            ("width", self.width as u64, other.width as u64),
            ("depth", self.depth as u64, other.depth as u64),
            ("max_weight", self.max_weight.into(), other.max_weight.into()),
            ("hash_seed", self.hash_seed, other.hash_seed),
        ];
        match fields.into_iter().find(|(_, ours, theirs)| ours != theirs) {
            Some((field, ours, theirs)) => Err(Error::Incompatible { field, ours: ours.into(), theirs: theirs.into() }),
            None => Ok(()),
        }
    }

    pub(crate) fn cells(&self) -> usize {
        self.width * self.depth
    }

    /// Cells that an estimate of this many keys reads: `depth` a key, or all, which is less work from a quarter of the
    /// cells on. A swept cell costs 1/3 (in cache) to 1/10 (beyond) of one that is looked up.
    pub(crate) fn cells_read(&self, keys: usize) -> usize {
        let looked_up = keys.saturating_mul(self.depth);
        if looked_up.saturating_mul(4) >= self.cells() { self.cells() } else { looked_up }
    }

    pub(crate) fn bucket_bits(&self) -> u32 {
        self.width.trailing_zeros()
    }

    /// The hash functions.
    pub(crate) fn hash(&self) -> HashFamily {
        HashFamily::new(self.hash_seed, self.depth, self.bucket_bits())
    }
}

/// The weights of a batch of updates.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Weights<'a> {
    /// The same for every key.
    All(i64),
    /// One for each key.
    Each(&'a [i64]),
}

impl<'a> Weights<'a> {
    #[inline]
    pub(crate) fn get(self, index: usize) -> i64 {
        match self {
            Self::All(weight) => weight,
            Self::Each(weights) => weights[index],
        }
    }

    /// The weights from a key on.
    pub(crate) fn skip(self, keys: usize) -> Self {
        match self {
            Self::All(weight) => Self::All(weight),
            Self::Each(weights) => Self::Each(&weights[keys..]),
        }
    }
}

/// Weights within the bound, one rule for all that is hashed.
pub(crate) struct Checked<'a> {
    given: Weights<'a>,
    /// What stands for them, where some were over the bound.
    mended: Option<Vec<i64>>,
    /// The sum of absolute values.
    pub(crate) total: u128,
    pub(crate) dropped: u64,
}

impl Checked<'_> {
    pub(crate) fn weights(&self) -> Weights<'_> {
        self.mended.as_deref().map_or(self.given, Weights::Each)
    }
}

pub(crate) fn check_weights<'a>(
    count: usize,
    weights: Weights<'a>,
    max_weight: u32,
    on_excess: OnExcess,
    invalid: Invalid,
) -> Result<Checked<'a>> {
    let max = i64::from(max_weight);
    let over = |weight: i64| weight.unsigned_abs() > u64::from(max_weight);
    let excess = |position| Error::Excess { position, bound: f64::from(max_weight), what: "weight" };
    // What stands for a weight over the bound: a weight of zero is no update at all.
    let mend = |weight: i64| match on_excess {
        OnExcess::Clip => weight.clamp(-max, max),
        OnExcess::Error => 0,
    };
    let refuse = on_excess == OnExcess::Error && invalid == Invalid::Raise;
    let drops = on_excess == OnExcess::Error;
    match weights {
        Weights::All(weight) => {
            let bad = over(weight) && count > 0;
            if bad && refuse {
                return Err(excess(0));
            }
            let dropped = if bad && drops { count as u64 } else { 0 };
            let weight = if bad { mend(weight) } else { weight };
            let total = u128::from(weight.unsigned_abs()) * count as u128;
            Ok(Checked { given: Weights::All(weight), mended: None, total, dropped })
        }
        Weights::Each(weights) if weights.len() != count => {
            Err(Error::Shape { what: "there must be one weight for each key" })
        }
        Weights::Each(weights) => {
            // Weights within the bound: as many as a page holds sum up in 64 bits.
            let page = |weights: &[i64]| u128::from(weights.iter().map(|weight| weight.unsigned_abs()).sum::<u64>());
            let sum = |weights: &[i64]| weights.chunks(4096).map(page).sum();
            match weights.iter().position(|&weight| over(weight)) {
                None => Ok(Checked { given: Weights::Each(weights), mended: None, total: sum(weights), dropped: 0 }),
                Some(position) if refuse => Err(excess(position)),
                Some(_) => {
                    let dropped = if drops { weights.iter().filter(|&&weight| over(weight)).count() as u64 } else { 0 };
                    let mended: Vec<i64> =
                        weights.iter().map(|&weight| if over(weight) { mend(weight) } else { weight }).collect();
                    let total = sum(&mended);
                    Ok(Checked { given: Weights::Each(weights), mended: Some(mended), total, dropped })
                }
            }
        }
    }
}

/// Adds a batch to counters that are known not to overflow.
pub(crate) fn add_batch<K: Copy + Into<Key>>(
    counters: &mut [i64],
    hash: &HashFamily,
    bits: u32,
    keys: &[K],
    weights: Weights<'_>,
) {
    for (block, keys) in keys.chunks(BLOCK).enumerate() {
        hash.rows(keys, |row, places| {
            let counters = &mut counters[row << bits..][..1 << bits];
            match weights.skip(block * BLOCK) {
                Weights::All(weight) => {
                    let signed = [weight, -weight];
                    for place in places {
                        counters[(place >> 1) as usize] += signed[(place & 1) as usize];
                    }
                }
                Weights::Each(weights) => {
                    for (place, weight) in places.iter().zip(weights) {
                        // All ones where the sign is -1.
                        let flip = -i64::from(place & 1);
                        counters[(place >> 1) as usize] += (weight ^ flip) - flip;
                    }
                }
            }
        });
    }
}

/// Adds weights to keys in the sketch whose cells begin at `first` of a vector. Returns how many were dropped.
pub(crate) fn update_cells<K: Copy + Into<Key>>(
    vector: &mut ContinualVector,
    first: usize,
    shape: &SketchShape,
    hash: &HashFamily,
    keys: &[K],
    weights: Weights<'_>,
) -> Result<u64> {
    vector.check_open()?;
    let (on_excess, invalid) = (vector.parameters().on_excess, vector.parameters().invalid);
    let checked = check_weights(keys.len(), weights, shape.max_weight, on_excess, invalid)?;
    let bits = shape.bucket_bits();
    vector.add(
        keys.len().saturating_mul(shape.depth),
        checked.total,
        |counters| add_batch(&mut counters[first..][..shape.cells()], hash, bits, keys, checked.weights()),
        |each| {
            for (index, &key) in keys.iter().enumerate() {
                let weight = checked.weights().get(index);
                hash.places(key.into(), |row, place| {
                    each(first + (row << bits) + place.bucket, place.sign * weight, index)
                });
            }
        },
    )?;
    Ok(checked.dropped)
}

/// Adds a raw sketch to the sketch whose cells begin at `first` of a vector.
pub(crate) fn merge_cells(
    vector: &mut ContinualVector,
    first: usize,
    shape: &SketchShape,
    raw: &RawSketch,
) -> Result<()> {
    vector.check_open()?;
    shape.check_same(&raw.shape)?;
    vector.add(
        shape.cells(),
        raw.total.into(),
        |counters| counters[first..].iter_mut().zip(&raw.counters).for_each(|(counter, add)| *counter += add),
        |each| raw.counters.iter().enumerate().for_each(|(cell, &add)| each(first + cell, add, cell)),
    )
}

/// Collects the parameters of a [`CountSketch`].
#[derive(Clone, Debug)]
#[must_use]
pub struct SketchBuilder {
    base: Builder,
    shape: SketchShape,
}

impl SketchBuilder {
    /// A sketch of this shape with the horizon, budget and policies of `base`; cells and bound of `base` are not used.
    pub fn new(base: Builder, shape: SketchShape) -> Self {
        Self { base, shape }
    }

    /// Buckets in a row, a power of two up to `2^30`.
    pub fn width(mut self, width: usize) -> Self {
        self.shape.width = width;
        self
    }

    /// Rows, an odd number up to 63.
    pub fn depth(mut self, depth: usize) -> Self {
        self.shape.depth = depth;
        self
    }

    /// The largest absolute weight of one update, `1..=2^31`; 1 by default.
    pub fn max_weight(mut self, max_weight: u32) -> Self {
        self.shape.max_weight = max_weight;
        self
    }

    /// The seed of the hash functions; 0 by default. Choose it at random, or keys may have been made to collide.
    pub fn hash_seed(mut self, seed: u64) -> Self {
        self.shape.hash_seed = seed;
        self
    }

    /// How noise is correlated over time.
    pub fn mechanism(mut self, mechanism: Mechanism) -> Self {
        self.base = self.base.mechanism(mechanism);
        self
    }

    /// What is protected.
    pub fn unit(mut self, unit: Unit) -> Self {
        self.base = self.base.unit(unit);
        self
    }

    /// How many units one person may contribute.
    pub fn contributions(mut self, m: u32) -> Self {
        self.base = self.base.contributions(m);
        self
    }

    /// What happens to weights over the bound.
    pub fn on_excess(mut self, on_excess: OnExcess) -> Self {
        self.base = self.base.on_excess(on_excess);
        self
    }

    /// What happens to invalid elements.
    pub fn invalid(mut self, invalid: Invalid) -> Self {
        self.base = self.base.invalid(invalid);
        self
    }

    /// Width, depth, bound and hash seed.
    pub fn shape(&self) -> SketchShape {
        self.shape
    }

    /// What all answers together will cost.
    pub fn loss(&self) -> Loss {
        self.base.loss()
    }

    /// The parameters of the vector underneath.
    pub(crate) fn vector(&self) -> Result<Builder> {
        self.vector_of(1)
    }

    /// The parameters of a vector with this many such sketches, one after the other, of which an update moves one.
    pub(crate) fn vector_of(&self, sketches: usize) -> Result<Builder> {
        self.shape.check()?;
        let rows = vec![self.shape.width; sketches * self.shape.depth];
        Ok(self.base.clone().blocks(&rows).cells_of_update(self.shape.max_weight, self.shape.depth as u32))
    }

    /// As [`Builder::insecure_key`].
    ///
    /// # Errors
    /// As [`SketchBuilder::build`].
    pub fn insecure_key(&self, structure: &str, seed: u64) -> Result<[u8; 32]> {
        Ok(self.vector()?.insecure_key_with(structure, seed, self.shape.hash_seed))
    }

    /// Builds the sketch, all cells zero, the clock at step 1.
    ///
    /// # Errors
    /// [`Error::Parameter`] as [`Builder::build`], and for an even depth or a width that is no power of two.
    pub fn build(&self) -> Result<CountSketch> {
        self.assemble(self.vector()?.build()?)
    }

    #[cfg(test)]
    pub(crate) fn build_exact(&self) -> Result<CountSketch> {
        self.assemble(self.vector()?.build_exact()?)
    }

    fn assemble(&self, vector: ContinualVector) -> Result<CountSketch> {
        Ok(CountSketch { vector, hash: Arc::new(self.shape.hash()), builder: self.clone() })
    }
}

/// A CountSketch that follows updates and can be asked at any time step.
pub struct CountSketch {
    vector: ContinualVector,
    hash: Arc<HashFamily>,
    builder: SketchBuilder,
}

/// Shows public parameters only.
impl fmt::Debug for CountSketch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CountSketch").field("shape", &self.builder.shape).field("vector", &self.vector).finish()
    }
}

/// Estimates, and the error that all of them share.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimates {
    /// One for each key.
    pub values: Vec<f64>,
    /// Half the width of an interval that covers the truth with the confidence asked for, or a standard deviation.
    pub error: f64,
}

impl CountSketch {
    /// Starts a sketch with `horizon` time steps under a budget; depth 5, width 4096.
    pub fn builder(horizon: u64, budget: impl Into<Loss>) -> SketchBuilder {
        SketchBuilder::new(
            ContinualVector::builder(horizon, budget),
            SketchShape { width: 4096, depth: 5, max_weight: 1, hash_seed: 0 },
        )
    }

    /// Width, depth, bound and hash seed.
    pub fn shape(&self) -> SketchShape {
        self.builder.shape
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

    /// Makes keys of text, bytes and composites for this sketch.
    pub fn keyer(&self) -> Keyer {
        self.hash.keyer()
    }

    /// Memory in use, in bytes; the hash functions included.
    pub fn memory(&self) -> usize {
        self.vector.memory() + self.hash.bytes()
    }

    /// Adds weights to keys at the present step, each pair an update of its own; all or nothing. Returns how many were
    /// dropped, for the operator alone.
    ///
    /// # Errors
    /// [`Error::Sealed`], [`Error::Shape`], [`Error::Excess`], [`Error::Overflow`]; nothing has changed then.
    pub fn update<K: Copy + Into<Key>>(&mut self, keys: &[K], weights: Weights<'_>) -> Result<u64> {
        update_cells(&mut self.vector, 0, &self.builder.shape, &self.hash, keys, weights)
    }

    /// An empty sketch without noise that can be filled elsewhere and merged into this one.
    ///
    /// # Errors
    /// [`Error::Parameter`] if its cells do not fit in memory.
    pub fn raw(&self) -> Result<RawSketch> {
        let SketchBuilder { shape, base } = &self.builder;
        let (shape, on_excess, invalid) = (*shape, base.on_excess, base.invalid);
        Ok(RawSketch {
            shape,
            on_excess,
            invalid,
            hash: Arc::clone(&self.hash),
            counters: zeroed_cells(shape.cells())?,
            total: 0,
            dropped: 0,
        })
    }

    /// Adds all updates of a raw sketch at the present step.
    ///
    /// # Errors
    /// [`Error::Incompatible`] naming the field that differs, [`Error::Sealed`], [`Error::Overflow`]; nothing has changed
    /// then.
    pub fn merge(&mut self, raw: &RawSketch) -> Result<()> {
        merge_cells(&mut self.vector, 0, &self.builder.shape, raw)
    }

    /// Estimates of the total weight of keys at the present step, which is sealed. Reads `depth` cells a key (all cells,
    /// when there are so many keys that this is less work): a function of the number of keys alone.
    ///
    /// The noise of an estimate has the variance [`CountSketch::median_variance`] times that of a cell; colliding keys add to it.
    ///
    /// # Errors
    /// [`Error::Entropy`] if the generator fails; nothing has been released then.
    pub fn estimate<K, R>(&mut self, keys: &[K], rng: &mut R) -> Result<Vec<f64>>
    where
        K: Copy + Into<Key>,
        R: TryCryptoRng + ?Sized,
    {
        let shape = self.builder.shape;
        let depth = shape.depth;
        if shape.cells_read(keys.len()) == shape.cells() {
            let cells = self.vector.release_all(rng)?;
            return Ok(self.medians(&cells, keys));
        }
        let bits = self.builder.shape.bucket_bits();
        let mut cells = Vec::with_capacity(keys.len() * depth);
        let mut signs = Vec::with_capacity(keys.len() * depth);
        for &key in keys {
            self.hash.places(key.into(), |row, place| {
                cells.push(((row << bits) + place.bucket) as u64);
                signs.push(place.sign as f64);
            });
        }
        let mut values = self.vector.release(Cells::Indices(&cells), rng)?;
        values.iter_mut().zip(&signs).for_each(|(value, sign)| *value *= sign);
        Ok(values.chunks_exact_mut(depth).map(median).collect())
    }

    /// Estimates from released cells.
    fn medians<K: Copy + Into<Key>>(&self, cells: &[f64], keys: &[K]) -> Vec<f64> {
        let bits = self.builder.shape.bucket_bits();
        let depth = self.builder.shape.depth;
        let block = keys.len().clamp(1, BLOCK);
        // The values of a block of keys, row by row.
        let mut values = vec![0.0; block * depth];
        let mut medians = Vec::with_capacity(keys.len());
        for keys in keys.chunks(block) {
            self.hash.rows(keys, |row, places| {
                let cells = &cells[row << bits..][..1 << bits];
                for (value, &place) in values[row * block..].iter_mut().zip(places) {
                    *value = with_sign(cells[(place >> 1) as usize], place);
                }
            });
            if depth == 5 {
                let row = |row: usize| &values[row * block..][..keys.len()];
                let (a, b, c, d, e) = (row(0), row(1), row(2), row(3), row(4));
                medians.extend((0..keys.len()).map(|key| median_of_five([a[key], b[key], c[key], d[key], e[key]])));
            } else {
                let mut of_key = [0.0; MAX_DEPTH];
                medians.extend((0..keys.len()).map(|key| {
                    let rows = values.chunks_exact(block);
                    of_key.iter_mut().zip(rows).for_each(|(value, row)| *value = row[key]);
                    median(&mut of_key[..depth])
                }));
            }
        }
        medians
    }

    /// Estimates with an error: an interval of that half width about an estimate covers the truth with probability
    /// `confidence`, over the noise and the hash functions.
    ///
    /// What stands in a cell beside a key, colliding keys and noise, is distributed as the cells themselves are, up to the
    /// sign; all of them are released, so the quantile of the median of `depth` such values is read off their
    /// empirical law. Heavy keys stretch few cells, and so do not stretch the error as a variance would. Reads all cells.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless `0 < confidence < 1`, [`Error::Entropy`].
    pub fn estimate_with_error<K, R>(&mut self, keys: &[K], confidence: f64, rng: &mut R) -> Result<Estimates>
    where
        K: Copy + Into<Key>,
        R: TryCryptoRng + ?Sized,
    {
        if !(confidence > 0.0 && confidence < 1.0) {
            let allowed = "more than 0 and less than 1";
            return Err(Error::Parameter { name: "confidence", given: confidence.into(), allowed });
        }
        let mut cells = self.vector.release_all(rng)?;
        let values = self.medians(&cells, keys);
        cells.iter_mut().for_each(|cell| *cell = cell.abs());
        let tail = tail_of_one_row(self.builder.shape.depth, 1.0 - confidence);
        let rank = ((1.0 - tail) * cells.len() as f64) as usize;
        let rank = rank.min(cells.len() - 1);
        let (_, error, _) = cells.select_nth_unstable_by(rank, f64::total_cmp);
        // The noise's own quantile is known exactly, also where the cells are too few to tell.
        let noise = self.vector.release_law().standard_quantile(tail);
        let error = error.max(sqrt(self.vector.release_variance()) * noise);
        Ok(Estimates { values, error })
    }

    /// Estimates with a standard deviation: that of the normal law whose 95 % interval is the one of
    /// [`CountSketch::estimate_with_error`], so that 1.96 of them are that interval whatever the law of the noise. Reads all
    /// cells.
    ///
    /// # Errors
    /// [`Error::Entropy`].
    pub fn estimate_with_std<K, R>(&mut self, keys: &[K], rng: &mut R) -> Result<Estimates>
    where
        K: Copy + Into<Key>,
        R: TryCryptoRng + ?Sized,
    {
        let estimates = self.estimate_with_error(keys, 0.95, rng)?;
        Ok(Estimates { error: estimates.error / two_sided_quantile(0.05), ..estimates })
    }

    /// An unbiased estimate of the second moment, the sum of squared totals of all keys, at the present step, with its
    /// standard deviation. Reads all cells.
    ///
    /// Each row's sum of squares exceeds the second moment by the noise's own `width * v`, which is subtracted; the rows
    /// are averaged. Variance of a row: `2 (F2^2 - F4)/width + 4 v F2 + (2 + k) width v^2`, `k` the excess kurtosis of the
    /// noise (0 for normal noise), with the released moment for `F2` and without `F4` an upper bound (the size of a
    /// self-join; Alon, Matias and Szegedy, 1999).
    ///
    /// # Errors
    /// [`Error::Entropy`] if the generator fails.
    pub fn second_moment<R: TryCryptoRng + ?Sized>(&mut self, rng: &mut R) -> Result<(f64, f64)> {
        let SketchShape { width, depth, .. } = self.builder.shape;
        let (width, depth) = (width as f64, depth as f64);
        let (law, v) = (self.vector.release_law(), self.vector.release_variance());
        let cells = self.vector.release_all(rng)?;
        let moment = inner_product(&cells, &cells) / depth - width * v;
        Ok((moment, sqrt(variance_of_squares(&law, v, width, moment) / depth)))
    }

    /// The variance of the noise of an estimate over that of a cell: that of the median of `depth` independent values with
    /// the law of the noise and variance 1, so for normal noise `m(depth)`, that of standard normals. The same at every step.
    pub fn median_variance(&self) -> f64 {
        self.vector.release_law().standard_median_variance(self.builder.shape.depth)
    }
}

/// The variance of a row's sum of squares, when the noise of a cell has this law and with rounding the variance `v`; an
/// upper bound.
fn variance_of_squares(law: &ReleaseLaw, v: f64, width: f64, moment: f64) -> f64 {
    let plausible = moment.max(0.0);
    2.0 * plausible * plausible / width + 4.0 * v * plausible + (2.0 + law.excess_kurtosis()) * width * v * v
}

/// A partial sketch: no noise, no clock, cannot be read. It may be copied, filled anywhere, and merged.
#[derive(Clone)]
pub struct RawSketch {
    shape: SketchShape,
    on_excess: OnExcess,
    invalid: Invalid,
    hash: Arc<HashFamily>,
    counters: Vec<i64>,
    /// At least the largest absolute value of a counter.
    total: u64,
    /// How many updates were dropped.
    dropped: u64,
}

/// Shows the shape only.
impl fmt::Debug for RawSketch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawSketch").field("shape", &self.shape).finish_non_exhaustive()
    }
}

/// The first bytes of a raw sketch's form: name and version.
const RAW_MAGIC: [u8; 8] = *b"fg-raw-1";
/// Eight-byte fields before the counters.
const RAW_FIELDS: usize = 8;

impl RawSketch {
    /// An empty raw sketch of this shape.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a shape that no sketch has.
    pub fn new(shape: SketchShape, on_excess: OnExcess, invalid: Invalid) -> Result<Self> {
        shape.check()?;
        crate::lattice::Bound::integer(shape.max_weight, crate::lattice::Norm::L2)?;
        let hash = Arc::new(shape.hash());
        Ok(Self { shape, on_excess, invalid, hash, counters: zeroed_cells(shape.cells())?, total: 0, dropped: 0 })
    }

    /// A copy, or an error if memory does not hold it.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub fn try_clone(&self) -> Result<Self> {
        let mut counters = reserved(self.counters.len())?;
        counters.extend_from_slice(&self.counters);
        Ok(Self { hash: Arc::clone(&self.hash), counters, ..*self })
    }

    /// The sketch as bytes, little-endian: to be sent to where it is merged. It holds exact counters: secret.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let SketchShape { width, depth, max_weight, hash_seed } = self.shape;
        let policy = u64::from(self.on_excess == OnExcess::Clip) | u64::from(self.invalid == Invalid::Drop) << 1;
        let fields = [width as u64, depth as u64, max_weight.into(), hash_seed, policy, self.total, self.dropped];
        let mut bytes = reserved(8 * (RAW_FIELDS + self.counters.len()))?;
        bytes.extend(RAW_MAGIC);
        bytes.extend(fields.into_iter().flat_map(u64::to_le_bytes));
        bytes.extend(self.counters.iter().flat_map(|counter| counter.to_le_bytes()));
        Ok(bytes)
    }

    /// A sketch from what [`RawSketch::to_bytes`] gave.
    ///
    /// # Errors
    /// [`Error::Shape`] or [`Error::Parameter`] for bytes that no raw sketch has.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let foreign = Error::Shape { what: "these bytes are not a raw sketch of this version" };
        let mut words = bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap_or_default()));
        if bytes.len() % 8 != 0 || words.next() != Some(u64::from_le_bytes(RAW_MAGIC)) {
            return Err(foreign);
        }
        let mut field = || words.next().ok_or(foreign);
        let (width, depth, max_weight, hash_seed, policy, total, dropped) =
            (field()?, field()?, field()?, field()?, field()?, field()?, field()?);
        let small = |field: u64| u32::try_from(field).map_err(|_| foreign);
        let shape = SketchShape {
            width: small(width)? as usize,
            depth: small(depth)? as usize,
            max_weight: small(max_weight)?,
            hash_seed,
        };
        shape.check()?;
        // Before anything of that size is made.
        if bytes.len() / 8 != RAW_FIELDS + shape.cells() || policy > 3 || total > i64::MAX as u64 {
            return Err(foreign);
        }
        let on_excess = if policy & 1 == 1 { OnExcess::Clip } else { OnExcess::Error };
        let invalid = if policy & 2 == 2 { Invalid::Drop } else { Invalid::Raise };
        let counters: Vec<i64> = words.map(|word| word as i64).collect();
        if counters.iter().any(|counter| counter.unsigned_abs() > total) {
            return Err(foreign);
        }
        Ok(Self { counters, total, dropped, ..Self::new(shape, on_excess, invalid)? })
    }

    /// Width, depth, bound and hash seed.
    pub fn shape(&self) -> SketchShape {
        self.shape
    }

    /// Makes keys of text, bytes and composites for this sketch.
    pub fn keyer(&self) -> Keyer {
        self.hash.keyer()
    }

    /// Adds weights to keys; as [`CountSketch::update`].
    ///
    /// # Errors
    /// [`Error::Shape`], [`Error::Excess`], [`Error::Overflow`]; nothing has changed then.
    pub fn update<K: Copy + Into<Key>>(&mut self, keys: &[K], weights: Weights<'_>) -> Result<u64> {
        let checked = check_weights(keys.len(), weights, self.shape.max_weight, self.on_excess, self.invalid)?;
        self.total = self.grown(checked.total)?;
        add_batch(&mut self.counters, &self.hash, self.shape.bucket_bits(), keys, checked.weights());
        self.dropped = self.dropped.saturating_add(checked.dropped);
        Ok(checked.dropped)
    }

    /// Counts updates that were dropped before they came here: what was no key.
    pub fn add_dropped(&mut self, count: u64) {
        self.dropped = self.dropped.saturating_add(count);
    }

    /// What happens to invalid elements.
    pub fn invalid(&self) -> Invalid {
        self.invalid
    }

    /// How many updates were dropped here, and in what was merged; not private, for the operator alone.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Adds all updates of another raw sketch.
    ///
    /// # Errors
    /// [`Error::Incompatible`] naming the field that differs, [`Error::Overflow`]; nothing has changed then.
    pub fn merge(&mut self, other: &Self) -> Result<()> {
        self.shape.check_same(&other.shape)?;
        self.total = self.grown(other.total.into())?;
        self.dropped = self.dropped.saturating_add(other.dropped);
        self.counters.iter_mut().zip(&other.counters).for_each(|(counter, add)| *counter += add);
        Ok(())
    }

    /// The bound on the counters after adding `total` more; it is renewed from them when it is used up.
    fn grown(&self, total: u128) -> Result<u64> {
        let limit = i64::MAX as u128;
        let mut bound = u128::from(self.total);
        if bound + total > limit {
            bound = self.counters.iter().map(|counter| u128::from(counter.unsigned_abs())).max().unwrap_or(0);
        }
        if bound + total <= limit { Ok((bound + total) as u64) } else { Err(Error::Overflow { position: 0 }) }
    }
}

/// The cells of a raw sketch.
fn zeroed_cells(cells: usize) -> Result<Vec<i64>> {
    let allowed = "such that depth * width cells fit in memory (8 bytes each)";
    zeroed(cells).ok_or(Error::Parameter { name: "width", given: cells.into(), allowed })
}

/// A cell times the sign in the lowest bit of a place.
#[inline]
fn with_sign(cell: f64, place: u32) -> f64 {
    f64::from_bits(cell.to_bits() ^ u64::from(place) << 63)
}

/// The median of five values, no NaN among them: comparisons without a branch, a single instruction each. Zero is +0.0.
#[inline]
fn median_of_five([a, b, c, d, e]: [f64; 5]) -> f64 {
    let min = |a: f64, b: f64| if a < b { a } else { b };
    let max = |a: f64, b: f64| if a > b { a } else { b };
    let (a, b) = (min(a, b), max(a, b));
    let (c, d) = (min(c, d), max(c, d));
    let (low, high) = (max(a, c), min(b, d));
    let (low, high) = (min(low, high), max(low, high));
    max(low, min(high, e)) + 0.0
}

/// The median of an odd number of values; reorders them. Zero is +0.0.
#[inline]
pub(crate) fn median(values: &mut [f64]) -> f64 {
    if let &mut [a, b, c, d, e] = values {
        return median_of_five([a, b, c, d, e]);
    }
    // Insertion sort: a sketch has few rows.
    for end in 1..values.len() {
        let mut place = end;
        while place > 0 && values[place - 1] > values[place] {
            values.swap(place - 1, place);
            place -= 1;
        }
    }
    values[values.len() / 2] + 0.0
}

#[cfg(test)]
mod tests;
