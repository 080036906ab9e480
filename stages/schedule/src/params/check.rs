//! Parameters of `schedule/check`.

use hopmap_model::InputPath;

use super::machine::with_machine;

with_machine! {
    /// A schedule computed again by a program that shares no code with the schedulers.
    pub struct CheckParams {
        /// A `.sch` file of PARUS in place of a schedule.
        #[serde(default)]
        pub file: Option<InputPath>,
        /// Whether an order that `check_schedule` of PARUS refuses gives way to the best one found that it accepts.
        #[serde(default)]
        pub parus_order: bool,
    }
}
