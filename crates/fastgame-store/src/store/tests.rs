//! Every bit, every length, every place at which a write may stop: a store is refused, or goes on exactly.

use std::fmt;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use chacha20::ChaCha12Rng;
use fastgame_core::rand_core::SeedableRng;
use fastgame_core::{
    Builder, Cells, ContinualCounter, ContinualVector, CountSketch, JoinBuilder, JoinSize, Mechanism, PureDp,
    RangeBuilder, RangeCounter, RangeShape, Side, SketchBuilder, SketchShape, Unit, Weights, Zcdp,
};
use proptest::prelude::*;

use super::*;
use crate::file::Fault;
use crate::format::{MARK, PREAMBLE};
use crate::scan::inspect;

/// A folder that goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let name = format!("fastgame-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        // In memory where that can be: a sync of a disk takes milliseconds, and there are thousands.
        let memory = Path::new("/dev/shm");
        let parent = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let path = parent.join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const IDENTITY: Identity = [7; 16];

/// The whole state as bytes.
fn image(state: &impl State) -> Vec<u8> {
    let mut bytes = Vec::new();
    state
        .image(&mut |piece| {
            bytes.extend_from_slice(piece);
            Ok(())
        })
        .unwrap();
    bytes
}

fn open<S: State>(path: &Path, make: impl Fn() -> S) -> Result<Store<S>> {
    Store::open(path, Options::default(), |_| Ok::<_, Error>(make()))
}

/// A small store, the state after each of its calls (the empty one first), and the length of the file and the generation then.
struct Sample<S> {
    path: PathBuf,
    make: Box<dyn Fn() -> S>,
    states: Vec<Vec<u8>>,
    lengths: Vec<u64>,
    generations: Vec<u64>,
}

impl<S: State + 'static> Sample<S> {
    fn new(folder: &Folder, name: &str, make: impl Fn() -> S + 'static, calls: &[&dyn Fn(&mut S)]) -> Self {
        let path = folder.file(name);
        let mut store = Store::create(&path, Options::default(), IDENTITY, make(), "words").unwrap();
        let length = || fs::metadata(&path).unwrap().len();
        let (mut states, mut lengths, mut generations) = (vec![image(store.state())], vec![length()], vec![0]);
        for call in calls {
            store.call(|state| call(state)).unwrap();
            states.push(image(store.state()));
            lengths.push(length());
            generations.push(store.generation());
        }
        store.close().unwrap();
        Self { path, make: Box::new(make), states, lengths, generations }
    }

    fn open(&self) -> Result<Store<S>> {
        open(&self.path, &self.make)
    }

    /// Flips every bit in turn. All but those of the last mark are noticed, and that one is not needed.
    fn check_bits(&self) {
        let whole = fs::read(&self.path).unwrap();
        let marked = whole.len() - MARK;
        for bit in 0..8 * whole.len() {
            let mut damaged = whole.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            fs::write(&self.path, &damaged).unwrap();
            let opened = if bit % 61 == 0 { self.open().map(|_| ()) } else { inspect(&self.path).map(|_| ()) };
            if bit / 8 < marked {
                let refused =
                    matches!(opened, Err(Error::Damaged { .. } | Error::Foreign { .. } | Error::Version { .. }));
                assert!(refused, "bit {bit} of {}: {opened:?}", 8 * whole.len());
                assert_eq!(fs::read(&self.path).unwrap(), damaged, "a store that is refused is left as it is");
            } else {
                opened.unwrap();
                if bit % 61 == 0 {
                    fs::write(&self.path, &damaged).unwrap();
                    assert_eq!(image(self.open().unwrap().state()), *self.states.last().unwrap());
                    assert_eq!(fs::read(&self.path).unwrap(), whole, "the mark was written again");
                }
            }
        }
        fs::write(&self.path, &whole).unwrap();
    }

    /// Cuts the file off at every length. In the image it is refused; in the journal it is as if the machine had stopped there.
    fn check_lengths(&self) {
        let whole = fs::read(&self.path).unwrap();
        for length in 0..whole.len() as u64 {
            fs::write(&self.path, &whole[..length as usize]).unwrap();
            let opened = self.open();
            if length < self.lengths[0] {
                assert!(matches!(opened, Err(Error::Damaged { .. } | Error::Foreign { .. })), "{length}");
                continue;
            }
            let store = opened.unwrap();
            // The calls whose frames are whole; the mark behind the last of them may be missing.
            let calls = self.lengths.iter().filter(|&&end| length + MARK as u64 >= end).count() - 1;
            assert_eq!(image(store.state()), self.states[calls], "{length}");
            assert_eq!(store.generation(), self.generations[calls]);
            assert_eq!(fs::metadata(&self.path).unwrap().len(), self.lengths[calls], "mended");
            assert_eq!(inspect(&self.path).unwrap().lost, 0);
        }
        fs::write(&self.path, &whole).unwrap();
    }
}

