//! The law of BLT noise: exactly, by propagating every draw, against the matrix that defines it; against mpmath over long
//! jumps; and by sampling.

use std::collections::{BTreeMap, BTreeSet};
use std::format;
use std::println;
use std::string::String;
use std::vec;
use std::vec::Vec;

use chacha20::ChaCha12Rng;
use rand_core::TryRng;
use rand_distr::{Distribution, StandardNormal};

use super::*;
use crate::calibration::blt::testing::*;
use crate::math::erfc;
use crate::mechanism::cells::{CellNoise, Request};
use crate::mechanism::testing::*;
use crate::noise::FailStop;
use crate::time::Horizon;

/// The parameters of the table, if it has them.
fn table(levels: u32, buffers: u32) -> Option<Blt> {
    Blt::new(Horizon::new(1 << levels).unwrap(), Some(buffers)).ok()
}

// ---------------------------------------------------------------------------------------------------------------
// The covariance of reads
// ---------------------------------------------------------------------------------------------------------------

/// `(B B^T)[t, u]` from the first column of `B`, by adding up.
struct Dense {
    b: Vec<f64>,
}

impl Dense {
    fn new(row: &[(f64, f64)], steps: u64) -> Self {
        let mut powers = vec![1.0; row.len()];
        let mut b = vec![1.0];
        while (b.len() as u64) < steps {
            b.push(row.iter().zip(&powers).map(|(&(omega, _), power)| omega * power).sum());
            row.iter().zip(&mut powers).for_each(|(&(_, e), power)| *power -= e * *power);
        }
        Self { b }
    }

    fn covariance(&self, t: u64, u: u64) -> f64 {
        let shared = &self.b[..t.min(u) as usize];
        shared.iter().zip(&self.b[t.abs_diff(u) as usize..]).map(|(x, y)| x * y).sum()
    }
}

/// The same in closed form.
fn covariance(row: &[(f64, f64)], t: u64, u: u64) -> f64 {
    let (t, lag) = (t.min(u), t.abs_diff(u));
    let power = |e: f64, n: u64| exp(n as f64 * ln_1p(-e));
    let mut sum = if lag == 0 { 1.0 } else { row.iter().map(|&(omega, e)| omega * power(e, lag - 1)).sum() };
    for &(omega, e) in row {
        for &(other, rate) in row {
            sum += omega * other * power(rate, lag) * Decay::new(e, t - 1).products(&Decay::new(rate, t - 1));
        }
    }
    sum
}

#[test]
fn the_closed_form_of_the_covariance_is_the_matrix() {
    for row in [&[] as &[(f64, f64)], TWENTY, FORTY, SIXTY_TWO, table(10, 1).unwrap().row()] {
        let dense = Dense::new(row, 1 << 14);
        for t in [1, 2, 3, 50, 1000, 9999, 1 << 14] {
            for u in [1, 2, 4, 51, 1000, 10_000, 1 << 14] {
                let (sum, closed) = (dense.covariance(t, u), covariance(row, t, u));
                assert!((sum - closed).abs() <= 1e-11 * sum, "steps {t} and {u}: {closed}, not {sum}");
            }
        }
    }
}

// ---------------------------------------------------------------------------------------------------------------
// Processes with a fault
// ---------------------------------------------------------------------------------------------------------------

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    None,
    /// What comes in during a jump is independent from buffer to buffer.
    Diagonal,
    /// A jump is one step too long.
    Longer,
    /// A jump is one step too short.
    Shorter,
    /// The past is forgotten.
    Forgets,
}

/// BLT noise with a fault in its jumps. It also counts the draws and sweeps for which a jump had to be made anew.
struct Faulty {
    inner: BltProcess,
    fault: Fault,
    missed: core::cell::Cell<usize>,
}

impl Faulty {
    fn new(blt: Blt, scale: f64, size: u64, fault: Fault) -> Self {
        Self { inner: BltProcess::new(blt, scale, size), fault, missed: 0.into() }
    }

    fn count_missed(&self, step_move: Move) {
        if step_move.skipped > 0 && self.inner.jumps.get(step_move.skipped).is_none() {
            self.missed.set(self.missed.get() + 1);
        }
    }
}

impl Process for Faulty {
    type Head = u64;
    type Value = f64;
    type Move = Move;
    type Loaded = (Move, Buffers);
    type Drawn = Reading;

    const BLOCK: usize = BltProcess::BLOCK;

    fn step(head: u64) -> u64 {
        head
    }

