//! C programs and libraries of hopmap that need the `mpi.h` of the user: compiled once per MPI with its `mpicc`, and
//! kept in a cache.
//!
//! Ranks run them with their user's rights, so that the cache belongs to this user alone (mode 0700), and the name
//! of a file contains the hash of its contents.

use std::fs::{self, File};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use std::{fmt, io};

use hopmap_durable::{DurableError, Staging, replace_file};
use hopmap_process::{Limits, RunError, run};
use miette::Diagnostic;

use crate::{Abi, Identity, Implementation, MpiError, host_name};

/// Hexadecimal digits of the hash of a library, and of those of what it depends on.
const DIGITS: usize = 32;
const SHORT: usize = 16;
/// Time limit of a compiler.
const TIME: Duration = Duration::from_mins(2);

/// C sources for any MPI.
pub struct Sources<'a> {
    /// The first word of the names of files in the cache.
    pub name: &'static str,
    /// The end of these names, such as `.so`.
    pub suffix: &'static str,
    /// What messages call it, such as `the recorder`.
    pub title: &'static str,
    /// Everything that the result depends on beside the compiler, so that none of another hopmap is used.
    pub hash: String,
    /// Compiles in an empty folder; returns the path of the result.
    pub build: &'a dyn Fn(&Compiler, &Path) -> Result<PathBuf, CompilerError>,
}

impl Sources<'_> {
    /// The hash of texts.
    #[must_use]
    pub fn hash_of(texts: &[&str]) -> String {
        hash(texts.concat().as_bytes(), SHORT)
    }
}

/// The folder of what was compiled.
#[derive(Debug, Clone)]
pub struct Cache(PathBuf);

/// The folder of the user's cache, which may not exist; none without a home folder.
#[must_use]
pub fn cache_folder() -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let own = || Some(variable("HOME")?.join(".cache/hopmap"));
    variable("XDG_CACHE_HOME").map(|caches| caches.join("hopmap")).or_else(own)
}

impl Cache {
    /// Opens the given folder or that of the user; it is made if it is missing, and checked.
    pub fn open(given: Option<&Path>) -> Result<Self, CompilerError> {
        let path = given
            .map(Path::to_owned)
            .or_else(cache_folder)
            .ok_or_else(|| CompilerError::NoCache { host: host_name() })?;
        make_private(&path)?;
        let path = fs::canonicalize(&path).map_err(CompilerError::io("read", &path))?;
        match path.to_str().is_some_and(|text| !text.contains([' ', ':', ',', ';'])) {
            true => Ok(Self(path)),
            false => Err(refused(&path, "has a character in its name that separates libraries")),
        }
    }

    /// The best file that is compiled for an MPI like this: of the same version, else the newest one. For hosts
    /// without a compiler.
    pub fn compiled(
        &self,
        sources: &Sources<'_>,
        mpi: Mpi,
        version: Option<&str>,
    ) -> Result<Option<Compiled>, CompilerError> {
        self.best(sources, |name| {
            let is_of_version = Some(name.identity.version.as_str()) == version;
            mpi.has(name.identity.implementation).then_some(is_of_version)
        })
    }

    /// The file of the highest rank, and the newest of them; checked.
    fn best(
        &self,
        sources: &Sources<'_>,
        rank: impl Fn(&FileName) -> Option<bool>,
    ) -> Result<Option<Compiled>, CompilerError> {
        let entries = fs::read_dir(&self.0).map_err(CompilerError::io("read", &self.0))?.flatten();
        let found = entries.filter_map(|entry| {
            let name = FileName::parse(sources, entry.file_name().to_str()?)?;
            let rank = rank(&name).filter(|_| name.source == sources.hash)?;
            Some((rank, entry.metadata().ok()?.mtime(), entry.path(), name))
        });
        let best = found.max_by(|a, b| (a.0, a.1, &a.2).cmp(&(b.0, b.1, &b.2)));
        let Some((.., path, name)) = best else { return Ok(None) };
        check_owner(&path)?;
        let contents = fs::read(&path).map_err(CompilerError::io("read", &path))?;
        match hash(&contents, DIGITS) == name.content {
            true => Ok(Some(Compiled { path, contents, identity: name.identity })),
            false => Err(refused(&path, "has been changed")),
        }
    }
}

