//! Traces of Pajé, which `ViTE` and `pajeng` draw: a container for every processor, a state for every task, a link for every message
//! between processors. See Schnorr, "Paje trace file format", 2014.

use std::fmt::Write;

use hopmap_model::{Schedule, TaskDag};

use super::exact::Exact;

/// The kinds of events with their fields. A time comes first in all that happen in time, as those who read the format expect.
const HEADER: &str = "\
%EventDef PajeDefineContainerType 0
% Alias string
% Type string
% Name string
%EndEventDef
%EventDef PajeDefineStateType 1
% Alias string
% Type string
% Name string
%EndEventDef
%EventDef PajeDefineLinkType 2
% Alias string
% Type string
% StartContainerType string
% EndContainerType string
% Name string
%EndEventDef
%EventDef PajeDefineEntityValue 3
% Alias string
% Type string
% Name string
% Color color
%EndEventDef
%EventDef PajeCreateContainer 4
% Time date
% Alias string
% Type string
% Container string
% Name string
%EndEventDef
%EventDef PajeDestroyContainer 5
% Time date
% Type string
% Name string
%EndEventDef
%EventDef PajePushState 6
% Time date
% Type string
% Container string
% Value string
% Task string
%EndEventDef
%EventDef PajePopState 7
% Time date
% Type string
% Container string
%EndEventDef
%EventDef PajeStartLink 8
% Time date
% Type string
% Container string
% StartContainer string
% Value string
% Key string
%EndEventDef
%EventDef PajeEndLink 9
% Time date
% Type string
% Container string
% EndContainer string
% Value string
% Key string
%EndEventDef
0 M 0 \"schedule\"
0 P M \"processor\"
1 S P \"task\"
2 L M P P \"message\"
3 t S \"task\" \"0.0 0.45 0.70\"
3 c S \"critical path\" \"0.84 0.37 0.0\"
3 m L \"message\" \"0.48 0.48 0.48\"
3 d L \"critical path\" \"0.84 0.37 0.0\"
";

/// Something that happens; what begins comes after what ends at the same moment on the same processor.
enum Event {
    Begin(u32),
    End(u32),
    Send(usize),
    Receive(usize),
}

/// The text.
pub(super) fn write(schedule: &Schedule, dag: &TaskDag) -> String {
    let mut text = HEADER.to_owned();
    // Writing to a string does not fail.
    let _ = writeln!(text, "4 0 m0 M 0 \"schedule\"");
    for (index, processor) in schedule.processors.iter().enumerate() {
        let _ = writeln!(text, "4 0 p{index} P m0 \"{}\"", word(&processor.name));
    }
    let mut critical = vec![false; schedule.tasks.len()];
    schedule.critical_path().into_iter().for_each(|task| critical[task as usize] = true);
    for (time, event) in events(schedule, dag) {
        write_event(&mut text, (schedule, dag, &critical), (time, &event));
    }
    let end = Exact::of(schedule.makespan());
    for index in 0..schedule.processors.len() {
        let _ = writeln!(text, "5 {end} P p{index}");
    }
    let _ = writeln!(text, "5 {end} M m0");
    text
}

/// All events in the order of time; what a processor does stays in the order of its turns.
fn events(schedule: &Schedule, dag: &TaskDag) -> Vec<(Exact, Event)> {
    let mut events = Vec::with_capacity(2 * schedule.tasks.len() + 2 * dag.dependencies.len());
    for number in schedule.turns().into_iter().flatten() {
        let task = &schedule.tasks[number as usize];
        events.push((Exact::of(task.start), Event::Begin(number)));
        events.push((Exact::of(task.finish), Event::End(number)));
    }
    for (index, message) in dag.dependencies.iter().enumerate() {
        let [from, to] = [message.source, message.destination].map(|task| &schedule.tasks[task as usize]);
        if from.processor != to.processor {
            events.push((Exact::of(from.finish), Event::Send(index)));
            events.push((Exact::of(to.start), Event::Receive(index)));
        }
    }
    events.sort_by_key(|event| event.0);
    events
}

fn write_event(
    text: &mut String,
    (schedule, dag, critical): (&Schedule, &TaskDag, &[bool]),
    (time, event): (Exact, &Event),
) {
    let processor = |task: u32| schedule.tasks[task as usize].processor;
    let link = |index: usize| {
        let message = &dag.dependencies[index];
        let is_critical = critical[message.destination as usize]
            && schedule.tasks[message.destination as usize].waits_for == Some(message.source);
        (message, if is_critical { "d" } else { "m" })
    };
    let _ = match event {
        Event::Begin(task) => {
            let value = if critical[*task as usize] { "c" } else { "t" };
            let name = word(&schedule.name(*task));
            writeln!(text, "6 {time} S p{} {value} \"{name}\"", processor(*task))
        }
        Event::End(task) => writeln!(text, "7 {time} S p{}", processor(*task)),
        Event::Send(index) => {
            let (message, value) = link(*index);
            writeln!(text, "8 {time} L m0 p{} {value} k{index}", processor(message.source))
        }
        Event::Receive(index) => {
            let (message, value) = link(*index);
            writeln!(text, "9 {time} L m0 p{} {value} k{index}", processor(message.destination))
        }
    };
}

/// Text between quotes; the format knows no way to write a quote there.
fn word(text: &str) -> String {
    text.replace(|letter: char| letter == '"' || letter.is_control(), "'")
}