    fn next(&mut self, last: Option<u64>, step: u64) -> Option<Move> {
        let step_move = self.inner.next(last, step)?;
        match self.fault {
            Fault::None => Some(step_move),
            Fault::Forgets => Some(Move { first: true, ..step_move }),
            Fault::Longer => self.inner.next(last, step + 1),
            Fault::Shorter if step_move.skipped == 0 => Some(step_move),
            Fault::Shorter => self.inner.next(last, step - 1),
            Fault::Diagonal => {
                if let Some(View { decay, columns }) = self.inner.jumps.get(step_move.skipped) {
                    let d = decay.len();
                    let mut jump =
                        Jump { decay: [0.0; MAX_BUFFERS], columns: [[0.0; MAX_BUFFERS]; MAX_BUFFERS], rank: d };
                    jump.decay[..d].copy_from_slice(decay);
                    for i in 0..d {
                        jump.columns[i][i] = sqrt(columns.chunks_exact(d).map(|column| column[i] * column[i]).sum());
                    }
                    self.inner.jumps.put(step_move.skipped, &jump);
                }
                Some(step_move)
            }
        }
    }

    fn after(&self, step_move: Move, last: Option<u64>, step: u64) -> After<u64> {
        self.inner.after(step_move, last, step)
    }

    fn drawn(&self, step_move: Move) -> usize {
        self.inner.drawn(step_move)
    }

    fn fits(&self, head: u64, values: usize, now: u64) -> bool {
        self.inner.fits(head, values, now)
    }

    fn is_possible(&self, rank: usize, value: f64, limit: f64) -> bool {
        self.inner.is_possible(rank, value, limit)
    }

    fn normals(&self, step_move: Move) -> usize {
        self.inner.normals(step_move)
    }

    fn load(&self, step_move: Move, value_at: impl Fn(u32) -> f64) -> (Move, Buffers) {
        self.inner.load(step_move, value_at)
    }

    fn draw(&self, loaded: (Move, Buffers), source: &mut Source<'_, impl Rng>) -> Reading {
        self.count_missed(loaded.0);
        self.inner.draw(loaded, source)
    }

    fn sweep(
        &self,
        step_move: Move,
        stack: &[Vec<f64>],
        len: usize,
        drawn: &mut [Vec<f64>],
        noise: &mut Vec<f64>,
        rng: &mut impl Rng,
    ) {
        self.count_missed(step_move);
        self.inner.sweep(step_move, stack, len, drawn, noise, rng);
    }

    fn noise(value: f64) -> f64 {
        value
    }
}

// ---------------------------------------------------------------------------------------------------------------
// The exact law, without sampling
// ---------------------------------------------------------------------------------------------------------------

#[derive(Clone, Debug)]
struct Read {
    step: u64,
    ask: Ask,
    /// Asked for before, drawn and given up.
    given_up: Option<Ask>,
}

fn reads(steps: &[u64], ask: &Ask) -> Vec<Read> {
    steps.iter().map(|&step| Read { step, ask: ask.clone(), given_up: None }).collect()
}

/// All values of a sequence of reads, and the words that each took (before it, those that were given up).
fn run(
    process: Faulty,
    lengths: &[usize],
    reads: &[Read],
    word: impl FnMut(usize) -> u64,
) -> (Vec<f64>, Vec<[usize; 2]>) {
    let mut noise = CellNoise::new(process, lengths);
    let mut script = Script { word, used: 0 };
    let (mut values, mut words) = (Vec::new(), Vec::new());
    for (i, read) in reads.iter().enumerate() {
        let before = script.used;
        if let Some(ask) = &read.given_up {
            noise.draw(ask.request(), read.step, &mut script).unwrap();
            // Or left where it is, for the next draw to find.
            if i % 2 == 0 {
                noise.abandon();
            }
        }
        let between = script.used;
        noise.draw(read.ask.request(), read.step, &mut script).unwrap();
        values.extend_from_slice(noise.commit());
        words.push([between - before, script.used - between]);
    }
    (values, words)
}

