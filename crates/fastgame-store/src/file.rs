//! The file of a store: locks, appends, syncs, and its replacement by a new one.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::forks::LockedFile;
use crate::format::{
    Checksum, Header, Identity, Kind, MARK, Parameters, draft_name, first_link, frame_checksum, mark, padding, preamble,
};
use crate::scan::{Part, Scan, scan};

/// Larger bodies are written without being copied.
const COPIED: usize = 1 << 16;

/// A file that is open, locked and written at its end.
#[derive(Debug)]
pub(crate) struct Log {
    path: PathBuf,
    file: LockedFile,
    identity: Identity,
    /// The checksum of the last frame.
    link: Checksum,
    /// Where the next byte goes.
    end: u64,
    /// Behind the last mark.
    marked: u64,
    /// Where the journal begins.
    image: u64,
    generation: u64,
    /// What is to fail next.
    #[cfg(test)]
    pub(crate) fault: Option<Fault>,
}

/// What tests let fail.
#[cfg(test)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Fault {
    /// The sync, with everything written.
    Sync,
    /// A write, after so many bytes.
    Write(usize),
    /// The sync of the folder after a new file took the place of the old one.
    Folder,
}

/// Where a path leads, symbolic links followed, whether or not there is a file.
pub(crate) fn resolve(path: &Path) -> Result<PathBuf> {
    let io = |error| Error::io(path, "find")(error);
    let mut found = path.to_owned();
    for _ in 0..40 {
        match fs::symlink_metadata(&found) {
            Ok(metadata) if metadata.is_symlink() => {
                let target = fs::read_link(&found).map_err(io)?;
                found = found.parent().unwrap_or(Path::new("")).join(target);
            }
            Ok(_) => break,
            Err(error) if error.kind() == io::ErrorKind::NotFound => break,
            Err(error) => return Err(io(error)),
        }
    }
    let name = found.file_name().ok_or_else(|| io(io::Error::from(io::ErrorKind::IsADirectory)))?;
    let parent = found.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Ok(parent.canonicalize().map_err(io)?.join(name))
}

/// Refuses what is no file: to open a pipe would wait, a device would never end.
pub(crate) fn check_regular(path: &Path) -> Result<()> {
    let metadata = fs::metadata(path).map_err(Error::io(path, "open"))?;
    if metadata.is_file() { Ok(()) } else { Err(Error::Foreign { path: path.to_owned() }) }
}

#[cfg(unix)]
fn is_same_file(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let (ours, theirs) = (file.metadata()?, fs::metadata(path)?);
    Ok((ours.dev(), ours.ino()) == (theirs.dev(), theirs.ino()))
}

#[cfg(not(unix))]
fn is_same_file(_: &File, _: &Path) -> io::Result<bool> {
    // A file that is open cannot be replaced there.
    Ok(true)
}

/// How many names (hard links) a file has.
#[cfg(unix)]
fn names_of(file: &File) -> io::Result<u64> {
    use std::os::unix::fs::MetadataExt;
    Ok(file.metadata()?.nlink())
}

#[cfg(not(unix))]
fn names_of(_: &File) -> io::Result<u64> {
    // The standard library does not tell.
    Ok(1)
}

/// The folder of a file: the file's place in it is on the disk only when the folder is.
struct Folder(#[cfg(unix)] File);

impl Folder {
    /// Opened before anything is changed: where it cannot be, nothing is.
    fn of(path: &Path) -> Result<Self> {
        #[cfg(unix)]
        let folder = File::open(path.parent().unwrap_or(Path::new("."))).map(Self);
        #[cfg(not(unix))]
        let folder = Ok(Self());
        folder.map_err(Error::io(path, "open the folder of"))
    }

    fn sync(&self, path: &Path) -> Result<()> {
        #[cfg(unix)]
        self.0.sync_all().map_err(Error::io(path, "sync the folder of"))?;
        let _ = path;
        Ok(())
    }
}

/// Gives a new file the owner and the permissions of the one that it is to replace.
#[cfg(unix)]
fn keep_access(old: &File, new: &File) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, fchown};
    let (was, is) = (old.metadata()?, new.metadata()?);
    let changed = |was: u32, is: u32| (was != is).then_some(was);
    let (owner, group) = (changed(was.uid(), is.uid()), changed(was.gid(), is.gid()));
    if owner.is_some() || group.is_some() {
        fchown(new, owner, group)?;
    }
    // Last, as a change of owner may take bits away.
    new.set_permissions(was.permissions())?;
    keep_list(old, new)
}

