//! What can be wrong with the parameters of a mapper.

mod exact;
mod external;

pub use exact::ExactError;
pub use external::{AnswerError, ExternalError};
pub use hopmap_islands::SearchError;
