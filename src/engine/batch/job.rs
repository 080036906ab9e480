//! One cell as a job: what is written for it, what it prints, how it stands.

use std::fs;
use std::io::{BufRead, BufReader, Seek, SeekFrom};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use hopmap_durable::DurableError;
use hopmap_model::Context;
use miette::Report;

use super::failure::{End, on};
use super::record::{Record, new_name};
use super::{BatchSystem, JobState, Status, record};
use crate::engine::execute::{CellObserver, Shared, StageLog, log_name, task_inputs};
use crate::engine::launch::{self, Launch, program};
use crate::engine::plan::Task;
use crate::pipeline::{Cell, Launcher};
use crate::ranks::{self, FAULT, Fault, Message};

/// A cell that is to be a job.
pub(crate) struct Order<'a> {
    pub(crate) task: Task,
    pub(crate) cell: &'a Cell,
    pub(crate) launcher: &'a Launcher,
    pub(crate) deadline: Option<Instant>,
}

pub(super) enum Phase {
    /// To be submitted.
    New,
    /// Perhaps submitted: the name is known, the number is not.
    Sought,
    /// In the queue, or through it.
    Queued,
    /// Of an earlier run and of no use: to be gone before another is submitted.
    Leaving,
}

pub(super) struct Job<'a> {
    pub(super) order: Order<'a>,
    pub(super) log: StageLog,
    pub(super) started: Instant,
    /// `jobs/KEY`.
    pub(super) folder: PathBuf,
    pub(super) record: Record,
    pub(super) phase: Phase,
    /// Since when the batch system does not take it, and when it is submitted again.
    pub(super) not_taken: Option<(Instant, Instant)>,
    pub(super) retried: u32,
    pub(super) status: Option<Status>,
    /// How it ended as the batch system has it, and when that was heard.
    pub(super) end: Option<(End, Instant)>,
    /// When its script was seen to have ended.
    pub(super) left: Option<Instant>,
    /// When it has to be asked for what it has, lest the batch system ends it.
    pub(super) last_moment: Option<Instant>,
    /// When it was asked to stop, because the user or the deadline want it.
    pub(super) stopped: Option<Instant>,
    pub(super) is_cancelled: bool,
    /// Bytes of the log that were read.
    pub(super) heard: u64,
}

impl Job<'_> {
    pub(super) fn task(&self) -> PathBuf {
        self.record.task(&self.folder)
    }

    pub(super) fn state(&self, shared: &Shared<'_>) -> Option<PathBuf> {
        (!self.order.task.configured.observes()).then(|| shared.states.join(&self.order.task.key))
    }

    pub(super) fn say(&self, shared: &Shared<'_>, line: &str) {
        use hopmap_model::Observer;
        CellObserver { cell: self.order.cell, log: &self.log, shared }.log(line);
    }

    /// Passes on what the job has printed since last time.
    pub(super) fn hear(&mut self, shared: &Shared<'_>) {
        use hopmap_model::Observer;
        let Ok(mut file) = fs::File::open(&self.record.log) else { return };
        if file.seek(SeekFrom::Start(self.heard)).is_err() {
            return;
        }
        let mut lines = BufReader::new(file);
        let mut line = Vec::new();
        let observer = CellObserver { cell: self.order.cell, log: &self.log, shared };
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
            &folder,
            &cx,
        )?;
        let within = system.command(launcher);
        let program = program(cell.entry.distributed && !within.is_empty())?;
        let program = program.iter().map(|word| word.to_string_lossy().into_owned());
        let command: Vec<String> = within.iter().cloned().chain(program).collect();
        let script = self.record.log.with_extension("sh");
        let title = format!("{}, attempt {}", cell.id, self.record.attempt);
        record::write(&script, &title, &command, &folder)?;
        self.record.write(&self.folder)?;
        Ok(script)
    }

    pub(super) fn forget_attempt(&mut self) {
        (self.status, self.end, self.left, self.last_moment) = (None, None, None, None);
        self.heard = 0;
        self.phase = Phase::New;
    }
}

/// Takes in how a job stands, and says what has changed.
pub(super) fn learn(job: &mut Job<'_>, number: u64, status: Status, now: Instant, shared: &Shared<'_>) {
    let before = job.status.as_ref().map(|before| (before.state, before.reason.as_str()));
    if before != Some((status.state, status.reason.as_str())) {
        match status.state {
            JobState::Pending if status.reason.is_empty() => job.say(shared, &format!("job {number} waits")),
            JobState::Pending => job.say(shared, &format!("job {number} waits: {}", status.reason)),
            JobState::Running if before.is_none_or(|(state, _)| state != JobState::Running) => {
                job.say(shared, &format!("job {number} runs{}", on(&status.nodes)));
            }
            _ => {}
        }
    }
    if status.state == JobState::Pending {
        // One that ran before was queued again, and begins anew.
        (job.left, job.last_moment) = (None, None);
    }
    if let (JobState::Running, Some(left), Some(limit)) = (status.state, status.left, status.limit) {
        let lead = (limit / 10).clamp(Duration::from_secs(5), Duration::from_mins(1));
        if job.last_moment.is_none() && before.is_none_or(|(state, _)| state != JobState::Running) {
            job.last_moment = Some(now + left.saturating_sub(lead));
        }
    }
    if status.state.is_end() {
        job.end = Some((End::As(status.state), now));
    }
    job.status = Some(status);
}

/// The failure of the stage itself, in its own words.
pub(super) fn failed_stage(job: &Job<'_>, end: End, is_one: bool) -> Option<Report> {
    if !matches!(end, End::As(JobState::Failed | JobState::Completed)) {
        return None;
    }
    let fault = ranks::read::<Fault>(&job.task().join(FAULT)).ok()?;
    let (rank, number) = (fault.rank, job.record.job.unwrap_or_default());
    let nodes = job.status.as_ref().map_or("", |status| &status.nodes);
    let launcher = job.order.launcher.with(&[]);
    let of = if is_one { "job".into() } else { format!("rank {rank} of job") };
    Some(Report::new(fault).wrap_err(format!("{of} {number} of `{launcher}`{}", on(nodes))))
}
