//! `.sch` of PARUS.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;

use hopmap_model::Schedule;

use crate::formats::sch::{Sch, SchProcessor};

/// The number of every task in a `.sch`: its name where all names are different numbers, as those of a `.grf` are, else its own number.
pub(crate) fn node_numbers(names: &[String], tasks: usize) -> Vec<u64> {
    let number = |name: &String| name.parse::<u64>().ok().filter(|number| number.to_string() == *name);
    let numbers: Option<Vec<u64>> = names.iter().map(number).collect();
    let is_fit =
        |numbers: &Vec<u64>| numbers.len() == tasks && numbers.iter().collect::<HashSet<_>>().len() == tasks;
    numbers.filter(is_fit).unwrap_or_else(|| (0..tasks as u64).collect())
}

/// The schedule with processes that count from 1. Where tasks belong to ranks, comments lead back from every node to its rank and segment.
pub(super) fn write(schedule: &Schedule) -> String {
    let numbers = node_numbers(&schedule.names, schedule.tasks.len());
    let turns = schedule.turns();
    let nodes = |tasks: &Vec<u32>| tasks.iter().map(|&task| numbers[task as usize]).collect();
    let processors = (1..).zip(&turns).map(|(name, tasks)| SchProcessor { name, nodes: nodes(tasks) });
    let sch = Sch { processors: processors.collect() };
    let segments = schedule.segments();
    let task_of: HashMap<u64, usize> = numbers.iter().copied().zip(0..).collect();
    sch.write(|processor| {
        let mut comment = String::new();
        for node in &processor.nodes {
            let task = *task_of.get(node)?;
            if let (Some(rank), Some(segment)) = (schedule.tasks[task].process, segments[task]) {
                // Writing to a string does not fail.
                let _ = writeln!(comment, "// node {node}: rank {rank}, segment {segment}");
            }
        }
        (!comment.is_empty()).then_some(comment)
    })
}
