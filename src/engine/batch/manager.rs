//! All jobs of a run, watched by one thread: submitted, asked for together, stopped, tried again, their results taken over.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use hopmap_durable::crash_point;
use miette::Report;

use super::job::{Job, JobEnd, JobFailure, NotTaken, Order, Phase, Queued, failed_stage};
use super::{BatchError, BatchSystem, JobState, NewJob, Record, Unfinished, leave};
use crate::engine::execute::{Finished, Shared, StageLog, StageResult, take_over};
use crate::engine::{batch, launch};
use crate::pipeline::{Cell, Launcher};
use crate::ranks::{self, DONE, Done, FAULT, OUT};
use crate::registry::StageEntry;

/// Shortest and longest time between two looks at the files of the jobs.
const LOOKS: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));
/// Shortest and longest time between two questions to the batch system; each takes a third longer than the one before.
const QUESTIONS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));
/// Time that a stage has to deliver what it has once it was asked to.
const GRACE: Duration = Duration::from_secs(30);
/// Time after which a job that the batch system has ended leaves nothing more, also on a network file system; longer if it ended well.
const SETTLED: (Duration, Duration) = (Duration::from_secs(3), Duration::from_mins(1));

/// Watches jobs until no more come.
pub(crate) fn serve<'a: 's, 's>(
    system: &'s dyn BatchSystem,
    orders: &Receiver<Order<'a>>,
    finished: &Sender<Finished>,
    shared: &'s Shared<'s>,
    patience: Duration,
) {
    let mut manager = JobManager::new(system, shared, patience);
    loop {
        match orders.recv_timeout(manager.pause) {
            Ok(order) => {
                manager.pause = LOOKS.0;
                manager.admit(order);
                continue;
            }
            Err(RecvTimeoutError::Timeout) => {}
            // The run has come to its end, or could not go on: what is queued is taken over by the next one.
            Err(RecvTimeoutError::Disconnected) => return,
        }
        manager.pause = (manager.pause * 2).min(LOOKS.1);
        manager.turn(finished);
    }
}

struct JobManager<'a> {
    system: &'a dyn BatchSystem,
    shared: &'a Shared<'a>,
    patience: Duration,
    jobs: Vec<(Job<'a>, Phase)>,
    pause: Duration,
    question: Duration,
    next_question: Instant,
    /// Since when the batch system does not answer, and when it is asked again.
    silent: Option<(Instant, Instant)>,
}

/// What a look at a job in the queue has shown.
enum Seen {
    Nothing,
    /// It is to be submitted once more.
    Lost,
    Result(StageResult),
}

impl<'a> JobManager<'a> {
    fn new(system: &'a dyn BatchSystem, shared: &'a Shared<'a>, patience: Duration) -> Self {
        Self {
            system,
            shared,
            patience,
            jobs: Vec::new(),
            pause: LOOKS.1,
            question: QUESTIONS.0,
            next_question: Instant::now(),
            silent: None,
        }
    }

    /// Takes a cell in: its job is new, or one that a run left that was killed.
    fn admit(&mut self, order: Order<'a>) {
        let folder = self.shared.jobs.join(&order.task.key);
        let launcher = order.launcher.with(&[]);
        let before = Record::read(&folder);
        let phase = before.as_ref().map_or(Phase::New(None), |record| {
            let task = record.task(&folder);
            let is_emptied = task.join(DONE).exists() && is_emptied(order.cell.entry, &task);
            let is_other = record.launcher != launcher && !ranks::has_begun(&task);
            match record.job {
                _ if order.task.configured.observes() || ranks::is_stopped(&task) => Phase::Leaving,
                _ if is_emptied || is_other => Phase::Leaving,
                Some(_) => Phase::Queued(Queued::default()),
                None => Phase::Sought(None),
            }
        });
        let record = before.unwrap_or_else(|| Record {
            cell: order.cell.id.clone(),
            launcher: launcher.clone(),
            attempt: 0,
            name: String::new(),
            job: None,
            log: PathBuf::new(),
        });
        let job = Job {
            log: StageLog::of(order.cell, self.shared),
            order,
            started: Instant::now(),
            folder,
            record,
            retried: 0,
        };
        if let (Phase::Queued(_), Some(number)) = (&phase, job.record.job) {
            job.say(self.shared, &format!("job {number} of an earlier run is taken over"));
        }
        self.jobs.push((job, phase));
    }

