//! What can be wrong with the parameters of a mapper.

mod exact;

pub use exact::ExactError;
pub use hopmap_islands::SearchError;
