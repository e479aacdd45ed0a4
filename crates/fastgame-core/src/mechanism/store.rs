//! Packed storage for the noise of single cells: a few words for each cell that was read, none for the others.
//!
//! What a cell keeps is a *record*: a head of fixed length (the step of its last read; for a tree its level set too) and a
//! stack of values. Records of a tree change length with nearly every read, so they are kept in groups of eight neighbouring
//! cells:
//!
//! ```text
//! page of 512 groups -> entry: | marks 8 | class 8 | slot 48 |
//! slot of 8 * class words:     | group | lengths (a byte a record) | record | record | ... | unused |
//! record:                      | head | value | value | ... |
//! ```
//!
//! A record is found with two look-ups and one sum of bytes. A change of length moves the records behind it, at
//! most seven; when the group no longer fits its class exactly it moves to another one. The slots of a class are
//! dense (the last slot fills a hole), so what is unused is at most seven words a group and one chunk a class.
//! Every operation takes constant time.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::marker::PhantomData;
use core::ops::Range;

use crate::noise::Stored;

const CELLS_PER_GROUP: u64 = 8;
const GROUPS_PER_PAGE: usize = 512;
const CELLS_PER_PAGE: u64 = CELLS_PER_GROUP * GROUPS_PER_PAGE as u64;
/// Slots of a class are multiples of this many words.
const WORDS_PER_CLASS: usize = 8;
const WORDS_PER_CHUNK: usize = 256;
/// Words in front of a group's records.
const GROUP_HEAD: usize = 2;

/// The entries of 512 groups, once one of their cells was read.
type Page = Option<Box<[Entry; GROUPS_PER_PAGE]>>;

/// The records of the cells that were read on their own: heads `H` and values `V`.
pub(crate) struct PackedStore<H, V> {
    size: u64,
    held: u64,
    pages: Vec<Page>,
    classes: Vec<Class>,
    record: PhantomData<(H, V)>,
}

/// What a cell keeps between reads.
pub(crate) struct Record<'a, H, V> {
    words: &'a [u64],
    record: PhantomData<(H, V)>,
}

impl<H: Stored, V: Stored> Record<'_, H, V> {
    #[inline]
    pub(crate) fn head(&self) -> H {
        H::read(self.words)
    }

    /// The value of this rank.
    #[inline]
    pub(crate) fn value(&self, rank: u32) -> V {
        V::read(&self.words[H::WORDS + rank as usize * V::WORDS..])
    }

    /// All values.
    pub(crate) fn values(&self) -> impl Iterator<Item = V> {
        self.words[H::WORDS..].chunks_exact(V::WORDS).map(V::read)
    }

    /// The last value, which is the noise of the last read.
    #[inline]
    pub(crate) fn last(&self) -> V {
        V::read(&self.words[self.words.len() - V::WORDS..])
    }
}

/// Where a group of cells is kept, and which of its cells are marked.
#[derive(Clone, Copy, Default)]
struct Entry(u64);

impl Entry {
    const SLOT_BITS: u32 = 48;
    const MARK_SHIFT: u32 = 56;

    fn class(self) -> usize {
        (self.0 >> Self::SLOT_BITS & 0xff) as usize
    }

    fn slot(self) -> usize {
        (self.0 & ((1 << Self::SLOT_BITS) - 1)) as usize
    }

    fn set_place(&mut self, class: usize, slot: usize) {
        let marks = self.0 >> Self::MARK_SHIFT << Self::MARK_SHIFT;
        self.0 = marks | (class as u64) << Self::SLOT_BITS | slot as u64;
    }

    fn mark(lane: u32) -> u64 {
        1 << (Self::MARK_SHIFT + lane)
    }
}

/// All groups whose records take the same number of words, rounded up.
#[derive(Default)]
struct Class {
    words: usize,
    /// A chunk holds `1 << chunk_shift` slots.
    chunk_shift: u32,
    chunks: Vec<Box<[u64]>>,
    len: usize,
}

impl Class {
    fn new(class: usize) -> Self {
        let words = class * WORDS_PER_CLASS;
        let chunk_shift = (WORDS_PER_CHUNK / words.max(1)).checked_ilog2().unwrap_or(0);
        Self { words, chunk_shift, chunks: Vec::new(), len: 0 }
    }

