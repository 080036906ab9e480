//! The command that starts a program under a mapping.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use hopmap_launchers::{CommandWords, MULTI_PROG, PROGRAM_WORD, launch_file, programs_of, with_programs};
use hopmap_model::{Context, LaunchFile, Mapping};
use hopmap_process::{Cause, Limits, RunError};

use crate::error::TrialError;
use crate::params::{TrialParams, words};

/// Variable with the folder of the run.
const TRIAL: &str = "HOPMAP_TRIAL";
/// Placeholder for the same in the program's arguments.
const TRIAL_WORD: &str = "{trial}";

/// The command of a launch file: variables, launcher, and its options, before the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaunchCommand {
    variables: BTreeMap<String, String>,
    /// Launcher and options.
    launcher: Vec<String>,
    /// Its options, and the program or programs with their arguments.
    program: Vec<String>,
    folder: Option<PathBuf>,
}

impl LaunchCommand {
    /// The command for a mapping; its launch file is written into a folder.
    pub fn new(
        params: &TrialParams,
        name: &str,
        mapping: &Mapping,
        digest: &str,
        folder: &Path,
    ) -> Result<Self, TrialError> {
        let fault = |source| TrialError::Launch { mapping: name.to_owned(), source };
        let file = launch_file(mapping, digest, params.launch, false).map_err(fault)?;
        let path = folder.join(&file.name);
        std::fs::write(&path, &file.text)
            .map_err(|source| TrialError::File { path: path.clone(), source })?;
        Self::of_file(params, name, &file, &path)
    }

    fn of_file(params: &TrialParams, name: &str, file: &LaunchFile, path: &Path) -> Result<Self, TrialError> {
        let fault = || TrialError::Command { parameter: "launch", text: file.command.clone() };
        let CommandWords { mut variables, launcher: own, options } =
            CommandWords::split(&file.command, path).ok_or_else(fault)?;
        let mut launcher = match &params.launcher {
            Some(launcher) => words("launcher", launcher)?,
            None => own,
        };
        let names = params.env.keys().map(String::as_str).chain([TRIAL]);
        let names: Vec<&str> = names.collect();
        launcher.extend(params.launch.implementation().options_to_hand_on(&names));
        let options = options.into_iter().filter(|word| word != PROGRAM_WORD).collect();
        let program = with_programs(params.launch, options, &words("program", &params.program)?)
            .map_err(|source| TrialError::Launch { mapping: name.to_owned(), source })?;
        variables.extend(params.env.clone());
        let folder = params.folder.as_ref().map(|folder| folder.path().to_owned());
        Ok(Self { variables, launcher, program, folder })
    }

    /// The launcher.
    #[must_use]
    pub fn launcher(&self) -> &str {
        &self.launcher[0]
    }

    /// The command of a run with its folder, below others such as `hopmap record … --`.
    #[must_use]
    pub fn command(&self, trial: &Path, wrapper: &[String]) -> Command {
        let place = trial.to_string_lossy();
        let program = self.program.iter().map(|word| word.replace(TRIAL_WORD, &place));
        let mut words = wrapper.iter().chain(&self.launcher).cloned().chain(program);
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words).envs(&self.variables).env(TRIAL, trial);
        if let Some(folder) = &self.folder {
            command.current_dir(folder);
        }
        command
    }
}

/// Runs the command before a run, in a shell; `{trial}` and the variable are the folder of the run. `false` if it was stopped.
pub(crate) fn prepare(params: &TrialParams, trial: &Path, cx: &Context<'_>) -> Result<bool, TrialError> {
    let Some(text) = &params.prepare else { return Ok(true) };
    let mut command = Command::new("sh");
    let place = trial.to_string_lossy();
    // Only a NUL cannot be quoted, and no path has one.
    command.args(["-c", &text.replace(TRIAL_WORD, &shlex::try_quote(&place).unwrap_or_default())]);
    command.envs(&params.env).env(TRIAL, trial);
    if let Some(folder) = &params.folder {
        command.current_dir(folder.path());
    }
    let time = params.timeout_s.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let limits = Limits { time, stop: &|| cx.should_stop(), ..Limits::default() };
    match hopmap_process::run(&mut command, &limits) {
        Ok(_) => Ok(true),
        Err(RunError { cause: Cause::Stopped, .. }) => Ok(false),
        Err(RunError { cause, stderr, .. }) => {
            let stderr = if stderr.is_empty() { stderr } else { format!(": {stderr}") };
            Err(TrialError::Prepare { command: text.clone(), how: format!("{cause}{stderr}") })
        }
    }
}

