use std::ffi::OsStr;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use hopmap_mpi_environment::AS_ROOT;

use crate::control::{Answer, CONTROL, Report, Request, ask};
use crate::counters::{Counters, MAX_LATE, Measured};
use crate::description::{Description, address};
use crate::error::Error;

/// The name of the program that makes networks.
pub const PROGRAM: &str = "hopmap-test-network";

/// How busy this machine may be while something is measured on a network.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// The largest fraction of frames that may be late, by default [`MAX_LATE`].
    pub max_late: f64,
    /// The smallest idle fraction of the processors, by default 0.3.
    pub min_idle: f64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_late: MAX_LATE, min_idle: 0.3 }
    }
}

/// A running network; it ends, with every process on its hosts, when this is dropped.
#[derive(Debug)]
pub struct Network {
    program: PathBuf,
    description: Description,
    /// The first process of the network, through whose files under `/proc` everything of it is reached.
    process: u32,
    child: Child,
    /// The network lives as long as this is open.
    input: Option<ChildStdin>,
}

impl Network {
    /// Makes a network, with the program from `HOPMAP_TEST_NETWORK` or from beside the running program.
    pub fn start(description: &Description) -> Result<Self, Error> {
        Self::start_with(&find_program()?, description)
    }

    /// Makes a network with this program.
    pub fn start_with(program: &Path, description: &Description) -> Result<Self, Error> {
        description.check()?;
        if !program.is_file() {
            return Err(Error::Program(program.to_owned()));
        }
        let mut child = promptly(program)
            .arg("serve")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|_| Error::Program(program.to_owned()))?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let mut network =
            Self { program: program.to_owned(), description: description.clone(), process: 0, child, input };
        let (Some(input), Some(output)) = (&mut network.input, output) else {
            return Err(Error::Gone(io::ErrorKind::BrokenPipe.into()));
        };
        let text = serde_json::to_string(description).map_err(|error| Error::Gone(error.into()))?;
        // A program that is gone already has said why.
        let _ = input.write_all(format!("{text}\n").as_bytes());
        network.process = await_ready(output)?;
        Ok(network)
    }

    /// The number of hosts.
    #[must_use]
    pub fn hosts(&self) -> usize {
        self.description.hosts.len()
    }

    /// The name of a host: what `hostname` says on it, and what all hosts know it by.
    #[must_use]
    pub fn name(&self, host: usize) -> &str {
        &self.description.hosts[host]
    }

    /// The name of a host or switch, by its number.
    fn node_name(&self, node: usize) -> Result<String, Error> {
        let Description { hosts, switches, .. } = &self.description;
        let name = hosts.iter().chain(switches).nth(node);
        name.cloned().ok_or_else(|| Error::Refused(format!("the network has no node {node}")))
    }

    /// The address of a host.
    #[must_use]
    pub fn address(&self, host: usize) -> Ipv4Addr {
        address(host)
    }

    /// The first process of the network, as it is known outside.
    #[must_use]
    pub fn process(&self) -> u32 {
        self.process
    }

    /// The process that made the network; when it ends the network does.
    #[must_use]
    pub fn maker(&self) -> u32 {
        self.child.id()
    }

    /// A command on a host: arguments, environment, working folder and streams are added as to any other.
    ///
    /// The process it starts ends with the network; `kill` ends the program on the host as well.
    #[must_use]
    pub fn command(&self, host: usize, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(&self.program);
        command.arg("enter").arg(self.process.to_string()).arg(self.name(host)).arg("--").arg(program);
        command
    }

    /// `mpirun` of Open MPI 4 on the first of these hosts, with a rank on each of them in this order; the program and its arguments
    /// are added. A host may occur more than once.
    ///
    /// Ranks talk over TCP alone and give up their processor when idle, as the hosts share those of this machine.
    #[must_use]
    pub fn mpirun(&self, hosts: &[usize]) -> Command {
        let names: Vec<String> = hosts.iter().map(|&host| format!("{}:1", self.name(host))).collect();
        let agent = format!("{} on", self.program.display());
        let mut command = self.command(hosts.first().copied().unwrap_or(0), "mpirun");
        command.envs(AS_ROOT);
        for (name, value) in [
            ("plm_rsh_agent", agent.as_str()),
            ("btl", "tcp,self"),
            ("btl_tcp_if_include", "10.77.0.0/24"),
            ("oob_tcp_if_include", "10.77.0.0/24"),
            ("mpi_yield_when_idle", "1"),
            ("hwloc_base_binding_policy", "none"),
        ] {
            command.args(["--mca", name, value]);
        }
        command.args(["--host", &names.join(","), "-n", &hosts.len().to_string()]);
        command
    }

    /// Changes the latency, in seconds, of the link from one node to another; the link back keeps its own.
    pub fn set_latency(&self, from: usize, to: usize, seconds: f64) -> Result<(), Error> {
        let (from, to) = (self.node_name(from)?, self.node_name(to)?);
        self.ask(&Request::Latency { from, to, seconds }).map(drop)
    }

    /// Changes the rate, in bytes per second, of the link from one node to another; none means no limit.
    pub fn set_rate(&self, from: usize, to: usize, bytes_per_s: Option<f64>) -> Result<(), Error> {
        let (from, to) = (self.node_name(from)?, self.node_name(to)?);
        self.ask(&Request::Rate { from, to, bytes_per_s }).map(drop)
    }

    /// Cuts a node off: nothing passes it.
    pub fn cut(&self, node: usize) -> Result<(), Error> {
        self.ask(&Request::Cut { node: self.node_name(node)? }).map(drop)
    }

    /// Connects a node that was cut off.
    pub fn join(&self, node: usize) -> Result<(), Error> {
        self.ask(&Request::Join { node: self.node_name(node)? }).map(drop)
    }

    /// Runs something on the network and returns what it returned and what happened meanwhile.
    ///
    /// # Errors
    ///
    /// [`Error::Busy`] if this machine was busier than the default [`Limits`]: what was measured then depends on the machine and not
    /// on the network.
    pub fn measure<T>(&self, what: impl FnOnce() -> T) -> Result<(T, Measured), Error> {
        self.measure_within(Limits::default(), what)
    }

    /// [`Self::measure`] with other limits.
    pub fn measure_within<T>(
        &self,
        limits: Limits,
        what: impl FnOnce() -> T,
    ) -> Result<(T, Measured), Error> {
        let (before, times) = (self.counters()?, processor_times()?);
        let done = what();
        let (after, [idle, all]) = (self.counters()?, processor_times()?);
        let idle = (idle - times[0]) as f64 / (all - times[1]).max(1) as f64;
        let measured = Measured { counters: after.since(&before), idle };
        let Counters { late, delivered, .. } = measured.counters;
        match late as f64 > limits.max_late * delivered as f64 || idle < limits.min_idle {
            true => Err(Error::Busy(Box::new(measured))),
            false => Ok((done, measured)),
        }
    }

    /// What the network has done so far.
    pub fn counters(&self) -> Result<Counters, Error> {
        match self.ask(&Request::Counters)? {
            Answer::Counters(counters) => Ok(counters),
            _ => Err(Error::Gone(io::ErrorKind::InvalidData.into())),
        }
    }

    fn ask(&self, request: &Request) -> Result<Answer, Error> {
        ask(Path::new(&format!("/proc/{}/root{CONTROL}", self.process)), request)
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        // The network ends when its standard input does; to wait for it is to know that nothing is left.
        drop(self.input.take());
        let _ = self.child.wait();
    }
}

