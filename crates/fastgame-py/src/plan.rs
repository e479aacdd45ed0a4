//! `Plan`: what a structure would cost, before any data.

use pyo3::prelude::*;
use pyo3::types::PyAny;

use crate::arrays::{Argument, float_parameter, unsigned_parameter};
use crate::counter::ContinualCounter;
use crate::error::CoreError;
use crate::parameters::{Blueprint, Kind, Parameters};
use crate::sketch::CountSketch;
use crate::vector::ContinualVector;

/// What a structure would cost and how far off it would be; made by the `plan` method of the structures, without data.
#[pyclass(frozen, module = "fastgame")]
pub(crate) struct Plan {
    plan: fastgame_core::Plan,
    parameters: Parameters,
}

impl Plan {
    pub(crate) fn new(parameters: Parameters) -> PyResult<Self> {
        let plan = match parameters.blueprint() {
            Blueprint::Vector(builder) => builder.plan(),
            Blueprint::Sketch(builder) => builder.plan(),
        };
        Ok(Self { plan: plan.map_err(CoreError)?, parameters })
    }
}

#[pymethods]
impl Plan {
    /// The budget for all answers together.
    #[getter]
    fn privacy(&self, py: Python<'_>) -> Py<PyAny> {
        self.parameters.privacy(py)
    }

    /// The standard deviation of the noise of a cell, the same at every step: of a release of a counter or vector.
    #[getter]
    fn noise_std(&self) -> f64 {
        self.plan.noise_std()
    }

    /// The step of the lattice on which releases lie.
    #[getter]
    fn lattice_step(&self) -> f64 {
        self.plan.lattice_step()
    }

    /// A bound on the memory in bytes, whenever the structure is read, if it is always read whole.
    #[getter]
    fn memory(&self) -> u64 {
        self.plan.memory_at_most(true)
    }

    /// Memory in bytes before anything is read.
    #[getter]
    fn memory_at_start(&self) -> u64 {
        self.plan.memory_at_start()
    }

    /// A bound on the memory in bytes, whatever is read and when.
    #[getter]
    fn memory_one_by_one(&self) -> u64 {
        self.plan.memory_at_most(false)
    }

    /// The error that `releases` given releases all stay within with probability `confidence` (or more: union bound).
    /// Of a sketch: the error of estimates by noise alone; keys that collide add to it.
    ///
    /// Raises ValueError unless 0 < confidence < 1 and releases >= 1.
    #[pyo3(
        signature = (confidence = Argument::Absent, releases = Argument::Absent),
        text_signature = "($self, confidence=0.95, releases=1)"
    )]
    fn error(&self, confidence: Argument<'_>, releases: Argument<'_>) -> PyResult<f64> {
        let confidence = match confidence {
            Argument::Given(given) => float_parameter(&given, "confidence")?,
            Argument::Absent => 0.95,
        };
        let releases = match releases {
            Argument::Given(given) => unsigned_parameter(&given, "releases", "an integer from 1 to 2^64 - 1")?,
            Argument::Absent => 1,
        };
        Ok(self.plan.error(confidence, releases).map_err(CoreError)?)
    }

    /// Builds the structure.
    fn build(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let parameters = self.parameters.clone();
        Ok(match parameters.kind() {
            Kind::Counter => Py::new(py, ContinualCounter::build(parameters)?)?.into_any(),
            Kind::Vector => Py::new(py, ContinualVector::build(parameters)?)?.into_any(),
            Kind::Sketch => Py::new(py, CountSketch::build(parameters)?)?.into_any(),
        })
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("<plan of {}: noise_std={:.6}>", self.parameters.describe(py)?, self.plan.noise_std()))
    }
}
