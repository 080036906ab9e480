//! Paraver traces (`.prv`), as written by Extrae.
//!
//! ```text
//! #Paraver (12/03/2024 at 10:11):5000_ns:2(4,4):1:3(1:1,2:1,1:2),1
//! 1:cpu:application:task:thread:begin:end:state
//! 3:cpu:application:task:thread:logical send:physical send:cpu:application:task:thread:…:…:size:tag
//! ```
//!
//! Source: the trace format in the Paraver documentation (Barcelona Supercomputing Center) and the header
//! parser of `prv2dim`. Applications, tasks and threads count from one. Ranks are the tasks of the first
//! application, then those of the second and so on; messages of threads count for their task. Nodes have
//! numbers, but no names.

use std::path::Path;

use hopmap_model::{Context, Edge, TaskGraph, to_u32};
use hopmap_text::{CUT, FileError, Line, Lines, Rows, is_sentence, shown};

use super::reader::{self, Reader};
use crate::archive::warn_of_cut;
use crate::matrix::{Accumulator, MAX_RANKS};

pub(super) static READER: Reader = Reader {
    recognises: |sample| sample.text.trim_start().starts_with(MAGIC),
    files: reader::one_file,
    read: |path, options, cx| Ok(read(path, options.allow_truncated, cx)?),
    rows: ROWS,
    ..Reader::BINARY
};

const ROWS: Rows = Rows {
    is_row: |text| {
        let mut fields = text.trim_start_matches("c:").split(':');
        text.starts_with(MAGIC)
            || fields.clone().count() > 5
                && fields.all(|field| field.bytes().all(|byte| byte.is_ascii_digit()))
    },
    is_other: is_sentence,
};

/// First bytes of a file.
const MAGIC: &str = "#Paraver";

const HINT: &str = "a trace begins with `#Paraver (date):end_ns:nodes(cpus):applications:tasks(threads:node,…)`; a \
                    message is `3:`, cpu, application, task, thread and two times of the sender, the same of the \
                    receiver, size and tag";

const JOINED: &str = "files were joined: pass each trace in a file of its own";

const NO_HEADER: &str = "not the header of a Paraver trace";

/// Event type of collective operations of MPI; value 0 is the end.
const COLLECTIVE: &str = "50000002";

/// Thread state of computation.
const RUNNING: u64 = 1;

/// Contents of the first line.
struct Header {
    duration: u64,
    ticks_per_second: f64,
    /// First rank of every application, then the number of all ranks.
    firsts: Vec<u32>,
}

/// Computing time of the first thread of every rank, in ticks; `None` without states.
type Computing = Vec<Option<u64>>;

/// Reads a trace.
fn read(path: &Path, allow_truncated: bool, cx: &Context<'_>) -> Result<TaskGraph, FileError> {
    let lines = Lines::open(path, HINT)?.with(cx).lossy().of_rows(ROWS).commented_by(b'#');
    let mut lines = lines.may_be_cut(allow_truncated, CUT).whole_if(has_all_fields);
    let header = header(lines.next_filled_or(|| NO_HEADER.to_owned())?)?;
    let mut accumulator = Accumulator::default();
    let ranks = header.firsts.last().copied().unwrap_or_default();
    if let Some(last) = ranks.checked_sub(1) {
        accumulator.see(last);
    }
    let mut computing: Computing = vec![None; ranks as usize];
    let mut collectives = 0;
    while let Some(line) = lines.next()? {
        match line.text.trim_ascii().as_bytes() {
            [b'1', b':', ..] => state(line, &header, &mut computing)?,
            [b'3', b':', ..] => {
                let edge = communication(line, &header)?;
                accumulator.add(edge).map_err(|overflow| line.error(overflow.to_string()))?;
            }
            [b'2', b':', ..] => collectives += begun_collectives(line.text),
            [b'4', b':', ..] => collectives += 1,
            [b'#', ..] if line.text.starts_with(MAGIC) => {
                return Err(line.error("another trace begins here").with_help(JOINED));
            }
            // Comments, and members of communicators: senders and receivers are always tasks.
            [] | [b'#' | b'c', ..] => {}
            _ => return Err(line.error(format!("`{}` is not a record of Paraver", shown(line.text)))),
        }
    }
    warn_of_cut(u64::from(lines.is_cut()), cx);
    reader::warn_of_foreign(lines.foreign(), cx);
    reader::warn_of_collectives(collectives, cx);
    let seconds = |ticks: u64| ticks as f64 / header.ticks_per_second;
    let mut graph = accumulator.into_graph();
    for (process, ticks) in graph.processes.iter_mut().zip(computing) {
        process.compute_s = ticks.map(seconds);
    }
    Ok(TaskGraph { duration_s: Some(seconds(header.duration)), ..graph })
}

/// Whether only the last field of a record may be cut, which is a state or a tag: they do not count.
fn has_all_fields(record: &[u8]) -> bool {
    let fields = record.split(|&byte| byte == b':').count();
    match record {
        [.., b':'] => false,
        [b'1', b':', ..] => fields == 8,
        [b'3', b':', ..] => fields == 15,
        _ => false,
    }
}

