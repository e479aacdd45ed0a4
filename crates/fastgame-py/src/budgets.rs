//! Budgets as Python values: they may be compared, hashed, copied and pickled.

use fastgame_core::{ApproxDp as CoreApproxDp, Gdp as CoreGdp, Loss, Zcdp as CoreZcdp};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::pyclass_init::PyClassInitializer as Init;
use pyo3::types::{IntoPyDict, PyDict, PyTuple};

use crate::arrays::float_parameter;
use crate::error::CoreError;
use crate::structure::Structure;

/// A privacy budget: what all answers of a structure together may reveal about one unit.
///
/// Base class of Zcdp, Gdp and ApproxDp; not made directly. A budget is an immutable value: budgets compare,
/// hash, copy and pickle. All conversions are exact for Gaussian noise, which is what every structure adds.
#[pyclass(frozen, subclass, module = "fastgame")]
pub(crate) struct Budget {
    loss: Loss,
    /// The same, as what adds up.
    zcdp: CoreZcdp,
    kind: &'static str,
    /// The parameters that the budget was given in.
    fields: Vec<(&'static str, f64)>,
}

impl Budget {
    fn new(loss: Loss, rho: f64, kind: &'static str, fields: Vec<(&'static str, f64)>) -> PyResult<Self> {
        Ok(Self { loss, zcdp: CoreZcdp::new(rho).map_err(CoreError)?, kind, fields })
    }

    pub(crate) fn loss(&self) -> Loss {
        self.loss
    }
}

#[pymethods]
impl Budget {
    /// The zero-concentrated privacy loss rho = mu**2 / 2 (Bun and Steinke, 2016).
    #[getter]
    fn rho(&self) -> f64 {
        self.zcdp.rho()
    }

    /// The Gaussian privacy loss: the largest shift between neighbours, in standard deviations of the noise.
    #[getter]
    fn mu(&self) -> f64 {
        self.loss.mu()
    }

    /// The smallest epsilon at this delta, from the exact curve of the Gaussian mechanism.
    ///
    /// Raises ValueError unless 0 < delta < 1.
    fn epsilon(&self, delta: &Bound<'_, PyAny>) -> PyResult<f64> {
        Ok(self.loss.epsilon(float_parameter(delta, "delta")?).map_err(CoreError)?)
    }

    /// The smallest delta at this epsilon, from the exact curve of the Gaussian mechanism.
    ///
    /// Raises ValueError unless epsilon is finite and at least 0.
    fn delta(&self, epsilon: &Bound<'_, PyAny>) -> PyResult<f64> {
        Ok(self.loss.delta(float_parameter(epsilon, "epsilon")?).map_err(CoreError)?)
    }

    /// Divides the budget: a tuple of Zcdp, one for each part, with that fraction of rho.
    ///
    /// Raises ValueError if a part is not positive, or the parts sum to more than 1.
    #[pyo3(signature = (*parts))]
    fn split<'py>(&self, py: Python<'py>, parts: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyTuple>> {
        let parts: Vec<f64> = parts.iter().map(|part| float_parameter(&part, "a part")).collect::<PyResult<_>>()?;
        let shares = self.zcdp.split(&parts).map_err(CoreError)?;
        let shares: Vec<_> = shares.into_iter().map(|share| Zcdp::make(py, share)).collect::<PyResult<_>>()?;
        PyTuple::new(py, shares)
    }

    fn __add__(&self, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let py = other.py();
        let Ok(other) = other.cast::<Self>() else { return Ok(py.NotImplemented()) };
        Ok(Zcdp::make(py, self.zcdp.compose(other.get().zcdp).map_err(CoreError)?)?.into_any())
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| self.kind == other.get().kind && self.fields == other.get().fields)
    }

    fn __hash__(&self) -> u64 {
        self.fields.iter().fold(self.kind.len() as u64, |hash, (_, field)| hash.rotate_left(23) ^ field.to_bits())
    }

    fn __repr__(&self) -> String {
        let fields: Vec<String> = self.fields.iter().map(|(name, field)| format!("{name}={field:?}")).collect();
        format!("{}({})", self.kind, fields.join(", "))
    }

    fn __getnewargs_ex__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyTuple>, Bound<'py, PyDict>)> {
        Ok((PyTuple::empty(py), self.fields.clone().into_py_dict(py)?))
    }
}

/// rho-zero-concentrated differential privacy (Bun and Steinke, 2016).
///
/// Parameters
/// ----------
/// rho : float
///     The loss, positive and finite. Losses of several releases add up.
#[pyclass(frozen, extends = Budget, module = "fastgame")]
pub(crate) struct Zcdp;

