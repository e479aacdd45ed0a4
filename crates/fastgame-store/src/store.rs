//! A structure and its file.

use std::io;
use std::path::Path;

use fastgame_core::{Durable, Journal};

use crate::error::{Error, Result};
use crate::file::{Log, resolve};
use crate::format::{Identity, Parameters};
use crate::scan::Part;

/// When what was done must be on the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sync {
    /// Before a call returns.
    #[default]
    Always,
    /// Before an answer leaves. Updates since the last answer are written, so that they survive the process, but may be lost
    /// with the machine until the next answer or [`Store::sync`]. What is lost, no answer has seen.
    Reads,
}

/// How a store is opened.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// When what was done must be on the disk.
    pub sync: Sync,
    /// The store must be of this generation at least, or it is an older copy. Only a number that was kept elsewhere tells.
    pub expect_generation: Option<u64>,
}

/// What is kept: a structure, with what a program has beside it. Implemented by all structures of `fastgame-core`.
pub trait State {
    /// See [`Durable::named_parameters`].
    fn parameters(&self) -> Vec<(&'static str, String)>;

    /// See [`Durable::noise_numbers`].
    fn noise_numbers(&self) -> Vec<f64>;

    /// See [`Durable::keep_journal`].
    fn keep_journal(&mut self);

    /// See [`Durable::take_journal`].
    fn take_journal(&mut self) -> Journal;

    /// See [`Durable::replay`].
    ///
    /// # Errors
    /// As there.
    fn replay(&mut self, records: &[u8]) -> fastgame_core::Result<()>;

    /// See [`Durable::check_whole`].
    ///
    /// # Errors
    /// As there.
    fn check_whole(&self) -> fastgame_core::Result<()>;

    /// See [`Durable::image`].
    ///
    /// # Errors
    /// What `each` returns.
    fn image(&self, each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()>;

    /// The present step.
    fn now(&self) -> u64;

    /// Whether the present step was read.
    fn is_sealed(&self) -> bool;

    /// How many elements were dropped so far, if that is counted.
    fn dropped(&self) -> u64 {
        0
    }

    /// Sets what `dropped` gives.
    fn set_dropped(&mut self, dropped: u64) {
        let _ = dropped;
    }
}

impl<S: Durable> State for S {
    fn parameters(&self) -> Vec<(&'static str, String)> {
        self.named_parameters()
    }

    fn noise_numbers(&self) -> Vec<f64> {
        Durable::noise_numbers(self)
    }

    fn keep_journal(&mut self) {
        Durable::keep_journal(self);
    }

    fn take_journal(&mut self) -> Journal {
        Durable::take_journal(self)
    }

    fn replay(&mut self, records: &[u8]) -> fastgame_core::Result<()> {
        Durable::replay(self, records)
    }

    fn check_whole(&self) -> fastgame_core::Result<()> {
        Durable::check_whole(self)
    }

    fn image(&self, each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        Durable::image(self, each)
    }

    fn now(&self) -> u64 {
        Durable::now(self)
    }

    fn is_sealed(&self) -> bool {
        Durable::is_sealed(self)
    }
}

/// A structure whose state is in a file. What a call does is in the file before the call returns, answers too, so that after
/// any stop the store goes on where the last call that returned left it: with the counters and the noise that it had.
///
/// A store is held by one object at a time ([`Error::InUse`]). After a failed write the object is not used again
/// ([`Error::Failed`]); opened anew, the store goes on.
///
/// ```
/// use chacha20::{ChaCha12Rng, rand_core::SeedableRng};
/// use fastgame_core::{ContinualCounter, ContinualVector, Zcdp};
/// use fastgame_store::{Options, Store};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = std::env::temp_dir().join(format!("fastgame-doc-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder)?;
/// # let path = folder.join("visits.fg");
/// # let _ = std::fs::remove_file(&path);
/// // For this example only: seed from the operating system instead (`getrandom::SysRng`), anew at each start.
/// let mut rng = ChaCha12Rng::from_seed([1; 32]);
/// let make = || ContinualCounter::new(ContinualVector::builder(8_760, Zcdp::new(0.5)?));
/// let identity = rand_identity(&mut rng);
/// let mut visits = Store::open_or_create(&path, Options::default(), identity, make)?;
/// visits.call(|counter| counter.update(&[1i64, 1, -1]))??;
/// let first = visits.call(|counter| counter.release(&mut rng))??;
/// drop(visits); // or the machine stops
///
/// let mut visits = Store::open_or_create(&path, Options::default(), identity, make)?;
/// let mut rng = ChaCha12Rng::from_seed([2; 32]);
/// assert_eq!(visits.call(|counter| counter.release(&mut rng))??, first);
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok(())
/// # }
/// # fn rand_identity(rng: &mut ChaCha12Rng) -> [u8; 16] {
/// #     let mut identity = [0; 16];
/// #     chacha20::rand_core::Rng::fill_bytes(rng, &mut identity);
/// #     identity
/// # }
/// ```
#[derive(Debug)]
pub struct Store<S> {
    state: S,
    parameters: Parameters,
    log: Log,
    sync: Sync,
    /// Why the object is not used again.
    failed: Option<Failure>,
    /// Whether calls wait for a `commit`.
    is_held: bool,
    /// Calls that are written: those of the log may have failed on the way.
    generation: u64,
    /// The journal may grow to so many bytes before the state is written anew.
    most_journal: u64,
    /// Of the names of drafts.
    drafts: u64,
}

#[derive(Clone, Debug)]
enum Failure {
    Write(String),
    Closed,
}

/// A journal up to this length is kept whatever the length of the state.
const LEAST_JOURNAL: u64 = 1 << 20;

impl<S: State> Store<S> {
    /// Makes a store in a file that is not there yet. `identity` is drawn at random; `face` is for the program's own words of
    /// the parameters.
    ///
    /// # Errors
    /// [`Error::Io`], with [`io::ErrorKind::AlreadyExists`] if there is a file.
    pub fn create(path: &Path, options: Options, identity: Identity, mut state: S, face: &str) -> Result<Self> {
        let path = resolve(path)?;
        if let Some(expected) = options.expect_generation.filter(|&expected| expected > 0) {
            return Err(Error::Older { path, generation: 0, expected });
        }
        state.keep_journal();
        state.take_journal();
        let parameters = Parameters::of(&state, face);
        let log = Log::create(&path, identity, &parameters, |log| write_image(log, &state))?;
        Ok(Self::new(state, parameters, log, options.sync))
    }

    /// Opens a store. `build` makes a new structure with the stored parameters; those that it has are compared with them.
    ///
    /// # Errors
    /// [`Error::Io`], with [`io::ErrorKind::NotFound`] if there is no file; [`Error::InUse`]; [`Error::Foreign`],
    /// [`Error::Version`], [`Error::Damaged`], [`Error::Older`]; [`Error::Linked`]; [`Error::Differs`] naming the first parameter that does,
    /// [`Error::Calibration`]; what `build` returns. Nothing has changed then.
    pub fn open<E: From<Error>>(
        path: &Path,
        options: Options,
        build: impl FnOnce(&Parameters) -> Result<S, E>,
    ) -> Result<Self, E> {
        let path = resolve(path)?;
        let (mut build, mut opened) = (Some(build), None::<(S, Parameters)>);
        let (mut log, scan) = Log::open::<E>(&path, |part| match part {
            Part::Parameters(parameters) => {
                let Some(build) = build.take() else { return Ok(()) };
                let mut state = build(&parameters)?;
                check_parameters(&path, &state, &parameters)?;
                state.keep_journal();
                opened = Some((state, parameters));
                Ok(())
            }
            Part::Records { place, dropped, records } => {
                let Some((state, _)) = &mut opened else { return Ok(()) };
                state.set_dropped(dropped);
                let replayed = state.replay(records);
                state.take_journal();
                let unfit = |error| match error {
                    fastgame_core::Error::Journal { what } => Error::Damaged { path: path.clone(), place, what },
                    error => Error::Structure(error),
                };
                Ok(replayed.map_err(unfit)?)
            }
        })?;
        let damaged = |what| Error::Damaged { path: path.clone(), place: scan.end, what };
        let (state, parameters) = opened.ok_or_else(|| damaged("parameters"))?;
        state.check_whole().map_err(|_| damaged("a whole image of the state"))?;
        if (state.now(), state.is_sealed()) != (scan.step, scan.sealed) {
            return Err(damaged("the step of the last frame").into());
        }
        if let Some(expected) = options.expect_generation.filter(|&expected| scan.generation < expected) {
            return Err(Error::Older { path, generation: scan.generation, expected }.into());
        }
        log.mend(&scan)?;
        Ok(Self::new(state, parameters, log, options.sync))
    }

    /// Opens the store, or makes it if there is no file.
    ///
    /// # Errors
    /// As [`Store::open`] and [`Store::create`].
    pub fn open_or_create(
        path: &Path,
        options: Options,
        identity: Identity,
        build: impl Fn() -> fastgame_core::Result<S>,
    ) -> Result<Self> {
        // Another process may make the file, or take it away, in between.
        for _ in 0..8 {
            match Self::open(path, options, |_| Ok::<_, Error>(build()?)) {
                Err(Error::Io { error, .. }) if error.kind() == io::ErrorKind::NotFound => {}
                result => return result,
            }
            match Self::create(path, options, identity, build()?, "") {
                Err(Error::Io { error, .. }) if error.kind() == io::ErrorKind::AlreadyExists => {}
                result => return result,
            }
        }
        Err(Error::InUse { path: path.to_owned() })
    }

    fn new(state: S, parameters: Parameters, log: Log, sync: Sync) -> Self {
        let generation = log.generation();
        let mut store =
            Self { state, parameters, log, sync, failed: None, is_held: false, generation, most_journal: 0, drafts: 0 };
        store.most_journal = store.wanted_journal();
        store
    }

    /// The state is written anew when the journal is longer than it: so the work for that is at most the work for the journal.
    fn wanted_journal(&self) -> u64 {
        self.log.bytes()[0].max(LEAST_JOURNAL)
    }

    /// Calls the structure. What the call has done is in the file before this returns, whatever it has returned; after an
    /// error here nothing that the call has returned may be used, and there is none.
    ///
    /// # Errors
    /// [`Error::Io`] if the file cannot be written: then the object is not used again; [`Error::Failed`] and
    /// [`Error::Closed`] for all calls after that.
    pub fn call<T>(&mut self, call: impl FnOnce(&mut S) -> T) -> Result<T> {
        self.check_usable()?;
        // A call that panics leaves a state that nobody has written down.
        self.failed = Some(Failure::Write("a call was interrupted by a fault".to_owned()));
        let result = call(&mut self.state);
        self.failed = None;
        if !self.is_held {
            self.write_down()?;
        }
        Ok(result)
    }

    /// Lets calls wait: what they do is written as one, by `commit`, all or nothing. Until then nothing that they return may
    /// leave.
    ///
    /// # Errors
    /// As [`Store::call`].
    pub fn hold(&mut self) -> Result<()> {
        self.check_usable()?;
        self.is_held = true;
        Ok(())
    }

    /// Writes what was held, and no longer holds.
    ///
    /// # Errors
    /// As [`Store::call`].
    pub fn commit(&mut self) -> Result<()> {
        self.check_usable()?;
        self.is_held = false;
        self.write_down()
    }

    fn check_usable(&self) -> Result<()> {
        let path = || self.log.path().to_owned();
        match &self.failed {
            None => Ok(()),
            Some(Failure::Write(reason)) => Err(Error::Failed { path: path(), reason: reason.clone() }),
            Some(Failure::Closed) => Err(Error::Closed { path: path() }),
        }
    }

    /// The object is not used again; the store may be opened anew.
    fn fail(&mut self, error: Error) -> Error {
        self.failed = Some(Failure::Write(error.to_string()));
        self.log.unlock();
        error
    }

    fn check_not_held(&self) -> Result<()> {
        self.check_usable()?;
        if self.is_held { Err(Error::Held { path: self.log.path().to_owned() }) } else { Ok(()) }
    }

    /// Writes down what was done since the last time.
    fn write_down(&mut self) -> Result<()> {
        let journal = self.state.take_journal();
        if journal.is_empty() {
            return Ok(());
        }
        let (dropped, now, sealed) = (self.state.dropped(), self.state.now(), self.state.is_sealed());
        let written = self.log.append_journal(dropped, &journal.records, now, sealed);
        let synced =
            written.and_then(|()| if self.sync == Sync::Always || journal.has_read { self.log.sync() } else { Ok(()) });
        synced.map_err(|error| self.fail(error))?;
        self.generation = self.log.generation();
        if self.log.bytes()[1] > self.most_journal {
            // Where there is no room for a new file, or no permission, the old one goes on.
            match self.checkpoint() {
                Err(error) if self.failed.is_some() => return Err(error),
                Err(_) => self.most_journal = self.log.bytes()[1].saturating_mul(2),
                Ok(()) => {}
            }
        }
        Ok(())
    }

    /// Waits until all that was done is on the disk.
    ///
    /// # Errors
    /// As [`Store::call`]; [`Error::Held`] while calls are held.
    pub fn sync(&mut self) -> Result<()> {
        self.check_not_held()?;
        self.log.sync().map_err(|error| self.fail(error))
    }

    /// Writes the whole state into a new file, which takes the place of the old one: it is opened faster than a long journal.
    /// Done now and then without being asked. The file keeps its permissions.
    ///
    /// # Errors
    /// [`Error::Held`] while calls are held; [`Error::Io`] if there is no room for a new file or no permission to make one, and
    /// [`Error::Linked`] if the file has a second name: the store goes on with the old file, unless the folder could not be
    /// synced.
    pub fn checkpoint(&mut self) -> Result<()> {
        // Of calls that are held the state has what is not written yet, and would have it twice.
        self.sync()?;
        self.drafts += 1;
        let state = &self.state;
        match self.log.replace(self.drafts, &self.parameters, |log| write_image(log, state)) {
            Ok(()) => {
                self.most_journal = self.wanted_journal();
                Ok(())
            }
            Err((true, error)) => Err(error),
            Err((false, error)) => Err(self.fail(error)),
        }
    }

    /// Syncs, and lets go of the file; the state may still be looked at. What is held and not committed is forgotten.
    ///
    /// # Errors
    /// As [`Store::sync`]; the file is let go all the same.
    pub fn close(&mut self) -> Result<()> {
        self.is_held = false;
        let synced = if self.failed.is_none() { self.sync() } else { Ok(()) };
        self.failed = Some(Failure::Closed);
        self.log.unlock();
        synced
    }

    /// The structure, where there is nothing to write down: to set what is no part of the state, as a generator.
    pub fn state_mut(&mut self) -> &mut S {
        &mut self.state
    }

    /// The structure, to look at.
    pub fn state(&self) -> &S {
        &self.state
    }

    /// The file.
    pub fn path(&self) -> &Path {
        self.log.path()
    }

    /// How many calls were written down in the whole life of the store: each update that returned, whatever it held, each read that
    /// drew or sealed something, each step of the clock; what was held counts once. For the operator: how many calls there
    /// were may depend on the data. Kept elsewhere, it tells a later opening whether the file
    /// is an older copy ([`Options::expect_generation`]).
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// What the store is of.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// Bytes of the state as it was last written whole, and of the journal behind it.
    pub fn bytes(&self) -> [u64; 2] {
        self.log.bytes()
    }
}

fn write_image(log: &mut Log, state: &impl State) -> Result<()> {
    let (dropped, now, sealed) = (state.dropped(), state.now(), state.is_sealed());
    let mut is_empty = true;
    state.image(&mut |records| {
        is_empty = false;
        log.append_image(dropped, records, now, sealed)
    })?;
    // The step of the last frame is that of the store, also of a new one.
    if is_empty { log.append_image(dropped, &[], now, sealed) } else { Ok(()) }
}

/// Refuses a structure that is not the stored one.
fn check_parameters(path: &Path, state: &impl State, stored: &Parameters) -> Result<()> {
    let ours = Parameters::of(state, "");
    let names = stored.values.iter().chain(&ours.values).map(|(name, _)| name);
    for name in names {
        let (theirs, ours) = (stored.get(name), ours.get(name));
        if theirs != ours {
            let shown = |value: Option<&str>| value.unwrap_or("nothing").to_owned();
            return Err(Error::Differs {
                path: path.to_owned(),
                field: name.clone(),
                stored: shown(theirs),
                given: shown(ours),
            });
        }
    }
    // The lattice must be the same; the scale may differ by what platforms' logarithms do.
    let near = |a: f64, b: f64| (a - b).abs() <= a.abs() * 2f64.powi(-40);
    let same = ours.noise.len() == stored.noise.len()
        && ours.noise.first() == stored.noise.first()
        && ours.noise.iter().zip(&stored.noise).all(|(&a, &b)| near(a, b));
    if same { Ok(()) } else { Err(Error::Calibration { path: path.to_owned() }) }
}

#[cfg(test)]
mod tests;
