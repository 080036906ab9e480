//! Any command that reads two matrices and writes a permutation.

mod answer;

use std::fs::File;
use std::io;
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use hopmap_islands::SearchError;
use hopmap_model::{Context, Error, open_input};
use hopmap_objective::Problem;
use hopmap_process::{Limits, Output, RunError, run};
use tempfile::TempDir;

use crate::{ExternalCommand, ExternalError, ExternalParams, Found, Mapper, Numbering};
pub use answer::Answer;

/// Most slots whose matrices are written out.
const MOST_SLOTS: usize = 4096;
/// Most bytes of an answer.
const MOST_BYTES: usize = 1 << 24;

/// A command that reads two matrices and writes a permutation.
///
/// It gets the quadratic assignment problem in the format of QAPLIB: n, what ranks send to each other, what slots cost, both
/// as whole numbers, n the number of slots, the rows of ranks that are not there zero. Its answer is the last n whole
/// numbers of what it writes, and is checked. It runs where hopmap was started, in a process group of its own, of which nothing
/// is left when it ends.
#[derive(Debug, Clone, PartialEq)]
pub struct External {
    command: ExternalCommand,
    numbering: Numbering,
    inverse: bool,
    seconds: Option<f64>,
    /// How long it may take.
    time: Option<Duration>,
    seed: u64,
}

impl External {
    /// Checks the parameters.
    pub fn new(params: &ExternalParams) -> Result<Self, ExternalError> {
        let ExternalParams { command, numbering, inverse, seconds, seed, .. } = params.clone();
        if command.words().first().is_none_or(|word| word.trim().is_empty()) {
            return Err(ExternalError::NoCommand);
        }
        let told = command.words().iter().any(|word| word.contains("{seconds}"));
        if told && seconds.is_none() {
            return Err(ExternalError::NoSeconds);
        }
        let time = |seconds: f64| match Duration::try_from_secs_f64(seconds) {
            Ok(time) if !time.is_zero() => Ok(time),
            _ => Err(SearchError::Seconds { seconds }),
        };
        let grace = |time: Duration| match told {
            true => time.saturating_add(time / 10).saturating_add(Duration::from_secs(1)),
            false => time,
        };
        let time = seconds.map(time).transpose()?.map(grace);
        Ok(Self { command, numbering, inverse, seconds, time, seed })
    }

    /// What is started, in words.
    fn program(&self) -> &str {
        match &self.command {
            ExternalCommand::Shell(line) => line,
            ExternalCommand::Program(words) => &words[0],
        }
    }

    /// Whether the command names a file.
    fn names(&self, file: Place) -> bool {
        self.command.words().iter().any(|word| word.contains(file.name()))
    }

    /// The command with all that stands for something else filled in.
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
        for place in Place::ALL {
            filled = filled.replace(place.name(), &path(&place.path(folder).to_string_lossy()));
        }
        filled
    }

    /// Writes the files that the command names.
    fn write(&self, matrices: &Matrices<'_>, folder: &Path) -> Result<(), ExternalError> {
        let files = [Place::Input, Place::Program, Place::Machine];
        for place in files.into_iter().filter(|&place| self.names(place)) {
            let path = place.path(folder);
            let written = File::create(&path).and_then(|file| {
                let mut file = BufWriter::new(file);
                writeln!(file, "{}\n", matrices.size())?;
                if place != Place::Machine {
                    matrices.write_program(&mut file)?;
                }
                if place == Place::Input {
                    writeln!(file)?;
                }
                if place != Place::Program {
                    matrices.write_machine(&mut file)?;
                }
                file.flush()
            });
            written.map_err(|source| ExternalError::File { path, source })?;
        }
        Ok(())
    }

    /// Runs the command; what it answers on standard output or in a file, and what it says besides.
    fn answer(&self, folder: &Path, cx: &Context<'_>) -> Result<Output, ExternalError> {
        let begin = Instant::now();
        let limits = Limits { time: self.time, output: MOST_BYTES, stop: &|| cx.should_stop() };
        let mut output = run(&mut self.filled(folder), &limits)
            // The files of the command are in a folder that nobody knows.
            .map_err(|error| RunError { command: self.program().to_owned(), ..error })?;
        cx.log(format!("the command took {:.3} s", begin.elapsed().as_secs_f64()));
        if self.names(Place::Output) {
            output.stdout = read(Place::Output.path(folder))?;
        }
        let (program, place) = (self.program().to_owned(), self.place());
        match &output.stdout {
            bytes if bytes.len() > MOST_BYTES => {
                Err(ExternalError::TooMuch { program, place, most: MOST_BYTES, said: output.quoted() })
            }
            bytes if bytes.iter().all(u8::is_ascii_whitespace) => {
                Err(ExternalError::Nothing { program, place, said: output.quoted() })
            }
            _ => Ok(output),
        }
    }

    /// Where the answer is due.
    fn place(&self) -> &'static str {
        if self.names(Place::Output) { "{output}" } else { "standard output" }
    }
}

