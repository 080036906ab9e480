//! Pipelines that come with hopmap and run anywhere, and projects of one's own that are made of them.

use std::path::{Path, PathBuf};

use serde_json::Value as Json;

use super::cells::Pipeline;
use super::samples::unpacked;
use super::template::{Base, Folders, Reference, Resolved, Template};
use crate::source::{Node, Source};

/// Name of the JSON Schema in a project, as the first line of its pipeline file names it for editors.
pub(crate) const SCHEMA_FILE: &str = "hopmap.schema.json";

/// A parameter of an embedded pipeline, as its text has it. Each has a line of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Parameter<'a> {
    /// Its name.
    pub(crate) name: &'a str,
    /// Its default, in TOML.
    pub(crate) default: &'a str,
    /// What is said of it.
    pub(crate) comment: &'a str,
}

impl Embedded {
    /// What it is for, in a line.
    pub(crate) fn description(&self) -> &'static str {
        let line = self.text.lines().find_map(|line| line.strip_prefix("description = "));
        line.unwrap_or_default().trim_matches('"')
    }

    /// The comment that it begins with, without the signs of a comment.
    pub(crate) fn introduction(&self) -> String {
        let lines = self.text.lines().map_while(|line| line.strip_prefix('#'));
        let lines: Vec<&str> = lines.map(|line| line.strip_prefix(' ').unwrap_or(line)).collect();
        let mut text = lines.join("\n") + "\n";
        name_the_file(&mut text, self.name);
        text
    }

    /// Its text as a file of a project: editors find the schema, samples give way to files of one's own, and defaults are
    /// those that are given, in TOML.
    pub(crate) fn as_file(&self, defaults: &[(String, String)]) -> String {
        let mut text = format!("#:schema {SCHEMA_FILE}\n");
        let mut in_parameters = false;
        for line in self.text.lines() {
            in_parameters = if line.starts_with('[') { line == "[params]" } else { in_parameters };
            let parameter = parameter(line).filter(|_| in_parameters);
            let mut line = line.to_owned();
            if let Some(Parameter { name, default, comment }) = parameter {
                let given = defaults.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str());
                let own = given.map_or_else(|| own_place(default), str::to_owned);
                let (before, value) = line.split_at(line.find('=').unwrap_or(0));
                let mut value = value.replacen(default, &own, 1);
                if name == "shape" && own != default && !comment.is_empty() {
                    value = value.replacen(comment, said_of_shape(&own), 1);
                }
                line = before.to_owned() + &value;
            } else if line.starts_with('#') {
                name_the_file(&mut line, self.name);
            }
            text.push_str(&line);
            text.push('\n');
        }
        text
    }
}

/// Comment of a shape that is not the pipeline's default, whose numbers the default's comment explains.
fn said_of_shape(shape: &str) -> &'static str {
    match shape.starts_with("\"tree:") {
        true => "innermost first: cores per host, hosts per switch, and so on",
        false => "`hopmap stages topology/synthetic` describes shapes",
    }
}

/// The parameters in the text of a pipeline.
pub(crate) fn parameters(text: &str) -> impl Iterator<Item = Parameter<'_>> {
    let lines = text.lines().skip_while(|line| *line != "[params]").skip(1);
    lines.take_while(|line| !line.starts_with('[')).filter_map(parameter)
}

fn parameter(line: &str) -> Option<Parameter<'_>> {
    let (name, rest) = line.split_once('=').filter(|_| !line.starts_with('#'))?;
    let mut quote = None;
    let end = rest.find(|letter| match quote {
        Some(open) => {
            quote = Some(open).filter(|_| letter != open);
            false
        }
        None => {
            quote = Some(letter).filter(|letter| "\"'".contains(*letter));
            letter == '#'
        }
    });
    let (default, comment) = rest.split_at(end.unwrap_or(rest.len()));
    Some(Parameter {
        name: name.trim(),
        default: default.trim(),
        comment: comment.trim_start_matches('#').trim(),
    })
}

/// Where one's own file is expected in the place of a sample: `../sample-traces/NAME/file` gives `traces/file`.
fn own_place(default: &str) -> String {
    let Some(sample) = default.strip_prefix("\"../sample-") else { return default.to_owned() };
    match sample.split('/').collect::<Vec<_>>()[..] {
        [kind, name, .., file] if !name.contains('*') => format!("\"{kind}/{file}"),
        _ => format!("\"{sample}"),
    }
}

