//! What is replayed is what was there, to the last bit; what no structure wrote is refused without a panic.

use std::format;
use std::vec;
use std::vec::Vec;

use chacha20::ChaCha12Rng;
use proptest::prelude::*;
use rand_core::{Rng, SeedableRng};

use super::*;
use crate::error::Error;
use crate::join::Side;
use crate::journal::Write;
use crate::privacy::{PureDp, Zcdp};
use crate::range::{RangeBuilder, RangeShape};
use crate::sketch::Weights;
use crate::vector::{Builder, Cells};

const HORIZON: u64 = 1 << 40;

/// Every law and correlation.
fn bases() -> Vec<Builder> {
    let gaussian = || ContinualVector::builder(HORIZON, Zcdp::new(0.5).unwrap());
    vec![
        gaussian(),
        gaussian().mechanism(Mechanism::TreePaper).unit(Unit::Lifetime),
        gaussian().mechanism(Mechanism::Blt { buffers: Some(3) }),
        gaussian().mechanism(Mechanism::Blt { buffers: None }),
        ContinualVector::builder(HORIZON, PureDp::new(1.0).unwrap()),
        // The static mechanism.
        ContinualVector::builder(1, Zcdp::new(0.5).unwrap()).mechanism(Mechanism::Blt { buffers: None }),
    ]
}

fn image(structure: &impl Durable) -> Vec<u8> {
    let mut bytes = Vec::new();
    let written: core::result::Result<(), ()> = structure.image(|piece| {
        bytes.extend_from_slice(piece);
        Ok(())
    });
    written.unwrap();
    bytes
}

/// A call that changes a structure, made from random words.
trait Exercise: Durable + Sized {
    fn change(&mut self, word: u64, rng: &mut ChaCha12Rng) -> Result<Vec<f64>>;

    fn advance_by(&mut self, steps: u64) -> Result<()>;
}

impl Exercise for ContinualVector {
    fn change(&mut self, word: u64, rng: &mut ChaCha12Rng) -> Result<Vec<f64>> {
        let size = self.size();
        let some: Vec<u64> = (0..word >> 8 & 7).map(|i| (word >> 16).wrapping_mul(i + 1) % size).collect();
        match word & 3 {
            0 => self.update(&[(word >> 8 & 15, (word >> 16) as i64 & 1)]).map(|_| Vec::new()),
            1 => self.release(Cells::Indices(&some), rng),
            2 => self.release(Cells::<u64>::Block(word as usize >> 8 & 1), rng),
            _ => self.release_all(rng),
        }
    }

    fn advance_by(&mut self, steps: u64) -> Result<()> {
        self.advance(self.now() + steps)
    }
}

impl Exercise for CountSketch {
    fn change(&mut self, word: u64, rng: &mut ChaCha12Rng) -> Result<Vec<f64>> {
        // Few keys and many: both ways to write down adds.
        let keys: Vec<u64> = (0..word >> 8 & 31).map(|i| (word >> 16).wrapping_mul(i + 1) & 0xff).collect();
        match word & 3 {
            0 => self.update(&keys, Weights::All(1 - (word >> 2 & 2) as i64)).map(|_| Vec::new()),
            1 => {
                let mut raw = self.raw()?;
                raw.update(&keys, Weights::All(1))?;
                self.merge(&raw).map(|()| Vec::new())
            }
            2 => self.estimate(&keys[..keys.len().min(2)], rng),
            _ => self.second_moment(rng).map(|(value, error)| vec![value, error]),
        }
    }

    fn advance_by(&mut self, steps: u64) -> Result<()> {
        self.advance(self.vector().now() + steps)
    }
}

impl Exercise for RangeCounter {
    fn change(&mut self, word: u64, rng: &mut ChaCha12Rng) -> Result<Vec<f64>> {
        let points: Vec<u64> = (0..2 * (word >> 8 & 7)).map(|i| (word >> 16).wrapping_mul(i + 1) % 20).collect();
        let (a, b) = (word >> 16 & 15, word >> 24 & 15);
        match word & 3 {
            0 | 1 => self.update(&points, Weights::All(1)).map(|_| Vec::new()),
            2 => self.count(&[(a.min(b), a.max(b)), (0, 20)], rng),
            _ => Ok(self.second_moments(rng)?.values().to_vec()),
        }
    }

