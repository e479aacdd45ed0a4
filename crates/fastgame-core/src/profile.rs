//! A public assumption about the data: how many keys have which frequency.
//!
//! What a sketch's collisions cost depends on the data; a plan is made before there are any. So the caller states what
//! is expected (last year's counts if they are public, or Zipf's law), and [`law`] makes an error of it.
//!
//! Keys of nearly equal frequency are kept together, as a class, by their number and root mean square: the second
//! moment stays exact. Cost: a few thousand classes whatever is given; Zipf's law over 2^40 keys takes 1,200.

use alloc::vec::Vec;

use crate::error::{Error, Result};
use crate::math::{exp, ln, sqrt};

pub(crate) mod law;

/// Keys of one frequency.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Class {
    pub(crate) frequency: f64,
    /// How many there are, an integer below 2^53.
    pub(crate) keys: f64,
}

/// How often the keys of a stream are expected: classes of keys with the same frequency. Public, and without privacy
/// loss as long as it does not come from the data that are to be protected.
#[derive(Clone, Debug, PartialEq)]
pub struct FrequencyProfile {
    /// By frequency, smallest first; none is zero.
    classes: Vec<Class>,
    total: f64,
    keys: u64,
}

/// The largest frequency and total, `2^63`: counters hold no more.
const MAX_FREQUENCY: f64 = (1u64 << 63) as f64;
/// The largest number of keys, `2^53`: floats count no further one by one.
const MAX_KEYS: u64 = 1 << 53;
/// Where there are more different frequencies than this, near ones share a class.
const EXACT_CLASSES: usize = 1024;
/// Frequencies in a class differ by at most this factor: within 0.6 % of their root mean square on average.
const CLASS_RATIO: f64 = 1.02;

impl FrequencyProfile {
    /// A profile from the frequency of every key; only absolute values matter, zeros do not count as keys.
    ///
    /// # Errors
    /// [`Error::NotFinite`]; [`Error::Overflow`] for a frequency beyond 2^63, which no counter holds.
    pub fn from_frequencies(frequencies: impl IntoIterator<Item = f64>) -> Result<Self> {
        let mut sorted = Vec::new();
        for (position, frequency) in frequencies.into_iter().enumerate() {
            let frequency = frequency.abs();
            if !frequency.is_finite() {
                return Err(Error::NotFinite { position });
            }
            if frequency > MAX_FREQUENCY {
                return Err(Error::Overflow { position });
            }
            if frequency > 0.0 {
                sorted.push(frequency);
            }
        }
        sorted.sort_unstable_by(f64::total_cmp);
        let (total, keys) = (sorted.iter().sum(), sorted.len() as u64);
        let different = sorted.windows(2).filter(|pair| pair[0] != pair[1]).count() + 1;
        let ratio = if different > EXACT_CLASSES { CLASS_RATIO } else { 1.0 };
        Ok(Self { classes: in_classes(&sorted, ratio), total, keys })
    }

    /// Zipf's law: the key of rank `r` has `total * r^-exponent / H` with `H = sum_r r^-exponent`. An exponent of 0 makes
    /// all keys equal. Frequencies are expected ones, and may be below 1.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless `0 < total <= 2^63`, `1 <= keys <= 2^53` and `0 <= exponent <= 100`.
    pub fn zipf(total: f64, keys: u64, exponent: f64) -> Result<Self> {
        if !(total > 0.0 && total <= MAX_FREQUENCY) {
            let allowed = "more than 0 and at most 2^63";
            return Err(Error::Parameter { name: "total", given: total.into(), allowed });
        }
        if keys == 0 || keys > MAX_KEYS {
            return Err(Error::Parameter { name: "keys", given: keys.into(), allowed: "from 1 to 2^53" });
        }
        if !(0.0..=100.0).contains(&exponent) {
            return Err(Error::Parameter { name: "exponent", given: exponent.into(), allowed: "from 0 to 100" });
        }
        // Ranks below 100 alone, then as many together as make 2 %: frequencies r^-exponent, largest first.
        let mut classes = Vec::new();
        let (mut first, mut sum) = (1, 0.0);
        while first <= keys {
            let count = (first / 50).max(1).min(keys - first + 1);
            let squares = power_sum(2.0 * exponent, first, count);
            sum += power_sum(exponent, first, count);
            classes.push(Class { frequency: sqrt(squares / count as f64), keys: count as f64 });
            first += count;
        }
        classes.iter_mut().for_each(|class| class.frequency *= total / sum);
        // Steep laws have keys that no float tells from none.
        classes.retain(|class| class.frequency > 0.0);
        classes.reverse();
        Ok(Self { classes, total, keys })
    }

    /// The sum of all frequencies.
    pub fn total(&self) -> f64 {
        self.total
    }

    /// The number of keys.
    pub fn keys(&self) -> u64 {
        self.keys
    }

    /// The sum of squared frequencies.
    pub fn second_moment(&self) -> f64 {
        self.classes.iter().map(|class| class.keys * class.frequency * class.frequency).sum()
    }

