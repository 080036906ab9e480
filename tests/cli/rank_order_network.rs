//! The groups of a training job as an MPI program on an emulated network with shared links: orders of hosts take as long as
//! `hopmap rank-order` predicts, in comparison.

use std::process::Command;

use hopmap_test_support::{program, system_tests};
use serde_json::Value;

use crate::sandbox::{Sandbox, project};

/// Names of the hosts in the order of their cables, two on a leaf and four below a spine: those of pytorch/pytorch#191190.
const NAMES: [&str; 8] = ["node7", "node66", "node70", "node8", "node71", "node9", "node10", "node67"];
/// Kind, stride, size and bytes of the groups: tp 2 inside hosts, pp 2, dp 4 and ep 2 with `tp-pp-ep-dp`.
const GROUPS: &str = "4 ep 4 2 150000 pp 2 2 100000 dp 4 4 400000";
const SIZES: [&str; 8] = ["--tp", "2", "--pp", "2", "--dp", "4", "--ep", "2"];

struct Lab {
    sandbox: Sandbox,
}

impl Lab {
    fn new() -> Self {
        let sandbox = Sandbox::new();
        let source = project().join("ci/bench/groups.c");
        let mut compiler = Command::new("mpicc.openmpi");
        compiler.args(["-O2", "-o", "groups"]).arg(source).current_dir(sandbox.path());
        assert!(compiler.status().unwrap().success());
        let rates =
            ["-p", "link_latency_s=[1e-4, 1e-4, 1e-4]", "-p", "bandwidth_bytes_per_s=[8e6, 8e6, 6e6]"];
        let machine =
            ["exec", "topology/synthetic", "-p", "shape=tree:2x2x2x2", "-p", "hosts=h[0-7]", "--out", "true"];
        sandbox.stdout(&[&machine[..], &rates].concat());
        let export =
            ["exec", "topology/export", "--in", "system=true", "-p", "format=graph-json", "--out", "network"];
        sandbox.stdout(&export);
        Self { sandbox }
    }

    /// What `hopmap rank-order` says of hosts.
    fn predicted(&self, hosts: &[String]) -> Value {
        let hosts = hosts.join(",");
        let options = ["rank-order", "--topology", "true", "--hosts", &hosts, "--gpus", "2", "--json"];
        let groups = ["--order", "tp-pp-ep-dp", "--bytes", "ep=150000,pp=100000,dp=400000"];
        serde_json::from_str(&self.sandbox.stdout(&[&options[..], &SIZES, &groups].concat())).unwrap()
    }

    /// Seconds of a step with two ranks on each of the hosts.
    fn measured(&self, hosts: &[String]) -> f64 {
        let lines: Vec<&str> = hosts.iter().flat_map(|host| [host.as_str(); 2]).collect();
        self.sandbox.write("hosts", lines.join("\n") + "\n");
        let hopmap = assert_cmd::cargo::cargo_bin!("hopmap");
        let network = hopmap.with_file_name("hopmap-test-network");
        let mpirun = ["mpirun.openmpi", "-n", "16", "--hostfile", "hosts", "--map-by", "seq", "./groups"];
        let output = Command::new(&network)
            .args(["run", "--machine", "network/files/machine.json", "--"])
            .args(mpirun)
            .args(GROUPS.split(' '))
            .current_dir(self.sandbox.path())
            .envs(hopmap_mpi_environment::AS_ROOT)
            .env("OMPI_MCA_plm_rsh_agent", format!("{} on", network.display()))
            .env("OMPI_MCA_btl", "tcp,self")
            .env("OMPI_MCA_btl_tcp_if_include", "10.77.0.0/24")
            .env("OMPI_MCA_oob_tcp_if_include", "10.77.0.0/24")
            .env("OMPI_MCA_btl_tcp_flags", "1")
            .env("OMPI_MCA_rmaps_base_oversubscribe", "1")
            .env("OMPI_MCA_mpi_yield_when_idle", "1")
            .env("OMPI_MCA_hwloc_base_binding_policy", "none")
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let time = text.lines().find_map(|line| line.strip_prefix("time "));
        time.unwrap_or_else(|| panic!("{text}{}", String::from_utf8_lossy(&output.stderr))).parse().unwrap()
    }
}

/// The hosts in the order of their names.
fn by<K: Ord>(key: impl Fn(&str) -> K) -> Vec<String> {
    let mut hosts: Vec<usize> = (0..NAMES.len()).collect();
    hosts.sort_by_key(|&host| key(NAMES[host]));
    hosts.into_iter().map(|host| format!("h{host}")).collect()
}

#[test]
fn orders_of_hosts_take_as_long_as_predicted_in_comparison() {
    if !system_tests() || program("mpicc.openmpi").is_none() {
        return;
    }
    let lab = Lab::new();
    let number = |name: &str| name[4..].parse::<u32>().unwrap();
    let mut orders = vec![
        ("name", by(str::to_owned)),
        ("number", by(number)),
        ("leaf", by(|name| NAMES.iter().position(|other| *other == name))),
    ];
    let found = lab.predicted(&orders[0].1);
    assert_eq!(found["proven"], true);
    let better =
        found["better"].as_array().unwrap().iter().map(|host| host.as_str().unwrap().to_owned()).collect();
    orders.push(("better", better));
    let predicted: Vec<f64> =
        orders.iter().map(|(_, hosts)| lab.predicted(hosts)["seconds"].as_f64().unwrap()).collect();
    assert!(predicted.iter().all(|seconds| *seconds >= predicted[3]), "{predicted:?}");
    let (mut tries, mut measured) = (0, [f64::INFINITY; 4]);
    loop {
        tries += 1;
        // Other processes only make a step longer.
        for ((_, hosts), shortest) in orders.iter().zip(&mut measured) {
            *shortest = shortest.min(lab.measured(hosts));
        }
        let table: Vec<_> =
            orders.iter().zip(&predicted).zip(&measured).map(|(((name, _), p), m)| (name, p, m)).collect();
        println!("{table:?}");
        let pairs = || (0..4).flat_map(|a| (0..4).map(move |b| (a, b)));
        // Pairs whose predictions are close may have any order.
        let agrees = pairs().all(|(a, b)| predicted[a] < 1.15 * predicted[b] || measured[a] > measured[b]);
        if agrees && pairs().any(|(a, b)| predicted[a] > 1.15 * predicted[b]) {
            return;
        }
        assert!(tries < 4, "{table:?}");
    }
}
