//! `WfFormat` of `WfCommons`: the program as a specification, the schedule as its execution. Version 1.5, of which 1.6 is an
//! extension.

use std::collections::HashSet;

use hopmap_model::{Error, Schedule, TaskDag};
use miette::IntoDiagnostic;
use serde::Serialize;

use super::exact::Exact;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<'a> {
    name: &'a str,
    description: &'a str,
    schema_version: &'a str,
    runtime_system: RuntimeSystem<'a>,
    workflow: Workflow<'a>,
}

#[derive(Serialize)]
struct RuntimeSystem<'a> {
    name: &'a str,
    version: &'a str,
}

#[derive(Serialize)]
struct Workflow<'a> {
    specification: Specification<'a>,
    execution: Execution<'a>,
}

#[derive(Serialize)]
struct Specification<'a> {
    tasks: Vec<SpecifiedTask<'a>>,
    files: Vec<File<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SpecifiedTask<'a> {
    name: String,
    id: &'a str,
    parents: Vec<&'a str>,
    children: Vec<&'a str>,
    input_files: Vec<&'a str>,
    output_files: Vec<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct File<'a> {
    id: &'a str,
    size_in_bytes: u64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Execution<'a> {
    makespan_in_seconds: f64,
    executed_at: String,
    tasks: Vec<ExecutedTask<'a>>,
    machines: Vec<Machine<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ExecutedTask<'a> {
    id: &'a str,
    runtime_in_seconds: f64,
    executed_at: String,
    core_count: u32,
    machines: [&'a str; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Machine<'a> {
    node_name: &'a str,
    cpu: Cpu,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Cpu {
    core_count: u32,
}

/// The text. One unit of time is one second, and the schedule starts at the Unix epoch. A message is a file that one task writes
/// and the other reads; a machine is a processor of one core.
pub(super) fn write(schedule: &Schedule, dag: &TaskDag) -> Result<String, Error> {
    let ids = task_ids(schedule);
    let files: Vec<String> = (0..dag.dependencies.len()).map(|index| format!("message_{index}")).collect();
    let machines = machine_names(schedule);
    let document = Document {
        name: "schedule",
        description: "A schedule, with its times as those of an execution",
        schema_version: "1.5",
        runtime_system: RuntimeSystem { name: "hopmap", version: env!("CARGO_PKG_VERSION") },
        workflow: Workflow {
            specification: specification(schedule, dag, &ids, &files),
            execution: execution(schedule, &ids, &machines),
        },
    };
    let mut text = serde_json::to_string(&document).into_diagnostic()?;
    text.push('\n');
    Ok(text)
}

fn specification<'a>(
    schedule: &Schedule,
    dag: &TaskDag,
    ids: &'a [String],
    files: &'a [String],
) -> Specification<'a> {
    let task = |(number, id): (u32, &'a String)| SpecifiedTask {
        name: Some(schedule.name(number)).filter(|name| !name.is_empty()).unwrap_or_else(|| id.clone()),
        id,
        parents: Vec::new(),
        children: Vec::new(),
        input_files: Vec::new(),
        output_files: Vec::new(),
    };
    let mut tasks: Vec<SpecifiedTask<'a>> = (0..).zip(ids).map(task).collect();
    let mut written = Vec::new();
    for (message, file) in dag.dependencies.iter().zip(files) {
        let [source, destination] = [message.source, message.destination].map(|task| task as usize);
        // Several messages between two tasks are one dependency.
        let parents = &mut tasks[destination].parents;
        if parents.last() != Some(&ids[source].as_str()) {
            parents.push(&ids[source]);
            tasks[source].children.push(&ids[destination]);
        }
        if message.bytes > 0 {
            tasks[source].output_files.push(file);
            tasks[destination].input_files.push(file);
            written.push(File { id: file, size_in_bytes: message.bytes });
        }
    }
    Specification { tasks, files: written }
}

fn execution<'a>(schedule: &Schedule, ids: &'a [String], machines: &'a [String]) -> Execution<'a> {
    let tasks = schedule.tasks.iter().zip(ids).map(|(task, id)| ExecutedTask {
        id,
        runtime_in_seconds: Exact::of(task.finish).since(Exact::of(task.start)).real(),
        executed_at: moment(Exact::of(task.start)),
        core_count: 1,
        machines: [&machines[task.processor as usize]],
    });
    Execution {
        makespan_in_seconds: schedule.makespan(),
        executed_at: moment(Exact::of(0.0)),
        tasks: tasks.collect(),
        machines: machines
            .iter()
            .map(|node_name| Machine { node_name, cpu: Cpu { core_count: 1 } })
            .collect(),
    }
}

/// The names of tasks if the format allows them and they are unique, otherwise `task_` and their numbers.
fn task_ids(schedule: &Schedule) -> Vec<String> {
    let is_allowed = |name: &String| {
        let allowed = |letter: char| letter.is_ascii_alphanumeric() || "-_.#".contains(letter);
        !name.is_empty() && name.chars().all(allowed)
    };
    let names = &schedule.names;
    let all = names.iter().all(is_allowed) && names.len() == schedule.tasks.len();
    if all && names.iter().collect::<HashSet<_>>().len() == names.len() {
        return names.clone();
    }
    let digits = schedule.tasks.len().saturating_sub(1).to_string().len().max(4);
    (0..schedule.tasks.len()).map(|number| format!("task_{number:0digits$}")).collect()
}

/// The processors as host names of letters, digits, dots and hyphens.
fn machine_names(schedule: &Schedule) -> Vec<String> {
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || letter == '.' || letter == '-';
    let name = |name: &str| name.replace(|letter| !allowed(letter), "-").trim_matches(['-', '.']).to_owned();
    let names: Vec<String> = schedule.processors.iter().map(|processor| name(&processor.name)).collect();
    let different = names.iter().filter(|name| !name.is_empty()).collect::<HashSet<_>>().len();
    if different == names.len() {
        return names;
    }
    (0..names.len()).map(|index| format!("processor-{index}")).collect()
}

/// A time after the epoch in ISO 8601 (Hinnant, `chrono`-Compatible Low-Level Date Algorithms, `civil_from_days`).
fn moment(time: Exact) -> String {
    const DAY: i128 = 86_400_000_000_000;
    // Schedules longer than ten thousand years have no date.
    let time = time.nanoseconds().clamp(0, DAY * 2_932_897 - 1);
    let (days, rest) = (time / DAY + 719_468, time % DAY);
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let (year, day) =
        (year_of_era + era * 400 + i128::from(month <= 2), day_of_year - (153 * shifted + 2) / 5 + 1);
    let (second, nanosecond) = (rest / 1_000_000_000, rest % 1_000_000_000);
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{nanosecond:09}Z",
        second / 3600,
        second / 60 % 60,
        second % 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_stamps_match_the_calendar() {
        assert_eq!(moment(Exact::of(0.0)), "1970-01-01T00:00:00.000000000Z");
        assert_eq!(moment(Exact::of(951_782_400.5)), "2000-02-29T00:00:00.500000000Z");
        assert_eq!(moment(Exact::of(1e300)), "9999-12-31T23:59:59.999999999Z");
    }
}
