//! `map/import`.

use hopmap_model::{Context, Error, InputPath, Inputs, Outcome, Paths, Port, Stage, SystemGraph, TaskGraph};
use hopmap_objective::check_weight;

use super::{PORTS, finish, measured, speed};
use crate::{Found, ImportParams, import};

/// `map/import`: a placement that another tool computed, checked and measured.
#[derive(Debug)]
pub struct ImportStage;

impl Stage for ImportStage {
    type Params = ImportParams;
    const KIND: &'static str = "map/import";
    const SUMMARY: &'static str =
        "A placement from a file of KaHIP, VieM, SharedMap, Scotch or an MPI launcher";
    const REVISION: u32 = 1;

    fn ports() -> &'static [Port] {
        PORTS
    }

    fn check(params: &Self::Params) -> Result<(), Error> {
        check_weight(params.weight.or(0.0, 1.0))?;
        Ok(())
    }

    fn reads(params: &Self::Params) -> Result<Vec<InputPath>, Error> {
        // Always under the same name, so that renaming a file changes no key.
        Ok(vec![InputPath::named(params.file.path(), "placement")])
    }

    fn run(params: Self::Params, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let graph = inputs.one::<TaskGraph>("task-graph")?.value;
        let system = inputs.one::<SystemGraph>("system")?.value;
        graph.check()?;
        system.check()?;
        let placed = import(params.file.path(), params.format, graph.ranks(), &system)?;
        cx.log(format_args!("`{}` is a {}", params.file.name(), placed.format.name()));
        let paths = Paths::new(&system);
        let weight = params.weight.resolve(&system, cx)?;
        let mut found = Found::at_once(placed.slots);
        found.metrics.extend(speed(params.weight, weight));
        Ok(finish(measured(found, &graph, &system, paths.as_ref(), weight)?, false))
    }
}
