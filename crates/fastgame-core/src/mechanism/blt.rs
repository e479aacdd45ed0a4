//! Buffered linear Toeplitz noise, sampled where it is read: a jump over any number of steps in constant time.
//!
//! The noise is `nu_t = z_t + sum_i omega_i s_{i,t}` with `s_{i,t+1} = lambda_i s_{i,t} + z_t` and independent `z_t ~ N(0, s^2)`
//! (`calibration/blt.rs`): a linear Gaussian state space. Over `n` steps that nobody reads
//!
//! ```text
//! s  <-  Lambda^n s + N(0, s^2 Q_n),    Q_n[i,k] = (1 - (lambda_i lambda_k)^n) / (1 - lambda_i lambda_k),
//! ```
//!
//! exactly, and what is drawn depends on the past through `s` alone. So a cell keeps `s` (after its last read) and the noise of
//! that read; a read is one jump over the steps between, and a fresh `z`. At most `d + 1` normals for `d` buffers, however much
//! time has passed; the next step costs one. `Q_n` is factorised once a jump length, and the factors of recent lengths are kept.

use alloc::vec;
use alloc::vec::Vec;

use rand_core::Rng;

use super::{After, Drawn, Process};
use crate::calibration::MAX_BUFFERS;
use crate::calibration::blt::{Blt, Decay};
use crate::math::{exp, ln_1p, sqrt};
use crate::noise::Source;
use crate::noise::gaussian::{fill, standard_normal};

/// Numbers for each buffer; those beyond the number of buffers are zero.
type Buffers = [f64; MAX_BUFFERS];

/// Added to the unit diagonal that is factorised: more than rounding can take away, so that what is left stays positive
/// definite and no entry of it is larger than a pivot (docs/guarantees.md, 14.2).
const RIDGE: f64 = 1.0 / (1u64 << 44) as f64;
/// What is left when no pivot is larger is not drawn.
const LEAST_PIVOT: f64 = 4.0 * RIDGE;
/// Jump lengths whose factors are kept at most.
const MOST_JUMPS: u64 = 64;
/// Cells of a sweep that are drawn at a time.
const CHUNK: usize = 64;

/// A jump over steps that are not read: the state's decay, and a factor of the covariance of what comes in.
#[derive(Clone, Copy, Debug)]
struct Jump {
    decay: Buffers,
    /// Columns of a matrix `F` with `F F^T = s^2 Q_n`, as many as its rank to working precision.
    columns: [Buffers; MAX_BUFFERS],
    rank: usize,
}

impl Jump {
    /// `Q_n` scaled to unit diagonal, by Cholesky's method with diagonal pivoting. Without pivoting, or with the slowest decay
    /// first, rounding can ruin a whole column: variances were off by 350 % at single lengths.
    fn new(blt: &Blt, logs: &Buffers, scale: f64, skipped: u64) -> Self {
        let row = blt.row();
        let d = row.len();
        let mut jump = Self { decay: [0.0; MAX_BUFFERS], columns: [[0.0; MAX_BUFFERS]; MAX_BUFFERS], rank: 0 };
        let mut powers = [Decay::new(0.5, 0); MAX_BUFFERS];
        let mut diagonal: Buffers = [0.0; MAX_BUFFERS];
        for (i, &(_, e)) in row.iter().enumerate() {
            powers[i] = Decay::with_log(e, logs[i], skipped);
            jump.decay[i] = exp(skipped as f64 * logs[i]);
            diagonal[i] = sqrt(powers[i].products(&powers[i]));
        }
        let correlation = |i: usize, k: usize| powers[i].products(&powers[k]) / (diagonal[i] * diagonal[k]);
        // What is left of each variance.
        let mut left: Buffers = [1.0 + RIDGE; MAX_BUFFERS];
        let mut open = [true; MAX_BUFFERS];
        for column in 0..d {
            let candidates = (0..d).filter(|&i| open[i]);
            let Some(pivot) = candidates.max_by(|&i, &k| left[i].total_cmp(&left[k])) else { break };
            if left[pivot] <= LEAST_PIVOT {
                break;
            }
            let root = sqrt(left[pivot]);
            open[pivot] = false;
            jump.columns[column][pivot] = root;
            for i in 0..d {
                if open[i] {
                    let known: f64 = jump.columns[..column].iter().map(|other| other[i] * other[pivot]).sum();
                    let entry = (correlation(i, pivot) - known) / root;
                    jump.columns[column][i] = entry;
                    left[i] -= entry * entry;
                }
            }
            jump.rank += 1;
        }
        for column in &mut jump.columns[..jump.rank] {
            column.iter_mut().zip(&diagonal).for_each(|(entry, diagonal)| *entry *= scale * diagonal);
        }
        jump
    }
}

