//! Host files of MPI launchers and batch systems, and lists of hosts with their slots.
//!
//! | line | of |
//! |---|---|
//! | `node[01-04]`, `n7,n8 n9` | host lists; repeated hosts have a slot for every line: `$PBS_NODEFILE`, `$LSB_DJOB_HOSTFILE` |
//! | `user@node01 slots = 40 max_slots=80` | Open MPI, where hosts with `slots=0` are not used; [`ATTRIBUTES`] has its other words |
//! | `node01:40`, `a:4,b:2` | MPICH, Intel MPI, and options `--host` |
//! | `node01 8 node02 4`, `8*node01:4*node02:node03` | LSF: `$LSB_MCPU_HOSTS`, and as `bjobs` shows them, where a host without a number has one slot |
//! | `node01 2 all.q@node01 UNDEFINED` | Grid Engine: `$PE_HOSTFILE` |
//!
//! A file that begins with `{` is a resource set of Flux. `#` and `//` begin a comment; messages of programs (`2>&1`) and a header of Slurm in capitals are skipped. Anything else is an error,
//! also what may be no host by its shape: a word without a number behind a name, and `total 12` beside lines of another form.
//!
//! Sources: the lexer of Open MPI's host files (`hostfile_lex.l` of 4.1 and of PRRTE 3) and what 4.1.4 shows by `--display-allocation`;
//! "Using the Hydra Process Manager"; `sge_pe(5)`; "Administering IBM Spectrum LSF".

mod flux;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::net::IpAddr;
use std::path::Path;

use hopmap_text::{
    self as text, FileError, Foreign, is_launch_file, prefix_of_lines, read_text, refuse_prefixed,
    without_foreign,
};

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
    /// The first line of each.
    pub lines: Vec<usize>,
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
    if is_resource_set(&text) {
        let hosts = flux::resource_set(&text).map_err(|error| error.in_file(path))?;
        return Ok(HostFile { lines: vec![1; hosts.len()], hosts, remarks: Vec::new() });
    }
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

/// Whether a text is a resource set of Flux.
#[must_use]
pub fn is_resource_set(text: &str) -> bool {
    text.trim_start().starts_with('{')
}

/// The hosts of a text, each once in the order of its first line, and their slots where the file gives them.
///
/// As in Open MPI, a host has a line for every slot, after which none may have an attribute, and `n1.cluster.org` is `n1`. Slots of several lines
/// of other forms are added, as queues of Grid Engine and MPICH have them.
///
/// A time or a label before lines is refused with the command that removes it: such lines would be those of another program.
pub fn expand(text: &str) -> Result<HostFile, HostListError> {
    let refuse = |error: FileError| {
        let number = error.line.unwrap_or(1);
        let line = text.lines().nth(number - 1).unwrap_or_default();
        let help = error.help_text().to_owned();
        Err(HostListError { line: number, ..HostListError::new(line, 0, line.len(), error.problem, help) })
    };
    if let Err(error) = refuse_prefixed(text) {
        return refuse(error);
    }
    let file = hosts_of_text(text);
    let has_hosts = |file: &Result<HostFile, _>| file.as_ref().is_ok_and(|file| !file.hosts.is_empty());
    let is_known = |behind: &str, _| {
        let is_every = behind.lines().nth(1).is_some() && behind.lines().all(|line| !line.trim().is_empty());
        is_every && has_hosts(&hosts_of_text(behind))
    };
    // `[0]` would be a host.
    if (!has_hosts(&file) || text.trim_start().starts_with('['))
        && let Some(prefix) = prefix_of_lines(text, is_known)
        // That is a host and its slots.
        && !prefix.shown().contains('=')
    {
        return refuse(prefix.of_all(text, ""));
    }
    file
}

