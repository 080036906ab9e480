//! Lines of other programs that are redirected into the same file.

/// Lines, and banners of Open MPI; `~` becomes a Latin-1 letter.
const FOREIGN: [&str; 13] = [
    "mpirun: done",
    "srun: warning: caf~",
    "slurmstepd: error: *** STEP 1.0 ON n1 CANCELLED",
    "ibwarn: [7] a b",
    "user@n1:/a$ ./app 2>&1",
    "2026-11-29 12:00:00,123 INFO step 1",
    "\x1b[33mWARNING: Open MPI failed\x1b[0m",
    "[n1:12345] mca_base_component_repository_open: unable to open mca_pml_ucx: no such file (ignored)",
    "[n1][[13200,1],1858][btl_tcp_endpoint.c:638:complete_connect] connect() to 172.23.4.1 failed: timed out (110)",
    "[0.000000] [smpi/INFO] Set 'smpi/np' to '2'",
    "[n1:0:(1) 0.500000] smpi.cpp:7: [xbt_cfg/WARNING] a b",
    "--------------------------------------------------------------------------\nWARNING: No preset parameters were \
     found for the device that Open MPI\ndetected:\n\n  Local host: n1\n  12 34\n\
     --------------------------------------------------------------------------",
    "------------------------------------------------------------\nA process or daemon was unable to complete a TCP \
     connection\n0 1 2 3\n------------------------------------------------------------",
];

/// What launchers and loggers write before a line.
pub const PREFIXES: [&str; 10] = [
    "0: ",
    "  n1.local: ",
    "[1,0]<stdout>:",
    "[rank0]: ",
    "[0] ",
    "12:00:01 ",
    "2026-11-29T12:00:00.123Z ",
    "2026-11-29 12:00:00,123 - root - INFO - ",
    "[Nov 29 12:00:00] ",
    "Nov 29 12:00:00 n1 app[7]: ",
];

/// The text with a prefix before one line, counted from zero, or before all.
#[must_use]
pub fn with_prefix(text: &str, prefix: &str, only: Option<usize>) -> String {
    let prefix_of = |number| if only.is_none_or(|only| only == number) { prefix } else { "" };
    text.lines().enumerate().flat_map(|(number, line)| [prefix_of(number), line, "\n"]).collect()
}

/// The text with such lines at these places, each a line of the text and one of the others, both modulo their number: the
/// bytes, the number of the others, and the first of them that has words, from one. The last line may lack its end then.
#[must_use]
pub fn with_foreign_lines(text: &str, places: &[(usize, usize)], is_cut: bool) -> (Vec<u8>, usize, usize) {
    let mut lines: Vec<&str> = text.lines().collect();
    for &(line, other) in places {
        lines.insert(line % (lines.len() + 1), FOREIGN[other % FOREIGN.len()]);
    }
    let others = lines.iter().filter(|line| FOREIGN.contains(line));
    let count = others.map(|other| other.lines().count()).sum();
    let first = lines.iter().position(|line| FOREIGN.contains(line)).unwrap_or_default();
    let first = first + if lines[first].starts_with("--") { 2 } else { 1 };
    let is_cut = is_cut && lines.last().is_some_and(|last| FOREIGN.contains(last));
    let bytes = (lines.join("\n") + if is_cut { "" } else { "\n" }).into_bytes().into_iter();
    (bytes.map(|byte| if byte == b'~' { 0xe9 } else { byte }).collect(), count, first)
}
