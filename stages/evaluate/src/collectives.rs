//! The algorithms for the collective operations of a program beside each other, under a mapping.

mod table;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use hopmap_collectives::{Algorithm, Call, Operation};
use hopmap_model::{
    Context, Error, Inputs, Mapping, Outcome, Outputs, Port, Stage, SystemGraph, TaskGraph, TextFile,
    WeightChoice,
};
use hopmap_objective::{check_weight, linear};
use rayon::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::compare::check;
use table::{Group, Measure, Place, Row, Table};

/// Algorithms with more messages than these are left out.
const MOST_MESSAGES: u64 = 1 << 26;

/// Collective operations by algorithm under a mapping.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CollectivesParams {
    /// What a message weighs: `bytes`, `messages`, `time`, or `{ time = { latency_s, bandwidth_bytes_per_s } }`; without it, what
    /// edges weigh in the mapping.
    #[serde(default)]
    pub weight: Option<WeightChoice>,
}

/// The table of operations and algorithms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CollectiveComparison {
    /// As CSV, with a header.
    pub csv: String,
    /// As a table of Markdown.
    pub markdown: String,
    /// Whether all operations were measured before the context asked to stop.
    pub complete: bool,
}

/// A communicator's operations of one size: communicator, operation, bytes of a block.
type Kind = (u32, Operation, u64);

/// Measures every algorithm for every collective operation of a program, placed by the mapping and in order.
///
/// `total` is the share that the messages have in F: Σ weight × cost. `path` is an estimate of the time: the sum over
/// rounds of the largest weight × cost that a process sends or gets in the round. A barrier's messages weigh a byte each.
pub fn compare_collectives(
    graph: &TaskGraph,
    system: &SystemGraph,
    mapping: &Mapping,
    params: &CollectivesParams,
    cx: &Context<'_>,
) -> Result<CollectiveComparison, Error> {
    check(graph, system, mapping)?;
    let weight = params.weight.map_or(Ok(mapping.weight), |weight| weight.resolve(system, cx))?;
    check_weight(weight)?;
    let kinds = kinds(graph, cx);
    let (mapped, in_order) = (mapping.slots(), linear(graph.ranks()));
    let costs = system.costs();
    let place = |members, slots| Place { costs: &costs, members, slots, weight };
    let done = AtomicU64::new(0);
    let group = |(&(communicator, operation, bytes), roots): (&Kind, &Roots)| {
        if cx.should_stop() {
            return None;
        }
        let members = &graph.collectives.communicators[communicator as usize];
        let places = [place(members, &mapped), place(members, &in_order)];
        let calls = Calls { operation, bytes, roots };
        let group = Group { communicator, operation, bytes, calls: calls.count(), rows: calls.rows(places) };
        cx.progress(done.fetch_add(1, Ordering::Relaxed) + 1, kinds.len() as u64);
        Some(group)
    };
    let groups: Vec<Group> = kinds.par_iter().filter_map(group).collect();
    let complete = groups.len() == kinds.len();
    tell_left_out(&groups, graph, cx);
    let table = Table::new(groups, &graph.collectives.communicators);
    Ok(CollectiveComparison { csv: table.csv(), markdown: table.markdown(), complete })
}

/// Calls by their root.
type Roots = Vec<(Option<u32>, u64)>;

/// The operations that send anything, those with different roots together.
fn kinds(graph: &TaskGraph, cx: &Context<'_>) -> BTreeMap<Kind, Roots> {
    let mut kinds: BTreeMap<Kind, Roots> = BTreeMap::new();
    let mut silent = 0u64;
    for calls in &graph.collectives.calls {
        let processes = graph.collectives.communicators[calls.communicator as usize].len();
        if processes < 2 || calls.bytes == 0 && calls.operation != Operation::Barrier {
            silent = silent.saturating_add(calls.calls);
            continue;
        }
        let kind = (calls.communicator, calls.operation, calls.bytes);
        kinds.entry(kind).or_default().push((calls.root, calls.calls));
    }
    if graph.collectives.is_empty() {
        cx.log(format_args!(
            "warning: the task graph has no collective operations; `trace/otf2` keeps them with `collectives = \"keep\"`"
        ));
    }
    if silent > 0 {
        cx.log(format_args!(
            "collective operations without bytes or of one process, which send nothing: {silent}"
        ));
    }
    kinds
}

