//! `CountSketch` and `RawSketch`.

use std::sync::{Mutex, TryLockError};

use fastgame_core::{Error, Invalid, Keyer, OnExcess, RawSketch as CoreRawSketch, SketchShape, Weights};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pyclass_init::PyClassInitializer as Init;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyTuple};

use crate::arrays::{Argument, Beyond, ErrorFlag, float_parameter, integers, output, type_name, unsigned_parameter};
use crate::error::{CoreError, StateError};
use crate::keys::{KeyColumn, Keys, keys, keys_or_bad, without};
use crate::parameters::{Arguments, Parameters, Search, describe_shape, raw_parameters};
use crate::plan::Plan;
use crate::structure::{Process, Structure, locked};

/// Runs an expression for the keys of whichever type.
macro_rules! with_keys {
    ($keys:expr, $name:ident => $body:expr) => {
        match $keys {
            Keys::Unsigned($name) => $body,
            Keys::Signed($name) => $body,
            Keys::Mixed($name) => $body,
        }
    };
}

pub(crate) use with_keys;

/// Counts of any keys under continual observation, in a fixed number of cells.
///
/// A CountSketch of `depth` rows and `width` buckets with noise on every cell that is read. Keys are integers (by value,
/// whatever their type; whole floats below 2**53 too), str, bytes, numpy arrays, anything with the Arrow C interface, and tuples of columns for
/// composite keys; kinds do not mix: 5, "5" and b"5" are three keys. All parameters are keywords.
///
/// Parameters
/// ----------
/// horizon : int
///     The number of time steps, 1 to 2**62. Public. One step is the static Private CountSketch.
/// privacy : Zcdp, Gdp, ApproxDp or PureDp
///     The budget for all answers together.
/// width : int
///     Buckets in a row, a power of two up to 2**30. More buckets, fewer collisions.
/// depth : int
///     Rows, an odd number up to 63. More rows, rarer large errors, and noise that grows with the root.
/// max_weight : int
///     The largest absolute weight of one update, 1 to 2**31.
/// hash_seed : int or None
///     Of the hash functions. Public: it protects nothing. None: at random, so that nobody can make keys that collide.
///     Sketches that are to be merged share it.
/// mechanism, buffers, protect, contributions, on_excess, invalid, insecure_seed
///     As for ContinualCounter.
///
/// Raises
/// ------
/// ValueError, TypeError
///     For a parameter that is not allowed; the message says what is.
#[pyclass(frozen, extends = Structure, module = "fastgame")]
pub(crate) struct CountSketch {
    keyer: Keyer,
    shape: SketchShape,
}

/// Something of the package's Python half, such as the named tuples of results.
pub(crate) fn imported<'py>(
    py: Python<'py>,
    cell: &'static PyOnceLock<Py<PyAny>>,
    module: &str,
    name: &str,
) -> PyResult<Bound<'py, PyAny>> {
    Ok(cell.get_or_try_init(py, || Ok::<_, PyErr>(py.import(module)?.getattr(name)?.unbind()))?.bind(py).clone())
}

/// A class of results.
pub(crate) fn result_class<'py>(
    py: Python<'py>,
    cell: &'static PyOnceLock<Py<PyAny>>,
    name: &str,
) -> PyResult<Bound<'py, PyAny>> {
    imported(py, cell, "fastgame._results", name)
}

/// Weights in owned memory.
pub(crate) enum OwnedWeights {
    All(i64),
    Each(Vec<i64>),
}

impl OwnedWeights {
    pub(crate) fn get(&self) -> Weights<'_> {
        match self {
            Self::All(weight) => Weights::All(*weight),
            Self::Each(weights) => Weights::Each(weights),
        }
    }
}

/// Weights for `count` keys: one for all, or one each.
pub(crate) fn weights(given: Argument<'_>, count: usize, scalar: bool) -> PyResult<OwnedWeights> {
    let Argument::Given(given) = given else { return Ok(OwnedWeights::All(1)) };
    let weights = integers(&given, "weights", Beyond::Saturate)?;
    let (shape, values) = (weights.shape, weights.values.into_weights());
    match shape.as_slice() {
        [] => Ok(OwnedWeights::All(values[0])),
        [length] if *length == count && !scalar => Ok(OwnedWeights::Each(values)),
        _ if scalar => Err(PyValueError::new_err(format!(
            "weights must be one integer for a single key; an array of shape {shape:?} was given"
        ))),
        _ => Err(PyValueError::new_err(format!(
            "weights must be one integer, or one for each of the {count} keys; an array of shape {shape:?} was given"
        ))),
    }
}

