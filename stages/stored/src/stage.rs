//! `stored/KIND`: artifacts that were computed before.

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

/// The file that describes an artifact; it contains the digests of all other files.
const DESCRIPTION: &str = "artifact.json";

/// `stored/KIND`: an artifact that was computed before.
#[derive(Debug)]
pub struct Stored<A>(PhantomData<A>);

/// An artifact that a pipeline can read from a folder.
pub trait Storable: Codec {
    /// Kind of the stage that reads it.
    const STAGE: &'static str;
    /// Summary of the stage.
    const SUMMARY: &'static str;
    /// Its only port.
    const PORTS: &'static [Port];
}

macro_rules! storable {
    ($($artifact:ty, $name:literal, $summary:literal;)+) => {
        $(impl Storable for $artifact {
            const STAGE: &'static str = concat!("stored/", $name);
            const SUMMARY: &'static str = $summary;
            const PORTS: &'static [Port] = &[Port::output::<Self>($name)];
        })+
    };
}

storable! {
    TaskGraph, "task-graph", "Read a task graph from a folder";
    SystemGraph, "system-graph", "Read a system graph from a folder";
    Mapping, "mapping", "Read a mapping from a folder";
    Measurements, "measurements", "Read measurements from a folder";
}

impl<A: Storable + Send + Sync + 'static> Stage for Stored<A> {
    type Params = StoredParams;
    const KIND: &'static str = A::STAGE;
    const SUMMARY: &'static str = A::SUMMARY;
    const REVISION: u32 = 1;
    const PORTS: &'static [Port] = A::PORTS;

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

/// The folder does not contain an artifact.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum StoredError {
    /// The folder does not contain a description.
    #[error("{} is not an artifact: artifact.json is missing", .folder.display())]
    #[diagnostic(
        code(stored::no_artifact),
        help("pass a folder that `hopmap exec KIND --out DIR` wrote or that `hopmap show STAGE` lists")
    )]
    NoArtifact {
        /// The folder.
        folder: PathBuf,
    },
}

/// Parameters of `stored/KIND`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StoredParams {
    /// Folder of the artifact, as written by `hopmap exec --out` or listed by `hopmap show`.
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
    fn a_stored_artifact_is_read_back() {
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
        assert!(error.to_string().ends_with("is not an artifact: artifact.json is missing"), "{error}");
    }

    #[test]
    fn unknown_parameters_are_rejected() {
        assert!(serde_json::from_str::<StoredParams>(r#"{"artifact": "a", "kind": "mapping"}"#).is_err());
    }
}
