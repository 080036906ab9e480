//! Detects launchers, compilers and ranks of MPI without linking one. See the `README.md`.

mod compiler;
mod location;
mod preload;

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use std::{env, fmt};

use hopmap_process::{Limits, RunError, run};
use miette::Diagnostic;

pub use compiler::{Cache, Compiled, Compiler, CompilerError, Mpi, Sources, cache_folder, output};
pub use location::{Location, list};
pub use preload::{PRELOAD, before_programs, preload, program_in};

/// Time limit of a version query.
const TIME: Duration = Duration::from_secs(30);

/// The implementation that a launcher or a library belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Implementation {
    /// Open MPI, with its ORTE or PRRTE.
    OpenMpi,
    /// MPICH, with its Hydra.
    Mpich,
    /// Intel MPI, a descendant of MPICH.
    IntelMpi,
    /// Slurm: its `srun` starts programs of any MPI.
    Slurm,
}

impl fmt::Display for Implementation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OpenMpi => "Open MPI",
            Self::Mpich => "MPICH",
            Self::IntelMpi => "Intel MPI",
            Self::Slurm => "Slurm",
        })
    }
}

/// A binary interface: MPIs that share one have libraries of the same names, so that a program alone does not
/// say which of them it uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Abi {
    /// That of Open MPI.
    OpenMpi,
    /// That of MPICH, which Intel MPI and others share (<https://www.mpich.org/abi/>).
    Mpich,
}

impl fmt::Display for Abi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OpenMpi => "Open MPI",
            Self::Mpich => "MPICH or Intel MPI",
        })
    }
}

/// Beginnings of the names of MPI libraries. `libmpich…` are those of Debian, `libmpi.so.12` and `libmpifort` those
/// of MPICH and of Intel MPI.
const LIBRARIES: [(&str, Abi); 8] = [
    ("libmpi.so.12", Abi::Mpich),
    ("libmpifort.so", Abi::Mpich),
    ("libmpich", Abi::Mpich),
    ("libmpi_cray.so", Abi::Mpich),
    ("libmpi_gnu", Abi::Mpich),
    ("libmpi.so", Abi::OpenMpi),
    ("libmpi_mpifh.so", Abi::OpenMpi),
    ("libmpi_usempi", Abi::OpenMpi),
];

impl Abi {
    /// The interface of a library with this name, such as `libmpi.so.40`; `None` if it is not of MPI.
    #[must_use]
    pub fn of_library(name: &str) -> Option<Self> {
        LIBRARIES.iter().find(|(start, _)| name.starts_with(start)).map(|(_, abi)| *abi)
    }
}

/// Implementation and version of a launcher or a compiler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The implementation.
    pub implementation: Implementation,
    /// The version, such as `4.1.4`.
    pub version: String,
}

/// A launcher or a compiler that cannot be identified.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum MpiError {
    /// It does not run.
    #[error(transparent)]
    #[diagnostic(
        code(launcher::run),
        help(
            "install an MPI (on Debian `apt-get install openmpi-bin libopenmpi-dev`, or `mpich`), or load its module"
        )
    )]
    Run(#[from] RunError),
    /// Its output matches no known implementation.
    #[error("the output of `{command}` names none of Open MPI, MPICH, Intel MPI and Slurm: {first_line}")]
    #[diagnostic(code(launcher::unknown), help("use a launcher or a compiler of one of them"))]
    Unknown {
        /// The command that was run.
        command: String,
        /// The first line of its output.
        first_line: String,
    },
}

/// The text before the version in the output of each. MPICH's Hydra also mentions Slurm, as a supported
/// launcher.
const MARKS: [(&str, Implementation); 6] = [
    ("Open MPI", Implementation::OpenMpi),
    // `orterun` under a name other than `mpirun`, such as Debian's `mpirun.openmpi`.
    ("OpenRTE", Implementation::OpenMpi),
    ("Intel(R) MPI Library", Implementation::IntelMpi),
    ("HYDRA build details", Implementation::Mpich),
    ("MPICH", Implementation::Mpich),
    ("slurm", Implementation::Slurm),
];

impl Identity {
    /// Identifies a launcher: `mpirun`, `mpiexec`, `srun` or a path. `srun` works only where Slurm is
    /// configured.
    pub fn of_launcher(program: &str) -> Result<Self, MpiError> {
        ask(program, "--version")
    }

