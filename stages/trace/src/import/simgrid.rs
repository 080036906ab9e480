//! Time-independent traces of SimGrid: one file of actions, or an index with one file per rank.
//!
//! ```text
//! 0 init
//! 0 send 1 42 1e6 0      rank, action, destination, tag, elements, datatype: since SimGrid 3.20
//! 0 send 1 1e6 0         without the tag: before
//! ```
//!
//! Source: `smpi_replay.cpp` and `smpi_datatype.cpp` of SimGrid, and the output of SMPI 3.32. The datatype
//! is optional; without it, `init` with an argument means `MPI_DOUBLE`, and `init` alone `MPI_BYTE`. SMPI
//! writes world ranks for every communicator, and a negative rank for `MPI_PROC_NULL`. Computation is given
//! in flops, so times are unknown.

mod program;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use hopmap_model::{Context, Edge, InputPath, TaskGraph, to_u32};
use hopmap_text::{CUT, FileError, Foreign, Line, Lines, Rows, is_sentence, numbers, shown};

use super::reader::{Reader, Sample, warn_of_foreign};
use crate::archive::{log_count, warn_of_cut};
use crate::matrix::{Accumulator, MAX_RANKS, Overflow};

pub(crate) use program::{UNMATCHED, read_program};

pub(super) static READER: Reader = Reader {
    recognises: |sample| {
        sample.first_line().is_some_and(|line| is_action(line) || is_index(sample.path, line))
    },
    files: |path| Ok(files(path)?),
    read: |path, options, cx| Ok(read(path, None, options.allow_truncated, cx)?),
    rows: Rows::like(is_action),
    ..Reader::BINARY
};

/// Only on explicit request.
pub(super) static TAGGED: Reader = explicit::<true>();
pub(super) static UNTAGGED: Reader = explicit::<false>();

const fn explicit<const TAGS: bool>() -> Reader {
    Reader {
        recognises: |_| false,
        files: |path| Ok(files(path)?),
        read: |path, options, cx| Ok(read(path, Some(TAGS), options.allow_truncated, cx)?),
        rows: Rows::like(is_action),
        ..Reader::BINARY
    }
}

pub(super) const HINT: &str = "an action is `rank send destination tag size datatype`, or without the tag before SimGrid 3.20; an \
                    index lists one file of actions per line, relative to the folder of the index";

/// Element sizes by datatype number (`CREATE_MPI_DATATYPE`).
const TYPE_BYTES: [u64; 56] = [
    8, 4, 1, 2, 8, 4, 1, 8, 1, 1, 2, 4, 8, 8, 16, 4, 1, 1, 2, 4, 8, 1, 2, 4, 8, 8, 16, 32, 8, 8, 8, 16, 16,
    8, 8, 8, 16, 16, 4, 4, 8, 16, 8, 16, 16, 4, 2, 4, 8, 16, 32, 0, 0, 1, 8, 8,
];

/// Datatype number of user-defined types.
const NO_TYPE: &str = "-1";

/// Reads a trace. `tags` is whether messages have tags; inferred if `None`.
fn read(
    path: &Path,
    tags: Option<bool>,
    allow_truncated: bool,
    cx: &Context<'_>,
) -> Result<TaskGraph, FileError> {
    let files = action_files(path, cx)?;
    let survey = Survey::of(&files, allow_truncated, cx)?;
    let form = survey.form(path, tags)?;
    let mut accumulator = Accumulator::default();
    for file in &files {
        each_action(file, allow_truncated, cx, |line, action| {
            accumulator.see(action.rank);
            let edge = match action.kind {
                Kind::Send => form.message(line, action)?.map(|message| message.from(action.rank)),
                Kind::Exchange => exchange(line, action)?.0.map(|sent| sent.from(action.rank)),
                Kind::Start => started(line, action)?,
                Kind::Other | Kind::Silent => None,
            };
            edge.map_or(Ok(()), |edge| accumulator.add(edge))
                .map_err(|overflow| line.error(overflow.to_string()))
        })?;
    }
    survey.log(cx);
    let graph = accumulator.into_graph();
    survey.check_ranks(to_u32(graph.ranks()), path)?;
    Ok(graph)
}

/// All files of a trace.
pub(crate) fn files(path: &Path) -> Result<Vec<InputPath>, FileError> {
    let actions = action_files(path, &Context::detached())?;
    let listed = actions.into_iter().enumerate().filter(|(_, file)| file != path);
    let listed = listed.map(|(place, file)| InputPath::named(file, format!("actions/{place}")));
    Ok([InputPath::named(path, "trace")].into_iter().chain(listed).collect())
}

