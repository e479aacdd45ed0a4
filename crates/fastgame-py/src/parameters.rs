//! The parameters that every structure takes, from Python words to the core's builder.

use std::sync::Arc;

use fastgame_core::{
    Builder, ContinualVector, Error, Estimator, Invalid, JoinBuilder, Levels, MAX_BUFFERS, Mechanism, OnExcess, PureDp,
    RangeBuilder, RangeShape, SketchBuilder, SketchShape, Unit, Zcdp,
};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString, PyTuple};

use crate::arrays::{Beyond, float_parameter, integers, shown_text, type_name, unsigned_parameter};
use crate::budgets::privacy_parameter;
use crate::error::no_entropy;
use crate::profile::{FrequencyProfile, JoinProfile, join_profile_parameter, profile_parameter};
use crate::sketch::imported;

/// Words of a parameter, and what they stand for.
type Words<T> = [(&'static str, T)];

const MECHANISMS: &Words<Mechanism> =
    &[("tree", Mechanism::Tree), ("tree-paper", Mechanism::TreePaper), ("blt", Mechanism::Blt { buffers: None })];
const UNITS: &Words<Unit> = &[("update", Unit::Update), ("lifetime", Unit::Lifetime)];
const ON_EXCESS: &Words<OnExcess> = &[("error", OnExcess::Error), ("clip", OnExcess::Clip)];
const ESTIMATORS: &Words<Estimator> = &[("least_squares", Estimator::LeastSquares), ("cover", Estimator::Cover)];
const INVALID: &Words<Invalid> = &[("raise", Invalid::Raise), ("drop", Invalid::Drop)];

/// Keyword arguments of every structure.
const COMMON: &[&str] = &[
    "horizon",
    "privacy",
    "mechanism",
    "buffers",
    "protect",
    "contributions",
    "on_excess",
    "invalid",
    "insecure_seed",
];

/// Which structure is built.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Kind {
    Counter,
    Vector,
    Sketch,
    Range,
    Join,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Counter => "ContinualCounter",
            Self::Vector => "ContinualVector",
            Self::Sketch => "CountSketch",
            Self::Range => "RangeCounter",
            Self::Join => "JoinSize",
        }
    }
}

/// The parameters of one kind alone.
#[derive(Clone)]
enum Own {
    Counter {
        max_weight: u32,
    },
    Vector {
        size: usize,
        max_norm: f64,
    },
    Sketch(SketchShape),
    Range(OwnRange),
    /// Of either side.
    Join(SketchShape),
}

/// The parameters of a range counter.
#[derive(Clone)]
pub(crate) struct OwnRange {
    pub(crate) shape: RangeShape,
    pub(crate) estimator: &'static str,
    /// A tuple of axes; None for a bare grid.
    pub(crate) axes: Option<Arc<Py<PyTuple>>>,
}

impl Own {
    fn kind(&self) -> Kind {
        match self {
            Self::Counter { .. } => Kind::Counter,
            Self::Vector { .. } => Kind::Vector,
            Self::Sketch(_) => Kind::Sketch,
            Self::Range(_) => Kind::Range,
            Self::Join(_) => Kind::Join,
        }
    }

    /// The keywords of this kind.
    fn names(&self) -> &'static [&'static str] {
        match self {
            Self::Counter { .. } => &["max_weight"],
            Self::Vector { .. } => &["max_norm"],
            Self::Sketch(_) | Self::Join(_) => &SHAPE,
            Self::Range(_) => &RANGE,
        }
    }
}

/// The keywords of a range counter.
const RANGE: [&str; 8] = ["shape", "axes", "width", "depth", "max_weight", "hash_seed", "levels", "estimator"];

/// The keywords of a sketch's shape.
const SHAPE: [&str; 4] = ["width", "depth", "max_weight", "hash_seed"];

/// What core builds from the parameters.
pub(crate) enum Blueprint {
    Vector(Builder),
    Sketch(SketchBuilder),
    Range(RangeBuilder),
    Join(JoinBuilder),
}

