//! What a replay leaves out: a processor works for every message at both of its ends. What that costs is seldom known, but where
//! it may be more than a small part of the run time, a bound of a replay does not hold for real runs.

use hopmap_model::{OperationKind, Program, SystemGraph};
use hopmap_prediction::{Options, PairRates, has_rates};

/// Part of the run time that may be left out. Measured on an emulated network: ranks with six or more neighbours and messages of
/// 1,000 bytes gained 7.5 % (95 % interval 4.9 to 8.8) where the bound was 6.3 %.
const MOST: f64 = 0.01;

/// Why a bound does not hold for real runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Uncounted {
    /// The rank with the most messages, whose ends may cost this many seconds.
    Messages { rank: u32, messages: u64, seconds: f64 },
    /// The program lacks communication or the order of its operations.
    Operations,
}

impl Uncounted {
    /// For a run of this time. An end of a message takes at most about as long as its way between hosts (o and L of the model `LogP`).
    pub(crate) fn of(
        program: &Program,
        system: &SystemGraph,
        options: &Options,
        seconds: f64,
    ) -> Option<Self> {
        if program.is_approximate || !program.left_out.is_zero() {
            return Some(Self::Operations);
        }
        let latency = latency_between_hosts(system, options)?;
        let most = (0..program.ranks()).map(|rank| (messages(program, rank), rank));
        let (messages, rank) = most.max_by_key(|(messages, rank)| (*messages, std::cmp::Reverse(*rank)))?;
        let uncounted_s = messages as f64 * latency;
        (uncounted_s > MOST * seconds).then_some(Self::Messages { rank, messages, seconds: uncounted_s })
    }
}

/// Messages that a rank sends or receives. One of a collective operation goes up and down a binary tree.
fn messages(program: &Program, rank: u32) -> u64 {
    let of_collective = 2 * u64::from(program.ranks().max(1).next_power_of_two().trailing_zeros());
    let count = |kind| match kind {
        OperationKind::Send | OperationKind::Isend | OperationKind::Recv | OperationKind::Irecv => 1,
        OperationKind::Collective => of_collective,
        OperationKind::Compute | OperationKind::Wait | OperationKind::Waitall | OperationKind::Test => 0,
    };
    program.of_rank(rank).iter().map(|operation| count(operation.kind())).sum()
}

/// The shortest latency of a link, or between slots of different hosts, in seconds.
fn latency_between_hosts(system: &SystemGraph, options: &Options) -> Option<f64> {
    if has_rates(system) {
        return system.links.iter().filter_map(|link| link.latency_s).reduce(f64::min);
    }
    match options.pairs.as_ref()? {
        PairRates::Levels(rates) => rates.last().map(|rate| rate.latency_s),
        PairRates::Matrix(rates) => {
            let slots = &system.slots;
            let pairs = slots.iter().flat_map(|from| slots.iter().map(move |to| from.host != to.host));
            let between = pairs.zip(rates).filter(|(differ, _)| *differ).map(|(_, rate)| rate.latency_s);
            between.reduce(f64::min)
        }
    }
}
