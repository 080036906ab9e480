//! What all readers of task graphs have in common.

use hopmap_model::{Dependency, Task, TaskDag, TaskDagError, WorkUnit};
use hopmap_text::FileError;

/// Numbers above are not exact in a double.
const MOST: f64 = (1u64 << 53) as f64;

/// The work of a task: a number of zero or more that is not too large; else what is wrong with it.
pub(super) fn work(work: f64) -> Result<f64, String> {
    match work {
        _ if !work.is_finite() => Err("is no number that can be".to_owned()),
        _ if work < 0.0 => Err("is negative".to_owned()),
        _ if work > MOST => Err("is too large to be exact".to_owned()),
        _ => Ok(work),
    }
}

/// The weight of an edge as whole bytes; else what is wrong with it and what to do.
pub(super) fn bytes(weight: f64, scale: f64) -> Result<u64, (String, String)> {
    let weight =
        work(weight).map_err(|problem| (problem, "weights are numbers from 0 to 2^53".to_owned()))?;
    let scaled = weight * scale;
    if scaled > MOST {
        let help = "weights times `scale` are at most 2^53".to_owned();
        return Err((format!("is too large to be exact with `scale = {scale}`"), help));
    }
    // Reading a decimal number and scaling it each round once.
    let off = (scaled - scaled.round()).abs();
    if off <= if scale.to_bits() == 1f64.to_bits() { 0.0 } else { 2.0 * f64::EPSILON * scaled } {
        return Ok(scaled.round() as u64);
    }
    let scale = scale_for(weight);
    let help = format!(
        "with `scale = {scale}` weights of edges are multiplied by it; `bandwidth = {scale}` of the scheduler takes that back"
    );
    Err(("is not whole".to_owned(), help))
}

/// The power of ten that makes a number whole, if there is one with few zeros.
fn scale_for(weight: f64) -> u64 {
    let digits = format!("{weight}").split_once('.').map_or(0, |(_, digits)| digits.len() as u32);
    if (1..=9).contains(&digits) { 10u64.pow(digits) } else { 1000 }
}

/// The graph of tasks and what they wait for, in whichever order that is.
pub(super) fn finish(
    work: Vec<f64>,
    mut dependencies: Vec<Dependency>,
    names: Vec<String>,
    unit: WorkUnit,
) -> Result<TaskDag, FileError> {
    if work.is_empty() {
        return Err(FileError::new("there are no tasks", "a graph has at least one"));
    }
    dependencies.sort_unstable();
    let tasks = work.into_iter().map(|work| Task { rank: None, work }).collect();
    let dag = TaskDag { tasks, dependencies, names, unit };
    dag.check().map_err(|error| {
        let problem = match error {
            TaskDagError::Cycle { task } => {
                format!("task `{}` waits for itself, by way of others", dag.name(task))
            }
            error => error.to_string(),
        };
        FileError::new(problem, "a task can only wait for tasks that do not wait for it")
    })?;
    Ok(dag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_of_edges_are_whole() {
        assert_eq!((bytes(7.0, 1.0), bytes(0.0, 1.0), bytes(0.07, 100.0)), (Ok(7), Ok(0), Ok(7)));
        assert_eq!(bytes(1e15, 1.0), Ok(1_000_000_000_000_000));
        let (problem, help) = bytes(0.25, 1.0).unwrap_err();
        assert!(problem == "is not whole" && help.contains("`scale = 100`"), "{help}");
        assert!(bytes(1.0 / 3.0, 1.0).unwrap_err().1.contains("`scale = 1000`"));
        assert!(bytes(0.123, 10.0).is_err() && bytes(7.000_000_000_000_001, 1.0).is_err());
        assert!([-1.0, f64::NAN, f64::INFINITY, 1e17].iter().all(|&weight| bytes(weight, 1.0).is_err()));
        assert!(bytes(1e10, 1e10).unwrap_err().0.contains("`scale = 10000000000`"));
    }

    #[test]
    fn cycles_are_named() {
        let edge = |source, destination| Dependency { source, destination, bytes: 1 };
        let graph = |edges: &[Dependency]| {
            finish(vec![1.0; 2], edges.to_vec(), vec!["a".into(), "b".into()], WorkUnit::Time)
        };
        assert_eq!(graph(&[edge(0, 1), edge(0, 1)]).unwrap().dependencies.len(), 2);
        let error = graph(&[edge(1, 1)]).unwrap_err();
        assert_eq!(error.problem, "task `b` waits for itself, by way of others");
        assert!(finish(vec![], vec![], vec![], WorkUnit::Time).is_err());
    }
}
