//! Starting agents: a command for every host, or one for all, and what they say when they are ready.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use hopmap_model::Context;
use hopmap_process::{Capture, Group, for_each_line};

use crate::MachineError;
use crate::agent::VERSION;

/// What stands for the name of a host in a command.
const HOST: &str = "{host}";
/// What the line of an agent that is ready begins with; launchers may put something before it.
const READY: &str = "hopmap agent ";
/// Bytes and lines of standard error that are kept of a command.
const TAIL_BYTES: usize = 4096;
const TAIL_LINES: usize = 3;
/// Time for complaints after the end of the standard output.
const PATIENCE: Duration = Duration::from_millis(200);
/// Time for all commands together to end by themselves.
const GRACE: Duration = Duration::from_secs(2);
/// Once half of the agents are ready the others have as long again as those took, and this at least.
const LATE: Duration = Duration::from_secs(5);
/// Time between two looks at whether to stop.
const INTERVAL: Duration = Duration::from_millis(100);

/// A command that starts agents, as words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Template {
    words: Vec<String>,
}

/// Commands that run agents; they are ended when this is dropped.
#[derive(Debug, Default)]
pub(crate) struct Started {
    running: Vec<Running>,
}

#[derive(Debug)]
struct Running {
    group: Group,
    /// Its end ends an agent, also behind ssh.
    input: Option<ChildStdin>,
    errors: Capture,
}

/// Where the agent of a host can be reached, or why it cannot; one for every host asked for.
pub(crate) type Answers = Vec<Result<SocketAddr, String>>;

/// What the reader of a command hears.
enum News {
    /// An agent is ready: the name of its host, and its address or why it cannot be used.
    Ready(String, Result<SocketAddr, String>),
    /// The command says nothing more.
    Silent,
}

impl Template {
    /// Splits a command into words as a shell does, without doing anything else that shells do.
    pub(crate) fn parse(text: &str) -> Result<Self, MachineError> {
        match shlex::split(text).filter(|words| !words.is_empty()) {
            Some(words) => Ok(Self { words }),
            None => {
                let help = "write a command such as \"ssh {host} hopmap agent\"; quotes that are opened have to be closed";
                Err(MachineError::new(format!("`start` is `{text}`, which is no command"), help))
            }
        }
    }

    /// Whether it is run once for every host.
    fn is_per_host(&self) -> bool {
        self.words.iter().any(|word| word.contains(HOST))
    }

    /// Runs it with the token on its standard input, which stays open: agents end with it.
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
            // A command that has ended already says why on its standard error.
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

/// Reports agents that are ready until the command says nothing more; then its complaints are known as well.
fn listen(output: impl Read, errors: &Capture, report: impl Fn(News)) {
    for_each_line(output, |line| {
        if let Some((host, address)) = parse_ready(line) {
            report(News::Ready(host, address));
        }
    });
    // A command may go on without its standard output.
    let _ = errors.bytes(Instant::now() + PATIENCE);
    report(News::Silent);
}

/// The name and the address that an agent says when it is ready; of another version only the name is understood.
fn parse_ready(line: &str) -> Option<(String, Result<SocketAddr, String>)> {
    let (_, said) = line.split_once(READY)?;
    let mut words = said.split_whitespace();
    let version: u16 = words.next()?.parse().ok()?;
    let host = words.next()?.to_owned();
    if version != VERSION {
        let fault = format!(
            "its agent speaks version {version} of the protocol, not {VERSION}: start it from the same hopmap"
        );
        return Some((host, Err(fault)));
    }
    Some((host, Ok(words.next()?.parse().ok()?)))
}

/// Starts the agents of some hosts and waits until all are ready, have failed, or the time is over.
pub(crate) fn start(
    template: &Template,
    hosts: &[String],
    token: &str,
    timeout: Duration,
    cx: &Context<'_>,
) -> (Started, Answers) {
    let (sender, news) = channel();
    let mut started = Started::default();
    // Which hosts a command is for, and by which of the running ones it is run.
    let commands: Vec<(&str, Vec<usize>)> = match template.is_per_host() {
        true => hosts.iter().enumerate().map(|(index, host)| (host.as_str(), vec![index])).collect(),
        false => vec![("", (0..hosts.len()).collect())],
    };
    let mut answers: Vec<Option<Result<SocketAddr, String>>> = vec![None; hosts.len()];
    let mut runs = HashMap::new();
    for (command, (host, concerned)) in commands.iter().enumerate() {
        let sender: Sender<(usize, News)> = sender.clone();
        match template.run(host, token, move |said| drop(sender.send((command, said)))) {
            Ok(running) => {
                runs.insert(command, started.running.len());
                started.running.push(running);
            }
            Err(problem) => concerned.iter().for_each(|&index| answers[index] = Some(Err(problem.clone()))),
        }
    }
    drop(sender);
    let wait = Wait { hosts, commands: &commands, begun: Instant::now(), timeout, cx };
    wait.hear(&news, &mut answers, &mut |command| {
        runs.get(&command).map_or_else(String::new, |&run| started.running[run].last_words())
    });
    let waited = wait.begun.elapsed().min(timeout).as_secs_f64();
    let late = || format!("its agent was not ready within {waited:.0} s");
    let answers = answers.into_iter().map(|answer| answer.unwrap_or_else(|| Err(late()))).collect();
    (started, answers)
}

/// Waiting for agents.
struct Wait<'a> {
    hosts: &'a [String],
    commands: &'a [(&'a str, Vec<usize>)],
    begun: Instant,
    timeout: Duration,
    cx: &'a Context<'a>,
}

