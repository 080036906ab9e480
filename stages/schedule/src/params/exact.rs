//! Parameters of `schedule/exact`.

use super::machine::with_machine;

with_machine! {
    /// The proven optimum of a small problem, or a bound.
    pub struct ExactParams {
        /// How many partial schedules are looked at at most.
        #[serde(default)]
        pub evaluations: Option<u64>,
        /// How long the search may take, in seconds. The result cannot be made again bit for bit.
        #[serde(default)]
        pub seconds: Option<f64>,
    }
}
