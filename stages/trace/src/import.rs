//! Imports traces and matrices of other tools. The format is recognised by its contents.
//!
//! To add a format, write a module with a [`Reader`] and add a line to the table of [`Format`].

mod clog2;
mod csv_matrix;
mod dense_matrix;
mod foreign;
mod hopmap_record;
mod ipm;
pub(crate) mod matrix_market;
mod openmpi_monitoring;
mod otf;
mod paraver;
mod reader;
mod simgrid;
mod task_graph;
mod tau;
#[cfg(feature = "training")]
mod training;
#[cfg(not(feature = "training"))]
#[path = "import/without_training.rs"]
mod training;

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use hopmap_model::{Context, Error, InputPath, OutOfRange, Process, Program, TaskGraph, require};
use hopmap_text::{encoded, entries, head, is_foreign, prefix_of_lines, row_behind, shown};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::archive::check_kind;
use crate::error::TraceError;
use crate::matrix::MAX_RANKS;
use crate::otf2;
use crate::params::{Algorithms, Collectives, ProgramFormat, ProgramParams};
use foreign::{Foreign, SYMMETRISED, foreign, foreign_folder, is_symmetrised};
use reader::{Reader, Sample};

pub(crate) use reader::Options;

/// What to do about a file without content.
const EMPTY: &str = "the program that should write it may have failed: see its messages";

/// Foreign lines before a file that are looked behind.
const MOST_FOREIGN: usize = 50;
/// Bytes that are looked at behind each of them.
const LOOKED_BEHIND: usize = 1 << 13;

