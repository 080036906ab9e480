//! Training jobs: the communication of a step, and the order of hosts for `torchrun`.
//!
//! Stages: [`Parallel`], `instance/parallel`; [`Torch`], `launch/torch`.

mod error;
mod parallel;
mod stage;
mod torch;

pub use error::TrainingError;
pub use parallel::{
    GroupAlgorithm, GroupAlgorithms, GroupBytes, GroupSizes, ModelSize, ParallelParams, RankOrder,
    TrainingStep, training_step,
};
pub use stage::{Parallel, Torch, TorchParams};
pub use torch::{TorchStart, torch_file};
