//! Launch files for mappings: rank files, host files and machine files.
//!
//! Each stage takes a mapping and returns the text of one file and the command that uses it.
//!
//! | stage | file | read by | places a rank on its |
//! |---|---|---|---|
//! | `launch/machinefile` | one host per rank | MPICH and Intel MPI (Hydra) | host |
//! | `launch/rankfile` | one line per rank | Open MPI | host and core |
//! | `launch/hostfile` | one host per rank | Open MPI, sequential mapper | host |
//! | `launch/slurm` | one host per rank | `srun -m arbitrary` | host |
//! | `launch/cray` | ranks in slot order | HPE Cray MPICH under Slurm | host |
//! | `launch/file` | one of these | the launcher that `launch` names, also HPE Cray MPICH under PALS, Flux and Fujitsu MPI | |
//!
//! A line of a file is a comment with the digest of its mapping: the first one, or the last one for Flux; the file of
//! Fujitsu MPI has none.
//!
//! The tests in `tests/system` start programs with Open MPI, Hydra and Slurm and ask each rank for its host.

mod check;
mod error;
mod params;
mod stage;
mod where_command;

pub use check::{Check, CheckParams};
pub use error::CheckError;
pub use params::{FileParams, MachinefileParams, NoParams, RankfileParams, SlurmParams};
pub use stage::{Cray, File, Hostfile, Machinefile, Rankfile, Slurm};
pub use where_command::WhereCommand;
