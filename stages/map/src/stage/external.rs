//! `map/external`.

use hopmap_model::{Context, Error, Inputs, Outcome, Port, Stage};

use super::{PORTS, finish, place};
use crate::params::Wishes;
use crate::{External, ExternalParams};

/// `map/external`: any command that reads two matrices and writes a permutation.
#[derive(Debug)]
pub struct ExternalStage;

impl Stage for ExternalStage {
    type Params = ExternalParams;
    const KIND: &'static str = "map/external";
    const SUMMARY: &'static str = "Another program that reads two matrices and writes a permutation";
    const REVISION: u32 = 1;

    fn ports() -> &'static [Port] {
        PORTS
    }

    fn check(params: &Self::Params) -> Result<(), Error> {
        Wishes::from(params).check()?;
        External::new(params)?;
        Ok(())
    }

    fn observes(_: &Self::Params) -> bool {
        true
    }

    fn run(params: Self::Params, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let mapper = External::new(&params)?;
        Ok(finish(place(&mapper, &Wishes::from(&params), &inputs, cx)?, params.seconds.is_some()))
    }
}
