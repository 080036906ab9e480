//! Free nodes of a cluster, from the output of Slurm's `sinfo`.
//!
//! Two forms: a table with a header that has the columns `NODELIST` or `HOSTNAMES` and `STATE` (`sinfo`,
//! `sinfo -N`, `sinfo -l`), and lines of a name or host list and a state without a header
//! (`sinfo -N -h -o '%N %T'`). States and their suffixes are those of `sinfo(1)`, section "NODE STATE CODES".

use std::collections::HashMap;

use miette::{Diagnostic, SourceSpan};

use crate::host_list::{self, HostListError, expand_within};

/// States in which a node is completely free.
const FREE: &str = "idle";
/// States in which a node is partly free.
const MIXED: &str = "mix mixed";
/// All other states, long and short.
const TAKEN: &str = "alloc allocated block blocked boot comp completing down drain drained draining \
                     drng error fail failg failing futr future inval maint n/a no_respond npc \
                     perfctrs planned plnd pow_dn pow_up power_down power_up powered_down \
                     powering_down powering_up reboot reboot^ reserved resv unk unknown";
/// Suffixes of states: `*` does not respond, `~` powered off, `#` powering up, `!` and `%` powering down,
/// `$` in maintenance, `@` and `^` rebooting, `-` planned for another job, `+` more states.
const MARKS: &[char] = &['*', '~', '#', '!', '%', '$', '@', '^', '-', '+'];
/// Suffixes of nodes that Slurm still allocates, because it powers them up.
const HARMLESS: &[char] = &['~', '#'];

/// Availability of a node for jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Availability {
    /// The node is idle.
    Free,
    /// The node is partly in use.
    Mixed,
    /// The node is in use, down, drained, reserved, or does not respond.
    Taken,
}

/// A node and its state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeState {
    /// Its name.
    pub name: String,
    /// The state as in `sinfo`, with suffixes.
    pub state: String,
    /// Its availability for jobs.
    pub availability: Availability,
}

/// Text that looks like output of `sinfo`, but is invalid.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum SinfoError {
    /// A line of the table has too few columns.
    #[error("output of sinfo, line {line}: missing column {column}")]
    #[diagnostic(code(formats::column), help("save the output of `sinfo -N -h -o '%N %T'`"))]
    Column {
        /// The line, counted from one.
        line: usize,
        /// The column that is missing.
        column: &'static str,
        /// The line itself.
        #[source_code]
        text: String,
        /// All of it.
        #[label("this line")]
        span: SourceSpan,
    },
    /// The names of a line are not a host list.
    #[error("output of sinfo, line {line}: {list}")]
    #[diagnostic(code(formats::names), forward(list))]
    Names {
        /// The line, counted from one.
        line: usize,
        /// Error of the host list.
        list: HostListError,
    },
}

/// Whether a text is output of `sinfo`: a header with a column of names and a column of states, or lines of
/// two words of which the second is a state.
#[must_use]
pub fn is_sinfo(text: &str) -> bool {
    if header(text).is_some() {
        return true;
    }
    let mut known = false;
    lines(text).all(|(_, line)| {
        let words: Vec<&str> = line.split_whitespace().collect();
        known |= words.get(1).is_some_and(|state| is_known(state));
        words.len() == 2 && looks_like_a_state(words[1])
    }) && known
}

/// The nodes in order of their first appearance. A node that appears several times, in several partitions,
/// has the least available of its states. Unknown states count as taken. So do nodes of partitions that are
/// not up, unless another partition contains them.
pub fn read(text: &str) -> Result<Vec<NodeState>, SinfoError> {
    read_within(text, host_list::MAX_NAMES)
}

/// The same with at most `most` names, counting repeated ones.
fn read_within(text: &str, mut most: usize) -> Result<Vec<NodeState>, SinfoError> {
    let columns = header(text);
    let first = columns.as_ref().map_or(0, |columns| columns.line);
    let mut nodes = Nodes::default();
    for (line, row) in lines(text).filter(|(line, _)| *line > first) {
        let Some(row) = Row::read(row, line, columns.as_ref())? else { continue };
        let fault = |list| SinfoError::Names { line, list };
        let names = expand_within(row.names, most).map_err(fault)?;
        if let Some(count) = row.count.filter(|count| *count != names.len()) {
            let what = format!("{} names, but NODES is {count}: the list may be cut off", names.len());
            let hint = "save the output of `sinfo -N -h -o '%N %T'`";
            return Err(fault(HostListError::new(row.names, 0, row.names.len(), what, hint)));
        }
        most -= names.len();
        names.into_iter().for_each(|name| nodes.add(name, &row));
    }
    Ok(nodes.finish())
}

fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_filled = |line: &str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    (1..).zip(text.lines()).filter(move |(_, line)| is_filled(line))
}

/// Positions of the columns, counted in words.
struct Columns {
    /// Line of the header, counted from one.
    line: usize,
    names: Column,
    state: usize,
    available: Option<usize>,
    count: Option<usize>,
}

#[derive(Clone, Copy)]
enum Column {
    At(usize),
    /// After a column that may be empty, such as the reservation.
    Last,
}

/// Finds the header; a line with the date may precede it (`sinfo -l`).
fn header(text: &str) -> Option<Columns> {
    lines(text).take(2).find_map(|(line, header)| {
        let words: Vec<&str> = header.split_whitespace().collect();
        let find = |names: &[&str]| words.iter().position(|word| names.contains(word));
        let names = find(&["NODELIST", "HOSTNAMES"])?;
        let place = if names + 1 == words.len() { Column::Last } else { Column::At(names) };
        let [available, count] = ["AVAIL", "NODES"].map(|name| find(&[name]));
        Some(Columns { line, names: place, state: find(&["STATE"])?, available, count })
    })
}

/// Contents of a line.
struct Row<'a> {
    names: &'a str,
    state: &'a str,
    /// Whether the partition accepts jobs.
    up: bool,
    /// How many nodes it says that it has.
    count: Option<usize>,
}

impl<'a> Row<'a> {
    /// `None` for a partition without nodes.
    fn read(text: &'a str, line: usize, columns: Option<&Columns>) -> Result<Option<Self>, SinfoError> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let missing = |column| {
            let text = HostListError::new(text, 0, text.len(), String::new(), "").excerpt;
            let span = (0, text.len()).into();
            SinfoError::Column { line, column, text, span }
        };
        let (names, state, available) = columns
            .map_or((Column::At(0), 1, None), |columns| (columns.names, columns.state, columns.available));
        let state = *words.get(state).ok_or_else(|| missing("STATE"))?;
        if state == "n/a" {
            return Ok(None);
        }
        let names = match names {
            Column::At(place) => words.get(place),
            // The state is before the last column; a line that ends with the state lacks names.
            Column::Last => words.last().filter(|last| !std::ptr::eq(**last, state)),
        };
        let names = *names.ok_or_else(|| missing("NODELIST"))?;
        let up = available.and_then(|place| words.get(place)).is_none_or(|available| *available == "up");
        let count = columns.and_then(|columns| words.get(columns.count?)?.parse().ok());
        Ok(Some(Self { names, state, up, count }))
    }
}

/// Nodes by name, in order of appearance.
#[derive(Default)]
struct Nodes {
    states: Vec<NodeState>,
    /// Whether a partition that is up contains the node.
    up: Vec<bool>,
    index: HashMap<String, usize>,
}

impl Nodes {
    fn add(&mut self, name: String, row: &Row<'_>) {
        let availability = availability(row.state);
        let state = row.state.to_owned();
        match self.index.get(&name) {
            Some(&index) => {
                self.up[index] |= row.up;
                let node = &mut self.states[index];
                if availability > node.availability {
                    (node.state, node.availability) = (state, availability);
                }
            }
            None => {
                self.index.insert(name.clone(), self.states.len());
                self.states.push(NodeState { name, state, availability });
                self.up.push(row.up);
            }
        }
    }

    fn finish(mut self) -> Vec<NodeState> {
        for (node, up) in self.states.iter_mut().zip(self.up) {
            if !up {
                node.availability = Availability::Taken;
            }
        }
        self.states
    }
}

/// Splits a state from its suffixes.
fn parts(state: &str) -> (String, &str) {
    let word = state.trim_end_matches(MARKS);
    (word.to_ascii_lowercase(), &state[word.len()..])
}

fn is_one_of(states: &str, word: &str) -> bool {
    states.split(' ').any(|state| state == word)
}

fn is_known(state: &str) -> bool {
    let (word, _) = parts(state);
    [FREE, MIXED, TAKEN].iter().any(|states| is_one_of(states, &word))
}

