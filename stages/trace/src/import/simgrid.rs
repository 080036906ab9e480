//! Time-independent traces of SimGrid: one file of actions, or an index that lists a file for every rank.
//!
//! ```text
//! 0 init
//! 0 send 1 42 1e6 0      rank, action, destination, tag, elements, datatype: since SimGrid 3.20
//! 0 send 1 1e6 0         without the tag: before
//! ```
//!
//! Source: `smpi_replay.cpp`, `smpi_datatype.cpp` and `smpi_pmpi_request.cpp` of SimGrid. The datatype may be missing;
//! then `init` with an argument means `MPI_DOUBLE`, and `init` alone `MPI_BYTE`. SMPI writes elements of the types 0 to 6
//! and bytes of all others. Computing is given in flops, so times stay unknown.
//!
//! Ranks count as ranks of the whole program, as the replay of SimGrid takes them, although SMPI writes ranks within the
//! communicator of a message and does not say which that is.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use hopmap_model::{Context, Edge, InputPath, TaskGraph};

use super::lines::{Lines, shown, whole};
use super::tally::Tally;
use crate::ImportError;
use crate::csv_matrix::MAX_RANKS;
use crate::matrix::Overflow;

const HINT: &str = "an action is `rank send destination tag size datatype`, or without the tag before SimGrid 3.20; an \
                    index lists one file of actions per line, relative to where it lies";

/// Sizes of the types whose elements SMPI counts, by number: double, int, char, short, long, float, byte.
const TYPE_BYTES: [u64; 7] = [8, 4, 1, 2, 8, 4, 1];

/// What stands for a type that SMPI does not number.
const NO_TYPE: &str = "-1";

/// More types than SimGrid numbers.
const MOST_TYPES: u64 = 100;

/// What moves data and does not count, in small letters.
const OTHERS: [&str; 32] = [
    "barrier",
    "bcast",
    "reduce",
    "allreduce",
    "alltoall",
    "alltoallv",
    "alltoallw",
    "gather",
    "gatherv",
    "scatter",
    "scatterv",
    "allgather",
    "allgatherv",
    "reducescatter",
    "scan",
    "exscan",
    "ibarrier",
    "ibcast",
    "ireduce",
    "iallreduce",
    "ialltoall",
    "ialltoallv",
    "igather",
    "igatherv",
    "iscatter",
    "iscatterv",
    "iallgather",
    "iallgatherv",
    "put",
    "get",
    "rput",
    "rget",
];

/// What moves no data, or is counted at the sender.
const SILENT: [&str; 18] = [
    "init",
    "finalize",
    "comm_size",
    "comm_split",
    "comm_dup",
    "compute",
    "sleep",
    "recv",
    "irecv",
    "wait",
    "waitall",
    "waitany",
    "waitsome",
    "test",
    "testall",
    "testany",
    "probe",
    "location",
];

/// Reads a trace. Whether its messages have tags is seen if it is not said.
pub(super) fn read(path: &Path, tags: Option<bool>, cx: &Context<'_>) -> Result<TaskGraph, ImportError> {
    let files = action_files(path, cx)?;
    let mut survey = Survey::default();
    for file in &files {
        each_action(file, cx, |lines, action| survey.look(lines, action))?;
    }
    let form = survey.form(path, tags)?;
    let mut tally = Tally::default();
    for file in &files {
        each_action(file, cx, |lines, action| {
            tally.see(action.rank);
            if action.sends() {
                let edge = form.message(lines, action)?;
                tally.add(edge).map_err(|overflow| lines.overflow(overflow))?;
            }
            Ok(())
        })?;
    }
    survey.log(cx);
    Ok(tally.into_graph())
}

/// Every file of a trace.
pub(super) fn files(path: &Path) -> Result<Vec<InputPath>, ImportError> {
    let actions = action_files(path, &Context::detached())?;
    let listed = actions.into_iter().enumerate().filter(|(_, file)| file != path);
    let listed = listed.map(|(place, file)| InputPath::named(file, format!("actions/{place}")));
    Ok([InputPath::named(path, "trace")].into_iter().chain(listed).collect())
}

