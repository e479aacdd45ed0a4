//! Theorem 5.6 of the paper, read literally, is not private, and the library's rule is.
//!
//! The theorem keeps the noisy inner product of each row and, when an update touches a bucket, reads the noise of that
//! bucket again ("for each of the k rows we refresh the necessary noisy sketch entries"). Then the data decide which cells
//! have fresh noise. The rule is written down here, and nowhere else, to be broken in two ways:
//!
//! * **Which key?** Every step has an update, and neighbours differ in the key of one of them. The partner of key A
//!   stands 10^6 times on the other side, that of key B 10^3 times, which may be public. Fresh noise at a bucket moves the
//!   estimate by (change of noise) * (partner), so the size of one change of the estimate tells A from B. Two neighbours in
//!   this sense are mu = sqrt(2) apart at rho = 0.5 (one update less, one more, in cells of their own), so no test between them is right more often
//!   than Phi(sqrt(2)/2) = 0.760.
//! * **Did anything happen?** With no update there is no fresh noise, and two estimates are equal to the bit. One update more
//!   or less is mu = 1: no test is right more often than Phi(1/2) = 0.691.
//!
//! The same tests are then put to the library, and a second one that knows the sign of the change. A test is a threshold, chosen on one half of the
//! runs in the attacker's favour and judged on the other half. Confidence limits are Hoeffding's, at alpha = 1e-6
//! for each of the six accuracies. Seeds are fixed.

mod common;

use common::rng;
use fastgame_core::rand_core::Rng;
use fastgame_core::{ContinualVector, Gdp, JoinSize, Mechanism, Side, Weights, Zcdp};

const HORIZON: u64 = 16;
const WIDTH: usize = 64;
const DEPTH: usize = 3;
/// The step of the update that is in question.
const STEP: u64 = 11;

/// Key A, key B, and one with no partner, which every other step updates.
const A: u64 = 1;
const B: u64 = 2;
const OTHER: u64 = 3;
const PARTNERS: [(u64, i64); 2] = [(A, 1_000_000), (B, 1_000)];

/// What comes on the left at each step; `None` is no update.
type Stream = [Option<u64>; HORIZON as usize];

fn stream(in_question: Option<u64>) -> Stream {
    let mut stream = [Some(OTHER); HORIZON as usize];
    stream[STEP as usize - 1] = in_question;
    stream
}

/// The estimates of all steps under one of the two rules.
type Rule = fn(&Stream, u64) -> Vec<f64>;

/// Theorem 5.6, word for word: all entries are read at the first step; from then on an entry is read when an update
/// touches it, and the row's inner product is mended there. The noise is the paper's own, each entry's correctly
/// drawn over time.
fn literal(stream: &Stream, seed: u64) -> Vec<f64> {
    let mut rng = rng(seed);
    let cells = DEPTH * WIDTH;
    // Fully random hash functions; the attacker needs not know them.
    let mut places = |_key: u64| -> Vec<(usize, i64)> {
        let mut place =
            |row: usize| (row * WIDTH + rng.next_u64() as usize % WIDTH, 1 - 2 * (rng.next_u64() & 1) as i64);
        (0..DEPTH).map(&mut place).collect()
    };
    let places: Vec<Vec<(usize, i64)>> = [A, B, OTHER].map(&mut places).to_vec();
    let of = |key: u64| &places[key as usize - 1];
    // The noise of updates of norm sqrt(DEPTH) at rho = 0.5. The bound is written larger, and the budget with it, so that one
    // call can stand for all of a partner's updates.
    let bound = 2_000_000u32;
    let budget = Zcdp::new(0.5 * f64::from(bound).powi(2) / DEPTH as f64).unwrap();
    let mut vector = ContinualVector::builder(HORIZON, budget)
        .blocks(&[cells, cells])
        .max_weight(bound)
        .mechanism(Mechanism::TreePaper)
        .build()
        .unwrap();
    for (key, count) in PARTNERS {
        let all: Vec<(u64, i64)> = of(key).iter().map(|&(cell, sign)| ((cells + cell) as u64, sign * count)).collect();
        vector.update_row(&all).unwrap();
    }
    let mut read = vec![0.0; 2 * cells];
    (1..=HORIZON)
        .map(|step| {
            vector.advance(step).unwrap();
            let mut touched: Vec<u64> = Vec::new();
            if let Some(key) = stream[step as usize - 1] {
                let update: Vec<(u64, i64)> = of(key).iter().map(|&(cell, sign)| (cell as u64, sign)).collect();
                vector.update_row(&update).unwrap();
                touched = update.iter().map(|&(cell, _)| cell).collect();
            }
            if step == 1 {
                touched = (0..2 * cells as u64).collect();
            }
            let values = vector.release(&touched[..], &mut rng).unwrap();
            touched.iter().zip(values).for_each(|(&cell, value)| read[cell as usize] = value);
            let (left, right) = read.split_at(cells);
            let product = |(left, right): (&[f64], &[f64])| left.iter().zip(right).map(|(x, y)| x * y).sum::<f64>();
            let mut rows: Vec<f64> = left.chunks(WIDTH).zip(right.chunks(WIDTH)).map(product).collect();
            rows.sort_unstable_by(f64::total_cmp);
            rows[DEPTH / 2]
        })
        .collect()
}

