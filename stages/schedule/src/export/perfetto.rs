//! Trace events in JSON as <https://ui.perfetto.dev> and `chrome://tracing` open them.
//!
//! A track for every processor, a complete event (`X`) for every task, and a flow (`s`, `f`) for every message between
//! processors. One unit of time of the schedule is one second. Event times are integer nanoseconds, the resolution of these
//! viewers; exact times are among the arguments. A flow leaves a task in its last nanosecond: at its very end the viewer would
//! attach the flow to the next task.

use std::fmt::Write;

use hopmap_model::{Dependency, Schedule, ScheduledTask, TaskDag};

use super::exact::{Exact, critical_tasks};

/// The text; streamed task by task without an intermediate structure.
pub(super) fn write(schedule: &Schedule, dag: &TaskDag) -> String {
    let mut incoming = vec![Vec::new(); schedule.tasks.len()];
    for (id, message) in dag.dependencies.iter().enumerate() {
        incoming[message.destination as usize].push(id as u32);
    }
    let outgoing = dag.starts();
    let mut trace = Trace { schedule, text: String::from("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n") };
    trace.metadata();
    let critical = critical_tasks(schedule);
    let segments = schedule.segments();
    for number in in_time(schedule, dag) {
        let task = number as usize;
        trace.task(number, segments[task], critical[task]);
        let sent = (outgoing[task]..outgoing[task + 1]).map(|id| (id, true));
        let received = incoming[task].iter().map(|&id| (id as usize, false));
        for (id, is_sent) in received.chain(sent) {
            let message = &dag.dependencies[id];
            trace.message((id, message), is_sent, critical[message.destination as usize]);
        }
    }
    // Removes the last comma.
    trace.text.truncate(trace.text.trim_end_matches(['\n', ',']).len());
    trace.text.push_str("\n]}\n");
    trace.text
}

/// The tasks in the order of time. A viewer attaches a flow to the last task of its processor that starts before it and has not
/// ended; that matters for tasks without duration.
fn in_time(schedule: &Schedule, dag: &TaskDag) -> Vec<u32> {
    let mut order = dag.order().unwrap_or_else(|_| (0..schedule.tasks.len() as u32).collect());
    order.sort_by(|&a, &b| {
        let [a, b] = [a, b].map(|task| &schedule.tasks[task as usize]);
        a.start.total_cmp(&b.start).then(a.finish.total_cmp(&b.finish))
    });
    order
}

struct Trace<'a> {
    schedule: &'a Schedule,
    text: String,
}

/// A time as microseconds with three places.
fn microseconds(nanoseconds: i128) -> String {
    let (whole, rest) = (nanoseconds / 1000, nanoseconds % 1000);
    if rest == 0 { whole.to_string() } else { format!("{whole}.{rest:03}") }
}

/// A time stamp as microseconds with nanosecond digits. Perfetto multiplies the double by 1000 and truncates: if that would lose
/// a nanosecond, so that the previous task overlaps this one, half a nanosecond is added.
fn moment(nanoseconds: i128) -> String {
    let text = microseconds(nanoseconds);
    let read = text.parse::<f64>().unwrap_or(0.0) * 1000.0;
    if (read as i128) < nanoseconds && text.contains('.') { text + "5" } else { text }
}

fn string(text: &str) -> serde_json::Value {
    serde_json::Value::from(text)
}

fn nanoseconds(task: &ScheduledTask) -> (i128, i128) {
    (Exact::of(task.start).nanoseconds(), Exact::of(task.finish).nanoseconds())
}

impl Trace<'_> {
    fn event(&mut self, event: std::fmt::Arguments<'_>) {
        // Writing to a string does not fail.
        let _ = self.text.write_fmt(event);
        self.text.push_str(",\n");
    }

    /// The names of the tracks, in the order of the processors. Thread 0 is the idle task in other traces.
    fn metadata(&mut self) {
        self.event(format_args!(
            "{{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\",\"args\":{{\"name\":\"schedule\"}}}}"
        ));
        let schedule = self.schedule;
        for (index, processor) in schedule.processors.iter().enumerate() {
            let (thread, name) = (index + 1, string(&processor.name));
            self.event(format_args!(
                "{{\"ph\":\"M\",\"pid\":1,\"tid\":{thread},\"name\":\"thread_name\",\"args\":{{\"name\":{name}}}}}"
            ));
            self.event(format_args!(
                "{{\"ph\":\"M\",\"pid\":1,\"tid\":{thread},\"name\":\"thread_sort_index\",\"args\":{{\"sort_index\":{index}}}}}"
            ));
        }
    }

    fn task(&mut self, number: u32, segment: Option<u32>, critical: bool) {
        let schedule = self.schedule;
        let task = &schedule.tasks[number as usize];
        let (start, finish) = nanoseconds(task);
        let name = string(&schedule.name(number));
        let colour = if critical { ",\"cname\":\"terrible\"" } else { "" };
        let mut arguments = format!("\"task\":{number},\"name\":{name}");
        for (key, value) in [("process", task.process), ("segment", segment)] {
            if let Some(value) = value {
                let _ = write!(arguments, ",\"{key}\":{value}");
            }
        }
        if let Some(before) = task.waits_for {
            let _ = write!(arguments, ",\"waits_for\":{}", string(&schedule.name(before)));
        }
        let (from, to) = (Exact::of(task.start), Exact::of(task.finish));
        self.event(format_args!(
            "{{\"ph\":\"X\",\"pid\":1,\"tid\":{},\"ts\":{},\"dur\":{},\"name\":{name},\"cat\":\"{}\"{colour},\
             \"args\":{{{arguments},\"start\":{from},\"finish\":{to}}}}}",
            task.processor + 1,
            moment(start),
            microseconds(finish - start),
            if critical { "task,critical" } else { "task" },
        ));
    }

    /// One end of the flow of a message between processors.
    fn message(&mut self, (id, message): (usize, &Dependency), is_sent: bool, critical: bool) {
        let [source, destination] =
            [message.source, message.destination].map(|task| &self.schedule.tasks[task as usize]);
        if source.processor == destination.processor {
            return;
        }
        let critical = critical && destination.waits_for == Some(message.source);
        let kind = if critical { "message,critical" } else { "message" };
        let both = format!("\"id\":{id},\"pid\":1,\"cat\":\"{kind}\",\"name\":\"message\"");
        if is_sent {
            let (start, finish) = nanoseconds(source);
            self.event(format_args!(
                "{{\"ph\":\"s\",{both},\"tid\":{},\"ts\":{},\"args\":{{\"bytes\":{}}}}}",
                source.processor + 1,
                moment(start.max(finish - 1)),
                message.bytes
            ));
        } else {
            self.event(format_args!(
                "{{\"ph\":\"f\",\"bp\":\"e\",{both},\"tid\":{},\"ts\":{}}}",
                destination.processor + 1,
                moment(nanoseconds(destination).0)
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_stamps_are_not_truncated_to_the_previous_nanosecond() {
        let read = |nanoseconds: i128| (moment(nanoseconds).parse::<f64>().unwrap() * 1000.0) as i128;
        assert!(
            (0..200_000).map(|index| index * 7_919_001).all(|nanoseconds| read(nanoseconds) == nanoseconds)
        );
        assert_eq!((moment(2_800_000_000), moment(1001)), ("2800000".to_owned(), "1.0015".to_owned()));
    }
}
