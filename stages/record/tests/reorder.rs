//! `hopmap reorder`: ranks are where the mapping has them, and programs do what they do without it.

use std::fmt::{self, Display, Formatter};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use hopmap_mpi_environment::host_name;
use hopmap_recording::Recording;
use hopmap_test_support::{Cluster, program, system_tests};

use crate::support::{cache, mpis, prepared, recorder, said, text};

/// Prints its rank and the rank that the launcher has given: `RANK:LAUNCHED`.
const SAY: &str = r#"
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
static void say(void)
{
    int rank;
    const char *launched = getenv("OMPI_COMM_WORLD_RANK");
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    printf("%d:%s\n", rank, launched ? launched : getenv("PMI_RANK"));
    fflush(stdout);
}
"#;
const MAIN: &str = "int main(void) { MPI_Init(0, 0); say(); MPI_Finalize(); return 0; }";

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

/// The lines `RANK:…` that programs have printed, by their ranks.
fn lines(output: &Output) -> Vec<String> {
    let said = String::from_utf8_lossy(&output.stdout);
    // Hydra prints lines of its own.
    let is_of_rank = |line: &&str| line.split_once(':').is_some_and(|(rank, _)| rank.parse::<u32>().is_ok());
    let mut lines: Vec<String> = said.lines().filter(is_of_rank).map(str::to_owned).collect();
    lines.sort();
    lines
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

/// Language runtimes load their MPI for themselves. Once the library called itself there for ever.
#[test]
fn an_mpi_that_the_program_loads_later_is_reordered() {
    const HOST: &str = "#include <dlfcn.h>\nint main(int argc, char **argv) { void *plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL); \
                        ((int (*)(void)) dlsym(plugin, \"work\"))(); return 0; }";
    for mpi in Mpi::all() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        fs::write(path("work.c"), [SAY, &MAIN.replace("main", "work")].concat()).unwrap();
        let plugin = mpi.compiled(folder.path(), "mpicc", &path("work.c"), &["-shared", "-fPIC"]).unwrap();
        fs::write(path("host.c"), HOST).unwrap();
        let built = Command::new("cc").args(["-o", &path("host"), &path("host.c"), "-ldl"]).status().unwrap();
        assert!(built.success());
        let mapping = mapping(folder.path(), &[1, 2, 0]);
        let words = [&*mpi.launcher(), "-n", "3", &path("host"), plugin.to_str().unwrap()];
        let output = reorder(&mpi, folder.path(), &mapping, &words);
        assert_eq!(lines(&output), ["0:1", "1:2", "2:0"], "{mpi}: {}", text(&output));
    }
}

/// Children have a world of their own; the parents' side of the communicator between them has the new ranks.
#[test]
fn processes_that_a_program_starts_keep_their_order() {
    const SPAWN: &str = r#"
int main(int argc, char **argv)
{
    MPI_Comm parent, other, all;
    int rank, in_all, got;
    MPI_Init(&argc, &argv);
    MPI_Comm_get_parent(&parent);
    if (parent == MPI_COMM_NULL) say();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (parent == MPI_COMM_NULL) MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other, MPI_ERRCODES_IGNORE);
    else other = parent;
    MPI_Sendrecv(&rank, 1, MPI_INT, rank, 0, &got, 1, MPI_INT, rank, 0, other, MPI_STATUS_IGNORE);
    MPI_Intercomm_merge(other, parent != MPI_COMM_NULL, &all);
    MPI_Comm_rank(all, &in_all);
    if (got != rank || in_all != rank + 2 * (parent != MPI_COMM_NULL)) printf("9:wrong %d %d\n", got, in_all);
    MPI_Comm_free(&all);
    MPI_Comm_disconnect(&other);
    MPI_Finalize();
    return 0;
}
"#;
    for mpi in Mpi::all() {
        let folder = tempfile::tempdir().unwrap();
        let program = mpi.program_of(folder.path(), &[SAY, SPAWN].concat());
        let words = [&*mpi.launcher(), "-n", "2", program.to_str().unwrap()];
        // Intel MPI needs these.
        let more = [("I_MPI_SPAWN", "on"), ("I_MPI_FABRICS", "shm:ofi"), ("FI_PROVIDER", "tcp")];
        let mut alone = Command::new(words[0]);
        alone.args(&words[1..]).current_dir(folder.path());
        if !mpi.prepared(&mut alone).envs(more).output().unwrap().status.success() {
            // MPICH 4.0 of Debian, with UCX, starts no processes.
            assert_eq!(mpi.name, "mpich");
            continue;
        }
        let mapping = mapping(folder.path(), &[1, 0]);
        let output = reordering(&mpi, folder.path(), &mapping, &words).envs(more).output().unwrap();
        assert!(output.status.success(), "{mpi}: {}", text(&output));
        assert_eq!(lines(&output), ["0:1", "1:0"], "{mpi}: {}", text(&output));
    }
}

