//! What all structures share: one live mechanism behind a lock, its generator, clock and parameters.

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, ThreadId};

use chacha20::ChaCha12Rng;
use fastgame_core::rand_core::SeedableRng;
use fastgame_core::{
    Cells, ContinualVector, CountSketch, Durable, Error, Index, JoinSize, Journal, Quantity, RangeCounter, Rows,
};
use fastgame_store::{State, Store};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::PyTuple;

use crate::arrays::{integer_parameter, shown_integer};
use crate::error::{CopyError, CoreError, HorizonError, StateError, StoreError, no_entropy};
use crate::parameters::{Blueprint, Parameters};

/// Work on more elements than this lets other Python threads run meanwhile.
const DETACH_ABOVE: usize = 4096;

/// What all structures share: clock, budget and parameters. Base class of ContinualCounter, ContinualVector and
/// CountSketch.
///
/// A structure is a live mechanism: it may be used from several threads, and cannot be copied, pickled or used in a
/// forked process (CopyError).
#[pyclass(frozen, subclass, module = "fastgame")]
pub(crate) struct Structure {
    parameters: Parameters,
    /// The process that made the mechanism, the only one that may use it.
    process: Process,
    is_durable: bool,
    home: Mutex<Home>,
}

/// How many forks of Python lie between this process and the one that loaded the module.
static FORKS: AtomicU64 = AtomicU64::new(0);

/// Called in the child of every fork that Python makes.
#[pyfunction]
pub(crate) fn _after_fork_in_child(py: Python<'_>) -> PyResult<()> {
    FORKS.fetch_add(1, Ordering::Relaxed);
    // The child lets the files of stores go: it shares their locks with its parent, which may end before it.
    #[cfg(unix)]
    {
        let os = py.import("os")?;
        let null = os.call_method1("open", (os.getattr("devnull")?, os.getattr("O_RDWR")?))?;
        let mut replaced = Ok(());
        fastgame_store::release_after_fork(|number| {
            // Not inheritable, as the file was.
            if let Err(error) = os.call_method1("dup2", (&null, number, false)) {
                replaced = Err(error);
            }
        });
        os.call_method1("close", (null,))?;
        replaced
    }
    #[cfg(not(unix))]
    {
        let _ = py;
        Ok(())
    }
}

/// Tells a process from its forks. The number of a process alone does not: in a namespace of its own a child may have the
/// number of its parent. The count of forks alone does not either: it misses those that Python does not make.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct Process {
    id: u32,
    forks: u64,
}

impl Process {
    pub(crate) fn current() -> Self {
        Self { id: std::process::id(), forks: FORKS.load(Ordering::Relaxed) }
    }
}

/// What changes.
pub(crate) struct Live {
    engine: Engine,
    pub(crate) rng: ChaCha12Rng,
    dropped: u64,
}

/// What core built.
enum Engine {
    Vector(ContinualVector),
    Sketch(CountSketch),
    Range(RangeCounter),
    Join(JoinSize),
}

/// Python lets the class of an object be changed to one of equal layout; a method then finds the wrong engine.
const WRONG_ENGINE: Error = Error::Shape { what: "the class of this object was changed; it is not used so" };

/// Runs an expression for whichever structure there is.
macro_rules! with_engine {
    ($engine:expr, $name:ident => $body:expr) => {
        match $engine {
            Engine::Vector($name) => $body,
            Engine::Sketch($name) => $body,
            Engine::Range($name) => $body,
            Engine::Join($name) => $body,
        }
    };
}

