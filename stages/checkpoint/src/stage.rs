//! The stages of this room.

mod generate;

pub use generate::Generate;