    pub(crate) fn classes(&self) -> &[Class] {
        &self.classes
    }
}

/// Sorted frequencies as classes, each within a ratio.
fn in_classes(sorted: &[f64], ratio: f64) -> Vec<Class> {
    let mut classes = Vec::new();
    let mut rest = sorted;
    while let Some(&least) = rest.first() {
        let (class, others) = rest.split_at(rest.partition_point(|&frequency| frequency <= least * ratio));
        let keys = class.len() as f64;
        let equal = class[class.len() - 1] == least;
        let squares = || class.iter().map(|frequency| frequency * frequency).sum::<f64>() / keys;
        classes.push(Class { frequency: if equal { least } else { sqrt(squares()) }, keys });
        rest = others;
    }
    classes
}

/// `sum r^-p` over `count` ranks from `first` on: a single power, or (from rank 100 on) the Euler-Maclaurin formula, whose
/// next term is `p^3 / 720 * 100^-3` of the first power.
fn power_sum(p: f64, first: u64, count: u64) -> f64 {
    let (a, b) = (first as f64, (first + count - 1) as f64);
    let power = |rank: f64| exp(-p * ln(rank));
    if count == 1 {
        return power(a);
    }
    // The integral a^(1-p) (e^(u) - 1) / (1-p) with u = (1-p) ln(b/a), |ln(b/a)| <= 0.02; by its series where u is small.
    let log = ln(b / a);
    let u = (1.0 - p) * log;
    let growth = if u < 0.1 && u > -0.1 {
        log * (1.0 + u / 2.0 * (1.0 + u / 3.0 * (1.0 + u / 4.0 * (1.0 + u / 5.0 * (1.0 + u / 6.0)))))
    } else {
        (exp(u) - 1.0) / (1.0 - p)
    };
    let (low, high) = (power(a), power(b));
    a * low * growth + 0.5 * (low + high) + p / 12.0 * (low / a - high / b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn close(a: f64, b: f64, relative: f64) -> bool {
        (a - b).abs() <= relative * b.abs()
    }

    #[test]
    fn equal_frequencies_are_a_class() {
        let profile = FrequencyProfile::from_frequencies([3.0, 0.0, 1.0, -3.0, 1.0, 1.0]).unwrap();
        assert_eq!(profile.classes(), [Class { frequency: 1.0, keys: 3.0 }, Class { frequency: 3.0, keys: 2.0 }]);
        assert_eq!((profile.total(), profile.keys(), profile.second_moment()), (9.0, 5, 21.0));
        for bad in [f64::NAN, f64::INFINITY, 1e300] {
            assert!(FrequencyProfile::from_frequencies([1.0, bad]).is_err());
        }
        assert_eq!(FrequencyProfile::from_frequencies([]).unwrap().second_moment(), 0.0);
    }

    #[test]
    fn many_frequencies_share_classes_and_keep_the_second_moment() {
        let frequencies = || (1..=100_000u32).map(|i| f64::from(i).sqrt());
        let profile = FrequencyProfile::from_frequencies(frequencies()).unwrap();
        assert!(profile.classes().len() < 400);
        assert!(close(profile.second_moment(), frequencies().map(|f| f * f).sum(), 1e-12));
        assert_eq!(profile.keys(), 100_000);
    }

    #[test]
    fn zipf_has_the_moments_of_its_ranks() {
        for exponent in [0.0, 0.3, 0.5, 0.8, 1.0, 1.2, 2.0, 7.0] {
            let keys = 1_000_000u64;
            let ranks: Vec<f64> = (1..=keys).map(|rank| (rank as f64).powf(-exponent)).collect();
            let h: f64 = ranks.iter().rev().sum();
            let squares: f64 = ranks.iter().rev().map(|f| f * f).sum();
            let profile = FrequencyProfile::zipf(5e6, keys, exponent).unwrap();
            assert!(close(profile.second_moment(), squares * (5e6 / h) * (5e6 / h), 1e-7), "{exponent}");
            assert_eq!(profile.classes().iter().map(|class| class.keys).sum::<f64>(), 1e6);
            let first = profile.classes().last().unwrap();
            assert!(close(first.frequency, 5e6 / h, 1e-7), "{exponent}");
        }
        // Where nobody can sum: H = ln n + gamma, sum r^-2 = pi^2 / 6.
        let profile = FrequencyProfile::zipf(1e12, 1 << 40, 1.0).unwrap();
        let h = 40.0 * 2f64.ln() + 0.577_215_664_901_532_9;
        assert!(close(profile.second_moment(), core::f64::consts::PI.powi(2) / 6.0 * (1e12 / h).powi(2), 1e-8));
        assert!(profile.classes().len() < 1_300);
        for (total, keys, exponent) in
            [(0.0, 1, 1.0), (1e300, 1, 1.0), (1.0, 0, 1.0), (1.0, 1 << 54, 1.0), (1.0, 1, -1.0)]
        {
            assert!(FrequencyProfile::zipf(total, keys, exponent).is_err());
        }
        assert!(FrequencyProfile::zipf(1.0, 10, f64::NAN).is_err());
    }
}
