//! `hopmap record` with Debian's Open MPI and MPICH: programs in C and Fortran and LAMMPS, recorded in both ways, read and placed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use hopmap_test_support::{program, system_tests};

use crate::sandbox::{Sandbox, project};

/// An MPI by the ending of its programs.
pub(crate) const MPIS: [&str; 2] = ["openmpi", "mpich"];

/// Messages and bytes by source and destination.
type Matrix = BTreeMap<(u32, u32), (u64, u64)>;

/// The arguments of `hopmap record` outside of `mpirun` or inside.
#[derive(Clone, Copy)]
pub(crate) enum Form {
    Outside,
    Inside,
}

/// What all commands of these tests need; the recorders are built once for all.
pub(crate) fn prepared(mut command: Command, sandbox: &Sandbox) -> Command {
    command
        .current_dir(sandbox.path())
        .envs(hopmap_mpi_environment::AS_ROOT)
        // More processes than cores must not wait for each other busily.
        .env("OMPI_MCA_rmaps_base_oversubscribe", "1")
        .env("OMPI_MCA_mpi_yield_when_idle", "1")
        .env("OMPI_MCA_hwloc_base_binding_policy", "none")
        .env("TMPDIR", sandbox.path())
        .env("XDG_CACHE_HOME", Path::new(env!("CARGO_TARGET_TMPDIR")).join("recorders"))
        .env_remove("LD_PRELOAD");
    command
}

/// Compiles a program of the tests.
pub(crate) fn compile(sandbox: &Sandbox, compiler: &str, source: &Path, options: &[&str]) -> PathBuf {
    let binary = sandbox.path().join(source.file_stem().unwrap());
    let mut command = Command::new(compiler);
    command.args(["-O1", "-w"]).args(options).arg("-o").arg(&binary).arg(source);
    succeeded(&prepared(command, sandbox).output().unwrap());
    binary
}

pub(crate) fn shared(name: &str) -> PathBuf {
    project().join("tests/support/programs").join(name)
}

/// Compiles a program of one text in C.
fn compiled(sandbox: &Sandbox, mpi: &str, text: &str) -> PathBuf {
    sandbox.write("program.c", text);
    compile(sandbox, &format!("mpicc.{mpi}"), &sandbox.path().join("program.c"), &[])
}

fn succeeded(output: &Output) -> String {
    let (said, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}\n{errors}");
    format!("{said}{errors}")
}

/// `hopmap record` into the folder `to`.
pub(crate) fn record(
    sandbox: &Sandbox,
    form: Form,
    options: &[&str],
    launcher: &[&str],
    program: &[&str],
) -> Output {
    let command = match form {
        Form::Outside => {
            let mut command = sandbox.command(&["record", "-o", "to"]);
            command.args(options).arg("--").args(launcher).args(program);
            command
        }
        Form::Inside => {
            let mut command = Command::new(launcher[0]);
            command.args(&launcher[1..]).arg(assert_cmd::cargo::cargo_bin!("hopmap"));
            command.args(["record", "-o", "to"]).args(options).args(program);
            command
        }
    };
    prepared(command, sandbox).output().unwrap()
}

/// Messages of the program, as `trace/import` reads them.
fn matrix(sandbox: &Sandbox, folder: &str) -> Matrix {
    let path = format!("path={folder}");
    sandbox.stdout(&["exec", "trace/import", "-p", &path, "-p", "collectives=ignore", "--out", "graph"]);
    let edges = sandbox.stdout(&["show", "graph", "--table", "edges", "--format", "csv"]);
    edges
        .lines()
        .skip(1)
        .map(row)
        .map(|[from, to, messages, bytes]| ((from as u32, to as u32), (messages, bytes)))
        .collect()
}

fn row(line: &str) -> [u64; 4] {
    let numbers: Vec<u64> = line.split(',').map(|number| number.parse().unwrap()).collect();
    numbers.try_into().unwrap()
}

/// Places a recorded program on four hosts; the launch file names all ranks.
fn place(sandbox: &Sandbox, ranks: usize) {
    let slots = format!("slots={}", ranks.div_ceil(4));
    let hosts = if ranks < 4 { "hosts=node[1-2]" } else { "hosts=node[1-4]" };
    sandbox.stdout(&["run", "place", "-p", "trace=to", "-p", hosts, "-p", &slots, "--no-report"]);
    let file = sandbox.read("out/rankfile");
    assert_eq!(file.lines().filter(|line| line.starts_with("rank ")).count(), ranks, "{file}");
}

/// The halo exchange: 22 messages to each neighbour in a grid of 4 × 4.
fn halo() -> Matrix {
    let is_next = |a: u32, b: u32| (a / 4).abs_diff(b / 4) + (a % 4).abs_diff(b % 4) == 1;
    let pairs = (0..16).flat_map(|a| (0..16).map(move |b| (a, b))).filter(|&(a, b)| is_next(a, b));
    pairs.map(|pair| (pair, (22, 22 * 65536))).collect()
}

