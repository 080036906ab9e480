//! What people may leave out or write shorter, before clap reads the words of a command line: the pipeline where the folder has only one,
//! `place` for `place.toml`, and `--trace T` for `-p trace=T`.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use clap::{Arg, Command};
use hopmap_launchers::shell_word;
use hopmap_text::closest;

use super::open::{only_pipeline, pipeline_text};
use super::output::wrap;
use crate::pipeline::{EMBEDDED, parameters};
use crate::registry;

/// Positional arguments that name a pipeline, also where they may name something else.
const PIPELINES: [&str; 4] = ["pipeline", "run", "what", "sql"];

/// A command line as clap reads it.
#[derive(Debug, Default)]
pub(super) struct CommandLine {
    pub(super) words: Vec<OsString>,
    /// What was understood, for the user.
    pub(super) notes: Vec<String>,
    /// The parameters of the named pipeline, if help is wanted.
    pub(super) help: Option<String>,
}

/// A parameter of a pipeline or of a stage.
#[derive(Debug, PartialEq)]
pub(super) struct Parameter {
    pub(super) name: String,
    /// Type and default, and what it means.
    form: String,
    meaning: String,
}

/// An option that the command does not have: its place, its name, and its value where that is in the same word.
#[derive(Debug)]
struct Unknown {
    at: usize,
    name: String,
    value: Option<String>,
}

/// The words of a command by what clap will make of them.
#[derive(Debug, Default)]
pub(super) struct Sorted {
    pub(super) positionals: Vec<usize>,
    unknown: Vec<Unknown>,
    is_help: bool,
}

impl CommandLine {
    /// Completes a command line. What cannot be understood stays, and clap says what is wrong.
    pub(super) fn new(words: Vec<OsString>, definition: &Command) -> Self {
        let mut completed = Self { words, ..Self::default() };
        if completed.words.get(1).is_some_and(|word| word == "version") {
            completed.words[1] = "--version".into();
        }
        let Some((command, begin)) = command(&completed.words, definition) else { return completed };
        let names_pipeline = |arg: &&Arg| PIPELINES.contains(&arg.get_id().as_str());
        let is_exec =
            command.get_positionals().any(|arg| arg.get_id() == "kind") && takes_parameters(command);
        if is_exec || command.get_positionals().any(|arg| names_pipeline(&arg)) {
            completed.complete(command, begin);
        }
        completed
    }

    fn complete(&mut self, command: &Command, begin: usize) {
        let mut sorted = sort(&self.words, begin, command);
        self.prefer_files(command, &sorted);
        let Some((place, argument)) = named_with(command) else { return };
        let is_left_out = sorted.positionals.len() == place && !sorted.is_help;
        if is_left_out && argument.get_default_values().first().is_some_and(|default| default.is_empty()) {
            // Where there is none, or several, the command says so.
            if let Ok(only) = only_pipeline(Path::new("")) {
                self.notes.push(format!("the pipeline of this folder: {only}"));
                let at = sorted.positionals.last().map_or(begin, |last| last + 1);
                self.words.insert(at, only.into());
                sorted = sort(&self.words, begin, command);
            }
        }
        let Some(name) = named(&self.words, &sorted, command).filter(|_| takes_parameters(command)) else {
            return;
        };
        let known = parameters_of(&self.words, &sorted, command);
        if sorted.is_help {
            self.help = known.map(|known| help(&name, &known, command));
            return;
        }
        self.set_parameters(&sorted.unknown, known.as_deref(), command);
    }

    /// A pipeline of the folder comes before a bundled one of its name.
    fn prefer_files(&mut self, command: &Command, sorted: &Sorted) {
        for (&at, arg) in sorted.positionals.iter().zip(command.get_positionals()) {
            let Some(name) = self.words[at].to_str().filter(|_| PIPELINES.contains(&arg.get_id().as_str()))
            else {
                continue;
            };
            let file = format!("{name}.toml");
            if is_bundled(name) && !Path::new(name).is_file() && Path::new(&file).is_file() {
                self.notes.push(format!("{name} is {file} of this folder, not the bundled pipeline"));
                self.words[at] = file.into();
            }
        }
    }

