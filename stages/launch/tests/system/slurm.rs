//! Slurm places every rank on the node of the mapping.

use hopmap_launchers::{Launch, launch_file};
use hopmap_model::{LaunchFile, Mapping};
use hopmap_test_support::{Cluster, NODES, system_tests};
use hopmap_training::{TorchStart, torch_file};

use crate::lab::{Lab, expected_hosts, mapping};

const PLACE: &str = "$SLURM_PROCID $SLURMD_NODENAME";

/// The host on which every rank of a Cray program runs: process `i` is given the `i`-th rank of the file.
fn hosts_after_reordering(file_text: &str, hosts_of_processes: &[String]) -> Vec<String> {
    let order: Vec<&str> =
        file_text.lines().filter(|line| !line.starts_with('#')).flat_map(|line| line.split(',')).collect();
    let mut hosts = vec![String::new(); order.len()];
    for (rank, host) in order.iter().zip(hosts_of_processes) {
        hosts[rank.parse::<usize>().unwrap()].clone_from(host);
    }
    hosts
}

#[test]
fn slurm_starts_every_rank_on_the_host_of_the_mapping() {
    if !system_tests() {
        return;
    }
    let cluster = Cluster::start();
    let configuration = cluster.configuration().display().to_string();
    let lab = Lab::new();
    let run = |file: &LaunchFile| lab.run(file, PLACE, &[("SLURM_CONF", &configuration)]);

    let arbitrary = mapping(&NODES, 4, &[8, 0, 1, 12, 4, 9, 15, 2]);
    let file = launch_file(&arbitrary, "d", Launch::Slurm, false).unwrap();
    assert_eq!(run(&file), expected_hosts(&arbitrary));
    let program = lab.path().join("program").display().to_string();
    let programs = lab.write("programs", &format!("0,2-3 /bin/sh {program}\n1,4-7 /bin/sh {program}\n"));
    let several = format!("--multi-prog {}", programs.display());
    let file = LaunchFile { command: file.command.replace("{program}", &several), ..file };
    assert_eq!(run(&file), expected_hosts(&arbitrary));

    let machines: [Mapping; 3] = [
        mapping(&NODES, 4, &[5, 3, 14, 0, 9, 1, 4, 2, 15, 7, 8, 6, 13, 10, 11, 12]),
        mapping(&NODES, 4, &[8, 4, 5, 0, 1, 9]),
        mapping(&NODES, 4, &[12, 4, 0, 8]),
    ];
    for machine in &machines {
        let file = launch_file(machine, "d", Launch::CraySlurm, false).unwrap();
        assert_eq!(hosts_after_reordering(&file.text, &run(&file)), expected_hosts(machine));
    }
}

/// Starts the local ranks of a host as `torchrun` does with static rendezvous, with any script as its program.
const TORCHRUN: &str = r#"#!/bin/sh
while [ $# -gt 0 ]; do
    case $1 in
        --nproc-per-node) gpus=$2; shift 2;;
        --node-rank) node=$2; shift 2;;
        --nnodes | --master-addr) shift 2;;
        *) break;;
    esac
done
for local in $(seq 0 $((gpus - 1))); do
    TORCHELASTIC_RUN_ID=none RANK=$((node * gpus + local)) LOCAL_RANK=$local "$@"
done
"#;
const TORCH_PLACE: &str = "$RANK $SLURMD_NODENAME";

/// A folder with programs that stand in for others, and a value of `PATH`.
fn with_programs(lab: &Lab, programs: &[(&str, &str)]) -> String {
    for (name, text) in programs {
        let path = lab.write(name, text);
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }
    format!("{}:{}", lab.path().display(), std::env::var("PATH").unwrap())
}

#[test]
fn slurm_starts_torchrun_on_the_hosts_in_the_order_of_node_ranks() {
    if !system_tests() {
        return;
    }
    let cluster = Cluster::start();
    let configuration = cluster.configuration().display().to_string();
    let lab = Lab::new();
    let path = with_programs(&lab, &[("torchrun", TORCHRUN)]);
    let environment = [("SLURM_CONF", &*configuration), ("PATH", &*path)];
    let blocks = mapping(&NODES, 4, &[8, 9, 10, 0, 1, 2, 12, 13, 14]);
    let file = torch_file(&blocks, "d", TorchStart::Slurm).unwrap();
    assert_eq!(lab.run(&file, TORCH_PLACE, &environment), expected_hosts(&blocks));
    // Slurm numbers the tasks by the names of their nodes; every node finds its own node rank.
    let mut file = torch_file(&blocks, "d", TorchStart::NodeRanks).unwrap();
    file.command = format!("srun -w n[1,3-4] -N 3 --ntasks-per-node=1 {}", file.command);
    assert_eq!(lab.run(&file, TORCH_PLACE, &environment), expected_hosts(&blocks));
}

/// The script of the page, with an order that is not that of the names of the nodes.
#[test]
fn the_job_script_of_the_page_starts_torchrun_in_the_better_order() {
    if !system_tests() {
        return;
    }
    let page = include_str!("../../../../docs/howto/launch.md");
    let section = page.split_once("### PyTorch in a Slurm job").unwrap().1;
    let script = section.split("```").nth(1).unwrap().strip_prefix("sh\n").unwrap();
    let script = script.replace("train.py --config train.yaml", "sh program").replace("-node 8", "-node 2");
    let cluster = Cluster::start();
    let configuration = cluster.configuration().display().to_string();
    let lab = Lab::new();
    let rank_order = "#!/bin/sh\nwhile [ \"$1\" != --out ]; do shift; done\nmkdir $2\n\
                      printf '# hopmap mapping d\\nn3\\nn1\\nn4\\nn2\\n' > $2/slurm-hosts\n";
    let path = with_programs(&lab, &[("torchrun", TORCHRUN), ("hopmap", rank_order)]);
    let job = LaunchFile {
        name: "job".to_owned(),
        text: script,
        command: format!(
            "cd '{}' && salloc -Q -N 4 --ntasks-per-node=1 --cpus-per-task=2 bash job # {{program}}",
            lab.path().display()
        ),
    };
    let ran = lab.run(&job, TORCH_PLACE, &[("SLURM_CONF", &configuration), ("PATH", &path)]);
    assert_eq!(ran, ["n3", "n3", "n1", "n1", "n4", "n4", "n2", "n2"]);
}