impl Live {
    /// A new structure. Its generator follows from the seed, if there is one.
    pub(crate) fn new(parameters: &Parameters) -> PyResult<Self> {
        let (kind, seed) = (parameters.kind().name(), parameters.insecure_seed);
        let (engine, insecure_key) = match parameters.blueprint() {
            Blueprint::Vector(builder) => {
                let key = seed.map(|seed| builder.insecure_key(kind, seed));
                (Engine::Vector(builder.build().map_err(CoreError)?), key)
            }
            Blueprint::Sketch(builder) => {
                let key = seed.map(|seed| builder.insecure_key(kind, seed)).transpose().map_err(CoreError)?;
                (Engine::Sketch(builder.build().map_err(CoreError)?), key)
            }
            Blueprint::Range(builder) => {
                let key = seed.map(|seed| builder.insecure_key(kind, seed)).transpose().map_err(CoreError)?;
                (Engine::Range(builder.build().map_err(CoreError)?), key)
            }
            Blueprint::Join(builder) => {
                let key = seed.map(|seed| builder.insecure_key(kind, seed)).transpose().map_err(CoreError)?;
                (Engine::Join(builder.build().map_err(CoreError)?), key)
            }
        };
        let key = match insecure_key {
            Some(key) => key,
            None => {
                let mut key = [0; 32];
                getrandom::fill(&mut key).map_err(|error| no_entropy(&error))?;
                key
            }
        };
        Ok(Self { engine, rng: ChaCha12Rng::from_seed(key), dropped: 0 })
    }

    /// Goes on after so many calls of a former process: nothing that those may have drawn is drawn again, even with a seed.
    pub(crate) fn skip_streams(&mut self, calls: u64) {
        self.rng.set_stream(calls);
    }

    fn vector(&self) -> &ContinualVector {
        match &self.engine {
            Engine::Vector(vector) => vector,
            Engine::Sketch(sketch) => sketch.vector(),
            Engine::Range(range) => range.vector(),
            Engine::Join(join) => join.vector(),
        }
    }

    fn advance(&mut self, to: u64) -> Result<(), Error> {
        with_engine!(&mut self.engine, engine => engine.advance(to))
    }

    fn memory(&self) -> usize {
        with_engine!(&self.engine, engine => engine.memory())
    }
}

/// What a store keeps.
impl State for Live {
    fn parameters(&self) -> Vec<(&'static str, String)> {
        with_engine!(&self.engine, engine => engine.named_parameters())
    }

    fn noise_numbers(&self) -> Vec<f64> {
        with_engine!(&self.engine, engine => Durable::noise_numbers(engine))
    }

    fn keep_journal(&mut self) {
        with_engine!(&mut self.engine, engine => Durable::keep_journal(engine));
    }

    fn take_journal(&mut self) -> Journal {
        with_engine!(&mut self.engine, engine => Durable::take_journal(engine))
    }

    fn replay(&mut self, records: &[u8]) -> Result<(), Error> {
        with_engine!(&mut self.engine, engine => Durable::replay(engine, records))
    }

    fn check_whole(&self) -> Result<(), Error> {
        with_engine!(&self.engine, engine => Durable::check_whole(engine))
    }

    fn image(&self, each: &mut dyn FnMut(&[u8]) -> fastgame_store::Result<()>) -> fastgame_store::Result<()> {
        with_engine!(&self.engine, engine => Durable::image(engine, each))
    }

    fn now(&self) -> u64 {
        self.vector().now()
    }

    fn is_sealed(&self) -> bool {
        self.vector().is_sealed()
    }

    fn dropped(&self) -> u64 {
        self.dropped
    }

    fn set_dropped(&mut self, dropped: u64) {
        self.dropped = dropped;
    }
}

/// Where a structure lives.
pub(crate) struct Home {
    place: Place,
    is_closed: bool,
    held: Option<Hold>,
}

/// Calls that wait to be written as one. What they answer must not leave before, so others do not call meanwhile.
struct Hold {
    /// Who holds.
    thread: ThreadId,
    /// Whether those who are called back may not call either.
    is_paused: bool,
}

const HELD: &str = "a replay holds this structure: what it does is written as one, and nothing may be answered before; use it \
                    when the replay is over";

#[expect(clippy::large_enum_variant, reason = "there is one a structure, and the fast one is not boxed")]
enum Place {
    Memory(Live),
    Store(Store<Live>),
}

impl Home {
    fn live(&self) -> &Live {
        match &self.place {
            Place::Memory(live) => live,
            Place::Store(store) => store.state(),
        }
    }

