//! The vector under continual observation: exact counters, noise, clock, calibration and lattice. The only place
//! where a release happens. Paper, sections 1.2 and 3; every other structure is a linear map onto its cells.
//!
//! An update adds to exact counters and draws nothing. A read names cells, happens at the public step, and seals
//! it. It has two halves: [`ContinualVector::draw`] draws what the read needs and changes nothing,
//! [`Pending::commit`] makes that the state and releases the values. Cost: an update takes time linear in its
//! non-zeros; a read takes constant time for each cell, whatever the horizon and the time since the last read.

use alloc::vec::Vec;
use core::fmt;

use rand_core::{TryCryptoRng, TryRng};

use crate::calibration::{self, Calibration, Kind, Mechanism, Sensitivity, Unit};
use crate::error::{Error, Given, Result, reserved, zeroed};
use crate::journal::{self, Journal, Reader, VARINT, Write, unfit};
use crate::lattice::{Bound, Index, Lattice, Norm, Quantity};
use crate::math::{mix, power_of_two, sqrt};
use crate::mechanism::blt::BltProcess;
use crate::mechanism::cells::{CellNoise, KEPT_CAPACITY, Request};
use crate::mechanism::tree::Tree;
use crate::noise::FailStop;
use crate::noise::gaussian::Gaussian;
use crate::noise::laplace::Laplace;
use crate::privacy::Loss;
use crate::release_law::ReleaseLaw;
use crate::time::{Clock, Horizon};

/// What to do with an update that is over its bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnExcess {
    /// It is an invalid element: [`Error::Excess`], or dropped with [`Invalid::Drop`].
    #[default]
    Error,
    /// It is scaled down onto the bound, and rounded toward zero.
    Clip,
}

/// What to do with an invalid element of a batch: an index out of range, NaN or infinity, an update over its bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Invalid {
    /// The call fails and changes nothing. A caller that catches the error and carries on lets one bad element move
    /// a whole batch, which no privacy guarantee covers.
    #[default]
    Raise,
    /// Bad updates are left out, each on its own. How many is for the operator alone: it is not private.
    Drop,
}

/// The cells of a read.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Cells<'a, I = u64> {
    /// All cells, in order.
    All,
    /// All cells of one block, in order.
    Block(usize),
    /// These cells; one may stand here more than once and then has the same answer each time.
    Indices(&'a [I]),
}

impl<'a, I> From<&'a [I]> for Cells<'a, I> {
    fn from(indices: &'a [I]) -> Self {
        Self::Indices(indices)
    }
}

impl<'a, I, const N: usize> From<&'a [I; N]> for Cells<'a, I> {
    fn from(indices: &'a [I; N]) -> Self {
        Self::Indices(indices)
    }
}

/// A batch of updates, a row each. A row is what one unit contributes in one update.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Rows<'a, I, V> {
    /// Full rows one after the other: `values.len()` is a multiple of the number of cells.
    Dense {
        /// The values, row by row.
        values: &'a [V],
    },
    /// Compressed sparse rows: row `i` is `indices[offsets[i]..offsets[i + 1]]` with the values at the same places.
    /// Indices that stand twice in a row are added first.
    Sparse {
        /// One more than rows; from 0 to `indices.len()`, not decreasing.
        offsets: &'a [usize],
        /// The cells.
        indices: &'a [I],
        /// As many values as indices.
        values: &'a [V],
    },
    /// Rows of one cell: row `i` adds `values[i]` to cell `indices[i]`.
    Single {
        /// The cells.
        indices: &'a [I],
        /// As many values as indices.
        values: &'a [V],
    },
}

/// Collects the parameters of a [`ContinualVector`]; nothing is checked before [`Builder::build`] or
/// [`Builder::plan`](crate::plan::Plan).
#[derive(Clone, Debug)]
#[must_use]
pub struct Builder {
    pub(crate) horizon: u64,
    pub(crate) loss: Loss,
    pub(crate) blocks: Vec<usize>,
    pub(crate) bound: BoundParameter,
    pub(crate) mechanism: Mechanism,
    pub(crate) unit: Unit,
    pub(crate) contributions: u32,
    pub(crate) on_excess: OnExcess,
    pub(crate) invalid: Invalid,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum BoundParameter {
    Weight(u32),
    Norm(f64),
    /// An update moves this many cells, each by at most the weight.
    Cells {
        weight: u32,
        cells: u32,
    },
}

/// What parameters amount to, once they are checked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Checked {
    pub(crate) horizon: Horizon,
    pub(crate) size: u64,
    pub(crate) bound: Bound,
    pub(crate) calibration: Calibration,
    pub(crate) lattice: Lattice,
}

impl Builder {
    /// `n` cells in one block.
    pub fn cells(self, n: usize) -> Self {
        self.blocks(&[n])
    }

    /// Consecutive blocks of these lengths. Blocks that are read whole are stored and read faster.
    pub fn blocks(mut self, lengths: &[usize]) -> Self {
        self.blocks = lengths.to_vec();
        self
    }

    /// Integer updates whose L2 norm (L1 norm with a pure budget) is at most `w`, `1 <= w <= 2^31`. This is the default, with
    /// `w = 1`.
    pub fn max_weight(mut self, w: u32) -> Self {
        self.bound = BoundParameter::Weight(w);
        self
    }