    /// Identifies a compiler: `mpicc` or a path.
    pub fn of_compiler(program: &str) -> Result<Self, MpiError> {
        // Open MPI passes `-v` on to the C compiler, whose output does not name an MPI. MPICH does so with
        // unknown options.
        match ask(program, "--showme:version") {
            Err(MpiError::Run(error)) if error.is_missing() => Err(error.into()),
            Err(_) => ask(program, "-v"),
            identity => identity,
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let (rest, implementation) = MARKS.iter().find_map(|(mark, implementation)| {
            Some((&text[text.find(mark)? + mark.len()..], *implementation))
        })?;
        let version =
            rest.split_whitespace().find(|word| word.starts_with(|first: char| first.is_ascii_digit()))?;
        Some(Self { implementation, version: version.to_owned() })
    }
}

fn ask(program: &str, option: &str) -> Result<Identity, MpiError> {
    let limits = Limits { time: Some(TIME), ..Limits::default() };
    let output = run(Command::new(program).arg(option), &limits)?;
    let text = String::from_utf8_lossy(&output.stdout);
    Identity::parse(&text).ok_or_else(|| MpiError::Unknown {
        command: format!("{program} {option}"),
        first_line: text.lines().next().unwrap_or_default().to_owned(),
    })
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.implementation, self.version)
    }
}

impl Implementation {
    /// All MPIs.
    pub const MPIS: [Self; 3] = [Self::OpenMpi, Self::Mpich, Self::IntelMpi];

    /// The binary interface of its programs; `None` for Slurm, which starts those of any MPI.
    #[must_use]
    pub fn abi(self) -> Option<Abi> {
        match self {
            Self::OpenMpi => Some(Abi::OpenMpi),
            Self::Mpich | Self::IntelMpi => Some(Abi::Mpich),
            Self::Slurm => None,
        }
    }

    /// The MPI of the launcher that has started this process, if its variables identify it. Hydra's are also
    /// those of Intel MPI, and of a `srun` with PMI2.
    #[must_use]
    pub fn of_this_process() -> Option<Self> {
        let has = |name: &str| variable(name).is_some();
        match () {
            () if has("OMPI_COMM_WORLD_RANK") => Some(Self::OpenMpi),
            () if has("MPI_LOCALRANKID") => {
                Some(if has("I_MPI_ROOT") { Self::IntelMpi } else { Self::Mpich })
            }
            () => None,
        }
    }

    /// Options with which a launcher exports variables of its environment to all ranks.
    ///
    /// Open MPI exports variables that begin with `OMPI_`, including its parameters `OMPI_MCA_…`, and those
    /// named with `-x`. Hydra exports all variables, and so does `srun` unless `SLURM_EXPORT_ENV` is set.
    /// Sources: mpirun(1) of Open MPI 4.1 and 5.0, `mpiexec -help` of MPICH 4.0, srun(1) of Slurm 22.05;
    /// tested with 4.1.4 and 4.0.2 (`tests/launchers.rs`).
    #[must_use]
    pub fn options_to_hand_on(self, names: &[&str]) -> Vec<String> {
        match self {
            Self::OpenMpi => names
                .iter()
                .filter(|name| !name.starts_with("OMPI_"))
                .flat_map(|name| ["-x".to_owned(), (*name).to_owned()])
                .collect(),
            Self::Mpich | Self::IntelMpi => Vec::new(),
            Self::Slurm => vec!["--export=ALL".to_owned()],
        }
    }
}

/// Lets root start programs with Open MPI, which refuses that by default. Containers often have no other
/// user.
pub const AS_ROOT: [(&str, &str); 2] =
    [("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")];

