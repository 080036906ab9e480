//! Tables with aligned columns and capitals in the header: `kubectl get nodes -L LABEL,…`, also `-o wide`,
//! `-o custom-columns` and `--show-labels`.
//!
//! A label that is not set is an empty cell, so cells are what is below the names of the header (kubectl aligns with
//! `text/tabwriter` of Go).

use std::collections::BTreeSet;

use hopmap_text::{FileError, without_foreign};

use super::super::Result;
use super::super::format::malformed;
use super::super::table_lines::{self, Table, TableLine};
use super::labels::{Column, HOSTS};

const HELP: &str = "give what `kubectl get nodes -L LABEL,…` prints, with its header and its blanks";

/// A row of a table, with its line if it is known.
pub(super) type Row = (Option<usize>, Vec<String>);
/// The column of `--show-labels`.
pub(super) const LABELS: &str = "LABELS";

/// The first line with content that looks like a header, with its number.
fn header(text: &str) -> Option<(usize, &str)> {
    let is_header = |line: &str| {
        let names: Vec<&str> = line.split_whitespace().collect();
        let is_name = |name: &&str| {
            name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || "-_./".contains(c))
                && name.starts_with(|c: char| c.is_ascii_uppercase())
        };
        names.len() > 1 && names.iter().all(is_name)
    };
    (1..).zip(text.lines()).find(|(_, line)| !line.trim().is_empty()).filter(|(_, line)| is_header(line))
}

/// The names of the columns, if the text is such a table.
pub(super) fn names(text: &str) -> Option<Vec<&str>> {
    Some(header(text)?.1.split_whitespace().collect())
}

/// The names of the columns, and the rows. The labels of `--show-labels` that name switches are columns of their own.
pub(super) fn read(text: &str) -> Result<(Vec<String>, Vec<Row>)> {
    let mut header: Vec<String> = names(text).unwrap_or_default().into_iter().map(str::to_owned).collect();
    let mut rows = rows(text)?;
    if let Some(at) = header.iter().position(|name| name == LABELS) {
        let value = |cells: &[String], name: &str| {
            let value = |label: &str| Some(label.strip_prefix(name)?.strip_prefix('=')?.to_owned());
            cells[at].split(',').find_map(value).unwrap_or_default()
        };
        let is_switch = |label: &String| Column::of_table(&["NAME", label], &HOSTS).is_some();
        let all =
            rows.iter().flat_map(|(_, cells)| cells[at].split(',')).filter_map(|label| label.split_once('='));
        let names: BTreeSet<String> = all.map(|(label, _)| label.to_owned()).filter(is_switch).collect();
        for (_, cells) in &mut rows {
            let values: Vec<String> = names.iter().map(|name| value(cells, name)).collect();
            cells.extend(values);
        }
        header.extend(names);
    }
    Ok((header, rows))
}

/// The names of a table and the characters where they begin.
struct Columns<'t> {
    line: usize,
    names: Vec<&'t str>,
    starts: Vec<usize>,
}

/// Columns that kubectl never leaves empty. Without them, the table is one of `-o custom-columns`, in which none is.
const FILLED: [&str; 4] = ["NAME", "STATUS", "AGE", "VERSION"];

fn is_blank(letters: &[char], at: usize) -> bool {
    letters.get(at).is_none_or(|letter| letter.is_whitespace())
}

impl<'t> Columns<'t> {
    fn of(text: &'t str) -> Option<Self> {
        let (line, header) = header(text)?;
        let letters: Vec<char> = header.chars().collect();
        let begins = |at: &usize| !is_blank(&letters, *at) && (*at == 0 || is_blank(&letters, at - 1));
        let starts = (0..letters.len()).filter(begins).collect();
        Some(Self { line, names: header.split_whitespace().collect(), starts })
    }

    /// The lines below the header that have content, with their numbers.
    fn lines(&self, text: &'t str) -> impl Iterator<Item = (usize, &'t str)> {
        (1..).zip(text.lines()).skip(self.line).filter(|(_, text)| !text.trim().is_empty())
    }

