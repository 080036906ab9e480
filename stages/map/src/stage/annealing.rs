//! `map/annealing`.

use hopmap_model::{Context, Error, Inputs, Outcome, Port, Stage};

use super::{PORTS, finish, place};
use crate::params::Wishes;
use crate::{Annealing, AnnealingParams};

/// `map/annealing`: parallel simulated annealing: islands of solvers that share the best placement.
#[derive(Debug)]
pub struct AnnealingStage;

impl Stage for AnnealingStage {
    type Params = AnnealingParams;
    const KIND: &'static str = "map/annealing";
    const SUMMARY: &'static str =
        "Parallel simulated annealing: islands of solvers that share the best placement";
    const REVISION: u32 = 3;

    fn ports() -> &'static [Port] {
        PORTS
    }

    fn check(params: &Self::Params) -> Result<(), Error> {
        Wishes::from(params).check()?;
        Annealing::new(params)?;
        Ok(())
    }

    fn preset(name: &str) -> Option<Self::Params> {
        (name == "paper").then(AnnealingParams::paper)
    }

    fn distributed() -> bool {
        true
    }

    fn run(params: Self::Params, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let mapper = Annealing::new(&params)?;
        Ok(finish(place(&mapper, &Wishes::from(&params), &inputs, cx)?, params.seconds.is_some()))
    }
}