/// Keys and weights of an update, without those of what is no key; how many these are.
pub(crate) struct Updates {
    pub(crate) keys: Keys,
    pub(crate) weights: OwnedWeights,
    pub(crate) dropped: u64,
}

impl Updates {
    pub(crate) fn read(keys: &Bound<'_, PyAny>, given: Argument<'_>, keyer: Keyer, drops: bool) -> PyResult<Self> {
        let KeyColumn { keys, scalar, bad } = keys_or_bad(keys, keyer, drops)?;
        let weights = weights(given, keys.len(), scalar)?;
        if bad.is_empty() {
            return Ok(Self { keys, weights, dropped: 0 });
        }
        let weights = match weights {
            OwnedWeights::All(weight) => OwnedWeights::All(weight),
            OwnedWeights::Each(weights) => OwnedWeights::Each(without(weights, &bad)),
        };
        Ok(Self { keys: keys.without(&bad), weights, dropped: bad.len() as u64 })
    }
}

impl CountSketch {
    pub(crate) fn around(structure: Structure) -> PyResult<Init<Self>> {
        let Some(shape) = structure.parameters().sketch_shape() else {
            return Err(PyTypeError::new_err("not the parameters of a sketch"));
        };
        Ok(Init::from(structure).add_subclass(Self { keyer: Keyer::new(shape.hash_seed), shape }))
    }
}

