//! How much noise the Gaussian tree needs: its exact sensitivity factors, and the paper's.
//!
//! A tree of `levels = h` serves horizons up to T = 2^h. With node variance `s^2` and updates of L2 norm at most
//! `Delta`, all releases together are rho-zCDP with
//!
//! `rho = tau Delta^2 / (2 s^2)`, that is `s^2 = tau Delta^2 / (2 rho)`.
//!
//! * [`tau_update`]: one update is added or removed. Exact for T = 2^h, sound below.
//! * [`tau_lifetime`]: an insertion and its later deletion, or no deletion. Likewise.
//! * [`tau_paper`], [`tau_paper_lifetime`]: the squared sensitivities of the paper's strategy matrix. Sound,
//!   up to 2.16 times as large (9/4 in the limit), and only there to reproduce the paper.
//!
//! `tau` is the squared norm of the least-norm change of the node variables that explains the change of the
//! sums. That is the power drawn by an electrical network on the tree: a unit resistor on each edge and one from
//! the root to ground, the leaves held at the potentials 0 and 1 that the changed sums prescribe. Seen from above,
//! a subtree of height k is a potential V behind a conductance c_k, after spending the energy E inside. Proof:
//! `docs/proof-tree-calibration.md`. Sources: the mechanism is that of section 2 of the paper, its strategy
//! matrix appendix B; the exact factors are this library's.
//!
//! # Rounding
//!
//! For every h up to 62 the factors computed here differ from the true ones by less than 2^-45, relative
//! (proved), and by 2^-51.4 at most (measured against 600-bit arithmetic). A caller that needs a bound on
//! the safe side inflates `s` by 2^-44, which covers the square root and the division as well.

use alloc::vec;
use alloc::vec::Vec;

use crate::math::power_of_two;

/// Horizons go up to 2^62 steps.
const MAX_LEVELS: u32 = 62;

/// A boundary between zeros and ones somewhere in a subtree, as the rest of the network sees it.
#[derive(Clone, Copy, Debug)]
struct Point {
    /// V, the subtree's open-circuit potential: a multiple of 2^-height in (0, 1].
    potential: f64,
    /// `E + a_k V^2`: the total energy if the leaves of all subtrees merged later on are zero.
    energy: f64,
}

/// `c_k = 2^k / (2^(k+1) - 1)`: a subtree of height k and its edge upwards, all leaves held.
///
/// The solution of `c_0 = 1`, `c_(k+1) = 2 c_k / (1 + 2 c_k)`.
fn conductance(height: u32) -> f64 {
    1.0 / (2.0 - power_of_two(-(height as i32)))
}

/// `a_0 ..= a_h`, the share of V^2 in the final energy: `a_h = c_h`, `a_k = c_k/2 + a_(k+1)/4`.
fn curvatures(levels: u32) -> Vec<f64> {
    let mut a = vec![conductance(levels); levels as usize + 1];
    for k in (0..levels).rev() {
        a[k as usize] = conductance(k) / 2.0 + a[k as usize + 1] / 4.0;
    }
    a
}

/// Whether `q` lies under the chord from `p` to `r` by more than rounding can explain.
///
/// Each product below carries three roundings, 3 * 2^-53 relative; the margin is 8 * 2^-53 of both. Equality
/// is safe: both products are then zero, and the three points are on one level.
fn surely_below(p: Point, q: Point, r: Point) -> bool {
    let via = (q.energy - p.energy) * (r.potential - p.potential);
    let chord = (r.energy - p.energy) * (q.potential - p.potential);
    chord - via >= 4.0 * f64::EPSILON * (via.abs() + chord.abs())
}

/// Appends a point to the right of all others and removes what falls under the upper hull.
///
/// Only points that are certainly below a chord go, so no vertex of the hull is ever lost: rounding can
/// leave points too many, never too few.
fn push(hull: &mut Vec<Point>, point: Point) {
    // Potentials are exact up to height 53; above it, neighbours can round to the same one.
    if let Some(last) = hull.last().filter(|last| last.potential == point.potential) {
        if last.energy >= point.energy {
            return;
        }
        hull.pop();
    }
    while let [.., p, q] = hull[..] {
        if !surely_below(p, q, point) {
            break;
        }
        hull.pop();
    }
    hull.push(point);
}

