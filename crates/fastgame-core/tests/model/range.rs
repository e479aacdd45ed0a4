//! Range counters against a list of weighted points.

use std::collections::BTreeMap;

use fastgame_core::{
    Error, Estimator, Given, Interval, Invalid, Levels, MAX_AXIS, MAX_WEIGHT, RangeBuilder, RangeCounter, RangeShape,
    Result, SecondMoments, Weights,
};

use super::both::{self, Base, Both};
use super::tape::Tape;

struct Model<'a> {
    base: &'a Base,
    shape: RangeShape,
    points: BTreeMap<Vec<u64>, i128>,
    /// The sum of all absolute weights.
    total: i128,
    /// Counts of boxes at this step.
    answers: BTreeMap<Vec<Interval>, u64>,
    moments: Option<SecondMoments>,
}

impl Model<'_> {
    fn dims(&self) -> usize {
        self.shape.sizes.len()
    }

    /// No component is hashed: the finest one has the most rectangles.
    fn all_dense(&self) -> bool {
        let cells = self.shape.sizes.iter().try_fold(1u64, |product, &size| product.checked_mul(size));
        cells.is_some_and(|cells| cells <= (self.shape.depth * self.shape.width) as u64)
    }

    fn update(&mut self, open: Result<()>, points: &[i64], weights: Weights<'_>) -> Result<u64> {
        open?;
        let dims = self.dims();
        if points.len() % dims != 0 {
            return Err(Error::Shape {
                what: "points must have one coordinate for each axis, one point after the other",
            });
        }
        let (mut adds, mut dropped) = both::weigh(points.len() / dims, weights, self.shape.max_weight, self.base)?;
        for (position, point) in points.chunks(dims).enumerate() {
            for (axis, (&x, &size)) in point.iter().zip(&self.shape.sizes).enumerate() {
                if u64::try_from(x).is_ok_and(|x| x < size) {
                    continue;
                }
                if self.base.invalid == Invalid::Raise {
                    return Err(Error::Point { position, axis, given: Given::Signed(x), size });
                }
                (adds[position], dropped[position]) = (0, true);
            }
        }
        for (point, add) in points.chunks(dims).zip(adds) {
            if add != 0 {
                *self.points.entry(point.iter().map(|&x| x as u64).collect()).or_insert(0) += i128::from(add);
                self.total += i128::from(add).abs();
            }
        }
        Ok(dropped.iter().filter(|&&drop| drop).count() as u64)
    }

    fn exact(&self, intervals: &[Interval]) -> f64 {
        let inside = |point: &[u64]| point.iter().zip(intervals).all(|(x, (lo, hi))| lo <= x && x < hi);
        self.points.iter().filter(|(point, _)| inside(point)).map(|(_, weight)| weight).sum::<i128>() as f64
    }

    /// What is wrong with boxes.
    fn wrong(&self, boxes: &[Interval]) -> Option<Error> {
        let dims = self.dims();
        if boxes.len() % dims != 0 {
            return Some(Error::Shape { what: "boxes must have one interval for each axis, one box after the other" });
        }
        boxes.iter().enumerate().find_map(|(i, &(lo, hi))| {
            let (position, axis, size) = (i / dims, i % dims, self.shape.sizes[i % dims]);
            (lo > hi || hi > size).then_some(Error::Box { position, axis, lo, hi, size })
        })
    }

    /// Checks counts of boxes.
    fn check(&mut self, both: &Both<RangeCounter>, boxes: &[Interval], values: &[f64]) {
        let dims = self.dims();
        assert_eq!(values.len(), boxes.len() / dims);
        for (intervals, &value) in boxes.chunks(dims).zip(values) {
            let exact = self.exact(intervals);
            let cells = both.main.cells_of(intervals).unwrap();
            assert!(cells.iter().all(|&cell| cell < both.main.vector().size()));
            // No weight of a rectangle is above one.
            let far = both.reach() + if self.all_dense() { 0.0 } else { 2.0 * self.total as f64 };
            let off = cells.len() as f64 * far + 1e-9 * self.total as f64;
            assert!((value - exact).abs() <= off, "{value} for {exact} in {intervals:?}");
            let first = *self.answers.entry(intervals.to_vec()).or_insert(value.to_bits());
            assert_eq!(first, value.to_bits(), "two counts of {intervals:?}");
        }
    }
}

