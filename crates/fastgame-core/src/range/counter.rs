//! The range counter itself: updates, counts of boxes, and what follows from released counts.
//!
//! The estimate of a rectangle of a sketched component is the median over the rows of `sign * cell`, as in the paper, and a box
//! is the weighted sum of these: for both estimators. Given all other signs, flipping the rectangle's own sign in a row flips the
//! row's error, so each median is symmetric about the truth and the sum is unbiased for any weights. To add the rectangles up
//! row by row and take one median of the sums has the same noise, `m(depth)` times that of a row, but is not better on
//! collisions and not unbiased: a row's sum is off by much whenever any one of its rectangles meets a heavy one, where a
//! rectangle's own median is so only if most of its rows do; and products of signs of rectangles that meet each other
//! skew it. In a simulation (5 rows of 256 buckets, 3000 rectangles, 100 in the box) its variance was the same for equal counts, and
//! 24 times as much for counts `1 / rank`. The mean of the rows is unbiased with less noise, `1 / depth` against
//! `m(depth)`, and takes in every heavy collision: 0.7 and 29 times as much. The paper's bounds need the median.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use rand_core::TryCryptoRng;

use super::boxes::Parts;
use super::layout::{Layout, Points};
use super::{RangeBuilder, RangeShape};
use crate::error::{Error, Result, reserved};
use crate::hash::HashFamily;
use crate::lattice::Index;
use crate::math::sqrt;
use crate::quantile::middle_spacing;
use crate::release_law::Medians;
use crate::sketch::{Weights, check_weights, median};
use crate::vector::{Cells, ContinualVector, Invalid, OnExcess};

/// How often the total of an empty counter may be off, on either side, by more than what a total must be above.
const UNCLEAR: f64 = 0.05;

/// The coordinates from the first up to, not including, the second.
pub type Interval = (u64, u64);

/// A range counter that follows updates and can be asked at any time step.
///
/// ```
/// use chacha20::{ChaCha12Rng, rand_core::SeedableRng};
/// use fastgame_core::{ContinualVector, RangeBuilder, RangeShape, Weights, Zcdp};
///
/// # fn main() -> Result<(), fastgame_core::Error> {
/// let mut rng = ChaCha12Rng::from_seed([1; 32]); // for this example only
/// let base = ContinualVector::builder(8_760, Zcdp::new(0.5)?);
/// let mut points = RangeBuilder::new(base, RangeShape::new(&[1000, 24])).build()?;
/// points.update(&[17u64, 3, 999, 23], Weights::All(1))?; // two points
/// points.advance(24)?;
/// // One box: 10 <= x < 20 and all of y.
/// let count = points.count(&[(10, 20), (0, 24)], &mut rng)?[0];
/// # assert!(count.is_finite());
/// # Ok(())
/// # }
/// ```
pub struct RangeCounter {
    builder: RangeBuilder,
    layout: Layout,
    /// There is none if all components are dense.
    hash: Option<HashFamily>,
    vector: ContinualVector,
    rows: Box<RowLaws>,
}

/// What errors need of the laws of rows, the same at every step. (In a box: it is read seldom.)
struct RowLaws {
    medians: Medians,
    spacing: Spacing,
}

/// The law of the distance between the rows' values some places below and above the median, for rows of variance 1: mean and
/// variance for normal rows, and for rows of noise alone.
#[derive(Clone, Copy)]
struct Spacing {
    places: usize,
    normal: (f64, f64),
    noise: (f64, f64),
}

/// Shows public parameters only.
impl fmt::Debug for RangeCounter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RangeCounter")
            .field("shape", self.shape())
            .field("vector", &self.vector)
            .finish_non_exhaustive()
    }
}

/// Counts of boxes, with a standard deviation each.
#[derive(Clone, Debug, PartialEq)]
pub struct Counts {
    /// One for each box.
    pub values: Vec<f64>,
    /// One for each box, from public and released values alone.
    pub stds: Vec<f64>,
}

