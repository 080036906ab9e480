//! What the searches for plans share: fast costs, a timeline that changes in small steps, and random numbers.

mod costs;
mod random;
#[cfg(test)]
pub(crate) mod samples;
mod timeline;

pub(crate) use costs::{Costs, WithCosts, with_costs};
pub(crate) use random::{Acceptance, below, chance};
pub(crate) use timeline::Timeline;
