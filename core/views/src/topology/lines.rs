//! Meaning and look of lines between boxes.

use std::collections::BTreeMap;

use hopmap_model::{Link, LinkState};

use crate::human::{Unit, quantity, three_digits};
use crate::svg::{Number, Path, RAMP, Svg, ramp_index, text_width};

/// Colours of kinds for links from narrow to wide; grey, sky blue, blue, green and orange.
const SPEEDS: [usize; 5] = [6, 5, 0, 2, 4];
/// Lines that may be wide without hiding each other.
const MOST_WIDE: usize = 40;
/// The look of links that carry no messages.
const DOWN: &str = "class=\"sk1\" fill=\"none\" stroke-width=\"1.5\" stroke-dasharray=\"3 3\"";
/// Width of a line between a sample in the legend and its text.
const SAMPLE: f64 = 26.0;

/// The links between two boxes, both directions.
#[derive(Debug, Clone, Default)]
pub(crate) struct Line {
    /// Bytes over the busiest of them, if loads are known.
    pub(crate) load: Option<u64>,
    /// By direction, how many there are of every bandwidth in megabits per second; zero if that is not known.
    cables: [BTreeMap<u64, u32>; 2],
    /// By direction, how many are down.
    down: [u32; 2],
}

impl Line {
    pub(crate) fn add(&mut self, link: &Link, is_forth: bool, load: Option<u64>) {
        self.load = self.load.max(load);
        let direction = usize::from(is_forth);
        if link.state == LinkState::Down {
            self.down[direction] += 1;
        } else {
            let speed = link.bandwidth_bytes_per_s.filter(|speed| speed.is_finite() && *speed > 0.0);
            let speed = speed.map_or(0, |speed| libm::round(speed * 8.0 / 1e6) as u64);
            *self.cables[direction].entry(speed).or_default() += 1;
        }
    }

    /// Adds the links of another line.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.load = self.load.max(other.load);
        for direction in 0..2 {
            for (speed, count) in &other.cables[direction] {
                *self.cables[direction].entry(*speed).or_default() += count;
            }
            self.down[direction] += other.down[direction];
        }
    }

    /// Cables that are up by bandwidth: a link each way is one.
    fn up(&self) -> BTreeMap<u64, u32> {
        let mut up = self.cables[0].clone();
        for (&speed, &count) in &self.cables[1] {
            let both = up.entry(speed).or_default();
            *both = (*both).max(count);
        }
        up
    }

    fn down(&self) -> u32 {
        self.down[0].max(self.down[1])
    }

    /// Whether there are links, but none that carries messages.
    pub(crate) fn is_down(&self) -> bool {
        self.down() > 0 && self.up().is_empty()
    }

    /// Bandwidth of the widest link, if known.
    fn speed(&self) -> Option<u64> {
        self.up().into_keys().next_back().filter(|&speed| speed > 0)
    }

    /// `4 × 32 Gb/s, 1 down · busiest: 3 MB`.
    pub(crate) fn description(&self) -> String {
        let mut parts: Vec<String> = self
            .up()
            .into_iter()
            .rev()
            .map(|(speed, count)| match (speed, count) {
                (0, 1) => "1 link".into(),
                (0, count) => format!("{count} links"),
                (speed, 1) => gigabits(speed),
                (speed, count) => format!("{count} × {}", gigabits(speed)),
            })
            .collect();
        if self.down() > 0 {
            parts.push(format!("{} down", self.down()));
        }
        let cables = parts.join(", ");
        match (self.load, cables.is_empty()) {
            (None, _) => cables,
            (Some(load), true) => quantity(load as f64, Unit::Bytes),
            (Some(load), false) => format!("{cables} · {}", quantity(load as f64, Unit::Bytes)),
        }
    }
}

fn gigabits(megabits: u64) -> String {
    format!("{} Gb/s", three_digits(megabits as f64 / 1000.0))
}

/// How all lines of a picture look.
#[derive(Debug, Default)]
pub(crate) struct Styles {
    /// The largest load, if loads are known.
    pub(crate) busiest: Option<u64>,
    /// Bandwidths that there are, rising, in megabits per second.
    speeds: Vec<u64>,
    has_down: bool,
    has_parallel: bool,
    /// Width of the line with the largest load.
    widest: f64,
}