/// Jumps that are kept for a vector of this size: one cell has one last read.
const fn places(size: u64) -> usize {
    if size >= MOST_JUMPS { MOST_JUMPS as usize } else { size.next_power_of_two() as usize }
}

/// The last jumps, each at the place of its length: numbers only, without the zeros of missing buffers.
struct Jumps {
    buffers: usize,
    /// Length, and rank. No jump has length zero.
    lengths: Vec<(u64, usize)>,
    /// Of each place the decays, then the columns.
    numbers: Vec<f64>,
}

impl Jumps {
    fn new(buffers: usize, places: usize) -> Self {
        Self { buffers, lengths: vec![(0, 0); places], numbers: vec![0.0; places * buffers * (buffers + 1)] }
    }

    /// Where a jump of this length is kept.
    #[inline]
    fn place(&self, skipped: u64) -> usize {
        // The upper bits of a product depend on all bits of the length.
        (skipped.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58) as usize & (self.lengths.len() - 1)
    }

    /// The numbers of a jump, if it is here.
    #[inline]
    fn get(&self, skipped: u64) -> Option<View<'_>> {
        let place = self.place(skipped);
        let (length, rank) = self.lengths[place];
        if length != skipped {
            return None;
        }
        let each = self.buffers * (self.buffers + 1);
        let (decay, columns) = self.numbers[place * each..][..each].split_at(self.buffers);
        Some(View { decay, columns: &columns[..rank * self.buffers] })
    }

    #[inline(never)]
    fn put(&mut self, skipped: u64, jump: &Jump) {
        let (place, d) = (self.place(skipped), self.buffers);
        self.lengths[place] = (skipped, jump.rank);
        let numbers = &mut self.numbers[place * d * (d + 1)..][..d * (d + 1)];
        let rows = core::iter::once(&jump.decay).chain(&jump.columns);
        // No buffers, no numbers.
        for (to, from) in numbers.chunks_exact_mut(d.max(1)).zip(rows) {
            to.copy_from_slice(&from[..d]);
        }
    }
}

/// A jump's numbers, for as many buffers as there are.
#[derive(Clone, Copy)]
struct View<'a> {
    decay: &'a [f64],
    /// One after the other.
    columns: &'a [f64],
}

/// The step of the last read: all stacks are of the same length.
impl super::Head for u64 {
    #[inline]
    fn values(self, room: usize) -> usize {
        room
    }
}

/// What a read draws for one cell: the state after it, and the noise.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    state: Buffers,
    buffers: usize,
    noise: f64,
}

impl Drawn for Reading {
    type Value = f64;

    #[inline]
    fn values(&self) -> impl Iterator<Item = f64> {
        self.state[..self.buffers].iter().copied().chain([self.noise])
    }

    #[inline]
    fn count(&self) -> usize {
        self.buffers + 1
    }

    #[inline]
    fn last(&self) -> f64 {
        self.noise
    }
}

/// What a read has to draw.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Move {
    /// Nothing was read before: the state is zero.
    first: bool,
    /// Steps that are jumped over.
    skipped: u64,
}

/// The noise of a BLT.
pub(crate) struct BltProcess {
    blt: Blt,
    /// `ln lambda` of each buffer.
    logs: Buffers,
    scale: f64,
    jumps: Jumps,
}

const _: () = assert!(MAX_BUFFERS == 10, "`with_constant!` lists the numbers of buffers below MAX_BUFFERS");

/// Runs an expression with the number of buffers as a constant, so that loops over buffers are unrolled.
macro_rules! with_constant {
    ($buffers:expr, $name:ident => $body:expr) => {
        with_constant!(@arms $buffers, $name, $body, 0 1 2 3 4 5 6 7 8 9)
    };
    (@arms $buffers:expr, $name:ident, $body:expr, $($count:literal)*) => {
        match $buffers {
            $($count => { const $name: usize = $count; $body })*
            _ => { const $name: usize = MAX_BUFFERS; $body }
        }
    };
}

