//! Times of messages one way, out of what PARUS measured.

use std::path::Path;

use hopmap_formats::parus::{Kind, NetworkFile};

use super::super::ImportError;
use super::super::reader::malformed;

/// Seconds above which nothing was measured.
const ABSURD: f64 = 1e5;

/// Which way a message went while the time was taken.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Way {
    /// There, and a short answer back: `one_to_one` waits for the answer to its answer.
    AndAnswer,
    /// There and back.
    Twice,
    /// There, or it is not known.
    Once,
}

/// Seconds from every process to every other, for several lengths of messages.
pub(super) struct Times<'a> {
    file: &'a NetworkFile,
    way: Way,
}

impl<'a> Times<'a> {
    /// Checks that these are times.
    pub(super) fn new(
        path: &Path,
        file: &'a NetworkFile,
        notes: &mut Vec<String>,
    ) -> Result<Self, ImportError> {
        match &file.kind {
            Kind::Average | Kind::Median => {}
            Kind::Minimum => notes.push(
                "these are minima, which may be of messages that had arrived before anybody waited: medians or averages are better"
                    .into(),
            ),
            Kind::Deviation => return Err(no_times(path, "standard deviations")),
            Kind::Other(other) => return Err(no_times(path, &format!("of kind `{other}`"))),
        }
        let way = match file.test.as_str() {
            "one_to_one" => Way::AndAnswer,
            "send_recv_and_recv_send" | "send_recv_end_recv_send" => Way::Twice,
            other => {
                notes.push(format!("times of the test `{other}` are taken as they are"));
                Way::Once
            }
        };
        let count = file.processes;
        for (length, seconds) in file.lengths.iter().zip(&file.seconds) {
            let is_time =
                |(pair, time): (usize, &f64)| pair / count == pair % count || (0.0..ABSURD).contains(time);
            if let Some(pair) = seconds.iter().enumerate().position(|(pair, time)| !is_time((pair, time))) {
                let [receiver, sender] =
                    [pair / count, pair % count].map(|rank| match file.hosts.get(rank) {
                        Some(host) => format!("{rank} ({host})"),
                        None => rank.to_string(),
                    });
                let problem = format!(
                    "from process {sender} to process {receiver} messages of {length} bytes take {} seconds",
                    seconds[pair]
                );
                return Err(malformed(path, None, problem, "this was not measured: run the test again"));
            }
        }
        Ok(Self { file, way })
    }

    /// Microseconds from every process to every other for a message of some bytes, of the shortest one if none are given.
    pub(super) fn costs(&self, bytes: Option<u64>) -> Vec<f64> {
        let count = self.file.processes;
        let cost = |pair: usize| {
            let (sender, receiver) = (pair / count, pair % count);
            match sender == receiver {
                // Nothing is measured there.
                true => 0.0,
                false => self.one_way(receiver * count + sender, bytes) * 1e6,
            }
        };
        (0..count * count).map(cost).collect()
    }

    /// Seconds of a message of some bytes: between two lengths on the line between them, beyond the last on that through the last two.
    fn one_way(&self, pair: usize, bytes: Option<u64>) -> f64 {
        let lengths = &self.file.lengths;
        let Some(bytes) = bytes.filter(|bytes| *bytes > lengths[0]) else { return self.at(pair, 0) };
        let upper = lengths.partition_point(|length| *length < bytes).min(lengths.len() - 1);
        let Some(lower) = upper.checked_sub(1) else { return self.at(pair, 0) };
        let (before, after) = (self.at(pair, lower), self.at(pair, upper));
        let part = (bytes - lengths[lower]) as f64 / (lengths[upper] - lengths[lower]) as f64;
        let time = before + (after - before) * part;
        // Longer messages are not faster, whatever noise says.
        if part > 1.0 { time.max(after) } else { time }
    }

    /// Seconds of a message of one of the lengths.
    fn at(&self, pair: usize, length: usize) -> f64 {
        let time = self.file.seconds[length][pair];
        match self.way {
            Way::Once => time,
            Way::Twice => time / 2.0,
            // The answer is as short as the shortest message, whatever the message was.
            Way::AndAnswer => (time - self.file.seconds[0][pair] / 2.0).max(time / 2.0),
        }
    }
}

fn no_times(path: &Path, what: &str) -> ImportError {
    malformed(
        path,
        None,
        format!("the numbers are no times but {what}"),
        "give the file of medians or averages of the same run",
    )
}
