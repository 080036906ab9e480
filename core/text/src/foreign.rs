//! Lines of other programs in a text: warnings that were redirected to the same file (`2>&1`).

use std::borrow::Cow;
use std::fmt::{self, Display, Formatter};
use std::path::Path;

use crate::counts::shown;
use crate::error::FileError;
use crate::input::Input;
use crate::messages::{is_foreign, is_launch_file, without_colours};
use crate::prefix::row_behind;

/// How the lines of a format are told from those of other programs. Each is judged alone.
#[derive(Debug, Clone, Copy)]
pub struct Rows {
    /// Whether a text is a row. One behind the first words of a line is an error: it would be lost.
    pub is_row: fn(&str) -> bool,
    /// Whether a line is so unlike a row that it is not a damaged one, but of another program.
    pub is_other: fn(&str) -> bool,
}

impl Rows {
    /// Of a format whose rows are not known, or that is not text.
    pub const ANY: Self = Self { is_row: |_| false, is_other: |_| false };

    /// Of a format whose damaged rows may look like anything.
    #[must_use]
    pub const fn like(is_row: fn(&str) -> bool) -> Self {
        Self { is_row, ..Self::ANY }
    }

    /// Whether a line is of another program; an error if a row is behind its first words. Longer lines begin with a name.
    fn is_foreign(&self, line: &str, number: usize) -> Result<bool, FileError> {
        let is_foreign = is_foreign(line) || !line.trim().is_empty() && (self.is_other)(line);
        let plain = if line.len() < LONGEST_JUDGED { without_colours(line) } else { Cow::Borrowed("") };
        if (is_foreign || !(self.is_row)(plain.trim()))
            && let Some((prefix, row)) = row_behind(plain.trim(), self.is_row)
        {
            return Err(prefix.error(number, row));
        }
        Ok(is_foreign)
    }
}

/// Bytes of lines in which a row is looked for.
const LONGEST_JUDGED: usize = 1 << 16;

/// The lines of other programs in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Foreign {
    /// Their number.
    pub count: usize,
    /// The number of the first one with words, from one: a banner begins with dashes.
    pub line: usize,
    /// Its text.
    pub first: String,
    /// The name of its file, if there are several.
    pub file: Option<String>,
}

impl Display for Foreign {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { count, line, first, file } = self;
        write!(f, "lines of other programs, skipped: {count}, the first in line {line}")?;
        file.iter().try_for_each(|file| write!(f, " of `{file}`"))?;
        write!(f, ": `{}`", shown(first))
    }
}

impl Foreign {
    /// Adds those of a file of several.
    pub fn add(sum: &mut Option<Self>, more: Option<&Self>, path: &Path) {
        if let Some(more) = more {
            let file = path.file_name().map(|name| name.to_string_lossy().into_owned());
            sum.get_or_insert_with(|| Self { count: 0, file, ..more.clone() }).count += more.count;
        }
    }

    /// The error of a text that has nothing else.
    #[cold]
    pub(crate) fn only(&self) -> FileError {
        let problem = format!("there are only lines of other programs, the first `{}`", shown(&self.first));
        FileError::at(
            self.line,
            problem,
            "the program that should write the file may have failed: see its messages",
        )
    }

    /// All of one file, which were found in several ways.
    #[must_use]
    pub fn of_file(parts: impl IntoIterator<Item = Self>) -> Option<Self> {
        let parts: Vec<Self> = parts.into_iter().collect();
        let count = parts.iter().map(|part| part.count).sum();
        Some(Self { count, ..parts.into_iter().min_by_key(|part| part.line)? })
    }