/// Defines [`Format`] from a table of formats with names and readers.
macro_rules! formats {
    ($($(#[$doc:meta])* $format:ident, $name:literal, $reader:expr;)*) => {
        /// Format of the input.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
        pub enum Format {
            /// Recognised from the contents.
            #[default]
            #[serde(rename = "auto")]
            Auto,
            $($(#[$doc])* #[serde(rename = $name)] $format,)*
        }

        impl Format {
            /// All values of the parameter.
            pub const ALL: &'static [Self] = &[Self::Auto, $(Self::$format),*];

            /// Name in parameters.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    Self::Auto => "auto",
                    $(Self::$format => $name,)*
                }
            }

            fn reader(self) -> Option<&'static Reader> {
                match self {
                    Self::Auto => None,
                    $(Self::$format => Some(&$reader),)*
                }
            }
        }
    };
}

formats! {
    /// Chakra execution traces of a training job: the folder of `NAME.RANK.et`, optionally packed, with
    /// `comm_group.json`.
    Chakra, "chakra", training::CHAKRA;
    /// A CLOG-2 file of MPE.
    Clog2, "clog2", clog2::READER;
    /// A header `source,destination,messages,bytes`, then one line per pair. Lines that begin with `#` are
    /// comments. Repeated pairs are added up.
    Csv, "csv", csv_matrix::READER;
    /// A square matrix as text: a line per sender with the bytes to every receiver, separated by commas, semicolons,
    /// tabs or blanks, with or without names of columns and rows.
    DenseMatrix, "dense-matrix", dense_matrix::READER;
    /// Dumps of PyTorch's flight recorder in JSON: the folder of files whose names end in the rank.
    FlightRecorder, "flight-recorder", training::FLIGHT_RECORDER;
    /// A recording: the folder that `hopmap record` wrote.
    HopmapRecord, "hopmap-record", hopmap_record::READER;
    /// An XML report of IPM, made with `IPM_REPORT=full` and `IPM_LOG=full`.
    Ipm, "ipm", ipm::READER;
    /// Traces of PyTorch's profiler (Kineto) in JSON, optionally packed: the folder with one per rank.
    Kineto, "kineto", training::KINETO;
    /// Matrix Market coordinates: bytes from row to column, counted from one. `symmetric` counts in both
    /// directions.
    MatrixMarket, "matrix-market", matrix_market::READER;
    /// Records of the Inspector of NCCL or RCCL in JSON lines, optionally packed: their folder, or a file.
    NcclInspector, "nccl-inspector", training::INSPECTOR;
    /// Profiles of Open MPI's monitoring, `PREFIX.RANK.prof`: their folder, or their prefix.
    OpenmpiMonitoring, "openmpi-monitoring", openmpi_monitoring::READER;
    /// An OTF 1 archive, read with the defaults of `trace/otf`.
    Otf, "otf", otf::OTF1;
    /// An OTF2 archive, read with the defaults of `trace/otf2`.
    Otf2, "otf2", otf::OTF2;
    /// A Paraver trace (`.prv`) of Extrae.
    Paraver, "paraver", paraver::READER;
    /// A time-independent trace of SimGrid: a file of actions, or an index of such files.
    Simgrid, "simgrid", simgrid::READER;
    /// Like `simgrid`, with tags in messages (SimGrid 3.20 and later), if hopmap cannot infer it.
    SimgridTagged, "simgrid-tagged", simgrid::TAGGED;
    /// Like `simgrid`, without tags in messages.
    SimgridUntagged, "simgrid-untagged", simgrid::UNTAGGED;
    /// A task graph that hopmap has stored in a folder.
    TaskGraph, "task-graph", task_graph::READER;
    /// The profiles of TAU in a folder, recorded with `TAU_COMM_MATRIX=1`.
    Tau, "tau", tau::READER;
}

/// Parameters of `trace/import`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ImportParams {
    /// The file, or the folder of a recording, an archive, profiles or a stored task graph.
    pub path: InputPath,
    /// Format of the file. `auto` recognises it by its contents, not by its name.
    #[serde(default)]
    pub format: Format,
    /// Number of ranks. The default is the number in the file, or its highest rank plus one. Additional
    /// ranks do not communicate.
    #[serde(default)]
    pub ranks: Option<u32>,
    /// Ranks per host, for files that do not name hosts: consecutive ranks share a host, such as the GPUs of a
    /// training job. `blocks = "host"` of the mappers keeps them together.
    #[serde(default)]
    pub ranks_per_host: Option<NonZeroU32>,
    /// Whether collective operations of recordings and OTF2 archives count, as in `trace/otf2`: `expand`,
    /// `keep` or `ignore`. Open MPI's monitoring counts the messages that they really sent; these count with
    /// `expand`.
    #[serde(default)]
    pub collectives: Collectives,
    /// Algorithms for expanding operations, as in `trace/otf2`. Traces of training jobs follow the rules of NCCL.
    #[serde(default)]
    pub algorithms: Algorithms,
    /// Uses what is before the end of a log that was cut, with a warning instead of an error: OTF2 archives, as in
    /// `trace/otf2`, and files of CLOG-2, NCCL's Inspector, Paraver and SimGrid.
    #[serde(default)]
    pub allow_truncated: bool,
}

impl ImportParams {
    /// Parameters that read a file and recognise its format.
    #[must_use]
    pub fn new(path: InputPath) -> Self {
        let (format, ranks, ranks_per_host, collectives, algorithms) = Default::default();
        Self { path, format, ranks, ranks_per_host, collectives, algorithms, allow_truncated: false }
    }
}

/// All files behind a path, under the names that keys use.
pub(crate) fn files(path: &Path, format: Format) -> Result<Vec<InputPath>, TraceError> {
    let (_, reader) = resolve(path, format)?;
    (reader.files)(path)
}

/// Reads a file, or a folder of files: messages and bytes per ordered pair of processes.
pub(crate) fn read(
    path: &Path,
    format: Format,
    options: Options,
    cx: &Context<'_>,
) -> Result<TaskGraph, Error> {
    let (resolved, reader) = resolve(path, format)?;
    // Archives and our own folders are what they are; files of other tools only look like one.
    let is_certain = matches!(
        resolved,
        Format::Chakra | Format::HopmapRecord | Format::Otf | Format::Otf2 | Format::TaskGraph
    );
    if format == Format::Auto && !is_certain {
        cx.log(format_args!("format: {}", resolved.name()));
    }
    let graph = (reader.read)(path, options, cx).or_else(|error| unless_prefixed(error, path, cx))?;
    let graph = with_ranks(graph, options.ranks, path)?;
    Ok(with_hosts(graph, options.ranks_per_host))
}