    fn advance_by(&mut self, steps: u64) -> Result<()> {
        self.advance(self.now() + steps)
    }
}

impl Exercise for JoinSize {
    fn change(&mut self, word: u64, rng: &mut ChaCha12Rng) -> Result<Vec<f64>> {
        let side = if word & 4 == 0 { Side::Left } else { Side::Right };
        let keys: Vec<u64> = (0..word >> 8 & 15).map(|i| (word >> 16).wrapping_mul(i + 1) & 0xff).collect();
        match word & 3 {
            0..=2 => self.update(side, &keys, Weights::All(1)).map(|_| Vec::new()),
            _ => self.estimate(rng).map(|value| vec![value]),
        }
    }

    fn advance_by(&mut self, steps: u64) -> Result<()> {
        self.advance(self.vector().now() + steps)
    }
}

/// Runs calls on a structure that keeps a journal. After each of them, and after all from an image in between, the state is that
/// of a structure on which the records are replayed; and an answer of the present step is repeated.
fn check<S: Exercise>(make: &dyn Fn() -> S, words: &[u64]) {
    let (mut rng, mut other) = (ChaCha12Rng::seed_from_u64(1), ChaCha12Rng::seed_from_u64(2));
    let (mut live, mut follower) = (make(), make());
    live.keep_journal();
    for (call, &word) in words.iter().enumerate() {
        if word & 0x300 == 0 {
            // May be past the end.
            let _ = live.advance_by(1 + (word >> 32 & 0xff));
        }
        let before = image(&live);
        let result = live.change(word, &mut rng);
        let journal = live.take_journal();
        if let Err(error) = result {
            assert!(matches!(error, Error::Sealed { .. }), "{error}");
            assert_eq!(image(&live), before);
        }
        assert!(live.take_journal().is_empty());
        follower.replay(&journal.records).unwrap();
        assert_eq!(image(&follower), image(&live), "call {call}");
        if let Ok(values) = result {
            assert_eq!(journal.has_read, word_reads(&journal.records));
            // The same question has the same answer, from other randomness and from what was replayed.
            if live.is_sealed() {
                assert_eq!(follower.change(word, &mut other).unwrap(), values);
                assert_eq!(image(&follower), image(&live));
            }
        }
        if call % 16 == 7 {
            let mut again = make();
            again.replay(&image(&live)).unwrap();
            again.check_whole().unwrap();
            assert_eq!(image(&again), image(&live));
            assert_eq!(again.now(), live.now());
            follower = again;
        }
    }
    // What follows is the same too, if the randomness is.
    let mut again = make();
    again.replay(&image(&live)).unwrap();
    if live.advance_by(3).is_ok() {
        again.advance_by(3).unwrap();
        let (mut rng, mut twin) = (ChaCha12Rng::seed_from_u64(3), ChaCha12Rng::seed_from_u64(3));
        assert_eq!(live.change(3, &mut rng), again.change(3, &mut twin));
    }
}

