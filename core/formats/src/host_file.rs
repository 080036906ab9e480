//! Host files of MPI launchers and batch systems, and lists of hosts with their slots.
//!
//! | line | of |
//! |---|---|
//! | `node[01-04]`, `n7,n8 n9` | host lists; repeated hosts have a slot for every line: `$PBS_NODEFILE`, `$LSB_DJOB_HOSTFILE` |
//! | `user@node01 slots = 40 max_slots=80` | Open MPI, where hosts with `slots=0` are not used; [`ATTRIBUTES`] has its other words |
//! | `node01:40`, `a:4,b:2` | MPICH, Intel MPI, and options `--host` |
//! | `node01 8 node02 4` | LSF: `$LSB_MCPU_HOSTS` |
//! | `node01 2 all.q@node01 UNDEFINED` | Grid Engine: `$PE_HOSTFILE` |
//!
//! `#` and `//` begin a comment, and messages of programs (`2>&1`) are skipped. Anything else is an error.
//!
//! Sources: the lexer of Open MPI's host files (`hostfile_lex.l` of 4.1 and of PRRTE 3) and what 4.1.4 shows by `--display-allocation`;
//! "Using the Hydra Process Manager"; `sge_pe(5)`; "Administering IBM Spectrum LSF".

use std::collections::HashMap;
use std::net::IpAddr;
use std::path::Path;

use hopmap_text::{self as text, FileError, Foreign, read_text, without_foreign};

use crate::host_list::{self, HostListError, MAX_NAMES, is_ipv6, is_separator};
use crate::host_names::repeated;

/// What an attribute of a host says.
#[derive(Clone, Copy)]
enum Attribute {
    Slots,
    /// The number of slots if there is no other.
    MaxSlots,
    /// How to reach the host.
    Connection,
}

const TWICE: &str = "the slots of the host are given twice";

/// Attributes of hosts, with `_` in the place of `-`.
const ATTRIBUTES: &[(Attribute, &[&str])] = &[
    (Attribute::Slots, &["slots", "cpu", "count"]),
    (Attribute::MaxSlots, &["max_slots", "slots_max", "max_cpu", "cpu_max", "max_count", "count_max"]),
    // Three of Open MPI, and three of MPICH.
    (Attribute::Connection, &["username", "user_name", "port", "user", "ifhn", "binding"]),
];

/// Most bytes of a file.
const MAX_BYTES: u64 = 1 << 28;

/// Names of hosts, and the slots of each as far as they are known.
pub type Hosts = Vec<(String, Option<u32>)>;

/// The hosts of a file, and what a user must hear of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HostFile {
    /// The hosts that launchers use.
    pub hosts: Hosts,
    /// Sentences on what was left out.
    pub remarks: Vec<String>,
}

/// What the launchers do with a host without slots, and the way out.
pub const WITHOUT_SLOTS: &str =
    "give every host its slots: without them, Open MPI takes its cores, and MPICH one";

/// The hosts of a file, which may be packed with gzip.
///
/// # Errors
/// If it cannot be read, is not a host file, or names no host.
pub fn read(path: &Path) -> Result<HostFile, FileError> {
    let text = read_text(path, MAX_BYTES)?;
    let file = expand(&text).map_err(|error| error.in_file(path))?;
    if file.hosts.is_empty() {
        let problem = match file.remarks.first() {
            Some(remark) => format!("no hosts are given; {remark}"),
            None if text.trim().is_empty() => "it is empty".to_owned(),
            None => "no hosts are given".to_owned(),
        };
        return Err(FileError::new(problem, "give a host file").in_file(path));
    }
    Ok(file)
}

