//! Records of a journal and of an image, whoever wrote them: refused, or a state with one form that can be used. What is said
//! of their bytes here is said a second time (`journal.rs`).

use fastgame_core::{Cells, ContinualVector, Durable, Error, Mechanism, PureDp, Result, Unit, Zcdp};

use super::tape::{Metered, Tape};

const HORIZON: u64 = 1 << 40;
/// No noise is so many times the scale away (`lattice.rs`), of a state that some vector may have.
const FAR: f64 = 16_384.0;

/// A kind of vector: its law, its correlation, its blocks.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    mechanism: usize,
    blocks: &'static [usize],
}

const MECHANISMS: usize = 6;

impl Shape {
    pub(crate) fn new(tape: &mut Tape<'_>) -> Self {
        let mechanism = tape.below(MECHANISMS);
        Self { mechanism, blocks: tape.pick(&[&[3, 2][..], &[1], &[1, 4, 1], &[9]]) }
    }

    pub(crate) fn make(self) -> ContinualVector {
        let gaussian = |horizon| ContinualVector::builder(horizon, Zcdp::new(0.5).unwrap());
        let builder = match self.mechanism {
            0 => gaussian(HORIZON),
            1 => gaussian(HORIZON - 5).mechanism(Mechanism::TreePaper).unit(Unit::Lifetime),
            2 => gaussian(HORIZON).mechanism(Mechanism::Blt { buffers: Some(3) }),
            3 => gaussian(1 << 62).mechanism(Mechanism::Blt { buffers: None }),
            4 => ContinualVector::builder(HORIZON, PureDp::new(1.0).unwrap()),
            _ => gaussian(1),
        };
        builder.blocks(self.blocks).build().unwrap()
    }

    fn size(self) -> u64 {
        self.blocks.iter().map(|&len| len as u64).sum()
    }

    /// Words of a head and of a value.
    fn words(self) -> (usize, usize) {
        (if matches!(self.mechanism, 2 | 3) { 1 } else { 2 }, if self.mechanism == 4 { 2 } else { 1 })
    }
}

pub(crate) fn image(vector: &impl Durable) -> Vec<u8> {
    let mut bytes = Vec::new();
    let written: std::result::Result<(), ()> = vector.image(|piece| {
        bytes.extend_from_slice(piece);
        Ok(())
    });
    written.unwrap();
    bytes
}