/// Whether a journal of one call has anything but updates and moves of the clock: it begins with the first record.
fn word_reads(records: &[u8]) -> bool {
    let mut rest = records;
    if let [1, tail @ ..] = rest {
        let number = tail.iter().position(|byte| *byte < 0x80).unwrap();
        rest = &tail[number + 1..];
    }
    !rest.is_empty() && rest[0] != 3
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn a_vector_is_replayed(words in prop::collection::vec(any::<u64>(), 1..60)) {
        for base in bases() {
            check(&|| base.clone().blocks(&[11, 5]).build().unwrap(), &words);
            check(&|| base.clone().cells(1).build().unwrap(), &small(&words));
        }
    }

    #[test]
    fn a_sketch_is_replayed(words in prop::collection::vec(any::<u64>(), 1..40)) {
        for base in bases() {
            let shape = SketchShape { width: 8, depth: 3, max_weight: 1, hash_seed: 5 };
            check(&|| crate::sketch::SketchBuilder::new(base.clone(), shape).build().unwrap(), &words);
        }
    }

    #[test]
    fn a_range_counter_is_replayed(words in prop::collection::vec(any::<u64>(), 1..30)) {
        for base in bases() {
            let shape = RangeShape { width: 8, depth: 3, ..RangeShape::new(&[20, 20]) };
            check(&|| RangeBuilder::new(base.clone(), shape.clone()).build().unwrap(), &words);
        }
    }

    #[test]
    fn a_join_is_replayed(words in prop::collection::vec(any::<u64>(), 1..30)) {
        for base in bases() {
            let shape = SketchShape { width: 32, depth: 3, max_weight: 1, hash_seed: 5 };
            check(&|| crate::join::JoinBuilder::new(base.clone(), shape).build().unwrap(), &words);
        }
    }

    /// Whatever the bytes: an error or a state that can be used.
    #[test]
    fn hostile_records_are_refused_or_harmless(
        bytes in prop::collection::vec(any::<u8>(), 0..200), flips in prop::collection::vec(any::<(u16, u8)>(), 0..4),
        mechanism in 0usize..6,
    ) {
        let make = || bases()[mechanism].clone().blocks(&[11, 5]).build().unwrap();
        let mut rng = ChaCha12Rng::seed_from_u64(3);
        let mut whole = make();
        whole.update(&[(3u64, 1i64)]).unwrap();
        let _ = whole.release(&[2u64, 12], &mut rng).unwrap();
        let _ = whole.release(Cells::<u64>::Block(0), &mut rng).unwrap();
        let mut damaged = image(&whole);
        for (place, mask) in flips {
            let place = usize::from(place) % damaged.len();
            damaged[place] ^= mask;
        }
        for bytes in [bytes, damaged] {
            let mut vector = make();
            if vector.replay(&bytes).and_then(|()| vector.check_whole()).is_ok() {
                let values = vector.release_all(&mut rng).unwrap();
                prop_assert!(values.iter().all(|value| value.is_finite()));
                if vector.advance(vector.now() + 1).is_ok() {
                    let _ = vector.update(&[(0u64, 1i64)]);
                }
            }
        }
    }
}

/// Words for a vector of one cell and one block.
fn small(words: &[u64]) -> Vec<u64> {
    words.iter().map(|word| (word & !(0xf << 8)) | (u64::from(word & 3 == 1) << 8)).collect()
}

#[test]
fn every_single_bit_of_an_image_is_read() {
    // Not a checksum, but no bit is passed over: a changed image is refused, or is that of another state.
    for base in bases() {
        let make = || base.clone().blocks(&[3, 2]).build().unwrap();
        let (mut vector, mut rng) = (make(), ChaCha12Rng::seed_from_u64(4));
        vector.update(&[(3u64, 1i64)]).unwrap();
        let _ = vector.release(&[2u64], &mut rng).unwrap();
        let _ = vector.release(Cells::<u64>::Block(1), &mut rng).unwrap();
        let bytes = image(&vector);
        for bit in 0..8 * bytes.len() {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let mut other = make();
            if other.replay(&damaged).and_then(|()| other.check_whole()).is_ok() {
                assert_ne!(image(&other), bytes);
                assert_eq!(image(&other), damaged);
            }
        }
    }
}

/// A record of one cell that was read at step 1, with these values.
fn held(vector: &ContinualVector, words: &[f64]) -> Vec<u8> {
    let mut record = vec![crate::journal::HELD, 1, 0];
    record.word(1);
    let ranks = match vector.calibration().buffers() {
        Some(buffers) => buffers as u64 + 1,
        None => {
            record.word(1 | 1 << 40);
            2
        }
    };
    record.number(ranks);
    words.iter().for_each(|&word| record.value(word));
    record
}