fn bases() -> Vec<Builder> {
    let gaussian = || ContinualVector::builder(1 << 20, Zcdp::new(0.5).unwrap());
    vec![
        gaussian(),
        gaussian().mechanism(Mechanism::TreePaper).unit(Unit::Lifetime),
        gaussian().mechanism(Mechanism::Blt { buffers: Some(2) }),
        ContinualVector::builder(1 << 20, PureDp::new(1.0).unwrap()),
        ContinualVector::builder(1, Zcdp::new(0.5).unwrap()),
    ]
}

/// An answer that nobody asks for.
fn forget<T>(_: T) {}

fn rng(seed: u64) -> ChaCha12Rng {
    ChaCha12Rng::seed_from_u64(seed)
}

#[test]
fn every_bit_and_every_length_of_a_vector() {
    for (i, base) in bases().into_iter().enumerate() {
        let folder = Folder::new();
        let later = base.clone().cells(3).build().unwrap().horizon().min(5);
        let calls: [&dyn Fn(&mut ContinualVector); 5] = [
            &|vector| forget(vector.update(&[(1u64, 1i64)]).unwrap()),
            &|vector| forget(vector.release(&[1u64], &mut rng(1)).unwrap()),
            &|vector| forget(vector.release_all(&mut rng(2)).unwrap()),
            &|vector| vector.advance(later).unwrap(),
            &|vector| forget(vector.release(&[0u64, 1], &mut rng(3))),
        ];
        let sample = Sample::new(&folder, "v.fg", move || base.clone().cells(3).build().unwrap(), &calls);
        sample.check_lengths();
        if i == 0 || i == 2 {
            sample.check_bits();
        }
    }
}

#[test]
fn every_bit_and_every_length_of_the_other_structures() {
    let folder = Folder::new();
    let base = || ContinualVector::builder(1 << 20, Zcdp::new(0.5).unwrap());
    let counter = Sample::new(
        &folder,
        "c.fg",
        move || ContinualCounter::new(base()).unwrap(),
        &[&|counter: &mut ContinualCounter| forget(counter.update(&[1i64, 1]).unwrap()), &|counter| {
            forget(counter.release(&mut rng(1)).unwrap())
        }],
    );
    counter.check_bits();
    counter.check_lengths();
    let sketch = Sample::new(
        &folder,
        "s.fg",
        move || CountSketch::builder(1 << 20, Zcdp::new(0.5).unwrap()).width(4).depth(1).build().unwrap(),
        &[&|sketch: &mut CountSketch| forget(sketch.update(&[1u64, 2, 3], Weights::All(1)).unwrap()), &|sketch| {
            forget(sketch.estimate(&[2u64], &mut rng(1)).unwrap())
        }],
    );
    sketch.check_lengths();
    let ranges = Sample::new(
        &folder,
        "r.fg",
        move || RangeBuilder::new(base(), RangeShape::new(&[5, 3])).build().unwrap(),
        &[&|range: &mut RangeCounter| forget(range.update(&[1u64, 2, 3, 0], Weights::All(1)).unwrap()), &|range| {
            forget(range.count(&[(0, 5), (1, 2)], &mut rng(1)).unwrap())
        }],
    );
    ranges.check_lengths();
    let join = Sample::new(
        &folder,
        "j.fg",
        move || JoinSize::builder(1 << 20, Zcdp::new(0.5).unwrap()).width(32).depth(1).build().unwrap(),
        &[&|join: &mut JoinSize| forget(join.update(Side::Left, &[1u64, 2], Weights::All(1)).unwrap()), &|join| {
            forget(join.estimate(&mut rng(1)).unwrap())
        }],
    );
    join.check_lengths();
}

