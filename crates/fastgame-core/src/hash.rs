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
//! Tables come from a 64-bit seed by ChaCha8: the same on every platform. Cost: 12 look-ups a key and pass in 48 KB; 20 in
//! 56 KB where a pass yields more than 96 bits. Keys are hashed in blocks and visited row by row: the cells of a block in
//! one row are fetched side by side, where a single key's would have the processor wait for one after the other.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::hash::Hasher as _;
use core::ops::BitXorAssign;

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

/// 128 bits of output, low word first; aligned, so that an entry never lies in two cache lines.
#[derive(Clone, Copy, Default)]
#[repr(align(16))]
struct Wide([u64; 2]);

impl BitXorAssign for Wide {
    #[inline]
    fn bitxor_assign(&mut self, Self([low, high]): Self) {
        self.0[0] ^= low;
        self.0[1] ^= high;
    }
}

/// One mixed tabulation function.
struct Tabulation {
    /// For each byte of the word.
    words: Box<[[Wide; 256]; CHARACTERS]>,
    /// For the kind.
    kinds: [Wide; KINDS],
    /// For each derived character.
    mixed: Box<[[Wide; 256]; DERIVED]>,
    /// The derived characters. They stand in the last 32 bits of the entries above if the output leaves these free, which
    /// spares a look-up for each byte.
    derived: Option<Derived>,
}

/// The derived characters of each byte of the word, and of the kind.
struct Derived {
    words: Box<[[u32; 256]; CHARACTERS]>,
    kinds: [u32; KINDS],
}

impl Tabulation {
    /// A function with `bits` bits of output, at most 128.
    fn new(rng: &mut ChaCha8Rng, bits: u32) -> Self {
        fn boxed<T: Copy + Default, const N: usize>(mut next: impl FnMut() -> T) -> Box<[[T; 256]; N]> {
            let mut table = Box::new([[T::default(); 256]; N]);
            table.iter_mut().flatten().for_each(|entry| *entry = next());
            table
        }
        let mut wide = || Wide([rng.next_u64(), rng.next_u64()]);
        let mut words = boxed(&mut wide);
        let mixed = boxed(&mut wide);
        let (mut kinds, mut derived_kinds) = ([Wide::default(); KINDS], [0; KINDS]);
        for (kind, derived) in kinds.iter_mut().zip(&mut derived_kinds) {
            (*kind, *derived) = (wide(), wide().0[0] as u32);
        }
        let derived = Derived { words: boxed(|| rng.next_u64() as u32), kinds: derived_kinds };
        if bits > 96 {
            return Self { words, kinds, mixed, derived: Some(derived) };
        }
        let entries = words.iter_mut().flatten().chain(&mut kinds);
        for (Wide([_, high]), &derived) in entries.zip(derived.words.iter().flatten().chain(&derived.kinds)) {
            *high = *high & 0xffff_ffff | u64::from(derived) << 32;
        }
        Self { words, kinds, mixed, derived: None }
    }

    /// The hashes of as many keys, and their derived characters. Each loop is so simple that both words of an entry are xored at once.
    #[inline]
    fn hash<K: Copy + Into<Key>>(&self, keys: &[K], hashes: &mut [Wide], derived: &mut [u32]) {
        for (hash, &key) in hashes.iter_mut().zip(keys) {
            let Key { word, kind } = key.into();
            *hash = self.kinds[kind as usize];
            for (table, byte) in self.words.iter().zip(word.to_le_bytes()) {
                *hash ^= table[byte as usize];
            }
        }
        match &self.derived {
            None => {
                for (derived, Wide([_, high])) in derived.iter_mut().zip(&*hashes) {
                    *derived = (high >> 32) as u32;
                }
            }
            Some(tables) => {
                for (derived, &key) in derived.iter_mut().zip(keys) {
                    let Key { word, kind } = key.into();
                    *derived = tables.kinds[kind as usize];
                    for (table, byte) in tables.words.iter().zip(word.to_le_bytes()) {
                        *derived ^= table[byte as usize];
                    }
                }
            }
        }
        for (hash, derived) in hashes.iter_mut().zip(derived) {
            for (table, byte) in self.mixed.iter().zip(derived.to_le_bytes()) {
                *hash ^= table[byte as usize];
            }
        }
    }

    fn bytes(&self) -> usize {
        let entries = (CHARACTERS + DERIVED) * size_of::<[Wide; 256]>();
        size_of::<Self>() + entries + self.derived.as_ref().map_or(0, |_| CHARACTERS * size_of::<[u32; 256]>())
    }
}

/// How many keys are hashed at once: so many that the processor waits for many cells of a row at the same time and finds some
/// of them near from the keys before, so few that their hashes stay in a core's own cache.
pub(crate) const BLOCK: usize = 4096;
/// Up to this many keys get by with buffers on the stack.
const FEW: usize = 16;

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
        let pass = |first| {
            let rows = rows_per_pass.min(depth - first) as u32;
            Tabulation::new(&mut rng, rows * (bucket_bits + 1))
        };
        let passes = (0..depth).step_by(rows_per_pass).map(pass).collect();
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
            let mut hash = [Wide::default()];
            tabulation.hash(&[key], &mut hash, &mut [0]);
            let [Wide([low, high])] = hash;
            let mut bits = u128::from(low) | u128::from(high) << 64;
            for row in first..self.depth.min(first + self.rows_per_pass) {
                let sign = 1 - 2 * (bits & 1) as i64;
                let bucket = (bits >> 1 & mask) as usize;
                visit(row, Place { bucket, sign });
                bits >>= self.bucket_bits + 1;
            }
        }
    }

    /// The places of up to [`BLOCK`] keys, a row at a time: the bucket above the lowest bit, which is set where the sign is
    /// -1.
    #[inline]
    pub(crate) fn rows<K: Copy + Into<Key>>(&self, keys: &[K], visit: impl FnMut(usize, &[u32])) {
        if keys.len() <= FEW {
            self.rows_within(keys, &mut [Wide::default(); FEW], &mut [0; FEW], visit);
        } else {
            self.rows_within(keys, &mut vec![Wide::default(); keys.len()], &mut vec![0; keys.len()], visit);
        }
    }

    #[inline]
    fn rows_within<K: Copy + Into<Key>>(
        &self,
        keys: &[K],
        hashes: &mut [Wide],
        places: &mut [u32],
        mut visit: impl FnMut(usize, &[u32]),
    ) {
        let (hashes, places) = (&mut hashes[..keys.len()], &mut places[..keys.len()]);
        let (field_bits, mask) = (self.bucket_bits + 1, (2 << self.bucket_bits) - 1);
        for (pass, tabulation) in self.passes.iter().enumerate() {
            // The places are not in use before.
            tabulation.hash(keys, hashes, places);
            let first = pass * self.rows_per_pass;
            for row in first..self.depth.min(first + self.rows_per_pass) {
                let shift = (row - first) as u32 * field_bits;
                if shift + field_bits <= 64 {
                    for (place, Wide([low, _])) in places.iter_mut().zip(&*hashes) {
                        *place = (low >> shift) as u32 & mask;
                    }
                } else if shift < 64 {
                    for (place, Wide([low, high])) in places.iter_mut().zip(&*hashes) {
                        *place = (low >> shift | high << (64 - shift)) as u32 & mask;
                    }
                } else {
                    for (place, Wide([_, high])) in places.iter_mut().zip(&*hashes) {
                        *place = (high >> (shift - 64)) as u32 & mask;
                    }
                }
                visit(row, places);
            }
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.passes.iter().map(Tabulation::bytes).sum()
    }
}

#[cfg(test)]
pub(crate) mod tests;
