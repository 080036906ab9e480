//! `hopmap schema`: JSON Schemas, so that editors complete pipeline files.

use clap::Args;
use serde_json::{Map, Value as Json, json};

use super::exit::Exit;
use super::failure::Failure;
use super::output::Output;
use super::stages::find;
use crate::registry::{STAGES, StageEntry};

/// Arguments of `schema`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hopmap schema > hopmap.schema.json\n  hopmap schema map/annealing")]
pub(crate) struct Arguments {
    /// Kind of stage whose parameters to describe; all of a pipeline file if missing.
    kind: Option<String>,
}

pub(crate) fn main(arguments: &Arguments, output: Output) -> Result<Exit, Failure> {
    match &arguments.kind {
        Some(kind) => output.json(&find(kind)?.schema),
        None => output.json(&pipeline_schema()),
    }
    Ok(Exit::Done)
}

/// The schema of a pipeline file: what `with` takes depends on what `uses` says.
fn pipeline_schema() -> Json {
    let names = |map: Json| json!({ "type": "object", "additionalProperties": map });
    let kinds: Vec<&str> = STAGES.iter().map(|entry| entry.kind).collect();
    let mut definitions = Map::new();
    let values = json!({
        "description": "a list, or a range with both ends: 1..10, 16..128 step 16, 0.1..0.5 step 0.1, 16..1024 times 2",
        "type": ["array", "string"],
    });
    definitions.insert("values".into(), values);
    let rules: Vec<Json> = STAGES.iter().map(|entry| rule(entry, &mut definitions)).collect();
    let stage = json!({
        "type": "object",
        "required": ["uses"],
        "additionalProperties": false,
        "properties": {
            "uses": {
                "description": "kind of the stage; may hold ${matrix.KEY}",
                "anyOf": [{ "enum": kinds }, { "type": "string", "pattern": r"\$\{" }],
            },
            "with": { "description": "parameters of the stage", "type": "object" },
            "needs": {
                "description": "what is connected to each input: stage, stage.port, stage[*], stage[min F], stage[key=value], stage[key=value, min F]; several cells where the input takes many",
                "type": "object",
                "additionalProperties": { "type": ["string", "array"], "items": { "type": "string" } },
            },
            "foreach": {
                "description": "a cell for every file that fits a pattern, or for every cell of another stage",
                "anyOf": [
                    { "description": "name of a stage: a cell for each of its cells, with its matrix keys", "type": "string" },
                    {
                        "type": "object",
                        "required": ["glob"],
                        "additionalProperties": false,
                        "properties": {
                            "glob": { "description": "pattern such as traces/**/*.otf2, relative to this file; a value of -p to the working directory; hidden files do not count", "type": "string" },
                            "key": { "description": "matrix key that has the path", "type": "string", "default": "file" },
                        },
                    },
                ],
            },
            "matrix": {
                "description": "keys and their values; every combination is a cell of its own",
                "type": "object",
                "additionalProperties": { "$ref": "#/$defs/values" },
            },
            "zip": {
                "description": "keys whose values go side by side, all of the same number; multiplied with matrix",
                "type": "object",
                "additionalProperties": { "$ref": "#/$defs/values" },
            },
            "exclude": {
                "description": "combinations that are left out: those that meet every condition of one entry",
                "type": "array",
                "items": {
                    "type": "object",
                    "additionalProperties": { "description": "a value, a list of values, or a range that may be open: 256.." },
                },
            },
            "save": { "description": "copies of outputs for people: output port and path", "type": "object", "additionalProperties": { "type": "string" } },
            "threads": { "description": "cores the stage may use, with a launcher each of its processes; never changes a result", "type": "integer", "minimum": 1 },
            "memory": { "description": "memory that a cell takes, such as 4 GB; cells run side by side only while it lasts; never changes a result", "type": "string" },
            "launcher": {
                "description": "command that starts the stage elsewhere or as MPI ranks, such as mpirun -n 4, srun -n 1, sbatch -n 1 --time 10, sbatch -n 64 mpirun; may hold ${params.NAME}; empty for none; never changes a result",
                "type": "string",
            },
            "retries": { "description": "how often a batch job is submitted again that ended for causes outside the stage, such as a failed node", "type": "integer", "minimum": 0, "default": 2 },
        },
        "allOf": rules,
    });
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "hopmap pipeline",
        "type": "object",
        "required": ["stages"],
        "additionalProperties": false,
        "properties": {
            "name": { "description": "name by which the store remembers what ran", "type": "string" },
            "description": { "description": "what the pipeline is for", "type": "string" },
            "params": names(json!({})),
            "stages": names(stage),
            "batch": {
                "description": "how the pipeline deals with batch systems",
                "type": "object",
                "additionalProperties": false,
                "properties": {
                    "jobs": { "description": "jobs that are in the queue at once", "type": "integer", "minimum": 1, "default": 20 },
                    "patience": { "description": "time without an answer after which a batch system is given up", "type": "string", "default": "10 min" },
                },
            },
            "gates": names(json!({
                "description": "what the results have to keep, such as placement.F <= 1.02 * accepted",
                "type": "string",
            })),
        },
        "$defs": definitions,
    })
}

/// If `uses` is this kind, then `with` is this. Values may be references, so only the names of keys are binding.
fn rule(entry: &StageEntry, definitions: &mut Map<String, Json>) -> Json {
    let mut properties = Map::new();
    for (name, schema) in entry.schema["properties"].as_object().into_iter().flatten() {
        let mut described = json!({ "description": schema["description"] });
        if !schema["default"].is_null() {
            described["default"] = schema["default"].clone();
        }
        properties.insert(name.clone(), described);
    }
    let name = entry.kind.replace('/', "-");
    let with = json!({ "type": "object", "properties": properties, "additionalProperties": false });
    definitions.insert(name.clone(), with);
    json!({
        "if": { "properties": { "uses": { "const": entry.kind } } },
        "then": { "properties": { "with": { "$ref": format!("#/$defs/{name}") } } },
    })
}
