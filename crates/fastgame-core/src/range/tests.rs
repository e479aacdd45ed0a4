//! Weights beside a dense solution of the same least squares, counts beside brute force with the zero law, and the law of the
//! error: unbiased, with the predicted variance.

use std::collections::BTreeMap;
use std::println;
use std::vec;
use std::vec::Vec;

use chacha20::ChaCha12Rng;
use proptest::prelude::*;
use rand_core::{Rng, SeedableRng};

use super::boxes::Parts;
use super::levels::Axis;
use super::*;
use crate::error::Error;
use crate::privacy::Zcdp;
use crate::sketch::Weights;

const ESTIMATORS: [Estimator; 2] = [Estimator::Cover, Estimator::LeastSquares];

fn rng() -> ChaCha12Rng {
    ChaCha12Rng::seed_from_u64(1)
}

fn builder(sizes: &[u64], levels: Levels, estimator: Estimator) -> RangeBuilder {
    let base = ContinualVector::builder(1 << 20, Zcdp::new(0.5).unwrap());
    RangeBuilder::new(base, RangeShape { levels, estimator, ..RangeShape::new(sizes) })
}

fn parts(axis: &Axis, lo: u64, hi: u64, estimator: Estimator) -> Parts {
    let mut parts = Parts::default();
    parts.set(axis, lo, hi, estimator);
    parts
}

/// Nodes as (level, index, weight).
fn nodes(axis: &Axis, parts: &Parts) -> Vec<(u32, u64, f64)> {
    let level = |level| parts.level(level).iter().map(move |node| (level, node.index, node.weight));
    (0..axis.levels).flat_map(level).collect()
}

fn squares(axis: &Axis, parts: &Parts) -> f64 {
    (0..axis.levels).map(|level| parts.squares(level)).sum()
}

// ---------------------------------------------------------------------------------------------------------------
// Weights
// ---------------------------------------------------------------------------------------------------------------

#[test]
fn kept_levels_are_every_ath_from_the_leaves_up() {
    // Size, spacing, levels, nodes of the top one.
    let cases = [
        (1, 1, 1, 1),
        (1, 3, 1, 1),
        (2, 1, 1, 2),
        (3, 1, 2, 2),
        (4, 1, 2, 2),
        (5, 2, 2, 2),
        (1 << 10, 1, 10, 2),
        (1 << 10, 2, 5, 4),
        (1 << 10, 3, 4, 2),
        (1 << 10, 4, 3, 4),
        (1 << 12, 2, 6, 4),
        (1 << 20, 2, 10, 4),
        ((1 << 20) + 1, 2, 11, 2),
        (1 << 62, 1, 62, 2),
        (1 << 62, 8, 8, 64),
    ];
    for (size, spacing, levels, top) in cases {
        let axis = Axis::new(size, spacing);
        assert_eq!((axis.levels, axis.nodes(axis.levels - 1)), (levels, top), "{size} {spacing}");
        assert_eq!(axis.nodes(0), size);
    }
}

/// The least squares solution on the same support by dense elimination: minimise |w|^2 subject to A w = b, where a row of A
/// has a one for each supported node that contains the coordinate.
fn dense_solution(axis: &Axis, support: &[(u32, u64)], lo: u64, hi: u64) -> Vec<f64> {
    // Coordinates with the same nodes above them have the same row.
    let mut rows: BTreeMap<Vec<usize>, f64> = BTreeMap::new();
    for x in 0..axis.size {
        let above = |&(_, &(level, index)): &(usize, &(u32, u64))| x >> axis.shift(level) == index;
        let row = support.iter().enumerate().filter(above).map(|(place, _)| place).collect();
        let inside = f64::from(u8::from((lo..hi).contains(&x)));
        assert_eq!(*rows.entry(row).or_insert(inside), inside, "the support tells inside from outside");
    }
    // w = A^T y with A A^T y = b; the rows are independent, as each has a node of its own.
    let (rows, b): (Vec<Vec<usize>>, Vec<f64>) = rows.into_iter().unzip();
    let common = |a: &[usize], b: &[usize]| a.iter().filter(|node| b.contains(node)).count() as f64;
    let mut system: Vec<Vec<f64>> =
        rows.iter().zip(&b).map(|(row, &b)| rows.iter().map(|other| common(row, other)).chain([b]).collect()).collect();
    let n = system.len();
    for i in 0..n {
        let pivot = (i..n).max_by(|&a, &b| system[a][i].abs().total_cmp(&system[b][i].abs())).unwrap();
        system.swap(i, pivot);
        let row = system[i].clone();
        for (_, other) in system.iter_mut().enumerate().filter(|&(j, _)| j != i) {
            let factor = other[i] / row[i];
            other.iter_mut().zip(&row).for_each(|(x, y)| *x -= factor * y);
        }
    }
    let mut weights = vec![0.0; support.len()];
    for (i, row) in rows.iter().enumerate() {
        row.iter().for_each(|&node| weights[node] += system[i][n] / system[i][i]);
    }
    weights
}

