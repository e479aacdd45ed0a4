//! Numbers on a finite computer: the caller's quantities as whole units, and releases on a lattice.
//!
//! Counters are integers in a unit `u`, a power of two. A release is `counter * u + noise`, rounded to the nearest
//! multiple of the lattice step `g = 2^(floor(log2 s) - 5)`, a power of two fixed by the noise scale `s` alone. The
//! sum is exact: the noise is first rounded to a grid so fine that the counter's unit is a multiple of it
//! (so this, too, is a rounding of the sum), then added in 128-bit integers. So the release is post-processing
//! of the mechanism over the reals, and the rounding adds `g^2 / 12 <= s^2 / 12288` to the variance.

use crate::error::{Error, Result};
use crate::math::{floor_log2, power_of_two, round_ties_even, sqrt, trunc};

/// A quantity that can be added to a cell.
pub trait Quantity: Copy + sealed::Sealed {
    /// Whole units of `2^unit`, rounded toward zero; `None` if it is no finite number. A quantity beyond `2^100`
    /// units stands as `2^100`: far over every bound.
    #[doc(hidden)]
    fn units(self, unit: i32) -> Option<i128>;

    /// The same, if it is soon seen that they are few; `scale` is `2^-unit`.
    #[doc(hidden)]
    fn few_units(self, unit: i32, scale: f64) -> Option<i64>;
}

/// An index as callers have it.
pub trait Index: Copy + sealed::Sealed {
    /// The index if it is below `size`, otherwise the number to show.
    #[doc(hidden)]
    fn below(self, size: u64) -> core::result::Result<u64, crate::error::Given>;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for f64 {}
    impl Sealed for i64 {}
    impl Sealed for u64 {}
    impl Sealed for usize {}
}

/// No bound is near this many units.
const FAR: i128 = 1 << 100;

impl Quantity for f64 {
    #[inline]
    fn few_units(self, _: i32, scale: f64) -> Option<i64> {
        let scaled = self * scale;
        // The conversion rounds toward zero. What is no number is not below.
        (scaled.abs() < (1u64 << 52) as f64).then_some(scaled as i64)
    }

    fn units(self, unit: i32) -> Option<i128> {
        if !self.is_finite() {
            return None;
        }
        // Scaling by a power of two is exact; where it overflows to infinity the quantity is far over the bound, and
        // where it underflows it is far below one unit.
        let scaled = trunc(self * power_of_two(-unit));
        Some(if scaled.abs() < FAR as f64 { scaled as i128 } else { FAR * i128::from(scaled.signum() as i8) })
    }
}

impl Quantity for i64 {
    #[inline]
    fn few_units(self, unit: i32, _: f64) -> Option<i64> {
        (unit == 0).then_some(self)
    }

    fn units(self, unit: i32) -> Option<i128> {
        let value = i128::from(self);
        Some(if unit >= 64 {
            0
        } else if unit >= 0 {
            value / (1i128 << unit)
        } else if unit >= -63 {
            (value << -unit).clamp(-FAR, FAR)
        } else {
            FAR * value.signum()
        })
    }
}

impl Index for u64 {
    fn below(self, size: u64) -> core::result::Result<u64, crate::error::Given> {
        if self < size { Ok(self) } else { Err(self.into()) }
    }
}

impl Index for usize {
    fn below(self, size: u64) -> core::result::Result<u64, crate::error::Given> {
        (self as u64).below(size)
    }
}

impl Index for i64 {
    fn below(self, size: u64) -> core::result::Result<u64, crate::error::Given> {
        match u64::try_from(self) {
            Ok(index) if index < size => Ok(index),
            _ => Err(self.into()),
        }
    }
}

/// How the size of an update is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Norm {
    /// The sum of absolute values, for Laplace noise.
    L1,
    /// The root of the sum of squares, for Gaussian noise.
    L2,
}

/// How large one update may be, in whole units.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bound {
    /// The unit is `2^unit`.
    pub(crate) unit: i32,
    /// The bound as the caller gave it.
    pub(crate) size: f64,
    norm: Norm,
    /// The sum of absolute values or of squares of an update's units is at most this.
    max: u64,
    /// What the caller calls it.
    pub(crate) what: &'static str,
}

/// Weights up to this keep a sum of squares in 64 bits.
pub const MAX_WEIGHT: u32 = 1 << 31;
/// A real vector's unit is this many binary places below its norm bound.
const REAL_PLACES: i32 = 20;
/// Norm bounds stay this far from where floats over- or underflow.
const MAX_NORM_EXPONENT: i32 = 300;

