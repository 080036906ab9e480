//! Dumps of PyTorch's flight recorder in JSON, one per rank: `nccl_trace_rank_3.json`, or without an ending. The
//! rank is in the name, behind that of the host if there is one.
//!
//! Version 2 of the format, from `FlightRecorder.cpp` and `FlightRecorderDetail.hpp` of PyTorch: `pg_config` has the
//! ranks of every process group, `entries` the operations with the sizes and types of their tensors. A point-to-point
//! operation has its peer in its name, `nccl:send 0->1`, as ranks of the group. The recorder keeps the last
//! operations only; `collective_seq_id` numbers those of a group, so that ranks that kept different ones can be
//! compared. `pg_status` has the last one of every group of the process, by its local number (`pg_id`), unless that was a message.
//! `p2p_seq_id` numbers the messages of a rank in a group, where those of a batch may have one number; every entry has
//! the last one.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use hopmap_model::{CollectiveOperation as Operation, Context};
use serde::Deserialize;
use serde_json::Value;

use crate::calls::{Rank, Split, What};
use crate::error::{TrainingError, damaged};
use crate::job::{Checked, Job, Numbered};
use crate::json::{self, Ranks, Repaired};
use crate::kinds::kind;
use crate::kineto;
use crate::names::{Named, element_bytes, named};
use crate::ranks::{Format, RANK, by_rank};

/// The files.
pub const FORMAT: Format = (&[".json", ".json.gz", RANK], recognises);

#[derive(Debug, Deserialize)]
struct Dump {
    #[serde(default)]
    pg_config: BTreeMap<String, Group>,
    #[serde(default)]
    pg_status: HashMap<String, Status>,
    entries: Vec<Entry>,
}

#[derive(Debug, Deserialize)]
struct Group {
    desc: Option<String>,
    ranks: Ranks,
}

/// Numbers of the last operations by what they did, such as `last_enqueued_collective`; -1 if there is none.
type Status = HashMap<String, Value>;

#[derive(Debug, Deserialize)]
struct Entry {
    process_group: Vec<String>,
    #[serde(default, deserialize_with = "json::text")]
    pg_id: Option<String>,
    #[serde(default)]
    collective_seq_id: u64,
    #[serde(default)]
    p2p_seq_id: u64,
    profiling_name: String,
    #[serde(default)]
    input_sizes: Vec<Vec<i64>>,
    #[serde(default)]
    input_dtypes: Vec<String>,
    #[serde(default)]
    output_sizes: Vec<Vec<i64>>,
    #[serde(default)]
    output_dtypes: Vec<String>,
}

/// Whether a file begins like a dump. PyTorch sorts its keys; in one that was a pickle, long lists of ranks may come
/// first.
fn recognises(head: &str) -> bool {
    let has = |key| head.contains(key);
    (has("\"collective_seq_id\"") && has("\"entries\""))
        || (has("\"pg_config\"") && has("\"version\"") && !kineto::recognises(head))
}