#[test]
fn what_was_not_acknowledged_is_there_whole_or_not_at_all() {
    let folder = Folder::new();
    let base = bases().remove(0);
    let make = move || base.clone().cells(3).build().unwrap();
    let calls: [&dyn Fn(&mut ContinualVector); 2] =
        [&|vector| forget(vector.update(&[(1u64, 1i64)]).unwrap()), &|vector| {
            forget(vector.release(&[1u64], &mut rng(1)).unwrap())
        }];
    let sample = Sample::new(&folder, "v.fg", make, &calls);
    let whole = fs::read(&sample.path).unwrap();
    // Synced, but stopped before the mark. It counts, and is marked.
    fs::write(&sample.path, &whole[..whole.len() - MARK]).unwrap();
    assert_eq!(image(sample.open().unwrap().state()), sample.states[2]);
    assert_eq!(fs::read(&sample.path).unwrap(), whole);
    // Then a bit of that frame, of which nobody knows whether it was on the disk.
    let mut torn = whole[..whole.len() - MARK].to_vec();
    *torn.last_mut().unwrap() ^= 1;
    fs::write(&sample.path, &torn).unwrap();
    assert_eq!(image(sample.open().unwrap().state()), sample.states[1]);
    // Garbage behind the end, as a file system may leave it.
    for garbage in [vec![0; 1000], whole[PREAMBLE..].to_vec(), b"fgsyncedfgfr".repeat(100)] {
        fs::write(&sample.path, [&whole[..], &garbage].concat()).unwrap();
        assert_eq!(inspect(&sample.path).unwrap().lost, garbage.len() as u64);
        assert_eq!(image(sample.open().unwrap().state()), sample.states[2]);
        assert!(fs::read(&sample.path).unwrap() == whole);
    }
    // A mark that did not reach the disk, as the frame behind it did: they are synced together. Nothing of it is lost.
    let place = sample.lengths[1] as usize - MARK;
    for length in [1, MARK / 2, MARK] {
        let mut lost = whole[..whole.len() - MARK].to_vec();
        lost[place + MARK - length..place + MARK].fill(0);
        fs::write(&sample.path, &lost).unwrap();
        assert_eq!(inspect(&sample.path).unwrap().lost, 0);
        assert_eq!(image(sample.open().unwrap().state()), sample.states[2]);
        assert!(fs::read(&sample.path).unwrap() == whole);
        // With a mark behind that frame it was on the disk, and is damaged.
        lost.extend(&whole[whole.len() - MARK..]);
        fs::write(&sample.path, &lost).unwrap();
        assert!(matches!(sample.open(), Err(Error::Damaged { .. })));
    }
}

#[test]
fn frames_of_another_place_or_store_do_not_count() {
    let folder = Folder::new();
    let make = || bases().remove(0).cells(3).build().unwrap();
    let update: &dyn Fn(&mut ContinualVector) = &|vector| forget(vector.update(&[(1u64, 1i64)]).unwrap());
    let sample = Sample::new(&folder, "v.fg", make, &[update, update, update]);
    let whole = fs::read(&sample.path).unwrap();
    let ends: Vec<usize> = sample.lengths.iter().map(|&length| length as usize).collect();
    // The second call left out; the first one twice.
    let without = [&whole[..ends[1]], &whole[ends[2]..]].concat();
    let twice = [&whole[..ends[1]], &whole[ends[0]..ends[1]], &whole[ends[1]..]].concat();
    for spliced in [without, twice] {
        fs::write(&sample.path, &spliced).unwrap();
        // It does not count; where a mark of the right place stands behind it, it is damage.
        match sample.open() {
            Ok(store) => assert_eq!(image(store.state()), sample.states[1]),
            Err(error) => assert!(matches!(error, Error::Damaged { .. }), "{error}"),
        }
    }
    // The same calls in another store.
    let other = Store::create(&folder.file("w.fg"), Options::default(), [8; 16], make(), "words").unwrap();
    drop(other);
    let other = fs::read(folder.file("w.fg")).unwrap();
    fs::write(&sample.path, [&other[..], &whole[ends[0]..]].concat()).unwrap();
    assert_eq!(sample.open().unwrap().generation(), 0);
}

#[test]
fn a_header_is_not_believed() {
    let folder = Folder::new();
    let make = || bases().remove(0).cells(3).build().unwrap();
    let update: &dyn Fn(&mut ContinualVector) = &|vector| forget(vector.update(&[(1u64, 1i64)]).unwrap());
    let sample = Sample::new(&folder, "v.fg", make, &[update]);
    let whole = fs::read(&sample.path).unwrap();
    for length in [1 << 40, u64::MAX, u64::MAX - 60, i64::MAX as u64] {
        for place in [PREAMBLE, sample.lengths[0] as usize] {
            let mut file = whole[..whole.len() - MARK].to_vec();
            file[place + 8..place + 16].copy_from_slice(&length.to_le_bytes());
            fs::write(&sample.path, &file).unwrap();
            // Without allocating what is not there.
            match sample.open() {
                Ok(store) => assert_eq!((place > PREAMBLE, store.generation()), (true, 0)),
                Err(error) => assert!(matches!(error, Error::Damaged { .. }), "{error}"),
            }
        }
    }
}

