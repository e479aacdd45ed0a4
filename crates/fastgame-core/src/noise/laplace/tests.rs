//! The law of the Laplace tree at jump sequences, against plain trees whose node variables are drawn one by one by another
//! sampler; and wrong laws, which the same tests have to reject.

use core::convert::Infallible;
use std::collections::BTreeMap;
use std::format;
use std::string::String;
use std::vec;
use std::vec::Vec;

use chacha20::ChaCha12Rng;
use rand_core::{Rng, SeedableRng, TryRng};
use rand_distr::{Distribution, Exp1, StandardNormal};

use super::*;
use crate::mechanism::cells::{CellNoise, Request};
use crate::mechanism::tree::Tree;
use crate::noise::FailStop;

/// The scale of a node variable in all tests.
const B: f64 = 1.7;
/// Trees a sample.
const SAMPLES: usize = 200_000;
/// At most this many statistics are computed of correct laws, in all tests of this file; alpha = 1e-6 for all together.
const STATISTICS: f64 = 4000.0;
const ALPHA: f64 = 1e-6;
/// For means of products: `P(|Z| > 6.5) < 8.1e-11 < ALPHA / STATISTICS`.
const LIMIT: f64 = 6.5;
/// For means of fourth powers, whose law is still skewed at this sample size: `P(|Z| > 6.5)` with room for that.
const LIMIT_FOURTH: f64 = 9.0;

/// Heights and steps: first reads, forks, bridges, bridges of what a bridge has left, jumps short and long.
const SEQUENCES: [(u32, &[u64]); 14] = [
    (0, &[1]),
    (1, &[1, 2]),
    (3, &[1, 2, 3, 4, 5, 6, 7, 8]),
    (3, &[2, 5, 8]),
    (3, &[7]),
    (10, &[1, 400, 401, 513, 1000]),
    (10, &[1000, 1001, 1002, 1003]),
    (10, &[512, 513]),
    (10, &[1, 1 + 32, 1 + 32 + 128, 1 + 512 + 256, 1 + 512 + 256 + 1]),
    (20, &[1, 2, 3]),
    (20, &[1, 700_000, 1 << 20]),
    (20, &[300_000, 524_289, 524_290, 786_433, 800_000]),
    // Each split is deeper than the one before: the stack grows.
    (20, &[1, 1 + (1 << 19), 1 + (1 << 19) + (1 << 14), 1 + (1 << 19) + (1 << 14) + (1 << 3)]),
    // And shallower: it shrinks.
    (20, &[1, 9, 1 + (1 << 6), 1 + (1 << 12), 1 + (1 << 19)]),
];

fn seeded(seed: u64) -> ChaCha12Rng {
    ChaCha12Rng::seed_from_u64(seed)
}

/// How many levels the paths to two steps share, the root not counted.
fn shared(a: u64, b: u64, height: u32) -> u32 {
    height - (0..=height).find(|&k| (a - 1) >> k == (b - 1) >> k).expect("the root is shared")
}

/// The noise of plain trees, `[step][tree]`: each node on a path is drawn on its own, as the difference of two exponential
/// variables of `rand_distr`'s ziggurat, which the code under test does not use.
fn plain(height: u32, steps: &[u64], seed: u64) -> Vec<Vec<f64>> {
    let mut rng = seeded(seed);
    let mut numbers = BTreeMap::new();
    let paths: Vec<Vec<usize>> = steps
        .iter()
        .map(|step| {
            (0..=height)
                .map(|level| {
                    let next = numbers.len();
                    *numbers.entry((level, (step - 1) >> (height - level))).or_insert(next)
                })
                .collect()
        })
        .collect();
    let mut values = vec![Vec::with_capacity(SAMPLES); steps.len()];
    let mut nodes = vec![0.0; numbers.len()];
    for _ in 0..SAMPLES {
        for node in &mut nodes {
            let (up, down): (f64, f64) = (Exp1.sample(&mut rng), Exp1.sample(&mut rng));
            *node = B * (up - down);
        }
        for (path, values) in paths.iter().zip(&mut values) {
            values.push(path.iter().map(|&node| nodes[node]).sum());
        }
    }
    values
}

