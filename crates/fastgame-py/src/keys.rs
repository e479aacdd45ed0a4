//! The only door from Python's keys to the core's: numbers, text, bytes, numpy arrays, anything with the Arrow C
//! interface, and tuples of columns for composite keys.

use arrow_array::cast::AsArray;
use arrow_array::types::{Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, downcast_dictionary_array, new_empty_array};
use arrow_schema::DataType;
use fastgame_core::{Key, Keyer};
use numpy::{PyArrayDescr, PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{
    PyException, PyImportError, PyNotImplementedError, PyOverflowError, PyTypeError, PyUnicodeEncodeError, PyValueError,
};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyByteArray, PyBytes, PyFloat, PyInt, PyList, PyMemoryView, PyRange, PySlice, PyString, PyTuple,
};
use pyo3_arrow::PyChunkedArray;
use pyo3_arrow::input::AnyArray;

use crate::arrays::{as_array, copy_out, index, is_numpy_bool, is_numpy_integer, sequence_list, type_name, with_room};

/// Keys in owned memory. Integers that all are of one sign keep their plain form, which is the common and fast one.
pub(crate) enum Keys {
    Unsigned(Vec<u64>),
    Signed(Vec<i64>),
    Mixed(Vec<Key>),
}

impl Keys {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Unsigned(keys) => keys.len(),
            Self::Signed(keys) => keys.len(),
            Self::Mixed(keys) => keys.len(),
        }
    }

    fn into_mixed(self) -> Vec<Key> {
        match self {
            Self::Unsigned(keys) => keys.into_iter().map(Key::from).collect(),
            Self::Signed(keys) => keys.into_iter().map(Key::from).collect(),
            Self::Mixed(keys) => keys,
        }
    }
}

/// Keys, and whether they were given as a single one.
pub(crate) struct KeyColumn {
    pub(crate) keys: Keys,
    pub(crate) scalar: bool,
}

const ALLOWED: &str = "integers, str, bytes, columns of them, or a tuple of columns for composite keys";

/// Where a bad key stands; a single key stands nowhere.
fn at(position: Option<usize>) -> String {
    position.map_or(String::new(), |position| format!(" at position {position}"))
}

fn refuse(what: &str, position: Option<usize>) -> PyErr {
    PyTypeError::new_err(format!("keys must be {ALLOWED}; {what} was given{}", at(position)))
}

fn null(position: Option<usize>) -> PyErr {
    PyTypeError::new_err(format!("keys must not be missing; there is a null{} (drop it or fill it)", at(position)))
}

/// Keys of any kind.
pub(crate) fn keys(object: &Bound<'_, PyAny>, keyer: Keyer) -> PyResult<KeyColumn> {
    // The common ones first: what follows asks a small batch more than its keys take.
    if let Ok(array) = object.cast_exact::<PyUntypedArray>() {
        return numpy(object, array, keyer);
    }
    if let Ok(list) = object.cast_exact::<PyList>() {
        return one_by_one(list, keyer);
    }
    if let Ok(columns) = object.cast::<PyTuple>() {
        return composite(columns, keyer);
    }
    if let Some(key) = single(object, keyer, None)? {
        return Ok(KeyColumn { keys: Keys::Mixed(vec![key]), scalar: true });
    }
    if let Ok(list) = object.cast::<PyList>() {
        return one_by_one(list, keyer);
    }
    if object.is_instance_of::<PyByteArray>() || object.is_instance_of::<PyMemoryView>() {
        // One key or a column of small integers? Both have been meant.
        let what = format!("a {} (bytes(...) makes a key of it, numpy.asarray(...) a column)", type_name(object));
        return Err(refuse(&what, None));
    }
    if !holds_objects(object)? && (has(object, "__arrow_c_stream__")? || has(object, "__arrow_c_array__")?) {
        let py = object.py();
        let failed = match object.extract::<AnyArray>().and_then(|array| Ok(array.into_chunked_array()?)) {
            Ok(array) => return arrow(array, keyer),
            Err(failed) => failed,
        };
        // A pandas column without pyarrow says that it speaks Arrow, and cannot; others hold what Arrow does not. What
        // numpy makes of those is as good. Other exceptions are the column's own, and come out.
        let says_no = failed.is_instance_of::<PyImportError>(py)
            || failed.is_instance_of::<PyValueError>(py)
            || failed.is_instance_of::<PyTypeError>(py)
            || failed.is_instance_of::<PyNotImplementedError>(py)
            || failed.get_type(py).is(py.get_type::<PyException>());
        if !says_no {
            return Err(failed);
        }
        return match as_array(object, "keys") {
            Ok(array) => numpy(object, &array, keyer),
            Err(_) => Err(refuse(&format!("a column that cannot be read ({})", failed.value(py)), None)),
        };
    }
    if !object.is_instance_of::<PyRange>()
        && !has(object, "__array__")?
        && let Some(list) = sequence_list(object, "keys")?
    {
        // Numpy would find one type for all, in which 1 and "1" are the same.
        return one_by_one(&list, keyer);
    }
    numpy(object, &as_array(object, "keys")?, keyer)
}

