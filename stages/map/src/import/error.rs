//! What is said of files that give no placement.

use hopmap_text::{FileError, Line, shown};

pub(super) const NOT_ONE_TO_ONE: &str = "a slot takes one rank. KaHIP and Scotch balance loads, and with as many parts as vertices \
                                         they often put two ranks on a PE and leave another empty: use VieM, or SharedMap with an \
                                         imbalance of 0";
pub(super) const OTHER_MACHINE: &str = "PE i is slot i of the machine, counted from zero in the order of its hosts: is this the \
                                        machine that the file was made for, with its levels in this order?";
pub(super) const OTHER_PROGRAM: &str = "the file needs a place for every rank of the task graph: is it the graph that the file was \
                                        made for?";

/// An error behind the last line that was read; of the file as a whole where there was none.
#[cold]
pub(super) fn at(line: usize, problem: impl Into<String>, help: &str) -> FileError {
    FileError { line: Some(line).filter(|line| *line > 0), ..FileError::new(problem, help) }
}

/// A number below a bound. `what` says what has it, such as `rank 3 is on PE`.
pub(super) fn below(
    line: Line<'_>,
    word: &str,
    bound: usize,
    what: impl Fn() -> String,
    help: &str,
) -> Result<usize, FileError> {
    let digits = word.bytes().all(|byte| byte.is_ascii_digit());
    let number = word.parse::<usize>().ok().filter(|&number| digits && number < bound);
    number.ok_or_else(|| {
        let range = match bound {
            0 => "there are none".to_owned(),
            bound => format!("numbers go from 0 to {}", bound - 1),
        };
        line.error_at(word, format!("{} `{}`, and {range}", what(), shown(word))).with_help(help)
    })
}