/// Released second moments of the sketched components, for the errors of counts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SecondMoments(Vec<f64>);

impl SecondMoments {
    /// One for each sketched component, in the order of components: the released sum of squared counts of its rectangles.
    pub fn values(&self) -> &[f64] {
        &self.0
    }
}

/// Coordinates with large counts.
#[derive(Clone, Debug, PartialEq)]
pub struct HeavyHitters {
    /// Coordinates and released counts, the largest first.
    pub items: Vec<(u64, f64)>,
    /// Whether nothing was left out for being over the limit of nodes a level.
    pub complete: bool,
}

/// The cells of a batch of boxes, in a fixed order: box by box, component by component.
#[derive(Default)]
struct Reads {
    cells: Vec<u64>,
    /// For each cell its sign times the weight of its rectangle.
    factors: Vec<f64>,
    /// How many rectangles each box has in each component of which it has some.
    runs: Vec<Run>,
    /// Where the runs of each box end.
    ends: Vec<usize>,
}

struct Run {
    component: usize,
    rectangles: usize,
}

impl Reads {
    /// Room for so many cells more.
    fn reserve(&mut self, cells: Option<usize>, runs: usize) -> Result<()> {
        let cells = cells.ok_or(Error::Memory)?;
        self.cells.try_reserve(cells).map_err(|_| Error::Memory)?;
        self.factors.try_reserve(cells).map_err(|_| Error::Memory)?;
        self.runs.try_reserve(runs).map_err(|_| Error::Memory)
    }

    fn push(&mut self, cell: usize, factor: f64) {
        self.cells.push(cell as u64);
        self.factors.push(factor);
    }
}

/// What one component adds to a count.
struct Part {
    component: usize,
    value: f64,
    /// The sum of squared weights.
    squares: f64,
    /// In a sketched component: an estimate of the variance of a row, times the squared weights. It is for normal rows.
    spread: f64,
    /// What that is on average for rows of noise of variance 1 alone: for normal noise the squared weights.
    of_noise: f64,
}

impl RangeCounter {
    pub(super) fn new(
        builder: RangeBuilder,
        layout: Layout,
        hash: Option<HashFamily>,
        vector: ContinualVector,
    ) -> Self {
        // A quarter of the rows on either side: far enough to tell their spread, near enough that heavy collisions, in few
        // rows of a rectangle, do not stretch it.
        let places = if layout.depth == 1 { 0 } else { (layout.depth / 4).max(1) };
        let law = vector.release_law();
        let medians = Medians::new(&law, layout.depth);
        let (normal, noise) = if places == 0 || hash.is_none() {
            Default::default()
        } else {
            (middle_spacing(layout.depth, places), law.standard_middle_spacing(layout.depth, places))
        };
        let rows = Box::new(RowLaws { medians, spacing: Spacing { places, normal, noise } });
        Self { rows, builder, layout, hash, vector }
    }

    /// Grid, structure and estimator.
    pub fn shape(&self) -> &RangeShape {
        &self.builder.shape
    }

    /// The parameters.
    pub fn parameters(&self) -> &RangeBuilder {
        &self.builder
    }

    /// The vector of cells underneath: clock, calibration and parameters.
    pub fn vector(&self) -> &ContinualVector {
        &self.vector
    }

    /// The present step, `1..=horizon`.
    pub fn now(&self) -> u64 {
        self.vector.now()
    }

    /// The standard deviation of the noise of one cell at the present step.
    pub fn noise_std(&self) -> f64 {
        self.vector.noise_std()
    }

    /// Moves the clock; see [`ContinualVector::advance`].
    ///
    /// # Errors
    /// [`Error::Time`] for a step in the past or beyond the horizon.
    pub fn advance(&mut self, to: u64) -> Result<()> {
        self.vector.advance(to)
    }

    /// Memory in use, in bytes; the hash functions included.
    pub fn memory(&self) -> usize {
        self.vector.memory() + self.layout.bytes() + self.hash.as_ref().map_or(0, HashFamily::bytes)
    }

