//! Chakra execution traces, one per rank: `NAME.RANK.et`, optionally packed, with `comm_group.json` beside them, packed or not.
//!
//! A file is a sequence of protobuf messages, each after its length as a varint: `GlobalMetadata`, then nodes
//! (`schema/protobuf/et_def.proto` of MLCommons Chakra). Only the fields that are needed are declared; a `comm_size`
//! is an integer of any type, because it changed between versions. It is the buffer that a rank passes: what it
//! contributes to an all-gather, and what it has for all in a reduce-scatter or alltoall, as in ASTRA-sim.
//!
//! `pg_name` names a group: a key of `comm_group.json`, or of the metadata node that PyTorch writes. All ranks are
//! the group `0`, and of operations without a name, as in ASTRA-sim.

mod schedule;

use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, Read};
use std::path::{Path, PathBuf};

use hopmap_model::{Context, InputPath, to_u32};
use hopmap_text::{FileError, check_stop};
use prost::Message;
use serde::Deserialize;

use crate::calls::{Rank, Split, What};
use crate::error::{TrainingError, damaged};
use crate::job::{Checked, Job};
use crate::json;
use crate::kinds::kind;
use crate::names::of_chakra;
use crate::ranks::{Format, by_rank, files_of, inputs};
use schedule::{Nodes, Resource};

/// The files, and that of the groups.
const FORMAT: Format = (&[".et", ".et.gz"], |_| true);
const GROUPS: [&str; 2] = ["comm_group.json", "comm_group.json.gz"];
/// Longest message; nodes with the names and shapes of a thousand tensors are shorter.
const LONGEST: u64 = 64 << 20;

#[derive(Clone, PartialEq, Message)]
struct Node {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(string, tag = "2")]
    name: String,
    #[prost(uint64, tag = "3")]
    kind: u64,
    #[prost(uint64, repeated, tag = "4")]
    control: Vec<u64>,
    #[prost(uint64, repeated, tag = "5")]
    data: Vec<u64>,
    #[prost(uint64, tag = "7")]
    duration_us: u64,
    #[prost(message, optional, tag = "8")]
    inputs: Option<Inputs>,
    #[prost(message, repeated, tag = "10")]
    attributes: Vec<Attribute>,
}

#[derive(Clone, PartialEq, Message)]
struct Inputs {
    #[prost(string, tag = "1")]
    values: String,
}

#[derive(Clone, PartialEq, Message)]
struct Attribute {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(oneof = "Value", tags = "7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29")]
    value: Option<Value>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
enum Value {
    #[prost(int32, tag = "7")]
    Int32(i32),
    #[prost(int64, tag = "9")]
    Int64(i64),
    #[prost(uint32, tag = "11")]
    Uint32(u32),
    #[prost(uint64, tag = "13")]
    Uint64(u64),
    #[prost(sint32, tag = "15")]
    Sint32(i32),
    #[prost(sint64, tag = "17")]
    Sint64(i64),
    #[prost(fixed32, tag = "19")]
    Fixed32(u32),
    #[prost(fixed64, tag = "21")]
    Fixed64(u64),
    #[prost(sfixed32, tag = "23")]
    Sfixed32(i32),
    #[prost(sfixed64, tag = "25")]
    Sfixed64(i64),
    #[prost(bool, tag = "27")]
    Bool(bool),
    #[prost(string, tag = "29")]
    Text(String),
}

impl Value {
    fn number(&self) -> i128 {
        match *self {
            Self::Int32(value) | Self::Sint32(value) | Self::Sfixed32(value) => value.into(),
            Self::Int64(value) | Self::Sint64(value) | Self::Sfixed64(value) => value.into(),
            Self::Uint32(value) | Self::Fixed32(value) => value.into(),
            Self::Uint64(value) | Self::Fixed64(value) => value.into(),
            Self::Bool(value) => value.into(),
            Self::Text(ref text) => text.parse().unwrap_or(-1),
        }
    }
}

impl Node {
    fn attribute(&self, name: &str) -> Option<&Value> {
        self.attributes.iter().find(|attribute| attribute.name == name)?.value.as_ref()
    }

    /// A number that is not negative.
    fn number(&self, name: &str) -> Result<Option<u64>, String> {
        let Some(value) = self.attribute(name) else { return Ok(None) };
        match u64::try_from(value.number()) {
            Ok(number) => Ok(Some(number)),
            Err(_) => Err(format!("has the impossible `{name}` {} at node {}", value.number(), self.id)),
        }
    }

