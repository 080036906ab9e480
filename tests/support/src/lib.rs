//! What the tests of all crates share: one way to skip, loops sized by time, damage at random.

mod damage;
mod seeds;
mod signal;
mod skip;
mod user;

pub use damage::{Random, damage};
pub use seeds::{Seeds, only_seed, seeds, soak};
pub use signal::signal;
pub use skip::{given_data, only_in_a_soak, program, skipped, system_tests};
pub use user::unprivileged;
