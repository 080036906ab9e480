//! `ro-crate-metadata.json`: what is in an archive, as an RO-Crate 1.1 that follows the profile Process Run Crate 0.5
//! (<https://w3id.org/ro/wfrun/process/0.5>), with a licence also Workflow Run Crate 0.5, which asks for one.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value as Json, json};

use super::inputs::Inputs;
use super::{ARTIFACTS, Export, METADATA, encoded};
use crate::engine::short;

/// A file as it was written.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) name: String,
    pub(super) bytes: u64,
    pub(super) blake3: String,
    pub(super) about: About,
}

/// What a file is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum About {
    Pipeline,
    Lock,
    Request,
    Results,
    Journal,
    Report,
    Input,
    Artifact { digest: String },
}

const PROCESS: &str = "https://w3id.org/ro/wfrun/process/0.5";
const WORKFLOW: &str = "https://w3id.org/ro/wfrun/workflow/0.5";
const WORKFLOW_CRATE: &str = "https://w3id.org/workflowhub/workflow-ro-crate/1.0";
const LANGUAGE: &str = "#hopmap-pipeline";
const ENGINE: &str = "#hopmap";
/// The meaning of the term for a digest: schema.org has one for SHA-256 only.
const BLAKE3: &str = "https://github.com/BLAKE3-team/BLAKE3";

/// The metadata of an archive.
pub(super) fn describe(export: &Export<'_>, inputs: &Inputs, written: &[Written]) -> String {
    let action = format!("#run-{}", export.run.map_or("unknown", |run| run.run.as_str()));
    let mut graph = vec![
        json!({
            "@id": METADATA,
            "@type": "CreativeWork",
            "conformsTo": conforming(&["https://w3id.org/ro/crate/1.1"], export),
            "about": reference("./"),
        }),
        root(export, written, &action),
    ];
    graph.extend(profiles(export));
    graph.push(json!({
        "@id": LANGUAGE, "@type": "ComputerLanguage", "name": "hopmap pipeline file", "alternateName": "TOML",
        "identifier": reference("https://toml.io/"), "url": reference("https://toml.io/"),
    }));
    graph.push(json!({
        "@id": ENGINE, "@type": "SoftwareApplication", "name": "hopmap", "softwareVersion": env!("CARGO_PKG_VERSION"),
        "description": env!("CARGO_PKG_DESCRIPTION"),
    }));
    if let Some(license) = export.license.filter(|license| is_address(license)) {
        graph.push(json!({ "@id": license, "@type": "CreativeWork", "name": license, "description": "the licence of the data" }));
    }
    graph.push(run(export, inputs, written, &action));
    graph.extend(parameters(export));
    graph.extend(written.iter().map(|file| described(file, export, &action)));
    graph.extend(artifacts(export, written));
    if !export.inputs {
        let without = inputs.files.iter().map(|(name, file)| (name, &file.blake3));
        graph.extend(without.map(|(name, blake3)| elsewhere(name, blake3)));
    }
    graph.extend(inputs.outside.iter().map(|(name, file)| elsewhere(name, &file.blake3)));
    let context = json!([
        "https://w3id.org/ro/crate/1.1/context",
        "https://w3id.org/ro/terms/workflow-run/context",
        { "blake3": BLAKE3 },
    ]);
    let metadata = json!({ "@context": context, "@graph": graph });
    // Plain data with text keys: it always has a form in JSON.
    serde_json::to_string_pretty(&metadata).unwrap_or_default() + "\n"
}

fn is_address(license: &str) -> bool {
    license.starts_with("https://") || license.starts_with("http://")
}

fn reference(id: &str) -> Json {
    json!({ "@id": id })
}

fn references<'a>(ids: impl IntoIterator<Item = &'a str>) -> Json {
    let mut all: Vec<Json> = ids.into_iter().map(reference).collect();
    // JSON-LD knows no difference, but RO-Crate asks for the shorter form.
    if all.len() == 1 { all.remove(0) } else { Json::Array(all) }
}

/// What the crate follows. Workflow RO-Crate asks for a licence, so without one it is a Process Run Crate.
fn conforming(base: &[&str], export: &Export<'_>) -> Json {
    let more = export.license.map(|_| WORKFLOW_CRATE);
    references(base.iter().copied().chain(more))
}

