//! What can go wrong with a store, in one enum. A message says what is wrong and what to do; it never shows a counter or noise.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Every error of the crate.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The system refused something.
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// What the system said.
        error: io::Error,
    },
    /// Another object, here or in another process, holds the store.
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// The file is no store.
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// The file is of a version that this library does not know.
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: u32,
    },
    /// What was on the disk has changed.
    Damaged {
        /// The file.
        path: PathBuf,
        /// How many bytes before the damage are as they were written.
        place: u64,
        /// What should stand there.
        what: &'static str,
    },
    /// The store is older than it should be.
    Older {
        /// The file.
        path: PathBuf,
        /// Its generation.
        generation: u64,
        /// The generation that was expected, at least.
        expected: u64,
    },
    /// A parameter differs from the stored one.
    Differs {
        /// The file.
        path: PathBuf,
        /// The parameter's name.
        field: String,
        /// The stored value.
        stored: String,
        /// The value that was given.
        given: String,
    },
    /// The noise of the stored state was calibrated by another rule.
    Calibration {
        /// The file.
        path: PathBuf,
    },
    /// The file is no longer where it was opened.
    Moved {
        /// Where it was.
        path: PathBuf,
    },
    /// The file has more than one name (hard links): a checkpoint would make the other ones a second live copy.
    Linked {
        /// The file.
        path: PathBuf,
        /// How many it has.
        names: u64,
    },
    /// Calls are held: they are written by a commit.
    Held {
        /// The file.
        path: PathBuf,
    },
    /// A write failed before, and the object is not used again.
    Failed {
        /// The file.
        path: PathBuf,
        /// What happened then.
        reason: String,
    },
    /// The store was closed.
    Closed {
        /// The file.
        path: PathBuf,
    },
    /// The structure refused what it was asked.
    Structure(fastgame_core::Error),
}

impl Error {
    pub(crate) fn io<'a>(path: &'a Path, action: &'static str) -> impl FnOnce(io::Error) -> Self + 'a {
        move |error| Self::Io { path: path.to_owned(), action, error }
    }
}

impl From<fastgame_core::Error> for Error {
    fn from(error: fastgame_core::Error) -> Self {
        Self::Structure(error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { path, action, error } => write!(f, "cannot {action} {}: {error}", path.display()),
            Self::InUse { path } => write!(
                f,
                "{} is in use by another object or process; a store has one user at a time: close it there first",
                path.display()
            ),
            Self::Foreign { path } => {
                write!(
                    f,
                    "{} is not a store of fastgame, or one of which nothing is left; name another file (nothing was changed)",
                    path.display()
                )
            }
            Self::Version { path, version } => write!(
                f,
                "{} is a store of version {version}, and this library knows version {}; use a newer one",
                path.display(),
                crate::VERSION
            ),
            Self::Damaged { path, place, what } => write!(
                f,
                "{} is damaged behind byte {place}: {what} should stand there. What it held cannot be continued: restore the \
                 file as it was last written (an older copy would give second answers about the same data), or make a new \
                 structure with a budget of its own",
                path.display()
            ),
            Self::Older { path, generation, expected } => write!(
                f,
                "{} is at generation {generation}, and {expected} was expected at least: it is an older copy, which would give \
                 second answers about the same data. Find the latest one, or make a new structure with a budget of its own",
                path.display()
            ),
            Self::Differs { path, field, stored, given } => write!(
                f,
                "{} was made with {field} = {stored}, and {given} was given; give what it was made with (or leave it out), \
                 or make a new structure in another file, with a budget of its own",
                path.display()
            ),
            Self::Calibration { path } => write!(
                f,
                "the noise of {} was calibrated by another version of this library, whose rule differs; continue with that \
                 version",
                path.display()
            ),
            Self::Moved { path } => write!(
                f,
                "{} is no longer the file that was opened: it was moved, removed or replaced, and what is written now would \
                 not be found again. Put it back, and open it anew",
                path.display()
            ),
            Self::Linked { path, names } => write!(
                f,
                "{} has {names} names (hard links), and a checkpoint would leave the other ones with a copy that answers the \
                 same anew. Remove the other names (find -samefile shows them), then do this again; nothing was changed",
                path.display()
            ),
            Self::Held { path } => write!(
                f,
                "what is done to {} is being held, and written as one when that is over; until then it can be neither synced \
                 nor written anew",
                path.display()
            ),
            Self::Failed { path, reason } => write!(
                f,
                "an earlier call on {} failed ({reason}), so this object is not used again; mend what failed, and open the \
                 store anew: it goes on where the last acknowledged call left it",
                path.display()
            ),
            Self::Closed { path } => write!(f, "{} was closed; open it anew", path.display()),
            Self::Structure(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { error, .. } => Some(error),
            Self::Structure(error) => Some(error),
            _ => None,
        }
    }
}

/// The crate's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;