/// Variables with which Open MPI writes a profile `PREFIX.RANK.prof` per rank.
///
/// Source: `ompi/mca/common/monitoring/HowTo_pml_monitoring.tex` of Open MPI 4.1.
#[must_use]
pub fn monitoring_variables(prefix: &Path) -> [(&'static str, OsString); 3] {
    [
        ("OMPI_MCA_pml_monitoring_enable", "2".into()),
        ("OMPI_MCA_pml_monitoring_enable_output", "3".into()),
        ("OMPI_MCA_pml_monitoring_filename", prefix.into()),
    ]
}

/// Variables with which Open MPI waits three seconds, not one, from SIGTERM to SIGKILL, for ranks that write files
/// at their end. The second one is for Open MPI 5.
pub const LONGER_GRACE: [(&str, &str); 2] =
    [("OMPI_MCA_odls_base_sigkill_timeout", "3"), ("PRTE_MCA_odls_base_sigkill_timeout", "3")];

/// What a launcher starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LauncherKind {
    /// Ranks of an MPI program: `mpirun` and similar launchers.
    Ranks,
    /// The tasks of a job step: `srun`.
    Step,
    /// A command inside an allocation that the launcher waits for: `salloc`.
    Allocation,
    /// A queued script: `sbatch` exits long before the script runs.
    Batch,
    /// A command on another host: `ssh`.
    Remote,
}

impl LauncherKind {
    /// The kind of a program, given by name or path; `None` if it is not a known launcher.
    #[must_use]
    pub fn of(program: &str) -> Option<Self> {
        let name = program.rsplit('/').next().unwrap_or(program);
        // Debian installs both MPIs side by side.
        let name = name.trim_end_matches(".openmpi").trim_end_matches(".mpich");
        Some(match name {
            "mpirun" | "mpiexec" | "mpiexec.hydra" | "orterun" | "prterun" | "aprun" => Self::Ranks,
            "srun" => Self::Step,
            "salloc" => Self::Allocation,
            "sbatch" => Self::Batch,
            "ssh" => Self::Remote,
            _ => return None,
        })
    }
}

/// One of several processes that a launcher started together.
///
/// The variables that launchers set, as observed with Open MPI 4.1.4, MPICH 4.0.2 and Slurm 22.05.8:
///
/// | started by | rank | number of ranks |
/// |---|---|---|
/// | Open MPI's `mpirun`, also in a Slurm job | `OMPI_COMM_WORLD_RANK`, `PMIX_RANK` | `OMPI_COMM_WORLD_SIZE` |
/// | MPICH's Hydra | `PMI_RANK` | `PMI_SIZE` |
/// | `srun --mpi=pmi2` | `PMI_RANK`, `SLURM_PROCID` | `PMI_SIZE`, `SLURM_STEP_NUM_TASKS` |
/// | `srun --mpi=pmix` (from its source) | `PMIX_RANK`, `SLURM_PROCID` | `SLURM_STEP_NUM_TASKS` |
/// | `srun` | `SLURM_PROCID` | `SLURM_STEP_NUM_TASKS` |
/// | `torchrun` (from its source) | `RANK`, with `TORCHELASTIC_RUN_ID` | `WORLD_SIZE` |
///
/// Slurm's own variables are read last: inside a job, ranks of an `mpirun` inherit those of the step that
/// started its daemons, one per node. A batch script also has `SLURM_PROCID=0`, but is not a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rank {
    /// Its number, from zero.
    pub rank: u32,
    /// The number of ranks, if the launcher provides it.
    pub size: Option<u32>,
}

/// Largest number of a step that runs a user's program; larger ones are batch scripts, shells of `salloc`
/// etc. (`SLURM_MAX_NORMAL_STEP_ID` of `slurm.h`).
const LAST_STEP: u32 = 0xffff_fff0;

impl Rank {
    /// The rank of this process; `None` if no launcher started it.
    #[must_use]
    pub fn of_this_process() -> Option<Self> {
        Self::from(&variable)
    }

    /// The rank of this process if its launcher has prepared it for MPI: a step of Slurm without PMI is none.
    #[must_use]
    pub fn of_mpi_process() -> Option<Self> {
        Self::from(&|name| variable(name).filter(|_| !["SLURM_PROCID", "RANK"].contains(&name)))
    }

    /// The task of this process in a step of Slurm that was started without PMI: to MPI, each task is a program of its own.
    #[must_use]
    pub fn of_step_without_pmi() -> Option<Self> {
        match Self::of_mpi_process() {
            Some(_) => None,
            None => Self::from(&|name| variable(name).filter(|_| name != "RANK")),
        }
    }

