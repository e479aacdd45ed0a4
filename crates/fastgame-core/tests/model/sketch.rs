//! Sketches, raw sketches and joins against exact cells. Where a key goes is looked up once, in an empty raw sketch; what then
//! stands in a cell is a sum of weights.

use std::collections::BTreeMap;

use fastgame_core::{
    Error, Given, JoinBuilder, Key, Keyer, MAX_WEIGHT, MIN_JOIN_WIDTH, RawSketch, Result, Side, SketchBuilder,
    SketchShape, Weights,
};

use super::both::{self, Base, Both};
use super::decoders::{RAW_HEADER, raw_counters, raw_total};
use super::tape::Tape;

type Cells = BTreeMap<usize, i64>;

/// Keys of all kinds, and the cells of each with the sign there, row by row.
struct Keys {
    keys: Vec<Key>,
    cells: Vec<Vec<(usize, i64)>>,
}

impl Keys {
    fn new(shape: SketchShape, empty: &RawSketch) -> Self {
        let keyer = Keyer::new(shape.hash_seed);
        let keys: Vec<Key> = vec![
            0u64.into(),
            1u64.into(),
            u64::MAX.into(),
            (1u64 << 63).into(),
            (-1i64).into(),
            i64::MIN.into(),
            keyer.text(""),
            keyer.text("a"),
            keyer.bytes(b"a"),
            keyer.composite([keyer.text("a"), 1u64.into()]),
        ];
        assert_eq!(Key::from(1i64), Key::from(1u64), "a number is one key");
        let cells = keys.iter().map(|&key| {
            let mut raw = empty.try_clone().unwrap();
            assert_eq!(raw.update(&[key], Weights::All(1)), Ok(0));
            let counters = raw_counters(&raw.to_bytes().unwrap());
            let cells: Vec<_> = counters.iter().copied().enumerate().filter(|&(_, counter)| counter != 0).collect();
            assert_eq!(cells.len(), shape.depth);
            for (row, (cell, sign)) in cells.iter().enumerate() {
                assert!(cell / shape.width == row && sign.abs() == 1);
            }
            cells
        });
        Self { cells: cells.collect(), keys }
    }

    fn some(&self, tape: &mut Tape<'_>) -> Vec<usize> {
        tape.many(12, |tape| tape.below(self.keys.len()))
    }

    fn of(&self, indices: &[usize]) -> Vec<Key> {
        indices.iter().map(|&index| self.keys[index]).collect()
    }

    /// Adds weights, or nothing where a counter would leave 64 bits.
    fn add(&self, cells: &mut Cells, first: usize, indices: &[usize], adds: &[i64]) -> Result<()> {
        let before = cells.clone();
        for (position, (&index, add)) in indices.iter().zip(adds).enumerate() {
            for &(cell, sign) in &self.cells[index] {
                let counter = cells.entry(first + cell).or_insert(0);
                match counter.checked_add(sign * add) {
                    Some(sum) => *counter = sum,
                    None => {
                        *cells = before;
                        return Err(Error::Overflow { position });
                    }
                }
            }
        }
        Ok(())
    }
}

fn merge_model(cells: &mut Cells, first: usize, raw: &RawSketch) -> Result<()> {
    let before = cells.clone();
    for (position, add) in raw_counters(&raw.to_bytes().unwrap()).into_iter().enumerate() {
        let counter = cells.entry(first + position).or_insert(0);
        match counter.checked_add(add) {
            Some(sum) => *counter = sum,
            None => {
                *cells = before;
                return Err(Error::Overflow { position });
            }
        }
    }
    Ok(())
}

/// A list of weights, or one for all.
enum Mass {
    All(i64),
    Each(Vec<i64>),
}

impl Mass {
    fn new(tape: &mut Tape<'_>, count: usize, max_weight: u32) -> Self {
        if tape.one_in(3) {
            return Self::All(both::weight(tape, max_weight));
        }
        let count = if tape.one_in(16) { tape.below(4) } else { count };
        Self::Each((0..count).map(|_| both::weight(tape, max_weight)).collect())
    }

    fn weights(&self) -> Weights<'_> {
        match self {
            Self::All(weight) => Weights::All(*weight),
            Self::Each(each) => Weights::Each(each),
        }
    }
}