impl Bound {
    /// Integer updates of norm at most `max_weight`; the unit is one.
    pub(crate) fn integer(max_weight: u32, norm: Norm) -> Result<Self> {
        if max_weight == 0 || max_weight > MAX_WEIGHT {
            return Err(Error::Parameter {
                name: "max_weight",
                given: max_weight.into(),
                allowed: "an integer from 1 to 2^31",
            });
        }
        let max = u64::from(max_weight);
        let max = if norm == Norm::L1 { max } else { max * max };
        Ok(Self { unit: 0, size: f64::from(max_weight), norm, max, what: "weight" })
    }

    /// Real updates of norm at most `max_norm`, in multiples of `2^(floor(log2 max_norm) - 20)`.
    pub(crate) fn real(max_norm: f64, norm: Norm) -> Result<Self> {
        let limit = power_of_two(MAX_NORM_EXPONENT);
        if !(max_norm >= 1.0 / limit && max_norm <= limit) {
            return Err(Error::Parameter {
                name: "max_norm",
                given: max_norm.into(),
                allowed: "a positive number from 2^-300 to 2^300",
            });
        }
        let unit = floor_log2(max_norm) - REAL_PLACES;
        // max_norm / u lies in [2^20, 2^21): 53 significant bits, 32 of them behind the point.
        let scaled = (max_norm * power_of_two(32 - unit)) as u128;
        let (max, what) = match norm {
            Norm::L1 => ((scaled >> 32) as u64, "L1 norm"),
            Norm::L2 => (((scaled * scaled) >> 64) as u64, "L2 norm"),
        };
        Ok(Self { unit, size: max_norm, norm, max, what })
    }

    /// Whether an update, cells and whole units, is within the bound.
    pub(crate) fn holds(&self, row: &[(u64, i128)]) -> bool {
        let size = |units: i128| match self.norm {
            Norm::L1 => units.unsigned_abs(),
            Norm::L2 => units.unsigned_abs().saturating_mul(units.unsigned_abs()),
        };
        row.iter().fold(0u128, |sum, &(_, units)| sum.saturating_add(size(units))) <= u128::from(self.max)
    }

    /// What units of this absolute value add to what is at most `max`.
    #[inline]
    pub(crate) fn size_of(&self, units: u64) -> u64 {
        if self.norm == Norm::L1 { units } else { units.saturating_mul(units) }
    }

    /// Whether sizes that add up to this are within the bound.
    #[inline]
    pub(crate) fn holds_size(&self, size: u64) -> bool {
        size <= self.max
    }

    /// The norm of an update, to float precision.
    pub(crate) fn norm(&self, row: &[(u64, i128)]) -> f64 {
        let units = row.iter().map(|&(_, units)| units as f64);
        match self.norm {
            Norm::L1 => units.map(f64::abs).sum(),
            Norm::L2 => sqrt(units.map(|units| units * units).sum()),
        }
    }

    /// The largest norm, to float precision, in units.
    pub(crate) fn max_norm(&self) -> f64 {
        match self.norm {
            Norm::L1 => self.max as f64,
            Norm::L2 => sqrt(self.max as f64),
        }
    }

    /// The largest update of one cell, in units.
    pub(crate) fn max_of_one(&self) -> i128 {
        i128::from(match self.norm {
            Norm::L1 => self.max,
            Norm::L2 => self.max.isqrt(),
        })
    }
}

/// Where releases lie.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Lattice {
    unit: i32,
    fine: i32,
    step: i32,
}

/// Binary places of the noise below its scale that enter the sum.
const FINE_PLACES: i32 = 45;
/// Binary places of the noise below its scale that are released: `g` is between `s/64` and `s/32`.
const STEP_PLACES: i32 = 5;

impl Lattice {
    /// The lattice for counters in units of `2^unit` and noise whose independent variables (a node of a tree, a step of a BLT) have
    /// the standard deviation `std`.
    ///
    /// # Errors
    /// [`Error::Parameter`] where the noise is below `2^-16` units (no privacy to speak of) or above `2^60` (nothing
    /// that a counter holds could be seen).
    pub(crate) fn new(unit: i32, std: f64) -> Result<Self> {
        let refuse = |allowed| Error::Parameter { name: "the noise scale", given: std.into(), allowed };
        if !(std.is_finite() && std >= f64::MIN_POSITIVE) {
            return Err(refuse("a positive number that floats can hold (choose a budget that is less extreme)"));
        }
        let scale = floor_log2(std);
        if scale - unit < -16 {
            return Err(refuse(
                "at least 2^-16 of the counters' unit, below which it protects nothing (lower the budget)",
            ));
        }
        if scale - unit > 60 {
            return Err(refuse("at most 2^60 of the counters' unit, above which no count shows (raise the budget)"));
        }
        Ok(Self { unit, fine: unit.min(scale - FINE_PLACES), step: scale - STEP_PLACES })
    }