/// The library: every estimate reads every cell.
fn whole(stream: &Stream, seed: u64) -> Vec<f64> {
    let mut rng = rng(seed);
    // As above: the noise of weights up to 1 at rho = 0.5.
    let bound = 1_000_000u32;
    let mut join = JoinSize::builder(HORIZON, Zcdp::new(0.5 * f64::from(bound).powi(2)).unwrap())
        .max_weight(bound)
        .width(WIDTH)
        .depth(DEPTH)
        .hash_seed(rng.next_u64())
        .build()
        .unwrap();
    for (key, count) in PARTNERS {
        join.update(Side::Right, &[key], Weights::All(count)).unwrap();
    }
    (1..=HORIZON)
        .map(|step| {
            join.advance(step).unwrap();
            if let Some(key) = stream[step as usize - 1] {
                join.update(Side::Left, &[key], Weights::All(1)).unwrap();
            }
            join.estimate(&mut rng).unwrap()
        })
        .collect()
}

/// What an attacker looks at.
type Statistic = fn(&[f64]) -> f64;

/// The change of the estimate at the step in question.
fn change(estimates: &[f64]) -> f64 {
    estimates[STEP as usize - 1] - estimates[STEP as usize - 2]
}

/// Its size.
fn size(estimates: &[f64]) -> f64 {
    change(estimates).abs()
}

/// How often a threshold on the change is right, chosen on the first half of the runs and judged on the second; and
/// Hoeffding's limit at alpha = 1e-6 for how far that is off. `runs` are judged on each side.
fn accuracy(rule: Rule, statistic: Statistic, larger: Option<u64>, smaller: Option<u64>, runs: u64) -> (f64, f64) {
    let changes = |in_question, seed: u64| -> Vec<f64> {
        let stream = stream(in_question);
        (0..2 * runs).map(|run| statistic(&rule(&stream, seed + run))).collect()
    };
    let (large, small) = (changes(larger, 1 << 40), changes(smaller, 1 << 41));
    let half = runs as usize;
    let right = |threshold: f64, large: &[f64], small: &[f64]| {
        let above = large.iter().filter(|&&change| change > threshold).count();
        let not_above = small.iter().filter(|&&change| change <= threshold).count();
        (above + not_above) as f64 / (large.len() + small.len()) as f64
    };
    let (mut best, mut most) = (0.0, 0.0);
    for &threshold in large[..half].iter().chain(&small[..half]).chain(&[0.0]) {
        let share = right(threshold, &large[..half], &small[..half]);
        if share > most {
            (best, most) = (threshold, share);
        }
    }
    let limit = (1e6f64.ln() / (4.0 * runs as f64)).sqrt();
    (right(best, &large[half..], &small[half..]), limit)
}

/// The most that any test between neighbours `mu` apart can be right.
fn allowed(mu: f64) -> f64 {
    // delta at epsilon = 0 is the total variation, 2 Phi(mu / 2) - 1.
    0.5 + 0.5 * Gdp::new(mu).unwrap().delta(0.0).unwrap()
}

#[expect(clippy::print_stdout, reason = "the figures of docs/guarantees.md")]
fn attack(runs: u64) {
    let (swap, one) = (allowed(2f64.sqrt()), allowed(1.0));
    assert!((swap - 0.760).abs() < 0.001 && (one - 0.691).abs() < 0.001, "{swap} {one}");
    for (name, larger, smaller, most) in
        [("which key", Some(A), Some(B), swap), ("did anything happen", Some(A), None, one)]
    {
        let (broken, limit) = accuracy(literal, size, larger, smaller, runs);
        let (held, _) = accuracy(whole, size, larger, smaller, runs);
        // An update of A also raises the join, by 10^6: what of that is seen is what the budget pays for.
        let (held_signed, _) = accuracy(whole, change, larger, smaller, runs);
        println!(
            "{name}: {runs} runs a side; literal rule right {broken:.4}, all cells {held:.4}, \
             by the signed change {held_signed:.4} (+- {limit:.4}), allowed {most:.4}"
        );
        assert!(broken > 0.95 && broken - limit > most, "{name}: the attack has failed: {broken}");
        assert!(held + limit < most && held_signed + limit < most, "{name}: {held} {held_signed}");
    }
}

/// 500 runs a side to choose the threshold and 500 to judge it, for each of six accuracies; limits 0.083.
#[test]
fn the_literal_rule_of_theorem_5_6_is_broken_and_whole_reads_are_not() {
    attack(500);
}

#[test]
#[ignore = "2000 runs a side twice over, for each of six accuracies; run by make test-slow"]
fn the_literal_rule_of_theorem_5_6_is_broken_and_whole_reads_are_not_over_many_runs() {
    attack(2000);
}

/// Bit-identical neighbours in time are the crudest form of the leak: 200 runs, no threshold.
#[test]
fn estimates_without_an_update_between_them_differ_only_where_all_cells_are_read() {
    let quiet = stream(None);
    let same = |rule: Rule| (0..200).filter(|&seed| change(&rule(&quiet, seed)) == 0.0).count();
    assert_eq!(same(literal), 200);
    assert_eq!(same(whole), 0);
}
