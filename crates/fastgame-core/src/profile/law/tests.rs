use std::vec::Vec;

use chacha20::ChaCha12Rng;
use rand_core::{Rng, SeedableRng};
use rand_distr::{Distribution, StandardNormal};

use super::*;
use crate::quantile::{median_variance, two_sided_quantile};
use crate::release_law::tests::draw;

fn profile(frequencies: &[f64]) -> FrequencyProfile {
    FrequencyProfile::from_frequencies(frequencies.iter().copied()).unwrap()
}

fn normal(v: f64) -> ReleaseLaw {
    ReleaseLaw::Normal { std: v.sqrt() }
}

fn uniform(rng: &mut ChaCha12Rng) -> f64 {
    ((rng.next_u64() >> 11) as f64 + 0.5) * (1.0f64 / (1u64 << 53) as f64)
}

/// Errors of a sketch, by throwing every key that lands in the bucket: how many to skip is geometric.
fn simulated(v: f64, width: f64, frequencies: &[f64], depth: usize, n: usize, rng: &mut ChaCha12Rng) -> Vec<f64> {
    let mut noise = |rng: &mut ChaCha12Rng| {
        let noise: f64 = StandardNormal.sample(rng);
        noise * v.sqrt()
    };
    simulated_with(&mut noise, width, frequencies, depth, n, rng)
}

fn simulated_with(
    noise: &mut dyn FnMut(&mut ChaCha12Rng) -> f64,
    width: f64,
    frequencies: &[f64],
    depth: usize,
    n: usize,
    rng: &mut ChaCha12Rng,
) -> Vec<f64> {
    let log = (1.0 - 1.0 / width).ln();
    let mut medians = Vec::with_capacity(n);
    for _ in 0..n {
        let mut rows: Vec<f64> = (0..depth)
            .map(|_| {
                let mut error = noise(rng);
                let mut key = (uniform(rng).ln() / log) as usize;
                while key < frequencies.len() {
                    error += if rng.next_u32() & 1 == 0 { frequencies[key] } else { -frequencies[key] };
                    key += 1 + (uniform(rng).ln() / log) as usize;
                }
                error
            })
            .collect();
        rows.sort_by(f64::total_cmp);
        medians.push(rows[depth / 2]);
    }
    medians
}

fn zipf(n: i32, top: f64, exponent: f64) -> Vec<f64> {
    (1..=n).map(|rank| (top * f64::from(rank).powf(-exponent)).round()).collect()
}

/// 40,000 estimates a case, fixed seed: the share beyond the stated quantile at each of four confidences is binomial, alpha
/// 1e-6 each (4.9 standard deviations: 0.5 % of the share at 0.95, and 1.2 % at 0.5). Rejects the Gaussian formula where
/// heavy keys matter (asserted), and noise alone.
#[test]
fn quantiles_are_those_of_simulated_sketches() {
    const N: usize = 40_000;
    let cases: [(f64, f64, Vec<f64>, usize, bool); 8] = [
        (400.0, 64.0, zipf(1000, 20_000.0, 1.2), 5, true),
        (400.0, 512.0, zipf(1000, 20_000.0, 1.2), 3, true),
        (400.0, 16.0, zipf(300, 3_000.0, 0.8), 1, false),
        (400.0, 256.0, zipf(2000, 3_000.0, 0.8), 9, true),
        // Equal keys: they cancel. Far above the noise, one octave and many.
        (1.0, 64.0, std::vec![1000.0; 64], 3, false),
        (1.0, 8.0, std::vec![100.0; 4000], 5, false),
        (100.0, 128.0, std::vec![15.0; 500], 5, false),
        // Every key in every row.
        (1.0, 1.0, zipf(101, 50.0, 0.5), 3, false),
    ];
    let mut rng = ChaCha12Rng::from_seed([5; 32]);
    for (case, (v, width, frequencies, depth, heavy)) in cases.into_iter().enumerate() {
        let lattice = frequencies[0] == frequencies[1];
        let known = profile(&frequencies);
        let law = RowLaw::new(normal(v), width as usize, &known);
        let errors = if width == 1.0 {
            simulated(v, 1.0 + 1e-12, &frequencies, depth, N, &mut rng)
        } else {
            simulated(v, width, &frequencies, depth, N, &mut rng)
        };
        let beyond = |bound: f64| errors.iter().filter(|error| error.abs() > bound).count() as f64 / N as f64;
        for tail in [0.5, 0.1, 0.05, 0.01f64] {
            let band = 4.9 * (tail * (1.0 - tail) / N as f64).sqrt();
            let bound = law.median_quantile(depth, tail);
            // The law of a lattice far above the noise has steps: its quantile is at one of them.
            let slack = if lattice { 0.03 } else { 0.0 };
            let (low, high) = (beyond(bound * (1.0 + slack)) - band, beyond(bound * (1.0 - slack)) + band);
            assert!(low < tail && tail < high, "case {case}, tail {tail}: {low} to {high}");
        }
        let gaussian = two_sided_quantile(0.05) * (median_variance(depth) * law.variance()).sqrt();
        assert_eq!(
            heavy && (beyond(gaussian) - 0.05).abs() > 4.9 * (0.05f64 * 0.95 / N as f64).sqrt(),
            heavy,
            "{case}"
        );
    }
}

