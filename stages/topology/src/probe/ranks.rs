//! Probing between MPI ranks: `prober.c`, compiled with the user's mpicc, measures what this module plans.
//!
//! The launcher starts it once, as a queue might give other hosts the next time. In the folder of the launcher:
//!
//! | file | written by | meaning |
//! |---|---|---|
//! | `prober` | hopmap | the program |
//! | `plan` | hopmap, appended | steps: a line with kind and sampling, then `SOURCE DESTINATION BYTES` for each pair; `finish` |
//! | `results` | rank 0, appended | `host NAME` of every rank, then the results of each step; `stopped` |
//! | `begun` | rank 0 | MPI has started |
//! | `stop` | hopmap | end before the next step |
//!
//! A message is some lines and `end N`, their number. Both sides open, read and close, since NFS shows a reader what was
//! written before it has opened the file; half a line is read again. Launchers mix and prefix lines of standard output,
//! so nothing is said there.

use std::collections::{HashMap, VecDeque};
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write as _};
use std::mem::take;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use hopmap_durable::DurableError;
use hopmap_model::{Call, Context, Endpoint, Error, Launcher, Measurements, NodeState, Pair, ProbePhase};
use hopmap_mpi_environment::{
    Cache, Compiled, Compiler, CompilerError, Identity, LauncherKind, Mpi, Sources,
};

use super::calibrate::{Plan, alone_sampling, stream_sampling};
use super::sampling::{Record, Sampling, Timing};
use super::tournament::{Part, Steps, parts};
use crate::params::ProbeParams;
use hopmap_machines::params::MachineError;

/// Measures between the ranks that a launcher starts; `false` if it was stopped early.
pub(crate) fn probe_ranks(
    params: &ProbeParams,
    launcher: &dyn Launcher,
    cx: &Context<'_>,
) -> Result<(Measurements, bool), Error> {
    let compiled = compile(params, launcher, cx)?;
    let path = |name: &str| launcher.folder().join(name);
    let create = |name: &str, contents: &[u8]| {
        // All hosts reach this folder, other than the cache of this one.
        let file = OpenOptions::new().write(true).create_new(true).mode(0o700).open(path(name));
        file.and_then(|mut file| file.write_all(contents)).map_err(DurableError::io("write", &path(name)))
    };
    create("prober", &compiled.contents)?;
    create("plan", b"")?;
    create("results", b"")?;
    let mut probing = Probing::new(params, cx);
    let mut results = Results { path: path("results"), offset: 0, rest: Vec::new() };
    let mut look = || {
        results.read(&mut |line| probing.hear(line))?;
        append(&path("plan"), &take(&mut probing.plan))
    };
    launcher.run(&path("prober"), &mut look)?;
    look()?;
    Ok(probing.finish()?)
}

fn append(path: &Path, text: &str) -> Result<(), Error> {
    if text.is_empty() {
        return Ok(());
    }
    let file = OpenOptions::new().append(true).open(path);
    Ok(file.and_then(|mut file| file.write_all(text.as_bytes())).map_err(DurableError::io("write", path))?)
}

/// The program for the MPI of the launcher.
fn compile(
    params: &ProbeParams,
    launcher: &dyn Launcher,
    cx: &Context<'_>,
) -> Result<Compiled, CompilerError> {
    const SOURCE: &str = include_str!("prober.c");
    let build = |compiler: &Compiler, folder: &Path| {
        let (source, program) = (folder.join("prober.c"), folder.join("prober"));
        fs::write(&source, SOURCE).map_err(CompilerError::io("write", &source))?;
        let [from, to] = [&source, &program].map(|path| path.to_string_lossy());
        compiler.output(&["-std=gnu11", "-O2", "-w", &from, "-o", &to])?;
        Ok(program)
    };
    let hash = Sources::hash_of(&[SOURCE]);
    let sources = Sources { name: "prober", suffix: "", title: "the prober", hash, build: &build };
    // In `salloc -N 4 mpirun` and the like, the last word counts.
    let of_kind = |kind| launcher.words().iter().rev().find(|word| LauncherKind::of(word) == Some(kind));
    let starter = of_kind(LauncherKind::Ranks).or_else(|| of_kind(LauncherKind::Step));
    // One that is missing is an error when it is started.
    let identity = starter.and_then(|starter| Identity::of_launcher(starter).ok());
    let implementation = identity.as_ref().map(|identity| identity.implementation);
    let mpi = Mpi { implementation: implementation.filter(|mpi| mpi.abi().is_some()), abi: None };
    let (named, beside) = (params.mpicc.as_deref(), starter.map(|word| (word.as_str(), identity.as_ref())));
    Compiler::compile_for(&sources, &Cache::open(None)?, named, beside, mpi, &|line| cx.log(line))
}