/// Values below the top of a stack come into later noise, of which a release holds a certain size.
#[test]
fn noise_of_an_impossible_size_is_refused_at_every_rank() {
    let bases = bases();
    for (base, words) in [(&bases[0], 2), (&bases[1], 2), (&bases[2], 4), (&bases[4], 4)] {
        let make = || base.clone().blocks(&[3, 2]).build().unwrap();
        let scale = make().calibration().scale();
        let whole = vec![scale; words];
        make().replay(&held(&make(), &whole)).unwrap();
        for place in 0..words {
            for wrong in [f64::NAN, f64::INFINITY, f64::MAX, -f64::MAX, 1e30 * scale] {
                let mut values = whole.clone();
                values[place] = wrong;
                let refused = make().replay(&held(&make(), &values));
                assert_eq!(refused, Err(Error::Journal { what: "noise of a possible size" }), "{wrong} at {place}");
            }
        }
    }
    // The gamma sums of a Laplace variable, whose difference is the noise.
    for pair in [[1e300, 1e300], [-1.0, -1.0]] {
        let vector = || bases[4].clone().cells(2).build().unwrap();
        assert!(vector().replay(&held(&vector(), &[pair, [1.0, 1.0]].concat())).is_err());
        assert!(vector().replay(&held(&vector(), &[[1.0, 1.0], pair].concat())).is_err());
    }
}

/// What a buffer may hold is bounded by what it adds: the slowest ones hold much.
#[test]
fn the_longest_horizons_buffers_are_replayed() {
    let make = || {
        let base =
            ContinualVector::builder(1 << 62, Zcdp::new(0.5).unwrap()).mechanism(Mechanism::Blt { buffers: None });
        base.cells(200).build().unwrap()
    };
    let (mut vector, mut rng) = (make(), ChaCha12Rng::seed_from_u64(1));
    for step in [1, 2, 1 << 20, 1 << 61, 1 << 62] {
        vector.advance(step).unwrap();
        let _ = vector.release(&[5u64, 6], &mut rng).unwrap();
        let _ = vector.release_all(&mut rng).unwrap();
        let mut again = make();
        again.replay(&image(&vector)).unwrap();
        assert_eq!(image(&again), image(&vector));
    }
}

#[test]
fn no_cell_leaves_a_sweep_of_which_a_part_is_missing() {
    for base in bases() {
        let make = || base.clone().blocks(&[3, 2]).build().unwrap();
        let (mut vector, mut rng) = (make(), ChaCha12Rng::seed_from_u64(1));
        let _ = vector.release(Cells::<u64>::Block(0), &mut rng).unwrap();
        let mut records = image(&vector);
        // A seal and the head of the block, without its values.
        records.truncate(1 + 3 + if vector.calibration().buffers().is_some() { 8 } else { 16 });
        for goes_on in [&[1u64][..], &[0, 1, 2]] {
            if vector.advance(2).is_err() {
                break;
            }
            vector.keep_journal();
            let _ = if goes_on.len() == 1 {
                vector.release(goes_on, &mut rng).unwrap()
            } else {
                vector.advance(3).unwrap();
                vector.release(Cells::<u64>::Block(0), &mut rng).unwrap()
            };
            let next = [&records[..], &[crate::journal::ADVANCE, 2], &vector.take_journal().records].concat();
            assert!(make().replay(&next).is_err());
        }
    }
}

#[test]
fn a_failed_call_leaves_no_record() {
    let mut vector = bases()[0].clone().cells(4).build().unwrap();
    vector.keep_journal();
    assert!(vector.update(&[(9u64, 1i64)]).is_err());
    assert!(vector.advance(0).is_err());
    assert!(vector.release(&[9u64], &mut ChaCha12Rng::seed_from_u64(1)).is_err());
    drop(vector.draw(&[1u64], &mut ChaCha12Rng::seed_from_u64(1)).unwrap());
    vector.advance(1).unwrap();
    assert_eq!(vector.take_journal(), Journal::default());
    // A read of nothing seals.
    let _ = vector.release(&[0u64; 0], &mut ChaCha12Rng::seed_from_u64(1)).unwrap();
    assert_eq!(vector.take_journal(), Journal { records: vec![2], has_read: true, has_update: false });
}

