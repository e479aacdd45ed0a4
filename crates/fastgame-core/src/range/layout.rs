//! The components of a range counter and where their rectangles are stored.
//!
//! A component is one kept level per axis: a partition of the grid into rectangles, of which a point is in exactly one (paper,
//! section 4.1). With no more rectangles than a sketch of it has cells it is *dense*, a cell a rectangle; else it is a
//! CountSketch of `depth` rows. A point moves one cell of a dense component and `depth` of a sketched one, so the squared
//! sensitivity is `max_weight^2` times the sum of these.
//!
//! In a sketched component a rectangle is numbered by its place, exactly, if the numbers fit in 64 bits; the number is
//! xored with the component's own random word and mixed by a bijection, so that no two rectangles of a component share a
//! key. Where they do not fit, a keyed hash of the coordinates (SipHash-2-4, 64 bits) stands for the number: two given
//! rectangles share a key with probability about `2^-64`. All components use one family of hash functions: on keys of their own
//! these are hash functions of their own.
//!
//! Cost: an update takes `O(d)` and one or `depth` additions a component.

use alloc::vec::Vec;

use super::RangeShape;
use super::boxes::Parts;
use super::levels::{Axis, MAX_AXIS};
use crate::error::{Error, Result, reserved};
use crate::hash::{HashFamily, Key};
use crate::math::mix;
use crate::sketch::{SketchShape, Weights, add_batch};

/// The largest number of axes.
pub const MAX_AXES: usize = 6;
/// The largest number of components.
pub const MAX_COMPONENTS: usize = 1 << 16;

/// Up to this many points are added one by one: blocks would have more to prepare.
const FEW: usize = 8;
/// So many points are added at once: few enough that what is known of them has room on the stack.
const BLOCK: usize = 256;

/// How a component is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Storage {
    /// A cell a rectangle, in row-major order.
    Dense,
    /// Rows of a sketch; the exact number of a rectangle is mixed with this word.
    Sketched(u64),
    /// Rows of a sketch, where rectangles are too many to be numbered in 64 bits.
    Wide(u64),
}

/// One level per axis.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Component {
    pub(crate) levels: [u32; MAX_AXES],
    shifts: [u32; MAX_AXES],
    /// A rectangle's number is the sum of indices times strides.
    strides: [u64; MAX_AXES],
    /// Its first cell.
    pub(crate) start: usize,
    pub(crate) storage: Storage,
}

impl Component {
    pub(crate) fn is_dense(&self) -> bool {
        self.storage == Storage::Dense
    }
}

/// All components of a grid.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) axes: Vec<Axis>,
    /// The levels of the last axis vary fastest, from the leaves up.
    pub(crate) components: Vec<Component>,
    pub(crate) depth: usize,
    bucket_bits: u32,
    pub(crate) cells: usize,
}

impl Layout {
    /// Checks the shape and places the components.
    pub(crate) fn new(shape: &RangeShape) -> Result<Self> {
        shape.sketch().check()?;
        let spacing = shape.levels.spacing()?;
        if shape.sizes.is_empty() || shape.sizes.len() > MAX_AXES {
            let allowed = "the sizes of 1 to 6 axes";
            return Err(Error::Parameter { name: "sizes", given: shape.sizes.len().into(), allowed });
        }
        if let Some(&size) = shape.sizes.iter().find(|&&size| size == 0 || size > MAX_AXIS) {
            let allowed = "from 1 to 2^62 on every axis";
            return Err(Error::Parameter { name: "sizes", given: size.into(), allowed });
        }
        let axes: Vec<Axis> = shape.sizes.iter().map(|&size| Axis::new(size, spacing)).collect();
        let count = axes.iter().fold(1usize, |count, axis| count.saturating_mul(axis.levels as usize));
        if count > MAX_COMPONENTS {
            return Err(Error::Parameter {
                name: "levels",
                given: count.into(),
                allowed: "such that there are at most 65536 components, one for each choice of a kept level per axis (keep \
                          fewer levels, or count over fewer axes)",
            });
        }
        let SketchShape { width, depth, hash_seed, .. } = shape.sketch();
        let mut layout =
            Self { axes, components: reserved(count)?, depth, bucket_bits: width.trailing_zeros(), cells: 0 };
        // A word of its own for each component.
        let words = mix(hash_seed ^ u64::from_le_bytes(*b"fg-range"));
        for number in 0..count {
            let component = layout.component(number, mix(words ^ number as u64));
            let cells = layout.cells_of(&component).and_then(|cells| layout.cells.checked_add(cells));
            layout.cells = cells.ok_or(Error::Parameter {
                name: "width",
                given: width.into(),
                allowed: "such that the cells of all components, depth * width in each at most, can be numbered",
            })?;
            layout.components.push(component);
        }
        Ok(layout)
    }

