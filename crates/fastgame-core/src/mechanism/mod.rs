//! How noise is correlated over time: what a cell keeps between its reads, and the draws of a read.

pub(crate) mod blt;
pub(crate) mod cells;
pub(crate) mod store;
#[cfg(test)]
mod testing;
pub(crate) mod tree;

use alloc::vec::Vec;

use rand_core::Rng;

use crate::noise::{Source, Stored};

/// Noise of one cell over time, sampled where it is read. What a cell keeps between reads is a *head*, which is public (the
/// step of its last read, and which values there are), and a stack of values, of which the last is the noise at that step. A
/// read keeps the front of the stack and puts what it draws on top.
pub(crate) trait Process {
    /// The public part of a cell's state.
    type Head: Head;
    /// What the stack is made of.
    type Value: Stored;
    /// What a read has to draw: a function of the head and the step, hence public.
    type Move: Copy;
    /// A move with the values that it starts from.
    type Loaded: Copy + Default;
    /// What a read draws for one cell.
    type Drawn: Drawn<Value = Self::Value> + Copy;

    /// How many cells of a read are looked up, drawn and written at a time.
    const BLOCK: usize;

    /// The step of the last read.
    fn step(head: Self::Head) -> u64;

    /// The move from the last read to `step`; `None` if that step was read already.
    fn next(&mut self, last: Option<Self::Head>, step: u64) -> Option<Self::Move>;

    /// The head after a move, and how many values of the stack it keeps.
    fn after(&self, step_move: Self::Move, last: Option<Self::Head>, step: u64) -> After<Self::Head>;

    /// How many values a move draws.
    fn drawn(&self, step_move: Self::Move) -> usize;

    /// How many standard normals of a block a move takes; what else it needs comes from the generator.
    fn normals(&self, step_move: Self::Move) -> usize;

    /// What a draw depends on. `value_at(rank)` reads the stack of the cell.
    fn load(&self, step_move: Self::Move, value_at: impl Fn(u32) -> Self::Value) -> Self::Loaded;

    /// Draws what a move asks for.
    fn draw(&self, loaded: Self::Loaded, source: &mut Source<'_, impl Rng>) -> Self::Drawn;

    /// Draws for `len` cells that share a move and whose stacks are `stack`, an array a rank: what goes on top onto `drawn`, as
    /// many arrays as the move draws, and the noise onto `noise`. There is room for all of it.
    fn sweep(
        &self,
        step_move: Self::Move,
        stack: &[Vec<Self::Value>],
        len: usize,
        drawn: &mut [Vec<Self::Value>],
        noise: &mut Vec<f64>,
        rng: &mut impl Rng,
    );

    /// The noise that the last value of a stack stands for.
    fn noise(value: Self::Value) -> f64;

    /// Whether a cell that was last read at a step up to `now` can have this head, and so many values.
    fn fits(&self, head: Self::Head, values: usize, now: u64) -> bool;

    /// Whether a stack can have this value at a rank, where no noise is beyond `limit`. From what passes, no later read makes
    /// noise that a release cannot hold.
    fn is_possible(&self, rank: usize, value: Self::Value, limit: f64) -> bool;

    /// Memory in bytes beside the cells.
    fn bytes(&self) -> usize {
        0
    }
}

/// The public part of a cell's state.
pub(crate) trait Head: Stored + PartialEq + Default {
    /// How many values the stack has, where there is room for so many.
    fn values(self, room: usize) -> usize;
}

/// What a read draws for one cell: values that go on top of its stack.
pub(crate) trait Drawn {
    type Value: Stored;

    /// In the order of the stack.
    fn values(&self) -> impl Iterator<Item = Self::Value>;

    /// How many they are.
    fn count(&self) -> usize;

    /// The last of them.
    fn last(&self) -> Self::Value;

    /// Writes them one after the other, into as many words as they take.
    #[inline]
    fn write(&self, words: &mut [u64]) {
        for (value, words) in self.values().zip(words.chunks_exact_mut(Self::Value::WORDS)) {
            value.write(words);
        }
    }
}

/// Values that were drawn before.
impl<V: Stored> Drawn for [V] {
    type Value = V;

    fn values(&self) -> impl Iterator<Item = V> {
        self.iter().copied()
    }

    fn count(&self) -> usize {
        self.len()
    }

    fn last(&self) -> V {
        self[self.len() - 1]
    }
}

/// What a read makes of a stack: it keeps the first `keep` values, and those that are drawn go on top.
#[derive(Clone, Copy, Debug)]
pub(crate) struct After<H> {
    pub(crate) head: H,
    pub(crate) keep: u32,
}