/// Checks the law of all values of a sequence of reads. They are linear in the standard normals drawn, `values = M z`. One run
/// for each draw, with all others zero, gives its column of M, and `M M^T` has to be `s^2 B B^T` at the steps read for reads of
/// one cell, 0 between cells. No sampling, so nothing but rounding is forgiven.
fn exact_law(
    blt: Blt,
    scale: f64,
    fault: Fault,
    lengths: &[usize],
    reads: &[Read],
    want: &impl Fn(u64, u64) -> f64,
) -> Result<(), String> {
    const TOLERANCE: f64 = 1e-10;
    let s = 1.7;
    let size = lengths.iter().sum::<usize>() as u64;
    let process = || Faulty::new(blt, s * scale, size, fault);
    let labels: Vec<(u64, u64)> =
        reads.iter().flat_map(|read| read.ask.cells(lengths).into_iter().map(move |cell| (cell, read.step))).collect();
    let (constant, words) = run(process(), lengths, reads, |_| ZERO_WORD);
    if constant.len() != labels.len() || constant.iter().any(|&value| value != 0.0) {
        return Err(format!("without noise the values are {constant:?} for {} cells", labels.len()));
    }

    // For each cell that is new at its step one draw, and as many as the jump to it has steps and there are buffers at
    // most; none for a repeat.
    let mut last: BTreeMap<u64, u64> = BTreeMap::new();
    for (read, &[_, words]) in reads.iter().zip(&words) {
        let (mut least, mut most) = (0, 0);
        for cell in read.ask.cells(lengths) {
            let before = last.insert(cell, read.step).unwrap_or(0);
            if before != read.step {
                let skipped = read.step - before - 1;
                least += 1 + usize::from(skipped > 0 && blt.buffers() > 0);
                most += 1 + blt.buffers().min(skipped as usize);
            }
        }
        if words < least || words > most {
            return Err(format!("{words} draws at step {}, where {least} to {most} are made", read.step));
        }
    }

    let total: usize = words.iter().flatten().sum();
    let hot = word(0.5);
    let z = normal(hot);
    let columns: Vec<Vec<f64>> = (0..total)
        .map(|k| {
            let (values, again) = run(process(), lengths, reads, |i| if i == k { hot } else { ZERO_WORD });
            assert_eq!(again, words, "the number of draws depends on what is drawn");
            values.iter().map(|value| value / z).collect()
        })
        .collect();

    for (i, &(cell, step)) in labels.iter().enumerate() {
        for (j, &(other_cell, other_step)) in labels.iter().enumerate().take(i + 1) {
            let got: f64 = columns.iter().map(|column| column[i] * column[j]).sum();
            let want = if cell == other_cell { s * s * want(step, other_step) } else { 0.0 };
            let error = (got - want).abs();
            if error.is_nan() || error > TOLERANCE * want {
                return Err(format!(
                    "covariance of cell {cell} at step {step} and cell {other_cell} at step {other_step}: {got}, not {want}"
                ));
            }
        }
    }

    // The columns tell all only if the values are linear in the draws: they add up for random draws.
    let mut rng = seeded(total as u64);
    let script: Vec<u64> =
        (0..total).map(|_| word(1.8 * below(1 << 53, &mut rng) as f64 / (1u64 << 53) as f64 - 0.9)).collect();
    let normals: Vec<f64> = script.iter().map(|&word| normal(word)).collect();
    let (values, again) = run(process(), lengths, reads, |i| script[i]);
    assert_eq!(again, words, "the number of draws depends on what is drawn");
    for (i, value) in values.iter().enumerate() {
        let sum: f64 = columns.iter().zip(&normals).map(|(column, z)| column[i] * z).sum();
        if (value - sum).abs() > 1e-12 * s * 64.0 {
            return Err(format!("value {i} is {value}, its draws add up to {sum}"));
        }
    }
    Ok(())
}

/// The same steps for a cell that is read on its own, for sweeps of one and of two cells, and for a random mixture of sweeps, block
/// reads, single reads (with repeats) and reads that are given up, over several blocks.
fn exact_law_on_all_paths(blt: Blt, steps: &[u64], seed: u64) {
    let dense = Dense::new(blt.row(), *steps.last().unwrap());
    let table: BTreeMap<(u64, u64), f64> = steps
        .iter()
        .flat_map(|&t| steps.iter().map(move |&u| (t, u)))
        .map(|(t, u)| ((t, u), dense.covariance(t, u)))
        .collect();
    let check = |lengths: &[usize], reads: &[Read]| {
        exact_law(blt, 1.0, Fault::None, lengths, reads, &|t, u| table[&(t, u)])
            .unwrap_or_else(|error| panic!("{:?}, blocks {lengths:?}, reads {reads:?}: {error}", blt.row()));
    };
    check(&[3], &reads(steps, &Ask::Cells(vec![1])));
    check(&[1], &reads(steps, &Ask::Cells(vec![0])));
    check(&[2], &reads(steps, &Ask::All));

    let mut rng = seeded(seed);
    let mut mixed = Vec::new();
    for &step in steps {
        let ask = |rng: &mut ChaCha12Rng| match below(5, rng) {
            0 => Ask::All,
            1 => Ask::Block(below(3, rng) as usize),
            _ => Ask::Cells((0..below(4, rng)).map(|_| below(6, rng)).collect()),
        };
        // A sweep, then single reads, then a sweep again at the same or at another step.
        for _ in 0..=below(2, &mut rng) {
            let given_up = (below(4, &mut rng) == 0).then(|| ask(&mut rng));
            mixed.push(Read { step, ask: ask(&mut rng), given_up });
        }
    }
    check(&[2, 1, 3], &mixed);
}

#[test]
fn dense_reads_have_exactly_the_law_of_the_matrix() {
    let dense: Vec<u64> = (1..=48).collect();
    for blt in [table(0, 1), table(1, 1), table(3, 3), table(6, 2), table(6, 6), table(40, 10)].into_iter().flatten() {
        exact_law_on_all_paths(blt, &dense, 1);
    }
    exact_law_on_all_paths(Blt::of_row(&[]), &dense[..5], 2);
    exact_law_on_all_paths(Blt::of_row(&[]), &[3, 4, 900], 2);
}

