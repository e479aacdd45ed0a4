//! `FrequencyProfile` and `JoinProfile`: what streams are expected to be like.

use fastgame_core::{Error, FrequencyProfile as CoreProfile, JoinProfile as CoreJoinProfile};
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyAny;

use crate::arrays::{Argument, float_parameter, floats, type_name, unsigned_parameter};
use crate::error::CoreError;

/// How often the keys of a stream are expected: what a plan needs to know how much collisions cost a sketch.
///
/// It is a public assumption. Make it of counts that are public (last year's statistics), or of Zipf's law; a profile of
/// the data that are to be protected would give them away through every choice that is based on it. Profiles compare.
///
/// Parameters
/// ----------
/// frequencies : array of numbers, any shape
///     The total weight of each key. Only absolute values matter, and zeros are no keys. Near values are put together
///     where there are more than 1,024 different ones; the second moment stays exact.
///
/// Raises
/// ------
/// ValueError, OverflowError, TypeError
///     For frequencies that are not finite, beyond 2**63, or no numbers.
#[pyclass(frozen, module = "fastgame")]
pub(crate) struct FrequencyProfile(pub(crate) CoreProfile);

/// The profile that `profile=` was given.
pub(crate) fn profile_parameter<'a, 'py>(object: &'a Bound<'py, PyAny>) -> PyResult<&'a Bound<'py, FrequencyProfile>> {
    object.cast::<FrequencyProfile>().map_err(|_| {
        PyTypeError::new_err(format!(
            "profile must be a fastgame.FrequencyProfile (of public counts, or FrequencyProfile.zipf(total=..., \
             keys=...)); {} was given",
            type_name(object)
        ))
    })
}

#[pymethods]
impl FrequencyProfile {
    #[new]
    fn new(frequencies: &Bound<'_, PyAny>) -> PyResult<Self> {
        let frequencies = floats(frequencies, "frequencies")?.values;
        Ok(Self(CoreProfile::from_frequencies(frequencies).map_err(|error| match error {
            // Core speaks of the counter that would hold it.
            Error::Overflow { .. } => {
                PyOverflowError::new_err("frequencies must be at most 2^63, and their total too; more was given")
            }
            error => CoreError(error).into(),
        })?))
    }

    /// Zipf's law: the key of rank r has frequency `total * r**-exponent / H`, with H the sum of all `r**-exponent`.
    ///
    /// Parameters
    /// ----------
    /// total : float
    ///     The sum of all frequencies: for counts, the number of updates.
    /// keys : int
    ///     How many different keys there are, 1 to 2**53.
    /// exponent : float
    ///     0 makes all keys equal; words, places and page views are near 1.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     Unless 0 < total <= 2**63 and 0 <= exponent <= 100.
    #[staticmethod]
    #[pyo3(
        signature = (*, total, keys, exponent = Argument::Absent),
        text_signature = "(*, total, keys, exponent=1.0)"
    )]
    fn zipf(total: &Bound<'_, PyAny>, keys: &Bound<'_, PyAny>, exponent: Argument<'_>) -> PyResult<Self> {
        let total = float_parameter(total, "total")?;
        let keys = unsigned_parameter(keys, "keys", "an integer from 1 to 2^53")?;
        let exponent = match exponent {
            Argument::Given(given) => float_parameter(&given, "exponent")?,
            Argument::Absent => 1.0,
        };
        Ok(Self(CoreProfile::zipf(total, keys, exponent).map_err(CoreError)?))
    }

    /// The sum of all frequencies.
    #[getter]
    fn total(&self) -> f64 {
        self.0.total()
    }

    /// The number of keys.
    #[getter]
    fn keys(&self) -> u64 {
        self.0.keys()
    }

    /// The sum of squared frequencies.
    #[getter]
    fn second_moment(&self) -> f64 {
        self.0.second_moment()
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| self.0 == other.get().0)
    }

    fn __repr__(&self) -> String {
        let (keys, total, second_moment) = (self.keys(), self.total(), self.second_moment());
        format!("<profile of {keys} keys: total={total:?}, second_moment={second_moment:.6e}>")
    }
}

/// What two relations are expected to be like: what a plan needs to know how far off the size of their join will be.
///
/// It is a public assumption, as a FrequencyProfile is. Profiles compare.
///
/// Parameters
/// ----------
/// left_moment, right_moment : float
///     The second moments: the sums of squared totals of all keys, 0 to 2**160.
/// join_size : float
///     About how large the join is: at most the square root of their product.
///
/// Raises
/// ------
/// ValueError, TypeError
///     For what no two relations have.
#[pyclass(frozen, module = "fastgame")]
pub(crate) struct JoinProfile(pub(crate) CoreJoinProfile);

/// The profile of a join that `profile=` was given.
pub(crate) fn join_profile_parameter<'a, 'py>(object: &'a Bound<'py, PyAny>) -> PyResult<&'a Bound<'py, JoinProfile>> {
    object.cast::<JoinProfile>().map_err(|_| {
        PyTypeError::new_err(format!(
            "profile must be a fastgame.JoinProfile (of second moments, or JoinProfile.uniform(...)); {} was given",
            type_name(object)
        ))
    })
}

#[pymethods]
impl JoinProfile {
    #[new]
    fn new(
        left_moment: &Bound<'_, PyAny>,
        right_moment: &Bound<'_, PyAny>,
        join_size: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        let left = float_parameter(left_moment, "left_moment")?;
        let right = float_parameter(right_moment, "right_moment")?;
        let size = float_parameter(join_size, "join_size")?;
        Ok(Self(CoreJoinProfile::new(left, right, size).map_err(CoreError)?))
    }

    /// Relations in which all keys are equally frequent: no relations with these totals and so many keys have smaller second
    /// moments, so the errors are the least to expect.
    ///
    /// Parameters
    /// ----------
    /// left_total, right_total : float
    ///     The numbers of rows, 0 to 2**80.
    /// keys : int
    ///     How many different keys there are.
    #[staticmethod]
    #[pyo3(signature = (*, left_total, right_total, keys))]
    fn uniform(
        left_total: &Bound<'_, PyAny>,
        right_total: &Bound<'_, PyAny>,
        keys: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        let left = float_parameter(left_total, "left_total")?;
        let right = float_parameter(right_total, "right_total")?;
        let keys = unsigned_parameter(keys, "keys", "an integer from 1 to 2^64 - 1")?;
        Ok(Self(CoreJoinProfile::uniform(left, right, keys).map_err(CoreError)?))
    }

    /// The second moment of the left relation.
    #[getter]
    fn left_moment(&self) -> f64 {
        self.0.moments()[0]
    }

    /// The second moment of the right relation.
    #[getter]
    fn right_moment(&self) -> f64 {
        self.0.moments()[1]
    }

    /// The size of the join.
    #[getter]
    fn join_size(&self) -> f64 {
        self.0.join_size()
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| self.0 == other.get().0)
    }

    fn __repr__(&self) -> String {
        let ([left, right], size) = (self.0.moments(), self.0.join_size());
        format!("JoinProfile(left_moment={left:?}, right_moment={right:?}, join_size={size:?})")
    }
}
