//! From a budget to the scale of the noise: the only place that knows how much a mechanism must add.
//!
//! A structure states its sensitivity, the caller the budget, the unit of protection and the horizon. For the tree
//! `s^2 = tau L2^2 m^2 / (2 rho)`, with `tau` of [`tree`] exact for the tree with `2^h` leaves.

pub(crate) mod tree;

use crate::error::{Error, Result};
use crate::math::sqrt;
use crate::privacy::Loss;
use crate::release_law::ReleaseLaw;
use crate::time::Horizon;

/// How the noise of different steps is correlated, and how its scale is set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mechanism {
    /// The Gaussian binary tree with the exact calibration (`docs/proof-tree-calibration.md`).
    #[default]
    Tree,
    /// The same tree with the paper's sufficient scale, node variance `(h + 2) / (8 rho)` (section 2). Up to 2.12
    /// times the variance of [`Mechanism::Tree`] for the same privacy; for comparison only.
    TreePaper,
}

/// What one person's data is: neighbouring data sets differ in one such unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unit {
    /// One update within the bound is added or removed (the paper's neighbours).
    #[default]
    Update,
    /// One insertion and its later deletion, or an insertion alone: the life of a row.
    Lifetime,
}

/// The scale of the noise, and what it was made from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Calibration {
    levels: u32,
    tau: f64,
    node_std: f64,
}

impl Calibration {
    /// Levels of the tree below its root, `h = ceil(log2 T)`.
    pub fn levels(&self) -> u32 {
        self.levels
    }

    /// The squared sensitivity of the tree to a unit of norm one: `rho = tau L2^2 m^2 / (2 s^2)`.
    pub fn tau(&self) -> f64 {
        self.tau
    }

    /// The standard deviation `s` of one node variable, in the caller's units.
    pub fn node_std(&self) -> f64 {
        self.node_std
    }

    /// The standard deviation `s sqrt(h + 1)` of the noise of a release, the same at every step.
    pub fn release_std(&self) -> f64 {
        self.node_std * sqrt(f64::from(self.levels + 1))
    }

    /// The law of the noise of a release at a step; the tree's is the same at each.
    pub(crate) fn release_law(&self, _step: u64) -> ReleaseLaw {
        ReleaseLaw::Normal { std: self.release_std() }
    }
}

/// A relative allowance for the rounding of `tau` and of `s` itself, so that the true loss is never above the
/// stated one. It is 600 times the rounding error of `tau` that was measured (`docs/proof-tree-calibration.md`).
const ROUNDING: f64 = 1.0 + 1.0 / (1u64 << 44) as f64;

/// The noise scale for a loss.
///
/// `l2` bounds the L2 norm of one update, `contributions` the number of units a person has (all of them may
/// fall on the same cell and step, so the norms add up).
///
/// # Errors
/// [`Error::Parameter`] for zero contributions and for `tree-paper` with a horizon of one step.
pub(crate) fn scale(
    loss: Loss,
    mechanism: Mechanism,
    unit: Unit,
    contributions: u32,
    horizon: Horizon,
    l2: f64,
) -> Result<Calibration> {
    if contributions == 0 {
        return Err(Error::Parameter { name: "contributions", given: 0u32.into(), allowed: "at least 1" });
    }
    let levels = horizon.levels();
    let tau = match (mechanism, unit) {
        (Mechanism::TreePaper, _) if levels == 0 => {
            // The formula would give half of the variance that one step needs.
            return Err(Error::Parameter {
                name: "horizon",
                given: horizon.steps().into(),
                allowed: "at least 2 with the mechanism tree-paper, whose formula is made for T > 1 (use tree)",
            });
        }
        (Mechanism::Tree, Unit::Update) => tree::tau_update(levels),
        (Mechanism::Tree, Unit::Lifetime) => tree::tau_lifetime(levels),
        (Mechanism::TreePaper, Unit::Update) => tree::tau_paper(levels),
        (Mechanism::TreePaper, Unit::Lifetime) => tree::tau_paper_lifetime(levels),
    };
    let node_std = l2 * f64::from(contributions) * sqrt(tau) / loss.mu() * ROUNDING;
    Ok(Calibration { levels, tau, node_std })
}