    /// Real updates whose L2 norm (L1 norm with a pure budget) is at most `max_norm`, kept in multiples of `2^(floor(log2
    /// max_norm) - 20)`.
    pub fn max_norm(mut self, max_norm: f64) -> Self {
        self.bound = BoundParameter::Norm(max_norm);
        self
    }

    /// How noise is correlated over time.
    pub fn mechanism(mut self, mechanism: Mechanism) -> Self {
        self.mechanism = mechanism;
        self
    }

    /// What is protected.
    pub fn unit(mut self, unit: Unit) -> Self {
        self.unit = unit;
        self
    }

    /// How many units one person may contribute: any `m` of them are protected together.
    pub fn contributions(mut self, m: u32) -> Self {
        self.contributions = m;
        self
    }

    /// What happens to updates over the bound.
    pub fn on_excess(mut self, on_excess: OnExcess) -> Self {
        self.on_excess = on_excess;
        self
    }

    /// What happens to invalid elements.
    pub fn invalid(mut self, invalid: Invalid) -> Self {
        self.invalid = invalid;
        self
    }

    /// The number of cells, as given.
    pub fn size(&self) -> usize {
        self.blocks.iter().fold(0, |sum, &len| sum.saturating_add(len))
    }

    /// What all answers together will cost.
    pub fn loss(&self) -> Loss {
        self.loss
    }

    /// States the sensitivity of a structure on top: an update moves `cells` cells, each by at most `weight`. The
    /// structure itself sees to it, as it adds with [`ContinualVector::add`].
    pub(crate) fn cells_of_update(mut self, weight: u32, cells: u32) -> Self {
        self.bound = BoundParameter::Cells { weight, cells };
        self
    }

    pub(crate) fn check(&self) -> Result<Checked> {
        let size = self.blocks.iter().try_fold(0usize, |sum, &len| if len == 0 { None } else { sum.checked_add(len) });
        let size = match size {
            Some(size) if size > 0 => size as u64,
            _ => {
                let allowed = "a number of cells that is at least 1 (in every block) and fits in memory";
                return Err(Error::Parameter { name: "size", given: self.size().into(), allowed });
            }
        };
        let horizon = Horizon::new(self.horizon)?;
        let norm = if self.loss.is_pure() { Norm::L1 } else { Norm::L2 };
        let (bound, cells) = match self.bound {
            BoundParameter::Weight(w) => (Bound::integer(w, norm)?, 1),
            BoundParameter::Norm(size) => (Bound::real(size, norm)?, 1),
            BoundParameter::Cells { weight, cells } => (Bound::integer(weight, norm)?, cells),
        };
        let sensitivity = Sensitivity { l1: bound.size * f64::from(cells), l2: bound.size * sqrt(f64::from(cells)) };
        let calibration =
            calibration::scale(self.loss, self.mechanism, self.unit, self.contributions, horizon, sensitivity)?;
        let lattice = Lattice::new(bound.unit, calibration.scale())?;
        Ok(Checked { horizon, size, bound, calibration, lattice })
    }

    /// Builds the vector, all counters zero, the clock at step 1.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a horizon outside of `1..=2^62`, no cells or more than memory holds, a bound out of its
    /// range, zero contributions, a noise scale too small or too large for the counters' unit.
    pub fn build(&self) -> Result<ContinualVector> {
        let checked = self.check()?;
        let calibration = &checked.calibration;
        let (levels, scale, blocks) = (calibration.levels(), calibration.scale(), &self.blocks);
        let noise = match calibration.kind() {
            Kind::GaussianTree => Noise::GaussianTree(CellNoise::new(Tree::new(levels, Gaussian::new(scale)), blocks)),
            Kind::LaplaceTree => {
                let law = Laplace::new(calibration.laplace_scale(), levels)?;
                Noise::LaplaceTree(CellNoise::new(Tree::new(levels, law), blocks))
            }
            Kind::Blt(blt) => Noise::Blt(CellNoise::new(BltProcess::new(blt, scale, checked.size), blocks)),
        };
        self.assemble(checked, noise)
    }

    /// The vector with exact releases, for tests of what is computed from them.
    #[cfg(test)]
    pub(crate) fn build_exact(&self) -> Result<ContinualVector> {
        let mut checked = self.check()?;
        checked.lattice = Lattice::exact(checked.bound.unit);
        let levels = checked.calibration.levels();
        self.assemble(checked, Noise::ZeroTree(CellNoise::new(Tree::new(levels, crate::noise::Zero), &self.blocks)))
    }

    fn assemble(&self, checked: Checked, noise: Noise) -> Result<ContinualVector> {
        let size = checked.size as usize;
        let allowed = "a number of cells that fits in memory (8 bytes each)";
        let counters = zeroed(size).ok_or(Error::Parameter { name: "size", given: size.into(), allowed })?;
        Ok(ContinualVector {
            builder: self.clone(),
            clock: Clock::new(checked.horizon),
            checked,
            counters,
            total: 0,
            noise,
            journal: None,
            wanted: Vec::new(),
            adds: Vec::new(),
        })
    }

    /// A key for a generator of tests and reproducible studies, from a seed and every parameter that the noise depends on: two
    /// structures with different parameters and one seed do not share noise, a second structure with the same
    /// parameters repeats it. Not for production: whoever knows the seed knows the noise.
    pub fn insecure_key(&self, structure: &str, seed: u64) -> [u8; 32] {
        self.insecure_key_with(structure, seed, 0)
    }

