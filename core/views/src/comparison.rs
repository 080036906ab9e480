//! A mapping compared with linear and random ones.

use std::collections::BTreeMap;

use hopmap_model::{Metrics, PlacementMetrics, PlacementOrigin};

use crate::chart::Axis;
use crate::human::{Unit, count_of, quantity};
use crate::palette::{LINEAR, Palette, RANDOM};
use crate::svg::{Svg, shortened_inside, text_width};

const LEFT: f64 = 170.0;
const WIDTH: f64 = 400.0;
const TOP: f64 = 76.0;
const ROW: f64 = 54.0;
/// Random mappings that are drawn at most.
const MOST_SAMPLES: usize = 100;

/// Every metric of a mapping relative to the linear mapping, with the random mappings to compare: less is better. The mapping has the
/// colour of its mapper.
#[must_use]
pub fn comparison(metrics: &Metrics, mapper: &str, palette: &Palette) -> String {
    let rows = rows(metrics);
    let samples =
        metrics.placements.iter().filter(|placement| placement.origin == PlacementOrigin::Random).count();
    let subtitle = match rows.is_empty() {
        true => "nothing to compare".to_owned(),
        false => format!("linear = 1, less is better · {}", count_of(samples, "random mapping")),
    };
    let mut svg = Svg::new("Mapping compared with linear and random", &subtitle);
    let bottom = TOP + ROW * rows.len() as f64;
    if !rows.is_empty() {
        let axis = axis(&rows);
        let colour = format!("fk{}", palette.of(mapper));
        draw_axis(&mut svg, &axis, bottom);
        draw_legend(&mut svg, mapper, &colour);
        for (index, row) in rows.iter().enumerate() {
            draw_row(&mut svg, &axis, TOP + ROW * (index as f64 + 0.5), row, &colour);
        }
    }
    svg.finish(LEFT + WIDTH + 130.0, if rows.is_empty() { 40.0 } else { bottom + 26.0 })
}

/// One metric: values of the mapping, the linear mapping and the random ones.
struct Row {
    name: String,
    /// What the metric measures, in a few words.
    meaning: &'static str,
    unit: Unit,
    mapping: f64,
    linear: f64,
    random: Vec<f64>,
}

impl Row {
    /// A value as a share of linear; none if linear is zero and the value is not.
    fn share(&self, value: f64) -> Option<f64> {
        if self.linear > 0.0 && value.is_finite() {
            return Some(value / self.linear);
        }
        let both_zero = value.abs() + self.linear.abs() <= 0.0;
        both_zero.then_some(1.0)
    }

    fn shares(&self) -> impl Iterator<Item = f64> {
        self.random.iter().chain([&self.mapping]).filter_map(|&value| self.share(value))
    }
}

/// A row for every metric that the mapping and the linear mapping have.
fn rows(metrics: &Metrics) -> Vec<Row> {
    let values = |origin: PlacementOrigin| -> Vec<&BTreeMap<String, f64>> {
        let of_origin = |placement: &&PlacementMetrics| placement.origin == origin;
        metrics.placements.iter().filter(of_origin).map(|placement| &placement.values).collect()
    };
    let (mappings, linears) = (values(PlacementOrigin::Mapping), values(PlacementOrigin::Linear));
    let random = values(PlacementOrigin::Random);
    let (Some(mapping), Some(linear)) = (mappings.first(), linears.first()) else { return Vec::new() };
    let row = |(key, &value): (&String, &f64)| {
        let step = random.len().div_ceil(MOST_SAMPLES).max(1);
        Some(Row {
            name: key.clone(),
            meaning: meaning_of(key),
            unit: unit_of(key),
            mapping: value,
            linear: *linear.get(key)?,
            random: random.iter().step_by(step).filter_map(|values| values.get(key).copied()).collect(),
        })
    };
    mapping.iter().filter_map(row).collect()
}

fn meaning_of(key: &str) -> &'static str {
    match key {
        "F" => "communication cost",
        "T" => "bottleneck cost",
        "hop_bytes" => "bytes × hops",
        "max_link_load_bytes" => "busiest link",
        "max_link_time_s" => "time of the busiest link",
        "dilation_mean" => "mean number of hops",
        "dilation_max" => "largest number of hops",
        _ => "",
    }
}

/// The unit of a metric, by its name.
pub(crate) fn unit_of(key: &str) -> Unit {
    match key {
        key if key.ends_with("_bytes") => Unit::Bytes,
        key if key.ends_with("_s") => Unit::Seconds,
        _ => Unit::Count,
    }
}

/// Equal factors, wide enough for every share.
fn axis(rows: &[Row]) -> Axis {
    let shares = || rows.iter().flat_map(Row::shares).filter(|share| *share > 0.0);
    let low = shares().fold(1.0, f64::min);
    let high = shares().fold(1.0, f64::max);
    Axis::logarithmic((low / 1.25).min(0.5), (high * 1.25).max(2.0))
}

fn draw_axis(svg: &mut Svg, axis: &Axis, bottom: f64) {
    let linear = linear();
    for tick in axis.ticks(7) {
        let x = LEFT + WIDTH * axis.at(tick);
        svg.line(x, TOP, x, bottom, if (tick - 1.0).abs() < 1e-9 { linear.as_str() } else { "l" });
        svg.text(x, bottom + 16.0, "q n m", &format!("× {}", quantity(tick, Unit::Count)));
    }
}