#[pymethods]
impl CountSketch {
    #[new]
    #[pyo3(signature = (**arguments), text_signature = "(*, horizon, privacy, width, depth=5, max_weight=1, \
        hash_seed=None, mechanism='tree', buffers=None, protect='update', contributions=1, on_excess='error', invalid='raise', \
        insecure_seed=None)")]
    fn new(arguments: Option<&Bound<'_, PyDict>>) -> PyResult<Init<Self>> {
        Self::around(Structure::new(Parameters::sketch(&Arguments::new(arguments))?)?)
    }

    /// What a sketch with these parameters would cost, without building it: a Plan, whose error is that of an estimate by
    /// noise alone, or with the collisions of a FrequencyProfile.
    #[staticmethod]
    #[pyo3(signature = (**arguments), text_signature = "(*, horizon, privacy, width, depth=5, max_weight=1, \
        hash_seed=None, mechanism='tree', buffers=None, protect='update', contributions=1, on_excess='error', invalid='raise', \
        insecure_seed=None)")]
    fn plan(arguments: Option<&Bound<'_, PyDict>>) -> PyResult<Plan> {
        Plan::new(Parameters::sketch(&Arguments::new(arguments))?)
    }

    /// The plan of the smallest sketch that is nearly as good as any for an expected stream.
    ///
    /// Depths 3, 5, 7 and 9 are considered, with every width for which there are at most `max_cells` cells. Of the
    /// shapes whose error is within 10 % of the least, the one with the fewest cells is taken.
    ///
    /// Parameters
    /// ----------
    /// horizon, privacy
    ///     As for the class; so are all other keywords but width and depth, which are what is looked for.
    /// profile : FrequencyProfile
    ///     What the stream is expected to be like.
    /// confidence : float
    ///     The probability with which an estimate is to be within the error that is compared.
    /// max_cells : int
    ///     The most cells that a sketch may have (8 bytes each, and more once they are read).
    ///
    /// Returns
    /// -------
    /// Plan
    #[staticmethod]
    #[pyo3(signature = (**arguments), text_signature = "(*, horizon, privacy, profile, confidence=0.95, \
        max_cells=16777216, max_weight=1, hash_seed=None, mechanism='tree', buffers=None, protect='update', contributions=1, \
        on_excess='error', invalid='raise', insecure_seed=None)")]
    fn suggest(py: Python<'_>, arguments: Option<&Bound<'_, PyDict>>) -> PyResult<Plan> {
        let (parameters, search) = Search::take(py, &Arguments::new(arguments))?;
        Plan::suggest(py, parameters, search)
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

    /// Adds weights to keys at the present step, each pair an update of its own; all or nothing.
    ///
    /// Parameters
    /// ----------
    /// keys : key or column of keys
    ///     See the class. What is no key (a null, a bool, a fraction, an integer beyond 64 bits) is an error that names its
    ///     place, or with invalid="drop" left out alone, with its weight. Whole floats below 2**53 are the integers that they equal.
    /// weights : int or array of int
    ///     One for all, or one for each key. Negative weights delete.
    ///
    /// Raises
    /// ------
    /// SealedStepError
    ///     The present step was read already.
    /// ValueError
    ///     A weight is over max_weight (unless on_excess="clip" or invalid="drop"), or lengths differ.
    /// TypeError, OverflowError
    ///     A key is of no kind that is allowed, or beyond 64 bits (unless invalid="drop"); a column is of a type that has no keys;
    ///     a cell would leave the 64-bit range.
    #[pyo3(signature = (keys, weights = Argument::Absent), text_signature = "($self, keys, weights=1)")]
    fn update(slf: &Bound<'_, Self>, keys: &Bound<'_, PyAny>, weights: Argument<'_>) -> PyResult<()> {
        let structure = slf.as_super().get();
        let Updates { keys, weights, dropped } = Updates::read(keys, weights, slf.get().keyer, structure.drops())?;
        with_keys!(&keys, keys => structure.update_sketch(slf.py(), keys.len(), |sketch| {
            Ok(sketch.update(keys, weights.get())? + dropped)
        }))
    }

    /// Estimates of the total weight of keys at the present step, which is sealed.
    ///
    /// Parameters
    /// ----------
    /// keys : key or column of keys
    /// error : bool
    ///     Also give the standard deviation of an estimate. Reads all cells.
    /// confidence : float, optional
    ///     Instead give an interval that covers the truth with this probability, over noise and hash functions. Reads all
    ///     cells.
    ///
    /// Returns
    /// -------
    /// A float for a single key, else an array of float64; with `error` an Estimate(value, std), with `confidence` an
    /// Interval(value, lower, upper) of such.
    #[pyo3(
        signature = (keys, *, error = ErrorFlag(false), confidence = None),
        text_signature = "($self, keys, *, error=False, confidence=None)"
    )]
    fn estimate<'py>(
        slf: &Bound<'py, Self>,
        keys: &Bound<'py, PyAny>,
        error: ErrorFlag,
        confidence: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let ErrorFlag(error) = error;
        static ESTIMATE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        static INTERVAL: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let py = slf.py();
        let confidence = confidence.map(|given| float_parameter(given, "confidence")).transpose()?;
        if error && confidence.is_some() {
            return Err(PyTypeError::new_err("give either error=True or confidence=..., not both"));
        }
        let KeyColumn { keys, scalar, .. } = self::keys(keys, slf.get().keyer)?;
        let (count, structure) = (keys.len(), slf.as_super().get());
        let shape = if scalar { vec![] } else { vec![count] };
        if !error && confidence.is_none() {
            let values =
                with_keys!(&keys, keys => structure.with_sketch(py, count, |sketch, rng| sketch.estimate(keys, rng)))?;
            return output(py, values, &shape);
        }
        let work = structure.parameters().cells();
        let estimates = with_keys!(&keys, keys => structure.with_sketch(py, work, |sketch, rng| match confidence {
            Some(confidence) => sketch.estimate_with_error(keys, confidence, rng),
            None => sketch.estimate_with_std(keys, rng),
        }))?;
        let (values, error) = (estimates.values, estimates.error);
        if confidence.is_some() {
            let lower = output(py, values.iter().map(|value| value - error).collect(), &shape)?;
            let upper = output(py, values.iter().map(|value| value + error).collect(), &shape)?;
            result_class(py, &INTERVAL, "Interval")?.call1((output(py, values, &shape)?, lower, upper))
        } else {
            let std = output(py, vec![error; count], &shape)?;
            result_class(py, &ESTIMATE, "Estimate")?.call1((output(py, values, &shape)?, std))
        }
    }

    /// The `k` keys with the largest estimates among the given ones, largest first, at the present step.
    ///
    /// Parameters
    /// ----------
    /// k : int
    /// among : column of keys
    ///     The public list of keys to choose from. Keys that are found in the data must not stand here: listing them
    ///     would give them away.
    ///
    /// Returns
    /// -------
    /// list of Top(key, value). A key that is listed twice may stand here twice.
    #[pyo3(signature = (k, *, among))]
    fn top<'py>(
        slf: &Bound<'py, Self>,
        k: &Bound<'py, PyAny>,
        among: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        const COLUMNS: &str = "fastgame._columns";
        static LASTING: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        static PICK: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        static TOP: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let py = slf.py();
        let k: usize = unsigned_parameter(k, "k", "an integer that is at least 0")?;
        let among = imported(py, &LASTING, COLUMNS, "lasting")?.call1((among,))?;
        let KeyColumn { keys, scalar, .. } = self::keys(&among, slf.get().keyer)?;
        if scalar {
            return Err(PyTypeError::new_err("among must be a column of keys; a single key was given"));
        }
        let (count, structure) = (keys.len(), slf.as_super().get());
        if count > 0 {
            // A column that keys cannot be picked from is refused before anything is read.
            imported(py, &PICK, COLUMNS, "pick")?.call1((&among, 0))?;
        }
        let values =
            with_keys!(&keys, keys => structure.with_sketch(py, count, |sketch, rng| sketch.estimate(keys, rng)))?;
        let mut order: Vec<usize> = (0..count).collect();
        // Equal estimates stay in the order of the list.
        order.sort_by(|&a, &b| values[b].total_cmp(&values[a]));
        order.truncate(k);
        let values: Vec<f64> = order.iter().map(|&place| values[place]).collect();
        imported(py, &TOP, COLUMNS, "top")?.call1((among, order, values))
    }

    /// An unbiased estimate of the sum of squared totals of all keys (the size of a self-join) at the present step.
    ///
    /// The noise's own share is subtracted. With `error`, an Estimate(value, std). Reads all cells.
    #[pyo3(signature = (*, error = ErrorFlag(false)), text_signature = "($self, *, error=False)")]
    fn second_moment<'py>(slf: &Bound<'py, Self>, error: ErrorFlag) -> PyResult<Bound<'py, PyAny>> {
        let ErrorFlag(error) = error;
        static ESTIMATE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let (py, structure) = (slf.py(), slf.as_super().get());
        let work = structure.parameters().cells();
        let (value, std) = structure.with_sketch(py, work, |sketch, rng| sketch.second_moment(rng))?;
        if error { result_class(py, &ESTIMATE, "Estimate")?.call1((value, std)) } else { output(py, vec![value], &[]) }
    }

    /// An empty RawSketch that fits: to be filled elsewhere and merged into this sketch.
    fn raw(slf: &Bound<'_, Self>) -> PyResult<RawSketch> {
        slf.as_super().get().with_sketch(slf.py(), 0, |sketch, _| sketch.raw()).map(RawSketch::from)
    }

    /// Adds all updates of a raw sketch at the present step.
    ///
    /// Raises
    /// ------
    /// IncompatibleError
    ///     Width, depth, max_weight or hash_seed differ; the message names the first that does.
    /// SealedStepError, OverflowError
    ///     As `update`.
    fn merge(slf: &Bound<'_, Self>, raw: &Bound<'_, PyAny>) -> PyResult<()> {
        let raw = raw_parameter(raw)?.get().cloned(slf.py())?;
        let structure = slf.as_super().get();
        structure.update_sketch(slf.py(), structure.parameters().cells(), |sketch| {
            sketch.merge(&raw)?;
            Ok(raw.dropped())
        })
    }
}