    /// As `insecure_key`, with a parameter more.
    pub(crate) fn insecure_key_with(&self, structure: &str, seed: u64, parameter: u64) -> [u8; 32] {
        let (kind, bound) = match self.bound {
            BoundParameter::Weight(w) => (0, u64::from(w)),
            BoundParameter::Norm(norm) => (1, norm.to_bits()),
            BoundParameter::Cells { weight, cells } => (2, (u64::from(weight) << 32) | u64::from(cells)),
        };
        let budget = match self.loss {
            Loss::Gaussian { mu } => mu.to_bits(),
            // No mu has this sign.
            Loss::Pure { epsilon } => (-epsilon).to_bits(),
        };
        let parameters = [
            self.horizon,
            budget,
            kind,
            bound,
            self.mechanism.code(),
            self.unit as u64,
            u64::from(self.contributions),
            parameter,
            self.blocks.len() as u64,
        ];
        let name = structure.bytes().map(u64::from);
        let blocks = self.blocks.iter().map(|&len| len as u64);
        let mut lanes = [0, 1, 2];
        for word in name.chain(parameters).chain(blocks) {
            for lane in &mut lanes {
                *lane = mix(*lane ^ word);
            }
        }
        let mut key = [0; 32];
        for (bytes, word) in key.chunks_exact_mut(8).zip([seed, lanes[0], lanes[1], lanes[2]]) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        key
    }
}

/// The noise of all cells, by law and correlation.
#[expect(clippy::large_enum_variant, reason = "there is one a vector, and the fast one is not boxed")]
enum Noise {
    GaussianTree(CellNoise<Tree<Gaussian>>),
    LaplaceTree(CellNoise<Tree<Laplace>>),
    Blt(CellNoise<BltProcess>),
    #[cfg(test)]
    ZeroTree(CellNoise<Tree<crate::noise::Zero>>),
}

/// Runs one expression for whichever noise there is.
macro_rules! with_noise {
    ($noise:expr, $name:ident => $body:expr) => {
        match $noise {
            Noise::GaussianTree($name) => $body,
            Noise::LaplaceTree($name) => $body,
            Noise::Blt($name) => $body,
            #[cfg(test)]
            Noise::ZeroTree($name) => $body,
        }
    };
}

/// A vector of counters that follows updates and can be read at any time step, under one privacy guarantee for all
/// answers together. Not `Clone`: a second copy that answers would be a second release.
pub struct ContinualVector {
    builder: Builder,
    checked: Checked,
    clock: Clock,
    counters: Vec<i64>,
    /// At least the largest absolute value of a counter; while it is below `i64::MAX` nothing can overflow.
    total: u64,
    noise: Noise,
    /// What was done since it was last taken, if that is kept.
    journal: Option<Journal>,
    /// Room for the cells of a small read.
    wanted: Vec<u64>,
    /// Room for the adds of a small update: empty.
    adds: Vec<(u64, i64, usize)>,
}

/// Shows public parameters only: neither counters nor noise.
impl fmt::Debug for ContinualVector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ContinualVector")
            .field("size", &self.checked.size)
            .field("now", &self.clock.now())
            .field("horizon", &self.clock.horizon().steps())
            .field("loss", &self.builder.loss)
            .field("mechanism", &self.builder.mechanism)
            .field("unit", &self.builder.unit)
            .field("contributions", &self.builder.contributions)
            .finish_non_exhaustive()
    }
}

impl ContinualVector {
    /// Starts a vector with `horizon` time steps (`1 <= horizon <= 2^62`) under a budget. One step is the static,
    /// one-shot mechanism. A long horizon is cheap, and at its end the vector is spent: choose it long.
    pub fn builder(horizon: u64, budget: impl Into<Loss>) -> Builder {
        Builder {
            horizon,
            loss: budget.into(),
            blocks: Vec::new(),
            bound: BoundParameter::Weight(1),
            mechanism: Mechanism::default(),
            unit: Unit::default(),
            contributions: 1,
            on_excess: OnExcess::default(),
            invalid: Invalid::default(),
        }
    }

    /// The parameters.
    pub fn parameters(&self) -> &Builder {
        &self.builder
    }

    /// The number of cells.
    pub fn size(&self) -> u64 {
        self.checked.size
    }

    /// The present step, `1..=horizon`.
    pub fn now(&self) -> u64 {
        self.clock.now()
    }

    /// The last step.
    pub fn horizon(&self) -> u64 {
        self.clock.horizon().steps()
    }

    /// Whether the present step was read, so that updates must wait for the next.
    pub fn is_sealed(&self) -> bool {
        self.clock.is_sealed()
    }

    /// What all answers together cost.
    pub fn loss(&self) -> Loss {
        self.builder.loss
    }

    /// The noise scale and what it was made from.
    pub fn calibration(&self) -> &Calibration {
        &self.checked.calibration
    }

    /// The standard deviation of the noise of a release at `now`, in the caller's units. (The rounding to the lattice
    /// adds at most `s^2 / 12288` to the variance, which is not counted here.)
    pub fn noise_std(&self) -> f64 {
        self.release_law().std()
    }

    /// The law of the noise of a release at `now`, without the rounding to the lattice.
    pub(crate) fn release_law(&self) -> ReleaseLaw {
        self.checked.calibration.release_law(self.now())
    }

