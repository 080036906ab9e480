//! `hopmap init`: creates a project from a bundled pipeline.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::{Component, Path, PathBuf};

use clap::{Args, ValueHint};
use hopmap_command::{Exit, Failure, Mistake, refuse, shown};
use hopmap_durable::DurableError;
use hopmap_launchers::shell_word;
use hopmap_text::closest;
use serde_json::json;

use super::open::{pairs, working_directory};
use super::output::{Output, Result};
use super::stages::pipeline_schema;
use crate::accepted::relative;
use crate::pipeline::{EMBEDDED, Embedded, Folders, Pipeline, SCHEMA_FILE, parameters, without_references};
use crate::source::Source;

/// Arguments of `init`.
#[derive(Debug, Args)]
#[command(after_help = "\
Writes NAME.toml for you to edit, a JSON Schema with which editors complete it, a README and a .gitignore. Existing files \
are never changed.

Examples:
  hopmap init
  hopmap init lu --trace lu/trace --shape tree:2x16x40
  hopmap init small --shape tree:4x4 -p 'costs=[1, 10]'
  hopmap init --list
  hopmap init nightly --from topology-refresh")]
pub(crate) struct Arguments {
    /// Folder of the project; created if it is missing.
    #[arg(value_name = "DIR", default_value = ".", value_hint = ValueHint::DirPath)]
    folder: PathBuf,
    /// Start from this bundled pipeline [default: place].
    #[arg(long, value_name = "PIPELINE")]
    from: Option<String>,
    /// Set the default of the parameter `trace`: the trace of your program.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    trace: Option<PathBuf>,
    /// Set the default of the parameter `shape`: the shape of your machine, such as tree:2x16x40.
    #[arg(long)]
    shape: Option<String>,
    /// Set the default of any parameter, written as in a pipeline file.
    #[arg(short = 'p', long = "param", value_name = "NAME=VALUE")]
    parameters: Vec<String>,
    /// List the bundled pipelines, and create nothing.
    #[arg(long)]
    list: bool,
}

pub(crate) fn main(arguments: &Arguments, output: Output) -> Result {
    if arguments.list {
        list(output);
        return Ok(Exit::Done);
    }
    let embedded = start(arguments)?;
    let folder = real(&working_directory()?.join(&arguments.folder));
    let files = files(embedded, &folder, &defaults(arguments, embedded, &folder)?)?;
    refuse_others(&folder, &files)?;
    std::fs::create_dir_all(&folder)
        .map_err(|error| Failure::failed(DurableError::io("create", &arguments.folder)(error)))?;
    let mut unchanged = Vec::new();
    for (name, text) in &files {
        if !write_new(&folder.join(name), text)? {
            unchanged.push(name.as_str());
        }
    }
    said(arguments, embedded, (&folder, &files, &unchanged), output);
    Ok(Exit::Done)
}

fn list(output: Output) {
    let described =
        |embedded: &Embedded| json!({ "name": embedded.name, "description": embedded.description() });
    output.json(&EMBEDDED.iter().map(described).collect::<Vec<_>>());
    let width = EMBEDDED.iter().map(|embedded| embedded.name.len()).max().unwrap_or(0);
    for embedded in EMBEDDED {
        output.line(format!("{:<width$}  {}", embedded.name, embedded.description()));
    }
}

/// The bundled pipeline to start from. One that is named in the place of the folder is what people mean who have read the list.
fn start(arguments: &Arguments) -> Result<&'static Embedded> {
    const USUAL: &str = "place";
    let folder = arguments.folder.to_str().unwrap_or_default();
    let named = arguments.from.is_none() && folder != USUAL;
    if named && EMBEDDED.iter().any(|embedded| embedded.name == folder) {
        return refuse(
            format!("`{folder}` is a bundled pipeline, and the first argument is a folder"),
            format!(
                "`hopmap init --from {folder}` starts from it; `hopmap init --from {USUAL} {folder}` makes a folder of that name"
            ),
        );
    }
    find(arguments.from.as_deref().unwrap_or(USUAL))
}

fn find(name: &str) -> Result<&'static Embedded> {
    EMBEDDED.iter().find(|embedded| embedded.name == name).ok_or_else(|| {
        let names: Vec<&str> = EMBEDDED.iter().map(|embedded| embedded.name).collect();
        let help = match closest(name, &names) {
            Some(meant) => format!("did you mean `{meant}`? `hopmap init --list` lists all"),
            None => format!("one of: {}", names.join(", ")),
        };
        Mistake::new(format!("there is no bundled pipeline `{name}`"), help).into()
    })
}

