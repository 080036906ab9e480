//! Why a mapper refuses its parameters, or fails.

use std::path::PathBuf;

pub use hopmap_islands::SearchError;
use hopmap_model::NotBuilt;
use hopmap_partition::PartitionError;
use hopmap_process::{Cause, RunError};
use miette::Diagnostic;

/// A parameter of the annealing or genetic mappers that makes no search.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum ParameterError {
    /// Something is wrong with the budget.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Budget(#[from] SearchError),
    /// A value that is out of range.
    #[error("{name} is {value}")]
    #[diagnostic(help("{help}"))]
    Value {
        /// The parameter.
        name: &'static str,
        /// Its value.
        value: String,
        /// What it should be.
        help: String,
    },
    /// Nothing is left between the first and the last temperature.
    #[error("the final temperature {last} is not below the initial one, which is {first}")]
    #[diagnostic(help(
        "temperatures are in the unit of F; give a lower `final_temperature` or leave it out"
    ))]
    Temperatures {
        /// Where it begins.
        first: f64,
        /// Where it ends.
        last: f64,
    },
}

impl ParameterError {
    /// Refuses a value if it is not in order.
    pub(crate) fn unless(
        in_order: bool,
        name: &'static str,
        value: &impl ToString,
        help: &str,
    ) -> Result<(), Self> {
        match in_order {
            true => Ok(()),
            false => Err(Self::Value { name, value: value.to_string(), help: help.to_owned() }),
        }
    }
}

/// Why there is no exact search.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum ExactError {
    /// The budget is empty.
    #[error("nodes is 0")]
    #[diagnostic(help("allow at least one node, or leave `nodes` out"))]
    Nodes,
    /// The machine is too large for any bound.
    #[error("{slots} slots are more than the {most} that map/exact bounds")]
    #[diagnostic(help("use map/auto, or a part of the machine"))]
    Slots {
        /// Slots of the machine.
        slots: usize,
        /// Most slots.
        most: usize,
    },
    /// The cost is no sum over pairs that it knows, or placements are constrained.
    #[error(
        "map/exact minimises F or hop-bytes without constraints, of problems in which weights or costs are symmetric"
    )]
    #[diagnostic(help("leave out `objective`, `pinned` and `forbidden`, or use map/auto"))]
    NotPlain,
    /// Another parameter makes no sense.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Search(#[from] SearchError),
}

/// Why another program gave no mapping.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum ExternalError {
    /// Two matrices do not say what is asked for.
    #[error(
        "map/external hands over F or hop-bytes without constraints, of problems in which weights or costs are symmetric"
    )]
    #[diagnostic(help("leave out `objective`, `pinned` and `forbidden`, or use map/auto"))]
    NotPlain,
    /// There is no command.
    #[error("the command is empty")]
    #[diagnostic(help(
        "give a line for the shell, or a list of a program and its arguments: [\"solver\", \"{{input}}\", \"{{output}}\"]"
    ))]
    NoCommand,
    /// The command wants to know of a time that is not given.
    #[error("the command names {{seconds}}, but `seconds` is not given")]
    #[diagnostic(help("give `seconds`, or write the time into the command"))]
    NoSeconds,
    /// Another parameter makes no sense.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Search(#[from] SearchError),
    /// The matrices would be too large.
    #[error("{slots} slots are more than the {most} whose matrices are written out")]
    #[diagnostic(help("use map/auto, or a part of the machine"))]
    Slots {
        /// Slots of the machine.
        slots: usize,
        /// Most slots.
        most: usize,
    },
    /// A file for the command cannot be written, or one of it cannot be read.
    #[error("`{path}` cannot be written or read")]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: std::io::Error,
    },
    /// The command gives no answer.
    #[error(transparent)]
    #[diagnostic(help("{}", help(&.0.cause)))]
    Run(#[from] RunError),
    /// The command writes more into its file than an answer has.
    #[error("`{program}` wrote more than {most} bytes to {place}{said}")]
    #[diagnostic(help("{}", help(&Cause::Output(*.most))))]
    TooMuch {
        /// The program.
        program: String,
        /// Where it wrote to.
        place: &'static str,
        /// Most bytes that are read.
        most: usize,
        /// The last lines of what it said.
        said: String,
    },
    /// There is no answer.
    #[error("`{program}` wrote nothing to {place}{said}")]
    #[diagnostic(help(
        "the answer is read from the file {{output}} if the command names it, else from standard output"
    ))]
    Nothing {
        /// The program.
        program: String,
        /// Where the answer was due.
        place: &'static str,
        /// The last lines of what it said.
        said: String,
    },
    /// The answer is none.
    #[error("what `{program}` wrote to {place} is no placement: {problem}{said}")]
    #[diagnostic(help("{}", .problem.hint()))]
    Answer {
        /// The program.
        program: String,
        /// Where the answer was due.
        place: &'static str,
        /// What is wrong with it.
        problem: Box<AnswerError>,
        /// The last lines of what it said.
        said: String,
    },
}

