//! One number under continual observation: the vector of size one.

use rand_core::TryCryptoRng;

use crate::error::Result;
use crate::lattice::Quantity;
use crate::vector::{Builder, ContinualVector, Rows};

/// A counter that follows updates and can be released at any time step.
///
/// ```
/// use chacha20::{ChaCha12Rng, rand_core::SeedableRng};
/// use fastgame_core::{ContinualCounter, ContinualVector, Zcdp};
///
/// # fn main() -> Result<(), fastgame_core::Error> {
/// // For this example only: seed from the operating system instead (`getrandom::SysRng`).
/// let mut rng = ChaCha12Rng::from_seed([1; 32]);
/// let mut counter = ContinualCounter::new(ContinualVector::builder(8_760, Zcdp::new(0.5)?))?;
/// counter.update(&[1i64, 1, -1])?; // three updates
/// counter.vector_mut().advance(24)?;
/// let after_a_day = counter.release(&mut rng)?;
/// # assert!(after_a_day.is_finite());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ContinualCounter(ContinualVector);

impl ContinualCounter {
    /// A counter with these parameters; their number of cells is not used.
    ///
    /// # Errors
    /// As [`Builder::build`].
    pub fn new(parameters: Builder) -> Result<Self> {
        parameters.cells(1).build().map(Self)
    }

    /// The vector of one cell that this is: clock, calibration and parameters.
    pub fn vector(&self) -> &ContinualVector {
        &self.0
    }

    /// As [`ContinualCounter::vector`], to move the clock.
    pub fn vector_mut(&mut self) -> &mut ContinualVector {
        &mut self.0
    }

    /// Adds weights, each an update of its own, at the present step; all or nothing. Returns how many were dropped,
    /// for the operator alone.
    ///
    /// # Errors
    /// As [`ContinualVector::update_rows`].
    pub fn update<V: Quantity>(&mut self, weights: &[V]) -> Result<u64> {
        let rows: Rows<'_, u64, V> = Rows::Dense { values: weights };
        self.0.update_rows(rows)
    }

    /// Releases the count at the present step and seals it.
    ///
    /// # Errors
    /// [`Error::Entropy`](crate::Error::Entropy) if the generator fails; nothing has been released then.
    pub fn release<R: TryCryptoRng + ?Sized>(&mut self, rng: &mut R) -> Result<f64> {
        // One cell was asked for, so one value comes.
        self.0.release_one(0u64, rng)
    }
}
