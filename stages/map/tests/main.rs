//! Tests of the crate from outside: one binary with a module per subject.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod auto;
mod blocks;
mod borders;
mod common;
mod constraints;
mod damage;
mod exact;
mod external;
mod grids;
mod hierarchical;
mod import;
mod makespan;
mod matrix;
mod objectives;
mod papers;
mod predicted_time;
mod support {
    pub(crate) mod body;
    pub(crate) mod placement;
}
mod tabu;
mod traces;
