//! Vectors and counters against a map of exact counters.

use std::collections::{BTreeMap, BTreeSet};

use fastgame_core::{
    Cells, ContinualCounter, ContinualVector, Error, Given, Index, Invalid, MAX_WEIGHT, OnExcess, Quantity, Result,
    Rows,
};

use super::both::{self, Base, Both, Structure};
use super::tape::{Metered, Tape};

/// A vector, or a counter by its own calls.
trait Cellular: Structure {
    fn cells(&mut self) -> &mut ContinualVector;
    fn add_dense<V: Quantity>(&mut self, values: &[V]) -> Result<u64>;
    fn all(&mut self, rng: &mut Metered) -> Result<Vec<f64>>;
}

impl Cellular for ContinualVector {
    fn cells(&mut self) -> &mut ContinualVector {
        self
    }

    fn add_dense<V: Quantity>(&mut self, values: &[V]) -> Result<u64> {
        let rows: Rows<'_, u64, V> = Rows::Dense { values };
        self.update_rows(rows)
    }

    fn all(&mut self, rng: &mut Metered) -> Result<Vec<f64>> {
        self.release_all(rng)
    }
}

impl Cellular for ContinualCounter {
    fn cells(&mut self) -> &mut ContinualVector {
        self.vector_mut()
    }

    fn add_dense<V: Quantity>(&mut self, values: &[V]) -> Result<u64> {
        self.update(values)
    }

    fn all(&mut self, rng: &mut Metered) -> Result<Vec<f64>> {
        Ok(vec![self.release(rng)?])
    }
}

/// What one update may be.
#[derive(Clone, Copy)]
struct Bound {
    size: f64,
    /// Counters are multiples of `2^unit`.
    unit: i32,
    pure: bool,
    /// The limit of the sum of absolute values, or of squares.
    max: u128,
    what: &'static str,
}

impl Bound {
    fn integer(weight: u32, pure: bool) -> Self {
        let w = u128::from(weight);
        Self { size: f64::from(weight), unit: 0, pure, max: if pure { w } else { w * w }, what: "weight" }
    }

    fn real(norm: f64, pure: bool) -> Self {
        let (mantissa, exponent) = parts(norm);
        // The norm is `mantissa * 2^exponent` with 53 bits: 32 of them behind the point, counted in units.
        let unit = exponent + 52 - 20;
        let (m, what) = (u128::from(mantissa), if pure { "L1 norm" } else { "L2 norm" });
        Self { size: norm, unit, pure, max: if pure { m >> 32 } else { (m * m) >> 64 }, what }
    }

    fn norm_holds(&self, row: &BTreeMap<u64, i128>) -> bool {
        let sizes = row.values().map(|units| units.unsigned_abs());
        let size = |u: u128| if self.pure { u } else { u.saturating_mul(u) };
        sizes.map(size).fold(0, u128::saturating_add) <= self.max
    }
}

/// `mantissa * 2^exponent`, of normal numbers the mantissa with all its 53 bits.
fn parts(value: f64) -> (u64, i32) {
    let bits = value.to_bits();
    let (exponent, fraction) = ((bits >> 52 & 0x7ff) as i32, bits & ((1 << 52) - 1));
    if exponent == 0 { (fraction, -1074) } else { (fraction | 1 << 52, exponent - 1075) }
}

/// A quantity as the caller has it.
#[derive(Clone, Copy, Debug)]
enum Value {
    Integer(i64),
    Real(f64),
}

/// Beyond this many units a quantity stands for this many.
const FAR: i128 = 1 << 100;

impl Value {
    /// Whole units, cut toward zero.
    fn units(self, unit: i32) -> Option<i128> {
        let (negative, mantissa, exponent) = match self {
            Self::Integer(value) => (value < 0, value.unsigned_abs(), 0),
            Self::Real(value) if !value.is_finite() => return None,
            Self::Real(value) => (value < 0.0, parts(value).0, parts(value).1),
        };
        let shift = exponent - unit;
        let length = 64 - mantissa.leading_zeros() as i32;
        let size = if length + shift > 100 {
            if mantissa == 0 { 0 } else { FAR }
        } else if shift >= 0 {
            i128::from(mantissa) << shift
        } else {
            i128::from(mantissa.checked_shr((-shift) as u32).unwrap_or(0))
        };
        Some(if negative { -size } else { size })
    }
}

