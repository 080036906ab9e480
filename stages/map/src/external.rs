//! External solvers: the matrices that they read and the permutations that they write.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use hopmap_islands::time_limit;
use hopmap_model::{Context, Error, open_input};
use hopmap_objective::Problem;
use hopmap_process::{Cause, Limits, Output, RunError, run};
use hopmap_text::{FileError, shown};
use tempfile::TempDir;

use crate::error::{MapError, check_plain, help};
use crate::mapper::{Mapper, SearchResult};
use crate::params::{ExternalCommand, ExternalParams, Numbering};

/// Maximum number of slots for which matrices are written.
const MOST_SLOTS: usize = 4096;
/// Maximum size of an answer in bytes.
const MOST_BYTES: usize = 1 << 24;

/// An external solver, which reads two matrices and writes a permutation.
///
/// The input is a quadratic assignment problem in QAPLIB format: the number of slots n, the communication
/// matrix and the cost matrix as integers. Rows of missing ranks are zero. The last n integers of the output
/// are the answer, which is checked. The command starts in the working directory of hopmap, in its own
/// process group, which is killed at the end.
#[derive(Debug, Clone, PartialEq)]
pub struct External {
    command: ExternalCommand,
    numbering: Numbering,
    inverse: bool,
    seconds: Option<f64>,
    /// Time limit.
    time: Option<Duration>,
    seed: u64,
}

impl External {
    /// Checks the parameters.
    pub fn new(params: &ExternalParams) -> Result<Self, Error> {
        let ExternalParams { command, numbering, inverse, time_limit_s: seconds, seed, .. } = params.clone();
        if command.words().first().is_none_or(|word| word.trim().is_empty()) {
            let help = "give a shell command line, or a list of a program and its arguments: [\"solver\", \"{input}\", \"{output}\"]";
            return Err(MapError::new("the command is empty", help).into());
        }
        let uses_limit = command.words().iter().any(|word| word.contains("{seconds}"));
        if uses_limit && seconds.is_none() {
            let problem = "the command uses {seconds}, but `time_limit_s` is not set";
            let help = "set `time_limit_s`, or write the time limit into the command";
            return Err(MapError::new(problem, help).into());
        }
        let grace = |time: Duration| match uses_limit {
            true => time.saturating_add(time / 10).saturating_add(Duration::from_secs(1)),
            false => time,
        };
        let time = time_limit(seconds)?.map(grace);
        Ok(Self { command, numbering, inverse, seconds, time, seed })
    }

    /// Name of the program in messages.
    fn program(&self) -> &str {
        match &self.command {
            ExternalCommand::Shell(line) => line,
            ExternalCommand::Program(words) => &words[0],
        }
    }

    /// Whether the command uses a file.
    fn names(&self, file: Placeholder) -> bool {
        self.command.words().iter().any(|word| word.contains(file.name))
    }

    /// The command with all placeholders replaced.
    fn filled(&self, folder: &Path) -> Command {
        match &self.command {
            ExternalCommand::Shell(line) => {
                let mut command = Command::new("sh");
                command.arg("-c").arg(self.fill(line, folder, quoted));
                command
            }
            ExternalCommand::Program(words) => {
                let mut words = words.iter().map(|word| self.fill(word, folder, str::to_owned));
                let mut command = Command::new(words.next().unwrap_or_default());
                command.args(words);
                command
            }
        }
    }

    fn fill(&self, text: &str, folder: &Path, path: fn(&str) -> String) -> String {
        let mut filled = text.replace("{seed}", &self.seed.to_string());
        if let Some(seconds) = self.seconds {
            filled = filled.replace("{seconds}", &seconds.to_string());
        }
        for place in [INPUT, PROGRAM, MACHINE, OUTPUT] {
            filled = filled.replace(place.name, &path(&folder.join(place.file).to_string_lossy()));
        }
        filled
    }

    /// Writes the files that the command uses.
    fn write(&self, matrices: &Matrices<'_>, folder: &Path) -> Result<(), MapError> {
        for place in [INPUT, PROGRAM, MACHINE].into_iter().filter(|&place| self.names(place)) {
            let path = folder.join(place.file);
            let written = File::create(&path).and_then(|file| {
                let mut file = BufWriter::new(file);
                writeln!(file, "{}\n", matrices.size())?;
                if place != MACHINE {
                    matrices.write_program(&mut file)?;
                }
                if place == INPUT {
                    writeln!(file)?;
                }
                if place != PROGRAM {
                    matrices.write_machine(&mut file)?;
                }
                file.flush()
            });
            written.map_err(|source| MapError::File { path, source })?;
        }
        Ok(())
    }