#[test]
fn an_update_counts_whatever_it_holds() {
    let sketch = || CountSketch::builder(8, Zcdp::new(0.5).unwrap()).width(8).invalid(Invalid::Drop).build().unwrap();
    let range = || RangeBuilder::new(bases().remove(0).invalid(Invalid::Drop), RangeShape::new(&[9])).build().unwrap();
    let journals = [
        {
            let mut sketch = sketch();
            Durable::keep_journal(&mut sketch);
            sketch.update::<u64>(&[], Weights::All(1)).unwrap();
            Durable::take_journal(&mut sketch)
        },
        {
            let mut sketch = sketch();
            Durable::keep_journal(&mut sketch);
            assert_eq!(sketch.update(&[1u64], Weights::All(9)), Ok(1));
            Durable::take_journal(&mut sketch)
        },
        {
            let mut range = range();
            Durable::keep_journal(&mut range);
            assert_eq!(range.update(&[99u64], Weights::All(1)), Ok(1));
            Durable::take_journal(&mut range)
        },
        {
            let mut vector = bases().remove(0).cells(1).build().unwrap();
            vector.keep_journal();
            let rows: crate::vector::Rows<'_, u64, i64> = crate::vector::Rows::Dense { values: &[1, -1] };
            vector.update_rows(rows).unwrap();
            vector.take_journal()
        },
    ];
    for journal in journals {
        assert_eq!(journal, Journal { records: vec![], has_read: false, has_update: true });
        assert!(!journal.is_empty());
    }
}

#[test]
fn a_batch_that_overflows_leaves_no_record() {
    let mut vector = ContinualVector::builder(8, Zcdp::new(0.5).unwrap()).cells(2).max_weight(1 << 31).build().unwrap();
    vector.keep_journal();
    vector
        .replay(&{
            let mut records = vec![];
            records.extend([3, 1, 0]);
            records.signed(i64::MAX - 1);
            records
        })
        .unwrap();
    let row: [i64; 4] = [1, 0, 1, 0];
    let rows: crate::vector::Rows<'_, u64, i64> = crate::vector::Rows::Dense { values: &row };
    assert_eq!(vector.update_rows(rows), Err(Error::Overflow { position: 1 }));
    assert!(vector.take_journal().is_empty());
    vector.update(&[(0u64, 1i64)]).unwrap();
    assert_eq!(vector.take_journal().records, [3, 1, 0, 2]);
}

