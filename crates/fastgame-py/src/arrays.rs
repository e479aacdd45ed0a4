//! The only door from Python's arrays, lists and numbers to owned memory. Everything is copied once, while the
//! interpreter lock is held, so that another thread cannot change it between check and use.

use numpy::{
    Element, IntoPyArray, PyArray1, PyArrayDescrMethods, PyArrayMethods, PyUntypedArray, PyUntypedArrayMethods,
};
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyModule, PyString, PyTuple};

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

/// An argument that may be left out, where `None` is not a way to leave it out.
pub(crate) enum Argument<'py> {
    Absent,
    Given(Bound<'py, PyAny>),
}

impl<'py> FromPyObject<'_, 'py> for Argument<'py> {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        Ok(Self::Given(object.to_owned()))
    }
}

/// `object` as an array of any type, of numpy's own class.
pub(crate) fn as_array<'py>(object: &Bound<'py, PyAny>, name: &str) -> PyResult<Bound<'py, PyUntypedArray>> {
    let py = object.py();
    let numpy = numpy_module(py)?;
    let masked = numpy.getattr(intern!(py, "ma"))?.getattr(intern!(py, "MaskedArray"))?;
    if object.is_instance(&masked)? {
        return Err(PyTypeError::new_err(format!(
            "{name} is a masked array, whose masked elements have no value; select the elements first, for example \
             with array.compressed()"
        )));
    }
    Ok(numpy.call_method1(intern!(py, "asarray"), (object,))?.cast_into::<PyUntypedArray>()?)
}

/// The elements as `T`, in C order, in memory of our own.
pub(crate) fn copy_out<T: Element + Copy>(array: &Bound<'_, PyUntypedArray>) -> PyResult<Vec<T>> {
    let py = array.py();
    // A copy made by numpy is aligned, contiguous and in native byte order, whatever the original was.
    let native = array.dtype().is_equiv_to(&T::get_dtype(py)) && array.is_c_contiguous() && array.is_aligned();
    let array = if native && array.ndim() == 1 {
        array.as_any().clone()
    } else {
        // What only a wider float can hold becomes infinity, which is refused as such, without numpy's warning.
        let quiet = PyDict::new(py);
        quiet.set_item(intern!(py, "over"), intern!(py, "ignore"))?;
        let quiet = numpy_module(py)?.call_method(intern!(py, "errstate"), (), Some(&quiet))?;
        quiet.call_method0(intern!(py, "__enter__"))?;
        let copy = array.call_method1(intern!(py, "astype"), (T::get_dtype(py), "C"));
        quiet.call_method1(intern!(py, "__exit__"), (py.None(), py.None(), py.None()))?;
        copy?.call_method0(intern!(py, "ravel"))?
    };
    Ok(array.cast_into::<PyArray1<T>>()?.to_vec()?)
}

pub(crate) fn type_name(object: &Bound<'_, PyAny>) -> String {
    object.get_type().name().map_or_else(|_| "an object".into(), |name| name.to_string())
}

/// Whether an object is one of numpy's truth values, which some versions convert to integers.
pub(crate) fn is_numpy_bool(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    object.is_instance(&numpy_module(object.py())?.getattr(intern!(object.py(), "bool_"))?)
}

/// Whether an object is a truth value, an array, or one of numpy's scalars that is no real number: they convert to
/// numbers, but are hardly meant so.
fn is_no_number(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = object.py();
    if object.is_instance_of::<PyBool>() || object.cast::<PyUntypedArray>().is_ok() {
        return Ok(true);
    }
    let numpy = numpy_module(py)?;
    let is = |class: &Bound<'_, PyString>| object.is_instance(&numpy.getattr(class)?);
    let real = || Ok::<bool, PyErr>(is(intern!(py, "integer"))? || is(intern!(py, "floating"))?);
    Ok(is(intern!(py, "generic"))? && !real()?)
}

/// What to do with an integer beyond 64 bits.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Beyond {
    /// It is an error.
    Refuse,
    /// It stands as the last integer of its sign, which is as far beyond every bound.
    Saturate,
}

