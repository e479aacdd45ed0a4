//! A box as a weighted sum of nodes. A box is an interval an axis; per axis the nodes have weights such that those of the
//! nodes that contain a coordinate sum up to 1 inside of the interval and to 0 outside. Axes multiply: the weight of a
//! rectangle is the product of the weights of its sides, and so is the sum of squares over all rectangles.
//!
//! **Cover**: the greedy disjoint cover by the largest nodes, all weights 1 (paper, section 4.1).
//!
//! **Least squares**: the weights with the least sum of squares on the top level and the children of *cut* nodes, those that an
//! end of the interval lies strictly inside of. Let the potential of a node be the sum of weights from the top down to it: the
//! weight is the potential's rise over the parent's, so the sum of squares is the power in a network of unit resistors on the
//! tree's edges, one from each top node to ground. Nodes that are not cut are clamped to 1 or 0. From below, a cut node sees
//! its children as conductance 1 (not cut, to its clamp) or `g / (1 + g)` (cut, to the child's own `V`); together they are a
//! conductance `g` to the weighted mean `V`. From above, a cut node below one of potential `P` (ground: 0) has potential
//! `(g V + P) / (g + 1)`.
//!
//! The cover is the same with the potential of all cut nodes held at 0. Two nodes a level are cut at most, so an axis has
//! `O(2^a log B)` nodes and the work is as much.

use alloc::vec::Vec;

use super::levels::Axis;

/// How a box is estimated from the counts of nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Estimator {
    /// The disjoint cover by the largest rectangles: the paper's, and the fewest cells to read.
    Cover,
    /// The weights of the least sum of squares on the nodes about the ends: the least noise.
    #[default]
    LeastSquares,
}

/// A node of one axis with its weight.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Node {
    pub(crate) index: u64,
    pub(crate) weight: f64,
}

/// The nodes of an interval, level by level.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parts {
    nodes: Vec<Node>,
    /// Where the nodes of each level start and end; level 0 are the leaves.
    ranges: Vec<(usize, usize)>,
}

/// A node that an end of the interval cuts: what its children amount to.
#[derive(Clone, Copy)]
struct Cut {
    index: u64,
    /// The conductance of all children together, and the potential that they pull to.
    conductance: f64,
    pull: f64,
}

/// An interval `lo..hi` on an axis, `lo < hi <= size`.
#[derive(Clone, Copy)]
struct Interval<'a> {
    axis: &'a Axis,
    lo: u64,
    hi: u64,
}

impl Interval<'_> {
    /// The indices of the cut nodes of a level: one for each end that lies inside of a node. The end of the axis cuts nothing.
    fn cuts(&self, level: u32) -> [Option<u64>; 2] {
        let shift = self.axis.shift(level);
        let inside = |end: u64| (end != self.axis.size && end & ((1 << shift) - 1) != 0).then_some(end >> shift);
        let (low, high) = (inside(self.lo), inside(self.hi));
        [low, if high == low { None } else { high }]
    }

    /// The children of a node of a level above the leaves.
    fn children(&self, level: u32, index: u64) -> core::ops::Range<u64> {
        let spacing = self.axis.spacing;
        index << spacing..((index + 1) << spacing).min(self.axis.nodes(level - 1))
    }

    /// 1 if a node that is not cut lies inside, else 0.
    fn clamp(&self, level: u32, index: u64) -> f64 {
        let start = index << self.axis.shift(level);
        if (self.lo..self.hi).contains(&start) { 1.0 } else { 0.0 }
    }
}

fn find(cuts: &[Option<Cut>; 2], index: u64) -> Option<&Cut> {
    cuts.iter().flatten().find(|cut| cut.index == index)
}

impl Parts {
    /// The nodes of `lo..hi` with their weights, in the room of former ones; those of weight zero are left out. An empty
    /// interval has none.
    pub(crate) fn set(&mut self, axis: &Axis, lo: u64, hi: u64, estimator: Estimator) {
        self.nodes.clear();
        self.ranges.clear();
        self.ranges.resize(axis.levels as usize, (0, 0));
        if lo == hi {
            return;
        }
        let interval = Interval { axis, lo, hi };
        // Up: what the children of each cut node amount to. No leaf is cut.
        let mut cuts = [[None; 2]; u64::BITS as usize];
        for level in 1..axis.levels {
            cuts[level as usize] = interval.cuts(level).map(|index| {
                let index = index?;
                let (mut conductance, mut current) = (0.0, 0.0);
                for child in interval.children(level, index) {
                    let (part, pull) = match find(&cuts[level as usize - 1], child) {
                        Some(cut) => (cut.conductance / (1.0 + cut.conductance), cut.pull),
                        None => (1.0, interval.clamp(level - 1, child)),
                    };
                    conductance += part;
                    current += part * pull;
                }
                Some(Cut { index, conductance, pull: current / conductance })
            });
        }
        // Down: potentials of the cut nodes, rises to all children. Above the top is the ground.
        let top = axis.levels - 1;
        let mut above = [Some((0..axis.nodes(top), 0.0)), None];
        for level in (0..axis.levels).rev() {
            let mut below = [None, None];
            let start = self.nodes.len();
            for (nodes, ground) in above.into_iter().flatten() {
                for index in nodes {
                    let potential =
                        match cuts[level as usize].iter().position(|cut| cut.is_some_and(|cut| cut.index == index)) {
                            None => interval.clamp(level, index),
                            Some(place) => {
                                let potential = match (estimator, cuts[level as usize][place]) {
                                    (Estimator::LeastSquares, Some(Cut { conductance, pull, .. })) => {
                                        (conductance * pull + ground) / (conductance + 1.0)
                                    }
                                    _ => 0.0,
                                };
                                below[place] = Some((interval.children(level, index), potential));
                                potential
                            }
                        };
                    let weight = potential - ground;
                    if weight != 0.0 {
                        self.nodes.push(Node { index, weight });
                    }
                }
            }
            self.ranges[level as usize] = (start, self.nodes.len());
            above = below;
        }
    }

    /// The nodes of a level.
    #[inline]
    pub(crate) fn level(&self, level: u32) -> &[Node] {
        let (start, end) = self.ranges[level as usize];
        &self.nodes[start..end]
    }

    /// The sum of squared weights on a level.
    pub(crate) fn squares(&self, level: u32) -> f64 {
        self.level(level).iter().map(|node| node.weight * node.weight).sum()
    }
}
