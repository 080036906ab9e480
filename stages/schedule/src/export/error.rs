//! Why a schedule cannot be written.

use miette::Diagnostic;

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