/// The files of the program, or of several, as the launcher finds them; that of `--multi-prog`, which lists programs, is one.
pub(crate) fn program_files(params: &TrialParams) -> Result<Vec<PathBuf>, TrialError> {
    let words = words("program", &params.program)?;
    if let [option, list] = &words[..]
        && option == MULTI_PROG
    {
        return Ok(vec![match &params.folder {
            Some(folder) => folder.path().join(list),
            None => PathBuf::from(list),
        }]);
    }
    let first = |program: &[String]| program_file(params, program.first().cloned().unwrap_or_default());
    programs_of(&words).into_iter().map(first).collect()
}

fn program_file(params: &TrialParams, program: String) -> Result<PathBuf, TrialError> {
    let path = match &params.folder {
        Some(folder) if program.contains('/') => folder.path().join(&program),
        _ => PathBuf::from(&program),
    };
    let found = hopmap_process::on_path(&path.to_string_lossy());
    found.ok_or_else(|| {
        let reason = match (program.contains('/'), path.is_file()) {
            (false, _) => "is not on PATH",
            (true, true) => "is not executable",
            (true, false) => "does not exist",
        };
        TrialError::Program { program, reason }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(params: &str, command: &str) -> String {
        let params: TrialParams = serde_json::from_str(params).unwrap();
        let file = LaunchFile { name: "f".into(), text: String::new(), command: command.into() };
        let launch = LaunchCommand::of_file(&params, "m", &file, Path::new("/l/f")).unwrap();
        let command = launch.command(Path::new("/t/3"), &[]);
        let variables = command
            .get_envs()
            .filter_map(|(name, value)| Some(format!("{}={}", name.to_str()?, value?.to_str()?)));
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        let words: Vec<String> =
            variables.chain(words.map(|word| word.to_string_lossy().into_owned())).collect();
        words.join(" ")
    }

    #[test]
    fn the_command_of_the_launch_file_gets_program_options_and_variables() {
        assert_eq!(
            command(r#"{"program": "./app {trial}/log"}"#, "mpirun -n 2 --rankfile {file} {program}"),
            "HOPMAP_TRIAL=/t/3 mpirun -x HOPMAP_TRIAL -n 2 --rankfile /l/f ./app /t/3/log"
        );
        assert_eq!(
            command(
                r#"{"program": "app", "launch": "slurm", "env": {"A": "1"}, "launcher": "/opt/srun -v"}"#,
                "SLURM_HOSTFILE={file} srun -m arbitrary -n 2 {program}"
            ),
            "A=1 HOPMAP_TRIAL=/t/3 SLURM_HOSTFILE=/l/f /opt/srun -v --export=ALL -m arbitrary -n 2 app"
        );
        assert_eq!(
            command(
                r#"{"program": "app", "launch": "mpich", "env": {"A": "1"}}"#,
                "mpiexec.hydra -f {file} -n 2 {program}"
            ),
            "A=1 HOPMAP_TRIAL=/t/3 mpiexec.hydra -f /l/f -n 2 app"
        );
    }

    #[test]
    fn several_programs_replace_the_number_of_ranks() {
        let several = r#"{"program": "-n 2 ./a {trial} : -n 1 ./b"}"#;
        assert_eq!(
            command(several, "mpirun -n 3 --rankfile {file} {program}"),
            "HOPMAP_TRIAL=/t/3 mpirun -x HOPMAP_TRIAL --rankfile /l/f -n 2 ./a /t/3 : -n 1 ./b"
        );
        let params: TrialParams = serde_json::from_str(r#"{"program": "-n 2 sh x : -n 1 ./b"}"#).unwrap();
        let message = program_files(&params).unwrap_err().to_string();
        assert_eq!(message, "the program `./b` does not exist");
    }

    #[test]
    fn the_folder_of_a_run_is_one_word_of_what_prepares_it() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["plain", "it's $(exit) `exit`; exit", "a  b\"\\*"] {
            let trial = folder.path().join(name);
            std::fs::create_dir(&trial).unwrap();
            let params: TrialParams =
                serde_json::from_str(r#"{"program": "app", "prepare": "echo >{trial}/done"}"#).unwrap();
            assert!(prepare(&params, &trial, &Context::detached()).unwrap());
            assert!(trial.join("done").exists(), "{name}");
        }
    }

    #[test]
    fn a_program_that_cannot_be_run_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("data"), "").unwrap();
        let message = |program: &str| {
            let params: TrialParams =
                serde_json::from_value(serde_json::json!({ "program": program, "folder": folder.path() }))
                    .unwrap();
            program_files(&params)
                .map_or_else(|error| error.to_string(), |paths| paths[0].display().to_string())
        };
        assert_eq!(message("./data x"), "the program `./data` is not executable");
        assert_eq!(message("./none"), "the program `./none` does not exist");
        assert_eq!(message("hopmap-none"), "the program `hopmap-none` is not on PATH");
        assert!(message("sh -c x").ends_with("/sh"));
    }
}
