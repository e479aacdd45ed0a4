//! How noise is correlated over time: what a cell keeps between its reads, and the draws of a read.

pub(crate) mod blt;
pub(crate) mod cells;
pub(crate) mod store;
#[cfg(test)]
mod testing;
pub(crate) mod tree;

use alloc::vec::Vec;

use rand_core::Rng;

use crate::noise::Stored;

/// Noise of one cell over time, sampled where it is read. What a cell keeps between reads is a *head*, which is public (the
/// step of its last read, and which values there are), and a stack of values, of which the last is the noise at that step. A
/// read keeps the front of the stack and puts what it draws on top.
pub(crate) trait Process {
    /// The public part of a cell's state.
    type Head: Stored + PartialEq;
    /// What the stack is made of.
    type Value: Stored;
    /// What a read has to draw: a function of the head and the step, hence public.
    type Move: Copy;
    /// What a read draws for one cell.
    type Drawn: Drawn<Value = Self::Value>;

    /// The step of the last read.
    fn step(head: Self::Head) -> u64;

    /// The move from the last read to `step`; `None` if that step was read already.
    fn next(&mut self, last: Option<Self::Head>, step: u64) -> Option<Self::Move>;

    /// The head after a move, and how many values of the stack it keeps.
    fn after(&self, step_move: Self::Move, last: Option<Self::Head>, step: u64) -> After<Self::Head>;

    /// How many values a move draws.
    fn drawn(&self, step_move: Self::Move) -> usize;

    /// Draws what a move asks for. `value_at(rank)` reads the stack of the cell.
    fn draw(&self, step_move: Self::Move, value_at: impl Fn(u32) -> Self::Value, rng: &mut impl Rng) -> Self::Drawn;

    /// Draws for `len` cells that share a move and whose stacks are `stack`, an array a rank: what goes on top onto `drawn`, as
    /// many arrays as the move draws, and the noise onto `noise`. There is room for all of it.
    #[inline]
    fn sweep(
        &self,
        step_move: Self::Move,
        stack: &[Vec<Self::Value>],
        len: usize,
        drawn: &mut [Vec<Self::Value>],
        noise: &mut Vec<f64>,
        rng: &mut impl Rng,
    ) {
        (0..len).for_each(|cell| {
            let values = self.draw(step_move, |rank| stack[rank as usize][cell], rng);
            drawn.iter_mut().zip(values.values()).for_each(|(array, value)| array.push(value));
            noise.push(Self::noise(values.last()));
        });
    }

    /// The noise that the last value of a stack stands for.
    fn noise(value: Self::Value) -> f64;

    /// Whether a cell that was last read at a step up to `now` can have this head, and so many values.
    fn fits(&self, head: Self::Head, values: usize, now: u64) -> bool;

    /// Memory in bytes beside the cells.
    fn bytes(&self) -> usize {
        0
    }
}

/// What a read draws for one cell: values that go on top of its stack.
pub(crate) trait Drawn: Copy {
    type Value;

    /// In the order of the stack.
    fn values(&self) -> impl Iterator<Item = Self::Value> + Clone;

    /// The last of them.
    fn last(&self) -> Self::Value;
}

/// What a read makes of a stack: it keeps the first `keep` values, and those that are drawn go on top.
#[derive(Clone, Copy, Debug)]
pub(crate) struct After<H> {
    pub(crate) head: H,
    pub(crate) keep: u32,
}
