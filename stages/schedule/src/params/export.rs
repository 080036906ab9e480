//! Parameters of `schedule/export`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A schedule as text that other programs read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExportParams {
    /// Which text.
    pub format: ExportFormat,
}

/// A text that a schedule is written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ExportFormat {
    /// `.sch` of PARUS.
    Sch,
    /// JSON that <https://ui.perfetto.dev> and `chrome://tracing` open, with an arrow for every message.
    Perfetto,
    /// A Gantt chart as a picture.
    Svg,
    /// A Gantt chart as a page.
    Html,
    /// A trace in the format of Pajé, for `ViTE` and `pajeng`.
    Paje,
    /// `WfFormat` of `WfCommons` with what was executed where and when.
    Wfformat,
}
