//! What is done with texts that may hold anything, by tests and by the fuzz targets.

use hopmap_formats::{host_list, sinfo};

/// Reads a text as a host list and as output of `sinfo`: an error with words in it, or names that come back.
pub(crate) fn hosts(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    match host_list::expand(&text) {
        Ok(names) => {
            assert!(names.len() <= host_list::MAX_NAMES);
            assert_eq!(host_list::expand(&host_list::compress(&names)).as_ref(), Ok(&names));
        }
        Err(error) => assert!(!error.to_string().is_empty() && !error.hint.is_empty() && error.column > 0),
    }
    let _ = sinfo::is_sinfo(&text);
    if let Err(error) = sinfo::read(&text) {
        assert!(!error.to_string().is_empty());
    }
}