/// The hosts of a text, each once in the order of its first line, and their slots where the file gives them.
///
/// As in Open MPI, a host has a line for every slot, after which none may have an attribute, and `n1.cluster.org` is `n1`. Slots of several lines
/// of other forms are added, as queues of Grid Engine and MPICH have them.
pub fn expand(text: &str) -> Result<HostFile, HostListError> {
    let mut hosts: Hosts = Vec::new();
    let text = text.trim_start_matches('\u{feff}');
    let own = without_foreign(text);
    let foreign = skipped(text, &own);
    // The line of each, and whether an attribute gives its slots.
    let mut lines: Vec<(usize, bool)> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut has_line_per_slot = false;
    let fault = |line: &str, number, what, hint| {
        let start = line.len() - line.trim_start().len();
        HostListError { line: number, ..HostListError::new(line, start, line.len(), what, hint) }
    };
    for (line, number) in own.lines().zip(1..) {
        let (of_line, [given, most]) = line_of(line, number, MAX_NAMES - hosts.len())?;
        let by_attribute = given.or(most).is_some();
        for (name, slots) in of_line {
            let Some(&place) = places.get(&name) else {
                places.insert(name.clone(), hosts.len());
                hosts.push((name, slots));
                lines.push((number, by_attribute));
                continue;
            };
            if given.is_some() {
                let what =
                    format!("`{name}` is also on line {}, and its slots are given again", lines[place].0);
                let hint = "give a host one line with `slots=`, or a line for every slot: Open MPI refuses `slots=` \
                            for a host that another line has";
                return Err(fault(line, number, what, hint));
            }
            has_line_per_slot |= slots.is_none();
            lines[place].1 |= by_attribute;
            let known = &mut hosts[place].1;
            // A line with `max_slots` alone is one for a slot.
            let all = known.unwrap_or(1).saturating_add(slots.filter(|_| most.is_none()).unwrap_or(1));
            if let Some(most) = most.filter(|most| all > *most) {
                let what = format!("`{name}` has {all} slots with this line, but at most {most}");
                return Err(fault(
                    line,
                    number,
                    what,
                    "Open MPI counts a line of a known host as one more slot",
                ));
            }
            *known = Some(all);
        }
    }
    let names: Vec<&str> = hosts.iter().map(|(name, _)| name.as_str()).collect();
    if let Some((first, second)) = repeated(&names) {
        let (number, line_of_first) = (lines[second].0, lines[first].0);
        let what = format!("`{}` and `{}` of line {line_of_first} are one host", names[second], names[first]);
        let line = text.lines().nth(number - 1).unwrap_or_default();
        return Err(fault(line, number, what, "use one name for it on all lines"));
    }
    // With a line for every slot, a host with one slot has one line.
    if has_line_per_slot && !lines.iter().any(|(_, by_attribute)| *by_attribute) {
        hosts.iter_mut().for_each(|(_, slots)| *slots = slots.or(Some(1)));
    }
    let unused: Vec<usize> = (0..hosts.len()).filter(|&host| hosts[host].1 == Some(0)).collect();
    let mut remarks: Vec<String> = foreign.iter().map(Foreign::to_string).collect();
    if let Some(&first) = unused.first() {
        let count = text::counted(unused.len(), "host");
        let (name, line) = (&hosts[first].0, lines[first].0);
        remarks.push(format!("{count} with `slots=0`, left out, the first in line {line}: `{name}`"));
        hosts.retain(|(_, slots)| *slots != Some(0));
    }
    Ok(HostFile { hosts, remarks })
}

/// The lines of a text that are empty without those of other programs, but for comments.
fn skipped(text: &str, own: &str) -> Option<Foreign> {
    let is_skipped = |(line, own): &(&str, &str)| own.is_empty() && !without_comment(line).trim().is_empty();
    let mut all = text.lines().zip(own.lines()).zip(1..).filter(|(lines, _)| is_skipped(lines));
    let ((first, _), line) = all.next()?;
    Some(Foreign { count: 1 + all.count(), line, first: first.trim().to_owned() })
}

fn without_comment(line: &str) -> &str {
    let line = line.split('#').next().unwrap_or_default();
    line.split("//").next().unwrap_or_default()
}

