//! The trait of a command, and the entry of the registry that erases its type.

use std::io::Write;

use clap::{ArgMatches, Args};
use hopmap_model::Context;

use crate::{Answer, Failure};

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