    /// Writes options that are parameters as `-p`. Where the parameters are not known, all are: the pipeline says what is wrong.
    fn set_parameters(&mut self, unknown: &[Unknown], known: Option<&[Parameter]>, command: &Command) {
        // From the end, so that the places of the others stay.
        for Unknown { at, name, value } in unknown.iter().rev() {
            let next = self.words.get(at + 1).filter(|word| value.is_none() && !is_long(word)).cloned();
            let has_value = value.is_some() || next.is_some();
            let Some(name) = meant(name, has_value, known, command) else { continue };
            let mut word = OsString::from(&name);
            if let Some(value) = value.as_ref().map(OsString::from).or_else(|| next.clone()) {
                word.push("=");
                word.push(value);
            }
            let end = at + 1 + usize::from(next.is_some());
            self.words.splice(*at..end, [OsString::from("-p"), word]);
        }
    }
}

/// The argument that names a pipeline or a kind of stage, and its place among those that are no options.
fn named_with(command: &Command) -> Option<(usize, &Arg)> {
    let names = |arg: &Arg| ["pipeline", "run", "what", "kind"].contains(&arg.get_id().as_str());
    command.get_positionals().enumerate().find(|(_, arg)| names(arg))
}

/// The pipeline or the kind of stage that the words name, or that is meant without a name.
fn named(words: &[OsString], sorted: &Sorted, command: &Command) -> Option<String> {
    let (place, argument) = named_with(command)?;
    let given = sorted.positionals.get(place).map(|&at| words[at].as_os_str());
    given.or_else(|| Some(argument.get_default_values().first()?.as_os_str()))?.to_str().map(str::to_owned)
}

/// The parameters of the pipeline or the kind of stage that the words name; none if they are not known.
pub(super) fn parameters_of(
    words: &[OsString],
    sorted: &Sorted,
    command: &Command,
) -> Option<Vec<Parameter>> {
    let (_, argument) = named_with(command)?;
    let name = named(words, sorted, command)?;
    if argument.get_id() == "kind" { of_stage(&name) } else { of_pipeline(&name) }
}

fn is_bundled(name: &str) -> bool {
    EMBEDDED.iter().any(|embedded| embedded.name == name)
}

fn is_long(word: &OsStr) -> bool {
    word.as_encoded_bytes().starts_with(b"--")
}

fn takes_parameters(command: &Command) -> bool {
    command.get_arguments().any(|arg| arg.get_long() == Some("param"))
}

/// The parameter that an unknown option means; none if it is rather a misspelled option. With a value, one that is like neither is a
/// parameter, whose error lists those that there are.
fn meant(option: &str, has_value: bool, known: Option<&[Parameter]>, command: &Command) -> Option<String> {
    let Some(known) = known else { return Some(option.to_owned()) };
    let names: Vec<&str> = known.iter().map(|parameter| parameter.name.as_str()).collect();
    let same = |name: &&&str| **name == option || **name == option.replace('-', "_");
    if let Some(name) = names.iter().find(same) {
        return Some((*name).to_owned());
    }
    let all: Vec<&str> = names.iter().copied().chain(longs(command)).collect();
    let is_parameter = closest(option, &all).map_or(has_value, |meant| names.contains(&meant));
    is_parameter.then(|| option.to_owned())
}

/// The long names of all options.
fn longs(command: &Command) -> Vec<&str> {
    command.get_arguments().filter_map(Arg::get_long_and_visible_aliases).flatten().collect()
}

/// The command that the words name, and the place of its first argument.
pub(super) fn command<'a>(words: &[OsString], definition: &'a Command) -> Option<(&'a Command, usize)> {
    let mut found = (definition, 1);
    while let Some(word) = words.get(found.1) {
        match found.0.find_subcommand(word) {
            Some(inner) => found = (inner, found.1 + 1),
            // Options of all commands take no values.
            None if word.as_encoded_bytes().starts_with(b"-") && found.0.has_subcommands() => found.1 += 1,
            None => break,
        }
    }
    (!found.0.has_subcommands()).then_some(found)
}

