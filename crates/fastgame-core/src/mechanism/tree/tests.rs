//! The law of the tree's noise, exactly (by propagating every draw) and by sampling; and Algorithm 1 of the paper,
//! line by line, beside the packed stacks.

use core::result::Result;
use std::collections::{BTreeMap, BTreeSet};
use std::format;
use std::string::String;
use std::vec;
use std::vec::Vec;

use proptest::prelude::*;
use rand_core::Rng;
use rand_distr::{Distribution, StandardNormal};

use super::*;
use crate::math::{erfc, sqrt};
use crate::mechanism::cells::CellNoise;
use crate::mechanism::testing::*;
use crate::noise::Zero;
use crate::noise::gaussian::Gaussian;
use crate::reference::{PlainTree, path_matrix};
use crate::time::Horizon;

type TreeNoise<L> = CellNoise<Tree<L>>;

fn tree_noise<L: Law>(height: u32, law: L, lengths: &[usize]) -> TreeNoise<L> {
    CellNoise::new(Tree::new(height, law), lengths)
}

#[derive(Clone, Debug)]
struct Read {
    step: u64,
    ask: Ask,
}

fn reads(steps: &[u64], ask: &Ask) -> Vec<Read> {
    steps.iter().map(|&step| Read { step, ask: ask.clone() }).collect()
}

/// `(LCP + 1) s^2`, by shifting the labels until they agree.
fn covariance(a: u64, b: u64, height: u32, s: f64) -> f64 {
    let below_split = (0..=height).find(|&k| (a - 1) >> k == (b - 1) >> k).expect("the root is shared");
    f64::from(height - below_split + 1) * s * s
}

fn levels(horizon: u64) -> u32 {
    Horizon::new(horizon).unwrap().levels()
}

// ---------------------------------------------------------------------------------------------------------------
// The exact law, without sampling
// ---------------------------------------------------------------------------------------------------------------

/// All values of a sequence of reads, and the words that each read took.
fn run<L: Law>(
    height: u32,
    law: L,
    lengths: &[usize],
    reads: &[Read],
    word: impl FnMut(usize) -> u64,
) -> (Vec<f64>, Vec<usize>) {
    let mut noise = tree_noise(height, law, lengths);
    let mut script = Script { word, used: 0 };
    let (mut values, mut words) = (Vec::new(), Vec::new());
    for read in reads {
        let before = script.used;
        noise.draw(read.ask.request(), read.step, &mut script).unwrap();
        values.extend_from_slice(noise.commit());
        words.push(script.used - before);
    }
    (values, words)
}