    /// What is below each name, or what does not begin there.
    fn cells<'l>(&self, line: &'l str) -> Vec<Result<&'l str, &'l str>> {
        let letters: Vec<char> = line.chars().collect();
        let offsets: Vec<usize> = line.char_indices().map(|(at, _)| at).collect();
        let offset = |letter: usize| offsets.get(letter).copied().unwrap_or(line.len());
        let ends = self.starts.iter().skip(1).copied().chain([letters.len()]);
        let cell = |(&start, end): (&usize, usize)| {
            let cell = line[offset(start)..offset(end)].trim();
            // Columns are two blanks apart, so those in a cell are one.
            let is_below = !is_blank(&letters, start)
                && (start == 0 || is_blank(&letters, start - 1))
                && !cell.contains("  ");
            if cell.is_empty() || is_below { Ok(cell) } else { Err(cell) }
        };
        self.starts.iter().zip(ends).map(cell).collect()
    }

    /// The cells of a row that is aligned.
    fn row<'l>(&self, line: &'l str) -> Option<Vec<&'l str>> {
        self.cells(line).into_iter().collect::<Result<_, _>>().ok().filter(|_| self.has_row(line))
    }

    /// Whether a line has the shape of a row: the name of an object first, and one word below each name that is always filled; or as many
    /// columns as the header, which are not aligned then.
    fn has_row(&self, line: &str) -> bool {
        let is_of_nodes = self.names.contains(&FILLED[1]);
        let is_filled = |(name, cell): (&&str, &Result<&str, &str>)| match cell {
            Ok(cell) if FILLED.contains(name) => cell.split_whitespace().count() == 1,
            cell => is_of_nodes && !FILLED.contains(name) || cell.as_ref().is_ok_and(|cell| !cell.is_empty()),
        };
        let is_named = || {
            let name = line.split_whitespace().next().unwrap_or_default();
            let is_of_name =
                |c: char| !(c.is_ascii_uppercase() || c.is_ascii_punctuation()) || "-_.".contains(c);
            self.names[0] != FILLED[0]
                || name.starts_with(char::is_alphanumeric) && name.chars().all(is_of_name)
        };
        let apart = line.trim().replace('\t', "  ");
        let has_columns =
            || apart.split("  ").filter(|cell| !cell.trim().is_empty()).count() == self.names.len();
        let is_header = line.split_whitespace().eq(self.names.iter().copied());
        let has_content = line.contains(char::is_alphanumeric);
        has_content
            && !is_header
            && is_named()
            && (self.names.iter().zip(&self.cells(line)).all(is_filled) || has_columns())
    }
}

/// The lines below the header that are no rows; an error for one that may be. In `text`, messages are not left out yet.
pub(super) fn others(text: &str) -> Result<Vec<usize>> {
    let own = without_foreign(text);
    let Some(columns) = Columns::of(&own) else { return Ok(Vec::new()) };
    let is_again = |line: &str| line.split_whitespace().eq(columns.names.iter().copied());
    let is_elsewhere = |line: &str| Columns::of(line).is_some_and(|other| other.starts != columns.starts);
    if let Some((line, _)) = columns.lines(text).find(|(_, line)| is_again(line) && is_elsewhere(line)) {
        let problem = "the columns of this header begin elsewhere than those of the first one";
        return Err(FileError::at(line, problem, table_lines::JOINED).into());
    }
    let own: Vec<&str> = own.lines().collect();
    let lines = columns.lines(text).map(|(number, text)| {
        let is_message = own.get(number - 1).is_none_or(|line| line.trim().is_empty());
        let row = columns.row(text).filter(|_| !is_message);
        let is_row = row.is_some() || !is_message && columns.has_row(text);
        TableLine {
            number,
            text,
            cells: row.unwrap_or_else(|| text.split_whitespace().collect()),
            is_row,
            is_message,
        }
    });
    let header = &columns.names;
    let host = Column::of_table(header, &HOSTS).and_then(|all| all.iter().position(|it| *it == Column::Host));
    let table = Table {
        header: header.clone(),
        lines: lines.collect(),
        cells: &|text| columns.row(text),
        host,
        names: Column::names(header, &HOSTS),
        is_aligned: true,
        is_header: |cells| {
            let has_capitals = |cell: &&str| !cell.contains(|c: char| c.is_ascii_lowercase());
            cells.iter().all(has_capitals) && Column::of_table(cells, &HOSTS).is_some()
        },
    };
    Ok(table_lines::others(&table)?)
}