/// What `exchange.F90` sends, in messages of all kinds.
fn exchange() -> Matrix {
    let of_rank = |rank: u32| {
        let right = ((rank, (rank + 1) % 4), (3, 3 * 800 * u64::from(rank + 1)));
        [((rank, rank), (1, 4)), right, ((rank, (rank + 2) % 4), (2, 24))]
    };
    (0..4).flat_map(of_rank).collect()
}

#[test]
fn a_stencil_is_recorded_in_both_ways_and_placed() {
    if !system_tests() {
        return;
    }
    for mpi in MPIS {
        let sandbox = Sandbox::new();
        let binary = compile(&sandbox, &format!("mpicc.{mpi}"), &shared("halo.c"), &[]);
        let mpirun = format!("mpirun.{mpi}");
        let launcher = [mpirun.as_str(), "-n", "16"];
        for form in [Form::Outside, Form::Inside] {
            succeeded(&record(
                &sandbox,
                form,
                &["--method", "preload"],
                &launcher,
                &[binary.to_str().unwrap()],
            ));
            assert_eq!(matrix(&sandbox, "to"), halo(), "{mpi}");
            place(&sandbox, 16);
            std::fs::remove_dir_all(sandbox.path().join("to")).unwrap();
        }
    }
}

/// `use mpi`, `use mpi_f08` and `mpif.h`.
const FORTRAN: [&[&str]; 3] = [&[], &["-DF08"], &["-DMPIF", "-fallow-argument-mismatch"]];

#[test]
fn a_fortran_program_is_recorded_with_every_interface() {
    if !system_tests() {
        return;
    }
    for mpi in MPIS {
        for options in FORTRAN {
            let sandbox = Sandbox::new();
            let binary = compile(&sandbox, &format!("mpifort.{mpi}"), &shared("exchange.F90"), options);
            let mpirun = format!("mpirun.{mpi}");
            let launcher = [mpirun.as_str(), "-n", "4"];
            succeeded(&record(&sandbox, Form::Outside, &[], &launcher, &[binary.to_str().unwrap()]));
            assert_eq!(matrix(&sandbox, "to"), exchange(), "{mpi} {options:?}");
            assert_eq!(collectives(&sandbox), COLLECTIVES, "{mpi} {options:?}");
        }
    }
}

/// What `exchange.F90` calls, by communicator, operation and root.
const COLLECTIVES: &str = "\
communicator,operation,root,bytes,calls,uneven
0,barrier,,0,1,0
0,bcast,1,40,2,0
0,allreduce,,80,5,0
";

/// The table of collective operations.
fn collectives(sandbox: &Sandbox) -> String {
    sandbox.stdout(&["exec", "trace/import", "-p", "path=to", "--out", "graph"]);
    sandbox.stdout(&["show", "graph", "--table", "collectives", "--format", "csv"])
}

/// Open MPI's monitoring sees no persistent request (4.1: `MPI_Start` does not call it).
#[test]
fn both_methods_count_the_same_messages_to_the_byte() {
    if !system_tests() || program("lmp").is_none() {
        return;
    }
    let sandbox = Sandbox::new();
    let halo = compile(&sandbox, "mpicc.openmpi", &shared("halo.c"), &[]);
    let exchange = compile(&sandbox, "mpifort.openmpi", &shared("exchange.F90"), &["-DF08"]);
    let programs = [
        ("16", vec![halo.to_str().unwrap().to_owned()]),
        ("4", vec![exchange.to_str().unwrap().to_owned()]),
        ("2", lammps()),
    ];
    for (ranks, program) in programs {
        let program: Vec<&str> = program.iter().map(String::as_str).collect();
        let [preload, openmpi] = ["preload", "openmpi"].map(|method| {
            let launcher = ["mpirun.openmpi", "-n", ranks];
            succeeded(&record(&sandbox, Form::Outside, &["--method", method], &launcher, &program));
            let matrix = matrix(&sandbox, "to");
            std::fs::remove_dir_all(sandbox.path().join("to")).unwrap();
            matrix
        });
        let is_persistent = |(from, to): (u32, u32)| ranks == "4" && (from + 2) % 4 == to;
        let preload: Matrix = preload.into_iter().filter(|(pair, _)| !is_persistent(*pair)).collect();
        assert!(!preload.is_empty());
        assert_eq!(openmpi, preload, "{program:?}");
    }
}

/// LAMMPS with a melt of 500 atoms.
fn lammps() -> Vec<String> {
    let input = project().join("sample-traces/melt.lammps");
    let words =
        ["lmp", "-in", input.to_str().unwrap(), "-var", "cells", "5", "-var", "steps", "50", "-log", "none"];
    words.map(str::to_owned).into()
}

#[test]
fn lammps_is_recorded_in_both_ways_and_placed() {
    if !system_tests() || program("lmp").is_none() {
        return;
    }
    let sandbox = Sandbox::new();
    let (launcher, lammps) = (["mpirun.openmpi", "-n", "2"], lammps());
    let lammps: Vec<&str> = lammps.iter().map(String::as_str).collect();
    let mut seen = Vec::new();
    for form in [Form::Outside, Form::Inside] {
        let said = succeeded(&record(&sandbox, form, &["--method", "preload"], &launcher, &lammps));
        assert!(said.contains("Loop time"), "{said}");
        seen.push(matrix(&sandbox, "to"));
        place(&sandbox, 2);
        std::fs::remove_dir_all(sandbox.path().join("to")).unwrap();
    }
    assert!(seen[0][&(0, 1)].0 > 100 && seen[0][&(1, 0)].0 > 100, "{seen:?}");
    assert_eq!(seen[0], seen[1]);
}

