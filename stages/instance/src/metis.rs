//! Graphs in METIS format, which `KaHIP`, `VieM` and Scotch (through `gcv`) read as well.
//!
//! Source: Karypis, "METIS 5.1.0 – A Software Package for Partitioning Unstructured Graphs", manual, section
//! 4.5. The first line is `n m [fmt [ncon]]`: vertices, undirected edges, and three digits for the presence
//! of vertex sizes, vertex weights and edge weights. Line i after it describes vertex i:
//! `[size] [weight]… {neighbour [weight]}…`, counted from one. Lines that begin with `%` are comments.

use std::path::Path;

use hopmap_model::{Context, Edge, Process, TaskGraph};
use hopmap_text::{FileError, Rows, Words, head, is_sentence, or_prefix};

/// Maximum number of vertices.
pub(crate) const MAX_VERTICES: u64 = 1 << 24;

/// Maximum number of weights of a vertex.
const MAX_WEIGHTS: u64 = 64;

/// Bytes in which what is before every line is looked for.
const LOOKED_AT: u64 = 1 << 16;

const HINT: &str = "a METIS graph begins with `n m fmt`: vertices, undirected edges, and 1 if edges have weights; line i after \
                    it has the neighbours of vertex i, counted from one, each followed by the weight of the edge";
const ROWS: Rows = Rows {
    is_row: |text| text.split_ascii_whitespace().all(|word| word.parse::<u64>().is_ok()),
    is_other: is_sentence,
};
const JOINED: &str = "every vertex needs a line, empty if it has no neighbours; if another graph begins there, files were joined: pass each \
                      graph in a file of its own";
const ONE_SIDED: &str = "list every edge on the lines of both ends, with the same weight";
const NO_SELF_EDGE: &str =
    "METIS does not allow self-loops: remove it; it does not affect the cost of a mapping";
const FROM_ZERO: &str = "the vertices of this graph are counted from zero, but METIS counts from one";
const ADD_ONE: &str = "add 1 to every neighbour: then the file is a valid graph";
const EDGES: &str = "m counts every edge once, although it is on the lines of both ends";
const EMPTY_LINES: &str = "every vertex needs a line; without neighbours it is empty or has only its weights";
const TOO_HEAVY: &str = "weights become bytes, whose total over both directions must be below 2^64: divide them by a common \
                         factor";

/// Reads a graph, plain or compressed with gzip. Vertex i is rank i − 1; an edge of weight w is one message
/// of w bytes in each direction. The default weight of an edge is 1.
///
/// The process mapping cost J over all undirected edges is half of F, which counts both directions: F = 2 J.
pub fn read_graph(path: &Path, cx: &Context<'_>) -> Result<TaskGraph, FileError> {
    read_counted_from(1, path, cx).map_err(|error| {
        let begin = head(path, LOOKED_AT).unwrap_or_default();
        let is_graph = |text: &str, _: bool| Header::read(&mut Words::of(text.as_bytes(), HINT)).is_ok();
        let error = or_prefix(error, &begin, is_graph).in_file(path);
        // What is wrong first depends on the graph: often a vertex is its own neighbour.
        match path.is_file() && read_counted_from(0, path, &Context::detached()).is_ok() {
            true => FileError { problem: FROM_ZERO.into(), ..error }.with_help(ADD_ONE),
            false => error,
        }
    })
}