/// The file that rank 0 appends to.
struct Results {
    path: PathBuf,
    offset: u64,
    /// The beginning of a line.
    rest: Vec<u8>,
}

impl Results {
    /// Longest line, and most bytes that are read at once.
    const LINE: usize = 1 << 12;
    const CHUNK: u64 = 1 << 20;

    /// Hears the lines that were added since the last call.
    fn read(&mut self, hear: &mut dyn FnMut(&str) -> Result<(), MachineError>) -> Result<(), Error> {
        let failed = |error| DurableError::io("read", &self.path)(error);
        let mut file = File::open(&self.path).map_err(failed)?;
        file.seek(SeekFrom::Start(self.offset)).map_err(failed)?;
        loop {
            let read = (&file).take(Self::CHUNK).read_to_end(&mut self.rest).map_err(failed)?;
            self.offset += read as u64;
            let whole = self.rest.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
            for line in self.rest[..whole].split_inclusive(|&byte| byte == b'\n') {
                hear(String::from_utf8_lossy(line).trim_end_matches('\n'))?;
            }
            self.rest.drain(..whole);
            if self.rest.len() > Self::LINE {
                return Err(invalid(&String::from_utf8_lossy(&self.rest)).into());
            }
            if read == 0 {
                return Ok(());
            }
        }
    }
}

/// Assignment of ranks to endpoints.
struct Placed {
    endpoints: Vec<Endpoint>,
    /// Rank of each endpoint.
    ranks: Vec<u32>,
}

impl Placed {
    /// Assigns endpoints host by host, with hosts ordered by their first ranks.
    fn new(names: &[String], inside: bool) -> Self {
        let mut hosts: Vec<(&String, Vec<u32>)> = Vec::new();
        let mut index: HashMap<&String, usize> = HashMap::new();
        for (rank, name) in (0..).zip(names) {
            let host = *index.entry(name).or_insert_with(|| {
                hosts.push((name, Vec::new()));
                hosts.len() - 1
            });
            hosts[host].1.push(rank);
        }
        let width = if inside { usize::MAX } else { 1 };
        let mut placed = Self { endpoints: Vec::new(), ranks: Vec::new() };
        for (name, ranks) in hosts {
            for (core, rank) in (0..).zip(ranks).take(width) {
                placed.endpoints.push(Endpoint { host: name.clone(), core, state: NodeState::Up });
                placed.ranks.push(rank);
            }
        }
        placed
    }
}

/// The first endpoints of all hosts, and the endpoints of each host.
pub(crate) fn groups(endpoints: &[Endpoint]) -> (Vec<Vec<u32>>, Vec<Vec<u32>>) {
    let mut inside: Vec<Vec<u32>> = Vec::new();
    let mut first = 0;
    for host in endpoints.chunk_by(|a, b| a.host == b.host) {
        inside.push((first..first + host.len() as u32).collect());
        first += host.len() as u32;
    }
    (vec![inside.iter().map(|host| host[0]).collect()], inside)
}