fn shape(tape: &mut Tape<'_>, base: &mut Base, least: usize) -> SketchShape {
    let shape = SketchShape {
        width: if tape.one_in(16) { tape.pick(&[0, 3, 1 << 31, 5]) } else { least << tape.below(5) },
        depth: if tape.one_in(16) { tape.pick(&[0, 2, 64, 65]) } else { tape.pick(&[1, 3, 5, 5, 7, 9, 63]) },
        max_weight: if tape.one_in(16) {
            tape.pick(&[0, MAX_WEIGHT + 1])
        } else {
            tape.pick(&[1, 1, 2, 1000, MAX_WEIGHT])
        },
        hash_seed: tape.byte().into(),
    };
    let mut note = |is_wrong: bool, name| {
        if is_wrong {
            base.wrong.push(name);
        }
    };
    note(!shape.width.is_power_of_two() || shape.width < least || shape.width > 1 << 30, "width");
    note(shape.depth % 2 == 0 || shape.depth > 63, "depth");
    note(shape.depth == 0, "size");
    note(!(1..=MAX_WEIGHT).contains(&shape.max_weight), "max_weight");
    shape
}

/// Up to three raw sketches of a shape, with what is in each.
struct Raws {
    shape: SketchShape,
    raws: Vec<(RawSketch, Cells, u64)>,
}

impl Raws {
    fn new(shape: SketchShape, base: &Base) -> Self {
        let raw = || RawSketch::new(shape, base.on_excess, base.invalid).unwrap();
        Self { shape, raws: (0..2).map(|_| (raw(), Cells::new(), 0)).collect() }
    }

    /// One that fits, or does not, and what merging it says.
    fn pick(&self, tape: &mut Tape<'_>) -> (RawSketch, Option<Error>) {
        let shape = self.shape;
        if tape.one_in(6) {
            let (given, field, theirs) = match tape.below(4) {
                0 => (SketchShape { width: 2 * shape.width, ..shape }, "width", 2 * shape.width as u64),
                1 => (SketchShape { depth: (shape.depth + 2) % 64, ..shape }, "depth", ((shape.depth + 2) % 64) as u64),
                2 => (SketchShape { max_weight: 3, ..shape }, "max_weight", 3),
                _ => (SketchShape { hash_seed: !shape.hash_seed, ..shape }, "hash_seed", !shape.hash_seed),
            };
            let ours = match field {
                "width" => shape.width as u64,
                "depth" => shape.depth as u64,
                "max_weight" => shape.max_weight.into(),
                _ => shape.hash_seed,
            };
            let raw = RawSketch::new(given, Default::default(), Default::default()).unwrap();
            let error = Error::Incompatible { field, ours: Given::Unsigned(ours), theirs: Given::Unsigned(theirs) };
            return (raw, Some(error));
        }
        let (raw, ..) = &self.raws[tape.below(2)];
        (if tape.one_in(2) { raw.clone() } else { raw.try_clone().unwrap() }, None)
    }