/// Reads a graph whose first vertex has this number.
fn read_counted_from(first: u64, path: &Path, cx: &Context<'_>) -> Result<TaskGraph, FileError> {
    let mut words = Words::open(path, HINT)?.with(cx).of_rows(ROWS);
    let header = Header { first, ..Header::read(&mut words)? };
    let mut rows = Vertices::default();
    while rows.lines.len() < header.vertices as usize {
        if !words.skip_lines_with(b'%')? {
            let (line, next) = (words.here(), rows.lines.len() + 1);
            let what = format!("the file ends before vertex {next} of {}", header.vertices);
            return Err(words.error_at(line, what).with_help(EMPTY_LINES));
        }
        rows.read(&mut words, &header)?;
        words.end_line()?;
    }
    nothing_follows(&mut words, &header)?;
    rows.check(&words, &header)?;
    if let Some(foreign) = words.foreign() {
        cx.log(format_args!("warning: {foreign}"));
    }
    if let Some((least, most)) = rows.vertex_weights.filter(|range| *range != (1, 1)) {
        cx.log(format_args!(
            "weights and sizes of vertices, {least} to {most}, are ignored: every rank takes one slot"
        ));
    }
    Ok(TaskGraph {
        processes: vec![Process::default(); header.vertices as usize],
        edges: rows.edges,
        ..TaskGraph::default()
    })
}

/// The first line.
struct Header {
    line: usize,
    /// Number of the first vertex.
    first: u64,
    vertices: u64,
    edges: u64,
    /// Number of sizes and weights at the start of the line of a vertex.
    vertex_weights: u64,
    edge_weights: bool,
}

impl Header {
    fn read(words: &mut Words<'_>) -> Result<Self, FileError> {
        while words.skip_lines_with(b'%')? {
            if let Some(vertices) = words.whole_in_line()? {
                let header = Self::after(vertices, words)?;
                words.end_line()?;
                return Ok(header);
            }
            words.end_line()?;
        }
        Err(words.error("the file is empty"))
    }

    fn after(vertices: u64, words: &mut Words<'_>) -> Result<Self, FileError> {
        match vertices {
            0 => return Err(words.error("the graph does not have vertices")),
            vertices if vertices > MAX_VERTICES => {
                let what = format!("n = {vertices} exceeds the maximum of {MAX_VERTICES}");
                return Err(words.error(what));
            }
            _ => {}
        }
        let Some(edges) = words.whole_in_line()? else {
            return Err(words.error("missing number of edges"));
        };
        let format = words.whole_in_line()?.unwrap_or(0);
        if !matches!(format, 0 | 1 | 10 | 11 | 100 | 101 | 110 | 111) {
            let what = format!("fmt = {format} must be three digits of 0 and 1");
            return Err(words.error(what));
        }
        let has_weights = format / 10 % 10 == 1;
        let weights = match words.whole_in_line()? {
            Some(weights) if !has_weights && weights > 0 => {
                let what = format!("ncon = {weights}, but vertices do not have weights with fmt {format:03}");
                return Err(words.error(what));
            }
            Some(weights) if weights > MAX_WEIGHTS || (has_weights && weights == 0) => {
                return Err(words.error(format!("ncon = {weights} is not between 1 and {MAX_WEIGHTS}")));
            }
            Some(weights) => weights,
            None => u64::from(has_weights),
        };
        if words.whole_in_line()?.is_some() {
            return Err(words.error("unexpected number after n, m, fmt and ncon"));
        }
        let vertex_weights = weights + format / 100;
        Ok(Self {
            line: words.here(),
            first: 1,
            vertices,
            edges,
            vertex_weights,
            edge_weights: format % 10 == 1,
        })
    }
}

/// The vertices read so far.
#[derive(Default)]
struct Vertices {
    edges: Vec<Edge>,
    /// Start of the edges of every vertex, and its line in the file.
    lines: Vec<(usize, usize)>,
    /// Sum of the weights of all edges in both directions.
    sum: u64,
    /// Minimum and maximum weight of a vertex.
    vertex_weights: Option<(u64, u64)>,
}

