//! The command of a launch file as words.

use std::collections::BTreeMap;
use std::path::Path;

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
    /// Name of the launcher.
    pub launcher: String,
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
                None => break word,
            }
        };
        let options: Vec<String> = words.collect();
        options.iter().any(|word| word == PROGRAM_WORD).then_some(Self { variables, launcher, options })
    }
}

/// A command with its environment variables before it, as one types it.
#[must_use]
pub fn with_variables(variables: &BTreeMap<String, String>, command: &str) -> String {
    let quoted = |value| shlex::try_quote(value).map_or(value.into(), std::borrow::Cow::into_owned);
    let variables = variables.iter().map(|(name, value)| format!("{name}={} ", quoted(value)));
    variables.collect::<String>() + command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_has_variables_a_launcher_and_a_place_for_the_program() {
        let split = |command: &str| CommandWords::split(command, Path::new("/l/f"));
        let words = split("A=1 B='{file} x' srun -n 2 --file={file} {program}").unwrap();
        assert_eq!(words.variables, [("A", "1"), ("B", "/l/f x")].map(|(a, b)| (a.into(), b.into())).into());
        assert_eq!(
            (&*words.launcher, words.options.join(" ")),
            ("srun", "-n 2 --file=/l/f {program}".into())
        );
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