/// The files with the actions: the file itself, or those it lists.
fn action_files(path: &Path, cx: &Context<'_>) -> Result<Vec<PathBuf>, FileError> {
    let mut lines = Lines::open(path, HINT)?.with(cx).lossy().of_rows(READER.rows).commented_by(b'#');
    let mut folder = path.parent().unwrap_or(Path::new(".")).to_owned();
    let mut files = Vec::new();
    let mut seen = HashSet::new();
    while let Some(line) = lines.next_filled()? {
        let text = line.text.trim();
        if text.starts_with('#') {
            continue;
        }
        if files.is_empty() && is_action(text) {
            return Ok(vec![path.to_owned()]);
        }
        if files.len() == MAX_RANKS as usize {
            return Err(line.error(format!("the index lists more than {MAX_RANKS} files")));
        }
        if files.is_empty()
            && let Some(base) = base(path, text)
            && listed(&folder, text).is_none()
        {
            cx.log(format_args!("files of the index are relative to `{}`", base.display()));
            folder = base;
        }
        let missing = || line.error(format!("file `{}` does not exist", folder.join(text).display()));
        let file = listed(&folder, text).ok_or_else(missing)?;
        // A file may contain the actions of several ranks and be listed once per rank.
        if seen.insert(file.clone()) {
            files.push(file);
        }
    }
    if files.is_empty() {
        return Err(lines.error("the file does not contain actions"));
    }
    warn_of_foreign(lines.foreign(), cx);
    Ok(files)
}

/// A file of an index, which may be packed since.
fn listed(folder: &Path, name: &str) -> Option<PathBuf> {
    ["", ".gz"].iter().map(|end| folder.join(format!("{name}{end}"))).find(|file| file.is_file())
}

/// The folder that the files of an index are relative to: its own, or else the nearest one above it. SMPI writes them
/// relative to the folder of the run, and the index may be in a folder of its own.
fn base(path: &Path, first: &str) -> Option<PathBuf> {
    let path = std::path::absolute(path).ok()?;
    path.parent()?.ancestors().find(|folder| listed(folder, first).is_some()).map(Path::to_owned)
}

/// Whether a line is an action.
fn is_action(line: &str) -> bool {
    let mut words = line.split_ascii_whitespace();
    let is_rank = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
    words.next().is_some_and(is_rank) && words.next().is_some_and(|word| Kind::of(word).is_some())
}

/// Whether a line of a file names another.
pub(super) fn lists(path: &Path, line: &str) -> bool {
    base(path, line).and_then(|folder| listed(&folder, line)).is_some_and(|file| file != path)
}

/// Whether a file is an index: its first line names a file of actions.
fn is_index(path: &Path, line: &str) -> bool {
    let Some(first) = base(path, line).and_then(|folder| listed(&folder, line)) else { return false };
    if std::path::absolute(path).is_ok_and(|path| path == first) {
        return false;
    }
    Sample::new(&first).is_ok_and(|sample| sample.first_line().is_some_and(is_action))
}

/// Why a list of files is not taken for an index, with the line; `None` if the file does not list others.
pub(super) fn doubt(sample: &Sample<'_>) -> Option<(usize, String)> {
    let lines = (1..).zip(sample.text.lines().map(str::trim));
    let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let is_path =
        |line: &str| line.contains(['/', '.']) && !line.contains([' ', ',', ';', '\t', '=', '<', '"']);
    let (number, first) = lines.clone().next()?;
    if !lines.clone().all(|(_, line)| is_path(line) && line.parse::<f64>().is_err()) {
        return None;
    }
    let folder = base(sample.path, first).or_else(|| Some(sample.path.parent()?.to_owned()))?;
    let missing = lines.into_iter().find(|(_, line)| listed(&folder, line).is_none());
    let missing = missing
        .map(|(number, line)| (number, format!("file `{}` does not exist", folder.join(line).display())));
    missing.or_else(|| Some((number, format!("`{}` does not begin with an action", shown(first)))))
}

/// Kind of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Sends a message.
    Send,
    /// Sends and receives.
    Exchange,
    /// Starts a persistent request, to send or to receive.
    Start,
    /// Moves data, but is not counted.
    Other,
    /// Does not move data, or is counted at the sender.
    Silent,
}

