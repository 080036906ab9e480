//! The command line: a file for each command or a few that belong together, and the commands of the registry. The only part of
//! hopmap that prints.

mod candidates;
mod cells;
mod check;
mod complete;
mod consent;
mod diff;
mod docs;
mod doctor;
mod exec;
mod fault;
mod gates;
mod gc;
mod hosts;
mod import;
mod init;
mod job;
mod launchable;
mod locate;
mod lock;
mod named;
mod open;
mod output;
mod plan;
mod progress;
mod query;
#[cfg(feature = "training")]
mod rank_order;
mod report;
mod run;
mod runs;
mod show;
mod stages;
mod summary;
mod topology;
mod trial;
mod tune;
mod verify;
mod words;
mod written;

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand};
use hopmap_command::{CommandEntry, Exit, Failure, ParsedCommand};
use hopmap_model::{Context, Observer};
use indicatif::{ProgressBar, ProgressStyle};
use miette::Report;

use crate::registry::COMMANDS;
use fault::SystemError;
use open::on_interrupt;
pub use output::Output;
use output::{Result, unbuffered};
pub use query::{Request as QueryRequest, Stored};
use words::CommandLine;

/// Topology-aware process mapping for MPI applications.
///
/// hopmap reads a trace, builds the communication matrix, and searches for a mapping of ranks to the slots of a machine. A
/// pipeline is a TOML file of stages: hopmap runs out-of-date stages, stores every result, and reproduces it bit-identically.
#[derive(Parser)]
#[command(name = "hopmap", version, after_help = examples(), propagate_version = true, max_term_width = 110)]
struct Cli {
    /// Print results as JSON, and nothing else on standard output: what programs print there goes to standard error.
    #[arg(long, global = true)]
    json: bool,
    /// Print errors only.
    #[arg(short, long, global = true)]
    quiet: bool,
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  hopmap doctor
  hopmap init lu --trace lu/traces.otf2
  hopmap run place --trace lu/traces.otf2 --shape tree:2x16x40
  hopmap plan pipelines/place.toml
  hopmap exec trace/otf2 -p path=lu/traces.otf2 --out lu.graph
  hopmap show lu.graph --table edges --format csv
  hopmap topology refresh --hosts 'node[01-16]' --publish /var/lib/hopmap
  hopmap checkpoint add store ckpt_lammps_00003

Exit codes:
";

fn examples() -> String {
    let codes = Exit::ALL.map(|exit| format!("  {:>3}  {}", exit.code(), exit.meaning()));
    EXAMPLES.to_owned() + &codes.join("\n")
}

#[derive(Subcommand)]
enum Command {
    /// Create a project from a bundled pipeline.
    Init(init::Arguments),
    /// Run all out-of-date stages of a pipeline.
    Run(run::Arguments),
    /// Show which stages would run, and why (dry run).
    Plan(plan::PlanArguments),
    /// Explain why a stage is out of date or up to date.
    Why(plan::WhyArguments),
    /// Validate a pipeline file without running anything.
    Check(check::CheckArguments),
    /// Print the graph of a pipeline in DOT.
    Graph(check::GraphArguments),
    /// Run one stage without a pipeline and without a store.
    Exec(exec::Arguments),
    /// Show an artifact or one of its tables.
    Show(show::Arguments),
    /// Query stored results with SQL: parameters, metrics and tables of all cells.
    Query(query::Arguments),
    /// Compare two artifacts, cells or runs, and explain the differences.
    Diff(diff::Arguments),
    /// Write a lock file that pins inputs, parameters and result digests.
    Lock(lock::Arguments),
    /// Recompute results and compare them byte by byte, or check an archive.
    Verify(verify::Arguments),
    /// Pack a run into an archive that another machine can verify.
    Export(lock::ArchiveArguments),
    /// Unpack an archive as a project that runs, with its results.
    Import(import::Arguments),
    /// Write the HTML report of a pipeline from stored results.
    Report(report::ReportArguments),
    /// List the runs of a store.
    Runs(runs::RunsArguments),
    /// Remove stored results that no pipeline uses any more.
    Gc(gc::GcArguments),
    /// Record or check the accepted baseline of gates or of an artifact.
    Accept(gates::Arguments),
    /// Measure a program under several placements.
    Trial(trial::Arguments),
    /// Find a faster placement of a program, and measure its gain.
    Tune(Box<tune::Arguments>),
    /// Say what the order of a training job's hosts costs, and find the best one.
    #[cfg(feature = "training")]
    RankOrder(rank_order::Arguments),
    #[command(flatten)]
    Registered(Registered),
    /// Refresh, compare and inspect published machine topologies.
    Topology(topology::Arguments),
    /// Report what is installed (MPI, Slurm, libraries, tools) and what it enables.
    Doctor(doctor::Arguments),
    /// List the stages, or describe one.
    Stages(stages::Arguments),
    /// Print the JSON Schema of pipeline files or of the parameters of a stage.
    Schema(stages::SchemaArguments),
    /// Print a completion script for a shell.
    Completions(stages::CompletionsArguments),
    /// Write the manual pages to a folder.
    Man(stages::ManArguments),
    /// Write the generated pages of the reference to a folder.
    #[command(hide = true)]
    Docs(docs::Arguments),
    /// Print what the last word of a command line may become.
    #[command(hide = true)]
    Complete(complete::Arguments),
    /// Run the task in a folder that hopmap wrote.
    #[command(hide = true)]
    Worker(exec::WorkerArguments),
}

/// Runs a command line and returns its exit code.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let mut definition = Cli::command();
    definition.build();
    let CommandLine { words: arguments, notes, help } =
        CommandLine::new(arguments.into_iter().collect(), &definition);
    let cli = match parse(&arguments, help.as_deref()) {
        Ok(cli) => cli,
        Err(exit) => return exit.into(),
    };
    let output = Output::new(cli.json, cli.quiet);
    // hopmap-query has a standard output of its own.
    if cli.json && !matches!(cli.command, Command::Query(_)) {
        output::keep_to_results();
    }
    notes.iter().for_each(|note| output.note(note));
    let ended = match cli.command {
        Command::Init(arguments) => init::main(&arguments, output),
        Command::Run(arguments) => run::main(&arguments, output),
        Command::Plan(arguments) => plan::plan(&arguments, output),
        Command::Why(arguments) => plan::why(&arguments, output),
        Command::Check(arguments) => check::check(&arguments, output),
        Command::Graph(arguments) => check::graph(&arguments, output),
        Command::Exec(arguments) => exec::main(&arguments, output),
        Command::Show(arguments) => show::main(&arguments, output),
        Command::Query(_) => Err(Failure::usage(crate::query::exec(&arguments[1..]))),
        Command::Diff(arguments) => diff::main(&arguments, output),
        Command::Lock(arguments) => lock::main(&arguments, output),
        Command::Verify(arguments) => verify::main(&arguments, output),
        Command::Export(arguments) => lock::export(&arguments, output),
        Command::Import(arguments) => import::main(&arguments, output),
        Command::Report(arguments) => report::report(&arguments, output),
        Command::Runs(arguments) => runs::runs(&arguments, output),
        Command::Gc(arguments) => gc::gc(&arguments, output),
        Command::Accept(arguments) => gates::main(&arguments, output),
        Command::Trial(arguments) => trial::main(&arguments, output),
        Command::Tune(arguments) => tune::main(&arguments, output),
        #[cfg(feature = "training")]
        Command::RankOrder(arguments) => rank_order::main(&arguments, output),
        Command::Registered(command) => run_registered(&command, output),
        Command::Topology(arguments) => topology::main(&arguments, output),
        Command::Doctor(arguments) => doctor::main(&arguments, output),
        Command::Stages(arguments) => stages::main(&arguments, output),
        Command::Schema(arguments) => stages::schema(&arguments, output),
        Command::Completions(arguments) => Ok(stages::completions(&arguments, Cli::command(), output)),
        Command::Man(arguments) => stages::man(&arguments, Cli::command()),
        Command::Docs(arguments) => docs::main(&arguments, Cli::command()),
        Command::Complete(arguments) => Ok(complete::main(&arguments, Cli::command(), output)),
        Command::Worker(arguments) => exec::worker(&arguments),
    };
    ended.unwrap_or_else(|failure| output::report(&failure, output)).into()
}

