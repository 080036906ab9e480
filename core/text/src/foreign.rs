//! Lines of other programs in a text: warnings that were redirected to the same file (`2>&1`).

use std::borrow::Cow;
use std::fmt::{self, Display, Formatter};
use std::path::Path;

use memchr::{memchr2, memchr3};

use crate::counts::shown;
use crate::error::FileError;
use crate::input::Input;
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
    /// Of a format whose rows are not known, or that is no text.
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

/// Programs and libraries that write messages with their names.
const PROGRAMS: &str = "bash cat grep mpirun numactl orterun perl prterun python python3 salloc sbatch scontrol sh slurmstepd srun \
                        ssh stty sudo tee timeout tput";
/// First parts of the names of programs and libraries for InfiniBand.
const FAMILIES: [&str; 7] = ["ib", "libib", "libmlx", "libopa", "mad", "mlx", "umad"];
/// What messages begin with, or have after the name of their program.
const KINDS: [&str; 4] = ["warning", "error", "fatal", "warn"];
/// Beginnings of messages of remote shells and their banners, locales, ibdiagnet, kubectl, Slurm and script, and of prompts.
const MESSAGES: &str = "-E- |-I- |-W- |Error from server|Unable to connect to the server|The connection to the server|\
                        No resources found|Script started|Script done|❯ |Connection to |Last login: |LANGUAGE = (|\
                        LC_ALL = (|LANG = |are supported and installed on your|slurm_load_|discovering network|Welcome to |\
                        Web console: |Activate the web console with: |* Documentation: |* Management: |* Support: |****|\
                        Authorized users only|Authorised users only|Unauthorized |Unauthorised |You have mail|You have new mail|\
                        Last failed login: |There was 1 failed login |There were |This system is |This is a private |Use of this |\
                        Killed by signal |Permission denied|No modules loaded|Connection refused|Connection closed |Loading |\
                        Access to this |By using this |By accessing |You are accessing |System information as of ";
/// Lines of shells without further words.
const WORDS: [&str; 5] = ["Killed", "Terminated", "Aborted", "logout", "exit"];
/// Programs whose call behind `#` or `%` is a line of a terminal rather than a comment.
const CALLED: &str = "ibnetdiscover iblinkinfo ibdiagnet opareport opaextractlink kubectl scontrol nvidia-smi lstopo \
                      netloc_ib_gather_raw sudo ssh srun";
/// Times at the beginning of a line of a log, with `A` for a letter and `9` for a digit: also those of klog, syslog
/// and ctime.
const TIMES: &str = "9999-99-99T99:99:99|9999-99-99 99:99:99|9999/99/99 99:99:99|99:99:99|A9999 99:99:99|\
                     AAA 99 99:99:99|AAA  9 99:99:99|AAA AAA 99 99:99:99|AAA AAA  9 99:99:99";

/// Whether a line is one of numbers, as most lines of traces are, which have no sign of a message.
pub(crate) fn are_numbers(line: &[u8]) -> bool {
    let is_like = |byte: &u8| byte.is_ascii_digit() || *byte == b':';
    line.first().is_some_and(u8::is_ascii_digit)
        && (memchr3(b':', b';', b'$', line).is_none() && memchr2(b'#', b'%', line).is_none()
            || line.trim_ascii_end().iter().all(is_like))
}

