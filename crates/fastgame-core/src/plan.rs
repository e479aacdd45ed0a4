//! What a structure will cost and how far off it will be, before any data. For every structure.
//!
//! The error of noise is exact. That of a sketch's collisions depends on the data, and is found from a
//! [`FrequencyProfile`]: `profile/law.rs` has the mathematics and the cost.

use crate::calibration::{Calibration, Kind};
use crate::error::{Error, Result};
use crate::math::sqrt;
use crate::mechanism::blt::BltProcess;
use crate::mechanism::store::bytes_at_most;
use crate::noise::laplace::Laplace;
use crate::profile::FrequencyProfile;
use crate::profile::law::RowLaw;
use crate::quantile::{tail_of_each, tail_of_one_row};
use crate::range::RangeBuilder;
use crate::release_law::ReleaseLaw;
use crate::sketch::{MAX_WIDTH, SketchBuilder, SketchShape};
use crate::time::planned_step;
use crate::vector::Builder;

/// What the parameters of a structure amount to. Everything here is public: it is computed without data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    calibration: Calibration,
    horizon: u64,
    size: u64,
    blocks: u64,
    /// Of a sketch, whose answers are medians of cells.
    shape: Option<SketchShape>,
    lattice_step: f64,
    /// Bytes beside the cells: hash functions, and the list of components.
    beside: u64,
}

/// More than the structure itself takes, and the tables of a block's levels.
const FIXED_BYTES: u64 = 2048;
/// The depths among which a sketch is suggested.
const DEPTHS: [usize; 4] = [3, 5, 7, 9];

/// A suggested sketch is within this factor of the least error.
const NEAR_BEST: f64 = 1.1;

impl Builder {
    /// Checks the parameters and says what they amount to, without building anything.
    ///
    /// # Errors
    /// As [`Builder::build`].
    pub fn plan(&self) -> Result<Plan> {
        let checked = self.check()?;
        Ok(Plan {
            calibration: checked.calibration,
            horizon: self.horizon,
            size: checked.size,
            blocks: self.blocks.len() as u64,
            shape: None,
            lattice_step: checked.lattice.step(),
            beside: 0,
        })
    }
}

impl Builder {
    /// As `plan`, for cells that keys are hashed to.
    pub(crate) fn plan_of_sketch(&self, shape: &SketchShape) -> Result<Plan> {
        Ok(Plan { beside: shape.hash().bytes() as u64, ..self.plan()? })
    }
}

impl SketchBuilder {
    /// Checks the parameters and says what they amount to.
    ///
    /// # Errors
    /// As [`SketchBuilder::build`].
    pub fn plan(&self) -> Result<Plan> {
        Ok(Plan { shape: Some(self.shape()), ..self.vector()?.plan_of_sketch(&self.shape())? })
    }

    /// The smallest sketch that is nearly as good as any, with the budget, horizon and policies set here.
    ///
    /// Depths 3, 5, 7 and 9 are considered (one row has less noise, but nothing that corrects the few keys that collide
    /// with a heavy one, and those are what a search for the largest finds), with all widths for which `depth * width <= max_cells`. Of the shapes whose
    /// error at `confidence` under the profile is within 10 % of the least, the one with the fewest cells is taken (of
    /// equals the one with the smaller error). As the error falls with the width, some 25 plans are made.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a parameter that is not allowed, and for `max_cells` below 3.
    pub fn suggest(self, profile: &FrequencyProfile, confidence: f64, max_cells: u64) -> Result<Self> {
        if max_cells < DEPTHS[0] as u64 {
            return Err(Error::Parameter { name: "max_cells", given: max_cells.into(), allowed: "at least 3" });
        }
        let of = |depth: usize, bits: u32| self.clone().depth(depth).width(1 << bits);
        let error = |depth, bits| of(depth, bits).plan()?.error(confidence, 1, Some(profile));
        let widest = |depth: usize| Some((depth, (max_cells.min(MAX_WIDTH as u64) / depth as u64).checked_ilog2()?));
        let mut least = f64::INFINITY;
        for (depth, bits) in DEPTHS.into_iter().filter_map(widest) {
            least = least.min(error(depth, bits)?);
        }
        // Cells and error of the best so far.
        let mut best: Option<(usize, f64, Self)> = None;
        for (depth, mut enough) in DEPTHS.into_iter().filter_map(widest) {
            let mut found = error(depth, enough)?;
            if found > NEAR_BEST * least {
                continue;
            }
            let mut low = 0;
            while low < enough {
                let middle = (low + enough) / 2;
                let at_middle = error(depth, middle)?;
                if at_middle <= NEAR_BEST * least { (enough, found) = (middle, at_middle) } else { low = middle + 1 }
            }
            let cells = depth << enough;
            if best.as_ref().is_none_or(|&(fewest, error, _)| (cells, found) < (fewest, error)) {
                best = Some((cells, found, of(depth, enough)));
            }
        }
        Ok(best.map_or(self, |(_, _, builder)| builder))
    }
}

