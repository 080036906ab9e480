//! Node ranks for `torchrun` with static rendezvous: `PyTorch`, and what is built on it.
//!
//! `torchrun` starts the GPUs of a host as consecutive ranks, in the order of their local ranks, so a mapping has to put
//! ranks k·g … (k + 1)·g − 1 on the first g slots of one host, in order; that host has node rank k. With static
//! rendezvous (`--node-rank` with `--master-addr`) the node rank is obeyed; the rendezvous `c10d` chooses ranks itself
//! (torch/distributed/run.py, "Usage"; pytorch/pytorch#191190).

use std::fmt::Write;

use hopmap_model::{LaunchFile, Mapping};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{LaunchError, heading, hosts_of_ranks};

/// File for `torchrun` and for what starts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TorchStart {
    /// Node rank and host in every line, for a `torchrun` that is started on every host by itself.
    #[default]
    NodeRanks,
    /// The hosts in the order of node ranks, for `srun -m arbitrary` with one `torchrun` per host.
    Slurm,
    /// A table `index,host` as CSV, for pods that an `MPIJob` or `JobSet` numbers: those of an indexed job find their
    /// node rank in `JOB_COMPLETION_INDEX`.
    Indexes,
}

/// The file, and the command that starts the ranks. The host of node rank 0 is the master.
pub fn torch_file(mapping: &Mapping, digest: &str, start: TorchStart) -> Result<LaunchFile, LaunchError> {
    let (hosts, gpus) = hosts_of_nodes(mapping)?;
    let (nodes, master) = (hosts.len(), hosts[0]);
    let torchrun = |node_rank: &str| {
        format!(
            "torchrun --nnodes {nodes} --nproc-per-node {gpus} --node-rank {node_rank} --master-addr {master}"
        )
    };
    let mut text = heading(digest);
    let (name, line, command): (_, fn(usize, &str) -> String, _) = match start {
        TorchStart::NodeRanks => {
            let own = "\"$(awk -v host=\"$(hostname -s)\" '{ split($2, part, \".\") } part[1] == host { print $1 }' {file})\"";
            ("node-ranks", |node, host| format!("{node} {host}"), format!("{} {{program}}", torchrun(own)))
        }
        TorchStart::Slurm => {
            // The variable is that of the step, not of the shell that types the command.
            let own = format!("sh -c '{} \"$@\"' torchrun", torchrun("$SLURM_PROCID"));
            let command = format!("SLURM_HOSTFILE={{file}} srun -m arbitrary -n {nodes} {own} {{program}}");
            ("torch-hostfile", |_, host| host.to_owned(), command)
        }
        TorchStart::Indexes => {
            text.push_str("index,host\n");
            let command = format!("{} {{program}}", torchrun("$JOB_COMPLETION_INDEX"));
            ("indexes.csv", |node, host| format!("{node},{host}"), command)
        }
    };
    for (node, host) in hosts.into_iter().enumerate() {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{}", line(node, host));
    }
    Ok(LaunchFile { name: name.into(), text, command })
}

