//! Traces of PyTorch's profiler in the format of Chrome, one per rank: `*.json` or `*.json.gz`. The rank is
//! `distributedInfo.rank`, or else in the name, unless the number there is a time or the id of a process.
//!
//! Collective operations are the kernels that have a `Collective name`, or on processors without kernels the
//! operators `record_param_comms`; both have the metadata that `saveNcclMeta` of PyTorch writes. Process groups are
//! those of `Process Group Ranks`, or of `pg_config` in `distributedInfo` if the list is abbreviated.
//!
//! A rank computes whenever it does not wait for communication: kernels of NCCL run and no other kernel does.

use std::collections::HashMap;
use std::path::Path;

use hopmap_model::{CollectiveOperation as Operation, Context, to_u32};
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::calls::{Moment, Rank, Split, What};
use crate::error::{TrainingError, damaged};
use crate::job::{Checked, Job};
use crate::json::{self, Each, Ranks, Repaired};
use crate::kinds::kind;
use crate::names::{Named, element_bytes, named};
use crate::ranks::{Format, files_of, likely_rank_of};
use crate::spans::{merged, without};

/// The files.
pub const FORMAT: Format = (&[".json", ".json.gz"], recognises);

/// What to do about a trace that does not tell its rank.
const NO_RANK: &str = "start the profiler after `init_process_group`, and it records the rank; or end the names of the files in their \
     ranks, such as `rank3.json.gz`";

/// Spans that are merged before more memory is reserved for them.
const MANY_SPANS: usize = 1 << 16;

#[derive(Debug, Deserialize)]
struct Event {
    #[serde(default, deserialize_with = "json::text")]
    cat: Option<String>,
    #[serde(default, deserialize_with = "json::text")]
    name: Option<String>,
    #[serde(default, deserialize_with = "json::real")]
    ts: f64,
    #[serde(default, deserialize_with = "json::real")]
    dur: f64,
    args: Option<Arguments>,
}

