//! `hopmap record` as a program of its own, for the tests of this crate.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command prints")]

use std::process::ExitCode;

use clap::{Args, FromArgMatches};
use hopmap_command::Command;
use hopmap_model::Context;
use hopmap_record::RecordCommand;

fn main() -> ExitCode {
    let matches = RecordCommand::augment_args(clap::Command::new("record")).get_matches();
    let command = RecordCommand::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let (answer, reports, exit) = match command.run(&Context::detached(), &mut std::io::stdout()) {
        Ok(answer) => (answer.lines, Vec::new(), answer.exit),
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
