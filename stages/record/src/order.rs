//! The mapping of `hopmap reorder`, as its library reads it.
//!
//! | text | a line for each rank, in any order |
//! |---|---|
//! | by host | `RANK HOST` or `RANK HOST CORE`, with the logical core |
//! | rank file of Open MPI | `rank RANK=HOST slot=CORE` |
//! | by index | `RANK INDEX`: the rank that the launcher gives to the process |

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write;
use std::path::Path;

use hopmap_artifact::Folder;
use hopmap_formats::host_names::short;
use hopmap_formats::rank_file;
use hopmap_model::Mapping;
use hopmap_mpi_environment::{Location, host_name};
use hopmap_text::{FileError, Line, lines_of, shown};

use crate::error::ReorderError;

/// Maximum size of a file: 64 bytes for each of 2^22 ranks.
const MOST_BYTES: u64 = 1 << 28;
const HELP: &str = "a line for each rank: `RANK HOST`, `RANK HOST CORE`, `rank RANK=HOST slot=CORE`, or `RANK INDEX`, the rank that the \
                    launcher gives to the process";

/// What every host calls itself.
const ANY_HOST: [&str; 2] = ["localhost", "127.0.0.1"];

/// Where a rank runs.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Target {
    /// On a host, perhaps on a core.
    Host(String, Option<u32>),
    /// In the process that the launcher numbers so.
    Index(u32),
}

/// Where each rank runs.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Order(Vec<Target>);

impl Order {
    /// The order of a mapping artifact or of a text.
    pub(crate) fn read(path: &Path) -> Result<Self, ReorderError> {
        let order = if path.is_dir() {
            let mapping: Mapping = Folder::read(path)?;
            let place = |rank: &hopmap_model::Placement| {
                Target::Host(mapping.hosts[rank.host as usize].host.clone(), rank.core)
            };
            Self(mapping.ranks.iter().map(place).collect())
        } else {
            Self::parse(&hopmap_text::read_text(path, MOST_BYTES)?).map_err(|error| error.in_file(path))?
        };
        let own = host_name();
        let any = order.hosts().find(|host| ANY_HOST.contains(host) && **host != *own).map(str::to_owned);
        any.map_or(Ok(order), |host| {
            let problem = format!("`{host}` is a name of every host; this one is `{own}`");
            let help = "write the name that `hopmap where` shows for the host, or the rank of a process";
            Err(FileError::new(problem, help).in_file(path).into())
        })
    }

    fn parse(text: &str) -> Result<Self, FileError> {
        let mut places: BTreeMap<u32, (Target, usize)> = BTreeMap::new();
        let mut by_index = None;
        let lines = lines_of(text, HELP)
            .map(|line| line.map(|text| text.split('#').next().unwrap_or_default().trim()))
            .filter(|line| !line.text.is_empty());
        for line in lines {
            let (rank, place) = parse(line).ok_or_else(|| {
                FileError::at(line.number, format!("`{}` is not the place of a rank", shown(line.text)), HELP)
            })?;
            let is_index = matches!(place, Target::Index(_));
            if *by_index.get_or_insert(is_index) != is_index {
                let problem = "this line has another form than those before it";
                return Err(FileError::at(line.number, problem, HELP));
            }
            if let Some((_, before)) = places.insert(rank, (place, line.number)) {
                let problem = format!("rank {rank} has a place already, in line {before}");
                return Err(FileError::at(line.number, problem, HELP));
            }
        }
        let missing = (0..).zip(places.keys()).find(|(rank, found)| rank != *found);
        match missing {
            Some((rank, _)) => Err(FileError::new(format!("rank {rank} has no place"), HELP)),
            None if places.is_empty() => Err(FileError::new("the file has no rank", HELP)),
            None => Self(places.values().map(|(place, _)| place.clone()).collect()).check(&places),
        }
    }

    /// Refuses two ranks in one place.
    fn check(self, places: &BTreeMap<u32, (Target, usize)>) -> Result<Self, FileError> {
        let mut taken = HashSet::new();
        // Without a core, a host has room for every rank.
        let twice = places.iter().find(|(_, (place, _))| match place {
            Target::Host(_, None) => false,
            place => !taken.insert(place.text()),
        });
        match twice {
            Some((rank, (place, line))) => {
                let problem = format!("rank {rank} is at `{}`, where another rank is", place.text());
                Err(FileError::at(*line, problem, "give each rank a place of its own"))
            }
            None => Ok(self),
        }
    }

    /// What `reorder.c` reads.
    pub(crate) fn text(&self) -> String {
        let hosts: HashSet<&str> = self.hosts().collect();
        let short_names: HashSet<&str> = hosts.iter().map(|host| short(host)).collect();
        // Launchers and the system may name a host with and without its domain.
        let is_short = hosts.len() == short_names.len();
        let way = if matches!(self.0.first(), Some(Target::Index(_))) { "index" } else { "host" };
        let mut text = format!("ranks {} by {way} {}\n", self.0.len(), u8::from(is_short));
        for place in &self.0 {
            let _ = match place {
                Target::Host(host, core) => {
                    let host = if is_short { short(host) } else { host };
                    writeln!(text, "{host} {}", core.map_or(-1, i64::from))
                }
                Target::Index(index) => writeln!(text, "{index}"),
            };
        }
        text
    }

