//! One axis of a grid and the levels of its tree that are kept. Paper, section 4.1: level `l` cuts the axis into dyadic
//! intervals of `2^l` coordinates, `l = 0 .. log2(B) - 1`; a full axis is two halves. Here every `a`-th of these levels is
//! kept, from the leaves up, so that a node has up to `2^a` children and up to `2^a` nodes stand side by side at the top.
//!
//! An axis of any size is the left part of the next power of two. What lies beyond has no nodes: a node stands for the
//! coordinates that exist. Everything here takes constant time.

use crate::error::{Error, Result};

/// The largest size of an axis, `2^62`.
pub const MAX_AXIS: u64 = 1 << 62;
/// The largest spacing of kept levels: a cut node has up to `2^a` children, and all of them are read.
pub const MAX_SPACING: u32 = 8;

/// Which levels of each axis are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Levels {
    /// Every `a`-th level from the leaves up, `1 <= a <= 8`: `ceil(log2(B) / a)` an axis, at least one. Wider spacing
    /// makes for fewer components, so cheaper updates and more of the budget for each, and for more cells a box.
    Every(u32),
    /// The paper's: all levels `0 .. log2(B) - 1`. The same as `Every(1)`.
    Dyadic,
}

impl Levels {
    /// The distance of kept levels.
    pub(crate) fn spacing(self) -> Result<u32> {
        match self {
            Self::Dyadic => Ok(1),
            Self::Every(a) if (1..=MAX_SPACING).contains(&a) => Ok(a),
            Self::Every(a) => Err(Error::Parameter {
                name: "levels",
                given: a.into(),
                allowed: "an integer from 1 to 8: every how many levels one is kept",
            }),
        }
    }
}

/// The tree over one axis. Its kept levels are numbered from the leaves, 0, up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Axis {
    pub(crate) size: u64,
    pub(crate) spacing: u32,
    /// How many levels are kept.
    pub(crate) levels: u32,
}

impl Axis {
    /// A tree over `size` coordinates, `1 <= size <= 2^62`.
    pub(crate) fn new(size: u64, spacing: u32) -> Self {
        // ceil(log2 size).
        let height = u64::BITS - (size - 1).leading_zeros();
        Self { size, spacing, levels: height.div_ceil(spacing).max(1) }
    }

    /// The binary logarithm of the length of a node.
    #[inline]
    pub(crate) fn shift(&self, level: u32) -> u32 {
        level * self.spacing
    }

    /// How many nodes a level has.
    #[inline]
    pub(crate) fn nodes(&self, level: u32) -> u64 {
        ((self.size - 1) >> self.shift(level)) + 1
    }
}
