//! The measurement schedule: a round-robin tournament, in which every two endpoints meet once and each has at
//! most one partner per round.
//!
//! The circle method: one player stays, the others advance by one place every round. An even number N of
//! players takes N − 1 rounds of N / 2 pairs, an odd one N rounds, in each of which one player rests.

use std::time::Instant;

use hopmap_model::{Context, Pair, ProbePhase};

use super::sampling::Sampling;
use crate::params::{BandwidthPhase, ProbeParams};

/// Number of rounds for a number of players.
#[must_use]
pub fn rounds(players: u32) -> u32 {
    if players < 2 { 0 } else { positions(players) }
}

/// The partner of a player in a round; `None` if the player rests.
#[must_use]
pub fn partner(players: u32, round: u32, player: u32) -> Option<u32> {
    let positions = positions(players);
    let partner = if player == positions {
        round
    } else if player == round {
        positions
    } else {
        // Places add up to twice the round on the circle.
        (2 * round + positions - player) % positions
    };
    (partner < players).then_some(partner)
}

/// The pairs of a round, sorted.
pub fn pairs(players: u32, round: u32) -> impl Iterator<Item = Pair> {
    (0..players).filter_map(move |player| {
        partner(players, round, player).filter(|&partner| player < partner).map(|partner| (player, partner))
    })
}

/// Places on the circle; the player with that number stays in the centre.
fn positions(players: u32) -> u32 {
    if players.is_multiple_of(2) { players - 1 } else { players }
}

/// The concurrent tournaments of several groups: the pairs of each step.
///
/// `at_once` limits the pairs of a group per step.
pub fn steps<'a>(groups: &'a [Vec<u32>], at_once: Option<usize>) -> impl Iterator<Item = Vec<Pair>> + 'a {
    let players = |group: &Vec<u32>| group.len() as u32;
    let all_rounds = groups.iter().map(|group| rounds(players(group))).max().unwrap_or(0);
    (0..all_rounds).flat_map(move |round| {
        let of_group = |group: &'a Vec<u32>| -> Vec<Pair> {
            if round >= rounds(players(group)) {
                return Vec::new();
            }
            let named = |(a, b): Pair| (group[a as usize], group[b as usize]);
            pairs(players(group), round).map(named).collect()
        };
        let all: Vec<Vec<Pair>> = groups.iter().map(of_group).collect();
        let most = all.iter().map(Vec::len).max().unwrap_or(0);
        let width = at_once.unwrap_or(most).max(1);
        (0..most.div_ceil(width)).map(move |step| {
            let part = |pairs: &Vec<Pair>| pairs.iter().skip(step * width).take(width).copied().collect();
            all.iter().flat_map(|pairs| -> Vec<Pair> { part(pairs) }).collect()
        })
    })
}

/// Number of steps of the tournaments of several groups.
#[must_use]
pub fn count_steps(groups: &[Vec<u32>], at_once: Option<usize>) -> u64 {
    let Some(largest) = groups.iter().map(Vec::len).max() else { return 0 };
    let most = largest / 2;
    let width = at_once.unwrap_or(most).max(1);
    u64::from(rounds(largest as u32)) * most.div_ceil(width) as u64
}

/// Largest message of the latency phase, in bytes; larger ones would interfere with each other.
const LARGEST_SMALL: u64 = 1 << 16;

/// Measurements of some sizes between some endpoints.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    pub(crate) phase: ProbePhase,
    /// Groups whose members are measured with each other.
    pub(crate) groups: Vec<Vec<u32>>,
    /// Limit of concurrent pairs of a group.
    pub(crate) at_once: Option<usize>,
    pub(crate) sampling: Sampling,
}

impl Part {
    /// The concurrent pairs of each step.
    pub(crate) fn steps(&self) -> impl Iterator<Item = Vec<Pair>> + '_ {
        steps(&self.groups, self.at_once)
    }

    pub(crate) fn count_steps(&self) -> u64 {
        count_steps(&self.groups, self.at_once)
    }
}

/// The parts of a probing that have endpoints and sizes to measure.
pub(crate) fn parts(params: &ProbeParams, groups: &[Vec<u32>]) -> Vec<Part> {
    phases(params)
        .into_iter()
        .map(|(phase, sampling)| Part {
            phase,
            groups: groups.to_vec(),
            at_once: (phase == ProbePhase::Isolated).then_some(params.parallel as usize),
            sampling,
        })
        .filter(|part| part.count_steps() > 0)
        .collect()
}

/// The requested phases with their sizes.
pub(crate) fn phases(params: &ProbeParams) -> Vec<(ProbePhase, Sampling)> {
    let mut sizes = params.sizes.clone();
    sizes.sort_unstable();
    sizes.dedup();
    let (small, large): (Vec<u64>, Vec<u64>) = sizes.into_iter().partition(|&bytes| bytes <= LARGEST_SMALL);
    let large_phases: &[ProbePhase] = match params.bandwidth {
        BandwidthPhase::None => &[],
        BandwidthPhase::Isolated => &[ProbePhase::Isolated],
        BandwidthPhase::Loaded => &[ProbePhase::Loaded],
        BandwidthPhase::Both => &[ProbePhase::Isolated, ProbePhase::Loaded],
    };
    let mut phases = vec![(ProbePhase::Latency, sampling(params, small))];
    phases.extend(large_phases.iter().map(|&phase| (phase, sampling(params, large.clone()))));
    phases.retain(|(_, sampling)| !sampling.sizes.is_empty());
    phases
}