/// 40,000 estimates a case, fixed seed: the mean square against the stated variance, alpha 1e-6 with the standard error from
/// the fourth moment of the sample (2 to 5 % of the variance here). Rejects `m(d) (v + F2 / width)`, off by 1.3 to 100.
#[test]
fn standard_deviations_are_those_of_simulated_sketches() {
    const N: usize = 40_000;
    let mut rng = ChaCha12Rng::from_seed([6; 32]);
    for (v, width, frequencies, depth) in [
        (400.0, 64.0, zipf(1000, 3_000.0, 1.0), 5),
        (400.0, 512.0, zipf(1000, 3_000.0, 1.2), 5),
        (400.0, 128.0, zipf(2000, 1_000.0, 0.8), 9),
        (400.0, 1024.0, zipf(2000, 1_000.0, 0.8), 3),
    ] {
        let known = profile(&frequencies);
        let law = RowLaw::new(normal(v), width as usize, &known);
        let stated = law.median_std(depth).powi(2);
        let squares: Vec<f64> =
            simulated(v, width, &frequencies, depth, N, &mut rng).iter().map(|error| error * error).collect();
        let mean = squares.iter().sum::<f64>() / N as f64;
        let variance = squares.iter().map(|square| (square - mean).powi(2)).sum::<f64>() / N as f64;
        let standard_error = (variance / N as f64).sqrt();
        assert!((mean - stated).abs() < 4.9 * standard_error, "{width} {depth}: {mean} {stated} {standard_error}");
        assert!((mean - median_variance(depth) * law.variance()).abs() > 4.9 * standard_error);
    }
}

#[test]
fn the_variance_of_one_row_is_that_of_noise_and_collisions() {
    let known = profile(&zipf(1000, 3_000.0, 1.0));
    for width in [1usize, 16, 4096] {
        let law = RowLaw::new(normal(9.0), width, &known);
        assert!((law.median_std(1) / (9.0 + known.second_moment() / width as f64).sqrt() - 1.0).abs() < 1e-12);
        // And so it is when it is summed over the tail, as for more rows.
        let second: f64 =
            law.tails(1e-12).windows(2).map(|p| (p[1].0 - p[0].0) * (p[0].0 * p[0].1 + p[1].0 * p[1].1)).sum();
        assert!((second / law.variance() - 1.0).abs() < 5e-3, "{width}: {}", second / law.variance());
    }
}

/// The inversion against closed forms: no keys, and many small ones (that, a normal law of variance v + F2 / width).
#[test]
fn without_heavy_keys_the_law_is_normal() {
    let none = profile(&[]);
    let many = FrequencyProfile::zipf(1e9, 1_000_000_000, 0.0).unwrap();
    for (law, width) in [(RowLaw::new(normal(4.0), 1024, &none), 1024), (RowLaw::new(normal(4.0), 4, &many), 4)] {
        let sd = law.variance().sqrt();
        assert!(width != 4 || sd > 10_000.0);
        for depth in [1usize, 3, 5, 9] {
            assert!((law.median_std(depth) / sd / median_variance(depth).sqrt() - 1.0).abs() < 2e-3, "{depth}");
            for tail in [0.5, 0.05, 1e-3] {
                let stated = law.median_quantile(depth, tail) / sd;
                let normal = two_sided_quantile(tail_of_one_row(depth, tail));
                assert!((stated / normal - 1.0).abs() < 2e-3, "{depth} {tail}: {stated} {normal}");
            }
        }
    }
}

