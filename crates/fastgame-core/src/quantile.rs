//! Quantiles of the normal law, and of medians: what errors are stated with.

use crate::error::{Error, Result};
use crate::math::{erfc, exp, sqrt};

/// The probability with which each of so many answers may be beyond an error that all of them are to stay within with
/// probability `confidence`: the union bound.
pub(crate) fn tail_of_each(confidence: f64, releases: u64) -> Result<f64> {
    if !(confidence > 0.0 && confidence < 1.0) {
        let allowed = "more than 0 and less than 1";
        return Err(Error::Parameter { name: "confidence", given: confidence.into(), allowed });
    }
    if releases == 0 {
        return Err(Error::Parameter { name: "releases", given: 0u64.into(), allowed: "at least 1" });
    }
    Ok((1.0 - confidence) / releases as f64)
}

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

/// The probability that the median of `depth` independent symmetric values is beyond a bound on either side, when each
/// of them is with probability `q`: `2 P(Bin(depth, q / 2) > depth / 2)`.
pub(crate) fn median_tail(depth: usize, q: f64) -> f64 {
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
}

/// The `q` at which [`median_tail`] is `tail`, by bisection.
pub(crate) fn tail_of_one_row(depth: usize, tail: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for round in 0..1100 {
        // Of many releases together the tail may be far below the last bit of one.
        if round >= 60 && high - low <= 1e-12 * high {
            break;
        }
        let middle = 0.5 * (low + high);
        if median_tail(depth, middle) < tail { low = middle } else { high = middle }
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

/// Mean and variance of the distance of two order statistics about the median of `n` independent standard normals, `n` odd
/// and `1 <= r <= n / 2`: from the `r`-th below the median to the `r`-th above. By the trapezoidal rule, to about 1e-3.
pub(crate) fn middle_spacing(n: usize, r: usize) -> (f64, f64) {
    middle_spacing_of(n, r, |x| (0.5 * erfc(-x / sqrt(2.0)), 0.5 * erfc(x / sqrt(2.0)), exp(-0.5 * x * x)))
}

/// [`middle_spacing`] of a law of variance 1, given as the probabilities below and above a value and the density, up to a
/// factor.
pub(crate) fn middle_spacing_of(n: usize, r: usize, law: impl Fn(f64) -> (f64, f64, f64)) -> (f64, f64) {
    const STEP: f64 = 1.0 / 16.0;
    const POINTS: usize = 257;
    let power = |base: f64, exponent: usize| (0..exponent).fold(1.0, |product, _| product * base);
    let (outside, between) = (n / 2 - r, 2 * r - 1);
    let mut points = [(0.0, 0.0, 0.0, 0.0); POINTS];
    for (i, point) in points.iter_mut().enumerate() {
        let x = (i as f64 - (POINTS / 2) as f64) * STEP;
        let (below, above, density) = law(x);
        *point = (x, below, density * power(below, outside), density * power(above, outside));
    }
    // Both orders at once: `outside` values below x, `between` from x to y, `outside` above y.
    let (mut mass, mut first, mut second) = (0.0, 0.0, 0.0);
    for (i, &(x, below_x, low, _)) in points.iter().enumerate() {
        for &(y, below_y, _, high) in &points[i + 1..] {
            let weight = low * high * power(below_y - below_x, between);
            mass += weight;
            first += weight * (y - x);
            second += weight * (y - x) * (y - x);
        }
    }
    let mean = first / mass;
    (mean, second / mass - mean * mean)
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

    /// Rejects a bisection that stops at a fixed distance: at 1e-18 it has no digits of the tail of one in 10^20.
    #[test]
    fn tails_of_a_row_are_right_however_small() {
        for depth in [1usize, 3, 5, 9, 63] {
            for tail in [0.9, 0.05, 1e-6, 1e-12, 1e-20, 1e-60, 1e-150] {
                let q = tail_of_one_row(depth, tail);
                assert!((median_tail(depth, q) / tail - 1.0).abs() < 1e-9, "{depth} {tail}: {q}");
            }
        }
        assert!((tail_of_each(0.75, 1 << 62).unwrap() * (1u64 << 62) as f64 - 0.25).abs() < 1e-15);
    }

    /// Tables of the moments of normal order statistics: the range of three, the second to the fourth of five.
    #[test]
    fn spacings_about_the_median_are_those_of_the_tables() {
        for (n, r, mean, variance) in [(3, 1, 1.692_57, 0.788_92), (5, 1, 0.990_04, 0.323_2), (5, 2, 2.325_93, 0.746_6)]
        {
            let got = middle_spacing(n, r);
            assert!((got.0 / mean - 1.0).abs() < 2e-3 && (got.1 / variance - 1.0).abs() < 4e-3, "{n} {r}: {got:?}");
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
