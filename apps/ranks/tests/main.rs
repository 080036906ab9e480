//! What the program says to people who start it themselves. Searches on ranks are tests of the root package (`tests/cli/mpi.rs`).

use std::process::Command;

#[test]
fn a_start_without_a_folder_is_refused() {
    for arguments in [&[][..], &["folder", "another"]] {
        let output = Command::new(env!("CARGO_BIN_EXE_hopmap-ranks")).args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains("is started by hopmap"), "{said}");
    }
}
