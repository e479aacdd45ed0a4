//! Structures in stores: what `fastgame.open` and `fastgame.inspect` are made of. Which parameters a stored structure has, and
//! whether those that are given fit, is decided in `fastgame/_store.py`.

use std::io::ErrorKind;
use std::path::PathBuf;

use fastgame_store::{Error, Options, Store, Sync};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::counter::ContinualCounter;
use crate::error::{StoreError, no_entropy};
use crate::join::JoinSize;
use crate::parameters::{Kind, Parameters};
use crate::range::RangeCounter;
use crate::sketch::CountSketch;
use crate::structure::{Live, Structure};
use crate::vector::ContinualVector;

/// The Python object of a structure.
pub(crate) fn object(py: Python<'_>, structure: Structure) -> PyResult<Py<PyAny>> {
    Ok(match structure.parameters().kind() {
        Kind::Counter => Py::new(py, ContinualCounter::around(structure)?)?.into_any(),
        Kind::Vector => Py::new(py, ContinualVector::around(structure)?)?.into_any(),
        Kind::Sketch => Py::new(py, CountSketch::around(structure)?)?.into_any(),
        Kind::Range => Py::new(py, RangeCounter::around(structure)?)?.into_any(),
        Kind::Join => Py::new(py, JoinSize::around(structure)?)?.into_any(),
    })
}

/// The parameters of the structure of a name.
fn parameters(name: &str, keywords: &Bound<'_, PyDict>) -> PyResult<Parameters> {
    let kinds = [Kind::Counter, Kind::Vector, Kind::Sketch, Kind::Range, Kind::Join];
    match kinds.into_iter().find(|kind| kind.name() == name) {
        // What is taken out of them is not taken from the caller.
        Some(kind) => Parameters::of_kind(kind, &keywords.copy()?),
        None => Err(PyValueError::new_err(format!("there is no structure {name:?}"))),
    }
}

/// All parameters of a structure, as they are stored: those that are given and the others by default.
#[pyfunction]
pub(crate) fn _keywords<'py>(
    py: Python<'py>,
    name: &str,
    keywords: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyDict>> {
    parameters(name, keywords)?.keywords(py)
}

/// Errors on both sides of the border.
enum Failure {
    Store(Error),
    Python(PyErr),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Store(error) => StoreError(error).into(),
            Failure::Python(error) => error,
        }
    }
}

/// Opens a store or makes one. `stored(words)` gives the name and the keywords of the structure that is stored under these words;
/// `made()` those of one to be made, with its words.
#[pyfunction]
pub(crate) fn _open(
    py: Python<'_>,
    path: PathBuf,
    sync_reads: bool,
    expect_generation: Option<u64>,
    stored: Py<PyAny>,
    made: Py<PyAny>,
) -> PyResult<Py<PyAny>> {
    let sync = if sync_reads { Sync::Reads } else { Sync::Always };
    let options = Options { sync, expect_generation };
    // Another process may make the file, or take it away, in between.
    let mut tries = 8;
    let structure = loop {
        tries -= 1;
        let mut found = None;
        let opened = py.detach(|| {
            Store::open(&path, options, |parameters| {
                let built = Python::attach(|py| {
                    let (name, keywords): (String, Bound<'_, PyDict>) =
                        stored.bind(py).call1((&parameters.face,))?.extract()?;
                    let parameters = self::parameters(&name, &keywords)?;
                    let live = Live::new(&parameters)?;
                    found = Some(parameters);
                    Ok(live)
                });
                built.map_err(Failure::Python)
            })
        });
        match (opened, found) {
            (Ok(mut store), Some(parameters)) => {
                let calls = store.generation();
                store.state_mut().skip_streams(calls);
                break Structure::durable(parameters, store);
            }
            (Err(Failure::Store(Error::Io { error, .. })), _) if error.kind() == ErrorKind::NotFound && tries > 0 => {}
            (Err(failure), _) => return Err(failure.into()),
            (Ok(_), None) => return Err(PyValueError::new_err("the store has no parameters")),
        }
        let (name, keywords, words): (String, Bound<'_, PyDict>, String) = made.bind(py).call0()?.extract()?;
        let parameters = self::parameters(&name, &keywords)?;
        let live = Live::new(&parameters)?;
        let mut identity = [0; 16];
        getrandom::fill(&mut identity).map_err(|error| no_entropy(&error))?;
        match py.detach(|| Store::create(&path, options, identity, live, &words)) {
            Ok(store) => break Structure::durable(parameters, store),
            Err(Error::Io { error, .. }) if error.kind() == ErrorKind::AlreadyExists && tries > 0 => {}
            Err(error) => return Err(StoreError(error).into()),
        }
    };
    object(py, structure)
}

/// What may be shown of a store: its words, version, generation, step, whether that was read, and bytes of the image, the
/// journal and a call at the end that was not acknowledged.
#[pyfunction]
#[expect(clippy::type_complexity, reason = "taken apart at once")]
pub(crate) fn _inspect(
    py: Python<'_>,
    path: PathBuf,
) -> PyResult<(String, Vec<(String, String)>, u32, u64, u64, bool, [u64; 2], u64)> {
    let found = py.detach(|| fastgame_store::inspect(&path)).map_err(StoreError)?;
    let fastgame_store::Overview { parameters, version, generation, now, sealed, bytes, lost } = found;
    Ok((parameters.face, parameters.values, version, generation, now, sealed, bytes, lost))
}