/// The parameters of a structure, as they are shown and as core takes them.
#[derive(Clone)]
pub(crate) struct Parameters {
    /// Horizon, budget and policies.
    base: Builder,
    own: Own,
    pub(crate) horizon: u64,
    /// What `privacy=` was given: an immutable value, shared by reference.
    privacy: Arc<Py<PyAny>>,
    pub(crate) mechanism: &'static str,
    core_mechanism: Mechanism,
    /// As given; None if they are chosen.
    buffers: Option<u32>,
    pub(crate) protect: &'static str,
    pub(crate) contributions: u32,
    pub(crate) on_excess: &'static str,
    pub(crate) invalid: &'static str,
    pub(crate) insecure_seed: Option<u64>,
}

/// The nearest word that is allowed, if one is near, to be put behind an unknown one.
fn did_you_mean<'a>(py: Python<'_>, given: &str, allowed: impl IntoIterator<Item = &'a str>) -> PyResult<String> {
    static NEAREST: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let allowed: Vec<&str> = allowed.into_iter().collect();
    imported(py, &NEAREST, "fastgame._arguments", "did_you_mean")?.call1((given, allowed))?.extract()
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

    fn required(&self, class: &str, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let missing = || PyTypeError::new_err(format!("{class}() is missing the keyword argument {name:?}"));
        self.get(name)?.ok_or_else(missing)
    }

    /// The word that is given for `name`, or the first.
    fn word<T: Copy>(&self, name: &str, words: &Words<T>) -> PyResult<(&'static str, T)> {
        let Some(object) = self.get(name)? else { return Ok(words[0]) };
        let allowed = || words.iter().map(|(word, _)| format!("{word:?}")).collect::<Vec<_>>().join(" or ");
        let Ok(given) = object.cast::<PyString>() else {
            let given = type_name(&object);
            return Err(PyTypeError::new_err(format!("{name} must be {}; {given} was given", allowed())));
        };
        // A lone surrogate stands in no word.
        let given = given.to_string_lossy();
        if let Some(found) = words.iter().copied().find(|(word, _)| *word == given) {
            return Ok(found);
        }
        let hint = did_you_mean(object.py(), &given, words.iter().map(|(word, _)| *word))?;
        let given = shown_text(&given);
        Err(PyValueError::new_err(format!("{name} must be {}; {given} was given{hint}", allowed())))
    }

    /// The most cells that a search may suggest.
    fn max_cells(&self, allowed: &str) -> PyResult<u64> {
        self.get("max_cells")?.map_or(Ok(1 << 24), |given| unsigned_parameter(&given, "max_cells", allowed))
    }

    /// All but some.
    fn without(&self, py: Python<'py>, names: &[&str]) -> PyResult<Bound<'py, PyDict>> {
        let rest = PyDict::new(py);
        for (name, value) in self.0.into_iter().flatten() {
            let word: String = name.extract()?;
            if !names.contains(&word.as_str()) {
                rest.set_item(name, value)?;
            }
        }
        Ok(rest)
    }

    fn refuse_others(&self, class: &str, own: &[&str], common: &[&str]) -> PyResult<()> {
        for key in self.0.map(|arguments| arguments.keys()).into_iter().flatten() {
            let name = key.cast::<PyString>()?.to_string_lossy().into_owned();
            let mut known = own.iter().chain(common).copied();
            if !known.clone().any(|known| known == name) {
                let hint = did_you_mean(key.py(), &name, &mut known)?;
                let name = shown_text(&name);
                return Err(PyTypeError::new_err(format!(
                    "{class}() has no argument {name}{hint}; the keyword arguments are {} and {}",
                    own.join(", "),
                    common.join(", ")
                )));
            }
        }
        Ok(())
    }
}

/// What a search for a join's shape is given beside its parameters.
pub(crate) struct JoinSearch<'py> {
    pub(crate) profile: Bound<'py, JoinProfile>,
    pub(crate) confidence: f64,
    pub(crate) max_cells: u64,
}

impl<'py> JoinSearch<'py> {
    /// The search, and the parameters of a join of a shape yet unknown.
    pub(crate) fn take(py: Python<'py>, arguments: &Arguments<'_, 'py>) -> PyResult<(Parameters, Self)> {
        const NAME: &str = "JoinSize.suggest";
        const OWN: [&str; 5] = ["profile", "confidence", "max_cells", "max_weight", "hash_seed"];
        arguments.refuse_others(NAME, &OWN, COMMON)?;
        let profile = join_profile_parameter(&arguments.required(NAME, "profile")?)?.clone();
        let confidence =
            arguments.get("confidence")?.map_or(Ok(0.95), |given| float_parameter(&given, "confidence"))?;
        let max_cells = arguments.max_cells("an integer from 192 to 2^64 - 1")?;
        let rest = arguments.without(py, &OWN[..3])?;
        Ok((Parameters::join(&Arguments::new(Some(&rest)))?, Self { profile, confidence, max_cells }))
    }
}

