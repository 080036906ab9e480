//! Commands as library functions: arguments, work and answer of a subcommand of `hopmap`, without printing.
//!
//! [`Command`] is for the command line what `Stage` is for pipelines: crates implement it, and the registry
//! lists each implementation as a [`CommandEntry`].

use std::fmt::Display;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{ArgMatches, Args};
use hopmap_model::Context;
use miette::{Diagnostic, Report};
use serde::Serialize;

/// A path for display: relative to the working directory if inside it; `.` is the working directory.
#[must_use]
pub fn shown(path: &Path) -> String {
    let clean: PathBuf = path.components().collect();
    let clean = std::fs::canonicalize(&clean).unwrap_or(clean);
    let here = std::env::current_dir().and_then(std::fs::canonicalize).unwrap_or_default();
    let seen = clean.strip_prefix(here).unwrap_or(&clean);
    if seen.as_os_str().is_empty() { ".".to_owned() } else { seen.display().to_string() }
}

/// The lock holder, as shown to other processes that find the lock taken.
#[must_use]
pub fn holder(command: &str) -> String {
    format!("process {} on {}: hopmap {command}", std::process::id(), hopmap_mpi_environment::host_name())
}

/// Default number of threads of a command.
#[must_use]
pub fn all_cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// A time such as `10m`, `1h 30m` or `90`, a number of seconds.
pub fn duration(text: &str) -> Result<Duration, String> {
    match text.parse::<u32>() {
        Ok(seconds) => Ok(Duration::from_secs(u64::from(seconds))),
        Err(_) => humantime::parse_duration(text)
            .map_err(|error| format!("{error}; write for example 90s, 10m or 2h")),
    }
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
    /// A gate failed, or `--exit-code` found a difference.
    Different,
    /// The store is locked by another run.
    Locked,
    /// Interrupted by the user.
    Interrupted,
    /// The exit status of the program that the command has run.
    Program(u8),
}

impl Exit {
    /// The exit statuses of hopmap itself, by ascending code.
    pub const ALL: [Self; 6] =
        [Self::Done, Self::Failed, Self::Usage, Self::Different, Self::Locked, Self::Interrupted];

    /// Its meaning, for the reference pages.
    #[must_use]
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Done => "The command succeeded.",
            Self::Failed => "A stage failed, a problem is infeasible, or data is damaged.",
            Self::Usage => {
                "The command line or pipeline file is wrong, or differs from the lock file. Nothing ran."
            }
            Self::Different => {
                "A check failed: gate, lock file, baseline, archive, or a comparison with `--exit-code`."
            }
            Self::Locked => "Another process has locked the store. Try again later, or pass `--wait`.",
            Self::Interrupted => "Ctrl-C or a signal interrupted the command.",
            Self::Program(_) => "The program that the command has run ended with this status.",
        }
    }

    /// The process exit code.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Different => 3,
            Self::Locked => 75,
            Self::Interrupted => 130,
            Self::Program(status) => status,
        }
    }

    /// The exit status of a code.
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

/// The result of a command: lines of text, the same as JSON, and the exit status.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    /// How the command ended.
    pub exit: Exit,
    /// Text output.
    pub lines: Vec<String>,
    /// JSON output; keys keep the order of the fields.
    pub json: Option<String>,
}

impl Default for Answer {
    fn default() -> Self {
        Self { exit: Exit::Done, lines: Vec::new(), json: None }
    }
}

impl Answer {
    /// An answer with `value` as JSON and `lines` as text.
    #[must_use]
    pub fn of(value: &impl Serialize) -> Self {
        // Values are plain data with text keys, which always have a JSON form.
        Self { json: Some(serde_json::to_string_pretty(value).unwrap_or_default()), ..Self::default() }
    }

    /// Appends a line.
    pub fn line(&mut self, line: impl Display) {
        self.lines.push(line.to_string());
    }

    /// Sets the exit status.
    #[must_use]
    pub fn ending(self, exit: Exit) -> Self {
        Self { exit, ..self }
    }
}

/// Why a command failed.
#[derive(Debug)]
pub struct Failure {
    /// The exit status.
    pub exit: Exit,
    /// The errors: one, or all mistakes of a file.
    pub reports: Vec<Report>,
    /// A partial answer from before the failure.
    pub answer: Answer,
}

