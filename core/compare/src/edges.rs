//! Compares two task graphs: ranks, edges, volumes.
//!
//! Both edge tables are sorted by source and destination, so two streams are merged and no graph is held in
//! memory.

use arrow_array::{Array, RecordBatch, UInt32Array, UInt64Array};
use hopmap_artifact::{ArtifactError, Folder};
use serde::Serialize;

use crate::common::{MOST_SHOWN, merge, more};

/// The traffic from one rank to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Traffic {
    /// Number of messages.
    pub messages: u64,
    /// Bytes in all messages.
    pub bytes: u64,
}

/// An edge that is new, gone or has other traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct EdgeChange {
    /// Rank of the sender.
    pub source: u32,
    /// Rank of the receiver.
    pub destination: u32,
    /// Traffic before; `None` if the edge is new.
    pub before: Option<Traffic>,
    /// Traffic after; `None` if the edge is gone.
    pub after: Option<Traffic>,
}

/// The differences between two task graphs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct GraphChanges {
    /// Number of ranks before and after; those above the smaller number are new or gone.
    pub ranks: [u64; 2],
    /// Number of new edges.
    pub new: u64,
    /// Number of edges that are gone.
    pub gone: u64,
    /// Number of edges with other traffic.
    pub changed: u64,
    /// Traffic of all edges before and after.
    pub traffic: [Traffic; 2],
    /// The largest changes, by bytes, then by messages.
    pub largest: Vec<EdgeChange>,
}

/// Compares the edges and the numbers of ranks.
pub(super) fn compare(before: &Folder, after: &Folder) -> Result<GraphChanges, ArtifactError> {
    let ranks =
        |folder: &Folder| folder.description().tables.get("processes").map_or(0, |processes| processes.rows);
    let mut found = GraphChanges { ranks: [ranks(before), ranks(after)], ..GraphChanges::default() };
    if before.description().tables.get("edges") == after.description().tables.get("edges") {
        return Ok(found);
    }
    merge(edges(before)?, edges(after)?, |pair, sent| {
        found.visit(pair, sent);
    })?;
    Ok(found)
}

impl EdgeChange {
    /// Sort key of the size of a change: bytes first, then messages.
    fn size(&self) -> (u64, u64) {
        let (before, after) = (self.before.unwrap_or_default(), self.after.unwrap_or_default());
        (before.bytes.abs_diff(after.bytes), before.messages.abs_diff(after.messages))
    }

    fn words(&self) -> String {
        let Self { source, destination, before, after } = self;
        let side = |traffic: &Option<Traffic>| match traffic {
            None => "none".to_owned(),
            Some(Traffic { messages, bytes }) => format!("{bytes} bytes in {messages} messages"),
        };
        format!("  {source} → {destination}: {} → {}", side(before), side(after))
    }
}

impl GraphChanges {
    /// Counts an edge of one or both graphs; returns the change, if any.
    fn visit(&mut self, (source, destination): (u32, u32), sent: [Option<Traffic>; 2]) -> Option<EdgeChange> {
        for (total, traffic) in self.traffic.iter_mut().zip(sent) {
            let traffic = traffic.unwrap_or_default();
            total.messages = total.messages.saturating_add(traffic.messages);
            total.bytes = total.bytes.saturating_add(traffic.bytes);
        }
        let [before, after] = sent;
        let change = (before != after).then_some(EdgeChange { source, destination, before, after });
        change.inspect(|change| self.count(*change))
    }

    fn count(&mut self, change: EdgeChange) {
        match (change.before, change.after) {
            (None, _) => self.new += 1,
            (_, None) => self.gone += 1,
            _ => self.changed += 1,
        }
        let is_larger = |other: &EdgeChange| change.size() > other.size();
        let place = self.largest.iter().position(is_larger).unwrap_or(self.largest.len());
        if place < MOST_SHOWN {
            self.largest.insert(place, change);
            self.largest.truncate(MOST_SHOWN);
        }
    }

    /// Whether there is a difference.
    #[must_use]
    pub fn is_different(&self) -> bool {
        self.ranks[0] != self.ranks[1] || self.edges() > 0
    }

    fn edges(&self) -> u64 {
        self.new + self.gone + self.changed
    }

    pub(super) fn words(&self) -> Vec<String> {
        let mut lines = Vec::new();
        match self.ranks {
            [before, after] if before < after => {
                lines.push(format!("ranks {before} to {} are new", after - 1));
            }
            [before, after] if before > after => {
                lines.push(format!("ranks {after} to {} are gone", before - 1));
            }
            _ => {}
        }
        if self.edges() > 0 {
            let Self { new, gone, changed, traffic: [before, after], .. } = self;
            lines.push(format!("edges: {new} new, {gone} gone, {changed} changed"));
            lines.push(format!("total bytes: {} → {}", before.bytes, after.bytes));
            lines.push(format!("total messages: {} → {}", before.messages, after.messages));
            lines.push("largest changes:".to_owned());
            lines.extend(self.largest.iter().map(EdgeChange::words));
            lines.extend(more(self.edges(), self.largest.len()));
        }
        lines
    }
}

