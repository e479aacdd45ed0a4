//! An empirical audit: can the releases of two neighbours be told apart better than the budget allows?
//!
//! The auditor uses the public interface alone and knows nothing of trees, buffers and scales. For each case it
//!
//! 1. releases noise alone, many times, and measures its covariance over all reads;
//! 2. finds the worst unit: the shift `d` of the answers, over all insertions (and deletions), with the largest `d^T S^-1 d`; of a
//!    pure budget, among those with the largest minimum cut;
//! 3. releases the same data with that unit and without it, and scores every run: by `d^T S^-1 y` (for normal noise the
//!    logarithm of the likelihood ratio, for Laplace noise the best linear statistic of the second order), and for Laplace noise also by
//!    the exact likelihood ratio, which message passing over the tree gives;
//! 4. chooses a threshold on one half of the runs, and counts errors on the other half. Clopper-Pearson limits of both rates give a
//!    lower bound on what the mechanism lets out: `mu >= q(1 - FPR) - q(FNR)` for a Gaussian budget (`q` the normal quantile),
//!    `epsilon >= ln((1 - FNR - delta) / FPR)`.
//!
//! The bound must not exceed the claim. To show that it would if the noise were too small, the same audit is put to the same
//! mechanism built with a larger budget, and judged by the smaller one. All bounds of a test hold together with probability
//! `1 - ALPHA`, or the mechanism breaks its claim. Seeds are fixed. Figures: `docs/audit.md`.

mod common;

use chacha20::ChaCha12Rng;
use common::rng;
use fastgame_core::{
    Builder, Cells, ContinualVector, CountSketch, Estimator, Gdp, Invalid, Levels, Loss, Mechanism, OnExcess, PureDp,
    RangeBuilder, RangeShape, RawSketch, Rows, SketchBuilder, SketchShape, Unit, Weights,
};

/// The probability that any bound of a test is wrong by chance.
const ALPHA: f64 = 1e-6;
/// At most so many bounds has a test.
const BOUNDS: f64 = 1000.0;
/// A bound's own share.
const SHARE: f64 = ALPHA / BOUNDS;

// ---------------------------------------------------------------------------------------------------------------- statistics

/// The normal distribution function.
fn phi(x: f64) -> f64 {
    0.5 * libm::erfc(-x / std::f64::consts::SQRT_2)
}

/// The root of a rising function between two points.
fn bisect(mut low: f64, mut high: f64, is_left_of_root: impl Fn(f64) -> bool) -> (f64, f64) {
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if is_left_of_root(middle) { low = middle } else { high = middle }
    }
    (low, high)
}

/// The normal quantile.
fn quantile(p: f64) -> f64 {
    bisect(-9.0, 9.0, |x| phi(x) < p).0
}

/// The upper Clopper-Pearson limit of a rate, at one-sided level `alpha`: the rate `p` with `P(Bin(n, p) <= count) = alpha`.
fn upper(count: usize, n: usize, alpha: f64) -> f64 {
    if count >= n {
        return 1.0;
    }
    let (k, n) = (count as f64, n as f64);
    let ways = libm::lgamma(n + 1.0) - libm::lgamma(k + 1.0) - libm::lgamma(n - k + 1.0);
    let below = |p: f64| {
        let mut term = (ways + k * p.ln() + (n - k) * (-p).ln_1p()).exp();
        let (mut sum, mut j) = (term, k);
        // To the right of the mean of counts terms fall, fast.
        while j > 0.0 && term > 1e-12 * sum {
            term *= j * (1.0 - p) / ((n - j + 1.0) * p);
            sum += term;
            j -= 1.0;
        }
        sum
    };
    bisect(k / n, 1.0, |p| below(p) > alpha).1
}

#[test]
fn limits_and_quantiles_are_those_of_tables() {
    assert!((quantile(0.975) - 1.959_963_984_540_054).abs() < 1e-12);
    // No event in 100: 1 - alpha^(1/100). One in 10 at 0.025: 0.4450161; 50 in 100: 0.6016... (R's binom.test).
    assert!((upper(0, 100, 0.05) - (1.0 - 0.05f64.powf(0.01))).abs() < 1e-12);
    assert!((upper(1, 10, 0.025) - 0.445_016_1).abs() < 1e-7, "{}", upper(1, 10, 0.025));
    assert!((upper(50, 100, 0.025) - 0.601_679_3).abs() < 1e-6, "{}", upper(50, 100, 0.025));
    assert_eq!(upper(7, 7, 1e-9), 1.0);
}

/// Scores without the unit and with it.
struct Scores {
    without: Vec<f64>,
    with: Vec<f64>,
}

impl Scores {
    fn new(without: impl Iterator<Item = f64>, with: impl Iterator<Item = f64>) -> Self {
        Self { without: without.collect(), with: with.collect() }
    }

    /// The other question: can the absence of the unit be told?
    fn swapped(&self) -> Self {
        Self::new(self.with.iter().map(|x| -x), self.without.iter().map(|x| -x))
    }

    /// The best bound of a threshold chosen on the first half of the runs, from the second half's counts. `bound` makes one of the
    /// limits of FPR and FNR.
    fn best(&self, alpha: f64, bound: impl Fn(f64, f64) -> f64) -> f64 {
        let halves = |scores: &[f64]| {
            let (first, second) = scores.split_at(scores.len() / 2);
            let mut first = first.to_vec();
            first.sort_unstable_by(f64::total_cmp);
            (first, second.to_vec())
        };
        let ((choose_without, without), (choose_with, with)) = (halves(&self.without), halves(&self.with));
        let n = choose_without.len();
        // Thresholds: quantiles of the runs without the unit, denser to the right.
        let mut places: Vec<usize> = (0..60).map(|i| n * i / 60).collect();
        places.extend((0..40).map(|i| n - 1 - ((n as f64 / 60.0) * 0.83f64.powi(i)) as usize));
        let chosen = places.into_iter().map(|place| {
            let t = choose_without[place];
            let false_positive = n - choose_without.partition_point(|&x| x <= t);
            let false_negative = choose_with.partition_point(|&x| x <= t);
            let limits = (upper(false_positive, n, alpha / 2.0), upper(false_negative, choose_with.len(), alpha / 2.0));
            (bound(limits.0, limits.1), t)
        });
        let (_, t) = chosen.fold((f64::NEG_INFINITY, 0.0), |best, next| if next.0 > best.0 { next } else { best });
        let false_positive = without.iter().filter(|&&x| x > t).count();
        let false_negative = with.iter().filter(|&&x| x <= t).count();
        bound(upper(false_positive, without.len(), alpha / 2.0), upper(false_negative, with.len(), alpha / 2.0))
    }

