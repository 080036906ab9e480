//! The compiled recorder: built once per MPI with its `mpicc`, and kept in a cache.
//!
//! Ranks load the library with their user's rights, so that the cache belongs to this user alone (mode 0700),
//! and the name of a library contains the hash of its contents.

use std::fmt;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use hopmap_durable::{Staging, replace_file};
use hopmap_mpi_environment::{Abi, Identity, Implementation, MpiError, host_name};
use hopmap_process::{Limits, run};

use crate::error::RecordError;
use crate::source::source;

/// Hexadecimal digits of the hash of a library, and of those of what it depends on.
const DIGITS: usize = 32;
const SHORT: usize = 16;
/// Time limit of a compiler.
const TIME: Duration = Duration::from_mins(2);

/// The folder of the built recorders.
#[derive(Debug, Clone)]
pub struct Cache(PathBuf);

impl Cache {
    /// Opens the given folder or that of the user; it is made if it is missing, and checked.
    pub fn open(given: Option<&Path>) -> Result<Self, RecordError> {
        let variable =
            |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let path = given
            .map(Path::to_owned)
            .or_else(|| Some(variable("XDG_CACHE_HOME")?.join("hopmap")))
            .or_else(|| Some(variable("HOME")?.join(".cache/hopmap")))
            .ok_or_else(|| RecordError::NoCache { host: host_name() })?;
        make_private(&path)?;
        let path = fs::canonicalize(&path).map_err(RecordError::io("read", &path))?;
        match path.to_str().is_some_and(|text| !text.contains([' ', ':', ',', ';'])) {
            true => Ok(Self(path)),
            false => Err(refused(&path, "has a character in its name that separates libraries")),
        }
    }

    /// The best recorder that is built for an MPI like this: of the same version, else the newest one. For hosts
    /// without a compiler.
    pub fn library(&self, mpi: Mpi, version: Option<&str>) -> Result<Option<Library>, RecordError> {
        self.best(|built| {
            let is_of_version = Some(built.identity.version.as_str()) == version;
            (built.source == source_hash() && mpi.has(built.identity.implementation)).then_some(is_of_version)
        })
    }

    /// The library of the highest rank, and the newest of them; checked.
    fn best(&self, rank: impl Fn(&Built) -> Option<bool>) -> Result<Option<Library>, RecordError> {
        let entries = fs::read_dir(&self.0).map_err(RecordError::io("read", &self.0))?.flatten();
        let found = entries.filter_map(|entry| {
            let built = Built::parse(entry.file_name().to_str()?)?;
            Some((rank(&built)?, entry.metadata().ok()?.mtime(), entry.path(), built))
        });
        let best = found.max_by(|a, b| (a.0, a.1, &a.2).cmp(&(b.0, b.1, &b.2)));
        let Some((.., path, built)) = best else { return Ok(None) };
        check_owner(&path)?;
        let contents = fs::read(&path).map_err(RecordError::io("read", &path))?;
        match hash(&contents, DIGITS) == built.content {
            true => Ok(Some(Library { path, identity: built.identity })),
            false => Err(refused(&path, "has been changed")),
        }
    }
}

/// A built recorder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Library {
    /// Its file.
    pub path: PathBuf,
    /// The MPI that it is built for.
    pub identity: Identity,
}

/// What the name of a library says: `record-MPI-VERSION-SOURCE-COMPILER-CONTENT.so`.
struct Built {
    identity: Identity,
    source: String,
    compiler: String,
    content: String,
}

impl Built {
    fn parse(name: &str) -> Option<Self> {
        let name = name.strip_suffix(".so")?;
        let (implementation, rest) = Implementation::MPIS.iter().find_map(|implementation| {
            Some((*implementation, name.strip_prefix(&beginning(*implementation))?))
        })?;
        // Versions may contain hyphens.
        let mut parts = rest.rsplitn(4, '-').map(str::to_owned);
        let (content, compiler, source, version) =
            (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        Some(Self { identity: Identity { implementation, version }, source, compiler, content })
    }

    fn name(&self) -> String {
        let Self { identity: Identity { implementation, version }, source, compiler, content } = self;
        format!("{}{version}-{source}-{compiler}-{content}.so", beginning(*implementation))
    }
}

/// `record-open-mpi-`
fn beginning(implementation: Implementation) -> String {
    format!("record-{}-", implementation.to_string().to_lowercase().replace(' ', "-"))
}

/// What is known about the MPI of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Mpi {
    /// The implementation, known from the launcher.
    pub implementation: Option<Implementation>,
    /// The interface, known from the program.
    pub abi: Option<Abi>,
}

impl Mpi {
    /// Its interface.
    #[must_use]
    pub fn abi(self) -> Option<Abi> {
        self.implementation.and_then(Implementation::abi).or(self.abi)
    }

    fn has(self, implementation: Implementation) -> bool {
        self.implementation.is_none_or(|own| own == implementation) && self.may_use(implementation)
    }

