//! The sensitivity of the Laplace tree in the L1 norm, exactly.
//!
//! A unit of norm one shifts the sums at some leaves by one. What it costs is the least total shift of the node variables that
//! explains it, `min |r|_1` subject to path sums `L r = 1[leaf in S]`: with `S_v` the sum of `r` down to node `v` that is `sum over
//! nodes of |S_v - S_parent|`, the total variation of a labelling of the tree whose leaves are given and whose ground, above the
//! root, is 0. It has an optimal labelling by 0 and 1 (cut it at a random height), so it is a minimum cut: the number of edges
//! between unequal labels.
//!
//! - [`Unit::Update`](super::Unit): the leaves from `s` on are 1. The path to the boundary between the leaves `s - 1` and `s`
//!   splits at each level into an all-zero and an all-one sibling, and each change of label cuts one edge: with its label kept
//!   constant over two levels one sibling in two is cut, so the worst boundary costs `floor(h / 2) + 1`.
//! - [`Unit::Lifetime`](super::Unit): the leaves of an interval are 1. Two boundaries, `max(1, h)`.
//!
//! The proof is in `docs/mechanisms.md`; the test compares with the minimum over all labellings, for all boundaries.

use super::Unit;

/// The largest L1 norm of a least shift, over all units of norm one, for a tree with `levels` levels below its root.
pub(crate) fn tau(levels: u32, unit: Unit) -> f64 {
    f64::from(match unit {
        Unit::Update => levels / 2 + 1,
        Unit::Lifetime => levels.max(1),
    })
}

#[cfg(test)]
mod tests;
