//! A set of tree levels `0..=62` in one machine word, with the word-RAM operations that make a read
//! constant time: rank, select, predecessor and successor, each a handful of instructions
//! (masks, population count, leading and trailing zeros). Paper, section 3 and appendix A.

/// A set of levels; bit `j` stands for level `j` (0 is the root).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LevelSet(u64);

impl LevelSet {
    pub(crate) const EMPTY: Self = Self(0);

    pub(crate) const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    pub(crate) const fn bits(self) -> u64 {
        self.0
    }

    pub(crate) const fn len(self) -> u32 {
        self.0.count_ones()
    }

    #[cfg(test)]
    pub(crate) const fn contains(self, level: u32) -> bool {
        self.0 >> level & 1 == 1
    }

    #[must_use]
    pub(crate) const fn with(self, level: u32) -> Self {
        Self(self.0 | 1 << level)
    }

    /// The members `<= level`.
    #[must_use]
    pub(crate) const fn through(self, level: u32) -> Self {
        Self(self.0 & (u64::MAX >> (63 - level)))
    }

    /// The number of members `< level`: the index of `level` in a packed stack.
    pub(crate) const fn rank(self, level: u32) -> u32 {
        (self.0 & ((1 << level) - 1)).count_ones()
    }

    /// The member with `index` members below it, for `index < len`: the inverse of `rank`.
    #[cfg(test)]
    pub(crate) fn select(self, index: u32) -> Option<u32> {
        let mut bits = self.0;
        for _ in 0..index {
            bits &= bits.wrapping_sub(1);
        }
        (bits != 0).then(|| bits.trailing_zeros())
    }

    /// The greatest member `<= level` and the smallest one above, for a level from the smallest member to below the greatest.
    pub(crate) const fn around(self, level: u32) -> (u32, u32) {
        let through = u64::MAX >> (63 - level);
        (63 - (self.0 & through).leading_zeros(), (self.0 & !through).trailing_zeros())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    proptest! {
        #[test]
        fn operations_agree_with_a_sorted_list(bits in any::<u64>(), level in 0u32..=62) {
            let bits = bits & (u64::MAX >> 1);
            let set = LevelSet::from_bits(bits);
            let list: Vec<u32> = (0..=62).filter(|j| bits & (1 << j) != 0).collect();
            prop_assert_eq!(set.len() as usize, list.len());
            prop_assert_eq!(set.contains(level), list.contains(&level));
            prop_assert_eq!(set.rank(level) as usize, list.iter().filter(|&&j| j < level).count());
            let (above, below) = (list.iter().rfind(|&&j| j <= level), list.iter().find(|&&j| j > level));
            if let (Some(&above), Some(&below)) = (above, below) {
                prop_assert_eq!(set.around(level), (above, below));
            }
            for (index, &j) in list.iter().enumerate() {
                prop_assert_eq!(set.select(index as u32), Some(j));
                prop_assert_eq!(set.rank(j) as usize, index);
            }
            prop_assert_eq!(set.select(list.len() as u32), None);
            let through: u64 = list.iter().filter(|&&j| j <= level).map(|j| 1u64 << j).sum();
            prop_assert_eq!(set.through(level).bits(), through);
            prop_assert_eq!(set.with(level).bits(), bits | 1 << level);
        }
    }

    #[test]
    fn the_ends_of_the_word_are_right() {
        let ends = LevelSet::EMPTY.with(0).with(62);
        assert_eq!(ends.around(0), (0, 62));
        assert_eq!(ends.around(61), (0, 62));
        assert_eq!(ends.through(62), ends);
        assert_eq!(ends.rank(62), 1);
    }
}
