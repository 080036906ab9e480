//! `launcher`: the command that starts the processes of a stage.

use super::Problem;
use super::file::StageBlock;
use super::matrix::show;
use super::template::Scope;
use crate::registry::{STAGES, StageEntry};

/// The command that starts the processes of a stage, such as `mpirun -n 4`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launcher {
    words: Vec<String>,
}

impl Launcher {
    /// Splits a command into words as a shell does, without doing anything else that shells do. An empty one is none.
    pub fn parse(text: &str) -> Result<Option<Self>, String> {
        let words = shlex::split(text).ok_or_else(|| format!("`{text}` has a quote that is never closed"))?;
        Ok((!words.is_empty()).then_some(Self { words }))
    }

    /// The program.
    #[must_use]
    pub fn program(&self) -> &str {
        &self.words[0]
    }

    /// Its arguments.
    #[must_use]
    pub fn arguments(&self) -> &[String] {
        &self.words[1..]
    }

    /// The command with more arguments, as people type it.
    #[must_use]
    pub fn with(&self, more: &[&str]) -> String {
        let words = self.words.iter().map(String::as_str).chain(more.iter().copied());
        shlex::try_join(words.clone()).unwrap_or_else(|_| words.collect::<Vec<_>>().join(" "))
    }
}

/// The launcher of a cell.
pub(crate) fn launcher(
    block: &StageBlock,
    entry: &StageEntry,
    scope: &Scope<'_>,
    problems: &mut Vec<Problem>,
) -> Option<Launcher> {
    let written = block.launcher.as_ref()?;
    if !entry.distributed {
        let problem = Problem::new(not_distributed(entry), &written.key_span);
        problems.push(problem.label("remove `launcher`").help(distributed_stages()));
        return None;
    }
    let before = problems.len();
    let text = show(&scope.resolve_text(&written.node, written.node.text()?, problems).value);
    if problems.len() > before {
        return None;
    }
    Launcher::parse(&text).unwrap_or_else(|message| {
        problems.push(Problem::new(message, &written.node.span).help(LAUNCHERS));
        None
    })
}

/// What a launcher looks like, for messages.
pub(crate) const LAUNCHERS: &str = "write a command such as \"mpirun -n 4\" or \"srun -n 4\"";

/// Says that a stage takes no launcher.
pub(crate) fn not_distributed(entry: &StageEntry) -> String {
    format!("{} cannot run as several processes", entry.kind)
}

/// The stages that take a launcher, for messages.
pub(crate) fn distributed_stages() -> String {
    let able: Vec<&str> = STAGES.iter().filter(|entry| entry.distributed).map(|entry| entry.kind).collect();
    format!("stages that can: {}", able.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_split_into_words_as_shells_do_it() {
        let launcher = Launcher::parse("mpirun -n 2 --host 'a b'").unwrap().unwrap();
        assert_eq!(launcher.program(), "mpirun");
        assert_eq!(launcher.arguments(), ["-n", "2", "--host", "a b"]);
        assert_eq!(launcher.with(&["x y"]), "mpirun -n 2 --host 'a b' 'x y'");
        assert_eq!(Launcher::parse(" ").unwrap(), None);
        assert!(Launcher::parse("mpirun 'a").is_err());
    }
}