impl Vertices {
    /// Reads the line of the next vertex.
    fn read(&mut self, words: &mut Words<'_>, header: &Header) -> Result<(), FileError> {
        let source = self.lines.len() as u32;
        let first = self.edges.len();
        self.lines.push((first, words.here()));
        for _ in 0..header.vertex_weights {
            let Some(weight) = words.whole_in_line()? else {
                let what = format!("vertex {} has fewer weights than declared in the header", source + 1);
                return Err(words.error_at(words.here(), what));
            };
            let (least, most) = self.vertex_weights.unwrap_or((weight, weight));
            self.vertex_weights = Some((least.min(weight), most.max(weight)));
        }
        while let Some(neighbour) = words.whole_in_line()? {
            let edge = read_edge(source, neighbour, words, header)?;
            let Some(sum) = self.sum.checked_add(edge.bytes) else {
                return Err(words.error("the weights of all edges exceed 64 bits").with_help(TOO_HEAVY));
            };
            self.sum = sum;
            self.edges.push(edge);
            // Both directions of an edge are listed.
            if self.edges.len() as u64 / 2 > header.edges {
                let what = format!("more than the {} edges declared in the header", header.edges);
                return Err(words.error(what).with_help(EDGES));
            }
        }
        let row = &mut self.edges[first..];
        row.sort_unstable_by_key(|edge| edge.destination);
        match row.windows(2).find(|pair| pair[0].destination == pair[1].destination) {
            Some(pair) => {
                let what =
                    format!("vertex {} has the duplicate neighbour {}", source + 1, pair[0].destination + 1);
                Err(words.error_at(words.here(), what).with_help("add up the weights of parallel edges"))
            }
            None => Ok(()),
        }
    }

    /// Checks that every edge exists in both directions with the same weight, and that the number of edges
    /// matches the header.
    ///
    /// Rows are sorted: in order of the source, the reverse edges of a vertex come in the order of its own
    /// row.
    fn check(&self, words: &Words<'_>, header: &Header) -> Result<(), FileError> {
        let mut next: Vec<usize> = self.lines.iter().map(|(first, _)| *first).collect();
        let one_sided = |edge: &Edge| {
            let what = format!(
                "vertex {} has neighbour {}, but the reverse edge is missing",
                edge.source + 1,
                edge.destination + 1
            );
            Err(words.error_at(self.lines[edge.source as usize].1, what).with_help(ONE_SIDED))
        };
        for edge in &self.edges {
            let at = &mut next[edge.destination as usize];
            let back = self.edges.get(*at).filter(|back| back.source == edge.destination);
            match back {
                Some(back) if back.destination < edge.source => return one_sided(back),
                Some(back) if back.destination == edge.source => {
                    if back.bytes != edge.bytes {
                        let line = self.lines[edge.destination as usize].1;
                        let (one, other) = (edge.source + 1, edge.destination + 1);
                        let what = format!(
                            "the edge between {one} and {other} has weight {}, but {} here",
                            edge.bytes, back.bytes
                        );
                        return Err(words.error_at(line, what).with_help(ONE_SIDED));
                    }
                    *at += 1;
                }
                _ => return one_sided(edge),
            }
        }
        match self.edges.len() as u64 / 2 {
            edges if edges == header.edges => Ok(()),
            edges => {
                let what = format!("the header declares {} edges, but the file has {edges}", header.edges);
                Err(words.error_at(header.line, what).with_help(EDGES))
            }
        }
    }
}

/// Reads the weight of a neighbour.
fn read_edge(source: u32, neighbour: u64, words: &mut Words<'_>, header: &Header) -> Result<Edge, FileError> {
    let vertex = u64::from(source) + header.first;
    if !(header.first..header.vertices + header.first).contains(&neighbour) {
        let what =
            format!("vertex {vertex} has neighbour {neighbour}, but vertices are 1 to {}", header.vertices);
        return Err(words.error(what));
    }
    if neighbour == vertex {
        return Err(words.error(format!("vertex {vertex} is its own neighbour")).with_help(NO_SELF_EDGE));
    }
    let bytes = match header.edge_weights {
        false => 1,
        true => match words.whole_in_line()? {
            Some(weight) => weight,
            None => {
                return Err(words.error(format!("the edge between {vertex} and {neighbour} lacks a weight")));
            }
        },
    };
    Ok(Edge { source, destination: (neighbour - header.first) as u32, messages: 1, bytes })
}