/// Runs the command line of a `hopmap query`, which `answer` answers, and returns its exit code.
pub fn query(
    arguments: &[OsString],
    answer: impl FnOnce(&QueryRequest, Output) -> Result<Exit, Failure>,
) -> ExitCode {
    let cli = match parse(arguments, None) {
        Ok(cli) => cli,
        Err(exit) => return exit.into(),
    };
    let Command::Query(arguments) = cli.command else { return Exit::Usage.into() };
    let output = Output::new(cli.json, cli.quiet);
    let ended = arguments.request(output).and_then(|request| answer(&request, output));
    ended.unwrap_or_else(|failure| output::report(&failure, output)).into()
}

/// Reads a command line; where help is asked for, more may follow it.
fn parse(arguments: &[OsString], more_help: Option<&str>) -> Result<Cli, Exit> {
    Cli::try_parse_from(arguments).map_err(|error| match error.use_stderr() {
        true => {
            output::wrong_arguments(error);
            Exit::Usage
        }
        // Help and version are not errors, and neither is a closed pipe.
        false => {
            let _ = error.print();
            output::unbuffered().write_all(more_help.unwrap_or_default().as_bytes()).ok();
            Exit::Done
        }
    })
}

/// A command of the registry, with its arguments.
pub(crate) struct Registered(Box<dyn ParsedCommand>);