/// A compiled program or library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compiled {
    /// Its file in the cache, which is not executable.
    pub path: PathBuf,
    /// What is in the file.
    pub contents: Vec<u8>,
    /// The MPI that it is compiled for.
    pub identity: Identity,
}

/// The name of a file in the cache: `NAME-MPI-VERSION-SOURCE-COMPILER-CONTENT.SUFFIX`.
struct FileName {
    identity: Identity,
    source: String,
    compiler: String,
    content: String,
}

impl FileName {
    fn parse(sources: &Sources<'_>, text: &str) -> Option<Self> {
        let text = text.strip_suffix(sources.suffix)?;
        let (implementation, rest) = Implementation::MPIS.iter().find_map(|implementation| {
            Some((*implementation, text.strip_prefix(&beginning(sources, *implementation))?))
        })?;
        // Versions may contain hyphens.
        let mut parts = rest.rsplitn(4, '-').map(str::to_owned);
        let (content, compiler, source, version) =
            (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        Some(Self { identity: Identity { implementation, version }, source, compiler, content })
    }

    fn text(&self, sources: &Sources<'_>) -> String {
        let Self { identity: Identity { implementation, version }, source, compiler, content } = self;
        let (beginning, suffix) = (beginning(sources, *implementation), sources.suffix);
        format!("{beginning}{version}-{source}-{compiler}-{content}{suffix}")
    }
}

/// `record-open-mpi-`
fn beginning(sources: &Sources<'_>, implementation: Implementation) -> String {
    format!("{}-{}-", sources.name, implementation.to_string().to_lowercase().replace(' ', "-"))
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

    /// Whether a program can use this implementation: the user may know better which MPI it is.
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
    pub fn named(program: &str, mpi: Mpi) -> Result<Self, CompilerError> {
        let identity = Identity::of_compiler(program).map_err(|source| CompilerError::Mpicc {
            program: program.to_owned(),
            mpi: mpi.to_string(),
            source,
        })?;
        match mpi.may_use(identity.implementation) {
            true => Ok(Self { program: program.to_owned(), identity }),
            false => Err(CompilerError::Missing {
                mpi: mpi.to_string(),
                tried: format!("{program} is of {}", identity.implementation),
            }),
        }
    }

    /// Looks for a compiler of an MPI: next to the launcher, `mpicc`, and Debian's names.
    pub fn find(launcher: Option<&str>, mpi: Mpi) -> Result<Self, CompilerError> {
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
        Err(CompilerError::Missing { mpi: mpi.to_string(), tried: tried.join(", ") })
    }

    /// The sources compiled with the named compiler, or one of the launcher's MPI, or what the cache has where there
    /// is no compiler, as on compute nodes.
    pub fn compile_for(
        sources: &Sources<'_>,
        cache: &Cache,
        named: Option<&str>,
        launcher: Option<(&str, Option<&Identity>)>,
        mpi: Mpi,
        say: &dyn Fn(String),
    ) -> Result<Compiled, CompilerError> {
        if let Some(program) = named {
            return Self::named(program, mpi)?.compile(sources, cache, say);
        }
        match Self::find(launcher.map(|(program, _)| program), mpi) {
            Ok(compiler) => compiler.compile(sources, cache, say),
            Err(error) => {
                let version = launcher.and_then(|(_, identity)| Some(&*identity?.version));
                cache.compiled(sources, mpi, version)?.ok_or(error)
            }
        }
    }

    /// The file for this MPI, from the cache or compiled; `say` tells the user before that takes seconds.
    pub fn compile(
        &self,
        sources: &Sources<'_>,
        cache: &Cache,
        say: &dyn Fn(String),
    ) -> Result<Compiled, CompilerError> {
        let compiler = hash(self.shown()?.as_bytes(), SHORT);
        let cached = || {
            cache.best(sources, |name| {
                (name.compiler == compiler && name.identity == self.identity).then_some(true)
            })
        };
        if let Some(compiled) = cached()? {
            return Ok(compiled);
        }
        // One process per host compiles, the others wait for it.
        let lock_path = cache.0.join("lock");
        let lock = File::create(&lock_path).map_err(CompilerError::io("create", &lock_path))?;
        lock.lock().map_err(CompilerError::io("lock", &lock_path))?;
        if let Some(compiled) = cached()? {
            return Ok(compiled);
        }
        say(format!("building {} for {} with {} (once)", sources.title, self.identity, self.program));
        let staging = Staging::new(&cache.0)?;
        let built = (sources.build)(self, staging.path())?;
        let contents = fs::read(&built).map_err(CompilerError::io("read", &built))?;
        let (identity, source) = (self.identity.clone(), sources.hash.clone());
        let name = FileName { identity, source, compiler, content: hash(&contents, DIGITS) };
        let path = cache.0.join(name.text(sources));
        replace_file(&path, &contents)?;
        Ok(Compiled { path, contents, identity: name.identity })
    }

    /// The command line of the C compiler behind it.
    pub fn shown(&self) -> Result<String, CompilerError> {
        Ok(String::from_utf8_lossy(&self.output(&["-show"])?).into_owned())
    }

    /// Runs the compiler; returns its standard output.
    pub fn output(&self, arguments: &[&str]) -> Result<Vec<u8>, CompilerError> {
        output(&self.program, arguments)
    }
}

/// Runs a program of a compiler; returns its standard output.
pub fn output(program: &str, arguments: &[&str]) -> Result<Vec<u8>, CompilerError> {
    let limits = Limits { time: Some(TIME), ..Limits::default() };
    run(Command::new(program).args(arguments), &limits)
        .map(|output| output.stdout)
        .map_err(CompilerError::Build)
}

fn hash(contents: &[u8], digits: usize) -> String {
    blake3::hash(contents).to_hex()[..digits].to_owned()
}

fn make_private(cache: &Path) -> Result<(), CompilerError> {
    let parents = cache.parent().map_or(Ok(()), fs::create_dir_all);
    parents.map_err(CompilerError::io("create", cache))?;
    match fs::DirBuilder::new().mode(0o700).create(cache) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(CompilerError::io("create", cache)(error));
        }
        _ => {}
    }
    check_owner(cache)
}

