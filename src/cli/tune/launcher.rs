//! The launcher of the ranks of `hopmap tune`.

use hopmap_command::{Failure, refuse};
use hopmap_launchers::{default_options, with_programs};

use super::arguments::Arguments;
use crate::cli::hosts::Allocation;
use crate::cli::output::Result;

/// The launcher under its default placement, and the program or programs.
pub(super) fn started(
    arguments: &Arguments,
    allocation: &Allocation,
    program: &[String],
) -> Result<Vec<String>> {
    with_programs(arguments.measurement.launch, launcher(arguments, allocation)?, program)
        .map_err(Failure::usage)
}

/// The launcher and its options, under its default placement.
pub(super) fn launcher(arguments: &Arguments, allocation: &Allocation) -> Result<Vec<String>> {
    let hosts = if allocation.hosts.is_job { &[] } else { &allocation.hosts.hosts[..] };
    let mut words = match &arguments.measurement.launcher {
        None => arguments.measurement.launch.words(),
        Some(text) => match shlex::split(text).filter(|words| !words.is_empty()) {
            Some(words) => words,
            None => {
                return refuse(format!("`--launcher {text}` is not a command"), "quotes must be closed");
            }
        },
    };
    match default_options(arguments.measurement.launch, allocation.ranks, hosts) {
        Some(options) => words.extend(options),
        None => {
            let launcher = arguments.measurement.launch.program();
            return refuse(
                format!(
                    "`{launcher}` takes one number of ranks for all named hosts, and these have different numbers of slots"
                ),
                "start hopmap in a job of these hosts, or give as many --slots of each",
            );
        }
    }
    Ok(words)
}

pub(super) fn command_line<'a>(words: impl Iterator<Item = &'a String>) -> String {
    words
        .map(|word| shlex::try_quote(word).map_or_else(|_| word.clone(), Into::into))
        .collect::<Vec<_>>()
        .join(" ")
}
