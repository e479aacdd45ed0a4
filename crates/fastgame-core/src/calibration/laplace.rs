//! The sensitivity of the Laplace tree in the L1 norm, exactly.
//!
//! A unit of norm one shifts the sums at some leaves by one. What it costs is the least total shift of the node variables that
//! explains it, `min |r|_1` subject to path sums `L r = 1[leaf in S]`: with `S_v` the sum of `r` down to node `v` that is `sum over
//! nodes of |S_v - S_parent|`, the total variation of a labelling of the tree whose leaves are given and whose ground, above the
//! root, is 0. It has an optimal labelling by 0 and 1 (cut it at a random height), so it is a minimum cut: the number of edges
//! between unequal labels.
//!
//! Seen from above, a subtree and the edge above it are one of three things: they cost `m` whatever the label above (a *tie*), or `m`
//! under one label and `m + 1` under the other (they *want* that label). A leaf wants its own. Going up from a boundary, each level
//! brings a sibling that is all zeros or all ones, so wants 0 or 1 and costs nothing else:
//!
//! - a tie then wants what the sibling wants, at the same `m`;
//! - what agrees with the sibling goes on wanting that;
//! - what disagrees with it becomes a tie, and `m` grows by one.
//!
//! No two ties follow each other, and the ground above the root wants 0.
//!
//! - [`Unit::Update`](super::Unit): the leaves from `s` on are 1. The worst `s` is `...010101` in binary, with a tie at every second
//!   level: `floor(h / 2) + 1`.
//! - [`Unit::Lifetime`](super::Unit): the leaves of an interval are 1. The worst has two such boundaries, which meet at the
//!   root: `max(1, h)`.
//!
//! The proof is in `docs/proof-laplace-tree.md`; the test compares with the minimum over all labellings, for all boundaries.

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
