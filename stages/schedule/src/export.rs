//! Schedules as text that other programs read.

use hopmap_model::{Error, Schedule, TaskDag, TextFile};

use crate::ExportParams;

/// A schedule as text; some texts need the program beside it.
pub fn write(
    _schedule: &Schedule,
    _dag: Option<&TaskDag>,
    _params: &ExportParams,
) -> Result<TextFile, Error> {
    Ok(TextFile { name: String::new(), text: String::new() })
}