    fn required<T: TryFrom<u64>>(&self, name: &str) -> Result<T, String> {
        let number = self.number(name)?.ok_or_else(|| format!("has no `{name}` at node {}", self.id))?;
        T::try_from(number).map_err(|_| format!("has the impossible `{name}` {number} at node {}", self.id))
    }
}

/// A group that PyTorch lists in a metadata node.
#[derive(Debug, Deserialize)]
struct Listed {
    pg_name: String,
    pg_desc: Option<String>,
    ranks: Vec<u32>,
}

/// Whether a folder has files of this format.
pub fn recognises(path: &Path, is_folder: bool) -> bool {
    match is_folder {
        true => files_of(path, FORMAT, &Context::detached()).is_ok(),
        false => FORMAT.0.iter().any(|ending| path.to_string_lossy().ends_with(ending)),
    }
}

/// The files of a job.
pub fn files(path: &Path) -> Result<Vec<InputPath>, TrainingError> {
    let mut files = inputs(path, FORMAT)?;
    files.extend(groups(path).map(|file| InputPath::named(file, GROUPS[0])));
    Ok(files)
}

/// The file of the groups, if there is one.
fn groups(path: &Path) -> Option<PathBuf> {
    GROUPS.iter().map(|name| path.join(name)).find(|file| file.is_file())
}

/// Reads the traces of all ranks; `timed` schedules their nodes in time.
pub fn read(path: &Path, timed: bool, cx: &Context<'_>) -> Result<Checked, TrainingError> {
    let files = by_rank(path, FORMAT, cx)?;
    let mut reading =
        Reading { job: Job::default(), groups: HashMap::new(), all: (0..to_u32(files.len())).collect() };
    if let Some(groups) = groups(path) {
        let seed = std::marker::PhantomData::<BTreeMap<String, Vec<u32>>>;
        let mut repaired = json::Repaired::default();
        for (name, members) in json::read(&groups, cx, seed, &mut repaired)? {
            let group = reading.job.group(members, kind(None, &name), &groups)?;
            reading.groups.insert(name, group);
        }
        repaired.log(cx);
    }
    let size = to_u32(files.len());
    for (rank, file) in files {
        let read = reading.rank(&file, rank, timed, cx)?;
        reading.job.add(rank, read, &file)?;
    }
    reading.job.checked(Some(size), path)
}

struct Reading {
    job: Job,
    /// Groups of `comm_group.json` and of the metadata of all ranks so far, by name.
    groups: HashMap<String, u32>,
    all: Vec<u32>,
}

impl Reading {
    fn rank(&mut self, file: &Path, rank: u32, timed: bool, cx: &Context<'_>) -> Result<Rank, TrainingError> {
        let mut messages = Messages::open(file, cx)?;
        if messages.next()?.is_none() {
            return Err(damaged(file, "is empty"));
        }
        let mut nodes = Nodes::default();
        let mut calls = Vec::new();
        let mut count = 0;
        while let Some(bytes) = messages.next()? {
            check_stop(count, cx)?;
            count += 1;
            let node =
                Node::decode(bytes).map_err(|error| messages.error(format!("has no node here: {error}")))?;
            let problem = |problem: String| damaged(file, problem);
            self.list_groups(&node, file)?;
            let is_on_processor = node.attribute("is_cpu_op").is_some_and(|value| value.number() == 1);
            let what = match (node.kind, is_on_processor) {
                (5..=7, false) => Some(self.what(&node, rank, file).map_err(problem)?),
                (1..=4, _) | (5..=7, true) => None,
                (kind, _) => return Err(problem(format!("has node {} of the unknown type {kind}", node.id))),
            };
            let call = what.map(|what| {
                calls.push(what);
                to_u32(calls.len()) - 1
            });
            if timed {
                let resource = match what {
                    Some(What::Collective { group, .. }) => Resource::Group(group),
                    Some(_) => Resource::Message,
                    None if is_on_processor => Resource::Processor,
                    None => Resource::Accelerator,
                };
                let seconds = node.duration_us as f64 / 1e6;
                nodes.add(node.id, resource, seconds, call, node.control.iter().chain(&node.data).copied());
            }
        }
        if !timed {
            return Ok(Rank { calls, ..Rank::default() });
        }
        nodes.schedule(&calls, cx).map_err(|problem| damaged(file, problem))
    }