/// The hosts of a list that is a parameter or a variable, in order and as often as they are named. It may be a host list, and so have
/// names that are numbers, or a line of a host file.
pub fn expand_list(text: &str) -> Result<Hosts, HostListError> {
    let mut hosts = Vec::new();
    match text.split(is_separator).all(is_whole) {
        true => hosts.extend(host_list::expand(text)?.into_iter().map(|name| (name, None))),
        false => {
            for (line, number) in text.lines().zip(1..) {
                let of_line = line_of(line, number, MAX_NAMES - hosts.len())?.0;
                hosts.extend(of_line.into_iter().filter(|(_, slots)| *slots != Some(0)));
            }
        }
    }
    Ok(hosts)
}

/// A word at a byte of its line, and the value behind `=`.
#[derive(Clone, Copy)]
struct Word<'l> {
    start: usize,
    text: &'l str,
    value: Option<&'l str>,
}

fn words(line: &str) -> Vec<Word<'_>> {
    let skip = |from: usize| line[from..].find(|c: char| !c.is_whitespace()).map_or(line.len(), |n| from + n);
    let mut words = Vec::new();
    let mut start = skip(0);
    while start < line.len() {
        let ends = |c: char| c == '=' || c.is_whitespace();
        let end = line[start..].find(ends).map_or(line.len(), |n| start + n);
        let after = skip(end);
        let (value, next) = match line[after..].starts_with('=') {
            true => {
                let first = skip(after + 1);
                let last = line[first..].find(char::is_whitespace).map_or(line.len(), |n| first + n);
                (Some(&line[first..last]), last)
            }
            false => (None, end),
        };
        words.push(Word { start, text: &line[start..end], value });
        start = skip(next);
    }
    words
}

/// The hosts of a line, and the slots and the most slots that its attributes give.
type Line = (Hosts, [Option<u32>; 2]);

/// A line with this number, of at most `most` hosts.
fn line_of(line: &str, number: usize, most: usize) -> Result<Line, HostListError> {
    hosts_of(line, most).map_err(|error| HostListError { line: number, ..error })
}

fn hosts_of(line: &str, most: usize) -> Result<Line, HostListError> {
    let line = without_comment(line);
    let (attributes, names): (Vec<_>, Vec<_>) =
        words(line).into_iter().partition(|word| word.value.is_some());
    let given = slots_of(line, &attributes)?;
    let slots = given[0].or(given[1]);
    let counted = counted(&names);
    if counted.is_none() {
        only_names(line, &names)?;
    }
    let mut hosts = Vec::new();
    for (word, count) in counted.unwrap_or_else(|| names.iter().map(|name| (*name, None)).collect()) {
        for item in items(word) {
            let (names, own) = item_of(line, item, most - hosts.len())?;
            if [own, count, slots].iter().flatten().count() > 1 {
                return Err(fault(line, word, TWICE.to_owned()));
            }
            let number = own.or(count).or(slots);
            hosts.extend(names.into_iter().map(|name| (name, number)));
        }
    }
    match (hosts.is_empty(), attributes.first()) {
        (true, Some(word)) => Err(fault(line, *word, format!("`{}` has no host before it", word.text))),
        _ => Ok((hosts, given)),
    }
}