/// Goes up the tree with the upper hull of all boundaries' points and returns the largest energy at the root.
///
/// Each height's hull is shown to `visit` before the step up, with `a_k` and `b_k = a_(k+1)/2 - c_k`. In the
/// coordinates of [`Point`] both ways up are affine maps and the final energy is a linear functional, so only
/// vertices of the upper hull can win. Cost: O(h) points at each of h heights.
fn climb(levels: u32, mut visit: impl FnMut(&[Point], f64, f64)) -> f64 {
    assert!(levels <= MAX_LEVELS);
    let a = curvatures(levels);
    let mut hull = vec![Point { potential: 1.0, energy: a[0] }];
    let mut next = Vec::new();
    for k in 0..levels as usize {
        let b = a[k + 1] / 2.0 - conductance(k as u32);
        visit(&hull, a[k], b);
        next.clear();
        // A right child; the sibling's leaves are zero. Potentials up to 1/2, in the hull's order.
        for p in &hull {
            push(&mut next, Point { potential: p.potential / 2.0, energy: p.energy });
        }
        // A left child; the sibling's leaves are one. Potentials above 1/2.
        for p in &hull {
            push(
                &mut next,
                Point { potential: (p.potential + 1.0) / 2.0, energy: p.energy + (a[k] + b * p.potential) },
            );
        }
        core::mem::swap(&mut hull, &mut next);
    }
    hull.iter().fold(0.0, |best, p| p.energy.max(best))
}

/// The exact factor for one added or removed update: `max over start of |r|^2`, `r` the least-norm solution of
/// `L r = 1[t >= start]`, for `levels <= 62`.
///
/// Grows by 1/9 a level in the long run. Cost: O(h^2), no allocation beyond a few hundred points.
pub(crate) fn tau_update(levels: u32) -> f64 {
    climb(levels, |_, _, _| {})
}

/// The exact factor for an insertion and its later deletion, or no deletion: the maximum over `start < end` of the
/// energy with the leaves in `[start, end)` at 1, and of [`tau_update`], for `levels <= 62`.
///
/// The two boundaries meet at some height; there every pair of hull vertices is tried (the energy is
/// linear in either of the two). Grows by 2/9 a level in the long run. Cost: O(h^3), under a millisecond at h = 62.
pub(crate) fn tau_lifetime(levels: u32) -> f64 {
    let mut best: f64 = 0.0;
    let open_ended = climb(levels, |hull, a, b| {
        for right in hull {
            // In the right subtree the ones come before the boundary: the complement, of the same E.
            let potential = 1.0 - right.potential;
            let energy = right.energy + a * (1.0 - 2.0 * right.potential);
            for left in hull {
                best = best.max(left.energy + energy + b * potential * left.potential);
            }
        }
    });
    best.max(open_ended)
}

/// The paper's factor `(h+2)/4`, the largest squared norm of a column of its strategy matrix.
///
/// The formula is made for T > 1. At T = 1 it would give half the noise that privacy needs, so this returns the
/// true factor 1 there. Cost: O(1), exact.
pub(crate) fn tau_paper(levels: u32) -> f64 {
    if levels == 0 { 1.0 } else { f64::from(levels + 2) / 4.0 }
}