fn number(out: &mut Vec<u8>, mut number: u64) {
    while number > 0x7f {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Two numbers for each size: `0, -1, 1, -2, ...`.
fn signed(out: &mut Vec<u8>, value: i64) {
    number(out, if value < 0 { !(value as u64) << 1 | 1 } else { (value as u64) << 1 });
}

fn read_number(bytes: &mut &[u8]) -> u64 {
    let (mut number, mut shift) = (0, 0);
    loop {
        let (&byte, rest) = bytes.split_first().unwrap();
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return number;
        }
        shift += 7;
    }
}

fn read_signed(bytes: &mut &[u8]) -> i64 {
    let number = read_number(bytes);
    if number & 1 == 1 { !(number >> 1) as i64 } else { (number >> 1) as i64 }
}

/// The counters that an image begins with.
fn counters(image: &[u8], size: u64) -> Vec<i64> {
    let mut counters = vec![0; size as usize];
    if let [3, rest @ ..] = image {
        let (mut rest, mut cell) = (rest, 0u64);
        for _ in 0..read_number(&mut rest) {
            cell = cell.wrapping_add_signed(read_signed(&mut rest));
            counters[cell as usize] = read_signed(&mut rest);
        }
    }
    counters
}

/// One call to a vector.
pub(crate) fn call(tape: &mut Tape<'_>, shape: Shape, vector: &mut ContinualVector, rng: &mut Metered) {
    let size = vector.size();
    match tape.below(6) {
        0 | 1 => drop(vector.update(&[(u64::from(tape.byte()) % size, 1i64)])),
        2 => {
            let cells = tape.many(3, |tape| u64::from(tape.byte()) % size);
            let _ = vector.release(&cells[..], rng).unwrap();
        }
        3 => {
            let _ = vector.release(Cells::<u64>::Block(tape.below(shape.blocks.len())), rng).unwrap();
        }
        4 => {
            let _ = vector.release_all(rng).unwrap();
        }
        _ => {
            let by = tape.pick(&[1, 1, 2, 17, 1 << 20]);
            let _ = vector.advance(vector.now() + by);
        }
    }
}

/// A number that is likely to be right, or to be just not.
fn some(tape: &mut Tape<'_>, usual: u64) -> u64 {
    match tape.below(8) {
        0 => usual + 1,
        1 => usual.saturating_sub(1),
        2 => tape.pick(&[0, u64::MAX, 1 << 62, 1 << 32, 1 << 63]),
        3 => tape.word(),
        _ => usual,
    }
}

fn value(tape: &mut Tape<'_>, out: &mut Vec<u8>, scale: f64) {
    let float = match tape.below(8) {
        0 => tape.pick(&[f64::NAN, f64::INFINITY, f64::MAX, f64::MIN, f64::MAX / 2.0, -0.0]),
        1 => tape.pick(&[FAR, -FAR, 2.0 * FAR, 1023.0, -1023.0, 1e6, -1e9, 1e12]) * scale,
        2 => f64::from_bits(tape.word()),
        _ => scale * f64::from(tape.byte() as i8) / 64.0,
    };
    out.extend(float.to_bits().to_le_bytes());
}

/// A record by its description, most of it right.
pub(crate) fn record(tape: &mut Tape<'_>, shape: Shape, vector: &ContinualVector) -> Vec<u8> {
    let ((head_words, value_words), size, now) = (shape.words(), shape.size(), vector.now());
    let scale = vector.calibration().scale();
    let buffers = vector.calibration().buffers().map_or(1, |buffers| buffers as u64 + 1);
    let mut out = Vec::new();
    let kind = 1 + tape.below(9) as u8;
    out.push(kind);
    let values = |tape: &mut Tape<'_>, out: &mut Vec<u8>, count: u64| {
        (0..count.min(64) as usize * value_words).for_each(|_| value(tape, out, scale));
    };
    // The levels of the tree, in whose set the root and the leaf are.
    let levels = u64::BITS - (vector.horizon() - 1).leading_zeros();
    let head = |tape: &mut Tape<'_>, out: &mut Vec<u8>| -> u64 {
        out.extend(some(tape, now).to_le_bytes());
        if head_words == 1 {
            return buffers;
        }
        let middle = if tape.one_in(2) { tape.word() & ((1 << levels) - 1) } else { 0 };
        let set = some(tape, 1 | 1 << levels | middle);
        out.extend(set.to_le_bytes());
        set.count_ones().into()
    };
    let cell = |tape: &mut Tape<'_>| (u64::from(tape.byte()) % size) as i64;
    match kind {
        1 => {
            let by = tape.pick(&[1, 2, 16, 1 << 30]);
            number(&mut out, some(tape, now + by));
        }
        3 => {
            let count = tape.below(4) as u64;
            number(&mut out, some(tape, count));
            for _ in 0..count {
                signed(&mut out, cell(tape));
                signed(&mut out, tape.pick(&[1, -1, 5, i64::MAX, i64::MIN, 0, i64::MAX - 1]));
            }
        }
        4 => {
            let count = 1 + tape.below(3) as u64;
            number(&mut out, some(tape, count));
            for _ in 0..count {
                signed(&mut out, cell(tape));
                let drawn = if head_words == 1 { buffers } else { 1 + tape.below(2) as u64 };
                values(tape, &mut out, drawn);
            }
        }
        5 => {
            let block = tape.below(shape.blocks.len());
            number(&mut out, some(tape, block as u64));
            let drawn = if head_words == 1 { buffers } else { 1 + tape.below(2) as u64 };
            values(tape, &mut out, drawn * shape.blocks[block] as u64);
        }
        6 => {
            let count = 1 + tape.below(3) as u64;
            number(&mut out, some(tape, count));
            for _ in 0..count {
                signed(&mut out, cell(tape));
                let ranks = head(tape, &mut out);
                number(&mut out, some(tape, ranks));
                values(tape, &mut out, ranks);
            }
        }
        7 => {
            let block = tape.below(shape.blocks.len());
            number(&mut out, some(tape, block as u64));
            let ranks = head(tape, &mut out);
            number(&mut out, some(tape, ranks));
            // And its arrays, most of the time.
            for rank in 0..if tape.one_in(4) { 0 } else { ranks.min(8) } {
                out.push(8);
                number(&mut out, block as u64);
                number(&mut out, rank);
                let count = some(tape, shape.blocks[block] as u64);
                number(&mut out, count);
                values(tape, &mut out, count);
            }
        }
        8 => {
            let (block, rank) = (tape.below(shape.blocks.len()) as u64, tape.below(3) as u64);
            number(&mut out, block);
            number(&mut out, rank);
            let count = some(tape, shape.blocks[block as usize] as u64);
            number(&mut out, count);
            values(tape, &mut out, count);
        }
        _ => {}
    }
    out
}