    /// The step `g` of the lattice on which releases lie, a power of two.
    pub fn lattice_step(&self) -> f64 {
        self.checked.lattice.step()
    }

    /// Memory in use, in bytes: 8 a cell for the counters, and the noise of cells that were read. It depends on what
    /// was read and when, not on data.
    pub fn memory(&self) -> usize {
        size_of::<Self>() + self.counters.capacity() * 8 + with_noise!(&self.noise, noise => noise.bytes())
    }

    /// Moves the clock to step `to`. Staying at `now` is allowed and changes nothing.
    ///
    /// # Errors
    /// [`Error::Time`] for a step in the past or beyond the horizon.
    pub fn advance(&mut self, to: u64) -> Result<()> {
        let before = self.now();
        self.clock.advance_to(to)?;
        if let Some(journal) = self.journal.as_mut().filter(|_| to > before) {
            journal.records.byte(journal::ADVANCE);
            journal.records.number(to);
        }
        Ok(())
    }

    /// Adds `(cell, value)` pairs at the present step, each an update of its own; all or nothing. Returns how many were
    /// dropped (none unless [`Invalid::Drop`]); not private, for the operator alone.
    ///
    /// # Errors
    /// As [`ContinualVector::update_rows`].
    pub fn update<I: Index, V: Quantity>(&mut self, updates: &[(I, V)]) -> Result<u64> {
        self.update_with(|batch, size| batch.push_single(size, updates.iter().copied()))
    }

    /// Adds one update that touches several cells, made of `(cell, value)` pairs, at the present step. Pairs of one cell are
    /// added first; the norm of all together is bounded. Returns how many updates were dropped (0 or 1; never 1 unless
    /// [`Invalid::Drop`]); not private, for the operator alone.
    ///
    /// # Errors
    /// As [`ContinualVector::update_rows`].
    pub fn update_row<I: Index, V: Quantity>(&mut self, row: &[(I, V)]) -> Result<u64> {
        self.update_with(|batch, size| {
            batch.push_row(0, 0, row.iter().map(|&(index, value)| (locate(index, size), value)))
        })
    }

    /// Adds a batch of updates, a row each, at the present step; all or nothing. Returns how many rows were dropped
    /// (none unless [`Invalid::Drop`]); not private, for the operator alone.
    ///
    /// # Errors
    /// [`Error::Sealed`] if the step was read; [`Error::Shape`] for rows that do not fit; [`Error::Index`],
    /// [`Error::NotFinite`] and [`Error::Excess`] for bad elements unless they are dropped or clipped;
    /// [`Error::Overflow`] if a counter would leave the 64-bit range. Nothing has changed then.
    pub fn update_rows<I: Index, V: Quantity>(&mut self, rows: Rows<'_, I, V>) -> Result<u64> {
        self.update_with(|batch, size| match rows {
            Rows::Dense { values } => {
                if values.len() as u64 % size != 0 {
                    return Err(Error::Shape { what: "dense rows must have as many values as the vector has cells" });
                }
                for (row, values) in values.chunks_exact(size as usize).enumerate() {
                    let start = row * size as usize;
                    batch.push_row(
                        row,
                        start,
                        values.iter().enumerate().map(|(cell, &value)| (Ok(cell as u64), value)),
                    )?;
                }
                Ok(())
            }
            Rows::Sparse { offsets, indices, values } => {
                let ordered = offsets.windows(2).all(|pair| pair[0] <= pair[1]);
                if indices.len() != values.len() {
                    return Err(Error::Shape { what: "sparse rows must have as many values as indices" });
                }
                if !ordered || offsets.first() != Some(&0) || offsets.last() != Some(&indices.len()) {
                    return Err(Error::Shape { what: "row offsets must rise from 0 to the number of indices" });
                }
                for (row, ends) in offsets.windows(2).enumerate() {
                    let (indices, values) = (&indices[ends[0]..ends[1]], &values[ends[0]..ends[1]]);
                    let entries = indices.iter().zip(values).map(|(&index, &value)| (locate(index, size), value));
                    batch.push_row(row, ends[0], entries)?;
                }
                Ok(())
            }
            Rows::Single { indices, values } => {
                if indices.len() != values.len() {
                    return Err(Error::Shape { what: "rows of one cell must have as many values as indices" });
                }
                batch.push_single(size, indices.iter().copied().zip(values.iter().copied()))
            }
        })
    }

    /// Adds the rows that are pushed onto a batch, which is told the number of cells.
    fn update_with(&mut self, push: impl FnOnce(&mut Batch, u64) -> Result<()>) -> Result<u64> {
        self.clock.check_open()?;
        let mut batch = Batch {
            bound: self.checked.bound,
            on_excess: self.builder.on_excess,
            invalid: self.builder.invalid,
            row: Vec::new(),
            adds: core::mem::take(&mut self.adds),
            total: 0,
            dropped: 0,
        };
        push(&mut batch, self.checked.size)?;
        self.apply(&batch)?;
        // A small update leaves its room to the next one.
        if batch.adds.capacity() <= KEPT_CAPACITY {
            batch.adds.clear();
            self.adds = batch.adds;
        }
        Ok(batch.dropped)
    }

    /// Adds what a batch amounts to, or nothing if a counter would overflow.
    fn apply(&mut self, batch: &Batch) -> Result<()> {
        self.add(
            batch.adds.len(),
            batch.total,
            |counters| batch.adds.iter().for_each(|&(cell, units, _)| counters[cell as usize] += units),
            |each| batch.adds.iter().for_each(|&(cell, units, position)| each(cell as usize, units, position)),
        )
    }

