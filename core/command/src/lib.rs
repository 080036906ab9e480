//! Commands as library functions: arguments, work and answer of a subcommand of `hopmap`, without its printing.
//!
//! [`Command`] is to the command line what `Stage` is to pipelines: whoever knows a subject implements it, and the registry
//! lists it as a [`CommandEntry`].

use std::fmt::Display;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{ArgMatches, Args};
use hopmap_model::Context;
use miette::{Diagnostic, Report};
use serde::Serialize;

/// A path as people would type it: relative to the working directory where it is below it, which itself is `.`.
#[must_use]
pub fn shown(path: &Path) -> String {
    let clean: PathBuf = path.components().collect();
    let clean = std::fs::canonicalize(&clean).unwrap_or(clean);
    let here = std::env::current_dir().and_then(std::fs::canonicalize).unwrap_or_default();
    let seen = clean.strip_prefix(here).unwrap_or(&clean);
    if seen.as_os_str().is_empty() { ".".to_owned() } else { seen.display().to_string() }
}

/// The owner of a lock, as processes read it that find something locked.
#[must_use]
pub fn holder(command: &str) -> String {
    format!("process {} on {}: hopmap {command}", std::process::id(), hopmap_mpi_environment::host_name())
}

/// Threads that a command takes unless it is told a number.
#[must_use]
pub fn all_cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Done.
    Done,
    /// A stage failed or has no solution.
    Failed,
    /// The command or the pipeline file is wrong.
    Usage,
    /// A gate did not hold or, where that is asked for, something has changed.
    Different,
    /// The store is locked by another run.
    Locked,
    /// Interrupted by the user.
    Interrupted,
}

impl Exit {
    /// All of them, in the order of their codes.
    pub const ALL: [Self; 6] =
        [Self::Done, Self::Failed, Self::Usage, Self::Different, Self::Locked, Self::Interrupted];

    /// What it means, for the reference.
    #[must_use]
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Done => "The command succeeded.",
            Self::Failed => "A stage failed, a problem is infeasible, or data is damaged.",
            Self::Usage => {
                "The command line or the pipeline file is wrong; with `run --locked`, something differs from the lock file. Nothing ran."
            }
            Self::Different => {
                "A check failed: a gate, a lock file, an accepted baseline, an archive, or a comparison with `--exit-code`."
            }
            Self::Locked => "Another process has locked the store. Try again later, or pass `--wait`.",
            Self::Interrupted => "Ctrl-C or a signal interrupted the command.",
        }
    }

    /// The number the shell sees.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Different => 3,
            Self::Locked => 75,
            Self::Interrupted => 130,
        }
    }

    /// The exit status that a number stands for.
    #[must_use]
    pub fn of_code(code: u8) -> Self {
        Self::ALL.into_iter().find(|exit| exit.code() == code).unwrap_or(Self::Failed)
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// What a command answers: lines for people, the same as JSON for programs, and the exit status.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    /// How the command ended.
    pub exit: Exit,
    /// What people read.
    pub lines: Vec<String>,
    /// What programs read: a JSON document, with its keys in the order in which they were written.
    pub json: Option<String>,
}

impl Default for Answer {
    fn default() -> Self {
        Self { exit: Exit::Done, lines: Vec::new(), json: None }
    }
}

impl Answer {
    /// An answer that programs read as this value, and people as the lines that follow.
    #[must_use]
    pub fn of(value: &impl Serialize) -> Self {
        // Values are plain data with text keys: they always have a form in JSON.
        Self { json: Some(serde_json::to_string_pretty(value).unwrap_or_default()), ..Self::default() }
    }

    /// One more line.
    pub fn line(&mut self, line: impl Display) {
        self.lines.push(line.to_string());
    }

    /// The same answer with another exit status.
    #[must_use]
    pub fn ending(self, exit: Exit) -> Self {
        Self { exit, ..self }
    }
}

/// Why a command ended without doing what it was asked for.
#[derive(Debug)]
pub struct Failure {
    /// The exit status.
    pub exit: Exit,
    /// What is wrong: one error, or all mistakes of a file.
    pub reports: Vec<Report>,
    /// What was found out before.
    pub answer: Answer,
}

impl Failure {
    /// Ends with an exit status, for these reasons.
    pub fn new(exit: Exit, reports: impl IntoIterator<Item = Report>) -> Self {
        Self { exit, reports: reports.into_iter().collect(), answer: Answer::default() }
    }

    /// Something went wrong.
    pub fn failed(error: impl Into<Report>) -> Self {
        Self::new(Exit::Failed, [error.into()])
    }

    /// The command is wrong.
    pub fn usage(error: impl Into<Report>) -> Self {
        Self::new(Exit::Usage, [error.into()])
    }

    /// The same failure, after something was found out.
    #[must_use]
    pub fn after(self, answer: Answer) -> Self {
        Self { answer, ..self }
    }
}

impl From<Report> for Failure {
    fn from(report: Report) -> Self {
        Self::failed(report)
    }
}

/// A mistake in the command, with a hint.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("{message}")]
pub struct Mistake {
    message: String,
    #[help]
    help: Option<String>,
}

impl Mistake {
    /// What is wrong, and what to write instead.
    pub fn new(message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { message: message.into(), help: Some(help.into()) }
    }
}

/// Refuses a command: what is wrong, and what to write instead.
pub fn refuse<T>(message: impl Into<String>, help: impl Into<String>) -> Result<T, Failure> {
    Err(Mistake::new(message, help).into())
}