impl BltProcess {
    /// For a vector of `size` cells.
    pub(crate) fn new(blt: Blt, scale: f64, size: u64) -> Self {
        let mut logs = [0.0; MAX_BUFFERS];
        logs.iter_mut().zip(blt.row()).for_each(|(log, (_, e))| *log = ln_1p(-e));
        Self { blt, logs, scale, jumps: Jumps::new(blt.buffers(), places(size)) }
    }

    /// Memory in bytes beside the struct and the cells.
    pub(crate) const fn bytes_for(buffers: usize, size: u64) -> usize {
        places(size) * (size_of::<(u64, usize)>() + buffers * (buffers + 1) * size_of::<f64>())
    }

    /// One read from a state, as a linear map of the normals that it takes.
    #[inline]
    fn read<const D: usize>(
        &self,
        jump: Option<View<'_>>,
        state: &Buffers,
        mut normal: impl FnMut() -> f64,
    ) -> Reading {
        let mut arrived = [0.0; D];
        arrived.copy_from_slice(&state[..D]);
        if let Some(View { decay, columns }) = jump {
            arrived.iter_mut().zip(decay).for_each(|(state, decay)| *state *= decay);
            for column in columns.chunks_exact(D.max(1)) {
                let z = normal();
                arrived.iter_mut().zip(column).for_each(|(state, entry)| *state += entry * z);
            }
        }
        let z = self.scale * normal();
        let mut reading = Reading { state: [0.0; MAX_BUFFERS], buffers: D, noise: z };
        for ((next, state), &(omega, rate)) in reading.state.iter_mut().zip(&arrived).zip(self.blt.row()) {
            reading.noise += omega * state;
            // lambda s + z, without rounding lambda.
            *next = state + (z - rate * state);
        }
        reading
    }

    /// The read that a move asks for.
    #[inline]
    fn step(&self, Move { skipped, .. }: Move, state: &Buffers, normal: impl FnMut() -> f64) -> Reading {
        with_constant!(self.blt.buffers(), D => {
            if skipped == 0 {
                return self.read::<D>(None, state, normal);
            }
            match self.jumps.get(skipped) {
                Some(jump) => self.read::<D>(Some(jump), state, normal),
                None => self.read_without_place::<D>(skipped, state, normal),
            }
        })
    }

    /// As `read`, when another length has taken the place of this one since.
    #[cold]
    #[inline(never)]
    fn read_without_place<const D: usize>(
        &self,
        skipped: u64,
        state: &Buffers,
        normal: impl FnMut() -> f64,
    ) -> Reading {
        self.read::<D>(self.on_its_own(skipped).get(skipped), state, normal)
    }

    fn jump(&self, skipped: u64) -> Jump {
        Jump::new(&self.blt, &self.logs, self.scale, skipped)
    }

    /// A jump that has no place among the others.
    #[cold]
    #[inline(never)]
    fn on_its_own(&self, skipped: u64) -> Jumps {
        let mut own = Jumps::new(self.blt.buffers(), 1);
        own.put(skipped, &self.jump(skipped));
        own
    }
}

impl Process for BltProcess {
    type Head = u64;
    type Value = f64;
    type Move = Move;
    /// The buffers of the last read.
    type Loaded = (Move, Buffers);
    type Drawn = Reading;

    /// Few: the factors of their jumps should still be there when they are drawn.
    const BLOCK: usize = 8;

    #[inline]
    fn step(head: u64) -> u64 {
        head
    }

    #[inline]
    fn next(&mut self, last: Option<u64>, step: u64) -> Option<Move> {
        let step_move = match last {
            Some(last) if last == step => return None,
            Some(last) => Move { first: false, skipped: step - last - 1 },
            None => Move { first: true, skipped: step - 1 },
        };
        if step_move.skipped > 0 && self.jumps.get(step_move.skipped).is_none() {
            let jump = self.jump(step_move.skipped);
            self.jumps.put(step_move.skipped, &jump);
        }
        Some(step_move)
    }

    #[inline]
    fn after(&self, _: Move, _: Option<u64>, step: u64) -> After<u64> {
        After { head: step, keep: 0 }
    }

    #[inline]
    fn drawn(&self, _: Move) -> usize {
        self.blt.buffers() + 1
    }