/// An access list: without it the bits of the group, which are its mask, would let the group in.
#[cfg(target_os = "linux")]
fn keep_list(old: &File, new: &File) -> io::Result<()> {
    use xattr::FileExt;
    const LIST: &str = "system.posix_acl_access";
    match old.get_xattr(LIST) {
        Ok(Some(list)) => new.set_xattr(LIST, &list),
        // A file system that has no lists.
        Ok(None) | Err(_) => Ok(()),
    }
}

#[cfg(all(unix, not(target_os = "linux")))]
fn keep_list(_: &File, _: &File) -> io::Result<()> {
    Ok(())
}

#[cfg(not(unix))]
fn keep_access(old: &File, new: &File) -> io::Result<()> {
    new.set_permissions(old.metadata()?.permissions())
}

/// A file that is not there under its final name yet; it is removed unless it gets there.
struct Draft {
    path: PathBuf,
    is_done: bool,
}

impl Draft {
    /// The beginning of the names of all drafts for a file. As bytes: two names may look alike.
    fn prefix(target: &Path) -> OsString {
        let mut prefix = OsString::from(".");
        prefix.push(target.file_name().unwrap_or_default());
        prefix.push(".");
        prefix
    }

    const SUFFIX: &str = ".draft";

    fn create(target: &Path, name: u64) -> Result<(Self, LockedFile)> {
        let mut file_name = Self::prefix(target);
        file_name.push(format!("{name:016x}{}", Self::SUFFIX));
        let path = target.with_file_name(file_name);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(&path).map_err(Error::io(&path, "create"))?;
        Ok((Self { path, is_done: false }, LockedFile::new(file)))
    }

    /// Removes what a process that was stopped has left. To be called by who holds the file itself.
    fn remove_old(target: &Path) {
        Self::remove_old_if(target, |_| true);
    }

