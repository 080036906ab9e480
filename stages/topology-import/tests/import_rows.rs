//! Tables of every format with one line that is not a row, or no longer one, at any place. What is right follows from how the line was made.

use std::path::Path;

use hopmap_model::SystemGraph;
use hopmap_test_support::PREFIXES;
use hopmap_topology_import::import::{ImportParams, Imported, read};
use proptest::prelude::*;

/// Hosts below leaves below a spine, as a table of cells with its header.
struct Table {
    cells: Vec<Vec<String>>,
    is_aligned: bool,
}

impl Table {
    /// A label list, cables, a table of kubectl, or one of its columns that a user chose; with labels that are numbers, and columns in another order.
    fn of(form: usize, hosts: usize, has_numbers: bool, turn: usize) -> Self {
        let label = |word: &str, number: usize| {
            if has_numbers { number.to_string() } else { format!("{word}{number}") }
        };
        let row = |host: usize| {
            let (name, leaf, spine) = (format!("n{host}"), label("leaf", host % 2), label("spine", 7));
            match form {
                0 | 3 => vec![name, leaf, spine],
                1 => vec![name, "leaf1".into(), "host".into(), "switch".into(), "100G".into()],
                _ => vec![name, "Ready".into(), "worker".into(), "3d".into(), "v1.31".into(), leaf, spine],
            }
        };
        let header = match form {
            0 => "host leaf spine",
            1 => "source destination source_type destination_type speed",
            3 => "HOST LEAF SPINE",
            _ => "NAME STATUS ROLES AGE VERSION LEAF SPINE",
        };
        let header = header.split(' ').map(str::to_owned).collect();
        let mut cells: Vec<Vec<String>> = [header].into_iter().chain((1..=hosts).map(row)).collect();
        let is_aligned = form > 1;
        if !is_aligned {
            let turn = turn % cells[0].len();
            cells.iter_mut().for_each(|row| row.rotate_left(turn));
        }
        Self { cells, is_aligned }
    }

    fn line(&self, row: &[String]) -> String {
        if !self.is_aligned {
            return row.join(",");
        }
        let width = |at: usize| self.cells.iter().map(|row| row[at].len()).max().unwrap_or(0) + 3;
        let padded = |(at, cell): (usize, &String)| format!("{cell:<0$}", width(at));
        let line: Vec<String> = row.iter().enumerate().map(padded).collect();
        line.concat().trim_end().to_owned()
    }

    fn lines(&self) -> Vec<String> {
        self.cells.iter().map(|row| self.line(row)).collect()
    }
}

fn import(path: &Path, lines: &[String]) -> Result<Imported, String> {
    std::fs::write(path, lines.join("\n") + "\n").unwrap();
    read(path, &ImportParams::of(path)).map_err(|error| error.to_string())
}

/// What is right for a file with one other line.
enum Right {
    Refused,
    Skipped,
    Either,
}

fn check(path: &Path, lines: &[String], place: usize, plain: &SystemGraph, right: &Right) {
    let text = lines.join("\n");
    match (import(path, lines), right) {
        (Ok(Imported { system, notes }), Right::Skipped | Right::Either) => {
            assert!(system == *plain, "it is another machine: {text}");
            let note = format!("skipped: 1, the first in line {}: `", place + 1);
            assert!(notes.iter().any(|own| own.contains(&note)), "{notes:?}: {text}");
        }
        (Err(error), Right::Refused | Right::Either) => {
            assert!(error.contains(&format!("machine:{}: ", place + 1)), "{error}: {text}");
        }
        (Ok(_), Right::Refused) => panic!("it is read: {text}"),
        (Err(error), Right::Skipped) => panic!("{error}: {text}"),
    }
}

/// A value that is not known is said, and no node or link is another.
fn check_unused(path: &Path, lines: &[String], plain: &SystemGraph) {
    let text = lines.join("\n");
    let Imported { system, notes } = import(path, lines).unwrap();
    let ends = |system: &SystemGraph| -> Vec<(u32, u32)> {
        system.links.iter().map(|link| (link.source, link.destination)).collect()
    };
    assert!(system.nodes == plain.nodes && ends(&system) == ends(plain), "it is another machine: {text}");
    assert!(notes.iter().any(|note| note.starts_with("1 ")), "{notes:?}: {text}");
}