/// There is no partner.
pub(super) fn alone(name: &str) -> MachineError {
    let help = "give at least two hosts, or start at least two processes";
    MachineError::new(format!("`{name}` has no partner: a measurement needs two hosts or cores"), help)
}

/// Ranks that a launcher of another MPI starts do not find each other either.
fn one_rank() -> MachineError {
    let help = "start at least two ranks; if the launcher does, name the mpicc of its MPI with `mpicc`";
    MachineError::new("the launcher started one rank, or ranks that do not find each other", help)
}

const SAME_FOLDER: &str = "check that all hosts see the same folder, and that nothing else writes to it";

/// What rank 0 has written is not what was asked for.
fn invalid(line: &str) -> MachineError {
    let line: String = line.chars().take(100).collect();
    let problem = format!("the ranks sent invalid measurements: `{}`", line.escape_debug());
    MachineError::new(problem, SAME_FOLDER)
}

/// What a step measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Round trips in both directions.
    Trips(ProbePhase),
    /// Round trips and calls of a pair alone.
    Alone,
    /// The same and the eager limit.
    Eager,
    /// Streams of the step with this number.
    Streams(u32),
}

/// A step whose results are expected.
struct Step {
    kind: Kind,
    sampling: Sampling,
    /// Pairs with the size of their streams, sorted.
    pairs: Vec<(Pair, u64)>,
}

/// One line of results.
type Line = (Pair, What, Timing);

/// What was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Trip,
    Call(Call),
    Stream,
    EagerLimit,
}

const WHATS: [(&str, What); 6] = [
    ("trip", What::Trip),
    ("send", What::Call(Call::Send)),
    ("isend", What::Call(Call::Isend)),
    ("recv", What::Call(Call::Recv)),
    ("stream", What::Stream),
    ("eager", What::EagerLimit),
];
/// Most repetitions of a call, and largest eager limit, of `prober.c`.
const MOST_CALLS: u64 = 30;
const LARGEST_EAGER: u64 = 1 << 22;

impl Step {
    /// The message of the step; ranks of endpoints are given.
    fn text(&self, ranks: &[u32]) -> String {
        let Sampling { sizes, warm_up, warm_up_bytes, batch, most, calm_batches, tolerance, seconds } =
            &self.sampling;
        let kind = match self.kind {
            Kind::Trips(_) => "trips",
            Kind::Alone => "alone",
            Kind::Eager => "eager",
            Kind::Streams(_) => "stream",
        };
        let mut text = format!(
            "{kind} {warm_up} {warm_up_bytes} {batch} {most} {calm_batches} {tolerance} {seconds} {}",
            sizes.len()
        );
        for bytes in sizes {
            // Writing to a string does not fail.
            let _ = write!(text, " {bytes}");
        }
        for &((source, destination), bytes) in &self.pairs {
            let [source, destination] = [source, destination].map(|endpoint| ranks[endpoint as usize]);
            let _ = write!(text, "\n{source} {destination} {bytes}");
        }
        let _ = writeln!(text, "\nend {}", 1 + self.pairs.len());
        text
    }

    /// Most lines of results.
    fn most_lines(&self) -> usize {
        let of_pair = match self.kind {
            Kind::Trips(_) => 2 * self.sampling.sizes.len(),
            Kind::Alone | Kind::Eager => 4 * self.sampling.sizes.len() + 1,
            Kind::Streams(_) => 1,
        };
        of_pair * self.pairs.len()
    }

