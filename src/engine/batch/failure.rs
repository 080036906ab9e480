//! Jobs that gave no result, in words.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use miette::Diagnostic;

use super::JobState;
use crate::engine::launch::times;
use crate::ranks::Message;

/// Lines of the log that a message shows.
const LAST_LINES: usize = 12;
/// Bytes in which they are looked for.
const LAST_BYTES: u64 = 16 << 10;

/// How a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// As the batch system has it.
    As(JobState),
    /// The batch system knows it no more, and it left nothing.
    Forgotten,
}

impl End {
    /// What happened, behind the name of the job.
    pub(super) fn in_words(self, limit: &str, status: Option<i32>) -> String {
        match self {
            Self::As(JobState::NodeFailed) => "was lost: its node failed".into(),
            Self::As(JobState::Preempted) => "was ended to make room for another".into(),
            Self::As(JobState::OutOfTime) => format!("ran out of its time{limit}"),
            Self::As(JobState::OutOfMemory) => "ran out of memory".into(),
            Self::As(JobState::Cancelled) => "was cancelled".into(),
            Self::As(JobState::Completed) => "ended without a result".into(),
            Self::As(_) => match status {
                Some(status) => format!("ended without a result: exit status {status}"),
                None => "failed".into(),
            },
            Self::Forgotten => "is not known to the batch system any more and left no result".into(),
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
                    "it was submitted {}; `retries` of the stage allows more, and the next run tries again",
                    times(retries + 1)
                );
            }
            Self::As(JobState::OutOfTime) => "give it more with --time in `launcher`",
            Self::As(JobState::OutOfMemory) => {
                "give it more with `memory` of the stage or --mem in `launcher`"
            }
            Self::As(JobState::Cancelled) => {
                "somebody ended it with scancel, or the batch system did; run again"
            }
            Self::As(_) if matches!(status, Some(126 | 127)) => {
                "its nodes have to find hopmap where this host has it, and what `launcher` starts"
            }
            Self::As(_) => "its script stands beside its log and can be submitted by hand",
        };
        match is_saved {
            true => format!("{hint}; the state of the search is saved: the next run goes on where it was"),
            false => hint.to_owned(),
        }
    }
}

/// A job that gave no result.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("job {job} of `{launcher}`{place} {what}{lines}\nlog: {log}")]
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

/// What is known of a job that has ended.
pub(super) struct Ended<'a> {
    pub(super) job: u64,
    pub(super) launcher: &'a str,
    pub(super) nodes: &'a str,
    pub(super) reason: &'a str,
    pub(super) limit: &'a str,
    pub(super) log: &'a Path,
    pub(super) status: Option<i32>,
    pub(super) is_saved: bool,
    pub(super) retried: u32,
}

impl JobFailure {
    pub(super) fn new(end: End, ended: &Ended<'_>) -> Self {
        let mut what = end.in_words(ended.limit, ended.status);
        // Most reasons only say the state in one word.
        let says_more =
            !["", "NonZeroExitCode", "TimeLimit", "NodeDown", "OutOfMemory"].contains(&ended.reason);
        if says_more && matches!(end, End::As(_)) {
            what.push_str(&format!(" ({})", ended.reason));
        }
        Self {
            job: ended.job,
            launcher: ended.launcher.to_owned(),
            place: on(ended.nodes),
            what,
            lines: last_lines(ended.log).iter().flat_map(|line| ["\n  ", line]).collect(),
            log: ended.log.display().to_string(),
            help: end.hint(ended.is_saved, ended.status, ended.retried),
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

/// A job that was not waited for to the end.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub(super) enum Given {
    #[error("its job was stopped before it began")]
    NotBegun,
    #[error("job {0} was told to end and has not")]
    #[diagnostic(help("`scancel` ends it; the next run takes it over or ends it"))]
    NotEnded(u64),
}
