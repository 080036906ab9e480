//! The command of a launch file as words.

use std::collections::BTreeMap;
use std::path::Path;

/// The word of a command that starts ranks with `hopmap reorder`.
const HOPMAP_WORD: &str = "hopmap";
/// Placeholder for the launch file.
const FILE_WORD: &str = "{file}";
/// Placeholder for the program and its arguments.
pub const PROGRAM_WORD: &str = "{program}";
/// Placeholder for the command of a launch file that is not known yet.
pub const COMMAND_OF_FILE: &str = "the command of its launch file";

/// A command that starts a program, without a shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandWords {
    /// Environment variables of the launcher.
    pub variables: BTreeMap<String, String>,
    /// Name of the launcher, and its command if it has several.
    pub launcher: Vec<String>,
    /// Its options; [`PROGRAM_WORD`] stands for the program.
    pub options: Vec<String>,
}

impl CommandWords {
    /// Splits the command of a launch file that is at `path`; no expansion. `None` if it starts no program.
    #[must_use]
    pub fn split(command: &str, path: &Path) -> Option<Self> {
        let path = path.to_string_lossy();
        let mut words = shlex::split(command)?.into_iter().map(|word| word.replace(FILE_WORD, &path));
        let mut variables = BTreeMap::new();
        // As in a shell, assignments come first.
        let launcher = loop {
            let word = words.next()?;
            match word.split_once('=') {
                Some((name, value)) => drop(variables.insert(name.to_owned(), value.to_owned())),
                None if word == "flux" => break vec![word, words.next()?],
                None => break vec![word],
            }
        };
        // This hopmap, whatever others `PATH` has.
        let own = std::env::current_exe().map(|own| own.to_string_lossy().into_owned());
        let own = own.unwrap_or_else(|_| HOPMAP_WORD.to_owned());
        let options: Vec<String> =
            words.map(|word| if word == HOPMAP_WORD { own.clone() } else { word }).collect();
        options.iter().any(|word| word == PROGRAM_WORD).then_some(Self { variables, launcher, options })
    }
}

/// A word of a command that is shown, as a shell takes it. A path that begins with a dash gets `./` before it, so that it is not read as an option.
#[must_use]
pub fn shell_word(word: &str) -> String {
    let word = if word.starts_with('-') { format!("./{word}") } else { word.to_owned() };
    quoted(&word)
}

/// Only a NUL cannot be quoted, and no path has one.
fn quoted(word: &str) -> String {
    shlex::try_quote(word).map_or_else(|_| word.to_owned(), std::borrow::Cow::into_owned)
}

/// The command of a launch file as one types it, with `PROGRAM` for the program.
#[must_use]
pub fn start_command(command: &str, file: &str) -> String {
    command.replace(FILE_WORD, &shell_word(file)).replace(PROGRAM_WORD, "PROGRAM")
}

/// A command with its environment variables before it, as one types it.
#[must_use]
pub fn with_variables(variables: &BTreeMap<String, String>, command: &str) -> String {
    let variables = variables.iter().map(|(name, value)| format!("{name}={} ", quoted(value)));
    variables.collect::<String>() + command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_can_be_pasted() {
        for path in [
            "plain/rankfile",
            "with blank",
            "it's",
            "\"quoted\"",
            "Schöne Grüße",
            "$HOME",
            "a;b",
            "a*",
            "-n",
            "~x",
            "!x",
            "",
        ] {
            let command = start_command("F={file} mpirun --hostfile {file} {program}", path);
            let words = shlex::split(&command).unwrap();
            let path = if path.starts_with('-') { format!("./{path}") } else { path.to_owned() };
            assert_eq!(words, [&format!("F={path}"), "mpirun", "--hostfile", &path, "PROGRAM"], "{command}");
        }
    }

    #[test]
    fn a_command_has_variables_a_launcher_and_a_place_for_the_program() {
        let split = |command: &str| CommandWords::split(command, Path::new("/l/f"));
        let words = split("A=1 B='{file} x' srun -n 2 --file={file} {program}").unwrap();
        assert_eq!(words.variables, [("A", "1"), ("B", "/l/f x")].map(|(a, b)| (a.into(), b.into())).into());
        assert_eq!(
            (words.launcher.join(" "), words.options.join(" ")),
            ("srun".to_owned(), "-n 2 --file=/l/f {program}".to_owned())
        );
        let words = split("flux run -n 2 {program}").unwrap();
        assert_eq!((words.launcher.join(" "), &words.options[0][..]), ("flux run".to_owned(), "-n"));
        for wrong in ["", "A=1", "mpirun -n 2", "mpirun ' {program}"] {
            assert_eq!(split(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn variables_of_a_command_are_shown_as_one_types_them() {
        let variables = [("A", "1"), ("B", "x y")].map(|(name, value)| (name.into(), value.into()));
        assert_eq!(with_variables(&variables.into(), "srun ./app"), "A=1 B='x y' srun ./app");
    }
}
