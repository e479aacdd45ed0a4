//! Packed storage for the noise of single cells: a few words for each cell that was read, none for the others.
//!
//! What a cell keeps is a *record*: a head of fixed length (the step of its last read; for a tree its level set too) and a
//! stack of values. Records of a tree change length with nearly every read. Those with room for as many values lie together,
//! in one *class*:
//!
//! ```text
//! page of 256 cells -> place: | mark 1 | class 6 | slot 16 |
//! class -> chunk:      | owners of 64 records | record | record | ... |
//! record:              | head | value | value | ... |
//! ```
//!
//! A record stays in its class while it fits and wastes no more than [`SPARE`] values. Otherwise it moves to the end of the class
//! of its length, and the last record of its old class fills the hole; the owner says whose that one is. So there are no
//! holes, what is unused is a few words a record and a part of a chunk a class, and every operation takes constant time.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::marker::PhantomData;

use super::{Drawn, Head};
use crate::noise::Stored;

const CELLS_PER_PAGE: usize = 256;
/// A region is what slots and owners of 16 bits reach.
const CELLS_PER_REGION: usize = 1 << 16;
/// Values of a record at most: a class for each number.
const MOST_VALUES: usize = 63;
/// Values for which a record may have room and not use it. More would move records less often, and take more memory.
const SPARE: usize = 3;
const RECORDS_PER_CHUNK: usize = 64;
/// Words for the owners of a chunk, four in each.
const OWNERS: usize = RECORDS_PER_CHUNK / 4;
/// Records by which a chunk grows.
const GROWTH: usize = 8;

/// Stores of so many records are beyond the caches of one core.
const FAR: u64 = 1 << 14;
/// Cells whose records are waited for at the same time.
pub(crate) const TOUCHED: usize = 64;

/// The records of the cells that were read on their own: heads `H` and values `V`.
pub(crate) struct PackedStore<H, V> {
    size: u64,
    held: u64,
    pages: Vec<Option<Page>>,
    regions: Vec<Region>,
    record: PhantomData<(H, V)>,
}

/// The places of neighbouring cells.
type Page = Box<[Place; CELLS_PER_PAGE]>;

/// The classes of neighbouring cells' records, by the number of values for which there is room.
type Region = Vec<Class>;

/// Where the record of a cell is, if it has one, and whether the cell is marked.
#[derive(Clone, Copy, Default)]
struct Place(u32);

impl Place {
    const MARK: u32 = 1 << 31;

    fn new(class: usize, slot: usize) -> Self {
        Self((class as u32) << 16 | slot as u32)
    }

    /// Zero: there is no record.
    #[inline]
    fn class(self) -> usize {
        (self.0 >> 16 & 0x3f) as usize
    }

    #[inline]
    fn slot(self) -> usize {
        (self.0 & 0xffff) as usize
    }
}

/// Says of one cell that the read at hand draws it.
pub(crate) struct Mark<'a>(&'a mut Place);

impl Mark<'_> {
    /// Sets it; says whether it was set before.
    #[inline]
    pub(crate) fn set(self) -> bool {
        let was = self.0.0 & Place::MARK != 0;
        self.0.0 |= Place::MARK;
        was
    }
}

/// The records with room for the same number of values, without holes.
struct Class {
    /// Words of a record.
    words: usize,
    len: usize,
    /// The last one or two grow and shrink, the others are full.
    chunks: Vec<Vec<u64>>,
}

impl Class {
    #[inline]
    fn record(&self, slot: usize) -> &[u64] {
        let start = OWNERS + slot % RECORDS_PER_CHUNK * self.words;
        &self.chunks[slot / RECORDS_PER_CHUNK][start..start + self.words]
    }

    #[inline]
    fn record_mut(&mut self, slot: usize) -> &mut [u64] {
        let start = OWNERS + slot % RECORDS_PER_CHUNK * self.words;
        &mut self.chunks[slot / RECORDS_PER_CHUNK][start..start + self.words]
    }

    /// The cell that a record is of.
    #[inline]
    fn owner(&self, slot: usize) -> u16 {
        (self.chunks[slot / RECORDS_PER_CHUNK][slot % RECORDS_PER_CHUNK / 4] >> (slot % 4 * 16)) as u16
    }

    #[inline]
    fn set_owner(&mut self, slot: usize, cell: u16) {
        let owners = &mut self.chunks[slot / RECORDS_PER_CHUNK][slot % RECORDS_PER_CHUNK / 4];
        let shift = slot % 4 * 16;
        *owners = *owners & !(0xffff << shift) | u64::from(cell) << shift;
    }

