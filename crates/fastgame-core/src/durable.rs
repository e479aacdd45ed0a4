//! What a structure gives to those who keep it: its parameters by name, the numbers that its noise is drawn with, what was
//! done to it, and its state as records.
//!
//! A mechanism that goes on after a restart must go on with the noise that it had: fresh noise for steps already answered can be
//! averaged with the old one, and old noise with other data gives the data away. So what is kept is a journal of everything
//! that was added and drawn, written before an answer leaves ([`ContinualVector::take_journal`]), and now and then the
//! whole state. Files, syncs and checksums are not here (`fastgame-store`).

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use crate::calibration::{Mechanism, Unit};
use crate::counter::ContinualCounter;
use crate::error::Result;
use crate::join::JoinSize;
use crate::journal::Journal;
use crate::privacy::Loss;
use crate::range::{Estimator, Levels, RangeCounter};
use crate::sketch::{CountSketch, SketchShape};
use crate::vector::{BoundParameter, ContinualVector, Invalid, OnExcess};

mod sealed {
    use super::{ContinualVector, String, Vec};

    /// The vector underneath, to which nobody else may write.
    pub trait Structure {
        const NAME: &'static str;

        fn vector(&self) -> &ContinualVector;

        fn vector_mut(&mut self) -> &mut ContinualVector;

        /// The parameters that the vector does not know.
        fn own_parameters(&self, parameters: &mut Vec<(&'static str, String)>);
    }
}

/// A structure whose changes can be written down, and done again elsewhere. Implemented by all structures of this crate.
pub trait Durable: sealed::Structure {
    /// As [`ContinualVector::keep_journal`].
    fn keep_journal(&mut self) {
        self.vector_mut().keep_journal();
    }

    /// As [`ContinualVector::take_journal`].
    fn take_journal(&mut self) -> Journal {
        self.vector_mut().take_journal()
    }

    /// As [`ContinualVector::replay`].
    ///
    /// # Errors
    /// As there.
    fn replay(&mut self, records: &[u8]) -> Result<()> {
        self.vector_mut().replay(records)
    }

    /// As [`ContinualVector::check_whole`].
    ///
    /// # Errors
    /// As there.
    fn check_whole(&self) -> Result<()> {
        sealed::Structure::vector(self).check_whole()
    }

    /// As [`ContinualVector::image`].
    ///
    /// # Errors
    /// What `each` returns.
    fn image<E>(&self, each: impl FnMut(&[u8]) -> core::result::Result<(), E>) -> core::result::Result<(), E> {
        sealed::Structure::vector(self).image(each)
    }

    /// The present step.
    fn now(&self) -> u64 {
        sealed::Structure::vector(self).now()
    }

    /// Whether the present step was read.
    fn is_sealed(&self) -> bool {
        sealed::Structure::vector(self).is_sealed()
    }

    /// Names and values of all parameters, the structure's name first: what two structures must share for one to go on where
    /// the other stopped. All of it is public.
    fn named_parameters(&self) -> Vec<(&'static str, String)> {
        let mut parameters = vec![("structure", Self::NAME.to_string())];
        let vector = sealed::Structure::vector(self);
        let builder = vector.parameters();
        parameters.push(("horizon", builder.horizon.to_string()));
        parameters.push((
            "privacy",
            match builder.loss {
                Loss::Gaussian { mu } => format!("mu={mu:?}"),
                Loss::Pure { epsilon } => format!("epsilon={epsilon:?}"),
            },
        ));
        let mechanism = match builder.mechanism {
            Mechanism::Tree => "tree",
            Mechanism::TreePaper => "tree-paper",
            Mechanism::Blt { .. } => "blt",
        };
        parameters.push(("mechanism", mechanism.to_string()));
        if let Some(buffers) = vector.calibration().buffers() {
            parameters.push(("buffers", buffers.to_string()));
        }
        let unit = if builder.unit == Unit::Lifetime { "lifetime" } else { "update" };
        parameters.push(("protect", unit.to_string()));
        parameters.push(("contributions", builder.contributions.to_string()));
        let on_excess = if builder.on_excess == OnExcess::Clip { "clip" } else { "error" };
        parameters.push(("on_excess", on_excess.to_string()));
        let invalid = if builder.invalid == Invalid::Drop { "drop" } else { "raise" };
        parameters.push(("invalid", invalid.to_string()));
        parameters.push(("cells", vector.size().to_string()));
        self.own_parameters(&mut parameters);
        parameters
    }

    /// The numbers that noise is drawn with: the lattice step, the scale, and those of a BLT. A version of this crate that gives
    /// others for the same parameters cannot go on where this one stopped.
    fn noise_numbers(&self) -> Vec<f64> {
        sealed::Structure::vector(self).noise_numbers()
    }
}

impl<S: sealed::Structure> Durable for S {}

fn shape_parameters(shape: &SketchShape, parameters: &mut Vec<(&'static str, String)>) {
    parameters.push(("width", shape.width.to_string()));
    parameters.push(("depth", shape.depth.to_string()));
    parameters.push(("max_weight", shape.max_weight.to_string()));
    parameters.push(("hash_seed", shape.hash_seed.to_string()));
}

/// What an update may be, of a vector without a structure on top.
fn bound_parameters(vector: &ContinualVector, parameters: &mut Vec<(&'static str, String)>) {
    parameters.push(match vector.parameters().bound {
        BoundParameter::Weight(weight) | BoundParameter::Cells { weight, .. } => ("max_weight", weight.to_string()),
        BoundParameter::Norm(norm) => ("max_norm", format!("{norm:?}")),
    });
    let blocks = &vector.parameters().blocks;
    if blocks.len() > 1 {
        parameters.push(("blocks", format!("{blocks:?}")));
    }
}

fn range_parameters(range: &RangeCounter, parameters: &mut Vec<(&'static str, String)>) {
    let shape = range.shape();
    parameters.push(("shape", format!("{:?}", shape.sizes)));
    shape_parameters(&shape.sketch(), parameters);
    let levels = match shape.levels {
        Levels::Every(spacing) => spacing.to_string(),
        Levels::Dyadic => "dyadic".to_string(),
    };
    parameters.push(("levels", levels));
    let estimator = if shape.estimator == Estimator::Cover { "cover" } else { "least_squares" };
    parameters.push(("estimator", estimator.to_string()));
}

/// Structures, and what writes the parameters that their vector does not know.
macro_rules! structures {
    ($($name:ident: $own_parameters:expr;)*) => {$(
        impl sealed::Structure for $name {
            const NAME: &'static str = stringify!($name);

            fn vector(&self) -> &ContinualVector {
                self.vector()
            }

            fn vector_mut(&mut self) -> &mut ContinualVector {
                self.vector_mut()
            }

            fn own_parameters(&self, parameters: &mut Vec<(&'static str, String)>) {
                $own_parameters(self, parameters);
            }
        }
    )*};
}

structures! {
    ContinualCounter: |counter: &Self, parameters| bound_parameters(counter.vector(), parameters);
    CountSketch: |sketch: &Self, parameters| shape_parameters(&sketch.shape(), parameters);
    JoinSize: |join: &Self, parameters| shape_parameters(&join.shape(), parameters);
    RangeCounter: range_parameters;
}

impl sealed::Structure for ContinualVector {
    const NAME: &'static str = "ContinualVector";

    fn vector(&self) -> &ContinualVector {
        self
    }

    fn vector_mut(&mut self) -> &mut ContinualVector {
        self
    }

    fn own_parameters(&self, parameters: &mut Vec<(&'static str, String)>) {
        bound_parameters(self, parameters);
    }
}

#[cfg(test)]
mod tests;
