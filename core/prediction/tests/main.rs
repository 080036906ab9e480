//! Replays on whole machines.

mod machines;
mod programs;
mod replays;
mod simgrid;
