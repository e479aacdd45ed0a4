//! Budgets as Python values: they may be compared, hashed, copied and pickled.

use fastgame_core::{ApproxDp as CoreApproxDp, Gdp as CoreGdp, Loss, PureDp as CorePureDp, Spent, Zcdp as CoreZcdp};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pyclass_init::PyClassInitializer as Init;
use pyo3::sync::PyOnceLock;
use pyo3::types::{IntoPyDict, PyDict, PyString, PyTuple};

use crate::arrays::{float_parameter, type_name};
use crate::error::{CoreError, IncompatibleError};
use crate::sketch::imported;
use crate::structure::Structure;

/// A privacy budget: what all answers of a structure together may reveal about one unit.
///
/// Base class of Zcdp, Gdp, ApproxDp and PureDp; not made directly. A budget is an immutable value: budgets compare,
/// hash, copy and pickle. Zcdp, Gdp and ApproxDp are spent on Gaussian noise, and all conversions are exact for it. PureDp is
/// spent on Laplace noise; what it says in the other dialects is the least that any mechanism of that epsilon satisfies.
#[pyclass(frozen, subclass, module = "fastgame")]
pub(crate) struct Budget {
    loss: Loss,
    /// The same, as what adds up.
    spent: Spent,
    kind: &'static str,
    /// The parameters that the budget was given in.
    fields: Vec<(&'static str, f64)>,
}

impl Budget {
    fn new(budget: impl Into<Loss> + Into<Spent> + Copy, kind: &'static str, fields: Vec<(&'static str, f64)>) -> Self {
        Self { loss: budget.into(), spent: budget.into(), kind, fields }
    }

    pub(crate) fn loss(&self) -> Loss {
        self.loss
    }
}

#[pymethods]
impl Budget {
    /// The zero-concentrated privacy loss rho = mu**2 / 2 (Bun and Steinke, 2016). Of a PureDp: that of the Gaussian budget
    /// that covers it.
    #[getter]
    fn rho(&self) -> f64 {
        self.spent.rho()
    }

    /// The Gaussian privacy loss: the largest shift between neighbours, in standard deviations of the noise. Of a PureDp: the
    /// least that covers it, erf(mu / sqrt(8)) = tanh(epsilon / 2).
    #[getter]
    fn mu(&self) -> f64 {
        self.loss.mu()
    }

    /// The smallest epsilon at this delta, from the exact curve: of the Gaussian mechanism; of a PureDp, of randomised
    /// response.
    ///
    /// Raises ValueError unless 0 < delta < 1 (of a PureDp, 0 is allowed).
    fn epsilon(&self, delta: &Bound<'_, PyAny>) -> PyResult<f64> {
        Ok(self.loss.epsilon(float_parameter(delta, "delta")?).map_err(CoreError)?)
    }

    /// The smallest delta at this epsilon, from the exact curve, as `epsilon`.
    ///
    /// Raises ValueError unless epsilon is finite and at least 0.
    fn delta(&self, epsilon: &Bound<'_, PyAny>) -> PyResult<f64> {
        Ok(self.loss.delta(float_parameter(epsilon, "epsilon")?).map_err(CoreError)?)
    }

    /// Divides the budget: a tuple of Zcdp, one for each part, with that fraction of rho. A PureDp: a tuple of PureDp with
    /// that fraction of epsilon.
    ///
    /// Raises ValueError if a part is not positive, or the parts sum to more than 1.
    #[pyo3(signature = (*parts))]
    fn split<'py>(&self, py: Python<'py>, parts: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyTuple>> {
        let parts: Vec<f64> = parts.iter().map(|part| float_parameter(&part, "a part")).collect::<PyResult<_>>()?;
        let shares: Vec<_> = match self.spent {
            Spent::Pure(budget) => {
                let shares = budget.split(&parts).map_err(CoreError)?;
                shares.into_iter().map(|share| PureDp::make(py, share)).collect::<PyResult<_>>()?
            }
            Spent::Gaussian(budget) => {
                let shares = budget.split(&parts).map_err(CoreError)?;
                shares.into_iter().map(|share| Zcdp::make(py, share)).collect::<PyResult<_>>()?
            }
        };
        PyTuple::new(py, shares)
    }

