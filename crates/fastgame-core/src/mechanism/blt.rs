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

use alloc::vec::Vec;

use rand_core::Rng;

use super::{After, Drawn, Process};
use crate::calibration::MAX_BUFFERS;
use crate::calibration::blt::{Blt, Decay};
use crate::math::{exp, ln_1p, sqrt};
use crate::noise::gaussian::standard_normal;

/// Numbers for each buffer; those beyond the number of buffers are zero.
type Buffers = [f64; MAX_BUFFERS];

/// A pivot of a matrix with unit diagonal that is at most this is rounding: what is left of the variance is below it.
const LEAST_PIVOT: f64 = 4e-15;
/// Factors that are kept at most.
const MOST_JUMPS: u64 = 64;

/// How many factors are kept for a vector of `size` cells: a power of two.
fn places(size: u64) -> usize {
    size.min(MOST_JUMPS).next_power_of_two() as usize
}

/// The memory of the factors in bytes.
pub(crate) fn bytes_beside_cells(size: u64) -> u64 {
    (places(size) * size_of::<Option<Jump>>()) as u64
}

/// A jump over steps that are not read: the state's decay, and a factor of the covariance of what comes in.
#[derive(Clone, Debug)]
struct Jump {
    skipped: u64,
    decay: Buffers,
    /// Columns of a matrix `F` with `F F^T = s^2 Q_n`, as many as its rank to working precision.
    columns: [Buffers; MAX_BUFFERS],
    rank: usize,
}

impl Jump {
    /// `Q_n` scaled to unit diagonal, by Cholesky's method with diagonal pivoting. Without pivoting, or with the slowest decay
    /// first, rounding can ruin a whole column: variances were off by 350 % at single lengths.
    fn new(blt: &Blt, scale: f64, skipped: u64) -> Self {
        let row = blt.row();
        let d = row.len();
        let mut jump = Self { skipped, decay: [0.0; MAX_BUFFERS], columns: [[0.0; MAX_BUFFERS]; MAX_BUFFERS], rank: 0 };
        let mut powers = [Decay::new(0.5, 0); MAX_BUFFERS];
        let mut diagonal: Buffers = [0.0; MAX_BUFFERS];
        for (i, &(_, e)) in row.iter().enumerate() {
            powers[i] = Decay::new(e, skipped);
            jump.decay[i] = exp(skipped as f64 * ln_1p(-e));
            diagonal[i] = sqrt(powers[i].products(&powers[i]));
        }
        let correlation = |i: usize, k: usize| powers[i].products(&powers[k]) / (diagonal[i] * diagonal[k]);
        // What is left of each variance.
        let mut left: Buffers = [1.0; MAX_BUFFERS];
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
    fn values(&self) -> impl Iterator<Item = f64> + Clone {
        self.state[..self.buffers].iter().copied().chain([self.noise])
    }

    #[inline]
    fn last(&self) -> f64 {
        self.noise
    }
}

/// What a read has to draw.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Move {
    /// Nothing was read before: the state is zero.
    first: bool,
    /// Steps that are jumped over.
    skipped: u64,
}

/// The noise of a BLT.
pub(crate) struct BltProcess {
    blt: Blt,
    scale: f64,
    omega: Buffers,
    rates: Buffers,
    /// At the place of its length, the last jump that had it.
    jumps: Vec<Option<Jump>>,
}

impl BltProcess {
    /// For a vector of `size` cells.
    pub(crate) fn new(blt: Blt, scale: f64, size: u64) -> Self {
        let (mut omega, mut rates) = ([0.0; MAX_BUFFERS], [0.0; MAX_BUFFERS]);
        for (i, &buffer) in blt.row().iter().enumerate() {
            (omega[i], rates[i]) = buffer;
        }
        let mut jumps = Vec::with_capacity(places(size));
        jumps.resize_with(places(size), || None);
        Self { blt, scale, omega, rates, jumps }
    }

    /// Where a jump of this length is kept.
    #[inline]
    fn place(&self, skipped: u64) -> usize {
        // The upper bits of a product depend on all bits of the length.
        (skipped.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58) as usize & (self.jumps.len() - 1)
    }

    /// The state at the step that is read, after a jump.
    #[inline]
    fn arrive(&self, jump: &Jump, state: &Buffers, mut normal: impl FnMut() -> f64) -> Buffers {
        let mut arrived = [0.0; MAX_BUFFERS];
        for i in 0..MAX_BUFFERS {
            arrived[i] = jump.decay[i] * state[i];
        }
        for column in &jump.columns[..jump.rank] {
            let z = normal();
            for i in 0..MAX_BUFFERS {
                arrived[i] += column[i] * z;
            }
        }
        arrived
    }

    /// A read at the step of this state.
    #[inline]
    fn read(&self, state: &Buffers, normal: f64) -> Reading {
        let z = self.scale * normal;
        let mut reading = Reading { state: [0.0; MAX_BUFFERS], buffers: self.blt.buffers(), noise: z };
        let parameters = self.omega.iter().zip(&self.rates);
        for ((next, state), (omega, rate)) in reading.state.iter_mut().zip(state).zip(parameters) {
            reading.noise += omega * state;
            // lambda s + z, without rounding lambda.
            *next = state + (z - rate * state);
        }
        reading
    }

    /// One read from a state, as a linear map of the normals that it takes.
    #[inline]
    fn step(&self, step_move: Move, state: &Buffers, mut normal: impl FnMut() -> f64) -> Reading {
        if step_move.skipped == 0 {
            return self.read(state, normal());
        }
        let arrived = match &self.jumps[self.place(step_move.skipped)] {
            Some(jump) if jump.skipped == step_move.skipped => self.arrive(jump, state, &mut normal),
            // Another length has taken its place since.
            _ => self.arrive(&Jump::new(&self.blt, self.scale, step_move.skipped), state, &mut normal),
        };
        self.read(&arrived, normal())
    }
}

impl Process for BltProcess {
    type Head = u64;
    type Value = f64;
    type Move = Move;
    type Drawn = Reading;

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
        if step_move.skipped > 0 {
            let place = self.place(step_move.skipped);
            if self.jumps[place].as_ref().is_none_or(|jump| jump.skipped != step_move.skipped) {
                self.jumps[place] = Some(Jump::new(&self.blt, self.scale, step_move.skipped));
            }
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
    fn draw(&self, step_move: Move, value_at: impl Fn(u32) -> f64, rng: &mut impl Rng) -> Reading {
        let mut state = [0.0; MAX_BUFFERS];
        if !step_move.first {
            (0..).zip(&mut state[..self.blt.buffers()]).for_each(|(rank, buffer)| *buffer = value_at(rank));
        }
        self.step(step_move, &state, || standard_normal(rng))
    }

    #[inline]
    fn noise(value: f64) -> f64 {
        value
    }

    fn bytes(&self) -> usize {
        self.jumps.capacity() * size_of::<Option<Jump>>()
    }
}

#[cfg(test)]
mod tests;
