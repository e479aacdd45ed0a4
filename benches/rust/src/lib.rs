//! Access patterns, and the baselines that reads are measured against.
//!
//! A pattern is prepared before any timing: which cells are read at which steps. The patterns of one name are the
//! same at every horizon of at least [`SLOTS`] steps: a cell's successive reads split at the same level below the
//! root (`random`, `sparse`) or above the leaf (`dense`), so the same number of normals is drawn, and a difference in
//! cost comes from the horizon alone.
//!
//! The baselines have the law of the tree, or less than it, and do only the part of the work that their name says;
//! none of them holds counters, rounds to a lattice, checks indices, or can hand its draws to a journal. A release
//! of `fastgame` does all of that, so ratios err on the side of the baselines.

pub mod turns;

use chacha20::ChaCha12Rng;
use fastgame_core::rand_core::{Rng, SeedableRng};
use fastgame_core::{ContinualVector, Zcdp};
use rand_distr::{Distribution, StandardNormal};

/// Cells of a vector whose counters and noise stay in a core's own cache.
pub const CELLS: u64 = 1 << 10;
/// Patterns that spread over the horizon cut it into so many equal slots, with at most one step in each.
pub const SLOTS: u64 = 1 << 10;

/// How reads of a cell follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// All cells at each of the first 64 steps, in shuffled order.
    Dense,
    /// At a random step of each slot, one cell in sixteen, drawn anew each time: gaps of a cell are geometric.
    Random,
    /// Every cell sixteen times, its reads `T / 16` apart, up to the length of a slot.
    Sparse,
}

