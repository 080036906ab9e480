//! Time-independent traces as programs, with the meaning that `smpirun -replay` gives to actions: all
//! messages and collective operations are those of `MPI_COMM_WORLD`; `wait` completes the oldest request with
//! its source, destination and tag, and nothing if there is none; `waitall` completes all.
//!
//! A reduction computes after its messages. A receive from a negative rank (`MPI_PROC_NULL`, and in traces of
//! SMPI also `MPI_ANY_SOURCE`) is left out.

use std::collections::{HashMap, VecDeque};
use std::path::Path;

use hopmap_model::{Collective, CollectiveOperation, Context, Envelope, ProgramBuilder, to_u32};
use hopmap_text::{FileError, Line};

use super::{Action, Form, Kind, Message, Survey, action_files, each_action, exchange};
use crate::archive::log_count;

/// Reads a trace. `tags` is whether messages have tags; inferred if `None`. Also returns whether communication is left out. The caller
/// checks the program.
pub(crate) fn read_program(
    path: &Path,
    tags: Option<bool>,
    (flops_per_s, allow_truncated): (f64, bool),
    cx: &Context<'_>,
) -> Result<(ProgramBuilder, bool), FileError> {
    let files = action_files(path, cx)?;
    let survey = Survey::of(&files, allow_truncated, cx)?;
    let form = survey.form(path, tags)?;
    let ranks = survey.ranks.last_key_value().map_or(0, |(last, _)| last + 1);
    survey.check_ranks(ranks, path)?;
    let requests = (0..ranks).map(|_| Requests::default()).collect();
    let program = ProgramBuilder::new(ranks);
    let mut tags = AnyTags::default();
    if !survey.untold.is_empty() && form.is_tagged {
        for file in &files {
            each_action(file, allow_truncated, cx, |line, action| tags.look(&survey, &form, line, action))?;
        }
        tags.resolve();
    }
    let left_out = LeftOut::default();
    let mut reading = Reading { form, flops_per_s, program, requests, tags, left_out };
    for file in &files {
        each_action(file, allow_truncated, cx, |line, action| reading.action(line, action))?;
    }
    reading.complete_receives();
    reading.left_out.log(cx);
    survey.log_types(cx);
    Ok((reading.program, reading.left_out.remote > 0))
}

/// The tag of `MPI_ANY_TAG`, whose number depends on the version of SimGrid.
const ANY_TAG: u32 = u32::MAX;

/// What receives with any tag receive: the first message from their source that no earlier receive takes, because
/// messages of a pair do not overtake each other.
#[derive(Debug, Default)]
struct AnyTags {
    /// Tags of the messages and of the receives of pairs with such receives, in order.
    pairs: HashMap<(u32, u32), (Vec<u32>, Vec<u32>)>,
    /// Tags of what these receives receive, in order.
    received: HashMap<(u32, u32), VecDeque<u32>>,
}

impl AnyTags {
    fn look(
        &mut self,
        survey: &Survey,
        form: &Form,
        line: Line<'_>,
        action: &Action<'_>,
    ) -> Result<(), FileError> {
        let (sent, received) = match action.kind {
            Kind::Send => (form.message(line, action)?, None),
            Kind::Exchange => exchange(line, action)?,
            _ if action.is("recv") || action.is("irecv") => (None, form.message(line, action)?),
            _ => (None, None),
        };
        let rank = action.rank;
        let sent = sent.map(|message| ((rank, message.peer), message, true));
        let received = received.map(|message| ((message.peer, rank), message, false));
        for (pair, message, is_sent) in sent.into_iter().chain(received) {
            if survey.untold.contains(&pair) {
                let tag = envelope(line, message)?.tag;
                let tags = self.pairs.entry(pair).or_default();
                if is_sent { tags.0.push(tag) } else { tags.1.push(tag) }
            }
        }
        Ok(())
    }

    fn resolve(&mut self) {
        for (pair, (sent, received)) in self.pairs.drain() {
            // The places of the messages that nothing has received, by tag, and of those of any tag.
            let mut by_tag: HashMap<u32, VecDeque<usize>> = HashMap::new();
            (0..).zip(&sent).for_each(|(place, tag)| by_tag.entry(*tag).or_default().push_back(place));
            let (mut taken, mut next) = (vec![false; sent.len()], 0);
            for tag in received {
                let place = match tag {
                    ANY_TAG => {
                        next += taken[next..].iter().take_while(|taken| **taken).count();
                        let tag = sent.get(next).copied();
                        self.received.entry(pair).or_default().push_back(tag.unwrap_or_default());
                        tag.and_then(|tag| by_tag.get_mut(&tag))
                    }
                    tag => by_tag.get_mut(&tag),
                };
                if let Some(place) = place.and_then(VecDeque::pop_front) {
                    taken[place] = true;
                }
            }
        }
    }