    #[inline]
    fn place(&self, slot: usize) -> (usize, Range<usize>) {
        let start = (slot & ((1 << self.chunk_shift) - 1)) * self.words;
        (slot >> self.chunk_shift, start..start + self.words)
    }

    #[inline]
    fn slot(&self, slot: usize) -> &[u64] {
        let (chunk, range) = self.place(slot);
        &self.chunks[chunk][range]
    }

    #[inline]
    fn slot_mut(&mut self, slot: usize) -> &mut [u64] {
        let (chunk, range) = self.place(slot);
        &mut self.chunks[chunk][range]
    }

    fn push(&mut self) -> usize {
        let slot = self.len;
        if slot >> self.chunk_shift == self.chunks.len() {
            self.chunks.push(vec![0; self.words << self.chunk_shift].into_boxed_slice());
        }
        self.len += 1;
        slot
    }

    /// Fills the hole at `slot` with the last slot. Returns the group that has moved there, if any.
    fn swap_remove(&mut self, slot: usize) -> Option<u64> {
        let last = self.len - 1;
        let moved = (slot != last).then(|| {
            let (from_chunk, from) = self.place(last);
            let (to_chunk, to) = self.place(slot);
            if from_chunk == to_chunk {
                self.chunks[to_chunk].copy_within(from, to.start);
            } else {
                let (head, tail) = self.chunks.split_at_mut(from_chunk);
                head[to_chunk][to].copy_from_slice(&tail[0][from]);
            }
            self.slot(slot)[0]
        });
        self.len = last;
        // One empty chunk stays, so that a class that swings about a chunk's edge does not allocate each time.
        self.chunks.truncate(last.div_ceil(1 << self.chunk_shift) + 1);
        // Nor does the table of a class that its groups have left stay.
        if self.chunks.len() < self.chunks.capacity() / 4 {
            self.chunks.shrink_to(2 * self.chunks.len());
        }
        moved
    }
}

/// The sum of the bytes of `lengths` that belong to records before `lane`.
#[inline]
fn words_before(lengths: u64, lane: u32) -> usize {
    add_bytes(lengths & !(u64::MAX << (8 * lane)))
}

/// Bytes are added in 16-bit lanes: eight records of up to 130 words overflow a byte.
#[inline]
fn add_bytes(lengths: u64) -> usize {
    const EVEN: u64 = 0x00ff_00ff_00ff_00ff;
    let pairs = (lengths & EVEN) + (lengths >> 8 & EVEN);
    (pairs.wrapping_mul(0x0001_0001_0001_0001) >> 48) as usize
}

#[inline]
fn length(lengths: u64, lane: u32) -> usize {
    (lengths >> (8 * lane) & 0xff) as usize
}

#[inline]
fn class_of(record_words: usize) -> usize {
    (GROUP_HEAD + record_words).div_ceil(WORDS_PER_CLASS)
}

/// A record of a group gets another length.
struct Change {
    start: usize,
    old_length: usize,
    new_length: usize,
    old_total: usize,
    new_lengths: u64,
}

impl Change {
    #[inline]
    fn new(lengths: u64, lane: u32, new_length: usize) -> Self {
        Self {
            start: GROUP_HEAD + words_before(lengths, lane),
            old_length: length(lengths, lane),
            new_length,
            old_total: add_bytes(lengths),
            new_lengths: lengths & !(0xff << (8 * lane)) | (new_length as u64) << (8 * lane),
        }
    }

    #[inline]
    fn class(&self) -> usize {
        class_of(self.old_total - self.old_length + self.new_length)
    }

    /// The records behind, where they are.
    #[inline]
    fn old_behind(&self) -> Range<usize> {
        self.start + self.old_length..GROUP_HEAD + self.old_total
    }

    /// The records behind, where they go.
    #[inline]
    fn new_behind(&self) -> Range<usize> {
        self.start + self.new_length..GROUP_HEAD + self.old_total - self.old_length + self.new_length
    }
}