fn looks_like_a_state(state: &str) -> bool {
    let (word, _) = parts(state);
    !word.is_empty() && word.chars().all(|c| c.is_ascii_alphabetic() || "_/+".contains(c))
}

/// Availability of a state.
fn availability(state: &str) -> Availability {
    let (word, marks) = parts(state);
    let harmless = marks.chars().all(|mark| HARMLESS.contains(&mark));
    match word.as_str() {
        word if harmless && is_one_of(FREE, word) => Availability::Free,
        word if harmless && is_one_of(MIXED, word) => Availability::Mixed,
        _ => Availability::Taken,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST
all*         up   infinite      2  down* n[1-2]
all*         up   infinite      1    mix n3
all*         up   infinite      3   idle n[4-6]
test         up      30:00      1  drain n6
old        down      30:00      2   idle n[5,7]
empty        up      30:00      0    n/a
";

    fn free(text: &str) -> String {
        assert!(is_sinfo(text), "{text}");
        let nodes = read(text).unwrap();
        let names =
            |wanted| host_list::compress(nodes.iter().filter(|n| n.availability == wanted).map(|n| &n.name));
        format!("{} / {}", names(Availability::Free), names(Availability::Mixed))
    }

    #[test]
    fn the_table_of_partitions() {
        assert_eq!(free(TABLE), "n[4-5] / n3");
        assert_eq!(read(TABLE).unwrap().len(), 7);
    }

    #[test]
    fn the_table_of_nodes_with_and_without_its_date() {
        let table = "NODELIST   NODES PARTITION       STATE CPUS    S:C:T MEMORY REASON\n\
                     n1             1      all*        idle 2       1:2:1   2000 none\n\
                     n2             1      all*        mixed 2       1:2:1   2000 Not responding\n";
        assert_eq!(free(table), "n1 / n2");
        assert_eq!(free(&format!("Sun Nov 22 00:00:00 2026\n{table}")), "n1 / n2");
        assert_eq!(free("HOSTNAMES STATE\nn1 idle\n"), "n1 / ");
    }

    #[test]
    fn a_column_may_be_empty_before_the_last_one() {
        let table = "PARTITION AVAIL NODES STATE RESERVATION NODELIST\nall* up 2 idle n[1-2]\nall* up 1 maint night n3\n";
        assert_eq!(free(table), "n[1-2] / ");
    }

    #[test]
    fn lines_of_names_and_states() {
        assert_eq!(free("n1 idle\nn[2-3] mixed\nn4 allocated\n\nn5 drained*\n"), "n1 / n[2-3]");
        assert_eq!(free("n1 idle\nn1 down"), " / ");
        assert_eq!(free("n1 idle\nn2 novel_state"), "n1 / ");
    }

    #[test]
    fn marks_decide() {
        let text = "a1 idle*\na2 idle~\na3 idle#\na4 idle!\na5 idle%\na6 idle$\na7 idle@\na8 idle^\na9 idle-\na10 mix+\na11 IDLE\n";
        assert_eq!(free(text), "a[2-3,11] / ");
    }

    #[test]
    fn host_lists_are_not_mistaken_for_states() {
        for text in ["", "n1 n2\nn3 n4\n", "n1\nn2\n", "n[1-4]", "n1 idle n2\n", "n1 idle2"] {
            assert!(!is_sinfo(text), "{text}");
        }
    }

    #[test]
    fn errors_have_a_line() {
        let message = |text: &str| read(text).unwrap_err().to_string();
        assert_eq!(
            message("n1 idle\nn[2 idle"),
            "output of sinfo, line 2: host list, column 2: unclosed bracket"
        );
        // A column that is too narrow cuts the list.
        assert_eq!(
            message("NODES STATE NODELIST\n2 idle n[1-2]\n3 idle n[4-5]\n"),
            "output of sinfo, line 3: host list, column 1: 2 names, but NODES is 3: the list may be cut off"
        );
        assert_eq!(message("NODELIST STATE\nn1\n"), "output of sinfo, line 2: missing column STATE");
        assert_eq!(
            message("PARTITION STATE NODELIST\nall idle\n"),
            "output of sinfo, line 2: missing column NODELIST"
        );
        let error = read_within(
            "n[1-40] idle
m[1-40] idle
",
            79,
        )
        .unwrap_err()
        .to_string();
        assert!(error.starts_with("output of sinfo, line 2: host list, column 1: more than"), "{error}");
    }
}