impl Failure {
    /// Fails with an exit status and these errors.
    pub fn new(exit: Exit, reports: impl IntoIterator<Item = Report>) -> Self {
        Self { exit, reports: reports.into_iter().collect(), answer: Answer::default() }
    }

    /// Fails with [`Exit::Failed`].
    pub fn failed(error: impl Into<Report>) -> Self {
        Self::new(Exit::Failed, [error.into()])
    }

    /// Fails with [`Exit::Usage`].
    pub fn usage(error: impl Into<Report>) -> Self {
        Self::new(Exit::Usage, [error.into()])
    }

    /// Adds a partial answer.
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

/// A mistake in the command line, with a hint.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("{message}")]
#[diagnostic(code(command::mistake))]
pub struct Mistake {
    message: String,
    #[help]
    help: Option<String>,
}

impl Mistake {
    /// A mistake, and a hint on how to fix it.
    pub fn new(message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { message: message.into(), help: Some(help.into()) }
    }
}

/// Rejects a command line with a mistake and a hint.
pub fn refuse<T>(message: impl Into<String>, help: impl Into<String>) -> Result<T, Failure> {
    Err(Mistake::new(message, help).into())
}

impl From<Mistake> for Failure {
    fn from(mistake: Mistake) -> Self {
        Self::usage(mistake)
    }
}

/// A subcommand of `hopmap`. The doc comment of the type is its line in the help, its fields are the
/// arguments.
pub trait Command: Args + Send + Sync + 'static {
    /// The name of the subcommand.
    const NAME: &'static str;

    /// Whether the command polls [`Context::should_stop`]. A first Ctrl-C then asks it to stop; any other
    /// command is ended at once.
    const IS_STOPPABLE: bool = true;

    /// The size of the thread pool for the command; none by default.
    fn threads(&self) -> Option<usize> {
        None
    }

    /// Does the work. Progress and warnings go to the context. Streamed bytes, such as a file restored to
    /// standard output, go to `out`.
    fn run(&self, cx: &Context<'_>, out: &mut (dyn Write + Send)) -> Result<Answer, Failure>;
}

/// A command with its parsed arguments, type-erased.
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

/// A command, or a group of commands, type-erased.
pub struct CommandEntry {
    /// The name of the subcommand.
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

    /// The entry of a group of commands, such as `hopmap checkpoint …`.
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

    /// Parses the selected command of a group.
    pub fn parse(entries: &[Self], matches: &mut ArgMatches) -> Result<Box<dyn ParsedCommand>, clap::Error> {
        let given = matches.remove_subcommand().and_then(|(name, matches)| {
            entries.iter().find(|entry| entry.name == name).map(|entry| (entry, matches))
        });
        // clap rejects unknown and missing subcommands.
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
        /// The text.
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
    fn times_have_units_or_are_seconds() {
        let seconds = |text: &str| duration(text).map(|time| time.as_secs());
        for (text, expected) in [("90", 90), ("0", 0), ("90s", 90), ("10m", 600), ("1h 30m", 5400)] {
            assert_eq!(seconds(text), Ok(expected), "{text}");
        }
        assert!(seconds("soon").is_err_and(|message| message.ends_with("write for example 90s, 10m or 2h")));
    }

    #[test]
    fn a_command_of_a_group_is_found_and_answers() {
        static ENTRIES: &[CommandEntry] =
            &[CommandEntry::group("speak", "Speak", const { &[CommandEntry::of::<Say>()] })];
        let definition =
            || clap::Command::new("test").subcommands(ENTRIES.iter().map(CommandEntry::definition));
        let mut matches = definition().try_get_matches_from(["test", "speak", "say", "hello"]).unwrap();
        let command = CommandEntry::parse(ENTRIES, &mut matches).unwrap();
        let answer = command.run(&Context::detached(), &mut Vec::new());
        let answer = answer.unwrap_or_else(|_| unreachable!("this command does not fail"));
        assert_eq!((answer.lines, answer.json.unwrap().as_str()), (vec!["hello".to_owned()], "\"hello\""));
        let help = definition().try_get_matches_from(["test", "speak", "--help"]).unwrap_err().to_string();
        assert!(help.contains("say   Say something\n"), "{help}");
    }
}