    pub(crate) fn check_open(&self) -> Result<()> {
        self.clock.check_open()
    }

    /// Adds to the counters, or changes nothing if one would overflow. There are `count` adds at most, and no counter moves by
    /// more than `most` in all. The adds are given twice: as `add_all`, which is called when nothing can overflow, and one by
    /// one (cell, add, position in the call), for when it may, and for the journal.
    pub(crate) fn add(
        &mut self,
        count: usize,
        most: u128,
        add_all: impl FnOnce(&mut [i64]),
        one_by_one: impl Fn(&mut dyn FnMut(usize, i64, usize)),
    ) -> Result<()> {
        let Some(mut journal) = self.journal.take() else { return self.add_unrecorded(most, add_all, one_by_one) };
        // Of many adds only their sums are kept: what they are is seen from the counters.
        let before = if count >= self.counters.len() { Some(self.copied_counters()) } else { None };
        let result = before.transpose().and_then(|before| {
            let adds = count.min(self.counters.len());
            let room = adds.checked_mul(2 * VARINT).and_then(|bytes| bytes.checked_add(1 + VARINT));
            let reserved = room.is_some_and(|room| journal.records.try_reserve(room).is_ok());
            if !reserved {
                return Err(Error::Memory);
            }
            self.add_unrecorded(most, add_all, &one_by_one)?;
            Ok(before)
        });
        let result = result.map(|before| match before {
            Some(before) => {
                let adds = self.counters.iter().zip(&before).map(|(after, before)| after.wrapping_sub(*before));
                write_adds(&mut journal.records, |each| adds.enumerate().for_each(|(cell, add)| each(cell, add)));
            }
            None => write_adds(&mut journal.records, |each| one_by_one(&mut |cell, add, _| each(cell, add))),
        });
        journal.has_update |= result.is_ok();
        self.journal = Some(journal);
        result
    }

    fn copied_counters(&self) -> Result<Vec<i64>> {
        let mut copy = reserved(self.counters.len())?;
        copy.extend_from_slice(&self.counters);
        Ok(copy)
    }

    fn add_unrecorded(
        &mut self,
        most: u128,
        add_all: impl FnOnce(&mut [i64]),
        one_by_one: impl Fn(&mut dyn FnMut(usize, i64, usize)),
    ) -> Result<()> {
        let limit = i64::MAX as u128;
        if u128::from(self.total) + most > limit {
            // The running bound is used up: renew it, which takes a look at every counter but comes once in 2^63 units.
            self.total = self.counters.iter().map(|counter| counter.unsigned_abs()).max().unwrap_or(0);
        }
        if u128::from(self.total) + most <= limit {
            add_all(&mut self.counters);
            self.total += most as u64;
            return Ok(());
        }
        let (counters, mut done, mut overflow) = (&mut self.counters, 0usize, None);
        one_by_one(&mut |cell, add, position| {
            if overflow.is_none() {
                match counters[cell].checked_add(add) {
                    Some(sum) => {
                        counters[cell] = sum;
                        done += 1;
                    }
                    None => overflow = Some(position),
                }
            }
        });
        let Some(position) = overflow else {
            self.total = i64::MAX as u64;
            return Ok(());
        };
        // Undone in the order of doing, a counter may pass the ends of its range and come back.
        one_by_one(&mut |cell, add, _| {
            if done > 0 {
                counters[cell] = counters[cell].wrapping_sub(add);
                done -= 1;
            }
        });
        Err(Error::Overflow { position })
    }

    /// The variance of a release at `now` about the exact value: that of the noise, and the rounding to the lattice.
    pub(crate) fn release_variance(&self) -> f64 {
        let step = self.lattice_step();
        self.release_law().variance() + step * step / 12.0
    }

    /// Releases cells at the present step and seals it: exact counter plus noise, rounded to the lattice, in the
    /// order of the request. A cell that was released at this step repeats its answer. Time: constant a cell.
    ///
    /// # Errors
    /// [`Error::Index`] for a cell out of range, [`Error::Entropy`] if the generator fails, [`Error::Memory`] if a large
    /// read does not fit in memory; nothing has been released and nothing has changed then.
    pub fn release<'a, I: Index + 'a, R: TryCryptoRng + ?Sized>(
        &mut self,
        cells: impl Into<Cells<'a, I>>,
        rng: &mut R,
    ) -> Result<Vec<f64>> {
        Ok(self.draw(cells, rng)?.commit())
    }

    /// Releases one cell; see [`ContinualVector::release`]. Nothing is allocated.
    ///
    /// # Errors
    /// As [`ContinualVector::release`].
    pub fn release_one<I: Index, R: TryCryptoRng + ?Sized>(&mut self, cell: I, rng: &mut R) -> Result<f64> {
        let values = self.draw(&[cell], rng)?.commit();
        let value = values[0];
        with_noise!(&mut self.noise, noise => noise.keep_room(values));
        Ok(value)
    }

    /// Releases all cells; see [`ContinualVector::release`].
    ///
    /// # Errors
    /// [`Error::Entropy`] if the generator fails.
    pub fn release_all<R: TryCryptoRng + ?Sized>(&mut self, rng: &mut R) -> Result<Vec<f64>> {
        self.release(Cells::<u64>::All, rng)
    }