#[test]
fn every_set_of_steps_has_exactly_the_law_of_the_matrix() {
    let blt = table(3, 3).unwrap();
    for set in 1u64..1 << 8 {
        let steps: Vec<u64> = (1..=8).filter(|step| set >> (step - 1) & 1 == 1).collect();
        exact_law_on_all_paths(blt, &steps, set);
    }
}

#[test]
fn jumps_have_exactly_the_law_of_the_matrix() {
    for (levels, buffers) in [(5, 3), (10, 1), (10, 5), (14, 3), (14, 10), (20, 5), (62, 10)] {
        let blt = table(levels, buffers).unwrap();
        let horizon = 1u64 << levels.min(14);
        let rng = &mut seeded(u64::from(levels));
        exact_law_on_all_paths(blt, &random_steps(horizon, 18, rng), 1);
        exact_law_on_all_paths(blt, &clustered_steps(horizon, rng), 2);
        exact_law_on_all_paths(blt, &doubling_steps(horizon), 3);
        // The first read comes late.
        exact_law_on_all_paths(blt, &[horizon], 4);
        exact_law_on_all_paths(blt, &[horizon - 1, horizon], 5);
        exact_law_on_all_paths(blt, &[horizon / 2 + 1, horizon / 2 + 2, horizon / 2 + 4, horizon], 6);
    }
}

#[test]
fn the_exact_test_rejects_wrong_laws() {
    let blt = Blt::of_row(TWENTY);
    let dense = Dense::new(TWENTY, 1000);
    let check = |scale: f64, fault: Fault| {
        let reads = reads(&[1, 400, 401, 403, 1000], &Ask::Cells(vec![0]));
        exact_law(blt, scale, fault, &[2], &reads, &|t, u| dense.covariance(t, u))
    };
    assert_eq!(check(1.0, Fault::None), Ok(()));
    assert!(check(1.0 + 1e-9, Fault::None).is_err());
    for fault in [Fault::Diagonal, Fault::Longer, Fault::Shorter, Fault::Forgets] {
        assert!(check(1.0, fault).is_err(), "{fault:?}");
    }
}

// ---------------------------------------------------------------------------------------------------------------
// Jumps
// ---------------------------------------------------------------------------------------------------------------

/// `Q_n`, by its recursion `Q_{n+1} = 1 + lambda_i lambda_k Q_n`, the lost halves of the sums kept.
struct Recursion {
    row: &'static [(f64, f64)],
    q: [[[f64; 2]; MAX_BUFFERS]; MAX_BUFFERS],
}

impl Recursion {
    fn new(row: &'static [(f64, f64)]) -> Self {
        Self { row, q: [[[0.0; 2]; MAX_BUFFERS]; MAX_BUFFERS] }
    }

    fn step(&mut self) {
        for (i, &(_, e)) in self.row.iter().enumerate() {
            for (k, &(_, rate)) in self.row.iter().enumerate() {
                let [high, low] = self.q[i][k];
                let gone = e + rate - e * rate;
                let add = 1.0 - gone * high;
                let sum = high + add;
                let lost = if high >= add.abs() { (high - sum) + add } else { (add - sum) + high };
                self.q[i][k] = [sum, low - gone * low + lost];
            }
        }
    }

    fn get(&self, i: usize, k: usize) -> f64 {
        let [high, low] = self.q[i][k];
        high + low
    }
}

/// The largest error of `F F^T`, relative to `sqrt(Q_ii Q_kk)`, and of the variance that comes in, relative to itself.
fn errors_of_jumps(blt: Blt, lengths: impl Fn(u64) -> bool) -> (f64, f64) {
    let row = blt.row();
    let mut recursion = Recursion::new(row);
    let (mut worst, mut worst_variance) = (0.0f64, 0.0f64);
    for n in 1..=2000u64 {
        recursion.step();
        if !lengths(n) {
            continue;
        }
        let jump = Jump::new(&blt, &BltProcess::new(blt, 1.0, 1).logs, 1.0, n);
        let columns = &jump.columns[..jump.rank];
        assert!(jump.rank as u64 <= n, "rank {} of {n} steps", jump.rank);
        let (mut got_variance, mut variance) = (0.0, 0.0);
        for i in 0..row.len() {
            for k in 0..row.len() {
                let (want, size) = (recursion.get(i, k), sqrt(recursion.get(i, i) * recursion.get(k, k)));
                let got: f64 = columns.iter().map(|column| column[i] * column[k]).sum();
                let error = (got - want).abs() / size;
                worst = if error.is_nan() { f64::NAN } else { worst.max(error) };
                got_variance += row[i].0 * row[k].0 * got;
                variance += row[i].0 * row[k].0 * want;
            }
        }
        worst_variance = worst_variance.max((got_variance / variance - 1.0).abs());
        for (decay, &(_, e)) in jump.decay.iter().zip(row) {
            assert!((decay - (1.0 - e).powi(n as i32)).abs() < 1e-12, "{row:?}, {n} steps");
        }
    }
    (worst, worst_variance)
}