/// The defaults that were asked for, in TOML.
fn defaults(arguments: &Arguments, embedded: &Embedded, folder: &Path) -> Result<Vec<(String, String)>> {
    let mut given: Vec<(String, toml::Value)> = Vec::new();
    for (name, value) in pairs(&arguments.parameters, "-p")? {
        let parsed = toml::from_str(&format!("value = {value}"));
        let parsed = parsed.ok().and_then(|mut table: toml::Table| table.remove("value"));
        given.push((name, parsed.unwrap_or(toml::Value::String(value))));
    }
    if let Some(trace) = &arguments.trace {
        given.push(("trace".to_owned(), path_from(folder, trace)?.into()));
    }
    if let Some(shape) = &arguments.shape {
        given.push(("shape".to_owned(), shape.as_str().into()));
    }
    let known: Vec<&str> = parameters(embedded.text).map(|parameter| parameter.name).collect();
    if let Some((name, _)) = given.iter().find(|(name, _)| !known.contains(&name.as_str())) {
        let message = format!("the pipeline `{}` has no parameter `{name}`", embedded.name);
        return refuse(message, format!("its parameters: {}", known.join(", ")));
    }
    Ok(given.into_iter().map(|(name, value)| (name, without_references(&value.to_string()))).collect())
}

/// Names and contents of the files of a project.
fn files(embedded: &Embedded, folder: &Path, defaults: &[(String, String)]) -> Result<Vec<(String, String)>> {
    let name = format!("{}.toml", embedded.name);
    let text = embedded.as_file(defaults);
    if !defaults.is_empty() {
        // A value that the pipeline rejects is reported now, and nothing is created.
        let folders = Folders::new(folder.to_owned(), folder.to_owned());
        Pipeline::parse_in(Source::new(&name, text.clone()), folders, &[])?;
    }
    // A schema is plain JSON, which always has a text.
    let schema = serde_json::to_string_pretty(&pipeline_schema()).unwrap_or_default() + "\n";
    let readme = readme(embedded, &text);
    Ok(vec![
        (name, text),
        (SCHEMA_FILE.to_owned(), schema),
        ("README.md".to_owned(), readme),
        (".gitignore".to_owned(), "/.hopmap/\n/out/\n".to_owned()),
    ])
}

/// What the project is, the next commands, and its parameters.
fn readme(embedded: &Embedded, text: &str) -> String {
    let file = format!("{}.toml", embedded.name);
    let mut lines = vec![format!("# {}\n\n{}.\n", embedded.name, embedded.description())];
    // Commands of the introduction are indented, which Markdown takes for code from four spaces on.
    lines.extend(embedded.introduction().lines().map(|line| match line.starts_with("  ") {
        true => format!("  {line}"),
        false => line.to_owned(),
    }));
    let first = glob(text).map(|glob| format!("Put your traces where `{glob}` finds them, then:\n\n"));
    let first = first.unwrap_or_default();
    lines.push(format!(
        "
## Next

{first}```sh
hopmap check {file}                      # validate the file
hopmap plan {file}                       # dry run: what would run, and why
hopmap run {file} --report report.html   # run out-of-date stages; results are stored in .hopmap
```
"
    ));
    let known: Vec<_> = parameters(text).collect();
    if known.iter().any(|parameter| parameter.name == "trace") {
        let commands = try_it(&file).join("\n");
        lines.push(format!("Without a trace, generate one to try it with:\n\n```sh\n{commands}\n```\n"));
    }
    lines.push(format!(
        "\
## Parameters

`hopmap run {file} -p NAME=VALUE` sets one for a run. The defaults are in [{file}]({file}), and paths among them are relative to it.

| | default | |
|---|---|---|"
    ));
    let cell = |text: &str| text.replace('|', "\\|");
    lines.extend(known.iter().map(|parameter| {
        format!("| `{}` | `{}` | {} |", parameter.name, cell(parameter.default), cell(parameter.comment))
    }));
    lines.push(format!(
        "
`{SCHEMA_FILE}` is the schema with which editors complete and check {file}: VS Code with Even Better TOML, or any other with Taplo.
`hopmap schema > {SCHEMA_FILE}` writes that of a newer hopmap.
"
    ));
    lines.join("\n")
}

