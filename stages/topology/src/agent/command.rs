//! `hopmap agent`: measures message times on its host for a coordinator that knows the token.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use clap::Args;
use hopmap_command::{Answer, Command, Failure, Mistake, duration, shown};
use hopmap_model::Context;
use hopmap_mpi_environment::host_name;

use super::bind::{Bind, default_address};
use super::cores::ThreadError;
use super::handshake::Token;
use super::server::{Agent, AgentSettings, Ending};

/// Environment variable with the token.
const TOKEN: &str = "HOPMAP_AGENT_TOKEN";
/// Longer first lines cannot be a token.
const LINE_BYTES: u64 = 1024;

/// Measure message latencies and bandwidths on this host for a coordinator.
#[derive(Debug, Args)]
#[command(after_help = "\
`topology/probe` starts agents and passes them a token. To start one by hand, put the token, 64 \
hexadecimal digits, into the environment variable HOPMAP_AGENT_TOKEN, the first line of \
--token-file, or the first line of standard input. It is never an argument, which all users of \
the host could read. Connections without the token are rejected.

A ready agent prints one line: hopmap agent 1 HOST ADDRESS:PORT CORES. It ends when its \
coordinator ends it, when its standard input is closed, or after --time-limit.

Examples:
  (umask 077; openssl rand -hex 32 > token)
  hopmap agent --bind 10.1.2.3 --token-file token
  sleep 300 | srun --ntasks-per-node=1 hopmap agent --bind 10.1.0.0/16 --token-file token")]
pub struct AgentCommand {
    /// Listen on this address of the host, with an optional port, or on the address in a network such as 10.1.0.0/16
    /// [default: the address to which the host name resolves].
    #[arg(long, value_name = "ADDRESS")]
    bind: Option<String>,
    /// End after TIME: from 1s to 24h.
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = lifetime)]
    time_limit: Duration,
    /// Name of this host [default: `$SLURMD_NODENAME`, else the host name].
    #[arg(long, value_name = "HOST")]
    name: Option<String>,
    /// File with the token on its first line.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

impl Command for AgentCommand {
    const NAME: &'static str = "agent";
    const IS_STOPPABLE: bool = false;

    fn run(&self, cx: &Context<'_>, out: &mut (dyn Write + Send)) -> Result<Answer, Failure> {
        let address = match &self.bind {
            Some(text) => text.parse::<Bind>().and_then(|bind| bind.address()).map_err(Failure::usage)?,
            None => default_address(),
        };
        let settings = AgentSettings {
            address,
            host: self.name.clone().unwrap_or_else(host_name),
            lifetime: self.time_limit,
            token: token(self.token_file.as_deref())?,
        };
        let (remarks, received) = channel();
        let refusals = remarks.clone();
        // The receiver is gone after the agent has stopped.
        let refused = move |refusal: &str| drop(refusals.send(Some(refusal.to_owned())));
        let agent = Agent::bind(settings, refused).map_err(Failure::usage)?;
        let stopper = agent.stopper();
        let watch = thread::Builder::new().name("standard input".to_owned());
        let watched = watch.spawn(move || {
            wait_for_end(io::stdin().lock());
            stopper.stop();
        });
        watched.map_err(|error| Failure::failed(ThreadError(error)))?;
        // The starter of the agent waits for this line, even in quiet mode.
        let _ = writeln!(out, "{}", agent.line());
        let ending = thread::scope(|scope| {
            scope.spawn(move || received.iter().map_while(|remark| remark).for_each(|remark| cx.log(remark)));
            let ending = agent.serve();
            let _ = remarks.send(None);
            ending
        });
        cx.log(match ending.map_err(Failure::failed)? {
            Ending::End => "stopped by its coordinator".to_owned(),
            Ending::Stopped => "stopped, standard input was closed".to_owned(),
            Ending::TimeLimit => format!("stopped after {} s", self.time_limit.as_secs_f64()),
        });
        Ok(Answer::default())
    }
}

fn lifetime(text: &str) -> Result<Duration, String> {
    let time = duration(text)?;
    let is_allowed = (1.0..=86_400.0).contains(&time.as_secs_f64());
    if is_allowed { Ok(time) } else { Err("allowed: 1s to 24h".to_owned()) }
}

/// Returns at the end of the input.
fn wait_for_end(mut input: impl Read) {
    let mut ignored = [0; 256];
    loop {
        match input.read(&mut ignored) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
    }
}

/// Reads the token from the first available source.
fn token(file: Option<&Path>) -> Result<Token, Failure> {
    let (text, place) = match (file, std::env::var_os(TOKEN)) {
        (Some(file), _) => {
            let unread = |error| Mistake::new(format!("cannot read {}: {error}", shown(file)), MAKE_TOKEN);
            let opened = File::open(file).map_err(unread)?;
            let metadata = opened.metadata().map_err(unread)?;
            if metadata.is_file() && metadata.mode() & 0o077 != 0 {
                let hint = format!("chmod 600 {}", shown(file));
                return Err(Mistake::new(format!("{} is readable by other users", shown(file)), hint).into());
            }
            (first_line(opened).map_err(unread)?, shown(file))
        }
        (None, Some(text)) => (OsString::into_string(text).unwrap_or_default(), TOKEN.to_owned()),
        (None, None) => {
            let unread = |error| Mistake::new(format!("cannot read standard input: {error}"), MAKE_TOKEN);
            let line = first_line(io::stdin().lock()).map_err(unread)?;
            (line, "the first line of standard input".to_owned())
        }
    };
    Token::parse(&text)
        .map_err(|error| Mistake::new(format!("no token in {place}: {error}"), MAKE_TOKEN).into())
}

const MAKE_TOKEN: &str = "create a token with `(umask 077; openssl rand -hex 32 > token)`; give it in HOPMAP_AGENT_TOKEN, --token-file or standard input";

/// The first line, up to the maximum length of a token.
fn first_line(input: impl Read) -> io::Result<String> {
    let mut line = Vec::new();
    BufReader::new(input.take(LINE_BYTES)).read_until(b'\n', &mut line)?;
    Ok(String::from_utf8_lossy(&line).into_owned())
}