fn profiles(export: &Export<'_>) -> Vec<Json> {
    let profile = |id: &str, name: &str, version: &str| json!({ "@id": id, "@type": "CreativeWork", "name": name, "version": version });
    let mut profiles = vec![profile(PROCESS, "Process Run Crate", "0.5")];
    if export.license.is_some() {
        profiles.push(profile(WORKFLOW, "Workflow Run Crate", "0.5"));
        profiles.push(profile(WORKFLOW_CRATE, "Workflow RO-Crate", "1.0"));
    }
    profiles
}

fn root(export: &Export<'_>, written: &[Written], action: &str) -> Json {
    let of_artifacts = digests(written).into_keys().map(|digest| folder_id(&digest));
    let others = written.iter().filter(|file| !matches!(file.about, About::Artifact { .. }));
    let parts: Vec<String> = others.map(|file| encoded(&file.name)).chain(of_artifacts).collect();
    let name = &export.pipeline.name;
    let description = export.pipeline.description.clone().unwrap_or_else(|| {
        format!("A run of the hopmap pipeline {name}: the pipeline, its inputs, every artifact, and how they were made")
    });
    let mut root = json!({
        "@id": "./",
        "@type": "Dataset",
        "name": format!("Run of {name}"),
        "description": description,
        "datePublished": end_time(export),
        "conformsTo": match export.license {
            None => references([PROCESS]),
            Some(_) => references([PROCESS, WORKFLOW, WORKFLOW_CRATE]),
        },
        "hasPart": references(parts.iter().map(String::as_str)),
        "mentions": references([action]),
    });
    if let Some(pipeline) = written.iter().find(|file| file.about == About::Pipeline) {
        root["mainEntity"] = reference(&encoded(&pipeline.name));
    }
    // RO-Crate asks for a licence: where none is known, that is what has to be said.
    root["license"] = match export.license {
        Some(license) if is_address(license) => reference(license),
        Some(license) => license.into(),
        None => "no licence is stated".into(),
    };
    root
}

/// When the run ended; of one whose journal is gone, now.
fn end_time(export: &Export<'_>) -> String {
    let ended = |run: &crate::engine::RunSummary| {
        let start: jiff::Timestamp = run.time.parse().ok()?;
        let seconds = run.seconds.unwrap_or(0.0).clamp(0.0, 1e9) as i64;
        start.checked_add(jiff::SignedDuration::from_secs(seconds)).ok()
    };
    let time = export.run.and_then(ended).unwrap_or_else(jiff::Timestamp::now);
    time.strftime("%Y-%m-%dT%H:%M:%S+00:00").to_string()
}

fn run(export: &Export<'_>, inputs: &Inputs, written: &[Written], action: &str) -> Json {
    let without = inputs.files.keys().filter(|_| !export.inputs).chain(inputs.outside.keys());
    let mut objects: Vec<String> =
        named(written, About::Input).chain(without.map(|name| elsewhere_id(name))).collect();
    objects.extend(export.request.parameters.iter().map(|(name, _)| parameter_id(name)));
    let results: Vec<String> = digests(written).into_keys().map(|digest| folder_id(&digest)).collect();
    let workflow = named(written, About::Pipeline).next().unwrap_or_default();
    let cells = export.pipeline.cells.len();
    let mut run = json!({
        "@id": action,
        "@type": "CreateAction",
        "name": format!("Run of {}", export.pipeline.name),
        "description": format!("hopmap {} ran {cells} stages and cells", env!("CARGO_PKG_VERSION")),
        "instrument": reference(&workflow),
        "object": references(objects.iter().map(String::as_str)),
        "result": references(results.iter().map(String::as_str)),
        "endTime": end_time(export),
        "actionStatus": "http://schema.org/CompletedActionStatus",
    });
    if let Some(known) = export.run {
        run["startTime"] = known.time.replace('Z', "+00:00").into();
    }
    run
}

/// IRIs of the files of a kind.
fn named(written: &[Written], about: About) -> impl Iterator<Item = String> {
    written.iter().filter(move |file| file.about == about).map(|file| encoded(&file.name))
}

fn parameter_id(name: &str) -> String {
    format!("#parameter-{}", encoded(name))
}

fn parameters(export: &Export<'_>) -> Vec<Json> {
    let parameter = |(name, value): &(String, String)| json!({ "@id": parameter_id(name), "@type": "PropertyValue", "name": name, "value": value });
    export.request.parameters.iter().map(parameter).collect()
}

