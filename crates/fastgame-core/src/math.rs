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