/// Whether a line is a message of a program rather than a part of a file: `ibwarn: [7] …`, `src/query_smp.c:195; …`,
/// `srun: warning: …`, `Warning: …`; or one of a log with its time, or a command at a prompt.
#[must_use]
pub fn is_foreign(line: &str) -> bool {
    if are_numbers(line.as_bytes()) {
        return false;
    }
    let line = without_colours(line);
    let line = line.trim();
    let begins = |text: &str| line.get(..text.len()).is_some_and(|start| start.eq_ignore_ascii_case(text));
    let is_framed = line.len() > 4 && line.starts_with("* ") && line.ends_with(" *");
    if MESSAGES.split('|').any(begins)
        || WORDS.contains(&line)
        || is_framed
        || behind_time(line).is_some()
        || is_bracketed(line)
        || is_typed(line)
    {
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
    let is_program = PROGRAMS.split_whitespace().any(|program| program == word)
        || FAMILIES.iter().any(|family| word.starts_with(family))
            && !word.contains('-')
            && message.contains(' ');
    let is_source = [".c", ".h", ".cc", ".cpp", ".py", ".pl"].iter().any(|end| word.ends_with(end))
        && rest.starts_with(|c: char| c.is_ascii_digit());
    is_source
        || is_said
            && (is_program && !is_row(message)
                || KINDS.iter().any(|kind| word.eq_ignore_ascii_case(kind)) && message.contains(' '))
        || is_said && is_of(&KINDS, message) && message.contains([' ', ':'])
}

/// Whether what follows the name of a host or program is the rest of a row of a table rather than a message.
fn is_row(text: &str) -> bool {
    text.contains(',') && !text.contains(' ')
}

/// What a log says behind the time at the beginning of a line, `2026-11-29 12:00:00,123 …` or `[12:00:00] …`, or behind the seconds
/// of dmesg, `[ 12.000001] …`.
pub(crate) fn behind_time(line: &str) -> Option<&str> {
    let rest = line.strip_prefix('[').unwrap_or(line);
    let is_like = |(byte, shape): (u8, u8)| match shape {
        b'9' => byte.is_ascii_digit(),
        b'A' => byte.is_ascii_alphabetic(),
        _ => byte == shape,
    };
    let begins = |time: &&str| rest.len() > time.len() && rest.bytes().zip(time.bytes()).all(is_like);
    if let Some(time) = TIMES.split('|').find(begins) {
        // A fraction and a zone, but not the rest of an address such as 10:22:33:44:55:66.
        let rest = &rest[time.len()..];
        let message = rest.trim_start_matches(|c: char| c.is_ascii_digit() || ".,+-:Z]".contains(c));
        return message.strip_prefix(char::is_whitespace).filter(|_| !rest.starts_with(':'));
    }
    let fraction = rest.trim_start_matches(|c: char| c == ' ' || c.is_ascii_digit());
    let is_time = fraction.len() > 9 && fraction.bytes().zip(*b".999999] A").all(is_like);
    is_time.then(|| &fraction[9..])
}

/// Whether a line is one of Open MPI, `[host:4711] …` or `[host][[4711,1],2][file.c:7:function] …`, or one of the log of
/// SimGrid, `[0.500000] [smpi/INFO] …` or `[host:rank:(1) 0.5] file.cpp:7: [smpi/INFO] …`.
fn is_bracketed(line: &str) -> bool {
    let Some((within, message)) = line.strip_prefix('[').and_then(|line| line.split_once("] ")) else {
        return false;
    };
    let is_name = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c));
    let is_process = |(host, id): (&str, &str)| is_name(host) && id.parse::<u32>().is_ok();
    let has_level = |level| message.contains('[') && message.contains(level);
    within.split_once(':').is_some_and(is_process) && !is_row(message)
        || within.contains("][") && within.contains(".c:")
        || ["/CRITICAL] ", "/ERROR] ", "/WARNING] ", "/INFO] ", "/VERBOSE] ", "/DEBUG] "]
            .into_iter()
            .any(has_level)
}

/// Whether a line is a command at the prompt of a shell: `$ ibnetdiscover`, `user@host:~$ ibnetdiscover`,
/// `[user@host dir]$ ibnetdiscover`, `user@host dir % ibnetdiscover`, `# ibnetdiscover`, `PS C:\> kubectl`; or the trace that `set -x` writes
/// of it, `++ kubectl get nodes`.
fn is_typed(line: &str) -> bool {
    let traced = line.trim_start_matches('+');
    if traced.len() < line.len() && traced.starts_with(' ') {
        return traced.trim_start().starts_with(|c: char| c.is_ascii_alphabetic() || c == '/' || c == '.');
    }
    let path = line.strip_prefix("PS ").unwrap_or(line);
    if path.get(1..3) == Some(":\\") && path.contains('>') {
        return true;
    }
    let Some((at, sign)) = line.match_indices(['$', '#', '%']).next() else { return false };
    let (prompt, rest) = (&line[..at], &line[at + 1..]);
    let prompt =
        prompt.rsplit_once(") ").filter(|(name, _)| name.starts_with('(')).map_or(prompt, |(_, rest)| rest);
    let is_called = || CALLED.split(' ').any(|called| rest.split(' ').nth(1) == Some(called));
    let is_word = |word: &str| word.chars().all(|c| c.is_alphanumeric() || "._-:~/@".contains(c));
    let is_prompt = is_word(prompt) || prompt.starts_with('[') && prompt.ends_with(']') || sign == "%";
    let user = prompt.split(' ').next().unwrap_or_default().trim_start_matches('[');
    let is_of_user = is_prompt && is_word(user) && user.contains('@');
    (rest.starts_with(' ') || rest.is_empty() && (at > 0 || sign == "$"))
        && (is_of_user || is_word(prompt) && (sign == "$" || is_called()))
}

const COLOUR: &str = "\u{1b}[";

/// The text without the colours of terminals, such as `ESC [ 1 ; 31 m`.
pub(crate) fn without_colours(text: &str) -> Cow<'_, str> {
    if !text.contains(COLOUR) {
        return Cow::Borrowed(text);
    }
    let mut parts = text.split(COLOUR);
    let first = parts.next().unwrap_or_default();
    let plain = |part: &str| {
        let rest = part.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';');
        rest.strip_prefix(|c: char| c.is_ascii_alphabetic()).unwrap_or(rest).to_owned()
    };
    Cow::Owned(std::iter::once(first.to_owned()).chain(parts.map(plain)).collect())
}

/// The same, unless a row is lost in them, or nothing else is in the text.
pub fn rows_without_foreign<'t>(text: &'t str, rows: &Rows) -> Result<Cow<'t, str>, FileError> {
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
