//! `schedule/exact`.

use hopmap_model::{Context, Error, InputPath, Inputs, Outcome, Port, Stage};

use super::{PORTS, files, solve};
use crate::{Exact, ExactParams, MachineParams, Scheduler, ranks};

/// `schedule/exact`: branch and bound.
#[derive(Debug)]
pub struct ExactStage;

impl Stage for ExactStage {
    type Params = ExactParams;
    const KIND: &'static str = "schedule/exact";
    const SUMMARY: &'static str = "The proven optimum of a small problem, or a bound";
    const REVISION: u32 = 2;

    fn ports() -> &'static [Port] {
        PORTS
    }

    fn check(params: &Self::Params) -> Result<(), Error> {
        Exact::new(params)?;
        Ok(())
    }

    fn reads(params: &Self::Params) -> Result<Vec<InputPath>, Error> {
        Ok(files(&MachineParams::from(params)))
    }

    fn run(params: Self::Params, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let scheduler = Exact::new(&params)?;
        let bound = |problem: &ranks::RankProblem| ranks::exact(&params, problem, cx);
        solve(
            &MachineParams::from(&params),
            params.seconds.is_some(),
            &inputs,
            cx,
            |problem| scheduler.schedule(problem, cx),
            bound,
        )
    }
}
