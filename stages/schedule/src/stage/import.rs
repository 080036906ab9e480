//! `schedule/import`.

use hopmap_model::{Context, Error, InputPath, Inputs, Outcome, Outputs, Port, Stage, TaskDag};

use crate::{ImportParams, formats};

/// `schedule/import`: a task graph from a file.
#[derive(Debug)]
pub struct ImportStage;

impl Stage for ImportStage {
    type Params = ImportParams;
    const KIND: &'static str = "schedule/import";
    const SUMMARY: &'static str = "A task graph from a file of PARUS, Graphviz, the STG set or WfCommons";
    const REVISION: u32 = 1;

    fn ports() -> &'static [Port] {
        const { &[Port::output::<TaskDag>("task-dag")] }
    }

    fn reads(params: &Self::Params) -> Result<Vec<InputPath>, Error> {
        // Always under the same name, so that renaming a file changes no key.
        Ok(vec![InputPath::named(params.file.path(), "graph")])
    }

    fn check(params: &Self::Params) -> Result<(), Error> {
        Ok(formats::check(params)?)
    }

    fn run(params: Self::Params, _: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let dag = formats::read_graph(&params, cx)?;
        Ok(Outcome::Done(Outputs::new().with("task-dag", dag)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stage_gives_tasks() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "digraph { a [Weight=1] b [Weight=2] a -> b }").unwrap();
        let params = ImportParams::of(file.path());
        ImportStage::check(&params).unwrap();
        let Outcome::Done(outputs) =
            ImportStage::run(params.clone(), Inputs::new(), &Context::detached()).unwrap()
        else {
            panic!("it is not done")
        };
        let dag = outputs.get("task-dag").unwrap().downcast_ref::<TaskDag>().unwrap();
        assert_eq!((dag.tasks.len(), dag.name(1).as_ref()), (2, "b"));
        assert!(ImportStage::check(&ImportParams { scale: f64::NAN, ..params.clone() }).is_err());
        assert_eq!(ImportStage::reads(&params).unwrap()[0].name(), "graph");
    }
}