const MORE_PREFIXES: [&str; 4] = ["INFO ", "srun: ", "[n9] ", "n9| "];
const SUFFIXES: [&str; 7] = [" exit", " # moved", " # bad", " (old)", " done", "   logout", " // see below"];
const MESSAGES: [&str; 8] =
    ["-----", "======", "done", "Done.", "(12 rows)", "Reading the nodes", "logout", "WARNING: slow"];

proptest! {
    #[test]
    fn no_row_of_a_table_is_lost_and_no_other_line_is_one(
        form in 0usize..4, hosts in 3usize..9, has_numbers: bool, turn in 0usize..5, place in 0usize..99, kind in 0usize..8, choice in 0usize..99,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("machine");
        let table = Table::of(form, hosts, has_numbers, turn);
        let mut lines = table.lines();
        let plain = import(&path, &lines).unwrap().system;
        let row = 1 + place % hosts;
        let below = 1 + place % (hosts + 1);
        match kind {
            0 => {
                let prefix = PREFIXES.iter().chain(&MORE_PREFIXES).nth(choice % 14).unwrap();
                lines[row].insert_str(0, prefix);
                check(&path, &lines, row, &plain, &Right::Refused);
            }
            1 => {
                lines.insert(below, lines[0].clone());
                check(&path, &lines, below, &plain, &Right::Skipped);
            }
            2 => {
                let mut header = table.cells[0].clone();
                let width = header.len();
                header.swap(choice % width, (choice + 1) % width);
                lines.insert(below, if table.is_aligned { header.join("   ") } else { header.join(",") });
                check(&path, &lines, below, &plain, &Right::Refused);
            }
            3 => {
                // Numbers may be below the names of their columns or not, and not for all of them.
                let name = ["total", "avg", "Sum", "max"][choice % 4];
                let sum = |at: usize| if at == 0 { name.to_owned() } else { (at + choice).to_string() };
                let width = table.cells[0].len();
                let length = if table.is_aligned { 2 + turn % (width - 1) } else { width };
                let sum: Vec<String> = (0..length).map(sum).collect();
                let blanks = " ".repeat(1 + choice % 5);
                lines.insert(below, if table.is_aligned { sum.join(&blanks) } else { sum.join(",") });
                check(&path, &lines, below, &plain, &Right::Either);
            }
            4 => {
                // Half of a row: its cells up to one, the last of them whole.
                let cells = &table.cells[row][..=choice % (table.cells[row].len() - 1)];
                prop_assume!(cells[0].contains(|c: char| c.is_ascii_digit()));
                lines[row] = table.line(cells);
                // The label that no other row has.
                let is_label_of_one = table.is_aligned && cells.len() > 4;
                prop_assume!(!is_label_of_one);
                check(&path, &lines, row, &plain, &Right::Refused);
            }
            5 => {
                lines[row].push_str(SUFFIXES[choice % SUFFIXES.len()]);
                let last = table.cells[0].last().unwrap();
                if ["source_type", "destination_type", "speed"].contains(&&**last) {
                    check_unused(&path, &lines, &plain);
                } else {
                    check(&path, &lines, row, &plain, &Right::Refused);
                }
            }
            6 => {
                let names = ["host", "leaf", "spine", "source", "destination", "HOST", "NAME"];
                let has_names = names.contains(&&*table.cells[0][0])
                    && table.cells[row][0].starts_with(char::is_alphabetic);
                prop_assume!(has_names);
                let prefix = PREFIXES.iter().chain(&MORE_PREFIXES).nth(choice % 14).unwrap();
                lines[1..].iter_mut().for_each(|line| line.insert_str(0, prefix));
                let error = import(&path, &lines).err();
                assert!(error.is_some_and(|error| error.contains("machine:")), "{}", lines.join("\n"));
            }
            _ => {
                lines.insert(below, MESSAGES[choice % MESSAGES.len()].to_owned());
                check(&path, &lines, below, &plain, &Right::Skipped);
            }
        }
    }
}
