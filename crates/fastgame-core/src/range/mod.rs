//! Orthogonal range counts under continual observation: how many points lie in a box of a grid, at any time step. Paper,
//! section 4 and appendix D.2 (Theorem D.2 static, which is `horizon = 1`, Theorem 4.3 dynamic).
//!
//! The grid is cut into rectangles in several ways, the *components*: one kept level of dyadic intervals per axis
//! ([`levels`]). Small components are stored a cell a rectangle, large ones as CountSketches ([`layout`]), all in one
//! [`ContinualVector`](crate::ContinualVector). A box is a weighted sum of rectangles ([`boxes`]), so its count is estimated from a
//! fixed list of cells. All noise and all privacy logic is the vector's.
//!
//! Sensitivity: one update moves one cell in each dense component and `depth` in each sketched one, by at most `max_weight`.
//! Which cells a box reads depends on the box alone. Cost: an update takes one or `depth` additions a component; a box reads
//! `O((2^a log B)^d)` rectangles, `(2 log B)^d` at most with the paper's structure, whatever the number of points and the horizon.

mod boxes;
mod counter;
mod layout;
mod levels;
mod plan;

use alloc::vec::Vec;

pub use self::boxes::Estimator;
pub use self::counter::{Counts, HeavyHitters, Interval, RangeCounter, SecondMoments};
pub use self::layout::{MAX_AXES, MAX_COMPONENTS};
pub use self::levels::{Levels, MAX_AXIS, MAX_SPACING};
pub use self::plan::{BoxError, RangePlan};

use self::layout::Layout;
use crate::calibration::{Mechanism, Unit};
use crate::error::Result;
use crate::hash::HashFamily;
use crate::math::mix;
use crate::privacy::Loss;
use crate::sketch::SketchShape;
use crate::vector::{Builder, ContinualVector, Invalid, OnExcess};

/// Grid, structure and estimator of a range counter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeShape {
    /// The sizes of the axes, one to six, each from 1 to `2^62`.
    pub sizes: Vec<u64>,
    /// Buckets in a row of a sketched component, a power of two.
    pub width: usize,
    /// Rows of a sketched component, an odd number.
    pub depth: usize,
    /// The largest absolute weight of one update.
    pub max_weight: u32,
    /// The seed of the hash functions. Public: it says where a rectangle goes, and protects nothing.
    pub hash_seed: u64,
    /// Which levels of each axis are kept.
    pub levels: Levels,
    /// How boxes are estimated.
    pub estimator: Estimator,
}

impl RangeShape {
    /// A grid of these sizes with sketches of 5 rows of 4096 buckets, every second level, least squares.
    pub fn new(sizes: &[u64]) -> Self {
        Self {
            sizes: sizes.to_vec(),
            width: 4096,
            depth: 5,
            max_weight: 1,
            hash_seed: 0,
            levels: Levels::Every(2),
            estimator: Estimator::LeastSquares,
        }
    }

    /// The sketch that a component may be.
    pub(crate) fn sketch(&self) -> SketchShape {
        let Self { width, depth, max_weight, hash_seed, .. } = *self;
        SketchShape { width, depth, max_weight, hash_seed }
    }
}

/// Collects the parameters of a [`RangeCounter`].
#[derive(Clone, Debug)]
#[must_use]
pub struct RangeBuilder {
    base: Builder,
    shape: RangeShape,
}

impl RangeBuilder {
    /// A counter of this shape with the horizon, budget and policies of `base`; cells and bound of `base` are not used.
    pub fn new(base: Builder, shape: RangeShape) -> Self {
        Self { base, shape }
    }

    /// Buckets in a row of a sketched component, a power of two up to `2^30`.
    pub fn width(mut self, width: usize) -> Self {
        self.shape.width = width;
        self
    }

    /// Rows of a sketched component, an odd number up to 63.
    pub fn depth(mut self, depth: usize) -> Self {
        self.shape.depth = depth;
        self
    }

