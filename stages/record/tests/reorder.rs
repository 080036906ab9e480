//! `hopmap reorder`: ranks are where the mapping has them, and programs do what they do without it.

use std::fmt::{self, Display, Formatter};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use hopmap_mpi_environment::host_name;
use hopmap_recording::Recording;
use hopmap_test_support::{program, system_tests};

use crate::support::{cache, mpis, prepared, recorder, said, text};

const FORTRAN: [&str; 2] = ["-ffree-line-length-none", "-fallow-argument-mismatch"];

/// An MPI: what its programs end with, or the folder that has them.
struct Mpi {
    name: String,
    bin: Option<PathBuf>,
}

impl Mpi {
    /// Those of Debian, and those of `ci/mpi.sh`.
    fn all() -> Vec<Self> {
        let others = std::env::var_os("HOPMAP_MPIS").filter(|_| system_tests());
        let folders = others.map(|folder| fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()));
        let other = |folder: PathBuf| {
            let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
            Self { name, bin: Some(folder.join("bin")) }
        };
        let debian = mpis().into_iter().map(|name| Self { name: name.to_owned(), bin: None });
        debian.chain(folders.into_iter().flatten().map(other)).collect()
    }

    /// One of its programs, such as `mpirun`.
    fn program(&self, name: &str) -> String {
        match &self.bin {
            Some(bin) => bin.join(name).to_str().unwrap().to_owned(),
            None => format!("{name}.{}", self.name),
        }
    }

    fn launcher(&self) -> String {
        self.program("mpirun")
    }

    /// Compiles a program of the tests; none if it has no such compiler.
    fn compiled(&self, folder: &Path, compiler: &str, source: &str, options: &[&str]) -> Option<PathBuf> {
        let compiler = self.program(compiler);
        program(&compiler)?;
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(source);
        let to = folder.join(format!("program.{}", self.name));
        let mut command = Command::new(compiler);
        command.arg("-w").args(options).arg("-o").arg(&to).arg(&from);
        let output = self.prepared(&mut command).output().unwrap();
        assert!(output.status.success(), "{}: {}", self.name, text(&output));
        Some(to)
    }

    /// A program of this text.
    fn program_of(&self, folder: &Path, text: &str) -> PathBuf {
        let from = folder.join("program.c");
        fs::write(&from, text).unwrap();
        self.compiled(folder, "mpicc", from.to_str().unwrap(), &[]).unwrap()
    }

    /// Variables that it needs.
    fn prepared<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        prepared(command);
        if let Some(bin) = &self.bin {
            let path = std::env::var("PATH").unwrap();
            command
                .env("PATH", format!("{}:{path}", bin.display()))
                .env("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe")
                .env("I_MPI_FABRICS", "shm")
                .env("I_MPI_ROOT", bin.parent().unwrap());
        }
        command
    }
}

