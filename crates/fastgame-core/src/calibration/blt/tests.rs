//! Closed forms beside the recursions that they solve, mpmath, and the figures of the documentation.

use std::println;
use std::time::Instant;
use std::vec::Vec;

use super::testing::*;
use super::*;
use crate::calibration::{Mechanism, Sensitivity, Unit, scale, tree};
use crate::privacy::{Gdp, Loss, Zcdp};

const ONE: Row = &[(0.146771, 6.38903e-3)];

// mpmath's, in 120 digits, of the f64 inputs, by partial fractions whose roots are bisected between the poles:
//
//     def strategy(row):
//         F = lambda x: 1 + sum(o / (p - x) for o, p in row)
//         e, roots = sorted(e for _, e in row), []
//         for i, a in enumerate(e):
//             b = e[i + 1] if i + 1 < len(e) else a + 2 * sum(o for o, _ in row)
//             for _ in range(420):
//                 m = (a + b) / 2
//                 a, b = (m, b) if F(m) < 0 else (a, m)
//             roots.append(a)
//         return [(1 / F(mpf(0)), mpf(0))] + [(1 / (k * sum(o / (p - k) ** 2 for o, p in row)), k) for k in roots]
//     geom = lambda q, n: mpf(n) if q == 1 else (1 - q ** n) / (1 - q)
//     def corr(row, n, lag=0):
//         c = strategy(row)
//         return sum(g * h * (1 - l) ** lag * geom((1 - k) * (1 - l), n) for g, k in c for h, l in c)
//     var = lambda row, t: 1 + sum(o * p * geom((1 - e) * (1 - f), t - 1) for o, e in row for p, f in row)
//
// At 1, 2 and 400 coefficients `corr` is the explicit sum of mpmath's own recursion to 60 digits.

/// `(row, steps, corr, var)`.
#[rustfmt::skip]
const GOLDEN: [(Row, u64, f64, f64); 24] = [
    (ONE, 1, 1.0, 1.0), (ONE, 2, 1.727999726441, 1.021541726441), (ONE, 1000, 5.5086133984512475, 2.6912350586812717),
    (ONE, 8760, 19.01193746883626, 2.6912396987863616), (ONE, 1 << 40, 1913281167.3014665, 2.6912396987863616),
    (ONE, 1 << 62, 8024882837331003.0, 2.6912396987863616),
    (TWENTY, 2, 1.29632291038025, 1.20761191038025), (TWENTY, 1000, 3.3259508778992983, 3.22830833265756),
    (TWENTY, 8760, 4.030500494675268, 3.911838748587469), (TWENTY, 1 << 20, 5.555747470369571, 5.449056895470264),
    (TWENTY, 1 << 40, 471341.8188526354, 5.53452608620309), (TWENTY, 1 << 62, 1976929457627.5356, 5.53452608620309),
    (FORTY, 2, 1.502434032735639, 1.084782407355639), (FORTY, 1000, 3.8968345699422304, 2.9805882716539265),
    (FORTY, 1 << 20, 6.370615290713654, 5.197263093316402),
    (FORTY, (1 << 33) + 12345, 9.72527345172724, 7.959736056802425),
    (FORTY, 1 << 40, 11.717441376529278, 9.329401828110976), (FORTY, 1 << 62, 3859809.464627592, 9.332541897588465),
    (SIXTY_TWO, 2, 1.4568256906300643, 1.1050480600560644), (SIXTY_TWO, 1000, 3.616980488170029, 3.141546462244538),
    (SIXTY_TWO, 1 << 20, 6.299612729785101, 5.13388827576407),
    (SIXTY_TWO, (1 << 33) + 12345, 9.57134726707772, 7.871127580494622),
    (SIXTY_TWO, 1 << 40, 11.275340547696818, 9.378386150360393),
    (SIXTY_TWO, 1 << 62, 16.695231379643037, 14.134030085549986),
];

fn close(left: f64, right: f64, tolerance: f64) -> bool {
    (left - right).abs() <= tolerance * right.abs()
}

/// Every row of the table, with its level.
fn rows() -> impl Iterator<Item = (usize, Row)> {
    ROWS.iter().enumerate().flat_map(|(h, rows)| rows.iter().map(move |&row| (h, row)))
}

fn horizon(steps: u64) -> Horizon {
    Horizon::new(steps).unwrap()
}

