//! Measured run times: every run by mapping, medians, and differences.

use hopmap_model::Trials;
use hopmap_statistics::Sample;
use hopmap_trials::{comparisons, gain};
use hopmap_views::run_times;

use super::page::{Page, Results, escape, number};

/// Trials that are drawn.
const MOST_DRAWN: usize = 10;

/// Draws the run times of trials with more than one placement, and lists what they show. Whether there are any.
pub(crate) fn trials(page: &mut Page, results: Results<'_>) -> bool {
    let mut trials = results.all::<Trials>().filter(|(_, trials)| trials.mappings.len() > 1).peekable();
    if trials.peek().is_none() {
        return false;
    }
    page.heading("Measured run time");
    for (cell, trials) in trials.take(MOST_DRAWN) {
        page.cell_heading(cell);
        page.figure(&run_times(&trials), "Dots: runs; box: quartiles; line: median.");
        table(page, &trials);
        comparisons(&trials, false).iter().for_each(|sentence| page.note(&escape(sentence)));
    }
    true
}

fn table(page: &mut Page, trials: &Trials) {
    let row = |mapping: &hopmap_model::TrialMapping| {
        let name = &mapping.name;
        let sample = Sample::new(trials.seconds(name));
        let median_of = |value: fn(&hopmap_model::TrialRun) -> Option<f64>| {
            let runs =
                trials.runs.iter().filter(|run| run.block.is_some() && run.complete && run.mapping == *name);
            let median = Sample::new(runs.filter_map(value)).quartiles()[1];
            if median.is_finite() { number(median) } else { "–".to_owned() }
        };
        let incomplete = trials.runs.iter().filter(|run| run.mapping == *name && !run.complete).count();
        vec![
            escape(name),
            sample.len().to_string(),
            incomplete.to_string(),
            number(sample.quartiles()[1]),
            median_of(|run| run.mpi_s),
            median_of(|run| run.idle.map(|idle| 100.0 * idle)),
            gain(trials, name).map_or_else(|| "–".to_owned(), |gain| format!("{:.1} %", 100.0 * gain.gain)),
        ]
    };
    let head = "mapping | runs | incomplete | median (s) | inside MPI (s) | idle (%) | faster than the first";
    page.first_rows(head, trials.mappings.iter().map(row), usize::MAX);
}
