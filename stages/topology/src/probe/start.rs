//! Starts agents, by one command per host or one for all, and reads their ready lines.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use hopmap_model::Context;
use hopmap_process::{Capture, Group, for_each_line};

use crate::agent::VERSION;
use hopmap_machines::params::MachineError;

/// Placeholder for the host name in a command.
const HOST: &str = "{host}";
/// Start of the ready line of an agent; launchers may prefix it.
const READY: &str = "hopmap agent ";
/// Bytes and lines of standard error that are kept per command.
const TAIL_BYTES: usize = 4096;
const TAIL_LINES: usize = 3;
/// Time to collect error output after the end of the standard output.
const PATIENCE: Duration = Duration::from_millis(200);
/// Time for all commands together to exit by themselves.
const GRACE: Duration = Duration::from_secs(2);
/// Time for all launchers together to withdraw what they have queued.
const TIME_TO_REVOKE: Duration = Duration::from_secs(5);
/// Once half of the agents are ready, the others have as long again, and at least this.
const LATE: Duration = Duration::from_secs(5);
/// Interval of checks for cancellation.
const INTERVAL: Duration = Duration::from_millis(100);

/// A command that starts agents, split into words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Template {
    words: Vec<String>,
}

/// Running commands; they are stopped on drop.
#[derive(Debug, Default)]
pub(crate) struct Started {
    running: Vec<Running>,
}

#[derive(Debug)]
struct Running {
    group: Group,
    /// Closing it stops an agent, even behind ssh.
    input: Option<ChildStdin>,
    errors: Capture,
}

/// Address of the agent of each host, or why there is none; one entry per requested host.
pub(crate) type Answers = Vec<Result<SocketAddr, String>>;

/// Events from the reader of a command.
enum News {
    /// An agent is ready: its host name, and its address or why it cannot be used.
    Ready(String, Result<SocketAddr, String>),
    /// The command will print nothing more.
    Silent,
}

impl Template {
    /// Splits a command into words with shell quoting rules; no expansion.
    pub(crate) fn parse(text: &str) -> Result<Self, MachineError> {
        match shlex::split(text).filter(|words| !words.is_empty()) {
            Some(words) => Ok(Self { words }),
            None => {
                let help = "give a command such as \"ssh {host} hopmap agent\"; quotes must be closed";
                Err(MachineError::new(format!("`start` is `{text}`, which is not a command"), help))
            }
        }
    }

    /// Whether it runs once per host.
    fn is_per_host(&self) -> bool {
        self.words.iter().any(|word| word.contains(HOST))
    }

    /// Runs it with the token on its standard input, which stays open: agents stop when it is closed.
    fn run(
        &self,
        host: &str,
        token: &str,
        report: impl Fn(News) + Send + 'static,
    ) -> Result<Running, String> {
        let words: Vec<String> = self.words.iter().map(|word| word.replace(HOST, host)).collect();
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut group =
            Group::start(&mut command).map_err(|error| format!("cannot run `{}`: {error}", words[0]))?;
        let mut input = group.take_stdin();
        if let Some(input) = &mut input {
            // A command that has already exited explains itself on standard error.
            let _ = input.write_all(format!("{token}\n").as_bytes()).and_then(|()| input.flush());
        }
        let errors = Capture::last(group.take_stderr(), TAIL_BYTES);
        if let Some(output) = group.take_stdout() {
            let errors = errors.clone();
            std::thread::spawn(move || listen(output, &errors, report));
        }
        Ok(Running { group, input, errors })
    }
}

/// Reports agents that are ready until the end of the output; error output is then complete too.
fn listen(output: impl Read, errors: &Capture, report: impl Fn(News)) {
    for_each_line(output, |line| {
        if let Some((host, address)) = parse_ready(line) {
            report(News::Ready(host, address));
        }
    });
    // A command may close its standard output and keep running.
    let _ = errors.bytes(Instant::now() + PATIENCE);
    report(News::Silent);
}

/// Parses the ready line of an agent; of another version only the name is parsed.
fn parse_ready(line: &str) -> Option<(String, Result<SocketAddr, String>)> {
    let (_, ready) = line.split_once(READY)?;
    let mut words = ready.split_whitespace();
    let version: u16 = words.next()?.parse().ok()?;
    let host = words.next()?.to_owned();
    if version != VERSION {
        let fault = format!(
            "its agent uses protocol version {version}, not {VERSION}: use the same version of hopmap"
        );
        return Some((host, Err(fault)));
    }
    Some((host, Ok(words.next()?.parse().ok()?)))
}

