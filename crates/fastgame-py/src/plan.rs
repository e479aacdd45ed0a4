//! `Plan`: what a structure would cost, before any data.

use std::time::{Duration, Instant};

use chacha20::ChaCha12Rng;
use fastgame_core::rand_core::{Rng, SeedableRng};
use fastgame_core::{BoxError, Cells, JoinBuilder, JoinPlan, JoinProfile as CoreJoinProfile, RangePlan};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyAny, PyDict, PyMappingProxy};

use crate::arrays::{Argument, Beyond, float_parameter, integers, unsigned_parameter};
use crate::error::CoreError;
use crate::parameters::{Blueprint, JoinSearch, Kind, Parameters, Search};
use crate::profile::{join_profile_parameter, profile_parameter};
use crate::range::boxes_of;
use crate::structure::Structure;

/// What a structure would cost and how far off it would be, without data.
///
/// Made by the `plan` method of each structure, and by `CountSketch.suggest`. It prints as a table, in notebooks too;
/// `build()` makes the structure. Plans of the same structure with the same parameters are equal.
#[pyclass(frozen, module = "fastgame")]
pub(crate) struct Plan {
    /// Of the cells; for a range counter they are not yet its answers.
    plan: fastgame_core::Plan,
    /// Of a range counter.
    range: Option<RangePlan>,
    /// Of a join.
    join: Option<JoinBuilder>,
    parameters: Parameters,
}

impl Plan {
    pub(crate) fn new(parameters: Parameters) -> PyResult<Self> {
        let (mut range, mut join) = (None, None);
        let plan = match parameters.blueprint() {
            Blueprint::Vector(builder) => builder.plan(),
            Blueprint::Sketch(builder) => builder.plan(),
            Blueprint::Range(builder) => {
                range = Some(builder.plan().map_err(CoreError)?);
                builder.vector_plan()
            }
            Blueprint::Join(builder) => {
                let plan = builder.plan(nothing_expected()).map_err(CoreError)?;
                join = Some(builder);
                Ok(*plan.vector())
            }
        };
        Ok(Self { plan: plan.map_err(CoreError)?, range, join, parameters })
    }

    /// The plan of the suggested shape of a join.
    pub(crate) fn suggest_join(py: Python<'_>, parameters: Parameters, search: JoinSearch<'_>) -> PyResult<Self> {
        let Blueprint::Join(builder) = parameters.blueprint() else {
            return Err(PyTypeError::new_err("not the parameters of a join"));
        };
        let JoinSearch { profile, confidence, max_cells } = search;
        let profile = profile.get().0;
        let found = py.detach(|| builder.plan(profile)?.suggest(confidence, max_cells)).map_err(CoreError)?;
        Self::new(parameters.with_shape(found.parameters().shape()))
    }

    /// The plan of a join for relations of a profile.
    fn for_relations(&self, profile: Option<&Bound<'_, PyAny>>) -> PyResult<Option<JoinPlan>> {
        let Some(builder) = &self.join else { return Ok(None) };
        let profile =
            profile.map(join_profile_parameter).transpose()?.map_or_else(nothing_expected, |given| given.get().0);
        Ok(Some(builder.plan(profile).map_err(CoreError)?))
    }

    /// The plan of a range counter; others have no boxes.
    fn boxes(&self) -> PyResult<&RangePlan> {
        self.range.as_ref().ok_or_else(|| {
            PyTypeError::new_err(format!("a {} has no boxes; a RangeCounter has", self.parameters.kind().name()))
        })
    }

    /// The plan of the suggested shape.
    pub(crate) fn suggest(py: Python<'_>, parameters: Parameters, search: Search<'_>) -> PyResult<Self> {
        let Blueprint::Sketch(builder) = parameters.blueprint() else {
            return Err(PyTypeError::new_err("not the parameters of a sketch"));
        };
        let Search { profile, confidence, max_cells } = search;
        let profile = profile.get();
        let found = py.detach(|| builder.suggest(&profile.0, confidence, max_cells)).map_err(CoreError)?;
        Self::new(parameters.with_shape(found.shape()))
    }

    /// The error of a random box at a step, of a range counter: its answers are not single cells.
    fn random_boxes(&self, step: u64) -> PyResult<Option<BoxError>> {
        let Some(range) = &self.range else { return Ok(None) };
        Ok(Some(range.at(step).map_err(CoreError)?.of_random_boxes()))
    }