/// The hosts of a text whose lines have nothing before them.
fn hosts_of_text(text: &str) -> Result<HostFile, HostListError> {
    let mut hosts: Hosts = Vec::new();
    let text = text.trim_start_matches('\u{feff}');
    let own = without_foreign(text);
    let is_ours = is_launch_file(text);
    let (own, _) = Foreign::of_lines(&own, &if is_ours { Vec::new() } else { apart(&own) });
    let foreign = skipped(text, &own);
    // The line of each, and whether an attribute gives its slots.
    let mut lines: Vec<(usize, bool)> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut has_line_per_slot = false;
    let mut shapes = Vec::new();
    let fault = |line: &str, number, what, hint| {
        let start = line.len() - line.trim_start().len();
        HostListError { line: number, ..HostListError::new(line, start, line.len(), what, hint) }
    };
    let is_one_line = own.lines().filter(|line| !without_comment(line).trim().is_empty()).count() == 1;
    for (line, number) in own.lines().zip(1..) {
        let (of_line, [given, most]) = line_of(line, number, MAX_NAMES - hosts.len())?;
        let by_attribute = given.or(most).is_some();
        shapes.extend(Shape::of(line, number, &of_line, is_one_line)?.filter(|_| !is_ours));
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
    if let Some(Shape { line, number, .. }) = Shape::odd(&shapes) {
        let what = format!("`{}` has another form than other lines, and may be no host", line.trim());
        return Err(fault(line, *number, what, "remove the line, or write `node01:8` if it is a host"));
    }
    let names: Vec<&str> = hosts.iter().map(|(name, _)| name.as_str()).collect();
    if let Some((first, second)) = repeated(&names) {
        let (number, line_of_first) = (lines[second].0, lines[first].0);
        let what = format!("`{}` and `{}` of line {line_of_first} are one host", names[second], names[first]);
        let line = text.lines().nth(number - 1).unwrap_or_default();
        return Err(fault(line, number, what, "use one name for it on all lines"));
    }
    // LSF writes a host with one slot without their number beside `4*node01`.
    if own.lines().any(|line| words(without_comment(line)).iter().any(is_of_lsf)) {
        hosts.iter_mut().for_each(|(_, slots)| *slots = slots.or(Some(1)));
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
    }
    if let Some(Shape { line, number, .. }) = Shape::doubtful(&shapes) {
        remarks.push(format!(
            "`{}` in line {number} is taken for a host, although the names of all others have numbers",
            line.trim()
        ));
    }
    if is_one_line && own.lines().any(|line| are_plain(&words(without_comment(line)))) {
        remarks.push(format!("its words are taken for the names of {}", text::counted(hosts.len(), "host")));
    }
    let used = hosts.into_iter().zip(lines).filter(|((_, slots), _)| *slots != Some(0));
    let (hosts, lines) = used.map(|(host, (line, _))| (host, line)).unzip();
    Ok(HostFile { hosts, lines, remarks })
}

/// Names that a column of hosts has.
const COLUMNS: [&str; 9] =
    ["host", "hosts", "hostname", "hostnames", "node", "nodes", "nodename", "machine", "machines"];

/// The lines that are no hosts: rules, and headers.
fn apart(text: &str) -> Vec<usize> {
    let is_rule = |line: &str| line.len() > 2 && !line.contains(char::is_alphanumeric);
    let rules = (1..).zip(text.lines()).filter(|(_, line)| is_rule(without_comment(line).trim()));
    let mut apart: Vec<usize> = rules.map(|(number, _)| number).chain(headers(text)).collect();
    apart.sort_unstable();
    apart
}

/// The lines that repeat the first one if it is a header: a word in capitals alone, as no other line is; or the name of a column, or with
/// a capital, above names that all have digits.
fn headers(text: &str) -> Vec<usize> {
    let is_word =
        |line: &str| line.len() > 3 && line.chars().all(|c| c.is_ascii_alphabetic() || "_()".contains(c));
    let is_capital = |line: &str| is_word(line) && !line.contains(|c: char| c.is_ascii_lowercase());
    let lines = || (1..).zip(text.lines().map(|line| without_comment(line).trim()));
    let Some((_, header)) = lines().find(|(_, line)| !line.is_empty()) else { return Vec::new() };
    let others = || lines().map(|(_, line)| line).filter(|line| !line.is_empty() && *line != header);
    let is_column = COLUMNS.contains(&&*header.to_ascii_lowercase())
        || is_word(header) && header.starts_with(|c: char| c.is_ascii_uppercase());
    let has_digits = || others().all(|line| line.contains(|c: char| c.is_ascii_digit()));
    let is_header = is_capital(header) && !others().any(is_capital)
        || is_column && others().next().is_some() && has_digits();
    lines().filter(|(_, line)| is_header && *line == header).map(|(number, _)| number).collect()
}

/// Whether all words are of small letters alone, as none of a message with a name or a number are.
fn are_plain(words: &[Word<'_>]) -> bool {
    let is_plain =
        |word: &Word<'_>| word.value.is_none() && word.text.chars().all(|c| c.is_ascii_lowercase());
    words.len() > 1 && words.iter().all(is_plain)
}

/// What tells a line of hosts from `total 12` and `n1 idle`.
struct Shape<'l> {
    line: &'l str,
    number: usize,
    /// Whether it has hosts with a number after each, and whether it has names alone.
    is_counted: bool,
    is_bare: bool,
    /// Whether every name has a digit.
    is_numbered: bool,
    /// All slots of its hosts, if they are given.
    slots: Option<u64>,
}

impl<'l> Shape<'l> {
    /// That of a line with hosts. Names with only blanks between them must be numbered, or be small letters on the only line, as
    /// `echo $LSB_HOSTS` writes them.
    fn of(line: &'l str, number: usize, hosts: &Hosts, is_only: bool) -> Result<Option<Self>, HostListError> {
        let content = without_comment(line);
        let words = words(content);
        let is_bare = hosts.iter().all(|(_, slots)| slots.is_none());
        let is_digit = |c: char| c.is_ascii_digit();
        let is_numbered = |name: &str| {
            name.contains(is_digit) && (name.contains(['.', ':']) || !name.starts_with(is_digit))
        };
        let is_list = |words: &&[Word<'_>]| {
            let has_comma = words[0].text.ends_with(',') || words[1].text.starts_with(',');
            !has_comma && !words.iter().any(has_slots)
        };
        let is_free = counted(&words).is_some() || is_only && are_plain(&words);
        let pairs = words.windows(2).filter(|_| !is_free);
        if let Some(word) = pairs.filter(is_list).flatten().find(|word| !is_numbered(word.text)) {
            let hint = "separate hosts by commas or lines, and give names alone, as `squeue -h -o %N` does";
            let error = fault(content, *word, format!("`{}` may be no host", word.text));
            return Err(HostListError { line: number, hint: hint.to_owned(), ..error });
        }
        let is_counted = counted(&words).is_some_and(|hosts| 2 * hosts.len() == words.len());
        let is_numbered = hosts.iter().all(|(name, _)| is_numbered(name));
        let slots = hosts.iter().map(|(_, slots)| slots.map(u64::from)).sum();
        Ok((!hosts.is_empty()).then_some(Self { line, number, is_counted, is_bare, is_numbered, slots }))
    }

    /// The first line of names and numbers that another program may have written: others have names alone, or are numbered.
    fn odd(all: &[Self]) -> Option<&Self> {
        let is_any_bare = all.iter().any(|line| line.is_bare);
        let is_one = all.len() > 1 && all.iter().filter(|line| !line.is_numbered).count() == 1;
        let counted = all.iter().find(|line| line.is_counted && (is_any_bare || is_one && !line.is_numbered));
        counted.or_else(|| Self::named(all))
    }

    /// The first line with a name without a digit that is a sentence or a sum: most others are numbered, and none has a capital or slots, or
    /// their slots are its slots.
    fn named(all: &[Self]) -> Option<&Self> {
        let (numbered, named): (Vec<&Self>, Vec<&Self>) = all.iter().partition(|line| line.is_numbered);
        if numbered.len() < 2 || named.len() > numbered.len() {
            return None;
        }
        let content = |line: &Self| without_comment(line.line).trim().to_owned();
        let has_capital = |line: &Self| content(line).starts_with(|c: char| c.is_uppercase());
        let slots: Option<u64> = numbered.iter().map(|line| line.slots).sum();
        let last = all.last().map(|line| line.number);
        named.into_iter().find(|line| match line.is_bare {
            true => {
                has_capital(line) && !numbered.iter().any(|line| has_capital(line))
                    || content(line).ends_with(['.', '!', '?'])
            }
            false => {
                numbered.iter().all(|line| line.is_bare)
                    || Some(line.number) == last && line.slots == slots && slots.is_some()
            }
        })
    }

    /// The only line without a digit, in the first or last place of names alone: it may be a word.
    fn doubtful(all: &[Self]) -> Option<&Self> {
        let is_alone = |line: &&Self| !line.is_numbered && line.is_bare;
        let ends = [all.first()?, all.last()?];
        let is_one = all.len() > 2
            && all.iter().filter(|line| line.is_numbered && line.is_bare).count() + 1 == all.len();
        ends.into_iter().find(is_alone).filter(|_| is_one)
    }
}

/// The lines of a text that are empty without those of other programs, but for comments.
fn skipped(text: &str, own: &str) -> Option<Foreign> {
    let is_skipped = |(line, own): &(&str, &str)| own.is_empty() && !without_comment(line).trim().is_empty();
    let mut all = text.lines().zip(own.lines()).zip(1..).filter(|(lines, _)| is_skipped(lines));
    let ((first, _), line) = all.next()?;
    Some(Foreign { count: 1 + all.count(), line, first: first.trim().to_owned(), file: None })
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

/// Whether a word has the slots of a host as LSF writes them: `4*node01`.
fn is_of_lsf(word: &Word<'_>) -> bool {
    items(*word)
        .any(|item| item.text.split_once('*').is_some_and(|(count, _)| !count.is_empty() && is_whole(count)))
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
    let words = words(line);
    only_grammar(line, &words)?;
    let (attributes, names): (Vec<_>, Vec<_>) = words.into_iter().partition(|word| word.value.is_some());
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

/// Whether a word has slots of its own, or is an attribute.
fn has_slots(word: &Word<'_>) -> bool {
    let is_counted = |item: Word<'_>| {
        let count = item.text.rsplit_once(':').filter(|(name, _)| !name.contains(':') || name.ends_with(']'));
        count.is_some_and(|(_, count)| is_whole(count))
    };
    word.value.is_some() || is_of_lsf(word) || items(*word).any(is_counted)
}

/// Refuses a word behind attributes, and one without slots beside a host with slots: launchers have no states there.
fn only_grammar(line: &str, words: &[Word<'_>]) -> Result<(), HostListError> {
    let is_apart = |pair: &[Word<'_>]| !pair[0].text.ends_with(',') && !pair[1].text.starts_with(',');
    let is_odd = |pair: &&[Word<'_>]| match (pair[0].value, pair[1].value) {
        (_, Some(_)) => false,
        (Some(_), None) => true,
        (None, None) => is_apart(pair) && has_slots(&pair[0]) != has_slots(&pair[1]),
    };
    let Some(pair) = words.windows(2).find(is_odd).filter(|_| counted(words).is_none()) else {
        return Ok(());
    };
    let word = if has_slots(&pair[0]) { pair[1] } else { pair[0] };
    let what = format!("`{}` is not part of a line of hosts with slots", word.text);
    let hint = "give every host a line of its own, and remove what is no host; leave out hosts that must not be used, or give them `slots=0`";
    Err(HostListError { hint: hint.to_owned(), ..fault(line, word, what) })
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

/// The names of a word, between commas that are not in brackets, or between the colons of `8*node01:4*node02`.
fn items(word: Word<'_>) -> impl Iterator<Item = Word<'_>> {
    let (mut depth, mut start) = (0usize, word.start);
    let is_list = word.text.contains('*');
    let parts = word.text.split(move |c: char| {
        match c {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        (c == ',' || c == ':' && is_list) && depth == 0
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
    let (before, host) =
        match host.split_once('*').filter(|(before, _)| is_whole(before) && !before.is_empty()) {
            Some((before, host)) => (Some(number(line, item, before)?), host),
            None => (None, host),
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
    if before.is_some() && count.is_some() {
        return Err(fault(line, item, TWICE.to_owned()));
    }
    let count = before.or(count);
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
