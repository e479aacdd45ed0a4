//! The noise of all cells under one process: cells that are read together share one decision, and draws are made before they
//! become the state.
//!
//! Cells of a block that were only ever read together share one head: their values are kept as arrays by rank (a *sweep* takes
//! one decision for all). A cell that is read on its own gets a record in packed storage, and lives there from then on.

use alloc::vec::Vec;

use rand_core::Rng;

use super::store::{PackedStore, Record, TOUCHED};
use super::{After, Drawn, Head, Process};
use crate::error::{Error, Result, reserved};
use crate::journal::{self, Reader, VARINT, Write, unfit};
use crate::noise::gaussian::fill;
use crate::noise::{Source, Stored};

/// How many elements the buffers of a read keep room for between reads.
pub(crate) const KEPT_CAPACITY: usize = 2048;

/// How many arrays of sweeps are kept for the next ones.
const MOST_DROPPED: usize = 4;

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

/// Neighbouring cells that are swept together.
struct Block<H, V> {
    start: u64,
    len: usize,
    swept: Option<Swept<H, V>>,
    /// The cells of the block with a record of their own.
    held: usize,
}

/// The stacks of the cells of a block that were only read together.
struct Swept<H, V> {
    head: H,
    /// One array a rank; entries of cells with a record of their own are not used.
    stack: Vec<Vec<V>>,
}

impl<H, V> Block<H, V> {
    /// Whether there is a value for each cell, of which a replayed image may have brought some only.
    fn has_all_values(&self) -> bool {
        self.swept.as_ref().is_none_or(|swept| swept.stack.iter().all(|array| array.len() == self.len))
    }
}

/// What a cell keeps from its last read.
enum Past<'a, H, V> {
    /// It was read on its own.
    Own(Record<'a, H, V>),
    /// It was swept, at this place of its block.
    Swept(&'a Swept<H, V>, usize),
    /// It was never read.
    Nothing,
}

impl<H: Head, V: Stored> Past<'_, H, V> {
    #[inline]
    fn head(&self) -> Option<H> {
        match self {
            Self::Own(record) => Some(record.head()),
            Self::Swept(swept, _) => Some(swept.head),
            Self::Nothing => None,
        }
    }

    #[inline]
    fn value(&self, rank: u32) -> V {
        match self {
            Self::Own(record) => record.value(rank),
            Self::Swept(swept, place) => swept.stack[rank as usize][*place],
            Self::Nothing => unreachable!("a cell that was never read has an empty stack"),
        }
    }

    #[inline]
    fn last(&self) -> V {
        match self {
            Self::Own(record) => record.last(),
            Self::Swept(swept, place) => swept.stack[swept.stack.len() - 1][*place],
            Self::Nothing => unreachable!("a cell that was never read has an empty stack"),
        }
    }
}

struct SweepDraw<P: Process> {
    block: usize,
    after: After<P::Head>,
    /// What goes on top of the stack.
    drawn: Vec<Vec<P::Value>>,
}

/// What a read draws for a cell on its own, and what that makes of its stack.
struct CellDraw<P: Process> {
    cell: u64,
    after: After<P::Head>,
    /// The cell has no record yet: what it keeps comes from the sweeps of its block.
    is_new: bool,
    drawn: P::Drawn,
}

/// What is to be drawn for a cell on its own.
struct Planned<P: Process> {
    cell: u64,
    /// Where its noise goes.
    place: usize,
    after: After<P::Head>,
    is_new: bool,
    normals: usize,
    loaded: P::Loaded,
}

impl<P: Process> Default for Planned<P> {
    fn default() -> Self {
        let after = After { head: P::Head::default(), keep: 0 };
        Self { cell: 0, place: 0, after, is_new: false, normals: 0, loaded: P::Loaded::default() }
    }
}

