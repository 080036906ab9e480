//! Schedules as text that other programs read.

mod exact;
mod page;
mod paje;
mod perfetto;
pub(crate) mod sch;
#[cfg(test)]
mod tests;
mod wfformat;

use hopmap_model::{Error, Schedule, TaskDag, TextFile};
use hopmap_views::gantt;
use miette::Diagnostic;

use crate::{ExportFormat, ExportParams};

/// A schedule as text; some texts need the program beside it.
pub fn write(schedule: &Schedule, dag: Option<&TaskDag>, params: &ExportParams) -> Result<TextFile, Error> {
    schedule.check()?;
    let program = || -> Result<&TaskDag, ExportError> {
        let dag = dag.ok_or(ExportError::NoProgram { format: format_name(params.format) })?;
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

fn format_name(format: ExportFormat) -> &'static str {
    match format {
        ExportFormat::Sch => "sch",
        ExportFormat::Perfetto => "perfetto",
        ExportFormat::Svg => "svg",
        ExportFormat::Html => "html",
        ExportFormat::Paje => "paje",
        ExportFormat::Wfformat => "wfformat",
    }
}

/// Why a schedule cannot be written as a text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Diagnostic)]
pub enum ExportError {
    /// A schedule alone does not say what goes from task to task.
    #[error("format `{format}` tells of the messages between tasks, and a schedule does not know them")]
    #[diagnostic(help(
        "connect the `task-dag` that the schedule was made of as well, or write `svg`, `html` or `sch`"
    ))]
    NoProgram {
        /// The format.
        format: &'static str,
    },
    /// Another program.
    #[error("the schedule has {tasks} tasks and the program {there}")]
    #[diagnostic(help("connect the `task-dag` that the schedule was made of"))]
    Tasks {
        /// Tasks of the schedule.
        tasks: usize,
        /// Tasks of the program.
        there: usize,
    },
}
