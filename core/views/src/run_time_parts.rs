//! The run time of a traced program in parts: as scheduled, as predicted, and as recorded.

use std::collections::BTreeMap;

use crate::human::seconds;

/// One line for each run time in the metrics of a schedule, with its parts; none for programs that were not traced.
///
/// The makespan consists of computation and messages. The prediction of the replay adds the overheads of messages at both ends, and
/// the waiting for links and memory that messages share. What the recorded run took beyond that is in no model.
#[must_use]
pub fn run_time_parts(metrics: &BTreeMap<String, f64>) -> Vec<String> {
    let value = |name: &str| metrics.get(name).copied();
    let (Some(makespan), Some(recorded)) = (value("makespan"), value("recorded_s")) else {
        return Vec::new();
    };
    let parts = |parts: &[(&str, Option<f64>)]| {
        let known = parts.iter().filter_map(|(name, part)| Some(format!("{name} {}", seconds((*part)?))));
        known.collect::<Vec<_>>().join(", ")
    };
    let line = |what: &str, total: f64, parts: String| match parts.is_empty() {
        true => format!("{what} {}", seconds(total)),
        false => format!("{what} {}: {parts}", seconds(total)),
    };
    let computation = value("critical_work");
    let messages = computation.map(|computation| (makespan - computation).max(0.0));
    let scheduled = parts(&[("computation", computation), ("messages", messages)]);
    let mut lines = vec![line("makespan", makespan, scheduled)];
    let predicted = value("predicted_s");
    if let Some(predicted) = predicted {
        let names = [
            ("computation", "predicted_computation_s"),
            ("messages", "predicted_messages_s"),
            ("overheads of messages", "predicted_overhead_s"),
            ("waiting and contention", "predicted_waiting_s"),
        ];
        lines.push(line("predicted", predicted, parts(&names.map(|(name, metric)| (name, value(metric))))));
    }
    let (known, what) = predicted.map_or((makespan, "makespan"), |predicted| (predicted, "prediction"));
    let rest = match recorded - known {
        more if more >= 0.0 => {
            format!("{} beyond the {what}, such as MPI_Init, tracing, and a slower network", seconds(more))
        }
        less => format!("{} below the {what}: the recorded machine was faster", seconds(-less)),
    };
    lines.push(line("recorded", recorded, rest));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(metrics: &[(&str, f64)]) -> Vec<String> {
        run_time_parts(&metrics.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect())
    }

    #[test]
    fn every_run_time_has_its_parts_in_seconds() {
        let metrics = [
            ("makespan", 0.016_543_500_4),
            ("critical_work", 0.016_523_11),
            ("predicted_s", 0.02),
            ("predicted_computation_s", 0.016),
            ("predicted_messages_s", 0.001),
            ("predicted_overhead_s", 0.0),
            ("predicted_waiting_s", 0.003),
            ("recorded_s", 0.343),
        ];
        assert_eq!(
            lines(&metrics),
            [
                "makespan 16.54 ms: computation 16.52 ms, messages 20.39 µs",
                "predicted 20 ms: computation 16 ms, messages 1 ms, overheads of messages 0 s, \
                 waiting and contention 3 ms",
                "recorded 343 ms: 323 ms beyond the prediction, such as MPI_Init, tracing, and a slower network",
            ]
        );
    }

    #[test]
    fn what_is_not_known_is_left_out() {
        assert_eq!(lines(&[("makespan", 57.0)]), [""; 0]);
        assert_eq!(
            lines(&[("makespan", 2.0), ("recorded_s", 1.5)]),
            ["makespan 2 s", "recorded 1.5 s: 500 ms below the makespan: the recorded machine was faster"]
        );
    }
}