    /// The largest absolute weight of one update, `1..=2^31`; 1 by default.
    pub fn max_weight(mut self, max_weight: u32) -> Self {
        self.shape.max_weight = max_weight;
        self
    }

    /// The seed of the hash functions; 0 by default. Choose it at random, or points may have been made to collide.
    pub fn hash_seed(mut self, seed: u64) -> Self {
        self.shape.hash_seed = seed;
        self
    }

    /// Which levels are kept; every second by default.
    pub fn levels(mut self, levels: Levels) -> Self {
        self.shape.levels = levels;
        self
    }

    /// How boxes are estimated; by least squares by default.
    pub fn estimator(mut self, estimator: Estimator) -> Self {
        self.shape.estimator = estimator;
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

    /// What happens to invalid elements: points outside of the grid, weights over the bound.
    pub fn invalid(mut self, invalid: Invalid) -> Self {
        self.base = self.base.invalid(invalid);
        self
    }

    /// Grid, structure and estimator.
    pub fn shape(&self) -> &RangeShape {
        &self.shape
    }

    /// What all answers together will cost.
    pub fn loss(&self) -> Loss {
        self.base.loss()
    }

    /// The components, and the parameters of the vector underneath.
    pub(crate) fn vector(&self) -> Result<(Layout, Builder)> {
        let layout = Layout::new(&self.shape)?;
        let blocks = layout.blocks()?;
        let vector = self.base.clone().blocks(&blocks).cells_of_update(self.shape.max_weight, layout.moved());
        Ok((layout, vector))
    }

    /// As [`Builder::insecure_key`].
    ///
    /// # Errors
    /// As [`RangeBuilder::build`].
    pub fn insecure_key(&self, structure: &str, seed: u64) -> Result<[u8; 32]> {
        // Two grids may have the same blocks.
        let RangeShape { sizes, hash_seed, levels, .. } = &self.shape;
        let words = sizes.iter().copied().chain([levels.spacing()?.into()]);
        let parameter = words.fold(*hash_seed, |parameter, word| mix(parameter ^ word));
        Ok(self.vector()?.1.insecure_key_with(structure, seed, parameter))
    }

    /// Builds the counter, all cells zero, the clock at step 1.
    ///
    /// # Errors
    /// [`Error::Parameter`](crate::Error::Parameter) as [`Builder::build`], and for an even depth, a width that is no power of
    /// two, no axes or more than six, an axis of size 0 or beyond `2^62`, a spacing of levels outside of `1..=8`, more than
    /// 65536 components; [`Error::Memory`](crate::Error::Memory).
    pub fn build(&self) -> Result<RangeCounter> {
        let (layout, vector) = self.vector()?;
        Ok(self.assemble(layout, vector.build()?))
    }

    /// The counter with exact releases, for tests of what is computed from them.
    #[cfg(test)]
    pub(crate) fn build_exact(&self) -> Result<RangeCounter> {
        let (layout, vector) = self.vector()?;
        Ok(self.assemble(layout, vector.build_exact()?))
    }

    fn assemble(&self, layout: Layout, vector: ContinualVector) -> RangeCounter {
        let hash = self.hash(&layout);
        RangeCounter::new(self.clone(), layout, hash, vector)
    }

    /// There are none if all components are dense.
    fn hash(&self, layout: &Layout) -> Option<HashFamily> {
        let SketchShape { width, depth, hash_seed, .. } = self.shape.sketch();
        let sketched = layout.dense() < layout.components.len();
        sketched.then(|| HashFamily::new(hash_seed, depth, width.trailing_zeros()))
    }

    /// Memory beside the cells.
    pub(crate) fn bytes_beside(&self, layout: &Layout) -> u64 {
        (layout.bytes() + self.hash(layout).as_ref().map_or(0, HashFamily::bytes)) as u64
    }
}

#[cfg(test)]
mod tests;
