//! The first stage of the two-stage method RGO: iterative min-cut partitioning.

use crate::goal::Goal;
use crate::space::Space;
use crate::state::State;

/// Splits the free hosts into the job's and the rest so that the cut between them is small.
///
/// Source: GraphHunter (Baranov et al. 2022, introduction), which names a modified form of the iterative partitioning of a
/// graph into K subgraphs of Feshchenko and Matyushkov (1976) and describes neither the base nor the change. What is done here:
///
/// 1. The graph has the free hosts as vertices; an edge weighs the largest distance between free hosts less their own, so that
///    near hosts hold together.
/// 2. A first part of the wanted size grows from the vertex with the heaviest edges in all, always by the vertex with the
///    heaviest edges to the part.
/// 3. Of all pairs of a vertex inside and one outside, the one whose exchange makes the cut smallest is exchanged, until no
///    exchange makes it smaller.
///
/// Against a partitioning into K subgraphs this is modified so: there are two parts, of which one has the size of the job and the
/// other is what is left; only the first one is grown; and where the machine is a tree, hosts under one switch are exchanged
/// together, which a row of exchanges of single hosts would do one by one.
pub(crate) fn min_cut(space: &Space, count: usize, stop: &dyn Fn() -> bool) -> Vec<i64> {
    let goal = Goal::cut(space, count);
    let mut state = State::new(space, &goal);
    state.grow(goal.heaviest(), count, true);
    while !stop() && state.exchange_best() {}
    state.chosen
}
