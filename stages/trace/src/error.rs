//! What can go wrong.

mod generate;
mod import;
mod otf1;
mod otf2;
mod selection;
mod tasks;

pub use generate::GenerateError;
pub use import::ImportError;
pub use otf1::OtfError;
pub use otf2::Otf2Error;
pub use selection::SelectionError;
pub use tasks::{DagError, ReplayError};

/// Names behind a colon.
fn list(names: &[String]) -> String {
    match names {
        [] => String::new(),
        _ => format!(": {}", names.join(", ")),
    }
}
