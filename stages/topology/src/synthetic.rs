//! Machines with a regular network shape.

mod named;
mod network;
mod rates;
#[cfg(test)]
mod tests;
mod tree;

pub use crate::params::{CostMetric, SyntheticParams};

use hopmap_model::{Context, Error, InputPath, Inputs, Outcome, Outputs, Port, Stage, SystemGraph};

use self::named::Named;
use crate::params::MachineError;

/// `topology/synthetic`: a machine with a regular network shape.
#[derive(Debug)]
pub struct Synthetic;

impl Stage for Synthetic {
    type Params = SyntheticParams;
    const KIND: &'static str = "topology/synthetic";
    const SUMMARY: &'static str =
        "Generate a machine topology: tree, fat tree, torus, mesh, ring or dragonfly";
    const REVISION: u32 = 2;

    fn ports() -> &'static [Port] {
        const { &[Port::output::<SystemGraph>("system-graph")] }
    }

    fn check(params: &Self::Params) -> Result<(), Error> {
        Ok(check(params)?)
    }

    fn reads(params: &Self::Params) -> Result<Vec<InputPath>, Error> {
        // Always under one name, so that renaming the file changes no key.
        Ok(params.hosts_file.iter().map(|file| InputPath::named(file.path(), "hosts")).collect())
    }

    fn run(params: Self::Params, _inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let named = named::resolved(&params)?;
        if named.params.shape != params.shape {
            cx.log(format_args!("shape: {}", named.params.shape));
        }
        for warning in &named.warnings {
            cx.log(format_args!("warning: {warning}"));
        }
        Ok(Outcome::Done(Outputs::new().with("system-graph", built(&named)?)))
    }
}

/// The machine topology for the parameters.
///
/// The slots of a tree are numbered host by host. Every group of a level above the hosts has a switch,
/// `switch-LEVEL-INDEX` with level 1 next to the hosts, and a link in each direction to every child; the root
/// is the last node. A single host has no switch and no link. In other shapes messages use the links of the
/// network, and `cost` defines their cost.
pub fn synthetic(params: &SyntheticParams) -> Result<SystemGraph, MachineError> {
    built(&named::resolved(params)?)
}

/// The same for parameters with a shape and names.
fn built(named: &Named) -> Result<SystemGraph, MachineError> {
    let params = &named.params;
    Ok(named.limited(match network::of(params)? {
        Some(network) => network::machine(&*network, params)?,
        None => tree::synthetic(params)?,
    }))
}

/// Checks the parameters without building the machine. What is in a host file is not known before.
fn check(params: &SyntheticParams) -> Result<(), MachineError> {
    if params.hosts_file.is_some() {
        return named::check(params);
    }
    let params = &named::resolved(params)?.params;
    match network::of(params)? {
        Some(network) => network::check(&*network, params),
        None => tree::check(params),
    }
}