/// Reads the dumps of all ranks.
pub fn read(path: &Path, cx: &Context<'_>) -> Result<Checked, TrainingError> {
    let mut job = Job::default();
    let mut kept: BTreeMap<u32, Numbered> = BTreeMap::new();
    let (mut repaired, mut stated) = (Repaired::default(), BTreeMap::new());
    let mut unnamed = Vec::new();
    let mut with_entries = BTreeSet::new();
    for (rank, file) in by_rank(path, FORMAT, cx)? {
        let seed = std::marker::PhantomData::<Dump>;
        let dump = json::read(&file, cx, seed, &mut repaired)?;
        let mut groups = HashMap::new();
        for (name, group) in &dump.pg_config {
            let ranks = group.ranks.list().map_err(|problem| damaged(&file, problem))?;
            let kind = kind(group.desc.as_deref(), name);
            groups.insert(name.clone(), job.group(ranks, kind, &file)?);
        }
        let (calls, lists) = kept.entry(rank).or_default();
        let mut of_dump = HashMap::new();
        // The last number of a message, and the numbers of those that were kept, by process group.
        let mut messages: HashMap<String, (u64, BTreeSet<u64>)> = HashMap::new();
        let names = dump.entries.iter().filter_map(|entry| entry.process_group.first());
        let of_entries: BTreeSet<u32> = names.filter_map(|name| groups.get(name).copied()).collect();
        with_entries.extend(&of_entries);
        unnamed.push((rank, self::unnamed(&dump), of_entries));
        for mut entry in dump.entries {
            let call = call(&entry, &groups, (&job, lists)).map_err(|problem| damaged(&file, problem))?;
            let (last_message, numbers) =
                messages.entry(entry.process_group.drain(..).next().unwrap_or_default()).or_default();
            *last_message = entry.p2p_seq_id.max(*last_message);
            let Some((group, call)) = call else { continue };
            if !matches!(call, What::Collective { .. }) {
                numbers.insert(entry.p2p_seq_id);
            }
            calls.push((group, entry.collective_seq_id, call));
            // The last operation of a group with messages may be one, which has another number.
            let number = entry.pg_id.filter(|_| entry.p2p_seq_id == 0);
            of_dump.insert(group, number.and_then(|number| dump.pg_status.get(&number)).map_or(0, last));
        }
        for (last, numbers) in messages.into_values() {
            let lost = last - numbers.range(1..).count() as u64;
            job.lost_messages = job.lost_messages.saturating_add(lost);
        }
        for (group, last) in of_dump {
            let known = stated.entry(group).or_default();
            *known = last.max(*known);
        }
    }
    repaired.log(cx);
    job.add_common(kept, &stated, path)?;
    // Ranks number groups differently, so that those of one rank are the fewest of all ranks. Which of its numbers are those of
    // groups of which only others have entries is unknown.
    let unseen = unnamed.into_iter().map(|(rank, mut last, own)| {
        let others =
            with_entries.difference(&own).filter(|group| job.groups[**group as usize].contains(&rank));
        last.truncate(last.len().saturating_sub(others.count()));
        last.into_iter().fold(0, u64::saturating_add)
    });
    job.unseen = unseen.max().unwrap_or(0).min(u64::MAX / 4);
    job.checked(None, path)
}

/// The last operations of groups of which a dump has no entry, which alone tells whose number it is, in increasing order.
/// Old versions do not number groups.
fn unnamed(dump: &Dump) -> Vec<u64> {
    let numbers: BTreeSet<Option<&str>> = dump.entries.iter().map(|entry| entry.pg_id.as_deref()).collect();
    let is_unnamed = |number: &str| !numbers.contains(&None) && !numbers.contains(&Some(number));
    let statuses = dump.pg_status.iter().filter(|(number, _)| is_unnamed(number));
    let mut last: Vec<u64> = statuses.map(|(_, status)| last(status)).collect();
    last.sort_unstable();
    last
}

/// The highest number of a status.
fn last(status: &Status) -> u64 {
    let number = |value: &Value| value.as_u64().or_else(|| value.as_str()?.parse().ok());
    let of_operations = status.iter().filter(|(key, _)| key.ends_with("_collective"));
    of_operations.filter_map(|(_, value)| number(value)).max().unwrap_or(0)
}

/// Bytes of every tensor.
fn tensors(sizes: &[Vec<i64>], kinds: &[String]) -> Result<Vec<u64>, String> {
    let bytes = |(sizes, kind): (&Vec<i64>, &String)| {
        let elements =
            sizes.iter().try_fold(1u64, |product, size| product.checked_mul(u64::try_from(*size).ok()?));
        let bytes =
            element_bytes(kind).ok_or_else(|| format!("has a tensor of the unknown type `{kind}`"))?;
        let bytes = elements.and_then(|elements| elements.checked_mul(bytes));
        bytes.ok_or_else(|| format!("has a tensor of the impossible size {sizes:?}"))
    };
    sizes.iter().zip(kinds).map(bytes).collect()
}

fn total(tensors: &[u64]) -> Result<u64, String> {
    let sum = tensors.iter().try_fold(0u64, |sum, bytes| sum.checked_add(*bytes));
    sum.ok_or_else(|| "has tensors of more than 2^64 bytes".to_owned())
}