fn header(line: Line<'_>) -> Result<Header, FileError> {
    let behind_date = line
        .text
        .strip_prefix(MAGIC)
        .and_then(|rest| rest.trim_start().strip_prefix('('))
        .and_then(|rest| rest.split_once("):"))
        .map(|(_, rest)| rest)
        .ok_or_else(|| line.error(NO_HEADER))?;
    let (end, rest) = split(line, behind_date, "end of the trace")?;
    let (duration, ticks_per_second) = duration(line, end)?;
    let (_, rest) = split_list(line, rest, "nodes")?;
    let (applications, mut rest) = split(line, rest, "number of applications")?;
    let applications = line.whole(Some(applications), "number of applications")?;
    let mut firsts = vec![0];
    for _ in 0..applications {
        let (list, behind) = split_list(line, rest, "tasks")?;
        rest = behind;
        let first = firsts.last().copied().unwrap_or_default();
        firsts.push(first + tasks(line, list, MAX_RANKS - first)?);
    }
    Ok(Header { duration, ticks_per_second, firsts })
}

/// Times are in nanoseconds if the end of the trace has this unit, else in microseconds.
fn duration(line: Line<'_>, end: &str) -> Result<(u64, f64), FileError> {
    let (ticks, per_second) = match end.split_once('_') {
        None => (end, 1e6),
        Some((ticks, "ns")) => (ticks, 1e9),
        Some((ticks, "us")) => (ticks, 1e6),
        Some((ticks, "ms")) => (ticks, 1e3),
        Some((_, unit)) => return Err(line.error(format!("`{}` is not a unit of time", shown(unit)))),
    };
    Ok((line.amount(Some(ticks), "end of the trace")?, per_second))
}

/// Number of tasks in `tasks(threads:node,…)`, verified against the list.
fn tasks(line: Line<'_>, list: &str, most: u32) -> Result<u32, FileError> {
    let (number, listed) = list.split_once('(').unwrap_or((list, ""));
    let number = line.below(Some(number), "number of tasks", most + 1)?;
    let listed = listed.split_once(')').map_or("", |(listed, _)| listed);
    let found = listed.split(',').filter(|task| !task.is_empty()).count();
    if found != number as usize {
        return Err(line.error(format!("the header lists {found} tasks, but declares {number}")));
    }
    Ok(number)
}

/// The text before and after the next colon.
fn split<'l>(line: Line<'_>, text: &'l str, name: &str) -> Result<(&'l str, &'l str), FileError> {
    text.split_once(':').ok_or_else(|| line.error(format!("the header ends with the {name}")))
}

/// The same, skipping colons inside brackets; the rest may be empty.
fn split_list<'l>(line: Line<'_>, text: &'l str, name: &str) -> Result<(&'l str, &'l str), FileError> {
    if text.is_empty() {
        return Err(line.error(format!("the header ends before the {name}")));
    }
    let mut depth = 0_u32;
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            b':' if depth == 0 => return Ok((&text[..index], &text[index + 1..])),
            _ => {}
        }
    }
    Ok((text, ""))
}

/// A thread by application, task and number.
struct Thread {
    rank: u32,
    is_first: bool,
}

/// Parses cpu, application, task and thread.
fn thread<'l>(
    line: Line<'_>,
    header: &Header,
    fields: &mut impl Iterator<Item = &'l str>,
) -> Result<Thread, FileError> {
    fields.next();
    let applications = to_u32(header.firsts.len());
    let application = line.below(fields.next(), "application", applications)? as usize;
    let task = line.whole(fields.next(), "task")?;
    let number = line.whole(fields.next(), "thread")?;
    let (Some(first), Some(next)) =
        (application.checked_sub(1).map(|index| header.firsts[index]), header.firsts.get(application))
    else {
        return Err(line.error("the application is 0, but applications count from one"));
    };
    let place = u32::try_from(task).ok().filter(|task| (1..=next - first).contains(task));
    let Some(place) = place else {
        return Err(line.error(format!(
            "application {application} has tasks 1 to {}, but this is task {task}",
            next - first
        )));
    };
    Ok(Thread { rank: first + place - 1, is_first: number == 1 })
}

fn state(line: Line<'_>, header: &Header, computing: &mut Computing) -> Result<(), FileError> {
    let mut fields = line.text.split(':').skip(1);
    let thread = thread(line, header, &mut fields)?;
    let begin = line.whole(fields.next(), "start of the state")?;
    let end = line.whole(fields.next(), "end of the state")?;
    let state = line.whole(fields.next(), "state")?;
    let ticks = end
        .checked_sub(begin)
        .ok_or_else(|| line.error(format!("it ends at {end}, before its start at {begin}")))?;
    if thread.is_first {
        let sum = computing[thread.rank as usize].get_or_insert(0);
        if state == RUNNING {
            *sum = sum.saturating_add(ticks);
        }
    }
    Ok(())
}

/// Collective operations that begin in an event record: cpu, application, task, thread and time, then pairs
/// of type and value.
fn begun_collectives(line: &str) -> u64 {
    let mut fields = line.split(':').skip(6);
    let mut begun = 0;
    while let (Some(kind), Some(value)) = (fields.next(), fields.next()) {
        begun += u64::from(kind == COLLECTIVE && value != "0");
    }
    begun
}

fn communication(line: Line<'_>, header: &Header) -> Result<Edge, FileError> {
    let mut fields = line.text.split(':').skip(1);
    let source = thread(line, header, &mut fields)?.rank;
    let mut behind_times = fields.skip(2);
    let destination = thread(line, header, &mut behind_times)?.rank;
    let mut behind_times = behind_times.skip(2);
    let bytes = line.whole(behind_times.next(), "size")?;
    if behind_times.next().is_none() || behind_times.next().is_some() {
        return Err(line.error("a message must have 14 numbers after `3:`"));
    }
    Ok(Edge { source, destination, messages: 1, bytes })
}