/// The sum of a list as it grows, with Neumaier's compensation. (What is left of the differences below, up to 4e-13, is the
/// rounding of the recursion: closed forms are within 1e-15 of mpmath there.)
fn running(terms: impl Iterator<Item = f64>) -> impl Iterator<Item = f64> {
    let (mut sum, mut lost) = (0.0f64, 0.0);
    terms.map(move |term| {
        let next = sum + term;
        lost += if sum.abs() >= term.abs() { sum - next + term } else { term - next + sum };
        sum = next;
        sum + lost
    })
}

/// `c = B^-1 1` by running the mechanism backwards: what `z` has to be for the noise to be 1 at each step.
fn explicit_column(row: Row) -> impl Iterator<Item = f64> {
    let mut state = [0.0; MAX_BUFFERS];
    core::iter::repeat_with(move || {
        let z = 1.0 - row.iter().zip(&state).map(|(&(omega, _), s)| omega * s).sum::<f64>();
        for (&(_, e), s) in row.iter().zip(&mut state) {
            *s += z - e * *s;
        }
        z
    })
}

/// The first column of `B`: 1, and then the sums of `omega_i lambda_i^j`.
fn explicit_noise(row: Row) -> impl Iterator<Item = f64> {
    let mut state = [0.0; MAX_BUFFERS];
    let mut z = 1.0;
    core::iter::repeat_with(move || {
        let noise = z + row.iter().zip(&state).map(|(&(omega, _), s)| omega * s).sum::<f64>();
        for (&(_, e), s) in row.iter().zip(&mut state) {
            *s += z - e * *s;
        }
        z = 0.0;
        noise
    })
}

/// Steps at which closed forms are compared with running sums.
const STEPS: [u64; 16] = [1, 2, 3, 5, 8, 31, 100, 256, 1000, 4095, 4096, 4097, 8760, 40_000, 65_535, 65_536];

#[test]
fn the_sensitivity_is_the_norm_of_the_explicit_column() {
    let short = rows().filter(|&(h, _)| h <= 16).map(|(_, row)| row);
    for row in short.chain([&[] as Row, ONE, TWENTY, FORTY, SIXTY_TWO]) {
        let blt = Blt { row };
        let sums: Vec<f64> = running(explicit_column(row).map(|c| c * c)).take(1 << 16).collect();
        for steps in STEPS {
            let (closed, sum) = (blt.tau_update(steps), sums[steps as usize - 1]);
            assert!(close(closed, sum, 1e-12), "{row:?}, T = {steps}: {closed}, not {sum}");
        }
    }
}

#[test]
fn the_sensitivity_is_that_of_the_actual_horizon() {
    for steps in [2, 3, 5, 6, 7, 9, 100, 1000, 1025, 8760, 40_000, 65_535] {
        let count = ROWS[horizon(steps).levels() as usize].len() as u32;
        for buffers in core::iter::once(None).chain((1..=count).map(Some)) {
            let blt = Blt::new(horizon(steps), buffers).unwrap();
            let sum = running(explicit_column(blt.row()).map(|c| c * c)).nth(steps as usize - 1).unwrap();
            for (unit, tau) in [(Unit::Update, sum), (Unit::Lifetime, blt.tau_lifetime(steps))] {
                let of = Sensitivity { l1: 3.0, l2: 2.0 };
                let loss = Loss::from(Zcdp::new(0.3).unwrap());
                let found = scale(loss, Mechanism::Blt { buffers }, unit, 3, horizon(steps), of).unwrap();
                assert!(close(found.tau(), tau, 1e-12), "T = {steps}: {} for {tau}", found.tau());
                // rho = tau L2^2 m^2 / (2 s^2), and never less noise.
                assert!(
                    close(found.scale().powi(2), tau * 36.0 / 0.6, 1e-12) && found.buffers() == Some(blt.buffers())
                );
                assert!(found.scale().powi(2) * 0.6 >= found.tau() * 36.0);
                assert_eq!(found.release_std_at(steps), Ok(found.release_std()));
                assert!([0, steps + 1, u64::MAX].into_iter().all(|step| found.release_std_at(step).is_err()));
            }
        }
    }
}

#[test]
fn closed_forms_agree_with_mpmath() {
    for (row, steps, norm, variance) in GOLDEN {
        let blt = Blt { row };
        let (got_norm, got_variance) = (blt.tau_update(steps), blt.variance(steps));
        assert!(close(got_norm, norm, 1e-14), "{} buffers, {steps}: {got_norm:e}, not {norm:e}", row.len());
        assert!(close(got_variance, variance, 1e-14), "{} buffers, {steps}: {got_variance}, not {variance}", row.len());
    }
}