    /// Runs the command and returns its answer, from standard output or a file, and its messages.
    fn answer(&self, folder: &Path, cx: &Context<'_>) -> Result<Output, MapError> {
        let begin = Instant::now();
        let limits = Limits { time: self.time, output: MOST_BYTES, stop: &|| cx.should_stop() };
        let mut output = run(&mut self.filled(folder), &limits)
            // The command line contains the path of a temporary folder, which would not help in a message.
            .map_err(|error| RunError { command: self.program().to_owned(), ..error })?;
        cx.log(format!("the command took {:.3} s", begin.elapsed().as_secs_f64()));
        if self.names(OUTPUT) {
            output.stdout = read(folder.join(OUTPUT.file))?;
        }
        let (program, place, stderr) = (self.program(), self.place(), output.quoted());
        match &output.stdout {
            bytes if bytes.len() > MOST_BYTES => {
                let problem = format!("`{program}` wrote more than {MOST_BYTES} bytes to {place}{stderr}");
                Err(MapError::new(problem, help(&Cause::Output(MOST_BYTES))))
            }
            bytes if bytes.iter().all(u8::is_ascii_whitespace) => Err(MapError::new(
                format!("`{program}` wrote nothing to {place}{stderr}"),
                "the answer is read from the file {output} if the command uses it, otherwise from standard output",
            )),
            _ => Ok(output),
        }
    }

    /// Where the answer is expected.
    fn place(&self) -> &'static str {
        if self.names(OUTPUT) { "{output}" } else { "standard output" }
    }
}

impl Mapper for External {
    fn map(&self, problem: &Problem, cx: &Context<'_>) -> Result<SearchResult, Error> {
        check_plain(problem, "map/external", MOST_SLOTS)?;
        let folder = folder(&cx.scratch())?;
        let matrices = Matrices::new(problem);
        self.write(&matrices, folder.path())?;
        let output = self.answer(folder.path(), cx)?;
        let what = if self.inverse { "slot" } else { "rank" };
        let answer =
            Answer::read(&output.stdout, problem.slots(), self.numbering, what).map_err(|error| {
                let (program, place, stderr) = (self.program(), self.place(), output.quoted());
                let problem = format!("invalid mapping from `{program}` on {place}: {error}{stderr}");
                MapError::new(problem, error.help_text())
            })?;
        let mut slots = if self.inverse { answer.inverted() } else { answer.permutation.clone() };
        slots.truncate(problem.ranks());
        let cost = matrices.cost(&slots);
        if let Some(stated) = answer.stated.filter(|stated| (stated - cost).abs() > 1e-9 * cost.abs()) {
            cx.log(format!(
                "the command reports cost {stated} (F = {}), but its mapping costs {cost} (F = {})",
                matrices.real(stated),
                matrices.real(cost)
            ));
        }
        Ok(SearchResult::at_once(slots))
    }
}

/// A file that a command may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Placeholder {
    /// Its placeholder in a command.
    name: &'static str,
    file: &'static str,
}

const INPUT: Placeholder = Placeholder { name: "{input}", file: "problem.dat" };
const PROGRAM: Placeholder = Placeholder { name: "{program}", file: "program.txt" };
const MACHINE: Placeholder = Placeholder { name: "{machine}", file: "machine.txt" };
const OUTPUT: Placeholder = Placeholder { name: "{output}", file: "answer.sln" };

/// Creates a temporary folder with an absolute path.
fn folder(scratch: &Path) -> Result<TempDir, MapError> {
    let fault = |source| MapError::File { path: scratch.to_owned(), source };
    let scratch = std::path::absolute(scratch).map_err(fault)?;
    tempfile::Builder::new().prefix("external-").tempdir_in(scratch).map_err(fault)
}

/// Reads an answer, up to one byte more than the limit; empty if the file does not exist.
fn read(path: PathBuf) -> Result<Vec<u8>, MapError> {
    let mut bytes = Vec::new();
    match open_input(&path).and_then(|file| file.take(MOST_BYTES as u64 + 1).read_to_end(&mut bytes)) {
        Ok(_) => Ok(bytes),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(bytes),
        Err(source) => Err(MapError::File { path, source }),
    }
}

/// Quotes a word for the shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Communication and cost matrix of the same size; rows of missing ranks are zero.
///
/// The only code that exports a [`Problem`]. Values are the problem's integers with both directions of a pair
/// added. If all are even, they are halved, so that a QAPLIB problem round-trips.
#[derive(Debug)]
struct Matrices<'p> {
    problem: &'p Problem,
    halved: bool,
}

impl<'p> Matrices<'p> {
    fn new(problem: &'p Problem) -> Self {
        let neighbours = (0..problem.ranks() as u32).flat_map(|rank| problem.neighbours(rank));
        Self { problem, halved: neighbours.into_iter().all(|neighbour| neighbour.weight % 2 == 0) }
    }

