//! A hierarchy of KaHIP.

use hopmap_model::SystemGraph;

use super::regular::{Regular, lost_of_machine, whole};
use super::{ExportError, ExportParams};

/// Most slots among which costs that follow from links are looked at.
const MOST: usize = 4096;

/// The hierarchy and the distances, a line each, innermost first.
pub(super) fn write(system: &SystemGraph, _: &ExportParams) -> Result<(String, Vec<String>), ExportError> {
    let impossible = |problem: &str, help: &str| ExportError::Impossible {
        format: "a hierarchy of KaHIP",
        problem: problem.into(),
        help: help.into(),
    };
    let system = &*system.explicit(MOST)?;
    let tree = Regular::new(system).ok_or_else(|| {
        impossible(
            "its costs are no regular tree, in which all groups of a level are of one size",
            "choose equally many hosts below every switch with select/nodes, find levels with topology/levels, or write it for Scotch",
        )
    })?;
    if !tree.is_in_order() {
        return Err(impossible(
            "slots that are near each other do not lie one behind the other",
            "write it for Scotch, whose `ltleaf` numbers the leaves",
        ));
    }
    let mut lost = lost_of_machine(system);
    let costs = whole(&tree.costs);
    lost.extend(costs.lost());
    // A machine of one slot is a level with one branch.
    let branches = if tree.branches.is_empty() { vec![1] } else { tree.branches };
    let distances = if costs.costs.is_empty() { vec![1] } else { costs.costs };
    let line = |numbers: Vec<String>| numbers.join(":");
    let hierarchy = line(branches.iter().map(u32::to_string).collect());
    let distances = line(distances.iter().map(i64::to_string).collect());
    Ok((format!("{hierarchy}\n{distances}\n"), lost))
}