/// The cells of every line below the header, with the number of the line.
fn rows(text: &str) -> Result<Vec<Row>> {
    let Some(columns) = Columns::of(text) else { return Err(malformed(None, "no header", HELP)) };
    let row = |(line, text)| {
        let cells: Result<Vec<&str>, &str> = columns.cells(text).into_iter().collect();
        let cells = cells.map_err(|cell| {
            malformed(line, format!("`{cell}` does not begin below a name of the header"), HELP)
        });
        Ok((Some(line), cells?.into_iter().map(str::to_owned).collect()))
    };
    columns.lines(text).map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::LABELS;
    use crate::import::{Format, ImportError, Imported, hops, samples};

    fn import(text: &str) -> Result<Imported, ImportError> {
        assert!(samples::is_recognised(Format::KubectlNodes, text));
        samples::import(text)
    }

    /// As `text/tabwriter` aligns: three blanks between columns, none after the last one.
    fn aligned<S: AsRef<str>>(rows: &[Vec<S>]) -> String {
        let length = |row: &Vec<S>, at: usize| row[at].as_ref().chars().count();
        let width = |column: usize| rows.iter().map(|row| length(row, column)).max().unwrap() + 3;
        let cell = |row: &Vec<S>, at: usize| format!("{:<1$}", row[at].as_ref(), width(at));
        let line = |row| (0..rows[0].len()).map(|at| cell(row, at)).collect::<Vec<_>>().concat();
        rows.iter().map(|row| line(row).trim_end().to_owned()).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn cells_are_below_their_names() {
        let text = aligned(&[
            vec!["NAME", "STATUS", "ROLES", "LEAF", "SPINE"],
            vec!["n1", "Ready", "<none>", "l1", "s1"],
            vec!["n2", "Ready,SchedulingDisabled", "worker", "l1", "s1"],
            vec!["n3", "Ready", "worker", "", "s1"],
            vec!["n4-mit-ü", "NotReady", "", "l2", ""],
            vec!["n5", "Ready", "worker", "", ""],
        ]);
        let Imported { system, notes } = import(&text).unwrap();
        assert_eq!(system.hosts().count(), 5);
        let found = ["n2", "n3", "n4-mit-ü", "n5"].map(|host| hops(&system, "n1", host).unwrap());
        assert_eq!(found, [2, 4, 6, 6]);
        assert!(notes.iter().any(|note| note.starts_with("hosts below no switch")), "{notes:?}");
        assert!(
            notes.iter().any(|note| note == "columns that are not read: 2 (`STATUS`, `ROLES`)"),
            "{notes:?}"
        );
        let moved = text.replacen("<none>", "<none>    ", 1);
        let error = import(&moved).unwrap_err().to_string();
        assert!(error.contains(":2: `l1` does not begin below"), "{error}");
    }

    /// The first host shares layers 0, 1, … with the hosts after it, and only the outer ones with later hosts.
    #[test]
    fn labels_of_clouds_and_of_every_version_of_topograph_are_levels_by_closeness_in_any_order() {
        for labels in [
            "topology.k8s.aws/network-node-layer-|3|2|1",
            "topology.k8s.aws/network-node-layer-|4|3|2|1",
            "cloud.google.com/gce-topology-|host|subblock|block",
            "oci.oraclecloud.com/rdma.|local_block_id|network_block_id|hpc_island_id",
            "|accelerator.topograph.run/sub-domain|accelerator.topograph.run/domain|fabric.topograph.run/tier-0",
            "|xclr.topology.nvidia.com/domain|network.topology.nvidia.com/tier-0|network.topology.nvidia.com/tier-1",
            "network.topology.nvidia.com/|accelerator|leaf|spine|core",
            "network.topology.nvidia.com/|accelerator|block|spine",
            "|nvidia.com/gpu.clique|topology.kubernetes.io/network-level-1|topology.kubernetes.io/network-level-2",
            "|accelerator-domain|fabric-tier-0|fabric-tier-1",
            "|block|leaf|spine",
            "|accelerator|block|spine|datacenter",
        ] {
            let (prefix, labels) = labels.split_once('|').unwrap();
            let mut labels: Vec<String> = labels.split('|').map(|label| format!("{prefix}{label}")).collect();
            labels.extend(
                ["topology.kubernetes.io/zone", "region", "kubernetes.io/hostname"].map(str::to_owned),
            );
            let layers = labels.len() - 1;
            let value = |host: usize, layer: usize| match layer {
                layer if layer == layers => format!("n{host}"),
                layer if layer + 1 < host => format!("x{layer}-{host}"),
                layer => format!("x{layer}"),
            };
            for turn in 0..=layers {
                labels.rotate_left(usize::from(turn > 0));
                let of = |host| (0..=layers).map(move |at| value(host, (at + turn) % (layers + 1)));
                let names = labels.iter().map(|label| label.to_uppercase());
                let mut table = vec![["NAME".to_owned()].into_iter().chain(names).collect::<Vec<_>>()];
                let mut shown = vec![["NAME", "STATUS", LABELS].map(str::to_owned).to_vec()];
                for host in 0..=layers {
                    let name = || format!("n{host}");
                    let pairs = labels.iter().zip(of(host)).map(|(label, value)| format!("{label}={value}"));
                    let twice = format!("failure-domain/zone={}", value(host, layers - 2));
                    shown.push(vec![
                        name(),
                        "Ready".to_owned(),
                        pairs.chain([twice]).collect::<Vec<_>>().join(","),
                    ]);
                    table.push([name()].into_iter().chain(of(host)).collect());
                }
                for text in [aligned(&table), aligned(&shown)] {
                    let system = import(&text).unwrap().system;
                    let found = (1..=layers).map(|host| hops(&system, "n0", &format!("n{host}")).unwrap());
                    assert!(found.eq((1..).map(|host| 2 * host).take(layers)), "{text}");
                }
            }
        }
    }

    #[test]
    fn machines_of_one_host_and_other_labels_are_no_levels() {
        let text = "NAME   GCE-TOPOLOGY-HOST   HOST   GCE-TOPOLOGY-SUBBLOCK\nn1     m1                  a      s\nn2     m2                  a      s\n";
        let Imported { system, notes } = import(text).unwrap();
        assert_eq!(hops(&system, "n1", "n2"), Some(2));
        assert_eq!(notes, ["columns that are not read: 2 (`GCE-TOPOLOGY-HOST`, `HOST`)"]);
        // Azure's label is the maker of the accelerators.
        let of = |n: u32, leaf: u32| {
            format!(
                "n{n}     Ready    accelerator=nvidia,kubernetes.azure.com/accelerator=nvidia,network.topology.nvidia.com/leaf=l{leaf},network.topology.nvidia.com/spine=s\n"
            )
        };
        let text = format!("NAME   STATUS   LABELS\n{}{}{}", of(1, 1), of(2, 1), of(3, 2));
        let Imported { system, .. } = import(&text).unwrap();
        assert_eq!(["n2", "n3"].map(|host| hops(&system, "n1", host)), [Some(2), Some(4)]);
        let text = "NAME   STATUS   LABELS\nn1     Ready    kubernetes.io/os=linux,agentpool=a\n";
        let error = import(text).unwrap_err().to_string();
        assert!(error.contains("no label that is known to name switches"), "{error}");
    }
}
