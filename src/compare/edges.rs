//! Two task graphs: ranks, edges, volumes.
//!
//! Edges of both are sorted by source and destination, so two streams are merged and no graph is ever in memory.

use std::cmp::Ordering;

use arrow_array::{Array, RecordBatch, UInt32Array, UInt64Array};
use hopmap_artifact::{ArtifactError, Folder, TableReader};
use hopmap_model::Edge;
use serde::Serialize;

use super::{MOST_SHOWN, more};

/// What one rank sends to another.
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
    /// What was sent before; none if the edge is new.
    pub before: Option<Traffic>,
    /// What is sent after; none if the edge is gone.
    pub after: Option<Traffic>,
}

/// What is different between two task graphs.
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
    found.traffic = merge(Edges::open(before)?, Edges::open(after)?, |change| found.count(change))?;
    Ok(found)
}

/// Calls `visit` for every edge that is different; gives the traffic of all edges of both.
fn merge(
    before: impl Iterator<Item = Result<Edge, ArtifactError>>,
    after: impl Iterator<Item = Result<Edge, ArtifactError>>,
    mut visit: impl FnMut(EdgeChange),
) -> Result<[Traffic; 2], ArtifactError> {
    let (mut before, mut after) = (before, after);
    let (mut old, mut new) = (before.next().transpose()?, after.next().transpose()?);
    let mut total = [Traffic::default(); 2];
    loop {
        let order = match (&old, &new) {
            (None, None) => return Ok(total),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(old), Some(new)) => old.pair().cmp(&new.pair()),
        };
        let from_old = old.filter(|_| order.is_le());
        let from_new = new.filter(|_| order.is_ge());
        for (total, edge) in total.iter_mut().zip([from_old, from_new]) {
            let traffic = edge.map(Traffic::of).unwrap_or_default();
            total.messages = total.messages.saturating_add(traffic.messages);
            total.bytes = total.bytes.saturating_add(traffic.bytes);
        }
        let change = [from_old, from_new].map(|edge| edge.map(Traffic::of));
        if let Some((source, destination)) = from_old.or(from_new).map(|edge| edge.pair())
            && change[0] != change[1]
        {
            visit(EdgeChange { source, destination, before: change[0], after: change[1] });
        }
        if from_old.is_some() {
            old = before.next().transpose()?;
        }
        if from_new.is_some() {
            new = after.next().transpose()?;
        }
    }
}

impl Traffic {
    fn of(edge: Edge) -> Self {
        Self { messages: edge.messages, bytes: edge.bytes }
    }
}

impl EdgeChange {
    /// By how much it changed: bytes first, then messages.
    fn size(&self) -> (u64, u64) {
        let (before, after) = (self.before.unwrap_or_default(), self.after.unwrap_or_default());
        (before.bytes.abs_diff(after.bytes), before.messages.abs_diff(after.messages))
    }

    fn words(&self) -> String {
        let Self { source, destination, before, after } = self;
        let side = |traffic: &Option<Traffic>| match traffic {
            None => "nothing".to_owned(),
            Some(Traffic { messages, bytes }) => format!("{bytes} bytes in {messages} messages"),
        };
        format!("  {source} → {destination}: {} → {}", side(before), side(after))
    }
}

impl GraphChanges {
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

    /// Whether something is different.
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
            lines.push(format!("bytes in all: {} → {}", before.bytes, after.bytes));
            lines.push(format!("messages in all: {} → {}", before.messages, after.messages));
            lines.push("largest changes:".to_owned());
            lines.extend(self.largest.iter().map(EdgeChange::words));
            lines.extend(more(self.edges(), self.largest.len()));
        }
        lines
    }
}

/// The edges of a graph one by one; an error if they are not sorted.
struct Edges {
    folder: Folder,
    reader: TableReader,
    batch: Option<(Columns, usize)>,
    last: Option<(u32, u32)>,
}

/// The columns of a batch.
struct Columns {
    source: UInt32Array,
    destination: UInt32Array,
    messages: UInt64Array,
    bytes: UInt64Array,
}