    /// The tag of the message of the next receive with any tag.
    fn next(&mut self, pair: (u32, u32)) -> u32 {
        self.received.get_mut(&pair).and_then(VecDeque::pop_front).unwrap_or_default()
    }
}

/// Source, destination and tag of a request.
type Key = (u32, u32, u32);

/// The active requests of a rank.
#[derive(Debug, Default)]
struct Requests {
    /// By key, the oldest first.
    by_key: HashMap<Key, VecDeque<(u32, bool)>>,
    /// In traces without tags, where `wait` completes the latest.
    latest: Vec<u32>,
}

/// Counters of what is left out or changed.
#[derive(Debug, Default)]
struct LeftOut {
    negative: u64,
    remote: u64,
    synchronous: u64,
    nonblocking: u64,
    incomplete: u64,
}

struct Reading {
    form: Form,
    flops_per_s: f64,
    program: ProgramBuilder,
    requests: Vec<Requests>,
    tags: AnyTags,
    left_out: LeftOut,
}

impl Reading {
    fn action(&mut self, line: Line<'_>, action: &Action<'_>) -> Result<(), FileError> {
        let rank = action.rank;
        let name = action.name.to_ascii_lowercase();
        match name.as_str() {
            "compute" => {
                let flops = line.real(action.arguments.first().copied(), "number of operations")?;
                self.program.compute(rank, flops / self.flops_per_s);
            }
            "sleep" => {
                let seconds = line.real(action.arguments.first().copied(), "number of seconds")?;
                self.program.compute(rank, seconds);
            }
            "recv" | "irecv" => self.message(line, action, false, name == "irecv")?,
            "wait" => {
                if let Some(request) = self.request(line, action, true)? {
                    self.program.wait(rank, request);
                }
            }
            "test" => {
                if let Some(request) = self.request(line, action, false)? {
                    self.program.test(rank, request);
                }
            }
            "waitall" => {
                self.program.waitall(rank);
                self.requests[rank as usize] = Requests::default();
            }
            "waitany" | "waitsome" => {
                let what = format!("`{}` does not say which requests complete", action.name);
                return Err(line.error(what));
            }
            _ if action.kind == Kind::Send => {
                let synchronous = matches!(name.as_str(), "ssend" | "issend");
                self.left_out.synchronous += u64::from(synchronous);
                let nonblocking = matches!(name.as_str(), "isend" | "issend" | "ibsend");
                self.message(line, action, true, nonblocking)?;
            }
            _ if action.kind == Kind::Exchange => self.exchange(line, action)?,
            _ if action.kind == Kind::Start => {
                let what = format!("`{}` does not say who sends the message to a receiver", action.name);
                return Err(line.error(what));
            }
            _ if action.kind == Kind::Other => self.collective(line, action, &name)?,
            window if window.starts_with("win_") => self.left_out.remote += 1,
            // Communicators, probes and tests for several requests.
            _ => {}
        }
        Ok(())
    }

    fn message(
        &mut self,
        line: Line<'_>,
        action: &Action<'_>,
        sends: bool,
        nonblocking: bool,
    ) -> Result<(), FileError> {
        let Some(message) = self.form.message(line, action)? else {
            self.left_out.negative += 1;
            return Ok(());
        };
        let mut envelope = envelope(line, message)?;
        let (rank, bytes, program) = (action.rank, message.bytes, &mut self.program);
        let written = envelope.tag;
        if written == ANY_TAG {
            if sends {
                return Err(line.error("a message is sent with a negative tag"));
            }
            envelope.tag = self.tags.next((envelope.peer, rank));
        }
        match (sends, nonblocking) {
            (true, false) => program.send(rank, envelope, bytes),
            (false, false) => program.recv(rank, envelope, bytes),
            (_, true) => {
                let (key, request) = match sends {
                    true => ((rank, envelope.peer, written), program.isend(rank, envelope, bytes)),
                    false => ((envelope.peer, rank, written), program.irecv(rank, envelope, bytes)),
                };
                self.requests[rank as usize].add(key, (request, !sends), self.form.is_tagged);
            }
        }
        Ok(())
    }

    /// `sendRecv`, which has no tags.
    fn exchange(&mut self, line: Line<'_>, action: &Action<'_>) -> Result<(), FileError> {
        let (sent, received) = exchange(line, action)?;
        self.left_out.negative += u64::from(sent.is_none()) + u64::from(received.is_none());
        let (rank, program) = (action.rank, &mut self.program);
        let to = |message: Message<'_>| Envelope { peer: message.peer, tag: 0, communicator: 0 };
        let request = received.map(|message| program.irecv(rank, to(message), message.bytes));
        if let Some(message) = sent {
            program.send(rank, to(message), message.bytes);
        }
        if let Some(request) = request {
            program.wait(rank, request);
        }
        Ok(())
    }