/// What stands in the cells, in units, and how far clipping leaves it open.
#[derive(Default)]
struct Exact {
    units: BTreeMap<u64, i128>,
    slack: BTreeMap<u64, i128>,
}

type Entry = (std::result::Result<u64, Given>, Value);

struct Model<'a> {
    base: &'a Base,
    size: u64,
    bound: Bound,
    main: Exact,
    twin: Exact,
    /// Released at this step.
    answers: BTreeMap<u64, u64>,
}

impl Model<'_> {
    /// The model of one row: what it adds, by how many units that may be off.
    fn row(&self, row: usize, start: usize, entries: &[Entry]) -> Result<(BTreeMap<u64, i128>, i128)> {
        let mut sums = BTreeMap::new();
        for (offset, (cell, value)) in entries.iter().enumerate() {
            let position = start + offset;
            let cell = cell.map_err(|given| Error::Index { position, given, size: self.size })?;
            let units = value.units(self.bound.unit).ok_or(Error::NotFinite { position })?;
            *sums.entry(cell).or_insert(0) += units;
        }
        if self.bound.norm_holds(&sums) {
            return Ok((sums, 0));
        }
        if self.base.on_excess == OnExcess::Error {
            return Err(Error::Excess { position: row, bound: self.bound.size, what: self.bound.what });
        }
        let max = if self.bound.pure { self.bound.max as f64 } else { (self.bound.max as f64).sqrt() };
        let norm: f64 = if self.bound.pure {
            sums.values().map(|&units| (units as f64).abs()).sum()
        } else {
            sums.values().map(|&units| (units as f64).powi(2)).sum::<f64>().sqrt()
        };
        sums.values_mut().for_each(|units| *units = (*units as f64 * (max / norm)) as i128);
        Ok((sums, 2))
    }

    /// The model of an update call: the rows' entries, each with the place of its first.
    fn update(&mut self, open: Result<()>, rows: Result<Vec<(usize, Vec<Entry>)>>) -> Result<u64> {
        open?;
        let (mut adds, mut dropped) = (Vec::new(), 0);
        for (row, (start, entries)) in rows?.iter().enumerate() {
            match self.row(row, *start, entries) {
                Ok(add) => adds.push(add),
                Err(_) if self.base.invalid == Invalid::Drop => dropped += 1,
                Err(error) => return Err(error),
            }
        }
        for (row, off) in adds {
            for (cell, units) in row {
                *self.main.units.entry(cell).or_insert(0) += units;
                *self.main.slack.entry(cell).or_insert(0) += off;
            }
        }
        Ok(dropped)
    }

    /// Checks a release, and that of the twin.
    fn check(&mut self, reach: f64, step: f64, wanted: &[u64], values: &[f64], of_twin: Option<&[f64]>) {
        let unit = 2f64.powi(self.bound.unit);
        let get = |map: &BTreeMap<u64, i128>, cell| map.get(&cell).copied().unwrap_or(0) as f64 * unit;
        assert_eq!(values.len(), wanted.len());
        for (i, (&cell, &value)) in wanted.iter().zip(values).enumerate() {
            let (exact, slack) = (get(&self.main.units, cell), get(&self.main.slack, cell));
            assert_eq!(value % step, 0.0, "{value} is off the lattice of {step}");
            let rounding = exact.abs() * 1e-15;
            assert!((value - exact).abs() <= reach + slack + rounding, "{value} for {exact}, cell {cell}");
            let bits = *self.answers.entry(cell).or_insert(value.to_bits());
            assert_eq!(bits, value.to_bits(), "cell {cell} has two answers");
            if let Some(of_twin) = of_twin {
                let other = get(&self.twin.units, cell);
                let difference = (value - exact) - (of_twin[i] - other);
                let allowed = step * 1.001 + slack + rounding + (other.abs() + reach) * 1e-15;
                assert!(difference.abs() <= allowed, "noise depends on data: {value}, {}", of_twin[i]);
            }
        }
    }
}

