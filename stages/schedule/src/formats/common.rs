//! Code shared by the readers of task graphs and of files of PARUS: weights, and keys with values.

use std::path::Path;
use std::str::FromStr;

use hopmap_model::{Dependency, Task, TaskDag, TaskDagError, WorkUnit};
use hopmap_text::{FileError, Words};

/// Maximum file size in bytes.
pub(crate) const MOST_BYTES: u64 = 1 << 30;

/// Larger integers are not exact in a double.
const MOST: f64 = (1u64 << 53) as f64;

/// The contents of a file.
pub(crate) fn read_file<T>(
    path: &Path,
    read: impl FnOnce(&[u8]) -> Result<T, FileError>,
) -> Result<T, FileError> {
    read(&hopmap_text::read(path, MOST_BYTES)?).map_err(|error| error.in_file(path))
}

/// The work of a task: a number of zero or more that is not too large; otherwise a description of the error.
pub(super) fn work_of_weight(work: f64) -> Result<f64, String> {
    match work {
        _ if !work.is_finite() => Err("is not a finite number".to_owned()),
        _ if work < 0.0 => Err("is negative".to_owned()),
        _ if work > MOST => Err("is too large to be exact".to_owned()),
        _ => Ok(work),
    }
}

/// The weight of an edge as integer bytes; otherwise a description of the error and a remedy.
pub(super) fn bytes_of_weight(weight: f64, scale: f64) -> Result<u64, (String, String)> {
    let weight = work_of_weight(weight)
        .map_err(|problem| (problem, "weights must be numbers from 0 to 2^53".to_owned()))?;
    let scaled = weight * scale;
    if scaled > MOST {
        let help = "weights times `scale` must be at most 2^53".to_owned();
        return Err((format!("is too large to be exact with `scale = {scale}`"), help));
    }
    // Reading a decimal number and scaling it round once each.
    let off = (scaled - scaled.round()).abs();
    if off <= if scale.to_bits() == 1f64.to_bits() { 0.0 } else { 2.0 * f64::EPSILON * scaled } {
        return Ok(scaled.round() as u64);
    }
    // The power of ten that makes it an integer, if it has few zeros.
    let digits = format!("{weight}").split_once('.').map_or(0, |(_, digits)| digits.len() as u32);
    let scale = if (1..=9).contains(&digits) { 10u64.pow(digits) } else { 1000 };
    let help = format!(
        "use `scale = {scale}` to multiply edge weights, and `bandwidth = {scale}` of the scheduler to compensate"
    );
    Err(("is not an integer".to_owned(), help))
}

/// The graph of tasks with dependencies, in any order.
pub(super) fn finish(
    work: Vec<f64>,
    mut dependencies: Vec<Dependency>,
    names: Vec<String>,
    unit: WorkUnit,
) -> Result<TaskDag, FileError> {
    if work.is_empty() {
        return Err(FileError::new("the graph has no tasks", "a graph needs at least one task"));
    }
    dependencies.sort_unstable();
    let tasks = work.into_iter().map(|work| Task { rank: None, work }).collect();
    let dag = TaskDag { tasks, dependencies, names, unit, recorded_s: None };
    dag.check().map_err(|error| {
        let problem = match error {
            TaskDagError::Cycle(task) => {
                format!("task `{}` is part of a dependency cycle", dag.name(task))
            }
            error => error.to_string(),
        };
        FileError::new(problem, "dependencies between tasks must be acyclic")
    })?;
    Ok(dag)
}

/// The words of a non-empty file. Comments are as in C and C++; a comment inside a word splits it here, but not in PARUS.
/// `longest` is the buffer size of PARUS for a word or text.
pub(super) fn words<'a>(bytes: &'a [u8], longest: usize, help: &'static str) -> Result<Words<'a>, FileError> {
    let mut words = Words::of(bytes, help).with_comments().of_at_most(longest);
    match words.is_at_end()? {
        true => Err(words.error("the file is empty")),
        false => Ok(words),
    }
}

