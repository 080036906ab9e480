//! Node ranks for `torchrun` with static rendezvous: `PyTorch`, and what is built on it.
//!
//! `torchrun` starts the GPUs of a host as consecutive ranks, in the order of their local ranks, so a mapping has to put
//! ranks k·g … (k + 1)·g − 1 on the first g slots of one host, in order; that host has node rank k. With static
//! rendezvous (`--node-rank` with `--master-addr`) the node rank is obeyed; the rendezvous `c10d` chooses ranks itself
//! (torch/distributed/run.py, "Usage"; pytorch/pytorch#191190).

use std::collections::HashMap;

use hopmap_launchers::{LaunchError, heading, hosts_of_ranks, short_name};
use hopmap_model::{LaunchFile, Mapping};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// File for `torchrun` and for what starts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TorchStart {
    /// Node rank and host in every line, for a command that is started on every host by itself and finds its host there.
    #[default]
    NodeRanks,
    /// The hosts in the order of node ranks, for `srun -m arbitrary` with one `torchrun` per host.
    Slurm,
    /// A table `index,host` as CSV for the pods of Kubernetes, which find the node that they run on in it.
    Indexes,
}

/// Sets `node` to the node rank of this host, which has several names and addresses. Slurm's name of the node is that of
/// the file, where the system may have another one.
const OF_THIS_HOST: &str = "for own in $SLURMD_NODENAME $({ hostname; hostname -s; hostname -f; hostname -I; } 2>/dev/null); \
                            do while read -r rank names; do case \"$rank $names \" in [0-9]*\" $own \"*) node=$rank;; esac; \
                            done < \"$0\"; done";
/// Sets `node` to the node rank of the node of Kubernetes whose name the pod has in `NODE_NAME`. The index of a pod says
/// nothing of its node, which the scheduler chooses.
const OF_THIS_NODE: &str = "while IFS=, read -r index host; do case $index,$host in [0-9]*\",$NODE_NAME\") node=$index;; esac; \
                            done < \"$0\"";

/// The file, and the command that starts the ranks. The host of node rank 0 is the master: with static rendezvous its
/// `torchrun` opens the store.
pub fn torch_file(mapping: &Mapping, digest: &str, start: TorchStart) -> Result<LaunchFile, LaunchError> {
    let (hosts, gpus) = hosts_of_nodes(mapping)?;
    let (nodes, master) = (hosts.len(), hosts[0]);
    // Variables are those of the shell that runs on the host. The file is `$0` of its script, so that any name of it can be quoted.
    let command = |before: &str, set: &str, node_rank: &str, zero: &str| {
        format!(
            "{before}sh -c '{set}exec torchrun --nnodes {nodes} --nproc-per-node {gpus} --node-rank {node_rank} \
             --master-addr {master} \"$@\"' {zero} {{program}}"
        )
    };
    let numbered = |separator: char, names: Vec<String>| -> Vec<String> {
        names.iter().enumerate().map(|(node, names)| format!("{node}{separator}{names}")).collect()
    };
    let plain = || hosts.iter().map(|host| (*host).to_owned()).collect();
    let (name, lines, command) = match start {
        TorchStart::NodeRanks => {
            let known = "\"${node:?has no value, because no line of $0 has a name of this host}\"";
            let command = command("", &format!("node=; {OF_THIS_HOST}; "), known, "{file}");
            ("node-ranks", numbered(' ', names(&hosts)), command)
        }
        TorchStart::Slurm => {
            // Slurm would bind the only task of a host to one core.
            let srun = format!("SLURM_HOSTFILE={{file}} srun -m arbitrary --cpu-bind=none -n {nodes} ");
            ("torch-hostfile", plain(), command(&srun, "", "$SLURM_PROCID", "torchrun"))
        }
        TorchStart::Indexes => {
            let known = "\"${node:?has no value, because NODE_NAME is not the name of a host in $0}\"";
            let command = command("", &format!("node=; {OF_THIS_NODE}; "), known, "{file}");
            let table = [vec!["index,host".to_owned()], numbered(',', plain())].concat();
            ("indexes.csv", table, command)
        }
    };
    Ok(LaunchFile { name: name.into(), text: heading(digest) + &lines.join("\n") + "\n", command })
}