    /// The step that is meant: the last, unless one is given.
    fn step(&self, at: Option<&Bound<'_, PyAny>>) -> PyResult<u64> {
        let allowed = "None (the end) or a step from 1 (now) to the horizon";
        at.map_or(Ok(self.parameters.horizon), |given| unsigned_parameter(given, "at", allowed))
    }
}

/// Cells of a structure that is measured, at most and at least, and how many of them are read in all.
const MINIATURE: u64 = 4096;
const LEAST_MINIATURE: u64 = 64;
const CELL_READS: u64 = 1 << 18;

/// Nanoseconds for a cell that is read, and the most bytes of noise for each cell after any of `reads` reads of `read` of
/// `size` cells.
fn measure(parameters: &Parameters, size: u64, read: u64, reads: u64) -> PyResult<(f64, f64)> {
    // How often a cell is read decides about its memory: where that is often, fewer cells are taken rather than fewer reads.
    let each = reads as f64 * (read as f64 / size as f64);
    let cells = ((CELL_READS as f64 / each) as u64).clamp(LEAST_MINIATURE, MINIATURE).min(size);
    let some = ((u128::from(cells) * u128::from(read)).div_ceil(u128::from(size))).max(1) as u64;
    // Where a read is of less than a whole one of these cells, there are fewer.
    let alike = (each * cells as f64 / some as f64).ceil() as u64;
    let count = alike.min(CELL_READS / some).max(2).min(reads);
    let mut vector = parameters.miniature(cells as usize).and_then(|builder| builder.build()).map_err(CoreError)?;
    let before = vector.memory();
    // Nothing here is anyone's data, so the noise need not be secret.
    let mut rng = ChaCha12Rng::from_seed([0; 32]);
    let (mut taken, mut most) = (Duration::ZERO, before);
    for i in 0..count {
        let step = 1 + u128::from(i) * u128::from(parameters.horizon - 1) / u128::from((count - 1).max(1));
        vector.advance(step as u64).map_err(CoreError)?;
        let indices: Vec<u64> = (0..some).map(|_| rng.next_u64() % cells).collect();
        let asked = if some == cells { Cells::All } else { Cells::Indices(&indices) };
        let start = Instant::now();
        vector.release(asked, &mut rng).map_err(CoreError)?;
        taken += start.elapsed();
        // How many sums of a tree are left after a read depends on the digits of the step: not of one, but of the worst.
        most = most.max(vector.memory());
    }
    let noise = (most - before) as f64 / cells as f64;
    Ok((taken.as_nanos() as f64 / (count * some) as f64, noise))
}

/// Two empty relations.
fn nothing_expected() -> CoreJoinProfile {
    CoreJoinProfile::new(0.0, 0.0, 0.0).unwrap_or_else(|_| unreachable!("two empty relations are allowed"))
}

/// A function of the Python half.
fn python<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("fastgame._plan")?.getattr(name)
}

#[pymethods]
impl Plan {
    /// The budget for all answers together.
    #[getter]
    fn privacy(&self, py: Python<'_>) -> Py<PyAny> {
        self.parameters.privacy(py)
    }

