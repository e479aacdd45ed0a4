//! From a budget to the scale of the noise: the only place that knows how much a mechanism must add.
//!
//! A structure states its sensitivity, the caller the budget, the unit of protection and the horizon. Of Gaussian noise `s^2 = tau
//! L2^2 m^2 / (2 rho)`, with `tau` of [`tree`] exact for the tree with `2^h` leaves, and that of [`blt`] the squared column norm. Of
//! Laplace noise `b = tau L1 m / epsilon` with the `tau` of [`laplace`].

pub(crate) mod blt;
mod blt_table;
pub(crate) mod laplace;
pub(crate) mod tree;

use self::blt::Blt;
use crate::error::{Error, Result};
use crate::math::sqrt;
use crate::privacy::Loss;
use crate::release_law::ReleaseLaw;
use crate::time::{Horizon, planned_step};

/// The most buffers of a BLT.
pub const MAX_BUFFERS: usize = blt_table::MAX_BUFFERS;

/// How the noise of different steps is correlated, and how its scale is set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mechanism {
    /// The binary tree with the exact calibration: Gaussian (`docs/proof-tree-calibration.md`), or Laplace for a pure
    /// budget. The fastest.
    #[default]
    Tree,
    /// The same Gaussian tree with the paper's sufficient scale, node variance `(h + 2) / (8 rho)` (section 2). Up to 2.12
    /// times the variance of [`Mechanism::Tree`] for the same privacy; for comparison only.
    TreePaper,
    /// Buffered linear Toeplitz noise, Gaussian: about half the variance of [`Mechanism::Tree`], near the least known
    /// (`docs/mechanisms.md`). Its variance grows with the step.
    Blt {
        /// How many buffers, `1..=MAX_BUFFERS`. `None`: as few as have a variance within 1 % of the best.
        buffers: Option<u32>,
    },
}

impl Mechanism {
    /// A number for each, for the keys of generators.
    pub(crate) fn code(self) -> u64 {
        match self {
            Self::Tree => 0,
            Self::TreePaper => 1,
            Self::Blt { buffers } => 2 + (u64::from(buffers.unwrap_or(0)) << 8),
        }
    }
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

/// How much one update moves all cells together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sensitivity {
    /// Sum of absolute values.
    pub(crate) l1: f64,
    /// Root of the sum of squares.
    pub(crate) l2: f64,
}

/// The scale of the noise, and what it was made from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Calibration {
    horizon: Horizon,
    kind: Kind,
    tau: f64,
    scale: f64,
}

/// The noise of one cell over time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    GaussianTree,
    LaplaceTree,
    Blt(Blt),
}

impl Calibration {
    /// `h = ceil(log2 T)`: levels of a tree over the horizon below its root.
    pub fn levels(&self) -> u32 {
        self.horizon.levels()
    }

    /// The mechanism's own sensitivity, to a unit of norm one: `rho = tau L2^2 m^2 / (2 s^2)`, of Laplace noise `epsilon =
    /// tau L1 m / b`.
    pub fn tau(&self) -> f64 {
        self.tau
    }

    /// The standard deviation `s` of one independent variable of the noise, in the caller's units: of a node of the tree (of
    /// a Laplace tree `sqrt(2) b`); of what a BLT adds at each step.
    pub fn scale(&self) -> f64 {
        self.scale
    }

    /// How many buffers a cell has, if the noise is a BLT's.
    pub fn buffers(&self) -> Option<usize> {
        match self.kind {
            Kind::Blt(blt) => Some(blt.buffers()),
            _ => None,
        }
    }

    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    /// The scale `b` of a Laplace variable.
    pub(crate) fn laplace_scale(&self) -> f64 {
        self.scale * core::f64::consts::FRAC_1_SQRT_2
    }

    /// The standard deviation of the noise of a release at a step: `s sqrt(h + 1)` at each step of a tree; that of a BLT grows.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless the step is from 1 to the horizon.
    pub fn release_std_at(&self, step: u64) -> Result<f64> {
        Ok(self.release_law(planned_step(step, self.horizon.steps())?).std())
    }

    /// The standard deviation of the noise of a release at the last step, where it is largest.
    pub fn release_std(&self) -> f64 {
        self.release_law(self.horizon.steps()).std()
    }