/// The number of slots and the most slots in the attributes of a line.
fn slots_of(line: &str, attributes: &[Word<'_>]) -> Result<[Option<u32>; 2], HostListError> {
    let (mut slots, mut most) = (None, None);
    for &word in attributes {
        let name = word.text.replace('-', "_");
        let Some((attribute, _)) = ATTRIBUTES.iter().find(|(_, known)| known.contains(&name.as_str())) else {
            return Err(fault(line, word, format!("`{}` is not an attribute of a host", word.text)));
        };
        let known = match attribute {
            Attribute::Slots => &mut slots,
            Attribute::MaxSlots => &mut most,
            Attribute::Connection => continue,
        };
        let number = match word.value {
            Some("0") if matches!(attribute, Attribute::Slots) => 0,
            // More than any host has.
            Some(value) if matches!(attribute, Attribute::MaxSlots) && value.len() > 9 && is_whole(value) => {
                u32::MAX
            }
            value => number(line, word, value.unwrap_or_default())?,
        };
        if known.replace(number).is_some() {
            return Err(fault(line, word, TWICE.to_owned()));
        }
        if let (Some(slots), Some(most)) = (slots, most)
            && slots > most
        {
            return Err(fault(line, word, format!("the host has {slots} slots, but at most {most}")));
        }
    }
    Ok([slots, most])
}

/// Refuses a line of `/etc/hosts`, an address and the names of the same host, which are no further hosts.
fn only_names(line: &str, words: &[Word<'_>]) -> Result<(), HostListError> {
    let is_address = |word: &&Word<'_>| word.text.parse::<IpAddr>().is_ok();
    let is_name =
        |word: &&Word<'_>| word.text.contains(|c: char| c.is_alphabetic()) && !word.text.contains(':');
    let other = words.iter().find(is_name);
    let (Some(address), Some(other)) = (words.first().filter(is_address), other) else { return Ok(()) };
    let what = format!("`{}` and `{}` are one host, as in /etc/hosts, or two", address.text, other.text);
    let hint = "keep one name on the line, that of the machine topology; separate hosts by lines or commas";
    Err(HostListError::new(line, other.start, other.start + other.text.len(), what, hint))
}

/// Hosts with a number after each of them, if that is what a line has: that of `$LSB_MCPU_HOSTS`, or of `$PE_HOSTFILE` with a queue and
/// processors.
fn counted<'l>(words: &[Word<'l>]) -> Option<Vec<(Word<'l>, Option<u32>)>> {
    let count = |word: &Word<'_>| word.text.parse().ok().filter(|&count| count > 0 && is_whole(word.text));
    if let [host, slots, queue, processors @ ..] = words
        && let (false, Some(slots)) = (is_whole(host.text), count(slots))
        && processors.len() <= 1
        && (queue.text.contains('@')
            || processors.iter().any(|word| ["UNDEFINED", "<NULL>"].contains(&word.text)))
    {
        return Some(vec![(*host, Some(slots))]);
    }
    let pairs = words.chunks(2).map(|pair| match pair {
        [host, slots] if !is_whole(host.text) => Some((*host, Some(count(slots)?))),
        _ => None,
    });
    pairs.collect()
}