impl RangeBuilder {
    /// What the parameters amount to for the vector of all cells; the error is that of a single cell. That of counts is in
    /// [`RangeBuilder::plan`].
    ///
    /// # Errors
    /// As [`RangeBuilder::build`].
    pub fn vector_plan(&self) -> Result<Plan> {
        let (layout, vector) = self.vector()?;
        Ok(Plan { beside: self.bytes_beside(&layout), ..vector.plan()? })
    }
}

impl Plan {
    /// The noise scale and what it was made from.
    pub fn calibration(&self) -> &Calibration {
        &self.calibration
    }

    /// The standard deviation of the noise of a cell at the last step, where it is largest, in the caller's units.
    pub fn noise_std(&self) -> f64 {
        self.calibration.release_law(self.horizon).std()
    }

    /// The standard deviation of the noise of a cell at a step. A tree's is the same at each, that of a BLT grows.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless the step is from 1 to the horizon.
    pub fn noise_std_at(&self, step: u64) -> Result<f64> {
        Ok(self.law_at(step)?.std())
    }

    /// The law of the noise of a cell at a step.
    pub(crate) fn law_at(&self, step: u64) -> Result<ReleaseLaw> {
        Ok(self.calibration.release_law(planned_step(step, self.horizon)?))
    }

    /// The step of the lattice on which releases lie.
    pub fn lattice_step(&self) -> f64 {
        self.lattice_step
    }

    /// The error that `releases` given releases all stay within with probability `confidence` (or more: the union
    /// bound over releases), in the caller's units, at the last step.
    ///
    /// Of a sketch: of estimates, over noise and hash functions, when the stream is as the profile says; without one, when
    /// no keys collide. The law of collisions is found by inverting a characteristic function, to about 1 %; tails of
    /// a row below 1e-7 (far fewer of a median) are bounded instead.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless `0 < confidence < 1` and `releases >= 1`; [`Error::Shape`] for a profile where there are
    /// no collisions.
    pub fn error(&self, confidence: f64, releases: u64, profile: Option<&FrequencyProfile>) -> Result<f64> {
        self.error_at(self.horizon, confidence, releases, profile)
    }

    /// [`Plan::error`] at a step; the profile is that of the stream until then.
    ///
    /// # Errors
    /// As [`Plan::error`] and [`Plan::noise_std_at`].
    pub fn error_at(
        &self,
        step: u64,
        confidence: f64,
        releases: u64,
        profile: Option<&FrequencyProfile>,
    ) -> Result<f64> {
        let tail = tail_of_each(confidence, releases)?;
        let noise = self.law_at(step)?;
        Ok(match self.colliding(profile)? {
            Some((shape, profile)) => RowLaw::new(noise, shape.width, profile).median_quantile(shape.depth, tail),
            None => noise.quantile(tail_of_one_row(self.depth(), tail)),
        })
    }

    /// The standard deviation of the error of an answer at the last step: of a cell, or of a sketch's estimate when the
    /// stream is as the profile says (without one: when no keys collide).
    ///
    /// # Errors
    /// [`Error::Shape`] for a profile where there are no collisions.
    pub fn std(&self, profile: Option<&FrequencyProfile>) -> Result<f64> {
        self.std_at(self.horizon, profile)
    }

    /// [`Plan::std`] at a step.
    ///
    /// # Errors
    /// As [`Plan::std`] and [`Plan::noise_std_at`].
    pub fn std_at(&self, step: u64, profile: Option<&FrequencyProfile>) -> Result<f64> {
        let noise = self.law_at(step)?;
        Ok(match self.colliding(profile)? {
            Some((shape, profile)) => RowLaw::new(noise, shape.width, profile).median_std(shape.depth),
            None => noise.std() * sqrt(noise.standard_median_variance(self.depth())),
        })
    }

    fn depth(&self) -> usize {
        self.shape.map_or(1, |shape| shape.depth)
    }

