//! `map/hierarchical`.

use hopmap_model::{Context, Error, Inputs, Library, Outcome, Port, Stage};

use super::{PORTS, finish, place};
use crate::hierarchical::METIS;
use crate::params::Wishes;
use crate::{Hierarchical, HierarchicalParams};

/// `map/hierarchical`: partition of the ranks down the tree of the machine.
#[derive(Debug)]
pub struct HierarchicalStage;

impl Stage for HierarchicalStage {
    type Params = HierarchicalParams;
    const KIND: &'static str = "map/hierarchical";
    const SUMMARY: &'static str = "Partition of the ranks down the tree of the machine, for any size";
    const REVISION: u32 = 2;

    fn ports() -> &'static [Port] {
        PORTS
    }

    fn libraries() -> &'static [&'static Library] {
        &[METIS]
    }

    fn preset(name: &str) -> Option<Self::Params> {
        (name == "paper").then(HierarchicalParams::paper)
    }

    fn check(params: &Self::Params) -> Result<(), Error> {
        Wishes::from(params).check()?;
        Hierarchical::new(params)?;
        Ok(())
    }

    fn run(params: Self::Params, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let mapper = Hierarchical::new(&params)?;
        Ok(finish(place(&mapper, &Wishes::from(&params), &inputs, cx)?, params.seconds.is_some()))
    }
}