/// A program with an ending, in which rank 1 has sent a message to rank 0.
fn ending_with(ending: &str) -> String {
    PROGRAM.replace("ENDING", ending)
}

const PROGRAM: &str = r"
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
int main(int count, char **words) {
  int rank;
  char byte = 0;
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 1) MPI_Send(&byte, 1, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
  if (rank == 0) MPI_Recv(&byte, 1, MPI_CHAR, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  ENDING
  MPI_Finalize();
  return 0;
}
";

#[test]
fn what_a_program_counted_before_it_failed_is_kept_as_incomplete() {
    if !system_tests() {
        return;
    }
    for mpi in MPIS {
        for ending in ["MPI_Abort(MPI_COMM_WORLD, 5);", "raise(SIGTERM);", "exit(0);"] {
            let sandbox = Sandbox::new();
            // Rank 0 stays until it is ended.
            let ending = if ending == "exit(0);" {
                ending.to_owned()
            } else {
                format!("if (rank == 1) {{ {ending} }} pause();")
            };
            let binary = compiled(&sandbox, mpi, &ending_with(&ending));
            let mpirun = format!("mpirun.{mpi}");
            let launcher = [mpirun.as_str(), "-n", "2"];
            let output = record(&sandbox, Form::Outside, &[], &launcher, &[binary.to_str().unwrap()]);
            let said = String::from_utf8_lossy(&output.stdout);
            assert!(said.contains("incomplete: "), "{mpi} {ending}: {said}");
            assert_eq!(matrix(&sandbox, "to"), Matrix::from([((1, 0), (1, 1))]), "{mpi} {ending}");
            let run =
                ["run", "place", "-p", "trace=to", "-p", "hosts=node[1-2]", "-p", "slots=1", "--no-report"];
            let said = sandbox.stdout(&run);
            assert!(said.contains("warning: the recording of "), "{mpi} {ending}: {said}");
        }
    }
}

#[test]
fn what_cannot_be_recorded_is_refused_with_what_to_do() {
    if !system_tests() {
        return;
    }
    for mpi in MPIS {
        let sandbox = Sandbox::new();
        let (mpirun, compiler) = (format!("mpirun.{mpi}"), format!("mpicc.{mpi}"));
        let launcher = [mpirun.as_str(), "-n", "2"];
        let refused = |options: &[&str], program: &[&str]| {
            let output = record(&sandbox, Form::Outside, options, &launcher, program);
            assert!(!output.status.success(), "{options:?} {program:?}");
            String::from_utf8(output.stderr).unwrap()
        };
        let is_said = |said: String, expected: &str| assert!(said.contains(expected), "{mpi}: {said}");
        is_said(refused(&[], &["/bin/true"]), "nothing was recorded");
        sandbox.write("static.c", "int main(void) { return 0; }");
        let fixed = compile(&sandbox, "gcc", &sandbox.path().join("static.c"), &["-static"]);
        is_said(refused(&[], &[fixed.to_str().unwrap()]), "statically");
        is_said(
            refused(&["--method", "preload", "--mpicc", "no-such-mpicc"], &["/bin/true"]),
            "no-such-mpicc",
        );
        // None of these has left a folder.
        let other = compile(
            &sandbox,
            if mpi == "mpich" { "mpicc.openmpi" } else { "mpicc.mpich" },
            &shared("halo.c"),
            &[],
        );
        is_said(refused(&["--mpicc", &compiler], &[other.to_str().unwrap()]), "but its launcher belongs to");
        std::fs::create_dir_all(sandbox.path().join("to")).unwrap();
        is_said(refused(&[], &["/bin/true"]), "to exists already");
    }
}

/// `--json` was text.
#[test]
fn reordering_answers_in_json() {
    if !system_tests() {
        return;
    }
    for mpi in MPIS {
        let sandbox = Sandbox::new();
        sandbox.write("mapping", "0 1\n1 0\n");
        let (mpirun, compiler) = (format!("mpirun.{mpi}"), format!("mpicc.{mpi}"));
        let answer = |option: &str| -> serde_json::Value {
            let words = ["--json", "reorder", "--mapping", "mapping", option, "--mpicc", &compiler, "--"];
            let command = sandbox.command(&[&words[..], &[&mpirun, "-n", "2", "/bin/true"]].concat());
            let output = prepared(command, &sandbox).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            serde_json::from_slice(&output.stdout).unwrap()
        };
        assert_eq!(answer("--verify")["verified"], 2, "{mpi}");
        let built = answer("--build");
        let library = built["library"].as_str().unwrap();
        assert!(built["ranks"] == 2 && sandbox.path().join(library).exists(), "{mpi}: {built}");
    }
}
