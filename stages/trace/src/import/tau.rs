//! Profiles of TAU, `profile.NODE.CONTEXT.THREAD`, recorded with `TAU_COMM_MATRIX=1`.
//!
//! ```text
//! 2 templated_functions_MULTI_TIME
//! # Name Calls Subrs Excl Incl ProfileCalls # <metadata>…</metadata>
//! "main" 1 3 1000 5000 0 GROUP="TAU_DEFAULT"
//! "MPI_Send()" 3 0 4000 4000 0 GROUP="MPI"
//! 0 aggregates
//! 1 userevents
//! # eventname numevents max min mean sumsqr
//! "Message size sent to node 1" 3 1024 512 768 2e6
//! ```
//!
//! Source: `Profile.cpp` and `TauMpi.c` of TAU. Nodes are world ranks. Bytes are the number of events times
//! their mean. Events by call path (`… : main => MPI_Send()`) are included in these and are skipped.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use hopmap_model::{Context, Edge, InputPath, Process, TaskGraph, to_u32};
use hopmap_text::{FileError, Foreign, Line, Lines, Rows, is_command_or_rule, shown};

use super::ipm::is_send;
use super::reader::{self, Reader};
use crate::archive::{COPY, log_count};
use crate::matrix::{Accumulator, MAX_RANKS, Overflow};

pub(super) static READER: Reader = Reader {
    recognises: |sample| if sample.is_folder { is_folder(sample.path) } else { is_profile(&sample.text) },
    files: |path| Ok(files(path)?),
    read: |path, _, cx| Ok(read(path, cx)?),
    rows: ROWS,
    begins: is_profile,
};

const HINT: &str = "TAU writes a file `profile.NODE.CONTEXT.THREAD` per thread; pass the folder with all of them, \
                    recorded with TAU_COMM_MATRIX=1";

const ROWS: Rows = Rows {
    is_row: |text| {
        if let Some(named) = text.strip_prefix('"') {
            let values = named.rsplit_once('"').map_or("", |(_, values)| values);
            return named.contains(" GROUP=")
                || values.split_whitespace().filter(|word| word.parse::<f64>().is_ok()).count() > 4;
        }
        let section = text.split_once(' ').filter(|(number, _)| number.parse::<u64>().is_ok());
        let begins = ["templated_functions", "aggregates", "userevents"];
        section.is_some_and(|(_, what)| begins.iter().any(|begin| what.starts_with(begin)))
    },
    is_other: is_command_or_rule,
};

/// First line of a profile, after a number.
const TEMPLATED: &str = "templated_functions";

/// Metrics of wall-clock time in microseconds, the unnamed one included.
const CLOCKS: [&str; 6] =
    ["", "TIME", "GET_TIME_OF_DAY", "P_WALL_CLOCK_TIME", "WALL_CLOCK_TIME", "LINUX_TIMERS"];

/// Prefix of the folder of a metric.
const METRIC_FOLDER: &str = "MULTI__";

const MORE: &str =
    "the numbers before the sections of a profile count their lines: it was edited, or profiles were joined";

const SENT: &str = "Message size sent to node ";
const COLLECTIVE: &str = "Message size for ";

/// A profile.
struct Profile {
    node: u32,
    /// Context and thread; both are zero for the thread that calls MPI.
    thread: (u32, u32),
    path: PathBuf,
}

/// Whether a file is a profile.
fn is_profile(head: &str) -> bool {
    let mut lines = head.lines().map(str::trim).filter(|line| !line.is_empty());
    let words = lines.next().and_then(|line| line.split_once(' '));
    words.is_some_and(|(number, rest)| number.parse::<u64>().is_ok() && rest.starts_with(TEMPLATED))
}

/// Whether a folder contains profiles.
fn is_folder(path: &Path) -> bool {
    profiles(path).is_ok_and(|profiles| !profiles.is_empty())
}

/// All profiles.
fn files(path: &Path) -> Result<Vec<InputPath>, FileError> {
    let profiles = profiles(path)?.into_iter();
    Ok(profiles.map(|profile| InputPath::new(profile.path)).collect())
}

/// Reads all profiles of a folder, or those next to a file.
fn read(path: &Path, cx: &Context<'_>) -> Result<TaskGraph, FileError> {
    let refuse = |what: String| FileError::new(what, HINT).in_file(path);
    let profiles = profiles(path)?;
    let mut sums = Sums::default();
    for profile in &profiles {
        sums.add(profile, cx)?;
    }
    if profiles.is_empty() {
        return Err(refuse("no profiles found".into()));
    }
    if !sums.has_pairs {
        return Err(refuse("the profiles do not contain the receivers of messages".into()));
    }
    let nodes: BTreeSet<u32> = profiles.iter().map(|profile| profile.node).collect();
    let (collectives, silent) = (sums.collectives, sums.senders.values().filter(|sent| **sent == 0).count());
    let foreign = sums.foreign.take();
    let graph = sums.into_graph();
    if let Some(missing) = (0..to_u32(graph.ranks())).find(|node| !nodes.contains(node)) {
        return Err(refuse(format!("`profile.{missing}.0.0` is missing")));
    }
    reader::warn_of_foreign(foreign.as_ref(), cx);
    reader::warn_of_collectives(collectives, cx);
    log_count(
        cx,
        "warning: ranks that sent to receivers which their profiles lack, not counted",
        silent as u64,
    );
    Ok(graph)
}

