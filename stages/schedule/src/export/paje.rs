//! Traces of Pajé for `ViTE` and `pajeng`: a container for every processor, a state for every task, a link for every message
//! between processors. See Schnorr, "Paje trace file format", 2014.

use hopmap_model::{Schedule, TaskDag};

use super::exact::{Exact, critical_tasks};

/// The kinds of events with their fields. In timed events the time comes first, as readers of the format expect.
const HEADER: &str = include_str!("paje.header");

/// The text.
pub(super) fn write(schedule: &Schedule, dag: &TaskDag) -> String {
    let mut text = HEADER.to_owned() + "4 0 m0 M 0 \"schedule\"\n";
    for (index, processor) in schedule.processors.iter().enumerate() {
        text += &format!("4 0 p{index} P m0 \"{}\"\n", word(&processor.name));
    }
    let mut events = events(schedule, dag);
    events.sort_by_key(|event| event.0);
    events.iter().for_each(|(_, line)| text += line);
    let end = Exact::of(schedule.makespan());
    for index in 0..schedule.processors.len() {
        text += &format!("5 {end} P p{index}\n");
    }
    text + &format!("5 {end} M m0\n")
}

/// All events with their times. Events of a processor are in the order of its turns; at the same time, ends precede starts.
fn events(schedule: &Schedule, dag: &TaskDag) -> Vec<(Exact, String)> {
    let mut events = Vec::with_capacity(2 * schedule.tasks.len() + 2 * dag.dependencies.len());
    let critical = critical_tasks(schedule);
    for number in schedule.turns().into_iter().flatten() {
        let task = &schedule.tasks[number as usize];
        let (start, finish) = (Exact::of(task.start), Exact::of(task.finish));
        let (on, value) = (task.processor, if critical[number as usize] { "c" } else { "t" });
        events.push((start, format!("6 {start} S p{on} {value} \"{}\"\n", word(&schedule.name(number)))));
        events.push((finish, format!("7 {finish} S p{on}\n")));
    }
    for (index, message) in dag.dependencies.iter().enumerate() {
        let [from, to] = [message.source, message.destination].map(|task| &schedule.tasks[task as usize]);
        if from.processor != to.processor {
            let is_critical = critical[message.destination as usize] && to.waits_for == Some(message.source);
            let value = if is_critical { "d" } else { "m" };
            let (sent, received) = (Exact::of(from.finish), Exact::of(to.start));
            events.push((sent, format!("8 {sent} L m0 p{} {value} k{index}\n", from.processor)));
            events.push((received, format!("9 {received} L m0 p{} {value} k{index}\n", to.processor)));
        }
    }
    events
}

/// Text in quotes; the format cannot escape a quote.
fn word(text: &str) -> String {
    text.replace(|letter: char| letter == '"' || letter.is_control(), "'")
}
