//! `map/exact`.

use hopmap_model::{Context, Error, Inputs, Mapping, Outcome, Port, Stage};

use super::{PORTS, finish, place};
use crate::exact::{BOUND, GAP, PROVEN};
use crate::params::Wishes;
use crate::{Exact, ExactParams};

/// `map/exact`: branch and bound.
#[derive(Debug)]
pub struct ExactStage;

impl Stage for ExactStage {
    type Params = ExactParams;
    const KIND: &'static str = "map/exact";
    const SUMMARY: &'static str = "The proven optimum of a small problem, or a bound";
    const REVISION: u32 = 1;

    fn ports() -> &'static [Port] {
        PORTS
    }

    fn check(params: &Self::Params) -> Result<(), Error> {
        Wishes::from(params).check()?;
        Exact::new(params)?;
        Ok(())
    }

    fn run(params: Self::Params, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let mapper = Exact::new(&params)?;
        let mut mapping = place(&mapper, &Wishes::from(&params), &inputs, cx)?;
        compare(&mut mapping);
        Ok(finish(mapping, params.seconds.is_some()))
    }
}

/// Compares F with its bound. Both are rounded: the bound never exceeds F, and is F where that is proven.
fn compare(mapping: &mut Mapping) {
    let metrics = &mut mapping.metrics;
    let (Some(&f), Some(&bound)) = (metrics.get("F"), metrics.get(BOUND.name)) else { return };
    let proven = metrics.get(PROVEN.name).is_some_and(|&proven| proven > 0.0);
    let bound = if proven { f } else { bound.min(f) };
    metrics.insert(BOUND.name.to_owned(), bound);
    if bound > 0.0 {
        metrics.insert(GAP.name.to_owned(), (f - bound) / bound);
    } else if f <= 0.0 {
        metrics.insert(GAP.name.to_owned(), 0.0);
    }
}
