//! External partitioners for comparison: Scotch (Pellegrini and Roman 1996; program `scotch_gmap`) and METIS
//! (Karypis and Kumar 1998; library), with 32-bit graphs without loops and zero-weight edges.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;

use hopmap_process::{Limits, run};

use crate::balance::balance;
use crate::graph::{Graph, PartitionError};
use crate::multilevel::{check, undivided, used};

/// Maximum total weight of all edges, both directions counted.
const MOST_WEIGHT: i64 = 1 << 30;

/// A graph in CSR format.
pub(crate) struct Compressed {
    /// Offsets of the edges of every vertex, and the end.
    pub(crate) first: Vec<i32>,
    pub(crate) targets: Vec<i32>,
    pub(crate) weights: Vec<i32>,
    /// Non-empty parts.
    pub(crate) used: Vec<u32>,
}

impl Compressed {
    /// `None` if there are fewer than two non-empty parts.
    ///
    /// Weights are divided by a common number until they fit; those that become zero are set to one, because
    /// zero-weight edges are refused or ignored.
    pub(crate) fn new(graph: &Graph, sizes: &[u32]) -> Result<Option<Self>, PartitionError> {
        let used = used(sizes);
        if used.len() < 2 {
            return Ok(None);
        }
        let count =
            |what, count: usize| i32::try_from(count).map_err(|_| PartitionError::too_many(what, count));
        let vertices = count("vertices", graph.vertices())? as u32;
        let kept =
            |vertex: u32| graph.edges(vertex).filter(move |&(target, weight)| target != vertex && weight > 0);
        let all: i128 = (0..vertices).flat_map(kept).map(|(_, weight)| i128::from(weight)).sum();
        let divisor = (all / i128::from(MOST_WEIGHT / 2) + 1) as i64;
        let (mut first, mut targets, mut weights) = (vec![0], Vec::new(), Vec::new());
        for vertex in 0..vertices {
            for (target, weight) in kept(vertex) {
                targets.push(target.cast_signed());
                weights.push((weight / divisor).max(1) as i32);
            }
            first.push(count("edges", targets.len())?);
        }
        Ok(Some(Self { first, targets, weights, used }))
    }

    /// Maps parts to the caller's numbers.
    pub(crate) fn numbered(&self, parts: &[i32]) -> Vec<u32> {
        let number = |&part: &i32| self.used[usize::try_from(part).unwrap_or(0).min(self.used.len() - 1)];
        parts.iter().map(number).collect()
    }
}

/// Names of the program in Debian and in Scotch itself.
const PROGRAMS: [&str; 2] = ["scotch_gmap", "gmap"];

/// Makes the result deterministic.
const DETERMINISTIC: &str = "-Cd";

/// Partitions a graph of unit-weight vertices by Scotch's program that maps onto a complete graph.
///
/// Scotch balances sizes only approximately; afterwards vertices move along cheapest paths until sizes are
/// exact.
pub fn scotch(graph: &Graph, sizes: &[u32]) -> Result<Vec<u32>, PartitionError> {
    check(graph, sizes)?;
    let Some(compressed) = Compressed::new(graph, sizes)? else { return Ok(undivided(graph, sizes)) };
    let folder = tempfile::tempdir().map_err(failed)?;
    let write = |name, text: String| fs::write(folder.path().join(name), text);
    write("graph.grf", source(&compressed))
        .and_then(|()| write("machine.tgt", target(&compressed, sizes)))
        .map_err(failed)?;
    map(folder.path())?;
    let text = fs::read_to_string(folder.path().join("parts.map")).map_err(failed)?;
    let parts = read(&text, graph.vertices()).ok_or_else(|| failed("its output is not a list of parts"))?;
    let mut parts = compressed.numbered(&parts);
    balance(graph, &mut parts, sizes);
    Ok(parts)
}

fn failed(problem: impl std::fmt::Display) -> PartitionError {
    PartitionError::foreign("Scotch", &problem.to_string())
}