#[test]
fn the_variance_is_the_explicit_sum() {
    let short = rows().filter(|&(h, _)| h <= 16).map(|(_, row)| row);
    for row in short.chain([&[] as Row, ONE, TWENTY, FORTY, SIXTY_TWO]) {
        let blt = Blt { row };
        let sums: Vec<f64> = running(explicit_noise(row).map(|b| b * b)).take(1 << 16).collect();
        for steps in STEPS {
            let (closed, sum) = (blt.variance(steps), sums[steps as usize - 1]);
            assert!(close(closed, sum, 1e-12), "{row:?}, step {steps}: {closed}, not {sum}");
        }
    }
}

#[test]
fn every_row_has_a_positive_decreasing_column() {
    assert!(ROWS[0].is_empty());
    for (h, row) in rows() {
        let strategy = Strategy::new(row);
        // What the docs' proof uses of a row: distinct poles, rates in (0, 1), positive weights.
        assert!(row.iter().all(|&(omega, e)| omega > 0.0 && e > 0.0 && e < 1.0), "h = {h}: {row:?}");
        assert!(row.windows(2).all(|pair| pair[0].1 > pair[1].1), "h = {h}: {row:?}");
        assert!(strategy.inf > 0.0 && strategy.terms().len() == row.len());
        for (i, &(g, kappa)) in strategy.terms().iter().enumerate() {
            assert!(g > 0.0 && kappa < 1.0, "h = {h}, {row:?}: g {g}, kappa {kappa}");
            // Interlacing: one root above each pole, below the next larger one.
            assert!(kappa > row[i].1 && (i == 0 || kappa < row[i - 1].1), "h = {h}, {row:?}: {kappa}");
        }
        let first = strategy.inf + strategy.terms().iter().map(|&(g, _)| g).sum::<f64>();
        assert!(close(first, 1.0, 1e-14), "c_0 is {first}");
        if h <= 12 {
            let column: Vec<f64> = explicit_column(row).take(1 << h).collect();
            assert!(column[0] == 1.0 && column[column.len() - 1] > 0.0);
            // Where it has come down to its limit, rounding is left.
            assert!(column.windows(2).all(|pair| pair[1] <= pair[0] + 1e-15), "h = {h}, {row:?}");
        }
    }
}

/// `sum over j < T of binom(2 j, j)^2 / 16^j` (Landau's constants): to 2^16 explicitly, from there by their expansion.
fn square_root_toeplitz(steps: u64) -> f64 {
    const EULER: f64 = 0.577_215_664_901_532_9;
    if steps <= 1 << 16 {
        let mut r = 1.0;
        return (0..steps)
            .map(|j| {
                let square = r * r;
                r *= (2 * j + 1) as f64 / (2 * j + 2) as f64;
                square
            })
            .sum();
    }
    let n = steps as f64;
    (n.ln() + EULER + 4.0 * core::f64::consts::LN_2 - 0.25 / n) / core::f64::consts::PI
}

#[test]
fn the_figures_of_the_documentation_are_right() {
    assert!(close(square_root_toeplitz(1 << 16), square_root_toeplitz((1 << 16) + 1), 2e-6));
    // Worst variance for the same rho, relative to square-root Toeplitz: paper's tree, exact tree, 3 to 6 buffers.
    let table = [
        (10u32, 3.08, 1.84, [1.003, 1.0002, 1.0000, 1.0000]),
        (16, 3.62, 1.98, [1.044, 1.009, 1.002, 1.0003]),
        (20, 3.85, 2.03, [1.115, 1.031, 1.008, 1.002]),
        (24, 4.02, 2.07, [1.233, 1.074, 1.025, 1.008]),
        (30, 4.20, 2.11, [1.525, 1.187, 1.074, 1.030]),
    ];
    for (h, paper, exact, blts) in table {
        let steps = 1u64 << h;
        let unit = square_root_toeplitz(steps).powi(2);
        let path = f64::from(h + 1);
        assert!((path * tree::tau_paper(h) / unit - paper).abs() < 0.005, "h = {h}, paper");
        assert!((path * tree::tau_update(h) / unit - exact).abs() < 0.005, "h = {h}, exact");
        for (buffers, want) in (3..).zip(blts) {
            let blt = Blt::new(horizon(steps), Some(buffers)).unwrap();
            let ratio = blt.variance(steps) * blt.tau_update(steps) / unit;
            assert!((ratio - want).abs() < 0.002, "h = {h}, {buffers} buffers: {ratio}, not {want}");
        }
    }
    for blt in [Blt { row: TWENTY }, Blt::new(horizon(1 << 20), Some(5)).unwrap()] {
        let product = blt.variance(1 << 20) * blt.tau_update(1 << 20);
        assert!((product - 30.27).abs() < 0.02, "{product}");
    }
}