    /// Whether a result is one of this step, and possible but for its times.
    fn has(&self, &((source, destination), what, timing): &Line) -> bool {
        let find = |pair: Pair| self.pairs.binary_search_by_key(&pair, |(pair, _)| *pair).ok();
        let pair = find((source, destination));
        let is_of_sizes = self.sampling.sizes.contains(&timing.bytes);
        let is_sampled = timing.messages <= u64::from(self.sampling.most);
        match (self.kind, what) {
            (Kind::Trips(_), What::Trip) => {
                pair.or(find((destination, source))).is_some() && is_of_sizes && is_sampled
            }
            (Kind::Alone | Kind::Eager, What::Trip) => pair.is_some() && is_of_sizes && is_sampled,
            (Kind::Alone | Kind::Eager, What::Call(_)) => {
                pair.is_some() && is_of_sizes && timing.messages <= MOST_CALLS
            }
            (Kind::Eager, What::EagerLimit) => pair.is_some() && timing.bytes <= LARGEST_EAGER,
            (Kind::Streams(_), What::Stream) => {
                pair.is_some_and(|pair| self.pairs[pair].1 == timing.bytes) && is_sampled
            }
            _ => false,
        }
    }
}

/// A probing between ranks, from what rank 0 has written.
struct Probing<'a> {
    params: &'a ProbeParams,
    cx: &'a Context<'a>,
    /// Messages to append to the plan.
    plan: String,
    names: Vec<String>,
    ranks: Vec<u32>,
    endpoint_of_rank: HashMap<u32, u32>,
    /// None before all hosts are known.
    record: Option<Record>,
    progress: Option<Steps<'a>>,
    expected: VecDeque<Step>,
    /// Number of lines, and results of the message that is not complete.
    lines: usize,
    results: Vec<Line>,
    is_calibrated: bool,
    is_stopped: bool,
    /// Nothing more will come.
    is_over: bool,
}

impl<'a> Probing<'a> {
    fn new(params: &'a ProbeParams, cx: &'a Context<'a>) -> Self {
        Self {
            params,
            cx,
            plan: String::new(),
            names: Vec::new(),
            ranks: Vec::new(),
            endpoint_of_rank: HashMap::new(),
            record: None,
            progress: None,
            expected: VecDeque::new(),
            lines: 0,
            results: Vec::new(),
            is_calibrated: !params.calibrate,
            is_stopped: false,
            is_over: false,
        }
    }

    /// The measurements; `false` if they were stopped early.
    fn finish(self) -> Result<(Measurements, bool), MachineError> {
        match self.record {
            Some(record) if self.is_over => Ok((record.finish(), !self.is_stopped)),
            _ => Err(MachineError::new("the ranks ended before they had measured everything", SAME_FOLDER)),
        }
    }

    /// Hears a line of the results.
    fn hear(&mut self, line: &str) -> Result<(), MachineError> {
        let fault = || invalid(line);
        // A request to stop may cross the last results.
        if self.is_over {
            return Ok(());
        }
        if let Some(count) = line.strip_prefix("end ") {
            let is_whole = count.parse() == Ok(take(&mut self.lines));
            return is_whole.then(|| self.end_message()).flatten().unwrap_or_else(|| Err(fault()));
        }
        self.lines += 1;
        if line == "stopped" && self.lines == 1 && self.record.is_some() {
            self.is_stopped = true;
        } else if self.record.is_none() {
            self.names.push(line.strip_prefix("host ").ok_or_else(fault)?.to_owned());
        } else {
            let step = self.expected.front().filter(|step| self.results.len() < step.most_lines());
            let result = self.parse(line).filter(|line| step.is_some_and(|step| step.has(line)));
            self.results.push(result.ok_or_else(fault)?);
        }
        Ok(())
    }

    fn parse(&self, line: &str) -> Option<Line> {
        let words: Vec<&str> = line.split(' ').collect();
        let [source, destination, what, bytes, messages, times @ ..] = &words[..] else { return None };
        let endpoint = |rank: &str| self.endpoint_of_rank.get(&rank.parse().ok()?).copied();
        let what = WHATS.iter().find(|(name, _)| name == what)?.1;
        let times: Vec<f64> = times.iter().map(|time| time.parse().ok()).collect::<Option<_>>()?;
        let timing = Timing {
            bytes: bytes.parse().ok()?,
            messages: messages.parse().ok()?,
            times: times.try_into().ok()?,
        };
        Some(((endpoint(source)?, endpoint(destination)?), what, timing))
    }