/// Whether the value of an option is the next word.
pub(super) fn takes_next(arg: &Arg) -> bool {
    arg.get_action().takes_values() && !arg.is_require_equals_set()
}

pub(super) fn sort(words: &[OsString], begin: usize, command: &Command) -> Sorted {
    let mut sorted = Sorted::default();
    let mut at = begin;
    while let Some(word) = words.get(at).filter(|word| *word != "--") {
        let text = word.to_string_lossy();
        let mut width = 1;
        if let Some(long) = text.strip_prefix("--") {
            let (name, value) =
                long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
            let has_name = |arg: &&Arg| {
                arg.get_long() == Some(name) || arg.get_all_aliases().is_some_and(|all| all.contains(&name))
            };
            match command.get_arguments().find(has_name) {
                Some(arg) => width += usize::from(value.is_none() && takes_next(arg)),
                None => {
                    let next = words.get(at + 1).is_some_and(|next| !is_long(next));
                    width += usize::from(value.is_none() && next);
                    sorted.unknown.push(Unknown {
                        at,
                        name: name.to_owned(),
                        value: value.map(str::to_owned),
                    });
                }
            }
            sorted.is_help |= name == "help";
        } else if let Some(shorts) = text.strip_prefix('-').filter(|shorts| !shorts.is_empty()) {
            let short = |letter| command.get_arguments().find(|arg| arg.get_short() == Some(letter));
            let taking = shorts.char_indices().find(|(_, letter)| short(*letter).is_some_and(takes_next));
            width += usize::from(taking.is_some_and(|(at, letter)| at + letter.len_utf8() == shorts.len()));
            sorted.is_help |= shorts == "h";
        } else {
            sorted.positionals.push(at);
        }
        at += width;
    }
    sorted
}

/// The parameters of a pipeline; none if it cannot be read.
pub(super) fn of_pipeline(name: &str) -> Option<Vec<Parameter>> {
    let text = pipeline_text(name)?;
    let file: toml::Table = text.parse().ok()?;
    let given = file.get("params").and_then(toml::Value::as_table);
    let described: Vec<_> = parameters(&text).collect();
    let parameter = |(name, value): (&String, &toml::Value)| {
        let line = described.iter().find(|line| line.name == name);
        Parameter {
            name: name.clone(),
            form: format!("{}, default {}", type_of(value), crate::toml_line::inline(value)),
            meaning: line.map(|line| line.comment.to_owned()).unwrap_or_default(),
        }
    };
    Some(given.into_iter().flatten().map(parameter).collect())
}

fn type_of(value: &toml::Value) -> &'static str {
    match value {
        toml::Value::String(_) | toml::Value::Datetime(_) => "text",
        toml::Value::Integer(_) => "integer",
        toml::Value::Float(_) => "number",
        toml::Value::Boolean(_) => "true or false",
        toml::Value::Array(_) => "list",
        toml::Value::Table(_) => "table",
    }
}

/// The parameters of a kind of stage, whose help is in `hopmap stages`.
fn of_stage(kind: &str) -> Option<Vec<Parameter>> {
    let properties = registry::stage(kind)?.schema["properties"].as_object();
    let names = properties.into_iter().flatten().map(|(name, _)| name.clone());
    Some(names.map(|name| Parameter { name, form: String::new(), meaning: String::new() }).collect())
}

