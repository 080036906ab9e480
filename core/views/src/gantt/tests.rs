use hopmap_model::Processor;

use super::*;

/// Tasks one after the other on processors in turn, all of the same length.
fn regular(tasks: u32, processors: u32) -> Schedule {
    let task = |number: u32| {
        let turn = number / processors;
        ScheduledTask {
            processor: number % processors,
            turn,
            start: f64::from(turn),
            finish: f64::from(turn + 1),
            waits_for: number.checked_sub(processors),
            process: None,
        }
    };
    let processor = |number: u32| Processor { name: format!("p{number}"), ..Processor::default() };
    Schedule {
        tasks: (0..tasks).map(task).collect(),
        processors: (0..processors).map(processor).collect(),
        complete: true,
        ..Schedule::default()
    }
}

#[test]
fn every_task_of_a_small_schedule_has_a_box_with_its_name() {
    let mut schedule = regular(5, 2);
    schedule.names = ["a", "b", "c", "d", "<e>"].map(String::from).to_vec();
    let picture = gantt(&schedule);
    for (text, count) in [
        ("<title>a: 0 to 1 on p0</title>", 1),
        ("<title>&lt;e&gt;: 2 to 3 on p0 · waits for c</title>", 1),
        (">&lt;e&gt;</text>", 1),
        ("<title>d: 1 to 2 on p1 · waits for b</title>", 1),
    ] {
        assert_eq!(picture.matches(text).count(), count, "{text}: {picture}");
    }
    assert!(
        picture.contains("5 tasks on 2 processors · makespan 3 · 16.7 % idle · model overlap"),
        "{picture}"
    );
    // The path of a, c and e.
    let (_, critical) = picture.split_once("<g class=\"fk1\"").unwrap();
    let critical = critical.split_once("</g>").unwrap().0;
    assert_eq!(critical.matches("<rect").count(), 3, "{critical}");
}

#[test]
fn the_bound_is_a_line_unless_it_is_reached() {
    let mut schedule = regular(4, 2);
    schedule.metrics = [("lower_bound".to_owned(), 1.5)].into();
    let picture = gantt(&schedule);
    assert!(picture.contains("at most 33.3 % above the optimum") && picture.contains(">lower bound 1.5<"));
    schedule.metrics = [("lower_bound".to_owned(), 2.0), ("proven".to_owned(), 1.0)].into();
    let picture = gantt(&schedule);
    assert!(picture.contains("proven optimal") && picture.contains(">makespan 2 = lower bound<"));
    assert!(!picture.contains("stroke-dasharray"));
}

#[test]
fn what_is_not_available_is_hatched() {
    let mut schedule = regular(4, 2);
    assert!(!gantt(&schedule).contains("not available yet"));
    schedule.tasks.remove(3);
    schedule.tasks[1].start = 0.5;
    schedule.processors[1].available = 0.5;
    assert!(gantt(&schedule).contains("not available yet"));
}

#[test]
fn narrow_boxes_become_runs_and_many_processors_share_lanes() {
    let picture = gantt(&regular(60_000, 3));
    assert_eq!(picture.matches("<title>").count(), 1);
    // All three lanes are busy all the time: one shade, and the same in the legend.
    assert_eq!(picture.matches("class=\"fk0\" fill-opacity=\"0.5\"/><").count(), 2);
    let picture = gantt(&regular(20_000, 1000));
    assert!(picture.contains(">p0 +12<"), "{picture}");
    assert!(picture.len() < 100_000, "{}", picture.len());
}

#[test]
fn what_is_no_schedule_has_no_chart() {
    let mut schedule = regular(2, 1);
    schedule.tasks[0].processor = 7;
    assert!(gantt(&schedule).contains("invalid: task 0 runs on processor 7"));
    assert!(gantt(&Schedule::default()).contains("0 tasks on 0 processors"));
}

#[test]
fn long_and_short_axes_have_a_unit() {
    let unit = |makespan: f64, is_traced: bool| {
        let mut schedule = regular(1, 1);
        schedule.tasks[0].finish = makespan;
        if is_traced {
            schedule.metrics.insert("recorded_s".to_owned(), 1.0);
        }
        TimeUnit::of(&schedule)
    };
    let micro = unit(2.5e-5, false);
    assert_eq!((micro.label(1e-5), micro.axis()), ("10".to_owned(), "time × 10⁻⁶ →".to_owned()));
    assert_eq!([57.0, 0.0, 2e7].map(|end| unit(end, false).axis()), ["time →", "time →", "time × 10⁶ →"]);
    assert_eq!(
        [2.5e-5, 0.0165, 57.0, 0.0, 2e7].map(|end| unit(end, true).axis()),
        ["µs →", "ms →", "s →", "s →", "s × 10⁶ →"]
    );
}

#[test]
fn times_of_a_traced_program_are_seconds_and_none_is_negative() {
    let mut schedule = regular(4, 2);
    for task in &mut schedule.tasks {
        (task.start, task.finish) = (task.start * 0.008_271_750_2, task.finish * 0.008_271_750_2);
    }
    schedule.metrics = [("recorded_s".to_owned(), 0.3), ("lower_bound".to_owned(), 0.0165)].into();
    let picture = gantt(&schedule);
    for text in [">ms →<", ">makespan 16.5435 ms<", ">lower bound 16.5 ms<", ": 0 s to 8.27175 ms on p0<"] {
        assert!(picture.contains(text), "{text}: {picture}");
    }
    assert!(!picture.contains(">-") && !picture.contains(">−"), "{picture}");
}
