//! Slurm: `sbatch`, `squeue`, `scancel`. The only file that knows them.

use std::collections::HashMap;
use std::process::Command;
use std::time::Duration;

use hopmap_process::{Cause, Limits, RunError, run};

use super::{BatchError, BatchSystem, JobState, NewJob, Status};
use crate::pipeline::Launcher;

/// The batch system of `sbatch`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slurm;

/// Options of `sbatch` that take no value, or only one that is tied to them with `=`. Any other takes the next word.
const LONE: &str = "\
    -H --hold -h --help -I --immediate -k --no-kill -O --overcommit -Q --quiet -s --oversubscribe -V \
    --version -v --verbose -W --wait --contiguous --exclusive --get-user-env --ignore-pbs --nice \
    --no-requeue --parsable --propagate --reboot --requeue --spread-job --use-min-nodes";

/// Options that would make `sbatch` do something else than queue one job and say its number.
const OTHER: [&str; 8] = ["-a", "--array", "-h", "--help", "-V", "--version", "--usage", "--test-only"];

/// What commands say when the controller is away, starts again, or takes no more jobs for now.
const SILENCE: [&str; 12] = [
    "Unable to contact slurm controller",
    "connect failure",
    "timed out",
    "Zero Bytes were transmitted",
    "temporarily unable",
    "Resource temporarily unavailable",
    "Connection refused",
    "Communication connection failure",
    "Transport endpoint is not connected",
    "in standby mode",
    "unexpected message",
    "job submit limit",
];

/// Number of words that are options and their values.
fn options(words: &[String]) -> usize {
    let mut count = 0;
    while let Some(word) = words.get(count) {
        if !word.starts_with('-') || word == "-" {
            break;
        }
        let is_whole = word.contains('=') || LONE.split(' ').any(|lone| lone == word);
        // `-N4` is complete too, `-N` is not.
        let is_glued = !word.starts_with("--") && word.chars().count() > 2;
        count += if is_whole || is_glued { 1 } else { 2 };
    }
    count.min(words.len())
}

fn check(options: &[String]) -> Result<(), BatchError> {
    // Jobs of a run are asked for together, in one cluster.
    let is_cluster = |word: &&String| word.starts_with("-M") || word.starts_with("--clusters");
    if let Some(option) = options.iter().find(is_cluster) {
        return Err(BatchError::Refused {
            message: format!(
                "`{option}` names another cluster, and hopmap asks after its jobs in the one it is in"
            ),
            help: "run hopmap where that cluster is the default one".into(),
        });
    }
    let is_other = |word: &&String| OTHER.contains(&word.split('=').next().unwrap_or(word));
    match options.iter().find(is_other) {
        None => Ok(()),
        Some(option) => Err(BatchError::Refused {
            message: format!("`{option}` is not supported: each job is one cell"),
            help: "remove it from `launcher`; every cell of a sweep is a separate job".into(),
        }),
    }
}

/// Time of a command: they try again by themselves while the controller is busy.
const TIME: Duration = Duration::from_mins(5);

