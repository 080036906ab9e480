//! What a rank of a job does: its calls, and when it computes.

use hopmap_model::{CollectiveOperation as Operation, to_u32};

/// What a rank communicates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    /// A collective operation of a group.
    Collective {
        /// Index of the group.
        group: u32,
        operation: Operation,
        /// Rank of the root in the group; 0 if the trace does not say.
        root: Option<u32>,
        /// Bytes of the buffer that this rank passes: its contribution, or what it has for all.
        sent: u64,
        split: Split,
    },
    /// A message to a rank, with the index of the kind of its group if the trace says it.
    Send { peer: u32, tag: u32, bytes: u64, kind: Option<u32> },
    /// A message from a rank.
    Receive { peer: u32, tag: u32, bytes: u64 },
}

/// Who gets what in an all-to-all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Split {
    /// Everybody the same.
    Even,
    /// Not known; this rank receives the bytes at this index of [`Rank::splits`].
    Received(u32),
    /// What the list of [`Rank::splits`] from this index says.
    Listed(u32),
}

/// What happens to a communication, by index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Moment {
    Start(u32),
    /// Something waits for it.
    Needed(u32),
}

/// What a rank does.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Rank {
    /// Its communication, in the order of the starts.
    pub(crate) calls: Vec<What>,
    /// What all-to-alls say: bytes for every member of the group, itself included, or bytes that this rank receives.
    pub(crate) splits: Vec<u64>,
    /// Seconds since the begin of the trace at which communication starts and is needed, in order. Empty if the trace
    /// does not say.
    pub(crate) moments: Vec<(f64, Moment)>,
    /// When it computes: begin and end, sorted and disjoint. Empty if the trace does not say.
    pub(crate) computing: Vec<(f64, f64)>,
    pub(crate) host: Option<String>,
    /// Seconds from its first to its last event, if known.
    pub(crate) duration_s: Option<f64>,
}

impl Rank {
    /// Keeps the first operations of every group.
    pub(crate) fn keep_first(&mut self, common: &[usize]) {
        let mut counts = vec![0; common.len()];
        let is_kept = |call: &What| {
            let What::Collective { group, .. } = *call else { return true };
            counts[group as usize] += 1;
            counts[group as usize] <= common[group as usize]
        };
        let kept: Vec<bool> = self.calls.iter().map(is_kept).collect();
        let mut left = kept.iter();
        self.calls.retain(|_| left.next() == Some(&true));
        let mut next = 0;
        let place = |kept: &bool| {
            next += u32::from(*kept);
            next - u32::from(*kept)
        };
        let numbers: Vec<u32> = kept.iter().map(place).collect();
        self.moments.retain_mut(|(_, Moment::Start(call) | Moment::Needed(call))| {
            let is_kept = kept[*call as usize];
            *call = numbers[*call as usize];
            is_kept
        });
    }

    /// An all-to-all in which this rank receives that number of bytes.
    pub(crate) fn receiving(&mut self, bytes: u64) -> Split {
        self.splits.push(bytes);
        Split::Received(to_u32(self.splits.len()) - 1)
    }

    /// The bytes that this rank receives, if nothing better is known.
    pub(crate) fn received(&self, split: Split) -> Option<u64> {
        match split {
            Split::Received(index) => Some(self.splits[index as usize]),
            Split::Even | Split::Listed(_) => None,
        }
    }

    /// Lists what every member of a group gets of some bytes, in proportion to weights.
    pub(crate) fn list(&mut self, sent: u64, weights: &[u64]) -> Split {
        let start = to_u32(self.splits.len());
        self.splits.extend(shares(sent, weights));
        Split::Listed(start)
    }

    /// What every member of a group gets in an all-to-all of some bytes.
    pub(crate) fn shares(&self, sent: u64, split: Split, members: usize) -> Vec<u64> {
        match split {
            Split::Listed(start) => self.splits[start as usize..][..members].to_vec(),
            Split::Even | Split::Received(_) => shares(sent, &vec![1; members]).collect(),
        }
    }

    /// Seconds of computation.
    pub(crate) fn computing_s(&self) -> f64 {
        self.computing.iter().map(|(begin, end)| end - begin).sum()
    }
}

/// Bytes in proportion to weights; all of them, unless all weights are 0.
pub(crate) fn shares(bytes: u64, weights: &[u64]) -> impl Iterator<Item = u64> {
    let all: u128 = weights.iter().map(|weight| u128::from(*weight)).sum();
    let (mut passed, mut given) = (0, 0);
    weights.iter().map(move |weight| {
        passed += u128::from(*weight);
        #[expect(clippy::cast_possible_truncation, reason = "a share of 64 bits")]
        let due = (u128::from(bytes).saturating_mul(passed) / all.max(1)) as u64;
        due - std::mem::replace(&mut given, due)
    })
}