impl Kind {
    /// The kind of a known action, case-insensitive.
    fn of(name: &str) -> Option<Self> {
        Some(match name.to_ascii_lowercase().as_str() {
            "sendrecv" => Self::Exchange,
            "start" => Self::Start,
            "send" | "isend" | "ssend" | "issend" | "bsend" | "ibsend" => Self::Send,
            "init" | "finalize" | "comm_size" | "comm_split" | "comm_dup" | "compute" | "sleep" | "recv"
            | "irecv" | "wait" | "waitall" | "waitany" | "waitsome" | "test" | "testall" | "testany"
            | "testsome" | "probe" | "location" => Self::Silent,
            // Operations on RMA windows that do not move data.
            window if window.starts_with("win_") => Self::Silent,
            "barrier" | "bcast" | "reduce" | "allreduce" | "alltoall" | "alltoallv" | "alltoallw"
            | "gather" | "gatherv" | "scatter" | "scatterv" | "allgather" | "allgatherv"
            | "reducescatter" | "scan" | "exscan" | "ibarrier" | "ibcast" | "ireduce" | "iallreduce"
            | "ialltoall" | "ialltoallv" | "ialltoallw" | "igather" | "igatherv" | "iscatter"
            | "iscatterv" | "iallgather" | "iallgatherv" | "ireducescatter" | "iscan" | "iexscan" | "put"
            | "get" | "accumulate" | "get_accumulate" | "rput" | "rget" | "raccumulate"
            | "rget_accumulate" | "get_accu" | "rget_accu" => Self::Other,
            _ => return None,
        })
    }
}

/// One line of a trace.
struct Action<'l> {
    rank: u32,
    name: &'l str,
    kind: Kind,
    arguments: Vec<&'l str>,
}

impl Action<'_> {
    fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }
}

/// Calls a function for every action of a file. Returns the lines, which say what was skipped.
fn each_action<'a>(
    path: &Path,
    allow_truncated: bool,
    cx: &Context<'a>,
    mut visit: impl FnMut(Line<'_>, &Action<'_>) -> Result<(), FileError>,
) -> Result<Lines<'a>, FileError> {
    let rows = Rows { is_other: is_sentence, ..READER.rows };
    let lines = Lines::open(path, HINT)?.with(cx).lossy().of_rows(rows).commented_by(b'#');
    let mut lines = lines.may_be_cut(allow_truncated, CUT).whole_if(|line| line.ends_with(b" finalize"));
    while let Some(line) = lines.next_filled()? {
        let mut words = line.words().peekable();
        if words.peek().is_some_and(|word| word.starts_with('#')) {
            continue;
        }
        let rank = line.below(words.next(), "rank", MAX_RANKS)?;
        let name = words.next().ok_or_else(|| line.error("the action is missing"))?;
        let kind = Kind::of(name).ok_or_else(|| line.error(format!("unknown action `{}`", shown(name))))?;
        let action = Action { rank, name, kind, arguments: words.collect() };
        visit(line, &action)?;
    }
    Ok(lines)
}

/// Evidence of the form of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Sign {
    /// An action without a tag.
    Untagged,
    /// An action with a tag.
    Tagged,
    /// A message whose arguments may be destination, tag and size, or destination, size and datatype.
    Unclear,
    /// `init` with an argument.
    Doubles,
    /// `init` without an argument.
    Bytes,
    /// A message of elements of unknown size.
    OwnType,
}

/// Result of the first pass over a trace.
#[derive(Debug, Default)]
struct Survey {
    signs: BTreeSet<Sign>,
    /// Ranks with actions: file and line of the last one, unless that is `finalize`.
    ranks: BTreeMap<u32, Option<(usize, usize)>>,
    /// Actions that move data, but are not counted.
    others: u64,
    /// Ranks with `init`.
    begun: BTreeSet<u32>,
    /// Senders and receivers of receives with any tag.
    untold: BTreeSet<(u32, u32)>,
}

