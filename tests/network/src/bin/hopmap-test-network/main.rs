//! Hosts with known latencies and rates between them, on one machine.

mod control;
mod echo;
mod enter;
mod failure;
mod first;
mod frames;
mod hosts;
mod lateness;
mod links;
mod port;
mod run;
mod serve;
mod switch;

use std::ffi::OsString;
use std::net::SocketAddrV4;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use hopmap_test_network::{Answer, CONTROL, Error, Request, ask};
use miette::Diagnostic as _;

use crate::failure::{say, warn};

/// Hosts with known latencies and rates between them, on one machine.
///
/// `run` makes a network and runs a command on its first host. That command can use `on`, the commands that change the network,
/// `ping` and `pong`; `ip netns exec h3 COMMAND` works as well.
#[derive(Debug, Parser)]
#[command(name = "hopmap-test-network", version)]
struct Arguments {
    #[command(subcommand)]
    command: Task,
}

/// Where a network is described.
#[derive(Debug, Args)]
struct Machine {
    /// A machine that `topology/export` wrote as graph-json, instead of a description on the standard input.
    #[arg(long)]
    machine: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Make a network, run a command on its first host and end with its status.
    Run(run::Options),
    /// Run a command on a host; words are put together as ssh does. Inside a network.
    On {
        /// Such as h3.
        host: String,
        /// The words of the command.
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<OsString>,
    },
    /// Change the latency of the link from one node to another. Inside a network.
    SetLatency {
        from: String,
        to: String,
        /// One way.
        #[arg(value_parser = finite)]
        seconds: f64,
    },
    /// Change the rate of the link from one node to another. Inside a network.
    SetRate {
        from: String,
        to: String,
        /// Bytes per second; no limit if left out.
        #[arg(value_parser = finite)]
        bytes_per_s: Option<f64>,
    },
    /// Cut off a host or a switch. Inside a network.
    Cut { node: String },
    /// Connect a node that was cut off. Inside a network.
    Join { node: String },
    /// Print what the network and each link have done so far, as JSON. Inside a network.
    Counters,
    /// Print how late frames were since the last call, in seconds; 0.5 % of them may have been later. Inside a network.
    Lateness,
    /// Answer `ping` at this address until killed; says `listening` first.
    Pong { address: SocketAddrV4 },
    /// Exchange messages with `pong` over TCP and print half the round trip in seconds: minimum and median.
    Ping {
        address: SocketAddrV4,
        /// Exchanges.
        #[arg(value_parser = clap::value_parser!(u32).range(1..))]
        count: u32,
        /// Bytes of a message; its answer has one.
        #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1 << 30))]
        bytes: u32,
        /// Seconds to wait for a connection and for every answer.
        #[arg(long, default_value_t = 5.0)]
        timeout: f64,
    },
    /// Make the network that is described on the standard input, until that ends; for the library.
    #[command(hide = true)]
    Serve(Machine),
    /// The first process of a network.
    #[command(hide = true)]
    First(Machine),
    /// Run a command on a host of the network with this first process; for the library.
    #[command(hide = true)]
    Enter {
        process: u32,
        host: String,
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<OsString>,
    },
    /// Become a command that ends with its parent, which holds the other end of a pipe.
    #[command(hide = true)]
    Bound {
        life: i32,
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<OsString>,
    },
}

/// A number that JSON can transport.
fn finite(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|number: &f64| number.is_finite())
        .ok_or_else(|| "expected a finite number".to_owned())
}

fn main() -> ExitCode {
    match perform(Arguments::parse().command) {
        Ok(code) => code,
        Err(error) => {
            let help = error.help().map_or_else(String::new, |help| format!("\n  help: {help}"));
            warn(&format!("{error}{help}"));
            ExitCode::FAILURE
        }
    }
}

fn perform(task: Task) -> Result<ExitCode, Error> {
    match task {
        Task::Run(options) => run::run(&options),
        Task::On { host, words } => enter::on(&host, &words),
        Task::SetLatency { from, to, seconds } => send(&Request::Latency { from, to, seconds }),
        Task::SetRate { from, to, bytes_per_s } => send(&Request::Rate { from, to, bytes_per_s }),
        Task::Cut { node } => send(&Request::Cut { node }),
        Task::Join { node } => send(&Request::Join { node }),
        Task::Counters => send(&Request::Counters),
        Task::Lateness => send(&Request::Lateness),
        Task::Pong { address } => {
            echo::pong(address, &mut || say("listening")).map_err(|error| at(address, &error))?;
            Ok(ExitCode::SUCCESS)
        }
        Task::Ping { address, count, bytes, timeout } => {
            let timeout = Duration::try_from_secs_f64(timeout).ok().filter(|timeout| !timeout.is_zero());
            let timeout = timeout.ok_or_else(|| Error::Refused("--timeout is not a time".to_owned()))?;
            let halves = echo::ping(address, count, bytes, timeout).map_err(|error| at(address, &error))?;
            if let (Some(minimum), Some(median)) = (halves.first(), halves.get(halves.len() / 2)) {
                say(&format!("min {minimum:.9} median {median:.9}"));
            }
            Ok(ExitCode::SUCCESS)
        }
        Task::Serve(Machine { machine }) => serve::serve(machine.as_deref()),
        Task::First(Machine { machine }) => first::first(machine.as_deref()),
        Task::Enter { process, host, words } => enter::enter(process, &host, &words),
        Task::Bound { life, words } => enter::bound(life, &words),
    }
}

/// Sends a request to the network that this process is in.
fn send(request: &Request) -> Result<ExitCode, Error> {
    let answer = ask(Path::new(CONTROL), request).map_err(|error| match error {
        Error::Gone(_) => Error::Setup {
            message: "this is not inside a test network".to_owned(),
            help: Some("`hopmap-test-network run -- COMMAND` runs a command inside one".to_owned()),
        },
        error => error,
    })?;
    match answer {
        Answer::Counters(counters) => {
            say(&serde_json::to_string(&counters).map_err(|error| Error::Gone(error.into()))?);
        }
        Answer::Lateness(seconds) => say(&format!("{seconds:.6}")),
        _ => {}
    }
    Ok(ExitCode::SUCCESS)
}

fn at(address: SocketAddrV4, error: &std::io::Error) -> Error {
    Error::Setup { message: format!("{address}: {error}"), help: None }
}