impl Wait<'_> {
    fn hear(
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
                    None => self.cx.log(format!("an agent on `{name}`, which nobody asked for")),
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

    /// The host that an agent speaks for: the only one of its command, or the one of its name, with or without domain.
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
    /// What the command said last, once it has ended.
    fn last_words(&self) -> String {
        // Its pipes are closed a moment before it is over.
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
            // Whatever hangs is killed, as it cannot be asked any more.
            let _ = running.group.wait_until(deadline);
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
    fn a_command_for_every_host_speaks_for_it_whatever_it_calls_itself() {
        let command = "sh -c 'read token; echo \"0: hopmap agent 1 {host}.domain 10.0.0.1:7$token 4\"'";
        let answers = started(&command.replace("7$token", "700"), &["a", "b"]);
        assert_eq!(answers, vec![Ok("10.0.0.1:700".parse().unwrap()); 2]);
    }

    #[test]
    fn one_command_for_all_is_told_apart_by_names() {
        let said = "hopmap agent 1 b.domain 10.0.0.2:7 4\\nhopmap agent 1 x 10.0.0.9:7 4\\nhopmap agent 1 a 10.0.0.1:7 4\\n";
        let answers = started(&format!("printf '{said}'"), &["a", "b", "c"]);
        assert_eq!(answers[..2], ["10.0.0.1:7", "10.0.0.2:7"].map(|address| Ok(address.parse().unwrap())));
        assert!(answers[2].as_ref().unwrap_err().starts_with("the command ended"), "{answers:?}");
    }

    #[test]
    fn the_token_is_on_the_standard_input_and_nowhere_else() {
        let command = "sh -c 'read token; test $token = secret && echo hopmap agent 1 {host} 1.2.3.4:5 1'";
        assert_eq!(started(command, &["a"]), [Ok("1.2.3.4:5".parse().unwrap())]);
    }

    #[test]
    fn failures_are_told_in_the_words_of_the_command() {
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
    fn a_host_that_is_down_does_not_keep_the_others_waiting_to_the_end() {
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
    fn an_agent_of_another_version_is_told_with_both_versions() {
        let answers = started("echo hopmap agent 9 a 10.0.0.1:7 4", &["a"]);
        let fault = "its agent speaks version 9 of the protocol, not 1: start it from the same hopmap";
        assert_eq!(answers, [Err(fault.to_owned())]);
    }

    #[test]
    fn what_a_hanging_command_has_started_ends_with_it() {
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
        assert!(is_over(), "process {child} goes on");
    }
}
