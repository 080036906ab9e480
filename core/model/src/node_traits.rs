//! What hosts and switches have that some programs ask for.

use std::collections::BTreeMap;

/// What a node has beyond its place in the network. By default nothing is known.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NodeTraits {
    /// How much work a host can do, in units of the instance.
    pub performance: Option<f64>,
    /// How a switch finds the way of a packet.
    pub switch_type: Option<SwitchType>,
    /// What processes on a host can do that not all hosts can, such as `fpga`; sorted.
    pub capabilities: Vec<String>,
    /// How many devices of a kind a host has; every process takes those that it needs for itself.
    pub devices: BTreeMap<String, u32>,
}

/// How a switch finds the way of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SwitchType {
    /// Type 1: one table for the whole switch; the destination decides.
    One,
    /// Type 2: a table for every port; the port by which a packet comes in and the destination decide.
    Two,
}

impl SwitchType {
    /// The number that people know it by.
    #[must_use]
    pub fn number(self) -> u32 {
        match self {
            Self::One => 1,
            Self::Two => 2,
        }
    }

    /// The type of a number.
    #[must_use]
    pub fn of_number(number: u32) -> Option<Self> {
        [Self::One, Self::Two].into_iter().find(|switch_type| switch_type.number() == number)
    }
}