    /// Adds weighted points at the present step, each an update of its own; all or nothing. `points` has the coordinates of one
    /// point after the other. Returns how many were dropped, for the operator alone.
    ///
    /// A negative weight takes points away; that they were there before is not checked (paper, section 4). Time: one or
    /// `depth` additions a point and component.
    ///
    /// # Errors
    /// [`Error::Sealed`]; [`Error::Shape`] for coordinates or weights that do not fit; [`Error::Point`] for a point outside of the
    /// grid and [`Error::Excess`] for a weight over the bound, unless they are dropped or clipped; [`Error::Overflow`],
    /// [`Error::Memory`]. Nothing has changed then.
    pub fn update<I: Index>(&mut self, points: &[I], weights: Weights<'_>) -> Result<u64> {
        self.vector.check_open()?;
        let dims = self.layout.axes.len();
        if points.len() % dims != 0 {
            return Err(Error::Shape {
                what: "points must have one coordinate for each axis, one point after the other",
            });
        }
        let count = points.len() / dims;
        let RangeBuilder { base, shape } = &self.builder;
        let checked = check_weights(count, weights, shape.max_weight, base.on_excess, base.invalid)?;

        let mut coordinates = reserved(points.len())?;
        coordinates.resize(points.len(), 0);
        // A dropped point stays in its place with weight zero, which is no update at all.
        let (mut mended, mut dropped) = (None, checked.dropped);
        for (position, point) in points.chunks_exact(dims).enumerate() {
            let mut inside = true;
            for (k, (x, axis)) in point.iter().zip(&self.layout.axes).enumerate() {
                match x.below(axis.size) {
                    Ok(x) => coordinates[k * count + position] = x,
                    Err(_) if base.invalid == Invalid::Drop => inside = false,
                    Err(given) => return Err(Error::Point { position, axis: k, given, size: axis.size }),
                }
            }
            if !inside {
                let mut each = match mended.take() {
                    Some(each) => each,
                    None => {
                        let mut each = reserved(count)?;
                        each.extend((0..count).map(|i| checked.weights().get(i)));
                        each
                    }
                };
                each[position] = 0;
                mended = Some(each);
                // Unless it is counted for its weight already.
                let over = weights.get(position).unsigned_abs() > shape.max_weight.into();
                dropped += u64::from(!over || base.on_excess == OnExcess::Clip);
            }
        }
        let weights = mended.as_deref().map_or(checked.weights(), Weights::Each);
        let points = Points { coordinates: &coordinates, count };
        let (layout, hash) = (&self.layout, self.hash.as_ref());
        self.vector.add(
            count.saturating_mul(layout.moved() as usize),
            checked.total,
            |counters| layout.add(counters, hash, &points, weights),
            |each| layout.add_each(hash, &points, weights, each),
        )?;
        Ok(dropped)
    }

    /// Checks boxes: one interval for each axis, box after box. Gives their number.
    fn check_boxes(&self, boxes: &[Interval]) -> Result<usize> {
        let dims = self.layout.axes.len();
        if boxes.len() % dims != 0 {
            return Err(Error::Shape { what: "boxes must have one interval for each axis, one box after the other" });
        }
        for (i, &(lo, hi)) in boxes.iter().enumerate() {
            let (position, axis) = (i / dims, i % dims);
            let size = self.layout.axes[axis].size;
            if lo > hi || hi > size {
                return Err(Error::Box { position, axis, lo, hi, size });
            }
        }
        Ok(boxes.len() / dims)
    }

