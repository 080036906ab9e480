//! The stages of this room.

use hopmap_model::{Context, Error, Inputs, Outcome, Outputs, Port, Stage, SystemGraph};

use crate::synthetic::check;
use crate::{SyntheticParams, synthetic};

/// `topology/synthetic`: a machine whose network is a regular tree.
#[derive(Debug)]
pub struct Synthetic;

impl Stage for Synthetic {
    type Params = SyntheticParams;
    const KIND: &'static str = "topology/synthetic";
    const SUMMARY: &'static str = "A machine whose network is a regular tree";
    const REVISION: u32 = 1;

    fn ports() -> &'static [Port] {
        const { &[Port::output::<SystemGraph>("system-graph")] }
    }

    fn check(params: &Self::Params) -> Result<(), Error> {
        Ok(check(params)?)
    }

    fn run(params: Self::Params, _inputs: Inputs, _cx: &Context<'_>) -> Result<Outcome, Error> {
        Ok(Outcome::Done(Outputs::new().with("system-graph", synthetic(&params)?)))
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
    fn costs_are_described_and_required() {
        let schema = schemars::schema_for!(SyntheticParams);
        let costs = &schema.as_value()["properties"]["costs"];
        assert!(costs["description"].as_str().unwrap().starts_with("Cost between two slots"), "{costs}");
        assert_eq!(costs["type"], serde_json::json!(["array", "string"]));
        assert!(schema.as_value()["required"].as_array().unwrap().contains(&"costs".into()));
    }

    #[test]
    fn unknown_parameters_are_refused() {
        let wrong = r#"{"shape": "tree:2x2", "costs": [1, 10], "host": 1}"#;
        assert!(serde_json::from_str::<SyntheticParams>(wrong).is_err());
    }
}