    /// Takes the groups of a metadata node.
    fn list_groups(&mut self, node: &Node, file: &Path) -> Result<(), TrainingError> {
        let values = node.inputs.as_ref().map_or("", |inputs| inputs.values.as_str());
        let (Some(begin), Some(end)) = (values.find("[{"), values.rfind("}]")) else { return Ok(()) };
        if !node.name.contains("process_group:init") || end < begin {
            return Ok(());
        }
        let listed: Vec<Listed> = serde_json::from_str(&values[begin..end + 2])
            .map_err(|error| damaged(file, format!("has damaged groups at node {}: {error}", node.id)))?;
        for Listed { pg_name, pg_desc, ranks } in listed {
            let members = if ranks.is_empty() { self.all.clone() } else { ranks };
            let group = self.job.group(members, kind(pg_desc.as_deref(), &pg_name), file)?;
            self.groups.insert(pg_name, group);
        }
        Ok(())
    }

    /// The communication of a node.
    fn what(&mut self, node: &Node, rank: u32, file: &Path) -> Result<What, String> {
        let tag = || match node.attribute("comm_tag") {
            Some(_) => node.required("comm_tag"),
            None => Ok(0),
        };
        let name = match node.attribute("pg_name") {
            Some(Value::Text(name)) => name.clone(),
            Some(number) => number.number().to_string(),
            None => String::new(),
        };
        let group = self.groups.get(&name).copied();
        if node.kind != 7 {
            let bytes = node.required("comm_size")?;
            let (own, other) =
                if node.kind == 5 { ("comm_src", "comm_dst") } else { ("comm_dst", "comm_src") };
            if let Some(own) = node.number(own)?.filter(|own| *own != u64::from(rank)) {
                return Err(format!("is of rank {rank}, but node {} is a message of rank {own}", node.id));
            }
            let (peer, tag) = (node.required(other)?, tag()?);
            return Ok(match node.kind {
                5 => What::Send {
                    peer,
                    tag,
                    bytes,
                    kind: group.and_then(|group| self.job.kinds[group as usize]),
                },
                _ => What::Receive { peer, tag, bytes },
            });
        }
        let number = node.required("comm_type")?;
        let operation = of_chakra(number)
            .ok_or_else(|| format!("has the unknown collective operation {number} at node {}", node.id))?;
        let sent = if operation == hopmap_model::CollectiveOperation::Barrier {
            0
        } else {
            node.required("comm_size")?
        };
        let group = match group {
            Some(group) => group,
            None if name.is_empty() || name == "0" => {
                self.job.group(self.all.clone(), None, file).map_err(|error| error.to_string())?
            }
            None => {
                return Err(format!("has an operation of group `{name}`, which is not in `{}`", GROUPS[0]));
            }
        };
        let processes = to_u32(self.job.groups[group as usize].len());
        let root = node.number("comm_root")?.and_then(|root| u32::try_from(root).ok());
        let root = operation.has_root().then(|| root.filter(|root| *root < processes).unwrap_or(0));
        Ok(What::Collective { group, operation, root, sent, split: Split::Even })
    }
}

/// The messages of a file.
struct Messages<'a> {
    source: Box<dyn BufRead + 'a>,
    path: PathBuf,
    buffer: Vec<u8>,
    offset: u64,
}

impl<'a> Messages<'a> {
    fn open(path: &Path, cx: &Context<'a>) -> Result<Self, TrainingError> {
        Ok(Self { source: json::open(path, cx)?, path: path.to_owned(), buffer: Vec::new(), offset: 0 })
    }

    #[cold]
    fn error(&self, problem: impl AsRef<str>) -> TrainingError {
        let problem = format!("is damaged at byte {}: {}", self.offset, problem.as_ref());
        TrainingError::of(&self.path, problem, "the trace was not written or copied completely")
    }

    /// The next message; `None` at the end of the file.
    fn next(&mut self) -> Result<Option<&[u8]>, TrainingError> {
        let unreadable = |path: &Path, error| TrainingError::from(FileError::unreadable(path, &error));
        let mut length = 0u64;
        for digit in 0..10 {
            let byte = self.source.by_ref().bytes().next();
            let byte = match byte.transpose().map_err(|error| unreadable(&self.path, error))? {
                Some(byte) => byte,
                None if digit == 0 => return Ok(None),
                None => return Err(self.error("it ends in the length of a node")),
            };
            length |= u64::from(byte & 0x7f) << (7 * digit).min(63);
            if byte < 0x80 {
                break;
            }
        }
        if length > LONGEST {
            return Err(self.error(format!("a node has {length} bytes")));
        }
        self.buffer.clear();
        let read = self.source.by_ref().take(length).read_to_end(&mut self.buffer);
        let read = read.map_err(|error| unreadable(&self.path, error))?;
        if (read as u64) < length {
            return Err(self.error("it ends inside a node"));
        }
        self.offset += length;
        Ok(Some(&self.buffer))
    }
}
