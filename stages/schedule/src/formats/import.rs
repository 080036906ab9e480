//! A task graph from a file of any format.

use hopmap_model::{Context, Error, TaskDag};
use hopmap_text::FileError;

use super::dot::{Dot, DotOptions};
use super::grf::Grf;
use super::{stg, wfformat};
use crate::{GraphFormat, ImportError, ImportParams};

/// Bytes of a file that are read.
pub(crate) const MOST_BYTES: u64 = 1 << 30;

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GraphFile {
    /// A task graph.
    Graph(GraphFormat),
    /// Something else that is known.
    Other(&'static str),
}

impl GraphFormat {
    /// What people call it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Parus => "a graph of PARUS",
            Self::Dot => "DOT",
            Self::Stg => "a file of the Standard Task Graph Set",
            Self::Wfformat => "WfFormat",
        }
    }
}

impl GraphFile {
    /// What contents look like.
    #[must_use]
    pub fn recognise(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        loop {
            rest = rest.trim_ascii_start();
            // Comments of PARUS and of DOT, and lines for people.
            let end = if rest.starts_with(b"//") || rest.starts_with(b"#") {
                rest.iter().position(|&byte| byte == b'\n')?
            } else if rest.starts_with(b"/*") {
                rest.windows(2).skip(2).position(|pair| pair == b"*/")? + 4
            } else {
                break;
            };
            rest = &rest[end..];
        }
        let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'<' | b'_' | b'>' | b'.');
        let word = &rest[..rest.iter().position(|byte| !is_word(byte)).unwrap_or(rest.len())];
        let is = |known: &str| word.eq_ignore_ascii_case(known.as_bytes());
        match word.first() {
            None if rest.starts_with(b"{") => Some(Self::Graph(GraphFormat::Wfformat)),
            _ if is("<GRAPH_BEGIN>") => Some(Self::Graph(GraphFormat::Parus)),
            _ if is("strict") || is("digraph") || is("graph") => Some(Self::Graph(GraphFormat::Dot)),
            _ if is("<SCHEDULE_BEGIN>") => Some(Self::Other("it is a schedule of PARUS")),
            _ if is("processors") => Some(Self::Other("it says what PARUS measured")),
            Some(b'0'..=b'9') if word.iter().all(u8::is_ascii_digit) => Some(Self::Graph(GraphFormat::Stg)),
            _ => None,
        }
    }
}

/// Whether parameters go together.
pub(crate) fn check(params: &ImportParams) -> Result<(), ImportError> {
    let scale = params.scale;
    if !(scale.is_finite() && scale > 0.0) {
        return Err(ImportError::Scale { scale });
    }
    match params.format {
        Some(format) => check_attributes(params, format),
        None => Ok(()),
    }
}

fn check_attributes(params: &ImportParams, format: GraphFormat) -> Result<(), ImportError> {
    let named = [("node_weight", &params.node_weight), ("edge_weight", &params.edge_weight)];
    match named.into_iter().find(|(_, attribute)| attribute.is_some()) {
        Some((parameter, _)) if format != GraphFormat::Dot => {
            Err(ImportError::NoAttributes { parameter, format: format.name() })
        }
        _ => Ok(()),
    }
}

/// The task graph in a file, in the format that is named or that its contents look like.
pub fn read_graph(params: &ImportParams, cx: &Context<'_>) -> Result<TaskDag, Error> {
    let (dag, said) = graph_of(params)?;
    let (tasks, dependencies) = (dag.tasks.len(), dag.dependencies.len());
    cx.log(format_args!("{said}: {tasks} tasks, {dependencies} dependencies"));
    Ok(dag)
}

fn graph_of(params: &ImportParams) -> Result<(TaskDag, String), ImportError> {
    check(params)?;
    let path = params.file.path();
    let bytes = hopmap_text::read(path, MOST_BYTES)?;
    let format = match (params.format, GraphFile::recognise(&bytes)) {
        (Some(format), _) | (None, Some(GraphFile::Graph(format))) => format,
        (None, Some(GraphFile::Other(found))) => {
            return Err(ImportError::Unknown { path: path.into(), found: Some(found) });
        }
        (None, None) => {
            let found = bytes.trim_ascii().is_empty().then_some("it is empty");
            return Err(ImportError::Unknown { path: path.into(), found });
        }
    };
    check_attributes(params, format)?;
    Ok(read(&bytes, format, params).map_err(|error| error.in_file(path))?)
}

