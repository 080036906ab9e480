//! Machines with a regular network shape.

use hopmap_machines::params::SyntheticParams;
use hopmap_machines::{built, check, named};
use hopmap_model::{Context, Error, InputPath, Inputs, Outcome, Outputs, Port, Stage, SystemGraph};

/// `topology/synthetic`: a machine with a regular network shape.
#[derive(Debug)]
pub struct Synthetic;

impl Stage for Synthetic {
    type Params = SyntheticParams;
    const KIND: &'static str = "topology/synthetic";
    const SUMMARY: &'static str =
        "Generate a machine topology: tree, fat tree, torus, mesh, ring or dragonfly";
    const REVISION: u32 = 2;
    const PORTS: &'static [Port] = &[Port::output::<SystemGraph>("system-graph")];

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
            let is_assumed = params.hosts.is_empty() && params.hosts_file.is_none() && params.shape == "auto";
            let assumed = if is_assumed { ", assumed: no hosts and no shape are given" } else { "" };
            cx.log(format_args!("shape: {}{assumed}", named.params.shape));
        }
        for warning in &named.warnings {
            cx.log(format_args!("warning: {warning}"));
        }
        Ok(Outcome::Done(Outputs::new().with("system-graph", built(&named)?)))
    }
}

#[cfg(test)]
mod tests {
    use hopmap_machines::synthetic;
    use hopmap_model::Artifact as _;

    use super::*;

    #[test]
    fn the_stage_builds_the_machine_of_its_parameters() {
        let params = || serde_json::from_str(r#"{"shape": "tree:2x2", "costs": [1, 10]}"#).unwrap();
        let outcome = Synthetic::run(params(), Inputs::new(), &Context::detached()).unwrap();
        let Outcome::Done(outputs) = outcome else { panic!("{outcome:?}") };
        let port = Synthetic::PORTS[0];
        let system = outputs.get(port.name).unwrap().downcast_ref::<SystemGraph>().unwrap();
        assert_eq!((port.kind, system), (SystemGraph::KIND, &synthetic(&params()).unwrap()));
    }
}
