//! The laws beside closed forms, numerical integrals and simulations.

use std::vec::Vec;

use chacha20::ChaCha12Rng;
use rand_core::{Rng, SeedableRng};
use rand_distr::{Distribution, StandardNormal};

use super::*;
use crate::math::ln;

/// Numbers of nodes at which everything is tried.
const NODES: [u32; 8] = [1, 2, 3, 4, 7, 15, 31, 63];

fn laplace(nodes: u32) -> ReleaseLaw {
    ReleaseLaw::Laplace { scale: 1.0, nodes }
}

/// A draw of the sum of so many Laplace variables of scale 1, by the inverse of their distribution.
pub(crate) fn draw(nodes: u32, rng: &mut ChaCha12Rng) -> f64 {
    let one = |rng: &mut ChaCha12Rng| {
        let bits = rng.next_u64();
        let size = -(((bits >> 11) as f64 + 0.5) * (1.0f64 / (1u64 << 53) as f64)).ln();
        if bits & 1 == 0 { size } else { -size }
    };
    (0..nodes).map(|_| one(rng)).sum()
}

/// Simpson's rule.
fn integral(from: f64, to: f64, intervals: u32, f: impl Fn(f64) -> f64) -> f64 {
    let step = (to - from) / f64::from(intervals);
    let weight = |i: u32| if i == 0 || i == intervals { 1.0 } else { f64::from(2 + 2 * (i % 2)) };
    (0..=intervals).map(|i| weight(i) * f(from + f64::from(i) * step)).sum::<f64>() * step / 3.0
}

fn close(got: f64, expected: f64, relative: f64) -> bool {
    (got - expected).abs() <= relative * expected.abs()
}

/// Rejects weights that are off by one in any index, at tails down to 1e-300.
#[test]
fn tails_of_few_nodes_are_their_closed_forms() {
    for i in 0..=138 {
        let y = 5.0 * f64::from(i);
        let e = (-y).exp();
        for (nodes, expected) in [(1, e), (2, e * (1.0 + y / 2.0)), (3, e * (1.0 + 5.0 * y / 8.0 + y * y / 8.0))] {
            let law = ReleaseLaw::Laplace { scale: 7.0, nodes };
            assert!(close(law.tail(7.0 * y), expected, 1e-13), "{nodes} {y}: {}", law.tail(7.0 * y));
        }
    }
    // Beyond every float there is nothing, and nothing that is not a number.
    for x in [1999.0, 2047.9, 2048.0, 1e300, f64::INFINITY] {
        assert!(NODES.iter().all(|&nodes| laplace(nodes).tail(x) == 0.0));
    }
}

/// From one node by induction: the density of `n + 1` nodes is the convolution of those of `n` and of one, and the tail its
/// integral, each to 1e-8 of itself, at tails down to 1e-30.
#[test]
fn densities_are_convolutions_and_tails_their_integrals() {
    let density = |nodes, x: f64| laplace_density(nodes, x.abs());
    assert!(close(density(1, 3.0), 0.5 * (-3.0f64).exp(), 1e-15));
    for nodes in 1..63 {
        let sd = laplace(nodes).std();
        for x in [0.0, 0.3 * sd, sd, 4.0 * sd, 11.0 * sd] {
            // The integrand has its edges at 0 and x.
            let integrand = |u: f64| density(nodes, u) * density(1, x - u);
            let parts = integral(-40.0, 0.0, 4000, integrand)
                + integral(0.0, x, 4000, integrand)
                + integral(x, x + 60.0, 4000, integrand);
            assert!(close(density(nodes + 1, x), parts, 1e-8), "{nodes} {x}: {} {parts}", density(nodes + 1, x));
            let outside = 2.0 * integral(x, x + 60.0 + 3.0 * sd, 8000, |u| density(nodes, u));
            assert!(close(laplace(nodes).tail(x), outside, 1e-8), "{nodes} {x}");
        }
    }
    assert!(laplace(15).tail(100.0) < 1e-30);
}

#[test]
fn variance_and_kurtosis_are_integrals_of_the_tail() {
    for nodes in NODES {
        let law = ReleaseLaw::Laplace { scale: 0.25, nodes };
        let end = law.quantile(1e-25);
        let second = integral(0.0, end, 20_000, |x| 2.0 * x * law.tail(x));
        let fourth = integral(0.0, end, 20_000, |x| 4.0 * x * x * x * law.tail(x));
        assert!(close(law.variance(), second, 1e-9) && close(law.std() * law.std(), second, 1e-9), "{nodes}");
        assert!(close(law.excess_kurtosis(), fourth / (second * second) - 3.0, 1e-7), "{nodes}");
    }
    assert_eq!(ReleaseLaw::Normal { std: 3.0 }.variance(), 9.0);
}

