//! Lines of other programs in a text: warnings that were redirected to the same file (`2>&1`).

use std::borrow::Cow;

/// The lines of other programs in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Foreign {
    /// Their number.
    pub count: usize,
    /// The number of the first one, from one.
    pub line: usize,
    /// The first one.
    pub first: String,
}

/// Programs and libraries that write messages with their names.
const PROGRAMS: [&str; 20] = [
    "bash",
    "cat",
    "grep",
    "mpirun",
    "numactl",
    "orterun",
    "perl",
    "prterun",
    "python",
    "python3",
    "scontrol",
    "sh",
    "slurmstepd",
    "srun",
    "ssh",
    "stty",
    "sudo",
    "tee",
    "timeout",
    "tput",
];
/// First parts of the names of programs and libraries for InfiniBand.
const FAMILIES: [&str; 7] = ["ib", "libib", "libmlx", "libopa", "mad", "mlx", "umad"];
/// What messages begin with, or have after the name of their program.
const KINDS: [&str; 4] = ["warning", "error", "fatal", "warn"];
/// Messages of remote shells and locales.
const MESSAGES: [&str; 6] = [
    "Connection to ",
    "Last login: ",
    "LANGUAGE = (",
    "LC_ALL = (",
    "LANG = ",
    "are supported and installed on your",
];

/// Whether a line is a message of a program rather than a part of a file: `ibwarn: [7] …`, `src/query_smp.c:195; …`,
/// `srun: warning: …`, `Warning: …`.
#[must_use]
pub fn is_foreign(line: &str) -> bool {
    let line = line.trim();
    if MESSAGES.iter().any(|text| line.starts_with(text)) {
        return true;
    }
    let Some((name, rest)) = line.split_once([':', ';']) else { return false };
    let bare = name.split_once('[').map_or(name, |(bare, _)| bare).trim_start_matches('-');
    let word = bare.rsplit('/').next().unwrap_or(bare);
    if bare.is_empty() || bare.contains(|c: char| c.is_whitespace() || "\"',=<>(){}#".contains(c)) {
        return false;
    }
    let is_of = |kinds: &[&str], text: &str| {
        kinds.iter().any(|kind| text.get(..kind.len()).is_some_and(|start| start.eq_ignore_ascii_case(kind)))
    };
    let message = rest.trim_start();
    let is_said = rest.starts_with(' ') && !message.is_empty();
    let is_program = PROGRAMS.contains(&word)
        || FAMILIES.iter().any(|family| word.starts_with(family))
            && !word.contains('-')
            && message.contains(' ');
    let is_source = [".c", ".h", ".cc", ".cpp", ".py", ".pl"].iter().any(|end| word.ends_with(end))
        && rest.starts_with(|c: char| c.is_ascii_digit());
    is_source
        || is_said
            && (is_program
                || KINDS.iter().any(|kind| word.eq_ignore_ascii_case(kind)) && message.contains(' '))
        || is_said && is_of(&KINDS, message) && message.contains([' ', ':'])
}

/// The text with such lines empty, so that the others keep their numbers.
#[must_use]
pub fn without_foreign(text: &str) -> Cow<'_, str> {
    if !text.lines().any(is_foreign) {
        return Cow::Borrowed(text);
    }
    let kept = |line: &str| if is_foreign(line) { "\n".to_owned() } else { line.to_owned() };
    let mut rest: String = text.split_inclusive('\n').map(kept).collect();
    // A declaration of XML must be at the very beginning, and says nothing here.
    let begin = rest.len() - rest.trim_start().len();
    if begin > 0
        && rest[begin..].starts_with("<?xml")
        && let Some(end) = rest[begin..].find("?>")
    {
        rest.replace_range(begin..begin + end + 2, "");
    }
    Cow::Owned(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_programs_are_told_from_lines_of_files() {
        let lines = r"ibwarn: [2718] mad_rpc: _do_madrpc failed; dport (Lid 12)
src/query_smp.c:195; umad (DR path slid 0; dlid 0; 0,1 Attr 0x11:0) bad status 110; Connection timed out
src/ibnetdisc.c:812; Failed to resolve self
libibumad: could not open device mlx5_3
umad_init: can't open umad
srun: warning: can't run 1 processes on 2 nodes
slurmstepd: error: *** STEP 1.0 ON n1 CANCELLED
Warning: Permanently added 'n1' (ED25519) to the list of known hosts.
WARNING: Open MPI failed
perl: warning: Setting locale failed.
opareport: Warning: port is down
-bash: warning: setlocale: LC_ALL: cannot change locale
/usr/lib/python3/x.py:12: DeprecationWarning: imp
mlx5: n1: got completion with error";
        for line in lines.lines() {
            assert!(is_foreign(line), "{line}");
        }
        let lines = r#"
vendid=0x2c9
Switch	8 "S-0000000000000001" # "ib: warning" base
SwitchName=s0 Nodes=n[0-3]
- topology: default
  cluster_default: true
error: 1
warning: on
"error": "x y",
4:16:64
n1,leaf1,error
ib-1: leaf 1
CA: n01 mlx5_0:
Switch: 0x0c42a10300bb0001 MF0;leaf1:MQM8700/U1:
100g;;;;;;;;;;node1 hfi1_0;1;leaf 1;7
0x0011750101670001;1;FI;node1 hfi1_0;0x0011750102000001;7;SW;x
Chassis 1 (guid 0x1)
DR path slid 0; dlid 0; 0 -> new Channel Adapter
# warning: none
<a b="c: d">"#;
        for line in lines.lines() {
            assert!(!is_foreign(line), "{line}");
        }
    }

    #[test]
    fn other_lines_keep_their_numbers() {
        assert_eq!(without_foreign("ibwarn: [7] a b\nx\nibwarn: [7] c d\n"), "\nx\n\n");
        assert_eq!(without_foreign("ibwarn: a b\n<?xml version=\"1.0\"?>\n<x/>"), "\n\n<x/>");
        assert!(matches!(without_foreign("a\n"), Cow::Borrowed("a\n")));
    }
}
