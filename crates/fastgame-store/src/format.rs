//! The bytes of a store. One file, written at its end only:
//!
//! ```text
//! preamble    "fastgame" | version u32 | zero u32 | identity, 16 bytes
//! frame       of the parameters
//! frame ...   of the image: the state when the file was made
//! mark
//! frame ...   of the journal, each what one call did; marks between them
//!
//! frame       magic u32 | kind u8 | sealed u8 | zero u16 | length u64 | generation u64 | step u64 | body | zeros to a
//!             multiple of 8 | checksum, 16 bytes
//! mark        magic u64 | its own place in the file u64 | checksum, 16 bytes
//! ```
//!
//! All numbers are little-endian, and a generation is below 2^63. A checksum is SipHash-1-3 of 128 bits (Aumasson and Bernstein,
//! 2012) under the identity of the store, which is drawn at random: for a frame over the checksum of the frame before, its place
//! and its bytes, so that a frame counts only behind the frames that it was written behind; for a mark over its bytes. Damage
//! passes with a probability of 2^-128. (A CRC of 32 bits is sure to see any burst of 32 bits, and misses one in 2^32 of the
//! rest; here every frame must be seen.) It is no signature: whoever can write the file can write a store.
//!
//! **What is lost and what is damaged.** A frame is written, then synced, then a mark is written (and synced with the next
//! frame). So a mark says that all before it is on the disk. When reading stops at bytes that are no frame and no mark:
//!
//! * a mark further on: what was on the disk is damaged. The store is refused;
//! * none, but a frame behind a mark's length: the mark had not reached the disk, and the frame behind it has. It is written
//!   again, and nothing is lost;
//! * none: a frame that was being written when the machine stopped. Nobody has had an answer from it, and it is cut off;
//! * before the first mark: refused, as a file appears under its name only when its image is on the disk.
//!
//! A whole frame behind the last mark counts: either its sync was the last thing that happened, or it was not yet
//! acknowledged, and may count as well as not. An opening writes the last mark, and all behind it, once more: after a failed
//! sync the system may show bytes that never get to the disk.

use std::hash::Hasher;

use siphasher::sip128::{Hasher128, SipHasher13};

/// The first bytes of a store.
pub(crate) const NAME: [u8; 8] = *b"fastgame";
/// The only version so far.
pub const VERSION: u32 = 1;

pub(crate) const PREAMBLE: usize = 32;
pub(crate) const HEADER: usize = 32;
pub(crate) const CHECKSUM: usize = 16;
pub(crate) const MARK: usize = 32;

/// No store has made so many calls; a file that says more is none, and what is counted on stays within 64 bits.
pub(crate) const MOST_GENERATIONS: u64 = u64::MAX / 2;

const FRAME_MAGIC: [u8; 4] = *b"fgfr";
const MARK_MAGIC: [u8; 8] = *b"fgsynced";

/// What identifies a store for as long as it lives, and keys its checksums.
pub(crate) type Identity = [u8; 16];
pub(crate) type Checksum = [u8; CHECKSUM];

/// What a frame holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Parameters = 1,
    Image = 2,
    Journal = 3,
}

/// What stands before the body of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) kind: Kind,
    pub(crate) length: u64,
    /// How many calls were journaled up to this frame, over the whole life of the store.
    pub(crate) generation: u64,
    /// The step after it, and whether that was read.
    pub(crate) step: u64,
    pub(crate) sealed: bool,
}

impl Header {
    pub(crate) fn to_bytes(self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[..4].copy_from_slice(&FRAME_MAGIC);
        bytes[4] = self.kind as u8;
        bytes[5] = self.sealed.into();
        bytes[8..16].copy_from_slice(&self.length.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.generation.to_le_bytes());
        bytes[24..].copy_from_slice(&self.step.to_le_bytes());
        bytes
    }

    /// `None` for bytes that no frame begins with.
    pub(crate) fn from_bytes(bytes: &[u8; HEADER]) -> Option<Self> {
        let kind = match bytes[4] {
            1 => Kind::Parameters,
            2 => Kind::Image,
            3 => Kind::Journal,
            _ => return None,
        };
        let word = |from: usize| u64::from_le_bytes(bytes[from..from + 8].try_into().unwrap_or_default());
        let header = Self { kind, length: word(8), generation: word(16), step: word(24), sealed: bytes[5] == 1 };
        (header.to_bytes() == *bytes).then_some(header)
    }

