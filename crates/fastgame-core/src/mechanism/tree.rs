//! The binary tree mechanism, sampled where it is read: the fast mechanism of the paper (section 3, Algorithm 1).
//!
//! Every node of a complete binary tree over the time steps has an independent noise variable; the noise at a
//! step is the sum along its root-to-leaf path. A cell keeps the *active path* of its last read: a level set and
//! the prefix sums drawn there, a stack in level order. A later read shares the path down to the split level `m`:
//! the sum there is known or drawn by the bridge between its neighbours in the stack, the rest of the new path is
//! fresh. Levels above the split survive, those below are dropped, the leaf goes on top. One or two sums are drawn,
//! however much time has passed.

use alloc::vec::Vec;

use rand_core::Rng;

use super::{After, Drawn, Process};
use crate::level_set::LevelSet;
use crate::noise::gaussian::fill;
use crate::noise::{Law, Source, Split, Stored};
use crate::time::common_levels;

/// Cells of a sweep that are drawn at a time.
const CHUNK: usize = 128;

/// The last step, and the levels whose sums are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
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

impl super::Head for Head {
    #[inline]
    fn values(self, _: usize) -> usize {
        self.levels.len() as usize
    }
}

/// What a read draws for one cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sums<S> {
    /// The sum at the split, the deepest node that the path shares with the last one.
    at_split: S,
    /// It was known, so it is not drawn.
    is_known: bool,
    leaf: S,
}

impl<S: Stored> Drawn for Sums<S> {
    type Value = S;

    #[inline]
    fn values(&self) -> impl Iterator<Item = S> {
        [self.at_split, self.leaf].into_iter().skip(self.is_known.into())
    }

    #[inline]
    fn count(&self) -> usize {
        2 - usize::from(self.is_known)
    }

    #[inline]
    fn last(&self) -> S {
        self.leaf
    }

    #[inline]
    fn write(&self, words: &mut [u64]) {
        self.at_split.write(words);
        self.leaf.write(&mut words[(self.count() - 1) * S::WORDS..]);
    }
}

/// What a read at a step has to draw: a function of steps and level sets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Move {
    /// Nothing was read before.
    First,
    /// The path leaves that of the last read at this level. The known sum above it, or at it, has this rank.
    Leave { level: u8, rank: u8, split: Split },
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
    /// The sums at the known nodes above and below the split, unless nothing was read before.
    type Loaded = Option<(Split, L::Sum, L::Sum)>;
    type Drawn = Sums<L::Sum>;

    const BLOCK: usize = 64;

    #[inline]
    fn step(head: Head) -> u64 {
        head.step
    }

    #[inline(always)]
    fn next(&mut self, last: Option<Head>, step: u64) -> Option<Move> {
        let Some(Head { step: last_step, levels }) = last else { return Some(Move::First) };
        if last_step == step {
            return None;
        }
        let level = common_levels(last_step, step, self.height);
        // The root and the leaf of an active path are always drawn.
        let (above, below) = levels.around(level);
        let rank = levels.rank(above);
        let [level, above, below, height, rank] = [level, above, below, self.height, rank].map(|level| level as u8);
        Some(Move::Leave { level, rank, split: Split { p: level - above, q: below - level, fresh: height - level } })
    }

    #[inline(always)]
    fn after(&self, step_move: Move, last: Option<Head>, step: u64) -> After<Head> {
        let levels = last.map_or(LevelSet::EMPTY, |head| head.levels);
        match step_move {
            Move::First => After { head: Head { step, levels: LevelSet::EMPTY.with(0).with(self.height) }, keep: 0 },
            // The split is above the leaf, so the old leaf goes.
            Move::Leave { level, rank, .. } => {
                let level = u32::from(level);
                let levels = levels.through(level).with(level).with(self.height);
                After { head: Head { step, levels }, keep: u32::from(rank) + 1 }
            }
        }
    }

    #[inline(always)]
    fn drawn(&self, step_move: Move) -> usize {
        match step_move {
            Move::First => 1 + usize::from(self.height > 0),
            Move::Leave { split, .. } => 1 + usize::from(split.p > 0),
        }
    }

    #[inline(always)]
    fn normals(&self, step_move: Move) -> usize {
        L::NORMALS * self.drawn(step_move)
    }

    #[inline(always)]
    fn load(&self, step_move: Move, value_at: impl Fn(u32) -> L::Sum) -> Self::Loaded {
        match step_move {
            Move::First => None,
            Move::Leave { rank, split, .. } => Some((split, value_at(rank.into()), value_at(u32::from(rank) + 1))),
        }
    }

    #[inline(always)]
    fn draw(&self, loaded: Self::Loaded, source: &mut Source<'_, impl Rng>) -> Sums<L::Sum> {
        let law = &self.law;
        if let Some((split, upper, lower)) = loaded {
            let (at_split, leaf) = law.path(split, upper, lower, source);
            return Sums { at_split, is_known: split.p == 0, leaf };
        }
        let root = law.sum(1, source);
        let leaf = if self.height == 0 { root } else { L::add(root, law.sum(self.height, source)) };
        Sums { at_split: root, is_known: self.height == 0, leaf }
    }

    fn sweep(
        &self,
        step_move: Move,
        stack: &[Vec<L::Sum>],
        len: usize,
        drawn: &mut [Vec<L::Sum>],
        noise: &mut Vec<f64>,
        rng: &mut impl Rng,
    ) {
        let mut normals = [0.0; 2 * CHUNK];
        let each = self.normals(step_move);
        for start in (0..len).step_by(CHUNK) {
            let cells = start..len.min(start + CHUNK);
            let normals = &mut normals[..each * cells.len()];
            fill(normals, rng);
            let source = &mut Source::new(normals, rng);
            match (step_move, &mut *drawn) {
                (Move::Leave { rank, split, .. }, drawn) => {
                    let [upper, lower] = [0, 1].map(|next| &stack[usize::from(rank) + next][cells.clone()]);
                    self.law.paths(split, upper, lower, drawn, source);
                }
                (Move::First, [leaf]) => leaf.extend(cells.clone().map(|_| self.draw(None, source).leaf)),
                (Move::First, drawn) => cells.clone().for_each(|_| {
                    let sums = self.draw(None, source);
                    drawn.iter_mut().zip([sums.at_split, sums.leaf]).for_each(|(array, sum)| array.push(sum));
                }),
            }
            if let Some(leaf) = drawn.last() {
                noise.extend(leaf[cells].iter().map(|&sum| L::value(sum)));
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

    fn is_possible(&self, _: usize, sum: L::Sum, limit: f64) -> bool {
        L::is_possible(sum, limit)
    }

    fn bytes(&self) -> usize {
        self.law.bytes()
    }
}

#[cfg(test)]
mod tests;