/// A read between its draws and their commit.
struct Pending<P: Process> {
    step: u64,
    cells: Vec<CellDraw<P>>,
    /// The block of cells at hand, of which so many are to be drawn, and are marked.
    planned: Vec<Planned<P>>,
    marked: usize,
    /// What is drawn for them.
    normals: Vec<f64>,
    sweeps: Vec<SweepDraw<P>>,
    /// The noise asked for, in the order of the request.
    values: Vec<f64>,
    /// Places of `values` whose cell is drawn at an earlier place of the same request.
    repeats: Vec<(usize, u64)>,
    /// Room for the arrays of a sweep: empty.
    spare: Vec<Vec<P::Value>>,
    /// Short arrays that sweeps have dropped, for the next ones: empty.
    dropped: Vec<Vec<P::Value>>,
    /// Room for one stack.
    stack: Vec<P::Value>,
}

/// The noise of all cells.
pub(crate) struct CellNoise<P: Process> {
    process: P,
    size: u64,
    blocks: Vec<Block<P::Head, P::Value>>,
    cells: PackedStore<P::Head, P::Value>,
    pending: Pending<P>,
}

impl<P: Process> CellNoise<P> {
    /// Noise for consecutive blocks of these lengths.
    pub(crate) fn new(process: P, lengths: &[usize]) -> Self {
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
            planned: Vec::new(),
            marked: 0,
            normals: Vec::new(),
            sweeps: Vec::new(),
            values: Vec::new(),
            repeats: Vec::new(),
            spare: Vec::new(),
            dropped: Vec::new(),
            stack: Vec::new(),
        };
        let cells = PackedStore::new(size);
        Self { process, size, blocks, cells, pending }
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
            Request::All => {
                self.pending.values.try_reserve_exact(self.size as usize).map_err(|_| Error::Memory)?;
                (0..self.blocks.len()).try_for_each(|block| self.draw_block(block, rng))
            }
            Request::Block(block) => self.draw_block(block, rng),
            // A vector of one cell is always swept: it needs no record.
            Request::Cells(cells) if self.size == 1 => {
                if !cells.is_empty() {
                    self.pending.values.try_reserve_exact(cells.len()).map_err(|_| Error::Memory)?;
                    self.draw_block(0, rng)?;
                    self.pending.values.resize(cells.len(), self.pending.values[0]);
                }
                Ok(())
            }
            Request::Cells(cells) => self.draw_cells(cells, rng),
        }
    }

    fn draw_block(&mut self, index: usize, rng: &mut impl Rng) -> Result<()> {
        let Self { process, blocks, cells, pending, .. } = self;
        let block = &blocks[index];
        let (step, last) = (pending.step, block.swept.as_ref().map(|swept| swept.head));
        pending.values.try_reserve_exact(block.len).map_err(|_| Error::Memory)?;

        // Cells without a record share a move; a block whose cells all have one is not swept.
        let shared = process.next(last, step).filter(|_| block.held < block.len);
        let mut arrays = core::mem::take(&mut pending.spare);
        for _ in 0..shared.map_or(0, |step_move| process.drawn(step_move)) {
            // No array with room for more cells than there are stays in a block.
            let mut array = pending.dropped.pop().filter(|array| array.capacity() <= block.len).unwrap_or_default();
            array.try_reserve_exact(block.len).map_err(|_| Error::Memory)?;
            arrays.push(array);
        }
        // No cell has a record: all draw alike, or none does. One cell is not worth the preparation of a sweep.
        let alone = shared.filter(|_| block.held == 0 && block.len > 1);
        if let Some(step_move) = alone {
            let stack = block.swept.as_ref().map_or(&[][..], |swept| &swept.stack);
            process.sweep(step_move, stack, block.len, &mut arrays, &mut pending.values, rng);
        }
        for i in 0..if alone.is_some() { 0 } else { block.len } {
            let cell = block.start + i as u64;
            let record = if block.held == 0 { None } else { cells.get(cell) };
            let own = record.is_some();
            let past = match (record, &block.swept) {
                (Some(record), _) => Past::Own(record),
                (None, Some(swept)) => Past::Swept(swept, i),
                (None, None) => Past::Nothing,
            };
            let step_move = if own { process.next(past.head(), step) } else { shared };
            let value = match step_move {
                None => past.last(),
                Some(step_move) => {
                    let loaded = process.load(step_move, |rank| past.value(rank));
                    let drawn = process.draw(loaded, &mut Source::new(&[], rng));
                    if own {
                        let after = process.after(step_move, past.head(), step);
                        pending.cells.push(CellDraw { cell, after, is_new: false, drawn });
                    } else {
                        arrays.iter_mut().zip(drawn.values()).for_each(|(array, value)| array.push(value));
                    }
                    drawn.last()
                }
            };
            if own {
                // Keeps the arrays aligned; an entry of a cell with a record of its own is never read.
                arrays.iter_mut().for_each(|array| array.push(value));
                if shared.is_some() {
                    // What the process keeps for the shared move may have made room for that of this cell.
                    process.next(last, step);
                }
            }
            pending.values.push(P::noise(value));
        }
        match shared {
            Some(step_move) => {
                let after = process.after(step_move, last, step);
                pending.sweeps.push(SweepDraw { block: index, after, drawn: arrays });
            }
            None => pending.spare = arrays,
        }
        Ok(())
    }

    fn draw_cells(&mut self, wanted: &[u64], rng: &mut impl Rng) -> Result<()> {
        let pending = &mut self.pending;
        pending.values.try_reserve_exact(wanted.len()).map_err(|_| Error::Memory)?;
        // Each cell is drawn once at most, however often it stands there.
        let most = wanted.len().min(self.size as usize);
        pending.cells.try_reserve(most).map_err(|_| Error::Memory)?;
        if pending.planned.len() < wanted.len().min(P::BLOCK) {
            pending.planned.resize_with(wanted.len().min(P::BLOCK), Planned::default);
        }
        for cells in wanted.chunks(TOUCHED) {
            self.cells.touch(cells);
            for block in cells.chunks(P::BLOCK) {
                // A cell that is read alone cannot stand there twice.
                let normals = self.plan_cells(block, wanted.len() > 1);
                self.draw_planned(normals, rng);
            }
        }
        Ok(())
    }

    /// Looks up cells, and says how many normals their draws take.
    #[inline]
    fn plan_cells(&mut self, wanted: &[u64], marking: bool) -> usize {
        let Self { process, blocks, cells, pending, .. } = self;
        let Pending { step, planned, values, repeats, .. } = &mut *pending;
        let (mut count, mut normals) = (0, 0);
        for &cell in wanted {
            let slot = &mut planned[count];
            slot.cell = cell;
            slot.place = values.len();
            let (record, mark) = cells.visit(cell);
            let known = match record {
                Some(record) => plan(process, *step, Past::Own(record), slot),
                None => plan(process, *step, past_of_new(blocks, cell), slot),
            };
            values.push(known.unwrap_or(f64::NAN));
            if known.is_none() {
                if marking && mark.set() {
                    // Drawn at an earlier place of this request.
                    repeats.push((slot.place, cell));
                } else {
                    normals += slot.normals;
                    count += 1;
                }
            }
        }
        pending.marked = count;
        normals
    }

    /// Draws for the cells that were looked up.
    #[inline]
    fn draw_planned(&mut self, normals: usize, rng: &mut impl Rng) {
        let Self { process, pending, .. } = self;
        pending.normals.resize(normals, 0.0);
        fill(&mut pending.normals, rng);
        let mut source = Source::new(&pending.normals, rng);
        for planned in &pending.planned[..pending.marked] {
            let drawn = process.draw(planned.loaded, &mut source);
            pending.values[planned.place] = P::noise(drawn.last());
            pending.cells.push(CellDraw { cell: planned.cell, after: planned.after, is_new: planned.is_new, drawn });
        }
        pending.marked = 0;
    }

    /// The cells that the pending read has drawn on their own, with the values.
    pub(crate) fn drawn_cells(&self) -> impl Iterator<Item = (u64, P::Drawn)> + '_ {
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

    /// Makes the pending draws the state and hands out the noise, in the order of the request; it may be taken.
    pub(crate) fn commit(&mut self) -> &mut Vec<f64> {
        let Self { blocks, cells, pending, .. } = self;
        for CellDraw { cell, after, is_new, drawn } in &pending.cells {
            put(blocks, cells, &mut pending.stack, *cell, *after, *is_new, drawn);
        }
        pending.cells.clear();
        while let Some(SweepDraw { block, after, mut drawn }) = pending.sweeps.pop() {
            put_sweep(&mut blocks[block], after, &mut drawn, &mut pending.dropped);
            pending.spare = drawn;
        }
        for (place, cell) in pending.repeats.drain(..) {
            // What is not here stays NaN, and is not released.
            if let Some(record) = cells.get(cell).filter(|record| P::step(record.head()) == pending.step) {
                pending.values[place] = P::noise(record.last());
            }
        }
        &mut pending.values
    }

    /// Takes back what a commit has handed out, as room for the next one.
    pub(crate) fn keep_room(&mut self, mut values: Vec<f64>) {
        values.clear();
        self.pending.values = values;
    }

    /// Forgets the pending draws, and the values of the last commit.
    pub(crate) fn abandon(&mut self) {
        // Cells that were drawn in a block read carry no mark; to unmark them changes nothing.
        let pending = &mut self.pending;
        if pending.values.is_empty() && pending.cells.is_empty() && pending.sweeps.is_empty() && pending.marked == 0 {
            return;
        }
        // Those that were marked, but not drawn: the generator has panicked.
        let planned = pending.planned[..core::mem::take(&mut pending.marked)].iter().map(|planned| planned.cell);
        for cell in pending.cells.iter().map(|draw| draw.cell).chain(planned) {
            self.cells.unmark(cell);
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

    /// At most so many bytes are what `record` writes.
    pub(crate) fn record_bytes(&self) -> usize {
        let word = <P::Value as Stored>::BYTES;
        let of_cells: usize = self.pending.cells.iter().map(|draw| VARINT + word * draw.drawn.count()).sum::<usize>();
        let of_sweeps =
            self.pending.sweeps.iter().map(|sweep| 1 + VARINT + word * sweep.drawn.iter().map(Vec::len).sum::<usize>());
        1 + VARINT + of_cells + of_sweeps.sum::<usize>()
    }

    /// Writes the pending draws down, in the order of their commit.
    pub(crate) fn record(&self, out: &mut Vec<u8>) {
        if !self.pending.cells.is_empty() {
            out.byte(journal::CELLS);
            out.number(self.pending.cells.len() as u64);
            let mut before = 0;
            for draw in &self.pending.cells {
                out.cell(draw.cell, &mut before);
                draw.drawn.values().for_each(|value| out.value(value));
            }
        }
        for sweep in &self.pending.sweeps {
            out.byte(journal::SWEEP);
            out.number(sweep.block as u64);
            sweep.drawn.iter().flatten().for_each(|&value| out.value(value));
        }
    }

    /// Does again what a record says of this kind. `step` is the present one, and no noise is beyond `limit`.
    ///
    /// # Errors
    /// [`Error::Journal`] for what no vector would have written, [`Error::Memory`]; the state is not to be used then.
    pub(crate) fn replay(&mut self, kind: u8, step: u64, limit: f64, from: &mut Reader<'_>) -> Result<()> {
        match kind {
            journal::CELLS => self.replay_cells(step, limit, from),
            journal::SWEEP => self.replay_sweep(step, limit, from),
            journal::HELD => self.replay_held(step, limit, from),
            journal::SWEPT => self.replay_swept(step, from),
            journal::SWEPT_VALUES => self.replay_swept_values(limit, from),
            _ => Err(unfit("a record of a known kind")),
        }
    }

    /// Values of a stack, from a rank on.
    fn values_of(process: &P, first: usize, count: usize, limit: f64, from: &mut Reader<'_>) -> Result<Vec<P::Value>> {
        let mut values: Vec<P::Value> = reserved(count)?;
        for rank in first..first + count {
            values.push(Self::value_of(process, rank, limit, from)?);
        }
        Ok(values)
    }

    /// A value that a stack may have at this rank.
    fn value_of(process: &P, rank: usize, limit: f64, from: &mut Reader<'_>) -> Result<P::Value> {
        let value = from.value()?;
        if process.is_possible(rank, value, limit) { Ok(value) } else { Err(unfit("noise of a possible size")) }
    }

    fn replay_cells(&mut self, step: u64, limit: f64, from: &mut Reader<'_>) -> Result<()> {
        let Self { process, blocks, cells, pending, size } = self;
        let mut before = 0;
        for _ in 0..from.count(1)? {
            let cell = from.cell(*size, &mut before)?;
            let block = &blocks[block_of(blocks, cell)];
            let last = match (cells.get(cell), &block.swept) {
                (Some(record), _) => Some((record.head(), false)),
                (None, Some(swept)) => Some((swept.head, true)),
                (None, None) => None,
            };
            let head = last.map(|(head, _)| head);
            let is_new = last.is_none_or(|(_, is_swept)| is_swept);
            let step_move = process.next(head, step).ok_or(unfit("a cell that was not read at this step"))?;
            let after = process.after(step_move, head, step);
            if is_new && !block.has_all_values() {
                return Err(unfit("all pieces of an image"));
            }
            let drawn = Self::values_of(process, after.keep as usize, process.drawn(step_move), limit, from)?;
            put(blocks, cells, &mut pending.stack, cell, after, is_new, &drawn[..]);
        }
        Ok(())
    }

    /// A block, by its number.
    fn block_index(&self, from: &mut Reader<'_>) -> Result<usize> {
        let index = usize::try_from(from.number()?).ok().filter(|&index| index < self.blocks.len());
        index.ok_or(unfit("a block of the vector"))
    }

    /// A value for each of some cells of a rank.
    fn array_of(
        process: &P,
        rank: usize,
        array: &mut Vec<P::Value>,
        count: usize,
        limit: f64,
        from: &mut Reader<'_>,
    ) -> Result<()> {
        let word = <P::Value as Stored>::BYTES;
        if count.checked_mul(word).is_none_or(|bytes| bytes > from.len()) {
            return Err(unfit("a value for each cell of the block"));
        }
        array.try_reserve_exact(count).map_err(|_| Error::Memory)?;
        for _ in 0..count {
            array.push(Self::value_of(process, rank, limit, from)?);
        }
        Ok(())
    }

    fn replay_sweep(&mut self, step: u64, limit: f64, from: &mut Reader<'_>) -> Result<()> {
        let index = self.block_index(from)?;
        let block = &mut self.blocks[index];
        let last = block.swept.as_ref().map(|swept| swept.head);
        let shared = self.process.next(last, step).filter(|_| block.held < block.len);
        let step_move = shared.ok_or(unfit("a block that was not read at this step"))?;
        let after = self.process.after(step_move, last, step);
        if !block.has_all_values() {
            return Err(unfit("all pieces of an image"));
        }
        let mut drawn = Vec::new();
        for rank in after.keep as usize..after.keep as usize + self.process.drawn(step_move) {
            let mut array = Vec::new();
            Self::array_of(&self.process, rank, &mut array, block.len, limit, from)?;
            drawn.push(array);
        }
        put_sweep(block, after, &mut drawn, &mut self.pending.dropped);
        Ok(())
    }

    fn replay_held(&mut self, now: u64, limit: f64, from: &mut Reader<'_>) -> Result<()> {
        let mut before = 0;
        for _ in 0..from.count(1)? {
            let cell = from.cell(self.size, &mut before)?;
            let head = from.value()?;
            let count = from.count(<P::Value as Stored>::BYTES)?;
            if !self.process.fits(head, count, now) {
                return Err(unfit("the state of a cell"));
            }
            let values = Self::values_of(&self.process, 0, count, limit, from)?;
            let index = block_of(&self.blocks, cell);
            let block = &mut self.blocks[index];
            if self.cells.get(cell).is_some() {
                return Err(unfit("each cell once"));
            }
            self.cells.replace(cell, head, 0, &values[..]);
            block.held += 1;
        }
        Ok(())
    }

    fn replay_swept(&mut self, now: u64, from: &mut Reader<'_>) -> Result<()> {
        let index = self.block_index(from)?;
        let head = from.value()?;
        let ranks = usize::try_from(from.number()?).map_err(|_| unfit("the state of a block"))?;
        let block = &mut self.blocks[index];
        if !self.process.fits(head, ranks, now) || block.swept.is_some() || block.held == block.len {
            return Err(unfit("the state of a block"));
        }
        let mut stack = reserved(ranks)?;
        stack.resize_with(ranks, Vec::new);
        block.swept = Some(Swept { head, stack });
        Ok(())
    }

    fn replay_swept_values(&mut self, limit: f64, from: &mut Reader<'_>) -> Result<()> {
        let index = self.block_index(from)?;
        let rank = usize::try_from(from.number()?).map_err(|_| unfit("the state of a block"))?;
        let count = from.count(<P::Value as Stored>::BYTES)?;
        let block = &mut self.blocks[index];
        let stack = block.swept.as_mut().map(|swept| &mut swept.stack).filter(|stack| rank < stack.len());
        let stack = stack.ok_or(unfit("the state of a block"))?;
        let array = &mut stack[rank];
        if count > block.len - array.len() {
            return Err(unfit("one value for each cell of the block"));
        }
        if array.is_empty() {
            array.try_reserve_exact(block.len).map_err(|_| Error::Memory)?;
        }
        Self::array_of(&self.process, rank, array, count, limit, from)
    }

    /// Whether what was replayed is a whole state.
    pub(crate) fn is_whole(&self) -> bool {
        self.blocks.iter().all(|block| block.has_all_values() && (block.swept.is_none() || block.held < block.len))
    }

    /// Writes the state, in pieces of about `piece` bytes that each are whole records.
    pub(crate) fn image<E>(
        &self,
        piece: usize,
        each: &mut impl FnMut(&[u8]) -> core::result::Result<(), E>,
    ) -> core::result::Result<(), E> {
        let mut out = Vec::new();
        let word = <P::Value as Stored>::BYTES;
        // As many cells as there are, or as a piece holds.
        let (mut rest, mut records) = (self.cells.held(), self.cells.iter());
        while rest > 0 {
            let count = rest.min((piece / 64).max(1) as u64);
            out.byte(journal::HELD);
            out.number(count);
            let mut before = 0;
            for (cell, record) in records.by_ref().take(count as usize) {
                out.cell(cell, &mut before);
                out.value(record.head());
                out.number(record.values().count() as u64);
                record.values().for_each(|value| out.value(value));
            }
            rest -= count;
            each(&out)?;
            out.clear();
        }
        for (index, block) in self.blocks.iter().enumerate() {
            let Some(swept) = &block.swept else { continue };
            out.byte(journal::SWEPT);
            out.number(index as u64);
            out.value(swept.head);
            out.number(swept.stack.len() as u64);
            for (rank, array) in swept.stack.iter().enumerate() {
                for values in array.chunks((piece / word).max(1)) {
                    out.byte(journal::SWEPT_VALUES);
                    out.number(index as u64);
                    out.number(rank as u64);
                    out.number(values.len() as u64);
                    values.iter().for_each(|&value| out.value(value));
                    if out.len() >= piece {
                        each(&out)?;
                        out.clear();
                    }
                }
            }
        }
        if out.is_empty() { Ok(()) } else { each(&out) }
    }

    /// Memory of the noise in bytes, without what a pending read holds.
    pub(crate) fn bytes(&self) -> usize {
        let swept: usize = self
            .blocks
            .iter()
            .filter_map(|block| block.swept.as_ref())
            .flat_map(|swept| &swept.stack)
            .map(|values| values.capacity() * size_of::<P::Value>())
            .sum();
        let blocks = self.blocks.capacity() * size_of::<Block<P::Head, P::Value>>();
        self.cells.bytes() + swept + blocks + self.process.bytes()
    }
}

#[cfg(test)]
impl<L: crate::noise::Law> CellNoise<super::tree::Tree<L>> {
    /// What a restart must not do: of swept blocks only the root and the leaf are kept.
    pub(crate) fn forget_middle(&mut self) {
        for swept in self.blocks.iter_mut().filter_map(|block| block.swept.as_mut()) {
            let (bits, len) = (swept.head.levels.bits(), swept.stack.len());
            let ends = bits & bits.wrapping_neg() | 1 << bits.ilog2();
            swept.head.levels = crate::level_set::LevelSet::from_bits(ends);
            swept.stack.drain(1..len - 1);
        }
    }
}

#[cfg(test)]
impl<P: Process> CellNoise<P> {
    pub(crate) fn process(&self) -> &P {
        &self.process
    }

    /// The number of cells that were read on their own.
    pub(crate) fn held(&self) -> u64 {
        self.cells.held()
    }

    /// What is kept of a cell.
    pub(crate) fn kept(&self, cell: u64) -> Option<(P::Head, Vec<P::Value>)> {
        if let Some(record) = self.cells.get(cell) {
            return Some((record.head(), record.values().collect()));
        }
        let block = &self.blocks[block_of(&self.blocks, cell)];
        let swept = block.swept.as_ref()?;
        Some((swept.head, swept.stack.iter().map(|values| values[(cell - block.start) as usize]).collect()))
    }
}

/// What a cell without a record keeps from its last read.
fn past_of_new<H, V>(blocks: &[Block<H, V>], cell: u64) -> Past<'_, H, V> {
    let block = &blocks[block_of(blocks, cell)];
    block.swept.as_ref().map_or(Past::Nothing, |swept| Past::Swept(swept, (cell - block.start) as usize))
}

