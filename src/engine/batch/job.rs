//! One cell as a job: what is written for it, what it prints, its state.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use hopmap_durable::DurableError;
use hopmap_model::{Context, Observer};
use miette::{Diagnostic, Report};

use super::{BatchSystem, JobState, Record, Status, new_name};
use crate::engine::batch;
use crate::engine::execute::{CellObserver, Shared, StageLog, log_name, task_inputs};
use crate::engine::launch::{self, Launch, program};
use crate::engine::plan::Task;
use crate::pipeline::{Cell, Launcher};
use crate::ranks::{self, FAULT, Fault, Message, times};

/// A cell that is to be a job.
pub(crate) struct Order<'a> {
    pub(crate) task: Task,
    pub(crate) cell: &'a Cell,
    pub(crate) launcher: &'a Launcher,
    pub(crate) deadline: Option<Instant>,
}

/// Since when the batch system does not take a job, and when it is submitted again.
pub(super) type NotTaken = Option<(Instant, Instant)>;

/// How far a job is.
pub(super) enum Phase {
    /// To be submitted.
    New(NotTaken),
    /// Perhaps submitted: the name is known, the number is not.
    Sought(NotTaken),
    /// In the queue, or through it.
    Queued(Queued),
    /// Of an earlier run and of no use: to be gone before another is submitted.
    Leaving,
}

/// What is known of a job that is in the queue, or through it.
#[derive(Default)]
pub(super) struct Queued {
    pub(super) status: Option<Status>,
    /// How it ended as the batch system has it, and when that was heard.
    pub(super) end: Option<(JobEnd, Instant)>,
    /// When its script was seen to have ended.
    pub(super) left: Option<Instant>,
    /// When it has to be asked for what it has, lest the batch system ends it.
    pub(super) last_moment: Option<Instant>,
    /// When it was asked to stop, because the user or the deadline want it.
    pub(super) stopped: Option<Instant>,
    pub(super) is_cancelled: bool,
    /// Bytes of the log that were read.
    heard: u64,
}

pub(super) struct Job<'a> {
    pub(super) order: Order<'a>,
    pub(super) log: StageLog,
    pub(super) started: Instant,
    /// `jobs/KEY`.
    pub(super) folder: PathBuf,
    pub(super) record: Record,
    pub(super) retried: u32,
}

impl Job<'_> {
    pub(super) fn task(&self) -> PathBuf {
        self.record.task(&self.folder)
    }

    pub(super) fn state(&self, shared: &Shared<'_>) -> Option<PathBuf> {
        (!self.order.task.configured.observes()).then(|| shared.states.join(&self.order.task.key))
    }

    fn observer<'a>(&'a self, shared: &'a Shared<'_>) -> CellObserver<'a> {
        CellObserver { cell: self.order.cell, log: &self.log, shared }
    }

    pub(super) fn say(&self, shared: &Shared<'_>, line: &str) {
        self.observer(shared).log(line);
    }

    /// Writes the task, the script and the record of a new attempt.
    pub(super) fn prepare(
        &mut self,
        system: &dyn BatchSystem,
        shared: &Shared<'_>,
    ) -> Result<PathBuf, Report> {
        let Order { task, cell, launcher, deadline } = &self.order;
        // Of an attempt before this one nothing may be left that could take part.
        let _ = fs::remove_dir_all(self.record.task(&self.folder));
        self.record.attempt += 1;
        self.record.name = new_name(&task.key);
        self.record.job = None;
        let jobs = shared.logs.with_file_name("jobs");
        fs::create_dir_all(&jobs).map_err(DurableError::io("create", &jobs))?;
        let name = log_name(&cell.id);
        let name = name.trim_end_matches(".log");
        self.record.log = jobs.join(format!("{name}.{}.log", self.record.attempt));
        let folder = self.task();
        fs::create_dir_all(&folder).map_err(DurableError::io("create", &folder))?;
        let state = self.state(shared);
        let observer = CellObserver { cell, log: &self.log, shared };
        let cx = Context::new(1, *deadline, &observer);
        let cx = state.as_deref().map_or(cx, |state| cx.with_state(state));
        let threads = cell.threads.unwrap_or(1);
        let inputs = task_inputs(task, shared);
        let within = system.command(launcher);
        // A stage that directs ranks starts them itself, in the job.
        let (within, own) = if cell.entry.directs_ranks { (&[][..], within) } else { (within, &[][..]) };
        launch::prepare(
            &Launch {
                launcher,
                entry: cell.entry,
                configured: &*task.configured,
                inputs,
                files: &task.files,
                threads,
                retries: 0,
            },
            own,
            &folder,
            &cx,
        )?;
        let program = program(cell.entry, !within.is_empty())?;
        let program = program.iter().map(|word| word.to_string_lossy().into_owned());
        let command: Vec<String> = within.iter().cloned().chain(program).collect();
        let script = self.record.log.with_extension("sh");
        let title = format!("{}, attempt {}", cell.id, self.record.attempt);
        batch::write(&script, &title, &command, &folder)?;
        self.record.write(&self.folder)?;
        Ok(script)
    }
}

