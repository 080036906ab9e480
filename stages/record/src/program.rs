//! What an executable file says about its MPI, and about whether the dynamic loader loads a recorder into it.

use std::fs::{File, Metadata};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use hopmap_mpi_environment::Abi;
use hopmap_process::on_path;

use crate::error::RecordError;

/// Program headers, from the ELF specification: the dynamic section, and the name of the dynamic loader.
const LOAD: u32 = 1;
const DYNAMIC: u32 = 2;
const INTERPRETER: u32 = 3;
/// Entries of the dynamic section: a needed library, and the address of the names.
const NEEDED: u64 = 1;
const STRINGS: u64 = 5;
/// Most program headers and dynamic entries, and longest name, that are read. Real programs have tens.
const MOST_ENTRIES: usize = 4096;
const MOST_NAME: usize = 256;

/// An executable file.
#[derive(Debug)]
pub(crate) struct Program {
    path: PathBuf,
    metadata: Metadata,
    /// `None` for scripts and for damaged files.
    elf: Option<Elf>,
}

impl Program {
    /// The program of a word of a command line, if it is one.
    pub(crate) fn find(word: &str) -> Option<Self> {
        let path = on_path(word)?;
        let file = File::open(&path).ok()?;
        Some(Self { metadata: file.metadata().ok()?, elf: Elf::read(&file), path })
    }

    /// Its file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The interface of the MPI that it is linked with; `None` for scripts, and where libraries of its own are.
    pub(crate) fn abi(&self) -> Option<Abi> {
        self.elf.as_ref()?.needed.iter().find_map(|name| Abi::of_library(name))
    }

    /// Whether it is neither a script nor unreadable.
    pub(crate) fn is_binary(&self) -> bool {
        self.elf.is_some()
    }

    /// A variable of a launcher with the rank that is among its texts. A file larger than this is not read.
    pub(crate) fn rank_variable(&self) -> Option<&'static str> {
        const MOST_BYTES: u64 = 1 << 26;
        const VARIABLES: [&str; 4] = ["OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "PMI_RANK", "PMIX_RANK"];
        let text = std::fs::read(&self.path).ok().filter(|_| self.metadata.len() <= MOST_BYTES)?;
        VARIABLES.into_iter().find(|name| memchr::memmem::find(&text, name.as_bytes()).is_some())
    }

    /// Refuses what the dynamic loader loads nothing into: static and setuid programs.
    pub(crate) fn check(&self) -> Result<(), RecordError> {
        let Self { path, metadata, elf } = self;
        let is_of_other_user =
            metadata.mode() & 0o4000 != 0 && metadata.uid() != rustix::process::geteuid().as_raw();
        let is_of_other_group =
            metadata.mode() & 0o2000 != 0 && metadata.gid() != rustix::process::getegid().as_raw();
        if is_of_other_user || is_of_other_group {
            let path = path.to_owned();
            return Err(RecordError::Loader { path, what: "a setuid or setgid program", is_static: false });
        }
        match elf {
            Some(Elf { has_loader: false, .. }) => {
                Err(RecordError::Loader { path: path.to_owned(), what: "linked statically", is_static: true })
            }
            _ => Ok(()),
        }
    }
}

/// A 64-bit ELF file of little endian.
#[derive(Debug)]
struct Elf {
    /// Whether a program header names a dynamic loader.
    has_loader: bool,
    /// Names of the libraries that it is linked with.
    needed: Vec<String>,
}

