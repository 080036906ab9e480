//! What every mapper can be asked for: what to minimise, and under which constraints.

use hopmap_model::{Error, SystemGraph, TaskGraph, Weight, WeightChoice};
use hopmap_objective::{Constraints, Objective, Place, Problem, check_weight};
use miette::Diagnostic;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    AnnealingParams, AutoParams, CompositeParams, ExactParams, ExternalParams, GeneticParams,
    HierarchicalParams, LinearParams, RandomParams, TabuParams,
};

/// A rank that has to be on a slot, or on any slot of a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pin {
    /// The rank, from 0.
    pub rank: u32,
    /// Its slot, from 0.
    #[serde(default)]
    pub slot: Option<u32>,
    /// Or the name of its host.
    #[serde(default)]
    pub host: Option<String>,
}

/// What a mapper is asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wishes<'a> {
    pub(crate) weight: WeightChoice,
    objective: Objective,
    pinned: &'a [Pin],
    forbidden: &'a [String],
}

/// Takes the wishes out of the parameters of a stage.
macro_rules! wishes_of {
    ($($params:ty),+) => {
        $(impl<'a> From<&'a $params> for Wishes<'a> {
            fn from(params: &'a $params) -> Self {
                Self { weight: params.weight, objective: params.objective.0, pinned: &params.pinned, forbidden: &params.forbidden }
            }
        })+
    };
}

wishes_of!(
    LinearParams,
    RandomParams,
    AnnealingParams,
    AutoParams,
    CompositeParams,
    ExactParams,
    ExternalParams,
    GeneticParams,
    HierarchicalParams,
    TabuParams
);

impl Wishes<'_> {
    /// Checks what needs neither a program nor a machine.
    pub(crate) fn check(&self) -> Result<(), Error> {
        check_weight(self.weight.or(0.0, 1.0))?;
        self.objective.check()?;
        self.constraints()?;
        Ok(())
    }

    /// The problem that a program and a machine are.
    pub(crate) fn problem(
        &self,
        graph: &TaskGraph,
        system: &SystemGraph,
        weight: Weight,
    ) -> Result<Problem, Error> {
        let problem = Problem::with_objective(graph, system, weight, &self.objective)?;
        Ok(problem.with_constraints(&self.constraints()?, system)?)
    }

    fn constraints(&self) -> Result<Constraints, WishError> {
        let pinned = self.pinned.iter().map(Pin::place).collect::<Result<_, _>>()?;
        Ok(Constraints { pinned, forbidden: self.forbidden.to_vec() })
    }
}

impl Pin {
    fn place(&self) -> Result<hopmap_objective::Pin, WishError> {
        let rank = self.rank;
        let place = match (self.slot, &self.host) {
            (Some(slot), None) => Place::Slot(slot),
            (None, Some(host)) => Place::Host(host.clone()),
            (Some(_), Some(_)) => return Err(WishError::TwoPlaces { rank }),
            (None, None) => return Err(WishError::NoPlace { rank }),
        };
        Ok(hopmap_objective::Pin { rank, place })
    }
}

/// A wish that contradicts itself.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub(crate) enum WishError {
    /// A rank is pinned to a slot and a host.
    #[error("rank {rank} is pinned to a slot and a host")]
    #[diagnostic(help("give `slot` or `host`, not both"))]
    TwoPlaces {
        /// The rank.
        rank: u32,
    },
    /// A rank is pinned to nothing.
    #[error("rank {rank} is pinned, but not to anything")]
    #[diagnostic(help("give its `slot` or its `host`"))]
    NoPlace {
        /// The rank.
        rank: u32,
    },
}