    /// Rows and columns of each.
    fn size(&self) -> usize {
        self.problem.slots()
    }

    /// The double sum over both matrices for a mapping.
    fn cost(&self, slots: &[u32]) -> f64 {
        self.problem.cost(slots) as f64 * if self.halved { 1.0 } else { 2.0 }
    }

    /// Converts a double sum to the units of the trace.
    fn real(&self, cost: f64) -> f64 {
        cost / self.problem.scale() / if self.halved { 1.0 } else { 2.0 }
    }

    /// Writes the communication matrix, row by row.
    fn write_program(&self, to: &mut impl Write) -> io::Result<()> {
        let mut row = vec![0; self.size()];
        for rank in 0..self.size() {
            row.fill(0);
            if rank < self.problem.ranks() {
                for neighbour in self.problem.neighbours(rank as u32) {
                    row[neighbour.rank as usize] = neighbour.weight >> u32::from(self.halved);
                }
            }
            write_row(to, row.iter().copied())?;
        }
        Ok(())
    }

    /// Writes the cost matrix, row by row.
    fn write_machine(&self, to: &mut impl Write) -> io::Result<()> {
        let slots = 0..self.size() as u32;
        let distance = self.problem.distance();
        slots.clone().try_for_each(|a| write_row(to, slots.clone().map(|b| distance.cost(a, b))))
    }
}

fn write_row(to: &mut impl Write, values: impl Iterator<Item = i64>) -> io::Result<()> {
    for (column, value) in values.enumerate() {
        write!(to, "{}{value}", if column == 0 { "" } else { " " })?;
    }
    writeln!(to)
}

const LAST_NUMBERS: &str = "the last n integers of the output are the mapping, one per slot of the machine, including unused ones; \
                            nothing may follow them";

fn too_few(found: usize, expected: usize) -> FileError {
    let problem =
        format!("expected a permutation of {expected} integers at the end of the output, found {found}");
    FileError::new(problem, LAST_NUMBERS)
}

/// A permutation that a program wrote.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The number of the first, second, … entry, counted from zero.
    pub permutation: Vec<u32>,
    /// The cost that the program reports, as in a QAPLIB solution.
    pub stated: Option<f64>,
}

/// A word and its line.
struct Word<'t> {
    text: &'t [u8],
    line: usize,
}

impl Answer {
    /// Reads the last `n` integers of a text. Nothing may follow them or separate them.
    ///
    /// White space, commas, semicolons and brackets separate words. If a text is n, a cost and the
    /// permutation (a QAPLIB solution), the cost is kept. `what` names the entries in messages, such as
    /// `rank`.
    pub fn read(text: &[u8], n: usize, numbering: Numbering, what: &str) -> Result<Self, FileError> {
        let mut last = VecDeque::new();
        let mut count = 0usize;
        for word in words(text) {
            count += 1;
            last.push_back(word);
            if last.len() > n + 2 {
                last.pop_front();
            }
        }
        let begin = last.len().saturating_sub(n);
        let words: Vec<&Word<'_>> = last.iter().skip(begin).collect();
        if let Some(at) = words.iter().rposition(|word| !word.is_integer()) {
            let word = words[at];
            // Too few integers if the run starts late, trailing text if it ends early.
            return Err(match words.len() - at - 1 {
                found if found * 2 >= n && found > 0 => too_few(found, n),
                _ => {
                    let word_is = format!("unexpected `{}` after the last integers", word.quoted());
                    let problem = format!("{word_is}: the output must end with {n} integers");
                    FileError::at(word.line, problem, LAST_NUMBERS)
                }
            });
        }
        if words.len() < n {
            return Err(too_few(words.len(), n));
        }
        let stated = (count == n + 2 && last[0].number() == Some(n as u64))
            .then(|| std::str::from_utf8(last[1].text).ok()?.parse::<f64>().ok())
            .flatten()
            .filter(|stated| stated.is_finite());
        Ok(Self { permutation: permutation(&words, numbering, what)?, stated })
    }

    /// The inverse permutation.
    #[must_use]
    pub fn inverted(&self) -> Vec<u32> {
        let mut inverted = vec![0; self.permutation.len()];
        for (at, &number) in self.permutation.iter().enumerate() {
            inverted[number as usize] = at as u32;
        }
        inverted
    }
}