/// The top level and all children of nodes that an end lies strictly inside of, found by looking at every node.
fn support(axis: &Axis, lo: u64, hi: u64) -> Vec<(u32, u64)> {
    let mut support: Vec<(u32, u64)> = (0..axis.nodes(axis.levels - 1)).map(|index| (axis.levels - 1, index)).collect();
    for level in 1..axis.levels {
        for index in 0..axis.nodes(level) {
            let (start, end) = (index << axis.shift(level), ((index + 1) << axis.shift(level)).min(axis.size));
            if [lo, hi].iter().any(|&cut| start < cut && cut < end) {
                let children = (0..axis.nodes(level - 1)).filter(|child| child >> axis.spacing == index);
                support.extend(children.map(|child| (level - 1, child)));
            }
        }
    }
    support
}

#[test]
fn least_squares_weights_are_those_of_a_dense_solution_on_the_same_support() {
    let mut checked = 0;
    for size in [1, 2, 3, 5, 8, 13, 16, 27, 33, 64] {
        for spacing in [1, 2, 3, 4, 8] {
            let axis = Axis::new(size, spacing);
            for lo in 0..size {
                for hi in lo + 1..=size {
                    if size > 30 && (lo * 5 + hi) % 7 != 0 {
                        continue;
                    }
                    let support = support(&axis, lo, hi);
                    let expected = dense_solution(&axis, &support, lo, hi);
                    let got = nodes(&axis, &parts(&axis, lo, hi, Estimator::LeastSquares));
                    let mut got: BTreeMap<(u32, u64), f64> = got.into_iter().map(|(l, i, w)| ((l, i), w)).collect();
                    for (node, expected) in support.iter().zip(expected) {
                        let got = got.remove(node).unwrap_or(0.0);
                        assert!((got - expected).abs() < 1e-12, "{axis:?} {lo}..{hi} {node:?}: {got} {expected}");
                    }
                    assert!(got.is_empty(), "{axis:?} {lo}..{hi}: {got:?}");
                    checked += 1;
                }
            }
        }
    }
    assert!(checked > 5000);
}

/// All intervals of axes up to 64: the weights above a coordinate sum up to 1 inside and 0 outside. A box of the grid has the
/// products, so this and the next test cover all 4.3 million boxes of 64 x 64.
#[test]
fn the_weights_above_a_coordinate_sum_up_to_one_inside_and_zero_outside() {
    for size in [1, 2, 3, 7, 16, 37, 64] {
        for spacing in 1..=8 {
            let axis = Axis::new(size, spacing);
            for (lo, hi) in (0..size).flat_map(|lo| (lo..=size).map(move |hi| (lo, hi))) {
                let mut sums = Vec::new();
                for estimator in ESTIMATORS {
                    let parts = parts(&axis, lo, hi, estimator);
                    let nodes = nodes(&axis, &parts);
                    for x in 0..size {
                        let above = nodes.iter().filter(|(level, index, _)| x >> axis.shift(*level) == *index);
                        let sum: f64 = above.map(|(_, _, weight)| weight).sum();
                        let inside = f64::from(u8::from((lo..hi).contains(&x)));
                        assert!((sum - inside).abs() < 1e-14, "{axis:?} {lo}..{hi} at {x}: {sum}");
                    }
                    sums.push(squares(&axis, &parts));
                    if estimator == Estimator::Cover {
                        assert!(nodes.iter().all(|(_, _, weight)| *weight == 1.0));
                        // The paper's bound: two a level.
                        assert!(spacing > 1 || (0..axis.levels).all(|level| parts.level(level).len() <= 2));
                    }
                    // Two cut nodes a level above the leaves, all of their children; and the top.
                    let most = (axis.levels as usize - 1) * (2 << spacing) + (1 << spacing);
                    assert!(nodes.len() <= most, "{axis:?} {lo}..{hi}: {}", nodes.len());
                }
                // The cover is one of the choices that the least sum of squares is taken over.
                assert!(sums[1] <= sums[0] + 1e-12, "{axis:?} {lo}..{hi}: {sums:?}");
            }
        }
    }
}

