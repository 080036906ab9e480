//! What the searches of this crate spend their time on. There is no other share of a time limit.

use hopmap_islands::{DESCENT, LIMIT, Phase};

const REST: &str = "the rest";

/// `map/auto` of a sum, and of a maximum.
pub(crate) const AUTO: &[Phase] =
    &[CLUSTERS, PARTITION, ISLANDS, POPULATION, EXPLORATION, WALK, BEHIND_WALK, FINISH];
pub(crate) const AUTO_OF_MAXIMUM: &[Phase] =
    &[TEMPERATURES, FIRST_PARTITION, ISLANDS, NORMS, POPULATION, DESCENT_OF_NORM, FINISH];
pub(crate) const CLUSTERS: Phase = Phase { most: 1 << 22, ..Phase::new("clusters", 0.15, LIMIT) };
pub(crate) const PARTITION: Phase = Phase::new("partition", 0.4, LIMIT);
pub(crate) const FIRST_PARTITION: Phase = Phase { most: 1 << 21, ..Phase::new("partition", 0.15, LIMIT) };
pub(crate) const TEMPERATURES: Phase = Phase::new("temperatures", 0.4, LIMIT);
pub(crate) const ISLANDS: Phase = Phase::new("islands", 1.0, REST);
pub(crate) const NORMS: Phase = Phase::new("norms", 0.7, REST);
/// A population or a long cycle, whose number of steps and speed are estimates.
pub(crate) const POPULATION: Phase = Phase::new("population", 0.9, REST);
pub(crate) const EXPLORATION: Phase = Phase::new("tabu search", 0.25, "the population before");
pub(crate) const WALK: Phase = Phase::new("tabu walk", 1.0, "all populations");
pub(crate) const BEHIND_WALK: Phase = Phase::new("next population", 0.125, "a walk that leads");
/// If there was no time for temperatures: a maximum is flat.
pub(crate) const DESCENT_OF_NORM: Phase = Phase::new("local search of a norm", 0.5, REST);
pub(crate) const FINISH: Phase = Phase::new("final local search", 0.05, REST);

pub(crate) const HIERARCHICAL: &[Phase] = &[PARTITIONS, LOCAL_SEARCH];
pub(crate) const PARTITIONS: Phase = Phase::new("partitions", 0.8, LIMIT);
pub(crate) const LOCAL_SEARCH: Phase = Phase::new("local search", 0.2, LIMIT);

/// `map/exact` of a sum, of a maximum, and of many ranks, for which there is no search.
pub(crate) const EXACT: [Phase; 2] = [Phase { most: 1 << 24, ..INCUMBENT }, PROOF];
pub(crate) const EXACT_OF_MAXIMUM: [Phase; 2] = [Phase { most: 1 << 18, ..INCUMBENT }, PROOF];
pub(crate) const EXACT_OF_MANY: [Phase; 2] =
    [Phase { most: 1 << 20, ..Phase::new("incumbent", 0.8, LIMIT) }, PROOF];
const INCUMBENT: Phase = Phase::new("incumbent", 0.25, LIMIT);
const PROOF: Phase = Phase::new("lower bound", 1.0, REST);

/// The objective `makespan`, with up to 16 candidates.
pub(crate) const MAKESPAN_PLAN: &[Phase] = &[CANDIDATE, ISLANDS];
pub(crate) const CANDIDATE: Phase = Phase::new("each candidate", 0.03, LIMIT);

pub(crate) const PREDICTED_TIME: &[Phase] = &[CANDIDATES, EXCHANGES];
pub(crate) const CANDIDATES: Phase = Phase::new("candidates", 0.4, LIMIT);
pub(crate) const EXCHANGES: Phase = Phase::new("exchanges", 1.0, REST);

/// The other searches; `map/composite` anneals first.
pub(crate) const FINAL_SEARCH: &[Phase] = &[DESCENT];
pub(crate) const ANNEALINGS: Phase = Phase::new("annealing", 0.5, LIMIT);

#[test]
fn all_phases_have_room_in_the_limit() {
    let plans = [AUTO, AUTO_OF_MAXIMUM, HIERARCHICAL, &EXACT, &EXACT_OF_MAXIMUM, &EXACT_OF_MANY];
    for plan in plans.into_iter().chain([PREDICTED_TIME, &[CANDIDATE; 16], &[ANNEALINGS, DESCENT]]) {
        assert!(
            plan.iter().filter(|phase| phase.whole == LIMIT).map(|phase| phase.share).sum::<f64>() <= 1.0
        );
        assert!(plan.iter().all(|phase| phase.share <= 1.0));
    }
}
