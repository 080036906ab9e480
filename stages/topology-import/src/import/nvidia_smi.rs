//! The GPUs of a host: output of `nvidia-smi topo -m`.
//!
//! The output names the connection of every pair of GPUs. Levels are found by joining GPUs with ever slower
//! connections; a level that joins nothing is left out. GPUs and their connections that are not nested, such as
//! hybrid cube meshes of `NVLink`, are joined to nested groups, and counted in a note.

use std::cmp::Reverse;
use std::fmt;

use hopmap_model::{Node, to_u32};

use super::finish::{HostShape, Parts, machine};
use super::format::{Sample, malformed, note};
use super::{ImportParams, Imported, Result};

/// The table of `nvidia-smi topo -m`.
const TABLE: Table = Table {
    help: "give the output of `nvidia-smi topo -m`, with the row of every GPU",
    known: "known are X, NV1, NV2, …, PIX, PXB, PHB, NODE and SYS",
    own: "X",
    is_gpu,
    connection,
};
/// Most GPUs of a host.
const MOST_GPUS: usize = 1024;
/// Connections through the host, from fast to slow, as in the legend of `nvidia-smi`; until 2017 `SYS` was `SOC`.
const CONNECTIONS: [(&str, Connection); 6] = [
    ("PIX", Connection::Bridge),
    ("PXB", Connection::Bridges),
    ("PHB", Connection::HostBridge),
    ("NODE", Connection::Node),
    ("SYS", Connection::System),
    ("SOC", Connection::System),
];
/// The name of the host, which the output lacks.
const HOST: &str = "host";

/// How two GPUs are connected, from fast to slow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Connection {
    /// They are one.
    Same,
    /// This many connections of `NVLink`, which are faster the more there are.
    NvLink(Reverse<u32>),
    /// One PCI bridge.
    Bridge,
    /// Several PCI bridges.
    Bridges,
    /// A PCI host bridge.
    HostBridge,
    /// Several host bridges of a NUMA node.
    Node,
    /// The interconnect of NUMA nodes.
    System,
    /// A weight of AMD's programs, which is less for faster connections.
    Weight(u32),
}

/// A table with the connection of every pair of GPUs, and how its program writes it.
pub(super) struct Table {
    pub(super) help: &'static str,
    /// The words for connections, for messages.
    pub(super) known: &'static str,
    /// The word for a GPU and itself.
    pub(super) own: &'static str,
    pub(super) is_gpu: fn(&str) -> bool,
    pub(super) connection: fn(&str) -> Option<Connection>,
}

impl fmt::Display for Connection {
    /// The word of `nvidia-smi`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NvLink(Reverse(links)) => write!(f, "NV{links}"),
            Self::Weight(weight) => write!(f, "weight {weight}"),
            other => {
                let known = CONNECTIONS.iter().find(|(_, known)| known == other);
                f.write_str(known.map_or("X", |(word, _)| *word))
            }
        }
    }
}

/// A line of column names that begins with the first GPU, and the row of that GPU.
pub(super) fn recognises(sample: &Sample) -> bool {
    let Some(text) = sample.text() else { return false };
    let text = plain(text);
    let mut lines = text.lines().map(|line| line.split_whitespace().take(2).collect::<Vec<&str>>());
    lines.any(|words| words.first() == Some(&"GPU0")) && lines.any(|words| words == ["GPU0", "X"])
}

/// The text without the underline around the column names whose escape characters were lost.
fn plain(text: &str) -> String {
    text.replace("[4m", "").replace("[0m", "")
}

pub(super) fn read(text: &str, params: &ImportParams) -> Result<Imported> {
    let text = plain(text);
    let begins = |line: &str| {
        let mut words = line.split_whitespace();
        words.next() == Some("GPU0") && words.next() != Some(TABLE.own)
    };
    only_one(&text, begins, TABLE.help)?;
    let lines =
        (1..).zip(text.lines()).skip_while(|(_, line)| line.split_whitespace().next() != Some("GPU0"));
    TABLE.host(lines, params)
}

/// Refuses a further table, which may be of another host.
pub(super) fn only_one(text: &str, begins: impl Fn(&str) -> bool, help: &'static str) -> Result<()> {
    let further = (1..).zip(text.lines()).filter(|(_, line)| begins(line)).nth(1);
    let problem = "a further table of GPUs begins here, and the file is that of one host";
    further.map_or(Ok(()), |(line, _)| Err(malformed(line, problem, help)))
}