    /// A slot at the end.
    #[inline]
    fn push(&mut self, owner: u16) -> usize {
        let slot = self.len;
        let end = OWNERS + (slot % RECORDS_PER_CHUNK + 1) * self.words;
        if self.chunks.get(slot / RECORDS_PER_CHUNK).is_none_or(|chunk| chunk.len() < end) {
            self.grow();
        }
        self.len += 1;
        self.set_owner(slot, owner);
        slot
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let chunk = self.len / RECORDS_PER_CHUNK;
        if chunk == self.chunks.len() {
            self.chunks.push(Vec::new());
        }
        let words = OWNERS + (self.len % RECORDS_PER_CHUNK / GROWTH + 1) * GROWTH * self.words;
        let chunk = &mut self.chunks[chunk];
        chunk.reserve_exact(words - chunk.len());
        chunk.resize(words, 0);
    }

    /// Fills the hole at `slot` with the last record. Returns the cell that has moved there, if any.
    #[inline]
    fn swap_remove(&mut self, slot: usize) -> Option<u16> {
        let last = self.len - 1;
        self.len = last;
        let moved = (slot != last).then(|| {
            let (from, to) = (last / RECORDS_PER_CHUNK, slot / RECORDS_PER_CHUNK);
            let (i, k) = [last, slot].map(|slot| OWNERS + slot % RECORDS_PER_CHUNK * self.words).into();
            if from == to {
                self.chunks[to].copy_within(i..i + self.words, k);
            } else {
                let (front, back) = self.chunks.split_at_mut(from);
                let (from, to) = (&back[0][i..i + self.words], &mut front[to][k..k + self.words]);
                to.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
            }
            let owner = self.owner(last);
            self.set_owner(slot, owner);
            owner
        });
        // A class that swings about a chunk's edge allocates a few records each time.
        if last % RECORDS_PER_CHUNK == 0 {
            self.shrink();
        }
        moved
    }

    #[cold]
    #[inline(never)]
    fn shrink(&mut self) {
        self.chunks.pop();
        // Nor does the table of a class that its records have left stay.
        if self.chunks.len() < self.chunks.capacity() / 4 {
            self.chunks.shrink_to(2 * self.chunks.len());
        }
    }

    fn bytes(&self) -> usize {
        let chunks: usize = self.chunks.iter().map(|chunk| 8 * chunk.capacity()).sum();
        chunks + self.chunks.capacity() * size_of::<Vec<u64>>()
    }
}

/// What a cell keeps between reads.
pub(crate) struct Record<'a, H, V> {
    /// The head, and room for values.
    words: &'a [u64],
    record: PhantomData<(H, V)>,
}

impl<H: Head, V: Stored> Record<'_, H, V> {
    #[inline]
    pub(crate) fn head(&self) -> H {
        H::read(self.words)
    }

    /// The value of this rank.
    #[inline]
    pub(crate) fn value(&self, rank: u32) -> V {
        V::read(&self.words[H::WORDS + rank as usize * V::WORDS..])
    }

    fn count(&self) -> usize {
        self.head().values((self.words.len() - H::WORDS) / V::WORDS)
    }

    /// All values.
    pub(crate) fn values(&self) -> impl Iterator<Item = V> {
        self.words[H::WORDS..][..self.count() * V::WORDS].chunks_exact(V::WORDS).map(V::read)
    }

    /// The last value, which is the noise of the last read.
    #[inline]
    pub(crate) fn last(&self) -> V {
        self.value(self.count() as u32 - 1)
    }
}

/// The two classes `a != b`, both to be changed.
#[inline]
fn two_classes(classes: &mut [Class], a: usize, b: usize) -> (&mut Class, &mut Class) {
    if a < b {
        let (low, high) = classes.split_at_mut(b);
        (&mut low[a], &mut high[0])
    } else {
        let (low, high) = classes.split_at_mut(a);
        (&mut high[0], &mut low[b])
    }
}

/// The place of a cell whose page is there.
#[inline]
fn place_in(pages: &mut [Option<Page>], cell: u64) -> &mut Place {
    match &mut pages[cell as usize / CELLS_PER_PAGE] {
        Some(page) => &mut page[cell as usize % CELLS_PER_PAGE],
        None => unreachable!("the page was made"),
    }
}

/// A bound on the memory of a store for so many cells, whose heads and stacks have so many words, in bytes.
pub(crate) const fn bytes_at_most(cells: u64, head: u64, values: u64) -> u64 {
    let (chunk, regions) = (RECORDS_PER_CHUNK as u64, cells.div_ceil(CELLS_PER_REGION as u64));
    // Of each class a chunk that grows, one that is kept, and their table, of which a half may be empty.
    let class = 2 * (8 * chunk * (head + values) + 8 * OWNERS as u64) + 4 * 24 + 2 * size_of::<Class>() as u64;
    let classes = (MOST_VALUES as u64 + 1) * class;
    // With its owner, and two places in the table of chunks.
    let record = 8 * (head + values) + 2 + 2 * 24 / chunk + 1;
    let pages = cells.div_ceil(CELLS_PER_PAGE as u64).saturating_mul((4 * CELLS_PER_PAGE + size_of::<Page>()) as u64);
    let regions = regions.saturating_mul(classes + size_of::<Region>() as u64);
    cells.saturating_mul(record).saturating_add(pages).saturating_add(regions)
}

