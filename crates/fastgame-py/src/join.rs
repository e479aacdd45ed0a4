//! `JoinSize` and its sides.

use fastgame_core::{Invalid, Keyer, OnExcess, Side, SketchShape};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pyclass_init::PyClassInitializer as Init;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString};

use crate::arrays::{Argument, ErrorFlag, float_parameter, shown_text, type_name};
use crate::keys::Keys;
use crate::parameters::{Arguments, JoinSearch, Parameters};
use crate::plan::Plan;
use crate::sketch::{RawSketch, Updates, raw_parameter, result_class, with_keys};
use crate::structure::{Structure, refuse_copy};

/// The size of the join of two relations under continual observation.
///
/// The sum over all keys of how often a key stands in the left relation times how often it stands in the right one (of
/// total weights, if there are any). Two CountSketches with the same hash functions and noise of their own. Both sides are
/// written through `left` and `right` and cannot be read; keys are those of CountSketch, and keys of different kinds never
/// match. All parameters are keywords.
///
/// Parameters
/// ----------
/// horizon : int
///     The number of time steps, 1 to 2**62. Public. One step is the one-shot estimator (Lemma 5.2).
/// privacy : Zcdp, Gdp, ApproxDp or PureDp
///     The budget for all answers together, about both relations.
/// width : int
///     Buckets in a row, a power of two from 32 to 2**30.
/// depth : int
///     Rows, an odd number up to 63.
/// max_weight : int
///     The largest absolute weight of one update, 1 to 2**31.
/// hash_seed : int or None
///     Of the hash functions, the same on both sides. Public. None: at random.
/// contributions : int
///     How many updates one person has, on both sides together.
/// mechanism, buffers, protect, on_excess, invalid, insecure_seed
///     As for ContinualCounter.
///
/// Raises
/// ------
/// ValueError, TypeError
///     For a parameter that is not allowed; the message says what is.
#[pyclass(frozen, extends = Structure, module = "fastgame")]
pub(crate) struct JoinSize {
    keyer: Keyer,
    shape: SketchShape,
    /// Of another layout than a sketch, so that Python lets neither class stand in the other's place.
    _sides: [u64; 2],
}

impl JoinSize {
    pub(crate) fn around(structure: Structure) -> PyResult<Init<Self>> {
        let Some(shape) = structure.parameters().sketch_shape() else {
            return Err(PyTypeError::new_err("not the parameters of a join"));
        };
        let own = Self { keyer: Keyer::new(shape.hash_seed), shape, _sides: [0, 1] };
        Ok(Init::from(structure).add_subclass(own))
    }
}

