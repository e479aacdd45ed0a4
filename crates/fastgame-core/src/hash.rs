//! Keys, and the hash functions that send them to cells and signs.
//!
//! A key is a kind and 64 bits. Integers are taken by value; text and bytes by a keyed hash of their content (SipHash-2-4,
//! by a well-kept crate); composite keys by a keyed hash of their parts. The kind is hashed with the word, so that keys
//! of different kinds collide no more than any others.
//!
//! The hash is **mixed tabulation** (Dahlgaard, Knudsen, Rotenberg and Thorup, "Hashing for statistics over
//! k-partitions", FOCS 2015): the nine characters of a key (its kind and eight bytes) look up random entries that are
//! xored, four derived characters look up more. One pass yields 128 bits: for each row of a sketch a bucket and a sign. With
//! entries as random as here it has Chernoff-like concentration, and behaves fully randomly on every set of up to about
//! half of the 256 derived values a character with high probability; it is not 4-wise independent in the strict sense.
//! `docs/sketches.md` says why it was taken over the cubic polynomial that is.
//!
//! Tables come from a 64-bit seed by ChaCha8: the same on every platform. Cost: 13 look-ups a key and pass in 56 KB.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::hash::Hasher as _;

use chacha20::ChaCha8Rng;
use chacha20::rand_core::{Rng, SeedableRng};
use siphasher::sip::SipHasher24;

/// What kind of value a key is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
enum Kind {
    Unsigned,
    Negative,
    Text,
    Bytes,
    Composite,
}

const KINDS: usize = 5;

/// A key, ready to be hashed: its kind and 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    word: u64,
    kind: Kind,
}

impl From<u64> for Key {
    fn from(value: u64) -> Self {
        Self { word: value, kind: Kind::Unsigned }
    }
}

/// By value: a number is the same key whatever its type.
impl From<i64> for Key {
    fn from(value: i64) -> Self {
        Self { word: value as u64, kind: if value < 0 { Kind::Negative } else { Kind::Unsigned } }
    }
}

/// Makes keys of text, bytes and several parts; sketches that share a hash seed must share it too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keyer {
    sip: (u64, u64),
}

/// The generator that a hash seed stands for.
fn generator(seed: u64) -> ChaCha8Rng {
    // The seed fills the key in front; the rest tells these tables from any other use of a seed.
    let mut key = *b"........fastgame hash tables v01";
    key[..8].copy_from_slice(&seed.to_le_bytes());
    ChaCha8Rng::from_seed(key)
}

impl Keyer {
    /// The one of a hash seed.
    pub fn new(hash_seed: u64) -> Self {
        let mut rng = generator(hash_seed);
        Self { sip: (rng.next_u64(), rng.next_u64()) }
    }

    fn content(self, kind: Kind, bytes: &[u8]) -> Key {
        let mut hasher = SipHasher24::new_with_keys(self.sip.0, self.sip.1);
        hasher.write(bytes);
        Key { word: hasher.finish(), kind }
    }

    /// The key of a text, by its UTF-8 bytes.
    pub fn text(self, text: &str) -> Key {
        self.content(Kind::Text, text.as_bytes())
    }

    /// The key of a string of bytes; never that of a text.
    pub fn bytes(self, bytes: &[u8]) -> Key {
        self.content(Kind::Bytes, bytes)
    }

    /// The key of several parts in order; never that of a single value.
    pub fn composite(self, parts: impl IntoIterator<Item = Key>) -> Key {
        let mut hasher = SipHasher24::new_with_keys(self.sip.0, self.sip.1);
        for part in parts {
            // Nine bytes a part, so that no two sequences of parts read the same.
            let mut bytes = [part.kind as u8; 9];
            bytes[1..].copy_from_slice(&part.word.to_le_bytes());
            hasher.write(&bytes);
        }
        Key { word: hasher.finish(), kind: Kind::Composite }
    }
}

const CHARACTERS: usize = 8;
const DERIVED: usize = 4;

/// One mixed tabulation function with 128 bits of output.
struct Tabulation {
    /// For each byte of the word.
    words: Box<[[u128; 256]; CHARACTERS]>,
    /// The derived characters of each byte of the word.
    derived: Box<[[u32; 256]; CHARACTERS]>,
    /// The same for the kind.
    kinds: [(u128, u32); KINDS],
    /// For each derived character.
    mixed: Box<[[u128; 256]; DERIVED]>,
}

impl Tabulation {
    fn new(rng: &mut ChaCha8Rng) -> Self {
        fn boxed<T: Copy + Default, const N: usize>(mut next: impl FnMut() -> T) -> Box<[[T; 256]; N]> {
            let mut table = Box::new([[T::default(); 256]; N]);
            table.iter_mut().flatten().for_each(|entry| *entry = next());
            table
        }
        let mut wide = || u128::from(rng.next_u64()) | u128::from(rng.next_u64()) << 64;
        let words = boxed(&mut wide);
        let mixed = boxed(&mut wide);
        let kinds = core::array::from_fn(|_| (wide(), wide() as u32));
        let derived = boxed(|| rng.next_u64() as u32);
        Self { words, derived, kinds, mixed }
    }

    #[inline]
    fn hash(&self, key: Key) -> u128 {
        let (mut hash, mut derived) = self.kinds[key.kind as usize];
        for (place, byte) in key.word.to_le_bytes().into_iter().enumerate() {
            hash ^= self.words[place][byte as usize];
            derived ^= self.derived[place][byte as usize];
        }
        for (place, byte) in derived.to_le_bytes().into_iter().enumerate() {
            hash ^= self.mixed[place][byte as usize];
        }
        hash
    }
}

/// Where a key goes in one row: a bucket and a sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) bucket: usize,
    /// 1 or -1.
    pub(crate) sign: i64,
}

/// The hash functions of all rows of a sketch.
pub(crate) struct HashFamily {
    depth: usize,
    bucket_bits: u32,
    rows_per_pass: usize,
    passes: Vec<Tabulation>,
    keyer: Keyer,
}

impl HashFamily {
    /// Functions for `depth` rows of `2^bucket_bits` buckets.
    pub(crate) fn new(seed: u64, depth: usize, bucket_bits: u32) -> Self {
        let keyer = Keyer::new(seed);
        let mut rng = generator(seed);
        // What the keyer has taken.
        rng.set_word_pos(4);
        let rows_per_pass = (128 / (bucket_bits + 1)) as usize;
        let passes = (0..depth.div_ceil(rows_per_pass)).map(|_| Tabulation::new(&mut rng)).collect();
        Self { depth, bucket_bits, rows_per_pass, passes, keyer }
    }

    pub(crate) fn keyer(&self) -> Keyer {
        self.keyer
    }

    /// The places of a key, row by row.
    #[inline]
    pub(crate) fn places(&self, key: Key, mut visit: impl FnMut(usize, Place)) {
        let mask = (1u128 << self.bucket_bits) - 1;
        for (pass, tabulation) in self.passes.iter().enumerate() {
            let first = pass * self.rows_per_pass;
            let mut bits = tabulation.hash(key);
            for row in first..self.depth.min(first + self.rows_per_pass) {
                let sign = 1 - 2 * (bits & 1) as i64;
                let bucket = (bits >> 1 & mask) as usize;
                visit(row, Place { bucket, sign });
                bits >>= self.bucket_bits + 1;
            }
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.passes.len() * (256 * (CHARACTERS * (16 + 4) + DERIVED * 16) + size_of::<Tabulation>())
    }
}