    /// How many 8-byte words the values of a cell take at most, and the words in front of them if it is read on its own.
    pub(crate) fn words_of_cell(&self) -> (u64, u64) {
        let path = u64::from(self.levels() + 1);
        match self.kind {
            Kind::GaussianTree => (path, 2),
            Kind::LaplaceTree => (2 * path, 2),
            Kind::Blt(blt) => (blt.buffers() as u64 + 1, 1),
        }
    }

    /// How many variables a read of a cell draws at most: normals, or gamma variables of a Laplace tree.
    pub(crate) fn draws_of_cell(&self) -> u64 {
        match self.kind {
            Kind::GaussianTree => 2,
            // Two sums, and two shares of two each.
            Kind::LaplaceTree => 6,
            Kind::Blt(blt) => blt.buffers() as u64 + 1,
        }
    }

    /// The law of the noise of a release at a step from 1 to the horizon; a tree's is the same at each.
    pub(crate) fn release_law(&self, step: u64) -> ReleaseLaw {
        let nodes = self.levels() + 1;
        match self.kind {
            Kind::GaussianTree => ReleaseLaw::Normal { std: self.scale * sqrt(f64::from(nodes)) },
            Kind::LaplaceTree => ReleaseLaw::Laplace { scale: self.laplace_scale(), nodes },
            Kind::Blt(blt) => ReleaseLaw::Normal { std: self.scale * sqrt(blt.variance(step)) },
        }
    }
}

/// A relative allowance for the rounding of `tau` and of `s` itself, so that the true loss is never above the
/// stated one. It is 600 times the rounding error of `tau` that was measured (`docs/proof-tree-calibration.md`).
const ROUNDING: f64 = 1.0 + 1.0 / (1u64 << 44) as f64;

/// The noise scale for a loss.
///
/// `sensitivity` bounds the norm of one update, `contributions` the number of units a person has (all of them may
/// fall on the same cell and step, so the norms add up).
///
/// # Errors
/// [`Error::Parameter`] for zero contributions and for `tree-paper` with a horizon of one step, [`Error::Unsupported`] for a
/// pure budget with a Gaussian mechanism, and [`Error::Buffers`] for a number of buffers that there are no parameters for.
pub(crate) fn scale(
    loss: Loss,
    mechanism: Mechanism,
    unit: Unit,
    contributions: u32,
    horizon: Horizon,
    sensitivity: Sensitivity,
) -> Result<Calibration> {
    if contributions == 0 {
        return Err(Error::Parameter { name: "contributions", given: 0u32.into(), allowed: "at least 1" });
    }
    let levels = horizon.levels();
    let group = f64::from(contributions);
    if let Loss::Pure { epsilon } = loss {
        if mechanism != Mechanism::Tree {
            return Err(Error::Unsupported {
                what: "a pure budget is spent on Laplace noise, which has the mechanism \"tree\" only; take that, or a Gaussian \
                       budget (Zcdp, Gdp, ApproxDp) for \"tree-paper\" and \"blt\"",
            });
        }
        let tau = laplace::tau(levels, unit);
        let b = tau * sensitivity.l1 * group / epsilon * ROUNDING;
        return Ok(Calibration { horizon, kind: Kind::LaplaceTree, tau, scale: core::f64::consts::SQRT_2 * b });
    }
    let (kind, tau) = match (mechanism, unit) {
        (Mechanism::TreePaper, _) if levels == 0 => {
            // The formula would give half of the variance that one step needs.
            return Err(Error::Parameter {
                name: "horizon",
                given: horizon.steps().into(),
                allowed: "at least 2 with the mechanism tree-paper, whose formula is made for T > 1 (use tree)",
            });
        }
        (Mechanism::Tree, Unit::Update) => (Kind::GaussianTree, tree::tau_update(levels)),
        (Mechanism::Tree, Unit::Lifetime) => (Kind::GaussianTree, tree::tau_lifetime(levels)),
        (Mechanism::TreePaper, Unit::Update) => (Kind::GaussianTree, tree::tau_paper(levels)),
        (Mechanism::TreePaper, Unit::Lifetime) => (Kind::GaussianTree, tree::tau_paper_lifetime(levels)),
        (Mechanism::Blt { buffers }, unit) => {
            let blt = Blt::new(horizon, buffers)?;
            let tau = match unit {
                Unit::Update => blt.tau_update(horizon.steps()),
                Unit::Lifetime => blt.tau_lifetime(horizon.steps()),
            };
            (Kind::Blt(blt), tau)
        }
    };
    let scale = sensitivity.l2 * group * sqrt(tau) / loss.mu() * ROUNDING;
    Ok(Calibration { horizon, kind, tau, scale })
}