/// Starts the agents of some hosts and waits until all are ready or have failed, or the time limit is
/// reached.
pub(crate) fn start(
    template: &Template,
    hosts: &[String],
    token: &str,
    timeout: Duration,
    cx: &Context<'_>,
) -> (Started, Answers) {
    let (sender, news) = channel();
    let mut started = Started::default();
    // Each command with the hosts that it serves.
    let commands: Vec<(&str, Vec<usize>)> = match template.is_per_host() {
        true => hosts.iter().enumerate().map(|(index, host)| (host.as_str(), vec![index])).collect(),
        false => vec![("", (0..hosts.len()).collect())],
    };
    let mut answers: Vec<Option<Result<SocketAddr, String>>> = vec![None; hosts.len()];
    let mut runs = HashMap::new();
    for (command, (host, concerned)) in commands.iter().enumerate() {
        let sender: Sender<(usize, News)> = sender.clone();
        match template.run(host, token, move |event| drop(sender.send((command, event)))) {
            Ok(running) => {
                runs.insert(command, started.running.len());
                started.running.push(running);
            }
            Err(problem) => concerned.iter().for_each(|&index| answers[index] = Some(Err(problem.clone()))),
        }
    }
    drop(sender);
    let wait = Wait { hosts, commands: &commands, begun: Instant::now(), timeout, cx };
    wait.handle(&news, &mut answers, &mut |command| {
        runs.get(&command).map_or_else(String::new, |&run| started.running[run].last_words())
    });
    let waited = wait.begun.elapsed().min(timeout).as_secs_f64();
    let late = || format!("its agent was not ready within {waited:.0} s");
    let answers = answers.into_iter().map(|answer| answer.unwrap_or_else(|| Err(late()))).collect();
    (started, answers)
}

/// The state while waiting for agents.
struct Wait<'a> {
    hosts: &'a [String],
    commands: &'a [(&'a str, Vec<usize>)],
    begun: Instant,
    timeout: Duration,
    cx: &'a Context<'a>,
}