/// Every length from 1 to 2000 for every row of the table (half a million factors): unpivoted elimination was wrong by 350 %
/// at single lengths. What is allowed is the bound of the guarantees (14.2), 2^-42 and rounding.
#[test]
#[expect(clippy::print_stdout, reason = "the measured figures")]
fn every_short_jump_of_every_row_has_the_right_covariance() {
    let (mut worst, mut worst_variance) = (0.0f64, 0.0f64);
    for levels in 1..=62 {
        for blt in (1..=MAX_BUFFERS as u32).map_while(|buffers| table(levels, buffers)) {
            let (error, variance) = errors_of_jumps(blt, |_| true);
            assert!(error <= 2.4e-13 && variance <= 2.4e-13, "{:?}: {error:e}, {variance:e}", blt.row());
            (worst, worst_variance) = (worst.max(error), worst_variance.max(variance));
        }
    }
    println!("factors: entries {worst:e}, variances {worst_variance:e}");
}

/// The noise of reads, as the normals are given.
fn play(process: &mut BltProcess, steps: &[u64], mut normal: impl FnMut() -> f64) -> Vec<f64> {
    let (mut last, mut state) = (None, [0.0; MAX_BUFFERS]);
    steps
        .iter()
        .map(|&step| {
            let step_move = process.next(last, step).unwrap();
            let reading = process.step(step_move, &state, &mut normal);
            (last, state) = (Some(step), reading.state);
            reading.noise
        })
        .collect()
}

/// What each normal does to all reads.
fn columns(process: &mut BltProcess, steps: &[u64]) -> Vec<Vec<f64>> {
    let mut total = 0;
    play(process, steps, || {
        total += 1;
        0.0
    });
    let one = |k| {
        let mut i = 0..;
        move || if i.next() == Some(k) { 1.0 } else { 0.0 }
    };
    (0..total).map(|k| play(process, steps, one(k))).collect()
}

fn product(columns: &[Vec<f64>], i: usize, j: usize) -> f64 {
    columns.iter().map(|column| column[i] * column[j]).sum()
}

// mpmath's, in 120 digits, of the f64 inputs, for t <= u:
//
//     geom = lambda q, n: (1 - q ** n) / (1 - q)
//     def cov(row, t, u):
//         direct = mpf(1) if t == u else sum(o * (1 - e) ** (u - t - 1) for o, e in row)
//         return direct + sum(o * p * (1 - f) ** (u - t) * geom((1 - e) * (1 - f), t - 1) for o, e in row for p, f in row)

const LATE: [u64; 8] = [1, 2, 1000, 1 << 20, (1 << 20) + 1, (1 << 33) + 7, 1 << 39, 1 << 40];

/// Covariances of reads at the steps `LATE` of the noise `FORTY`.
#[rustfmt::skip]
const GOLDEN: [&[f64]; 8] = [
    &[1.0],
    &[0.29117418731, 1.084782407355639],
    &[0.021494099255526176, 0.0277595295760848, 2.9805882716539265],
    &[0.00034048519139936377, 0.0004396259214255971, 0.011341293761989188, 5.197263093316402],
    &[0.0003404849602707256, 0.00043962562299746993, 0.011341286049792705, 4.445385684149047, 5.19726320924641],
    &[4.2095685253262555e-06, 5.4352862201104555e-06, 0.00014015710331176482, 0.004624754843107251, 0.004624756276947657, 7.95973583816762],
    &[6.08095885445616e-07, 7.851577106984871e-07, 2.0246481583874625e-05, 0.0006680149027948268, 0.0006680151098441856, 0.06451302902803562, 9.265975930118149],
    &[1.3207346423287065e-07, 1.7052984784645996e-07, 4.397370587945683e-06, 0.0001450873858596229, 0.0001450874308290541, 0.014011703476080203, 0.34336032824404017, 9.329401828110976],
];

#[test]
fn long_jumps_agree_with_mpmath() {
    let columns = columns(&mut BltProcess::new(Blt::of_row(FORTY), 1.0, 1), &LATE);
    for (i, golden) in GOLDEN.iter().enumerate() {
        assert_eq!(golden.len(), i + 1);
        for (j, &golden) in golden.iter().enumerate() {
            let (got, closed) = (product(&columns, i, j), covariance(FORTY, LATE[i], LATE[j]));
            assert!((got / golden - 1.0).abs() < 1e-10, "reads {j} and {i}: {got:e}, not {golden:e}");
            assert!((closed / golden - 1.0).abs() < 1e-12, "steps {j} and {i}: {closed:e}, not {golden:e}");
        }
    }
}

