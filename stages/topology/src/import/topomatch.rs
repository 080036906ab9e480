//! Topologies of `TopoMatch` and `TreeMatch`.
//!
//! A `.tgt` file of theirs is a `tleaf` of Scotch, outermost level first and with costs that add up from the leaves inwards to outwards as
//! in Scotch (`tgt_to_tm` in the sources of `TreeMatch`), so the reader of Scotch's targets recognises and reads it. They differ in three
//! things, which count where the format is said to be `topomatch`: only the first line is read; `tleaf` may stand anywhere in it; and a
//! level may have one branch or cost nothing. Files of hwloc and matrices of costs, which `TopoMatch` takes as well, are formats of
//! their own here; a file of numbers is passed on to that of matrices.

use std::path::Path;

use hopmap_text::shown;

use super::reader::{Reader, malformed, one_file, read_text};
use super::{Format, ImportError, ImportParams, Imported, finish, matrix_csv, scotch};

pub(super) static READER: Reader = Reader {
    format: Format::Topomatch,
    // What both read alike is recognised as Scotch's.
    recognises: |_| false,
    files: one_file,
    read,
};

const MOST_LEVELS: usize = 32;
/// Bytes of a line that `TreeMatch` reads.
const LINE: usize = 1023;

fn read(path: &Path, params: &ImportParams) -> Result<Imported, ImportError> {
    finish::check(params)?;
    let text = read_text(path)?;
    let line = text.lines().next().unwrap_or_default();
    let numbers = line.find("tleaf").and_then(|place| line.get(place + "tleaf".len()..));
    let Some(numbers) = numbers else {
        if line.split_whitespace().next().is_some_and(|word| word.parse::<f64>().is_ok()) {
            return (matrix_csv::READER.read)(path, params);
        }
        return Err(malformed(
            path,
            1,
            "the first line has no `tleaf`",
            "TopoMatch reads `tleaf 3 32 500 100 10 8 1`: the number of levels, then branches and cost of each, outermost first",
        ));
    };
    let levels = levels(path, numbers)?;
    let mut sum = 0.0;
    let (mut branches, mut costs) = (Vec::new(), Vec::new());
    for (arity, cost) in levels.into_iter().rev() {
        sum += cost;
        branches.push(arity);
        costs.push(sum);
    }
    let mut notes = Vec::new();
    if line.len() > LINE {
        notes.push(format!("TopoMatch itself reads only {LINE} characters of the line"));
    }
    if text.lines().skip(1).any(|line| !line.trim().is_empty()) {
        notes.push("what stands behind the first line is not read; TopoMatch does the same".into());
    }
    Ok(Imported { system: scotch::tree(&branches, &costs, params, path)?, notes })
}

/// Branches and cost of every level, outermost first.
fn levels(path: &Path, numbers: &str) -> Result<Vec<(u32, f64)>, ImportError> {
    let mut words = numbers.split_whitespace();
    let mut number = |what: &str, least: u32| {
        let word = words.next().unwrap_or_default();
        match word.parse::<u32>() {
            Ok(number) if number >= least => Ok(number),
            _ if word.is_empty() => Err(malformed(
                path,
                1,
                format!("the line ends where {what} should be"),
                "behind `tleaf` stand the number of levels, then branches and cost of each",
            )),
            _ => Err(malformed(
                path,
                1,
                format!("{what} is `{}`", shown(word)),
                format!("it is a whole number, {least} or more"),
            )),
        }
    };
    let count = number("the number of levels", 0)? as usize;
    if count > MOST_LEVELS {
        return Err(malformed(
            path,
            1,
            format!("there are {count} levels, more than {MOST_LEVELS}"),
            "leave out levels with one branch",
        ));
    }
    let level = |_| {
        Ok((number("the number of branches of a level", 1)?, f64::from(number("the cost of a level", 0)?)))
    };
    let levels = (0..count).map(level).collect::<Result<_, ImportError>>()?;
    match words.next() {
        None => Ok(levels),
        Some(word) => Err(malformed(
            path,
            1,
            format!("`{}` stands behind the last of {count} levels", shown(word)),
            "a level has two numbers: branches and cost",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn import(text: &str, format: Format) -> Result<Imported, String> {
        let file = std::env::temp_dir().join(format!("hopmap-topomatch-{}-{:p}", std::process::id(), &text));
        std::fs::write(&file, text).unwrap();
        let params = ImportParams { format: Some(format), ..ImportParams::default() };
        let read = super::super::read(&file, &params)
            .map_err(|error| error.to_string().replace(&format!("{}", file.display()), "F"));
        std::fs::remove_file(file).unwrap();
        read
    }

    #[test]
    fn it_is_a_tleaf_of_scotch() {
        let text = "tleaf 3 3 500 4 100 2 10\n";
        let scotch = import(text, Format::Scotch).unwrap();
        assert_eq!(import(text, Format::Topomatch).unwrap(), scotch);
        assert_eq!(scotch.system.costs().block(&[0, 23])[1] as u32, 610);
        let lax = import("my tleaf 2 1 7 4 0\nrest", Format::Topomatch).unwrap();
        assert_eq!((lax.system.slots.len(), lax.notes.len()), (4, 1));
        assert_eq!(lax.system.costs().between(0, 3) as u32, 0);
    }

    #[test]
    fn what_is_wrong_is_said() {
        let message = |text: &str| import(text, Format::Topomatch).unwrap_err();
        assert_eq!(message("cmplt 4"), "F:1: the first line has no `tleaf`");
        assert_eq!(message("tleaf 2 3 4 5"), "F:1: the line ends where the cost of a level should be");
        assert_eq!(message("tleaf 1 0 4"), "F:1: the number of branches of a level is `0`");
        assert_eq!(message("tleaf 1 2 4 7"), "F:1: `7` stands behind the last of 1 levels");
        assert!(message("tleaf 99").contains("more than 32"));
        assert!(message("tleaf 2 65536 1 65536 1").contains("more than 16777216 slots"));
    }
}
