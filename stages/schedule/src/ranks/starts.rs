//! Placements that are quick to make, where searches begin.

use hopmap_model::Error;

use super::problem::RankProblem;
use super::{RankEvaluator, greedy};
use super::{clusters, partition};

/// Most ranks for which a second partition is made that leaves room where there is some.
const ROOMY: usize = 4096;

/// A placement and its makespan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start {
    /// What it is called.
    pub name: String,
    /// The slot of every rank.
    pub slots: Vec<u32>,
    /// Its makespan in ticks.
    pub makespan: i64,
}

/// All of them, the best first; among equals in the order in which they are named here. A given one, rank by rank, host by host in turns,
/// by clusters, by partition or greedily: by all that goes between ranks, by what can delay the end, and by the longest delays.
pub fn starts(problem: &RankProblem) -> Result<Vec<Start>, Error> {
    let mut evaluator = RankEvaluator::new(problem);
    let mut starts: Vec<Start> = Vec::new();
    let mut add = |name: String, slots: Vec<u32>| {
        if !starts.iter().any(|start| start.slots == slots) {
            let makespan = evaluator.makespan(&slots);
            starts.push(Start { name, slots, makespan });
        }
    };
    problem.begin.iter().for_each(|given| add("mapping".into(), given.clone()));
    add("linear".into(), (0..problem.ranks as u32).collect());
    add("round-robin".into(), round_robin(problem));
    let critical = &problem.critical;
    let by_weight =
        [("", &sensitivity(problem)), ("critical ", &critical.delays), ("bottleneck ", &critical.longest)];
    for (name, weights) in by_weight {
        add(format!("{name}clusters"), clusters::place(problem, weights));
        if !problem.places.is_tree() {
            greedy::place(problem, weights).into_iter().for_each(|slots| add(format!("{name}greedy"), slots));
            continue;
        }
        for (kind, room_for) in [("partition", 1), ("roomy partition", 2)] {
            if room_for == 1 || (room_for * problem.ranks <= ROOMY && problem.slots > problem.ranks) {
                add(format!("{name}{kind}"), partition::place(problem, weights, room_for)?);
            }
        }
    }
    starts.sort_by_key(|start| start.makespan);
    Ok(starts)
}

/// For every link by how much distance makes its messages longer, all together: what a quadratic assignment problem sees.
fn sensitivity(problem: &RankProblem) -> Vec<i64> {
    let links = &problem.program.links;
    let of_link = |(link, &messages): (_, &u32)| problem.spread(link).saturating_mul(i64::from(messages));
    links.all.iter().copied().zip(&links.messages).map(of_link).collect()
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
