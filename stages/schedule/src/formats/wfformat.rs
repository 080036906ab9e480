//! `WfFormat` of `WfCommons`: workflows that ran somewhere, as JSON (<https://github.com/wfcommons/WfFormat>).
//!
//! Read are 1.5 and 1.6, where a workflow is a specification and its execution, and those before, where tasks or jobs hold all. Work
//! is the seconds that a task took, and what goes from a parent to a child are the files that the one writes and the other reads.

mod json;
mod workflow;

use hopmap_model::{Dependency, TaskDag, WorkUnit};
use hopmap_text::{FileError, shown, utf8};

use self::workflow::{Links, Workflow};
use super::graph;

/// Reads a workflow; sizes of files are multiplied by `scale`.
pub fn read(bytes: &[u8], scale: f64) -> Result<TaskDag, FileError> {
    let workflow = json::read(utf8(bytes)?)?;
    let links = Links::new(&workflow)?;
    let mut dependencies = Vec::new();
    for destination in 0..workflow.tasks.len() {
        for (source, size) in links.messages(&workflow, destination)? {
            let bytes = graph::bytes(size, scale).map_err(|(problem, help)| {
                let [from, to] = [source as usize, destination].map(|task| shown(&workflow.tasks[task].name));
                let problem =
                    format!("what goes from task `{from}` to `{to}` is {size} bytes, which {problem}");
                FileError::new(problem, help)
            })?;
            dependencies.push(Dependency { source, destination: destination as u32, bytes });
        }
    }
    let Workflow { tasks, .. } = workflow;
    let mut work = Vec::with_capacity(tasks.len());
    for task in &tasks {
        let name = shown(&task.name);
        let Some(seconds) = task.seconds else {
            let help = "`workflow.execution.tasks` gives every task a `runtimeInSeconds`";
            return Err(FileError::new(format!("nothing says how long task `{name}` took"), help));
        };
        work.push(graph::work(seconds).map_err(|problem| {
            FileError::new(
                format!("task `{name}` took {seconds} s, which {problem}"),
                "seconds are 0 or more",
            )
        })?);
    }
    graph::finish(work, dependencies, tasks.into_iter().map(|task| task.name).collect(), WorkUnit::Seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEW: &str = r#"{"name": "w", "schemaVersion": "1.5", "workflow": {
        "specification": {
            "tasks": [
                {"name": "x", "id": "c", "parents": ["a", "b"], "children": [], "inputFiles": ["f", "g", "out"], "outputFiles": ["z"]},
                {"name": "x", "id": "a", "parents": [], "children": ["c", "b"], "inputFiles": ["out"], "outputFiles": ["f", "g", "h"]},
                {"name": "y", "id": "b", "parents": ["a"], "children": ["c"], "inputFiles": ["h"], "outputFiles": []}
            ],
            "files": [{"id": "f", "sizeInBytes": 100}, {"id": "g", "sizeInBytes": 20}, {"id": "h", "sizeInBytes": 3},
                {"id": "out", "sizeInBytes": 1000000}]
        },
        "execution": {"makespanInSeconds": 9, "executedAt": "", "tasks": [
            {"id": "a", "runtimeInSeconds": 1.5, "machines": ["m"]}, {"id": "b", "runtimeInSeconds": 0}, {"id": "c", "runtimeInSeconds": 2}
        ]}}}"#;
    const OLD: &str = r#"{"name": "w", "schemaVersion": "1.3", "workflow": {"makespan": 3, "jobs": [
        {"name": "a_ID1", "id": "ID1", "type": "compute", "runtime": 1.5, "children": ["b"],
         "files": [{"link": "output", "name": "f", "size": 7}, {"link": "output", "name": "g", "size": 5}]},
        {"name": "b", "id": "ID2", "runtime": 2, "parents": ["ID1"], "files": [{"link": "Input", "name": "f", "size": 7}]},
        {"name": "c", "runtimeInSeconds": 3, "files": [{"link": "input", "name": "g", "sizeInBytes": 5}]}]}}"#;

    fn edges(dag: &TaskDag) -> Vec<(&str, &str, u64)> {
        let name = |task: u32| dag.names[task as usize].as_str();
        dag.dependencies.iter().map(|edge| (name(edge.source), name(edge.destination), edge.bytes)).collect()
    }

    #[test]
    fn a_specification_and_its_execution_are_tasks() {
        let dag = read(NEW.as_bytes(), 1.0).unwrap();
        assert_eq!(
            (dag.names.as_slice(), dag.unit),
            (&["c", "a", "b"].map(String::from)[..], WorkUnit::Seconds)
        );
        assert_eq!(dag.tasks.iter().map(|task| task.work).collect::<Vec<_>>(), [2.0, 1.5, 0.0]);
        assert_eq!(edges(&dag), [("a", "c", 120), ("a", "b", 3), ("b", "c", 0)]);
        assert_eq!(read(NEW.as_bytes(), 2.0).unwrap().dependencies[0].bytes, 240);
    }

    #[test]
    fn tasks_of_older_versions_hold_all() {
        let dag = read(OLD.as_bytes(), 1.0).unwrap();
        assert_eq!(dag.names, ["a_ID1", "b_ID2", "c"]);
        // Nobody says what the last one waits for, but it reads a file.
        assert_eq!(edges(&dag), [("a_ID1", "b_ID2", 7), ("a_ID1", "c", 5)]);
        let tasks = OLD.replace("jobs", "tasks").replace("1.3", "1.4");
        assert_eq!(read(tasks.as_bytes(), 1.0), Ok(dag));
    }

    #[test]
    fn what_is_wrong_is_said() {
        let problem = |text: &str, from: &str, to: &str| {
            assert!(text.contains(from), "{from}");
            read(text.replacen(from, to, 1).as_bytes(), 1.0).unwrap_err().to_string()
        };
        assert_eq!(
            problem(NEW, r#"["a", "b"]"#, r#"["a", "q"]"#),
            "task `c` has a parent `q`, which is not there"
        );
        assert_eq!(
            problem(NEW, r#"["c", "b"]"#, r#"["x"]"#),
            "task `a` has a child `x`, and several tasks have that name"
        );
        assert_eq!(problem(NEW, r#""id": "b""#, r#""id": "a""#), "there are two tasks `a`");
        assert_eq!(
            problem(NEW, r#"{"id": "b", "runtimeInSeconds": 0}, "#, ""),
            "nothing says how long task `b` took"
        );
        assert_eq!(
            problem(NEW, "1.5, \"machines", "-1.5, \"machines"),
            "task `a` took -1.5 s, which is negative"
        );
        assert_eq!(
            problem(NEW, "Seconds\": 2}", "Seconds\": \"2\"}"),
            "line 12: invalid type: string \"2\", expected f64"
        );
        assert_eq!(
            problem(NEW, r#"{"id": "f", "sizeInBytes": 100}, "#, ""),
            "nothing says how large file `f` is"
        );
        assert_eq!(
            problem(NEW, "\"sizeInBytes\": 100", "\"sizeInBytes\": -1"),
            "file `f` has -1 bytes, which is negative"
        );
        assert_eq!(problem(NEW, r#"{"id": "g""#, r#"{"id": "f""#), "file `f` has 100 and 20 bytes");
        assert_eq!(
            problem(NEW, "\"parents\": []", "\"parents\": [\"c\"]"),
            "task `c` waits for itself, by way of others"
        );
        assert_eq!(
            problem(NEW, "{\"id\": \"c\", \"runtime", "{\"id\": \"q\", \"runtime"),
            "`execution` has a task `q`, which the specification does not have"
        );
        assert_eq!(problem(NEW, "\"specification\"", "\"x\""), "there are no tasks in `workflow`");
        assert_eq!(problem(OLD, "\"jobs\"", "\"x\""), "there are no tasks in `workflow`");
        assert!(read(OLD.replace("1.3", "x").as_bytes(), 1.0).is_ok());
        assert_eq!(read(b"{}", 1.0).unwrap_err().problem, "there is no `workflow`");
        assert!(read(b"{\n", 1.0).unwrap_err().to_string().starts_with("line 2: "));
    }
}
