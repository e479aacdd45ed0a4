//! The only door from core errors to Python exceptions.

use fastgame_core::Error;
use pyo3::exceptions::{PyMemoryError, PyOverflowError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

/// The exception classes that `fastgame._errors` defines; they have two bases each, which Python can say and
/// the binding layer cannot.
macro_rules! exceptions {
    ($($name:ident)*) => {$(
        #[allow(non_snake_case)]
        pub(crate) fn $name(py: Python<'_>, message: impl ToString) -> PyErr {
            static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
            match CLASS.import(py, "fastgame._errors", stringify!($name)) {
                Ok(class) => PyErr::from_type(class.clone(), message.to_string()),
                Err(error) => error,
            }
        }
    )*};
}

exceptions! { HorizonError SealedStepError CopyError EntropyError IncompatibleError StateError }

/// The operating system gave no randomness.
pub(crate) fn no_entropy(error: &getrandom::Error) -> PyErr {
    Python::attach(|py| {
        EntropyError(py, format!("the operating system gave no randomness, so nothing was built: {error}"))
    })
}

/// A core error on its way to Python.
pub(crate) struct CoreError(pub(crate) Error);

impl From<Error> for CoreError {
    fn from(error: Error) -> Self {
        Self(error)
    }
}

impl From<CoreError> for PyErr {
    fn from(CoreError(error): CoreError) -> Self {
        Python::attach(|py| match error {
            Error::Time { .. } => HorizonError(py, error),
            Error::Sealed { .. } => SealedStepError(py, error),
            Error::Entropy => EntropyError(py, error),
            Error::Memory => PyMemoryError::new_err(error.to_string()),
            Error::Incompatible { .. } => IncompatibleError(py, error),
            Error::Overflow { .. } => PyOverflowError::new_err(error.to_string()),
            _ => PyValueError::new_err(error.to_string()),
        })
    }
}