/// Plans what a read at `step` draws for a cell; or says the noise of the last read, if that was at this step.
#[inline(always)]
fn plan<P: Process>(
    process: &mut P,
    step: u64,
    past: Past<'_, P::Head, P::Value>,
    planned: &mut Planned<P>,
) -> Option<f64> {
    let last = past.head();
    let Some(step_move) = process.next(last, step) else { return Some(P::noise(past.last())) };
    planned.after = process.after(step_move, last, step);
    planned.is_new = !matches!(past, Past::Own(_));
    planned.normals = process.normals(step_move);
    planned.loaded = process.load(step_move, |rank| past.value(rank));
    None
}

/// Gives a cell the state after its own draw.
#[inline]
fn put<H: Head, V: Stored>(
    blocks: &mut [Block<H, V>],
    cells: &mut PackedStore<H, V>,
    stack: &mut Vec<V>,
    cell: u64,
    after: After<H>,
    is_new: bool,
    drawn: &(impl Drawn<Value = V> + ?Sized),
) {
    if !is_new {
        cells.replace(cell, after.head, after.keep, drawn);
        return;
    }
    // The cell leaves the sweeps of its block and takes with it what it keeps from them.
    let index = block_of(blocks, cell);
    let block = &mut blocks[index];
    let i = (cell - block.start) as usize;
    let kept = block.swept.iter().flat_map(|swept| &swept.stack[..after.keep as usize]);
    stack.clear();
    stack.extend(kept.map(|values| values[i]).chain(drawn.values()));
    cells.replace(cell, after.head, 0, &stack[..]);
    block.held += 1;
    if block.held == block.len {
        block.swept = None;
    }
}

/// Gives the cells of a block without a record the state after their sweep.
fn put_sweep<H: Copy, V>(block: &mut Block<H, V>, after: After<H>, drawn: &mut Vec<Vec<V>>, dropped: &mut Vec<Vec<V>>) {
    let swept = block.swept.get_or_insert_with(|| Swept { head: after.head, stack: Vec::new() });
    for mut array in swept.stack.drain(after.keep as usize..) {
        if array.capacity() <= KEPT_CAPACITY && dropped.len() < MOST_DROPPED {
            array.clear();
            dropped.push(array);
        }
    }
    swept.stack.append(drawn);
    swept.head = after.head;
}

#[inline]
fn block_of<H, V>(blocks: &[Block<H, V>], cell: u64) -> usize {
    if blocks.len() == 1 { 0 } else { blocks.partition_point(|block| block.start <= cell) - 1 }
}

#[cfg(test)]
mod tests;