/// The squared norm of `B^-1` times the shift of a unit that is there from step `first` on and before step `end`.
fn explicit_lifetime(row: Row, steps: u64, first: u64, end: u64) -> f64 {
    let mut state = [0.0; MAX_BUFFERS];
    let mut norm = 0.0;
    for step in 1..=steps {
        let shift = if step >= first && step < end { 1.0 } else { 0.0 };
        let z = shift - row.iter().zip(&state).map(|(&(omega, _), s)| omega * s).sum::<f64>();
        for (&(_, e), s) in row.iter().zip(&mut state) {
            *s += z - e * *s;
        }
        norm += z * z;
    }
    norm
}

#[test]
fn a_lifetime_from_the_first_step_is_the_worst() {
    for (h, row) in rows().filter(|&(h, _)| h <= 5).chain([(5, TWENTY), (4, SIXTY_TWO)]) {
        let steps = (1u64 << h) - u64::from(h == 5);
        let of = |first: u64, end: u64| explicit_lifetime(row, steps, first, end);
        let pairs = (1..=steps).flat_map(|first| (first + 1..=steps + 1).map(move |end| (first, end)));
        let worst = pairs.map(|(first, end)| of(first, end)).fold(0.0, f64::max);
        let from_first = (2..=steps + 1).map(|end| of(1, end)).fold(0.0, f64::max);
        assert!(close(from_first, worst, 1e-13), "h = {h}: {from_first} from step 1, {worst} from any");
        let found = Blt { row }.tau_lifetime(steps);
        assert!(
            found >= worst * (1.0 - 1e-13) && found <= worst * (1.0 + 1.001 * LIFETIME_TOLERANCE),
            "{found}, {worst}"
        );
    }
}

#[test]
fn the_sensitivity_to_lifetimes_is_the_largest_over_all_lags() {
    for steps in [1, 2, 3, 5, 31, 100, 1000, 1024, 3000, 4096] {
        let row_of = |buffers| Blt::new(horizon(steps), buffers).map(|blt| blt.row());
        let rows = [row_of(None), row_of(Some(1)), row_of(Some(3)), Ok(&[] as Row), Ok(TWENTY), Ok(SIXTY_TWO)];
        for row in rows.into_iter().flatten() {
            let c: Vec<f64> = explicit_column(row).take(steps as usize).collect();
            let at = |lag: usize| {
                let (head, tail) = c.split_at(lag);
                let kept = tail.iter().zip(&c).map(|(x, y)| (x - y) * (x - y)).sum::<f64>();
                head.iter().map(|x| x * x).sum::<f64>() + kept
            };
            // A lag of all steps: no deletion.
            let truth = (1..=steps as usize).map(at).fold(0.0, f64::max);
            let blt = Blt { row };
            let found = blt.tau_lifetime(steps);
            // The lower end leaves room for rounding alone.
            let allowed = truth * (1.0 - 1e-13)..=truth * (1.0 + 1.001 * LIFETIME_TOLERANCE);
            assert!(allowed.contains(&found), "T = {steps}, {} buffers: {found} for {truth}", row.len());
            // Without a deletion, and without any thought.
            assert!(found >= blt.tau_update(steps) * (1.0 - 1e-13) && found <= 2.0 * blt.tau_update(steps), "{found}");
        }
    }
}

