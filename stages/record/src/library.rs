//! The compiled recorder: built once per MPI with its `mpicc`, and kept in a cache.
//!
//! Ranks load the library with their user's rights, so that the cache belongs to this user alone (mode 0700),
//! and the name of a library contains the hash of its contents: `record-MPI-VERSION-SOURCE-CONTENT.so`.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use hopmap_durable::{Staging, replace_file};
use hopmap_mpi_environment::{Identity, Implementation, host_name};
use hopmap_process::{Limits, run};

use crate::error::RecordError;
use crate::source::source;

/// Hexadecimal digits of a hash in a name.
const DIGITS: usize = 32;
/// Time limit of a compiler.
const TIME: Duration = Duration::from_mins(2);

/// The folder of the cache: the given one, or that of the user.
pub fn cache(given: Option<&Path>) -> Result<PathBuf, RecordError> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    given
        .map(Path::to_owned)
        .or_else(|| Some(variable("XDG_CACHE_HOME")?.join("hopmap")))
        .or_else(|| Some(variable("HOME")?.join(".cache/hopmap")))
        .ok_or_else(|| RecordError::NoCache { host: host_name() })
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
    /// Looks for a compiler of this MPI (of any without): the given program, one next to the launcher,
    /// `mpicc`, and Debian's names.
    pub fn find(
        given: Option<&str>,
        launcher: Option<&str>,
        mpi: Option<Implementation>,
    ) -> Result<Self, RecordError> {
        let beside = launcher
            .filter(|name| name.contains('/'))
            .and_then(|name| Some(Path::new(name).parent()?.join("mpicc").to_string_lossy().into_owned()));
        let usual = ["mpicc", "mpicc.openmpi", "mpicc.mpich"].map(str::to_owned);
        let candidates: Vec<String> = match given {
            Some(given) => vec![given.to_owned()],
            None => beside.into_iter().chain(usual).collect(),
        };
        let mut tried = Vec::new();
        for program in candidates {
            match Identity::of_compiler(&program) {
                Ok(identity) if mpi.is_none_or(|mpi| mpi == identity.implementation) => {
                    return Ok(Self { program, identity });
                }
                Ok(identity) => tried.push(format!("{program} is of {}", identity.implementation)),
                Err(error) if given.is_some() => return Err(error.into()),
                Err(_) => tried.push(format!("{program} is missing")),
            }
        }
        let implementation = mpi.unwrap_or(Implementation::OpenMpi);
        Err(RecordError::NoCompiler { implementation, tried: tried.join(", ") })
    }

    /// The recorder for this MPI, from the cache or built.
    pub fn library(&self, cache: &Path) -> Result<PathBuf, RecordError> {
        make_private(cache)?;
        let start = format!("{}{}-", prefix(&self.identity), self.fingerprint()?);
        if let Some(library) = cached(cache, &start)? {
            return Ok(library);
        }
        // One process per host builds, the others wait for it.
        let lock_path = cache.join("lock");
        let lock = File::create(&lock_path).map_err(RecordError::io("create", &lock_path))?;
        lock.lock().map_err(RecordError::io("lock", &lock_path))?;
        match cached(cache, &start)? {
            Some(library) => Ok(library),
            None => self.build(cache, &start),
        }
    }

    /// What the library depends on: our sources, and how the compiler calls the C compiler.
    fn fingerprint(&self) -> Result<String, RecordError> {
        let mut hasher = blake3::Hasher::new();
        hasher.update(source("").as_bytes());
        for text in [
            include_str!("procedures.csv"),
            include_str!("source.rs"),
            include_str!("events.rs"),
            include_str!("library.rs"),
        ] {
            hasher.update(text.as_bytes());
        }
        hasher.update(&self.output(&["-show"])?);
        Ok(hasher.finalize().to_hex()[..DIGITS].to_owned())
    }

    fn build(&self, cache: &Path, start: &str) -> Result<PathBuf, RecordError> {
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
        let shown = String::from_utf8_lossy(&self.output(&["-show"])?).into_owned();
        let linker = shown.split_whitespace().next().unwrap_or("cc");
        output(linker, &["-shared", &object, "-o", &library, "-lpthread", "-ldl"])?;
        let contents = fs::read(path("record.so")).map_err(RecordError::io("read", &path("record.so")))?;
        let place = cache.join(format!("{start}{}.so", hash(&contents)));
        replace_file(&place, &contents)?;
        Ok(place)
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

/// The newest recorder in the cache for an MPI without a compiler, as on compute nodes.
pub fn cached_for(cache: &Path, mpi: &Identity) -> Result<Option<PathBuf>, RecordError> {
    if !cache.is_dir() {
        return Ok(None);
    }
    make_private(cache)?;
    cached(cache, &prefix(mpi))
}

fn prefix(mpi: &Identity) -> String {
    let name = mpi.implementation.to_string().to_lowercase().replace(' ', "-");
    format!("record-{name}-{}-", mpi.version)
}

/// The newest library of the cache whose name begins with this; checked.
fn cached(cache: &Path, start: &str) -> Result<Option<PathBuf>, RecordError> {
    let entries = fs::read_dir(cache).map_err(RecordError::io("read", cache))?;
    let mut found: Vec<(i64, PathBuf)> = entries
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(start))
        .filter(|entry| entry.path().extension().is_some_and(|ending| ending == "so"))
        .filter_map(|entry| Some((entry.metadata().ok()?.mtime(), entry.path())))
        .collect();
    found.sort();
    found.pop().map(|(_, path)| check(&path).map(|()| path)).transpose()
}

fn check(library: &Path) -> Result<(), RecordError> {
    check_owner(library)?;
    let contents = fs::read(library).map_err(RecordError::io("read", library))?;
    let name = library.file_stem().unwrap_or_default().to_string_lossy();
    if name.ends_with(&hash(&contents)) { Ok(()) } else { Err(refused(library, "has been changed")) }
}

fn hash(contents: &[u8]) -> String {
    blake3::hash(contents).to_hex()[..DIGITS].to_owned()
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