/// Equal operations of one communicator.
struct Calls<'a> {
    operation: Operation,
    bytes: u64,
    roots: &'a Roots,
}

impl Calls<'_> {
    fn count(&self) -> u64 {
        self.roots.iter().map(|(_, calls)| *calls).fold(0, u64::saturating_add)
    }

    /// The call with a root.
    fn call(&self, root: Option<u32>, processes: u32) -> Call {
        Call { operation: self.operation, processes, root, bytes: self.bytes }
    }

    /// A row for every algorithm that so many processes can use.
    fn rows(&self, places: [Place<'_>; 2]) -> Vec<Row> {
        let processes = places[0].members.len() as u32;
        let usual = self.call(None, processes).usual();
        let fits = |algorithm: &&Algorithm| {
            self.call(None, processes).suits(**algorithm)
                && self.call(None, processes).most_messages(**algorithm) <= MOST_MESSAGES
        };
        let row = |&algorithm: &Algorithm| {
            let [mapped, linear] = places.each_ref().map(|place| self.measure(algorithm, place));
            Row { algorithm, usual: algorithm == usual, mapped, linear }
        };
        Algorithm::of(self.operation).iter().filter(fits).map(row).collect()
    }

    /// All calls together.
    fn measure(&self, algorithm: Algorithm, place: &Place<'_>) -> Measure {
        let mut all = Measure::default();
        for &(root, calls) in self.roots {
            all.add(&Measure::of(&self.call(root, place.members.len() as u32), algorithm, place), calls);
        }
        all
    }
}

/// Tells of algorithms that were too long to look at.
fn tell_left_out(groups: &[Group], graph: &TaskGraph, cx: &Context<'_>) {
    let missing = |group: &Group| {
        let processes = graph.collectives.communicators[group.communicator as usize].len() as u32;
        let (operation, bytes) = (group.operation, group.bytes);
        let call = Call { operation, processes, root: None, bytes };
        Algorithm::of(operation).iter().filter(|algorithm| call.suits(**algorithm)).count() - group.rows.len()
    };
    let missing: usize = groups.iter().map(missing).sum();
    if missing > 0 {
        cx.log(format_args!(
            "algorithms of more than {MOST_MESSAGES} messages, which are left out: {missing}"
        ));
    }
}

/// `evaluate/collectives`: the algorithms for collective operations beside each other, under a mapping.
///
/// A row for every communicator, operation, size and algorithm, and before them all communicators and sizes of an
/// operation together. `MPICH` marks the algorithm that MPICH takes. `total` is Σ weight × cost of all messages, their
/// share in F; `path` estimates the time: the sum over rounds of the largest weight × cost that a process sends or gets.
/// `rounds` are messages of one call that follow each other. `total linear` and `path linear` are those of the linear
/// placement. `best` says which algorithm has the least `total`, `path` or both under the mapping.
#[derive(Debug)]
pub struct CollectivesStage;

impl Stage for CollectivesStage {
    type Params = CollectivesParams;
    const KIND: &'static str = "evaluate/collectives";
    const SUMMARY: &'static str = "Collective operations by algorithm, under a mapping and beside linear";
    const REVISION: u32 = 1;

    fn ports() -> &'static [Port] {
        const {
            &[
                Port::input::<TaskGraph>("task-graph"),
                Port::input::<SystemGraph>("system"),
                Port::input::<Mapping>("mapping"),
                Port::output::<TextFile>("csv"),
                Port::output::<TextFile>("markdown"),
            ]
        }
    }

    fn check(params: &Self::Params) -> Result<(), Error> {
        Ok(params.weight.map_or(Ok(()), |weight| check_weight(weight.or(0.0, 1.0)))?)
    }

    fn run(params: Self::Params, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let graph = inputs.one::<TaskGraph>("task-graph")?.value;
        let system = inputs.one::<SystemGraph>("system")?.value;
        let mapping = inputs.one::<Mapping>("mapping")?.value;
        let comparison = compare_collectives(&graph, &system, &mapping, &params, cx)?;
        let file = |name: &str, text| TextFile { name: name.to_owned(), text };
        let outputs = Outputs::new()
            .with("csv", file("collectives.csv", comparison.csv))
            .with("markdown", file("collectives.md", comparison.markdown));
        Ok(if comparison.complete { Outcome::Done(outputs) } else { Outcome::Partial(outputs) })
    }
}
