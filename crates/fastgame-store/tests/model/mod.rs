//! The bytes of a store, said a second time and simply, from what `format.rs` says of them. Shared by the tests and the fuzz target
//! `decode_store`.
#![allow(dead_code, unreachable_pub, reason = "each user takes some of this")]

use std::fs;
use std::hash::Hasher;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use fastgame_core::{ContinualVector, Durable};
use fastgame_store::{Error, Options, Store, inspect};
use siphasher::sip128::{Hasher128, SipHasher13};

#[path = "../../../fastgame-core/tests/model/records.rs"]
mod records;
#[path = "../../../fastgame-core/tests/model/tape.rs"]
mod tape;

use records::{Shape, call, image, record};
use tape::{Metered, Tape};

const PARAMETERS: u8 = 1;
const IMAGE: u8 = 2;
const JOURNAL: u8 = 3;
const PREAMBLE: usize = 32;
const HEADER: usize = 32;
const MARK: usize = 32;

fn hash(key: &[u8; 16], parts: &[&[u8]]) -> [u8; 16] {
    let mut hasher = SipHasher13::new_with_key(key);
    parts.iter().for_each(|part| hasher.write(part));
    hasher.finish128().as_u128().to_le_bytes()
}

fn preamble(key: &[u8; 16]) -> Vec<u8> {
    [&b"fastgame"[..], &1u32.to_le_bytes(), &[0; 4], key].concat()
}

fn mark(key: &[u8; 16], place: usize) -> Vec<u8> {
    let front = [&b"fgsynced"[..], &(place as u64).to_le_bytes()].concat();
    [&front[..], &hash(key, &[&front])].concat()
}

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

/// A frame as it is written.
#[derive(Clone)]
struct Frame {
    kind: u8,
    sealed: u8,
    zero: u16,
    /// If not that of the body.
    length: Option<u64>,
    generation: u64,
    step: u64,
    body: Vec<u8>,
}

impl Frame {
    fn to_bytes(&self, key: &[u8; 16], link: &[u8; 16], place: usize) -> Vec<u8> {
        let mut bytes = b"fgfr".to_vec();
        bytes.extend([self.kind, self.sealed]);
        bytes.extend(self.zero.to_le_bytes());
        for word in [self.length.unwrap_or(self.body.len() as u64), self.generation, self.step] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(&self.body);
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        let checksum = hash(key, &[link, &(place as u64).to_le_bytes(), &bytes]);
        bytes.extend(checksum);
        bytes
    }

    /// The frame that stands at a place behind one with this checksum, its length, and its own checksum.
    fn read(bytes: &[u8], key: &[u8; 16], link: &[u8; 16], place: usize) -> Option<(Self, usize, [u8; 16])> {
        let rest = bytes.get(place..)?;
        if rest.len() < HEADER + 16 || rest[..4] != *b"fgfr" {
            return None;
        }
        let length = word(rest, 8);
        let whole = length.checked_next_multiple_of(8)?.checked_add(HEADER as u64 + 16)?;
        if whole > rest.len() as u64 || !(1..=3).contains(&rest[4]) || rest[5] > 1 || rest[6..8] != [0; 2] {
            return None;
        }
        let body = rest[HEADER..][..length as usize].to_vec();
        let (generation, step) = (word(rest, 16), word(rest, 24));
        let frame = Self { kind: rest[4], sealed: rest[5], zero: 0, length: None, generation, step, body };
        let again = frame.to_bytes(key, link, place);
        (rest[..whole as usize] == again).then(|| (frame, again.len(), *again.last_chunk().unwrap()))
    }
}

/// What there is to say of a file.
enum Reading {
    Foreign,
    Version,
    Damaged,
    /// `lost` are the places of marks that did not get to the disk, as the frames behind them did.
    Whole {
        key: [u8; 16],
        frames: Vec<Frame>,
        end: usize,
        marked: usize,
        image: usize,
        lost: Vec<usize>,
    },
}