    /// Whether a recorder of this implementation can be loaded: the user may know better which MPI it is.
    fn may_use(self, implementation: Implementation) -> bool {
        self.abi().is_none_or(|abi| implementation.abi() == Some(abi))
    }
}

impl fmt::Display for Mpi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.implementation, self.abi) {
            (Some(implementation), _) => implementation.fmt(f),
            (None, Some(abi)) => abi.fmt(f),
            (None, None) => f.write_str("any MPI"),
        }
    }
}

/// The compiler of an MPI.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compiler {
    /// The program.
    pub program: String,
    /// Its MPI.
    pub identity: Identity,
}

impl Compiler {
    /// The compiler with this name, if a program of this MPI can load what it builds.
    pub fn named(program: &str, mpi: Mpi) -> Result<Self, RecordError> {
        let identity = Identity::of_compiler(program).map_err(|source| RecordError::Mpicc {
            program: program.to_owned(),
            mpi: mpi.to_string(),
            source,
        })?;
        match mpi.may_use(identity.implementation) {
            true => Ok(Self { program: program.to_owned(), identity }),
            false => Err(RecordError::NoCompiler {
                mpi: mpi.to_string(),
                tried: format!("{program} is of {}", identity.implementation),
            }),
        }
    }

    /// Looks for a compiler of an MPI: next to the launcher, `mpicc`, and Debian's names.
    pub fn find(launcher: Option<&str>, mpi: Mpi) -> Result<Self, RecordError> {
        let beside = launcher
            .filter(|name| name.contains('/'))
            .and_then(|name| Some(Path::new(name).parent()?.join("mpicc").to_string_lossy().into_owned()));
        let usual = ["mpicc", "mpicc.openmpi", "mpicc.mpich"].map(str::to_owned);
        let mut tried = Vec::new();
        for program in beside.into_iter().chain(usual) {
            match Identity::of_compiler(&program) {
                Ok(identity) if mpi.has(identity.implementation) => return Ok(Self { program, identity }),
                Ok(identity) => tried.push(format!("{program} is of {}", identity.implementation)),
                Err(MpiError::Run(error)) if error.is_missing() => {
                    tried.push(format!("{program} is missing"));
                }
                Err(_) => tried.push(format!("{program} is of no known MPI")),
            }
        }
        Err(RecordError::NoCompiler { mpi: mpi.to_string(), tried: tried.join(", ") })
    }

    /// The recorder for this MPI, from the cache or built; `say` tells the user before that takes seconds.
    pub fn library(&self, cache: &Cache, say: &dyn Fn(String)) -> Result<Library, RecordError> {
        let shown = self.output(&["-show"])?;
        let compiler = hash(&shown, SHORT);
        let cached = || {
            cache.best(|built| {
                let is_same = (&built.source, &built.compiler) == (&source_hash(), &compiler);
                (is_same && built.identity == self.identity).then_some(true)
            })
        };
        if let Some(library) = cached()? {
            return Ok(library);
        }
        // One process per host builds, the others wait for it.
        let lock_path = cache.0.join("lock");
        let lock = File::create(&lock_path).map_err(RecordError::io("create", &lock_path))?;
        lock.lock().map_err(RecordError::io("lock", &lock_path))?;
        if let Some(library) = cached()? {
            return Ok(library);
        }
        say(format!("building the recorder for {} with {} (once)", self.identity, self.program));
        self.build(&cache.0, &compiler, &shown)
    }

    fn build(&self, cache: &Path, compiler: &str, shown: &[u8]) -> Result<Library, RecordError> {
        let staging = Staging::new(cache)?;
        let path = |name: &str| staging.path().join(name);
        let write = |name: &str, text: &str| {
            fs::write(path(name), text).map_err(RecordError::io("write", &path(name)))
        };
        write("header.c", "#include <mpi.h>\n")?;
        let header = self.output(&["-E", &path("header.c").to_string_lossy()])?;
        write("record.c", &source(&String::from_utf8_lossy(&header)))?;
        let (from, object, library) = (path("record.c"), path("record.o"), path("record.so"));
        let [from, object, library] = [&from, &object, &library].map(|path| path.to_string_lossy());
        // -w: compilers differ in what they warn about, and the user cannot change it.
        self.output(&["-std=gnu11", "-O2", "-fPIC", "-w", "-c", &from, "-o", &object])?;
        // With the C compiler itself: the library must not need MPI.
        let shown = String::from_utf8_lossy(shown);
        let linker = shown.split_whitespace().next().unwrap_or("cc");
        output(linker, &["-shared", &object, "-o", &library, "-lpthread", "-ldl"])?;
        let contents = fs::read(path("record.so")).map_err(RecordError::io("read", &path("record.so")))?;
        let identity = self.identity.clone();
        let (compiler, content) = (compiler.to_owned(), hash(&contents, DIGITS));
        let built = Built { identity, source: source_hash(), compiler, content };
        let place = cache.join(built.name());
        replace_file(&place, &contents)?;
        Ok(Library { path: place, identity: built.identity })
    }