/// The noise of fast trees, `[step][tree]`, a cell each: swept together, or read on their own.
fn fast(law: impl Law, height: u32, steps: &[u64], alone: bool, seed: u64) -> Vec<Vec<f64>> {
    let mut rng = seeded(seed);
    let mut noise = CellNoise::new(Tree::new(height, law), &[SAMPLES]);
    let cells: Vec<u64> = (0..SAMPLES as u64).collect();
    let read = |&step| {
        let request = if alone { Request::Cells(&cells) } else { Request::All };
        noise.draw(request, step, &mut rng).unwrap();
        noise.commit().to_vec()
    };
    steps.iter().map(read).collect()
}

/// The largest distance of the distribution functions of two samples of one size.
fn distance(mut left: Vec<f64>, mut right: Vec<f64>) -> f64 {
    left.sort_unstable_by(f64::total_cmp);
    right.sort_unstable_by(f64::total_cmp);
    let (mut i, mut j, mut largest) = (0, 0, 0);
    while i < left.len() && j < right.len() {
        if left[i] <= right[j] {
            i += 1;
        } else {
            j += 1;
        }
        largest = largest.max(i.abs_diff(j));
    }
    largest as f64 / left.len() as f64
}

/// The limit of [`distance`]: `P(distance > x) <= 2 e^(-n x^2)` for samples of `n >= 458` (Wei and Dudley, 2012).
fn distance_limit() -> f64 {
    ((2.0 * STATISTICS / ALPHA).ln() / SAMPLES as f64).sqrt()
}

/// The even moments of a sum of `n` Laplace variables of scale `B`, from its cumulants `2 n (2k - 1)! B^(2k)`: orders 2, 4, 8.
fn moments(n: f64) -> (f64, f64, f64) {
    let [k2, k4, k6, k8] =
        [(2, 1.0), (4, 6.0), (6, 120.0), (8, 5040.0)].map(|(order, factorial)| 2.0 * n * factorial * B.powi(order));
    let eighth = k8 + 28.0 * k6 * k2 + 35.0 * k4 * k4 + 210.0 * k4 * k2 * k2 + 105.0 * k2.powi(4);
    (k2, k4 + 3.0 * k2 * k2, eighth)
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    values.sum::<f64>() / SAMPLES as f64
}

/// What a law failed, with the statistic.
#[derive(Debug, Default)]
struct Verdict {
    distances: Vec<String>,
    covariances: Vec<String>,
    fourths: Vec<String>,
    statistics: usize,
}

impl Verdict {
    fn is_clean(&self) -> bool {
        self.distances.is_empty() && self.covariances.is_empty() && self.fourths.is_empty()
    }

    /// Compares samples of the noise at some steps: the distribution functions of values and pairwise differences with those of
    /// plain trees, the means of products with `(LCP + 1) 2 b^2`, and fourth moments.
    fn add(&mut self, height: u32, steps: &[u64], values: &[Vec<f64>], plain: &[Vec<f64>]) {
        let difference = |values: &[Vec<f64>], i: usize, j: usize| -> Vec<f64> {
            values[i].iter().zip(&values[j]).map(|(a, b)| a - b).collect()
        };
        let root = (SAMPLES as f64).sqrt();
        for i in 0..steps.len() {
            for j in 0..=i {
                let common = f64::from(shared(steps[i], steps[j], height) + 1);
                let apart = f64::from(height + 1) - common;
                let place = format!("height {height}, steps {} and {}", steps[i], steps[j]);

                let (sample, other, terms) = if i == j {
                    (values[i].clone(), plain[i].clone(), common)
                } else {
                    (difference(values, i, j), difference(plain, i, j), 2.0 * apart)
                };
                let (_, fourth, eighth) = moments(terms);
                let score =
                    (mean(sample.iter().map(|x| x.powi(4))) - fourth) * root / (eighth - fourth * fourth).sqrt();
                if score.abs() > LIMIT_FOURTH {
                    self.fourths.push(format!("{place}: {score}"));
                }
                let distance = distance(sample, other);
                if distance > distance_limit() {
                    self.distances.push(format!("{place}: {distance}"));
                }

                // Values are C + A and C + A' with independent sums of `common` and `apart` variables.
                let ((c2, c4, _), (a2, _, _)) = (moments(common), moments(apart));
                let variance = if i == j { c4 - c2 * c2 } else { c4 + 2.0 * c2 * a2 + a2 * a2 - c2 * c2 };
                let got = mean(values[i].iter().zip(&values[j]).map(|(a, b)| a * b));
                let score = (got - common * 2.0 * B * B) * root / variance.sqrt();
                if score.abs() > LIMIT {
                    self.covariances.push(format!("{place}: {score}"));
                }
                self.statistics += 3;
            }
        }
    }
}