/// The pattern of input files, one cell for each; a pipeline without a match is rejected.
fn glob(text: &str) -> Option<&str> {
    let mut defaults = parameters(text).map(|parameter| parameter.default.trim_matches('"'));
    defaults.find(|default| default.contains('*'))
}

/// Commands that generate the trace of a stencil program, and use it.
fn try_it(file: &str) -> [String; 2] {
    [
        "hopmap exec trace/generate -p pattern=stencil3d -p ranks=16 -p events=20000 --out sample".to_owned(),
        format!("hopmap run {file} --trace sample/archive/files/traces.otf2"),
    ]
}

/// Rejects existing files with other content: nothing is created then.
fn refuse_others(folder: &Path, files: &[(String, String)]) -> Result<()> {
    let in_the_way = |(name, text): &&(String, String)| {
        let place = folder.join(name);
        place.symlink_metadata().is_ok() && std::fs::read(place).ok().as_deref() != Some(text.as_bytes())
    };
    if folder.exists() && !folder.is_dir() {
        return refuse(format!("{} is not a folder", shown(folder)), "name another one");
    }
    let names: Vec<_> = files.iter().filter(in_the_way).map(|(name, _)| name.as_str()).collect();
    if names.is_empty() {
        return Ok(());
    }
    let verb = if names.len() == 1 { "exists" } else { "exist" };
    let (names, place) = (names.join(", "), shown_folder(folder));
    let message = format!("{names} {verb} already in {place}; nothing was written");
    refuse(message, "name another folder: `hopmap init DIR` creates it")
}

fn shown_folder(folder: &Path) -> String {
    let shown = shown(folder);
    if shown == "." { "this folder".to_owned() } else { shown }
}

/// Writes a file unless it is there with the same contents; returns whether it was written.
fn write_new(place: &Path, text: &str) -> Result<bool> {
    match OpenOptions::new().write(true).create_new(true).open(place) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
        opened => opened
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .map(|()| true)
            .map_err(|error| Failure::failed(DurableError::io("write", place)(error))),
    }
}

fn said(
    arguments: &Arguments,
    embedded: &Embedded,
    (folder, files, unchanged): (&Path, &[(String, String)], &[&str]),
    output: Output,
) {
    let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    output.json(
        &json!({ "pipeline": embedded.name, "folder": folder, "files": names, "unchanged": unchanged }),
    );
    let created: Vec<&str> = names.into_iter().filter(|name| !unchanged.contains(name)).collect();
    for (what, names) in [("created", &created[..]), ("unchanged", unchanged)] {
        if !names.is_empty() {
            output.line(format!("{what} in {}: {}", shown_folder(folder), names.join(", ")));
        }
    }
    output.line("next:");
    if shown(folder) != "." {
        output.line(format!("  cd {}", shell_word(&shown(folder))));
    }
    if let Some(glob) = files.first().and_then(|(_, text)| glob(text)) {
        output.line(format!("  put your traces where {glob} finds them, then"));
    }
    let file = format!("{}.toml", embedded.name);
    output.line(format!("  hopmap check {file}"));
    output.line(format!("  hopmap run {file}"));
    let has_trace = parameters(embedded.text).any(|parameter| parameter.name == "trace");
    if has_trace && arguments.trace.is_none() {
        output.line("or, without a trace of your own:");
        try_it(&file).iter().for_each(|command| output.line(format!("  {command}")));
    }
    if let Some(trace) = arguments.trace.as_ref().filter(|trace| !trace.exists()) {
        output.note(format!("note: {} does not exist yet", trace.display()));
    }
}

/// A path as a pipeline file in a folder has to name it.
fn path_from(folder: &Path, path: &Path) -> Result<String> {
    let named = match path.is_absolute() {
        true => path.to_owned(),
        false => relative(&real(&working_directory()?.join(path)), folder),
    };
    match named.to_str() {
        Some(text) => Ok(text.to_owned()),
        None => refuse(
            format!("{} is not UTF-8", path.display()),
            "pipeline files are UTF-8 and cannot contain this path",
        ),
    }
}

/// Where a path is, links followed as far as it exists.
fn real(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| match (path.parent(), path.components().next_back()) {
        (Some(parent), Some(Component::Normal(name))) => real(parent).join(name),
        (Some(parent), Some(Component::ParentDir)) => {
            let mut parent = real(parent);
            parent.pop();
            parent
        }
        (Some(parent), _) => real(parent),
        (None, _) => path.to_owned(),
    })
}