/// A program and another one in one job; processes of both would change places.
#[test]
fn ranks_change_places_within_their_program() {
    for mpi in Mpi::all() {
        let folder = tempfile::tempdir().unwrap();
        let program = mpi.program_of(folder.path(), &[SAY, MAIN].concat());
        let other = folder.path().join("other");
        fs::copy(&program, &other).unwrap();
        for other in [&program, &other].map(|path| path.to_str().unwrap()) {
            let run = |processes: &[u32]| {
                let mapping = mapping(folder.path(), processes);
                let words = [&*mpi.launcher(), "-n", "2", program.to_str().unwrap(), ":", "-n", "2", other];
                reorder(&mpi, folder.path(), &mapping, &words)
            };
            let output = run(&[1, 0, 3, 2]);
            assert_eq!(lines(&output), ["0:1", "1:0", "2:3", "3:2"], "{mpi}: {}", text(&output));
            let (output, expected) =
                (run(&[2, 1, 0, 3]), "the mapping exchanges ranks of different programs");
            assert_eq!(output.status.code(), Some(1), "{mpi}: {}", text(&output));
            assert_eq!(text(&output).matches(expected).count(), 1, "{mpi}: {}", text(&output));
        }
    }
}

/// Without `MPI_Init`, no process knows the hosts of the others before they exchange them.
#[test]
fn a_session_without_mpi_init_is_refused() {
    let source = "#include <mpi.h>\nint main(void) {\n#if MPI_VERSION >= 4\nMPI_Session session; MPI_Group group; \
                  MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session); \
                  MPI_Group_from_session_pset(session, \"mpi://WORLD\", &group);\n#endif\nreturn MPI_VERSION; }";
    for mpi in Mpi::all() {
        let folder = tempfile::tempdir().unwrap();
        let program = mpi.program_of(folder.path(), source);
        let mapping = mapping(folder.path(), &[0]);
        let output =
            reorder(&mpi, folder.path(), &mapping, &[&mpi.launcher(), "-n", "1", program.to_str().unwrap()]);
        if output.status.code() != Some(3) {
            let expected = "a session begins without MPI_Init, and its ranks cannot be reordered";
            assert!(!output.status.success() && text(&output).contains(expected), "{mpi}: {}", text(&output));
        }
    }
}

/// One process that cannot be reordered, or has no mapping, ends the job: nobody waits for it.
#[test]
fn a_process_that_cannot_begin_ends_the_job() {
    // The launcher of Open MPI 5.0 has been seen to stay when all its processes had ended.
    for mpi in Mpi::all().into_iter().filter(|mpi| mpi.name != "openmpi-5") {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        let program = mpi.program_of(folder.path(), &[SAY, MAIN].concat());
        fs::write(path("static.c"), "int main(void) { return 0; }").unwrap();
        let built = Command::new("cc").args(["-static", "-o", &path("static"), &path("static.c")]).status();
        assert!(built.unwrap().success());
        let whole = mapping(folder.path(), &[1, 0]).to_str().unwrap().to_owned();
        fs::write(path("cut"), "0 1\n1 ").unwrap();
        let (program, recorder) = (program.to_str().unwrap(), recorder());
        let inside =
            |mapping: &str| [recorder.to_str().unwrap(), "reorder", "--mapping", mapping].map(str::to_owned);
        for (mappings, second, expected) in [
            ([&*whole, &*whole], &*path("static"), "is linked statically"),
            ([&path("cut"), &whole], program, "is not the place of a rank"),
            ([&path("none"), &whole], program, "cannot be read"),
            ([&whole, &whole], "/no/such/program", "cannot be started"),
        ] {
            let mut command = Command::new(mpi.launcher());
            command.args(["-n", "1"]).args(inside(mappings[0])).args([program, ":", "-n", "1"]);
            command.args(inside(mappings[1])).arg(second);
            command.current_dir(folder.path()).env("XDG_CACHE_HOME", cache());
            let began = std::time::Instant::now();
            let output = mpi.prepared(&mut command).output().unwrap();
            let said = text(&output);
            assert!(began.elapsed().as_secs() < 60, "{mpi}: {said}");
            assert_ne!(output.status.code(), Some(0), "{mpi}: {said}");
            assert_eq!(said.matches(expected).count(), 1, "{mpi}: {said}");
            assert!(lines(&output).is_empty(), "{mpi}: {said}");
        }
    }
}