#[pymethods]
impl JoinSize {
    #[new]
    #[pyo3(signature = (**arguments), text_signature = "(*, horizon, privacy, width=4096, depth=5, max_weight=1, \
        hash_seed=None, mechanism='tree', buffers=None, protect='update', contributions=1, on_excess='error', invalid='raise', \
        insecure_seed=None)")]
    fn new(arguments: Option<&Bound<'_, PyDict>>) -> PyResult<Init<Self>> {
        Self::around(Structure::new(Parameters::join(&Arguments::new(arguments))?)?)
    }

    /// What a join with these parameters would cost, without building it: a Plan, whose error takes a JoinProfile of what
    /// the relations are expected to be (noise against noise alone without it). It is an upper bound, and far above the error
    /// where few keys are most of both relations.
    #[staticmethod]
    #[pyo3(signature = (**arguments), text_signature = "(*, horizon, privacy, width=4096, depth=5, max_weight=1, \
        hash_seed=None, mechanism='tree', buffers=None, protect='update', contributions=1, on_excess='error', invalid='raise', \
        insecure_seed=None)")]
    fn plan(arguments: Option<&Bound<'_, PyDict>>) -> PyResult<Plan> {
        Plan::new(Parameters::join(&Arguments::new(arguments))?)
    }

    /// The plan of the depth and width with the least error for expected relations.
    ///
    /// For each odd depth from 3 on the smallest width is taken whose standard deviation is within 5 % of the least:
    /// narrower, keys collide; wider, noise meets noise. Then the depth with the least error at `confidence`. Shapes have
    /// at most `max_cells` cells.
    ///
    /// Parameters
    /// ----------
    /// horizon, privacy
    ///     As for the class; so are all other keywords but width and depth.
    /// profile : JoinProfile
    ///     What the relations are expected to be.
    /// confidence : float
    /// max_cells : int
    ///     The most cells that both sides may have together (8 bytes each, and more once they are read).
    ///
    /// Returns
    /// -------
    /// Plan
    #[staticmethod]
    #[pyo3(signature = (**arguments), text_signature = "(*, horizon, privacy, profile, confidence=0.95, \
        max_cells=16777216, max_weight=1, hash_seed=None, mechanism='tree', buffers=None, protect='update', contributions=1, \
        on_excess='error', invalid='raise', insecure_seed=None)")]
    fn suggest(py: Python<'_>, arguments: Option<&Bound<'_, PyDict>>) -> PyResult<Plan> {
        let (parameters, search) = JoinSearch::take(py, &Arguments::new(arguments))?;
        Plan::suggest_join(py, parameters, search)
    }

    /// Buckets in a row.
    #[getter]
    fn width(&self) -> usize {
        self.shape.width
    }

    /// Rows, an odd number.
    #[getter]
    fn depth(&self) -> usize {
        self.shape.depth
    }

    /// The largest absolute weight of one update.
    #[getter]
    fn max_weight(&self) -> u32 {
        self.shape.max_weight
    }

    /// The seed of the hash functions.
    #[getter]
    fn hash_seed(&self) -> u64 {
        self.shape.hash_seed
    }

    /// The left relation, to be written.
    #[getter]
    fn left(slf: Bound<'_, Self>) -> JoinSide {
        JoinSide { join: slf.unbind(), side: Side::Left }
    }

    /// The right relation, to be written.
    #[getter]
    fn right(slf: Bound<'_, Self>) -> JoinSide {
        JoinSide { join: slf.unbind(), side: Side::Right }
    }

    /// An estimate of the size of the join at the present step, which is sealed. Reads all cells, whatever has changed.
    ///
    /// Parameters
    /// ----------
    /// error : bool
    ///     Also give standard deviations, from released values alone.
    /// confidence : float, optional
    ///     Instead give an interval that covers the truth with this probability, over noise and hash functions.
    /// by : {"moments", "rows"}
    ///     What the interval is made of: "moments" holds whatever the keys are, and is wide where few keys are most of a
    ///     relation; "rows" follows the spread of the rows (depth 3 or more), by measurement and not by proof.
    ///
    /// Returns
    /// -------
    /// A float; with `error` a JoinEstimate(value, std, std_of_rows), with `confidence` an Interval(value, lower, upper).
    ///
    /// Raises
    /// ------
    /// ValueError, TypeError
    ///     Unless 0 < confidence < 1; for by="rows" at depth 1; for error and confidence together.
    #[pyo3(
        signature = (*, error = ErrorFlag(false), confidence = None, by = Argument::Absent),
        text_signature = "($self, *, error=False, confidence=None, by='moments')"
    )]
    fn estimate<'py>(
        slf: &Bound<'py, Self>,
        error: ErrorFlag,
        confidence: Option<&Bound<'py, PyAny>>,
        by: Argument<'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let ErrorFlag(error) = error;
        static ESTIMATE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        static INTERVAL: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let py = slf.py();
        let confidence = confidence.map(|given| float_parameter(given, "confidence")).transpose()?;
        let by_rows = match &by {
            Argument::Absent => false,
            Argument::Given(word) => match word.cast::<PyString>().ok().map(|word| word.to_string_lossy()).as_deref() {
                Some("moments") => false,
                Some("rows") => true,
                given => {
                    let given = given.map_or_else(|| type_name(word), shown_text);
                    return Err(PyValueError::new_err(format!(
                        "by must be \"moments\" or \"rows\"; {given} was given"
                    )));
                }
            },
        };
        if error && confidence.is_some() {
            return Err(PyTypeError::new_err("give either error=True or confidence=..., not both"));
        }
        if confidence.is_none() && matches!(by, Argument::Given(_)) {
            return Err(PyTypeError::new_err("by says what an interval is made of: give confidence=... with it"));
        }
        let structure = slf.as_super().get();
        let work = structure.parameters().cells();
        if let Some(confidence) = confidence {
            // Both are checked before anything is read.
            if by_rows && slf.get().shape.depth == 1 {
                return Err(PyValueError::new_err(
                    "by=\"rows\" needs depth 3 or more, as a single row has no spread; depth is 1",
                ));
            }
            let interval = structure.with_join(py, work, |join, rng| {
                if by_rows {
                    if !(confidence > 0.0 && confidence < 1.0) {
                        return join.estimate_with_interval(confidence, rng);
                    }
                    return join.estimate_with_error(rng)?.interval_of_rows(confidence);
                }
                join.estimate_with_interval(confidence, rng)
            })?;
            return result_class(py, &INTERVAL, "Interval")?.call1((interval.value, interval.lower, interval.upper));
        }
        if !error {
            let value = structure.with_join(py, work, |join, rng| join.estimate(rng))?;
            return Ok(value.into_pyobject(py)?.into_any());
        }
        let estimate = structure.with_join(py, work, |join, rng| join.estimate_with_error(rng))?;
        let class = result_class(py, &ESTIMATE, "JoinEstimate")?;
        class.call1((estimate.value, estimate.std, estimate.std_of_rows))
    }

    /// An empty RawSketch that fits either side: to be filled elsewhere and merged.
    fn raw(slf: &Bound<'_, Self>) -> PyResult<RawSketch> {
        let structure = slf.as_super().get();
        structure.with_join(slf.py(), 0, |_, _| Ok(()))?; // as that of a sketch: not once it is closed
        let parameters = structure.parameters();
        let on_excess = if parameters.on_excess == "clip" { OnExcess::Clip } else { OnExcess::Error };
        let invalid = if structure.drops() { Invalid::Drop } else { Invalid::Raise };
        RawSketch::of_shape(slf.get().shape, on_excess, invalid)
    }
}