    /// Takes in a complete message; none if its results are not possible.
    fn end_message(&mut self) -> Option<Result<(), MachineError>> {
        let Some(record) = &mut self.record else { return Some(self.place()) };
        if self.is_stopped {
            self.is_over = true;
            return Some(Ok(()));
        }
        let step = self.expected.pop_front()?;
        for (pair, what, timing) in self.results.drain(..) {
            let added = match (what, step.kind) {
                (What::Trip, Kind::Trips(phase)) => record.add(pair, phase, &[timing]),
                (What::Trip, _) => record.add(pair, ProbePhase::Alone, &[timing]),
                (What::Call(call), _) => record.add_calls(pair, call, &[timing]),
                (What::Stream, Kind::Streams(step)) => record.add_stream(pair, step, &[timing]),
                (What::Stream, _) => return None,
                (What::EagerLimit, _) => {
                    record.eager_limit = Some(timing.bytes);
                    Ok(())
                }
            };
            added.ok()?;
        }
        if let (Kind::Trips(_), Some(progress)) = (step.kind, &mut self.progress) {
            progress.done();
        }
        if self.expected.is_empty() && !self.is_calibrated {
            self.calibrate();
        }
        self.is_over = self.expected.is_empty();
        Some(Ok(()))
    }

    /// Plans the pairs of all ranks, whose hosts are known now.
    fn place(&mut self) -> Result<(), MachineError> {
        if self.names.len() < 2 {
            return Err(one_rank());
        }
        let Placed { endpoints, ranks } = Placed::new(&take(&mut self.names), self.params.measure_intra_node);
        let (hosts, cores) = groups(&endpoints);
        let all: Vec<Part> = [hosts, cores].iter().flat_map(|groups| parts(self.params, groups)).collect();
        if all.is_empty() {
            return Err(alone(&endpoints[0].host));
        }
        self.endpoint_of_rank = ranks.iter().copied().zip(0..).collect();
        self.ranks = ranks;
        self.record = Some(Record::new(endpoints));
        for part in &all {
            for pairs in part.steps() {
                let pairs = pairs.into_iter().map(|pair| (pair, 0)).collect();
                self.ask(Kind::Trips(part.phase), part.sampling.clone(), pairs);
            }
        }
        self.progress = Some(Steps::new(&all, self.cx));
        if self.is_calibrated {
            self.plan.push_str(FINISH);
        }
        Ok(())
    }

    /// Plans what predictions need.
    fn calibrate(&mut self) {
        self.is_calibrated = true;
        let Some(record) = &self.record else { return };
        let Plan { alone, steps } = Plan::new(&record.clone().finish(), self.params);
        let sampling = alone_sampling(self.params);
        let last = alone.len();
        for (index, pair) in (1..).zip(alone) {
            let kind = if index == last { Kind::Eager } else { Kind::Alone };
            self.ask(kind, sampling.clone(), vec![(pair, 0)]);
        }
        for (number, streams) in (0..).zip(steps) {
            // The size is that of each pair.
            let Some(first) = streams.first() else { continue };
            let sampling = Sampling { sizes: Vec::new(), ..stream_sampling(self.params, first) };
            let pair =
                |stream: &super::calibrate::Stream| ((stream.source, stream.destination), stream.bytes);
            self.ask(Kind::Streams(number), sampling, streams.iter().map(pair).collect());
        }
        self.plan.push_str(FINISH);
    }

    /// Adds a step to the plan.
    fn ask(&mut self, kind: Kind, sampling: Sampling, mut pairs: Vec<(Pair, u64)>) {
        pairs.sort_unstable();
        let step = Step { kind, sampling, pairs };
        self.plan.push_str(&step.text(&self.ranks));
        self.expected.push_back(step);
    }
}

/// The last message of a plan.
const FINISH: &str = "finish\nend 1\n";

#[cfg(test)]
#[path = "ranks_tests.rs"]
mod tests;
