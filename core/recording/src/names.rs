//! Names of the files of a recording.

/// The description of a recording.
pub const DESCRIPTION: &str = "record.json";

/// The folder of the profiles of the method `openmpi`.
pub(crate) const MONITORING: &str = "monitoring";

/// Prefix of these profiles.
const PREFIX: &str = "x";

/// The prefix of the profiles in a recording, as Open MPI wants it.
#[must_use]
pub fn profile_prefix(folder: &std::path::Path) -> std::path::PathBuf {
    folder.join(MONITORING).join(PREFIX)
}

/// The profile of a rank in a recording.
#[must_use]
pub fn profile_name(rank: u32) -> String {
    format!("{MONITORING}/{PREFIX}.{rank}.prof")
}

/// The file that the interposer writes for a rank; `runtime.c` of `hopmap-record` has the same name.
#[must_use]
pub fn rank_file_name(rank: u32) -> String {
    format!("rank-{rank}.bin")
}

/// Beginning of the names of files of events, `events-N.bin`.
pub(crate) const EVENTS: &str = "events-";

/// The number of a file that begins with a prefix, such as `rank-3.bin`.
pub(crate) fn number_in(name: &str, prefix: &str) -> Option<u32> {
    let number = name.strip_prefix(prefix)?.strip_suffix(".bin")?;
    number.parse().ok().filter(|parsed: &u32| parsed.to_string() == number)
}

/// Whether the recorder makes files or folders of this name, finished or not.
#[must_use]
pub fn is_of_recording(name: &str) -> bool {
    name == DESCRIPTION
        || name == MONITORING
        || name.starts_with("rank-")
        || name.starts_with(EVENTS)
        || hopmap_durable::is_leftover(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_ranks_have_one_name() {
        assert_eq!(number_in(&rank_file_name(17), "rank-"), Some(17));
        for name in ["rank-017.bin", "rank-.bin", "rank-1.bin.part", "rank--1.bin"] {
            assert_eq!(number_in(name, "rank-"), None, "{name}");
        }
        assert!(is_of_recording("rank-1.bin.part") && is_of_recording(".record.json.0123abcd-7-0.tmp"));
        assert!(!is_of_recording("notes.txt"));
    }
}
