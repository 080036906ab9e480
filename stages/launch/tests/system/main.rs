//! Real launchers place every rank as the mapping specifies.
//!
//! These tests start programs with Open MPI 4, MPICH's Hydra and Slurm, so they run only when `HOPMAP_SYSTEM_TESTS=1`.
//! On Debian: `apt-get install openmpi-bin mpich slurm-wlm munge`.

#[cfg(test)]
mod further;
#[cfg(test)]
mod hydra;
#[cfg(test)]
mod lab;
#[cfg(test)]
mod open_mpi;
#[cfg(test)]
mod slurm;