/// The graph, and what the log says of it.
fn read(bytes: &[u8], format: GraphFormat, params: &ImportParams) -> Result<(TaskDag, String), FileError> {
    let name = format.name();
    let dag = match format {
        GraphFormat::Parus => Grf::read(bytes)?.task_dag(params.scale)?,
        GraphFormat::Stg => stg::read(bytes)?,
        GraphFormat::Wfformat => wfformat::read(bytes, params.scale)?,
        GraphFormat::Dot => {
            let ImportParams { scale, node_weight, edge_weight, .. } = params.clone();
            let dot = Dot::read(bytes, &DotOptions { node_weight, edge_weight, scale })?;
            let edges = match &dot.edge_weight {
                Some(name) => format!("messages are `{name}` of edges"),
                None => "messages are empty".to_owned(),
            };
            return Ok((dot.dag, format!("{name}, work is `{}` of nodes, {edges}", dot.node_weight)));
        }
    };
    Ok((dag, name.to_owned()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn formats_are_known_by_their_contents() {
        let graph = |format| Some(GraphFile::Graph(format));
        let known = |text: &str| GraphFile::recognise(text.as_bytes());
        assert_eq!(known("// a\n/* b */ <graph_begin>\n"), graph(GraphFormat::Parus));
        assert_eq!(known("\u{feff}# a\nStrict digraph"), graph(GraphFormat::Dot));
        assert_eq!(
            (known("digraph{"), known("graph G {")),
            (graph(GraphFormat::Dot), graph(GraphFormat::Dot))
        );
        assert_eq!((known("   50\n"), known("1")), (graph(GraphFormat::Stg), graph(GraphFormat::Stg)));
        assert_eq!(known("\n{"), graph(GraphFormat::Wfformat));
        assert!(matches!(known("<SCHEDULE_BEGIN>\n"), Some(GraphFile::Other(_))));
        assert!(
            ["", "//", "/* *", "#", "digraphs", "1.5", "[]", "x"].iter().all(|text| known(text).is_none())
        );
    }

    fn error(params: &ImportParams) -> String {
        graph_of(params).unwrap_err().to_string()
    }

    #[test]
    fn files_are_read_as_what_they_are() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let params = ImportParams::of(file.path());
        let path = file.path().display();
        fs::write(file.path(), "digraph { a [Weight=1] b [Weight=2]\na -> b [cost=0.5] }").unwrap();
        let malformed = format!("{path}:2: `cost` of edge `a` -> `b` is `0.5`, which is not whole");
        assert_eq!(error(&params), malformed);
        let (dag, said) = graph_of(&ImportParams { scale: 10.0, ..params.clone() }).unwrap();
        assert_eq!((dag.tasks.len(), dag.dependencies[0].bytes), (2, 5));
        assert_eq!(said, "DOT, work is `Weight` of nodes, messages are `cost` of edges");
        assert_eq!(error(&ImportParams { scale: 0.0, ..params.clone() }), "`scale` is 0");
        let stg = ImportParams { format: Some(GraphFormat::Stg), ..params.clone() };
        assert!(error(&stg).starts_with(&format!("{path}:1:1: ")));
        let named = ImportParams { node_weight: Some("label".into()), ..stg };
        assert!(error(&named).starts_with("`node_weight` names an attribute, but a file of the Standard"));
        fs::write(file.path(), "<SCHEDULE_BEGIN>").unwrap();
        assert!(error(&params).ends_with("known here: it is a schedule of PARUS"));
        fs::write(file.path(), " \n").unwrap();
        assert!(error(&params).ends_with("known here: it is empty"));
        fs::write(file.path(), "x").unwrap();
        assert!(error(&params).ends_with("known here"));
        assert!(error(&ImportParams::of("/nowhere/at/all")).starts_with("/nowhere/at/all: cannot be read: "));
        assert!(
            error(&ImportParams::of(std::env::temp_dir()))
                .ends_with(": cannot be read: it is a folder, not a file")
        );
    }
}
