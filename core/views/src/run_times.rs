//! Measured run times by mapping: every run, quartiles and median.

use hopmap_model::Trials;
use hopmap_statistics::Sample;

use crate::chart::{Axis, MOST_COLOURS};
use crate::human::{Unit, count_of, quantity, quantity_of};
use crate::svg::{Svg, shortened_inside};

const LEFT: f64 = 170.0;
const WIDTH: f64 = 520.0;
const TOP: f64 = 64.0;
const ROW: f64 = 34.0;
/// Mappings, and runs of each, that are drawn at most.
const MOST_MAPPINGS: usize = 40;
const MOST_RUNS: usize = 200;

/// A strip for every mapping: its measured runs as dots, a box from the lower to the upper quartile, and a line at the median.
#[must_use]
pub fn run_times(trials: &Trials) -> String {
    let names = trials.mappings.iter().map(|mapping| mapping.name.as_str());
    let measured: Vec<(&str, Vec<f64>)> =
        names.map(|name| (name, trials.seconds(name))).filter(|(_, runs)| !runs.is_empty()).collect();
    let runs: usize = measured.iter().map(|(_, runs)| runs.len()).sum();
    let shown = &measured[..measured.len().min(MOST_MAPPINGS)];
    let more = match measured.len() - shown.len() {
        0 => String::new(),
        more => format!(" · {} not shown", count_of(more, "mapping")),
    };
    let mut svg =
        Svg::new("Measured run times", &format!("{} · less is better{more}", count_of(runs, "run")));
    if shown.is_empty() {
        return svg.finish(LEFT + WIDTH, 40.0);
    }
    let all = || shown.iter().flat_map(|(_, runs)| runs.iter().copied());
    let (least, largest) = (all().fold(f64::INFINITY, f64::min), all().fold(0.0, f64::max));
    let margin = 0.05 * (largest - least).max(0.01 * largest);
    let axis = Axis::linear((least - margin).max(0.0), largest + margin);
    let bottom = TOP + ROW * shown.len() as f64;
    for (tick, text) in axis.labelled_ticks(6, |tick, digits| quantity_of(tick, Unit::Seconds, digits)) {
        let x = LEFT + WIDTH * axis.at(tick);
        svg.line(x, TOP, x, bottom, "l");
        svg.text(x, bottom + 16.0, "q n m", &text);
    }
    for (index, (name, runs)) in shown.iter().enumerate() {
        let colour = format!("fk{}", index % MOST_COLOURS);
        draw_strip(&mut svg, &axis, TOP + ROW * (index as f64 + 0.5), (name, runs), &colour);
    }
    svg.finish(LEFT + WIDTH + 24.0, bottom + 26.0)
}

fn draw_strip(svg: &mut Svg, axis: &Axis, y: f64, (name, runs): (&str, &[f64]), colour: &str) {
    let [lower, median, upper] = Sample::new(runs.iter().copied()).quartiles();
    let x = |seconds: f64| LEFT + WIDTH * axis.at(seconds);
    let tooltip =
        format!("{name}: median {} of {}", quantity(median, Unit::Seconds), count_of(runs.len(), "run"));
    svg.text(LEFT - 12.0, y + 4.0, "e", &shortened_inside(name, LEFT - 20.0));
    svg.group(&tooltip, |svg| {
        svg.outline(x(lower), y - 9.0, ((x(upper) - x(lower)).max(1.0), 18.0), "a");
        let step = runs.len().div_ceil(MOST_RUNS).max(1);
        for &seconds in runs.iter().step_by(step) {
            svg.disc(x(seconds), y, 3.0, colour, 0.6);
        }
        svg.line(x(median), y - 12.0, x(median), y + 12.0, "a");
    });
}

#[cfg(test)]
mod tests {
    use hopmap_model::{TrialMapping, TrialRun};

    use super::*;

    fn run(mapping: &str, block: Option<u32>, seconds: f64) -> TrialRun {
        TrialRun {
            mapping: mapping.to_owned(),
            block,
            choice: false,
            seconds: Some(seconds),
            mpi_s: None,
            lateness_s: None,
            idle: None,
            exit: Some(0),
            complete: true,
        }
    }

    #[test]
    fn measured_runs_are_drawn_and_warm_up_is_not() {
        let mapping = |name: &str| TrialMapping { name: name.into(), digest: String::new() };
        let runs = vec![
            run("a", None, 9.0),
            run("a", Some(0), 2.0),
            run("b", Some(0), 1.0),
            run("b", Some(1), 1.0),
            run("a", Some(1), 4.0),
        ];
        let mappings = ["a", "b", "failed"].map(mapping).into();
        let picture = run_times(&Trials { mappings, runs, ..Trials::default() });
        assert!(
            picture.contains("4 runs") && picture.contains("<title>a: median 3 s of 2 runs</title>"),
            "{picture}"
        );
        assert!(!picture.contains("failed") && picture.matches("<circle").count() == 4, "{picture}");
        assert!(run_times(&Trials::default()).contains("0 runs"));
    }
}