fn draw_legend(svg: &mut Svg, mapper: &str, colour: &str) {
    let y = TOP - 14.0;
    svg.disc(LEFT + 6.0, y - 4.0, 6.0, colour, 1.0);
    let mapper = match mapper {
        "" => "mapping".to_owned(),
        mapper => format!("this mapping: {}", shortened_inside(mapper, WIDTH - 220.0)),
    };
    svg.text(LEFT + 18.0, y, "n", &mapper);
    let next = LEFT + 34.0 + text_width(&mapper);
    svg.line(next, y - 10.0, next, y + 2.0, &linear());
    svg.text(next + 8.0, y, "n", "linear");
    svg.disc(next + 64.0, y - 4.0, 3.0, &random(), 0.6);
    svg.text(next + 74.0, y, "n", "random");
}

fn draw_row(svg: &mut Svg, axis: &Axis, y: f64, row: &Row, colour: &str) {
    let value = |value: f64| quantity(value, row.unit);
    let top = if row.meaning.is_empty() { y } else { y - 7.0 };
    svg.text(LEFT - 16.0, top, "w e", &row.name);
    svg.text(LEFT - 16.0, top + 14.0, "q n e", row.meaning);
    let bottom = if row.meaning.is_empty() { top } else { top + 14.0 };
    svg.text(LEFT - 16.0, bottom + 14.0, "q n e", &format!("linear {}", value(row.linear)));
    svg.line(LEFT, y, LEFT + WIDTH, y, "l");
    for &sample in &row.random {
        if let Some(share) = row.share(sample) {
            let x = LEFT + WIDTH * axis.at(share);
            svg.group(&format!("random: {}", value(sample)), |svg| svg.disc(x, y, 3.0, &random(), 0.6));
        }
    }
    match row.share(row.mapping) {
        None => svg.text(LEFT + WIDTH + 14.0, y + 4.0, "w", &value(row.mapping)),
        Some(share) => {
            let x = LEFT + WIDTH * axis.at(share);
            svg.group(&format!("mapping: {}", value(row.mapping)), |svg| svg.disc(x, y, 6.5, colour, 1.0));
            svg.text(LEFT + WIDTH + 14.0, y, "w", &value(row.mapping));
            svg.text(LEFT + WIDTH + 14.0, y + 14.0, "q n", &change(share));
        }
    }
}

/// The classes of the line of the linear mapping.
fn linear() -> String {
    format!("g sk{LINEAR}")
}

/// The class of dots of random mappings.
fn random() -> String {
    format!("fk{RANDOM}")
}

fn change(share: f64) -> String {
    let percent = (share - 1.0) * 100.0;
    match percent {
        percent if percent.abs() < 0.05 => "same as linear".into(),
        percent if percent < 0.0 => format!("−{:.1} %", -percent),
        percent if percent < 1000.0 => format!("+{percent:.1} %"),
        _ => format!("× {}", quantity(share, Unit::Count)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metrics(mapping: &[(&str, f64)], linear: &[(&str, f64)]) -> Metrics {
        let placement = |origin, values: &[(&str, f64)]| PlacementMetrics {
            origin,
            sample: 0,
            values: values.iter().map(|(key, value)| ((*key).to_owned(), *value)).collect(),
        };
        Metrics {
            placements: vec![
                placement(PlacementOrigin::Mapping, mapping),
                placement(PlacementOrigin::Linear, linear),
            ],
            ..Metrics::default()
        }
    }

    #[test]
    fn values_are_shares_of_linear() {
        let metrics = metrics(
            &[("F", 25.0), ("max_link_load_bytes", 3e6)],
            &[("F", 100.0), ("max_link_load_bytes", 2e6)],
        );
        let picture = comparison(&metrics, "", &Palette::default());
        assert!(picture.contains("−75.0 %") && picture.contains("+50.0 %") && picture.contains("3 MB"));
    }

    /// Once the chart called `dilation_max` "hops, largest", so that nobody found it in tables and gates.
    #[test]
    fn metrics_have_their_names_and_an_explanation() {
        let values = [("dilation_max", 4.0), ("max_link_load_bytes", 2e6)];
        let picture = comparison(&metrics(&values, &values), "", &Palette::default());
        for text in ["dilation_max", "largest number of hops", "max_link_load_bytes", "busiest link"] {
            assert!(picture.contains(&format!(">{text}</text>")), "{text}: {picture}");
        }
    }

    #[test]
    fn metrics_without_a_share_show_their_value() {
        let zero = rows(&metrics(&[("T", 5.0), ("U", 0.0), ("V", 1.0)], &[("T", 0.0), ("U", 0.0)]));
        assert_eq!(zero.iter().map(|row| row.share(row.mapping)).collect::<Vec<_>>(), [None, Some(1.0)]);
        assert!(comparison(&Metrics::default(), "", &Palette::default()).contains("nothing to compare"));
    }

    /// Once every mapping was blue, which was the colour of another mapper in the next chart, and linear was grey.
    #[test]
    fn mappings_have_the_colours_of_their_mappers() {
        let metrics = metrics(&[("F", 25.0)], &[("F", 100.0)]);
        let palette = Palette::new(["annealing", "tabu", "linear"].into_iter());
        let picture = comparison(&metrics, "tabu", &palette);
        assert_eq!(picture.matches("class=\"fk1\"").count(), 2, "{picture}");
        assert_eq!(picture.matches("class=\"g sk4\"").count(), 2, "{picture}");
        assert!(picture.contains(">this mapping: tabu<"), "{picture}");
    }
}