impl Display for Mpi {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// A mapping by index.
fn mapping(folder: &Path, processes: &[u32]) -> PathBuf {
    let lines = processes.iter().enumerate().map(|(rank, process)| format!("{rank} {process}\n"));
    let path = folder.join("mapping");
    fs::write(&path, lines.collect::<String>()).unwrap();
    path
}

/// The launcher of an MPI behind `hopmap reorder`, before it starts.
fn reordering(mpi: &Mpi, folder: &Path, mapping: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(recorder());
    command.current_dir(folder).args(["reorder", "--mapping"]).arg(mapping).arg("--").args(words);
    command.env("XDG_CACHE_HOME", cache()).stdin(Stdio::null());
    mpi.prepared(&mut command);
    command
}

fn reorder(mpi: &Mpi, folder: &Path, mapping: &Path, words: &[&str]) -> Output {
    reordering(mpi, folder, mapping, words).output().unwrap()
}

/// Groups, communicators, windows, files, attributes, handlers of errors: with the rank of each process beside.
#[test]
fn ranks_are_where_the_mapping_has_them_and_the_world_is_the_world() {
    for mpi in Mpi::all() {
        let folder = tempfile::tempdir().unwrap();
        let program = mpi.compiled(folder.path(), "mpicc", "world.c", &[]).unwrap();
        for processes in [[0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1]] {
            let mapping = mapping(folder.path(), &processes);
            let words = [&*mpi.launcher(), "-n", "4", program.to_str().unwrap()];
            let output = reorder(&mpi, folder.path(), &mapping, &words);
            assert!(output.status.success(), "{mpi}: {}", text(&output));
            assert!(output.stdout.is_empty(), "{mpi}: {}", text(&output));
            assert_eq!(said(folder.path(), 4), processes.map(|process| process.to_string()), "{mpi}");
        }
    }
}

/// Each procedure of C and Fortran, alone and reversed: the same output, and the same recording.
#[test]
fn programs_do_the_same_and_are_recorded_the_same() {
    for mpi in Mpi::all() {
        for (source, compiler, options) in [
            ("every.c", "mpicc", &[][..]),
            ("every.F90", "mpifort", &FORTRAN),
            ("every.F90", "mpifort", &[FORTRAN[0], FORTRAN[1], "-DMODULE=mpi_f08", "-DF08"]),
        ] {
            let folder = tempfile::tempdir().unwrap();
            // The wheel of Open MPI has no Fortran.
            let Some(program) = mpi.compiled(folder.path(), compiler, source, options) else { continue };
            let (program, recorder) = (program.to_str().unwrap(), recorder());
            let launcher = mpi.launcher();
            let run = |processes: &[u32], to: &str| {
                let mapping = mapping(folder.path(), processes);
                let words = [&launcher, "-n", "2", recorder.to_str().unwrap(), "-o", to, program, "said"];
                let output = reorder(&mpi, folder.path(), &mapping, &words);
                assert!(output.status.success(), "{mpi} {source}: {}", text(&output));
                let recording = Recording::read(&folder.path().join(to)).unwrap();
                assert_eq!(recording.incomplete, None);
                (said(folder.path(), 2), recording.traffic, recording.histogram)
            };
            assert_eq!(run(&[0, 1], "alone"), run(&[1, 0], "reversed"), "{mpi} {source} {options:?}");
        }
    }
}

/// One message, exit 1, and no work.
#[test]
fn a_mapping_that_does_not_fit_ends_all_ranks_before_the_program_works() {
    let host = host_name();
    for mpi in Mpi::all() {
        let folder = tempfile::tempdir().unwrap();
        let source = "#include <mpi.h>\n#include <stdio.h>\nint main(void) { MPI_Init(0, 0); puts(\"work\"); MPI_Finalize(); }";
        let program = mpi.program_of(folder.path(), source);
        for (mapping, expected) in [
            (
                format!("0 {host}\n1 elsewhere\n"),
                "the mapping puts rank 1 on elsewhere, where no process runs",
            ),
            (
                format!("0 {host}\n1 {host}\n2 {host}\n"),
                "the mapping has 3 ranks, and the launcher has started 2",
            ),
            ("0 0\n1 2\n".to_owned(), "the mapping does not give rank 1 a process of its own"),
        ] {
            let path = folder.path().join("wrong");
            fs::write(&path, mapping).unwrap();
            let words = [&*mpi.launcher(), "-n", "2", program.to_str().unwrap()];
            let output = reorder(&mpi, folder.path(), &path, &words);
            let said = text(&output);
            assert_eq!(output.status.code(), Some(1), "{mpi}: {said}");
            assert_eq!(said.matches(expected).count(), 1, "{mpi}: {said}");
            assert!(!said.contains("work\n"), "{mpi}: {said}");
        }
    }
}

/// Once such a process went on with the first order, and the others waited for it.
#[test]
fn a_process_without_the_library_is_named() {
    for mpi in Mpi::all() {
        let folder = tempfile::tempdir().unwrap();
        let program = mpi.compiled(folder.path(), "mpicc", "world.c", &[]).unwrap();
        let mapping = mapping(folder.path(), &[1, 0]);
        let (program, recorder) = (program.to_str().unwrap(), recorder());
        let recorder = recorder.to_str().unwrap();
        let inside = [recorder, "reorder", "--mapping", mapping.to_str().unwrap(), program];
        let words = [&["-n", "1"], &inside[..], &[":", "-n", "1", program]].concat();
        let mut command = Command::new(mpi.launcher());
        command.current_dir(folder.path()).args(words).env("XDG_CACHE_HOME", cache());
        let output = mpi.prepared(&mut command).env("HOPMAP_REORDER_SECONDS", "2").output().unwrap();
        let said = text(&output);
        assert!(!output.status.success(), "{mpi}: {said}");
        let expected = "1 of 2 processes have not loaded the library within 2 s: 1";
        assert!(said.contains(expected), "{mpi}: {said}");
    }
}

/// Launchers give it to their process 0.
#[test]
fn standard_input_stays_with_rank_0() {
    let source = "#include <mpi.h>\n#include <stdio.h>\nint main(void) { int rank, got = 0; MPI_Init(0, 0); \
                  MPI_Comm_rank(MPI_COMM_WORLD, &rank); if (!rank && scanf(\"%d\", &got) == 1) printf(\"read %d\\n\", got); \
                  MPI_Finalize(); }";
    for mpi in Mpi::all() {
        let folder = tempfile::tempdir().unwrap();
        let program = mpi.program_of(folder.path(), source);
        let mapping = mapping(folder.path(), &[2, 1, 0]);
        fs::write(folder.path().join("input"), "42\n").unwrap();
        let words = [&*mpi.launcher(), "-n", "3", program.to_str().unwrap()];
        let input = fs::File::open(folder.path().join("input")).unwrap();
        let output = reordering(&mpi, folder.path(), &mapping, &words).stdin(input).output().unwrap();
        let said = text(&output);
        assert!(output.status.success() && said.contains("read 42"), "{mpi}: {said}");
        assert!(
            said.contains("with the standard input, and rank 2 is where the mapping has rank 0"),
            "{said}"
        );
    }
}
