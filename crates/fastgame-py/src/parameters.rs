//! The parameters that every structure takes, from Python words to the core's builder.

use std::sync::Arc;

use fastgame_core::{Builder, ContinualVector, Invalid, Mechanism, OnExcess, Unit};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::arrays::{float_parameter, unsigned_parameter};
use crate::budgets::privacy_parameter;

/// Words of a parameter, and what they stand for.
type Words<T> = [(&'static str, T)];

const MECHANISMS: &Words<Mechanism> = &[("tree", Mechanism::Tree), ("tree-paper", Mechanism::TreePaper)];
const UNITS: &Words<Unit> = &[("update", Unit::Update), ("lifetime", Unit::Lifetime)];
const ON_EXCESS: &Words<OnExcess> = &[("error", OnExcess::Error), ("clip", OnExcess::Clip)];
const INVALID: &Words<Invalid> = &[("raise", Invalid::Raise), ("drop", Invalid::Drop)];

/// Keyword arguments of every structure.
const COMMON: &[&str] =
    &["horizon", "privacy", "mechanism", "protect", "contributions", "on_excess", "invalid", "insecure_seed"];

/// Which structure is built.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Kind {
    Counter,
    Vector,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Counter => "ContinualCounter",
            Self::Vector => "ContinualVector",
        }
    }
}

/// The parameter of one kind alone.
#[derive(Clone, Copy)]
enum Own {
    MaxWeight(u32),
    MaxNorm(f64),
}

impl Own {
    fn name(self) -> &'static str {
        match self {
            Self::MaxWeight(_) => "max_weight",
            Self::MaxNorm(_) => "max_norm",
        }
    }
}

/// The parameters of a structure, as they are shown and as core takes them.
#[derive(Clone)]
pub(crate) struct Parameters {
    pub(crate) kind: Kind,
    pub(crate) builder: Builder,
    own: Own,
    pub(crate) horizon: u64,
    /// What `privacy=` was given: an immutable value, shared by reference.
    privacy: Arc<Py<PyAny>>,
    pub(crate) mechanism: &'static str,
    pub(crate) protect: &'static str,
    pub(crate) contributions: u32,
    pub(crate) on_excess: &'static str,
    pub(crate) invalid: &'static str,
    pub(crate) insecure_seed: Option<u64>,
}

/// The keyword arguments of a constructor.
pub(crate) struct Arguments<'a, 'py>(Option<&'a Bound<'py, PyDict>>);

impl<'a, 'py> Arguments<'a, 'py> {
    pub(crate) fn new(arguments: Option<&'a Bound<'py, PyDict>>) -> Self {
        Self(arguments)
    }

    fn get(&self, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.0.map_or(Ok(None), |arguments| arguments.get_item(name))
    }

    fn required(&self, kind: Kind, name: &str) -> PyResult<Bound<'py, PyAny>> {
        self.get(name)?
            .ok_or_else(|| PyTypeError::new_err(format!("{}() is missing the keyword argument {name:?}", kind.name())))
    }

    /// The word that is given for `name`, or the first.
    fn word<T: Copy>(&self, name: &str, words: &Words<T>) -> PyResult<(&'static str, T)> {
        let Some(object) = self.get(name)? else { return Ok(words[0]) };
        let allowed = || words.iter().map(|(word, _)| format!("{word:?}")).collect::<Vec<_>>().join(" or ");
        let Ok(given) = object.cast::<PyString>() else {
            let given = object.get_type();
            return Err(PyTypeError::new_err(format!("{name} must be {}; {given} was given", allowed())));
        };
        let given = given.to_cow()?;
        let found = words.iter().copied().find(|(word, _)| *word == given);
        found.ok_or_else(|| PyValueError::new_err(format!("{name} must be {}; {given:?} was given", allowed())))
    }

    fn refuse_others(&self, kind: Kind, own: &[&str]) -> PyResult<()> {
        for name in self.0.map(|arguments| arguments.keys()).into_iter().flatten() {
            let name: String = name.extract()?;
            if !COMMON.iter().chain(own).any(|known| *known == name) {
                return Err(PyTypeError::new_err(format!(
                    "{}() has no argument {name:?}; the keyword arguments are {} and {}",
                    kind.name(),
                    own.join(", "),
                    COMMON.join(", ")
                )));
            }
        }
        Ok(())
    }
}

