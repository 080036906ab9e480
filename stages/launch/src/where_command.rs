//! `hopmap where`: rank, host and cores of this process.

use std::io::Write;

use clap::Args;
use hopmap_command::{Answer, Command, Failure};
use hopmap_model::Context;
use hopmap_mpi_environment::Location;
use serde::Serialize;

/// Print the rank, the host and the cores of this process.
#[derive(Debug, Args)]
#[command(after_help = "\
Started by a launcher in place of a program, it shows where every rank really runs. The stage launch/check compares this with a \
mapping. Cores are those on which the process may run, by their logical indexes, as in rank files. The rank is that of torchrun, \
Open MPI, PMIx, PMI or Slurm, the host the Slurm node, or else the host name.

Examples:
  hopmap where
  mpirun -n 4 --rankfile out/rankfile hopmap where
  SLURM_HOSTFILE=out/slurm-hostfile srun -m arbitrary -n 4 hopmap where")]
pub struct WhereCommand {}

#[derive(Serialize)]
struct RankLocation {
    rank: Option<u32>,
    host: String,
    cores: Vec<u32>,
    cores_of_host: u32,
}

impl Command for WhereCommand {
    const NAME: &'static str = "where";
    const IS_STOPPABLE: bool = false;

    fn run(&self, _: &Context<'_>, _: &mut (dyn Write + Send)) -> Result<Answer, Failure> {
        let location = Location::of_this_process();
        let line = location.to_string();
        let Location { rank, host, cores, of } = location;
        let mut answer = Answer::of(&RankLocation { rank, host, cores, cores_of_host: of });
        answer.line(line);
        Ok(answer)
    }
}