/// What a search for a sketch's shape is given beside its parameters.
pub(crate) struct Search<'py> {
    pub(crate) profile: Bound<'py, FrequencyProfile>,
    pub(crate) confidence: f64,
    pub(crate) max_cells: u64,
}

impl<'py> Search<'py> {
    /// The search, and the parameters of a sketch of a shape yet unknown.
    pub(crate) fn take(py: Python<'py>, arguments: &Arguments<'_, 'py>) -> PyResult<(Parameters, Self)> {
        const NAME: &str = "CountSketch.suggest";
        const OWN: [&str; 5] = ["profile", "confidence", "max_cells", "max_weight", "hash_seed"];
        arguments.refuse_others(NAME, &OWN, COMMON)?;
        let profile = profile_parameter(&arguments.required(NAME, "profile")?)?.clone();
        let confidence =
            arguments.get("confidence")?.map_or(Ok(0.95), |given| float_parameter(&given, "confidence"))?;
        let max_cells = arguments.max_cells("an integer from 3 to 2^64 - 1")?;
        let rest = arguments.without(py, &OWN[..3])?;
        rest.set_item("width", 1)?;
        Ok((Parameters::sketch(&Arguments::new(Some(&rest)))?, Self { profile, confidence, max_cells }))
    }
}

const MAX_WEIGHT_ALLOWED: &str = "an integer from 1 to 2^31";

/// A sketch's shape from keywords; `hash_seed` is drawn at random unless given. Without a default a width is required.
pub(crate) fn shape(arguments: &Arguments<'_, '_>, name: &str, width: Option<usize>) -> PyResult<SketchShape> {
    let width = match (arguments.get("width")?, width) {
        (None, Some(width)) => width,
        _ => unsigned_parameter(&arguments.required(name, "width")?, "width", "a power of two from 1 to 2^30")?,
    };
    let depth = match arguments.get("depth")? {
        Some(given) => unsigned_parameter(&given, "depth", "an odd number from 1 to 63")?,
        None => 5,
    };
    let max_weight = match arguments.get("max_weight")? {
        Some(given) => unsigned_parameter(&given, "max_weight", MAX_WEIGHT_ALLOWED)?,
        None => 1,
    };
    let hash_seed = match arguments.get("hash_seed")? {
        Some(seed) if !seed.is_none() => {
            unsigned_parameter(&seed, "hash_seed", "None or an integer from 0 to 2^64 - 1")?
        }
        _ => getrandom::u64().map_err(|error| no_entropy(&error))?,
    };
    Ok(SketchShape { width, depth, max_weight, hash_seed })
}

/// What a raw sketch takes: a shape, and what to do with bad weights.
pub(crate) fn raw_parameters(arguments: &Arguments<'_, '_>) -> PyResult<(SketchShape, OnExcess, Invalid)> {
    const NAME: &str = "RawSketch";
    arguments.refuse_others(NAME, &SHAPE, &["on_excess", "invalid"])?;
    let (_, on_excess) = arguments.word("on_excess", ON_EXCESS)?;
    let (_, invalid) = arguments.word("invalid", INVALID)?;
    Ok((shape(arguments, NAME, None)?, on_excess, invalid))
}

impl Parameters {
    pub(crate) fn counter(arguments: &Arguments<'_, '_>) -> PyResult<Self> {
        let max_weight = match arguments.get("max_weight")? {
            Some(given) => unsigned_parameter(&given, "max_weight", MAX_WEIGHT_ALLOWED)?,
            None => 1,
        };
        Self::new(arguments, Own::Counter { max_weight })
    }

    pub(crate) fn vector(size: &Bound<'_, PyAny>, arguments: &Arguments<'_, '_>) -> PyResult<Self> {
        let allowed = "a number of cells that is at least 1 and fits in memory";
        let size: usize = unsigned_parameter(size, "size", allowed)?;
        let max_norm = arguments.get("max_norm")?.map_or(Ok(1.0), |given| float_parameter(&given, "max_norm"))?;
        Self::new(arguments, Own::Vector { size, max_norm })
    }