impl Queued {
    /// Passes on what the job has printed since last time.
    pub(super) fn hear(&mut self, job: &Job<'_>, shared: &Shared<'_>) {
        let Ok(mut file) = File::open(&job.record.log) else { return };
        if file.seek(SeekFrom::Start(self.heard)).is_err() {
            return;
        }
        let mut lines = BufReader::new(file);
        let mut line = Vec::new();
        let observer = job.observer(shared);
        // Half a line is heard when the rest of it is there.
        while lines.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) && line.ends_with(b"\n") {
            self.heard += line.len() as u64;
            match Message::parse(String::from_utf8_lossy(&line).trim_end()) {
                Some(Message::Progress(done, total)) => observer.progress(done, total),
                Some(Message::Log(line)) => observer.log(&line),
                // What others print stays in the log of the job.
                None => {}
            }
            line.clear();
        }
    }

    /// Takes in the state of the job, and logs changes.
    pub(super) fn learn(
        &mut self,
        job: &Job<'_>,
        number: u64,
        status: Status,
        now: Instant,
        shared: &Shared<'_>,
    ) {
        let before = self.status.as_ref().map(|before| (before.state, before.reason.as_str()));
        let ran = before.is_some_and(|(state, _)| state == JobState::Running);
        if before != Some((status.state, status.reason.as_str())) {
            match status.state {
                JobState::Pending if status.reason.is_empty() => {
                    job.say(shared, &format!("job {number} waits"));
                }
                JobState::Pending => job.say(shared, &format!("job {number} waits: {}", status.reason)),
                JobState::Running if !ran => {
                    job.say(shared, &format!("job {number} runs{}", on(&status.nodes)));
                }
                _ => {}
            }
        }
        if status.state == JobState::Pending {
            // One that ran before was queued again, and begins anew.
            (self.left, self.last_moment) = (None, None);
        }
        if let (JobState::Running, Some(left), Some(limit)) = (status.state, status.left, status.limit) {
            let lead = (limit / 10).clamp(Duration::from_secs(5), Duration::from_mins(1));
            if self.last_moment.is_none() && !ran {
                self.last_moment = Some(now + left.saturating_sub(lead));
            }
        }
        if status.state.is_end() {
            self.end = Some((JobEnd::As(status.state), now));
        }
        self.status = Some(status);
    }

    fn nodes(&self) -> &str {
        self.status.as_ref().map_or("", |status| &status.nodes)
    }
}

/// The failure of the stage itself, in its own words.
pub(super) fn failed_stage(job: &Job<'_>, queued: &Queued, end: JobEnd, is_one: bool) -> Option<Report> {
    if !matches!(end, JobEnd::As(JobState::Failed | JobState::Completed)) {
        return None;
    }
    let fault = ranks::read::<Fault>(&job.task().join(FAULT)).ok()?;
    let (rank, number) = (fault.rank, job.record.job.unwrap_or_default());
    let launcher = job.order.launcher.with(&[]);
    let of = if is_one { "job".into() } else { format!("rank {rank} of job") };
    Some(Report::new(fault).wrap_err(format!("{of} {number} of `{launcher}`{}", on(queued.nodes()))))
}

/// Lines of the log that a message shows.
const LAST_LINES: usize = 12;
/// Bytes in which they are looked for.
const LAST_BYTES: u64 = 16 << 10;

/// How a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JobEnd {
    /// As the batch system has it.
    As(JobState),
    /// The batch system knows it no more, and it left nothing.
    Forgotten,
}