impl Access {
    /// All of them, with their names.
    pub const ALL: [(Self, &'static str); 3] =
        [(Self::Dense, "dense"), (Self::Random, "random"), (Self::Sparse, "sparse")];
}

/// Reads to be made: steps in rising order, and the cells that are read at each.
#[derive(Clone, Debug)]
pub struct Pattern {
    log_horizon: u32,
    cells: u64,
    /// Steps, each with the end of its part of `order`.
    steps: Vec<(u64, usize)>,
    order: Vec<u64>,
}

impl Pattern {
    /// A pattern over a horizon of `2^log_horizon` steps, `log_horizon` from 10 to 62, on [`CELLS`] cells.
    pub fn new(access: Access, log_horizon: u32) -> Self {
        Self::on_cells(access, log_horizon, CELLS)
    }

    /// The same on any number of cells that is a multiple of 64.
    pub fn on_cells(access: Access, log_horizon: u32, cells: u64) -> Self {
        let mut rng = generator(1);
        let slot_length = (1u64 << log_horizon) / SLOTS;
        let mut pattern = Self { log_horizon, cells, steps: Vec::new(), order: Vec::new() };
        let mut all: Vec<u64> = (0..cells).collect();
        match access {
            Access::Dense => {
                for step in 1..=64 {
                    shuffle(&mut all, cells as usize, &mut rng);
                    pattern.push(step, &all);
                }
            }
            Access::Random => {
                let count = cells as usize / 16;
                for slot in 0..SLOTS {
                    shuffle(&mut all, count, &mut rng);
                    pattern.push(slot * slot_length + 1 + below(slot_length, &mut rng), &all[..count]);
                }
            }
            Access::Sparse => {
                for slot in 0..SLOTS {
                    let mut some: Vec<u64> = (slot % 64..cells).step_by(64).collect();
                    shuffle(&mut some, cells as usize / 64, &mut rng);
                    pattern.push(slot * slot_length + 1 + below(slot_length, &mut rng), &some);
                }
            }
        }
        pattern
    }

    fn push(&mut self, step: u64, cells: &[u64]) {
        self.order.extend_from_slice(cells);
        self.steps.push((step, self.order.len()));
    }

    /// `h`: the tree has this many levels below its root.
    pub fn log_horizon(&self) -> u32 {
        self.log_horizon
    }

    /// The number of cells.
    pub fn cells(&self) -> u64 {
        self.cells
    }

    /// The number of reads, a cell each.
    pub fn reads(&self) -> usize {
        self.order.len()
    }

    /// Steps in rising order with the cells read at each, all different.
    pub fn batches(&self) -> impl Iterator<Item = (u64, &[u64])> {
        let mut start = 0;
        self.steps.iter().map(move |&(step, end)| {
            let cells = &self.order[start..end];
            start = end;
            (step, cells)
        })
    }

    /// One read at a time: step and cell.
    pub fn each(&self) -> impl Iterator<Item = (u64, u64)> {
        self.batches().flat_map(|(step, cells)| cells.iter().map(move |&cell| (step, cell)))
    }

    /// How many normals the fast mechanism needs for each read: two for a first read and for a split at a level
    /// whose sum is not known, otherwise one. Computed from the level sets alone.
    pub fn normals(&self) -> Vec<u32> {
        let height = self.log_horizon;
        let mut paths = vec![(0u64, 0u64); self.cells as usize];
        let count = |(step, cell): (u64, u64)| {
            let (last, levels) = &mut paths[cell as usize];
            let split = if *last == 0 { 0 } else { common_levels(*last, step, height) };
            let known = *levels >> split & 1 == 1;
            *levels = (*levels & ((1 << split) - 1)) | (1 << split) | (1 << height);
            *last = step;
            if known { 1 } else { 2 }
        };
        self.each().map(count).collect()
    }

    /// A vector for this pattern, nothing read yet.
    pub fn vector(&self) -> ContinualVector {
        vector(self.log_horizon, self.cells as usize)
    }
}

/// The norm bound of updates: a dense row of ones on [`CELLS`] cells is just within it.
pub const MAX_WEIGHT: u32 = 32;

/// A vector of `cells` integer counters over a horizon of `2^log_horizon` steps.
///
/// # Panics
/// If the horizon is beyond `2^62` or the cells do not fit in memory.
pub fn vector(log_horizon: u32, cells: usize) -> ContinualVector {
    let budget = Zcdp::new(0.5).expect("a valid budget");
    let builder = ContinualVector::builder(1 << log_horizon, budget).cells(cells).max_weight(MAX_WEIGHT);
    builder.build().expect("valid parameters")
}

/// The generator of every benchmark, seeded: runs repeat each other.
pub fn generator(seed: u8) -> ChaCha12Rng {
    ChaCha12Rng::from_seed([seed; 32])
}

/// A number below `n`, as good as uniform.
pub fn below(n: u64, rng: &mut impl Rng) -> u64 {
    ((u128::from(rng.next_u64()) * u128::from(n)) >> 64) as u64
}

/// Puts `count` random elements in front, in random order.
fn shuffle(list: &mut [u64], count: usize, rng: &mut impl Rng) {
    for i in 0..count {
        let j = i + below((list.len() - i) as u64, rng) as usize;
        list.swap(i, j);
    }
}

fn common_levels(a: u64, b: u64, height: u32) -> u32 {
    height + ((a - 1) ^ (b - 1)).leading_zeros() - u64::BITS
}

fn normal(rng: &mut impl Rng) -> f64 {
    StandardNormal.sample(rng)
}

/// **Redrawing the path level by level**: the obvious way to jump. The sums of the whole path of the last read are
/// kept, one a level; a read keeps them down to the split and draws one normal for every level below. The law is the
/// tree's; the cost is up to `h + 1` normals and the memory `h + 1` floats a cell.
#[derive(Clone, Debug)]
pub struct LevelByLevel {
    height: u32,
    last: Vec<u64>,
    /// Prefix sums of the path, `height + 1` a cell.
    sums: Vec<f64>,
}

impl LevelByLevel {
    /// Nothing read yet.
    pub fn new(log_horizon: u32, cells: u64) -> Self {
        let levels = log_horizon as usize + 1;
        Self { height: log_horizon, last: vec![0; cells as usize], sums: vec![0.0; cells as usize * levels] }
    }

    /// The noise of `cell` at `step`, standard normals at the nodes.
    #[inline]
    pub fn read(&mut self, cell: u64, step: u64, rng: &mut impl Rng) -> f64 {
        let levels = self.height as usize + 1;
        let path = &mut self.sums[cell as usize * levels..][..levels];
        let last = std::mem::replace(&mut self.last[cell as usize], step);
        let mut sum = 0.0;
        let mut first = 0;
        if last == step {
            return path[levels - 1];
        } else if last != 0 {
            first = common_levels(last, step, self.height) as usize + 1;
            sum = path[first - 1];
        }
        for at in &mut path[first..] {
            sum += normal(rng);
            *at = sum;
        }
        sum
    }
}

/// **Walking through all skipped steps**: what a generator does that yields the noise of one step after the other, as
/// public tree aggregators do. Every step redraws the levels below its split, two normals on average, so a read
/// costs twice its gap. Same law, same memory as [`LevelByLevel`].
#[derive(Clone, Debug)]
pub struct Walk(LevelByLevel);

impl Walk {
    /// Nothing read yet.
    pub fn new(log_horizon: u32, cells: u64) -> Self {
        Self(LevelByLevel::new(log_horizon, cells))
    }

    /// The noise of `cell` at `step`, standard normals at the nodes.
    #[inline]
    pub fn read(&mut self, cell: u64, step: u64, rng: &mut impl Rng) -> f64 {
        let next = self.0.last[cell as usize] + 1;
        (next..=step).fold(0.0, |_, step| self.0.read(cell, step, rng))
    }
}

/// **The floor**: the normals that the fast mechanism needs, from the same generator, and one cache line of the cell.
/// Nothing that draws exact tree noise from these normals can be faster.
#[derive(Clone, Debug)]
pub struct Floor {
    lines: Vec<[f64; 8]>,
}

impl Floor {
    /// A cache line a cell.
    pub fn new(cells: u64) -> Self {
        Self { lines: vec![[1.0; 8]; cells as usize] }
    }

    /// Draws `normals` and looks at the line of `cell`.
    #[inline]
    pub fn read(&mut self, cell: u64, normals: u32, rng: &mut impl Rng) -> f64 {
        (0..normals).fold(self.lines[cell as usize][0], |sum, _| sum + normal(rng))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastgame_core::rand_core::{TryCryptoRng, TryRng};
    use std::convert::Infallible;

    /// Counts the words that are asked for.
    struct Counting(ChaCha12Rng, u64);

    impl TryRng for Counting {
        type Error = Infallible;

        fn try_next_u32(&mut self) -> Result<u32, Infallible> {
            unreachable!("normals are made of whole words")
        }

        fn try_next_u64(&mut self) -> Result<u64, Infallible> {
            self.1 += 1;
            self.0.try_next_u64()
        }

        fn try_fill_bytes(&mut self, _: &mut [u8]) -> Result<(), Infallible> {
            unreachable!("normals are made of whole words")
        }
    }

    impl TryCryptoRng for Counting {}

    #[test]
    fn a_pattern_needs_the_same_normals_at_every_horizon() {
        for (access, name) in Access::ALL {
            let normals = Pattern::new(access, 10).normals();
            for log_horizon in [11, 16, 40, 62] {
                assert_eq!(Pattern::new(access, log_horizon).normals(), normals, "{name}, 2^{log_horizon}");
            }
        }
    }

    #[test]
    fn a_pattern_stays_in_its_horizon_and_moves_forward() {
        for (access, name) in Access::ALL {
            for log_horizon in [10, 40, 62] {
                let pattern = Pattern::new(access, log_horizon);
                let steps: Vec<u64> = pattern.batches().map(|(step, _)| step).collect();
                assert!(steps[0] >= 1 && steps[steps.len() - 1] <= 1 << log_horizon, "{name}");
                assert!(steps.windows(2).all(|pair| pair[0] < pair[1]), "{name}");
                assert_eq!(pattern.each().count(), pattern.reads(), "{name}");
            }
        }
    }

    #[test]
    fn the_floor_draws_as_many_normals_as_a_read() {
        for (access, name) in Access::ALL {
            let pattern = Pattern::new(access, 40);
            let needed = u64::from(pattern.normals().iter().sum::<u32>());
            let (mut vector, mut rng) = (pattern.vector(), Counting(generator(2), 0));
            for (step, cell) in pattern.each() {
                vector.advance(step).unwrap();
                vector.release(&[cell], &mut rng).unwrap();
            }
            // The ziggurat rejects one word in 80 or so; it asks for about 1.02 words a normal.
            assert!(rng.1 >= needed && rng.1 * 100 < needed * 104, "{name}: {needed} normals, {} words", rng.1);
        }
    }

    #[test]
    fn baselines_have_the_variance_of_the_tree() {
        let steps = [1u64, 2, 6, 7, 16];
        let paths = 40_000u64;
        let mut rng = generator(3);
        let mut jump = LevelByLevel::new(4, paths);
        let mut walk = Walk::new(4, paths);
        for step in steps {
            let mut squares = [0.0; 2];
            for cell in 0..paths {
                squares[0] += jump.read(cell, step, &mut rng).powi(2);
                squares[1] += walk.read(cell, step, &mut rng).powi(2);
            }
            for sum in squares {
                // Variance 5, standard error 0.7 %: five of them. Fails once in 10^5 seeds.
                assert!((sum / paths as f64 / 5.0 - 1.0).abs() < 0.035, "step {step}: {}", sum / paths as f64);
            }
        }
    }
}