impl Subcommand for Registered {
    fn augment_subcommands(command: clap::Command) -> clap::Command {
        command.subcommands(COMMANDS.iter().map(CommandEntry::definition))
    }

    fn augment_subcommands_for_update(command: clap::Command) -> clap::Command {
        Self::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        COMMANDS.iter().any(|entry| entry.name == name)
    }
}

impl FromArgMatches for Registered {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Self::from_arg_matches_mut(&mut matches.clone())
    }

    fn from_arg_matches_mut(matches: &mut ArgMatches) -> Result<Self, clap::Error> {
        CommandEntry::parse(COMMANDS, matches).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

pub(crate) fn run_registered(Registered(command): &Registered, output: Output) -> Result {
    let cancelled = command.is_stoppable().then(on_interrupt).transpose()?;
    let bar = match output.is_interactive() {
        true => ProgressBar::new(0).with_style(style()),
        false => ProgressBar::hidden(),
    };
    let observer = Bar { shown: bar, output, cancelled };
    let threads = command.threads();
    let mut out = unbuffered();
    let run =
        |out: &mut (dyn Write + Send)| command.run(&Context::new(threads.unwrap_or(1), None, &observer), out);
    let done = match threads {
        Some(threads) => {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
            let pool = pool.map_err(|source| Report::new(SystemError::NoThreads { threads, source }))?;
            pool.install(|| run(&mut out))
        }
        None => run(&mut out),
    };
    observer.shown.finish_and_clear();
    let answer = done?;
    output.answer(&answer);
    Ok(answer.exit)
}

fn style() -> ProgressStyle {
    ProgressStyle::with_template("  {bytes}/{total_bytes} {wide_bar} {bytes_per_sec} {eta}")
        .unwrap_or_else(|_| ProgressStyle::default_bar())
}

struct Bar {
    shown: ProgressBar,
    output: Output,
    cancelled: Option<Arc<AtomicBool>>,
}

impl Observer for Bar {
    fn progress(&self, done: u64, total: u64) {
        self.shown.set_length(total.max(done));
        self.shown.set_position(done);
    }

    fn log(&self, line: &str) {
        self.shown.suspend(|| self.output.note(line));
    }

    fn cancelled(&self) -> bool {
        self.cancelled.as_ref().is_some_and(|cancelled| cancelled.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_of_all_commands_is_consistent() {
        Cli::command().debug_assert();
    }
}
