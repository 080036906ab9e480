//! The events of the ranks, written as an archive.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use hopmap_model::{Context, TraceArchive};

use super::schedule::{GAP, Schedule};
use super::{RANKS_PER_HOST, host};
use crate::GenerateError;
use crate::otf2::{ArchiveWriter, DefinitionWriter, EventWriter, Transfer};

const NAME: &str = "traces";

const MAIN: u32 = 0;
const COMPUTE: u32 = 1;
const SEND: u32 = 2;
const RECEIVE: u32 = 3;
/// Regions by id: name, and whether they are of MPI.
const REGIONS: [(&str, bool); 4] =
    [("main", false), ("compute", false), ("MPI_Send", true), ("MPI_Recv", true)];

/// When the first event of all is.
const START: u64 = 1_000_000;

/// Writes the archive into a temporary folder, which goes when the archive does.
pub(super) fn write(schedule: &Schedule, cx: &Context<'_>) -> Result<TraceArchive, GenerateError> {
    let scratch = cx.scratch();
    let unwritable = |source| GenerateError::Folder { path: scratch.clone(), source };
    let folder =
        tempfile::Builder::new().prefix(".hopmap-trace-").tempdir_in(&scratch).map_err(unwritable)?;
    let archive = ArchiveWriter::create(folder.path(), NAME).map_err(unwritable)?;
    let ranks = schedule.program.ranks;
    for rank in 0..ranks {
        if cx.should_stop() {
            return Err(GenerateError::Stopped { done: rank, ranks });
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
        self.events.enter(self.time, MAIN)?;
        self.time += GAP;
        for round in 0..self.schedule.rounds {
            let computing = self.schedule.computing(self.rank, round);
            let (destinations, sources) = &phases[(round % program.phases()) as usize];
            for &destination in destinations {
                self.region(COMPUTE, computing)?;
                self.send(destination)?;
            }
            for &source in sources {
                self.receive(source)?;
                self.region(COMPUTE, computing)?;
            }
        }
        self.events.leave(self.time, MAIN)?;
        self.events.close()
    }

    fn region(&mut self, region: u32, length: u64) -> io::Result<()> {
        self.events.enter(self.time, region)?;
        self.events.leave(self.time + length, region)?;
        self.time += length + GAP;
        Ok(())
    }

    fn transfer(&self, source: u32, destination: u32, peer: u32) -> Transfer {
        let (communicator, peer) = self.schedule.program.address(peer);
        Transfer { peer, communicator, bytes: self.schedule.program.bytes(source, destination) }
    }

    fn send(&mut self, destination: u32) -> io::Result<()> {
        let length = self.schedule.transfer(self.rank, destination);
        self.events.enter(self.time, SEND)?;
        self.events.send(self.time + GAP, self.transfer(self.rank, destination, destination))?;
        self.events.leave(self.time + length, SEND)?;
        self.time += length + GAP;
        Ok(())
    }

    fn receive(&mut self, source: u32) -> io::Result<()> {
        let length = self.schedule.transfer(source, self.rank);
        self.events.enter(self.time, RECEIVE)?;
        self.events.receive(self.time + GAP, self.transfer(source, self.rank, source))?;
        self.events.leave(self.time + length, RECEIVE)?;
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
    // The seed takes the place of what makes an archive different each time, so that the same parameters give the same
    // bytes.
    definitions.close(program.mix(schedule.rounds, 3))
}