impl Wait<'_> {
    fn handle(
        &self,
        news: &Receiver<(usize, News)>,
        answers: &mut [Option<Result<SocketAddr, String>>],
        last_words: &mut dyn FnMut(usize) -> String,
    ) {
        let mut patience = self.timeout;
        while answers.iter().any(Option::is_none) && self.begun.elapsed() < patience && !self.cx.should_stop()
        {
            match news.recv_timeout(INTERVAL) {
                Ok((command, News::Ready(name, address))) => match self.host(command, &name, answers) {
                    Some(host) => {
                        answers[host] = Some(address);
                        if 2 * answers.iter().flatten().filter(|answer| answer.is_ok()).count()
                            >= answers.len()
                        {
                            let taken = self.begun.elapsed();
                            patience = self.timeout.min(taken + taken.max(LATE));
                        }
                    }
                    None => self.cx.log(format!("ignoring an unexpected agent on `{name}`")),
                },
                Ok((command, News::Silent)) => {
                    let words = last_words(command);
                    for &host in &self.commands[command].1 {
                        answers[host].get_or_insert_with(|| Err(words.clone()));
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// The host of an agent: the only one of its command, or the one with its name, with or without domain.
    fn host(
        &self,
        command: usize,
        name: &str,
        answers: &[Option<Result<SocketAddr, String>>],
    ) -> Option<usize> {
        let concerned = &self.commands[command].1;
        let short = |name: &str| name.split('.').next().unwrap_or_default().to_owned();
        let by_name =
            |same: &dyn Fn(&str) -> bool| concerned.iter().copied().find(|&host| same(&self.hosts[host]));
        let found = match concerned[..] {
            [only] if !self.commands[command].0.is_empty() => Some(only),
            _ => by_name(&|host| host == name).or_else(|| by_name(&|host| short(host) == short(name))),
        };
        found.filter(|&host| answers[host].is_none())
    }
}

impl Running {
    /// The last output of a command, once it has exited.
    fn last_words(&self) -> String {
        // Its pipes are closed shortly before it exits.
        let deadline = Instant::now() + PATIENCE;
        let ended = match self.group.wait_until(deadline).and_then(|_| self.group.ended()) {
            Ok(Some(status)) => status.to_string(),
            Ok(None) => "it closed its standard output".to_owned(),
            Err(error) => error.to_string(),
        };
        match &self.errors.last_lines(TAIL_LINES, deadline)[..] {
            [] => format!("the command ended ({ended}) before its agent was ready"),
            lines => lines.join(" / "),
        }
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        for running in &mut self.running {
            drop(running.input.take());
        }
        let deadline = Instant::now() + GRACE;
        for running in &mut self.running {
            let _ = running.group.wait_until(deadline);
        }
        // A launcher that waits for a node reads no input. Told to end, `srun` takes its job out of the queue; killed, it would
        // leave the job there, which takes the node when it returns.
        let mut waiting: Vec<&mut Group> =
            self.running.iter_mut().map(|running| &mut running.group).collect();
        waiting.retain(|group| matches!(group.ended(), Ok(None)));
        waiting.iter_mut().for_each(|group| group.terminate());
        let deadline = Instant::now() + TIME_TO_REVOKE;
        for group in waiting {
            if !matches!(group.wait_until(deadline), Ok(true)) {
                group.kill();
            }
        }
        for running in &mut self.running {
            let _ = running.group.end();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn started(command: &str, hosts: &[&str]) -> Answers {
        let hosts: Vec<String> = hosts.iter().map(|&host| host.to_owned()).collect();
        let template = Template::parse(command).unwrap();
        start(&template, &hosts, "secret", Duration::from_secs(1), &Context::detached()).1
    }

    #[test]
    fn a_command_per_host_determines_the_host_regardless_of_its_name() {
        let command = "sh -c 'read token; echo \"0: hopmap agent 1 {host}.domain 10.0.0.1:7$token 4\"'";
        let answers = started(&command.replace("7$token", "700"), &["a", "b"]);
        assert_eq!(answers, vec![Ok("10.0.0.1:700".parse().unwrap()); 2]);
    }

    #[test]
    fn agents_of_one_command_are_distinguished_by_name() {
        let lines = "hopmap agent 1 b.domain 10.0.0.2:7 4\\nhopmap agent 1 x 10.0.0.9:7 4\\nhopmap agent 1 a 10.0.0.1:7 4\\n";
        let answers = started(&format!("printf '{lines}'"), &["a", "b", "c"]);
        assert_eq!(answers[..2], ["10.0.0.1:7", "10.0.0.2:7"].map(|address| Ok(address.parse().unwrap())));
        assert!(answers[2].as_ref().unwrap_err().starts_with("the command ended"), "{answers:?}");
    }

    #[test]
    fn the_token_is_only_on_the_standard_input() {
        let command = "sh -c 'read token; test $token = secret && echo hopmap agent 1 {host} 1.2.3.4:5 1'";
        assert_eq!(started(command, &["a"]), [Ok("1.2.3.4:5".parse().unwrap())]);
    }

    #[test]
    fn failures_quote_the_command_output() {
        let answers = started("sh -c 'echo no route to {host} >&2; exit 3'", &["a"]);
        assert_eq!(answers, [Err("no route to a".to_owned())]);
        let answers = started("/no/such/program", &["a", "b"]);
        assert!(
            answers
                .iter()
                .all(|answer| answer.as_ref().unwrap_err().starts_with("cannot run `/no/such/program`"))
        );
        let answers = started("sleep 60", &["a"]);
        assert_eq!(answers, [Err("its agent was not ready within 1 s".to_owned())]);
        assert!(Template::parse("ssh 'a").is_err() && Template::parse(" ").is_err());
    }

    #[test]
    fn a_host_that_is_down_does_not_delay_the_others() {
        let hosts = ["a", "b", "c"].map(str::to_owned);
        let command =
            "sh -c 'test {host} = c && exec sleep 1200; echo hopmap agent 1 {host} 10.0.0.1:7 4; cat'";
        let template = Template::parse(command).unwrap();
        let (_started, answers) =
            start(&template, &hosts, "secret", Duration::from_mins(10), &Context::detached());
        assert!(answers[0].is_ok() && answers[1].is_ok());
        let fault = answers[2].as_ref().unwrap_err();
        assert!(fault.starts_with("its agent was not ready within "), "{fault}");
        assert_ne!(fault, "its agent was not ready within 600 s", "it waited as long as it may");
    }

    #[test]
    fn an_agent_of_another_version_is_reported_with_both_versions() {
        let answers = started("echo hopmap agent 9 a 10.0.0.1:7 4", &["a"]);
        let fault = "its agent uses protocol version 9, not 1: use the same version of hopmap";
        assert_eq!(answers, [Err(fault.to_owned())]);
    }

    #[test]
    fn children_of_a_hanging_command_are_killed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("child");
        let command = format!("sh -c 'sleep 100 & echo $! > {}; wait'", file.display());
        started(&command, &["a"]);
        let child = std::fs::read_to_string(file).unwrap();
        let status = format!("/proc/{}/stat", child.trim());
        let is_over = || std::fs::read_to_string(&status).map_or(true, |text| text.contains(") Z "));
        let until = Instant::now() + Duration::from_secs(2);
        while !is_over() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(is_over(), "process {child} is still running");
    }
}