    /// The bytes of the whole frame; `None` beyond 64 bits.
    pub(crate) fn frame_length(&self) -> Option<u64> {
        let body = self.length.checked_next_multiple_of(8)?;
        body.checked_add((HEADER + CHECKSUM) as u64)
    }
}

/// The zeros behind a body.
pub(crate) fn padding(length: usize) -> &'static [u8] {
    &[0; 8][..length.next_multiple_of(8) - length]
}

fn checksum(key: &Identity, parts: &[&[u8]]) -> Checksum {
    let mut hasher = SipHasher13::new_with_key(key);
    parts.iter().for_each(|part| hasher.write(part));
    hasher.finish128().as_bytes()
}

/// A name for a draft of a store that no other store gives.
pub(crate) fn draft_name(key: &Identity, number: u64) -> u64 {
    let name = checksum(key, &[b"draft", &u64::from(std::process::id()).to_le_bytes(), &number.to_le_bytes()]);
    u64::from_le_bytes(*name.first_chunk().unwrap_or(&[0; 8]))
}

/// The first bytes of a file.
pub(crate) fn preamble(identity: &Identity) -> [u8; PREAMBLE] {
    let mut bytes = [0; PREAMBLE];
    bytes[..8].copy_from_slice(&NAME);
    bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
    bytes[16..].copy_from_slice(identity);
    bytes
}

/// What the first frame's checksum is over, in place of that of a frame before.
pub(crate) fn first_link(identity: &Identity) -> Checksum {
    checksum(identity, &[&preamble(identity)])
}

/// The checksum of a frame at a place, behind the frame with the checksum `link`.
pub(crate) fn frame_checksum(
    key: &Identity,
    link: &Checksum,
    place: u64,
    header: &[u8; HEADER],
    body: &[u8],
) -> Checksum {
    checksum(key, &[link, &place.to_le_bytes(), header, body, padding(body.len())])
}

/// The mark at a place.
pub(crate) fn mark(key: &Identity, place: u64) -> [u8; MARK] {
    let mut bytes = [0; MARK];
    bytes[..8].copy_from_slice(&MARK_MAGIC);
    bytes[8..16].copy_from_slice(&place.to_le_bytes());
    let checksum = checksum(key, &[&bytes[..16]]);
    bytes[16..].copy_from_slice(&checksum);
    bytes
}

/// Whether bytes may be a mark: what is tried first, as it costs nothing.
pub(crate) fn may_be_mark(bytes: &[u8]) -> bool {
    bytes.starts_with(&MARK_MAGIC)
}

/// What a store is of: names and values of parameters, words of the program that made it, and the numbers that noise is drawn
/// with. All of it is public.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parameters {
    /// Names and values, the structure's name first.
    pub values: Vec<(String, String)>,
    /// The same in the words of the program that made the store, if it has any of its own.
    pub face: String,
    /// See [`fastgame_core::Durable::noise_numbers`].
    pub noise: Vec<f64>,
}

impl Parameters {
    /// What a live structure says of itself.
    pub(crate) fn of(state: &impl crate::State, face: &str) -> Self {
        let values = state.parameters().into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Self { values, face: face.to_owned(), noise: state.noise_numbers() }
    }

    /// The value of a name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.values.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut text = |text: &str| {
            bytes.extend((text.len() as u64).to_le_bytes());
            bytes.extend(text.as_bytes());
        };
        text(&self.face);
        for (name, value) in &self.values {
            text(name);
            text(value);
        }
        // An empty name ends them.
        text("");
        self.noise.iter().for_each(|number| bytes.extend(number.to_bits().to_le_bytes()));
        bytes
    }

    pub(crate) fn from_bytes(mut bytes: &[u8]) -> Option<Self> {
        let mut text = || {
            let (length, rest) = bytes.split_first_chunk::<8>()?;
            let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
            let (text, rest) = rest.split_at_checked(length)?;
            bytes = rest;
            String::from_utf8(text.to_vec()).ok()
        };
        let face = text()?;
        let mut values = Vec::new();
        loop {
            let name = text()?;
            if name.is_empty() {
                break;
            }
            values.push((name, text()?));
        }
        let (words, []) = bytes.as_chunks::<8>() else { return None };
        let noise = words.iter().map(|word| f64::from_bits(u64::from_le_bytes(*word))).collect();
        Some(Self { values, face, noise })
    }
}
