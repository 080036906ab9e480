//! Where the ranks of `hopmap tune` run, and the launcher that starts them there.

use hopmap_command::refuse;
use hopmap_launchers::{Launch, default_options};

use super::arguments::Arguments;
use crate::cli::hosts::Hosts;
use crate::cli::output::{Output, Result};

/// Rejects more slots on this host than it has cores where the launcher binds every rank to a core: it would end without a word.
pub(super) fn check_cores(arguments: &Arguments, place: &Place) -> Result<()> {
    // A batch system gives no more slots than cores, and may have bound this process to few of them.
    let binds = matches!(arguments.launch, Launch::OpenMpi4 | Launch::OpenMpi5) && !place.hosts.is_job;
    let cores = std::thread::available_parallelism().map_or(u32::MAX, |cores| cores.get() as u32);
    let own = hopmap_mpi_environment::host_name();
    let is_own = |name: &str| name == "localhost" || short(name) == short(&own);
    match place.hosts.hosts.iter().find(|(name, slots)| binds && *slots > cores && is_own(name)) {
        None => Ok(()),
        Some((name, slots)) => refuse(
            format!(
                "`{name}` has {cores} cores, too few for {slots} slots: the rank files of Open MPI bind every rank to a core"
            ),
            format!("give --slots {cores}, or --launch open-mpi-hosts, which does not bind them"),
        ),
    }
}

/// The name of a host without its domain.
pub(super) fn short(name: &str) -> &str {
    name.split('.').next().unwrap_or_default()
}

/// Where ranks run.
pub(super) struct Place {
    pub(super) hosts: Hosts,
    pub(super) ranks: u32,
}

impl Place {
    pub(super) fn of(arguments: &Arguments, output: Output) -> Result<Self> {
        let Some(hosts) = arguments.hosts.hosts(output)? else {
            return refuse(
                "no hosts are given, and this is not a batch job",
                "name them: --hosts 'node[1-8]' --slots 2, or start hopmap in a job",
            );
        };
        let all = hosts.slots();
        let ranks = arguments.ranks.map_or(all, u64::from);
        if ranks > all {
            return refuse(
                format!("{ranks} ranks do not fit into {all} slots"),
                "give fewer --ranks or more --slots",
            );
        }
        Ok(Self { hosts, ranks: u32::try_from(ranks).unwrap_or(u32::MAX) })
    }

    /// The launcher and its options, under its default placement.
    pub(super) fn launcher(&self, arguments: &Arguments) -> Result<Vec<String>> {
        let hosts = if self.hosts.is_job { &[] } else { &self.hosts.hosts[..] };
        let mut words = match &arguments.launcher {
            None => vec![arguments.launch.program().to_owned()],
            Some(text) => match shlex::split(text).filter(|words| !words.is_empty()) {
                Some(words) => words,
                None => {
                    return refuse(format!("`--launcher {text}` is not a command"), "quotes must be closed");
                }
            },
        };
        match default_options(arguments.launch, self.ranks, hosts) {
            Some(options) => words.extend(options),
            None => {
                let launcher = arguments.launch.program();
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
}

pub(super) fn command_line<'a>(words: impl Iterator<Item = &'a String>) -> String {
    words
        .map(|word| shlex::try_quote(word).map_or_else(|_| word.clone(), Into::into))
        .collect::<Vec<_>>()
        .join(" ")
}