/// Sender and receiver, and the traffic between them.
type Sent = ((u32, u32), Traffic);

/// Iterates over the edges of a graph; an error if they are not sorted.
fn edges(folder: &Folder) -> Result<impl Iterator<Item = Result<Sent, ArtifactError>>, ArtifactError> {
    let path = folder.table_path("edges");
    let damaged =
        move |reason: &str| ArtifactError::Damaged { path: path.clone(), reason: reason.to_owned() };
    let mut last = None;
    let rows = move |batch: Result<RecordBatch, ArtifactError>| {
        let sent = batch.and_then(|batch| {
            sent(&batch).ok_or_else(|| damaged("its columns are not those of an edge table"))
        });
        let mut sorted = |row: Sent| match last.replace(row.0) {
            last if last < Some(row.0) => Ok(row),
            _ => Err(damaged("its edges are not sorted by source and destination")),
        };
        sent.map_or_else(|error| vec![Err(error)], |sent| sent.into_iter().map(&mut sorted).collect())
    };
    Ok(folder.stream("edges")?.flat_map(rows))
}

fn sent(batch: &RecordBatch) -> Option<Vec<Sent>> {
    let column = |name: &str| batch.column_by_name(name).filter(|column| column.null_count() == 0);
    let u32 = |name: &str| column(name)?.as_any().downcast_ref::<UInt32Array>();
    let u64 = |name: &str| column(name)?.as_any().downcast_ref::<UInt64Array>();
    let pairs = u32("source")?.values().iter().zip(u32("destination")?.values());
    let traffic = u64("messages")?.values().iter().zip(u64("bytes")?.values());
    let row =
        |((&source, &destination), (&messages, &bytes))| ((source, destination), Traffic { messages, bytes });
    Some(pairs.zip(traffic).map(row).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopmap_model::{Edge, Process, TaskGraph};
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    type Messages = BTreeMap<(u32, u32), (u64, u64)>;

    fn graph(sent: &Messages) -> TaskGraph {
        let edge = |(&(source, destination), &(messages, bytes)): (&(u32, u32), &(u64, u64))| Edge {
            source,
            destination,
            messages,
            bytes,
        };
        TaskGraph {
            processes: vec![Process::default(); 8],
            edges: sent.iter().map(edge).collect(),
            ..TaskGraph::default()
        }
    }

    fn stored(sent: &Messages) -> (tempfile::TempDir, Folder) {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::write(place.path(), &graph(sent)).unwrap();
        (place, folder)
    }

    fn sent() -> impl Strategy<Value = Messages> {
        proptest::collection::btree_map((0..8u32, 0..8u32), (0..4u64, 0..4u64), 0..30)
    }

    #[test]
    fn the_largest_changes_are_listed_first() {
        let before: Messages = (0..8).flat_map(|a| (0..8).map(move |b| ((a, b), (1, 10)))).collect();
        let mut after = before.clone();
        after.insert((3, 4), (1, 500));
        after.remove(&(7, 7));
        let ((_a, before), (_b, after)) = (stored(&before), stored(&after));
        let found = compare(&before, &after).unwrap();
        assert_eq!((found.new, found.gone, found.changed), (0, 1, 1));
        assert_eq!(
            found.words(),
            [
                "edges: 0 new, 1 gone, 1 changed",
                "total bytes: 640 → 1120",
                "total messages: 64 → 63",
                "largest changes:",
                "  3 → 4: 10 bytes in 1 messages → 500 bytes in 1 messages",
                "  7 → 7: 10 bytes in 1 messages → none",
            ]
        );
        assert!(!compare(&before, &before).unwrap().is_different());
    }

    #[test]
    fn edges_that_are_not_sorted_are_an_error() {
        let place = tempfile::tempdir().unwrap();
        let mut broken = graph(&Messages::from([((0, 1), (1, 1)), ((1, 0), (1, 1))]));
        broken.edges.reverse();
        let broken = Folder::write(place.path(), &broken).unwrap();
        let (_place, valid) = stored(&Messages::from([((0, 1), (1, 1))]));
        let error = compare(&broken, &valid).unwrap_err().to_string();
        assert!(error.contains("not sorted"), "{error}");
    }

    proptest! {
        #[test]
        fn reported_changes_turn_one_graph_into_the_other(before in sent(), after in sent()) {
            let mut made = before.clone();
            let traffic = |(&pair, &(messages, bytes)): (&(u32, u32), &(u64, u64))| Ok((pair, Traffic { messages, bytes }));
            let mut visited = GraphChanges::default();
            merge(before.iter().map(traffic), after.iter().map(traffic), |pair, sent| {
                let Some(change) = visited.visit(pair, sent) else { return };
                let as_stored = |traffic: Traffic| (traffic.messages, traffic.bytes);
                assert_eq!(made.get(&pair).copied(), change.before.map(as_stored));
                match change.after {
                    Some(traffic) => { made.insert(pair, as_stored(traffic)); }
                    None => { made.remove(&pair); }
                }
            }).unwrap();
            prop_assert_eq!(&made, &after);
            prop_assert_eq!(visited.edges() == 0, before == after);
        }
    }
}