#[test]
fn a_failed_write_or_sync_ends_the_object_and_not_the_store() {
    let make = || bases().remove(0).cells(3).build().unwrap();
    let release = |vector: &mut ContinualVector| vector.release(&[1u64], &mut rng(1)).unwrap();
    for fault in (0..200).map(Fault::Write).chain([Fault::Sync]) {
        let folder = Folder::new();
        let path = folder.file("v.fg");
        let mut store = Store::create(&path, Options::default(), IDENTITY, make(), "").unwrap();
        store.call(|vector| vector.update(&[(1u64, 1i64)]).unwrap()).unwrap();
        store.log.fault = Some(fault);
        let answer = store.call(release);
        let Err(error) = answer else {
            // The frame and its mark were shorter than that.
            assert!(matches!(fault, Fault::Write(100..)), "{fault:?}");
            continue;
        };
        assert!(matches!(error, Error::Io { .. }), "{error}");
        store.log.fault = None;
        for _ in 0..2 {
            assert!(matches!(store.call(release), Err(Error::Failed { .. })));
            assert!(matches!(store.sync(), Err(Error::Failed { .. })));
            assert!(matches!(store.checkpoint(), Err(Error::Failed { .. })));
            assert!(matches!(store.hold(), Err(Error::Failed { .. })));
        }
        store.close().unwrap();
        let mut again = open(&path, make).unwrap();
        assert!((1..=2).contains(&again.generation()));
        // What was acknowledged is there; the read may be.
        let was_read = again.generation() == 2;
        assert_eq!(again.state().is_sealed(), was_read);
        let value = again.call(|vector| vector.release(&[1u64], &mut rng(2)).unwrap()).unwrap();
        let recorded = release(&mut {
            let mut vector = make();
            vector.update(&[(1u64, 1i64)]).unwrap();
            vector
        });
        assert_eq!(value == recorded, was_read, "{fault:?}");
    }
}

#[test]
fn a_fault_in_a_call_ends_the_object() {
    let folder = Folder::new();
    let path = folder.file("v.fg");
    let make = || bases().remove(0).cells(3).build().unwrap();
    let mut store = Store::create(&path, Options::default(), IDENTITY, make(), "").unwrap();
    let faulty = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _ = store.call(|vector| {
            vector.update(&[(1u64, 1i64)]).unwrap();
            panic!("a fault");
        });
    }));
    assert!(faulty.is_err());
    assert!(matches!(store.call(|_| ()), Err(Error::Failed { .. })));
    drop(store);
    assert_eq!(open(&path, make).unwrap().generation(), 0);
}

#[test]
fn checkpoints_keep_the_state_and_the_generation() {
    let folder = Folder::new();
    let path = folder.file("v.fg");
    for base in bases() {
        let make = || base.clone().blocks(&[40, 9]).build().unwrap();
        let mut store = Store::create(&path, Options::default(), IDENTITY, make(), "words").unwrap();
        let mut rng = rng(5);
        for i in 0..30 {
            store.call(|vector| vector.update(&[(i % 49, 1i64)])).unwrap().unwrap_or_default();
            let _ = store.call(|vector| vector.release(&[i % 7, 41], &mut rng)).unwrap().unwrap();
            if i % 5 == 0 {
                let _ = store.call(|vector| vector.release(Cells::<u64>::Block(0), &mut rng)).unwrap().unwrap();
            }
            let now = store.state().now();
            let _ = store.call(|vector| vector.advance(now + i)).unwrap();
            if i % 10 == 3 {
                let before = (image(store.state()), store.generation());
                store.checkpoint().unwrap();
                assert_eq!(store.bytes()[1], 0);
                drop(store);
                store = open(&path, make).unwrap();
                assert_eq!((image(store.state()), store.generation()), before);
                assert_eq!(store.parameters().face, "words");
            }
        }
        let last = image(store.state());
        drop(store);
        assert_eq!(image(open(&path, make).unwrap().state()), last);
        assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 1, "no drafts are left");
        fs::remove_file(&path).unwrap();
    }
}

