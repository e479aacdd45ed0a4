//! The closed forms against minimum cuts of all boundaries and intervals.

use core::ops::Range;
use std::vec::Vec;

use super::*;

/// The least number of edges between unequal labels, over all labellings of the inner nodes by 0 and 1: dynamic programming
/// from the leaves up. The ground, above the root, is 0.
fn minimum_cut(leaves: &[bool]) -> u32 {
    // For each node: the cost of its subtree if it is labelled 0, and if 1.
    let never = u32::MAX / 4;
    let mut costs: Vec<[u32; 2]> = leaves.iter().map(|&leaf| if leaf { [never, 0] } else { [0, never] }).collect();
    let under = |child: [u32; 2], label: usize| child[label].min(child[1 - label] + 1);
    while costs.len() > 1 {
        costs = costs.chunks_exact(2).map(|pair| [0, 1].map(|l| under(pair[0], l) + under(pair[1], l))).collect();
    }
    under(costs[0], 0)
}

/// The same by trying all labellings.
fn minimum_cut_by_brute_force(leaves: &[bool]) -> u32 {
    let inner = leaves.len() - 1;
    (0u32..1 << inner)
        .map(|labels| {
            // Nodes are numbered breadth first from 1; the parent of `node` is `node / 2`, the ground is 0.
            let label = |node: usize| match node {
                0 => false,
                _ if node <= inner => labels >> (node - 1) & 1 == 1,
                _ => leaves[node - inner - 1],
            };
            (1..=inner + leaves.len()).filter(|&node| label(node) != label(node / 2)).count() as u32
        })
        .min()
        .unwrap()
}

fn ones(levels: u32, at: Range<usize>) -> Vec<bool> {
    (0..1 << levels).map(|leaf| at.contains(&leaf)).collect()
}

#[test]
fn minimum_cuts_are_the_least_of_all_labellings() {
    for levels in 0..=3u32 {
        for set in 0u32..1 << (1 << levels) {
            let leaves: Vec<bool> = (0..1 << levels).map(|leaf| set >> leaf & 1 == 1).collect();
            assert_eq!(minimum_cut(&leaves), minimum_cut_by_brute_force(&leaves), "{leaves:?}");
        }
    }
}

/// Rejects every other number: a smaller one for the worst boundary, a larger one as no boundary needs it.
#[test]
fn an_update_costs_what_the_worst_boundary_costs() {
    for levels in 0..=10 {
        let steps = 1usize << levels;
        let worst = (0..steps).map(|start| minimum_cut(&ones(levels, start..steps))).max().unwrap();
        assert_eq!(tau(levels, Unit::Update), f64::from(worst), "{levels} levels");
        // The place that the documentation names: 0101...01 in binary.
        let named = (0..levels).step_by(2).map(|bit| 1usize << bit).sum();
        assert_eq!(minimum_cut(&ones(levels, named..steps)), worst, "{levels} levels");
    }
}

#[test]
fn a_lifetime_costs_what_the_worst_interval_costs() {
    for levels in 0..=7 {
        let steps = 1usize << levels;
        let intervals = (0..steps).flat_map(|start| (start + 1..=steps).map(move |end| start..end));
        let worst = intervals.map(|interval| minimum_cut(&ones(levels, interval))).max().unwrap();
        assert_eq!(tau(levels, Unit::Lifetime), f64::from(worst), "{levels} levels");
    }
}

#[test]
fn the_worst_lifetime_meets_at_the_root() {
    // Both boundaries alternate; checked up to a tree of a million leaves.
    for levels in 1..=20u32 {
        let half = 1usize << (levels - 1);
        let below =
            |parity: u32| (0..levels - 1).filter(|bit| bit % 2 == parity).map(|bit| 1usize << bit).sum::<usize>();
        let starts = [below(0), below(1), 0];
        let ends = [0, 1, 2].map(|k| half + [below(0), below(1), half - 1][k]);
        let worst = starts.iter().flat_map(|&start| ends.map(|end| start..end));
        let worst = worst.map(|interval| minimum_cut(&ones(levels, interval))).max().unwrap();
        assert_eq!(tau(levels, Unit::Lifetime), f64::from(worst), "{levels} levels");
    }
}

#[test]
fn the_closed_forms_at_the_end_of_the_range() {
    assert_eq!([tau(0, Unit::Update), tau(0, Unit::Lifetime)], [1.0, 1.0]);
    assert_eq!([tau(62, Unit::Update), tau(62, Unit::Lifetime)], [32.0, 62.0]);
}
