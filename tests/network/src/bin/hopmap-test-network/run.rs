//! A network for a command, such as a script.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use hopmap_test_network::{Description, Error, Network};

use crate::enter::ending;
use crate::failure::failed;

/// What a network for a command is like.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// A machine that `topology/export` wrote as graph-json; its links are shared.
    #[arg(long, conflicts_with_all = ["tree", "microseconds"])]
    machine: Option<PathBuf>,
    /// Children of a node from the root down: 2,2,2 are two racks of two switches of two hosts.
    #[arg(long, value_delimiter = ',', default_value = "2,2,2")]
    tree: Vec<usize>,
    /// Microseconds one way between hosts of one switch, one rack, …, from the leaves up.
    #[arg(long, value_delimiter = ',', default_value = "200,500,1000")]
    microseconds: Vec<f64>,
    /// Share the links of the tree: latencies and rates are those of links, from the hosts up.
    #[arg(long, conflicts_with = "machine")]
    shared: bool,
    /// Bytes per second of every link that has no other rate, or between any two hosts where links are not shared.
    #[arg(long)]
    rate: Option<f64>,
    /// The command and its arguments.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<OsString>,
}

/// Makes a network, runs a command on its first host and ends as it does.
pub(crate) fn run(options: &Options) -> Result<ExitCode, Error> {
    let seconds: Vec<f64> = options.microseconds.iter().map(|microseconds| microseconds * 1e-6).collect();
    let mut description = match &options.machine {
        Some(path) => Description::read_machine(path)?,
        None if options.shared => Description::tree_links(&options.tree, &[], &seconds),
        None => Description::tree(&options.tree, &seconds),
    };
    if let Some(rate) = options.rate {
        let unlimited = description.links.iter_mut().filter(|link| link.bytes_per_s.is_none());
        unlimited.for_each(|link| link.bytes_per_s = Some(rate));
    }
    let program = std::env::current_exe().map_err(|error| failed("own path", error))?;
    let network = Network::start_with(&program, &description)?;
    let Some((command, arguments)) = options.words.split_first() else {
        return Err(Error::Refused("no command".to_owned()));
    };
    let status = network.command(0, command).args(arguments).status();
    status.map(ending).map_err(|error| failed(&command.to_string_lossy(), error))
}