    fn turn(&mut self, finished: &Sender<Finished>) {
        self.ask();
        let mut jobs = std::mem::take(&mut self.jobs);
        jobs.retain_mut(|(job, phase)| {
            let Some(result) = self.advance(job, phase).transpose() else { return true };
            if let Err(error) = &result {
                job.log.write(&format!("failed: {}", crate::engine::execute::explain(error)));
            }
            let (cell, key) = (job.order.task.cell, job.order.task.key.clone());
            let seconds = job.started.elapsed().as_secs_f64();
            // The receiver lives as long as anything runs.
            let _ = finished.send(Finished { cell, key, result, seconds, log: job.log.written() });
            self.pause = LOOKS.0;
            false
        });
        self.jobs = jobs;
    }

    /// What the batch system answered; nothing while it is silent and there is patience left.
    fn heard<T>(&mut self, answer: Result<T, BatchError>) -> Result<Option<T>, BatchError> {
        match answer {
            Ok(answer) => {
                self.silent = None;
                Ok(Some(answer))
            }
            Err(error @ BatchError::Silent(_)) => {
                let now = Instant::now();
                let since = self.silent.map_or(now, |(since, _)| since);
                let pause = (now - since).clamp(QUESTIONS.0, QUESTIONS.1);
                self.silent = Some((since, now + pause));
                if now - since < self.patience { Ok(None) } else { Err(error) }
            }
            Err(refused) => Err(refused),
        }
    }

    /// Whether the batch system can be expected to answer.
    fn may_ask(&self) -> bool {
        self.silent.is_none_or(|(_, again)| Instant::now() >= again)
    }

    /// Queries the states of all jobs, if it is time.
    fn ask(&mut self) {
        let number = |(job, phase): &(Job<'_>, Phase)| match phase {
            Phase::Queued(Queued { end: None, .. }) => job.record.job,
            _ => None,
        };
        let open: Vec<u64> = self.jobs.iter().filter_map(number).collect();
        if open.is_empty() || Instant::now() < self.next_question || !self.may_ask() {
            return;
        }
        let answer = self.system.ask(&open);
        let now = Instant::now();
        self.question = (self.question * 4 / 3).min(QUESTIONS.1);
        self.next_question = now + self.question;
        let Ok(Some(mut answer)) = self.heard(answer) else { return };
        for (job, phase) in &mut self.jobs {
            let Phase::Queued(queued) = phase else { continue };
            let Some(number) = job.record.job.filter(|_| queued.end.is_none()) else { continue };
            match answer.remove(&number).filter(|status| status.name == job.record.name) {
                Some(status) => queued.learn(job, number, status, now, self.shared),
                None => queued.end = Some((JobEnd::Forgotten, now)),
            }
        }
    }

    /// Asks soon: something is known to have changed.
    fn ask_soon(&mut self, within: Duration) {
        self.question = self.question.min(within.max(QUESTIONS.0));
        self.next_question = self.next_question.min(Instant::now() + within);
    }

    /// Does what is next for a job; its result, if it has come to its end.
    fn advance(&mut self, job: &mut Job<'a>, phase: &mut Phase) -> Result<Option<StageResult>, Report> {
        match phase {
            Phase::New(not_taken) => *phase = self.submit(job, *not_taken)?,
            Phase::Sought(not_taken) => *phase = self.seek(job, *not_taken)?,
            Phase::Leaving => *phase = self.send_away(job)?,
            Phase::Queued(queued) => match self.look(job, queued)? {
                Seen::Nothing => {}
                Seen::Lost => *phase = Phase::New(None),
                Seen::Result(given) => return Ok(Some(given)),
            },
        }
        Ok(None)
    }