/// Checks the law of all values of a sequence of reads. They are linear in the standard normals drawn, `values = M z`.
/// One run for each draw, with all others zero, gives its column of M, and `M M^T` has to be the tree's covariance:
/// `(LCP + 1) s^2` between reads of one cell, 0 between cells. No sampling, so nothing but rounding is forgiven.
fn exact_law<L: Law>(
    height: u32,
    law: impl Fn(f64) -> L,
    lengths: &[usize],
    reads: &[Read],
    seed: u64,
) -> Result<(), String> {
    const TOLERANCE: f64 = 1e-12;
    let s = 1.7;
    let labels: Vec<(u64, u64)> =
        reads.iter().flat_map(|read| read.ask.cells(lengths).into_iter().map(move |cell| (cell, read.step))).collect();
    let (constant, words) = run(height, law(s), lengths, reads, |_| ZERO_WORD);
    if constant.len() != labels.len() || constant.iter().any(|&value| value != 0.0) {
        return Err(format!("without noise the values are {constant:?} for {} cells", labels.len()));
    }

    // One or two draws for each cell that is new at its step, two for its first read of all, none for a repeat.
    let (mut ever, mut last) = (BTreeSet::new(), BTreeMap::new());
    for (read, &words) in reads.iter().zip(&words) {
        let (mut new, mut first) = (0, 0);
        for cell in read.ask.cells(lengths) {
            new += usize::from(last.insert(cell, read.step) != Some(read.step));
            first += usize::from(ever.insert(cell));
        }
        let allowed = if height == 0 { new..=new } else { new + first..=2 * new };
        if !allowed.contains(&words) {
            return Err(format!("{words} draws at step {} for {new} new cells, {first} of them first", read.step));
        }
    }

    let total: usize = words.iter().sum();
    let hot = word(0.5);
    let z = normal(hot);
    let columns: Vec<Vec<f64>> = (0..total)
        .map(|k| {
            let (values, again) = run(height, law(s), lengths, reads, |i| if i == k { hot } else { ZERO_WORD });
            assert_eq!(again, words, "the number of draws depends on what is drawn");
            values.iter().map(|value| value / z).collect()
        })
        .collect();

    for (i, &(cell, step)) in labels.iter().enumerate() {
        for (j, &(other_cell, other_step)) in labels.iter().enumerate().take(i + 1) {
            let got: f64 = columns.iter().map(|column| column[i] * column[j]).sum();
            let want = if cell == other_cell { covariance(step, other_step, height, s) } else { 0.0 };
            let error = (got - want).abs();
            if error.is_nan() || error > TOLERANCE * want.max(s * s) {
                return Err(format!(
                    "covariance of cell {cell} at step {step} and cell {other_cell} at step {other_step} in a tree of \
                     height {height}: {got}, expected {want}"
                ));
            }
        }
    }

    // The columns tell all only if the values are linear in the draws: they add up for random draws.
    let mut rng = seeded(seed);
    let script: Vec<u64> =
        (0..total).map(|_| word(1.8 * below(1 << 53, &mut rng) as f64 / (1u64 << 53) as f64 - 0.9)).collect();
    let normals: Vec<f64> = script.iter().map(|&word| normal(word)).collect();
    let (values, _) = run(height, law(s), lengths, reads, |i| script[i]);
    for (i, value) in values.iter().enumerate() {
        let sum: f64 = columns.iter().zip(&normals).map(|(column, z)| column[i] * z).sum();
        if (value - sum).abs() > TOLERANCE * s * 64.0 {
            return Err(format!("value {i} is {value}, its draws add up to {sum}"));
        }
    }
    Ok(())
}

/// The same steps for a cell that is read on its own, for sweeps of one and of two cells, and for a random mixture of
/// sweeps, block reads and single reads (with repeats) over several blocks.
fn exact_law_on_all_paths(horizon: u64, steps: &[u64], seed: u64) {
    let height = levels(horizon);
    let check = |lengths: &[usize], reads: &[Read]| {
        exact_law(height, Gaussian::new, lengths, reads, seed)
            .unwrap_or_else(|error| panic!("T = {horizon}, blocks {lengths:?}, reads {reads:?}: {error}"));
    };
    check(&[3], &reads(steps, &Ask::Cells(vec![1])));
    check(&[1], &reads(steps, &Ask::Cells(vec![0])));
    check(&[2], &reads(steps, &Ask::All));

    let mut rng = seeded(seed);
    let mut mixed = Vec::new();
    for &step in steps {
        // A sweep, then single reads, then a sweep again at the same or at another step.
        for _ in 0..=below(2, &mut rng) {
            let ask = match below(4, &mut rng) {
                0 => Ask::All,
                1 => Ask::Block(below(3, &mut rng) as usize),
                _ => Ask::Cells((0..below(4, &mut rng)).map(|_| below(6, &mut rng)).collect()),
            };
            mixed.push(Read { step, ask });
        }
    }
    check(&[2, 1, 3], &mixed);
}

#[test]
fn dense_reads_have_exactly_the_law_of_the_tree() {
    for horizon in [1, 2, 3, 8, 64] {
        exact_law_on_all_paths(horizon, &(1..=horizon).collect::<Vec<_>>(), horizon);
    }
}

#[test]
fn every_set_of_steps_of_a_small_tree_has_exactly_the_law_of_the_tree() {
    for set in 1u64..1 << 8 {
        let steps: Vec<u64> = (1..=8).filter(|step| set >> (step - 1) & 1 == 1).collect();
        exact_law_on_all_paths(8, &steps, set);
    }
}

#[test]
fn jumps_have_exactly_the_law_of_the_tree() {
    let around = [3u32, 5, 10, 40, 61].into_iter().flat_map(|k| [(1u64 << k) - 1, 1 << k, (1 << k) + 1]);
    for horizon in around.chain([1000, 1 << 62]) {
        let rng = &mut seeded(horizon);
        exact_law_on_all_paths(horizon, &random_steps(horizon, 30, rng), 1);
        exact_law_on_all_paths(horizon, &clustered_steps(horizon, rng), 2);
        exact_law_on_all_paths(horizon, &doubling_steps(horizon), 3);
        // The first read comes late.
        exact_law_on_all_paths(horizon, &[horizon], 4);
        exact_law_on_all_paths(horizon, &[horizon - 1, horizon], 5);
        exact_law_on_all_paths(horizon, &[horizon / 2 + 1, horizon / 2 + 2, horizon], 6);
    }
}