    fn from(variable: &dyn Fn(&str) -> Option<String>) -> Option<Self> {
        let number = |name: &str| variable(name)?.parse::<u32>().ok();
        let is_step = number("SLURM_STEP_ID").is_some_and(|step| step < LAST_STEP);
        // `torchrun` may run inside a step of Slurm, which numbers the hosts.
        let is_of_torch = variable("TORCHELASTIC_RUN_ID").is_some();
        let is_of_slurm = variable("PMIX_NAMESPACE").is_some_and(|name| name.starts_with("slurm.pmix."));
        [
            ("RANK", "WORLD_SIZE", true),
            ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", true),
            ("PMIX_RANK", "SLURM_STEP_NUM_TASKS", is_of_slurm),
            ("PMI_RANK", "PMI_SIZE", true),
            ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", true),
        ]
        .into_iter()
        .filter(|(rank, ..)| (*rank != "SLURM_PROCID" || is_step) && (*rank != "RANK" || is_of_torch))
        .find_map(|(rank, size, has_size)| {
            Some(Self { rank: number(rank)?, size: number(size).filter(|_| has_size) })
        })
    }
}

/// The name of this host: that of its Slurm node (a machine may have several), otherwise that of the
/// operating system.
#[must_use]
pub fn host_name() -> String {
    node(&variable).unwrap_or_else(system_host_name)
}

/// The host name of the operating system.
#[must_use]
pub fn system_host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// The Slurm node of this process. Hydra in a batch script passes the variables of the script to all ranks,
/// including the name of the first node. It alone also sets `MPI_LOCALRANKID`.
fn node(variable: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    variable("SLURMD_NODENAME").filter(|_| variable("MPI_LOCALRANKID").is_none())
}

fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launchers_and_compilers_are_recognized_by_their_output() {
        let parsed = |text: &str| Identity::parse(text).map(|found| (found.implementation, found.version));
        let hydra = "HYDRA build details:\n    Version:                                 4.0.2\n    \
                     Release Date:    Thu Apr  7 12:34:45 CDT 2022\n    Launchers available:  ssh rsh fork slurm ll\n";
        for (text, implementation, version) in [
            (
                "mpirun (Open MPI) 5.0.10\n\nReport bugs to https://www.open-mpi.org/community/help/\n",
                Implementation::OpenMpi,
                "5.0.10",
            ),
            ("mpirun.openmpi (OpenRTE) 4.1.4\n", Implementation::OpenMpi, "4.1.4"),
            ("mpicc.openmpi: Open MPI 4.1.4 (Language: C)\n", Implementation::OpenMpi, "4.1.4"),
            (hydra, Implementation::Mpich, "4.0.2"),
            ("mpicc for MPICH version 4.0.2\n", Implementation::Mpich, "4.0.2"),
            (
                "Intel(R) MPI Library for Linux* OS, Version 2021.8 Build 20221129 (id: 339ec755a1)\n",
                Implementation::IntelMpi,
                "2021.8",
            ),
            (
                "Intel(R) MPI Library for Linux* OS, Version 2019 Update 2 Build 20190123\n",
                Implementation::IntelMpi,
                "2019",
            ),
            ("slurm-wlm 22.05.8\n", Implementation::Slurm, "22.05.8"),
        ] {
            assert_eq!(parsed(text), Some((implementation, version.to_owned())), "{text}");
        }
        assert_eq!(parsed("gcc (Debian 12.2.0-14) 12.2.0\n"), None);
        assert_eq!(parsed("MPICH\n"), None);
    }

    #[test]
    fn libraries_have_the_interface_of_their_mpi() {
        for (name, abi) in [
            ("libmpi.so.40", Some(Abi::OpenMpi)),
            ("libmpi_mpifh.so.40", Some(Abi::OpenMpi)),
            ("libmpi.so.12", Some(Abi::Mpich)),
            ("libmpich.so.12", Some(Abi::Mpich)),
            ("libmpichfort.so.12", Some(Abi::Mpich)),
            ("libmpifort.so.12", Some(Abi::Mpich)),
            ("libmpfr.so.6", None),
            ("libc.so.6", None),
        ] {
            assert_eq!(Abi::of_library(name), abi, "{name}");
        }
        // Either may have started a program of `libmpi.so.12`.
        for mpi in [Implementation::Mpich, Implementation::IntelMpi] {
            assert_eq!(mpi.abi(), Abi::of_library("libmpi.so.12"));
        }
        assert_eq!(Implementation::Slurm.abi(), None);
    }

    #[test]
    fn unknown_programs_are_distinguished_from_missing_ones() {
        let error = Identity::of_launcher("hopmap-no-such-program").unwrap_err().to_string();
        assert!(error.starts_with("`hopmap-no-such-program --version` cannot be started: "), "{error}");
        assert!(matches!(Identity::of_compiler("hopmap-no-such-program"), Err(MpiError::Run(_))));
        let error = Identity::of_launcher("echo").unwrap_err().to_string();
        assert!(
            error.starts_with(
                "the output of `echo --version` names none of Open MPI, MPICH, Intel MPI and Slurm: "
            ),
            "{error}"
        );
    }

    #[test]
    fn launchers_are_recognized_by_name() {
        for name in ["mpirun", "/opt/bin/mpiexec.hydra", "mpirun.openmpi", "mpiexec.mpich"] {
            assert_eq!(LauncherKind::of(name), Some(LauncherKind::Ranks), "{name}");
        }
        assert_eq!(LauncherKind::of("/usr/bin/sbatch"), Some(LauncherKind::Batch));
        assert_eq!(LauncherKind::of("mpirunn"), None);
    }

    /// The rank derived from variables such as `A=1 B=2`.
    fn rank(variables: &str) -> Option<(u32, Option<u32>)> {
        Rank::from(&lookup(variables)).map(|rank| (rank.rank, rank.size))
    }

    fn lookup(variables: &str) -> impl Fn(&str) -> Option<String> {
        let pairs: Vec<(String, String)> = variables
            .split_whitespace()
            .map(|pair| pair.split_once('=').unwrap())
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        move |name| pairs.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
    }

    #[test]
    fn every_launcher_has_its_variables() {
        // As printed by the launchers, in a job with four nodes for Slurm.
        let step = "SLURM_STEP_ID=1 SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=3";
        for (variables, expected) in [
            ("OMPI_COMM_WORLD_RANK=5 PMIX_RANK=5 OMPI_COMM_WORLD_SIZE=8", Some((5, Some(8)))),
            ("PMI_RANK=2 PMI_SIZE=3 MPI_LOCALRANKID=2", Some((2, Some(3)))),
            (
                &format!("OMPI_COMM_WORLD_RANK=5 PMIX_RANK=5 OMPI_COMM_WORLD_SIZE=8 {step}"),
                Some((5, Some(8))),
            ),
            (&format!("PMI_RANK=5 PMI_SIZE=8 {step}"), Some((5, Some(8)))),
            (&format!("PMIX_RANK=3 PMIX_NAMESPACE=slurm.pmix.7.1 {step}"), Some((3, Some(4)))),
            // PRRTE alone: Slurm counts its daemons.
            (&format!("PMIX_RANK=5 PMIX_NAMESPACE=prterun-n1-2@1 {step}"), Some((5, None))),
            (step, Some((3, Some(4)))),
            // `torchrun`, one per host of the step.
            (&format!("TORCHELASTIC_RUN_ID=none RANK=25 WORLD_SIZE=32 {step}"), Some((25, Some(32)))),
            (&format!("RANK=25 WORLD_SIZE=32 {step}"), Some((3, Some(4)))),
            ("", None),
            ("OMPI_COMM_WORLD_RANK=x", None),
        ] {
            assert_eq!(rank(variables), expected, "{variables}");
        }
    }

    #[test]
    fn a_batch_script_is_not_a_rank() {
        assert_eq!(rank("SLURM_PROCID=0 SLURM_NTASKS=4"), None);
        for special in ["4294967290", "4294967291", "4294967292", "4294967293", "batch", ""] {
            assert_eq!(rank(&format!("SLURM_PROCID=0 SLURM_STEP_ID={special}")), None, "{special}");
        }
        // Its own mpirun still starts ranks.
        assert_eq!(rank("SLURM_PROCID=0 PMI_RANK=1 PMI_SIZE=2"), Some((1, Some(2))));
    }

    #[test]
    fn the_slurm_node_takes_precedence_over_the_host() {
        assert_eq!(node(&lookup("SLURMD_NODENAME=n2")), Some("n2".into()));
        assert_eq!(node(&lookup("SLURMD_NODENAME=n1 PMI_RANK=1 MPI_LOCALRANKID=0")), None);
        assert_eq!(node(&lookup("")), None);
        assert!(!system_host_name().is_empty());
    }
}