impl Edges {
    fn open(folder: &Folder) -> Result<Self, ArtifactError> {
        Ok(Self { folder: folder.clone(), reader: folder.stream("edges")?, batch: None, last: None })
    }

    fn damaged(&self, reason: &str) -> ArtifactError {
        ArtifactError::Damaged { path: self.folder.table_path("edges"), reason: reason.to_owned() }
    }

    fn next_edge(&mut self) -> Result<Option<Edge>, ArtifactError> {
        loop {
            if let Some((columns, row)) = &mut self.batch
                && *row < columns.source.len()
            {
                let edge = columns.edge(*row);
                *row += 1;
                if self.last >= Some(edge.pair()) {
                    return Err(self.damaged("its edges are not sorted by source and destination"));
                }
                self.last = Some(edge.pair());
                return Ok(Some(edge));
            }
            let Some(batch) = self.reader.next().transpose()? else { return Ok(None) };
            let columns = Columns::of(&batch);
            let columns = columns.ok_or_else(|| self.damaged("its columns are not those of edges"))?;
            self.batch = Some((columns, 0));
        }
    }
}

impl Columns {
    fn of(batch: &RecordBatch) -> Option<Self> {
        let column = |name: &str| batch.column_by_name(name).filter(|column| column.null_count() == 0);
        let u32 = |name: &str| column(name)?.as_any().downcast_ref::<UInt32Array>().cloned();
        let u64 = |name: &str| column(name)?.as_any().downcast_ref::<UInt64Array>().cloned();
        Some(Self {
            source: u32("source")?,
            destination: u32("destination")?,
            messages: u64("messages")?,
            bytes: u64("bytes")?,
        })
    }

    fn edge(&self, row: usize) -> Edge {
        Edge {
            source: self.source.value(row),
            destination: self.destination.value(row),
            messages: self.messages.value(row),
            bytes: self.bytes.value(row),
        }
    }
}

impl Iterator for Edges {
    type Item = Result<Edge, ArtifactError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_edge().transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopmap_model::{Process, TaskGraph};
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    type Sent = BTreeMap<(u32, u32), (u64, u64)>;

    fn graph(sent: &Sent) -> TaskGraph {
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

    fn stored(sent: &Sent) -> (tempfile::TempDir, Folder) {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::write(place.path(), &graph(sent)).unwrap();
        (place, folder)
    }

    fn sent() -> impl Strategy<Value = Sent> {
        proptest::collection::btree_map((0..8u32, 0..8u32), (0..4u64, 0..4u64), 0..30)
    }

    #[test]
    fn largest_changes_are_first_and_few() {
        let before: Sent = (0..8).flat_map(|a| (0..8).map(move |b| ((a, b), (1, 10)))).collect();
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
                "bytes in all: 640 → 1120",
                "messages in all: 64 → 63",
                "largest changes:",
                "  3 → 4: 10 bytes in 1 messages → 500 bytes in 1 messages",
                "  7 → 7: 10 bytes in 1 messages → nothing",
            ]
        );
        assert!(!compare(&before, &before).unwrap().is_different());
    }

    #[test]
    fn edges_that_are_not_sorted_are_an_error() {
        let place = tempfile::tempdir().unwrap();
        let mut broken = graph(&Sent::from([((0, 1), (1, 1)), ((1, 0), (1, 1))]));
        broken.edges.reverse();
        let broken = Folder::write(place.path(), &broken).unwrap();
        let (_place, whole) = stored(&Sent::from([((0, 1), (1, 1))]));
        let error = compare(&broken, &whole).unwrap_err().to_string();
        assert!(error.contains("not sorted"), "{error}");
    }

    proptest! {
        #[test]
        fn reported_changes_make_one_graph_of_the_other(before in sent(), after in sent()) {
            let mut made = before.clone();
            let edges = |sent: &Sent| graph(sent).edges.into_iter().map(Ok).collect::<Vec<_>>().into_iter();
            let mut visited = GraphChanges::default();
            merge(edges(&before), edges(&after), |change| {
                visited.count(change);
                let pair = (change.source, change.destination);
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
