//! Both forms and both methods of the command, and what it refuses.

use std::process::Command;

use hopmap_recording::{Description, Method, Recording};

use crate::support::{cache, mpis, prepared, program_of, record, recorder, text};

const RING: &str = r"
    #include <mpi.h>
    int main(int argc, char **argv)
    {
        int rank, size, value = 0;
        MPI_Init(&argc, &argv);
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        MPI_Comm_size(MPI_COMM_WORLD, &size);
        MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 0, &value, 1, MPI_INT, (rank + size - 1) % size, 0,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Finalize();
        return argc > 1 ? 9 : 0;
    }";

fn pairs(recording: &Recording) -> Vec<(u32, u32, u64, u64)> {
    recording.traffic.iter().map(|line| (line.source, line.destination, line.messages, line.bytes)).collect()
}

const EXPECTED: [(u32, u32, u64, u64); 3] = [(0, 1, 1, 4), (1, 2, 1, 4), (2, 0, 1, 4)];

#[test]
fn both_forms_record_the_same() {
    for mpi in mpis() {
        let folder = tempfile::tempdir().unwrap();
        let binary = program_of(folder.path(), &format!("mpicc.{mpi}"), RING, &[]);
        let output = record(folder.path(), &format!("-o outside -- mpirun.{mpi} -n 3 {}", binary.display()));
        assert!(output.status.success(), "{}", text(&output));
        assert!(text(&output).contains("3 ranks, 3 messages between them: 12 B"), "{}", text(&output));
        let mut inside = Command::new(format!("mpirun.{mpi}"));
        inside.args(["-n", "3"]).arg(recorder()).args(["-o", "inside"]).arg(&binary);
        inside.env("XDG_CACHE_HOME", cache()).current_dir(folder.path());
        for round in 0..2 {
            // The folder is new only once.
            let output = prepared(&mut inside).output().unwrap();
            assert_eq!(output.status.success(), round == 0, "{}", text(&output));
            assert_eq!(text(&output).contains("inside exists already"), round == 1, "{}", text(&output));
        }
        for form in ["outside", "inside"] {
            let recording = Recording::read(&folder.path().join(form)).unwrap();
            assert_eq!(pairs(&recording), EXPECTED, "{mpi} {form}");
            assert_eq!(recording.incomplete, None);
            let description = Description::read(&folder.path().join(form).join("record.json")).unwrap();
            assert_eq!((description.method, description.ranks), (Method::Preload, 3));
            let name = if mpi == "mpich" { "MPICH 4.0.2" } else { "Open MPI 4.1.4" };
            assert_eq!(description.mpi, name);
        }
    }
}

#[test]
fn the_exit_status_is_that_of_the_program() {
    for mpi in mpis() {
        let folder = tempfile::tempdir().unwrap();
        let binary = program_of(folder.path(), &format!("mpicc.{mpi}"), RING, &[]);
        let output = record(folder.path(), &format!("-o to -- mpirun.{mpi} -n 3 {} fail", binary.display()));
        assert_eq!(output.status.code(), Some(9), "{}", text(&output));
        let recording = Recording::read(&folder.path().join("to")).unwrap();
        assert_eq!(pairs(&recording), EXPECTED);
        assert!(recording.incomplete.unwrap().contains("ended with exit status: 9"));
    }
}

#[test]
fn open_mpi_records_itself() {
    if !mpis().contains(&"openmpi") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let binary = program_of(folder.path(), "mpicc.openmpi", RING, &[]);
    let arguments = format!("-o to --method openmpi -- mpirun.openmpi -n 3 {}", binary.display());
    let output = record(folder.path(), &arguments);
    let text = text(&output);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("time inside MPI: not recorded (--method preload)"), "{text}");
    let recording = Recording::read(&folder.path().join("to")).unwrap();
    let sent = pairs(&recording);
    assert!(EXPECTED.iter().all(|pair| sent.contains(pair)), "{sent:?}");
    let refused = record(folder.path(), "-o mpich --method openmpi -- mpirun.mpich /bin/true");
    assert_eq!(refused.status.code(), Some(2));
}

#[test]
fn auto_falls_back_to_open_mpi_where_no_compiler_is() {
    if !mpis().contains(&"openmpi") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let binary = program_of(folder.path(), "mpicc.openmpi", RING, &[]);
    let arguments =
        format!("-o to --cache empty --mpicc no-such-mpicc -- mpirun.openmpi -n 3 {}", binary.display());
    let output = record(folder.path(), &arguments);
    assert!(output.status.success(), "{}", text(&output));
    let description = Description::read(&folder.path().join("to/record.json")).unwrap();
    assert_eq!(description.method, Method::Openmpi);
}

#[test]
fn what_cannot_be_recorded_says_why() {
    for mpi in mpis() {
        let folder = tempfile::tempdir().unwrap();
        let compiler = format!("mpicc.{mpi}");
        let plain = "int main(void) { return 0; }";
        let binary = program_of(folder.path(), &compiler, plain, &[]);
        let run = |name: &str, binary: &std::path::Path| {
            let output =
                record(folder.path(), &format!("-o {name} -- mpirun.{mpi} -n 2 {}", binary.display()));
            assert!(!output.status.success(), "{}", text(&output));
            text(&output)
        };
        let said = run("plain", &binary);
        assert!(said.contains("nothing was recorded: no rank has called MPI_Init"), "{said}");
        assert!(!folder.path().join("plain").exists());
        let fixed = folder.path().join("linked");
        let source = folder.path().join("program.c");
        assert!(
            Command::new("gcc").arg("-static").arg("-o").arg(&fixed).arg(source).status().unwrap().success()
        );
        let said = run("static", &fixed);
        assert!(said.contains("is linked statically, into which no recorder can be loaded"), "{said}");
        std::fs::create_dir(folder.path().join("old")).unwrap();
        let said = run("old", &binary);
        assert!(said.contains("old exists already"), "{said}");
    }
}

#[test]
fn a_program_of_another_mpi_is_refused() {
    if mpis().len() < 2 {
        return;
    }
    for (own, other) in [("openmpi", "mpich"), ("mpich", "openmpi")] {
        let folder = tempfile::tempdir().unwrap();
        let binary = program_of(folder.path(), &format!("mpicc.{other}"), RING, &[]);
        let output = record(folder.path(), &format!("-o to -- mpirun.{own} -n 1 {}", binary.display()));
        assert!(!output.status.success());
        assert!(text(&output).contains("but its launcher belongs to"), "{}", text(&output));
    }
}

#[test]
fn launchers_that_do_not_start_ranks_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let output = record(folder.path(), "-o to -- sbatch job.sh");
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    assert!(text(&output).contains("`sbatch` is a command for a batch job"), "{}", text(&output));
}

#[test]
fn a_launcher_of_another_mpi_is_refused_in_both_forms() {
    if mpis().len() < 2 {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let binary = program_of(folder.path(), "mpicc.openmpi", RING, &[]);
    let outside = record(folder.path(), &format!("-o outside -- mpirun.mpich -n 2 {}", binary.display()));
    let mut inside = Command::new("mpirun.mpich");
    inside.args(["-n", "2"]).arg(recorder()).args(["-o", "inside"]).arg(&binary);
    inside.env("XDG_CACHE_HOME", cache()).current_dir(folder.path());
    for output in [outside, prepared(&mut inside).output().unwrap()] {
        assert!(!output.status.success());
        let said = text(&output);
        assert!(said.contains("the program uses Open MPI, but its launcher belongs to MPICH"), "{said}");
    }
    assert!(!folder.path().join("outside").exists() && !folder.path().join("inside").exists());
}
