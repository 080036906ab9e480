//! Formats of task graphs and schedules, and of measurements of PARUS.
//!
//! A new format of task graphs is a module and a line in the table of readers.

mod common;
pub mod dot;
pub mod grf;
pub mod ini;
pub mod procs;
pub mod sch;
pub mod stg;
pub mod wfformat;

use hopmap_model::{Context, Error, TaskDag, require};
use hopmap_text::{FileError, Rows, foreign_lines, prefix_of_lines, rows_without_foreign};

use crate::error::invalid;
use crate::params::{GraphFormat, ImportParams};
pub(crate) use common::{MOST_BYTES, read_file};
use dot::{Dot, DotOptions};
use grf::Grf;

/// A graph, and a note for the log.
type Imported = (TaskDag, String);

/// Detection and reading of files of one format.
struct Reader {
    format: GraphFormat,
    /// The name of the format in messages.
    name: &'static str,
    /// Detection, from the first word in lower case and the text from there on.
    recognises: fn(&str, &[u8]) -> bool,
    /// Reads a file; the note is logged after the name.
    read: fn(&[u8], &ImportParams) -> Result<Imported, FileError>,
    /// Whether a text is a line of a file.
    is_line: fn(&str) -> bool,
}

const READERS: &[Reader] = &[
    Reader {
        format: GraphFormat::Parus,
        name: "a graph of PARUS",
        recognises: |word, _| word == "<graph_begin>",
        read: |bytes, params| Ok((Grf::read(bytes)?.task_dag(params.scale)?, String::new())),
        is_line: |text| {
            let is_value = |value: &str| value.starts_with('"') || value.parse::<i64>().is_ok();
            text.starts_with('<') && text.ends_with('>')
                || text.split_once(' ').is_some_and(|(key, value)| !is_value(key) && is_value(value.trim()))
        },
    },
    Reader {
        format: GraphFormat::Dot,
        name: "DOT",
        recognises: |word, _| ["strict", "digraph", "graph"].contains(&word),
        read: read_dot,
        is_line: dot::is_line,
    },
    Reader {
        format: GraphFormat::Stg,
        name: "a file of the Standard Task Graph Set",
        recognises: |word, _| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit()),
        read: |bytes, params| Ok((stg::read(bytes, params.scale)?, String::new())),
        is_line: |text| text.split_whitespace().all(|word| word.parse::<f64>().is_ok()),
    },
    Reader {
        format: GraphFormat::Wfformat,
        name: "WfFormat",
        recognises: |word, rest| word.is_empty() && rest.starts_with(b"{"),
        read: |bytes, params| Ok((wfformat::read(bytes, params.scale)?, String::new())),
        is_line: |_| false,
    },
];

fn read_dot(bytes: &[u8], params: &ImportParams) -> Result<Imported, FileError> {
    let ImportParams { scale, node_weight, edge_weight, .. } = params.clone();
    let Dot { dag, node_weight, edge_weight } =
        Dot::read(bytes, &DotOptions { node_weight, edge_weight, scale })?;
    let edges = match edge_weight {
        Some(name) => format!("messages are `{name}` of edges"),
        None => "messages are empty".to_owned(),
    };
    Ok((dag, format!(", work is `{node_weight}` of nodes, {edges}")))
}

fn reader(format: GraphFormat) -> &'static Reader {
    READERS.iter().find(|reader| reader.format == format).unwrap_or(&READERS[0])
}

/// The format of a task graph by its contents, otherwise a description of the contents if they are known.
pub fn recognise(bytes: &[u8]) -> Result<GraphFormat, Option<&'static str>> {
    let mut rest = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    loop {
        rest = rest.trim_ascii_start();
        // Skips comments of PARUS and DOT.
        let end = if rest.starts_with(b"//") || rest.starts_with(b"#") {
            rest.iter().position(|&byte| byte == b'\n')
        } else if rest.starts_with(b"/*") {
            rest.windows(2).skip(2).position(|pair| pair == b"*/").map(|end| end + 4)
        } else {
            break;
        };
        rest = &rest[end.ok_or(None)?..];
    }
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'<' | b'_' | b'>' | b'.');
    let word = &rest[..rest.iter().position(|byte| !is_word(byte)).unwrap_or(rest.len())];
    let word = String::from_utf8_lossy(word).to_ascii_lowercase();
    let reader = READERS.iter().find(|reader| (reader.recognises)(&word, rest));
    reader.map(|reader| reader.format).ok_or(match word.as_str() {
        "<schedule_begin>" => Some("it is a schedule of PARUS"),
        "processors" => Some("it contains measurements of PARUS"),
        _ => None,
    })
}

