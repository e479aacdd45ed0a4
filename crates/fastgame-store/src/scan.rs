//! Reading a store from its beginning, and telling what is lost from what is damaged.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use crate::error::{Error, Result};
use crate::format::{
    CHECKSUM, Checksum, HEADER, Header, Identity, Kind, MARK, MOST_GENERATIONS, NAME, PREAMBLE, Parameters, VERSION,
    first_link, frame_checksum, mark, may_be_mark, padding,
};

/// What a file holds, up to where it is whole.
#[derive(Debug)]
pub(crate) struct Scan {
    pub(crate) identity: Identity,
    /// The checksum of the last frame.
    pub(crate) link: Checksum,
    /// Behind the last frame or mark that counts.
    pub(crate) end: u64,
    /// Behind the last mark.
    pub(crate) marked: u64,
    /// Behind the first mark: where the journal begins.
    pub(crate) image: u64,
    /// The whole file.
    pub(crate) length: u64,
    pub(crate) generation: u64,
    pub(crate) step: u64,
    pub(crate) sealed: bool,
    /// Where marks are missing between frames.
    pub(crate) lost_marks: Vec<u64>,
}

/// What is handed out while a file is read, in order.
pub(crate) enum Part<'a> {
    Parameters(Parameters),
    Records {
        /// Where they stand.
        place: u64,
        /// How many elements were dropped so far.
        dropped: u64,
        records: &'a [u8],
    },
}

struct Scanner<'a> {
    path: &'a Path,
    file: BufReader<&'a File>,
    scan: Scan,
    /// Frames so far.
    frames: u64,
    body: Vec<u8>,
}

