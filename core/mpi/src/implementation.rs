//! Which MPI a launcher or a compiler belongs to.

use std::process::Command;
use std::time::Duration;

use hopmap_process::{Limits, RunError, run};
use miette::Diagnostic;

/// Time to say a version.
const TIME: Duration = Duration::from_secs(30);

/// Who made a launcher or a library.
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

/// A launcher or a compiler as it introduces itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Who made it.
    pub implementation: Implementation,
    /// The version, such as `4.1.4`.
    pub version: String,
}

/// A launcher or a compiler that does not say what it is.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum MpiError {
    /// It does not run.
    #[error(transparent)]
    #[diagnostic(help(
        "install an MPI (on Debian `apt-get install openmpi-bin libopenmpi-dev`, or `mpich`), or load its module"
    ))]
    Run(#[from] RunError),
    /// It is of an unknown kind.
    #[error("`{command}` names none of Open MPI, MPICH, Intel MPI and Slurm: {said}")]
    #[diagnostic(help("name the launcher or the compiler of one of them"))]
    Unknown {
        /// What was asked.
        command: String,
        /// Its first line.
        said: String,
    },
}

/// What stands before the version in the words of each. MPICH's Hydra also names Slurm, as something that it can work with.
const MARKS: [(&str, Implementation); 6] = [
    ("Open MPI", Implementation::OpenMpi),
    // `orterun` under any other name than `mpirun`, such as Debian's `mpirun.openmpi`.
    ("OpenRTE", Implementation::OpenMpi),
    ("Intel(R) MPI Library", Implementation::IntelMpi),
    ("HYDRA build details", Implementation::Mpich),
    ("MPICH", Implementation::Mpich),
    ("slurm", Implementation::Slurm),
];

impl Identity {
    /// Asks a launcher: `mpirun`, `mpiexec`, `srun` or any path of one. `srun` answers only where Slurm is configured.
    pub fn of_launcher(program: &str) -> Result<Self, MpiError> {
        ask(program, "--version")
    }

    /// Asks a compiler: `mpicc` or any path of one.
    pub fn of_compiler(program: &str) -> Result<Self, MpiError> {
        // Open MPI hands `-v` on to the C compiler, which knows no MPI. MPICH does so with what it does not know.
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
        said: text.lines().next().unwrap_or_default().to_owned(),
    })
}

impl Implementation {
    /// Options with which a launcher hands variables of its own environment on to all ranks.
    ///
    /// Open MPI hands on those that begin with `OMPI_`, its parameters `OMPI_MCA_…` among them, and others where they are named.
    /// Hydra hands on everything, and so does `srun` unless somebody set `SLURM_EXPORT_ENV`. Sources: mpirun(1) of Open MPI 4.1 and
    /// 5.0, `mpiexec -help` of MPICH 4.0, srun(1) of Slurm 22.05; tried with 4.1.4 and 4.0.2 (`tests/launchers.rs`).
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launchers_and_compilers_say_who_they_are() {
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
    fn others_are_told_apart_from_missing_ones() {
        let error = Identity::of_launcher("hopmap-no-such-program").unwrap_err().to_string();
        assert!(error.starts_with("`hopmap-no-such-program --version` cannot be started: "), "{error}");
        assert!(matches!(Identity::of_compiler("hopmap-no-such-program"), Err(MpiError::Run(_))));
        let error = Identity::of_launcher("echo").unwrap_err().to_string();
        assert!(
            error.starts_with("`echo --version` names none of Open MPI, MPICH, Intel MPI and Slurm: "),
            "{error}"
        );
    }
}