/// Run with `--nocapture` to see what it takes: up to 0.4 ms (10 buffers).
#[test]
#[expect(clippy::print_stdout, reason = "the measured figures")]
fn lifetimes_cost_less_than_twice_an_update() {
    for (h, ratio) in [(10, 1.66), (20, 1.78)] {
        let blt = Blt::new(horizon(1 << h), Some(5)).unwrap();
        let got = blt.tau_lifetime(1 << h) / blt.tau_update(1 << h);
        assert!((got - ratio).abs() < 0.01, "h = {h}: {got}");
    }
    for (h, row) in rows().filter(|(h, _)| [2, 10, 20, 30, 40, 50, 62].contains(h)) {
        let (blt, steps) = (Blt { row }, 1 << h);
        let start = Instant::now();
        let ratio = blt.tau_lifetime(steps) / blt.tau_update(steps);
        println!("h = {h}, {} buffers: {ratio:.4}, {:?}", row.len(), start.elapsed());
        assert!(ratio > 1.0 && ratio < 2.0, "h = {h}, {} buffers: {ratio}", row.len());
    }
}

#[test]
fn the_default_is_the_fewest_buffers_within_a_percent_of_the_best() {
    let objective = |row: Row, steps: u64| Blt { row }.variance(steps) * Blt { row }.tau_update(steps);
    let around = (1..=62u32).flat_map(|h| [(1u64 << h) - 1, 1 << h, ((1u64 << h) + 1).min(1 << 62)]);
    for steps in around.chain([1000, 8760, 40_000, 525_600, 31_536_000]) {
        let chosen = Blt::new(horizon(steps), None).unwrap();
        // Of each number of buffers the better row of the powers of two about the horizon.
        let levels = horizon(steps).levels() as usize;
        let rows = |buffers: usize| [levels, levels.saturating_sub(1)].map(|level| ROWS[level].get(buffers).copied());
        let better = |buffers| rows(buffers).into_iter().flatten().map(|row| objective(row, steps)).reduce(f64::min);
        let errors: Vec<f64> = core::iter::once(objective(&[], steps)).chain((0..).map_while(better)).collect();
        let given = objective(chosen.row(), steps);
        assert_eq!(given, errors[chosen.buffers()], "T = {steps}");
        let best = errors.iter().copied().fold(f64::INFINITY, f64::min);
        assert!(errors[chosen.buffers()] <= 1.01 * best, "T = {steps}");
        assert!(errors[..chosen.buffers()].iter().all(|&error| error > 1.01 * best), "T = {steps}");
    }
}

#[test]
fn one_step_is_the_gaussian_mechanism() {
    let blt = Blt::new(horizon(1), None).unwrap();
    assert_eq!((blt.buffers(), blt.variance(1), blt.tau_update(1), blt.tau_lifetime(1)), (0, 1.0, 1.0, 1.0));
    // Without buffers the noise is fresh at each step, and a unit that stays shows at each.
    for steps in [1, 2, 7, 1 << 40] {
        let blt = Blt { row: &[] };
        assert_eq!((blt.variance(steps), blt.tau_update(steps)), (1.0, steps as f64));
        assert!(close(blt.tau_lifetime(steps), steps as f64, 1.001 * LIFETIME_TOLERANCE));
    }
}

#[test]
fn numbers_of_buffers_without_parameters_are_refused() {
    let refused = |steps, buffers| {
        let error = Blt::new(horizon(steps), Some(buffers)).unwrap_err();
        // As many as are named are allowed, and no more.
        let Error::Buffers { given, most, horizon: named } = error else { panic!("{error:?}") };
        assert_eq!((given, named), (buffers, steps));
        assert!((1..=most).all(|buffers| Blt::new(horizon(steps), Some(buffers)).is_ok()), "{steps}: {most}");
        assert!(Blt::new(horizon(steps), Some(most + 1)).is_err(), "{steps}: {most}");
        let (mechanism, of) = (Mechanism::Blt { buffers: Some(buffers) }, Sensitivity { l1: 1.0, l2: 1.0 });
        let loss = Loss::from(Gdp::new(1.0).unwrap());
        assert_eq!(scale(loss, mechanism, Unit::Update, 1, horizon(steps), of).unwrap_err(), error);
    };
    for (h, rows) in ROWS.iter().enumerate() {
        for buffers in [0, rows.len() as u32 + 1, 255, u32::MAX] {
            refused(1 << h, buffers);
        }
        // Between powers of two the parameters of the one below are allowed too.
        for steps in [(1u64 << h) / 2 + 1, (1 << h) - 1] {
            (steps > 1).then(|| refused(steps, 255));
        }
        for buffers in 1..=rows.len() as u32 {
            assert_eq!(Blt::new(horizon(1 << h), Some(buffers)).unwrap().buffers(), buffers as usize);
        }
    }
    assert!(ROWS.iter().flat_map(|rows| rows.iter()).all(|row| row.len() <= MAX_BUFFERS));
}
