//! Which messages the makespan depends on.

use hopmap_model::DelayModel;

use super::evaluate::Pass;
use super::problem::RankProblem;
use super::program::NOBODY;

/// Steps from the nearest to the farthest that the longest message can go.
const STEPS: i64 = 64;

/// Slack beyond its own delay that a message may have and still count, as a part of the makespan: many small delays add up.
const TOLERANCE: i64 = 50;

/// How much depends on every link.
#[derive(Debug, Default)]
pub(super) struct Criticality {
    /// By how much distance could delay the end through the messages of every link, each, if all others took the least: a message
    /// with slack counts the less the more it has. A quadratic assignment problem does not see slack.
    pub(super) delays: Vec<i64>,
    /// The same with the fourth power of every delay: where everybody waits for the slowest, one long delay is worse than many short ones.
    pub(super) longest: Vec<i64>,
    /// How many messages of every link can delay the end.
    pub(super) exposed: Vec<u32>,
    /// Ticks of a step.
    step: i64,
}

impl Criticality {
    /// How much a link that takes so much longer than it has to contributes to strain: the square of its delay for every message that can
    /// delay the end.
    #[inline]
    pub(super) fn strain(&self, link: usize, delay: i64) -> i64 {
        let steps = delay / self.step;
        i64::from(self.exposed[link]) * steps * steps
    }
}

/// What the messages of every link can delay.
pub(super) fn criticality(problem: &RankProblem) -> Criticality {
    let program = &problem.program;
    let least: Vec<i64> = program.links.all.iter().map(|&link| problem.near.least(link)).collect();
    let slots: Vec<u32> = (0..problem.ranks as u32).collect();
    let mut pass = Pass::new(problem);
    let makespan = pass.run(problem, &slots, &least, i64::MAX).unwrap_or(0);
    let links = program.links.len();
    let longest = program.links.all.iter().map(|&link| problem.spread(link)).max().unwrap_or(0);
    let step = (longest / STEPS).max(1);
    let mut critical =
        Criticality { delays: vec![0; links], longest: vec![0; links], exposed: vec![0; links], step };
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
            let spread = problem.spread(program.links.all[link]);
            let tolerance = spread + makespan / TOLERANCE;
            let left = i128::from((tolerance - slack).max(0));
            let delay = (i128::from(spread) * left / i128::from(tolerance.max(1))) as i64;
            let steps = delay / step;
            critical.delays[link] = critical.delays[link].saturating_add(delay);
            critical.longest[link] = critical.longest[link].saturating_add(steps.pow(4));
            critical.exposed[link] += u32::from(delay > 0);
        }
        let previous = program.previous[node];
        if previous != NOBODY {
            after[previous as usize] = after[previous as usize].max(own);
        }
    }
    critical
}
