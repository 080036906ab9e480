//! What the searches for plans share: fast costs, a timeline that changes in small steps, and random numbers.

mod costs;
mod random;
mod timeline;

pub(crate) use costs::{Costs, WithCosts, with_costs};
pub(crate) use hopmap_random::index_below as below;
pub(crate) use random::{Acceptance, chance};
pub(crate) use timeline::Timeline;
