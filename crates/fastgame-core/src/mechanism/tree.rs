//! The binary tree mechanism, sampled where it is read: the fast mechanism of the paper (section 3, Algorithm 1).
//!
//! Every node of a complete binary tree over the time steps has an independent noise variable; the noise at a
//! step is the sum along its root-to-leaf path. A cell keeps the *active path* of its last read: a level set and
//! the prefix sums drawn there, a stack in level order. A later read shares the path down to the split level `m`:
//! the sum there is known or drawn by the bridge between its neighbours in the stack, the rest of the new path is
//! fresh. Levels above the split survive, those below are dropped, the leaf goes on top. One or two sums are drawn,
//! however much time has passed.
//!
//! Cells of a block that were only ever read together share one level set: their sums are kept as arrays by level
//! (a *sweep* takes one decision for all). A cell that is read on its own gets a record in packed storage, and
//! lives there from then on.

use alloc::vec::Vec;

use rand_core::Rng;

use super::store::{PackedStore, Record};
use crate::error::{Error, Result, reserved};
use crate::level_set::LevelSet;
use crate::noise::{Law, Stored};
use crate::time::common_levels;

/// How many elements the buffers of a read keep room for between reads.
pub(crate) const KEPT_CAPACITY: usize = 512;

/// The cells of a read. The order of the draws is the order of the cells.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Request<'a> {
    /// All cells.
    All,
    /// All cells of one block.
    Block(usize),
    /// These cells, each below the size; a cell may stand here more than once.
    Cells(&'a [u64]),
}

impl Request<'_> {
    /// How many values are asked for, of a vector of blocks of these lengths.
    pub(crate) fn len(&self, size: u64, blocks: &[usize]) -> usize {
        match self {
            Self::All => size as usize,
            Self::Block(block) => blocks[*block],
            Self::Cells(cells) => cells.len(),
        }
    }
}

/// What a read draws for one cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Drawn<S> {
    /// The sum at the split, the deepest node that the path shares with the last one, if it was not known.
    pub(crate) at_split: Option<S>,
    pub(crate) leaf: S,
}

/// What a read at a step has to draw: a function of steps and level sets, hence public.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Move {
    /// Nothing was read before.
    First,
    /// The step was read already.
    Stay,
    /// The sum at `split` is known: it stands at `rank` of the stack.
    Fork { split: u32, rank: u32 },
    /// The sum at `split` lies between those at `above` and `below`, at `rank` of the stack and after it.
    Bridge { split: u32, above: u32, below: u32, rank: u32 },
}

impl Move {
    #[inline]
    fn new(last: Option<(u64, LevelSet)>, step: u64, height: u32) -> Self {
        let Some((last_step, levels)) = last else { return Self::First };
        if last_step == step {
            return Self::Stay;
        }
        let split = common_levels(last_step, step, height);
        let rank = levels.rank(split);
        if levels.contains(split) {
            return Self::Fork { split, rank };
        }
        match (levels.predecessor(split), levels.successor(split)) {
            (Some(above), Some(below)) => Self::Bridge { split, above, below, rank: rank - 1 },
            _ => unreachable!("the root and the leaf of an active path are always drawn"),
        }
    }

    /// Whether the sum at the split is drawn too.
    fn draws_split(self, height: u32) -> bool {
        matches!(self, Self::Bridge { .. }) || (self == Self::First && height > 0)
    }

    /// The stack after the read.
    #[inline]
    fn after(self, levels: LevelSet, height: u32) -> After {
        match self {
            Self::First => After { levels: LevelSet::EMPTY.with(0).with(height), keep: 0 },
            Self::Stay => After { levels, keep: levels.len() },
            // The split is above the leaf, so the old leaf goes.
            Self::Fork { split, rank } | Self::Bridge { split, rank, .. } => {
                After { levels: levels.through(split).with(split).with(height), keep: rank + 1 }
            }
        }
    }
}

/// What a read makes of a stack: it keeps the first `keep` sums, and those that are drawn go on top.
#[derive(Clone, Copy, Debug)]
struct After {
    levels: LevelSet,
    keep: u32,
}

/// One root-to-leaf path of the tree under a law.
struct Tree<L> {
    height: u32,
    law: L,
}

