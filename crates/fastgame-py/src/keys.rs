//! The only door from Python's keys to the core's: numbers, text, bytes, numpy arrays, anything with the Arrow C
//! interface, and tuples of columns for composite keys.

use arrow_array::cast::AsArray;
use arrow_array::types::{Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, downcast_dictionary_array};
use arrow_schema::DataType;
use fastgame_core::{Key, Keyer};
use numpy::{PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyImportError, PyOverflowError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyInt, PyList, PyString, PyTuple};
use pyo3_arrow::input::AnyArray;

use crate::arrays::{as_array, copy_out, type_name};

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

fn refuse(what: &str, position: Option<usize>) -> PyErr {
    let place = position.map_or(String::new(), |position| format!(" at position {position}"));
    PyTypeError::new_err(format!("keys must be {ALLOWED}; {what} was given{place}"))
}

/// Keys of any kind.
pub(crate) fn keys(object: &Bound<'_, PyAny>, keyer: Keyer) -> PyResult<KeyColumn> {
    if let Ok(columns) = object.cast::<PyTuple>() {
        return composite(columns, keyer);
    }
    if let Some(key) = single(object, keyer, None)? {
        return Ok(KeyColumn { keys: Keys::Mixed(vec![key]), scalar: true });
    }
    if let Ok(list) = object.cast::<PyList>() {
        let key = |(position, item): (usize, Bound<'_, PyAny>)| element(&item, position, keyer);
        return Ok(KeyColumn {
            keys: Keys::Mixed(list.iter().enumerate().map(key).collect::<PyResult<_>>()?),
            scalar: false,
        });
    }
    let is_array = object.cast::<PyUntypedArray>().is_ok();
    if !is_array && (has(object, "__arrow_c_stream__")? || has(object, "__arrow_c_array__")?) {
        match object.extract::<AnyArray>() {
            Ok(array) => return arrow(array, keyer),
            // A pandas column without pyarrow says that it speaks Arrow, and cannot.
            Err(error) if error.is_instance_of::<PyImportError>(object.py()) => {}
            Err(error) => return Err(error),
        }
    }
    numpy(object, keyer)
}

fn has(object: &Bound<'_, PyAny>, name: &str) -> PyResult<bool> {
    object.hasattr(name)
}

/// The key of one Python value, if it is of a kind that keys have.
fn single(object: &Bound<'_, PyAny>, keyer: Keyer, position: Option<usize>) -> PyResult<Option<Key>> {
    let py = object.py();
    if object.is_instance_of::<PyBool>() {
        return Err(refuse("a bool", position));
    }
    if let Ok(text) = object.cast::<PyString>() {
        return Ok(Some(keyer.text(&text.to_cow()?)));
    }
    if let Ok(bytes) = object.cast::<PyBytes>() {
        return Ok(Some(keyer.bytes(bytes.as_bytes())));
    }
    // Python's integers, and numpy's scalars by way of `__index__`; arrays without dimensions are columns.
    let is_integer = object.is_instance_of::<PyInt>()
        || (!object.is_instance_of::<PyUntypedArray>() && has(object, "__index__")? && !has(object, "__len__")?);
    if !is_integer {
        return Ok(None);
    }
    let index = py.import(intern!(py, "operator"))?.call_method1(intern!(py, "index"), (object,))?;
    if let Ok(value) = index.extract::<i64>() {
        return Ok(Some(Key::from(value)));
    }
    if let Ok(value) = index.extract::<u64>() {
        return Ok(Some(Key::from(value)));
    }
    let place = position.map_or(String::new(), |position| format!(" at position {position}"));
    Err(PyOverflowError::new_err(format!("integer keys must be from -2^63 to 2^64 - 1; a larger one was given{place}")))
}

fn element(item: &Bound<'_, PyAny>, position: usize, keyer: Keyer) -> PyResult<Key> {
    if item.is_none() {
        return Err(null(position));
    }
    single(item, keyer, Some(position))?.ok_or_else(|| refuse(&type_name(item), Some(position)))
}

fn null(position: usize) -> PyErr {
    PyTypeError::new_err(format!(
        "keys must not be missing; there is a null at position {position} (drop it or fill it)"
    ))
}

fn numpy(object: &Bound<'_, PyAny>, keyer: Keyer) -> PyResult<KeyColumn> {
    let array = as_array(object, "keys")?;
    let dtype = array.dtype();
    if array.ndim() > 1 {
        let shape = array.shape();
        return Err(PyValueError::new_err(format!(
            "keys must be one-dimensional; shape {shape:?} was given (a tuple of columns makes composite keys)"
        )));
    }
    let scalar = array.ndim() == 0;
    let keys = match dtype.kind() {
        b'i' => Keys::Signed(copy_out(&array)?),
        b'u' => Keys::Unsigned(copy_out(&array)?),
        // Text, bytes and objects: one Python value after the other.
        b'U' | b'S' | b'O' | b'T' => {
            let flat = array.getattr(intern!(array.py(), "flat"))?;
            let items = flat.try_iter()?.enumerate();
            Keys::Mixed(items.map(|(position, item)| element(&item?, position, keyer)).collect::<PyResult<_>>()?)
        }
        _ if array.is_empty() && !object.is_instance_of::<PyUntypedArray>() => Keys::Mixed(Vec::new()),
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

fn arrow(array: AnyArray, keyer: Keyer) -> PyResult<KeyColumn> {
    let (chunks, _) = array.into_chunked_array()?.into_inner();
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
    // Slots of nulls hold anything: refused before they are looked at.
    if let Some(nulls) = chunk.logical_nulls().filter(|nulls| nulls.null_count() > 0) {
        let position = (0..chunk.len()).find(|&index| nulls.is_null(index)).unwrap_or(0);
        return Err(null(start + position));
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
        DataType::Dictionary(_, _) => downcast_dictionary_array!(
            chunk => {
                // Each distinct value is hashed once.
                let mut values = Vec::with_capacity(chunk.values().len());
                let nulls = chunk.values().logical_nulls().map_or(0, |nulls| nulls.null_count());
                if nulls > 0 {
                    // A dictionary may hold a null that no key points to; that is rare enough to expand it.
                    let expanded = arrow_select::take::take(chunk.values(), chunk.keys(), None)
                        .map_err(|error| PyValueError::new_err(error.to_string()))?;
                    return arrow_chunk(&expanded, keyer, start, keys);
                }
                arrow_chunk(chunk.values(), keyer, 0, &mut values)?;
                keys.extend(chunk.keys_iter().flatten().map(|index| values[index]));
            },
            other => return Err(refuse(&format!("an Arrow column of {other}"), None)),
        ),
        DataType::Null if chunk.is_empty() => {}
        other => return Err(refuse(&format!("an Arrow column of {other}"), None)),
    }
    Ok(())
}