impl Mapper for External {
    fn map(&self, problem: &Problem, cx: &Context<'_>) -> Result<Found, Error> {
        if !problem.is_plain() {
            return Err(ExternalError::NotPlain.into());
        }
        if problem.slots() > MOST_SLOTS {
            return Err(ExternalError::Slots { slots: problem.slots(), most: MOST_SLOTS }.into());
        }
        let folder = folder(&cx.scratch())?;
        let matrices = Matrices::new(problem);
        self.write(&matrices, folder.path())?;
        let output = self.answer(folder.path(), cx)?;
        let what = if self.inverse { "slot" } else { "rank" };
        let answer =
            Answer::read(&output.stdout, problem.slots(), self.numbering, what).map_err(|problem| {
                let program = self.program().to_owned();
                let problem = Box::new(problem);
                ExternalError::Answer { program, place: self.place(), problem, said: output.quoted() }
            })?;
        let mut slots = if self.inverse { answer.inverted() } else { answer.permutation.clone() };
        slots.truncate(problem.ranks());
        let cost = matrices.cost(&slots);
        if let Some(stated) = answer.stated.filter(|stated| (stated - cost).abs() > 1e-9 * cost.abs()) {
            cx.log(format!(
                "the command states a cost of {stated}, which is an F of {}; its placement costs {cost}, an F of {}",
                matrices.real(stated),
                matrices.real(cost)
            ));
        }
        Ok(Found::at_once(slots))
    }
}

/// A file that a command may name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Input,
    Program,
    Machine,
    Output,
}

impl Place {
    const ALL: [Self; 4] = [Self::Input, Self::Program, Self::Machine, Self::Output];

    /// What stands for it in a command.
    fn name(self) -> &'static str {
        match self {
            Self::Input => "{input}",
            Self::Program => "{program}",
            Self::Machine => "{machine}",
            Self::Output => "{output}",
        }
    }

    fn path(self, folder: &Path) -> PathBuf {
        folder.join(match self {
            Self::Input => "problem.dat",
            Self::Program => "program.txt",
            Self::Machine => "machine.txt",
            Self::Output => "answer.sln",
        })
    }
}

/// A folder of its own, with a path that does not depend on where anybody is.
fn folder(scratch: &Path) -> Result<TempDir, ExternalError> {
    let fault = |source| ExternalError::File { path: scratch.to_owned(), source };
    let scratch = std::path::absolute(scratch).map_err(fault)?;
    tempfile::Builder::new().prefix("external-").tempdir_in(scratch).map_err(fault)
}

/// Reads an answer, or a little more than one may be; nothing where there is no file.
fn read(path: PathBuf) -> Result<Vec<u8>, ExternalError> {
    let mut bytes = Vec::new();
    match open_input(&path).and_then(|file| file.take(MOST_BYTES as u64 + 1).read_to_end(&mut bytes)) {
        Ok(_) => Ok(bytes),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(bytes),
        Err(source) => Err(ExternalError::File { path, source }),
    }
}

/// A word that the shell reads as it is.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// What ranks send and what slots cost as two square matrices of one size, the rows of ranks that are not there zero.
///
/// The only place that reads a [`Problem`] for another program. Values are the integers of the problem, of which both
/// directions of a pair are added; half of each is written if all are even, so that a problem of QAPLIB stays what it was.
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

    /// What the double sum over both matrices gives for a placement.
    fn cost(&self, slots: &[u32]) -> f64 {
        self.problem.cost(slots) as f64 * if self.halved { 1.0 } else { 2.0 }
    }

    /// What a cost of the double sum is in the units of the trace.
    fn real(&self, cost: f64) -> f64 {
        cost / self.problem.scale() / if self.halved { 1.0 } else { 2.0 }
    }

    /// Writes what ranks send to each other, row by row.
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

    /// Writes what slots cost, row by row.
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