/// The profiles in a folder or next to a file, by node, context and thread. One metric is enough, because
/// all metrics have the same events.
fn profiles(path: &Path) -> Result<Vec<Profile>, FileError> {
    let folder = if path.is_dir() { path } else { path.parent().unwrap_or(path) };
    let names = |folder: &Path| -> Result<Vec<String>, FileError> {
        let failed = |error| FileError::unreadable(folder, &error);
        let entries = std::fs::read_dir(folder).map_err(failed)?;
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut names: Vec<String> = names.collect();
        names.sort();
        Ok(names)
    };
    let mut all = names(folder)?;
    let metrics: Vec<&str> = all.iter().filter_map(|name| name.strip_prefix(METRIC_FOLDER)).collect();
    let clock = CLOCKS.iter().find(|clock| metrics.contains(*clock)).or(metrics.first()).copied();
    let folder = match clock {
        Some(metric) => folder.join(format!("{METRIC_FOLDER}{metric}")),
        None => folder.to_owned(),
    };
    if clock.is_some() {
        all = names(&folder)?;
    }
    let mut profiles: Vec<Profile> = all.iter().filter_map(|name| profile(&folder, name)).collect();
    let place = |profile: &Profile| (profile.node, profile.thread);
    profiles.sort_by(|one, other| (place(one), &one.path).cmp(&(place(other), &other.path)));
    // A packed one beside the other is a copy.
    profiles.dedup_by_key(|profile| place(profile));
    Ok(profiles)
}

/// The profile in a file, judged by its name.
fn profile(folder: &Path, name: &str) -> Option<Profile> {
    let bare = name.strip_suffix(".gz").unwrap_or(name);
    let mut numbers = bare.strip_prefix("profile.")?.split('.').map(|number| number.parse::<u32>().ok());
    let (node, context, thread) = (numbers.next()??, numbers.next()??, numbers.next()??);
    let is_one = numbers.next().is_none() && node < MAX_RANKS;
    is_one.then(|| Profile { node, thread: (context, thread), path: folder.join(name) })
}

/// Sums over profiles.
#[derive(Default)]
struct Sums {
    accumulator: Accumulator,
    has_pairs: bool,
    /// Messages with receivers of every node that called sends.
    senders: BTreeMap<u32, u64>,
    collectives: u64,
    processes: Vec<(u32, Process)>,
    /// The longest inclusive time of a function, in microseconds.
    longest: Option<f64>,
    foreign: Option<Foreign>,
}

impl Sums {
    fn add(&mut self, profile: &Profile, cx: &Context<'_>) -> Result<(), FileError> {
        let lines = Lines::open(&profile.path, HINT)?.with(cx).lossy().of_rows(ROWS).commented_by(b'#');
        let mut lines = lines.may_be_cut(false, COPY);
        self.accumulator.see(profile.node);
        let line = next_of(&mut lines, "functions")?;
        let (functions, kind) = counted(line)?;
        let metric =
            kind.strip_prefix(TEMPLATED).ok_or_else(|| line.error("not the first line of a profile"))?;
        let has_clock = CLOCKS.contains(&metric.trim_start_matches("_MULTI_"));
        let header = lines.next()?;
        let host = header.and_then(|line| metadata(line.text, "Hostname")).map(str::to_owned);
        let mut computing = has_clock.then_some(0.0);
        for _ in 0..functions {
            if self.function(next_of(&mut lines, "functions")?, &mut computing)? {
                self.senders.entry(profile.node).or_default();
            }
        }
        if profile.thread == (0, 0) {
            let compute_s = computing.filter(|_| functions > 0).map(|microseconds| microseconds / 1e6);
            self.processes.push((profile.node, Process { host, compute_s, ..Process::default() }));
        }
        let (aggregates, _) = counted(next_of(&mut lines, "aggregates")?)?;
        for _ in 0..aggregates {
            next_of(&mut lines, "aggregates")?;
        }
        // TAU leaves this part out if it is empty, as that of threads that call no MPI is.
        let events = lines.next_filled()?.map_or(Ok(0), |line| Ok(counted(line)?.0))?;
        if events > 0 {
            next_of(&mut lines, "user events")?;
        }
        for _ in 0..events {
            self.event(next_of(&mut lines, "user events")?, profile.node)?;
        }
        if let Some(line) = lines.next_filled()? {
            let what = format!("the profile has more lines than its number of user events, {events}");
            return Err(line.error(what).with_help(MORE));
        }
        Foreign::add(&mut self.foreign, lines.foreign(), &profile.path);
        Ok(())
    }