/// The error of a reader, unless the cause is what is before every line of a file.
fn unless_prefixed<T>(error: Error, path: &Path, cx: &Context<'_>) -> Result<T, Error> {
    if !cx.should_stop() {
        check_prefix(path)?;
        check_document(path)?;
    }
    Err(error)
}

/// All files that the operations of a trace are read from.
pub(crate) fn program_files(path: &Path, format: ProgramFormat) -> Result<Vec<InputPath>, TraceError> {
    match resolve(path, format.import())? {
        (Format::HopmapRecord, _) => hopmap_record::event_files(path),
        (_, reader) => (reader.files)(path),
    }
}

/// Reads the operations of a trace.
pub(crate) fn program(path: &Path, params: &ProgramParams, cx: &Context<'_>) -> Result<Program, Error> {
    operations(path, params, cx).or_else(|error| unless_prefixed(error, path, cx))
}

fn operations(path: &Path, params: &ProgramParams, cx: &Context<'_>) -> Result<Program, Error> {
    let format = params.format.import();
    let (resolved, _) = resolve(path, format)?;
    let tags = match resolved {
        Format::Otf2 => return otf2::program(path, params, cx),
        Format::HopmapRecord => return hopmap_record::program(path, params, cx),
        Format::Chakra => return training::chakra_program(path, cx),
        Format::Kineto => return training::kineto_program(path, cx),
        Format::Simgrid => None,
        Format::SimgridTagged => Some(true),
        Format::SimgridUntagged => Some(false),
        other => {
            let problem = format!("has the format `{}`, which lacks the order of messages", other.name());
            let help = "`trace/program` reads recordings of `hopmap record --events`, OTF2 archives, time-independent traces of SimGrid, and traces of training jobs by Chakra and PyTorch's profiler";
            return Err(TraceError::of(path, problem, help).into());
        }
    };
    if format == Format::Auto {
        cx.log(format_args!("format: {}", resolved.name()));
    }
    let (builder, leaves_out) =
        simgrid::read_program(path, tags, (params.flops_per_s, params.allow_truncated), cx)?;
    let program = builder.finish().map_err(|error| {
        let problem = format!("the actions in `{}` are inconsistent: {error}", path.display());
        TraceError::refused(problem, simgrid::UNMATCHED)
    })?;
    Ok(Program { is_approximate: leaves_out, ..program })
}

impl ProgramFormat {
    /// The format of `trace/import`.
    pub(crate) fn import(self) -> Format {
        match self {
            Self::Auto => Format::Auto,
            Self::Chakra => Format::Chakra,
            Self::HopmapRecord => Format::HopmapRecord,
            Self::Kineto => Format::Kineto,
            Self::Otf2 => Format::Otf2,
            Self::Simgrid => Format::Simgrid,
            Self::SimgridTagged => Format::SimgridTagged,
            Self::SimgridUntagged => Format::SimgridUntagged,
        }
    }
}

/// Checks that do not depend on the file.
pub(crate) fn check(ranks: Option<u32>) -> Result<(), OutOfRange> {
    let ranks = ranks.unwrap_or(1);
    require((1..=MAX_RANKS).contains(&ranks), "ranks", ranks, format!("1 to {MAX_RANKS}"))
}

/// The graph with the requested number of ranks; added ranks do not communicate.
fn with_ranks(mut graph: TaskGraph, ranks: Option<u32>, path: &Path) -> Result<TaskGraph, TraceError> {
    if let Some(ranks) = ranks {
        if graph.ranks() > ranks as usize {
            let found = graph.ranks();
            let problem = format!("has {found} ranks, but `ranks` = {ranks}");
            return Err(TraceError::of(path, problem, ""));
        }
        graph.processes.resize(ranks as usize, Process::default());
        graph.phases.iter_mut().for_each(|phase| phase.compute_s.resize(ranks as usize, None));
    }
    Ok(graph)
}

