//! `map/composite`.

use hopmap_model::{Context, Error, Inputs, Outcome, Port, Stage};

use super::{PORTS, finish, place};
use crate::params::Wishes;
use crate::{Composite, CompositeParams};

/// `map/composite`: genetic algorithm on populations of annealed placements.
#[derive(Debug)]
pub struct CompositeStage;

impl Stage for CompositeStage {
    type Params = CompositeParams;
    const KIND: &'static str = "map/composite";
    const SUMMARY: &'static str = "Genetic algorithm on populations of annealed placements";
    const REVISION: u32 = 2;

    fn ports() -> &'static [Port] {
        PORTS
    }

    fn check(params: &Self::Params) -> Result<(), Error> {
        Wishes::from(params).check()?;
        Composite::new(params)?;
        Ok(())
    }

    fn preset(name: &str) -> Option<Self::Params> {
        (name == "paper").then(CompositeParams::paper)
    }

    fn distributed() -> bool {
        true
    }

    fn run(params: Self::Params, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let mapper = Composite::new(&params)?;
        Ok(finish(place(&mapper, &Wishes::from(&params), &inputs, cx)?, params.seconds.is_some()))
    }
}