    pub(crate) fn sketch(arguments: &Arguments<'_, '_>) -> PyResult<Self> {
        let name = Kind::Sketch.name();
        arguments.refuse_others(name, &SHAPE, COMMON)?;
        Self::new(arguments, Own::Sketch(shape(arguments, name, None)?))
    }

    pub(crate) fn join(arguments: &Arguments<'_, '_>) -> PyResult<Self> {
        let name = Kind::Join.name();
        arguments.refuse_others(name, &SHAPE, COMMON)?;
        Self::new(arguments, Own::Join(shape(arguments, name, Some(4096))?))
    }

    pub(crate) fn range(py: Python<'_>, arguments: &Arguments<'_, '_>) -> PyResult<Self> {
        let name = Kind::Range.name();
        arguments.refuse_others(name, &RANGE, COMMON)?;
        let given = |word| Ok::<_, PyErr>(arguments.get(word)?.filter(|object| !object.is_none()));
        let (sizes, axes) = match (given("shape")?, given("axes")?) {
            (Some(shape), None) => (grid_shape(&shape)?, None),
            (None, Some(axes)) => {
                let checked = py.import("fastgame._ranges")?.getattr("checked_axes")?.call1((axes,))?;
                let (axes, sizes): (Py<PyTuple>, Vec<u64>) = checked.extract()?;
                (sizes, Some(Arc::new(axes)))
            }
            _ => {
                return Err(PyTypeError::new_err(format!(
                    "{name}() takes either shape (the sizes of a grid) or axes (fastgame.axis)"
                )));
            }
        };
        let SketchShape { width, depth, max_weight, hash_seed } = shape(arguments, name, Some(4096))?;
        let levels = match arguments.get("levels")? {
            None => Levels::Every(2),
            Some(word) if word.cast::<PyString>().is_ok_and(|word| word.to_string_lossy() == "dyadic") => {
                Levels::Dyadic
            }
            Some(spacing) => {
                let allowed = "\"dyadic\", or an integer from 1 to 8: every how many levels one is kept";
                if let Ok(text) = spacing.cast::<PyString>() {
                    let text = text.to_string_lossy();
                    let (given, hint) = (shown_text(&text), did_you_mean(py, &text, ["dyadic"])?);
                    return Err(PyValueError::new_err(format!("levels must be {allowed}; {given} was given{hint}")));
                }
                Levels::Every(unsigned_parameter(&spacing, "levels", allowed)?)
            }
        };
        let (word, estimator) = arguments.word("estimator", ESTIMATORS)?;
        let shape = RangeShape { sizes, width, depth, max_weight, hash_seed, levels, estimator };
        Self::new(arguments, Own::Range(OwnRange { shape, estimator: word, axes }))
    }

    fn new(arguments: &Arguments<'_, '_>, own: Own) -> PyResult<Self> {
        let kind = own.kind().name();
        arguments.refuse_others(kind, own.names(), COMMON)?;
        let horizon = arguments.required(kind, "horizon")?;
        let horizon: u64 = unsigned_parameter(&horizon, "horizon", "a number of time steps from 1 to 2^62")?;
        let privacy = arguments.required(kind, "privacy")?;
        let loss = privacy_parameter(&privacy)?.loss();
        let (mechanism, mut core_mechanism) = arguments.word("mechanism", MECHANISMS)?;
        let buffers = match arguments.get("buffers")? {
            Some(given) if !given.is_none() => {
                let allowed = format!("None (chosen for you) or an integer from 1 to {MAX_BUFFERS}");
                let count: u32 = unsigned_parameter(&given, "buffers", &allowed)?;
                if !matches!(core_mechanism, Mechanism::Blt { .. }) {
                    return Err(PyValueError::new_err(format!(
                        "buffers are what the mechanism \"blt\" has; {count} were given with {mechanism:?} (leave them out, or \
                         set buffers=None)"
                    )));
                }
                Some(count)
            }
            _ => None,
        };
        if buffers.is_some() {
            core_mechanism = Mechanism::Blt { buffers };
        }
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
        let base = ContinualVector::builder(horizon, loss)
            .mechanism(core_mechanism)
            .unit(unit)
            .contributions(contributions)
            .on_excess(core_on_excess)
            .invalid(core_invalid);
        let privacy = Arc::new(privacy.unbind());
        Ok(Self {
            base,
            own,
            horizon,
            privacy,
            mechanism,
            core_mechanism,
            buffers,
            protect,
            contributions,
            on_excess,
            invalid,
            insecure_seed,
        })
    }