/// The floats beside a positive one.
fn next(size: f64) -> f64 {
    f64::from_bits(size.to_bits() + 1)
}

fn previous(size: f64) -> f64 {
    f64::from_bits(size.to_bits() - 1)
}

fn value(tape: &mut Tape<'_>, bound: &Bound, integers: bool) -> Value {
    if integers {
        return Value::Integer(both::weight(tape, bound.size.clamp(1.0, 2f64.powi(31)) as u32));
    }
    let size = bound.size;
    Value::Real(match tape.below(10) {
        0 | 1 => size,
        2 => -size / 2.0,
        3 => size * f64::from(tape.byte() as i8) / 64.0,
        4 => tape.pick(&[f64::NAN, f64::INFINITY, f64::NEG_INFINITY]),
        5 => tape.pick(&[f64::MAX, f64::MIN, 1e300, -1e300, f64::MIN_POSITIVE, 5e-324, -0.0]),
        6 => tape.pick(&[next(size), previous(size), -next(size), size * 2f64.powi(-20)]),
        7 => f64::from_bits(tape.word()),
        8 => 1.0,
        _ => 0.0,
    })
}

fn index(tape: &mut Tape<'_>, size: u64) -> i64 {
    match tape.below(16) {
        14 => tape.pick(&[-1, size as i64, i64::MIN, i64::MAX]),
        15 => tape.word() as i64,
        _ => (u64::from(tape.byte()) % size) as i64,
    }
}

/// How a number out of range is shown depends on its type.
fn located(index: i64, signed: bool, size: u64) -> std::result::Result<u64, Given> {
    match u64::try_from(index) {
        Ok(index) if index < size => Ok(index),
        _ if signed => Err(Given::Signed(index)),
        _ => Err(Given::Unsigned(index as u64)),
    }
}

fn integers(values: &[Value]) -> Vec<i64> {
    values.iter().map(|value| if let Value::Integer(value) = value { *value } else { unreachable!() }).collect()
}

fn reals(values: &[Value]) -> Vec<f64> {
    values.iter().map(|value| if let Value::Real(value) = value { *value } else { unreachable!() }).collect()
}

/// By which call entries are added.
#[derive(Clone, Copy)]
enum Call {
    Sparse,
    /// Rows of one cell.
    Single,
    /// The same, as pairs.
    Pairs,
    /// All entries are one row.
    Row,
}

fn sparse<V: Quantity>(
    vector: &mut ContinualVector,
    (call, signed): (Call, bool),
    offsets: &[usize],
    indices: &[i64],
    values: &[V],
) -> Result<u64> {
    if signed {
        return add(vector, call, offsets, indices, values);
    }
    let indices: Vec<u64> = indices.iter().map(|&index| index as u64).collect();
    add(vector, call, offsets, &indices, values)
}

fn add<I: Index, V: Quantity>(
    vector: &mut ContinualVector,
    call: Call,
    offsets: &[usize],
    indices: &[I],
    values: &[V],
) -> Result<u64> {
    let pairs = || -> Vec<(I, V)> { indices.iter().copied().zip(values.iter().copied()).collect() };
    match call {
        Call::Sparse => vector.update_rows(Rows::Sparse { offsets, indices, values }),
        Call::Single => vector.update_rows(Rows::Single { indices, values }),
        Call::Pairs => vector.update(&pairs()),
        Call::Row => vector.update_row(&pairs()),
    }
}