#[derive(Debug, Default, Deserialize)]
struct Arguments {
    #[serde(default, rename = "Collective name", deserialize_with = "json::text")]
    collective: Option<String>,
    #[serde(rename = "In msg nelems")]
    elements: Option<Value>,
    #[serde(default, deserialize_with = "json::text")]
    dtype: Option<String>,
    #[serde(rename = "Out msg nelems")]
    received: Option<Value>,
    #[serde(rename = "In split size")]
    splits: Option<Value>,
    #[serde(default, rename = "Process Group Name", deserialize_with = "json::text")]
    group: Option<String>,
    #[serde(default, rename = "Process Group Description", deserialize_with = "json::text")]
    description: Option<String>,
    #[serde(rename = "Process Group Ranks")]
    ranks: Option<Ranks>,
    #[serde(rename = "Rank")]
    root: Option<Value>,
    #[serde(rename = "Src Rank")]
    source: Option<Value>,
    #[serde(rename = "Dst Rank")]
    destination: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
struct Information {
    #[serde(default, deserialize_with = "json::whole")]
    rank: Option<u32>,
    #[serde(default, deserialize_with = "json::whole")]
    world_size: Option<u32>,
    #[serde(default)]
    pg_config: Vec<Group>,
}

#[derive(Debug, Deserialize)]
struct Group {
    #[serde(alias = "name")]
    pg_name: Option<Value>,
    pg_desc: Option<String>,
    ranks: Option<Ranks>,
}

/// A communication with its group by name, and whether it is a kernel.
#[derive(Debug)]
struct Raw {
    meaning: Meaning,
    group: String,
    description: Option<String>,
    ranks: Option<Ranks>,
    /// Begin and end in microseconds.
    span: (f64, f64),
    is_kernel: bool,
}

#[derive(Debug)]
enum Meaning {
    Collective { operation: Operation, root: Option<u32>, sent: u64, splits: Splits },
    Message { peer: u32, bytes: u64, is_sent: bool },
}

/// What an all-to-all says about who gets what.
#[derive(Debug)]
enum Splits {
    /// Nothing but the bytes that this rank receives, if known.
    Received(Option<u64>),
    /// Different amounts: rows of a tensor for every member.
    Listed(Vec<u64>),
}

/// What a file has.
#[derive(Debug, Default)]
struct File {
    information: Information,
    raw: Vec<Raw>,
    /// Kernels that are no communication, and all kernels of NCCL.
    computing: Vec<(f64, f64)>,
    communicating: Vec<(f64, f64)>,
    /// Begin of the first and end of the last event.
    span: Option<(f64, f64)>,
}

/// Whether a file begins like a trace.
pub(crate) fn recognises(head: &str) -> bool {
    head.contains("\"traceEvents\"") || head.contains("\"schemaVersion\"")
}

/// Reads the traces of all ranks.
pub fn read(folder: &Path, cx: &Context<'_>) -> Result<Checked, TrainingError> {
    let mut job = Job::default();
    let (mut size, mut repaired) = (None, Repaired::default());
    let files = files_of(folder, FORMAT, cx)?;
    let count = u32::try_from(files.len()).unwrap_or(u32::MAX);
    for path in files {
        let file = json::read(&path, cx, Document, &mut repaired)?;
        let rank = file.information.rank.or_else(|| likely_rank_of(folder, &path, count));
        let rank = rank.ok_or_else(|| {
            TrainingError::of(
                &path,
                "has no `distributedInfo` with its rank, and its name does not end in one",
                NO_RANK,
            )
        })?;
        size = size.max(file.information.world_size);
        let rank_of = file.rank(&mut job, count, &path)?;
        job.add(rank, rank_of, &path)?;
    }
    repaired.log(cx);
    job.checked(size, folder)
}

/// The document of a trace.
#[derive(Clone, Copy)]
struct Document;

impl<'de> DeserializeSeed<'de> for Document {
    type Value = File;

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<File, D::Error> {
        source.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Document {
    type Value = File;

    fn expecting(&self, text: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        text.write_str("an object with `traceEvents`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut keys: A) -> Result<File, A::Error> {
        let (mut file, mut has_events) = (File::default(), false);
        while let Some(key) = keys.next_key::<String>()? {
            match key.as_str() {
                "traceEvents" => {
                    has_events = true;
                    keys.next_value_seed(Each::new(|event: Event| file.event(event)))?;
                }
                "distributedInfo" => file.information = keys.next_value()?,
                _ => drop(keys.next_value::<IgnoredAny>()?),
            }
        }
        if has_events { Ok(file) } else { Err(serde::de::Error::missing_field("traceEvents")) }
    }
}

impl File {
    fn event(&mut self, event: Event) -> Result<(), String> {
        let name = event.name.unwrap_or_default();
        let is_kernel = matches!(event.cat.as_deref(), Some("kernel" | "gpu_memcpy" | "gpu_memset"));
        if !is_kernel && name != "record_param_comms" {
            return Ok(());
        }
        let span = (event.ts, event.ts + event.dur);
        if !(span.0.is_finite() && span.1.is_finite() && event.dur >= 0.0) {
            return Err(format!("`{name}` has no valid time"));
        }
        let all = self.span.get_or_insert(span);
        *all = (all.0.min(span.0), all.1.max(span.1));
        let arguments = event.args.unwrap_or_default();
        if is_kernel {
            let is_communication = arguments.collective.is_some() || name.contains("nccl");
            let spans = if is_communication { &mut self.communicating } else { &mut self.computing };
            if spans.len() == spans.capacity() && spans.len() > MANY_SPANS {
                *spans = merged(std::mem::take(spans));
            }
            spans.push(span);
        }
        self.raw.extend(raw(arguments, span, is_kernel)?);
        Ok(())
    }

    /// What the rank of the file does, which is one of `files`.
    fn rank(mut self, job: &mut Job, files: u32, path: &Path) -> Result<Rank, TrainingError> {
        let has_kernels = self.raw.iter().any(|raw| raw.is_kernel);
        self.raw.retain(|raw| raw.is_kernel == has_kernels);
        self.raw.sort_by(|one, other| one.span.0.total_cmp(&other.span.0));
        if !has_kernels {
            self.communicating = self.raw.iter().map(|raw| raw.span).collect();
        }
        let name = |group: &Group| {
            let name = group.pg_name.as_ref()?;
            Some(name.as_str().map_or_else(|| name.to_string(), str::to_owned))
        };
        let configured = std::mem::take(&mut self.information.pg_config).into_iter();
        let known: HashMap<String, Group> =
            configured.filter_map(|group| Some((name(&group)?, group))).collect();
        // A job of more ranks than files is refused when all are read: nothing is reserved for it.
        let all: Vec<u32> = (0..self.information.world_size.unwrap_or(0).min(files)).collect();
        let span = self.span.unwrap_or_default();
        let seconds = |time: f64| (time - span.0) / 1e6;
        let (mut rank, mut spans) = (Rank::default(), Vec::new());
        for raw in self.raw {
            let span = (seconds(raw.span.0), seconds(raw.span.1));
            let configured = known.get(&raw.group);
            let description = raw.description.or_else(|| configured?.pg_desc.clone());
            let kind = kind(description.as_deref(), &raw.group);
            let what = match raw.meaning {
                Meaning::Collective { operation, root, sent, splits } => {
                    let configured = configured.and_then(|group| group.ranks.as_ref());
                    let members = members(raw.ranks.as_ref(), configured);
                    let members = members.map_err(|problem| damaged(path, problem))?;
                    // PyTorch writes an empty list for the group of all ranks.
                    let members = if members.is_empty() { all.clone() } else { members };
                    let group = job.group(members, kind, path)?;
                    let processes = to_u32(job.groups[group as usize].len());
                    let root =
                        operation.has_root().then(|| root.filter(|root| *root < processes).unwrap_or(0));
                    let split = match splits {
                        Splits::Listed(rows) if rows.len() == processes as usize => rank.list(sent, &rows),
                        Splits::Listed(rows) => {
                            let problem =
                                format!("has {} split sizes in a group of {processes} ranks", rows.len());
                            return Err(damaged(path, problem));
                        }
                        Splits::Received(bytes) => bytes.map_or(Split::Even, |bytes| rank.receiving(bytes)),
                    };
                    What::Collective { group, operation, root, sent, split }
                }
                Meaning::Message { peer, bytes, is_sent: true } => {
                    What::Send { peer, tag: 0, bytes, kind: job.kind(kind) }
                }
                Meaning::Message { peer, bytes, is_sent: false } => What::Receive { peer, tag: 0, bytes },
            };
            rank.calls.push(what);
            spans.push(span);
        }
        let waiting = without(merged(self.communicating), &merged(self.computing));
        let computing = without(vec![span], &waiting);
        let computing = computing.into_iter().map(|(begin, end)| (seconds(begin), seconds(end))).collect();
        let duration_s = Some(seconds(span.1));
        Ok(Rank { moments: moments(&spans), computing, duration_s, ..rank })
    }
}

/// Members of a group: those of the event, or of the configuration if the list of the event is abbreviated.
fn members(listed: Option<&Ranks>, configured: Option<&Ranks>) -> Result<Vec<u32>, String> {
    match (listed.map(Ranks::list), configured) {
        (Some(Ok(listed)), _) if !listed.is_empty() => Ok(listed),
        (_, Some(configured)) => configured.list(),
        (Some(Err(problem)), None) => Err(problem),
        (_, None) => Ok(Vec::new()),
    }
}

/// What happens to calls with these begins and ends, sorted by begin.
fn moments(spans: &[(f64, f64)]) -> Vec<(f64, Moment)> {
    let both = |(call, span): (u32, &(f64, f64))| {
        [(span.0, 2 * call, Moment::Start(call)), (span.1, 2 * call + 1, Moment::Needed(call))]
    };
    let mut moments: Vec<(f64, u32, Moment)> = (0..).zip(spans).flat_map(both).collect();
    moments.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
    moments.into_iter().map(|(time, _, moment)| (time, moment)).collect()
}

/// The communication of an event; `None` if it has none.
fn raw(arguments: Arguments, span: (f64, f64), is_kernel: bool) -> Result<Option<Raw>, String> {
    let Some(name) = arguments.collective else { return Ok(None) };
    let meaning = named(&name).ok_or_else(|| format!("unknown operation `{name}`"))?;
    if meaning == Named::Nothing {
        return Ok(None);
    }
    let number = |value: &Option<Value>, what: &str| match value {
        Some(Value::Number(number)) => {
            number.as_u64().ok_or_else(|| format!("`{name}` has the impossible {what} {number}"))
        }
        Some(Value::String(text)) => {
            text.parse().map_err(|_| format!("`{name}` has the impossible {what} `{text}`"))
        }
        _ => Err(format!("`{name}` has no {what}")),
    };
    let bytes = |elements: &Option<Value>| {
        let kind = arguments.dtype.as_deref().unwrap_or_default();
        let size = element_bytes(kind).ok_or_else(|| format!("`{name}` has the unknown type `{kind}`"))?;
        let elements: u64 = number(elements, "number of elements")?;
        elements.checked_mul(size).ok_or_else(|| format!("`{name}` has more than 2^64 bytes"))
    };
    let rank =
        |value| number(value, "rank").and_then(|rank| u32::try_from(rank).map_err(|error| error.to_string()));
    let meaning = match meaning {
        Named::Collective(Operation::Barrier) => {
            let splits = Splits::Received(None);
            Meaning::Collective { operation: Operation::Barrier, root: None, sent: 0, splits }
        }
        Named::Collective(operation) => {
            let is_exchange = matches!(operation, Operation::AllToAll | Operation::AllToAllV);
            let splits =
                match arguments.splits.as_ref().filter(|_| is_exchange).and_then(listed).transpose()? {
                    Some(rows) if rows.iter().any(|row| *row != rows[0]) => Splits::Listed(rows),
                    _ => Splits::Received(bytes(&arguments.received).ok().filter(|_| is_exchange)),
                };
            let (root, sent) = (rank(&arguments.root).ok(), bytes(&arguments.elements)?);
            Meaning::Collective { operation, root, sent, splits }
        }
        direction => {
            let is_sent = direction == Named::Send;
            let peer = if is_sent { &arguments.destination } else { &arguments.source };
            Meaning::Message { peer: rank(peer)?, bytes: bytes(&arguments.elements)?, is_sent }
        }
    };
    let group = arguments.group.unwrap_or_default();
    let Arguments { description, ranks, .. } = arguments;
    Ok(Some(Raw { meaning, group, description, ranks, span, is_kernel }))
}

/// Split sizes as a list, or as its text; `None` if they are abbreviated, as those of more than 30 ranks are.
fn listed(splits: &Value) -> Option<Result<Vec<u64>, String>> {
    let text = splits.as_str().map_or_else(|| splits.to_string(), str::to_owned);
    if text.contains("...") {
        return None;
    }
    let sizes = text.split(|letter| "[], ".contains(letter)).filter(|size| !size.is_empty());
    let size = |size: &str| {
        size.parse::<u32>().map(u64::from).map_err(|_| format!("the impossible split size `{size}`"))
    };
    Some(sizes.map(size).collect())
}