impl Zcdp {
    fn base(budget: CoreZcdp) -> PyResult<Init<Self>> {
        let base = Budget::new(budget.into(), budget.rho(), "Zcdp", vec![("rho", budget.rho())])?;
        Ok(Init::from(base).add_subclass(Self))
    }

    fn make(py: Python<'_>, budget: CoreZcdp) -> PyResult<Py<Self>> {
        Py::new(py, Self::base(budget)?)
    }
}

#[pymethods]
impl Zcdp {
    #[new]
    #[pyo3(signature = (rho))]
    fn new(rho: &Bound<'_, PyAny>) -> PyResult<Init<Self>> {
        Self::base(CoreZcdp::new(float_parameter(rho, "rho")?).map_err(CoreError)?)
    }
}

/// mu-Gaussian differential privacy (Dong, Roth and Su, 2022).
///
/// Parameters
/// ----------
/// mu : float
///     The loss, positive and finite: telling neighbours apart is as hard as telling N(0, 1) from N(mu, 1).
#[pyclass(frozen, extends = Budget, module = "fastgame")]
pub(crate) struct Gdp;

#[pymethods]
impl Gdp {
    #[new]
    #[pyo3(signature = (mu))]
    fn new(mu: &Bound<'_, PyAny>) -> PyResult<Init<Self>> {
        let budget = CoreGdp::new(float_parameter(mu, "mu")?).map_err(CoreError)?;
        let base = Budget::new(budget.into(), budget.rho(), "Gdp", vec![("mu", budget.mu())])?;
        Ok(Init::from(base).add_subclass(Self))
    }
}

/// (epsilon, delta)-differential privacy, spent on Gaussian noise.
///
/// The noise is the least whose exact curve passes through (epsilon, delta).
///
/// Parameters
/// ----------
/// epsilon : float
///     At least 0.
/// delta : float
///     More than 0 and less than 1.
#[pyclass(frozen, extends = Budget, module = "fastgame")]
pub(crate) struct ApproxDp(CoreApproxDp);

#[pymethods]
impl ApproxDp {
    #[new]
    #[pyo3(signature = (epsilon, delta))]
    fn new(epsilon: &Bound<'_, PyAny>, delta: &Bound<'_, PyAny>) -> PyResult<Init<Self>> {
        // Zero has one sign, so that budgets that are equal have one hash.
        let (epsilon, delta) = (float_parameter(epsilon, "epsilon")? + 0.0, float_parameter(delta, "delta")?);
        let budget = CoreApproxDp::new(epsilon, delta).map_err(CoreError)?;
        let fields = vec![("epsilon", epsilon), ("delta", delta)];
        let base = Budget::new(budget.into(), budget.rho(), "ApproxDp", fields)?;
        Ok(Init::from(base).add_subclass(Self(budget)))
    }

    /// The epsilon that was given.
    #[getter]
    fn target_epsilon(&self) -> f64 {
        self.0.target_epsilon()
    }

    /// The delta that was given.
    #[getter]
    fn target_delta(&self) -> f64 {
        self.0.target_delta()
    }
}

/// The budget that `privacy=` was given.
pub(crate) fn privacy_parameter<'a>(object: &'a Bound<'_, PyAny>) -> PyResult<&'a Budget> {
    object.cast::<Budget>().map(Bound::get).map_err(|_| {
        let given = object.get_type();
        PyTypeError::new_err(format!(
            "privacy must be a budget: fastgame.Zcdp(rho=...), Gdp(mu=...) or ApproxDp(epsilon=..., delta=...); {given} \
             was given"
        ))
    })
}

/// What budgets and structures on the same data cost together, as a Zcdp: their rho add up.
///
/// Raises TypeError for anything else, and for nothing.
#[pyfunction]
#[pyo3(signature = (*items))]
pub(crate) fn total(py: Python<'_>, items: &Bound<'_, PyTuple>) -> PyResult<Py<Zcdp>> {
    let mut sum: Option<CoreZcdp> = None;
    for item in items {
        let privacy = match item.cast::<Structure>() {
            Ok(structure) => structure.get().parameters().privacy(py).into_bound(py),
            Err(_) => item.clone(),
        };
        let part = privacy.cast::<Budget>().map_err(|_| {
            let given = item.get_type();
            PyTypeError::new_err(format!("total takes budgets and structures; {given} was given"))
        })?;
        let part = part.get().zcdp;
        sum = Some(sum.map_or(Ok(part), |sum| sum.compose(part)).map_err(CoreError)?);
    }
    let nothing = || PyTypeError::new_err("total takes at least one budget or structure; nothing was given");
    Zcdp::make(py, sum.ok_or_else(nothing)?)
}
