//! `stored/KIND`: artifacts that were made before.

use std::marker::PhantomData;
use std::path::PathBuf;

use hopmap_artifact::{Codec, Folder};
use hopmap_model::{
    Context, Error, InputPath, Inputs, Mapping, Measurements, Outcome, Outputs, Port, Stage, SystemGraph,
    TaskGraph,
};
use miette::Diagnostic;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The file that describes an artifact; it holds the digests of all others.
const DESCRIPTION: &str = "artifact.json";

/// `stored/KIND`: an artifact that was made before.
#[derive(Debug)]
pub struct Stored<A>(PhantomData<A>);

/// An artifact that a pipeline may take from a folder.
pub trait Storable: Codec {
    /// The stage that takes it.
    const STAGE: &'static str;
    /// What the stage is.
    const SUMMARY: &'static str;
    /// Its only port.
    const PORTS: &'static [Port];
}

macro_rules! storable {
    ($($artifact:ty, $name:literal, $summary:literal;)+) => {
        $(impl Storable for $artifact {
            const STAGE: &'static str = concat!("stored/", $name);
            const SUMMARY: &'static str = concat!("The ", $summary, " made before");
            const PORTS: &'static [Port] = const { &[Port::output::<Self>($name)] };
        })+
    };
}

storable! {
    TaskGraph, "task-graph", "task graph in a folder, as it was";
    SystemGraph, "system-graph", "system graph in a folder, as it was";
    Mapping, "mapping", "mapping in a folder, as it was";
    Measurements, "measurements", "measurements in a folder, as they were";
}

impl<A: Storable + Send + Sync + 'static> Stage for Stored<A> {
    type Params = StoredParams;
    const KIND: &'static str = A::STAGE;
    const SUMMARY: &'static str = A::SUMMARY;
    const REVISION: u32 = 1;

    fn ports() -> &'static [Port] {
        A::PORTS
    }

    fn reads(params: &StoredParams) -> Result<Vec<InputPath>, Error> {
        let folder = params.path.path();
        let description = folder.join(DESCRIPTION);
        match description.is_file() {
            true => Ok(vec![InputPath::named(description, DESCRIPTION)]),
            false => Err(StoredError::NoArtifact { folder: folder.into() }.into()),
        }
    }

    fn run(params: StoredParams, _: Inputs, _: &Context<'_>) -> Result<Outcome, Error> {
        let artifact = Folder::read::<A>(params.path.path())?;
        Ok(Outcome::Done(Outputs::new().with(A::PORTS[0].name, artifact)))
    }
}

/// There is no artifact.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum StoredError {
    /// The folder holds none.
    #[error("{} is no artifact: it has no artifact.json", .folder.display())]
    #[diagnostic(help(
        "give the folder that `hopmap exec KIND --out FOLDER` wrote, or one that `hopmap show STAGE` names"
    ))]
    NoArtifact {
        /// The folder.
        folder: PathBuf,
    },
}

/// An artifact that was made before.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StoredParams {
    /// The folder of the artifact, as `hopmap exec --out` and `hopmap show` name it.
    pub path: InputPath,
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopmap_model::Process;

    fn params(folder: &std::path::Path) -> StoredParams {
        StoredParams { path: InputPath::new(folder) }
    }

    #[test]
    fn what_was_written_comes_back() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("graph");
        let graph = TaskGraph { processes: vec![Process::default(); 3], ..TaskGraph::default() };
        Folder::write(&folder, &graph).unwrap();
        assert_eq!(Stored::<TaskGraph>::reads(&params(&folder)).unwrap()[0].name(), "artifact.json");
        let outcome = Stored::<TaskGraph>::run(params(&folder), Inputs::new(), &Context::detached()).unwrap();
        let Outcome::Done(outputs) = outcome else { panic!("{outcome:?}") };
        assert_eq!(outputs.get("task-graph").unwrap().downcast_ref::<TaskGraph>().unwrap(), &graph);
        let error =
            Stored::<SystemGraph>::run(params(&folder), Inputs::new(), &Context::detached()).unwrap_err();
        assert!(error.to_string().contains("system-graph"), "{error}");
    }

    #[test]
    fn a_folder_without_an_artifact_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let error = Stored::<Mapping>::reads(&params(folder.path())).unwrap_err();
        assert!(error.to_string().ends_with("is no artifact: it has no artifact.json"), "{error}");
    }

    #[test]
    fn unknown_parameters_are_refused() {
        assert!(serde_json::from_str::<StoredParams>(r#"{"artifact": "a", "kind": "mapping"}"#).is_err());
    }
}
