//! Files of the Standard Task Graph Set (Tobita and Kasahara, Waseda University).
//!
//! The number of tasks, then a line for each of them and for an entry and an exit task without work: its number, processing time,
//! number of predecessors, and their numbers. Lines that begin with `#` are comments. Messages are empty.
//!
//! In the variant with message costs, the first line also has a number of processors, and each predecessor is followed by
//! the cost of its message; a pair has a line of its own, or all are in the line of the task.

use hopmap_model::{Dependency, TaskDag, WorkUnit};
use hopmap_text::{FileError, Line, lines_of, shown, utf8};

use super::common::{bytes_of_weight, finish, work_of_weight};

const HELP: &str = "the file has the number of tasks without the two dummies, then a line per task: number, time, count, predecessors";

/// What a file with message costs has.
const COSTS: &str = "a file whose first line has two numbers, of tasks and of processors, has the cost of the message after each predecessor, \
     in lines of two numbers or in the line of the task";

/// Reads a file of the Standard Task Graph Set; `scale` is the factor of message costs.
pub fn read(bytes: &[u8], scale: f64) -> Result<TaskDag, FileError> {
    let lines = lines_of(utf8(bytes)?, HELP);
    let mut lines =
        lines.filter(|line| !line.text.trim().is_empty() && !line.text.trim_start().starts_with('#'));
    let Some(first) = lines.next() else {
        return Err(FileError::new("the graph has no tasks", HELP));
    };
    let mut numbers = Numbers::new(first);
    let announced = numbers.integer("the number of tasks")?;
    let scale = numbers.words.clone().next().map(|_| scale);
    if scale.is_some() {
        numbers.integer("the number of processors")?;
    }
    numbers.end()?;
    let (mut work, mut dependencies, mut last) = (Vec::new(), Vec::new(), first);
    while let Some(line) = lines.next() {
        last = line;
        let mut numbers = Numbers::new(line);
        let task = work.len() as u64;
        let id = numbers.integer("the number of the task")?;
        if id != task {
            let problem = match id < task {
                true => format!("duplicate task {id}"),
                false => format!("expected task {task}, found task {id}"),
            };
            return Err(line.error(problem));
        }
        work.push(numbers.work(task)?);
        numbers.predecessors(&mut lines, (task, announced, scale), &mut dependencies)?;
    }
    // Files of other authors omit the two dummies. One that begins with a dummy and ends without one is cut.
    let found = work.len() as u64;
    let is_dummy = |task: Option<&f64>| task.is_some_and(|&work| work == 0.0);
    let is_cut = found == announced && is_dummy(work.first()) && !is_dummy(work.last());
    if is_cut || found != announced && found != announced.saturating_add(2) {
        let problem = format!("{found} tasks, but the file announces {announced} and two dummies");
        return Err(last.error(problem));
    }
    if let Some(edge) = dependencies.iter().find(|edge: &&Dependency| u64::from(edge.source) >= found) {
        let problem =
            format!("task {} waits for task {}, which does not exist", edge.destination, edge.source);
        return Err(FileError::new(problem, HELP));
    }
    finish(work, dependencies, Vec::new(), WorkUnit::Time)
}

/// The numbers in a line.
struct Numbers<'a> {
    line: Line<'a>,
    words: std::str::SplitAsciiWhitespace<'a>,
}

impl<'a> Numbers<'a> {
    fn new(line: Line<'a>) -> Self {
        Self { line, words: line.text.split_ascii_whitespace() }
    }

    fn wrong(&self, problem: impl Into<String>) -> FileError {
        self.line.error(problem)
    }