impl<L: Law> Tree<L> {
    /// Draws what `step_move` asks for. `sum_at(rank)` reads the stack of the cell.
    #[inline]
    fn draw(&self, step_move: Move, sum_at: impl Fn(u32) -> L::Sum, rng: &mut impl Rng) -> Drawn<L::Sum> {
        let law = &self.law;
        match step_move {
            Move::First if self.height == 0 => Drawn { at_split: None, leaf: law.sum(1, rng) },
            Move::First => {
                let root = law.sum(1, rng);
                Drawn { at_split: Some(root), leaf: L::add(root, law.sum(self.height, rng)) }
            }
            Move::Stay => unreachable!("a step that was read draws nothing"),
            Move::Fork { split, rank } => {
                Drawn { at_split: None, leaf: L::add(sum_at(rank), law.sum(self.height - split, rng)) }
            }
            Move::Bridge { split, above, below, rank } => {
                let (upper, lower) = (sum_at(rank), sum_at(rank + 1));
                let part = law.bridge(split - above, below - split, L::subtract(lower, upper), rng);
                let at_split = L::add(upper, part);
                Drawn { at_split: Some(at_split), leaf: L::add(at_split, law.sum(self.height - split, rng)) }
            }
        }
    }
}

/// Neighbouring cells that are swept together.
struct Block<S> {
    start: u64,
    len: usize,
    swept: Option<Swept<S>>,
    /// The cells of the block with a record of their own.
    held: usize,
}

/// The active paths of the cells of a block that were only read together.
struct Swept<S> {
    step: u64,
    levels: LevelSet,
    /// One array a level of the set, in level order; entries of cells with a record of their own are not used.
    stack: Vec<Vec<S>>,
}

/// What a cell keeps from its last read.
enum Past<'a, S> {
    /// It was read on its own.
    Own(Record<'a, S>),
    /// It was swept, at this place of its block.
    Swept(&'a Swept<S>, usize),
    /// It was never read.
    Nothing,
}

impl<S: Stored> Past<'_, S> {
    #[inline]
    fn last(&self) -> Option<(u64, LevelSet)> {
        match self {
            Self::Own(record) => Some((record.step, record.levels)),
            Self::Swept(swept, _) => Some((swept.step, swept.levels)),
            Self::Nothing => None,
        }
    }

    #[inline]
    fn levels(&self) -> LevelSet {
        self.last().map_or(LevelSet::EMPTY, |(_, levels)| levels)
    }

    #[inline]
    fn sum(&self, rank: u32) -> S {
        match self {
            Self::Own(record) => record.sum(rank),
            Self::Swept(swept, place) => swept.stack[rank as usize][*place],
            Self::Nothing => unreachable!("a cell that was never read has an empty stack"),
        }
    }

    #[inline]
    fn leaf(&self) -> S {
        match self {
            Self::Own(record) => record.leaf(),
            _ => self.sum(self.levels().len() - 1),
        }
    }
}

struct SweepDraw<S> {
    block: usize,
    after: After,
    at_split: Option<Vec<S>>,
    leaf: Vec<S>,
}

/// What a read draws for a cell on its own, and what that makes of its stack.
#[derive(Clone, Copy)]
struct CellDraw<S> {
    cell: u64,
    after: After,
    /// The cell has no record yet: what it keeps comes from the sweeps of its block.
    is_new: bool,
    drawn: Drawn<S>,
}

/// A read between its draws and their commit.
struct Pending<S> {
    step: u64,
    cells: Vec<CellDraw<S>>,
    sweeps: Vec<SweepDraw<S>>,
    /// The noise asked for, in the order of the request.
    values: Vec<f64>,
    /// Places of `values` whose cell is drawn at an earlier place of the same request.
    repeats: Vec<(usize, u64)>,
    /// Room for one stack.
    stack: Vec<S>,
}

/// The noise of all cells.
pub(crate) struct TreeNoise<L: Law> {
    tree: Tree<L>,
    size: u64,
    blocks: Vec<Block<L::Sum>>,
    cells: PackedStore<L::Sum>,
    pending: Pending<L::Sum>,
}

impl<L: Law> TreeNoise<L> {
    /// Noise for consecutive blocks of these lengths over a tree of `height` levels below its root.
    pub(crate) fn new(height: u32, law: L, lengths: &[usize]) -> Self {
        let mut size = 0;
        let blocks = lengths
            .iter()
            .map(|&len| {
                let start = size;
                size += len as u64;
                Block { start, len, swept: None, held: 0 }
            })
            .collect();
        let pending = Pending {
            step: 0,
            cells: Vec::new(),
            sweeps: Vec::new(),
            values: Vec::new(),
            repeats: Vec::new(),
            stack: Vec::new(),
        };
        Self { tree: Tree { height, law }, size, blocks, cells: PackedStore::new(size), pending }
    }

