//! `ContinualVector`.

use fastgame_core::{Cells, Index, Rows};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pyclass_init::PyClassInitializer as Init;
use pyo3::types::PyDict;

use crate::arrays::{Argument, Beyond, Integers, RowArrays, floats, integers, output, rows};
use crate::parameters::{Arguments, Parameters};
use crate::plan::Plan;
use crate::structure::Structure;

/// A vector of numbers that follows updates; any of its cells can be released at any time step.
///
/// One cell for each event: `update(cells)` counts each element as a unit of its own. A unit that touches several cells is a
/// row (`update_row`, `update_rows`).
///
/// Only `size` may be given by position.
///
/// Parameters
/// ----------
/// size : int
///     The number of cells. Public.
/// horizon : int
///     The number of time steps, 1 to 2**62. Public. A long horizon costs little; at its end the structure is spent.
///     One step is the static, one-shot mechanism.
/// privacy : Zcdp, Gdp, ApproxDp or PureDp
///     The budget for all answers together. PureDp (delta = 0) is spent on Laplace noise, the others on Gaussian noise.
/// max_norm : float
///     The largest L2 norm of one update (L1 norm with PureDp). Values are kept in multiples of 2**(floor(log2(max_norm)) - 20), rounded
///     toward zero.
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
pub(crate) struct ContinualVector {
    size: usize,
    max_norm: f64,
}

impl ContinualVector {
    pub(crate) fn around(structure: Structure) -> PyResult<Init<Self>> {
        let parameters = structure.parameters();
        let own = Self { size: parameters.cells(), max_norm: parameters.max_norm() };
        Ok(Init::from(structure).add_subclass(own))
    }
}

