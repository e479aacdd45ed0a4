//! The only door from Python's arrays, lists and numbers to owned memory. Everything is copied once, while the
//! interpreter lock is held, so that another thread cannot change it between check and use.

use fastgame_core::Error;
use numpy::{
    Element, IntoPyArray, PyArrayDescrMethods, PyArrayDyn, PyArrayMethods, PyUntypedArray, PyUntypedArrayMethods,
};
use pyo3::exceptions::{PyAttributeError, PyOverflowError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{
    PyBool, PyByteArray, PyBytes, PyDict, PyFloat, PyInt, PyList, PyMemoryView, PyModule, PyRange, PyString, PyTuple,
};

use crate::error::CoreError;

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

/// A thing of another module, looked up once.
macro_rules! imported {
    ($py:expr, $module:literal, $name:literal) => {{
        static THING: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        THING.import($py, $module, $name)
    }};
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

/// The argument `error`: True or False, and nothing that is taken for one of them.
pub(crate) struct ErrorFlag(pub(crate) bool);

impl<'py> FromPyObject<'_, 'py> for ErrorFlag {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(flag) = object.cast::<PyBool>() {
            return Ok(Self(flag.is_true()));
        }
        if is_numpy_bool(&object)? {
            return Ok(Self(object.is_truthy()?));
        }
        Err(PyTypeError::new_err(format!("error must be True or False; {} was given", type_name(&object))))
    }
}

/// `object` as an array of any type, of numpy's own class.
pub(crate) fn as_array<'py>(object: &Bound<'py, PyAny>, name: &str) -> PyResult<Bound<'py, PyUntypedArray>> {
    let py = object.py();
    if let Ok(array) = object.cast_exact::<PyUntypedArray>() {
        return Ok(array.clone());
    }
    let numpy = numpy_module(py)?;
    // Of a subclass first, so that a mask is seen, also that of an array inside of another object.
    let array = numpy.call_method1(intern!(py, "asanyarray"), (object,)).map_err(|error| no_array(py, error, name))?;
    if is_masked(&array)? {
        return Err(masked(name));
    }
    Ok(numpy.call_method1(intern!(py, "asarray"), (array,))?.cast_into::<PyUntypedArray>()?)
}

/// `object` as an array of Python objects.
pub(crate) fn as_objects<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyUntypedArray>> {
    let py = object.py();
    let array = numpy_module(py)?.call_method1(intern!(py, "asarray"), (object, intern!(py, "O")))?;
    Ok(array.cast_into::<PyUntypedArray>()?)
}

/// Whether an object is a masked array.
fn is_masked(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    object.get_type().is_subclass(imported!(object.py(), "numpy.ma", "MaskedArray")?)
}

fn masked(name: &str) -> PyErr {
    PyTypeError::new_err(format!(
        "{name} is a masked array, whose masked elements have no value; select the elements first, for example with \
         array.compressed()"
    ))
}

/// What numpy says of an object that it can make no array of, with the name of the argument.
fn no_array(py: Python<'_>, error: PyErr, name: &str) -> PyErr {
    let message = |error: &PyErr| error.value(py).to_string().replace('\n', " ");
    let named = if error.get_type(py).is(py.get_type::<PyValueError>()) {
        PyValueError::new_err(format!("{name} cannot be made an array of: {}", message(&error)))
    } else if error.get_type(py).is(py.get_type::<PyTypeError>()) {
        PyTypeError::new_err(format!("{name} cannot be made an array of: {}", message(&error)))
    } else {
        return error;
    };
    named.set_cause(py, Some(error));
    named
}

/// Sequences of other kinds as lists, which numpy makes of them anyway; arrays, and what numpy can read at once, as they
/// are.
fn listed<'py>(object: &Bound<'py, PyAny>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    if object.is_exact_instance_of::<PyUntypedArray>() {
        return Ok(object.clone());
    }
    let kind = object.get_type();
    if kind.hasattr(intern!(object.py(), "as_py"))? {
        // Arrow's scalars; numpy would take the letters of a text for numbers.
        return object.call_method0(intern!(object.py(), "as_py"));
    }
    let known = object.is_instance_of::<PyList>()
        || object.is_instance_of::<PyTuple>()
        || object.is_instance_of::<PyString>()
        || object.is_instance_of::<PyBytes>()
        || object.is_instance_of::<PyByteArray>()
        || object.is_instance_of::<PyMemoryView>()
        || object.is_instance_of::<PyRange>();
    if known || kind.hasattr(intern!(object.py(), "__array__"))? {
        return Ok(object.clone());
    }
    Ok(sequence_list(object, name)?.map_or_else(|| object.clone(), Bound::into_any))
}