/// Checks that every number occurs once.
fn permutation(words: &[&Word<'_>], numbering: Numbering, what: &str) -> Result<Vec<u32>, FileError> {
    let n = words.len();
    let first = match numbering {
        Numbering::FromZero => 0,
        Numbering::FromOne => 1,
        Numbering::Auto => usize::from(!words.iter().any(|word| word.number() == Some(0))),
    };
    let name = |at: usize| format!("{what} {}", at + first);
    let mut owner = vec![None; n];
    let mut permutation = Vec::with_capacity(n);
    for (at, word) in words.iter().enumerate() {
        let number = word.number().and_then(|number| usize::try_from(number).ok()?.checked_sub(first));
        let Some(number) = number.filter(|&number| number < n) else {
            let (name, word_is, last) = (name(at), word.quoted(), n - 1 + first);
            let problem = format!("{name} has `{word_is}`, expected {first} to {last}");
            let help = "if the command counts differently, set numbering = \"from-zero\" or \"from-one\"";
            return Err(FileError::at(word.line, problem, help));
        };
        if let Some(other) = owner[number].replace(at) {
            let (name, number, other) = (name(at), number + first, name(other));
            let problem = format!("{name} and {other} both have {number}");
            return Err(FileError::at(word.line, problem, "every number must occur exactly once"));
        }
        permutation.push(number as u32);
    }
    Ok(permutation)
}

/// The words of a text with their lines.
fn words(text: &[u8]) -> impl Iterator<Item = Word<'_>> {
    let parts = |byte: &u8| byte.is_ascii_whitespace() || b",;()[]{}".contains(byte);
    let lines = text.split(|&byte| byte == b'\n').enumerate();
    lines.flat_map(move |(line, text)| {
        let words = text.split(parts).filter(|word| !word.is_empty());
        words.map(move |text| Word { text, line: line + 1 })
    })
}

impl Word<'_> {
    /// Whether it is an integer, of any size and sign.
    fn is_integer(&self) -> bool {
        let digits = self.text.strip_prefix(b"-").unwrap_or(self.text);
        !digits.is_empty() && digits.iter().all(u8::is_ascii_digit)
    }

    /// The number, if it is not negative and fits.
    fn number(&self) -> Option<u64> {
        if self.text.iter().all(u8::is_ascii_digit) {
            std::str::from_utf8(self.text).ok()?.parse().ok()
        } else {
            None
        }
    }

    fn quoted(&self) -> String {
        shown(&String::from_utf8_lossy(self.text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, n: usize) -> Result<Answer, FileError> {
        Answer::read(text.as_bytes(), n, Numbering::Auto, "rank")
    }

    fn refused(text: &str, n: usize) -> String {
        read(text, n).unwrap_err().to_string()
    }

    #[test]
    fn counting_from_zero_and_from_one_are_distinguished() {
        assert_eq!(read("2 0 1", 3).unwrap().permutation, [2, 0, 1]);
        assert_eq!(read("3 1 2", 3).unwrap().permutation, [2, 0, 1]);
        assert_eq!(read("3, 1, 2\n", 3).unwrap().inverted(), [1, 2, 0]);
        let from_zero = Answer::read(b"1 2", 2, Numbering::FromZero, "slot").unwrap_err();
        assert_eq!(from_zero.to_string(), "line 1: slot 1 has `2`, expected 0 to 1");
    }

    #[test]
    fn text_before_the_permutation_is_ignored() {
        assert_eq!(read("best cost 12\nplacement: [2 0 1]\n", 3).unwrap().permutation, [2, 0, 1]);
        assert_eq!(read("best cost 12\nplacement: [2 0 1]\n", 3).unwrap().stated, None);
    }

    #[test]
    fn a_solution_of_qaplib_states_its_cost() {
        let answer = read(" 3 578\n 3 1\n2\n", 3).unwrap();
        assert_eq!((answer.permutation, answer.stated), (vec![2, 0, 1], Some(578.0)));
        assert_eq!(read("4 578 3 1 2", 3).unwrap().stated, None);
    }

    #[test]
    fn an_invalid_permutation_is_refused_with_its_position() {
        assert_eq!(refused("", 3), "expected a permutation of 3 integers at the end of the output, found 0");
        assert_eq!(
            refused("1 2", 3),
            "expected a permutation of 3 integers at the end of the output, found 2"
        );
        assert_eq!(
            refused("x 1 2", 3),
            "expected a permutation of 3 integers at the end of the output, found 2"
        );
        // Otherwise the 2 would be read as part of the answer.
        assert_eq!(
            refused("2 0 1\ntook 2 s\n", 3),
            "line 2: unexpected `s` after the last integers: the output must end with 3 integers"
        );
        assert_eq!(refused("1\n2 2\n", 3), "line 2: rank 3 and rank 2 both have 2");
        assert_eq!(refused("1 2\n-3", 3), "line 2: rank 3 has `-3`, expected 1 to 3");
        assert_eq!(refused("0 1 3", 3), "line 1: rank 2 has `3`, expected 0 to 2");
        assert_eq!(
            refused("1 2 99999999999999999999999", 3),
            "line 1: rank 3 has `99999999999999999999999`, expected 1 to 3"
        );
    }
}