#[test]
fn parameters_have_names_and_tell_structures_apart() {
    let shape = SketchShape { width: 32, depth: 3, max_weight: 2, hash_seed: 5 };
    let sketch = crate::sketch::SketchBuilder::new(bases()[2].clone(), shape).build().unwrap();
    let text = |parameters: &[(&str, String)]| {
        parameters.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(
        text(&sketch.named_parameters()),
        "structure=CountSketch horizon=1099511627776 privacy=mu=1.0 mechanism=blt buffers=3 protect=update contributions=1 \
         on_excess=error invalid=raise cells=96 width=32 depth=3 max_weight=2 hash_seed=5"
    );
    assert_eq!(sketch.noise_numbers().len(), 8);
    let vector = bases()[0].clone().max_norm(0.5).blocks(&[2, 3]).build().unwrap();
    assert!(text(&vector.named_parameters()).ends_with("cells=5 max_norm=0.5 blocks=[2, 3]"));
}

/// The noise of a vector that is stopped and made anew from its image after every read has the covariance of one that never
/// stops: `(LCP + 1) s^2` for the tree. 100,000 cells at alpha = 1e-6, two-sided, Bonferroni over 15 pairs of steps; rejects
/// a state of which only the root and the leaf survive (Cov(65, 66) is then that of a split drawn anew).
#[test]
fn the_law_after_restarts_is_that_of_no_restart() {
    let cells = 100_000;
    let steps = [1u64, 40, 65, 66, 200];
    let restarted = |forgets: bool| {
        let make = || {
            let base = ContinualVector::builder(256, Zcdp::new(0.5).unwrap());
            base.cells(cells).build().unwrap()
        };
        let (mut vector, mut rng) = (make(), ChaCha12Rng::seed_from_u64(5));
        let mut noise = Vec::new();
        for step in steps {
            vector.advance(step).unwrap();
            noise.push(vector.release_all(&mut rng).unwrap());
            let mut next = make();
            next.replay(&image(&vector)).unwrap();
            if forgets {
                next.forget_middle();
            }
            vector = next;
        }
        // The largest deviation of a covariance, in standard deviations of it.
        let s2 = vector.calibration().scale() * vector.calibration().scale();
        let mut worst = 0.0f64;
        for i in 0..steps.len() {
            for k in 0..=i {
                let common = |a: u64, b: u64| f64::from(crate::time::common_levels(a, b, 8) + 1) * s2;
                let (cov, vi, vk) =
                    (common(steps[i], steps[k]), common(steps[i], steps[i]), common(steps[k], steps[k]));
                let mean = noise[i].iter().zip(&noise[k]).map(|(a, b)| a * b).sum::<f64>() / cells as f64;
                let std = crate::math::sqrt((vi * vk + cov * cov) / cells as f64);
                worst = worst.max((mean - cov).abs() / std);
            }
        }
        worst
    };
    // Beyond 5.53 with probability 1e-6 / 30 on either side; sums of 100,000 products are near enough to normal there.
    let (right, wrong) = (restarted(false), restarted(true));
    assert!(right < 5.53, "{right}");
    assert!(wrong > 20.0, "{wrong}");
}

#[test]
fn fresh_noise_after_two_restarts_from_one_image_differs_and_recorded_noise_does_not() {
    for base in bases() {
        let make = || base.clone().cells(8).build().unwrap();
        let mut vector = make();
        let _ = vector.release(&[1u64, 2, 3], &mut ChaCha12Rng::seed_from_u64(6)).unwrap();
        let image = image(&vector);
        let read = |seed, step: u64| {
            let mut again = make();
            again.replay(&image).unwrap();
            again.advance(step.min(again.horizon())).unwrap();
            again.release(&[1u64, 2, 3, 4], &mut ChaCha12Rng::seed_from_u64(seed)).unwrap()
        };
        assert_eq!(read(7, 1)[..3], read(8, 1)[..3]);
        assert_ne!(read(7, 1)[3], read(8, 1)[3]);
        if vector.horizon() > 1 {
            assert!(read(7, 5).iter().zip(read(8, 5)).all(|(a, b)| *a != b));
        }
    }
}

#[test]
fn an_image_comes_in_pieces() {
    let make = || bases()[0].clone().blocks(&[200_000, 300_000]).max_weight(1 << 31).build().unwrap();
    let (mut vector, mut rng) = (make(), ChaCha12Rng::seed_from_u64(9));
    let row: Vec<i64> = (0..500_000).map(|cell| i64::from(cell == rng.next_u64() % 500_000) << 30).collect();
    let _ = vector.update(&row.iter().enumerate().take(1).map(|(i, w)| (i as u64, *w)).collect::<Vec<_>>()).unwrap();
    let _ = vector.release_all(&mut rng).unwrap();
    let wanted: Vec<u64> = (0..100_000).map(|i| i * 5).collect();
    vector.advance(7).unwrap();
    let _ = vector.release(&wanted[..], &mut rng).unwrap();
    let mut pieces = Vec::new();
    let written: core::result::Result<(), ()> = vector.image(|piece| {
        assert!(piece.len() < 3 << 20);
        pieces.push(piece.to_vec());
        Ok(())
    });
    written.unwrap();
    assert!(pieces.len() > 5);
    let mut again = make();
    pieces.iter().for_each(|piece| again.replay(piece).unwrap());
    again.check_whole().unwrap();
    assert_eq!(image(&again), pieces.concat());
    // One that is missing is noticed, unless it has whole cells only.
    let mut partial = make();
    pieces[..pieces.len() - 1].iter().for_each(|piece| partial.replay(piece).unwrap());
    assert!(partial.check_whole().is_err());
    assert_eq!(image(&vector).len(), pieces.concat().len());
}