    fn word(&mut self, what: &str) -> Result<&'a str, FileError> {
        self.words.next().ok_or_else(|| self.wrong(format!("expected {what}, found the end of the line")))
    }

    fn integer(&mut self, what: &str) -> Result<u64, FileError> {
        let word = self.word(what)?;
        word.parse()
            .map_err(|_| self.line.error_at(word, format!("expected {what}, found `{}`", shown(word))))
    }

    fn end(&mut self) -> Result<(), FileError> {
        match self.words.next() {
            None => Ok(()),
            Some(word) => Err(self.wrong(format!("unexpected `{}` at the end of the line", shown(word)))),
        }
    }

    fn work(&mut self, task: u64) -> Result<f64, FileError> {
        let word = self.word("the processing time")?;
        let wrong = |problem: &str| {
            let problem = format!("the time of task {task} is `{}`, which {problem}", shown(word));
            self.line.error_at(word, problem)
        };
        let time = word.parse().map_err(|_| wrong("is not a number"))?;
        work_of_weight(time).map_err(|problem| wrong(&problem))
    }

    /// The number of predecessors of a task, and their numbers, each with a cost if these have a scale.
    fn predecessors(
        &mut self,
        lines: &mut impl Iterator<Item = Line<'a>>,
        (task, announced, scale): (u64, u64, Option<f64>),
        to: &mut Vec<Dependency>,
    ) -> Result<(), FileError> {
        let count = self.integer("the number of predecessors")?;
        let has_lines = scale.is_some() && self.words.clone().next().is_none();
        let begin = to.len();
        for _ in 0..count {
            if has_lines {
                self.end()?;
                let missing = || self.wrong(format!("the file ends before the predecessors of task {task}"));
                *self = Self::new(lines.next().ok_or_else(missing)?);
            }
            let source = self.predecessor(task, announced)?;
            let bytes = scale.map_or(Ok(0), |scale| self.bytes(source, scale))?;
            to.push(Dependency { source, destination: task as u32, bytes });
        }
        to[begin..].sort_unstable();
        if let Some(pair) = to[begin..].windows(2).find(|pair| pair[0].source == pair[1].source) {
            return Err(self.wrong(format!("task {task} waits for task {} twice", pair[0].source)));
        }
        self.end()
    }

    fn bytes(&mut self, source: u32, scale: f64) -> Result<u64, FileError> {
        let word = self.word("the cost of the message").map_err(|error| error.with_help(COSTS))?;
        let wrong = |problem: &str| {
            let problem = format!("the message of task {source} costs `{}`, which {problem}", shown(word));
            self.line.error_at(word, problem)
        };
        let cost = word.parse().map_err(|_| wrong("is not a number"))?;
        bytes_of_weight(cost, scale).map_err(|(problem, help)| wrong(&problem).with_help(help))
    }

    fn predecessor(&mut self, task: u64, announced: u64) -> Result<u32, FileError> {
        let source = self.integer("a predecessor")?;
        if source > announced.saturating_add(1) {
            return Err(self.wrong(format!("task {task} waits for task {source}, which does not exist")));
        }
        u32::try_from(source).map_err(|_| self.wrong(format!("the number of task {source} is too large")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "          2\n 0  0  0\n 1 20  1  0\n 2  1.5  2  1  0\n 3 0 2 2 1\n# Standard Task Graph Set Project\n# more 4\n";

    /// Once a file that lost its last two lines was taken for one whose count includes the dummies.
    #[test]
    fn a_file_that_begins_with_a_dummy_ends_with_one() {
        let whole = "2\n0 0 0\n1 4 1 0\n2 5 1 1\n3 0 1 2\n";
        assert_eq!(read(whole.as_bytes(), 1.0).unwrap().tasks.len(), 4);
        for lines in 1..4 {
            let cut: String = whole.split_inclusive('\n').take(1 + lines).collect();
            let error = read(cut.as_bytes(), 1.0).unwrap_err();
            assert!(
                error.problem.contains("tasks, but the file announces 2 and two dummies"),
                "{cut}{error}"
            );
        }
        assert_eq!(read(b"2\n0 3 0\n1 4 1 0\n", 1.0).unwrap().tasks.len(), 2);
    }

    #[test]
    fn dummies_are_tasks_without_work() {
        let dag = read(TEXT.as_bytes(), 1.0).unwrap();
        assert_eq!(dag.tasks.iter().map(|task| task.work).collect::<Vec<_>>(), [0.0, 20.0, 1.5, 0.0]);
        let edges: Vec<_> =
            dag.dependencies.iter().map(|edge| (edge.source, edge.destination, edge.bytes)).collect();
        assert_eq!(edges, [(0, 1, 0), (0, 2, 0), (1, 2, 0), (1, 3, 0), (2, 3, 0)]);
        assert_eq!((dag.unit, dag.names.len()), (WorkUnit::Time, 0));
        assert_eq!(read(b"1\n0 5 0\n", 1.0).unwrap().tasks.len(), 1);
    }

    #[test]
    fn mistakes_have_lines() {
        let problem = |from: &str, to: &str| {
            assert!(TEXT.contains(from), "{from}");
            let error = read(TEXT.replacen(from, to, 1).as_bytes(), 1.0).unwrap_err();
            error.line.map(|line| format!("line {line}: ")).unwrap_or_default() + &error.problem
        };
        assert_eq!(problem("20", "-20"), "line 3: the time of task 1 is `-20`, which is negative");
        assert!(
            problem("20", "nan").contains("is not a finite number")
                && problem("20", "x").contains("is not a number")
        );
        assert_eq!(problem("1  0\n", "1  9\n"), "line 3: task 1 waits for task 9, which does not exist");
        assert_eq!(problem("1  0\n", "2  0\n"), "line 3: expected a predecessor, found the end of the line");
        assert_eq!(problem("1  0\n", "0  0\n"), "line 3: unexpected `0` at the end of the line");
        assert_eq!(problem("1  0\n 3", "0  0\n 3"), "line 4: task 2 waits for task 0 twice");
        assert_eq!(problem("\n 2 ", "\n 1 "), "line 4: duplicate task 1");
        assert_eq!(problem("\n 2 ", "\n 7 "), "line 4: expected task 2, found task 7");
        assert_eq!(problem(" 3 0 2 2 1\n", ""), "line 4: 3 tasks, but the file announces 2 and two dummies");
        assert_eq!(problem(" 2  1  0", " 2  1  3"), "task `2` is part of a dependency cycle");
        assert_eq!(problem("          2", "2 2 2"), "line 1: unexpected `2` at the end of the line");
        let without = "line 3: expected the cost of the message, found the end of the line";
        assert_eq!(problem("          2", "2 2"), without);
        assert!(problem("          2", "99999999999999999999").contains("expected the number of tasks"));
        assert_eq!(read(b"# only\n\n", 1.0).unwrap_err().to_string(), "the graph has no tasks");
        assert_eq!(
            read(b"2\n0 0 0\n1 0 1 3\n", 1.0).unwrap_err().to_string(),
            "task 1 waits for task 3, which does not exist"
        );
    }

    /// Once refused at the second number; now no cost may be read as a task, or dropped.
    #[test]
    fn costs_are_messages() {
        let edges = |text: &str, scale: f64| -> Result<Vec<_>, FileError> {
            let edges = read(text.as_bytes(), scale)?.dependencies;
            Ok(edges.iter().map(|edge| (edge.source, edge.destination, edge.bytes)).collect())
        };
        let expected = vec![(0, 1, 2), (0, 2, 1), (1, 2, 3)];
        for text in [
            "3\t2\n 0 3 0\n 1 5 1\n\t0 2\n 2 4 2\n\t1 3\n# a\n\t0 1\n",
            "3 2\n0 3 0\n1 5 1 0 2\n2 4 2 1 3 0 1\n",
        ] {
            assert_eq!(edges(text, 1.0), Ok(expected.clone()));
        }
        assert_eq!(edges("2 2\n0 3 0\n1 5 1\n0 2.5\n", 10.0), Ok(vec![(0, 1, 25)]));
        for (text, line, problem) in [
            ("2 2\n0 3 0\n1 5 1\n0 2.5\n", 4, "the message of task 0 costs `2.5`, which is not an integer"),
            ("2 2\n0 3 0\n1 5 1\n0 2 7\n", 4, "unexpected `7`"),
            ("2 2\n0 3 0\n1 5 1\n", 3, "the file ends before the predecessors of task 1"),
            ("2 2\n0 3 0\n1 5 2\n0 2\n0 3\n", 5, "task 1 waits for task 0 twice"),
        ] {
            let error = edges(text, 1.0).unwrap_err();
            assert!(error.line == Some(line) && error.problem.contains(problem), "{error:?}");
        }
    }
}