fn check_owner(path: &Path) -> Result<(), CompilerError> {
    let metadata = fs::metadata(path).map_err(CompilerError::io("read", path))?;
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(refused(path, "belongs to another user"));
    }
    if metadata.mode() & 0o022 != 0 { Err(refused(path, "can be changed by other users")) } else { Ok(()) }
}

fn refused(path: &Path, problem: &'static str) -> CompilerError {
    CompilerError::Cache { path: path.to_owned(), host: host_name(), problem }
}

/// Why something cannot be compiled for an MPI.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum CompilerError {
    /// A file cannot be written or read.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Durable(#[from] DurableError),
    /// The compiler that the user has named is missing or unknown.
    #[error("`{program}` is not a compiler of {mpi}")]
    #[diagnostic(
        code(compiler::mpicc),
        help("name the mpicc of the MPI that is used, or leave the compiler (`mpicc`) out")
    )]
    Mpicc {
        /// The program.
        program: String,
        /// The MPI that is used.
        mpi: String,
        /// Why it cannot be used.
        source: MpiError,
    },
    /// No compiler belongs to the MPI that is used.
    #[error("no mpicc of {mpi} is installed: {tried}")]
    #[diagnostic(
        code(compiler::missing),
        help(
            "install it (on Debian `apt-get install libopenmpi-dev` or `libmpich-dev`), load its module, or name it: \
             --mpicc, in a pipeline file `mpicc`; hopmap record --method openmpi needs none"
        )
    )]
    Missing {
        /// The MPI.
        mpi: String,
        /// The programs that were tried, and what they are.
        tried: String,
    },
    /// The compiler fails.
    #[error("a program of MPI cannot be built: {0}")]
    #[diagnostic(code(compiler::build), help("check that {compiler} compiles C programs", compiler = .0.command.split(' ').next().unwrap_or("mpicc")))]
    Build(RunError),
    /// Others could have changed what ranks would run.
    #[error("{} on {host} {problem}", path.display())]
    #[diagnostic(
        code(compiler::cache),
        help(
            "ranks run a program from there: remove it, or name a folder of your own with XDG_CACHE_HOME or --cache"
        )
    )]
    Cache {
        /// The folder or file.
        path: PathBuf,
        /// This host.
        host: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The cache has no place.
    #[error("no cache folder is known on {host}: neither XDG_CACHE_HOME nor HOME is set")]
    #[diagnostic(
        code(compiler::no_cache),
        help("set XDG_CACHE_HOME to a folder of your own, or name one with hopmap record --cache")
    )]
    NoCache {
        /// This host.
        host: String,
    },
}