    /// The component of this number, placed after those before.
    fn component(&self, number: usize, word: u64) -> Component {
        let (mut levels, mut shifts, mut strides) = ([0; MAX_AXES], [0; MAX_AXES], [0; MAX_AXES]);
        let (mut rest, mut rectangles) = (number, Some(1u64));
        for (k, axis) in self.axes.iter().enumerate().rev() {
            levels[k] = (rest % axis.levels as usize) as u32;
            rest /= axis.levels as usize;
            shifts[k] = axis.shift(levels[k]);
            strides[k] = rectangles.unwrap_or(0);
            rectangles = rectangles.and_then(|product| product.checked_mul(axis.nodes(levels[k])));
        }
        let limit = (self.depth as u64) << self.bucket_bits;
        let storage = match rectangles {
            Some(count) if count <= limit => Storage::Dense,
            Some(_) => Storage::Sketched(word),
            None => Storage::Wide(word),
        };
        Component { levels, shifts, strides, start: self.cells, storage }
    }

    /// The number of rectangles of a component, if 64 bits hold it.
    fn rectangles(&self, component: &Component) -> Option<u64> {
        let mut levels = self.axes.iter().zip(component.levels);
        levels.try_fold(1u64, |product, (axis, level)| product.checked_mul(axis.nodes(level)))
    }

    fn cells_of(&self, component: &Component) -> Option<usize> {
        if component.is_dense() {
            self.rectangles(component).and_then(|count| usize::try_from(count).ok())
        } else {
            self.depth.checked_mul(1 << self.bucket_bits)
        }
    }

    /// The blocks of the vector: a dense component is one, a sketched one is one a row.
    pub(crate) fn blocks(&self) -> Result<Vec<usize>> {
        let mut blocks = reserved(self.moved() as usize)?;
        for component in &self.components {
            match self.rectangles(component) {
                Some(count) if component.is_dense() => blocks.push(count as usize),
                _ => blocks.extend(core::iter::repeat_n(1 << self.bucket_bits, self.depth)),
            }
        }
        Ok(blocks)
    }

    /// Memory of the list of components.
    pub(crate) fn bytes(&self) -> usize {
        self.components.capacity() * size_of::<Component>()
    }

    /// How many cells an update moves, the squared sensitivity to a weight of one.
    pub(crate) fn moved(&self) -> u32 {
        // At most 2^16 components of at most 63 rows.
        self.components.iter().map(|component| self.rows(component)).sum::<usize>() as u32
    }

    /// How many cells of a component a point moves, and a rectangle is read from.
    pub(crate) fn rows(&self, component: &Component) -> usize {
        if component.is_dense() { 1 } else { self.depth }
    }

    pub(crate) fn dense(&self) -> usize {
        self.components.iter().filter(|component| component.is_dense()).count()
    }

    /// The cells of a component.
    pub(crate) fn range(&self, component: &Component) -> core::ops::Range<usize> {
        component.start..component.start + self.cells_of(component).unwrap_or(0)
    }

    /// The key of a rectangle of a sketched component.
    fn key(&self, hash: &HashFamily, component: &Component, number: u64, indices: &[u64; MAX_AXES]) -> Key {
        match component.storage {
            Storage::Dense => Key::from(number),
            Storage::Sketched(word) => Key::from(mix(number ^ word)),
            Storage::Wide(word) => {
                let indices = indices[..self.axes.len()].iter();
                hash.keyer().composite(core::iter::once(&word).chain(indices).map(|&part| Key::from(part)))
            }
        }
    }

    /// The keys of the rectangles of a sketched component that points are in; `numbers` has room for as many.
    fn keys(
        &self,
        hash: &HashFamily,
        component: &Component,
        points: &Points<'_>,
        first: usize,
        numbers: &mut [u64],
        keys: &mut [Key],
    ) {
        if matches!(component.storage, Storage::Wide(_)) {
            for (i, key) in keys.iter_mut().enumerate() {
                let indices = self.indices(component, points, first + i);
                *key = self.key(hash, component, 0, &indices);
            }
            return;
        }
        self.numbers(component, points, first, numbers);
        for (key, &number) in keys.iter_mut().zip(&*numbers) {
            *key = self.key(hash, component, number, &[0; MAX_AXES]);
        }
    }

    /// The indices along the axes of the rectangle that a point is in.
    #[inline]
    fn indices(&self, component: &Component, points: &Points<'_>, point: usize) -> [u64; MAX_AXES] {
        let mut indices = [0; MAX_AXES];
        for (k, index) in indices.iter_mut().enumerate().take(self.axes.len()) {
            *index = points.axis(k)[point] >> component.shifts[k];
        }
        indices
    }

    /// The numbers of the rectangles that points from the first on are in.
    #[inline]
    fn numbers(&self, component: &Component, points: &Points<'_>, first: usize, numbers: &mut [u64]) {
        numbers.fill(0);
        for k in 0..self.axes.len() {
            let (shift, stride) = (component.shifts[k], component.strides[k]);
            for (number, &x) in numbers.iter_mut().zip(&points.axis(k)[first..]) {
                *number += (x >> shift) * stride;
            }
        }
    }

