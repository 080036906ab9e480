//! What a traced program asks of a machine.

mod machine;
mod traffic;

use hopmap_model::{Context, Error, Inputs, Outcome, Outputs, Port, Stage, SystemGraph, Tables, TaskGraph};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::ParameterError;
use crate::instance::slots;

use machine::{ready, tables};
use traffic::ask;

/// `route/demands`: streams from traffic, and a machine whose links have ports.
#[derive(Debug)]
pub struct DemandsStage;

/// Streams from traffic, and a machine whose links have ports.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DemandsParams {
    /// Seconds in which the traffic has to get through. Without it as long as the trace is, or the phase.
    #[serde(default)]
    pub seconds: Option<f64>,
    /// The phase of the program whose traffic counts: its name, or its number from 0. Without it that of the whole trace.
    #[serde(default)]
    pub phase: Option<String>,
    /// Whether each stream needs what it sends in the phase in which it sends most in a second.
    #[serde(default)]
    pub peak: bool,
    /// Streams that need less bytes per second than this are left out.
    #[serde(default)]
    pub least: f64,
    /// How many streams are left, the heaviest ones. Without it all.
    #[serde(default)]
    pub heaviest: Option<usize>,
    /// What processes need of a host, which has as much as it has slots if it does not say.
    #[serde(default)]
    pub performance: Performance,
    /// Bytes per second of links that do not say it. Without it they carry everything.
    #[serde(default)]
    pub bandwidth: Option<f64>,
    /// Type of switches that do not say it: 1 has one table, 2 has one for every port.
    #[serde(default)]
    pub switch_type: Option<u32>,
}

/// What processes need of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Performance {
    /// A slot each.
    #[default]
    Slot,
    /// The part of a slot in which it computed. Hosts then have as many slots as such processes fit on them, and slots cost hops.
    Compute,
}

impl Stage for DemandsStage {
    type Params = DemandsParams;
    const KIND: &'static str = "route/demands";
    const SUMMARY: &'static str = "Streams and their bandwidth from the traffic of a traced program, and a machine whose links have ports";
    const REVISION: u32 = 1;

    fn ports() -> &'static [Port] {
        const {
            &[
                Port::input::<TaskGraph>("task-graph"),
                Port::input::<SystemGraph>("system"),
                Port::output::<TaskGraph>("task-graph"),
                Port::output::<SystemGraph>("system"),
                Port::possible::<Tables>("tables"),
            ]
        }
    }

    fn check(params: &Self::Params) -> Result<(), Error> {
        for (name, value) in [("seconds", params.seconds), ("bandwidth", params.bandwidth)] {
            if let Some(value) = value.filter(|value| !(value.is_finite() && *value > 0.0)) {
                return Err(ParameterError::NotAbove { name, value }.into());
            }
        }
        if !(params.least.is_finite() && params.least >= 0.0) {
            return Err(ParameterError::Below { name: "least", value: params.least }.into());
        }
        match params.switch_type {
            None | Some(1 | 2) => Ok(()),
            Some(switch_type) => Err(ParameterError::SwitchType { switch_type }.into()),
        }
    }

    fn run(params: Self::Params, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let graph = inputs.one::<TaskGraph>("task-graph")?.value;
        let system = inputs.one::<SystemGraph>("system")?.value;
        let asked = ask(&graph, &params)?;
        let mut system = ready(&system, &params)?;
        if params.performance == Performance::Compute {
            slots(&mut system, &asked.graph.demands);
        }
        let needed: f64 = asked.graph.demands.streams.iter().map(|stream| stream.bandwidth_bytes_per_s).sum();
        cx.log(format_args!(
            "{} streams, {needed:.3e} bytes per second together",
            asked.graph.demands.streams.len()
        ));
        if asked.left_out > 0 {
            cx.log(format_args!(
                "{} streams are left out; they need {:.3e} bytes per second",
                asked.left_out, asked.left_out_bandwidth
            ));
        }
        let mut outputs = Outputs::new().with("task-graph", asked.graph);
        if let Some(tables) = tables(&system) {
            outputs = outputs.with("tables", tables);
        }
        Ok(Outcome::Done(outputs.with("system", system)))
    }
}