    /// Of the kind, from keywords; a vector's size is one of them.
    pub(crate) fn of_kind(kind: Kind, keywords: &Bound<'_, PyDict>) -> PyResult<Self> {
        let arguments = Arguments::new(Some(keywords));
        match kind {
            Kind::Counter => Self::counter(&arguments),
            Kind::Vector => {
                let size = arguments.required(kind.name(), "size")?;
                keywords.del_item("size")?;
                Self::vector(&size, &arguments)
            }
            Kind::Sketch => Self::sketch(&arguments),
            Kind::Range => Self::range(keywords.py(), &arguments),
            Kind::Join => Self::join(&arguments),
        }
    }

    /// All keywords, as they were given or are by default.
    pub(crate) fn keywords<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let keywords = PyDict::new(py);
        let sketch = |shape: SketchShape| {
            keywords.set_item("width", shape.width)?;
            keywords.set_item("depth", shape.depth)?;
            keywords.set_item("max_weight", shape.max_weight)?;
            keywords.set_item("hash_seed", shape.hash_seed)
        };
        match &self.own {
            Own::Counter { max_weight } => keywords.set_item("max_weight", max_weight)?,
            Own::Vector { size, max_norm } => {
                keywords.set_item("size", size)?;
                keywords.set_item("max_norm", max_norm)?;
            }
            Own::Sketch(shape) | Own::Join(shape) => sketch(*shape)?,
            Own::Range(range) => {
                match &range.axes {
                    Some(axes) => keywords.set_item("axes", axes.bind(py))?,
                    None => keywords.set_item("shape", PyTuple::new(py, &range.shape.sizes)?)?,
                }
                sketch(range.sketch())?;
                match range.shape.levels {
                    Levels::Every(spacing) => keywords.set_item("levels", spacing)?,
                    _ => keywords.set_item("levels", "dyadic")?,
                }
                keywords.set_item("estimator", range.estimator)?;
            }
        }
        keywords.set_item("horizon", self.horizon)?;
        keywords.set_item("privacy", self.privacy(py))?;
        keywords.set_item("mechanism", self.mechanism)?;
        keywords.set_item("buffers", self.buffers)?;
        keywords.set_item("protect", self.protect)?;
        keywords.set_item("contributions", self.contributions)?;
        keywords.set_item("on_excess", self.on_excess)?;
        keywords.set_item("invalid", self.invalid)?;
        keywords.set_item("insecure_seed", self.insecure_seed)?;
        Ok(keywords)
    }

    /// The same with another width and depth, of a sketch or join.
    pub(crate) fn with_shape(mut self, shape: SketchShape) -> Self {
        self.own = if matches!(self.own, Own::Join(_)) { Own::Join(shape) } else { Own::Sketch(shape) };
        self
    }

    pub(crate) fn kind(&self) -> Kind {
        self.own.kind()
    }

    pub(crate) fn blueprint(&self) -> Blueprint {
        let base = self.base.clone();
        match &self.own {
            Own::Counter { max_weight } => Blueprint::Vector(base.cells(1).max_weight(*max_weight)),
            Own::Vector { size, max_norm } => Blueprint::Vector(base.cells(*size).max_norm(*max_norm)),
            Own::Sketch(shape) => Blueprint::Sketch(SketchBuilder::new(base, *shape)),
            Own::Range(range) => Blueprint::Range(RangeBuilder::new(base, range.shape.clone())),
            Own::Join(shape) => Blueprint::Join(JoinBuilder::new(base, *shape)),
        }
    }

    /// A vector of so many cells with noise that is correlated like this structure's, under a budget of the same kind: it
    /// takes the same time and memory a cell.
    pub(crate) fn miniature(&self, cells: usize) -> Result<Builder, Error> {
        let loss = if self.base.loss().is_pure() { PureDp::new(1.0)?.loss() } else { Zcdp::new(0.5)?.loss() };
        Ok(ContinualVector::builder(self.horizon, loss).mechanism(self.core_mechanism).cells(cells))
    }

    /// How much work it is to read all.
    pub(crate) fn cells(&self) -> usize {
        match &self.own {
            Own::Counter { .. } => 1,
            Own::Vector { size, .. } => *size,
            Own::Sketch(SketchShape { width, depth, .. }) => width.saturating_mul(*depth),
            Own::Range(_) => usize::MAX,
            Own::Join(SketchShape { width, depth, .. }) => width.saturating_mul(*depth).saturating_mul(2),
        }
    }

    /// Of a counter; 0 for others, which have none.
    pub(crate) fn max_weight(&self) -> u32 {
        if let Own::Counter { max_weight } = self.own { max_weight } else { 0 }
    }

    /// Of a vector; 0 for others, which have none.
    pub(crate) fn max_norm(&self) -> f64 {
        if let Own::Vector { max_norm, .. } = self.own { max_norm } else { 0.0 }
    }

    /// Of a sketch, or a side of a join; others have none.
    pub(crate) fn sketch_shape(&self) -> Option<SketchShape> {
        if let Own::Sketch(shape) | Own::Join(shape) = self.own { Some(shape) } else { None }
    }

    /// Of a range counter; others have none.
    pub(crate) fn own_range(&self) -> Option<&OwnRange> {
        if let Own::Range(range) = &self.own { Some(range) } else { None }
    }

    pub(crate) fn privacy(&self, py: Python<'_>) -> Py<PyAny> {
        self.privacy.clone_ref(py)
    }

    /// The call that makes the structure: what `repr` shows. All of it is public.
    pub(crate) fn describe(&self, py: Python<'_>) -> PyResult<String> {
        let own = match &self.own {
            Own::Counter { max_weight } => format!("max_weight={max_weight}"),
            Own::Vector { size, max_norm } => format!("size={size}, max_norm={max_norm:?}"),
            Own::Sketch(shape) | Own::Join(shape) => describe_shape(shape),
            Own::Range(range) => {
                let grid = match &range.axes {
                    Some(axes) => format!("axes={}", axes.bind(py).repr()?),
                    None => format!("shape={}", PyTuple::new(py, &range.shape.sizes)?.repr()?),
                };
                let levels = match range.shape.levels {
                    Levels::Every(spacing) => spacing.to_string(),
                    _ => "'dyadic'".into(),
                };
                let estimator = range.estimator;
                format!("{grid}, {}, levels={levels}, estimator='{estimator}'", describe_shape(&range.sketch()))
            }
        };
        let Self { horizon, mechanism, protect, contributions, on_excess, invalid, .. } = self;
        let privacy = self.privacy.bind(py).repr()?;
        let seed = self.insecure_seed.map_or(String::new(), |seed| format!(", insecure_seed={seed}"));
        let buffers = self.buffers.map_or(String::new(), |buffers| format!(", buffers={buffers}"));
        Ok(format!(
            "{}({own}, horizon={horizon}, privacy={privacy}, mechanism='{mechanism}'{buffers}, protect='{protect}', \
             contributions={contributions}, on_excess='{on_excess}', invalid='{invalid}'{seed})",
            self.kind().name()
        ))
    }
}

impl OwnRange {
    /// The shape of a component that is a sketch.
    pub(crate) fn sketch(&self) -> SketchShape {
        let RangeShape { width, depth, max_weight, hash_seed, .. } = self.shape;
        SketchShape { width, depth, max_weight, hash_seed }
    }
}

/// The sizes of a grid: a number for one axis, or one for each.
fn grid_shape(given: &Bound<'_, PyAny>) -> PyResult<Vec<u64>> {
    let sizes = integers(given, "shape", Beyond::Refuse)?;
    if sizes.shape.len() > 1 {
        return Err(PyValueError::new_err(format!(
            "shape must be an integer, or one for each axis; an array of shape {:?} was given",
            sizes.shape
        )));
    }
    let size = |size: i64| {
        u64::try_from(size)
            .map_err(|_| PyValueError::new_err(format!("shape must have sizes from 1 to 2^62; {size} was given")))
    };
    sizes.values.into_weights().into_iter().map(size).collect()
}

pub(crate) fn describe_shape(shape: &SketchShape) -> String {
    let SketchShape { width, depth, max_weight, hash_seed } = shape;
    format!("width={width}, depth={depth}, max_weight={max_weight}, hash_seed={hash_seed}")
}