/// Reads a store; `each` is given its parameters, then the records.
pub(crate) fn scan<E: From<Error>>(
    path: &Path,
    file: &File,
    mut each: impl FnMut(Part<'_>) -> Result<(), E>,
) -> Result<Scan, E> {
    let mut scanner = Scanner::begin(path, file)?;
    while scanner.scan.end < scanner.scan.length {
        if scanner.mark()? {
            continue;
        }
        let place = scanner.scan.end;
        let Some(header) = scanner.frame()? else {
            scanner.check_lost()?;
            if scanner.skip_lost_mark()? {
                continue;
            }
            break;
        };
        let first = scanner.frames == 1;
        if first != (header.kind == Kind::Parameters) || (scanner.scan.image > 0) != (header.kind == Kind::Journal) {
            return Err(scanner.damaged("a frame of the right kind").into());
        }
        if first {
            let parameters = Parameters::from_bytes(&scanner.body);
            each(Part::Parameters(parameters.ok_or_else(|| scanner.damaged("parameters"))?))?;
        } else {
            let Some((dropped, records)) = scanner.body.split_first_chunk::<8>() else {
                return Err(scanner.damaged("records").into());
            };
            each(Part::Records { place, dropped: u64::from_le_bytes(*dropped), records })?;
        }
    }
    if scanner.scan.image == 0 {
        return Err(scanner.damaged("a whole image of the state").into());
    }
    Ok(scanner.scan)
}

impl<'a> Scanner<'a> {
    fn begin(path: &'a Path, file: &'a File) -> Result<Self> {
        let read = Error::io(path, "read");
        let mut whole = file;
        let length = whole.seek(SeekFrom::End(0)).and_then(|length| whole.rewind().map(|()| length)).map_err(read)?;
        let mut reader = BufReader::with_capacity(length.clamp(1, 1 << 20) as usize, file);
        let mut bytes = Vec::new();
        reader.by_ref().take(PREAMBLE as u64).read_to_end(&mut bytes).map_err(Error::io(path, "read"))?;
        if !bytes.starts_with(&NAME) {
            return Err(Error::Foreign { path: path.to_owned() });
        }
        let mut scan = Scan {
            identity: Identity::default(),
            link: Checksum::default(),
            end: PREAMBLE as u64,
            marked: 0,
            image: 0,
            length,
            generation: 0,
            step: 1,
            sealed: false,
            lost_marks: Vec::new(),
        };
        let damaged = |place, what| Error::Damaged { path: path.to_owned(), place, what };
        let Some(bytes) = bytes.first_chunk::<PREAMBLE>() else { return Err(damaged(0, "the beginning of a store")) };
        let version = u32::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]);
        if version != VERSION {
            return Err(Error::Version { path: path.to_owned(), version });
        }
        if bytes[12..16] != [0; 4] {
            return Err(damaged(12, "the beginning of a store"));
        }
        scan.identity.copy_from_slice(&bytes[16..]);
        scan.link = first_link(&scan.identity);
        Ok(Self { path, file: reader, scan, frames: 0, body: Vec::new() })
    }

    fn damaged(&self, what: &'static str) -> Error {
        Error::Damaged { path: self.path.to_owned(), place: self.scan.end, what }
    }

    fn read(&mut self, bytes: &mut [u8]) -> Result<()> {
        self.file.read_exact(bytes).map_err(Error::io(self.path, "read"))
    }

    fn seek(&mut self, place: u64) -> Result<()> {
        let by = place as i64 - self.file.stream_position().map_err(Error::io(self.path, "read"))? as i64;
        self.file.seek_relative(by).map_err(Error::io(self.path, "read"))
    }

    /// Passes a mark, if one stands here.
    fn mark(&mut self) -> Result<bool> {
        let here = self.scan.end;
        if self.scan.length - here < MARK as u64 || self.frames == 0 {
            return Ok(false);
        }
        let mut bytes = [0; MARK];
        self.read(&mut bytes)?;
        if bytes != mark(&self.scan.identity, here) {
            self.seek(here)?;
            return Ok(false);
        }
        self.scan.end += MARK as u64;
        self.scan.marked = self.scan.end;
        if self.scan.image == 0 {
            self.scan.image = self.scan.end;
        }
        Ok(true)
    }

    /// Passes a frame whose body is then in `self.body`, if one stands here.
    fn frame(&mut self) -> Result<Option<Header>> {
        let here = self.scan.end;
        let found = self.frame_at(here)?;
        let Some((header, link)) = found else {
            self.seek(here)?;
            return Ok(None);
        };
        let next = self.scan.generation + u64::from(header.kind == Kind::Journal);
        let goes_on = self.frames == 0 || (header.generation == next && header.step >= self.scan.step);
        if !goes_on || header.generation > MOST_GENERATIONS {
            return Err(self.damaged("the next generation"));
        }
        // Below the length of the file.
        self.scan.end += header.frame_length().unwrap_or(0);
        self.scan.link = link;
        (self.scan.generation, self.scan.step, self.scan.sealed) = (header.generation, header.step, header.sealed);
        self.frames += 1;
        Ok(Some(header))
    }

    /// The header and the checksum of the frame at a place, to which the file was moved, behind the last one that counts.
    fn frame_at(&mut self, place: u64) -> Result<Option<(Header, Checksum)>> {
        let left = self.scan.length.saturating_sub(place);
        if left < (HEADER + CHECKSUM) as u64 {
            return Ok(None);
        }
        let mut bytes = [0; HEADER];
        self.read(&mut bytes)?;
        let Some(header) = Header::from_bytes(&bytes) else { return Ok(None) };
        // Nothing is made as large as a header says that the file does not hold.
        if header.frame_length().is_none_or(|length| length > left) {
            return Ok(None);
        }
        let Ok(length) = usize::try_from(header.length) else { return Ok(None) };
        self.body.clear();
        let room = self.body.try_reserve_exact(length);
        room.map_err(|_| Error::Structure(fastgame_core::Error::Memory))?;
        let mut body = std::mem::take(&mut self.body);
        body.resize(length, 0);
        let read = self.read(&mut body);
        self.body = body;
        read?;
        let (mut zeros, mut stored) = ([0; 8], Checksum::default());
        let zeros = &mut zeros[..padding(length).len()];
        self.read(zeros)?;
        self.read(&mut stored)?;
        let link = frame_checksum(&self.scan.identity, &self.scan.link, place, &bytes, &self.body);
        Ok((link == stored && zeros == padding(length)).then_some((header, link)))
    }

    /// What stands here is neither a frame nor a mark: an error, unless it is what a call left that nobody had an answer from.
    fn check_lost(&mut self) -> Result<()> {
        let here = self.scan.end;
        let damaged = self.damaged("a frame with the right checksum");
        if self.scan.image == 0 {
            return Err(damaged);
        }
        // A mark further on says that this was on the disk once.
        let (mut window, mut place) = (Vec::new(), here);
        loop {
            // What is written meanwhile, of a store in use, is behind the end that counts.
            let left = self.scan.length.saturating_sub(place + window.len() as u64);
            let room = left.min((1 << 16) - window.len() as u64);
            let got = self.file.by_ref().take(room).read_to_end(&mut window);
            if got.map_err(Error::io(self.path, "read"))? == 0 {
                return Ok(());
            }
            let mut passed = 0;
            while window.len() - passed >= MARK {
                let bytes = &window[passed..passed + MARK];
                if may_be_mark(bytes) && *bytes == mark(&self.scan.identity, place) {
                    return Err(damaged);
                }
                passed += 8;
                place += 8;
            }
            window.drain(..passed);
        }
    }

    /// Passes what should be a mark, if a frame stands behind it. A mark is synced with the frame behind it, and the disk may
    /// have got that one alone. Nothing is lost: the frame would not count behind any other frame than the one before.
    fn skip_lost_mark(&mut self) -> Result<bool> {
        let here = self.scan.end;
        let behind = here + MARK as u64;
        if behind >= self.scan.length || self.scan.lost_marks.last().is_some_and(|&lost| lost + MARK as u64 == here) {
            return Ok(false);
        }
        self.seek(behind)?;
        let is_there = self.frame_at(behind)?.is_some();
        if is_there {
            self.scan.lost_marks.push(here);
            self.scan.end = behind;
        }
        self.seek(self.scan.end)?;
        Ok(is_there)
    }
}