    /// The text with these lines empty, and a count of them. Their numbers are from one, and ascend.
    #[must_use]
    pub fn of_lines<'t>(text: &'t str, lines: &[usize]) -> (Cow<'t, str>, Option<Self>) {
        let Some(&line) = lines.first() else { return (Cow::Borrowed(text), None) };
        let first = text.lines().nth(line - 1).unwrap_or_default().trim().to_owned();
        let is_other = |number: &usize| lines.binary_search(number).is_ok();
        let kept = (1..)
            .zip(text.lines())
            .flat_map(|(number, own)| [if is_other(&number) { "" } else { own }, "\n"]);
        (kept.collect(), Some(Self { count: lines.len(), line, first, file: None }))
    }

    /// Passes the lines of other programs that start here, where the next line has this length and `behind` lines precede it, and counts them.
    /// Returns their number: zero if the line is one of the file.
    pub(crate) fn pass(
        sum: &mut Option<Self>,
        input: &mut Input<'_>,
        (length, behind): (usize, usize),
        rows: &Rows,
    ) -> Result<usize, FileError> {
        let banner = is_rule(&input.rest()[..length]).then(|| {
            while input.rest().len() < LONGEST_BANNER && input.fill(behind + 1) == Ok(true) {}
            banner(input.rest())
        });
        let line = || String::from_utf8_lossy(&input.rest()[..length]);
        let of_banner = banner.flatten();
        if of_banner.is_none()
            && !rows.is_foreign(&line(), behind + 1).map_err(|error| error.in_file(&input.path))?
        {
            return Ok(0);
        }
        let length = of_banner.unwrap_or(length);
        let text = String::from_utf8_lossy(&input.rest()[..length]);
        let mut numbered = (behind + 1..).zip(text.lines().map(str::trim));
        let (line, first) = numbered.find(|(_, line)| !is_rule(line.as_bytes())).unwrap_or_default();
        let lines = text.lines().count();
        let new = || Self { count: 0, line, first: first.to_owned(), file: None };
        sum.get_or_insert_with(new).count += lines;
        input.pass(length);
        Ok(lines)
    }
}

/// Dashes of the first and the last line of a banner of Open MPI, which has 74, and the bytes that a banner may have.
const RULE: std::ops::RangeInclusive<usize> = 60..=75;
const LONGEST_BANNER: usize = 1 << 13;

fn is_rule(line: &[u8]) -> bool {
    let line = line.trim_ascii_end();
    RULE.contains(&line.len()) && line.iter().all(|byte| *byte == b'-')
}

/// Bytes of the banner at the start of a text: sentences between two lines of as many dashes.
fn banner(text: &[u8]) -> Option<usize> {
    let text = &text[..text.len().min(LONGEST_BANNER)];
    let mut lines = text.split_inclusive(|byte| *byte == b'\n');
    let rule = lines.next().filter(|line| is_rule(line))?;
    let sentence = lines.next()?;
    let is_sentence = sentence[0].is_ascii_alphabetic() && sentence.trim_ascii_end().contains(&b' ');
    let mut end = rule.len() + sentence.len();
    is_sentence.then_some(())?;
    for line in lines {
        end += line.len();
        if line.trim_ascii_end() == rule.trim_ascii_end() {
            return Some(end);
        }
    }
    None
}

/// The text as [`without_foreign`] has it; an error if a row is lost in such lines, or nothing else is in the text.
pub fn rows_without_foreign<'t>(text: &'t str, rows: &Rows) -> Result<Cow<'t, str>, FileError> {
    if is_launch_file(text) {
        return Ok(Cow::Borrowed(text));
    }
    let own = without_foreign(text);
    for (number, (line, own)) in (1..).zip(text.lines().zip(own.lines())) {
        if !own.is_empty() || is_foreign(line) {
            rows.is_foreign(line, number)?;
        }
    }
    if own.trim().is_empty()
        && let Some((line, first)) = (1..).zip(text.lines()).find(|(_, line)| !line.trim().is_empty())
    {
        return Err(Foreign { count: 1, line, first: first.trim().to_owned(), file: None }.only());
    }
    Ok(own)
}