pub(crate) fn play(tape: &mut Tape<'_>, as_counter: bool) {
    let mut base = both::base(tape);
    let bound = match tape.below(6) {
        0..=2 => Ok(tape.pick(&[1, 1, 2, 5, 1000, MAX_WEIGHT, 0, MAX_WEIGHT + 1])),
        _ => Err(tape.pick(&[
            1.0,
            0.5,
            1.5,
            3.7,
            1e-6,
            1e6,
            2f64.powi(300),
            2f64.powi(-300),
            0.0,
            -1.0,
            f64::NAN,
            1e200,
        ])),
    };
    let blocks = if as_counter {
        vec![1]
    } else {
        match tape.below(4) {
            0 => vec![1 + tape.below(8)],
            1 => tape.many(5, |tape| 1 + tape.below(5)),
            2 => vec![1; 1 + tape.below(6)],
            _ => vec![3, 1, tape.below(20)],
        }
    };
    let size: u64 = blocks.iter().map(|&len| len as u64).sum();
    if size == 0 || blocks.contains(&0) {
        base.wrong.push("size");
    }
    let builder = base.builder.clone().blocks(&blocks);
    let (builder, bound) = match bound {
        Ok(weight) => {
            if !(1..=MAX_WEIGHT).contains(&weight) {
                base.wrong.push("max_weight");
            }
            (builder.max_weight(weight), Bound::integer(weight, base.pure))
        }
        Err(norm) => {
            let limit = 2f64.powi(300);
            if !(1.0 / limit..=limit).contains(&norm) {
                base.wrong.push("max_norm");
            }
            (builder.max_norm(norm), Bound::real(norm, base.pure))
        }
    };
    let model =
        Model { base: &base, size, bound, main: Exact::default(), twin: Exact::default(), answers: BTreeMap::new() };
    if as_counter {
        let build = move || ContinualCounter::new(builder.clone());
        let Some(main) = both::built(build(), &base) else { return };
        run(tape, model, Both::new(main, move || build().unwrap(), base.horizon), &blocks);
    } else {
        let Some(main) = both::built(builder.build(), &base) else { return };
        run(tape, model, Both::new(main, move || builder.build().unwrap(), base.horizon), &blocks);
    }
}

fn run<S: Cellular>(tape: &mut Tape<'_>, mut model: Model<'_>, mut both: Both<S>, blocks: &[usize]) {
    while !tape.is_over() {
        match tape.below(9) {
            0..=3 => update(tape, &mut model, &mut both),
            4 | 5 => {
                if both.advance(tape) {
                    model.answers.clear();
                }
            }
            call => read(tape, &mut model, &mut both, blocks, call == 8),
        }
    }
}

fn update<S: Cellular>(tape: &mut Tape<'_>, model: &mut Model<'_>, both: &mut Both<S>) {
    let (size, whole, signed) = (model.size, tape.one_in(2), tape.one_in(2));
    let bound = model.bound;
    let open = both.open();
    let (expected, result) = if tape.one_in(3) {
        // Dense rows, or nearly.
        let count = tape.below(4) * size as usize + usize::from(tape.one_in(8));
        let values: Vec<Value> = (0..count)
            .map(|_| {
                if tape.one_in(3) {
                    value(tape, &bound, whole)
                } else if whole {
                    Value::Integer(0)
                } else {
                    Value::Real(0.0)
                }
            })
            .collect();
        let rows = if count as u64 % size != 0 {
            Err(Error::Shape { what: "dense rows must have as many values as the vector has cells" })
        } else {
            let row = |(row, values): (usize, &[Value])| {
                let entries = values.iter().enumerate().map(|(cell, &value)| (Ok(cell as u64), value));
                (row * size as usize, entries.collect())
            };
            Ok(values.chunks(size as usize).enumerate().map(row).collect())
        };
        let expected = model.update(open, rows);
        let result = if whole { both.main.add_dense(&integers(&values)) } else { both.main.add_dense(&reals(&values)) };
        (expected, result)
    } else {
        let mut offsets = vec![0];
        let (mut indices, mut values) = (Vec::new(), Vec::new());
        for _ in 0..1 + tape.below(4) {
            for _ in 0..tape.below(5) {
                indices.push(index(tape, size));
                values.push(value(tape, &bound, whole));
            }
            offsets.push(indices.len());
        }
        let mut call = Call::Sparse;
        match tape.below(24) {
            0 => drop(offsets.pop()),
            1 => offsets[0] = 1,
            2 => offsets.push(usize::MAX),
            3 => offsets.insert(1, indices.len() + 1),
            4 => drop(values.pop()),
            5 => offsets.clear(),
            6 | 7 => call = Call::Single,
            8 | 9 => call = Call::Pairs,
            10 | 11 => call = Call::Row,
            _ => {}
        }
        match call {
            Call::Sparse => {}
            Call::Single | Call::Pairs => offsets = (0..=indices.len()).collect(),
            Call::Row => offsets = vec![0, indices.len()],
        }
        let fit = offsets.first() == Some(&0)
            && offsets.last() == Some(&indices.len())
            && (1..offsets.len()).all(|i| offsets[i - 1] <= offsets[i]);
        let rows = if indices.len() != values.len() {
            Err(Error::Shape { what: "sparse rows must have as many values as indices" })
        } else if !fit {
            Err(Error::Shape { what: "row offsets must rise from 0 to the number of indices" })
        } else {
            let entry = |at: usize| (located(indices[at], signed, size), values[at]);
            Ok((1..offsets.len())
                .map(|i| (offsets[i - 1], (offsets[i - 1]..offsets[i]).map(entry).collect()))
                .collect())
        };
        let expected = model.update(open, rows);
        let vector = both.main.cells();
        let result = if whole {
            sparse(vector, (call, signed), &offsets, &indices, &integers(&values))
        } else {
            sparse(vector, (call, signed), &offsets, &indices, &reals(&values))
        };
        (expected, result)
    };
    assert_eq!(result, expected);
    // Other data for the twin, as long as it may.
    if let Some(twin) = both.twin.as_mut().filter(|_| !both.sealed) {
        let (cell, half) = (u64::from(tape.byte()) % size, Value::Real((bound.size / 2.0).max(2f64.powi(bound.unit))));
        let Value::Real(add) = half else { unreachable!() };
        assert_eq!(twin.cells().update(&[(cell, add)]), Ok(0));
        *model.twin.units.entry(cell).or_insert(0) += half.units(bound.unit).unwrap();
    }
    both.check();
}

