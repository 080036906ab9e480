//! Files of the Standard Task Graph Set (Tobita and Kasahara, Waseda University).
//!
//! The number of tasks, then for each of them and for a first and a last task without work: its number, its processing time, how many
//! tasks it waits for, and which. Lines that begin with `#` are for people. Messages are empty; the variant with costs of messages
//! is not read.

use hopmap_model::{Dependency, TaskDag, WorkUnit};
use hopmap_text::{FileError, Line, lines_of, shown, utf8};

use super::common::{finish, work_of_weight};

const HELP: &str = "the first number is how many tasks there are, without the two dummies; then a line a task: number, time, count, predecessors";

/// Reads a file of the Standard Task Graph Set.
pub fn read(bytes: &[u8]) -> Result<TaskDag, FileError> {
    let lines = lines_of(utf8(bytes)?, HELP);
    let mut lines =
        lines.filter(|line| !line.text.trim().is_empty() && !line.text.trim_start().starts_with('#'));
    let Some(first) = lines.next() else {
        return Err(FileError::new("there are no tasks", HELP));
    };
    let mut numbers = Numbers::new(first);
    let said = numbers.whole("the number of tasks")?;
    numbers.end()?;
    let (mut work, mut dependencies, mut last) = (Vec::new(), Vec::new(), first);
    for line in lines {
        last = line;
        let mut numbers = Numbers::new(line);
        let task = work.len() as u64;
        let id = numbers.whole("the number of the task")?;
        if id != task {
            let problem = match id < task {
                true => format!("there are two tasks {id}"),
                false => format!("task {id} stands where task {task} should be"),
            };
            return Err(line.error(problem));
        }
        work.push(numbers.work(task)?);
        numbers.predecessors(task, said, &mut dependencies)?;
    }
    // Files of others leave the two dummies out.
    let found = work.len() as u64;
    if found != said && found != said.saturating_add(2) {
        let problem = format!("there are {found} tasks, but the file says {said} and two dummies");
        return Err(last.error(problem));
    }
    if let Some(edge) = dependencies.iter().find(|edge: &&Dependency| u64::from(edge.source) >= found) {
        let problem = format!("task {} waits for task {}, which is not there", edge.destination, edge.source);
        return Err(FileError::new(problem, HELP));
    }
    finish(work, dependencies, Vec::new(), WorkUnit::Time)
}

/// The numbers of a line.
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
        self.words.next().ok_or_else(|| self.wrong(format!("the line ends where {what} should be")))
    }

    fn whole(&mut self, what: &str) -> Result<u64, FileError> {
        let word = self.word(what)?;
        word.parse().map_err(|_| {
            self.line.error_at(word, format!("`{}` is no number where {what} should be", shown(word)))
        })
    }

    fn end(&mut self) -> Result<(), FileError> {
        match self.words.next() {
            None => Ok(()),
            Some(word) => Err(self.wrong(format!("`{}` stands behind the end of the line", shown(word)))),
        }
    }

    fn work(&mut self, task: u64) -> Result<f64, FileError> {
        let word = self.word("the processing time")?;
        let wrong = |problem: &str| {
            let problem = format!("the time of task {task} is `{}`, which {problem}", shown(word));
            self.line.error_at(word, problem)
        };
        let time = word.parse().map_err(|_| wrong("is no number"))?;
        work_of_weight(time).map_err(|problem| wrong(&problem))
    }

    /// How many tasks a task waits for, and these.
    fn predecessors(&mut self, task: u64, said: u64, to: &mut Vec<Dependency>) -> Result<(), FileError> {
        let count = self.whole("the number of predecessors")?;
        let begin = to.len();
        for _ in 0..count {
            let source = self.whole("a predecessor")?;
            if source > said.saturating_add(1) {
                return Err(self.wrong(format!("task {task} waits for task {source}, which is not there")));
            }
            let source = u32::try_from(source)
                .map_err(|_| self.wrong(format!("task {source} has a number that is too large")))?;
            to.push(Dependency { source, destination: task as u32, bytes: 0 });
        }
        to[begin..].sort_unstable();
        if let Some(pair) = to[begin..].windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(self.wrong(format!("task {task} waits for task {} twice", pair[0].source)));
        }
        self.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "          2\n 0  0  0\n 1 20  1  0\n 2  1.5  2  1  0\n 3 0 2 2 1\n# Standard Task Graph Set Project\n# more 4\n";

    #[test]
    fn dummies_are_tasks_without_work() {
        let dag = read(TEXT.as_bytes()).unwrap();
        assert_eq!(dag.tasks.iter().map(|task| task.work).collect::<Vec<_>>(), [0.0, 20.0, 1.5, 0.0]);
        let edges: Vec<_> =
            dag.dependencies.iter().map(|edge| (edge.source, edge.destination, edge.bytes)).collect();
        assert_eq!(edges, [(0, 1, 0), (0, 2, 0), (1, 2, 0), (1, 3, 0), (2, 3, 0)]);
        assert_eq!((dag.unit, dag.names.len()), (WorkUnit::Time, 0));
        assert_eq!(read(b"1\n0 5 0\n").unwrap().tasks.len(), 1);
    }

    #[test]
    fn mistakes_have_lines() {
        let problem = |from: &str, to: &str| {
            assert!(TEXT.contains(from), "{from}");
            let error = read(TEXT.replacen(from, to, 1).as_bytes()).unwrap_err();
            error.line.map(|line| format!("line {line}: ")).unwrap_or_default() + &error.problem
        };
        assert_eq!(problem("20", "-20"), "line 3: the time of task 1 is `-20`, which is negative");
        assert!(
            problem("20", "nan").contains("is no number that can be")
                && problem("20", "x").contains("is no number")
        );
        assert_eq!(problem("1  0\n", "1  9\n"), "line 3: task 1 waits for task 9, which is not there");
        assert_eq!(problem("1  0\n", "2  0\n"), "line 3: the line ends where a predecessor should be");
        assert_eq!(problem("1  0\n", "0  0\n"), "line 3: `0` stands behind the end of the line");
        assert_eq!(problem("1  0\n 3", "0  0\n 3"), "line 4: task 2 waits for task 0 twice");
        assert_eq!(problem("\n 2 ", "\n 1 "), "line 4: there are two tasks 1");
        assert_eq!(problem("\n 2 ", "\n 7 "), "line 4: task 7 stands where task 2 should be");
        assert_eq!(
            problem(" 3 0 2 2 1\n", ""),
            "line 4: there are 3 tasks, but the file says 2 and two dummies"
        );
        assert_eq!(problem(" 2  1  0", " 2  1  3"), "task `2` waits for itself, by way of others");
        assert_eq!(problem("          2", "2 2"), "line 1: `2` stands behind the end of the line");
        assert!(problem("          2", "99999999999999999999").contains("is no number where"));
        assert_eq!(read(b"# only\n\n").unwrap_err().to_string(), "there are no tasks");
        assert_eq!(
            read(b"2\n0 0 0\n1 0 1 3\n").unwrap_err().to_string(),
            "task 1 waits for task 3, which is not there"
        );
    }
}