    fn __add__(&self, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let py = other.py();
        let Ok(other) = other.cast::<Self>() else { return Ok(py.NotImplemented()) };
        sum(py, [self.spent, other.get().spent])
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
    fn base(budget: CoreZcdp) -> Init<Self> {
        let base = Budget::new(budget, "Zcdp", vec![("rho", budget.rho())]);
        Init::from(base).add_subclass(Self)
    }

    fn make(py: Python<'_>, budget: CoreZcdp) -> PyResult<Py<PyAny>> {
        Ok(Py::new(py, Self::base(budget))?.into_any())
    }
}

#[pymethods]
impl Zcdp {
    #[new]
    #[pyo3(signature = (rho))]
    fn new(rho: &Bound<'_, PyAny>) -> PyResult<Init<Self>> {
        Ok(Self::base(CoreZcdp::new(float_parameter(rho, "rho")?).map_err(CoreError)?))
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
        let base = Budget::new(budget, "Gdp", vec![("mu", budget.mu())]);
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
        Ok(Init::from(Budget::new(budget, "ApproxDp", fields)).add_subclass(Self(budget)))
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

/// epsilon-differential privacy, with delta = 0 up to the error of a float sampler, spent on Laplace noise.
///
/// What floats add to delta is bounded in docs/guarantees.md, section 12.
///
/// Parameters
/// ----------
/// epsilon : float
///     Positive, at most 700. Those of several releases add up.
#[pyclass(frozen, extends = Budget, module = "fastgame")]
pub(crate) struct PureDp(CorePureDp);

impl PureDp {
    fn base(budget: CorePureDp) -> Init<Self> {
        let fields = vec![("epsilon", budget.target_epsilon())];
        Init::from(Budget::new(budget, "PureDp", fields)).add_subclass(Self(budget))
    }

    fn make(py: Python<'_>, budget: CorePureDp) -> PyResult<Py<PyAny>> {
        Ok(Py::new(py, Self::base(budget))?.into_any())
    }
}

#[pymethods]
impl PureDp {
    #[new]
    #[pyo3(signature = (epsilon))]
    fn new(epsilon: &Bound<'_, PyAny>) -> PyResult<Init<Self>> {
        Ok(Self::base(CorePureDp::new(float_parameter(epsilon, "epsilon")?).map_err(CoreError)?))
    }

    /// The epsilon that was given.
    #[getter]
    fn target_epsilon(&self) -> f64 {
        self.0.target_epsilon()
    }
}

/// The budget that `privacy=` was given.
pub(crate) fn privacy_parameter<'a>(object: &'a Bound<'_, PyAny>) -> PyResult<&'a Budget> {
    object.cast::<Budget>().map(Bound::get).map_err(|_| {
        let given = type_name(object);
        PyTypeError::new_err(format!(
            "privacy must be a budget: fastgame.Zcdp(rho=...), Gdp(mu=...), ApproxDp(epsilon=..., delta=...) or \
             PureDp(epsilon=...); {given} was given"
        ))
    })
}

/// What budgets and structures on the same data cost together, as a Zcdp: their rho add up. If all are PureDp, as one: their
/// epsilon do. The sum is rounded up, once.
///
/// Parameters
/// ----------
/// *items : Budget or Structure
/// unit : str, optional
///     What all of the structures protect, in words, as "a visitor: at most 10 visits and 2 orders". Needed where they differ
///     in `protect` or `contributions`: a sum is a promise about one unit. That each of them protects it is for you to
///     know; nothing is computed from the words. Budgets alone say no unit.
///
/// Raises
/// ------
/// IncompatibleError
///     The structures protect different units, and none is named.
/// TypeError, ValueError
///     For anything else, and for nothing; for a unit that is no text, or empty.
#[pyfunction]
#[pyo3(signature = (*items, unit = None))]
pub(crate) fn total(
    py: Python<'_>,
    items: &Bound<'_, PyTuple>,
    unit: Option<&Bound<'_, PyAny>>,
) -> PyResult<Py<PyAny>> {
    let mut structures = Vec::new();
    let spent = items.iter().map(|item| {
        let privacy = match item.cast::<Structure>() {
            Ok(structure) => {
                structures.push(structure.clone());
                structure.get().parameters().privacy(py).into_bound(py)
            }
            Err(_) => item.clone(),
        };
        privacy.cast::<Budget>().map(|budget| budget.get().spent).map_err(|_| {
            let given = type_name(&item);
            PyTypeError::new_err(format!("total takes budgets and structures; {given} was given"))
        })
    });
    let spent = spent.collect::<PyResult<Vec<Spent>>>()?;
    if spent.is_empty() {
        return Err(PyTypeError::new_err("total takes at least one budget or structure; nothing was given"));
    }
    match unit {
        None => check_one_unit(py, &structures)?,
        Some(unit) => {
            let Ok(words) = unit.cast::<PyString>() else {
                let given = type_name(unit);
                return Err(PyTypeError::new_err(format!("unit must be text; {given} was given")));
            };
            if words.to_string_lossy().trim().is_empty() {
                return Err(PyValueError::new_err(
                    "unit must say what all of the structures protect; an empty text was given",
                ));
            }
        }
    }
    sum(py, spent)
}

/// Refuses structures that protect different units.
fn check_one_unit(py: Python<'_>, structures: &[Bound<'_, Structure>]) -> PyResult<()> {
    static UNIT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let unit = |structure: &Bound<'_, Structure>| {
        let parameters = structure.get().parameters();
        (parameters.protect, parameters.contributions)
    };
    if structures.windows(2).all(|pair| unit(&pair[0]) == unit(&pair[1])) {
        return Ok(());
    }
    let words = imported(py, &UNIT, "fastgame._plan", "unit_of")?;
    let each = structures.iter().map(|structure| {
        let words: String = words.call1((structure,))?.extract()?;
        Ok(format!("a {} protects {words}", structure.get().parameters().kind().name()))
    });
    let each = each.collect::<PyResult<Vec<String>>>()?.join("; ");
    Err(IncompatibleError(
        py,
        format!(
            "a total is a promise about one unit, and these structures protect different ones ({each}): build them for the same \
             unit, or name the one that all of them protect, as unit=\"a visitor: at most 10 visits and 2 orders\""
        ),
    ))
}

/// All of it together: a PureDp if all of it is pure, otherwise a Zcdp.
fn sum(py: Python<'_>, spent: impl IntoIterator<Item = Spent>) -> PyResult<Py<PyAny>> {
    match fastgame_core::total(spent).map_err(CoreError)? {
        Spent::Pure(budget) => PureDp::make(py, budget),
        Spent::Gaussian(budget) => Zcdp::make(py, budget),
    }
}