fn shape(tape: &mut Tape<'_>, base: &mut Base) -> RangeShape {
    let axes = if tape.one_in(32) { tape.pick(&[0, 7]) } else { 1 + tape.below(3) };
    let sizes: Vec<u64> = (0..axes)
        .map(|k| match tape.below(16) {
            // One long axis, or there are thousands of components.
            14 if k == 0 => tape.pick(&[MAX_AXIS, MAX_AXIS - 1, 1 << 20, 1_000_003]),
            15 => tape.pick(&[0, MAX_AXIS + 1, 1, 1]),
            _ => tape.pick(&[1, 2, 3, 5, 8, 16, 20]),
        })
        .collect();
    let shape = RangeShape {
        width: if tape.one_in(32) { tape.pick(&[0, 3]) } else { 1 << tape.below(7) },
        depth: if tape.one_in(32) { tape.pick(&[0, 2, 65]) } else { tape.pick(&[1, 3, 5, 7]) },
        max_weight: if tape.one_in(32) {
            tape.pick(&[0, MAX_WEIGHT + 1])
        } else {
            tape.pick(&[1, 2, 1000, MAX_WEIGHT])
        },
        hash_seed: tape.byte().into(),
        levels: if tape.one_in(4) { Levels::Dyadic } else { Levels::Every(tape.pick(&[2, 2, 1, 3, 8, 0, 9])) },
        estimator: tape.pick(&[Estimator::LeastSquares, Estimator::Cover]),
        ..RangeShape::new(&sizes)
    };
    let mut note = |is_wrong: bool, name| {
        if is_wrong {
            base.wrong.push(name);
        }
    };
    note(!(1..=6).contains(&axes) || sizes.iter().any(|&size| size == 0 || size > MAX_AXIS), "sizes");
    note(!shape.width.is_power_of_two(), "width");
    note(shape.depth % 2 == 0 || shape.depth > 63, "depth");
    note(!(1..=MAX_WEIGHT).contains(&shape.max_weight), "max_weight");
    note(matches!(shape.levels, Levels::Every(0 | 9)), "levels");
    shape
}

fn coordinate(tape: &mut Tape<'_>, size: u64) -> u64 {
    match tape.below(4) {
        0 => tape.pick(&[0, size - 1, size / 2]),
        1 => tape.word() % size,
        _ => u64::from(tape.byte()) % size,
    }
}

fn intervals(tape: &mut Tape<'_>, sizes: &[u64]) -> Vec<Interval> {
    let one = |tape: &mut Tape<'_>, size| {
        let (a, b) = (coordinate(tape, size), coordinate(tape, size));
        match tape.below(8) {
            0 => (0, size),
            1 => (a, a),
            2 => (a, size),
            _ => (a.min(b), a.max(b) + 1),
        }
    };
    sizes.iter().map(|&size| one(tape, size)).collect()
}

fn boxes(tape: &mut Tape<'_>, sizes: &[u64]) -> Vec<Interval> {
    let mut boxes: Vec<Interval> = tape.many(4, |tape| intervals(tape, sizes)).concat();
    match tape.below(16) {
        0 => boxes.push((0, 1)),
        1 => boxes.iter_mut().take(1).for_each(|interval| interval.1 = tape.pick(&[u64::MAX, sizes[0] + 1])),
        2 => boxes.iter_mut().take(1).for_each(|interval| interval.0 = interval.1 + 1),
        _ => {}
    }
    boxes
}

pub(crate) fn play(tape: &mut Tape<'_>) {
    let mut base = both::base(tape);
    let shape = shape(tape, &mut base);
    let builder = RangeBuilder::new(base.builder.clone(), shape.clone());
    let Some(main) = both::built(builder.build(), &base) else { return };
    let mut both = Both::new(main, move || builder.build().unwrap(), base.horizon);
    let mut model =
        Model { base: &base, points: BTreeMap::new(), total: 0, answers: BTreeMap::new(), moments: None, shape };
    while !tape.is_over() {
        match tape.below(12) {
            0..=2 => update(tape, &mut model, &mut both),
            3 | 4 => {
                if both.advance(tape) {
                    model.answers.clear();
                }
            }
            5 => {
                let (moments, _) = both.read(tape, None, true, |counter, rng| counter.second_moments(rng)).unwrap();
                assert!(moments.values().iter().all(|moment| moment.is_finite()));
                assert_eq!(moments.values().is_empty(), model.all_dense());
                assert_eq!(both.again(|counter, rng| counter.second_moments(rng)), moments);
                model.moments = Some(moments);
            }
            6 | 7 => {
                let boxes = boxes(tape, &model.shape.sizes);
                let wrong = model.wrong(&boxes);
                assert_eq!(both.main.cells_of(&boxes).err(), wrong);
                let read = both.read(tape, wrong, true, |counter, rng| counter.count(&boxes, rng));
                if let Some((values, _)) = read {
                    model.check(&both, &boxes, &values);
                }
            }
            8 => with_error(tape, &mut model, &mut both),
            9 => grid(tape, &mut model, &mut both),
            10 => one_axis(tape, &mut model, &mut both),
            _ => heavy(tape, &mut model, &mut both),
        }
    }
}

