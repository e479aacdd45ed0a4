//! The plain binary tree mechanism, written out in full as the tests' yardstick: the two factors of the
//! counting matrix, and the noise as the sum of explicitly held node variables.
//!
//! A tree of `levels = h` has `T = 2^h` leaves and `2T - 1` nodes. Nodes are numbered breadth first from the
//! root: node `i` of level `j` (level 0 is the root, level `h` the leaves) is `2^j - 1 + i`, so the leaves come
//! last. Steps count from 1: step `t` is leaf `t - 1`.
//!
//! Source: sections 2 and 3 and appendix B of the paper. Cost: O(T^2) numbers a matrix, so only for small T.

use alloc::vec;
use alloc::vec::Vec;

/// The number of the node at `level` above (or at) `leaf`.
fn ancestor(levels: u32, level: u32, leaf: usize) -> usize {
    (1 << level) - 1 + (leaf >> (levels - level))
}

/// `L`, T rows and 2T - 1 columns: row t has a one at each node of the path to leaf t.
pub(crate) fn path_matrix(levels: u32) -> Vec<Vec<f64>> {
    let steps = 1 << levels;
    let row = |leaf| {
        let mut row = vec![0.0; 2 * steps - 1];
        for level in 0..=levels {
            row[ancestor(levels, level, leaf)] = 1.0;
        }
        row
    };
    (0..steps).map(row).collect()
}

/// `R`, the paper's strategy matrix, 2T - 1 rows and T columns, with `L R` the lower triangular ones.
///
/// An input adds 1/2 at the root and, at each inner level, plus or minus 1/2 at the sibling of its path's node
/// (plus where that sibling is a right child); at the leaf level it adds 1/2 to its own leaf besides.
/// The paper takes T > 1; for T = 1 the only factor is the number one.
pub(crate) fn strategy_matrix(levels: u32) -> Vec<Vec<f64>> {
    let steps: usize = 1 << levels;
    let mut matrix = vec![vec![0.0; steps]; 2 * steps - 1];
    if levels == 0 {
        matrix[0][0] = 1.0;
        return matrix;
    }
    for leaf in 0..steps {
        matrix[0][leaf] = 0.5;
        for level in 1..=levels {
            let index = leaf >> (levels - level);
            let sibling = index ^ 1;
            let sign = if sibling & 1 == 1 { 0.5 } else { -0.5 };
            matrix[(1 << level) - 1 + sibling][leaf] = sign;
        }
        matrix[steps - 1 + leaf][leaf] = 0.5;
    }
    matrix
}

/// The plain mechanism: every node variable is drawn beforehand and held.
pub(crate) struct PlainTree {
    levels: u32,
    nodes: Vec<f64>,
}

impl PlainTree {
    /// `nodes` holds the 2T - 1 node variables, breadth first from the root.
    pub(crate) fn new(levels: u32, nodes: Vec<f64>) -> Self {
        assert_eq!(nodes.len(), (2 << levels) - 1, "a tree of {levels} levels has 2T - 1 nodes");
        Self { levels, nodes }
    }

    /// The noise of `step`, `1 <= step <= T`: the sum of the variables on the path of `bin(step - 1)`.
    pub(crate) fn noise(&self, step: u64) -> f64 {
        assert!(step >= 1 && step <= 1 << self.levels, "step {step} is outside of the horizon");
        let leaf = (step - 1) as usize;
        (0..=self.levels).map(|level| self.nodes[ancestor(self.levels, level, leaf)]).sum()
    }
}

mod tests {
    use super::*;

    #[test]
    fn the_plain_tree_is_the_path_matrix_times_its_nodes() {
        for levels in 0..6 {
            // Integers, so that sums are exact in any order.
            let nodes: Vec<f64> = (0..(2_u32 << levels) - 1).map(|node| f64::from(node * node + 1)).collect();
            let tree = PlainTree::new(levels, nodes.clone());
            for (leaf, row) in path_matrix(levels).iter().enumerate() {
                let sum: f64 = row.iter().zip(&nodes).map(|(l, n)| l * n).sum();
                assert_eq!(tree.noise(leaf as u64 + 1), sum, "levels {levels}, leaf {leaf}");
            }
        }
    }

    #[test]
    fn the_strategy_matrix_for_four_steps_is_the_one_printed_in_the_paper() {
        let printed = [
            [0.5, 0.5, 0.5, 0.5],
            [0.0, 0.0, -0.5, -0.5],
            [0.5, 0.5, 0.0, 0.0],
            [0.5, -0.5, 0.0, 0.0],
            [0.5, 0.5, 0.0, 0.0],
            [0.0, 0.0, 0.5, -0.5],
            [0.0, 0.0, 0.5, 0.5],
        ];
        assert_eq!(strategy_matrix(2), printed);
    }
}
