//! What holds for every structure: parameters, clock, seal, generator. Each structure is driven beside a twin, which gets the
//! same public calls and other data: what is drawn and kept must be the same.

use std::fmt::Debug;

use fastgame_core::{
    Builder, ContinualCounter, ContinualVector, CountSketch, Error, Invalid, JoinSize, Loss, MAX_BUFFERS, MAX_HORIZON,
    Mechanism, OnExcess, PureDp, RangeCounter, Result, Unit, Zcdp,
};

use super::tape::{Metered, Tape};

/// No noise is so many of its standard deviations away, of a single Laplace variable with probability `e^-84`.
const FAR: f64 = 60.0;

/// Parameters that all structures have.
pub(crate) struct Base {
    pub(crate) builder: Builder,
    pub(crate) horizon: u64,
    pub(crate) pure: bool,
    pub(crate) on_excess: OnExcess,
    pub(crate) invalid: Invalid,
    /// Names of what is wrong with them.
    pub(crate) wrong: Vec<&'static str>,
    /// Few buffers are in the table of short horizons.
    pub(crate) few_buffers: bool,
}

pub(crate) fn base(tape: &mut Tape<'_>) -> Base {
    let horizon = match tape.below(10) {
        0 => 1,
        1 => 2,
        2 => 16,
        3 => 1 + u64::from(tape.byte()),
        4 => 1 << tape.below(63),
        5 => MAX_HORIZON,
        6 => tape.pick(&[0, MAX_HORIZON + 1, u64::MAX, 3, 5, 1 << 20]),
        _ => 1000,
    };
    let rho = |rho| Loss::from(Zcdp::new(rho).unwrap());
    let pure = |epsilon| Loss::from(PureDp::new(epsilon).unwrap());
    let loss = match tape.below(8) {
        0..=2 => rho(0.5),
        3 => rho(1e6),
        4 => rho(1e-4),
        5 => pure(1.0),
        6 => pure(500.0),
        _ => rho(tape.pick(&[1e-20, 1e-9, 1.0, 1e12, 1e-100])),
    };
    let mechanism = match tape.below(6) {
        0..=2 => Mechanism::Tree,
        3 => Mechanism::TreePaper,
        4 => Mechanism::Blt { buffers: None },
        _ => Mechanism::Blt { buffers: Some(tape.below(MAX_BUFFERS + 2) as u32) },
    };
    let unit = tape.pick(&[Unit::Update, Unit::Lifetime]);
    let contributions = tape.pick(&[1, 1, 1, 2, 7, u32::MAX, 0]);
    let on_excess = tape.pick(&[OnExcess::Error, OnExcess::Clip]);
    let invalid = tape.pick(&[Invalid::Raise, Invalid::Drop]);

    let mut wrong = Vec::new();
    let mut note = |is_wrong: bool, name| {
        if is_wrong {
            wrong.push(name);
        }
    };
    note(horizon == 0 || horizon > MAX_HORIZON || (mechanism == Mechanism::TreePaper && horizon == 1), "horizon");
    note(contributions == 0, "contributions");
    note(loss.is_pure() && mechanism != Mechanism::Tree, "unsupported");
    if let Mechanism::Blt { buffers: Some(buffers) } = mechanism {
        note(buffers == 0 || buffers as usize > MAX_BUFFERS, "buffers");
    }
    let few_buffers = matches!(mechanism, Mechanism::Blt { buffers: Some(_) }) && horizon < 1 << 20;
    let builder = ContinualVector::builder(horizon, loss)
        .mechanism(mechanism)
        .unit(unit)
        .contributions(contributions)
        .on_excess(on_excess)
        .invalid(invalid);
    Base { builder, horizon, pure: loss.is_pure(), on_excess, invalid, wrong, few_buffers }
}

/// What was built, unless one of the named parameters is wrong.
pub(crate) fn built<S>(result: Result<S>, base: &Base) -> Option<S> {
    let wrong = &base.wrong;
    match result {
        Ok(structure) => {
            assert!(wrong.is_empty(), "built with wrong {wrong:?}");
            Some(structure)
        }
        // Too small or too large for the counters' unit: checked last.
        Err(Error::Parameter { name: "the noise scale", .. }) if wrong.is_empty() => None,
        Err(Error::Parameter { name: "buffers", .. }) if base.few_buffers => None,
        Err(error) => {
            let name = match error {
                Error::Parameter { name, .. } => name,
                Error::Unsupported { .. } => "unsupported",
                other => panic!("{other:?}"),
            };
            assert!(wrong.contains(&name), "{error:?} where {wrong:?} is wrong");
            None
        }
    }
}