/// Whether this is the name of a GPU, such as `GPU0`.
pub(super) fn is_gpu(word: &str) -> bool {
    let number = word.strip_prefix("GPU");
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

impl Table {
    /// The host with the GPUs of a table whose first line names them.
    pub(super) fn host<'a>(
        &self,
        mut lines: impl Iterator<Item = (usize, &'a str)>,
        params: &ImportParams,
    ) -> Result<Imported> {
        let Some((first, header)) = lines.next() else { return Err(malformed(None, "no GPUs", self.help)) };
        // `GPU NUMA ID` is a column as well, whose name has blanks.
        let gpus: Vec<&str> = header.split_whitespace().take_while(|word| (self.is_gpu)(word)).collect();
        if gpus.is_empty() || gpus.len() > MOST_GPUS {
            return Err(malformed(first, format!("{} GPUs", gpus.len()), self.help));
        }
        if let Some(twice) = gpus.iter().enumerate().find(|(at, gpu)| gpus[..*at].contains(gpu)) {
            return Err(malformed(first, format!("the column of `{}` is there twice", twice.1), self.help));
        }
        let mut rows: Vec<Vec<Connection>> = Vec::new();
        let mut others = 0;
        for name in &gpus {
            let row = lines.find(|(_, line)| {
                let is_row = line.split_whitespace().next().is_some_and(self.is_gpu);
                others += usize::from(!is_row && !line.trim().is_empty());
                is_row
            });
            let Some((line, row)) = row else {
                return Err(malformed(None, format!("the row of `{name}` is missing"), self.help));
            };
            rows.push(self.row(&gpus, &rows, line, row)?);
        }
        if let Some((line, row)) =
            lines.find(|(_, line)| line.split_whitespace().next().is_some_and(self.is_gpu))
        {
            let name = row.split_whitespace().next().unwrap_or_default();
            return Err(malformed(line, format!("`{name}` has a row, but no column"), self.help));
        }
        let mut imported = host(&rows, "the output does not name the host", self.help, params)?;
        note(&mut imported.notes, "lines between the rows of GPUs, skipped", others);
        Ok(imported)
    }

    /// The row of the next GPU.
    fn row(
        &self,
        gpus: &[&str],
        rows: &[Vec<Connection>],
        line: usize,
        text: &str,
    ) -> Result<Vec<Connection>> {
        let name = gpus[rows.len()];
        let mut words = text.split_whitespace();
        if words.next() != Some(name) {
            return Err(malformed(line, format!("the row of `{name}` is expected here"), self.help));
        }
        let row = self.connections(gpus, rows.len(), words);
        let row = row.map_err(|problem| malformed(line, problem, self.known))?;
        // Damaged output, for a connection has one kind.
        if let Some((other, above)) =
            rows.iter().enumerate().find(|(other, above)| above[rows.len()] != row[*other])
        {
            let (one, other, there) = (row[other], gpus[other], above[rows.len()]);
            let problem = format!(
                "`{name}` and `{other}` are connected by {one} here, but by {there} in the row of `{other}`"
            );
            return Err(malformed(line, problem, self.help));
        }
        Ok(row)
    }

    /// The connections in the row of a GPU, or what is wrong.
    fn connections<'a>(
        &self,
        gpus: &[&str],
        own: usize,
        mut words: impl Iterator<Item = &'a str>,
    ) -> std::result::Result<Vec<Connection>, String> {
        let (name, same) = (gpus[own], self.own);
        let one = |(at, other): (usize, &&str)| {
            let word = words.next().ok_or_else(|| format!("the row of `{name}` ends before `{other}`"))?;
            match (self.connection)(word) {
                None => {
                    Err(format!("the connection of `{name}` and `{other}` is `{word}`, which is unknown"))
                }
                Some(connection) if (connection == Connection::Same) != (at == own) => Err(match at == own {
                    true => format!("`{name}` has `{word}` in its own column, not {same}"),
                    false => format!("`{name}` has {same} in the column of `{other}`"),
                }),
                Some(connection) => Ok(connection),
            }
        };
        gpus.iter().enumerate().map(one).collect()
    }
}