/// What `--help` says of a pipeline that is named with it.
fn help(name: &str, known: &[Parameter], command: &Command) -> String {
    if known.iter().all(|parameter| parameter.form.is_empty()) {
        let stages = format!("hopmap stages {}", shell_word(name));
        return format!("\n`{stages}` describes the parameters of {name}.\n");
    }
    let mut text = format!("\nParameters of {name}:\n");
    for Parameter { name, form, meaning } in known {
        let option = match is_option(name, command) {
            true => format!("-p {name}=VALUE"),
            false => format!("--{}", name.replace('_', "-")),
        };
        text.push_str(&format!("  {option:<16} {form}\n"));
        wrap(meaning, 88)
            .iter()
            .filter(|line| !line.is_empty())
            .for_each(|line| text.push_str(&format!("      {line}\n")));
    }
    text
}

/// Whether a command has an option with the name of a parameter, which is then reachable by `-p` alone.
pub(super) fn is_option(parameter: &str, command: &Command) -> bool {
    longs(command)
        .into_iter()
        .chain(["help", "json", "quiet"])
        .any(|long| long == parameter || long == parameter.replace('_', "-"))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;

    fn completed(line: &str) -> String {
        let mut definition = Cli::command();
        definition.build();
        let words = line.split(' ').map(OsString::from).collect();
        let words = CommandLine::new(words, &definition).words;
        words.iter().map(|word| word.to_str().unwrap()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn options_that_are_parameters_become_parameters() {
        for (line, expected) in [
            ("hopmap run place --trace t", "hopmap run place -p trace=t"),
            (
                "hopmap run --trace=t -j 2 place --hosts-file h",
                "hopmap run -p trace=t -j 2 place -p hosts_file=h",
            ),
            ("hopmap --json plan place -q --slots -1 --all", "hopmap --json plan place -q -p slots=-1 --all"),
            ("hopmap report place --out a.html --shape s", "hopmap report place --out a.html -p shape=s"),
            ("hopmap why --shape s quality place", "hopmap why -p shape=s quality place"),
            ("hopmap export place -o a.zip --trace t", "hopmap export place -o a.zip -p trace=t"),
            ("hopmap topology refresh --hosts a --dry-run", "hopmap topology refresh -p hosts=a --dry-run"),
            ("hopmap exec map/annealing --seed 3 --in a=b", "hopmap exec map/annealing -p seed=3 --in a=b"),
            // The pipeline says what it does not know, and clap what it does not.
            ("hopmap run place --tarce t", "hopmap run place -p tarce=t"),
            ("hopmap run place --deadlin 3s", "hopmap run place --deadlin 3s"),
            ("hopmap run table-1 --efort sample", "hopmap run table-1 -p efort=sample"),
            ("hopmap run place --sede 3", "hopmap run place -p sede=3"),
            ("hopmap run place --frobnicate", "hopmap run place --frobnicate"),
            ("hopmap run place --trace", "hopmap run place -p trace"),
            ("hopmap run place -- --trace t", "hopmap run place -- --trace t"),
            ("hopmap trial a b --trace t", "hopmap trial a b --trace t"),
            ("hopmap version", "hopmap --version"),
        ] {
            assert_eq!(completed(line), expected);
        }
    }

    #[test]
    fn no_option_of_run_has_the_name_of_a_parameter_of_a_bundled_pipeline() {
        let mut definition = Cli::command();
        definition.build();
        let run = definition.find_subcommand("run").unwrap();
        for embedded in EMBEDDED {
            for parameter in of_pipeline(embedded.name).unwrap() {
                assert!(!is_option(&parameter.name, run), "{}: {}", embedded.name, parameter.name);
            }
        }
    }

    #[test]
    fn help_of_a_named_pipeline_has_its_parameters() {
        let mut definition = Cli::command();
        definition.build();
        let words = |line: &str| CommandLine::new(line.split(' ').map(OsString::from).collect(), &definition);
        let help = words("hopmap run place --help").help.unwrap();
        assert!(help.contains("\n  --slots          integer, default 0\n      slots per host"), "{help}");
        assert!(
            words("hopmap report place -h")
                .help
                .unwrap()
                .contains("\n  -p out=VALUE     text, default \"out\"\n")
        );
        assert_eq!(words("hopmap run --help").help, None);
    }
}