/// What to do about a command without an answer.
fn help(cause: &Cause) -> &'static str {
    match cause {
        Cause::Start(_) => {
            "give the path of the program, or a name that is on PATH; a relative path begins where hopmap was started"
        }
        Cause::Wait(_) => "run hopmap again",
        Cause::Failed(_) => {
            "run the command by hand on a small problem: what it prints on standard error is quoted"
        }
        Cause::Time(_) => "raise `seconds`, or tell the command its time with {seconds}",
        Cause::Output(_) => "an answer is n whole numbers; let the command write it to {output}",
        Cause::Stopped => "hopmap was interrupted, or its deadline had come",
    }
}

/// What is wrong with an answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// There are too few numbers.
    #[error("it ends with {found} whole numbers in a row, and {expected} are due")]
    TooFew {
        /// Numbers there are.
        found: usize,
        /// Numbers there have to be.
        expected: usize,
    },
    /// Something else stands between the numbers.
    #[error(
        "line {line}: `{word}` stands after the last whole numbers, of which {expected} in a row are due at the end"
    )]
    Word {
        /// Where.
        line: usize,
        /// What.
        word: String,
        /// Numbers there have to be.
        expected: usize,
    },
    /// A number is no rank or slot.
    #[error("line {line}: {what} has `{word}`, and numbers go from {first} to {last}")]
    Range {
        /// Where.
        line: usize,
        /// Which rank or slot, counted as the answer does.
        what: String,
        /// What.
        word: String,
        /// The first number that may be.
        first: usize,
        /// The last number that may be.
        last: usize,
    },
    /// A number stands there twice.
    #[error("line {line}: {what} has {number}, which {other} has as well")]
    Twice {
        /// Where.
        line: usize,
        /// Which rank or slot.
        what: String,
        /// The number.
        number: usize,
        /// Which rank or slot has it as well.
        other: String,
    },
}

impl AnswerError {
    fn hint(&self) -> &'static str {
        match self {
            Self::TooFew { .. } | Self::Word { .. } => {
                "the last n whole numbers are the answer, one for every slot of the machine, ranks without messages among them; nothing may follow"
            }
            Self::Range { .. } => "say how the command counts: numbering = \"from-zero\" or \"from-one\"",
            Self::Twice { .. } => "every number has to be there once",
        }
    }
}

/// Parameters or machines for which there is no hierarchical mapping.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum HierarchicalError {
    /// The costs are no tree.
    #[error("the machine is no tree: its costs are given pair by pair")]
    #[diagnostic(help("use `map/auto`, which takes any costs, or a machine with levels"))]
    NoTree,
    /// Levels are counted from one.
    #[error("level 0 is none: levels are counted from the root, which is 1")]
    #[diagnostic(help("give `levels = \"all\"`, or a list such as `[1]` or `[1, 2]`"))]
    LevelZero,
    /// No level at all.
    #[error("the list of levels is empty")]
    #[diagnostic(help("give `levels = \"all\"`, a list such as `[1, 2]`, or use `map/linear`"))]
    NoLevels,
    /// The machine has fewer levels.
    #[error("there is no level {level}: the machine has {levels} levels on which slots meet")]
    #[diagnostic(help(
        "levels are counted from the root; those on which the costs do not change are left out"
    ))]
    NoSuchLevel {
        /// The level.
        level: u32,
        /// Levels of the machine.
        levels: usize,
    },
    /// The partitioner is not in this build.
    #[error(transparent)]
    #[diagnostic(transparent)]
    NotBuilt(#[from] NotBuilt),
    /// The budget is none.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Budget(#[from] SearchError),
    /// A graph or parts that contradict themselves.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Partition(#[from] PartitionError),
}
