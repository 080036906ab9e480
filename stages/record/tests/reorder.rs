//! `hopmap reorder`: ranks are where the mapping has them, and programs do what they do without it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use hopmap_mpi_environment::host_name;
use hopmap_recording::Recording;

use crate::support::{cache, compiled, mpis, prepared, program_of, recorder, said, text};

const FORTRAN: [&str; 2] = ["-ffree-line-length-none", "-fallow-argument-mismatch"];

/// A mapping by index.
fn mapping(folder: &Path, processes: &[u32]) -> PathBuf {
    let lines = processes.iter().enumerate().map(|(rank, process)| format!("{rank} {process}\n"));
    let path = folder.join("mapping");
    fs::write(&path, lines.collect::<String>()).unwrap();
    path
}

/// The launcher of an MPI behind `hopmap reorder`, before it starts.
fn reordering(folder: &Path, mapping: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(recorder());
    command.current_dir(folder).args(["reorder", "--mapping"]).arg(mapping).arg("--").args(words);
    command.env("XDG_CACHE_HOME", cache()).stdin(Stdio::null());
    prepared(&mut command);
    command
}

fn reorder(folder: &Path, mapping: &Path, words: &[&str]) -> Output {
    reordering(folder, mapping, words).output().unwrap()
}

/// Groups, communicators, windows, files, attributes, handlers of errors: with the rank of each process beside.
#[test]
fn ranks_are_where_the_mapping_has_them_and_the_world_is_the_world() {
    for mpi in mpis() {
        let folder = tempfile::tempdir().unwrap();
        let program = compiled(folder.path(), &format!("mpicc.{mpi}"), "world.c", &[]);
        for processes in [[0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1]] {
            let mapping = mapping(folder.path(), &processes);
            let words = [&format!("mpirun.{mpi}"), "-n", "4", program.to_str().unwrap()];
            let output = reorder(folder.path(), &mapping, &words);
            assert!(output.status.success(), "{mpi}: {}", text(&output));
            assert!(output.stdout.is_empty(), "{mpi}: {}", text(&output));
            assert_eq!(said(folder.path(), 4), processes.map(|process| process.to_string()), "{mpi}");
        }
    }
}

/// Each procedure of C and Fortran, alone and reversed: the same output, and the same recording.
#[test]
fn programs_do_the_same_and_are_recorded_the_same() {
    for mpi in mpis() {
        for (source, compiler, options) in [
            ("every.c", "mpicc", &[][..]),
            ("every.F90", "mpifort", &FORTRAN),
            ("every.F90", "mpifort", &[FORTRAN[0], FORTRAN[1], "-DMODULE=mpi_f08", "-DF08"]),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let program = compiled(folder.path(), &format!("{compiler}.{mpi}"), source, options);
            let (program, recorder) = (program.to_str().unwrap(), recorder());
            let launcher = format!("mpirun.{mpi}");
            let run = |processes: &[u32], to: &str| {
                let mapping = mapping(folder.path(), processes);
                let words = [&launcher, "-n", "2", recorder.to_str().unwrap(), "-o", to, program, "said"];
                let output = reorder(folder.path(), &mapping, &words);
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
    for mpi in mpis() {
        let folder = tempfile::tempdir().unwrap();
        let source = "#include <mpi.h>\n#include <stdio.h>\nint main(void) { MPI_Init(0, 0); puts(\"work\"); MPI_Finalize(); }";
        let program = program_of(folder.path(), &format!("mpicc.{mpi}"), source, &[]);
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
            let words = [&format!("mpirun.{mpi}"), "-n", "2", program.to_str().unwrap()];
            let output = reorder(folder.path(), &path, &words);
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
    for mpi in mpis() {
        let folder = tempfile::tempdir().unwrap();
        let program = compiled(folder.path(), &format!("mpicc.{mpi}"), "world.c", &[]);
        let mapping = mapping(folder.path(), &[1, 0]);
        let (program, recorder) = (program.to_str().unwrap(), recorder());
        let recorder = recorder.to_str().unwrap();
        let inside = [recorder, "reorder", "--mapping", mapping.to_str().unwrap(), program];
        let words = [&["-n", "1"], &inside[..], &[":", "-n", "1", program]].concat();
        let mut command = Command::new(format!("mpirun.{mpi}"));
        command.current_dir(folder.path()).args(words).env("XDG_CACHE_HOME", cache());
        let output = prepared(&mut command).env("HOPMAP_REORDER_SECONDS", "2").output().unwrap();
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
    for mpi in mpis() {
        let folder = tempfile::tempdir().unwrap();
        let program = program_of(folder.path(), &format!("mpicc.{mpi}"), source, &[]);
        let mapping = mapping(folder.path(), &[2, 1, 0]);
        fs::write(folder.path().join("input"), "42\n").unwrap();
        let words = [&format!("mpirun.{mpi}"), "-n", "3", program.to_str().unwrap()];
        let input = fs::File::open(folder.path().join("input")).unwrap();
        let output = reordering(folder.path(), &mapping, &words).stdin(input).output().unwrap();
        let said = text(&output);
        assert!(output.status.success() && said.contains("read 42"), "{mpi}: {said}");
        assert!(
            said.contains("with the standard input, and rank 2 is where the mapping has rank 0"),
            "{said}"
        );
    }
}