    /// The shape and the profile, if keys collide.
    fn colliding<'a>(
        &self,
        profile: Option<&'a FrequencyProfile>,
    ) -> Result<Option<(SketchShape, &'a FrequencyProfile)>> {
        match (self.shape, profile) {
            (None, Some(_)) => Err(Error::Shape {
                what: "a profile says what collides in a CountSketch; leave it out for other structures (the error of a box \
                       takes a second moment)",
            }),
            (Some(shape), Some(profile)) if profile.keys() > 0 => Ok(Some((shape, profile))),
            _ => Ok(None),
        }
    }

    /// The number of cells.
    pub fn cells(&self) -> u64 {
        self.size
    }

    /// Cells that a read touches: of so many cells of a vector, or of estimates of so many keys; `None` for all.
    pub fn cells_read(&self, keys: Option<u64>) -> u64 {
        match (keys, self.shape) {
            (None, _) => self.size,
            (Some(keys), None) => keys.min(self.size),
            (Some(keys), Some(shape)) => shape.cells_read(usize::try_from(keys).unwrap_or(usize::MAX)) as u64,
        }
    }

    /// Random variables that a read of one cell draws at most: normals, or gamma variables of a pure budget.
    pub fn draws_of_cell(&self) -> u64 {
        self.calibration.draws_of_cell()
    }

    /// Random variables that such a read draws at most, however much time has passed: two normals a cell of a tree, one more
    /// than buffers of a BLT, six gamma variables of a Laplace tree.
    pub fn draws_at_most(&self, keys: Option<u64>) -> u64 {
        self.cells_read(keys).saturating_mul(self.calibration.draws_of_cell())
    }

    /// Memory in bytes before anything is read: 8 a cell, the hash functions, and what the noise keeps beside the cells.
    pub fn memory_at_start(&self) -> u64 {
        self.size.saturating_mul(8).saturating_add(self.beside + self.beside_cells())
    }

    /// What the noise keeps beside the cells.
    fn beside_cells(&self) -> u64 {
        let bytes = match self.calibration.kind() {
            Kind::GaussianTree => 0,
            Kind::LaplaceTree => Laplace::bytes_for(self.calibration.levels()),
            Kind::Blt(blt) => BltProcess::bytes_for(blt.buffers(), self.size),
        };
        bytes as u64
    }

    /// A bound on the memory in bytes whatever is read and when, if cells are read all together (a tree path of sums for
    /// each, or the buffers of a BLT) or one by one (that, and the bookkeeping of packed storage). Where both ways are mixed, both
    /// may be kept side by side: at most the sum of the two. Typical use of a tree takes far less: about 5 sums a cell after 15
    /// reads at random times, 9 after 250.
    pub fn memory_at_most(&self, together: bool) -> u64 {
        let (path, head) = self.calibration.words_of_cell();
        let fixed = (FIXED_BYTES * (1 + self.blocks)).saturating_add(self.beside + self.beside_cells());
        let counters = self.size.saturating_mul(8).saturating_add(fixed);
        // A single cell is always read together with all the others.
        if together || self.size == 1 {
            return self.size.saturating_mul(8 * path).saturating_add(counters);
        }
        bytes_at_most(self.size, head, path).saturating_add(counters)
    }
}

#[cfg(test)]
mod tests {
    use chacha20::ChaCha12Rng;
    use rand_core::SeedableRng;

    use super::Plan;
    use crate::error::Error;
    use crate::privacy::Zcdp;
    use crate::profile::FrequencyProfile;
    use crate::sketch::{CountSketch, SketchBuilder};
    use crate::vector::ContinualVector;
    use std::vec::Vec;

    #[test]
    fn the_error_of_many_releases_is_the_union_bound() {
        let plan = ContinualVector::builder(1 << 10, Zcdp::new(0.5).unwrap()).cells(3).plan().unwrap();
        let one = plan.error(0.95, 1, None).unwrap();
        assert!((one / plan.noise_std() - 1.959_963_984_540_054).abs() < 1e-9);
        assert!((plan.error(0.95, 5, None).unwrap() - plan.error(0.99, 1, None).unwrap()).abs() < 1e-9);
        for (confidence, releases) in [(0.0, 1), (1.0, 1), (f64::NAN, 1), (0.9, 0)] {
            assert!(plan.error(confidence, releases, None).is_err());
        }
    }

    /// 20,000 estimates of keys that were never counted, fixed seed; alpha 1e-6 for each shape (4.9 standard deviations of
    /// a binomial share, doubled as keys share cells). Rejects the error of a single cell (covers 99.8 % at depth 5).
    #[test]
    fn the_error_of_a_sketch_is_that_of_the_median_of_its_rows() {
        for depth in [1usize, 3, 5, 9] {
            let builder = CountSketch::builder(1 << 20, Zcdp::new(0.5).unwrap()).width(1 << 15).depth(depth);
            let error = builder.plan().unwrap().error(0.95, 1, None).unwrap();
            let keys: Vec<u64> = (0..20_000).collect();
            let mut rng = ChaCha12Rng::from_seed([3; 32]);
            let estimates = builder.build().unwrap().estimate(&keys, &mut rng).unwrap();
            let covered = estimates.iter().filter(|estimate| estimate.abs() <= error).count() as f64 / 20_000.0;
            assert!((covered - 0.95).abs() < 2.0 * 4.9 * (0.95f64 * 0.05 / 20_000.0).sqrt(), "{depth}: {covered}");
        }
    }