/// `--verify` runs a program of its own, and `hopmap where` shows the new ranks, although it does not call MPI.
#[test]
fn places_are_verified_and_shown() {
    for mpi in Mpi::all() {
        let folder = tempfile::tempdir().unwrap();
        let mapping = mapping(folder.path(), &[1, 2, 0]);
        let recorder = recorder();
        let recorder = recorder.to_str().unwrap();
        let words = [&*mpi.launcher(), "-n", "3", recorder, "where"];
        let output = reorder(&mpi, folder.path(), &mapping, &words);
        let said = text(&output);
        assert!(
            (0..3).all(|rank| said.contains(&format!("rank {rank} on {}, cores", host_name()))),
            "{mpi}: {said}"
        );
        let mut command = Command::new(recorder);
        command.args(["reorder", "--verify", "--mapping"]).arg(&mapping).arg("--").args(words);
        let output = mpi.prepared(&mut command).env("XDG_CACHE_HOME", cache()).output().unwrap();
        let said = text(&output);
        assert!(
            output.status.success() && said.contains("3 ranks are where the mapping has them"),
            "{mpi}: {said}"
        );
    }
}

/// Each order and distribution of the tasks, on four nodes; no task builds the library.
#[test]
fn one_mapping_serves_each_distribution_of_slurm() {
    if !mpis().contains(&"mpich") {
        return;
    }
    let mpi = Mpi { name: "mpich".to_owned(), bin: None };
    let (cluster, folder) = (Cluster::start(), tempfile::tempdir().unwrap());
    let program =
        mpi.program_of(folder.path(), &[&SAY.replace("PMI_RANK", "SLURMD_NODENAME"), MAIN].concat());
    let (program, recorder) = (program.to_str().unwrap(), recorder());
    let recorder = recorder.to_str().unwrap();
    let run = |words: &[&str], has_cache: bool| {
        let cache = if has_cache { cache().to_owned() } else { folder.path().join("no-cache") };
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).current_dir(folder.path());
        command.env("SLURM_CONF", cluster.configuration()).env("XDG_CACHE_HOME", cache);
        mpi.prepared(&mut command).output().unwrap()
    };
    let srun = ["srun", "--mpi=pmi2", "-N", "4", "--ntasks-per-node=2"];
    for hosts in [[1, 1, 2, 2, 3, 3, 4, 4], [4, 4, 3, 3, 2, 2, 1, 1], [3, 1, 4, 2, 2, 3, 1, 4]] {
        let mapped = |separator: &str| {
            (0..).zip(hosts).map(|(rank, host)| format!("{rank}{separator}n{host}")).collect::<Vec<_>>()
        };
        fs::write(folder.path().join("mapping"), mapped(" ").join("\n")).unwrap();
        let inside = [recorder, "reorder", "--mapping", "mapping"];
        let output = run(&[&inside[..], &["--build", program]].concat(), true);
        assert!(output.status.success(), "{}", text(&output));
        for distribution in [&["-m", "block"], &["-m", "cyclic"]] {
            let output = run(&[&srun[..], distribution, &inside, &[program]].concat(), false);
            assert_eq!(lines(&output), mapped(":"), "{}", text(&output));
        }
        assert!(!folder.path().join("no-cache").exists());
    }
    let inside = [recorder, "reorder", "--mapping", "mapping", program];
    for (words, expected) in [
        (
            [&srun[..4], &["-n", "4"], &inside].concat(),
            "the mapping has 8 ranks, and the launcher has started 4",
        ),
        (
            [&srun[..4], &["-n", "8", "-m", "plane=4"], &inside].concat(),
            "where 4 processes run: start as many there",
        ),
        ([&["srun", "-N", "4", "-n", "8"][..], &inside].concat(), "srun has started 8 tasks without PMI"),
    ] {
        let output = run(&words, false);
        let said = text(&output);
        assert!(!output.status.success() && said.matches(expected).count() == 1, "{words:?}: {said}");
        assert!(lines(&output).is_empty(), "{said}");
    }
    let (first, other) = (inside.join(" "), "/no/such/program");
    let script = format!(
        "if [ $SLURM_PROCID = 3 ]; then exec {recorder} reorder --mapping mapping {other}; else exec {first}; fi"
    );
    let output = run(&[&srun[..], &["sh", "-c", &script]].concat(), false);
    assert!(!output.status.success() && text(&output).contains("cannot be started"), "{}", text(&output));
}
