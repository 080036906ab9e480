//! Every procedure counts exactly once, in C and in all forms of Fortran.

use std::collections::{BTreeMap, HashSet};
use std::process::Command;

use hopmap_record::table::procedures;
use hopmap_recording::{Kind, Recording};

use crate::support::{compiled, mpis, of_rank, prepared, program_of, record, recorded, said, text};

/// Messages or calls, and bytes.
type Counts = BTreeMap<String, (u64, u64)>;

fn add(counts: &mut Counts, key: String, count: u64, bytes: u64) {
    let entry = counts.entry(key).or_default();
    *entry = (entry.0 + count, entry.1 + bytes);
}

/// What a rank of `every.c` has printed: pairs by kind, destination and length, collectives by kind.
fn expected(said: &str) -> Counts {
    let mut counts = Counts::new();
    for line in said.lines() {
        match line.split(' ').collect::<Vec<_>>()[..] {
            ["pair", kind, peer, bytes] => {
                let bytes: u64 = bytes.parse().unwrap();
                let length = u64::BITS - bytes.leading_zeros();
                add(&mut counts, format!("{kind} {peer} {length}"), 1, bytes);
            }
            ["collective", kind, bytes] => add(&mut counts, kind.into(), 1, bytes.parse().unwrap()),
            ["returned", ..] => {}
            _ => panic!("{line}"),
        }
    }
    counts
}

/// The same of a recording. What a rank gets belongs to this rank here.
fn found(recording: &Recording, rank: u32) -> Counts {
    let mut counts = Counts::new();
    for line in &recording.traffic {
        let (own, peer) = match line.kind {
            Kind::Get => (line.destination, line.source),
            _ => (line.source, line.destination),
        };
        if own == rank {
            let key = format!("{} {peer} {}", line.kind as u32, line.log2_bytes.unwrap());
            add(&mut counts, key, line.messages, line.bytes);
        }
    }
    for calls in of_rank(recording, rank) {
        add(&mut counts, calls.kind.name().into(), calls.calls, calls.bytes);
    }
    counts
}

fn every(source: &str, compiler: &str, options: &[&str]) {
    for mpi in mpis() {
        let folder = tempfile::tempdir().unwrap();
        let program = compiled(folder.path(), &format!("{compiler}.{mpi}"), source, options);
        let (said, recording) = recorded(folder.path(), mpi, 2, &program);
        for (rank, said) in (0..).zip(&said) {
            let expected = expected(said);
            assert!(expected.len() > 20, "{said}");
            assert_eq!(found(&recording, rank), expected, "{mpi}, rank {rank}");
        }
        assert!(recording.processes.iter().all(|process| process.times.is_some_and(|(all, inside)| {
            process.host.is_some() && !process.cores.is_empty() && 0.0 < inside && inside <= all
        })));
    }
}

const FORTRAN: [&str; 2] = ["-ffree-line-length-none", "-fallow-argument-mismatch"];

#[test]
fn every_procedure_of_c_counts_once() {
    every("every.c", "mpicc", &[]);
}

#[test]
fn every_procedure_of_mpif_h_counts_once() {
    every("every.F90", "mpifort", &FORTRAN);
}

#[test]
fn every_procedure_of_the_module_mpi_counts_once() {
    every("every.F90", "mpifort", &[FORTRAN[0], FORTRAN[1], "-DMODULE=mpi"]);
}

#[test]
fn every_procedure_of_mpi_f08_counts_once() {
    every("every.F90", "mpifort", &[FORTRAN[0], FORTRAN[1], "-DMODULE=mpi_f08", "-DF08"]);
}

/// Arguments that MPI does not read are not read: such as those of other ranks than the root. Correct programs give null
/// types and wild pointers there.
#[test]
fn a_recorded_program_does_what_it_does_alone() {
    for mpi in mpis() {
        let folder = tempfile::tempdir().unwrap();
        let program = compiled(folder.path(), &format!("mpicc.{mpi}"), "ignored.c", &[]);
        let mut launcher = Command::new(format!("mpirun.{mpi}"));
        let ended = prepared(launcher.current_dir(folder.path()).args(["-n", "3"]).arg(&program).arg("said"));
        let ended = ended.output().unwrap();
        assert!(ended.status.success(), "{mpi}: {}", text(&ended));
        let alone = said(folder.path(), 3);
        let (said, recording) = recorded(folder.path(), mpi, 3, &program);
        assert_eq!(said, alone, "{mpi}");
        for (rank, said) in (0..).zip(&said) {
            assert_eq!(found(&recording, rank), expected(said), "{mpi}, rank {rank}");
        }
    }
}

/// Those of every procedure of the table that does not read some of its arguments.
#[test]
fn every_procedure_is_called_with_arguments_that_it_does_not_read() {
    let program = include_str!("programs/ignored.c");
    let words: HashSet<&str> = program.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
    let ignores = ["dest", "source", "target", "root", "sbuf", "requests", "message"];
    // They read all that they are given: no peer may be MPI_PROC_NULL, and without a root all take part.
    let reads =
        |kind: &str| kind.ends_with("scan") || kind == "allreduce" || kind.starts_with("reduce_scatter");
    for procedure in procedures() {
        let is_there =
            words.contains(procedure.name.trim_end_matches("_init")) || words.contains(procedure.name);
        let ignores = ignores.iter().any(|argument| procedure.has(argument)) && !reads(procedure.kind);
        assert!(is_there || !ignores, "MPI_{}", procedure.name);
    }
}

/// With `MPI_IN_PLACE`, the types of what is sent are not read: here they cannot be.
#[test]
fn types_of_a_fortran_alltoallw_in_place_are_not_read() {
    const PROGRAM: &str = r"
        #include <mpi.h>
        extern int mpi_fortran_in_place_;
        void mpi_alltoallw_(void *, void *, void *, void *, void *, void *, void *, void *, void *, void *);
        int main(int argc, char **argv)
        {
            int error, counts[2] = { 1, 1 }, displs[2] = { 0, 4 }, data[2] = { 0 };
            MPI_Fint types[2], comm;
            MPI_Init(&argc, &argv);
            types[0] = types[1] = MPI_Type_c2f(MPI_INT);
            comm = MPI_Comm_c2f(MPI_COMM_WORLD);
            mpi_alltoallw_(&mpi_fortran_in_place_, (void *) 8, (void *) 8, (void *) 8, data, counts, displs, types, &comm, &error);
            MPI_Finalize();
            return error;
        }";
    if !mpis().contains(&"openmpi") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = program_of(folder.path(), "mpicc.openmpi", PROGRAM, &["-Wl,--no-as-needed", "-lmpi_mpifh"]);
    let output = record(folder.path(), &format!("-o to -- mpirun.openmpi -n 2 {}", program.display()));
    assert!(output.status.success(), "{}", text(&output));
    let recording = Recording::read(&folder.path().join("to")).unwrap();
    let calls = of_rank(&recording, 1).map(|calls| (calls.kind.name(), calls.calls, calls.bytes));
    assert_eq!(calls.collect::<Vec<_>>(), [("alltoallw", 1, 8)]);
}