/// The files with the actions: the file itself, or those it lists.
fn action_files(path: &Path, cx: &Context<'_>) -> Result<Vec<PathBuf>, ImportError> {
    let mut lines = Lines::open(path, HINT, cx)?;
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut files = Vec::new();
    while lines.next_filled()? {
        let line = lines.text().trim();
        if line.starts_with('#') {
            continue;
        }
        if files.is_empty() && is_action(line) {
            return Ok(vec![path.to_owned()]);
        }
        if files.len() == MAX_RANKS as usize {
            return Err(lines.fault(format!("it lists more than {MAX_RANKS} files")));
        }
        let file = folder.join(line);
        if !file.is_file() {
            return Err(lines.fault(format!("there is no file `{}`", file.display())));
        }
        files.push(file);
    }
    if files.is_empty() {
        return Err(lines.cut_off("it holds no action"));
    }
    Ok(files)
}

/// Whether a line is an action.
pub(super) fn is_action(line: &str) -> bool {
    let mut words = line.split_ascii_whitespace();
    let is_rank = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
    let is_known = |word: &str| {
        let name = word.to_ascii_lowercase();
        ["send", "isend", "sendrecv"].contains(&&*name)
            || SILENT.contains(&&*name)
            || OTHERS.contains(&&*name)
    };
    words.next().is_some_and(is_rank) && words.next().is_some_and(is_known)
}

/// Whether a file is an index: its first line names a file of actions.
pub(super) fn is_index(path: &Path, line: &str) -> bool {
    let Some(folder) = path.parent() else { return false };
    let cx = Context::detached();
    let first = folder.join(line);
    if first.as_path() == path || !first.is_file() {
        return false;
    }
    Lines::open(&first, HINT, &cx)
        .and_then(|mut lines| Ok(lines.next_filled()? && is_action(lines.text())))
        .unwrap_or(false)
}

/// One line of a trace.
struct Action<'l> {
    rank: u32,
    name: &'l str,
    arguments: Vec<&'l str>,
}

impl Action<'_> {
    fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }

    fn is_among(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.is(name))
    }

    fn sends(&self) -> bool {
        self.is("send") || self.is("isend")
    }
}

/// Calls a function for every action of a file.
fn each_action(
    path: &Path,
    cx: &Context<'_>,
    mut visit: impl FnMut(&Lines<'_>, &Action<'_>) -> Result<(), ImportError>,
) -> Result<(), ImportError> {
    let mut lines = Lines::open(path, HINT, cx)?;
    while lines.next_filled()? {
        let mut words = lines.text().split_ascii_whitespace().peekable();
        if words.peek().is_some_and(|word| word.starts_with('#')) {
            continue;
        }
        let rank = lines.rank(words.next(), "rank", MAX_RANKS)?;
        let name = words.next().ok_or_else(|| lines.fault("the action is missing"))?;
        let action = Action { rank, name, arguments: words.collect() };
        if action.is("sendrecv") {
            let what = "names its partner by process id and not by rank, and SimGrid does not replay it";
            return Err(lines.fault(format!("`{name}` {what}")));
        }
        if !action.sends() && !action.is_among(&SILENT) && !action.is_among(&OTHERS) {
            return Err(lines.fault(format!("`{}` is no action that is known", shown(name))));
        }
        visit(&lines, &action)?;
    }
    Ok(())
}

/// Something in a trace that tells how its messages are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Sign {
    /// An action that has no tag.
    Untagged,
    /// An action that has one.
    Tagged,
    /// A message whose arguments may be destination, tag and size, or destination, size and datatype.
    Unclear,
    /// `init` with an argument.
    Doubles,
    /// `init` without.
    Bytes,
    /// There are communicators besides that of all.
    Communicators,
}

/// What a first look at a trace shows.
#[derive(Debug, Default)]
struct Survey {
    signs: BTreeSet<Sign>,
    /// Actions that move data and do not count.
    others: u64,
}