/// A list of the elements of a sequence; None for what is none. By the type, for what an object says of its class may be
/// anything, or an error.
pub(crate) fn sequence_list<'py>(object: &Bound<'py, PyAny>, name: &str) -> PyResult<Option<Bound<'py, PyList>>> {
    let py = object.py();
    let sequence = py.import(intern!(py, "collections.abc"))?.getattr(intern!(py, "Sequence"))?;
    if !object.get_type().is_subclass(&sequence)? {
        return Ok(None);
    }
    let list = py.get_type::<PyList>().call1((object,)).map_err(|error| no_array(py, error, name))?;
    Ok(Some(list.cast_into::<PyList>()?))
}

/// Numpy has no arrays of more dimensions.
const MOST_DIMENSIONS: usize = 64;

/// Refuses what numpy would take for numbers without a word, inside of lists: truth values beside numbers become ones, and
/// what a mask hides becomes data.
fn refuse_hidden(object: &Bound<'_, PyAny>, name: &str, what: &str, depth: usize) -> PyResult<()> {
    let nested = object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>();
    if !nested || depth > MOST_DIMENSIONS {
        return Ok(());
    }
    for (position, item) in object.try_iter()?.enumerate() {
        let item = item?;
        if item.is_exact_instance_of::<PyInt>() || item.is_exact_instance_of::<PyFloat>() {
            continue;
        }
        let is_bool_array = || item.cast::<PyUntypedArray>().is_ok_and(|array| array.dtype().kind() == b'b');
        if item.is_instance_of::<PyBool>() || is_numpy_bool(&item)? || is_bool_array() {
            return Err(PyTypeError::new_err(format!("{name} must be {what}; bool was given at position {position}")));
        }
        if is_masked(&item)? {
            return Err(masked(name));
        }
        if item.get_type().hasattr(intern!(item.py(), "as_py"))? {
            // Numpy takes the letters of Arrow's texts for numbers.
            let value = item.call_method0(intern!(item.py(), "as_py"))?;
            if !value.is_instance_of::<PyInt>() && !value.is_instance_of::<PyFloat>() {
                let given = type_name(&item);
                return Err(PyTypeError::new_err(format!(
                    "{name} must be {what}; {given} was given at position {position}"
                )));
            }
        }
        refuse_hidden(&item, name, what, depth + 1)?;
    }
    Ok(())
}

/// The elements as `T`, in C order, in memory of our own.
pub(crate) fn copy_out<T: Element + Copy>(array: &Bound<'_, PyUntypedArray>) -> PyResult<Vec<T>> {
    let py = array.py();
    if let Ok(native) = array.cast::<PyArrayDyn<T>>()
        && native.is_c_contiguous()
        && native.is_aligned()
    {
        return Ok(native.to_vec()?);
    }
    // A copy made by numpy is aligned, contiguous and in native byte order, whatever the original was.
    let copy = || array.call_method1(intern!(py, "astype"), (T::get_dtype(py), intern!(py, "C")));
    let copy = if array.dtype().itemsize() <= size_of::<T>() {
        copy()
    } else {
        // What only a wider float can hold becomes infinity, which is refused as such, without numpy's warning.
        let quiet = PyDict::new(py);
        quiet.set_item(intern!(py, "over"), intern!(py, "ignore"))?;
        let quiet = numpy_module(py)?.call_method(intern!(py, "errstate"), (), Some(&quiet))?;
        quiet.call_method0(intern!(py, "__enter__"))?;
        let copy = copy();
        quiet.call_method1(intern!(py, "__exit__"), (py.None(), py.None(), py.None()))?;
        copy
    };
    Ok(copy?.cast_into::<PyArrayDyn<T>>()?.to_vec()?)
}

pub(crate) fn type_name(object: &Bound<'_, PyAny>) -> String {
    object.get_type().name().map_or_else(|_| "an object".into(), |name| name.to_string())
}

