//! Properties of readers for arbitrary text, for tests and fuzz targets.

use hopmap_formats::{host_file, host_list, sinfo};

/// Reads a text as a host list and as output of `sinfo`: the result is an error with a message, or names
/// that survive a round trip.
pub(crate) fn hosts(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    match host_list::expand(&text) {
        Ok(names) => {
            assert!(names.len() <= host_list::MAX_NAMES);
            assert_eq!(host_list::expand(&host_list::compress(&names)).as_ref(), Ok(&names));
        }
        Err(error) => assert!(!error.to_string().is_empty() && !error.hint.is_empty() && error.column > 0),
    }
    for read in [|text: &str| host_file::expand(text).map(|file| file.hosts), host_file::expand_list] {
        match read(&text) {
            Ok(hosts) => assert!(
                hosts.len() <= host_list::MAX_NAMES && hosts.iter().all(|(_, slots)| *slots != Some(0))
            ),
            Err(error) => {
                assert!(!error.to_string().is_empty() && !error.hint.is_empty() && error.column > 0);
            }
        }
    }
    let _ = sinfo::is_sinfo(&text);
    if let Err(error) = sinfo::read(&text) {
        assert!(!error.to_string().is_empty());
    }
}
