//! A real Slurm on one machine with four virtual nodes.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::fmt::Write;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// Names of the nodes; each has four cores.
pub const NODES: [&str; 4] = ["n1", "n2", "n3", "n4"];

/// How often a cluster is started: connections of tests beside this one may take the port of a
/// node before its daemon does, and the node then stays unknown.
const STARTS: usize = 4;

/// A running cluster; dropping it stops its daemons.
#[derive(Debug)]
pub struct Cluster {
    folder: TempDir,
    configuration: PathBuf,
}

impl Cluster {
    /// Starts it and waits until its nodes are idle.
    ///
    /// # Panics
    ///
    /// If none of four starts makes them idle within half a minute, or MUNGE cannot be started.
    #[must_use]
    pub fn start() -> Self {
        let mut failures = String::new();
        for _ in 0..STARTS {
            let cluster = Self::start_daemons();
            match cluster.wait_until_idle() {
                Ok(()) => return cluster,
                Err(failure) => failures += &failure,
            }
        }
        panic!("the nodes do not become idle:\n{failures}");
    }

    fn start_daemons() -> Self {
        let folder = tempfile::tempdir().unwrap();
        // munged requires a socket that all users can reach.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        for name in ["state", "spool", "log", "munge"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        let path = folder.path().join("slurm.conf");
        fs::write(&path, configuration(folder.path())).unwrap();
        let cluster = Self { folder, configuration: path };
        cluster.start_munge();
        let configuration = cluster.configuration.to_str().unwrap();
        // A daemon that finds its port taken fails; its node is then not idle.
        let _ = daemon("slurmctld", &["-f", configuration]);
        for node in NODES {
            let _ = daemon("slurmd", &["-f", configuration, "-N", node]);
        }
        cluster
    }

    /// The value of `SLURM_CONF` for commands of this cluster.
    #[must_use]
    pub fn configuration(&self) -> &Path {
        &self.configuration
    }

    fn start_munge(&self) {
        let path = |name: &str| self.folder.path().join("munge").join(name).display().to_string();
        let key: Vec<u8> = (0..1024_u32).map(|byte| (byte * 37 % 251) as u8).collect();
        fs::write(path("key"), key).unwrap();
        let owner_only = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        fs::set_permissions(path("key"), owner_only).unwrap();
        let option = |name: &str, file: &str| format!("--{name}-file={}", path(file));
        let socket = format!("--socket={}", path("socket"));
        let options =
            [option("key", "key"), option("pid", "munged.pid"), option("log", "log"), option("seed", "seed")];
        let mut arguments: Vec<&str> = options.iter().map(String::as_str).collect();
        arguments.push(&socket);
        assert!(daemon("munged", &arguments), "munged does not start");
    }

    /// Waits for half a minute; the error holds the states of the nodes and what the daemons logged.
    fn wait_until_idle(&self) -> Result<(), String> {
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            let output = Command::new("sinfo")
                .args(["-h", "-N", "-p", "all", "-o", "%T"])
                .env("SLURM_CONF", &self.configuration)
                .output()
                .unwrap();
            let states = String::from_utf8_lossy(&output.stdout).into_owned();
            if states.lines().filter(|state| *state == "idle").count() == NODES.len() {
                return Ok(());
            }
            if Instant::now() >= deadline {
                return Err(format!("{states}{}", self.logged()));
            }
            sleep(Duration::from_millis(200));
        }
    }

    fn logged(&self) -> String {
        let logged = |name| {
            let log = self.folder.path().join("log").join(name).with_extension("log");
            format!("{name}: {}", fs::read_to_string(log).unwrap_or_default())
        };
        NODES.into_iter().chain(["slurmctld"]).map(logged).collect::<Vec<_>>().join("\n")
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let files = NODES.iter().map(|node| format!("{node}.pid"));
        for file in files.chain(["slurmctld.pid".into(), "munge/munged.pid".into()]) {
            stop(&self.folder.path().join(file));
        }
    }
}

/// Stops the daemon of a pid file and waits until it has exited.
fn stop(pid_file: &Path) {
    let Ok(pid) = fs::read_to_string(pid_file) else { return };
    let pid = pid.trim();
    // It may have been killed by the test. The `kill` of the shell: not every machine has the program.
    let _ = Command::new("sh").args(["-c", &format!("kill {pid}")]).stderr(Stdio::null()).status();
    let deadline = Instant::now() + Duration::from_secs(10);
    while Path::new("/proc").join(pid).exists() && Instant::now() < deadline {
        sleep(Duration::from_millis(50));
    }
}

/// Starts a program that daemonises itself; false if it does not start.
fn daemon(program: &str, arguments: &[&str]) -> bool {
    let status = Command::new(program)
        .args(arguments)
        .env("PATH", format!("{}:/usr/sbin", std::env::var("PATH").unwrap_or_default()))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status();
    status.is_ok_and(|status| status.success())
}

fn configuration(folder: &Path) -> String {
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let (host, folder) = (host.trim(), folder.display());
    let user = Command::new("id").arg("-un").output().unwrap();
    let user = String::from_utf8_lossy(&user.stdout).trim().to_owned();
    // Opened together, so that the system assigns distinct ports.
    let listeners: Vec<TcpListener> =
        (0..=NODES.len()).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    let ports: Vec<u16> = listeners.iter().map(|listener| listener.local_addr().unwrap().port()).collect();
    let mut text = format!(
        "ClusterName=lab
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
CryptoType=crypto/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
SlurmctldLogFile={folder}/log/slurmctld.log
SlurmdLogFile={folder}/log/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
PreemptType=preempt/partition_prio
PreemptMode=CANCEL
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
PartitionName=urgent Nodes=ALL PriorityTier=2 State=UP
",
        ports[0]
    );
    for (node, port) in NODES.iter().zip(&ports[1..]) {
        writeln!(
            text,
            "NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=4 RealMemory=100"
        )
        .unwrap();
    }
    text
}