#[test]
fn the_journal_is_cut_now_and_then() {
    let folder = Folder::new();
    let path = folder.file("v.fg");
    let make = || bases().remove(0).cells(1 << 14).build().unwrap();
    let options = Options { sync: Sync::Reads, ..Options::default() };
    let mut store = Store::create(&path, options, IDENTITY, make(), "").unwrap();
    let mut rng = rng(1);
    let mut checkpoints = 0;
    for step in 2..40 {
        store.call(|vector| vector.advance(step).unwrap()).unwrap();
        let _ = store.call(|vector| vector.release_all(&mut rng).unwrap()).unwrap();
        let [image, journal] = store.bytes();
        assert!(journal <= image.max(LEAST_JOURNAL) + (1 << 19), "{image} {journal}");
        checkpoints += u64::from(journal == 0);
    }
    assert!(checkpoints > 1, "{checkpoints}");
    let last = image(store.state());
    drop(store);
    assert_eq!(image(open(&path, make).unwrap().state()), last);
}

#[test]
fn a_checkpoint_that_fails_leaves_the_store_as_it_is() {
    let folder = Folder::new();
    let path = folder.file("v.fg");
    let make = || bases().remove(0).cells(3).build().unwrap();
    let mut store = Store::create(&path, Options::default(), IDENTITY, make(), "").unwrap();
    store.call(|vector| vector.update(&[(1u64, 1i64)]).unwrap()).unwrap();
    // A folder stands where the draft is to be.
    fs::create_dir(folder.file(&format!(".v.fg.{:016x}.draft", crate::format::draft_name(&IDENTITY, 1)))).unwrap();
    assert!(matches!(store.checkpoint(), Err(Error::Io { .. })));
    store.call(|vector| vector.update(&[(2u64, 1i64)]).unwrap()).unwrap();
    // The next draft has another name.
    store.checkpoint().unwrap();
    // Without a synced folder nobody knows which of the files will be there.
    store.log.fault = Some(Fault::Folder);
    assert!(matches!(store.checkpoint(), Err(Error::Io { .. })));
    assert!(matches!(store.call(|_| ()), Err(Error::Failed { .. })));
    drop(store);
    assert_eq!(open(&path, make).unwrap().generation(), 2);
}

#[test]
fn one_object_holds_a_store() {
    let folder = Folder::new();
    let path = folder.file("v.fg");
    let make = || bases().remove(0).cells(3).build().unwrap();
    let mut store = Store::create(&path, Options::default(), IDENTITY, make(), "").unwrap();
    assert!(matches!(open(&path, make), Err(Error::InUse { .. })));
    let exists = Store::create(&path, Options::default(), IDENTITY, make(), "");
    assert!(matches!(exists, Err(Error::Io { error, .. }) if error.kind() == io::ErrorKind::AlreadyExists));
    // A new file in its place is held too.
    store.checkpoint().unwrap();
    assert!(matches!(open(&path, make), Err(Error::InUse { .. })));
    store.close().unwrap();
    assert!(matches!(store.call(|_| ()), Err(Error::Closed { .. })));
    let store = open(&path, make).unwrap();
    drop(store);
    open(&path, make).unwrap();
}

#[test]
fn what_is_held_is_written_as_one() {
    let folder = Folder::new();
    let path = folder.file("v.fg");
    let make = || bases().remove(0).cells(3).build().unwrap();
    let mut store = Store::create(&path, Options::default(), IDENTITY, make(), "").unwrap();
    let work = |store: &mut Store<ContinualVector>| {
        store.hold().unwrap();
        for step in 2..6 {
            store.call(|vector| vector.advance(step).unwrap()).unwrap();
            store.call(|vector| vector.update(&[(1u64, 1i64)]).unwrap()).unwrap();
            let _ = store.call(|vector| vector.release_all(&mut rng(step)).unwrap()).unwrap();
        }
    };
    work(&mut store);
    store.close().unwrap();
    let mut store = open(&path, make).unwrap();
    assert_eq!((store.generation(), store.state().now()), (0, 1));
    work(&mut store);
    // Now a checkpoint would write what is held, which the commit writes again, and a sync would say what is not so.
    assert!(matches!(store.checkpoint(), Err(Error::Held { .. })));
    assert!(matches!(store.sync(), Err(Error::Held { .. })));
    assert_eq!(store.generation(), 0);
    store.commit().unwrap();
    assert_eq!((store.generation(), store.state().now()), (1, 5));
    store.checkpoint().unwrap();
    let last = image(store.state());
    drop(store);
    assert_eq!(image(open(&path, make).unwrap().state()), last);
}