fn laplace() -> Laplace {
    Laplace::new(B, 63).unwrap()
}

/// 200,000 trees a sequence and way to read; alpha = 1e-6 for all statistics of this file together. That it can reject is
/// shown by the tests below, with the same limits.
#[test]
fn reads_at_jump_sequences_have_the_law_of_sums_of_laplace_variables() {
    let mut verdict = Verdict::default();
    for (seed, (height, steps)) in (1..).zip(SEQUENCES) {
        let plain = plain(height, steps, 1000 + seed);
        for alone in [false, true] {
            verdict.add(height, steps, &fast(laplace(), height, steps, alone, 2 * seed + u64::from(alone)), &plain);
        }
    }
    assert!(verdict.is_clean(), "{verdict:?}");
    assert!(verdict.statistics > 500 && (verdict.statistics as f64) < STATISTICS / 2.0, "{}", verdict.statistics);
}

/// The plain trees themselves pass (the limits do not depend on the code under test).
#[test]
fn plain_trees_pass_the_same_test() {
    let mut verdict = Verdict::default();
    for (height, steps) in [SEQUENCES[0], SEQUENCES[3], SEQUENCES[8]] {
        verdict.add(height, steps, &plain(height, steps, 5), &plain(height, steps, 6));
    }
    assert!(verdict.is_clean(), "{verdict:?}");
}

/// Mistakes that the Laplace law could be written with.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// The bridge takes its ends for one another.
    Swapped,
    /// `Beta(p + 1, q)`.
    OneMore,
    /// `Beta(p, q + 1)`.
    OneMoreBelow,
    /// Sums are `Gamma(n + 1)`.
    Shape,
    /// The value alone is split, by one share, instead of both gamma sums.
    ValueOnly,
    /// The bridge has the mean share and no variance.
    Flat,
    /// 3 % too wide.
    Wide,
    /// 3 % too narrow.
    Narrow,
    /// Normal variables of the same variance, with their bridge.
    Normal,
}

struct Faulty {
    law: Laplace,
    fault: Fault,
}

impl Faulty {
    fn new(fault: Fault) -> Self {
        let scale = match fault {
            Fault::Wide => 1.03 * B,
            Fault::Narrow => 0.97 * B,
            _ => B,
        };
        Self { law: Laplace::new(scale, 63).unwrap(), fault }
    }
}

fn normal(variance: f64, rng: &mut impl Rng) -> f64 {
    let z: f64 = StandardNormal.sample(rng);
    variance.sqrt() * z
}

impl Law for Faulty {
    type Sum = GammaSums;

    const NORMALS: usize = 0;

    fn sum(&self, n: u32, source: &mut Source<'_, impl Rng>) -> GammaSums {
        match self.fault {
            Fault::Shape => self.law.sum(n + 1, source),
            Fault::Normal => GammaSums { up: normal(2.0 * B * B * f64::from(n), source.rng), down: 0.0 },
            _ => self.law.sum(n, source),
        }
    }

    fn bridge(&self, p: u32, q: u32, total: GammaSums, source: &mut Source<'_, impl Rng>) -> GammaSums {
        let mean = f64::from(p) / f64::from(p + q);
        match self.fault {
            Fault::Swapped => self.law.bridge(q, p, total, source),
            Fault::OneMore => self.law.bridge(p + 1, q, total, source),
            Fault::OneMoreBelow => self.law.bridge(p, q + 1, total, source),
            Fault::ValueOnly => {
                let share = self.law.share(p, q, source.rng);
                GammaSums { up: total.up * share, down: total.down * share }
            }
            Fault::Flat => GammaSums { up: total.up * mean, down: total.down * mean },
            Fault::Normal => {
                GammaSums { up: total.up * mean + normal(2.0 * B * B * mean * f64::from(q), source.rng), down: 0.0 }
            }
            _ => self.law.bridge(p, q, total, source),
        }
    }

    fn add(a: GammaSums, b: GammaSums) -> GammaSums {
        Laplace::add(a, b)
    }