    /// The cells of boxes: a function of the boxes alone.
    fn reads_of(&self, boxes: &[Interval]) -> Result<Reads> {
        let Self { layout, hash, .. } = self;
        let dims = layout.axes.len();
        let mut reads = Reads { ends: reserved(self.check_boxes(boxes)?)?, ..Reads::default() };
        let mut parts: Vec<Parts> = layout.axes.iter().map(|_| Parts::default()).collect();
        for intervals in boxes.chunks_exact(dims) {
            // Nothing is in an empty box, and nothing is read for it.
            if intervals.iter().all(|(lo, hi)| lo < hi) {
                for ((parts, axis), &(lo, hi)) in parts.iter_mut().zip(&layout.axes).zip(intervals) {
                    parts.set(axis, lo, hi, self.builder.shape.estimator);
                }
                let cells = layout.components.iter().try_fold(0usize, |sum, component| {
                    let rectangles = layout.rectangles_of(component, &parts)?;
                    sum.checked_add(rectangles.checked_mul(layout.rows(component))?)
                });
                reads.reserve(cells, layout.components.len())?;
                for (number, component) in layout.components.iter().enumerate() {
                    let rectangles = layout.rectangles_of(component, &parts).unwrap_or(0);
                    if rectangles > 0 {
                        reads.runs.push(Run { component: number, rectangles });
                        layout.cells_of_box(hash.as_ref(), component, &parts, |cell, factor| reads.push(cell, factor));
                    }
                }
            }
            reads.ends.push(reads.runs.len());
        }
        Ok(reads)
    }

    /// The cells that a count of these boxes reads, in the order of the read; a cell may stand here more than once.
    ///
    /// # Errors
    /// As [`RangeCounter::count`].
    pub fn cells_of(&self, boxes: &[Interval]) -> Result<Vec<u64>> {
        Ok(self.reads_of(boxes)?.cells)
    }

    /// Reads the cells and hands out, box by box, what each component adds.
    fn read<R: TryCryptoRng + ?Sized>(
        &mut self,
        reads: &Reads,
        with_spread: bool,
        rng: &mut R,
        mut each_box: impl FnMut(&mut dyn Iterator<Item = Part>),
    ) -> Result<()> {
        let mut values = self.vector.release(Cells::Indices(&reads.cells), rng)?;
        values.iter_mut().zip(&reads.factors).for_each(|(value, factor)| *value *= factor);
        let (mut rest, mut factors, mut done) = (&mut values[..], &reads.factors[..], 0);
        for &end in &reads.ends {
            let mut parts = reads.runs[done..end].iter().map(|&Run { component, rectangles }| {
                let rows = self.layout.rows(&self.layout.components[component]);
                let cells = rectangles * rows;
                let (values, others) = core::mem::take(&mut rest).split_at_mut(cells);
                rest = others;
                let (of_run, others) = factors.split_at(cells);
                factors = others;
                let squares = of_run.iter().map(|factor| factor * factor).sum::<f64>() / rows as f64;
                if rows == 1 {
                    let spread = values.iter().map(|value| value * value).sum();
                    return Part { component, value: values.iter().sum(), squares, spread, of_noise: squares };
                }
                let Spacing { places, normal, noise } = self.rows.spacing;
                let (mut value, mut distance, mut sizes) = (0.0, 0.0, 0.0);
                for (rows_of_one, factors) in values.chunks_exact_mut(rows).zip(of_run.chunks_exact(rows)) {
                    value += median(rows_of_one);
                    if with_spread {
                        rows_of_one.sort_unstable_by(f64::total_cmp);
                        distance += rows_of_one[rows / 2 + places] - rows_of_one[rows / 2 - places];
                        sizes += factors[0].abs();
                    }
                }
                // All rows of a component have one variance: this is its unbiased estimate if they are normal.
                let expected = |(mean, variance): (f64, f64)| sizes * sizes * mean * mean + squares * variance;
                let of_row = distance * distance / expected(normal);
                let spread = if with_spread { squares * of_row } else { 0.0 };
                let of_noise = if with_spread { squares * (expected(noise) / expected(normal)) } else { 0.0 };
                Part { component, value, squares, spread, of_noise }
            });
            each_box(&mut parts);
            // What was not asked for is passed by.
            parts.for_each(drop);
            done = end;
        }
        Ok(())
    }

