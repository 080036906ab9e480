//! Where the predicted time of every rank goes, as stacked bars.

use hopmap_model::{Prediction, RankTimes};

use crate::chart::{Axis, GREY};
use crate::human::{Unit, count_of, quantity};
use crate::svg::Svg;

const LEFT: f64 = 76.0;
const TOP: f64 = 84.0;
const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 220.0;
/// Bars that are drawn at most; with more ranks a bar is the mean of several.
const MOST_BARS: usize = 180;
/// The colour and the name of every part, from the bottom up.
const PARTS: [(usize, &str); 4] =
    [(0, "computing"), (1, "sending"), (4, "waiting"), (GREY, "finished before the last rank")];

/// A bar for every rank: computing, sending, waiting, and the time after its end. Above 180 ranks a bar is the mean of several.
#[must_use]
pub fn rank_times(prediction: &Prediction) -> String {
    let seconds = prediction.seconds();
    let ranks = prediction.ranks.len();
    let what = if prediction.complete { "predicted" } else { "stopped after" };
    let subtitle = format!("{}, {what} {}", count_of(ranks, "rank"), quantity(seconds, Unit::Seconds));
    let mut svg = Svg::new("Time of every rank", &subtitle);
    if ranks == 0 || seconds <= 0.0 {
        return svg.finish(LEFT + WIDTH, 40.0);
    }
    draw_legend(&mut svg);
    let floor = TOP + HEIGHT;
    let axis = Axis::linear(0.0, seconds);
    let text = |tick: f64, _| quantity(tick, Unit::Seconds);
    axis.draw_scale(&mut svg, 5, (LEFT, WIDTH), (floor, HEIGHT), text);
    let per_bar = ranks.div_ceil(MOST_BARS);
    let step = WIDTH / ranks.div_ceil(per_bar) as f64;
    for (index, group) in prediction.ranks.chunks(per_bar).enumerate() {
        let first = index * per_bar;
        draw_bar(&mut svg, (first, group), (LEFT + index as f64 * step, step), (seconds, floor));
    }
    svg.text(LEFT, floor + 18.0, "q n", "rank 0");
    svg.text(LEFT + WIDTH, floor + 18.0, "q n e", &format!("rank {}", ranks - 1));
    svg.finish(LEFT + WIDTH + 8.0, floor + 24.0)
}

fn draw_legend(svg: &mut Svg) {
    let mut left = LEFT;
    for (colour, name) in PARTS {
        svg.rectangle(left, TOP - 30.0, (10.0, 10.0), 0.0, &format!("fk{colour}"));
        svg.text(left + 15.0, TOP - 21.0, "q n", name);
        left += 100.0;
    }
}

/// The bar of some ranks, their mean.
fn draw_bar(
    svg: &mut Svg,
    (first, group): (usize, &[RankTimes]),
    (left, step): (f64, f64),
    (seconds, floor): (f64, f64),
) {
    let mean = |part: fn(&RankTimes) -> f64| group.iter().map(part).sum::<f64>() / group.len() as f64;
    let finish = mean(|rank| rank.finish_s);
    let parts = [
        mean(|rank| rank.computing_s),
        mean(|rank| rank.sending_s),
        mean(|rank| rank.waiting_s),
        (seconds - finish).max(0.0),
    ];
    let texts = PARTS.iter().zip(parts).filter(|(_, part)| *part > 0.0);
    let texts = texts.map(|((_, name), part)| format!("{name} {}", quantity(part, Unit::Seconds)));
    let ranks = match group.len() {
        1 => format!("rank {first}"),
        count => format!("mean of ranks {first} to {}", first + count - 1),
    };
    let tooltip = format!("{ranks}: {}", texts.collect::<Vec<_>>().join(", "));
    svg.group(&tooltip, |svg| {
        let mut bottom = floor;
        for ((colour, _), part) in PARTS.iter().zip(parts) {
            let height = (HEIGHT * part / seconds).min(bottom - (floor - HEIGHT)).max(0.0);
            bottom -= height;
            if height > 0.0 {
                svg.rectangle(left, bottom, (step * 0.86, height), 0.0, &format!("fk{colour}"));
            }
        }
    });
}