/// What all structures have.
pub(crate) trait Structure: Debug {
    fn vector(&self) -> &ContinualVector;
    fn advance(&mut self, to: u64) -> Result<()>;
    fn memory(&self) -> usize;
}

impl Structure for ContinualVector {
    fn vector(&self) -> &ContinualVector {
        self
    }

    fn advance(&mut self, to: u64) -> Result<()> {
        self.advance(to)
    }

    fn memory(&self) -> usize {
        self.memory()
    }
}

impl Structure for ContinualCounter {
    fn vector(&self) -> &ContinualVector {
        self.vector()
    }

    fn advance(&mut self, to: u64) -> Result<()> {
        self.vector_mut().advance(to)
    }

    fn memory(&self) -> usize {
        self.vector().memory()
    }
}

/// They agree in names.
macro_rules! structure {
    ($($name:ty),*) => {$(
        impl Structure for $name {
            fn vector(&self) -> &ContinualVector {
                self.vector()
            }

            fn advance(&mut self, to: u64) -> Result<()> {
                self.advance(to)
            }

            fn memory(&self) -> usize {
                self.memory()
            }
        }
    )*};
}

structure!(CountSketch, RangeCounter, JoinSize);

/// A structure, its twin, and the clock that both must show.
pub(crate) struct Both<S> {
    pub(crate) main: S,
    /// Given up when a read depends on released values.
    pub(crate) twin: Option<S>,
    pub(crate) now: u64,
    pub(crate) horizon: u64,
    pub(crate) sealed: bool,
    reads: u64,
}

impl<S: Structure> Both<S> {
    pub(crate) fn new(main: S, twin: S, horizon: u64) -> Self {
        let both = Self { main, twin: Some(twin), now: 1, horizon, sealed: false, reads: 0 };
        both.check();
        let vector = both.main.vector();
        let (scale, step) = (vector.calibration().scale(), vector.lattice_step());
        assert!(32.0 * step <= scale && scale < 64.0 * step, "the lattice of {scale} has the step {step}");
        both
    }

    /// The clock is the model's, and the twin has kept as much.
    pub(crate) fn check(&self) {
        self.check_clock();
        if let Some(twin) = &self.twin {
            assert_eq!(self.main.memory(), twin.memory(), "memory depends on data");
        }
    }

    fn check_clock(&self) {
        for structure in std::iter::once(&self.main).chain(&self.twin) {
            let vector = structure.vector();
            assert_eq!((vector.now(), vector.is_sealed(), vector.horizon()), (self.now, self.sealed, self.horizon));
        }
    }

    /// The error of an update, if the step is sealed.
    pub(crate) fn open(&self) -> Result<()> {
        let &Self { now, horizon, .. } = self;
        if self.sealed { Err(Error::Sealed { now, horizon }) } else { Ok(()) }
    }

    /// Moves the clock somewhere. Whether it has moved.
    pub(crate) fn advance(&mut self, tape: &mut Tape<'_>) -> bool {
        let &mut Self { now, horizon, .. } = self;
        let to = match tape.below(10) {
            0..=3 => now.saturating_add(1),
            4 => now + tape.below(16) as u64,
            5 => now.saturating_add(1 << tape.below(63)).min(horizon),
            6 => now,
            7 => tape.pick(&[horizon, horizon + 1, now - 1, 0, u64::MAX]),
            8 => now + (horizon - now) / 2,
            _ => tape.word(),
        };
        let result = self.main.advance(to);
        if to < now || to > horizon {
            assert_eq!(result, Err(Error::Time { to: Some(to), now, horizon }));
        } else {
            assert_eq!(result, Ok(()));
            self.now = to;
            self.sealed &= to == now;
        }
        if let Some(twin) = &mut self.twin {
            assert_eq!(twin.advance(to), result);
        }
        self.check();
        self.now > now
    }

