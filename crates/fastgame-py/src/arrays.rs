//! The only door from Python's arrays, lists and numbers to owned memory. Everything is copied once, while the
//! interpreter lock is held, so that another thread cannot change it between check and use.

use numpy::{
    Element, IntoPyArray, PyArray1, PyArrayDescrMethods, PyArrayMethods, PyUntypedArray, PyUntypedArrayMethods,
};
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyFloat, PyInt, PyModule};

/// Numbers in the order given, and the shape that they had: empty for a scalar.
pub(crate) struct Numbers<T> {
    pub(crate) values: T,
    pub(crate) shape: Vec<usize>,
}

/// Integers of either sign, kept as they came.
pub(crate) enum Integers {
    Signed(Vec<i64>),
    Unsigned(Vec<u64>),
}

impl Integers {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Signed(values) => values.len(),
            Self::Unsigned(values) => values.len(),
        }
    }

    /// As weights: whatever is beyond the signed range is over every bound, and stays so.
    pub(crate) fn into_weights(self) -> Vec<i64> {
        match self {
            Self::Signed(values) => values,
            Self::Unsigned(values) => {
                values.into_iter().map(|value| i64::try_from(value).unwrap_or(i64::MAX)).collect()
            }
        }
    }
}

fn numpy_module(py: Python<'_>) -> PyResult<&Bound<'_, PyModule>> {
    static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    MODULE.get_or_try_init(py, || py.import("numpy").map(Bound::unbind)).map(|module| module.bind(py))
}

/// `object` as an array of any type.
fn as_array<'py>(object: &Bound<'py, PyAny>, name: &str) -> PyResult<Bound<'py, PyUntypedArray>> {
    let py = object.py();
    let numpy = numpy_module(py)?;
    let array = match object.cast::<PyUntypedArray>() {
        Ok(array) => array.clone(),
        Err(_) => numpy.call_method1(intern!(py, "asarray"), (object,))?.cast_into::<PyUntypedArray>()?,
    };
    let masked = numpy.getattr(intern!(py, "ma"))?.getattr(intern!(py, "MaskedArray"))?;
    if object.is_instance(&masked)? {
        return Err(PyTypeError::new_err(format!(
            "{name} is a masked array, whose masked elements have no value; select the elements first, for example \
             with array.compressed()"
        )));
    }
    Ok(array)
}

/// The elements as `T`, in C order, in memory of our own.
fn copy_out<T: Element + Copy>(array: &Bound<'_, PyUntypedArray>) -> PyResult<Vec<T>> {
    let py = array.py();
    // A copy made by numpy is aligned, contiguous and in native byte order, whatever the original was.
    let native = array.dtype().is_equiv_to(&T::get_dtype(py)) && array.is_c_contiguous() && array.is_aligned();
    let array = if native && array.ndim() == 1 {
        array.as_any().clone()
    } else {
        array.call_method1(intern!(py, "astype"), (T::get_dtype(py), "C"))?.call_method0(intern!(py, "ravel"))?
    };
    Ok(array.cast_into::<PyArray1<T>>()?.to_vec()?)
}

fn type_name(object: &Bound<'_, PyAny>) -> String {
    object.get_type().name().map_or_else(|_| "an object".into(), |name| name.to_string())
}

/// Integers from a number, list or array of any integer type. Booleans and floats are refused.
pub(crate) fn integers(object: &Bound<'_, PyAny>, name: &str) -> PyResult<Numbers<Integers>> {
    if object.is_exact_instance_of::<PyInt>() {
        let value: i64 = object.extract().map_err(|_| beyond_64_bits(name))?;
        return Ok(Numbers { values: Integers::Signed(vec![value]), shape: Vec::new() });
    }
    let array = as_array(object, name)?;
    let shape = array.shape().to_vec();
    let dtype = array.dtype();
    let values = match dtype.kind() {
        b'i' => Integers::Signed(copy_out(&array)?),
        b'u' => Integers::Unsigned(copy_out(&array)?),
        // An empty list has no type to speak of.
        _ if array.is_empty() && object.cast::<PyUntypedArray>().is_err() => Integers::Signed(Vec::new()),
        b'O' if array.try_iter_flat()?.iter().all(|item| item.is_instance_of::<PyInt>()) => {
            return Err(beyond_64_bits(name));
        }
        kind => {
            let hint = match kind {
                b'b' => " (use numpy.flatnonzero for the indices of a mask)",
                b'f' => " (use .astype(int) if that is meant)",
                _ => "",
            };
            return Err(PyTypeError::new_err(format!("{name} must be integers{hint}; {dtype} was given")));
        }
    };
    Ok(Numbers { values, shape })
}

/// Floats from a number, list or array of any integer or float type. Booleans are refused.
pub(crate) fn floats(object: &Bound<'_, PyAny>, name: &str) -> PyResult<Numbers<Vec<f64>>> {
    if object.is_exact_instance_of::<PyFloat>() || object.is_exact_instance_of::<PyInt>() {
        let value: f64 = object.extract().map_err(|_| beyond_64_bits(name))?;
        return Ok(Numbers { values: vec![value], shape: Vec::new() });
    }
    let array = as_array(object, name)?;
    let dtype = array.dtype();
    if !matches!(dtype.kind(), b'i' | b'u' | b'f') {
        let hint = if dtype.kind() == b'b' { " (use .astype(float) if that is meant)" } else { "" };
        return Err(PyTypeError::new_err(format!("{name} must be numbers{hint}; {dtype} was given")));
    }
    Ok(Numbers { shape: array.shape().to_vec(), values: copy_out(&array)? })
}

