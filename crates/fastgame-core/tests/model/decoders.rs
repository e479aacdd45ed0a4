//! Checks of decoders: whatever the bytes are, no panic, and what is accepted has exactly one form.

use fastgame_core::{CountSketch, Error, Invalid, Key, OnExcess, RawSketch, SketchShape, Weights, Zcdp};

/// What a target runs on its input, and the replay on each kept one.
pub(crate) type Check = fn(&[u8]);

/// The targets of decoders.
pub(crate) const ALL: [(&str, Check); 1] = [("decode_raw", raw_sketch)];

/// The fixed part of a raw sketch: a name and seven fields.
pub(crate) const RAW_HEADER: usize = 64;

/// The counters in a raw sketch's form.
pub(crate) fn raw_counters(bytes: &[u8]) -> Vec<i64> {
    bytes[RAW_HEADER..].chunks_exact(8).map(|word| i64::from_le_bytes(word.try_into().unwrap())).collect()
}

/// The bound on the counters that stands in a raw sketch's form.
pub(crate) fn raw_total(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes[48..56].try_into().unwrap())
}

pub(crate) fn raw_sketch(bytes: &[u8]) {
    let mut raw = match RawSketch::from_bytes(bytes) {
        Ok(raw) => raw,
        Err(error) => {
            assert!(matches!(error, Error::Shape { .. } | Error::Parameter { .. }), "{error:?}");
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    assert_eq!(raw.to_bytes().unwrap(), bytes, "two forms of one sketch");
    let SketchShape { width, depth, max_weight, hash_seed } = raw.shape();
    assert_eq!(bytes.len(), RAW_HEADER + 8 * width * depth);
    assert!(width.is_power_of_two() && depth % 2 == 1 && (1..=1 << 31).contains(&max_weight));

    // It can be used: what it holds is added up exactly, or nothing is.
    let before = raw_counters(bytes);
    let most = before.iter().map(|counter| counter.unsigned_abs()).max().unwrap();
    let (total, fits) =
        (raw_total(bytes), |bound: u64, more: u64| bound.checked_add(more).is_some_and(|sum| sum <= i64::MAX as u64));
    assert!(most <= total);
    let result = raw.update(&[Key::from(5u64)], Weights::All(1));
    let after = raw_counters(&raw.to_bytes().unwrap());
    if fits(most, 1) {
        assert_eq!(result, Ok(0));
        let moved = before.iter().zip(&after).filter(|(before, after)| before != after);
        assert!(moved.clone().all(|(before, after)| before.abs_diff(*after) == 1));
        assert_eq!(moved.count(), depth);
    } else {
        assert_eq!(result, Err(Error::Overflow { position: 0 }));
        assert_eq!(after, before);
    }

    let raw = RawSketch::from_bytes(bytes).unwrap();
    let shape = raw.shape();
    let mut sum = RawSketch::new(shape, OnExcess::Error, Invalid::Raise).unwrap();
    sum.merge(&raw).unwrap();
    assert_eq!(raw_counters(&sum.to_bytes().unwrap()), before);
    assert_eq!(sum.dropped(), raw.dropped());
    match sum.merge(&raw) {
        Ok(()) => {
            let doubled = before.iter().map(|counter| 2 * counter);
            assert!(raw_counters(&sum.to_bytes().unwrap()).into_iter().eq(doubled));
        }
        Err(error) => {
            assert_eq!(error, Error::Overflow { position: 0 });
            assert!(!fits(most, total));
            assert_eq!(raw_counters(&sum.to_bytes().unwrap()), before);
        }
    }

    // Into a sketch it goes if every counter fits, and a single one that does not is named.
    let builder = CountSketch::builder(4, Zcdp::new(0.5).unwrap());
    let builder = builder.width(width).depth(depth).max_weight(max_weight).hash_seed(hash_seed);
    let Ok(mut sketch) = builder.build() else { return };
    sketch.merge(&raw).unwrap();
    let first = before.iter().position(|counter| counter.checked_mul(2).is_none());
    match (sketch.merge(&raw), first) {
        (Ok(()), None) => {}
        (Err(Error::Overflow { position }), Some(first)) => assert_eq!(position, first),
        other => panic!("{other:?}"),
    }
}
