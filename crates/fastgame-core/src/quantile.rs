//! Quantiles of the normal law, and of medians: what errors are stated with.

use crate::math::{erfc, exp, sqrt};

/// The `z` with `P(|Z| > z) = tail` for a standard normal `Z`, by bisection.
pub(crate) fn two_sided_quantile(tail: f64) -> f64 {
    // erfc(40 / sqrt 2) underflows: every tail that a float holds lies between.
    let (mut low, mut high) = (0.0, 40.0);
    for _ in 0..64 {
        let middle = 0.5 * (low + high);
        if erfc(middle / sqrt(2.0)) > tail { low = middle } else { high = middle }
    }
    high
}

/// The probability `q` with which each of `depth` independent symmetric values is beyond a bound on either side, when
/// their median is beyond it with probability `tail`: `2 P(Bin(depth, q / 2) > depth / 2) = tail`, by bisection.
pub(crate) fn tail_of_one_row(depth: usize, tail: f64) -> f64 {
    let median_tail = |q: f64| {
        let p = q / 2.0;
        // P(Bin(depth, p) = k) for k = 0, 1, ..., by the ratio of neighbours.
        let mut term = (0..depth).fold(1.0, |product, _| product * (1.0 - p));
        let mut sum = 0.0;
        for k in 0..=depth {
            if k > depth / 2 {
                sum += term;
            }
            term *= (depth - k) as f64 / (k + 1) as f64 * p / (1.0 - p);
        }
        2.0 * sum
    };
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if median_tail(middle) < tail { low = middle } else { high = middle }
    }
    high
}

/// The probability `q <= 1/2` with which each of `depth` independent values may be beyond a bound, on whichever side, so
/// that their median is beyond it with probability at most `tail`: `P(Bin(depth, q) > depth / 2) = tail`. The side does not
/// matter, as that probability is convex in `q` up to 1/2: two sides that share `q` do no more than one that has it all.
pub(crate) fn tail_of_one_row_on_any_side(depth: usize, tail: f64) -> f64 {
    0.5 * tail_of_one_row(depth, (2.0 * tail).min(1.0))
}

/// The `t` with `P(|T| > t) = tail` for Student's law with an even number of degrees of freedom, whose distribution is a
/// finite sum (Abramowitz and Stegun 26.7.4), by bisection. Good to `1e-15 / tail`, relative.
pub(crate) fn student_quantile(freedom: usize, tail: f64) -> f64 {
    let freedom_f = freedom as f64;
    let within = |t: f64| {
        let square = freedom_f / (freedom_f + t * t);
        let (mut term, mut sum) = (1.0, 0.0);
        for k in 1..=freedom / 2 {
            sum += term;
            term *= square * (2 * k - 1) as f64 / (2 * k) as f64;
        }
        t / sqrt(freedom_f + t * t) * sum
    };
    let (mut low, mut high) = (0.0, 1e9);
    for _ in 0..100 {
        let middle = 0.5 * (low + high);
        if 1.0 - within(middle) > tail { low = middle } else { high = middle }
    }
    high
}

/// The variance of the median of `n` independent standard normals, `n` odd: by the trapezoidal rule, whose error is far
/// below the rounding of floats for such an integrand.
pub(crate) fn median_variance(n: usize) -> f64 {
    const STEP: f64 = 1.0 / 64.0;
    let (mut mass, mut second) = (0.0, 0.0);
    for i in -640..=640 {
        let x = f64::from(i) * STEP;
        let above = 0.5 * erfc(x / sqrt(2.0));
        let weight = (0..n / 2).fold(exp(-0.5 * x * x), |product, _| product * 4.0 * above * (1.0 - above));
        mass += weight;
        second += x * x * weight;
    }
    second / mass
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_normal_tables() {
        for (tail, z) in [(0.05, 1.959_963_984_540_054), (0.01, 2.575_829_303_548_901), (0.317_310_507_862_914_1, 1.0)]
        {
            assert!((two_sided_quantile(tail) - z).abs() < 1e-12, "{tail}");
        }
    }

    #[test]
    fn students_quantiles_are_those_of_the_tables() {
        for (freedom, tail, t) in [
            (2, 0.05, 4.302_652_729_7),
            (4, 0.05, 2.776_445_105_2),
            (8, 0.05, 2.306_004_135_2),
            (2, 0.001, 31.599_054_576_5),
            (30, 0.01, 2.749_995_653_6),
            (62, 0.05, 1.998_971_516_5),
        ] {
            assert!((student_quantile(freedom, tail) / t - 1.0).abs() < 1e-9, "{freedom} {tail}");
        }
    }
}
