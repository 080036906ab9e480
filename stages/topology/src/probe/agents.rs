//! Agents on real hosts: starting, connecting, and directing measurements.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use hopmap_formats::host_list;
use hopmap_model::{Context, Error, Measurements, Pair, ProbePhase};

use super::hosts::{Agents, Fault, Host, probe_hosts, side_by_side};
use super::ranks::alone;
use super::sampling::{Sampling, Timing};
use super::start::{Started, Template, start};
use super::tournament::{most_seconds, rounds};
use crate::agent::{AgentConnection, CORE_MESSAGE_BYTES, ClientError, CorePair, SECONDS, Token};
use crate::params::ProbeParams;
use hopmap_machines::params::MachineError;

/// Environment variable with the node list of a job.
const VARIABLE: &str = "SLURM_JOB_NODELIST";
/// Time limit for connecting to an agent that is ready.
const CONNECT: Duration = Duration::from_secs(5);
/// Delay before reconnecting to an agent that closed the connection.
const AGAIN: Duration = Duration::from_millis(50);

/// Connections to agents by host; `None` for a host that is down.
struct Connected {
    agents: Vec<Option<(SocketAddr, Mutex<AgentConnection>)>>,
    _started: Started,
}

/// Starts agents on the hosts and runs the measurements; `false` if it was stopped early.
pub(crate) fn probe_by_agents(params: &ProbeParams, cx: &Context<'_>) -> Result<(Measurements, bool), Error> {
    let names = hosts_to_measure(params)?;
    let (hosts, connected) = connect(params, &names, cx)?;
    let endpoints: usize =
        hosts.iter().map(|host| if params.measure_intra_node { host.cores.len() } else { 1 }).sum();
    if hosts.len() == 1 && endpoints < 2 {
        return Err(alone(&names[0]).into());
    }
    let (record, complete) = probe_hosts(params, &hosts, &connected, cx);
    connected.end();
    Ok((record.finish(), complete))
}

/// The hosts to measure: those given, or those of the job.
fn hosts_to_measure(params: &ProbeParams) -> Result<Vec<String>, MachineError> {
    match params.hosts.as_deref().filter(|list| !list.trim().is_empty()) {
        Some(list) => host_names(list),
        None => {
            let list = std::env::var(VARIABLE).ok().filter(|list| !list.is_empty());
            host_names(&list.ok_or_else(no_hosts)?)
        }
    }
}

/// The names of a host list without duplicates.
pub(crate) fn host_names(list: &str) -> Result<Vec<String>, MachineError> {
    let names = host_list::expand(list).map_err(|error| {
        let help = "give names with ranges in brackets: node[001-128,200],login1";
        MachineError::new(format!("`hosts` is not a host list: {error}"), help)
    })?;
    let mut seen = std::collections::HashSet::new();
    match names.iter().find(|name| !seen.insert(*name)) {
        Some(name) => {
            let help = "list every host once; processes on one host are distinguished automatically";
            Err(MachineError::new(format!("host `{name}` is listed twice"), help))
        }
        None if names.is_empty() => Err(no_hosts()),
        None => Ok(names),
    }
}

fn no_hosts() -> MachineError {
    let help = "give `hosts`, run inside a Slurm job, or give the stage a `launcher` such as \"mpirun -n 8\"";
    MachineError::new("no hosts are given, and SLURM_JOB_NODELIST is not set", help)
}

/// Starts the agents and connects to those that answer; other hosts are down.
fn connect(
    params: &ProbeParams,
    names: &[String],
    cx: &Context<'_>,
) -> Result<(Vec<Host>, Connected), MachineError> {
    let no_token = |error| MachineError::new(format!("cannot create a secret for the agents: {error}"), "");
    let token = Token::random().map_err(no_token)?;
    let template = Template::parse(&params.start)?;
    let timeout = Duration::from_secs_f64(params.start_timeout_s);
    let (started, answers) = start(&template, names, &token.to_hex(), timeout, cx);
    let indexes: Vec<usize> = (0..names.len()).collect();
    let open = |&host: &usize| {
        let address = answers[host].clone()?;
        let mut connection = call(address, &token).map_err(in_words)?;
        let description = connection.describe().map_err(in_words)?;
        Ok::<_, String>((address, connection, description.cores))
    };
    let (mut hosts, mut agents) = (Vec::new(), Vec::new());
    let mut problems: BTreeMap<String, Vec<&String>> = BTreeMap::new();
    for (name, opened) in names.iter().zip(side_by_side(&indexes, open)) {
        let cores = match opened {
            Ok((address, connection, cores)) => {
                agents.push(Some((address, Mutex::new(connection))));
                if cores.is_empty() { vec![0] } else { cores }
            }
            Err(problem) => {
                problems.entry(problem).or_default().push(name);
                agents.push(None);
                Vec::new()
            }
        };
        hosts.push(Host { name: name.clone(), cores });
    }
    for (problem, names) in &problems {
        let are = if names.len() == 1 { "is" } else { "are" };
        cx.log(format!("{} {are} down: {problem}", host_list::compress(names)));
    }
    match problems.into_iter().next() {
        Some((problem, concerned)) if agents.iter().all(Option::is_none) => {
            let (hosts, name) = (names.len(), concerned[0]);
            let help = format!(
                "`start` must run `hopmap agent` on a host and forward its standard input; try it by hand, for example \
                 `ssh {name} hopmap agent --version`"
            );
            Err(MachineError::new(format!("none of the {hosts} hosts answered; {name}: {problem}"), help))
        }
        _ => Ok((hosts, Connected { agents, _started: started })),
    }
}