fn one_by_one(list: &Bound<'_, PyList>, keyer: Keyer) -> PyResult<KeyColumn> {
    let mut keys = Vec::with_capacity(list.len());
    for (position, item) in list.iter().enumerate() {
        keys.push(element(&item, Some(position), keyer)?);
    }
    Ok(KeyColumn { keys: Keys::Mixed(keys), scalar: false })
}

/// Asked of the type, as Python does: a pandas column answers to the names of its rows, whatever they are.
fn has(object: &Bound<'_, PyAny>, name: &str) -> PyResult<bool> {
    object.get_type().hasattr(name)
}

/// Whether a column of pandas or Polars holds Python objects, of itself or as its categories. They are taken one by one:
/// for pandas' Arrow finds one type for all, in which "a" and b"a" are the same; for Polars' it gives their addresses.
fn holds_objects(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = object.py();
    let of_objects = |dtype: &Bound<'_, PyAny>| dtype.cast::<PyArrayDescr>().is_ok_and(|dtype| dtype.kind() == b'O');
    let Some(dtype) = object.getattr_opt(intern!(py, "dtype"))? else { return Ok(false) };
    if of_objects(&dtype) || (dtype.cast::<PyArrayDescr>().is_err() && dtype.str()?.to_cow()? == "Object") {
        return Ok(true);
    }
    let Some(categories) = dtype.getattr_opt(intern!(py, "categories"))? else { return Ok(false) };
    Ok(categories.getattr_opt(intern!(py, "dtype"))?.is_some_and(|dtype| of_objects(&dtype)))
}

/// The key of one Python value, if it is of a kind that keys have.
fn single(object: &Bound<'_, PyAny>, keyer: Keyer, position: Option<usize>) -> PyResult<Option<Key>> {
    let py = object.py();
    let is_plain_integer = object.is_exact_instance_of::<PyInt>();
    if is_plain_integer && let Ok(value) = object.extract::<i64>() {
        return Ok(Some(Key::from(value)));
    }
    if let Ok(text) = object.cast::<PyString>() {
        let text = text.to_cow().map_err(|error| {
            if error.is_instance_of::<PyUnicodeEncodeError>(py) {
                // That error's position is one in the text.
                let place = at(position);
                PyValueError::new_err(format!("text keys must have a UTF-8 form; a lone surrogate was given{place}"))
            } else {
                error
            }
        })?;
        return Ok(Some(keyer.text(&text)));
    }
    if let Ok(bytes) = object.cast::<PyBytes>() {
        return Ok(Some(keyer.bytes(bytes.as_bytes())));
    }
    if !is_plain_integer && !is_numpy_integer(object)? {
        if object.is_instance_of::<PyBool>() || is_numpy_bool(object)? {
            return Err(refuse("a bool", position));
        }
        // Arrow's scalars.
        if has(object, "as_py")? {
            let value = object.call_method0(intern!(py, "as_py"))?;
            // Plain by now, or it would never end.
            if has(&value, "as_py")? {
                return Err(refuse(&type_name(&value), position));
            }
            return element(&value, position, keyer).map(Some);
        }
        // Python's integers, and numpy's scalars by way of `__index__`; arrays without dimensions are columns.
        let is_integer = object.is_instance_of::<PyInt>()
            || (!object.is_instance_of::<PyUntypedArray>() && has(object, "__index__")? && !has(object, "__len__")?);
        if !is_integer {
            return Ok(None);
        }
    }
    let index = match index(object) {
        Ok(index) => index,
        Err(error) if error.is_instance_of::<PyTypeError>(py) => return Ok(None),
        Err(error) => return Err(error),
    };
    if let Ok(value) = index.extract::<i64>() {
        return Ok(Some(Key::from(value)));
    }
    if let Ok(value) = index.extract::<u64>() {
        return Ok(Some(Key::from(value)));
    }
    let place = at(position);
    Err(PyOverflowError::new_err(format!("integer keys must be from -2^63 to 2^64 - 1; one beyond was given{place}")))
}

