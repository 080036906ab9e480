//! Parameters of `schedule/auto`.

use super::machine::with_machine;
use super::{first_seed, two_islands};

with_machine! {
    /// The best schedule that a budget allows: lists, genetic and local search, and branch and bound where it can prove something.
    pub struct AutoParams {
        /// Another seed gives another search.
        #[serde(default = "first_seed")]
        pub seed: u64,
        /// How many schedules every island evaluates.
        #[serde(default)]
        pub evaluations: Option<u64>,
        /// How long the search may take, in seconds. The result cannot be made again bit for bit.
        #[serde(default)]
        pub seconds: Option<f64>,
        /// Number of searches side by side, 2 by default; their number never depends on that of the threads.
        #[serde(default = "two_islands")]
        pub islands: u32,
    }
}