/// Whether the parameters are consistent.
pub(crate) fn check(params: &ImportParams) -> Result<(), Error> {
    let scale = params.scale;
    require(scale.is_finite() && scale > 0.0, "scale", scale, "above 0, such as 1000")?;
    params.format.map_or(Ok(()), |format| check_attributes(params, format))
}

fn check_attributes(params: &ImportParams, format: GraphFormat) -> Result<(), Error> {
    let named = [("node_weight", &params.node_weight), ("edge_weight", &params.edge_weight)];
    match named.into_iter().find(|(_, attribute)| attribute.is_some()) {
        Some((parameter, _)) if format != GraphFormat::Dot => {
            let problem = format!("`{parameter}` names an attribute, but {} has none", reader(format).name);
            invalid(problem, "omit it: only DOT has attributes")
        }
        _ => Ok(()),
    }
}

/// Reads the task graph in a file, in the given or detected format.
pub fn read_graph(params: &ImportParams, cx: &Context<'_>) -> Result<TaskDag, Error> {
    let (dag, note) = graph_of(params)?;
    if let Some(foreign) = foreign_lines(params.path.path()).filter(|_| !note.starts_with("WfFormat")) {
        cx.log(format_args!("warning: {foreign}"));
    }
    let (tasks, dependencies) = (dag.tasks.len(), dag.dependencies.len());
    cx.log(format_args!("{note}: {tasks} tasks, {dependencies} dependencies"));
    Ok(dag)
}

fn graph_of(params: &ImportParams) -> Result<Imported, Error> {
    check(params)?;
    let path = params.path.path();
    let bytes = hopmap_text::read(path, MOST_BYTES)?;
    // JSON has texts of its own. Elsewhere, bytes that are not UTF-8 occur in names and comments.
    if bytes.trim_ascii_start().starts_with(b"{") {
        return parse(&bytes, format_of(&bytes, params)?, params);
    }
    let text = String::from_utf8_lossy(&bytes);
    of_text(&text, params).map_err(|error| {
        let prefix = prefix_of_lines(&text, |text, _| of_text(text, params).is_ok());
        prefix.map_or(error, |prefix| prefix.of_all(&text, "").in_file(path).into())
    })
}

/// The graph in a text, of which lines of other programs are no part.
fn of_text(text: &str, params: &ImportParams) -> Result<Imported, Error> {
    let path = params.path.path();
    let in_file = |error: FileError| error.in_file(path);
    let own = rows_without_foreign(text, &Rows::ANY).map_err(in_file)?;
    let format = format_of(own.as_bytes(), params)?;
    // A line that is lost could be one of this format.
    rows_without_foreign(text, &Rows::like(reader(format).is_line)).map_err(in_file)?;
    parse(own.as_bytes(), format, params)
}

fn format_of(bytes: &[u8], params: &ImportParams) -> Result<GraphFormat, Error> {
    let found = match params.format.map_or_else(|| recognise(bytes), Ok) {
        Ok(format) => return Ok(format),
        Err(found) => found.or(bytes.trim_ascii().is_empty().then_some("it is empty")),
    };
    let found = found.map(|found| format!(": {found}")).unwrap_or_default();
    invalid(
        format!("`{}` is not a task graph in a supported format{found}", params.path.path().display()),
        "a graph of PARUS starts with `<GRAPH_BEGIN>`, DOT with `digraph`, a file of the STG set with a number, and WfFormat is JSON",
    )
}