/// Names the hosts of consecutive ranks where the file does not.
fn with_hosts(mut graph: TaskGraph, ranks_per_host: Option<NonZeroU32>) -> TaskGraph {
    if let Some(ranks_per_host) = ranks_per_host {
        for (rank, process) in (0..).zip(&mut graph.processes) {
            process.host.get_or_insert_with(|| format!("host{}", rank / ranks_per_host.get()));
        }
    }
    graph
}

/// The format and its reader, recognised from the contents with `auto`.
fn resolve(path: &Path, format: Format) -> Result<(Format, &'static Reader), TraceError> {
    if let Some(reader) = format.reader() {
        check_contents(path, (format, reader))?;
        return Ok((format, reader));
    }
    let sample = Sample::new(path)?;
    let refuse = |Foreign { what, why, instead }: Foreign| {
        Err(TraceError::of(path, format!("is {what}: {why}"), instead))
    };
    // Text and traces of training jobs are unpacked while they are read.
    if sample.is_packed {
        check_prefix(path)?;
        if let Some(known) = known(&sample) {
            return Ok(known);
        }
    }
    if sample.is_packed && sample.is_empty() {
        return Err(TraceError::of(path, "is a packed file without content", EMPTY));
    }
    if let Some(foreign) = foreign(&sample.head).or_else(|| is_symmetrised(&sample).then_some(SYMMETRISED)) {
        return refuse(foreign);
    }
    if !sample.is_folder {
        check_prefix(path)?;
        check_begin(&sample)?;
    }
    if let Some(known) = known(&sample) {
        return Ok(known);
    }
    check_prefix(path)?;
    check_kind(path)?;
    if let Some(foreign) = if sample.is_folder { foreign_folder(path)? } else { None } {
        return refuse(foreign);
    }
    let is_said = |line: &str| !line.trim().is_empty() && !line.trim_start().starts_with(['#', '%']);
    if !sample.is_folder && sample.is_whole && !sample.text.lines().any(is_said) {
        let head = String::from_utf8_lossy(&sample.head);
        let first = head.lines().find(|line| !line.trim().is_empty());
        let what =
            if sample.text.trim().is_empty() { "lines of other programs" } else { "comments and messages" };
        let only = |first: &str| format!("has only {what}, the first `{}`", shown(first.trim()));
        return Err(TraceError::of(path, first.map_or_else(|| "is empty".to_owned(), only), EMPTY));
    }
    let doubtful = |name: &str, (line, problem): (usize, String), help: &str| {
        let problem = format!("has an unknown format; as {name}, line {line} is wrong: {problem}");
        TraceError::of(path, problem, help)
    };
    if let Some(doubt) = simgrid::doubt(&sample) {
        return Err(doubtful("an index of `simgrid`", doubt, simgrid::HINT));
    }
    if let Some((line, first, format)) = nearest(&sample) {
        let before = sample.text.lines().take(line - 1);
        if let Some(reader) = format.reader()
            && before.filter(|line| !line.trim().is_empty()).all(|line| (reader.rows.is_other)(line))
        {
            return Ok((format, reader));
        }
        let problem = format!("has an unknown format, but is `{}` from line {line} on", format.name());
        let help = format!("delete what is before that line: `{}`", shown(first));
        return Err(TraceError::of(path, problem, help));
    }
    if let Some(doubt) = dense_matrix::judged(&sample).and_then(Result::err) {
        return Err(doubtful("a `dense-matrix`", doubt, dense_matrix::HELP_ON_DOUBT));
    }
    if let Some(error) = encoded(&sample.head) {
        return Err(error.in_file(path).into());
    }
    let names: Vec<&str> = Format::ALL[1..].iter().map(|format| format.name()).collect();
    let help = format!("supported formats: {}; set one with `format`", names.join(", "));
    Err(TraceError::of(path, "has an unknown format", help))
}