#[pymethods]
impl ContinualVector {
    #[new]
    #[pyo3(signature = (size, **arguments), text_signature = "(size, *, horizon, privacy, max_norm=1.0, \
        mechanism='tree', buffers=None, protect='update', contributions=1, on_excess='error', invalid='raise', insecure_seed=None)")]
    fn new(size: &Bound<'_, PyAny>, arguments: Option<&Bound<'_, PyDict>>) -> PyResult<Init<Self>> {
        Self::around(Structure::new(Parameters::vector(size, &Arguments::new(arguments))?)?)
    }

    /// What a vector with these parameters would cost, without building it: a Plan.
    #[staticmethod]
    #[pyo3(signature = (size, **arguments), text_signature = "(size, *, horizon, privacy, max_norm=1.0, \
        mechanism='tree', buffers=None, protect='update', contributions=1, on_excess='error', invalid='raise', insecure_seed=None)")]
    fn plan(size: &Bound<'_, PyAny>, arguments: Option<&Bound<'_, PyDict>>) -> PyResult<Plan> {
        Plan::new(Parameters::vector(size, &Arguments::new(arguments))?)
    }

    /// The number of cells.
    #[getter]
    fn size(&self) -> usize {
        self.size
    }

    /// The largest L2 norm of one update.
    #[getter]
    fn max_norm(&self) -> f64 {
        self.max_norm
    }

    /// Adds to cells at the present step, each element an update of its own; all or nothing.
    ///
    /// Parameters
    /// ----------
    /// cells : int or array of int
    ///     The cells, 0 to size - 1: one for each event.
    /// values : float or array of float, optional
    ///     One for all, or one for each cell, of absolute value at most max_norm. Without them each counts 1. Negative values
    ///     delete.
    ///
    /// Raises
    /// ------
    /// SealedStepError
    ///     The present step was released already.
    /// ValueError
    ///     A cell is out of range, a value is NaN or infinite, or over max_norm (the last unless on_excess="clip", all unless
    ///     invalid="drop", which leaves out such an element alone); shapes that differ.
    /// TypeError
    ///     Cells are not integers, or values not numbers.
    /// OverflowError
    ///     A counter, or a cell's number, would leave the 64-bit range.
    ///
    /// Examples
    /// --------
    /// One cell for each event: three units, of which two are in cell 17.
    ///
    /// >>> visits = fg.ContinualVector(100, horizon=24, privacy=fg.Zcdp(rho=0.5))
    /// >>> visits.update([17, 3, 17])
    ///
    /// A unit that touches several cells is one row:
    ///
    /// >>> visits.update_row([17, 3], [0.6, 0.8])
    #[pyo3(signature = (cells, values = None))]
    fn update(slf: &Bound<'_, Self>, cells: &Bound<'_, PyAny>, values: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let (structure, py) = (slf.as_super().get(), slf.py());
        let (cells, values) = cells_and_values(structure, cells, values)?;
        match &cells {
            Integers::Signed(indices) => structure.update_rows(py, Rows::Single { indices, values: &values }),
            Integers::Unsigned(indices) => structure.update_rows(py, Rows::Single { indices, values: &values }),
        }
    }

    /// Adds one update that touches several cells, a sparse vector, at the present step.
    ///
    /// Parameters
    /// ----------
    /// cells : int or array of int
    ///     The cells, 0 to size - 1. Those that stand twice are added first.
    /// values : float or array of float, default 1.0
    ///     One for all, or one for each cell. The L2 norm of all together (under PureDp the L1 norm) is at most max_norm.
    ///
    /// Raises
    /// ------
    /// As `update`; with invalid="drop" the row is left out whole.
    #[pyo3(signature = (cells, values = Argument::Absent), text_signature = "($self, cells, values=1.0)")]
    fn update_row(slf: &Bound<'_, Self>, cells: &Bound<'_, PyAny>, values: Argument<'_>) -> PyResult<()> {
        let values = match &values {
            Argument::Absent => None,
            Argument::Given(values) => Some(values),
        };
        let (cells, values) = cells_and_values(slf.as_super().get(), cells, values)?;
        update_sparse(slf, &[0, values.len()], &cells, &values)
    }

    /// Adds a batch of updates that touch several cells each, a row each, at the present step; all or nothing.
    ///
    /// Parameters
    /// ----------
    /// rows : array of shape (n, size), nested lists, or scipy sparse matrix or array of that shape
    ///     Each row is the vector that one unit contributes.
    ///
    /// Raises
    /// ------
    /// As `update_row`; the message of a bad row gives its position.
    fn update_rows(slf: &Bound<'_, Self>, rows: &Bound<'_, PyAny>) -> PyResult<()> {
        let structure = slf.as_super().get();
        match self::rows(rows, slf.get().size as u64)? {
            RowArrays::Dense { values } => {
                let rows: Rows<'_, u64, f64> = Rows::Dense { values: &values };
                structure.update_rows(slf.py(), rows)
            }
            RowArrays::Sparse { offsets, indices, values } => update_sparse(slf, &offsets, &indices, &values),
        }
    }

    /// Releases cells at the present step, exact value plus noise, and seals the step.
    ///
    /// A cell that was released at this step repeats its answer. Constant time for each cell, however much time has
    /// passed since it was last read.
    ///
    /// Parameters
    /// ----------
    /// indices : int or array of int, optional
    ///     The cells, 0 to size - 1, in any order, also repeatedly; all by default.
    ///
    /// Returns
    /// -------
    /// float for an int, else an array of float64 of the shape of `indices`; of shape (size,) without them.
    ///
    /// Raises
    /// ------
    /// ValueError, TypeError
    ///     An index is out of range, or not an integer. Nothing is released then.
    #[pyo3(signature = (indices = None))]
    fn release<'py>(slf: &Bound<'py, Self>, indices: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let structure = slf.as_super().get();
        match indices {
            None => {
                let values = structure.release(py, Cells::<u64>::All)?;
                let shape = [values.len()];
                output(py, values, &shape)
            }
            Some(indices) => {
                let indices = integers(indices, "indices", Beyond::Refuse)?;
                let values = match &indices.values {
                    Integers::Signed(cells) => release_cells(structure, py, cells),
                    Integers::Unsigned(cells) => release_cells(structure, py, cells),
                }?;
                output(py, values, &indices.shape)
            }
        }
    }
}

/// Cells, and a value for each of them.
fn cells_and_values(
    structure: &Structure,
    cells: &Bound<'_, PyAny>,
    values: Option<&Bound<'_, PyAny>>,
) -> PyResult<(Integers, Vec<f64>)> {
    let cells = integers(cells, "cells", if structure.drops() { Beyond::Saturate } else { Beyond::Refuse })?;
    let count = cells.values.len();
    let values = match values {
        None => vec![1.0; count],
        Some(values) => {
            let values = floats(values, "values")?;
            // One value stands for all cells.
            if values.shape.is_empty() {
                vec![values.values[0]; count]
            } else if values.shape == cells.shape {
                values.values
            } else {
                return Err(PyValueError::new_err(format!(
                    "values must be one number or have the shape of cells, {:?}; shape {:?} was given",
                    cells.shape, values.shape
                )));
            }
        }
    };
    Ok((cells.values, values))
}

fn release_cells<I: Index + Sync>(structure: &Structure, py: Python<'_>, cells: &[I]) -> PyResult<Vec<f64>> {
    structure.release(py, Cells::Indices(cells))
}

fn update_sparse(
    slf: &Bound<'_, ContinualVector>,
    offsets: &[usize],
    indices: &Integers,
    values: &[f64],
) -> PyResult<()> {
    let structure = slf.as_super().get();
    match indices {
        Integers::Signed(indices) => structure.update_rows(slf.py(), Rows::Sparse { offsets, indices, values }),
        Integers::Unsigned(indices) => structure.update_rows(slf.py(), Rows::Sparse { offsets, indices, values }),
    }
}
