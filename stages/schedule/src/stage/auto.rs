//! `schedule/auto`.

use hopmap_model::{Context, Error, InputPath, Inputs, Outcome, Port, Stage};

use super::{PORTS, files, solve};
use crate::{Auto, AutoParams, MachineParams, Scheduler, ranks};

/// `schedule/auto`: the scheduler that suits the problem.
#[derive(Debug)]
pub struct AutoStage;

impl Stage for AutoStage {
    type Params = AutoParams;
    const KIND: &'static str = "schedule/auto";
    const SUMMARY: &'static str =
        "The best schedule that a budget allows, and how far it can be from the optimum";
    const REVISION: u32 = 2;

    fn ports() -> &'static [Port] {
        PORTS
    }

    fn check(params: &Self::Params) -> Result<(), Error> {
        Auto::new(params)?;
        Ok(())
    }

    fn reads(params: &Self::Params) -> Result<Vec<InputPath>, Error> {
        Ok(files(&MachineParams::from(params)))
    }

    fn distributed() -> bool {
        true
    }

    fn run(params: Self::Params, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let scheduler = Auto::new(&params)?;
        let bound = |problem: &ranks::RankProblem| ranks::auto(&params, problem, cx);
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
