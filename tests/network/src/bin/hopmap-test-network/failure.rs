//! What the processes of a network say of themselves.

use std::io::Write;

use hopmap_test_network::Error;

/// Prints a line at once, and ignores a closed reader.
pub(crate) fn say(line: &str) {
    let mut output = std::io::stdout().lock();
    let _ = writeln!(output, "{line}").and_then(|()| output.flush());
}

/// Prints a line about this program where errors are printed.
pub(crate) fn warn(text: &str) {
    let _ = writeln!(std::io::stderr(), "hopmap-test-network: {text}");
}

/// What failed while a network was made, with the reason the system gives.
pub(crate) fn failed(what: &str, error: impl std::fmt::Display) -> Error {
    Error::Setup { message: format!("{what}: {error}"), help: None }
}
