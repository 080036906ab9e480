//! What the machine is: synthetic shapes to system graphs.
//!
//! Stages: [`Synthetic`], `topology/synthetic`.

pub mod agent;
mod error;
mod fit;
mod params;
pub mod probe;
mod shape;
mod stage;
mod synthetic;

pub use error::SyntheticError;
pub use fit::fits;
pub use params::SyntheticParams;
pub use stage::Synthetic;
pub use synthetic::synthetic;
