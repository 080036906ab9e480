//! Parameters of `schedule/auto`.

use super::machine::with_machine;
use super::{first_seed, two_islands};

with_machine! {
    /// The best schedule that a budget allows: lists, annealing from the best of them and from what it found, and branch and bound where it
    /// can prove something. Ends early where the schedule is as good as the lower bound.
    pub struct AutoParams {
        /// Another seed gives another search.
        #[serde(default = "first_seed")]
        pub seed: u64,
        /// How many schedules every island evaluates; a node of branch and bound counts as one. By default 134,217,728 divided by the number
        /// of tasks, at most 2,097,152 and at least 1024.
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