    /// Whether the job is one process of ours.
    fn is_one(&self, cell: &Cell, launcher: &Launcher) -> bool {
        !cell.entry.distributed || self.system.command(launcher).is_empty()
    }

    fn wants_stop(&self, job: &Job<'_>) -> bool {
        self.shared.cancelled.load(Ordering::Relaxed)
            || job.order.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    fn submit(&mut self, job: &mut Job<'a>, not_taken: NotTaken) -> Result<Phase, Report> {
        if self.wants_stop(job) {
            let _ = fs::remove_dir_all(&job.folder);
            return Err(Unfinished::NotBegun.into());
        }
        if !self.may_ask() || not_taken.is_some_and(|(_, again)| Instant::now() < again) {
            return Ok(Phase::New(not_taken));
        }
        let script = job.prepare(self.system, self.shared)?;
        let Order { cell, launcher, .. } = job.order;
        let is_one = self.is_one(cell, launcher);
        let answer = self.system.submit(&NewJob {
            launcher,
            name: &job.record.name,
            comment: &cell.id,
            script: &script,
            log: &job.record.log,
            threads: cell.threads.filter(|_| is_one),
            memory: cell.memory.filter(|_| is_one),
        });
        let not_taken = match &answer {
            Err(BatchError::Silent(why)) => Some(self.is_not_taken(job, not_taken, why)?),
            _ => None,
        };
        let answer = self.heard(answer).inspect_err(|error| {
            if matches!(error, BatchError::Refused { .. }) {
                let _ = fs::remove_dir_all(&job.folder);
            }
        })?;
        // It may have been accepted though the answer got lost.
        let Some(number) = answer else { return Ok(Phase::Sought(not_taken)) };
        crash_point("job.submitted", &job.folder);
        self.is_queued(job, number)
    }

    /// Notes that the batch system did not take a job; an error once that has been so for too long.
    fn is_not_taken(
        &self,
        job: &Job<'a>,
        not_taken: NotTaken,
        why: &str,
    ) -> Result<(Instant, Instant), Report> {
        let now = Instant::now();
        if not_taken.is_none() {
            job.say(self.shared, &format!("not submitted yet: {why}"));
        }
        let since = not_taken.map_or(now, |(since, _)| since);
        let again = now + (now - since).clamp(QUESTIONS.0, QUESTIONS.1);
        let is_early = now - since < self.patience;
        if is_early { Ok((since, again)) } else { Err(BatchError::Silent(why.to_owned()).into()) }
    }

    fn is_queued(&mut self, job: &mut Job<'a>, number: u64) -> Result<Phase, Report> {
        job.record.job = Some(number);
        job.record.write(&job.folder)?;
        self.ask_soon(QUESTIONS.0 * 2);
        Ok(Phase::Queued(Queued::default()))
    }

    /// Looks for a job whose number got lost, by its name.
    fn seek(&mut self, job: &mut Job<'a>, not_taken: NotTaken) -> Result<Phase, Report> {
        if !self.may_ask() {
            let wants_stop = self.wants_stop(job);
            return if wants_stop { Err(Unfinished::NotBegun.into()) } else { Ok(Phase::Sought(not_taken)) };
        }
        let answer = self.system.find(&job.record.name);
        match self.heard(answer)? {
            Some(Some(number)) => self.is_queued(job, number),
            // It has come to its end, and the batch system has forgotten it since.
            Some(None) if is_complete(job) => Ok(Phase::Queued(Queued::default())),
            Some(None) => Ok(Phase::New(not_taken)),
            None => Ok(Phase::Sought(not_taken)),
        }
    }

    /// Ends a job of an earlier run before another one is submitted.
    fn send_away(&mut self, job: &mut Job<'a>) -> Result<Phase, Report> {
        if self.may_ask() {
            let answer = leave(self.system, &job.record);
            if self.heard(answer)? == Some(true) {
                job.record.launcher = job.order.launcher.with(&[]);
                return Ok(Phase::New(None));
            }
        }
        if self.wants_stop(job) {
            return Err(Unfinished::NotEnded(job.record.job.unwrap_or_default()).into());
        }
        Ok(Phase::Leaving)
    }

    fn look(&mut self, job: &mut Job<'a>, queued: &mut Queued) -> Result<Seen, Report> {
        queued.hear(job, self.shared);
        let task = job.task();
        // The end first: what was there before it is seen then.
        let status = batch::ended(&task);
        let done = ranks::read::<Done>(&task.join(DONE)).ok();
        if done.is_some_and(|done| done.complete) {
            return self.collect(job).map(Seen::Result);
        }
        self.stop_if_needed(job, queued)?;
        if status.is_some() && queued.left.is_none() {
            queued.left = Some(Instant::now());
            self.ask_soon(Duration::ZERO);
        }
        // A budget that has run out is the end of its search. Why a signal came is for the batch system to say.
        let is_timed = done.is_some_and(|done| done.timed);
        let is_wanted = self.wants_stop(job) || (is_timed && !ranks::is_stopped(&task));
        if done.is_some() && status.is_some() && is_wanted {
            return self.collect(job).map(Seen::Result);
        }
        let Some(end) = queued_end(queued, &task, status, done.is_some()) else {
            return self.is_given_up().map(|()| Seen::Nothing);
        };
        let is_one = self.is_one(job.order.cell, job.order.launcher);
        if let Some(fault) = failed_stage(job, queued, end, is_one) {
            let _ = fs::remove_dir_all(&job.folder);
            return Err(fault);
        }
        // A stage that was asked by a signal for what it has, and is not what ends the run, was asked by the batch system.
        let end = match end {
            JobEnd::As(JobState::Completed) if done.is_some() => JobEnd::As(JobState::OutOfTime),
            end => end,
        };
        if done.is_some() && is_wanted {
            return self.collect(job).map(Seen::Result);
        }
        let goes_on = end == JobEnd::As(JobState::OutOfTime) && !is_timed && self.is_saved(job);
        if (end.is_outside() || goes_on) && job.retried < job.order.cell.retries && !self.wants_stop(job) {
            self.again(job, end);
            return Ok(Seen::Lost);
        }
        if done.is_some() && end == JobEnd::As(JobState::OutOfTime) {
            job.say(self.shared, "its job reached the time limit: this is the best so far");
            return self.collect(job).map(Seen::Result);
        }
        Err(self.failure(job, queued, end, status))
    }

    /// An error if the batch system has been silent for too long.
    fn is_given_up(&self) -> Result<(), Report> {
        match self.silent {
            Some((since, _)) if since.elapsed() >= self.patience => {
                let text = format!("no answer for {}", humantime::format_duration(self.patience));
                Err(BatchError::Silent(text).into())
            }
            _ => Ok(()),
        }
    }

    fn is_saved(&self, job: &Job<'_>) -> bool {
        job.state(self.shared).is_some_and(|state| state.exists())
    }

    /// Asks a job for what it has: because the user or the deadline want it, or because its time is nearly over.
    fn stop_if_needed(&mut self, job: &Job<'a>, queued: &mut Queued) -> Result<(), Report> {
        if self.wants_stop(job) {
            let stopped = *queued.stopped.get_or_insert_with(Instant::now);
            if stopped.elapsed() < LOOKS.1 {
                // Where this fails the folder is gone, which the processes notice.
                let _ = ranks::stop(&job.task());
            }
            let is_late = stopped.elapsed() >= GRACE;
            if (!ranks::has_begun(&job.task()) || is_late) && !queued.is_cancelled {
                queued.is_cancelled = self.cancel(job);
                self.ask_soon(Duration::from_millis(200));
            }
            if stopped.elapsed() >= GRACE * 2 {
                return Err(Unfinished::NotEnded(job.record.job.unwrap_or_default()).into());
            }
        } else if queued.last_moment.is_some_and(|moment| Instant::now() >= moment) {
            queued.last_moment = None;
            if ranks::has_begun(&job.task()) {
                job.say(
                    self.shared,
                    "its job is about to reach the time limit: it is asked for its best result",
                );
                let _ = ranks::stop(&job.task());
            }
        }
        Ok(())
    }

    fn cancel(&mut self, job: &Job<'a>) -> bool {
        let Some(number) = job.record.job else { return false };
        let answer = self.system.cancel(number, &job.record.name);
        matches!(self.heard(answer), Ok(Some(())))
    }

    /// Submits a cell once more.
    fn again(&mut self, job: &mut Job<'a>, end: JobEnd) {
        job.retried += 1;
        let number = job.record.job.unwrap_or_default();
        let words = end.in_words("", None);
        let (retried, most) = (job.retried, job.order.cell.retries);
        job.say(self.shared, &format!("job {number} {words}; retry {retried} of {most}"));
        if end == JobEnd::Forgotten {
            self.cancel(job);
        }
        // A process that goes on though its node is lost finds its task gone and stops.
        let _ = fs::remove_dir_all(job.task());
        self.pause = LOOKS.0;
    }

    fn failure(&self, job: &Job<'a>, queued: &Queued, end: JobEnd, status: Option<i32>) -> Report {
        let failure = match queued.stopped.is_some() && !ranks::has_begun(&job.task()) {
            true => Unfinished::NotBegun.into(),
            false => JobFailure::new(job, queued, end, status, self.is_saved(job)).into(),
        };
        let _ = fs::remove_dir_all(&job.folder);
        failure
    }

    fn collect(&self, job: &mut Job<'a>) -> Result<StageResult, Report> {
        let Order { task, cell, .. } = &job.order;
        let given = take_over(launch::given(cell.entry, &job.task())?, task, cell, self.shared)?;
        crash_point("job.taken-over", &job.folder);
        // The job is forgotten last: where the result could not be stored, the next run takes it over.
        let _ = fs::remove_dir_all(&job.folder);
        crash_point("job.forgotten", &job.folder);
        Ok(given)
    }
}

/// How a job ended, once all that it can have left is there to be seen.
fn queued_end(queued: &Queued, task: &Path, status: Option<i32>, is_done: bool) -> Option<JobEnd> {
    let left_something = status.is_some() || is_done || task.join(FAULT).exists();
    match (queued.end, queued.left) {
        (Some((JobEnd::As(JobState::Completed), heard)), _) if !left_something => {
            (heard.elapsed() >= SETTLED.1).then_some(JobEnd::As(JobState::Completed))
        }
        (Some((end @ (JobEnd::As(JobState::Failed) | JobEnd::Forgotten), heard)), _) if !left_something => {
            (heard.elapsed() >= SETTLED.0).then_some(end)
        }
        // What was ended from outside may have been about to deliver.
        (Some((end, heard)), _) if !left_something && ranks::has_begun(task) => {
            (heard.elapsed() >= SETTLED.0).then_some(end)
        }
        // A job that ended by itself and that Slurm no longer knows has the exit status that its script wrote.
        (Some((JobEnd::Forgotten, _)), _) | (None, Some(_)) => {
            let is_settled =
                queued.end.is_some() || queued.left.is_some_and(|left| left.elapsed() >= SETTLED.1);
            let state = if status == Some(0) { JobState::Completed } else { JobState::Failed };
            (is_settled && left_something).then_some(JobEnd::As(state))
        }
        (Some((end, _)), _) => Some(end),
        (None, None) => None,
    }
}

/// Whether outputs of a job are missing: they are moved into the store one by one, and a run was interrupted meanwhile.
fn is_emptied(entry: &StageEntry, task: &Path) -> bool {
    let is_empty = || fs::read_dir(task.join(OUT)).is_ok_and(|mut entries| entries.next().is_none());
    launch::given(entry, task).is_err() || is_empty()
}

/// Whether a job has left its complete result.
fn is_complete(job: &Job<'_>) -> bool {
    ranks::read::<Done>(&job.task().join(DONE)).is_ok_and(|done| done.complete)
}
