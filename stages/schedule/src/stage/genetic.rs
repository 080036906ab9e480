//! `schedule/genetic`.

use hopmap_model::{Context, Error, InputPath, Inputs, Outcome, Port, Stage};

use super::{PORTS, files, solve};
use crate::{Genetic, GeneticParams, MachineParams, Scheduler, ranks};

/// `schedule/genetic`: the genetic algorithm of PARUS.
#[derive(Debug)]
pub struct GeneticStage;

impl Stage for GeneticStage {
    type Params = GeneticParams;
    const KIND: &'static str = "schedule/genetic";
    const SUMMARY: &'static str = "The genetic algorithm of PARUS: populations of schedules";
    const REVISION: u32 = 2;

    fn ports() -> &'static [Port] {
        PORTS
    }

    fn check(params: &Self::Params) -> Result<(), Error> {
        Genetic::new(params)?;
        Ok(())
    }

    fn reads(params: &Self::Params) -> Result<Vec<InputPath>, Error> {
        let mut files = files(&MachineParams::from(params));
        files.extend(params.ini.as_ref().map(|file| InputPath::named(file.path(), "ini")));
        Ok(files)
    }

    fn distributed() -> bool {
        true
    }

    fn run(params: Self::Params, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let scheduler = Genetic::new(&params)?;
        let bound = |problem: &ranks::RankProblem| ranks::genetic(&params, problem, cx);
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