    /// The lattice of exact releases.
    #[cfg(test)]
    pub(crate) fn exact(unit: i32) -> Self {
        Self { unit, fine: unit, step: unit }
    }

    /// The lattice step `g`.
    pub(crate) fn step(&self) -> f64 {
        power_of_two(self.step)
    }

    /// Makes of each noise the released number for its counter: the multiple of `g` nearest to `counter * u + noise`.
    ///
    /// # Panics
    /// If there are not as many counters as values: noise alone must not go out.
    pub(crate) fn release(&self, counters: impl ExactSizeIterator<Item = i64>, values: &mut [f64]) {
        assert_eq!(counters.len(), values.len(), "a counter for each noise");
        let (fine, step, shift) = (power_of_two(-self.fine), power_of_two(self.step), self.step - self.fine);
        let mut all_finite = true;
        // |noise| < 2^14 s (63 gamma sums of 219 b would be less), so its integer stays below 2^(15 + 60 + 45), and below 2^60
        // if `fine` follows the scale; the counter's below 2^(63 + 61).
        let mut scaled = |noise: f64| {
            all_finite &= noise.is_finite();
            noise * fine
        };
        let pairs = values.iter_mut().zip(counters);
        // Which way is decided by the noise scale alone, and nearly always for one of the short ones.
        if shift != FINE_PLACES - STEP_PLACES {
            pairs.for_each(|(value, counter)| {
                let sum = (i128::from(counter) << (self.unit - self.fine)) + round_ties_even(scaled(*value)) as i128;
                *value = float(if shift == 0 { sum } else { (sum + (1 << (shift - 1))) >> shift }) * step;
            });
        } else if self.unit >= self.step {
            // The counter is on the lattice: the noise alone is rounded.
            let (up, half) = (self.unit - self.step, 1i64 << (shift - 1));
            pairs.for_each(|(value, counter)| {
                let rounded = (nearest_integer(scaled(*value)) + half) >> shift;
                *value = float((i128::from(counter) << up) + i128::from(rounded)) * step;
            });
        } else {
            // Its front part is on the lattice; the rest, less than one step, is rounded with the noise.
            let (below, up, half) = (self.step - self.unit, self.unit - self.fine, 1i64 << (shift - 1));
            pairs.for_each(|(value, counter)| {
                let front = counter >> below;
                let rest = (counter - (front << below)) << up;
                *value = (front + ((rest + nearest_integer(scaled(*value)) + half) >> shift)) as f64 * step;
            });
        }
        // Nothing but a fault could make it so; without this it would read as no noise at all.
        assert!(all_finite, "noise that is no number");
    }
}

/// The nearest float.
#[inline]
fn float(integer: i128) -> f64 {
    match i64::try_from(integer) {
        Ok(small) => small as f64,
        Err(_) => wide(integer),
    }
}

/// The integer nearest to `x`, `|x| < 2^62`, without a branch: the sign of noise cannot be predicted.
#[inline]
fn nearest_integer(x: f64) -> i64 {
    let whole = x as i64;
    let rest = x - whole as f64;
    whole + i64::from(rest >= 0.5) - i64::from(rest <= -0.5)
}

