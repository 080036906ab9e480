//! The stages of this crate.

use hopmap_model::{Context, Error, Inputs, Measurements, Outcome, Outputs, Port, Stage, SystemGraph};

use crate::levels::levels_of_measurements;
use crate::{ProbeParams, SyntheticParams, probe, synthetic};

/// `topology/synthetic`: a machine whose network has a regular shape.
#[derive(Debug)]
pub struct Synthetic;

impl Stage for Synthetic {
    type Params = SyntheticParams;
    const KIND: &'static str = "topology/synthetic";
    const SUMMARY: &'static str =
        "A machine whose network is a tree, fat tree, torus, mesh, ring or dragonfly";
    const REVISION: u32 = 1;

    fn ports() -> &'static [Port] {
        const { &[Port::output::<SystemGraph>("system-graph")] }
    }

    fn check(params: &Self::Params) -> Result<(), Error> {
        Ok(crate::synthetic::check(params)?)
    }

    fn run(params: Self::Params, _inputs: Inputs, _cx: &Context<'_>) -> Result<Outcome, Error> {
        Ok(Outcome::Done(Outputs::new().with("system-graph", synthetic(&params)?)))
    }
}

/// `topology/probe`: a machine as its messages measure it.
#[derive(Debug)]
pub struct Probe;

impl Stage for Probe {
    type Params = ProbeParams;
    const KIND: &'static str = "topology/probe";
    const SUMMARY: &'static str = "A machine as its messages measure it, between MPI ranks or agents";
    const REVISION: u32 = 1;

    fn ports() -> &'static [Port] {
        const { &[Port::output::<Measurements>("measurements"), Port::output::<SystemGraph>("system")] }
    }

    fn check(params: &Self::Params) -> Result<(), Error> {
        probe::check(params)
    }

    fn observes(_: &Self::Params) -> bool {
        true
    }

    fn distributed() -> bool {
        true
    }

    fn run(params: Self::Params, _inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let (measured, complete) = probe::probe(&params, cx)?;
        // Only the first of several processes has all that was measured.
        if cx.communicator().is_some_and(|communicator| communicator.process() > 0) {
            return Ok(Outcome::Done(Outputs::new()));
        }
        let found = levels_of_measurements(&measured, &probe::levels(&params))?;
        found.notes.iter().for_each(|note| cx.log(note));
        let outputs = Outputs::new().with("measurements", measured).with("system", found.system);
        Ok(if complete { Outcome::Done(outputs) } else { Outcome::Partial(outputs) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopmap_model::Artifact;

    #[test]
    fn the_stage_gives_the_machine_of_its_parameters() {
        let params = || serde_json::from_str(r#"{"shape": "tree:2x2", "costs": [1, 10]}"#).unwrap();
        let outcome = Synthetic::run(params(), Inputs::new(), &Context::detached()).unwrap();
        let Outcome::Done(outputs) = outcome else { panic!("{outcome:?}") };
        let port = Synthetic::ports()[0];
        let system = outputs.get(port.name).unwrap().downcast_ref::<SystemGraph>().unwrap();
        assert_eq!((port.kind, system), (SystemGraph::KIND, &synthetic(&params()).unwrap()));
    }

    /// Costs are read by hand, and so is what tells of them.
    #[test]
    fn costs_are_described() {
        let schema = schemars::schema_for!(SyntheticParams);
        let costs = &schema.as_value()["properties"]["costs"];
        assert!(costs["description"].as_str().unwrap().starts_with("Of a tree, the cost"), "{costs}");
        assert_eq!(costs["type"], serde_json::json!(["number", "array", "string"]));
    }

    #[test]
    fn unknown_parameters_are_refused() {
        let wrong = r#"{"shape": "tree:2x2", "costs": [1, 10], "hsot_level": 1}"#;
        assert!(serde_json::from_str::<SyntheticParams>(wrong).is_err());
    }
}
