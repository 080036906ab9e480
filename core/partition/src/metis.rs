//! METIS (Karypis and Kumar 1998), for comparison.

use std::sync::{Mutex, PoisonError};

use metis::{Idx, option};

use crate::balance::balance;
use crate::foreign::{Compressed, undivided};
use crate::{Graph, PartitionError, check};

/// METIS draws from one generator of the whole process: calls side by side would give other parts every time.
static TURN: Mutex<()> = Mutex::new(());

/// Imbalance that METIS may leave, in thousandths.
const IMBALANCE: Idx = 1;

/// Cuts a graph of vertices that weigh one into parts of these sizes by the recursive bisection of METIS.
///
/// METIS keeps sizes only nearly: after it, vertices move on the cheapest ways until every part has its own. The same arguments
/// give the same parts.
pub fn metis(graph: &Graph, sizes: &[u32], seed: u64) -> Result<Vec<u32>, PartitionError> {
    check(graph, sizes)?;
    let Some(compressed) = Compressed::new(graph, sizes)? else { return Ok(undivided(graph, sizes)) };
    let failed = |problem: String| PartitionError::Foreign { partitioner: "METIS", problem };
    let share = |&part: &u32| sizes[part as usize] as f32 / graph.vertices() as f32;
    let shares: Vec<f32> = compressed.used.iter().map(share).collect();
    let mut parts = vec![0; graph.vertices()];
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    metis::Graph::new(1, (shares.len() as u32).cast_signed(), &compressed.first, &compressed.targets)
        .map_err(|error| failed(error.to_string()))?
        .set_adjwgt(&compressed.weights)
        .set_tpwgts(&shares)
        .set_option(option::Seed((seed & 0x3fff_ffff) as Idx))
        .set_option(option::UFactor(IMBALANCE))
        .part_recursive(&mut parts)
        .map_err(|error| failed(error.to_string()))?;
    drop(turn);
    let mut parts = compressed.numbered(&parts);
    balance(graph, &mut parts, sizes);
    Ok(parts)
}