#[test]
#[expect(clippy::print_stdout, reason = "the measured figure")]
fn long_jumps_of_every_row_have_the_covariance_of_the_closed_form() {
    let mut worst = 0.0f64;
    for levels in 1..=62 {
        let steps = doubling_steps(1 << levels);
        // About 20 of them.
        let steps: Vec<u64> = steps.iter().copied().step_by(steps.len().div_ceil(20)).chain([1 << levels]).collect();
        let steps: Vec<u64> = steps.into_iter().collect::<BTreeSet<u64>>().into_iter().collect();
        for blt in (1..=MAX_BUFFERS as u32).map_while(|buffers| table(levels, buffers)) {
            let columns = columns(&mut BltProcess::new(blt, 1.0, 1), &steps);
            for i in 0..steps.len() {
                for j in 0..=i {
                    let (got, want) = (product(&columns, i, j), covariance(blt.row(), steps[i], steps[j]));
                    // Far enough apart there is nothing between two steps.
                    let error = (got - want).abs();
                    assert!(error <= 1e-10 * want + 1e-300, "h = {levels}, {} buffers, {i} {j}", blt.buffers());
                    if want > 1e-290 {
                        worst = worst.max(error / want);
                    }
                }
            }
        }
    }
    println!("covariances of reads: {worst:e}");
}

#[test]
fn factors_that_are_made_anew_change_nothing() {
    // 200 lengths for 64, for 4 and for 1 place.
    let mut rng = seeded(3);
    let lengths: Vec<u64> = (0..200).map(|_| 1 + below(1 << below(30, &mut rng), &mut rng)).collect();
    let mut step = 0;
    let steps: Vec<u64> = (0..1000)
        .map(|_| {
            step += lengths[below(200, &mut rng) as usize];
            step
        })
        .collect();
    let mut all = [1, 3, 64, 1 << 40].map(|size| BltProcess::new(Blt::of_row(TWENTY), 2.0, size));
    assert_eq!([&all[0], &all[1], &all[2], &all[3]].map(|process| process.jumps.lengths.len()), [1, 4, 64, 64]);
    let values = all.each_mut().map(|process| {
        let mut rng = seeded(4);
        play(process, &steps, || StandardNormal.sample(&mut rng))
    });
    assert!(values.iter().all(|other| *other == values[0]));
    // And nothing if the place is taken between the choice of a move and the draw.
    let mut process = BltProcess::new(Blt::of_row(TWENTY), 2.0, 1);
    let step_move = process.next(Some(1), 100).unwrap();
    let state = core::array::from_fn(|i| i as f64);
    let draw = |process: &BltProcess| {
        let mut rng = seeded(5);
        process.step(step_move, &state, || StandardNormal.sample(&mut rng))
    };
    // The cells of a sweep, one more than are drawn at a time; after another read, and as the first.
    let sweep = |process: &BltProcess, step_move: Move| {
        let stack: Vec<Vec<f64>> =
            (0..TWENTY.len()).map(|i| (0..=CHUNK).map(|cell| (i + cell) as f64).collect()).collect();
        let (mut drawn, mut noise) = (vec![Vec::new(); TWENTY.len() + 1], Vec::new());
        process.sweep(step_move, &stack, CHUNK + 1, &mut drawn, &mut noise, &mut seeded(6));
        (drawn, noise)
    };
    let first = Move { first: true, ..step_move };
    let before = (draw(&process), sweep(&process, step_move), sweep(&process, first));
    assert!(process.jumps.get(step_move.skipped).is_some());
    process.next(Some(1), 101).unwrap();
    assert!(process.jumps.get(step_move.skipped).is_none());
    let after = (draw(&process), sweep(&process, step_move), sweep(&process, first));
    assert_eq!((before.0.state, before.0.noise), (after.0.state, after.0.noise));
    assert_eq!((before.1, before.2), (after.1, after.2));
}

#[test]
fn a_sweep_makes_its_factor_once_whatever_its_cells_on_their_own_do() {
    // 300 of 1000 cells are on their own, each with a jump of another length: all places are taken many times over.
    let mut noise = CellNoise::new(Faulty::new(Blt::of_row(TWENTY), 1.0, 1000, Fault::None), &[1000]);
    let mut rng = seeded(6);
    for cell in 0..300 {
        noise.draw(Request::Cells(&[3 * cell]), 1 + cell, &mut rng).unwrap();
        noise.commit();
    }
    // The second time they all jump alike.
    for step in [1000, 5000] {
        noise.draw(Request::All, step, &mut rng).unwrap();
        noise.commit();
    }
    assert_eq!(noise.process().missed.get(), 0);
}

