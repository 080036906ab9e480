//! Pipelines that come with hopmap and run anywhere.

use std::path::{Path, PathBuf};

use serde_json::Value as Json;

use super::cells::Pipeline;
use super::node::Node;
use super::problem::Source;
use super::template::{Base, Folders, Reference, Resolved, Template};

/// A pipeline of `pipelines/`, part of the binary.
#[derive(Debug)]
pub struct Embedded {
    /// Name under which `hopmap run` finds it.
    pub name: &'static str,
    /// Its text.
    pub text: &'static str,
}

/// All of them.
pub static EMBEDDED: &[Embedded] = &[
    Embedded { name: "place", text: include_str!("../../pipelines/place.toml") },
    Embedded { name: "place-netloc", text: include_str!("../../pipelines/place-netloc.toml") },
    Embedded { name: "full", text: include_str!("../../pipelines/full.toml") },
    Embedded { name: "schedule", text: include_str!("../../pipelines/schedule.toml") },
    Embedded { name: "route", text: include_str!("../../pipelines/route.toml") },
    Embedded { name: "rapidio", text: include_str!("../../pipelines/rapidio.toml") },
    Embedded { name: "graph2sch", text: include_str!("../../pipelines/graph2sch.toml") },
    Embedded { name: "job", text: include_str!("../../pipelines/job.toml") },
    Embedded { name: "rgo", text: include_str!("../../pipelines/rgo.toml") },
    Embedded { name: "graphhunter", text: include_str!("../../pipelines/graphhunter.toml") },
    Embedded { name: "batch", text: include_str!("../../pipelines/batch.toml") },
    Embedded { name: "table-1", text: include_str!("../../pipelines/table-1.toml") },
    Embedded { name: "figure-3", text: include_str!("../../pipelines/figure-3.toml") },
    Embedded { name: "figure-3-traces", text: include_str!("../../pipelines/figure-3-traces.toml") },
    Embedded { name: "claims", text: include_str!("../../pipelines/claims.toml") },
    Embedded { name: "checkpoint", text: include_str!("../../pipelines/checkpoint.toml") },
    Embedded { name: "adca", text: include_str!("../../pipelines/adca.toml") },
    Embedded { name: "topology-refresh", text: include_str!("../../pipelines/topology-refresh.toml") },
];

/// Whether a text is that of a pipeline that comes with hopmap: paths in it are relative to no file.
pub(crate) fn is_embedded(source: &Source) -> bool {
    EMBEDDED.iter().any(|embedded| embedded.name == source.name() && embedded.text == source.text())
}

/// Takes the samples of a default from the folder itself where it has them: the root of a clone. The files of `pipelines/` name them from
/// one folder below.
pub(crate) fn find_samples(default: &mut Json, folders: &Folders) {
    let Json::String(path) = default else { return };
    let Some(beside) = path.strip_prefix("../").filter(|beside| beside.starts_with("sample-")) else {
        return;
    };
    let samples = Path::new(beside.split('/').next().unwrap_or(beside));
    if folders.resolve(samples, Base::File).is_dir() {
        *path = beside.to_owned();
    }
}

/// The parameter with whose default a text begins; none if it was given.
pub(crate) fn default_in<'a>(node: &Node, parameters: &'a [(String, Resolved)]) -> Option<&'a str> {
    let template = Template::parse(node.text()?).ok()?;
    let Reference::Parameter(name) = template.references().next()? else { return None };
    let (name, value) = parameters.iter().find(|(key, _)| key == name)?;
    (value.base == Base::File).then_some(name.as_str())
}

/// What to do where files are not there that a pipeline that comes with hopmap names.
pub(crate) fn give_your_own<'a>(name: &str, parameters: impl Iterator<Item = &'a str>, what: &str) -> String {
    let options: Vec<String> = parameters.map(|parameter| format!("-p {parameter}={what}")).collect();
    let options = options.join(" ");
    format!("give your own with `{options}`: {name} comes with hopmap, and its defaults are not here")
}

impl Pipeline {
    /// Its file; none if it comes with hopmap.
    #[must_use]
    pub fn file(&self) -> Option<PathBuf> {
        let name = self.source.name();
        let file = self.folders.file.join(Path::new(name).file_name().unwrap_or_default());
        let is_embedded = EMBEDDED.iter().any(|embedded| embedded.name == name);
        (!is_embedded || file.is_file()).then_some(file)
    }
}
