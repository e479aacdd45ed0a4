//! Structures of `fastgame-core` that survive crashes.
//!
//! A mechanism that goes on after a restart must have the noise that it had: fresh noise for a step already answered can be
//! averaged with the old one, and old noise with other data gives the data away. So a [`Store`] keeps, in one file, the state
//! of a structure and behind it a journal of every call: what was added, which step was sealed, and all noise that was drawn.
//! What a call has done is on the disk before its answer leaves. When the file is opened again the journal is replayed, with
//! the recorded noise; new noise comes from the caller's generator, which must be seeded anew.
//!
//! Every byte is under a checksum. What was on the disk and has changed is refused ([`Error::Damaged`]); the end of a call
//! that was being written when the machine stopped is cut off, as nobody has had an answer from it. How that is told:
//! `format.rs`. What no file can tell: whether it is an older copy of itself. A number kept elsewhere can
//! ([`Options::expect_generation`]).
//!
//! The file holds exact counters and noise: whoever reads it reads the data. It is made readable by its owner alone.
//!
//! Inside the crate a file uses only files to its right: `store -> scan, file -> forks, format -> error`.

mod error;
mod file;
mod forks;
mod format;
mod scan;
mod store;

pub use crate::error::{Error, Result};
#[cfg(unix)]
pub use crate::forks::release_after_fork;
pub use crate::format::{Parameters, VERSION};
pub use crate::scan::{Overview, inspect};
pub use crate::store::{Options, State, Store, Sync};