fn parse(bytes: &[u8], format: GraphFormat, params: &ImportParams) -> Result<Imported, Error> {
    check_attributes(params, format)?;
    let Reader { name, read, .. } = reader(format);
    let (dag, more) = read(bytes, params).map_err(|error| error.in_file(params.path.path()))?;
    Ok((dag, format!("{name}{more}")))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn formats_are_detected_from_contents() {
        let graph = Ok;
        let known = |text: &str| recognise(text.as_bytes());
        assert_eq!(known("// a\n/* b */ <graph_begin>\n"), graph(GraphFormat::Parus));
        assert_eq!(known("\u{feff}# a\nStrict digraph"), graph(GraphFormat::Dot));
        assert_eq!(
            (known("digraph{"), known("graph G {")),
            (graph(GraphFormat::Dot), graph(GraphFormat::Dot))
        );
        assert_eq!((known("   50\n"), known("1")), (graph(GraphFormat::Stg), graph(GraphFormat::Stg)));
        assert_eq!(known("\n{"), graph(GraphFormat::Wfformat));
        assert!(matches!(known("<SCHEDULE_BEGIN>\n"), Err(Some(_))));
        assert!(
            ["", "//", "/* *", "#", "digraphs", "1.5", "[]", "x"].iter().all(|text| known(text) == Err(None))
        );
    }

    fn error(params: &ImportParams) -> String {
        graph_of(params).unwrap_err().to_string()
    }

    /// Once such a line was one of another program, and its task or edge was lost.
    #[test]
    fn no_line_is_lost_behind_a_prefix() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let params = ImportParams::of(file.path());
        let parus = "../../sample-schedules/cholesky-5/graph.grf";
        for text in [
            "digraph {\na [Weight=1]\nb [Weight=2]\na -> b [cost=1]\n}\n".to_owned(),
            "1\n0 0 0\n1 5 1 0\n2 0 1 1\n".to_owned(),
            fs::read_to_string(parus).unwrap(),
        ] {
            let graph = |text: &str| {
                fs::write(file.path(), text).unwrap();
                graph_of(&params).map(|(dag, _)| dag)
            };
            let whole = graph(&text).unwrap();
            for prefix in hopmap_test_support::PREFIXES {
                let with = |only| hopmap_test_support::with_prefix(&text, prefix, only);
                let error = graph(&with(None)).unwrap_err();
                assert!(error.to_string().contains(prefix.trim()), "{error}");
                for line in 0..text.lines().count().min(60) {
                    let read = graph(&with(Some(line)));
                    assert!(read.is_err() || read.is_ok_and(|dag| dag == whole), "{prefix} {line}");
                }
            }
        }
    }

    #[test]
    fn files_are_read_in_their_format() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let params = ImportParams::of(file.path());
        let path = file.path().display();
        fs::write(file.path(), "digraph { a [Weight=1] b [Weight=2]\na -> b [cost=0.5] }").unwrap();
        let malformed = format!("{path}:2: `cost` of edge `a` -> `b` is `0.5`, which is not an integer");
        assert_eq!(error(&params), malformed);
        let (dag, note) = graph_of(&ImportParams { scale: 10.0, ..params.clone() }).unwrap();
        assert_eq!((dag.tasks.len(), dag.dependencies[0].bytes), (2, 5));
        assert_eq!(note, "DOT, work is `Weight` of nodes, messages are `cost` of edges");
        assert_eq!(error(&ImportParams { scale: 0.0, ..params.clone() }), "`scale` = 0 is out of range");
        let stg = ImportParams { format: Some(GraphFormat::Stg), ..params.clone() };
        assert!(error(&stg).starts_with(&format!("{path}:1:1: ")));
        let named = ImportParams { node_weight: Some("label".into()), ..stg };
        assert!(error(&named).starts_with("`node_weight` names an attribute, but a file of the Standard"));
        // Lines of other programs keep their numbers, and names need not be UTF-8.
        fs::write(
            file.path(),
            b"srun: warning: x\ndigraph { a [Weight=1, label=\"caf\xe9\"]\nb [Weight=x] }",
        )
        .unwrap();
        assert!(error(&params).starts_with(&format!("{path}:3: ")), "{}", error(&params));
        fs::write(
            file.path(),
            b"warning: port is down\n1\n0 0 0\nsrun: warning: late\n1 5 1 0\n2 0 1 1\n# caf\xe9\n",
        )
        .unwrap();
        assert_eq!(graph_of(&params).unwrap().0.dependencies.len(), 2);
        fs::write(file.path(), "<SCHEDULE_BEGIN>").unwrap();
        assert!(error(&params).ends_with("supported format: it is a schedule of PARUS"));
        fs::write(file.path(), " \n").unwrap();
        assert!(error(&params).ends_with("supported format: it is empty"));
        fs::write(file.path(), "x").unwrap();
        assert!(error(&params).ends_with("supported format"));
        assert!(error(&ImportParams::of("/nowhere/at/all")).starts_with("/nowhere/at/all: cannot be read: "));
        assert!(
            error(&ImportParams::of(std::env::temp_dir()))
                .ends_with(": cannot be read: it is a folder, not a file")
        );
    }
}