#[test]
fn quantiles_are_where_the_tail_is() {
    for tail in [0.99, 0.5, 0.05, 1e-3, 1e-9, 1e-30, 1e-300] {
        for nodes in NODES {
            let law = ReleaseLaw::Laplace { scale: 1e6, nodes };
            assert!(close(law.tail(law.quantile(tail)), tail, 1e-11), "{nodes} {tail}");
            assert!(close(law.quantile(tail), law.std() * law.standard_quantile(tail), 1e-15));
        }
        assert!(close(laplace(1).quantile(tail), -ln(tail), 1e-12), "{tail}");
        let normal = ReleaseLaw::Normal { std: 3.0 };
        assert_eq!(normal.quantile(tail), 3.0 * two_sided_quantile(tail));
        // To what erfc is good for there.
        assert!(close(normal.tail(normal.quantile(tail)), tail, 1e-10), "{tail}");
        assert_eq!(normal.standard_quantile_of_sums(tail), two_sided_quantile(tail));
    }
    // The normal limit: 63 nodes are off by the excess kurtosis of 1/21 (Cornish and Fisher, 1938).
    for tail in [0.5, 0.05, 0.01] {
        let z = two_sided_quantile(tail);
        let expected = z + (z * z * z - 3.0 * z) / 24.0 / 21.0;
        assert!(close(laplace(63).standard_quantile(tail), expected, 1e-3), "{tail}");
    }
}

/// 10^6 sums for each number of nodes, fixed seed: the share beyond any bound is within 0.0027 of the tail (Dvoretzky, Kiefer
/// and Wolfowitz, with Massart's constant, alpha 1e-6 each). Rejects the normal law of that variance (asserted), and
/// the law of one node less or more.
#[test]
fn tails_are_those_of_simulated_sums() {
    const N: usize = 1_000_000;
    let band = (2e6f64.ln() / (2.0 * N as f64)).sqrt();
    let mut rng = ChaCha12Rng::from_seed([1; 32]);
    for nodes in [1, 2, 3, 15] {
        let mut sums: Vec<f64> = (0..N).map(|_| draw(nodes, &mut rng).abs()).collect();
        sums.sort_unstable_by(f64::total_cmp);
        let distance = |law: &ReleaseLaw| {
            let off = |(i, &x): (usize, &f64)| (law.tail(x) - (1.0 - (i as f64 + 0.5) / N as f64)).abs();
            sums.iter().enumerate().map(off).fold(0.0, f64::max)
        };
        assert!(distance(&laplace(nodes)) < band, "{nodes}: {}", distance(&laplace(nodes)));
        for wrong in [ReleaseLaw::Normal { std: laplace(nodes).std() }, laplace(nodes + 1), laplace((nodes - 1).max(1))]
        {
            assert!(wrong == laplace(nodes) || distance(&wrong) > band, "{nodes} {wrong:?}");
        }
    }
}

#[test]
fn characteristic_function_and_cumulants_are_integrals_of_the_density() {
    for nodes in NODES {
        let law = ReleaseLaw::Laplace { scale: 2.0, nodes };
        let sd = law.std();
        let density = |x: f64| laplace_density(nodes, x / 2.0) / 2.0;
        let end = law.quantile(1e-30);
        for t in [0.1 / sd, 1.0 / sd, 3.0 / sd] {
            let mean = 2.0 * integral(0.0, end, 20_000, |x| density(x) * (t * x).cos());
            assert!((law.log_characteristic(t).exp() - mean).abs() < 1e-9, "{nodes} {t}");
        }
        let t = 0.2 / sd;
        let mean = integral(0.0, end, 20_000, |x| density(x) * ((t * x).exp() + (-t * x).exp()));
        assert!(close(law.cumulant(t), mean.ln(), 1e-8), "{nodes}");
        assert!(law.cumulant(0.4999).is_finite() && law.cumulant(0.5) == f64::INFINITY);
        // So as in the far end of it: e^-30.
        let cut = law.vanishes(30.0);
        assert!(close(law.log_characteristic(cut), -30.0, 1e-9) && law.log_characteristic(1.01 * cut) < -30.0);
    }
    let normal = ReleaseLaw::Normal { std: 2.0 };
    assert_eq!((normal.log_characteristic(3.0), normal.cumulant(3.0)), (-18.0, 18.0));
    assert!(close(normal.vanishes(18.0), 3.0, 1e-15));
}

