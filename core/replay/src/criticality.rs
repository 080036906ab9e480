//! Which messages the makespan depends on.
//!
//! A quadratic assignment problem adds up what all messages cost. Here a message counts the less the more slack it has when all messages
//! take the least that they can: see the total float of the critical path method.

use hopmap_model::DelayModel;

use crate::costs::Costs;
use crate::pass::{Pass, Tails};
use crate::program::{NONE, Program};

/// Steps from the nearest to the farthest that the longest message can go.
const STEPS: i64 = 64;

/// Slack beyond its own delay that a message may have and still count, as a part of the makespan: many small delays add up.
const TOLERANCE: i64 = 50;

/// How much depends on the messages of every channel.
#[derive(Debug)]
pub struct Criticality {
    /// The sum over the messages of every channel of how far distance could delay the end through each, if all others took the least.
    pub delays: Vec<i64>,
    /// The same with the fourth power of every delay: where everybody waits for the slowest, one long delay is worse than many short ones.
    pub longest: Vec<i64>,
    /// Number of messages of every channel that can delay the end.
    exposed: Vec<u32>,
    /// Ticks of a step, the unit of powers of delays.
    step: i64,
}

impl Criticality {
    /// What a channel whose messages take so much longer than they have to contributes to the surrogate objective: the square of the delay
    /// for every message that can delay the end.
    #[inline]
    pub(crate) fn surrogate(&self, channel: usize, delay: i64) -> i64 {
        let steps = delay / self.step;
        i64::from(self.exposed[channel]) * steps * steps
    }

    pub(crate) fn new(program: &Program, costs: &Costs, tails: &Tails) -> Self {
        let all = &program.channels.all;
        let least: Vec<i64> = all.iter().map(|&channel| costs.messages.least(channel)).collect();
        let slots: Vec<u32> = (0..program.ranks() as u32).collect();
        let mut pass = Pass::new(program, costs, tails);
        let makespan = pass.run(&slots, &least, i64::MAX).unwrap_or(0);
        let channels = all.len();
        let longest = all.iter().map(|&channel| costs.messages.spread(channel)).max().unwrap_or(0);
        let step = (longest / STEPS).max(1);
        let mut critical =
            Self { delays: vec![0; channels], longest: vec![0; channels], exposed: vec![0; channels], step };
        let mut after = vec![0i64; program.nodes()];
        for node in (0..program.nodes()).rev() {
            let incoming = program.incoming(node as u32);
            let overlaps = costs.messages.model == DelayModel::Overlap;
            let longest = incoming.iter().map(|message| least[message.channel as usize]).max().unwrap_or(0);
            let receives = if overlaps { 0 } else { longest };
            let own = receives + costs.work.least[node] + after[node];
            for message in incoming {
                let (sender, channel) = (message.source as usize, message.channel as usize);
                let arrives = if overlaps { own + least[channel] } else { own };
                after[sender] = after[sender].max(arrives);
                let slack = (makespan - pass.finish[sender] - arrives).max(0);
                let spread = costs.messages.spread(all[channel]);
                let tolerance = spread + makespan / TOLERANCE;
                let left = i128::from((tolerance - slack).max(0));
                let delay = (i128::from(spread) * left / i128::from(tolerance.max(1))) as i64;
                let steps = delay / step;
                critical.delays[channel] = critical.delays[channel].saturating_add(delay);
                critical.longest[channel] = critical.longest[channel].saturating_add(steps.pow(4));
                critical.exposed[channel] += u32::from(delay > 0);
            }
            let previous = program.previous[node];
            if previous != NONE {
                after[previous as usize] = after[previous as usize].max(own);
            }
        }
        critical
    }
}