    fn change(&mut self, tape: &mut Tape<'_>, keys: &Keys, base: &Base) {
        let place = tape.below(2);
        match tape.below(4) {
            0 => {
                let (other, error) = self.pick(tape);
                let (raw, cells, dropped) = &mut self.raws[place];
                let most = cells.values().map(|counter| counter.unsigned_abs()).max().unwrap_or(0);
                let (own, theirs) = (raw_total(&raw.to_bytes().unwrap()), raw_total(&other.to_bytes().unwrap()));
                // The bound that it keeps, or the largest counter.
                let fits = |bound: u64| bound.checked_add(theirs).is_some_and(|sum| sum <= i64::MAX as u64);
                let result = raw.merge(&other);
                if let Some(error) = error {
                    assert_eq!(result, Err(error));
                } else if fits(own) || fits(most) {
                    assert_eq!(result, Ok(()));
                    merge_model(cells, 0, &other).unwrap();
                    *dropped = dropped.saturating_add(other.dropped());
                } else {
                    assert_eq!(result, Err(Error::Overflow { position: 0 }));
                }
            }
            1 => {
                // Made elsewhere, with counters as large as there are.
                let (raw, cells, _) = &mut self.raws[place];
                let mut bytes = raw.to_bytes().unwrap();
                const COUNTERS: [i64; 8] = [i64::MAX, -i64::MAX, i64::MAX / 2, 1, 1 << 53, i64::MAX - 1, 0, -(1 << 62)];
                let size = self.shape.depth * self.shape.width;
                let mut set = |cell: usize, counter: i64| {
                    bytes[RAW_HEADER + 8 * cell..][..8].copy_from_slice(&counter.to_le_bytes());
                    cells.insert(cell, counter);
                };
                if tape.one_in(2) {
                    let counter = tape.pick(&COUNTERS);
                    (0..size).for_each(|cell| set(cell, counter));
                }
                for _ in 0..tape.below(4) {
                    set(tape.below(256) % size, tape.pick(&COUNTERS));
                }
                if tape.one_in(4) {
                    set(size - 1, i64::MAX);
                }
                bytes[48..56].copy_from_slice(&(i64::MAX as u64).to_le_bytes());
                *raw = RawSketch::from_bytes(&bytes).unwrap();
            }
            _ => {
                let indices = keys.some(tape);
                let given = Mass::new(tape, indices.len(), self.shape.max_weight);
                let expected = both::weigh(indices.len(), given.weights(), self.shape.max_weight, base);
                let (raw, cells, dropped) = &mut self.raws[place];
                let own = raw_total(&raw.to_bytes().unwrap());
                let result = raw.update(&keys.of(&indices), given.weights());
                match expected {
                    Err(error) => assert_eq!(result, Err(error)),
                    Ok((adds, drops)) => {
                        let most = cells.values().map(|counter| counter.unsigned_abs()).max().unwrap_or(0);
                        let sum: u128 = adds.iter().map(|add| u128::from(add.unsigned_abs())).sum();
                        if u128::from(own.min(most)) + sum <= i64::MAX as u128 {
                            let lost = drops.iter().filter(|&&drop| drop).count() as u64;
                            assert_eq!(result, Ok(lost));
                            keys.add(cells, 0, &indices, &adds).unwrap();
                            *dropped += lost;
                        } else {
                            assert_eq!(result, Err(Error::Overflow { position: 0 }));
                        }
                    }
                }
            }
        }
        let (raw, cells, dropped) = &self.raws[place];
        let bytes = raw.to_bytes().unwrap();
        for (cell, counter) in raw_counters(&bytes).into_iter().enumerate() {
            assert_eq!(counter, cells.get(&cell).copied().unwrap_or(0), "cell {cell}");
        }
        assert_eq!(raw.dropped(), *dropped);
        assert_eq!(RawSketch::from_bytes(&bytes).unwrap().to_bytes().unwrap(), bytes);
    }
}

fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The median over the rows of what stands in the cells of a key, without noise.
fn estimate(keys: &Keys, cells: &Cells, index: usize) -> f64 {
    let exact =
        keys.cells[index].iter().map(|(cell, sign)| *sign as f64 * cells.get(cell).copied().unwrap_or(0) as f64);
    middle(exact.collect())
}

const CONFIDENCES: [f64; 9] = [0.5, 0.95, 0.999, 1e-300, 1.0 - f64::EPSILON / 2.0, 0.0, 1.0, -1.0, 1.5];

/// A confidence, and the error if it is none.
fn confidence(tape: &mut Tape<'_>) -> (f64, Option<Error>) {
    let confidence = tape.pick(&CONFIDENCES);
    let allowed = "more than 0 and less than 1";
    let error = Error::Parameter { name: "confidence", given: Given::Float(confidence), allowed };
    (confidence, (!(confidence > 0.0 && confidence < 1.0)).then_some(error))
}