impl Elf {
    fn read(file: &File) -> Option<Self> {
        let header: [u8; 64] = bytes(file, 0)?;
        if !header.starts_with(b"\x7fELF\x02\x01") {
            return None;
        }
        let (start, size, count) = (word(&header, 0x20), half(&header, 0x36), half(&header, 0x38));
        let headers = (0..u64::from(count))
            .take(MOST_ENTRIES)
            .map(|header| -> Option<[u8; 56]> { bytes(file, start.checked_add(header * u64::from(size))?) });
        let headers: Vec<[u8; 56]> = headers.collect::<Option<_>>()?;
        let of = |kind: u32| headers.iter().filter(move |header| header[..4] == kind.to_le_bytes());
        let mut elf = Self { has_loader: of(INTERPRETER).next().is_some(), needed: Vec::new() };
        if let Some(dynamic) = of(DYNAMIC).next() {
            let entries = entries(file, word(dynamic, 8), word(dynamic, 32));
            let address = entries.iter().find(|(tag, _)| *tag == STRINGS).map(|(_, value)| *value)?;
            // Addresses are those in memory.
            let strings = of(LOAD).find_map(|load| {
                let inside = address.checked_sub(word(load, 16)).filter(|inside| *inside < word(load, 32))?;
                word(load, 8).checked_add(inside)
            })?;
            let needed = entries.iter().filter(|(tag, _)| *tag == NEEDED);
            elf.needed = needed.filter_map(|(_, at)| name(file, strings.checked_add(*at)?)).collect();
        }
        Some(elf)
    }
}

fn bytes<const N: usize>(file: &File, at: u64) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    file.read_exact_at(&mut bytes, at).ok().map(|()| bytes)
}

fn word(bytes: &[u8], at: usize) -> u64 {
    bytes[at..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

fn half(bytes: &[u8], at: usize) -> u16 {
    bytes[at..].first_chunk().map_or(0, |bytes| u16::from_le_bytes(*bytes))
}

/// Tags and values of a dynamic section.
fn entries(file: &File, start: u64, size: u64) -> Vec<(u64, u64)> {
    let entry = |number| {
        let entry: [u8; 16] = bytes(file, start.checked_add(number * 16)?)?;
        Some((word(&entry, 0), word(&entry, 8))).filter(|(tag, _)| *tag != 0)
    };
    (0..size / 16).take(MOST_ENTRIES).map_while(entry).collect()
}

fn name(file: &File, at: u64) -> Option<String> {
    let mut bytes = [0; MOST_NAME];
    let read = file.read_at(&mut bytes, at).ok()?;
    let end = bytes[..read].iter().position(|byte| *byte == 0)?;
    String::from_utf8(bytes[..end].to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn this_test_is_dynamic_and_without_mpi() {
        let path = std::env::current_exe().unwrap();
        let program = Program::find(path.to_str().unwrap()).unwrap();
        program.check().unwrap();
        let needed = &program.elf.as_ref().unwrap().needed;
        assert!(needed.iter().any(|name| name == "libc.so.6"), "{needed:?}");
        // Although its file contains the names of all MPI libraries.
        assert_eq!(program.abi(), None);
    }

    #[test]
    fn a_program_without_a_loader_is_refused_and_damage_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("program");
        let check = |bytes: &[u8]| {
            fs::write(&path, bytes).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
            Program::find(path.to_str().unwrap()).unwrap().check()
        };
        let mut bytes = vec![0; 128];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        (bytes[0x20], bytes[0x36], bytes[0x38], bytes[0x40]) = (0x40, 0x38, 1, 1);
        let error = check(&bytes).unwrap_err().to_string();
        assert!(error.ends_with("is linked statically, into which no library can be loaded"), "{error}");
        bytes[0x40] = 3;
        check(&bytes).unwrap();
        bytes[0x20..0x28].fill(0xff);
        check(&bytes).unwrap();
        check(b"#!/bin/sh\n").unwrap();
    }

    #[test]
    fn damaged_headers_give_no_panic() {
        let path = std::env::current_exe().unwrap();
        let mut bytes = vec![0; 1 << 16];
        let read = File::open(path).unwrap().read_at(&mut bytes, 0).unwrap();
        let file = tempfile::tempfile().unwrap();
        for at in 0..read.min(1024) {
            for value in [0x00, 0x7f, 0xff] {
                let mut damaged = bytes[..read].to_vec();
                damaged[at] = value;
                file.write_all_at(&damaged[..1024.min(read)], 0).unwrap();
                let _ = Elf::read(&file);
            }
        }
    }
}