    /// Counts of boxes at the present step, which is sealed: estimates of the total weight of the points inside. A box is one
    /// half-open interval for each axis; `boxes` has those of one box after the other. Counts are not clamped: they
    /// may be negative.
    ///
    /// Unbiased, over the noise and the choice of a hash seed. An empty box is 0 and reads nothing. All boxes of a call are one
    /// read, and boxes of one step share their noise. Which cells are read depends on the boxes alone; time and memory are
    /// linear in their number, [`BoxError::cells_read`](super::BoxError::cells_read).
    ///
    /// # Errors
    /// [`Error::Shape`] or [`Error::Box`] for boxes that the grid does not have, [`Error::Memory`], [`Error::Entropy`]; nothing has
    /// been released then.
    pub fn count<R: TryCryptoRng + ?Sized>(&mut self, boxes: &[Interval], rng: &mut R) -> Result<Vec<f64>> {
        let reads = self.reads_of(boxes)?;
        let mut values = reserved(reads.ends.len())?;
        self.read(&reads, false, rng, |parts| values.push(parts.map(|part| part.value).sum::<f64>() + 0.0))?;
        Ok(values)
    }

    /// Counts of boxes with standard deviations, over the noise and the hash functions; reads what
    /// [`RangeCounter::count`] reads.
    ///
    /// With `v` the variance of a cell, a dense component adds the sum of squared weights times `v`: exact. A sketched one adds
    /// `m(depth)` (less, as far as the noise is more than collisions and its median varies less than a normal one's) times
    /// the sum of squared weights times `v + F2 / width`, and what its own rectangles do to each other, at most
    /// the square of its share of the count over `width`. `F2` is its second moment where one was released
    /// ([`RangeCounter::second_moments`]), which bounds the variance, by far where few rectangles are heavy: a median passes
    /// most of them by. Else the rows' spread about the median in the rectangles read stands for `v + F2 / width`, though
    /// no less than the noise is assumed: it tells what a median sees. At depth 1 there is no spread, and squares of
    /// the cells read stand in.
    ///
    /// # Errors
    /// As [`RangeCounter::count`], and [`Error::Shape`] for moments of another structure.
    pub fn count_with_error<R: TryCryptoRng + ?Sized>(
        &mut self,
        boxes: &[Interval],
        moments: Option<&SecondMoments>,
        rng: &mut R,
    ) -> Result<Counts> {
        let reads = self.reads_of(boxes)?;
        let sketched = self.layout.components.len() - self.layout.dense();
        if moments.is_some_and(|moments| moments.0.len() != sketched) {
            return Err(Error::Shape {
                what: "there must be one second moment for each sketched component of this structure",
            });
        }
        let count = reads.ends.len();
        let mut counts = Counts { values: reserved(count)?, stds: reserved(count)? };
        // Which of the sketched components a component is.
        let mut places = reserved(self.layout.components.len())?;
        places.extend(self.layout.components.iter().scan(0, |next, component| {
            let place = (!component.is_dense()).then_some(*next);
            *next += usize::from(place.is_some());
            Some(place)
        }));
        let v = self.vector.release_variance();
        let (medians, width) = (self.rows.medians, self.builder.shape.width as f64);
        self.read(&reads, moments.is_none(), rng, |parts| {
            let (mut value, mut dense, mut noise, mut other) = (0.0, 0.0, 0.0, 0.0);
            for part in parts {
                value += part.value;
                match (places[part.component], moments) {
                    (None, _) => dense += part.squares * v,
                    (Some(place), Some(moments)) => {
                        noise += part.squares * v;
                        let own = (part.value * part.value - medians.noise * part.squares * v).max(0.0);
                        other += (part.squares * moments.0[place].max(0.0) + own) / width;
                    }
                    (Some(_), None) => {
                        noise += part.squares * v;
                        other += part.spread - part.of_noise * v;
                    }
                }
            }
            counts.values.push(value + 0.0);
            let other = other.max(0.0);
            counts.stds.push(sqrt(dense + medians.normal * (noise + other) - medians.below_normal(noise, other)));
        })?;
        Ok(counts)
    }

