//! Launchers by their names.

/// Lets root start programs with Open MPI, which refuses that otherwise: in containers there is nobody else.
pub const AS_ROOT: [(&str, &str); 2] =
    [("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")];

/// What a launcher starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LauncherKind {
    /// Ranks of an MPI program: `mpirun` and the like.
    Ranks,
    /// The tasks of a job step: `srun`.
    Step,
    /// A command inside an allocation that it waits for: `salloc`.
    Allocation,
    /// A script, some day: `sbatch` ends long before what it has queued.
    Batch,
    /// A command on another host: `ssh`.
    Remote,
}

impl LauncherKind {
    /// The kind of a program, which may be a path; `None` for programs that are not known to launch anything.
    #[must_use]
    pub fn of(program: &str) -> Option<Self> {
        let name = program.rsplit('/').next().unwrap_or(program);
        // Debian has both MPIs side by side.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launchers_are_known_by_their_names() {
        for name in ["mpirun", "/opt/bin/mpiexec.hydra", "mpirun.openmpi", "mpiexec.mpich"] {
            assert_eq!(LauncherKind::of(name), Some(LauncherKind::Ranks), "{name}");
        }
        assert_eq!(LauncherKind::of("/usr/bin/sbatch"), Some(LauncherKind::Batch));
        assert_eq!(LauncherKind::of("mpirunn"), None);
    }
}