/// Every box of a 64 x 64 grid: the cells that are read, with their weights, are the tensor product. Coordinates are
/// grouped by hand here: the weight above a point is the sum over rectangles that contain it.
#[test]
fn a_boxs_rectangles_have_product_weights_and_the_product_of_the_sums_of_squares() {
    for (spacing, estimator) in [(1, Estimator::Cover), (2, Estimator::LeastSquares), (3, Estimator::LeastSquares)] {
        let counter = builder(&[64, 64], Levels::Every(spacing), estimator).build_exact().unwrap();
        let axis = Axis::new(64, spacing);
        let mut checked = 0;
        for lo_x in 0..64 {
            for hi_x in lo_x + 1..=64 {
                let x = parts(&axis, lo_x, hi_x, estimator);
                for (lo_y, hi_y) in [(0, 64), (lo_x / 2, hi_x), (hi_x - 1, 64), ((lo_x * 7) % 31, 32 + (hi_x * 5) % 33)]
                {
                    let pair = [x.clone(), parts(&axis, lo_y, hi_y, estimator)];
                    let expected = squares(&axis, &pair[0]) * squares(&axis, &pair[1]);
                    let (mut got, mut at_point) = (0.0, [[0.0; 4]; 4]);
                    // Just inside and just outside of each end.
                    let xs = [lo_x, hi_x - 1, lo_x.wrapping_sub(1), hi_x];
                    let ys = [lo_y, hi_y - 1, lo_y.wrapping_sub(1), hi_y];
                    for component in &counter.layout().components {
                        assert!(component.is_dense());
                        let [a, b] = [component.levels[0], component.levels[1]];
                        let width = axis.nodes(b);
                        counter.layout().cells_of_box(None, component, &pair, |cell, weight| {
                            got += weight * weight;
                            let number = (cell - component.start) as u64;
                            for (row, x) in at_point.iter_mut().zip(xs) {
                                for (sum, y) in row.iter_mut().zip(ys) {
                                    if x < 64 && y < 64 {
                                        let (i, j) = (x >> axis.shift(a), y >> axis.shift(b));
                                        *sum += if number == i * width + j { weight } else { 0.0 };
                                    }
                                }
                            }
                        });
                    }
                    assert!((got / expected - 1.0).abs() < 1e-12);
                    for (i, row) in at_point.iter().enumerate() {
                        for (j, sum) in row.iter().enumerate() {
                            let inside = if i < 2 && j < 2 { 1.0 } else { 0.0 };
                            assert!((sum - inside).abs() < 1e-13, "{lo_x}..{hi_x} {lo_y}..{hi_y}: {sum}");
                        }
                    }
                    checked += 1;
                }
            }
        }
        assert_eq!(checked, 4 * 64 * 65 / 2);
    }
}

/// Mean noise variance of random boxes over that of one cell at the full budget (components times the sum of squared
/// weights), cells an axis, components: within 10 % of the figures of the documentation.
#[test]
fn the_table_of_structures() {
    use Estimator::{Cover, LeastSquares};
    // Bits of the size, axes, paper, cover a = 2, least squares a = 2, reads an axis of both, components of both.
    let table = [
        (10, 1, [80.0, 58.0, 25.0], [8.0, 30.0], [10, 5]),
        (10, 2, [6471.0, 3415.0, 610.0], [8.0, 30.0], [100, 25]),
        (12, 2, [14713.0, 7945.0, 1240.0], [10.0, 38.0], [144, 36]),
        (16, 2, [50119.0, 27207.0, 3750.0], [14.0, 54.0], [256, 64]),
        (20, 1, [360.0, 267.0, 97.0], [18.0, 70.0], [20, 10]),
    ];
    for (bits, dims, variances, reads, components) in table {
        let sizes = vec![1 << bits; dims];
        let structures = [(Levels::Dyadic, Cover), (Levels::Every(2), Cover), (Levels::Every(2), LeastSquares)];
        for (column, (levels, estimator)) in structures.into_iter().enumerate() {
            // Rows so wide that every component is dense: a plan holds no cells.
            let plan = builder(&sizes, levels, estimator).width(1 << 30).depth(63).plan().unwrap();
            let (count, dense) = plan.components();
            let average = plan.of_random_boxes();
            let variance = count as f64 * average.noise_factor();
            let read = average.cells_read().powf(1.0 / dims as f64);
            println!(
                "2^{bits} d={dims} {levels:?} {estimator:?}: {variance:.1} (stated {}), {read:.1} reads an axis, {count} components",
                variances[column]
            );
            assert!((variance / variances[column] - 1.0).abs() < 0.1);
            assert_eq!(count, components[column.min(1)]);
            if bits < 20 || dims == 1 {
                assert!(count == dense || bits == 20 || bits == 16, "{count} {dense}");
            }
            if column != 1 {
                assert!((read / reads[column / 2] - 1.0).abs() < 0.1, "{read}");
            }
        }
    }
}
