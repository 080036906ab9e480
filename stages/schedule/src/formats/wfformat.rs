//! `WfFormat` of `WfCommons`: workflows that ran somewhere, as JSON (<https://github.com/wfcommons/WfFormat>).
//!
//! Read are 1.5 and 1.6, where a workflow is a specification and its execution, and those before, where tasks or jobs hold all. Work
//! is the seconds that a task took, and what goes from a parent to a child are the files that the one writes and the other reads.

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
        work.push(work_of_weight(seconds).map_err(|problem| {
            FileError::new(
                format!("task `{name}` took {seconds} s, which {problem}"),
                "seconds are 0 or more",
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
    /// Whether a task that names no parents waits for those that write what it reads.
    files_are_edges: bool,
}

/// A task of a workflow.
#[derive(Debug)]
struct Task {
    /// What no other task is called.
    name: String,
    /// What others may call it too.
    other_name: Option<String>,
    /// Its number in older versions.
    old_id: Option<String>,
    seconds: Option<f64>,
    parents: Vec<String>,
    children: Vec<String>,
    /// Files, with their sizes if they are said here.
    reads: Vec<(u32, Option<f64>)>,
    writes: Vec<u32>,
}

/// Who waits for whom.
#[derive(Debug)]
struct Links {
    /// The tasks that every task waits for, sorted, each once.
    parents: Vec<Vec<u32>>,
    /// The tasks that write every file, sorted, each once.
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

    /// What a task waits for, and how many bytes it gets from there: those of files that the one writes and the other reads.
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
                        format!("nothing says how large file `{name}` is"),
                        "give its `sizeInBytes`",
                    )
                })?;
                messages[place].1 += size;
                Ok(())
            };
            // A file that is named twice is read once.
            if !seen.insert(file) {
                continue;
            }
            // Each of the few is looked for among the many.
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

/// Tasks by what they are called.
struct Known<'a> {
    by_name: HashMap<&'a str, u32>,
    /// By names that may be those of several.
    by_other: HashMap<&'a str, Option<u32>>,
}

impl<'a> Known<'a> {
    fn new(tasks: &'a [Task]) -> Result<Self, FileError> {
        let mut known = Self { by_name: HashMap::new(), by_other: HashMap::new() };
        for (number, task) in (0..).zip(tasks) {
            if known.by_name.insert(&task.name, number).is_some() {
                let problem = format!("there are two tasks `{}`", shown(&task.name));
                return Err(FileError::new(problem, "ids are unique"));
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
            Some(None) => "and several tasks have that name",
            None => "which is not there",
        };
        let problem = format!("task `{}` has a {relation} `{}`, {problem}", shown(&by.name), shown(name));
        Err(FileError::new(problem, "tasks name their parents and children by their ids"))
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    schema_version: Option<serde_json::Value>,
    workflow: Option<WorkflowJson>,
}

/// What any version has in a workflow.
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

const HELP: &str = "versions 1.5 and 1.6 have `workflow.specification.tasks` and `workflow.execution.tasks`; those before `workflow.tasks` or \
                    `workflow.jobs`";

fn parse(text: &str) -> Result<Workflow, FileError> {
    let document: Document = serde_json::from_str(text).map_err(|error| {
        let said = error.to_string();
        let problem = said.split(" at line ").next().unwrap_or_default().to_owned();
        FileError::at(
            error.line(),
            problem,
            "the file is JSON as https://github.com/wfcommons/WfFormat describes it",
        )
    })?;
    let Some(workflow) = document.workflow else {
        return Err(FileError::new("there is no `workflow`", HELP));
    };
    let read = match workflow {
        WorkflowJson { specification: Some(specification), execution, .. } => new(specification, execution)?,
        WorkflowJson { tasks, jobs, .. } => old(tasks.or(jobs).unwrap_or_default())?,
    };
    if read.tasks.is_empty() {
        let help = match &document.schema_version {
            Some(version) => format!("the file says `schemaVersion` {}; {HELP}", shown(&version.to_string())),
            None => HELP.to_owned(),
        };
        return Err(FileError::new("there are no tasks in `workflow`", help));
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
        FileError::new(problem, "sizes are numbers from 0 to 2^53")
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
                let problem = format!("file `{shown_id}` has {other} and {bytes} bytes");
                return Err(FileError::new(problem, "say it once in `specification.files`"));
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
            let problem = format!("`execution` has two tasks `{shown_id}`");
            return Err(FileError::new(problem, "every task runs once"));
        }
    }
    let mut ids = HashSet::new();
    if let Some(task) = specification.tasks.iter().find(|task| !ids.insert(task.id.as_str())) {
        return Err(FileError::new(format!("there are two tasks `{}`", shown(&task.id)), "ids are unique"));
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
        let problem =
            format!("`execution` has a task `{}`, which the specification does not have", shown(id));
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
        // As WfCommons names them when it makes 1.5 of it.
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
