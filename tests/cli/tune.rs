//! `hopmap tune`: from a program to a measured gain, with real Open MPI on an emulated network with shared links; and what it
//! refuses.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use hopmap_test_support::{only_in_a_soak, program, system_tests};

use crate::sandbox::{Sandbox, project};

/// Links of a tree of 8 hosts with 2 slots, by level.
const LATENCY: &str = "link_latency_s=[200e-6, 300e-6, 500e-6]";
const BANDWIDTH: &str = "bandwidth_bytes_per_s=[10e6, 10e6, 5e6]";

/// An emulated network, and communication patterns as a program.
struct Lab {
    sandbox: Sandbox,
    hopmap: PathBuf,
    /// The programs of another MPI than Debian's Open MPI.
    bin: Option<PathBuf>,
}

impl Lab {
    /// None where a program is missing.
    fn new() -> Option<Self> {
        Self::of(None)
    }

    fn of(bin: Option<PathBuf>) -> Option<Self> {
        if !system_tests() || program("mpicc.openmpi").is_none() {
            return None;
        }
        let hopmap = assert_cmd::cargo::cargo_bin!("hopmap").to_owned();
        let lab = Self { sandbox: Sandbox::new(), hopmap, bin };
        let bench = project().join("ci/bench");
        lab.compile("patterns", &bench.join("patterns.c"));
        lab.build(
            Command::new("cc").args(["-O2", "-shared", "-fPIC", "-o", "yield.so"]).arg(bench.join("yield.c")),
        );
        // The recorder is preloaded as well.
        let script = "#!/bin/sh\nexport LD_PRELOAD=\"$PWD/yield.so${LD_PRELOAD:+:$LD_PRELOAD}\"\nexec ./patterns \"$@\"\n";
        lab.script("app", script);
        // Hydra passes options of ssh.
        let agent = "#!/bin/sh\nwhile :; do case $1 in -o) shift 2 ;; -*) shift ;; *) break ;; esac; done\n\
                     exec hopmap-test-network on \"$@\"\n";
        lab.script("agent", agent);
        let machine =
            ["exec", "topology/synthetic", "-p", "shape=tree:2x2x2x2", "-p", "hosts=h[0-7]", "-p", LATENCY];
        lab.sandbox.stdout(&[&machine[..], &["-p", BANDWIDTH, "--out", "true"]].concat());
        lab.sandbox.stdout(&[
            "exec",
            "topology/export",
            "--in",
            "system=true",
            "-p",
            "format=graph-json",
            "--out",
            "network",
        ]);
        Some(lab)
    }

    fn compile(&self, program: &str, source: &Path) {
        let options = ["-O2", "-pthread", "-o", program];
        let mut compiler =
            Command::new(self.bin.as_ref().map_or("mpicc.openmpi".into(), |bin| bin.join("mpicc")));
        let root = self.bin.as_ref().and_then(|bin| bin.parent());
        compiler.envs(root.map(|root| ("I_MPI_ROOT", root)));
        self.build(compiler.args(options).arg(source));
    }

    fn script(&self, name: &str, text: &str) -> PathBuf {
        self.sandbox.write(name, text);
        let path = self.sandbox.path().join(name);
        std::fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        path
    }

    fn build(&self, command: &mut Command) {
        assert!(command.current_dir(self.sandbox.path()).status().unwrap().success());
    }

    /// Runs `hopmap tune` of a communication pattern on the network.
    fn tune(&self, options: &[&str], pattern: &str) -> Output {
        self.tune_programs(&[options, &["--", "./app"]].concat(), pattern)
    }