fn map(folder: &Path) -> Result<(), PartitionError> {
    for program in PROGRAMS {
        let mut command = Command::new(program);
        command.args(["graph.grf", "machine.tgt", "parts.map", DETERMINISTIC]).current_dir(folder);
        match run(&mut command, &Limits::default()) {
            Ok(_) => return Ok(()),
            Err(error) if error.is_missing() => {}
            Err(error) => return Err(failed(error)),
        }
    }
    let problem = format!("Scotch is not installed: program `{}` not found", PROGRAMS[0]);
    let help = "install it (Debian: `apt install scotch`), or use `partitioner = \"own\"`";
    Err(PartitionError::new(problem, help))
}

/// The graph in Scotch format, with edge weights.
fn source(graph: &Compressed) -> String {
    let mut text = format!("0\n{}\t{}\n0\t010\n", graph.first.len() - 1, graph.targets.len());
    for row in graph.first.windows(2) {
        let row = row[0] as usize..row[1] as usize;
        // Writing to a string does not fail.
        let _ = write!(text, "{}", row.len());
        for (target, weight) in graph.targets[row.clone()].iter().zip(&graph.weights[row]) {
            let _ = write!(text, "\t{weight}\t{target}");
        }
        text.push('\n');
    }
    text
}

/// A complete graph with the sizes of the parts as vertex weights.
fn target(graph: &Compressed, sizes: &[u32]) -> String {
    let mut text = format!("cmpltw\n{}", graph.used.len());
    for &part in &graph.used {
        // Writing to a string does not fail.
        let _ = write!(text, "\t{}", sizes[part as usize]);
    }
    text.push('\n');
    text
}

/// Parses the number of vertices, then lines of a vertex and its part.
fn read(text: &str, vertices: usize) -> Option<Vec<i32>> {
    let mut parts = vec![None; vertices];
    for line in text.lines().skip(1) {
        let mut fields = line.split_whitespace();
        let (vertex, part) = (fields.next()?.parse::<usize>().ok()?, fields.next()?.parse().ok()?);
        *parts.get_mut(vertex)? = Some(part);
    }
    parts.into_iter().collect()
}

/// METIS has one random generator per process: concurrent calls would not be deterministic.
#[cfg(feature = "metis")]
static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());

/// Allowed imbalance of METIS, in thousandths.
#[cfg(feature = "metis")]
const IMBALANCE: metis::Idx = 1;

/// Partitions a graph of unit-weight vertices by the recursive bisection of METIS.
///
/// METIS balances sizes only approximately; afterwards vertices move along cheapest paths until sizes are
/// exact. The same arguments give the same parts.
#[cfg(feature = "metis")]
pub fn metis(graph: &Graph, sizes: &[u32], seed: u64) -> Result<Vec<u32>, PartitionError> {
    check(graph, sizes)?;
    let Some(compressed) = Compressed::new(graph, sizes)? else { return Ok(undivided(graph, sizes)) };
    let failed = |problem: &dyn std::fmt::Display| PartitionError::foreign("METIS", &problem.to_string());
    let share = |&part: &u32| sizes[part as usize] as f32 / graph.vertices() as f32;
    let shares: Vec<f32> = compressed.used.iter().map(share).collect();
    let mut parts = vec![0; graph.vertices()];
    let turn = TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    metis::Graph::new(1, (shares.len() as u32).cast_signed(), &compressed.first, &compressed.targets)
        .map_err(|error| failed(&error))?
        .set_adjwgt(&compressed.weights)
        .set_tpwgts(&shares)
        .set_option(metis::option::Seed((seed & 0x3fff_ffff) as metis::Idx))
        .set_option(metis::option::UFactor(IMBALANCE))
        .part_recursive(&mut parts)
        .map_err(|error| failed(&error))?;
    drop(turn);
    let mut parts = compressed.numbered(&parts);
    balance(graph, &mut parts, sizes);
    Ok(parts)
}
