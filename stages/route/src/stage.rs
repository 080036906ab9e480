//! The stages of this crate.

mod solve;

use hopmap_model::{
    Context, Error, InputPath, Inputs, Mapping, Outcome, Outputs, Port, Routes, Stage, SystemGraph, Tables,
    TaskGraph, TextFile,
};

use crate::paper::Formulation;
use crate::problem::{Problem, without_performance};
use crate::{
    CheckParams, ExportFormat, ExportParams, ImportParams, Instance, ModelFormat, ModelParams, Rules,
    Weights, check, export,
};

pub use solve::{MapStage, TablesStage};

/// `route/import`: a program and a network from a file.
#[derive(Debug)]
pub struct ImportStage;

/// `route/check`: tables followed entry by entry.
#[derive(Debug)]
pub struct CheckStage;

/// `route/export`: tables as text that networks load.
#[derive(Debug)]
pub struct ExportStage;

/// `route/model`: the integer program of the paper as a file.
#[derive(Debug)]
pub struct ModelStage;

impl Stage for ImportStage {
    type Params = ImportParams;
    const KIND: &'static str = "route/import";
    const SUMMARY: &'static str = "Processes, streams and a network of hosts and switches from JSON or TOML";
    const REVISION: u32 = 1;

    fn ports() -> &'static [Port] {
        const {
            &[
                Port::output::<TaskGraph>("task-graph"),
                Port::output::<SystemGraph>("system"),
                Port::possible::<Mapping>("mapping"),
                Port::possible::<Tables>("tables"),
            ]
        }
    }

    fn reads(params: &Self::Params) -> Result<Vec<InputPath>, Error> {
        // Always under the same name, so that renaming a file changes no key.
        Ok(vec![InputPath::named(params.file.path(), "instance")])
    }

    fn run(params: Self::Params, _: Inputs, _: &Context<'_>) -> Result<Outcome, Error> {
        let Instance { graph, system, mapping, tables } = Instance::changed(&params)?;
        let mut outputs = Outputs::new().with("task-graph", graph).with("system", system);
        if let Some(mapping) = mapping {
            outputs = outputs.with("mapping", mapping);
        }
        if let Some(tables) = tables {
            outputs = outputs.with("tables", tables);
        }
        Ok(Outcome::Done(outputs))
    }
}

impl Stage for CheckStage {
    type Params = CheckParams;
    const KIND: &'static str = "route/check";
    const SUMMARY: &'static str = "The tables of switches followed entry by entry: routes, loads, deadlocks";
    const REVISION: u32 = 2;

    fn ports() -> &'static [Port] {
        const {
            &[
                Port::input::<TaskGraph>("task-graph"),
                Port::input::<SystemGraph>("system"),
                Port::input::<Mapping>("mapping"),
                Port::input::<Tables>("tables"),
                Port::optional::<Routes>("routes"),
                Port::output::<Routes>("routes"),
            ]
        }
    }

    fn check(params: &Self::Params) -> Result<(), Error> {
        Ok(Rules::from(params).check()?)
    }

    fn run(params: Self::Params, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let graph = inputs.one::<TaskGraph>("task-graph")?.value;
        let system = inputs.one::<SystemGraph>("system")?.value;
        let mapping = inputs.one::<Mapping>("mapping")?.value;
        let tables = inputs.one::<Tables>("tables")?.value;
        let routes = inputs.optional::<Routes>("routes")?.map(|routes| routes.value);
        let ignoring = params.ignore_performance.then(|| without_performance(&graph, &system));
        let (graph, system) =
            ignoring.as_ref().map_or((&*graph, &*system), |(graph, system)| (graph, system));
        let checked = check::check(graph, system, &mapping, &tables, routes.as_deref(), &params)?;
        checked.notes.iter().for_each(|note| cx.log(note));
        Ok(Outcome::Done(Outputs::new().with("routes", checked.routes)))
    }
}

impl Stage for ExportStage {
    type Params = ExportParams;
    const KIND: &'static str = "route/export";
    const SUMMARY: &'static str =
        "The tables of switches for RapidIO, Linux or InfiniBand, or a picture of the routes";
    const REVISION: u32 = 2;

    fn ports() -> &'static [Port] {
        const {
            &[
                Port::input::<SystemGraph>("system"),
                Port::input::<Tables>("tables"),
                Port::optional::<Routes>("routes"),
                Port::optional::<TaskGraph>("task-graph"),
                Port::optional::<Mapping>("mapping"),
                Port::output::<TextFile>("file"),
            ]
        }
    }

    fn reads(params: &Self::Params) -> Result<Vec<InputPath>, Error> {
        Ok(params.lids.iter().map(|file| InputPath::named(file.path(), "lids")).collect())
    }

    fn run(params: Self::Params, inputs: Inputs, _: &Context<'_>) -> Result<Outcome, Error> {
        let system = inputs.one::<SystemGraph>("system")?.value;
        let tables = inputs.one::<Tables>("tables")?.value;
        let file = match params.format {
            ExportFormat::Svg | ExportFormat::Html => {
                let routes = inputs.optional::<Routes>("routes")?.map(|routes| routes.value);
                let graph = inputs.optional::<TaskGraph>("task-graph")?.map(|graph| graph.value);
                let mapping = inputs.optional::<Mapping>("mapping")?.map(|mapping| mapping.value);
                let shown = export::Shown {
                    system: &system,
                    tables: &tables,
                    routes: routes.as_deref(),
                    graph: graph.as_deref(),
                    mapping: mapping.as_deref(),
                };
                export::draw(&shown, params.format)?
            }
            _ => export::write(&system, &tables, &params)?,
        };
        Ok(Outcome::Done(Outputs::new().with("file", file)))
    }
}

impl Stage for ModelStage {
    type Params = ModelParams;
    const KIND: &'static str = "route/model";
    const SUMMARY: &'static str =
        "The integer program of routes, or of mapping and routes, for glpsol, cbc, scip or HiGHS";
    const REVISION: u32 = 1;

    fn ports() -> &'static [Port] {
        const {
            &[
                Port::input::<TaskGraph>("task-graph"),
                Port::input::<SystemGraph>("system"),
                Port::optional::<Mapping>("mapping"),
                Port::output::<TextFile>("file"),
            ]
        }
    }

    fn check(params: &Self::Params) -> Result<(), Error> {
        Ok(Weights::from(params).check()?)
    }

    fn run(params: Self::Params, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let graph = inputs.one::<TaskGraph>("task-graph")?.value;
        let system = inputs.one::<SystemGraph>("system")?.value;
        let mapping = inputs.optional::<Mapping>("mapping")?.map(|mapping| mapping.value);
        let problem = Problem::new(&graph, &system, mapping.as_deref(), Rules::from(Weights::from(&params)))?;
        let formulation = Formulation::new(&problem);
        let program = formulation.program();
        cx.log(format_args!(
            "{} variables, {} constraints",
            program.variables.len(),
            program.constraints.len()
        ));
        let (name, text) = match params.format {
            ModelFormat::Lp => ("route.lp", program.lp()),
            ModelFormat::Mps => ("route.mps", program.mps()),
        };
        Ok(Outcome::Done(Outputs::new().with("file", TextFile { name: name.to_owned(), text })))
    }
}
