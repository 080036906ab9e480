//! What can be wrong with a mapping problem or a placement.

use hopmap_model::{CostsError, SystemGraph, SystemGraphError, TaskGraphError};
use miette::Diagnostic;

/// A mapping problem or a placement that cannot be measured.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum ObjectiveError {
    /// A program, a machine, weights or constraints that make no problem, or slots that make no placement.
    #[error("{problem}")]
    Invalid {
        /// What is wrong.
        problem: String,
        /// What to do about it, where that is known.
        #[help]
        help: Option<String>,
    },
    /// The costs of the machine follow from routes and cannot be written down.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Costs(#[from] CostsError),
    /// The task graph contradicts itself.
    #[error(transparent)]
    #[diagnostic(transparent)]
    TaskGraph(#[from] TaskGraphError),
    /// The machine contradicts itself.
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

    /// Hops and link loads need links.
    pub(crate) fn no_links() -> Self {
        let problem = "the machine has no links, so there are neither hops nor link loads";
        Self::new(problem, "use a machine with links, or the objective F or T")
    }

    /// The largest possible cost of matrices does not fit the numbers it is summed in.
    pub(crate) fn too_large() -> Self {
        let problem = "the largest possible cost does not fit the numbers it is summed in";
        Self::new(problem, "give weights or costs in a larger unit")
    }

    /// The tree of the machine is too deep for codes.
    pub(crate) fn too_deep(bits: u32) -> Self {
        let problem =
            format!("the place of a slot in the tree of the machine takes {bits} bits, more than 63");
        Self::new(problem, "join levels of similar cost")
    }
}

/// Checks that there is something to place, and a slot for every rank.
pub(crate) fn check_size(ranks: usize, slots: usize) -> Result<(), ObjectiveError> {
    match ranks {
        0 => {
            let help = "check that the trace was read completely and holds at least one process";
            Err(ObjectiveError::new("the task graph has no processes", help))
        }
        _ if ranks > slots => {
            let problem = format!("{ranks} ranks do not fit on {slots} slots");
            let help = format!(
                "every rank takes one slot: use a machine with at least {ranks} slots, or a smaller program"
            );
            Err(ObjectiveError::new(problem, help))
        }
        _ => Ok(()),
    }
}

/// Checks that a placement is of so many ranks.
pub(crate) fn check_length(placed: usize, ranks: usize) -> Result<(), ObjectiveError> {
    let problem = || format!("the placement has {placed} ranks, but the task graph has {ranks}");
    match placed == ranks {
        true => Ok(()),
        false => {
            Err(ObjectiveError::new(problem(), "measure a placement with the task graph it was made for"))
        }
    }
}

/// A slot that the machine of a placement does not have.
#[cold]
pub(crate) fn no_such_slot(rank: usize, slot: u32, slots: usize) -> ObjectiveError {
    let problem = format!("rank {rank} is on slot {slot}, but the machine has {slots} slots");
    ObjectiveError::new(problem, "measure a placement on the machine it was made for")
}

/// Stands for the rank on a slot that is free.
pub(crate) const FREE: u32 = u32::MAX;

/// The rank on every slot of a placement, each of which has one at most.
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

/// There is no way from one host to another.
#[cold]
pub(crate) fn no_route(system: &SystemGraph, [from, to]: [u32; 2]) -> ObjectiveError {
    let name = |node: u32| system.nodes[node as usize].name.clone();
    CostsError::NoRoute { from: name(from), to: name(to) }.into()
}