    /// Releases the second moment of each sketched component at the present step: unbiased, as
    /// [`CountSketch::second_moment`](crate::CountSketch::second_moment). Reads all cells.
    ///
    /// # Errors
    /// [`Error::Memory`], [`Error::Entropy`]; nothing has been released then.
    pub fn second_moments<R: TryCryptoRng + ?Sized>(&mut self, rng: &mut R) -> Result<SecondMoments> {
        let cells = self.vector.release_all(rng)?;
        let (depth, width) = (self.layout.depth as f64, self.builder.shape.width as f64);
        let v = self.vector.release_variance();
        let sketched = self.layout.components.iter().filter(|component| !component.is_dense());
        let moment = |cells: &[f64]| cells.iter().map(|cell| cell * cell).sum::<f64>() / depth - width * v;
        Ok(SecondMoments(sketched.map(|component| moment(&cells[self.layout.range(component)])).collect()))
    }

    /// Counts of the cells of a coarser grid at the present step, which is sealed: a heat map. Each has `2^log_sides[k]`
    /// coordinates of axis `k` (the last one may have fewer); 62 or more takes the whole axis. Row-major, the last axis
    /// fastest; `ceil(size / 2^log_side)` cells an axis. As a [`RangeCounter::count`] of all of them.
    ///
    /// # Errors
    /// As [`RangeCounter::count`].
    pub fn grid<R: TryCryptoRng + ?Sized>(&mut self, log_sides: &[u32], rng: &mut R) -> Result<Vec<f64>> {
        let axes = &self.layout.axes;
        if log_sides.len() != axes.len() {
            return Err(Error::Shape { what: "a grid must have one log_side for each axis" });
        }
        let side = |k: usize| 1u64 << log_sides[k].min(62);
        let cells = (0..axes.len())
            .try_fold(1usize, |product, k| product.checked_mul(usize::try_from(axes[k].size.div_ceil(side(k))).ok()?));
        let cells = cells.ok_or(Error::Memory)?;
        let mut boxes = reserved(cells.checked_mul(axes.len()).ok_or(Error::Memory)?)?;
        let mut places = [0u64; super::MAX_AXES];
        for _ in 0..cells {
            boxes.extend((0..axes.len()).map(|k| {
                let lo = places[k] * side(k);
                (lo, (lo + side(k)).min(axes[k].size))
            }));
            for k in (0..axes.len()).rev() {
                places[k] += 1;
                if places[k] * side(k) < axes[k].size {
                    break;
                }
                places[k] = 0;
            }
        }
        self.count(&boxes, rng)
    }

    /// Counts along one axis, in steps of `2^log_side` coordinates, over all of the other axes; as [`RangeCounter::grid`].
    ///
    /// # Errors
    /// As [`RangeCounter::count`], and [`Error::Parameter`] for an axis that there is none of.
    pub fn marginal<R: TryCryptoRng + ?Sized>(&mut self, axis: usize, log_side: u32, rng: &mut R) -> Result<Vec<f64>> {
        let mut log_sides = [62; super::MAX_AXES];
        let log_sides = &mut log_sides[..self.layout.axes.len()];
        *log_sides.get_mut(axis).ok_or(Error::Parameter {
            name: "axis",
            given: axis.into(),
            allowed: "below the number of axes",
        })? = log_side;
        let log_sides = &*log_sides;
        self.grid(log_sides, rng)
    }

    fn check_one_axis(&self) -> Result<u64> {
        match self.layout.axes[..] {
            [axis] => Ok(axis.size),
            _ => Err(Error::Parameter {
                name: "sizes",
                given: self.layout.axes.len().into(),
                allowed: "a single axis for prefix counts, quantiles and heavy hitters",
            }),
        }
    }

