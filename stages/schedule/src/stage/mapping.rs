//! `schedule/mapping`.

use hopmap_model::{Context, Error, Inputs, Mapping, Outcome, Outputs, Port, Schedule, Stage, SystemGraph};

use crate::{MappingParams, ranks};

/// `schedule/mapping`: the slots that the ranks of a schedule run on.
#[derive(Debug)]
pub struct MappingStage;

impl Stage for MappingStage {
    type Params = MappingParams;
    const KIND: &'static str = "schedule/mapping";
    const SUMMARY: &'static str = "The slot of every rank in the schedule of a trace, as a mapping";
    const REVISION: u32 = 2;

    fn ports() -> &'static [Port] {
        const {
            &[
                Port::input::<Schedule>("schedule"),
                Port::input::<SystemGraph>("system"),
                Port::output::<Mapping>("mapping"),
            ]
        }
    }

    fn run(_: Self::Params, inputs: Inputs, _: &Context<'_>) -> Result<Outcome, Error> {
        let schedule = inputs.one::<Schedule>("schedule")?.value;
        let system = inputs.one::<SystemGraph>("system")?.value;
        Ok(Outcome::Done(Outputs::new().with("mapping", ranks::mapping(&schedule, &system)?)))
    }
}