/// Commands in comments run the file of the project, whatever they ran before.
fn name_the_file(text: &mut String, name: &str) {
    let command = format!("hopmap run {name}");
    let mut pieces = text.split(&command);
    let mut named = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let is_whole = piece.is_empty() || piece.starts_with([' ', '\n']);
        named += &command;
        named += if is_whole { ".toml" } else { "" };
        named += piece;
    }
    *text = named;
}

/// A pipeline of `pipelines/`, part of the binary.
#[derive(Debug)]
pub(crate) struct Embedded {
    /// Name under which `hopmap run` finds it.
    pub(crate) name: &'static str,
    /// Its text.
    pub(crate) text: &'static str,
}

/// All of them.
pub(crate) static EMBEDDED: &[Embedded] = &[
    Embedded { name: "place", text: include_str!("../../pipelines/place.toml") },
    Embedded { name: "place-netloc", text: include_str!("../../pipelines/place-netloc.toml") },
    Embedded { name: "predict", text: include_str!("../../pipelines/predict.toml") },
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
    Embedded { name: "table-1-taillard", text: include_str!("../../pipelines/table-1-taillard.toml") },
    Embedded { name: "figure-3", text: include_str!("../../pipelines/figure-3.toml") },
    Embedded { name: "figure-3-traces", text: include_str!("../../pipelines/figure-3-traces.toml") },
    Embedded { name: "claims", text: include_str!("../../pipelines/claims.toml") },
    Embedded { name: "checkpoint", text: include_str!("../../pipelines/checkpoint.toml") },
    Embedded { name: "adca", text: include_str!("../../pipelines/adca.toml") },
    Embedded { name: "training", text: include_str!("../../pipelines/training.toml") },
    Embedded { name: "training-trace", text: include_str!("../../pipelines/training-trace.toml") },
    Embedded { name: "topology-refresh", text: include_str!("../../pipelines/topology-refresh.toml") },
];

/// Whether a text is that of a pipeline that comes with hopmap: paths in it are relative to no file.
pub(crate) fn is_embedded(source: &Source) -> bool {
    EMBEDDED.iter().any(|embedded| embedded.name == source.name() && embedded.text == source.text())
}