/// What may be shown of a store, without opening it: nothing of it depends on the data other than through what was released.
#[derive(Clone, Debug, PartialEq)]
pub struct Overview {
    /// What it is of.
    pub parameters: Parameters,
    /// The version of the file.
    pub version: u32,
    /// How many calls were written down in the whole life of the store. For the operator alone.
    pub generation: u64,
    /// The present step.
    pub now: u64,
    /// Whether it was read.
    pub sealed: bool,
    /// Bytes of the image, and of the journal behind it. They depend on the data, a little: for the operator alone.
    pub bytes: [u64; 2],
    /// Bytes of a call at the end that was never acknowledged, and is cut off when the store is opened.
    pub lost: u64,
}

/// Reads a whole store, and checks every byte of it. It may be in use meanwhile; then the end may be that of a call under way.
///
/// # Errors
/// As [`Store::open`](crate::Store::open), but for [`Error::InUse`].
pub fn inspect(path: &Path) -> Result<Overview> {
    let path = crate::file::resolve(path)?;
    crate::file::check_regular(&path)?;
    let file = File::open(&path).map_err(Error::io(&path, "read"))?;
    let mut found = None;
    let scan = scan(&path, &file, |part| {
        if let Part::Parameters(parameters) = part {
            found = Some(parameters);
        }
        Ok::<_, Error>(())
    })?;
    Ok(Overview {
        parameters: found.unwrap_or_default(),
        version: VERSION,
        generation: scan.generation,
        now: scan.step,
        sealed: scan.sealed,
        bytes: [scan.image, scan.end - scan.image],
        lost: scan.length - scan.end,
    })
}