/// The two classes `a != b`, both to be changed.
fn two_classes(classes: &mut [Class], a: usize, b: usize) -> (&mut Class, &mut Class) {
    if a < b {
        let (low, high) = classes.split_at_mut(b);
        (&mut low[a], &mut high[0])
    } else {
        let (low, high) = classes.split_at_mut(a);
        (&mut high[0], &mut low[b])
    }
}

/// Says of one cell that the read at hand has drawn it.
pub(crate) struct Mark<'a> {
    entry: &'a mut Entry,
    mark: u64,
}

impl Mark<'_> {
    #[inline]
    pub(crate) fn is_set(&self) -> bool {
        self.entry.0 & self.mark != 0
    }

    #[inline]
    pub(crate) fn set(self) {
        self.entry.0 |= self.mark;
    }
}

#[inline]
fn entry_mut(pages: &mut Vec<Page>, size: u64, group: u64) -> &mut Entry {
    if pages.is_empty() {
        pages.resize_with(size.div_ceil(CELLS_PER_PAGE) as usize, || None);
    }
    let (page, index) = (group as usize / GROUPS_PER_PAGE, group as usize % GROUPS_PER_PAGE);
    &mut pages[page].get_or_insert_with(|| Box::new([Entry::default(); GROUPS_PER_PAGE]))[index]
}

#[inline]
fn record<H, V>(classes: &[Class], entry: Entry, lane: u32) -> Option<Record<'_, H, V>> {
    if entry.class() == 0 {
        return None;
    }
    let slot = classes[entry.class()].slot(entry.slot());
    let lengths = slot[1];
    let length = length(lengths, lane);
    if length == 0 {
        return None;
    }
    let start = GROUP_HEAD + words_before(lengths, lane);
    Some(Record { words: &slot[start..start + length], record: PhantomData })
}

/// A bound on the memory of what is shared by all cells: chunks that are partly filled or kept, in every class, a
/// page, and the tables. In bytes.
pub(crate) const fn shared_bytes(words_per_record: u64) -> u64 {
    let classes = (GROUP_HEAD as u64 + CELLS_PER_GROUP * words_per_record).div_ceil(WORDS_PER_CLASS as u64);
    let largest = classes * WORDS_PER_CLASS as u64;
    let chunk = if largest > WORDS_PER_CHUNK as u64 { largest } else { WORDS_PER_CHUNK as u64 };
    classes * (2 * 8 * chunk + 4 * 16 + 2 * size_of::<Class>() as u64) + size_of::<[Entry; GROUPS_PER_PAGE]>() as u64
}

impl<H: Stored, V: Stored> PackedStore<H, V> {
    /// An empty store for cells `0..size`; it owns no memory until a cell is read.
    pub(crate) fn new(size: u64) -> Self {
        Self { size, held: 0, pages: Vec::new(), classes: Vec::new(), record: PhantomData }
    }

    /// The number of cells that have a record.
    pub(crate) fn held(&self) -> u64 {
        self.held
    }

