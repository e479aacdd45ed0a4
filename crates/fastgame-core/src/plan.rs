//! What a structure will cost and how far off it will be, before any data. For every structure.

use crate::calibration::Calibration;
use crate::error::{Error, Result};
use crate::mechanism::store::PackedStore;
use crate::quantile::{tail_of_one_row, two_sided_quantile};
use crate::range::RangeBuilder;
use crate::sketch::SketchBuilder;
use crate::vector::Builder;

/// What the parameters of a vector amount to. Everything here is public: it is computed without data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    calibration: Calibration,
    size: u64,
    blocks: u64,
    /// An answer is the median of this many cells.
    rows: usize,
    lattice_step: f64,
}

/// More than the structure itself takes, and the tables of a block's levels.
const FIXED_BYTES: u64 = 2048;

impl Builder {
    /// Checks the parameters and says what they amount to, without building anything.
    ///
    /// # Errors
    /// As [`Builder::build`].
    pub fn plan(&self) -> Result<Plan> {
        let checked = self.check()?;
        Ok(Plan {
            calibration: checked.calibration,
            size: checked.size,
            blocks: self.blocks.len() as u64,
            rows: 1,
            lattice_step: checked.lattice.step(),
        })
    }
}

impl SketchBuilder {
    /// Checks the parameters and says what they amount to. The error is that of an estimate where no keys collide: the
    /// median of `depth` cells.
    ///
    /// # Errors
    /// As [`SketchBuilder::build`].
    pub fn plan(&self) -> Result<Plan> {
        Ok(Plan { rows: self.shape().depth, ..self.vector()?.plan()? })
    }
}

impl RangeBuilder {
    /// What the parameters amount to for the vector of all cells; the error is that of a single cell. That of counts is in
    /// [`RangeBuilder::plan`].
    ///
    /// # Errors
    /// As [`RangeBuilder::build`].
    pub fn vector_plan(&self) -> Result<Plan> {
        self.vector()?.1.plan()
    }
}

impl Plan {
    /// The noise scale and what it was made from.
    pub fn calibration(&self) -> &Calibration {
        &self.calibration
    }

    /// The standard deviation of the noise of a cell, the same at every step, in the caller's units.
    pub fn noise_std(&self) -> f64 {
        self.calibration.release_std()
    }

    /// The step of the lattice on which releases lie.
    pub fn lattice_step(&self) -> f64 {
        self.lattice_step
    }

    /// The error that `releases` given releases all stay within with probability `confidence` (or more: the union
    /// bound over releases), in the caller's units.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless `0 < confidence < 1` and `releases >= 1`.
    pub fn error(&self, confidence: f64, releases: u64) -> Result<f64> {
        if !(confidence > 0.0 && confidence < 1.0) {
            let allowed = "more than 0 and less than 1";
            return Err(Error::Parameter { name: "confidence", given: confidence.into(), allowed });
        }
        if releases == 0 {
            return Err(Error::Parameter { name: "releases", given: 0u64.into(), allowed: "at least 1" });
        }
        let tail = tail_of_one_row(self.rows, (1.0 - confidence) / releases as f64);
        Ok(self.noise_std() * two_sided_quantile(tail))
    }

    /// Memory in bytes before anything is read: 8 a cell.
    pub fn memory_at_start(&self) -> u64 {
        self.size.saturating_mul(8)
    }

    /// A bound on the memory in bytes whatever is read and when, if cells are read all together (a tree path of sums for
    /// each) or one by one (that, and the bookkeeping of packed storage). Typical use takes far less: about 5 sums a
    /// cell after 15 reads at random times, 9 after 250.
    pub fn memory_at_most(&self, together: bool) -> u64 {
        let path = u64::from(self.calibration.levels() + 1);
        let fixed = FIXED_BYTES * (1 + self.blocks);
        let counters_and_paths = self.size.saturating_mul(8 * (1 + path)).saturating_add(fixed);
        // A single cell is always read together with all the others.
        if together || self.size == 1 {
            return counters_and_paths;
        }
        // Step and level set; at most seven unused words, two of the group and its entry, for eight cells of which only
        // one may have been read.
        let bookkeeping = self.size.saturating_mul(8 * (2 + 10));
        counters_and_paths.saturating_add(bookkeeping).saturating_add(PackedStore::<f64>::shared_bytes(2 + path))
    }
}

#[cfg(test)]
mod tests {
    use chacha20::ChaCha12Rng;
    use rand_core::SeedableRng;

    use crate::privacy::Zcdp;
    use crate::sketch::CountSketch;
    use crate::vector::ContinualVector;
    use std::vec::Vec;

    #[test]
    fn the_error_of_many_releases_is_the_union_bound() {
        let plan = ContinualVector::builder(1 << 10, Zcdp::new(0.5).unwrap()).cells(3).plan().unwrap();
        let one = plan.error(0.95, 1).unwrap();
        assert!((one / plan.noise_std() - 1.959_963_984_540_054).abs() < 1e-9);
        assert!((plan.error(0.95, 5).unwrap() - plan.error(0.99, 1).unwrap()).abs() < 1e-9);
        for (confidence, releases) in [(0.0, 1), (1.0, 1), (f64::NAN, 1), (0.9, 0)] {
            assert!(plan.error(confidence, releases).is_err());
        }
    }

    /// 20,000 estimates of keys that were never counted, fixed seed; alpha 1e-6 for each shape (4.9 standard deviations of
    /// a binomial share, doubled as keys share cells). Rejects the error of a single cell (covers 99.8 % at depth 5).
    #[test]
    fn the_error_of_a_sketch_is_that_of_the_median_of_its_rows() {
        for depth in [1usize, 3, 5, 9] {
            let builder = CountSketch::builder(1 << 20, Zcdp::new(0.5).unwrap()).width(1 << 15).depth(depth);
            let error = builder.plan().unwrap().error(0.95, 1).unwrap();
            let keys: Vec<u64> = (0..20_000).collect();
            let mut rng = ChaCha12Rng::from_seed([3; 32]);
            let estimates = builder.build().unwrap().estimate(&keys, &mut rng).unwrap();
            let covered = estimates.iter().filter(|estimate| estimate.abs() <= error).count() as f64 / 20_000.0;
            assert!((covered - 0.95).abs() < 2.0 * 4.9 * (0.95f64 * 0.05 / 20_000.0).sqrt(), "{depth}: {covered}");
        }
    }
}