/// The names of a word, between commas that are not in brackets.
fn items(word: Word<'_>) -> impl Iterator<Item = Word<'_>> {
    let (mut depth, mut start) = (0usize, word.start);
    let parts = word.text.split(move |c: char| {
        match c {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    });
    parts.map(move |text| {
        let item = Word { start, text, value: None };
        start += text.len() + 1;
        item
    })
}

/// The hosts of `user@host:slots`, where user and slots may be missing, and the host may be a list or an address.
fn item_of(line: &str, item: Word<'_>, most: usize) -> Result<(Vec<String>, Option<u32>), HostListError> {
    let no_host = || fault(line, item, format!("`{}` is not a host name", item.text));
    let host = match item.text.rsplit_once('@') {
        Some((user, host)) if user.is_empty() || host.is_empty() => return Err(no_host()),
        Some((_, host)) => host,
        None => item.text,
    };
    if is_whole(host) && !host.is_empty() || host.starts_with(['^', '+', '"']) || host.contains('/') {
        return Err(no_host());
    }
    let first = item.start + item.text.len() - host.len();
    // An address has several colons, and its slots are behind brackets.
    let (end, count) = match host.rsplit_once(':') {
        Some((name, count)) if !name.contains(':') || name.starts_with('[') && name.ends_with(']') => {
            (first + name.len(), Some(number(line, item, count)?))
        }
        _ => (first + host.len(), None),
    };
    let names = host_list::expand_from(&line[..end], first, most)?;
    let is_host = |name: &String| !name.contains(':') || is_ipv6(name);
    if names.iter().all(is_host) { Ok((names, count)) } else { Err(no_host()) }
}

fn is_whole(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

fn number(line: &str, word: Word<'_>, text: &str) -> Result<u32, HostListError> {
    match (text, text.parse()) {
        ("", _) => Err(fault(line, word, format!("`{}` has no number", word.text))),
        (text, Ok(number)) if number > 0 && is_whole(text) => Ok(number),
        _ => Err(fault(line, word, format!("`{text}` is not a number of slots"))),
    }
}

fn fault(line: &str, word: Word<'_>, what: String) -> HostListError {
    let hint = "write `node01 slots=40`, `node01:40` or `node01 40`";
    HostListError::new(line, word.start, word.start + word.text.len(), what, hint)
}

#[cfg(test)]
mod tests {
    use hopmap_test_support::given_data;
    use proptest::prelude::*;

    use super::*;

    fn hosts(text: &str) -> Hosts {
        expand(text).unwrap_or_else(|error| panic!("{text}: {error}")).hosts
    }

    fn named(names: &[&str], slots: Option<u32>) -> Hosts {
        names.iter().map(|name| ((*name).to_owned(), slots)).collect()
    }

    #[test]
    fn the_forms_of_all_launchers_are_read() {
        assert_eq!(
            hosts("# free\nnode[01-02]\n\nn7,n8 n9 # three\n"),
            named(&["node01", "node02", "n7", "n8", "n9"], None)
        );
        for text in [
            "a slots=4 max_slots=8\nb  slots=4\n",
            "a slots = 4\nb slots= 4 max-slots =8 // comment\n",
            "a cpu=4\nb count=4 port=22\n",
            "a max-slots=4\nb cpu_max=4\n",
            "joe@a slots=4\nann@b slots=4 username=joe\n",
            "a:4 ifhn=ib0\nb:4 binding=map=0,1\n",
            "\u{feff}a:4,b:4\r\n",
            "a,b slots=4\n",
            "a 4\nb 4\n",
            "a 4 b 4 \n",
            "a 2 all.q@a UNDEFINED\nb 4 all.q@b <NULL>\na 2 long.q@a 0,0:0,1\n",
            "a 4 node.q UNDEFINED\nb 4 all.q@b\n",
            "a\na\nb\na\na\nb\nb\nb",
        ] {
            assert_eq!(hosts(text), named(&["a", "b"], Some(4)), "{text}");
        }
        assert_eq!(hosts("a:4\nb[1-2]:4\nx[1,3] 4"), named(&["a", "b1", "b2", "x1", "x3"], Some(4)));
        assert_eq!(hosts(" \n"), []);
        let slots = |text: &str| hosts(text).into_iter().map(|(_, slots)| slots).collect::<Vec<_>>();
        // A file with a line for every slot has one line for a host with one slot, but with attributes that is not known.
        assert_eq!(slots("a\na\nb\n"), [Some(2), Some(1)]);
        assert_eq!(slots("a\na\nb\nc slots=4\n"), [Some(2), None, Some(4)]);
        assert_eq!(slots("a:2\nb:1\na:2\n"), [Some(4), Some(1)]);
    }

    #[test]
    fn addresses_are_hosts() {
        let names = ["::1", "fe80:0::1", "2001:db8::7", "10.0.0.1"];
        let text = "::1 slots=2\njoe@fe80:0::1 slots=2\n[2001:db8::7]:2\n10.0.0.1:2\n";
        assert_eq!(hosts(text), named(&names, Some(2)));
        assert_eq!(hosts("10.0.0.1 10.0.0.[2-3]\n10.0.0.4,a 10.0.0.5\n").len(), 6);
        assert_eq!(hosts("10.0.0.1 10.0.0.2 slots=3\n"), named(&["10.0.0.1", "10.0.0.2"], Some(3)));
        assert_eq!(hosts("fe80::[1-2]\n"), named(&["fe80::1", "fe80::2"], None));
        assert!(expand("a:b:2\n").is_err());
    }

    /// Numbers were hosts, and those of `a:4,b:2` parts of names.
    #[test]
    fn lists_have_slots_where_they_are_given() {
        let list = |text: &str| expand_list(text).unwrap();
        assert_eq!(list("n1 8 n2 8"), named(&["n1", "n2"], Some(8)));
        assert_eq!(list("a:2,b[1,2]:2"), named(&["a", "b1", "b2"], Some(2)));
        assert_eq!(list("n[1-2],n1 m"), named(&["n1", "n2", "n1", "m"], None));
        // All names of a machine may be numbers.
        assert_eq!(list("0,12"), named(&["0", "12"], None));
        assert_eq!(list(""), []);
    }

    /// As Open MPI 4.1 counts them.
    #[test]
    fn a_line_without_slots_adds_one() {
        assert_eq!(hosts("a slots=4\na\n"), named(&["a"], Some(5)));
        assert_eq!(hosts("a\nb\na\n"), [("a".to_owned(), Some(2)), ("b".to_owned(), Some(1))]);
        for (text, slots) in [
            ("a slots=4\na max_slots=8\n", 5),
            ("a\na max_slots=8\n", 2),
            ("a max_slots=8\na\n", 9),
            ("a max_slots=8\na max_slots=9\n", 9),
            ("a slots=0\na\n", 1),
            ("b slots=0\na slots=2\n", 2),
        ] {
            assert_eq!(hosts(text), named(&["a"], Some(slots)), "{text}");
        }
    }

    #[test]
    fn banners_and_words_of_shells_are_no_hosts() {
        let rule = "-".repeat(74);
        let text = format!(
            "Killed by signal 15.\nn1\n{rule}\nWARNING: a b\n\n  Local host:   n1\n{rule}\nn2\nlogout\n"
        );
        let file = expand(&text).unwrap();
        assert_eq!(file.hosts, named(&["n1", "n2"], None));
        assert!(
            file.remarks[0].starts_with("lines of other programs, skipped: 6, the first in line 1"),
            "{:?}",
            file.remarks
        );
    }

    /// They were left out without a word.
    #[test]
    fn hosts_without_slots_are_named() {
        let file =
            expand("# $ cat hosts\n$ cat hosts\na slots=2 max_slots=99999999999\nb slots=0\nc slots=0\n")
                .unwrap();
        assert_eq!(file.hosts, named(&["a"], Some(2)));
        assert_eq!(
            file.remarks,
            [
                "lines of other programs, skipped: 1, the first in line 2: `$ cat hosts`",
                "2 hosts with `slots=0`, left out, the first in line 4: `b`"
            ]
        );
    }

    #[test]
    fn faults_are_named_with_their_line() {
        let message = |text: &str| expand(text).unwrap_err().to_string();
        assert_eq!(message("a\nn[2\n"), "host list, line 2, column 2: unclosed bracket");
        for (text, fault) in [
            ("a slots=99999999999", "column 3: `99999999999` is not a number of slots"),
            ("a slots=four", "column 3: `four` is not a number of slots"),
            ("a:0", "column 1: `0` is not a number of slots"),
            ("a slots = 4 slots=4", "column 13: the slots of the host are given twice"),
            ("a:1 slots=2", "column 1: the slots of the host are given twice"),
            ("a slots=4 max-slots=2", "column 11: the host has 4 slots, but at most 2"),
            ("a max_slots=2 max-slots=4", "column 15: the slots of the host are given twice"),
            (
                "a slots=4\nb\n a slots=4",
                "line 3, column 2: `a` is also on line 1, and its slots are given again",
            ),
            ("a\na slots=4", "line 2, column 1: `a` is also on line 1, and its slots are given again"),
            ("n1\n\nn1.cluster.org", "line 3, column 1: `n1.cluster.org` and `n1` of line 1 are one host"),
            ("m n1.x:2\nn1.y:2\nn1:2", "line 3, column 1: `n1` and `n1.x` of line 1 are one host"),
            ("a slots=4\na max_slots=4", "line 2, column 1: `a` has 5 slots with this line, but at most 4"),
            ("a slots=", "column 3: `slots` has no number"),
            ("a SLOTS=2", "column 3: `SLOTS` is not an attribute of a host"),
            ("a sockets=2", "column 3: `sockets` is not an attribute of a host"),
            ("slots=2", "column 1: `slots` has no host before it"),
            ("rank 0=a slot=1", "column 6: `0` is not an attribute of a host"),
            ("4 node01", "column 1: `4` is not a host name"),
            ("8", "column 1: `8` is not a host name"),
            ("a 8 b", "column 3: `8` is not a host name"),
            ("a 0", "column 3: `0` is not a host name"),
            ("10.0.0.1 a", "column 10: `10.0.0.1` and `a` are one host, as in /etc/hosts, or two"),
            (
                "::1\tlocalhost a # own",
                "column 5: `::1` and `localhost` are one host, as in /etc/hosts, or two",
            ),
            ("^a", "column 1: `^a` is not a host name"),
            ("@a", "column 1: `@a` is not a host name"),
            ("a/0+b/0", "column 1: `a/0+b/0` is not a host name"),
            ("x n[2-1]", "column 5: the range is descending, from 2 to 1"),
        ] {
            assert_eq!(message(text), format!("host list, {fault}"), "{text}");
        }
    }

    #[test]
    fn host_files_of_public_reports_have_their_slots() {
        let Some(data) = given_data() else { return };
        for (file, slots) in
            [("het", &[8, 4, 4][..]), ("ompi_cpu", &[2, 2]), ("ompi_spaces", &[2, 2]), ("ompi_user", &[2, 2])]
        {
            let path = data.join("reports").join(format!("hostfile-{file}"));
            let of = |(n, slots): (u32, &u32)| (format!("node0{n}"), Some(*slots));
            assert_eq!(read(&path).unwrap().hosts, (1..).zip(slots).map(of).collect::<Hosts>(), "{file}");
        }
    }

    proptest! {
        /// Any hosts in any form that a program writes.
        #[test]
        fn every_form_says_the_same(slots in prop::collection::vec(1u32..200, 1..20), form in 0usize..7, places in prop::collection::vec(0usize..100, 0..4)) {
            let of = |(host, slots): (usize, &u32)| match form {
                0 => format!("n{host} slots={slots}\n"),
                1 => format!("me@n{host} slots = {slots} max_slots = 999\n"),
                2 => format!("n{host}:{slots}\n"),
                3 => format!("n{host} {slots} "),
                4 => format!("n{host} {slots} all.q@n{host} UNDEFINED\n"),
                5 => format!("n{host}:{slots},"),
                _ => format!("n{host}\n").repeat(*slots as usize + 1),
            };
            let text: String = slots.iter().enumerate().map(of).collect();
            let more = u32::from(form == 6);
            let expected: Hosts = slots.iter().enumerate().map(|(host, slots)| (format!("n{host}"), Some(slots + more))).collect();
            prop_assert_eq!(expand(&text).unwrap(), HostFile { hosts: expected.clone(), remarks: vec![] });
            // The same with messages of programs, which begin after any line.
            if !text.contains('\n') {
                return Ok(());
            }
            let mut lines: Vec<&str> = text.lines().collect();
            let messages = ["srun: warning: can't run", "Warning: Permanently added 'n1' (ED25519)", "$ cat hosts", "Last login: Mon"];
            let ends = lines.len() + 1;
            let at = places.iter().map(|place| place % ends);
            let first = at.clone().min();
            at.zip(messages).for_each(|(place, message)| lines.insert(place, message));
            let read = expand(&lines.join("\n")).unwrap();
            prop_assert_eq!(read.hosts, expected);
            let said = first.map(|first| format!("lines of other programs, skipped: {}, the first in line {}: ", places.len(), first + 1));
            prop_assert!(read.remarks.first().map_or(said.is_none(), |remark| remark.starts_with(&said.unwrap_or_default())));
        }
    }
}