/// Out of line, or the compiler takes the slow conversion for small numbers too.
#[cold]
#[inline(never)]
fn wide(nearest: i128) -> f64 {
    nearest as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn release(lattice: &Lattice, counter: i64, noise: f64) -> f64 {
        let mut values = [noise];
        lattice.release([counter].into_iter(), &mut values);
        values[0]
    }

    #[test]
    fn a_release_is_the_nearest_lattice_point_of_the_exact_sum() {
        // s = 3: g = 2^(1 - 5) = 1/16.
        let lattice = Lattice::new(0, 3.0).unwrap();
        assert_eq!(lattice.step(), 0.0625);
        assert_eq!(release(&lattice, 7, 0.03), 7.0);
        assert_eq!(release(&lattice, 7, 0.04), 7.0625);
        assert_eq!(release(&lattice, -7, -0.04), -7.0625);
        // s = 1000: g = 2^(9 - 5) = 16, coarser than the counters' unit.
        let coarse = Lattice::new(0, 1000.0).unwrap();
        assert_eq!(coarse.step(), 16.0);
        assert_eq!(release(&coarse, 7, 0.9), 0.0);
        assert_eq!(release(&coarse, 7, 1.1), 16.0);
        assert_eq!(release(&coarse, -25, 0.0), -32.0);
        // Far counters are exact to the last bit that a float has.
        assert_eq!(release(&lattice, i64::MAX, 0.0), 9.223_372_036_854_776e18);
        assert_eq!(release(&lattice, (1 << 53) - 1, 0.0), ((1u64 << 53) - 1) as f64);
    }

    proptest! {
        #[test]
        fn every_release_is_a_multiple_of_the_step_and_near_the_sum(
            counter in any::<i64>(), z in -40.0f64..40.0, log_scale in -15i32..59, unit in -200i32..200
        ) {
            let s = 1.37 * power_of_two(log_scale + unit);
            let lattice = Lattice::new(unit, s).unwrap();
            let released = release(&lattice, counter, z * s);
            prop_assert_eq!(released % lattice.step(), 0.0);
            let sum = counter as f64 * power_of_two(unit) + z * s;
            // Half a step, and what a float of this size can hold.
            prop_assert!((released - sum).abs() <= lattice.step() / 2.0 * (1.0 + 1e-9) + sum.abs().max((counter as f64).abs() * power_of_two(unit)) * 4e-16);
        }

        #[test]
        fn adding_a_multiple_of_the_step_shifts_the_release(counter in -1000i64..1000, noise in -100.0f64..100.0) {
            let lattice = Lattice::new(0, 3.0).unwrap();
            prop_assert_eq!(release(&lattice, counter + 1, noise), release(&lattice, counter, noise) + 1.0);
        }

        #[test]
        fn real_quantities_are_truncated_toward_zero(value in -1e6f64..1e6, unit in -20i32..20) {
            let units = value.units(unit).unwrap();
            let back = units as f64 * power_of_two(unit);
            prop_assert!(back.abs() <= value.abs() && (value - back).abs() < power_of_two(unit));
        }

        #[test]
        fn integers_and_floats_agree(value in -(1i64 << 50)..(1i64 << 50), unit in -40i32..70) {
            prop_assert_eq!(value.units(unit), (value as f64).units(unit));
        }

        #[test]
        fn few_units_are_units(value in any::<f64>(), near in -1e6f64..1e6, integer in any::<i64>(), unit in -330i32..310) {
            let scale = power_of_two(-unit);
            for value in [value, near, near * power_of_two(unit)] {
                if let Some(units) = value.few_units(unit, scale) {
                    prop_assert_eq!(Some(i128::from(units)), value.units(unit));
                }
            }
            prop_assert!((near * power_of_two(unit)).few_units(unit, scale).is_some());
            for unit in [0, unit] {
                if let Some(units) = integer.few_units(unit, power_of_two(-unit)) {
                    prop_assert_eq!(Some(i128::from(units)), integer.units(unit));
                }
            }
        }
    }

    #[test]
    fn the_squared_bound_of_a_real_vector_is_exact() {
        assert_eq!(Bound::real(1.0, Norm::L2).unwrap().max, 1 << 40);
        assert_eq!(Bound::real(1.0, Norm::L2).unwrap().unit, -20);
        assert_eq!(Bound::real(1.5, Norm::L2).unwrap().max, 9 << 38);
        assert_eq!(Bound::real(4.0, Norm::L2).unwrap().unit, -18);
        // sqrt(2): (2^20 sqrt 2)^2 lies just above 2^41 in floats, so the floor is 2^41.
        assert_eq!(Bound::real(core::f64::consts::SQRT_2, Norm::L2).unwrap().max, 1 << 41);
        // The next float below is below.
        assert_eq!(
            Bound::real(f64::from_bits(core::f64::consts::SQRT_2.to_bits() - 1), Norm::L2).unwrap().max,
            (1 << 41) - 1
        );
    }

    #[test]
    fn bounds_and_scales_out_of_range_are_refused() {
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-100, 1e100] {
            assert!(Bound::real(bad, Norm::L2).is_err(), "{bad}");
        }
        assert!(Bound::integer(0, Norm::L2).is_err());
        assert!(Bound::integer(MAX_WEIGHT + 1, Norm::L2).is_err());
        assert!(Bound::integer(MAX_WEIGHT, Norm::L2).is_ok());
        for bad in [0.0, f64::NAN, f64::INFINITY, 1e-6, 1e20] {
            assert!(Lattice::new(0, bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn quantities_that_are_no_numbers_are_refused_and_huge_ones_stay_far() {
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(bad.units(0), None);
        }
        assert_eq!(1e300.units(-20), Some(FAR));
        assert_eq!((-1e300).units(-320), Some(-FAR));
        assert_eq!(i64::MIN.units(-63), Some(-FAR));
        assert_eq!(i64::MIN.units(-200), Some(-FAR));
        assert_eq!(0i64.units(-200), Some(0));
        assert_eq!(i64::MIN.units(63), Some(-1));
    }
}