    /// Draws the noise of a read at `step`. The state is as before until `commit`; what a former draw left
    /// uncommitted is forgotten. Time: constant for each cell.
    ///
    /// # Errors
    /// [`Error::Memory`]; what was drawn until then is pending, and to be abandoned.
    pub(crate) fn draw(&mut self, request: Request<'_>, step: u64, rng: &mut impl Rng) -> Result<()> {
        self.abandon();
        self.pending.step = step;
        match request {
            Request::All => (0..self.blocks.len()).try_for_each(|block| self.draw_block(block, rng)),
            Request::Block(block) => self.draw_block(block, rng),
            // A vector of one cell is always swept: it needs no record.
            Request::Cells(cells) if self.size == 1 => {
                if !cells.is_empty() {
                    self.draw_block(0, rng)?;
                    self.pending.values.resize(cells.len(), self.pending.values[0]);
                }
                Ok(())
            }
            Request::Cells(cells) => self.draw_cells(cells, rng),
        }
    }

    fn draw_block(&mut self, index: usize, rng: &mut impl Rng) -> Result<()> {
        let Self { tree, blocks, cells, pending, .. } = self;
        let block = &blocks[index];
        let last = block.swept.as_ref().map(|swept| (swept.step, swept.levels));
        let step_move = Move::new(last, pending.step, tree.height);
        pending.values.try_reserve(block.len).map_err(|_| Error::Memory)?;

        // Cells without a record share `step_move`; a block whose cells all have one is not swept.
        let shared = block.held < block.len && step_move != Move::Stay;
        let draws_split = step_move.draws_split(tree.height);
        let room = |needed| if shared && needed { block.len } else { 0 };
        let (mut leaf, mut at_split) = (reserved(room(true))?, reserved(room(draws_split))?);
        for i in 0..block.len {
            let cell = block.start + i as u64;
            let record = if block.held == 0 { None } else { cells.get(cell) };
            let own = record.is_some();
            let past = match (record, &block.swept) {
                (Some(record), _) => Past::Own(record),
                (None, Some(swept)) => Past::Swept(swept, i),
                (None, None) => Past::Nothing,
            };
            let step_move = if own { Move::new(past.last(), pending.step, tree.height) } else { step_move };
            let value = if step_move == Move::Stay {
                past.leaf()
            } else {
                let drawn = tree.draw(step_move, |rank| past.sum(rank), rng);
                if own {
                    let after = step_move.after(past.levels(), tree.height);
                    pending.cells.push(CellDraw { cell, after, is_new: false, drawn });
                } else if draws_split {
                    at_split.extend(drawn.at_split);
                }
                drawn.leaf
            };
            if shared {
                leaf.push(value);
                // Keeps the arrays aligned; an entry of a cell with a record of its own is never read.
                if own && draws_split {
                    at_split.push(value);
                }
            }
            pending.values.push(L::value(value));
        }
        if shared {
            let after = step_move.after(last.map_or(LevelSet::EMPTY, |(_, levels)| levels), tree.height);
            let at_split = draws_split.then_some(at_split);
            pending.sweeps.push(SweepDraw { block: index, after, at_split, leaf });
        }
        Ok(())
    }

    fn draw_cells(&mut self, wanted: &[u64], rng: &mut impl Rng) -> Result<()> {
        let Self { tree, blocks, cells, pending, .. } = self;
        pending.values.try_reserve(wanted.len()).map_err(|_| Error::Memory)?;
        // A cell that is read alone cannot stand here twice.
        let marking = wanted.len() > 1;
        for &cell in wanted {
            let block = &blocks[block_of(blocks, cell)];
            let (record, mark) = cells.visit(cell);
            let is_new = record.is_none();
            let past = match (record, &block.swept) {
                (Some(record), _) => Past::Own(record),
                (None, Some(swept)) => Past::Swept(swept, (cell - block.start) as usize),
                (None, None) => Past::Nothing,
            };
            let step_move = Move::new(past.last(), pending.step, tree.height);
            let value = if step_move == Move::Stay {
                L::value(past.leaf())
            } else if marking && mark.is_set() {
                // Drawn at an earlier place of this request.
                pending.repeats.push((pending.values.len(), cell));
                f64::NAN
            } else {
                let drawn = tree.draw(step_move, |rank| past.sum(rank), rng);
                let after = step_move.after(past.levels(), tree.height);
                pending.cells.push(CellDraw { cell, after, is_new, drawn });
                if marking {
                    // After the draw: a generator that panics leaves no mark behind.
                    mark.set();
                }
                L::value(drawn.leaf)
            };
            pending.values.push(value);
        }
        Ok(())
    }