/// The names of every host: also the one without the domain, if no other host has that.
fn names(hosts: &[&str]) -> Vec<String> {
    let mut count: HashMap<&str, usize> = HashMap::new();
    hosts.iter().for_each(|host| *count.entry(short_name(host)).or_default() += 1);
    let names = |host: &&str| match short_name(host) {
        short if short != *host && count.get(short) == Some(&1) => format!("{host} {short}"),
        _ => (*host).to_owned(),
    };
    hosts.iter().map(names).collect()
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
        assert_eq!(text, "# hopmap mapping 12\n0 node70\n1 node7\n2 node66.site node66\n");
        assert!(command.contains("torchrun --nnodes 3 --nproc-per-node 2 --node-rank"), "{command}");
        assert!(command.ends_with("--master-addr node70 \"$@\"' {file} {program}"), "{command}");
        let slurm = file(&slots, TorchStart::Slurm);
        assert_eq!(slurm.text, "# hopmap mapping 12\nnode70\nnode7\nnode66.site\n");
        assert!(
            slurm.command.starts_with("SLURM_HOSTFILE={file} srun -m arbitrary --cpu-bind=none -n 3 sh -c "),
            "{}",
            slurm.command
        );
        let table = file(&slots, TorchStart::Indexes);
        assert_eq!(table.text, "# hopmap mapping 12\nindex,host\n0,node70\n1,node7\n2,node66.site\n");
    }

    fn named(names: [&str; 3]) -> Mapping {
        let mut mapping = mapping(&[4, 5, 0, 1, 2, 3]);
        mapping.hosts.iter_mut().zip(names).for_each(|(host, name)| host.host = name.to_owned());
        mapping
    }

    /// What `torchrun` is given on a host whose `hostname` prints `short`, `full` and `addresses`, or the error.
    fn given(file: &LaunchFile, [short, full, addresses]: [&str; 3], node: &str) -> String {
        let folder = tempfile::Builder::new().prefix("a folder ").tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
            path.display().to_string()
        };
        let path = write(&file.name, &file.text);
        write("torchrun", "#!/bin/sh\necho $*\n");
        let names = format!(
            "case $1 in -I) echo {addresses} ;; -f) echo {full};; -s) echo {short} | cut -d. -f1;; *) echo {short};; esac"
        );
        write("hostname", &format!("#!/bin/sh\n{names}\n"));
        let command = file
            .command
            .replace("{file}", &hopmap_launchers::shell_word(&path))
            .replace("{program}", "train.py 'an argument'");
        let search = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap());
        let mut shell = std::process::Command::new("sh");
        shell
            .args(["-c", &command])
            .env("PATH", search)
            .env("NODE_NAME", node)
            .env("node", "9")
            .env_remove("SLURMD_NODENAME");
        let output = shell.output().unwrap();
        let errors = String::from_utf8(output.stderr).unwrap().replace(&path, "FILE");
        assert_eq!(output.status.success(), errors.is_empty(), "{errors}");
        String::from_utf8(output.stdout).unwrap() + &errors
    }

    /// Addresses had no node rank, and hosts whose names differ after the first dot had two.
    #[test]
    fn every_host_finds_its_node_rank_in_the_file() {
        let file = |names| torch_file(&named(names), "12", TorchStart::NodeRanks).unwrap();
        for (names, host, rank) in [
            (["node7", "node66.site", "node70"], ["node70", "node70.site", "10.0.0.9"], 0),
            (["node7", "node66.site", "node70"], ["node7.site", "node7.site", ""], 1),
            (["node7", "node66.site", "node70"], ["node66", "node66", ""], 2),
            (["10.0.0.7", "10.0.0.70", "10.0.0.8"], ["ip-10-0-0-7", "ip-10-0-0-7", "172.17.0.1 10.0.0.7"], 1),
            (["10.0.0.7", "10.0.0.70", "10.0.0.8"], ["10", "10", "10.0.0.70"], 2),
            (["node7.a", "node7.b", "node8"], ["node7", "node7.b", "10.0.0.1"], 2),
        ] {
            let shown = given(&file(names), host, "");
            assert!(
                shown.contains(&format!("--node-rank {rank} --master-addr ")),
                "{names:?} {host:?} {shown}"
            );
            assert!(shown.ends_with(" train.py an argument\n"), "{shown}");
        }
        for (names, host) in [
            (["node7.a", "node7.b", "node8"], ["node7", "node7", ""]),
            (["node7", "node66.site", "node70"], ["mapping", "hopmap", "12"]),
            (["10.0.0.7", "10.0.0.70", "10.0.0.8"], ["10", "10", "10.0.0.71"]),
        ] {
            let shown = given(&file(names), host, "");
            assert!(shown.contains("no line of FILE has a name of this host"), "{names:?} {host:?} {shown}");
            assert!(!shown.contains("--nnodes"), "{shown}");
        }
    }

    /// The index of a pod was its node rank, on whichever node it was.
    #[test]
    fn every_pod_finds_the_node_rank_of_its_node() {
        let file = torch_file(&named(["node7", "node66.site", "node70"]), "12", TorchStart::Indexes).unwrap();
        for (node, rank) in [("node70", 0), ("node7", 1), ("node66.site", 2)] {
            let shown = given(&file, ["job-1", "job-1", ""], node);
            assert!(shown.contains(&format!("--node-rank {rank} --master-addr node70 train.py")), "{shown}");
        }
        for node in ["", "node66", "host", "node"] {
            let shown = given(&file, ["node7", "node7", ""], node);
            assert!(shown.contains("NODE_NAME is not the name of a host in FILE"), "{node} {shown}");
        }
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