    /// A lower bound on mu, wrong with probability `SHARE`.
    fn mu(&self) -> f64 {
        self.best(SHARE, |fpr, fnr| quantile(1.0 - fpr) - quantile(fnr))
    }

    /// A lower bound on the epsilon of a delta, both ways round; wrong with probability `SHARE`.
    fn epsilon(&self, delta: f64) -> f64 {
        let bound = |fpr: f64, fnr: f64| ((1.0 - fnr - delta).max(1e-300) / fpr).ln();
        f64::max(self.best(SHARE / 2.0, bound), self.swapped().best(SHARE / 2.0, bound))
    }
}

// --------------------------------------------------------------------------------------------------------------- likelihoods

/// The inverse of a covariance matrix, and what it says about shifts.
struct Precision {
    /// Row by row.
    inverse: Vec<f64>,
    dims: usize,
}

impl Precision {
    /// From runs of noise of mean zero, one after the other.
    fn measured(noise: &[f64], dims: usize) -> Self {
        let n = (noise.len() / dims) as f64;
        let mut covariance = vec![0.0; dims * dims];
        for run in noise.chunks_exact(dims) {
            for (i, x) in run.iter().enumerate() {
                covariance[i * dims..][..=i].iter_mut().zip(run).for_each(|(sum, y)| *sum += x * y / n);
            }
        }
        // Cholesky factor in place, its inverse, and the product of that with itself.
        let at = |i: usize, j: usize| i * dims + j;
        for j in 0..dims {
            for i in j..dims {
                let known: f64 = (0..j).map(|k| covariance[at(i, k)] * covariance[at(j, k)]).sum();
                let rest = covariance[at(i, j)] - known;
                covariance[at(i, j)] = if i == j { rest.sqrt() } else { rest / covariance[at(j, j)] };
            }
        }
        let mut root = vec![0.0; dims * dims];
        for j in 0..dims {
            for i in j..dims {
                let known: f64 = (j..i).map(|k| covariance[at(i, k)] * root[at(k, j)]).sum();
                root[at(i, j)] = (f64::from(i == j) - known) / covariance[at(i, i)];
            }
        }
        let mut inverse = vec![0.0; dims * dims];
        for i in 0..dims {
            for j in 0..dims {
                inverse[at(i, j)] = (i.max(j)..dims).map(|k| root[at(k, i)] * root[at(k, j)]).sum();
            }
        }
        Self { inverse, dims }
    }

    /// `S^-1 d`.
    fn direction(&self, shift: &[f64]) -> Vec<f64> {
        self.inverse.chunks_exact(self.dims).map(|row| dot(row, shift)).collect()
    }

    /// `d^T S^-1 d`.
    fn norm(&self, shift: &[f64]) -> f64 {
        dot(&self.direction(shift), shift)
    }
}

fn dot(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| x * y).sum()
}

/// The tree over `2^levels` steps with Laplace variables of scale `b` at its nodes.
struct LaplaceTree {
    levels: u32,
    b: f64,
}

impl LaplaceTree {
    /// The log-likelihood ratio of answers at steps `1..`, shifted by `shift` or not: each by passing messages to the root. Sums over
    /// grids whose spacing divides the shift stand for integrals: what comes is within the bounds that hold for integrals.
    fn log_ratio(&self, answers: &[f64], shift: &[f64]) -> f64 {
        let unit = shift.iter().fold(0.0, |most, x| f64::max(most, x.abs()));
        let spacing = unit / (3.0 * unit / self.b).ceil();
        let (low, high) = answers.iter().fold((0.0, 0.0), |(low, high): (f64, f64), &x| (low.min(x), high.max(x)));
        let margin = 5.0 * self.b + unit;
        let first = ((low - margin) / spacing).floor() * spacing;
        let points = ((high + margin - first) / spacing).ceil() as usize + 1;
        let grid = Grid { first, spacing, points, decay: (-spacing / self.b).exp(), b: self.b };
        let shifted: Vec<f64> = answers.iter().zip(shift).map(|(x, d)| x - d).collect();
        grid.log_likelihood(&shifted, self.levels) - grid.log_likelihood(answers, self.levels)
    }
}

struct Grid {
    first: f64,
    spacing: f64,
    points: usize,
    decay: f64,
    b: f64,
}

impl Grid {
    /// `e^(-|x - y| / b)` at all points.
    fn leaf(&self, y: f64, message: &mut [f64]) {
        for (i, value) in message.iter_mut().enumerate() {
            *value = (-(self.first + self.spacing * i as f64 - y).abs() / self.b).exp();
        }
    }

    fn log_likelihood(&self, answers: &[f64], levels: u32) -> f64 {
        if levels == 0 {
            return -answers[0].abs() / self.b;
        }
        // Messages from one level, those of steps that were not read left out: they say nothing.
        let mut messages: Vec<Vec<f64>> = answers
            .iter()
            .map(|&y| {
                let mut message = vec![0.0; self.points];
                self.leaf(y, &mut message);
                message
            })
            .collect();
        let mut log = 0.0;
        for level in (0..levels).rev() {
            messages = messages
                .chunks(2)
                .map(|pair| {
                    let mut product = pair[0].clone();
                    if let Some(other) = pair.get(1) {
                        product.iter_mut().zip(other).for_each(|(x, y)| *x *= y);
                    }
                    let most = product.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
                    product.iter_mut().for_each(|x| *x /= most);
                    log += most.ln();
                    if level > 0 {
                        self.through_node(&mut product)
                    }
                    product
                })
                .collect();
        }
        let mut root = vec![0.0; self.points];
        self.leaf(0.0, &mut root);
        log + dot(&root, &messages[0]).ln()
    }