    /// The first half of a release: draws what it needs and changes nothing that can be observed. The draws become
    /// the state with [`Pending::commit`], or are forgotten when the [`Pending`] is dropped.
    ///
    /// # Errors
    /// As [`ContinualVector::release`].
    pub fn draw<'a, I: Index + 'a, R: TryCryptoRng + ?Sized>(
        &mut self,
        cells: impl Into<Cells<'a, I>>,
        rng: &mut R,
    ) -> Result<Pending<'_>> {
        let size = self.checked.size;
        let wanted = match cells.into() {
            Cells::All => Wanted::Range(0, size),
            Cells::Block(block) if block < self.builder.blocks.len() => {
                let start = self.builder.blocks[..block].iter().sum::<usize>() as u64;
                Wanted::Range(start, start + self.builder.blocks[block] as u64)
            }
            Cells::Block(block) => {
                return Err(Error::Parameter {
                    name: "block",
                    given: block.into(),
                    allowed: "below the vector's number of blocks",
                });
            }
            Cells::Indices(indices) => {
                let mut wanted = core::mem::take(&mut self.wanted);
                wanted.clear();
                wanted.try_reserve_exact(indices.len()).map_err(|_| Error::Memory)?;
                for (position, index) in indices.iter().enumerate() {
                    wanted.push(index.below(size).map_err(|given| Error::Index { position, given, size })?);
                }
                Wanted::Cells(wanted)
            }
        };
        self.draw_wanted(wanted, rng)
    }

    fn draw_wanted<R: TryRng + ?Sized>(&mut self, wanted: Wanted, rng: &mut R) -> Result<Pending<'_>> {
        let mut rng = FailStop::new(rng);
        let step = self.clock.now();
        let request = match &wanted {
            Wanted::Range(0, end) if *end == self.checked.size => Request::All,
            Wanted::Range(start, _) => Request::Block(self.block_at(*start)),
            Wanted::Cells(cells) => Request::Cells(cells),
        };
        let drawn = with_noise!(&mut self.noise, noise => noise.draw(request, step, &mut rng));
        let drawn = if rng.failed() { Err(Error::Entropy) } else { drawn };
        // Room is taken before, so that a commit cannot fail.
        let drawn = drawn.and_then(|()| {
            let Some(journal) = &mut self.journal else { return Ok(()) };
            let bytes = 1 + with_noise!(&self.noise, noise => noise.record_bytes());
            journal.records.try_reserve(bytes).map_err(|_| Error::Memory)
        });
        match drawn {
            Ok(()) => Ok(Pending { vector: self, wanted }),
            Err(error) => {
                with_noise!(&mut self.noise, noise => noise.abandon());
                Err(error)
            }
        }
    }

    /// From now on what changes the vector is written down, to be fetched with [`ContinualVector::take_journal`].
    pub fn keep_journal(&mut self) {
        self.journal.get_or_insert_default();
    }

    /// What was done since the journal was last taken; nothing if none is kept.
    ///
    /// An answer must not leave before the journal that was taken after it is where it will not be lost: without it the state
    /// after a restart has other noise for what was answered, or other data for the same noise.
    pub fn take_journal(&mut self) -> Journal {
        self.journal.as_mut().map(core::mem::take).unwrap_or_default()
    }

    /// Does again what records say, on a vector that is in the state in which they were begun: nothing is drawn, and what was
    /// drawn then is the noise. Afterwards the vector is in the state in which they were taken.
    ///
    /// # Errors
    /// [`Error::Journal`] for records that no vector with these parameters has written, [`Error::Time`], [`Error::Memory`]. The
    /// vector is in a state between then, and must not be used.
    pub fn replay(&mut self, records: &[u8]) -> Result<()> {
        let mut from = Reader::new(records);
        while !from.is_empty() {
            match from.byte()? {
                journal::ADVANCE => {
                    let to = from.number()?;
                    if to <= self.now() {
                        return Err(unfit("a later step"));
                    }
                    self.clock.advance_to(to)?;
                }
                journal::SEAL if !self.clock.is_sealed() => self.clock.seal(),
                journal::ADDS if !self.clock.is_sealed() => {
                    // Renewed at the next update.
                    self.total = i64::MAX as u64;
                    let mut before = 0;
                    for _ in 0..from.count(2)? {
                        let counter = &mut self.counters[from.cell(self.checked.size, &mut before)? as usize];
                        let add = from.signed()?;
                        let sum = counter.checked_add(add).filter(|_| add != 0);
                        *counter = sum.ok_or(unfit("an add that is not zero, to a counter of 64 bits"))?;
                    }
                }
                journal::SEAL | journal::ADDS => return Err(unfit("no update at a step that was read")),
                kind => {
                    // What a release can hold (`lattice`).
                    let (now, limit) = (self.now(), 16_384.0 * self.checked.calibration.scale());
                    with_noise!(&mut self.noise, noise => noise.replay(kind, now, limit, &mut from))?;
                }
            }
        }
        Ok(())
    }

    /// The records that make a new vector into this one, in pieces of about 1 MiB, each of whole records. What was done since
    /// the journal was last taken is in them. They hold exact counters and noise: secret.
    ///
    /// # Errors
    /// What `each` returns.
    pub fn image<E>(&self, mut each: impl FnMut(&[u8]) -> core::result::Result<(), E>) -> core::result::Result<(), E> {
        const PIECE: usize = 1 << 20;
        let mut out = Vec::new();
        for (piece, counters) in self.counters.chunks(PIECE / 8).enumerate() {
            let first = piece * (PIECE / 8);
            let adds = (first..).zip(counters.iter().copied());
            write_adds(&mut out, |each| adds.for_each(|(cell, add)| each(cell, add)));
            if out.len() >= PIECE {
                each(&out)?;
                out.clear();
            }
        }
        if self.now() > 1 {
            out.byte(journal::ADVANCE);
            out.number(self.now());
        }
        if self.is_sealed() {
            out.byte(journal::SEAL);
        }
        if !out.is_empty() {
            each(&out)?;
        }
        with_noise!(&self.noise, noise => noise.image(PIECE, &mut each))
    }

    /// Whether records that were replayed made a whole state: an image has pieces, of which none may be missing.
    ///
    /// # Errors
    /// [`Error::Journal`]; the vector must not be used then.
    pub fn check_whole(&self) -> Result<()> {
        if with_noise!(&self.noise, noise => noise.is_whole()) { Ok(()) } else { Err(unfit("all pieces of an image")) }
    }

    /// The lattice step, the noise scale, and `omega` and `1 - lambda` of each buffer.
    pub(crate) fn noise_numbers(&self) -> Vec<f64> {
        let mut numbers = alloc::vec![self.lattice_step(), self.checked.calibration.scale()];
        if let Kind::Blt(blt) = self.checked.calibration.kind() {
            numbers.extend(blt.row().iter().flat_map(|&(omega, rate)| [omega, rate]));
        }
        numbers
    }

    fn block_at(&self, start: u64) -> usize {
        let mut before = 0;
        self.builder
            .blocks
            .iter()
            .take_while(|&&len| {
                before += len as u64;
                before <= start
            })
            .count()
    }
}

