//! Parameters of `schedule/exact`.

use super::machine::with_machine;

with_machine! {
    /// The proven optimum of a small problem, or a bound: branch and bound over the orders in which tasks begin. Programs of up to 30
    /// tasks are often solved within a second, larger ones if messages are long or there are many processors; with more than 128 tasks
    /// there is only a bound.
    pub struct ExactParams {
        /// How many partial schedules are looked at at most: 20 million by default, some 20 seconds, unless `seconds` is given.
        #[serde(default)]
        pub evaluations: Option<u64>,
        /// How long the search may take, in seconds. The result cannot be made again bit for bit.
        #[serde(default)]
        pub seconds: Option<f64>,
    }
}
