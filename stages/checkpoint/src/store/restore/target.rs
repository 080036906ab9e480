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

#[cfg(test)]
mod tests {
    use super::*;

    type Write<'w> = &'w mut dyn FnMut(&[IoSlice<'_>], u64) -> io::Result<usize>;

    /// A file that takes no more than so many bytes at once.
    fn gathered(most: usize, gathering: impl Fn(&mut Gather<'_, Write<'_>>)) -> Vec<u8> {
        let mut file = Vec::new();
        let mut write = |slices: &[IoSlice<'_>], at: u64| {
            let bytes: Vec<u8> = slices.iter().flat_map(|slice| slice.to_vec()).take(most).collect();
            file.resize(file.len().max(at as usize + bytes.len()), b'.');
            file[at as usize..at as usize + bytes.len()].copy_from_slice(&bytes);
            Ok(bytes.len())
        };
        let mut gather: Gather<'_, Write<'_>> = Gather::new(2, &mut write);
        gathering(&mut gather);
        gather.flush().unwrap();
        file
    }

    #[test]
    fn what_is_gathered_is_written_where_it_belongs_however_few_bytes_go_at_once() {
        for most in [1, 2, 3, 5, 100] {
            let file = gathered(most, |gather| {
                gather.push(b"one").unwrap();
                gather.push(b"").unwrap();
                gather.push(b"two").unwrap();
                gather.skip(2).unwrap();
                gather.zeros(2).unwrap();
                gather.push(b"!").unwrap();
            });
            assert_eq!(file, b"..onetwo..\0\0!", "{most}");
        }
    }

    #[test]
    fn more_slices_than_the_system_takes_and_long_zeros_come_out_whole() {
        let file = gathered(usize::MAX, |gather| {
            for _ in 0..MOST_SLICES + 7 {
                gather.push(b"ab").unwrap();
            }
            gather.zeros(3 * ZEROS.len() as u64 + 5).unwrap();
        });
        assert_eq!(file.len(), 2 + 2 * (MOST_SLICES + 7) + 3 * ZEROS.len() + 5);
        assert!(file[2..2 + 2 * (MOST_SLICES + 7)].chunks(2).all(|pair| pair == b"ab"));
        assert!(file[2 + 2 * (MOST_SLICES + 7)..].iter().all(|&byte| byte == 0));
    }

    #[test]
    fn stretches_end_where_holes_do() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        File::create(&path).unwrap();
        let target = FileTarget::open(path, &[(10, 5), (15, 5), (100, u64::MAX)], false).unwrap();
        let cases = [
            (0, 8, (8, false)),
            (0, 50, (10, false)),
            (10, 50, (5, true)),
            (17, 2, (2, true)),
            (20, 500, (80, false)),
            (200, 500, (500, true)),
        ];
        for (offset, bytes, stretch) in cases {
            assert_eq!(target.stretch(offset, bytes), stretch, "{offset}");
        }
    }
}
