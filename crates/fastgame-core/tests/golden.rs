//! Seeded releases, bit by bit. A seed repeats a study only while these stand.
//!
//! Promised: on one platform, with default features and the locked dependencies, a structure with the same parameters,
//! seed, updates and reads releases the same bits, and so do the estimates made of them. Other
//! platforms and other dependencies may round the floating point functions under the sampler otherwise; this file is empty
//! but on the platform where its constants were computed.
//!
//! A change of these constants changes every reproducible study. It must be named in the change log as value-breaking; no
//! change that is only meant to be faster or tidier may make one. New constants: the failing test prints the whole table, to
//! be put in the place of `GOLDEN` (then `cargo fmt`).

#![cfg(all(feature = "std", target_os = "linux", target_arch = "x86_64"))]

use chacha20::ChaCha12Rng;
use fastgame_core::rand_core::SeedableRng;
use fastgame_core::{
    Builder, Cells, ContinualCounter, ContinualVector, Estimator, JoinBuilder, Levels, Mechanism, RangeBuilder,
    RangeShape, Rows, Side, SketchBuilder, SketchShape, Unit, Weights, Zcdp,
};

const LAWS: [(&str, Mechanism, Unit); 3] = [
    ("tree, update", Mechanism::Tree, Unit::Update),
    ("tree, lifetime", Mechanism::Tree, Unit::Lifetime),
    ("tree-paper, update", Mechanism::TreePaper, Unit::Update),
];

const HORIZONS: [u64; 5] = [1, 2, 1000, 1 << 20, 1 << 62];

/// Every case is run with these seeds; the reads that a run begins with, its budget and its shape depend on the seed.
const SEEDS: std::ops::Range<usize> = 0..8;

/// FNV-1a, 64 bits.
struct Hash(u64);

impl Hash {
    fn word(&mut self, word: u64) {
        for byte in word.to_le_bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    fn values(&mut self, values: &[f64]) {
        self.word(values.len() as u64);
        values.iter().for_each(|value| self.word(value.to_bits()));
    }
}

/// One history of a structure, and where its releases go.
struct Run<'a> {
    base: Builder,
    seed: usize,
    horizon: u64,
    hash: &'a mut Hash,
}

impl Run<'_> {
    /// As the Python package seeds a structure.
    fn rng(&self, key: impl FnOnce(u64) -> [u8; 32]) -> ChaCha12Rng {
        ChaCha12Rng::from_seed(key(self.seed as u64))
    }

    /// What is read at a step: kinds of reads, numbered on from the seed so that a short horizon sees all of them too.
    fn reads(&self, round: usize) -> [usize; 2] {
        [round + self.seed, 3 * round + self.seed / 2 + 1]
    }
}

/// Neighbouring steps and long jumps, up to the last.
fn steps(horizon: u64) -> Vec<u64> {
    let near = [1, 2, 3, 4, 6, 7, 8, 100, 101, 255, 256, 257, 511, 999, 1000];
    let far = [1 << 16, (1 << 16) + 1, 777_777, (1 << 19) + 1, 1 << 20, 1 << 40, (1 << 40) + 1, 1 << 61, (1 << 61) + 1];
    let ends = [horizon / 3, horizon / 3 + 1, horizon / 2, horizon / 2 + 1, horizon - 1, horizon];
    let mut steps = [&near[..], &far, &ends].concat();
    steps.retain(|step| (1..=horizon).contains(step));
    steps.sort_unstable();
    steps.dedup();
    steps
}

/// Weights within a bound of 3.
fn weight(i: usize) -> i64 {
    (i * i + 1) as i64 % 7 - 3
}

