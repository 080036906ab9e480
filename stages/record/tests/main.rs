//! The recorder with the MPIs of this machine.

mod cache;
mod command;
mod endings;
mod programs;
mod prototypes;
mod support;
