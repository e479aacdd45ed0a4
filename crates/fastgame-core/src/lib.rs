//! Statistics of changing data, released at any time step, under one privacy guarantee for all answers together.
//!
//! This crate is the mathematics of fastgame: counters, vectors, CountSketches, range counts and sizes of joins under
//! continual observation, with correlated noise that is drawn only for what is read, when it is read, in constant time. It
//! implements "A Fast Gaussian Mechanism under Continual Observation, with Applications" (Pagh and Sejer, 2026), with an
//! exact calibration; for the same privacy the paper's has 1.8 times the variance at a year of hours, 2.1 times at 2^62
//! steps.
//!
//! How noise is correlated is a parameter of every structure ([`Mechanism`]; `docs/mechanisms.md`): the Gaussian binary
//! tree, which is the fastest, or buffered linear Toeplitz noise, which has about half its variance. A pure budget
//! ([`PureDp`]) is spent on a tree of Laplace noise. Guarantees and proofs: `docs/guarantees.md`.
//!
//! ```
//! use chacha20::{ChaCha12Rng, rand_core::SeedableRng};
//! use fastgame_core::{Cells, ContinualVector, Zcdp};
//!
//! # fn main() -> Result<(), fastgame_core::Error> {
//! // For this example only: seed from the operating system instead (`getrandom::SysRng`).
//! let mut rng = ChaCha12Rng::from_seed([1; 32]);
//! // A thousand counters over a year of hours; any one update is protected, rho = 0.5 in all.
//! let mut visits = ContinualVector::builder(8_760, Zcdp::new(0.5)?).cells(1_000).build()?;
//! visits.update(&[(3u64, 1i64)])?; // one unit's contribution
//! let first = visits.release(&[3u64], &mut rng)?; // reads cell 3 and seals the step
//! visits.advance(17)?;
//! let all = visits.release(Cells::<u64>::All, &mut rng)?;
//! assert_eq!((first.len(), all.len()), (1, 1_000));
//! # Ok(())
//! # }
//! ```
//!
//! It does not hold a generator, ask the system for randomness, know wall-clock time, use threads or do I/O; it has
//! no unsafe code and needs an allocator only (`default-features = false` for `no_std`).
//!
//! Inside the crate a file uses only files to its right: `durable -> join_plan -> plan -> join, range -> sketch -> vector,
//! hash -> mechanism -> journal -> noise, calibration, lattice, profile -> release_law -> privacy, quantile, time, level_set ->
//! math, error`.

#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]

extern crate alloc;
#[cfg(any(feature = "std", test))]
extern crate std;

mod calibration;
mod counter;
mod durable;
mod error;
mod hash;
mod join;
mod join_plan;
mod journal;
mod lattice;
mod level_set;
mod math;
mod mechanism;
mod noise;
mod plan;
mod privacy;
mod profile;
mod quantile;
mod range;
#[cfg(test)]
mod reference;
mod release_law;
mod sketch;
mod time;
mod vector;

pub use rand_core;

pub use crate::calibration::{Calibration, MAX_BUFFERS, Mechanism, Unit};
pub use crate::counter::ContinualCounter;
pub use crate::durable::Durable;
pub use crate::error::{Error, Given, Result};
pub use crate::hash::{Key, Keyer};
pub use crate::join::{JoinBuilder, JoinEstimate, JoinInterval, JoinSize, MIN_JOIN_WIDTH, Side};
pub use crate::join_plan::{JoinPlan, JoinProfile, JoinTerms};
pub use crate::journal::Journal;
pub use crate::lattice::{Index, MAX_WEIGHT, Quantity};
pub use crate::plan::Plan;
pub use crate::privacy::{ApproxDp, Gdp, Loss, PureDp, Spent, Zcdp, total};
pub use crate::profile::FrequencyProfile;
pub use crate::range::{
    BoxError, Counts, Estimator, HeavyHitters, Interval, Levels, MAX_AXES, MAX_AXIS, MAX_COMPONENTS, MAX_SPACING,
    RangeBuilder, RangeCounter, RangePlan, RangeShape, SecondMoments,
};
pub use crate::sketch::{CountSketch, Estimates, MAX_DEPTH, MAX_WIDTH, RawSketch, SketchBuilder, SketchShape, Weights};
pub use crate::time::{Horizon, MAX_HORIZON};
pub use crate::vector::{Builder, Cells, ContinualVector, Invalid, OnExcess, Pending, Rows};
