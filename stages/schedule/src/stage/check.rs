//! `schedule/check`.

use hopmap_model::{
    Context, Error, InputPath, Inputs, Outcome, Outputs, Port, Schedule, Stage, SystemGraph, TaskDag,
};

use super::files;
use crate::{CheckParams, Machine, MachineParams, check};

/// `schedule/check`: a schedule computed again from the program and the machine.
#[derive(Debug)]
pub struct CheckStage;

impl Stage for CheckStage {
    type Params = CheckParams;
    const KIND: &'static str = "schedule/check";
    const SUMMARY: &'static str = "A schedule or .sch file computed again, or what is wrong with it";
    const REVISION: u32 = 2;

    fn ports() -> &'static [Port] {
        const {
            &[
                Port::input::<TaskDag>("task-dag"),
                Port::optional::<SystemGraph>("system"),
                Port::optional::<Schedule>("schedule"),
                Port::output::<Schedule>("schedule"),
            ]
        }
    }

    fn reads(params: &Self::Params) -> Result<Vec<InputPath>, Error> {
        let mut files = files(&MachineParams::from(params));
        files.extend(params.file.iter().map(|file| InputPath::named(file.path(), "schedule")));
        Ok(files)
    }

    fn run(params: Self::Params, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let dag = inputs.one::<TaskDag>("task-dag")?.value;
        let system = inputs.optional::<SystemGraph>("system")?.map(|system| system.value);
        let given = inputs.optional::<Schedule>("schedule")?.map(|schedule| schedule.value);
        dag.check()?;
        let machine = Machine::new(&MachineParams::from(&params), system.as_deref(), dag.unit)?;
        let schedule = check::check(&dag, &machine, &params, given.as_deref(), cx)?;
        Ok(Outcome::Done(Outputs::new().with("schedule", schedule)))
    }
}