/// Reads of a vector of 27 cells in so many blocks.
fn read_vector(run: &mut Run<'_>, vector: &mut ContinualVector, blocks: usize, rng: &mut ChaCha12Rng, round: usize) {
    // A cell that was read on its own is kept so from then on. With an even seed the odd ones never are, and blocks stay mixed.
    let cell = |i: usize| if run.seed % 2 == 0 { ((i % 27) & !1) as u64 } else { (i % 27) as u64 };
    for read in run.reads(round) {
        let mut cells = |numbers: &[usize]| {
            let cells: Vec<u64> = numbers.iter().map(|&i| cell(i)).collect();
            vector.release(&cells[..], rng)
        };
        let values = match read % 8 {
            0 => vector.release_all(rng),
            1 => vector.release(Cells::<u64>::Block(read % blocks), rng),
            2 => cells(&[5 * read]),
            3 => cells(&[26, 3, 26, 26, 3]),
            4 => cells(&[0, 7, 14, 21, 28, 35, 7].map(|i| i + 3 * read)),
            5 => cells(&(0..54).rev().collect::<Vec<usize>>()),
            6 => vector.release(Cells::<u64>::Block(0), rng),
            _ => {
                // Draws that are forgotten have used the generator up.
                drop(vector.draw(&[cell(1), cell(20)], rng).unwrap());
                vector.release(&[cell(0), cell(1)], rng)
            }
        };
        run.hash.values(&values.unwrap());
    }
}

fn integer_vector(run: &mut Run<'_>) {
    let builder = run.base.clone().blocks(&[5, 1, 21]).max_weight(3);
    let mut rng = run.rng(|seed| builder.insecure_key("ContinualVector", seed));
    let mut vector = builder.build().unwrap();
    for (round, step) in steps(run.horizon).into_iter().enumerate() {
        vector.advance(step).unwrap();
        for i in 0..4 {
            vector.update(&[((11 * round + i) as u64 % 27, weight(round + i))]).unwrap();
        }
        read_vector(run, &mut vector, 3, &mut rng, round);
    }
}

fn real_vector(run: &mut Run<'_>) {
    let builder = run.base.clone().cells(27).max_norm(0.37);
    let mut rng = run.rng(|seed| builder.insecure_key("ContinualVector", seed));
    let mut vector = builder.build().unwrap();
    for (round, step) in steps(run.horizon).into_iter().enumerate() {
        vector.advance(step).unwrap();
        let values = [0, 1, 2].map(|i| weight(round + i) as f64 / 15.3);
        vector.update_rows(Rows::Sparse { offsets: &[0, 2, 3], indices: &[2u64, 20, 5], values: &values }).unwrap();
        read_vector(run, &mut vector, 1, &mut rng, round);
    }
}

fn counter(run: &mut Run<'_>) {
    let builder = run.base.clone().cells(1).max_weight(3);
    let mut rng = run.rng(|seed| builder.insecure_key("ContinualCounter", seed));
    let mut counter = ContinualCounter::new(builder).unwrap();
    for (round, step) in steps(run.horizon).into_iter().enumerate() {
        counter.vector_mut().advance(step).unwrap();
        counter.update(&[weight(round), weight(round + 1), 3]).unwrap();
        // Twice, the second time as cells of a vector.
        let value = counter.release(&mut rng).unwrap();
        run.hash.values(&[value]);
        run.hash.values(&counter.vector_mut().release(&[0u64, 0], &mut rng).unwrap());
    }
}

fn sketch(run: &mut Run<'_>) {
    let depth = [3, 5][run.seed % 2];
    let shape = SketchShape { width: 64, depth, max_weight: 3, hash_seed: 11 };
    let builder = SketchBuilder::new(run.base.clone(), shape);
    let mut rng = run.rng(|seed| builder.insecure_key("CountSketch", seed).unwrap());
    let mut sketch = builder.build().unwrap();
    let many: Vec<u64> = (0..70).collect();
    for (round, step) in steps(run.horizon).into_iter().enumerate() {
        sketch.advance(step).unwrap();
        sketch.update(&many[round..], Weights::All(weight(round))).unwrap();
        for read in run.reads(round) {
            let key = (read % 50) as u64;
            // Few keys are read cell by cell, many in a sweep of all.
            let values = match read % 5 {
                0 => sketch.estimate(&[key, 3, key], &mut rng).unwrap(),
                1 => sketch.estimate(&many, &mut rng).unwrap(),
                2 => <[f64; 2]>::from(sketch.second_moment(&mut rng).unwrap()).to_vec(),
                3 => sketch.estimate(&[key], &mut rng).unwrap(),
                _ => {
                    let estimates = sketch.estimate_with_std(&many[..5], &mut rng).unwrap();
                    [&estimates.values[..], &[estimates.error]].concat()
                }
            };
            run.hash.values(&values);
        }
    }
}