/// What a command of Slurm writes.
fn call(command: &mut Command) -> Result<String, RunError> {
    let output = run(command, &Limits { time: Some(TIME), ..Limits::default() })?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// What a command said that failed.
fn complaint(error: &RunError, help: &str) -> BatchError {
    let help = match error.cause {
        Cause::Start(_) => "install it (on Debian `apt-get install slurm-client`) or load its module",
        _ => help,
    };
    let message = match (&error.cause, error.stderr.lines().collect::<Vec<_>>()) {
        (Cause::Failed(_), lines) if !lines.is_empty() => lines.join("; "),
        _ => error.to_string(),
    };
    let is_silent = match error.cause {
        Cause::Start(_) => false,
        Cause::Failed(_) => SILENCE.iter().any(|words| error.stderr.contains(words)),
        // A job may be there all the same.
        _ => true,
    };
    if is_silent { BatchError::Silent(message) } else { BatchError::Refused { message, help: help.into() } }
}

/// Jobs whose numbers fit into one argument of a command.
const ASKED_AT_ONCE: usize = 5000;

fn listed(jobs: &[u64]) -> String {
    jobs.iter().map(u64::to_string).collect::<Vec<_>>().join(",")
}

/// The time left of a job, if Slurm has limited it.
pub(crate) fn time_left_of_job(job: u64) -> Option<Duration> {
    let mut command = Command::new("squeue");
    // Its number as it stands, which for an element of an array is not `%i`.
    command.args(["--noheader", "--format=%L", "--jobs", &job.to_string()]);
    time(call(&mut command).ok()?.lines().next()?.trim())
}

/// The same for jobs that exist although the command failed.
fn silent(error: &RunError) -> BatchError {
    BatchError::Silent(match complaint(error, "") {
        BatchError::Refused { message, .. } | BatchError::Silent(message) => message,
    })
}

/// The states of jobs, with one call.
fn ask(jobs: &[u64]) -> Result<HashMap<u64, Status>, BatchError> {
    let mut command = Command::new("squeue");
    command.args(["--noheader", "--states=all", "--format=%i|%j|%T|%L|%l|%N|%r", "--jobs", &listed(jobs)]);
    match call(&mut command) {
        Ok(text) => Ok(text.lines().filter_map(status).collect()),
        // Slurm's error if it knows none of them any more.
        Err(error) if error.stderr.contains("Invalid job id") => Ok(HashMap::new()),
        Err(error) => Err(silent(&error)),
    }
}

impl BatchSystem for Slurm {
    fn command<'a>(&self, launcher: &'a Launcher) -> &'a [String] {
        &launcher.arguments()[options(launcher.arguments())..]
    }

    fn submit(&self, job: &NewJob<'_>) -> Result<u64, BatchError> {
        let words = job.launcher.arguments();
        let given = &words[..options(words)];
        check(given)?;
        let mut command = Command::new(job.launcher.program());
        // The user's options override those before them, but not those after them.
        command.arg("--no-requeue").arg(format!("--comment={}", job.comment));
        command.args(job.threads.map(|threads| format!("--cpus-per-task={threads}")));
        command.args(job.memory.map(|bytes| format!("--mem={}K", bytes.div_ceil(1024))));
        // A job that is waited for here would keep all others waiting, and a quiet sbatch prints no number.
        command.args(given.iter().filter(|word| !["-W", "--wait", "-Q", "--quiet"].contains(&word.as_str())));
        command.args(["--parsable", "--open-mode=append"]);
        command.arg(format!("--job-name={}", job.name)).arg("--output").arg(job.log);
        command.arg("--error").arg(job.log).arg(job.script);
        let help = "`launcher` has the options of sbatch; `sinfo` shows the partitions and their limits";
        let said = call(&mut command).map_err(|error| complaint(&error, help))?;
        // NUMBER, or NUMBER;CLUSTER.
        let number = said.lines().last().and_then(|line| line.trim().split(';').next()?.parse().ok());
        // What has no number is looked for by its name.
        number.ok_or_else(|| {
            BatchError::Silent(format!("expected a job number from sbatch, found `{}`", said.trim()))
        })
    }

    fn ask(&self, jobs: &[u64]) -> Result<HashMap<u64, Status>, BatchError> {
        let mut found = HashMap::new();
        for jobs in jobs.chunks(ASKED_AT_ONCE) {
            found.extend(ask(jobs)?);
        }
        Ok(found)
    }

    fn find(&self, name: &str) -> Result<Option<u64>, BatchError> {
        let mut command = Command::new("squeue");
        command.args(["--noheader", "--states=all", "--format=%i", "--name", name]);
        let said = call(&mut command).map_err(|error| silent(&error))?;
        Ok(said.lines().find_map(|line| line.trim().parse().ok()))
    }

    fn cancel(&self, job: u64, name: &str) -> Result<(), BatchError> {
        let mut command = Command::new("scancel");
        match call(command.args(["--quiet", "--name", name, &job.to_string()])) {
            Ok(_) => Ok(()),
            Err(error) => match complaint(&error, "") {
                // It is over already.
                BatchError::Refused { .. } if matches!(error.cause, Cause::Failed(_)) => Ok(()),
                _ => Err(silent(&error)),
            },
        }
    }
}