fn read(bytes: &[u8]) -> Reading {
    if !bytes.starts_with(b"fastgame") {
        return Reading::Foreign;
    }
    if bytes.len() < PREAMBLE {
        return Reading::Damaged;
    }
    if bytes[8..12] != [1, 0, 0, 0] {
        return Reading::Version;
    }
    let key: [u8; 16] = bytes[16..PREAMBLE].try_into().unwrap();
    if bytes[..PREAMBLE] != preamble(&key) {
        return Reading::Damaged;
    }
    let (mut link, mut frames) = (hash(&key, &[&bytes[..PREAMBLE]]), Vec::<Frame>::new());
    let (mut end, mut marked, mut image, mut lost) = (PREAMBLE, 0, 0, Vec::new());
    let is_mark = |place: usize| bytes.get(place..place + MARK).is_some_and(|bytes| bytes == mark(&key, place));
    while end < bytes.len() {
        if !frames.is_empty() && is_mark(end) {
            end += MARK;
            marked = end;
            image = if image == 0 { end } else { image };
            continue;
        }
        let Some((frame, length, checksum)) = Frame::read(bytes, &key, &link, end) else {
            let later = (end..bytes.len()).step_by(8).any(is_mark);
            let unmarked = Frame::read(bytes, &key, &link, end + MARK).is_some();
            if image == 0 || later {
                return Reading::Damaged;
            }
            if !unmarked || lost.last().is_some_and(|place| place + MARK == end) {
                break;
            }
            lost.push(end);
            end += MARK;
            continue;
        };
        let right = match frames.last() {
            None => frame.kind == PARAMETERS && parameters(&frame.body).is_some(),
            Some(last) => {
                let kind = if image == 0 { IMAGE } else { JOURNAL };
                let generation = last.generation.wrapping_add(u64::from(kind == JOURNAL));
                let rises = frame.generation == generation && frame.step >= last.step;
                frame.kind == kind && rises && frame.body.len() >= 8
            }
        };
        if !right || frame.generation >= 1 << 63 {
            return Reading::Damaged;
        }
        (end, link) = (end + length, checksum);
        frames.push(frame);
    }
    if image == 0 { Reading::Damaged } else { Reading::Whole { key, frames, end, marked, image, lost } }
}

type Parameters = (String, Vec<(String, String)>, Vec<u64>);

/// Texts with their lengths: a face, names and values, an empty name; then words.
fn parameters(mut bytes: &[u8]) -> Option<Parameters> {
    let mut text = || {
        let length = usize::try_from(word(bytes.get(..8)?, 0)).ok()?;
        let text = bytes.get(8..length.checked_add(8)?)?;
        bytes = &bytes[8 + length..];
        String::from_utf8(text.to_vec()).ok()
    };
    let (face, mut values) = (text()?, Vec::new());
    loop {
        match text()? {
            name if name.is_empty() => break,
            name => values.push((name, text()?)),
        }
    }
    let words = bytes.chunks(8).map(|word| word.try_into().ok().map(u64::from_le_bytes));
    Some((face, values, words.collect::<Option<_>>()?))
}

fn parameters_of(vector: &ContinualVector, face: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut text = |text: &str| {
        bytes.extend((text.len() as u64).to_le_bytes());
        bytes.extend(text.as_bytes());
    };
    text(face);
    for (name, value) in vector.named_parameters() {
        text(name);
        text(&value);
    }
    text("");
    Durable::noise_numbers(vector).iter().for_each(|number| bytes.extend(number.to_bits().to_le_bytes()));
    bytes
}

fn near(tape: &mut Tape<'_>, number: u64) -> u64 {
    match tape.below(4) {
        0 => number.wrapping_sub(1),
        1 => tape.pick(&[0, u64::MAX, u64::MAX - 7, 1 << 40]),
        2 => tape.word(),
        _ => number.wrapping_add(1),
    }
}

fn change(tape: &mut Tape<'_>, bytes: &mut [u8]) {
    let (at, mask) = (usize::from(tape.byte()) | usize::from(tape.byte()) << 8, tape.byte());
    if !bytes.is_empty() {
        bytes[at % bytes.len()] ^= mask;
    }
}

/// Writes a store. What is wrong in a frame is under its checksum.
struct Writer {
    key: [u8; 16],
    link: [u8; 16],
    bytes: Vec<u8>,
}