#[test]
fn an_older_copy_is_told_by_a_number_kept_elsewhere() {
    let folder = Folder::new();
    let path = folder.file("v.fg");
    let make = || bases().remove(0).cells(3).build().unwrap();
    let mut store = Store::create(&path, Options::default(), IDENTITY, make(), "").unwrap();
    for _ in 0..3 {
        store.call(|vector| vector.update(&[(1u64, 1i64)]).unwrap()).unwrap();
    }
    drop(store);
    let with = |expected| Options { expect_generation: Some(expected), ..Options::default() };
    // With half a frame at its end: what is refused is not mended.
    let mut bytes = fs::read(&path).unwrap();
    bytes.extend([0; 5]);
    fs::write(&path, &bytes).unwrap();
    let older = Store::open(&path, with(4), |_| Ok::<_, Error>(make()));
    assert!(matches!(older, Err(Error::Older { generation: 3, expected: 4, .. })));
    assert_eq!(fs::read(&path).unwrap(), bytes);
    Store::open(&path, with(3), |_| Ok::<_, Error>(make())).unwrap();
    let missing = Store::create(&folder.file("w.fg"), with(1), IDENTITY, make(), "");
    assert!(matches!(missing, Err(Error::Older { generation: 0, expected: 1, .. })));
}

#[test]
fn other_parameters_are_refused_by_name() {
    let folder = Folder::new();
    let path = folder.file("v.fg");
    let base = || ContinualVector::builder(64, Zcdp::new(0.5).unwrap()).cells(3);
    drop(Store::create(&path, Options::default(), IDENTITY, base().build().unwrap(), "").unwrap());
    let others: [(&str, Builder); 8] = [
        ("horizon", ContinualVector::builder(65, Zcdp::new(0.5).unwrap()).cells(3)),
        ("privacy", ContinualVector::builder(64, Zcdp::new(0.6).unwrap()).cells(3)),
        ("privacy", ContinualVector::builder(64, PureDp::new(1.0).unwrap()).cells(3)),
        ("mechanism", base().mechanism(Mechanism::TreePaper)),
        ("protect", base().unit(Unit::Lifetime)),
        ("contributions", base().contributions(2)),
        ("cells", base().cells(4)),
        ("max_weight", base().max_weight(2)),
    ];
    for (name, other) in others {
        let opened = open(&path, || other.build().unwrap());
        assert!(matches!(&opened, Err(Error::Differs { field, .. }) if field == name), "{name}: {opened:?}");
    }
    let sketch = open(&path, || CountSketch::builder(64, Zcdp::new(0.5).unwrap()).width(1).build().unwrap());
    assert!(matches!(&sketch, Err(Error::Differs { field, .. }) if field == "structure"), "{sketch:?}");
    open(&path, || base().build().unwrap()).unwrap();
}

#[test]
fn noise_that_was_calibrated_by_another_rule_is_refused() {
    let folder = Folder::new();
    let path = folder.file("v.fg");
    let make = || bases().remove(2).cells(3).build().unwrap();
    let parameters = |change: &dyn Fn(&mut Vec<f64>)| {
        let mut parameters = Parameters::of(&make(), "");
        change(&mut parameters.noise);
        parameters
    };
    let written = |parameters: &Parameters| {
        let _ = fs::remove_file(&path);
        drop(Log::create(&path, IDENTITY, parameters, |log| write_image(log, &make())).unwrap());
        open(&path, make).map(|_| ())
    };
    written(&parameters(&|_| ())).unwrap();
    // A unit in the last place is another platform's logarithm; a thousandth is another rule.
    written(&parameters(&|noise| noise[1] *= 1.0 + f64::EPSILON)).unwrap();
    for (place, factor) in [(1, 1.001), (0, 2.0), (2, 1.001), (3, 0.0)] {
        let change = |noise: &mut Vec<f64>| noise[place] *= factor;
        assert!(matches!(written(&parameters(&change)), Err(Error::Calibration { .. })));
    }
}

#[cfg(unix)]
#[test]
fn files_keep_their_permissions_and_links() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
    let folder = Folder::new();
    let make = || bases().remove(0).cells(3).build().unwrap();
    fs::create_dir(folder.file("data")).unwrap();
    // A link to a file that is not there yet.
    symlink("data/v.fg", folder.file("link.fg")).unwrap();
    let link = folder.file("link.fg");
    let mut store = Store::create(&link, Options::default(), IDENTITY, make(), "").unwrap();
    let target = folder.file("data/v.fg");
    let mode = || fs::metadata(&target).unwrap().permissions().mode() & 0o7777;
    assert_eq!(mode(), 0o600);
    fs::set_permissions(&target, fs::Permissions::from_mode(0o640)).unwrap();
    let inode = fs::metadata(&target).unwrap().ino();
    store.checkpoint().unwrap();
    assert_eq!(mode(), 0o640);
    assert_ne!(fs::metadata(&target).unwrap().ino(), inode);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(matches!(open(&target, make), Err(Error::InUse { .. })), "the same store under another name");
    drop(store);
    symlink("loop.fg", folder.file("loop.fg")).unwrap();
    assert!(matches!(open(&folder.file("loop.fg"), make), Err(Error::Io { .. })));
    assert!(matches!(open(&folder.file("data"), make), Err(Error::Foreign { .. } | Error::Io { .. })));
    assert!(matches!(open(Path::new("/dev/null"), make), Err(Error::Foreign { .. })));
}

