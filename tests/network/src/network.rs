use std::ffi::OsStr;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use hopmap_mpi_environment::AS_ROOT;

use crate::{Answer, CONTROL, Counters, Description, Error, Report, Request, address, ask, host_name};

/// The name of the program that makes networks.
pub const PROGRAM: &str = "hopmap-test-network";

/// A running network; it ends, with every process on its hosts, when this is dropped.
#[derive(Debug)]
pub struct Network {
    program: PathBuf,
    hosts: usize,
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
        let mut child = Command::new(program)
            .arg("serve")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|_| Error::Program(program.to_owned()))?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let mut network =
            Self { program: program.to_owned(), hosts: description.hosts(), process: 0, child, input };
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
        self.hosts
    }

    /// The name of a host: what `hostname` says on it, and what all hosts know it by.
    #[must_use]
    pub fn name(&self, host: usize) -> String {
        host_name(host)
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
        command.arg("enter").arg(self.process.to_string()).arg(host_name(host)).arg("--").arg(program);
        command
    }

    /// `mpirun` of Open MPI 4 on the first of these hosts, with one slot on each; what is left is the program and its arguments.
    ///
    /// Ranks talk over TCP alone and give up their processor when idle, as the hosts share those of this machine.
    #[must_use]
    pub fn mpirun(&self, hosts: &[usize]) -> Command {
        let names: Vec<String> = hosts.iter().map(|&host| format!("{}:1", host_name(host))).collect();
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

    /// Changes the latency, in seconds, from one host to another; the way back keeps its own.
    pub fn set_latency(&self, from: usize, to: usize, seconds: f64) -> Result<(), Error> {
        self.ask(&Request::Latency { from, to, seconds }).map(drop)
    }

    /// Changes the rate, in bytes per second, from one host to another; none is no limit.
    pub fn set_rate(&self, from: usize, to: usize, bytes_per_s: Option<f64>) -> Result<(), Error> {
        self.ask(&Request::Rate { from, to, bytes_per_s }).map(drop)
    }

    /// Cuts a host off: nothing comes from it or to it.
    pub fn cut(&self, host: usize) -> Result<(), Error> {
        self.ask(&Request::Cut { host }).map(drop)
    }

    /// Lets a host that was cut take part again.
    pub fn join(&self, host: usize) -> Result<(), Error> {
        self.ask(&Request::Join { host }).map(drop)
    }

    /// What the switch has done so far.
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

/// The number of the network's first process, once the network is there.
fn await_ready(output: ChildStdout) -> Result<u32, Error> {
    // Two processes tell, in any order.
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