    fn subtract(a: GammaSums, b: GammaSums) -> GammaSums {
        Laplace::subtract(a, b)
    }

    fn value(sum: GammaSums) -> f64 {
        Laplace::value(sum)
    }
}

fn judged(fault: Fault, height: u32, steps: &[u64]) -> Verdict {
    let mut verdict = Verdict::default();
    verdict.add(height, steps, &fast(Faulty::new(fault), height, steps, false, 3), &plain(height, steps, 4));
    verdict
}

/// The sample sizes and limits are those of the test above.
#[test]
fn wrong_bridges_and_wrong_shapes_are_rejected_by_distances_and_by_covariances() {
    use Fault::{Flat, OneMore, OneMoreBelow, Shape, Swapped, ValueOnly};
    for fault in [Swapped, OneMore, OneMoreBelow, Shape, ValueOnly, Flat] {
        for (height, steps) in [SEQUENCES[2], SEQUENCES[5]] {
            let verdict = judged(fault, height, steps);
            assert!(!verdict.distances.is_empty(), "{fault:?} {height}: {verdict:?}");
            assert!(!verdict.covariances.is_empty(), "{fault:?} {height}: {verdict:?}");
        }
    }
    for fault in [Swapped, OneMore, OneMoreBelow, ValueOnly] {
        for (height, steps) in [SEQUENCES[11], SEQUENCES[12]] {
            assert!(!judged(fault, height, steps).covariances.is_empty(), "{fault:?} {height}");
        }
    }
    // A wrong shape shows even where nothing but the first read is made.
    for (height, steps) in [SEQUENCES[0], SEQUENCES[4], (20, &[1u64 << 19] as &[u64])] {
        assert!(!judged(Shape, height, steps).distances.is_empty(), "{height}");
    }
}

#[test]
fn a_scale_that_is_off_by_three_percent_is_rejected_by_covariances() {
    for fault in [Fault::Wide, Fault::Narrow] {
        for (height, steps) in [SEQUENCES[0], SEQUENCES[2], SEQUENCES[7], SEQUENCES[10]] {
            assert!(!judged(fault, height, steps).covariances.is_empty(), "{fault:?} {height}");
        }
    }
}

#[test]
fn the_normal_law_is_rejected_by_fourth_moments_and_passes_the_covariances() {
    for (height, steps) in [SEQUENCES[0], SEQUENCES[1], SEQUENCES[2]] {
        let verdict = judged(Fault::Normal, height, steps);
        assert!(!verdict.fourths.is_empty() && !verdict.distances.is_empty(), "{height}: {verdict:?}");
        assert!(verdict.covariances.is_empty(), "{height}: {verdict:?}");
    }
    // Differences of neighbouring leaves are sums of two variables at every height.
    assert!(!judged(Fault::Normal, 20, &[1, 2]).fourths.is_empty());
}

/// Mean and variance of `Gamma(n)` for every `n`, and of the share for all small `p` and `q`: 50,000 draws each, alpha = 1e-6
/// (limit 6.5 for 360 statistics). Rejected: `n + 1` for `n`, `p + 1` for `p`.
#[test]
fn gamma_sums_and_shares_have_their_moments() {
    const DRAWS: usize = 50_000;
    let (law, mut rng) = (laplace(), seeded(11));
    let score = |sample: &[f64], mean: f64, variance: f64| {
        (sample.iter().sum::<f64>() / DRAWS as f64 - mean) * (DRAWS as f64).sqrt() / variance.sqrt()
    };
    for n in 1..=63 {
        let k = f64::from(n);
        let sample: Vec<f64> = (0..DRAWS).map(|_| law.gamma(n, &mut rng) / B).collect();
        let squares: Vec<f64> = sample.iter().map(|x| (x - k) * (x - k)).collect();
        assert!(score(&sample, k, k).abs() < LIMIT, "{n}");
        assert!(score(&sample, k + 1.0, k).abs() > LIMIT, "{n}");
        // The fourth central moment is 3 k^2 + 6 k.
        assert!(score(&squares, k, 2.0 * k * k + 6.0 * k).abs() < LIMIT, "{n}");
    }
    for (p, q) in (1..=10).flat_map(|p| (1..=10).map(move |q| (p, q))) {
        let sample: Vec<f64> = (0..DRAWS).map(|_| law.share(p, q, &mut rng)).collect();
        let beta = |p: u32, q: u32| {
            let (p, q) = (f64::from(p), f64::from(q));
            (p / (p + q), p * q / ((p + q) * (p + q) * (p + q + 1.0)))
        };
        let ((mean, variance), (wrong, _)) = (beta(p, q), beta(p + 1, q));
        let squares: Vec<f64> = sample.iter().map(|x| (x - mean) * (x - mean)).collect();
        assert!(score(&sample, mean, variance).abs() < LIMIT, "{p} {q}");
        assert!(score(&sample, wrong, variance).abs() > LIMIT, "{p} {q}");
        // A share's deviation is below one, so its fourth moment is below its second.
        assert!(score(&squares, variance, variance).abs() < LIMIT, "{p} {q}");
    }
}