pub(crate) fn play(tape: &mut Tape<'_>) {
    let mut base = both::base(tape);
    let shape = shape(tape, &mut base, 1);
    let builder = SketchBuilder::new(base.builder.clone(), shape);
    let Some(main) = both::built(builder.build(), &base) else { return };
    let mut both = Both::new(main, builder.build().unwrap(), base.horizon);
    let keys = Keys::new(shape, &both.main.raw().unwrap());
    let mut raws = Raws::new(shape, &base);
    let mut cells = Cells::new();
    let mut answers: BTreeMap<usize, u64> = BTreeMap::new();
    let mut moment = None;
    while !tape.is_over() {
        match tape.below(12) {
            0..=2 => {
                let indices = keys.some(tape);
                let given = Mass::new(tape, indices.len(), shape.max_weight);
                let expected = both.open().and_then(|()| {
                    let (adds, drops) = both::weigh(indices.len(), given.weights(), shape.max_weight, &base)?;
                    keys.add(&mut cells, 0, &indices, &adds)?;
                    Ok(drops.iter().filter(|&&drop| drop).count() as u64)
                });
                assert_eq!(both.main.update(&keys.of(&indices), given.weights()), expected);
                if let Some(twin) = both.twin.as_mut().filter(|_| !both.sealed) {
                    assert_eq!(twin.update(&[keys.keys[tape.below(10)]], Weights::All(1)), Ok(0));
                }
                both.check();
            }
            3 | 4 => raws.change(tape, &keys, &base),
            5 => {
                let (raw, error) = raws.pick(tape);
                for _ in 0..1 + tape.below(3) {
                    let expected = match (both.open(), error) {
                        (Err(sealed), _) => Err(sealed),
                        (_, Some(error)) => Err(error),
                        _ => merge_model(&mut cells, 0, &raw),
                    };
                    assert_eq!(both.main.merge(&raw), expected);
                    both.check();
                }
            }
            6 | 7 => {
                if both.advance(tape) {
                    answers.clear();
                    moment = None;
                }
            }
            8 => {
                let reach = both.reach();
                let (value, std) = both.read(tape, None, true, |sketch, rng| sketch.second_moment(rng)).unwrap().0;
                let v = both.main.vector().noise_std().powi(2) + both.main.vector().lattice_step().powi(2) / 12.0;
                let noise = shape.width as f64 * v;
                let (mut exact, mut off) = (0.0, noise + reach * reach * shape.width as f64);
                for &counter in cells.values() {
                    let x = counter as f64;
                    exact += x * x / shape.depth as f64;
                    off += 2.0 * x.abs() * reach / shape.depth as f64;
                }
                assert!((value - exact).abs() <= off + 1e-12 * exact, "{value} for {exact}");
                assert!(std.is_finite() && std > 0.0);
                assert_eq!(*moment.get_or_insert(value.to_bits()), value.to_bits());
            }
            call => {
                let indices = keys.some(tape);
                let asked = keys.of(&indices);
                let reach = both.reach();
                let values = match call {
                    9 | 10 => {
                        let Some((values, _)) = both.read(tape, None, true, |sketch, rng| sketch.estimate(&asked, rng))
                        else {
                            continue;
                        };
                        values
                    }
                    _ if tape.one_in(2) => {
                        let read = both.read(tape, None, true, |sketch, rng| sketch.estimate_with_std(&asked, rng));
                        let (estimates, _) = read.unwrap();
                        assert!(estimates.error.is_finite() && estimates.error > 0.0);
                        estimates.values
                    }
                    _ => {
                        let (confidence, wrong) = confidence(tape);
                        let read = both
                            .read(tape, wrong, true, |sketch, rng| sketch.estimate_with_error(&asked, confidence, rng));
                        let Some((estimates, _)) = read else { continue };
                        assert!(estimates.error.is_finite() && estimates.error >= 0.0, "{}", estimates.error);
                        estimates.values
                    }
                };
                assert_eq!(values.len(), indices.len());
                for (&index, value) in indices.iter().zip(values) {
                    let exact = estimate(&keys, &cells, index);
                    assert!((value - exact).abs() <= reach + exact.abs() * 1e-15, "{value} for {exact}");
                    assert_eq!(value % both.main.vector().lattice_step(), 0.0);
                    let first = *answers.entry(index).or_insert(value.to_bits());
                    assert_eq!(first, value.to_bits(), "two answers for key {index}");
                }
            }
        }
    }
}