/// An object array element by element; `convert` gives `None` for what is not a number.
fn elements<T>(
    array: &Bound<'_, PyUntypedArray>,
    name: &str,
    what: &str,
    convert: impl Fn(&Bound<'_, PyAny>, usize) -> PyResult<Option<T>>,
) -> PyResult<Vec<T>> {
    let flat = array.getattr(intern!(array.py(), "flat"))?;
    let convert = |(position, item): (usize, PyResult<Bound<'_, PyAny>>)| {
        let item = item?;
        let converted = if is_no_number(&item)? { None } else { convert(&item, position)? };
        converted.ok_or_else(|| {
            let place = if array.ndim() == 0 { String::new() } else { format!(" at position {position}") };
            PyTypeError::new_err(format!("{name} must be {what}; {} was given{place}", type_name(&item)))
        })
    };
    flat.try_iter()?.enumerate().map(convert).collect()
}

/// Integers from a number, list or array of any integer type. Booleans and floats are refused.
pub(crate) fn integers(object: &Bound<'_, PyAny>, name: &str, beyond: Beyond) -> PyResult<Numbers<Integers>> {
    if object.is_exact_instance_of::<PyInt>()
        && let Ok(value) = object.extract()
    {
        return Ok(Numbers { values: Integers::Signed(vec![value]), shape: Vec::new() });
    }
    let py = object.py();
    if object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() {
        // Numpy makes ones of them, beside integers.
        let numpy_bool = numpy_module(py)?.getattr(intern!(py, "bool_"))?;
        let is_bool = |item: Bound<'_, PyAny>| item.is_instance_of::<PyBool>() || item.get_type().is(&numpy_bool);
        for (position, item) in object.try_iter()?.enumerate() {
            if is_bool(item?) {
                let message = format!("{name} must be integers; bool was given at position {position}");
                return Err(PyTypeError::new_err(message));
            }
        }
    }
    let array = as_array(object, name)?;
    let shape = array.shape().to_vec();
    let dtype = array.dtype();
    let given_as_array = object.cast::<PyUntypedArray>().is_ok();
    let values = match dtype.kind() {
        b'i' => Integers::Signed(copy_out(&array)?),
        b'u' => Integers::Unsigned(copy_out(&array)?),
        // An empty list has no type to speak of.
        _ if array.is_empty() && !given_as_array => Integers::Signed(Vec::new()),
        b'O' => Integers::Signed(integer_elements(&array, name, beyond)?),
        // Numpy makes floats of a list that mixes integers of either sign beyond 63 bits.
        b'f' if !given_as_array => {
            let objects = numpy_module(py)?
                .call_method1(intern!(py, "asarray"), (object, intern!(py, "O")))?
                .cast_into::<PyUntypedArray>()?;
            Integers::Signed(integer_elements(&objects, name, beyond)?)
        }
        kind => {
            let hint = match kind {
                b'b' if name == "indices" => " (use numpy.flatnonzero for the indices of a mask)",
                b'b' | b'f' => " (use .astype(int) if that is meant)",
                _ => "",
            };
            return Err(PyTypeError::new_err(format!("{name} must be integers{hint}; {dtype} was given")));
        }
    };
    Ok(Numbers { values, shape })
}

fn integer_elements(array: &Bound<'_, PyUntypedArray>, name: &str, beyond: Beyond) -> PyResult<Vec<i64>> {
    elements(array, name, "integers", |item, position| {
        let operator = item.py().import(intern!(item.py(), "operator"))?;
        let index = match operator.call_method1(intern!(item.py(), "index"), (item,)) {
            Ok(index) => index,
            Err(error) if error.is_instance_of::<PyTypeError>(item.py()) => return Ok(None),
            Err(error) => return Err(error),
        };
        match index.extract::<i64>() {
            Ok(value) => Ok(Some(value)),
            Err(_) if beyond == Beyond::Saturate => Ok(Some(if index.lt(0)? { i64::MIN } else { i64::MAX })),
            Err(_) => Err(PyOverflowError::new_err(format!(
                "{name} must fit in 64 bits; a larger integer was given at position {position}"
            ))),
        }
    })
}

/// Floats from a number, list or array of any integer or float type. Booleans are refused.
pub(crate) fn floats(object: &Bound<'_, PyAny>, name: &str) -> PyResult<Numbers<Vec<f64>>> {
    if (object.is_exact_instance_of::<PyFloat>() || object.is_exact_instance_of::<PyInt>())
        && let Ok(value) = object.extract()
    {
        return Ok(Numbers { values: vec![value], shape: Vec::new() });
    }
    let array = as_array(object, name)?;
    let dtype = array.dtype();
    let values = match dtype.kind() {
        b'i' | b'u' | b'f' => copy_out(&array)?,
        b'O' => elements(&array, name, "numbers", |item, _| match item.extract::<f64>() {
            Ok(value) => Ok(Some(value)),
            // An integer that no float holds is beyond every bound, and stays so.
            Err(error) if error.is_instance_of::<PyOverflowError>(item.py()) => {
                Ok(Some(if item.lt(0)? { f64::MIN } else { f64::MAX }))
            }
            Err(error) if error.is_instance_of::<PyTypeError>(item.py()) => Ok(None),
            Err(error) => Err(error),
        })?,
        kind => {
            let hint = if kind == b'b' { " (use .astype(float) if that is meant)" } else { "" };
            return Err(PyTypeError::new_err(format!("{name} must be numbers{hint}; {dtype} was given")));
        }
    };
    Ok(Numbers { shape: array.shape().to_vec(), values })
}

/// The element of an array without dimensions, otherwise the object itself.
fn unwrapped<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    match object.cast::<PyUntypedArray>() {
        Ok(array) if array.ndim() == 0 => object.get_item(PyTuple::empty(object.py())),
        _ => Ok(object.clone()),
    }
}