/// Takes the samples of a default from the folder itself where it has them: the root of a clone. The files of `pipelines/` name them from
/// one folder below. Elsewhere, they are those in the binary.
pub(crate) fn find_samples(default: &mut Json, folders: &Folders) {
    let Json::String(path) = default else { return };
    let Some(beside) = path.strip_prefix("../").filter(|beside| beside.starts_with("sample-")) else {
        return;
    };
    let samples = Path::new(beside.split('/').next().unwrap_or(beside));
    let is_there = |samples: &Path| folders.resolve(samples, Base::File).is_dir();
    if is_there(samples) {
        *path = beside.to_owned();
    } else if folders.root.is_none()
        && !is_there(&Path::new("..").join(samples))
        && let Some(unpacked) = unpacked(beside)
    {
        *path = unpacked.to_string_lossy().into_owned();
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
    let option = |parameter: &str| format!("--{} {what}", parameter.replace('_', "-"));
    let options: Vec<String> = parameters.map(option).collect();
    let options = options.join(" ");
    format!("give your own with `{options}`: {name} comes with hopmap, and its defaults are not here")
}

impl Pipeline {
    /// Its file; none if it comes with hopmap.
    pub(crate) fn file(&self) -> Option<PathBuf> {
        let name = self.source.name();
        let file = self.folders.file.join(Path::new(name).file_name().unwrap_or_default());
        let is_embedded = EMBEDDED.iter().any(|embedded| embedded.name == name);
        (!is_embedded || file.is_file()).then_some(file)
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn parameters_of_a_pipeline_text_are_listed() {
        let text = "[params]\na = \"x # y\"   # what: a = b\n# a remark = none\nb   = [1, 2]\n\n[stages.s]\nuses = 1\n";
        let parameters: Vec<_> = parameters(text).collect();
        let expected = [
            Parameter { name: "a", default: "\"x # y\"", comment: "what: a = b" },
            Parameter { name: "b", default: "[1, 2]", comment: "" },
        ];
        assert_eq!(parameters, expected);
    }

    /// The text of every pipeline keeps to what is read off its lines.
    #[test]
    fn parameters_of_embedded_pipelines_are_those_that_toml_has() {
        for embedded in EMBEDDED {
            let table: toml::Table = embedded.text.parse().unwrap();
            assert_eq!(embedded.description(), table["description"].as_str().unwrap(), "{}", embedded.name);
            assert!(
                embedded.introduction().contains("hopmap "),
                "{} does not say how to run it",
                embedded.name
            );
            let read = parameters(embedded.text).map(|parameter| {
                let value: toml::Table = format!("value = {}", parameter.default).parse().unwrap();
                (parameter.name.to_owned(), value["value"].clone())
            });
            let read: toml::Table = read.collect();
            assert_eq!(read, table["params"].as_table().unwrap().clone(), "{}", embedded.name);
        }
    }

    #[test]
    fn a_file_of_a_project_names_no_sample_and_is_the_pipeline_otherwise() {
        for embedded in EMBEDDED {
            let file = embedded.as_file(&[]);
            assert!(file.starts_with("#:schema "), "{}", embedded.name);
            assert!(!file.contains("../"), "{}", embedded.name);
            let (mut own, mut original): (toml::Table, toml::Table) =
                (file.parse().unwrap(), embedded.text.parse().unwrap());
            own.remove("params");
            original.remove("params");
            assert_eq!(own, original, "{}", embedded.name);
        }
    }

    /// People run one after the other in one folder: none may refuse what another has saved.
    #[test]
    fn embedded_pipelines_save_to_places_of_their_own() {
        let mut places: Vec<(PathBuf, &str)> = Vec::new();
        for embedded in EMBEDDED {
            let table: toml::Table = embedded.text.parse().unwrap();
            let place = |save: &toml::Value| {
                let parameters = table["params"].as_table().unwrap().iter();
                let place = parameters.fold(save.as_str().unwrap().to_owned(), |place, (name, value)| {
                    place.replace(&format!("${{params.{name}}}"), value.as_str().unwrap_or_default())
                });
                PathBuf::from(place)
            };
            let parts = ["stages", "tables"].into_iter().filter_map(|part| table.get(part)?.as_table());
            for save in parts.flatten().filter_map(|(_, part)| part.get("save")) {
                match save.as_table() {
                    Some(saves) => places.extend(saves.values().map(|save| (place(save), embedded.name))),
                    None => places.push((place(save), embedded.name)),
                }
            }
        }
        places.sort();
        assert!(places.len() > 20);
        for pair in places.windows(2) {
            assert!(!pair[1].0.starts_with(&pair[0].0), "{pair:?}");
        }
    }

    #[test]
    fn the_comment_of_a_shape_describes_the_given_shape() {
        let said = |name: &str, shape: &str| {
            let embedded = EMBEDDED.iter().find(|embedded| embedded.name == name).unwrap();
            let file = embedded.as_file(&[("shape".to_owned(), shape.to_owned())]);
            let shape = parameters(&file).find(|parameter| parameter.name == "shape");
            shape.unwrap().comment.to_owned()
        };
        let general = "innermost first: cores per host, hosts per switch, and so on";
        assert!(said("batch", "\"tree:2x4x8\"").contains("2 cores per host"));
        assert_eq!(said("place", "\"tree:2x16x40\""), general);
        assert_eq!(said("figure-3-traces", "\"tree:4x4\""), general);
        assert!(said("route", "\"fat-tree:4x4/1x2\"").contains("hopmap stages topology/synthetic"));
    }

    #[test]
    fn paths_of_samples_become_paths_of_the_project() {
        assert_eq!(own_place("\"../sample-traces/lu/eztrace_log.otf2\""), "\"traces/eztrace_log.otf2\"");
        assert_eq!(own_place("\"../sample-topologies/f/netloc/IB.txt\""), "\"topologies/IB.txt\"");
        assert_eq!(own_place("\"../sample-traces/*/eztrace_log.otf2\""), "\"traces/*/eztrace_log.otf2\"");
        assert_eq!(own_place("\"../sample-traces\""), "\"traces\"");
        assert_eq!(own_place("[1, 10]"), "[1, 10]");
    }
}