/// Records: any bytes, or those of a vector with a few things wrong.
pub(crate) fn records(bytes: &[u8]) {
    let mut tape = Tape::new(bytes);
    let shape = Shape::new(&mut tape);
    if tape.one_in(4) {
        return replay(shape, tape.rest());
    }
    let (mut live, mut rng) = (shape.make(), Metered::new(1));
    live.keep_journal();
    let mut pieces = Vec::new();
    for _ in 0..tape.below(10) {
        call(&mut tape, shape, &mut live, &mut rng);
        pieces.push(live.take_journal().records);
        if tape.one_in(8) {
            pieces = vec![image(&live)];
        }
    }
    for _ in 0..tape.below(4) {
        if pieces.is_empty() || tape.one_in(2) {
            let place = tape.below(pieces.len() + 1);
            pieces.insert(place, record(&mut tape, shape, &live));
            continue;
        }
        let (place, other) = (tape.below(pieces.len()), tape.below(pieces.len()));
        match tape.below(8) {
            0 => pieces.swap(place, other),
            1 => drop(pieces.remove(place)),
            2 => pieces.insert(other, pieces[place].clone()),
            3 => pieces.truncate(place),
            4 => {
                let length = usize::from(tape.byte()).min(pieces[place].len());
                pieces[place].truncate(length);
            }
            _ => {
                let (at, mask) = (u64::from(tape.byte()) | u64::from(tape.byte()) << 8, tape.byte());
                if let Some(length @ 1..) = pieces.get(place).map(Vec::len) {
                    pieces[place][at as usize % length] ^= mask;
                }
            }
        }
    }
    replay(shape, &pieces.concat());
}

/// What a vector does next, on one that goes on with it.
fn use_it(vector: &mut ContinualVector, exact: &mut [i64], seed: u64) -> Vec<f64> {
    let (scale, step, mut rng) = (vector.calibration().scale(), vector.lattice_step(), Metered::new(seed));
    let mut all = Vec::new();
    let mut check = |values: Vec<f64>, exact: &[i64]| {
        for (value, exact) in values.iter().zip(exact) {
            let exact = *exact as f64;
            // A little more than that, of a state at the limit.
            let reach = (FAR + 1024.0) * scale + step + exact.abs() * 1e-15;
            assert!((value - exact).abs() <= reach, "{value} for {exact}");
        }
        all.extend(values);
    };
    for by in [0, 1, 1, 6, 1 << 33] {
        if vector.advance(vector.now().saturating_add(by)).is_err() {
            break;
        }
        let place = exact.len() - 1;
        match vector.update(&[(place as u64, 1i64)]) {
            Ok(_) => exact[place] += 1,
            Err(Error::Sealed { .. }) => assert!(vector.is_sealed()),
            Err(error) => assert_eq!((error, exact[place]), (Error::Overflow { position: 0 }, i64::MAX)),
        }
        let one = vector.release(&[place as u64], &mut rng).unwrap();
        check(one, &exact[place..]);
        check(vector.release_all(&mut rng).unwrap(), exact);
    }
    all
}

fn replay(shape: Shape, records: &[u8]) {
    let mut vector = shape.make();
    let replayed = vector.replay(records).and_then(|()| vector.check_whole());
    if let Err(error) = replayed {
        assert!(matches!(error, Error::Journal { .. } | Error::Time { .. }), "{error:?}");
        assert!(!error.to_string().is_empty());
        return;
    }
    let form = image(&vector);
    let from = |records: &[u8]| -> Result<ContinualVector> {
        let mut again = shape.make();
        again.replay(records)?;
        again.check_whole()?;
        Ok(again)
    };
    let mut again = from(&form).expect("an image of what was accepted");
    assert_eq!(image(&again), form, "two forms of one state");
    assert_eq!((again.now(), again.is_sealed()), (vector.now(), vector.is_sealed()));

    // Both go on alike, and so does what is replayed from there.
    again.keep_journal();
    let mut exact = counters(&form, shape.size());
    let values = use_it(&mut vector, &mut exact.clone(), 7);
    assert_eq!(use_it(&mut again, &mut exact, 7), values);
    let last = image(&vector);
    assert_eq!(image(&again), last);
    match from(&[form, again.take_journal().records].concat()) {
        Ok(third) => assert_eq!(image(&third), last),
        // Noise at the limit may have gone beyond it.
        Err(error) => assert_eq!(error, Error::Journal { what: "noise of a possible size" }),
    }
}
