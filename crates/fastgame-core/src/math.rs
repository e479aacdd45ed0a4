//! The only door to floating point functions: the standard library's with the `std` feature,
//! `libm`'s without it. Both are accurate to about one unit in the last place; they do not agree
//! to the last bit, so no test compares floats between builds. And one function of words.

macro_rules! door {
    ($($(#[$doc:meta])* $name:ident($($arg:ident),+) = $method:ident / $libm:ident;)*) => {$(
        $(#[$doc])*
        #[inline]
        #[cfg(feature = "std")]
        pub(crate) fn $name($($arg: f64),+) -> f64 { door!(@call $method $($arg),+) }
        $(#[$doc])*
        #[inline]
        #[cfg(not(feature = "std"))]
        pub(crate) fn $name($($arg: f64),+) -> f64 { libm::$libm($($arg),+) }
    )*};
    (@call $method:ident $first:ident) => { $first.$method() };
    (@call $method:ident $first:ident, $second:ident) => { $first.$method($second) };
}

door! {
    sqrt(x) = sqrt / sqrt;
    exp(x) = exp / exp;
    ln(x) = ln / log;
    ln_1p(x) = ln_1p / log1p;
    sin(x) = sin / sin;
    cos(x) = cos / cos;
    trunc(x) = trunc / trunc;
    round_ties_even(x) = round_ties_even / rint;
}

/// Complementary error function; the standard library has none.
#[inline]
pub(crate) fn erfc(x: f64) -> f64 {
    libm::erfc(x)
}

/// `2^exponent` as a float, for `-1022 <= exponent <= 1023` (the normal range).
#[inline]
pub(crate) const fn power_of_two(exponent: i32) -> f64 {
    debug_assert!(exponent >= -1022 && exponent <= 1023);
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

/// `floor(log2 x)` of a positive normal float, read off its exponent bits: exact at powers of two.
#[inline]
pub(crate) const fn floor_log2(x: f64) -> i32 {
    debug_assert!(x >= f64::MIN_POSITIVE && x < f64::INFINITY);
    ((x.to_bits() >> 52) & 0x7ff) as i32 - 1023
}

/// The finaliser of SplitMix64 (Steele, Lea and Flood, 2014): a bijection that spreads every bit.
#[inline]
pub(crate) const fn mix(word: u64) -> u64 {
    let word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}

/// Values that are added up before their sum is compensated for.
const CHUNK: usize = 1024;
/// Sums side by side, which the processor adds at once.
const LANES: usize = 8;

/// The sum of products of two lists of one length, in an order fixed by the length alone. Chunks are added in eight plain
/// sums and these with compensation (Neumaier, 1974), so the error is at most `140 * 2^-53` of the sum of absolute
/// products, whatever the length. Never NaN where no product overflows.
pub(crate) fn inner_product(left: &[f64], right: &[f64]) -> f64 {
    debug_assert_eq!(left.len(), right.len());
    let (mut sum, mut lost) = (0.0, 0.0);
    for (left, right) in left.chunks(CHUNK).zip(right.chunks(CHUNK)) {
        let mut lanes = [0.0; LANES];
        let (lefts, rights) = (left.chunks_exact(LANES), right.chunks_exact(LANES));
        let rest = lefts.remainder().iter().zip(rights.remainder()).map(|(x, y)| x * y).sum::<f64>();
        for (left, right) in lefts.zip(rights) {
            for ((lane, x), y) in lanes.iter_mut().zip(left).zip(right) {
                *lane += x * y;
            }
        }
        let chunk = lanes.iter().sum::<f64>() + rest;
        let next: f64 = sum + chunk;
        lost += if sum.abs() >= chunk.abs() { sum - next + chunk } else { chunk - next + sum };
        sum = next;
    }
    // `-0.0` is what an empty sum begins with.
    sum + lost + 0.0
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    /// Against exact integers, at lengths about those of lanes and chunks; the terms cancel but for a part in 2^40.
    #[test]
    fn inner_products_keep_their_bound_under_cancellation() {
        for len in [0usize, 1, 7, 8, 9, 1023, 1024, 1025, 5000, 100_000] {
            let mut state = len as u64;
            let mut next = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 13) as i64 - (1 << 50)
            };
            let x: Vec<i64> = (0..len).map(|_| next()).collect();
            let mut y: Vec<i64> = (0..len).map(|_| next()).collect();
            // The second half takes back what the first has given.
            for i in len / 2..len {
                y[i] = if i >= len - len / 2 { -y[i - (len - len / 2)] } else { 1 };
            }
            let x: Vec<i64> = (0..len).map(|i| x[i % (len - len / 2).max(1)]).collect();
            let exact: i128 = x.iter().zip(&y).map(|(&x, &y)| i128::from(x) * i128::from(y)).sum();
            let size: i128 = x.iter().zip(&y).map(|(&x, &y)| (i128::from(x) * i128::from(y)).abs()).sum();
            let floats = |list: &[i64]| list.iter().map(|&x| x as f64).collect::<Vec<f64>>();
            let got = inner_product(&floats(&x), &floats(&y));
            assert!((got - exact as f64).abs() <= size as f64 * 140.0 * power_of_two(-53), "{len}: {got} {exact}");
        }
    }

    #[test]
    fn inner_products_of_small_integers_are_exact() {
        let x: Vec<f64> = (0..5000).map(|i| f64::from(i % 1000 - 500)).collect();
        let y: Vec<f64> = (0..5000).map(|i| f64::from(i * 7 % 1000 - 499)).collect();
        let exact: i64 = x.iter().zip(&y).map(|(&x, &y)| x as i64 * y as i64).sum();
        assert_eq!(inner_product(&x, &y), exact as f64);
    }
}