pub(crate) fn play_join(tape: &mut Tape<'_>) {
    let mut base = both::base(tape);
    let shape = shape(tape, &mut base, MIN_JOIN_WIDTH);
    let builder = JoinBuilder::new(base.builder.clone(), shape);
    let Some(main) = both::built(builder.build(), &base) else { return };
    let mut both = Both::new(main, builder.build().unwrap(), base.horizon);
    let keys = Keys::new(shape, &RawSketch::new(shape, base.on_excess, base.invalid).unwrap());
    let mut raws = Raws::new(shape, &base);
    let size = shape.depth * shape.width;
    let mut cells = Cells::new();
    let mut answer = None;
    while !tape.is_over() {
        let (side, first) = tape.pick(&[(Side::Left, 0), (Side::Right, size)]);
        match tape.below(10) {
            0..=2 => {
                let indices = keys.some(tape);
                let given = Mass::new(tape, indices.len(), shape.max_weight);
                let expected = both.open().and_then(|()| {
                    let (adds, drops) = both::weigh(indices.len(), given.weights(), shape.max_weight, &base)?;
                    keys.add(&mut cells, first, &indices, &adds)?;
                    Ok(drops.iter().filter(|&&drop| drop).count() as u64)
                });
                assert_eq!(both.main.update(side, &keys.of(&indices), given.weights()), expected);
                if let Some(twin) = both.twin.as_mut().filter(|_| !both.sealed) {
                    assert_eq!(twin.update(side, &[keys.keys[tape.below(10)]], Weights::All(1)), Ok(0));
                }
                both.check();
            }
            3 => raws.change(tape, &keys, &base),
            4 => {
                let (raw, error) = raws.pick(tape);
                for _ in 0..1 + tape.below(3) {
                    let expected = match (both.open(), error) {
                        (Err(sealed), _) => Err(sealed),
                        (_, Some(error)) => Err(error),
                        _ => merge_model(&mut cells, first, &raw),
                    };
                    assert_eq!(both.main.merge(side, &raw), expected);
                    both.check();
                }
            }
            5 | 6 => {
                if both.advance(tape) {
                    answer = None;
                }
            }
            call => {
                let reach = both.reach();
                let value = match call {
                    7 => both.read(tape, None, true, |join, rng| join.estimate(rng)).unwrap().0,
                    8 => {
                        let (confidence, wrong) = confidence(tape);
                        let read =
                            both.read(tape, wrong, true, |join, rng| join.estimate_with_interval(confidence, rng));
                        let Some((interval, _)) = read else { continue };
                        assert!(interval.lower <= interval.value && interval.value <= interval.upper, "{interval:?}");
                        interval.value
                    }
                    _ => {
                        let (estimate, _) =
                            both.read(tape, None, true, |join, rng| join.estimate_with_error(rng)).unwrap();
                        assert!(estimate.std.is_finite() && estimate.std > 0.0, "{estimate:?}");
                        assert_eq!(estimate.rows.len(), shape.depth);
                        assert_eq!(estimate.std_of_rows.is_some(), shape.depth > 1);
                        assert!(estimate.moments.iter().all(|moment| moment.is_finite() && *moment >= 0.0));
                        assert_eq!(middle(estimate.rows.clone()) + 0.0, estimate.value);
                        estimate.value
                    }
                };
                assert_eq!(*answer.get_or_insert(value.to_bits()), value.to_bits());
                let at = |cell| cells.get(&cell).copied().unwrap_or(0) as f64;
                let row = |row: usize| {
                    let places = row * shape.width..(row + 1) * shape.width;
                    places.fold((0.0, 0.0), |(sum, off), cell| {
                        let (x, y): (f64, f64) = (at(cell), at(size + cell));
                        let exact: f64 = x * y;
                        let far = (x.abs() + y.abs() + reach) * reach;
                        (sum + exact, off + far + 1e-12 * exact.abs())
                    })
                };
                let rows: Vec<_> = (0..shape.depth).map(row).collect();
                let low = middle(rows.iter().map(|(exact, off)| exact - off).collect());
                let high = middle(rows.iter().map(|(exact, off)| exact + off).collect());
                assert!(low <= value && value <= high, "{value} outside of {low} to {high}");
            }
        }
    }
}