fn update(tape: &mut Tape<'_>, model: &mut Model<'_>, both: &mut Both<RangeCounter>) {
    let sizes = model.shape.sizes.clone();
    let mut points: Vec<i64> =
        tape.many(12, |tape| sizes.iter().map(|&size| coordinate(tape, size) as i64).collect::<Vec<_>>()).concat();
    match tape.below(16) {
        0 => points.push(0),
        1 | 2 if !points.is_empty() => {
            let place = tape.below(points.len().min(256));
            points[place] = tape.pick(&[-1, i64::MAX, i64::MIN, sizes[place % sizes.len()] as i64]);
        }
        _ => {}
    }
    let (count, max) = (points.len() / sizes.len(), model.shape.max_weight);
    let (all, each);
    let weights = if tape.one_in(2) {
        all = both::weight(tape, max);
        Weights::All(all)
    } else {
        let count = if tape.one_in(16) { count + 1 } else { count };
        each = (0..count).map(|_| both::weight(tape, max)).collect::<Vec<_>>();
        Weights::Each(&each)
    };
    let expected = model.update(both.open(), &points, weights);
    assert_eq!(both.main.update(&points, weights), expected);
    if let Some(twin) = both.twin.as_mut().filter(|_| !both.sealed) {
        let point: Vec<u64> = sizes.iter().map(|&size| coordinate(tape, size)).collect();
        assert_eq!(twin.update(&point, Weights::All(1)), Ok(0));
    }
    both.check();
}

fn with_error(tape: &mut Tape<'_>, model: &mut Model<'_>, both: &mut Both<RangeCounter>) {
    let boxes = boxes(tape, &model.shape.sizes);
    let none = SecondMoments::default();
    let moments = match tape.below(3) {
        0 => None,
        1 => Some(&none),
        _ => model.moments.as_ref(),
    };
    let what = "there must be one second moment for each sketched component of this structure";
    let foreign = moments.is_some_and(|moments| moments.values().is_empty()) && !model.all_dense();
    let wrong = model.wrong(&boxes).or(foreign.then_some(Error::Shape { what }));
    let read = both.read(tape, wrong, true, |counter, rng| counter.count_with_error(&boxes, moments, rng));
    let Some((counts, _)) = read else { return };
    assert!(counts.stds.iter().all(|std| std.is_finite() && *std >= 0.0), "{:?}", counts.stds);
    let dense = model.all_dense();
    for ((intervals, value), std) in boxes.chunks(model.dims()).zip(&counts.values).zip(&counts.stds) {
        let empty = intervals.iter().any(|(lo, hi)| lo == hi);
        assert_eq!(*std == 0.0, empty);
        if dense {
            let exact = model.exact(intervals);
            assert!((value - exact).abs() <= 60.0 * std + 1e-9 * model.total as f64, "{value} for {exact}, std {std}");
        }
    }
    model.check(both, &boxes, &counts.values);
}

fn grid(tape: &mut Tape<'_>, model: &mut Model<'_>, both: &mut Both<RangeCounter>) {
    let sizes = model.shape.sizes.clone();
    let marginal = tape.one_in(2).then(|| tape.below(sizes.len() + 1));
    let log_side = |tape: &mut Tape<'_>| tape.pick(&[62u32, 2, 1, 0, 61, 20, u32::MAX]);
    let (mut sides, mut wrong): (Vec<u32>, _) = (sizes.iter().map(|_| log_side(tape)).collect(), None);
    if let Some(axis) = marginal {
        let side = sides[0];
        sides.fill(62);
        match sides.get_mut(axis) {
            Some(of_axis) => *of_axis = side,
            None => {
                let allowed = "below the number of axes";
                wrong = Some(Error::Parameter { name: "axis", given: axis.into(), allowed });
                sides[0] = side;
            }
        }
    } else if tape.one_in(16) {
        sides.push(0);
        wrong = Some(Error::Shape { what: "a grid must have one log_side for each axis" });
    }
    let count = |k: usize| sizes[k].div_ceil(1 << sides[k].min(62));
    let cells = (0..sizes.len()).try_fold(1u64, |product, k| product.checked_mul(count(k)));
    if wrong.is_none() && cells.is_none_or(|cells| cells > 512) {
        if cells.is_none_or(|cells| cells >= 1 << 60) {
            wrong = Some(Error::Memory);
        } else {
            return;
        }
    }
    let side = sides[0];
    let read = both.read(tape, wrong, true, |counter, rng| match marginal {
        Some(axis) => {
            let of_axis = sides.get(axis).copied().unwrap_or(side);
            counter.marginal(axis, of_axis, rng)
        }
        None => counter.grid(&sides, rng),
    });
    let Some((values, _)) = read else { return };
    // Cell by cell, the last axis fastest.
    let boxes: Vec<Interval> = (0..cells.unwrap())
        .flat_map(|mut number| {
            let mut intervals = vec![(0, 0); sizes.len()];
            for k in (0..sizes.len()).rev() {
                let (place, side) = (number % count(k), 1u64 << sides[k].min(62));
                number /= count(k);
                intervals[k] = (place * side, (place * side).saturating_add(side).min(sizes[k]));
            }
            intervals
        })
        .collect();
    model.check(both, &boxes, &values);
    let again = both.again(|counter, rng| counter.count(&boxes, rng));
    model.check(both, &boxes, &again);
}