    /// The convolution with `e^(-|x| / b)`.
    fn through_node(&self, message: &mut [f64]) {
        let mut from_right = vec![0.0; message.len()];
        let mut sum = 0.0;
        for (after, x) in from_right.iter_mut().zip(&*message).rev() {
            *after = sum;
            sum = self.decay * (sum + x);
        }
        // `sum` of the right side is taken before it decays over one step: mend that.
        sum = 0.0;
        for (x, after) in message.iter_mut().zip(from_right) {
            sum = self.decay * sum + *x;
            *x = sum + after;
        }
    }
}

/// The least number of nodes that explain a shift of the steps in `inserted..deleted` by one: a minimum cut.
fn cut(levels: u32, steps: usize, inserted: usize, deleted: usize) -> f64 {
    // The cost of a subtree whose top has the sum 0 or 1.
    let leaf = |t: usize| match t {
        _ if t >= steps => [0.0, 0.0],
        _ if (inserted..deleted).contains(&t) => [f64::INFINITY, 0.0],
        _ => [0.0, f64::INFINITY],
    };
    let mut costs: Vec<[f64; 2]> = (0..1usize << levels).map(leaf).collect();
    let below = |cost: &[f64; 2], label: usize| f64::min(cost[label], cost[1 - label] + 1.0);
    while costs.len() > 1 {
        costs =
            costs.chunks(2).map(|pair| [0, 1].map(|label| below(&pair[0], label) + below(&pair[1], label))).collect();
    }
    below(&costs[0], 0)
}

// ---------------------------------------------------------------------------------------------------------------------- cases

/// An insertion and a deletion, as places in the list of reads; a deletion after the last read is none.
type Life = (usize, usize);

/// All units of a kind.
fn lives(unit: Unit, reads: usize) -> Vec<Life> {
    match unit {
        Unit::Lifetime => (0..reads).flat_map(|i| (i + 1..=reads).map(move |j| (i, j))).collect(),
        _ => (0..reads).map(|i| (i, reads)).collect(),
    }
}

/// The shift of all answers: read by read, within a read by `of_cells`.
fn shift(life: Life, reads: usize, of_cells: &[f64]) -> Vec<f64> {
    let inside = |t: usize| f64::from((life.0..life.1).contains(&t));
    (0..reads).flat_map(|t| of_cells.iter().map(move |x| x * inside(t))).collect()
}

/// A mechanism, its claim, and the reads.
#[derive(Clone, Debug)]
struct Case {
    mechanism: Mechanism,
    pure: bool,
    unit: Unit,
    contributions: u32,
    horizon: u64,
    /// mu, or epsilon of a pure budget.
    claim: f64,
    reads: Vec<u64>,
    /// How one contribution moves the cells of a run; other than one cell means a bound on the norm of real updates.
    of_cells: Vec<f64>,
    /// Cells are read by their indices, and not all together.
    by_index: bool,
    /// Runs that live in one vector, each in cells of its own.
    together: usize,
}

impl Case {
    fn new(mechanism: Mechanism, pure: bool, unit: Unit, contributions: u32, horizon: u64, claim: f64) -> Self {
        let reads = (1..=horizon.min(1 << 10)).collect();
        Self {
            mechanism,
            pure,
            unit,
            contributions,
            horizon,
            claim,
            reads,
            of_cells: vec![1.0],
            by_index: false,
            together: 250,
        }
    }

    fn loss(&self, factor: f64) -> Loss {
        let budget = self.claim * factor;
        if self.pure { PureDp::new(budget).unwrap().loss() } else { Gdp::new(budget).unwrap().into() }
    }

    /// The mechanism with noise too small by `factor`.
    fn builder(&self, factor: f64) -> Builder {
        let builder = ContinualVector::builder(self.horizon, self.loss(factor))
            .mechanism(self.mechanism)
            .unit(self.unit)
            .contributions(self.contributions)
            .cells(self.together * self.of_cells.len());
        if self.of_cells.len() > 1 { builder.max_norm(1.0) } else { builder }
    }

    fn dims(&self) -> usize {
        self.reads.len() * self.of_cells.len()
    }

    /// The shift of one run's answers.
    fn shift(&self, life: Life) -> Vec<f64> {
        let all: Vec<f64> = self.of_cells.iter().map(|x| x * f64::from(self.contributions)).collect();
        shift(life, self.reads.len(), &all)
    }