    /// What must be neither closed, nor held by others.
    fn open(&mut self) -> Result<&mut Place, &'static str> {
        let is_ours = |hold: &Hold| !hold.is_paused && hold.thread == thread::current().id();
        if self.is_closed {
            Err("this structure was closed; it is not used again")
        } else if self.held.as_ref().is_some_and(|hold| !is_ours(hold)) {
            Err(HELD)
        } else {
            Ok(&mut self.place)
        }
    }

    fn store(&self) -> Option<&Store<Live>> {
        match &self.place {
            Place::Store(store) => Some(store),
            Place::Memory(_) => None,
        }
    }

    fn close(&mut self) -> fastgame_store::Result<()> {
        let was_closed = std::mem::replace(&mut self.is_closed, true);
        self.held = None;
        match &mut self.place {
            Place::Store(store) if !was_closed => store.close(),
            _ => Ok(()),
        }
    }
}

/// Runs a call under a lock; `work` elements of it decide whether other threads may run meanwhile.
pub(crate) fn locked<L: Send, T: Send>(
    py: Python<'_>,
    lock: &Mutex<L>,
    work: usize,
    call: impl FnOnce(&mut L) -> T + Send,
) -> PyResult<T> {
    let poisoned =
        || StateError(py, "an earlier call on this structure was interrupted by a fault; it is not used again");
    if work > DETACH_ABOVE {
        py.detach(|| lock.lock().map(|mut inner| call(&mut inner)).map_err(|_| ())).map_err(|()| poisoned())
    } else {
        lock.lock_py_attached(py).map(|mut inner| call(&mut inner)).map_err(|_| poisoned())
    }
}

impl Structure {
    /// A structure in memory.
    pub(crate) fn new(parameters: Parameters) -> PyResult<Self> {
        let live = Live::new(&parameters)?;
        Ok(Self::at(parameters, Place::Memory(live)))
    }

    /// A structure in a store.
    pub(crate) fn durable(parameters: Parameters, store: Store<Live>) -> Self {
        Self::at(parameters, Place::Store(store))
    }

    fn at(parameters: Parameters, place: Place) -> Self {
        let is_durable = matches!(place, Place::Store(_));
        let home = Mutex::new(Home { place, is_closed: false, held: None });
        Self { parameters, process: Process::current(), is_durable, home }
    }

    pub(crate) fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// Whether invalid elements are left out.
    pub(crate) fn drops(&self) -> bool {
        self.parameters.invalid == "drop"
    }

    /// Runs something under the lock, in the process that made the mechanism.
    fn at_home<T: Send>(&self, py: Python<'_>, work: usize, call: impl FnOnce(&mut Home) -> T + Send) -> PyResult<T> {
        // Before the lock: a fork may have copied it while it was held.
        if Process::current() != self.process {
            return Err(CopyError(
                py,
                "this structure was copied into another process by a fork; a second copy that answers would be a \
                 second release of the data. Use it in the process that made it, or make a new one here with a budget \
                 of its own",
            ));
        }
        // A disk is waited for without holding others up.
        locked(py, &self.home, if self.is_durable { usize::MAX } else { work }, call)
    }

    /// Runs one core call; what it does is on the disk, if the structure has a store, before its result is here.
    fn with<T: Send>(&self, py: Python<'_>, work: usize, call: impl FnOnce(&mut Live) -> T + Send) -> PyResult<T> {
        let called = self.at_home(py, work, |home| match home.open()? {
            Place::Memory(live) => Ok::<_, &str>(Ok(call(live))),
            Place::Store(store) => Ok(store.call(call)),
        })?;
        called.map_err(|message| StateError(py, message))?.map_err(|error| StoreError(error).into())
    }

    /// Runs something on the store, of which there is one.
    fn with_store<T: Send>(
        &self,
        py: Python<'_>,
        call: impl FnOnce(&mut Store<Live>, &mut Option<Hold>) -> fastgame_store::Result<T> + Send,
    ) -> PyResult<T> {
        let called = self.at_home(py, 0, |home| {
            home.open()?;
            match &mut home.place {
                Place::Store(store) => Ok(call(store, &mut home.held)),
                Place::Memory(_) => {
                    Err("this structure is in memory alone; make it with fastgame.open to keep it in a file")
                }
            }
        })?;
        called.map_err(|message| StateError(py, message))?.map_err(|error| StoreError(error).into())
    }

