//! Mappings, routes and tables out of the values of a program, and back through the check.

use std::collections::{BTreeMap, BTreeSet};

use hopmap_model::{
    Counting, Error, Mapping, Route, Routes, SwitchType, SystemGraph, TableEntry, Tables, TaskGraph, Weight,
};

use crate::check::check;
use crate::deadlock;
use crate::paper::Formulation;
use crate::solver::{Limits, Solution, Solver};
use crate::{CheckError, CheckParams, Network, Weights};

/// Solutions whose links wait for each other in a circle, one after the other, before giving up.
const MOST_CIRCLES: usize = 10_000;

/// What is looked for.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// The program.
    pub graph: &'a TaskGraph,
    /// The machine.
    pub system: &'a SystemGraph,
    /// Where every process is; if it is given, only routes are looked for.
    pub mapping: Option<&'a Mapping>,
    /// What the parts of the objective weigh.
    pub weights: Weights,
    /// Whether no links may wait for each other in a circle.
    pub deadlock_free: bool,
    /// When to stop.
    pub limits: Limits,
}

/// A mapping with routes and tables that passed the check.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// Where every process is.
    pub mapping: Mapping,
    /// The way of every stream.
    pub routes: Routes,
    /// The tables.
    pub tables: Tables,
}

/// Answers a question; nothing if there is no answer. Fails if the solver found none in time.
pub fn answer(question: &Question<'_>, solver: &dyn Solver) -> Result<Option<Answer>, Error> {
    let Question { graph, system, mapping, weights, .. } = *question;
    let mut formulation = Formulation::new(graph, system, mapping, weights)?;
    let begin = std::time::Instant::now();
    let mut nodes = 0;
    for _ in 0..MOST_CIRCLES {
        let seconds = question.limits.seconds.map(|all| (all - begin.elapsed().as_secs_f64()).max(0.01));
        let left = question.limits.nodes.map(|all| all.saturating_sub(nodes).max(1));
        let solution = solver.solve(formulation.program(), Limits { nodes: left, seconds })?;
        nodes += solution.nodes;
        let Some(values) = &solution.values else {
            return match solution.proven {
                true => Ok(None),
                false => Err(CheckError::new(
                    "no solution was found within the limits, and it is not known whether there is one",
                    "give more `seconds` or `nodes`",
                )
                .into()),
            };
        };
        let routes = formulation.solution(values);
        let circle = deadlock::cycle(system.links.len(), routes.iter().map(|route| route.links.as_slice()));
        if question.deadlock_free && !circle.is_empty() {
            formulation.forbid(&circle);
            continue;
        }
        return Ok(Some(checked(question, &formulation, &solution, routes)?));
    }
    Err(CheckError::new(
        format!("after {MOST_CIRCLES} solutions links still wait for each other in a circle"),
        "leave `deadlock_free` out to see one of them",
    )
    .into())
}

fn checked(
    question: &Question<'_>,
    formulation: &Formulation<'_>,
    solution: &Solution,
    routes: Vec<Route>,
) -> Result<Answer, Error> {
    let Question { graph, system, weights, .. } = *question;
    let values = solution.values.as_deref().unwrap_or_default();
    let mapping = match question.mapping {
        Some(mapping) => mapping.clone(),
        None => placed(graph, system, &formulation.hosts(values))?,
    };
    let merged = question.mapping.is_some();
    let mut tables = tables(system, &routes);
    let counting = if merged { Counting::HostPairs } else { Counting::Streams };
    let given = Routes { routes, counting, ..Routes::default() };
    let params = CheckParams {
        longest: weights.longest,
        hops: weights.hops,
        entries: weights.entries,
        merged,
        deadlock_free: question.deadlock_free,
    };
    let mut routes = check(graph, system, &mapping, &tables, Some(&given), &params)?.routes;
    let objective = routes.metrics.get("objective").copied().unwrap_or_default();
    let bound = solution.bound.min(objective);
    // Only what the check finds to cost what the bound is counts as proven.
    let proven = solution.proven && objective - bound <= 1e-6 * objective.abs().max(1.0);
    let proof = [("bound", bound), ("proven", f64::from(u8::from(proven)))];
    routes.metrics.extend(proof.map(|(name, value)| (name.to_owned(), value)));
    tables.metrics = routes.metrics.clone();
    let mut mapping = mapping;
    mapping.metrics.extend(routes.metrics.clone());
    Ok(Answer { mapping, routes, tables })
}

/// Processes on the slots of their hosts, in the order of ranks.
fn placed(graph: &TaskGraph, system: &SystemGraph, hosts: &[u32]) -> Result<Mapping, Error> {
    let mut next: BTreeMap<u32, u32> = system.hosts().map(|(host, first, _)| (host, first)).collect();
    let mut slots = Vec::with_capacity(graph.ranks());
    for host in hosts {
        let slot = next.entry(*host).or_default();
        slots.push(*slot);
        *slot += 1;
    }
    Ok(Mapping::new(&slots, system, Weight::Bytes)?)
}

/// The entries that routes need: for a switch of type 2 those of the ports by which they come in.
#[must_use]
pub fn tables(system: &SystemGraph, routes: &[Route]) -> Tables {
    let mut entries = BTreeSet::new();
    for route in routes {
        for pair in route.links.windows(2) {
            let [arrives, leaves] = [pair[0], pair[1]].map(|link| &system.links[link as usize]);
            let is_two = system.nodes[leaves.source as usize].traits.switch_type == Some(SwitchType::Two);
            entries.insert(TableEntry {
                switch: leaves.source,
                input_port: arrives.destination_port.filter(|_| is_two),
                destination: route.destination,
                output_port: leaves.source_port.unwrap_or_default(),
            });
        }
    }
    Tables { entries: entries.into_iter().collect(), metrics: BTreeMap::new() }
}

/// Refuses machines whose links do not say their ports, or say one port twice: tables could not tell them apart.
pub fn check_ports(system: &SystemGraph) -> Result<(), CheckError> {
    let network = Network::new(system);
    for (index, link) in (0..).zip(&system.links) {
        let is_known = link.state == hopmap_model::LinkState::Down
            || link.source_port.is_some_and(|port| network.by_port(link.source, port) == Some(index));
        if !(is_known && link.destination_port.is_some()) {
            return Err(CheckError::new(
                format!(
                    "the link {} does not say its ports, or another link has the same",
                    network.name_of(index)
                ),
                "tables name ports: take the machine from route/import or topology/ibnetdiscover",
            ));
        }
    }
    Ok(())
}