/// The median of three Laplace variables has the variance 23/36 (tables of order statistics); and 200,000 medians a case,
/// fixed seed: mean squares, and means and variances of the distance of the rows about the median, within 4.9 standard
/// errors (alpha 1e-6 each; 1.2 to 2 %). Rejects `m(depth)`, the variance of the median of normal values (asserted), off by 4 to
/// 60 %.
#[test]
fn medians_vary_as_simulated_ones_do() {
    const N: usize = 200_000;
    assert!(close(laplace(1).median_variance(3), 23.0 / 36.0, 1e-7), "{}", laplace(1).median_variance(3));
    let mut rng = ChaCha12Rng::from_seed([2; 32]);
    for (nodes, depth) in [(1, 1), (1, 3), (1, 5), (3, 5), (3, 9), (15, 5), (15, 9)] {
        let law = ReleaseLaw::Laplace { scale: 1.0, nodes };
        let (mut medians, mut spacings) = (Vec::with_capacity(N), Vec::with_capacity(N));
        let places = (depth / 4).max(1);
        for _ in 0..N {
            let mut rows: Vec<f64> = (0..depth).map(|_| draw(nodes, &mut rng) / law.std()).collect();
            rows.sort_unstable_by(f64::total_cmp);
            medians.push(rows[depth / 2] * rows[depth / 2]);
            spacings.push(if depth > 1 { rows[depth / 2 + places] - rows[depth / 2 - places] } else { 0.0 });
        }
        let moments = |values: &[f64]| {
            let mean = values.iter().sum::<f64>() / N as f64;
            (mean, values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / N as f64)
        };
        let (second, variance) = moments(&medians);
        let band = 4.9 * (variance / N as f64).sqrt();
        let stated = law.standard_median_variance(depth);
        assert!((second - stated).abs() < band, "{nodes} {depth}: {second} {stated} {band}");
        assert!(depth == 1 || (second - quantile::median_variance(depth)).abs() > band, "{nodes} {depth}");
        if depth > 1 {
            let ((mean, variance), stated) = (moments(&spacings), law.standard_middle_spacing(depth, places));
            let normal = quantile::middle_spacing(depth, places);
            let band = 4.9 * (variance / N as f64).sqrt();
            // 1e-3 for the rule.
            assert!((mean - stated.0).abs() < band + 1e-3 * mean, "{nodes} {depth}: {mean} {stated:?}");
            assert!(close(stated.1, variance, 0.05), "{nodes} {depth}: {variance} {stated:?}");
            assert!((mean - normal.0).abs() > band + 1e-3 * mean, "{nodes} {depth}: {mean} {normal:?}");
        }
    }
    for depth in [1, 3, 5] {
        let normal = ReleaseLaw::Normal { std: 2.0 };
        assert_eq!(normal.standard_median_variance(depth), quantile::median_variance(depth));
        assert_eq!(normal.median_variance(depth), 4.0 * quantile::median_variance(depth));
        assert_eq!(Medians::new(&normal, depth).below_normal(3.0, 1.0), 0.0);
        if depth > 1 {
            assert_eq!(normal.standard_middle_spacing(depth, 1), quantile::middle_spacing(depth, 1));
        }
    }
}

/// 200,000 medians of five rows of Laplace noise and normal collisions a case, fixed seed: within 4.9 standard errors and 4 %
/// of the stated variance. Rejects normal rows, and a share that is not squared, where they are off by more (asserted).
#[test]
fn medians_of_noise_and_collisions_are_between() {
    const N: usize = 200_000;
    let mut rng = ChaCha12Rng::from_seed([3; 32]);
    for (nodes, other) in [(1, 0.0), (1, 0.25), (1, 1.0), (1, 4.0), (3, 1.0)] {
        let medians = Medians::new(&laplace(nodes), 5);
        let squares: Vec<f64> = (0..N)
            .map(|_| {
                let mut rows = [0.0; 5].map(|_: f64| {
                    let collisions: f64 = StandardNormal.sample(&mut rng);
                    draw(nodes, &mut rng) / laplace(nodes).std() + collisions * f64::sqrt(other)
                });
                rows.sort_unstable_by(f64::total_cmp);
                rows[2] * rows[2]
            })
            .collect();
        let mean = squares.iter().sum::<f64>() / N as f64;
        let variance = squares.iter().map(|square| (square - mean) * (square - mean)).sum::<f64>() / N as f64;
        let band = 4.9 * (variance / N as f64).sqrt() + 0.04 * mean;
        let normal = medians.normal * (1.0 + other);
        let stated = normal - medians.below_normal(1.0, other);
        assert!((mean - stated).abs() < band, "{nodes} {other}: {mean} {stated} {band}");
        assert!(other > 1.0 || nodes > 1 || (mean - normal).abs() > band, "{nodes} {other}");
        let linear = medians.noise + medians.normal * other;
        assert!(other == 0.0 || other > 1.0 || nodes > 1 || (mean - linear).abs() > band, "{nodes} {other}: {linear}");
    }
}

/// Sums of equal weights have a law in closed form: as many times the nodes. Rejects the normal quantile, and for likely errors
/// that of the single cell (asserted).
#[test]
fn quantiles_of_sums_lie_below_their_bound() {
    let (mut normal_fails, mut cell_fails) = (false, false);
    for nodes in [1, 2, 3, 15] {
        for cells in [1, 2, 3, 4] {
            for i in 1..400 {
                let tail = (-0.1 * f64::from(i)).exp();
                let exact = laplace(nodes * cells).standard_quantile(tail);
                assert!(exact <= 1.01 * laplace(nodes).standard_quantile_of_sums(tail), "{nodes} {cells} {tail}");
                normal_fails |= exact > 1.05 * two_sided_quantile(tail);
                cell_fails |= exact > 1.05 * laplace(nodes).standard_quantile(tail);
            }
        }
    }
    assert!(normal_fails && cell_fails);
}
