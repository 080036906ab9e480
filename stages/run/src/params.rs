//! Parameters of `run/trial`.

use std::collections::BTreeMap;

use hopmap_launchers::Launch;
use hopmap_model::{Error, InputPath, OutOfRange};
use hopmap_trials::{Design, FEWEST_PAIRS};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::TrialError;

/// Blocks without `precision`, and most blocks with it, unless the parameters say how many.
const RUNS: u32 = 6;
const RUNS_OF_PRECISE: u32 = 96;
/// Most runs of a mapping.
const MOST_RUNS: u32 = 10_000;

/// Parameters of `run/trial`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TrialParams {
    /// The program and its arguments, such as `./app input.txt`; or several with their ranks, `-n 4 ./a : -n 2 ./b`, with rank files of
    /// Open MPI and with Hydra, or `--multi-prog FILE` with Slurm. `{trial}` is the folder of the run. Split into words as by a
    /// shell, but nothing else: use `sh -c '…'` for a shell.
    pub program: String,
    /// The launcher of the program's MPI, and its launch file.
    #[serde(default)]
    pub launch: Launch,
    /// Replaces the name of the launcher, and may add options: `mpirun.openmpi --oversubscribe`.
    #[serde(default)]
    pub launcher: Option<String>,
    /// Environment variables of the program.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Working directory of the program [default: that of hopmap].
    #[serde(default)]
    pub folder: Option<InputPath>,
    /// Measured runs of each mapping: blocks in which each runs once. From 6 on, differences have an interval [default: 6; with
    /// `precision`, 96 at most].
    #[serde(default)]
    pub runs: Option<u32>,
    /// Measure until half the width of the interval is at most this: 0.01 for ±1 % of the run time. Looks after 6, 12, 24, …
    /// pairs, and all of them share the 5 % in which the interval may be wrong.
    #[serde(default)]
    pub precision: Option<f64>,
    /// With more than two mappings, run all of them in this many blocks first. The best one then goes on against the first
    /// one, and only these runs say what it gains.
    #[serde(default)]
    pub choose: Option<u32>,
    /// Time of the whole trial, in seconds: no block is started that would not fit.
    #[serde(default)]
    pub time_s: Option<f64>,
    /// With `predictions`, run only the first mapping and this many others, those with the shortest predicted run times.
    #[serde(default)]
    pub best: Option<u32>,
    /// Runs of each mapping before the first one that counts.
    #[serde(default = "hopmap_model::number::<1, u32>")]
    pub warm_up: u32,
    /// Shell command before every run, such as `cp -r input.orig input`. It runs in `folder`, and does not count.
    #[serde(default)]
    pub prepare: Option<String>,
    /// A result is kept as long as all parameters stay the same: another number measures again.
    #[serde(default)]
    pub repetition: u32,
    /// A run that takes longer is stopped, in seconds.
    #[serde(default)]
    pub timeout_s: Option<f64>,
    /// Take the run time from the standard output: the time after the last occurrence of this text, such as `12.5` (seconds),
    /// `12 ms`, `1:02:03` or `1m 2.5s`. Without it, the run time is that of the launcher, from its start to its end.
    #[serde(default)]
    pub time_after: Option<String>,
    /// Record every run with `hopmap record`, for the time inside MPI.
    #[serde(default)]
    pub record: bool,
    /// Command that prints how late a network delivered its frames since it ran last, in seconds. For emulated networks.
    #[serde(default)]
    pub lateness: Option<String>,
}

impl TrialParams {
    /// What the trial measures.
    #[must_use]
    pub fn design(&self) -> Design {
        let runs = if self.precision.is_some() { RUNS_OF_PRECISE } else { RUNS };
        Design { blocks: self.runs.unwrap_or(runs), precision: self.precision, choose: self.choose }
    }

    /// Checks the values.
    pub fn check(&self) -> Result<(), Error> {
        let out_of_range = |name, value: String, allowed| Err(OutOfRange::new(name, value, allowed).into());
        words("program", &self.program)?;
        for (name, command) in [("launcher", &self.launcher), ("lateness", &self.lateness)] {
            command.as_deref().map(|command| words(name, command)).transpose()?;
        }
        for (name, count) in [("runs", self.runs), ("choose", self.choose), ("best", self.best)] {
            if let Some(count) = count.filter(|count| *count == 0 || *count > MOST_RUNS) {
                return out_of_range(name, count.to_string(), "1 to 10000");
            }
        }
        if let Some(precision) = self.precision.filter(|precision| !(*precision > 0.0 && *precision < 1.0)) {
            return out_of_range("precision", format!("{precision:?}"), "above 0 and below 1, such as 0.01");
        }
        if self.precision.is_some() && self.design().blocks < FEWEST_PAIRS {
            let runs = self.design().blocks.to_string();
            return out_of_range("runs", runs, "6 to 10000 with `precision`: an interval needs 6 pairs");
        }
        if self.warm_up > MOST_RUNS {
            return out_of_range("warm_up", self.warm_up.to_string(), "0 to 10000");
        }
        for (name, time) in [("timeout_s", self.timeout_s), ("time_s", self.time_s)] {
            if let Some(time) = time.filter(|time| !(*time > 0.0 && *time <= 1e9)) {
                return out_of_range(name, format!("{time:?}"), "above 0 s, such as 60");
            }
        }
        if self.time_after.as_deref().is_some_and(|text| text.trim().is_empty()) {
            return out_of_range(
                "time_after",
                "\"\"".to_owned(),
                "text before the time, such as \"Loop time of\"",
            );
        }
        let is_name = |name: &str| !name.is_empty() && !name.contains(['=', '\0']);
        if let Some(name) = self.env.keys().find(|name| !is_name(name)) {
            return out_of_range("env", format!("{name:?}"), "names of variables, without `=`");
        }
        Ok(())
    }
}

/// The words of a command, split with shell quoting rules; no expansion.
pub(crate) fn words(parameter: &'static str, text: &str) -> Result<Vec<String>, TrialError> {
    let words = shlex::split(text).filter(|words| !words.is_empty() && !text.contains('\0'));
    words.ok_or_else(|| TrialError::Command { parameter, text: text.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_values_are_reported() {
        let message = |text: &str| {
            let params: TrialParams = serde_json::from_str(text).unwrap();
            params.check().map_or_else(|error| error.to_string(), |()| String::new())
        };
        assert_eq!(message(r#"{"program": "./app 'a b'"}"#), "");
        assert_eq!(message(r#"{"program": " "}"#), "`program` is ` `, which is not a command");
        assert_eq!(
            message(r#"{"program": "a", "launcher": "'x"}"#),
            "`launcher` is `'x`, which is not a command"
        );
        assert_eq!(message(r#"{"program": "a", "runs": 0}"#), "`runs` = 0 is out of range");
        assert_eq!(
            message(r#"{"program": "a", "precision": 0.01, "runs": 5}"#),
            "`runs` = 5 is out of range"
        );
        assert_eq!(message(r#"{"program": "a", "precision": 1}"#), "`precision` = 1.0 is out of range");
        assert_eq!(message(r#"{"program": "a", "time_s": -1}"#), "`time_s` = -1.0 is out of range");
        assert_eq!(message(r#"{"program": "a", "timeout_s": 0}"#), "`timeout_s` = 0.0 is out of range");
        assert_eq!(message(r#"{"program": "a", "env": {"A=B": ""}}"#), "`env` = \"A=B\" is out of range");
        assert!(serde_json::from_str::<TrialParams>("{}").is_err());
    }
}