    /// The first rank that is elsewhere, by the lines that the program of `--verify` has printed.
    pub(crate) fn difference(&self, printed: &str) -> Option<String> {
        let said = printed.lines().filter_map(|line| {
            let process = line.split_once("process ")?.1.split(' ').next()?.parse().ok()?;
            let location = Location::parse(line)?;
            Some((location.rank?, (location.host, process)))
        });
        let said: BTreeMap<u32, (String, u32)> = said.collect();
        self.0.iter().zip(0..).find_map(|(target, rank)| {
            let Some((host, process)) = said.get(&rank) else {
                return Some(format!("rank {rank} did not say where it is"));
            };
            let is_there = match target {
                Target::Host(wanted, _) => short(wanted) == short(host),
                Target::Index(wanted) => wanted == process,
            };
            let target = target.text();
            (!is_there).then(|| {
                format!("rank {rank} is process {process} on {host}, and the mapping has it at `{target}`")
            })
        })
    }

    /// Number of ranks.
    pub(crate) fn ranks(&self) -> usize {
        self.0.len()
    }

    fn hosts(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|place| match place {
            Target::Host(host, _) => Some(host.as_str()),
            Target::Index(_) => None,
        })
    }
}

impl Target {
    fn text(&self) -> String {
        match self {
            Self::Host(host, None) => host.clone(),
            Self::Host(host, Some(core)) => format!("{host} {core}"),
            Self::Index(index) => index.to_string(),
        }
    }
}

fn parse(line: Line<'_>) -> Option<(u32, Target)> {
    if let Some(rest) = line.text.strip_prefix("rank ") {
        let (rank, rest) = rest.split_once('=')?;
        let (host, slot) = rest.split_once(char::is_whitespace)?;
        let cores = rank_file::cores(slot.trim().strip_prefix("slot=")?).ok()?;
        let core = match cores[..] {
            [rank_file::Cores { socket: None, range: Some((core, _)) }] => Some(core),
            _ => None,
        };
        return Some((rank.trim().parse().ok()?, Target::Host(host.to_owned(), core)));
    }
    let words: Vec<&str> = line.text.split_whitespace().collect();
    let place = match words[1..] {
        [index] if index.bytes().all(|byte| byte.is_ascii_digit()) => Target::Index(index.parse().ok()?),
        [host] => Target::Host(host.to_owned(), None),
        [host, core] => Target::Host(host.to_owned(), Some(core.parse().ok()?)),
        _ => return None,
    };
    Some((words[0].parse().ok()?, place))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(mapping: &str) -> String {
        Order::parse(mapping).unwrap().text()
    }

    #[test]
    fn every_form_says_where_ranks_run() {
        assert_eq!(text("1 n1 0\n0 n2 3 # far\n"), "ranks 2 by host 1\nn2 3\nn1 0\n");
        assert_eq!(text("0 n1.a\n1 n1.a\n"), "ranks 2 by host 1\nn1 -1\nn1 -1\n");
        assert_eq!(text("0 n1.a\n1 n1.b\n"), "ranks 2 by host 0\nn1.a -1\nn1.b -1\n");
        assert_eq!(text("rank 0=n1 slot=2\nrank 1=n1 slot=0:1\n"), "ranks 2 by host 1\nn1 2\nn1 -1\n");
        assert_eq!(text("0 1\n1 0\n"), "ranks 2 by index 1\n1\n0\n");
    }

    #[test]
    fn ranks_elsewhere_are_found() {
        let by_host = Order::parse("0 n2.x 1\n1 n1\n").unwrap();
        let by_index = Order::parse("0 1\n1 0\n").unwrap();
        let printed =
            "[1,0]process 0 is rank 1 on n1, cores 0 of 2\nnoise\nprocess 1 is rank 0 on n2, cores 0 of 2\n";
        assert_eq!((by_host.difference(printed), by_index.difference(printed)), (None, None));
        let printed = "process 0 is rank 0 on n1, cores 0 of 2\nprocess 1 is rank 1 on n2, cores 0 of 2\n";
        let expected = "rank 0 is process 0 on n1, and the mapping has it at";
        assert_eq!(by_host.difference(printed).unwrap(), format!("{expected} `n2.x 1`"));
        assert_eq!(by_index.difference(printed).unwrap(), format!("{expected} `1`"));
        assert_eq!(by_index.difference("").unwrap(), "rank 0 did not say where it is");
    }

    #[test]
    fn a_name_of_every_host_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mapping");
        std::fs::write(&path, "0 localhost\n1 localhost\n").unwrap();
        let refused = Order::read(&path).map_err(|error| error.to_string());
        assert_eq!(refused.is_ok(), host_name() == "localhost", "{refused:?}");
    }

    #[test]
    fn wrong_mappings_name_line_and_rank() {
        for (mapping, expected) in [
            ("0 n1\n2 n1\n", "rank 1 has no place"),
            ("0 n1\n0 n1\n", "rank 0 has a place already, in line 1"),
            ("0 n1 1\n1 n1 1\n", "rank 1 is at `n1 1`, where another rank is"),
            ("0 1\n1 1\n", "rank 1 is at `1`, where another rank is"),
            ("0 n1\n1 0\n", "this line has another form than those before it"),
            ("0 n1 x\n", "`0 n1 x` is not the place of a rank"),
            ("", "the file has no rank"),
        ] {
            assert_eq!(Order::parse(mapping).unwrap_err().problem, expected, "{mapping}");
        }
    }
}