/// Rejects a second name that stays a store of its own after a checkpoint, asked for or not.
#[cfg(unix)]
#[test]
fn a_store_with_a_second_name_is_neither_opened_nor_written_anew() {
    let folder = Folder::new();
    let make = || bases().remove(0).cells(100).max_norm(10.0).build().unwrap();
    let (path, other) = (folder.file("v.fg"), folder.file("other.fg"));
    let mut store = Store::create(&path, Options::default(), IDENTITY, make(), "").unwrap();
    store.call(|vector| vector.update(&[(5u64, 1i64)])).unwrap().unwrap();
    fs::hard_link(&path, &other).unwrap();
    // In use it goes on, and stays one file: however long the journal grows.
    assert!(matches!(store.checkpoint(), Err(Error::Linked { names: 2, .. })));
    let cells: Vec<(u64, i64)> = (0..100).map(|cell| (cell, 1)).collect();
    for _ in 0..20_000 {
        store.call(|vector| vector.update(&cells)).unwrap().unwrap();
        if store.bytes()[1] > LEAST_JOURNAL {
            break;
        }
    }
    assert!(store.bytes()[1] > LEAST_JOURNAL);
    let state = image(store.state());
    store.close().unwrap();
    let before = fs::read(&path).unwrap();
    for name in [&path, &other] {
        assert!(matches!(open(name, make), Err(Error::Linked { names: 2, .. })));
        inspect(name).unwrap();
    }
    assert_eq!(fs::read(&path).unwrap(), before);
    let names = fs::read_dir(&folder.0).unwrap().count();
    assert_eq!(names, 2, "drafts are left");
    // Either name may stay.
    fs::remove_file(&path).unwrap();
    let mut store = open(&other, make).unwrap();
    assert_eq!(image(store.state()), state);
    store.checkpoint().unwrap();
    // Refused while there is the name, and no longer.
    fs::hard_link(&other, &path).unwrap();
    assert!(store.checkpoint().is_err());
    fs::remove_file(&path).unwrap();
    store.checkpoint().unwrap();
    assert_eq!(image(store.state()), state);
}

/// A new store has two names for a moment, its own and its draft's: a stop in between must not end it.
#[cfg(unix)]
#[test]
fn a_stop_while_a_store_gets_its_name_does_not_end_it() {
    let folder = Folder::new();
    let make = || bases().remove(0).cells(3).build().unwrap();
    let (path, draft) = (folder.file("v.fg"), folder.file(".v.fg.00000000000000ff.draft"));
    Store::create(&path, Options::default(), IDENTITY, make(), "").unwrap().close().unwrap();
    fs::hard_link(&path, &draft).unwrap();
    // What is nobody's draft stays, and is counted.
    let other = folder.file(".v.fg.ff.draft");
    fs::hard_link(&path, &other).unwrap();
    assert!(matches!(open(&path, make), Err(Error::Linked { names: 2, .. })));
    assert!(other.exists() && !draft.exists());
    fs::remove_file(&other).unwrap();
    fs::hard_link(&path, &draft).unwrap();
    open(&path, make).unwrap().checkpoint().unwrap();
    assert!(!draft.exists());
}

/// A structure that random words tell what to do.
trait Exercise: State + fmt::Debug {
    fn update(&mut self, word: u64);
    fn read(&mut self, word: u64, rng: &mut ChaCha12Rng);
    fn advance(&mut self, by: u64);
}

impl Exercise for ContinualVector {
    fn update(&mut self, word: u64) {
        forget(self.update(&[(word & 7, 1i64)]));
    }

    fn read(&mut self, word: u64, rng: &mut ChaCha12Rng) {
        match word & 0x100 {
            0 => forget(self.release(&[word & 7, word >> 16 & 7], rng).unwrap()),
            _ => forget(self.release(Cells::<u64>::Block(word as usize & 1), rng).unwrap()),
        }
    }

    fn advance(&mut self, by: u64) {
        forget(self.advance(self.now() + by));
    }
}

impl Exercise for ContinualCounter {
    fn update(&mut self, word: u64) {
        forget(self.update(&[1i64, -1, 1][..word as usize & 3]));
    }