    /// Answers of runs, less what the auditor knows to be there, one after the other.
    fn run(&self, factor: f64, life: Option<Life>, n: usize, rng: &mut ChaCha12Rng) -> Vec<f64> {
        let (builder, cells) = (self.builder(factor), self.of_cells.len());
        let all: Vec<u64> = (0..(self.together * cells) as u64).collect();
        // The same row in the cells of each run, some times.
        let add = |vector: &mut ContinualVector, row: &[f64], times: usize| {
            let rows = self.together * times;
            let offsets: Vec<usize> = (0..=rows).map(|i| i * cells).collect();
            let indices: Vec<u64> = (0..times).flat_map(|_| all.iter().copied()).collect();
            let values: Vec<f64> = (0..rows).flat_map(|_| row.iter().copied()).collect();
            vector.update_rows(Rows::Sparse { offsets: &offsets, indices: &indices, values: &values }).unwrap();
        };
        let opposite: Vec<f64> = self.of_cells.iter().map(|x| -x).collect();
        let others: Vec<f64> = self.of_cells.iter().map(|x| 0.5 * x.signum()).collect();
        let others = if cells == 1 { &self.of_cells } else { &others };
        let mut answers = Vec::with_capacity(n * self.dims());
        for _ in 0..n.div_ceil(self.together) {
            let mut vector = builder.build().unwrap();
            let first = answers.len();
            answers.resize(first + self.together * self.dims(), 0.0);
            let mut known = 0.0;
            for (t, &step) in self.reads.iter().enumerate() {
                vector.advance(step).unwrap();
                // What others do; the auditor knows it.
                if t % 3 == 1 {
                    add(&mut vector, others, 2);
                    known += 2.0;
                }
                if let Some((inserted, deleted)) = life {
                    if t == inserted {
                        add(&mut vector, &self.of_cells, self.contributions as usize);
                    }
                    if t == deleted {
                        add(&mut vector, &opposite, self.contributions as usize);
                    }
                }
                let read = if self.by_index {
                    vector.release(&all[..], rng).unwrap()
                } else {
                    vector.release(Cells::<u64>::All, rng).unwrap()
                };
                for (run, values) in read.chunks_exact(cells).enumerate() {
                    let place = first + run * self.dims() + t * cells;
                    for (c, &value) in values.iter().enumerate() {
                        answers[place + c] = value - known * others[c];
                    }
                }
            }
        }
        answers.truncate(n * self.dims());
        answers
    }

    /// The standard deviation of one variable of the noise.
    fn scale(&self, factor: f64) -> f64 {
        self.builder(factor).plan().unwrap().calibration().scale()
    }

    fn levels(&self) -> u32 {
        self.horizon.next_power_of_two().trailing_zeros()
    }

    /// The tree of a pure budget.
    fn tree(&self, scale: f64) -> LaplaceTree {
        LaplaceTree { levels: self.levels(), b: scale / std::f64::consts::SQRT_2 }
    }

    /// The worst unit under measured noise.
    fn worst(&self, precision: &Precision) -> Life {
        let all = lives(self.unit, self.reads.len());
        let cuts: Vec<f64> = if self.pure && self.reads.len() as u64 == self.horizon {
            all.iter().map(|&(i, j)| cut(self.levels(), self.reads.len(), i, j)).collect()
        } else {
            vec![0.0; all.len()]
        };
        let most = cuts.iter().copied().fold(0.0, f64::max);
        let candidates = all.into_iter().zip(cuts).filter(|&(_, cut)| cut == most).map(|(life, _)| life);
        let norms = candidates.map(|life| (precision.norm(&self.shift(life)), life));
        norms.fold((0.0, (0, 0)), |best, next| if next.0 > best.0 { next } else { best }).1
    }

    fn name(&self) -> String {
        let mechanism = match self.mechanism {
            _ if self.pure => "laplace".to_owned(),
            Mechanism::Blt { buffers: Some(buffers) } => format!("blt, {buffers} buffers"),
            Mechanism::Blt { .. } => "blt".to_owned(),
            Mechanism::TreePaper => "tree-paper".to_owned(),
            _ => "tree".to_owned(),
        };
        let unit = if self.unit == Unit::Update { "update" } else { "lifetime" };
        let how = if self.by_index { "by index" } else { "whole" };
        let cells = self.of_cells.len();
        format!(
            "{mechanism} | {unit} | {} | {} | {} | {cells} {how}",
            self.contributions,
            self.horizon,
            self.reads.len()
        )
    }

    /// Runs the audit on the mechanism, and on one with noise too small by `factor`, which must be caught.
    fn audit(&self, n: usize, seed: u64, factor: f64) {
        let mut rng = rng(seed);
        let [sound, broken] = [1.0, factor].map(|factor| {
            let precision = Precision::measured(&self.run(factor, None, n, &mut rng), self.dims());
            let life = self.worst(&precision);
            let without = self.run(factor, None, n, &mut rng);
            let with = self.run(factor, Some(life), n, &mut rng);
            let shift = self.shift(life);
            self.judge(self.scale(factor), &precision, &shift, &without, &with)
        });
        check(&self.name(), self.loss(1.0), n, &sound, factor, &broken, true);
    }

    fn judge(&self, scale: f64, precision: &Precision, shift: &[f64], without: &[f64], with: &[f64]) -> Found {
        let direction = precision.direction(shift);
        let linear = |answers: &[f64]| -> Vec<f64> {
            answers.chunks_exact(self.dims()).map(|run| dot(run, &direction)).collect()
        };
        let linear = Scores { without: linear(without), with: linear(with) };
        let size = precision.norm(shift).sqrt();
        if !self.pure {
            return Found { size, linear: linear.mu(), exact: None, epsilon: linear.epsilon(DELTA) };
        }
        let tree = self.tree(scale);
        let exact = (self.reads.len() as u64 == self.horizon).then(|| {
            let ratios = |answers: &[f64]| -> Vec<f64> {
                answers
                    .chunks_exact(self.dims())
                    .map(|run| tree.log_ratio_of_cells(run, shift, self.of_cells.len()))
                    .collect()
            };
            Scores { without: ratios(without), with: ratios(with) }.epsilon(0.0)
        });
        Found { size, linear: linear.epsilon(0.0), exact, epsilon: linear.epsilon(DELTA) }
    }
}

impl LaplaceTree {
    /// Of several cells, which stand side by side at each step, each with a tree of its own.
    fn log_ratio_of_cells(&self, answers: &[f64], shift: &[f64], cells: usize) -> f64 {
        if cells == 1 {
            return self.log_ratio(answers, shift);
        }
        let of_cell =
            |values: &[f64], cell: usize| -> Vec<f64> { values.iter().skip(cell).step_by(cells).copied().collect() };
        (0..cells).map(|cell| self.log_ratio(&of_cell(answers, cell), &of_cell(shift, cell))).sum()
    }
}

/// The delta of a Gaussian claim's epsilon.
const DELTA: f64 = 1e-5;