/// One relation of a JoinSize: it can be written, and not read.
#[pyclass(frozen, module = "fastgame")]
pub(crate) struct JoinSide {
    join: Py<JoinSize>,
    side: Side,
}

#[pymethods]
impl JoinSide {
    /// Adds weights to keys of this relation at the present step; as CountSketch.update.
    #[pyo3(signature = (keys, weights = Argument::Absent), text_signature = "($self, keys, weights=1)")]
    fn update(&self, py: Python<'_>, keys: &Bound<'_, PyAny>, weights: Argument<'_>) -> PyResult<()> {
        let join = self.join.bind(py);
        let structure = join.as_super().get();
        let Updates { keys, weights, dropped } = Updates::read(keys, weights, join.get().keyer, structure.drops())?;
        with_keys!(&keys, keys => structure.update_join(py, keys.len(), |join| {
            Ok(join.update(self.side, keys, weights.get())? + dropped)
        }))
    }

    /// Adds all updates of a raw sketch to this relation at the present step; as CountSketch.merge.
    fn merge(&self, py: Python<'_>, raw: &Bound<'_, PyAny>) -> PyResult<()> {
        let raw = raw_parameter(raw)?.get().cloned(py)?;
        let structure = self.join.bind(py).as_super().get();
        structure.update_join(py, structure.parameters().cells(), |join| {
            join.merge(self.side, &raw)?;
            Ok(raw.dropped())
        })
    }

    fn __copy__(&self, py: Python<'_>) -> PyResult<()> {
        Err(refuse_copy(py))
    }

    fn __deepcopy__(&self, py: Python<'_>, _memo: &Bound<'_, PyAny>) -> PyResult<()> {
        Err(refuse_copy(py))
    }

    fn __reduce_ex__(&self, py: Python<'_>, _protocol: &Bound<'_, PyAny>) -> PyResult<()> {
        Err(refuse_copy(py))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let side = if self.side == Side::Left { "left" } else { "right" };
        Ok(format!("<the {side} relation of {}>", self.join.bind(py).repr()?))
    }
}
