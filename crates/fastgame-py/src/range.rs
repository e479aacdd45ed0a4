//! `RangeCounter`.

use fastgame_core::{Error, Interval, Levels};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pyclass_init::PyClassInitializer as Init;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString, PyTuple};

use crate::arrays::{
    Argument, Beyond, ErrorFlag, Integers, Numbers, float_parameter, floats, integers, integers_or_bad, output,
    rows_of_integers, unsigned_parameter,
};
use crate::error::CoreError;
use crate::keys::without;
use crate::parameters::{Arguments, OwnRange, Parameters};
use crate::plan::Plan;
use crate::sketch::{OwnedWeights, imported, result_class, weights};
use crate::structure::Structure;

const RANGES: &str = "fastgame._ranges";

/// Counts of points in boxes of a grid under continual observation.
///
/// Points are inserted and deleted; at any time step the number of points in any box can be asked for. The grid has a size
/// for each axis (`shape`), or axes with edges (`axes`) that turn floats, integers, times and categories into places; what
/// lies outside of them goes to flow bins. All parameters are keywords.
///
/// Parameters
/// ----------
/// horizon : int
///     The number of time steps, 1 to 2**62. Public. One step is the static structure (Theorem D.2); more, the dynamic one
///     (Theorem 4.3).
/// privacy : Zcdp, Gdp, ApproxDp or PureDp
///     The budget for all answers together.
/// shape : int or tuple of int
///     The sizes of one to six axes, each up to 2**62; points and boxes are then given in coordinates from 0.
/// axes : list of axes
///     Instead of `shape`: see `fastgame.axis`. Their edges are public.
/// width, depth : int
///     Buckets and rows of the sketches that stand for components with more rectangles than that; a power of two, and odd.
/// max_weight : int
///     The largest absolute weight of one point, 1 to 2**31.
/// hash_seed : int or None
///     Of the hash functions. Public. None: at random.
/// levels : int or "dyadic"
///     Every how many levels of dyadic intervals one is kept, 1 to 8; "dyadic" is the paper's structure, all of them.
/// estimator : {"least_squares", "cover"}
///     A box as the weighted sum of rectangles with the least noise, or as the paper's disjoint cover, which reads fewer
///     cells.
/// mechanism, buffers, protect, contributions, on_excess, invalid, insecure_seed
///     As for ContinualCounter.
///
/// Raises
/// ------
/// ValueError, TypeError
///     For a parameter that is not allowed; the message says what is.
#[pyclass(frozen, extends = Structure, module = "fastgame")]
pub(crate) struct RangeCounter {
    own: OwnRange,
}

/// Points as coordinates, one point after the other.
struct PointArray {
    coordinates: Integers,
    count: usize,
    scalar: bool,
}

impl PointArray {
    /// Those that do not stand at these places, which rise.
    fn without(self, places: &[usize], dims: usize) -> Self {
        let places: Vec<usize> = places.iter().flat_map(|&place| place * dims..(place + 1) * dims).collect();
        let coordinates = match self.coordinates {
            Integers::Signed(points) => Integers::Signed(without(points, &places)),
            Integers::Unsigned(points) => Integers::Unsigned(without(points, &places)),
        };
        Self { count: coordinates.len() / dims, coordinates, scalar: self.scalar }
    }
}

/// Boxes as intervals, one box after the other.
struct Boxes {
    intervals: Vec<Interval>,
    /// Of the answers: none for a single box.
    shape: Vec<usize>,
}

impl RangeCounter {
    pub(crate) fn around(structure: Structure) -> PyResult<Init<Self>> {
        let Some(own) = structure.parameters().own_range().cloned() else {
            return Err(PyTypeError::new_err("not the parameters of a range counter"));
        };
        Ok(Init::from(structure).add_subclass(Self { own }))
    }

    fn dims(&self) -> usize {
        self.own.shape.sizes.len()
    }