impl Survey {
    /// Looks at all files.
    fn of(files: &[PathBuf], allow_truncated: bool, cx: &Context<'_>) -> Result<Self, FileError> {
        let (mut survey, mut cut, mut foreign) = (Self::default(), 0, None);
        for (number, file) in files.iter().enumerate() {
            let lines = each_action(file, allow_truncated, cx, |line, action| {
                let last = (!action.is("finalize")).then_some((number, line.number));
                survey.ranks.insert(action.rank, last);
                survey.look(line, action)
            })?;
            cut += u64::from(lines.is_cut());
            Foreign::add(&mut foreign, lines.foreign(), file);
        }
        warn_of_foreign(foreign.as_ref(), cx);
        warn_of_cut(cut, cx);
        // Where other ranks end with `finalize`, those that do not were cut between two lines.
        let open = survey.ranks.iter().filter_map(|(rank, last)| Some((rank, (*last)?)));
        let unended = open.clone().count();
        if unended < survey.ranks.len() {
            if let (Some((rank, (file, line))), false) = (open.min(), allow_truncated) {
                let problem = format!("the last action of rank {rank} is not `finalize`, as of other ranks");
                return Err(FileError::at(line, problem, CUT).in_file(&files[file]));
            }
            log_count(cx, "warning: ranks that do not end with `finalize`, unlike others", unended as u64);
        }
        Ok(survey)
    }

    fn look(&mut self, line: Line<'_>, action: &Action<'_>) -> Result<(), FileError> {
        let is_alone = action.arguments.is_empty();
        if action.is("init") && !self.begun.insert(action.rank) {
            let problem = format!("rank {} begins again here", action.rank);
            return Err(line.error(problem).with_help("traces were joined: pass each in files of its own"));
        }
        let sign = if action.is("init") {
            if is_alone { Sign::Bytes } else { Sign::Doubles }
        } else if action.is("wait") {
            if is_alone { Sign::Untagged } else { Sign::Tagged }
        } else if action.kind == Kind::Send || action.is("recv") || action.is("irecv") {
            if action.kind == Kind::Send && action.arguments.last() == Some(&NO_TYPE) {
                self.signs.insert(Sign::OwnType);
            }
            if let [peer, tag, ..] = action.arguments[..]
                && action.kind != Kind::Send
                && let Ok(peer) = peer.parse()
                && tag.starts_with('-')
            {
                self.untold.insert((peer, action.rank));
            }
            match action.arguments[..] {
                [_, _, _, _] => Sign::Tagged,
                [_, second, third] if is_type(third) && is_tag(second) => Sign::Unclear,
                [_, second, _] if is_tag(second) => Sign::Tagged,
                [_, _] | [_, _, _] => Sign::Untagged,
                _ => return Err(line.error(format!("`{}` has from 2 to 4 arguments", action.name))),
            }
        } else {
            self.others += u64::from(action.kind == Kind::Other);
            return Ok(());
        };
        self.signs.insert(sign);
        Ok(())
    }

    /// Checks that each of this number of ranks has actions.
    fn check_ranks(&self, ranks: u32, path: &Path) -> Result<(), FileError> {
        match (0..ranks).find(|rank| !self.ranks.contains_key(rank)) {
            Some(missing) => {
                let what = format!("rank {missing} of {ranks} has no action, not even `init`");
                Err(FileError::new(what, HINT).in_file(path))
            }
            None => Ok(()),
        }
    }

    fn saw(&self, sign: Sign) -> bool {
        self.signs.contains(&sign)
    }

    /// The form of the messages of the trace.
    fn form(&self, path: &Path, tags: Option<bool>) -> Result<Form, FileError> {
        let refuse = |what: &str| FileError::new(what, HINT).in_file(path);
        if self.saw(Sign::Doubles) && self.saw(Sign::Bytes) {
            return Err(refuse("some ranks have `init` with an argument and some without"));
        }
        let is_tagged = match (tags, self.saw(Sign::Untagged), self.saw(Sign::Tagged)) {
            (Some(tags), _, _) => tags,
            (None, true, true) => return Err(refuse("some messages have tags and some do not")),
            (None, false, false) if self.saw(Sign::Unclear) => {
                let ask = "`format = \"simgrid-tagged\"` or `format = \"simgrid-untagged\"`";
                return Err(refuse(&format!("cannot infer whether its messages have tags: set {ask}")));
            }
            (None, is_untagged, _) => !is_untagged,
        };
        Ok(Form { is_tagged, default_bytes: if self.saw(Sign::Doubles) { 8 } else { 1 } })
    }

    /// Warns about what the graph omits.
    fn log(&self, cx: &Context<'_>) {
        let message = "warning: collective operations and remote memory accesses (once per process), which are not counted";
        log_count(cx, message, self.others);
        self.log_types(cx);
    }

    /// Warns about elements of unknown size.
    fn log_types(&self, cx: &Context<'_>) {
        if self.saw(Sign::OwnType) {
            cx.log("warning: the trace does not contain the sizes of user-defined types: each element counts as one byte");
        }
    }
}

/// Whether a value may be a tag; sizes may have a fraction or an exponent.
fn is_tag(value: &str) -> bool {
    value.parse::<i64>().is_ok()
}

