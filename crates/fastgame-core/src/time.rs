//! The public clock: a horizon of `T` steps, the present step, and the seal that a read puts on it.
//!
//! Only the caller moves the clock. Nothing here looks at data, so the state of the clock is public.

use crate::error::{Error, Result};

/// The longest horizon, `2^62` steps.
pub const MAX_HORIZON: u64 = 1 << 62;

/// The number of time steps, fixed before any data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Horizon(u64);

impl Horizon {
    /// A horizon of `steps` steps, `1 <= steps <= 2^62`.
    ///
    /// # Errors
    /// [`Error::Parameter`] outside of that range.
    pub fn new(steps: u64) -> Result<Self> {
        if (1..=MAX_HORIZON).contains(&steps) {
            Ok(Self(steps))
        } else {
            Err(Error::Parameter {
                name: "horizon",
                given: steps.into(),
                allowed: "a number of time steps from 1 to 2^62",
            })
        }
    }

    /// The number of steps `T`.
    pub fn steps(self) -> u64 {
        self.0
    }

    /// `h = ceil(log2 T)`: the depth of the tree whose leaves are the steps.
    pub fn levels(self) -> u32 {
        u64::BITS - (self.0 - 1).leading_zeros()
    }
}

/// A step that a plan is asked about, if there is such a one.
pub(crate) fn planned_step(step: u64, horizon: u64) -> Result<u64> {
    if (1..=horizon).contains(&step) {
        return Ok(step);
    }
    let allowed = "a step from 1 (now) to the horizon (the end)";
    Err(Error::Parameter { name: "at", given: step.into(), allowed })
}

/// The length of the common prefix of the `levels`-bit labels `a - 1` and `b - 1` of two steps: the level
/// of the deepest node that is on both root-to-leaf paths.
#[inline]
pub(crate) fn common_levels(a: u64, b: u64, levels: u32) -> u32 {
    levels + ((a - 1) ^ (b - 1)).leading_zeros() - u64::BITS
}

/// The clock of one structure. Steps are numbered `1..=T`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    horizon: Horizon,
    now: u64,
    sealed: bool,
}

impl Clock {
    pub(crate) fn new(horizon: Horizon) -> Self {
        Self { horizon, now: 1, sealed: false }
    }

    pub(crate) fn horizon(&self) -> Horizon {
        self.horizon
    }

    pub(crate) fn now(&self) -> u64 {
        self.now
    }

    pub(crate) fn is_sealed(&self) -> bool {
        self.sealed
    }

    /// Moves to step `to`; staying where one is is no move and keeps the seal.
    pub(crate) fn advance_to(&mut self, to: u64) -> Result<()> {
        if to < self.now || to > self.horizon.steps() {
            return Err(Error::Time { to: Some(to), now: self.now, horizon: self.horizon.steps() });
        }
        if to > self.now {
            self.now = to;
            self.sealed = false;
        }
        Ok(())
    }

    /// Two reads of one step share their noise, so an update between them would show in the
    /// difference of the answers: a read seals its step.
    pub(crate) fn seal(&mut self) {
        self.sealed = true;
    }

    pub(crate) fn check_open(&self) -> Result<()> {
        if self.sealed { Err(Error::Sealed { now: self.now, horizon: self.horizon.steps() }) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_the_exact_ceiling_of_the_logarithm() {
        for (steps, levels) in [(1, 0), (2, 1), (3, 2), (4, 2), (5, 3), (1000, 10), (1 << 62, 62), ((1 << 61) + 1, 62)]
        {
            assert_eq!(Horizon::new(steps).unwrap().levels(), levels, "{steps}");
        }
        for k in 1..=61u32 {
            let power = 1u64 << k;
            assert_eq!(Horizon::new(power).unwrap().levels(), k);
            assert_eq!(Horizon::new(power + 1).unwrap().levels(), k + 1);
        }
    }

    #[test]
    fn horizons_outside_of_the_range_are_refused() {
        assert!(Horizon::new(0).is_err());
        assert!(Horizon::new(MAX_HORIZON + 1).is_err());
        assert!(Horizon::new(u64::MAX).is_err());
    }

    #[test]
    fn common_levels_agree_with_comparing_bits_from_the_top() {
        let levels = 5;
        for a in 1..=32u64 {
            for b in (1..=32u64).filter(|&b| b != a) {
                let bit = |x: u64, j: u32| (x - 1) >> (levels - 1 - j) & 1;
                let slow = (0..levels).take_while(|&j| bit(a, j) == bit(b, j)).count() as u32;
                assert_eq!(common_levels(a, b, levels), slow, "{a} {b}");
            }
        }
        assert_eq!(common_levels(1, MAX_HORIZON, 62), 0);
        assert_eq!(common_levels(MAX_HORIZON - 1, MAX_HORIZON, 62), 61);
    }

    #[test]
    fn time_moves_forward_only_and_an_advance_opens_a_sealed_step() {
        let mut clock = Clock::new(Horizon::new(4).unwrap());
        clock.seal();
        assert_eq!(clock.check_open(), Err(Error::Sealed { now: 1, horizon: 4 }));
        clock.advance_to(1).unwrap();
        assert!(clock.is_sealed(), "staying keeps the seal");
        clock.advance_to(3).unwrap();
        assert!(!clock.is_sealed());
        assert!(clock.advance_to(2).is_err());
        assert!(clock.advance_to(5).is_err());
        assert_eq!(clock.now(), 3);
        clock.advance_to(4).unwrap();
        assert!(clock.advance_to(5).is_err());
    }
}