/// `lifetime` under the paper's strategy matrix: `(h+1)/2`, the largest squared norm of the difference of two of
/// its columns, which is at least that of a single column for every T > 1. Factor 1 at T = 1.
///
/// Two columns cancel above the place where the leaves' paths part. Below it each has an entry of its own at
/// every inner level and two at the leaves; paths that part at the root leave most, `2 (h-1)/4 + 4/4`.
/// That is 1/2 less than twice a column, where group privacy would charge four times. Cost: O(1), exact.
pub(crate) fn tau_paper_lifetime(levels: u32) -> f64 {
    if levels == 0 { 1.0 } else { f64::from(levels + 1) / 2.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::sqrt;
    use crate::reference::{path_matrix, strategy_matrix};

    fn close(value: f64, expected: f64, relative: f64) -> bool {
        (value - expected).abs() <= relative * expected.abs()
    }

    /// The lower Cholesky factor of the covariance `L L^T` of the tree's noise, for s = 1.
    fn covariance_factor(levels: u32) -> Vec<Vec<f64>> {
        let path = path_matrix(levels);
        let dot = |x: &[f64], y: &[f64]| -> f64 { x.iter().zip(y).map(|(x, y)| x * y).sum() };
        let mut factor: Vec<Vec<f64>> = Vec::new();
        for (i, row) in path.iter().enumerate() {
            let mut new: Vec<f64> = Vec::new();
            for j in 0..i {
                new.push((dot(row, &path[j]) - dot(&new, &factor[j][..j])) / factor[j][j]);
            }
            new.push(sqrt(dot(row, row) - dot(&new, &new)));
            factor.push(new);
        }
        factor
    }

    /// `x^T (L L^T)^-1 x` by forward substitution; the leading zeros of `x` stay zeros.
    fn mahalanobis(factor: &[Vec<f64>], x: &[f64]) -> f64 {
        let mut z: Vec<f64> = Vec::new();
        for (row, x) in factor.iter().zip(x) {
            let sum: f64 = row.iter().zip(&z).map(|(g, z)| g * z).sum();
            z.push((x - sum) / row[z.len()]);
        }
        z.iter().map(|z| z * z).sum()
    }

    /// One in `[from, to)`, zero elsewhere.
    fn indicator(steps: usize, from: usize, to: usize) -> Vec<f64> {
        (0..steps).map(|t| if t >= from && t < to { 1.0 } else { 0.0 }).collect()
    }

    /// The network with any leaf potentials, solved from the leaves up: (V, E, c) above the subtree's edge.
    fn subtree(leaves: &[f64]) -> (f64, f64, f64) {
        if let [leaf] = leaves {
            return (*leaf, 0.0, 1.0);
        }
        let (left, right) = leaves.split_at(leaves.len() / 2);
        let ((v1, e1, c), (v2, e2, _)) = (subtree(left), subtree(right));
        ((v1 + v2) / 2.0, e1 + e2 + c * (v1 - v2) * (v1 - v2) / 2.0, 2.0 * c / (1.0 + 2.0 * c))
    }

    fn network_energy(leaves: &[f64]) -> f64 {
        let (v, e, c) = subtree(leaves);
        e + c * v * v
    }

    #[test]
    fn update_factor_equals_the_maximum_over_every_boundary() {
        for levels in 0..=16_u32 {
            let mut best: f64 = 0.0;
            for s in 0..1_u32 << levels {
                let (mut v, mut e, mut c) = (1.0, 0.0, 1.0);
                for k in 0..levels {
                    if s >> k & 1 == 0 {
                        e += c * (1.0 - v) * (1.0 - v) / 2.0;
                        v = (v + 1.0) / 2.0;
                    } else {
                        e += c * v * v / 2.0;
                        v /= 2.0;
                    }
                    c = 2.0 * c / (1.0 + 2.0 * c);
                }
                best = best.max(e + c * v * v);
            }
            assert!(close(tau_update(levels), best, 1e-14), "levels {levels}: {} {best}", tau_update(levels));
        }
    }

    #[test]
    fn update_factor_equals_the_mahalanobis_norm_of_the_shift() {
        for levels in 0..=8 {
            let (steps, factor) = (1 << levels, covariance_factor(levels));
            let norm = |s| mahalanobis(&factor, &indicator(steps, s, steps));
            let best = (0..steps).map(norm).fold(0.0, f64::max);
            assert!(close(tau_update(levels), best, 1e-12), "levels {levels}: {} {best}", tau_update(levels));
        }
    }

    #[test]
    fn lifetime_factor_equals_the_maximum_over_every_pair_of_boundaries() {
        for levels in 0..=7 {
            let (steps, factor) = (1 << levels, covariance_factor(levels));
            let (mut dense, mut network): (f64, f64) = (0.0, 0.0);
            // `to == steps` is a row that is never deleted.
            for from in 0..steps {
                for to in from + 1..=steps {
                    let leaves = indicator(steps, from, to);
                    dense = dense.max(mahalanobis(&factor, &leaves));
                    network = network.max(network_energy(&leaves));
                }
            }
            let tau = tau_lifetime(levels);
            assert!(close(tau, dense, 1e-12), "levels {levels}: {tau}, dense {dense}");
            assert!(close(tau, network, 1e-14), "levels {levels}: {tau}, network {network}");
        }
    }

    #[test]
    fn a_horizon_that_is_no_power_of_two_needs_no_more() {
        for levels in 2..=5 {
            let factor = covariance_factor(levels);
            for steps in (1 << (levels - 1)) + 1..1 << levels {
                // The leading rows of the factor are the factor of the leading covariance.
                let factor = &factor[..steps];
                let norm = |s| mahalanobis(factor, &indicator(steps, s, steps));
                let best = (0..steps).map(norm).fold(0.0, f64::max);
                assert!(best <= tau_update(levels) * (1.0 + 1e-12), "{steps} steps");
            }
        }
    }

    #[test]
    fn golden_values_to_ten_decimals() {
        let update = [
            1.0,
            0.6666666667,
            0.9047619048,
            1.0095238095,
            1.1222734255,
            1.2350230415,
            1.3457954852,
            1.4574594684,
            1.5684472267,
            1.6797048322,
            1.7907827955,
            1.9019310376,
            2.0130337191,
            2.1241541445,
            2.2352631393,
            2.3463765809,
            2.4574871624,
            2.5685988563,
            2.6797098349,
            2.7908210918,
            2.9019321698,
            3.0130433173,
            3.1241544201,
        ];
        for (levels, expected) in (0..).zip(update) {
            assert!((tau_update(levels) - expected).abs() <= 0.5001e-10, "update {levels}");
        }
        for (levels, expected) in [(30, 4.0130433184), (40, 5.1241544295), (62, 7.5685988739)] {
            assert!((tau_update(levels) - expected).abs() <= 0.5001e-10, "update {levels}");
        }
        let lifetime = [
            1.0,
            0.6666666667,
            1.1428571429,
            1.4666666667,
            1.6897081413,
            1.9365079365,
            2.1574077434,
            2.3857233216,
            2.6075364088,
            2.8312787881,
            3.0533940446,
            3.2759961074,
            3.4981912990,
        ];
        for (levels, expected) in (0..).zip(lifetime) {
            assert!((tau_lifetime(levels) - expected).abs() <= 0.5001e-10, "lifetime {levels}");
        }
        for (levels, expected) in [(20, 5.2760861776), (40, 9.7205310812), (62, 14.6094199701)] {
            assert!((tau_lifetime(levels) - expected).abs() <= 0.5001e-10, "lifetime {levels}");
        }
    }

    /// (levels, update, lifetime) from the same algorithm in 600-bit arithmetic. These are the levels with the largest
    /// errors and some others.
    const EXACT: [(u32, f64, f64); 8] = [
        (7, 1.4574594684203375, 2.385723321586699),
        (12, 2.0130337190529457, 3.4981912989979125),
        (20, 2.9019321697521026, 5.276086177607195),
        (30, 4.013043318355292, 7.4983088585576905),
        (48, 6.013043318391941, 11.498308859006103),
        (53, 6.568598873947497, 12.609419970117216),
        (54, 6.679709985058608, 12.831642192339439),
        (62, 7.568598873947497, 14.609419970117216),
    ];

    #[test]
    fn rounding_stays_within_the_stated_bound() {
        // Measured: 2^-51.4. The bound that is proved is 2^-45.
        let bound = power_of_two(-50);
        for (levels, update, lifetime) in EXACT {
            assert!(close(tau_update(levels), update, bound), "update {levels}");
            assert!(close(tau_lifetime(levels), lifetime, bound), "lifetime {levels}");
        }
    }

    #[test]
    fn the_hull_has_two_more_points_at_each_height() {
        for levels in 0..=MAX_LEVELS {
            let mut height = 0;
            climb(levels, |hull, _, _| {
                // 1, 2, 3, 5, 7, ...: in exact arithmetic this holds at every height up to 62. Potentials that round
                // together make it fewer above height 53.
                let exact = if height < 2 { height + 1 } else { 2 * height - 1 };
                if height <= 53 {
                    assert_eq!(hull.len(), exact, "levels {levels}, height {height}");
                }
                assert!(hull.len() <= exact, "levels {levels}, height {height}: {}", hull.len());
                assert!(hull.windows(2).all(|pair| pair[0].potential < pair[1].potential));
                height += 1;
            });
        }
    }

    #[test]
    fn growth_settles_at_a_ninth_and_two_ninths_a_level() {
        for levels in 30..MAX_LEVELS {
            let update = tau_update(levels + 1) - tau_update(levels);
            let lifetime = tau_lifetime(levels + 1) - tau_lifetime(levels);
            assert!((update - 1.0 / 9.0).abs() < 1e-8, "update {levels}: {update}");
            assert!((lifetime - 2.0 / 9.0).abs() < 1e-8, "lifetime {levels}: {lifetime}");
        }
    }

    #[test]
    fn strategy_matrix_factors_the_counting_matrix_and_has_the_paper_sensitivity() {
        for levels in 0..=6 {
            let steps: usize = 1 << levels;
            let (path, strategy) = (path_matrix(levels), strategy_matrix(levels));
            for (t, row) in path.iter().enumerate() {
                for u in 0..steps {
                    let product: f64 = row.iter().zip(&strategy).map(|(l, r)| l * r[u]).sum();
                    assert_eq!(product, if u <= t { 1.0 } else { 0.0 }, "levels {levels}, ({t}, {u})");
                }
            }
            // The difference with no second column is a row that is never deleted.
            let norm = |from: usize, to: Option<usize>| -> f64 {
                let entry = |r: &Vec<f64>| r[from] - to.map_or(0.0, |to| r[to]);
                strategy.iter().map(|r| entry(r) * entry(r)).sum()
            };
            let single = (0..steps).map(|from| norm(from, None)).fold(0.0, f64::max);
            let pair = (0..steps).flat_map(|from| (from + 1..steps).map(move |to| (from, to)));
            let pair = pair.map(|(from, to)| norm(from, Some(to))).fold(single, f64::max);
            assert_eq!(tau_paper(levels), single, "levels {levels}");
            assert_eq!(tau_paper_lifetime(levels), pair, "levels {levels}");
        }
    }

    #[test]
    fn paper_factors_are_never_below_the_exact_ones() {
        for levels in 0..=MAX_LEVELS {
            assert!(tau_paper(levels) >= tau_update(levels), "update {levels}");
            assert!(tau_paper_lifetime(levels) >= tau_lifetime(levels), "lifetime {levels}");
            assert!(tau_lifetime(levels) >= tau_update(levels), "levels {levels}");
        }
    }
}