impl<H: Head, V: Stored> PackedStore<H, V> {
    /// An empty store for cells `0..size`; it owns no memory until a cell is read.
    pub(crate) fn new(size: u64) -> Self {
        Self { size, held: 0, pages: Vec::new(), regions: Vec::new(), record: PhantomData }
    }

    /// The number of cells that have a record.
    pub(crate) fn held(&self) -> u64 {
        self.held
    }

    /// All cells that have a record, in order. Time: linear in the pages that there are.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, Record<'_, H, V>)> {
        let pages = (0..).step_by(CELLS_PER_PAGE).zip(&self.pages).filter(|(_, page)| page.is_some());
        let cells = pages.flat_map(|(start, _)| start..start + CELLS_PER_PAGE as u64);
        cells.filter_map(|cell| Some((cell, self.get(cell)?)))
    }

    /// The memory in use, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let pages: usize = self.pages.iter().flatten().map(|page| size_of_val(&**page)).sum();
        let classes: usize = self.regions.iter().flatten().map(Class::bytes).sum();
        let tables: usize = self.regions.iter().map(|region| region.capacity() * size_of::<Class>()).sum();
        let firsts = self.pages.capacity() * size_of::<Option<Page>>() + self.regions.capacity() * size_of::<Region>();
        pages + classes + tables + firsts
    }

    const fn words_of(values: usize) -> usize {
        H::WORDS + values * V::WORDS
    }

    #[inline]
    fn place(&self, cell: u64) -> Place {
        match self.pages.get(cell as usize / CELLS_PER_PAGE) {
            Some(Some(page)) => page[cell as usize % CELLS_PER_PAGE],
            _ => Place::default(),
        }
    }

    #[inline]
    fn place_mut(&mut self, cell: u64) -> &mut Place {
        self.see_to_page(cell);
        place_in(&mut self.pages, cell)
    }

    #[inline]
    fn see_to_page(&mut self, cell: u64) {
        let page = cell as usize / CELLS_PER_PAGE;
        if !matches!(self.pages.get(page), Some(Some(_))) {
            self.make_page(page);
        }
    }

    #[cold]
    #[inline(never)]
    fn make_page(&mut self, page: usize) {
        if self.pages.is_empty() {
            self.pages.resize_with((self.size as usize).div_ceil(CELLS_PER_PAGE), || None);
            self.regions.resize_with((self.size as usize).div_ceil(CELLS_PER_REGION), Vec::new);
        }
        self.pages[page] = Some(Box::new([Place::default(); CELLS_PER_PAGE]));
    }

    /// The record of `cell`, if it has one.
    #[inline]
    pub(crate) fn get(&self, cell: u64) -> Option<Record<'_, H, V>> {
        let place = self.place(cell);
        let record = |words| Record { words, record: PhantomData };
        (place.class() != 0)
            .then(|| record(self.regions[cell as usize / CELLS_PER_REGION][place.class()].record(place.slot())))
    }

    /// Has the records of up to [`TOUCHED`] cells brought to the processor, all at the same time: to look them up one after the
    /// other would wait for each.
    pub(crate) fn touch(&self, cells: &[u64]) {
        if self.held < FAR {
            return;
        }
        let mut places = [Place::default(); TOUCHED];
        places.iter_mut().zip(cells).for_each(|(place, &cell)| *place = self.place(cell));
        let records = places.iter().zip(cells).filter(|(place, _)| place.class() != 0);
        let ends = records.map(|(place, &cell)| {
            let record = self.regions[cell as usize / CELLS_PER_REGION][place.class()].record(place.slot());
            record[0] ^ record[record.len() - 1]
        });
        // What is read is of no use, but must not be left out.
        core::hint::black_box(ends.fold(0, |all, ends| all ^ ends));
    }

    /// The record of `cell`, if it has one, and its mark.
    #[inline]
    pub(crate) fn visit(&mut self, cell: u64) -> (Option<Record<'_, H, V>>, Mark<'_>) {
        self.see_to_page(cell);
        let place = place_in(&mut self.pages, cell);
        let class = (place.class() != 0).then(|| &self.regions[cell as usize / CELLS_PER_REGION][place.class()]);
        let record = class.map(|class| Record { words: class.record(place.slot()), record: PhantomData });
        (record, Mark(place))
    }

    #[inline]
    pub(crate) fn unmark(&mut self, cell: u64) {
        self.place_mut(cell).0 &= !Place::MARK;
    }

    /// Sets the record of `cell`: the head, the first `keep` values that it has, then those that were drawn. Takes away its mark.
    #[inline]
    pub(crate) fn replace(&mut self, cell: u64, head: H, keep: u32, drawn: &(impl Drawn<Value = V> + ?Sized)) {
        let place = self.place_mut(cell);
        place.0 &= !Place::MARK;
        let mut place = *place;

        let values = keep as usize + drawn.count();
        debug_assert_eq!(values, head.values(values), "the head says how many values there are");
        let kept = Self::words_of(keep as usize);
        if place.class().wrapping_sub(values) > SPARE {
            place = self.move_record(cell, place, values, kept);
        }
        let record = self.regions[cell as usize / CELLS_PER_REGION][place.class()].record_mut(place.slot());
        head.write(record);
        drawn.write(&mut record[kept..]);
    }

    /// Moves the record of a cell, or makes one, to where those with so many values are; its first `kept` words go with it.
    #[inline(never)]
    fn move_record(&mut self, cell: u64, old: Place, values: usize, kept: usize) -> Place {
        let region = cell as usize / CELLS_PER_REGION;
        let classes = &mut self.regions[region];
        while classes.len() <= values {
            classes.push(Class { words: Self::words_of(classes.len()), len: 0, chunks: Vec::new() });
        }
        let slot = classes[values].push(cell as u16);
        let place = Place::new(values, slot);
        *self.place_mut(cell) = place;
        if old.class() == 0 {
            self.held += 1;
            return place;
        }
        let (from, to) = two_classes(&mut self.regions[region], old.class(), values);
        let (front, back) = (&from.record(old.slot())[..kept], &mut to.record_mut(slot)[..kept]);
        back.iter_mut().zip(front).for_each(|(to, from)| *to = *from);
        if let Some(moved) = from.swap_remove(old.slot()) {
            let moved = self.place_mut((region * CELLS_PER_REGION) as u64 + u64::from(moved));
            *moved = Place(moved.0 & Place::MARK | old.0);
        }
        place
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
            store.replace(cell, Head { step: stamp, levels }, keep as u32, &sums[keep..]);
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
        // Slots are dense, and everybody knows where he is: every class holds the records that say so.
        let mut lens: BTreeMap<(usize, usize), usize> = BTreeMap::new();
        for (&cell, (_, sums)) in &model {
            let (region, place) = (cell as usize / CELLS_PER_REGION, store.place(cell));
            assert!((sums.len()..=sums.len() + SPARE).contains(&place.class()));
            assert_eq!(store.regions[region][place.class()].owner(place.slot()), cell as u16);
            *lens.entry((region, place.class())).or_default() += 1;
        }
        for (number, region) in store.regions.iter().enumerate() {
            for (values, class) in region.iter().enumerate() {
                assert_eq!(class.len, lens.get(&(number, values)).copied().unwrap_or(0));
            }
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
        fn records_are_what_was_written_across_pages(calls in calls(3 * CELLS_PER_PAGE as u64 + 5)) {
            check(3 * CELLS_PER_PAGE as u64 + 5, &calls, f64::from_bits);
        }
    }

    #[test]
    fn marks_belong_to_one_cell_and_survive_what_happens_to_others() {
        let mut store = PackedStore::<Head, f64>::new(20);
        assert_eq!([3, 4].map(|cell| store.visit(cell).1.set()), [false, false]);
        let head = |bits| Head { step: 1, levels: LevelSet::from_bits(bits) };
        store.replace(3, head(0b111), 0, &[1.0, 2.0, 3.0][..]);
        store.replace(5, head(u64::MAX >> 1), 0, &[0.5; 63][..]);
        assert_eq!(
            [2, 3, 4, 5].map(|cell| store.visit(cell).1.set()),
            [false, false, true, false],
            "what is replaced is marked no more"
        );
        store.unmark(4);
        assert!(!store.visit(4).1.set());
        assert_eq!(store.get(3).unwrap().last(), 3.0);
    }

    #[test]
    fn records_of_far_cells_are_found() {
        let region = CELLS_PER_REGION as u64;
        let size = 3 * region + 5;
        let mut store = PackedStore::<Head, f64>::new(size);
        let cells = [0, 255, 256, region - 1, region, 2 * region + 9, size - 1];
        let head = Head { step: 1, levels: LevelSet::from_bits(1) };
        cells.iter().for_each(|&cell| store.replace(cell, head, 0, &[cell as f64][..]));
        assert!(store.iter().map(|(cell, record)| (cell, record.last())).eq(cells.map(|cell| (cell, cell as f64))));
    }

    #[test]
    fn an_unread_store_owns_nothing() {
        let store = PackedStore::<Head, f64>::new(1 << 40);
        assert_eq!(store.bytes(), 0);
        assert!(store.get(1 << 39).is_none());
    }
}
