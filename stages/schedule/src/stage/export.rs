//! `schedule/export`.

use hopmap_model::{Context, Error, Inputs, Outcome, Outputs, Port, Schedule, Stage, TaskDag, TextFile};

use crate::check::parus_order::accepts;
use crate::{ExportFormat, ExportParams, export};

/// `schedule/export`: a schedule as a text file for other tools.
#[derive(Debug)]
pub struct ExportStage;

impl Stage for ExportStage {
    type Params = ExportParams;
    const KIND: &'static str = "schedule/export";
    const SUMMARY: &'static str = "A schedule as .sch, Gantt chart, Perfetto, Pajé or WfFormat";
    const REVISION: u32 = 1;

    fn ports() -> &'static [Port] {
        const {
            &[
                Port::input::<Schedule>("schedule"),
                Port::optional::<TaskDag>("task-dag"),
                Port::output::<TextFile>("file"),
            ]
        }
    }

    fn run(params: Self::Params, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let schedule = inputs.one::<Schedule>("schedule")?.value;
        let dag = inputs.optional::<TaskDag>("task-dag")?.map(|dag| dag.value);
        let file = export::write(&schedule, dag.as_deref(), &params)?;
        let is_of_program = |dag: &&TaskDag| dag.tasks.len() == schedule.tasks.len();
        if let (ExportFormat::Sch, Some(dag)) = (params.format, dag.as_deref().filter(is_of_program))
            && !accepts(dag, &schedule.turns())
        {
            cx.log("`check_schedule` of PARUS refuses this order; `parus_order = true` of `schedule/check` finds another one");
        }
        Ok(Outcome::Done(Outputs::new().with("file", file)))
    }
}
