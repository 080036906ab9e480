//! This machine, as the program of hwloc describes it.

use std::process::Command;
use std::time::Duration;

use hopmap_process::{Limits, run};

use super::super::ImportError;

/// How hwloc's program is called.
const PROGRAMS: [&str; 3] = ["lstopo", "lstopo-no-graphics", "hwloc-ls"];
/// How long it may take. Large machines take a second.
const TIME: Duration = Duration::from_secs(30);

/// The XML of this machine, and the command that wrote it.
pub(super) fn describe() -> Result<(String, Vec<u8>), ImportError> {
    first_of(&PROGRAMS)
}

/// What the first program writes that is there.
fn first_of(programs: &[&str]) -> Result<(String, Vec<u8>), ImportError> {
    let limits = Limits { time: Some(TIME), ..Limits::default() };
    for program in programs {
        match run(Command::new(program).args(["--of", "xml"]), &limits) {
            Ok(output) => return Ok((format!("{program} --of xml"), output.stdout)),
            Err(error) if error.is_missing() => {}
            Err(error) => return Err(ImportError::Command(error)),
        }
    }
    Err(ImportError::NoHwloc)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_to_install_is_said() {
        let error = first_of(&["hopmap-no-such-program"]).unwrap_err();
        assert_eq!(error.to_string(), "`lstopo` is not there");
        assert!(miette::Diagnostic::help(&error).unwrap().to_string().contains("apt install hwloc-nox"));
    }

    #[test]
    fn a_program_that_fails_is_quoted() {
        let error = first_of(&["hopmap-no-such-program", "false"]).unwrap_err();
        assert_eq!(error.to_string(), "`false --of xml` ended with exit status: 1");
    }
}
