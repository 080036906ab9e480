//! The `hopmap` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    hopmap::cli::main(std::env::args_os())
}