/// Refuses a format of training jobs if the contents are those of another format: most of their keys are optional, so
/// that a file of another format would be read as a trace without operations.
fn check_contents(path: &Path, (format, reader): (Format, &Reader)) -> Result<(), TraceError> {
    let training = [Format::Chakra, Format::FlightRecorder, Format::Kineto, Format::NcclInspector];
    if !training.contains(&format) {
        return Ok(());
    }
    let sample = Sample::new(path)?;
    match known(&sample).filter(|_| !(reader.recognises)(&sample)) {
        Some((found, _)) => {
            let problem = format!("has the format `{}`, not `{}`", found.name(), format.name());
            Err(TraceError::of(path, problem, "leave `format` out, or set the right one"))
        }
        None => Ok(()),
    }
}

fn known(sample: &Sample<'_>) -> Option<(Format, &'static Reader)> {
    let readers = Format::ALL.iter().filter_map(|format| Some((*format, format.reader()?)));
    readers.into_iter().find(|(_, reader)| (reader.recognises)(sample))
}

/// Lines before a known text format, such as the warnings of another program: the line where it begins, the first line,
/// and the format.
fn nearest<'s>(sample: &'s Sample<'_>) -> Option<(usize, &'s str, Format)> {
    let ends = sample.text.match_indices('\n').map(|(end, _)| end + 1).take(MOST_FOREIGN).zip(2..);
    let is_blank = |end: usize| sample.text[end..].starts_with(['\n', '\r']);
    ends.filter(|(end, _)| !is_blank(*end)).find_map(|(end, line)| {
        // A begin is short, and each line is looked at for messages.
        let rest = &sample.text[end..];
        let rest = &rest[..rest.floor_char_boundary(LOOKED_BEHIND)];
        let rest = Sample::of(sample.path, sample.is_folder, rest.as_bytes().to_vec());
        // Rows of numbers may be the rest of any file.
        let known = known(&rest).filter(|(format, _)| *format != Format::DenseMatrix);
        known.map(|(format, _)| (line, sample.text.lines().next().unwrap_or_default(), format))
    })
}

/// Lines before the begin of a file, files of a folder that are looked at, levels of folders in it, and bytes of a file.
const FIRST_LINES: usize = 50;
const FIRST_FILES: usize = 8;
const LEVELS: usize = 2;
const FIRST_BYTES: u64 = 1 << 16;

/// The format of a text that begins with a row of it, whatever its path has.
fn format_of(text: &str) -> Option<Format> {
    let sample = Sample::of(Path::new(""), false, text.as_bytes().to_vec());
    let begins = |reader: &Reader| sample.first_line().is_some_and(reader.rows.is_row);
    known(&sample).filter(|(_, reader)| begins(reader)).map(|(format, _)| format)
}

/// Refuses a file whose begin is behind a prefix, so that the rest may look like another format.
fn check_begin(sample: &Sample<'_>) -> Result<(), TraceError> {
    let is_begin = |text: &str| format_of(text).is_some_and(|format| format != Format::DenseMatrix);
    let head = String::from_utf8_lossy(&sample.head);
    let lines = (1..).zip(head.lines()).filter(|(_, line)| !line.trim().is_empty()).take(FIRST_LINES);
    for (number, line) in lines.take_while(|(_, line)| is_foreign(line)) {
        if let Some((prefix, row)) = row_behind(line, is_begin) {
            return Err(prefix.error(number, row).in_file(sample.path).into());
        }
    }
    Ok(())
}