impl Writer {
    fn new(key: [u8; 16]) -> Self {
        let bytes = preamble(&key);
        Self { key, link: hash(&key, &[&bytes]), bytes }
    }

    fn mark(&mut self) {
        self.bytes.extend(mark(&self.key, self.bytes.len()));
    }

    fn frame(&mut self, tape: &mut Tape<'_>, shape: Shape, vector: &ContinualVector, mut frame: Frame) {
        if tape.one_in(8) {
            match tape.below(10) {
                0 => frame.generation = near(tape, frame.generation),
                1 => frame.step = near(tape, frame.step),
                2 => frame.sealed = tape.pick(&[1 - frame.sealed, 2]),
                3 => frame.kind = tape.byte() % 5,
                4 => frame.zero = 1,
                5 => frame.length = Some(near(tape, frame.body.len() as u64)),
                6 => frame.body.truncate(tape.byte().into()),
                7 => frame.body = [&[0; 8][..], &record(tape, shape, vector)].concat(),
                _ => change(tape, &mut frame.body),
            }
        }
        let bytes = frame.to_bytes(&self.key, &self.link, self.bytes.len());
        self.link = *bytes.last_chunk().unwrap();
        self.bytes.extend(bytes);
    }
}

/// A file of a vector, with a few things wrong.
fn written(tape: &mut Tape<'_>, shape: Shape) -> Vec<u8> {
    let (mut live, mut rng) = (shape.make(), Metered::new(1));
    live.keep_journal();
    let mut writer = Writer::new([tape.byte(); 16]);
    let mut generation = match tape.below(4) {
        0 => tape.word() >> 1,
        1 => tape.pick(&[(1 << 63) - 3, u64::MAX, u64::MAX - 2]),
        _ => 0,
    };
    let frame = |kind, generation, vector: &ContinualVector, body: Vec<u8>| Frame {
        kind,
        sealed: vector.is_sealed().into(),
        zero: 0,
        length: None,
        generation,
        step: vector.now(),
        body,
    };
    let body = parameters_of(&live, tape.pick(&["", "words"]));
    let first = frame(PARAMETERS, generation, &live, body);
    writer.frame(tape, shape, &live, first);
    for _ in 0..tape.below(4) {
        call(tape, shape, &mut live, &mut rng);
    }
    live.take_journal();
    let dropped = u64::from(tape.byte() / 128).to_le_bytes();
    let body = [&dropped[..], &image(&live)].concat();
    let state = frame(IMAGE, generation, &live, body);
    writer.frame(tape, shape, &live, state);
    if !tape.one_in(16) {
        writer.mark();
    }
    for _ in 0..tape.below(6) {
        call(tape, shape, &mut live, &mut rng);
        generation = generation.wrapping_add(1);
        let body = [&dropped[..], &live.take_journal().records].concat();
        let done = frame(JOURNAL, generation, &live, body);
        writer.frame(tape, shape, &live, done);
        if !tape.one_in(4) {
            writer.mark();
        }
    }
    let mut bytes = writer.bytes;
    for _ in 0..tape.below(4) {
        // Places from the end, where most is decided.
        let place = bytes.len().saturating_sub(usize::from(tape.byte()) * tape.pick(&[1, 1, 8]));
        match tape.below(6) {
            0 => bytes.truncate(place),
            1 => {
                let other = (place + 8 * usize::from(tape.byte())).min(bytes.len());
                drop(bytes.drain(place..other));
            }
            2 => bytes.extend_from_within(place..),
            3 => bytes.extend(mark(&writer.key, bytes.len())),
            4 => bytes.extend((0..tape.byte()).map(|_| tape.byte())),
            _ => change(tape, &mut bytes[place..]),
        }
    }
    bytes
}

/// A folder that goes with the check.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let name = format!("fastgame-decode-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        // In memory where that can be.
        let memory = Path::new("/dev/shm");
        let path = if memory.is_dir() { memory.join(name) } else { std::env::temp_dir().join(name) };
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Any bytes as a file, or a store with a few things wrong: it is refused and left as it is, or goes on with a prefix of whole
/// frames.
pub(crate) fn store(bytes: &[u8]) {
    let mut tape = Tape::new(bytes);
    let shape = Shape::new(&mut tape);
    if tape.one_in(8) {
        check(shape, tape.rest());
    } else {
        check(shape, &written(&mut tape, shape));
    }
}