/// Connects to an agent; retries if it has no free place.
fn call(address: SocketAddr, token: &Token) -> Result<AgentConnection, ClientError> {
    let until = Instant::now() + CONNECT;
    loop {
        match AgentConnection::connect(address, token, CONNECT) {
            Err(ClientError::Gone(..) | ClientError::Busy(_)) if Instant::now() + AGAIN < until => {
                std::thread::sleep(AGAIN);
            }
            connected => return connected,
        }
    }
}

fn in_words(error: ClientError) -> String {
    miette::Report::new(error).chain().map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

impl Connected {
    fn end(self) {
        std::thread::scope(|scope| {
            for (_, connection) in self.agents.into_iter().flatten() {
                // A lost agent has already stopped.
                scope.spawn(|| connection.into_inner().unwrap_or_else(PoisonError::into_inner).end().ok());
            }
        });
    }

    fn ask<A>(
        &self,
        host: usize,
        ask: impl FnOnce(&mut AgentConnection) -> Result<A, ClientError>,
    ) -> Result<A, Fault> {
        let gone = || Fault::Host("it is down".to_owned());
        let (_, connection) = self.agents[host].as_ref().ok_or_else(gone)?;
        let mut connection = connection.lock().unwrap_or_else(PoisonError::into_inner);
        ask(&mut connection).map_err(|error| match error {
            // It answers but could not measure: the peer or the network is at fault.
            ClientError::Failed(_, message) => Fault::Connection(message),
            error => Fault::Host(in_words(error)),
        })
    }
}

impl Agents for Connected {
    fn measure(&self, source: usize, destination: usize, sampling: &Sampling) -> Result<Vec<Timing>, Fault> {
        let (address, _) = self.agents[destination]
            .as_ref()
            .ok_or_else(|| Fault::Connection("the other host is down".to_owned()))?;
        self.ask(source, |agent| agent.measure(*address, sampling, most_seconds(sampling)))
    }

    fn answers(&self, host: usize) -> Result<(), Fault> {
        self.ask(host, AgentConnection::describe).map(drop)
    }

    fn inside(
        &self,
        host: usize,
        cores: &[u32],
        phase: ProbePhase,
        sampling: &Sampling,
    ) -> Result<Vec<(Pair, Vec<Timing>)>, Fault> {
        let sizes: Vec<u64> =
            sampling.sizes.iter().copied().filter(|&bytes| bytes <= CORE_MESSAGE_BYTES).collect();
        if sizes.is_empty() {
            return Ok(Vec::new());
        }
        let sampling = Sampling { sizes, ..sampling.clone() };
        let together = phase != ProbePhase::Isolated;
        let turns = rounds(cores.len() as u32) * if together { 1 } else { cores.len() as u32 / 2 };
        let seconds = (most_seconds(&sampling) * f64::from(turns)).min(SECONDS);
        let found = self.ask(host, |agent| agent.cores(Some(cores), together, &sampling, seconds))?;
        found.into_iter().map(|pair| by_number(cores, pair)).collect()
    }
}

/// Converts core numbers of a measurement to list indexes.
fn by_number(cores: &[u32], pair: CorePair) -> Result<(Pair, Vec<Timing>), Fault> {
    let number = |core: u32| {
        let number = cores.iter().position(|&other| other == core);
        number.map(|number| number as u32).ok_or_else(|| Fault::Host(format!("it has no core {core}")))
    };
    Ok(((number(pair.source)?, number(pair.destination)?), pair.timings))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;
    use crate::agent::answer;

    #[test]
    fn an_agent_that_closes_the_connection_is_retried() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let token = Token::random().unwrap();
        let known = Token::parse(&token.to_hex()).unwrap();
        let agent = std::thread::spawn(move || {
            let until = Instant::now() + CONNECT;
            drop(listener.accept().unwrap());
            let mut busy = listener.accept().unwrap().0;
            let _ = answer(&mut busy, &known, &[1; 32], until).unwrap().send_away(&mut busy, until);
            let mut free = listener.accept().unwrap().0;
            answer(&mut free, &known, &[2; 32], until).unwrap().welcome(&mut free, until).unwrap();
        });
        call(address, &token).unwrap();
        agent.join().unwrap();
    }
}