/// A key that stands by itself or in a column; here missing values are told from what is no key at all.
fn element(item: &Bound<'_, PyAny>, position: Option<usize>, keyer: Keyer) -> PyResult<Key> {
    if let Some(key) = single(item, keyer, position)? {
        return Ok(key);
    }
    let name = type_name(item);
    let is_nan = item.cast::<PyFloat>().is_ok_and(|number| number.value().is_nan());
    // The last two are those of pandas.
    if item.is_none() || is_nan || name == "NAType" || name == "NaTType" {
        return Err(null(position));
    }
    Err(refuse(&name, position))
}

/// Keys of `array`, which numpy made of `object`.
fn numpy(object: &Bound<'_, PyAny>, array: &Bound<'_, PyUntypedArray>, keyer: Keyer) -> PyResult<KeyColumn> {
    let dtype = array.dtype();
    if array.ndim() > 1 {
        let shape = array.shape();
        return Err(PyValueError::new_err(format!(
            "keys must be one-dimensional; shape {shape:?} was given (a tuple of columns makes composite keys)"
        )));
    }
    let scalar = array.ndim() == 0;
    let keys = match dtype.kind() {
        b'i' => Keys::Signed(copy_out(array)?),
        b'u' => Keys::Unsigned(copy_out(array)?),
        // Lists are made several times as fast as numpy's scalars. A piece at a time: they are large.
        b'U' | b'S' if !scalar => {
            let mut keys = with_room(array.len())?;
            while keys.len() < array.len() {
                let start = keys.len() as isize;
                let piece = array.get_item(PySlice::new(array.py(), start, start + 4096, 1))?;
                for item in piece.call_method0(intern!(array.py(), "tolist"))?.cast_into::<PyList>()? {
                    keys.push(element(&item, Some(keys.len()), keyer)?);
                }
            }
            Keys::Mixed(keys)
        }
        // Text, bytes and objects: one Python value after the other.
        b'U' | b'S' | b'O' | b'T' => {
            let flat = array.getattr(intern!(array.py(), "flat"))?;
            let items = flat.try_iter()?.enumerate();
            let place = |position| (!scalar).then_some(position);
            let mut keys = with_room(array.len())?;
            for (position, item) in items {
                keys.push(element(&item?, place(position), keyer)?);
            }
            Keys::Mixed(keys)
        }
        _ if array.is_empty() && !object.is_instance_of::<PyUntypedArray>() => Keys::Mixed(Vec::new()),
        _ if scalar => {
            return Err(element(object, None, keyer).err().unwrap_or_else(|| refuse(&type_name(object), None)));
        }
        _ => return Err(refuse(&format!("an array of {dtype}"), None)),
    };
    Ok(KeyColumn { keys, scalar })
}

/// One key for each row of several columns; single values stand for every row.
fn composite(columns: &Bound<'_, PyTuple>, keyer: Keyer) -> PyResult<KeyColumn> {
    if columns.is_empty() {
        return Err(PyValueError::new_err("a composite key must have at least one part; an empty tuple was given"));
    }
    let mut parts = Vec::with_capacity(columns.len());
    for column in columns {
        if column.is_instance_of::<PyTuple>() {
            return Err(refuse("a tuple inside of a tuple", None));
        }
        let KeyColumn { keys, scalar } = keys(&column, keyer)?;
        parts.push((keys.into_mixed(), scalar));
    }
    let lengths: Vec<usize> = parts.iter().filter(|(_, scalar)| !scalar).map(|(keys, _)| keys.len()).collect();
    let rows = lengths.first().copied().unwrap_or(1);
    if lengths.iter().any(|&length| length != rows) {
        return Err(PyValueError::new_err(format!(
            "the columns of composite keys must have one length; {lengths:?} were given"
        )));
    }
    let row = |index: usize| keyer.composite(parts.iter().map(|(keys, scalar)| keys[if *scalar { 0 } else { index }]));
    Ok(KeyColumn { keys: Keys::Mixed((0..rows).map(row).collect()), scalar: lengths.is_empty() })
}

fn arrow(array: PyChunkedArray, keyer: Keyer) -> PyResult<KeyColumn> {
    let (mut chunks, field) = array.into_inner();
    if let Some(name) = field.extension_type_name() {
        // What stands for such a value may be no value of it: a count of days, an address.
        let what = format!("an Arrow column of the extension type {name} (cast it to its storage, if that is meant)");
        return Err(refuse(&what, None));
    }
    if chunks.is_empty() {
        // For its type.
        chunks.push(new_empty_array(field.data_type()));
    }
    let mut keys = Vec::with_capacity(chunks.iter().map(|chunk| chunk.len()).sum());
    for chunk in &chunks {
        arrow_chunk(chunk, keyer, keys.len(), &mut keys)?;
    }
    Ok(KeyColumn { keys: Keys::Mixed(keys), scalar: false })
}