#[test]
fn errors_grow_with_confidence_and_fall_with_width() {
    let known = FrequencyProfile::zipf(1e9, 1 << 40, 1.1).unwrap();
    for depth in [1usize, 5] {
        let mut last = 0.0;
        for tail in [0.5, 0.1, 1e-2, 1e-4, 1e-6, 1e-8, 1e-10, 1e-15, 1e-30, 1e-300] {
            let error = RowLaw::new(normal(100.0), 4096, &known).median_quantile(depth, tail);
            assert!(error.is_finite() && error >= last, "{depth} {tail}: {error} {last}");
            last = error;
        }
        last = f64::INFINITY;
        for bits in 0..=30 {
            let error = RowLaw::new(normal(100.0), 1 << bits, &known).median_quantile(depth, 0.05);
            assert!(error <= last * 1.0001, "{depth} {bits}: {error} {last}");
            last = error;
        }
    }
}

/// Noise without which a row would be a lattice, and keys far beyond: nothing overflows, and nothing is missed.
#[test]
fn extremes_are_finite() {
    for (v, frequency, keys) in [(1e-20, 1e18, 3), (1e20, 1e-9, 3), (1e-12, 1.0, 100_000), (1e-300, 9e18, 1)] {
        let known = profile(&std::vec![frequency; keys]);
        for width in [1usize, 2, 1 << 30] {
            let law = RowLaw::new(normal(v), width, &known);
            for depth in [1usize, 3, 63] {
                assert!(law.median_std(depth).is_finite(), "{v} {frequency} {width}");
                for tail in [0.9, 0.05, 1e-9] {
                    let error = law.median_quantile(depth, tail);
                    assert!(error.is_finite() && error > 0.0, "{v} {frequency} {width} {depth} {tail}: {error}");
                }
            }
        }
    }
}

fn laplace(v: f64, nodes: u32) -> ReleaseLaw {
    ReleaseLaw::Laplace { scale: (v / f64::from(2 * nodes)).sqrt(), nodes }
}

/// Laplace noise without keys: the inversion, which is not asked then, beside the law itself. And standard deviations of
/// medians, and bounds of tails that are not resolved.
#[test]
fn without_keys_the_law_is_that_of_the_noise() {
    let none = profile(&[]);
    for nodes in [1, 2, 3, 5, 11, 21, 63] {
        let noise = laplace(9.0, nodes);
        let law = RowLaw::new(noise, 1024, &none);
        for tail in [0.9, 0.5, 0.05, 1e-3, 1e-5, 1e-7] {
            let (found, exact) = (law.inverted(tail), noise.quantile(tail));
            assert!((found / exact - 1.0).abs() < 0.01, "{nodes} {tail}: {found} {exact}");
        }
        for depth in [1usize, 3, 9] {
            let exact = noise.median_variance(depth).sqrt();
            assert!((law.median_std(depth) / exact - 1.0).abs() < 5e-3, "{nodes} {depth}");
            let tail = tail_of_one_row(depth, 0.05);
            assert!((law.median_quantile(depth, 0.05) / noise.quantile(tail) - 1.0).abs() < 0.01, "{nodes} {depth}");
        }
        for tail in [1e-8, 1e-20, 1e-100, 1e-300] {
            let (bound, exact) = (law.chernoff(tail), noise.quantile(tail));
            assert!(bound >= exact && bound < 1.35 * exact, "{nodes} {tail}: {bound} {exact}");
        }
    }
}

