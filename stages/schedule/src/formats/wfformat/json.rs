//! The JSON of all versions.

use hopmap_text::{FileError, shown};
use std::collections::{HashMap, HashSet};

use serde::Deserialize;

use super::workflow::{Task, Workflow};

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

pub(super) fn read(text: &str) -> Result<Workflow, FileError> {
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
    crate::formats::graph::work(size).map_err(|problem| {
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
