//! Arguments of `hopmap tune`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use toml::Value;

use crate::cli::hosts::AllocationArguments;
use crate::cli::open::StoreArguments;
use crate::cli::run::{gain, some_time};
use crate::cli::trial::MeasurementArguments;

/// Arguments of `tune`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
The program is recorded once under the default placement of its launcher. Everything is in the folder --out: the recording, the \
measured machine, the pipeline file tune.toml, and the launch file. The next call goes on where this one ended.

Examples:
  hopmap tune --deadline 1h -- ./app input                              # in a Slurm job
  hopmap tune --hosts 'node[1-8]' --slots 2 -- ./app input
  hopmap tune --hosts-file hosts -- ./app input                         # lines such as node1 slots=8
  hopmap tune --hosts 'node[1-3]' --slots 2 -- -n 4 ./ocean : -n 2 ./ice  # two programs in one job
  hopmap tune --launch slurm --time-after 'Loop time of' -- lmp -in in.melt")]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(super) allocation: AllocationArguments,
    #[command(flatten)]
    pub(super) measurement: MeasurementArguments,
    /// Compiler of the recorder and the prober: that of the program's MPI, if the program is a script [default: that of the program's
    /// library, and that of the launcher].
    #[arg(long, value_name = "COMMAND")]
    pub(super) mpicc: Option<String>,
    /// Write everything to this folder, which all hosts must share.
    #[arg(short, long, value_name = "DIR", default_value = "tune")]
    pub(super) out: PathBuf,
    /// Import the machine from this file instead of measuring it; or the folder of a stored topology.
    #[arg(long, value_name = "FILE", conflicts_with = "shape")]
    pub(super) topology: Option<PathBuf>,
    /// Take this shape of the network, such as tree:2x4x2, instead of measuring it.
    #[arg(long, requires_all = ["latency", "bandwidth"])]
    pub(super) shape: Option<String>,
    /// Latency in seconds of the links of --shape, or of those of --topology that have none: a number, or for --shape a list by
    /// level such as [2e-6, 5e-6].
    #[arg(long, value_name = "SECONDS", value_parser = numbers)]
    pub(super) latency: Option<Value>,
    /// Bandwidth of these links in bytes per second: a number, or a list by level.
    #[arg(long, value_name = "RATE", value_parser = numbers)]
    pub(super) bandwidth: Option<Value>,
    /// Run this shell command before every run, as to restore its inputs.
    #[arg(long, value_name = "COMMAND")]
    pub(super) prepare: Option<String>,
    /// Files and folders of the working directory that runs change: they are as they are now before every run.
    #[arg(long, value_name = "FILES", value_delimiter = ',')]
    pub(super) keep: Vec<PathBuf>,
    /// Time for everything; most of it is for runs [default: until the Slurm job ends]. A run that hangs is stopped after ten times
    /// the recorded time and a minute.
    #[arg(long, value_name = "TIME", value_parser = some_time)]
    pub(super) deadline: Option<Duration>,
    /// Search no placement that cannot gain this much of the run time.
    #[arg(long, value_name = "GAIN", value_parser = gain, default_value = "2%")]
    pub(super) worth: f64,
    /// Search and try placements whatever they can gain.
    #[arg(long)]
    pub(super) force: bool,
    /// Search a candidate for each of these objectives of map/auto.
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        default_value = "F,T,max-link-time,predicted-time"
    )]
    pub(super) objectives: Vec<String>,
    /// Number of candidates that run: those with the shortest predicted time.
    #[arg(long, value_name = "COUNT", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) best: u32,
    #[command(flatten)]
    pub(super) store: StoreArguments,
    /// The program and its arguments, without the launcher.
    #[arg(required_unless_present = "programs", trailing_var_arg = true, value_name = "PROGRAM")]
    pub(super) program: Vec<String>,
}

/// A number, or a list of numbers.
fn numbers(text: &str) -> std::result::Result<Value, String> {
    let number =
        |text: &str| text.trim().parse::<f64>().ok().filter(|number| number.is_finite() && *number > 0.0);
    let list = text.trim().strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    let numbers: Option<Vec<f64>> = list.unwrap_or(text).split(',').map(number).collect();
    match numbers.as_deref() {
        Some([number]) if list.is_none() => Ok((*number).into()),
        Some(numbers) => Ok(numbers.to_vec().into()),
        None => Err("give a number above 0 such as 2e-6, or a list such as [2e-6, 5e-6]".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_numbers_or_lists() {
        assert_eq!(numbers("2e-6"), Ok(2e-6.into()));
        assert_eq!(numbers("[1e9, 5e8]"), Ok(vec![1e9, 5e8].into()));
        assert_eq!((numbers("1e9,5e8"), numbers("[1e9]")), (numbers("[1e9, 5e8]"), Ok(vec![1e9].into())));
        assert!(numbers("fast").is_err() && numbers("-1").is_err() && numbers("[]").is_err());
    }
}
