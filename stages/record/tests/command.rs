//! Both forms and both methods of the command, and what it refuses.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use hopmap_recording::{Description, Method, Recording};
use hopmap_test_support::{Cluster, program};

use crate::support::{cache, mpis, prepared, program_of, record, recorder, recording, text};

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
            // Inside, nobody has seen the end of the program.
            assert_eq!(description.complete, (form == "outside").then_some(true));
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

/// A folder for `PATH` with a launcher and without a compiler.
fn without_compiler(folder: &Path, launcher: &str) -> PathBuf {
    let programs = folder.join("programs");
    std::fs::create_dir(&programs).unwrap();
    let mut names = vec![(launcher, launcher), ("sh", "sh")];
    // Open MPI also wants an ssh, although it does not use it here; Hydra starts ranks with a program beside it.
    names.push(if launcher.ends_with("mpich") {
        ("hydra_pmi_proxy", "hydra_pmi_proxy")
    } else {
        ("sh", "ssh")
    });
    for (file, name) in names {
        std::os::unix::fs::symlink(program(file).unwrap(), programs.join(name)).unwrap();
    }
    programs
}

#[test]
fn auto_falls_back_to_open_mpi_where_no_compiler_is() {
    if !mpis().contains(&"openmpi") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let binary = program_of(folder.path(), "mpicc.openmpi", RING, &[]);
    let arguments = format!("-o to --cache empty -- mpirun.openmpi -n 3 {}", binary.display());
    let mut command = recording(folder.path(), &arguments);
    command.env("PATH", without_compiler(folder.path(), "mpirun.openmpi"));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    let description = Description::read(&folder.path().join("to/record.json")).unwrap();
    assert_eq!(description.method, Method::Openmpi);
}

/// Also inside ranks, where the program alone says which MPI it uses.
#[test]
fn the_cache_serves_hosts_without_a_compiler() {
    for mpi in mpis() {
        let folder = tempfile::tempdir().unwrap();
        let binary = program_of(folder.path(), &format!("mpicc.{mpi}"), RING, &[]);
        let launcher = format!("mpirun.{mpi}");
        let output = record(folder.path(), &format!("-o first -- {launcher} -n 3 {}", binary.display()));
        assert!(output.status.success(), "{}", text(&output));
        let programs = without_compiler(folder.path(), &launcher);
        let mut inside = Command::new(&launcher);
        inside.args(["-n", "3"]).arg(recorder()).args(["-o", "inside", "--method", "preload"]).arg(&binary);
        inside.env("XDG_CACHE_HOME", cache()).current_dir(folder.path());
        let arguments = format!("-o outside --method preload -- {launcher} -n 3 {}", binary.display());
        let outside = recording(folder.path(), &arguments);
        for (form, mut command) in [("inside", inside), ("outside", outside)] {
            let output = prepared(&mut command).env("PATH", &programs).output().unwrap();
            assert!(output.status.success(), "{mpi} {form}: {}", text(&output));
            assert_eq!(pairs(&Recording::read(&folder.path().join(form)).unwrap()), EXPECTED);
        }
    }
}

#[test]
fn what_the_user_names_must_be_usable() {
    if !mpis().contains(&"openmpi") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let binary = program_of(folder.path(), "mpicc.openmpi", RING, &[]);
    let open = folder.path().join("open");
    std::fs::create_dir(&open).unwrap();
    std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o777)).unwrap();
    for (options, status, expected) in [
        (
            "--mpicc nosuch",
            2,
            "`nosuch` is not a compiler of Open MPI\nhelp: name the mpicc of the MPI that is used",
        ),
        ("--mpicc mpicc.mpich", 1, "no mpicc of Open MPI is installed: mpicc.mpich is of MPICH"),
        ("--cache open", 1, "can be changed by other users"),
    ] {
        if options.ends_with("mpich") && mpis().len() < 2 {
            continue;
        }
        let output =
            record(folder.path(), &format!("-o to {options} -- mpirun.openmpi -n 3 {}", binary.display()));
        let said = text(&output);
        assert_eq!(output.status.code(), Some(status), "{options}: {said}");
        assert!(said.contains(expected), "{options}: {said}");
        assert!(!folder.path().join("to").exists());
    }
}