/// Whether an object is one of numpy's truth values, which some versions convert to integers.
pub(crate) fn is_numpy_bool(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    object.is_instance(imported!(object.py(), "numpy", "bool_")?)
}

/// Whether an object is one of numpy's integers, among which numpy counts durations. By the type, as in `sequence_list`.
pub(crate) fn is_numpy_integer(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let (py, kind) = (object.py(), object.get_type());
    Ok(kind.is_subclass(imported!(py, "numpy", "integer")?)?
        && !kind.is_subclass(imported!(py, "numpy", "timedelta64")?)?)
}

/// Whether an object is one of numpy's floats. By the type, as in `sequence_list`.
pub(crate) fn is_numpy_float(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    object.get_type().is_subclass(imported!(object.py(), "numpy", "floating")?)
}

/// What `operator.index` makes of an object: Python's integer, for what stands for one.
pub(crate) fn index<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    imported!(object.py(), "operator", "index")?.call1((object,))
}

/// Whether an object is a truth value, an array, or one of numpy's scalars that is no real number: they convert to
/// numbers, but are hardly meant so.
fn is_no_number(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = object.py();
    if object.is_instance_of::<PyBool>() || object.cast::<PyUntypedArray>().is_ok() {
        return Ok(true);
    }
    // As Python's `isinstance`, which believes a proxy.
    let is = |class: PyResult<&Bound<'_, PyAny>>| object.is_instance(class?);
    let is_real = is(imported!(py, "numpy", "integer"))? || is(imported!(py, "numpy", "floating"))?;
    // Durations are numpy's integers too.
    Ok(is(imported!(py, "numpy", "generic"))? && (!is_real || is(imported!(py, "numpy", "timedelta64"))?))
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
    let mut converted = with_room(array.len())?;
    for element in flat.try_iter()?.enumerate() {
        converted.push(convert(element)?);
    }
    Ok(converted)
}

/// An empty vector with room for so many: an array may claim to be larger than memory.
pub(crate) fn with_room<T>(count: usize) -> PyResult<Vec<T>> {
    let mut vector = Vec::new();
    vector.try_reserve_exact(count).map_err(|_| CoreError(Error::Memory))?;
    Ok(vector)
}

/// One of Python's own integers, if it is one and of 64 bits.
fn plain_integer(object: &Bound<'_, PyAny>) -> Option<i64> {
    if object.is_exact_instance_of::<PyInt>() { object.extract().ok() } else { None }
}

/// The same of numbers, if a float holds it. Numpy's scalar of that size is a Python float too.
fn plain_number(object: &Bound<'_, PyAny>) -> Option<f64> {
    let is_plain = object.is_exact_instance_of::<PyFloat>()
        || object.is_exact_instance_of::<PyInt>()
        || imported!(object.py(), "numpy", "float64").is_ok_and(|class| object.get_type().is(class));
    if is_plain { object.extract().ok() } else { None }
}

/// A number, or a list or tuple of nothing but such, which are read without numpy: that takes a microsecond for the smallest.
fn plain<T>(object: &Bound<'_, PyAny>, read: fn(&Bound<'_, PyAny>) -> Option<T>) -> Option<Numbers<Vec<T>>> {
    let mut values = Vec::new();
    if let Ok(list) = object.cast_exact::<PyList>() {
        values.reserve_exact(list.len());
        for item in list {
            values.push(read(&item)?);
        }
    } else if let Ok(tuple) = object.cast_exact::<PyTuple>() {
        values.reserve_exact(tuple.len());
        for item in tuple {
            values.push(read(&item)?);
        }
    } else {
        return Some(Numbers { values: vec![read(object)?], shape: Vec::new() });
    }
    Some(Numbers { shape: vec![values.len()], values })
}