/// Only empty lines may follow the last vertex.
fn nothing_follows(words: &mut Words<'_>, header: &Header) -> Result<(), FileError> {
    while words.skip_lines_with(b'%')? {
        if words.next_in_line()? {
            let what = format!("more lines than the {} vertices declared in the header", header.vertices);
            return Err(words.error(what).with_help(JOINED));
        }
        words.end_line()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use hopmap_test_support::{Log, PREFIXES, with_foreign_lines, with_prefix};
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use std::io::Write;
    fn file(text: impl AsRef<[u8]>) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        file
    }

    fn edges(text: impl AsRef<[u8]>) -> Vec<(u32, u32, u64)> {
        let graph = read_graph(file(text).path(), &Context::detached()).unwrap();
        graph.check().unwrap();
        assert!(graph.edges.iter().all(|edge| edge.messages == 1));
        graph.edges.iter().map(|edge| (edge.source, edge.destination, edge.bytes)).collect()
    }

    /// The error of a file and its hint.
    fn refused(text: impl AsRef<[u8]>) -> (String, String) {
        let file = file(text);
        match read_graph(file.path(), &Context::detached()) {
            Err(FileError { line: Some(line), problem, help: Some(help), .. }) => {
                (format!("{line}: {problem}"), help)
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_example_of_the_manual() {
        // Figure 2 (a) and (c): the same graph without weights, and with weights of vertices and edges.
        let plain = "7 11\n5 3 2\n1 3 4\n5 4 2 1\n2 3 6 7\n1 3 6\n5 4 7\n6 4\n";
        let heavy = "% comment\n7 11 011\n4 5 1 3 2 2 1\n2 1 1 3 2 4 1\n5 5 3 4 2 2 2 1 2\n3 2 1 3 2 6 2 7 5\n\
                     1 1 1 3 3 6 2\n% another\n6 5 2 4 2 7 6\n2 6 6 4 5\n\n";
        let ends =
            |edges: Vec<(u32, u32, u64)>| edges.into_iter().map(|edge| (edge.0, edge.1)).collect::<Vec<_>>();
        assert_eq!(edges(plain).len(), 22);
        assert!(edges(plain).iter().all(|edge| edge.2 == 1));
        assert_eq!(ends(edges(plain)), ends(edges(heavy)));
        assert_eq!(edges(heavy)[..3], [(0, 1, 1), (0, 2, 2), (0, 4, 1)]);
    }

    #[test]
    fn every_fmt_is_read() {
        for (fmt, first, second) in [
            ("", "2", "1"),
            ("0", "2", "1"),
            ("000", "2", "1"),
            ("10", "7 2", "8 1"),
            ("010 2", "7 7 2", "8 8 1"),
            ("100", "9 2", "9 1"),
            ("110 3", "9 1 2 3 2", "9 1 2 3 1"),
        ] {
            assert_eq!(edges(format!("2 1 {fmt}\n{first}\n{second}\n")), [(0, 1, 1), (1, 0, 1)], "{fmt}");
        }
        for (fmt, first, second) in [
            ("1", "2 5", "1 5"),
            ("11", "3 2 5", "3 1 5"),
            ("101", "3 2 5", "3 1 5"),
            ("111", "3 3 2 5", "3 3 1 5"),
        ] {
            assert_eq!(edges(format!("2 1 {fmt}\n{first}\n{second}\n")), [(0, 1, 5), (1, 0, 5)], "{fmt}");
        }
    }

    #[test]
    fn vertices_without_neighbours_and_heavy_edges() {
        assert_eq!(edges("1 0\n\n"), []);
        assert_eq!(edges("3 0\r\n\r\n\r\n\r\n"), []);
        let heavy = 1u64 << 60;
        assert_eq!(edges(format!("3 1 1\n\n3 {heavy}\n2 {heavy}")), [(1, 2, heavy), (2, 1, heavy)]);
        assert_eq!(edges("2 1 1\n2 0\n1 0\n"), [(0, 1, 0), (1, 0, 0)]);
    }

    #[test]
    fn compressed_files_are_recognised_by_contents() {
        let mut packed = Vec::new();
        for part in ["3 2\n2\n", "1 3\n2\n"] {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
            encoder.write_all(part.as_bytes()).unwrap();
            packed.extend(encoder.finish().unwrap());
        }
        assert_eq!(edges(&packed), [(0, 1, 1), (1, 0, 1), (1, 2, 1), (2, 1, 1)]);
        packed.truncate(packed.len() - 3);
        let error = read_graph(file(packed).path(), &Context::detached()).unwrap_err();
        assert!(error.to_string().contains(": cannot be read: "));
    }

    /// The first fault of such a file was reported: a self-loop, vertex 0, or an edge in one direction.
    #[test]
    fn graphs_counted_from_zero_are_told_so() {
        for text in ["3 2\n1\n0 2\n1\n", "3 2\n2\n2\n0 1\n", "3 3 1\n1 5 2 5\n0 5 2 5\n0 5 1 5\n"] {
            let (problem, hint) = refused(text);
            assert!(problem.ends_with(FROM_ZERO) && hint == ADD_ONE, "{problem}");
        }
        assert_eq!(refused("2 1\n1\n1\n").1, NO_SELF_EDGE);
    }

    #[test]
    fn invalid_headers_are_rejected() {
        for (text, error) in [
            ("", "1: the file is empty"),
            ("% only\n\n", "1: the file is empty"),
            ("x", "1: `x` is not a number"),
            ("0 0", "1: the graph does not have vertices"),
            ("3", "1: missing number of edges"),
            ("99999999999 1", "1: n = 99999999999 exceeds the maximum of 16777216"),
            ("2 1 2\n2\n1\n", "1: fmt = 2 must be three digits of 0 and 1"),
            ("2 1 1 1\n2 1\n1 1\n", "1: ncon = 1, but vertices do not have weights with fmt 001"),
            ("2 1 10 0\n2\n1\n", "1: ncon = 0 is not between 1 and 64"),
            ("2 1 11 1 7\n", "1: unexpected number after n, m, fmt and ncon"),
            ("%\n2 -1\n", "2: `-1` is negative"),
            // A header with large counts reserves no memory.
            ("16777216 18446744073709551615 1\n", "2: the file ends before vertex 1 of 16777216"),
        ] {
            assert_eq!(refused(text).0, error, "{text:?}");
        }
    }

    #[test]
    fn invalid_lines_are_rejected() {
        for (text, error, hint) in [
            ("3 1\n2\n1\n", "4: the file ends before vertex 3 of 3", EMPTY_LINES),
            ("2 1\n2\n1\n\n1\n", "5: more lines than the 2 vertices declared in the header", JOINED),
            ("2 1\n2\n3\n", "3: vertex 2 has neighbour 3, but vertices are 1 to 2", HINT),
            ("2 1\n2\n0\n", "3: vertex 2 has neighbour 0, but vertices are 1 to 2", HINT),
            ("2 1\n2\n2\n", "3: vertex 2 is its own neighbour", NO_SELF_EDGE),
            ("2 1 1\n2 1\n1\n", "3: the edge between 2 and 1 lacks a weight", HINT),
            ("2 1 1\n2 1.5\n1 1.5\n", "2: `1.5` is not an integer", HINT),
            ("2 1 10\n\n1 2\n", "2: vertex 1 has fewer weights than declared in the header", HINT),
            (
                "2 2\n2 2\n1 1\n",
                "2: vertex 1 has the duplicate neighbour 2",
                "add up the weights of parallel edges",
            ),
            ("3 2\n2\n1\n2\n", "4: vertex 3 has neighbour 2, but the reverse edge is missing", ONE_SIDED),
            (
                "% a\n3 2\n% b\n2\n3\n2\n",
                "4: vertex 1 has neighbour 2, but the reverse edge is missing",
                ONE_SIDED,
            ),
            ("2 1 1\n2 4\n1 5\n", "3: the edge between 1 and 2 has weight 4, but 5 here", ONE_SIDED),
            ("2 2\n2\n1\n", "1: the header declares 2 edges, but the file has 1", EDGES),
            ("3 1\n2 3\n1\n1\n", "4: more than the 1 edges declared in the header", EDGES),
            (
                "2 1 1\n2 18446744073709551615\n1 18446744073709551615\n",
                "3: the weights of all edges exceed 64 bits",
                TOO_HEAVY,
            ),
        ] {
            assert_eq!(refused(text), (error.to_owned(), hint.to_owned()), "{text:?}");
        }
    }

    /// A graph as a file, with the given white space and comments.
    fn text_of(n: u32, graph: &BTreeMap<(u32, u32), u64>, weighted: bool, spaces: &[&str]) -> String {
        let mut text = format!("%head\n{n} {} {}\n", graph.len(), u8::from(weighted));
        let mut spaces = spaces.iter().cycle();
        for vertex in 0..n {
            // Neighbours in reverse order, because their order is irrelevant.
            for (&(one, other), weight) in
                graph.iter().rev().filter(|(pair, _)| pair.0 == vertex || pair.1 == vertex)
            {
                let neighbour = if one == vertex { other } else { one } + 1;
                let space = spaces.next().unwrap();
                text += &format!("{space}{neighbour}");
                if weighted {
                    text += &format!(" {space}{weight}");
                }
            }
            text += if vertex % 3 == 1 { " \r\n%\n" } else { "\n" };
        }
        text
    }

    /// Once such a line was one of another program, and its vertex was lost.
    #[test]
    fn no_vertex_is_lost_behind_a_prefix() {
        let text = "3 2\n2\n1 3\n2\n";
        for prefix in PREFIXES {
            let read = |only| read_graph(file(with_prefix(text, prefix, only)).path(), &Context::detached());
            let error = read(None).unwrap_err();
            assert!(error.problem.contains(prefix.trim()), "{error}");
            assert!(error.help_text().contains("sed -E 's/^"), "{error}");
            assert!((0..4).all(|line| read(Some(line)).is_err()), "{prefix}");
        }
    }

    #[test]
    fn another_encoding_is_told() {
        let wide: Vec<u8> = "\u{feff}3 2\n2\n1 3\n2\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let file = file(wide);
        let error = read_graph(file.path(), &Context::detached()).unwrap_err();
        assert!(error.problem.contains("UTF-16") && error.path == file.path(), "{error}");
    }

    proptest! {
        /// Once they were rows of numbers that are none.
        #[test]
        fn lines_of_other_programs_are_no_part_of_a_graph(
            places in prop::collection::vec(any::<(usize, usize)>(), 1..5),
            is_cut in any::<bool>(),
        ) {
            let graph = "% a\n4 2 1\n2 5\n1 5 4 7\n\n2 7\n";
            let (text, count, first) = with_foreign_lines(graph, &places, is_cut);
            let log = Log::default();
            let read = read_graph(file(text).path(), &Context::new(1, None, &log)).unwrap();
            prop_assert_eq!(read, read_graph(file(graph).path(), &Context::detached()).unwrap());
            let log = log.0.into_inner().unwrap();
            let said = format!("warning: lines of other programs, skipped: {count}, the first in line {first}: ");
            prop_assert!(log.len() == 1 && log[0].starts_with(&said), "{log:?}");
        }

        #[test]
        fn what_is_written_is_read(
            (n, graph) in (2u32..12).prop_flat_map(|n| {
                let pair = (0..n, 0..n).prop_filter_map("a pair", |(a, b)| (a < b).then_some((a, b)));
                (Just(n), prop::collection::btree_map(pair, prop_oneof![0..9u64, 0..1u64 << 56], 0..30))
            }),
            weighted in any::<bool>(),
            spaces in prop::collection::vec(prop::sample::select(vec![" ", "\t", "   "]), 1..9),
        ) {
            let mut expected = Vec::new();
            for (&(one, other), &weight) in &graph {
                let weight = if weighted { weight } else { 1 };
                expected.extend([(one, other, weight), (other, one, weight)]);
            }
            expected.sort_unstable();
            prop_assert_eq!(edges(text_of(n, &graph, weighted, &spaces)), expected);
        }
    }
}