    /// One axis only: counts of the coordinates below each of `ends`, at the present step, which is sealed.
    ///
    /// # Errors
    /// As [`RangeCounter::count`], and [`Error::Parameter`] where there are more axes.
    pub fn prefix<R: TryCryptoRng + ?Sized>(&mut self, ends: &[u64], rng: &mut R) -> Result<Vec<f64>> {
        self.check_one_axis()?;
        let mut boxes = reserved(ends.len())?;
        boxes.extend(ends.iter().map(|&end| (0, end)));
        self.count(&boxes, rng)
    }

    /// The error that the released count of all points must be above for shares of it to mean something: 95 % of the releases
    /// of an empty counter are off by less. A count of noise alone is above it, so on this one side, in 2.5 % of cases. With a
    /// total just above it a quantile may be any, but its error in rank is known; below, it may not even have the sign of the
    /// data. `std` is the count's, from public and released values ([`RangeCounter::count_with_error`]); the factor is a
    /// quantile of the law of the noise.
    fn least_total(&self, std: f64) -> f64 {
        std * self.vector.release_law().standard_quantile_of_sums(UNCLEAR)
    }

    /// One axis only: for each `q` a coordinate `x` at which the released prefix counts cross `q` times the released total:
    /// below `q * total` up to `x`, no more so up to `x + 1` (a released prefix count outside of the axis' ends). By descent
    /// of the binary tree, one read a level for all `q` together; which counts are read next depends on those released before.
    ///
    /// `None` if the released total is not above its own 95 % error, so that nothing tells it from that of an empty counter:
    /// decided from released values and the law of the noise. Only the total has been read then.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless `0 <= q <= 1` and where there are more axes; as [`RangeCounter::count`]. If the generator
    /// fails on the way, what was read before is released.
    pub fn quantile<R: TryCryptoRng + ?Sized>(&mut self, qs: &[f64], rng: &mut R) -> Result<Option<Vec<u64>>> {
        let size = self.check_one_axis()?;
        if let Some(&q) = qs.iter().find(|q| !(0.0..=1.0).contains(*q)) {
            return Err(Error::Parameter { name: "q", given: q.into(), allowed: "from 0 to 1" });
        }
        let mut found = reserved(qs.len())?;
        found.resize(qs.len(), 0u64);
        let mut middles = reserved(qs.len())?;
        let whole = self.count_with_error(&[(0, size)], None, rng)?;
        let (total, std) = (whole.values[0], whole.stds[0]);
        if total <= self.least_total(std) {
            return Ok(None);
        }
        let height = u64::BITS - (size - 1).leading_zeros();
        for level in (0..height).rev() {
            // Each stands at the start of a node of twice this length: is the target reached in its left half?
            middles.clear();
            middles.extend(found.iter().map(|start| start + (1 << level)).filter(|&middle| middle < size));
            let counts = self.prefix(&middles, rng)?;
            let mut counts = counts.iter();
            for (start, q) in found.iter_mut().zip(qs) {
                if *start + (1 << level) < size && counts.next().is_some_and(|&count| count < q * total) {
                    *start += 1 << level;
                }
            }
        }
        Ok(Some(found))
    }

    /// One axis only: the released share of all points that lie below each of `ends`, at the present step, which is sealed. Not
    /// clamped, and not made monotone. One read.
    ///
    /// `None` if the released total is not above its own 95 % error, as for [`RangeCounter::quantile`].
    ///
    /// # Errors
    /// As [`RangeCounter::prefix`].
    pub fn cdf<R: TryCryptoRng + ?Sized>(&mut self, ends: &[u64], rng: &mut R) -> Result<Option<Vec<f64>>> {
        let size = self.check_one_axis()?;
        let mut boxes = reserved(ends.len().saturating_add(1))?;
        boxes.extend(ends.iter().chain([&size]).map(|&end| (0, end)));
        let Counts { values: mut shares, stds } = self.count_with_error(&boxes, None, rng)?;
        let (Some(total), Some(&std)) = (shares.pop(), stds.last()) else { return Ok(None) };
        if total <= self.least_total(std) {
            return Ok(None);
        }
        shares.iter_mut().for_each(|share| *share /= total);
        Ok(Some(shares))
    }