    /// The name of the structure's class.
    #[getter]
    fn structure(&self) -> &'static str {
        self.parameters.kind().name()
    }

    /// The parameters that the structure is made with, by name: read-only.
    #[getter]
    fn parameters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyMappingProxy>> {
        Ok(PyMappingProxy::new(py, self.parameters.keywords(py)?.as_mapping()))
    }

    /// A plan of the same structure with some parameters changed; all others are as here, also a hash seed that was drawn.
    ///
    /// Raises TypeError for a parameter that the structure does not have, and what its constructor raises.
    #[pyo3(signature = (**changes))]
    fn replace(&self, py: Python<'_>, changes: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let keywords = self.parameters.keywords(py)?;
        if let Some(changes) = changes {
            // A grid is given in one of two ways.
            for (new, old) in [("shape", "axes"), ("axes", "shape")] {
                if changes.contains(new)? && !changes.contains(old)? && keywords.contains(old)? {
                    keywords.del_item(old)?;
                }
            }
            keywords.update(changes.as_mapping())?;
        }
        Self::new(Parameters::of_kind(self.parameters.kind(), &keywords)?)
    }

    /// The standard deviation of the noise of a cell at the last step, where it is largest: of a release of a counter or
    /// vector.
    #[getter]
    fn noise_std(&self) -> f64 {
        self.plan.noise_std()
    }

    /// The number of cells.
    #[getter]
    fn cells(&self) -> u64 {
        self.plan.cells()
    }

    /// How many cells a read touches, and draws noise for: of so many cells of a vector, or of estimates of so many keys
    /// of a sketch. None: a read of everything. Of a range counter: of so many random boxes on average, or of
    /// one. Of a join all, always.
    #[pyo3(signature = (keys = None))]
    fn cells_read(&self, keys: Option<&Bound<'_, PyAny>>) -> PyResult<u64> {
        let allowed = "None or an integer from 0 to 2^64 - 1";
        let keys = keys.map(|given| unsigned_parameter(given, "keys", allowed)).transpose()?;
        if self.join.is_some() {
            return Ok(self.plan.cells());
        }
        let Some(range) = &self.range else { return Ok(self.plan.cells_read(keys)) };
        Ok((range.of_random_boxes().cells_read() * keys.unwrap_or(1) as f64).ceil() as u64)
    }

    /// Whether answering 0 for every box would do as well as this range counter: with so many points no box is off by more
    /// than that, and the error of a random box is no smaller (Lemma 4.2). A coarser grid, fewer axes, more points or a larger
    /// budget are needed then.
    ///
    /// Parameters
    /// ----------
    /// points : int
    ///     How many points there are at most.
    /// confidence : float
    #[pyo3(
        signature = (points, *, confidence = Argument::Absent),
        text_signature = "($self, points, *, confidence=0.95)"
    )]
    fn zero_would_do(&self, points: &Bound<'_, PyAny>, confidence: Argument<'_>) -> PyResult<bool> {
        let range = self.boxes()?;
        let points = unsigned_parameter(points, "points", "an integer from 0 to 2^64 - 1")?;
        let confidence = match confidence {
            Argument::Given(given) => float_parameter(&given, "confidence")?,
            Argument::Absent => 0.95,
        };
        Ok(range.zero_would_do(&range.of_random_boxes(), confidence, points).map_err(CoreError)?)
    }

    /// The parts of the error of a join's estimate, for relations of a profile.
    ///
    /// Parameters
    /// ----------
    /// profile : JoinProfile
    ///
    /// Returns
    /// -------
    /// JoinTerms(sketch, cross, noise, balanced_width, relative_std): standard deviations of what colliding keys, keys
    /// against noise, and noise against noise add (their squares add up, Lemma 5.2); the width at which the first and the last
    /// are equal; and all of it over the size of the join. Above 0.5 an estimate does not tell the join from an empty one: a
    /// larger budget is needed, or larger relations.
    fn join_terms<'py>(&self, py: Python<'py>, profile: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let Some(join) = self.for_relations(Some(profile))? else {
            return Err(PyTypeError::new_err(format!("a {} is no join", self.parameters.kind().name())));
        };
        let terms = join.terms();
        let class = py.import("fastgame._results")?.getattr("JoinTerms")?;
        class.call1((terms.sketch, terms.cross, terms.noise, join.balanced_width(), join.relative_std()))
    }

    /// How many buffers the noise of a cell has, of mechanism="blt"; None for others.
    #[getter]
    fn buffers(&self) -> Option<usize> {
        self.plan.calibration().buffers()
    }

    /// How many random variables a read of a cell draws at most, however much time has passed: normals, or gamma variables of
    /// a PureDp.
    #[getter]
    fn variables(&self) -> u64 {
        self.plan.draws_of_cell()
    }

    /// All mechanisms that the budget allows beside each other, and which to choose.
    ///
    /// Errors are computed; time and memory are measured on a small structure, now and here. The choice goes by the error at
    /// the end alone: blt if it has 0.95 of that of the tree or less. Time is shown but not weighed: a read of one cell alone
    /// takes several times as long with blt, most of all at long horizons, whose blt has more buffers.
    ///
    /// Parameters
    /// ----------
    /// reads : int, optional
    ///     How many steps are read, evenly over the horizon; the smaller of it and 1000 if it is left out.
    /// keys : int, optional
    ///     How many cells of a vector, keys of a sketch or boxes are read at such a step, at random; everything if it is left
    ///     out. A join is always read whole.
    /// profile : FrequencyProfile or JoinProfile, optional
    ///     As for `error`: without one the errors of a sketch or join are those of noise alone, to which colliding keys add the
    ///     same under every mechanism.
    ///
    /// Returns
    /// -------
    /// Comparison(mechanisms, choice, why, noise_alone): a MechanismPlan(mechanism, buffers, plan, error_now, error_at_end,
    /// memory, time, variables) for each; errors at 95 %, the most memory in bytes that there is after any of these reads,
    /// time in nanoseconds a cell that is read; and whether the errors leave out what collides. It prints as a table.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     Unless 1 <= reads <= horizon and keys >= 1; for more keys than a vector has cells; what `error` raises for a profile.
    #[pyo3(signature = (*, reads = None, keys = None, profile = None))]
    fn compare<'py>(
        slf: &Bound<'py, Self>,
        reads: Option<&Bound<'py, PyAny>>,
        keys: Option<&Bound<'py, PyAny>>,
        profile: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let plan = slf.get();
        let count = |given: Option<&Bound<'py, PyAny>>, name, most, allowed: &str| {
            let count: Option<u64> = given.map(|given| unsigned_parameter(given, name, allowed)).transpose()?;
            match count {
                Some(count) if !(1..=most).contains(&count) => {
                    Err(PyValueError::new_err(format!("{name} must be {allowed}; {count} was given")))
                }
                _ => Ok(count),
            }
        };
        let horizon = plan.parameters.horizon;
        let allowed = format!("None or a number of steps from 1 to the horizon, {horizon}");
        let reads = count(reads, "reads", horizon, &allowed)?;
        let keys = match plan.parameters.kind() {
            Kind::Counter | Kind::Vector => {
                let cells = plan.plan.cells();
                count(keys, "keys", cells, &format!("None or a number of cells from 1 to all, {cells}"))?
            }
            _ => count(keys, "keys", u64::MAX, "None or an integer from 1 to 2^64 - 1")?,
        };
        python(slf.py(), "compare")?.call1((slf, reads, keys, profile))
    }

    /// Nanoseconds for a cell that is read, and the most bytes after any of these reads: measured on a small structure with the
    /// same noise.
    fn _measure(&self, py: Python<'_>, reads: u64, keys: Option<u64>) -> PyResult<(f64, u64)> {
        let size = self.plan.cells();
        let read = match (keys, &self.range) {
            (Some(keys), None) if self.join.is_none() => self.plan.cells_read(Some(keys)),
            (Some(keys), Some(range)) => (range.of_random_boxes().cells_read() * keys as f64).min(size as f64) as u64,
            _ => size,
        };
        let parameters = &self.parameters;
        py.detach(|| measure(parameters, size, read, reads)).map(|(time, noise)| {
            let noise = noise * size as f64;
            (time, self.plan.memory_at_start().saturating_add(noise as u64))
        })
    }

    /// How many components a range counter has, and how many of them are dense: a tuple.
    #[getter]
    fn components(&self) -> PyResult<(usize, usize)> {
        self.boxes().map(RangePlan::components)
    }

    /// The cost and the error of a count of a range counter.
    ///
    /// Parameters
    /// ----------
    /// lo, hi
    ///     One box, as `RangeCounter.count` takes it.
    /// sides : tuple of int, optional
    ///     Instead: boxes of these side lengths, in coordinates of the grid, on average over their positions. Without either:
    ///     random boxes, all that are not empty as likely.
    /// confidence : float
    /// second_moment : float
    ///     Of the counts of the rectangles of a sketched component, for what collisions add: n points make from n (each
    ///     in a rectangle of its own) to n^2 (all in one). 0: noise alone.
    /// at : int, optional
    ///     The time step, as for `error`.
    ///
    /// Returns
    /// -------
    /// BoxPlan(cells_read, noise_std, std, error): how many cells are read, the standard deviation of the noise, that with
    /// collisions, and what the error stays within with probability `confidence`.
    #[pyo3(
        name = "box",
        signature = (lo = None, hi = None, *, sides = None, confidence = Argument::Absent, second_moment = Argument::Absent,
            at = None),
        text_signature = "($self, lo=None, hi=None, *, sides=None, confidence=0.95, second_moment=0.0, at=None)"
    )]
    #[expect(clippy::too_many_arguments, reason = "keywords of Python")]
    fn of_box<'py>(
        &self,
        py: Python<'py>,
        lo: Option<&Bound<'py, PyAny>>,
        hi: Option<&Bound<'py, PyAny>>,
        sides: Option<&Bound<'py, PyAny>>,
        confidence: Argument<'_>,
        second_moment: Argument<'_>,
        at: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let range = &self.boxes()?.at(self.step(at)?).map_err(CoreError)?;
        let confidence = match confidence {
            Argument::Given(given) => float_parameter(&given, "confidence")?,
            Argument::Absent => 0.95,
        };
        let second_moment = match second_moment {
            Argument::Given(given) => float_parameter(&given, "second_moment")?,
            Argument::Absent => 0.0,
        };
        if !(second_moment >= 0.0 && second_moment.is_finite()) {
            return Err(PyValueError::new_err(format!(
                "second_moment must be a number that is at least 0; {second_moment} was given"
            )));
        }
        if lo.is_none() && hi.is_some() {
            return Err(PyTypeError::new_err("a box is given by two corners; hi was given without lo"));
        }
        let cost: BoxError = match (lo, sides) {
            (None, None) => range.of_random_boxes(),
            (Some(lo), None) => {
                let Some(own) = self.parameters.own_range() else { return Err(PyTypeError::new_err("no boxes")) };
                range.of_box(&boxes_of(py, own, lo, hi)?).map_err(CoreError)?
            }
            (None, Some(sides)) => {
                let sides = integers(sides, "sides", Beyond::Refuse)?.values.into_weights();
                // A negative one is as wrong as one of length 0.
                let sides: Vec<u64> = sides.into_iter().map(|side| u64::try_from(side).unwrap_or(0)).collect();
                range.of_sides(&sides).map_err(CoreError)?
            }
            (Some(_), Some(_)) => return Err(PyTypeError::new_err("give either a box or sides, not both")),
        };
        let error = cost.error(confidence, second_moment).map_err(CoreError)?;
        let class = py.import("fastgame._results")?.getattr("BoxPlan")?;
        class.call1((cost.cells_read(), cost.noise_std(), cost.std(second_moment), error))
    }

    /// The step of the lattice on which releases lie.
    #[getter]
    fn lattice_step(&self) -> f64 {
        self.plan.lattice_step()
    }

    /// A bound on the memory in bytes, whenever the structure is read, if it is always read whole. Of a RangeCounter, whose
    /// boxes read their cells one by one even if they are all boxes of a grid: the same as `memory_one_by_one`.
    #[getter]
    fn memory(&self) -> u64 {
        self.plan.memory_at_most(self.range.is_none())
    }

    /// Memory in bytes before anything is read.
    #[getter]
    fn memory_at_start(&self) -> u64 {
        self.plan.memory_at_start()
    }

    /// A bound on the memory in bytes, whenever cells are read, one by one or some at a time. A structure that is read whole as
    /// well may keep both: at most this and `memory`.
    #[getter]
    fn memory_one_by_one(&self) -> u64 {
        self.plan.memory_at_most(false)
    }

    /// The error that `releases` given releases all stay within with probability `confidence` (or more: union bound). Of a
    /// range counter: that of a random box by noise alone; see `box`. Of a join: whatever the keys are (Chebyshev's inequality
    /// and the median), about twice what 1.96 standard deviations would be.
    ///
    /// Parameters
    /// ----------
    /// confidence : float
    /// releases : int
    ///     How many answers are meant, of any cells and keys at any steps.
    /// at : int, optional
    ///     The time step, 1 (now) to the horizon (the end); the end if it is left out, where the error is largest.
    /// profile : FrequencyProfile, optional
    ///     Of a sketch: what the stream is like at that step (of a join: a JoinProfile). Without one the error is that of
    ///     estimates by noise alone, to which colliding keys add.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     Unless 0 < confidence < 1 and releases >= 1; for a step beyond the horizon; for a profile where there are no
    ///     collisions, of counters and vectors.
    #[pyo3(
        signature = (confidence = Argument::Absent, releases = Argument::Absent, *, at = None, profile = None),
        text_signature = "($self, confidence=0.95, releases=1, *, at=None, profile=None)"
    )]
    fn error(
        &self,
        py: Python<'_>,
        confidence: Argument<'_>,
        releases: Argument<'_>,
        at: Option<&Bound<'_, PyAny>>,
        profile: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<f64> {
        let confidence = match confidence {
            Argument::Given(given) => float_parameter(&given, "confidence")?,
            Argument::Absent => 0.95,
        };
        let releases = match releases {
            Argument::Given(given) => unsigned_parameter(&given, "releases", "an integer from 1 to 2^64 - 1")?,
            Argument::Absent => 1,
        };
        let step = self.step(at)?;
        if let Some(join) = self.for_relations(profile)? {
            let error = join.at(step).and_then(|join| join.error_of_all(confidence, releases));
            return Ok(error.map_err(CoreError)?);
        }
        let profile = profile.map(profile_parameter).transpose()?.map(Bound::get);
        let error = py.detach(|| self.plan.error_at(step, confidence, releases, profile.map(|profile| &profile.0)));
        // What is refused is refused for all kinds.
        let of_cell = error.map_err(CoreError)?;
        let Some(boxes) = self.random_boxes(step)? else { return Ok(of_cell) };
        Ok(boxes.error_of_all(confidence, releases, 0.0).map_err(CoreError)?)
    }

    /// The standard deviation of the error of one answer: of a cell, or of a sketch's estimate.
    ///
    /// `at` and `profile` as for `error`. Heavy keys that collide make a sketch's standard deviation, and hardly its
    /// error: that says more.
    #[pyo3(signature = (*, at = None, profile = None))]
    fn std(&self, py: Python<'_>, at: Option<&Bound<'_, PyAny>>, profile: Option<&Bound<'_, PyAny>>) -> PyResult<f64> {
        let step = self.step(at)?;
        if let Some(join) = self.for_relations(profile)? {
            return Ok(join.at(step).map_err(CoreError)?.std());
        }
        let profile = profile.map(profile_parameter).transpose()?.map(Bound::get);
        let std = py.detach(|| self.plan.std_at(step, profile.map(|profile| &profile.0)));
        let of_cell = std.map_err(CoreError)?;
        Ok(self.random_boxes(step)?.map_or(of_cell, |boxes| boxes.noise_std()))
    }

    /// The plan as rows of a name and a text: what printing it shows.
    ///
    /// A list of pairs: budget, errors now and at the end, memory, cells read; with a FrequencyProfile, what collisions
    /// add.
    #[pyo3(signature = (profile = None))]
    fn summary<'py>(slf: &Bound<'py, Self>, profile: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
        python(slf.py(), "summary")?.call1((slf, profile))
    }

    /// What other parameters would cost: longer horizons, the other unit, more contributions, half the budget.
    ///
    /// A list of WhatIf(change, plan, error, ratio): the changed plan, its error at 95 % at the end (under the profile, if
    /// one is given), and that over the present one.
    #[pyo3(signature = (profile = None))]
    fn what_if<'py>(slf: &Bound<'py, Self>, profile: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
        python(slf.py(), "what_if")?.call1((slf, profile))
    }

    /// The plan of a ContinualVector with a cell for each of so many keys, if that does better than this sketch.
    ///
    /// Where all keys can be listed beforehand (a public domain) and are no more than the sketch has cells, a vector has
    /// less error: no collisions, and noise for one row. None if they are more, or if this is no sketch.
    fn fits_in_vector<'py>(slf: &Bound<'py, Self>, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let keys: u64 = unsigned_parameter(keys, "keys", "an integer from 1 to 2^64 - 1")?;
        python(slf.py(), "fits_in_vector")?.call1((slf, keys))
    }

    /// Draws the plan into a file: error over time, over horizons for both units, and over widths of a sketch.
    ///
    /// Parameters
    /// ----------
    /// path : str or path
    ///     The ending says the format: .png, .svg, .pdf.
    /// profile : FrequencyProfile, optional
    ///     Of a sketch: with the collisions of such a stream.
    ///
    /// Raises
    /// ------
    /// ImportError
    ///     Matplotlib is not installed: pip install "fastgame-dp[plot]".
    #[pyo3(signature = (path, *, profile = None))]
    fn plot<'py>(
        slf: &Bound<'py, Self>,
        path: &Bound<'py, PyAny>,
        profile: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<()> {
        python(slf.py(), "draw_plan")?.call1((slf, path, profile)).map(|_| ())
    }

    /// Builds the structure: new at each call, with noise of its own.
    fn build(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        crate::store::object(py, Structure::new(self.parameters.clone())?)
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        let Ok(other) = other.cast::<Self>() else { return Ok(false) };
        let (ours, theirs) = (&self.parameters, &other.get().parameters);
        Ok(ours.kind() == theirs.kind() && ours.keywords(py)?.eq(theirs.keywords(py)?)?)
    }

    fn __str__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        python(slf.py(), "as_text")?.call1((slf,))
    }

    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        python(slf.py(), "as_html")?.call1((slf,))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("<plan of {}: noise_std={:.6}>", self.parameters.describe(py)?, self.plan.noise_std()))
    }
}
