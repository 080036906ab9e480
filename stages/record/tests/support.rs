//! Compiled programs, and `hopmap record` as a program.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use hopmap_recording::{Calls, Recording};
use hopmap_test_support::{program, system_tests};

/// The MPIs of Debian, by the endings of their programs; none if these tests do not run.
pub(crate) fn mpis() -> Vec<&'static str> {
    let is_here = |mpi: &&str| program(&format!("mpicc.{mpi}")).is_some();
    if system_tests() { ["openmpi", "mpich"].into_iter().filter(is_here).collect() } else { Vec::new() }
}

/// `$XDG_CACHE_HOME` of all tests: the recorders are built once.
pub(crate) fn cache() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}

/// A program of the tests, compiled into the folder.
pub(crate) fn compiled(folder: &Path, compiler: &str, source: &str, options: &[&str]) -> PathBuf {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(source);
    let to = folder.join(format!("{source}.{compiler}"));
    let output =
        Command::new(compiler).arg("-w").args(options).arg("-o").arg(&to).arg(&from).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    to
}

/// A program of this text.
pub(crate) fn program_of(folder: &Path, compiler: &str, text: &str, options: &[&str]) -> PathBuf {
    let from = folder.join("program.c");
    std::fs::write(&from, text).unwrap();
    compiled(folder, compiler, from.to_str().unwrap(), options)
}

/// What every launcher of these tests needs: more ranks than cores, and none that waits busily.
pub(crate) fn prepared(command: &mut Command) -> &mut Command {
    command
        .envs(hopmap_mpi_environment::AS_ROOT)
        .env("OMPI_MCA_rmaps_base_oversubscribe", "1")
        .env("OMPI_MCA_mpi_yield_when_idle", "1")
        .env("OMPI_MCA_hwloc_base_binding_policy", "none")
        .env_remove("LD_PRELOAD")
}

/// `hopmap record` with these arguments, separated by spaces.
pub(crate) fn record(folder: &Path, arguments: &str) -> Output {
    recording(folder, arguments).output().unwrap()
}

/// The same, before it starts.
pub(crate) fn recording(folder: &Path, arguments: &str) -> Command {
    let mut command = Command::new(recorder());
    command.current_dir(folder).args(arguments.split(' ')).env("XDG_CACHE_HOME", cache());
    prepared(&mut command);
    command
}

/// The example that is the command.
pub(crate) fn recorder() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let path = tests.parent().and_then(Path::parent).unwrap().join("examples/record");
    assert!(path.is_file(), "build {} first: cargo build --examples", path.display());
    path
}

pub(crate) fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Runs a compiled program with these ranks and the recorder; what it has printed per rank, and the recording.
pub(crate) fn recorded(folder: &Path, mpi: &str, ranks: u32, program: &Path) -> (Vec<String>, Recording) {
    let arguments = format!("--events -o to -- mpirun.{mpi} -n {ranks} {} said", program.display());
    let output = record(folder, &arguments);
    assert!(output.status.success(), "{}", text(&output));
    let recording = Recording::read(&folder.join("to")).unwrap();
    assert_eq!(recording.incomplete, None);
    (said(folder, ranks), recording)
}

/// What each rank of a program has printed to `said-RANK`.
pub(crate) fn said(folder: &Path, ranks: u32) -> Vec<String> {
    (0..ranks).map(|rank| std::fs::read_to_string(folder.join(format!("said-{rank}"))).unwrap()).collect()
}

/// The calls of one rank.
pub(crate) fn of_rank(recording: &Recording, rank: u32) -> impl Iterator<Item = &Calls> {
    recording.calls.iter().filter(move |calls| calls.rank == rank)
}
