//! GOAL schedules, which `txt2bin` makes readable for `LogGOPSim`: per rank, calculations in nanoseconds, sends and
//! receives with labels, and which of them requires which others.

use std::collections::HashMap;
use std::io::{self, Write};
use std::path::Path;

use super::{Step, create};

const FILE: &str = "program.goal";

/// Writes the file; gives its name.
pub(super) fn write(ranks: &[Vec<Step>], folder: &Path) -> io::Result<Vec<String>> {
    create(&folder.join(FILE), |file| {
        writeln!(file, "num_ranks {}", ranks.len())?;
        ranks.iter().enumerate().try_for_each(|(rank, steps)| schedule(rank, steps, file))
    })?;
    Ok(vec![FILE.into()])
}

fn schedule(rank: usize, steps: &[Step], file: &mut impl Write) -> io::Result<()> {
    writeln!(file, "rank {rank} {{")?;
    // Labels of calculations by task.
    let mut labels = HashMap::with_capacity(steps.len());
    let mut last = 0u64;
    let mut label = || {
        last += 1;
        last
    };
    for step in steps {
        let calculation = label();
        labels.insert(step.task, calculation);
        writeln!(file, "l{calculation}: calc {:.0}", step.work * 1e9)?;
        for before in step.after.iter().filter_map(|task| labels.get(task)) {
            writeln!(file, "l{calculation} requires l{before}")?;
        }
        for message in &step.received {
            let receive = label();
            let (peer, tag, bytes) = (message.peer, message.tag, message.bytes);
            writeln!(file, "l{receive}: recv {bytes}b from {peer} tag {tag}")?;
            writeln!(file, "l{calculation} requires l{receive}")?;
        }
        for message in &step.sent {
            let send = label();
            let (peer, tag, bytes) = (message.peer, message.tag, message.bytes);
            writeln!(file, "l{send}: send {bytes}b to {peer} tag {tag}")?;
            writeln!(file, "l{send} requires l{calculation}")?;
        }
    }
    writeln!(file, "}}")
}
