//! What an executable file says about its MPI, and about whether the dynamic loader loads a recorder into it.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use hopmap_mpi_environment::Implementation;

use crate::error::RecordError;

/// More of a program is not read.
const MOST_BYTES: u64 = 256 << 20;
/// `PT_INTERP`: the program header that names the dynamic loader.
const INTERPRETER: u32 = 3;

/// Names of MPI libraries. `libmpi.so.12` is that of Intel MPI and of the MPIs with MPICH's interface.
const LIBRARIES: [(&str, Implementation); 6] = [
    ("libmpich.so", Implementation::Mpich),
    ("libmpichfort.so", Implementation::Mpich),
    ("libmpi.so.12", Implementation::IntelMpi),
    ("libmpi.so.40", Implementation::OpenMpi),
    ("libmpi.so.20", Implementation::OpenMpi),
    ("libmpi_mpifh.so", Implementation::OpenMpi),
];

/// The file of a program's name, as `execvp` finds it.
#[must_use]
pub(crate) fn file_of(program: &str) -> Option<PathBuf> {
    if program.contains('/') {
        return Some(PathBuf::from(program)).filter(|path| path.is_file());
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|path| path.is_file())
}

/// A 64-bit ELF file of little endian.
struct Elf(Vec<u8>);

impl Elf {
    fn read(path: &Path) -> Option<Self> {
        let mut bytes = Vec::new();
        File::open(path).ok()?.take(MOST_BYTES).read_to_end(&mut bytes).ok()?;
        bytes.starts_with(b"\x7fELF\x02\x01").then_some(Self(bytes))
    }

    fn number<const N: usize>(&self, at: usize) -> Option<[u8; N]> {
        self.0.get(at..)?.first_chunk().copied()
    }

    /// Whether a program header names a loader; `None` if the file is damaged.
    fn has_loader(&self) -> Option<bool> {
        let start = usize::try_from(u64::from_le_bytes(self.number(0x20)?)).ok()?;
        let size = usize::from(u16::from_le_bytes(self.number(0x36)?));
        let count = usize::from(u16::from_le_bytes(self.number(0x38)?));
        for header in 0..count {
            let at = start.checked_add(header * size)?;
            if u32::from_le_bytes(self.number(at)?) == INTERPRETER {
                return Some(true);
            }
        }
        Some(false)
    }

    fn contains(&self, text: &str) -> bool {
        let first = text.as_bytes()[0];
        let mut rest = &self.0[..];
        while let Some(at) = rest.iter().position(|byte| *byte == first) {
            rest = &rest[at..];
            if rest.starts_with(text.as_bytes()) {
                return true;
            }
            rest = &rest[1..];
        }
        false
    }
}

/// The MPI that an executable is linked with; `None` for scripts, and where libraries of its own are.
#[must_use]
pub(crate) fn mpi_of(path: &Path) -> Option<Implementation> {
    let elf = Elf::read(path)?;
    LIBRARIES.iter().find(|(name, _)| elf.contains(name)).map(|(_, mpi)| *mpi)
}

/// Refuses what the dynamic loader loads nothing into: static and setuid programs.
pub(crate) fn check(path: &Path) -> Result<(), RecordError> {
    let Ok(metadata) = fs::metadata(path) else { return Ok(()) };
    let is_of_other_user =
        metadata.mode() & 0o4000 != 0 && metadata.uid() != rustix::process::geteuid().as_raw();
    let is_of_other_group =
        metadata.mode() & 0o2000 != 0 && metadata.gid() != rustix::process::getegid().as_raw();
    if is_of_other_user || is_of_other_group {
        let path = path.to_owned();
        return Err(RecordError::Loader { path, what: "a setuid or setgid program", is_static: false });
    }
    match Elf::read(path).and_then(|elf| elf.has_loader()) {
        Some(false) => {
            Err(RecordError::Loader { path: path.to_owned(), what: "linked statically", is_static: true })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_test_is_dynamic_and_without_mpi() {
        let path = std::env::current_exe().unwrap();
        check(&path).unwrap();
        assert!(Elf::read(&path).is_some());
    }

    #[test]
    fn a_program_without_a_loader_is_refused_and_damage_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("program");
        let mut bytes = vec![0; 128];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        (bytes[0x20], bytes[0x36], bytes[0x38], bytes[0x40]) = (0x40, 0x38, 1, 1);
        fs::write(&path, &bytes).unwrap();
        let error = check(&path).unwrap_err().to_string();
        assert!(error.ends_with("is linked statically, into which no recorder can be loaded"), "{error}");
        bytes[0x40] = 3;
        fs::write(&path, &bytes).unwrap();
        check(&path).unwrap();
        bytes[0x20..0x28].fill(0xff);
        fs::write(&path, &bytes).unwrap();
        check(&path).unwrap();
    }
}
