//! Communicators whose handles come again, of two groups, and with processes that are not ranks of the program.

use std::path::Path;

use hopmap_collectives::Algorithms;
use hopmap_recording::{Choice, Recording};

use crate::support::{mpis, program_of, record, text};

/// Compiles and runs a program with these ranks; its recording.
fn recorded(folder: &Path, mpi: &str, ranks: u32, program: &str) -> Recording {
    let binary = program_of(folder, &format!("mpicc.{mpi}"), program, &["-Wno-unused-result"]);
    let output = record(folder, &format!("-o to -- mpirun.{mpi} -n {ranks} {}", binary.display()));
    assert!(output.status.success(), "{mpi}: {}", text(&output));
    Recording::read(&folder.join("to")).unwrap_or_else(|error| panic!("{mpi}: {error}: {}", text(&output)))
}

fn pairs(recording: &Recording) -> Vec<(u32, u32, u64, u64)> {
    recording.traffic.iter().map(|line| (line.source, line.destination, line.messages, line.bytes)).collect()
}

/// Every rank sends to the first rank of a communicator, which is rank 0 and rank 2 of the world in turn.
#[test]
fn a_handle_that_comes_again_is_another_communicator() {
    const PROGRAM: &str = r"
        #include <mpi.h>
        int main(int argc, char **argv)
        {
            int rank;
            char byte = 0, all[3];
            MPI_Request request;
            MPI_Init(&argc, &argv);
            MPI_Comm_rank(MPI_COMM_WORLD, &rank);
            for (int round = 0; round < 20; round++) {
                MPI_Comm comm, copy;
                int first = round % 2 ? 2 : 0;
                MPI_Comm_split(MPI_COMM_WORLD, 0, round % 2 ? -rank : rank, &comm);
                MPI_Comm_dup(comm, &copy);
                MPI_Isend(&byte, 1, MPI_BYTE, 0, 0, copy, &request);
                for (int from = 0; from < 3 && rank == first; from++)
                    MPI_Recv(all, 1, MPI_BYTE, from, 0, copy, MPI_STATUS_IGNORE);
                MPI_Wait(&request, MPI_STATUS_IGNORE);
                if (round % 3) MPI_Comm_free(&comm); else MPI_Comm_disconnect(&comm);
                if (round % 4) MPI_Comm_disconnect(&copy); else MPI_Comm_free(&copy);
            }
            MPI_Finalize();
            return 0;
        }";
    for mpi in mpis() {
        let folder = tempfile::tempdir().unwrap();
        let recording = recorded(folder.path(), mpi, 3, PROGRAM);
        let all = [0, 1, 2].map(|from| [(from, 0, 10, 10), (from, 2, 10, 10)]);
        assert_eq!(pairs(&recording), all.concat(), "{mpi}");
        assert_eq!(recording.incomplete, None);
    }
}

/// Ranks 0 and 1 against rank 2: the root is `MPI_ROOT` on rank 1, and `MPI_PROC_NULL` on rank 0.
#[test]
fn collectives_between_two_groups_are_recorded() {
    const PROGRAM: &str = r"
        #include <mpi.h>
        int main(int argc, char **argv)
        {
            int rank, sum = 0;
            char bytes[100] = { 0 };
            MPI_Comm half, inter;
            MPI_Init(&argc, &argv);
            MPI_Comm_rank(MPI_COMM_WORLD, &rank);
            MPI_Comm_split(MPI_COMM_WORLD, rank == 2, rank, &half);
            MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank == 2 ? 0 : 2, 0, &inter);
            MPI_Bcast(bytes, 100, MPI_BYTE, rank == 2 ? 1 : rank == 1 ? MPI_ROOT : MPI_PROC_NULL, inter);
            MPI_Gather(bytes, 10, MPI_BYTE, bytes, 10, MPI_BYTE, rank < 2 ? 0 : MPI_ROOT, inter);
            MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, inter);
            MPI_Comm_free(&inter);
            MPI_Finalize();
            return 0;
        }";
    for mpi in mpis() {
        let folder = tempfile::tempdir().unwrap();
        let recording = recorded(folder.path(), mpi, 3, PROGRAM);
        assert_eq!((&recording.communicators, &recording.incomplete), (&vec![vec![0, 1, 2]], &None), "{mpi}");
        let calls = recording.calls.iter().map(|one| (one.kind.name(), one.root, one.rank, one.bytes));
        let expected = [
            ("bcast", Some(1), 1, 100),
            ("bcast", Some(1), 2, 0),
            ("gather", Some(2), 0, 10),
            ("gather", Some(2), 1, 10),
            ("gather", Some(2), 2, 0),
            ("allreduce", None, 0, 4),
            ("allreduce", None, 1, 4),
            ("allreduce", None, 2, 4),
        ];
        assert_eq!(calls.collect::<Vec<_>>(), expected, "{mpi}");
        let converted = recording.task_graph(Choice::Expand(Algorithms::default())).unwrap();
        assert_eq!((converted.without_root, converted.graph.collectives.calls.len()), (0, 3));
    }
}

