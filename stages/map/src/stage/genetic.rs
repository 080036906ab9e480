//! `map/genetic`.

use hopmap_model::{Context, Error, Inputs, Outcome, Port, Stage};

use super::{PORTS, finish, place};
use crate::params::Wishes;
use crate::{Genetic, GeneticParams};

/// `map/genetic`: parallel genetic algorithm: populations that exchange their best placements.
#[derive(Debug)]
pub struct GeneticStage;

impl Stage for GeneticStage {
    type Params = GeneticParams;
    const KIND: &'static str = "map/genetic";
    const SUMMARY: &'static str =
        "Parallel genetic algorithm: populations that exchange their best placements";
    const REVISION: u32 = 2;

    fn ports() -> &'static [Port] {
        PORTS
    }

    fn check(params: &Self::Params) -> Result<(), Error> {
        Wishes::from(params).check()?;
        Genetic::new(params)?;
        Ok(())
    }

    fn preset(name: &str) -> Option<Self::Params> {
        (name == "paper").then(GeneticParams::paper)
    }

    fn distributed() -> bool {
        true
    }

    fn run(params: Self::Params, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let mapper = Genetic::new(&params)?;
        Ok(finish(place(&mapper, &Wishes::from(&params), &inputs, cx)?, params.seconds.is_some()))
    }
}
