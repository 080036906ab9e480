//! GOAL schedules, which `txt2bin` converts for `LogGOPSim`: per rank, calculations in nanoseconds, sends and
//! receives with labels, and their dependencies.

use std::collections::HashMap;
use std::io::{self, Write};
use std::path::Path;

use hopmap_replay::Step;

use super::create::create;

/// Name of the GOAL schedule.
const GOAL_FILE: &str = "program.goal";

/// Writes the steps of every rank. Returns the file name.
pub(super) fn write(ranks: &[Vec<Step>], folder: &Path) -> io::Result<Vec<String>> {
    create(&folder.join(GOAL_FILE), |file| {
        writeln!(file, "num_ranks {}", ranks.len())?;
        ranks.iter().enumerate().try_for_each(|(rank, steps)| write_rank(rank, steps, file))
    })?;
    Ok(vec![GOAL_FILE.into()])
}

fn write_rank(rank: usize, steps: &[Step], file: &mut impl Write) -> io::Result<()> {
    writeln!(file, "rank {rank} {{")?;
    // Labels of the calculations of tasks.
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