fn read<S: Cellular>(tape: &mut Tape<'_>, model: &mut Model<'_>, both: &mut Both<S>, blocks: &[usize], abandon: bool) {
    let (reach, step) = (both.reach(), both.main.vector().lattice_step());
    if tape.one_in(8) {
        // By the call that does both halves.
        let (values, of_twin) = both.read(tape, None, true, S::all).unwrap();
        let wanted: Vec<u64> = (0..model.size).collect();
        model.check(reach, step, &wanted, &values, of_twin.as_deref());
        return;
    }
    let indices;
    let (wanted, wrong, cells): (Vec<u64>, _, Cells<'_, i64>) = match tape.below(4) {
        0 => ((0..model.size).collect(), None, Cells::All),
        1 => {
            let block = tape.below(blocks.len() + 1);
            let start: usize = blocks[..block].iter().sum();
            let len = blocks.get(block).copied().unwrap_or(0);
            let allowed = "below the vector's number of blocks";
            let wrong =
                (block == blocks.len()).then_some(Error::Parameter { name: "block", given: block.into(), allowed });
            ((start as u64..(start + len) as u64).collect(), wrong, Cells::Block(block))
        }
        _ => {
            indices = tape.many(6, |tape| index(tape, model.size));
            let found = indices.iter().map(|&index| located(index, true, model.size));
            let wrong = found.clone().enumerate().find_map(|(position, cell)| {
                cell.err().map(|given| Error::Index { position, given, size: model.size })
            });
            (found.flatten().collect(), wrong, Cells::Indices(&indices))
        }
    };
    let answer = both.read(tape, wrong, !abandon, |structure, rng| {
        let pending = structure.cells().draw(cells, rng)?;
        let drawn = pending.drawn_cells();
        Ok((drawn, if abandon { None } else { Some(pending.commit()) }))
    });
    let Some(((drawn, values), of_twin)) = answer else { return };
    let fresh: BTreeSet<u64> = wanted.iter().copied().filter(|cell| !model.answers.contains_key(cell)).collect();
    assert_eq!(drawn.len(), fresh.len(), "{drawn:?} drawn for {fresh:?}");
    assert_eq!(drawn.iter().copied().collect::<BTreeSet<_>>(), fresh);
    if let Some((of_twin, _)) = &of_twin {
        assert_eq!(of_twin, &drawn, "the cells drawn depend on data");
    }
    if let Some(values) = values {
        let of_twin = of_twin.and_then(|(_, values)| values);
        model.check(reach, step, &wanted, &values, of_twin.as_deref());
    }
}