/// A partial CountSketch: exact cells, no noise, no clock; it cannot be read.
///
/// Made by `CountSketch.raw()`, or here with the same parameters where there is no live sketch. It may be copied, pickled
/// and filled in another process, and is then merged. It holds exact data: keep it as secret as the data.
///
/// Parameters
/// ----------
/// width, depth, max_weight, hash_seed, on_excess, invalid
///     As for CountSketch.
#[pyclass(frozen, module = "fastgame")]
pub(crate) struct RawSketch {
    raw: Mutex<CoreRawSketch>,
    process: Process,
    keyer: Keyer,
    shape: SketchShape,
    drops: bool,
}

impl From<CoreRawSketch> for RawSketch {
    fn from(raw: CoreRawSketch) -> Self {
        let (keyer, shape, drops) = (raw.keyer(), raw.shape(), raw.invalid() == Invalid::Drop);
        Self { raw: Mutex::new(raw), process: Process::current(), keyer, shape, drops }
    }
}

impl RawSketch {
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: usize,
        call: impl FnOnce(&mut CoreRawSketch) -> T + Send,
    ) -> PyResult<T> {
        // A fork may have copied the lock while another thread held it; nobody is left to let it go.
        if Process::current() != self.process && matches!(self.raw.try_lock(), Err(TryLockError::WouldBlock)) {
            return Err(StateError(
                py,
                "this sketch was in use by another thread when the process was forked; pickle it to send it to another process",
            ));
        }
        locked(py, &self.raw, work, call)
    }

    fn cells(&self) -> usize {
        self.shape.width * self.shape.depth
    }

    /// An empty one.
    pub(crate) fn of_shape(shape: SketchShape, on_excess: OnExcess, invalid: Invalid) -> PyResult<Self> {
        Ok(CoreRawSketch::new(shape, on_excess, invalid).map_err(CoreError)?.into())
    }

    /// A copy, so that no two locks are held at once.
    pub(crate) fn cloned(&self, py: Python<'_>) -> PyResult<CoreRawSketch> {
        Ok(self.with(py, self.cells(), |raw| raw.try_clone())?.map_err(CoreError)?)
    }
}

