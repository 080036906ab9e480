//! Time-independent traces, which `smpirun -replay` of `SimGrid` reads: a file of actions per rank, and one that names
//! them all. Format: `SimGrid` 3.32, `src/smpi/internals/smpi_replay.cpp`.

use std::io::{self, Write};
use std::path::Path;

use super::{Step, create};

/// The number of `MPI_BYTE` among the types of the format.
const BYTE: u32 = 6;
/// The file that names all others, by which a replay is started.
const LIST: &str = "ti.txt";

/// Writes the files; gives their names.
pub(super) fn write(ranks: &[Vec<Step>], flops_per_s: f64, folder: &Path) -> io::Result<Vec<String>> {
    let mut names: Vec<String> = (0..ranks.len()).map(|rank| format!("rank-{rank}.ti")).collect();
    for ((rank, steps), name) in ranks.iter().enumerate().zip(&names) {
        create(&folder.join(name), |file| actions(rank, steps, flops_per_s, file))?;
    }
    create(&folder.join(LIST), |file| names.iter().try_for_each(|name| writeln!(file, "{name}")))?;
    names.push(LIST.into());
    Ok(names)
}

fn actions(rank: usize, steps: &[Step], flops_per_s: f64, file: &mut impl Write) -> io::Result<()> {
    writeln!(file, "{rank} init")?;
    for step in steps {
        for message in &step.received {
            writeln!(file, "{rank} recv {} {} {} {BYTE}", message.peer, message.tag, message.bytes)?;
        }
        if step.work > 0.0 {
            writeln!(file, "{rank} compute {:.0}", step.work * flops_per_s)?;
        }
        for message in &step.sent {
            writeln!(file, "{rank} isend {} {} {} {BYTE}", message.peer, message.tag, message.bytes)?;
        }
    }
    writeln!(file, "{rank} finalize")
}