/// The call of an entry with its group; `None` if it sends nothing. An all-to-all has a tensor per member, or one for
/// all of them.
fn call(
    entry: &Entry,
    groups: &HashMap<String, u32>,
    (job, lists): (&Job, &mut Rank),
) -> Result<Option<(u32, What)>, String> {
    let (name, peers) = entry.profiling_name.split_once(' ').unwrap_or((&entry.profiling_name, ""));
    let meaning =
        named(name).ok_or_else(|| format!("has the unknown operation `{}`", entry.profiling_name))?;
    if meaning == Named::Nothing {
        return Ok(None);
    }
    let group = entry.process_group.first().map_or("", String::as_str);
    let group = *groups
        .get(group)
        .ok_or_else(|| format!("has an operation of group `{group}`, which `pg_config` lacks"))?;
    let inputs = tensors(&entry.input_sizes, &entry.input_dtypes)?;
    let sent = total(&inputs)?;
    let what = match meaning {
        Named::Collective(operation) => {
            let split = match operation {
                Operation::AllToAll
                    if inputs.len() > 1 && inputs.len() == job.groups[group as usize].len() =>
                {
                    lists.list(sent, &inputs)
                }
                Operation::AllToAll if !entry.output_sizes.is_empty() => {
                    lists.receiving(total(&tensors(&entry.output_sizes, &entry.output_dtypes)?)?)
                }
                _ => Split::Even,
            };
            What::Collective { group, operation, root: operation.has_root().then_some(0), sent, split }
        }
        _ => {
            let peer =
                peers.split(|letter: char| !letter.is_ascii_digit()).rfind(|number| !number.is_empty());
            let members = &job.groups[group as usize];
            let peer = peer.and_then(|peer| members.get(peer.parse::<usize>().ok()?).copied());
            let peer = peer
                .ok_or_else(|| format!("`{}` does not name a member of its group", entry.profiling_name))?;
            match meaning {
                Named::Send => What::Send { peer, tag: 0, bytes: sent, kind: job.kinds[group as usize] },
                _ => What::Receive { peer, tag: 0, bytes: sent },
            }
        }
    };
    Ok(Some((group, what)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, sizes: Vec<Vec<i64>>, kind: &str) -> Entry {
        let input_dtypes = vec![kind.to_owned(); sizes.len()];
        Entry {
            process_group: vec!["0".into(), "default_pg".into()],
            pg_id: None,
            collective_seq_id: 1,
            p2p_seq_id: 0,
            profiling_name: name.into(),
            input_sizes: sizes,
            input_dtypes,
            output_sizes: Vec::new(),
            output_dtypes: Vec::new(),
        }
    }

    #[test]
    fn sizes_and_peers_are_read() {
        let mut job = Job::default();
        let group = job.group(vec![4, 5], None, Path::new("")).unwrap();
        let groups = HashMap::from([("0".to_owned(), group)]);
        let what = |entry: Entry| {
            call(&entry, &groups, (&job, &mut Rank::default())).map(|call| call.map(|(_, call)| call))
        };
        assert_eq!(
            what(entry("nccl:all_reduce", vec![vec![2, 3], vec![4]], "Float")),
            Ok(Some(What::Collective {
                group,
                operation: Operation::AllReduce,
                root: None,
                sent: 40,
                split: Split::Even
            }))
        );
        assert_eq!(
            what(entry("nccl:send 0->1", vec![vec![8]], "BFloat16")),
            Ok(Some(What::Send { peer: 5, tag: 0, bytes: 16, kind: None }))
        );
        assert_eq!(
            what(entry("nccl:recv 0<-1", vec![vec![8]], "Half")),
            Ok(Some(What::Receive { peer: 5, tag: 0, bytes: 16 }))
        );
        assert!(
            what(entry("nccl:all_reduce", vec![vec![-1]], "Float"))
                .unwrap_err()
                .contains("impossible size [-1]")
        );
        assert!(what(entry("nccl:all_reduce", vec![vec![i64::MAX, 9]], "Float")).is_err());
        assert!(what(entry("nccl:juggle", vec![], "Float")).unwrap_err().contains("unknown operation"));
        assert_eq!(what(entry("wait", vec![], "Float")), Ok(None));
    }
}