    /// Adds rows, and counts what was dropped for the operator.
    pub(crate) fn update_rows<I, V>(&self, py: Python<'_>, rows: Rows<'_, I, V>) -> PyResult<()>
    where
        I: Index + Sync,
        V: Quantity + Sync,
    {
        let work = match rows {
            Rows::Dense { values } | Rows::Sparse { values, .. } | Rows::Single { values, .. } => values.len(),
            _ => usize::MAX,
        };
        self.call(py, work, |live| {
            let Engine::Vector(vector) = &mut live.engine else { return Err(WRONG_ENGINE) };
            live.dropped += vector.update_rows(rows)?;
            Ok(())
        })
    }

    pub(crate) fn release<I: Index + Sync>(&self, py: Python<'_>, cells: Cells<'_, I>) -> PyResult<Vec<f64>> {
        let work = match cells {
            Cells::Indices(indices) => indices.len(),
            _ => self.parameters.cells(),
        };
        self.call(py, work, |live| {
            let Engine::Vector(vector) = &mut live.engine else { return Err(WRONG_ENGINE) };
            vector.release(cells, &mut live.rng)
        })
    }

    /// Releases the only cell.
    pub(crate) fn release_one(&self, py: Python<'_>) -> PyResult<f64> {
        self.call(py, 1, |live| {
            let Engine::Vector(vector) = &mut live.engine else { return Err(WRONG_ENGINE) };
            vector.release_one(0u64, &mut live.rng)
        })
    }

    /// Calls the sketch with its generator.
    pub(crate) fn with_sketch<T: Send>(
        &self,
        py: Python<'_>,
        work: usize,
        call: impl FnOnce(&mut CountSketch, &mut ChaCha12Rng) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        self.call(py, work, |live| {
            let Engine::Sketch(sketch) = &mut live.engine else { return Err(WRONG_ENGINE) };
            call(sketch, &mut live.rng)
        })
    }

    /// Updates the sketch, and counts for the operator what was dropped.
    pub(crate) fn update_sketch(
        &self,
        py: Python<'_>,
        work: usize,
        update: impl FnOnce(&mut CountSketch) -> Result<u64, Error> + Send,
    ) -> PyResult<()> {
        self.call(py, work, |live| {
            let Engine::Sketch(sketch) = &mut live.engine else { return Err(WRONG_ENGINE) };
            live.dropped += update(sketch)?;
            Ok(())
        })
    }

    /// Calls the range counter with its generator.
    pub(crate) fn with_range<T: Send>(
        &self,
        py: Python<'_>,
        work: usize,
        call: impl FnOnce(&mut RangeCounter, &mut ChaCha12Rng) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        self.call(py, work, |live| {
            let Engine::Range(range) = &mut live.engine else { return Err(WRONG_ENGINE) };
            call(range, &mut live.rng)
        })
    }

    /// Updates the range counter, and counts for the operator what was dropped.
    pub(crate) fn update_range(
        &self,
        py: Python<'_>,
        work: usize,
        update: impl FnOnce(&mut RangeCounter) -> Result<u64, Error> + Send,
    ) -> PyResult<()> {
        self.call(py, work, |live| {
            let Engine::Range(range) = &mut live.engine else { return Err(WRONG_ENGINE) };
            live.dropped += update(range)?;
            Ok(())
        })
    }

    /// Calls the join with its generator.
    pub(crate) fn with_join<T: Send>(
        &self,
        py: Python<'_>,
        work: usize,
        call: impl FnOnce(&mut JoinSize, &mut ChaCha12Rng) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        self.call(py, work, |live| {
            let Engine::Join(join) = &mut live.engine else { return Err(WRONG_ENGINE) };
            call(join, &mut live.rng)
        })
    }

    /// Updates the join, and counts for the operator what was dropped.
    pub(crate) fn update_join(
        &self,
        py: Python<'_>,
        work: usize,
        update: impl FnOnce(&mut JoinSize) -> Result<u64, Error> + Send,
    ) -> PyResult<()> {
        self.call(py, work, |live| {
            let Engine::Join(join) = &mut live.engine else { return Err(WRONG_ENGINE) };
            live.dropped += update(join)?;
            Ok(())
        })
    }

    /// As `with`, for a core call that can fail.
    fn call<T: Send>(
        &self,
        py: Python<'_>,
        work: usize,
        call: impl FnOnce(&mut Live) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        self.with(py, work, call)?.map_err(|error| CoreError(error).into())
    }

