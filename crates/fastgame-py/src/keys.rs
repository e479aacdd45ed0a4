//! The only door from Python's keys to the core's: numbers, text, bytes, numpy arrays, anything with the Arrow C
//! interface, and tuples of columns for composite keys.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, downcast_dictionary_array, new_empty_array};
use arrow_schema::DataType;
use fastgame_core::{Key, Keyer};
use numpy::{IntoPyArray, PyArrayDescr, PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::basic::CompareOp;
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

use crate::arrays::{
    as_array, as_objects, copy_out, index, is_numpy_bool, is_numpy_float, is_numpy_integer, sequence_list, type_name,
    with_room,
};

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

    /// Those that do not stand at these places, which rise.
    pub(crate) fn without(self, places: &[usize]) -> Self {
        match self {
            Self::Unsigned(keys) => Self::Unsigned(without(keys, places)),
            Self::Signed(keys) => Self::Signed(without(keys, places)),
            Self::Mixed(keys) => Self::Mixed(without(keys, places)),
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

/// The elements that do not stand at these places, which rise.
pub(crate) fn without<T>(mut elements: Vec<T>, places: &[usize]) -> Vec<T> {
    let (mut place, mut next) = (0, places.iter().copied().peekable());
    elements.retain(|_| {
        place += 1;
        next.next_if_eq(&(place - 1)).is_none()
    });
    elements
}

/// Keys, and whether they were given as a single one.
pub(crate) struct KeyColumn {
    pub(crate) keys: Keys,
    pub(crate) scalar: bool,
    /// Where what was given is no key, rising: something else stands there among the keys. Empty unless that is dropped.
    pub(crate) bad: Vec<usize>,
}

const ALLOWED: &str = "integers, str, bytes, columns of them, or a tuple of columns for composite keys";

/// Where a bad key stands; a single key stands nowhere.
fn at(position: Option<usize>) -> String {
    position.map_or(String::new(), |position| format!(" at position {position}"))
}

fn refuse(what: &str, position: Option<usize>) -> PyErr {
    PyTypeError::new_err(format!("keys must be {ALLOWED}; {what} was given{}", at(position)))
}

/// Why one element is no key. It decides over itself alone, unlike what is wrong with a whole column.
#[derive(Clone)]
enum NoKey {
    Missing,
    /// A float that is no whole number, or so large that its neighbours are the same float.
    NotWhole,
    Beyond,
    Surrogate,
    Bool,
    /// Of this type.
    Other(String),
}

impl NoKey {
    fn error(&self, position: Option<usize>) -> PyErr {
        let place = at(position);
        match self {
            Self::Missing => {
                let what = format!("keys must not be missing; there is a null{place} (drop it or fill it)");
                PyTypeError::new_err(what)
            }
            Self::NotWhole => PyTypeError::new_err(format!(
                "keys in floats must be whole numbers that a float tells from their neighbours (below 2^53, of 32 bits \
                 below 2^24, of 16 bits below 2^11); another float was given{place} (a column of nullable integers, as \
                 of pandas Int64, keeps ids exact)"
            )),
            Self::Beyond => PyOverflowError::new_err(format!(
                "integer keys must be from -2^63 to 2^64 - 1; one beyond was given{place}"
            )),
            Self::Surrogate => {
                PyValueError::new_err(format!("text keys must have a UTF-8 form; a lone surrogate was given{place}"))
            }
            Self::Bool => refuse("a bool", position),
            Self::Other(kind) => refuse(kind, position),
        }
    }
}

type Found = Result<Key, NoKey>;

/// How keys are read: by which keyer, and whether what is no key is left out.
#[derive(Clone, Copy)]
struct Reading {
    keyer: Keyer,
    drops: bool,
}

/// What takes keys one after the other.
trait Take {
    fn take(&mut self, found: Found) -> PyResult<()>;

    /// How many were taken.
    fn count(&self) -> usize;
}

/// Keys that are read one by one.
struct Column {
    keys: Vec<Key>,
    bad: Vec<usize>,
    drops: bool,
}

impl Column {
    fn new(keys: Vec<Key>, reading: Reading) -> Self {
        Self { keys, bad: Vec::new(), drops: reading.drops }
    }

    fn finish(self) -> KeyColumn {
        KeyColumn { keys: Keys::Mixed(self.keys), scalar: false, bad: self.bad }
    }
}

impl Take for Column {
    fn take(&mut self, found: Found) -> PyResult<()> {
        let position = self.keys.len();
        self.keys.push(match found {
            Ok(key) => key,
            Err(_) if self.drops => {
                self.bad.push(position);
                Key::from(0u64)
            }
            Err(no_key) => return Err(no_key.error(Some(position))),
        });
        Ok(())
    }

    fn count(&self) -> usize {
        self.keys.len()
    }
}

/// The values of a dictionary: what is wrong with one is told where a row points to it.
impl Take for Vec<Found> {
    fn take(&mut self, found: Found) -> PyResult<()> {
        self.push(found);
        Ok(())
    }

    fn count(&self) -> usize {
        self.len()
    }
}

/// Keys of any kind; what is no key is an error.
pub(crate) fn keys(object: &Bound<'_, PyAny>, keyer: Keyer) -> PyResult<KeyColumn> {
    read(object, Reading { keyer, drops: false })
}

/// Keys of updates: what is no key is an error, or said to be bad if such are dropped.
pub(crate) fn keys_or_bad(object: &Bound<'_, PyAny>, keyer: Keyer, drops: bool) -> PyResult<KeyColumn> {
    read(object, Reading { keyer, drops })
}

fn read(object: &Bound<'_, PyAny>, reading: Reading) -> PyResult<KeyColumn> {
    // The common ones first: what follows asks a small batch more than its keys take.
    if let Ok(array) = object.cast_exact::<PyUntypedArray>() {
        return numpy(object, array, reading);
    }
    if let Ok(list) = object.cast_exact::<PyList>() {
        return one_by_one(list, reading);
    }
    if let Ok(columns) = object.cast::<PyTuple>() {
        return composite(columns, reading);
    }
    if let Some(found) = single(object, reading.keyer)? {
        return alone(found, reading);
    }
    if let Ok(list) = object.cast::<PyList>() {
        return one_by_one(list, reading);
    }
    if object.is_instance_of::<PyByteArray>() || object.is_instance_of::<PyMemoryView>() {
        // One key or a column of small integers? Both have been meant.
        let what = format!("a {} (bytes(...) makes a key of it, numpy.asarray(...) a column)", type_name(object));
        return Err(refuse(&what, None));
    }
    if !holds_objects(object)? && (has(object, "__arrow_c_stream__")? || has(object, "__arrow_c_array__")?) {
        let py = object.py();
        let failed = match object.extract::<AnyArray>().and_then(|array| Ok(array.into_chunked_array()?)) {
            Ok(array) => return arrow(array, reading),
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
            // Nullable integers, of which pandas makes floats if one is missing: the others would be rounded.
            Ok(array) if array.dtype().kind() == b'f' && !has_numpy_type(object)? => {
                numpy(object, &as_objects(object)?, reading)
            }
            Ok(array) => numpy(object, &array, reading),
            Err(_) => Err(refuse(&format!("a column that cannot be read ({})", failed.value(py)), None)),
        };
    }
    if !object.is_instance_of::<PyRange>()
        && !has(object, "__array__")?
        && let Some(list) = sequence_list(object, "keys")?
    {
        // Numpy would find one type for all, in which 1 and "1" are the same.
        return one_by_one(&list, reading);
    }
    numpy(object, &as_array(object, "keys")?, reading)
}

fn one_by_one(list: &Bound<'_, PyList>, reading: Reading) -> PyResult<KeyColumn> {
    let mut column = Column::new(Vec::with_capacity(list.len()), reading);
    for item in list {
        column.take(element(&item, reading.keyer)?)?;
    }
    Ok(column.finish())
}

/// A single key, or what stands for one in a row.
fn alone(found: Found, reading: Reading) -> PyResult<KeyColumn> {
    match found {
        Ok(key) => Ok(KeyColumn { keys: Keys::Mixed(vec![key]), scalar: true, bad: Vec::new() }),
        Err(_) if reading.drops => {
            Ok(KeyColumn { keys: Keys::Mixed(vec![Key::from(0u64)]), scalar: true, bad: vec![0] })
        }
        Err(no_key) => Err(no_key.error(None)),
    }
}

/// Whether an object may be the field of a row, although it is no key: a number, a time. Anything else in a column's
/// place is a mistake of the caller's, not of a row.
fn is_field(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = object.py();
    let kind = object.get_type();
    let of = |module: &str, name: &str| kind.is_subclass(&py.import(module)?.getattr(name)?);
    Ok(of("numpy", "generic")?
        || of("numbers", "Number")?
        || of("datetime", "date")?
        || of("datetime", "time")?
        || of("datetime", "timedelta")?)
}

/// Whether the type of a column's elements is one of numpy's.
fn has_numpy_type(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let dtype = object.getattr_opt(intern!(object.py(), "dtype"))?;
    Ok(dtype.is_none_or(|dtype| dtype.cast::<PyArrayDescr>().is_ok()))
}

/// The integer that a float is, if no other integer of its size is the same float.
fn whole(value: f64, digits: u32) -> Result<i64, NoKey> {
    if value.is_nan() {
        Err(NoKey::Missing)
    } else if value.abs() < (1u64 << digits) as f64 && value.trunc() == value {
        Ok(value as i64)
    } else {
        Err(NoKey::NotWhole)
    }
}

/// The binary digits of floats of so many bytes; what has more is read as one of eight.
fn digits(bytes: usize) -> u32 {
    match bytes {
        2 => 11,
        4 => 24,
        _ => 53,
    }
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

/// The key of one Python value; None for what is neither a key nor a bool or float.
fn single(object: &Bound<'_, PyAny>, keyer: Keyer) -> PyResult<Option<Found>> {
    let py = object.py();
    let is_plain_integer = object.is_exact_instance_of::<PyInt>();
    if is_plain_integer && let Ok(value) = object.extract::<i64>() {
        return Ok(Some(Ok(Key::from(value))));
    }
    if let Ok(text) = object.cast::<PyString>() {
        return match text.to_cow() {
            Ok(text) => Ok(Some(Ok(keyer.text(&text)))),
            Err(error) if error.is_instance_of::<PyUnicodeEncodeError>(py) => Ok(Some(Err(NoKey::Surrogate))),
            Err(error) => Err(error),
        };
    }
    if let Ok(bytes) = object.cast::<PyBytes>() {
        return Ok(Some(Ok(keyer.bytes(bytes.as_bytes()))));
    }
    if let Ok(number) = object.cast::<PyFloat>() {
        // Numpy's of eight bytes too.
        return Ok(Some(whole(number.value(), 53).map(Key::from)));
    }
    if !is_plain_integer && !is_numpy_integer(object)? {
        if object.is_instance_of::<PyBool>() || is_numpy_bool(object)? {
            return Ok(Some(Err(NoKey::Bool)));
        }
        if is_numpy_float(object)? {
            return numpy_float(object).map(|found| Some(found.map(Key::from)));
        }
        // Arrow's scalars.
        if has(object, "as_py")? {
            let value = object.call_method0(intern!(py, "as_py"))?;
            // Plain by now, or it would never end.
            if has(&value, "as_py")? {
                return Ok(Some(Err(NoKey::Other(type_name(&value)))));
            }
            if let Ok(number) = value.cast::<PyFloat>() {
                let bits = object.getattr_opt(intern!(py, "type"))?;
                let bits = bits.map(|kind| kind.getattr_opt(intern!(py, "bit_width"))).transpose()?.flatten();
                let bits: usize = bits.map_or(Ok(64), |bits| bits.extract())?;
                return Ok(Some(whole(number.value(), digits(bits / 8)).map(Key::from)));
            }
            return element(&value, keyer).map(Some);
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
        return Ok(Some(Ok(Key::from(value))));
    }
    if let Ok(value) = index.extract::<u64>() {
        return Ok(Some(Ok(Key::from(value))));
    }
    Ok(Some(Err(NoKey::Beyond)))
}

/// The integer that one of numpy's floats is.
fn numpy_float(object: &Bound<'_, PyAny>) -> PyResult<Result<i64, NoKey>> {
    let py = object.py();
    let bytes: usize = object.getattr(intern!(py, "itemsize"))?.extract()?;
    let value: f64 = object.call_method0(intern!(py, "__float__"))?.extract()?;
    // Of a longer one a fraction may be lost on the way.
    let found = if bytes > 8 && !value.is_nan() && !object.eq(value)? {
        Err(NoKey::NotWhole)
    } else {
        whole(value, digits(bytes))
    };
    Ok(found)
}

/// A key that stands by itself or in a column; here missing values are told from what is no key at all.
fn element(item: &Bound<'_, PyAny>, keyer: Keyer) -> PyResult<Found> {
    if let Some(found) = single(item, keyer)? {
        return Ok(found);
    }
    let name = type_name(item);
    // The last two are those of pandas.
    let is_missing = item.is_none() || name == "NAType" || name == "NaTType";
    Ok(Err(if is_missing { NoKey::Missing } else { NoKey::Other(name) }))
}

/// Keys of `array`, which numpy made of `object`.
fn numpy(object: &Bound<'_, PyAny>, array: &Bound<'_, PyUntypedArray>, reading: Reading) -> PyResult<KeyColumn> {
    let py = array.py();
    let dtype = array.dtype();
    if array.ndim() > 1 {
        let shape = array.shape();
        return Err(PyValueError::new_err(format!(
            "keys must be one-dimensional; shape {shape:?} was given (a tuple of columns makes composite keys)"
        )));
    }
    if array.ndim() == 0 {
        let item = array.get_item(PyTuple::empty(py))?;
        let found = element(&item, reading.keyer)?;
        let stray = matches!(found, Err(NoKey::Other(_))) && reading.drops && !is_field(&item)?;
        return alone(found, Reading { drops: reading.drops && !stray, ..reading });
    }
    let plain = |keys| KeyColumn { keys, scalar: false, bad: Vec::new() };
    match dtype.kind() {
        b'i' => Ok(plain(Keys::Signed(copy_out(array)?))),
        b'u' => Ok(plain(Keys::Unsigned(copy_out(array)?))),
        // An empty list has no type to speak of.
        b'f' if !array.is_empty() || object.is_instance_of::<PyUntypedArray>() => numpy_floats(array, reading),
        // Lists are made several times as fast as numpy's scalars. A piece at a time: they are large.
        b'U' | b'S' => {
            let mut column = Column::new(with_room(array.len())?, reading);
            while column.keys.len() < array.len() {
                let start = column.keys.len() as isize;
                let piece = array.get_item(PySlice::new(py, start, start + 4096, 1))?;
                for item in piece.call_method0(intern!(py, "tolist"))?.cast_into::<PyList>()? {
                    column.take(element(&item, reading.keyer)?)?;
                }
            }
            Ok(column.finish())
        }
        // Text of any length and objects: one Python value after the other.
        b'O' | b'T' => {
            let mut column = Column::new(with_room(array.len())?, reading);
            for item in array.getattr(intern!(py, "flat"))?.try_iter()? {
                column.take(element(&item?, reading.keyer)?)?;
            }
            Ok(column.finish())
        }
        _ if array.is_empty() && !object.is_instance_of::<PyUntypedArray>() => Ok(plain(Keys::Mixed(Vec::new()))),
        _ => Err(refuse(&format!("an array of {dtype}"), None)),
    }
}

/// Keys of whole numbers in floats.
fn numpy_floats(array: &Bound<'_, PyUntypedArray>, reading: Reading) -> PyResult<KeyColumn> {
    let py = array.py();
    let bytes = array.dtype().itemsize();
    let mut values: Vec<f64> = copy_out(array)?;
    if bytes > size_of::<f64>() {
        // Those from which the copy took something.
        let copy = values.clone().into_pyarray(py);
        let kept: Vec<bool> = copy_out(array.rich_compare(copy, CompareOp::Eq)?.cast::<PyUntypedArray>()?)?;
        // Infinity is no key.
        values
            .iter_mut()
            .zip(kept)
            .filter(|(value, kept)| !kept && !value.is_nan())
            .for_each(|(value, _)| *value = f64::INFINITY);
    }
    let (digits, mut bad) = (digits(bytes), Vec::new());
    let mut keys = with_room(values.len())?;
    for (position, &value) in values.iter().enumerate() {
        keys.push(match whole(value, digits) {
            Ok(key) => key,
            Err(_) if reading.drops => {
                bad.push(position);
                0
            }
            Err(no_key) => return Err(no_key.error(Some(position))),
        });
    }
    Ok(KeyColumn { keys: Keys::Signed(keys), scalar: false, bad })
}

/// One key for each row of several columns; single values stand for every row. A row is bad if a part of it is.
fn composite(columns: &Bound<'_, PyTuple>, reading: Reading) -> PyResult<KeyColumn> {
    if columns.is_empty() {
        return Err(PyValueError::new_err("a composite key must have at least one part; an empty tuple was given"));
    }
    let mut parts = Vec::with_capacity(columns.len());
    for column in columns {
        if column.is_instance_of::<PyTuple>() {
            return Err(refuse("a tuple inside of a tuple", None));
        }
        let KeyColumn { keys, scalar, bad } = read(&column, reading)?;
        parts.push((keys.into_mixed(), scalar, bad));
    }
    let lengths: Vec<usize> = parts.iter().filter(|(_, scalar, _)| !scalar).map(|(keys, ..)| keys.len()).collect();
    let rows = lengths.first().copied().unwrap_or(1);
    if lengths.iter().any(|&length| length != rows) {
        return Err(PyValueError::new_err(format!(
            "the columns of composite keys must have one length; {lengths:?} were given"
        )));
    }
    let row = |index: usize| {
        let parts = parts.iter().map(|(keys, scalar, _)| keys[if *scalar { 0 } else { index }]);
        reading.keyer.composite(parts)
    };
    let keys = Keys::Mixed((0..rows).map(row).collect());
    let mut bad: Vec<usize> = Vec::new();
    for (_, scalar, places) in &parts {
        if *scalar && !places.is_empty() {
            bad.extend(0..rows);
        } else {
            bad.extend(places);
        }
    }
    bad.sort_unstable();
    bad.dedup();
    Ok(KeyColumn { keys, scalar: lengths.is_empty(), bad })
}

fn arrow(array: PyChunkedArray, reading: Reading) -> PyResult<KeyColumn> {
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
    let mut column = Column::new(Vec::with_capacity(chunks.iter().map(|chunk| chunk.len()).sum()), reading);
    for chunk in &chunks {
        arrow_chunk(chunk, reading.keyer, &mut column)?;
    }
    Ok(column.finish())
}

fn arrow_chunk(chunk: &ArrayRef, keyer: Keyer, out: &mut impl Take) -> PyResult<()> {
    fn each<T>(
        values: impl IntoIterator<Item = Option<T>>,
        out: &mut impl Take,
        key: impl Fn(T) -> Found,
    ) -> PyResult<()> {
        values.into_iter().try_for_each(|value| out.take(value.map_or(Err(NoKey::Missing), &key)))
    }
    fn integers<T: ArrowPrimitiveType>(
        chunk: &ArrayRef,
        out: &mut impl Take,
        key: impl Fn(T::Native) -> Key,
    ) -> PyResult<()> {
        let chunk = chunk.as_primitive::<T>();
        if chunk.null_count() > 0 {
            return each(chunk, out, |value| Ok(key(value)));
        }
        chunk.values().iter().try_for_each(|&value| out.take(Ok(key(value))))
    }
    fn floats<T: ArrowPrimitiveType<Native: Into<f64>>>(chunk: &ArrayRef, out: &mut impl Take) -> PyResult<()> {
        let digits = digits(size_of::<T::Native>());
        each(chunk.as_primitive::<T>(), out, |value| whole(value.into(), digits).map(Key::from))
    }
    let text = |text: &str| Ok(keyer.text(text));
    let bytes = |bytes: &[u8]| Ok(keyer.bytes(bytes));
    match chunk.data_type() {
        DataType::Dictionary(_, _) => arrow_dictionary(chunk, keyer, out),
        DataType::Int8 => integers::<Int8Type>(chunk, out, |value| i64::from(value).into()),
        DataType::Int16 => integers::<Int16Type>(chunk, out, |value| i64::from(value).into()),
        DataType::Int32 => integers::<Int32Type>(chunk, out, |value| i64::from(value).into()),
        DataType::Int64 => integers::<Int64Type>(chunk, out, Key::from),
        DataType::UInt8 => integers::<UInt8Type>(chunk, out, |value| u64::from(value).into()),
        DataType::UInt16 => integers::<UInt16Type>(chunk, out, |value| u64::from(value).into()),
        DataType::UInt32 => integers::<UInt32Type>(chunk, out, |value| u64::from(value).into()),
        DataType::UInt64 => integers::<UInt64Type>(chunk, out, Key::from),
        DataType::Float16 => floats::<Float16Type>(chunk, out),
        DataType::Float32 => floats::<Float32Type>(chunk, out),
        DataType::Float64 => floats::<Float64Type>(chunk, out),
        DataType::Utf8 => each(chunk.as_string::<i32>(), out, text),
        DataType::LargeUtf8 => each(chunk.as_string::<i64>(), out, text),
        DataType::Utf8View => each(chunk.as_string_view(), out, text),
        DataType::Binary => each(chunk.as_binary::<i32>(), out, bytes),
        DataType::LargeBinary => each(chunk.as_binary::<i64>(), out, bytes),
        DataType::BinaryView => each(chunk.as_binary_view(), out, bytes),
        DataType::FixedSizeBinary(_) => each(chunk.as_fixed_size_binary(), out, bytes),
        DataType::Null => (0..chunk.len()).try_for_each(|_| out.take(Err(NoKey::Missing))),
        other => Err(refuse(&format!("an Arrow column of {other}"), None)),
    }
}

/// Each distinct value is hashed once.
fn arrow_dictionary(chunk: &ArrayRef, keyer: Keyer, out: &mut impl Take) -> PyResult<()> {
    downcast_dictionary_array!(
        chunk => {
            let mut values: Vec<Found> = Vec::with_capacity(chunk.values().len());
            arrow_chunk(chunk.values(), keyer, &mut values)?;
            for index in chunk.keys_iter() {
                let found = match index {
                    None => Err(NoKey::Missing),
                    // Arrow's interface does not check them.
                    Some(index) => values.get(index).cloned().ok_or_else(|| {
                        let position = out.count();
                        let what = format!("keys must be valid; a dictionary has no value for position {position}");
                        PyValueError::new_err(what)
                    })?,
                };
                out.take(found)?;
            }
            Ok(())
        },
        other => Err(refuse(&format!("an Arrow column of {other}"), None)),
    )
}