    fn points(&self, py: Python<'_>, points: &Bound<'_, PyAny>, drop: bool) -> PyResult<PointArray> {
        static POINTS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let beyond = if drop { Beyond::Saturate } else { Beyond::Refuse };
        let Numbers { values: coordinates, shape } = match &self.own.axes {
            Some(axes) => {
                let places = imported(py, &POINTS, RANGES, "points")?.call1((axes.bind(py), points, drop))?;
                integers(&places, "points", beyond)?
            }
            None if drop && self.dims() > 1 => match rows_of_integers(points, self.dims())? {
                Some(points) => points,
                None => integers(points, "points", beyond)?,
            },
            None => {
                let (mut points, bad) = integers_or_bad(points, "points", beyond, drop)?;
                if let Integers::Signed(points) = &mut points.values {
                    // There is no such place.
                    bad.iter().for_each(|&place| points[place] = -1);
                }
                points
            }
        };
        let (count, scalar) = rows("points", &shape, self.dims(), coordinates.len())?;
        Ok(PointArray { coordinates, count, scalar })
    }

    fn boxes(&self, py: Python<'_>, lo: &Bound<'_, PyAny>, hi: Option<&Bound<'_, PyAny>>) -> PyResult<Boxes> {
        boxes(py, &self.own, lo, hi)
    }
}

/// Boxes from two corners, or from values of the axes.
pub(crate) fn boxes_of(
    py: Python<'_>,
    own: &OwnRange,
    lo: &Bound<'_, PyAny>,
    hi: Option<&Bound<'_, PyAny>>,
) -> PyResult<Vec<Interval>> {
    boxes(py, own, lo, hi).map(|boxes| boxes.intervals)
}

fn boxes(py: Python<'_>, own: &OwnRange, lo: &Bound<'_, PyAny>, hi: Option<&Bound<'_, PyAny>>) -> PyResult<Boxes> {
    static BOXES: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let dims = own.shape.sizes.len();
    match (&own.axes, hi) {
        (None, Some(hi)) => corners(lo, hi, dims),
        (None, None) => {
            Err(PyTypeError::new_err("a box of a grid is given by two corners: lo, and hi, which is not included"))
        }
        (Some(axes), hi) => {
            let places = imported(py, &BOXES, RANGES, "boxes")?.call1((axes.bind(py), lo, hi))?;
            let (lo, hi): (Bound<'_, PyAny>, Bound<'_, PyAny>) = places.extract()?;
            corners(&lo, &hi, dims)
        }
    }
}

/// Boxes from their corners in the grid.
fn corners(lo: &Bound<'_, PyAny>, hi: &Bound<'_, PyAny>, dims: usize) -> PyResult<Boxes> {
    let (lo, hi) = (integers(lo, "lo", Beyond::Refuse)?, integers(hi, "hi", Beyond::Refuse)?);
    if lo.shape != hi.shape {
        return Err(PyValueError::new_err(format!(
            "lo and hi must have one shape; {:?} and {:?} were given",
            lo.shape, hi.shape
        )));
    }
    let (count, scalar) = rows("lo and hi", &lo.shape, dims, lo.values.len())?;
    let (lo, hi) = (lo.values.into_weights(), hi.values.into_weights());
    let mut intervals = Vec::new();
    intervals.try_reserve_exact(lo.len()).map_err(|_| CoreError(Error::Memory))?;
    for (place, (lo, hi)) in lo.into_iter().zip(hi).enumerate() {
        let (Ok(from), Ok(to)) = (u64::try_from(lo), u64::try_from(hi)) else {
            return Err(PyValueError::new_err(format!(
                "the box at position {} goes from {lo} to {hi} on axis {}; coordinates begin at 0",
                place / dims,
                place % dims
            )));
        };
        intervals.push((from, to));
    }
    Ok(Boxes { intervals, shape: if scalar { Vec::new() } else { vec![count] } })
}

/// The number of points or boxes in an array, and whether it is a single one.
fn rows(name: &str, shape: &[usize], dims: usize, len: usize) -> PyResult<(usize, bool)> {
    match shape {
        [] if dims == 1 => Ok((1, true)),
        [count] if dims == 1 => Ok((*count, false)),
        [axes] if *axes == dims => Ok((1, true)),
        [count, axes] if *axes == dims => Ok((*count, false)),
        // An empty list has no second dimension.
        [0] if len == 0 => Ok((0, false)),
        _ => Err(PyValueError::new_err(format!(
            "{name} must have the shape ({dims},) for one, or (n, {dims}) for several{}; {shape:?} was given",
            if dims == 1 { ", or a number or (n,)" } else { "" }
        ))),
    }
}

