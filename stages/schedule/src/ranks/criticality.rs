//! Which messages the makespan depends on.

use hopmap_model::DelayModel;

use super::evaluate::Pass;
use super::problem::RankProblem;
use super::program::NOBODY;

/// For every link by how much distance could delay the end through its messages, each alone, if all others took the least: a message
/// with slack counts only for what is beyond it. A quadratic assignment problem does not see slack.
pub(super) fn criticality(problem: &RankProblem) -> Vec<i64> {
    let program = &problem.program;
    let least: Vec<i64> = program.links.links.iter().map(|&link| problem.near.least(link)).collect();
    let slots: Vec<u32> = (0..problem.ranks as u32).collect();
    let mut pass = Pass::new(problem);
    let makespan = pass.run(problem, &slots, &least, i64::MAX).unwrap_or(0);
    let mut weights = vec![0i64; program.links.len()];
    let mut after = vec![0i64; program.len()];
    for node in (0..program.len()).rev() {
        let incoming = program.incoming(node as u32);
        let overlaps = problem.model == DelayModel::Overlap;
        let longest = incoming.iter().map(|message| least[message.link as usize]).max().unwrap_or(0);
        let receives = if overlaps { 0 } else { longest };
        let own = receives + problem.work.least[node] + after[node];
        for message in incoming {
            let (sender, link) = (message.source as usize, message.link as usize);
            let arrives = if overlaps { own + least[link] } else { own };
            after[sender] = after[sender].max(arrives);
            let slack = (makespan - pass.finish[sender] - arrives).max(0);
            let delays = (problem.spread(program.links.links[link]) - slack).max(0);
            weights[link] = weights[link].saturating_add(delays);
        }
        let previous = program.previous[node];
        if previous != NOBODY {
            after[previous as usize] = after[previous as usize].max(own);
        }
    }
    weights
}