    /// Adds the time of a function, except for MPI functions, call paths and samples, which other functions
    /// include. Whether it is one that sends, and was called.
    fn function(&mut self, line: Line<'_>, computing: &mut Option<f64>) -> Result<bool, FileError> {
        let (text, group) = line.text.rsplit_once(" GROUP=").unwrap_or((line.text, ""));
        let (name, values) = named(line, text)?;
        let mut values = values.split_ascii_whitespace();
        let is_called =
            values.next().and_then(|calls| calls.parse::<f64>().ok()).is_some_and(|calls| calls > 0.0);
        let exclusive = line.real(values.nth(1), "exclusive time")?;
        let inclusive = line.real(values.next(), "inclusive time")?;
        let is_mpi = name.starts_with("MPI_") || words(group).any(|word| word == "MPI");
        let is_part = name.contains(" => ") || words(group).any(|word| word.starts_with("TAU_SAMPLE"));
        if let Some(sum) = computing {
            self.longest = Some(self.longest.unwrap_or(0.0).max(inclusive));
            *sum += if is_mpi || is_part { 0.0 } else { exclusive };
        }
        Ok(is_called && is_send(name.trim_end().trim_end_matches("()")))
    }

    fn event(&mut self, line: Line<'_>, node: u32) -> Result<(), FileError> {
        let (name, values) = named(line, line.text)?;
        let by_call_path = name.contains(" : ") || name.contains("=>");
        let mut values = values.split_ascii_whitespace();
        let messages = line.amount(values.next(), "number of events");
        if name.starts_with(COLLECTIVE) && !by_call_path {
            self.collectives = self.collectives.saturating_add(messages?);
        } else if let Some(receiver) = name.strip_prefix(SENT).filter(|_| !by_call_path) {
            let messages = messages?;
            let destination = line.below(Some(receiver.trim()), "node", MAX_RANKS)?;
            let mean = line.real(values.nth(2), "mean")?;
            let bytes = (messages as f64 * mean).round();
            if bytes >= 18_446_744_073_709_551_616.0 {
                return Err(line.error(Overflow.to_string()));
            }
            self.has_pairs = true;
            *self.senders.entry(node).or_default() |= messages;
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "the largest float below 2⁶⁴ is 2⁶⁴ - 2¹¹"
            )]
            let bytes = bytes as u64;
            let edge = Edge { source: node, destination, messages, bytes };
            self.accumulator.add(edge).map_err(|overflow| line.error(overflow.to_string()))?;
        }
        Ok(())
    }

    fn into_graph(self) -> TaskGraph {
        let mut graph = self.accumulator.into_graph();
        for (node, process) in self.processes {
            graph.processes[node as usize] = process;
        }
        TaskGraph { duration_s: self.longest.map(|microseconds| microseconds / 1e6), ..graph }
    }
}

/// Goes to the next line, which must exist.
fn next_of<'l>(lines: &'l mut Lines<'_>, what: &str) -> Result<Line<'l>, FileError> {
    lines.next_or(|| format!("the file ends before the end of its {what}"))
}

/// Parses a line such as `3 userevents`.
fn counted(line: Line<'_>) -> Result<(u64, &str), FileError> {
    if line.text.starts_with('"') {
        return Err(line.error("the section before this line has fewer lines by its number").with_help(MORE));
    }
    let (number, what) = line.text.trim().split_once(' ').unwrap_or((line.text, ""));
    Ok((line.whole(Some(number), "number of lines that follow")?, what))
}

/// The quoted name at the start of a line, and the rest. The name may contain quotes.
fn named<'l>(line: Line<'_>, text: &'l str) -> Result<(&'l str, &'l str), FileError> {
    let parts = text.trim_start().strip_prefix('"').and_then(|text| text.rsplit_once('"'));
    parts.ok_or_else(|| line.error(format!("`{}` does not begin with a name in quotes", shown(text))))
}

/// Names of groups.
fn words(group: &str) -> impl Iterator<Item = &str> {
    group.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
}

/// A value of the metadata.
fn metadata<'l>(line: &'l str, name: &str) -> Option<&'l str> {
    let (_, behind) = line.split_once(&format!("<name>{name}</name><value>"))?;
    behind.split_once("</value>").map(|(value, _)| value.trim()).filter(|value| !value.is_empty())
}