    /// One axis only: coordinates whose released count is at least `threshold`, the largest first, by descent of the tree at the
    /// present step, which is sealed. The children of a node are read if its released count is within two standard
    /// deviations of the noise of `threshold` or above, and it is among the `limit` largest of its level: a function of released
    /// values alone. So a level reads `limit * 2^a` nodes at most.
    ///
    /// All totals must be non-negative for this to make sense: a node may hide a large count beside a negative one.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless `threshold` is a positive number and `limit` at least 1, and where there are more axes;
    /// [`Error::Memory`], [`Error::Entropy`]. If the generator fails on the way, what was read before is released.
    pub fn heavy_hitters<R: TryCryptoRng + ?Sized>(
        &mut self,
        threshold: f64,
        limit: usize,
        rng: &mut R,
    ) -> Result<HeavyHitters> {
        self.check_one_axis()?;
        if !(threshold > 0.0 && threshold.is_finite()) {
            let allowed = "a positive number";
            return Err(Error::Parameter { name: "threshold", given: threshold.into(), allowed });
        }
        if limit == 0 {
            return Err(Error::Parameter { name: "limit", given: 0u64.into(), allowed: "at least 1" });
        }
        let axis = self.layout.axes[0];
        let v = self.vector.release_variance();
        let mut complete = true;
        let mut nodes: Vec<u64> = (0..axis.nodes(axis.levels - 1)).collect();
        for level in (0..axis.levels).rev() {
            // On one axis a component is a level.
            let dense = self.layout.components[level as usize].is_dense();
            let std = sqrt(if dense { v } else { v * self.rows.medians.noise });
            let counts = self.nodes(level, &nodes, rng)?;
            let mut large: Vec<(u64, f64)> = reserved(nodes.len())?;
            let least = if level == 0 { threshold } else { threshold - 2.0 * std };
            large.extend(nodes.iter().copied().zip(counts).filter(|(_, count)| *count >= least));
            large.sort_by(|a, b| b.1.total_cmp(&a.1));
            complete &= large.len() <= limit;
            large.truncate(limit);
            if level == 0 {
                return Ok(HeavyHitters { items: large, complete });
            }
            // In a fixed order, so that neighbours are read side by side.
            large.sort_unstable_by_key(|&(index, _)| index);
            let children = |index: u64| index << axis.spacing..((index + 1) << axis.spacing).min(axis.nodes(level - 1));
            nodes.clear();
            nodes.try_reserve(large.len() << axis.spacing).map_err(|_| Error::Memory)?;
            nodes.extend(large.iter().flat_map(|&(index, _)| children(index)));
        }
        // There is a level, and the leaves returned.
        Ok(HeavyHitters { items: Vec::new(), complete })
    }

    /// The counts of nodes of a level of the only axis.
    fn nodes<R: TryCryptoRng + ?Sized>(&mut self, level: u32, nodes: &[u64], rng: &mut R) -> Result<Vec<f64>> {
        let component = &self.layout.components[level as usize];
        let mut reads = Reads { ends: reserved(nodes.len())?, ..Reads::default() };
        reads.reserve(nodes.len().checked_mul(self.layout.rows(component)), nodes.len())?;
        for &index in nodes {
            self.layout.cells_of_node(self.hash.as_ref(), component, index, |cell, sign| reads.push(cell, sign));
            reads.runs.push(Run { component: level as usize, rectangles: 1 });
            reads.ends.push(reads.runs.len());
        }
        let mut values = reserved(nodes.len())?;
        self.read(&reads, false, rng, |parts| values.push(parts.map(|part| part.value).sum::<f64>() + 0.0))?;
        Ok(values)
    }

    pub(crate) fn vector_mut(&mut self) -> &mut ContinualVector {
        &mut self.vector
    }

    #[cfg(test)]
    pub(super) fn layout(&self) -> &Layout {
        &self.layout
    }
}
