//! What changes a vector, written down: the records of a journal, and of the image that a journal starts from.
//!
//! A record says what was done, with everything that was drawn: after the records of a journal a new vector is in the state of
//! the one that wrote them, counters and noise alike. Nothing is drawn then. The bytes are little-endian and the same on every
//! platform: whole numbers are LEB128 varints (signed ones zigzag), floats and heads are eight bytes a word.
//!
//! ```text
//! 1 ADVANCE      step
//! 2 SEAL
//! 3 ADDS         count, then for each: cell - the cell before (signed), units (signed)
//! 4 CELLS        count, then for each cell that is drawn on its own: cell - the cell before (signed), the words drawn
//! 5 SWEEP        block, then the words drawn, an array a rank
//! 6 HELD         count, then for each cell with a record of its own: cell - the cell before (signed), head, values, words
//! 7 SWEPT        block, head, ranks
//! 8 SWEPT VALUES block, rank, count, then the words of so many cells more
//! ```
//!
//! The first five stand in a journal; an image has 6 to 8 instead of 4 and 5. How many words a draw has follows from the state
//! before it, which is public. Whoever stores records sees to it that they come back as they were (`fastgame-store`); what is read
//! here is checked all the same, so that no bytes make a program panic, allocate what is not there, or release what no
//! vector would.

use alloc::vec::Vec;
use core::fmt;

use crate::error::{Error, Result};
use crate::noise::Stored;

pub(crate) const ADVANCE: u8 = 1;
pub(crate) const SEAL: u8 = 2;
pub(crate) const ADDS: u8 = 3;
pub(crate) const CELLS: u8 = 4;
pub(crate) const SWEEP: u8 = 5;
pub(crate) const HELD: u8 = 6;
pub(crate) const SWEPT: u8 = 7;
pub(crate) const SWEPT_VALUES: u8 = 8;

/// The most bytes of a varint of 64 bits.
pub(crate) const VARINT: usize = 10;

/// The words of a value, at most.
const MOST_WORDS: usize = 2;

/// What was done to a structure since its journal was last taken.
#[derive(Clone, Default, PartialEq)]
pub struct Journal {
    /// Records. They hold exact updates and noise: secret.
    pub records: Vec<u8>,
    /// Whether there is a read among them, of which an answer may be waiting.
    pub has_read: bool,
    /// Whether there was an update, though it may have added nothing and left no record. Whoever counts calls counts it too:
    /// a count that left it out would tell what it held.
    pub has_update: bool,
}

impl Journal {
    /// Whether nothing was done.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty() && !self.has_update
    }
}

/// Without the records.
impl fmt::Debug for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { has_read, has_update, .. } = self;
        let mut shown = f.debug_struct("Journal");
        shown.field("has_read", has_read).field("has_update", has_update).finish_non_exhaustive()
    }
}

/// What the bytes of a record should have been.
pub(crate) fn unfit(what: &'static str) -> Error {
    Error::Journal { what }
}

/// Writes the parts of records.
pub(crate) trait Write {
    fn byte(&mut self, byte: u8);

    fn number(&mut self, number: u64);

    fn signed(&mut self, number: i64);

    fn word(&mut self, word: u64);

    fn value<V: Stored>(&mut self, value: V);

    /// A cell after another one.
    fn cell(&mut self, cell: u64, before: &mut u64) {
        self.signed(cell.wrapping_sub(*before) as i64);
        *before = cell;
    }
}

impl Write for Vec<u8> {
    fn byte(&mut self, byte: u8) {
        self.push(byte);
    }

    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.push(number as u8);
    }

    fn signed(&mut self, number: i64) {
        self.number((number << 1 ^ number >> 63) as u64);
    }

    fn word(&mut self, word: u64) {
        self.extend_from_slice(&word.to_le_bytes());
    }

    fn value<V: Stored>(&mut self, value: V) {
        let mut words = [0; MOST_WORDS];
        value.write(&mut words[..V::WORDS]);
        words[..V::WORDS].iter().for_each(|&word| self.word(word));
    }
}

/// Reads the parts of records.
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Bytes that are left.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn byte(&mut self) -> Result<u8> {
        let (&byte, rest) = self.0.split_first().ok_or(unfit("more bytes"))?;
        self.0 = rest;
        Ok(byte)
    }

    /// A varint in its shortest form, so that there is one way to write each record.
    pub(crate) fn number(&mut self) -> Result<u64> {
        let mut number = 0;
        for shift in (0..).step_by(7).take(VARINT) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            number |= bits << shift;
            if byte < 0x80 {
                if bits << shift >> shift != bits || (byte == 0 && shift > 0) {
                    break;
                }
                return Ok(number);
            }
        }
        Err(unfit("a whole number of at most 64 bits"))
    }

    pub(crate) fn signed(&mut self) -> Result<i64> {
        let number = self.number()?;
        Ok((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    pub(crate) fn word(&mut self) -> Result<u64> {
        let (&word, rest) = self.0.split_first_chunk().ok_or(unfit("more bytes"))?;
        self.0 = rest;
        Ok(u64::from_le_bytes(word))
    }

    pub(crate) fn value<V: Stored>(&mut self) -> Result<V> {
        let mut words = [0; MOST_WORDS];
        for word in &mut words[..V::WORDS] {
            *word = self.word()?;
        }
        Ok(V::read(&words[..V::WORDS]))
    }

    /// A cell after another one, below `size`.
    pub(crate) fn cell(&mut self, size: u64, before: &mut u64) -> Result<u64> {
        let cell = before.wrapping_add(self.signed()? as u64);
        if cell >= size {
            return Err(unfit("a cell of the vector"));
        }
        *before = cell;
        Ok(cell)
    }

    /// How many of something there are, one at least, that takes at least `least` bytes each.
    pub(crate) fn count(&mut self, least: usize) -> Result<usize> {
        let count = self.number()?;
        match usize::try_from(count).ok().and_then(|count| Some((count, count.checked_mul(least)?))) {
            Some((count, bytes)) if count > 0 && bytes <= self.len() => Ok(count),
            _ => Err(unfit("as many parts as it says")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_come_back(number: u64, signed: i64, shift in 0u32..64) {
            let mut bytes = Vec::new();
            bytes.number(number >> shift);
            bytes.signed(signed >> shift);
            bytes.word(number);
            let mut reader = Reader::new(&bytes);
            prop_assert_eq!(reader.number(), Ok(number >> shift));
            prop_assert_eq!(reader.signed(), Ok(signed >> shift));
            prop_assert_eq!(reader.word(), Ok(number));
            prop_assert!(reader.is_empty());
        }

        #[test]
        fn there_is_one_way_to_write_a_number(bytes in prop::collection::vec(any::<u8>(), 0..12)) {
            let mut reader = Reader::new(&bytes);
            if let Ok(number) = reader.number() {
                let mut again = Vec::new();
                again.number(number);
                prop_assert_eq!(&bytes[..bytes.len() - reader.len()], &again[..]);
            }
        }
    }

    #[test]
    fn a_count_is_not_believed_beyond_the_bytes_that_there_are() {
        let mut bytes = Vec::new();
        bytes.number(1 << 40);
        bytes.extend([0; 64]);
        assert!(Reader::new(&bytes).count(1).is_err());
        let mut bytes = Vec::new();
        bytes.number(u64::MAX);
        assert!(Reader::new(&bytes).count(1 << 20).is_err());
    }
}