/// What the metadata say of one file.
fn described(file: &Written, export: &Export<'_>, action: &str) -> Json {
    let Written { name, bytes, blake3, about } = file;
    let own_name = Path::new(name).file_name().unwrap_or_default().to_string_lossy();
    let mut entity = json!({
        "@id": encoded(name),
        "@type": "File",
        "name": own_name,
        "contentSize": bytes.to_string(),
        "encodingFormat": media_type(name),
        "blake3": blake3,
    });
    let (what, of_run) = match about {
        About::Pipeline => {
            entity["@type"] = json!(["File", "SoftwareSourceCode", "ComputationalWorkflow"]);
            entity["name"] = export.pipeline.name.clone().into();
            entity["programmingLanguage"] = reference(LANGUAGE);
            entity["runtimePlatform"] = format!("hopmap {}", env!("CARGO_PKG_VERSION")).into();
            entity["softwareRequirements"] = reference(ENGINE);
            entity["version"] = short(blake3).into();
            ("the pipeline", false)
        }
        About::Lock => {
            ("what the results were made of, and what they are: inputs, parameters, digests", true)
        }
        About::Request => ("parameters, and where the pipeline is in this archive", true),
        About::Results => ("the result of every cell as the store of hopmap keeps it", true),
        About::Journal => ("journal of the run: what happened when", true),
        About::Report => ("report of the run", true),
        About::Input => ("an input", false),
        About::Artifact { .. } => ("part of an artifact", false),
    };
    entity["description"] = what.into();
    if of_run {
        entity["about"] = reference(action);
    }
    entity
}

/// Files of each artifact, by digest.
fn digests(written: &[Written]) -> BTreeMap<String, Vec<&Written>> {
    let mut digests: BTreeMap<String, Vec<&Written>> = BTreeMap::new();
    for file in written {
        if let About::Artifact { digest } = &file.about {
            digests.entry(digest.clone()).or_default().push(file);
        }
    }
    digests
}

fn folder_id(digest: &str) -> String {
    format!("{ARTIFACTS}/{digest}/")
}

/// Every artifact as a folder, with the cells that gave it and its metrics.
fn artifacts(export: &Export<'_>, written: &[Written]) -> Vec<Json> {
    let mut origins: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let mut kinds: BTreeMap<&str, &str> = BTreeMap::new();
    for (cell, settled) in export.pipeline.cells.iter().zip(&export.report.cells) {
        for (port, record) in settled.outputs.iter() {
            origins.entry(&record.digest).or_default().push(format!("{port} of {}", cell.id));
            kinds.insert(&record.digest, &record.kind);
        }
    }
    let folder = |(digest, files): (String, Vec<&Written>)| {
        let names = origins.get(digest.as_str()).map(Vec::as_slice).unwrap_or_default();
        let parts: Vec<String> = files.iter().map(|file| encoded(&file.name)).collect();
        let kind = kinds.get(digest.as_str()).copied().unwrap_or("artifact");
        json!({
            "@id": folder_id(&digest),
            "@type": "Dataset",
            "name": names.first().unwrap_or(&digest),
            "description": format!("{kind}: {}", names.join(", ")),
            "identifier": format!("blake3:{digest}"),
            "hasPart": references(parts.iter().map(String::as_str)),
        })
    };
    digests(written).into_iter().map(folder).collect()
}

fn elsewhere_id(name: &str) -> String {
    format!("#input-{}", encoded(name))
}

/// An input that is not in the archive.
fn elsewhere(name: &str, blake3: &str) -> Json {
    json!({
        "@id": elsewhere_id(name),
        "@type": "CreativeWork",
        "name": name,
        "description": "an input that is not in this archive",
        "blake3": blake3,
    })
}

fn media_type(name: &str) -> &'static str {
    match Path::new(name).extension().and_then(|extension| extension.to_str()).unwrap_or_default() {
        "parquet" => "application/vnd.apache.parquet",
        "json" => "application/json",
        "jsonl" => "application/jsonl",
        "toml" | "lock" => "application/toml",
        "html" => "text/html",
        "csv" => "text/csv",
        "svg" => "image/svg+xml",
        "xml" => "application/xml",
        "txt" | "" => "text/plain",
        _ => "application/octet-stream",
    }
}