    fn tune_programs(&self, options: &[&str], pattern: &str) -> Output {
        let bin = self.hopmap.parent().unwrap();
        let own = self.bin.as_ref().map(|bin| format!("{}:", bin.display())).unwrap_or_default();
        let path = format!("{own}{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
        let tune = ["tune", "--topology", "network/files/machine.json", "--hosts", "h[0-7]", "--slots", "2"];
        let launcher =
            if options.contains(&"--launcher") { &[][..] } else { &["--launcher", "mpirun.openmpi"] };
        self.on_network("network", &self.hopmap)
            .args(tune)
            .args(if options.contains(&"--launch") { &[][..] } else { &["--launch", "open-mpi-hosts"] })
            // A bound is on the whole run, and ends nothing where a part of it is timed.
            .args(if options.contains(&"--worth") { &[][..] } else { &["--time-after", "time "] })
            .args(launcher)
            .args(options)
            .args(pattern.split(' ').filter(|word| !word.is_empty()))
            .env("PATH", path)
            .output()
            .unwrap()
    }

    /// A hopmap on an exported network.
    fn on_network(&self, network: &str, hopmap: &Path) -> Command {
        let program = self.hopmap.with_file_name("hopmap-test-network");
        let agent = format!("{} on", program.display());
        let mut command = Command::new(program);
        command
            .args(["run", "--machine", &format!("{network}/files/machine.json"), "--"])
            .arg(hopmap)
            .current_dir(self.sandbox.path())
            .env("XDG_CACHE_HOME", self.sandbox.path().join("cache"))
            .envs(hopmap_mpi_environment::AS_ROOT)
            .env("OMPI_MCA_plm_rsh_agent", agent)
            .env("OMPI_MCA_btl", "tcp,self")
            .env("OMPI_MCA_btl_tcp_if_include", "10.77.0.0/24")
            .env("OMPI_MCA_oob_tcp_if_include", "10.77.0.0/24")
            // Long messages of both directions at once, as the model has them.
            .env("OMPI_MCA_btl_tcp_flags", "1")
            .env("OMPI_MCA_rmaps_base_oversubscribe", "1")
            .env("OMPI_MCA_mpi_yield_when_idle", "1")
            .env("OMPI_MCA_hwloc_base_binding_policy", "none");
        if let Some(root) = self.bin.as_ref().and_then(|bin| bin.parent()) {
            let agent = self.sandbox.path().join("agent");
            command.env("HYDRA_LAUNCHER_EXEC", &agent).env("I_MPI_HYDRA_BOOTSTRAP_EXEC", &agent);
            command.env("UCX_TLS", "tcp,self").env("UCX_NET_DEVICES", "eth0");
            command.env("I_MPI_ROOT", root).env("I_MPI_FABRICS", "ofi");
            command.env("FI_PROVIDER", "tcp").env("FI_TCP_IFACE", "eth0");
        }
        command
    }
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// The gain and its prediction in percent, from the last line.
fn gains(seen: &str) -> (f64, f64) {
    let number = |label: &str| {
        let rest = seen.split(label).nth(1).unwrap_or_else(|| panic!("{seen}"));
        rest.split_whitespace().next().unwrap().parse().unwrap()
    };
    (number("placed is "), number(", predicted "))
}

#[test]
fn a_halo_exchange_in_a_bad_order_becomes_as_much_faster_as_predicted() {
    let Some(lab) = Lab::new() else { return };
    let (options, pattern) = match std::env::var_os("HOPMAP_SOAK") {
        Some(_) => (&["--precision", "2%"][..], "stencil 262144 3 20000 shuffled"),
        // It ends at the first interval.
        None => (
            &["--objectives", "F", "--best", "1", "--precision", "20%", "--deadline", "90s"][..],
            "stencil 262144 1 20000 shuffled",
        ),
    };
    let output = lab.tune(options, pattern);
    let seen = text(&output);
    assert!(output.status.success(), "{seen}");
    let (gain, predicted) = gains(&seen);
    assert!(gain >= 30.0 && (gain - predicted).abs() <= 10.0, "{seen}");
    assert!(seen.contains("run with     mpirun"), "{seen}");
    let recorded = lab.sandbox.read("tune/default.hosts");
    assert_eq!(recorded.lines().skip(1).take(3).collect::<Vec<_>>(), ["h0", "h0", "h1"]);
    // Another number of ranks is another program.
    let other = text(&lab.tune(&[options, &["-n", "8"]].concat(), pattern));
    assert!(other.contains("tune::other_program"), "{other}");
    // Nothing is recorded or measured again, but the launcher is checked in every run.
    let again = text(&lab.tune(options, pattern));
    assert!(!again.contains("recording mpirun") && again.contains("placed is "), "{again}");
}

/// What LAMMPS dumps, two processes copy: one reads every frame that is complete, the other writes it.
const WRITER: &str = r#"#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
enum { FRAMES = 5, MOST = 1 << 22 };
int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm own;
    /* As LAMMPS does with -m, so that the world is that of both programs. */
    MPI_Comm_split(MPI_COMM_WORLD, 2, 0, &own);
    int rank, size;
    MPI_Comm_rank(own, &rank);
    MPI_Comm_size(own, &size);
    char *frame = malloc(MOST), name[64];
    for (int i = 0; i < FRAMES; i++) {
        if (rank == 0) {
            snprintf(name, sizeof name, "frame.%d", i + 1);
            while (access(name, F_OK)) usleep(1000);
            snprintf(name, sizeof name, "frame.%d", i);
            FILE *file = fopen(name, "r");
            int bytes = fread(frame, 1, MOST, file);
            fclose(file);
            remove(name);
            MPI_Send(frame, bytes, MPI_BYTE, size - 1, i, own);
        }
        if (rank == size - 1) {
            MPI_Status status;
            int bytes;
            MPI_Recv(frame, MOST, MPI_BYTE, 0, i, own, &status);
            MPI_Get_count(&status, MPI_BYTE, &bytes);
            snprintf(name, sizeof name, "copy.%d", i);
            FILE *file = fopen(name, "w");
            fwrite(frame, 1, bytes, file);
            fclose(file);
        }
    }
    if (rank == 0) remove("frame.5");
    /* LAMMPS does so at its end. */
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
"#;

/// LAMMPS beside a writer of its dumps shares the network with it, as one job.
#[test]
fn two_programs_of_one_job_are_recorded_and_tuned_as_one() {
    let Some(lab) = Lab::new().filter(|_| program("lmp").is_some()) else { return };
    lab.sandbox.write(
        "in.cube",
        "units lj\natom_style atomic\nlattice fcc 0.8442\nregion box block 0 8 0 8 0 8\ncreate_box 1 box\n\
         create_atoms 1 box\nmass 1 1.0\nvelocity all create 3.0 87287\npair_style lj/cut 2.5\n\
         pair_coeff 1 1 1.0 1.0 2.5\nfix 1 all nve\ndump 1 all atom 1 frame.*\nrun 5\n",
    );
    lab.sandbox.write("writer.c", WRITER);
    lab.compile("writer", &lab.sandbox.path().join("writer.c"));
    lab.sandbox.write("programs", "0-13 lmp -m 1 -in in.cube -log a.log\n14-15 ./writer\n");
    let options = "--programs programs --launch open-mpi-4 --worth 2% --force --objectives F --best 1 --precision 20% --deadline 40s";
    let output = lab.tune_programs(&options.split(' ').collect::<Vec<_>>(), "");
    let seen = text(&output);
    assert!(output.status.success(), "{seen}");
    assert!(seen.contains("-n 14 lmp -m 1 -in in.cube -log a.log : -n 2 ./writer"), "{seen}");
    assert!(lab.sandbox.path().join("copy.4").exists(), "{seen}");
    // Whatever is true.
    let outcomes = [
        "placed is ",
        "no difference between the default",
        "it is the same as default",
        "no candidate is predicted to be faster than the default placement",
    ];
    assert!(outcomes.iter().any(|outcome| seen.contains(outcome)), "{seen}");
    let has_file = lab.sandbox.path().join("tune/rankfile").exists();
    assert_eq!(seen.contains("takes the place of -n with the number of all ranks"), has_file, "{seen}");
}

/// As from an unpacked tarball: neither hopmap-ranks nor Rust anywhere, so that the prober is built with mpicc.
#[test]
fn the_machine_is_measured_where_there_is_only_hopmap_and_an_mpi() {
    let Some(lab) = Lab::new() else { return };
    let unpacked = lab.sandbox.path().join("unpacked/bin/hopmap");
    std::fs::create_dir_all(unpacked.parent().unwrap()).unwrap();
    std::fs::copy(&lab.hopmap, &unpacked).unwrap();
    let folders = std::env::var_os("PATH").unwrap();
    let has = |folder: &PathBuf, name: &&str| folder.join(name).exists();
    let folders = std::env::split_paths(&folders)
        .filter(|folder| !["cargo", "rustc", "hopmap-ranks"].iter().any(|name| has(folder, name)));
    let machine = ["exec", "topology/synthetic", "-p", "shape=tree:2x2", "-p", "hosts=h[0-1]", "-p"];
    let links = ["link_latency_s=200e-6", "-p", "bandwidth_bytes_per_s=40e6", "--out", "small"];
    lab.sandbox.stdout(&[&machine[..], &links].concat());
    let export =
        ["exec", "topology/export", "--in", "system=small", "-p", "format=graph-json", "--out", "pair"];
    lab.sandbox.stdout(&export);
    let tune =
        ["tune", "--hosts", "h[0-1]", "--slots", "2", "--launch", "open-mpi-hosts", "--objectives", "F"];
    let mut command = lab.on_network("pair", &unpacked);
    command.args(tune).args([
        "--launcher",
        "mpirun.openmpi",
        "--",
        "./app",
        "stencil",
        "100000",
        "3",
        "2000",
    ]);
    let output =
        command.env("PATH", std::env::join_paths(folders).unwrap()).env_remove("HOPMAP_RANKS").output();
    let output = output.unwrap();
    let seen = text(&output);
    assert!(output.status.success(), "{seen}");
    assert!(seen.contains("measuring the machine"), "{seen}");
    let cached = std::fs::read_dir(lab.sandbox.path().join("cache/hopmap")).unwrap().flatten();
    let mut names = cached.map(|entry| entry.file_name().into_string().unwrap());
    assert!(names.any(|name| name.starts_with("prober-open-mpi-")), "{seen}");
    let measured = lab.sandbox.stdout(&["show", "tune/machine/measurements"]);
    assert!(measured.contains("eager_limit_bytes"), "{measured}");
}

/// Predictions of these may be too short, and a bound of them says too early that nothing is gained.
#[test]
fn a_program_whose_threads_overlap_is_placed_by_its_runs_alone() {
    let Some(lab) = Lab::new() else { return };
    lab.compile("random", &project().join("tests/support/programs/random.c"));
    let script =
        "#!/bin/sh\n./random \"$@\" || exit 1\n[ \"$OMPI_COMM_WORLD_RANK\" != 0 ] || echo time 1.5 s\n";
    lab.sandbox.write("app", script);
    let output = lab
        .tune(&["--objectives", "T", "--best", "1", "--precision", "20%", "--deadline", "90s"], "3 60 many");
    let seen = text(&output);
    assert!(output.status.success() && seen.contains("threads call MPI at the same time"), "{seen}");
    assert!(seen.contains("without bound and predictions") && !seen.contains("predicted "), "{seen}");
    assert!(seen.contains("placed is ") || seen.contains("no difference between the default"), "{seen}");
}

#[test]
fn small_messages_and_much_computation_are_not_worth_it() {
    let Some(lab) = Lab::new() else { return };
    // Time to build the recorder on a busy machine, and too little for runs as long as these.
    let pattern = "stencil 1000 4 1000000";
    let output = lab.tune(&["--deadline", "60s", "--worth", "2%"], pattern);
    let seen = text(&output);
    assert!(output.status.success(), "{seen}");
    assert!(seen.contains("24 are needed: 12 to warm up and choose the candidate"), "{seen}");
    assert!(
        seen.contains("no placement gains more than ") && seen.contains(" %: keep the default placement"),
        "{seen}"
    );
    assert!(!lab.sandbox.path().join("tune/rankfile").exists(), "{seen}");
}

#[test]
fn what_cannot_be_tuned_is_one_message() {
    let sandbox = Sandbox::new();
    sandbox.write("slurm.conf", "SwitchName=s Nodes=n[1-2]\n");
    let refused = |arguments: &[&str]| {
        let output = sandbox.command(arguments).env_remove("SLURM_JOB_NODELIST").output().unwrap();
        assert!(!output.status.success());
        text(&output)
    };
    sandbox.write("app", "");
    for (arguments, expected) in [
        (&["tune", "--", "./app"][..], "no hosts are given, and this is not a batch job"),
        (&["tune", "--hosts", "n[1-2", "--slots", "2", "--", "./app"], "hosts `n[1-2`"),
        (
            &["tune", "--hosts", "n[1-2]", "--slots", "2", "-n", "5", "--", "./app"],
            "5 ranks do not fit into 4 slots",
        ),
        (
            &["tune", "--hosts", "n1", "--slots", "2", "--launch", "pbs", "--", "./app"],
            "unknown variant `pbs`",
        ),
        (&["tune", "--hosts", "n1", "--slots", "2", "--launcher", "'x", "--", "./app"], "is not a command"),
        (&["tune", "--hosts", "n1,n1", "--slots", "2", "--", "./app"], "has `n1` twice"),
        (
            &["tune", "--hosts", "n1", "--slots", "2", "--objectives", "G", "--", "./app"],
            "`objective` must be one of",
        ),
        (
            &["tune", "--hosts", "n1", "--slots", "2", "--precision", "0", "--", "./app"],
            "`precision` = 0.0 is out of range",
        ),
        (
            &["tune", "--hosts", "n1", "--slots", "2", "--topology", "none", "--", "./app"],
            "`--topology none` does not exist",
        ),
        (
            &["tune", "--hosts", "n[1-2]", "--slots", "2", "--prepare", "exit 3", "--", "./app"],
            "`exit 3` ended with exit status: 3",
        ),
        (
            &["tune", "--hosts", "n[1-2]", "--slots", "2", "--", "/opt/bin/mpirun", "-n", "4", "./app"],
            "`/opt/bin/mpirun` is a launcher",
        ),
        (
            &["tune", "--hosts", "n[1-2]", "--slots", "2", "--latency", "1e-6", "--", "./app"],
            "those of a machine that is given",
        ),
        (&["tune", "--hosts", "n1", "--slots", "2", "--", "./nope"], "the program `./nope` does not exist"),
        (
            &[
                "tune", "--hosts", "n[1-2]", "--slots", "2", "--", "-n", "2", "./app", ":", "-n", "2",
                "./nope",
            ],
            "the program `./nope` does not exist",
        ),
        // Hydra waits without end for such a host.
        (
            &["tune", "--hosts", "a.invalid,b.invalid", "--slots", "2", "--prepare", "exit 3", "--", "./app"],
            "`a.invalid` has no address here",
        ),
        (&["tune", "--hosts", "n1,localhost", "--slots", "9999", "--", "./app"], "too few for 9999 slots"),
        // Machines are looked at before the program runs.
        (
            &["tune", "--hosts", "n[1-2]", "--slots", "2", "--topology", "slurm.conf", "--", "./app"],
            "give --latency and --bandwidth",
        ),
        (
            &["tune", "--hosts", "n[1-3]", "--slots", "2", "--topology", "slurm.conf", "--", "./app"],
            "`n3` is not a host with slots in the machine topology",
        ),
    ] {
        let seen = refused(arguments);
        assert!(seen.contains(expected) && !seen.contains("recording "), "{expected}:\n{seen}");
    }
}

/// A wrong `--shape` was reported at a line of tune.toml.
#[test]
fn a_wrong_value_names_its_option_and_no_line_of_the_pipeline() {
    let sandbox = Sandbox::new();
    sandbox.write("app", "");
    let given = [("--shape", "tree:2x2"), ("--latency", "1e-6"), ("--bandwidth", "1e9")];
    for (option, value) in [
        ("--slots", "0"),
        ("--ranks", "0"),
        ("--launch", "none"),
        ("--launcher", "'x"),
        ("--topology", "none"),
        ("--shape", "cube"),
        ("--latency", "[1e-6, 2e-6, 3e-6]"),
        ("--bandwidth", "fast"),
        ("--objectives", "G"),
        ("--best", "20000"),
        ("--precision", "0"),
        ("--deadline", "0s"),
        ("--time-after", " "),
    ] {
        let others = given.iter().filter(|(other, _)| *other != option && option != "--topology");
        let others: Vec<&str> = others.flat_map(|(other, value)| [*other, *value]).collect();
        let words = [&["tune", "--hosts", "n[1-2]:2", option, value][..], &others, &["--", "./app"]].concat();
        let seen = sandbox.seen(&words);
        assert!(seen.contains(option) && !seen.contains(".toml"), "{option}:\n{seen}");
        assert!(seen.ends_with("[exit code 2]\n"), "{option}:\n{seen}");
    }
}

/// Failed after the recording, because the default objectives need links.
#[test]
fn one_host_with_one_level_ends_before_the_program_runs() {
    let sandbox = Sandbox::new();
    let rates = ["--latency", "1e-6", "--bandwidth", "1e9", "--", "none"];
    let equal = "one host, whose 2 slots are equally far from each other: there is nothing to place; keep the default placement";
    let unbound = "one host, and its launch file does not choose cores: there is nothing to place; keep the default placement";
    for (hosts, shape, launch, expected) in [
        ("n1", "tree:2", "open-mpi-4", equal),
        // Two placements with the same host file were compared for 15 minutes.
        ("n1", "tree:2x1", "open-mpi-hosts", unbound),
        (
            "n[1-2]",
            "tree:1x2",
            "open-mpi-hosts",
            "one rank: there is nothing to place; keep the default placement",
        ),
    ] {
        let ranks = if hosts == "n1" { "2" } else { "1" };
        let slots = ["tune", "--hosts", hosts, "--slots", "2", "-n", ranks];
        let words = [&slots[..], &["--shape", shape, "--launch", launch]].concat();
        let output = sandbox.output(&[&words[..], &rates].concat());
        assert!(output.status.success() && text(&output).contains(expected), "{}", text(&output));
    }
}

/// One deadline for all phases: it also ends a recording that takes too long, and the runs.
#[test]
fn a_deadline_ends_the_recording_too() {
    let Some(lab) = Lab::new() else { return };
    let begin = std::time::Instant::now();
    let output = lab.tune(&["--deadline", "4s"], "stencil 1000 600 2000000");
    let seen = text(&output);
    assert_eq!(output.status.code(), Some(1), "{seen}");
    assert!(seen.contains(" s of --deadline were over before the recorded run had ended"), "{seen}");
    // The program takes twenty minutes.
    assert!(begin.elapsed() < std::time::Duration::from_mins(5), "{seen}");
    assert!(!lab.sandbox.path().join("tune/recording").exists());
}

/// The check was taken for a launcher that disobeys.
#[test]
fn a_deadline_ends_the_check_of_the_launcher_too() {
    let Some(lab) = Lab::new().filter(|_| only_in_a_soak()) else { return };
    let slow = lab.script(
        "slow",
        "#!/bin/sh\ncase \" $* \" in *\" where\"*) exec sleep 600 ;; esac\nexec mpirun.openmpi \"$@\"\n",
    );
    let launcher = ["--launcher", slow.to_str().unwrap(), "--mpicc", "mpicc.openmpi"];
    let options = ["--objectives", "F", "--best", "1", "--deadline", "40s", "--force"];
    let output = lab.tune(&[&launcher[..], &options].concat(), "stencil 262144 1 20 shuffled");
    let seen = text(&output);
    assert_eq!(output.status.code(), Some(1), "{seen}");
    assert!(seen.contains("s of --deadline were over before the check of the launcher had ended"), "{seen}");
    assert!(!seen.contains("launch::disobeyed"), "{seen}");
}

/// As much as with a host file: 57 % on a quiet machine.
#[test]
fn a_launcher_that_ignores_the_file_is_helped_by_reordering() {
    let Some(lab) = Lab::new() else { return };
    let ignoring = lab.script(
        "ignoring",
        "#!/bin/bash\nwords=()\nwhile [ $# -gt 0 ]; do case $1 in --hostfile|--map-by|--host) shift 2 ;; *) words+=(\"$1\"); shift ;; esac; done\n\
         exec mpirun.openmpi --host h0:2,h1:2,h2:2,h3:2,h4:2,h5:2,h6:2,h7:2 \"${words[@]}\"\n",
    );
    let ignoring = ignoring.to_str().unwrap();
    let options = [
        "--launcher",
        ignoring,
        "--mpicc",
        "mpicc.openmpi",
        "--objectives",
        "F",
        "--best",
        "1",
        "--precision",
        "20%",
        "--deadline",
        "150s",
    ];
    let output = lab.tune(&options, "stencil 262144 1 20000 shuffled");
    let seen = text(&output);
    assert!(output.status.success() && seen.contains("launch::disobeyed"), "{seen}");
    assert!(seen.contains("`hopmap reorder` renumbers them instead"), "{seen}");
    let (gain, predicted) = gains(&seen);
    assert!(gain >= 30.0 && (gain - predicted).abs() <= 10.0, "{seen}");
    assert!(seen.contains("hopmap reorder --mapping tune/rankfile PROGRAM"), "{seen}");
}

/// MPICH 5 and Intel MPI, by their own launch files. One run of Intel MPI in some dozens crashes in its own collective operations.
#[test]
fn further_mpis_are_tuned_by_their_launch_files() {
    if !only_in_a_soak() {
        return;
    }
    let mpis = PathBuf::from(std::env::var_os("HOPMAP_MPIS").unwrap());
    for (mpi, launch) in [("mpich-5", "mpich"), ("intel", "intel-mpi")] {
        let bin = mpis.join(mpi).join("bin");
        let compiler = bin.join("mpicc");
        let Some(lab) = Lab::of(Some(bin)) else { return };
        let launcher = ["--launch", launch, "--launcher", "mpiexec.hydra", "--mpicc"];
        let options = "--allow-failures --objectives F --best 1 --precision 20% --deadline 150s";
        let words = [&launcher[..], &[compiler.to_str().unwrap()], &options.split(' ').collect::<Vec<_>>()];
        let output = lab.tune(&words.concat(), "stencil 262144 1 20000 shuffled");
        let seen = text(&output);
        assert!(output.status.success() && !seen.contains("launch::disobeyed"), "{mpi}: {seen}");
        let (gain, predicted) = gains(&seen);
        assert!(gain >= 30.0 && (gain - predicted).abs() <= 10.0, "{mpi}: {seen}");
    }
}

#[test]
fn inputs_that_a_run_changes_are_restored_before_the_next_one() {
    if !system_tests() || program("mpirun.openmpi").is_none() {
        return;
    }
    let sandbox = Sandbox::new();
    std::fs::create_dir(sandbox.path().join("in")).unwrap();
    sandbox.write("in/input", "original\n");
    let changes =
        "[ $OMPI_COMM_WORLD_RANK = 0 ] && { cat in/input >> seen; echo changed > in/input; }; exit 3";
    let run = |keep: &str| {
        let here = [
            "tune",
            "--force",
            "--hosts",
            "localhost",
            "--slots",
            "2",
            "--launcher",
            "mpirun.openmpi",
            "--keep",
            keep,
        ];
        let mut command = sandbox.command(&[&here[..], &["--", "sh", "-c", changes]].concat());
        command.envs(hopmap_mpi_environment::AS_ROOT).env("OMPI_MCA_rmaps_base_oversubscribe", "1");
        text(&command.output().unwrap())
    };
    for _ in 0..2 {
        let seen = run("in/input");
        assert!(seen.contains("no rank has left a file"), "{seen}");
    }
    assert_eq!(sandbox.read("seen"), "original\noriginal\n");
    // They stayed as the last run had left them.
    assert_eq!(sandbox.read("in/input"), "original\n");
    assert!(run("../other").contains("is not below the working directory"));
    // An old copy replaced what the user had edited since the last call.
    sandbox.write("in/input", "edited for an hour\n");
    let seen = run("in/input");
    assert!(seen.contains("in/input was changed since it was kept"), "{seen}");
    assert_eq!(sandbox.read("in/input"), "edited for an hour\n");
    // A longer list was ignored.
    sandbox.write("in/input", "original\n");
    sandbox.write("more", "more\n");
    assert!(run("in/input,more").contains("has not these files: in/input, more"));
    assert!(run("in/input").contains("no rank has left a file"));
    std::fs::remove_dir_all(sandbox.path().join("tune")).unwrap();
    assert!(run("none").contains("none"));
}

#[test]
fn a_program_or_a_launcher_that_fails_leaves_no_recording() {
    if !system_tests() || program("mpirun.openmpi").is_none() {
        return;
    }
    let sandbox = Sandbox::new();
    let here = ["tune", "--force", "--hosts", "localhost", "--slots", "2", "--launcher"];
    let run = |launcher: &str, program: &[&str]| {
        let mut command = sandbox.command(&[&here[..], &[launcher, "--"], program].concat());
        let command =
            command.envs(hopmap_mpi_environment::AS_ROOT).env("OMPI_MCA_rmaps_base_oversubscribe", "1");
        let output = command.output().unwrap();
        assert!(!output.status.success());
        text(&output)
    };
    for (launcher, program, expected) in [
        ("mpirun.openmpi", &["sh", "-c", "exit 3"][..], "no rank has left a file"),
        ("mpirun.openmpi", &["./none"], "./none"),
        ("hopmap-none", &["true"], "hopmap-none"),
    ] {
        let seen = run(launcher, program);
        assert!(seen.contains(expected), "{expected}:\n{seen}");
        let left = std::fs::read_dir(sandbox.path().join("tune")).unwrap().flatten();
        let left: Vec<_> = left.map(|entry| entry.file_name()).collect();
        assert_eq!(left, ["tune.toml"]);
    }
}

/// `tune` replaced whatever had a name that it uses, and two calls mixed their recordings.
#[test]
fn files_of_a_user_and_of_another_tune_stay() {
    let Some(lab) = Lab::new() else { return };
    let options = ["--objectives", "F", "--best", "1", "--precision", "50%", "--deadline", "80s"];
    let pattern = "stencil 1000 1 20";
    let mine = ["recording.new/a", "machine.new/a", "kept.new/a", "best-so-far", "rankfile"];
    let place = |name: &str| format!("tune/{name}");
    for name in mine.iter().chain(&["default.hosts"]) {
        lab.sandbox.write(&place(name), "mine\n");
    }
    let seen = text(&lab.tune(&options, pattern));
    assert!(seen.contains("default.hosts was not written by a `save` of this pipeline"), "{seen}");
    std::fs::remove_file(lab.sandbox.path().join("tune/default.hosts")).unwrap();
    let seen = text(&lab.tune(&options, pattern));
    assert!(seen.contains("rankfile was not written by a `save` of this pipeline"), "{seen}");
    for name in mine {
        assert_eq!(lab.sandbox.read(&place(name)), "mine\n", "{name}");
    }
    std::fs::remove_dir_all(lab.sandbox.path().join("tune")).unwrap();
    let [one, other] = std::thread::scope(|scope| {
        [0, 1].map(|_| scope.spawn(|| lab.tune(&options, pattern))).map(|call| call.join().unwrap())
    });
    let seen = [text(&one), text(&other)];
    assert_eq!(seen.iter().filter(|seen| seen.contains("another hopmap works in")).count(), 1, "{seen:?}");
    assert!(one.status.success() || other.status.success(), "{seen:?}");
    // The same words, of another program.
    lab.sandbox.write("app", lab.sandbox.read("app") + "# another one\n");
    let seen = text(&lab.tune(&options, pattern));
    assert!(seen.contains("and the file of the program has changed since"), "{seen}");
}

/// The program got other arguments than were typed, or the command ended after the recording.
#[test]
fn arguments_of_generated_pipelines_are_as_they_were_typed() {
    let tune = |options: &[&str]| {
        let here =
            ["tune", "--hosts", "n[1-2]", "--slots", "1", "--launcher", "hopmap-${none}", "-o", "a ${b}"];
        let sandbox = Sandbox::new();
        let seen = sandbox.seen(&[&here[..], options, &["--", "sh", "-c", "echo ${HOME} $${HOME}"]].concat());
        (seen, sandbox.read("a ${b}/tune.toml"))
    };
    let (seen, _) = tune(&["--prepare", "test ${HOME} = $HOME", "--time-after", "${x"]);
    assert!(seen.contains("hopmap-${none}") && !seen.contains("reference"), "{seen}");
    // The check before the recording left it out.
    let (_, file) = tune(&["--prepare", "mkdir ${HOME}/x; false"]);
    assert!(file.contains("with.prepare = \"mkdir $${HOME}/x; false\""), "{file}");
}
