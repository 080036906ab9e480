//! Host files of Flux.

use hopmap_model::{LaunchFile, Mapping};

use crate::error::LaunchError;
use crate::files::{common_cores, counts, heading, hosts_of_ranks, ranks_of_hosts};

/// Host file for Flux's task map: task `i` runs on the host of line `i`.
///
/// Flux takes every line for names of hosts, but reads no more names than there are tasks. So the comment comes last. The job has whole
/// nodes, because Flux reserves the cores of its own distribution, which the map changes. An option of the shell with a blank before
/// its name is ignored without a message.
///
/// Format: flux-run(1), `--taskmap`, `--requires`; flux-shell(1), `cpu-affinity`; tested with Flux 0.88.
pub(crate) fn flux_hostfile(mapping: &Mapping, digest: &str, binds: bool) -> Result<LaunchFile, LaunchError> {
    let hosts = hosts_of_ranks(mapping)?;
    let used: Vec<String> = counts(mapping).into_iter().map(|(host, _)| host).collect();
    let binding = match binds {
        true => {
            let cores = common_cores(&ranks_of_hosts(mapping))?;
            let cores: Vec<String> = cores.iter().map(u32::to_string).collect();
            format!(" '--setopt=cpu-affinity=map:{}'", cores.join(";"))
        }
        false => String::new(),
    };
    Ok(LaunchFile {
        name: "flux-hostfile".into(),
        text: hosts.join("\n") + "\n" + &heading(digest),
        command: format!(
            "flux run -N {} -n {} --exclusive --requires=hosts:{}{binding} --taskmap=hostfile:{{file}} {{program}}",
            used.len(),
            hosts.len(),
            used.join(",")
        ),
    })
}
