//! `hopmap complete` (hidden, completion scripts call it): values that only hopmap knows, such as pipelines, parameters and cells. Names of
//! commands and options are in the scripts themselves.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;

use clap::{Arg, ArgAction, Args, Command};
use clap_complete::Shell;
use hopmap_command::Exit;
use hopmap_launchers::Launch;

use super::open::{bundled, pipelines_in, working_directory};
use super::output::Output;
use super::trial::KNOWN;
use super::words::{self, Sorted, parameters_of};
use crate::engine::Store;
use crate::registry::STAGES;

/// Cells of a store beyond these are not listed.
const MOST_CELLS: usize = 500;

/// Arguments of `complete`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The words behind `hopmap`; the last one is to be completed.
    #[arg(last = true, allow_hyphen_values = true)]
    words: Vec<OsString>,
}

pub(crate) fn main(arguments: &Arguments, mut definition: Command, output: Output) -> Exit {
    definition.build();
    let words: Vec<OsString> =
        [OsString::from("hopmap")].into_iter().chain(arguments.words.clone()).collect();
    candidates(&words, &definition).iter().for_each(|word| output.line(word));
    Exit::Done
}

/// What the last word may become.
fn candidates(words: &[OsString], definition: &Command) -> Vec<String> {
    let Some((current, before)) = words.split_last() else { return Vec::new() };
    let Some((command, begin)) = words::command(before, definition) else { return Vec::new() };
    let current = current.to_string_lossy();
    let sorted = words::sort(before, begin, command);
    let parameters = || parameters_of(before, &sorted, command).unwrap_or_default();
    let option = before
        .last()
        .filter(|_| before.len() > begin)
        .and_then(|last| awaiting(&last.to_string_lossy(), command));
    let all: Vec<String> = match option.map(|option| option.get_id().as_str()) {
        Some("parameters") => parameters().into_iter().map(|parameter| parameter.name + "=").collect(),
        Some("launch") => launchers(),
        Some("from") => bundled().into_iter().map(str::to_owned).collect(),
        Some(_) => Vec::new(),
        None if current.starts_with("--") => parameters()
            .into_iter()
            .map(|parameter| format!("--{}", parameter.name.replace('_', "-")))
            .collect(),
        None => positional(&sorted, command),
    };
    all.into_iter().filter(|word| word.starts_with(&*current)).collect()
}

/// The option that the next word is the value of.
fn awaiting<'a>(last: &str, command: &'a Command) -> Option<&'a Arg> {
    let has_name = |arg: &&Arg| match last.strip_prefix("--") {
        Some(long) => arg.get_long() == Some(long),
        None => last.starts_with('-') && arg.get_short().is_some_and(|short| last.ends_with(short)),
    };
    command.get_arguments().find(has_name).filter(|arg| words::takes_next(arg))
}

/// Values of the next argument that is no option.
fn positional(sorted: &Sorted, command: &Command) -> Vec<String> {
    let arguments: Vec<&Arg> = command.get_positionals().collect();
    let place = sorted.positionals.len();
    let takes_all = |arg: &&&Arg| matches!(arg.get_action(), ArgAction::Append);
    let next = arguments.iter().take(place + 1).find(takes_all).or(arguments.get(place));
    match next.map(|arg| arg.get_id().as_str()) {
        Some("pipeline" | "run" | "what") => {
            pipelines_in(Path::new("")).into_iter().chain(bundled().into_iter().map(str::to_owned)).collect()
        }
        Some("kind") => STAGES.iter().map(|entry| entry.kind.to_owned()).collect(),
        Some("stage" | "artifact" | "before" | "after") => cells(),
        Some("placements") => KNOWN.into_iter().map(str::to_owned).chain(cells()).collect(),
        _ => Vec::new(),
    }
}

/// The stages of the store of this folder, then their cells.
fn cells() -> Vec<String> {
    let store = working_directory().ok().map(|folder| Store::find(&folder)).filter(|root| root.is_dir());
    let Some(store) = store.and_then(|root| Store::load(&root).ok()) else { return Vec::new() };
    let (mut stages, mut cells) = (BTreeSet::new(), BTreeSet::new());
    for (_, cell, current) in store.all_newest() {
        stages.insert(current.stage.clone());
        cells.insert(cell.to_owned());
    }
    let cells = cells.into_iter().filter(|cell| !stages.contains(cell)).take(MOST_CELLS);
    stages.iter().cloned().chain(cells).collect()
}

/// Names of launchers.
fn launchers() -> Vec<String> {
    let schema = serde_json::to_value(schemars::schema_for!(Launch)).unwrap_or_default();
    let words = |name: &str| schema[name].as_array().cloned().unwrap_or_default();
    let alternatives = words("oneOf").into_iter().chain(words("anyOf"));
    let named = alternatives.filter_map(|one| Some(one["const"].as_str()?.to_owned()));
    words("enum").iter().filter_map(|word| word.as_str().map(str::to_owned)).chain(named).collect()
}

/// A completion script of clap that also asks `hopmap complete`. Its function keeps its name, and calls clap's by another one.
pub(super) fn script(shell: Shell, text: &str) -> String {
    const BASH: &str = r#"
_hopmap() {
    _hopmap_options "$@"
    local found
    mapfile -t found < <(hopmap complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
    [ ${#found[@]} -gt 0 ] || return 0
    case ${COMP_WORDS[COMP_CWORD]} in
        -*) COMPREPLY+=("${found[@]}") ;;
        *) COMPREPLY=("${found[@]}") ;;
    esac
    case ${found[0]} in *=) compopt -o nospace 2>/dev/null ;; esac
    return 0
}
"#;
    const ZSH: &str = r#"
_hopmap() {
    local -a found
    found=(${(f)"$(hopmap complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)"})
    (( $#found )) && compadd -- $found
    _hopmap_options "$@"
}

"#;
    const FISH: &str = "complete -c hopmap -a '(hopmap complete -- (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)'\n";
    let renamed = || text.replacen("_hopmap() {", "_hopmap_options() {", 1);
    match shell {
        Shell::Bash => renamed() + BASH,
        Shell::Zsh => {
            let text = renamed();
            let end = text.rfind("if [ \"$funcstack[1]\"").unwrap_or(text.len());
            text[..end].to_owned() + ZSH.trim_start() + &text[end..]
        }
        Shell::Fish => text.to_owned() + FISH,
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;

    fn completed(line: &str) -> Vec<String> {
        let mut definition = Cli::command();
        definition.build();
        candidates(&line.split(' ').map(OsString::from).collect::<Vec<_>>(), &definition)
    }

    #[test]
    fn pipelines_stages_parameters_and_launchers_are_completed() {
        assert_eq!(completed("hopmap run pla"), ["place", "place-netloc"]);
        assert_eq!(completed("hopmap exec map/ann"), ["map/annealing"]);
        assert_eq!(completed("hopmap init --from gra"), ["graph2sch", "graphhunter"]);
        assert_eq!(completed("hopmap run place -p tr"), ["trace="]);
        assert_eq!(completed("hopmap run -j 2 place --ho"), ["--hosts", "--hosts-file"]);
        assert_eq!(completed("hopmap exec map/annealing -p see"), ["seed="]);
        assert_eq!(
            completed("hopmap tune --launch open-mpi-"),
            ["open-mpi-4", "open-mpi-5", "open-mpi-hosts", "open-mpi-5-hosts"]
        );
        assert_eq!(completed("hopmap trial linear ran"), ["random"]);
        for line in ["hopmap ru", "hopmap run place -j ", "hopmap", "hopmap gc "] {
            assert!(completed(line).is_empty(), "{line}");
        }
    }
}
