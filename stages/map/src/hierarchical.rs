//! Partition of the ranks down the tree of the machine.

mod multisection;
mod partitioner;
mod tree;

use hopmap_islands::Budget;
use hopmap_model::{Context, Error};
use hopmap_objective::Problem;

use crate::error::HierarchicalError;
use crate::{Found, HierarchicalParams, LevelChoice, Mapper, Partitioner};
use multisection::Multisection;
use tree::Tree;

/// Recursive multisection (HierarchicalMap: the graph of the ranks is cut into as many parts as a node of the machine has children, of
/// exactly their sizes, and so are the parts, down to the slots).
#[derive(Debug, Clone, PartialEq)]
pub struct Hierarchical {
    seed: u64,
    levels: LevelChoice,
    partitioner: Partitioner,
    budget: Option<Budget>,
}

impl Hierarchical {
    /// Checks the parameters.
    pub fn new(params: &HierarchicalParams) -> Result<Self, HierarchicalError> {
        let HierarchicalParams { seed, levels, partitioner, evaluations, seconds, .. } = params;
        partitioner.check()?;
        if let LevelChoice::Listed(levels) = levels {
            if levels.is_empty() {
                return Err(HierarchicalError::NoLevels);
            }
            if levels.contains(&0) {
                return Err(HierarchicalError::LevelZero);
            }
        }
        let budget = match (evaluations, seconds) {
            (None, None) => None,
            _ => Some(Budget::new(*evaluations, *seconds, 1)?),
        };
        Ok(Self { seed: *seed, levels: levels.clone(), partitioner: *partitioner, budget })
    }

    fn check_levels(&self, problem: &Problem) -> Result<(), HierarchicalError> {
        let levels = problem.distance().levels();
        let LevelChoice::Listed(listed) = &self.levels else { return Ok(()) };
        match listed.iter().find(|&&level| level as usize > levels) {
            Some(&level) => Err(HierarchicalError::NoSuchLevel { level, levels }),
            None => Ok(()),
        }
    }
}

impl Mapper for Hierarchical {
    fn map(&self, problem: &Problem, _cx: &Context<'_>) -> Result<Found, Error> {
        if !problem.distance().is_tree() {
            return Err(HierarchicalError::NoTree.into());
        }
        self.check_levels(problem)?;
        let tree = Tree::new(problem);
        let multisection =
            Multisection { levels: &self.levels, partitioner: self.partitioner, seed: self.seed };
        let slots = multisection.place(problem, &tree)?;
        let slots = problem.admit(slots);
        let linear = problem.linear();
        if problem.cost(&linear) <= problem.cost(&slots) {
            return Ok(Found::at_once(linear));
        }
        Ok(Found::at_once(slots))
    }
}