    fn output(&self, arguments: &[&str]) -> Result<Vec<u8>, RecordError> {
        output(&self.program, arguments)
    }
}

fn output(program: &str, arguments: &[&str]) -> Result<Vec<u8>, RecordError> {
    let limits = Limits { time: Some(TIME), ..Limits::default() };
    run(Command::new(program).args(arguments), &limits)
        .map(|output| output.stdout)
        .map_err(RecordError::Build)
}

/// What every recorder of this hopmap is made of, so that no older one is used.
fn source_hash() -> String {
    let texts = [
        &source(""),
        include_str!("procedures.csv"),
        include_str!("source.rs"),
        include_str!("events.rs"),
        include_str!("library.rs"),
    ];
    hash(texts.concat().as_bytes(), SHORT)
}

fn hash(contents: &[u8], digits: usize) -> String {
    blake3::hash(contents).to_hex()[..digits].to_owned()
}

fn make_private(cache: &Path) -> Result<(), RecordError> {
    let parents = cache.parent().map_or(Ok(()), fs::create_dir_all);
    parents.map_err(RecordError::io("create", cache))?;
    match fs::DirBuilder::new().mode(0o700).create(cache) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(RecordError::io("create", cache)(error));
        }
        _ => {}
    }
    check_owner(cache)
}

fn check_owner(path: &Path) -> Result<(), RecordError> {
    let metadata = fs::metadata(path).map_err(RecordError::io("read", path))?;
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(refused(path, "belongs to another user"));
    }
    if metadata.mode() & 0o022 != 0 { Err(refused(path, "can be changed by other users")) } else { Ok(()) }
}

fn refused(path: &Path, problem: &'static str) -> RecordError {
    RecordError::Cache { path: path.to_owned(), host: host_name(), problem }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_libraries_are_read_back() {
        let identity = Identity { implementation: Implementation::OpenMpi, version: "5.0.0-rc1".into() };
        let [source, compiler, content] = ["1a", "2b", "3c"].map(str::to_owned);
        let built = Built { identity: identity.clone(), source, compiler, content };
        assert_eq!(built.name(), "record-open-mpi-5.0.0-rc1-1a-2b-3c.so");
        let read = Built::parse(&built.name()).unwrap();
        assert_eq!((read.identity, read.content.as_str()), (identity, "3c"));
        assert!(Built::parse("record-other-1-2-3-4.so").is_none() && Built::parse("lock").is_none());
    }

    #[test]
    fn the_program_says_which_recorders_it_can_load() {
        let of_program = Mpi { implementation: None, abi: Some(Abi::Mpich) };
        assert!(of_program.has(Implementation::IntelMpi) && of_program.has(Implementation::Mpich));
        assert!(!of_program.has(Implementation::OpenMpi));
        let of_launcher = Mpi { implementation: Some(Implementation::Mpich), ..of_program };
        assert!(!of_launcher.has(Implementation::IntelMpi) && of_launcher.may_use(Implementation::IntelMpi));
        assert!(Mpi::default().has(Implementation::OpenMpi));
    }

    #[test]
    fn a_recorder_is_found_in_the_cache_by_the_mpi_of_the_program() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::open(Some(&folder.path().join("cache"))).unwrap();
        let build = |implementation, version: &str, source: String, contents: &[u8]| {
            let identity = Identity { implementation, version: version.into() };
            let (compiler, content) = ("2b".into(), hash(contents, DIGITS));
            let name = Built { identity, source, compiler, content }.name();
            fs::write(cache.0.join(&name), contents).unwrap();
        };
        build(Implementation::OpenMpi, "4.1.4", source_hash(), b"open");
        build(Implementation::Mpich, "4.0.2", source_hash(), b"first");
        build(Implementation::Mpich, "4.1.0", "of another hopmap".replace(' ', ""), b"other");
        let of_program = |abi| Mpi { implementation: None, abi: Some(abi) };
        let found = |mpi: Mpi, version| {
            cache.library(mpi, version).unwrap().map(|library| library.identity.to_string())
        };
        assert_eq!(found(of_program(Abi::Mpich), None).as_deref(), Some("MPICH 4.0.2"));
        assert_eq!(found(of_program(Abi::OpenMpi), None).as_deref(), Some("Open MPI 4.1.4"));
        build(Implementation::IntelMpi, "2021.8", source_hash(), b"intel");
        assert_eq!(found(of_program(Abi::Mpich), Some("4.0.2")).as_deref(), Some("MPICH 4.0.2"));
        let intel = Mpi { implementation: Some(Implementation::IntelMpi), abi: None };
        assert_eq!(found(intel, None).as_deref(), Some("Intel MPI 2021.8"));
    }
}