/// The hosts in the order of node ranks, and the ranks on each.
fn hosts_of_nodes(mapping: &Mapping) -> Result<(Vec<&str>, usize), LaunchError> {
    let of_ranks = hosts_of_ranks(mapping)?;
    let help = "map with `blocks = \"host\"`, which keeps the ranks of a host together and in order";
    let gpus = of_ranks.iter().take_while(|host| **host == of_ranks[0]).count();
    let mut hosts = Vec::new();
    for (node, ranks) in of_ranks.chunks(gpus).enumerate() {
        let first = node * gpus;
        if ranks.len() != gpus || ranks.iter().any(|host| *host != ranks[0]) {
            let problem = format!(
                "ranks {first} to {} are not on one host, but torchrun starts {gpus} consecutive ranks on each",
                first + gpus - 1
            );
            return Err(LaunchError::new(problem, help));
        }
        if hosts.contains(&ranks[0]) {
            let problem = format!("`{}` has the ranks of two node ranks", ranks[0]);
            return Err(LaunchError::new(problem, help));
        }
        let places = &mapping.ranks[first..first + gpus];
        let first_slot = mapping.hosts[places[0].host as usize].first_slot;
        if let Some(local) = (0..gpus).find(|&local| places[local].slot != first_slot + local as u32) {
            let problem = format!("rank {} has not local rank {local} on `{}`", first + local, ranks[0]);
            return Err(LaunchError::new(problem, help));
        }
        hosts.push(ranks[0]);
    }
    Ok((hosts, gpus))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopmap_model::{HostSlots, Placement, Weight};

    fn mapping(slots: &[u32]) -> Mapping {
        let host =
            |(index, name): (u32, &str)| HostSlots { host: name.into(), first_slot: 2 * index, slots: 2 };
        Mapping {
            ranks: slots
                .iter()
                .map(|&slot| Placement { slot, host: slot / 2, core: Some(slot % 2) })
                .collect(),
            hosts: (0..).zip(["node7", "node66.site", "node70"]).map(host).collect(),
            weight: Weight::Bytes,
            metrics: std::collections::BTreeMap::new(),
            convergence: Vec::new(),
            complete: true,
        }
    }

    fn file(slots: &[u32], start: TorchStart) -> LaunchFile {
        torch_file(&mapping(slots), "12", start).unwrap()
    }

    #[test]
    fn hosts_are_in_the_order_of_their_ranks() {
        let slots = [4, 5, 0, 1, 2, 3];
        let LaunchFile { text, command, .. } = file(&slots, TorchStart::NodeRanks);
        assert_eq!(text, "# hopmap mapping 12\n0 node70\n1 node7\n2 node66.site\n");
        assert!(
            command.starts_with("torchrun --nnodes 3 --nproc-per-node 2 --node-rank \"$(awk"),
            "{command}"
        );
        assert!(command.ends_with("--master-addr node70 {program}"), "{command}");
        let slurm = file(&slots, TorchStart::Slurm);
        assert_eq!(slurm.text, "# hopmap mapping 12\nnode70\nnode7\nnode66.site\n");
        assert!(
            slurm.command.starts_with("SLURM_HOSTFILE={file} srun -m arbitrary -n 3 sh -c "),
            "{}",
            slurm.command
        );
        let table = file(&slots, TorchStart::Indexes);
        assert_eq!(table.text, "# hopmap mapping 12\nindex,host\n0,node70\n1,node7\n2,node66.site\n");
    }

    /// The command of the file, run by a shell that only prints the options.
    #[test]
    fn every_host_finds_its_node_rank_in_the_file() {
        let LaunchFile { text, command, .. } = file(&[4, 5, 0, 1, 2, 3], TorchStart::NodeRanks);
        let folder = std::env::temp_dir().join(format!("hopmap-torch-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("node-ranks");
        std::fs::write(&path, text).unwrap();
        for (host, rank) in [("node70", "0"), ("node7", "1"), ("node66", "2")] {
            let command = command.replace("torchrun", "echo").replace("{file}", &path.to_string_lossy());
            let script =
                format!("hostname() {{ echo {host}; }}\n{}", command.replace("{program}", "train.py"));
            let output = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
            let shown = String::from_utf8(output.stdout).unwrap();
            assert!(shown.contains(&format!("--node-rank {rank} --master-addr node70 train.py")), "{shown}");
        }
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_torchrun_cannot_start_is_one_message() {
        let fault =
            |slots: &[u32]| torch_file(&mapping(slots), "12", TorchStart::NodeRanks).unwrap_err().to_string();
        assert_eq!(
            fault(&[0, 1, 2, 4]),
            "ranks 2 to 3 are not on one host, but torchrun starts 2 consecutive ranks on each"
        );
        assert_eq!(
            fault(&[0, 1, 2]),
            "ranks 2 to 3 are not on one host, but torchrun starts 2 consecutive ranks on each"
        );
        assert_eq!(fault(&[0, 1, 3, 2]), "rank 2 has not local rank 0 on `node66.site`");
        assert_eq!(fault(&[0, 2, 1]), "`node7` has the ranks of two node ranks");
    }
}