// ---------------------------------------------------------------------------------------------------------------
// Many reads
// ---------------------------------------------------------------------------------------------------------------

#[test]
fn a_million_reads_in_a_row_do_not_drift() {
    // Rounding was below 1e-13 in all three.
    const READS: u64 = 1_000_000;
    for row in [TWENTY, FORTY, SIXTY_TWO] {
        // What is left of the first normal, and the variance: the sum of all responses' squares, as every step is alike.
        let mut process = BltProcess::new(Blt::of_row(row), 1.0, 1);
        let steps: Vec<u64> = (1..=READS).collect();
        let mut first = core::iter::once(1.0).chain(core::iter::repeat(0.0));
        let response = play(&mut process, &steps, || first.next().unwrap_or(0.0));
        for n in [10u64, 1000, 100_000, READS] {
            let want: f64 = row.iter().map(|&(omega, e)| omega * exp((n - 2) as f64 * ln_1p(-e))).sum();
            let got = response[n as usize - 1];
            assert!((got / want - 1.0).abs() < 1e-12, "response after {n} reads: {got:e}, not {want:e}");
        }
        let (got, want) = (response.iter().map(|b| b * b).sum::<f64>(), Blt::of_row(row).variance(READS));
        assert!((got / want - 1.0).abs() < 1e-12, "variance {got}, not {want}");

        // With random normals, beside states whose sums keep their lost halves.
        let mut rng = seeded(7);
        let normals: Vec<f64> = (0..READS).map(|_| StandardNormal.sample(&mut rng)).collect();
        let mut normal = normals.iter().copied();
        let values = play(&mut process, &steps, || normal.next().unwrap_or(0.0));
        let mut state = [[0.0f64; 2]; MAX_BUFFERS];
        let mut worst = 0.0f64;
        for (value, z) in values.iter().zip(normals) {
            let noise =
                z + row.iter().zip(&state).map(|(&(omega, _), [high, low])| omega * high + omega * low).sum::<f64>();
            worst = worst.max((value - noise).abs());
            for (&(_, e), [high, low]) in row.iter().zip(&mut state) {
                let add = z - e * *high;
                let sum = *high + add;
                let lost = if high.abs() >= add.abs() { (*high - sum) + add } else { (add - sum) + *high };
                (*high, *low) = (sum, *low - e * *low + lost);
            }
        }
        assert!(worst < 1e-12 * sqrt(want), "{worst:e}");
    }
}

#[test]
fn a_read_of_a_sealed_step_is_the_same_and_draws_nothing() {
    let mut rng = seeded(8);
    let mut noise = CellNoise::new(BltProcess::new(Blt::of_row(TWENTY), 1.0, 6), &[2, 1, 3]);
    for step in [1, 2, 3, 500, 501, 1 << 20] {
        noise.draw(Request::Cells(&[4, 0, 4]), step, &mut rng).unwrap();
        let some = noise.commit().to_vec();
        noise.draw(Request::All, step, &mut rng).unwrap();
        let all = noise.commit().to_vec();
        assert_eq!(some, [all[4], all[0], all[4]]);
        let mut none = Script { word: |_| unreachable!("nothing is drawn"), used: 0 };
        for request in [Request::All, Request::Block(0), Request::Block(2), Request::Cells(&[5, 3, 1])] {
            noise.draw(request, step, &mut none).unwrap();
            assert_eq!(noise.drawn_cells().count() + noise.swept_cells().count(), 0);
            let want = match request {
                Request::All => all.clone(),
                Request::Block(0) => all[..2].to_vec(),
                Request::Block(_) => all[3..].to_vec(),
                Request::Cells(cells) => cells.iter().map(|&cell| all[cell as usize]).collect(),
            };
            assert_eq!(*noise.commit(), want);
        }
    }
}

/// Fails for ever after some words.
struct Failing {
    left: u64,
}

impl TryRng for Failing {
    type Error = core::fmt::Error;

    fn try_next_u32(&mut self) -> Result<u32, core::fmt::Error> {
        self.try_next_u64().map(|word| word as u32)
    }

    fn try_next_u64(&mut self) -> Result<u64, core::fmt::Error> {
        self.left = self.left.checked_sub(1).ok_or(core::fmt::Error)?;
        // The slow path of the ziggurat's outermost box: it asks for more words.
        Ok(u64::MAX << 8)
    }

    fn try_fill_bytes(&mut self, _: &mut [u8]) -> Result<(), core::fmt::Error> {
        Err(core::fmt::Error)
    }
}

#[test]
fn a_generator_that_fails_ends_every_read() {
    for words in 0..40 {
        let mut noise = CellNoise::new(BltProcess::new(Blt::of_row(TWENTY), 1.0, 4), &[4]);
        let mut failing = Failing { left: words };
        let mut rng = FailStop::new(&mut failing);
        noise.draw(Request::All, 1 << 19, &mut rng).unwrap();
        assert!(rng.failed());
        noise.abandon();
        assert!((0..4).all(|cell| noise.kept(cell).is_none()));
    }
}