/// What an audit finds.
#[derive(Debug)]
struct Found {
    /// The root of the largest `d^T S^-1 d`.
    size: f64,
    /// The bound of the linear score: on mu, or on a pure epsilon.
    linear: f64,
    /// That of the exact likelihood ratio, for Laplace noise.
    exact: Option<f64>,
    /// The bound on epsilon at `DELTA`.
    epsilon: f64,
}

impl Found {
    fn best(&self) -> f64 {
        self.linear.max(self.exact.unwrap_or(0.0))
    }
}

/// Prints a line of the table; fails if the claim does not stand, or the broken one does.
#[expect(clippy::print_stdout, reason = "the figures of docs/audit.md")]
fn check(name: &str, claim: Loss, n: usize, sound: &Found, factor: f64, broken: &Found, must_catch: bool) {
    let most = match claim {
        Loss::Gaussian { mu, .. } => mu,
        Loss::Pure { epsilon, .. } => epsilon,
        _ => unreachable!("there are two kinds of loss"),
    };
    let exact = |found: &Found| found.exact.map_or_else(|| "-".to_owned(), |exact| format!("{exact:.3}"));
    println!(
        "| {name} | {n} | {most:.3} | {:.3} | {:.3} | {} | {factor:.2} | {:.3} | {} |",
        sound.size,
        sound.linear,
        exact(sound),
        broken.linear,
        exact(broken)
    );
    assert!(sound.best() <= most, "the claim is broken: {name}: {sound:?}");
    assert!(
        claim.is_pure() || sound.epsilon <= claim.epsilon(DELTA).unwrap(),
        "the claim is broken: {name}: {sound:?}"
    );
    assert!(!must_catch || broken.best() > most, "not caught: {name}: {broken:?}");
}

/// Noise too small by this factor must be caught where the stated loss is exact.
const TIGHT: f64 = std::f64::consts::SQRT_2;
/// And by this factor where it is an upper bound.
const LOOSE: f64 = 2.0;

const BLT: Mechanism = Mechanism::Blt { buffers: None };
const ONE_BUFFER: Mechanism = Mechanism::Blt { buffers: Some(1) };
const GAUSSIAN: [(Mechanism, f64); 4] =
    [(Mechanism::Tree, TIGHT), (Mechanism::TreePaper, LOOSE), (BLT, TIGHT), (ONE_BUFFER, TIGHT)];
const UNITS: [Unit; 2] = [Unit::Update, Unit::Lifetime];

fn gaussian(mechanism: Mechanism, unit: Unit, contributions: u32, horizon: u64) -> Case {
    Case::new(mechanism, false, unit, contributions, horizon, 1.0)
}

fn laplace(unit: Unit, contributions: u32, horizon: u64, epsilon: f64) -> Case {
    Case::new(Mechanism::Tree, true, unit, contributions, horizon, epsilon)
}

/// Two cells of one vector, moved in opposite directions: noise that they had in common would show.
fn two_cells(mut case: Case) -> Case {
    case.of_cells = if case.pure { vec![0.5, -0.5] } else { vec![0.6, -0.8] };
    case.by_index = true;
    case
}

/// Some steps of a long horizon: the first ones, and at all scales those about a third of it, where a tree's worst boundary is.
fn sparse(mut case: Case) -> Case {
    let middle = case.horizon / 3;
    let near = (0..40).map(|k| (1.5f64.powi(k)) as u64);
    let mut reads: Vec<u64> = near.flat_map(|x| [x, middle.saturating_sub(x), middle + x]).collect();
    reads.extend((1..=24).chain([middle, case.horizon]));
    reads.retain(|&step| step >= 1 && step <= case.horizon);
    reads.sort_unstable();
    reads.dedup();
    case.reads = reads;
    case
}

#[test]
fn gaussian_claims_stand_and_smaller_noise_is_caught() {
    let mut seed = 0;
    let mut audit = |case: Case, factor| {
        seed += 1;
        case.audit(20_000, seed, factor);
    };
    for unit in UNITS {
        for (i, (mechanism, factor)) in GAUSSIAN.into_iter().enumerate() {
            let horizon = [4, 8, 16, 2][(i + unit as usize) % 4];
            audit(gaussian(mechanism, unit, if i % 2 == 0 { 1 } else { 3 }, horizon), factor);
        }
        audit(gaussian(BLT, unit, 3, 1), TIGHT);
        audit(two_cells(gaussian(BLT, unit, 1, 8)), TIGHT);
    }
    audit(gaussian(Mechanism::Tree, Unit::Update, 3, 1), TIGHT);
    audit(two_cells(gaussian(Mechanism::Tree, Unit::Lifetime, 1, 8)), TIGHT);
    // No power of two.
    audit(gaussian(Mechanism::Tree, Unit::Update, 1, 50), TIGHT);
    audit(gaussian(BLT, Unit::Lifetime, 1, 50), TIGHT);
}

#[test]
fn pure_claims_stand_and_smaller_noise_is_caught() {
    let mut seed = 100;
    let mut audit = |case: Case, n, factor| {
        seed += 1;
        case.audit(n, seed, factor);
    };
    for (unit, contributions) in [(Unit::Update, 1), (Unit::Lifetime, 3)] {
        // Where no more than the likelihood of one or two answers is at stake, the audit is sharp.
        audit(laplace(unit, contributions, 1, 1.5), 20_000, 1.3);
        audit(laplace(unit, contributions, 2, 1.5), 80_000, 1.3);
        audit(laplace(unit, contributions, 4, 3.0), 25_000, LOOSE);
    }
    audit(two_cells(laplace(Unit::Update, 1, 2, 3.0)), 20_000, LOOSE);
}