/// Writes adds that are not zero, if there are any.
fn write_adds(out: &mut Vec<u8>, adds: impl FnOnce(&mut dyn FnMut(usize, i64))) {
    let start = out.len();
    out.byte(journal::ADDS);
    // Their number comes here, once it is known.
    out.extend([0; VARINT]);
    let (mut count, mut before) = (0u64, 0);
    adds(&mut |cell, add| {
        if add != 0 {
            out.cell(cell as u64, &mut before);
            out.signed(add);
            count += 1;
        }
    });
    if count == 0 {
        out.truncate(start);
        return;
    }
    let mut number = Vec::with_capacity(VARINT);
    number.number(count);
    let adds = start + 1 + VARINT;
    out.copy_within(adds.., start + 1 + number.len());
    out.truncate(out.len() - (VARINT - number.len()));
    out[start + 1..][..number.len()].copy_from_slice(&number);
}

enum Wanted {
    Range(u64, u64),
    Cells(Vec<u64>),
}

/// A read between its two halves: what it needs is drawn, nothing is released and nothing has changed.
#[must_use = "nothing is released before commit"]
pub struct Pending<'a> {
    vector: &'a mut ContinualVector,
    wanted: Wanted,
}

impl fmt::Debug for Pending<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pending").field("vector", self.vector).finish_non_exhaustive()
    }
}

impl Pending<'_> {
    /// The cells for which this read draws noise. Others that it asks for were released at this step before. A function
    /// of the public calls alone.
    pub fn drawn_cells(&self) -> Vec<u64> {
        with_noise!(&self.vector.noise, noise => {
            noise.drawn_cells().map(|(cell, _)| cell).chain(noise.swept_cells()).collect()
        })
    }

    /// The second half of a release: the draws become the state, the step is sealed, the values go out.
    #[must_use]
    pub fn commit(self) -> Vec<f64> {
        let ContinualVector { counters, noise, checked, clock, journal, .. } = &mut *self.vector;
        let lattice = checked.lattice;
        if let Some(journal) = journal {
            with_noise!(&*noise, noise => noise.record(&mut journal.records));
            if !clock.is_sealed() {
                journal.records.byte(journal::SEAL);
            }
            journal.has_read |= !journal.records.is_empty();
        }
        clock.seal();
        let mut values = with_noise!(noise, noise => core::mem::take(noise.commit()));
        match &self.wanted {
            Wanted::Range(start, end) => {
                lattice.release(counters[*start as usize..*end as usize].iter().copied(), &mut values);
            }
            Wanted::Cells(cells) => {
                lattice.release(cells.iter().map(|&cell| counters[cell as usize]), &mut values);
            }
        }
        values
        // Dropping `self` clears the buffers.
    }
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        with_noise!(&mut self.vector.noise, noise => noise.abandon());
        // Small reads reuse the room, a large one gives it back.
        match &mut self.wanted {
            Wanted::Cells(cells) if cells.capacity() <= KEPT_CAPACITY => self.vector.wanted = core::mem::take(cells),
            _ => {}
        }
    }
}

/// A cell, or the number that is none and the size that it should be below.
type Located = core::result::Result<u64, (Given, u64)>;

#[inline]
fn locate<I: Index>(index: I, size: u64) -> Located {
    index.below(size).map_err(|given| (given, size))
}

/// The rows of an update call, checked and turned into whole units.
struct Batch {
    bound: Bound,
    on_excess: OnExcess,
    invalid: Invalid,
    /// The row at hand: cells and units.
    row: Vec<(u64, i128)>,
    /// Cells, units and the row that they come from.
    adds: Vec<(u64, i64, usize)>,
    /// The sum of absolute values of `adds`.
    total: u128,
    dropped: u64,
}

