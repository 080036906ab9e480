//! `WfFormat` of `WfCommons`: recorded workflows in JSON (<https://github.com/wfcommons/WfFormat>).
//!
//! Supports 1.5 and 1.6, where a workflow is a specification and its execution, and earlier versions, where tasks or jobs contain
//! everything. The work of a task is its runtime in seconds. A message from a parent to a child consists of the files that one
//! writes and the other reads.

use std::collections::{HashMap, HashSet};

use hopmap_model::{Dependency, TaskDag, WorkUnit};
use hopmap_text::{FileError, shown, utf8};
use serde::Deserialize;

use super::common::{bytes_of_weight, finish, work_of_weight};

/// Reads a workflow; sizes of files are multiplied by `scale`.
pub fn read(bytes: &[u8], scale: f64) -> Result<TaskDag, FileError> {
    let workflow = parse(utf8(bytes)?)?;
    let links = Links::new(&workflow)?;
    let mut dependencies = Vec::new();
    for destination in 0..workflow.tasks.len() {
        for (source, size) in links.messages(&workflow, destination)? {
            let bytes = bytes_of_weight(size, scale).map_err(|(problem, help)| {
                let [from, to] = [source as usize, destination].map(|task| shown(&workflow.tasks[task].name));
                let problem =
                    format!("the message from task `{from}` to `{to}` has {size} bytes, which {problem}");
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
            let help = "every task in `workflow.execution.tasks` needs a `runtimeInSeconds`";
            return Err(FileError::new(format!("the runtime of task `{name}` is missing"), help));
        };
        work.push(work_of_weight(seconds).map_err(|problem| {
            FileError::new(
                format!("the runtime of task `{name}` is {seconds} s, which {problem}"),
                "runtimes must be 0 or more",
            )
        })?);
    }
    finish(work, dependencies, tasks.into_iter().map(|task| task.name).collect(), WorkUnit::Seconds)
}

/// A workflow of any version.
#[derive(Debug)]
struct Workflow {
    tasks: Vec<Task>,
    /// The names of files.
    names: Vec<String>,
    /// The sizes of files.
    sizes: Vec<Option<f64>>,
    /// Whether a task without parents waits for the writers of the files that it reads.
    files_are_edges: bool,
}

/// A task of a workflow.
#[derive(Debug)]
struct Task {
    /// Its unique name.
    name: String,
    /// An alternative name.
    other_name: Option<String>,
    /// Its number in older versions.
    old_id: Option<String>,
    seconds: Option<f64>,
    parents: Vec<String>,
    children: Vec<String>,
    /// Files, with their sizes if they are specified here.
    reads: Vec<(u32, Option<f64>)>,
    writes: Vec<u32>,
}

/// Dependencies.
#[derive(Debug)]
struct Links {
    /// The predecessors of every task, sorted, without duplicates.
    parents: Vec<Vec<u32>>,
    /// The writers of every file, sorted, without duplicates.
    writers: Vec<Vec<u32>>,
}

impl Links {
    fn new(workflow: &Workflow) -> Result<Self, FileError> {
        let known = Known::new(&workflow.tasks)?;
        let mut writers = vec![Vec::new(); workflow.names.len()];
        let mut parents = vec![Vec::new(); workflow.tasks.len()];
        for (number, task) in (0..).zip(&workflow.tasks) {
            for parent in &task.parents {
                parents[number as usize].push(known.find(parent, task, "parent")?);
            }
            for child in &task.children {
                parents[known.find(child, task, "child")? as usize].push(number);
            }
            task.writes.iter().for_each(|&file| writers[file as usize].push(number));
        }
        writers.iter_mut().for_each(Vec::dedup);
        if workflow.files_are_edges {
            for (number, (task, parents)) in (0..).zip(workflow.tasks.iter().zip(&mut parents)) {
                if parents.is_empty() {
                    let written =
                        task.reads.iter().flat_map(|(file, _)| writers[*file as usize].iter().copied());
                    parents.extend(written.filter(|&writer| writer != number));
                }
            }
        }
        for parents in &mut parents {
            parents.sort_unstable();
            parents.dedup();
        }
        Ok(Self { parents, writers })
    }

    /// The predecessors of a task, and the bytes from each: the files that one writes and the other reads.
    fn messages(&self, workflow: &Workflow, task: usize) -> Result<Vec<(u32, f64)>, FileError> {
        let parents = &self.parents[task];
        let mut messages: Vec<(u32, f64)> = parents.iter().map(|&parent| (parent, 0.0)).collect();
        let mut seen = HashSet::new();
        for &(file, size) in &workflow.tasks[task].reads {
            let writers = &self.writers[file as usize];
            let mut get = |place: usize| {
                let size = size.or(workflow.sizes[file as usize]).ok_or_else(|| {
                    let name = shown(&workflow.names[file as usize]);
                    FileError::new(
                        format!("the size of file `{name}` is missing"),
                        "specify its `sizeInBytes`",
                    )
                })?;
                messages[place].1 += size;
                Ok(())
            };
            // A file that is listed twice is read once.
            if !seen.insert(file) {
                continue;
            }
            // Searches each element of the shorter list in the longer one.
            if writers.len() <= parents.len() {
                for writer in writers {
                    parents.binary_search(writer).map_or(Ok(()), &mut get)?;
                }
            } else {
                for (place, parent) in parents.iter().enumerate() {
                    writers.binary_search(parent).map_or(Ok(()), |_| get(place))?;
                }
            }
        }
        Ok(messages)
    }
}

/// Tasks by name.
struct Known<'a> {
    by_name: HashMap<&'a str, u32>,
    /// By alternative names, which may be ambiguous.
    by_other: HashMap<&'a str, Option<u32>>,
}

impl<'a> Known<'a> {
    fn new(tasks: &'a [Task]) -> Result<Self, FileError> {
        let mut known = Self { by_name: HashMap::new(), by_other: HashMap::new() };
        for (number, task) in (0..).zip(tasks) {
            if known.by_name.insert(&task.name, number).is_some() {
                let problem = format!("duplicate task `{}`", shown(&task.name));
                return Err(FileError::new(problem, "ids must be unique"));
            }
            for name in [&task.other_name, &task.old_id].into_iter().flatten() {
                let other = known.by_other.entry(name).or_insert(Some(number));
                *other = other.filter(|&other| other == number);
            }
        }
        Ok(known)
    }

    fn find(&self, name: &str, by: &Task, relation: &str) -> Result<u32, FileError> {
        let found = self.by_name.get(name).copied().map(Some).or_else(|| self.by_other.get(name).copied());
        let problem = match found {
            Some(Some(task)) => return Ok(task),
            Some(None) => "which is the name of several tasks",
            None => "which does not exist",
        };
        let problem = format!("task `{}` has a {relation} `{}`, {problem}", shown(&by.name), shown(name));
        Err(FileError::new(problem, "tasks must refer to their parents and children by id"))
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    schema_version: Option<serde_json::Value>,
    workflow: Option<WorkflowJson>,
}

/// Contents of a workflow in any version.
#[derive(Deserialize)]
struct WorkflowJson {
    specification: Option<Specification>,
    execution: Option<Execution>,
    tasks: Option<Vec<OldTask>>,
    jobs: Option<Vec<OldTask>>,
}

#[derive(Deserialize)]
struct Specification {
    #[serde(default)]
    tasks: Vec<NewTask>,
    files: Option<Vec<FileSize>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NewTask {
    id: String,
    name: Option<String>,
    parents: Option<Vec<String>>,
    children: Option<Vec<String>>,
    input_files: Option<Vec<String>>,
    output_files: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FileSize {
    id: String,
    size_in_bytes: f64,
}

#[derive(Deserialize)]
struct Execution {
    #[serde(default)]
    tasks: Vec<Executed>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Executed {
    id: String,
    runtime_in_seconds: Option<f64>,
}

/// A task or job before 1.5.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OldTask {
    name: String,
    id: Option<String>,
    runtime: Option<f64>,
    runtime_in_seconds: Option<f64>,
    parents: Option<Vec<String>>,
    children: Option<Vec<String>>,
    files: Option<Vec<OldFile>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OldFile {
    link: Option<String>,
    name: String,
    path: Option<String>,
    size: Option<f64>,
    size_in_bytes: Option<f64>,
}

const HELP: &str = "versions 1.5 and 1.6 need `workflow.specification.tasks` and `workflow.execution.tasks`; earlier versions need `workflow.tasks` or \
                    `workflow.jobs`";

fn parse(text: &str) -> Result<Workflow, FileError> {
    let document: Document = serde_json::from_str(text).map_err(|error| {
        let message = error.to_string();
        let problem = message.split(" at line ").next().unwrap_or_default().to_owned();
        FileError::at(
            error.line(),
            problem,
            "the file must be JSON as described by https://github.com/wfcommons/WfFormat",
        )
    })?;
    let Some(workflow) = document.workflow else {
        return Err(FileError::new("the file has no `workflow`", HELP));
    };
    let read = match workflow {
        WorkflowJson { specification: Some(specification), execution, .. } => new(specification, execution)?,
        WorkflowJson { tasks, jobs, .. } => old(tasks.or(jobs).unwrap_or_default())?,
    };
    if read.tasks.is_empty() {
        let help = match &document.schema_version {
            Some(version) => format!("the file has `schemaVersion` {}; {HELP}", shown(&version.to_string())),
            None => HELP.to_owned(),
        };
        return Err(FileError::new("`workflow` has no tasks", help));
    }
    Ok(read)
}

/// Files by their names.
#[derive(Default)]
struct Files {
    index: HashMap<String, u32>,
    sizes: Vec<Option<f64>>,
}

impl Files {
    fn number(&mut self, name: String) -> u32 {
        let next = self.sizes.len() as u32;
        let number = *self.index.entry(name).or_insert(next);
        if number == next {
            self.sizes.push(None);
        }
        number
    }

    fn numbers(&mut self, names: Option<Vec<String>>) -> Vec<u32> {
        names.unwrap_or_default().into_iter().map(|name| self.number(name)).collect()
    }

    /// The names and the sizes.
    fn done(self) -> (Vec<String>, Vec<Option<f64>>) {
        let mut names = vec![String::new(); self.sizes.len()];
        for (name, number) in self.index {
            names[number as usize] = name;
        }
        (names, self.sizes)
    }
}

fn size(name: &str, size: f64) -> Result<f64, FileError> {
    work_of_weight(size).map_err(|problem| {
        let problem = format!("file `{}` has {size} bytes, which {problem}", shown(name));
        FileError::new(problem, "sizes must be numbers from 0 to 2^53")
    })
}

fn new(specification: Specification, execution: Option<Execution>) -> Result<Workflow, FileError> {
    let mut files = Files::default();
    for FileSize { id, size_in_bytes } in specification.files.unwrap_or_default() {
        let bytes = size(&id, size_in_bytes)?;
        let shown_id = shown(&id);
        let number = files.number(id) as usize;
        match files.sizes[number].replace(bytes) {
            Some(other) if other.to_bits() != bytes.to_bits() => {
                let problem = format!("file `{shown_id}` has both {other} and {bytes} bytes");
                return Err(FileError::new(problem, "specify it once in `specification.files`"));
            }
            _ => {}
        }
    }
    let mut seconds: HashMap<String, f64> = HashMap::new();
    for Executed { id, runtime_in_seconds } in execution.map(|execution| execution.tasks).unwrap_or_default()
    {
        let Some(runtime) = runtime_in_seconds else { continue };
        let shown_id = shown(&id);
        if seconds.insert(id, runtime).is_some() {
            let problem = format!("duplicate task `{shown_id}` in `execution`");
            return Err(FileError::new(problem, "every task must run once"));
        }
    }
    let mut ids = HashSet::new();
    if let Some(task) = specification.tasks.iter().find(|task| !ids.insert(task.id.as_str())) {
        return Err(FileError::new(format!("duplicate task `{}`", shown(&task.id)), "ids must be unique"));
    }
    let task = |task: NewTask| Task {
        seconds: seconds.remove(&task.id),
        other_name: task.name,
        name: task.id,
        old_id: None,
        parents: task.parents.unwrap_or_default(),
        children: task.children.unwrap_or_default(),
        reads: files.numbers(task.input_files).into_iter().map(|file| (file, None)).collect(),
        writes: files.numbers(task.output_files),
    };
    let tasks: Vec<Task> = specification.tasks.into_iter().map(task).collect();
    if let Some(id) = seconds.keys().min() {
        let problem = format!("task `{}` of `execution` is not in the specification", shown(id));
        return Err(FileError::new(problem, HELP));
    }
    let (names, sizes) = files.done();
    Ok(Workflow { tasks, names, sizes, files_are_edges: false })
}

fn old(tasks: Vec<OldTask>) -> Result<Workflow, FileError> {
    let mut files = Files::default();
    let mut found = Vec::with_capacity(tasks.len());
    for task in tasks {
        let (mut reads, mut writes) = (Vec::new(), Vec::new());
        for file in task.files.unwrap_or_default() {
            let bytes = file.size_in_bytes.or(file.size).map(|bytes| size(&file.name, bytes)).transpose()?;
            let number = files.number(file.path.unwrap_or_default() + &file.name);
            match file.link.is_some_and(|link| link.eq_ignore_ascii_case("input")) {
                true => reads.push((number, bytes)),
                false => {
                    writes.push(number);
                    let size = &mut files.sizes[number as usize];
                    *size = size.or(bytes);
                }
            }
        }
        // The names that WfCommons uses when it converts to 1.5.
        let name = match &task.id {
            Some(id) if !task.name.contains(id.as_str()) => format!("{}_{id}", task.name),
            _ => task.name.clone(),
        };
        found.push(Task {
            name,
            other_name: Some(task.name),
            old_id: task.id,
            seconds: task.runtime_in_seconds.or(task.runtime),
            parents: task.parents.unwrap_or_default(),
            children: task.children.unwrap_or_default(),
            reads,
            writes,
        });
    }
    let (names, sizes) = files.done();
    Ok(Workflow { tasks: found, names, sizes, files_are_edges: true })
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
        // The predecessors of the last task are not listed, but it reads a file.
        assert_eq!(edges(&dag), [("a_ID1", "b_ID2", 7), ("a_ID1", "c", 5)]);
        let tasks = OLD.replace("jobs", "tasks").replace("1.3", "1.4");
        assert_eq!(read(tasks.as_bytes(), 1.0), Ok(dag));
    }

    #[test]
    fn errors_are_reported() {
        let problem = |text: &str, from: &str, to: &str| {
            assert!(text.contains(from), "{from}");
            read(text.replacen(from, to, 1).as_bytes(), 1.0).unwrap_err().to_string()
        };
        assert_eq!(
            problem(NEW, r#"["a", "b"]"#, r#"["a", "q"]"#),
            "task `c` has a parent `q`, which does not exist"
        );
        assert_eq!(
            problem(NEW, r#"["c", "b"]"#, r#"["x"]"#),
            "task `a` has a child `x`, which is the name of several tasks"
        );
        assert_eq!(problem(NEW, r#""id": "b""#, r#""id": "a""#), "duplicate task `a`");
        assert_eq!(
            problem(NEW, r#"{"id": "b", "runtimeInSeconds": 0}, "#, ""),
            "the runtime of task `b` is missing"
        );
        assert_eq!(
            problem(NEW, "1.5, \"machines", "-1.5, \"machines"),
            "the runtime of task `a` is -1.5 s, which is negative"
        );
        assert_eq!(
            problem(NEW, "Seconds\": 2}", "Seconds\": \"2\"}"),
            "line 12: invalid type: string \"2\", expected f64"
        );
        assert_eq!(
            problem(NEW, r#"{"id": "f", "sizeInBytes": 100}, "#, ""),
            "the size of file `f` is missing"
        );
        assert_eq!(
            problem(NEW, "\"sizeInBytes\": 100", "\"sizeInBytes\": -1"),
            "file `f` has -1 bytes, which is negative"
        );
        assert_eq!(problem(NEW, r#"{"id": "g""#, r#"{"id": "f""#), "file `f` has both 100 and 20 bytes");
        assert_eq!(
            problem(NEW, "\"parents\": []", "\"parents\": [\"c\"]"),
            "task `c` is part of a dependency cycle"
        );
        assert_eq!(
            problem(NEW, "{\"id\": \"c\", \"runtime", "{\"id\": \"q\", \"runtime"),
            "task `q` of `execution` is not in the specification"
        );
        assert_eq!(problem(NEW, "\"specification\"", "\"x\""), "`workflow` has no tasks");
        assert_eq!(problem(OLD, "\"jobs\"", "\"x\""), "`workflow` has no tasks");
        assert!(read(OLD.replace("1.3", "x").as_bytes(), 1.0).is_ok());
        assert_eq!(read(b"{}", 1.0).unwrap_err().problem, "the file has no `workflow`");
        assert!(read(b"{\n", 1.0).unwrap_err().to_string().starts_with("line 2: "));
    }
}