impl Styles {
    /// The looks of these lines, given how many overlap.
    pub(crate) fn new<'a>(
        lines: impl Iterator<Item = &'a Line>,
        hidden: Option<u64>,
        crossing: usize,
    ) -> Self {
        let widest = if crossing > MOST_WIDE { 3.5 } else { 7.5 };
        let mut styles = Self { busiest: hidden, widest, ..Self::default() };
        for line in lines {
            styles.busiest = styles.busiest.max(line.load);
            let up = line.up();
            styles.has_down |= line.down() > 0;
            styles.has_parallel |= up.values().sum::<u32>() > 1;
            styles.speeds.extend(up.into_keys().filter(|&speed| speed > 0));
        }
        styles.speeds.sort_unstable();
        styles.speeds.dedup();
        styles
    }

    /// Markup of a line's class, width and dashes.
    pub(crate) fn stroke(&self, line: &Line) -> String {
        if line.is_down() {
            return DOWN.into();
        }
        let (class, width) = match (line.load, self.busiest) {
            (Some(load), Some(busiest)) => self.by_load(load, busiest),
            _ => self.by_speed(line),
        };
        format!("class=\"{class}\" fill=\"none\" stroke-width=\"{}\"", Number(width))
    }

    fn by_speed(&self, line: &Line) -> (String, f64) {
        let cables = line.up().values().sum::<u32>().max(1);
        let width = (0.9 + 0.8 * libm::sqrt(f64::from(cables - 1))).min(5.0);
        match line.speed() {
            Some(speed) if self.speeds.len() > 1 => (format!("sk{}", self.kind(speed)), width),
            _ => ("a".into(), width),
        }
    }

    /// The colour of a bandwidth.
    fn kind(&self, speed: u64) -> usize {
        let place = self.speeds.iter().position(|&other| other == speed).unwrap_or(0);
        SPEEDS[place * SPEEDS.len() / self.speeds.len().max(SPEEDS.len())]
    }

    /// Class of a box for the link of a host.
    pub(crate) fn fill(&self, line: &Line) -> Option<String> {
        let Some((load, busiest)) = line.load.zip(self.busiest) else {
            return line
                .speed()
                .filter(|_| self.speeds.len() > 1)
                .map(|speed| format!("fk{}", self.kind(speed)));
        };
        (load > 0 && busiest > 0).then(|| format!("f{}", ramp_index(load as f64 / busiest as f64)))
    }

    /// Draws what colours and widths mean; the height of it.
    pub(crate) fn legend(&self, svg: &mut Svg, y: f64, has_down_hosts: bool) -> f64 {
        let mut height = 0.0;
        if let Some(busiest) = self.busiest {
            self.legend_of_loads(svg, busiest, y);
            height += 44.0;
        } else if !self.speeds.is_empty() {
            self.legend_of_speeds(svg, y + 8.0);
            height += 24.0;
        }
        if self.has_down || has_down_hosts {
            let middle = Number(y + height + 8.0);
            svg.add(format_args!("<path d=\"M0 {middle}H{SAMPLE}\" {DOWN}/>"));
            svg.text(SAMPLE + 8.0, y + height + 12.0, "q n", "down");
            height += 20.0;
        }
        height
    }

    fn legend_of_speeds(&self, svg: &mut Svg, y: f64) {
        if let [speed] = self.speeds[..] {
            let rest = if self.has_parallel { "; thicker lines are several" } else { "" };
            svg.text(0.0, y + 4.0, "q n", &format!("links of {}{rest}", gigabits(speed)));
            return;
        }
        let mut x = 0.0;
        for speeds in self.speeds.chunk_by(|a, b| self.kind(*a) == self.kind(*b)) {
            let (Some(&first), Some(&last)) = (speeds.first(), speeds.last()) else { continue };
            let text = match first == last {
                true => gigabits(first),
                false => format!("{} to {}", gigabits(first), gigabits(last)),
            };
            let ([left, right, middle], kind) = ([x, x + SAMPLE, y].map(Number), self.kind(first));
            let look = format!("class=\"sk{kind}\" fill=\"none\" stroke-width=\"2.5\"");
            svg.add(format_args!("<path d=\"M{left} {middle}H{right}\" {look}/>"));
            svg.text(x + SAMPLE + 6.0, y + 4.0, "q n", &text);
            x += SAMPLE + 6.0 + text_width(&text) + 18.0;
        }
        if self.has_parallel {
            svg.text(x, y + 4.0, "q n", "thicker: several cables");
        }
    }

    fn legend_of_loads(&self, svg: &mut Svg, busiest: u64, y: f64) {
        const STEPS: usize = 6;
        const STEP: f64 = 34.0;
        svg.text(0.0, y + 12.0, "q n", "bytes over a link");
        let left = 112.0;
        for step in 0..STEPS {
            let load = busiest as f64 * (step + 1) as f64 / STEPS as f64;
            let (colour, width) = self.by_load(load as u64, busiest);
            let x = left + STEP * step as f64;
            let [from, to, middle, width] = [x, x + STEP - 2.0, y + 8.0, width].map(Number);
            let path = format!("M{from} {middle}H{to}");
            svg.add(format_args!("<path d=\"{path}\" class=\"{colour}\" stroke-width=\"{width}\"/>"));
        }
        svg.text(left, y + 28.0, "q n", "0 B");
        let right = left + STEP * STEPS as f64;
        svg.text(right, y + 28.0, "q n e", &quantity(busiest as f64, Unit::Bytes));
        let parallel = if self.has_parallel { ", of parallel cables the busiest" } else { "" };
        svg.text(right + 14.0, y + 12.0, "q n", &format!("the busier direction{parallel}"));
    }

    /// Class and width of a line with this load.
    fn by_load(&self, load: u64, busiest: u64) -> (String, f64) {
        if load == 0 || busiest == 0 {
            return ("l".into(), 1.0);
        }
        let share = load as f64 / busiest as f64;
        // The two palest colours are hard to see as lines.
        let colour = 2 + ramp_index(share) * (RAMP - 3) / (RAMP - 1);
        (format!("s{colour}"), 1.5 + (self.widest - 1.5) * share)
    }
}

/// A line, with a tooltip if it has a name.
pub(crate) fn draw_line(svg: &mut Svg, path: &Path, line: &Line, styles: &Styles, name: Option<&str>) {
    let tooltip = line.description();
    let draw = |svg: &mut Svg| svg.add(format_args!("<path d=\"{path}\" {}/>", styles.stroke(line)));
    match name.filter(|_| !tooltip.is_empty()) {
        Some(name) => svg.group(&format!("{name}: {tooltip}"), draw),
        None => draw(svg),
    }
}

/// A dashed border and a stroke across.
pub(crate) fn draw_down(svg: &mut Svg, (x, y): (f64, f64), (width, height): (f64, f64)) {
    let [x, y, w, h, bottom] = [x, y, width, height, y + height].map(Number);
    let path = format!("M{x} {y}h{w}v{h}h-{w}zM{x} {bottom}l{w} -{h}");
    svg.add(format_args!("<path d=\"{path}\" class=\"sk1\" fill=\"none\" stroke-dasharray=\"3 2\"/>"));
}
