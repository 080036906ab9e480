//! Traces of programs with known messages.

mod pattern;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use hopmap_model::{Context, Edge, Error, Process, TaskGraph, TraceArchive, require};

use crate::error::TraceError;
use crate::matrix::merged;
use crate::otf2::{ArchiveWriter, DefinitionWriter, ENTER, EventWriter, LEAVE, MPI_RECV, MPI_SEND, Transfer};
use crate::params::GenerateParams;
use pattern::Program;

/// Maximum number of ranks of a generated trace.
const MAX_RANKS: u32 = 1 << 16;

/// Ranks on a host.
const RANKS_PER_HOST: u32 = 16;

/// Checks that a program with these ranks and events exists.
pub(crate) fn check(params: &GenerateParams) -> Result<(), Error> {
    Schedule::new(params).map(drop)
}

/// The trace, and the expected task graph.
pub(crate) fn generate(
    params: &GenerateParams,
    cx: &Context<'_>,
) -> Result<(TraceArchive, TaskGraph), Error> {
    let schedule = Schedule::new(params)?;
    let archive = write(&schedule, cx)?;
    cx.log(format_args!("{} ranks, {} rounds, {} events", params.ranks, schedule.rounds, schedule.events()));
    Ok((archive, task_graph(&schedule)))
}

/// The task graph, computed from the pattern without generating events.
fn task_graph(schedule: &Schedule) -> TaskGraph {
    let program = &schedule.program;
    let processes = (0..program.ranks)
        .map(|rank| {
            let (compute, duration) = (schedule.compute(rank), schedule.duration(rank));
            Process {
                host: Some(host(rank)),
                compute_s: Some(seconds(compute)),
                communication_s: Some(seconds(duration - compute)),
                collective_s: Some(0.0),
            }
        })
        .collect();
    let edges = merged((0..program.ranks).flat_map(|rank| edges_of(schedule, rank)).collect());
    let duration = (0..program.ranks).map(|rank| schedule.duration(rank)).max().unwrap_or(0);
    TaskGraph { processes, edges, duration_s: Some(seconds(duration)), ..TaskGraph::default() }
}

fn edges_of(schedule: &Schedule, source: u32) -> Vec<Edge> {
    let program = &schedule.program;
    let mut edges = Vec::new();
    for phase in 0..program.phases() {
        let messages = schedule.rounds_of(phase);
        for destination in program.destinations(source, phase).into_iter().filter(|_| messages > 0) {
            let bytes = messages * program.bytes(source, destination);
            edges.push(Edge { source, destination, messages, bytes });
        }
    }
    edges
}

fn host(rank: u32) -> String {
    format!("node{:04}", rank / RANKS_PER_HOST)
}

fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e9
}

const NAME: &str = "traces";

const MAIN: u32 = 0;
const COMPUTE: u32 = 1;
const SEND: u32 = 2;
const RECEIVE: u32 = 3;
/// Regions by id: name, and whether they belong to MPI.
const REGIONS: [(&str, bool); 4] =
    [("main", false), ("compute", false), ("MPI_Send", true), ("MPI_Recv", true)];

/// Time of the first event.
const START: u64 = 1_000_000;

/// Writes the archive into a temporary folder, which is removed with the archive.
fn write(schedule: &Schedule, cx: &Context<'_>) -> Result<TraceArchive, TraceError> {
    let scratch = cx.scratch();
    let help = "an event takes about 14 bytes; set TMPDIR to use another folder";
    let unwritable = |source| TraceError::Write { path: scratch.clone(), source, help };
    let folder =
        tempfile::Builder::new().prefix(".hopmap-trace-").tempdir_in(&scratch).map_err(unwritable)?;
    let archive = ArchiveWriter::create(folder.path(), NAME).map_err(unwritable)?;
    let ranks = schedule.program.ranks;
    for rank in 0..ranks {
        if cx.should_stop() {
            return Err(TraceError::refused(format!("stopped after {rank} of {ranks} ranks"), ""));
        }
        let events = archive.events(rank.into()).map_err(unwritable)?;
        RankWriter { schedule, rank, events, time: START }.write().map_err(unwritable)?;
        cx.progress(u64::from(rank) + 1, ranks.into());
    }
    archive.definitions().and_then(|definitions| define(schedule, definitions)).map_err(unwritable)?;
    Ok(TraceArchive::new(files(folder.path(), ranks)).kept_by(folder))
}

