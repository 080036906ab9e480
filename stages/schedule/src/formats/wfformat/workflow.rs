//! A workflow of any version, and what goes from task to task.

use hopmap_text::{FileError, shown};
use std::collections::{HashMap, HashSet};

/// A workflow of any version.
#[derive(Debug)]
pub(super) struct Workflow {
    pub(super) tasks: Vec<Task>,
    /// The names of files.
    pub(super) names: Vec<String>,
    /// The sizes of files.
    pub(super) sizes: Vec<Option<f64>>,
    /// Whether a task that names no parents waits for those that write what it reads.
    pub(super) files_are_edges: bool,
}

/// A task of a workflow.
#[derive(Debug)]
pub(super) struct Task {
    /// What no other task is called.
    pub(super) name: String,
    /// What others may call it too.
    pub(super) other_name: Option<String>,
    /// Its number in older versions.
    pub(super) old_id: Option<String>,
    pub(super) seconds: Option<f64>,
    pub(super) parents: Vec<String>,
    pub(super) children: Vec<String>,
    /// Files, with their sizes if they are said here.
    pub(super) reads: Vec<(u32, Option<f64>)>,
    pub(super) writes: Vec<u32>,
}

/// Who waits for whom.
#[derive(Debug)]
pub(super) struct Links {
    /// The tasks that every task waits for, sorted, each once.
    parents: Vec<Vec<u32>>,
    /// The tasks that write every file, sorted, each once.
    writers: Vec<Vec<u32>>,
}

const HELP: &str = "tasks name their parents and children by their ids";

impl Links {
    pub(super) fn new(workflow: &Workflow) -> Result<Self, FileError> {
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
    pub(super) fn messages(&self, workflow: &Workflow, task: usize) -> Result<Vec<(u32, f64)>, FileError> {
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
        Err(FileError::new(problem, HELP))
    }
}