/// Integers from a number, list or array of any integer type. Booleans and floats are refused.
pub(crate) fn integers(object: &Bound<'_, PyAny>, name: &str, beyond: Beyond) -> PyResult<Numbers<Integers>> {
    if let Some(Numbers { values, shape }) = plain(object, plain_integer) {
        return Ok(Numbers { values: Integers::Signed(values), shape });
    }
    if is_numpy_integer(object)?
        && let Some(value) = plain_integer(&index(object)?)
    {
        return Ok(Numbers { values: Integers::Signed(vec![value]), shape: Vec::new() });
    }
    let object = &listed(object, name)?;
    refuse_hidden(object, name, "integers", 0)?;
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
        b'f' if !given_as_array => Integers::Signed(integer_elements(&as_objects(object)?, name, beyond)?),
        kind => {
            let hint = match kind {
                b'b' if name == "cells" || name == "indices" => " (use numpy.flatnonzero for the indices of a mask)",
                b'b' | b'f' => " (use .astype(int) if that is meant)",
                _ => "",
            };
            return Err(PyTypeError::new_err(format!("{name} must be integers{hint}; {dtype} was given")));
        }
    };
    Ok(Numbers { values, shape })
}

/// As `integers`, for structures that drop what is invalid (`drops`): of several elements with a type of their own, those
/// that are no integers have 0 in their place, and stand in the list of places, which rises.
pub(crate) fn integers_or_bad(
    object: &Bound<'_, PyAny>,
    name: &str,
    beyond: Beyond,
    drops: bool,
) -> PyResult<(Numbers<Integers>, Vec<usize>)> {
    if plain(object, plain_integer).is_none()
        && drops
        && let Some(list) = apart(object, name, b"iu")?
    {
        let (values, bad) = each(&list, |item| integer_element(item, name, beyond, 0))?;
        return Ok((Numbers { shape: vec![values.len()], values: Integers::Signed(values) }, bad));
    }
    Ok((integers(object, name, beyond)?, Vec::new()))
}

/// As `floats`, with NaN for what is no number among several elements with a type of their own.
pub(crate) fn floats_or_nan(object: &Bound<'_, PyAny>, name: &str) -> PyResult<Numbers<Vec<f64>>> {
    if plain(object, plain_number).is_none()
        && let Some(list) = apart(object, name, b"iuf")?
    {
        let (mut values, bad) = each(&list, |item| float_element(item).or(Ok(None)))?;
        bad.iter().for_each(|&place| values[place] = f64::NAN);
        return Ok(Numbers { shape: vec![values.len()], values });
    }
    floats(object, name)
}

/// Points of a grid of several axes as rows of a list, one after the other, with -1 for all of a row that has something
/// else than integers. None if there are no rows, or if they are no lists of as many integers as there are axes.
pub(crate) fn rows_of_integers(object: &Bound<'_, PyAny>, dims: usize) -> PyResult<Option<Numbers<Integers>>> {
    let Ok(list) = object.cast::<PyList>() else { return Ok(None) };
    let rows: Vec<Option<Bound<'_, PyList>>> = list
        .iter()
        .map(|row| match row.cast_into::<PyList>() {
            Ok(list) => Some(list),
            Err(error) => error.into_inner().cast::<PyTuple>().ok().map(|tuple| tuple.to_list()),
        })
        .collect();
    if rows.iter().all(Option::is_none) || rows.iter().flatten().any(|row| row.len() != dims) {
        return Ok(None);
    }
    let mut values = with_room(rows.len().saturating_mul(dims))?;
    for row in &rows {
        let (found, bad) = match row {
            Some(row) => each(row, |item| integer_element(item, "points", Beyond::Saturate, 0))?,
            None => (Vec::new(), vec![0]),
        };
        if bad.is_empty() { values.extend(found) } else { values.extend(std::iter::repeat_n(-1, dims)) }
    }
    Ok(Some(Numbers { values: Integers::Signed(values), shape: vec![rows.len(), dims] }))
}

