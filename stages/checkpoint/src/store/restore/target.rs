//! Where the contents of a file go.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, IoSlice, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use hopmap_durable::DurableError;

use super::portion::{Part, Portion};
use crate::CheckpointError;

/// What takes the portions of a file.
pub(super) trait Target: Send + Sync {
    /// Takes a portion that begins here, in any order, if the order does not matter.
    fn put_at(&self, offset: u64, portion: &Portion) -> Result<(), CheckpointError>;
    /// Takes the next portion if the order matters.
    fn put_next(&self, portion: &Portion) -> Result<(), CheckpointError>;
    /// Ends the file.
    fn finish(&self) -> Result<(), CheckpointError>;
}

/// A file of the length it is to have; nothing is written into its holes.
pub(super) struct FileTarget<'a> {
    path: PathBuf,
    file: File,
    holes: &'a [(u64, u64)],
    /// Whether the file is put on disk when it ends: its mode may keep us from opening it later.
    sync: bool,
}

impl<'a> FileTarget<'a> {
    pub(super) fn open(path: PathBuf, holes: &'a [(u64, u64)], sync: bool) -> Result<Self, CheckpointError> {
        let file = OpenOptions::new().write(true).open(&path).map_err(DurableError::io("write", &path))?;
        Ok(Self { path, file, holes, sync })
    }

    /// The bytes from a place on that are all in a hole, or all outside, and whether they are in one.
    fn stretch(&self, offset: u64, bytes: u64) -> (u64, bool) {
        let next = self.holes.partition_point(|&(begin, length)| begin.saturating_add(length) <= offset);
        match self.holes.get(next) {
            Some(&(begin, length)) if begin <= offset => {
                (bytes.min(begin.saturating_add(length) - offset), true)
            }
            Some(&(begin, _)) => (bytes.min(begin - offset), false),
            None => (bytes, false),
        }
    }

    fn write(&self, offset: u64, portion: &Portion) -> io::Result<()> {
        let write = |slices: &[IoSlice<'_>], at| Ok(rustix::io::pwritev(&self.file, slices, at)?);
        let mut gather = Gather::new(offset, write);
        for part in portion.parts() {
            match part {
                Part::Bytes(bytes) => gather.push(bytes)?,
                Part::Zeros(mut bytes) => {
                    while bytes > 0 {
                        let (stretch, is_hole) = self.stretch(gather.end, bytes);
                        match is_hole {
                            true => gather.skip(stretch)?,
                            false => gather.zeros(stretch)?,
                        }
                        bytes -= stretch;
                    }
                }
            }
        }
        gather.flush()
    }
}

impl Target for FileTarget<'_> {
    fn put_at(&self, offset: u64, portion: &Portion) -> Result<(), CheckpointError> {
        Ok(self.write(offset, portion).map_err(DurableError::io("write", &self.path))?)
    }

    fn put_next(&self, _: &Portion) -> Result<(), CheckpointError> {
        Ok(())
    }

    fn finish(&self) -> Result<(), CheckpointError> {
        let synced = if self.sync { self.file.sync_data() } else { Ok(()) };
        Ok(synced.map_err(DurableError::io("write", &self.path))?)
    }
}

/// A stream, such as standard output.
pub(super) struct StreamTarget<'a> {
    out: Mutex<&'a mut (dyn Write + Send)>,
}

impl<'a> StreamTarget<'a> {
    pub(super) fn new(out: &'a mut (dyn Write + Send)) -> Self {
        Self { out: Mutex::new(out) }
    }

    fn with(
        &self,
        write: impl FnOnce(&mut (dyn Write + Send)) -> io::Result<()>,
    ) -> Result<(), CheckpointError> {
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(write(&mut **out).map_err(DurableError::io("write", Path::new("standard output")))?)
    }
}

impl Target for StreamTarget<'_> {
    fn put_at(&self, _: u64, _: &Portion) -> Result<(), CheckpointError> {
        Ok(())
    }

    fn put_next(&self, portion: &Portion) -> Result<(), CheckpointError> {
        self.with(|out| {
            let mut gather = Gather::new(0, |slices: &[IoSlice<'_>], _| out.write_vectored(slices));
            portion.parts().try_for_each(|part| match part {
                Part::Bytes(bytes) => gather.push(bytes),
                Part::Zeros(bytes) => gather.zeros(bytes),
            })?;
            gather.flush()
        })
    }

    fn finish(&self) -> Result<(), CheckpointError> {
        self.with(|out| out.flush())
    }
}

static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

/// Most slices that the system takes at once.
const MOST_SLICES: usize = 1024;

/// Gathers what stands together in a file, and writes it from where it is.
struct Gather<'p, W> {
    slices: Vec<IoSlice<'p>>,
    /// Where the first slice begins.
    begin: u64,
    /// Where the last one ends.
    end: u64,
    write: W,
}

impl<'p, W: FnMut(&[IoSlice<'_>], u64) -> io::Result<usize>> Gather<'p, W> {
    fn new(begin: u64, write: W) -> Self {
        Self { slices: Vec::new(), begin, end: begin, write }
    }

    fn push(&mut self, bytes: &'p [u8]) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        if self.slices.len() == MOST_SLICES {
            self.flush()?;
        }
        self.slices.push(IoSlice::new(bytes));
        self.end += bytes.len() as u64;
        Ok(())
    }

    fn zeros(&mut self, mut bytes: u64) -> io::Result<()> {
        while bytes > 0 {
            let step = bytes.min(ZEROS.len() as u64);
            self.push(&ZEROS[..step as usize])?;
            bytes -= step;
        }
        Ok(())
    }

    /// Leaves out so many bytes.
    fn skip(&mut self, bytes: u64) -> io::Result<()> {
        self.flush()?;
        self.end += bytes;
        self.begin = self.end;
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut slices = self.slices.as_mut_slice();
        while !slices.is_empty() {
            match (self.write)(slices, self.begin) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(bytes) => {
                    self.begin += bytes as u64;
                    IoSlice::advance_slices(&mut slices, bytes);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.slices.clear();
        Ok(())
    }
}
