//! Errors of mapping problems and mappings.

use hopmap_model::{CostsError, Link, OutOfRange, SystemGraph, SystemGraphError, TaskGraphError};
use miette::Diagnostic;

/// An invalid mapping problem or mapping.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum ObjectiveError {
    /// Invalid inputs of a problem, or an invalid mapping.
    #[error("{problem}")]
    #[diagnostic(code(objective::invalid))]
    Invalid {
        /// What is wrong.
        problem: String,
        /// How to fix it, if known.
        #[help]
        help: Option<String>,
    },
    /// A parameter is out of its range.
    #[error(transparent)]
    #[diagnostic(transparent)]
    OutOfRange(#[from] OutOfRange),
    /// Costs that follow from routes cannot be stored.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Costs(#[from] CostsError),
    /// The task graph is inconsistent.
    #[error(transparent)]
    #[diagnostic(transparent)]
    TaskGraph(#[from] TaskGraphError),
    /// The machine is inconsistent.
    #[error(transparent)]
    #[diagnostic(transparent)]
    SystemGraph(#[from] SystemGraphError),
}

impl ObjectiveError {
    #[cold]
    pub(crate) fn new(problem: impl Into<String>, help: impl Into<String>) -> Self {
        let help = Some(help.into()).filter(|help| !help.is_empty());
        Self::Invalid { problem: problem.into(), help }
    }

    /// The machine has no links, which hops and link loads need.
    pub(crate) fn no_links() -> Self {
        let problem = "the machine has no links, so hops and link loads are undefined";
        Self::new(problem, "use a machine with links, or the objective F or T")
    }

    /// A link has no bandwidth, which its time needs.
    pub(crate) fn no_bandwidth(system: &SystemGraph, link: &Link) -> Self {
        let [from, to] = [link.source, link.destination].map(|node| &system.nodes[node as usize].name);
        let problem =
            format!("the link from `{from}` to `{to}` has no bandwidth, so times of links are undefined");
        Self::new(problem, "use a machine topology with bandwidths, or the objective max-link-load")
    }

    /// The largest possible cost of matrices overflows.
    pub(crate) fn too_large() -> Self {
        let problem = "the largest possible cost does not fit 64-bit integers";
        Self::new(problem, "use a larger unit for weights or costs")
    }

    /// The machine tree is too deep for codes.
    pub(crate) fn too_deep(bits: u32) -> Self {
        let problem = format!("the machine tree is too deep: a slot needs {bits} bits, more than 63");
        Self::new(problem, "merge levels of similar cost")
    }
}

/// Checks that there are ranks, and at least as many slots.
pub(crate) fn check_size(ranks: usize, slots: usize) -> Result<(), ObjectiveError> {
    match ranks {
        0 => {
            let help = "check that the trace is complete and contains at least one process";
            Err(ObjectiveError::new("the task graph has no processes", help))
        }
        _ if ranks > slots => {
            let problem = format!("{ranks} ranks do not fit on {slots} slots");
            let help = format!(
                "every rank needs one slot: use a machine with at least {ranks} slots, or a smaller program"
            );
            Err(ObjectiveError::new(problem, help))
        }
        _ => Ok(()),
    }
}

/// Checks the number of ranks of a mapping.
pub(crate) fn check_length(placed: usize, ranks: usize) -> Result<(), ObjectiveError> {
    let problem = || format!("the mapping has {placed} ranks, but the task graph has {ranks}");
    match placed == ranks {
        true => Ok(()),
        false => Err(ObjectiveError::new(problem(), "use the task graph for which the mapping was computed")),
    }
}

/// A mapping uses a slot that the machine does not have.
#[cold]
pub(crate) fn no_such_slot(rank: usize, slot: u32, slots: usize) -> ObjectiveError {
    let problem = format!("rank {rank} is on slot {slot}, but the machine has {slots} slots");
    ObjectiveError::new(problem, "use the machine for which the mapping was computed")
}

/// Marks a free slot.
pub(crate) const FREE: u32 = u32::MAX;

/// The rank on every slot of a mapping, at most one each.
pub(crate) fn ranks_by_slot(placement: &[u32], slots: usize) -> Result<Vec<u32>, ObjectiveError> {
    let mut ranks = vec![FREE; slots];
    for (rank, &slot) in placement.iter().enumerate() {
        let place = ranks.get_mut(slot as usize).ok_or_else(|| no_such_slot(rank, slot, slots))?;
        match std::mem::replace(place, rank as u32) {
            FREE => {}
            first => {
                let problem = format!("ranks {first} and {rank} are both on slot {slot}");
                return Err(ObjectiveError::new(problem, ""));
            }
        }
    }
    Ok(ranks)
}

/// There is no path from one host to another.
#[cold]
pub(crate) fn no_route(system: &SystemGraph, [from, to]: [u32; 2]) -> ObjectiveError {
    let name = |node: u32| system.nodes[node as usize].name.clone();
    CostsError::NoRoute { from: name(from), to: name(to) }.into()
}