// ---------------------------------------------------------------------------------------------------------------
// The law by sampling
// ---------------------------------------------------------------------------------------------------------------

/// The number of statistics, and the largest deviation of one in its standard deviations under the null: means, covariances,
/// and for each read the number of paths beyond one and two standard deviations. `values[i]` holds read `i` of every path.
fn worst(values: &[Vec<f64>], covariance: &[Vec<f64>]) -> (usize, f64) {
    let n = values[0].len() as f64;
    let mut scores = Vec::new();
    for (i, a) in values.iter().enumerate() {
        let variance = covariance[i][i];
        scores.push(a.iter().sum::<f64>() / n / sqrt(variance / n));
        for (j, b) in values[..=i].iter().enumerate() {
            let mean = a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>() / n;
            let spread = (variance * covariance[j][j] + covariance[i][j] * covariance[i][j]) / n;
            scores.push((mean - covariance[i][j]) / sqrt(spread));
        }
        for k in [1.0, 2.0] {
            let p = erfc(k / sqrt(2.0));
            let count = a.iter().filter(|x| x.abs() > k * sqrt(variance)).count() as f64;
            scores.push((count - n * p) / sqrt(n * p * (1.0 - p)));
        }
    }
    let largest = |worst: f64, score: &f64| if score.is_nan() { f64::NAN } else { worst.max(score.abs()) };
    (scores.len(), scores.iter().fold(0.0, largest))
}

/// Paths of each sampled sequence.
const PATHS: usize = 200_000;

/// Parameters, and the steps that are read.
fn sequences() -> Vec<(Blt, Vec<u64>)> {
    vec![
        (Blt::of_row(&[]), vec![1, 2, 9]),
        (table(3, 3).unwrap(), vec![1, 2, 4, 7, 8]),
        (table(10, 5).unwrap(), vec![5, 6, 300, 302, 1024]),
        (Blt::of_row(TWENTY), vec![1, 3, 700, 701, 1 << 19, (1 << 19) + 1, 1 << 20]),
        (Blt::of_row(SIXTY_TWO), vec![1 << 31, 1 << 61, (1 << 61) + 2, (1 << 61) + (1 << 30), 1 << 62]),
    ]
}

/// Whether a sequence has the stated law: Bonferroni over all statistics, sequences and ways to read.
fn accepts(blt: Blt, scale: f64, fault: Fault, steps: &[u64], path: Path, seed: u64) -> Result<(), String> {
    let covariance: Vec<Vec<f64>> =
        steps.iter().map(|&t| steps.iter().map(|&u| covariance(blt.row(), t, u)).collect()).collect();
    let process = Faulty::new(blt, scale, PATHS as u64, fault);
    let (statistics, worst) = worst(&sample(process, steps, PATHS, path, seed), &covariance);
    let limit = quantile(ALPHA / (3 * sequences().len() * statistics) as f64);
    // A NaN is no pass.
    if worst <= limit { Ok(()) } else { Err(format!("{worst:.2} standard deviations where {limit:.2} are allowed")) }
}

/// 200,000 paths for each of 5 sequences of reads and 3 ways to read them; alpha = 1e-6 for all of it together. It rejects a
/// scale that is 3 % off (19 standard deviations), jumps that forget the correlation between buffers, that are one step too
/// long or too short, or that forget the past: `the_sampling_test_rejects_wrong_laws`.
#[test]
fn sampled_paths_have_the_law_of_the_matrix() {
    for (i, (blt, steps)) in (0..).zip(sequences()) {
        for (j, path) in (0..).zip([Path::Single, Path::Swept, Path::Split]) {
            accepts(blt, 1.0, Fault::None, &steps, path, 10 * i + j)
                .unwrap_or_else(|error| panic!("{} buffers, steps {steps:?}, {path:?}: {error}", blt.buffers()));
        }
    }
}

#[test]
fn the_sampling_test_rejects_wrong_laws() {
    let steps = [1, 3, 20, 40];
    let accepts = |scale, fault| {
        [Path::Single, Path::Swept, Path::Split]
            .map(|path| accepts(table(10, 3).unwrap(), scale, fault, &steps, path, 77).is_ok())
    };
    assert_eq!(accepts(1.0, Fault::None), [true; 3]);
    assert_eq!(accepts(1.03, Fault::None), [false; 3]);
    assert_eq!(accepts(0.97, Fault::None), [false; 3]);
    for fault in [Fault::Diagonal, Fault::Longer, Fault::Shorter, Fault::Forgets] {
        assert_eq!(accepts(1.0, fault), [false; 3], "{fault:?}");
    }
}