fn beyond_64_bits(name: &str) -> PyErr {
    PyOverflowError::new_err(format!("{name} must fit in 64 bits; a larger integer was given"))
}

trait FlatItems<'py> {
    fn try_iter_flat(&self) -> PyResult<Vec<Bound<'py, PyAny>>>;
}

impl<'py> FlatItems<'py> for Bound<'py, PyUntypedArray> {
    fn try_iter_flat(&self) -> PyResult<Vec<Bound<'py, PyAny>>> {
        self.getattr(intern!(self.py(), "flat"))?.try_iter()?.collect()
    }
}

/// An integer parameter, from anything that Python takes for an integer. Booleans are refused.
pub(crate) fn integer_parameter(object: &Bound<'_, PyAny>, name: &str) -> PyResult<i128> {
    let py = object.py();
    if object.is_instance_of::<PyBool>() {
        return Err(PyTypeError::new_err(format!("{name} must be an integer; a bool was given")));
    }
    let index = py
        .import(intern!(py, "operator"))?
        .call_method1(intern!(py, "index"), (object,))
        .map_err(|_| PyTypeError::new_err(format!("{name} must be an integer; {} was given", type_name(object))))?;
    // What is beyond 128 bits is beyond every range: its sign is all that a message needs.
    index.extract::<i128>().or_else(|_| Ok(if index.lt(0)? { i128::MIN } else { i128::MAX }))
}

/// An unsigned integer parameter; `allowed` ends the sentence "`name` must be ...".
pub(crate) fn unsigned_parameter<T: TryFrom<i128>>(
    object: &Bound<'_, PyAny>,
    name: &str,
    allowed: &str,
) -> PyResult<T> {
    let value = integer_parameter(object, name)?;
    T::try_from(value).map_err(|_| PyValueError::new_err(format!("{name} must be {allowed}; {object} was given")))
}

/// A float parameter.
pub(crate) fn float_parameter(object: &Bound<'_, PyAny>, name: &str) -> PyResult<f64> {
    if object.is_instance_of::<PyBool>() {
        return Err(PyTypeError::new_err(format!("{name} must be a number; a bool was given")));
    }
    object.extract::<f64>().map_err(|error| {
        if error.is_instance_of::<PyOverflowError>(object.py()) {
            PyValueError::new_err(format!("{name} must be a finite number; an integer beyond it was given"))
        } else {
            PyTypeError::new_err(format!("{name} must be a number; {} was given", type_name(object)))
        }
    })
}

/// Released values in the shape of the request: a float for a scalar, else an array.
pub(crate) fn output<'py>(py: Python<'py>, values: Vec<f64>, shape: &[usize]) -> PyResult<Bound<'py, PyAny>> {
    if shape.is_empty() {
        return Ok(PyFloat::new(py, values[0]).into_any());
    }
    let array = values.into_pyarray(py);
    if shape.len() == 1 { Ok(array.into_any()) } else { array.call_method1(intern!(py, "reshape"), (shape.to_vec(),)) }
}

/// Rows for an update: compressed sparse, or dense.
pub(crate) enum RowArrays {
    Dense { values: Vec<f64> },
    Sparse { offsets: Vec<usize>, indices: Integers, values: Vec<f64> },
}

/// Rows from a two-dimensional array, nested lists, or any scipy sparse matrix or array.
pub(crate) fn rows(object: &Bound<'_, PyAny>, size: u64) -> PyResult<RowArrays> {
    let py = object.py();
    let refuse_width = |shape: &[usize]| {
        PyValueError::new_err(format!(
            "rows must have one column for each of the vector's {size} cells; an array of shape {shape:?} was given \
             (for a single update use update(indices, values))"
        ))
    };
    if object.hasattr(intern!(py, "tocsr"))? {
        let matrix = object.call_method0(intern!(py, "tocsr"))?;
        let shape: Vec<usize> = matrix.getattr(intern!(py, "shape"))?.extract()?;
        if shape.len() != 2 || shape[1] as u64 != size {
            return Err(refuse_width(&shape));
        }
        let offsets = integers(&matrix.getattr(intern!(py, "indptr"))?, "indptr")?.values;
        let offsets = offsets.into_weights().into_iter().map(|offset| offset as usize).collect();
        let indices = integers(&matrix.getattr(intern!(py, "indices"))?, "indices")?.values;
        let values = floats(&matrix.getattr(intern!(py, "data"))?, "rows")?.values;
        return Ok(RowArrays::Sparse { offsets, indices, values });
    }
    let Numbers { values, shape } = floats(object, "rows")?;
    if shape.len() == 2 && shape[1] as u64 == size {
        Ok(RowArrays::Dense { values })
    } else {
        Err(refuse_width(&shape))
    }
}
