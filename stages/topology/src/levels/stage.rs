//! The stage.

use hopmap_model::{Context, Error, Inputs, Measurements, Outcome, Outputs, Port, Stage, SystemGraph};

use super::{LevelsError, LevelsParams, levels_of_matrix, levels_of_measurements};

/// `topology/levels`: the tree that is in what was measured.
#[derive(Debug)]
pub struct LevelsStage;

impl Stage for LevelsStage {
    type Params = LevelsParams;
    const KIND: &'static str = "topology/levels";
    const SUMMARY: &'static str = "The levels of a machine, from what was measured between its slots";
    const REVISION: u32 = 1;

    fn ports() -> &'static [Port] {
        const {
            &[
                Port::optional::<Measurements>("measurements"),
                Port::optional::<SystemGraph>("system-graph"),
                Port::output::<SystemGraph>("system-graph"),
            ]
        }
    }

    fn check(params: &Self::Params) -> Result<(), Error> {
        Ok(params.check()?)
    }

    fn run(params: Self::Params, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let measured = inputs.optional::<Measurements>("measurements")?;
        let system = inputs.optional::<SystemGraph>("system-graph")?;
        let found = match (measured, system) {
            (Some(measured), None) => levels_of_measurements(&measured.value, &params)?,
            (None, Some(system)) => levels_of_matrix(&system.value, &params)?,
            (measured, _) => return Err(LevelsError::OneInput { both: measured.is_some() }.into()),
        };
        found.notes.iter().for_each(|note| cx.log(note));
        Ok(Outcome::Done(Outputs::new().with("system-graph", found.system)))
    }
}
