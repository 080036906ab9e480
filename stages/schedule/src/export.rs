//! Schedules as text that other programs read.

mod error;
mod exact;
mod page;
mod paje;
mod perfetto;
pub(crate) mod sch;
mod wfformat;

use hopmap_model::{Error, Schedule, TaskDag, TextFile};
use hopmap_views::gantt;

use crate::{ExportFormat, ExportParams};

pub use error::ExportError;

/// A schedule as text; some texts need the program beside it.
pub fn write(schedule: &Schedule, dag: Option<&TaskDag>, params: &ExportParams) -> Result<TextFile, Error> {
    schedule.check()?;
    let program = || -> Result<&TaskDag, ExportError> {
        let dag = dag.ok_or(ExportError::NoProgram { format: name(params.format) })?;
        let (tasks, there) = (schedule.tasks.len(), dag.tasks.len());
        if tasks == there { Ok(dag) } else { Err(ExportError::Tasks { tasks, there }) }
    };
    let (name, text) = match params.format {
        ExportFormat::Sch => ("schedule.sch", sch::write(schedule)),
        ExportFormat::Perfetto => ("schedule.json", perfetto::write(schedule, program()?)),
        ExportFormat::Svg => ("schedule.svg", gantt(schedule)),
        ExportFormat::Html => ("schedule.html", page::write(schedule)),
        ExportFormat::Paje => ("schedule.trace", paje::write(schedule, program()?)),
        ExportFormat::Wfformat => ("workflow.json", wfformat::write(schedule, program()?)?),
    };
    Ok(TextFile { name: name.to_owned(), text })
}

fn name(format: ExportFormat) -> &'static str {
    match format {
        ExportFormat::Sch => "sch",
        ExportFormat::Perfetto => "perfetto",
        ExportFormat::Svg => "svg",
        ExportFormat::Html => "html",
        ExportFormat::Paje => "paje",
        ExportFormat::Wfformat => "wfformat",
    }
}

#[cfg(test)]
mod tests;