#[test]
fn a_stack_of_all_levels_has_exactly_the_law_of_the_tree() {
    // Each read splits one level deeper than the one before, so the stack grows to its full height of 63.
    let steps: Vec<u64> = (0..=62).rev().map(|k| (1u64 << 62) - (1 << k) + 1).collect();
    exact_law_on_all_paths(1 << 62, &steps, 7);
}

#[test]
fn the_exact_test_rejects_wrong_laws() {
    let steps = [1, 400, 401, 513, 1000];
    let reads = reads(&steps, &Ask::Cells(vec![0]));
    assert_eq!(exact_law(10, Gaussian::new, &[2], &reads, 0), Ok(()));
    assert!(exact_law(10, |s| Gaussian::new(s * (1.0 + 1e-10)), &[2], &reads, 0).is_err());
    assert!(exact_law(10, FlatBridge::new, &[2], &reads, 0).is_err());
    assert!(exact_law(10, LopsidedBridge::new, &[2], &reads, 0).is_err());
    assert!(exact_law(10, |_| Zero, &[2], &reads, 0).is_err());
}

// ---------------------------------------------------------------------------------------------------------------
// Wrong laws
// ---------------------------------------------------------------------------------------------------------------

/// A law made of the Gaussian one with some of it replaced.
macro_rules! wrong_law {
    ($(#[$doc:meta])* $name:ident, sum($sum_law:ident, $n:ident, $sum_source:ident) = $sum:expr,
     bridge($law:ident, $p:ident, $q:ident, $total:ident, $rng:ident) = $bridge:expr) => {
        $(#[$doc])*
        struct $name(Gaussian);

        impl $name {
            fn new(s: f64) -> Self {
                Self(Gaussian::new(s))
            }
        }

        impl Law for $name {
            type Sum = f64;

            const NORMALS: usize = 1;

            fn sum(&self, $n: u32, $sum_source: &mut Source<'_, impl Rng>) -> f64 {
                let $sum_law = &self.0;
                $sum
            }

            fn bridge(&self, $p: u32, $q: u32, $total: f64, $rng: &mut Source<'_, impl Rng>) -> f64 {
                let $law = &self.0;
                $bridge
            }

            fn add(a: f64, b: f64) -> f64 {
                a + b
            }

            fn subtract(a: f64, b: f64) -> f64 {
                a - b
            }

            fn value(sum: f64) -> f64 {
                sum
            }
        }
    };
}

wrong_law! {
    /// A bridge without its variance; the draw is made and thrown away.
    FlatBridge,
    sum(law, n, source) = law.sum(n, source),
    bridge(law, p, q, total, source) = {
        law.bridge(p, q, total, source);
        total * f64::from(p) / f64::from(p + q)
    }
}

wrong_law! {
    /// A bridge that takes its ends for one another.
    LopsidedBridge,
    sum(law, n, source) = law.sum(n, source),
    bridge(law, p, q, total, source) = law.bridge(q, p, total, source)
}

wrong_law! {
    /// All sums 3 % too wide.
    Wide,
    sum(law, n, source) = 1.03 * law.sum(n, source),
    bridge(law, p, q, total, source) = {
        let mean = total * f64::from(p) / f64::from(p + q);
        mean + 1.03 * (law.bridge(p, q, total, source) - mean)
    }
}

wrong_law! {
    /// All sums 3 % too narrow.
    Narrow,
    sum(law, n, source) = 0.97 * law.sum(n, source),
    bridge(law, p, q, total, source) = {
        let mean = total * f64::from(p) / f64::from(p + q);
        mean + 0.97 * (law.bridge(p, q, total, source) - mean)
    }
}

wrong_law! {
    /// The right variances from fair coins: covariances alone cannot tell.
    Coins,
    sum(law, n, source) = {
        let plus = source.rng.next_u64() >> 63 == 1;
        let size = sqrt(f64::from(n)) * law.sum(1, &mut Source::new(&[], &mut Script { word: |_| word(0.5), used: 0 })) / normal(word(0.5));
        if plus { size } else { -size }
    },
    bridge(law, p, q, total, source) = law.bridge(p, q, total, source)
}

wrong_law! {
    /// A mean of 2 % of the node scale.
    Shifted,
    sum(law, n, source) = law.sum(n, source) + 0.02,
    bridge(law, p, q, total, source) = law.bridge(p, q, total, source)
}

// ---------------------------------------------------------------------------------------------------------------
// The law by sampling
// ---------------------------------------------------------------------------------------------------------------

/// Paths of a sampled sequence, summed up.
struct Sample {
    paths: f64,
    sums: Vec<f64>,
    cross: Vec<Vec<f64>>,
    /// How many lie beyond one and beyond two standard deviations.
    beyond: Vec<[f64; 2]>,
}

impl Sample {
    /// `values[i]` holds read `i` of every path.
    fn new(values: &[Vec<f64>], covariance: &[Vec<f64>]) -> Self {
        let paths = values[0].len();
        let mut sample = Self {
            paths: paths as f64,
            sums: values.iter().map(|read| read.iter().sum()).collect(),
            cross: Vec::new(),
            beyond: Vec::new(),
        };
        for (i, a) in values.iter().enumerate() {
            let row = values[..=i].iter().map(|b| a.iter().zip(b).map(|(a, b)| a * b).sum()).collect();
            sample.cross.push(row);
            let sd = sqrt(covariance[i][i]);
            sample.beyond.push([1.0, 2.0].map(|k| a.iter().filter(|x| x.abs() > k * sd).count() as f64));
        }
        sample
    }

    /// The number of statistics, and the largest deviation of one in its standard deviations under the null.
    fn worst(&self, covariance: &[Vec<f64>]) -> (usize, f64) {
        let n = self.paths;
        let mut scores = Vec::new();
        for i in 0..self.sums.len() {
            scores.push(self.sums[i] / n / sqrt(covariance[i][i] / n));
            for j in 0..=i {
                let variance = (covariance[i][i] * covariance[j][j] + covariance[i][j] * covariance[i][j]) / n;
                scores.push((self.cross[i][j] / n - covariance[i][j]) / sqrt(variance));
            }
            for (count, k) in self.beyond[i].iter().zip([1.0, 2.0]) {
                let p = erfc(k / sqrt(2.0));
                scores.push((count - n * p) / sqrt(n * p * (1.0 - p)));
            }
        }
        (
            scores.len(),
            scores.iter().fold(0.0, |worst: f64, score| if score.is_nan() { f64::NAN } else { worst.max(score.abs()) }),
        )
    }
}

/// The simultaneous test of a sequence's law: all means, all covariances with `Var(C_ij) = (C_ii C_jj + C_ij^2) / N`,
/// and for each read the number of paths beyond one and two standard deviations. Bonferroni over these and over `tests`
/// such tests, each statistic by its normal approximation.
fn accepts(values: &[Vec<f64>], covariance: &[Vec<f64>], tests: usize) -> Result<(), String> {
    let (statistics, worst) = Sample::new(values, covariance).worst(covariance);
    let limit = quantile(ALPHA / (tests * statistics) as f64);
    // A NaN is no pass.
    if worst <= limit { Ok(()) } else { Err(format!("{worst:.2} standard deviations where {limit:.2} are allowed")) }
}

fn covariances(steps: &[u64], height: u32, s: f64) -> Vec<Vec<f64>> {
    steps.iter().map(|&a| steps.iter().map(|&b| covariance(a, b, height, s)).collect()).collect()
}

/// Horizons and the steps that are read.
fn sequences() -> Vec<(u64, Vec<u64>)> {
    let late = (1u64 << 40) - 3;
    vec![
        (1, vec![1]),
        (2, vec![1, 2]),
        (3, vec![1, 2, 3]),
        (8, (1..=8).collect()),
        (1000, vec![1, 37, 400, 401, 512, 513, 999, 1000]),
        ((1 << 10) - 1, vec![300, 301, 700, 1023]),
        ((1 << 10) + 1, vec![1, 512, 1024, 1025]),
        (1 << 40, vec![5, 1 << 20, (1 << 39) - 1, 1 << 39, (1 << 39) + 1, (1 << 39) + (1 << 30), late, late + 2]),
        (1 << 62, vec![1, 1 << 31, 1 << 61, (1 << 61) + 1, (3 << 60) + 12345, (1 << 62) - 1, 1 << 62]),
    ]
}

fn sampled_law_is_the_trees(paths: usize) {
    let sequences = sequences();
    let s = 1.0;
    for (i, (horizon, steps)) in sequences.iter().enumerate() {
        let height = levels(*horizon);
        let covariance = covariances(steps, height, s);
        for (j, path) in [Path::Single, Path::Swept, Path::Split].into_iter().enumerate() {
            let values = sample(Tree::new(height, Gaussian::new(s)), steps, paths, path, 100 * i as u64 + j as u64);
            accepts(&values, &covariance, 3 * sequences.len())
                .unwrap_or_else(|error| panic!("T = {horizon}, {path:?}: {error}"));
        }
    }
}

/// 200,000 paths for each of 9 sequences of reads and 3 ways to read them; alpha = 1e-6 for all of it together. It
/// rejects a scale that is 3 % off (about 19 standard deviations), a bridge without its variance, a mean of 2 % of `s`
/// and a law of the right variance that is not normal: `the_sampling_test_rejects_wrong_laws`.
#[test]
fn sampled_paths_have_the_law_of_the_tree() {
    sampled_law_is_the_trees(200_000);
}

/// As above with 2,000,000 paths: it would see a scale that is 1 % off.
#[test]
#[ignore = "a minute of sampling; run by make test-slow"]
fn ten_times_as_many_sampled_paths_have_the_law_of_the_tree() {
    sampled_law_is_the_trees(2_000_000);
}

fn rejects<L: Law>(law: impl Fn() -> L, horizon: u64, steps: &[u64]) -> bool {
    let height = levels(horizon);
    let covariance = covariances(steps, height, 1.0);
    [Path::Single, Path::Swept, Path::Split].into_iter().all(|path| {
        accepts(&sample(Tree::new(height, law()), steps, 200_000, path, 7), &covariance, 3 * sequences().len()).is_err()
    })
}

#[test]
fn the_sampling_test_rejects_wrong_laws() {
    let steps = [1, 20, 40, 64];
    assert!(!rejects(|| Gaussian::new(1.0), 64, &steps));
    assert!(rejects(|| Wide::new(1.0), 64, &steps));
    assert!(rejects(|| Narrow::new(1.0), 64, &steps));
    assert!(rejects(|| FlatBridge::new(1.0), 64, &steps));
    assert!(rejects(|| LopsidedBridge::new(1.0), 64, &steps));
    assert!(rejects(|| Shifted::new(1.0), 64, &steps));
    assert!(rejects(|| Coins::new(1.0), 64, &steps));
    // Even where nothing but the first read is made.
    assert!(rejects(|| Wide::new(1.0), 1, &[1]));
    assert!(rejects(|| Narrow::new(1.0), 1 << 62, &[1 << 61]));
}

// ---------------------------------------------------------------------------------------------------------------
// The plain tree of all node variables
// ---------------------------------------------------------------------------------------------------------------

#[test]
fn the_plain_tree_has_the_covariance_that_the_tests_expect() {
    for height in 0..=6 {
        let rows = path_matrix(height);
        for (a, row_a) in (1..).zip(&rows) {
            for (b, row_b) in (1..).zip(&rows) {
                let product: f64 = row_a.iter().zip(row_b).map(|(x, y)| x * y).sum();
                assert_eq!(product, covariance(a, b, height, 1.0), "height {height}, steps {a} and {b}");
            }
        }
    }
}

/// 200,000 plain trees of height 3, all 8 steps; alpha = 1e-6. It shows that the test of the fast mechanism accepts
/// the mechanism that the paper starts from.
#[test]
fn sampled_plain_trees_pass_the_same_test() {
    let mut rng = seeded(8);
    let mut values = vec![Vec::new(); 8];
    for _ in 0..200_000 {
        let nodes = (0..15).map(|_| StandardNormal.sample(&mut rng)).collect();
        let tree = PlainTree::new(3, nodes);
        for (step, values) in (1..).zip(&mut values) {
            values.push(tree.noise(step));
        }
    }
    let steps: Vec<u64> = (1..=8).collect();
    accepts(&values, &covariances(&steps, 3, 1.0), 1).unwrap();
}

// ---------------------------------------------------------------------------------------------------------------
// Algorithm 1
// ---------------------------------------------------------------------------------------------------------------

/// The data structure of one coordinate: last query time `l`, valid bits `w` and path sums `P`, a place for every level.
#[derive(Clone, Debug)]
struct AlgorithmOne {
    l: Option<u64>,
    w: [bool; 63],
    p: [f64; 63],
}

impl AlgorithmOne {
    fn new() -> Self {
        // What is not valid is NaN, so that a use of it would show.
        Self { l: None, w: [false; 63], p: [f64::NAN; 63] }
    }

    /// `NoiseUpdate(DS_i, t, sigma^2, T)` with `T = 2^h`, numbered as in the paper's appendix C.2.
    fn noise_update(&mut self, t: u64, sigma_squared: f64, h: usize, rng: &mut impl Rng) -> f64 {
        // A normal without variance is its mean: nothing is drawn (lines 6 at T = 1; nowhere else).
        let mut sample = |mean: f64, variance: f64| {
            if variance == 0.0 {
                return mean;
            }
            let z: f64 = StandardNormal.sample(rng);
            mean + variance.sqrt() * z
        };
        // 2: h <- log2(T)
        // 3: if l is unset
        let Some(l) = self.l else {
            // 4: w <- 0^(h+1)
            self.w = [false; 63];
            // 5: sample P_0
            self.p[0] = sample(0.0, sigma_squared);
            // 6: sample Z
            let z = sample(0.0, h as f64 * sigma_squared);
            // 7: P_h <- P_0 + Z
            self.p[h] = self.p[0] + z;
            // 8: w_0 <- 1, w_h <- 1
            self.w[0] = true;
            self.w[h] = true;
            // 9: l' <- t
            self.l = Some(t);
            // 10: return
            return self.p[h];
        };
        // 12: if l = t
        if l == t {
            // 13: return
            return self.p[h];
        }
        // 15: u <- bin(l - 1), v <- bin(t - 1)
        let bin = |step: u64| (0..h).map(move |j| (step - 1) >> (h - 1 - j) & 1);
        let (u, v) = (bin(l), bin(t));
        // 16: m <- |LCP(u, v)|
        let m = u.zip(v).take_while(|(u, v)| u == v).count();
        // 17: w(t) <- w(l)
        // 18: if w_m = 0
        if !self.w[m] {
            // 19: a <- pred(m), c <- succ(m)
            let a = (0..m).rev().find(|&j| self.w[j]).unwrap();
            let c = (m + 1..=h).find(|&j| self.w[j]).unwrap();
            // 20: mu <- P_a + (m - a) / (c - a) (P_c - P_a)
            let mu = self.p[a] + (m - a) as f64 / (c - a) as f64 * (self.p[c] - self.p[a]);
            // 21: tau^2 <- (m - a) (c - m) / (c - a) sigma^2
            let tau_squared = (m - a) as f64 * (c - m) as f64 / (c - a) as f64 * sigma_squared;
            // 22: sample P_m ~ N(mu, tau^2)
            self.p[m] = sample(mu, tau_squared);
            // 23: w_m <- 1
            self.w[m] = true;
        }
        // 25: sample Z' ~ N(0, (h - m) sigma^2)
        let z = sample(0.0, (h - m) as f64 * sigma_squared);
        // 26: P_h <- P_m + Z'
        self.p[h] = self.p[m] + z;
        // 27: for j = m + 1 to h - 1
        for j in m + 1..h {
            // 28: w_j <- 0
            self.w[j] = false;
            self.p[j] = f64::NAN;
        }
        // 30: w_h <- 1
        self.w[h] = true;
        // 31: l' <- t
        self.l = Some(t);
        // 32: return
        self.p[h]
    }
}

/// What becomes of a read's draws.
#[derive(Clone, Copy, Debug)]
enum Outcome {
    Commit,
    Abandon,
    /// Neither: the next draw finds them.
    Leak,
}

/// A read: how far to jump (an exponent and what to take of it), what to ask, what to do with the draws.
type Call = ((u32, u64), Ask, Outcome);

fn calls(blocks: usize, size: u64, height: u32) -> impl Strategy<Value = Vec<Call>> {
    let gap = prop_oneof![
        1 => Just((0, 0)),
        4 => (0..=height, any::<u64>()),
        1 => Just((0, 1)),
    ];
    let ask = prop_oneof![
        2 => Just(Ask::All),
        2 => (0..blocks).prop_map(Ask::Block),
        5 => prop::collection::vec(0..size, 0..7).prop_map(Ask::Cells),
    ];
    let outcome = prop_oneof![8 => Just(Outcome::Commit), 1 => Just(Outcome::Abandon), 1 => Just(Outcome::Leak)];
    prop::collection::vec((gap, ask, outcome), 1..60)
}

fn vectors() -> impl Strategy<Value = (u32, Vec<usize>, Vec<Call>, u64)> {
    let lengths = prop_oneof![
        1 => Just(vec![1]),
        4 => prop::collection::vec(1usize..6, 1..5),
        // Groups of eight cells and more.
        1 => Just(vec![1, 19, 1, 9]),
    ];
    (prop_oneof![1 => 0u32..=4, 3 => 0u32..=62], lengths, any::<u64>()).prop_flat_map(|(height, lengths, seed)| {
        let size = lengths.iter().sum::<usize>() as u64;
        let calls = calls(lengths.len(), size, height);
        (Just(height), Just(lengths), calls, Just(seed))
    })
}

/// What the noise keeps of a cell: last step, levels, sums.
fn kept(noise: &TreeNoise<Gaussian>, cell: u64) -> Option<(u64, LevelSet, Vec<f64>)> {
    noise.kept(cell).map(|(head, sums)| (head.step, head.levels, sums))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn packed_stacks_follow_algorithm_1_draw_for_draw((height, lengths, calls, seed) in vectors()) {
        let s = 0.8;
        let size: usize = lengths.iter().sum();
        let tolerance = 1e-12 * s * f64::from(height + 1).sqrt();
        let mut noise = tree_noise(height, Gaussian::new(s), &lengths);
        let mut model = vec![AlgorithmOne::new(); size];
        // The same words for both, and a count of those used.
        let (mut stream, mut model_stream) = (seeded(seed), seeded(seed));
        let mut words = Script { word: |_| stream.next_u64(), used: 0 };
        let mut model_words = Script { word: |_| model_stream.next_u64(), used: 0 };
        let mut step = 1;
        for ((exponent, take), ask, outcome) in calls {
            let gap = if take <= 1 { take } else { 1 + take % (1 << exponent) };
            step = (step + gap).min(1 << height);
            noise.draw(ask.request(), step, &mut words).unwrap();

            let before = model.clone();
            let mut drawn = BTreeSet::new();
            let expected: Vec<f64> = ask
                .cells(&lengths)
                .into_iter()
                .map(|cell| {
                    let used = model_words.used;
                    let value =
                        model[cell as usize].noise_update(step, s * s, height as usize, &mut model_words);
                    if model_words.used > used {
                        drawn.insert(cell);
                    }
                    value
                })
                .collect();
            prop_assert_eq!(words.used, model_words.used);
            let cells: Vec<u64> = noise.drawn_cells().map(|(cell, _)| cell).chain(noise.swept_cells()).collect();
            prop_assert_eq!(cells.len(), drawn.len());
            prop_assert_eq!(cells.into_iter().collect::<BTreeSet<u64>>(), drawn);

            match outcome {
                Outcome::Commit => {
                    let values = noise.commit();
                    prop_assert_eq!(values.len(), expected.len());
                    for (value, expected) in values.iter().zip(&expected) {
                        prop_assert!((value - expected).abs() <= tolerance, "{} for {}", value, expected);
                    }
                }
                Outcome::Abandon => {
                    noise.abandon();
                    model = before;
                }
                Outcome::Leak => model = before,
            }
            // Not the answers alone: what is kept for later is the same.
            for (cell, state) in model.iter().enumerate() {
                match (kept(&noise, cell as u64), state.l) {
                    (None, None) => {}
                    (Some((kept_step, levels, sums)), Some(l)) => {
                        prop_assert_eq!(kept_step, l);
                        let valid: Vec<u32> = (0..=height).filter(|&j| state.w[j as usize]).collect();
                        prop_assert_eq!(levels.len() as usize, valid.len());
                        prop_assert_eq!(sums.len(), valid.len());
                        for (&level, sum) in valid.iter().zip(sums) {
                            prop_assert!(levels.contains(level));
                            prop_assert!((sum - state.p[level as usize]).abs() <= tolerance);
                        }
                    }
                    (kept, l) => prop_assert!(false, "cell {}: {:?} for {:?}", cell, kept, l),
                }
            }
        }
    }
}
