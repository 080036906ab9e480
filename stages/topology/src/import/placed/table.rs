//! Tables with aligned columns and capitals in the header: `kubectl get nodes -L LABEL,…`, also `-o wide`, and
//! `-o custom-columns`.
//!
//! A label that is not set is an empty cell, so cells are what is below the names of the header (kubectl aligns with
//! `text/tabwriter` of Go).

use super::super::Result;
use super::super::format::malformed;

const HELP: &str = "give what `kubectl get nodes -L LABEL,…` prints, with its header and its blanks";

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

/// The cells of every line below the header, with the number of the line.
pub(super) fn rows(text: &str) -> Result<Vec<(usize, Vec<String>)>> {
    let Some((first, header)) = header(text) else { return Err(malformed(None, "no header", HELP)) };
    let blank = |letters: &[char], at: usize| letters.get(at).is_none_or(|letter| letter.is_whitespace());
    let letters: Vec<char> = header.chars().collect();
    let begins = |at: &usize| !blank(&letters, *at) && (*at == 0 || blank(&letters, at - 1));
    let starts: Vec<usize> = (0..letters.len()).filter(begins).collect();
    let mut rows = Vec::new();
    for (line, text) in (1..).zip(text.lines()).skip(first).filter(|(_, text)| !text.trim().is_empty()) {
        let letters: Vec<char> = text.chars().collect();
        let ends = starts.iter().skip(1).copied().chain([letters.len()]);
        let cell = |(&start, end): (&usize, usize)| {
            let cell: String = letters.iter().take(end).skip(start).collect();
            let is_below = !blank(&letters, start) && (start == 0 || blank(&letters, start - 1));
            match cell.trim() {
                cell if cell.is_empty() || is_below => Ok(cell.to_owned()),
                cell => {
                    let problem = format!("`{cell}` does not begin below a name of the header");
                    Err(malformed(line, problem, HELP))
                }
            }
        };
        rows.push((line, starts.iter().zip(ends).map(cell).collect::<Result<_>>()?));
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use crate::import::{Format, ImportError, ImportParams, Imported, hops, read, recognise};

    fn import(text: &str) -> Result<Imported, ImportError> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        assert_eq!(recognise(file.path()).unwrap(), Format::KubectlNodes);
        read(file.path(), &ImportParams::default())
    }

    /// As `text/tabwriter` aligns: three blanks between columns, none after the last one.
    fn aligned(rows: &[[&str; 5]]) -> String {
        let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap() + 3;
        let cell = |row: &[&str; 5], at: usize| format!("{:<1$}", row[at], width(at));
        let line = |row| (0..5).map(|at| cell(row, at)).collect::<Vec<_>>().concat();
        rows.iter().map(|row| line(row).trim_end().to_owned()).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn cells_are_below_their_names() {
        let text = aligned(&[
            ["NAME", "STATUS", "ROLES", "LEAF", "SPINE"],
            ["n1", "Ready", "<none>", "l1", "s1"],
            ["n2", "Ready,SchedulingDisabled", "worker", "l1", "s1"],
            ["n3", "Ready", "worker", "", "s1"],
            ["n4-mit-ü", "NotReady", "", "l2", ""],
            ["n5", "Ready", "worker", "", ""],
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
}