impl JobEnd {
    /// What happened, behind the name of the job.
    pub(super) fn in_words(self, limit: &str, status: Option<i32>) -> String {
        match self {
            Self::As(JobState::NodeFailed) => "was lost: its node failed".into(),
            Self::As(JobState::Preempted) => "was preempted".into(),
            Self::As(JobState::OutOfTime) => format!("reached its time limit{limit}"),
            Self::As(JobState::OutOfMemory) => "ran out of memory".into(),
            Self::As(JobState::Cancelled) => "was cancelled".into(),
            Self::As(JobState::Completed) => "ended without a result".into(),
            Self::As(_) => match status {
                Some(status) => format!("ended without a result: exit status {status}"),
                None => "failed".into(),
            },
            Self::Forgotten => "is unknown to the batch system and left no result".into(),
        }
    }

    /// Whether the cause lies outside the stage and another attempt may go better.
    pub(super) fn is_outside(self) -> bool {
        matches!(self, Self::As(JobState::NodeFailed | JobState::Preempted) | Self::Forgotten)
    }

    fn hint(self, is_saved: bool, status: Option<i32>, retries: u32) -> String {
        let hint = match self {
            Self::As(JobState::NodeFailed | JobState::Preempted) | Self::Forgotten => {
                return format!(
                    "it was submitted {}; run again, or raise `retries` of the stage in its pipeline",
                    times(retries + 1)
                );
            }
            Self::As(JobState::OutOfTime) => "raise it with --time in `launcher`",
            Self::As(JobState::OutOfMemory) => "raise it with `memory` of the stage or --mem in `launcher`",
            Self::As(JobState::Cancelled) => {
                "it was cancelled with scancel or by the batch system; run again"
            }
            Self::As(_) if matches!(status, Some(126 | 127)) => {
                "its nodes need hopmap, and the program of `launcher`, at the same path as on this host"
            }
            Self::As(_) => "its script is next to its log and can be submitted by hand",
        };
        match is_saved {
            true => format!("{hint}; the state of the search is saved, and the next run resumes it"),
            false => hint.to_owned(),
        }
    }
}

/// A job that gave no result.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("job {job} of `{launcher}`{place} {what}{lines}\nlog: {log}")]
#[diagnostic(code(engine::job_failure))]
pub(super) struct JobFailure {
    job: u64,
    launcher: String,
    place: String,
    what: String,
    lines: String,
    log: String,
    #[help]
    help: String,
}

impl JobFailure {
    pub(super) fn new(
        job: &Job<'_>,
        queued: &Queued,
        end: JobEnd,
        status: Option<i32>,
        is_saved: bool,
    ) -> Self {
        let (reason, limit) =
            queued.status.as_ref().map_or(("", None), |status| (status.reason.as_str(), status.limit));
        let limit = limit.map(|limit| format!(" of {}", humantime::format_duration(limit)));
        let mut what = end.in_words(&limit.unwrap_or_default(), status);
        // Most reasons only say the state in one word.
        let says_more = !["", "NonZeroExitCode", "TimeLimit", "NodeDown", "OutOfMemory"].contains(&reason);
        if says_more && matches!(end, JobEnd::As(_)) {
            what.push_str(&format!(" ({reason})"));
        }
        let log = &job.record.log;
        Self {
            job: job.record.job.unwrap_or_default(),
            launcher: job.order.launcher.with(&[]),
            place: on(queued.nodes()),
            what,
            lines: last_lines(log).iter().flat_map(|line| ["\n  ", line]).collect(),
            log: log.display().to_string(),
            help: end.hint(is_saved, status, job.retried),
        }
    }
}

/// Where a job is, behind its name.
pub(super) fn on(nodes: &str) -> String {
    if nodes.is_empty() { String::new() } else { format!(" on {nodes}") }
}

/// What a job printed last, without what is meant for us.
fn last_lines(log: &Path) -> Vec<String> {
    let read = || {
        let mut file = File::open(log)?;
        let begin = file.metadata()?.len().saturating_sub(LAST_BYTES);
        file.seek(SeekFrom::Start(begin))?;
        let mut bytes = Vec::new();
        file.take(LAST_BYTES).read_to_end(&mut bytes)?;
        Ok::<_, std::io::Error>(String::from_utf8_lossy(&bytes).into_owned())
    };
    let text = read().unwrap_or_default();
    let lines: Vec<&str> =
        text.lines().filter(|line| Message::parse(line).is_none() && !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(LAST_LINES)..].iter().map(|line| line.trim_end().to_owned()).collect()
}