#[test]
fn a_folder_with_other_files_is_refused_inside_too() {
    for mpi in mpis() {
        let folder = tempfile::tempdir().unwrap();
        let binary = program_of(folder.path(), &format!("mpicc.{mpi}"), RING, &[]);
        let mut inside = Command::new(format!("mpirun.{mpi}"));
        inside.args(["-n", "2"]).arg(recorder()).args(["-o", "."]).arg(&binary);
        inside.env("XDG_CACHE_HOME", cache()).current_dir(folder.path());
        let output = prepared(&mut inside).output().unwrap();
        assert!(!output.status.success());
        assert!(text(&output).contains("which is not of a recording"), "{}", text(&output));
        assert!(!folder.path().join("record.json").exists());
    }
}

#[test]
fn a_program_that_does_not_start_leaves_no_folder() {
    if mpis().is_empty() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for arguments in ["-o to -- ./nosuch", "-o to --inside ./nosuch", "-o to -- nosuch/mpirun -n 2 ./nosuch"]
    {
        let output = record(folder.path(), arguments);
        assert!(!output.status.success() && text(&output).contains("cannot be started"), "{}", text(&output));
        assert!(!folder.path().join("to").exists(), "{arguments}");
    }
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
        assert!(said.contains("nothing was recorded: the program is not linked with MPI"), "{said}");
        let idle = RING.replace("MPI_Init(", "if (argc < 9) return 0; MPI_Init(");
        let idle = program_of(folder.path(), &compiler, &idle, &[]);
        let said = run("idle", &idle);
        assert!(
            said.contains(
                "nothing was recorded: no rank has left a file\nhelp: the program must reach MPI_Init"
            ),
            "{said}"
        );
        assert!(!folder.path().join("plain").exists());
        let fixed = folder.path().join("linked");
        let source = folder.path().join("plain.c");
        std::fs::write(&source, plain).unwrap();
        assert!(
            Command::new("gcc").arg("-static").arg("-o").arg(&fixed).arg(source).status().unwrap().success()
        );
        let said = run("static", &fixed);
        assert!(said.contains("is linked statically, into which no library can be loaded"), "{said}");
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

/// Two programs of one job.
fn build_ocean_and_ice(folder: &Path, compiler: &str) {
    let binary = program_of(folder, compiler, RING, &[]);
    std::fs::copy(&binary, folder.join("ice")).unwrap();
    std::fs::rename(&binary, folder.join("ocean")).unwrap();
}

/// Each rank is recorded with the program that it ran.
#[test]
fn several_programs_of_a_job_are_one_recording() {
    for mpi in mpis() {
        let folder = tempfile::tempdir().unwrap();
        build_ocean_and_ice(folder.path(), &format!("mpicc.{mpi}"));
        let output = record(folder.path(), &format!("-o to -- mpirun.{mpi} -n 2 ./ocean : -n 1 ./ice"));
        let said = text(&output);
        assert!(said.contains("programs: ranks 0–1 `./ocean`, rank 2 `./ice`"), "{said}");
        let recording = Recording::read(&folder.path().join("to")).unwrap();
        assert_eq!((pairs(&recording), recording.incomplete), (EXPECTED.to_vec(), None), "{mpi}");
    }
}

#[test]
fn slurms_file_of_several_programs_is_recorded() {
    if !mpis().contains(&"mpich") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let cluster = Cluster::start();
    build_ocean_and_ice(folder.path(), "mpicc.mpich");
    std::fs::write(folder.path().join("programs"), "0,2 ./ocean\n1 ./ice\n").unwrap();
    let mut command = recording(folder.path(), "-o to -- srun --mpi=pmi2 -N3 -n3 --multi-prog programs");
    let output = command.env("SLURM_CONF", cluster.configuration()).output().unwrap();
    assert!(text(&output).contains("programs: ranks 0, 2 `ocean`, rank 1 `ice`"), "{}", text(&output));
}

/// The variables of the recorder reach tasks that get no others.
#[test]
fn a_step_of_slurm_without_variables_is_recorded() {
    if !mpis().contains(&"mpich") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let cluster = Cluster::start();
    let binary = program_of(folder.path(), "mpicc.mpich", RING, &[]);
    for export in ["--export=NONE", "--export NONE", "--export=HOME"] {
        let arguments = format!("-o to -- srun --mpi=pmi2 -N3 -n3 {export} {}", binary.display());
        let mut command = recording(folder.path(), &arguments);
        let output = command.env("SLURM_CONF", cluster.configuration()).output().unwrap();
        assert!(output.status.success(), "{export}: {}", text(&output));
        assert_eq!(pairs(&Recording::read(&folder.path().join("to")).unwrap()), EXPECTED, "{export}");
        std::fs::remove_dir_all(folder.path().join("to")).unwrap();
    }
}