#[pymethods]
impl RangeCounter {
    #[new]
    #[pyo3(signature = (**arguments), text_signature = "(*, horizon, privacy, shape=None, axes=None, width=4096, depth=5, \
        max_weight=1, hash_seed=None, levels=2, estimator='least_squares', mechanism='tree', buffers=None, protect='update', \
        contributions=1, on_excess='error', invalid='raise', insecure_seed=None)")]
    fn new(py: Python<'_>, arguments: Option<&Bound<'_, PyDict>>) -> PyResult<Init<Self>> {
        Self::around(Structure::new(Parameters::range(py, &Arguments::new(arguments))?)?)
    }

    /// What a range counter with these parameters would cost, without building it: a Plan, whose error is that of a random
    /// box by noise alone; `Plan.box` has that of a given one.
    #[staticmethod]
    #[pyo3(signature = (**arguments), text_signature = "(*, horizon, privacy, shape=None, axes=None, width=4096, depth=5, \
        max_weight=1, hash_seed=None, levels=2, estimator='least_squares', mechanism='tree', buffers=None, protect='update', \
        contributions=1, on_excess='error', invalid='raise', insecure_seed=None)")]
    fn plan(py: Python<'_>, arguments: Option<&Bound<'_, PyDict>>) -> PyResult<Plan> {
        Plan::new(Parameters::range(py, &Arguments::new(arguments))?)
    }

    /// The plan with the fewest cells whose boxes are nearly as good as any: width, depth and levels are looked for.
    ///
    /// Levels 1 to 4, depths 3 and 5, and widths that are powers of two are compared by the error of random boxes (or of
    /// boxes with given sides) with collisions of `points` points in rectangles of their own; of those within 10 % of the
    /// least error the one with the fewest cells is taken.
    ///
    /// Parameters
    /// ----------
    /// horizon, privacy
    ///     As for the class; so are all other keywords but width, depth, levels and estimator.
    /// points : int
    ///     About how many points there will be: a public guess.
    /// sides : tuple of int, optional
    ///     The side lengths of the boxes that matter, in coordinates of the grid.
    /// confidence : float
    /// max_cells : int
    ///     The most cells that a structure may have.
    ///
    /// Returns
    /// -------
    /// Plan
    #[staticmethod]
    #[pyo3(signature = (**arguments), text_signature = "(*, horizon, privacy, points, shape=None, axes=None, sides=None, \
        confidence=0.95, max_cells=16777216, max_weight=1, hash_seed=None, mechanism='tree', buffers=None, protect='update', \
        contributions=1, on_excess='error', invalid='raise', insecure_seed=None)")]
    fn suggest<'py>(py: Python<'py>, arguments: Option<&Bound<'py, PyDict>>) -> PyResult<Bound<'py, PyAny>> {
        static SUGGEST: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        imported(py, &SUGGEST, RANGES, "suggest")?.call((), arguments)
    }

    /// The sizes of the grid, flow bins included.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.own.shape.sizes)
    }

    /// The axes, or None for a bare grid.
    #[getter]
    fn axes(&self, py: Python<'_>) -> Option<Py<PyTuple>> {
        self.own.axes.as_ref().map(|axes| axes.clone_ref(py))
    }

    /// Buckets in a row of a sketched component.
    #[getter]
    fn width(&self) -> usize {
        self.own.shape.width
    }

    /// Rows of a sketched component, an odd number.
    #[getter]
    fn depth(&self) -> usize {
        self.own.shape.depth
    }

    /// The largest absolute weight of one point.
    #[getter]
    fn max_weight(&self) -> u32 {
        self.own.shape.max_weight
    }

    /// The seed of the hash functions.
    #[getter]
    fn hash_seed(&self) -> u64 {
        self.own.shape.hash_seed
    }

    /// Every how many levels one is kept, or "dyadic".
    #[getter]
    fn levels<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(match self.own.shape.levels {
            Levels::Every(spacing) => spacing.into_pyobject(py)?.into_any(),
            _ => PyString::new(py, "dyadic").into_any(),
        })
    }

    /// How boxes are estimated.
    #[getter]
    fn estimator(&self) -> &'static str {
        self.own.estimator
    }

    /// Adds weighted points at the present step, each an update of its own; all or nothing.
    ///
    /// Parameters
    /// ----------
    /// points : array of shape (n, axes), or (axes,) for one point
    ///     Of a grid: integers, 0 to size - 1 on each axis. With axes: their values, as rows, as a tuple of columns, or as a
    ///     table or dict of columns by the names of the axes.
    /// weights : int or array of int
    ///     One for all, or one for each point. Negative weights delete; that a point was there is not checked.
    ///
    /// Raises
    /// ------
    /// SealedStepError
    ///     The present step was read already.
    /// ValueError
    ///     A point lies outside of the grid or on no bin, or a weight is over max_weight (unless on_excess="clip"; all
    ///     unless invalid="drop"); shapes that differ.
    /// TypeError, OverflowError
    ///     Values of another type than the axis has; a counter would leave the 64-bit range.
    #[pyo3(signature = (points, weights = Argument::Absent), text_signature = "($self, points, weights=1)")]
    fn update(slf: &Bound<'_, Self>, points: &Bound<'_, PyAny>, weights: Argument<'_>) -> PyResult<()> {
        let drop = slf.as_super().get().drops();
        let points = slf.get().points(slf.py(), points, drop)?;
        let (weights, bad) = self::weights(weights, points.count, points.scalar, drop)?;
        if bad.is_empty() {
            return add(slf, &points, &weights, 0);
        }
        add(slf, &points.without(&bad, slf.get().dims()), &weights.without(&bad), bad.len() as u64)
    }

    /// Inserts points: an update with weight 1.
    fn insert(slf: &Bound<'_, Self>, points: &Bound<'_, PyAny>) -> PyResult<()> {
        let drop = slf.as_super().get().drops();
        add(slf, &slf.get().points(slf.py(), points, drop)?, &OwnedWeights::All(1), 0)
    }

    /// Deletes points: an update with weight -1.
    fn delete(slf: &Bound<'_, Self>, points: &Bound<'_, PyAny>) -> PyResult<()> {
        let drop = slf.as_super().get().drops();
        add(slf, &slf.get().points(slf.py(), points, drop)?, &OwnedWeights::All(-1), 0)
    }

    /// `update` with places of the grid, whether or not there are axes.
    fn _update_places(slf: &Bound<'_, Self>, places: &Bound<'_, PyAny>, weights: &Bound<'_, PyAny>) -> PyResult<()> {
        let Numbers { values: coordinates, shape } = integers(places, "places", Beyond::Refuse)?;
        let (count, scalar) = rows("places", &shape, slf.get().dims(), coordinates.len())?;
        let (weights, _) = self::weights(Argument::Given(weights.clone()), count, scalar, false)?;
        add(slf, &PointArray { coordinates, count, scalar }, &weights, 0)
    }

    /// The number of points in boxes at the present step, which is sealed: unbiased, and may be negative.
    ///
    /// Parameters
    /// ----------
    /// lo, hi : array of shape (axes,) for one box, or (n, axes)
    ///     The corners; `hi` is not included. Of a grid in coordinates, with axes in values that are edges (None: the end,
    ///     its flow bin included). With axes also a single dict from names to (from, to), of single values or arrays, where
    ///     axes that are not named are taken whole; of a category, a value.
    /// error : bool
    ///     Also give the standard deviation of each count, from released values alone.
    ///
    /// Returns
    /// -------
    /// A float for a single box, else an array of float64; with `error` an Estimate(value, std) of such.
    ///
    /// Raises
    /// ------
    /// ValueError, TypeError
    ///     A box that is none; a bound that is no edge, with the nearest ones. Nothing is released then.
    #[pyo3(signature = (lo, hi = None, *, error = ErrorFlag(false)), text_signature = "($self, lo, hi=None, *, error=False)")]
    fn count<'py>(
        slf: &Bound<'py, Self>,
        lo: &Bound<'py, PyAny>,
        hi: Option<&Bound<'py, PyAny>>,
        error: ErrorFlag,
    ) -> PyResult<Bound<'py, PyAny>> {
        let ErrorFlag(error) = error;
        let py = slf.py();
        read(slf, &slf.get().boxes(py, lo, hi)?, error)
    }

    /// `cdf` with places of the only axis: None where there is no number.
    fn _cdf_places(slf: &Bound<'_, Self>, ends: Vec<u64>) -> PyResult<Option<Vec<f64>>> {
        let work = ends.len().saturating_mul(256);
        slf.as_super().get().with_range(slf.py(), work, |range, rng| range.cdf(&ends, rng))
    }

    /// `count` with places of the grid, whether or not there are axes.
    fn _count_places<'py>(
        slf: &Bound<'py, Self>,
        lo: &Bound<'py, PyAny>,
        hi: &Bound<'py, PyAny>,
        error: ErrorFlag,
    ) -> PyResult<Bound<'py, PyAny>> {
        let ErrorFlag(error) = error;
        read(slf, &corners(lo, hi, slf.get().dims())?, error)
    }

    /// One axis only: where the released counts reach a share of their total, at the present step, which is sealed.
    ///
    /// Parameters
    /// ----------
    /// q : float or array of float
    ///     From 0 to 1; 0.5 is the median. All in one call share their reads.
    ///
    /// Returns
    /// -------
    /// The coordinate, an int or an array of int64; with an axis the beginning of the bin, or the category. A quantile in a flow
    /// bin is minus infinity below the first edge (None of dates), and None among other categories.
    ///
    /// No number, None, if the released total of all points is not above its own 95 % error, as in 97.5 % of releases of an
    /// empty counter: decided from released values alone. Of several `q` an array of NaN, float64, or of None for dates
    /// and categories.
    #[pyo3(signature = (q))]
    fn quantile<'py>(slf: &Bound<'py, Self>, q: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        static VALUES: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let py = slf.py();
        let Numbers { values: qs, shape } = floats(q, "q")?;
        let found = slf.as_super().get().with_range(py, usize::MAX, |range, rng| range.quantile(&qs, rng))?;
        let axes = slf.get().axes(py);
        imported(py, &VALUES, RANGES, "values")?.call1((axes, found, shape))
    }

    /// One axis only: the released share of points before given edges, at the present step, which is sealed.
    ///
    /// Parameters
    /// ----------
    /// x : float, int or array
    ///     Of a grid a coordinate, with an axis an edge; points at `x` itself are not counted.
    ///
    /// Returns
    /// -------
    /// A float, or an array of float64. Not clamped, and not made monotone. Where `quantile` has no number, None or an
    /// array of NaN.
    fn cdf<'py>(slf: &Bound<'py, Self>, x: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        static CDF: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        imported(slf.py(), &CDF, RANGES, "cdf")?.call1((slf, x))
    }

    /// One axis only: coordinates with a released count of at least a threshold, the largest first, by descent of the tree
    /// at the present step, which is sealed. Which counts are read depends on released ones alone.
    ///
    /// Parameters
    /// ----------
    /// threshold : float
    ///     Positive. Well above the noise, or much of what is found is noise.
    /// limit : int
    ///     The most nodes that are followed on each level.
    ///
    /// Returns
    /// -------
    /// HeavyHitters(items, complete): a list of Top(key, value), where `complete` says that nothing was left out for the
    /// limit. A key is the coordinate, with an axis the beginning of the bin or the category.
    #[pyo3(signature = (threshold, *, limit = Argument::Absent), text_signature = "($self, threshold, *, limit=4096)")]
    fn heavy_hitters<'py>(
        slf: &Bound<'py, Self>,
        threshold: &Bound<'py, PyAny>,
        limit: Argument<'_>,
    ) -> PyResult<Bound<'py, PyAny>> {
        static HITTERS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let py = slf.py();
        let threshold = float_parameter(threshold, "threshold")?;
        let limit = match limit {
            Argument::Given(limit) => unsigned_parameter(&limit, "limit", "an integer that is at least 1")?,
            Argument::Absent => 4096,
        };
        let structure = slf.as_super().get();
        let found = structure.with_range(py, usize::MAX, |range, rng| range.heavy_hitters(threshold, limit, rng))?;
        let (places, counts): (Vec<u64>, Vec<f64>) = found.items.into_iter().unzip();
        let axes = slf.get().axes(py);
        imported(py, &HITTERS, RANGES, "heavy_hitters")?.call1((axes, places, counts, found.complete))
    }

    /// Counts of a coarser grid at the present step, which is sealed: a heat map.
    ///
    /// Parameters
    /// ----------
    /// bins : int or tuple of int
    ///     The most bins of each axis. Flow bins, if there are any, are left out.
    /// error : bool
    ///     Also give standard deviations.
    ///
    /// Returns
    /// -------
    /// Grid(value, std, edges): arrays of float64 with a dimension for each axis (std is None without `error`), and for
    /// each axis the edges of its bins, one more than bins (of a category: the categories).
    #[pyo3(signature = (bins = Argument::Absent, *, error = ErrorFlag(false)), text_signature = "($self, bins=64, *, error=False)")]
    fn grid<'py>(slf: &Bound<'py, Self>, bins: Argument<'py>, error: ErrorFlag) -> PyResult<Bound<'py, PyAny>> {
        let ErrorFlag(error) = error;
        static GRID: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let py = slf.py();
        let bins = match bins {
            Argument::Given(bins) => bins,
            Argument::Absent => 64u32.into_pyobject(py)?.into_any(),
        };
        imported(py, &GRID, RANGES, "grid")?.call1((slf, bins, error))
    }

    /// Counts along one axis over all of the others, at the present step, which is sealed.
    ///
    /// Parameters
    /// ----------
    /// axis : int or str
    ///     Its number or its name.
    /// bins, error
    ///     As for `grid`.
    ///
    /// Returns
    /// -------
    /// Grid(value, std, edges), of one dimension.
    #[pyo3(
        signature = (axis, bins = Argument::Absent, *, error = ErrorFlag(false)),
        text_signature = "($self, axis, bins=64, *, error=False)"
    )]
    fn marginal<'py>(
        slf: &Bound<'py, Self>,
        axis: &Bound<'py, PyAny>,
        bins: Argument<'py>,
        error: ErrorFlag,
    ) -> PyResult<Bound<'py, PyAny>> {
        let ErrorFlag(error) = error;
        static MARGINAL: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let py = slf.py();
        let bins = match bins {
            Argument::Given(bins) => bins,
            Argument::Absent => 64u32.into_pyobject(py)?.into_any(),
        };
        imported(py, &MARGINAL, RANGES, "marginal")?.call1((slf, axis, bins, error))
    }
}