/// Whether a value may be a datatype number.
fn is_type(value: &str) -> bool {
    value == NO_TYPE || numbers::whole(value).is_ok_and(|number| number < TYPE_BYTES.len() as u64)
}

/// Form of the messages of a trace.
struct Form {
    is_tagged: bool,
    /// Element size of messages without a datatype.
    default_bytes: u64,
}

/// The message of an action.
#[derive(Debug, Clone, Copy)]
struct Message<'l> {
    /// The other end.
    peer: u32,
    /// Its tag, not parsed; `None` in forms without tags.
    tag: Option<&'l str>,
    bytes: u64,
}

impl Message<'_> {
    /// The traffic of a message that a rank sends.
    fn from(self, source: u32) -> Edge {
        Edge { source, destination: self.peer, messages: 1, bytes: self.bytes }
    }
}

impl Form {
    /// The message of a send or receive; `None` for a negative peer.
    fn message<'l>(&self, line: Line<'_>, action: &Action<'l>) -> Result<Option<Message<'l>>, FileError> {
        let mut arguments = action.arguments.iter().copied();
        let Some(peer) = partner(line, arguments.next())? else { return Ok(None) };
        let tag = match self.is_tagged {
            true => Some(arguments.next().ok_or_else(|| line.error("missing tag"))?),
            false => None,
        };
        let bytes = self.bytes(line, "size", arguments.next(), arguments.next())?;
        if arguments.next().is_some() {
            return Err(line.error("a message without a tag has at most destination, size and datatype"));
        }
        Ok(Some(Message { peer, tag, bytes }))
    }

    /// Bytes of a number of elements of a datatype, by default of the trace.
    fn bytes(
        &self,
        line: Line<'_>,
        name: &str,
        elements: Option<&str>,
        kind: Option<&str>,
    ) -> Result<u64, FileError> {
        let elements = line.amount(elements, name)?;
        product(line, elements, kind.map_or(Ok(self.default_bytes), |kind| element_bytes(line, kind))?)
    }
}

/// A sent and a received message, if they have another end.
type Exchange = (Option<Message<'static>>, Option<Message<'static>>);

/// `sendRecv`: size and destination of the send, the same of the receive, and both datatypes.
fn exchange(line: Line<'_>, action: &Action<'_>) -> Result<Exchange, FileError> {
    let [sent, destination, received, source, sent_kind, received_kind] = action.arguments[..] else {
        return Err(line.error(format!("`{}` has 6 arguments", action.name)));
    };
    let message = |peer, elements, kind| {
        let Some(peer) = partner(line, Some(peer))? else { return Ok(None) };
        let bytes = product(line, line.amount(Some(elements), "size")?, element_bytes(line, kind)?)?;
        Ok(Some(Message { peer, tag: None, bytes }))
    };
    Ok((message(destination, sent, sent_kind)?, message(source, received, received_kind)?))
}

/// `Start`: receiver, tag, bytes and datatype, at the sender and at the receiver.
fn started(line: Line<'_>, action: &Action<'_>) -> Result<Option<Edge>, FileError> {
    let mut arguments = action.arguments.iter().copied();
    let Some(destination) = partner(line, arguments.next())? else { return Ok(None) };
    let bytes = line.amount(arguments.nth(1), "size")?;
    let edge = Edge { source: action.rank, destination, messages: 1, bytes };
    Ok((destination != action.rank).then_some(edge))
}

/// The receiver of a message; `None` for a negative rank.
fn partner(line: Line<'_>, value: Option<&str>) -> Result<Option<u32>, FileError> {
    match value {
        Some(value) if value.parse::<i64>().is_ok_and(|rank| rank < 0) => Ok(None),
        _ => line.below(value, "destination", MAX_RANKS).map(Some),
    }
}

/// Element size of a datatype.
fn element_bytes(line: Line<'_>, kind: &str) -> Result<u64, FileError> {
    if kind == NO_TYPE {
        return Ok(1);
    }
    let number = line.whole(Some(kind), "datatype")?;
    let bytes = usize::try_from(number).ok().and_then(|number| TYPE_BYTES.get(number)).copied();
    bytes.ok_or_else(|| line.error(format!("unknown datatype `{number}`")))
}

fn product(line: Line<'_>, elements: u64, element_bytes: u64) -> Result<u64, FileError> {
    elements.checked_mul(element_bytes).ok_or_else(|| line.error(Overflow.to_string()))
}
