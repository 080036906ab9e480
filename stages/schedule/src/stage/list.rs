//! `schedule/list`.

use hopmap_model::{Context, Error, InputPath, Inputs, Outcome, Port, Stage};

use super::{PORTS, files, solve};
use crate::{List, ListParams, MachineParams, Scheduler, ranks};

/// `schedule/list`: a list heuristic.
#[derive(Debug)]
pub struct ListStage;

impl Stage for ListStage {
    type Params = ListParams;
    const KIND: &'static str = "schedule/list";
    const SUMMARY: &'static str = "A schedule by a list heuristic, such as HEFT";
    const REVISION: u32 = 2;

    fn ports() -> &'static [Port] {
        PORTS
    }

    fn check(params: &Self::Params) -> Result<(), Error> {
        List::new(params)?;
        Ok(())
    }

    fn reads(params: &Self::Params) -> Result<Vec<InputPath>, Error> {
        Ok(files(&MachineParams::from(params)))
    }

    fn run(params: Self::Params, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let scheduler = List::new(&params)?;
        let bound = |problem: &ranks::RankProblem| ranks::list(&params, problem, cx);
        solve(
            &MachineParams::from(&params),
            false,
            &inputs,
            cx,
            |problem| scheduler.schedule(problem, cx),
            bound,
        )
    }
}
