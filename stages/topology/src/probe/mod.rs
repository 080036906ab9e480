//! Measuring the machine: who talks with whom when, and how long it takes.

mod sampling;

pub use sampling::{Sampling, Timing, Wire, sample};