    /// Adds points to counters that are known not to overflow: component by component, so that its cells stay in cache.
    pub(crate) fn add(
        &self,
        counters: &mut [i64],
        hash: Option<&HashFamily>,
        points: &Points<'_>,
        weights: Weights<'_>,
    ) {
        if points.count <= FEW {
            return self.add_each(hash, points, weights, &mut |cell, add, _| counters[cell] += add);
        }
        let mut keys = [Key::from(0u64); BLOCK];
        let mut numbers = [0; BLOCK];
        for component in &self.components {
            let counters = &mut counters[self.range(component)];
            for first in (0..points.count).step_by(BLOCK) {
                let count = BLOCK.min(points.count - first);
                match hash.filter(|_| !component.is_dense()) {
                    None => {
                        self.numbers(component, points, first, &mut numbers[..count]);
                        for (i, &number) in numbers[..count].iter().enumerate() {
                            counters[number as usize] += weights.get(first + i);
                        }
                    }
                    Some(hash) => {
                        self.keys(hash, component, points, first, &mut numbers[..count], &mut keys[..count]);
                        add_batch(counters, hash, self.bucket_bits, &keys[..count], weights.skip(first));
                    }
                }
            }
        }
    }

    /// What [`Layout::add`] adds, one by one: cell, weight, number of the point.
    pub(crate) fn add_each(
        &self,
        hash: Option<&HashFamily>,
        points: &Points<'_>,
        weights: Weights<'_>,
        each: &mut dyn FnMut(usize, i64, usize),
    ) {
        for component in &self.components {
            for i in 0..points.count {
                let indices = self.indices(component, points, i);
                // Where the numbers do not fit they are not used.
                let parts = indices.iter().zip(&component.strides).map(|(index, stride)| index.wrapping_mul(*stride));
                let number = parts.fold(0, u64::wrapping_add);
                self.places(hash, component, number, &indices, |cell, sign| each(cell, sign * weights.get(i), i));
            }
        }
    }

    /// The cells of a rectangle, row by row, with their signs.
    #[inline]
    fn places(
        &self,
        hash: Option<&HashFamily>,
        component: &Component,
        number: u64,
        indices: &[u64; MAX_AXES],
        mut visit: impl FnMut(usize, i64),
    ) {
        match hash.filter(|_| !component.is_dense()) {
            None => visit(component.start + number as usize, 1),
            Some(hash) => hash.places(self.key(hash, component, number, indices), |row, place| {
                visit(component.start + (row << self.bucket_bits) + place.bucket, place.sign);
            }),
        }
    }

    /// The cells of one node of the only axis, with their signs.
    pub(crate) fn cells_of_node(
        &self,
        hash: Option<&HashFamily>,
        component: &Component,
        index: u64,
        mut visit: impl FnMut(usize, f64),
    ) {
        let mut indices = [0; MAX_AXES];
        indices[0] = index;
        self.places(hash, component, index, &indices, |cell, sign| visit(cell, sign as f64));
    }

    /// How many rectangles of a component a box has.
    pub(crate) fn rectangles_of(&self, component: &Component, parts: &[Parts]) -> Option<usize> {
        let mut levels = parts.iter().zip(component.levels);
        levels.try_fold(1usize, |product, (parts, level)| product.checked_mul(parts.level(level).len()))
    }

    /// The cells of all rectangles of a box in a component, row by row, each with its sign times the rectangle's weight. The
    /// last axis varies fastest.
    pub(crate) fn cells_of_box(
        &self,
        hash: Option<&HashFamily>,
        component: &Component,
        parts: &[Parts],
        mut visit: impl FnMut(usize, f64),
    ) {
        let dims = self.axes.len();
        // The place of the present node in the list of each axis.
        let mut places = [0; MAX_AXES];
        let nodes = |k: usize| parts[k].level(component.levels[k]);
        if (0..dims).any(|k| nodes(k).is_empty()) {
            return;
        }
        loop {
            let (mut indices, mut number, mut weight) = ([0; MAX_AXES], 0u64, 1.0);
            for k in 0..dims {
                let node = nodes(k)[places[k]];
                indices[k] = node.index;
                number = number.wrapping_add(node.index.wrapping_mul(component.strides[k]));
                weight *= node.weight;
            }
            self.places(hash, component, number, &indices, |cell, sign| visit(cell, sign as f64 * weight));
            let mut k = dims;
            loop {
                if k == 0 {
                    return;
                }
                k -= 1;
                places[k] += 1;
                if places[k] < nodes(k).len() {
                    break;
                }
                places[k] = 0;
            }
        }
    }
}

/// Points of a grid, axis by axis.
pub(crate) struct Points<'a> {
    pub(crate) coordinates: &'a [u64],
    pub(crate) count: usize,
}

impl Points<'_> {
    #[inline]
    fn axis(&self, k: usize) -> &[u64] {
        &self.coordinates[k * self.count..][..self.count]
    }
}