    /// The cells that the pending read has drawn on their own, with the values.
    pub(crate) fn drawn_cells(&self) -> impl Iterator<Item = (u64, Drawn<L::Sum>)> + '_ {
        self.pending.cells.iter().map(|draw| (draw.cell, draw.drawn))
    }

    /// The cells that the pending read draws in sweeps.
    pub(crate) fn swept_cells(&self) -> impl Iterator<Item = u64> + '_ {
        self.pending.sweeps.iter().flat_map(|sweep| {
            let block = &self.blocks[sweep.block];
            (block.start..block.start + block.len as u64)
                .filter(|&cell| block.held == 0 || self.cells.get(cell).is_none())
        })
    }

    /// Makes the pending draws the state and hands out the noise, in the order of the request.
    pub(crate) fn commit(&mut self) -> &[f64] {
        for i in 0..self.pending.cells.len() {
            let draw = self.pending.cells[i];
            self.commit_cell(draw, self.pending.step);
        }
        let Self { blocks, cells, pending, .. } = self;
        pending.cells.clear();
        for sweep in pending.sweeps.drain(..) {
            let block = &mut blocks[sweep.block];
            let swept =
                block.swept.get_or_insert_with(|| Swept { step: 0, levels: LevelSet::EMPTY, stack: Vec::new() });
            swept.stack.truncate(sweep.after.keep as usize);
            swept.stack.extend(sweep.at_split);
            swept.stack.push(sweep.leaf);
            swept.levels = sweep.after.levels;
            swept.step = pending.step;
        }
        for (place, cell) in pending.repeats.drain(..) {
            // What is not here stays NaN, and is not released.
            if let Some(record) = cells.get(cell).filter(|record| record.step == pending.step) {
                pending.values[place] = L::value(record.leaf());
            }
        }
        &pending.values
    }

    #[inline]
    fn commit_cell(&mut self, draw: CellDraw<L::Sum>, step: u64) {
        let CellDraw { cell, after, is_new, drawn } = draw;
        if is_new {
            self.commit_new_cell(draw, step);
        } else if let Some(at_split) = drawn.at_split {
            self.cells.replace(cell, step, after.levels, after.keep, &[at_split, drawn.leaf]);
        } else {
            self.cells.replace(cell, step, after.levels, after.keep, &[drawn.leaf]);
        }
    }

    /// The cell leaves the sweeps of its block and takes with it what it keeps from them.
    fn commit_new_cell(&mut self, draw: CellDraw<L::Sum>, step: u64) {
        let CellDraw { cell, after, drawn, .. } = draw;
        let Self { blocks, cells, pending, .. } = self;
        let index = block_of(blocks, cell);
        let block = &mut blocks[index];
        let i = (cell - block.start) as usize;
        let kept = block.swept.iter().flat_map(|swept| &swept.stack[..after.keep as usize]);
        pending.stack.clear();
        pending.stack.extend(kept.map(|sums| sums[i]).chain(drawn.at_split).chain([drawn.leaf]));
        cells.replace(cell, step, after.levels, 0, &pending.stack);
        block.held += 1;
        if block.held == block.len {
            block.swept = None;
        }
    }

    /// Forgets the pending draws, and the values of the last commit.
    pub(crate) fn abandon(&mut self) {
        // Cells that were drawn in a block read carry no mark; to unmark them changes nothing.
        for draw in &self.pending.cells {
            self.cells.unmark(draw.cell);
        }
        self.pending.cells.clear();
        self.pending.sweeps.clear();
        self.pending.repeats.clear();
        self.pending.values.clear();
        // Small reads reuse the buffers, a large one gives them back.
        self.pending.cells.shrink_to(KEPT_CAPACITY);
        self.pending.repeats.shrink_to(KEPT_CAPACITY);
        self.pending.values.shrink_to(KEPT_CAPACITY);
    }

    /// Memory of the noise in bytes, without what a pending read holds.
    pub(crate) fn bytes(&self) -> usize {
        let swept: usize = self
            .blocks
            .iter()
            .filter_map(|block| block.swept.as_ref())
            .flat_map(|swept| &swept.stack)
            .map(|sums| sums.capacity() * size_of::<L::Sum>())
            .sum();
        self.cells.bytes() + swept + self.blocks.capacity() * size_of::<Block<L::Sum>>()
    }

    /// The number of cells that were read on their own.
    #[cfg(test)]
    pub(crate) fn held(&self) -> u64 {
        self.cells.held()
    }
}

#[inline]
fn block_of<S>(blocks: &[Block<S>], cell: u64) -> usize {
    if blocks.len() == 1 { 0 } else { blocks.partition_point(|block| block.start <= cell) - 1 }
}

#[cfg(test)]
mod tests;