impl Parameters {
    pub(crate) fn counter(arguments: &Arguments<'_, '_>) -> PyResult<Self> {
        let max_weight: u32 = match arguments.get("max_weight")? {
            Some(given) => unsigned_parameter(&given, "max_weight", "an integer from 1 to 2^31")?,
            None => 1,
        };
        Self::new(Kind::Counter, arguments, Own::MaxWeight(max_weight), |builder| {
            builder.cells(1).max_weight(max_weight)
        })
    }

    pub(crate) fn vector(size: &Bound<'_, PyAny>, arguments: &Arguments<'_, '_>) -> PyResult<Self> {
        let allowed = "a number of cells that is at least 1 and fits in memory";
        let size: usize = unsigned_parameter(size, "size", allowed)?;
        let max_norm = arguments.get("max_norm")?.map_or(Ok(1.0), |given| float_parameter(&given, "max_norm"))?;
        Self::new(Kind::Vector, arguments, Own::MaxNorm(max_norm), |builder| builder.cells(size).max_norm(max_norm))
    }

    fn new(
        kind: Kind,
        arguments: &Arguments<'_, '_>,
        own: Own,
        shape: impl FnOnce(Builder) -> Builder,
    ) -> PyResult<Self> {
        arguments.refuse_others(kind, &[own.name()])?;
        let horizon = arguments.required(kind, "horizon")?;
        let horizon: u64 = unsigned_parameter(&horizon, "horizon", "a number of time steps from 1 to 2^62")?;
        let privacy = arguments.required(kind, "privacy")?;
        let loss = privacy_parameter(&privacy)?.loss();
        let (mechanism, core_mechanism) = arguments.word("mechanism", MECHANISMS)?;
        let (protect, unit) = arguments.word("protect", UNITS)?;
        let contributions = match arguments.get("contributions")? {
            Some(given) => unsigned_parameter(&given, "contributions", "an integer from 1 to 2^32 - 1")?,
            None => 1,
        };
        let (on_excess, core_on_excess) = arguments.word("on_excess", ON_EXCESS)?;
        let (invalid, core_invalid) = arguments.word("invalid", INVALID)?;
        let insecure_seed = match arguments.get("insecure_seed")? {
            Some(seed) if !seed.is_none() => {
                Some(unsigned_parameter(&seed, "insecure_seed", "None or an integer from 0 to 2^64 - 1")?)
            }
            _ => None,
        };
        let builder = shape(ContinualVector::builder(horizon, loss))
            .mechanism(core_mechanism)
            .unit(unit)
            .contributions(contributions)
            .on_excess(core_on_excess)
            .invalid(core_invalid);
        let privacy = privacy.unbind();
        Ok(Self {
            kind,
            builder,
            own,
            horizon,
            privacy: Arc::new(privacy),
            mechanism,
            protect,
            contributions,
            on_excess,
            invalid,
            insecure_seed,
        })
    }

    /// Of a counter; 0 for a vector, which has none.
    pub(crate) fn max_weight(&self) -> u32 {
        if let Own::MaxWeight(weight) = self.own { weight } else { 0 }
    }

    /// Of a vector; 0 for a counter, which has none.
    pub(crate) fn max_norm(&self) -> f64 {
        if let Own::MaxNorm(norm) = self.own { norm } else { 0.0 }
    }

    pub(crate) fn privacy(&self, py: Python<'_>) -> Py<PyAny> {
        self.privacy.clone_ref(py)
    }

    /// The call that makes the structure: what `repr` shows. All of it is public.
    pub(crate) fn describe(&self, py: Python<'_>) -> PyResult<String> {
        let own = match self.own {
            Own::MaxWeight(weight) => format!("max_weight={weight}"),
            Own::MaxNorm(norm) => format!("size={}, max_norm={norm:?}", self.builder.size()),
        };
        let Self { horizon, mechanism, protect, contributions, on_excess, invalid, .. } = self;
        let privacy = self.privacy.bind(py).repr()?;
        let seed = self.insecure_seed.map_or(String::new(), |seed| format!(", insecure_seed={seed}"));
        Ok(format!(
            "{}({own}, horizon={horizon}, privacy={privacy}, mechanism='{mechanism}', protect='{protect}', \
             contributions={contributions}, on_excess='{on_excess}', invalid='{invalid}'{seed})",
            self.kind.name()
        ))
    }
}