fn arrow_chunk(chunk: &ArrayRef, keyer: Keyer, start: usize, keys: &mut Vec<Key>) -> PyResult<()> {
    fn numbers<T: ArrowPrimitiveType>(chunk: &ArrayRef, keys: &mut Vec<Key>, key: impl Fn(T::Native) -> Key) {
        keys.extend(chunk.as_primitive::<T>().values().iter().map(|&value| key(value)));
    }
    if let DataType::Dictionary(_, _) = chunk.data_type() {
        return arrow_dictionary(chunk, keyer, start, keys);
    }
    // Slots of nulls hold anything: refused before they are looked at.
    if let Some(nulls) = chunk.logical_nulls().filter(|nulls| nulls.null_count() > 0) {
        let position = (0..chunk.len()).find(|&index| nulls.is_null(index)).unwrap_or(0);
        return Err(null(Some(start + position)));
    }
    match chunk.data_type() {
        DataType::Int8 => numbers::<Int8Type>(chunk, keys, |value| i64::from(value).into()),
        DataType::Int16 => numbers::<Int16Type>(chunk, keys, |value| i64::from(value).into()),
        DataType::Int32 => numbers::<Int32Type>(chunk, keys, |value| i64::from(value).into()),
        DataType::Int64 => numbers::<Int64Type>(chunk, keys, Key::from),
        DataType::UInt8 => numbers::<UInt8Type>(chunk, keys, |value| u64::from(value).into()),
        DataType::UInt16 => numbers::<UInt16Type>(chunk, keys, |value| u64::from(value).into()),
        DataType::UInt32 => numbers::<UInt32Type>(chunk, keys, |value| u64::from(value).into()),
        DataType::UInt64 => numbers::<UInt64Type>(chunk, keys, Key::from),
        DataType::Utf8 => keys.extend(chunk.as_string::<i32>().iter().flatten().map(|text| keyer.text(text))),
        DataType::LargeUtf8 => keys.extend(chunk.as_string::<i64>().iter().flatten().map(|text| keyer.text(text))),
        DataType::Utf8View => keys.extend(chunk.as_string_view().iter().flatten().map(|text| keyer.text(text))),
        DataType::Binary => keys.extend(chunk.as_binary::<i32>().iter().flatten().map(|bytes| keyer.bytes(bytes))),
        DataType::LargeBinary => keys.extend(chunk.as_binary::<i64>().iter().flatten().map(|bytes| keyer.bytes(bytes))),
        DataType::BinaryView => keys.extend(chunk.as_binary_view().iter().flatten().map(|bytes| keyer.bytes(bytes))),
        DataType::FixedSizeBinary(_) => {
            keys.extend(chunk.as_fixed_size_binary().iter().flatten().map(|bytes| keyer.bytes(bytes)));
        }
        DataType::Null if chunk.is_empty() => {}
        other => return Err(refuse(&format!("an Arrow column of {other}"), None)),
    }
    Ok(())
}

/// Each distinct value is hashed once.
fn arrow_dictionary(chunk: &ArrayRef, keyer: Keyer, start: usize, keys: &mut Vec<Key>) -> PyResult<()> {
    downcast_dictionary_array!(
        chunk => {
            let nulls = chunk.values().logical_nulls().filter(|nulls| nulls.null_count() > 0);
            for (position, index) in chunk.keys_iter().enumerate() {
                let position = start + position;
                match index {
                    // Arrow's interface does not check them.
                    Some(index) if index >= chunk.values().len() => {
                        let what = format!("keys must be valid; a dictionary has no value for position {position}");
                        return Err(PyValueError::new_err(what));
                    }
                    Some(index) if nulls.as_ref().is_none_or(|nulls| nulls.is_valid(index)) => {}
                    _ => return Err(null(Some(position))),
                }
            }
            if nulls.is_some() {
                // A null that no key points to; that is rare enough to expand the dictionary.
                let expanded = arrow_select::take::take(chunk.values(), chunk.keys(), None)
                    .map_err(|error| PyValueError::new_err(error.to_string()))?;
                return arrow_chunk(&expanded, keyer, start, keys);
            }
            let mut values = Vec::with_capacity(chunk.values().len());
            arrow_chunk(chunk.values(), keyer, 0, &mut values)?;
            keys.extend(chunk.keys_iter().flatten().map(|index| values[index]));
            Ok(())
        },
        other => Err(refuse(&format!("an Arrow column of {other}"), None)),
    )
}