/// The elements of a list, and the places of those that are none.
fn each<T: Default>(
    list: &Bound<'_, PyList>,
    read: impl Fn(&Bound<'_, PyAny>) -> PyResult<Option<T>>,
) -> PyResult<(Vec<T>, Vec<usize>)> {
    let (mut values, mut bad) = (with_room(list.len())?, Vec::new());
    for (position, item) in list.iter().enumerate() {
        let item = if item.get_type().hasattr(intern!(item.py(), "as_py"))? {
            // Text that is not UTF-8 has none.
            item.call_method0(intern!(item.py(), "as_py")).unwrap_or_else(|_| item.py().None().into_bound(item.py()))
        } else {
            item
        };
        let value = if is_no_number(&item)? { None } else { read(&item)? };
        if value.is_none() {
            bad.push(position);
        }
        values.push(value.unwrap_or_default());
    }
    Ok((values, bad))
}

/// The elements of what has a type for each of them: a list, an array of objects, a column of which numpy makes something
/// else than these kinds of numbers (as of integers of which some are missing). None for all else.
fn apart<'py>(object: &Bound<'py, PyAny>, name: &str, kinds: &[u8]) -> PyResult<Option<Bound<'py, PyList>>> {
    let py = object.py();
    if let Ok(list) = object.cast::<PyList>() {
        return Ok(Some(list.clone()));
    }
    if let Ok(tuple) = object.cast::<PyTuple>() {
        return Ok(Some(tuple.to_list()));
    }
    let listed = |object: &Bound<'py, PyAny>, method: &str| -> PyResult<Option<Bound<'py, PyList>>> {
        Ok(object.call_method0(method)?.cast_into::<PyList>().ok())
    };
    if let Ok(array) = object.cast_exact::<PyUntypedArray>() {
        let of_objects = array.dtype().kind() == b'O' && array.ndim() == 1;
        return if of_objects { listed(object, "tolist") } else { Ok(None) };
    }
    let kind = object.get_type();
    if is_masked(object)? || kind.hasattr(intern!(py, "as_py"))? || !kind.hasattr(intern!(py, "__len__"))? {
        return Ok(None);
    }
    if kind.hasattr(intern!(py, "__array__"))? {
        let array = match as_array(object, name) {
            Ok(array) => array,
            // Of Arrow's texts, of which one is not UTF-8.
            Err(_) if kind.hasattr(intern!(py, "to_pylist"))? => {
                return Ok(Some(py.get_type::<PyList>().call1((object,))?.cast_into::<PyList>()?));
            }
            Err(error) => return Err(error),
        };
        if array.ndim() != 1 || kinds.contains(&array.dtype().kind()) {
            return Ok(None);
        }
        for method in ["to_pylist", "to_list", "tolist"] {
            if kind.hasattr(method)? {
                return listed(object, method);
            }
        }
        return Ok(None);
    }
    if object.is_instance_of::<PyRange>() || object.is_instance_of::<PyString>() || object.is_instance_of::<PyBytes>() {
        return Ok(None);
    }
    sequence_list(object, name)
}

fn integer_elements(array: &Bound<'_, PyUntypedArray>, name: &str, beyond: Beyond) -> PyResult<Vec<i64>> {
    elements(array, name, "integers", |item, position| integer_element(item, name, beyond, position))
}

