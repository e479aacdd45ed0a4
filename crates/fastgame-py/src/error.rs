//! The only door from core errors to Python exceptions.

use std::io::ErrorKind;

use fastgame_core::Error;
use pyo3::exceptions::{PyMemoryError, PyOSError, PyOverflowError, PyValueError};
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

/// A store's error on its way to Python.
pub(crate) struct StoreError(pub(crate) fastgame_store::Error);

impl From<StoreError> for PyErr {
    fn from(StoreError(error): StoreError) -> Self {
        use fastgame_store::Error as Stored;
        Python::attach(|py| match error {
            Stored::Structure(error) => CoreError(error).into(),
            Stored::Io { path, action, error } => {
                // Python shows the number itself.
                let shown = error.to_string();
                let reason = shown.split(" (os error ").next().unwrap_or_default();
                let message = format!("cannot {action} the store: {reason}");
                // With a number Python makes it the right kind of OSError, and it shows a path as text.
                let number = error.raw_os_error().or(of_kind(error.kind()));
                PyOSError::new_err((number, message, path.into_os_string()))
            }
            Stored::Differs { .. } => IncompatibleError(py, error),
            error => StateError(py, error),
        })
    }
}

/// The numbers of errors that the standard library makes itself.
fn of_kind(kind: ErrorKind) -> Option<i32> {
    match kind {
        ErrorKind::NotFound => Some(2),
        ErrorKind::PermissionDenied => Some(13),
        ErrorKind::AlreadyExists => Some(17),
        ErrorKind::IsADirectory => Some(21),
        _ => None,
    }
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