    #[inline]
    fn normals(&self, Move { skipped, .. }: Move) -> usize {
        // One for the step, and one for each column of the factor of a jump.
        1 + self.jumps.get(skipped).map_or(0, |jump| jump.columns.len() / self.blt.buffers().max(1))
    }

    #[inline]
    fn load(&self, step_move: Move, value_at: impl Fn(u32) -> f64) -> (Move, Buffers) {
        let mut state = [0.0; MAX_BUFFERS];
        if !step_move.first {
            (0..).zip(&mut state[..self.blt.buffers()]).for_each(|(rank, buffer)| *buffer = value_at(rank));
        }
        (step_move, state)
    }

    #[inline]
    fn draw(&self, (step_move, state): (Move, Buffers), source: &mut Source<'_, impl Rng>) -> Reading {
        self.step(step_move, &state, || source.normal())
    }

    /// Cells side by side, buffer by buffer: the same linear map, with the normals in another order.
    fn sweep(
        &self,
        step_move: Move,
        stack: &[Vec<f64>],
        len: usize,
        drawn: &mut [Vec<f64>],
        noise: &mut Vec<f64>,
        rng: &mut impl Rng,
    ) {
        let row = self.blt.row();
        let own;
        let jump = match (step_move.skipped, self.jumps.get(step_move.skipped)) {
            (0, _) => None,
            (_, Some(jump)) => Some(jump),
            // Another length has taken its place.
            (skipped, None) => {
                own = self.on_its_own(skipped);
                own.get(skipped)
            }
        };
        let (decay, columns) = jump.map_or((&[][..], &[][..]), |jump| (jump.decay, jump.columns));
        let rank = columns.len() / row.len().max(1);
        let Some((values, states)) = drawn.split_last_mut() else { return };
        let (mut normals, mut z) = ([[0.0; CHUNK]; MAX_BUFFERS], [0.0; CHUNK]);
        for start in (0..len).step_by(CHUNK) {
            let cells = start..len.min(start + CHUNK);
            let count = cells.len();
            for normals in &mut normals[..rank] {
                fill(&mut normals[..count], rng);
            }
            z[..count].iter_mut().for_each(|z| *z = self.scale * standard_normal(rng));
            let mut total = z;
            for (i, (next, &(omega, rate))) in states.iter_mut().zip(row).enumerate() {
                let state = stack.get(i).filter(|_| !step_move.first).map(|state| &state[cells.clone()]);
                let mut jumped = [0.0; CHUNK];
                let arrived = match (state, jump) {
                    (Some(state), None) => state,
                    (state, _) => {
                        if let (Some(state), Some(decay)) = (state, decay.get(i)) {
                            jumped.iter_mut().zip(state).for_each(|(jumped, state)| *jumped = decay * state);
                        }
                        for (column, normals) in columns.chunks_exact(row.len()).zip(&normals) {
                            // A pivot's row ends with its column.
                            if column[i] != 0.0 {
                                let entry = column[i];
                                jumped.iter_mut().zip(normals).for_each(|(jumped, z)| *jumped += entry * z);
                            }
                        }
                        &jumped[..count]
                    }
                };
                next.extend(arrived.iter().zip(&z).zip(&mut total).map(|((state, z), total)| {
                    *total += omega * state;
                    state + (z - rate * state)
                }));
            }
            values.extend_from_slice(&total[..count]);
            noise.extend_from_slice(&total[..count]);
        }
    }

    #[inline]
    fn noise(value: f64) -> f64 {
        value
    }

    fn fits(&self, step: u64, values: usize, now: u64) -> bool {
        (1..=now).contains(&step) && values == self.blt.buffers() + 1
    }

    /// What a buffer adds to the noise is bounded, as the noise itself: ten of them stay below the limit together. (Each has a
    /// standard deviation of a few `s`, and a sixteenth of the limit is a thousand.)
    fn is_possible(&self, rank: usize, value: f64, limit: f64) -> bool {
        let weight = self.blt.row().get(rank).map_or(1.0, |&(omega, _)| omega);
        (weight * value).abs() <= limit / 16.0
    }

    fn bytes(&self) -> usize {
        self.jumps.lengths.capacity() * size_of::<(u64, usize)>() + self.jumps.numbers.capacity() * size_of::<f64>()
    }
}

#[cfg(test)]
mod tests;
