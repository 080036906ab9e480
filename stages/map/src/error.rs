//! What can be wrong with the parameters of a mapper.

pub use hopmap_islands::SearchError;