fn files(folder: &Path, ranks: u32) -> BTreeMap<String, PathBuf> {
    let local = (0..ranks).flat_map(|rank| ["evt", "def"].map(|kind| format!("{NAME}/{rank}.{kind}")));
    let shared = ["otf2", "def"].map(|kind| format!("{NAME}.{kind}"));
    local.chain(shared).map(|name| (name.clone(), folder.join(name))).collect()
}

/// Writes the events of one rank.
struct RankWriter<'a> {
    schedule: &'a Schedule,
    rank: u32,
    events: EventWriter,
    time: u64,
}

impl RankWriter<'_> {
    fn write(mut self) -> io::Result<()> {
        let program = &self.schedule.program;
        let phases: Vec<_> = (0..program.phases())
            .map(|phase| (program.destinations(self.rank, phase), program.sources(self.rank, phase)))
            .collect();
        self.events.region(ENTER, self.time, MAIN)?;
        self.time += GAP;
        for round in 0..self.schedule.rounds {
            let computing = self.schedule.computing(self.rank, round);
            let (destinations, sources) = &phases[(round % program.phases()) as usize];
            for &destination in destinations {
                self.region(COMPUTE, computing)?;
                self.call(SEND, MPI_SEND, (self.rank, destination, destination))?;
            }
            for &source in sources {
                self.call(RECEIVE, MPI_RECV, (source, self.rank, source))?;
                self.region(COMPUTE, computing)?;
            }
        }
        self.events.region(LEAVE, self.time, MAIN)?;
        self.events.close()
    }

    fn region(&mut self, region: u32, length: u64) -> io::Result<()> {
        self.events.region(ENTER, self.time, region)?;
        self.events.region(LEAVE, self.time + length, region)?;
        self.time += length + GAP;
        Ok(())
    }

    /// An MPI call that sends or receives a message: its region, the event, and the peer.
    fn call(
        &mut self,
        region: u32,
        kind: u8,
        (source, destination, peer): (u32, u32, u32),
    ) -> io::Result<()> {
        let length = self.schedule.transfer(source, destination);
        let (communicator, peer) = self.schedule.program.address(peer);
        let bytes = self.schedule.program.bytes(source, destination);
        self.events.region(ENTER, self.time, region)?;
        self.events.message(kind, self.time + GAP, Transfer { peer, communicator, bytes })?;
        self.events.region(LEAVE, self.time + length, region)?;
        self.time += length + GAP;
        Ok(())
    }
}

fn define(schedule: &Schedule, mut definitions: DefinitionWriter) -> io::Result<()> {
    let program = &schedule.program;
    let length = (0..program.ranks).map(|rank| schedule.duration(rank)).max().unwrap_or(0);
    definitions.nanoseconds(START, length + 1)?;
    let class = definitions.string("node")?;
    for (id, (name, mpi)) in (0..).zip(REGIONS) {
        let name = definitions.string(name)?;
        definitions.region(id, name, mpi)?;
    }
    for rank in 0..program.ranks {
        let node = rank / RANKS_PER_HOST;
        if rank % RANKS_PER_HOST == 0 {
            let name = definitions.string(&host(rank))?;
            definitions.node(node, name, class)?;
        }
        let name = definitions.string(&format!("rank {rank}"))?;
        definitions.process(rank, name, node, schedule.events_of(rank))?;
    }
    let communicators = program.communicators();
    let name = definitions.string("MPI_COMM_WORLD")?;
    definitions.ranks(0, name, &communicators[0])?;
    for (id, members) in (0..).zip(&communicators) {
        let name = if id == 0 { name } else { definitions.string(&format!("row {}", id - 1))? };
        definitions.communicator(id, name, id + 1, members)?;
    }
    // The creation time and id of an archive come from the seed, so that the same parameters give the same
    // bytes.
    definitions.close(program.mix(schedule.rounds, 3))
}