fn check(shape: Shape, bytes: &[u8]) {
    let folder = Folder::new();
    let path = folder.0.join("v.fg");
    fs::write(&path, bytes).unwrap();
    let reading = read(bytes);
    let seen = inspect(&path);
    match (&reading, &seen) {
        (Reading::Foreign, Err(Error::Foreign { .. }))
        | (Reading::Version, Err(Error::Version { .. }))
        | (Reading::Damaged, Err(Error::Damaged { .. })) => {}
        (Reading::Whole { frames, end, image, .. }, Ok(seen)) => {
            let last = frames.last().unwrap();
            assert_eq!((seen.generation, seen.now, seen.sealed), (last.generation, last.step, last.sealed == 1));
            assert_eq!(
                (seen.bytes, seen.lost),
                ([*image, end - image].map(|at| at as u64), (bytes.len() - end) as u64)
            );
            let (face, values, noise) = parameters(&frames[0].body).unwrap();
            assert_eq!((&seen.parameters.face, &seen.parameters.values), (&face, &values));
            assert!(seen.parameters.noise.iter().map(|number| number.to_bits()).eq(noise));
        }
        _ => panic!("{seen:?}"),
    }
    assert!(fs::read(&path).unwrap() == bytes, "looking has changed the file");

    // What it should be, and the file that it should have.
    let expected = match &reading {
        Reading::Whole { key, frames, end, marked, lost, .. } => {
            let mut vector = shape.make();
            let replayed = frames[1..].iter().try_for_each(|frame| vector.replay(&frame.body[8..]));
            let (whole, last) = (replayed.and_then(|()| vector.check_whole()), frames.last().unwrap());
            let fits = (vector.now(), vector.is_sealed()) == (last.step, last.sealed == 1);
            let mut mended = bytes[..*end].to_vec();
            lost.iter().for_each(|&place| mended[place..place + MARK].copy_from_slice(&mark(key, place)));
            if end > marked {
                mended.extend(mark(key, *end));
            }
            let (face, ..) = parameters(&frames[0].body).unwrap();
            let ours = frames[0].body == parameters_of(&shape.make(), &face);
            (whole.is_ok() && fits).then_some((image(&vector), last.generation, mended, ours))
        }
        _ => None,
    };
    let open = || Store::open(&path, Options::default(), |_| Ok::<_, Error>(shape.make()));
    let (mut store, last, mended) = match (open(), expected) {
        (Err(error), expected) => {
            assert!(!matches!(expected, Some((_, _, _, true))), "{error}");
            assert!(!error.to_string().is_empty() && !matches!(error, Error::Io { .. }), "{error}");
            assert!(fs::read(&path).unwrap() == bytes, "a store that is refused has changed: {error}");
            return;
        }
        (Ok(store), Some((last, generation, mended, _))) => {
            assert_eq!(store.generation(), generation);
            (store, last, mended)
        }
        (Ok(_), None) => panic!("a store that should be refused"),
    };
    assert!(image(store.state()) == last, "not the state of the whole frames");
    assert!(fs::read(&path).unwrap() == mended, "the end is not mended as it should be");

    // It can be used, and goes on.
    let mut rng = Metered::new(9);
    let _ = store.call(|vector| vector.update(&[(0u64, 1i64)])).unwrap();
    let values = store.call(|vector| vector.release_all(&mut rng)).unwrap().unwrap();
    assert!(values.iter().all(|value| value.is_finite()));
    let _ = store.call(|vector| vector.advance(vector.now() + 1)).unwrap();
    let (used, generation) = (image(store.state()), store.generation());
    drop(store);
    match open() {
        Ok(again) => assert!(image(again.state()) == used && again.generation() == generation),
        // Noise at the limit may have gone beyond it, as may a generation.
        Err(Error::Damaged { what: "noise of a possible size", .. }) => {}
        Err(error) => assert!(generation >= 1 << 63, "{error}"),
    }
}