/// A line of `squeue`: number, name, state, time left, time in all, nodes, reason.
fn status(line: &str) -> Option<(u64, Status)> {
    let mut fields = line.splitn(7, '|').map(str::trim);
    let job = fields.next()?.parse().ok()?;
    let name = fields.next()?.to_owned();
    let state = state(fields.next()?);
    let (left, limit) = (fields.next().and_then(time), fields.next().and_then(time));
    let nodes = fields.next().filter(|nodes| *nodes != "(null)").unwrap_or_default().to_owned();
    let reason = fields.next().filter(|reason| *reason != "None").unwrap_or_default().to_owned();
    Some((job, Status { name, state, reason, nodes, left, limit }))
}

fn state(word: &str) -> JobState {
    match word {
        "COMPLETED" => JobState::Completed,
        "FAILED" => JobState::Failed,
        "TIMEOUT" | "DEADLINE" => JobState::OutOfTime,
        "OUT_OF_MEMORY" => JobState::OutOfMemory,
        "NODE_FAIL" | "BOOT_FAIL" => JobState::NodeFailed,
        "PREEMPTED" => JobState::Preempted,
        "CANCELLED" | "REVOKED" => JobState::Cancelled,
        "PENDING" | "CONFIGURING" | "REQUEUED" | "REQUEUE_FED" | "REQUEUE_HOLD" | "SPECIAL_EXIT" => {
            JobState::Pending
        }
        // RUNNING, COMPLETING, SUSPENDED and whatever comes: it is there.
        _ => JobState::Running,
    }
}

/// A time such as `1-02:03:04`, `2:03:04` or `0:30`; `UNLIMITED`, `INVALID` and `NOT_SET` are none.
fn time(text: &str) -> Option<Duration> {
    let (days, clock) = match text.split_once('-') {
        Some((days, clock)) => (days.parse::<u64>().ok()?, clock),
        None => (0, text),
    };
    let seconds = clock.split(':').try_fold(0_u64, |sum, part| Some(sum * 60 + part.parse::<u64>().ok()?))?;
    Some(Duration::from_secs(days * 86_400 + seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> (Vec<String>, Vec<String>) {
        let launcher = Launcher::parse(text).unwrap().unwrap();
        let command = Slurm.command(&launcher).to_vec();
        let count = launcher.arguments().len() - command.len();
        (launcher.arguments()[..count].to_vec(), command)
    }

    #[test]
    fn what_follows_the_options_is_the_command_within_the_job() {
        for (text, count, command) in [
            ("sbatch", 0, ""),
            ("sbatch -N 1 -n 1 --time 10", 6, ""),
            ("sbatch -N4 --time=1-0 mpirun -n 4", 2, "mpirun -n 4"),
            ("sbatch --exclusive -p long mpirun", 3, "mpirun"),
            ("sbatch --requeue --mem 4G srun --mpi=pmix", 3, "srun --mpi=pmix"),
            ("sbatch --time", 1, ""),
        ] {
            let (options, rest) = split(text);
            assert_eq!((options.len(), rest.join(" ").as_str()), (count, command), "{text}");
        }
    }

    #[test]
    fn job_arrays_are_refused() {
        for text in ["--array=1-4", "-a", "--test-only"] {
            assert!(check(&[text.to_owned()]).is_err(), "{text}");
        }
        assert!(check(&["--time=1".to_owned()]).is_ok());
    }

    #[test]
    fn lines_of_squeue_are_understood() {
        let (job, found) = status("17|hopmap-a|RUNNING|9:58|10:00|n2|None").unwrap();
        let expected = Status {
            name: "hopmap-a".into(),
            state: JobState::Running,
            reason: String::new(),
            nodes: "n2".into(),
            left: Some(Duration::from_secs(598)),
            limit: Some(Duration::from_mins(10)),
        };
        assert_eq!((job, found), (17, expected));
        let (_, found) = status("3|x|PENDING|NOT_SET|UNLIMITED||(Resources)").unwrap();
        assert_eq!(
            (found.state, found.left, found.reason.as_str()),
            (JobState::Pending, None, "(Resources)")
        );
        assert_eq!(status("slurm_load_jobs error"), None);
    }

    #[test]
    fn times_have_days_or_not() {
        let seconds = |text: &str| time(text).map(|time| time.as_secs());
        assert_eq!(
            ["0:30", "1:00", "2:03:04", "1-02:03:04", "UNLIMITED", "INVALID", ""].map(seconds),
            [Some(30), Some(60), Some(7384), Some(93_784), None, None, None]
        );
    }
}
