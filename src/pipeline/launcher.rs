//! `launcher`: the command that starts the processes of a stage, or hands it to a batch system.

use hopmap_mpi_environment::LauncherKind;

use super::Problem;
use super::file::StageBlock;
use super::matrix::show;
use super::template::Scope;
use crate::registry::{STAGES, StageEntry};

/// The command that starts the processes of a stage, such as `mpirun -n 4`, or that queues it, such as `sbatch -n 1`.
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

    /// What it starts, where that is known.
    #[must_use]
    pub fn kind(&self) -> Option<LauncherKind> {
        LauncherKind::of(self.program())
    }

    /// Whether it hands a script to a batch system and ends, long before the stage does.
    #[must_use]
    pub fn is_batch(&self) -> bool {
        self.kind() == Some(LauncherKind::Batch)
    }

    /// Whether what it starts takes no memory of this machine.
    #[must_use]
    pub fn is_elsewhere(&self) -> bool {
        self.kind().is_some_and(|kind| kind != LauncherKind::Ranks)
    }

    /// Whether it starts MPI ranks and nothing else.
    fn starts_ranks(&self) -> bool {
        self.words.iter().any(|word| LauncherKind::of(word) == Some(LauncherKind::Ranks))
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

    /// Whether a stage can be started by it.
    pub(crate) fn check(&self, entry: &StageEntry) -> Result<(), String> {
        match entry.distributed || !self.starts_ranks() {
            true => Ok(()),
            false => Err(format!("{} cannot run as several processes", entry.kind)),
        }
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
    let before = problems.len();
    let text = show(&scope.resolve_text(&written.node, written.node.text()?, problems).value);
    if problems.len() > before {
        return None;
    }
    let launcher = Launcher::parse(&text).unwrap_or_else(|message| {
        problems.push(Problem::new(message, &written.node.span).help(LAUNCHERS));
        None
    })?;
    if let Err(message) = launcher.check(entry) {
        problems.push(
            Problem::new(message, &written.key_span)
                .label("this starts MPI ranks")
                .help(distributed_stages()),
        );
        return None;
    }
    Some(launcher)
}

/// What a launcher looks like, for messages.
pub(crate) const LAUNCHERS: &str =
    "write a command such as \"mpirun -n 4\", \"srun -n 4\" or \"sbatch -n 1 --time 10\"";

/// The stages that take any launcher, for messages.
pub(crate) fn distributed_stages() -> String {
    let able: Vec<&str> = STAGES.iter().filter(|entry| entry.distributed).map(|entry| entry.kind).collect();
    format!(
        "stages that can: {}; as one process `srun -n 1` and `sbatch -n 1` start all others",
        able.join(", ")
    )
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

    #[test]
    fn what_starts_ranks_is_only_for_stages_that_can_be_several_processes() {
        let stage = |kind: &str| crate::registry::stage(kind).unwrap();
        let can = |text: &str, kind: &str| Launcher::parse(text).unwrap().unwrap().check(stage(kind)).is_ok();
        for launcher in ["mpirun -n 4", "salloc -N 4 /opt/bin/mpiexec", "sbatch -n 4 mpirun"] {
            assert!(can(launcher, "map/tabu") && !can(launcher, "map/linear"), "{launcher}");
        }
        for launcher in ["srun -n 1", "sbatch -n 1", "ssh node1"] {
            assert!(can(launcher, "map/tabu") && can(launcher, "map/linear"), "{launcher}");
        }
    }

    #[test]
    fn only_sbatch_is_gone_before_the_stage_has_run() {
        let is_batch = |text: &str| Launcher::parse(text).unwrap().unwrap().is_batch();
        assert!(is_batch("sbatch") && is_batch("/usr/bin/sbatch -n 1"));
        assert!(!is_batch("srun -n 1") && !is_batch("salloc sbatch"));
    }
}