    /// Runs a read on both, before it one with a generator that fails. `wrong`: the error of its arguments. `seals`: whether it
    /// is carried through. Gives the answers.
    pub(crate) fn read<T: Debug>(
        &mut self,
        tape: &mut Tape<'_>,
        wrong: Option<Error>,
        seals: bool,
        call: impl Fn(&mut S, &mut Metered) -> Result<T>,
    ) -> Option<(T, Option<T>)> {
        self.reads += 1;
        let (seed, memory) = (self.reads, self.main.memory());
        let mut least = 0;
        let mut outcome = None;
        // Half of the reads are tried before, with a generator that is dry soon.
        if let words @ 0..128 = u64::from(tape.byte()) {
            let mut dry = Metered::after(words / 4, seed);
            match call(&mut self.main, &mut dry) {
                Err(Error::Entropy) => {
                    assert_eq!((dry.taken, dry.refused), (words / 4, 1), "asked again");
                    // It may have made room.
                    assert!(self.main.memory() >= memory);
                    self.check_clock();
                    least = dry.taken + 1;
                }
                other => {
                    assert_eq!(dry.refused, 0, "a failure that is none");
                    outcome = Some((other, dry.taken));
                }
            }
        }
        let (result, taken) = outcome.unwrap_or_else(|| {
            let mut rng = Metered::new(seed);
            (call(&mut self.main, &mut rng), rng.taken)
        });
        assert!(taken >= least);
        if let Some(error) = wrong {
            assert_eq!(result.expect_err("wrong arguments"), error);
            assert_eq!((taken, self.main.memory()), (0, memory));
            self.check();
            return None;
        }
        let value = result.expect("arguments are right");
        self.sealed |= seals;
        let of_twin = self.twin.as_mut().map(|twin| {
            let mut rng = Metered::new(seed);
            let value = call(twin, &mut rng).unwrap();
            assert_eq!(rng.taken, taken, "the words drawn depend on data");
            value
        });
        self.check();
        Some((value, of_twin))
    }

    /// As [`Both::read`] for what reads one after the other, each depending on values released before.
    pub(crate) fn descend<T: Debug>(
        &mut self,
        tape: &mut Tape<'_>,
        wrong: Option<Error>,
        call: impl Fn(&mut S, &mut Metered) -> Result<T>,
    ) -> Option<T> {
        if wrong.is_none() {
            self.twin = None;
        }
        self.reads += 1;
        let seed = self.reads;
        if let words @ 0..64 = u64::from(tape.byte()) {
            let mut dry = Metered::after(words, seed);
            let result = call(&mut self.main, &mut dry);
            assert_eq!(dry.refused, u64::from(matches!(result, Err(Error::Entropy))));
            // The first of its reads may have gone well.
            self.sealed |= self.main.vector().is_sealed();
            self.check();
        }
        let result = call(&mut self.main, &mut Metered::new(seed));
        if let Some(error) = wrong {
            assert_eq!(result.expect_err("wrong arguments"), error);
            self.check();
            return None;
        }
        self.sealed = true;
        self.check();
        Some(result.expect("arguments are right"))
    }

    /// Asks for what was released at this step already: no entropy is needed.
    pub(crate) fn again<T>(&mut self, call: impl Fn(&mut S, &mut Metered) -> Result<T>) -> T {
        let memory = self.main.memory();
        let value = call(&mut self.main, &mut Metered::after(0, 0)).unwrap_or_else(|error| panic!("a repeat: {error}"));
        assert_eq!(self.main.memory(), memory);
        self.check();
        value
    }

    /// No release of a cell is further from the exact value than this.
    pub(crate) fn reach(&self) -> f64 {
        let vector = self.main.vector();
        FAR * vector.noise_std() + vector.lattice_step()
    }
}

/// The model of a list of weights: what each adds, and how many are dropped.
pub(crate) fn weigh(
    count: usize,
    weights: fastgame_core::Weights<'_>,
    max_weight: u32,
    base: &Base,
) -> Result<(Vec<i64>, Vec<bool>)> {
    let given = match weights {
        fastgame_core::Weights::All(weight) => vec![weight; count],
        fastgame_core::Weights::Each(each) => each.to_vec(),
        _ => unreachable!(),
    };
    if given.len() != count {
        return Err(Error::Shape { what: "there must be one weight for each key" });
    }
    let max = i64::from(max_weight);
    let (mut adds, mut dropped) = (Vec::new(), Vec::new());
    for (position, &weight) in given.iter().enumerate() {
        let over = !(-max..=max).contains(&weight);
        match (base.on_excess, base.invalid) {
            (OnExcess::Error, Invalid::Raise) if over => {
                return Err(Error::Excess { position, bound: f64::from(max_weight), what: "weight" });
            }
            (OnExcess::Error, _) if over => adds.push(0),
            _ => adds.push(weight.clamp(-max, max)),
        }
        dropped.push(over && base.on_excess == OnExcess::Error);
    }
    Ok((adds, dropped))
}

/// A weight, most of them small.
pub(crate) fn weight(tape: &mut Tape<'_>, max_weight: u32) -> i64 {
    let max = i64::from(max_weight);
    match tape.below(8) {
        0..=2 => 1,
        3 => -1,
        4 => tape.pick(&[max, -max]),
        5 => tape.pick(&[max + 1, -max - 1, 0]),
        6 => tape.pick(&[i64::MAX, i64::MIN, i64::MAX - 1]),
        _ => tape.word() as i64,
    }
}
