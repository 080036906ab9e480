//! Placements that are quick to make, where searches begin.

use hopmap_model::Error;

use super::criticality::criticality;
use super::partition;
use super::problem::RankProblem;
use super::{RankEvaluator, greedy};

/// A placement and its makespan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start {
    /// What it is called.
    pub name: &'static str,
    /// The slot of every rank.
    pub slots: Vec<u32>,
    /// Its makespan in ticks.
    pub makespan: i64,
}

/// All of them, the best first; among equals in the order in which they are named here. A given one, rank by rank, host by host in turns,
/// by partition or greedily, and the latter again with what counts for the makespan.
pub fn starts(problem: &RankProblem) -> Result<Vec<Start>, Error> {
    let mut evaluator = RankEvaluator::new(problem);
    let mut starts: Vec<Start> = Vec::new();
    let mut add = |name, slots: Vec<u32>| {
        if !starts.iter().any(|start| start.slots == slots) {
            let makespan = evaluator.makespan(&slots);
            starts.push(Start { name, slots, makespan });
        }
    };
    problem.begin.iter().for_each(|given| add("mapping", given.clone()));
    add("linear", (0..problem.ranks as u32).collect());
    add("round-robin", round_robin(problem));
    let names = if problem.places.is_tree() {
        ["partition", "critical partition"]
    } else {
        ["greedy", "critical greedy"]
    };
    for (name, weights) in names.into_iter().zip([sensitivity(problem), criticality(problem)]) {
        let slots = match problem.places.is_tree() {
            true => Some(partition::place(problem, &weights)?),
            false => greedy::place(problem, &weights),
        };
        slots.into_iter().for_each(|slots| add(name, slots));
    }
    starts.sort_by_key(|start| start.makespan);
    Ok(starts)
}

/// For every link by how much distance makes its messages longer, all together: what a quadratic assignment problem sees.
fn sensitivity(problem: &RankProblem) -> Vec<i64> {
    let links = &problem.program.links;
    let of_link = |(link, &messages): (_, &u32)| problem.spread(link).saturating_mul(i64::from(messages));
    links.links.iter().copied().zip(&links.messages).map(of_link).collect()
}

/// The first slot of every host, then the second of each.
fn round_robin(problem: &RankProblem) -> Vec<u32> {
    let mut turn = 0;
    let mut before = None;
    let turns = problem.hosts.iter().map(|&host| {
        turn = if before == Some(host) { turn + 1 } else { 0 };
        before = Some(host);
        turn
    });
    let mut slots: Vec<(u32, u32)> = turns.zip(0..).collect();
    slots.sort_unstable();
    slots.into_iter().map(|(_, slot)| slot).take(problem.ranks).collect()
}