/// 40,000 estimates a case, fixed seed, as for normal noise: shares beyond quantiles within 4.9 standard deviations, mean squares
/// within 4.9 standard errors (alpha 1e-6 each). Rejects normal noise of that variance where noise is most of the error (asserted).
#[test]
fn laplace_noise_and_collisions_are_those_of_simulated_sketches() {
    const N: usize = 40_000;
    let mut rng = ChaCha12Rng::from_seed([7; 32]);
    let cases: [(u32, f64, f64, Vec<f64>, usize, bool); 6] = [
        (1, 400.0, 512.0, zipf(1000, 20_000.0, 1.2), 3, false),
        (1, 400.0, 4096.0, zipf(1000, 1_000.0, 1.0), 1, true),
        (1, 400.0, 256.0, zipf(2000, 3_000.0, 0.8), 9, false),
        (2, 400.0, 64.0, zipf(1000, 3_000.0, 1.0), 5, false),
        (3, 400.0, 4096.0, zipf(1000, 20_000.0, 1.2), 5, true),
        (15, 400.0, 64.0, zipf(1000, 20_000.0, 1.2), 5, false),
    ];
    for (case, (nodes, v, width, frequencies, depth, noisy)) in cases.into_iter().enumerate() {
        let known = profile(&frequencies);
        let noise = laplace(v, nodes);
        let law = RowLaw::new(noise, width as usize, &known);
        let scale = noise.std() / f64::from(2 * nodes).sqrt();
        let mut draws = |rng: &mut ChaCha12Rng| scale * draw(nodes, rng);
        let errors = simulated_with(&mut draws, width, &frequencies, depth, N, &mut rng);
        let beyond = |bound: f64| errors.iter().filter(|error| error.abs() > bound).count() as f64 / N as f64;
        let off = |law: &RowLaw<'_>, tail: f64| {
            (beyond(law.median_quantile(depth, tail)) - tail).abs() / (tail * (1.0 - tail) / N as f64).sqrt()
        };
        let normal = RowLaw::new(normal(v), width as usize, &known);
        let mut worst = 0.0f64;
        for tail in [0.5, 0.1, 0.05, 0.01f64] {
            assert!(off(&law, tail) < 4.9, "case {case}, tail {tail}: {}", off(&law, tail));
            worst = worst.max(off(&normal, tail));
        }
        assert!(!noisy || worst > 4.9, "case {case}: {worst}");
        let squares: Vec<f64> = errors.iter().map(|error| error * error).collect();
        let mean = squares.iter().sum::<f64>() / N as f64;
        let variance = squares.iter().map(|square| (square - mean).powi(2)).sum::<f64>() / N as f64;
        let stated = law.median_std(depth).powi(2);
        assert!((mean - stated).abs() < 4.9 * (variance / N as f64).sqrt(), "case {case}: {mean} {stated}");
    }
}

#[test]
fn errors_with_laplace_noise_grow_with_confidence_and_fall_with_width() {
    let known = FrequencyProfile::zipf(1e9, 1 << 40, 1.1).unwrap();
    for nodes in [1, 11] {
        let mut last = 0.0;
        for tail in [0.9, 0.5, 0.1, 1e-2, 1e-4, 1e-6, 1e-8, 1e-15, 1e-30, 1e-300] {
            let error = RowLaw::new(laplace(100.0, nodes), 4096, &known).median_quantile(5, tail);
            assert!(error.is_finite() && error >= last, "{nodes} {tail}: {error} {last}");
            last = error;
        }
        last = f64::INFINITY;
        for bits in 0..=30 {
            let error = RowLaw::new(laplace(100.0, nodes), 1 << bits, &known).median_quantile(5, 0.05);
            assert!(error <= last * 1.0001, "{nodes} {bits}: {error} {last}");
            last = error;
        }
    }
    for (v, frequency, keys) in [(1e-20, 1e18, 3), (1e20, 1e-9, 3), (1e-12, 1.0, 100_000), (1e-300, 9e18, 1)] {
        let known = profile(&std::vec![frequency; keys]);
        for (width, nodes) in [(1usize, 1), (2, 63), (1 << 30, 3)] {
            let law = RowLaw::new(laplace(v, nodes), width, &known);
            assert!(law.median_std(5).is_finite(), "{v} {frequency} {width}");
            for tail in [0.9, 0.05, 1e-9] {
                let error = law.median_quantile(5, tail);
                assert!(error.is_finite() && error > 0.0, "{v} {frequency} {width} {tail}: {error}");
            }
        }
    }
}