impl Batch {
    /// Rows of one cell each.
    fn push_single<I: Index, V: Quantity>(&mut self, size: u64, updates: impl Iterator<Item = (I, V)>) -> Result<()> {
        for (row, (index, value)) in updates.enumerate() {
            self.push_row(row, row, core::iter::once((locate(index, size), value)))?;
        }
        Ok(())
    }

    fn push_row<V: Quantity>(
        &mut self,
        row: usize,
        start: usize,
        entries: impl Iterator<Item = (Located, V)> + Clone,
    ) -> Result<()> {
        if self.push_plain_row(row, entries.clone()) {
            return Ok(());
        }
        match self.read_row(row, start, entries) {
            Ok(()) => {
                for &(cell, units) in &self.row {
                    self.total += units.unsigned_abs();
                    // Within the bound, so within 2^31 units.
                    let units = units as i64;
                    // A run of adds to one cell is one add, unless it leaves 64 bits.
                    let run = self.adds.last_mut().filter(|last| last.0 == cell);
                    match run.and_then(|last| last.1.checked_add(units).map(|sum| (last, sum))) {
                        Some((last, sum)) => *last = (cell, sum, row),
                        None => self.adds.push((cell, units, row)),
                    }
                }
                Ok(())
            }
            Err(_) if self.invalid == Invalid::Drop => {
                self.dropped += 1;
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Adds a row as nearly all are: cells that rise, few units, within the bound. Any other is left as it is, for another look.
    #[inline]
    fn push_plain_row<V: Quantity>(&mut self, row: usize, entries: impl Iterator<Item = (Located, V)>) -> bool {
        let (first, unit, scale) = (self.adds.len(), self.bound.unit, power_of_two(-self.bound.unit));
        let (mut size, mut total, mut least) = (0u64, 0u64, 0);
        let mut is_plain = true;
        for (cell, value) in entries {
            let (Ok(cell), Some(units)) = (cell, value.few_units(unit, scale)) else {
                is_plain = false;
                break;
            };
            if units != 0 {
                is_plain &= cell >= least;
                least = cell + 1;
                size = size.saturating_add(self.bound.size_of(units.unsigned_abs()));
                total = total.saturating_add(units.unsigned_abs());
                self.adds.push((cell, units, row));
            }
        }
        if !is_plain || !self.bound.holds_size(size) {
            self.adds.truncate(first);
            return false;
        }
        self.total += u128::from(total);
        // A run of adds to one cell is one add, unless it leaves 64 bits.
        if let [.., before, last] = &mut self.adds[..] {
            let sum = before.1.checked_add(last.1).filter(|_| before.0 == last.0);
            if let Some(sum) = sum {
                *before = (before.0, sum, row);
                self.adds.pop();
            }
        }
        true
    }

    /// Leaves in `self.row` what the row adds: each cell once, in whole units, within the bound.
    fn read_row<V: Quantity>(
        &mut self,
        row: usize,
        start: usize,
        entries: impl Iterator<Item = (Located, V)>,
    ) -> Result<()> {
        self.row.clear();
        let mut rising = true;
        for (offset, (cell, value)) in entries.enumerate() {
            let position = start + offset;
            let cell = cell.map_err(|(given, size)| Error::Index { position, given, size })?;
            let units = value.units(self.bound.unit).ok_or(Error::NotFinite { position })?;
            if units != 0 {
                rising &= self.row.last().is_none_or(|last| last.0 < cell);
                self.row.push((cell, units));
            }
        }
        if !rising {
            self.row.sort_unstable_by_key(|&(cell, _)| cell);
            self.row.dedup_by(|next, first| {
                let same = next.0 == first.0;
                if same {
                    // Exact for 2^27 quantities of 2^100, the largest; in any order, then.
                    first.1 = first.1.saturating_add(next.1);
                }
                same
            });
        }
        if self.bound.holds(&self.row) {
            return Ok(());
        }
        match self.on_excess {
            OnExcess::Error => Err(Error::Excess { position: row, bound: self.bound.size, what: self.bound.what }),
            OnExcess::Clip => {
                clip(&mut self.row, &self.bound);
                Ok(())
            }
        }
    }
}

/// Scales a row down onto the bound, rounding toward zero.
fn clip(row: &mut [(u64, i128)], bound: &Bound) {
    if let [(_, units)] = row {
        let max = bound.max_of_one();
        *units = (*units).clamp(-max, max);
        return;
    }
    let mut factor = bound.max_norm() / bound.norm(row);
    let exact: Vec<i128> = row.iter().map(|&(_, units)| units).collect();
    loop {
        for ((_, units), &exact) in row.iter_mut().zip(&exact) {
            *units = (exact as f64 * factor) as i128;
        }
        if bound.holds(row) {
            return;
        }
        // Floats rounded the wrong way: a little less.
        factor *= 1.0 - f64::EPSILON;
    }
}

#[cfg(test)]
impl ContinualVector {
    /// See `CellNoise::forget_middle`.
    pub(crate) fn forget_middle(&mut self) {
        if let Noise::GaussianTree(noise) = &mut self.noise {
            noise.forget_middle();
        }
    }
}

#[cfg(test)]
mod tests;
