//! Parameters of `schedule/genetic`.

use super::machine::with_machine;
use super::{first_seed, four_islands};

with_machine! {
    /// The genetic algorithm of PARUS.
    pub struct GeneticParams {
        /// Another seed gives another search.
        #[serde(default = "first_seed")]
        pub seed: u64,
        /// How many schedules every island evaluates.
        #[serde(default)]
        pub evaluations: Option<u64>,
        /// How long the search may take, in seconds. The result cannot be made again bit for bit.
        #[serde(default)]
        pub seconds: Option<f64>,
        /// Number of islands, each with a population of its own.
        #[serde(default = "four_islands")]
        pub islands: u32,
        /// A file of parameters as PARUS reads it, `sch.ini`; what is given here beside it counts more.
        #[serde(default)]
        pub ini: Option<hopmap_model::InputPath>,
    }
}
