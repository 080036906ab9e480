//! What an answer has to keep beside the constraints of the paper, and what it costs.

use crate::Weights;
use crate::error::ParameterError;

/// What an answer has to keep, and what it costs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rules {
    /// What the parts of the objective weigh (11).
    pub weights: Weights,
    /// Whether no links may wait for each other in a circle.
    pub deadlock_free: bool,
    /// Most hops of a route.
    pub most_hops: Option<u32>,
    /// Part of the bandwidth of every link that stays free, from 0 up to but not including 1.
    pub bandwidth_slack: f64,
    /// Part of the performance of every host that stays free, likewise.
    pub performance_slack: f64,
    /// Most bytes in a second that arrive at a switch.
    pub switch_load: Option<f64>,
}

impl Rules {
    /// Refuses weights below zero, and parts and loads that are none.
    pub(crate) fn check(&self) -> Result<(), ParameterError> {
        self.weights.check()?;
        let slacks =
            [("bandwidth_slack", self.bandwidth_slack), ("performance_slack", self.performance_slack)];
        if let Some((name, value)) = slacks.into_iter().find(|(_, value)| !(0.0..1.0).contains(value)) {
            return Err(ParameterError::Slack { name, value });
        }
        match self.switch_load.filter(|load| !(load.is_finite() && *load > 0.0)) {
            Some(value) => Err(ParameterError::SwitchLoad { value }),
            None => Ok(()),
        }
    }
}

impl Rules {
    /// Up to which difference two costs are the same: a part of the cost that is rounding, and less than what any weight tells apart.
    pub(crate) fn tolerance(&self, cost: f64, part: f64) -> f64 {
        let Weights { longest, hops, entries } = self.weights;
        let least = [longest, hops, entries].into_iter().filter(|weight| *weight > 0.0);
        let least = least.fold(f64::INFINITY, f64::min);
        (part * cost.abs().max(1.0)).min(0.25 * least)
    }
}

impl From<Weights> for Rules {
    fn from(weights: Weights) -> Self {
        Self {
            weights,
            deadlock_free: false,
            most_hops: None,
            bandwidth_slack: 0.0,
            performance_slack: 0.0,
            switch_load: None,
        }
    }
}