    /// Looks at what is public, also after the end.
    fn read<T: Send>(&self, py: Python<'_>, read: impl FnOnce(&ContinualVector) -> T + Send) -> PyResult<T> {
        self.look(py, |live| read(live.vector()))
    }

    fn pause(&self, py: Python<'_>, is_paused: bool) -> PyResult<()> {
        self.at_home(py, 0, |home| {
            if let Some(hold) = &mut home.held {
                hold.is_paused = is_paused;
            }
        })
    }

    fn look<T: Send>(&self, py: Python<'_>, look: impl FnOnce(&Live) -> T + Send) -> PyResult<T> {
        self.at_home(py, 0, |home| look(home.live()))
    }
}

pub(crate) fn refuse_copy(py: Python<'_>) -> PyErr {
    CopyError(
        py,
        "a live mechanism cannot be copied or pickled: a second copy that answers would be a second release of the data. \
         Share the one object (it may be used from several threads), or make a new structure with a budget of its own",
    )
}

#[pymethods]
impl Structure {
    /// The present time step, 1 to `horizon`.
    #[getter]
    fn now(&self, py: Python<'_>) -> PyResult<u64> {
        self.read(py, ContinualVector::now)
    }

    /// The number of time steps.
    #[getter]
    fn horizon(&self) -> u64 {
        self.parameters.horizon
    }

    /// Whether the present step was released, so that updates must wait for the next one.
    #[getter]
    fn sealed(&self, py: Python<'_>) -> PyResult<bool> {
        self.read(py, ContinualVector::is_sealed)
    }

    /// The budget for all answers together.
    #[getter]
    fn privacy(&self, py: Python<'_>) -> Py<PyAny> {
        self.parameters.privacy(py)
    }