fn one_axis(tape: &mut Tape<'_>, model: &mut Model<'_>, both: &mut Both<RangeCounter>) {
    let size = model.shape.sizes[0];
    let allowed = "a single axis for prefix counts, quantiles and heavy hitters";
    let axes = Error::Parameter { name: "sizes", given: model.dims().into(), allowed };
    let axes = (model.dims() > 1).then_some(axes);
    if tape.one_in(2) {
        let ends = tape.many(6, |tape| if tape.one_in(16) { size + 1 } else { coordinate(tape, size) + 1 });
        let boxes: Vec<Interval> = ends.iter().map(|&end| (0, end)).collect();
        let wrong = axes.or_else(|| model.wrong(&boxes));
        if let Some((values, _)) = both.read(tape, wrong, true, |counter, rng| counter.prefix(&ends, rng)) {
            model.check(both, &boxes, &values);
        }
        return;
    }
    let qs = tape.many(4, |tape| tape.pick(&[0.5, 0.0, 1.0, 0.25, 0.999, 0.1, -0.5, 1.5]));
    let bad = qs.iter().find(|q| !(0.0..=1.0).contains(*q));
    let bad = bad.map(|&q| Error::Parameter { name: "q", given: Given::Float(q), allowed: "from 0 to 1" });
    let Some(found) = both.descend(tape, axes.or(bad), |counter, rng| counter.quantile(&qs, rng)) else { return };
    let whole = both.again(|counter, rng| counter.count_with_error(&[(0, size)], None, rng));
    let total = whole.values[0];
    let shares = both.again(|counter, rng| counter.cdf(&[size], rng));
    assert_eq!(shares, found.as_ref().map(|_| vec![1.0]));
    // A total that is above four of its standard deviations is above its 95 % error whatever the law, and a negative one is not.
    let Some(found) = found else {
        assert!(total <= 4.0 * whole.stds[0], "{whole:?}");
        return;
    };
    assert!(total > 1.9 * whole.stds[0], "{whole:?}");
    assert_eq!(found.len(), qs.len());
    for (&x, q) in found.iter().zip(&qs) {
        assert!(x < size);
        let ends = [x, x + 1];
        // Every end that decided was read.
        let counts = both.again(|counter, rng| counter.prefix(&ends, rng));
        assert!(x == 0 || counts[0] < q * total, "{counts:?} at {x} for {q} of {total}");
        assert!(x + 1 == size || counts[1] >= q * total, "{counts:?} at {x} for {q} of {total}");
        model.check(both, &[(0, ends[0]), (0, ends[1])], &counts);
    }
}

fn heavy(tape: &mut Tape<'_>, model: &mut Model<'_>, both: &mut Both<RangeCounter>) {
    let allowed = "a single axis for prefix counts, quantiles and heavy hitters";
    let axes = Error::Parameter { name: "sizes", given: model.dims().into(), allowed };
    let std = both.main.noise_std();
    let (threshold, limit) =
        (tape.pick(&[3.0 * std, std, 100.0 * std, 1.0, 0.0, -1.0, f64::INFINITY]), tape.pick(&[10, 1, 3, 0]));
    let wrong = if model.dims() > 1 {
        Some(axes)
    } else if !(threshold > 0.0 && threshold.is_finite()) {
        Some(Error::Parameter { name: "threshold", given: Given::Float(threshold), allowed: "a positive number" })
    } else if limit == 0 {
        Some(Error::Parameter { name: "limit", given: Given::Unsigned(0), allowed: "at least 1" })
    } else {
        None
    };
    let Some(found) = both.descend(tape, wrong, |counter, rng| counter.heavy_hitters(threshold, limit, rng)) else {
        return;
    };
    assert!(found.items.len() <= limit);
    assert!(found.items.iter().all(|&(x, count)| x < model.shape.sizes[0] && count >= threshold));
    assert!(found.items.windows(2).all(|pair| pair[0].1 >= pair[1].1 && pair[0].0 != pair[1].0));
    assert_eq!(both.again(|counter, rng| counter.heavy_hitters(threshold, limit, rng)), found);
}