    fn remove_old_if(target: &Path, is_meant: impl Fn(&Path) -> bool) {
        let prefix = Self::prefix(target);
        let names = target.parent().and_then(|folder| fs::read_dir(folder).ok()).into_iter().flatten().flatten();
        for entry in names {
            let name = entry.file_name();
            let rest = name.as_encoded_bytes().strip_prefix(prefix.as_encoded_bytes());
            let number = rest.and_then(|rest| rest.strip_suffix(Self::SUFFIX.as_bytes()));
            let is_draft = number.is_some_and(|number| number.len() == 16 && number.iter().all(u8::is_ascii_hexdigit));
            if is_draft && is_meant(&entry.path()) {
                // A left-over is no reason to fail.
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.is_done {
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl Log {
    /// Makes the file, which must not be there, with what `write` appends to it.
    pub(crate) fn create(
        path: &Path,
        identity: Identity,
        parameters: &Parameters,
        write: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<Self> {
        let name = draft_name(&identity, 0);
        let folder = Folder::of(path)?;
        let (mut draft, log) = Self::draft(path, identity, 0, name, None, parameters, write)?;
        // Unlike a renaming, this fails if another process was faster.
        match fs::hard_link(&draft.path, path) {
            Ok(()) => fs::remove_file(&draft.path).map_err(Error::io(&draft.path, "remove"))?,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(Error::io(path, "create")(error)),
            // Not every file system has links: the name is taken first, then the file.
            Err(_) => {
                OpenOptions::new().write(true).create_new(true).open(path).map_err(Error::io(path, "create"))?;
                if let Err(error) = fs::rename(&draft.path, path) {
                    // An empty file under that name would be taken for a store of which nothing is left.
                    let _ = fs::remove_file(path);
                    return Err(Error::io(path, "create")(error));
                }
            }
        }
        draft.is_done = true;
        folder.sync(path)?;
        // Of a store that is no longer there.
        Draft::remove_old(path);
        Ok(Self { path: path.to_owned(), ..log })
    }

    /// A whole file under another name, locked and synced.
    fn draft(
        path: &Path,
        identity: Identity,
        generation: u64,
        name: u64,
        old: Option<&File>,
        parameters: &Parameters,
        write: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<(Draft, Self)> {
        let (draft, file) = Draft::create(path, name)?;
        if let Some(old) = old {
            keep_access(old, &file).map_err(Error::io(&draft.path, "keep the owner and the permissions in"))?;
        }
        lock(&file, path)?;
        let mut log = Self {
            path: draft.path.clone(),
            file,
            identity,
            link: first_link(&identity),
            end: 0,
            marked: 0,
            image: 0,
            generation,
            #[cfg(test)]
            fault: None,
        };
        log.write(&preamble(&identity))?;
        log.append(Kind::Parameters, &[&parameters.to_bytes()], 1, false)?;
        write(&mut log)?;
        // Nobody sees the file before it is synced, so its mark need not wait.
        log.mark()?;
        log.image = log.end;
        log.file.sync_all().map_err(Error::io(&draft.path, "sync"))?;
        Ok((draft, log))
    }

    /// Opens, locks and reads the file. Nothing is written before `mend`, which must come first.
    pub(crate) fn open<E: From<Error>>(
        path: &Path,
        each: impl FnMut(Part<'_>) -> Result<(), E>,
    ) -> Result<(Self, Scan), E> {
        check_regular(path)?;
        let file = loop {
            let file = OpenOptions::new().read(true).write(true).open(path).map_err(Error::io(path, "open"))?;
            let file = LockedFile::new(file);
            lock(&file, path)?;
            // Another process may have put a new file in its place before this one was locked.
            if is_same_file(&file, path).map_err(Error::io(path, "open"))? {
                break file;
            }
        };
        let scan = scan(path, &file, each)?;
        let log = Self {
            path: path.to_owned(),
            file,
            identity: scan.identity,
            link: scan.link,
            end: scan.end,
            marked: scan.marked,
            image: scan.image,
            generation: scan.generation,
            #[cfg(test)]
            fault: None,
        };
        Ok((log, scan))
    }

    /// Makes what was read the end of the file: what was not acknowledged is cut off, what is not known to be on the disk is
    /// written again. What a stopped process has left beside the file is removed.
    pub(crate) fn mend(&mut self, scan: &Scan) -> Result<()> {
        // That process may have put the file in its place, and not have synced that.
        Folder::of(&self.path)?.sync(&self.path)?;
        self.check_one_name()?;
        self.write_end(scan)?;
        Draft::remove_old(&self.path);
        Ok(())
    }

    fn write_end(&mut self, scan: &Scan) -> Result<()> {
        let io = |error| Error::io(&self.path, "mend the end of")(error);
        // After a failed sync the system may show bytes that never reach the disk: only bytes that are written anew do. The last
        // mark is one of them, as it waits for the sync behind it.
        let first = scan.marked - MARK as u64;
        let mut bytes = Vec::new();
        let length = usize::try_from(scan.end - first).unwrap_or(usize::MAX);
        bytes.try_reserve_exact(length).map_err(|_| Error::Structure(fastgame_core::Error::Memory))?;
        self.file.seek(SeekFrom::Start(first)).map_err(io)?;
        (&*self.file).take(scan.end - first).read_to_end(&mut bytes).map_err(io)?;
        for &place in &scan.lost_marks {
            let at = usize::try_from(place - first).unwrap_or(usize::MAX);
            bytes[at..at + MARK].copy_from_slice(&mark(&self.identity, place));
        }
        let is_whole = (scan.length, scan.marked) == (scan.end, scan.end);
        if !is_whole {
            self.file.set_len(scan.end).map_err(io)?;
        }
        self.file.seek(SeekFrom::Start(first)).map_err(io)?;
        self.file.write_all(&bytes).map_err(io)?;
        if is_whole {
            return Ok(());
        }
        self.file.sync_all().map_err(io)?;
        if scan.end > scan.marked { self.mark() } else { Ok(()) }
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        #[cfg(test)]
        if let Some(Fault::Write(after)) = self.fault {
            let (some, rest) = bytes.split_at(after.min(bytes.len()));
            self.fault = Some(Fault::Write(after - some.len()));
            if !rest.is_empty() {
                let written = self.file.seek(SeekFrom::Start(self.end)).and_then(|_| self.file.write_all(some));
                let full = written.and(Err(io::Error::from(io::ErrorKind::StorageFull)));
                return full.map_err(Error::io(&self.path, "write"));
            }
        }
        let written = self.file.seek(SeekFrom::Start(self.end)).and_then(|_| self.file.write_all(bytes));
        written.map_err(Error::io(&self.path, "write"))?;
        self.end += bytes.len() as u64;
        Ok(())
    }

    fn append(&mut self, kind: Kind, parts: &[&[u8]], step: u64, sealed: bool) -> Result<()> {
        let body = match parts {
            [body] => std::borrow::Cow::Borrowed(*body),
            parts => std::borrow::Cow::Owned(parts.concat()),
        };
        let header = Header { kind, length: body.len() as u64, generation: self.generation, step, sealed }.to_bytes();
        let link = frame_checksum(&self.identity, &self.link, self.end, &header, &body);
        if body.len() <= COPIED {
            self.write(&[&header, &*body, padding(body.len()), &link].concat())?;
        } else {
            self.write(&header)?;
            self.write(&body)?;
            self.write(&[padding(body.len()), &link].concat())?;
        }
        self.link = link;
        Ok(())
    }

    /// Appends a piece of the image.
    pub(crate) fn append_image(&mut self, dropped: u64, records: &[u8], step: u64, sealed: bool) -> Result<()> {
        self.append(Kind::Image, &[&dropped.to_le_bytes(), records], step, sealed)
    }

    /// Appends what a call did. It is on the disk after the next `sync`.
    pub(crate) fn append_journal(&mut self, dropped: u64, records: &[u8], step: u64, sealed: bool) -> Result<()> {
        self.generation += 1;
        self.append(Kind::Journal, &[&dropped.to_le_bytes(), records], step, sealed)
    }

    fn mark(&mut self) -> Result<()> {
        self.write(&mark(&self.identity, self.end))?;
        self.marked = self.end;
        Ok(())
    }

    /// Waits until all that was appended is on the disk.
    pub(crate) fn sync(&mut self) -> Result<()> {
        if self.marked == self.end {
            return Ok(());
        }
        #[cfg(test)]
        if self.fault == Some(Fault::Sync) {
            return Err(Error::io(&self.path, "sync")(io::Error::other("a fault")));
        }
        self.file.sync_data().map_err(Error::io(&self.path, "sync"))?;
        self.check_in_place()?;
        self.mark()
    }

    /// Refuses to go on with a file that no opening would find: what it says would be forgotten, and said anew.
    fn check_in_place(&self) -> Result<()> {
        let gone = |kind| matches!(kind, io::ErrorKind::NotFound | io::ErrorKind::NotADirectory);
        match is_same_file(&self.file, &self.path) {
            Ok(false) => Err(Error::Moved { path: self.path.clone() }),
            Err(error) if gone(error.kind()) => Err(Error::Moved { path: self.path.clone() }),
            // A process may give up the right to look.
            Ok(true) | Err(_) => Ok(()),
        }
    }

    /// Refuses a file with a second name: what takes the place of the one would leave the other, a second live copy.
    fn check_one_name(&self) -> Result<()> {
        let names = || names_of(&self.file).map_err(Error::io(&self.path, "count the names of"));
        if names()? == 1 {
            return Ok(());
        }
        // A process that is stopped while it makes a store leaves the draft's name beside the store's own.
        Draft::remove_old_if(&self.path, |draft| is_same_file(&self.file, draft).unwrap_or(false));
        match names()? {
            // None: then the file is gone from its place, which is told elsewhere.
            0 | 1 => Ok(()),
            names => Err(Error::Linked { path: self.path.clone(), names }),
        }
    }

    /// Puts a new file in place of this one, with what `write` appends to it. Until it is there nothing has changed.
    ///
    /// # Errors
    /// The first of a pair says whether this log may be used further.
    pub(crate) fn replace(
        &mut self,
        number: u64,
        parameters: &Parameters,
        write: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<(), (bool, Error)> {
        let name = draft_name(&self.identity, number);
        let drafted =
            Self::draft(&self.path, self.identity, self.generation, name, Some(&self.file), parameters, write);
        let (mut draft, log) = drafted.map_err(|error| (true, error))?;
        if !is_same_file(&log.file, &draft.path).unwrap_or(false) {
            let gone = io::Error::new(io::ErrorKind::NotFound, "somebody has taken the draft away");
            return Err((true, Error::io(&draft.path, "find")(gone)));
        }
        let folder = Folder::of(&self.path).map_err(|error| (true, error))?;
        // What stands there now may be somebody else's.
        self.check_in_place().map_err(|error| (false, error))?;
        self.check_one_name().map_err(|error| (true, error))?;
        fs::rename(&draft.path, &self.path).map_err(|error| (true, Error::io(&self.path, "replace")(error)))?;
        draft.is_done = true;
        let path = std::mem::take(&mut self.path);
        #[cfg(test)]
        let fault = self.fault;
        *self = Self { path, ..log };
        #[cfg(test)]
        if fault == Some(Fault::Folder) {
            return Err((false, Error::io(&self.path, "sync the folder of")(io::Error::other("a fault"))));
        }
        // Without it the old file may come back, and with it what was answered from the new one would be lost.
        folder.sync(&self.path).map_err(|error| (false, error))
    }

    /// Lets others open the file. (A failure leaves it locked, until the process ends.)
    pub(crate) fn unlock(&self) {
        let _ = self.file.unlock();
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// Bytes of the image, and of the journal.
    pub(crate) fn bytes(&self) -> [u64; 2] {
        [self.image, self.end - self.image]
    }
}

fn lock(file: &File, path: &Path) -> Result<()> {
    file.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => Error::InUse { path: path.to_owned() },
        TryLockError::Error(error) => Error::io(path, "lock")(error),
    })
}