/// Cells are dense in coarse components and sketched in fine ones.
fn range_builder(run: &Run<'_>, sizes: &[u64]) -> RangeBuilder {
    let (levels, estimator) =
        [(Levels::Every(2), Estimator::LeastSquares), (Levels::Dyadic, Estimator::Cover)][run.seed % 2];
    let shape =
        RangeShape { width: 16, depth: 3, max_weight: 3, hash_seed: 11, levels, estimator, sizes: sizes.to_vec() };
    RangeBuilder::new(run.base.clone(), shape)
}

fn line(run: &mut Run<'_>) {
    let builder = range_builder(run, &[1000]);
    let mut rng = run.rng(|seed| builder.insecure_key("RangeCounter", seed).unwrap());
    let mut range = builder.build().unwrap();
    for (round, step) in steps(run.horizon).into_iter().enumerate() {
        range.advance(step).unwrap();
        let points: Vec<u64> = (0..30).map(|i| (i * i + 7 * round as u64) % 1000).collect();
        range.update(&points, Weights::All(weight(round))).unwrap();
        for read in run.reads(round) {
            let x = 13 * read as u64 % 500;
            let values = match read % 6 {
                0 => range.count(&[(x, 700), (0, 1000), (x, x + 1)], &mut rng).unwrap(),
                1 => {
                    let found = range.quantile(&[0.1, 0.5], &mut rng).unwrap();
                    found.map_or(vec![-1.0], |found| found.into_iter().map(|x| x as f64).collect())
                }
                2 => {
                    let found = range.heavy_hitters(20.0, 8, &mut rng).unwrap();
                    found.items.into_iter().flat_map(|(x, count)| [x as f64, count]).collect()
                }
                3 => range.second_moments(&mut rng).unwrap().values().to_vec(),
                4 => range.prefix(&[x, 999], &mut rng).unwrap(),
                _ => {
                    let counts = range.count_with_error(&[(3, x + 4), (x, 999)], None, &mut rng).unwrap();
                    [counts.values, counts.stds].concat()
                }
            };
            run.hash.values(&values);
        }
    }
}

fn plane(run: &mut Run<'_>) {
    let builder = range_builder(run, &[40, 24]);
    let mut rng = run.rng(|seed| builder.insecure_key("RangeCounter", seed).unwrap());
    let mut range = builder.build().unwrap();
    for (round, step) in steps(run.horizon).into_iter().enumerate() {
        range.advance(step).unwrap();
        let points: Vec<u64> = (0..30).flat_map(|i| [(i * i + round as u64) % 40, 7 * i % 24]).collect();
        range.update(&points, Weights::All(weight(round))).unwrap();
        for read in run.reads(round) {
            let x = read as u64 % 20;
            let values = match read % 5 {
                0 => range.count(&[(x, 37), (1, 24), (0, 40), (x, x + 1)], &mut rng).unwrap(),
                1 => range.grid(&[4, 3], &mut rng).unwrap(),
                2 => range.count(&[(x, x + 1), (3, 4)], &mut rng).unwrap(),
                3 => {
                    let moments = range.second_moments(&mut rng).unwrap();
                    let counts = range.count_with_error(&[(x, 39), (0, x)], Some(&moments), &mut rng).unwrap();
                    [moments.values(), &counts.values, &counts.stds].concat()
                }
                _ => range.marginal(1, 1, &mut rng).unwrap(),
            };
            run.hash.values(&values);
        }
    }
}

