//! Files that a forked child must not keep open.
//!
//! A lock belongs to the open file, which a child of a fork shares. Its parent may end, and the child live on: then nobody could
//! open the store. Nothing in a child uses the files, so a child lets them go ([`release_after_fork`]).

use std::fs::File;
use std::ops::{Deref, DerefMut};
#[cfg(unix)]
use std::sync::atomic::{AtomicI32, Ordering};

/// Files beyond so many are held as well, and kept open by a child.
#[cfg(unix)]
const MOST: usize = 4096;

#[cfg(unix)]
const NONE: i32 = -1;

/// Without a lock, which a fork could copy while another thread has it.
#[cfg(unix)]
static OPEN: [AtomicI32; MOST] = [const { AtomicI32::new(NONE) }; MOST];

/// A file that is locked.
#[derive(Debug)]
pub(crate) struct LockedFile {
    file: File,
    #[cfg(unix)]
    slot: Option<usize>,
}

impl LockedFile {
    #[cfg(unix)]
    pub(crate) fn new(file: File) -> Self {
        use std::os::fd::AsRawFd;
        let number = file.as_raw_fd();
        let take = |slot: &AtomicI32| slot.compare_exchange(NONE, number, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        let slot = OPEN.iter().position(take);
        Self { file, slot }
    }

    #[cfg(not(unix))]
    pub(crate) fn new(file: File) -> Self {
        Self { file }
    }
}

#[cfg(unix)]
impl Drop for LockedFile {
    fn drop(&mut self) {
        use std::os::fd::AsRawFd;
        if let Some(slot) = self.slot {
            // In a child the slot may be another file's by now.
            let _ = OPEN[slot].compare_exchange(self.file.as_raw_fd(), NONE, Ordering::Relaxed, Ordering::Relaxed);
        }
    }
}

impl Deref for LockedFile {
    type Target = File;

    fn deref(&self) -> &File {
        &self.file
    }
}

impl DerefMut for LockedFile {
    fn deref_mut(&mut self) -> &mut File {
        &mut self.file
    }
}

/// In a child of a fork, as its first act: names every file that the parent holds, once, for `replace` to put another in the
/// place of (as `dup2` does, with the null device). Stores that were copied by the fork are not used after that.
#[cfg(unix)]
pub fn release_after_fork(replace: impl FnMut(std::os::fd::RawFd)) {
    OPEN.iter().map(|slot| slot.swap(NONE, Ordering::Relaxed)).filter(|&number| number != NONE).for_each(replace);
}