/// A key and its number.
pub(super) fn value<T: FromStr>(words: &mut Words<'_>, key: &str) -> Result<T, FileError> {
    words.expect(key)?;
    words.number(format_args!("`{key}`"))
}

/// A key and its text in quotation marks.
pub(super) fn text(words: &mut Words<'_>, key: &str) -> Result<String, FileError> {
    words.expect(key)?;
    words.quoted()?.ok_or_else(|| words.error(format!("`{key}` must be a quoted string")))
}

/// A count and a list of that many numbers: `num_nodes 3`, then `nodes ( 1 2 3 )`.
pub(super) fn list(words: &mut Words<'_>, count_key: &str, key: &str) -> Result<Vec<u64>, FileError> {
    let count: u64 = value(words, count_key)?;
    words.expect(key)?;
    words.expect("(")?;
    let mut numbers = Vec::new();
    while words.word()? != ")" {
        let number = words.text()?.parse().map_err(|_| {
            words.error(format!("`{}` in the list of `{key}` is not a non-negative integer", words.shown()))
        })?;
        numbers.push(number);
    }
    if numbers.len() as u64 != count {
        let problem =
            format!("`{count_key}` is {count}, but the list of `{key}` has {} numbers", numbers.len());
        return Err(words.error(problem));
    }
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Words<'_> {
        super::words(text.as_bytes(), 9, "help").unwrap()
    }

    #[test]
    fn texts_and_lists_are_complete() {
        assert_eq!(text(&mut words("a \"\""), "a").unwrap(), "");
        assert_eq!(text(&mut words("a /**/ \"b\nc\""), "a").unwrap(), "b\nc");
        for wrong in ["a b", "a \"b", "a \"0123456789\"", "b"] {
            assert!(text(&mut words(wrong), "a").is_err(), "{wrong}");
        }
        assert_eq!(list(&mut words("n 2 a ( 1 2 )"), "n", "a").unwrap(), [1, 2]);
        let problem = |text| list(&mut words(text), "n", "a").unwrap_err().problem;
        assert_eq!(problem("n 2 a ( 1 )"), "`n` is 2, but the list of `a` has 1 numbers");
        assert_eq!(problem("n 2 a ( -1 )"), "`-1` in the list of `a` is not a non-negative integer");
        assert_eq!(problem("n 2 a ( 1"), "the file ends here");
    }

    #[test]
    fn weights_of_edges_are_integers() {
        assert_eq!(
            (bytes_of_weight(7.0, 1.0), bytes_of_weight(0.0, 1.0), bytes_of_weight(0.07, 100.0)),
            (Ok(7), Ok(0), Ok(7))
        );
        assert_eq!(bytes_of_weight(1e15, 1.0), Ok(1_000_000_000_000_000));
        let (problem, help) = bytes_of_weight(0.25, 1.0).unwrap_err();
        assert!(problem == "is not an integer" && help.contains("`scale = 100`"), "{help}");
        assert!(bytes_of_weight(1.0 / 3.0, 1.0).unwrap_err().1.contains("`scale = 1000`"));
        assert!(
            bytes_of_weight(0.123, 10.0).is_err() && bytes_of_weight(7.000_000_000_000_001, 1.0).is_err()
        );
        assert!(
            [-1.0, f64::NAN, f64::INFINITY, 1e17].iter().all(|&weight| bytes_of_weight(weight, 1.0).is_err())
        );
        assert!(bytes_of_weight(1e10, 1e10).unwrap_err().0.contains("`scale = 10000000000`"));
    }

    #[test]
    fn cycles_are_named() {
        let edge = |source, destination| Dependency { source, destination, bytes: 1 };
        let graph = |edges: &[Dependency]| {
            finish(vec![1.0; 2], edges.to_vec(), vec!["a".into(), "b".into()], WorkUnit::Time)
        };
        assert_eq!(graph(&[edge(0, 1), edge(0, 1)]).unwrap().dependencies.len(), 2);
        let error = graph(&[edge(1, 1)]).unwrap_err();
        assert_eq!(error.problem, "task `b` is part of a dependency cycle");
        assert!(finish(vec![], vec![], vec![], WorkUnit::Time).is_err());
    }
}
