//! The binary tree mechanism, sampled where it is read: the fast mechanism of the paper (section 3, Algorithm 1).
//!
//! Every node of a complete binary tree over the time steps has an independent noise variable; the noise at a
//! step is the sum along its root-to-leaf path. A cell keeps the *active path* of its last read: a level set and
//! the prefix sums drawn there, a stack in level order. A later read shares the path down to the split level `m`:
//! the sum there is known or drawn by the bridge between its neighbours in the stack, the rest of the new path is
//! fresh. Levels above the split survive, those below are dropped, the leaf goes on top. One or two sums are drawn,
//! however much time has passed.

use rand_core::Rng;

use super::{After, Drawn, Process};
use crate::level_set::LevelSet;
use crate::noise::{Law, Stored};
use crate::time::common_levels;

/// The last step, and the levels whose sums are kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Head {
    pub(crate) step: u64,
    pub(crate) levels: LevelSet,
}

impl Stored for Head {
    const WORDS: usize = 2;

    #[inline]
    fn write(self, words: &mut [u64]) {
        words[0] = self.step;
        words[1] = self.levels.bits();
    }

    #[inline]
    fn read(words: &[u64]) -> Self {
        Self { step: words[0], levels: LevelSet::from_bits(words[1]) }
    }
}

/// What a read draws for one cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sums<S> {
    /// The sum at the split, the deepest node that the path shares with the last one, if it was not known.
    pub(crate) at_split: Option<S>,
    pub(crate) leaf: S,
}

impl<S: Copy> Drawn for Sums<S> {
    type Value = S;

    #[inline]
    fn values(&self) -> impl Iterator<Item = S> + Clone {
        self.at_split.into_iter().chain([self.leaf])
    }

    #[inline]
    fn last(&self) -> S {
        self.leaf
    }
}

/// What a read at a step has to draw: a function of steps and level sets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Move {
    /// Nothing was read before.
    First,
    /// The sum at `split` is known: it stands at `rank` of the stack.
    Fork { split: u32, rank: u32 },
    /// The sum at `split` lies between those at `above` and `below`, at `rank` of the stack and after it.
    Bridge { split: u32, above: u32, below: u32, rank: u32 },
}

/// The tree under a law, with `height` levels below its root.
pub(crate) struct Tree<L> {
    height: u32,
    law: L,
}

impl<L> Tree<L> {
    pub(crate) fn new(height: u32, law: L) -> Self {
        Self { height, law }
    }
}

impl<L: Law> Process for Tree<L> {
    type Head = Head;
    type Value = L::Sum;
    type Move = Move;
    type Drawn = Sums<L::Sum>;

    #[inline]
    fn step(head: Head) -> u64 {
        head.step
    }

    #[inline]
    fn next(&mut self, last: Option<Head>, step: u64) -> Option<Move> {
        let Some(Head { step: last_step, levels }) = last else { return Some(Move::First) };
        if last_step == step {
            return None;
        }
        let split = common_levels(last_step, step, self.height);
        let rank = levels.rank(split);
        if levels.contains(split) {
            return Some(Move::Fork { split, rank });
        }
        match (levels.predecessor(split), levels.successor(split)) {
            (Some(above), Some(below)) => Some(Move::Bridge { split, above, below, rank: rank - 1 }),
            _ => unreachable!("the root and the leaf of an active path are always drawn"),
        }
    }

    #[inline]
    fn after(&self, step_move: Move, last: Option<Head>, step: u64) -> After<Head> {
        let levels = last.map_or(LevelSet::EMPTY, |head| head.levels);
        match step_move {
            Move::First => After { head: Head { step, levels: LevelSet::EMPTY.with(0).with(self.height) }, keep: 0 },
            // The split is above the leaf, so the old leaf goes.
            Move::Fork { split, rank } | Move::Bridge { split, rank, .. } => {
                let levels = levels.through(split).with(split).with(self.height);
                After { head: Head { step, levels }, keep: rank + 1 }
            }
        }
    }

    #[inline]
    fn drawn(&self, step_move: Move) -> usize {
        match step_move {
            Move::First if self.height == 0 => 1,
            Move::First | Move::Bridge { .. } => 2,
            Move::Fork { .. } => 1,
        }
    }

    #[inline]
    fn draw(&self, step_move: Move, value_at: impl Fn(u32) -> L::Sum, rng: &mut impl Rng) -> Sums<L::Sum> {
        let law = &self.law;
        match step_move {
            Move::First if self.height == 0 => Sums { at_split: None, leaf: law.sum(1, rng) },
            Move::First => {
                let root = law.sum(1, rng);
                Sums { at_split: Some(root), leaf: L::add(root, law.sum(self.height, rng)) }
            }
            Move::Fork { split, rank } => {
                Sums { at_split: None, leaf: L::add(value_at(rank), law.sum(self.height - split, rng)) }
            }
            Move::Bridge { split, above, below, rank } => {
                let (upper, lower) = (value_at(rank), value_at(rank + 1));
                let part = law.bridge(split - above, below - split, L::subtract(lower, upper), rng);
                let at_split = L::add(upper, part);
                Sums { at_split: Some(at_split), leaf: L::add(at_split, law.sum(self.height - split, rng)) }
            }
        }
    }

    #[inline]
    fn noise(sum: L::Sum) -> f64 {
        L::value(sum)
    }

    fn fits(&self, Head { step, levels }: Head, values: usize, now: u64) -> bool {
        let ends = LevelSet::EMPTY.with(0).with(self.height);
        (1..=now).contains(&step)
            && levels.bits() & ends.bits() == ends.bits()
            && levels.through(self.height) == levels
            && levels.len() as usize == values
    }

    fn bytes(&self) -> usize {
        self.law.bytes()
    }
}

#[cfg(test)]
mod tests;