/// Two ranks, and two processes that they spawn, which have ranks 0 and 1 in their own world. Debian's MPICH 4.0.2
/// cannot spawn processes.
#[test]
fn spawned_processes_are_no_ranks_of_the_program() {
    const PROGRAM: &str = r"
        #include <mpi.h>
        #include <stdlib.h>
        int main(int argc, char **argv)
        {
            int rank, remote, sum = 0;
            char byte[9] = { 0 }, back[5];
            MPI_Comm parent, inter, merged;
            MPI_Init(&argc, &argv);
            MPI_Comm_rank(MPI_COMM_WORLD, &rank);
            MPI_Comm_get_parent(&parent);
            inter = parent;
            if (parent == MPI_COMM_NULL) {
                MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE);
                MPI_Send(byte, 9, MPI_BYTE, rank, 0, inter);
                MPI_Sendrecv(byte, 5, MPI_BYTE, 1 - rank, 0, back, 5, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                MPI_Bcast(byte, 1, MPI_BYTE, 0, MPI_COMM_WORLD);
            } else MPI_Recv(byte, 9, MPI_BYTE, rank, 0, inter, MPI_STATUS_IGNORE);
            MPI_Bcast(byte, 1, MPI_BYTE, parent != MPI_COMM_NULL ? 0 : rank ? MPI_PROC_NULL : MPI_ROOT, inter);
            MPI_Intercomm_merge(inter, parent != MPI_COMM_NULL, &merged);
            MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, merged);
            MPI_Comm_free(&merged);
            MPI_Comm_disconnect(&inter);
            MPI_Finalize();
            return sum == 2 ? 0 : 1;
        }";
    for mpi in mpis().into_iter().filter(|mpi| *mpi == "openmpi") {
        let folder = tempfile::tempdir().unwrap();
        let recording = recorded(folder.path(), mpi, 2, PROGRAM);
        assert_eq!(pairs(&recording), [(0, 1, 1, 5), (1, 0, 1, 5)], "{mpi}");
        let calls = recording.calls.iter().map(|one| (one.kind.name(), one.rank));
        assert_eq!(calls.collect::<Vec<_>>(), [("bcast", 0), ("bcast", 1)], "{mpi}");
        assert_eq!(
            recording.incomplete.as_deref(),
            Some(
                "messages or calls to processes outside of MPI_COMM_WORLD, such as spawned ones, are missing of rank 0 and another rank"
            ),
            "{mpi}"
        );
    }
}

/// It may be an MPI program with a launcher of its own, and has a rank 0 too.
#[test]
fn a_program_that_a_rank_starts_does_not_know_the_folder() {
    const PROGRAM: &str = r#"
        #include <mpi.h>
        #include <stdlib.h>
        int main(int argc, char **argv)
        {
            char byte = 0, back;
            MPI_Init(&argc, &argv);
            MPI_Sendrecv(&byte, 1, MPI_BYTE, 0, 0, &back, 1, MPI_BYTE, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
            int result = system("test -z \"$HOPMAP_RECORD_DIR\"");
            MPI_Finalize();
            return result != 0;
        }"#;
    for mpi in mpis() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(pairs(&recorded(folder.path(), mpi, 1, PROGRAM)), [(0, 0, 1, 1)], "{mpi}");
    }
}