/// Refuses a file, or one of the first of a folder, that has a known format without what is before every line.
fn check_prefix(path: &Path) -> Result<(), TraceError> {
    for file in first_files(path, LEVELS) {
        let bytes = head(&file, FIRST_BYTES).unwrap_or_default();
        let mut found = None;
        let is_known = |text: &str, says_nothing: bool| {
            // Rows of numbers may have a name each.
            found = format_of(text).filter(|format| *format != Format::DenseMatrix || says_nothing);
            let first = text.lines().map(str::trim).find(|line| !(line.is_empty() || line.starts_with('#')));
            // A word alone may be the name of any file above.
            let is_index =
                text.lines().nth(1).is_some() && first.is_some_and(|line| simgrid::lists(&file, line));
            found = found.or(is_index.then_some(Format::Simgrid));
            let all = || Format::ALL.iter().copied();
            found = found
                .or_else(|| all().find(|format| format.reader().is_some_and(|reader| (reader.begins)(text))));
            found.is_some()
        };
        let text = String::from_utf8_lossy(&bytes);
        if let Some(prefix) = prefix_of_lines(&text, is_known)
            // The names of rows may be words and numbers.
            && !(prefix.is_words() && known(&Sample::of(&file, false, bytes.clone())).is_some())
        {
            return Err(prefix.of_all(&text, found.map_or("", Format::name)).in_file(&file).into());
        }
    }
    Ok(())
}

/// Refuses a file, or one of the first of a folder, whose document begins behind a prefix.
fn check_document(path: &Path) -> Result<(), TraceError> {
    for file in first_files(path, LEVELS) {
        let bytes = head(&file, FIRST_BYTES).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let begins = |text: &str| {
            text.starts_with('{')
                && Format::ALL
                    .iter()
                    .any(|format| format.reader().is_some_and(|reader| (reader.begins)(text)))
        };
        let first = text.trim_start();
        if !first.starts_with(['{', '['])
            && let Some((prefix, document)) = row_behind(first, begins)
        {
            let line = 1 + text[..text.len() - document.len()].matches('\n').count();
            let row = document.lines().next().unwrap_or_default();
            return Err(prefix.error(line, row).in_file(&file).into());
        }
    }
    Ok(())
}

/// The file itself, or the first ones of a folder.
fn first_files(path: &Path, levels: usize) -> Vec<PathBuf> {
    if path.is_file() {
        return vec![path.to_owned()];
    }
    let inner = entries(path).unwrap_or_default().into_iter().filter(|_| levels > 0);
    inner.flat_map(|inner| first_files(&inner, levels - 1)).take(FIRST_FILES).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_ranks_is_in_range() {
        let refused = |ranks| check(Some(ranks)).unwrap_err().to_string();
        assert!(refused(0).contains("`ranks` = 0"));
        assert!(refused(MAX_RANKS + 1).contains("`ranks` = 16777217"));
        assert!(check(Some(MAX_RANKS)).is_ok() && check(None).is_ok());
    }

    #[test]
    fn supported_formats_are_not_foreign() {
        for (head, format) in [
            ("%%MatrixMarket matrix coordinate real general\n", Some(Format::MatrixMarket)),
            ("%%matrixmarket matrix array real general\n", Some(Format::MatrixMarket)),
            ("# made by hand\n\nbytes, messages,source ,destination\n", Some(Format::Csv)),
            ("\u{feff}\"source\",\"destination\",messages,bytes\n", Some(Format::Csv)),
            ("#Paraver (12/03/2024 at 10:11):5000_ns:0:1:1(1:0)\n", Some(Format::Paraver)),
            ("# a remark\n0 init\n0 send 1 5 8\n", Some(Format::Simgrid)),
            ("3 compute 1e6\n", Some(Format::Simgrid)),
            ("<?xml version=\"1.0\"?>\n<ipm_job_profile>\n", Some(Format::Ipm)),
            ("12 templated_functions_MULTI_TIME\n", Some(Format::Tau)),
            ("\u{3}BOTF2\u{2}", Some(Format::Otf2)),
            ("1:1\n2:2\na:10002,3\n", Some(Format::Otf)),
            ("CLOG-02.44\0is_big_endian=\0TRUE \0", Some(Format::Clog2)),
            ("", None),
            ("hello, world\n", None),
        ] {
            assert!(foreign(head.as_bytes()).is_none(), "{head}");
            let sample = Sample::of(Path::new("trace"), false, head.into());
            assert_eq!(known(&sample).map(|(format, _)| format), format, "{head}");
        }
    }
}