/// Gives one word for ever, but not too often.
struct Constant {
    word: u64,
    left: u32,
}

impl TryRng for Constant {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> core::result::Result<u32, Infallible> {
        self.try_next_u64().map(|word| (word >> 32) as u32)
    }

    fn try_next_u64(&mut self) -> core::result::Result<u64, Infallible> {
        self.left = self.left.checked_sub(1).expect("a sampler does not come to an end");
        Ok(self.word)
    }

    fn try_fill_bytes(&mut self, _: &mut [u8]) -> core::result::Result<(), Infallible> {
        unreachable!("a draw is made of whole words")
    }
}

/// Fails, always.
struct Dead;

impl TryRng for Dead {
    type Error = std::io::Error;

    fn try_next_u32(&mut self) -> core::result::Result<u32, Self::Error> {
        Err(std::io::Error::other("no entropy"))
    }

    fn try_next_u64(&mut self) -> core::result::Result<u64, Self::Error> {
        Err(std::io::Error::other("no entropy"))
    }

    fn try_fill_bytes(&mut self, _: &mut [u8]) -> core::result::Result<(), Self::Error> {
        Err(std::io::Error::other("no entropy"))
    }
}

#[test]
fn every_draw_ends_after_a_failing_generator() {
    let law = laplace();
    let total = GammaSums { up: 3.0, down: 2.0 };
    let check = |sum: GammaSums| assert!(sum.up.is_finite() && sum.down.is_finite(), "{sum:?}");
    // What FailStop feeds after a failure: a normal and a uniform word a gamma variable, no loop goes round twice.
    let after_failure = |left| Constant { word: FailStop::<'_, Dead>::AFTER_FAILURE, left };
    for n in 1..=63 {
        check(law.sum(n, &mut Source::new(&[], &mut after_failure(4))));
        check(law.sum(n, &mut Source::new(&[], &mut FailStop::new(&mut Dead))));
    }
    for (p, q) in (1..=62).flat_map(|p| (1..=63 - p).map(move |q| (p, q))) {
        check(law.bridge(p, q, total, &mut Source::new(&[], &mut after_failure(8))));
        let mut dead = Dead;
        let mut rng = FailStop::new(&mut dead);
        let part = law.bridge(p, q, total, &mut Source::new(&[], &mut rng));
        check(part);
        assert!(rng.failed() && part.up <= total.up && part.down <= total.down);
    }
}

#[test]
fn extreme_words_give_finite_exponential_variables_and_shares() {
    let with = |word| Constant { word, left: 100 };
    assert_eq!(exponential(&mut with(u64::MAX)), 0.0);
    let largest = exponential(&mut with(0));
    assert!((largest - 65.0 * core::f64::consts::LN_2).abs() < 1e-12, "{largest}");
    // Zero over zero would be no number.
    assert_eq!(laplace().share(1, 1, &mut with(u64::MAX)), 0.0);
    assert_eq!(laplace().share(1, 1, &mut with(0)), 0.5);
    let mut words: Vec<u64> = (0..64).flat_map(|k| [1u64 << k, (1 << k) - 1, u64::MAX - (1 << k)]).collect();
    words.sort_unstable();
    let values: Vec<f64> = words.iter().map(|&word| exponential(&mut with(word))).collect();
    assert!(values.windows(2).all(|pair| pair[0] >= pair[1]), "{values:?}");
}

#[test]
fn scales_that_are_no_positive_numbers_are_refused() {
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-310] {
        assert!(Laplace::new(bad, 3).is_err(), "{bad}");
    }
}
