//! Artifacts, metrics, keys of pipeline files, and the pipelines that come with hopmap.

use hopmap_artifact::{FORMS, KindForm, form};
use hopmap_model::Direction;
use hopmap_objective::{EVALUATIONS, METRICS, Metric};
use serde_json::Value as Json;

use super::super::stages::pipeline_schema;
use super::markdown::{Pages, anchor, head, sentence, table};
use crate::pipeline::{EMBEDDED, Embedded, parameters};
use crate::registry::{KINDS, STAGES};

pub(super) fn add(pages: &mut Pages) {
    artifacts(pages);
    pages.insert("metrics.md".into(), metrics());
    pages.insert("pipeline-keys.md".into(), keys());
    pages.insert("pipelines.md".into(), pipelines());
}

/// An index of the kinds, and a page for each that has tables.
fn artifacts(pages: &mut Pages) {
    let introduction = "An artifact is a folder with `artifact.json` (kind, schema version, metrics, BLAKE3 of every \
        table and file), one Parquet file per table, and `files/`. A type with `?` may have missing values.";
    let rows = KINDS.iter().map(|kind| {
        let name = match has_page(kind.name) {
            true => format!("[`{0}`](artifacts/{0}.md)", kind.name),
            false => format!("`{}`", kind.name),
        };
        [name, form(kind.name).map_or("", |form| form.summary).to_owned()]
    });
    pages.insert("artifacts.md".into(), head("Artifacts", introduction) + &table(["kind", "content"], rows));
    for form in FORMS.iter().filter(|form| has_page(form.kind)) {
        let text = head(&format!("Artifact: {}", form.kind), form.summary);
        pages.insert(format!("artifacts/{}.md", form.kind), text + &stages_with(form.kind) + &tables(form));
    }
}

fn has_page(kind: &str) -> bool {
    form(kind).is_some_and(|form| !form.tables.is_empty())
}

/// A link from the page of a family of stages to a kind.
pub(super) fn link_to(kind: &str) -> String {
    match has_page(kind) {
        true => format!("[`{kind}`](../artifacts/{kind}.md)"),
        false => format!("[`{kind}`](../artifacts.md)"),
    }
}

/// The stages that write and read a kind.
fn stages_with(kind: &str) -> String {
    let mut text = String::new();
    for (direction, verb) in [(Direction::Out, "Written"), (Direction::In, "Read")] {
        let has = |direction| {
            STAGES.iter().filter(move |entry| entry.ports(direction).any(|port| port.kind == kind))
        };
        let links: Vec<String> = has(direction)
            .map(|entry| {
                let family = entry.kind.split('/').next().unwrap_or_default();
                format!("[`{}`](../stages/{family}.md#{})", entry.kind, anchor(entry.kind))
            })
            .collect();
        if !links.is_empty() {
            text += &format!("\n{verb} by {}.\n", links.join(", "));
        }
    }
    text
}

fn tables(form: &KindForm) -> String {
    let mut text = String::new();
    for described in form.tables {
        let when = match described.when {
            "" => String::new(),
            when => format!(" ({when})"),
        };
        text += &format!("\nTable `{}`{when}:\n", described.name);
        let columns = described
            .columns()
            .map(|column| [format!("`{}`", column.name), column.kind.to_owned(), column.meaning.to_owned()]);
        text += &table(["column", "type", "meaning"], columns);
    }
    if !form.metrics.is_empty() {
        text += "\nMetrics:\n";
        let metrics = form.metrics.iter().map(|(name, meaning)| [format!("`{name}`"), (*meaning).to_owned()]);
        text += &table(["metric", "meaning"], metrics);
    }
    text
}

fn metrics() -> String {
    let introduction = "Metrics of a mapping. Those in bytes or hops need a machine with links, `max_link_time_s` also their \
        bandwidths. Metrics of other artifacts are on [Artifacts](artifacts.md).";
    let row = |metric: Metric| {
        [format!("`{}`", metric.name), metric.unit.to_owned(), metric.explanation.to_owned()]
    };
    let rows = METRICS.into_iter().chain([EVALUATIONS]).map(row);
    head("Metrics", introduction) + &table(["metric", "unit", "meaning"], rows)
}

fn keys() -> String {
    let introduction = "Every key of a pipeline file. [Pipeline files](pipeline-file.md) explains them with examples; \
        `hopmap schema` prints the JSON Schema for editors.";
    let mut rows = Vec::new();
    collect(&pipeline_schema(), "", &mut rows);
    head("Keys of a pipeline file", introduction) + &table(["key", "default", "meaning"], rows)
}

/// The keys of a table, and of the tables in it.
fn collect(schema: &Json, within: &str, rows: &mut Vec<[String; 3]>) {
    for (name, value) in schema["properties"].as_object().into_iter().flatten() {
        let key = format!("{within}{name}");
        let default = &value["default"];
        let default = if default.is_null() { String::new() } else { format!("`{default}`") };
        let named = &value["additionalProperties"];
        let meaning = [value, named].into_iter().find_map(|schema| schema["description"].as_str());
        if let Some(meaning) = meaning {
            rows.push([format!("`{key}`"), default, sentence(meaning)]);
        }
        // Stages say on their own pages what they take.
        if ["with", "needs"].contains(&name.as_str()) {
            continue;
        }
        collect(value, &format!("{key}."), rows);
        collect(named, &format!("{key}.NAME."), rows);
    }
}

fn pipelines() -> String {
    let introduction = "`hopmap run NAME` runs a pipeline, and `hopmap init --from NAME` makes a project of it. \
        [The gallery](../gallery.md) shows what each prints.";
    let rows = EMBEDDED.iter().map(|embedded| {
        [format!("[`{}`](#{})", embedded.name, anchor(embedded.name)), sentence(embedded.description())]
    });
    let mut text = head("Pipelines", introduction) + &table(["pipeline", "purpose"], rows);
    EMBEDDED.iter().for_each(|embedded| text += &pipeline(embedded));
    text
}

fn pipeline(embedded: &Embedded) -> String {
    let rows: Vec<[String; 3]> = parameters(embedded.text)
        .map(|parameter| {
            [format!("`{}`", parameter.name), format!("`{}`", parameter.default), sentence(parameter.comment)]
        })
        .collect();
    let head = format!("\n## {}\n\n{}\n", embedded.name, sentence(embedded.description()));
    match rows.is_empty() {
        true => head,
        false => head + &table(["parameter", "default", "meaning"], rows),
    }
}
