//! Commands as library functions: arguments, work and answer of a subcommand of `hopmap`, without its printing.
//!
//! [`Command`] is to the command line what `Stage` is to pipelines: whoever knows a subject implements it, and the registry
//! lists it as a [`CommandEntry`].

mod answer;
mod command;
mod failure;
mod words;

pub use answer::{Answer, Exit};
pub use command::{Command, CommandEntry, ParsedCommand};
pub use failure::{Failure, Mistake};
pub use words::{all_cores, holder, shown};