/// What a failed conversion to a number is reported as; what else a conversion raises is passed on.
fn not_converted(error: PyErr, object: &Bound<'_, PyAny>, name: &str, what: &str) -> PyErr {
    let py = object.py();
    if error.is_instance_of::<PyTypeError>(py) || error.is_instance_of::<PyValueError>(py) {
        PyTypeError::new_err(format!("{name} must be {what}; {} was given", type_name(object)))
    } else {
        error
    }
}

/// An integer parameter, from anything that Python takes for an integer. Booleans are refused.
pub(crate) fn integer_parameter(object: &Bound<'_, PyAny>, name: &str) -> PyResult<i128> {
    let py = object.py();
    let object = unwrapped(object)?;
    if is_no_number(&object)? {
        return Err(PyTypeError::new_err(format!("{name} must be an integer; {} was given", type_name(&object))));
    }
    let index = py
        .import(intern!(py, "operator"))?
        .call_method1(intern!(py, "index"), (&object,))
        .map_err(|error| not_converted(error, &object, name, "an integer"))?;
    // What is beyond 128 bits is beyond every range: its sign is all that a message needs.
    index.extract::<i128>().or_else(|_| Ok(if index.lt(0)? { i128::MIN } else { i128::MAX }))
}

/// An integer as a message shows it: Python prints no integer of more than some thousand digits.
pub(crate) fn shown_integer(object: &Bound<'_, PyAny>) -> String {
    match object.str() {
        Ok(digits) if digits.len().is_ok_and(|len| len <= 40) => digits.to_string(),
        _ => "an integer of more than 40 digits".into(),
    }
}

/// An unsigned integer parameter; `allowed` ends the sentence "`name` must be ...".
pub(crate) fn unsigned_parameter<T: TryFrom<i128>>(
    object: &Bound<'_, PyAny>,
    name: &str,
    allowed: &str,
) -> PyResult<T> {
    let value = integer_parameter(object, name)?;
    T::try_from(value)
        .map_err(|_| PyValueError::new_err(format!("{name} must be {allowed}; {} was given", shown_integer(object))))
}

/// A float parameter, from anything that Python takes for a real number. Booleans are refused.
pub(crate) fn float_parameter(object: &Bound<'_, PyAny>, name: &str) -> PyResult<f64> {
    let object = unwrapped(object)?;
    if is_no_number(&object)? {
        return Err(PyTypeError::new_err(format!("{name} must be a number; {} was given", type_name(&object))));
    }
    object.extract::<f64>().map_err(|error| {
        if error.is_instance_of::<PyOverflowError>(object.py()) {
            PyValueError::new_err(format!("{name} must be a finite number; an integer beyond it was given"))
        } else {
            not_converted(error, &object, name, "a number")
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
        let offsets = integers(&matrix.getattr(intern!(py, "indptr"))?, "indptr", Beyond::Refuse)?.values;
        let offsets: Vec<usize> = offsets.into_weights().into_iter().map(|offset| offset as usize).collect();
        let indices = integers(&matrix.getattr(intern!(py, "indices"))?, "indices", Beyond::Refuse)?.values;
        let Numbers { values, shape: values_shape } = floats(&matrix.getattr(intern!(py, "data"))?, "rows")?;
        if offsets.len() != shape[0] + 1 || values_shape.len() != 1 {
            return Err(PyValueError::new_err("rows is a sparse matrix whose arrays do not fit its shape"));
        }
        return Ok(RowArrays::Sparse { offsets, indices, values });
    }
    let Numbers { values, shape } = floats(object, "rows")?;
    // An empty list is no rows.
    if shape == [0] || shape.len() == 2 && shape[1] as u64 == size {
        Ok(RowArrays::Dense { values })
    } else {
        Err(refuse_width(&shape))
    }
}