impl From<Mistake> for Failure {
    fn from(mistake: Mistake) -> Self {
        Self::usage(mistake)
    }
}

/// A subcommand of `hopmap`. The doc comment of the type is its line in the help, its fields are the arguments.
pub trait Command: Args + Send + Sync + 'static {
    /// What the user types.
    const NAME: &'static str;

    /// Whether the command ends early when [`Context::should_stop`] says so. A first Ctrl-C then asks it to; it ends any other
    /// command at once.
    const IS_STOPPABLE: bool = true;

    /// The size of the thread pool in which the command runs; it runs in none by default.
    fn threads(&self) -> Option<usize> {
        None
    }

    /// Does the work. Progress and remarks go to the context, bytes that are wanted as they come to `out`, such as a file that is
    /// restored to standard output.
    fn run(&self, cx: &Context<'_>, out: &mut (dyn Write + Send)) -> Result<Answer, Failure>;
}

/// A command whose arguments are known, its type erased.
pub trait ParsedCommand: Send + Sync {
    /// See [`Command::IS_STOPPABLE`].
    fn is_stoppable(&self) -> bool;
    /// See [`Command::threads`].
    fn threads(&self) -> Option<usize>;
    /// See [`Command::run`].
    fn run(&self, cx: &Context<'_>, out: &mut (dyn Write + Send)) -> Result<Answer, Failure>;
}

impl<C: Command> ParsedCommand for C {
    fn is_stoppable(&self) -> bool {
        C::IS_STOPPABLE
    }

    fn threads(&self) -> Option<usize> {
        Command::threads(self)
    }

    fn run(&self, cx: &Context<'_>, out: &mut (dyn Write + Send)) -> Result<Answer, Failure> {
        Command::run(self, cx, out)
    }
}

/// A command, or a group of commands, its type erased.
pub struct CommandEntry {
    /// What the user types.
    pub name: &'static str,
    kind: Kind,
}

enum Kind {
    Command {
        define: fn(clap::Command) -> clap::Command,
        parse: fn(&mut ArgMatches) -> Result<Box<dyn ParsedCommand>, clap::Error>,
    },
    Group {
        about: &'static str,
        members: &'static [CommandEntry],
    },
}

impl CommandEntry {
    /// The entry of a command.
    #[must_use]
    pub const fn of<C: Command>() -> Self {
        Self { name: C::NAME, kind: Kind::Command { define: C::augment_args, parse: parse::<C> } }
    }

    /// The entry of commands with a word in common, such as `hopmap checkpoint add`.
    #[must_use]
    pub const fn group(name: &'static str, about: &'static str, members: &'static [Self]) -> Self {
        Self { name, kind: Kind::Group { about, members } }
    }

    /// Name, help and arguments.
    #[must_use]
    pub fn definition(&self) -> clap::Command {
        let command = clap::Command::new(self.name);
        match &self.kind {
            Kind::Command { define, .. } => define(command),
            Kind::Group { about, members } => command
                .about(*about)
                .subcommand_required(true)
                .arg_required_else_help(true)
                .subcommands(members.iter().map(Self::definition)),
        }
    }

    /// Takes the command of a group of entries that was given, with its arguments.
    pub fn parse(entries: &[Self], matches: &mut ArgMatches) -> Result<Box<dyn ParsedCommand>, clap::Error> {
        let given = matches.remove_subcommand().and_then(|(name, matches)| {
            entries.iter().find(|entry| entry.name == name).map(|entry| (entry, matches))
        });
        // clap itself refuses what is no subcommand, and none where there has to be one.
        let (entry, mut matches) =
            given.ok_or_else(|| clap::Error::new(clap::error::ErrorKind::InvalidSubcommand))?;
        match &entry.kind {
            Kind::Command { parse, .. } => parse(&mut matches),
            Kind::Group { members, .. } => Self::parse(members, &mut matches),
        }
    }
}

fn parse<C: Command>(matches: &mut ArgMatches) -> Result<Box<dyn ParsedCommand>, clap::Error> {
    Ok(Box::new(C::from_arg_matches_mut(matches)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Say something.
    #[derive(Args)]
    struct Say {
        /// What.
        text: String,
    }

    impl Command for Say {
        const NAME: &'static str = "say";

        fn run(&self, _: &Context<'_>, _: &mut (dyn Write + Send)) -> Result<Answer, Failure> {
            let mut answer = Answer::of(&self.text);
            answer.line(&self.text);
            Ok(answer)
        }
    }

    #[test]
    fn a_command_of_a_group_is_found_and_answers() {
        static ENTRIES: &[CommandEntry] =
            &[CommandEntry::group("speak", "Speak", const { &[CommandEntry::of::<Say>()] })];
        let whole = || clap::Command::new("test").subcommands(ENTRIES.iter().map(CommandEntry::definition));
        let mut matches = whole().try_get_matches_from(["test", "speak", "say", "hello"]).unwrap();
        let command = CommandEntry::parse(ENTRIES, &mut matches).unwrap();
        let answer = command.run(&Context::detached(), &mut Vec::new());
        let answer = answer.unwrap_or_else(|_| unreachable!("it cannot fail"));
        assert_eq!((answer.lines, answer.json.unwrap().as_str()), (vec!["hello".to_owned()], "\"hello\""));
        let help = whole().try_get_matches_from(["test", "speak", "--help"]).unwrap_err().to_string();
        assert!(help.contains("say   Say something\n"), "{help}");
    }
}
