//! `ContinualCounter`.

use fastgame_core::Rows;
use pyo3::prelude::*;
use pyo3::pyclass_init::PyClassInitializer as Init;
use pyo3::types::PyDict;

use crate::arrays::{Argument, Beyond, integers_or_bad};
use crate::keys::without;
use crate::parameters::{Arguments, Parameters};
use crate::plan::Plan;
use crate::structure::Structure;

/// A counter that follows inserts and deletes and can be released at any time step.
///
/// All parameters are keywords.
///
/// Parameters
/// ----------
/// horizon : int
///     The number of time steps, 1 to 2**62. Public. A long horizon costs little; at its end the structure is spent.
///     One step is the static, one-shot mechanism.
/// privacy : Zcdp, Gdp, ApproxDp or PureDp
///     The budget for all answers together. PureDp (delta = 0) is spent on Laplace noise, the others on Gaussian noise.
/// max_weight : int
///     The largest absolute weight of one update, 1 to 2**31.
/// mechanism : {"tree", "blt", "tree-paper"}
///     How the noise of different steps is correlated. "tree" is the binary tree, calibrated exactly: the fastest. "blt" has
///     about half its variance at the end of a long horizon, and less before (buffered linear Toeplitz noise; not with PureDp).
///     "tree-paper" adds the paper's noise (section 2), for comparison: 1.8 times the variance of "tree" at a year of hours,
///     2.1 times at 2**62 steps, for the same privacy. `plan(...).compare()` says which to choose.
/// buffers : int or None
///     Of "blt": numbers that a cell keeps, 1 to 10. None: as few as have a variance within 1 % of the best.
/// protect : {"update", "lifetime"}
///     What neighbouring data differ in: one update, or one insertion with its later deletion.
/// contributions : int
///     How many such units one person has; any of them are protected together (standard deviation times this).
/// on_excess : {"error", "clip"}
///     Whether an update over its bound is invalid, or scaled down onto the bound.
/// invalid : {"raise", "drop"}
///     Whether an invalid element fails the call, or is left out alone. Pipelines should use "drop": a caller that
///     catches the error and carries on lets one bad element move a whole batch, which no guarantee covers.
/// insecure_seed : int or None
///     For tests and reproducible studies only: whoever knows the seed knows the noise. None: fresh randomness from
///     the operating system.
///
/// Raises
/// ------
/// ValueError, TypeError
///     For a parameter that is not allowed; the message says what is.
#[pyclass(frozen, extends = Structure, module = "fastgame")]
pub(crate) struct ContinualCounter {
    max_weight: u32,
}

impl ContinualCounter {
    pub(crate) fn around(structure: Structure) -> PyResult<Init<Self>> {
        // The class's own: of another size than that of other structures, so that Python does not let one class be
        // put in the other's place.
        let own = Self { max_weight: structure.parameters().max_weight() };
        Ok(Init::from(structure).add_subclass(own))
    }
}

#[pymethods]
impl ContinualCounter {
    #[new]
    #[pyo3(signature = (**arguments), text_signature = "(*, horizon, privacy, max_weight=1, mechanism='tree', buffers=None, \
        protect='update', contributions=1, on_excess='error', invalid='raise', insecure_seed=None)")]
    fn new(arguments: Option<&Bound<'_, PyDict>>) -> PyResult<Init<Self>> {
        Self::around(Structure::new(Parameters::counter(&Arguments::new(arguments))?)?)
    }

    /// What a counter with these parameters would cost, without building it: a Plan.
    #[staticmethod]
    #[pyo3(signature = (**arguments), text_signature = "(*, horizon, privacy, max_weight=1, mechanism='tree', buffers=None, \
        protect='update', contributions=1, on_excess='error', invalid='raise', insecure_seed=None)")]
    fn plan(arguments: Option<&Bound<'_, PyDict>>) -> PyResult<Plan> {
        Plan::new(Parameters::counter(&Arguments::new(arguments))?)
    }

    /// The largest absolute weight of one update.
    #[getter]
    fn max_weight(&self) -> u32 {
        self.max_weight
    }

    /// Adds weights at the present step, each an update of its own; all or nothing.
    ///
    /// Parameters
    /// ----------
    /// weights : int or array of int, any shape
    ///     Negative weights delete. Any integer dtype, byte order and stride.
    ///
    /// Raises
    /// ------
    /// SealedStepError
    ///     The present step was released already.
    /// ValueError
    ///     A weight is over max_weight (unless on_excess="clip" or invalid="drop").
    /// TypeError
    ///     The weights are not integers; with invalid="drop" an element of a list or an object column that is none is left
    ///     out alone.
    /// OverflowError
    ///     The count would leave the 64-bit range.
    #[pyo3(signature = (weights = Argument::Absent), text_signature = "($self, weights=1)")]
    fn update(slf: &Bound<'_, Self>, weights: Argument<'_>) -> PyResult<()> {
        let structure = slf.as_super().get();
        let (weights, bad) = match weights {
            Argument::Given(weights) => {
                let (weights, bad) = integers_or_bad(&weights, "weights", Beyond::Saturate, structure.drops())?;
                (weights.values.into_weights(), bad)
            }
            Argument::Absent => (vec![1], Vec::new()),
        };
        let weights = if bad.is_empty() { weights } else { without(weights, &bad) };
        let rows: Rows<'_, u64, i64> = Rows::Dense { values: &weights };
        structure.update_rows(slf.py(), rows, bad.len() as u64)
    }

    /// The count at the present step plus noise, as a float; seals the step.
    ///
    /// Asked again at the same step it repeats the answer. Constant time, however much time has passed.
    fn release(slf: &Bound<'_, Self>) -> PyResult<f64> {
        slf.as_super().get().release_one(slf.py())
    }
}