    /// All cells that have a record, in order. Time: linear in the pages that there are.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, Record<'_, H, V>)> {
        let pages = (0u64..).zip(&self.pages).filter(|(_, page)| page.is_some());
        let cells = pages.flat_map(|(page, _)| page * CELLS_PER_PAGE..((page + 1) * CELLS_PER_PAGE).min(self.size));
        cells.filter_map(|cell| Some((cell, self.get(cell)?)))
    }

    /// The memory in use, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let pages = self.pages.iter().flatten().count() * size_of::<[Entry; GROUPS_PER_PAGE]>();
        let chunks: usize =
            self.classes.iter().map(|class| class.chunks.len() * (class.words << class.chunk_shift)).sum();
        let tables: usize = self.classes.iter().map(|class| class.chunks.capacity() * size_of::<Box<[u64]>>()).sum();
        pages
            + 8 * chunks
            + tables
            + self.pages.capacity() * size_of::<Option<Box<()>>>()
            + self.classes.capacity() * size_of::<Class>()
    }

    #[inline]
    fn entry(&self, group: u64) -> Entry {
        let (page, index) = (group as usize / GROUPS_PER_PAGE, group as usize % GROUPS_PER_PAGE);
        match self.pages.get(page) {
            Some(Some(entries)) => entries[index],
            _ => Entry::default(),
        }
    }

    #[inline]
    fn entry_mut(&mut self, group: u64) -> &mut Entry {
        entry_mut(&mut self.pages, self.size, group)
    }

    /// The record of `cell`, if it has one.
    #[inline]
    pub(crate) fn get(&self, cell: u64) -> Option<Record<'_, H, V>> {
        record(&self.classes, self.entry(cell / CELLS_PER_GROUP), (cell % CELLS_PER_GROUP) as u32)
    }

    /// Sets the record of `cell`: the head, the first `keep` values that it has, then `pushed`. Takes away its mark.
    pub(crate) fn replace(&mut self, cell: u64, head: H, keep: u32, pushed: impl Iterator<Item = V> + Clone) {
        let lane = (cell % CELLS_PER_GROUP) as u32;
        let entry = self.entry_mut(cell / CELLS_PER_GROUP);
        entry.0 &= !Entry::mark(lane);
        let entry = *entry;

        let kept = H::WORDS + keep as usize * V::WORDS;
        let length = kept + pushed.clone().count() * V::WORDS;
        let slot = if entry.class() == 0 { None } else { Some(self.classes[entry.class()].slot_mut(entry.slot())) };
        let change = Change::new(slot.as_ref().map_or(0, |slot| slot[1]), lane, length);
        let slot = match slot {
            Some(slot) if change.class() == entry.class() => {
                if change.new_length != change.old_length {
                    slot.copy_within(change.old_behind(), change.new_behind().start);
                }
                slot
            }
            _ => self.move_group(cell / CELLS_PER_GROUP, entry, &change, kept),
        };
        slot[1] = change.new_lengths;
        let record = &mut slot[change.start..change.start + length];
        head.write(record);
        for (value, words) in pushed.zip(record[kept..].chunks_exact_mut(V::WORDS)) {
            value.write(words);
        }
        if change.old_length == 0 {
            self.held += 1;
        }
    }

    /// Moves a group to the class that fits it after a change, with a gap in place of what the changed record does not
    /// keep.
    #[inline(never)]
    fn move_group(&mut self, group: u64, entry: Entry, change: &Change, kept: usize) -> &mut [u64] {
        let (old_class, old_slot, new_class) = (entry.class(), entry.slot(), change.class());
        while self.classes.len() <= new_class {
            self.classes.push(Class::new(self.classes.len()));
        }
        let new_slot = self.classes[new_class].push();
        if old_class != 0 {
            let (from, to) = two_classes(&mut self.classes, old_class, new_class);
            let (from_slot, to_slot) = (from.slot(old_slot), to.slot_mut(new_slot));
            let front = change.start + kept.min(change.old_length);
            to_slot[..front].copy_from_slice(&from_slot[..front]);
            to_slot[change.new_behind()].copy_from_slice(&from_slot[change.old_behind()]);
            if let Some(moved) = from.swap_remove(old_slot) {
                self.entry_mut(moved).set_place(old_class, old_slot);
            }
        }
        self.entry_mut(group).set_place(new_class, new_slot);
        let slot = self.classes[new_class].slot_mut(new_slot);
        slot[0] = group;
        slot
    }

    /// The record of `cell`, if it has one, and its mark.
    #[inline]
    pub(crate) fn visit(&mut self, cell: u64) -> (Option<Record<'_, H, V>>, Mark<'_>) {
        let lane = (cell % CELLS_PER_GROUP) as u32;
        let entry = entry_mut(&mut self.pages, self.size, cell / CELLS_PER_GROUP);
        (record(&self.classes, *entry, lane), Mark { entry, mark: Entry::mark(lane) })
    }

    #[inline]
    pub(crate) fn unmark(&mut self, cell: u64) {
        self.entry_mut(cell / CELLS_PER_GROUP).0 &= !Entry::mark((cell % CELLS_PER_GROUP) as u32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::level_set::LevelSet;
    use crate::mechanism::tree::Head;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// Two words a value, as the Laplace law has.
    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Pair(u64, u64);

    impl Stored for Pair {
        const WORDS: usize = 2;

        fn write(self, words: &mut [u64]) {
            words[0] = self.0;
            words[1] = self.1;
        }

        fn read(words: &[u64]) -> Self {
            Self(words[0], words[1])
        }
    }

    /// A cell and the size of its next stack, of which some are kept.
    fn calls(size: u64) -> impl Strategy<Value = Vec<(u64, u32, u32)>> {
        prop::collection::vec((0..size, 0u32..=63, 1u32..=63), 1..400)
    }

    fn check<S: Stored + PartialEq + core::fmt::Debug>(size: u64, calls: &[(u64, u32, u32)], make: impl Fn(u64) -> S) {
        let mut store = PackedStore::<Head, S>::new(size);
        let mut model: BTreeMap<u64, (u64, Vec<S>)> = BTreeMap::new();
        let mut stamp = 0;
        for &(cell, keep, len) in calls {
            let old = model.get(&cell).map_or(&[][..], |(_, sums)| sums);
            let keep = (keep as usize).min(old.len()).min(len as usize);
            let mut sums = old[..keep].to_vec();
            while sums.len() < len as usize {
                stamp += 1;
                sums.push(make(stamp));
            }
            let levels = LevelSet::from_bits(u64::MAX >> (64 - len));
            store.replace(cell, Head { step: stamp, levels }, keep as u32, sums[keep..].iter().copied());
            model.insert(cell, (stamp, sums));
            assert_eq!(store.held(), model.len() as u64);
        }
        for cell in 0..size {
            match (store.get(cell), model.get(&cell)) {
                (None, None) => {}
                (Some(record), Some((step, sums))) => {
                    assert_eq!(record.head().step, *step);
                    assert_eq!(record.head().levels.len() as usize, sums.len());
                    for (rank, sum) in sums.iter().enumerate() {
                        assert_eq!(record.value(rank as u32), *sum);
                    }
                    assert_eq!(record.last(), *sums.last().unwrap());
                }
                (record, _) => panic!("cell {cell}: present {}", record.is_some()),
            }
        }
        // Slots are dense: every class holds exactly the groups whose records have its size.
        let mut groups: BTreeMap<u64, usize> = BTreeMap::new();
        for (cell, (_, sums)) in &model {
            *groups.entry(cell / CELLS_PER_GROUP).or_default() += Head::WORDS + sums.len() * S::WORDS;
        }
        for (index, class) in store.classes.iter().enumerate() {
            assert_eq!(class.len, groups.values().filter(|&&words| class_of(words) == index).count());
        }
    }

    proptest! {
        #[test]
        fn records_are_what_was_written_for_one_word_a_sum(calls in calls(100)) {
            check(100, &calls, f64::from_bits);
        }

        #[test]
        fn records_are_what_was_written_for_two_words_a_sum(calls in calls(20)) {
            check(20, &calls, |stamp| Pair(stamp, !stamp));
        }

        #[test]
        fn records_are_what_was_written_across_pages(calls in calls(3 * CELLS_PER_PAGE + 5)) {
            check(3 * CELLS_PER_PAGE + 5, &calls, f64::from_bits);
        }
    }

    #[test]
    fn marks_belong_to_one_cell_and_survive_a_move_of_the_group() {
        let mut store = PackedStore::<Head, f64>::new(20);
        store.visit(3).1.set();
        store.visit(4).1.set();
        assert!([2, 3, 4, 5].map(|cell| store.visit(cell).1.is_set()) == [false, true, true, false]);
        let head = |bits| Head { step: 1, levels: LevelSet::from_bits(bits) };
        store.replace(3, head(0b111), 0, [1.0, 2.0, 3.0].into_iter());
        store.replace(5, head(u64::MAX >> 1), 0, [0.5; 63].into_iter());
        assert!(!store.visit(3).1.is_set(), "what is replaced is marked no more");
        assert!(store.visit(4).1.is_set());
        store.unmark(4);
        assert!(!store.visit(4).1.is_set());
        assert_eq!(store.get(3).unwrap().last(), 3.0);
    }

    #[test]
    fn an_unread_store_owns_nothing() {
        let store = PackedStore::<Head, f64>::new(1 << 40);
        assert_eq!(store.bytes(), 0);
        assert!(store.get(1 << 39).is_none());
    }
}