/// A host whose GPUs have these connections.
pub(super) fn host(
    rows: &[Vec<Connection>],
    nameless: &str,
    help: &'static str,
    params: &ImportParams,
) -> Result<Imported> {
    let mut notes = vec![format!("{nameless}, which is `{HOST}` here")];
    let parts = Parts {
        nodes: vec![Node::host(HOST)],
        shapes: [(HOST.to_owned(), shape(rows, help, &mut notes)?)].into(),
        ..Parts::default()
    };
    Ok(Imported { system: machine(parts, params)?, notes })
}

/// The shape of a host whose GPUs have these connections.
pub(super) fn shape(
    rows: &[Vec<Connection>],
    help: &'static str,
    notes: &mut Vec<String>,
) -> Result<HostShape> {
    if rows.is_empty() || rows.len() > MOST_GPUS {
        return Err(malformed(None, format!("{} GPUs", rows.len()), help));
    }
    let (kinds, groups) = groups(rows, notes);
    if !kinds.is_empty() {
        let kinds = kinds.iter().map(Connection::to_string).collect::<Vec<_>>().join(", ");
        let note = format!("connections that join GPUs, one level each, innermost first: {kinds}");
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
    Ok(HostShape { cores: (0..to_u32(rows.len())).collect(), groups })
}

fn connection(word: &str) -> Option<Connection> {
    if word == "X" {
        return Some(Connection::Same);
    }
    if let Some(links) = word.strip_prefix("NV") {
        return links
            .parse()
            .ok()
            .filter(|links| (1..=999).contains(links))
            .map(|links| Connection::NvLink(Reverse(links)));
    }
    CONNECTIONS.iter().find(|(known, _)| *known == word).map(|(_, connection)| *connection)
}

/// The connections that join GPUs and the groups of GPUs by level, innermost first; on the last level all are one.
fn groups(rows: &[Vec<Connection>], notes: &mut Vec<String>) -> (Vec<Connection>, Vec<Vec<u32>>) {
    let mut all: Vec<Connection> = rows.iter().flatten().copied().collect();
    all.sort_unstable();
    all.dedup();
    all.retain(|connection| *connection != Connection::Same);
    let mut group: Vec<u32> = (0..to_u32(rows.len())).collect();
    let (mut kinds, mut levels, mut unlike) = (Vec::new(), Vec::new(), 0);
    for &connection in &all {
        let before = group.clone();
        for (a, row) in rows.iter().enumerate() {
            for (b, &own) in row.iter().enumerate() {
                let (from, to) = (group[a].max(group[b]), group[a].min(group[b]));
                if a != b && own == connection && before[a] == before[b] {
                    unlike += 1;
                } else if a != b && own == connection && from != to {
                    group.iter_mut().filter(|group| **group == from).for_each(|group| *group = to);
                }
            }
        }
        if group != before {
            kinds.push(connection);
            levels.push(numbered(&group));
        }
    }
    if levels.last().is_none_or(|last| last.iter().any(|&group| group != 0)) {
        levels.push(vec![0; rows.len()]);
    }
    note(
        notes,
        "pairs of GPUs whose connection is slower than those of their group, counted in both directions",
        unlike,
    );
    (kinds, levels)
}

/// Groups numbered from 0 in the order of their first GPU.
fn numbered(groups: &[u32]) -> Vec<u32> {
    let mut known: Vec<u32> = Vec::new();
    let number = |group: &u32| {
        to_u32(known.iter().position(|other| other == group).unwrap_or_else(|| {
            known.push(*group);
            known.len() - 1
        }))
    };
    groups.iter().map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::Format;
    use crate::import::samples::{import, is_recognised};
    use hopmap_model::{CostModel, SystemGraph};

    fn read_text(text: &str) -> Result<Imported> {
        assert!(is_recognised(Format::NvidiaSmi, text));
        import(text)
    }

    fn levels(system: &SystemGraph) -> Vec<Vec<u32>> {
        let CostModel::Levels(levels) = &system.cost else { panic!("no levels") };
        levels.groups.clone()
    }

    #[test]
    fn an_nvswitch_is_one_level() {
        let text = "\t\u{1b}[4mGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\u{1b}[0m\n\
                    GPU0\t X \tNV18\tPIX\t0-31\t0\t\tN/A\nGPU1\tNV18\t X \tSYS\t0-31\t0\t\tN/A\n\
                    NIC0\tPIX\tSYS\t X \n\nLegend:\n\n  X    = Self\n";
        assert_eq!(levels(&read_text(text).unwrap().system), [[0, 0]]);
        let (colours, rest) =
            (text.replace('\u{1b}', ""), text.replace("Legend", "NIC Legend:\n  NIC0: mlx5_0\nLegend"));
        let between = text.replace("GPU1\tNV18", "\nxid 31 on bus 3\n\u{1b}[1;31mGPU1\u{1b}[m\tNV18");
        for (text, others) in [(colours, 0), (rest, 0), (text.replace("0-31", "N/A"), 0), (between, 1)] {
            let Imported { system, notes } = read_text(&text).unwrap();
            assert_eq!(levels(&system), [[0, 0]], "{text}");
            let said = notes.iter().any(|note| note == "lines between the rows of GPUs, skipped: 1");
            assert_eq!(said, others == 1, "{notes:?}");
        }
    }

    #[test]
    fn pairs_below_bridges_below_sockets_are_three_levels() {
        let text = "        GPU0    GPU1    GPU2    GPU3    CPU Affinity\n\
                    GPU0     X      NV4     PHB     SYS     0-7\nGPU1    NV4      X      PHB     SYS     0-7\n\
                    GPU2    PHB     PHB      X      SYS     0-7\nGPU3    SYS     SYS     SYS      X      8-15\n";
        let Imported { system, notes } = read_text(text).unwrap();
        assert_eq!(levels(&system), [[0, 0, 1, 2], [0, 0, 0, 1], [0, 0, 0, 0]]);
        let kinds = "connections that join GPUs, one level each, innermost first: NV4, PHB, SYS";
        assert_eq!(notes[1..], [kinds]);
        // The word before 2017.
        assert_eq!(read_text(&text.replace("SYS", "SOC")).unwrap().notes[1..], [kinds]);
        // A slower pair within a group is said.
        let mesh = text.replace("PHB     SYS     0-7\nGPU1", "NV4     SYS     0-7\nGPU1");
        let mesh = mesh.replace("GPU2    PHB", "GPU2    NV4");
        assert!(read_text(&mesh).unwrap().notes[1].starts_with("pairs of GPUs whose connection"), "{mesh}");
    }

    /// Contradictions were read as slow connections, and a damaged diagonal not at all.
    #[test]
    fn incomplete_and_damaged_output_is_one_message() {
        let one = |row: &str| format!("GPU0 GPU1 GPU2\nGPU0 X PIX SYS\n{row}\nGPU2 SYS SYS X\n");
        let unlike = ":3: `GPU1` and `GPU0` are connected by SYS here, but by PIX in the row of `GPU0`";
        for (text, problem) in [
            ("GPU0 GPU1\nGPU0 X NV4\n".to_owned(), "the row of `GPU1` is missing"),
            ("GPU0 GPU1\nGPU0 X NV4\nGPU7 NV4 X\n".to_owned(), ":3: the row of `GPU1` is expected here"),
            (
                "GPU0 GPU1\nGPU0 X NV4\nGPU1 NV4 X\n\nGPU2 NV4 NV4\n".to_owned(),
                ":5: `GPU2` has a row, but no column",
            ),
            ("GPU0 GPU1\nGPU0 X\nGPU1 NV4 X\n".to_owned(), ":2: the row of `GPU0` ends before `GPU1`"),
            ("GPU0 GPU1\nGPU0 X NV4\nGPU1 NV4 X\n".repeat(2), ":4: a further table of GPUs begins here"),
            (one("GPU1 SYS X SYS"), unlike),
            (one("GPU1 PIX PIX SYS"), ":3: `GPU1` has `PIX` in its own column, not X"),
            (one("GPU1 X X SYS"), ":3: `GPU1` has X in the column of `GPU0`"),
            (one("GPU1 FOO X SYS"), ":3: the connection of `GPU1` and `GPU0` is `FOO`, which is unknown"),
            ("GPU0 GPU1 GPU1\nGPU0 X PIX SYS\n".to_owned(), ":1: the column of `GPU1` is there twice"),
        ] {
            let error = read_text(&text).unwrap_err().to_string();
            assert!(error.contains(problem), "{text}: {error}");
        }
    }
}
