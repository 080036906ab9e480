//! `hopmap record` and `hopmap reorder` as a program of its own, for the tests of this crate: `record OPTIONS`, `record reorder OPTIONS`.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command prints")]

use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use hopmap_command::Command;
use hopmap_model::{Context, Observer};
use hopmap_record::{RecordCommand, ReorderCommand};

/// Whether Ctrl-C was pressed.
static STOPPED: AtomicBool = AtomicBool::new(false);

struct Printer;

impl Observer for Printer {
    fn progress(&self, _: u64, _: u64) {}

    fn log(&self, line: &str) {
        eprintln!("{line}");
    }

    fn cancelled(&self) -> bool {
        STOPPED.load(Ordering::Relaxed)
    }
}

fn main() -> ExitCode {
    let mut words: Vec<_> = std::env::args_os().collect();
    if words.get(1).is_some_and(|word| word == ReorderCommand::NAME) {
        words.remove(1);
        run::<ReorderCommand>(words)
    } else {
        run::<RecordCommand>(words)
    }
}

fn run<C: Command>(words: Vec<OsString>) -> ExitCode {
    let matches = C::augment_args(clap::Command::new(C::NAME)).get_matches_from(words);
    let command = C::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    if let Err(error) = ctrlc::set_handler(|| STOPPED.store(true, Ordering::Relaxed)) {
        eprintln!("error: {error}");
        return ExitCode::FAILURE;
    }
    let (answer, reports, exit) = match command.run(&Context::new(1, None, &Printer), &mut std::io::stdout())
    {
        Ok(answer) => (answer.lines.into_iter().chain(answer.json).collect(), Vec::new(), answer.exit),
        Err(failure) => (failure.answer.lines, failure.reports, failure.exit),
    };
    for line in answer {
        println!("{line}");
    }
    for report in reports {
        eprintln!("error: {report}");
        if let Some(help) = report.help() {
            eprintln!("help: {help}");
        }
    }
    exit.into()
}