    fn read(&mut self, _: u64, rng: &mut ChaCha12Rng) {
        forget(self.release(rng).unwrap());
    }

    fn advance(&mut self, by: u64) {
        let to = self.vector().now() + by;
        forget(self.vector_mut().advance(to));
    }
}

impl Exercise for CountSketch {
    fn update(&mut self, word: u64) {
        let keys: Vec<u64> = (0..word & 31).collect();
        forget(self.update(&keys, Weights::All(1)));
    }

    fn read(&mut self, word: u64, rng: &mut ChaCha12Rng) {
        match word & 0x100 {
            0 => forget(self.estimate(&[word & 7, 3], rng).unwrap()),
            _ => forget(self.second_moment(rng).unwrap()),
        }
    }

    fn advance(&mut self, by: u64) {
        forget(self.advance(self.vector().now() + by));
    }
}

impl Exercise for RangeCounter {
    fn update(&mut self, word: u64) {
        forget(self.update(&[word % 5, word >> 8 & 1, 4, 2], Weights::All(1)));
    }

    fn read(&mut self, word: u64, rng: &mut ChaCha12Rng) {
        forget(self.count(&[(word % 5, 5), (0, word >> 8 & 3)], rng).unwrap());
    }

    fn advance(&mut self, by: u64) {
        forget(self.advance(self.vector().now() + by));
    }
}

impl Exercise for JoinSize {
    fn update(&mut self, word: u64) {
        let side = if word & 0x100 == 0 { Side::Left } else { Side::Right };
        forget(self.update(side, &[word & 7, 2], Weights::All(1)));
    }

    fn read(&mut self, _: u64, rng: &mut ChaCha12Rng) {
        forget(self.estimate(rng).unwrap());
    }

    fn advance(&mut self, by: u64) {
        forget(self.advance(self.vector().now() + by));
    }
}

/// Calls, stops at any byte behind the last mark, and reopenings: the state is that after all acknowledged calls, or after one
/// more.
fn check_stops<S: Exercise>(make: impl Fn() -> S, words: &[u64], sync: Sync) {
    let folder = Folder::new();
    let path = folder.file("v.fg");
    let options = Options { sync, ..Options::default() };
    let mut store = Store::create(&path, options, IDENTITY, make(), "").unwrap();
    let mut rng = rng(words[0]);
    for word in words {
        let before = image(store.state());
        // What is on the disk for certain.
        let length = fs::metadata(&path).unwrap().len();
        let call = |state: &mut S| match word & 3 {
            0 => state.update(word >> 8),
            1 | 2 => state.read(word >> 8, &mut rng),
            _ => state.advance(word >> 8 & 0xff),
        };
        store.call(call).unwrap();
        let after = image(store.state());
        if word & 0x70 == 0 {
            store.checkpoint().unwrap();
            assert_eq!(image(store.state()), after);
        } else if word & 0x80 == 0 {
            // The machine stops during the call: some of the bytes are there.
            let generation = store.generation();
            drop(store);
            let whole = fs::read(&path).unwrap();
            let kept = length + (word >> 32) % (whole.len() as u64 - length + 1);
            fs::write(&path, &whole[..kept as usize]).unwrap();
            store = Store::open(&path, options, |_| Ok::<_, Error>(make())).unwrap();
            let found = image(store.state());
            assert!(found == before || found == after);
            if kept == whole.len() as u64 {
                assert!(found == after);
                assert_eq!(store.generation(), generation);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 80, ..ProptestConfig::default() })]

    #[test]
    fn a_store_goes_on_after_any_stop(
        words in prop::collection::vec(any::<u64>(), 1..40), mechanism in 0usize..4, reads in any::<bool>(),
        structure in 0usize..8,
    ) {
        let base = || bases()[mechanism].clone();
        let sync = if reads { Sync::Reads } else { Sync::Always };
        let shape = |width| SketchShape { width, depth: 1, max_weight: 1, hash_seed: 5 };
        match structure {
            0 => check_stops(|| ContinualCounter::new(base()).unwrap(), &words, sync),
            1 => check_stops(|| SketchBuilder::new(base(), shape(8)).build().unwrap(), &words, sync),
            2 => check_stops(|| RangeBuilder::new(base(), RangeShape::new(&[5, 3])).build().unwrap(), &words, sync),
            3 => check_stops(|| JoinBuilder::new(base(), shape(32)).build().unwrap(), &words, sync),
            _ => check_stops(|| base().blocks(&[6, 3]).build().unwrap(), &words, sync),
        }
    }
}