    /// The active request that a `wait` or `test` refers to.
    fn request(
        &mut self,
        line: Line<'_>,
        action: &Action<'_>,
        completes: bool,
    ) -> Result<Option<u32>, FileError> {
        let requests = &mut self.requests[action.rank as usize];
        if !self.form.is_tagged {
            return Ok(if completes { requests.latest.pop() } else { requests.latest.last().copied() });
        }
        let [source, destination, tag] = action.arguments[..] else {
            return Err(line.error(format!("`{}` has 3 arguments: source, destination and tag", action.name)));
        };
        let parse = |text: &str| text.parse::<u32>().ok();
        // Requests of messages that are left out have negative ranks.
        let (Some(source), Some(destination)) = (parse(source), parse(destination)) else { return Ok(None) };
        let mut oldest = |tag| requests.oldest((source, destination, tag), completes);
        Ok(parse(tag).and_then(&mut oldest).or_else(|| oldest(ANY_TAG)))
    }

    fn collective(&mut self, line: Line<'_>, action: &Action<'_>, name: &str) -> Result<(), FileError> {
        let (name, nonblocking) = match CollectiveArguments::of_name(name) {
            Some(_) => (name, false),
            None => (name.strip_prefix('i').unwrap_or(name), true),
        };
        let Some(arguments) = CollectiveArguments::of_name(name) else {
            if matches!(name, "alltoallw") {
                return Err(line.error("the sizes of `alltoallw` are not in the trace"));
            }
            self.left_out.remote += 1;
            return Ok(());
        };
        self.left_out.nonblocking += u64::from(nonblocking);
        let Sizes { bytes, root, flops } = arguments.sizes(line, action, &self.form, self.program.ranks())?;
        let collective = Collective { communicator: 0, operation: arguments.operation, root };
        self.program.collective(action.rank, collective, bytes);
        self.program.compute(action.rank, flops / self.flops_per_s);
        Ok(())
    }

    /// Waits for receives that a test completed, or that nothing did, at the end of their rank.
    fn complete_receives(&mut self) {
        for (rank, requests) in (0..).zip(&self.requests) {
            let receives = requests.by_key.values().flatten().filter(|(_, receives)| *receives);
            let mut active: Vec<u32> = receives.map(|(request, _)| *request).collect();
            active.extend(&requests.latest);
            active.sort_unstable();
            self.left_out.incomplete += active.len() as u64;
            active.into_iter().for_each(|request| self.program.wait(rank, request));
        }
    }
}

impl Requests {
    fn add(&mut self, key: Key, request: (u32, bool), is_tagged: bool) {
        match is_tagged {
            true => self.by_key.entry(key).or_default().push_back(request),
            false => self.latest.push(request.0),
        }
    }

    /// The oldest request of a key, removed if it completes.
    fn oldest(&mut self, key: Key, completes: bool) -> Option<u32> {
        let requests = self.by_key.get_mut(&key)?;
        let (request, _) = *requests.front()?;
        if completes {
            requests.pop_front();
            if requests.is_empty() {
                self.by_key.remove(&key);
            }
        }
        Some(request)
    }
}

/// The envelope of a message.
fn envelope(line: Line<'_>, message: Message<'_>) -> Result<Envelope, FileError> {
    let tag = match message.tag {
        None => 0,
        Some(tag) if tag.parse::<i64>().is_ok_and(|tag| tag < 0) => ANY_TAG,
        Some(tag) => line.below(Some(tag), "tag", ANY_TAG)?,
    };
    Ok(Envelope { peer: message.peer, tag, communicator: 0 })
}

/// How the sizes of a collective operation are written. `n` is the number of ranks.
#[derive(Debug, Clone, Copy)]
enum Layout {
    /// Nothing.
    None,
    /// Elements, root, datatype.
    Broadcast,
    /// Elements, flops, root, datatype.
    Reduce,
    /// Elements, flops, datatype.
    AllReduce,
    /// Elements sent, received, root if the operation has one, datatypes.
    Block { received: bool },
    /// Elements sent, `n` received, root if the operation has one, datatypes.
    Contribution,
    /// `n` elements sent, received, root, datatypes.
    Share,
    /// `n` elements received, flops, datatype.
    ReduceScatter,
    /// Size of the buffer, `n` elements sent, size of the buffer, `n` received, datatypes.
    AllToAllV,
}