    fn sketch() -> SketchBuilder {
        CountSketch::builder(1 << 10, Zcdp::new(0.5).unwrap())
    }

    #[test]
    fn a_profile_adds_collisions_to_the_noise() {
        let plan: Plan = sketch().width(1024).depth(5).plan().unwrap();
        let none = FrequencyProfile::from_frequencies([]).unwrap();
        assert_eq!(plan.error(0.95, 3, None), plan.error(0.95, 3, Some(&none)));
        assert_eq!(plan.std(None), plan.std(Some(&none)));
        let close = |a: f64, b: f64| (a / b - 1.0).abs() < 1e-12;
        let zipf = FrequencyProfile::zipf(1e6, 100_000, 1.0).unwrap();
        assert!(plan.error(0.95, 1, Some(&zipf)).unwrap() > 1.5 * plan.error(0.95, 1, None).unwrap());
        assert!(plan.std(Some(&zipf)).unwrap() > 1.5 * plan.std(None).unwrap());
        // The tree's noise is the same now and at the end.
        assert_eq!(plan.error_at(1, 0.95, 1, Some(&zipf)), plan.error(0.95, 1, Some(&zipf)));
        for step in [0, 1025] {
            assert!(plan.noise_std_at(step).is_err() && plan.error_at(step, 0.95, 1, None).is_err());
        }
        let vector = ContinualVector::builder(8, Zcdp::new(0.5).unwrap()).cells(3).plan().unwrap();
        assert!(matches!(vector.error(0.95, 1, Some(&zipf)), Err(Error::Shape { .. })));
        assert!(matches!(vector.std(Some(&zipf)), Err(Error::Shape { .. })));
        assert!(close(vector.std(None).unwrap(), vector.noise_std()));
    }

    #[test]
    fn a_read_touches_the_cells_that_it_says() {
        let vector = ContinualVector::builder(8, Zcdp::new(0.5).unwrap()).cells(100).plan().unwrap();
        assert_eq!([None, Some(0), Some(7), Some(u64::MAX)].map(|n| vector.cells_read(n)), [100, 0, 7, 100]);
        assert_eq!((vector.cells(), vector.draws_at_most(Some(7))), (100, 14));
        let plan = sketch().width(1024).depth(5).plan().unwrap();
        // From a quarter of the cells on, all of them.
        let reads = [None, Some(1), Some(255), Some(256), Some(u64::MAX)].map(|n| plan.cells_read(n));
        assert_eq!(reads, [5120, 5, 1275, 5120, 5120]);
    }

    #[test]
    fn the_suggested_shape_is_the_smallest_that_is_nearly_best() {
        for (total, exponent, max_cells) in
            [(1e5, 1.0, 1 << 14), (1e5, 1.5, 1 << 16), (1e6, 0.8, 1 << 8), (10.0, 1.0, 3)]
        {
            let profile = FrequencyProfile::zipf(total, 1000, exponent).unwrap();
            let error = |builder: &SketchBuilder| builder.plan().unwrap().error(0.95, 1, Some(&profile)).unwrap();
            let found = sketch().max_weight(2).suggest(&profile, 0.95, max_cells).unwrap();
            // All shapes, one by one.
            let all: Vec<_> = [3usize, 5, 7, 9]
                .into_iter()
                .flat_map(|depth| (0..=24).map(move |bits| (depth, 1usize << bits)))
                .filter(|(depth, width)| (depth * width) as u64 <= max_cells)
                .map(|(depth, width)| (depth * width, error(&sketch().max_weight(2).depth(depth).width(width))))
                .collect();
            let least = all.iter().fold(f64::INFINITY, |least, &(_, error)| least.min(error));
            let fewest = all.iter().filter(|(_, error)| *error <= 1.1 * least).map(|&(cells, _)| cells).min().unwrap();
            let shape = found.shape();
            assert_eq!((shape.width * shape.depth, shape.max_weight), (fewest, 2), "{total} {exponent}: {shape:?}");
            assert!(error(&found) <= 1.1 * least);
        }
        let profile = FrequencyProfile::zipf(1e6, 1000, 1.0).unwrap();
        assert!(sketch().suggest(&profile, 0.95, 2).is_err() && sketch().suggest(&profile, 1.0, 100).is_err());
    }
}