#[test]
#[ignore = "minutes"]
fn gaussian_claims_stand_in_all_cases() {
    let mut seed = 1000;
    let mut audit = |mut case: Case, factor| {
        seed += 1;
        // Every run in a vector of its own.
        if case.of_cells.len() == 1 && case.horizon <= 16 {
            case.together = 1;
        }
        case.audit(40_000, seed, factor);
    };
    for unit in UNITS {
        for contributions in [1, 3] {
            for (mechanism, factor) in GAUSSIAN {
                for horizon in [1, 2, 4, 8, 16, 64, 100] {
                    if horizon > 1 || mechanism == Mechanism::Tree || mechanism == BLT {
                        audit(gaussian(mechanism, unit, contributions, horizon), factor);
                    }
                }
                audit(two_cells(gaussian(mechanism, unit, contributions, 16)), factor);
            }
        }
        // Not all that a long horizon lets out is in a few of its answers.
        audit(sparse(gaussian(Mechanism::Tree, unit, 1, 1 << 20)), LOOSE);
        audit(sparse(gaussian(BLT, unit, 1, 1 << 20)), LOOSE);
        audit(sparse(gaussian(ONE_BUFFER, unit, 1, 1 << 20)), 4.0);
    }
}

#[test]
#[ignore = "minutes"]
fn pure_claims_stand_in_all_cases() {
    let mut seed = 2000;
    let mut audit = |case: Case, n, factor| {
        seed += 1;
        case.audit(n, seed, factor);
    };
    for unit in UNITS {
        for contributions in [1, 3] {
            audit(laplace(unit, contributions, 1, 1.5), 100_000, 1.3);
            audit(laplace(unit, contributions, 2, 1.5), 100_000, 1.3);
            audit(laplace(unit, contributions, 4, 3.0), 100_000, LOOSE);
            audit(laplace(unit, contributions, 8, 3.0), 100_000, LOOSE);
            audit(two_cells(laplace(unit, contributions, 2, 3.0)), 100_000, LOOSE);
        }
        audit(laplace(unit, 1, 16, 3.0), 300_000, LOOSE);
    }
}

// ------------------------------------------------------------------------------------------------------- adaptive adversaries

/// An adversary who sees all answers as they come, and chooses the cell and the steps of the unit by them.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Taste {
    /// Where past noise was small: heavy tails aside, what comes is then known best.
    Quiet,
    /// Where it was large.
    Loud,
    /// Where the last answer was low.
    Low,
}

impl Taste {
    /// What a cell's past is worth: less is better.
    fn score(self, past: &[f64]) -> f64 {
        let mean_square = past.iter().map(|x| x * x).sum::<f64>() / past.len().max(1) as f64;
        match self {
            Self::Quiet => mean_square,
            Self::Loud => -mean_square,
            Self::Low => past.last().copied().unwrap_or(0.0),
        }
    }
}

/// What the adversary keeps of a run: the unit that was chosen, and the answers of its cell.
struct Chosen {
    life: Life,
    answers: Vec<f64>,
}

impl Case {
    /// Units that are as bad as the worst, or nearly.
    fn near_worst(&self, precision: &Precision) -> Vec<Life> {
        let steps = self.reads.len();
        let badness = |life: &Life| {
            if self.pure { cut(self.levels(), steps, life.0, life.1) } else { precision.norm(&self.shift(*life)) }
        };
        let units = lives(self.unit, steps);
        let most = units.iter().map(badness).fold(0.0, f64::max);
        units.into_iter().filter(|life| badness(life) >= 0.95 * most).collect()
    }

    /// Runs with many cells, of which the adversary takes the one and the steps that look best. With the unit inserted or not: the
    /// choice is made either way. `worst` are the candidates.
    fn run_adaptively(
        &self,
        worst: &[Life],
        factor: f64,
        inserted: bool,
        taste: Taste,
        n: usize,
        rng: &mut ChaCha12Rng,
    ) -> Vec<Chosen> {
        let (builder, cells, steps) = (self.builder(factor), self.together, self.reads.len());
        let std = builder.plan().unwrap().noise_std();
        let last_start = worst.iter().map(|life| life.0).max().unwrap();
        // A past as good as the best of the cells is at its median: then it is not worth while to wait.
        let good = match taste {
            Taste::Quiet => 0.02 * std * std,
            Taste::Loud => -6.0 * std * std,
            Taste::Low => -2.0 * std,
        };
        let update = |vector: &mut ContinualVector, cell: usize, value: f64| {
            for _ in 0..self.contributions {
                vector.update(&[(cell as u64, value)]).unwrap();
            }
        };
        let one_run = |_| {
            let mut vector = builder.build().unwrap();
            let mut past: Vec<Vec<f64>> = vec![Vec::new(); cells];
            let (mut cell, mut start, mut end) = (0, None, None);
            for t in 0..steps {
                vector.advance(self.reads[t]).unwrap();
                if start.is_none() && worst.iter().any(|life| life.0 == t) {
                    let scores = past.iter().map(|past| taste.score(past)).enumerate();
                    let (best, score) =
                        scores.fold((0, f64::INFINITY), |best, next| if next.1 < best.1 { next } else { best });
                    if score <= good || t == last_start {
                        (cell, start) = (best, Some(t));
                        if inserted {
                            update(&mut vector, cell, 1.0);
                        }
                    }
                } else if let (Some(inserted_at), None) = (start, end) {
                    let ends: Vec<usize> =
                        worst.iter().filter(|life| life.0 == inserted_at).map(|life| life.1).collect();
                    let since = &past[cell][inserted_at..];
                    // Deleted when the last answers agree, or at last.
                    let agree = since.len() > 1 && (since[since.len() - 1] - since[since.len() - 2]).abs() < 0.4 * std;
                    if ends.contains(&t) && (agree || ends.iter().all(|&later| later <= t)) {
                        end = Some(t);
                        if inserted {
                            update(&mut vector, cell, -1.0);
                        }
                    }
                }
                let values = vector.release(Cells::<u64>::All, rng).unwrap();
                past.iter_mut().zip(values).for_each(|(past, value)| past.push(value));
            }
            Chosen { life: (start.unwrap(), end.unwrap_or(steps)), answers: past.swap_remove(cell) }
        };
        (0..n).map(one_run).collect()
    }