fn read<'py>(slf: &Bound<'py, RangeCounter>, boxes: &Boxes, error: bool) -> PyResult<Bound<'py, PyAny>> {
    static ESTIMATE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let (py, structure) = (slf.py(), slf.as_super().get());
    let Boxes { intervals, shape } = boxes;
    // A box reads some hundred cells.
    let work = intervals.len().saturating_mul(256);
    if !error {
        let values = structure.with_range(py, work, |range, rng| range.count(intervals, rng))?;
        return output(py, values, shape);
    }
    let counts = structure.with_range(py, work, |range, rng| range.count_with_error(intervals, None, rng))?;
    let (values, stds) = (output(py, counts.values, shape)?, output(py, counts.stds, shape)?);
    result_class(py, &ESTIMATE, "Estimate")?.call1((values, stds))
}

/// Adds points, of which so many were left out before.
fn add(slf: &Bound<'_, RangeCounter>, points: &PointArray, weights: &OwnedWeights, left_out: u64) -> PyResult<()> {
    let structure = slf.as_super().get();
    let work = points.count.saturating_mul(slf.get().dims());
    match &points.coordinates {
        Integers::Signed(points) => {
            structure.update_range(slf.py(), work, |range| Ok(range.update(points, weights.get())? + left_out))
        }
        Integers::Unsigned(points) => {
            structure.update_range(slf.py(), work, |range| Ok(range.update(points, weights.get())? + left_out))
        }
    }
}