/// A collective operation and how its sizes are written.
#[derive(Debug, Clone, Copy)]
struct CollectiveArguments {
    operation: CollectiveOperation,
    layout: Layout,
}

/// The sizes of a collective operation of a rank.
struct Sizes {
    bytes: u64,
    root: Option<u32>,
    /// Computation after the operation.
    flops: f64,
}

impl CollectiveArguments {
    /// The operation of an action in lower case.
    fn of_name(name: &str) -> Option<Self> {
        use CollectiveOperation as Operation;
        let (operation, layout) = match name {
            "barrier" => (Operation::Barrier, Layout::None),
            "bcast" => (Operation::Broadcast, Layout::Broadcast),
            "reduce" => (Operation::Reduce, Layout::Reduce),
            "allreduce" => (Operation::AllReduce, Layout::AllReduce),
            "scan" => (Operation::Scan, Layout::AllReduce),
            "exscan" => (Operation::ExclusiveScan, Layout::AllReduce),
            "gather" => (Operation::Gather, Layout::Block { received: false }),
            "allgather" => (Operation::AllGather, Layout::Block { received: false }),
            "alltoall" => (Operation::AllToAll, Layout::Block { received: false }),
            "scatter" => (Operation::Scatter, Layout::Block { received: true }),
            "gatherv" => (Operation::GatherV, Layout::Contribution),
            "allgatherv" => (Operation::AllGatherV, Layout::Contribution),
            "scatterv" => (Operation::ScatterV, Layout::Share),
            "reducescatter" => (Operation::ReduceScatter, Layout::ReduceScatter),
            "alltoallv" => (Operation::AllToAllV, Layout::AllToAllV),
            _ => return None,
        };
        Some(Self { operation, layout })
    }

    /// The sizes, by the positions of the replay of SMPI (`smpi_replay.cpp`).
    fn sizes(self, line: Line<'_>, action: &Action<'_>, form: &Form, ranks: u32) -> Result<Sizes, FileError> {
        let at = |place: usize| action.arguments.get(place).copied();
        let (rank, ranks) = (action.rank as usize, ranks as usize);
        let has_root = usize::from(self.operation.has_root());
        // Positions of elements, root, flops and datatype.
        let (elements, root, flops, kind) = match self.layout {
            Layout::None => return Ok(Sizes { bytes: 0, root: None, flops: 0.0 }),
            Layout::Broadcast => (0, 1, None, 2),
            Layout::Reduce => (0, 2, Some(1), 3),
            Layout::AllReduce => (0, 0, Some(1), 2),
            Layout::Block { received } => {
                let sides = usize::from(received);
                (sides, 2, None, 2 + has_root + sides)
            }
            Layout::Contribution => (0, 1 + ranks, None, 1 + ranks + has_root),
            Layout::Share => (ranks, ranks + 1, None, ranks + 3),
            Layout::ReduceScatter => (rank, 0, Some(ranks), ranks + 1),
            Layout::AllToAllV => {
                let kind = at(2 * ranks + 2);
                let mut bytes = 0u128;
                for place in 1..=ranks {
                    bytes += u128::from(form.bytes(line, "size", at(place), kind)?);
                }
                let mean = bytes.div_ceil(ranks.max(1) as u128);
                let bytes = u64::try_from(mean).unwrap_or(u64::MAX);
                return Ok(Sizes { bytes, root: None, flops: 0.0 });
            }
        };
        let root = match (has_root, at(root)) {
            (0, _) => None,
            (_, None) => Some(0),
            (_, root) => Some(line.below(root, "root", to_u32(ranks))?),
        };
        Ok(Sizes {
            bytes: form.bytes(line, "size", at(elements), at(kind))?,
            root,
            flops: flops.map_or(Ok(0.0), |place| line.real(at(place), "number of operations"))?,
        })
    }
}

impl LeftOut {
    fn log(&self, cx: &Context<'_>) {
        let warn = |what: &str, count| log_count(cx, &format!("warning: {what}"), count);
        warn(
            "messages to or from a negative rank (MPI_PROC_NULL, or MPI_ANY_SOURCE), which are not in the program",
            self.negative,
        );
        warn("remote memory accesses and their synchronisation, which are not in the program", self.remote);
        warn("synchronous sends, which are standard sends in the program", self.synchronous);
        warn("nonblocking collective operations, which block where they start", self.nonblocking);
        warn("receives without a `wait`, which complete at the end of their rank", self.incomplete);
    }
}

/// Help for programs in which messages have no counterpart.
pub(crate) const UNMATCHED: &str = "actions are missing in the trace, or a receive from MPI_ANY_SOURCE was left out: \
                                    SMPI does not record which message it received";