    /// The audit by an adaptive adversary. The likelihood ratio of a run is that of the unit which was chosen in it: the choice is a
    /// function of answers that are the same in both.
    fn audit_adaptively(&self, taste: Taste, n: usize, seed: u64, factor: f64) {
        let mut rng = rng(seed);
        let [sound, broken] = [1.0, factor].map(|factor| {
            let noise = Self { together: 250, ..self.clone() }.run(factor, None, n, &mut rng);
            let precision = Precision::measured(&noise, self.dims());
            let tree = self.tree(self.scale(factor));
            let worst = self.near_worst(&precision);
            let mut size = 0.0;
            let mut largest_ratio = 0.0;
            let [without, with] = [false, true].map(|inserted| -> (Vec<f64>, Vec<f64>) {
                let runs = self.run_adaptively(&worst, factor, inserted, taste, n, &mut rng);
                let scores = runs.iter().map(|run| {
                    let shift = self.shift(run.life);
                    let norm = precision.norm(&shift);
                    size = f64::max(size, norm.sqrt());
                    let linear = dot(&precision.direction(&shift), &run.answers) - 0.5 * norm;
                    let exact = if self.pure { tree.log_ratio(&run.answers, &shift) } else { 0.0 };
                    largest_ratio = f64::max(largest_ratio, exact.abs());
                    (linear, exact)
                });
                scores.unzip()
            });
            let linear = Scores { without: without.0, with: with.0 };
            let exact = Scores { without: without.1, with: with.1 };
            if !self.pure {
                return Found { size, linear: linear.mu(), exact: None, epsilon: linear.epsilon(DELTA) };
            }
            // Not a matter of chance: no run at all may say more than epsilon.
            assert!(largest_ratio <= self.claim * factor * 1.001, "{largest_ratio}");
            let epsilon = linear.epsilon(DELTA);
            Found { size, linear: linear.epsilon(0.0), exact: Some(exact.epsilon(0.0)), epsilon }
        });
        // Not every taste makes for a sharp audit.
        let must_catch = taste == Taste::Quiet;
        check(&format!("{} {taste:?}", self.name()), self.loss(1.0), n, &sound, factor, &broken, must_catch);
    }
}

/// The best of some cells, at the best time.
fn among(case: Case, cells: usize) -> Case {
    Case { together: cells, ..case }
}

#[test]
fn claims_stand_against_adaptive_adversaries() {
    among(gaussian(BLT, Unit::Lifetime, 1, 8), 4).audit_adaptively(Taste::Quiet, 20_000, 201, TIGHT);
    among(laplace(Unit::Update, 1, 2, 3.0), 16).audit_adaptively(Taste::Quiet, 20_000, 202, TIGHT);
    among(laplace(Unit::Lifetime, 1, 4, 3.0), 8).audit_adaptively(Taste::Quiet, 20_000, 203, LOOSE);
}

#[test]
#[ignore = "minutes"]
fn claims_stand_against_more_adaptive_adversaries() {
    let mut seed = 3000;
    for unit in UNITS {
        for taste in [Taste::Quiet, Taste::Loud, Taste::Low] {
            for mechanism in [BLT, Mechanism::Tree] {
                seed += 1;
                among(gaussian(mechanism, unit, 1, 16), 20).audit_adaptively(taste, 40_000, seed, TIGHT);
            }
            for horizon in [2, 4, 8] {
                seed += 1;
                among(laplace(unit, 1, horizon, 4.0), 40).audit_adaptively(taste, 100_000, seed, LOOSE);
            }
        }
    }
}

// ----------------------------------------------------------------------------------------------------------------- structures

/// From the factor by which noise is too small, and the unit if there is one, to the answers step by step, less what the auditor
/// knows.
type OneRun<'a> = dyn Fn(f64, Option<Life>, &mut ChaCha12Rng) -> Vec<f64> + 'a;

/// A structure: as many cells as a unit moves, whose noise is that of a vector with this case's mechanism and some other scale.
struct Structure<'a> {
    name: &'a str,
    case: Case,
    /// The scale of the noise, if it is too small by a factor.
    scale: &'a dyn Fn(f64) -> f64,
    run: &'a OneRun<'a>,
}

impl Structure<'_> {
    fn audit(&self, n: usize, seed: u64, factor: f64) {
        let (case, mut rng) = (&self.case, rng(seed));
        let [sound, broken] = [1.0, factor].map(|factor| {
            let mut runs = |n, life| -> Vec<f64> { (0..n).flat_map(|_| (self.run)(factor, life, &mut rng)).collect() };
            let precision = Precision::measured(&runs(n / 4, None), case.dims());
            let life = case.worst(&precision);
            let (without, with) = (runs(n, None), runs(n, Some(life)));
            case.judge((self.scale)(factor), &precision, &case.shift(life), &without, &with)
        });
        check(&format!("{}: {}", self.name, case.name()), case.loss(1.0), n, &sound, factor, &broken, true);
    }
}

/// The cells of a key, and the signs that it has there.
fn places(shape: SketchShape, key: u64) -> Vec<(usize, i64)> {
    let mut raw = RawSketch::new(shape, OnExcess::Error, Invalid::Raise).unwrap();
    raw.update(&[key], Weights::All(1)).unwrap();
    let bytes = raw.to_bytes().unwrap();
    let words = bytes.chunks_exact(8).map(|word| i64::from_le_bytes(word.try_into().unwrap()));
    let counters = words.skip(bytes.len() / 8 - shape.depth * shape.width);
    counters.enumerate().filter(|&(_, sign)| sign != 0).collect()
}