impl Survey {
    fn look(&mut self, lines: &Lines<'_>, action: &Action<'_>) -> Result<(), ImportError> {
        let is_alone = action.arguments.is_empty();
        let sign = if action.is("init") {
            if is_alone { Sign::Bytes } else { Sign::Doubles }
        } else if action.is("wait") {
            if is_alone { Sign::Untagged } else { Sign::Tagged }
        } else if action.is("comm_split") {
            Sign::Communicators
        } else if action.sends() || action.is("recv") || action.is("irecv") {
            match action.arguments[..] {
                [_, _, _, _] => Sign::Tagged,
                [_, second, third] if is_type(third) && is_tag(second) => Sign::Unclear,
                [_, second, _] if is_tag(second) => Sign::Tagged,
                [_, _] | [_, _, _] => Sign::Untagged,
                _ => return Err(lines.fault(format!("`{}` has from 2 to 4 arguments", action.name))),
            }
        } else {
            self.others += u64::from(action.is_among(&OTHERS));
            return Ok(());
        };
        self.signs.insert(sign);
        Ok(())
    }

    fn saw(&self, sign: Sign) -> bool {
        self.signs.contains(&sign)
    }

    /// How the messages of the trace are to be read.
    fn form(&self, path: &Path, tags: Option<bool>) -> Result<Form, ImportError> {
        let refuse = |what: &str| ImportError::File { path: path.to_owned(), what: what.into(), hint: HINT };
        if self.saw(Sign::Doubles) && self.saw(Sign::Bytes) {
            return Err(refuse("some ranks say `init` with an argument and some without"));
        }
        let is_tagged = match (tags, self.saw(Sign::Untagged), self.saw(Sign::Tagged)) {
            (Some(tags), _, _) => tags,
            (None, true, true) => return Err(refuse("some messages have a tag and some have none")),
            (None, false, false) if self.saw(Sign::Unclear) => {
                let ask = "`format = \"simgrid-tagged\"` or `format = \"simgrid-untagged\"`";
                return Err(refuse(&format!("whether its messages have tags cannot be seen: say {ask}")));
            }
            (None, is_untagged, _) => !is_untagged,
        };
        Ok(Form { is_tagged, default_bytes: if self.saw(Sign::Doubles) { 8 } else { 1 } })
    }

    /// Says what the graph does not show.
    fn log(&self, cx: &Context<'_>) {
        if self.others > 0 {
            let what = "collective operations and accesses to remote memory, one per process, do not count";
            cx.log(format_args!("{} {what}", self.others));
        }
        if self.saw(Sign::Communicators) {
            cx.log(
                "the program splits communicators, and the trace does not say through which a message goes: all ranks \
                 count as ranks of the program",
            );
        }
    }
}

/// Whether a value may be a tag: a size may have a fraction or an exponent.
fn is_tag(value: &str) -> bool {
    value.parse::<i64>().is_ok()
}

/// Whether a value may be the number of a datatype.
fn is_type(value: &str) -> bool {
    value == NO_TYPE || whole(value).is_ok_and(|number| number < MOST_TYPES)
}

/// How messages are written.
struct Form {
    is_tagged: bool,
    /// Size of the elements of messages without a datatype.
    default_bytes: u64,
}

impl Form {
    fn message(&self, lines: &Lines<'_>, action: &Action<'_>) -> Result<Edge, ImportError> {
        let mut arguments = action.arguments.iter().copied();
        let destination = lines.rank(arguments.next(), "destination", MAX_RANKS)?;
        if self.is_tagged {
            arguments.next().ok_or_else(|| lines.fault("the tag is missing"))?;
        }
        let elements = lines.amount(arguments.next(), "size")?;
        let element_bytes = match arguments.next() {
            None => self.default_bytes,
            Some(NO_TYPE) => 1,
            Some(kind) => {
                let kind = lines.whole(Some(kind), "datatype")?;
                TYPE_BYTES.get(kind as usize).copied().unwrap_or(1)
            }
        };
        if arguments.next().is_some() {
            return Err(lines.fault("a message without a tag has at most destination, size and datatype"));
        }
        let bytes = elements.checked_mul(element_bytes).ok_or_else(|| lines.overflow(Overflow))?;
        Ok(Edge { source: action.rank, destination, messages: 1, bytes })
    }
}