/// The text with such lines and banners empty, so that the others keep their numbers, and without colours.
#[must_use]
pub fn without_foreign(text: &str) -> Cow<'_, str> {
    let text = without_colours(text);
    if is_launch_file(&text) {
        return text;
    }
    if !text.lines().any(|line| is_foreign(line) || is_rule(line.as_bytes())) {
        return text;
    }
    let (mut kept, mut rest) = (String::with_capacity(text.len()), &*text);
    while !rest.is_empty() {
        let line = rest.find('\n').map_or(rest.len(), |end| end + 1);
        let foreign = banner(rest.as_bytes()).or_else(|| is_foreign(&rest[..line]).then_some(line));
        let (part, behind) = rest.split_at(foreign.unwrap_or(line));
        match foreign {
            Some(_) => kept.extend(part.lines().map(|_| '\n')),
            None => kept.push_str(part),
        }
        rest = behind;
    }
    // A declaration of XML must be at the very beginning, and says nothing here.
    let begin = kept.len() - kept.trim_start().len();
    if begin > 0
        && kept[begin..].starts_with("<?xml")
        && let Some(end) = kept[begin..].find("?>")
    {
        kept.replace_range(begin..begin + end + 2, "");
    }
    Cow::Owned(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_programs_are_told_from_lines_of_files() {
        let lines = "ibwarn: [2718] mad_rpc: _do_madrpc failed; dport (Lid 12)
src/query_smp.c:195; umad (DR path slid 0; dlid 0; 0,1 Attr 0x11:0) bad status 110; Connection timed out
src/ibnetdisc.c:812; Failed to resolve self
libibumad: could not open device mlx5_3
umad_init: can't open umad
Killed
logout
Killed by signal 15.
salloc: Granted job allocation 77
Loading openmpi/4.1.4
srun: warning: can't run 1 processes on 2 nodes
slurmstepd: error: *** STEP 1.0 ON n1 CANCELLED
Warning: Permanently added 'n1' (ED25519) to the list of known hosts.
WARNING: Open MPI failed
Defaulted container \"slurmctld\" out of: slurmctld, init (init)
perl: warning: Setting locale failed.
opareport: Warning: port is down
-bash: warning: setlocale: LC_ALL: cannot change locale
/usr/lib/python3/x.py:12: DeprecationWarning: imp
mlx5: n1: got completion with error
\u{1b}[33mWARNING: Open MPI failed\u{1b}[0m\n-W- lid=0x0009 is down\n\
Error from server (Forbidden): nodes is forbidden\n\
E1129 12:00:00.000000   12345 memcache.go:265] couldn't get current server API group list\n\
2026-11-29T12:00:00.123+01:00 INFO scanning\n[2026-11-29 12:00:00,123] scanning\n\
Nov  9 12:00:00 n1 opensm[7]: state change\n12:00:00 scanning\n\
[ 1234.567890] mlx5_core 0000:3b:00.0: port module event\n$ ibnetdiscover > fabric\n# ibnetdiscover\n\
% sudo iblinkinfo -l\nuser@n1:~$ ibnetdiscover\n(base) user@n1:~/my-files$\n[root@n1 tmp]# cat fabric\n\
slurm_load_ctl_conf error: Unable to contact slurm controller (connect failure)\ndiscovering network...\n\
**********\n*  Authorized users only  *\nUnauthorized access is prohibited.\nWelcome to Ubuntu 24.04 LTS\nThis system is for authorized use only.\n * Support: x\n\
[n1:12345] mca_base_component_repository_open: unable to open mca_pml_ucx\n\
[n1.local][[13200,1],1858][btl_tcp_endpoint.c:638:mca_btl_tcp_endpoint_complete_connect] connect() failed\n\
[0.000000] [smpi/INFO] Simulated time: 1\n[n1:0:(1) 0.500000] smpi.cpp:7: [xbt_cfg/WARNING] Set 'a'\n\
user@n1 ~ % kubectl get nodes\n+ kubectl get nodes -o json\n++ /usr/bin/ibnetdiscover\n$\nPS C:\\>\nPS C:\\a b> kubectl get nodes\nC:\\a>\nroot@n1:/# cat fabric\nbash-4.2$ cat fabric\nn1# scontrol show topology";
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
[r1:12] n1,l1,s1
ssh: gateway,l1,s1
killed
exit1
ib-1: leaf 1
CA: n01 mlx5_0:
Switch: 0x0c42a10300bb0001 MF0;leaf1:MQM8700/U1:
100g;;;;;;;;;;node1 hfi1_0;1;leaf 1;7
0x0011750101670001;1;FI;node1 hfi1_0;0x0011750102000001;7;SW;x
Chassis 1 (guid 0x1)
DR path slid 0; dlid 0; 0 -> new Channel Adapter
# warning: none
10:22:33:44:55:66 leaf1
16:16:16
[1]	"H-0000000000000001"[1] 		# "n1 mlx5_0" lid 2 4xHDR
[1.5, 2.000000] x
[n1:12345]
[[0, 1], [2, 3]] [a/b] c
----------------------------------------------------------------------
# from kubectl
# Topology file: generated on Sun Nov 29 12:00:00 2026
user@n1,leaf1 # x
SwitchName=s0 Nodes=n[0-3] # ibnetdiscover
- switch: a@b # srun 1
% rows columns
100 % 5
+ 1
+---+---+
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
        let (rule, other) = ("-".repeat(74), "-".repeat(73));
        let banner = format!("{rule}\nA process was\n\n{other}\n  Local host: n1\n{rule}\n");
        assert_eq!(without_foreign(&format!("a\n{banner}{banner}b")), format!("a\n{}b", "\n".repeat(12)));
        for kept in
            [format!("{rule}\n0 1\n1 0\n{rule}\n"), format!("{rule}\na b\n{other}\n"), format!("{rule}\n")]
        {
            assert_eq!(without_foreign(&kept), kept);
        }
    }
}