    /// How noise is correlated over time.
    #[getter]
    fn mechanism(&self) -> &'static str {
        self.parameters.mechanism
    }

    /// How many buffers a cell's noise has, of mechanism="blt"; None for others.
    #[getter]
    fn buffers(&self, py: Python<'_>) -> PyResult<Option<usize>> {
        self.read(py, |vector| vector.calibration().buffers())
    }

    /// What neighbouring data differ in.
    #[getter]
    fn protect(&self) -> &'static str {
        self.parameters.protect
    }

    /// How many units of one person are protected together.
    #[getter]
    fn contributions(&self) -> u32 {
        self.parameters.contributions
    }

    /// What happens to an update over its bound.
    #[getter]
    fn on_excess(&self) -> &'static str {
        self.parameters.on_excess
    }

    /// What happens to an invalid element.
    #[getter]
    fn invalid(&self) -> &'static str {
        self.parameters.invalid
    }

    /// The seed, if one was given: then the noise is not secret.
    #[getter]
    fn insecure_seed(&self) -> Option<u64> {
        self.parameters.insecure_seed
    }

    /// The step of the lattice on which releases lie: a power of two fixed by the noise scale.
    #[getter]
    fn lattice_step(&self, py: Python<'_>) -> PyResult<f64> {
        self.read(py, ContinualVector::lattice_step)
    }

    /// Memory in use, in bytes. It depends on what was read and when, not on data.
    #[getter]
    fn memory(&self, py: Python<'_>) -> PyResult<usize> {
        self.look(py, Live::memory)
    }

    /// How many elements invalid="drop" has left out. NOT PRIVATE: for the operator alone, never to be published.
    #[getter]
    fn dropped(&self, py: Python<'_>) -> PyResult<u64> {
        self.look(py, |live| live.dropped)
    }

    /// The standard deviation of the noise of a release at the present step, in the units of the values.
    fn noise_std(&self, py: Python<'_>) -> PyResult<f64> {
        self.read(py, ContinualVector::noise_std)
    }

    /// Moves the public clock: by one step, or to step `to`.
    ///
    /// Advance by wall-clock time or at public batch boundaries, whether or not data came: a clock that follows the data
    /// gives the data away.
    ///
    /// Raises
    /// ------
    /// HorizonError
    ///     A step in the past or beyond the horizon. (Staying at `now` is allowed.)
    #[pyo3(signature = (*, to = None))]
    fn advance(&self, py: Python<'_>, to: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let to = match to {
            None => None,
            Some(to) => {
                let given = integer_parameter(to, "to")?;
                Some(u64::try_from(given).map_err(|_| {
                    let given = shown_integer(to);
                    HorizonError(py, format!("to must be a step from now to the horizon; {given} was given"))
                })?)
            }
        };
        self.call(py, 0, |live| {
            // One past a step of at most 2^62 does not overflow.
            let to = to.unwrap_or_else(|| live.vector().now() + 1);
            live.advance(to)
        })
    }

    /// The file that keeps the structure; None for one in memory alone.
    #[getter]
    fn path(&self, py: Python<'_>) -> PyResult<Option<PathBuf>> {
        self.at_home(py, 0, |home| home.store().map(|store| store.path().to_owned()))
    }

    /// How many calls the store has written down in its whole life; None for a structure in memory alone. For the operator:
    /// how many calls there were may depend on the data.
    ///
    /// Each update that returned counts one, whatever it held; a read, if it drew noise or sealed the step; a step of the
    /// clock; a replay counts one in all. Note it elsewhere, and give it to `fastgame.open(expect_generation=)`: an older copy of the file is then refused.
    #[getter]
    fn generation(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        self.at_home(py, 0, |home| home.store().map(Store::generation))
    }

    /// Waits until all that was done is on the disk. Needed with sync="reads" alone.
    ///
    /// Raises
    /// ------
    /// StateError
    ///     The structure is in memory alone, or was closed.
    /// OSError
    ///     The disk failed; the object is not used again.
    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        self.with_store(py, |store, _| store.sync())
    }

    /// Writes the whole state into a new file in place of the old one, which opens faster than a long journal.
    ///
    /// Done now and then without being asked: the journal is at most about as long as the state, or 1 MiB.
    ///
    /// Raises
    /// ------
    /// StateError
    ///     The structure is in memory alone, or was closed; the file has a second name (a hard link), and goes on as it is.
    /// OSError
    ///     There is no room for a new file, or no permission to make one; the old one goes on.
    fn checkpoint(&self, py: Python<'_>) -> PyResult<()> {
        self.with_store(py, |store, _| store.checkpoint())
    }

    /// Ends the use of the structure: with a store, what was done is synced and the file let go. Closing twice is allowed.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.at_home(py, usize::MAX, Home::close)?.map_err(|error| StoreError(error).into())
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_error))]
    fn __exit__(&self, py: Python<'_>, _error: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.close(py)
    }

    /// What the store was made with, as `fastgame/_store.py` wrote it; None for a structure in memory alone.
    #[getter]
    fn _words(&self, py: Python<'_>) -> PyResult<Option<String>> {
        self.at_home(py, 0, |home| home.store().map(|store| store.parameters().face.clone()))
    }

    /// Lets what is done be written as one, by `_commit`; nothing that is answered until then may leave. For `replay`.
    fn _hold(&self, py: Python<'_>) -> PyResult<()> {
        self.with_store(py, |store, held| {
            store.hold()?;
            *held = Some(Hold { thread: thread::current().id(), is_paused: false });
            Ok(())
        })
    }

    fn _commit(&self, py: Python<'_>) -> PyResult<()> {
        self.with_store(py, |store, held| {
            *held = None;
            store.commit()
        })
    }

    /// While a structure is held, lets nobody call it: for what is called back.
    fn _pause(&self, py: Python<'_>) -> PyResult<()> {
        self.pause(py, true)
    }

    fn _resume(&self, py: Python<'_>) -> PyResult<()> {
        self.pause(py, false)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let now = self.read(py, ContinualVector::now)?;
        Ok(format!("<{} at step {now}>", self.parameters.describe(py)?))
    }

    fn __copy__(&self, py: Python<'_>) -> PyResult<()> {
        Err(refuse_copy(py))
    }

    fn __deepcopy__(&self, py: Python<'_>, _memo: &Bound<'_, PyAny>) -> PyResult<()> {
        Err(refuse_copy(py))
    }

    fn __reduce_ex__(&self, py: Python<'_>, _protocol: &Bound<'_, PyAny>) -> PyResult<()> {
        Err(refuse_copy(py))
    }
}