pub(crate) fn sampling(params: &ProbeParams, sizes: Vec<u64>) -> Sampling {
    Sampling {
        // Small sizes are fast; large ones first open the TCP windows.
        warm_up: 3,
        warm_up_bytes: if sizes.iter().any(|&bytes| bytes > LARGEST_SMALL) { 4 << 20 } else { 1 << 12 },
        sizes,
        batch: 20,
        most: params.messages,
        calm_batches: 3,
        tolerance: params.tolerance,
        seconds: params.size_time_limit_s,
    }
}

/// Upper limit of the seconds to measure a pair in one direction, including the last batches of a slow
/// connection.
pub(crate) fn most_seconds(sampling: &Sampling) -> f64 {
    2.0 + 4.0 * sampling.seconds * sampling.sizes.len() as f64
}

/// Progress over the steps of all parts, weighted by number and length of their sizes.
pub(crate) struct Steps<'a> {
    cx: &'a Context<'a>,
    /// Remaining steps of each part and the weight of a step.
    left: std::collections::VecDeque<(u64, u64)>,
    done: u64,
    total: u64,
    begin: Instant,
    announced: bool,
}

impl<'a> Steps<'a> {
    pub(crate) fn new(parts: &[Part], cx: &'a Context<'a>) -> Self {
        let left: std::collections::VecDeque<(u64, u64)> =
            parts.iter().map(|part| (part.count_steps(), weight(part))).collect();
        let total = left.iter().map(|(steps, weight)| steps * weight).sum();
        Self { cx, left, done: 0, total, begin: Instant::now(), announced: false }
    }

    /// Records a completed step.
    pub(crate) fn done(&mut self) {
        while self.left.front().is_some_and(|(steps, _)| *steps == 0) {
            self.left.pop_front();
        }
        if let Some((steps, weight)) = self.left.front_mut() {
            *steps -= 1;
            self.done += *weight;
        }
        self.cx.progress(self.done, self.total);
        let spent = self.begin.elapsed().as_secs_f64();
        // Once, when the estimate is reliable.
        if !self.announced && spent > 2.0 {
            self.announced = true;
            let left = spent * (self.total - self.done) as f64 / self.done.max(1) as f64;
            if left > 5.0 {
                self.cx.log(format!("about {left:.0} s left"));
            }
        }
    }
}

/// Estimated time of a step of a part, in units of a small message size.
fn weight(part: &Part) -> u64 {
    let large = part.sampling.sizes.iter().filter(|&&bytes| bytes > 1 << 16).count() as u64;
    part.sampling.sizes.len() as u64 + 4 * large
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// Every two players meet exactly once, and no player has two partners in a round.
    #[test]
    fn every_two_meet_once_for_2_to_1000_players() {
        for players in 2..=1000_u32 {
            let mut met = vec![false; (players * players) as usize];
            let mut seen = vec![u32::MAX; players as usize];
            for round in 0..rounds(players) {
                let mut busy = 0;
                for (a, b) in pairs(players, round) {
                    assert!(a < b && b < players);
                    for player in [a, b] {
                        assert_ne!(seen[player as usize], round, "{player} of {players} has two partners");
                        seen[player as usize] = round;
                    }
                    assert!(!std::mem::replace(&mut met[(a * players + b) as usize], true));
                    busy += 2;
                }
                assert!(busy + 1 >= players, "more than one of {players} rests");
            }
            assert_eq!(met.iter().filter(|met| **met).count() as u32, players * (players - 1) / 2);
            assert_eq!(rounds(players), if players % 2 == 0 { players - 1 } else { players });
        }
    }

    #[test]
    fn no_players_have_no_rounds() {
        assert_eq!((rounds(0), rounds(1)), (0, 0));
        assert_eq!(steps(&[vec![], vec![7]], None).count(), 0);
        assert_eq!(count_steps(&[], None), 0);
        assert_eq!(count_steps(&[vec![], vec![7]], Some(3)), 0);
    }

    #[test]
    fn groups_play_side_by_side_and_within_limits() {
        let groups = [vec![0, 1, 2, 3, 4, 5, 6, 7], vec![10, 11, 12], vec![20]];
        for at_once in [None, Some(1), Some(2), Some(3), Some(100)] {
            let all: Vec<Vec<Pair>> = steps(&groups, at_once).collect();
            assert_eq!(all.len() as u64, count_steps(&groups, at_once), "{at_once:?}");
            let distinct: HashSet<Pair> = all.iter().flatten().copied().collect();
            assert_eq!((all.iter().flatten().count(), distinct.len()), (31, 31));
            for step in &all {
                for group in &groups {
                    let here = step.iter().filter(|pair| group.contains(&pair.0)).count();
                    assert!(here <= at_once.unwrap_or(4));
                    assert!(step.iter().all(|pair| group.contains(&pair.0) == group.contains(&pair.1)));
                }
            }
        }
    }
}