/// What `raw=` was given.
pub(crate) fn raw_parameter<'a, 'py>(object: &'a Bound<'py, PyAny>) -> PyResult<&'a Bound<'py, RawSketch>> {
    object.cast::<RawSketch>().map_err(|_| {
        let given = type_name(object);
        PyTypeError::new_err(format!("raw must be a fastgame.RawSketch (of .raw(), or made alike); {given} was given"))
    })
}

#[pymethods]
impl RawSketch {
    #[new]
    #[pyo3(signature = (**arguments), text_signature = "(*, width, depth=5, max_weight=1, hash_seed=None, \
        on_excess='error', invalid='raise')")]
    fn new(arguments: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let (shape, on_excess, invalid) = raw_parameters(&Arguments::new(arguments))?;
        Ok(CoreRawSketch::new(shape, on_excess, invalid).map_err(CoreError)?.into())
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

    /// How many elements invalid="drop" has left out, here and in what was merged. NOT PRIVATE: for the operator alone.
    #[getter]
    fn dropped(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, 0, |raw| raw.dropped())
    }

    /// Adds weights to keys; as CountSketch.update.
    #[pyo3(signature = (keys, weights = Argument::Absent), text_signature = "($self, keys, weights=1)")]
    fn update(&self, py: Python<'_>, keys: &Bound<'_, PyAny>, weights: Argument<'_>) -> PyResult<()> {
        let Updates { keys, weights, dropped } = Updates::read(keys, weights, self.keyer, self.drops)?;
        with_keys!(&keys, keys => self.with(py, keys.len(), |raw| {
            raw.update(keys, weights.get())?;
            raw.add_dropped(dropped);
            Ok(())
        }))?
        .map_err(CoreError)?;
        Ok(())
    }

    /// Adds all updates of another raw sketch.
    ///
    /// Raises
    /// ------
    /// IncompatibleError
    ///     Width, depth, max_weight or hash_seed differ.
    fn merge(&self, py: Python<'_>, raw: &Bound<'_, PyAny>) -> PyResult<()> {
        let raw = raw_parameter(raw)?;
        let other = raw.get().with(py, raw.get().cells(), |raw| raw.try_clone())?.map_err(CoreError)?;
        Ok(self.with(py, self.cells(), |raw| raw.merge(&other))?.map_err(CoreError)?)
    }

    fn __repr__(&self) -> String {
        format!("<RawSketch({})>", describe_shape(&self.shape))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let py = slf.py();
        let bytes = slf.get().with(py, slf.get().cells(), |raw| raw.to_bytes())?.map_err(CoreError)?;
        let copied = PyBytes::new_with(py, bytes.len(), |room| {
            room.copy_from_slice(&bytes);
            Ok(())
        })?;
        let rebuild = slf.get_type().getattr(intern!(py, "_from_bytes"))?;
        Ok((rebuild, PyTuple::new(py, [copied])?))
    }

    #[staticmethod]
    fn _from_bytes(bytes: &[u8]) -> PyResult<Self> {
        let raw: Result<CoreRawSketch, Error> = CoreRawSketch::from_bytes(bytes);
        Ok(raw.map_err(CoreError)?.into())
    }
}