impl CompilerError {
    /// Wraps an I/O error.
    pub fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let wrap = DurableError::io(action, path);
        move |error| wrap(error).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources() -> Sources<'static> {
        let build = &|_: &Compiler, folder: &Path| Ok(folder.to_owned());
        Sources { name: "record", suffix: ".so", title: "the recorder", hash: "1a".into(), build }
    }

    #[test]
    fn names_of_files_are_read_back() {
        let identity = Identity { implementation: Implementation::OpenMpi, version: "5.0.0-rc1".into() };
        let [source, compiler, content] = ["1a", "2b", "3c"].map(str::to_owned);
        let name = FileName { identity: identity.clone(), source, compiler, content }.text(&sources());
        assert_eq!(name, "record-open-mpi-5.0.0-rc1-1a-2b-3c.so");
        let parse = |name: &str| FileName::parse(&sources(), name);
        let read = parse(&name).unwrap();
        assert_eq!((read.identity, read.content.as_str()), (identity, "3c"));
        assert!(parse("record-other-1-2-3-4.so").is_none() && parse("lock").is_none());
    }

    #[test]
    fn the_program_says_which_libraries_it_can_load() {
        let of_program = Mpi { implementation: None, abi: Some(Abi::Mpich) };
        assert!(of_program.has(Implementation::IntelMpi) && of_program.has(Implementation::Mpich));
        assert!(!of_program.has(Implementation::OpenMpi));
        let of_launcher = Mpi { implementation: Some(Implementation::Mpich), ..of_program };
        assert!(!of_launcher.has(Implementation::IntelMpi) && of_launcher.may_use(Implementation::IntelMpi));
        assert!(Mpi::default().has(Implementation::OpenMpi));
    }

    #[test]
    fn a_file_is_found_in_the_cache_by_the_mpi_of_the_program() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::open(Some(&folder.path().join("cache"))).unwrap();
        let build = |implementation, version: &str, source: &str, contents: &[u8]| {
            let identity = Identity { implementation, version: version.into() };
            let (source, compiler, content) = (source.into(), "2b".into(), hash(contents, DIGITS));
            let name = FileName { identity, source, compiler, content }.text(&sources());
            fs::write(cache.0.join(&name), contents).unwrap();
        };
        build(Implementation::OpenMpi, "4.1.4", "1a", b"open");
        build(Implementation::Mpich, "4.0.2", "1a", b"first");
        build(Implementation::Mpich, "4.1.0", "other", b"other");
        let of_program = |abi| Mpi { implementation: None, abi: Some(abi) };
        let found = |mpi: Mpi, version| {
            cache.compiled(&sources(), mpi, version).unwrap().map(|compiled| compiled.identity.to_string())
        };
        assert_eq!(found(of_program(Abi::Mpich), None).as_deref(), Some("MPICH 4.0.2"));
        assert_eq!(found(of_program(Abi::OpenMpi), None).as_deref(), Some("Open MPI 4.1.4"));
        build(Implementation::IntelMpi, "2021.8", "1a", b"intel");
        assert_eq!(found(of_program(Abi::Mpich), Some("4.0.2")).as_deref(), Some("MPICH 4.0.2"));
        let intel = Mpi { implementation: Some(Implementation::IntelMpi), abi: None };
        assert_eq!(found(intel, None).as_deref(), Some("Intel MPI 2021.8"));
    }
}