fn join(run: &mut Run<'_>) {
    let shape = SketchShape { width: 32, depth: [3, 5][run.seed % 2], max_weight: 3, hash_seed: 11 };
    let builder = JoinBuilder::new(run.base.clone(), shape);
    let mut rng = run.rng(|seed| builder.insecure_key("JoinSize", seed).unwrap());
    let mut join = builder.build().unwrap();
    let keys: Vec<u64> = (0..70).collect();
    for (round, step) in steps(run.horizon).into_iter().enumerate() {
        join.advance(step).unwrap();
        join.update(Side::Left, &keys[round..], Weights::All(weight(round))).unwrap();
        join.update(Side::Right, &keys[..round], Weights::All(weight(round + 1))).unwrap();
        if run.reads(round)[0] % 2 == 0 {
            let value = join.estimate(&mut rng).unwrap();
            run.hash.values(&[value]);
        } else {
            let estimate = join.estimate_with_error(&mut rng).unwrap();
            run.hash.values(&estimate.rows);
            run.hash.values(&estimate.moments);
            run.hash.values(&[estimate.value, estimate.std, estimate.std_of_rows.unwrap()]);
        }
    }
}

type Case = fn(&mut Run<'_>);

const STRUCTURES: [(&str, Case); 7] = [
    ("vector, max_weight", integer_vector),
    ("vector, max_norm", real_vector),
    ("counter", counter),
    ("sketch", sketch),
    ("range, 1-d", line),
    ("range, 2-d", plane),
    ("join", join),
];

fn hashed(case: Case, mechanism: Mechanism, unit: Unit, horizon: u64) -> u64 {
    let mut hash = Hash(0xcbf2_9ce4_8422_2325);
    for seed in SEEDS {
        // With the small budget the lattice is coarser than a weight of one.
        let budget = Zcdp::new([0.5, 1e-4][seed / 2 % 2]).unwrap();
        let base = ContinualVector::builder(horizon, budget).mechanism(mechanism).unit(unit);
        case(&mut Run { base, seed, horizon, hash: &mut hash });
    }
    hash.0
}

#[test]
fn seeded_releases_are_the_same_bit_by_bit() {
    let row = |structure: &str, law: &str, hashes: &[u64]| {
        let hashes: Vec<String> = hashes.iter().map(|hash| format!("{hash:#018x}")).collect();
        format!("    ({structure:?}, {law:?}, &[{}]),", hashes.join(", "))
    };
    let mut found = Vec::new();
    for (structure, case) in STRUCTURES {
        for (law, mechanism, unit) in LAWS {
            // The paper's scale is for more than one step.
            let horizons = HORIZONS.into_iter().filter(|&horizon| horizon > 1 || mechanism == Mechanism::Tree);
            let hashes: Vec<u64> = horizons.map(|horizon| hashed(case, mechanism, unit, horizon)).collect();
            found.push(row(structure, law, &hashes));
        }
    }
    let golden: Vec<String> = GOLDEN.iter().map(|(structure, law, hashes)| row(structure, law, hashes)).collect();
    let changed: Vec<&str> = found.iter().filter(|row| !golden.contains(row)).map(String::as_str).collect();
    assert!(found == golden, "these differ:\n{}\nthe whole table:\n{}", changed.join("\n"), found.join("\n"));
}

/// For each structure and law one hash a horizon.
const GOLDEN: &[(&str, &str, &[u64])] = &[
    (
        "vector, max_weight",
        "tree, update",
        &[0x0c2a7c228bead060, 0x2c7957daca553b06, 0x55396455d4a31949, 0xcd1ebdc4ba8f33ad, 0xf1dee3505f109d3b],
    ),
    (
        "vector, max_weight",
        "tree, lifetime",
        &[0x87b4cf484cbeb31c, 0x3b05b8a07939df2d, 0x90a9f4e0eb0949e6, 0x13b45409309989af, 0x66790f96c9018993],
    ),
    (
        "vector, max_weight",
        "tree-paper, update",
        &[0xb7bc52530a1267fb, 0xb5576c13cbc96d88, 0x019ac606c1feb8a7, 0xa6d29c58033e2781],
    ),
    (
        "vector, max_norm",
        "tree, update",
        &[0x9c55f22f91ec12c2, 0x3cdd715bc17a9022, 0x521c23dbcc84327c, 0x0c5cf457b093106c, 0x65b6596eb11a3e64],
    ),
    (
        "vector, max_norm",
        "tree, lifetime",
        &[0x996929b5bae9c468, 0x141ff3f4a60aef92, 0xe880cbee98d9832f, 0xb07e5685d3e61fc4, 0x3f749354a66e9616],
    ),
    (
        "vector, max_norm",
        "tree-paper, update",
        &[0xa0acb434be40652c, 0x89e7031f51d87c97, 0x5e953a04955634de, 0x4ed1de3608b60750],
    ),
    (
        "counter",
        "tree, update",
        &[0xa22cf0da9cf675ff, 0x7e23394b8d803d40, 0x33a472a4655decc8, 0x46178e6e545f9ede, 0x91a0c0b986ef9065],
    ),
    (
        "counter",
        "tree, lifetime",
        &[0xbef4575674ae3e1e, 0x444a59b7be4d727b, 0x9310b6cc51e70fba, 0x57a738dba0559d74, 0xf354ecd0c0f8ae29],
    ),
    (
        "counter",
        "tree-paper, update",
        &[0x6e7cf4a0baedd5ca, 0xb333123003607a7d, 0xa4b0e60af36cbe2b, 0x63ed4f46df4b040e],
    ),
    (
        "sketch",
        "tree, update",
        &[0xf5c4910a257cf58c, 0x5d7a7d55ea799631, 0x27cfe8cf34185916, 0x5c284cc543f43ff7, 0x5d95a6e691c5c6e7],
    ),
    (
        "sketch",
        "tree, lifetime",
        &[0x18dd67912c41ebbf, 0xf5644b2e4a709c61, 0xf7a8f73c5b7fa1bf, 0xcc56c325467ad0be, 0xc2e27f9b263fcd1d],
    ),
    ("sketch", "tree-paper, update", &[0x87c8019cc0d6a6ed, 0x24d10916a55ae547, 0xb14810f817e88d21, 0x04fc9a9b49441057]),
    (
        "range, 1-d",
        "tree, update",
        &[0x53ce092fbe714a81, 0x9a3b8806cd1e2db8, 0x9b059bef7aa2ff7c, 0x9e40e40f1a0ae0f6, 0xa4d0d3e8b1670cf6],
    ),
    (
        "range, 1-d",
        "tree, lifetime",
        &[0x4b1b532f523677b3, 0x051a32ef2d8410c4, 0x14ef8aeb17ec9068, 0x68412e43bb542c6d, 0x2d7003dad8593e53],
    ),
    (
        "range, 1-d",
        "tree-paper, update",
        &[0x6b363844769c395d, 0x59aebc872decba0d, 0xa7b92ef026a6a201, 0xaeebfd1bbb61bd5e],
    ),
    (
        "range, 2-d",
        "tree, update",
        &[0xbe4979568148fdfa, 0x60e739050db1f7db, 0x2efc58d742e27ade, 0x968d0802ba2e4d41, 0x3a1e87ee4d1d97e0],
    ),
    (
        "range, 2-d",
        "tree, lifetime",
        &[0x8bd602ad839c43b2, 0x1c0535756764f2c4, 0x8d42696d15400393, 0xbb5ce2a307f5718e, 0xd587a6479a7ba2c1],
    ),
    (
        "range, 2-d",
        "tree-paper, update",
        &[0x4c5e21195cafa19b, 0xf163c81a19d71a39, 0x369d14c09ebbe50c, 0x38c017d4f0a0933a],
    ),
    (
        "join",
        "tree, update",
        &[0xb9a831c6eecf5971, 0x445c21355e198ce0, 0x432d0dcfb0e01cd1, 0x24f292bf765437b5, 0x4f57d0da736d526c],
    ),
    (
        "join",
        "tree, lifetime",
        &[0x25a209fcfc50318e, 0xd9641e264a4f1fe8, 0xa2e79fae551d7f43, 0x14a5f79d07ccee77, 0x8cc1ff5754873dfc],
    ),
    ("join", "tree-paper, update", &[0x53c4cc5d6dba4910, 0x49e2222587c60952, 0x408a7a8826714c06, 0x4f28427ccda7db1a]),
];