/// Events per message at each end: an MPI call with the message, and some computation.
const EVENTS_PER_MESSAGE: u64 = 5;
/// Events of a rank before and after all rounds.
const EVENTS_AROUND: u64 = 2;
/// Time between two regions, and before a message within its call.
const GAP: u64 = 1;

/// Timing of a program, in nanoseconds.
#[derive(Debug)]
struct Schedule {
    program: Program,
    rounds: u64,
}

impl Schedule {
    /// Chooses the number of rounds that gives the number of events closest to the requested one.
    fn new(params: &GenerateParams) -> Result<Self, Error> {
        let ranks = params.ranks;
        require((2..=MAX_RANKS).contains(&ranks), "ranks", ranks, format!("2 to {MAX_RANKS}"))?;
        let program = Program::new(params);
        let around = EVENTS_AROUND * u64::from(ranks);
        // Rounds of different phases have different message counts.
        let phases = program.phases();
        let per_turn = 2 * EVENTS_PER_MESSAGE * (0..phases).map(|phase| program.messages(phase)).sum::<u64>();
        let events = params.events.saturating_sub(around).saturating_mul(phases);
        let rounds = events.saturating_add(per_turn / 2) / per_turn;
        if rounds == 0 {
            let (events, needed) = (params.events, around + per_turn / phases);
            let problem = format!("`events` = {events} is too small: one round has {needed} events");
            let help = format!("request at least {needed} events, or fewer ranks");
            return Err(TraceError::refused(problem, help).into());
        }
        Ok(Self { program, rounds })
    }

    /// Number of rounds of a phase.
    fn rounds_of(&self, phase: u64) -> u64 {
        (self.rounds + self.program.phases() - 1 - phase) / self.program.phases()
    }

    /// Number of events of all ranks.
    fn events(&self) -> u64 {
        (0..self.program.ranks).map(|rank| self.events_of(rank)).sum()
    }

    /// Number of events of a rank.
    fn events_of(&self, rank: u32) -> u64 {
        let messages = |phase| {
            let ends = self.program.destinations(rank, phase).len() + self.program.sources(rank, phase).len();
            self.rounds_of(phase) * ends as u64
        };
        EVENTS_AROUND + EVENTS_PER_MESSAGE * (0..self.program.phases()).map(messages).sum::<u64>()
    }

    /// Computing time of a rank per message of a round.
    fn computing(&self, rank: u32, round: u64) -> u64 {
        200 + self.program.mix((2 << 40) + u64::from(rank), round) % 800
    }

    /// Duration of an MPI call at either end.
    fn transfer(&self, source: u32, destination: u32) -> u64 {
        1000 + self.program.bytes(source, destination) / 10
    }

    /// Time a rank spends outside of MPI.
    fn compute(&self, rank: u32) -> u64 {
        let ends: Vec<u64> = (0..self.program.phases())
            .map(|phase| {
                let sent = self.program.destinations(rank, phase).len();
                (sent + self.program.sources(rank, phase).len()) as u64
            })
            .collect();
        let phases = self.program.phases();
        let round = |round| ends[(round % phases) as usize] * (self.computing(rank, round) + 2 * GAP);
        GAP + (0..self.rounds).map(round).sum::<u64>()
    }

    /// Time between the first and the last event of a rank.
    fn duration(&self, rank: u32) -> u64 {
        let transfers = |phase| {
            let sent = self.program.destinations(rank, phase).into_iter();
            let received = self.program.sources(rank, phase).into_iter();
            let sent = sent.map(|other| self.transfer(rank, other)).sum::<u64>();
            sent + received.map(|other| self.transfer(other, rank)).sum::<u64>()
        };
        let transfers = (0..self.program.phases()).map(|phase| self.rounds_of(phase) * transfers(phase));
        self.compute(rank) + transfers.sum::<u64>()
    }
}