/// How to read the cells of key 0 through medians of three rows: for each row a key that shares its cell there, and weights of other
/// keys which put the two other cells of that key so far to either side that the median is the row in question.
fn one_row_at_a_time(shape: SketchShape) -> (Vec<u64>, Vec<(u64, i64)>) {
    const FAR: i64 = 1000;
    let of: Vec<Vec<(usize, i64)>> = (0..20_000).map(|key| places(shape, key)).collect();
    let shares = |key: usize, row: usize| of[key][row].0 == of[0][row].0;
    let readers: Vec<usize> = (0..3)
        .map(|row| (1..of.len()).find(|&key| (0..3).all(|other| shares(key, other) == (other == row))).unwrap())
        .collect();
    let in_use: Vec<usize> = [0].iter().chain(&readers).flat_map(|&key| of[key].iter().map(|place| place.0)).collect();
    let mut background = Vec::new();
    for (row, &reader) in readers.iter().enumerate() {
        for (other, side) in (0..3).filter(|&other| other != row).zip([1, -1]) {
            let (cell, sign) = of[reader][other];
            let meets_there_only = |key: usize| {
                (0..3).all(|row| if row == other { of[key][row].0 == cell } else { !in_use.contains(&of[key][row].0) })
            };
            let key = (1..of.len()).find(|&key| meets_there_only(key)).unwrap();
            background.push((key as u64, side * sign * of[key][other].1 * FAR));
        }
    }
    (readers.into_iter().map(|key| key as u64).collect(), background)
}

fn audit_sketch(mut case: Case, n: usize, seed: u64, factor: f64) {
    let shape = SketchShape { width: 16, depth: 3, max_weight: 1, hash_seed: 7 };
    let (readers, weights) = one_row_at_a_time(shape);
    let signs: Vec<f64> = places(shape, 0).iter().map(|&(_, sign)| sign as f64).collect();
    case.of_cells.clone_from(&signs);
    // The sign with which a reader has the cell that it shares.
    let of_readers: Vec<f64> = readers.iter().enumerate().map(|(row, &key)| places(shape, key)[row].1 as f64).collect();
    let mut background = RawSketch::new(shape, OnExcess::Error, Invalid::Raise).unwrap();
    for (key, weight) in weights {
        let keys = vec![key; weight.unsigned_abs() as usize];
        background.update(&keys, Weights::All(weight.signum())).unwrap();
    }
    let build = |factor: f64| -> CountSketch {
        let base = ContinualVector::builder(case.horizon, case.loss(factor)).mechanism(case.mechanism).unit(case.unit);
        SketchBuilder::new(base, shape).build().unwrap()
    };
    let structure = Structure {
        name: "sketch, depth 3",
        scale: &|factor| build(factor).vector().calibration().scale(),
        run: &|factor, life, rng| {
            let mut sketch = build(factor);
            sketch.merge(&background).unwrap();
            let mut answers = Vec::new();
            for (t, &step) in case.reads.iter().enumerate() {
                sketch.advance(step).unwrap();
                match life {
                    Some((inserted, _)) if t == inserted => drop(sketch.update(&[0u64], Weights::All(1)).unwrap()),
                    Some((_, deleted)) if t == deleted => drop(sketch.update(&[0u64], Weights::All(-1)).unwrap()),
                    _ => {}
                }
                let read = sketch.estimate(&readers, rng).unwrap();
                answers.extend(read.iter().zip(&of_readers).map(|(x, sign)| x * sign));
            }
            answers
        },
        case: case.clone(),
    };
    structure.audit(n, seed, factor);
}

/// Every rectangle that a point is in, of all levels of both axes.
fn audit_range(mut case: Case, n: usize, seed: u64, factor: f64) {
    let shape = RangeShape { levels: Levels::Dyadic, estimator: Estimator::Cover, ..RangeShape::new(&[4, 4]) };
    let point = [1u64, 2];
    let levels: Vec<[u32; 2]> = (0..2).flat_map(|x| [[x, 0], [x, 1]]).collect();
    case.of_cells = vec![1.0; levels.len()];
    let builder = |factor: f64| {
        let base = ContinualVector::builder(case.horizon, case.loss(factor)).mechanism(case.mechanism).unit(case.unit);
        RangeBuilder::new(base, shape.clone())
    };
    let structure = Structure {
        name: "range, 4 components",
        scale: &|factor| builder(factor).build().unwrap().vector().calibration().scale(),
        run: &|factor, life, rng| {
            let mut counter = builder(factor).build().unwrap();
            let mut answers = Vec::new();
            for (t, &step) in case.reads.iter().enumerate() {
                counter.advance(step).unwrap();
                match life {
                    Some((inserted, _)) if t == inserted => drop(counter.update(&point, Weights::All(1)).unwrap()),
                    Some((_, deleted)) if t == deleted => drop(counter.update(&point, Weights::All(-1)).unwrap()),
                    _ => {}
                }
                for [x, y] in &levels {
                    let grid = counter.grid(&[*x, *y], rng).unwrap();
                    answers.push(grid[((point[0] >> x) * (4 >> y) + (point[1] >> y)) as usize]);
                }
            }
            answers
        },
        case: case.clone(),
    };
    structure.audit(n, seed, factor);
}

#[test]
fn a_pure_claim_of_a_sketch_stands_and_smaller_noise_is_caught() {
    // What a pure budget lets out is spread over cells, and over nodes: with one step all of it can be seen.
    audit_sketch(laplace(Unit::Update, 1, 1, 3.0), 20_000, 301, LOOSE);
}

#[test]
#[ignore = "minutes"]
fn claims_of_structures_stand_in_all_cases() {
    for (i, unit) in (0..).zip(UNITS) {
        for (j, mechanism) in (0..).zip([BLT, Mechanism::Tree]) {
            let seed = 4000 + 20 * i + 10 * j;
            audit_sketch(gaussian(mechanism, unit, 1, 4), 20_000, seed, TIGHT);
            audit_range(gaussian(mechanism, unit, 1, 4), 20_000, seed + 1, TIGHT);
        }
        audit_sketch(laplace(unit, 1, 1, 2.0), 60_000, 4100 + i, TIGHT);
        audit_sketch(laplace(unit, 1, 2, 3.0), 60_000, 4102 + i, LOOSE);
        audit_range(laplace(unit, 1, 1, 2.0), 60_000, 4104 + i, TIGHT);
        audit_range(laplace(unit, 1, 2, 3.0), 60_000, 4106 + i, LOOSE);
    }
}