/// A command with real-time priority where this user may have that, so that frames leave in time while hosts are busy; hosts do not
/// inherit it.
fn promptly(program: &Path) -> Command {
    let chrt = || {
        let mut command = Command::new("chrt");
        command.args(["--fifo", "1"]);
        command
    };
    let is_allowed = chrt().arg("true").stderr(Stdio::null()).status().is_ok_and(|status| status.success());
    let mut command = if is_allowed { chrt() } else { Command::new(program) };
    if is_allowed {
        command.arg(program);
    }
    command
}

/// Idle and all time of the processors of this machine, in ticks.
fn processor_times() -> Result<[u64; 2], Error> {
    let text = std::fs::read_to_string("/proc/stat").map_err(Error::Gone)?;
    let line = text.lines().next().unwrap_or_default();
    let ticks: Vec<u64> =
        line.split_whitespace().skip(1).take(8).filter_map(|word| word.parse().ok()).collect();
    // After user, nice and system time: idle, and idle while it waits for a disk. Guests are part of user time.
    Ok([ticks.iter().skip(3).take(2).sum(), ticks.iter().sum()])
}

/// The number of the network's first process, once the network is there.
fn await_ready(output: ChildStdout) -> Result<u32, Error> {
    // Two processes report, in any order.
    let (mut process, mut ready) = (None, false);
    for line in BufReader::new(output).lines() {
        let line = line.map_err(Error::Gone)?;
        match serde_json::from_str(&line).map_err(|error| Error::Gone(error.into()))? {
            Report::Process(number) => process = Some(number),
            Report::Failed { message, help } => return Err(Error::Setup { message, help }),
            Report::Ready => ready = true,
        }
        if let (Some(process), true) = (process, ready) {
            return Ok(process);
        }
    }
    Err(Error::Gone(io::ErrorKind::UnexpectedEof.into()))
}

/// The program from the environment, or beside the running one; tests run in a folder `deps` beside it.
fn find_program() -> Result<PathBuf, Error> {
    let path = match std::env::var_os("HOPMAP_TEST_NETWORK") {
        Some(path) => PathBuf::from(path),
        None => {
            let own = std::env::current_exe().map_err(Error::Gone)?;
            let folder = own.parent().unwrap_or(Path::new("."));
            let is_deps = folder.file_name().is_some_and(|name| name == "deps" || name == "examples");
            let folder = if is_deps { folder.parent().unwrap_or(folder) } else { folder };
            folder.join(PROGRAM)
        }
    };
    if path.is_file() { Ok(path) } else { Err(Error::Program(path)) }
}
