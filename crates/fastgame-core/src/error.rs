//! What can go wrong, in one enum. A message says what was given, what is allowed and what to do;
//! it never shows a counter or noise.

use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

/// A number that the caller gave, as it is shown in a message.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Given {
    /// An unsigned integer.
    Unsigned(u64),
    /// A signed integer.
    Signed(i64),
    /// A float.
    Float(f64),
}

impl From<u64> for Given {
    fn from(value: u64) -> Self {
        Self::Unsigned(value)
    }
}

impl From<u32> for Given {
    fn from(value: u32) -> Self {
        Self::Unsigned(value.into())
    }
}

impl From<usize> for Given {
    fn from(value: usize) -> Self {
        Self::Unsigned(value as u64)
    }
}

impl From<i64> for Given {
    fn from(value: i64) -> Self {
        Self::Signed(value)
    }
}

impl From<f64> for Given {
    fn from(value: f64) -> Self {
        Self::Float(value)
    }
}

impl fmt::Display for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsigned(value) => value.fmt(f),
            Self::Signed(value) => value.fmt(f),
            // `Debug` switches to scientific notation for very large and very small values.
            Self::Float(value) => write!(f, "{value:?}"),
        }
    }
}

/// Every error of the crate. A call that returns one has changed nothing and released nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// A parameter is outside of what is allowed.
    Parameter {
        /// The parameter's name.
        name: &'static str,
        /// What was given.
        given: Given,
        /// What is allowed, as a sentence's end: "`name` must be ...".
        allowed: &'static str,
    },
    /// A number of buffers that a horizon has no parameters for.
    Buffers {
        /// The number given.
        given: u32,
        /// The largest that this horizon has; 0 if it has none.
        most: u32,
        /// The horizon.
        horizon: u64,
    },
    /// The clock was asked to go to a step that it cannot reach.
    Time {
        /// The step asked for; `None` when it is past what 64 bits hold.
        to: Option<u64>,
        /// The present step.
        now: u64,
        /// The last step.
        horizon: u64,
    },
    /// An update at a step that has been read.
    Sealed {
        /// The present step.
        now: u64,
        /// The last step.
        horizon: u64,
    },
    /// An index outside of the vector.
    Index {
        /// Which element of the call.
        position: usize,
        /// The index given.
        given: Given,
        /// The number of cells.
        size: u64,
    },
    /// A point outside of the grid.
    Point {
        /// Which point of the call.
        position: usize,
        /// Which axis, from 0.
        axis: usize,
        /// The coordinate given.
        given: Given,
        /// The size of the axis.
        size: u64,
    },
    /// A box that is none, or not inside of the grid.
    Box {
        /// Which box of the call.
        position: usize,
        /// Which axis, from 0.
        axis: usize,
        /// The first coordinate given.
        lo: u64,
        /// The coordinate after the last, as given.
        hi: u64,
        /// The size of the axis.
        size: u64,
    },
    /// A value that is NaN or infinite.
    NotFinite {
        /// Which element of the call.
        position: usize,
    },
    /// An update larger than the bound that the noise was calibrated for.
    Excess {
        /// Which element of the call.
        position: usize,
        /// The bound, in the caller's units.
        bound: f64,
        /// What is bounded: "weight", "L2 norm", or "L1 norm" under a pure budget.
        what: &'static str,
    },
    /// Parameters that are allowed each on its own, but not together.
    Unsupported {
        /// What does not go together, and what to do.
        what: &'static str,
    },
    /// Arrays that do not fit together.
    Shape {
        /// What they must be like.
        what: &'static str,
    },
    /// Two structures that do not fit together.
    Incompatible {
        /// The first parameter in which they differ.
        field: &'static str,
        /// Its value here.
        ours: Given,
        /// Its value there.
        theirs: Given,
    },
    /// A counter would leave the 64-bit range.
    Overflow {
        /// Which element of the call.
        position: usize,
    },
    /// A record of a journal does not fit the structure that it is to be replayed on.
    Journal {
        /// What should stand there.
        what: &'static str,
    },
    /// The generator failed; nothing was released.
    Entropy,
    /// A read does not fit in memory; nothing was released.
    Memory,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Parameter { name, given, allowed } => {
                write!(f, "{name} must be {allowed}; {given} was given")
            }
            Self::Buffers { given, most, horizon } => {
                match most {
                    0 => write!(f, "buffers must be left out, as there are none at horizon {horizon}")?,
                    1 => write!(f, "buffers must be 1 at horizon {horizon}, or left out")?,
                    _ => write!(f, "buffers must be from 1 to {most} at horizon {horizon}, or left out")?,
                }
                write!(f, "; {given} was given")
            }
            Self::Time { to, now, horizon } => {
                match to {
                    Some(to) => write!(f, "cannot advance to step {to}: ")?,
                    None => write!(f, "cannot advance that far: ")?,
                }
                if now == horizon {
                    write!(
                        f,
                        "now is {now}, the last step of the horizon; to go on, make a new structure with a budget \
                         of its own (a longer horizon costs little: choose it long)"
                    )
                } else {
                    write!(
                        f,
                        "now is {now} and the horizon is {horizon}; time only moves forward, to a step from {now} to {horizon}"
                    )
                }
            }
            Self::Sealed { now, horizon } => {
                write!(f, "step {now} has been read and is sealed; ")?;
                if now == horizon {
                    write!(f, "it is the last step of the horizon, so no further update is possible")
                } else {
                    write!(f, "advance the clock before the next update")
                }
            }
            Self::Index { position, given, size } => write!(
                f,
                "index {given} at position {position} is outside of the vector; allowed are 0 to {}",
                size - 1
            ),
            Self::Point { position, axis, given, size } => write!(
                f,
                "the point at position {position} has the coordinate {given} on axis {axis}, outside of the grid; allowed are 0 \
                 to {} (invalid=\"drop\" leaves such points out)",
                size - 1
            ),
            Self::Box { position, axis, lo, hi, size } => write!(
                f,
                "the box at position {position} goes from {lo} to {hi} on axis {axis}; it must have lo <= hi <= {size} there, hi \
                 not included"
            ),
            Self::NotFinite { position } => write!(
                f,
                "the value at position {position} is NaN or infinite; only finite numbers can be added \
                 (invalid=\"drop\" leaves such elements out)"
            ),
            Self::Excess { position, bound, what } => write!(
                f,
                "the update at position {position} is over the bound: its {what} may be at most {bound}; \
                 raise the bound (more noise), or use on_excess=\"clip\" or invalid=\"drop\""
            ),
            Self::Incompatible { field, ours, theirs } => write!(
                f,
                "sketches can be merged only if they have the same {field}; it is {ours} here and {theirs} there (start \
                 from raw() of the sketch to merge into)"
            ),
            Self::Shape { what } | Self::Unsupported { what } => f.write_str(what),
            Self::Overflow { position } => write!(
                f,
                "the update at position {position} would take a counter out of the 64-bit range; use a coarser unit"
            ),
            Self::Memory => f.write_str(
                "there is not enough memory for this read; nothing was released and nothing has changed (read fewer cells at \
                 a time)",
            ),
            Self::Journal { what } => write!(
                f,
                "the journal does not fit this structure: it should have {what} there; replay it on a structure with the \
                 parameters of the one that wrote it"
            ),
            Self::Entropy => write!(f, "the random generator failed; nothing was released and nothing has changed"),
        }
    }
}

impl core::error::Error for Error {}

/// The crate's result.
pub type Result<T> = core::result::Result<T, Error>;

/// Room for `n` elements, or an error.
pub(crate) fn reserved<T>(n: usize) -> Result<Vec<T>> {
    let mut room = Vec::new();
    room.try_reserve_exact(n).map_err(|_| Error::Memory)?;
    Ok(room)
}

/// Zeros, if memory holds them. Asked for first, so that a size beyond it does not abort; then zeroed lazily.
pub(crate) fn zeroed(n: usize) -> Option<Vec<i64>> {
    drop(reserved::<i64>(n).ok()?);
    Some(vec![0; n])
}