/// One element as an integer of 64 bits; None for what is none.
fn integer_element(item: &Bound<'_, PyAny>, name: &str, beyond: Beyond, position: usize) -> PyResult<Option<i64>> {
    let index = match index(item) {
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
}

/// Floats from a number, list or array of any integer or float type. Booleans are refused.
pub(crate) fn floats(object: &Bound<'_, PyAny>, name: &str) -> PyResult<Numbers<Vec<f64>>> {
    if let Some(numbers) = plain(object, plain_number) {
        return Ok(numbers);
    }
    let object = &listed(object, name)?;
    refuse_hidden(object, name, "numbers", 0)?;
    let array = as_array(object, name)?;
    let dtype = array.dtype();
    let values = match dtype.kind() {
        b'i' | b'u' | b'f' => copy_out(&array)?,
        b'O' => elements(&array, name, "numbers", |item, position| match float_element(item) {
            Err(error) if error.get_type(item.py()).is(item.py().get_type::<PyValueError>()) => {
                let place = if array.ndim() == 0 { String::new() } else { format!(" at position {position}") };
                let given = type_name(item);
                Err(PyValueError::new_err(format!("{name} must be numbers; a {given} that is none was given{place}")))
            }
            found => found,
        })?,
        kind => {
            let hint = if kind == b'b' { " (use .astype(float) if that is meant)" } else { "" };
            return Err(PyTypeError::new_err(format!("{name} must be numbers{hint}; {dtype} was given")));
        }
    };
    Ok(Numbers { shape: array.shape().to_vec(), values })
}

/// One element as a number; None for what is none.
fn float_element(item: &Bound<'_, PyAny>) -> PyResult<Option<f64>> {
    match item.extract::<f64>() {
        Ok(value) => Ok(Some(value)),
        // An integer that no float holds is beyond every bound, and stays so.
        Err(error) if error.is_instance_of::<PyOverflowError>(item.py()) => {
            match index(item) {
                Ok(index) => Ok(Some(if index.lt(0)? { f64::MIN } else { f64::MAX })),
                // A fraction of such integers, perhaps.
                Err(_) => Ok(Some(if item.lt(0).unwrap_or(false) { f64::MIN } else { f64::MAX })),
            }
        }
        Err(error) if error.is_instance_of::<PyTypeError>(item.py()) => Ok(None),
        Err(error) => Err(error),
    }
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
    if let Some(value) = plain_integer(object) {
        return Ok(value.into());
    }
    let object = unwrapped(object)?;
    if is_no_number(&object)? {
        return Err(PyTypeError::new_err(format!("{name} must be an integer; {} was given", type_name(&object))));
    }
    let index = index(&object).map_err(|error| not_converted(error, &object, name, "an integer"))?;
    // What is beyond 128 bits is beyond every range: its sign is all that a message needs.
    index.extract::<i128>().or_else(|_| Ok(if index.lt(0)? { i128::MIN } else { i128::MAX }))
}

/// An integer as a message shows it: Python prints no integer of more than some thousand digits, and objects that stand
/// for integers print as anything.
pub(crate) fn shown_integer(object: &Bound<'_, PyAny>) -> String {
    match integer_parameter(object, "") {
        Ok(value) if value != i128::MIN && value != i128::MAX => value.to_string(),
        _ => "an integer of 39 digits or more".into(),
    }
}

/// Text as a message shows it, in quotes: no more of it than can be read.
pub(crate) fn shown_text(text: &str) -> String {
    const MOST: usize = 60;
    let shown: String = text.chars().take(MOST).collect();
    if shown.len() < text.len() { format!("{shown:?}...") } else { format!("{shown:?}") }
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
    // Asked of the type: some objects answer to every name.
    if object.get_type().hasattr(intern!(py, "tocsr"))? {
        return sparse_rows(object, size).map_err(|error| {
            let no_matrix = error.get_type(py).is(py.get_type::<PyAttributeError>());
            if no_matrix {
                let given = type_name(object);
                PyTypeError::new_err(format!("rows must be an array, or a sparse matrix; {given} was given"))
            } else {
                error
            }
        });
    }
    let Numbers { values, shape } = floats(object, "rows")?;
    // An empty list is no rows.
    if shape == [0] || shape.len() == 2 && shape[1] as u64 == size {
        Ok(RowArrays::Dense { values })
    } else {
        Err(wrong_width(&shape, size))
    }
}

fn wrong_width(shape: &[usize], size: u64) -> PyErr {
    PyValueError::new_err(format!(
        "rows must have one column for each of the vector's {size} cells; an array of shape {shape:?} was given (for a \
         single row use update_row(cells, values))"
    ))
}

/// Rows of a matrix of scipy.
fn sparse_rows(object: &Bound<'_, PyAny>, size: u64) -> PyResult<RowArrays> {
    let py = object.py();
    let matrix = object.call_method0(intern!(py, "tocsr"))?;
    let shape: Vec<usize> = matrix.getattr(intern!(py, "shape"))?.extract()?;
    if shape.len() != 2 || shape[1] as u64 != size {
        return Err(wrong_width(&shape, size));
    }
    let offsets = integers(&matrix.getattr(intern!(py, "indptr"))?, "indptr", Beyond::Refuse)?.values;
    let offsets: Vec<usize> = offsets.into_weights().into_iter().map(|offset| offset as usize).collect();
    let indices = integers(&matrix.getattr(intern!(py, "indices"))?, "indices", Beyond::Refuse)?.values;
    let Numbers { values, shape: values_shape } = floats(&matrix.getattr(intern!(py, "data"))?, "rows")?;
    if offsets.len() != shape[0] + 1 || values_shape.len() != 1 {
        return Err(PyValueError::new_err("rows is a sparse matrix whose arrays do not fit its shape"));
    }
    Ok(RowArrays::Sparse { offsets, indices, values })
}
